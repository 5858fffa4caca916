"""Who keeps stored answers in a way of his own, for ``crosswalk diff``: the entry-point group ``crosswalk.stored``.

The name of an entry is that of a file which every folder of this keeper's has; nothing is imported to look for it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Protocol, cast

from crosswalk.cli.installed import InstalledCommand
from crosswalk.cli.logs.comparing import Comparison
from crosswalk.cli.logs.report_rows import ReportRow
from crosswalk.plugin.installed import installed_points

__all__ = ["GROUP", "Keeper", "keeper_of"]

GROUP: Final = "crosswalk.stored"


class Keeper(Protocol):
    """What stands behind an entry of the group ``crosswalk.stored``."""

    def compare(self, folder: Path, arguments: argparse.Namespace, comparison: Comparison) -> int:
        """Compare what *folder* holds with what it is mapped to now.

        Args:
            folder: the stored answers.
            arguments: of ``crosswalk diff``.
            comparison: takes every pair.

        Returns:
            How many could not be compared; each was reported.
        """

    def report_rows(self, folder: Path) -> Iterable[ReportRow]:
        """What *folder* holds, an exchange each, as ``crosswalk report`` counts it."""


def keeper_of(folder: Path) -> Keeper | None:
    """The keeper whose folder it is; ``None`` where it is one of JSON files.

    Raises:
        PluginError: it cannot be imported.
    """
    for point in installed_points(GROUP):
        if (folder / point.name).is_file():
            return cast("Keeper", InstalledCommand(point.name, point).load())
    return None
