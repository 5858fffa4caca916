"""The service without ``await``: the asynchronous service, driven by the thread that makes the call."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, overload

from crosswalk.errors import CrosswalkError
from crosswalk.request import Asked
from crosswalk.service.blocking import ThreadDriver, run
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
from crosswalk.words import AnswersNames, suggests_names

if TYPE_CHECKING:
    from crosswalk.service.auxiliary_requests import Embeddings, PlainAnswer, TokenCount
    from crosswalk.service.json_answer import AnswerType, JSONAnswer, SyncJSONStream

T = TypeVar("T")


@suggests_names
class SyncEventStream(Iterator[StreamEvent]):
    """The events of an answer as they arrive, made by :meth:`SyncLLMService.stream`.

    Like :class:`EventStream`, for a ``for`` loop and a ``with`` block. Nothing is read ahead.
    """

    def __init__(self, stream: EventStream) -> None:
        self._stream = stream
        self._ready_events = stream.ready
        self._process = os.getpid()

    def __next__(self) -> StreamEvent:
        """Return the next event. Raises like :class:`EventStream`.

        Raises:
            CrosswalkError: the stream was started by the parent of this forked process.
        """
        if os.getpid() != self._process:
            raise CrosswalkError("the stream belongs to the process from which this one was forked")
        while not self._ready_events:
            try:
                run(self._stream.read_on())
            except StopAsyncIteration:
                raise StopIteration from None
        return self._ready_events.popleft()

    @property
    def text(self) -> Generator[str, None, None]:
        """The text of the answer as it arrives. See :attr:`EventStream.text`."""
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

        Does nothing in a forked process, which does not own the stream.
        """
        if os.getpid() == self._process:
            run(self._stream.cancel())

    def close(self) -> None:
        """Like :meth:`cancel`, for a stream that is not read any further."""
        self.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _DrivenService(LLMService):
    def __init__(self, driver: ThreadDriver, *endpoints: Any, **options: Any) -> None:
        self._setup = setup_of(driver, *endpoints, **options)


@suggests_names
class SyncLLMService(metaclass=AnswersNames):
    """:class:`LLMService` without ``await``. May be used from several threads, and in a thread with an event loop.

    Takes the arguments of :class:`LLMService` and is the same service, except that *client* is an ``httpx2.Client`` and
    *transport* is ``"httpx2"``. Observers and middleware run in the thread that makes the call, asynchronous middleware in
    the event loop of a separate thread. A forked process opens its own connections. Streams that were started before the
    fork belong to the parent process.

    With ``client=``, and with options of a client other than ``proxy``, ``verify``, ``cert`` and ``trust_env``, the limits
    of a call are looked at when bytes arrive, and another thread can end a call once its answer has begun.

    Raises:
        ConfigurationError: as from :class:`LLMService`, which raises its other errors here as well.
    """

    @takes(setup_of)
    def __init__(self, *endpoints: Any, **options: Any) -> None:
        self._driver = ThreadDriver()
        self._service = _DrivenService(self._driver, *endpoints, **options)

    @checks_keywords(CallOptions.__annotations__)
    def complete(self, request: Asked, **options: Unpack[CallOptions]) -> ChatResponse:
        """Return the complete answer to *request*. See :meth:`LLMService.complete`."""
        return run(self._service.complete(request, **options))

    @checks_keywords(CallOptions.__annotations__)
    def stream(
        self, request: Asked, *, raw_events: bool = False, **options: Unpack[CallOptions]
    ) -> SyncEventStream:
        """Return the answer to *request* as events, or its ``.text`` alone. See :meth:`LLMService.stream`."""
        return SyncEventStream(self._service.stream(request, raw_events=raw_events, **options))

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
        return run(self._service.complete_json(request, answer, **options))

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
        return run(self._service.request(method, path, body, headers, endpoint=endpoint))

    def models(self) -> tuple[str, ...]:
        """Return the names of the models of the first endpoint. See :meth:`LLMService.models`."""
        return run(self._service.models())

    def embed(self, texts: str | Iterable[str], *, model: str | None = None) -> Embeddings:
        """Return *texts* as vectors, from the first endpoint. See :meth:`LLMService.embed`."""
        return run(self._service.embed(texts, model=model))

    @checks_keywords(CallOptions.__annotations__)
    def count_tokens(self, request: Asked, **options: Unpack[CallOptions]) -> TokenCount:
        """Return the number of input tokens of *request*. See :meth:`LLMService.count_tokens`."""
        return run(self._service.count_tokens(request, **options))

    @property
    def servers(self) -> frozenset[str]:
        """A name for each server of the endpoints. See :attr:`LLMService.servers`."""
        return self._service.servers

    def server_of(self, response: ChatResponse) -> str | None:
        """Return the name of the server that gave *response*. See :meth:`LLMService.server_of`."""
        return self._service.server_of(response)

    def redact(self, text: str) -> str:
        """Remove the credentials from *text*. See :meth:`LLMService.redact`."""
        return self._service.redact(text)

    def close(self) -> None:
        """End the running calls, in any thread, and close the connections. See :meth:`LLMService.aclose`."""
        try:
            run(self._service.aclose())
        finally:
            self._driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Sync{self._service!r}"
