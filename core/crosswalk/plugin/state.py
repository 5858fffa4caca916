"""The arguments of hooks: an event to take values from, and the state of the answer, with the rules of all providers."""

from __future__ import annotations

import math
import sys
import threading
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar

import orjson

from crosswalk.errors import (
    ErrorInfo,
    ErrorKind,
    PluginError,
    ResponseValidationError,
    UnknownFinishReasonError,
    WireTypeError,
)
from crosswalk.lazy import later, pattern
from crosswalk.types.answer import AnswerDraft, CallDraft
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.json import same_json
from crosswalk.types.message import ToolCallDelta, arguments_delta
from crosswalk.types.response import ChatResponse, is_canonical
from crosswalk.types.usage import (
    LONGEST,
    Cost,
    Provenance,
    UsageDetails,
    UsageInfo,
    exact,
    later_usage,
    usage_of,
)
from crosswalk.types.values import (
    ContentFilterResult,
    ContentFilterSeverity,
    FinishReason,
    Segment,
    as_utc,
    error_segment,
    unchecked,
)
from crosswalk.wire.chat import COUNTS

if TYPE_CHECKING:
    import decimal
else:
    decimal = later("decimal")


# ------------------------------------------------------------------------------------ take
# Read an event by taking: a hook removes the values that it understands, and the remaining ones reach the extensions.
#
# There are two families. ``take_…`` is for values that decide the answer (text, reasoning, calls, finish, identity): a
# value of another type than the API promises raises. ``accept_…`` is for everything else: such a value stays where it
# is,
# so that it reaches the extensions as sent, and is noted as ``mistyped``. In both, a key that is missing or ``null``
# gives ``None``.
#
# An object, or an array with objects in it, is returned to be taken apart, and stays in the event until it is empty. An
# array of anything else is taken whole. Values that are read but also stay are peeked at (:func:`look_at`,
# ``event.get``).
#
# The names in ``__all__`` are for the authors of plugins, in ``crosswalk.plugins``. The others serve the engine.


T = TypeVar("T")

LARGEST_COUNT: Final = 2**63 - 1  # the sum of two can still be written, and real counts are far smaller
_LARGEST_INTEGER: Final = int(sys.float_info.max)


class Noted(threading.local):
    """The values that ``accept_…`` left in place on this thread since the last call of :func:`mistyped`.

    Hooks have no other way to report them.

    Attributes:
        values: the container of each such value, by the container's identity and the value's key in it. It stays the same
            object.
    """

    def __init__(self) -> None:
        self.values: dict[tuple[int, Any], Any] = {}


NOTED: Final = Noted()


def mistyped() -> list[tuple[Any, Any]]:
    """Return the values of a wrong type that were left, each as its container and its key, and start a new list."""
    notes = [(container, key) for (_, key), container in NOTED.values.items()]
    NOTED.values.clear()
    return notes


def note_again(notes: list[tuple[Any, Any]]) -> None:
    """Restore the list that :func:`mistyped` returned. Values that were noted meanwhile are discarded."""
    NOTED.values.clear()
    NOTED.values.update({(id(container), key): container for container, key in notes})


def _leave(container: Any, key: Any) -> None:
    if len(NOTED.values) < 1000:  # 1,000 are proof enough
        NOTED.values[id(container), key] = container


def _refuse(container: Any, key: Any, expected: str, value: object) -> WireTypeError:
    error = WireTypeError(f"[{key}]" if type(key) is int else key, expected=expected, got=value)
    error.__dict__["container"] = container  # the reader adds the location of that in the event
    return error


def wrong_type(container: dict[str, Any], key: str, expected: str) -> WireTypeError:
    """Return the error for a value under *key*, or its absence, that is not as *expected*, if no ``take_…`` can detect
    it.

    The reader adds the location of *container* in the event.
    """
    return _refuse(container, key, expected, container.get(key))


# Each of these is written out: they run for every leaf of every event, and an additional call is measurable.


def take_string(container: dict[str, Any], key: str) -> str | None:
    """Take the string under *key*. Raises :class:`WireTypeError` for any other type."""
    value = container.pop(key, None)
    if value is None or type(value) is str:
        return value
    container[key] = value
    raise _refuse(container, key, "string", value)


def take_integer(container: dict[str, Any], key: str) -> int | None:
    """Take the integer under *key*. Raises :class:`WireTypeError` for any other type."""
    value = container.pop(key, None)
    if value is None or type(value) is int:
        return value
    container[key] = value
    raise _refuse(container, key, "integer", value)


def take_count(container: dict[str, Any], key: str) -> int | None:
    """Take the integer of at least 0, in 63 bits, under *key*. Raises :class:`WireTypeError` for anything else."""
    value = container.pop(key, None)
    if value is None or (type(value) is int and 0 <= value <= LARGEST_COUNT):
        return value
    container[key] = value
    raise _refuse(container, key, "a count from 0, in 63 bits", value)


def take_number(container: dict[str, Any], key: str) -> float | None:
    """Take the number under *key*. Raises :class:`WireTypeError` for any other type."""
    value = container.pop(key, None)
    if value is None or is_number(value):
        return value  # type: ignore[no-any-return]
    container[key] = value
    raise _refuse(container, key, "number", value)


def take_boolean(container: dict[str, Any], key: str) -> bool | None:
    """Take the boolean under *key*. Raises :class:`WireTypeError` for any other type."""
    value = container.pop(key, None)
    if value is None or type(value) is bool:
        return value
    container[key] = value
    raise _refuse(container, key, "boolean", value)


def take_object(container: dict[str, Any], key: str) -> dict[str, Any] | None:
    """Return the object under *key*, to be taken apart. Raises :class:`WireTypeError` for any other type."""
    value = container.get(key)
    if type(value) is dict:
        if not value:
            del container[key]
        return value
    if value is None:
        container.pop(key, None)
        return None
    raise _refuse(container, key, "object", value)


def take_array(container: dict[str, Any], key: str) -> list[Any]:
    """Return the array under *key*, or an empty one if missing. Raises :class:`WireTypeError` for any other type.

    Objects and arrays in it are to be taken apart. An array without any is taken whole.
    """
    value = container.get(key)
    if value is not None and type(value) is not list:
        raise _refuse(container, key, "array", value)
    return accept_array(container, key)


def take_objects(container: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the array of objects under *key*, each to be taken apart, or an empty one if missing.

    Raises:
        WireTypeError: it is not an array, or an item is not an object.
    """
    value = container.get(key)
    if type(value) is list:
        for number, item in enumerate(value):
            if type(item) is not dict:
                raise _refuse(value, number, "object", item)
        if not value:
            del container[key]
        return value
    return take_array(container, key) if value is not None else container.pop(key, None) or []


def take_strings(container: dict[str, Any], key: str) -> list[str]:
    """Take the array of strings under *key*, or an empty one if missing.

    Raises:
        WireTypeError: it is not an array, or an item is not a string.
    """
    value = container.get(key)
    if type(value) is list:
        for number, item in enumerate(value):
            if type(item) is not str:
                raise _refuse(value, number, "string", item)
    return take_array(container, key)


def take_same(container: dict[str, Any], key: str, known: Any) -> bool:
    """Take the value under *key* if it equals *known*, or is ``null``. Return whether it is gone."""
    value = container.get(key)
    is_equal = value == known and type(value) is type(known)
    if value is None or (is_equal and (type(value) not in _CONTAINER_TYPES or same_json(value, known))):
        container.pop(key, None)
        return True
    return False


def require_object(value: Any, place: str = "the event") -> dict[str, Any]:
    """Return *value*, which must be an object. Raises :class:`WireTypeError`, naming *place*, otherwise."""
    if type(value) is dict:
        return value
    raise WireTypeError(place, expected="object", got=value)


def accept_string(container: dict[str, Any], key: str) -> str | None:
    """Take the string under *key*. A value of another type stays, and is noted."""
    return _accept(container, key, look_at(container, key, str))


def accept_integer(container: dict[str, Any], key: str) -> int | None:
    """Take the integer under *key*. A value of another type stays, and is noted."""
    return _accept(container, key, look_at(container, key, int))


def accept_count(container: dict[str, Any], key: str) -> int | None:
    """Take the integer of at least 0, in 63 bits, under *key*. Any other value stays, and is noted."""
    value = container.pop(key, None)  # written out: usage may come with every event
    if value is None or (type(value) is int and 0 <= value <= LARGEST_COUNT):
        return value
    container[key] = value
    _leave(container, key)
    return None


def accept_number(
    container: dict[str, Any], key: str, *, minimum: float | None = None, maximum: float | None = None
) -> float | None:
    """Take the number from *minimum* to *maximum* under *key*. Another value stays and is noted. ``None`` sets no bound."""
    value = look_at(container, key, float)
    low, high = -math.inf if minimum is None else minimum, math.inf if maximum is None else maximum
    if value is not None and not low <= value <= high:
        _leave(container, key)
        return None
    return _accept(container, key, value)


def accept_boolean(container: dict[str, Any], key: str) -> bool | None:
    """Take the boolean under *key*. A value of another type stays, and is noted."""
    return _accept(container, key, look_at(container, key, bool))


def _accept(container: dict[str, Any], key: str, value: T | None) -> T | None:
    """Take *value*, a result of peeking under *key*. ``None`` if it was null, or another value, which stays."""
    if value is not None or container.get(key) is None:
        container.pop(key, None)
    return value


def accept_object(container: dict[str, Any], key: str) -> dict[str, Any] | None:
    """Return the object under *key*, to be taken apart. A value of another type stays, and is noted."""
    value = container.get(key)
    if type(value) is dict:
        if not value:
            del container[key]
        return value
    if value is None:
        container.pop(key, None)
        return None
    _leave(container, key)
    return None


def accept_array(container: dict[str, Any], key: str) -> list[Any]:
    """Return the array under *key*, as :func:`take_array` does. A value of another type stays, and is noted."""
    value = container.get(key)
    if type(value) is list:
        if _CONTAINER_TYPES.isdisjoint(map(type, value)):
            del container[key]
        return value
    if value is None:
        container.pop(key, None)
    else:
        _leave(container, key)
    return []


def accept_objects(container: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the objects in the array under *key*, each to be taken apart. Other items stay, and are noted."""
    items = container.get(key)
    if type(items) is list and items and {dict}.issuperset(map(type, items)):
        return items
    items = accept_array(container, key)
    if not items:
        return items
    container[key] = items
    for number, item in enumerate(items):
        if type(item) is not dict:
            _leave(items, number)
    return [item for item in items if type(item) is dict]


def is_number(value: object) -> bool:
    """Whether *value* is a number that fits a ``float``. An integer in JSON may have too many digits."""
    return type(value) is float or (type(value) is int and -_LARGEST_INTEGER <= value <= _LARGEST_INTEGER)


def look_at(container: dict[str, Any], key: str, kind: type[T]) -> T | None:
    """Return the value of type *kind* under *key*, which also stays there, or ``None`` if it is missing.

    A value of another type gives ``None``, too, and is noted. An integer that fits a ``float`` counts as one.
    """
    value = container.get(key)
    is_known = value is None or type(value) is kind or (kind is float and is_number(value))
    if not is_known:
        _leave(container, key)
    return value if is_known else None


def look_at_count(container: dict[str, Any], key: str) -> int | None:
    """:func:`look_at` for an integer of at least 0, in 63 bits."""
    value = container.get(key)
    if value is None or (type(value) is int and 0 <= value <= LARGEST_COUNT):
        return value
    _leave(container, key)
    return None


def leave_mistyped(container: dict[str, Any], key: str) -> None:
    """Note that the value under *key*, which stays, is not as the API promises, if no ``accept_…`` can detect it."""
    _leave(container, key)


def take_whole(container: dict[str, Any]) -> dict[str, Any]:
    """Take all that remains in *container*, as for a segment that stores it. Values that were noted as mistyped stay."""
    if NOTED.values:
        fields: dict[str, Any] = _without(NOTED.values, container)
        return fields
    fields = dict(container)
    container.clear()
    return fields


def _without(noted_keys: Container[tuple[int, Any]], value: Any) -> Any:
    """Return *value* without the parts that are in *noted_keys*, which alone stay there.

    An array with such parts in it keeps its scalars, too.
    """
    if type(value) is list:
        items = [
            _without(noted_keys, item)
            for position, item in enumerate(value)
            if (id(value), position) not in noted_keys
        ]
        if len(items) == len(value) and not any(type(item) in _CONTAINER_TYPES and item for item in value):
            value.clear()
        return items
    if type(value) is not dict:
        return value
    fields = {}
    for key in [key for key in value if (id(value), key) not in noted_keys]:
        child = value[key]
        fields[key] = _without(noted_keys, child)
        if not child or type(child) not in _CONTAINER_TYPES:
            del value[key]
    return fields


_CONTAINER_TYPES: Final = frozenset({dict, list})


def prune(event: dict[str, Any], kept_ids: Container[int]) -> None:
    """Remove from *event* the objects and arrays that were emptied, except those with an identity in *kept_ids*.

    The items of an array are only removed together, so that the others keep their indices.
    """
    emptied_keys = None
    for key, value in event.items():  # written out: it runs for every event, and most have few values left
        kind = type(value)
        if kind is dict:
            if value and not _CONTAINER_TYPES.isdisjoint(map(type, value.values())):
                prune(value, kept_ids)
            if value or id(value) in kept_ids:
                continue
        elif kind is not list or (id(value) in kept_ids if not value else not _is_emptied(value, kept_ids)):
            continue
        if emptied_keys is None:
            emptied_keys = [key]
        else:
            emptied_keys.append(key)
    if emptied_keys is not None:
        for key in emptied_keys:
            del event[key]


def _is_emptied(items: list[Any], kept_ids: Container[int]) -> bool:
    is_emptied = id(items) not in kept_ids
    for item in items:  # do not stop early: the last item must be pruned as well
        kind = type(item)
        if kind is dict:
            if item and not _CONTAINER_TYPES.isdisjoint(map(type, item.values())):
                prune(item, kept_ids)
            if item or id(item) in kept_ids:
                is_emptied = False
        elif kind is not list or not _is_emptied(item, kept_ids):
            is_emptied = False
    return is_emptied


def empty_containers(event: Any) -> dict[int, Any]:
    """The objects and arrays of *event* that were sent empty by the provider, by their identity.

    References to them are held, so that no object that a hook makes reuses the identity of one that it has taken.
    """
    containers_by_id: dict[int, Any] = {}
    level = [event] if type(event) is dict or type(event) is list else []
    while level:
        next_level = []
        for container in level:
            if not container:
                containers_by_id[id(container)] = container
                continue
            children = container.values() if type(container) is dict else container
            if not _CONTAINER_TYPES.isdisjoint(map(type, children)):
                for child in children:
                    if type(child) in _CONTAINER_TYPES:
                        next_level.append(child)
        level = next_level
    return containers_by_id


# ---------------------------------------------------------------------------------- counts
# Where a server's usage object has its counts.


class CountPaths:
    """The places of the counts in a server's usage object, by the objects in it.

    Args:
        paths: the path of each count, by its name, or several. The first that has the count decides. ``total_tokens`` has
            one path, and is taken if it is the sum.

    Attributes:
        paths: the same, all of them in tuples.
    """

    def __init__(self, paths: Mapping[str, str | Iterable[str]]) -> None:
        self.paths = {name: (one,) if isinstance(one, str) else tuple(one) for name, one in paths.items()}
        names_by_object: dict[tuple[int, tuple[str, ...]], dict[str, str]] = {}
        self._total: tuple[tuple[str, ...], str] | None = None
        for name, count_paths in self.paths.items():
            for rank, path in enumerate(count_paths):
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
            if groups and groups[0] not in usage:
                continue
            for group in groups:
                inner = holder.get(group)
                if type(inner) is not dict or not inner:
                    inner = (accept_object(holder, group) or {}) if group in holder else {}
                holder = inner
            for key, name in name_by_key.items():
                if key not in holder:
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


# ----------------------------------------------------------------------------------- calls
# Which tool call a fragment belongs to: rules that hold for every provider.
#
# A call is found by index, else by id, else it is the open one. A fragment whose id and name both differ from that
# call's opens a new one, whatever its index, and so does one with another id where that call is complete: its arguments
# are JSON, or a finish word came after it. A missing index is never 0.


class ToolCalls:
    """Finds the tool calls of one choice by what the provider says of them.

    Args:
        calls: the calls, by their place; new ones are added.
    """

    def __init__(self, calls: dict[int, CallDraft]) -> None:
        self._calls = calls
        self._open_call: CallDraft | None = None
        self._calls_by_id: dict[str, CallDraft] = {}
        # Of several the last: servers that number every call 0 reuse the number.
        self._calls_by_index: dict[int, CallDraft] = {}

    def find(
        self, index: int | None, id: str | None, name: str | None, *, has_ended: bool
    ) -> CallDraft | None:
        """Return the call that a fragment continues, or ``None`` if it opens a new one.

        Args:
            index: the provider's index, or ``None`` without one.
            id: the provider's id, or ``None`` without one.
            name: the name of the tool, or ``None`` without one.
            has_ended: whether a finish word came before.
        """
        open_call = self._open_call
        known_call = self._calls_by_id.get(id) if id is not None else None
        if index is None:
            if id is None:
                return open_call if name is None else None
            if known_call is None and name is None and open_call is not None and open_call.id is None:
                return open_call  # the id of the open call comes late
            return known_call
        if known_call is not None and known_call.wire_index in (index, None):
            return known_call
        indexed_call = self._calls_by_index.get(index)
        if indexed_call is not None:
            return None if _is_another(indexed_call, id, name, has_ended=has_ended) else indexed_call
        if name is not None:
            return None  # on an index of its own, an id that is known is one that the server gave twice
        if id is None and open_call is not None and open_call.wire_index is None:
            return open_call  # the index of the open call comes late
        return known_call

    def open(self, call: CallDraft | None, index: int | None) -> CallDraft:
        """*call*, or a new one, which came with the provider's *index*: the one that a nameless fragment continues."""
        if call is None:
            call = self._calls[len(self._calls)] = CallDraft(len(self._calls))
        self._open_call = call
        if call.wire_index is None and index is not None:
            call.wire_index = index
            self._calls_by_index[index] = call
        return call

    def identify(self, call: CallDraft, id: str) -> bool:
        """Set the *id* of *call*, and return whether it was free."""
        if id in self._calls_by_id:
            return False
        call.id = id
        self._calls_by_id[id] = call
        return True


def _is_another(call: CallDraft, id: str | None, name: str | None, *, has_ended: bool) -> bool:
    """Whether a fragment on the index of *call* belongs to another one: it is named, and not as that one is.

    The name alone may be the same (two calls of one tool), so a named fragment with another id is another call.
    """
    if name is None or call.name is None:
        has_other_id = id is not None and call.id is not None and id != call.id
        return has_other_id and (has_ended or _is_json("".join(call.arguments)))
    if id is None or call.id is None:
        return name != call.name
    return id != call.id


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


# ----------------------------------------------------------------------------------- state
# The state of one answer while it is mapped, and the rules that all providers share. Hooks get it as ``state``.


_ABSENT: Final = Provenance.ABSENT  # members of an enum are slow to look up
_ZERO: Final = timedelta(0)
_NO_REPORT: Final = (None,) * 6 + (UsageDetails.EMPTY,)
_SEVERITIES: Final = tuple(ContentFilterSeverity)


class End:
    """The end of one choice.

    Attributes:
        reason: the canonical reason.
        finish_word: the provider's word, ``""`` if it ended without one, or ``None`` if the provider did not signal the end.
        unmapped: whether no mapping contains the word.
    """

    __slots__ = ("finish_word", "reason", "unmapped")

    def __init__(self, reason: FinishReason, finish_word: str | None, *, unmapped: bool = False) -> None:
        self.reason = reason
        self.finish_word = finish_word
        self.unmapped = unmapped


class MappingState(AnswerDraft):
    """The state of one answer while it is mapped. Hooks get it as ``state``.

    Attributes:
        data: the plugin's notes, which only the plugin writes to. :meth:`own` stores typed ones.
        event_name: the SSE name of the current event, or ``None`` if it has none.
        continues: whether the current event belongs to the same answer by its id, so that content after a finish word
            is part of the answer and the word was provisional. The plugin sets it, event by event.
        ends: the ends of the choices, by number, as far as they are known.
        vague_words: the finish words with which the provider does not say why the answer ended. An answer that ends with
            one is not complete: the plugin adds the word, and gives ``stop`` as its meaning.
        error: the delta of the provider's error, or ``None`` before one comes.
        unknown_finish: the first unknown finish word, to be raised when everything has been received, or ``None``.
        has_other_ids: whether the provider has sent another id than the first.
        dialect: the one of a provider's several dialects that reads this answer, or ``None`` until it is known.
        repeated_texts: by choice, the texts, reasoning or arguments of events that repeated the choice's last event,
            since the hooks last received an event. They are part of the answer already.
        whole: the current event before anything was taken, for wrappers around hooks, or ``None`` if there are none.
    """

    is_checked = True
    event_name: str | None = None
    continues = False
    error: ResponseDelta | None = None
    unknown_finish: UnknownFinishReasonError | None = None
    has_other_ids = False
    whole: Any = None
    dialect: Any = None
    _has_prompt_count = False
    _has_completion_count = False
    _request_duration: timedelta | None = None
    _raw_created: Any = None  # as the provider wrote it

    def __init__(self, provider: str) -> None:
        super().__init__(provider)
        self.data: dict[str, Any] = {}
        self.repeated_texts: defaultdict[int, list[str]] = defaultdict(list)
        self.ends: dict[int, End] = {}
        self.vague_words: set[str] = set()
        self._own_objects: dict[type[Any], Any] = {}
        self._calls_by_choice: dict[int, ToolCalls] = {}

    def own(self, kind: type[T]) -> T:
        """Return the one object of class *kind* for this answer. It is made, without arguments, on the first call."""
        own_object = self._own_objects.get(kind)
        if own_object is None:
            own_object = self._own_objects[kind] = kind()
        return own_object

    # The origin of the answer, and its duration.

    @property
    def request_duration(self) -> timedelta | None:
        """The time from request to end, measured or reported, or ``None`` if neither.

        Raises:
            ResponseValidationError: it is set to something other than a ``timedelta`` from 0. One of more than a
                thousand years is not stored: no server takes that long.
        """
        return self._request_duration

    @request_duration.setter
    def request_duration(self, value: timedelta | None) -> None:
        given: Any = value  # a plugin may be untyped
        if given is not None and not (isinstance(given, timedelta) and given >= _ZERO):
            raise ResponseValidationError("request_duration must be a timedelta from 0")
        self._request_duration = None if value is not None and value > LONGEST else value

    def identify(
        self, *, id: str | None = None, model: str | None = None, created: datetime | None = None
    ) -> None:
        """Note the origin of the answer. The first value of each that is not empty stays.

        Raises:
            TypeError: the id or the model is not a string.
            ResponseValidationError: the time is not a ``datetime`` with a time zone. Nothing is noted then.
        """
        for value in (id, model):
            if value is not None and not isinstance(value, str):
                raise TypeError("the id and the model are strings")
        if created is not None:
            created = as_utc(created)
        if id and id != self.id:
            if self.id is None:
                self.id = id
            else:
                self.has_other_ids = True
        self.model = self.model or model or None
        if created is not None and self.created is None:
            self.created = created

    def take_identity(
        self, event: dict[str, Any], *, id: str = "id", model: str = "model", created: str = "created"
    ) -> None:
        """Take the id, model and time of the answer from *event*. Values that differ from the first ones stay in the
        event.

        Args:
            event: the event, or the object in it that has these fields.
            id: the key of the response's id; likewise *model*.
            created: the key of the time of creation: seconds since 1970, or a text in ISO 8601 with a zone. 0 and an empty
                text mean no time. A value before 1970 in seconds, outside the calendar, or without a zone stays in the
                event, and is noted.

        Raises:
            WireTypeError: the id or the model is not a string.
        """
        # Most servers repeat all three in every event: one comparison removes equal ones.
        sent_id = event.pop(id, None)
        if sent_id is not None and sent_id != self.id:
            if type(sent_id) is not str:
                event[id] = sent_id
                raise _refuse(event, id, "string", sent_id)
            if self.id is None:
                self.id = sent_id or None
            elif sent_id:
                self.has_other_ids, event[id] = True, sent_id
        sent_model = event.pop(model, None)
        if sent_model is not None and sent_model != self.model:
            if type(sent_model) is not str:
                event[model] = sent_model
                raise _refuse(event, model, "string", sent_model)
            if self.model is None:
                self.model = sent_model or None
            elif sent_model:
                event[model] = sent_model
        value = event.get(created)
        if value is not None:
            if value == self._raw_created and type(value) is type(self._raw_created):
                del event[created]
            else:
                self.take_created(event, created)

    def take_created(self, event: dict[str, Any], key: str) -> None:
        """Take the time of creation under *key* of *event*, as :meth:`take_identity` does."""
        value = event[key]
        if type(value) not in (int, float, str):
            leave_mistyped(event, key)
            return
        if self._raw_created is None and value:
            time = time_of(value) if isinstance(value, str) else _time_of(value)
            if time is None:
                leave_mistyped(event, key)
                return
            self._raw_created = value
            self.created = self.created or time
        if not value or (value == self._raw_created and type(value) is type(self._raw_created)):
            del event[key]

    # Notes about the answer.

    def note(self, path: str, provenance: Provenance | str | None) -> None:
        """Note why the canonical field at *path* is not the provider's own word. ``None`` removes the note.

        Raises:
            PluginError: a response has no field there.
        """
        if type(path) is not str or not is_canonical(path):
            raise PluginError(
                f"provider {self.provider!r}: it notes {path!r}, which is not a field of a response",
                plugin=self.provider,
            )
        if provenance is None:
            self.provenance.pop(path, None)
        else:
            self.provenance[path] = provenance if type(provenance) is Provenance else Provenance(provenance)

    def note_unknown_part(self) -> None:
        """Note that a part in the place of text has a type that no mapping knows.

        The answer is then not complete, unless it has tool calls.
        """
        self.provenance["message.content"] = Provenance.UNMAPPED

    def judge(self, verdict: ContentFilterResult) -> None:
        """Note a *verdict* of the provider's moderation. The worst of each category stays; filtered content ranks
        highest.
        """
        earlier_verdict = self.verdicts.get(verdict.category)
        if earlier_verdict is None or _weight(verdict) > _weight(earlier_verdict):
            self.verdicts[verdict.category] = verdict

    def usage_info(
        self,
        prompt_tokens: int | None,
        completion_tokens: int | None,
        *,
        cached_tokens: int | None = None,
        reasoning_tokens: int | None = None,
        cache_write_tokens: int | None = None,
        cost: Cost | None = None,
        details: UsageDetails = UsageDetails.EMPTY,
    ) -> UsageInfo | None:
        """Return the counts of a report, or ``None`` if it has none at all. A missing count is 0 and noted as absent."""
        other_counts = cached_tokens, reasoning_tokens, cache_write_tokens
        if (prompt_tokens, completion_tokens, *other_counts, cost, details) == _NO_REPORT:
            return None
        provenance = self.provenance
        if prompt_tokens is None:
            prompt_tokens, provenance["usage.prompt_tokens"] = 0, _ABSENT
        else:
            provenance.pop("usage.prompt_tokens", None)
        if completion_tokens is None:
            completion_tokens, provenance["usage.completion_tokens"] = 0, _ABSENT
        else:
            provenance.pop("usage.completion_tokens", None)
        return usage_of((prompt_tokens, completion_tokens, *other_counts), cost, details)

    def report(self, usage: UsageInfo) -> None:
        """Take a usage report. A later report replaces an earlier one, field by field."""
        provenance, kept_names = self.provenance, []
        is_without_prompt = provenance.get("usage.prompt_tokens") is _ABSENT
        is_without_completion = provenance.get("usage.completion_tokens") is _ABSENT
        if is_without_prompt and self._has_prompt_count:
            kept_names.append("prompt_tokens")
        if is_without_completion and self._has_completion_count:
            kept_names.append("completion_tokens")
        self._has_prompt_count |= not is_without_prompt
        self._has_completion_count |= not is_without_completion
        self.usage = usage if self.usage is None else later_usage(self.usage, usage, kept_names)
        for name in kept_names:
            provenance.pop(f"usage.{name}", None)

    # Its choices.

    def begin(self, choice: int) -> None:
        """Note that *choice* has begun. It must end, too.

        Raises:
            ResponseValidationError: it is not a number from 0.
        """
        if type(choice) is not int or choice < 0:
            raise ResponseValidationError("a choice is a number from 0")
        self.choice(choice)

    def has_spoken(self, choice: int) -> bool:
        """Whether *choice* has any content from before this event: text, reasoning, a refusal, a call, a segment."""
        draft = self.choices.get(choice)
        return draft is not None and bool(draft.parts)

    def has_ended(self, choice: int) -> bool:
        """Whether the end of *choice* was signalled."""
        return choice in self.ends

    def has_tool_calls(self, choice: int = 0) -> bool:
        """Whether *choice* has called a tool of the client's."""
        return choice in self._calls_by_choice

    def tool_calls(self, choice: int = 0) -> list[CallDraft]:
        """The calls of *choice* so far, in order of first appearance."""
        draft = self.choices.get(choice)
        return [] if draft is None else list(draft.calls.values())

    def tool_call(
        self,
        *,
        index: int | None = None,
        id: str | None = None,
        name: str | None = None,
        arguments: str | None = None,
        choice: int = 0,
        whole: bool = False,
    ) -> ToolCallDelta:
        """Return the delta for a fragment of a tool call, by rules that hold for every provider.

        A call is found by index, else by id, else it is the open one. A fragment with an id and a name that both
        differ from that call's opens a new one, whatever its index. A missing index is never 0. An empty
        or repeated id or name is never appended.

        Args:
            index: the provider's index, or ``None`` if it sends none.
            id: the provider's id, or ``None`` or ``""`` if it sends none.
            name: the tool's name, or ``None`` or ``""`` if this fragment has none.
            arguments: argument text to append.
            choice: the choice that calls.
            whole: whether this is a whole call, never a fragment of another one.
        """
        calls = self._calls_by_choice.get(choice)
        if calls is None:
            draft = self.choices.get(choice) or self.choice(choice)
            calls = self._calls_by_choice[choice] = ToolCalls(draft.calls)
        id, name = id or None, name or None
        found = None if whole else calls.find(index, id, name, has_ended=choice in self.ends)
        call = calls.open(found, index)
        new_id = id if id is not None and call.id is None and calls.identify(call, id) else None
        new_name = None
        call.other_id = None if id == call.id else id
        if name is not None and call.name is None:
            call.name = new_name = name
        for part in (new_id, new_name, arguments):
            if part is not None and not (type(part) is str and part.isascii()):
                return ToolCallDelta(call.index, new_id, new_name, arguments or None)
        return arguments_delta(call.index, arguments or None, new_id, new_name)

    def take_tool_call(
        self,
        wire: dict[str, Any],
        function: dict[str, Any] | None = None,
        *,
        arguments: str | None,
        index: str | int | None = "index",
        id: str = "id",
        name: str = "name",
        choice: int = 0,
        whole: bool = False,
    ) -> ToolCallDelta:
        """:meth:`tool_call` for an object. The parts of its index, id and name that the call stores are taken.

        Args:
            wire: the object that has the index and the id.
            function: the object that has the name, or ``None`` for the same.
            arguments: argument text to append, taken by the caller, which knows its form.
            index: the key of the index, or the provider's value from elsewhere, which the caller has taken.
            id: the key of the id.
            name: the key of the name.
            choice: the choice that calls.
            whole: whether this is a whole call, never a fragment of another one.

        Raises:
            WireTypeError: index, id or name has another type.
        """
        said_index = take_integer(wire, index) if index in wire else None if isinstance(index, str) else index
        holder = wire if function is None else function
        said_id, said_name = wire.get(id), holder.get(name)
        if type(said_id) is type(said_name) is str:  # of any whole call
            wire.pop(id, None)
            holder.pop(name, None)
        else:
            said_id, said_name = take_string(wire, id), take_string(holder, name)
        delta = self.tool_call(
            index=said_index, id=said_id, name=said_name, arguments=arguments, choice=choice, whole=whole
        )
        call = self.choices[choice].calls[delta.index]
        if isinstance(index, str) and said_index not in (None, call.index):
            wire[index] = said_index
        if said_id and said_id != call.id:
            wire[id] = said_id
        if said_name and said_name != call.name:
            holder[name] = said_name
        return delta

    def partial(self, error: ErrorInfo | str) -> ChatResponse:
        """Return everything so far as an error response, including buffered content."""
        info = error if isinstance(error, ErrorInfo) else ErrorInfo(ErrorKind.UNKNOWN, error)
        error_segments: tuple[Segment, ...] = (error_segment(info),)
        if self.choice(0).finish is None:
            for number, end in self.ends.items():
                self.choice(number).raw_finish = end.finish_word
            if self.error is not None and self.error.segment is not None:
                error_segments = (self.error.segment, *error_segments)
        return self.response(FinishReason.ERROR, error_segments, cause=info.message)


def _weight(verdict: ContentFilterResult) -> tuple[bool, int]:
    return verdict.filtered, _SEVERITIES.index(verdict.severity)


_DATE: Final = pattern(r"[-0-9W]+[Tt ]")


def time_of(text: str) -> datetime | None:
    """Return the time in *text*, in UTC, or ``None`` if it is invalid or has no zone. ``T`` or a space ends the date."""
    if not _DATE.match(text):  # Python takes any letter there
        return None
    try:
        time = datetime.fromisoformat(text)
        return time if time.tzinfo is UTC else None if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):  # the latter at the ends of the calendar
        return None


def _time_of(seconds: float) -> datetime | None:
    """Return the time, or ``None`` if it is outside every calendar."""
    try:
        return datetime.fromtimestamp(seconds, UTC) if seconds > 0 else None
    except (ValueError, OverflowError, OSError):
        return None


# ------------------------------------------------------------------------- times and costs
# When an answer began and what it cost, in the forms in which services send times and amounts.


_MOST_MONEY: Final = 10**22  # a million million dollars in ticks


def look_at_cost(usage: dict[str, Any], currency: str | None = None) -> Cost | None:
    """Return the cost of the request in the object of its counts, or ``None`` without any.

    Three servers count in US dollars. xAI sends ``cost_in_usd_ticks``. OpenRouter sends a number ``cost`` next to
    ``cost_details`` or ``is_byok``, also through other services. With a key of the user's own (``is_byok``), it is only
    OpenRouter's fee: the provider behind charges ``cost_details.upstream_inference_cost`` as well, and the sum is
    returned. Perplexity sends an object ``cost`` with its parts and their ``total_cost``. All of it stays.

    Args:
        usage: the object.
        currency: the currency of a plain number ``cost`` of this provider, as a code of ISO 4217, or ``None`` if unknown.
            Such a number is then not a cost.
    """
    if "cost_in_usd_ticks" in usage:
        return _money(usage, "cost_in_usd_ticks", power=-10)
    if "cost_details" in usage or "is_byok" in usage:
        fee, details = _money(usage, "cost"), usage.get("cost_details")
        if usage.get("is_byok") is True and type(details) is dict:
            return _sum(fee, _money(details, "upstream_inference_cost"))
        return fee
    cost_fields = usage.get("cost")
    if type(cost_fields) is dict:
        return _money(cost_fields, "total_cost")
    return _money(usage, "cost", currency=currency) if currency else None


def _money(holder: dict[str, Any], key: str, power: int = 0, *, currency: str = "USD") -> Cost | None:
    amount = holder.get(key)
    if amount is None:
        return None
    if (type(amount) is int or type(amount) is float) and 0 <= amount <= _MOST_MONEY:
        try:
            # By its shortest text, which is what the provider wrote: 0.1, not what binary makes of it.
            money = decimal.Decimal(repr(amount)).scaleb(power, exact())
            return Cost(money.normalize(exact()), currency)
        except ResponseValidationError:
            pass
    leave_mistyped(holder, key)
    return None


def _sum(first: Cost | None, second: Cost | None) -> Cost | None:
    if first is None or second is None:
        return first or second
    return Cost(exact().add(first.amount, second.amount).normalize(exact()), first.currency)


def look_at_time(container: dict[str, Any], key: str) -> datetime | None:
    """Return the RFC 3339 time under *key*, which stays there. ``None`` if missing, invalid or, noted, not a string."""
    text = look_at(container, key, str)
    return time_of(text) if text else None
