"""The reasons of a type that refused a value."""

from __future__ import annotations

import re
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

_VALIDATOR: Final = re.compile(r"\bvalidator (?:for |with )?", re.IGNORECASE)
"""The words of a validator's ``repr`` that say nothing about its rule."""
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
    """Return the rules by which a class refused its values. Its own words may quote them, so they are left out.

    An error of ours quotes nothing, nor does one that a user derives from it.
    """
    errors = getattr(problem.cause, "errors", None)
    code = ReasonCode.INVARIANT_VIOLATION
    if callable(errors):  # pydantic's
        for one in errors(include_input=False, include_url=False):
            context = one.get("ctx", {})
            trace = getattr(context.get("error"), "__traceback__", None)
            rule = one["type"] if trace is None else trace.tb_frame.f_code.co_name  # of a validator, its name
            bounds = [f" {name} {each}" for name, each in context.items() if type(each) in (int, float)]
            at = path + "".join(map(step, one["loc"]))
            yield Violation(f"must keep the rule {rule}{''.join(bounds)}", at, code)
        return
    if isinstance(problem.cause, CrosswalkError):  # its words quote nothing
        yield Violation(clean_message(str(problem.cause), 200), path, code)
        return
    field, rule = _refused_field(problem.cause)
    is_placed = any(isinstance(each, attrs.Attribute) for each in problem.cause.args)
    at = path if field is None or is_placed else path + step(field.alias or field.name)
    yield Violation(
        rule or f"refused by {problem.cls.__name__} with {type(problem.cause).__name__}", at, code
    )


def _refused_field(error: BaseException) -> tuple[attrs.Attribute[Any] | None, str]:
    """Return the field that an attrs validator was given and refused, and the rule if the validator is one of attrs."""
    trace, field, validator = error.__traceback__, None, None
    while trace is not None:
        values = trace.tb_frame.f_locals
        if result := next((value for value in values.values() if isinstance(value, attrs.Attribute)), None):
            field, validator = result, values.get("self")
        trace = trace.tb_next
    if not type(validator).__module__.startswith(("attr.", "attrs.")):
        return field, ""
    rule = _VALIDATOR.sub("", repr(validator).strip("<>"))
    return field, "must keep the rule " + clean_message(rule, 200)
