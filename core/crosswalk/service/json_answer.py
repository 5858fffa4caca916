"""Answers as values: the schema of the request, and the value in the response, whole or while it arrives."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Hashable, Iterator
from typing import Any, Generic, Literal, Protocol, Self, TypeAlias, TypeVar

import attrs

from crosswalk.errors import ConfigurationError
from crosswalk.request import Asked, ChatRequest, ResponseFormat, as_request
from crosswalk.service.turns import with_instructions
from crosswalk.structured import ParseResult, Partial, Prose, Schema, StructuredAnswerError, StructuredParser
from crosswalk.structured.parser import is_same
from crosswalk.structured.result import as_choice
from crosswalk.text import brief, summary
from crosswalk.types.json import FrozenObject, JSONObject
from crosswalk.types.message import ChatMessage
from crosswalk.types.response import ChatResponse
from crosswalk.types.stream import StreamEvent, StreamEventType
from crosswalk.words import suggests_names

T = TypeVar("T")

AnswerType: TypeAlias = type[T] | Schema[T] | StructuredParser[T] | JSONObject
"""The type of an answer: any type that :class:`~crosswalk.structured.Schema` accepts, a schema with invariants, a custom
parser, or a JSON Schema."""
ProseChoice: TypeAlias = Prose | Literal["allow", "refuse"]


@suggests_names
@brief
@attrs.frozen(repr=False)
class JSONAnswer(Generic[T]):
    """A decoded answer with its source.

    Attributes:
        value: the value.
        response: the response that holds it.
        result: how it was read: directly, extracted from a text around it, or repaired.
    """

    value: T
    response: ChatResponse
    result: ParseResult[T]

    def __repr__(self) -> str:
        return summary("JSONAnswer", [("stage", self.result.stage.value), ("value", self.value)])


class JSONAnswerError(StructuredAnswerError):
    """The model answered, but not with a valid value.

    Attributes:
        response: the model's answer.
    """

    def __init__(self, message: str, *, result: ParseResult[Any], response: ChatResponse) -> None:
        super().__init__(message, result=result)
        self.response = response


def parser_for(answer: AnswerType[T], prose: ProseChoice = Prose.ALLOW) -> StructuredParser[T]:
    """Return the parser of *answer*. A custom parser keeps its own rule about prose.

    Raises:
        ConfigurationError: a parser of several versions, or *prose* is not a choice.
        SchemaDefinitionError: *answer* cannot be the type of an answer.
    """
    if isinstance(answer, StructuredParser):
        parser = answer
    else:
        parser = (
            _made(answer, as_choice(Prose, prose))
            if isinstance(answer, Hashable)
            else StructuredParser(answer, prose=prose)
        )
    if not isinstance(parser.schema, Schema):
        raise ConfigurationError("a parser of several versions has no one schema", key="answer")
    # Some servers want every key, so a null stands for a default.
    return parser.with_null_as_default()


@functools.lru_cache(maxsize=256)
def _made(answer: Any, prose: Prose) -> StructuredParser[Any]:
    return StructuredParser(answer, prose=prose)


def with_schema(asked: Asked, parser: StructuredParser[Any], *, instruct: bool) -> ChatRequest:
    """Return the request *asked* with the schema of *parser* as its response format, unless it has one.

    With *instruct*, the schema is also put into a system message, for servers that do not enforce it. Others tell it there
    by themselves.
    """
    request, schema = as_request(asked), parser.schema
    assert isinstance(schema, Schema)
    response_format = request.response_format
    if response_format is None:
        response_format = ResponseFormat(
            FrozenObject(schema.server_schema()), name=schema.name, null_is_absent=True
        )
    if instruct:
        request = with_instructions(request, schema.instructions())
        response_format = attrs.evolve(response_format, is_told=True)
    return attrs.evolve(request, response_format=response_format)


@attrs.frozen
class ValueRequest(Generic[T]):
    """A request whose answer is a value.

    Attributes:
        request: the request, with the schema of the value.
        parser: what reads the value.
        partial: how to treat a truncated answer.
        retries: how many times to ask again.
        options: the options of the call, except for those that this class has taken.
    """

    request: ChatRequest
    parser: StructuredParser[T]
    partial: Partial
    retries: int
    options: dict[str, Any]

    @classmethod
    def of(
        cls,
        asked: Asked,
        answer: AnswerType[T],
        *,
        instruct: bool = False,
        partial: Partial | None = None,
        prose: ProseChoice = Prose.ALLOW,
        retries: int = 0,
        **options: Any,
    ) -> ValueRequest[T]:
        """Return the request of a call with these arguments. See :meth:`LLMService.complete_json`.

        Raises:
            ConfigurationError, SchemaDefinitionError: as from :func:`parser_for`.
        """
        parser = parser_for(answer, prose)
        request = with_schema(asked, parser, instruct=instruct)
        return cls(request, parser, Partial.REFUSE if partial is None else partial, retries, options)


def read_answer(response: ChatResponse, parser: StructuredParser[T], partial: Partial) -> JSONAnswer[T]:
    """Return the value in *response*.

    Raises:
        JSONAnswerError: there is no valid one.
    """
    result = parser.parse(response, partial=partial)
    try:
        return JSONAnswer(result.unwrap(), response, result)
    except StructuredAnswerError as error:
        message = f"{error}; the model's text is in .response.text"
        raise JSONAnswerError(message, result=result, response=response) from None


def asked_again(request: ChatRequest, error: JSONAnswerError) -> ChatRequest:
    """Return *request* with the answer that could not be used, and its errors."""
    retry_turns = ChatMessage.assistant(error.response.text), ChatMessage.user(error.result.feedback())
    return attrs.evolve(request, messages=(*request.messages, *retry_turns))


class _Values(Generic[T]):
    """The values in the events of an answer."""

    def __init__(self, value_request: ValueRequest[T]) -> None:
        self._value_request = value_request
        self._partial_parser = value_request.parser.partial_parser()
        self._last: T | None = None
        self.step: ParseResult[T] | None = None

    def of(self, event: StreamEvent) -> list[T]:
        """Return the value after *event* if it is a new one. For the last event it is the whole value."""
        if event.response is not None:
            answer = self.answer(event.response)
            self.step = self._partial_parser.last_step(answer.result)
            return [answer.value]
        if event.event_type is StreamEventType.RETRIED:
            self._partial_parser = self._value_request.parser.partial_parser()
        delta = event.delta
        if delta is None or delta.choice:
            return []
        added_text = delta.content_delta if delta.correction is None else delta.correction
        new_step = None if added_text is None else self._partial_parser.feed(added_text)
        if new_step is None:
            return []
        self.step = new_step
        if new_step.value is None or is_same(new_step.value, self._last):
            return []
        self._last = new_step.value
        return [new_step.value]

    def answer(self, response: ChatResponse) -> JSONAnswer[T]:
        """Return the value in the complete *response*."""
        return read_answer(
            response.raise_for_error(), self._value_request.parser, self._value_request.partial
        )


class _Events(Protocol):
    """The part of a stream of events that both streams of values use."""

    @property
    def response(self) -> ChatResponse: ...


E = TypeVar("E", bound=_Events)


class ValueStream(Generic[T, E]):
    """What the two streams of values share.

    Args:
        events: the events of the answer.
        wanted: the request that they answer.
    """

    def __init__(self, events: E, value_request: ValueRequest[T]) -> None:
        self._events = events
        self._values = _Values(value_request)

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


class _AsyncEvents(_Events, Protocol):
    """The part of an ``EventStream`` that is used here."""

    def __aiter__(self) -> AsyncIterator[StreamEvent]: ...

    async def cancel(self) -> None: ...


class JSONStream(ValueStream[T, _AsyncEvents], AsyncIterator[T]):
    """A value while it is written, made by :meth:`LLMService.stream_json`.

    Yields a partial value of the schema whenever it changes, and the whole, validated value at last. The model may
    write a draft and then the answer: only the last value counts. Use it in ``async with``, like an :class:`EventStream`.

    In place of the whole value, iterating may raise in the end: ``JSONAnswerError`` if the model's answer does not fit,
    ``ProviderError`` if every endpoint failed, and the exceptions of iterating over an :class:`EventStream`.
    """

    async def __anext__(self) -> T:
        """Return the next value."""
        async for event in self._events:
            for value in self._values.of(event):
                return value
        raise StopAsyncIteration

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


class _SyncEvents(_Events, Protocol):
    """The part of a ``SyncEventStream`` that is used here."""

    def __iter__(self) -> Iterator[StreamEvent]: ...

    def cancel(self) -> None: ...


class SyncJSONStream(ValueStream[T, _SyncEvents], Iterator[T]):
    """Like :class:`JSONStream`, for a ``for`` loop and a ``with`` block, made by :meth:`SyncLLMService.stream_json`."""

    def __next__(self) -> T:
        """Return the next value."""
        for event in self._events:
            for value in self._values.of(event):
                return value
        raise StopIteration

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
