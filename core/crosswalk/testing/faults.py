"""The faults of a server on the way: an answer as a list of steps, and the faults that change the list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import attrs

from crosswalk.errors import ConfigurationError


@attrs.frozen
class Head:
    """Send the status line and the headers.

    Attributes:
        status: the HTTP status.
        headers: the headers other than those for the framing of the body.
        length: the value of ``Content-Length``, in bytes; ``None`` for a body in HTTP chunks.
    """

    status: int
    headers: Mapping[str, str] = attrs.field(hash=False)
    length: int | None = None


@attrs.frozen
class Chunk:
    """Send bytes of the body: an event of a stream, or a whole body."""

    data: bytes = attrs.field(repr=False)


@attrs.frozen
class Raw:
    """Send bytes that are not HTTP."""

    data: bytes = attrs.field(repr=False)


@attrs.frozen
class Pause:
    """Do nothing for some seconds."""

    seconds: float


@attrs.frozen
class End:
    """End the body as HTTP requires. The connection can be used again."""


@attrs.frozen
class Hang:
    """Do nothing more, and keep the connection open until the client or the server is closed."""


@attrs.frozen
class Abort:
    """Reset the connection (TCP RST)."""


@attrs.frozen
class Close:
    """Close the connection, even if more was promised."""


Step: TypeAlias = Head | Chunk | Raw | Pause | End | Hang | Abort | Close
"""One action of a server while it answers: a closed set."""


def _is_number(seconds: object) -> bool:
    return isinstance(seconds, int | float) and 0 <= seconds < 86400


def _seconds(_: object, attribute: attrs.Attribute[float], value: object) -> None:
    if not _is_number(value):
        raise ConfigurationError(f"{attribute.name} must be a number from 0 to 86400", key=attribute.name)


def _count(_: object, attribute: attrs.Attribute[int | None], value: object) -> None:
    least = 1 if attribute.name == "chunk_bytes" else 0
    if value is not None and (type(value) is not int or value < least):
        raise ConfigurationError(f"{attribute.name} must be an integer from {least}", key=attribute.name)


@attrs.frozen
class Delay:
    """The server waits before it sends anything.

    Attributes:
        seconds: the length of the wait.
    """

    seconds: float = attrs.field(validator=_seconds)

    def apply(self, steps: Sequence[Step]) -> list[Step]:
        """Return *steps* with this fault in them."""
        return [Pause(self.seconds), *steps]


@attrs.frozen
class Slow:
    """The body arrives in small pieces.

    Attributes:
        seconds: the pause before each piece.
        chunk_bytes: the number of bytes in a piece; ``None`` for one event at a time.
    """

    seconds: float = attrs.field(default=0.0, validator=_seconds)
    chunk_bytes: int | None = attrs.field(default=None, validator=_count)

    def apply(self, steps: Sequence[Step]) -> list[Step]:
        """Return *steps* with this fault in them."""
        slow: list[Step] = []
        for step in steps:
            if isinstance(step, Chunk):
                size = self.chunk_bytes or max(len(step.data), 1)
                for start in range(0, len(step.data), size):
                    slow += [Pause(self.seconds), Chunk(step.data[start : start + size])]
            else:
                slow.append(step)
        return slow


@attrs.frozen
class _Placed:
    """A fault at some position of an answer.

    Attributes:
        after_events: the number of events of the body that are sent before it; 0 for the headers alone.
        after_bytes: the number of bytes of the body that are sent before it. If both are missing, nothing at all is
            sent before it, not even the status line.
    """

    after_events: int | None = attrs.field(default=None, kw_only=True, validator=_count)
    after_bytes: int | None = attrs.field(default=None, kw_only=True, validator=_count)

    def __attrs_post_init__(self) -> None:
        if self.after_events is not None and self.after_bytes is not None:
            raise ConfigurationError("a fault lies after so many events or after so many bytes, not both")

    def _split(self, steps: Sequence[Step]) -> tuple[list[Step], list[Step]]:
        """Return the steps before this fault, and the steps that would have followed it.

        A body that is shorter is sent whole, but not ended.
        """
        events, remaining = self.after_events, self.after_bytes
        if events is None and remaining is None:
            return [], list(steps)
        before: list[Step] = []
        for number, step in enumerate(steps):
            if isinstance(step, End):
                return before, list(steps[number:])
            if isinstance(step, Chunk):
                if events == 0 or remaining == 0:
                    return before, list(steps[number:])
                if remaining is not None and remaining < len(step.data):
                    remainder = Chunk(step.data[remaining:])
                    return [*before, Chunk(step.data[:remaining])], [remainder, *steps[number + 1 :]]
                events = None if events is None else events - 1
                remaining = None if remaining is None else remaining - len(step.data)
            before.append(step)
        return before, []


@attrs.frozen
class Stall(_Placed):
    """The server stops sending and keeps the connection open."""

    def apply(self, steps: Sequence[Step]) -> list[Step]:
        """Return *steps* with this fault in them."""
        return [*self._split(steps)[0], Hang()]


@attrs.frozen
class Reset(_Placed):
    """The connection is reset, as when the server's process dies, after all earlier bytes reached the client's system."""

    def apply(self, steps: Sequence[Step]) -> list[Step]:
        """Return *steps* with this fault in them."""
        return [*self._split(steps)[0], Abort()]


@attrs.frozen
class Cut(_Placed):
    """The answer ends too early.

    Attributes:
        clean: whether HTTP is ended properly, so that only the content shows that something is missing.
            Otherwise the connection is closed in the middle of the body. It needs a position inside the body.
    """

    clean: bool = attrs.field(default=False, kw_only=True)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if self.clean and self.after_events is None and self.after_bytes is None:
            raise ConfigurationError("a clean cut needs after_events or after_bytes", key="clean")

    def apply(self, steps: Sequence[Step]) -> list[Step]:
        """Return *steps* with this fault in them."""
        before = self._split(steps)[0]
        if not self.clean:
            return [*before, Close()]
        sent = sum(len(step.data) for step in before if isinstance(step, Chunk))
        return [*(_with_length(step, sent) for step in before), End()]


@attrs.frozen
class Garbage(_Placed):
    """Bytes that do not belong to the answer, between those that do. Without a position they are sent instead of HTTP.

    Attributes:
        data: the bytes; by default an event that is neither JSON nor UTF-8, in either framing.
    """

    data: bytes = attrs.field(default=b'data: {"gar\xff\xfebage\n\n', repr=False)

    def apply(self, steps: Sequence[Step]) -> list[Step]:
        """Return *steps* with this fault in them."""
        before, after = self._split(steps)
        if not before:
            return [Raw(self.data), Close()]
        more = len(self.data)
        longer = (
            _with_length(step, (step.length or 0) + more) if isinstance(step, Head) else step
            for step in before
        )
        return [*longer, Chunk(self.data), *after]


def _with_length(step: Step, length: int) -> Step:
    """Return *step*. If it is a head that promises a length, it promises *length* instead."""
    if isinstance(step, Head) and step.length is not None:
        return attrs.evolve(step, length=length)
    return step


Fault: TypeAlias = Delay | Slow | Stall | Reset | Cut | Garbage
"""The possible faults of an answer: a closed set. A wrong status is not a fault but a separate answer."""
