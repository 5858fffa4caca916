"""The parts that the calls of a service share: middleware, observers, kept state, and the HTTP request to each endpoint."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator, Mapping
from operator import is_not
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias
from weakref import WeakSet

import attrs

from crosswalk.errors import ConfigurationError, CrosswalkError, ErrorInfo, ErrorKind
from crosswalk.mapping.reader import ReaderOptions
from crosswalk.otel import otel_attributes, otel_provider_name
from crosswalk.request import Adaptation, ChatRequest, HTTPRequest, UnsupportedRequestError
from crosswalk.service.building import OnUnsupported, build
from crosswalk.service.credentials import without_credentials
from crosswalk.service.endpoint import (
    DISCOVERED,
    AttemptFailure,
    Cooling,
    Endpoint,
    RetryPolicy,
    Route,
    Timeouts,
    attributes,
    join_url,
    where,
)
from crosswalk.service.http import CallWait, Transport
from crosswalk.service.way_back import leaves
from crosswalk.text import brief, may_log_content, short_repr, shortened, shown_url
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.json import dump_json
from crosswalk.types.message import ToolCall, ToolCallDelta
from crosswalk.types.response import Alternative, ChatResponse
from crosswalk.types.stream import EventMaker, StreamEvent, StreamEventType
from crosswalk.types.usage import AttemptOutcome, Provenance, ProviderAttempt
from crosswalk.types.values import FinishReason, IncompleteReason, Segment, SegmentType, altered

if TYPE_CHECKING:
    from crosswalk.structured.metrics import AnswerCache

# ------------------------------------------------------------------------------ middleware
# Middleware around each call, and a whole answer, such as one of a middleware, as the events of a stream.


Middleware: TypeAlias = Callable[
    [ChatRequest],
    Generator[ChatRequest | ChatResponse, ChatResponse, None]
    | AsyncGenerator[ChatRequest | ChatResponse, ChatResponse],
]
"""A generator function, possibly asynchronous, that is called with each request.

It yields the request to send, changed or not, and receives the response, whatever its result. It may yield another
response to replace it. If it yields a response instead of the request, that answers the call and nothing is sent. If the
call raises, the generator is closed: its ``finally`` runs.
"""


class Around:
    """The middleware around one call. Close it in the end.

    Args:
        middleware: the first one is the outermost: it sees the request first and the response last.
    """

    def __init__(self, middleware: Iterable[Middleware]) -> None:
        self._middleware = middleware
        self._open_steps: list[tuple[str, Any]] = []

    async def ask(self, request: ChatRequest) -> ChatRequest | ChatResponse:
        """Return the request to send for *request*, or the response if a middleware has answered already.

        Raises:
            ConfigurationError: an item is not a middleware.
        """
        for one in self._middleware:
            name = getattr(one, "__qualname__", type(one).__name__)
            steps = one(request)
            if not isinstance(steps, Generator | AsyncGenerator):
                raise _wrong(name, "must be a generator function")
            self._open_steps.append((name, steps))
            yielded = await _step(steps, None)
            if isinstance(yielded, ChatResponse):
                await _close(self._open_steps.pop()[1])
                return await self.answer(yielded)
            if not isinstance(yielded, ChatRequest):
                raise _wrong(name, f"must yield a ChatRequest first, not {type(yielded).__name__}")
            request = yielded
        return request

    async def answer(self, response: ChatResponse) -> ChatResponse:
        """Return the final response for *response*.

        Raises:
            ConfigurationError: a middleware yielded something other than a response.
        """
        while self._open_steps:
            name, steps = self._open_steps.pop()
            try:
                yielded_response = await _step(steps, response)
            finally:
                await _close(steps)
            if yielded_response is not None and not isinstance(yielded_response, ChatResponse):
                raise _wrong(name, f"must yield a ChatResponse then, not {type(yielded_response).__name__}")
            response = response if yielded_response is None else yielded_response
        return response

    async def aclose(self) -> None:
        """Close those that have not seen a response, the innermost first."""
        while self._open_steps:
            await _close(self._open_steps.pop()[1])


async def _step(steps: Any, response: ChatResponse | None) -> Any:
    """Return the next item of *steps*, or ``None`` at its end."""
    try:
        return steps.send(response) if isinstance(steps, Generator) else await steps.asend(response)
    except (StopIteration, StopAsyncIteration):
        return None


async def _close(steps: Any) -> None:
    if isinstance(steps, Generator):
        steps.close()
    else:
        await steps.aclose()


def _wrong(name: str, problem: str) -> ConfigurationError:
    return ConfigurationError(f"middleware {name} {problem}", key="middleware")


_DELTA_FIELDS = {
    SegmentType.TEXT: "content_delta",
    SegmentType.REASONING: "reasoning_delta",
    SegmentType.REFUSAL: "refusal_delta",
}
_CALL_KEYS = frozenset({"id", "name", "type"})


def replayed(response: ChatResponse) -> list[StreamEvent]:
    """Yield the events of *response*: a delta for each part, and the last one, which carries it."""
    maker = EventMaker()
    events = [StreamEvent(StreamEventType.CREATED)]
    answers: list[ChatResponse | Alternative] = [*response.alternatives, response]
    for answer in answers:
        for delta in _deltas(answer):
            events += maker.events(delta)
    final_delta = ResponseDelta(
        finish_reason=response.finish_reason,
        raw_finish_reason=response.raw_finish_reason,
        usage=response.usage,
        logprobs=response.logprobs,
    )
    return [*events, StreamEvent.terminal(response, maker.numbered(final_delta))]


def _deltas(answer: ChatResponse | Alternative) -> Iterator[ResponseDelta]:
    """Return the parts of *answer*, and for an alternative its end."""
    choice = answer.index if isinstance(answer, Alternative) else 0
    numbered_calls = {call.id: (number, call) for number, call in enumerate(answer.message.tool_calls or ())}
    if not answer.segments and answer.message.text:  # made by hand, of a message alone
        yield ResponseDelta(content_delta=answer.message.text, choice=choice)
    for segment in answer.segments:
        is_call = segment.type is SegmentType.TOOL_CALL
        call = numbered_calls.pop(str(segment.metadata.get("id")), None) if is_call else None
        if call is not None:
            yield _call(call, choice)
            segment_metadata = {
                key: value for key, value in segment.metadata.items() if key not in _CALL_KEYS
            }
        elif segment.type in _DELTA_FIELDS:
            if segment.content:
                text_field: dict[str, Any] = {_DELTA_FIELDS[segment.type]: segment.content}
                yield ResponseDelta(choice=choice, **text_field)
            segment_metadata = dict(segment.metadata)
        else:
            yield ResponseDelta(segment=segment, choice=choice)
            continue
        if segment_metadata or segment.annotations:
            yield ResponseDelta(
                segment=Segment(segment.type, "", segment_metadata, segment.annotations), choice=choice
            )
    for remaining_call in numbered_calls.values():
        yield _call(remaining_call, choice)
    if isinstance(answer, Alternative):
        yield ResponseDelta(
            finish_reason=answer.finish_reason,
            raw_finish_reason=answer.raw_finish_reason,
            logprobs=answer.logprobs,
            choice=choice,
        )


def _call(numbered: tuple[int, ToolCall], choice: int) -> ResponseDelta:
    number, call = numbered
    return ResponseDelta(
        tool_call_delta=ToolCallDelta(number, call.id, call.name, call.arguments, call.kind), choice=choice
    )


# --------------------------------------------------------------------------------- observe
# Observers of calls, and the one that writes the log.


_log = logging.getLogger("crosswalk.service")


@attrs.frozen
class Call:
    """One call of a service, with any number of attempts.

    Attributes:
        id: the correlation id, on every log record and span of the call.
        request: the request.
        route: the first endpoint.
        model: the model that is requested there.
        is_stream: whether the answer is delivered while it arrives.
    """

    id: str
    request: ChatRequest
    route: Route
    model: str
    is_stream: bool


class Observation(Protocol):
    """The notifications about one call."""

    def attempted(self, attempt: ProviderAttempt, route: Route) -> None:
        """An attempt has ended."""

    def ended(self, response: ChatResponse | None, error: BaseException | None) -> None:
        """The call has ended: with *response*, whatever its result, or with *error*, which is raised, or with both."""


class Observer(Protocol):
    """Is notified of every call, in the task that makes it. It must neither wait nor raise."""

    def started(self, call: Call) -> Observation:
        """A call begins."""


class LogObserver:
    """Writes the log: a record for each attempt and one for the call, each with structured extra fields.

    Content is logged only if the settings allow it, as ``crosswalk.content``. Credentials are never logged.
    """

    def started(self, call: Call) -> Observation:
        """A call begins."""
        return _LogObservation(call)


class _LogObservation:
    def __init__(self, call: Call) -> None:
        self._call = call
        self._common_fields = {"crosswalk.call.id": call.id, "gen_ai.operation.name": "chat"}

    def attempted(self, attempt: ProviderAttempt, route: Route) -> None:
        """Log a failure at INFO, a success at DEBUG."""
        level = logging.DEBUG if attempt.outcome is AttemptOutcome.SUCCESS else logging.INFO
        if not _log.isEnabledFor(level):
            return
        extra: dict[str, Any] = {
            **self._common_fields,
            **attributes(route),
            "event.name": "crosswalk.attempt",
            "gen_ai.provider.name": otel_provider_name(attempt.provider_name),
            "gen_ai.request.model": attempt.model,
            "crosswalk.outcome": attempt.outcome.value,
            "crosswalk.latency_ms": attempt.latency_ms,
        }
        if attempt.error is not None:
            extra["error.type"] = attempt.extra.get("kind", "unknown")
            extra["error.message"] = attempt.error
        _log.log(level, "attempt at %s: %s", attempt.provider_name, attempt.outcome.value, extra=extra)

    def ended(self, response: ChatResponse | None, error: BaseException | None) -> None:
        """Log an error, or a finish word that no mapping knows, at INFO, anything else at DEBUG."""
        if not _log.isEnabledFor(logging.INFO):
            return
        has_failed = error is not None or (
            response is not None and response.finish_reason is FinishReason.ERROR
        )
        answers: tuple[ChatResponse | Alternative, ...] = (
            () if response is None else (response, *response.alternatives)
        )
        unknown_words = [
            str(answer.raw_finish_reason)[:60]
            for answer in answers
            if answer.incomplete_reason is IncompleteReason.UNKNOWN_FINISH_REASON
        ]
        level = logging.INFO if has_failed or unknown_words else logging.DEBUG
        if not _log.isEnabledFor(level):
            return
        extra: dict[str, Any] = {
            **self._common_fields,
            "event.name": "crosswalk.call",
            "gen_ai.request.model": self._call.model,
            "gen_ai.request.stream": self._call.is_stream,
        }
        if response is not None:
            extra |= {**otel_attributes(response), "gen_ai.response.id": response.id}
            extra["crosswalk.attempts"] = len(response.attempts)
            if may_log_content():
                extra["crosswalk.content"] = shortened(response.text)
        if error is not None:
            extra["error.type"] = type(error).__name__
        ending = "nothing" if response is None else response.finish_reason.value
        if unknown_words:
            extra["crosswalk.unknown_finish_reason"] = unknown_words[0]
            ending += f" (unknown finish reason {unknown_words[0]!r})"
        _log.log(level, "call ended: %s", ending, extra=extra)


# ------------------------------------------------------------------------------ kept state
# State that only the server of an answer can read, or finds by an id: sealed reasoning, containers, conversations.


KEPT_FIELDS: Final = ("container", "continuation_token", "conversation", "previous_response_id")
"""The fields of an answer that name what its server keeps. A later request of the conversation names it again."""
_ID_FIELDS: Final = ("id", "previous_message_id", "container_id")
"""The fields with an id in what a request names."""


def ids_in(value: Any) -> Iterator[str]:
    """Return the ids that *value*, which names what a server keeps, consists of, or has."""
    if isinstance(value, str):
        yield value
    for name in _ID_FIELDS if isinstance(value, Mapping) else ():
        if isinstance(id := value.get(name), str):
            yield id


def may_name(value: Any) -> bool:
    """Whether *value* has the form of what names something that a server keeps: a text, or an object with texts as ids."""
    return isinstance(value, str) or (
        isinstance(value, Mapping) and all(isinstance(value.get(name), str | None) for name in _ID_FIELDS)
    )


def kept_ids(answer: ChatResponse) -> Iterator[str]:
    """Return the ids of what the server of *answer* keeps with it."""
    extensions = answer.metadata.extensions
    for name in extensions:
        if name in KEPT_FIELDS:
            yield from ids_in(extensions[name])
    for metadata, kind in (
        (segment.metadata, segment.type) for segment in answer.segments if segment.metadata
    ):
        if kind is SegmentType.MEDIA:
            yield from ids_in(metadata)
        yield from ids_in(metadata.get("container_id"))
        yield from ids_in(metadata.get("environment"))


_SEALED_TYPES: Final = ("compaction", "reasoning")
"""The items of the Responses API that their server may seal."""
_SEAL_FIELDS: Final = ("encrypted", "encrypted_content")
"""The fields with a seal of an item: as a part of an answer, and as its server sends it."""


def item_ids(answer: ChatResponse) -> dict[str, bool]:
    """Return the ids of the reasoning, summaries and media in *answer*, and whether it says more of each than the id."""
    reasoning_ids = {id: is_whole for id, is_whole in _sealed_items(answer) if id is not None}
    media = (one for one in answer.segments if one.type is SegmentType.MEDIA and "type" in one.metadata)
    return reasoning_ids | {
        id: bool(one.content) for one in media if (id := _id_in(one.metadata)) is not None
    }


def seals_in(answer: ChatResponse) -> Iterator[str]:
    """Return the texts in *answer*, one of the Responses API, that only its server can read: encrypted reasoning."""
    output_items = answer.metadata.extensions.get("output")
    if isinstance(output_items, tuple):
        reasoning = (one.metadata for one in answer.segments if one.type is SegmentType.REASONING)
        for fields in (*output_items, *reasoning):
            for name in _SEAL_FIELDS if isinstance(fields, Mapping) else ():
                if isinstance(seal := fields.get(name), str) and seal:
                    yield seal


def _sealed_items(answer: ChatResponse) -> Iterator[tuple[str | None, bool]]:
    """Return the id of each item of reasoning and summaries in *answer* that may be sealed, or ``None`` if it has none."""
    output_items = answer.metadata.extensions.get("output")
    for item in output_items if isinstance(output_items, tuple) else ():
        if isinstance(item, Mapping) and item.get("type") in _SEALED_TYPES:
            yield _id_in(item), True
    for segment in answer.segments:
        metadata = segment.metadata
        if segment.type is SegmentType.REASONING and "id" in metadata:
            yield _id_in(metadata), bool(segment.content or metadata.get("encrypted"))


def _id_in(fields: Mapping[str, Any]) -> str | None:
    id = fields.get("id")
    return id if isinstance(id, str) and id else None


def at_another_address(answer: ChatResponse) -> ChatResponse:
    """Return *answer* as one of another server of its provider: only that server can read its state."""
    owner = f"{answer.metadata.provider_id} at another address"
    return attrs.evolve(answer, metadata=attrs.evolve(answer.metadata, provider_id=owner))


class AnswerServers:
    """Which server gave an answer, for the servers of one service. The oldest answers are forgotten.

    Args:
        most: the number of ids to know.
    """

    def __init__(self, most: int = 50_000) -> None:
        self._servers: dict[str, str] = {}
        self._max_answers = most
        self._lock = Lock()

    def note(self, answer: ChatResponse, server: str) -> None:
        """Note that *server* gave *answer*, and whatever it names."""
        with self._lock:
            for id in (answer.id, *kept_ids(answer)):
                self._servers.pop(id, None)
                self._servers[id] = server
            while len(self._servers) > self._max_answers:
                del self._servers[next(iter(self._servers))]

    def of(self, id: str) -> str | None:
        """Return the server that gave the answer *id*, or keeps what has this *id*, or ``None`` if that is unknown."""
        return self._servers.get(id)

    def turns_for(
        self, request: ChatRequest, provider: str, server: str, *, is_alone: bool
    ) -> tuple[ChatRequest, list[Adaptation]]:
        """Return *request* for the *server* of *provider*, one of several servers, and what that changes.

        An answer of another server goes without the state that only that server can read. If the server of an answer is
        unknown, only state that the answer holds in full goes, and an id alone does not. If *is_alone*, *server* is the only
        one of its provider, and all of it goes.

        Raises:
            UnsupportedRequestError: the request itself names what another server keeps.
        """
        named_state = (request.extra_options, request.provider_options.get(provider))
        if any(self.of(str(id)) not in (None, server) for _, id in leaves(named_state)):
            reason = "it names what only another server of its provider keeps"
            raise UnsupportedRequestError(reason, provider=provider, options=["messages"])
        turns, changes = list(request.messages), []
        for number, turn in enumerate(turns):
            if not isinstance(turn, ChatResponse):
                continue
            giver = request.server_of(turn)
            if giver is None and turn.metadata.provider_id == provider:
                giver = self.of(turn.id)
                if giver is None and is_alone:
                    continue
            elif giver is None:
                continue
            state_ids: dict[str | None, bool] = {
                **dict(_sealed_items(turn)),
                **dict.fromkeys(kept_ids(turn), False),
            }
            if giver == server or (all(state_ids.values()) if giver is None else not state_ids):
                continue
            turns[number] = at_another_address(turn)
            field_names_text = ", ".join(name for name in KEPT_FIELDS if name in turn.metadata.extensions)
            reason = f"only the server that gave it keeps it: {field_names_text}"
            changes += [Adaptation.dropped(f"messages[{number}]", reason)] if field_names_text else []
        is_same = not any(map(is_not, turns, request.messages))
        return (request if is_same else altered(request, messages=tuple(turns))), changes


# ----------------------------------------------------------------------------------- setup
# The setup that the calls of a service share, and the HTTP request that each endpoint gets.


HEADERS = {"Content-Type": "application/json", "User-Agent": "crosswalk"}


class OpenCall(Protocol):
    """A call of a service, which the service can end."""

    async def end(self) -> None:
        """End it, and close its connection."""


@attrs.frozen(kw_only=True)
class Setup:
    """The state that all calls of a service share.

    Attributes:
        routes: the endpoints, in the order in which they are tried.
        transport: the HTTP client.
        retry: the retry policy.
        timeouts: the time limits of an attempt.
        on_unsupported: how to treat options that a provider cannot express.
        options: how answers are read.
        observers: the observers of calls.
        timer: a monotonic clock, in seconds.
        cooling: the endpoints that have failed lately.
        calls: the running calls.
        known: the available providers, by name.
        new_wait: makes the waits of a call.
        middleware: the middleware around each call, the outermost first.
        discovery: detects the providers of servers given by their address alone, or ``None`` if there are none.
        slots: limits the number of calls that run at once, or ``None`` for no limit.
        servers: which server gave an answer.
    """

    routes: tuple[Route, ...]
    transport: Transport
    retry: RetryPolicy
    timeouts: Timeouts
    on_unsupported: OnUnsupported
    options: ReaderOptions
    observers: tuple[Observer, ...]
    timer: Callable[[], float]
    cooling: Cooling
    known: Callable[[], Iterable[str]]
    new_wait: Callable[[], CallWait]
    middleware: tuple[Middleware, ...] = ()
    discovery: Discovery | None = None
    slots: Slots | None = None
    calls: WeakSet[OpenCall] = attrs.field(factory=WeakSet)
    servers: AnswerServers = attrs.field(factory=AnswerServers)

    def servers_of(self, provider: str | None = None) -> set[str]:
        """The names of the servers of *provider*, or of all."""
        return {route.server for route in self.routes if provider in (None, route.provider)}

    @property
    def has_several_servers(self) -> bool:
        """Whether the endpoints are at more than one server."""
        return len(self.routes) > 1 and len(self.servers_of()) > 1

    def open_calls(self) -> list[OpenCall]:
        """The running calls."""
        while True:
            try:
                return list(self.calls)
            except RuntimeError:
                pass  # another thread has begun one meanwhile


class Discovery(Protocol):
    """Detects the providers of servers."""

    async def resolve(
        self,
        setup: Setup,
        wait: CallWait,
        deadline: float | None,
        request: ChatRequest = ...,
        *,
        needs_model: bool,
    ) -> Setup:
        """Return *setup* with the routes of all servers, which name a model if that is needed, asked as the call waits."""


class Slots(Protocol):
    """Limits the number of calls that run at once."""

    async def take(self, wait: CallWait) -> None:
        """Wait for a free slot, or until the call is cancelled."""

    def give_back(self, wait: CallWait) -> None:
        """Free the slot of a call that has ended, if it has one."""


class Driver(Protocol):
    """How the calls of a service wait: in an event loop, or in the thread that makes them."""

    def wait(self) -> CallWait:
        """Return the waits of a new call."""

    def slots(self, number: int) -> Slots:
        """Return what lets *number* calls run at once."""

    def transport(self, library: str, client: Any, options: dict[str, Any]) -> Transport:
        """Return what sends the requests through *library*, over the application's *client*, or one with *options*.

        Raises:
            ConfigurationError: one of them is refused.
        """

    def middleware(self, middleware: Middleware) -> Middleware:
        """Return the application's *middleware* as the calls can take it."""

    def caching(self, middleware: Middleware) -> Middleware:
        """Return *middleware* that reads and writes, so that the calls do not wait for that."""


@attrs.frozen
class Prepared:
    """The HTTP request to one endpoint.

    Attributes:
        built: the HTTP request.
        content: its body's bytes.
        url: its URL.
        headers: all of its headers.
    """

    built: HTTPRequest
    content: bytes
    url: str
    headers: Mapping[str, str]


@attrs.frozen(kw_only=True, eq=False, repr=False)
class PreparedRequest(ChatRequest):
    """A request with the HTTP request to each endpoint, made before the call.

    Attributes:
        prepared: the result of :func:`prepared`. It is sent whatever the other fields are.
    """

    prepared: tuple[dict[int, Prepared], dict[int, AttemptFailure]]


def prepared_for(setup: Setup, route: Route, request: ChatRequest) -> Prepared | AttemptFailure:
    """Return the HTTP request to *route* for *request*, or the failure that prevents it."""
    endpoint = route.endpoint
    changes: list[Adaptation] = []
    try:
        if setup.has_several_servers:
            is_alone = len(setup.servers_of(route.provider)) == 1
            request, changes = setup.servers.turns_for(
                request, route.provider, route.server, is_alone=is_alone
            )
        http_request, content = build(
            request,
            route.mapper,
            setup.on_unsupported,
            model=endpoint.model,
            base_url=route.base_url,
            takes_media=endpoint.takes_media,
            model_class=endpoint.model_class,
        )
    except CrosswalkError as error:
        return not_sent(error)
    headers = {**HEADERS, **http_request.headers, **route.headers}
    return Prepared(
        http_request.adapted(*changes), content, join_url(route.base_url, http_request.path), headers
    )


def _is_for_another(error: CrosswalkError | None) -> bool:
    """Whether another endpoint may take it: the *error* names the conversation, or a model that is on another API."""
    options: tuple[str, ...] = getattr(error, "options", ())
    return options == ("model",) or {option.partition("[")[0] for option in options} == {"messages"}


def prepared(setup: Setup, request: ChatRequest) -> tuple[dict[int, Prepared], dict[int, AttemptFailure]]:
    """Return the HTTP request to each endpoint for *request*, by its number, and the unusable endpoints with reasons.

    All are prepared before anything is sent. An endpoint that cannot express the conversation, or whose model is on another
    API, is passed over, as long as another one can. If all are, the first is returned. But a missing option must not move
    the traffic to another endpoint: it fails the call.
    """
    if isinstance(request, PreparedRequest):
        return request.prepared
    unknown_providers = set(request.provider_options)
    if unknown_providers:
        unknown_providers -= {route.provider for route in setup.routes}
    if unknown_providers and (unknown_providers := unknown_providers - set(setup.known())):
        option = f"provider_options[{min(unknown_providers)!r:.80}]"
        error = UnsupportedRequestError(f"{option}: there is no such provider", options=[option])
        return {}, {0: not_sent(error)}
    prepared_requests: dict[int, Prepared] = {}
    failures: dict[int, AttemptFailure] = {}
    for number, route in enumerate(setup.routes):
        outcome = prepared_for(setup, route, request)
        if isinstance(outcome, Prepared):
            prepared_requests[number] = outcome
        elif _is_for_another(outcome.error) and (request.model or route.endpoint.model):
            failures[number] = outcome
        else:
            return {}, {number: outcome}
    return prepared_requests, failures if prepared_requests else dict([*failures.items()][:1])


@brief
@attrs.frozen(kw_only=True, eq=False, repr=False)
class RequestPlan:
    """The HTTP request that a service would send for a request, and how the two differ. Nothing has been sent.

    Its text is for people: where the request would go, and each adaptation in a line.

    Attributes:
        endpoint: the endpoint that would be asked first.
        url: the URL, without a query.
        model: the model.
        request: the HTTP request with all headers. Credentials are replaced by ``<secret>``.
    """

    endpoint: Endpoint
    url: str
    model: str
    request: HTTPRequest

    @property
    def adaptations(self) -> tuple[Adaptation, ...]:
        """All that the server would get otherwise than the request has it, or would not get."""
        return self.request.adaptations

    @property
    def model_class(self) -> str | None:
        """The class of the model whose rules were applied. See :attr:`HTTPRequest.model_class`."""
        return self.request.model_class

    def __str__(self) -> str:
        class_phrase = "no model class" if self.model_class is None else f"model class {self.model_class}"
        lines = [
            f"{self.request.method} {self.url}",
            f"provider {self.endpoint.provider}, model {self.model}, {class_phrase}",
            *(f"{one.kind.value}: {one}" for one in self.adaptations),
            *(() if self.adaptations else ("all that is asked for is sent",)),
        ]
        return "\n".join(lines)

    __repr__ = short_repr("endpoint", "model", "adaptations")


def planned(setup: Setup, request: ChatRequest) -> RequestPlan:
    """Return what would be sent for *request*, and to which endpoint first.

    Raises:
        UnsupportedRequestError, ConfigurationError, PluginError: the request would be sent to no endpoint.
    """
    for route in setup.routes:
        if route.provider == DISCOVERED:
            raise ConfigurationError(
                f"{where(route.host)}: only the first call asks the server what it is; name the provider",
                key="provider",
            )
    prepared_requests, failures = prepared(setup, request)
    for failure in failures.values() if not prepared_requests else ():
        assert failure.error is not None, "nothing was sent"
        raise failure.error
    numbers = [*prepared_requests]
    endpoint_number = next((one for one in numbers if not setup.cooling.is_passed_over(one)), numbers[0])
    route, prepared_request = setup.routes[endpoint_number], prepared_requests[endpoint_number]
    headers = {**prepared_request.headers, **dict.fromkeys(route.headers, "<secret>")}
    body = without_credentials(prepared_request.built.body)
    return RequestPlan(
        endpoint=route.endpoint,
        url=shown_url(prepared_request.url),
        model=request.model or route.endpoint.model or "",
        request=attrs.evolve(prepared_request.built, headers=headers, body=body),
    )


def not_sent(error: CrosswalkError) -> AttemptFailure:
    """Return the failure of a request that *error* prevents from being sent to any endpoint."""
    info = ErrorInfo(ErrorKind.INVALID_REQUEST, str(error), code="not_sent")
    return AttemptFailure(info, error=error, is_final=True)


# ----------------------------------------------------------------------------------- cache
# A cache of whole answers: a middleware that answers repeated requests.


def cached(cache: AnswerCache, setup: Setup) -> Middleware:
    """Return the middleware that answers a request of *setup* from *cache* if it has an answer, and stores new answers.

    Args:
        cache: the store of answers.
        setup: that of the service: the key is the request to each endpoint, whether streamed or not.
    """

    def around(request: ChatRequest) -> Generator[ChatRequest | ChatResponse, ChatResponse, None]:
        key = _key(setup, request)
        cached_answer = None if key is None else cache.get(key)
        response = yield cached_answer if isinstance(cached_answer, ChatResponse) else request
        if key is not None and response is not cached_answer and _is_whole(response):
            cache.put(key, attrs.evolve(response, attempts=()))

    return around


def _key(setup: Setup, request: ChatRequest) -> str | None:
    """Return the key of the answer to *request*, or ``None`` if the request cannot be sent."""
    from crosswalk.structured.metrics import answer_key  # only if there is a cache

    parts = ["crosswalk.response/1"]
    for route in setup.routes:
        outcome = prepared_for(setup, route, altered(request, stream=False))
        if isinstance(outcome, AttemptFailure):
            return None
        headers = dump_json(sorted(outcome.built.headers.items()))
        parts += [
            route.provider,
            outcome.built.method,
            outcome.url,
            headers.decode(),
            outcome.content.decode(),
        ]
    return answer_key(*parts)


def _is_whole(response: ChatResponse) -> bool:
    is_known = Provenance.UNMAPPED not in response.metadata.provenance.values()
    answers: tuple[ChatResponse | Alternative, ...] = (response, *response.alternatives)
    return is_known and all(answer.incomplete_reason is None for answer in answers)
