"""The Responses API over a WebSocket: a client sends its requests over one connection, and gets the events of the answers.

A message is the body of a request, with the type ``response.create``. It is answered like one over HTTP, with the same keys,
limits and logs. The connection also remembers its last answer, so a request may continue that one even if it is not stored.

Facts: OpenAI's guide "WebSocket mode".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import uuid4

import orjson
from starlette.responses import Response
from starlette.types import Message
from starlette.websockets import WebSocket, WebSocketDisconnect

from crosswalk.convert import StreamConverter, WireForm
from crosswalk.errors import ErrorInfo, ErrorKind
from crosswalk.service import ChatRequest
from crosswalk.types import (
    ChatMessage,
    ChatResponse,
    FinishReason,
    ResponseDelta,
    ResponseMetadata,
    Role,
    UsageInfo,
    dump_json,
)
from crosswalk_serve.answers import framed
from crosswalk_serve.asking import Ask, GatewayExchange
from crosswalk_serve.gateway import (
    Conversations,
    Gateway,
    StoredConversation,
    input_items,
    with_ids,
)
from crosswalk_serve.http import BadRequestError, Interruptible, Refusal, failed, id_headers, info_of
from crosswalk_serve.requests import load_body
from crosswalk_serve.routing import Caller

_FORM: Final = WireForm.OPENAI_RESPONSES
_CONNECTION_PREFIXES: Final = (
    *(b"connection", b"content-", b"expect", b"host", b"origin"),
    *(b"sec-websocket-", b"transfer-encoding", b"upgrade"),
)
"""The beginnings of headers that are about the connection, and not about its requests."""
_BETA_PREFIX: Final = b"responses_websockets"
_SHOWN_HEADERS: Final = ("retry-after", "x-request-id", "x-should-retry")
"""The headers of an error that a client needs."""
"""The beginning of the word for WebSockets in ``OpenAI-Beta``, which is not for the server."""
_BUSY_ERROR: Final = ErrorInfo(
    ErrorKind.RATE_LIMIT,
    "another request waits for the current answer already",
    status=429,
    code="too_many_requests",
)


class ResponsesSocket:
    """The page ``/v1/responses`` for WebSockets.

    Args:
        gateway: the state that all requests share.
    """

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def answer(self, socket: WebSocket) -> None:
        """Answer the requests of one connection, one after the other, until its client leaves."""
        try:
            caller = self._gateway.caller(socket)
        except Refusal as refusal:
            id = str(uuid4())
            body, status = failed(_FORM, refusal.info, id)
            response = Response(body, status, id_headers(_FORM, id), "application/json")
            return await socket.send_denial_response(response)
        await socket.accept()
        await _Connection(self._gateway, socket, caller).run()


class _LastAnswer(Conversations):
    """The stored conversations, and the last one of a connection."""

    def __init__(self, conversations: Conversations) -> None:
        self._conversations = conversations
        self._last: tuple[str, StoredConversation] | None = None

    def keeps(self, store: bool | None) -> bool:
        return True

    async def keep(
        self, owner: str | None, id: str, conversation: StoredConversation, store: bool | None
    ) -> bool:
        self._last = id, conversation
        return await self._conversations.keep(owner, id, conversation, store)

    async def find(self, owner: str | None, id: str) -> StoredConversation | None:
        if self._last is not None and self._last[0] == id:
            return self._last[1]
        return await self._conversations.find(owner, id)


class _Preparation(GatewayExchange):
    """A request that no server is asked. It is remembered, so that the next request may continue it."""

    async def _ask_server(self, request: ChatRequest, interruptible: Interruptible) -> None:
        """Answer the client with an empty answer.

        Raises:
            BadRequestError: the request names what the gateway does not keep.
        """
        for path in self._incoming.without("previous_response_id").state:
            raise BadRequestError("names what the gateway does not keep, so it is not prepared", path)
        id, model = f"resp_{uuid4().hex}", self._incoming.request.model or "-"
        items = with_ids(self._carried.items, input_items(self._own_input), id)
        prepared = StoredConversation(self._carried.turns, b"", items)
        await self._conversations.keep(self._caller.name, id, prepared, store=False)
        empty_response = ChatResponse(
            id=id,
            message=ChatMessage(Role.ASSISTANT, ""),
            finish_reason=FinishReason.STOP,
            usage=UsageInfo.EMPTY,
            metadata=ResponseMetadata("crosswalk", model, timedelta(0)),
            created=datetime.now(UTC),
            model=model,
        )
        converter = StreamConverter(_FORM, lambda: empty_response, request=self._incoming.request.said)
        end_delta = ResponseDelta(finish_reason=FinishReason.STOP)
        events = (*converter.feed(end_delta), *converter.finish(empty_response))
        await self.reply.whole(b"".join(framed(_FORM, event, dump_json(event)) for event in events), 200)


class _Connection:
    """One connection. While it answers a message, another one may wait."""

    def __init__(self, gateway: Gateway, socket: WebSocket, caller: Caller) -> None:
        self._gateway = gateway
        self._socket = socket
        self._caller = caller
        self._conversations = _LastAnswer(gateway.conversations)
        self._ask = Ask(gateway, _FORM, self._conversations)
        self._prepare = Ask(gateway, _FORM, self._conversations, _Preparation)
        self._waiting_message: bytes | None = None
        self._has_left = False

    async def run(self) -> None:
        """Answer the messages until the client leaves."""
        while not self._has_left:
            if self._waiting_message is None:
                await self._take()
            else:
                message, self._waiting_message = self._waiting_message, None
                await self._answer(message)

    async def _take(self) -> None:
        """Wait for the next message, or for the end."""
        message = await self._socket.receive()
        if message["type"] == "websocket.disconnect":
            self._has_left = True
        elif self._waiting_message is not None:
            await self._refuse(_BUSY_ERROR)
        else:
            self._waiting_message = message.get("bytes") or (message.get("text") or "").encode()

    async def _answer(self, message: bytes) -> None:
        try:
            fields = dict(load_body(message).given)
            if fields.pop("type", None) != "response.create":
                raise BadRequestError("expected 'response.create'", "type")
            wants_answer = fields.pop("generate", None) is not False
            body = dump_json({**fields, "stream": True})
            ask = self._ask if wants_answer else self._prepare
            await ask(self._scope(), _Request(body, self).receive, _Reply(self).send)
        except BadRequestError as error:
            await self._refuse(info_of(error))

    def _scope(self) -> dict[str, Any]:
        """Return the scope of a request over HTTP with the headers of the connection."""
        scope = self._socket.scope
        headers = [(b"content-type", b"application/json")]
        for name, value in scope["headers"]:
            if name == b"openai-beta":
                words = map(bytes.strip, value.split(b","))
                value = b", ".join(word for word in words if not word.startswith(_BETA_PREFIX))
            if not name.startswith(_CONNECTION_PREFIXES):
                headers.append((name, value))
        return {**scope, "type": "http", "method": "POST", "headers": headers}

    async def gone(self) -> Message:
        """Wait until the client has left. Meanwhile a message may come."""
        while not self._has_left:
            await self._take()
        return {"type": "http.disconnect"}

    async def send(self, message_bytes: bytes) -> None:
        """Send a message, unless the client has left."""
        if self._has_left:
            return
        try:
            await self._socket.send_text(message_bytes.decode())
        except WebSocketDisconnect:
            self._has_left = True

    async def _refuse(self, error: ErrorInfo) -> None:
        body, status = failed(_FORM, error, "")
        await self.send_error(body, status, {})

    async def send_error(self, body: bytes, status: int, headers: Mapping[str, str]) -> None:
        """Send the error *body* with the HTTP *status*, and those of the *headers* that a client needs."""
        shown_headers = {name: headers[name] for name in _SHOWN_HEADERS if name in headers}
        error = {"type": "error", "status": status, **orjson.loads(body), "headers": shown_headers}
        await self.send(orjson.dumps(error))


class _Request:
    """The messages of one request to the application."""

    def __init__(self, body: bytes, connection: _Connection) -> None:
        self._body: bytes | None = body
        self._connection = connection

    async def receive(self) -> Message:
        """Return the body, and then the end of the connection once it has come."""
        if self._body is None:
            return await self._connection.gone()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


class _Reply:
    """The messages of the application's answer to one request."""

    def __init__(self, connection: _Connection) -> None:
        self._connection = connection
        self._status = 0
        self._headers: dict[str, str] = {}

    async def send(self, message: Message) -> None:
        """Send the events of an answer, or its error."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = {name.decode(): value.decode() for name, value in message["headers"]}
        elif self._status == 200:
            for event in _events(message["body"]):
                await self._connection.send(event)
        else:
            await self._connection.send_error(message["body"], self._status, self._headers)


def _events(frames: bytes) -> Iterator[bytes]:
    """Return the data of the server-sent events in *frames*, without comments."""
    for frame in frames.split(b"\n\n"):
        lines = [line.removeprefix(b"data: ") for line in frame.split(b"\n") if line.startswith(b"data: ")]
        if lines:
            yield b"\n".join(lines)
