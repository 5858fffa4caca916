"""What is left of an event once the typed fields have taken their part (design, section 5)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, TypeAlias

from crosswalk.plugin.state import MappingState
from crosswalk.types.merge import Places, copy_json, is_indexed

__all__ = ["KEY", "TAKEN", "Consumed", "ResidueMemory", "residue", "same_json", "taken_if"]

Test: TypeAlias = Callable[[Any, dict[str, Any], MappingState], bool]
Consumed: TypeAlias = Any
"""A table of what the typed fields take, in the shape of the payload: an object is a dict, ``[table]`` an array whose
items look like *table*, a leaf is :data:`TAKEN`, :data:`KEY` or a test made by :func:`taken_if`."""


class _Mark:
    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


TAKEN: Final = _Mark("TAKEN")
"""A typed field holds this value, whatever it is."""
KEY: Final = _Mark("KEY")
"""Like ``TAKEN``, but kept while anything else of its object is left, to say which item it belongs to."""


class _TakenIf:
    __slots__ = ("table", "test")

    def __init__(self, test: Test, table: Consumed) -> None:
        self.test = test
        self.table = table


def taken_if(test: Test, table: Consumed = TAKEN) -> _TakenIf:
    """A typed field holds this value, or what *table* says of it, exactly if ``test(value, parent, state)``."""
    return _TakenIf(test, table)


def residue(event: dict[str, Any], consumed: Consumed, state: MappingState) -> dict[str, Any]:
    """*event* less what *consumed* says the typed fields took, in its own structure.

    An object or array of which nothing is left goes; in an array of which something is left, an
    item that was taken whole stays as ``{}``, so that the others keep their place.
    """
    left: dict[str, Any] = {}
    keys: dict[str, Any] = {}
    for name, value in event.items():
        rule = consumed.get(name)
        if type(rule) is _TakenIf:
            rule = rule.table if rule.test(value, event, state) else None
        if rule is None:
            left[name] = value
        elif rule is TAKEN:
            continue
        elif rule is KEY:
            keys[name] = value
        elif value is None:
            continue  # nothing where something might have been: the typed field says the same
        elif type(rule) is dict and type(value) is dict:
            rest = residue(value, rule, state)
            if rest:
                left[name] = rest
        elif type(rule) is list and type(value) is list:
            rest_of_items = _residue_of_items(value, rule[0], state)
            if rest_of_items:
                left[name] = rest_of_items
        else:
            left[name] = value
    return {**keys, **left} if left and keys else left


def _residue_of_items(items: list[Any], rule: Consumed, state: MappingState) -> list[Any]:
    rests = [residue(item, rule, state) if type(item) is dict else item for item in items]
    if not any(rest != {} for rest in rests):
        return []
    if any(mark is KEY for mark in rule.values()):
        return [rest for rest in rests if rest != {}]
    return rests


class ResidueMemory:
    """Remembers a stream's extensions, so that each delta carries only what is new or changed.

    Equal values come once, also when the provider repeats them in every chunk. Of a list that grows, the new
    items come; a list among *pieces* always comes, because its next piece may equal the last one.

    Args:
        pieces: such as ``choices[].token_ids``.
    """

    def __init__(self, pieces: tuple[str, ...] = ()) -> None:
        self._last: dict[str, Any] = {}
        self._is_own = False
        self._pieces = _table_of(pieces)
        self._places = Places()

    @property
    def last(self) -> dict[str, Any]:
        """What was said last, of everything that was said."""
        if not self._is_own:
            # Copied only when a second event comes: a body is the first and the last one, and may be long.
            self._last, self._is_own = copy_json(self._last), True
        return self._last

    def news(self, rest: dict[str, Any]) -> dict[str, Any]:
        """What *rest* says that was not said before; it is remembered."""
        if not self._last:
            self._last, self._is_own = rest, False  # the delta has it too
            return rest
        return _news(self.last, rest, self._pieces, self._places)


@lru_cache(maxsize=64)
def _table_of(pieces: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for piece in pieces:
        table = found
        *parents, leaf = piece.replace("[]", "").split(".")
        for name in parents:
            table = table.setdefault(name, {})
        table[leaf] = True
    return found


def _news(
    last: dict[str, Any], rest: dict[str, Any], pieces: dict[str, Any], places: Places
) -> dict[str, Any]:
    new: dict[str, Any] = {}
    for name, value in rest.items():
        pieces_below = pieces.get(name)
        if name not in last:
            new[name] = value
            last[name] = copy_json(value)
        elif type(value) is dict and type(last[name]) is dict:
            changed = _news(last[name], value, pieces_below if type(pieces_below) is dict else {}, places)
            if changed:
                new[name] = changed
        elif type(value) is list and type(last[name]) is list:
            changed_items = _news_of_items(last[name], value, pieces_below, places)
            if changed_items:
                new[name] = changed_items
        elif not same_json(last[name], value):
            new[name] = value
            last[name] = copy_json(value)
    return new


def _news_of_items(last: list[Any], items: list[Any], pieces: Any, places: Places) -> list[Any]:
    if pieces is True:
        last[:] = items
        return items
    if is_indexed(items):
        known = places.of(last)
        if known is not None:
            return _news_of_indexed(last, known, items, pieces or {}, places)
    if same_json(last, items):
        return []
    new = items[len(last) :] if len(items) > len(last) and same_json(last, items[: len(last)]) else items
    last[:] = copy_json(items)
    places.forget(last)
    return new


def _news_of_indexed(
    last: list[Any], known: dict[int, Any], items: list[Any], pieces: dict[str, Any], places: Places
) -> list[Any]:
    changed = []
    for item in items:
        old = known.get(item["index"])
        if old is None:
            known[item["index"]] = fresh = copy_json(item)
            last.append(fresh)
            changed.append(item)
        else:
            news = _news(old, item, pieces, places)
            if news:
                changed.append({"index": item["index"], **news})
    return changed


def same_json(left: Any, right: Any) -> bool:
    """Whether two JSON values are equal; unlike ``==``, ``true`` is not 1 and 1 is not 1.0."""
    if type(left) is not type(right):
        return False
    if type(left) is dict:
        return left.keys() == right.keys() and all(same_json(left[k], right[k]) for k in left)
    if type(left) is list:
        return len(left) == len(right) and all(map(same_json, left, right))
    return bool(left == right)
