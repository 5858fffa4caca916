"""Maps many answers, in this process or in several. The results come in the order of the answers."""

from __future__ import annotations

import argparse
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from crosswalk.cli.logs.layouts import layout_from
from crosswalk.cli.logs.sources import Answer, Fault, Item, Source, items
from crosswalk.cli.progress import Progress
from crosswalk.cli.terminal import FAILED, OK, USAGE, WorkerError
from crosswalk.config import Settings, apply_settings
from crosswalk.errors import CrosswalkError
from crosswalk.text import counted
from crosswalk.types.response import ChatResponse

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

    from crosswalk.records import Layout


_UNREADABLE: Final = "unreadable"
_MOST_ITEMS: Final = 64
_MOST_BYTES: Final = 1 << 20
"""The most that one process gets at once."""


class Failed:
    """An answer that could not be processed.

    Attributes:
        place: its place, for reports.
        cause: the reason, in one line.
        kind: the name of the error; ``unreadable`` if it is no answer at all.
    """

    __slots__ = ("cause", "kind", "place")

    def __init__(self, place: str, cause: str, kind: str = _UNREADABLE) -> None:
        self.place = place
        self.cause = cause
        self.kind = kind


class Guess:
    """An answer that fits several providers, and was read as one of them.

    Attributes:
        provider: the id of that provider.
    """

    __slots__ = ("provider",)

    def __init__(self, provider: str) -> None:
        self.provider = provider


def guesses(response: ChatResponse) -> Iterator[Guess]:
    """Yield a guess if the provider of *response* is one."""
    if "metadata.provider_id" in response.metadata.provenance:
        yield Guess(response.metadata.provider_id)


def guessed(counts: Counter[str]) -> str:
    """A sentence about the answers that fit several providers, by the provider that they were read as."""
    several = ", ".join(f"{count:,} as {provider}" for provider, count in counts.most_common())
    return f"{counted(counts.total(), 'answer')} of several possible providers: {several}; --provider names another"


Work: TypeAlias = Callable[[Item, Answer | Fault], Iterable[Any]]
"""The function that processes an answer. Its results must be small, since they go from one process to another."""


def failed(answer: Answer | Fault, error: CrosswalkError | None = None) -> Failed:
    """The failure of an *answer* that cannot be read, or of one whose mapping raised *error*."""
    if isinstance(answer, Fault) or error is None:
        return Failed(answer.place, getattr(answer, "cause", ""))
    location = f"{answer.place} ({answer.id})" if answer.id else answer.place
    return Failed(location, f"{type(error).__name__}: {error}", type(error).__name__)


class Tally:
    """Counts successes and failures, reports each failure, and writes a total if there were many."""

    def __init__(self, progress: Progress, did: str) -> None:
        self._progress = progress
        self._did = did
        self._taken = self._void = 0
        self._kinds: Counter[str] = Counter()
        self._guesses: Counter[str] = Counter()

    @property
    def failed(self) -> int:
        """The number of failures."""
        return self._kinds.total()

    @property
    def status(self) -> int:
        """The exit status: all went well, something failed, or nothing could be tried."""
        if not self.failed:
            return OK
        return FAILED if self._taken > self._void else USAGE

    def take(self, size: int) -> None:
        """Count an answer of *size* bytes."""
        self._taken += 1
        self._progress.advance(size)

    def note(self, guess: Guess) -> None:
        """Count *guess*."""
        self._guesses[guess.provider] += 1

    def report(self, failure: Failed, item: Item | None = None) -> None:
        """Count and report *failure*; *item* is the input that was tried, ``None`` if there was none."""
        self._kinds[failure.kind] += 1
        if failure.kind == _UNREADABLE and item is not None and item.line is None:
            self._void += 1  # a file without an answer in it
        self._progress.say(f"{failure.place}: {failure.cause}")

    def write_total(self) -> None:
        """If there were several answers, report the number of failures by kind, and of derived providers."""
        if self._guesses and self._taken > 1:
            self._progress.say(guessed(self._guesses))
        if self.failed and self._taken > 1:
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in self._kinds.most_common())
            done = max(self._taken - self.failed, 0)
            self._progress.say(f"{done:,} {self._did}, {self.failed:,} failed: {kinds}")


def total_size(sources: Iterable[Source]) -> int | None:
    """The size of *sources* in bytes, or ``None`` if it is unknown."""
    sizes = [source.size for source in sources]
    return None if None in sizes else sum(filter(None, sizes))


def worked(
    sources: Sequence[Source], arguments: argparse.Namespace, work: Work
) -> Iterator[tuple[Item, Iterable[Any]]]:
    """Apply *work* to every answer of *sources*, in order.

    Args:
        sources: the inputs.
        arguments: ``jobs``, ``layout``, ``field`` and ``settings``.
        work: with several jobs it must be a module's function, or a ``partial`` of one.
    """
    layout = layout_from(arguments)
    every = (item for source in sources for item in items(source))
    is_live = any(source.file is None and not source.records for source in sources)
    if arguments.jobs == 1 or is_live:
        for item in every:
            yield item, work(item, item.answer(layout))
        return
    with pool(arguments.jobs, arguments.settings) as executor:
        pending: deque[tuple[list[Item], Future[list[list[Any]]]]] = deque()
        for batch in _batches(every):
            pending.append((batch, executor.submit(_perform, work, layout, batch)))
            if len(pending) > 2 * arguments.jobs:
                yield from _done(*pending.popleft())
        for one in pending:
            yield from _done(*one)


def _done(batch: list[Item], future: Future[list[list[Any]]]) -> Iterator[tuple[Item, list[Any]]]:
    yield from zip(batch, future.result(), strict=True)


def _perform(work: Work, layout: Layout | None, batch: list[Item]) -> list[list[Any]]:
    return [list(work(item, item.answer(layout))) for item in batch]


def _batches(every: Iterable[Item]) -> Iterator[list[Item]]:
    batch: list[Item] = []
    size = 0
    for item in every:
        batch.append(item)
        size += item.size
        if len(batch) >= _MOST_ITEMS or size >= _MOST_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


@contextmanager
def pool(jobs: int, settings: Settings) -> Iterator[ProcessPoolExecutor]:
    """*jobs* processes with the user's *settings*.

    Raises:
        WorkerError: a process died while the pool was in use.
    """
    from concurrent.futures import ProcessPoolExecutor  # most commands need no processes
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    # Started afresh, not forked: the progress bar has a thread of its own.
    executor = ProcessPoolExecutor(
        jobs, mp_context=get_context("spawn"), initializer=_begin, initargs=(settings,)
    )
    try:
        yield executor
    except BrokenProcessPool:
        raise WorkerError(
            "a worker process died, perhaps for want of memory; fewer --jobs need less"
        ) from None
    finally:
        executor.shutdown(cancel_futures=True)


def _begin(settings: Settings) -> None:
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    apply_settings(settings)
