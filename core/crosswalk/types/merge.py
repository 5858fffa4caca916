"""How the extensions of a stream's events add up, and JSON values compared and copied."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

MergeRules: TypeAlias = Mapping[str, Any]
"""The plugin's declarations about arrays: nested by key, :data:`PIECES` or :data:`CUMULATIVE` for an array."""

PIECES: Final[MergeRules] = {}
"""Every array below arrives in pieces, which are appended, equal ones included."""
CUMULATIVE: Final[MergeRules] = {}
"""The array, or string, arrives whole each time, longer or unchanged."""
_UNDECLARED: Final[MergeRules] = {}
_INCREMENTAL: Final = "delta"
"""The key of an object that carries increments: unknown strings in it are concatenated, as every accumulator does."""
_WORDS: Final = frozenset({"type", "id", "role"})
"""Keys of strings that name something, in an increment as well, so that the last one counts."""
_CONTAINERS: Final = frozenset({dict, list})


@lru_cache(maxsize=64)
def merge_rules(pieces: tuple[str, ...], cumulative: tuple[str, ...] = ()) -> MergeRules:
    """Paths such as ``choices[].token_ids`` as rules for :func:`merge`."""
    rules: dict[str, Any] = {}
    for paths, rule in ((pieces, PIECES), (cumulative, CUMULATIVE)):
        for path in paths:
            level = rules
            *parents, key = path.replace("[]", "").split(".")
            for name in parents:
                level = level.setdefault(name, {})
            level[key] = rule
    return rules


class Arrays:
    """The state of the arrays that were merged: the position of each item with an ``index``, and repetitions.

    An array that no rule names, and that was the same in every event with it, is stored once, like any repeated field.
    Its occurrences are counted, because all of them are pieces as soon as one differs.

    Attributes:
        is_mixed: whether items with an ``index`` were appended to an array that has items without.
    """

    def __init__(self) -> None:
        self.is_mixed = False
        # Each array itself is held as well: its identity must not become another one's.
        self._indexed: dict[int, tuple[list[Any], dict[int, Any]]] = {}
        self._repeated: dict[int, tuple[list[Any], int]] = {}
        self._latest: dict[int, tuple[list[Any], list[Any]]] = {}

    def by_index(self, items: list[Any]) -> dict[int, Any] | None:
        """The items by index, for the caller to keep up to date, or ``None`` if they are not indexed."""
        known = self._indexed.get(id(items))
        if known is None:
            if items and not is_indexed(items):
                return None
            known = self._indexed[id(items)] = items, {item["index"]: item for item in items}
        return known[1]

    def latest(self, items: list[Any]) -> list[Any]:
        """The cumulative array as it arrived last."""
        known = self._latest.get(id(items))
        return items if known is None else known[1]

    def receive(self, items: list[Any], arrived: list[Any]) -> None:
        """Note that the cumulative array *items* has *arrived* anew."""
        self._latest[id(items)] = items, copy_json(arrived)

    def repetitions(self, items: list[Any]) -> int:
        """The number of times the array came so far if it was always the same, or 0 once its pieces are joined."""
        known = self._repeated.get(id(items))
        return 1 if known is None else known[1]

    def repeat(self, items: list[Any]) -> None:
        """Count the array once more."""
        self._repeated[id(items)] = items, self.repetitions(items) + 1

    def join(self, items: list[Any]) -> None:
        """Note that the array holds joined pieces from now on."""
        self._repeated[id(items)] = items, 0
        self._indexed.pop(id(items), None)


def merge(
    known: dict[str, Any],
    more: Mapping[str, Any],
    arrays: Arrays,
    rules: MergeRules = _UNDECLARED,
    *,
    is_increment: bool = False,
) -> dict[str, Any]:
    """Add *more* to *known*, in place, and return what changed.

    Objects are merged key by key. The last value of a scalar counts, and ``null`` erases nothing. Inside an object
    ``delta`` strings are concatenated. Arrays of objects with an ``index`` are merged item by item. Other
    arrays are appended, as *rules* declare, or stored once while they are the same in every event.

    Args:
        known: the extensions so far.
        more: the addition, which is not changed.
        arrays: the state of the arrays in *known*.
        rules: the plugin's declarations about arrays.
        is_increment: whether *known* is inside an object ``delta``.
    """
    changes: dict[str, Any] = {}
    for key, value in more.items():
        if key not in known:
            known[key] = copy_json(value)
            changes[key] = value
            continue
        old = known[key]
        kind = type(value)
        if kind is str:
            if is_increment and type(old) is str and key not in _WORDS and rules.get(key) is not CUMULATIVE:
                if value:
                    known[key] = old + value
                    changes[key] = value
            elif value != old:
                known[key] = changes[key] = value
        elif kind is float or kind is int:
            if value != old or type(old) is not kind:
                known[key] = changes[key] = value
        elif value is None:
            pass
        elif kind is type(old) and kind in _CONTAINERS:
            inner = rules if rules is PIECES else rules.get(key, _UNDECLARED)
            within = (is_increment or key == _INCREMENTAL) and inner is not CUMULATIVE
            changed: Any
            if kind is dict:
                changed = merge(old, value, arrays, inner, is_increment=within)
            else:
                changed = _merge_arrays(old, value, arrays, inner, is_increment=within)
            if changed:
                changes[key] = changed
        elif not same_json(old, value):
            known[key] = copy_json(value)
            changes[key] = value
    return changes


def _merge_arrays(
    known: list[Any], items: list[Any], arrays: Arrays, rules: MergeRules, *, is_increment: bool
) -> list[Any]:
    if is_indexed(items):
        by_index = arrays.by_index(known)
        if by_index is not None:
            return _merge_indexed(known, by_index, items, arrays, rules, is_increment=is_increment)
        arrays.is_mixed = True
    if rules is CUMULATIVE:
        if not items:
            return []
        last = arrays.latest(known)
        arrays.receive(known, items)
        items = items[len(last) :] if same_json(last, items[: len(last)]) else items
        if not items:
            return []
    elif rules is not PIECES and (count := arrays.repetitions(known)):
        if same_json(known, items):
            arrays.repeat(known)
            return []
        items = known * (count - 1) + items
    known += copy_json(items)
    arrays.join(known)
    return items


def _merge_indexed(
    known: list[Any],
    by_index: dict[int, Any],
    items: list[Any],
    arrays: Arrays,
    rules: MergeRules,
    *,
    is_increment: bool,
) -> list[Any]:
    changes = []
    for item in items:
        index = item["index"]
        old = by_index.get(index)
        if old is None:
            by_index[index] = fresh = copy_json(item)
            known.append(fresh)
            changes.append(item)
        elif changed := merge(old, item, arrays, rules, is_increment=is_increment):
            changes.append({"index": index, **changed})
    return changes


def adds_up(value: Any, rules: MergeRules, *, is_increment: bool = False) -> bool:
    """Whether *value*, merged once more, could add to what it added before: it holds pieces or an increment."""
    if type(value) is dict:
        for key, item in value.items():
            kind = type(item)
            if kind is str:
                if is_increment and item and key not in _WORDS and rules.get(key) is not CUMULATIVE:
                    return True
            elif kind in _CONTAINERS:
                inner = rules if rules is PIECES else rules.get(key, _UNDECLARED)
                within = (is_increment or key == _INCREMENTAL) and inner is not CUMULATIVE
                if adds_up(item, inner, is_increment=within):
                    return True
        return False
    if is_indexed(value):
        return any(adds_up(item, rules, is_increment=is_increment) for item in value)
    return rules is not CUMULATIVE and bool(value or rules is not PIECES)


class Placed:
    """An object or array, and its path once it is merged.

    Attributes:
        value: the object or array.
        path: its path.
        items: for an array, the places of its items in the one that they are added to.
    """

    __slots__ = ("items", "path", "value")

    def __init__(self, value: Any, path: str, items: Sequence[int] = ()) -> None:
        self.value = value
        self.path = path
        self.items = items


def placed(known: Any, more: Any, arrays: Arrays, rules: MergeRules) -> Iterator[Placed]:
    """Yield each object and array in *more*, with its path once that is merged into *known*. See :func:`merge`."""
    level = [(known, rules, Placed(more, ""))]
    while level:
        old, table, one = level.pop()
        value, path = one.value, one.path
        if type(value) is dict:
            yield one
            inner = [
                (
                    old.get(key) if type(old) is dict else None,
                    PIECES if table is PIECES else table.get(key, _UNDECLARED),
                    Placed(item, f"{path}.{key}" if path else f"{key}"),
                )
                for key, item in value.items()
            ]
        else:
            olds = old if type(old) is list else []
            one.items = items = _places(olds, value, arrays, table)
            yield one
            inner = [
                (olds[location] if location < len(olds) else None, table, Placed(item, f"{path}[{location}]"))
                for location, item in zip(items, value, strict=True)
            ]
        level += [each for each in inner if type(each[2].value) in _CONTAINERS]


def _places(known: list[Any], items: list[Any], arrays: Arrays, rules: MergeRules) -> Sequence[int]:
    """Return the positions of *items* once they are merged into *known*."""
    if is_indexed(items) and (not known or is_indexed(known)):
        places = {item["index"]: position for position, item in enumerate(known)}
        fresh = itertools.count(len(known))
        return [
            places[index] if (index := item["index"]) in places else places.setdefault(index, next(fresh))
            for item in items
        ]
    start = len(known)
    if rules is CUMULATIVE:
        last = arrays.latest(known)
        start -= len(last) if same_json(last, items[: len(last)]) else 0
    elif rules is not PIECES and known and (count := arrays.repetitions(known)):
        start = 0 if same_json(known, items) else start * count
    return range(start, start + len(items))


def is_indexed(items: list[Any]) -> bool:
    """Whether *items* are objects that carry their place in an ``index``, as choices and tool calls do."""
    for item in items:
        if type(item) is not dict or type(item.get("index")) is not int:
            return False
    return bool(items)


def copy_json(value: Any) -> Any:
    """*value* with its own dicts and lists, so that adding to it does not change where it came from."""
    kind = type(value)
    if kind is dict:  # a call for each item that is not a container would take most of the time
        return {key: copy_json(item) if type(item) in _CONTAINERS else item for key, item in value.items()}
    if kind is list:
        return [copy_json(item) if type(item) in _CONTAINERS else item for item in value]
    return value


def same_json(left: Any, right: Any) -> bool:
    """Return whether two JSON values are equal. Unlike for ``==``, ``true`` is not 1 and 1 is not 1.0."""
    if type(left) is not type(right):
        return False
    if type(left) is dict:
        return left.keys() == right.keys() and all(same_json(left[k], right[k]) for k in left)
    if type(left) is list:
        return len(left) == len(right) and all(map(same_json, left, right))
    return bool(left == right)
