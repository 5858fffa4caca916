"""The gateway as a Starlette application."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from time import time
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from crosswalk.convert import WireForm
from crosswalk.errors import ErrorKind
from crosswalk.wire.fields import FieldError
from crosswalk_serve.asking import Ask
from crosswalk_serve.auxiliary_requests import TokenCounts
from crosswalk_serve.config import Config
from crosswalk_serve.gateway import Gateway
from crosswalk_serve.http_errors import Refusal, handle_error
from crosswalk_serve.listing import Listing
from crosswalk_serve.passthrough import Passthrough
from crosswalk_serve.requests import BadRequestError
from crosswalk_serve.stored_responses import StoredResponses
from crosswalk_serve.websocket import ResponsesSocket

__all__ = ["create_app"]

_ASKED: Final = {
    "/v1/chat/completions": WireForm.OPENAI_CHAT,
    "/chat/completions": WireForm.OPENAI_CHAT,
    "/v1/completions": WireForm.OPENAI_COMPLETIONS,
    "/v1/responses": WireForm.OPENAI_RESPONSES,
    "/v1/messages": WireForm.ANTHROPIC,
    "/api/chat": WireForm.OLLAMA,
    "/api/generate": WireForm.OLLAMA_GENERATE,
}

_GEMINI: Final = ("v1beta", "v1")
"""The beginnings of Gemini's paths."""


def create_app(config: Config, *, clock: Callable[[], float] = time, **service_options: Any) -> Starlette:
    """Return the application that *config* describes. Its gateway is ``app.state.gateway``.

    Args:
        config: the result of :func:`~crosswalk_serve.reading.load_config`.
        clock: returns seconds since 1970. The limits of keys are counted by it.
        service_options: further arguments for each :class:`~crosswalk.service.LLMService`, such as ``registry``.

    Raises:
        ConfigurationError: something in it is impossible: an endpoint without a key, an extra that is not installed.
        PluginError: a plugin is broken.
    """
    gateway = Gateway(config, clock=clock, **service_options)
    listing, stored = Listing(gateway), StoredResponses(gateway)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[dict[str, Any]]:
        try:
            yield {"gateway": gateway}
        finally:
            await gateway.aclose()

    routes: list[BaseRoute] = [
        Route(path, Ask(gateway, form), methods=["POST"]) for path, form in _ASKED.items()
    ]
    routes.append(WebSocketRoute("/v1/responses", ResponsesSocket(gateway).answer))
    generating, counting = Ask(gateway, WireForm.GEMINI), TokenCounts(gateway, WireForm.GEMINI).answer
    routes += Passthrough(gateway).pages()
    routes += [
        *(Route(f"/{api}/models/{{model:path}}:countTokens", counting, methods=["POST"]) for api in _GEMINI),
        Route("/v1beta/models/{target:path}", generating, methods=["POST"]),
        Route("/v1/models/{target:path}", generating, methods=["POST"]),
        Route("/v1/messages/count_tokens", TokenCounts(gateway, WireForm.ANTHROPIC).answer, methods=["POST"]),
        *(Route(f"/{api}/models", listing.models) for api in _GEMINI),
        *(Route(f"/{api}/models/{{id:path}}", listing.model) for api in _GEMINI),
        Route("/v1/responses/compact", _absent, methods=["POST"]),
        Route("/v1/responses/{id}", stored.response),
        Route("/v1/responses/{id}", stored.delete, methods=["DELETE"]),
        Route("/v1/responses/{id}/cancel", stored.cancel, methods=["POST"]),
        Route("/v1/responses/{id}/input_items", stored.input_items),
        Route("/api/tags", listing.tags),
        Route("/api/ps", listing.running),
        Route("/api/show", listing.show, methods=["POST"]),
        Route("/api/version", listing.version),
        Route("/healthz", listing.health),
        Route("/readyz", listing.ready),
        Route("/", listing.home),
    ]
    if config.metrics:
        routes.append(Route("/metrics", listing.metrics))
    origins = list(config.listen.origins)
    middleware = [Middleware(_Origins, origins=frozenset(origins))]
    if origins:
        cors = Middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["*"],
        )
        middleware.insert(0, cors)
    if config.tracing:
        from crosswalk_serve.telemetry import Traced

        middleware.append(Middleware(Traced))
    app = Starlette(
        routes=routes,
        middleware=middleware,
        lifespan=lifespan,
        exception_handlers=dict.fromkeys(
            (Refusal, BadRequestError, FieldError, HTTPException, ClientDisconnect), handle_error
        ),
    )
    # A redirect would lead to the address in the client's request: behind a proxy, without its TLS.
    app.router.redirect_slashes = False
    app.state.gateway = gateway
    return app


class _Origins:
    """Refuses requests of web pages in a browser, except for *origins*: a page would act for the user who reads it."""

    def __init__(self, app: ASGIApp, origins: frozenset[str]) -> None:
        self._app = app
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        if scope["type"] in ("http", "websocket"):
            origins = [value.decode("latin-1") for name, value in scope["headers"] if name == b"origin"]
            if origins and not ("*" in self._origins or self._origins.issuperset(origins)):
                if scope["type"] == "websocket":
                    return await send({"type": "websocket.close"})
                refusal = Refusal(
                    ErrorKind.PERMISSION, "web pages of this origin may not ask here", status=403
                )
                app = await handle_error(Request(scope), refusal)
        await app(scope, receive, send)


async def _absent(_: Request) -> Response:
    """A page of the API that is not offered. Without it, its path would be taken for the id of an answer, and the method
    would be wrong."""
    raise HTTPException(404)
