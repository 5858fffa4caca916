"""An answer that is still being written, read as it grows."""

from __future__ import annotations

from typing import Any, Final, Generic, TypeVar

from crosswalk.structured.chain import NO_JSON, Read, loads
from crosswalk.structured.reason import ReasonCode, Stage
from crosswalk.structured.result import Candidate, ParseResult
from crosswalk.structured.scan import closed, find_regions

__all__ = ["GrowingAnswer"]

T = TypeVar("T")

_EVERY_PIECE_UP_TO: Final = 2048
_SHARE: Final = 32


class GrowingAnswer(Generic[T]):
    """Takes the pieces of a text and gives partial values.

    Up to 2,048 characters every piece is tried, after that whenever the text has grown by a 32nd. So the work adds up
    to a fixed number of looks at each character, however small the pieces are.
    """

    def __init__(self, read: Read[T]) -> None:
        self._read = read
        self._pieces: list[str] = []
        self._size = 0
        self._next = 1
        self._last: T | None = None

    @property
    def text(self) -> str:
        """Everything so far."""
        return "".join(self._pieces)

    def feed(self, piece: str) -> ParseResult[T] | None:
        """Take a piece.

        Returns:
            A valid partial value that differs from the last one; ``None`` where there is none.
        """
        self._pieces.append(piece)
        self._size += len(piece)
        if self._size < self._next:
            return None
        self._next = self._size + 1 + (self._size // _SHARE if self._size > _EVERY_PIECE_UP_TO else 0)
        self._pieces = [self.text]
        candidate = self._candidate()
        if candidate is None or candidate[0] == self._last:
            return None
        self._last, _, version = candidate
        return ParseResult(self._last, Stage.REPAIR, ReasonCode.TRUNCATED, (), True, version)

    def _candidate(self) -> Candidate[T] | None:
        for region in find_regions(self._pieces[0]):
            for keep_cut_string in (True, False):
                data = _decoded(region.text, keep_cut_string)
                candidate = None if data is NO_JSON else self._read(data)
                if candidate is not None and candidate[0] is not None:
                    return candidate
        return None


def _decoded(text: str, keep_cut_string: bool) -> Any:
    json = closed(text, keep_cut_string=keep_cut_string)
    return NO_JSON if json is None else loads(json)
