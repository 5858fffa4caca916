"""The schema of an answer, a type with its invariants or a JSON Schema, in one or several versions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final, Generic, Literal, TypeVar, cast

import attrs
import orjson

from crosswalk.codec.canonical import problems_in
from crosswalk.codec.layout import MissingKey, Refused
from crosswalk.errors import CrosswalkError
from crosswalk.plugin.registry import registry
from crosswalk.schemas.check import compile_dictionary, compile_schema, folded_key, resolved, takes_null
from crosswalk.schemas.fitting import SchemaRules, default_rules, fit_schema
from crosswalk.schemas.json_schema import as_words, has_fields, schema_of
from crosswalk.schemas.metadata import GROWTH, MAX_FINDINGS, Check, ExactFloat, Finding, Growth, Report
from crosswalk.schemas.pydantic_types import KEYS
from crosswalk.schemas.values import answer_converter, growing_converter, value_to_json as value_to_json
from crosswalk.structured.repair import TOO_DEEP, UnreadJSON, is_too_deep, loads
from crosswalk.structured.result import (
    Candidate,
    MigrationError,
    ReasonCode,
    SchemaDefinitionError,
    UnknownSchemaVersionError,
    Violation,
)
from crosswalk.text import clean_message, json_type_name
from crosswalk.types.json import plain_view, step as path_step

# ---------------------------------------------------------------------------------- schema
# The schema of an answer: a type with its invariants, or a JSON Schema.


_VALIDATOR: Final = re.compile(r"\bvalidator (?:for |with )?", re.IGNORECASE)
"""The words of a validator's ``repr`` that say nothing about its rule."""
_CODE_BY_PROBLEM: Final = {
    MissingKey: ReasonCode.SCHEMA_MISSING_FIELD,
    Refused: ReasonCode.INVARIANT_VIOLATION,
}


_PYDANTIC_ERRORS: Final = {
    "missing": ("a required field is missing", ReasonCode.SCHEMA_MISSING_FIELD),
    "extra_forbidden": ("unknown field", ReasonCode.SCHEMA_UNKNOWN_FIELD),
    "unexpected_keyword_argument": ("unknown field", ReasonCode.SCHEMA_UNKNOWN_FIELD),
}
_TYPE_ERRORS: Final = re.compile(
    r".*_(?:type|parsing|attributes_type|tag_invalid|tag_not_found)|literal_error|enum"
)
"""The errors of pydantic about the type of a value."""


def _code_of(error: str) -> ReasonCode:
    return ReasonCode.SCHEMA_TYPE_ERROR if _TYPE_ERRORS.fullmatch(error) else ReasonCode.INVARIANT_VIOLATION


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
            yield Violation(str(problem), path, _CODE_BY_PROBLEM.get(type(problem), code))
        else:
            yield from _refusals(problem, path)


def _refusals(problem: Refused, path: str) -> Iterator[Violation]:
    """Return the rules by which a class refused its values. Its own words may quote them, so they are left out.

    An error of ours quotes nothing, nor does one that a user derives from it.
    """
    list_errors = getattr(problem.cause, "errors", None)
    if callable(list_errors):  # pydantic's
        for one in list_errors(include_input=False, include_url=False):
            context = one.get("ctx", {})
            trace = getattr(context.get("error"), "__traceback__", None)
            error_path = path + "".join(map(path_step, one["loc"]))
            if one["type"] in _PYDANTIC_ERRORS:
                message, code = _PYDANTIC_ERRORS[one["type"]]
                yield Violation(message, error_path, code)
                continue
            rule = one["type"] if trace is None else trace.tb_frame.f_code.co_name  # of a validator, its name
            bounds = [f" {name} {each}" for name, each in context.items() if type(each) in (int, float)]
            code = _code_of(one["type"])
            yield Violation(f"must keep the rule {rule}{''.join(bounds)}", error_path, code)
        return
    code = ReasonCode.INVARIANT_VIOLATION
    if isinstance(problem.cause, CrosswalkError):  # its words quote nothing
        yield Violation(clean_message(str(problem.cause), 200), path, code)
        return
    field, rule = _refused_field(problem.cause)
    is_placed = any(isinstance(each, attrs.Attribute) for each in problem.cause.args)
    error_path = path if field is None or is_placed else path + path_step(field.alias or field.name)
    yield Violation(
        rule or f"refused by {problem.cls.__name__} with {type(problem.cause).__name__}", error_path, code
    )


def _refused_field(error: BaseException) -> tuple[attrs.Attribute[Any] | None, str]:
    """Return the field that an attrs validator was given and refused, and the rule if the validator is one of attrs."""
    trace, field, validator = error.__traceback__, None, None
    while trace is not None:
        frame_locals = trace.tb_frame.f_locals
        if attribute := next(
            (value for value in frame_locals.values() if isinstance(value, attrs.Attribute)), None
        ):
            field, validator = attribute, frame_locals.get("self")
        trace = trace.tb_next
    if not type(validator).__module__.startswith(("attr.", "attrs.")):
        return field, ""
    rule = _VALIDATOR.sub("", repr(validator).strip("<>"))
    return field, "must keep the rule " + clean_message(rule, 200)


_STEP: Final = re.compile(r"\.(?:\w|\$|-)+|\[[^\]]*\]")


def _as_violations(findings: Iterable[Finding]) -> list[Violation]:
    return [Violation(each.message, each.path, ReasonCode(each.fault)) for each in findings]


def _explained(advice: list[Violation], refusals: Iterable[Violation]) -> Iterator[Violation]:
    """The *refusals* of pydantic, in the words of *advice* where there is one for the same place."""
    placed_refusals = [(refusal, _STEP.findall(refusal.path)) for refusal in refusals]
    used_advice = [
        (each, advice_steps)
        for each in advice
        for advice_steps in [_STEP.findall(each.path)]
        if any(
            _is_part(advice_steps, refusal_steps) or _is_part(refusal_steps, advice_steps)
            for _, refusal_steps in placed_refusals
        )
    ]
    yield from (each for each, _ in used_advice)
    for refusal, refusal_steps in placed_refusals:
        if not any(
            _is_part(advice_steps, refusal_steps) or _is_part(refusal_steps, advice_steps)
            for _, advice_steps in used_advice
        ):
            yield refusal


def _is_part(steps: list[str], place: list[str]) -> bool:
    """Whether *steps* are in *place*, in their order. Pydantic also names the members of unions."""
    remaining_steps = iter(place)
    return all(step in remaining_steps for step in steps)


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
    broken_rules: tuple[Invariant[T], ...] = ()
    for rule in rules:
        try:
            if rule.holds(value):
                continue
        except Exception:  # a rule that cannot be evaluated is broken, and its message names it
            pass
        broken_rules += (rule,)
    return broken_rules


def reason_of(violations: tuple[Violation, ...]) -> ReasonCode:
    """Return the one reason for all *violations*: the gravest."""
    codes = {violation.code for violation in violations}
    return next((code for code in _GRAVEST_FIRST if code in codes), ReasonCode.SCHEMA_TYPE_ERROR)


def _as_invariants(rules: Iterable[Invariant[T]]) -> tuple[Invariant[T], ...]:
    invariants = tuple(rules)
    if not all(isinstance(rule, Invariant) for rule in invariants):
        raise SchemaDefinitionError("an invariant is an Invariant: a message and a function")
    return invariants


def _need_type(kind: Any) -> None:
    """Refuse a value in the place of a type, and say the type.

    Raises:
        SchemaDefinitionError: *kind* is a list, an instance of a class with fields, or an adapter of pydantic.
    """
    cls, instead = type(kind), None
    if isinstance(kind, list):
        names = [getattr(item, "__name__", "…") for item in kind]
        instead = f"list[{names[0] if len(names) == 1 else '…'}]"
    elif cls.__name__ == "TypeAdapter":
        instead = repr(kind)[len("TypeAdapter(") : -1]
    elif isinstance(kind, type):
        return
    elif has_fields(cls) or hasattr(cls, "__pydantic_validator__"):
        instead = cls.__name__
    if instead is not None:
        raise SchemaDefinitionError(f"expected a type, got an instance of {cls.__name__}; give {instead}")


MUCH: Final = 1 << 40
"""The work of a look at a whole answer, of which nothing is known from before."""
_NULL: Final = Violation("expected a value, got null")
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
        null_is_default: a null for an optional key that cannot be null means its default, as servers in strict
            mode send it.
        unwrap: the key of an object around the answer that is opened, such as ``result``, or ``None`` to open none.
            The other keys of that object are unknown ones.
        refuse_doubtful: refuse an unknown key if an optional one is absent, such as ``weight`` for ``weight_kg``.

    Raises:
        SchemaDefinitionError: JSON cannot express the type, or a keyword of the JSON Schema is not supported.
    """

    cls: type[T]
    invariants: tuple[Invariant[T], ...] = attrs.field(default=(), converter=_as_invariants)
    forbid_unknown: bool = False
    null_is_default: bool = False
    unwrap: str | None = attrs.field(default=None, kw_only=True)
    refuse_doubtful: bool = attrs.field(default=False, kw_only=True)
    _json_schema: dict[str, Any] = attrs.field(init=False, repr=False, eq=False)
    _check: Check = attrs.field(init=False, repr=False, eq=False)
    _make: Callable[[Any, Any], T] = attrs.field(init=False, repr=False, eq=False)
    has_decimal: bool = attrs.field(init=False, repr=False, eq=False, default=False)
    names: frozenset[str] = attrs.field(init=False, repr=False, eq=False, default=frozenset())
    telling_names: frozenset[str] = attrs.field(init=False, repr=False, eq=False, default=frozenset())

    def __attrs_post_init__(self) -> None:
        kind: Any = self.cls
        options: dict[str, Any] = {
            "null_is_default": self.null_is_default,
            "refuse_doubtful": self.refuse_doubtful,
        }
        if isinstance(kind, Mapping):
            json_schema = checked_schema = plain_view(kind)
            has_decimal = False
            check, decide = compile_dictionary(checked_schema, **options)
            make: Callable[[Any, Any], Any] = decide or _as_it_is
        else:
            _need_type(kind)
            json_schema, _ = schema_of(kind, forbid_unknown=self.forbid_unknown)
            checked_schema, has_decimal = schema_of(kind, forbid_unknown=self.forbid_unknown, with_rules=True)
            check, make = (
                compile_schema(checked_schema, **options),
                answer_converter().get_structure_hook(kind),
            )
        set_field = object.__setattr__
        set_field(self, "_json_schema", json_schema)
        set_field(self, "_check", check)
        set_field(self, "_make", make)
        set_field(self, "has_decimal", has_decimal)
        names = [*_property_names(checked_schema), *([] if self.unwrap is None else [self.unwrap])]
        set_field(self, "names", frozenset(map(folded_key, names)))
        telling_keys = [
            *_telling_names(checked_schema, checked_schema, set()),
            *([] if self.unwrap is None else [self.unwrap]),
        ]
        set_field(self, "telling_names", frozenset(map(folded_key, telling_keys)))

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

    def read(self, data: Any, growth: Growth | None = None) -> Candidate[T]:
        """Return the value of decoded JSON, or ``None`` and its violations. Never raises.

        Args:
            data: the decoded JSON.
            growth: the lists of an answer that is still being written, or ``None`` if it is whole.
        """
        if type(data) is UnreadJSON:
            code = ReasonCode.LIMIT_EXCEEDED if data is TOO_DEEP else ReasonCode.EXTRACTION_FAILED
            return Candidate(None, (Violation(data.value, "$", code),))
        if self.unwrap is not None and type(data) is dict and self.unwrap in data:
            candidate = self._read_at("$" + path_step(self.unwrap), data[self.unwrap], growth)
            if candidate.value is not None:
                other_paths = tuple("$" + path_step(key) for key in data if key != self.unwrap)
                return candidate._replace(unknown=(*other_paths, *candidate.unknown)[:MAX_FINDINGS])
        return self._read_at("$", data, growth)

    def _read_at(self, path: str, data: Any, growth: Growth | None) -> Candidate[T]:
        candidate, has_closed = self._read(path, data, None, growth)
        if candidate.value is None and has_closed:
            if growth is not None:
                growth.work += MUCH  # what a string holds is new each time
            opened_candidate, _ = self._read(path, data, self._open_string, None)
            return candidate if opened_candidate.value is None else opened_candidate
        return candidate

    def _read(
        self, path: str, data: Any, open_string: Callable[[str], Any] | None, growth: Growth | None
    ) -> tuple[Candidate[T], bool]:
        """The value or its violations, and whether a string was left closed that may hold JSON."""
        report, hard_violations, advice = Report(open_string=open_string, growth=growth), [], []
        try:
            checked_data = self._check(data, path, report)
            if report.violations and not self.is_object and type(data) is dict and [*data] == [WRAPPED]:
                report = Report(open_string=open_string, growth=growth)
                checked_data = self._check(data[WRAPPED], f"$.{WRAPPED}", report)
            hard_violations = _as_violations(each for each in report.violations if not each.is_advice)
            advice = _as_violations(each for each in report.violations if each.is_advice)
            if any(each.code is not ReasonCode.INVARIANT_VIOLATION for each in hard_violations):
                return Candidate(None, tuple([*hard_violations, *advice][:MAX_FINDINGS])), report.has_closed
            if growth is not None and growth.awaits_more(report):
                return Candidate(None), report.has_closed
            if report.opened and is_too_deep(checked_data):
                return self.read(TOO_DEEP), False
            value = (
                self._make(checked_data, self.cls)
                if growth is None
                else self._make_growing(checked_data, growth)
            )
        except Exception as error:  # a class may raise anything to refuse
            violations = (*hard_violations, *_explained(advice, violations_of(error)))
            return Candidate(None, violations[:MAX_FINDINGS]), report.has_closed
        broken_rules = _broken(self.invariants, value) if self.invariants else ()
        if broken_rules or hard_violations:
            rule_violations = [
                Violation(rule.message, code=ReasonCode.INVARIANT_VIOLATION) for rule in broken_rules
            ]
            return Candidate(
                None, tuple([*rule_violations, *hard_violations][:MAX_FINDINGS])
            ), report.has_closed
        if value is None:
            return Candidate(None, (_NULL,)), report.has_closed
        return Candidate(
            value,
            unknown=tuple(report.unknown),
            renamed=tuple(report.renamed),
            defaulted=report.defaulted,
            opened=tuple(report.opened),
        ), False

    def _make_growing(self, checked: Any, growth: Growth) -> T:
        if isinstance(self.cls, Mapping):
            growth.work += 0 if self._make is _as_it_is else MUCH  # jsonschema looks at all of it
            return self._make(checked, self.cls)
        make, token = growing_converter().get_structure_hook(self.cls), GROWTH.set(growth)
        try:
            return cast(T, make(checked, self.cls))
        finally:
            GROWTH.reset(token)

    def _open_string(self, text: str) -> Any:
        data = loads(text, is_exact=self.has_decimal)
        return None if type(data) is UnreadJSON else data

    def named(
        self, data: Any, open_path: tuple[str | int, ...] | None = None, growth: Growth | None = None
    ) -> tuple[Any, tuple[str | int, ...] | None]:
        """Return a copy of an answer under the schema's keys, with exact numbers, and its *open_path*. It is not checked.

        Args:
            data: the answer, or the object around it that this schema opens.
            open_path: leads to the last value, which may go on, or ``None``.
            growth: the lists in *data*, or ``None`` if it is whole.
        """
        if self.unwrap is not None:
            data, open_path = _inside(data, self.unwrap, open_path)
        fields, report = self._fields(data, growth)
        if report.violations and not self.is_object and type(data) is dict and [*data] == [WRAPPED]:
            data, open_path = _inside(data, WRAPPED, open_path)
            fields, report = self._fields(data, growth)
        if growth is not None:
            growth.is_waiting = growth.awaits_more(report)
        new_keys = dict(report.renamed)
        data_path, path = "$", []
        for key in open_path or ():
            path.append(new_keys.get(data_path + path_step(key), key))
            data_path += path_step(path[-1])
        if self.has_decimal or growth is None:
            fields = exact_copy(fields, growth)
        return fields, open_path and tuple(path)

    def _fields(self, data: Any, growth: Growth | None) -> tuple[Any, Report]:
        report = Report(growth=growth)
        try:
            return self._check(data, "$", report), report
        except Exception:  # as in read
            return data, report

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema (2020-12) of a valid answer, without invariants. Each call returns a new dict."""
        schema_copy: dict[str, Any] = orjson.loads(orjson.dumps(self._json_schema))
        return schema_copy

    def server_schema(self) -> dict[str, Any]:
        """Return the schema of the answer to ask a server for, with all limits. A service fits it to each server.

        An answer that is not an object is requested under the key ``value``.

        Raises:
            SchemaDefinitionError: an answer may be null as a whole, which :meth:`read` takes for none.
        """
        self._refuse_null()
        if isinstance(self.cls, Mapping):
            return self.json_schema()
        answer_schema, _ = schema_of(self.cls, forbid_unknown=True)  # unknown keys need not be invited
        if self.is_object:
            return answer_schema
        outer_keywords: dict[str, Any] = {
            key: answer_schema.pop(key) for key in ("$schema", "$defs") if key in answer_schema
        }
        object_rules = {"required": [WRAPPED], "additionalProperties": False}
        return {**outer_keywords, "type": "object", "properties": {WRAPPED: answer_schema}, **object_rules}

    def _refuse_null(self) -> None:
        if takes_null(self._json_schema) and self.read(None).violations == (_NULL,):
            kind: Any = self.cls
            named = "JSON Schema" if isinstance(kind, Mapping) else kind
            raise SchemaDefinitionError(
                f"{named}: null stands for no answer; ask for a class with a field that may be null"
            )

    def response_format(self, provider: str = "openai") -> dict[str, Any]:
        """Return the ``response_format`` of a Chat Completions request, for a client of your own.

        Read the answer with :meth:`StructuredParser.with_null_as_default` if its ``strict`` is true.

        Args:
            provider: the provider id of the server. The format keeps its rules.

        Raises:
            UnknownProviderError: the provider is unknown.
            SchemaDefinitionError: as in :meth:`server_schema`.
        """
        model_classes = registry.mapper(provider).info.model_classes
        rules = SchemaRules() if model_classes is None else default_rules(model_classes, provider)
        fitted = fit_schema(self.server_schema(), rules, null_is_absent=True)
        is_strict = not fitted.impossible
        schema = fitted.schema if is_strict else self.server_schema()
        return {
            "type": "json_schema",
            "json_schema": {"name": rules.fitting_name(self.name), "schema": schema, "strict": is_strict},
        }

    def instructions(
        self, example: Any = None, *, form: Literal["typescript", "json_schema"] = "typescript"
    ) -> str:
        """Return the text to append to a system prompt so that the model answers in this form.

        Args:
            example: a valid answer as plain JSON values, to be shown, or ``None`` for none.
            form: the notation of the type. TypeScript takes a third of the tokens of JSON Schema.

        Raises:
            TypeError: *example* is not JSON.
            SchemaDefinitionError: as in :meth:`server_schema`.
        """
        self._refuse_null()
        parts = [as_words(self._json_schema, form)]
        if self.invariants:
            rules = "\n".join(f"- {rule.message}" for rule in self.invariants)
            parts.append(f"These rules must hold:\n\n{rules}")
        if example is not None:
            parts.append(f"For example:\n\n{_shown(example)}")
        return "\n\n".join(parts) + "\n"


def _inside(
    data: Any, key: str, path: tuple[str | int, ...] | None
) -> tuple[Any, tuple[str | int, ...] | None]:
    """The object or array under *key* of *data*, and the rest of *path*, if there is one."""
    if type(data) is not dict or type(data.get(key)) not in (dict, list):
        return data, path
    return data[key], path[1:] if path and path[0] == key else None


def _property_names(schema: Any) -> Iterator[str]:
    """The keys of every object in *schema*."""
    if isinstance(schema, dict):
        yield from schema.get("properties", ())
        yield from schema.get(KEYS) or ()
    for each in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from _property_names(each)


def _telling_names(schema: Any, root: Any, seen: set[str]) -> Iterator[str]:
    """The keys that tell an answer from other brackets: those of an object that needs one of them.

    A class of defaults, a list and a map tell nothing, nor does what is inside of them.
    """
    if isinstance(schema, list):
        for each in schema:
            yield from _telling_names(each, root, seen)
    if not isinstance(schema, dict):
        return
    reference = schema.get("$ref")
    if reference is not None and reference not in seen:
        seen.add(reference)
        yield from _telling_names(resolved(root, reference), root, seen)
    if schema.get("required"):
        yield from schema.get("properties", ())
        yield from schema.get(KEYS) or ()
    for key in _KIND_KEYWORDS & schema.keys():
        yield from _telling_names(schema[key], root, seen)


_KIND_KEYWORDS: Final = frozenset(("anyOf", "oneOf", "allOf"))
"""The keywords for the kinds of an answer."""


def exact_copy(value: Any, growth: Growth | None) -> Any:
    """Return a copy of *value* with the digits of its numbers.

    Args:
        value: decoded JSON.
        growth: the lists in an answer that is still being written, or ``None`` if it is whole.
    """
    if type(value) is dict:
        return {key: exact_copy(each, growth) for key, each in value.items()}
    if type(value) is list:
        if growth is None:
            return [exact_copy(each, None) for each in value]
        return growth.mapped(value, exact_copy, lambda _, each, __: exact_copy(each, growth))
    return Decimal(value.text) if isinstance(value, ExactFloat) else value


def _as_it_is(value: Any, _: Any) -> Any:
    return value


def _shown(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


# -------------------------------------------------------------------------------- versions
# Several versions of one schema: the version of a document, and the conversions between versions.
#
# An added optional field is a new minor version, a removed or renamed one a new major.


_VERSION: Final = re.compile(r"(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})")

_LIKE_A_VERSION: Final = re.compile(r"v?[0-9.]{1,16}", re.ASCII)

Migration = Callable[[Any], Any]


def _parts(version: str) -> tuple[int, int] | None:
    match = _VERSION.fullmatch(version)
    return (int(match[1]), int(match[2])) if match else None


@attrs.frozen
class _Step:
    """A registered version, and the conversions from the one before it and back."""

    version: str
    schema: Schema[Any]
    upgrade: Migration | None
    downgrade: Migration | None


class SchemaVersions(Generic[T]):
    """A registry of the versions of one schema. Register them from the oldest on, then parse.

    Args:
        key: the key of the document that names its version.
        default: the version of a document that names none, or ``None`` for the first that is registered.
    """

    def __init__(self, key: str = "schema_version", *, default: str | None = None) -> None:
        self.key = key
        self._default = default
        self._steps: dict[str, _Step] = {}

    def register(
        self,
        version: str,
        cls: type[Any],
        *,
        invariants: tuple[Invariant[Any], ...] = (),
        upgrade: Migration | None = None,
        downgrade: Migration | None = None,
    ) -> SchemaVersions[T]:
        """Add the next version, later than all before it.

        Args:
            version: ``MAJOR.MINOR``.
            cls: the attrs class of its documents.
            invariants: the rules that its values must satisfy.
            upgrade: makes a value of this version from one of the version before. Required from the second version on.
            downgrade: makes a value of the version before from one of this. Raises :class:`MigrationError` that names
                what would be lost. ``None`` without a way back.

        Returns:
            The registry itself, so that calls can be chained.

        Raises:
            SchemaDefinitionError: the version is malformed or not later than the last one, or has no ``upgrade``.
        """
        parts = _parts(version)
        if parts is None:
            raise SchemaDefinitionError(
                f"a schema version is MAJOR.MINOR, not {clean_message(version, 40)!r}"
            )
        last_version = next(reversed(self._steps), None)
        if last_version is not None and parts <= (_parts(last_version) or parts):
            raise SchemaDefinitionError(f"schema version {version} is registered after {last_version}")
        if (last_version is None) is not (upgrade is None):
            raise SchemaDefinitionError(
                f"schema version {version} has no upgrade from {last_version}"
                if last_version
                else f"schema version {version} is the first: there is nothing to upgrade from"
            )
        self._steps[version] = _Step(version, Schema(cls, invariants), upgrade, downgrade)
        return self

    @property
    def supported(self) -> frozenset[str]:
        """The registered versions."""
        return frozenset(self._steps)

    @property
    def names(self) -> frozenset[str]:
        """The keys of every object in every version, as :func:`folded_key` writes them."""
        return frozenset[str]().union(*(step.schema.names for step in self._steps.values()))

    @property
    def telling_names(self) -> frozenset[str]:
        """The keys that tell an answer of any version from other brackets, as :func:`folded_key` writes them."""
        return frozenset[str]().union(*(step.schema.telling_names for step in self._steps.values()))

    @property
    def has_decimal(self) -> bool:
        """Whether a version holds a ``Decimal``."""
        return any(step.schema.has_decimal for step in self._steps.values())

    @property
    def default(self) -> str:
        """The version of a document that names none.

        Raises:
            SchemaDefinitionError: no version is registered.
        """
        if not self._steps:
            raise SchemaDefinitionError("no schema version is registered")
        return self._default or next(iter(self._steps))

    def schema(self, version: str) -> Schema[Any]:
        """The schema of a registered version.

        Raises:
            UnknownSchemaVersionError: it is not registered.
        """
        step = self._steps.get(version)
        if step is None:
            known_versions = ", ".join(self._steps)
            raise UnknownSchemaVersionError(
                f"unknown schema version {clean_message(version, 40)!r}; known are {known_versions}",
                version=version,
                known=tuple(self._steps),
            )
        return step.schema

    def read_as(self, version: str) -> str | None:
        """Return the registered version that documents of *version* are read as.

        A registered version is read as itself. Any other minor is read as the newest minor of its major, because additions
        of a minor are optional. ``None`` if the major is not known, or *version* is not ``MAJOR.MINOR``, such as ``1``
        or ``1.0.0``.
        """
        if version in self._steps:
            return version
        parts = _parts(version)
        minors = [each for each in self._steps if parts and each.startswith(f"{parts[0]}.")]
        return minors[-1] if minors else None

    def read(self, data: Any) -> Candidate[Any]:
        """Return the value of decoded JSON in its own version, its violations, and the version that it names."""
        if type(data) is UnreadJSON:
            return self._steps[self.default].schema.read(data)
        named_version = data.get(self.key, self.default) if type(data) is dict else self.default
        if type(named_version) is not str:
            message = f"expected string, got {json_type_name(named_version)}"
            return Candidate(None, (Violation(message, f"$.{self.key}", ReasonCode.SCHEMA_TYPE_ERROR),))
        step = self._steps.get(named_version)
        if step is not None:
            return step.schema.read(data)._replace(version=named_version)
        version = self.read_as(named_version)
        if version is None:
            known_versions = ", ".join(self._steps)
            shown_version = f" {named_version!r}" if _LIKE_A_VERSION.fullmatch(named_version) else ""
            message = f"unknown schema version{shown_version}, known are {known_versions}"
            code = ReasonCode.SCHEMA_UNKNOWN_VERSION
            return Candidate(None, (Violation(message, f"$.{self.key}", code),), named_version)
        return self._steps[version].schema.read({**data, self.key: version})._replace(version=named_version)

    def version_of(self, value: Any) -> str:
        """Return the version of a value: the one that it names, or the one that its class is registered for.

        Raises:
            UnknownSchemaVersionError: neither is registered.
        """
        named_version = getattr(value, self.key, None)
        if isinstance(named_version, str) and named_version in self._steps:
            return named_version
        for step in self._steps.values():
            if type(value) is step.schema.cls:
                return step.version
        raise UnknownSchemaVersionError(
            f"no schema version has {type(value).__name__}", version=str(named_version)[:40]
        )

    def migrate(self, value: Any, target: str) -> Any:
        """Return *value* in another version, version by version: up always, down if nothing is lost.

        Raises:
            UnknownSchemaVersionError: *target*, or the version of *value*, is not registered.
            MigrationError: the way down would lose something, or does not exist.
        """
        self.schema(target)
        source = self.version_of(value)
        versions = list(self._steps)
        start, end = versions.index(source), versions.index(target)
        steps = list(self._steps.values())
        for step in steps[start + 1 : end + 1]:
            value = self._moved(value, step.schema.cls, step.upgrade, source, target)
        for index in range(start, end, -1):
            value = self._moved(value, steps[index - 1].schema.cls, steps[index].downgrade, source, target)
        return value

    def _moved(self, value: Any, cls: type, move: Migration | None, source: str, target: str) -> Any:
        if move is None:
            raise MigrationError(f"no way from {source} to {target}", source=source, target=target)
        direction = f"from {source} to {target}"
        try:
            moved_value = move(value)
        except MigrationError as error:
            raise MigrationError(
                f"{direction}: {clean_message(str(error), 200)}", source=source, target=target
            ) from error
        except Exception as error:  # a user's function: its message may quote the value
            raise MigrationError(
                f"{direction}: {type(error).__name__}", source=source, target=target
            ) from error
        if not isinstance(moved_value, cls):
            message = f"{direction}: the migration made {type(moved_value).__name__}, not {cls.__name__}"
            raise MigrationError(message, source=source, target=target)
        return moved_value
