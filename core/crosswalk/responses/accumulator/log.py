"""A list that remembers what it held when."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any, Final

__all__ = ["Log"]

_NEVER: Final = -1


class Log:
    """Entries in order, each with its version; what it held at an earlier version can still be asked."""

    __slots__ = ("_entries", "_joined", "_starts", "_versions")

    def __init__(self) -> None:
        self._joined = (0, 0, "")
        self._versions: list[int] = []
        self._entries: list[Any] = []
        self._starts: list[int] = [0]

    def add(self, version: int, entry: Any) -> None:
        """Add *entry* to those before it."""
        self._versions.append(version)
        self._entries.append(entry)

    def put(self, version: int, entry: Any) -> None:
        """Let *entry* take the place of those before it."""
        self._starts.append(len(self._entries))
        self.add(version, entry)

    def at(self, version: int, since: int = _NEVER) -> list[Any]:
        """What it held at *version*, without what came at *since* or before."""
        start, end = self._range(version, since)
        return self._entries[start:end]

    def text(self, version: int, since: int = _NEVER) -> str | None:
        """The text that its entries are pieces of; ``None`` when there are none.

        Who looks again finds the former pieces joined, so that looking after each piece stays cheap.
        """
        start, end = self._range(version, since)
        if start == end:
            return None
        first, last, text = self._joined
        if first == start and last <= end:
            text += "".join(self._entries[last:end])
            self._joined = (start, end, text)
            return text
        text = "".join(self._entries[start:end])
        if start > first:
            self._joined = (start, end, text)
        return text

    def _range(self, version: int, since: int) -> tuple[int, int]:
        end = bisect_right(self._versions, version)
        start = self._starts[max(bisect_left(self._starts, end) - 1, 0)]
        return max(start, bisect_right(self._versions, since)), end

    def last(self, version: int, since: int = _NEVER) -> tuple[Any, int]:
        """The last entry at *version*, and when it came; ``(None, since)`` when none came after *since*."""
        end = bisect_right(self._versions, version)
        if end == 0 or self._versions[end - 1] <= since:
            return None, since
        return self._entries[end - 1], self._versions[end - 1]
