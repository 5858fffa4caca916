"""A line of the log for each attempt at a server that failed, and for the beginning and end of a server's cool-down."""

from __future__ import annotations

import logging
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from crosswalk.errors import ErrorInfo, ErrorKind
from crosswalk.service import Call, Observation
from crosswalk.service.endpoint import Route, where
from crosswalk.text import clean_message
from crosswalk.types import AttemptOutcome

if TYPE_CHECKING:
    from crosswalk.types import ChatResponse, ProviderAttempt

__all__ = ["AttemptLog", "log_failure", "request_id"]

_log = logging.getLogger("crosswalk.serve")
_LONGEST: Final = 300

request_id: ContextVar[str] = ContextVar("request_id", default="-")
"""The id of the request that the current task answers."""


class AttemptLog:
    """An :class:`~crosswalk.service.Observer` that logs failed attempts and cool-downs."""

    def started(self, _: Call) -> Observation:
        """Do nothing when a call begins."""
        return self

    def attempted(self, attempt: ProviderAttempt, route: Route) -> None:
        """Log *attempt* if it failed: the server, the kind of error, the HTTP status and the message without secrets.

        If it began or ended a cool-down, another line reports that.
        """
        address = where(route.host)
        if attempt.outcome is AttemptOutcome.ERROR:
            status = attempt.extra.get("status")
            info = ErrorInfo(
                ErrorKind(attempt.extra.get("kind", "unknown")),
                attempt.error or "",
                status=status if isinstance(status, int) else None,
            )
            log_failure(attempt.provider_name, address, attempt.model, info)
        seconds = attempt.extra.get("cool_down")
        if isinstance(seconds, int | float):
            _log_cool_down(attempt.provider_name, address, seconds)

    def ended(self, response: ChatResponse | None, error: BaseException | None) -> None:
        """Do nothing when the call has ended."""


def _log_cool_down(provider: str, address: str, seconds: float) -> None:
    text = (
        f"is tried last for {seconds:g}s: it cools down" if seconds else "has answered: its cool-down is over"
    )
    extra = {
        "crosswalk.request.id": request_id.get(),
        "crosswalk.cool_down": seconds,
        "gen_ai.provider.name": provider,
        "server.address": address,
    }
    _log.warning("%s %s %s %s", request_id.get(), provider, address, text, extra=extra)


def log_failure(provider: str, address: str, model: str, error: ErrorInfo) -> None:
    """Log that an attempt at the server of *provider* at *address* failed with *error*, a message without secrets."""
    kind, status = error.kind.value, error.status
    extra = {
        "crosswalk.request.id": request_id.get(),
        "crosswalk.outcome": AttemptOutcome.ERROR.value,
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": model,
        "server.address": address,
        "error.type": kind,
        "http.response.status_code": status,
    }
    text = f"{provider} {address} {clean_message(model, 60) or '-'}: {kind} {status or '-'}"
    message = clean_message(error.message, _LONGEST)
    _log.warning("%s attempt failed: %s: %s", request_id.get(), text, message, extra=extra)
