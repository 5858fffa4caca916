"""The service: one interface to any list of servers, and its arguments, checked and converted."""

from __future__ import annotations

import inspect
import time
from asyncio import to_thread
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from datetime import datetime
from functools import partial
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Literal,
    ParamSpec,
    Self,
    TypeAlias,
    TypeVar,
    Unpack,
    overload,
)
from urllib.parse import unquote, urlsplit

import attrs

from crosswalk.config import COUNT_OR_NONE, Settings, apply_settings, check_type, load_settings
from crosswalk.errors import ConfigurationError, UnknownProviderError
from crosswalk.mapping.event import Unknown
from crosswalk.mapping.reader import ReaderOptions
from crosswalk.plugin.registry import Registry, registry as default_registry
from crosswalk.request import (
    Asked,
    CacheMark,
    ChatRequest,
    ExtraOptions,
    HostedTool,
    NamedTool,
    ResponseFormat,
    ToolDefinition,
    as_request,
    with_extra,
)
from crosswalk.service.auxiliary_requests import PlainCall, ServerDiscovery
from crosswalk.service.building import OnUnsupported
from crosswalk.service.call import BodyCall, EventStream
from crosswalk.service.client_options import check_client, environment_proxies
from crosswalk.service.endpoint import (
    DISCOVERED,
    Cooling,
    Endpoint,
    RetryPolicy,
    Route,
    Secret,
    ServerFailures,
    Timeouts,
    resolve,
)
from crosswalk.service.http import (
    AiohttpTransport,
    CallSlots,
    CallWait,
    ClientTransport,
    TimedWait,
    Transport,
)
from crosswalk.service.setup import (
    Driver,
    LogObserver,
    Middleware,
    Observer,
    PreparedRequest,
    RequestPlan,
    Setup,
    Slots,
    cached,
    planned,
    prepared,
)
from crosswalk.text import nearest
from crosswalk.types.response import ChatResponse
from crosswalk.types.values import checks_keywords, new_id, now, unchecked
from crosswalk.wire.framing import DEFAULT, Limits
from crosswalk.words import AnswersNames, right_word, suggests_names

if TYPE_CHECKING:
    import httpx2

    from crosswalk.service.auxiliary_requests import Embeddings, PlainAnswer, TokenCount
    from crosswalk.service.json_answer import AnswerType, JSONAnswer, JSONStream, ProseChoice
    from crosswalk.structured import AnswerCache, Partial


# ------------------------------------------------------------------------------- arguments
# The arguments of a service and of one call, checked and converted.


TransportChoice: TypeAlias = Literal["httpx2", "aiohttp"]


P = ParamSpec("P")


def takes(
    function: Callable[Concatenate[Any, P], Any],
) -> Callable[[Callable[..., None]], Callable[Concatenate[Any, P], None]]:
    """Decorate an ``__init__`` that passes its arguments on to *function*, after another first argument.

    Type checkers and ``help`` show the signature of *function* without that one.
    """
    _, *parameters = inspect.signature(function).parameters.values()
    self_parameter = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)

    def decorate(init: Any) -> Any:
        init.__signature__ = inspect.Signature([self_parameter, *parameters], return_annotation=None)
        return init

    return decorate


@checks_keywords(elsewhere={"Endpoint": ("api_key", "model", "provider", "takes_media", "headers")})
def setup_of(
    driver: Driver,
    /,
    *endpoints: Endpoint | str,
    retry: RetryPolicy | int | None = None,
    timeout: Timeouts | float | None = None,
    provider: str | None = None,
    model: str | None = None,
    base_url: str | None = None,
    api_key: str | None = None,
    proxy: str | None = None,
    max_concurrency: int | None = None,
    unknown: Unknown = "keep",
    on_unsupported: OnUnsupported = "raise",
    keep_raw: bool = True,
    limits: Limits | None = None,
    client: httpx2.AsyncClient | httpx2.Client | None = None,
    client_options: Mapping[str, Any] | None = None,
    transport: TransportChoice = "httpx2",
    observers: Iterable[Observer] = (),
    middleware: Iterable[Middleware] = (),
    cache: AnswerCache | None = None,
    failures: Sequence[ServerFailures] = (),
    settings: Settings | None = None,
    registry: Registry | None = None,
    id_factory: Callable[[], str] = new_id,
    clock: Callable[[], datetime] = now,
    timer: Callable[[], float] = time.perf_counter,
) -> Setup:
    """Return the state of a service with these arguments, which :class:`LLMService` describes.

    Raises:
        ConfigurationError: see there. UnknownProviderError: the provider is unknown. PluginError: it is broken.
    """
    observers = _as_observers(observers)
    middleware = tuple(map(driver.middleware, _as_middleware(middleware)))
    check_type("limits", limits, Limits)
    check_type("settings", settings, Settings)
    check_type("registry", registry, Registry)
    check_type("client_options", client_options, Mapping)
    check_type("failures", failures, Sequence)
    check_type("keep_raw", keep_raw, bool)
    for name, given in (("id_factory", id_factory), ("clock", clock), ("timer", timer)):
        if not callable(given):
            raise ConfigurationError(f"{name} must be a function", key=name)
    has_own_settings = settings is not None
    settings = load_settings() if settings is None else settings
    fields = {"provider": provider, "model": model, "base_url": base_url, "api_key": api_key}
    given_fields = {name: value for name, value in fields.items() if value is not None}
    if given_fields:
        endpoints = (_single_endpoint(endpoints, given_fields, settings),)
    elif not endpoints and settings.default_provider is not None:
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
    COUNT_OR_NONE.check("max_concurrency", max_concurrency)
    if proxy is not None:
        if client is not None:
            raise ConfigurationError("give proxy= to the client", key="proxy")
        client_options = {**(client_options or {}), "proxy": proxy}
    if client_options and client_options.get("proxy") is not None:
        client_options = {**client_options, "proxy": _as_proxy(client_options["proxy"])}
    if transport not in ("httpx2", "aiohttp"):
        raise ConfigurationError("transport is 'httpx2' or 'aiohttp'", key="transport")
    known_registry = default_registry if registry is None else registry
    checked_endpoints = [_as_endpoint(one) for one in endpoints]
    routes = tuple(_route(endpoint, known_registry) for endpoint in checked_endpoints)
    if secrets := _proxy_secrets(client_options or {}):
        routes = tuple(attrs.evolve(route, secrets=secrets) for route in routes)
    retry = RetryPolicy.of(retry)
    if failures and [type(one) for one in failures] != [ServerFailures] * len(routes):
        raise ConfigurationError("failures must be one ServerFailures for each endpoint", key="failures")
    setup = Setup(
        routes=routes,
        transport=driver.transport(transport, client, dict(client_options or {})),
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
        cooling=Cooling(failures or [ServerFailures() for _ in routes], retry, timer),
        known=known_registry.names,
        new_wait=driver.wait,
        middleware=middleware,
        discovery=ServerDiscovery(known_registry)
        if any(route.provider == DISCOVERED for route in routes)
        else None,
        slots=None if max_concurrency is None else driver.slots(max_concurrency),
    )
    if cache is not None:
        if not callable(getattr(cache, "get", None)) or not callable(getattr(cache, "put", None)):
            raise ConfigurationError(f"cache must be an AnswerCache, not {type(cache).__name__}", key="cache")
        cache_middleware = driver.caching(cached(cache, setup))
        setup = attrs.evolve(setup, middleware=(*middleware, cache_middleware))
    if not has_own_settings:
        apply_settings(settings)
    return setup


def _as_proxy(proxy: Any) -> Any:
    """Return *proxy* itself, or a text as a URL: one without a scheme is an address of HTTP."""
    if type(proxy).__module__.startswith("httpx2"):  # its URL or Proxy
        return proxy
    url = proxy if not isinstance(proxy, str) or "://" in proxy else f"http://{proxy.strip()}"
    with suppress(AttributeError, TypeError, ValueError):
        parts = urlsplit(url)
        if parts.scheme in ("http", "https", "socks5", "socks5h") and parts.hostname and parts.port != 0:
            return url
    raise ConfigurationError(
        "proxy must be the address of a proxy, such as http://host:port or socks5://host:port", key="proxy"
    )


def _proxy_secrets(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the passwords of the proxies of *options* or of the environment, alone and behind their users."""
    proxy = options.get("proxy")
    texts = [str(proxy or ""), *environment_proxies(options).values()]
    logins = [text.rpartition("://")[2].rpartition("@")[0].partition(":") for text in texts]
    pairs = [(unquote(user), unquote(password)) for user, _, password in logins]
    pairs.append(getattr(proxy, "auth", None) or ("", ""))  # of an httpx2.Proxy
    return tuple(
        secret for user, password in pairs if password for secret in (f"{user}:{password}", password)
    )


def _as_endpoint(one: Any) -> Endpoint:
    if not isinstance(one, Endpoint | str):
        raise ConfigurationError(
            f"endpoints must be Endpoints, or provider ids, not {type(one).__name__}", key="endpoints"
        )
    return Endpoint(one) if isinstance(one, str) else one


def _single_endpoint(
    endpoints: tuple[Endpoint | str, ...], fields: Mapping[str, Any], settings: Settings
) -> Endpoint:
    """Return the only endpoint of a service, with *fields* that were given to the service."""
    if len(endpoints) > 1:
        name = next(iter(fields))
        raise ConfigurationError(f"give {name}= to each endpoint", key=name)
    if not endpoints:
        model = fields.get("model", "")
        if (
            fields.keys() <= {"model", "api_key"} and isinstance(model, str) and ":" in model
        ):  # both in one word
            return Endpoint(model, api_key=fields.get("api_key"))
        if settings.default_provider is None or not fields.keys().isdisjoint({"provider", "base_url"}):
            return Endpoint(**fields)
        default = Endpoint(settings.default_provider)
        return attrs.evolve(default, **{"model": default.model or settings.default_model, **fields})
    endpoint: Any = _as_endpoint(endpoints[0])
    for name in fields:
        if name == "provider" or getattr(endpoint, name) is not None:
            raise ConfigurationError(f"{name} is given twice: by the endpoint and as {name}=", key=name)
    return attrs.evolve(endpoint, **fields)  # type: ignore[no-any-return]


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


def _route(endpoint: Endpoint, registry: Registry) -> Route:
    # Until the server has been detected, the OpenAI dialect is the placeholder. Nothing is sent in it.
    try:
        mapper = registry.mapper("openai" if endpoint.provider == DISCOVERED else endpoint.provider)
    except UnknownProviderError as error:
        name = endpoint.provider
        if endpoint.model is not None or right_word("a provider", name.lower()) or nearest(name, error.known):
            raise
        hint = f"if it is a model, name its provider too: 'PROVIDER:{name:.60}'"
        raise UnknownProviderError(f"{error}; {hint}", plugin=name, known=error.known) from None
    if mapper.build_request is None:
        raise ConfigurationError(
            f"{endpoint.provider}: its plugin builds no requests, so it cannot be asked", key="provider"
        )
    return resolve(endpoint, mapper)


class CallOptions(ExtraOptions, total=False):
    """The options of one call: those of :class:`ChatRequest`, which they replace, and how it is sent.

    Attributes:
        max_completion_tokens: OpenAI's name of ``max_tokens``.
        timeout: :class:`Timeouts`, or seconds for a whole answer, and in a stream for the next byte.
        retry: a :class:`RetryPolicy`, or the number of times to repeat a failed attempt.
        headers: more headers. Their values are treated as secrets.
    """

    model: str | None
    temperature: float | None
    top_p: float | None
    top_k: int | None
    max_tokens: int | None
    max_completion_tokens: int | None
    stop: str | Iterable[str]
    seed: int | None
    tools: Iterable[ToolDefinition | Mapping[str, Any]]
    hosted_tools: Iterable[HostedTool | str]
    tool_choice: str | NamedTool | Mapping[str, Any] | None
    parallel_tool_calls: bool | None
    response_format: ResponseFormat | Mapping[str, Any] | None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None
    cache_marks: Iterable[CacheMark | str | int]
    provider_options: Mapping[str, Mapping[str, Any]]
    extra_headers: Mapping[str, str]
    timeout: Timeouts | float | None
    retry: RetryPolicy | int | None
    headers: Mapping[str, str | Secret]


class JSONOptions(CallOptions, total=False):
    """The options of a call for a value: those of any call, and how the value is read.

    Attributes:
        instruct: put the schema also into a system message, for servers that do not enforce it.
        partial: how to treat a truncated answer, or ``None`` to refuse it.
        prose: whether text may surround the value: ``"allow"``, which is the default, or ``"refuse"``.
    """

    instruct: bool
    partial: Partial | None
    prose: ProseChoice


class RetriedJSONOptions(JSONOptions, total=False):
    """The options of one call that may ask again for its value.

    Attributes:
        retries: how many times to send the model the errors of its answer, and ask again. The default is 0.
    """

    retries: int


def with_options(setup: Setup, asked: Asked, options: CallOptions) -> tuple[Setup, ChatRequest]:
    """Return *setup* and the request *asked*, changed by the *options* of a call.

    Raises:
        ConfigurationError: an option with a wrong value.
        ResponseValidationError: a wrong value of a request's option.
    """
    if not options:
        return setup, as_request(asked)
    fields: dict[str, Any] = dict(options)
    timeout, retry, headers = (fields.pop(name, None) for name in ("timeout", "retry", "headers"))
    if fields and not isinstance(asked, ChatRequest | Mapping):
        request = ChatRequest(asked, **with_extra(fields))
    else:
        request = as_request(asked)
        request = attrs.evolve(request, **_beside(request, fields)) if fields else request
    changes: dict[str, Any] = {}
    if timeout is not None:
        changes["timeouts"] = Timeouts.of(timeout)
    if retry is not None:
        changes["retry"] = RetryPolicy.of(retry)
    if headers:
        changes["routes"] = tuple(_with_headers(route, headers) for route in setup.routes)
    return attrs.evolve(setup, **changes) if changes else setup, request


def _beside(request: ChatRequest, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return *fields*, with the extra options of *request* added to theirs."""
    return with_extra({"extra_options": request.extra_options, **fields})


def _with_headers(route: Route, headers: Mapping[str, str | Secret]) -> Route:
    call_headers = {
        name: value.reveal() for name, value in Endpoint("headers", headers=headers).headers.items()
    }
    replaced_names = {name.lower() for name in call_headers}
    kept_headers = {
        name: value for name, value in route.headers.items() if name.lower() not in replaced_names
    }
    return attrs.evolve(route, headers={**kept_headers, **call_headers})


# --------------------------------------------------------------------------------- service
# The service: one interface to any list of servers.


T = TypeVar("T")


class LoopDriver:
    """A :class:`~crosswalk.service.setup.Driver` for calls that wait in an event loop."""

    def wait(self) -> CallWait:
        """See :class:`Driver`."""
        return TimedWait()

    def slots(self, number: int) -> Slots:
        """See :class:`Driver`."""
        return CallSlots(number)

    def transport(self, library: str, client: Any, options: dict[str, Any]) -> Transport:
        """See :class:`Driver`."""
        if library == "httpx2":
            check_client(client, options)
            return ClientTransport(client, options)
        if client is not None:
            raise ConfigurationError("aiohttp cannot use client=", key="client")
        return AiohttpTransport(options)

    def middleware(self, middleware: Middleware) -> Middleware:
        """See :class:`Driver`."""
        return middleware

    def caching(self, middleware: Middleware) -> Middleware:
        """See :class:`Driver`. Each step runs in a thread."""

        async def around(request: ChatRequest) -> AsyncGenerator[ChatRequest | ChatResponse, ChatResponse]:
            steps: Any = middleware(request)
            response = yield await to_thread(next, steps)
            await to_thread(_finish, steps, response)

        return around


def _finish(steps: Any, response: ChatResponse) -> None:
    with suppress(StopIteration):
        steps.send(response)


@suggests_names
class LLMService(metaclass=AnswersNames):
    """Sends requests to servers, and returns every answer as one type.

    The service keeps its connections: create one and use it for all requests, in one event loop. Close it when you are
    done, or use ``async with``. :class:`SyncLLMService` is the same without ``await``.

    Args:
        endpoints: the servers, in order: if one fails, the next is tried. Without any, the default provider of the
            settings is used. If one of them lacks an option of a request, the request is sent to no endpoint.
            A string is a provider id, a provider and its model (``"ollama:llama3.2"``) or an address.
        retry: the errors to retry, or the number of times to repeat a failed attempt, or ``None`` for the defaults.
        timeout: the limits of an attempt: :class:`Timeouts`, or seconds for a whole answer, and in a stream for the next
            byte, or ``None`` for the settings' ``timeout_seconds``, else the defaults.
        provider, model, base_url, api_key: these fields of a single :class:`Endpoint`. With an address alone, its
            provider is detected from the server.
        proxy: the address of a proxy for all requests, or ``None`` to follow the environment.
        max_concurrency: the number of calls that run at once in an event loop. Further calls wait. A
            stream counts until it has ended. ``None`` for no limit.
        unknown: ``"keep"`` or ``"raise"``, for an event type or finish word that no mapping knows. If kept, it is logged
            once and marked in ``provenance``, and an answer with such a finish word is not ``is_complete``.
        on_unsupported: ``"raise"`` for an option that a provider cannot express, or ``"drop"`` it. Dropped options
            are listed in the attempt's ``extra``.
        keep_raw: whether to keep the provider's bytes as the response's ``raw_events``.
        limits: the largest answer that is accepted, or ``None`` for the defaults.
        client: the application's own HTTP client, an ``httpx2.AsyncClient`` (of :class:`SyncLLMService`: an
            ``httpx2.Client``), which the application closes, or ``None`` to create one.
        client_options: arguments for that client, as for ``httpx2.AsyncClient``: ``proxy``, ``verify``, ``http2``.
        transport: the HTTP library: ``"httpx2"``, or ``"aiohttp"`` for programs with many concurrent calls, which it costs
            less. aiohttp takes the options ``proxy``, ``verify``, ``cert`` and ``trust_env``, and no *client*.
        observers: objects that are notified of every call, besides the log, such as
            ``crosswalk.service.otel.OpenTelemetry()``.
        middleware: generator functions of the request that wrap each call, the outermost first. See
            :data:`Middleware`.
        cache: stores whole answers and returns them for the same request to the same endpoints. Such a response
            has no ``attempts``. ``None`` to send every request. Errors and partial answers are not stored.
        failures: what is known of the failures of each endpoint's server, to share it with other services that have the
            same *timer*. Empty to share nothing.
        settings: the user's settings, or ``None`` to read them from their file and the environment, and to apply all of
            them: those for logs and ``repr`` affect the whole process.
        registry: the registry of providers, or ``None`` for the installed ones.
        id_factory: creates the id if a provider sends none.
        clock: returns the time of creation if a provider sends none.
        timer: a monotonic clock in seconds, by which durations are measured.

    Raises:
        ConfigurationError: no endpoint is given, an endpoint has no address or key, its plugin builds no requests, or a
            setting or argument is wrong.
        UnknownProviderError: the provider is unknown. PluginError: it is broken.
    """

    @takes(setup_of)
    def __init__(self, *endpoints: Any, **options: Any) -> None:
        self._setup = setup_of(LoopDriver(), *endpoints, **options)

    @checks_keywords(CallOptions.__annotations__)
    async def complete(self, request: Asked, **options: Unpack[CallOptions]) -> ChatResponse:
        """Return the complete answer to *request*, with every attempt in ``attempts``.

        Args:
            request: the request.
            options: those of a :class:`ChatRequest`, such as ``temperature=0``, and ``timeout=``, ``retry=``, ``headers=``
                for this call.

        Raises:
            ProviderError: every endpoint failed. The subclass says how the last one failed, and ``response`` holds the part
                of its answer that arrived and all attempts. If a server cannot be reached, this is a ``ServerError``. If it
                is too slow, a ``ProviderTimeoutError``.
            MappingError: the last answer cannot be read. ``partial`` holds the same.
            UnsupportedRequestError: an endpoint cannot express the request. Nothing was sent to any.
            CrosswalkError: the service was closed, before or during the call.
        """
        call = BodyCall(*with_options(self._setup, request, options))
        return (await call.answer()).raise_for_error()

    @checks_keywords(CallOptions.__annotations__)
    def stream(
        self, request: Asked, *, raw_events: bool = False, **options: Unpack[CallOptions]
    ) -> EventStream:
        """Return the answer to *request* as events, each as soon as its bytes arrive. ``.text`` yields its text alone.

        If the server fails, the last event is ``response.error``, with the answer so far and all attempts. No attempt is
        repeated once a token was delivered, unless the retry policy allows it.

        Args:
            request: the request.
            raw_events: whether each event carries the provider's own event, decoded. This takes time, and the response has
                all of them in ``raw_events`` anyway.
            options: see :meth:`complete`.
        """
        return EventStream(*with_options(self._setup, request, options), raw_events=raw_events)

    def prepare(self, request: ChatRequest) -> ChatRequest:
        """Return *request* with the HTTP request to each endpoint, which :meth:`complete` sends unchanged.

        So does :meth:`stream`, if *request* asks for a stream. The result is *request* itself if what goes out is known only
        in the call: a middleware may change it, or an address says what server is there.
        """
        if self._setup.middleware or self._setup.discovery is not None:
            return request
        fields = {name: getattr(request, name) for name in attrs.fields_dict(ChatRequest)}
        return unchecked(PreparedRequest, **fields, prepared=prepared(self._setup, request))

    @checks_keywords(CallOptions.__annotations__)
    def plan(self, request: Asked, **options: Unpack[CallOptions]) -> RequestPlan:
        """Return what :meth:`complete` would send for *request*, and each adaptation to the server. Nothing is sent.

        Middleware does not run.

        Args:
            request: the request. With ``stream=True`` it is planned as :meth:`stream` sends it.
            options: see :meth:`complete`.

        Raises:
            UnsupportedRequestError: :meth:`complete` would refuse the request.
            ConfigurationError: a server is given by its address alone, and would have to be asked what it is.
        """
        return planned(*with_options(self._setup, request, options))

    @overload
    async def complete_json(
        self, request: Asked, answer: AnswerType[T], **options: Unpack[RetriedJSONOptions]
    ) -> JSONAnswer[T]: ...
    @overload
    async def complete_json(
        self, request: Asked, answer: object, **options: Unpack[RetriedJSONOptions]
    ) -> JSONAnswer[Any]: ...
    @checks_keywords(RetriedJSONOptions.__annotations__)
    async def complete_json(
        self, request: Asked, answer: Any, **options: Unpack[RetriedJSONOptions]
    ) -> JSONAnswer[Any]:
        """Return the answer to *request* as a value, with its response.

        The provider is asked to enforce the schema, as far as it can. The model's text is parsed directly,
        else extracted from the text around it, else repaired. A truncated answer is refused by default.

        Args:
            request: the request. Its own ``response_format`` is sent if it has one.
            answer: a class of attrs, a dataclass, a typed dict, a named tuple, a pydantic model, an enum, a ``Literal``, a
                union or list of these, a ``Schema`` with invariants, a ``StructuredParser``, or a JSON Schema as a dict.
            options: those of :meth:`complete`, and ``instruct=``, ``partial=``, ``prose=`` and ``retries=``. See
                :class:`JSONOptions` and :class:`RetriedJSONOptions`.

        Raises:
            JSONAnswerError: the model's answer does not fit. ``response`` and ``result`` are attached.
            CrosswalkError: as from :meth:`complete`.
        """
        from crosswalk.service.json_answer import JSONAnswerError, ValueRequest, asked_again, read_answer

        wanted = ValueRequest.of(request, answer, **options)
        requested = wanted.request
        for remaining in range(wanted.retries, -1, -1):
            response = await self.complete(requested, **wanted.options)
            try:
                return read_answer(response, wanted.parser, wanted.partial)
            except JSONAnswerError as error:
                if not remaining or not error.result.can_retry:
                    raise
                requested = asked_again(requested, error)
        raise ConfigurationError("retries must be a number from 0 on", key="retries")

    @overload
    def stream_json(
        self, request: Asked, answer: AnswerType[T], **options: Unpack[JSONOptions]
    ) -> JSONStream[T]: ...
    @overload
    def stream_json(
        self, request: Asked, answer: object, **options: Unpack[JSONOptions]
    ) -> JSONStream[Any]: ...
    @checks_keywords(JSONOptions.__annotations__)
    def stream_json(self, request: Asked, answer: Any, **options: Unpack[JSONOptions]) -> JSONStream[Any]:
        """Return the answer as a value that grows while it arrives. It takes the arguments of
        :meth:`complete_json` but *retries*.

        Raises:
            ConfigurationError: a parser of several versions.
        """
        from crosswalk.service.json_answer import JSONStream, ValueRequest

        wanted = ValueRequest.of(request, answer, **options)
        return JSONStream(self.stream(wanted.request, **wanted.options), wanted)

    async def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        endpoint: int = 0,
    ) -> PlainAnswer:
        """Send a request to any *path* of an endpoint, such as one that counts tokens, and return its answer.

        The request is sent once, to this endpoint only, with its own address, key and timeout.

        Args:
            method: the HTTP method.
            path: below the endpoint's base URL, such as ``/v1/messages/count_tokens``.
            body: a JSON object, or bytes with their ``Content-Type`` among *headers*.
            headers: further headers that the API wants.
            endpoint: the number of the endpoint, from 0.

        Raises:
            ProviderError: it cannot be reached, or is too slow. CrosswalkError: the service is closed.
        """

        def ask(call: PlainCall) -> Awaitable[PlainAnswer]:
            return call.fetch(call.setup.routes[endpoint], method, path, body, headers)

        return await PlainCall.asked(self._setup, ask)

    async def models(self) -> tuple[str, ...]:
        """Return the names of the models of the first endpoint.

        Raises:
            UnsupportedRequestError: Crosswalk cannot list the models of this API. ProviderError: it refuses, or cannot be
                reached.
        """
        from crosswalk.service.auxiliary_requests import models

        return await PlainCall.asked(self._setup, models)

    async def embed(self, texts: str | Iterable[str], *, model: str | None = None) -> Embeddings:
        """Return *texts* as vectors, from the first endpoint.

        Args:
            texts: a text, or several.
            model: the model, or ``None`` for the endpoint's.

        Raises:
            UnsupportedRequestError: its API makes no embeddings, or no model is named. ProviderError: it failed.
        """
        from crosswalk.service.auxiliary_requests import embed

        return await PlainCall.asked(self._setup, partial(embed, texts, model))

    @checks_keywords(CallOptions.__annotations__)
    async def count_tokens(self, request: Asked, **options: Unpack[CallOptions]) -> TokenCount:
        """Return the number of input tokens of *request* at the first endpoint: a marked estimate if it cannot count.

        Raises:
            ProviderError: it failed. UnsupportedRequestError: it cannot express the request.
        """
        from crosswalk.service.auxiliary_requests import count_tokens

        setup, counted_request = with_options(self._setup, request, options)
        return await PlainCall.asked(setup, partial(count_tokens, counted_request))

    @property
    def servers(self) -> frozenset[str]:
        """A name for each server of the endpoints: for its address and credentials."""
        return frozenset(self._setup.servers_of())

    def server_of(self, response: ChatResponse) -> str | None:
        """Return the name of the server that gave *response*, or ``None`` if that is unknown, or long ago.

        A service knows it of its own answers. It sends what a server keeps or seals only to this server.
        """
        names = self.servers
        return next(iter(names)) if len(names) == 1 else self._setup.servers.of(response.id)

    def redact(self, text: str) -> str:
        """Return *text* without the credentials of the endpoints, which some servers repeat in their errors.

        Use this before you write down ``raw_events``, which are exactly as sent. Messages are already redacted.
        """
        for route in self._setup.routes:
            text = route.redact(text)
        return text

    async def aclose(self) -> None:
        """End the running calls and close the connections. An application's own client stays open.

        Streams end as by :meth:`EventStream.cancel`, other calls with a ``CrosswalkError``.

        Raises:
            Exception: a middleware raises it for a stream that was ended. All else has been closed.
        """
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._setup.transport.aclose)
            for call in self._setup.open_calls():
                stack.push_async_callback(call.end)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"LLMService({', '.join(repr(route.endpoint) for route in self._setup.routes)})"
