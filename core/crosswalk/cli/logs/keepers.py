"""Stores of answers that ``crosswalk diff`` can compare: the entry-point group ``crosswalk.stored``.

The name of an entry is the name of a file that every folder of such a store has. Looking for it imports nothing.
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

GROUP: Final = "crosswalk.stored"


class Keeper(Protocol):
    """The interface of an entry of the group ``crosswalk.stored``."""

    def compare(self, folder: Path, arguments: argparse.Namespace, comparison: Comparison) -> int:
        """Compare the answers in *folder* with the result of mapping them now.

        Args:
            folder: the stored answers.
            arguments: those of ``crosswalk diff``.
            comparison: takes every pair.

        Returns:
            The number of answers that could not be compared. Each was reported.
        """

    def report_rows(self, folder: Path) -> Iterable[ReportRow]:
        """The exchanges in *folder*, as ``crosswalk report`` counts them."""


def keeper_of(folder: Path) -> Keeper | None:
    """The store that *folder* belongs to, or ``None`` for a folder of JSON files.

    Raises:
        PluginError: its package cannot be imported.
    """
    for point in installed_points(GROUP):
        if (folder / point.name).is_file():
            return cast("Keeper", InstalledCommand(point.name, point).load())
    return None
