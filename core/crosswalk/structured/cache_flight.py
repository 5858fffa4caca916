"""Single flight: of many callers that want the same at once, one works and the others wait for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Generic, TypeVar

import attrs

__all__ = ["Flight", "FlightAbandonedError", "Flights", "Landing"]

A = TypeVar("A")


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
    """

    thread: int = attrs.field(factory=threading.get_ident)
    result: Future[A | None] = attrs.field(factory=_under_way)

    def wait(self) -> A | None:
        """What the work gives; ``None`` where it gives nothing to share, or where to wait would be for ever.

        Raises:
            FlightAbandonedError: the work was given up.
            Exception: what the work raised.
        """
        if self.thread == threading.get_ident() and not self.result.done():
            return None  # what works is this call's own caller, or a task of the loop that this call holds up
        return self.result.result()

    async def wait_async(self) -> A | None:
        """As :meth:`wait`, in a task. The work goes on where the waiting task is cancelled.

        Raises:
            FlightAbandonedError: the work was given up.
            Exception: what the work raised.
        """
        return await asyncio.wrap_future(self.result)


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
        try:
            yield landing
        except BaseException as error:
            self._remove(key)
            flight.result.set_exception(error if isinstance(error, Exception) else FlightAbandonedError())
            raise
        self._remove(key)
        flight.result.set_result(landing.outcome)

    def _remove(self, key: str) -> None:
        with self._lock:
            del self._flights[key]
