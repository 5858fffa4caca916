"""The HTTP side of one request: where it may come from, its errors, and its response, whole or as a stream."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import AsyncIterator, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from types import TracebackType
from typing import Any, Final, Self
from uuid import uuid4

import attrs
import orjson
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from crosswalk.convert import ConversionError, DangerousLossError, Loss, WireForm, error_body
from crosswalk.convert.losses import ENVELOPE_KEYS
from crosswalk.errors import CrosswalkError, ErrorInfo, ErrorKind
from crosswalk.formats.writing import source_form
from crosswalk.service import UnsupportedRequestError, adaptations_of
from crosswalk.text import Redact, names_credential
from crosswalk.types import Alternative, ChatResponse, IncompleteReason, SegmentType, dump_json, load_json
from crosswalk.types.json import step, thaw
from crosswalk.wire import chat, messages, ollama, responses
from crosswalk.wire.framing import load_with_halves, mend_halves
from crosswalk.wire.options import FieldError

# ----------------------------------------------------------------------------- http errors
# Errors and refusals, before and after they are written in the client's format.


GATEWAY_FAILURE: Final = ErrorInfo(ErrorKind.SERVER, "the gateway failed", status=500)
LEFT: Final = 499
"""The status in logs if the client has left, as in nginx. It is never sent."""


class Refusal(CrosswalkError):
    """A request is refused. The endpoint writes the error in the client's format.

    Attributes:
        info: the error. Its status is that of the answer.
        retry_after: the seconds until the next attempt, or ``None`` for no advice.
        may_repeat: whether the client may repeat the request. Otherwise a server may have charged for it.
    """

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        status: int | None = None,
        code: str | None = None,
        retry_after: int | None = None,
        may_repeat: bool = True,
    ) -> None:
        super().__init__(message)
        is_retryable = kind in (ErrorKind.RATE_LIMIT, ErrorKind.SERVER, ErrorKind.TIMEOUT)
        self.info = ErrorInfo(kind, message, retryable=is_retryable, status=status, code=code)
        self.retry_after = retry_after
        self.may_repeat = may_repeat


_UNREACHED_MESSAGES: Final = {
    "connect_error": ("cannot be reached", 502),
    "connect_timeout": ("cannot be reached", 504),
    "connection_lost": ("broke off", 502),
    "decoding_error": ("sent a body that cannot be unpacked", 502),
    "transport_timeout": ("took too long", 504),
}
"""Messages in place of those that contain a server's address, by code."""


_SERVER_KINDS: Final = (ErrorKind.SERVER, ErrorKind.UNKNOWN, ErrorKind.TOOL_CALL_VALIDATION)
"""The kinds of errors that are the fault of the server, or of its model."""


def redact_json(value: Any, redact: Redact) -> Any:
    """Return the plain JSON *value* with its texts and names redacted. Its dicts and lists are changed."""
    containers: list[Any] = [[value]]
    for container in containers:  # it grows meanwhile
        is_object = isinstance(container, dict)
        items = list(container.items() if is_object else enumerate(container))
        if is_object:
            container.clear()
        for key, item in items:
            container[redact(key) if is_object else key] = redact(item) if isinstance(item, str) else item
            if isinstance(item, dict | list):
                containers.append(item)
    return containers[0][0]


def for_client(error: ErrorInfo, redact: Redact) -> ErrorInfo:
    """Return a provider's *error* for a client. Refused credentials are the gateway's and not the client's, and the
    addresses of servers are private. *redact* removes credentials from every text, because servers may repeat them."""
    error = attrs.evolve(
        error,
        message=redact(error.message),
        code=None if error.code is None else redact(error.code),
        raw=redact_json(thaw(error.raw), redact),
    )
    if error.code in _UNREACHED_MESSAGES:
        text, status = _UNREACHED_MESSAGES[error.code]
        return attrs.evolve(error, message=f"the server of this model {text}", status=status)
    if error.status is not None and 300 <= error.status < 400:
        text = f"the server of this model gave no answer (HTTP {error.status})"
        return ErrorInfo(ErrorKind.SERVER, text, status=502, code="no_answer")
    if error.kind is ErrorKind.AUTHENTICATION:
        return ErrorInfo(
            ErrorKind.SERVER,
            "the provider has refused the gateway's credentials",
            status=502,
            code="bad_credentials",
        )
    if error.status is None and error.kind in _SERVER_KINDS:
        kind = ErrorKind.SERVER if error.code == "unreadable_answer" else error.kind
        return attrs.evolve(error, status=502, kind=kind)  # the answer cannot be read, or has no end
    return error


def is_spent(error: ErrorInfo) -> bool:
    """Whether money or an allowance is used up, so that no repetition of the request helps."""
    return error.kind in (ErrorKind.RATE_LIMIT, ErrorKind.QUOTA) and not error.retryable


class BadRequestError(CrosswalkError, ValueError):
    """A client's request does not conform to its form. The message names the place and quotes no content.

    Attributes:
        path: the place, such as ``messages[0].content[1].type``, or ``""`` for the body as a whole.
        problem: the problem.
        status: the HTTP status of the response.
    """

    def __init__(self, problem: str, path: str = "", *, status: int = 400) -> None:
        # Where messages are cleaned, what comes after the name of a credential and a colon is taken for its value.
        shown_path = f"`{path}`" if names_credential(path) else path
        super().__init__(f"{shown_path}: {problem}" if path else problem)
        self.path = path
        self.problem = problem
        self.status = status


_NUMBER: Final = re.compile(r"-?[0-9]{1,9}")


def number_in(request: Request, name: str, default: int, bounds: range) -> int:
    """Return the whole number *name* of the query of *request*, or *default* without one.

    Raises:
        BadRequestError: it is none, or not within *bounds*.
    """
    value = request.query_params.get(name)
    if value is None:
        return default
    if not _NUMBER.fullmatch(value) or int(value) not in bounds:
        raise BadRequestError(f"must be a whole number from {bounds[0]} to {bounds[-1]}", name)
    return int(value)


def word_in(request: Request, name: str, words: Sequence[str]) -> str:
    """Return the value *name* of the query of *request*, or the first of its *words* without one.

    Raises:
        BadRequestError: it is none of them.
    """
    value = request.query_params.get(name, words[0])
    if value not in words:
        raise BadRequestError(f"must be one of {', '.join(words)}", name)
    return value


def form_of(request: Request) -> WireForm:
    """Return the form that the sender of *request* reads, for requests that do not reach an endpoint of any form."""
    return form_at(request.url.path, request.headers)


def form_at(path: str, headers: Container[str]) -> WireForm:
    """Return the form for a request for *path* with these *headers*, by name in lower case."""
    if path.startswith("/api/"):
        return WireForm.OLLAMA
    is_google = path.startswith("/v1beta/") or "x-goog-api-key" in headers
    if is_google or path.endswith(WireForm.GEMINI.paths):
        return WireForm.GEMINI
    is_anthropic = "anthropic-version" in headers or path.startswith("/v1/messages")
    return WireForm.ANTHROPIC if is_anthropic else WireForm.OPENAI_CHAT


_THREADS_UNSUPPORTED: Final = "thread_unsupported_request"
"""Anthropic's code for a request that no thread can hold. Then its SDKs send the whole conversation."""
_THREAD_NOT_FOUND: Final = "thread_not_found"
"""Anthropic's code for a thread that is not there. Then its SDKs begin a new one."""


def info_of(error: CrosswalkError) -> ErrorInfo:
    """What is wrong with a request, for :func:`failed`: its place in the request is the ``param`` of OpenAI's form.

    An answer may be at fault, too, if the client's format cannot express the action that it asks for.
    """
    if isinstance(error, DangerousLossError):
        message = f"the answer cannot be written in the format of this request: {error.losses[0].rule.why}"
        return ErrorInfo(ErrorKind.SERVER, message, status=502, code="unsupported_answer")
    if isinstance(error, ConversionError):
        message = "the answer cannot be written in the format of this request"
        return ErrorInfo(ErrorKind.SERVER, message, status=502, code="unsupported_answer")
    places = error.options if isinstance(error, UnsupportedRequestError) else ()
    param = error.path if isinstance(error, BadRequestError) else (places[0] if places else "")
    status = error.status if isinstance(error, BadRequestError) else 400
    error_body: dict[str, Any] | None = {"error": {"param": param}} if param else None
    if error_body is not None and param == "thread":
        is_unknown = isinstance(error, BadRequestError)
        error_body["error"]["details"] = {
            "error_code": _THREAD_NOT_FOUND if is_unknown else _THREADS_UNSUPPORTED,
            "unsupported": [param],
        }
    return ErrorInfo(ErrorKind.INVALID_REQUEST, str(error), status=status, raw=error_body)


_GOOGLE_WORD: Final = re.compile("[A-Z_]+")


def worded(form: WireForm, error: ErrorInfo) -> ErrorInfo:
    """Return *error* with words of the API of *form*: no code of Google's for others, and the client's name of the place."""
    if form is WireForm.GEMINI:
        return error
    if _GOOGLE_WORD.fullmatch(error.code or ""):
        error = attrs.evolve(error, code=None)
    place = error.raw.get("error") if isinstance(error.raw, Mapping) else None
    if form is WireForm.OPENAI_RESPONSES and isinstance(place, Mapping) and place.get("param") == "messages":
        error = attrs.evolve(error, raw={"error": {**place, "param": "input"}})
    return error


def failed(form: WireForm, error: ErrorInfo, request_id: str) -> tuple[bytes, int]:
    """Return the body of *error* for a client of *form*, and its HTTP status. Anthropic's repeats the *request_id*."""
    converted_error = error_body(worded(form, error), form)
    if form is not WireForm.ANTHROPIC:
        return converted_error.value, converted_error.status
    body = load_json(converted_error.value)
    given_error = (
        error.raw.get("error") if isinstance(error.raw, Mapping) else None
    )  # or any other JSON, or a text
    details = given_error.get("details") if isinstance(given_error, Mapping) else None
    if isinstance(details, Mapping) and isinstance(details.get("error_code"), str):
        body["error"]["details"] = dict(details)  # by this Anthropic's SDKs know how to go on
    return dump_json({**body, "request_id": request_id}), converted_error.status


def id_headers(form: WireForm, request_id: str) -> dict[str, str]:
    """The headers in which a client of *form* looks for the id of its request."""
    headers = {"x-request-id": request_id}
    return {**headers, "request-id": request_id} if form is WireForm.ANTHROPIC else headers


def cost_headers(dollars: float | None) -> dict[str, str]:
    """The header with the cost of an answer in US *dollars*, or none if that is unknown."""
    return {} if dollars is None else {"x-crosswalk-cost-usd": f"{dollars:.9f}"}


def retry_headers(seconds: float | None, *, may_repeat: bool) -> dict[str, str]:
    """The headers that tell a client's SDK whether to repeat a failed request, and after how many *seconds*."""
    headers = {} if seconds is None else {"retry-after": str(math.ceil(seconds))}
    return headers if may_repeat else {**headers, "x-should-retry": "false"}


_AI_SDK: Final = re.compile(r"(?:^|\s)ai-sdk/")
"""A word of the ``User-Agent`` of Vercel's AI SDK."""
_FAILED_DEPENDENCY: Final = 424


def final_status(status: int, agent: str, *, may_repeat: bool) -> int:
    """Return the HTTP status for a client with this ``User-Agent``, so that it repeats no request that it may not repeat.

    Vercel's AI SDK looks at the status alone, and not at ``x-should-retry``.
    """
    is_repeated = _AI_SDK.search(agent) is not None and (status in (408, 409, 429) or status >= 500)
    return _FAILED_DEPENDENCY if is_repeated and not may_repeat else status


def error_response(request: Request, error: Exception, id: str) -> Response:
    """Return the response to *request*, called *id*, that reports *error* in the format of its sender."""
    headers: dict[str, str] = {}
    may_repeat = True
    if isinstance(error, Refusal):
        error_info, may_repeat = error.info, error.may_repeat
        headers = retry_headers(error.retry_after, may_repeat=may_repeat)
    elif isinstance(error, BadRequestError | UnsupportedRequestError):
        error_info = info_of(error)
    elif isinstance(error, FieldError):
        error_info = info_of(BadRequestError(error.problem, error.path))
    elif isinstance(error, HTTPException):
        message = f"{error.detail}: there is no such page here, or not for {request.method}"
        error_info = ErrorInfo(ErrorKind.INVALID_REQUEST, message, status=error.status_code)
        headers = dict(error.headers or {})
    elif isinstance(error, ClientDisconnect):
        return Response(status_code=LEFT)
    else:  # a server may have been asked, and the HTTP server closes the connection
        error_info, may_repeat = GATEWAY_FAILURE, False
        headers = {"connection": "close", **retry_headers(None, may_repeat=may_repeat)}
    form = form_of(request)
    body, status = failed(form, error_info, id)
    status = final_status(status, request.headers.get("user-agent", ""), may_repeat=may_repeat)
    return Response(body, status, {**id_headers(form, id), **headers}, "application/json")


async def handle_error(request: Request, error: Exception) -> Response:
    """Handle *error* as Starlette's applications do."""
    return error_response(request, error, str(uuid4()))


class Origins:
    """Refuses requests of web pages in a browser, except for *origins*: a page would act for the user who reads it."""

    def __init__(self, app: ASGIApp, origins: frozenset[str]) -> None:
        self._app = app
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer it with a refusal."""
        app = self._app
        if scope["type"] in ("http", "websocket"):
            origins = [value.decode("latin-1") for name, value in scope["headers"] if name == b"origin"]
            if origins and not ("*" in self._origins or self._origins.issuperset(origins)):
                if scope["type"] == "websocket":
                    return await send({"type": "websocket.close"})
                refusal = Refusal(
                    ErrorKind.PERMISSION, "web pages of this origin may not ask here", status=403
                )
                app = await handle_error(Request(scope), refusal)
        await app(scope, receive, send)


# ------------------------------------------------------------------------------ http reply
# The HTTP side of one request: the response, whole or as a stream that is kept alive, the end if the client leaves, and
# the
# names of the fields that did not reach the client or the server.


_KEEP_ALIVE_SIGNS: Final = {
    **dict.fromkeys(
        (WireForm.OPENAI_CHAT, WireForm.OPENAI_COMPLETIONS, WireForm.OPENAI_RESPONSES), b": \n\n"
    ),
    WireForm.ANTHROPIC: b'event: ping\ndata: {"type":"ping"}\n\n',
}
"""The sign that a stream is still open. Ollama's streams have no comments, and Google's SDK fails at one."""


def loaded(data: bytes, *, mends: bool = False) -> Any:
    """Return the value of the JSON text *data*. Halves of surrogate pairs stay, or become U+FFFD if it *mends* them.

    Servers cut a character in two, and JSON allows it.

    Raises:
        ValueError: it is not JSON.
        RecursionError: it has halves, and is nested too deeply.
    """
    try:
        return load_json(data)
    except orjson.JSONDecodeError as error:
        if "surrogate" not in error.msg:
            raise
    value = load_with_halves(data)
    if mends:
        mend_halves(value)
    return value


def dumped(value: Any) -> bytes:
    """Return the JSON text of *value*. Halves of surrogate pairs are written as escapes, as their server has sent them."""
    try:
        return dump_json(value)
    except TypeError:
        return json.dumps(value, separators=(",", ":")).encode()


_MODEL: Final = re.compile(rb'("model"\s*:\s*)"(?:[^"\\]|\\.)*"')
_MOST_PLACES: Final = 4
"""The number of places with the name of a model among which its own is looked for."""
_ESCAPED_NAME: Final = b"\\u006"
"""How a text in JSON begins that spells a letter of ``model`` by its number."""


def named(body: bytes, fields: Mapping[str, Any], model: str | None) -> bytes:
    """Return *body*, the JSON object *fields*, with the name *model* in place of the one there, and with all other bytes.

    It is written anew if the place of the name is not certain, and unchanged if it has no name or *model* is ``None``.
    """
    own_name = fields.get("model")
    if model is None or model == own_name or type(own_name) is not str:
        return body
    named_bodies = (
        b"".join((body[: place.end(1)], dump_json(model), body[place.end() :]))
        for place in islice(_MODEL.finditer(body), _MOST_PLACES)
    )
    if body.count(b'"model"') == 1 and _ESCAPED_NAME not in body:
        return next(named_bodies)  # the only such text is the name of the field, before a text
    wanted = {**loaded(body), "model": model}
    return next((one for one in named_bodies if loaded(one) == wanted), None) or dumped(wanted)


def media_type(form: WireForm) -> str:
    """Return the content type of streams in *form*."""
    return "application/x-ndjson" if form.provider == "ollama" else "text/event-stream"


class Reply:
    """The response to one request.

    Args:
        form: the client's form.
        id: the id of the request.
        send: sends ASGI messages to the client.

    Attributes:
        id: the id of the request.
        status: the HTTP status that was sent. 499 if the client has left before.
        dropped: the fields that did not reach the server or the client.
        dollars: what the answer costs in US dollars, or ``None`` if that is unknown or private.
        is_last: whether further input on the connection is not read.
        is_stream: whether the head of a stream was sent.
        is_array: whether the events of a stream are sent as one JSON array, as Gemini does without ``alt=sse``.
    """

    def __init__(self, form: WireForm, id: str, send: Send) -> None:
        self._form = form
        self._send = send
        self._lock = asyncio.Lock()
        self._sent_at = 0.0
        self.id = id
        self.status = LEFT
        self.dropped: list[str] = []
        self.dollars: float | None = None
        self.is_last = True
        self.is_stream = False
        self.is_array = False
        self._is_empty = True  # the array

    async def whole(self, body: bytes, status: int, headers: Mapping[str, str] | None = None) -> None:
        """Send a complete response with a JSON *body*."""
        all_headers = {"content-length": str(len(body)), **(headers or {})}
        await self._head(status, "application/json", all_headers)
        await self._body(body, more=False)

    async def begin(self) -> None:
        """Send the head of a stream, unless it was sent."""
        async with self._lock:
            await self._begin()

    async def piece(self, frames: bytes) -> None:
        """Send a part of a stream."""
        async with self._lock:
            await self._body(frames, more=True)

    async def end(self, frames: bytes) -> None:
        """Send the end of a stream, with a comment about dropped fields if its format has comments."""
        if self.dropped and self._form in _KEEP_ALIVE_SIGNS:
            frames += f": x-crosswalk-dropped: {header_of(self.dropped)}\n\n".encode()
        await self._body(frames, more=False)

    @asynccontextmanager
    async def kept_alive(self, seconds: float) -> AsyncIterator[None]:
        """In this block, show the client of a stream after each *seconds* of silence that the answer is still coming.

        The first sign is the head of the stream. Formats without a sign for it get the head alone.
        """
        loop, tasks = asyncio.get_running_loop(), list[asyncio.Task[None]]()
        self._sent_at = loop.time()
        timer = loop.call_later(seconds, lambda: tasks.append(loop.create_task(self._keep_alive(seconds))))
        try:
            yield
        finally:
            timer.cancel()
            for task in tasks:
                task.cancel()
                # The next piece reports a client that left.
                await asyncio.gather(task, return_exceptions=True)

    async def _keep_alive(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        while True:
            wait_seconds = self._sent_at + seconds - loop.time()
            if wait_seconds > 0:
                await asyncio.sleep(wait_seconds)
                continue
            async with self._lock:
                await self._begin()
                await self._body(_KEEP_ALIVE_SIGNS.get(self._form, b""), more=True)

    async def _begin(self) -> None:
        if not self.is_stream:
            self.is_stream = True
            content_type = "application/json" if self.is_array else media_type(self._form)
            await self._head(200, content_type, {"cache-control": "no-store"})

    async def _head(self, status: int, content_type: str, headers: Mapping[str, str]) -> None:
        self.status = status
        sent_headers = {"content-type": content_type, **id_headers(self._form, self.id), **headers}
        if self.dropped:
            sent_headers["x-crosswalk-dropped"] = header_of(self.dropped)
        sent_headers |= cost_headers(self.dollars)
        if self.is_last:
            sent_headers["connection"] = "close"
        header_pairs = [(name.encode(), value.encode()) for name, value in sent_headers.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": header_pairs})

    async def _body(self, body: bytes, *, more: bool) -> None:
        self._sent_at = asyncio.get_running_loop().time()
        if self.is_array and self.is_stream:
            body = b"".join(map(self._item, body.split(b"\n\n")[:-1]))
            body += b"" if more else self._opened(b"") + b"]"
        await self._send({"type": "http.response.body", "body": body, "more_body": more})

    def _item(self, event: bytes) -> bytes:
        """Return a server-sent *event* as an item of the array, with the sign that stands before it."""
        lines = (line.removeprefix(b"data: ") for line in event.split(b"\n"))
        return self._opened(b",\r\n") + b"\n".join(lines)

    def _opened(self, sign: bytes) -> bytes:
        """Return the beginning of the array, or *sign* if there is something in it."""
        sign, self._is_empty = b"[" if self._is_empty else sign, False
        return sign


class Interruptible:
    """A block of code that is cancelled when the client leaves, or by :meth:`interrupt`. Use it with ``async with``.

    Afterwards :attr:`has_left` and :attr:`cause` hold the reason: a cancellation from here raises nothing outside. Any other
    cancellation passes through.

    Args:
        receive: that of the ASGI request. Its body has been read.

    Attributes:
        has_left: whether the client has left.
        cause: the message to the client if the gateway ended the block, or ``None`` if it did not.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._task: asyncio.Task[object] | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._is_cancelled = False
        self.has_left = False
        self.cause: ErrorInfo | None = None

    def interrupt(self, cause: ErrorInfo) -> None:
        """End the block, with *cause* for the client."""
        if self._task is not None and not self._is_cancelled:
            self.cause = cause
            self._cancel()

    async def __aenter__(self) -> Self:
        self._task = asyncio.current_task()
        self._watcher = asyncio.create_task(self._watch())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> bool:
        task, self._task = self._task, None
        assert task is not None, "the block was entered"
        assert self._watcher is not None, "likewise"
        self._watcher.cancel()
        if self._is_cancelled and task.uncancel() == 0:
            return kind is not None and issubclass(kind, asyncio.CancelledError)
        return False

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.has_left = True
        if not self._is_cancelled:
            self._cancel()

    def _cancel(self) -> None:
        assert self._task is not None, "who leaves the block ends the watcher"
        self._is_cancelled = True
        self._task.cancel()


def _count_names(counts: Mapping[str, str], details: Mapping[str, str]) -> dict[str, str]:
    paths = {**counts, **{f"details.{name}": path for name, path in details.items()}}
    return {name: f"usage.{path}" for name, path in paths.items()}


_COUNT_NAMES: Final[Mapping[WireForm | None, Mapping[str, str]]] = {
    WireForm.OPENAI_CHAT: _count_names(chat.COUNTS, chat.DETAILS),
    WireForm.OPENAI_RESPONSES: {
        **_count_names(responses.COUNTS, responses.DETAILS),
        "details.web_search_requests": "tool_usage.web_search.num_requests",
    },
    WireForm.ANTHROPIC: _count_names(messages.COUNTS, messages.DETAILS),
    WireForm.OLLAMA: ollama.COUNTS,
}
"""Where each API has its token counts."""
_CONTENT_PATHS: Final = {
    WireForm.OPENAI_CHAT: "choices[0].message.",
    WireForm.OPENAI_RESPONSES: "output[].",
    WireForm.ANTHROPIC: "content[].",
    WireForm.OLLAMA: "message.",
}
"""Where each API has what the model said."""
_ARGUMENT_PATHS: Final = {
    WireForm.OPENAI_CHAT: "choices[0].message.tool_calls[].function.arguments",
    WireForm.OPENAI_RESPONSES: "output[].arguments",
    WireForm.ANTHROPIC: "content[].input",
    WireForm.OLLAMA: "message.tool_calls[].function.arguments",
}
"""Where each API has the arguments of a call."""
_ANSWER_KEYS: Final = {WireForm.OPENAI_CHAT: "choices", WireForm.GEMINI: "candidates"}
"""Where each API has further answers."""
_OPAQUE_KEYS: Final = {WireForm.OPENAI_RESPONSES: "encrypted_content", WireForm.ANTHROPIC: "data"}
"""The name of encrypted reasoning."""
_EXTENSIONS_PATH: Final = "metadata.extensions"
_BEGINNINGS: Final = re.compile(r"metadata\.extensions\.output\[\d+\]\.added\b")
"""What items of Responses had when they began. Complete ones have something newer."""
_MAX_PATHS: Final = 20
_LONGEST: Final = 1000


def dropped_fields(losses: Iterable[Loss], response: ChatResponse) -> list[str]:
    """The fields of the server's answer that the client does not get, and a finish word that no mapping knows.

    Args:
        losses: those of the report of the conversion, without the harmless ones.
        response: the converted answer.
    """
    names: list[str] = []
    answers: tuple[ChatResponse | Alternative, ...] = (response, *response.alternatives)
    for answer in answers:
        if answer.incomplete_reason is IncompleteReason.UNKNOWN_FINISH_REASON:
            names.append(f"finish_reason: {str(answer.raw_finish_reason)[:60]!r} is unknown")
    for loss in losses:
        if loss.path != "usage.reasoning_tokens":  # they are among those of the answer
            names += _names(loss.path, response, source_form(response))
    return names


def _names(path: str, response: ChatResponse, form: WireForm | None) -> Iterator[str]:
    """The names of the field *path* of *response*, a canonical path, in the server's API."""
    if path.startswith(_EXTENSIONS_PATH):
        for leaf_path, name in _leaves("metadata.extensions", "", response.metadata.extensions.thawed()):
            is_below = leaf_path == path or leaf_path.startswith((f"{path}.", f"{path}["))
            if is_below and not _BEGINNINGS.match(leaf_path):
                yield name.removeprefix(".")
    elif path.startswith("usage."):
        count_name = path.removeprefix("usage.")
        yield _COUNT_NAMES.get(form, {}).get(count_name, path)
    elif path.startswith("segments["):
        yield from _segment(path, response, form)
    elif form in _ARGUMENT_PATHS and path.startswith("message.tool_calls[") and path.endswith("].arguments"):
        yield _ARGUMENT_PATHS[form]
    elif form in _ANSWER_KEYS and path.startswith("alternatives["):
        number, _, field = path.removeprefix("alternatives[").partition("]")
        yield f"{_ANSWER_KEYS[form]}[{response.alternatives[int(number)].index}]{field}"
    elif path not in ENVELOPE_KEYS:
        yield path


def _leaves(path: str, name: str, value: Any) -> Iterator[tuple[str, str]]:
    """The values below *path* that say something: the canonical path of each, and its *name* in the server's API.

    They differ in lists: of a list of objects only those with further fields are kept, each with its place as ``index``.
    """
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in ENVELOPE_KEYS or key == "service_tier":
                yield from _leaves(path + step(key), name + step(key), inner)
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for position, item in enumerate(value):
            number = item.get("index", position) if isinstance(item, dict) else position
            yield from _leaves(f"{path}[{position}]", f"{name}[{number}]", item)
    elif value not in (None, "", [], 0) or value is False:
        yield path, name


def _segment(path: str, response: ChatResponse, form: WireForm | None) -> Iterator[str]:
    """The name of a part of the answer, or of a field of it."""
    number, _, field = path.removeprefix("segments[").partition("]")
    segment = response.segments[int(number)]
    name = field.removeprefix(".metadata").removeprefix(".").partition(".")[0]
    prefix = "" if form is None else _CONTENT_PATHS.get(form, "")
    if name in ENVELOPE_KEYS:
        return
    if segment.type is SegmentType.TOOL_CALL and name == "content" and form in _ARGUMENT_PATHS:
        yield _ARGUMENT_PATHS[form]
        return
    if name == "encrypted" and form in _OPAQUE_KEYS:
        name = _OPAQUE_KEYS[form]
    is_part = name in ("", "content") or name.startswith("annotations") or not prefix
    yield f"{prefix}{segment.type}{field.replace('.metadata', '', 1)}" if is_part else f"{prefix}{name}"


_SUMMARY: Final = ("reasoning.summary:", "reasoning.generate_summary:")


def dropped(response: ChatResponse) -> list[str]:
    """The adaptations of the request to the server of *response*, with the reasons.

    A summary for a client of Responses is none, if there is reasoning: the answer has that in its place.
    """
    has_summary = any(one.type is SegmentType.REASONING for one in response.segments)
    named = (str(one) for one in adaptations_of(response))
    return [f"request.{one}" for one in named if not (has_summary and one.startswith(_SUMMARY))]


_UNPLAIN: Final = re.compile("[^ -~]")
"""A character that a header does not take, or not everywhere."""


def header_of(paths: Iterable[str]) -> str:
    """*paths* as the value of a header: each once, in plain characters, at most 20 of them and 1,000 characters."""
    unique_paths = list(dict.fromkeys(paths))
    shown_paths: list[str] = []
    length = 0
    for path in unique_paths[:_MAX_PATHS]:
        plain_path = _UNPLAIN.sub("?", path.replace(",", ";"))
        length += len(plain_path) + 2
        if length > _LONGEST:
            break
        shown_paths.append(plain_path)
    further_count = len(unique_paths) - len(shown_paths)
    return ", ".join([*shown_paths, f"and {further_count} more"] if further_count else shown_paths)
