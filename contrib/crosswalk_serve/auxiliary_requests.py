"""Requests to a server besides chat: to count tokens, to load a model, to embed texts."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

from starlette.requests import ClientDisconnect, Request

from crosswalk import normalize
from crosswalk.errors import CrosswalkError, ErrorInfo, ErrorKind, ProviderError
from crosswalk.service import LLMService, PlainAnswer
from crosswalk_serve.gateway import Gateway
from crosswalk_serve.interrupt import Interruptible
from crosswalk_serve.keys import Caller
from crosswalk_serve.refusal import Refusal, for_client

__all__ = ["fetch", "read", "supervised"]

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
    error, retry_after = None, None
    try:
        answer = await service.request(method, path, body, headers, endpoint=endpoint)
        if 200 <= answer.status < 300:
            return answer
        error = normalize(answer.body, provider, status=answer.status, keep_raw=False).error_info
        retry_after = answer.retry_after
    except ProviderError as failure:
        error = failure.info
    except CrosswalkError:
        pass
    info = for_client(error or _NO_ANSWER)
    raise Refusal(
        info.kind,
        service.redact(info.message),
        status=info.status,
        code=info.code,
        retry_after=None if retry_after is None else math.ceil(retry_after),
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
        raise Refusal(_NO_ANSWER.kind, _NO_ANSWER.message, status=_NO_ANSWER.status) from None


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
    raise Refusal(block.cause.kind, block.cause.message, status=block.cause.status, retry_after=1)
