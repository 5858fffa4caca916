"""What a program says of its requests for the records: session, user and tags; and the trace that is current."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

import attrs

__all__ = ["Labels", "watching"]


@attrs.frozen
class Labels:
    """What a program says of its requests.

    Attributes:
        session: the id of a session or conversation; ``None`` where nothing is said.
        user: the id of a user; ``None`` where nothing is said.
        tags: any words, the outer ones first.
    """

    session: str | None = None
    user: str | None = None
    tags: tuple[str, ...] = ()


_labels: Final[ContextVar[Labels]] = ContextVar("crosswalk.observe.labels", default=Labels())  # noqa: B039


@contextmanager
def watching(
    *, session: str | None = None, user: str | None = None, tags: Iterable[str] = ()
) -> Iterator[None]:
    """Label the records and spans of the requests that are made meanwhile, in this thread or task.

    Inside of another one, what is not said stays as it was, and *tags* are added.
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
    """What is said of the requests that are made now."""
    return _labels.get()


def current_trace() -> tuple[str, str] | None:
    """The ids of the current trace and span of OpenTelemetry, in hex; ``None`` where there is none."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:  # nobody uses it
        return None
    context = trace.get_current_span().get_span_context()
    return (f"{context.trace_id:032x}", f"{context.span_id:016x}") if context.is_valid else None


_suppressed: Final[ContextVar[bool]] = ContextVar("crosswalk.observe.passed", default=False)


@contextmanager
def suppress_observation() -> Iterator[None]:
    """Let nothing be watched meanwhile: somebody watches already what passes here, or it is a sink's own."""
    before = _suppressed.set(True)
    try:
        yield
    finally:
        _suppressed.reset(before)


def is_suppressed() -> bool:
    """Whether nothing is to be watched now, in this context."""
    return _suppressed.get()
