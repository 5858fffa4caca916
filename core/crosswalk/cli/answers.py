"""Maps recorded answers with the options of a command line: one, or many in several processes."""

from __future__ import annotations

import argparse
import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cache, lru_cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

import orjson

from crosswalk.cli.arguments import layout_from
from crosswalk.cli.inputs import InputFault, InputItem, InputSource, RecordedAnswer, items
from crosswalk.cli.terminal import FAILED, OK, USAGE, Progress, WorkerError
from crosswalk.config import Settings, apply_settings
from crosswalk.errors import CrosswalkError, DetectionError
from crosswalk.mapping.detect import MOST_EVENTS, decode_events, fault_of, holder_of, nameable, recognizing
from crosswalk.mapping.normalize import (
    DeltaStream,
    guess,
    normalize,
    normalize_stream,
)
from crosswalk.mapping.reader import ReaderOptions
from crosswalk.plugin.registry import registry
from crosswalk.text import counted
from crosswalk.types.response import ChatResponse
from crosswalk.types.values import now
from crosswalk.wire.framing import DEFAULT

if TYPE_CHECKING:
    import hashlib
    from concurrent.futures import Future, ProcessPoolExecutor

    from crosswalk.records import Layout, LoggedExchange
    from crosswalk.service.hosts import Hosts


# --------------------------------------------------------------------------------- reading
# Maps one recorded answer with the options of a command line.


class Provider:
    """The provider of an answer.

    Attributes:
        name: the provider id.
        is_guess: whether the answer fits other providers too, and nothing names this one.
    """

    __slots__ = ("is_guess", "name")

    def __init__(self, name: str, *, is_guess: bool = False) -> None:
        self.name = name
        self.is_guess = is_guess

    def marked(self, response: ChatResponse) -> ChatResponse:
        """*response*, marked as derived if its provider is a guess."""
        if not self.is_guess:
            return response
        from crosswalk.mapping.agreement import as_guessed  # it writes JSON, which --stream does not need

        return as_guessed(response)


def deltas_of(
    answer: RecordedAnswer, arguments: argparse.Namespace, *, keep_raw: bool = False
) -> DeltaStream:
    """The deltas of *answer*. If the provider sent no id, one is made from the bytes.

    Args:
        answer: the answer to map.
        arguments: ``provider``, ``status`` and ``unknown`` of the command line, ``settings``, perhaps ``created``.
        keep_raw: whether the response keeps the provider's own events.

    Raises:
        RecordError: the log states the exchange without storing its answer.
        DetectionError: no provider is named, and it cannot be detected.
        PluginError: the provider cannot be used.
    """
    if answer.record is not None and not answer.record.has_answer:
        from crosswalk.records import RecordError

        raise RecordError("the log does not store the answer", answer.record)
    return _deltas(answer, arguments, keep_raw)[0]


def _deltas(
    answer: RecordedAnswer, arguments: argparse.Namespace, keep_raw: bool
) -> tuple[DeltaStream, Provider]:
    chunks = answer.chunks
    if (arguments.provider or answer.provider) is None:
        # Detection may need the whole answer. A live stream is mapped as it arrives only with --provider.
        chunks = [b"".join(chunks)]
    provider = _provider(answer, arguments, chunks)
    if isinstance(chunks, list):  # the whole answer: most providers send an id, and none has to be made
        whole_chunks = chunks
        options = _options(answer, arguments, lambda: _id(_digest(*whole_chunks)))
    else:
        digest = _digest()
        chunks, options = _digested(chunks, digest), _options(answer, arguments, lambda: _id(digest))
    return normalize_stream(chunks, provider.name, keep_raw=keep_raw, **options), provider


def response_of(
    answer: RecordedAnswer, arguments: argparse.Namespace, *, keep_raw: bool = False
) -> ChatResponse:
    """The response of *answer*, with the arguments of :func:`deltas_of`. A record of a log is read in one piece.

    A record without an answer gives a response with the facts that its log states.
    """
    if answer.record is None:
        deltas, provider = _deltas(answer, arguments, keep_raw)
        response = deltas.until_done()
    elif not answer.record.has_answer:
        from crosswalk.records import stated_response

        return stated_response(answer.record, clock=_clock(arguments))
    else:
        body = b"".join(answer.chunks)
        if arguments.provider is None and (stored_response := _stored(body)) is not None:
            return stored_response
        provider = _provider(answer, arguments, [body])
        options = _options(answer, arguments, lambda: _id(_digest(body)))
        from crosswalk.records import with_facts

        response = with_facts(normalize(body, provider.name, keep_raw=keep_raw, **options), answer.record)
    return provider.marked(response)


def _stored(body: bytes) -> ChatResponse | None:
    """The response in *body* if it is canonical JSON, as ``crosswalk normalize`` writes it, or ``None``.

    Raises:
        CanonicalJSONError: it is malformed.
    """
    if b'"format_version"' not in body:
        return None
    try:
        fields = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(fields, dict) or not fields.keys() >= {"format_version", "metadata", "finish_reason"}:
        return None
    from crosswalk.codec import from_json  # no answer of a provider needs it

    return from_json(body, ChatResponse)


def _provider(answer: RecordedAnswer, arguments: argparse.Namespace, chunks: Iterable[bytes]) -> Provider:
    provider_name: str | None = arguments.provider or answer.provider
    if provider_name is not None:
        return Provider(provider_name, is_guess=answer.is_guess and arguments.provider is None)
    body, status = b"".join(chunks), arguments.status or answer.status or 200
    try:
        preferred_provider = arguments.settings.default_provider
        return provider_of(body, preferred_provider, answer.server, status=status)
    except DetectionError as error:
        if error.candidates or answer.record is None or answer.record.layout is not None:
            raise
        hint = "pass --layout or --field response=PATH to locate the answer in the line"
        raise DetectionError(f"{error}; {hint}") from None


def _options(
    answer: RecordedAnswer, arguments: argparse.Namespace, make_id: Callable[[], str]
) -> dict[str, Any]:
    return {
        "status": arguments.status or answer.status or 200,
        "unknown": arguments.unknown,
        "id_factory": lambda: answer.id or make_id(),
        "clock": _clock(arguments),
    }


def _clock(arguments: argparse.Namespace) -> Callable[[], datetime]:
    created = getattr(arguments, "created", None)
    return lambda: created or now()


def _digest(*chunks: bytes) -> hashlib._Hash:
    # hashlib loads OpenSSL, which takes as long as to read an answer: as the standard library's own ``random``, take the
    # lean module behind it.
    try:
        from _sha1 import sha1  # type: ignore[import-not-found]
    except ImportError:  # a Python without it
        from hashlib import sha1

    digest: hashlib._Hash = sha1(b"".join(chunks), usedforsecurity=False)
    return digest


def _id(digest: hashlib._Hash) -> str:
    from uuid import UUID  # needed only if the provider sent no id

    return str(UUID(bytes=digest.digest()[:16], version=5))


def _digested(chunks: Iterable[bytes], digest: hashlib._Hash) -> Iterator[bytes]:
    for chunk in chunks:
        digest.update(chunk)
        yield chunk


def provider_of(
    body: bytes, preferred_provider: str | None, server: str | None, *, status: int = 200
) -> Provider:
    """The provider that recognizes *body*, or a guess. The lines before it in a log never count.

    If several providers recognize it, the order is: the *server* that its recorder names, the *preferred_provider*, and,
    if all of them read it in the same way, the owner of the dialect (``openai``).

    Args:
        body: an answer.
        preferred_provider: the user's default provider, or ``None`` for none.
        server: the server's name in the recording, or ``None`` if unknown.
        status: the HTTP status.

    Raises:
        DetectionError: no provider recognizes it, or several do and read it differently.
    """
    if not body.strip():
        raise DetectionError("it is empty")
    events = list(islice(decode_events(body, DEFAULT), MOST_EVENTS))
    try:
        return Provider(recognizing(events, registry))
    except DetectionError as error:
        detection_error = error
    candidates = detection_error.candidates
    for provider_name in (server, preferred_provider):
        if provider_name in candidates:
            return Provider(provider_name)
    if candidates:
        options = ReaderOptions(status=status, keep_raw=False)
        with suppress(DetectionError):
            return Provider(guess(detection_error, body, options, registry), is_guess=True)
        names = ", ".join(candidates)
        raise DetectionError(
            f"several providers recognize it; pass --provider: {names}", candidates=candidates
        )
    if not events:
        from crosswalk.wire.framing import looks_like  # reading JSON does not need it

        likeness = looks_like(body)
        reason = (
            f"it looks like {likeness}" if likeness else fault_of(body, DEFAULT) or "there is no event in it"
        )
        raise DetectionError(f"its beginning is not JSON; {reason}")
    if (key := holder_of(events, registry)) is not None:
        raise DetectionError(f"there is an answer under {key!r}, in the envelope of a log")
    raise DetectionError(
        f"no provider recognizes it; pass --provider: {nameable(detection_error.known, detection_error.broken)}"
    )


# --------------------------------------------------------------------------------- vendors
# The vendor of an exchange: by the word of its log, then its URL, then its model, then the form of its answer.


VendorSource: TypeAlias = Literal["log", "url", "model", "answer"]
"""What names a vendor. ``model`` and ``answer`` derive it."""

_WIRE_FORMATS: Final = frozenset({"anthropic", "gemini", "openai", "openai_responses"})
"""Providers in whose form many servers answer."""
_UNKNOWN_PROVIDER: Final = "unknown"
_MAX_CACHED_URLS: Final = 4096


def vendor_of(
    exchange: LoggedExchange | None, response: ChatResponse | None
) -> tuple[str | None, VendorSource | None]:
    """Return the one spelling of the vendor's name, and what names it; or twice ``None`` if nothing does.

    Args:
        exchange: the facts of the log, or ``None`` for a file that holds an answer alone.
        response: the answer, or ``None`` if it cannot be read.
    """
    from crosswalk.records import vendor_name, vendor_of_model

    if exchange is not None and exchange.vendor is not None:
        return vendor_name(exchange.vendor), "log"
    if (
        exchange is not None
        and exchange.url is not None
        and (vendor_at_url := _vendor_at(exchange.url)) is not None
    ):
        return vendor_at_url, "url"
    provider = None if response is None else response.metadata.provider_id
    if exchange is not None and exchange.provider is not None:
        provider = None  # the form in which the log's tool writes every answer, of any vendor
    is_guess = response is not None and "metadata.provider_id" in response.metadata.provenance
    if provider not in {None, _UNKNOWN_PROVIDER, *_WIRE_FORMATS} and not is_guess:
        return vendor_name(str(provider)), "answer"
    models = [] if response is None else [response.model]
    if exchange is not None:
        models += [model for model in (exchange.answered_model, exchange.model) if model is not None]
    for model in models:
        if (vendor := vendor_of_model(model)) is not None:
            return vendor, "model"
    return (None, None) if provider in (None, _UNKNOWN_PROVIDER) else (vendor_name(str(provider)), "answer")


@lru_cache(_MAX_CACHED_URLS)
def _vendor_at(url: str) -> str | None:
    """Return the vendor of the server at *url*, or ``None``."""
    from crosswalk.records import vendor_name

    site = _hosts().site(url if "://" in url else f"https://{url}")
    return vendor_name(site.providers[0]) if site is not None and site.is_sure and site.providers else None


@cache
def _hosts() -> Hosts:
    from crosswalk.service.hosts import Hosts  # only logs with URLs need it

    return Hosts(registry, environ={})


# ------------------------------------------------------------------------------------ many
# Maps many answers, in this process or in several. The results come in the order of the answers.


_UNREADABLE: Final = "unreadable"
LEFT_OUT: Final = "no exchange"
"""The kind of a line that is no exchange. It is no failure."""
_MOST_ITEMS: Final = 64
_MOST_BYTES: Final = 1 << 20
"""The most that one process gets at once."""
_NEW_OBJECTS: Final = 50_000
"""The number of new objects after which a worker process looks for garbage."""
T = TypeVar("T")
R = TypeVar("R")


class Failed:
    """An answer that could not be processed.

    Attributes:
        place: its place, for reports.
        cause: the reason, in one line.
        kind: the name of the error, or ``unreadable`` for something other than an answer.
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
    provider_counts = ", ".join(f"{count:,} as {provider}" for provider, count in counts.most_common())
    return f"{counted(counts.total(), 'answer')} of several possible providers: {provider_counts}; --provider names another"


def left_out(counts: Counter[str]) -> str:
    """A sentence about the lines that are no exchanges, by what they are."""
    reason_counts = ", ".join(f"{count:,} {reason}" for reason, count in counts.most_common())
    return f"left out {counted(counts.total(), 'line')}: {reason_counts}"


Work: TypeAlias = Callable[[InputItem, RecordedAnswer | InputFault], Iterable[Any]]
"""The function that processes an answer. Its results must be small, since they go from one process to another."""


def failed(answer: RecordedAnswer | InputFault, error: CrosswalkError | None = None) -> Failed:
    """The failure of an *answer* that cannot be read, or *error* from its mapping."""
    if isinstance(answer, InputFault) and not answer.is_exchange:
        return Failed(answer.place, answer.cause, LEFT_OUT)
    if isinstance(answer, InputFault) or error is None:
        return Failed(answer.place, getattr(answer, "cause", ""))
    return Failed(answer.label, f"{type(error).__name__}: {error}", type(error).__name__)


class MappingTally:
    """Counts successes and failures, reports each failure, and writes a total if there were many."""

    def __init__(self, progress: Progress, verb: str) -> None:
        self._progress = progress
        self._verb = verb
        self._taken_count = self._void_count = 0
        self._failure_counts: Counter[str] = Counter()
        self._guess_counts: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()

    @property
    def failed(self) -> int:
        """The number of failures."""
        return self._failure_counts.total()

    @property
    def status(self) -> int:
        """The exit status: all went well, something failed, or nothing could be tried."""
        if not self.failed:
            return OK
        return FAILED if self._taken_count > self._void_count else USAGE

    def results(
        self,
        sources: Sequence[InputSource],
        faults: Iterable[InputFault],
        arguments: argparse.Namespace,
        work: Work,
    ) -> Iterator[Any]:
        """Yield what *work* makes of each answer of *sources*, and count it. Failures and guesses are counted alone."""
        for fault in faults:
            self.report(failed(fault))
        for item, item_results in worked(sources, arguments, work):
            for one in item_results:
                if isinstance(one, Failed):
                    self.report(one, item)
                elif isinstance(one, Guess):
                    self.note(one)
                else:
                    yield one
            self.take(item.size)

    def take(self, size: int) -> None:
        """Count an answer of *size* bytes."""
        self._taken_count += 1
        self._progress.advance(size)

    def note(self, guess: Guess) -> None:
        """Count *guess*."""
        self._guess_counts[guess.provider] += 1

    def report(self, failure: Failed, item: InputItem | None = None) -> None:
        """Count and report *failure*; *item* is the input that was tried, ``None`` if there was none.

        A line without an exchange counts in ``left_out`` alone.
        """
        if failure.kind == LEFT_OUT:
            self.left_out[failure.cause] += 1
            return
        self._failure_counts[failure.kind] += 1
        if failure.kind == _UNREADABLE and item is not None and item.line is None:
            self._void_count += 1  # a file without an answer in it
        self._progress.say(f"{failure.place}: {failure.cause}")

    def write_total(self) -> None:
        """If there were several answers, report the number of failures by kind, and of derived providers."""
        if self.left_out:
            self._progress.say(left_out(self.left_out))
        if self._guess_counts and self._taken_count > 1:
            self._progress.say(guessed(self._guess_counts))
        if self.failed and self._taken_count > 1:
            kind_counts = ", ".join(f"{count:,} {kind}" for kind, count in self._failure_counts.most_common())
            done_count = max(self._taken_count - self.failed - self.left_out.total(), 0)
            self._progress.say(f"{done_count:,} {self._verb}, {self.failed:,} failed: {kind_counts}")


def total_size(sources: Iterable[InputSource]) -> int | None:
    """The size of *sources* in bytes, or ``None`` if it is unknown."""
    sizes = [source.size for source in sources]
    return None if None in sizes else sum(filter(None, sizes))


def worked(
    sources: Sequence[InputSource], arguments: argparse.Namespace, work: Work
) -> Iterator[tuple[InputItem, Iterable[Any]]]:
    """Apply *work* to every answer of *sources*, in order.

    Args:
        sources: the inputs.
        arguments: ``jobs``, ``layout``, ``field`` and ``settings``; perhaps ``keep``, the paths of values to keep by name.
        work: with several jobs it must be a module's function, or a ``partial`` of one.
    """
    layout, kept_paths = layout_from(arguments), getattr(arguments, "keep", None)
    input_items = (item for source in sources for item in items(source))
    is_live = any(source.file is None and not source.records for source in sources)
    if arguments.jobs == 1 or is_live:
        for item in input_items:
            yield item, work(item, item.answer(layout, kept_paths))
        return
    sent: deque[list[InputItem]] = deque()

    def batches() -> Iterator[list[InputItem]]:
        for batch in _batches(input_items):
            sent.append(batch)
            yield batch

    with processes(
        partial(_perform, work, layout, kept_paths), arguments.jobs, arguments.settings
    ) as perform:
        for results in perform(batches()):
            yield from zip(sent.popleft(), results, strict=True)


def _perform(
    work: Work, layout: Layout | None, kept_paths: dict[str, tuple[str, ...]] | None, batch: list[InputItem]
) -> list[list[Any]]:
    return [list(work(item, item.answer(layout, kept_paths))) for item in batch]


def _batches(input_items: Iterable[InputItem]) -> Iterator[list[InputItem]]:
    batch: list[InputItem] = []
    size = 0
    for item in input_items:
        batch.append(item)
        size += item.size
        if len(batch) >= _MOST_ITEMS or size >= _MOST_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


@contextmanager
def processes(
    perform: Callable[[T], R], jobs: int, settings: Settings
) -> Iterator[Callable[[Iterable[T]], Iterator[R]]]:
    """A function that performs tasks, in order, in *jobs* processes with the user's *settings*, or in this one if it is 1.

    It takes few tasks at once, because a task may hold records.

    Raises:
        WorkerError: a process died while it was in use.
    """
    if jobs == 1:
        yield lambda tasks: map(perform, tasks)
        return
    with pool(jobs, settings) as executor:

        def performed(tasks: Iterable[T]) -> Iterator[R]:
            pending: deque[Future[R]] = deque()
            for task in tasks:
                pending.append(executor.submit(perform, task))
                if len(pending) >= 2 * jobs:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()

        yield performed


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
    import gc
    import signal
    from multiprocessing import parent_process
    from threading import Thread

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    gc.set_threshold(_NEW_OBJECTS, *gc.get_threshold()[1:])
    if (parent := parent_process()) is not None:
        Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()
    apply_settings(settings)


def _end_with(sentinel: int) -> None:
    """End this process when the one with *sentinel* ends, also if that is killed."""
    from multiprocessing import connection

    connection.wait([sentinel])
    os._exit(1)
