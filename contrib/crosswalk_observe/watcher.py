"""The watcher: receives exchanges from HTTP layers, maps them in its own thread, and passes records to sinks."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, Protocol, TypeVar

from crosswalk import ConfigurationError, Registry, registry as installed
from crosswalk.errors import CrosswalkError
from crosswalk.prices import check_prices
from crosswalk.service import Hosts, Site
from crosswalk_observe.exchange import (
    ObservedExchange,
    OpenCalls,
    Suppression,
    WatchedExchange,
    call_of,
    expected_request,
    is_suppressed,
    json_object,
    longest_wait,
)
from crosswalk_observe.log import Sink, Sinks
from crosswalk_observe.reading import DialectCache, record_of
from crosswalk_observe.transports import watched

# ----------------------------------------------------------------------------- diagnostics
# The log messages of a watcher, each written once.


_log = logging.getLogger("crosswalk.observe")
_DROPPED_INTERVAL: Final = 60.0
"""Seconds between two messages about dropped exchanges."""


class Diagnostics:
    """Logs the errors and notes of a watcher as warnings of the logger ``crosswalk.observe``."""

    def __init__(self) -> None:
        self._logged: set[object] = set()
        self._logged_count = 0
        self._logged_at = -_DROPPED_INTERVAL

    def report(self, doing: str, error: BaseException) -> None:
        """Log *error*, which the program does not see, once for each kind.

        The text of an error of another library is left out, because it may quote content.
        """
        text = type(error).__name__
        if isinstance(error, CrosswalkError):
            text += f": {error}"
        elif isinstance(error, OSError) and error.strerror:
            text += f": {error.strerror}"
        self.note(f"{doing} failed with {text} (logged once)", (doing, type(error)))

    def note(self, message: str, kind: object = None) -> None:
        """Log *message*, once for each *kind*, which is the message itself by default."""
        kind = message if kind is None else kind
        if kind not in self._logged:
            self._logged.add(kind)
            _log.warning("%s", message)

    def note_dropped(self, count: int) -> None:
        """Log that *count* exchanges were dropped so far, if that has changed, at most once a minute."""
        now = time.monotonic()
        if count != self._logged_count and now - self._logged_at >= _DROPPED_INTERVAL:
            self._logged_at, self._logged_count = now, count
            _log.warning("no room: %d exchanges were not recorded so far", count)

    def restart_count(self) -> None:
        """Count dropped exchanges from 0, in a new process."""
        self._logged_count = 0


# ------------------------------------------------------------------------------- lifecycle
# Closes watchers at the end of the program, and renews them in a forked process.


_EXIT_SECONDS: Final = 5.0
"""Seconds that the end of the program waits for pending exchanges."""


class Closeable(Protocol):
    """A watcher."""

    def close(self, timeout: float | None = ...) -> None:
        """Stop watching within *timeout* seconds."""

    def renew(self) -> None:
        """Start with an empty queue, without the exchanges of the parent process."""


_all: weakref.WeakSet[Closeable] = weakref.WeakSet()


def register(watcher: Closeable) -> None:
    """Close *watcher* at exit, and renew it after a fork."""
    _all.add(watcher)
    close_before_others()


def close_before_others() -> None:
    """Close the watchers at exit before everything registered so far, such as OpenTelemetry's providers."""
    atexit.unregister(_close_all)
    atexit.register(_close_all)


def _close_all() -> None:
    for watcher in list(_all):
        watcher.close(_EXIT_SECONDS)


def renew_all() -> None:
    """Renew the watchers, in a forked process."""
    for watcher in list(_all):
        watcher.renew()


with suppress(AttributeError):  # Windows has no forks
    os.register_at_fork(after_in_child=renew_all)


# --------------------------------------------------------------------------------- watcher
# The watcher: receives exchanges from HTTP layers, maps them in its own thread, and passes records to sinks.


T = TypeVar("T")

_MIB: Final = 2**20
_BATCH: Final = 64
_LINGER: Final = 0.05
"""The seconds that the thread waits for more exchanges after the first: to take turns with the program for each is dear."""
_METHODS: Final = frozenset({"GET", "POST"})


class Watcher:
    """Watches exchanges with the servers of all known providers, and passes a record of each to *sinks*.

    Applications are never delayed: each chunk is passed on before it is stored, and an exchange is mapped after its end, in
    the watcher's own thread, at most 50 ms later, with others that end until then. Errors in mapping or in a sink are
    logged as ``crosswalk.observe``, once for each kind, and never raised. Exchanges that would exceed a memory limit are
    dropped, counted in :attr:`dropped`, and logged at most once a minute. After a fork the child process continues with an
    empty queue.

    Creating a watcher imports every installed plugin, so that no request has to wait for that.

    Args:
        sinks: receive the records, in order, in the watcher's thread.
        registry: the providers, or ``None`` for the installed ones.
        providers: maps ``host`` or ``host:port``, with ``*`` as a wildcard, to the provider of that server.
        include: further hosts to watch, in the same form. The provider is detected from the answer.
        exclude: hosts not to watch.
        keep_bytes: the maximum bytes to store of one answer. The record of a longer one has ``is_cut``.
        most_bytes: the maximum bytes of all exchanges that are active or waiting.
        most_waiting: the maximum number of exchanges that wait to be mapped.
        prices: whether records have an estimated cost, by list prices, if the provider does not send it. Needs the extra
            ``prices``.
        in_background: whether to map in a thread. ``False`` maps in the thread that ends the exchange, for tests.

    Raises:
        PluginError: a provider in *providers* cannot be used.
        ConfigurationError: *prices* are wanted, and the extra is not installed, or a sink cannot be called.
    """

    def __init__(
        self,
        *sinks: Sink,
        registry: Registry | None = None,
        providers: Mapping[str, str] | None = None,
        include: Iterable[str] = (),
        exclude: Iterable[str] = (),
        keep_bytes: int = 8 * _MIB,
        most_bytes: int = 64 * _MIB,
        most_waiting: int = 1000,
        prices: bool = False,
        in_background: bool = True,
    ) -> None:
        if prices:
            check_prices()
        if not all(map(callable, sinks)):
            raise ConfigurationError("a sink is a callable; for a file pass JSONLinesLog(path)")
        self.keep_bytes = keep_bytes
        self._with_prices = prices
        self._sinks = Sinks(sinks, self.report)
        self._registry = installed if registry is None else registry
        self._most_bytes = most_bytes
        self._most_waiting = most_waiting
        self._in_background = in_background
        self._diagnostics = Diagnostics()
        self._hosts = Hosts(
            self._registry, providers=providers, include=include, exclude=exclude, broken=self._report_broken
        )
        self._dialects: DialectCache = {}
        self._is_closed = False
        self._has_begun = False
        self.renew()
        register(self)

    def renew(self) -> None:
        """Start with an empty queue, without the exchanges of the parent process."""
        # A garbage collection may end an exchange at any point here, so the lock must be reentrant.
        self._lock = threading.RLock()
        self._state_condition = threading.Condition(self._lock)
        self._waiting_exchanges: deque[WatchedExchange] = deque()
        self._current_exchange: WatchedExchange | None = None
        self._thread: threading.Thread | None = None
        self._open_exchanges: weakref.WeakSet[WatchedExchange] = weakref.WeakSet()
        self._calls = OpenCalls()
        self._reserved_bytes = self._flush_count = 0
        self._dropped_count = self._passed_over_count = 0
        self._diagnostics.restart_count()

    # ------------------------------------------------------------------------------ what HTTP layers call

    def begin(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        content: bytes | None = None,
    ) -> WatchedExchange | None:
        """Begin the exchange of a request that is about to be sent, or return ``None`` if it is not watched.

        Args:
            method: the HTTP method.
            url: the URL.
            headers: the headers.
            content: the body, or ``None`` if it is a stream.
        """
        if method not in _METHODS or self._is_closed or is_suppressed():
            return None
        try:
            site = self._hosts.site(url) if method == "POST" else self._hosts.fetched(url)
            body = {} if site is None else json_object(content)
            if site is None or not site.fits(body):
                if (expected := expected_request(url)) is None:
                    if site is not None:
                        self._note_passed_over(site, url, site.why_not(body))
                    return None
                site, body = expected.site, json_object(content)
            exchange = WatchedExchange(self, site, method, url, headers, content, body)
            self._start(exchange)
            return exchange
        except Exception as error:
            self.report("watching", error)
            return None

    def _start(self, exchange: WatchedExchange) -> None:
        """Begin the operations of the sinks, unless *exchange* is another attempt of a call."""
        if not self._has_begun:
            self._has_begun = True
            close_before_others()
        with self._lock:
            self._open_exchanges.add(exchange)
            call, is_retry = call_of(exchange)
            exchange.call = call
        if is_retry:
            return
        self._sinks.begin(call, exchange)

    def transport(self, inner: T) -> T:
        """Wrap *inner*, a transport of httpx or httpx2, sync or async. Pass the result to a client as its ``transport``."""
        return watched(self, inner)

    def reserve(self, exchange: WatchedExchange, size: int) -> bool:
        """Reserve *size* more bytes for *exchange*, or drop it and return ``False`` if memory is short."""
        with self._lock:
            if self._reserved_bytes + size <= self._most_bytes:
                self._reserved_bytes += size
                exchange.reserved += size
                return True
            self._drop(exchange)
            return False

    def release(self, exchange: WatchedExchange) -> None:
        """Release the memory of *exchange*."""
        with self._lock:
            self._reserved_bytes = max(0, self._reserved_bytes - exchange.reserved)
            exchange.reserved = 0
            exchange.chunks, exchange.times, exchange.content = [], [], None

    def discard(self, exchange: WatchedExchange) -> None:
        """Forget *exchange* without a record."""
        with self._lock:
            self.release(exchange)
            self._end_call_later(exchange, None, exchange.next_wait)

    def _end_call_later(
        self, exchange: WatchedExchange, record: ObservedExchange | None, wait: float | None
    ) -> None:
        """End the call of *exchange* in *wait* seconds, unless another attempt begins. The caller holds the lock."""
        if self._calls.end_later(exchange, record, wait or 0.0):
            self._state_condition.notify_all()

    def _end_calls(self, *, all_of_them: bool = False) -> None:
        """End the operations of the calls that are over."""
        with self._lock:
            calls = self._calls.take_ended(all_of_them=all_of_them)
        if calls:
            self._sinks.end(calls)

    def deliver(self, exchange: WatchedExchange) -> None:
        """Queue *exchange*, which has ended, for mapping."""
        with self._lock:
            if self._is_closed:
                self.release(exchange)
                return
            if self._in_background:
                if len(self._waiting_exchanges) >= self._most_waiting or not self._is_working():
                    self._drop(exchange)
                    return
                self._waiting_exchanges.append(exchange)
                if len(self._waiting_exchanges) == 1 or self._is_due():
                    self._state_condition.notify_all()
                return
        exchange.context.run(self._process, exchange)

    def _is_due(self) -> bool:
        """Whether what waits is mapped now and not after :data:`_LINGER`. The caller holds the lock."""
        return (
            self._is_closed
            or self._flush_count > 0
            or len(self._waiting_exchanges) >= min(_BATCH, self._most_waiting // 2)
            or 2 * self._reserved_bytes > self._most_bytes
        )

    def _is_working(self) -> bool:
        """Start the thread if necessary, and return whether it exists. The caller holds the lock."""
        if self._thread is None:
            thread = threading.Thread(target=self._process_queue, name="crosswalk observe", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the program is exiting, or cannot have more threads
                return False
            self._thread = thread
        return True

    # ---------------------------------------------------------------------------------- its own end

    @property
    def dropped(self) -> int:
        """The number of exchanges of this process that were not recorded for lack of room."""
        return self._dropped_count

    @property
    def passed_over(self) -> int:
        """The number of unwatched requests that look like model requests. The log says why, once for each server."""
        return self._passed_over_count

    def flush(self, timeout: float | None = 30.0) -> bool:
        """Wait until all exchanges that have ended have been passed on. Calls that an SDK may retry end now.

        Args:
            timeout: the maximum seconds to wait, or ``None`` for no limit.

        Returns:
            Whether all have been passed on. A sink that calls this gets ``False`` at once.
        """
        if self._thread is threading.current_thread():
            return False
        with self._lock:
            self._flush_count += 1
            self._state_condition.notify_all()
            try:
                is_done = self._state_condition.wait_for(
                    lambda: not self._waiting_exchanges and self._current_exchange is None, timeout
                )
            finally:
                self._flush_count -= 1
        with Suppression():
            self._end_calls(all_of_them=True)
        return is_done

    def close(self, timeout: float | None = 30.0) -> None:
        """Stop watching, pass on what is pending within *timeout* seconds, and close the sinks.

        An active exchange is recorded as far as it got, as abandoned by the application.
        """
        if self._is_closed:
            return
        with self._lock:
            open_exchanges = list(self._open_exchanges)
            if self._thread is None:  # a thread cannot be started at exit
                self._in_background = False
        for exchange in open_exchanges:
            exchange.abandoned()
        try:
            self.flush(timeout)
        finally:
            with self._lock:
                self._is_closed = True
                for waiting_exchange in self._waiting_exchanges:
                    self._drop(waiting_exchange)
                self._waiting_exchanges.clear()
                self._state_condition.notify_all()
            try:
                self._end_calls(all_of_them=True)
            finally:
                self._diagnostics.note_dropped(self._dropped_count)
                self._sinks.close()

    def __enter__(self) -> Watcher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---------------------------------------------------------------------------------- in its thread

    def _process_queue(self) -> None:
        while True:
            with self._lock:
                if not self._waiting_exchanges:
                    self._state_condition.wait_for(
                        lambda: self._waiting_exchanges or self._is_closed, self._calls.seconds_to_next()
                    )
                    self._state_condition.wait_for(
                        lambda: not self._waiting_exchanges or self._is_due(), _LINGER
                    )
                if self._is_closed and not self._waiting_exchanges:
                    return
                self._current_exchange = exchange = (
                    self._waiting_exchanges.popleft() if self._waiting_exchanges else None
                )
            try:
                if exchange is not None:
                    exchange.context.run(self._process, exchange)
                else:
                    with Suppression():
                        self._end_calls()
            except BaseException as error:  # the thread must survive every error
                self.report("a sink", error)
            del exchange
            with self._lock:
                self._current_exchange = None
                if not self._waiting_exchanges:
                    self._state_condition.notify_all()  # for those who flush

    def _process(self, exchange: WatchedExchange) -> None:
        with Suppression():
            record = None
            try:
                record = record_of(
                    exchange,
                    self._registry,
                    self.keep_bytes,
                    self._dialects,
                    with_prices=self._with_prices,
                    facts_alone=self._sinks.need_facts_alone,
                )
            except Exception as error:
                self.report("reading an answer", error)
            finally:
                self.release(exchange)
            with self._lock:  # nobody is waked: the thread that ends calls is this one
                self._calls.end_later(exchange, record, longest_wait(exchange) or 0.0)
                calls = self._calls.take_ended()
            try:
                self._sinks.end(calls)
            finally:
                if record is not None:
                    if record.error is not None:
                        self.report(f"reading an answer of {record.provider}", record.error)
                    self._sinks.take(record, exchange.call)
                    if self._dropped_count:
                        self._diagnostics.note_dropped(self._dropped_count)

    # ---------------------------------------------------------------------------------- what it says

    def _drop(self, exchange: WatchedExchange) -> None:
        """Drop *exchange*. The caller holds the lock."""
        self.release(exchange)
        self._end_call_later(exchange, None, 0.0)
        self._dropped_count += 1

    def report(self, doing: str, error: BaseException) -> None:
        """Log *error*, which the program does not see, once for each kind."""
        self._diagnostics.report(doing, error)

    def note(self, message: str, kind: object = None) -> None:
        """Log *message*, once for each *kind*, which is the message itself by default."""
        self._diagnostics.note(message, kind)

    def _note_passed_over(self, site: Site, url: str, reason: str | None) -> None:
        if reason is None:
            return
        with self._lock:
            self._passed_over_count += 1
        server, last_segment = f"{site.host}:{site.port}", url.partition("?")[0].rpartition("/")[2]
        self.note(f"not watched: a POST to {server}, …/{last_segment}: {reason}", ("passed over", server))

    def _report_broken(self, error: Any) -> None:
        self.report(f"provider {error.plugin}", error)
