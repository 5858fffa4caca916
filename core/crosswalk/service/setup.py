"""What the calls of a service share, and the HTTP request that each endpoint gets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol
from weakref import WeakSet

import attrs

from crosswalk.errors import CrosswalkError, ErrorInfo, ErrorKind
from crosswalk.mapping.reader import ReaderOptions
from crosswalk.request import ChatRequest, HTTPRequest, UnsupportedRequestError
from crosswalk.service.attempts import Cooling, Failure
from crosswalk.service.building import OnUnsupported, build
from crosswalk.service.endpoint import Route, join_url
from crosswalk.service.http.deadlines import Wait
from crosswalk.service.http.transport import Transport
from crosswalk.service.middleware import Middleware
from crosswalk.service.observe import Observer
from crosswalk.service.policy import RetryPolicy, Timeouts

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
        middleware: the middleware around each call, the outermost first.
        discovery: detects the providers of servers given by their address alone, or ``None`` if there are none.
        slots: limits the number of calls that run at once, or ``None`` for no limit.
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
    middleware: tuple[Middleware, ...] = ()
    discovery: Discovery | None = None
    slots: Slots | None = None
    calls: WeakSet[OpenCall] = attrs.field(factory=WeakSet)

    def open_calls(self) -> list[OpenCall]:
        """The running calls."""
        while True:
            try:
                return list(self.calls)
            except RuntimeError:
                pass  # another thread has begun one meanwhile


class Discovery(Protocol):
    """Detects the providers of servers."""

    async def resolve(self, setup: Setup, *, needs_model: bool) -> Setup:
        """Return *setup* with the routes of all servers, which name a model if that is needed."""


class Slots(Protocol):
    """Limits the number of calls that run at once."""

    async def take(self, wait: Wait) -> None:
        """Wait for a free slot, or until the call is cancelled."""

    def give_back(self) -> None:
        """Free the slot of a call that has ended."""


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


def prepared_for(setup: Setup, route: Route, request: ChatRequest) -> Prepared | Failure:
    """Return the HTTP request to *route* for *request*, or the failure that prevents it."""
    endpoint = route.endpoint
    try:
        built, content = build(
            request,
            route.mapper,
            setup.on_unsupported,
            model=endpoint.model,
            base_url=route.base_url,
            takes_media=endpoint.takes_media,
        )
    except CrosswalkError as error:
        return not_sent(error)
    headers = {**HEADERS, **built.headers, **route.headers}
    return Prepared(built, content, join_url(route.base_url, built.path), headers)


def prepared(setup: Setup, request: ChatRequest) -> tuple[dict[int, Prepared], dict[int, Failure]]:
    """Return the HTTP request to each endpoint for *request*, by its number, and the unusable endpoints with reasons.

    All are prepared before anything is sent. An endpoint that cannot express the conversation is passed over, as long as
    another one can. If all are, the first is returned. But a missing option must not move the traffic to another endpoint:
    it fails the call.
    """
    strange = set(request.provider_options) - {route.provider for route in setup.routes}
    if strange and (strange := strange - set(setup.known())):
        option = f"provider_options[{min(strange)!r:.80}]"
        error = UnsupportedRequestError(f"{option}: there is no such provider", options=[option])
        return {}, {0: not_sent(error)}
    usable: dict[int, Prepared] = {}
    refused: dict[int, Failure] = {}
    for number, route in enumerate(setup.routes):
        sent = prepared_for(setup, route, request)
        if isinstance(sent, Prepared):
            usable[number] = sent
        elif getattr(sent.error, "options", ()) == ("messages",):
            refused[number] = sent
        else:
            return {}, {number: sent}
    return usable, refused if usable else dict([*refused.items()][:1])


def not_sent(error: CrosswalkError) -> Failure:
    """Return the failure of a request that *error* prevents from being sent to any endpoint."""
    info = ErrorInfo(ErrorKind.INVALID_REQUEST, str(error), code="not_sent")
    return Failure(info, error=error, is_final=True)
