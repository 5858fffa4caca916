"""Providers with several dialects, such as a server that also answers in OpenAI's form."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from crosswalk.errors import UnknownEventError
from crosswalk.plugin.hooks import Recognition, hookimpl
from crosswalk.plugin.state import MappingState
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.usage import UsageInfo
from crosswalk.types.values import FinishReason


class Dialect(Protocol):
    """A family of wire formats: the mapping hooks as methods, which need no ``@hookimpl``.

    A dialect may also have a method ``extensions`` for the residue of an event, like the hook. If all its streams end
    with ``[DONE]``, its attribute ``sentinel`` is true (see ``ProviderInfo``).
    """

    def recognizes(self, event: Any) -> Recognition:
        """Return how well *event* fits, see the hook ``recognizes``."""

    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """Return the deltas of *event*, see the hook ``map_delta``."""

    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        """Return the meaning of a finish word, see the hook ``map_finish_reason``."""

    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """Take the token counts of *event*, ``None`` without any, see the hook ``map_usage``."""


class DialectFamily:
    """A provider that speaks several dialects: the first event decides which one reads the stream.

    Args:
        dialects: in order of preference, where two recognize an event equally.
    """

    def __init__(self, *dialects: Dialect) -> None:
        self.dialects = dialects

    def dialect(self, event: Any, state: MappingState) -> Dialect:
        """Return the dialect of this stream. A subclass may override it.

        Raises:
            UnknownEventError: none of them recognizes its first event.
        """
        chosen: Dialect | None = state.dialect
        if chosen is None:
            results = [dialect.recognizes(event) for dialect in self.dialects]
            best = max(results)
            if best is Recognition.NO:
                raise unknown_event(event, "an event of an unknown dialect")
            state.dialect = chosen = self.dialects[results.index(best)]
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
        """See the hook ``map_usage``. ``null``, with which llama.cpp announces one more answer, has no counts."""
        chosen: Dialect | None = state.dialect
        return None if chosen is None or event is None else chosen.map_usage(event, state)

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """See the hook ``extensions``."""
        remaining = getattr(state.dialect, "extensions", None)
        results: dict[str, Any] = event if remaining is None or event is None else remaining(event, state)
        return results

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        """See the hook ``recognizes``."""
        return max(dialect.recognizes(event) for dialect in self.dialects)


def event_type(event: Any) -> str | None:
    """Return the type of *event*, shortened, or ``None`` if it has none."""
    if isinstance(event, dict):
        for key in ("type", "object", "event_type"):
            word = event.get(key)
            if isinstance(word, str):
                return word[:60]
    return None


def unknown_event(event: Any, cause: str = "an event of an unknown type") -> UnknownEventError:
    """Return the error to raise for the unknown *event*, with its type."""
    word = event_type(event)
    return UnknownEventError(f"{cause} ({word or 'no type'})", event_type=word)
