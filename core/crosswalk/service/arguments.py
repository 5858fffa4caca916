"""The arguments of a service and of one call, checked and converted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

import attrs

from crosswalk.config import Settings, apply_settings, load_settings
from crosswalk.errors import ConfigurationError, UnknownProviderError
from crosswalk.keywords import checks_keywords
from crosswalk.mapping.event import Unknown
from crosswalk.mapping.reader import ReaderOptions
from crosswalk.plugin.registry import Registry, registry as default_registry
from crosswalk.request import (
    Asked,
    CacheMark,
    ChatRequest,
    HostedTool,
    NamedTool,
    ResponseFormat,
    ToolDefinition,
    as_request,
)
from crosswalk.service.attempts import Cooling
from crosswalk.service.building import OnUnsupported
from crosswalk.service.discovery import ServerDiscovery
from crosswalk.service.endpoint import DISCOVERED, Endpoint, Route, Secret, resolve
from crosswalk.service.http.client import ClientTransport, check_client
from crosswalk.service.http.deadlines import CallSlots
from crosswalk.service.http.transport import Transport
from crosswalk.service.middleware import Middleware
from crosswalk.service.observe import LogObserver, Observer
from crosswalk.service.policy import RetryPolicy, Timeouts
from crosswalk.service.setup import Setup
from crosswalk.text import nearest
from crosswalk.types.response import new_id, now
from crosswalk.wire.framing import DEFAULT, Limits

if TYPE_CHECKING:
    import httpx2

    from crosswalk.structured import AnswerCache


TransportChoice: TypeAlias = Literal["httpx2", "aiohttp"]


class ServiceOptions(TypedDict, total=False):
    """The options of :class:`LLMService`, described there."""

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
    transport: TransportChoice
    observers: Iterable[Observer]
    middleware: Iterable[Middleware]
    cache: AnswerCache | None
    settings: Settings | None
    registry: Registry | None
    id_factory: Callable[[], str]
    clock: Callable[[], datetime]
    timer: Callable[[], float]


@checks_keywords(elsewhere={"Endpoint": ("api_key", "model", "provider", "takes_media", "headers")})
def setup_of(
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
    transport: TransportChoice = "httpx2",
    observers: Iterable[Observer] = (),
    middleware: Iterable[Middleware] = (),
    cache: AnswerCache | None = None,
    settings: Settings | None = None,
    registry: Registry | None = None,
    id_factory: Callable[[], str] = new_id,
    clock: Callable[[], datetime] = now,
    timer: Callable[[], float] = time.perf_counter,
) -> Setup:
    """Return the state of a service with these arguments, which :class:`LLMService` describes.

    Raises:
        ConfigurationError: see there. UnknownProviderError: there is no such provider. PluginError: it is broken.
    """
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
        if len(endpoints) > 1:
            raise ConfigurationError("give base_url= to each endpoint", key="base_url")
        endpoints = (_at(base_url, *map(_as_endpoint, endpoints)),)
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
    known = default_registry if registry is None else registry
    requested = [_as_endpoint(one) for one in endpoints]
    routes = tuple(_route(endpoint, known) for endpoint in requested)
    retry = RetryPolicy.of(retry)
    setup = Setup(
        routes=routes,
        transport=_transport(transport, client, dict(client_options or {})),
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
        discovery=ServerDiscovery(known) if any(route.provider == DISCOVERED for route in routes) else None,
        slots=None if max_concurrency is None else CallSlots(max_concurrency),
    )
    if cache is not None:
        if not callable(getattr(cache, "get", None)) or not callable(getattr(cache, "put", None)):
            raise ConfigurationError(f"cache must be an AnswerCache, not {type(cache).__name__}", key="cache")
        from crosswalk.service.caching import cached

        innermost = cached(cache, setup)
        setup = attrs.evolve(setup, middleware=(*middleware, innermost))
    if not has_own_settings:
        apply_settings(settings)
    return setup


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


def _at(base_url: str, endpoint: Endpoint | None = None) -> Endpoint:
    if endpoint is None:
        return Endpoint(base_url=base_url)
    if endpoint.base_url is not None:
        raise ConfigurationError("base_url is given twice: by the endpoint and as base_url=", key="base_url")
    return attrs.evolve(endpoint, base_url=base_url)


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
    library: TransportChoice, client: httpx2.AsyncClient | None, options: dict[str, Any]
) -> Transport:
    """Return what sends the requests through *library*."""
    if library == "httpx2":
        check_client(client, options)
        return ClientTransport(client, options)
    if library != "aiohttp":
        raise ConfigurationError("transport is 'httpx2' or 'aiohttp'", key="transport")
    if client is not None:
        raise ConfigurationError("aiohttp cannot use client=", key="client")
    from crosswalk.service.http.aiohttp_transport import AiohttpTransport

    return AiohttpTransport(options)


def _route(endpoint: Endpoint, known: Registry) -> Route:
    # Until the server has been detected, the OpenAI dialect is the placeholder. Nothing is sent in it.
    try:
        mapper = known.mapper("openai" if endpoint.provider == DISCOVERED else endpoint.provider)
    except UnknownProviderError as error:
        name = endpoint.provider
        if endpoint.model is not None or nearest(name, error.known):
            raise
        hint = f"if it is a model, name its provider too: 'PROVIDER:{name:.60}'"
        raise UnknownProviderError(f"{error}; {hint}", plugin=name, known=error.known) from None
    if mapper.build_request is None:
        raise ConfigurationError(
            f"{endpoint.provider}: its plugin builds no requests, so it cannot be asked", key="provider"
        )
    return resolve(endpoint, mapper)


class CallOptions(TypedDict, total=False):
    """The options of one call: those of :class:`ChatRequest`, which they replace, and how it is sent.

    Attributes:
        timeout: :class:`Timeouts`, or seconds for a whole answer, and in a stream for the next byte.
        retry: a :class:`RetryPolicy`, or the number of times to repeat a failed attempt.
        headers: more headers. Their values are treated as secrets.
    """

    model: str | None
    temperature: float | None
    top_p: float | None
    top_k: int | None
    max_tokens: int | None
    stop: str | Iterable[str]
    seed: int | None
    tools: Iterable[ToolDefinition | Mapping[str, Any]]
    hosted_tools: Iterable[HostedTool | str]
    tool_choice: str | NamedTool | Mapping[str, Any] | None
    parallel_tool_calls: bool | None
    response_format: ResponseFormat | Mapping[str, Any] | None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None
    cache_marks: Iterable[CacheMark | str | int]
    provider_options: Mapping[str, Mapping[str, Any]]
    timeout: Timeouts | float | None
    retry: RetryPolicy | int | None
    headers: Mapping[str, str | Secret]


def with_options(setup: Setup, asked: Asked, options: CallOptions) -> tuple[Setup, ChatRequest]:
    """Return *setup* and the request *asked*, changed by the *options* of a call.

    Raises:
        ConfigurationError: an option with a wrong value.
        ResponseValidationError: a wrong value of a request's option.
    """
    request = as_request(asked)
    if not options:
        return setup, request
    fields: dict[str, Any] = dict(options)
    timeout, retry, headers = (fields.pop(name, None) for name in ("timeout", "retry", "headers"))
    changes: dict[str, Any] = {}
    if timeout is not None:
        changes["timeouts"] = Timeouts.of(timeout)
    if retry is not None:
        changes["retry"] = RetryPolicy.of(retry)
    if headers:
        changes["routes"] = tuple(_with_headers(route, headers) for route in setup.routes)
    return (
        attrs.evolve(setup, **changes) if changes else setup,
        attrs.evolve(request, **fields) if fields else request,
    )


def _with_headers(route: Route, headers: Mapping[str, str | Secret]) -> Route:
    more = {name: value.reveal() for name, value in Endpoint("headers", headers=headers).headers.items()}
    replaced = {name.lower() for name in more}
    before = {name: value for name, value in route.headers.items() if name.lower() not in replaced}
    return attrs.evolve(route, headers={**before, **more})
