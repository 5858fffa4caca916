"""Bodies of requests: read within limits, and those that go to a server as they came."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Container, Mapping
from email.message import Message
from typing import Any, Final

import attrs
from starlette.requests import Request

from crosswalk.errors import ErrorKind
from crosswalk.service.auxiliary_requests import estimated_tokens
from crosswalk.types import dump_json
from crosswalk_serve.config import Limits
from crosswalk_serve.http_errors import BadRequestError, Refusal
from crosswalk_serve.requests import load_body

__all__ = ["FORM", "JSON", "Payload", "check_head", "read_body", "read_payload"]

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


_DISPOSITION: Final = re.compile(rb"^content-disposition:(.*)$", re.IGNORECASE | re.MULTILINE)
_NAME: Final = re.compile(rb';\s*name=(?:"([^"\r]*)"|([^;\s]*))', re.IGNORECASE)
_CODED: Final = re.compile(rb";\s*name\*", re.IGNORECASE)


@attrs.frozen
class Payload:
    """A body with the name of its model.

    Attributes:
        model: the client's name for the model.
        body: the bytes as the client sent them.
        content_type: its content type, or ``None`` without a body.
        fields: the JSON object, or ``None`` if the body is not JSON.
        place: the place of the name in the bytes of a form, or ``None``.
    """

    model: str
    body: bytes = attrs.field(default=b"", repr=False)
    content_type: str | None = None
    fields: dict[str, Any] | None = None
    place: slice | None = None

    def named(self, model: str) -> bytes:
        """Return the body for a server that calls the model *model*."""
        if model == self.model:
            return self.body
        if self.fields is not None:
            return dump_json({**self.fields, "model": model})
        if self.place is not None:
            return self.body[: self.place.start] + model.encode() + self.body[self.place.stop :]
        return self.body

    @property
    def tokens(self) -> int:
        """Estimate the number of tokens in JSON by its length. Other bodies hold none."""
        return 0 if self.fields is None else estimated_tokens(self.fields)


async def read_payload(request: Request, limits: Limits) -> Payload:
    """Read the body of *request*: JSON, a form, or none. The query may name the model of a body without one.

    Raises:
        BadRequestError: it is not valid, or names no model.
        Refusal: it is too long, too slow, or of another content type.
        starlette.requests.ClientDisconnect: the client has left.
    """
    model, kind = request.query_params.get("model"), request.headers.get("content-type", "")
    if request.method != "POST":
        if model is None:
            raise BadRequestError("is missing in the query", "model")
        return Payload(model)
    is_form = kind.lower().startswith(FORM)
    check_head(request.headers, {FORM} if is_form else JSON)
    body = await read_body(request, limits)
    if not is_form:
        fields = load_body(body).given
        named = fields.get("model")
        if not isinstance(named, str):
            raise BadRequestError("is missing" if named is None else "must be a string", "model")
        return Payload(named, body, kind, fields)
    location = _place_of_model(body, kind)
    if location is not None and model is None:
        try:
            return Payload(body[location].decode(), body, kind, place=location)
        except UnicodeDecodeError:
            raise BadRequestError("must be UTF-8", "model") from None
    if location is not None or model is None:
        raise BadRequestError("is named twice" if model else "is missing", "model")
    return Payload(model, body, kind)


def _place_of_model(body: bytes, content_type: str) -> slice | None:
    """Return the place of the value of ``model`` in the form *body*, or ``None`` if it has none.

    Raises:
        BadRequestError: readers of forms might see another model there.
    """
    header = Message()
    header["content-type"] = content_type
    boundary = header.get_param("boundary")
    if not isinstance(boundary, str) or not boundary.isascii():
        raise BadRequestError("the form has no boundary")
    delimiter = b"--" + boundary.encode()
    first, *parts = body.split(delimiter)
    if first or not parts or not parts[-1].startswith(b"--"):
        raise BadRequestError("the form is not between its boundaries")
    result: slice | None = None
    start = len(delimiter)
    for part in parts[:-1]:
        head, blank, value = part.partition(b"\r\n\r\n")
        if not (head.startswith(b"\r\n") and blank and value.endswith(b"\r\n")):
            raise BadRequestError("a part of the form has no head or no end")
        line = b"".join(_DISPOSITION.findall(head))
        names = [quoted or plain for quoted, plain in _NAME.findall(line)]
        if len(names) != 1 or _CODED.search(line):
            raise BadRequestError("a part of the form has no plain name")
        if names == [b"model"]:
            if result is not None:
                raise BadRequestError("is named twice", "model")
            begin = start + len(head) + len(blank)
            result = slice(begin, begin + len(value) - 2)
        start += len(part) + len(delimiter)
    return result
