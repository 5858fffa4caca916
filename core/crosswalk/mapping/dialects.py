"""One provider, several dialects: a server that also answers in OpenAI's form, and the like."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from crosswalk.errors import UnknownEventError
from crosswalk.plugin.hookspecs import hookimpl
from crosswalk.plugin.info import Recognition
from crosswalk.plugin.state import MappingState
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.finish import FinishReason
from crosswalk.types.usage import UsageInfo

__all__ = ["Dialect", "DialectFamily", "event_type", "unknown_event"]


class Dialect(Protocol):
    """A family of wire formats: the mapping hooks as methods, which need no ``@hookimpl``.

    One that has something to say of what is left of an event has a method ``extensions`` as well, as the hook; one
    whose every stream ends with ``[DONE]`` has an attribute ``sentinel`` that is true (see ``ProviderInfo``).
    """

    def recognizes(self, event: Any) -> Recognition:
        """Say how well *event* fits; see the hook ``recognizes``."""

    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """Say which deltas *event* stands for; see the hook ``map_delta``."""

    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        """Say what a finish word means; see the hook ``map_finish_reason``."""

    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """Take the token counts of *event*, ``None`` without any; see the hook ``map_usage``."""


class DialectFamily:
    """A provider that speaks several dialects: the first event decides which one reads the stream.

    Args:
        dialects: in order of preference, where two recognize an event equally.
    """

    def __init__(self, *dialects: Dialect) -> None:
        self.dialects = dialects

    def dialect(self, event: Any, state: MappingState) -> Dialect:
        """The dialect of this stream; a subclass may know better.

        Raises:
            UnknownEventError: none of them recognizes its first event.
        """
        chosen: Dialect | None = state.dialect
        if chosen is None:
            found = [dialect.recognizes(event) for dialect in self.dialects]
            best = max(found)
            if best is Recognition.NO:
                raise unknown_event(event, "an event of an unknown dialect")
            state.dialect = chosen = self.dialects[found.index(best)]
        return chosen

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """See the hook ``map_delta``."""
        chosen: Dialect = state.dialect or self.dialect(event, state)
        return chosen.map_delta(event, state)

    @hookimpl
    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        """See the hook ``map_finish_reason``."""
        chosen: Dialect = state.dialect or self.dialects[0]
        return chosen.map_finish_reason(reason, state)

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """See the hook ``map_usage``; ``null``, as which llama.cpp announces one more answer, has none."""
        chosen: Dialect | None = state.dialect
        return None if chosen is None or event is None else chosen.map_usage(event, state)

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """See the hook ``extensions``."""
        left = getattr(state.dialect, "extensions", None)
        found: dict[str, Any] = event if left is None or event is None else left(event, state)
        return found

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        """See the hook ``recognizes``."""
        return max(dialect.recognizes(event) for dialect in self.dialects)


def event_type(event: Any) -> str | None:
    """What *event* calls itself, shortened; ``None`` when it does not say."""
    if isinstance(event, dict):
        for key in ("type", "object", "event_type"):
            word = event.get(key)
            if isinstance(word, str):
                return word[:60]
    return None


def unknown_event(event: Any, cause: str = "an event of an unknown type") -> UnknownEventError:
    """The error to raise for *event*, which nobody knows; it says what the event calls itself."""
    word = event_type(event)
    return UnknownEventError(f"{cause} ({word or 'no type'})", event_type=word)
