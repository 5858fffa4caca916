"""Answers as values while they come."""

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
        """The value that there is with *event*, if it is a new one; of the last event the whole one."""
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
        """The value in the complete *response*."""
        return read_answer(response.raise_for_error(), self._parser, self._partial)


class JSONStream(AsyncIterator[T]):
    """A value while it is written, made by :meth:`LLMService.stream_json`.

    Gives a partial value whenever there is a new one of the schema, with what is known until there, and as the last one the
    whole value, checked. A draft may come and then the answer: only the last value counts. Use it in ``async with``, as
    an :class:`EventStream`.

    Iterating raises in the end, in the place of the whole value: ``JSONAnswerError`` where the model answered with something
    else, ``ProviderError`` where nobody answered, and what iterating over an :class:`EventStream` raises.
    """

    def __init__(self, events: EventStream, parser: StructuredParser[T], partial: Partial | None) -> None:
        self._events = events
        self._values = _Values(parser, partial)

    async def __anext__(self) -> T:
        """The next value."""
        async for event in self._events:
            for value in self._values.of(event):
                return value
        raise StopAsyncIteration

    @property
    def step(self) -> ParseResult[T] | None:
        """The answer so far: its ``fields``, also while required ones are missing, and those that are ``final``."""
        return self._values.step

    @property
    def response(self) -> ChatResponse:
        """The complete response, once the stream has ended; raises as :attr:`EventStream.response` does."""
        return self._events.response

    @property
    def answer(self) -> JSONAnswer[T]:
        """The whole value with its response and how it was read, once the stream has ended.

        Raises:
            ResponseValidationError: it has not (``ACODE-RSP-008``).
            CrosswalkError: what iterating raised.
        """
        return self._values.answer(self.response)

    async def cancel(self) -> None:
        """End the answer here; see :meth:`EventStream.cancel`. What there is then is no whole value."""
        await self._events.cancel()

    async def aclose(self) -> None:
        """As :meth:`cancel`, for a stream that is not read any further."""
        await self.cancel()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class _Events(Protocol):
    """What is used of a ``SyncEventStream``."""

    @property
    def response(self) -> ChatResponse: ...

    def __iter__(self) -> Iterator[StreamEvent]: ...

    def cancel(self) -> None: ...


class SyncJSONStream(Iterator[T]):
    """As :class:`JSONStream`, for a ``for`` loop and a ``with`` block; made by :meth:`SyncLLMService.stream_json`."""

    def __init__(self, events: _Events, parser: StructuredParser[T], partial: Partial | None) -> None:
        self._events = events
        self._values = _Values(parser, partial)

    def __next__(self) -> T:
        """The next value."""
        for event in self._events:
            for value in self._values.of(event):
                return value
        raise StopIteration

    @property
    def step(self) -> ParseResult[T] | None:
        """The answer so far; see :attr:`JSONStream.step`."""
        return self._values.step

    @property
    def response(self) -> ChatResponse:
        """The complete response; see :attr:`JSONStream.response`."""
        return self._events.response

    @property
    def answer(self) -> JSONAnswer[T]:
        """The whole value with its response and how it was read; see :attr:`JSONStream.answer`."""
        return self._values.answer(self.response)

    def cancel(self) -> None:
        """End the answer here, from any thread; see :meth:`JSONStream.cancel`."""
        self._events.cancel()

    def close(self) -> None:
        """As :meth:`cancel`, for a stream that is not read any further."""
        self.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
