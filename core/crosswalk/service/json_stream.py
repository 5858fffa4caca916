"""Answers as values while they arrive."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar

from crosswalk.service.answer import JSONAnswer, read_answer
from crosswalk.structured import ParseResult, Partial, StructuredParser
from crosswalk.structured.partial_parser import is_same
from crosswalk.types.event import StreamEvent, StreamEventType
from crosswalk.types.response import ChatResponse

if TYPE_CHECKING:
    from crosswalk.service.stream import EventStream

__all__ = ["JSONStream", "SyncJSONStream"]

T = TypeVar("T")


class _Values(Generic[T]):
    """The values in the events of an answer."""

    def __init__(self, parser: StructuredParser[T], partial: Partial | None) -> None:
        self._parser = parser
        self._partial = Partial.REFUSE if partial is None else partial
        self._partial_parser = parser.partial_parser()
        self._last: T | None = None
        self.step: ParseResult[T] | None = None

    def of(self, event: StreamEvent) -> list[T]:
        """Return the value after *event* if it is a new one. For the last event it is the whole value."""
        if event.response is not None:
            return [self.answer(event.response).value]
        if event.event_type is StreamEventType.RETRIED:
            self._partial_parser = self._parser.partial_parser()
        delta = event.delta
        if delta is None or delta.content_delta is None or delta.choice:
            return []
        grown = self._partial_parser.feed(delta.content_delta)
        if grown is None:
            return []
        self.step = grown
        if grown.value is None or is_same(grown.value, self._last):
            return []
        self._last = grown.value
        return [grown.value]

    def answer(self, response: ChatResponse) -> JSONAnswer[T]:
        """Return the value in the complete *response*."""
        return read_answer(response.raise_for_error(), self._parser, self._partial)


class JSONStream(AsyncIterator[T]):
    """A value while it is written, made by :meth:`LLMService.stream_json`.

    Yields a partial value of the schema whenever it changes, and the whole, validated value at last. The model may
    write a draft and then the answer: only the last value counts. Use it in ``async with``, like an :class:`EventStream`.

    In place of the whole value, iterating may raise in the end: ``JSONAnswerError`` if the model's answer does not fit,
    ``ProviderError`` if every endpoint failed, and the exceptions of iterating over an :class:`EventStream`.
    """

    def __init__(self, events: EventStream, parser: StructuredParser[T], partial: Partial | None) -> None:
        self._events = events
        self._values = _Values(parser, partial)

    async def __anext__(self) -> T:
        """Return the next value."""
        async for event in self._events:
            for value in self._values.of(event):
                return value
        raise StopAsyncIteration

    @property
    def step(self) -> ParseResult[T] | None:
        """The answer so far: its ``fields``, even if required ones are missing, and those that are ``final``."""
        return self._values.step

    @property
    def response(self) -> ChatResponse:
        """The complete response, once the stream has ended. Raises like :attr:`EventStream.response`."""
        return self._events.response

    @property
    def answer(self) -> JSONAnswer[T]:
        """The whole value with its response and how it was read, once the stream has ended.

        Raises:
            ResponseValidationError: it has not ended (``ACODE-RSP-008``).
            CrosswalkError: the exception that iterating raised.
        """
        return self._values.answer(self.response)

    async def cancel(self) -> None:
        """End the answer here. See :meth:`EventStream.cancel`. The value so far is then not a whole one."""
        await self._events.cancel()

    async def aclose(self) -> None:
        """Like :meth:`cancel`, for a stream that is not read any further."""
        await self.cancel()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class _Events(Protocol):
    """The part of a ``SyncEventStream`` that is used here."""

    @property
    def response(self) -> ChatResponse: ...

    def __iter__(self) -> Iterator[StreamEvent]: ...

    def cancel(self) -> None: ...


class SyncJSONStream(Iterator[T]):
    """Like :class:`JSONStream`, for a ``for`` loop and a ``with`` block, made by :meth:`SyncLLMService.stream_json`."""

    def __init__(self, events: _Events, parser: StructuredParser[T], partial: Partial | None) -> None:
        self._events = events
        self._values = _Values(parser, partial)

    def __next__(self) -> T:
        """Return the next value."""
        for event in self._events:
            for value in self._values.of(event):
                return value
        raise StopIteration

    @property
    def step(self) -> ParseResult[T] | None:
        """The answer so far. See :attr:`JSONStream.step`."""
        return self._values.step

    @property
    def response(self) -> ChatResponse:
        """The complete response. See :attr:`JSONStream.response`."""
        return self._events.response

    @property
    def answer(self) -> JSONAnswer[T]:
        """The whole value with its response and how it was read. See :attr:`JSONStream.answer`."""
        return self._values.answer(self.response)

    def cancel(self) -> None:
        """End the answer here, from any thread. See :meth:`JSONStream.cancel`."""
        self._events.cancel()

    def close(self) -> None:
        """Like :meth:`cancel`, for a stream that is not read any further."""
        self.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
