"""What the typed fields take of each event, and what is left (design: the residue).

What is left of a stream's events stands where the whole message has it: of ``message_start.message`` and
``message_delta.delta`` at the top, of a content block in ``content`` under its index.
"""

from __future__ import annotations

from typing import Any

from crosswalk import TAKEN, MappingState, residue, taken_if
from crosswalk_anthropic.blocks import Blocks, is_server_item
from crosswalk_anthropic.progress import progress

__all__ = ["BLOCKS", "DELTAS", "EVENTS", "MESSAGE", "leftovers"]


def _is_the_stop_reason(value: Any, _: dict[str, Any], state: MappingState) -> bool:
    return value is None or value == progress(state).stop_reason


def _is_a_refusal(value: Any, _: dict[str, Any], __: MappingState) -> bool:
    return type(value) is dict and value.get("type") == "refusal"


_USAGE = {
    "input_tokens": TAKEN,  # the canonical prompt, less what the cache had and got
    "output_tokens": TAKEN,
    "cache_read_input_tokens": TAKEN,
    "cache_creation_input_tokens": TAKEN,
    "output_tokens_details": {"thinking_tokens": TAKEN},
}
_END = {
    "stop_reason": taken_if(_is_the_stop_reason),
    "stop_details": taken_if(_is_a_refusal),
}
_INDEX = taken_if(lambda value, _, state: progress(state).blocks.in_order)

BLOCKS: dict[str, dict[str, Any]] = {
    "text": {"type": TAKEN, "text": TAKEN, "citations": TAKEN},
    "thinking": {"type": TAKEN, "thinking": TAKEN, "signature": TAKEN},
    "redacted_thinking": {"type": TAKEN, "data": TAKEN},
    "tool_use": {
        "type": TAKEN,
        "id": taken_if(lambda value, _, state: state.carries_id(value)),
        "name": taken_if(lambda value, _, state: state.carries_name(value)),
        "input": TAKEN,
    },
}
"""By type. A server's tool items and files go whole into segments; a block of any other type stays whole."""

DELTAS: dict[str, dict[str, Any]] = {
    "text_delta": {"type": TAKEN, "text": TAKEN},
    "thinking_delta": {"type": TAKEN, "thinking": TAKEN},
    "signature_delta": {"type": TAKEN, "signature": TAKEN},
    "citations_delta": {"type": TAKEN, "citation": TAKEN},
    "input_json_delta": {"type": TAKEN, "partial_json": TAKEN},
}
"""The pieces of a block, by type."""

MESSAGE: dict[str, Any] = {
    "type": taken_if(lambda value, *_: value == "message"),
    "id": taken_if(lambda value, _, state: value is None or value == state.response_id),
    "model": taken_if(lambda value, _, state: value is None or value == state.model),
    "role": taken_if(lambda value, *_: value == "assistant"),
    "content": TAKEN,  # block by block, see BLOCKS
    "usage": _USAGE,
    **_END,
}
EVENTS: dict[str, dict[str, Any]] = {
    "message": MESSAGE,
    "message_start": {"type": TAKEN, "message": MESSAGE},
    "message_delta": {"type": TAKEN, "delta": _END, "usage": _USAGE},
    "message_stop": {"type": TAKEN},
    "ping": {"type": TAKEN},
    "content_block_stop": {"type": TAKEN, "index": _INDEX},
}
"""The events by type; those of a block's start and of its pieces depend on the type of the block."""


def leftovers(event: dict[str, Any], state: MappingState) -> dict[str, Any]:
    """What no typed field takes of *event*, which has just been mapped."""
    kind: str = event["type"]
    blocks = progress(state).blocks
    if kind == "content_block_start":
        table = _table_of_block(event["content_block"]["type"])
        rest = residue(event, {"type": TAKEN, "index": _INDEX, "content_block": table}, state)
        return _in_content(rest, "content_block", blocks)
    if kind == "content_block_delta":
        table = _table_of_delta(event, blocks)
        rest = residue(event, {"type": TAKEN, "index": _INDEX, "delta": table}, state)
        return _in_content(rest, "delta", blocks)
    rest = residue(event, EVENTS[kind], state)
    if kind == "message":
        found = _of_content(event, state)
        if any(found):
            rest["content"] = found
    elif kind == "message_start":
        found = _of_content(event["message"], state)
        indexed = [{"index": number, **item} for number, item in enumerate(found) if item]
        if indexed:
            rest.setdefault("message", {})["content"] = indexed
        return _lifted(rest, "message")
    elif kind == "message_delta":
        return _lifted(rest, "delta")
    return rest


def _table_of_block(kind: str) -> Any:
    if is_server_item(kind) or kind == "container_upload":
        return TAKEN
    return BLOCKS.get(kind, {})


def _table_of_delta(event: dict[str, Any], blocks: Blocks) -> dict[str, Any]:
    block = blocks.of(event.get("index"))
    if block is None or block.is_opaque:
        return {}
    kind: str = event["delta"]["type"]
    return {"type": TAKEN} if block.is_whole and kind == "input_json_delta" else DELTAS[kind]


def _of_content(message: dict[str, Any], state: MappingState) -> list[dict[str, Any]]:
    """What is left of each block of a message."""
    found: list[dict[str, Any]] = []
    for block in message.get("content") or ():
        table = _table_of_block(block["type"])
        found.append({} if table is TAKEN else residue(block, table, state))
    return found


def _in_content(rest: dict[str, Any], name: str, blocks: Blocks) -> dict[str, Any]:
    """*rest* with what is left under *name* in ``content``, under the index of its block."""
    inner = rest.pop(name, None)
    block = blocks.last
    if inner is None or block is None:
        return rest
    index = rest.pop("index", block.index)
    if name == "delta":
        # What replaces a field of a block that is kept as it is: ``compaction_delta`` of ``compaction``.
        is_part = inner.get("type") == f"{block.kind}_delta" and block.is_opaque
        fields = {key: value for key, value in inner.items() if key != "type"} if is_part else None
    else:
        fields = inner
    if fields is None or "index" in fields:
        fields = {name: inner}
    return {**rest, "content": [{"index": index, **fields}]}


def _lifted(rest: dict[str, Any], name: str) -> dict[str, Any]:
    """*rest* with what is left under *name* at the top, unless it would take another's place."""
    inner = rest.get(name)
    if inner is None or (rest.keys() - {name}) & inner.keys():
        return rest
    return {**{key: value for key, value in rest.items() if key != name}, **inner}
