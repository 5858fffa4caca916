"""Closes watchers at the end of the program, and renews them in a forked process."""

from __future__ import annotations

import atexit
import os
import weakref
from contextlib import suppress
from typing import Final, Protocol

_AT_EXIT: Final = 5.0
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
        watcher.close(_AT_EXIT)


def renew_all() -> None:
    """Renew the watchers, in a forked process."""
    for watcher in list(_all):
        watcher.renew()


with suppress(AttributeError):  # Windows has no forks
    os.register_at_fork(after_in_child=renew_all)
