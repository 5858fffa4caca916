"""Calls of an SDK. A call has one span, and one attempt or several at its request."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from crosswalk_observe.exchange import Exchange
    from crosswalk_observe.record import ObservedExchange


_COUNT: Final = "x-stainless-retry-count"
"""The header in which the SDKs of OpenAI, Anthropic and others number the attempts of a call, from 0."""
_LONGEST_WAIT: Final = 10.0
"""The maximum wait of these SDKs before the next attempt in seconds, plus a margin, if the server does not set it."""
_LONGEST_ASKED: Final = 60.0
"""The maximum ``retry-after`` in seconds that these SDKs obey."""


_numbers: Final = count()  # orders calls that end at the same time


class Operation(Protocol):
    """The operation that a sink has begun for a call. See :class:`crosswalk_observe.watcher.Watcher`."""

    def current(self) -> AbstractContextManager[object]:
        """Return a block that is entered in the thread or task of the request while it is sent."""

    def end(self, record: ObservedExchange | None) -> object:
        """End the call with *record*, of its last attempt, or ``None`` if that was not recorded."""


class Call:
    """The attempts at one request, and the operations that sinks have begun for it.

    Attributes:
        operations: the active operations, by the position of their sinks.
        sinks: the positions of the sinks that have begun an operation.
        attempts: the number of attempts before the last.
        deadline: when the call ends unless another attempt begins, or ``None`` during an attempt.
        record: the record of the last attempt.
    """

    def __init__(self, url: str, attempts: int) -> None:
        self.operations: dict[int, Operation] = {}
        self.sinks: set[int] = set()
        self.attempts = attempts
        self.url = url
        self.is_over = False
        self.deadline: float | None = None
        self.record: ObservedExchange | None = None


_current: Final[ContextVar[Call | None]] = ContextVar("crosswalk.observe.call", default=None)


def call_of(exchange: Exchange) -> tuple[Call, bool]:
    """Return the call that *exchange* is an attempt of, and whether it has begun before.

    An SDK that numbers its attempts makes them one after the other, in one thread or task.
    """
    count = exchange.attempt
    before = _current.get()
    if (
        before is not None
        and not before.is_over
        and count == before.attempts + 1
        and exchange.url == before.url
    ):
        before.attempts, before.deadline = count, None
        return before, True
    call = Call(exchange.url, count or 0)
    if count is not None:
        _current.set(call)
    return call, False


class OpenCalls:
    """The calls after their last attempt, until it is certain that no other attempt follows. Not thread-safe."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Call]] = []

    def end_later(self, exchange: Exchange, record: ObservedExchange | None, wait: float) -> bool:
        """Let the call of *exchange* end in *wait* seconds, unless another attempt begins.

        Returns whether the call was added: it has operations, and *exchange* is its last attempt.
        """
        call = exchange.call
        if call is None or not call.operations or (exchange.attempt or 0) < call.attempts:
            return False
        call.record, call.deadline = record, time.monotonic() + wait
        heappush(self._heap, (call.deadline, next(_numbers), call))
        return True

    def take_ended(self, *, all_of_them: bool = False) -> list[Call]:
        """Remove and return the calls that have waited long enough, or all calls."""
        now, ended = time.monotonic(), []
        while self._heap and (all_of_them or self._heap[0][0] <= now):
            deadline, _, call = heappop(self._heap)
            if call.deadline == deadline and not call.is_over:  # otherwise another attempt has begun
                call.is_over = True
                ended.append(call)
        return ended

    def seconds_to_next(self) -> float | None:
        """Return the seconds until the next call ends, or ``None``."""
        return max(0.0, self._heap[0][0] - time.monotonic()) if self._heap else None


def attempt_number(headers: Mapping[str, str] | Iterable[tuple[str, str]]) -> int | None:
    """Return the number of the attempt, from 0, in the *headers* of a request, or ``None`` if they have none."""
    value = header(headers, _COUNT)
    return int(value) if value.isascii() and value.isdigit() else None


def longest_wait(exchange: Exchange) -> float | None:
    """Return the maximum seconds until the SDK retries *exchange*, which has ended, or ``None`` if it does not retry."""
    if exchange.attempt is None or (exchange.was_abandoned and exchange.status is None):
        return None
    should, status = header(exchange.headers, "x-should-retry"), exchange.status
    if should != "true" and (
        should == "false" or not (status is None or status in (408, 409, 429) or status >= 500)
    ):
        return None
    requested = header(exchange.headers, "retry-after")
    seconds = float(requested) if requested.isascii() and requested.isdigit() else 0.0
    return _LONGEST_WAIT + (seconds if seconds <= _LONGEST_ASKED else 0.0)


def header(headers: Mapping[str, str] | Iterable[tuple[str, str]], name: str) -> str:
    """Return the header with the lower-case *name*, or an empty string."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return next((value for key, value in pairs if key.lower() == name), "")
