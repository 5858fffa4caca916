"""The endpoints besides answers: models, versions, health, metrics."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

import orjson
from starlette.requests import Request
from starlette.responses import Response

from crosswalk.convert import WireForm
from crosswalk.errors import ErrorKind
from crosswalk_serve.auxiliary_requests import fetch, read, supervised
from crosswalk_serve.bodies import check_head, read_body
from crosswalk_serve.gateway import Gateway
from crosswalk_serve.http_errors import Refusal, form_of
from crosswalk_serve.keys import Caller
from crosswalk_serve.requests import load_body
from crosswalk_serve.routing import Route

__all__ = ["Listing"]

_OLLAMA: Final = "0.33.0"
"""The version of Ollama that the API corresponds to. Clients check that it is new enough."""
_EPOCH: Final = "1970-01-01T00:00:00Z"
"""The creation time of every model, because the real one is unknown."""

Endpoint = Callable[[Request], Awaitable[Response]]


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
        names = self._gateway.models(self._caller(request))
        if form_of(request) is WireForm.ANTHROPIC:
            data = [_anthropic_model(name) for name in names]
            ends = {"first_id": names[0] if names else None, "last_id": names[-1] if names else None}
            return _json({"data": data, "has_more": False, **ends})
        if form_of(request) is WireForm.GEMINI:
            return _json({"models": [_gemini_model(name) for name in names]})
        return _json({"object": "list", "data": [_openai_model(name) for name in names]})

    async def model(self, request: Request) -> Response:
        """Answer ``GET /v1/models/{id}`` and ``GET /v1beta/models/{id}``."""
        name = request.path_params["id"]
        self._gateway.route(self._caller(request), name)
        return _json(_MODELS.get(form_of(request), _openai_model)(name))

    async def tags(self, request: Request) -> Response:
        """Answer Ollama's ``GET /api/tags``."""
        names = self._gateway.models(self._caller(request))
        return _json({"models": [_ollama_model(name) for name in names]})

    async def show(self, request: Request) -> Response:
        """Answer Ollama's ``POST /api/show``."""
        caller = self._caller(request)
        check_head(request.headers, takes_any=True)
        fields = load_body(await read_body(request, self._gateway.config.limits))
        name = fields.text("model") or fields.text("name") or ""
        route = self._gateway.route(caller, name)
        takes_media = any(target.takes_media for target in route.model.endpoints)
        can = ["completion", "tools", *(["vision"] if takes_media else [])]
        return _json({"details": _DETAILS, "model_info": {}, "capabilities": can, "modified_at": _EPOCH})

    async def version(self, request: Request) -> Response:
        """Answer Ollama's ``GET /api/version``."""
        return _json({"version": _OLLAMA})

    async def running(self, request: Request) -> Response:
        """Answer Ollama's ``GET /api/ps``: the models that its Ollama servers have in memory."""
        caller = self._caller(request)
        routes = [self._gateway.route(caller, name) for name in self._gateway.models(caller)]
        loaded = await supervised(self._gateway, request, caller, lambda: _loaded(routes))
        return _json({"models": loaded})

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
        caller = self._caller(request)
        if caller.key is not None and not caller.key.metrics:
            raise Refusal(ErrorKind.PERMISSION, "this key may not read metrics", status=403)
        assert self._gateway.metrics is not None, "else there is no such page"
        text, media_type = self._gateway.metrics.text()
        return Response(text, headers={"content-type": media_type})

    def _caller(self, request: Request) -> Caller:
        return self._gateway.caller(request)


async def _loaded(routes: Iterable[Route]) -> list[dict[str, Any]]:
    """Return the entries of the loaded models, with the names of *routes*. Servers that do not answer are left out."""
    servers: dict[str | None, list[dict[str, Any]]] = {}
    results = {}
    for route in routes:
        for number, target in enumerate(route.targets[0]):
            if target.provider != WireForm.OLLAMA.provider:
                continue
            if target.base_url not in servers:
                service = route.services[0][0]
                try:
                    answer = await fetch(service, target.provider, "GET", "/api/ps", endpoint=number)
                    servers[target.base_url] = read(answer, _entries)
                except Refusal:
                    servers[target.base_url] = []
            name = target.model or route.name
            for entry in servers[target.base_url]:
                if entry.get("model") in (name, f"{name}:latest"):
                    results[route.name] = {**entry, "name": route.name, "model": route.name}
    return list(results.values())


def _entries(body: bytes) -> list[dict[str, Any]]:
    """Return the entries of a server's list.

    Raises:
        ValueError, LookupError, TypeError: it is not a list of objects.
    """
    return [dict(entry) for entry in orjson.loads(body)["models"]]


def _openai_model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "crosswalk"}


def _anthropic_model(name: str) -> dict[str, Any]:
    return {"id": name, "type": "model", "display_name": name, "created_at": _EPOCH}


def _gemini_model(name: str) -> dict[str, Any]:
    methods = ["generateContent", "streamGenerateContent", "countTokens"]
    return {"name": f"models/{name}", "displayName": name, "supportedGenerationMethods": methods}


_MODELS: Final = {WireForm.ANTHROPIC: _anthropic_model, WireForm.GEMINI: _gemini_model}
"""The entry of a model, in formats other than OpenAI's."""
_DETAILS: Final = {
    "parent_model": "",
    "format": "",
    "family": "",
    "families": [],
    "parameter_size": "",
    "quantization_level": "",
}


def _ollama_model(name: str) -> dict[str, Any]:
    return {"name": name, "model": name, "modified_at": _EPOCH, "size": 0, "digest": "", "details": _DETAILS}
