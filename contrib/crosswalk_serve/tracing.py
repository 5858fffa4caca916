"""Continues traces: each request is a span below the client's own, and above those of its calls."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Traced"]

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
        about = {"http.request.method": method, "url.path": request.url.path[:200]}
        with self._tracer.start_as_current_span(method, parent, SpanKind.SERVER, about) as span:

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
