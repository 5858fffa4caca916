"""Reads clients' requests, within limits, and the seals in them that restore a provider's original."""

from __future__ import annotations

import asyncio
import hmac
import re
import zlib
from base64 import b64decode, b64encode
from collections.abc import Container, Iterable, Mapping
from email.message import Message
from functools import cached_property
from hashlib import sha256
from typing import Any, Final

import attrs
import orjson
from starlette.requests import Request

from crosswalk import (
    CanonicalJSONError,
    ChatResponse,
    Segment,
    SegmentType,
    ToolCallArgumentsError,
    UsageInfo,
    from_json,
    to_json,
    wire,
)
from crosswalk.convert import WireForm
from crosswalk.errors import ErrorKind, FramingError, LineTooLongError, NestingTooDeepError
from crosswalk.formats.reading import VERSION
from crosswalk.formats.requests import READERS, Incoming as Incoming
from crosswalk.service import Adaptation, Turn
from crosswalk.service.auxiliary_requests import estimated_tokens
from crosswalk.service.way_back import without_items
from crosswalk.types import dump_json, load_json
from crosswalk.types.json import has_unique_keys
from crosswalk.types.values import altered
from crosswalk.wire.options import FieldError, Fields
from crosswalk_serve.config import Config, GatewayLimits
from crosswalk_serve.http import BadRequestError, Refusal, named
from crosswalk_serve.routing import Caller

# -------------------------------------------------------------------------------- requests
# Reads clients' requests: their heads and bodies within limits, those in a format, and those that go on as they came.
#
# The formats are in :mod:`crosswalk.formats.requests`. Facts about headers: provider documents "Anthropic Messages",
# "OpenAI Responses".


_DRAIN_SECONDS: Final = 5.0
_JSON_TYPES: Final = frozenset({"application/json", ""})
"""The content types of JSON."""
_FORM_TYPE: Final = "multipart/form-data"
"""The content type of a form with files."""
_CURL_TYPE: Final = "application/x-www-form-urlencoded"
"""What ``curl -d`` says, as Ollama's own documentation has it."""


def first_headers(request: Request) -> dict[str, str]:
    """Return the first value of each header of *request*, by its name in lower case, to look at many of them."""
    raw_headers = reversed(request.headers.raw)
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in raw_headers}


def check_head(
    headers: Mapping[str, str], types: Container[str] = _JSON_TYPES, *, takes_any: bool = False
) -> None:
    """Refuse what the *headers* of a request say that a gateway must not serve.

    Args:
        headers: those of the request.
        types: the content types that it may have.
        takes_any: whether its form's own server does not look at the content type.

    Raises:
        Refusal: they frame the body in two ways, compress it, or say that it is no JSON.
    """
    if "transfer-encoding" in headers and "content-length" in headers:
        raise _wrong("conflicting Content-Length and Transfer-Encoding")
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise _wrong("a compressed body is not read", status=415)
    media_type, *parameters = headers.get("content-type", "").lower().split(";")
    charsets = [value.strip(" \"'") for name, _, value in map(_split, parameters) if name == "charset"]
    is_utf8 = all(value in ("utf-8", "utf8") for value in charsets)
    if not is_utf8 or (
        media_type.strip() not in types and not (takes_any and media_type.strip() == _CURL_TYPE)
    ):
        raise _wrong("the body must be JSON in UTF-8 (content-type: application/json)", status=415)


async def read_body(request: Request, limits: GatewayLimits) -> bytes:
    """The body of *request*.

    Raises:
        Refusal: it is too long, or comes too slowly.
        starlette.requests.ClientDisconnect: the client has left.
    """
    if "expect" in request.headers:
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length) > limits.body_bytes:
            raise _too_long(limits)  # it waits for our word before it sends anything
    pieces: list[bytes] = []
    size, is_too_long = 0, False
    try:
        async with asyncio.timeout(limits.body_seconds) as timeout:
            async for piece in request.stream():
                size += len(piece)
                if size <= limits.body_bytes:
                    pieces.append(piece)
                elif not is_too_long:
                    # It is read on, and thrown away: who is writing does not see an answer.
                    is_too_long = True
                    pieces.clear()
                    timeout.reschedule(asyncio.get_running_loop().time() + _DRAIN_SECONDS)
    except TimeoutError:
        if not is_too_long:
            raise Refusal(
                ErrorKind.INVALID_REQUEST, f"no body within {limits.body_seconds:g} seconds", status=408
            ) from None
    if is_too_long:
        raise _too_long(limits)
    return b"".join(pieces)


def _too_long(limits: GatewayLimits) -> Refusal:
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
        value = wire.load_event(body, limits)
        return Fields(value if has_unique_keys(body, value) else load_json(body, unique_keys=True))
    except FieldError as error:
        problem, status = error.problem, 400
    except NestingTooDeepError as error:
        problem, status = f"the request is nested deeper than {error.limit} levels", 400
    except LineTooLongError as error:
        problem, status = f"the request is longer than {error.limit} bytes", 413
    except (FramingError, orjson.JSONDecodeError) as error:
        problem, status = f"the body is not JSON: {getattr(error, 'msg', error)}", 400
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
    return read_loaded(form, fields, headers)


def read_loaded(form: WireForm, fields: Fields, headers: Iterable[tuple[bytes, bytes]] = ()) -> Incoming:
    """:func:`read_request` of *fields*, what :func:`load_body` returned for its body."""
    try:
        incoming = READERS[form](fields, fields.given)
    except FieldError as error:
        raise BadRequestError(error.problem, error.path) from None
    switches, passed = header_options(form, headers), repetition_headers(headers)
    if not (switches or passed):
        return incoming
    return altered(incoming, request=attrs.evolve(incoming.request, headers=switches, extra_headers=passed))


def with_fields(incoming: Incoming, **fields: Any) -> Incoming:
    """Return *incoming* as if its client had said these *fields*.

    Raises:
        BadRequestError: then it is not a request of its form.
    """
    read = read_request(incoming.form, dump_json({**incoming.request.said, **fields}))
    own_headers = {name: getattr(incoming.request, name) for name in ("headers", "extra_headers")}
    return altered(read, request=altered(read.request, **own_headers))


_KNOWN_VERSIONS: Final = (b"2023-06-01", b"2026-10-21")
"""The versions of Anthropic's API with the same answers. The newer one only refuses some options of the older one."""
_OPENAI_HEADERS: Final = (b"openai-beta",)
_READ_HEADERS: Final = {
    WireForm.OPENAI_CHAT: _OPENAI_HEADERS,
    WireForm.OPENAI_COMPLETIONS: _OPENAI_HEADERS,
    WireForm.OPENAI_RESPONSES: _OPENAI_HEADERS,
    WireForm.ANTHROPIC: (b"anthropic-beta", VERSION.encode()),
}
"""The headers that switch features on and do not identify the sender, by the client's form."""
_BETA_HEADERS: Final = (*_OPENAI_HEADERS, b"anthropic-beta")
_RETRY_COUNT: Final = "x-stainless-retry-count"
"""The header in which SDKs say how often they have sent the request before."""
_PASSED: Final = (b"idempotency-key", _RETRY_COUNT.encode())
"""The headers about repetitions, for servers of every format: one of them may know the request already."""
_LINE: Final = re.compile(rb"[ -~]{1,255}")
_COUNT: Final = re.compile(r"[0-9]{1,4}")
_WORDS_PATTERN: Final = re.compile(rb"[!-+\--~]+(?:[ \t]*,[ \t]*[!-+\--~]+)*")


def repetition_headers(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return those of the *headers* of a request that are about its repetition. A count of 0 says nothing.

    Raises:
        BadRequestError: a header is not a line of plain text.
    """
    results = {}
    for name, value in headers:
        if name not in _PASSED or value == b"0":
            continue
        if not _LINE.fullmatch(value):
            raise BadRequestError("expected a line of plain text", name.decode())
        results[name.decode()] = value.decode()
    return results


def repetitions(headers: Mapping[str, str]) -> int:
    """Return how often the client has sent the request before, as far as its *headers* say it."""
    count = headers.get(_RETRY_COUNT, "0")
    return int(count) if _COUNT.fullmatch(count) else 0


def header_options(form: WireForm, headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the options in the *headers* of a request in the form *form*, by name in lower case.

    A header that comes twice is one list. The version in Anthropic's form is left out, because it asks for nothing.

    Raises:
        BadRequestError: a header is not a list of plain words.
    """
    wanted_headers = _READ_HEADERS.get(form, ())
    options: dict[str, str] = {}
    for name, value in headers:
        if name not in wanted_headers or value in (b"", *_KNOWN_VERSIONS):
            continue
        header_name = name.decode()
        if not _WORDS_PATTERN.fullmatch(value):
            raise BadRequestError("expected words with commas between them", header_name)
        header_value = value.decode()
        options[header_name] = (
            f"{options[header_name]}, {header_value}" if header_name in options else header_value
        )
    return options


def foreign_switches(form: WireForm, headers: Iterable[tuple[bytes, bytes]]) -> list[str]:
    """Return the names of the *headers* that switch features on in other formats than *form*. No server gets them."""
    own_headers = _READ_HEADERS.get(form, ())
    return [name.decode() for name, _ in headers if name in _BETA_HEADERS and name not in own_headers]


_DISPOSITION_PATTERN: Final = re.compile(rb"^content-disposition:(.*)$", re.IGNORECASE | re.MULTILINE)
_NAME_PATTERN: Final = re.compile(rb';\s*name=(?:"([^"\r]*)"|([^;\s]*))', re.IGNORECASE)
_LIKE_MODEL_PATTERN: Final = re.compile(rb"[\s']+model[\s']*|model[\s']+|[\s']*model[\s']*\[.*", re.DOTALL)
"""A name that some readers take for ``model``, too: in single quotes, or as the name of a list."""
_CODED_NAME_PATTERN: Final = re.compile(rb";\s*name\*", re.IGNORECASE)


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
        if self.fields is not None:
            return named(self.body, self.fields, model)
        if self.place is not None:
            return self.body[: self.place.start] + model.encode() + self.body[self.place.stop :]
        return self.body

    @property
    def tokens(self) -> int:
        """Estimate the number of tokens in JSON by its length. Other bodies hold none."""
        return 0 if self.fields is None else estimated_tokens(self.fields)


async def read_payload(request: Request, limits: GatewayLimits, *, is_batch: bool = False) -> Payload:
    """Read the body of *request*: JSON, a form, or none. The query may name the model of a body without one.

    So it does for the body of a batch, which names models of the server.

    Raises:
        BadRequestError: it is not valid, or names no model.
        Refusal: it is too long, too slow, or of another content type.
        starlette.requests.ClientDisconnect: the client has left.
    """
    model, content_type = request.query_params.get("model"), request.headers.get("content-type", "")
    if request.method != "POST":
        if model is None:
            raise BadRequestError("is missing in the query", "model")
        return Payload(model)
    is_form = content_type.lower().startswith(_FORM_TYPE)
    check_head(request.headers, {_FORM_TYPE} if is_form else _JSON_TYPES)
    body = await read_body(request, limits)
    if is_batch and not is_form:
        if model is None:
            raise BadRequestError("is missing in the query", "model")
        return Payload(model, body, content_type or None)
    if not is_form:
        fields = load_body(body).given
        model_name = fields.get("model")
        if not isinstance(model_name, str):
            raise BadRequestError("is missing" if model_name is None else "must be a string", "model")
        return Payload(model_name, body, content_type, fields)
    model_span = _place_of_model(body, content_type)
    if model_span is not None and model is None:
        try:
            return Payload(body[model_span].decode(), body, content_type, place=model_span)
        except UnicodeDecodeError:
            raise BadRequestError("must be UTF-8", "model") from None
    if model_span is not None or model is None:
        raise BadRequestError("is named twice" if model else "is missing", "model")
    return Payload(model, body, content_type)


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
    preamble, *parts = body.split(delimiter)
    if preamble or not parts or not parts[-1].startswith(b"--"):
        raise BadRequestError("the form is not between its boundaries")
    model_span: slice | None = None
    start = len(delimiter)
    for part in parts[:-1]:
        head, blank, value = part.partition(b"\r\n\r\n")
        if not (head.startswith(b"\r\n") and blank and value.endswith(b"\r\n")):
            raise BadRequestError("a part of the form has no head or no end")
        disposition = b"".join(_DISPOSITION_PATTERN.findall(head))
        names = [quoted or plain for quoted, plain in _NAME_PATTERN.findall(disposition)]
        is_unclear = any(map(_LIKE_MODEL_PATTERN.fullmatch, names))
        if len(names) != 1 or is_unclear or _CODED_NAME_PATTERN.search(disposition):
            raise BadRequestError("a part of the form has no plain name")
        if names == [b"model"]:
            if model_span is not None:
                raise BadRequestError("is named twice", "model")
            begin = start + len(head) + len(blank)
            model_span = slice(begin, begin + len(value) - 2)
        start += len(part) + len(delimiter)
    return model_span


# ---------------------------------------------------------------------------------- owners
# Seals: opaque values that a client gets with an answer of another format, and that restore the provider's original.
#
# A client's format has a field for opaque values: ``encrypted_content`` of a Responses reasoning item, the
# ``signature`` of a
# ``thinking`` block, the data of ``reasoning_details`` of Chat Completions, Gemini's ``thoughtSignature``. The gateway
# puts
# the whole answer there, with its provider. The client brings it back with the conversation. The seal is authenticated
# and
# bound to the client's key, so the gateway needs no memory, and a client cannot use the seal of another one. If the
# configuration holds no key at all, the secret is known, and a seal only detects accidental changes.
#
# Ollama's format has no such field: its client keeps the role, the text, ``thinking``, the images and the calls of a
# message.


FORMAT: Final = "crosswalk"
"""The format name of a seal in ``reasoning_details``."""
_PREFIX: Final = "crosswalk001"
"""The beginning of a seal. A seal is base64, because the SDKs of Gemini decode a signature and encode it again."""
_URL_SAFE: Final = str.maketrans("-_", "+/")
_ENCRYPTED_FACTS: Final = {"type": "reasoning.encrypted", "format": FORMAT}
_SEAL_FIELDS: Final[Mapping[WireForm, tuple[str, Mapping[str, str]]]] = {
    WireForm.OPENAI_CHAT: ("encrypted", _ENCRYPTED_FACTS),
    WireForm.OPENAI_RESPONSES: ("encrypted", {"format": FORMAT}),
    WireForm.ANTHROPIC: ("signature", {}),
    WireForm.GEMINI: ("encrypted", _ENCRYPTED_FACTS),
}
"""The metadata that each format writes into its field for opaque values: the key of the seal, and facts about it."""
_MAX_UNSEALED_BYTES: Final = 1 << 24
_FOREIGN_SEAL_REASON: Final = "reasoning: its seal is not of this gateway and key"
_CHANGED_ANSWER_REASON: Final = "reasoning: the client has changed the answer that it belongs to"


class Seals:
    """Seals the answers of one gateway for one client.

    Args:
        config: the gateway's configuration, whose secrets authenticate the seals.
        caller: the client.
    """

    def __init__(self, config: Config, caller: Caller) -> None:
        self._config, self._caller = config, caller

    @cached_property
    def _key(self) -> bytes:
        """The secret of the seals. Most requests need none."""
        caller = self._caller
        key_hash = b"" if caller.key is None else str(caller.key.hash).encode()
        return sha256(_secret(self._config) + key_hash).digest()

    def of(self, response: ChatResponse, form: WireForm) -> Segment | None:
        """Return the part with the seal of *response* for a client of *form*, or ``None`` if it holds nothing opaque."""
        is_plain = all(
            one.type in (SegmentType.TEXT, SegmentType.TOOL_CALL)
            and not (one.metadata and one.metadata.keys() - {"id", "name"})
            for one in response.segments
        )
        if form not in _SEAL_FIELDS or is_plain or response.error_info is not None:
            return None
        sealed_response = attrs.evolve(
            response,
            attempts=(),
            alternatives=(),
            logprobs=None,
            usage=UsageInfo.EMPTY,
        )
        data = zlib.compress(to_json(sealed_response))
        key, facts = _SEAL_FIELDS[form]
        seal = _PREFIX + b64encode(self._mac(data) + data).decode()
        return Segment(SegmentType.REASONING, "", {**facts, key: seal})

    def opened(self, incoming: Incoming) -> Incoming:
        """Return *incoming* with the answers of its seals in place. Whatever a seal does not prove is left out."""
        request = incoming.request
        turns: list[Turn] = []
        notes: list[Adaptation] = []
        known_ids: set[str] = set()
        for turn in request.messages:
            seal = _seal_in(turn)
            if seal is None or not isinstance(turn, ChatResponse):
                turns.append(turn)
                continue
            sealed_answer = self._read(seal)
            restored_answer = None if sealed_answer is None else _as_client_has_it(sealed_answer, turn)
            if restored_answer is None:
                turns.append(_unproved(turn, seal))
                reason = _FOREIGN_SEAL_REASON if sealed_answer is None else _CHANGED_ANSWER_REASON
                notes.append(Adaptation.dropped(turn.id, reason))
            else:
                turns.append(restored_answer)
                known_ids.add(restored_answer.id)
        if not (known_ids or notes):
            return incoming
        changed_request = attrs.evolve(
            request, messages=turns, notes=tuple(notes), known=frozenset(known_ids)
        )
        return attrs.evolve(incoming, request=changed_request)

    def _mac(self, data: bytes) -> bytes:
        return hmac.digest(self._key, data, sha256)

    def _read(self, seal: str) -> ChatResponse | None:
        """Return the answer in *seal*, or ``None`` if the seal is not from this gateway for this client."""
        try:
            signed_data = b64decode(seal.removeprefix(_PREFIX).translate(_URL_SAFE))
        except ValueError:
            return None
        mac, data = signed_data[:32], signed_data[32:]
        if not hmac.compare_digest(mac, self._mac(data)):
            return None
        try:
            return from_json(zlib.decompressobj().decompress(data, _MAX_UNSEALED_BYTES), ChatResponse)
        except (CanonicalJSONError, zlib.error):
            return None


def _secret(config: Config) -> bytes:
    """Return the secret of the gateway: the credentials in its configuration, which all its processes have."""
    targets = [target for model in config.models.values() for target in model.endpoints]
    credentials = [target.api_key.reveal() for target in targets if target.api_key is not None]
    credentials += [str(key.hash) for key in config.keys.values()]
    return sha256("\n".join(credentials).encode()).digest()


def _seal_in(turn: Turn) -> str | None:
    for segment in turn.segments if isinstance(turn, ChatResponse) else ():
        for key in ("encrypted", "signature"):
            value = segment.metadata.get(key)
            if isinstance(value, str) and value.startswith(_PREFIX):
                return value
    return None


def _unproved(turn: ChatResponse, seal: str) -> ChatResponse:
    """Return *turn* without its *seal*, and without the reasoning that has it, which no server has stored."""
    segments = [one for one in (_without(seal, each) for each in turn.segments) if one is not None]
    ids = {one.metadata.get("id") for one in turn.segments if one not in segments} - {None}
    turn = without_items(attrs.evolve(turn, segments=segments), ids)
    extensions = {**turn.metadata.extensions, "store": False}
    return attrs.evolve(turn, metadata=attrs.evolve(turn.metadata, extensions=extensions))


def _without(seal: str, segment: Segment) -> Segment | None:
    """Return *segment* without *seal*, or ``None`` for reasoning, which only the seal can prove."""
    if seal not in segment.metadata.values():
        return segment
    if segment.type is SegmentType.REASONING:
        return None
    metadata = {key: value for key, value in segment.metadata.items() if value != seal}
    return attrs.evolve(segment, metadata=metadata)


def _as_client_has_it(sealed: ChatResponse, turn: ChatResponse) -> ChatResponse | None:
    """Return the *sealed* answer with the client's ids, or ``None`` if the client's *turn* differs from it."""
    calls, client_calls = sealed.tool_calls, turn.tool_calls
    if sealed.text != turn.text or [call.name for call in calls] != [call.name for call in client_calls]:
        return None
    if any(_arguments(one) != _arguments(other) for one, other in zip(calls, client_calls, strict=True)):
        return None
    ids = {one.id: other.id for one, other in zip(calls, client_calls, strict=True)}
    message = attrs.evolve(
        sealed.message, tool_calls=[attrs.evolve(call, id=ids[call.id]) for call in calls] or None
    )
    segments = [
        attrs.evolve(one, metadata={**one.metadata, "id": ids[str(one.metadata["id"])]})
        if one.type is SegmentType.TOOL_CALL and "type" not in one.metadata and one.metadata.get("id") in ids
        else one
        for one in sealed.segments
    ]
    return attrs.evolve(sealed, id=turn.id, message=message, segments=segments)


def _arguments(call: Any) -> Any:
    try:
        return call.parsed()
    except ToolCallArgumentsError:
        return call.arguments
