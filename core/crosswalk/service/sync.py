"""The service without ``await``: the same code, over connections that block the calling thread.

If that is impossible (an HTTP client of the application, a proxy), an event loop runs the service in a separate thread.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import threading
from collections.abc import Coroutine, Generator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, Unpack, overload
from weakref import WeakSet

from crosswalk.errors import CrosswalkError
from crosswalk.service.call_options import CallOptions
from crosswalk.service.endpoint import Endpoint
from crosswalk.service.request import Asked
from crosswalk.service.service import BlockingService, ServiceOptions
from crosswalk.service.stream import EventStream, text_of
from crosswalk.service.waits import run
from crosswalk.types.event import StreamEvent
from crosswalk.types.response import ChatResponse

if TYPE_CHECKING:
    from crosswalk.service.answer import AnswerType, JSONAnswer, ProseChoice
    from crosswalk.service.auxiliary_requests import Embeddings, PlainAnswer, TokenCount
    from crosswalk.service.json_stream import SyncJSONStream
    from crosswalk.structured import Partial

__all__ = ["SyncEventStream", "SyncLLMService"]

T = TypeVar("T")


class _StoppedError(CrosswalkError):
    """The thread was stopped, before the work or during it."""


class _Runner(Protocol):
    """Runs awaitable work for callers without ``await``."""

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of *work*."""

    def close(self, service: BlockingService) -> None:
        """Close *service* and this runner."""


class _Here:
    """Runs a blocking service in the calling thread."""

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of *work*."""
        return run(work)

    def close(self, service: BlockingService) -> None:
        """Close *service*."""
        run(service.aclose())


class _Thread:
    """A thread that runs an event loop until it is stopped, started when it is first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._left: list[tuple[asyncio.AbstractEventLoop | None, threading.Thread | None]] = []
        self._is_stopped = False
        _threads.add(self)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run *work* in the thread and return its result. If this caller is interrupted, *work* is cancelled.

        Raises:
            CrosswalkError: the thread was stopped, before or during the work.
        """
        future = self._begun(work)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise _StoppedError("the service was closed before the answer was complete") from None
        except BaseException:
            future.cancel()  # Ctrl-C; of a work that has ended it does nothing
            raise

    def close(self, service: BlockingService) -> None:
        """Close *service*, and end the thread."""
        if self.is_running:
            self.run(service.aclose())
        self.stop()

    def stop(self) -> None:
        """End the thread and cancel the work that still runs in it."""
        with self._lock:
            loop, self._loop, self._is_stopped = self._loop, None, True
            if loop is not None and self._thread is not None:
                loop.call_soon_threadsafe(loop.stop)
                self._thread.join()

    def forget(self) -> None:
        """Start anew when it is next needed: this is a forked process, and the thread belongs to the parent."""
        self._lock = threading.Lock()  # the old lock may be held by a thread that does not exist here
        # The old loop is left alone: cleaning it up would clean up the parent's loop.
        self._left.append((self._loop, self._thread))
        self._loop = self._thread = None

    @property
    def is_running(self) -> bool:
        """Whether it has been started and not stopped."""
        return self._loop is not None

    def _begun(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        with self._lock:  # so that a stop sees everything that has been started
            if self._is_stopped:
                work.close()
                raise _StoppedError("the service is closed")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_serve, args=(self._loop,), name="crosswalk service", daemon=True
                )
                self._thread.start()
            return asyncio.run_coroutine_threadsafe(work, self._loop)


_threads: WeakSet[_Thread] = WeakSet()
"""All threads of the process, to be reset if it is forked."""


class _Forks:
    """The number of times that this process was forked off, which is cheaper than asking for its number."""

    count = 0


_forks = _Forks()


def forget_threads() -> None:
    """Forget the threads of the parent process, which do not exist after a fork."""
    _forks.count += 1
    for thread in list(_threads):
        thread.forget()


getattr(os, "register_at_fork", dict)(after_in_child=forget_threads)  # Windows has no such function


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.get_loop().run_forever()


class SyncEventStream(Iterator[StreamEvent]):
    """The events of an answer as they arrive, made by :meth:`SyncLLMService.stream`.

    Like :class:`EventStream`, for a ``for`` loop and a ``with`` block.
    """

    def __init__(self, stream: EventStream, runner: _Runner) -> None:
        self._stream = stream
        self._runner = runner
        self._forks = _forks.count

    def __next__(self) -> StreamEvent:
        """Return the next event. Raises like :class:`EventStream`.

        Raises:
            CrosswalkError: the stream was started by the parent of this forked process.
        """
        if self._forks != _forks.count:
            raise CrosswalkError("the stream belongs to the process from which this one was forked")
        ready = self._stream.ready
        while not ready:
            self._read_on()
        return ready.popleft()

    def _read_on(self) -> None:
        try:
            self._runner.run(self._stream.read_on())
        except StopAsyncIteration:
            raise StopIteration from None
        except _StoppedError:
            # A closed service has ended its streams: their events so far can still be read.
            if not self._stream.has_ended:
                raise
            if not self._stream.ready:
                raise StopIteration from None

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
        """The answer so far. See :attr:`EventStream.partial`."""
        return self._stream.partial

    def cancel(self) -> None:
        """End the answer here, from any thread, and close the connection. See :meth:`EventStream.cancel`.

        Does nothing once the service is closed, which has ended the stream, or in a forked process, which does not own it.
        """
        if self._forks == _forks.count:
            with contextlib.suppress(_StoppedError):
                self._runner.run(self._stream.cancel())

    def close(self) -> None:
        """Like :meth:`cancel`, for a stream that is not read any further."""
        self.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SyncLLMService:
    """:class:`LLMService` without ``await``. May be used from several threads.

    Takes the arguments of :class:`LLMService` and is the same service, with connections that block the calling thread.
    Time limits and cancellation are identical. With ``client=``, with ``client_options`` other than ``verify``, ``cert``
    and ``trust_env``, or if the environment names a proxy, an event loop in a separate thread sends the requests. The
    thread starts with the first call and costs a thread switch for each event. A forked process opens its own
    connections. Streams that were started before the fork belong to the parent process.

    Raises:
        ConfigurationError: as from :class:`LLMService`, which raises its other errors here as well.
    """

    def __init__(self, *endpoints: Endpoint | str, **options: Unpack[ServiceOptions]) -> None:
        self._service = BlockingService(*endpoints, **options)
        self._runner: _Runner = _Here() if self._service.blocks else _Thread()

    def complete(self, request: Asked, **options: Unpack[CallOptions]) -> ChatResponse:
        """Return the complete answer to *request*. See :meth:`LLMService.complete`."""
        return self._runner.run(self._service.complete(request, **options))

    def stream(
        self, request: Asked, *, raw_events: bool = False, **options: Unpack[CallOptions]
    ) -> SyncEventStream:
        """Return the answer to *request* as events, or its ``.text`` alone. See :meth:`LLMService.stream`."""
        return SyncEventStream(self._service.stream(request, raw_events=raw_events, **options), self._runner)

    @overload
    def complete_json(
        self,
        request: Asked,
        answer: AnswerType[T],
        *,
        instruct: bool = ...,
        partial: Partial | None = ...,
        prose: ProseChoice = ...,
        retries: int = ...,
        **options: Unpack[CallOptions],
    ) -> JSONAnswer[T]: ...
    @overload
    def complete_json(
        self,
        request: Asked,
        answer: object,
        *,
        instruct: bool = ...,
        partial: Partial | None = ...,
        prose: ProseChoice = ...,
        retries: int = ...,
        **options: Unpack[CallOptions],
    ) -> JSONAnswer[Any]: ...
    def complete_json(
        self,
        request: Asked,
        answer: Any,
        *,
        instruct: bool = False,
        partial: Partial | None = None,
        prose: ProseChoice = "allow",
        retries: int = 0,
        **options: Unpack[CallOptions],
    ) -> JSONAnswer[Any]:
        """Return the answer to *request* as a value. See :meth:`LLMService.complete_json`."""
        return self._runner.run(
            self._service.complete_json(
                request, answer, instruct=instruct, partial=partial, prose=prose, retries=retries, **options
            )
        )

    @overload
    def stream_json(
        self,
        request: Asked,
        answer: AnswerType[T],
        *,
        instruct: bool = ...,
        partial: Partial | None = ...,
        prose: ProseChoice = ...,
        **options: Unpack[CallOptions],
    ) -> SyncJSONStream[T]: ...
    @overload
    def stream_json(
        self,
        request: Asked,
        answer: object,
        *,
        instruct: bool = ...,
        partial: Partial | None = ...,
        prose: ProseChoice = ...,
        **options: Unpack[CallOptions],
    ) -> SyncJSONStream[Any]: ...
    def stream_json(
        self,
        request: Asked,
        answer: Any,
        *,
        instruct: bool = False,
        partial: Partial | None = None,
        prose: ProseChoice = "allow",
        **options: Unpack[CallOptions],
    ) -> SyncJSONStream[Any]:
        """Return the answer to *request* as a value that grows while it arrives. See :meth:`LLMService.stream_json`."""
        from crosswalk.service.answer import parser_for, with_schema
        from crosswalk.service.json_stream import SyncJSONStream

        parser = parser_for(answer, prose)
        asked = with_schema(request, parser, instruct=instruct)
        return SyncJSONStream(self.stream(asked, **options), parser, partial)

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
        return self._runner.run(self._service.request(method, path, body, headers, endpoint=endpoint))

    def models(self) -> tuple[str, ...]:
        """Return the names of the models of the first endpoint. See :meth:`LLMService.models`."""
        return self._runner.run(self._service.models())

    def embed(self, texts: str | Iterable[str], *, model: str | None = None) -> Embeddings:
        """Return *texts* as vectors, from the first endpoint. See :meth:`LLMService.embed`."""
        return self._runner.run(self._service.embed(texts, model=model))

    def count_tokens(self, request: Asked, **options: Unpack[CallOptions]) -> TokenCount:
        """Return the number of input tokens of *request*. See :meth:`LLMService.count_tokens`."""
        return self._runner.run(self._service.count_tokens(request, **options))

    def redact(self, text: str) -> str:
        """Remove the credentials from *text*. See :meth:`LLMService.redact`."""
        return self._service.redact(text)

    def close(self) -> None:
        """End the running calls and close the connections."""
        self._runner.close(self._service)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Sync{self._service!r}"
