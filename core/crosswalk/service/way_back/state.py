"""The state of an answer: fields of the provider's message without a canonical counterpart, each at its position.

``metadata.extensions`` keep the structure of the payload. So the state is located there by position, in a body and in the
sum of a stream. Only the provider that sent it understands it (see :mod:`crosswalk.service.way_back.sorting`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from crosswalk.request import Turn
from crosswalk.service.turns import message_of
from crosswalk.types.json import thaw
from crosswalk.types.response import ChatResponse

_PATHS: Final[tuple[tuple[str | int, ...], ...]] = (
    ("choices", 0, "message"),  # Chat Completions
    ("choices", 0, "delta"),
    ("output", "choices", 0, "message"),  # DashScope's own API
    ("result", "choices", 0, "message"),  # Cloudflare's envelope
    ("result", "choices", 0, "delta"),
    ("output", "message"),  # Bedrock
    ("candidates", 0, "content"),  # Gemini
    ("message",),  # Ollama, Cohere
    ("content",),  # Messages: the blocks
    ("output",),  # Responses: the items
    ("steps",),  # Gemini's Interactions, of which no request takes an answer
    ("outputs",),
)
"""The position of an answer's message, in each form."""
_PLACE: Final = "index"
"""The key by which an object of a list gives its position."""


def answer_state(turn: ChatResponse) -> Any:
    """Return the state of *turn*, read-only, or ``None`` if its message has none."""
    path = _path_of(turn)
    return None if path is None else _at(turn.metadata.extensions, path)


def _path_of(turn: ChatResponse) -> tuple[str | int, ...] | None:
    extensions = turn.metadata.extensions
    return next((path for path in _PATHS if isinstance(_at(extensions, path), Mapping | tuple)), None)


def _at(value: Any, path: Sequence[str | int]) -> Any:
    for step in path:
        value = _entry(value, step) if isinstance(step, int) else _field(value, step)
    return value


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None


def _entry(items: Any, place: int) -> Any:
    """Return the item of *items* at position *place*."""
    for number, item in enumerate(items if isinstance(items, tuple | list) else ()):
        if isinstance(item, Mapping) and item.get(_PLACE, number) == place:
            return item
    return None


def without_fields(turn: ChatResponse, names: Sequence[str]) -> tuple[ChatResponse, list[str]]:
    """Return *turn* without the fields *names* of its message, and those of them that it had."""
    state = answer_state(turn) if names else None
    results = [name for name in names if isinstance(state, Mapping) and state.get(name) is not None]
    if not results:
        return turn, []
    extensions = turn.metadata.extensions.thawed()
    message = _at(extensions, _path_of(turn) or ())
    for name in results:
        del message[name]
    return attrs.evolve(turn, metadata=attrs.evolve(turn.metadata, extensions=extensions)), results


def without_items(turn: ChatResponse, ids: Collection[object]) -> ChatResponse:
    """Return *turn* without the items of its message that have one of *ids*."""
    state = answer_state(turn) if ids else None
    if not isinstance(state, tuple) or not any(_field(item, "id") in ids for item in state):
        return turn
    extensions = turn.metadata.extensions.thawed()
    items = _at(extensions, _path_of(turn) or ())
    items[:] = [item for item in items if _field(item, "id") not in ids]
    return attrs.evolve(turn, metadata=attrs.evolve(turn.metadata, extensions=extensions))


def own_fields(turn: Turn) -> dict[str, Any]:
    """Return the fields of the message of *turn* that are state, without empty ones, or empty for a plain message."""
    state = answer_state(turn) if isinstance(turn, ChatResponse) else None
    if not isinstance(state, Mapping):
        return {}
    fields = {name: thaw(value) for name, value in state.items() if value is not None}
    if not message_of(turn).tool_calls:
        fields.pop("tool_calls", None)  # the remaining fields of calls that are not sent
    return fields


def own_items(
    turn: Turn,
    items: Sequence[dict[str, Any] | None],
    *,
    inside: str | None = None,
    kinds: Collection[str] = (),
) -> list[dict[str, Any]]:
    """Return *items*, built for the parts of *turn*, with the state of each, and with the items that are state as a whole.

    If the state does not show which of its entries belongs to which item, *items* are returned unchanged.

    Args:
        turn: the turn.
        items: the item for each part, in order, or ``None`` for one that is left out but keeps its position.
        inside: the field of the state that has the entries, or ``None`` if the state is the list of them.
        kinds: if an item has no ``type``, the keys of which each known item has one.
    """
    state = answer_state(turn) if isinstance(turn, ChatResponse) else None
    entries = state if inside is None else _field(state, inside)
    if isinstance(entries, tuple | list) and (by_place := _by_place(entries, len(items), kinds)) is not None:
        return [*_merged(items, by_place)]
    return [item for item in items if item is not None]


@attrs.frozen
class _Entry:
    """The state at one position of a list: a separate item, or the residue of one that was built."""

    fields: Mapping[str, Any]
    is_whole: bool


def _by_place(entries: Any, count: int, kinds: Collection[str]) -> dict[int, _Entry] | None:
    """Return the *entries* by position, for *count* items that were built, or ``None`` if that is uncertain."""
    results: dict[int, _Entry] = {}
    is_dense = True
    for number, entry in enumerate(entries):
        if not isinstance(entry, Mapping):
            return None
        location = entry.get(_PLACE, number)
        is_dense = is_dense and _PLACE not in entry
        fields = {name: thaw(value) for name, value in entry.items() if name != _PLACE}
        results[location] = _Entry(fields, bool(fields) and _is_whole(fields, kinds))
    if is_dense:  # one for each item of the payload, so that they can be counted
        if kinds and len(results) == count:
            return {location: _Entry(entry.fields, False) for location, entry in results.items()}
        if len(results) != count + sum(entry.is_whole for entry in results.values()):
            return None
    return results


def _is_whole(fields: Mapping[str, Any], kinds: Collection[str]) -> bool:
    return not any(kind in fields for kind in kinds) if kinds else "type" in fields


def _merged(
    items: Sequence[dict[str, Any] | None], by_place: Mapping[int, _Entry]
) -> Iterator[dict[str, Any]]:
    waiting = list(items)
    location, last = 0, max(by_place, default=-1)
    while waiting or location <= last:
        entry = by_place.get(location)
        location += 1
        if entry is not None and entry.is_whole:
            if not _is_empty(entry.fields):
                yield dict(entry.fields)
        elif waiting and (item := waiting.pop(0)) is not None:
            put_fields(item, {} if entry is None else entry.fields)
            yield item


def _is_empty(fields: Mapping[str, Any]) -> bool:
    """Whether an item has nothing but its type: its other fields are null, as an empty compaction's are."""
    return None in fields.values() and all(value is None or name == "type" for name, value in fields.items())


def put_fields(said: dict[str, Any], state: Mapping[str, Any]) -> None:
    """Put *state* into *said*, a built object: built fields stay, and null fields are not added."""
    for name, value in state.items():
        there = said.get(name)
        if isinstance(there, dict) and isinstance(value, dict):
            put_fields(there, value)
        elif isinstance(there, list) and isinstance(value, list):
            for number, item in enumerate(value):
                location = item.get(_PLACE, number) if isinstance(item, dict) else None
                if isinstance(location, int) and location < len(there) and isinstance(there[location], dict):
                    put_fields(there[location], {key: inner for key, inner in item.items() if key != _PLACE})
        elif name not in said and value is not None:
            said[name] = value


def response_items(answer: ChatResponse) -> list[dict[str, Any]]:
    """Return the output items of *answer*, one of the Responses API, as received: stored data is complete."""
    from crosswalk.convert.conversion import written  # other providers need none of this
    from crosswalk.formats.responses import ResponsesWriter

    items: list[dict[str, Any]] = written(answer, ResponsesWriter, None).response()["output"]
    return items
