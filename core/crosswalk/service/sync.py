"""The service without ``await``: the asynchronous service, in an event loop of a separate thread."""

from __future__ import annotations

import contextlib
import inspect
import weakref
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, overload

from crosswalk.errors import CrosswalkError
from crosswalk.keywords import checks_keywords
from crosswalk.request import Asked
from crosswalk.service.arguments import CallOptions, ServiceOptions, setup_of
from crosswalk.service.endpoint import Endpoint
from crosswalk.service.service import LLMService
from crosswalk.service.stream import EventStream, text_of
from crosswalk.service.thread import ReadAhead, ServiceThread, StoppedError, fork_count
from crosswalk.types.response import ChatResponse
from crosswalk.types.stream import StreamEvent

if TYPE_CHECKING:
    from crosswalk.service.auxiliary_requests import Embeddings, PlainAnswer, TokenCount
    from crosswalk.service.json_answer import AnswerType, JSONAnswer, ProseChoice, SyncJSONStream
    from crosswalk.structured import Partial


T = TypeVar("T")


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

    def __init__(self, *endpoints: Endpoint | str, **options: Unpack[ServiceOptions]) -> None:
        self._service = LLMService(*endpoints, **options)
        self._thread = ServiceThread(self._service.aclose)

    __signature__ = inspect.signature(setup_of)  # so that notebooks and ``help`` show the options

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
    @checks_keywords(CallOptions.__annotations__)
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
        return self._thread.run(
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
    @checks_keywords(CallOptions.__annotations__)
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
        from crosswalk.service.json_answer import SyncJSONStream, parser_for, with_schema

        parser = parser_for(answer, prose)
        requested = with_schema(request, parser, instruct=instruct)
        return SyncJSONStream(self.stream(requested, **options), parser, partial)

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
