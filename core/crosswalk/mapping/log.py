"""The log of the mapping core: one structured record for each response."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from crosswalk.errors import MappingError
from crosswalk.text import may_log_content, shortened
from crosswalk.types.response import ChatResponse
from crosswalk.types.values import FinishReason

if TYPE_CHECKING:
    import logging


_is_quiet: ContextVar[bool] = ContextVar("crosswalk.mapping.quiet", default=False)


_DEBUG: Final = 10
_INFO: Final = 20
"""The levels of :mod:`logging`, which this module does not import."""
_ERROR: Final = FinishReason.ERROR


@cache
def _log() -> logging.Logger:
    import logging

    return logging.getLogger("crosswalk.mapping")


def _is_heard() -> bool:
    """Whether anybody may listen below the level of a warning: not where this program has not even loaded logging."""
    return "logging" in sys.modules and not _is_quiet.get()


@contextmanager
def quietly() -> Iterator[None]:
    """Log nothing meanwhile, because the program has not received this answer."""
    before = _is_quiet.set(True)
    try:
        yield
    finally:
        _is_quiet.reset(before)


def log_response(response: ChatResponse) -> None:
    """Log that *response* was mapped: an error response at INFO, any other at DEBUG.

    The record's extra fields are OpenTelemetry's, with ``gen_ai.response.id`` as the correlation id. The content is
    added as ``crosswalk.content`` only if the settings allow it.
    """
    if not _is_heard():
        return
    level = _INFO if response.finish_reason is _ERROR else _DEBUG
    if not _log().isEnabledFor(level):
        return
    from crosswalk.otel import otel_attributes  # only where somebody listens

    extra: dict[str, Any] = {
        "event.name": "crosswalk.response",
        **otel_attributes(response),
        "gen_ai.response.id": response.id,
    }
    if may_log_content():
        extra["crosswalk.content"] = shortened(response.text)
    provider, reason = response.metadata.provider_id, response.finish_reason.value
    _log().log(level, "%s answered: %s", provider, reason, extra=extra)


def log_failure(error: MappingError) -> None:
    """Log at INFO that a payload could not be mapped: provider, place, kind of error. The error is raised as well."""
    if not _is_heard():
        return
    from crosswalk.otel import otel_provider_name  # only where somebody listens

    extra = {
        "event.name": "crosswalk.failure",
        "gen_ai.provider.name": otel_provider_name(error.provider or "unknown"),
        "error.type": type(error).__name__,
        "crosswalk.place": error.place or "",
    }
    if error.partial is not None:
        extra["gen_ai.response.id"] = error.partial.id
    _log().info("%s", error, extra=extra)


_SEEN = 1000
_seen: set[tuple[str, str, str]] = set()


def log_unknown(provider: str, kind: str, word: str) -> None:
    """Warn of an unknown *word* of *provider* for an event or a finish reason, once for each word."""
    raw = (provider, kind, word[:60])
    if (
        raw in _seen or _is_quiet.get() or len(_seen) >= _SEEN
    ):  # a hostile server must fill neither the log nor the memory
        return
    _seen.add(raw)
    from crosswalk.otel import otel_provider_name  # seldom needed

    extra = {"event.name": "crosswalk.unknown", "gen_ai.provider.name": otel_provider_name(provider)}
    _log().warning("%s: unknown %s %r is kept as it is", *raw, extra=extra)
