"""OpenTelemetry spans and metrics after its GenAI conventions. Needs ``crosswalk-llm[otel]``.

``LLMService(..., observers=[OpenTelemetry()])``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from crosswalk.errors import CrosswalkError
from crosswalk.otel import SCHEMA_URL, ClientMetrics, otel_attributes, otel_provider_name
from crosswalk.request import ChatRequest
from crosswalk.service.endpoint import Route, attributes
from crosswalk.service.setup import Call, Observation
from crosswalk.types.response import ChatResponse
from crosswalk.types.usage import ProviderAttempt
from crosswalk.types.values import FinishReason
from crosswalk.version import __version__

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, TracerProvider


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_REQUEST_ATTRIBUTES = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "max_tokens": "max_tokens",
    "seed": "seed",
}


class ClientTelemetry:
    """The spans and metrics of all observers of calls, for any caller.

    Args:
        name: the name of the instrumentation.
        tracer_provider: makes spans, or ``None`` for the global one.
        meter_provider: makes metrics, or ``None`` for the global one.

    Raises:
        CrosswalkError: OpenTelemetry is not installed.
    """

    def __init__(
        self,
        name: str,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        try:
            from opentelemetry import trace
        except ImportError:
            raise CrosswalkError("this needs OpenTelemetry: pip install 'crosswalk-llm[otel]'") from None
        self._tracer = trace.get_tracer(name, __version__, tracer_provider, SCHEMA_URL)
        self._client_kind = trace.SpanKind.CLIENT
        self._metrics = ClientMetrics(name, meter_provider)

    def start(
        self,
        common: Mapping[str, Any],
        said: Mapping[str, Any],
        began: datetime | None = None,
    ) -> Span:
        """Start a client span as a child of the current one.

        Args:
            common: the attributes of span and metrics: provider, model, server.
            said: those of the span alone.
            began: the start of the call, or ``None`` for now.
        """
        operation, model = common["gen_ai.operation.name"], common.get("gen_ai.request.model")
        return self._tracer.start_span(
            f"{operation} {model}" if model else operation,
            kind=self._client_kind,
            attributes={**common, **said},
            start_time=_nanoseconds(began),
        )

    def end(
        self,
        span: Span,
        common: Mapping[str, Any],
        response: ChatResponse | None,
        error: BaseException | None,
        *,
        said: Mapping[str, Any] = MappingProxyType({}),
        took: timedelta | None = None,
        ended: datetime | None = None,
        chunk_times: Iterable[float] = (),
    ) -> None:
        """End *span* with the result of the call, and record its metrics.

        Args:
            span: the span from :meth:`start`.
            common: as there.
            response: the answer, whatever its result, or ``None`` if there is none, or it is not a chat response.
            error: the reason of a missing answer. Its text is not shown.
            said: more attributes, which override the response's.
            took: the duration of the call, or ``None`` for the response's.
            ended: the time of its end, or ``None`` for now.
            chunk_times: when each piece of a stream came, in seconds.
        """
        from opentelemetry.trace import Status, StatusCode

        if response is not None:
            span_attributes: dict[str, Any] = {**otel_attributes(response), **said}
            if response.finish_reason is FinishReason.ERROR:
                span.set_status(Status(StatusCode.ERROR, _description(span_attributes)))
            took = response.metadata.request_duration if took is None else took
        else:
            span_attributes = dict(said)
            if error is not None:
                span_attributes["error.type"] = type(error).__name__
                span.set_status(Status(StatusCode.ERROR))
        span.set_attributes(span_attributes)
        if took is not None:
            self._metrics.record(span_attributes, common, took, chunk_times)
        span.end(_nanoseconds(ended))


def _description(span_attributes: Mapping[str, Any]) -> str:
    """Return an error's kind and code. A server's message is left out, because it may quote the prompt."""
    kind, code = span_attributes.get("crosswalk.error.kind"), span_attributes.get("error.type")
    return str(kind) if code in (None, kind) else f"{kind}: {code}"


def _nanoseconds(moment: datetime | None) -> int | None:
    return None if moment is None else (moment - _EPOCH) // timedelta(microseconds=1) * 1000


class OpenTelemetry:
    """Makes a client span for each call, with an event for each failed attempt, and records the metrics.

    Spans and metrics hold no content. The span's parent is the caller's current span.

    Args:
        tracer_provider: makes spans, or ``None`` for the global one.
        meter_provider: makes metrics, or ``None`` for the global one.

    Raises:
        CrosswalkError: OpenTelemetry is not installed.
    """

    def __init__(
        self, tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None
    ) -> None:
        self._telemetry = ClientTelemetry("crosswalk.service", tracer_provider, meter_provider)

    def started(self, call: Call) -> Observation:
        """A call begins."""
        common = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": otel_provider_name(call.route.provider),
            "gen_ai.request.model": call.model,
            **attributes(call.route),
        }
        attributes_of_request = {**_request(call.request), "crosswalk.call.id": call.id}
        return _SpanObservation(self._telemetry, self._telemetry.start(common, attributes_of_request), common)


class _SpanObservation:
    def __init__(self, telemetry: ClientTelemetry, span: Span, common: Mapping[str, Any]) -> None:
        self._telemetry = telemetry
        self._span = span
        self._common_attributes = common

    def attempted(self, attempt: ProviderAttempt, route: Route) -> None:
        """Add an event for a failed attempt. The span's address is that of the last attempt."""
        self._span.set_attributes({**attributes(route), "gen_ai.request.model": attempt.model})
        if attempt.error is not None:
            event_attributes = {
                "gen_ai.provider.name": otel_provider_name(attempt.provider_name),
                "gen_ai.request.model": attempt.model,
                "crosswalk.outcome": attempt.outcome.value,
                "error.type": str(attempt.extra.get("kind", "_OTHER")),
            }
            self._span.add_event("crosswalk.attempt", event_attributes)

    def ended(self, response: ChatResponse | None, error: BaseException | None) -> None:
        """End the span and record the metrics."""
        end_attributes = {} if response is None else {"crosswalk.attempts": len(response.attempts)}
        self._telemetry.end(self._span, self._common_attributes, response, error, said=end_attributes)


def _request(request: ChatRequest) -> dict[str, Any]:
    span_attributes: dict[str, Any] = {"gen_ai.request.stream": request.stream}
    for name, suffix in _REQUEST_ATTRIBUTES.items():
        value = getattr(request, name)
        if value is not None:
            span_attributes[f"gen_ai.request.{suffix}"] = value
    if request.stop:
        span_attributes["gen_ai.request.stop_sequences"] = request.stop
    if request.response_format is not None:
        span_attributes["gen_ai.output.type"] = "json"
    return span_attributes
