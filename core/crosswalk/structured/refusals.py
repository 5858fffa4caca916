"""The reasons of a type that refused a value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs

from crosswalk.codec.located import problems_in
from crosswalk.codec.problems import MissingKey, Refused, step
from crosswalk.errors import CrosswalkError
from crosswalk.structured.reason import ReasonCode
from crosswalk.structured.result import Violation
from crosswalk.text import clean_message

__all__ = ["violations_of"]

_CODES: Final = {
    MissingKey: ReasonCode.SCHEMA_MISSING_FIELD,
    Refused: ReasonCode.INVARIANT_VIOLATION,
}


def violations_of(error: Exception) -> Iterator[Violation]:
    """Return the errors that making a value raised, path by path, without a value of the document."""
    if isinstance(error, RecursionError):
        yield Violation("nested too deeply", "$", ReasonCode.LIMIT_EXCEEDED)
        return
    for problem in problems_in(error):
        path = f"${problem.at}"
        if not isinstance(problem, Refused):
            is_deep = str(problem) == "nested too deeply"
            code = ReasonCode.LIMIT_EXCEEDED if is_deep else ReasonCode.SCHEMA_TYPE_ERROR
            yield Violation(str(problem), path, _CODES.get(type(problem), code))
        else:
            yield from _refusals(problem, path)


def _refusals(problem: Refused, path: str) -> Iterator[Violation]:
    """Return the reasons of a class that refused its values. Its own words may quote them, an error of ours never does."""
    errors = getattr(problem.cause, "errors", None)
    code = ReasonCode.INVARIANT_VIOLATION
    if callable(errors):  # pydantic's
        for one in errors(include_input=False, include_url=False, include_context=False):
            yield Violation(one["msg"], path + "".join(map(step, one["loc"])), code)
    elif isinstance(problem.cause, CrosswalkError):
        yield Violation(clean_message(str(problem.cause), 200), path, code)
    else:
        field = _refused_field(problem.cause)
        is_placed = any(isinstance(each, attrs.Attribute) for each in problem.cause.args)
        at = path if field is None or is_placed else path + step(field.alias or field.name)
        rule = None if field is None else _rule_of(field.validator)
        yield Violation(
            rule or f"refused by {problem.cls.__name__} with {type(problem.cause).__name__}", at, code
        )


def _refused_field(error: BaseException) -> attrs.Attribute[Any] | None:
    """Return the field that an attrs validator refused: the validator was given it."""
    trace, found = error.__traceback__, None
    while trace is not None:
        values = trace.tb_frame.f_locals.values()
        found = next((value for value in values if isinstance(value, attrs.Attribute)), found)
        trace = trace.tb_next
    return found


def _rule_of(validator: Any) -> str | None:
    """Return the rule of one of attrs' own validators, from its ``repr``."""
    if not type(validator).__module__.startswith(("attr.", "attrs.")):
        return None
    return "must keep the rule " + clean_message(repr(validator).strip("<>"), 200)
