"""Finds the destination of a leaf of a payload: change it, map again, and compare everything else.

This proves promise P1 and produces the crosswalk tables. It works on any plugin, from outside.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final, TypeAlias

import attrs

from crosswalk.codec import to_json, to_jsonable
from crosswalk.errors import CanonicalJSONError, CrosswalkError, PluginError
from crosswalk.mapping.reader import Reader, ReaderOptions
from crosswalk.plugin.registry import Mapper
from crosswalk.testing.captures import written
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.json import copy_json, same_json

Path: TypeAlias = tuple[str | int, ...]
MISSING: Final = object()


@attrs.frozen
class Leaf:
    """A scalar of a payload, or an empty object or array, which has no content that could be lost.

    Attributes:
        event: the number of its event, from 0.
        path: the keys that lead to it.
        value: its value.
    """

    event: int
    path: Path
    value: Any

    def __str__(self) -> str:
        return f"event {self.event + 1}, {show_path(self.path)}"


@attrs.frozen(slots=False)
class Outcome:
    """The result of mapping a payload.

    Attributes:
        response: the canonical JSON of the response, or of the partial one if mapping failed. ``None`` without either.
        error: name and message of the typed error, or ``None`` if mapping succeeded.
        untyped: whether it failed with an error that no application could have expected.
        cause: the typed error itself, or ``None`` if mapping succeeded.
    """

    response: Any
    _deltas: list[ResponseDelta] = attrs.field(factory=list)
    error: str | None = None
    untyped: bool = False
    cause: CrosswalkError | None = attrs.field(default=None, eq=False, repr=False)

    @cached_property
    def deltas(self) -> list[Any]:
        """The canonical JSON of the deltas. It is written on first use, because the response usually suffices."""
        deltas_json: list[Any] = to_jsonable(self._deltas)
        return deltas_json

    @property
    def is_taken(self) -> bool:
        """Whether it is an answer that neither is an error nor ends as one."""
        return self.error is None and self.response["finish_reason"] != "error"

    @property
    def extensions(self) -> dict[str, Any]:
        """The extensions of the response."""
        return dict(self.response["metadata"].get("extensions", {}))

    @property
    def provenance(self) -> dict[str, str]:
        """The marks of values that the provider did not send."""
        return dict(self.response["metadata"].get("provenance", {}))

    def said(self, *kinds: str) -> list[str]:
        """Return the parts of the first choice: texts, reasoning, arguments. If there are *kinds*, only these."""
        segments = () if self.response is None else self.response.get("segments", ())
        return [part["content"] for part in segments if not kinds or part["type"] in kinds]

    def is_like(self, other: Outcome) -> bool:
        """Whether *other* is the same answer, in the same deltas, or the same error."""
        is_same = self.error == other.error and same_json(self.response, other.response)
        return is_same and same_json(self.deltas, other.deltas)

    @cached_property
    def text(self) -> bytes:
        """The response as JSON."""
        return written(self.response)

    @cached_property
    def text_of_deltas(self) -> bytes:
        """The deltas as JSON."""
        return to_json(self._deltas)


def leaves(events: list[Any]) -> Iterator[Leaf]:
    """Yield every leaf of every event, in order."""
    for number, event in enumerate(events):
        for path, value in scalars(event):
            if path:
                yield Leaf(number, path, value)


def scalars(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield every scalar in *value*, a JSON value, with the keys that lead to it, in order."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from scalars(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from scalars(item, (*path, number))
    else:
        yield path, value


def nodes(value: Any, path: Path = (), *, kind: type = object) -> Iterator[tuple[Path, Any]]:
    """Yield every value in *value*, a JSON value, that is of type *kind* and not an empty container, with its path."""
    items = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    )
    if isinstance(value, kind) and (items is None or value):
        yield path, value
    for key, item in items or ():
        yield from nodes(item, (*path, key), kind=kind)


def at(value: Any, path: Path) -> Any:
    """Return the value at *path* in *value*, a JSON value, or :data:`MISSING` if there is none."""
    for key in path:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return MISSING
    return value


def changes(events: list[Any], leaf: Leaf) -> Iterator[tuple[str, list[Any]]]:
    """Yield the changes that mapping must not overlook, with its events: ``value``, or ``null`` if it is, and ``key``."""
    name = leaf.path[-1]
    if leaf.value is None:
        yield "null", replaced(events, leaf, "crosswalk")
    else:
        yield "value", replaced(events, leaf, _other(leaf.value))
    if isinstance(name, str):
        yield "key", _renamed(events, leaf, f"{name}_renamed")


def _other(value: Any) -> Any:
    """Return a value that resembles *value* and differs from it."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1 if value < 2**53 else value - 1
    if isinstance(value, float):
        return value / 2 if value else 0.5
    text = str(value)
    if text.isdecimal():
        return f"{text[:-1]}{(int(text[-1]) + 1) % 10}"  # still a number: other text might be refused
    # Inside, not at the end: cutting or padding at an end must show too.
    middle = len(text) // 2
    return f"{text[:middle]}X{text[middle:]}"


def confusions(leaf: Leaf) -> list[Any]:
    """Return values of every other JSON type, to replace the leaf's value. Those that are not empty are unique."""
    others: list[Any] = [None, True, False, 7070707, -1, 1234.5, "crosswalk", "7070707", ""]
    others += [[], ["crosswalk"], [None], {}, {"crosswalk": 1}]
    return [other for other in others if type(other) is not type(leaf.value) or leaf.value != other == -1]


def replaced(events: list[Any], leaf: Leaf, value: Any) -> list[Any]:
    """Return *events* with *value* in place of *leaf*, and with the objects and arrays on the way. The rest is shared."""
    event = with_value(events[leaf.event], leaf.path, value)
    return [*events[: leaf.event], event, *events[leaf.event + 1 :]]


def with_value(node: Any, keys: tuple[str | int, ...], value: Any) -> Any:
    """Return *node* with *value* at *keys*, and with the objects and arrays on the way."""
    if not keys:
        return value
    if isinstance(keys[0], int):
        items = [*node] if isinstance(node, list) else []
        items += [None] * (keys[0] + 1 - len(items))
        items[keys[0]] = with_value(items[keys[0]], keys[1:], value)
        return items
    holder = node if isinstance(node, dict) else {}
    return {**holder, keys[0]: with_value(holder.get(keys[0]), keys[1:], value)}


def without(events: list[Any], leaf: Leaf) -> list[Any]:
    """Return *events* without *leaf* of an object: without its key and value."""
    parent = Leaf(leaf.event, leaf.path[:-1], None)
    items = at(events[leaf.event], parent.path).items()
    return replaced(events, parent, {key: item for key, item in items if key != leaf.path[-1]})


def _renamed(events: list[Any], leaf: Leaf, name: str) -> list[Any]:
    parent = at(events[leaf.event], leaf.path[:-1])
    renamed_object = {name if key == leaf.path[-1] else key: value for key, value in parent.items()}
    return replaced(events, Leaf(leaf.event, leaf.path[:-1], None), renamed_object)


def outcome(
    mapper: Mapper,
    events: list[Any],
    *,
    options: ReaderOptions | None = None,
    as_bytes: Callable[[list[Any]], bytes] | None = None,
) -> Outcome:
    """Map *events* with *mapper* and return the result as far as canonical JSON shows it, without ``raw_events``.

    Args:
        mapper: the provider.
        events: decoded events.
        options: the options for reading. Ids and times are fixed in any case.
        as_bytes: writes the events as the provider would, to test framing as well; ``None`` to map them directly.
    """
    # Written while it is read: an event that its framing cannot carry is refused.
    *_, result = _reading(mapper, options, events if as_bytes is None else map(as_bytes, [events]))
    assert result is not None
    return result


def outcomes_at_once(mapper: Mapper, answers: Iterable[list[bytes]], options: ReaderOptions) -> list[Outcome]:
    """Return the :func:`outcome` of each of *answers*, which are read at once, a chunk of each in turn."""
    steps = itertools.zip_longest(*(_reading(mapper, options, chunks) for chunks in answers))
    return [next(filter(None, steps_of_answer)) for steps_of_answer in zip(*steps, strict=True)]


def _reading(
    mapper: Mapper, options: ReaderOptions | None, pieces: Iterable[Any]
) -> Iterator[Outcome | None]:
    """Read a chunk of bytes, or an event, at each step. The last value is the outcome."""
    options = attrs.evolve(options or ReaderOptions(), keep_raw=False, id_factory=fixed_id, clock=fixed_clock)
    reader = Reader(mapper, options)
    deltas: list[ResponseDelta] = []
    try:
        for piece in pieces:
            # An event is copied, because a hook may change it.
            is_event = not isinstance(piece, bytes)
            deltas.extend(reader.read_event(copy_json(piece)) if is_event else reader.read(piece))
            yield None
        deltas.extend(reader.finish())
        result = Outcome(to_jsonable(reader.response()), deltas)
    except CrosswalkError as error:
        cause, partial = error, getattr(error, "partial", None)
        try:
            if isinstance(error, PluginError):
                to_jsonable(reader.partial(""))  # an error that says where it is
            partial = None if partial is None else to_jsonable(partial)
        except CrosswalkError as further_error:
            cause, partial = further_error if isinstance(further_error, CanonicalJSONError) else error, None
        is_left = isinstance(cause, CanonicalJSONError)  # what a plugin left, and JSON does not have
        is_untyped = is_left or isinstance(cause, PluginError) or "the plugin failed with" in str(cause)
        message = f"{type(cause).__name__}: {cause}"
        result = Outcome(partial, [] if is_left else deltas, message, is_untyped, cause)
    yield result


def changed_paths(before: Any, after: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the paths at which two canonical JSON values differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in {**before, **after}:
            yield from changed_paths(before.get(key, MISSING), after.get(key, MISSING), (*path, key))
    elif isinstance(before, list) and isinstance(after, list):
        for number, (old, new) in enumerate(itertools.zip_longest(before, after, fillvalue=MISSING)):
            yield from changed_paths(old, new, (*path, number))
    elif not same_json(before, after):
        yield path


def show_path(path: Path, *, items: bool = True) -> str:
    """Return ``choices[0].delta.content`` for the keys of a path, or ``choices[].delta.content`` without *items*."""
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]" if items else "[]"
        else:
            text += f".{key}" if text else key
    return text


_ID = "00000000-0000-4000-8000-000000000000"
# So unusual that no server sends it.
_TIME = datetime(2001, 2, 3, 4, 5, 6, 7, tzinfo=UTC)


def fixed_id() -> str:
    """Return the same id every time."""
    return _ID


def fixed_clock() -> datetime:
    """Return the same time every time."""
    return _TIME
