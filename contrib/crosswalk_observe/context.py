"""The context of a request: labels of the program, the current trace, and whether observation is suppressed."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

import attrs


@attrs.frozen
class Labels:
    """Labels that a program puts on its requests.

    Attributes:
        session: the id of a session or conversation, or ``None``.
        user: the id of a user, or ``None``.
        tags: any words, those of outer blocks first.
    """

    session: str | None = None
    user: str | None = None
    tags: tuple[str, ...] = ()


_labels: Final[ContextVar[Labels]] = ContextVar("crosswalk.observe.labels", default=Labels())  # noqa: B039


@contextmanager
def watching(
    *, session: str | None = None, user: str | None = None, tags: Iterable[str] = ()
) -> Iterator[None]:
    """Label the records and spans of the requests that this thread or task makes in the block.

    In a nested block, omitted labels keep their values, and *tags* are added.
    """
    outer = _labels.get()
    before = _labels.set(
        Labels(
            outer.session if session is None else session,
            outer.user if user is None else user,
            (*outer.tags, *(tag for tag in dict.fromkeys(tags) if tag not in outer.tags)),
        )
    )
    try:
        yield
    finally:
        _labels.reset(before)


def current_labels() -> Labels:
    """Return the labels of requests made now."""
    return _labels.get()


def current_trace() -> tuple[str, str] | None:
    """Return the ids of OpenTelemetry's current trace and span in hex, or ``None``."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:  # OpenTelemetry is not in use
        return None
    context = trace.get_current_span().get_span_context()
    return (f"{context.trace_id:032x}", f"{context.span_id:016x}") if context.is_valid else None


_suppressed: Final[ContextVar[bool]] = ContextVar("crosswalk.observe.passed", default=False)


@contextmanager
def suppress_observation() -> Iterator[None]:
    """Observe nothing in the block, because an outer layer observes the request already, or a sink makes it."""
    before = _suppressed.set(True)
    try:
        yield
    finally:
        _suppressed.reset(before)


def is_suppressed() -> bool:
    """Whether observation is suppressed in this context."""
    return _suppressed.get()
