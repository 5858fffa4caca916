"""What a field of a record may hold: kinds of values, each of which reads, checks and writes.

Records themselves are kinds too, see :mod:`crosswalk.responses.layouts`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final

from crosswalk.codec.problems import Problem, shortened, step
from crosswalk.errors import ResponseValidationError
from crosswalk.responses.records import Record
from crosswalk.types.json import FrozenObject, as_frozen_value, freeze, thaw

__all__ = ["UNKNOWN_WORD", "Array", "Const", "Either", "JSONObject", "Kind", "Leaf", "MapOf", "Mark", "Word"]


class Mark:
    """A value that no field can have."""


UNKNOWN_WORD: Final = Mark()
"""Read where a vocabulary does not have the word and unknown ones are kept."""


class Kind:
    """How one sort of value is read, written and checked; a JSON value as it is, unless a subclass says otherwise."""

    plain: type | None = None
    """The type of JSON value that is taken as it is; ``None`` when each has to be read."""
    json_types: tuple[type, ...] = (str, int, float, bool, list, dict)
    """The types of JSON value that can be one."""

    def read(self, value: Any, keep: bool) -> Any:
        """The value that JSON *value* stands for; *keep* says what to do with an unknown type or word.

        Raises:
            Problem: it stands for none.
        """
        return freeze(value)

    def accept(self, value: Any) -> Any:
        """*value*, given to a constructor, in the form in which it is held.

        Raises:
            Problem: a field of this kind cannot hold it.
        """
        try:
            return as_frozen_value(value)
        except ResponseValidationError as error:
            raise Problem(str(error)) from None

    def write(self, value: Any) -> Any:
        """The JSON value of *value*."""
        return thaw(value)


class JSONObject(Kind):
    """A JSON object of any content."""

    json_types = (dict,)

    def read(self, value: Any, keep: bool) -> Any:
        if type(value) is not dict:
            raise Problem.wrong_type("object", value)
        return FrozenObject.adopt(value)

    def accept(self, value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise Problem.wrong_type("object", value)
        return super().accept(value)


class Leaf(Kind):
    """A string, number or boolean."""

    def __init__(self, leaf: type, word: str) -> None:
        self.leaf = leaf
        self.word = word
        self.plain = None if leaf is float else leaf
        self.json_types = (int, float) if leaf is float else (leaf,)

    def read(self, value: Any, keep: bool) -> Any:
        if type(value) not in self.json_types or (type(value) is float and not math.isfinite(value)):
            raise Problem.wrong_type(self.word, value)
        return value

    def accept(self, value: Any) -> Any:
        return self.read(str(value) if self.leaf is str and isinstance(value, str) else value, False)

    def write(self, value: Any) -> Any:
        return value


class Const(Kind):
    """One of a few fixed strings, such as a discriminator."""

    json_types = (str,)

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words

    def read(self, value: Any, keep: bool) -> Any:
        if value in self.words:
            return value
        if type(value) is not str:
            raise Problem.wrong_type("string", value)
        raise Problem(f"expected {' or '.join(map(repr, self.words))}, got {shortened(value)!r}")

    def accept(self, value: Any) -> Any:
        return self.read(value, False)

    def write(self, value: Any) -> Any:
        return value


class Word(Kind):
    """A word of a closed vocabulary."""

    json_types = (str,)

    def __init__(self, words: type[StrEnum]) -> None:
        self.words = words
        self.members: dict[str, StrEnum] = {member.value: member for member in words}

    def read(self, value: Any, keep: bool) -> Any:
        if type(value) is not str:
            raise Problem.wrong_type("string", value)
        word = self.members.get(value)
        if word is None:
            if keep:
                return UNKNOWN_WORD
            raise Problem(f"unknown {self.words.__name__} {shortened(value)!r}")
        return word

    def accept(self, value: Any) -> Any:
        return value if type(value) is self.words else self.read(value, False)

    def write(self, value: Any) -> Any:
        return value.value


class Array(Kind):
    """An array of one kind of value, held as a tuple."""

    json_types = (list,)

    def __init__(self, item: Kind) -> None:
        self.item = item

    def read(self, value: Any, keep: bool) -> Any:
        if type(value) is not list:
            raise Problem.wrong_type("array", value)
        return _each(value, lambda item: self.item.read(item, keep)) if value else ()

    def accept(self, value: Any) -> Any:
        if not isinstance(value, tuple | list):
            raise Problem(f"expected a tuple, got {type(value).__name__}")
        return _each(value, self.item.accept)

    def write(self, value: Any) -> Any:
        write = self.item.write
        return [write(item) for item in value]


def _each(items: Any, do: Callable[[Any], Any]) -> tuple[Any, ...]:
    done: list[Any] = []
    try:
        for item in items:
            done.append(do(item))
    except Problem as problem:
        problem.at = step(len(done)) + problem.at
        raise
    return tuple(done)


class MapOf(Kind):
    """An object with values of one kind under any keys."""

    json_types = (dict,)

    def __init__(self, item: Kind) -> None:
        self.item = item

    def read(self, value: Any, keep: bool) -> Any:
        if type(value) is not dict:
            raise Problem.wrong_type("object", value)
        return self._each(value, lambda item: self.item.read(item, keep))

    def accept(self, value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise Problem(f"expected a mapping, got {type(value).__name__}")
        if not all(isinstance(key, str) for key in value):
            raise Problem("expected strings as keys")
        return self._each(value, self.item.accept)

    def write(self, value: Any) -> Any:
        return {key: self.item.write(item) for key, item in value.items()}

    @staticmethod
    def _each(items: Mapping[str, Any], do: Callable[[Any], Any]) -> FrozenObject:
        done: dict[str, Any] = {}
        key = ""
        try:
            for key, item in items.items():
                done[key] = do(item)
        except Problem as problem:
            problem.at = step(key) + problem.at
            raise
        return FrozenObject.adopt(done)


class Either(Kind):
    """One of several kinds, told apart by the type of the JSON value."""

    def __init__(self, kinds: list[Kind]) -> None:
        self.kinds = {json_type: kind for kind in kinds for json_type in kind.json_types}
        self.json_types = tuple(self.kinds)

    def _of(self, value: Any, json_type: type) -> Kind:
        kind = self.kinds.get(json_type)
        if kind is None:
            raise Problem.wrong_type(" or ".join(sorted({_JSON_NAMES[known] for known in self.kinds})), value)
        return kind

    def read(self, value: Any, keep: bool) -> Any:
        return self._of(value, type(value)).read(value, keep)

    def accept(self, value: Any) -> Any:
        return self._of(value, _json_type(value)).accept(value)

    def write(self, value: Any) -> Any:
        return self._of(value, _json_type(value)).write(value)


_JSON_NAMES: Final = {
    str: "string", int: "number", float: "number", bool: "boolean", list: "array", dict: "object",
}  # fmt: skip


def _json_type(value: Any) -> type:
    """The type of the JSON value that *value* is written as."""
    if isinstance(value, Record | Mapping):
        return dict
    if isinstance(value, tuple | list):
        return list
    return str if isinstance(value, str) else type(value)
