"""The lines of a manifest about compactions: the files that they wrote, and the rows of each part in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import attrs

from crosswalk_batch.storage import Rows, StoredFile

if TYPE_CHECKING:
    from crosswalk_batch.manifest import Part


COMPACTED: Final = "compacted"
SETTLED: Final = "settled"
RESTORED: Final = "restored"
"""The keys of lines for a file that is written, that is in its place, and that is lost and whose parts are there again."""


@attrs.frozen
class Compacted:
    """A file that a compaction wrote.

    Attributes:
        file: the file.
        rows: the files of parts in it, in order, and their numbers of rows.
        replaces: the files that it replaces on disk.
    """

    file: StoredFile
    rows: tuple[tuple[str, int], ...]
    replaces: tuple[str, ...]

    @classmethod
    def of_line(cls, line: dict[str, Any]) -> Compacted:
        """Return the file that a line of the manifest names."""
        made = line[COMPACTED]
        rows = tuple((name, count) for name, count in made["rows"])
        return cls(StoredFile(**made["file"]), rows, tuple(made["replaces"]))

    def places(self) -> Iterator[tuple[str, Rows]]:
        """Yield the rows of each file of a part."""
        first = 0
        for name, rows in self.rows:
            yield name, Rows(self.file, first, rows)
            first += rows


class Places:
    """The rows that replaced files of parts, by the file's name."""

    def __init__(self) -> None:
        self._rows: dict[str, Rows] = {}

    def take(self, line: dict[str, Any]) -> bool:
        """Whether *line* is about a compaction. Notes what it says."""
        if COMPACTED in line:
            self._rows.update(Compacted.of_line(line).places())
        elif RESTORED in line:
            lost = line[RESTORED]
            self._rows = {name: rows for name, rows in self._rows.items() if rows.file.name != lost}
        else:
            return SETTLED in line
        return True

    def on(self, parts: list[Part]) -> list[Part]:
        """Return *parts* with the places of their files."""
        if not self._rows:
            return parts
        return [
            attrs.evolve(
                part, files=[attrs.evolve(file, within=self._rows.get(file.name)) for file in part.files]
            )
            for part in parts
        ]
