"""Answers one request: reads it, asks a server, answers in the client's form, and records the result."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Iterator, Mapping
from contextlib import suppress
from operator import is_not
from time import perf_counter
from typing import Any, Final

import attrs
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope, Send

from crosswalk.convert import ConversionError, WireForm
from crosswalk.errors import ErrorInfo, ErrorKind, MappingError, ProviderError
from crosswalk.formats.reading import ClientRequest
from crosswalk.formats.writing import source_form
from crosswalk.service import Adaptation, ChatRequest, EventStream, LLMService, UnsupportedRequestError
from crosswalk.service.endpoint import is_paid, is_unstarted
from crosswalk.service.setup import PreparedRequest
from crosswalk.text import Redact
from crosswalk.types import ChatMessage, ChatResponse, Segment, StreamEventType
from crosswalk.types.values import new_id
from crosswalk.wire.options import Fields
from crosswalk_serve.answers import (
    Relay,
    StreamWriter,
    carried,
    error_frame,
    is_native,
    native_body,
    relayed,
    whole,
    with_told_call_ids,
    words_for,
    written,
)
from crosswalk_serve.gateway import (
    Conversations,
    Exchange,
    Gateway,
    StoredConversation,
    StoreError,
    input_items,
    refuse_lost_items,
    request_id,
    with_ids,
)
from crosswalk_serve.http import (
    GATEWAY_FAILURE,
    BadRequestError,
    Interruptible,
    Refusal,
    Reply,
    dropped,
    dropped_fields,
    dumped,
    failed,
    final_status,
    for_client,
    info_of,
    is_spent,
    loaded,
    retry_headers,
    word_in,
)
from crosswalk_serve.passthrough import load
from crosswalk_serve.requests import (
    Incoming,
    Seals,
    check_head,
    first_headers,
    foreign_switches,
    header_options,
    load_body,
    read_body,
    read_loaded,
    repetition_headers,
    repetitions,
    with_fields,
)
from crosswalk_serve.routing import (
    Lane,
    ModelRoute,
    by_length,
    is_counted,
    lane_key,
    said_after,
)

_log = logging.getLogger("crosswalk.serve")
_NO_BACKGROUND: Final = "this gateway gives no answer in the background"
_NO_COMPLETIONS: Final = "the server may keep the answer, but this gateway does not ask for it again"
_NOT_STORED: Final = "this gateway keeps no answers"
_ENCRYPTED_REASONING: Final = "reasoning.encrypted_content"
_LEFT_ERROR: Final = ErrorInfo(ErrorKind.SERVER, "the client left before the end of the answer")
_LARGE_SHARE: Final = 1 / 16
"""The share of the store from which an answer may be too large for it, with the conversation before it."""
_UNREADABLE_ERROR: Final = ErrorInfo(ErrorKind.SERVER, "the provider's answer cannot be read", status=502)


class Ask:
    """An ASGI application that answers requests in one form.

    Args:
        gateway: the state that all requests share.
        form: the clients' form.
        conversations: the conversations that requests may continue, or ``None`` for those of the gateway.
        exchange_type: what answers each of them.
    """

    def __init__(
        self,
        gateway: Gateway,
        form: WireForm,
        conversations: Conversations | None = None,
        exchange_type: type[GatewayExchange] | None = None,
    ) -> None:
        self._gateway = gateway
        self._exchange_type = exchange_type or GatewayExchange
        self._form = form
        self._conversations = gateway.conversations if conversations is None else conversations

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        exchange = self._exchange_type(self._gateway, self._form, self._conversations, scope, receive, send)
        try:
            with self._gateway.slot():
                await exchange.run()
        except Refusal as refusal:
            await exchange.refuse(refusal.info, refusal.retry_after, may_repeat=refusal.may_repeat)
        except (BadRequestError, UnsupportedRequestError, ConversionError) as error:
            await exchange.refuse(info_of(error))
        except ClientDisconnect:
            pass
        except Exception:
            _log.exception("request %s failed", exchange.reply.id)
            await exchange.fail()
        finally:
            await exchange.end()


class GatewayExchange(Exchange):
    """A request and its answer.

    Args:
        gateway: the state that all requests share.
        form: the client's form.
        conversations: the conversations that the request may continue.
        scope: the scope of the ASGI request.
        receive: receives messages from the client.
        send: sends messages to the client.

    Attributes:
        reply: the response to the client.
    """

    def __init__(
        self,
        gateway: Gateway,
        form: WireForm,
        conversations: Conversations,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        self._request = Request(scope, receive)
        super().__init__(gateway, self._request)
        self._conversations = conversations
        self._form = form
        self._receive = receive
        self._service: LLMService | None = None
        self._incoming: Incoming
        self._seals: Seals
        self._fields: Fields
        self._asked_turns: tuple[ChatMessage | ChatResponse, ...] | None = None
        self._carried = StoredConversation((), b"")  # what a later request continues
        self._own_input: Any = None  # of a request of Responses
        self._events: EventStream | None = None
        self._unsettled_response: ChatResponse | None = None  # a server has answered, and nobody has counted
        self._writer: StreamWriter | Relay | None = None  # set once a stream has begun
        self._may_repeat = True  # the client: no server can have charged for its request
        self.reply = Reply(form, new_id(), send)

    async def run(self) -> None:
        """Answer the request.

        Raises:
            Refusal: the request is not served.
            starlette.requests.ClientDisconnect: the client left before its request was complete.
        """
        gateway, headers = self._gateway, first_headers(self._request)
        request_id.set(self.reply.id)
        self._caller = gateway.caller(self._request)
        check_head(headers, takes_any=self._form.provider == "ollama")
        body = await read_body(self._request, gateway.config.limits)
        self.reply.is_last = False
        self._seals = Seals(gateway.config, self._caller)
        self._fields = fields = self._load(body)
        interruptible = Interruptible(self._receive)
        key = self._lane_key(body, fields.given)
        on_lane = self._on_lane(key, body, fields.given)
        if on_lane is not None:
            self._incoming, request = on_lane
            self._reservation = await gateway.quotas.admit(self._caller)
        else:
            on_whole_way = await self._on_whole_way(fields, key, interruptible)
            if on_whole_way is None:
                return None
            request = on_whole_way
        await self._ask_server(request, interruptible)

    async def _ask_server(self, request: ChatRequest, interruptible: Interruptible) -> None:
        """Answer the client with the answer to *request*."""
        gateway, headers = self._gateway, first_headers(self._request)
        service, route, incoming = self._service, self._route, self._incoming
        assert service is not None, "one of the two ways has led to it"
        assert route is not None, "likewise"
        self._may_repeat = False
        options = route.retry_options(gateway.config, repetitions(headers))
        with gateway.running(interruptible, self._caller):
            if incoming.request.stream:
                await self._stream(service.stream(request, **options), interruptible)
            else:
                await self._whole(service.complete(request, **options), interruptible)

    def _lane_key(self, body: bytes, fields: Mapping[str, Any]) -> bytes | None:
        """Return what :func:`lane_key` does for the request with these *fields*.

        A budget counts what a request says, so it is read for that. A connection with its own conversations may go on from
        any answer. And the server hears of repetitions.
        """
        headers, route = self._request.headers.raw, self._gateway.router.find(str(fields.get("model")))
        if route is None or self._form in route.for_form(self._form).foreign_forms:
            return None
        if self._has_budget or self._conversations is not self._gateway.conversations:
            return None
        try:
            is_repeated, switches = bool(repetition_headers(headers)), header_options(self._form, headers)
        except BadRequestError:  # the whole way says it
            return None
        return (
            None
            if is_repeated or foreign_switches(self._form, headers)
            else lane_key(self._form, body, fields, switches)
        )

    def _on_lane(
        self, key: bytes | None, body: bytes, fields: Mapping[str, Any]
    ) -> tuple[Incoming, ChatRequest] | None:
        """Return the request with these *fields*, as it was read and for a service, if the lane with this *key* is known."""
        route = None if key is None else self._gateway.router.find(str(fields.get("model")))
        if key is None or route is None or not self._caller.may_ask(route.name):
            return None
        route = route.for_form(self._form)
        service = route.service()
        lane = route.lanes.get((service, key))
        if lane is None:
            return None
        self._route, self._service = route, service
        return lane.incoming, lane.take(body, fields)

    async def _on_whole_way(
        self, fields: Fields, key: bytes | None, interruptible: Interruptible
    ) -> ChatRequest | None:
        """Read the request in *fields*, and return it for a service, or ``None`` if it only loads a model.

        If its lane has a *key*, the next requests of that may take the lane.

        Raises:
            Refusal, BadRequestError: the request is not served.
        """
        gateway, given = self._gateway, dict(fields.given)
        incoming = self._read(fields)
        for header in foreign_switches(self._form, self._request.headers.raw):
            self.reply.dropped.append(f"request.{header}: a request in another format cannot say it")
        if self._form is WireForm.OPENAI_CHAT and given.get("store"):
            self.reply.dropped.append(f"request.store: {_NO_COMPLETIONS}")
        if self._form is WireForm.OPENAI_RESPONSES:
            incoming = await self._with_kept(incoming)
        self._incoming = incoming = self._seals.opened(incoming)
        name = incoming.request.model or ""
        self._route = route = gateway.route(self._caller, name).for_form(self._form)
        if incoming.wants.load is not None:
            await gateway.quotas.admit(self._caller)
            with gateway.running(interruptible, self._caller):
                await self._load_model(route, interruptible)
            return None
        self._incoming = incoming = self._in_foreground(incoming, route)
        incoming_for_server = incoming.without(*self._own_fields(route))
        if route.keeps(self._form):
            keeper = await gateway.kept_state.keeper(self._caller.name, route.servers, incoming_for_server)
            self._route = route = route.at(keeper)
        elif self._form is WireForm.OPENAI_RESPONSES:
            refuse_lost_items(incoming)
        request = self._unkept(incoming_for_server.request, route)
        earlier = await self._conversations.before(self._caller.name, incoming.wants.previous_response_id)
        earlier_turns = earlier.turns
        self._asked_turns = (*earlier_turns, *request.messages)
        turns = (*earlier_turns, *said_after(earlier_turns, request))
        self._carried = StoredConversation(turns, earlier.body, earlier.items)
        turns, giving_servers = await gateway.kept_state.turns_for(
            self._caller.name, route.servers, self._asked_turns
        )
        continued_turns, own_turns = turns[: len(earlier_turns)], turns[len(earlier_turns) :]
        if giving_servers or any(map(is_not, own_turns, request.messages)):
            request = attrs.evolve(request, messages=own_turns, servers=giving_servers)
        asked = route.request(request, name, continued_turns)
        max_cost = route.most_cost(asked, incoming.wants.n) if self._has_budget else 0.0
        self._reservation = await gateway.quotas.admit(self._caller, max_cost)
        self._service = service = route.service()
        if key is not None and (service, key) not in route.lanes:
            asked = service.prepare(asked)
            if isinstance(asked, PreparedRequest):
                lane = Lane.of(route, given, incoming, asked, self.reply.dropped, is_kept=self._is_kept)
                route.learn(service, key, lane)
        return asked

    async def _with_kept(self, incoming: Incoming) -> Incoming:
        """Return *incoming*, a request of Responses, with what this gateway keeps in place of its names.

        It asks for nothing that the gateway does not keep: then the answer says so, too.
        """
        gateway = self._gateway
        if not gateway.stores and incoming.wants.store is not False:
            if incoming.wants.store:
                self.reply.dropped.append(f"request.store: {_NOT_STORED}")
            fields: dict[str, Any] = {"store": False}
            name = incoming.request.model or ""
            route = gateway.router.find(name)
            if route is not None and route.for_form(self._form).reasons(self._form, name):
                given = incoming.request.said.get("include") or ()  # without it, the ids lead nowhere
                fields["include"] = [
                    *given,
                    *([] if _ENCRYPTED_REASONING in given else [_ENCRYPTED_REASONING]),
                ]
            incoming = with_fields(incoming, **fields)
        incoming, self._own_input = await gateway.kept_state.with_items(
            self._caller.name, incoming, self._conversations
        )
        return incoming

    def _unkept(self, request: ClientRequest, route: ModelRoute) -> ClientRequest:
        """Return *request* so that a server of Responses keeps nothing, and gives all of its reasoning, encrypted.

        Clients of other formats hold the whole conversation themselves. Only what they want to have kept is.
        """
        is_own = self._form is WireForm.OPENAI_RESPONSES
        if is_own or request.said.get("store") or not route.keeps(WireForm.OPENAI_RESPONSES):
            return request
        reasons = route.reasons(WireForm.OPENAI_RESPONSES, request.model or "")
        options = {"store": False, **({"encrypted_reasoning": True} if reasons else {})}
        return attrs.evolve(request, extra_options={**request.extra_options, **options})

    def _in_foreground(self, incoming: Incoming, route: ModelRoute) -> Incoming:
        """Return *incoming* without the wish for an answer in the background. Its server alone would know how that ends.

        Raises:
            BadRequestError: nothing of a request for *route* may be dropped.
        """
        if not incoming.wants.background:
            return incoming
        if (route.model.on_unsupported or self._gateway.config.on_unsupported) == "refuse":
            raise BadRequestError(_NO_BACKGROUND, "background")
        self.reply.dropped.append(f"request.background: {_NO_BACKGROUND}")
        return incoming.without("background")

    def _load(self, body: bytes) -> Fields:
        """Parse the JSON in *body*. A Gemini request has its model and its method in the path.

        Raises:
            BadRequestError: it is not a JSON object.
            Refusal: it is for another method.
        """
        if self._form is not WireForm.GEMINI:
            return load_body(body)
        model, _, method = str(self._request.path_params["target"]).rpartition(":")
        is_stream = method == "streamGenerateContent"
        if not (model and (is_stream or method == "generateContent")):
            raise Refusal(ErrorKind.INVALID_REQUEST, "there is no such method here", status=404)
        self.reply.is_array = is_stream and word_in(self._request, "alt", ("json", "sse")) == "json"
        fields = load_body(body)
        fields.give("model", model)
        fields.give("stream", is_stream)
        return fields

    def _read(self, fields: Fields) -> Incoming:
        return read_loaded(self._form, fields, self._request.headers.raw)

    def _turns(self) -> Iterator[ChatMessage | ChatResponse]:
        """Return the conversation that is answered. On its lane, a request is read for that."""
        if self._asked_turns is None:
            self._asked_turns = self._read(self._fields).request.messages
        yield from self._asked_turns

    def _own_fields(self, route: ModelRoute) -> tuple[str, ...]:
        """Return the fields of Responses that the gateway handles. A server that stores answers also gets ``store``."""
        if self._form is not WireForm.OPENAI_RESPONSES:
            return ()
        has_responses_server = any(target.provider == self._form.provider for target in route.model.endpoints)
        return ("previous_response_id",) if has_responses_server else ("previous_response_id", "store")

    async def _load_model(self, route: ModelRoute, interruptible: Interruptible) -> None:
        body: bytes | None = None
        async with interruptible:
            body = await load(route, self._incoming, self._incoming.request.model or "")
        if body is not None:
            await self.reply.whole(body, 200)
        elif interruptible.cause is not None:
            await self.refuse(interruptible.cause, 1)

    # Whole answers.

    async def _whole(self, answering: Awaitable[ChatResponse], interruptible: Interruptible) -> None:
        response: ChatResponse | None = None
        async with interruptible:
            try:
                response = await answering
            except ProviderError as error:
                response = error.response
            except MappingError as error:
                response = self._unreadable(error)
        if response is not None:
            await self._answer(response)
        elif interruptible.cause is not None:
            await self.refuse(interruptible.cause, 1)

    async def _answer(self, response: ChatResponse) -> None:
        self._unsettled_response = response
        self.reply.dropped += dropped(response)
        error = response.error_info
        if error is not None:
            self._may_repeat = _is_free(response)
        if error is not None and not (is_paid(response) and self._keeps_content(response, error)):
            await self._settle(response)
            return await self.refuse(for_client(error, self._redact), _retry_after(response))
        original = carried(response)
        try:
            written = whole(
                self._incoming,
                original,
                self.reply.id,
                self._seal,
                is_mixed=self._is_mixed,
                redact=self._redact,
            )
        except ConversionError as why:
            self.reply.dropped += dropped_fields(getattr(why, "losses", ()), original)
            await self._settle(response)  # it is paid
            raise
        self.reply.dropped += dropped_fields(written.losses, original)
        body = await self._settle(response, written.body)
        await self.reply.whole(body or written.body, written.status)

    def _keeps_content(self, response: ChatResponse, error: ErrorInfo) -> bool:
        """Return whether the client gets the content of an answer that ended with *error*: as it came, or as ``failed``."""
        if (
            self._form is WireForm.OPENAI_RESPONSES
            and response.segments
            and for_client(error, self._redact).message == error.message
        ):
            return True
        return not self._is_mixed and native_body(self._incoming, response) is not None

    # Streams.

    async def _stream(self, events: EventStream, interruptible: Interruptible) -> None:
        ended_response: ChatResponse | None = None
        last_frames, self._events = b"", events
        silence_seconds = self._gateway.config.limits.silence_seconds
        async with interruptible, events, self.reply.kept_alive(silence_seconds):
            try:
                await events.read_on()
                is_failed = events.ready[0].event_type is StreamEventType.ERROR
                if not is_failed or self._shows_failure(events.response):
                    last_frames = await self._stream_on(events)
                ended_response = events.response
            except MappingError as error:
                ended_response = self._unreadable(error)
                if self._writer is not None:
                    unreadable = ended_response.error_info or _UNREADABLE_ERROR
                    last_frames = self._writer.fail(attrs.evolve(unreadable, kind=ErrorKind.SERVER))
        if self._writer is not None:
            if ended_response is None:
                ended_response = events.response
                last_frames = self._writer.fail(interruptible.cause or _LEFT_ERROR)
            await self._end_stream(ended_response, last_frames, self._writer)
        elif ended_response is not None:
            await self._answer(ended_response)
        elif interruptible.cause is not None:
            await self.refuse(interruptible.cause, 1)

    def _shows_failure(self, response: ChatResponse) -> bool:
        """Return whether the events of a failed *response* are sent: where its body would be that of an answer."""
        error, is_responses = response.error_info, self._form is WireForm.OPENAI_RESPONSES
        return (
            is_responses and error is not None and is_paid(response) and self._keeps_content(response, error)
        )

    async def _stream_on(self, events: EventStream) -> bytes:
        """Send events as fast as the client takes them. Return the frames at the end."""
        self._writer = writer = self._writer_of(events)
        await self.reply.begin()
        if self._gateway.metrics is not None and self._route is not None:
            seconds_metric = self._gateway.metrics.first_seconds.labels(self._form.value, self._route.name)
            seconds_metric.observe(perf_counter() - self._start_time)
        while True:
            if isinstance(writer, Relay):
                frames = relayed(writer, events, self._redact)
            else:
                frames = written(writer, events, self._redact)
            events.ready.clear()
            if events.has_ended:
                return frames
            await self.reply.piece(frames)
            await events.read_on()

    def _writer_of(self, events: EventStream) -> StreamWriter | Relay:
        """Pass the events on if client and server speak one format, and otherwise write them anew.

        If the route has several providers, they are written anew with a seal, which names the owner of opaque values.
        """
        sent = events.sent
        words = words_for(self._request.headers, self._gateway.config.reasoning_events)
        if sent is not None and not self._is_mixed and is_native(self._incoming, sent):
            large = self._gateway.config.responses.bytes * _LARGE_SHARE
            return Relay(self._incoming, sent, words, large, self._redact)
        model, adaptations = (None, ()) if sent is None else (sent.model, sent.adaptations)
        about = (self.reply.id, model, self._seal, words, [Adaptation(**one) for one in adaptations])
        return StreamWriter(self._incoming, lambda: events.head, *about)

    @property
    def _is_mixed(self) -> bool:
        return self._route is not None and self._route.is_mixed

    def _seal(self, response: ChatResponse) -> Segment | None:
        """Return the seal of *response*. One in the client's own form needs none if no other provider can get it."""
        if not self._is_mixed and source_form(response) is self._form:
            return None
        return self._seals.of(response, self._form)

    async def _end_stream(self, response: ChatResponse, frames: bytes, writer: StreamWriter | Relay) -> None:
        self.reply.dropped += dropped(response)
        self.reply.dropped += dropped_fields(writer.losses, writer.original or response)
        body = self._to_store(response, writer)
        stored_body = await self._settle(response, body)
        if stored_body is not body and writer.ending is not None:  # the last event can still say so
            frames = writer.ending.without_store(frames)
        await self.reply.end(frames)

    def _to_store(self, response: ChatResponse, writer: StreamWriter | Relay) -> bytes | None:
        """Return the body to store of a streamed *response*, or ``None`` if it is not to be stored, or has no body.

        It is the one that *writer* has told the client, as the end of the stream says it, or as far as it came.
        """
        if not self._is_kept:
            return None
        if writer.ending is not None:
            return dumped(writer.ending.response)
        original = carried(response)
        return whole(
            self._incoming, original, self.reply.id, self._seal, is_mixed=True, redact=self._redact
        ).body

    @property
    def _redact(self) -> Redact:
        assert self._service is not None, "it was asked"
        return self._service.redact

    # Output.

    async def refuse(
        self, error: ErrorInfo, retry_after: float | None = None, *, may_repeat: bool = True
    ) -> None:
        """Answer with *error*. If a stream has begun, its last event reports the error."""
        if self._writer is not None:
            frames = self._writer.fail(error) or error_frame(self._form, error)  # its own end was not sent
            ending = self._writer.ending
            return await self.reply.end(frames if ending is None else ending.without_store(frames))
        if self.reply.is_stream:
            return await self.reply.end(error_frame(self._form, error))
        body, status = failed(self._form, error, self.reply.id)
        may_repeat = may_repeat and self._may_repeat and not is_spent(error)
        headers = retry_headers(retry_after, may_repeat=may_repeat)
        status = final_status(status, self._request.headers.get("user-agent", ""), may_repeat=may_repeat)
        if status == 401:
            headers["www-authenticate"] = "Bearer"
        await self.reply.whole(body, status, headers)

    async def fail(self) -> None:
        """Answer that the gateway failed. What a server has answered until then is paid, and counts."""
        response, events = self._unsettled_response, self._events
        if response is None and events is not None:
            with suppress(Exception):  # no server was asked
                response = events.partial
        try:
            await self.refuse(GATEWAY_FAILURE)
        finally:
            if response is not None:
                await self._settle(response)

    # Records.

    def _unreadable(self, error: MappingError) -> ChatResponse:
        """Return the part that came of an unreadable answer, marked as an error."""
        _log.warning("request %s: an answer cannot be read: %s", self.reply.id, error)
        assert error.partial is not None, "the service says what came"
        # The traceback holds everything that came, and must not wait for the garbage collector.
        cause: BaseException | None = error
        while cause is not None:
            cause.__traceback__, cause = None, cause.__context__
        return error.partial

    async def _settle(self, response: ChatResponse, body: bytes | None = None) -> bytes | None:
        """Count the use of *response*, and record it.

        Args:
            response: the answer.
            body: the body for the client, if it may be requested again.

        Returns:
            *body*. If it says that it is stored, and is not, it says that instead.
        """
        gateway, route, caller = self._gateway, self._route, self._caller
        assert route is not None, "it was asked for"
        self._events = self._unsettled_response = None
        counted_response = by_length(response, self._turns())
        is_priced = gateway.config.costs or gateway.metrics is not None or self._has_budget
        has_counts = is_counted(counted_response)
        dollars = route.cost(counted_response) if is_priced and has_counts else None
        self.reply.dollars = await self._count(
            response.metadata.provider_id,
            response.model,
            counted_response.usage if has_counts else None,
            dollars,
            is_estimated=counted_response is not response,
            stated=response.usage if has_counts else None,
        )
        if gateway.exchanges is not None:
            record_fields: dict[str, Any] = {
                "request_id": self.reply.id,
                "form": self._form.value,
                "model": route.name,
                "key": caller.name,
                "stream": self._incoming.request.stream,
                "seconds": round(perf_counter() - self._start_time, 6),
                "attempts": len(response.attempts),
                "dropped": self.reply.dropped,
            }
            if gateway.config.log.exchange_requests:
                record_fields["request"] = {**self._fields.given, **self._incoming.request.said}
            gateway.exchanges.add(response, record_fields, route.services[0][0].redact)
        stored_answer = loaded(body, mends=True) if body is not None and self._is_kept else {}
        id, is_stored = stored_answer.get("id"), False
        try:
            await self._note_state(response, None if self._incoming.wants.store is False else id)
        except StoreError as error:
            _log.warning(
                "request %s: the state that its server keeps cannot be stored: %s", self.reply.id, error
            )
        if body is not None and id is not None:  # without an id no client can ask for it
            try:
                turn = with_told_call_ids(response, stored_answer)
                items = with_ids(self._carried.items, input_items(self._own_input), id)
                conversation = StoredConversation((*self._carried.turns, turn), body, items)
                store = self._incoming.wants.store
                is_stored = await self._conversations.keep(caller.name, id, conversation, store)
                if store is not False:
                    own_items = items[len(self._carried.items) :]
                    await gateway.kept_state.keep_items(caller.name, id, stored_answer, own_items)
            except StoreError as error:
                _log.warning("request %s: its answer cannot be continued: %s", self.reply.id, error)
        if body is None or is_stored or not stored_answer.get("store"):
            return body
        self.reply.dropped.append("response.store: this answer is not kept")
        return dumped({**loaded(body), "store": False})

    async def _note_state(self, response: ChatResponse, id: str | None) -> None:
        """Note what the server of *response* keeps of it, if a later request can name that. It is stored by its *id*."""
        server = None if self._service is None else self._service.server_of(response)
        if server is not None and response.error_info is None:
            await self._gateway.kept_state.note(self._caller.name, server, self._incoming, response, id)

    @property
    def _is_kept(self) -> bool:
        """Return whether a later request may continue the answer."""
        is_of_responses = self._form is WireForm.OPENAI_RESPONSES
        return is_of_responses and self._conversations.keeps(self._incoming.wants.store)

    @property
    def _has_budget(self) -> bool:
        return self._caller.key is not None and bool(self._caller.key.budgets)

    async def end(self) -> None:
        """Return what is reserved for an answer that did not come, count the request, and log how it ended."""
        await self._record(self.reply.id, self._form.value, self.reply.status, self.reply.dropped)


def _retry_after(response: ChatResponse) -> float | None:
    """Return the seconds after which the server asks for a retry, or ``None`` without such a request."""
    seconds = response.attempts[-1].extra.get("retry_after") if response.attempts else None
    return seconds if isinstance(seconds, int | float) else None


def _is_free(response: ChatResponse) -> bool:
    """Return whether another call for the failed *response* is the second at most that a server works on.

    After several attempts, the client's repetitions would multiply them.
    """
    attempts = response.attempts
    return len(attempts) < 2 and all(
        is_unstarted(one.extra.get("status"), str(one.extra.get("code"))) for one in attempts
    )
