"""JSON values beside each other: are they the same, and how do the extensions of a stream's events add up."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

__all__ = [
    "JOIN",
    "Pieces",
    "Places",
    "copy_json",
    "has_pieces",
    "is_indexed",
    "merge",
    "pieces_table",
    "placed",
    "same_json",
]

Pieces: TypeAlias = Mapping[str, Any]
"""Which lists arrive in pieces: nested by key, :data:`JOIN` for such a list."""

JOIN: Final[Pieces] = {}
"""Every list below arrives in pieces, so that equal ones in a row are joined, not taken for a repetition."""
_NONE: Final[Pieces] = {}
_CONTAINERS: Final = frozenset({dict, list})


@lru_cache(maxsize=64)
def pieces_table(paths: tuple[str, ...]) -> Pieces:
    """``("choices[].token_ids",)`` as a table for :func:`merge`."""
    found: dict[str, Any] = {}
    for path in paths:
        table = found
        *parents, leaf = path.replace("[]", "").split(".")
        for name in parents:
            table = table.setdefault(name, {})
        table[leaf] = JOIN
    return found


class Places:
    """Where the items of lists stand by their ``index``: found once for each list that grows, not for every event."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[list[Any], dict[int, Any]]] = {}

    def of(self, items: list[Any]) -> dict[int, Any] | None:
        """The items by index, to be kept up to date by who adds one; ``None`` for a list of others than such."""
        found = self._found.get(id(items))
        if found is None:
            if items and not is_indexed(items):
                return None
            # The list itself is kept as well: its identity must not become another one's.
            found = self._found[id(items)] = items, {item["index"]: item for item in items}
        return found[1]

    def forget(self, items: list[Any]) -> None:
        """Forget *items*, which hold something else now."""
        if self._found:
            self._found.pop(id(items), None)


def merge(
    known: dict[str, Any], more: Mapping[str, Any], places: Places, pieces: Pieces = _NONE
) -> dict[str, Any]:
    """Add *more* to *known*, in place, and give what of it is new.

    Objects are merged key by key. Of a scalar the last value counts, and ``null`` takes nothing back. Lists whose items are
    objects with an ``index`` are merged item by item, as a body would list them. Any other list goes on where it ended,
    unless it says again what is known: all of it, or its end. A list among *pieces* is never such a repetition.
    """
    news: dict[str, Any] = {}
    for key, value in more.items():
        if key not in known:
            known[key] = copy_json(value)
            news[key] = value
            continue
        old = known[key]
        kind = type(value)
        if kind is str:  # the commonest: a word that every event repeats, or a time that changes with each
            if value != old:
                known[key] = news[key] = value
        elif kind is float or kind is int:
            if value != old or type(old) is not kind:
                known[key] = news[key] = value
        elif value is None:
            pass
        elif kind is type(old) and kind in _CONTAINERS:
            inner = pieces.get(key, _NONE) if pieces is not JOIN else JOIN
            new = (merge if kind is dict else _merge_lists)(old, value, places, inner)
            if new:
                news[key] = new
        elif not same_json(old, value):
            known[key] = copy_json(value)
            news[key] = value
    return news


def _merge_lists(known: list[Any], items: list[Any], places: Places, pieces: Pieces) -> list[Any]:
    by_index = places.of(known) if is_indexed(items) else None
    if by_index is not None:
        return _merge_indexed(known, by_index, items, places, pieces)
    if pieces is not JOIN:
        count = len(known)
        if same_json(known[-len(items) :] if items else [], items):
            return []
        if len(items) > count and same_json(known, items[:count]):
            items = items[count:]
    known += copy_json(items)
    places.forget(known)
    return items


def _merge_indexed(
    known: list[Any], by_index: dict[int, Any], items: list[Any], places: Places, pieces: Pieces
) -> list[Any]:
    news = []
    for item in items:
        index = item["index"]
        old = by_index.get(index)
        if old is None:
            by_index[index] = fresh = copy_json(item)
            known.append(fresh)
            news.append(item)
        elif new := merge(old, item, places, pieces):
            news.append({"index": index, **new})
    return news


class Placed:
    """An object or array, and where it will stand.

    Attributes:
        value: the object or array.
        path: its path.
        items: of an array, where its items stand in the one that they are added to.
        is_fixed: whether the same would stand there if it came again.
    """

    __slots__ = ("is_fixed", "items", "path", "value")

    def __init__(self, value: Any, path: str, *, is_fixed: bool, items: Sequence[int] = ()) -> None:
        self.value = value
        self.path = path
        self.items = items
        self.is_fixed = is_fixed


def placed(known: Any, more: Any, pieces: Pieces) -> Iterator[Placed]:
    """Each object and array in *more*, with its path once that is merged into *known*; see :func:`merge`."""
    level = [(known, pieces, Placed(more, "", is_fixed=True))]
    while level:
        old, table, one = level.pop()
        value, path, is_fixed = one.value, one.path, one.is_fixed
        if type(value) is dict:
            yield one
            inner = [
                (
                    old.get(key) if type(old) is dict else None,
                    JOIN if table is JOIN else table.get(key, _NONE),
                    Placed(item, f"{path}.{key}" if path else f"{key}", is_fixed=is_fixed),
                )
                for key, item in value.items()
            ]
        else:
            olds = old if type(old) is list else []
            items = _places(olds, value, table)
            one.items = items
            yield one
            is_fixed = is_fixed and is_indexed(value)
            inner = [
                (
                    olds[place] if place < len(olds) else None,
                    table,
                    Placed(item, f"{path}[{place}]", is_fixed=is_fixed),
                )
                for place, item in zip(items, value, strict=True)
            ]
        level += [each for each in inner if type(each[2].value) in _CONTAINERS]


def _places(known: list[Any], items: list[Any], pieces: Pieces) -> Sequence[int]:
    """Where *items* stand once they are merged into *known*."""
    count = len(known)
    if is_indexed(items) and (not known or is_indexed(known)):
        places = {item["index"]: place for place, item in enumerate(known)}
        fresh = itertools.count(count)
        return [
            places[index] if (index := item["index"]) in places else places.setdefault(index, next(fresh))
            for item in items
        ]
    if pieces is JOIN:
        start = count
    elif same_json(known[-len(items) :] if items else [], items):
        start = count - len(items)
    else:
        start = 0 if len(items) > count and same_json(known, items[:count]) else count
    return range(start, start + len(items))


def is_indexed(items: list[Any]) -> bool:
    """Whether *items* are objects that carry their place in an ``index``, as choices and tool calls do."""
    for item in items:
        if type(item) is not dict or type(item.get("index")) is not int:
            return False
    return bool(items)


def has_pieces(value: Any, pieces: Pieces) -> bool:
    """Whether a list in *value* is among *pieces*, and has any."""
    if type(value) is list:
        return bool(value) and (pieces is JOIN or any(has_pieces(item, pieces) for item in value))
    if type(value) is not dict:
        return False
    if pieces is JOIN:
        return any(has_pieces(item, JOIN) for item in value.values())
    return any(key in value and has_pieces(value[key], table) for key, table in pieces.items())


def copy_json(value: Any) -> Any:
    """*value* with its own dicts and lists, so that adding to it does not change where it came from."""
    kind = type(value)
    if kind is dict:  # most of what it holds is no container: a call for each would take most of the time
        return {key: copy_json(item) if type(item) in _CONTAINERS else item for key, item in value.items()}
    if kind is list:
        return [copy_json(item) if type(item) in _CONTAINERS else item for item in value]
    return value


def same_json(left: Any, right: Any) -> bool:
    """Whether two JSON values are equal; unlike ``==``, ``true`` is not 1 and 1 is not 1.0."""
    if type(left) is not type(right):
        return False
    if type(left) is dict:
        return left.keys() == right.keys() and all(same_json(left[k], right[k]) for k in left)
    if type(left) is list:
        return len(left) == len(right) and all(map(same_json, left, right))
    return bool(left == right)
