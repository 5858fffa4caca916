"""Waiting without an event loop: in the coroutines of a service, each await blocks the calling thread.

The limit of a wait is the argument of ``recv``. Another thread ends a wait by shutting its connection down.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterator,
    Mapping,
)
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from copy import copy
from functools import cache, lru_cache, partial, wraps
from socket import SHUT_RDWR, socket
from typing import TYPE_CHECKING, Any, Final, TypeVar

from crosswalk.errors import ConfigurationError, CrosswalkError
from crosswalk.plain_errors import interruption_of
from crosswalk.request import ChatRequest
from crosswalk.service.client_options import (
    KEPT_SECONDS,
    check_client,
    environment_proxies,
    made_client,
    proxy_for,
    refused,
    with_context,
)
from crosswalk.service.endpoint import OpeningTimeout, StepTimeout, Timeouts
from crosswalk.service.http import (
    EARLY_ANSWER,
    EARLY_SECONDS,
    CallWait,
    HTTPAnswer,
    TracedSending,
    Transport,
    decoded,
)
from crosswalk.service.setup import Middleware, Slots

if TYPE_CHECKING:
    import ssl

    import httpcore2
    import httpx2
    from httpcore2 import NetworkBackend, NetworkStream
else:
    NetworkBackend = NetworkStream = object  # httpcore2 is loaded only when something is sent

T = TypeVar("T")


class _Here(threading.local):
    """The wait of this thread, and its interruption.

    Attributes:
        wait: the waits of the call that it sends.
        interruption: what has interrupted a wait, such as Ctrl-C, and is still to be raised.
    """

    wait: BlockingWait | None = None
    interruption: BaseException | None = None


_here: Final = _Here()


def run(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of *work*. Its awaits block.

    Raises:
        BaseException: as from *work*, or what has interrupted it.
        CrosswalkError: *work* waits for an event loop.
    """
    hooks = sys.get_asyncgen_hooks()
    has_hooks = hooks != (None, None)  # those of this thread's event loop: it would close what is not its own
    if has_hooks:
        sys.set_asyncgen_hooks(None, None)
    try:
        work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    finally:
        if has_hooks:
            sys.set_asyncgen_hooks(*hooks)
        if _here.interruption is not None:
            interruption, _here.interruption = _here.interruption, None
            raise interruption
    work.close()
    raise CrosswalkError("something of this call waits for an event loop: use LLMService")


class BlockingWait(CallWait):
    """The waits of one call in the thread that makes it.

    Attributes:
        pool_use: the use of a connection by its last request.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._reader: int | None = None  # the thread that has it
        self.pool_use: _PoolUse | None = None
        self.now = time.monotonic
        self._socket: socket | None = None  # of the connection at which its thread waits now
        self._bell: threading.Event | None = None
        self._mutex = threading.RLock()  # a signal's handler may cancel the call that it interrupts
        self._process = os.getpid()

    def begin(self) -> None:
        """Begin the call here."""

    def end(self) -> None:
        """End the call."""

    def tear(self) -> None:
        """See :class:`CallWait`."""
        if self.pool_use is not None:
            self.pool_use.tear()

    def is_here(self) -> bool:
        """Return whether the call began in this process."""
        return self._process == os.getpid()

    @property
    def is_read_here(self) -> bool:
        """Whether this thread reads the call now. A signal's handler has interrupted it, or it has called an observer."""
        return self._reader == threading.get_ident()

    async def alone(self, work: Callable[[], Awaitable[T]]) -> T:
        """Return the result of *work*, which no other thread does meanwhile."""
        with self._lock:  # not in steps of Python: a signal between them would leave it taken for ever
            self._reader = threading.get_ident()
            try:
                return await work()
            finally:
                self._reader = None

    def nested(self, work: Awaitable[T]) -> Awaitable[T]:
        """Return *work* itself: :func:`run` leaves the event loop of this thread alone."""
        return work

    async def within(self, deadline: float | None, work: Awaitable[T]) -> T:
        """Return the result of *work*. Raises at the *deadline*, with :attr:`is_late` set, or if another thread ends it."""
        self._deadline, self.is_late, self._step_error = deadline, False, None
        outer_wait, _here.wait = _here.wait, self
        try:
            return await work
        except StopAsyncIteration:  # the end of an answer
            raise
        except Exception as error:
            interruption = interruption_of(error)
            if interruption is not None:
                self._interrupted(interruption)
                self.tear()
                raise
            self.is_late = self._deadline is not None and self.now() >= self._deadline - _GRAIN
            if self.is_late and self._step_error is not None:
                raise self._step_error from error
            raise
        finally:
            _here.wait = outer_wait

    async def pause(self, seconds: float) -> None:
        """Wait for this time, or until another thread ends it."""
        self.await_bell(threading.Event(), seconds)

    def await_bell(self, bell: threading.Event, seconds: float | None = None) -> None:
        """Wait until *bell* is set, for at most this time, or until another thread ends it."""
        self._bell = bell
        try:
            if not self.is_cancelled:
                bell.wait(seconds)
        except BaseException as interruption:
            self._interrupted(interruption)
        finally:
            self._bell = None

    def sees_end(self, work: Future[Any]) -> bool:
        """Wait for the end of *work*, and return whether it came: not if it is late, or if another thread ends the call."""
        bell = threading.Event()
        work.add_done_callback(lambda _: bell.set())
        self.await_bell(bell, None if self._deadline is None else max(0.0, self._deadline - self.now()))
        return work.done()

    def left(self, most: float | None) -> float | None:
        """Return the seconds that the thread may wait now, at most *most*, or ``None`` for no limit.

        Raises:
            httpcore2.ReadTimeout: none are left. Bytes that have arrived already would be read without a wait.
        """
        if self._deadline is None:
            return most
        seconds_left = self._deadline - self.now()
        if seconds_left <= 0:
            raise _too_late()
        seconds_left = max(seconds_left, _GRAIN)
        return seconds_left if most is None else min(seconds_left, most)

    def at(self, connection: socket | None, step: Callable[..., T], *arguments: Any) -> T:
        """Return the result of *step* with *arguments*, which waits at *connection*. Another thread can end that.

        Raises:
            httpcore2.ReadError: the call was ended before, or is now.
        """
        self._socket = connection
        try:
            if self.is_cancelled:
                raise _ended()
            return step(*arguments)
        except BaseException as error:
            interruption = interruption_of(error) if isinstance(error, Exception) else error
            if interruption is None and not self.is_cancelled:
                raise
            if interruption is not None:
                self._interrupted(interruption)
            raise _ended() from None
        finally:
            # Or cancel() could shut a connection down that the pool has given to another call.
            with self._mutex:
                self._socket = None

    def cancel(self) -> None:
        """End the wait, and any that follows. May be called in any thread."""
        with self._mutex:
            self.is_cancelled = True
            if self._socket is not None:
                with suppress(
                    OSError
                ):  # not that of ssl.SSLSocket, which takes the TLS from the thread that reads
                    socket.shutdown(self._socket, SHUT_RDWR)
            bell = self._bell
        if bell is not None:
            bell.set()

    def _interrupted(self, interruption: BaseException) -> None:
        """Let the call end as a cancelled one, so that its last event can be read. The interruption is raised behind it."""
        self.is_cancelled, _here.interruption = True, interruption


_GRAIN: Final = 0.001
"""The shortest wait, in seconds, and the grain of the clock at its end."""


def _ended() -> Exception:
    """Return the error of a wait that was ended. Observers of the client see that nothing has failed."""
    return _ended_type()("the call was ended")


@cache
def _ended_type() -> type[Exception]:
    import httpcore2

    return type("CallEnded", (httpcore2.ReadError, CancelledError), {})


def _too_late() -> Exception:
    import httpcore2

    return httpcore2.ReadTimeout("too late")


class ThreadSlots:
    """Lets a number of calls run at once. Further calls wait: :class:`~crosswalk.service.http.CallSlots` for threads.

    The slot of a call that was interrupted before it could free it is free when its waits are gone.

    Args:
        number: the limit.
    """

    def __init__(self, number: int) -> None:
        self._slot_count = number
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._holders: set[weakref.ref[CallWait]] = set()
        self._waiting_bells: OrderedDict[weakref.ref[CallWait], threading.Event] = OrderedDict()
        # A signal's handler may make a call within each of the steps below: each leaves all in order.
        self._mutex = threading.RLock()

    async def take(self, wait: CallWait) -> None:
        """Wait for a free slot.

        Raises:
            TimeoutError: the call was cancelled.
        """
        assert isinstance(wait, BlockingWait), "of the same driver"
        if self._process != os.getpid():
            self._begin()  # the calls of the parent of this forked process do not end here
        bell = threading.Event()
        with self._mutex:
            self._waiting_bells[weakref.ref(wait)] = bell
            self._hand_on()
        wait.await_bell(bell)
        if wait.is_cancelled:
            raise TimeoutError

    def give_back(self, wait: CallWait) -> None:
        """Free the slot of a call that has ended, if it has one, or its place among those that wait for one."""
        with self._mutex:
            self._free(weakref.ref(wait))

    def _free(self, holder: weakref.ref[CallWait]) -> None:
        with self._mutex:
            self._holders.discard(holder)
            self._waiting_bells.pop(holder, None)
            self._hand_on()

    def _hand_on(self) -> None:
        while self._waiting_bells and self._has_free():
            with suppress(KeyError):  # that of the last one has just been taken
                first, bell = self._waiting_bells.popitem(last=False)
                wait = first()
                if wait is not None:
                    self._holders.add(weakref.ref(wait, self._free))
                    bell.set()

    def _has_free(self) -> bool:
        if len(self._holders) >= self._slot_count:  # a cancelled call may have been interrupted at its end
            ended = [each for each in tuple(self._holders) if (wait := each()) is None or wait.is_cancelled]
            self._holders.difference_update(ended)
        return len(self._holders) < self._slot_count


# ------------------------------------------------------------------------------- transport
# Sends requests through the pool of httpcore2, which httpx2 itself uses, or through a client of the application.


class _WaitingStream(NetworkStream):
    """A connection. Its waits belong to the last call that has written to it.

    Those of an application's own request, and of HTTP/2, where calls share a connection, belong to none.
    """

    def __init__(self, stream: NetworkStream) -> None:
        self._stream = stream
        self._read, self._write, self._start_tls = stream.read, stream.write, stream.start_tls
        self._socket: socket = stream.get_extra_info("socket")
        self._wait: BlockingWait | None = None
        self._is_shared = False

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        wait = self._wait
        if wait is None:
            return self._read(max_bytes, timeout)
        received_bytes = wait.at(self._socket, self._read, max_bytes, wait.left(timeout))
        if received_bytes:
            wait.has_received = True
        elif wait.is_cancelled:  # another thread has shut it down
            raise _ended()
        return received_bytes

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        wait = _here.wait
        if wait is not None and wait.is_new and buffer and not buffer.startswith(b"CONNECT "):
            wait.end_step()
            self._is_shared = self._is_shared or buffer.startswith(b"PRI * HTTP/2")
        self._wait = wait = None if self._is_shared else wait
        if wait is None:
            self._write(buffer, timeout)
        elif buffer:  # the end of a request has none
            import httpcore2

            wait.has_received = False
            try:
                wait.at(self._socket, self._write, buffer, wait.left(timeout))
            except httpcore2.WriteTimeout:
                wait.begin_step(EARLY_SECONDS, StepTimeout)
                raise httpcore2.WriteError("too late") from None  # then httpcore2 reads the answer

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> NetworkStream:
        wait = _here.wait
        assert wait is not None, "a call sends"
        seconds = wait.left(timeout)
        tls_stream = wait.at(self._socket, self._start_tls, ssl_context, server_hostname, seconds)
        return _WaitingStream(tls_stream)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _WaitingBackend(NetworkBackend):
    """Opens connections within the limits of the call that the thread sends."""

    def __init__(self) -> None:
        import httpcore2

        self._backend = httpcore2.SyncBackend()

    def connect_tcp(self, host: str, port: int, timeout: float | None = None, *rest: Any, **more: Any) -> Any:
        wait = _here.wait
        assert wait is not None, "a call sends"
        wait.is_new = True
        wait.begin_step(timeout, OpeningTimeout)
        connect = partial(self._backend.connect_tcp, host, port, wait.left(timeout), *rest, **more)
        return _WaitingStream(wait.at(None, connect))


class BlockingTransport:
    """A :class:`~crosswalk.service.http.Transport` with blocking awaits.

    Args:
        client: the application's own HTTP client, which the application closes, or ``None``.
        options: arguments for the connections made here: ``proxy``, ``verify``, ``cert`` and ``trust_env``. With any other
            argument of ``httpx2.Client``, a SOCKS proxy, and with a *client*, a call goes through httpx2. Its limits hold
            there for each connection that a call opens. For others, over HTTP/2 and with a transport without a trace, they
            are looked at when bytes of the body arrive, and another thread can end the call once its answer has begun.
    """

    def __init__(self, client: httpx2.Client | None, options: Mapping[str, Any]) -> None:
        self._given_client = client
        self._options = options
        has_plain_options = not set(options) - {"proxy", "verify", "cert", "trust_env"}
        proxies = [options.get("proxy"), *environment_proxies(options).values()]
        has_plain_proxies = all(
            proxy is None or (isinstance(proxy, str) and not proxy.lower().startswith("socks"))
            for proxy in proxies
        )
        self._is_plain = client is None and has_plain_options and has_plain_proxies
        self._process: int | None = None
        self._is_closed = False
        self._left: list[Any] = []  # of the process from which this one was forked
        self._begin()

    def _begin(self) -> None:
        self._mutex = threading.RLock()  # a signal's handler may make a call
        self._client = self._given_client
        self._pools: dict[str | None, httpcore2.ConnectionPool] = {}
        weakref.finalize(self, _close_all, self._pools).atexit = False
        self._target = lru_cache(maxsize=64)(self._new_target)

    async def ready(self) -> None:
        """See :class:`Transport`."""
        if self._is_closed:
            raise CrosswalkError("the service is closed")
        process = os.getpid()
        if self._process not in (None, process):
            if self._given_client is not None:
                raise CrosswalkError(
                    "client= belongs to the process from which this one was forked; make a service here"
                )
            self._left += [self._client, *self._pools.values()]  # closing them would end requests there
            self._begin()
        if self._given_client is not None and self._given_client.is_closed:
            raise CrosswalkError("client= is closed; keep it open as long as the service")
        self._process = process
        with self._mutex:
            if not self._is_plain and self._client is None:
                import httpx2

                self._client = made_client(httpx2.Client, httpx2.HTTPTransport, self._options)

    async def send(
        self,
        url: str,
        method: str,
        headers: Mapping[str, str],
        content: bytes,
        timeouts: Timeouts,
        wait: CallWait,
    ) -> HTTPAnswer:
        """See :class:`Transport`."""
        import httpcore2
        import httpx2

        assert isinstance(wait, BlockingWait), "of the same driver"

        lost_errors = (
            httpx2.NetworkError,
            httpx2.RemoteProtocolError,
            httpcore2.NetworkError,
            httpcore2.RemoteProtocolError,
        )
        send_once = self._through_client if self._client is not None else self._through_pool
        while True:
            sending = _BlockingSending(wait, url, method, headers, content, timeouts)
            outer_wait, _here.wait = _here.wait, wait
            try:
                return send_once(sending)
            except lost_errors as error:
                if wait.is_cancelled or not sending.may_repeat or interruption_of(error) is not None:
                    raise
                wait.resent += 1
            finally:
                _here.wait = outer_wait

    def _through_pool(self, sending: _BlockingSending) -> HTTPAnswer:
        import httpcore2

        pool, target, host = self._target(sending.url)
        sent_headers = {b"host": host, b"accept": b"*/*", b"accept-encoding": b"gzip, deflate"}
        sent_headers[b"content-length"] = b"%d" % len(sending.content)
        try:
            sent_headers |= {
                name.lower().encode("ascii"): value.encode("ascii") for name, value in sending.headers.items()
            }
        except UnicodeEncodeError:
            raise httpcore2.LocalProtocolError("a header is not ASCII") from None
        connect_seconds = sending.timeouts.connect
        limits = {"connect": connect_seconds, "write": connect_seconds, "read": None, "pool": None}
        sending.begin()
        request = httpcore2.Request(
            sending.method,
            target,
            headers=[*sent_headers.items()],
            content=sending.content,
            extensions={"timeout": limits},
        )
        use = sending.wait.pool_use = _PoolUse(pool, request)
        response = pool.handle_request(request)
        use.close = response.close
        if sending.is_answered_early:
            response.close()
            sending.was_kept = False
            raise httpcore2.RemoteProtocolError(EARLY_ANSWER)
        response_headers: dict[str, str] = {}
        for name, value in response.headers:
            key, text = name.decode("latin-1").lower(), value.decode("latin-1")
            response_headers[key] = f"{response_headers[key]}, {text}" if key in response_headers else text
        chunks = _Chunks(iter(response.iter_stream()))
        return HTTPAnswer(
            response.status,
            response_headers,
            decoded(chunks, response_headers),
            use.aclose,
        )

    def _new_target(self, address: str) -> tuple[httpcore2.ConnectionPool, httpcore2.URL, bytes]:
        """Return the connections for *address*, the URL as httpcore2 writes it, and its host.

        Raises:
            ConfigurationError: the options are refused, or the proxy is of another kind.
        """
        import httpcore2
        import httpx2

        url = httpx2.URL(address)
        proxy = proxy_for(url.scheme, url.host, url.port, self._options)
        with self._mutex, refused(httpx2.InvalidURL):
            pool = self._pools.get(proxy) or self._pools.setdefault(proxy, self._new_pool(proxy))
        target = httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        return pool, target, url.netloc

    def _new_pool(self, address: str | None) -> httpcore2.ConnectionPool:
        import httpcore2
        import httpx2

        options = with_context(self._options)
        names = ("verify", "cert", "trust_env")
        pool_options: dict[str, Any] = {
            "ssl_context": httpx2.create_ssl_context(
                **{name: options[name] for name in names if name in options}
            ),
            "max_connections": None,
            "max_keepalive_connections": None,
            "keepalive_expiry": KEPT_SECONDS,
            "network_backend": _WaitingBackend(),
        }
        pool = (
            httpcore2.ConnectionPool(**pool_options)
            if address is None
            else self._proxied(address, pool_options)
        )
        # Its own lock is taken in steps of Python: a signal between them would leave it taken for ever.
        pool._optional_thread_lock = threading.RLock()  # type: ignore[assignment]
        return pool

    def _proxied(self, address: str, pool_options: Mapping[str, Any]) -> httpcore2.ConnectionPool:
        import httpcore2
        import httpx2

        proxy = httpx2.Proxy(address)
        url = httpcore2.URL(
            scheme=proxy.url.raw_scheme,
            host=proxy.url.raw_host,
            port=proxy.url.port,
            target=proxy.url.raw_path,
        )
        return httpcore2.HTTPProxy(
            url,
            proxy_auth=proxy.raw_auth,
            proxy_headers=proxy.headers.raw,
            proxy_ssl_context=proxy.ssl_context,
            **pool_options,
        )

    def _through_client(self, sending: _BlockingSending) -> HTTPAnswer:
        import httpx2

        assert self._client is not None, "it is ready"
        wait, timeouts = sending.wait, sending.timeouts
        connect_seconds, seconds = wait.left(timeouts.connect), wait.left(None)
        timeout = httpx2.Timeout(seconds, connect=connect_seconds, write=connect_seconds)
        request = self._client.build_request(
            sending.method,
            sending.url,
            headers=sending.headers,
            content=sending.content,
            timeout=timeout,
            extensions={"trace": sending.note},
        )
        # A redirect would carry the key to an unknown address.
        response = self._client.send(request, stream=True, follow_redirects=False)
        if sending.is_answered_early:
            response.close()
            raise httpx2.RemoteProtocolError(EARLY_ANSWER)
        network = response.extensions.get("network_stream")
        is_read = response.is_stream_consumed  # by a hook or a transport of the application
        body_chunks = response.iter_bytes() if is_read else response.iter_raw()
        chunks: AsyncIterator[bytes] = _Chunks(_watched(body_chunks, network, wait))
        if not is_read:
            chunks = decoded(chunks, response.headers)
        return HTTPAnswer(response.status_code, response.headers, chunks, _closing(response.close))

    async def aclose(self) -> None:
        """See :class:`Transport`."""
        self._is_closed = True
        if self._process == os.getpid():
            _close_all(self._pools)
            if self._client is not None and self._client is not self._given_client:
                self._client.close()


def _close_all(pools: dict[str | None, httpcore2.ConnectionPool]) -> None:
    for pool in pools.values():
        pool.close()


class _PoolUse:
    """The use of a connection of *pool* by *request*.

    Attributes:
        close: closes the answer, once it has begun.
    """

    close: Callable[[], None]

    def __init__(self, pool: httpcore2.ConnectionPool, request: httpcore2.Request) -> None:
        self._pool, self._request = pool, request
        self._is_over = False

    async def aclose(self) -> None:
        """End it, with the answer."""
        if not self._is_over:
            try:
                self.close()
            except BaseException:
                self.tear()
                raise

    def tear(self) -> None:
        """End it, since a signal has interrupted it. Neither the request nor its connection stays in the pool.

        Other connections that no call uses go as well: the interruption may have left the lock of one taken.
        """
        pool, self._is_over = self._pool, True
        with pool._optional_thread_lock:
            pool._requests[:] = [each for each in pool._requests if each.request is not self._request]
            used_connections = [each.connection for each in pool._requests]
            for connection in pool.connections:
                if connection not in used_connections:
                    connection.close()


class _BlockingSending(TracedSending):
    """One sending of a request by the call with this *wait*."""

    wait: BlockingWait

    def __init__(
        self,
        wait: BlockingWait,
        url: str,
        method: str,
        headers: Mapping[str, str],
        content: bytes,
        timeouts: Timeouts,
    ) -> None:
        super().__init__(wait, timeouts)
        self.url, self.method, self.headers, self.content = url, method, headers, content

    @property
    def may_repeat(self) -> bool:
        """See :class:`Sending`."""
        return not self.wait.is_new and super().may_repeat

    def note(self, event: str, facts: Mapping[str, Any]) -> None:
        """See :class:`TracedSending`. A new connection of a client's gets the waits of the calls that use it."""
        super().note(event, facts)
        if ".connect_" in event and event.endswith(".complete"):
            stream = facts["return_value"]
            waiting_stream = _WaitingStream(copy(stream))  # itself would be held by what it holds
            stream.read, stream.write = waiting_stream.read, waiting_stream.write
            stream.start_tls = waiting_stream.start_tls


class _Chunks(AsyncIterator[bytes]):
    """The bytes of a body as they arrive, awaited without an event loop."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks

    async def __anext__(self) -> bytes:
        chunk = next(self._chunks, None)
        if chunk is None:
            raise StopAsyncIteration
        return chunk


def _watched(chunks: Iterator[bytes], network: Any, wait: BlockingWait) -> Iterator[bytes]:
    """Yield *chunks*, which another thread can end if their connection is known.

    Raises:
        httpcore2.ReadTimeout: they come too late.
    """
    while True:
        connection = None if network is None else network.get_extra_info("socket")
        chunk = wait.at(connection, next, chunks, None)
        if wait.is_cancelled:
            raise _ended()
        if chunk is None:
            return
        wait.left(None)
        yield chunk


def _closing(close: Callable[[], None]) -> Callable[[], Awaitable[None]]:
    async def aclose() -> None:
        close()

    return aclose


# --------------------------------------------------------------------------------- driver
# What a service without ``await`` is made of.


class ThreadDriver:
    """A :class:`~crosswalk.service.setup.Driver` for calls that wait in the calling thread.

    Asynchronous middleware runs in an event loop of a separate thread. It begins with the first call that needs it, and
    ends when the service is closed and the last of these calls has ended.
    """

    def __init__(self) -> None:
        self._is_closed = False
        self._left_threads: list[_LoopThread | None] = []  # of the process from which this one was forked
        self._begin()

    def _begin(self) -> None:
        self._mutex = threading.RLock()
        self._thread: _LoopThread | None = None
        self._process = os.getpid()

    def wait(self) -> CallWait:
        """See :class:`Driver`."""
        return BlockingWait()

    def slots(self, number: int) -> Slots:
        """See :class:`Driver`."""
        return ThreadSlots(number)

    def transport(self, library: str, client: Any, options: dict[str, Any]) -> Transport:
        """See :class:`Driver`."""
        if library == "aiohttp":
            raise ConfigurationError("aiohttp needs an event loop: use LLMService", key="transport")
        check_client(client, options, "Client")
        return BlockingTransport(client, options)

    def caching(self, middleware: Middleware) -> Middleware:
        """See :class:`Driver`."""
        return middleware

    def middleware(self, middleware: Middleware) -> Middleware:
        """See :class:`Driver`."""

        @wraps(middleware)
        def around(request: ChatRequest) -> Any:
            steps = middleware(request)
            return self._stepped(steps) if isinstance(steps, AsyncGenerator) else steps

        return around

    def _stepped(self, steps: AsyncGenerator[Any, Any]) -> Generator[Any, Any, None]:
        """Return *steps*, taken in the event loop of the other thread, with the context variables of this one."""
        thread, wait = self._entered_by(steps), _here.wait
        assert wait is not None, "a call takes steps"
        tasks: list[asyncio.Task[Any] | None] = []  # the one that takes a step, if any
        received: Any = None

        async def step() -> Any:
            tasks.append(asyncio.current_task())
            try:
                return await steps.asend(received)
            finally:
                tasks.clear()

        async def close() -> None:
            for task in filter(None, tasks):
                task.cancel()
            await asyncio.gather(*filter(None, tasks), return_exceptions=True)
            await steps.aclose()

        try:
            while True:
                if not thread.is_elsewhere:
                    raise CrosswalkError("asynchronous middleware cannot wait for a call of its own service")
                try:
                    received = yield thread.result(step(), wait)
                except StopAsyncIteration:
                    return
        finally:
            closing, _ = thread.begin(close())
            if wait.is_read_here and thread.is_elsewhere:
                try:
                    closing.result()
                finally:
                    thread.leave(steps)
            else:  # the garbage collector closes a forgotten call. It waits for no thread: it may hold any lock
                closing.add_done_callback(lambda _: thread.leave(steps))

    def _entered_by(self, steps: AsyncGenerator[Any, Any]) -> _LoopThread:
        if self._process != os.getpid():
            self._left_threads.append(self._thread)  # its event loop is not to be closed here
            self._begin()
        with self._mutex:
            if self._thread is None:
                self._thread = _LoopThread()
                weakref.finalize(self, self._thread.close).atexit = False
            thread = self._thread
            thread.enter(steps)
            if self._is_closed:  # the call will be refused
                self.close()
            return thread

    def close(self) -> None:
        """End the thread of asynchronous middleware, as soon as no call needs it."""
        self._is_closed = True
        if self._process == os.getpid():
            with self._mutex:
                thread, self._thread = self._thread, None
            if thread is not None and thread.close():
                thread.join()


class _LoopThread:
    """An event loop in a separate thread. The thread ends when it is closed and its last user has left."""

    def __init__(self) -> None:
        ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self._process = os.getpid()
        self._mutex = threading.RLock()
        self._users: set[AsyncGenerator[Any, Any]] = set()  # the garbage collector leaves them alone
        self._is_closed = False
        self._begun: set[Future[None]] = set()  # an event loop alone forgets tasks that nobody has
        self._thread = threading.Thread(
            target=lambda: asyncio.run(_until_ended(ready)), name="crosswalk middleware", daemon=True
        )
        self._thread.start()
        self._loop, self._end_event = ready.result()
        self.join = self._thread.join

    def enter(self, user: AsyncGenerator[Any, Any]) -> None:
        """Let it run until *user* leaves."""
        with self._mutex:
            self._users.add(user)

    def leave(self, user: AsyncGenerator[Any, Any]) -> None:
        """Let it end, if *user* is the only one that needs it."""
        with self._mutex:
            self._users.remove(user)
            self._end_if_over()

    def close(self) -> bool:
        """Let it end when its last user has left. Return whether this thread can wait for that now."""
        if self._process == os.getpid():
            with self._mutex:
                self._is_closed = True
                self._end_if_over()
        return self.is_elsewhere and not self._users

    def _end_if_over(self) -> None:
        if self._is_closed and not self._users:
            with suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._end_event.set)

    @property
    def is_elsewhere(self) -> bool:
        """Whether it is another thread of this process, for which this thread can wait."""
        return self._thread is not threading.current_thread() and self._process == os.getpid()

    def begin(self, work: Awaitable[T]) -> tuple[Future[T], Future[None]]:
        """Begin *work*, and return its outcome, and what cancels it."""
        outcome: Future[T] = Future()

        async def awaited() -> None:
            try:
                outcome.set_result(await work)
            except BaseException as error:  # also what would end the event loop
                outcome.set_exception(error)

        begun = asyncio.run_coroutine_threadsafe(awaited(), self._loop)
        self._begun.add(begun)
        begun.add_done_callback(self._begun.discard)
        return outcome, begun

    def result(self, work: Awaitable[T], wait: BlockingWait) -> T:
        """Return the result of *work*.

        Raises:
            TimeoutError: *work* was cancelled at the limit of *wait*, or because another thread ended its call.
        """
        may_end = not wait.is_cancelled  # what begins behind the end of the call is not ended
        outcome, begun = self.begin(work)
        is_ended = may_end and not wait.sees_end(outcome)
        if is_ended:
            begun.cancel()
        try:
            return outcome.result()  # it may wait further, such as to free what it holds
        except asyncio.CancelledError as error:
            raise (TimeoutError() if is_ended else error) from None


async def _until_ended(ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]) -> None:
    end_event = asyncio.Event()
    ready.set_result((asyncio.get_running_loop(), end_event))
    await end_event.wait()
