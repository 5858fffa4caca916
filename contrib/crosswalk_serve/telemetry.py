"""Metrics for Prometheus (the extra ``prometheus``), traces for OpenTelemetry (``otel``), and logs of JSON lines."""

from __future__ import annotations

import json
import logging
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crosswalk.errors import ConfigurationError
from crosswalk.records import append_line, record_line
from crosswalk.types import ChatResponse, FinishReason, Provenance

if TYPE_CHECKING:
    from prometheus_client import Metric

    from crosswalk.types import UsageInfo


_log = logging.getLogger("crosswalk.serve")
_FOLDER_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"
"""The variable for the folder in which processes add up their counts. prometheus-client reads it once, on import."""
_SECOND_BUCKETS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


@contextmanager
def shared() -> Iterator[None]:
    """Add up the numbers of the processes that start in this block, in a folder that is removed afterwards.

    A folder that the environment already names is used, and stays.

    Raises:
        ConfigurationError: the folder does not exist, or cannot be made.
    """
    given_folder = os.environ.get(_FOLDER_VARIABLE)
    if given_folder is not None:
        if not Path(given_folder).is_dir():
            raise ConfigurationError(f"{_FOLDER_VARIABLE}: there is no such folder", key="metrics")
        yield
        return
    try:
        folder = tempfile.TemporaryDirectory(prefix="crosswalk-serve-", ignore_cleanup_errors=True)
    except OSError as error:
        text = f"processes need a folder to add up their numbers in ({_FOLDER_VARIABLE}): {error.strerror}"
        raise ConfigurationError(text, key="metrics") from None
    with folder as folder_path:
        os.environ[_FOLDER_VARIABLE] = folder_path
        try:
            yield
        finally:
            del os.environ[_FOLDER_VARIABLE]


def forget(process: int) -> None:
    """Clear the current activity of *process*, which has died. Its counts stay."""
    if _FOLDER_VARIABLE in os.environ:
        from prometheus_client.multiprocess import mark_process_dead

        mark_process_dead(process)  # type: ignore[no-untyped-call]


class LogLines(logging.Formatter):
    """Writes each record of the log as a JSON object in one line, with OpenTelemetry's names where it has one.

    A record of the gateway has further fields. Their names have a dot, unlike those that Python gives each record.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return *record* as JSON."""
        fields: dict[str, Any] = {
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat().replace("+00:00", "Z"),
            "severity_text": record.levelname,
            "body": record.getMessage(),
            **{
                name: value for name, value in vars(record).items() if "." in name and value not in (None, "")
            },
        }
        if record.exc_info:
            fields["exception.stacktrace"] = self.formatException(record.exc_info)
        return json.dumps(fields)  # in ASCII, as a text may be no Unicode


class Metrics:
    """The metrics of a gateway.

    Labels are names in the file (of models and keys) and words of closed sets, so a client cannot make up a series.
    With several workers they are added up, through ``PROMETHEUS_MULTIPROC_DIR``.

    Raises:
        ConfigurationError: prometheus-client is not installed.
    """

    def __init__(self) -> None:
        try:
            from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
        except ImportError:
            raise ConfigurationError(
                "metrics need the extra: pip install 'crosswalk-llm[prometheus]'", key="metrics"
            ) from None
        self._registry = CollectorRegistry()
        count = partial(Counter, registry=self._registry)
        measure = partial(Histogram, buckets=_SECOND_BUCKETS, registry=self._registry)
        self.requests = count(
            "crosswalk_serve_requests",
            "Requests that were answered, however.",
            ("form", "model", "key", "status"),
        )
        self.running = Gauge(
            "crosswalk_serve_running",
            "Requests that are being answered.",
            registry=self._registry,
            multiprocess_mode="livesum",
        )
        labels = ("form", "model")
        name = "crosswalk_serve_seconds"
        self.seconds = measure(name, "From a request's head to the end of its answer.", labels)
        name = "crosswalk_serve_first_event_seconds"
        self.first_seconds = measure(name, "From a request's head to the first event of its stream.", labels)
        name, text = "crosswalk_serve_tokens", "Tokens that were counted."
        self.tokens = count(name, text, ("model", "key", "type"))
        name, text = "crosswalk_serve_cost_dollars", "What it cost, as far as known."
        self.dollars = count(name, text, ("model", "key"))
        text = "Requests with a field that did not reach the server or the client."
        self.dropped = count("crosswalk_serve_dropped", text, labels)
        name, text = "crosswalk_serve_attempts", "Attempts at servers."
        self.attempts = count(name, text, ("provider", "endpoint", "outcome"))

    def spent(self, model: str, key: str | None, usage: UsageInfo, dollars: float) -> None:
        """Count the tokens and the cost of an answer."""
        self.tokens.labels(model, key or "", "input").inc(usage.prompt_tokens)
        self.tokens.labels(model, key or "", "output").inc(usage.completion_tokens)
        self.dollars.labels(model, key or "").inc(dollars)

    def text(self) -> tuple[bytes, str]:
        """Return all metrics in Prometheus's format, and its content type."""
        from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

        registry = self._registry
        if _FOLDER_VARIABLE in os.environ:
            registry = CollectorRegistry()
            registry.register(_Shared())
        return generate_latest(registry), CONTENT_TYPE_LATEST


class _Shared:
    """The counts of all processes, as prometheus-client collects them."""

    def collect(self) -> Iterable[Metric]:
        """Return the numbers of all files in the folder."""
        from prometheus_client.multiprocess import MultiProcessCollector

        files = [str(file) for file in Path(os.environ[_FOLDER_VARIABLE]).glob("*.db") if _is_begun(file)]
        return MultiProcessCollector.merge(files)  # type: ignore[no-untyped-call,no-any-return]


def _is_begun(file: Path) -> bool:
    """Return whether a process has set the size of *file* before it died. prometheus-client cannot read an empty one."""
    try:
        return file.stat().st_size > 0
    except FileNotFoundError:
        return False


_METHODS: Final = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "POST"})
"""The methods in names of spans. A client may make up others, which are left out."""


class Traced:
    """An ASGI middleware: a server span for each request, with the parent in ``traceparent``. Needs the extra ``otel``.

    Spans hold no content, and have the names of the gateway's own pages. The process configures their destination, in
    OpenTelemetry's SDK.

    Args:
        app: the application that answers.
    """

    def __init__(self, app: ASGIApp) -> None:
        from opentelemetry import trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._app = app
        self._tracer = trace.get_tracer("crosswalk.serve")
        self._propagator = TraceContextTextMapPropagator()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        from opentelemetry.trace import SpanKind, Status, StatusCode

        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        request = Request(scope)
        parent = self._propagator.extract(dict(request.headers))
        method = request.method if request.method in _METHODS else "_OTHER"
        attributes = {"http.request.method": method, "url.path": request.url.path[:200]}
        with self._tracer.start_as_current_span(method, parent, SpanKind.SERVER, attributes) as span:

            async def told(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", message["status"])
                    if "route" in scope:  # it is known by now
                        span.update_name(f"{method} {scope['route'].path}")
                        span.set_attribute("http.route", scope["route"].path)
                    if message["status"] >= 500:
                        span.set_status(Status(StatusCode.ERROR))
                await send(message)

            await self._app(scope, receive, told)


_FILE_MODE: Final = 0o600
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
            os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, _FILE_MODE))
        except OSError as error:
            raise ConfigurationError(
                f"log.exchanges: {path}: {error.strerror}", key="log.exchanges"
            ) from None
        self._path = path
        self._has_failed = False

    def add(self, response: ChatResponse, about: Mapping[str, Any], redact: Callable[[str], str]) -> None:
        """Write a line for *response*, see :func:`exchange_line`. A full disk is logged once, and stops no answer."""
        try:
            append_line(self._path, exchange_line(response, about, redact), mode=_FILE_MODE)
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
    sent_bytes = _sent(response)
    if redact is not None and response.error_info is not None:
        sent_bytes = redact(sent_bytes.decode("latin-1")).encode(
            "latin-1"
        )  # in any encoding, credentials are ASCII
    return record_line(
        sent_bytes,
        status=_status(response),
        provider=response.metadata.provider_id,
        id=response.id,
        more={"time": datetime.now(UTC).isoformat().replace("+00:00", "Z"), **about},
    )


def _status(response: ChatResponse) -> int:
    """Return the HTTP status with which the answer began. An error in the middle of it may have another one."""
    status = response.attempts[-1].extra.get("status") if response.attempts else None
    if isinstance(status, int):
        return status
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
    sse_bytes = b"\n\n".join(b"data: " + _LINE_END.sub(b"\ndata: ", frame) for frame in frames)
    if not is_cut:
        return sse_bytes + b"\n\ndata: [DONE]\n\n"
    return sse_bytes if isinstance(response.raw_events[-1], str) else sse_bytes + b"\n\n"
