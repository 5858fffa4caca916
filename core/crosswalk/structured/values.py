"""Values of any type out of decoded JSON that has been checked, and JSON of them again."""

from __future__ import annotations

import dataclasses
import functools
import typing
from collections.abc import Callable, Iterator
from datetime import datetime, time
from decimal import Decimal
from typing import Any, Final

import attrs
import orjson
from cattrs import BaseConverter
from cattrs.cols import is_namedtuple, namedtuple_dict_structure_factory
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from crosswalk.codec.converters import CanonicalConverter, converter
from crosswalk.codec.layout import union_members
from crosswalk.codec.located import problems_in
from crosswalk.codec.problems import MissingKey, Refused, UnknownKey, step
from crosswalk.errors import CrosswalkError
from crosswalk.schemas.check import ExactFloat, Report, compile_schema, read_datetime
from crosswalk.schemas.fields import fields_of, is_pydantic
from crosswalk.schemas.json_schema import schema_of
from crosswalk.structured.reason import ReasonCode
from crosswalk.structured.result import Violation
from crosswalk.text import clean_message
from crosswalk.types.json import dump_json

__all__ = ["answer_converter", "value_to_json", "violations_of"]


@functools.cache
def answer_converter() -> CanonicalConverter:
    """The converter of canonical JSON, which also reads what answers have beside: exact decimals, times with their offset.

    What it takes has been checked against the JSON Schema of its type.
    """
    made = converter()
    made.register_structure_hook(Decimal, lambda value, _: _decimal(value))
    made.register_structure_hook(datetime, lambda value, _: read_datetime(value))
    made.register_structure_hook(time, lambda value, _: time.fromisoformat(value))
    made.register_unstructure_hook(time, time.isoformat)
    made.register_structure_hook_factory(is_namedtuple, namedtuple_dict_structure_factory)
    made.register_structure_hook_factory(typing.is_typeddict, _typed_dict)
    made.register_structure_hook_factory(_is_open_union, _union)
    made.register_unstructure_hook_func(is_namedtuple, lambda value: made.unstructure(value._asdict()))
    made.register_structure_hook_func(is_pydantic, lambda value, model: model.model_validate(value))
    made.register_unstructure_hook_func(
        is_pydantic, lambda value: value.model_dump(mode="json", by_alias=True)
    )
    made.register_structure_hook_factory(_has_aliases, functools.partial(_aliased, make_dict_structure_fn))
    made.register_unstructure_hook_factory(
        _has_aliases, functools.partial(_aliased, make_dict_unstructure_fn)
    )
    return made


def _decimal(value: Any) -> Decimal:
    return Decimal(value.text if type(value) is ExactFloat else str(value))


def _typed_dict(cls: Any, made: BaseConverter) -> Callable[[Any, Any], Any]:
    """A hook of our own, as cattrs does not see ``NotRequired`` in annotations that are texts."""
    kinds = {field.key: field.kind for field in fields_of(cls)}
    return lambda value, _: {
        key: made.structure(value[key], kind) for key, kind in kinds.items() if key in value
    }


def _is_open_union(kind: Any) -> bool:
    return sum(member is not type(None) for member in union_members(kind)) > 1


def _union(kind: Any, made: BaseConverter) -> Callable[[Any, Any], Any]:
    """A hook that takes the member that the check of the whole answer took."""
    members = union_members(kind)
    checks = [compile_schema(schema_of(member)[0]) for member in members]

    def read(value: Any, _: Any) -> Any:
        reports = [Report() for _ in members]
        for check, report in zip(checks, reports, strict=True):
            check(value, "$", report)
        nearest = min(
            range(len(members)), key=lambda at: (len(reports[at].violations), reports[at].distance())
        )
        return made.structure(value, members[nearest])

    return read


def _all_fields(cls: Any) -> Any:
    return (
        attrs.fields(cls)
        if attrs.has(cls)
        else dataclasses.fields(cls)
        if dataclasses.is_dataclass(cls)
        else ()
    )


def _has_aliases(cls: Any) -> bool:
    return isinstance(cls, type) and any("alias" in field.metadata for field in _all_fields(cls))


def _aliased(make: Callable[..., Any], cls: Any, made: Any) -> Any:
    """A hook for a class with keys that are no identifiers."""
    names = {field.name: field.metadata.get("alias") for field in _all_fields(cls)}
    return make(
        cls,
        made,
        _cattrs_use_alias=True,
        **{name: override(rename=key) for name, key in names.items() if key},
    )


def value_to_json(value: Any, *, indent: bool = False) -> bytes:
    """The JSON of a value that a parser gave: its type reads it back as the same value.

    Args:
        value: of a type that can be a schema.
        indent: break and indent it.

    Raises:
        TypeError: it holds what JSON cannot tell; a parsed value does so only where its class put it there.
    """
    plain = answer_converter().unstructure(value)
    return dump_json(plain, default=_plain, option=orjson.OPT_INDENT_2 if indent else 0)


def _plain(value: Any) -> Any:
    """What stands for a value in a field of any type."""
    plain = answer_converter().unstructure(value)
    if plain is value:
        raise TypeError(f"{type(value).__name__} has no JSON")
    return plain


# ------------------------------------------------------------------------------------- what is wrong

_CODES: Final = {
    MissingKey: ReasonCode.SCHEMA_MISSING_FIELD,
    UnknownKey: ReasonCode.SCHEMA_UNKNOWN_FIELD,
    Refused: ReasonCode.INVARIANT_VIOLATION,
}


def violations_of(error: Exception) -> Iterator[Violation]:
    """What making a value raised, place by place, without a value of the document."""
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
    """What a class said when it refused its values; its own words may quote them, an error of ours never does."""
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
    """The field that an attrs validator refused: the validator was given it."""
    trace, found = error.__traceback__, None
    while trace is not None:
        values = trace.tb_frame.f_locals.values()
        found = next((value for value in values if isinstance(value, attrs.Attribute)), found)
        trace = trace.tb_next
    return found


def _rule_of(validator: Any) -> str | None:
    """The rule of one of attrs' own validators, as its ``repr`` says it."""
    if not type(validator).__module__.startswith(("attr.", "attrs.")):
        return None
    return "must keep the rule " + clean_message(repr(validator).strip("<>"), 200)
