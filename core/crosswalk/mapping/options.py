"""How to read a payload: the options that bodies and streams share."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, TypeAlias

import attrs

from crosswalk.mapping.event import Unknown
from crosswalk.text import Redact
from crosswalk.types.response import new_id, now
from crosswalk.wire.framing import DEFAULT, Limits

Timer: TypeAlias = Callable[[], float]


def _is_status(_: Any, __: Any, value: object) -> None:
    if type(value) is not int or not 100 <= value <= 599:
        raise ValueError(f"status is an HTTP status from 100 to 599, not {str(value)[:40]!r}")


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ReaderOptions:
    """How to read a payload, the same for bodies and streams.

    Attributes:
        status: the HTTP status of the answer. From 400 on the body is read as an error.
        unknown: ``"raise"`` refuses an unknown event type or finish word. ``"keep"`` keeps the event
            in the extensions, and the word as ``stop`` with provenance ``unmapped``.
        id_factory: makes the id if the provider sends none.
        clock: returns the time of creation if the provider sends none.
        keep_raw: whether to keep the provider's bytes on the response.
        limits: the limits of the input.
        timer: a monotonic clock in seconds, to measure duration and time to first token from now on;
            ``None`` for no measurement. Recorded bytes have no timing, so the same bytes give the same response.
        redact: removes secrets that a server may have repeated, such as the key of the request, from errors, ids,
            models and finish words. ``None`` if no request was sent.
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
    """Return the value of the caller's *make*, of this *kind*. An error is added to *failed* and raised."""
    name = "id_factory" if kind is str else "clock"
    try:
        made = make()
        if not isinstance(made, kind):
            raise TypeError(f"{name} gave {type(made).__name__}, not {kind.__name__}")
        if isinstance(made, str) and not made.encode():  # or it cannot be encoded in UTF-8
            raise ValueError(f"{name} gave an empty id")
        if isinstance(made, datetime) and made.tzinfo is None:
            raise ValueError(f"{name} gave a time without a time zone")
    except Exception as error:
        failed.append(error)
        raise
    return made
