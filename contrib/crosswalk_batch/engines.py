"""Engines that perform the tasks of a job in one process or several, in order, within the available memory."""

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

T = TypeVar("T")
R = TypeVar("R")

GOES_ON: Final = "finished parts are stored, and the same command continues from there"

_NEW_OBJECTS: Final = 50_000
"""The number of new objects before Python collects garbage, as in the command line."""


class StoppedError(CrosswalkError):
    """A job was stopped before its end. Finished parts are stored, and running the same job again continues from there."""


def in_order(tasks: Iterable[T], submit: Callable[[T], Callable[[], R]], most: int) -> Iterator[R]:
    """Yield the results of *tasks*, in order.

    Args:
        tasks: the tasks, taken when there is capacity.
        submit: starts a task, and returns a function that waits for its result.
        most: the maximum number of tasks that are started and whose results are not taken yet.
    """
    begun: deque[Callable[[], R]] = deque()
    for task in tasks:
        begun.append(submit(task))
        if len(begun) >= most:
            yield begun.popleft()()
    while begun:
        yield begun.popleft()()


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def processes(perform: Callable[[T], R], count: int) -> Iterator[Callable[[Iterable[T]], Iterator[R]]]:
    """Return a function that performs tasks in *count* processes, or in this one if *count* is 1.

    Raises:
        StoppedError: a process died.
    """
    if count == 1:
        yield lambda tasks: map(perform, tasks)
        return
    # Spawned, not forked, because Arrow has threads.
    pool = ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_begin)
    try:
        yield lambda tasks: in_order(tasks, lambda task: pool.submit(perform, task).result, 2 * count)
    except BrokenProcessPool:
        raise StoppedError(f"a process died, perhaps for lack of memory; {GOES_ON}") from None
    finally:
        pool.shutdown(cancel_futures=True)


def _begin() -> None:
    """Set up a worker process. It ignores Ctrl-C, which its parent handles, and ends with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.set_threshold(_NEW_OBJECTS, *gc.get_threshold()[1:])
    pa.set_cpu_count(1)
    parent = parent_process()
    if parent is not None:
        Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)
