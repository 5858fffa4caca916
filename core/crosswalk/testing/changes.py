"""The differences as ``crosswalk diff`` shows them: one per line, and all of a kind in one line.

A text that a model or a user may have written is never shown as a whole, only a piece of it and its length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Set
from itertools import product
from typing import Any, Final, TypeAlias

import attrs
import orjson

from crosswalk.codec import ABSENT, Difference, differences, from_json
from crosswalk.text import counted, json_type_name
from crosswalk.types.response import ChatResponse

ERROR: Final = "error"
"""The key of the difference between an answer that can be mapped and one that cannot."""

_WORD_KEYS: Final = {
    *("id", "name", "created", "model", "model_id", "provider_id", "provider_name"),
    *("type", "kind", "role", "finish_reason", "raw_finish_reason", "outcome"),
    *("category", "severity", "level"),
}
"""The keys with words and names as values, not text that a person wrote."""
_LONGEST_WORD: Final = 40
_LONGEST_ERROR: Final = 160
_LONGEST_PIECE: Final = 24
_MOST_KEYS: Final = 4
_MOST_VALUES: Final = 4
_MOST_FIELDS: Final = 1000
_MOST_EXAMPLES: Final = 3


def changes_between(before: Any, after: Any) -> list[Difference]:
    """Return the differences between two snapshots: of their responses, or in the error and its partial response.

    If only the deltas differ, that is the difference.
    """
    errors = [(one.get("error"), one.get("message")) for one in (before, after)]
    changes = [Difference((ERROR,), _error_of(before), _error_of(after))] if errors[0] != errors[1] else []
    old, new = (one.get("response", one.get("partial")) for one in (before, after))
    if old is not None and new is not None:
        changes += differences(*(from_json(orjson.dumps(one), ChatResponse) for one in (old, new)))
    if not changes and before.get("deltas") != after.get("deltas"):
        changes = [Difference(("deltas",), before.get("deltas", ABSENT), after.get("deltas", ABSENT))]
    return changes


def _error_of(snapshot: Any) -> Any:
    return f"{snapshot['error']}: {snapshot['message']}" if "error" in snapshot else ABSENT


def shown(difference: Difference) -> tuple[str, str]:
    """Return the two values of *difference*, each short enough for a line."""
    before, after = difference.before, difference.after
    start = 0
    if isinstance(before, str) and isinstance(after, str):
        start = max(_common(before, after) - _LONGEST_PIECE // 3, 0)
    return _shown(difference, before, start), _shown(difference, after, start)


def _common(one: str, other: str) -> int:
    """Return the number of characters that two texts have in common at their start."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((number for number, (a, b) in pairs if a != b), min(len(one), len(other)))


def _shown(difference: Difference, value: Any, start: int) -> str:
    if value is ABSENT:
        return "absent"
    if isinstance(value, list):
        return counted(len(value), "item")
    if isinstance(value, dict):
        keys = [_cut(key, _LONGEST_WORD) for key in list(value)[:_MOST_KEYS]]
        return f"{{{', '.join(keys)}{', …' if len(value) > _MOST_KEYS else ''}}}"
    if not isinstance(value, str):
        return orjson.dumps(value).decode()
    if _is_error(difference):
        return _cut(value, _LONGEST_ERROR)
    if _is_word(difference):
        return _quoted(_cut(value, _LONGEST_WORD))
    # Never more than half of it, even if it is short.
    end = start + min(_LONGEST_PIECE, len(value) // 2)
    piece = f"{'…' if start else ''}{value[start:end]}{'…' if end < len(value) else ''}"
    return f"{_quoted(piece)} ({counted(len(value), 'character')})"


def _is_error(difference: Difference) -> bool:
    return difference.path == (ERROR,)


def _is_word(difference: Difference) -> bool:
    if difference.path[:2] == ("metadata", "provenance"):
        return True
    return difference.path[-1] in _WORD_KEYS and "extensions" not in difference.path


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _quoted(text: str) -> str:
    return f'"{text}"'


_Values: TypeAlias = tuple[str, str]
_Key: TypeAlias = tuple[str, str, str, str, bool]


@attrs.frozen
class ChangeKind:
    """Changes of one kind. For a field that has moved, ``before`` is ``moved`` and ``after`` the new field.

    Attributes:
        path: the field, with ``[]`` for every item of an array.
        before: its older value, or a description of all older ones.
        after: the same for the newer one.
        captures: the number of captures with it.
        provider: the provider of the answers, or empty if unknown.
        examples: the places of the first ones.
        is_accepted: whether a list of accepted changes contains all of them.
    """

    path: str
    before: str
    after: str
    captures: int
    provider: str = ""
    examples: tuple[str, ...] = ()
    is_accepted: bool = False

    def __str__(self) -> str:
        captures_text = counted(self.captures, "capture")
        another = "another " if self.before == self.after else ""
        accepted_note = "; accepted" if self.is_accepted else ""
        provider_note = f" of {self.provider}" if self.provider else ""
        return f"{self.path}: {self.before} -> {another}{self.after} in {captures_text}{provider_note}{accepted_note}"


def accepted_lines(kinds: Iterable[ChangeKind]) -> Iterator[bytes]:
    """Write *kinds* as the lines of a list that ``crosswalk diff --accept`` takes, in the order of their fields."""
    for kind in sorted(kinds, key=lambda kind: (kind.provider, kind.path, kind.before, kind.after)):
        identity = {"provider": kind.provider, "path": kind.path, "before": kind.before, "after": kind.after}
        other_fields = {"captures": kind.captures, "examples": list(kind.examples)}
        yield orjson.dumps(identity | other_fields, option=orjson.OPT_APPEND_NEWLINE)


class ChangeSummary:
    """Counts differences by kind. It stores kinds, not captures, so it stays small.

    A kind is a field with its older and newer value, in the answers of one provider. For numbers and words that take
    many values, and for all texts, only the types tell kinds apart.

    Args:
        accepted: the changes that are accepted: provider, path, before and after of each.

    Attributes:
        accepted: the same.
    """

    def __init__(self, accepted: Set[tuple[str, str, str, str]] = frozenset()) -> None:
        self.accepted = accepted
        self._gatherings: dict[_Key, _Gathering] = {}
        self._further_count = 0

    def add(self, differences: Iterable[Difference], provider: str = "", place: str = "") -> bool:
        """Count the differences of one capture. Return whether all of them are accepted.

        Args:
            differences: the differences of the capture.
            provider: the provider of the answer.
            place: the place of the capture.
        """
        pairs_by_key: dict[_Key, set[_Values]] = {}
        moves, other_differences = _moves(list(differences))
        for before, after in moves:
            pair = ("moved", after)
            key = (provider, before, *pair, (provider, before, *pair) in self.accepted)
            pairs_by_key.setdefault(key, set()).add(pair)
        for difference in other_differences:
            types = _types(difference)
            pair = _summarized(difference, types)
            key = (provider, difference.field, *types, self._accepts(provider, difference.field, types, pair))
            pairs_by_key.setdefault(key, set()).add(pair)
        further_count = 0
        for key, pairs in pairs_by_key.items():
            if key not in self._gatherings and len(self._gatherings) >= _MOST_FIELDS:
                further_count = 1
            else:
                self._gatherings.setdefault(key, _Gathering()).add(pairs, place)
        self._further_count += further_count
        return all(is_accepted for *_, is_accepted in pairs_by_key)

    def include(self, other: ChangeSummary) -> None:
        """Add the counts of *other*, which come after those of this summary."""
        for key, gathering in other._gatherings.items():
            self._gatherings.setdefault(key, _Gathering()).include(gathering)
        self._further_count += other._further_count

    def kinds(self) -> list[ChangeKind]:
        """Return every kind of change, the most frequent first."""
        kinds = [kind for key, gathering in self._gatherings.items() for kind in gathering.kinds(*key)]
        kinds.sort(key=lambda kind: -kind.captures)
        if self._further_count:
            kinds.append(ChangeKind("further fields", "a value", "another", self._further_count))
        return kinds

    def _accepts(self, provider: str, field: str, types: tuple[str, str], pair: _Values) -> bool:
        sides = product({types[0], pair[0]}, {types[1], pair[1]})
        return any((provider, field, before, after) in self.accepted for before, after in sides)


def _moves(differences: list[Difference]) -> tuple[list[tuple[str, str]], list[Difference]]:
    """Return the fields that have moved, each as the old and the new field, and the remaining differences.

    A field has moved if it is gone, and one other field has appeared with the same value.
    """
    gone_differences = [one for one in differences if one.after is ABSENT and one.path[:1] != (ERROR,)]
    new_fields: dict[bytes, list[tuple[str, Difference]]] = {}
    for one in differences:
        for path, value in _leaves(one.path, one.after) if one.before is ABSENT else ():
            field = attrs.evolve(one, path=path).field
            new_fields.setdefault(orjson.dumps(value), []).append((field, one))
    moves, used_differences = [], []
    for one in gone_differences:
        matches = new_fields.get(orjson.dumps(one.before), [])
        if len(matches) == 1 and not isinstance(one.before, bool | None):
            field, other_difference = matches[0]
            moves.append((one.field, field))
            used_differences += [one, other_difference]
    remaining = [
        one
        for one in differences
        if not any(one is other_difference for other_difference in used_differences)
    ]
    return moves, remaining


def _leaves(path: tuple[str | int, ...], value: Any) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield the scalars and lists in *value*, which is at *path*."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves((*path, key), item)
    else:
        yield path, value


def _types(difference: Difference) -> tuple[str, str]:
    """Return the types of both values. For two numbers they also say which one is higher."""
    before, after = difference.before, difference.after
    numbers = (int, float)
    if type(before) in numbers and type(after) in numbers and before != after:
        return "number", "a higher number" if after > before else "a lower number"
    return _type(difference, before), _type(difference, after)


def _type(difference: Difference, value: Any) -> str:
    if value is ABSENT:
        return "absent"
    return "text" if _is_content(difference, value) else str(json_type_name(value))


def _is_content(difference: Difference, value: Any) -> bool:
    return isinstance(value, str) and not _is_error(difference) and not _is_word(difference)


def _summarized(difference: Difference, types: tuple[str, str]) -> _Values:
    """Return the part that tells *difference* from others of its field and types."""
    if _is_error(difference):
        before, after = difference.before, difference.after
        return _error_name(before), _error_name(after)
    before, after = shown(difference)
    return types[0] if types[0] == "text" else before, types[1] if types[1] == "text" else after


def _error_name(value: Any) -> str:
    return "absent" if value is ABSENT else str(value).partition(":")[0]


@attrs.define
class _Gathering:
    """The differences of one field and two types: by value, until there are too many."""

    captures: int = 0
    values: Counter[_Values] | None = attrs.field(factory=Counter)
    places: dict[_Values | None, list[str]] = attrs.field(factory=dict)

    def add(self, pairs: set[_Values], place: str) -> None:
        self.captures += 1
        for pair in (None, *sorted(pairs)):
            self._show(pair, [place])
        if self.values is not None:
            self.values.update(pairs)
            self._forget()

    def include(self, other: _Gathering) -> None:
        self.captures += other.captures
        for pair, places in other.places.items():
            self._show(pair, places)
        self.values = (
            None if self.values is None or other.values is None else Counter(self.values + other.values)
        )
        self._forget()

    def _show(self, pair: _Values | None, places: list[str]) -> None:
        shown_places = self.places.setdefault(pair, [])
        shown_places += [place for place in places if place][: _MOST_EXAMPLES - len(shown_places)]

    def _forget(self) -> None:
        """Keep only the types if there are too many values."""
        if self.values is None or len(self.values) > _MOST_VALUES:
            self.values = None
            self.places = {None: self.places.get(None, [])}

    def kinds(
        self, provider: str, path: str, before: str, after: str, is_accepted: bool
    ) -> Iterator[ChangeKind]:
        counts = {(before, after): self.captures} if self.values is None else self.values
        for pair, captures in counts.items():
            places = self.places[None if self.values is None else pair]
            yield ChangeKind(path, *pair, captures, provider, tuple(places), is_accepted)
