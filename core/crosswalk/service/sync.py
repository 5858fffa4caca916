"""The service without ``await``: the same code, run by an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Coroutine, Iterator
from typing import TYPE_CHECKING, Any, Self, TypeVar

from crosswalk.errors import CrosswalkError
from crosswalk.service.request import ChatRequest
from crosswalk.service.service import LLMService
from crosswalk.service.stream import EventStream
from crosswalk.types.event import StreamEvent
from crosswalk.types.response import ChatResponse

if TYPE_CHECKING:
    from crosswalk.service.answer import AnswerType, JSONAnswer
    from crosswalk.structured import Partial

__all__ = ["SyncEventStream", "SyncLLMService"]

T = TypeVar("T")


class _Thread:
    """A thread that runs an event loop until it is stopped; started when it is first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._is_stopped = False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What *work* gives, run in the thread; where this caller is interrupted, *work* is cancelled."""
        loop = self._started(work)
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # Ctrl-C; of a work that has ended it does nothing
            raise

    def stop(self) -> None:
        """End the thread; what still runs in it is cancelled."""
        with self._lock:
            loop, self._loop, self._is_stopped = self._loop, None, True
            if loop is not None and self._thread is not None:
                loop.call_soon_threadsafe(loop.stop)
                self._thread.join()

    @property
    def is_running(self) -> bool:
        """Whether it has been started and not stopped."""
        return self._loop is not None

    def _started(self, work: Coroutine[Any, Any, Any]) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._is_stopped:
                work.close()
                raise CrosswalkError("the service is closed")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_serve, args=(self._loop,), name="crosswalk service", daemon=True
                )
                self._thread.start()
            return self._loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.get_loop().run_forever()


class SyncEventStream(Iterator[StreamEvent]):
    """The events of an answer as they come, made by :meth:`SyncLLMService.stream`.

    As :class:`EventStream`, for a ``for`` loop and a ``with`` block.
    """

    def __init__(self, stream: EventStream, thread: _Thread) -> None:
        self._stream = stream
        self._thread = thread
        self._ready: deque[StreamEvent] = deque()

    def __next__(self) -> StreamEvent:
        """The next event; raises as :class:`EventStream` does."""
        if not self._ready:
            self._ready.extend(self._thread.run(self._stream.batch()))
        if not self._ready:
            raise StopIteration
        return self._ready.popleft()

    @property
    def response(self) -> ChatResponse:
        """The complete response, once the stream has ended; raises as :attr:`EventStream.response` does."""
        return self._stream.response

    def cancel(self) -> None:
        """End the answer here, from any thread, and close the connection; see :meth:`EventStream.cancel`."""
        self._thread.run(self._stream.cancel())

    def close(self) -> None:
        """As :meth:`cancel`, for a stream that nobody reads on."""
        self.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SyncLLMService:
    """:class:`LLMService` without ``await``; may be used from several threads.

    Takes the arguments of :class:`LLMService`. It runs that service in a thread of its own, which begins with the
    first call: so time limits and cancellation are the same, to the letter.
    """

    def __init__(self, *endpoints: Any, **options: Any) -> None:
        self._service = LLMService(*endpoints, **options)
        self._thread = _Thread()

    def complete(self, request: ChatRequest) -> ChatResponse:
        """The complete answer to *request*; raises as :meth:`LLMService.complete` does."""
        return self._thread.run(self._service.complete(request))

    def stream(self, request: ChatRequest, *, raw_events: bool = False) -> SyncEventStream:
        """The answer to *request* as events; see :meth:`LLMService.stream`."""
        return SyncEventStream(self._service.stream(request, raw_events=raw_events), self._thread)

    def complete_json(
        self,
        request: ChatRequest,
        answer: AnswerType[T],
        *,
        instruct: bool = False,
        partial: Partial | None = None,
    ) -> JSONAnswer[T]:
        """The answer to *request* as a value; see :meth:`LLMService.complete_json`."""
        return self._thread.run(
            self._service.complete_json(request, answer, instruct=instruct, partial=partial)
        )

    def close(self) -> None:
        """Close the connections and end the thread."""
        if self._thread.is_running:
            self._thread.run(self._service.aclose())
        self._thread.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Sync{self._service!r}"
