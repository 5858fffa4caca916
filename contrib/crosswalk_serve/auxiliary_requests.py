"""Requests to a server besides chat: to count tokens, to load a model, to embed texts."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, TypeVar

import attrs
import orjson
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from crosswalk import normalize
from crosswalk.convert import WireForm
from crosswalk.errors import CrosswalkError, ErrorInfo, ErrorKind, ProviderError
from crosswalk.service import LLMService, PlainAnswer, build_http_request
from crosswalk.service.policy import is_unstarted
from crosswalk.types import dump_json
from crosswalk_serve.gateway import Gateway
from crosswalk_serve.http_errors import Refusal, for_client
from crosswalk_serve.http_reply import Interruptible
from crosswalk_serve.keys import Caller
from crosswalk_serve.requests import Incoming, check_head, load_body, read_body, read_request
from crosswalk_serve.routing import Route, prompt_tokens

T = TypeVar("T")

_NO_ANSWER: Final = ErrorInfo(ErrorKind.SERVER, "the server of this model gave no answer", status=502)


async def fetch(
    service: LLMService,
    provider: str,
    method: str,
    path: str,
    body: Mapping[str, Any] | bytes | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    endpoint: int = 0,
) -> PlainAnswer:
    """Return the answer of an endpoint of *service*, which has a status of success. See :meth:`LLMService.request`.

    Args:
        service: the service with the endpoints.
        provider: the provider id for the server's errors.
        method: the HTTP method.
        path: the path below the base URL.
        body: the body of the request.
        headers: additional headers for the request.
        endpoint: the number of the endpoint.

    Raises:
        Refusal: there is no such answer. It reports the server's response like an error of an answer, without credentials.
    """
    error, retry_after, is_free = None, None, False
    try:
        answer = await service.request(method, path, body, headers, endpoint=endpoint)
        if 200 <= answer.status < 300:
            return answer
        error = normalize(answer.body, provider, status=answer.status, keep_raw=False).error_info
        retry_after, is_free = answer.retry_after, is_unstarted(answer.status, None)
    except ProviderError as failure:
        error = failure.info
        is_free = is_unstarted(None, None if error is None else error.code)
    except CrosswalkError:
        pass
    info = for_client(error or _NO_ANSWER)
    raise Refusal(
        info.kind,
        service.redact(info.message),
        status=info.status,
        code=info.code,
        retry_after=None if retry_after is None else math.ceil(retry_after),
        may_repeat=is_free,
    )


def read(answer: PlainAnswer, parse: Callable[[bytes], T]) -> T:
    """Return the result of *parse* for the body of *answer*.

    Args:
        answer: the server's answer.
        parse: raises ``CrosswalkError``, ``ValueError``, ``LookupError`` or ``TypeError`` for an invalid body.

    Raises:
        Refusal: the body is invalid.
    """
    try:
        return parse(answer.body)
    except (CrosswalkError, ValueError, LookupError, TypeError):
        raise Refusal(
            _NO_ANSWER.kind, _NO_ANSWER.message, status=_NO_ANSWER.status, may_repeat=False
        ) from None


async def supervised(
    gateway: Gateway, request: Request, caller: Caller, work: Callable[[], Awaitable[T]]
) -> T:
    """Return the result of *work* for *caller*. It ends when the client leaves or the gateway ends.

    Raises:
        Refusal: too many requests run, or the gateway ends.
        starlette.requests.ClientDisconnect: the client has left.
    """
    block = Interruptible(request.receive)
    with gateway.slot(), gateway.running(block, caller):
        async with block:
            return await work()
    if block.cause is None:
        raise ClientDisconnect
    raise Refusal(
        block.cause.kind, block.cause.message, status=block.cause.status, retry_after=1, may_repeat=False
    )


_ABOUT = ("keep_alive", "options")
"""The other fields of such a request: how long to keep the model, and with which context to load it."""


async def load(route: Route, incoming: Incoming, name: str) -> bytes:
    """Return the answer to *incoming*, whose :attr:`Wants.load` is set, for a client that calls the model *name*.

    The request goes to the Ollama servers that may be asked first for the model. Other servers have no such request, and
    nothing to do.

    Raises:
        Refusal: a server cannot do it.
    """
    done = incoming.wants.load
    payload = {field: incoming.request.said[field] for field in _ABOUT if field in incoming.request.said}
    for (service, _), target in zip(route.services, route.first, strict=True):
        if target.provider == WireForm.OLLAMA.provider:
            body = {"model": target.model or name, "messages": [], "stream": False, **payload}
            answer = await fetch(service, target.provider, "POST", WireForm.OLLAMA.paths[0], body)
            done = read(answer, _done)
    own = (
        {"message": {"role": "assistant", "content": ""}}
        if incoming.form is WireForm.OLLAMA
        else {"response": ""}
    )
    made = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    return orjson.dumps({"model": name, "created_at": made, **own, "done": True, "done_reason": done})


def _done(body: bytes) -> str | None:
    """Return the end reason in the server's answer *body*.

    Raises:
        CrosswalkError: it is not an answer, or is an error.
    """
    return normalize(body, WireForm.OLLAMA.provider, keep_raw=False).raise_for_error().raw_finish_reason


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
