"""Bodies of requests, read within limits."""

from __future__ import annotations

import asyncio
from collections.abc import Container, Mapping
from typing import Final

from starlette.requests import Request

from crosswalk.errors import ErrorKind
from crosswalk_serve.config import Limits
from crosswalk_serve.refusal import Refusal

__all__ = ["FORM", "JSON", "check_head", "read_body"]

_DRAIN_SECONDS: Final = 5.0
JSON: Final = frozenset({"application/json", ""})
"""The content types of JSON."""
FORM: Final = "multipart/form-data"
"""The content type of a form with files."""
_CURL: Final = "application/x-www-form-urlencoded"
"""What ``curl -d`` says, as Ollama's own documentation has it."""


def check_head(headers: Mapping[str, str], types: Container[str] = JSON, *, takes_any: bool = False) -> None:
    """Refuse what the *headers* of a request say that a gateway must not serve.

    Args:
        headers: those of the request.
        types: the content types that it may have.
        takes_any: whether its form's own server does not look at the content type.

    Raises:
        Refusal: they frame the body in two ways, compress it, or say that it is no JSON.
    """
    if "transfer-encoding" in headers and "content-length" in headers:
        raise _wrong("the request says in two ways where it ends")
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise _wrong("a compressed body is not read", status=415)
    kind, *parameters = headers.get("content-type", "").lower().split(";")
    charset = [value.strip(" \"'") for name, _, value in map(_split, parameters) if name == "charset"]
    is_utf8 = all(value in ("utf-8", "utf8") for value in charset)
    if not is_utf8 or (kind.strip() not in types and not (takes_any and kind.strip() == _CURL)):
        raise _wrong("the body must be JSON in UTF-8 (content-type: application/json)", status=415)


async def read_body(request: Request, limits: Limits) -> bytes:
    """The body of *request*.

    Raises:
        Refusal: it is too long, or comes too slowly.
        starlette.requests.ClientDisconnect: the client has left.
    """
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > limits.body_bytes and "expect" in request.headers:
        raise _too_long(limits)  # it waits for our word before it sends anything
    pieces: list[bytes] = []
    size, is_too_long = 0, False
    try:
        async with asyncio.timeout(limits.body_seconds) as clock:
            async for piece in request.stream():
                size += len(piece)
                if size <= limits.body_bytes:
                    pieces.append(piece)
                elif not is_too_long:
                    # It is read on, and thrown away: who is writing does not see an answer.
                    is_too_long = True
                    pieces.clear()
                    clock.reschedule(asyncio.get_running_loop().time() + _DRAIN_SECONDS)
    except TimeoutError:
        if not is_too_long:
            raise Refusal(
                ErrorKind.INVALID_REQUEST, f"no body within {limits.body_seconds:g} seconds", status=408
            ) from None
    if is_too_long:
        raise _too_long(limits)
    return b"".join(pieces)


def _too_long(limits: Limits) -> Refusal:
    return Refusal(
        ErrorKind.INVALID_REQUEST,
        f"the body is longer than {limits.body_bytes} bytes",
        status=413,
        code="request_too_large",
    )


def _wrong(message: str, status: int = 400) -> Refusal:
    return Refusal(ErrorKind.INVALID_REQUEST, message, status=status)


def _split(parameter: str) -> tuple[str, str, str]:
    name, equals, value = parameter.partition("=")
    return name.strip(), equals, value
