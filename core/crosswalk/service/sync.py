"""The service without ``await``: the asynchronous service, in an event loop of a separate thread."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator, Mapping
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, Unpack, overload

from crosswalk.errors import CrosswalkError
from crosswalk.request import Asked
from crosswalk.service.call import EventStream, text_of
from crosswalk.service.service import (
    CallOptions,
    JSONOptions,
    LLMService,
    RetriedJSONOptions,
    setup_of,
    takes,
)
from crosswalk.service.setup import RequestPlan
from crosswalk.types.response import ChatResponse
from crosswalk.types.stream import StreamEvent
from crosswalk.types.values import checks_keywords

if TYPE_CHECKING:
    from crosswalk.service.auxiliary_requests import Embeddings, PlainAnswer, TokenCount
    from crosswalk.service.json_answer import AnswerType, JSONAnswer, SyncJSONStream


# ---------------------------------------------------------------------------------- thread
# The thread in which a service without ``await`` runs its event loop, and the streams that it reads ahead there.


T = TypeVar("T")

READ_AHEAD: Final = 16
"""The number of pieces of a stream that are read before the consumer takes the first."""


class StoppedError(CrosswalkError):
    """The thread was stopped, before the work or during it."""


class ServiceThread:
    """A thread that runs an event loop, started when it is first needed. It ends with :meth:`close`, or when it is dropped.

    Args:
        aclose: closes what runs in the loop.
    """

    def __init__(self, aclose: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._aclose = aclose
        self._finalizer: weakref.finalize[Any, Any] | None = None
        self._lock = threading.RLock()  # a signal's handler may cancel the call that it interrupts
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._left: list[tuple[asyncio.AbstractEventLoop | None, threading.Thread | None]] = []
        self._is_stopped = False
        _threads.add(self)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run *work* in the thread and return its result. If this caller is interrupted, *work* is cancelled.

        Raises:
            CrosswalkError: the thread was stopped, before or during the work, or this is the thread itself.
        """
        if self.is_current:
            work.close()
            raise CrosswalkError("an observer or a middleware cannot wait for its own service")
        future = self.begin(work)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise StoppedError("the service was closed before the answer was complete") from None
        except BaseException:
            future.cancel()  # Ctrl-C; of a work that has ended it does nothing
            raise

    def begin(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Begin *work* in the thread, with the context variables of the caller.

        Raises:
            CrosswalkError: the thread was stopped.
        """
        if sys.is_finalizing():  # no thread runs any more
            work.close()
            raise StoppedError("the program is ending")
        with self._lock:  # so that a stop sees everything that has been started
            if self._is_stopped:
                work.close()
                raise StoppedError("the service is closed")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_serve, args=(self._loop,), name="crosswalk service", daemon=True
                )
                self._thread.start()
                self._finalizer = weakref.finalize(self, _close, self._loop, self._aclose)
                self._finalizer.atexit = False
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    @property
    def is_current(self) -> bool:
        """Whether the caller runs in the thread, such as an observer."""
        return self._thread is threading.current_thread()

    def call(self, function: Callable[..., object], *arguments: object) -> None:
        """Call *function* in the thread soon, if it runs."""
        with self._lock:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(function, *arguments)

    def close(self) -> None:
        """Close what runs in the thread, and end it."""
        if self._loop is not None:
            try:
                self.run(self._aclose())
            except StoppedError:  # another thread closes it, or the program ends
                return
        with self._lock:
            loop, self._loop, self._is_stopped = self._loop, None, True
            if loop is None or self._thread is None or self._finalizer is None:
                return
            self._finalizer.detach()
            loop.call_soon_threadsafe(loop.stop)
        self._thread.join()  # without the lock, which what is collected in that thread may need

    def forget(self) -> None:
        """Start anew when it is next needed: this is a forked process, and the thread belongs to the parent."""
        self._lock = threading.RLock()  # the old lock may be held by a thread that does not exist here
        # The old loop is left alone: cleaning it up would clean up the parent's loop.
        if self._finalizer is not None:
            self._finalizer.detach()
        self._left.append((self._loop, self._thread))
        self._loop = self._thread = None


_threads: weakref.WeakSet[ServiceThread] = weakref.WeakSet()
"""All threads of the process, to be reset if it is forked."""

_fork_count = 0


def fork_count() -> int:
    """Return the number of times that this process was forked off, which is cheaper than asking for its number."""
    return _fork_count


def _forget_threads() -> None:
    """Forget the threads of the parent process, which do not exist after a fork."""
    global _fork_count
    _fork_count += 1
    for thread in list(_threads):
        thread.forget()


getattr(os, "register_at_fork", dict)(after_in_child=_forget_threads)  # Windows has no such function


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.get_loop().run_forever()


def _close(loop: asyncio.AbstractEventLoop, aclose: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Close what runs in *loop*, and end its thread, without waiting for it."""
    closing = asyncio.run_coroutine_threadsafe(aclose(), loop)
    closing.add_done_callback(lambda _: loop.call_soon_threadsafe(loop.stop))


class ReadAhead:
    """Reads a stream in a service's thread, at most :data:`READ_AHEAD` pieces ahead of the consumer in another one.

    Args:
        stream: the stream.
        thread: the service's.
    """

    def __init__(self, stream: EventStream, thread: ServiceThread) -> None:
        self._stream = stream
        self._thread = thread
        self._batches: SimpleQueue[list[StreamEvent] | concurrent.futures.Future[None]] = SimpleQueue()
        self._has_room = asyncio.Event()
        self._is_full = False

    def start(self) -> None:
        """Begin to read.

        Raises:
            CrosswalkError: the thread was stopped.
        """
        try:
            reading = self._thread.begin(self._read())
        except StoppedError:
            self._batches.put([])
            raise
        reading.add_done_callback(self._batches.put)  # however it ends

    def take(self) -> list[StreamEvent]:
        """Wait for the next events and return them, or an empty list at the end.

        Raises:
            CrosswalkError: as from :meth:`EventStream.__anext__`, or the thread was stopped.
        """
        batch = self._batches.get()
        if isinstance(batch, concurrent.futures.Future):
            self._batches.put([])  # for whoever asks again
            if not batch.cancelled():
                batch.result()
                return []
            if not self._stream.has_ended:
                raise StoppedError("the service was closed before the answer was complete")
            return self._ready()
        if not batch:
            self._batches.put(batch)
            return batch
        if self._is_full and self._batches.qsize() <= READ_AHEAD // 2:
            self._is_full = False
            self._thread.call(self._has_room.set)
        return batch

    async def cancel(self) -> None:
        """End the stream, for :meth:`ServiceThread.run`."""
        await self._stream.cancel()
        self._has_room.set()  # for the last events

    def _ready(self) -> list[StreamEvent]:
        """Return the events that have arrived and not been read."""
        events = list(self._stream.ready)
        self._stream.ready.clear()
        return events

    async def _read(self) -> None:
        async with self._stream as stream:
            while True:
                # The consumer wakes this thread only if it waits, and once for half of the pieces.
                self._is_full = self._batches.qsize() >= READ_AHEAD
                while self._is_full and self._batches.qsize() > READ_AHEAD // 2 and not stream.has_ended:
                    await self._has_room.wait()
                    self._has_room.clear()
                try:
                    await stream.read_on()
                except StopAsyncIteration:
                    return
                self._batches.put(self._ready())  # at least one


# ------------------------------------------------------------------------------------ sync
# The service without ``await``: the asynchronous service, in an event loop of a separate thread.


class SyncEventStream(Iterator[StreamEvent]):
    """The events of an answer as they arrive, made by :meth:`SyncLLMService.stream`.

    Like :class:`EventStream`, for a ``for`` loop and a ``with`` block. A few pieces of the answer are read ahead.
    """

    def __init__(self, stream: EventStream, thread: ServiceThread) -> None:
        self._stream = stream
        self._thread = thread
        self._forks = fork_count()
        self._ready: deque[StreamEvent] = deque()
        self._ahead: ReadAhead | None = None

    def __next__(self) -> StreamEvent:
        """Return the next event. Raises like :class:`EventStream`.

        Raises:
            CrosswalkError: the stream was started by the parent of this forked process.
        """
        if self._forks != fork_count():
            raise CrosswalkError("the stream belongs to the process from which this one was forked")
        while not self._ready:
            if self._ahead is None:
                self._ahead = ReadAhead(self._stream, self._thread)  # known before an observer runs
                self._ahead.start()
                weakref.finalize(self, _abandon, self._ahead, self._thread, self._forks).atexit = False
            events = self._ahead.take()
            if not events:
                raise StopIteration
            self._ready.extend(events)
        return self._ready.popleft()

    @property
    def text(self) -> Generator[str, None, None]:
        """The text of the answer as it arrives. See :attr:`EventStream.text`."""
        return self._texts()

    def _texts(self) -> Generator[str, None, None]:
        with self:
            for event in self:
                if text := text_of(event):
                    yield text
        self.response.raise_for_error()

    @property
    def response(self) -> ChatResponse:
        """The complete response, once the stream has ended. Raises like :attr:`EventStream.response`."""
        return self._stream.response

    @property
    def partial(self) -> ChatResponse:
        """The answer so far, with what was read ahead. See :attr:`EventStream.partial`."""
        return self._thread.run(self._partial())

    async def _partial(self) -> ChatResponse:
        return self._stream.partial

    def cancel(self) -> None:
        """End the answer here, from any thread, and close the connection. See :meth:`EventStream.cancel`.

        Does nothing once the service is closed, which has ended the stream, or in a forked process, which does not own it.
        """
        if self._forks != fork_count():
            return
        ending = (self._ahead or self._stream).cancel()
        with contextlib.suppress(StoppedError):
            if self._thread.is_current:  # an observer cannot wait for its own thread
                self._thread.begin(ending)
            else:
                self._thread.run(ending)

    def close(self) -> None:
        """Like :meth:`cancel`, for a stream that is not read any further."""
        self.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _abandon(ahead: ReadAhead, thread: ServiceThread, forks: int) -> None:
    """End a stream that nobody can read any more, unless it belongs to the parent of this process."""
    if forks == fork_count():
        with contextlib.suppress(StoppedError):
            thread.begin(ahead.cancel())


class SyncLLMService:
    """:class:`LLMService` without ``await``. May be used from several threads.

    Takes the arguments of :class:`LLMService` and is the same service, in an event loop of a separate thread, which starts
    with the first call. Observers and middleware run in that thread, with the context variables of the caller. A stream is
    read ahead of its consumer, a few pieces at most. A forked process starts its own thread and connections. Streams that
    were started before the fork belong to the parent process.

    Raises:
        ConfigurationError: as from :class:`LLMService`, which raises its other errors here as well.
    """

    @takes(setup_of)
    def __init__(self, *endpoints: Any, **options: Any) -> None:
        self._service = LLMService(*endpoints, **options)
        self._thread = ServiceThread(self._service.aclose)

    @checks_keywords(CallOptions.__annotations__)
    def complete(self, request: Asked, **options: Unpack[CallOptions]) -> ChatResponse:
        """Return the complete answer to *request*. See :meth:`LLMService.complete`."""
        return self._thread.run(self._service.complete(request, **options))

    @checks_keywords(CallOptions.__annotations__)
    def stream(
        self, request: Asked, *, raw_events: bool = False, **options: Unpack[CallOptions]
    ) -> SyncEventStream:
        """Return the answer to *request* as events, or its ``.text`` alone. See :meth:`LLMService.stream`."""
        return SyncEventStream(self._service.stream(request, raw_events=raw_events, **options), self._thread)

    @checks_keywords(CallOptions.__annotations__)
    def plan(self, request: Asked, **options: Unpack[CallOptions]) -> RequestPlan:
        """Return what would be sent for *request*, and send nothing. See :meth:`LLMService.plan`."""
        return self._service.plan(request, **options)

    @overload
    def complete_json(
        self, request: Asked, answer: AnswerType[T], **options: Unpack[RetriedJSONOptions]
    ) -> JSONAnswer[T]: ...
    @overload
    def complete_json(
        self, request: Asked, answer: object, **options: Unpack[RetriedJSONOptions]
    ) -> JSONAnswer[Any]: ...
    @checks_keywords(RetriedJSONOptions.__annotations__)
    def complete_json(
        self, request: Asked, answer: Any, **options: Unpack[RetriedJSONOptions]
    ) -> JSONAnswer[Any]:
        """Return the answer to *request* as a value. See :meth:`LLMService.complete_json`."""
        return self._thread.run(self._service.complete_json(request, answer, **options))

    @overload
    def stream_json(
        self, request: Asked, answer: AnswerType[T], **options: Unpack[JSONOptions]
    ) -> SyncJSONStream[T]: ...
    @overload
    def stream_json(
        self, request: Asked, answer: object, **options: Unpack[JSONOptions]
    ) -> SyncJSONStream[Any]: ...
    @checks_keywords(JSONOptions.__annotations__)
    def stream_json(self, request: Asked, answer: Any, **options: Unpack[JSONOptions]) -> SyncJSONStream[Any]:
        """Return the answer to *request* as a value that grows while it arrives. See :meth:`LLMService.stream_json`."""
        from crosswalk.service.json_answer import SyncJSONStream, ValueRequest

        wanted = ValueRequest.of(request, answer, **options)
        return SyncJSONStream(self.stream(wanted.request, **wanted.options), wanted)

    def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        endpoint: int = 0,
    ) -> PlainAnswer:
        """Send a request to any *path* of an endpoint, and return its answer. See :meth:`LLMService.request`."""
        return self._thread.run(self._service.request(method, path, body, headers, endpoint=endpoint))

    def models(self) -> tuple[str, ...]:
        """Return the names of the models of the first endpoint. See :meth:`LLMService.models`."""
        return self._thread.run(self._service.models())

    def embed(self, texts: str | Iterable[str], *, model: str | None = None) -> Embeddings:
        """Return *texts* as vectors, from the first endpoint. See :meth:`LLMService.embed`."""
        return self._thread.run(self._service.embed(texts, model=model))

    @checks_keywords(CallOptions.__annotations__)
    def count_tokens(self, request: Asked, **options: Unpack[CallOptions]) -> TokenCount:
        """Return the number of input tokens of *request*. See :meth:`LLMService.count_tokens`."""
        return self._thread.run(self._service.count_tokens(request, **options))

    def redact(self, text: str) -> str:
        """Remove the credentials from *text*. See :meth:`LLMService.redact`."""
        return self._service.redact(text)

    def close(self) -> None:
        """End the running calls and close the connections."""
        self._thread.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Sync{self._service!r}"
