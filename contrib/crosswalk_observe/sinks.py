"""The sinks of a watcher: called in turn, and never able to harm the watcher or the program."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from crosswalk_observe.record import ObservedExchange

if TYPE_CHECKING:
    from crosswalk_observe.calls import Call
    from crosswalk_observe.exchange import Exchange


Sink: TypeAlias = Callable[[ObservedExchange], object]
"""A consumer of records. :meth:`Watcher.close` calls its ``close()`` if it has one.

It may also have ``started(exchange)``, called in the thread of the request when a call begins. It returns an
:class:`~crosswalk_observe.calls.Operation`, which gets the record of the call's last attempt instead of the sink.
"""


class Sinks:
    """Calls sinks, and reports their errors.

    Args:
        sinks: the sinks, in the order in which they are called.
        report: logs an error, with a description of the work that failed.
    """

    def __init__(self, sinks: tuple[Sink, ...], report: Callable[[str, BaseException], None]) -> None:
        self._sinks = sinks
        self._report = report

    def begin(self, call: Call, exchange: Exchange) -> None:
        """Begin the operations of *call* with its first *exchange*."""
        for position, sink in enumerate(self._sinks):
            started = getattr(sink, "started", None)
            if started is not None:
                try:
                    call.operations[position] = started(exchange)
                    call.sinks.add(position)
                except Exception as error:
                    self._report(_name(sink), error)

    def end(self, call: Call) -> None:
        """End the operations of *call* with the record of its last attempt."""
        for position, operation in call.operations.items():
            try:
                operation.end(call.record)
            except (Exception, SystemExit) as error:
                self._report(_name(self._sinks[position]), error)
        call.record = None
        call.operations.clear()  # the context of a later request may hold the call

    def take(self, record: ObservedExchange, call: Call | None) -> None:
        """Pass *record* to the sinks that have not begun an operation for *call*."""
        for position, sink in enumerate(self._sinks):
            if call is not None and position in call.sinks:
                continue
            try:
                sink(record)
            except (Exception, SystemExit) as error:
                self._report(_name(sink), error)

    def close(self) -> None:
        """Close the sinks that can be closed."""
        for sink in self._sinks:
            close = getattr(sink, "close", None)
            if close is not None:
                try:
                    close()
                except Exception as error:
                    self._report(f"closing {_name(sink)}", error)


def _name(sink: Sink) -> str:
    return getattr(sink, "__qualname__", type(sink).__qualname__)
