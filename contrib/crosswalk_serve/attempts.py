"""A line of the log for each attempt at a server that failed."""

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
    """An :class:`~crosswalk.service.Observer` that logs failed attempts."""

    def started(self, _: Call) -> Observation:
        """Do nothing when a call begins."""
        return self

    def attempted(self, attempt: ProviderAttempt, route: Route) -> None:
        """Log *attempt* if it failed: the server, the kind of error, the HTTP status and the message without secrets."""
        if attempt.outcome is not AttemptOutcome.ERROR:
            return
        status = attempt.extra.get("status")
        info = ErrorInfo(
            ErrorKind(attempt.extra.get("kind", "unknown")),
            attempt.error or "",
            status=status if isinstance(status, int) else None,
        )
        log_failure(attempt.provider_name, where(route.host), attempt.model, info)

    def ended(self, response: ChatResponse | None, error: BaseException | None) -> None:
        """Do nothing when the call has ended."""


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
