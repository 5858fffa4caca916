"""Observers of calls, and the one that writes the log."""

from __future__ import annotations

import logging
from typing import Any, Protocol

import attrs

from crosswalk.otel import otel_attributes, otel_provider_name
from crosswalk.request import ChatRequest
from crosswalk.service.endpoint import Route, attributes
from crosswalk.text import may_log_content, shortened
from crosswalk.types.response import ChatResponse
from crosswalk.types.usage import AttemptOutcome, ProviderAttempt
from crosswalk.types.values import FinishReason, IncompleteReason

_log = logging.getLogger("crosswalk.service")


@attrs.frozen
class Call:
    """One call of a service, with any number of attempts.

    Attributes:
        id: the correlation id, on every log record and span of the call.
        request: the request.
        route: the first endpoint.
        model: the model that is requested there.
        is_stream: whether the answer is delivered while it arrives.
    """

    id: str
    request: ChatRequest
    route: Route
    model: str
    is_stream: bool


class Observation(Protocol):
    """The notifications about one call."""

    def attempted(self, attempt: ProviderAttempt, route: Route) -> None:
        """An attempt has ended."""

    def ended(self, response: ChatResponse | None, error: BaseException | None) -> None:
        """The call has ended: with *response*, whatever its result, or with *error*, which is raised, or with both."""


class Observer(Protocol):
    """Is notified of every call, in the task that makes it. It must neither wait nor raise."""

    def started(self, call: Call) -> Observation:
        """A call begins."""


class LogObserver:
    """Writes the log: a record for each attempt and one for the call, each with structured extra fields.

    Content is logged only if the settings allow it, as ``crosswalk.content``. Credentials are never logged.
    """

    def started(self, call: Call) -> Observation:
        """A call begins."""
        return _LogObservation(call)


class _LogObservation:
    def __init__(self, call: Call) -> None:
        self._call = call
        self._common = {"crosswalk.call.id": call.id, "gen_ai.operation.name": "chat"}

    def attempted(self, attempt: ProviderAttempt, route: Route) -> None:
        """Log a failure at INFO, a success at DEBUG."""
        level = logging.DEBUG if attempt.outcome is AttemptOutcome.SUCCESS else logging.INFO
        if not _log.isEnabledFor(level):
            return
        extra: dict[str, Any] = {
            **self._common,
            **attributes(route),
            "event.name": "crosswalk.attempt",
            "gen_ai.provider.name": otel_provider_name(attempt.provider_name),
            "gen_ai.request.model": attempt.model,
            "crosswalk.outcome": attempt.outcome.value,
            "crosswalk.latency_ms": attempt.latency_ms,
        }
        if attempt.error is not None:
            extra["error.type"] = attempt.extra.get("kind", "unknown")
            extra["error.message"] = attempt.error
        _log.log(level, "attempt at %s: %s", attempt.provider_name, attempt.outcome.value, extra=extra)

    def ended(self, response: ChatResponse | None, error: BaseException | None) -> None:
        """Log an error, or a finish word that no mapping knows, at INFO, anything else at DEBUG."""
        failed = error is not None or (response is not None and response.finish_reason is FinishReason.ERROR)
        is_unknown = (
            response is not None and response.incomplete_reason is IncompleteReason.UNKNOWN_FINISH_REASON
        )
        level = logging.INFO if failed or is_unknown else logging.DEBUG
        if not _log.isEnabledFor(level):
            return
        extra: dict[str, Any] = {
            **self._common,
            "event.name": "crosswalk.call",
            "gen_ai.request.model": self._call.model,
            "gen_ai.request.stream": self._call.is_stream,
        }
        if response is not None:
            extra |= {**otel_attributes(response), "gen_ai.response.id": response.id}
            extra["crosswalk.attempts"] = len(response.attempts)
            if may_log_content():
                extra["crosswalk.content"] = shortened(response.text)
        if error is not None:
            extra["error.type"] = type(error).__name__
        ending = "nothing" if response is None else response.finish_reason.value
        if is_unknown and response is not None:
            word = extra["crosswalk.unknown_finish_reason"] = str(response.raw_finish_reason)[:60]
            ending += f" (unknown finish reason {word!r})"
        _log.log(level, "call ended: %s", ending, extra=extra)
