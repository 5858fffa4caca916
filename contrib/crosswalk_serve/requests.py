"""Reads clients' requests: their heads and bodies within limits, those in a format, and those that go on as they came.

The formats are in :mod:`crosswalk.formats.requests`. Facts about headers: provider documents "Anthropic Messages",
"OpenAI Responses".
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Container, Iterable, Mapping
from email.message import Message
from typing import Any, Final

import attrs
import orjson
from starlette.requests import Request

from crosswalk import wire
from crosswalk.convert import WireForm
from crosswalk.errors import ErrorKind, FramingError, LineTooLongError, NestingTooDeepError
from crosswalk.formats.reading import VERSION
from crosswalk.formats.requests import Incoming as Incoming, read_fields
from crosswalk.service.auxiliary_requests import estimated_tokens
from crosswalk.types import dump_json, load_json
from crosswalk.wire.fields import FieldError, Fields
from crosswalk_serve.config import Limits
from crosswalk_serve.http_errors import BadRequestError, Refusal

_DRAIN_SECONDS: Final = 5.0
_JSON: Final = frozenset({"application/json", ""})
"""The content types of JSON."""
_FORM: Final = "multipart/form-data"
"""The content type of a form with files."""
_CURL: Final = "application/x-www-form-urlencoded"
"""What ``curl -d`` says, as Ollama's own documentation has it."""


def check_head(headers: Mapping[str, str], types: Container[str] = _JSON, *, takes_any: bool = False) -> None:
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


_LIMITS: Final = wire.Limits()


def load_body(body: bytes, limits: wire.Limits = _LIMITS) -> Fields:
    """The JSON object that *body* is.

    Raises:
        BadRequestError: it is none, has a key twice, or is longer than *limits* (then its status is 413).
    """
    try:
        wire.load_event(body, limits)
        return Fields(load_json(body, unique_keys=True))
    except FieldError as error:
        problem, status = error.problem, 400
    except NestingTooDeepError as error:
        problem, status = f"the request is nested deeper than {error.limit} levels", 400
    except LineTooLongError as error:
        problem, status = f"the request is longer than {error.limit} bytes", 413
    except (FramingError, orjson.JSONDecodeError) as error:
        problem, status = f"the body is no JSON: {getattr(error, 'msg', error)}", 400
    raise BadRequestError(problem, status=status)


def read_request(
    form: WireForm,
    body: bytes,
    limits: wire.Limits | None = None,
    *,
    headers: Iterable[tuple[bytes, bytes]] = (),
    target: Mapping[str, Any] | None = None,
) -> Incoming:
    """Parse the request in *body*, which is in the form *form*.

    Args:
        form: the form of the endpoint that the client asks.
        body: the bytes of its request.
        limits: the limits of length and depth, or ``None`` for those of answers.
        headers: the headers of the request, by name in lower case. Only the few that the
            client's API reads as part of the request are read.
        target: the fields in its path, such as Gemini's model, or ``None`` without any.

    Raises:
        BadRequestError: it is not a request of that form. The error names the place as a JSON path, and quotes nothing.
    """
    fields = load_body(body, limits or _LIMITS)
    for name, value in (target or {}).items():
        fields.give(name, value)
    try:
        incoming = read_fields(form, fields)
    except FieldError as error:
        raise BadRequestError(error.problem, error.path) from None
    extra = _header_options(form, headers)
    if not extra:
        return incoming
    return attrs.evolve(incoming, request=attrs.evolve(incoming.request, headers=extra))


_KNOWN: Final = (b"2023-06-01", b"2026-10-21")
"""The versions of Anthropic's API with the same answers. The newer one only refuses some options of the older one."""
_OPENAI: Final = (b"openai-beta",)
_READ: Final = {
    WireForm.OPENAI_CHAT: _OPENAI,
    WireForm.OPENAI_COMPLETIONS: _OPENAI,
    WireForm.OPENAI_RESPONSES: _OPENAI,
    WireForm.ANTHROPIC: (b"anthropic-beta", VERSION.encode()),
}
"""The headers that switch features on and do not identify the sender, by the client's form."""
_WORDS: Final = re.compile(rb"[!-+\--~]+(?:[ \t]*,[ \t]*[!-+\--~]+)*")


def _header_options(form: WireForm, headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the options in the *headers* of a request in the form *form*, by name in lower case.

    A header that comes twice is one list. The version in Anthropic's form is left out, because it asks for nothing.

    Raises:
        BadRequestError: a header is not a list of plain words.
    """
    wanted = _READ.get(form, ())
    results: dict[str, str] = {}
    for name, value in headers:
        if name not in wanted or value in (b"", *_KNOWN):
            continue
        location = name.decode()
        if not _WORDS.fullmatch(value):
            raise BadRequestError("expected words with commas between them", location)
        raw = value.decode()
        results[location] = f"{results[location]}, {raw}" if location in results else raw
    return results


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
    is_form = kind.lower().startswith(_FORM)
    check_head(request.headers, {_FORM} if is_form else _JSON)
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
