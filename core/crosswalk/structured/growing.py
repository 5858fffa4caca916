"""An answer that is still being written, read as it grows."""

from __future__ import annotations

from typing import Any, Final, Generic, TypeVar

from crosswalk.structured.chain import Read, candidate_of
from crosswalk.structured.decode import NO_JSON, loads
from crosswalk.structured.reason import ReasonCode, Stage
from crosswalk.structured.result import Candidate, ParseResult
from crosswalk.structured.scan import closed, find_regions

__all__ = ["GrowingAnswer"]

T = TypeVar("T")

_EVERY_PIECE_UP_TO: Final = 256
_SHARE: Final = 16


class GrowingAnswer(Generic[T]):
    """Takes the pieces of a text and gives partial values.

    Up to 256 characters every piece is tried, after that whenever the text has grown by a 16th. So the work adds up
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
        if candidate is None or _is_same(candidate[0], self._last):
            return None
        self._last, _, version = candidate
        return ParseResult(self._last, Stage.REPAIR, ReasonCode.TRUNCATED, (), True, version)

    def _candidate(self) -> Candidate[T] | None:
        for region in find_regions(self._pieces[0]):
            for keep_cut_string in (True, False):
                json = closed(region.text, keep_cut_string=keep_cut_string)
                data = NO_JSON if json is None else loads(json)
                candidate = None if data is NO_JSON or json is None else candidate_of(self._read, json, data)
                if candidate is not None and candidate[0] is not None:
                    return candidate
            if not region.is_closed:
                return None
        return None


def _is_same(value: Any, last: Any) -> bool:
    try:
        return bool(value == last)
    except Exception:  # a class of the user's may compare as it likes
        return False
