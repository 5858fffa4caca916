"""The problems of a document, out of the errors that cattrs raises."""

from __future__ import annotations

from typing import Any, Final

from cattrs.errors import (
    AttributeValidationNote,
    BaseValidationError,
    ForbiddenExtraKeysError,
    IterableValidationNote,
)

from crosswalk.codec.layout import key_of
from crosswalk.codec.problems import MissingKey, Problem, Refused, TooDeep, step

__all__ = ["problems_in"]


def problems_in(error: Exception) -> list[Problem]:
    """Return every problem that cattrs found, in the order of the fields, with its path from the root of the document."""
    problems: list[Problem] = []
    # A loop and no recursion: a document may be nested as deep as Python's stack.
    remaining: list[tuple[Exception, type, str]] = [(error, object, "")]
    while remaining:
        found, cls, at = remaining.pop()
        if isinstance(found, BaseValidationError):
            remaining += [
                (inner, found.cl, at + _step_of(inner, found.cl)) for inner in reversed(found.exceptions)
            ]
        elif isinstance(found, ForbiddenExtraKeysError):
            problems += [Problem("unknown key", at=at + step(key)) for key in sorted(found.extra_fields)]
        elif isinstance(found, RecursionError):
            return [TooDeep()]
        elif isinstance(found, Problem):
            found.at = at + found.at
            problems.append(found)
        elif isinstance(found, KeyError) and _note_of(found) is not None:
            problems.append(MissingKey("a required key is missing", at=at))
        else:
            problems.append(Refused(cls, found, at))
    return problems


def _note_of(error: BaseException) -> AttributeValidationNote | IterableValidationNote | None:
    """The field or index that cattrs noted when it caught *error*."""
    notes = (note for note in getattr(error, "__notes__", ()) if isinstance(note, _NOTES))
    return next(notes, None)


def _step_of(error: BaseException, cls: Any) -> str:
    note = _note_of(error)
    if note is None:
        return ""
    return step(key_of(cls, note.name) if isinstance(note, AttributeValidationNote) else note.index)


_NOTES: Final = (AttributeValidationNote, IterableValidationNote)
