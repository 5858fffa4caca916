"""Who performs the tasks of a job: this process, or several of them; in order, and never more at once than fit in memory."""

from __future__ import annotations

import gc
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import connection, get_context, parent_process
from threading import Thread
from typing import Final, TypeVar

import pyarrow as pa

from crosswalk.errors import CrosswalkError

__all__ = ["GOES_ON", "StoppedError", "cores", "in_order", "processes"]

T = TypeVar("T")
R = TypeVar("R")

GOES_ON: Final = "what is done is kept, and the same command goes on from there"

_NEW_OBJECTS: Final = 50_000
"""How many may come before Python looks for garbage among them, as in the command line."""


class StoppedError(CrosswalkError):
    """A job was stopped before its end. What is finished is kept, and the same job goes on from there."""


def in_order(tasks: Iterable[T], submit: Callable[[T], Callable[[], R]], most: int) -> Iterator[R]:
    """The results of *tasks*, in their order.

    Args:
        tasks: what to do; the next is asked for when there is room for it.
        submit: begins a task, and gives what waits for its result.
        most: how many may be begun or done and not yet taken.
    """
    begun: deque[Callable[[], R]] = deque()
    for task in tasks:
        begun.append(submit(task))
        if len(begun) >= most:
            yield begun.popleft()()
    while begun:
        yield begun.popleft()()


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def processes(perform: Callable[[T], R], count: int) -> Iterator[Callable[[Iterable[T]], Iterator[R]]]:
    """What performs tasks in *count* processes; in this one, where that is 1.

    Raises:
        StoppedError: while it is used: a process died.
    """
    if count == 1:
        yield lambda tasks: map(perform, tasks)
        return
    # Started afresh, not forked: Arrow has threads of its own.
    pool = ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_begin)
    try:
        yield lambda tasks: in_order(tasks, lambda task: pool.submit(perform, task).result, 2 * count)
    except BrokenProcessPool:
        raise StoppedError(f"a process died, perhaps for want of memory; {GOES_ON}") from None
    finally:
        pool.shutdown(cancel_futures=True)


def _begin() -> None:
    """Make this process a worker: Ctrl-C is its parent's business, and without that one it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.set_threshold(_NEW_OBJECTS, *gc.get_threshold()[1:])
    pa.set_cpu_count(1)
    parent = parent_process()
    if parent is not None:
        Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)
