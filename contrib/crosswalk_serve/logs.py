"""The logs: a line for each request, failed attempt and cool-down, and the file of exchanges."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from crosswalk.errors import ConfigurationError, ErrorInfo, ErrorKind
from crosswalk.records import append_line, record_line
from crosswalk.service import Call, Observation
from crosswalk.service.endpoint import Route, where
from crosswalk.text import clean_message
from crosswalk.types import AttemptOutcome, ChatResponse, FinishReason, Provenance
from crosswalk_serve.http_reply import header_of

if TYPE_CHECKING:
    from crosswalk.types import ProviderAttempt
    from crosswalk_serve.gateway import Gateway


_log = logging.getLogger("crosswalk.serve")


def record_request(
    gateway: Gateway,
    id: str,
    form: str,
    model: str,
    key: str | None,
    status: int,
    seconds: float,
    dropped: Sequence[str] = (),
) -> None:
    """Count a request, and log how it ended.

    Args:
        gateway: the state that all requests share.
        id: the id of the request.
        form: the client's form, or the path of another request.
        model: the name of the model in the file, or empty.
        key: the name of the key in the file, or ``None``.
        status: the HTTP status.
        seconds: the time that it took.
        dropped: the fields that did not reach the server or the client.
    """
    key = key or ""
    if gateway.metrics is not None:
        gateway.metrics.requests.labels(form, model, key, str(status)).inc()
        gateway.metrics.seconds.labels(form, model).observe(seconds)
        if dropped:
            gateway.metrics.dropped.labels(form, model).inc()
    omitted = header_of(dropped)
    extra = {
        "crosswalk.request.id": id,
        "crosswalk.form": form,
        "crosswalk.key": key,
        "crosswalk.dropped": omitted,
        "gen_ai.request.model": model,
        "http.response.status_code": status,
    }
    text = f"{form} {model or '-'} {key or '-'} {status} {seconds:.3f}s{omitted and f' dropped: {omitted}'}"
    _log.info("%s %s", id, text, extra=extra)


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


_MODE: Final = 0o600
"""The file mode. The file holds people's questions and answers."""
_LINE_END: Final = re.compile(rb"\r\n?|\n")


class ExchangeLog:
    """A file that lines are appended to. Several processes may share it.

    Args:
        path: the file, created if it does not exist.

    Raises:
        ConfigurationError: it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, _MODE))
        except OSError as error:
            raise ConfigurationError(
                f"log.exchanges: {path}: {error.strerror}", key="log.exchanges"
            ) from None
        self._path = path
        self._has_failed = False

    def add(self, response: ChatResponse, about: Mapping[str, Any], redact: Callable[[str], str]) -> None:
        """Write a line for *response*, see :func:`exchange_line`. A full disk is logged once, and stops no answer."""
        try:
            append_line(self._path, exchange_line(response, about, redact), mode=_MODE)
            self._has_failed = False
        except OSError as error:
            if not self._has_failed:
                _log.error("the log of exchanges cannot be written: %s", error.strerror)
            self._has_failed = True


def exchange_line(
    response: ChatResponse, about: Mapping[str, Any], redact: Callable[[str], str] | None = None
) -> bytes:
    """Return *response* as :func:`crosswalk.records.read_record` reads it: the provider's data.

    Args:
        response: the answer. The provider's bytes are its ``raw_events``.
        about: more for the line.
        redact: removes credentials from an error, because servers may repeat them, or ``None`` for no removal.
    """
    sent = _sent(response)
    if redact is not None and response.error_info is not None:
        sent = redact(sent.decode("latin-1")).encode("latin-1")  # in any encoding, credentials are ASCII
    return record_line(
        sent,
        status=_status(response),
        provider=response.metadata.provider_id,
        id=response.id,
        more={"time": datetime.now(UTC).isoformat().replace("+00:00", "Z"), **about},
    )


def _status(response: ChatResponse) -> int:
    """Return the HTTP status with which the answer began. An error in the middle of it may have another one."""
    raw = response.attempts[-1].extra.get("status") if response.attempts else None
    if isinstance(raw, int):
        return raw
    error = response.error_info if len(response.raw_events) < 2 else None
    return 200 if error is None or error.status is None else error.status


def _sent(response: ChatResponse) -> bytes:
    """Return the provider's data. The events of a stream become server-sent ones, whatever their framing was.

    The mark of a stream's end, which is not an event, is written if the stream is complete. If it ended in the middle
    of an event, the piece of the event stays open.
    """
    frames = response.raw_events.frames
    if len(frames) < 2:
        return b"".join(frames)
    is_cut = (
        response.finish_reason in (FinishReason.ERROR, FinishReason.CANCELLED)
        or response.metadata.provenance.get("usage") is Provenance.CUT
    )
    sent = b"\n\n".join(b"data: " + _LINE_END.sub(b"\ndata: ", frame) for frame in frames)
    if not is_cut:
        return sent + b"\n\ndata: [DONE]\n\n"
    return sent if isinstance(response.raw_events[-1], str) else sent + b"\n\n"
