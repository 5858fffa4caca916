"""What a server is asked beside answers: to count tokens, to load a model."""

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
    """What *read* makes of that which the first server of *service* says to *body* at *path*.

    Args:
        service: its endpoints.
        provider: in whose words the server tells an error.
        path: below the base URL.
        body: of the request.
        read: takes the body of an answer of status 200; where that is none it raises ``CrosswalkError``, ``ValueError``,
            ``LookupError`` or ``TypeError``.
        headers: more for the request.

    Raises:
        Refusal: there is none; what the server says instead is told as that of an answer is, without credentials.
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
