"""How to read a payload: the options that bodies and streams share."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, TypeAlias

import attrs

from crosswalk.mapping.event import Unknown
from crosswalk.text import Redact
from crosswalk.types.response import new_id, now
from crosswalk.wire.limits import DEFAULT, Limits

__all__ = ["ReaderOptions"]

Timer: TypeAlias = Callable[[], float]


def _is_status(_: Any, __: Any, value: object) -> None:
    if type(value) is not int or not 100 <= value <= 599:
        raise ValueError(f"status is an HTTP status from 100 to 599, not {str(value)[:40]!r}")


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ReaderOptions:
    """How to read a payload; the same for bodies and streams.

    Attributes:
        status: the HTTP status of the answer; from 400 on the body is read as an error.
        unknown: ``"raise"`` for an event type or finish word that no mapping knows, or ``"keep"`` it: the event
            as extensions alone, the word as ``stop`` with provenance ``unmapped``.
        id_factory: makes the id where the provider sends none.
        clock: tells the time of creation where the provider sends none.
        keep_raw: whether to keep the provider's bytes on the response.
        limits: how much input is accepted.
        timer: a monotonic clock in seconds, to measure duration and time to first token from now on;
            ``None`` not to measure: recorded bytes have no timing, and the same bytes give the same response.
        redact: takes out of errors, of ids and models, and of finish words what a server may have repeated and nobody may
            see, such as the key that it was sent; ``None`` where nothing was sent.
        content_type: the media type of the HTTP answer, in lower case without parameters, or ``""`` if unknown.
    """

    status: int = attrs.field(default=200, validator=_is_status)
    unknown: Unknown = attrs.field(default="raise", validator=attrs.validators.in_(("raise", "keep")))
    id_factory: Callable[[], str] = new_id
    clock: Callable[[], datetime] = now
    keep_raw: bool = True
    limits: Limits = DEFAULT
    timer: Timer | None = None
    redact: Redact | None = None
    content_type: str = ""


USUAL: Final = ReaderOptions()
"""The options of most bodies."""


def checked_call(make: Callable[[], Any], kind: type, failed: list[Exception]) -> Any:
    """What the caller's *make* makes, of this *kind*; an error is added to *failed* and raised."""
    name = "id_factory" if kind is str else "clock"
    try:
        made = make()
        if not isinstance(made, kind):
            raise TypeError(f"{name} gave {type(made).__name__}, not {kind.__name__}")
        if isinstance(made, str) and not made.encode():  # or it holds what no UTF-8 can say
            raise ValueError(f"{name} gave an empty id")
        if isinstance(made, datetime) and made.tzinfo is None:
            raise ValueError(f"{name} gave a time without a time zone")
    except Exception as error:
        failed.append(error)
        raise
    return made
