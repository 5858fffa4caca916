"""The schema of an answer: a type with its invariants, or a JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final, Generic, Literal, TypeVar, cast

import attrs
import orjson

from crosswalk.codec.converters import problems_in
from crosswalk.codec.layout import MissingKey, Refused, step
from crosswalk.errors import CrosswalkError
from crosswalk.schemas.check import compile_schema, folded_key
from crosswalk.schemas.json_schema import schema_of, strict_form
from crosswalk.schemas.metadata import MOST, Check, ExactFloat, Fault, Report
from crosswalk.schemas.typescript import as_typescript
from crosswalk.schemas.values import answer_converter, value_to_json as value_to_json
from crosswalk.structured.decode import TOO_DEEP, Unread
from crosswalk.structured.reason import ReasonCode, SchemaDefinitionError
from crosswalk.structured.result import Candidate, Violation
from crosswalk.text import clean_message
from crosswalk.types.json import plain_view

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


T = TypeVar("T")

_GRAVEST_FIRST: Final = (
    ReasonCode.LIMIT_EXCEEDED, ReasonCode.TRUNCATED, ReasonCode.CLOSED_TOO_EARLY, ReasonCode.DUPLICATE_KEY,
    ReasonCode.REPAIR_FAILED, ReasonCode.SCHEMA_UNKNOWN_VERSION, ReasonCode.SCHEMA_MISSING_FIELD,
    ReasonCode.SCHEMA_UNKNOWN_FIELD, ReasonCode.SCHEMA_TYPE_ERROR, ReasonCode.INVARIANT_VIOLATION,
    ReasonCode.MIGRATION_FAILED,
)  # fmt: skip


@attrs.frozen
class Invariant(Generic[T]):
    """A rule for a whole value.

    Attributes:
        message: the condition, for the violation and for the model's instructions:
            ``'items_total' must be >= 'items_shown'``.
        holds: takes the value and returns whether it satisfies the rule. If it raises, the rule is broken.
    """

    message: str
    holds: Callable[[T], bool]

    def is_kept(self, value: T) -> bool:
        """Whether *value* keeps the rule."""
        return not _broken((self,), value)


def _broken(rules: tuple[Invariant[T], ...], value: T) -> tuple[Invariant[T], ...]:
    """Return those of *rules* that *value* breaks. Each is called once."""
    broken: tuple[Invariant[T], ...] = ()
    for rule in rules:
        try:
            if rule.holds(value):
                continue
        except Exception:  # a rule that cannot be evaluated is broken, and its message names it
            pass
        broken += (rule,)
    return broken


def reason_of(violations: tuple[Violation, ...]) -> ReasonCode:
    """Return the one reason for all *violations*: the gravest."""
    codes = {violation.code for violation in violations}
    return next((code for code in _GRAVEST_FIRST if code in codes), ReasonCode.SCHEMA_TYPE_ERROR)


def _as_invariants(rules: Iterable[Invariant[T]]) -> tuple[Invariant[T], ...]:
    results = tuple(rules)
    if not all(isinstance(rule, Invariant) for rule in results):
        raise SchemaDefinitionError("an invariant is an Invariant: a message and a function")
    return results


WRAPPED: Final = "value"
"""The key under which servers are asked for an answer that is not an object."""


@attrs.frozen
class Schema(Generic[T]):
    """The form of an answer.

    The type may be a class of attrs, a dataclass, a typed dict, a named tuple, a model of pydantic, an enum, a
    ``Literal``, a union, ``str``, ``int``, ``float``, ``bool``, ``None``, ``Any``, ``date``, ``time``, ``datetime`` (with
    a zone, which it keeps), ``timedelta`` (in seconds), ``Decimal``, ``UUID``, or a list, set, tuple, dict or mapping of
    these. It may also be a JSON Schema as a dict. Then the value is the checked JSON.

    A field's JSON key is its name or its ``alias``. The metadata of a field may hold ``alias`` (a key that is not an
    identifier), ``required`` (the key must be present although the field has a default), ``description`` and
    ``json_schema`` (further keywords, such as ``minimum``).

    Attributes:
        cls: the type, or the JSON Schema.
        invariants: the rules between its fields, checked in order once the types are right.
        forbid_unknown: refuse keys that a class does not have. They are ignored by default, and
            ``ParseResult.unknown`` lists them.
        null_is_default: a null for an optional key that cannot be null stands for its default, as servers in strict
            mode send it.

    Raises:
        SchemaDefinitionError: JSON cannot express the type, or a keyword of the JSON Schema is not supported.
    """

    cls: type[T]
    invariants: tuple[Invariant[T], ...] = attrs.field(default=(), converter=_as_invariants)
    forbid_unknown: bool = False
    null_is_default: bool = False
    _json_schema: dict[str, Any] = attrs.field(init=False, repr=False, eq=False)
    _check: Check = attrs.field(init=False, repr=False, eq=False)
    _make: Callable[[Any, Any], T] = attrs.field(init=False, repr=False, eq=False)
    has_decimal: bool = attrs.field(init=False, repr=False, eq=False, default=False)
    names: frozenset[str] = attrs.field(init=False, repr=False, eq=False, default=frozenset())

    def __attrs_post_init__(self) -> None:
        kind: Any = self.cls
        make: Callable[[Any, Any], Any] = _as_it_is
        if isinstance(kind, Mapping):
            described = checked = plain_view(kind)
            has_decimal = False
        else:
            described, has_decimal = schema_of(kind, forbid_unknown=self.forbid_unknown)
            checked, _ = schema_of(kind, forbid_unknown=self.forbid_unknown, with_rules=True)
            make = answer_converter().get_structure_hook(kind)
        set_field = object.__setattr__
        set_field(self, "_json_schema", described)
        set_field(self, "_check", compile_schema(checked, null_is_default=self.null_is_default))
        set_field(self, "_make", make)
        set_field(self, "has_decimal", has_decimal)
        set_field(self, "names", frozenset(map(folded_key, _property_names(described))))

    @property
    def name(self) -> str:
        """The name of the answer in requests to a server."""
        return str(self._json_schema.get("title", "answer"))

    @property
    def is_object(self) -> bool:
        """Whether every answer is an object: servers accept nothing else as a whole answer."""
        return self._json_schema.get("type") == "object"

    @property
    def is_enum(self) -> bool:
        """Whether an answer is one of several words."""
        return "enum" in self._json_schema

    @property
    def required_fields(self) -> frozenset[str]:
        """The keys that have to be there."""
        return frozenset(self._json_schema.get("required", ()))

    def read(self, data: Any) -> Candidate[T]:
        """Return the value of decoded JSON, or ``None`` and its violations. Never raises."""
        if type(data) is Unread:
            code = ReasonCode.LIMIT_EXCEEDED if data is TOO_DEEP else ReasonCode.EXTRACTION_FAILED
            return Candidate(None, (Violation(data.value, "$", code),))
        report, results = Report(), []
        try:
            checked = self._check(data, "$", report)
            if report.violations and not self.is_object and type(data) is dict and [*data] == [WRAPPED]:
                report = Report()
                checked = self._check(data[WRAPPED], f"$.{WRAPPED}", report)
            results = [
                Violation(each.message, each.path, ReasonCode(each.fault)) for each in report.violations
            ]
            if any(each.fault is not Fault.RULE for each in report.violations):
                return Candidate(None, tuple(results[:MOST]))
            value = self._make(checked, self.cls)
        except Exception as error:  # a class may raise anything to refuse
            return Candidate(None, tuple(results or violations_of(error))[:MOST])
        broken = _broken(self.invariants, value) if self.invariants else ()
        if broken or results:
            raw = [Violation(rule.message, code=ReasonCode.INVARIANT_VIOLATION) for rule in broken]
            return Candidate(None, tuple([*raw, *results][:MOST]))
        if value is None:
            return Candidate(None, (Violation("expected a value, got null"),))
        unknown, renamed = tuple(report.unknown), tuple(report.renamed)
        return Candidate(value, (), None, unknown, renamed, report.defaulted)

    def named(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return a copy of *data* under the schema's keys, with exact numbers. It is not checked."""
        try:
            return cast(dict[str, Any], _exact(self._check(data, "$", Report())))
        except Exception:  # as in read
            return data

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema (2020-12) of a valid answer, without invariants. Each call returns a new dict."""
        copied: dict[str, Any] = orjson.loads(orjson.dumps(self._json_schema))
        return copied

    def server_schema(self) -> tuple[dict[str, Any], bool]:
        """Return the schema to send to a server that enforces one, and whether it has the form of OpenAI's strict mode.

        In strict mode every key is required and nullable, so read the answer with ``null_is_default``. llama.cpp, vLLM
        and Ollama take either form. An answer that is not an object is requested under the key ``value``.
        """
        if isinstance(self.cls, Mapping):
            wanted = self.json_schema()
            return wanted, self.is_object and strict_form(wanted) == wanted
        wanted, _ = schema_of(self.cls, forbid_unknown=True)  # unknown keys need not be invited
        if not self.is_object:
            outer: dict[str, Any] = {key: wanted.pop(key) for key in ("$schema", "$defs") if key in wanted}
            required = {"required": [WRAPPED], "additionalProperties": False}
            wanted = {**outer, "type": "object", "properties": {WRAPPED: wanted}, **required}
        strict = strict_form(wanted)
        return (wanted, False) if strict is None else (strict, True)

    def instructions(
        self, example: Any = None, *, form: Literal["typescript", "json_schema"] = "typescript"
    ) -> str:
        """Return the text to append to a system prompt so that the model answers in this form.

        Args:
            example: a valid answer as plain JSON values, to be shown, or ``None`` for none.
            form: the notation of the type. TypeScript takes a third of the tokens of JSON Schema.

        Raises:
            TypeError: *example* is not JSON.
        """
        what = "one JSON object" if self.is_object else "one JSON value"
        parts = [
            f"Answer with {what} and nothing else: no text before or after it, no Markdown fence, no comments."
        ]
        if form == "typescript":
            parts.append(f"It must be of this TypeScript type:\n\n{as_typescript(self._json_schema)}")
        else:
            parts.append(f"It must conform to this JSON Schema:\n\n{_shown(self._json_schema)}")
        if self.invariants:
            rules = "\n".join(f"- {rule.message}" for rule in self.invariants)
            parts.append(f"These rules must hold:\n\n{rules}")
        if example is not None:
            parts.append(f"For example:\n\n{_shown(example)}")
        return "\n\n".join(parts) + "\n"


def _property_names(schema: Any) -> Iterator[str]:
    """The keys of every object in *schema*."""
    if isinstance(schema, dict):
        yield from schema.get("properties", ())
    for each in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from _property_names(each)


def _exact(value: Any) -> Any:
    """A copy of *value* with the digits of its numbers."""
    if type(value) is dict:
        return {key: _exact(each) for key, each in value.items()}
    if type(value) is list:
        return [_exact(each) for each in value]
    return Decimal(value.text) if type(value) is ExactFloat else value


def _as_it_is(value: Any, _: Any) -> Any:
    return value


def _shown(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
