"""The limits that a declaration states for its values, as ``Annotated`` does, and the check of a value against them."""

from __future__ import annotations

import math
import re
import typing
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextvars import ContextVar
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Any, Final, Literal, NoReturn, TypeAlias
from uuid import UUID

import attrs

from crosswalk.codec.canonical import LISTS, MAPPINGS, has_fields, json_word, origin_of
from crosswalk.codec.layout import union_members
from crosswalk.errors import CrosswalkError

# ---------------------------------------------------------------------------------- report
# What is wrong with a value, and what was ignored of it.


class SchemaDefinitionError(CrosswalkError, TypeError):
    """A type cannot be the schema of an answer, or a registry of versions contradicts itself."""


class UncheckedLimitError(SchemaDefinitionError):
    """A limit or validator of a type that only pydantic may check."""


MAX_FINDINGS: Final = 50
"""The greatest number of violations, unknown keys and renamed keys in a report."""


class Fault(StrEnum):
    """The kind of a violation. The words are those of ``Fault`` in structured answers."""

    TYPE = "schema_type_error"
    MISSING = "schema_missing_field"
    UNKNOWN = "schema_unknown_field"
    DUPLICATE = "duplicate_key"
    RULE = "invariant_violation"


@attrs.frozen
class Finding:
    """One violation of a value.

    Attributes:
        message: what is wrong, with no value of the document.
        path: where, as a JSON path.
        fault: the kind of the violation.
        is_of_constant: whether one of several words was expected.
        is_advice: whether pydantic decides, and this only explains why it refuses.
    """

    message: str
    path: str
    fault: Fault
    is_of_constant: bool = False
    is_advice: bool = False


class ExactFloat(float):
    """A number with the digits that the text has.

    Attributes:
        text: the digits.
    """

    text: str

    def __new__(cls, text: str) -> ExactFloat:
        """The number that *text* represents."""
        self = super().__new__(cls, text)
        self.text = text
        return self


@attrs.define
class Growth:
    """The lists of an answer that is still being written. Their items, except for the last ones, are final.

    A final item is looked at once. So the work for one more piece of the answer does not grow with its lists.

    Attributes:
        work: how many parts have been looked at since :meth:`begin`, without the final items of lists.
        is_waiting: whether a field of an open object is still to come.
        open: the ``id`` of each object or array that may go on.
        shortened: the last value without the last item of an open list, by the depth of the list, with the list and its
            length. The value is ``None`` if there is none.
    """

    work: int = 0
    is_waiting: bool = False
    open: frozenset[int] = frozenset()
    shortened: dict[int, tuple[tuple[int, int], Any]] = attrs.field(factory=dict)
    _results: dict[tuple[int, Hashable], list[Any]] = attrs.field(factory=dict)
    _reports: dict[tuple[int, Hashable], Report] = attrs.field(factory=dict)
    _sources: dict[int, list[Any]] = attrs.field(factory=dict)
    _kept_alive: list[list[Any]] = attrs.field(factory=list)

    def begin(self) -> None:
        """Begin with the next state of the answer."""
        self.work = 0
        self._sources.clear()
        self._kept_alive.clear()

    def awaits_more(self, report: Report) -> bool:
        """Whether a field of an open object is still to come, by the *report* of its check."""
        is_defaulted = any(report.defaulted.get(each) for each in self.open)
        return is_defaulted or (report.is_incomplete and bool(self.open))

    def source(self, items: list[Any]) -> int:
        """Return the ``id`` of the lasting list with the *items*."""
        return id(self._sources.get(id(items), items))

    def note(self, copied: list[Any], source: list[Any]) -> list[Any]:
        """Return *copied*, which holds the items of *source*, a list that grows and lasts as long as this object."""
        self._sources[id(copied)] = source
        self._kept_alive.append(copied)  # another list in its place would be taken for it
        self.work += len(copied) // 64
        return copied

    def mapped(self, items: list[Any], cache_key: Hashable, of: Callable[[int, Any, bool], Any]) -> list[Any]:
        """Return what *of* makes of each item. It is called once for a final one.

        Args:
            items: the items so far.
            cache_key: what *of* does, to tell it from others.
            of: takes the index of the item, the item, and whether it is final.
        """
        results = self._results.setdefault((self.source(items), cache_key), [])
        last_index, earlier_work = max(len(items) - 1, 0), self.work
        for index in range(len(results), last_index):
            results.append(of(index, items[index], True))
        self.work = earlier_work  # what is done once is not counted
        mapped_items = results[: len(items)]
        if len(mapped_items) < len(items):
            mapped_items.append(of(last_index, items[last_index], False))
        return self.note(mapped_items, results)

    def checked(
        self, items: list[Any], check: Callable[[int], Check], cache_key: Hashable, path: str, report: Report
    ) -> list[Any]:
        """Return the checked items of a list.

        Args:
            items: the items so far.
            check: returns the check of the item with an index.
            cache_key: as for :meth:`mapped`.
            path: the path of the list.
            report: receives what is found.
        """
        key = cache_key, path
        final_report = self._reports.setdefault((self.source(items), key), report.apart())
        last_report = report.apart()

        def of(index: int, item: Any, is_final: bool) -> Any:
            return check(index)(item, f"{path}[{index}]", final_report if is_final else last_report)

        checked_items = self.mapped(items, key, of)
        final_report.forget()
        report.take(final_report)
        report.take(last_report)
        return checked_items


GROWTH: Final[ContextVar[Growth | None]] = ContextVar("GROWTH", default=None)
"""The lists of the answer whose value is being made, or ``None`` if it is whole."""


@attrs.define
class Report:
    """The result of a check.

    Attributes:
        violations: what is wrong.
        unknown: the paths of keys that the schema does not have.
        renamed: the paths of keys that were read as another, with that one.
        defaulted: for each object with given keys, by its ``id``, whether an optional one is not there.
        opened: the paths of strings that were read as JSON.
        open_string: reads a string as JSON and returns an object or array, or ``None`` if it is neither. ``None`` leaves
            every string closed.
        has_closed: whether a string may hold the JSON of an object or array and was left closed.
        is_incomplete: whether a required field is missing that no validator fills in.
        growth: the lists of an answer that is still being written, or ``None`` if it is whole.
    """

    violations: list[Finding] = attrs.field(factory=list)
    unknown: list[str] = attrs.field(factory=list)
    renamed: list[tuple[str, str]] = attrs.field(factory=list)
    defaulted: dict[int, bool] = attrs.field(factory=dict)
    opened: list[str] = attrs.field(factory=list)
    open_string: Callable[[str], Any] | None = None
    has_closed: bool = False
    is_incomplete: bool = False
    growth: Growth | None = None
    _seen: dict[tuple[int, int], tuple[Any, Report, Any]] = attrs.field(factory=dict, repr=False)

    def add(self, message: str, path: str, fault: Fault = Fault.TYPE) -> None:
        """Note a violation."""
        self.violations.append(Finding(message, path, fault))

    def take(self, other: Report) -> None:
        """Add all entries of *other*."""
        self.defaulted |= other.defaulted
        self.has_closed = self.has_closed or other.has_closed
        self.is_incomplete = self.is_incomplete or other.is_incomplete
        for own_entries, other_entries in (
            (self.violations, other.violations),
            (self.unknown, other.unknown),
            (self.renamed, other.renamed),
            (self.opened, other.opened),
        ):
            own_entries += other_entries[: max(MAX_FINDINGS - len(own_entries), 0)]  # type: ignore[operator]

    def distance(self) -> tuple[int, ...]:
        """The distance of the value from the schema: constants first, then missing keys, then unread keys."""
        missing_findings = [each for each in self.violations if each.fault is Fault.MISSING]
        constant_findings = [each for each in self.violations if each.is_of_constant]
        return (
            len(constant_findings),
            len(missing_findings),
            self.misfits(),
            len(self.unknown),
            len(self.renamed),
            len(self.opened),
        )

    def misfits(self) -> int:
        """The number of violations of the schema. A key that is there twice is a fault of the document alone."""
        return sum(each.fault is not Fault.DUPLICATE for each in self.violations)

    def apart(self) -> Report:
        """Return an empty report for a part that may not count. It shares the cached attempts."""
        return Report(open_string=self.open_string, growth=self.growth, seen=self._seen)

    def forget(self) -> None:
        """Forget what is only known of single objects."""
        self.defaulted, self._seen = {}, {}


Check: TypeAlias = Callable[[Any, str, Report], Any]
"""Takes a value, its path and a report, and returns the value with its keys renamed."""


# -------------------------------------------------------------------------------- metadata
# The facts in the metadata of ``Annotated``: a description, and the limits of a value.
#
# Answers, tools and the fields of every kind of class read them here. A limit or validator that would not be checked is
# refused when the type is declared. Other metadata means nothing to us and is ignored, as PEP 593 says. The libraries
# that
# define limits are recognized by the names of their modules and never imported.


_NUMBER_TYPES: Final = frozenset((int, float, Decimal, timedelta))
_SET_TYPES: Final = frozenset(kind for kind, make in LISTS.items() if make in (set, frozenset))
_WORD_TYPES: Final = {str: "string", int: "number", float: "number"}
_SIZED: Final = {"string": "Length", "array": "Items", "set": "Items", "object": "Properties"}
_KEYWORDS: Final[dict[str, dict[str, str]]] = {
    "ge": {"number": "minimum"},
    "gt": {"number": "exclusiveMinimum"},
    "le": {"number": "maximum"},
    "lt": {"number": "exclusiveMaximum"},
    "multiple_of": {"number": "multipleOf"},
    "min_length": {kind: f"min{what}" for kind, what in _SIZED.items()},
    "max_length": {kind: f"max{what}" for kind, what in _SIZED.items()},
    "pattern": {"string": "pattern"},
}
"""The attribute that holds a limit, and its keyword of JSON Schema for each kind of value that it limits."""

_KIND_PHRASES: Final[dict[str, str]] = {
    "number": "a number",
    "decimal": "a Decimal",
    "string": "a text",
    "bytes": "bytes",
    "array": "a list",
    "object": "a map",
}
_ORDERED_KINDS: Final = ("number", "decimal")
_SIZED_KINDS: Final = ("string", "bytes", "array", "set", "object")
_FITTING_KINDS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(("ge", "gt", "le", "lt", "multiple_of"), _ORDERED_KINDS),
    **dict.fromkeys(("min_length", "max_length"), _SIZED_KINDS),
    **dict.fromkeys(("max_digits", "decimal_places"), ("decimal",)),
    **dict.fromkeys(("pattern", "strip_whitespace", "to_lower", "to_upper"), ("string",)),
    "coerce_numbers_to_str": ("string", "number", "decimal"),
}
"""The kinds of values for each attribute that pydantic checks. To others it applies it too, and refuses every value."""

_OTHER_KINDS: Final[dict[Any, str]] = {
    Decimal: "decimal",
    bytes: "bytes",
    **dict.fromkeys((bool, date, datetime, time, timedelta, UUID, type(None)), ""),
}

_HARMLESS_ATTRIBUTES: Final = frozenset(("strict", "allow_inf_nan", "union_mode", "fail_fast"))
"""Attributes of pydantic that limit nothing here: nothing is coerced, and JSON has neither NaN nor infinity."""

_UNLIMITING_CLASSES: Final = frozenset(
    ("Discriminator", "DocInfo", "PlainSerializer", "SerializeAsAny", "Strict", "AllowInfNan", "FailFast", "Tag", "Unit",
     "WrapSerializer")
)  # fmt: skip
"""Classes of annotated-types and pydantic that refuse no value that is read here."""


@attrs.frozen
class Metadata:
    """The facts of one ``Annotated``.

    Attributes:
        description: the description for the model, or ``None`` if there is none.
        limits: each limit by the name of its attribute, such as ``ge``, with its bound.
    """

    description: str | None
    limits: tuple[tuple[str, Any], ...]


def read_metadata(metadata: Iterable[Any], where: str) -> Metadata:
    """Read the metadata of one ``Annotated``.

    A text describes the value. The limits of annotated-types, of pydantic's ``Field`` and ``StringConstraints``, and of
    any object with attributes of these names are read.

    Args:
        metadata: the objects behind the type.
        where: the place of the type, for messages.

    Raises:
        SchemaDefinitionError: a limit or validator would not be checked.
    """
    parts = [part for each in metadata for part in _parts(each, where)]
    return Metadata(description_of(parts), tuple(limit for each in parts for limit in _limits(each, where)))


def description_of(metadata: Iterable[Any]) -> str | None:
    """The description in *metadata*: a text, or that of a field or of a ``Doc``."""
    texts = (
        text
        for each in metadata
        for text in (each, getattr(each, "description", None), getattr(each, "documentation", None))
    )
    return next((text for text in texts if isinstance(text, str)), None)


def refuse_field_as_default(default: object, where: str) -> None:
    """Refuse pydantic's ``Field(...)`` in the place of a default: only a class of pydantic reads it there.

    Raises:
        SchemaDefinitionError: *default* is one.
    """
    if _is_of(default, "pydantic", "FieldInfo"):
        raise SchemaDefinitionError(
            f"{where}: Field() as a default would not be read; write Annotated[T, Field(...)]"
        )


def limited(schema: dict[str, Any], kind: Any, metadata: Metadata, where: str) -> dict[str, Any]:
    """Return *schema*, of the type *kind*, with the description and the limits of *metadata*.

    Raises:
        SchemaDefinitionError: a limit cannot be expressed in JSON Schema, or *kind* has no such limit.
    """
    for name, bound in metadata.limits:
        if not _is_limited(schema, kind, name, bound, where):
            _refuse(name, where, "its type has no such limit")
    return {**schema, "description": metadata.description} if metadata.description else schema


def refuse_misfits(kind: Any, where: str) -> None:
    """Refuse a limit in *kind*, which pydantic validates, that does not fit its type: pydantic would refuse every value.

    Raises:
        SchemaDefinitionError: there is one.
    """
    if typing.get_origin(kind) is typing.Annotated:
        for each in (part for one in kind.__metadata__ for part in _parts(one, where)):
            for name, fitting_kinds in _FITTING_KINDS.items():
                bound = getattr(each, name, None)
                if not (bound is None or bound is False or _fits(kind.__origin__, fitting_kinds, bound)):
                    kind_text = " or ".join(
                        _KIND_PHRASES[each] for each in fitting_kinds if each in _KIND_PHRASES
                    )
                    raise SchemaDefinitionError(
                        f"{where}: {name} would refuse values, as their type has no such limit; remove it, or give it "
                        f"to {kind_text}"
                    )
    for inner in typing.get_args(kind):
        refuse_misfits(inner, where)


def _fits(kind: Any, fitting_kinds: tuple[str, ...], bound: Any) -> bool:
    """Whether *kind* has the limit *bound* of the *fitting_kinds*. A kind that only pydantic knows always has it."""
    kind = _bare(kind)
    if members := [each for each in union_members(kind) if each is not type(None)]:
        return all(_fits(each, fitting_kinds, bound) for each in members)
    if fitting_kinds is _ORDERED_KINDS and not isinstance(bound, int | float | Decimal):
        return not isinstance(kind, type) or type(bound) is kind  # a date or text
    if kind is Any:
        return "decimal" not in fitting_kinds or fitting_kinds is _ORDERED_KINDS
    if isinstance(kind, type) and kind in _OTHER_KINDS:
        return _OTHER_KINDS[kind] in fitting_kinds
    if kinds := _kinds(kind):
        return all(each in fitting_kinds for each in kinds)
    return not has_fields(kind)


def _bare(kind: Any) -> Any:
    """*kind* without ``Annotated`` and ``NewType`` around it."""
    while typing.get_origin(kind) is typing.Annotated or hasattr(kind, "__supertype__"):
        kind = typing.get_args(kind)[0] if typing.get_origin(kind) else kind.__supertype__
    return kind


def _is_limited(schema: dict[str, Any], kind: Any, name: str, bound: Any, where: str) -> bool:
    """Add one limit to *schema*. Return whether *kind* has such a limit: of a union, whether any member has."""
    kind = _bare(kind)
    if members := union_members(kind):
        pairs = zip(schema["anyOf"], members, strict=True)
        limit_flags = [_is_limited(each, member, name, bound, where) for each, member in pairs]
        return any(limit_flags)
    kinds = _kinds(kind)
    keywords = {_KEYWORDS[name][each] for each in kinds if each in _KEYWORDS[name]}
    for keyword in sorted(keywords):
        schema[keyword] = _both(name, schema[keyword], bound, where) if keyword in schema else bound
    if name == "min_length" and "set" in kinds:
        schema["uniqueItems"] = True  # an item that is there twice counts once
    return bool(keywords)


def _both(name: str, first: Any, second: Any, where: str) -> Any:
    """The bound that is in force where two of one kind are declared."""
    if name in ("ge", "gt", "min_length"):
        return max(first, second)
    if name in ("le", "lt", "max_length"):
        return min(first, second)
    return first if first == second else _refuse(name, where, "there are two")


def _is_of(each: object, package: str, name: str | None = None) -> bool:
    """Whether *each* is an instance of the class *name* of *package*, or of any of its classes if there is no *name*."""
    return any(
        base.__module__.partition(".")[0] == package and name in (None, base.__name__)
        for base in type(each).__mro__
    )


def _parts(each: Any, where: str) -> Iterator[Any]:
    """*each*, and what it groups."""
    if _is_of(each, "pydantic", "FieldInfo"):
        yield each.description
        _refuse_unread(each, where)
        inner_parts = each.metadata
    elif not isinstance(each, type) and hasattr(each, "__is_annotated_types_grouped_metadata__"):
        inner_parts = each
    else:
        yield each
        return
    for one in inner_parts:
        yield from _parts(one, where)


def _refuse_unread(field: Any, where: str) -> None:
    """Refuse an alias or a default of pydantic's ``Field`` in an ``Annotated``: only a class of pydantic reads it there."""
    if field.alias or field.validation_alias:
        raise SchemaDefinitionError(
            f"{where}: the alias of Field() would not be read; write it into the metadata of the field of your class, "
            "or use a pydantic model"
        )
    if not field.is_required():
        raise SchemaDefinitionError(f"{where}: the default of Field() would not be read; write it behind =")


def _limits(each: Any, where: str) -> Iterator[tuple[str, Any]]:
    """The limits that one object declares."""
    if isinstance(each, re.Pattern):
        yield "pattern", _pattern(each, where)
        return
    is_known = _is_of(each, "annotated_types") or hasattr(each, "__get_pydantic_core_schema__")
    name = type(each).__name__ if not isinstance(each, type) else each.__name__
    is_read = False
    for attribute in _KEYWORDS:
        bound = getattr(each, attribute, None)
        if bound is None or not (is_known or isinstance(bound, int | float | str)):
            continue
        is_read = True
        yield attribute, _bound(attribute, bound, where)
    if not is_known or name in _UNLIMITING_CLASSES:
        return
    if _is_of(each, "pydantic", "PydanticMetadata"):
        for attribute, value in vars(each).items():
            if attribute not in _KEYWORDS and attribute not in _HARMLESS_ATTRIBUTES and value:
                _leave_to_pydantic(attribute, where)
    elif name == "Timezone":
        if each.tz is not ...:  # every time has a zone
            _refuse(name, where, "pydantic ignores it")
    elif not is_read:
        _leave_to_pydantic(name, where)


def _bound(name: str, bound: Any, where: str) -> Any:
    """*bound* as JSON Schema writes it."""
    if name == "pattern":
        return _pattern(bound, where)
    if isinstance(bound, Decimal) and bound == Decimal(repr(float(bound))):
        bound = float(bound)
    is_number = type(bound) is int or (isinstance(bound, float) and math.isfinite(bound))
    return bound if is_number else _leave_to_pydantic(name, where, "JSON Schema has no such bound")


def _pattern(pattern: Any, where: str) -> str:
    if isinstance(pattern, re.Pattern):
        if not isinstance(pattern.pattern, str) or pattern.flags != re.UNICODE:
            _leave_to_pydantic("pattern", where, "JSON Schema has no flags and no bytes")
        return str(pattern.pattern)
    return pattern if isinstance(pattern, str) else _refuse("pattern", where, "it is not a text")


def _refuse(
    name: str, where: str, reason: str, error: type[SchemaDefinitionError] = SchemaDefinitionError
) -> NoReturn:
    raise error(
        f"{where}: {name} would not be checked, as {reason}; put it into a pydantic model, "
        "or check the value in your own code"
    )


def _leave_to_pydantic(name: str, where: str, reason: str = "it is not supported here") -> NoReturn:
    _refuse(name, where, reason, UncheckedLimitError)


def _kinds(kind: Any) -> tuple[str, ...]:
    """The kinds of values of the type *kind* that a limit may be about."""
    if typing.get_origin(kind) is Literal:
        return tuple(_WORD_TYPES.get(type(json_word(word)), "") for word in typing.get_args(kind))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return tuple(_WORD_TYPES.get(type(word.value), "") for word in kind)
    if kind is Any:
        return "number", "string", "array", "object"
    if kind is str:
        return ("string",)
    if kind in _NUMBER_TYPES:
        return ("number",)
    if origin_of(kind) in LISTS:
        return ("set" if origin_of(kind) in _SET_TYPES else "array",)
    return ("object",) if origin_of(kind) in MAPPINGS else ()
