"""The gateway as a Starlette application, with the pages that cost nothing: models, versions, health, metrics."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from time import time
from typing import Any, Final

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute

from crosswalk.convert import WireForm
from crosswalk.errors import ErrorKind
from crosswalk.service import UnsupportedRequestError
from crosswalk.wire.options import FieldError
from crosswalk_serve.asking import Ask
from crosswalk_serve.config import Config
from crosswalk_serve.gateway import Gateway, StoredResponses
from crosswalk_serve.http import BadRequestError, Origins, Refusal, form_of, handle_error, number_in
from crosswalk_serve.passthrough import Passthrough, TokenCounts, fetch, read, supervised
from crosswalk_serve.requests import check_head, load_body, read_body
from crosswalk_serve.routing import ModelRoute as ModelRoute
from crosswalk_serve.websocket import ResponsesSocket

_FORMS_BY_PATH: Final = {
    "/v1/chat/completions": WireForm.OPENAI_CHAT,
    "/chat/completions": WireForm.OPENAI_CHAT,
    "/v1/completions": WireForm.OPENAI_COMPLETIONS,
    "/v1/responses": WireForm.OPENAI_RESPONSES,
    "/v1/messages": WireForm.ANTHROPIC,
    "/api/chat": WireForm.OLLAMA,
    "/api/generate": WireForm.OLLAMA_GENERATE,
}

_GEMINI_PREFIXES: Final = ("v1beta", "v1")
"""The beginnings of Gemini's paths."""


_HANDLED_ERRORS: Final = (
    *(Refusal, BadRequestError, FieldError, UnsupportedRequestError, HTTPException),
    *(ClientDisconnect, Exception),
)


def create_app(config: Config, *, clock: Callable[[], float] = time, **service_options: Any) -> Starlette:
    """Return the application that *config* describes. Its gateway is ``app.state.gateway``.

    Args:
        config: the result of :func:`~crosswalk_serve.config.load_config`.
        clock: returns seconds since 1970. The limits of keys are counted by it.
        service_options: further arguments for each :class:`~crosswalk.service.LLMService`, such as ``registry``.

    Raises:
        ConfigurationError: something in it is impossible: an endpoint without a key, an extra that is not installed.
        PluginError: a plugin is broken.
    """
    gateway = Gateway(config, clock=clock, **service_options)
    listing, stored_responses = Listing(gateway), StoredResponses(gateway)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[dict[str, Any]]:
        try:
            yield {"gateway": gateway}
        finally:
            await gateway.aclose()

    routes: list[BaseRoute] = [
        Route(path, Ask(gateway, form), methods=["POST"]) for path, form in _FORMS_BY_PATH.items()
    ]
    routes.append(WebSocketRoute("/v1/responses", ResponsesSocket(gateway).answer))
    gemini_ask, gemini_token_counts = (
        Ask(gateway, WireForm.GEMINI),
        TokenCounts(gateway, WireForm.GEMINI).answer,
    )
    routes += Passthrough(gateway).pages()
    routes += [
        *(
            Route(f"/{version}/models/{{model:path}}:countTokens", gemini_token_counts, methods=["POST"])
            for version in _GEMINI_PREFIXES
        ),
        Route("/v1beta/models/{target:path}", gemini_ask, methods=["POST"]),
        Route("/v1/models/{target:path}", gemini_ask, methods=["POST"]),
        Route("/v1/messages/count_tokens", TokenCounts(gateway, WireForm.ANTHROPIC).answer, methods=["POST"]),
        *(Route(f"/{version}/models", listing.models) for version in _GEMINI_PREFIXES),
        *(Route(f"/{version}/models/{{id:path}}", listing.model) for version in _GEMINI_PREFIXES),
        Route(
            "/v1/responses/input_tokens",
            TokenCounts(gateway, WireForm.OPENAI_RESPONSES).answer,
            methods=["POST"],
        ),
        Route("/v1/responses/compact", _absent, methods=["POST"]),
        Route("/v1/responses/{id}", stored_responses.response),
        Route("/v1/responses/{id}", stored_responses.delete, methods=["DELETE"]),
        Route("/v1/responses/{id}/cancel", stored_responses.cancel, methods=["POST"]),
        Route("/v1/responses/{id}/input_items", stored_responses.input_items),
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
    middleware = [Middleware(Origins, origins=frozenset(origins))]
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
        exception_handlers=dict.fromkeys(_HANDLED_ERRORS, handle_error),
    )
    # A redirect would lead to the address in the client's request: behind a proxy, without its TLS.
    app.router.redirect_slashes = False
    app.state.gateway = gateway
    return app


async def _absent(_: Request) -> Response:
    """A page of the API that is not offered. Without it, its path would be taken for the id of an answer, and the method
    would be wrong."""
    raise HTTPException(404)


_OLLAMA_VERSION: Final = "0.33.0"
"""The version of Ollama that the API corresponds to. Clients check that it is new enough."""
_EPOCH: Final = "1970-01-01T00:00:00Z"
"""Anthropic's word for a release that is unknown: "may be set to an epoch value" (``ModelInfo.created_at`` of its SDK)."""


def _json(value: Any, status: int = 200) -> Response:
    return Response(orjson.dumps(value), status, media_type="application/json")


class Listing:
    """The pages of a gateway that cost nothing.

    Args:
        gateway: the state that all requests share.
    """

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    # Models.

    async def models(self, request: Request) -> Response:
        """Answer ``GET /v1/models``, for OpenAI's and Anthropic's clients, and ``GET /v1beta/models`` for Gemini's."""
        names = self._gateway.models(self._gateway.caller(request))
        if form_of(request) is WireForm.ANTHROPIC:
            page, has_more = _anthropic_page(request, names)
            ends = {"first_id": page[0] if page else None, "last_id": page[-1] if page else None}
            return _json({"data": list(map(_anthropic_model, page)), "has_more": has_more, **ends})
        if form_of(request) is WireForm.GEMINI:
            page, has_more = _gemini_page(request, names)
            next_page = {"nextPageToken": page[-1]} if has_more else {}
            return _json({"models": list(map(_gemini_model, page)), **next_page})
        return _json({"object": "list", "data": [self._openai_model(name) for name in names]})

    async def model(self, request: Request) -> Response:
        """Answer ``GET /v1/models/{id}`` and ``GET /v1beta/models/{id}``."""
        name = request.path_params["id"]
        self._gateway.route(self._gateway.caller(request), name)
        return _json(_ENTRY_WRITERS.get(form_of(request), self._openai_model)(name))

    async def tags(self, request: Request) -> Response:
        """Answer Ollama's ``GET /api/tags``."""
        names = self._gateway.models(self._gateway.caller(request))
        return _json({"models": [_ollama_model(name) for name in names]})

    async def show(self, request: Request) -> Response:
        """Answer Ollama's ``POST /api/show``."""
        caller = self._gateway.caller(request)
        check_head(request.headers, takes_any=True)
        fields = load_body(await read_body(request, self._gateway.config.limits))
        name = fields.text("model") or fields.text("name") or ""
        route = self._gateway.route(caller, name)
        return _json(await supervised(self._gateway, request, caller, lambda: _shown(route)))

    async def version(self, request: Request) -> Response:
        """Answer Ollama's ``GET /api/version``."""
        return _json({"version": _OLLAMA_VERSION})

    async def running(self, request: Request) -> Response:
        """Answer Ollama's ``GET /api/ps``: the models that its Ollama servers have in memory."""
        caller = self._gateway.caller(request)
        routes = [self._gateway.route(caller, name) for name in self._gateway.models(caller)]
        loaded_models = await supervised(self._gateway, request, caller, lambda: _loaded(routes))
        return _json({"models": loaded_models})

    # Operations.

    async def home(self, request: Request) -> Response:
        """Answer ``GET`` and ``HEAD /``: Ollama's clients check that a server is there."""
        return Response("crosswalk is running", media_type="text/plain")

    async def health(self, request: Request) -> Response:
        """Answer whether the process lives."""
        return _json({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """Answer whether requests should be sent here."""
        if self._gateway.is_draining:
            return _json({"status": "ending"}, 503)
        return _json({"status": "ready"})

    async def metrics(self, request: Request) -> Response:
        """Answer with the metrics, if the caller may read them."""
        caller = self._gateway.caller(request)
        if caller.key is not None and not caller.key.metrics:
            raise Refusal(ErrorKind.PERMISSION, "this key may not read metrics", status=403)
        assert self._gateway.metrics is not None, "else there is no such page"
        text, media_type = self._gateway.metrics.text()
        return Response(text, headers={"content-type": media_type})

    def _openai_model(self, name: str) -> dict[str, Any]:
        """Return the entry of a model. It was created when the gateway read its file: that of the model is unknown."""
        return {"id": name, "object": "model", "created": self._gateway.read_at, "owned_by": _OWNER}


async def _shown(route: ModelRoute) -> dict[str, Any]:
    """Return what the first server says of its model if it is Ollama's, or else what the gateway takes for it."""
    target = route.targets[0][0]
    if target.provider == WireForm.OLLAMA.provider:
        with suppress(Refusal):
            body = {"model": target.model or route.name}
            return read(await fetch(route.services[0][0], target.provider, "POST", "/api/show", body), _about)
    takes_media = any(one.takes_media for one in route.model.endpoints)
    capabilities = ["completion", "tools", *(["vision"] if takes_media else [])]
    return {"details": {}, "model_info": {}, "capabilities": capabilities}


def _about(body: bytes) -> dict[str, Any]:
    """Return the parts of what a server says of its model that hold for the gateway, too.

    Raises:
        ValueError, LookupError, TypeError: it does not say what the model can do.
    """
    told = orjson.loads(body)
    return {
        "details": told["details"],
        "model_info": told["model_info"],
        "capabilities": list(told["capabilities"]),
    }


async def _loaded(routes: Iterable[ModelRoute]) -> list[dict[str, Any]]:
    """Return the entries of the loaded models, with the names of *routes*. Servers that do not answer are left out."""
    entries_by_server: dict[str | None, list[dict[str, Any]]] = {}
    loaded_entries = {}
    for route in routes:
        for number, target in enumerate(route.targets[0]):
            if target.provider != WireForm.OLLAMA.provider:
                continue
            if target.base_url not in entries_by_server:
                service = route.services[0][0]
                try:
                    answer = await fetch(service, target.provider, "GET", "/api/ps", endpoint=number)
                    entries_by_server[target.base_url] = read(answer, _entries)
                except Refusal:
                    entries_by_server[target.base_url] = []
            name, own_names = target.model or route.name, {"name": route.name, "model": route.name}
            for entry in entries_by_server[target.base_url]:
                if entry.get("model") in (name, f"{name}:latest"):
                    loaded_entries[route.name] = {**entry, **own_names, "digest": _digest(route.name)}
    return list(loaded_entries.values())


def _entries(body: bytes) -> list[dict[str, Any]]:
    """Return the entries of a server's list.

    Raises:
        ValueError, LookupError, TypeError: it is not a list of objects.
    """
    return [dict(entry) for entry in orjson.loads(body)["models"]]


def _anthropic_page(request: Request, names: Sequence[str]) -> tuple[Sequence[str], bool]:
    """Return those of *names* that *request* asks for, and whether more lie in its direction. Without a limit, all do.

    Raises:
        BadRequestError: a value of its query is wrong.
    """
    size = number_in(request, "limit", len(names), range(1, 1001))
    after, before = _place(request, "after_id", names), _place(request, "before_id", names)
    if after is not None and before is not None:
        raise BadRequestError("cannot be given together with after_id", "before_id")
    if before is not None:
        return names[max(before - size, 0) : before], before > size
    start = 0 if after is None else after + 1
    return names[start : start + size], start + size < len(names)


def _gemini_page(request: Request, names: Sequence[str]) -> tuple[Sequence[str], bool]:
    """As :func:`_anthropic_page`. A token is the name of the last model before. A size of 0 asks for all."""
    size = number_in(request, "pageSize", 0, range(10**9)) or len(names)
    token = _place(request, "pageToken", names) if request.query_params.get("pageToken") else None
    start = 0 if token is None else token + 1
    return names[start : start + size], start + size < len(names)


def _place(request: Request, name: str, names: Sequence[str]) -> int | None:
    """Return the place in *names* of the value *name* of the query of *request*, or ``None`` without one.

    Raises:
        BadRequestError: it is none of them.
    """
    value = request.query_params.get(name)
    if value is not None and value not in names:
        raise BadRequestError("names no model of this list", name)
    return None if value is None else names.index(value)


def _anthropic_model(name: str) -> dict[str, Any]:
    return {"id": name, "type": "model", "display_name": name, "created_at": _EPOCH}


def _gemini_model(name: str) -> dict[str, Any]:
    methods = ["generateContent", "streamGenerateContent", "countTokens"]
    return {"name": f"models/{name}", "displayName": name, "supportedGenerationMethods": methods}


_ENTRY_WRITERS: Final = {WireForm.ANTHROPIC: _anthropic_model, WireForm.GEMINI: _gemini_model}
"""The entry of a model, in formats other than OpenAI's."""


_OWNER: Final = "crosswalk"


def _digest(name: str) -> str:
    """Return the identity of the model *name* for Ollama's clients, which take two names with one digest for one model.

    It has the form of Ollama's, but the gateway makes it from the name and its owner: there is no file to hash.
    """
    return sha256(f"{_OWNER}/{name}".encode()).hexdigest()


def _ollama_model(name: str) -> dict[str, Any]:
    return {"name": name, "model": name, "digest": _digest(name), "details": {}}
