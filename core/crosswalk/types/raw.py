"""The provider's own bytes, stored alongside the values that were read from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, overload

import orjson

from crosswalk.plain_errors import ResponseValidationError
from crosswalk.text import counted
from crosswalk.types._value import as_tuple
from crosswalk.types.json import load_json

_BYTES = {bytes}


class RawEvents(Sequence[Any]):
    """The provider's bytes, event by event. They are decoded only when you look at them.

    ``raw_events[i]`` is the decoded JSON of event *i*, or its text if it is not JSON.

    Raises:
        ResponseValidationError: an event is not ``bytes``.
    """

    __slots__ = ("_frames",)
    _frames: tuple[bytes, ...]

    def __init__(self, frames: Iterable[bytes] = ()) -> None:
        self._frames = tuple(frames) if type(frames) is list else as_tuple(frames)
        if not set(map(type, self._frames)) <= _BYTES:
            raise ResponseValidationError("raw events must be bytes")

    @property
    def frames(self) -> tuple[bytes, ...]:
        """The bytes of each event, not decoded."""
        return self._frames

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> RawEvents: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return RawEvents(self._frames[index])
        data = self._frames[index]
        try:
            return load_json(data)
        except orjson.JSONDecodeError:
            return data.decode(errors="replace")

    def __len__(self) -> int:
        return len(self._frames)

    def __eq__(self, other: object) -> bool:
        return self._frames == other._frames if isinstance(other, RawEvents) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._frames)

    def __repr__(self) -> str:
        return f"RawEvents({counted(len(self._frames), 'event')})"


NO_RAW_EVENTS = RawEvents()


def as_raw_events(value: Iterable[bytes] | RawEvents) -> RawEvents:
    """An attrs converter: bytes of events as :class:`RawEvents`."""
    return value if type(value) is RawEvents else RawEvents(value)
