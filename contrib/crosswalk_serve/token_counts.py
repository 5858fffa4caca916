"""Answers requests to count tokens: by the server if it counts, and with an estimate otherwise."""

from __future__ import annotations

from functools import partial
from typing import Final

import attrs
import orjson
from starlette.requests import Request
from starlette.responses import Response

from crosswalk.convert import WireForm
from crosswalk.service import build_http_request
from crosswalk.types import dump_json
from crosswalk_serve.auxiliary_requests import fetch, read, supervised
from crosswalk_serve.bodies import check_head, read_body
from crosswalk_serve.budgets import prompt_tokens
from crosswalk_serve.gateway import Gateway
from crosswalk_serve.refusal import Refusal
from crosswalk_serve.requests import Incoming, load_body, read_request
from crosswalk_serve.routing import Route

__all__ = ["TokenCounts"]

_PATH: Final = "/v1/messages/count_tokens"
_ABSENT: Final = (404, 405, 501)
"""The statuses of a server without this page."""
_COUNTS: Final = {"anthropic": True, "gemini": True, "vllm": False, "llamacpp": False}
"""The providers that count, and whether every version of their servers does. All except Gemini have Anthropic's page."""
_NOT_COUNTED: Final = ("max_tokens", "stream", "temperature", "top_p", "top_k", "stop_sequences", "metadata")
"""The options that Anthropic's page does not take, because it makes no answer."""


class TokenCounts:
    """The page of one format.

    Args:
        gateway: the state that all requests share.
        form: the client's format: Anthropic's ``POST /v1/messages/count_tokens``, or Gemini's ``:countTokens``.
    """

    def __init__(self, gateway: Gateway, form: WireForm) -> None:
        self._gateway = gateway
        self._form = form

    async def answer(self, request: Request) -> Response:
        """Answer one request. An estimate is marked by the header ``x-crosswalk-estimated``."""
        gateway = self._gateway
        caller = gateway.caller(request)
        check_head(request.headers)
        body, target, name = await read_body(request, gateway.config.limits), None, "input_tokens"
        if self._form is WireForm.GEMINI:
            given = load_body(body).given
            body = dump_json(given.get("generateContentRequest", given))
            target, name = {"model": request.path_params["model"]}, "totalTokens"
        incoming = read_request(self._form, body, headers=request.headers.raw, target=target)
        route = gateway.route(caller, incoming.request.model)
        await gateway.quotas.admit(caller)
        count = await supervised(gateway, request, caller, lambda: _counted(route, incoming))
        headers = {} if count is not None else {"x-crosswalk-estimated": name}
        tokens = prompt_tokens(incoming.request) if count is None else count
        return Response(orjson.dumps({name: tokens}), headers=headers, media_type="application/json")


async def _counted(route: Route, incoming: Incoming) -> int | None:
    """Return the server's count, or ``None`` if it does not count.

    Raises:
        Refusal: it counts, but not this request.
    """
    target, name = route.model.endpoints[0], incoming.request.model or ""
    is_sure = target.counts_tokens if target.counts_tokens is not None else _COUNTS.get(target.provider)
    if is_sure is None or target.counts_tokens is False:
        return None
    requested = attrs.evolve(route.request(incoming.request, name), model=target.model or name)
    provider = "gemini" if target.provider == "gemini" else "anthropic"
    built = build_http_request(requested, provider, on_unsupported="drop")
    if provider == "gemini":
        model, name = built.path.partition(":")[0], "totalTokens"
        path = f"{model}:countTokens"
        body = {"generateContentRequest": {"model": model.removeprefix("/v1beta/"), **built.body}}
    else:
        path, name = _PATH, "input_tokens"
        body = {key: value for key, value in built.body.items() if key not in _NOT_COUNTED}
    try:
        answer = await fetch(route.services[0][0], provider, "POST", path, body, built.headers)
    except Refusal as error:
        if not is_sure and error.info.status in _ABSENT:
            return None
        raise
    return read(answer, partial(_count, name))


def _count(name: str, body: bytes) -> int:
    """Return the token count under *name* in the server's answer *body*.

    Raises:
        ValueError, LookupError, TypeError: it has no count.
    """
    count = orjson.loads(body)[name]
    if type(count) is not int:
        raise TypeError("a count is a whole number")
    return count
