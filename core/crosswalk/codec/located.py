"""The problems of a document, out of the errors that cattrs raises."""

from __future__ import annotations

from typing import Any

from cattrs.errors import (
    AttributeValidationNote,
    BaseValidationError,
    ForbiddenExtraKeysError,
    IterableValidationNote,
)

from crosswalk.codec.layout import key_of
from crosswalk.codec.problems import MissingKey, Problem, Refused, TooDeep, step
from crosswalk.errors import CanonicalJSONError


def problems_in(error: Exception) -> list[Problem]:
    """Return every problem that cattrs found, in the order of the fields, with its path from the root of the document."""
    problems: list[Problem] = []
    # A loop and no recursion: a document may be nested as deep as Python's stack.
    remaining: list[tuple[Exception, type, str, str]] = [(error, object, "", "")]
    while remaining:
        result, cls, at, last = remaining.pop()
        at += last
        if isinstance(result, BaseValidationError):
            remaining += [(e, result.cl, at, _step_to(e, result.cl)) for e in reversed(result.exceptions)]
        elif isinstance(result, ForbiddenExtraKeysError):
            problems += [Problem("unknown key", at=at + step(key)) for key in sorted(result.extra_fields)]
        elif isinstance(result, RecursionError):
            return [TooDeep()]
        elif isinstance(result, CanonicalJSONError):  # of a converter that was taught canonical types
            inner = (text.rpartition(" @ $") for text in result.problems)
            problems += [Problem(text, at=at + path) for text, _, path in inner]
        elif isinstance(result, Problem):
            problems.append(result.under(at))
        elif isinstance(result, KeyError) and last:
            problems.append(MissingKey("a required key is missing", at=at))
        else:
            problems.append(Refused(cls, result, at))
    return problems


def _step_to(error: BaseException, cls: Any) -> str:
    """The step to the field or item that cattrs noted when it caught *error*, or empty where it noted none."""
    for note in getattr(error, "__notes__", ()):
        if isinstance(note, AttributeValidationNote):
            return step(key_of(cls, note.name))
        if isinstance(note, IterableValidationNote):
            return step(note.index)
    return ""
