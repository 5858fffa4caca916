"""One attempt: a request, its answer's bytes, and the time limits on them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakSet

import attrs

from crosswalk.errors import (
    CrosswalkError,
    ErrorInfo,
    ErrorKind,
    FramingError,
    IncompleteStreamError,
    LimitError,
)
from crosswalk.mapping.reader import Reader, ReaderOptions
from crosswalk.service.attempts import Failure
from crosswalk.service.building import OnUnsupported, build
from crosswalk.service.endpoint import Route, join_url
from crosswalk.service.observe import Observer
from crosswalk.service.outcome import CANCELLED, as_cancelled
from crosswalk.service.policy import RetryPolicy, Timeouts
from crosswalk.service.request import ChatRequest, HTTPRequest
from crosswalk.service.transport import Transport, failure_of, request_id_of, retry_after_of, timeout_info
from crosswalk.text import clean_message

if TYPE_CHECKING:
    import httpx2

__all__ = ["Exchange", "Setup", "Wait", "not_sent"]

_DRAIN = 0.1
"""How many seconds to wait for the end of the HTTP message after the stream's own, so that the connection can be used
again."""


class OpenCall(Protocol):
    """A call of a service, which the service can end."""

    async def end(self) -> None:
        """End it, and close its connection."""


@attrs.frozen(kw_only=True)
class Setup:
    """What all calls of a service have in common.

    Attributes:
        routes: the endpoints, in the order in which they are asked.
        transport: the HTTP client.
        retry: what is tried again.
        timeouts: how long an attempt may take.
        on_unsupported: what to do about options that a provider cannot express.
        options: how answers are read.
        observers: who is told.
        timer: a monotonic clock, in seconds.
        calls: those that have begun and not ended.
        known: the providers that there are, by name.
    """

    routes: tuple[Route, ...]
    transport: Transport
    retry: RetryPolicy
    timeouts: Timeouts
    on_unsupported: OnUnsupported
    options: ReaderOptions
    observers: tuple[Observer, ...]
    timer: Callable[[], float]
    known: Callable[[], Iterable[str]]
    calls: WeakSet[OpenCall] = attrs.field(factory=WeakSet)


class Wait:
    """What a call waits for at the moment, so that its caller can end the wait from another task."""

    def __init__(self) -> None:
        self.is_cancelled = False
        self._limit: asyncio.Timeout | None = None

    def until(self, when: float | None) -> asyncio.Timeout:
        """A time limit for the next wait, in the event loop's time; ``TimeoutError`` when it has passed."""
        self._limit = asyncio.timeout_at(0 if self.is_cancelled else when)
        return self._limit

    def over(self) -> None:
        """The wait has ended."""
        self._limit = None

    def cancel(self) -> None:
        """End it now, and any that follows at once."""
        self.is_cancelled = True
        if self._limit is not None and not self._limit.expired():
            self._limit.reschedule(0)


class _Since:
    """A clock whose first reading is *start*: a reader takes the time of its making for that of the request."""

    def __init__(self, start: float, timer: Callable[[], float]) -> None:
        self._start: float | None = start
        self._timer = timer

    def __call__(self) -> float:
        start, self._start = self._start, None
        return self._timer() if start is None else start


class Exchange:
    """One attempt at one endpoint.

    Its methods give failures as values, for what happens next is not theirs to say.

    Args:
        setup: what all calls of the service have in common.
        route: the endpoint to ask.
        request: what is asked; the model, where it names none, is the endpoint's.
        wait: lets the caller end a wait.

    Attributes:
        model: the model that is asked for.
        reader: reads the answer.
        has_token: whether the first token has come.
        extra: what is worth knowing about the attempt.
        built: the HTTP request and its body's bytes; ``None`` before they are built.
    """

    def __init__(self, setup: Setup, route: Route, request: ChatRequest, wait: Wait) -> None:
        self.model = request.model or route.endpoint.model or ""
        self.has_token = False
        self.extra: dict[str, Any] = {}
        self.built: tuple[HTTPRequest, bytes] | None = None
        self._setup = setup
        self._route = route
        self._request = attrs.evolve(request, model=self.model or None)
        self._wait = wait
        self._http: httpx2.Response | None = None
        self._chunks: AsyncIterator[bytes] | None = None
        self._started = setup.timer()
        self._sent = self._silent = 0.0
        self._ends: dict[
            bool, float
        ] = {}  # since when the answer has been over, without the sentinel and with it
        self.reader = self._new_reader(200)

    @property
    def seconds(self) -> float:
        """How long it has been taking."""
        return self._setup.timer() - self._started

    def prepare(self) -> Failure | None:
        """Build the HTTP request; why it cannot be, if so."""
        try:
            self.built = build(self._request, self._route.mapper, self._setup.on_unsupported)
        except CrosswalkError as error:
            return not_sent(error)
        return None

    async def open(self) -> Failure | None:
        """Send the request, which has been prepared, and wait for the answer to begin."""
        setup, route = self._setup, self._route
        assert self.built is not None, "it has been prepared"
        built, content = self.built
        try:
            setup.transport.client()
        except CrosswalkError as error:
            return not_sent(error)
        if built.dropped:
            self.extra["dropped"] = [{"option": d.option, "reason": d.reason} for d in built.dropped]
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "crosswalk",
            **built.headers,
            **route.headers,
        }
        url = join_url(route.base_url, built.path)
        self._started = setup.timer()
        self._sent = asyncio.get_running_loop().time()
        self._silent = 0.0
        sending = setup.transport.send(url, built.method, headers, content, setup.timeouts)
        http, failure = await self._waited(sending)
        if http is None:
            return failure
        self._http = http
        self._chunks = http.aiter_bytes()
        status = http.status_code
        self.extra["status"] = status
        if (id := request_id_of(http.headers)) is not None:
            self.extra["request_id"] = clean_message(route.redact(id), 200)
        self.reader = self._new_reader(min(status, 599) if status >= 400 else 200)
        if 300 <= status < 400:
            return self.failed(
                ErrorInfo(
                    ErrorKind.INVALID_REQUEST,
                    f"HTTP {status}: {_no_answer(http.headers)}; check base_url",
                    status=status,
                )
            )
        return None

    async def chunk(self) -> tuple[bytes | None, Failure | None]:
        """The next bytes of the answer, ``None`` at its end; or why there are none."""
        if self._wait.is_cancelled:
            return None, self.cancelled()
        return await self._waited(anext(self._chunks, None))  # type: ignore[arg-type]  # an awaitable

    def note_token(self) -> None:
        """A token has come: the wait for the next one begins."""
        self.has_token = True
        self._silent = 0.0

    async def close(self) -> None:
        """Let the connection go: back to the pool if the answer was read to its end, else closed."""
        http, self._http, self._chunks = self._http, None, None
        if http is not None:
            await http.aclose()

    def failed(self, info: ErrorInfo) -> Failure:
        """The failure of this attempt with *info* and everything that came."""
        return Failure(info, self.retry_after, self.reader.partial(info))

    def unread(self, error: CrosswalkError, *, has_read: bool) -> Failure:
        """The failure of this attempt whose bytes *error* keeps from being read.

        An answer that ends too early is the server's failure, and so is something else in its place, such as a proxy's page.
        What cannot be read behind something that could is raised: asking again would hide it.
        """
        if isinstance(error, IncompleteStreamError):
            return self.failed(
                ErrorInfo(ErrorKind.SERVER, error.cause, retryable=True, code="incomplete_stream")
            )
        if not has_read and isinstance(error, FramingError) and not isinstance(error, LimitError):
            message = f"no answer that can be read ({self._content}): {error.cause}"
            return self.failed(ErrorInfo(ErrorKind.SERVER, message, retryable=True, code="unreadable_answer"))
        info = ErrorInfo(ErrorKind.UNKNOWN, str(error), code=type(error).__name__)
        return attrs.evolve(self.failed(info), error=error)

    def crashed(self, error: Exception) -> Failure:
        """The failure of this attempt by an unexpected *error* of a plugin, an observer or a client."""
        name = type(error).__name__
        return self.failed(ErrorInfo(ErrorKind.UNKNOWN, f"failed with {name}", code=name))

    def cancelled(self) -> Failure:
        """The end of this attempt by its caller, with everything that came."""
        return Failure(CANCELLED, response=as_cancelled(self.reader.partial(CANCELLED)), cancelled=True)

    @property
    def retry_after(self) -> float | None:
        """The seconds that the server asks to wait; ``None`` when it does not."""
        return None if self._http is None else retry_after_of(self._http.headers)

    @property
    def _content(self) -> str:
        """What the headers say that the answer is."""
        assert self._http is not None, "something was read"
        said = clean_message(self._route.redact(self._http.headers.get("content-type", "")), 80)
        return f"HTTP {self._http.status_code}, {said or 'without a content type'}"

    async def _waited(self, awaitable: Any) -> tuple[Any, Failure | None]:
        loop = asyncio.get_running_loop()
        before = loop.time()
        when, name = self._limit(before)
        limit = self._wait.until(when)
        try:
            async with limit:
                return await awaitable, None
        except Exception as error:
            if self._wait.is_cancelled:
                return None, self.cancelled()
            if isinstance(error, TimeoutError) and limit.expired():
                return None, self._broken(_too_late(name, self._setup.timeouts))
            info = failure_of(error, self._route.host)
            if info is None:
                raise
            return None, self._broken(info)
        finally:
            self._wait.over()
            self._silent += loop.time() - before

    def _broken(self, info: ErrorInfo) -> Failure | None:
        """The failure that *info* tells; none where the answer had ended before: what it says is all there."""
        if not self.reader.has_ended:
            return self.failed(info)
        self.extra["after_end"] = info.code
        return None

    def _limit(self, now: float) -> tuple[float | None, str]:
        """Until when to wait now, and which time limit that is."""
        timeouts = self._setup.timeouts
        end = None if timeouts.total is None else self._sent + timeouts.total
        if self.reader.has_ended:
            is_done = self.reader.is_done
            grace = _DRAIN if is_done else timeouts.after_end
            if grace is not None:
                over = self._ends.setdefault(is_done, now) + grace
                return (over if end is None else min(over, end)), "after_end"
        name = "between_tokens" if self.has_token else "first_token"
        seconds: float | None = getattr(timeouts, name) if self._request.stream else None
        if seconds is None:
            return end, "total"
        next_token = now + seconds - self._silent
        return (end, "total") if end is not None and end < next_token else (next_token, name)

    def _new_reader(self, status: int) -> Reader:
        timer = _Since(self._started, self._setup.timer)
        options = attrs.evolve(self._setup.options, status=status, timer=timer, redact=self._route.redact)
        return Reader(self._route.mapper, options)


def not_sent(error: CrosswalkError) -> Failure:
    """The failure of a request that *error* keeps from being sent, to anybody."""
    info = ErrorInfo(ErrorKind.INVALID_REQUEST, str(error), code="not_sent")
    return Failure(info, error=error, is_final=True)


def _too_late(name: str, timeouts: Timeouts) -> ErrorInfo:
    what = {"first_token": "no first token", "between_tokens": "no further token"}.get(
        name, "no end of the answer"
    )
    return timeout_info(name, f"{what} within {getattr(timeouts, name) or _DRAIN:g} seconds")


def _no_answer(headers: Mapping[str, str]) -> str:
    """Why a status that is neither success nor an error gives no answer."""
    if "location" in headers:
        return "the server redirects, which is not followed"
    return "the server sends no answer"
