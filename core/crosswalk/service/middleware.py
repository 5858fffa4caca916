"""Middleware around each call, and a whole answer, such as one of a middleware, as the events of a stream."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator
from typing import Any, TypeAlias

from crosswalk.errors import ConfigurationError
from crosswalk.request import ChatRequest
from crosswalk.stream import EventMaker
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.message import ToolCall, ToolCallDelta
from crosswalk.types.response import Alternative, ChatResponse
from crosswalk.types.stream import StreamEvent, StreamEventType
from crosswalk.types.values import Segment, SegmentType

Middleware: TypeAlias = Callable[
    [ChatRequest],
    Generator[ChatRequest | ChatResponse, ChatResponse, None]
    | AsyncGenerator[ChatRequest | ChatResponse, ChatResponse],
]
"""A generator function, possibly asynchronous, that is called with each request.

It yields the request to send, changed or not, and receives the response, whatever its result. It may yield another
response to replace it. If it yields a response instead of the request, that answers the call and nothing is sent. If the
call raises, the generator is closed: its ``finally`` runs.
"""


class Around:
    """The middleware around one call. Close it in the end.

    Args:
        middleware: the first one is the outermost: it sees the request first and the response last.
    """

    def __init__(self, middleware: Iterable[Middleware]) -> None:
        self._middleware = middleware
        self._open: list[tuple[str, Any]] = []

    async def ask(self, request: ChatRequest) -> ChatRequest | ChatResponse:
        """Return the request to send for *request*, or the response if a middleware has answered already.

        Raises:
            ConfigurationError: an item is not a middleware.
        """
        for one in self._middleware:
            name = getattr(one, "__qualname__", type(one).__name__)
            steps = one(request)
            if not isinstance(steps, Generator | AsyncGenerator):
                raise _wrong(name, "must be a generator function")
            self._open.append((name, steps))
            given = await _step(steps, None)
            if isinstance(given, ChatResponse):
                await _close(self._open.pop()[1])
                return await self.answer(given)
            if not isinstance(given, ChatRequest):
                raise _wrong(name, f"must yield a ChatRequest first, not {type(given).__name__}")
            request = given
        return request

    async def answer(self, response: ChatResponse) -> ChatResponse:
        """Return the final response for *response*.

        Raises:
            ConfigurationError: a middleware yielded something other than a response.
        """
        while self._open:
            name, steps = self._open.pop()
            try:
                given = await _step(steps, response)
            finally:
                await _close(steps)
            if given is not None and not isinstance(given, ChatResponse):
                raise _wrong(name, f"must yield a ChatResponse then, not {type(given).__name__}")
            response = response if given is None else given
        return response

    async def aclose(self) -> None:
        """Close those that have not seen a response, the innermost first."""
        while self._open:
            await _close(self._open.pop()[1])


async def _step(steps: Any, given: ChatResponse | None) -> Any:
    """Return the next item of *steps*, or ``None`` at its end."""
    try:
        return steps.send(given) if isinstance(steps, Generator) else await steps.asend(given)
    except (StopIteration, StopAsyncIteration):
        return None


async def _close(steps: Any) -> None:
    if isinstance(steps, Generator):
        steps.close()
    else:
        await steps.aclose()


def _wrong(name: str, what: str) -> ConfigurationError:
    return ConfigurationError(f"middleware {name} {what}", key="middleware")


_TEXTS = {
    SegmentType.TEXT: "content_delta",
    SegmentType.REASONING: "reasoning_delta",
    SegmentType.REFUSAL: "refusal_delta",
}
_OF_A_CALL = frozenset({"id", "name", "type"})


def replayed(response: ChatResponse) -> list[StreamEvent]:
    """Yield the events of *response*: a delta for each part, and the last one, which carries it."""
    maker = EventMaker()
    events = [StreamEvent(StreamEventType.CREATED)]
    answers: list[ChatResponse | Alternative] = [*response.alternatives, response]
    for answer in answers:
        for delta in _deltas(answer):
            events += maker.events(delta)
    final = ResponseDelta(
        finish_reason=response.finish_reason,
        raw_finish_reason=response.raw_finish_reason,
        usage=response.usage,
        logprobs=response.logprobs,
    )
    return [*events, StreamEvent.terminal(response, maker.numbered(final))]


def _deltas(answer: ChatResponse | Alternative) -> Iterator[ResponseDelta]:
    """Return the parts of *answer*, and for an alternative its end."""
    choice = answer.index if isinstance(answer, Alternative) else 0
    calls = {call.id: (number, call) for number, call in enumerate(answer.message.tool_calls or ())}
    if not answer.segments and answer.message.text:  # made by hand, of a message alone
        yield ResponseDelta(content_delta=answer.message.text, choice=choice)
    for segment in answer.segments:
        is_call = segment.type is SegmentType.TOOL_CALL
        call = calls.pop(str(segment.metadata.get("id")), None) if is_call else None
        if call is not None:
            yield _call(call, choice)
            more = {key: value for key, value in segment.metadata.items() if key not in _OF_A_CALL}
        elif segment.type in _TEXTS:
            if segment.content:
                payload: dict[str, Any] = {_TEXTS[segment.type]: segment.content}
                yield ResponseDelta(choice=choice, **payload)
            more = dict(segment.metadata)
        else:
            yield ResponseDelta(segment=segment, choice=choice)
            continue
        if more or segment.annotations:
            yield ResponseDelta(segment=Segment(segment.type, "", more, segment.annotations), choice=choice)
    for remaining in calls.values():
        yield _call(remaining, choice)
    if isinstance(answer, Alternative):
        yield ResponseDelta(
            finish_reason=answer.finish_reason,
            raw_finish_reason=answer.raw_finish_reason,
            logprobs=answer.logprobs,
            choice=choice,
        )


def _call(numbered: tuple[int, ToolCall], choice: int) -> ResponseDelta:
    number, call = numbered
    return ResponseDelta(
        tool_call_delta=ToolCallDelta(number, call.id, call.name, call.arguments, call.kind), choice=choice
    )
