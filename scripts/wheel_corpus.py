"""The corpus of ``crosswalk.testing`` in a wheel: one archive, not a file for each capture.

It is not compressed: the wheel compresses it as a whole, which makes much less of captures that are much alike.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDERS: Final = ("tests/captures", "snapshots")
"""What of the repository is in the corpus, under the same names."""


class WheelCorpus(BuildHookInterface):  # type: ignore[type-arg]
    """Adds ``crosswalk/testing/corpus.zip`` to a wheel. An editable one reads the repository."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the archive, and name it in *build_data*."""
        if version == "editable":
            return
        self._folder = TemporaryDirectory()
        archive = Path(self._folder.name, "corpus.zip")
        write_archive(Path(self.root), archive)
        build_data["force_include"][str(archive)] = "crosswalk/testing/corpus.zip"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the archive, which is in the wheel now."""
        if version != "editable":
            self._folder.cleanup()


def write_archive(root: Path, archive: Path) -> None:
    """Write the corpus of the repository at *root* to *archive*: the same bytes for the same files, whenever it is."""
    with zipfile.ZipFile(archive, "w") as out:
        for folder in FOLDERS:
            for file in sorted(Path(root, folder).rglob("*")):
                if file.is_file():
                    member = zipfile.ZipInfo(file.relative_to(root).as_posix())
                    member.external_attr = 0o644 << 16
                    out.writestr(member, file.read_bytes())
