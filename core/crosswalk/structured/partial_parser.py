"""An answer that is still being written, read as it grows."""

from __future__ import annotations

from typing import Any, Final, Generic, TypeVar

from crosswalk.structured.chain import Read, run_chain
from crosswalk.structured.reason import Partial, ReasonCode
from crosswalk.structured.result import ParseResult
from crosswalk.structured.schema import Schema
from crosswalk.structured.versions import SchemaVersions
from crosswalk.types.delta import Correction
from crosswalk.types.values import SegmentType

T = TypeVar("T")

_EVERY_PIECE_UP_TO: Final = 256
_SHARE: Final = 16


class PartialParser(Generic[T]):
    """Takes the pieces of a text and gives partial values.

    Up to 256 characters every piece is tried, after that whenever the text has grown by a 16th. So the work adds up
    to a fixed number of looks at each character, however small the pieces are.
    """

    def __init__(
        self, read: Read[T], prefill: str = "", schema: Schema[Any] | SchemaVersions[Any] | None = None
    ) -> None:
        self._read = read
        self._schema = schema
        self._pieces = [prefill]
        self._size = self._prefilled = len(prefill)
        self._next = 1
        self._last: T | None = None
        self._state: tuple[dict[str, Any] | None, frozenset[str]] = (None, frozenset())

    @property
    def text(self) -> str:
        """Everything so far."""
        return "".join(self._pieces)

    def feed(self, piece: str | Correction) -> ParseResult[T] | None:
        """Take a piece, or a correction of the pieces so far.

        Returns:
            A step with other fields, or another partial value, than the last one, or ``None`` if there is none.
        """
        if isinstance(piece, str):
            self._pieces.append(piece)
            self._size += len(piece)
        elif piece.type is SegmentType.TEXT:
            text, start, end = self.text, self._prefilled + piece.start, self._prefilled + piece.end
            self._pieces = [text[:start] + piece.text + text[end:]]
            self._size, self._next = len(self._pieces[0]), 0
        if self._size < self._next:
            return None
        self._next = self._size + 1 + (self._size // _SHARE if self._size > _EVERY_PIECE_UP_TO else 0)
        self._pieces = [self.text]
        text, ended = self._pieces[0], ReasonCode.TRUNCATED
        result = run_chain(self._read, text, ended, Partial.ACCEPT, None, self._schema, is_stream=True)
        state = result.fields, result.final
        is_known = state == self._state and is_same(result.value, self._last)
        if is_known or (result.value is None and not result.fields):
            return None
        self._last, self._state = result.value, state
        return result


def is_same(value: Any, last: Any) -> bool:
    """Return whether *value* equals the *last* one. A class may define equality in any way."""
    try:
        return bool(value == last)
    except Exception:
        return False
