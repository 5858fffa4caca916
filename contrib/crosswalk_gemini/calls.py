"""Calls of the client's tools, whole or with arguments that are streamed (section 3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from crosswalk import (
    MappingState,
    ToolCallDelta,
    WireTypeError,
    get_array,
    get_boolean,
    get_object,
    get_string,
    require_object,
)
from crosswalk_gemini.answer import Answer
from crosswalk_gemini.arguments import ArgumentsWriter

__all__ = ["call_deltas", "call_end"]


def call_deltas(
    call: dict[str, Any], place: str, answer: Answer, state: MappingState
) -> Iterator[ToolCallDelta]:
    """A whole call, or a fragment of one whose arguments are streamed (section 3).

    Raises:
        WireTypeError: it has no name and continues no call, or a leaf has another type than the API promises.
    """
    name = get_string(call, "name", place)
    id = get_string(call, "id", place)
    args = get_object(call, "args", place)
    pieces = get_array(call, "partialArgs", place)
    goes_on = get_boolean(call, "willContinue", place)
    answer.produced = True
    if name:
        yield from call_end(answer, state)
        if pieces or goes_on:
            answer.writer = ArgumentsWriter()
        yield state.tool_call(
            id=id,
            name=name,
            arguments=None if args is None or answer.writer is not None else orjson.dumps(args).decode(),
            choice=answer.choice,
            whole=True,
        )
    elif args or (answer.writer is None and (pieces or id or not state.has_tool_calls(answer.choice))):
        # Without all of these it ends a call that has ended already.
        raise WireTypeError(f"{place}.name", expected="a tool's name", got=name)
    if answer.writer is not None:
        text = ""
        for number, piece in enumerate(pieces):
            spot = f"{place}.partialArgs[{number}]"
            text += answer.writer.write(require_object(piece, spot), spot)
        if text or (id and not name):
            yield state.tool_call(id=None if name else id, arguments=text, choice=answer.choice)
        if not goes_on:
            yield from call_end(answer, state)


def call_end(answer: Answer, state: MappingState) -> Iterator[ToolCallDelta]:
    """The end of the call that is being streamed, where one is."""
    if answer.writer is not None:
        closing, answer.writer = answer.writer.close(), None
        if closing:
            yield state.tool_call(arguments=closing, choice=answer.choice)
