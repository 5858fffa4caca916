"""What a dialect understands, as data: a table with a row for each field, and where a usage object has its counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final, TypeAlias

import attrs

from crosswalk.errors import MappingError
from crosswalk.plugin.state import (
    LARGEST_COUNT,
    MappingState,
    accept_count,
    accept_object,
    look_at_count,
    require_object,
    take_object,
    take_objects,
    take_same,
    take_string,
)
from crosswalk.types.delta import ResponseDelta, ended, said
from crosswalk.types.message import ToolCallDelta
from crosswalk.types.usage import Cost, UsageDetails, UsageInfo
from crosswalk.types.values import TokenLogprob, unchecked
from crosswalk.wire.chat import COUNTS

# ---------------------------------------------------------------------------------- counts
# Where a server's usage object has its counts.


class CountPaths:
    """Where a server's usage object has its counts, by the objects in it.

    Args:
        paths: the path of each count, by its name, or several. The first that has the count decides. ``total_tokens`` has
            one path, and is taken if it is the sum.
    """

    def __init__(self, paths: Mapping[str, str | Iterable[str]]) -> None:
        names_by_object: dict[tuple[int, tuple[str, ...]], dict[str, str]] = {}
        self._total: tuple[tuple[str, ...], str] | None = None
        for name, count_paths in paths.items():
            for rank, path in enumerate((count_paths,) if isinstance(count_paths, str) else count_paths):
                groups, key = _split(path)
                if name == "total_tokens":
                    self._total = groups, key
                    continue
                names_by_object.setdefault((rank, groups), {}).setdefault(key, name)
        ranked_objects = sorted(names_by_object, key=itemgetter(0))
        self._objects = tuple((groups, names_by_object[rank, groups]) for rank, groups in ranked_objects)

    def accept(self, usage: dict[str, Any]) -> dict[str, int]:
        """Take the counts of *usage* by name, and those at later paths that are equal. Mistyped ones stay, and are noted."""
        counts: dict[str, int] = {}
        for groups, name_by_key in self._objects:
            holder = usage
            for group in groups:
                inner = holder.get(group)
                if type(inner) is not dict or not inner:
                    inner = (accept_object(holder, group) or {}) if group in holder else {}
                holder = inner
            for key in [*holder]:
                name = name_by_key.get(key)
                if name is None:
                    continue
                count = holder[key]
                if name in counts:
                    take_same(holder, key, counts[name])
                elif type(count) is int and 0 <= count <= LARGEST_COUNT:
                    counts[name] = count
                    del holder[key]
                else:
                    accept_count(holder, key)
        if self._total is not None:
            groups, key = self._total
            holder = _object_at(usage, groups) if groups else usage
            if key in holder:
                total = look_at_count(holder, key)
                known_total = counts.get("prompt_tokens", 0) + counts.get("completion_tokens", 0)
                if "prompt_tokens" in counts and (total == known_total or holder[key] is None):
                    del holder[key]
        return counts


def counted(counts: Mapping[str, int], state: MappingState, cost: Cost | None = None) -> UsageInfo | None:
    """Return the report of *counts* by name, as :meth:`CountPaths.accept` returns them, or ``None`` without any."""
    get = counts.get
    return state.usage_info(
        get("prompt_tokens"),
        get("completion_tokens"),
        cached_tokens=get("cached_tokens"),
        reasoning_tokens=get("reasoning_tokens"),
        cache_write_tokens=get("cache_write_tokens"),
        cost=cost,
        details=UsageDetails.EMPTY if counts.keys() <= COUNTS.keys() else unchecked(UsageDetails, **counts),
    )


def take_same_at(container: dict[str, Any], path: str, known: Any) -> None:
    """Take the value at *path* if it repeats *known*, or is ``null``."""
    groups, name = _split(path)
    holder = _object_at(container, groups)
    if name in holder:
        take_same(holder, name, known)


def _object_at(container: dict[str, Any], groups: tuple[str, ...]) -> dict[str, Any]:
    """Return the object at the end of *groups*, or an empty one if the path does not exist."""
    for group in groups:
        container = (accept_object(container, group) or {}) if group in container else {}
    return container


@lru_cache(maxsize=256)
def _split(path: str) -> tuple[tuple[str, ...], str]:
    *groups, name = path.split(".")
    return tuple(groups), name


# ---------------------------------------------------------------------------------- fields
# A table with a row for each field, in place of code that takes one after the other.


class Said:
    """What one object of an event says. A row's function adds to it.

    Attributes:
        text: its text, ``None`` without any; likewise its reasoning and its refusal.
        logprobs: the log probabilities of its text, or ``None``.
        calls: its tool calls, or fragments of them.
        finish: its finish word, ``""`` for an end without a word, or ``None`` if the answer goes on.
        deltas: other deltas, such as those of segments, between its calls and its end.
        error: the first error. It is raised when all the rest has been read.
    """

    text: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    logprobs: tuple[TokenLogprob, ...] | None = None
    finish: str | None = None
    error: MappingError | None = None

    def __init__(self) -> None:
        self.calls: list[ToolCallDelta] = []
        self.deltas: list[ResponseDelta] = []

    def speak(self) -> Iterator[ResponseDelta]:
        """Yield the deltas in the canonical order, whatever the order in the event, and raise the error."""
        text, reasoning, refusal = self.text or None, self.reasoning or None, self.refusal or None
        if refusal or self.logprobs:
            yield ResponseDelta(
                content_delta=text, reasoning_delta=reasoning, refusal_delta=refusal, logprobs=self.logprobs
            )
        elif text or reasoning:
            yield said(text, reasoning)
        for call in self.calls:
            yield said(None, None, call)
        yield from self.deltas
        if self.finish is not None:
            yield ended(self.finish)
        if self.error is not None:
            raise self.error


Take: TypeAlias = Callable[[dict[str, Any], str, Said, MappingState], object]
"""Takes the value under a key of an object, by ``take_…`` or ``accept_…``, and adds what it says."""
Level: TypeAlias = tuple[tuple[str, Take], ...]


@attrs.frozen(eq=False)
class FieldRow:
    """The row of a field.

    Attributes:
        place: the canonical field, for people.
        take: the function that takes the value, or ``None`` for a count, which waits for ``map_usage``.
    """

    place: str
    take: Take | None = attrs.field(repr=False)


class FieldTable:
    """What a dialect understands: the rows of its fields, by their path. What no row takes is left in the event.

    The rows are asked in their order, so that a later one sees what the earlier ones have taken. A value of a wrong type
    raises when the others have been read.

    Args:
        rows: by path, such as ``message.content`` or ``output[].text``. In an array each object speaks for itself.

    Attributes:
        rows: the same.
        text_paths: the paths of texts, for ``ProviderInfo``.

    Raises:
        ValueError: a path has a row and leads to others as well.
    """

    def __init__(self, rows: Mapping[str, FieldRow]) -> None:
        self.rows = rows
        self.text_paths = tuple(path.replace("[]", "[0]") for path in rows if rows[path] in (TEXT, REASONING))
        count_paths: dict[str, list[str]] = {}
        for path, row in rows.items():
            if row.take is None:
                count_paths.setdefault(row.place.rpartition(".")[2], []).append(path)
        self._count_paths = CountPaths(count_paths)
        self._level = _level({path: row.take for path, row in rows.items() if row.take is not None})

    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """Take all but the counts from *event*, and return its deltas. See the hook ``map_delta``.

        Raises:
            WireTypeError: a value has a wrong type.
        """
        event_said = Said()
        _read(require_object(event), self._level, event_said, state)
        return event_said.speak()

    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """Take the counts from *event*. A missing one is unknown, not 0. See the hook ``map_usage``."""
        return counted(self._count_paths.accept(event), state)


def _level(takes: Mapping[str, Take]) -> Level:
    """Return the functions for the keys of one object, in the order of their paths in *takes*."""
    inner_takes: dict[str, dict[str, Take]] = {}
    for path, take in takes.items():
        key, _, rest = path.partition(".")
        inner_takes.setdefault(key, {})[rest] = take
    for key, inner in inner_takes.items():
        if "" in inner and len(inner) > 1:
            raise ValueError(
                f"{key!r} has a row of its own and rows inside it, and the first would take all of it"
            )
    return tuple(
        (key.removesuffix("[]"), inner.get("") or _inside(key, _level(inner)))
        for key, inner in inner_takes.items()
    )


def _inside(key: str, level: Level) -> Take:
    """Return the function for an object with rows of its own, or for an array of such objects."""

    def take_inner(holder: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
        inner = take_object(holder, key)
        if inner:
            _read(inner, level, said, state)
            if not inner:
                del holder[key]

    def take_each(holder: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
        for item in take_objects(holder, key):
            item_said = Said()
            _read(item, level, item_said, state)
            item_error, item_said.error = item_said.error, None
            said.deltas += item_said.speak()
            said.error = said.error or item_error

    return take_each if key.endswith("[]") else take_inner


def _read(holder: dict[str, Any], level: Level, said: Said, state: MappingState) -> None:
    for key, take in level:
        if key in holder:
            try:
                take(holder, key, said, state)
            except MappingError as error:  # what is beside it is as valid
                said.error = said.error or error


def _words(name: str) -> Take:
    """Return the function for a string that :class:`Said` has under *name*. The same again, or none, says nothing more."""

    def take(holder: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
        earlier = getattr(said, name)
        if not earlier:
            setattr(said, name, take_string(holder, key) or None)
        elif not take_same(holder, key, earlier):
            take_same(holder, key, "")

    return take


def _origin(name: str) -> Take:
    """Return the function for the state's id or model. A value that differs from the first stays."""

    def take(holder: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
        value: Any = take_string(holder, key)
        state.identify(**{name: value})
        if value and value != getattr(state, name):
            holder[key] = value

    return take


def _take_created(holder: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
    if holder[key] is not None:
        state.take_created(holder, key)


TEXT: Final = FieldRow("text", _words("text"))
"""The row of a piece of the text, or all of it."""
REASONING: Final = FieldRow("reasoning", _words("reasoning"))
"""The row of a piece of the reasoning, or all of it."""
REFUSAL: Final = FieldRow("refusal", _words("refusal"))
"""The row of the words of a refusal."""
FINISH: Final = FieldRow("finish_reason", _words("finish"))
"""The row of the finish word. An empty one, or none, is no end."""
ID: Final = FieldRow("id", _origin("id"))
"""The row of the response's id. Another one than the first stays."""
MODEL: Final = FieldRow("model", _origin("model"))
"""The row of the model's name. Another one than the first stays."""
CREATED: Final = FieldRow("created", _take_created)
"""The row of the time of creation, in seconds since 1970."""


def count(name: str) -> FieldRow:
    """The row of the token count *name* of ``UsageInfo`` or ``UsageDetails``. Of several the first with a count decides."""
    return FieldRow(f"usage.{name}", None)


def same(known: Any) -> FieldRow:
    """The row of a value that is always *known* and says nothing. Another value stays."""
    return FieldRow(f"always {known}", lambda holder, key, said, state: take_same(holder, key, known))
