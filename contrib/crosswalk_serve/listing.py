"""The endpoints besides answers: models, versions, stored responses, health, metrics."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import attrs
import orjson
from starlette.requests import Request
from starlette.responses import Response

from crosswalk.convert import WireForm
from crosswalk.errors import ErrorKind
from crosswalk.service import build_http_request
from crosswalk_serve.auxiliary_requests import fetch, read, supervised
from crosswalk_serve.bodies import check_head, read_body
from crosswalk_serve.conversations import StoreError
from crosswalk_serve.forms import form_of
from crosswalk_serve.gateway import Gateway
from crosswalk_serve.keys import Caller
from crosswalk_serve.refusal import Refusal
from crosswalk_serve.requests import read_request
from crosswalk_serve.requests.reading import load_body

__all__ = ["Listing"]

_OLLAMA: Final = "0.33.0"
"""The version of Ollama that the API corresponds to. Clients check that it is new enough."""
_NOT_COUNTED: Final = ("max_tokens", "stream", "temperature", "top_p", "top_k", "stop_sequences", "metadata")
"""The options that Anthropic's endpoint does not take, because it makes no answer."""
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
        """Answer ``GET /v1/models``, for OpenAI's and Anthropic's clients."""
        names = self._gateway.models(self._caller(request))
        if form_of(request) is WireForm.ANTHROPIC:
            data = [_anthropic_model(name) for name in names]
            ends = {"first_id": names[0] if names else None, "last_id": names[-1] if names else None}
            return _json({"data": data, "has_more": False, **ends})
        return _json({"object": "list", "data": [_openai_model(name) for name in names]})

    async def model(self, request: Request) -> Response:
        """Answer ``GET /v1/models/{id}``."""
        name = request.path_params["id"]
        self._gateway.route(self._caller(request), name)
        return _json(
            _anthropic_model(name) if form_of(request) is WireForm.ANTHROPIC else _openai_model(name)
        )

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

    async def count_tokens(self, request: Request) -> Response:
        """Answer Anthropic's ``POST /v1/messages/count_tokens``."""
        caller = self._caller(request)
        check_head(request.headers)
        body = await read_body(request, self._gateway.config.limits)
        incoming = read_request(WireForm.ANTHROPIC, body, headers=request.headers.raw)
        route = self._gateway.route(caller, name := incoming.request.model or "")
        target = route.model.endpoints[0]
        counts = target.provider == "anthropic" if target.counts_tokens is None else target.counts_tokens
        if not counts:
            raise Refusal(
                ErrorKind.MODEL_UNAVAILABLE, "the server of this model counts no tokens", status=404
            )
        await self._gateway.quotas.admit(caller)
        asked = attrs.evolve(route.request(incoming.request, name), model=target.model or name)
        built = build_http_request(asked, "anthropic", on_unsupported="drop")
        counted = {key: value for key, value in built.body.items() if key not in _NOT_COUNTED}
        service, path = route.services[0][0], "/v1/messages/count_tokens"
        answer = await supervised(
            self._gateway,
            request,
            caller,
            lambda: fetch(service, "anthropic", "POST", path, counted, built.headers),
        )
        return _json({"input_tokens": read(answer, _count)})

    # Stored responses.

    async def response(self, request: Request) -> Response:
        """Answer ``GET`` and ``DELETE /v1/responses/{id}``."""
        caller, id = self._caller(request), request.path_params["id"]
        conversations = self._gateway.conversations
        try:
            if request.method == "DELETE":
                if await conversations.forget(caller.name, id):
                    return _json({"id": id, "object": "response", "deleted": True})
            elif (kept := await conversations.find(caller.name, id)) is not None:
                return Response(kept.body, media_type="application/json")
        except StoreError:
            raise Refusal(
                ErrorKind.SERVER, "earlier answers cannot be had now", status=503, retry_after=5
            ) from None
        raise Refusal(ErrorKind.INVALID_REQUEST, "there is no such response, or no longer", status=404)

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


def _count(body: bytes) -> int:
    """Return the token count in the server's answer *body*.

    Raises:
        ValueError, LookupError, TypeError: it has no count.
    """
    count = orjson.loads(body)["input_tokens"]
    if type(count) is not int:
        raise TypeError("a count is a whole number")
    return count


def _openai_model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "crosswalk"}


def _anthropic_model(name: str) -> dict[str, Any]:
    return {"id": name, "type": "model", "display_name": name, "created_at": _EPOCH}


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
