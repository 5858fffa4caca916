"""What the typed fields take of a response, and what is left of its items.

The response object is read by the table :data:`CONSUMED`. Of its items, the typed fields take what :class:`Answer`
says that they carry; the rest is listed under ``output`` with the item's number as ``index``, so that what several
events say of one item comes together as a body says it at once.
"""

from __future__ import annotations

from typing import Any, Final

from crosswalk import TAKEN, MappingState, taken_if
from crosswalk_openai_responses.answer import Answer, Item, answer_of

__all__ = [
    "CONSUMED",
    "LISTS_OF_PARTS",
    "left_of",
    "left_of_event",
    "left_of_item",
    "left_of_part",
    "numbered",
]

LISTS_OF_PARTS: Final = ("content", "summary")
"""The lists of an item that hold its texts."""

ALWAYS_LEFT: Final = ("id", "type", "status")
"""What the extensions always tell of an item, so that they list all items, whatever became of each."""


def _is_the_id(value: Any, _: dict[str, Any], state: MappingState) -> bool:
    return value is None or value == state.response_id


def _is_the_model(value: Any, _: dict[str, Any], state: MappingState) -> bool:
    return value is None or value == state.model


def _is_the_time(value: Any, _: dict[str, Any], state: MappingState) -> bool:
    return type(value) in (int, float) and state.created is not None and value == state.created.timestamp()


def _is_known_status(value: Any, _: dict[str, Any], state: MappingState) -> bool:
    answer = answer_of(state)
    # Extensions that told of one status must tell of the next, or they would keep the old one.
    taken = type(value) is str and value == answer.status and not answer.has_shown_status
    answer.has_shown_status = answer.has_shown_status or not taken
    return taken


def _is_the_detail(value: Any, _: dict[str, Any], state: MappingState) -> bool:
    return value is None or answer_of(state).finish == f"incomplete:{value}"


def _is_the_text(value: Any, _: dict[str, Any], state: MappingState) -> bool:
    return type(value) is str and value == answer_of(state).text


def _is_the_sum(value: Any, usage: dict[str, Any], _: MappingState) -> bool:
    counts = usage.get("input_tokens"), usage.get("output_tokens")
    return type(value) is int and counts[0] is not None and value == (counts[0] or 0) + (counts[1] or 0)


CONSUMED: Final = {
    "id": taken_if(_is_the_id),
    "object": taken_if(lambda value, *_: value == "response"),
    "model": taken_if(_is_the_model),
    "created_at": taken_if(_is_the_time),
    "status": taken_if(_is_known_status),
    "incomplete_details": {"reason": taken_if(_is_the_detail)},
    "error": taken_if(lambda value, *_: value is None or bool(value)),
    "output": TAKEN,
    "output_text": taken_if(_is_the_text),
    "usage": {
        "input_tokens": TAKEN,
        "output_tokens": TAKEN,
        "total_tokens": taken_if(_is_the_sum),
        "input_tokens_details": {"cached_tokens": TAKEN, "cache_write_tokens": TAKEN},
        "output_tokens_details": {"reasoning_tokens": TAKEN},
    },
}
"""Of ``output`` the typed fields take what they carry; :func:`left_of_item` says what that leaves."""

_NOTHING: Final = object()


def left_of_event(event: dict[str, Any], rest: dict[str, Any], answer: Answer) -> dict[str, Any]:
    """All that is left of *event*: *rest*, what is left of its response, its items, and the keys that nobody used.

    A sequence number is no news when it follows the one before: the order of the deltas says the same.
    """
    output = [numbered(number, left) for number, left in answer.left.items() if left]
    if output:
        rest["output"] = output
    for name, value in event.items():
        if name in answer.used:
            continue
        if name == "sequence_number" and type(value) is int:
            before, answer.sequence = answer.sequence, value
            if before is not None and value == before + 1:
                continue
        rest[f"event_{name}" if name in rest or name in CONSUMED else name] = value
    return rest


def numbered(number: int, left: dict[str, Any]) -> dict[str, Any]:
    """*left* with the number of what it is left of as ``index``; an ``index`` of its own gets another name."""
    if "index" in left:
        left = {"own_index" if name == "index" else name: value for name, value in left.items()}
    return {"index": number, **left}


def left_of_item(wire: dict[str, Any], item: Item) -> dict[str, Any]:
    """*wire* less what canonical values carry of *item*."""
    carried = item.carried()
    left: dict[str, Any] = {}
    for name, value in wire.items():
        rest = value
        if name in LISTS_OF_PARTS and type(value) is list:
            rest = _left_of_parts(value, name, item)
        elif name in carried and name not in ALWAYS_LEFT:
            rest = _left(value, carried[name])
        if rest is not _NOTHING:
            left[name] = rest
    return left


def left_of_part(wire: dict[str, Any], place: str, number: int, item: Item) -> dict[str, Any]:
    """*wire*, part *number* of the list *place*, less what canonical values carry of it; with its number as ``index``."""
    part = item.parts.get((place, number, str(wire.get("type"))))
    left = wire if part is None else left_of(wire, part.carried())
    return numbered(number, left) if left else {}


def _left_of_parts(parts: list[Any], place: str, item: Item) -> Any:
    if not all(type(part) is dict for part in parts):
        return parts
    left = [left_of_part(part, place, number, item) for number, part in enumerate(parts)]
    return [rest for rest in left if rest] or _NOTHING


def left_of(value: dict[str, Any], carried: dict[str, Any]) -> dict[str, Any]:
    """*value* less the leaves that *carried* has too."""
    left = {}
    for name, item in value.items():
        rest = _left(item, carried[name]) if name in carried else item
        if rest is not _NOTHING:
            left[name] = rest
    return left


def _left(value: Any, carried: Any) -> Any:
    if type(value) is dict and type(carried) is dict:
        return left_of(value, carried) or _NOTHING
    if type(value) is list and type(carried) is list:
        return _left_of_list(value, carried)
    if value is None:
        return value if carried else _NOTHING
    return _NOTHING if type(value) is type(carried) and value == carried else value


def _left_of_list(value: list[Any], carried: list[Any]) -> Any:
    """Of a list of objects the places are kept; a list of anything else is left whole, or not at all."""
    rests = [
        _left(item, carried[number]) if number < len(carried) else item for number, item in enumerate(value)
    ]
    if all(rest is _NOTHING for rest in rests):
        return _NOTHING
    if not all(type(item) is dict for item in value):
        return value
    return [{} if rest is _NOTHING else rest for rest in rests]
