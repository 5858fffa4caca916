"""The problems of a document, as ``problem @ $.path``."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Sequence
from types import UnionType
from typing import Any

import attrs

from crosswalk.errors import CanonicalJSONError
from crosswalk.text import json_type_name

_LONGEST_QUOTE = 40


class Problem(ValueError):
    """One problem of a value.

    Attributes:
        at: the path from that value to the problem: ``.format_version``, or ``""`` for the value itself.
    """

    def __init__(self, text: str, *, at: str = "") -> None:
        super().__init__(text)
        self.at = at

    @classmethod
    def wrong_type(cls, expected: str, value: object, *, at: str = "") -> Problem:
        """The type of *value* is not the *expected* one."""
        return cls(f"expected {expected}, got {json_type_name(value)}", at=at)

    @classmethod
    def unknown(cls, what: str, got: object, known: Iterable[str], *, at: str = "") -> Problem:
        """Return the problem that *got* is not one of the *known* words."""
        if type(got) is not str:
            return cls.wrong_type("string", got, at=at)
        return cls(f"unknown {what} {shortened(got)!r}, expected {' or '.join(known)}", at=at)

    def under(self, place: str) -> Problem:
        """The same, seen from outside: *place* leads to the value."""
        self.at = place + self.at
        return self


class MissingKey(Problem):
    """A required key is missing."""


class TooDeep(Problem):
    """The document is nested deeper than Python's stack."""

    def __init__(self) -> None:
        super().__init__("nested too deeply")


class Refused(Problem):
    """A class refused its fields: a validator, a converter or its ``__attrs_post_init__`` raised.

    Attributes:
        cls: the class.
        cause: what it raised.
    """

    def __init__(self, cls: type, cause: Exception, at: str) -> None:
        field = next((each for each in cause.args if isinstance(each, attrs.Attribute)), None)
        super().__init__("refused", at=at if field is None else at + step(field.alias or field.name))
        self.cls = cls
        self.cause = cause

    def __str__(self) -> str:
        return str(self.cause)


def shortened(text: str) -> str:
    """Return the part of *text* that a message may quote."""
    return text if len(text) <= _LONGEST_QUOTE else f"{text[: _LONGEST_QUOTE - 1]}…"


def step(key: object) -> str:
    """The part of a path that leads to *key*: ``.name``, ``[3]``, or ``['any other key']``."""
    if isinstance(key, int):
        return f"[{key}]"
    text = str(key)
    if text.isidentifier() and len(text) <= _LONGEST_QUOTE:
        return f".{text}"
    return f"[{shortened(text)!r}]"


def cannot(do: str, what: Any, problems: Sequence[str]) -> CanonicalJSONError:
    """Return the error that names why *what* cannot be read or written: the first problem, and the number of others."""
    item = typing.get_args(what)
    if typing.get_origin(what) in (typing.Union, UnionType):
        name = "a union"
    else:
        name = f"{what.__name__}[{item[0].__name__}]" if item else what.__name__
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return CanonicalJSONError(f"cannot {do} {name}: {problems[0]}{more}", problems=problems)
