"""What the typed fields take of each event of chat v2, and what is left (design: the residue).

What is left of a stream's events stands where a body has it: in ``message``, of a content block or a tool call under its
index, and at the top. Citations stay whole.
"""

from __future__ import annotations

from typing import Any

from crosswalk import TAKEN, MappingState, residue, taken_if
from crosswalk_cohere.logprobs import CONSUMED_ITEM
from crosswalk_cohere.progress import progress

__all__ = ["BODY", "CALL", "CONTENT", "MESSAGE", "PIECES", "USAGE", "leftovers"]

PIECES = (
    "message.citations",
    "message.content[].deltas",
    "message.tool_calls[].deltas",
    "logprobs",
)
"""Lists of the extensions that arrive in pieces: equal ones in a row are two."""


def _is_said(value: Any, content: dict[str, Any], _: MappingState) -> bool:
    return value in ("text", "thinking") and isinstance(content.get(value), str)


def _is_finish_word(value: Any, _: dict[str, Any], state: MappingState) -> bool:
    return value is None or value == progress(state).finish_word


_ID = taken_if(lambda value, _, state: value is None or value == state.response_id)
_IN_ORDER = taken_if(lambda value, _, state: progress(state).in_order)

CONTENT: dict[str, Any] = {"type": taken_if(_is_said), "text": TAKEN, "thinking": TAKEN}
CALL: dict[str, Any] = {
    "id": taken_if(lambda value, _, state: state.carries_id(value)),
    "type": taken_if(lambda value, *_: value in (None, "function")),
    "function": {
        "name": taken_if(lambda value, _, state: state.carries_name(value)),
        "arguments": TAKEN,
    },
}
MESSAGE: dict[str, Any] = {
    "role": taken_if(lambda value, *_: value == "assistant"),
    "content": [CONTENT],
    "tool_plan": TAKEN,
    "tool_calls": [CALL],
    "citations": [{}],
}
USAGE: dict[str, Any] = {
    # What is charged stays, and so does the number of tokens of images, which the prompt includes.
    "tokens": {"input_tokens": TAKEN, "output_tokens": TAKEN, "reasoning_tokens": TAKEN},
    "cached_tokens": TAKEN,
}
_END: dict[str, Any] = {
    "finish_reason": taken_if(_is_finish_word),
    "usage": USAGE,
    "error": taken_if(lambda value, _, state: value is None or value == progress(state).error),
}
BODY: dict[str, Any] = {"id": _ID, "message": MESSAGE, "logprobs": [CONSUMED_ITEM], **_END}

_EVENTS: dict[str, dict[str, Any]] = {
    "message-start": {"type": TAKEN, "id": _ID, "delta": {"message": MESSAGE}},
    "message-end": {"type": TAKEN, "id": _ID, "delta": _END},
    "tool-plan-delta": {"type": TAKEN, "delta": {"message": {"tool_plan": TAKEN}}},
    "debug": {"type": TAKEN},
}
_CALL_INDEX = taken_if(lambda value, _, state: value is None or state.carries_index(value))
_CITATION_INDEX = taken_if(lambda value, _, state: value in (None, progress(state).citations - 1))
_FAMILIES: dict[str, tuple[str, Any, Any]] = {
    # by the beginning of the type: the part of the message, the table for it, and for the index
    "content": ("content", CONTENT, _IN_ORDER),
    "tool-call": ("tool_calls", CALL, _CALL_INDEX),
    "citation": ("citations", {}, _CITATION_INDEX),
}


def leftovers(event: dict[str, Any], state: MappingState) -> dict[str, Any]:
    """What no typed field takes of *event*, which has just been mapped."""
    kind = event.get("type")
    if kind is None:
        return residue(event, BODY, state)
    if kind in _EVENTS:
        return _lifted(residue(event, _EVENTS[kind], state))
    family, _, part = kind.rpartition("-")
    name, table, index_rule = _FAMILIES[family]
    consumed = {
        "type": TAKEN,
        "index": index_rule,
        "logprobs": CONSUMED_ITEM,
        "delta": {"message": {name: table}},
    }
    rest = _lifted(residue(event, consumed, state))
    if "logprobs" in rest:
        rest["logprobs"] = [rest["logprobs"]]
    inner = (rest.get("message") or {}).pop(name, None)
    odd = {"index": rest.pop("index")} if "index" in rest else {}
    if inner is None and not odd:
        return rest
    if family == "citation":
        item = {**odd, **(inner or {"type": kind})}
    else:
        said = {} if inner is None else {"deltas": [inner]} if part == "delta" else inner
        item = {"index": event.get("index", 0), **said}
    rest["message"] = {**(rest.get("message") or {}), name: [item]}
    return rest


def _lifted(rest: dict[str, Any]) -> dict[str, Any]:
    """*rest* with what is left of its ``delta`` at the top, unless it would take another's place."""
    inner = rest.get("delta")
    if type(inner) is not dict or (rest.keys() - {"delta"}) & inner.keys():
        return rest
    return {**{key: value for key, value in rest.items() if key != "delta"}, **inner}
