"""Single flight: of many callers that want the same at once, one works and the others wait for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

import attrs

__all__ = ["Flight", "FlightAbandonedError", "Flights", "Landing"]

A = TypeVar("A")

_led: ContextVar[tuple[Flight[Any], ...]] = ContextVar("_led", default=())
"""The flights that this call works for; a task begun in one of them works for it as well."""
_waits = threading.Lock()
"""Held to look at who waits for whom, over all caches."""


class FlightAbandonedError(Exception):
    """The caller that worked was cancelled; those that waited have to see for themselves."""


def _under_way() -> Future[A | None]:
    """A future that the cancellation of one who waits for it does not cancel."""
    future: Future[A | None] = Future()
    future.set_running_or_notify_cancel()
    return future


@attrs.define(eq=False)
class Flight(Generic[A]):
    """One piece of work under way.

    Attributes:
        thread: the thread of the caller that works.
        result: what it gives.
        awaited: the flights that its work waits for.
    """

    thread: int = attrs.field(factory=threading.get_ident)
    result: Future[A | None] = attrs.field(factory=_under_way)
    awaited: list[Flight[Any]] = attrs.field(factory=list)

    def wait(self) -> A | None:
        """What the work gives; ``None`` where it gives nothing to share, or where to wait would be for ever.

        Raises:
            FlightAbandonedError: the work was given up.
            Exception: what the work raised.
        """
        if self.thread == threading.get_ident() and not self.result.done():
            return None  # what works is this call's own caller, or a task of the loop that this call holds up
        with self._waiting() as may_wait:
            return self.result.result() if may_wait else None

    async def wait_async(self) -> A | None:
        """As :meth:`wait`, in a task. The work goes on where the waiting task is cancelled.

        Raises:
            FlightAbandonedError: the work was given up.
            Exception: what the work raised.
        """
        with self._waiting() as may_wait:
            return await asyncio.wrap_future(self.result) if may_wait else None

    @contextmanager
    def _waiting(self) -> Iterator[bool]:
        """Note that the flights of this call wait for this one; false where this one waits for one of them."""
        led = _led.get()
        with _waits:
            may_wait = not self._leads_to(led)
            if may_wait:
                for flight in led:
                    flight.awaited.append(self)
        try:
            yield may_wait
        finally:
            if may_wait:
                with _waits:
                    for flight in led:
                        flight.awaited.remove(self)

    def _leads_to(self, flights: tuple[Flight[Any], ...]) -> bool:
        seen: list[Flight[Any]] = [self]
        for flight in seen:
            if flight in flights:
                return True
            seen += [each for each in flight.awaited if each not in seen]
        return False


@attrs.define
class Landing(Generic[A]):
    """How a flight ends.

    Attributes:
        outcome: what all that wait are given; ``None`` where there is nothing to share.
    """

    outcome: A | None = None


class Flights(Generic[A]):
    """The pieces of work under way, by key."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flights: dict[str, Flight[A]] = {}

    def join(self, key: str) -> tuple[Flight[A], bool]:
        """The flight for *key*, and whether the caller is the one who works, in :meth:`landing`."""
        with self._lock:
            flight = self._flights.get(key)
            if flight is not None:
                return flight, False
            self._flights[key] = flight = Flight()
            return flight, True

    @contextmanager
    def landing(self, key: str, flight: Flight[A]) -> Iterator[Landing[A]]:
        """The work itself; with its end *flight* ends, and who waits for it is told the outcome or the exception."""
        landing: Landing[A] = Landing()
        token = _led.set((*_led.get(), flight))
        try:
            yield landing
        except BaseException as error:
            self._remove(key)
            flight.result.set_exception(error if isinstance(error, Exception) else FlightAbandonedError())
            raise
        finally:
            _led.reset(token)
        self._remove(key)
        flight.result.set_result(landing.outcome)

    def _remove(self, key: str) -> None:
        with self._lock:
            del self._flights[key]
