"""The watcher: takes what HTTP layers see, maps it in a thread of its own, and hands it on."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, TypeAlias, TypeVar

from crosswalk import Registry, registry as installed
from crosswalk_observe.calls import OpenCalls, call_of, longest_wait
from crosswalk_observe.context import is_suppressed, suppress_observation
from crosswalk_observe.diagnostics import Diagnostics
from crosswalk_observe.exchange import Exchange, json_object
from crosswalk_observe.hosts import Hosts, Site
from crosswalk_observe.reading import record_of
from crosswalk_observe.record import ObservedExchange
from crosswalk_observe.transports import watched

__all__ = ["Sink", "Watcher"]

T = TypeVar("T")

Sink: TypeAlias = Callable[[ObservedExchange], object]
"""What takes records. It may have a ``close()``, which :meth:`Watcher.close` calls.

It may also have ``started(exchange)``, which is called in the thread of the request when a call begins. That returns an
:class:`~crosswalk_observe.calls.Operation`, which is given the call's last record in the place of the sink.
"""

_MIB: Final = 2**20
_AT_EXIT: Final = 5.0
"""Seconds that the end of the program waits for what has not been handed on."""
_METHODS: Final = frozenset({"GET", "POST"})


class Watcher:
    """Watches exchanges with the servers of all known providers, and hands a record of each to *sinks*.

    Applications are never held up: a chunk is passed on before it is kept, and what came is mapped when the exchange is
    over, in a thread of the watcher's own. Whatever goes wrong in mapping or in a sink is logged, once for each kind, as
    ``crosswalk.observe``, and never raised. What would take more memory than allowed is dropped from observation, counted
    in :attr:`dropped`, and logged once a minute at most. After a fork the child watches on, with an empty queue.

    Creating one imports every installed plugin, so that no request has to wait for that.

    Args:
        sinks: what takes the records, in turn and in the watcher's thread.
        registry: the providers; ``None`` for the installed ones.
        providers: ``host`` or ``host:port``, perhaps with ``*`` in it, to the provider whose server that is.
        include: further hosts to watch, in the same form: whose they are tells the answer.
        exclude: hosts not to watch.
        keep_bytes: how much of one answer is kept; of a longer one the record says ``is_cut``.
        most_bytes: how much all exchanges may hold that go on or wait.
        most_waiting: how many exchanges may wait to be mapped.
        in_background: whether to map in a thread; ``False`` for tests: in the thread that ends the exchange.

    Raises:
        PluginError: a provider that *providers* name cannot be used.
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
        in_background: bool = True,
    ) -> None:
        self.keep_bytes = keep_bytes
        self._sinks = sinks
        self._registry = installed if registry is None else registry
        self._most_bytes = most_bytes
        self._most_waiting = most_waiting
        self._in_background = in_background
        self._diagnostics = Diagnostics()
        self._hosts = Hosts(
            self._registry, providers=providers, include=include, exclude=exclude, broken=self._report_broken
        )
        self._remembered: dict[tuple[str, str | None], str] = {}
        self._is_closed = False
        self._has_begun = False
        self._renew()
        _all.add(self)
        _close_before_others()

    def _renew(self) -> None:
        """Begin with an empty queue: what there was is the other process's."""
        # A garbage collection may end an exchange amid anything here: the lock can be taken again by who holds it.
        self._changed = threading.Condition(threading.RLock())
        self._waiting: deque[Exchange] = deque()
        self._busy: Exchange | None = None
        self._thread: threading.Thread | None = None
        self._open: weakref.WeakSet[Exchange] = weakref.WeakSet()
        self._calls = OpenCalls()
        self._reserved_bytes = 0
        self._dropped = self._passed_over = 0
        self._diagnostics.restart_count()

    # ------------------------------------------------------------------------------ what HTTP layers call

    def begin(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        content: bytes | None = None,
    ) -> Exchange | None:
        """A request is about to be sent; ``None`` where nobody wants to watch it: let it pass untouched.

        Args:
            method: the HTTP method.
            url: where it goes.
            headers: its headers; they are read later and must not change.
            content: its body; ``None`` where it is a stream.
        """
        if method not in _METHODS or self._is_closed or is_suppressed():
            return None
        try:
            site = self._hosts.site(url) if method == "POST" else self._hosts.fetched(url)
            if site is None:
                return None
            body = json_object(content)
            if not site.fits(body):
                self._note_passed_over(site, url)
                return None
            exchange = Exchange(self, site, method, url, headers, content, body)
            self._start(exchange)
            return exchange
        except Exception as error:
            self.report("watching", error)
            return None

    def _start(self, exchange: Exchange) -> None:
        """Begin the operations of the sinks that have some, unless *exchange* is another attempt of a call."""
        if not self._has_begun:
            self._has_begun = True
            _close_before_others()
        with self._changed:
            self._open.add(exchange)
            call, goes_on = call_of(exchange)
            exchange.call = call
        if goes_on:
            return
        for position, sink in enumerate(self._sinks):
            started = getattr(sink, "started", None)
            if started is not None:
                try:
                    call.operations[position] = started(exchange)
                    call.sinks.add(position)
                except Exception as error:
                    self.report(_name(sink), error)

    def transport(self, inner: T) -> T:
        """*inner*, a transport of httpx or httpx2, sync or async, watched: give it to a client as its ``transport``."""
        return watched(self, inner)

    def reserve(self, exchange: Exchange, size: int) -> bool:
        """Whether there is room for *size* more bytes of *exchange*; if not, it is dropped."""
        with self._changed:
            if self._reserved_bytes + size <= self._most_bytes:
                self._reserved_bytes += size
                exchange.reserved += size
                return True
            self._drop(exchange)
            return False

    def release(self, exchange: Exchange) -> None:
        """Let go what *exchange* holds."""
        with self._changed:
            self._reserved_bytes = max(0, self._reserved_bytes - exchange.reserved)
            exchange.reserved = 0
            exchange.chunks, exchange.times, exchange.content = [], [], None

    def discard(self, exchange: Exchange) -> None:
        """Let go *exchange*, which becomes no record."""
        with self._changed:
            self.release(exchange)
            self._end_call_later(exchange, None, 0.0)

    def _end_call_later(
        self, exchange: Exchange, record: ObservedExchange | None, wait: float | None
    ) -> None:
        """End the call of *exchange* in *wait* seconds, unless another attempt begins. The caller holds the lock."""
        if self._calls.end_later(exchange, record, wait or 0.0):
            self._changed.notify_all()

    def _end_calls(self, *, all_of_them: bool = False) -> None:
        """End the operations of the calls that are over."""
        with self._changed:
            calls = self._calls.take_ended(all_of_them=all_of_them)
        for call in calls:
            for position, operation in call.operations.items():
                try:
                    operation.end(call.record)
                except (Exception, SystemExit) as error:
                    self.report(_name(self._sinks[position]), error)
            call.record = None
            call.operations.clear()  # the context of a later request may hold the call

    def deliver(self, exchange: Exchange) -> None:
        """Map *exchange*, which is over, and hand it on: soon."""
        with self._changed:
            is_closed = self._is_closed
            if is_closed:
                self.release(exchange)
        if is_closed:
            return
        if not self._in_background:
            exchange.context.run(self._process, exchange)
            return
        with self._changed:
            if len(self._waiting) >= self._most_waiting or not self._is_working():
                self._drop(exchange)
                return
            self._waiting.append(exchange)
            self._changed.notify_all()

    def _is_working(self) -> bool:
        """Whether there is a thread to map in, which is started when it is first needed; the caller holds the lock."""
        if self._thread is None:
            thread = threading.Thread(target=self._process_queue, name="crosswalk observe", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the program ends, or may have no more threads
                return False
            self._thread = thread
        return True

    # ---------------------------------------------------------------------------------- its own end

    @property
    def dropped(self) -> int:
        """How many exchanges were not recorded because there was no room, in this process."""
        return self._dropped

    @property
    def passed_over(self) -> int:
        """How many requests were not watched that seem to be for a model, but do not name one; the log names the servers."""
        return self._passed_over

    def flush(self, timeout: float | None = 30.0) -> bool:
        """Wait until all exchanges that are over have been handed on. Calls that an SDK may try again are over, too.

        Args:
            timeout: the most seconds to wait; ``None`` for as long as it takes.

        Returns:
            Whether they have; a sink that asks is told at once that they have not.
        """
        if self._thread is threading.current_thread():
            return False
        with self._changed:
            is_done = self._changed.wait_for(lambda: not self._waiting and self._busy is None, timeout)
        with suppress_observation():
            self._end_calls(all_of_them=True)
        return is_done

    def close(self, timeout: float | None = 30.0) -> None:
        """Watch nothing any more, hand on what there is, within *timeout* seconds, and close the sinks that can be closed.

        An exchange that still goes on is recorded as far as it came, as one that the application has left.
        """
        if self._is_closed:
            return
        with self._changed:
            going_on = list(self._open)
            if self._thread is None:  # none can be started at the end of the program
                self._in_background = False
        for exchange in going_on:
            exchange.abandoned()
        self.flush(timeout)
        with self._changed:
            self._is_closed = True
            for abandoned in self._waiting:
                self._drop(abandoned)
            self._waiting.clear()
            self._changed.notify_all()
        self._end_calls(all_of_them=True)
        self._diagnostics.note_dropped(self._dropped)
        for sink in self._sinks:
            close = getattr(sink, "close", None)
            if close is not None:
                try:
                    close()
                except Exception as error:
                    self.report(f"closing {_name(sink)}", error)

    def __enter__(self) -> Watcher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---------------------------------------------------------------------------------- in its thread

    def _process_queue(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._waiting or self._is_closed, self._calls.seconds_to_next()
                )
                if self._is_closed and not self._waiting:
                    return
                self._busy = exchange = self._waiting.popleft() if self._waiting else None
            try:
                if exchange is not None:
                    exchange.context.run(self._process, exchange)
                with suppress_observation():
                    self._end_calls()
            except BaseException as error:  # nothing must end the watching
                self.report("a sink", error)
            del exchange
            with self._changed:
                self._busy = None
                self._changed.notify_all()

    def _process(self, exchange: Exchange) -> None:
        with suppress_observation():
            record = None
            try:
                record = record_of(exchange, self._registry, self.keep_bytes, self._remembered)
            except Exception as error:
                self.report("reading an answer", error)
            finally:
                self.release(exchange)
            with self._changed:
                self._end_call_later(exchange, record, longest_wait(exchange))
            self._end_calls()
            if record is None:
                return
            if record.error is not None:
                self.report(f"reading an answer of {record.provider}", record.error)
            for position, sink in enumerate(self._sinks):
                if exchange.call is not None and position in exchange.call.sinks:
                    continue
                try:
                    sink(record)
                except (
                    Exception,
                    SystemExit,
                ) as error:  # a stranger's exit ends neither program nor watching
                    self.report(_name(sink), error)
            self._diagnostics.note_dropped(self._dropped)

    # ---------------------------------------------------------------------------------- what it says

    def _drop(self, exchange: Exchange) -> None:
        """Leave *exchange* out; the caller holds the lock."""
        self.release(exchange)
        self._end_call_later(exchange, None, 0.0)
        self._dropped += 1

    def report(self, doing: str, error: BaseException) -> None:
        """Log *error*, which the program does not see, once for each kind."""
        self._diagnostics.report(doing, error)

    def note(self, message: str, kind: object = None) -> None:
        """Log *message*, once for each *kind*, which is the message itself by default."""
        self._diagnostics.note(message, kind)

    def _note_passed_over(self, site: Site, url: str) -> None:
        if not site.is_exact:  # it only ends like one
            return
        with self._changed:
            self._passed_over += 1
        server, last = f"{site.host}:{site.port}", url.partition("?")[0].rpartition("/")[2]
        include = f"names no model; include=[{server!r}] watches it"
        why = include if site.providers else "has an answer that is not read"
        self.note(f"not watched: a POST to {server}, …/{last}, {why}", ("passed over", server))

    def _report_broken(self, error: Any) -> None:
        self.report(f"provider {error.plugin}", error)


def _name(sink: Sink) -> str:
    return getattr(sink, "__qualname__", type(sink).__qualname__)


_all: weakref.WeakSet[Watcher] = weakref.WeakSet()


def _close_all() -> None:
    for watcher in list(_all):
        watcher.close(_AT_EXIT)


def _close_before_others() -> None:
    """Close the watchers, at the end of the program, before what is registered by now, such as OpenTelemetry's providers."""
    atexit.unregister(_close_all)
    atexit.register(_close_all)


def _renew_all() -> None:
    for watcher in list(_all):
        watcher._renew()


with suppress(AttributeError):  # Windows has no forks
    os.register_at_fork(after_in_child=_renew_all)
