"""What the typed fields take of each event, and what is left (design: the residue).

What is left of a stream's events stands where a body has it: of ``messageStart`` in ``output.message``, of a content block
in ``output.message.content`` under its index, of ``messageStop`` and ``metadata`` at the top.
"""

from __future__ import annotations

from typing import Any

from crosswalk import TAKEN, MappingState, residue, taken_if
from crosswalk_bedrock.blocks import is_server_tool
from crosswalk_bedrock.events import BODY, ERROR, Event
from crosswalk_bedrock.media import MEDIA
from crosswalk_bedrock.progress import progress

__all__ = ["BLOCK", "DELTA", "MESSAGE", "PIECES", "START", "TOP", "leftovers"]

PIECES = ("output.message.content[].deltas",)
"""What no typed field takes of the pieces of a block: equal ones in a row are two."""


def _counted(name: str) -> Any:
    """Whether the usage so far holds the count under its field *name*."""

    def holds(value: Any, _: dict[str, Any], state: MappingState) -> bool:
        usage = progress(state).usage
        return value is None or (usage is not None and value == getattr(usage, name))

    return taken_if(holds)


def _is_request_id(value: Any, _: dict[str, Any], state: MappingState) -> bool:
    return value is None or value == state.response_id


_USE = {
    "toolUseId": taken_if(lambda value, _, state: state.carries_id(value)),
    "name": taken_if(lambda value, _, state: state.carries_name(value)),
    "input": TAKEN,
    "type": taken_if(lambda value, *_: value in (None, "tool_use")),
}
_REASONING = {"text": TAKEN, "signature": TAKEN}
_FILES = dict.fromkeys(MEDIA, TAKEN)

BLOCK: dict[str, Any] = {
    "text": TAKEN,
    "toolUse": _USE,
    "toolResult": TAKEN,
    "reasoningContent": {"reasoningText": _REASONING, "redactedContent": TAKEN},
    "citationsContent": {"content": [{"text": TAKEN}], "citations": TAKEN},
    **_FILES,
}
"""A whole content block. One of another kind stays whole."""
START: dict[str, Any] = {"toolUse": _USE, "toolResult": TAKEN, "image": TAKEN}
"""The start of a block."""
DELTA: dict[str, Any] = {
    "text": TAKEN,
    "toolUse": {"input": TAKEN},
    "toolResult": TAKEN,
    "reasoningContent": {**_REASONING, "redactedContent": TAKEN},
    "citation": TAKEN,
    "image": TAKEN,
}
"""A piece of a block."""
MESSAGE: dict[str, Any] = {
    "role": taken_if(lambda value, *_: value == "assistant"),
    "content": TAKEN,  # block by block, see BLOCK
}
TOP: dict[str, Any] = {
    "output": {"message": MESSAGE},
    "stopReason": taken_if(lambda value, _, state: value is None or value == progress(state).stop_reason),
    "usage": {
        "inputTokens": TAKEN,  # the canonical prompt, less what the cache had and got
        "outputTokens": TAKEN,
        "totalTokens": _counted("total_tokens"),
        "cacheReadInputTokens": TAKEN,
        "cacheWriteInputTokens": TAKEN,
        "cacheReadInputTokenCount": _counted("cached_tokens"),
        "cacheWriteInputTokenCount": _counted("cache_write_tokens"),
        "serverToolUsage": {},
    },
    "trace": {
        "promptRouter": {
            "invokedModelId": taken_if(lambda value, _, state: value is None or value == state.model)
        }
    },
    "ResponseMetadata": {"RequestId": taken_if(_is_request_id)},
    "$metadata": {"requestId": taken_if(_is_request_id)},
}
"""A body, and the parts of it that ``messageStop`` and ``metadata`` bring. ``metrics`` stay: a measured duration is
another one."""


def leftovers(event: dict[str, Any], read: Event, state: MappingState) -> dict[str, Any]:
    """What no typed field takes of *event*, which was *read* and mapped; an error's segment keeps it whole."""
    if read.kind == ERROR:
        return {}
    if read.kind == BODY:
        rest = residue(event, TOP, state)
        blocks = _of_content(event, state)
        if any(blocks):
            rest.setdefault("output", {}).setdefault("message", {})["content"] = blocks
        return rest
    rest = _of_event(read, state)
    if read.wrapper is None:
        return rest
    beside = {name: value for name, value in event.items() if name != read.wrapper}
    if rest.keys() & beside.keys():
        return {read.wrapper: rest, **beside}
    return {**rest, **beside}


def _of_event(read: Event, state: MappingState) -> dict[str, Any]:
    payload = read.payload
    match read.kind:
        case "messageStart":
            rest = residue(payload, {"role": MESSAGE["role"]}, state)
            padding = {"p": rest.pop("p")} if "p" in rest else {}
            return {**padding, "output": {"message": rest}} if rest else padding
        case "contentBlockStart":
            return _of_block("start", START, payload, state)
        case "contentBlockDelta":
            return _of_block("delta", DELTA, payload, state)
        case "contentBlockStop":
            return _of_block("", {}, payload, state)
    return residue(payload, TOP, state)


def _of_block(
    name: str, table: dict[str, Any], payload: dict[str, Any], state: MappingState
) -> dict[str, Any]:
    """What is left of an event about a block: in the content under its index; padding stays at the top."""
    blocks = progress(state).blocks
    in_order = taken_if(lambda *_: blocks.in_order)
    rest = residue(payload, {"contentBlockIndex": in_order, name: _table_of(payload.get(name), table)}, state)
    index, inner = rest.pop("contentBlockIndex", None), rest.pop(name, None)
    if inner is None and index is None:
        return rest
    if index is None and blocks.last is not None:
        index = blocks.last.index
    said = {} if inner is None else {"deltas": [inner]} if name == "delta" else {name: inner}
    return {**rest, "output": {"message": {"content": [{"index": index, **said}]}}}


def _table_of(item: Any, table: dict[str, Any]) -> dict[str, Any]:
    """*table* for a block, or for its start: a server tool's call is a segment, and whole in it."""
    server = type(item) is dict and is_server_tool(item.get("toolUse"))
    return {**table, "toolUse": TAKEN} if server else table


def _of_content(body: dict[str, Any], state: MappingState) -> list[dict[str, Any]]:
    """What is left of each block of a body."""
    message = (body.get("output") or {}).get("message") or {}
    return [residue(block, _table_of(block, BLOCK), state) for block in message.get("content") or ()]
