"""What is wrong with a document, said as ``problem @ $.path`` without quoting its content."""

from __future__ import annotations

import typing
from collections.abc import Sequence

from crosswalk.errors import CanonicalJSONError
from crosswalk.text import json_type_name

__all__ = ["Problem", "cannot", "collected", "shortened", "step"]

_LONGEST_QUOTE = 40


class Problem(ValueError):
    """One thing wrong with a value; never leaves the library, which adds the place and collects them.

    Attributes:
        at: where inside the value, as the rest of a path: ``.format_version``; ``""`` for the value itself.
        more: what else is wrong with the same value.
    """

    def __init__(self, text: str, *, at: str = "") -> None:
        super().__init__(text)
        self.at = at
        self.more: list[Problem] = []

    @classmethod
    def wrong_type(cls, expected: str, value: object, *, at: str = "") -> Problem:
        """*value* has another type than the *expected* one."""
        return cls(f"expected {expected}, got {json_type_name(value)}", at=at)

    def under(self, place: str) -> Problem:
        """The same, seen from outside: *place* leads to the value."""
        for each in (self, *self.more):
            each.at = place + each.at
        return self


def collected(first: Problem | None, next_one: Problem) -> Problem:
    """*first* with *next_one* and what is wrong beside it among what :attr:`Problem.more` tells."""
    if first is None:
        return next_one
    first.more += (next_one, *next_one.more)
    return first


def shortened(text: str) -> str:
    """*text* as far as a message may quote it."""
    return text if len(text) <= _LONGEST_QUOTE else f"{text[: _LONGEST_QUOTE - 1]}…"


def step(key: object) -> str:
    """The part of a path that leads to *key*: ``.name``, ``[3]``, or ``['any other key']``."""
    if isinstance(key, int):
        return f"[{key}]"
    text = str(key)
    if text.isidentifier() and len(text) <= _LONGEST_QUOTE:
        return f".{text}"
    return f"[{shortened(text)!r}]"


def cannot(do: str, what: type, problems: Sequence[str]) -> CanonicalJSONError:
    """The error that says why *what* cannot be read or written: the first problem, and how many more."""
    item = typing.get_args(what)
    name = f"{what.__name__}[{item[0].__name__}]" if item else what.__name__
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return CanonicalJSONError(f"cannot {do} {name}: {problems[0]}{more}", problems=problems)
