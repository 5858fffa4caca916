"""The service: one interface to any list of servers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, Never, Self, TypedDict, TypeVar, Unpack, overload

import attrs

from crosswalk.config import Settings, apply_settings, load_settings
from crosswalk.errors import ConfigurationError
from crosswalk.mapping.event import Unknown
from crosswalk.mapping.options import ReaderOptions
from crosswalk.plugin.registry import Registry, registry as default_registry
from crosswalk.service.building import OnUnsupported
from crosswalk.service.call_options import CallOptions, refuse_unknown, with_options
from crosswalk.service.client import ClientTransport, check_client, is_plain
from crosswalk.service.concurrency import CallSlots
from crosswalk.service.cooling import Cooling
from crosswalk.service.discovery import ServerDiscovery
from crosswalk.service.endpoint import DISCOVERED, Endpoint, Route, resolve
from crosswalk.service.exchange import Setup
from crosswalk.service.middleware import Middleware
from crosswalk.service.observe import LogObserver, Observer
from crosswalk.service.policy import RetryPolicy, Timeouts
from crosswalk.service.pools import LoopPool, ThreadPool
from crosswalk.service.request import Asked
from crosswalk.service.stream import EventStream
from crosswalk.service.transport import Transport
from crosswalk.service.waits import LoopWait, ThreadWait
from crosswalk.types.response import ChatResponse, new_id, now
from crosswalk.wire.limits import DEFAULT, Limits

if TYPE_CHECKING:
    import httpx2

    from crosswalk.service.answer import AnswerType, JSONAnswer, ProseChoice
    from crosswalk.service.auxiliary_requests import Embeddings, PlainAnswer, TokenCount
    from crosswalk.service.json_stream import JSONStream
    from crosswalk.structured import AnswerCache, Partial

__all__ = ["LLMService"]

T = TypeVar("T")


class ServiceOptions(TypedDict, total=False):
    """The options of :class:`LLMService`, which says what they are."""

    retry: RetryPolicy | int | None
    timeout: Timeouts | float | None
    base_url: str | None
    proxy: str | None
    max_concurrency: int | None
    unknown: Unknown
    on_unsupported: OnUnsupported
    keep_raw: bool
    limits: Limits | None
    client: httpx2.AsyncClient | None
    client_options: Mapping[str, Any] | None
    observers: Iterable[Observer]
    middleware: Iterable[Middleware]
    cache: AnswerCache | None
    settings: Settings | None
    registry: Registry | None
    id_factory: Callable[[], str]
    clock: Callable[[], datetime]
    timer: Callable[[], float]


class LLMService:
    """Asks servers, and gives what they said as one type.

    Keeps its connections: make one and use it for all requests, in one event loop; close it in the end, or use
    ``async with``. :class:`SyncLLMService` is the same without ``await``.

    Args:
        endpoints: what to ask, in order: the next one is asked when one has failed. None at
            all: the default provider of the settings. A request with an option that one of them lacks is sent to none.
            A text is a provider id, a provider and its model (``"ollama:llama3.2"``) or an address.
        retry: what is tried again, or how often a failed attempt is repeated; ``None`` for the defaults.
        timeout: how long an attempt may take: :class:`Timeouts`, or seconds for a whole answer, and in a stream for the next
            byte; ``None`` for the settings' ``timeout_seconds``, else the defaults.
        base_url: the address of a single server, in the place of endpoints; the server is asked what it is.
        proxy: the address of a proxy for all requests; ``None`` for what the environment says.
        max_concurrency: how many calls run at once in an event loop, or in all threads; the others wait. A stream counts
            until it has ended. ``None`` for no limit.
        unknown: ``"keep"`` an event type or finish word that no mapping knows: it is logged once, marked in
            ``provenance``, and of such a word the answer is not ``is_complete``; or ``"raise"``.
        on_unsupported: ``"raise"`` for an option that a provider cannot express, or ``"drop"`` it; what was dropped
            stands in the attempt's ``extra``.
        keep_raw: whether to keep the provider's bytes as the response's ``raw_events``.
        limits: how much of an answer is accepted; ``None`` for the defaults.
        client: the application's own HTTP client, which it also closes; ``None`` for one that is made here.
        client_options: for that one: what ``httpx2.AsyncClient`` takes, such as ``proxy``, ``verify``, ``http2``.
        observers: who is told about every call, beside the log; such as ``crosswalk.service.otel.OpenTelemetry()``.
        middleware: what stands around each call, the outermost first: a generator function of the request; see
            :data:`Middleware`.
        cache: keeps whole answers and gives them where the same is asked again, to the same endpoints; such a response
            has no ``attempts``. ``None`` to ask each time. Errors and answers that are not whole are not kept.
        settings: the user's settings; ``None`` to read them from their file and the environment, and to apply all of
            them: those for logs and ``repr`` count for the whole process.
        registry: where to look up providers; ``None`` for the installed ones.
        id_factory: makes the id where a provider sends none.
        clock: tells the time of creation where a provider sends none.
        timer: a monotonic clock in seconds, by which durations are measured.

    Raises:
        ConfigurationError: no endpoint; one whose address or key nobody tells, or whose plugin builds no requests; a
            wrong setting or argument.
        UnknownProviderError: no such provider. PluginError: it is broken.
    """

    _blocking = False
    """Whether it is to block the thread that asks, where that can be done; then :attr:`blocks`."""

    def __init__(
        self,
        *endpoints: Endpoint | str,
        retry: RetryPolicy | int | None = None,
        timeout: Timeouts | float | None = None,
        base_url: str | None = None,
        proxy: str | None = None,
        max_concurrency: int | None = None,
        unknown: Unknown = "keep",
        on_unsupported: OnUnsupported = "raise",
        keep_raw: bool = True,
        limits: Limits | None = None,
        client: httpx2.AsyncClient | None = None,
        client_options: Mapping[str, Any] | None = None,
        observers: Iterable[Observer] = (),
        middleware: Iterable[Middleware] = (),
        cache: AnswerCache | None = None,
        settings: Settings | None = None,
        registry: Registry | None = None,
        id_factory: Callable[[], str] = new_id,
        clock: Callable[[], datetime] = now,
        timer: Callable[[], float] = time.perf_counter,
        **unknown_options: Never,
    ) -> None:
        refuse_unknown(unknown_options, ServiceOptions.__annotations__)
        observers = _as_observers(observers)
        middleware = _as_middleware(middleware)
        _check_types(
            ("limits", limits, Limits),
            ("settings", settings, Settings),
            ("registry", registry, Registry),
            ("client_options", client_options, Mapping),
            ("keep_raw", keep_raw, bool),
        )
        for name, given in (("id_factory", id_factory), ("clock", clock), ("timer", timer)):
            if not callable(given):
                raise ConfigurationError(f"{name} must be a function", key=name)
        has_own_settings = settings is not None
        settings = load_settings() if settings is None else settings
        if base_url is not None:
            if endpoints:
                raise ConfigurationError("give base_url= to each endpoint", key="base_url")
            endpoints = (Endpoint(base_url=base_url),)
        if not endpoints and settings.default_provider is not None:
            endpoint = Endpoint(settings.default_provider)
            model = endpoint.model or settings.default_model
            endpoints = (endpoint if model is None else attrs.evolve(endpoint, model=model),)
        if not endpoints:
            raise ConfigurationError("no endpoint; give one, or set CROSSWALK_DEFAULT_PROVIDER")
        if on_unsupported not in ("raise", "drop"):
            raise ConfigurationError("on_unsupported is 'raise' or 'drop'", key="on_unsupported")
        if unknown not in ("raise", "keep"):
            raise ConfigurationError("unknown is 'raise' or 'keep'", key="unknown")
        if client is not None and client_options:
            raise ConfigurationError("give client or client_options, not both", key="client")
        if max_concurrency is not None and (type(max_concurrency) is not int or max_concurrency < 1):
            raise ConfigurationError(
                "max_concurrency must be a whole number of at least 1", key="max_concurrency"
            )
        if proxy is not None:
            if client is not None:
                raise ConfigurationError("give proxy= to the client", key="proxy")
            client_options = {**(client_options or {}), "proxy": proxy}
        check_client(client, client_options or {})
        known = default_registry if registry is None else registry
        asked = [_as_endpoint(one) for one in endpoints]
        routes = tuple(_route(endpoint, known) for endpoint in asked)
        http = dict(client_options or {})
        self.blocks = self._blocking and client is None and is_plain(http)
        retry = RetryPolicy.of(retry)
        self._setup = Setup(
            routes=routes,
            transport=_transport(routes, client, http, blocks=self.blocks),
            new_wait=ThreadWait if self.blocks else LoopWait,
            retry=retry,
            timeouts=Timeouts.of(settings.timeout_seconds if timeout is None else timeout),
            on_unsupported=on_unsupported,
            options=ReaderOptions(
                unknown=unknown,
                id_factory=id_factory,
                clock=clock,
                keep_raw=keep_raw,
                limits=limits or DEFAULT,
            ),
            observers=(LogObserver(), *observers),
            timer=timer,
            cooling=Cooling(len(routes), retry, timer),
            known=known.names,
            middleware=middleware,
            discovery=ServerDiscovery(known)
            if any(route.provider == DISCOVERED for route in routes)
            else None,
            slots=None if max_concurrency is None else CallSlots(max_concurrency),
        )
        if cache is not None:
            if not callable(getattr(cache, "get", None)) or not callable(getattr(cache, "put", None)):
                raise ConfigurationError(
                    f"cache must be an AnswerCache, not {type(cache).__name__}", key="cache"
                )
            from crosswalk.service.caching import cached

            innermost = cached(cache, self._setup, blocks=self.blocks)
            self._setup = attrs.evolve(self._setup, middleware=(*middleware, innermost))
        if not has_own_settings:
            apply_settings(settings)

    async def complete(self, request: Asked, **options: Unpack[CallOptions]) -> ChatResponse:
        """The complete answer to *request*, with every attempt in ``attempts``.

        Args:
            request: what is asked.
            options: those of a :class:`ChatRequest`, such as ``temperature=0``, and ``timeout=``, ``retry=``, ``headers=``
                for this call.

        Raises:
            ProviderError: no endpoint answered; its subclass says how the last one failed, and ``response`` holds what
                came of its answer and all attempts. A server that cannot be reached is a ``ServerError``, one that is
                too slow a ``ProviderTimeoutError``.
            MappingError: the last answer cannot be read; ``partial`` holds the same.
            UnsupportedRequestError: an endpoint cannot express the request; nothing was sent to any.
            CrosswalkError: the service was closed, before or meanwhile.
        """
        call = EventStream(*with_options(self._setup, request, options), shows=False)
        with suppress(StopAsyncIteration):
            await call.read_on()  # there are no events: it comes back at the end
        return call.response.raise_for_error()

    def stream(
        self, request: Asked, *, raw_events: bool = False, **options: Unpack[CallOptions]
    ) -> EventStream:
        """The answer to *request* as events, each as soon as its bytes are there; ``.text`` gives its text alone.

        A server's failure is the last event, ``response.error``, with what came before and all attempts. No attempt is
        repeated once a token was shown, unless the retry policy says so.

        Args:
            request: what is asked.
            raw_events: whether each event carries the provider's own, decoded; it takes time, and the response has all
                of them in ``raw_events`` anyway.
            options: see :meth:`complete`.
        """
        return EventStream(*with_options(self._setup, request, options), raw_events=raw_events)

    @overload
    async def complete_json(
        self,
        request: Asked,
        answer: AnswerType[T],
        *,
        instruct: bool = ...,
        partial: Partial | None = ...,
        prose: ProseChoice = ...,
        retries: int = ...,
        **options: Unpack[CallOptions],
    ) -> JSONAnswer[T]: ...
    @overload
    async def complete_json(
        self,
        request: Asked,
        answer: object,
        *,
        instruct: bool = ...,
        partial: Partial | None = ...,
        prose: ProseChoice = ...,
        retries: int = ...,
        **options: Unpack[CallOptions],
    ) -> JSONAnswer[Any]: ...
    async def complete_json(
        self,
        request: Asked,
        answer: Any,
        *,
        instruct: bool = False,
        partial: Partial | None = None,
        prose: ProseChoice = "allow",
        retries: int = 0,
        **options: Unpack[CallOptions],
    ) -> JSONAnswer[Any]:
        """The answer to *request* as a value, and the response that it came from.

        The provider is asked to hold the model to the schema, as far as it can. What the model wrote is read directly,
        else extracted from the text around it, else repaired; an answer that was cut is none.

        Args:
            request: what is asked; where it has a ``response_format``, that one is sent.
            answer: a class of attrs, a dataclass, a typed dict, a named tuple, a pydantic model, an enum, a ``Literal``, a
                union or list of these, a ``Schema`` with invariants, a ``StructuredParser``, or a JSON Schema as a dict.
            instruct: say the schema also in a system message, for servers that do not hold the model to it.
            partial: what to do with an answer that ends in the middle; ``None`` to refuse it.
            prose: whether text may stand around the value: ``"allow"`` or ``"refuse"``.
            retries: how often to send the model what is wrong with its answer, and ask again.
            options: see :meth:`complete`.

        Raises:
            JSONAnswerError: the model answered with something else; ``response`` and ``result`` are there.
            CrosswalkError: as from :meth:`complete`.
        """
        from crosswalk.service.answer import (
            JSONAnswerError,
            asked_again,
            parser_for,
            read_answer,
            with_schema,
        )
        from crosswalk.structured import Partial

        parser = parser_for(answer, prose)
        asked = with_schema(request, parser, instruct=instruct)
        for remaining in range(retries, -1, -1):
            response = await self.complete(asked, **options)
            try:
                return read_answer(response, parser, Partial.REFUSE if partial is None else partial)
            except JSONAnswerError as error:
                if not remaining or not error.result.can_retry:
                    raise
                asked = asked_again(asked, error)
        raise ConfigurationError("retries must be a number from 0 on", key="retries")

    @overload
    def stream_json(
        self,
        request: Asked,
        answer: AnswerType[T],
        *,
        instruct: bool = ...,
        partial: Partial | None = ...,
        prose: ProseChoice = ...,
        **options: Unpack[CallOptions],
    ) -> JSONStream[T]: ...
    @overload
    def stream_json(
        self,
        request: Asked,
        answer: object,
        *,
        instruct: bool = ...,
        partial: Partial | None = ...,
        prose: ProseChoice = ...,
        **options: Unpack[CallOptions],
    ) -> JSONStream[Any]: ...
    def stream_json(
        self,
        request: Asked,
        answer: Any,
        *,
        instruct: bool = False,
        partial: Partial | None = None,
        prose: ProseChoice = "allow",
        **options: Unpack[CallOptions],
    ) -> JSONStream[Any]:
        """The answer to *request* as a value that grows while it comes; takes what :meth:`complete_json` takes.

        Raises:
            ConfigurationError: a parser of several versions.
        """
        from crosswalk.service.answer import parser_for, with_schema
        from crosswalk.service.json_stream import JSONStream

        parser = parser_for(answer, prose)
        asked = with_schema(request, parser, instruct=instruct)
        return JSONStream(self.stream(asked, **options), parser, partial)

    async def post(
        self, path: str, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> PlainAnswer:
        """What the first endpoint says to *body* at *path*: what its API has beside answers, such as a count of tokens.

        It is asked once, with its own address, key and limit of time, and nobody else is.

        Args:
            path: below the endpoint's base URL, such as ``/v1/messages/count_tokens``.
            body: a JSON object.
            headers: those that the API wants beside.

        Raises:
            ProviderError: it cannot be reached, or is too slow. CrosswalkError: the service is closed.
        """
        from crosswalk.service.auxiliary_requests import fetch

        setup = await self._resolved()
        return await fetch(setup, setup.routes[0], "POST", path, body, headers)

    async def models(self) -> tuple[str, ...]:
        """The names of the models that the first endpoint has.

        Raises:
            UnsupportedRequestError: Crosswalk knows no way to ask it. ProviderError: it refuses, or cannot be reached.
        """
        from crosswalk.service.auxiliary_requests import models

        return await models(await self._resolved())

    async def embed(self, texts: str | Iterable[str], *, model: str | None = None) -> Embeddings:
        """*texts* as vectors, of the first endpoint.

        Args:
            texts: a text, or several.
            model: the model; ``None`` for the endpoint's.

        Raises:
            UnsupportedRequestError: its API makes no embeddings, or no model is named. ProviderError: it failed.
        """
        from crosswalk.service.auxiliary_requests import embed

        return await embed(await self._resolved(), texts, model)

    async def count_tokens(self, request: Asked, **options: Unpack[CallOptions]) -> TokenCount:
        """How many input tokens *request* has at the first endpoint; estimated, and marked so, where its API cannot count.

        Raises:
            ProviderError: it failed. UnsupportedRequestError: it cannot express the request.
        """
        from crosswalk.service.auxiliary_requests import count_tokens

        return await count_tokens(*with_options(await self._resolved(), request, options))

    async def _resolved(self) -> Setup:
        discovery = self._setup.discovery
        return self._setup if discovery is None else await discovery.resolve(self._setup, needs_model=False)

    def redact(self, text: str) -> str:
        """*text* without the credentials that the endpoints are sent: some servers repeat them in their errors.

        For what is written down of ``raw_events``, which are as the server sent them; messages are free of them already.
        """
        for route in self._setup.routes:
            text = route.redact(text)
        return text

    async def aclose(self) -> None:
        """End the calls that still run, and close the connections; an application's own client stays open.

        Streams end as by :meth:`EventStream.cancel`, other calls with a ``CrosswalkError``.
        """
        for call in self._setup.open_calls():
            await call.end()
        await self._setup.transport.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"LLMService({', '.join(repr(route.endpoint) for route in self._setup.routes)})"


def _check_types(*arguments: tuple[str, object, Any]) -> None:
    for name, given, kind in arguments:
        if given is not None and not isinstance(given, kind):
            raise ConfigurationError(f"{name} must be {kind.__name__}, not {type(given).__name__}", key=name)


def _as_endpoint(one: Any) -> Endpoint:
    if not isinstance(one, Endpoint | str):
        raise ConfigurationError(
            f"endpoints must be Endpoints, or provider ids, not {type(one).__name__}", key="endpoints"
        )
    return Endpoint(one) if isinstance(one, str) else one


def _as_observers(observers: Any) -> tuple[Observer, ...]:
    given = tuple(observers) if isinstance(observers, Iterable) else ()
    if not isinstance(observers, Iterable) or not all(callable(getattr(o, "started", None)) for o in given):
        raise ConfigurationError("observers must be a list of Observers", key="observers")
    return given


def _as_middleware(middleware: Any) -> tuple[Middleware, ...]:
    given = tuple(middleware) if isinstance(middleware, Iterable) else ()
    if not isinstance(middleware, Iterable) or not all(map(callable, given)):
        raise ConfigurationError("middleware must be a list of generator functions", key="middleware")
    return given


def _transport(
    routes: Iterable[Route], client: httpx2.AsyncClient | None, http: dict[str, Any], *, blocks: bool
) -> Transport:
    """What sends requests: the *client* that is given, or one that needs more than connections; else connections alone."""
    if client is not None or not is_plain(http):
        return ClientTransport(client, http)
    is_secure = any(route.base_url.startswith("https:") for route in routes)
    return (ThreadPool if blocks else LoopPool)(http, is_secure=is_secure)


def _route(endpoint: Endpoint, known: Registry) -> Route:
    # Until the server has been asked what it is, the OpenAI dialect stands in its place; nothing is sent in it.
    mapper = known.mapper("openai" if endpoint.provider == DISCOVERED else endpoint.provider)
    if mapper.build_request is None:
        raise ConfigurationError(
            f"{endpoint.provider}: its plugin builds no requests, so it cannot be asked", key="provider"
        )
    return resolve(endpoint, mapper)


class BlockingService(LLMService):
    """An :class:`LLMService` for code without ``await``.

    Attributes:
        blocks: whether nothing that it awaits suspends, so that a call needs no event loop
            (:func:`crosswalk.service.waits.run`); not so with an HTTP client, or options for one, that need a loop.
    """

    _blocking = True
