"""Requests to a server besides answers: to count tokens, to load a model."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from crosswalk import normalize
from crosswalk.errors import CrosswalkError, ErrorInfo, ErrorKind, ProviderError
from crosswalk.service import LLMService
from crosswalk_serve.refusal import Refusal, for_client

__all__ = ["ask_beside"]

T = TypeVar("T")

_NO_ANSWER: Final = ErrorInfo(ErrorKind.SERVER, "the server of this model gave no answer", status=502)


async def ask_beside(
    service: LLMService,
    provider: str,
    path: str,
    body: Mapping[str, Any],
    read: Callable[[bytes], T],
    headers: Mapping[str, str] | None = None,
) -> T:
    """Return the result of *read* for the response of the first server of *service* to *body* at *path*.

    Args:
        service: the service with the endpoints.
        provider: the provider id for the server's errors.
        path: the path below the base URL.
        body: the body of the request.
        read: parses the body of a response of status 200. For an invalid one it raises ``CrosswalkError``, ``ValueError``,
            ``LookupError`` or ``TypeError``.
        headers: additional headers for the request.

    Raises:
        Refusal: there is no result. It reports the server's response like an error of an answer, without credentials.
    """
    error, retry_after = None, None
    try:
        answer = await service.post(path, body, headers)
        if answer.status == 200:
            return read(answer.body)
        error = normalize(answer.body, provider, status=answer.status, keep_raw=False).error_info
        retry_after = answer.retry_after
    except ProviderError as failure:
        error = failure.info
    except (CrosswalkError, ValueError, LookupError, TypeError):
        pass
    info = for_client(error or _NO_ANSWER)
    raise Refusal(
        info.kind,
        service.redact(info.message),
        status=info.status,
        code=info.code,
        retry_after=None if retry_after is None else math.ceil(retry_after),
    )
