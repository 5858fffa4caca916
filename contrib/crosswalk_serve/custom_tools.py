"""Custom tools: a client's tools that take free text. Most servers need functions with one string instead.

The server gets a function with one argument, ``input``. The client gets its call as a custom call.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

import attrs

from crosswalk import (
    CallKind,
    ChatResponse,
    ResponseDelta,
    Segment,
    SegmentType,
    ToolCall,
    ToolCallArgumentsError,
    ToolCallDelta,
)

__all__ = ["CustomCalls", "as_custom", "with_custom_calls"]


def as_custom(call: ToolCall) -> ToolCall:
    """Return *call* of such a function as a custom call, or unchanged if its arguments differ."""
    try:
        arguments = call.parsed()
    except ToolCallArgumentsError:
        return call
    text = arguments.get("input")
    if arguments.keys() != {"input"} or not isinstance(text, str):
        return call
    return attrs.evolve(call, arguments=text, kind=CallKind.CUSTOM)


def with_custom_calls(response: ChatResponse, names: Collection[str]) -> ChatResponse:
    """Return *response* with the calls of the tools *names* as custom calls."""
    calls = [as_custom(call) if call.name in names else call for call in response.tool_calls]
    if tuple(calls) == response.tool_calls:
        return response
    texts = {
        (old.id, old.arguments): new.arguments for old, new in zip(response.tool_calls, calls, strict=True)
    }
    segments = [_with_text(segment, texts) for segment in response.segments]
    return attrs.evolve(response, message=attrs.evolve(response.message, tool_calls=calls), segments=segments)


def _with_text(segment: Segment, texts: dict[tuple[str, str], str]) -> Segment:
    key = (str(segment.metadata.get("id")), segment.content)
    if segment.type is not SegmentType.TOOL_CALL or key not in texts:
        return segment
    return attrs.evolve(segment, content=texts[key])


class CustomCalls:
    """Buffers the calls of custom tools in a stream, because their input is known only with the complete arguments.

    Args:
        names: the names of the custom tools.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._held: dict[tuple[int, int], list[ToolCallDelta]] = {}  # by choice and index

    def of(self, delta: ResponseDelta | None) -> Iterator[ResponseDelta]:
        """Return the part of *delta* that may be written now."""
        if delta is None:
            return
        call = delta.tool_call_delta
        if call is not None and self._is_held(delta.choice, call):
            self._held.setdefault((delta.choice, call.index), []).append(call)
            if not any(getattr(delta, name) for name in _OTHERS):
                return
            delta = attrs.evolve(delta, tool_call_delta=None)
        if delta.finish_reason is not None:
            yield from self.rest()
        yield delta

    def _is_held(self, choice: int, call: ToolCallDelta) -> bool:
        return (choice, call.index) in self._held or (call.name in self._names and call.kind is None)

    def rest(self) -> Iterator[ResponseDelta]:
        """Return the buffered calls."""
        buffered, self._held = self._held, {}
        for (choice, index), fragments in buffered.items():
            id = next((one.id for one in fragments if one.id), None)
            name = next((one.name for one in fragments if one.name), None)
            text = "".join(one.arguments_delta or "" for one in fragments)
            call = as_custom(ToolCall(id or "-", name or "-", text))
            whole = ToolCallDelta(index, id, name, call.arguments, call.kind)
            yield ResponseDelta(tool_call_delta=whole, choice=choice)


_OTHERS: Final = (
    *("content_delta", "finish_reason", "usage", "reasoning_delta", "refusal_delta", "segment"),
    *("raw_finish_reason", "logprobs", "extensions"),
)
"""The other fields of a delta with a fragment of a call."""
