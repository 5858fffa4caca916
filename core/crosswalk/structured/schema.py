"""The schema of an answer: an attrs class with its invariants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final, Generic, TypeVar

import attrs
import orjson

from crosswalk.codec.classes import is_class, required_keys
from crosswalk.codec.converters import shared_converter
from crosswalk.codec.located import problems_in
from crosswalk.codec.problems import MissingKey, Refused, TooDeep, UnknownKey
from crosswalk.errors import CrosswalkError
from crosswalk.structured.errors import SchemaDefinitionError
from crosswalk.structured.json_schema import schema_of_class
from crosswalk.structured.reason import ReasonCode
from crosswalk.structured.result import Candidate, Violation
from crosswalk.text import clean_message

__all__ = ["Invariant", "Schema"]

T = TypeVar("T")

_MOST_VIOLATIONS: Final = 50
_GRAVEST_FIRST: Final = (
    ReasonCode.LIMIT_EXCEEDED,
    ReasonCode.TRUNCATED,
    ReasonCode.DUPLICATE_KEY,
    ReasonCode.REPAIR_FAILED,
    ReasonCode.SCHEMA_UNKNOWN_VERSION,
    ReasonCode.SCHEMA_MISSING_FIELD,
    ReasonCode.SCHEMA_UNKNOWN_FIELD,
    ReasonCode.SCHEMA_TYPE_ERROR,
    ReasonCode.INVARIANT_VIOLATION,
    ReasonCode.MIGRATION_FAILED,
)


@attrs.frozen
class Invariant(Generic[T]):
    """A rule that a whole value has to keep.

    Attributes:
        message: what has to hold, for the violation and for the model's instructions:
            ``'items_total' must be >= 'items_shown'``.
        holds: takes the value, gives whether the rule is kept. What it raises counts as broken.
    """

    message: str
    holds: Callable[[T], bool]

    def is_kept(self, value: T) -> bool:
        """Whether *value* keeps the rule."""
        return not _broken((self,), value)


def _broken(rules: tuple[Invariant[T], ...], value: T) -> tuple[Invariant[T], ...]:
    """Those of *rules* that *value* breaks; each is asked once."""
    broken: tuple[Invariant[T], ...] = ()
    for rule in rules:
        try:
            if rule.holds(value):
                continue
        except Exception:  # a rule that cannot be worked out is not kept; its message names it
            pass
        broken += (rule,)
    return broken


def reason_of(violations: tuple[Violation, ...]) -> ReasonCode:
    """The reason that *violations* give together: the gravest."""
    codes = {violation.code for violation in violations}
    return next((code for code in _GRAVEST_FIRST if code in codes), ReasonCode.SCHEMA_TYPE_ERROR)


def _as_answer_class(_: Any, __: Any, cls: Any) -> None:
    if not is_class(cls):
        name = getattr(cls, "__name__", repr(cls))
        raise SchemaDefinitionError(f"{name} is no attrs class, so it cannot be the schema of an answer")


def _as_invariants(rules: Iterable[Invariant[T]]) -> tuple[Invariant[T], ...]:
    found = tuple(rules)
    if not all(isinstance(rule, Invariant) for rule in found):
        raise SchemaDefinitionError("an invariant is an Invariant: a message and a function")
    return found


@attrs.frozen
class Schema(Generic[T]):
    """What an answer has to look like.

    A field may be ``str``, ``int``, ``float``, ``bool``, ``None``, ``Any``, ``date``, ``datetime`` (with a
    zone), ``timedelta`` (in seconds), ``Decimal`` (as text), an enum, a ``Literal``, a list, tuple, dict or mapping of
    these, another attrs class, or a union. Its JSON key is its name, or its ``alias``. Its attrs ``metadata`` may
    hold ``required`` (the key has to be there although the field has a default), ``description`` and
    ``json_schema`` (further keywords for the JSON Schema).

    Attributes:
        cls: the attrs class.
        invariants: the rules between its fields, checked in order once the types are right.
        forbid_unknown: refuse keys that the class does not have; they are passed over by default, as models like
            to add some.

    Raises:
        SchemaDefinitionError: *cls* is no attrs class, or a field has a type that JSON cannot tell.
    """

    cls: type[T] = attrs.field(validator=_as_answer_class)
    invariants: tuple[Invariant[T], ...] = attrs.field(default=(), converter=_as_invariants)
    forbid_unknown: bool = False
    _structure: Callable[[Any, type[T]], T] = attrs.field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        self.json_schema()  # so that a field that cannot be read is refused here, not with the first answer
        converter = shared_converter(forbid_extra_keys=self.forbid_unknown)
        object.__setattr__(self, "_structure", converter.get_structure_hook(self.cls))

    @property
    def required_fields(self) -> frozenset[str]:
        """The keys that have to be there."""
        return required_keys(self.cls)

    def read(self, data: Any) -> Candidate[T]:
        """The value that decoded JSON stands for, or ``None`` and what is wrong with it; never raises."""
        try:
            value = self._structure(data, self.cls)
        except Exception as error:
            return None, tuple(islice(_violations_in(error), _MOST_VIOLATIONS)), None
        if self.invariants and (broken := _broken(self.invariants, value)):
            said = (Violation(rule.message, code=ReasonCode.INVARIANT_VIOLATION) for rule in broken)
            return None, tuple(said), None
        return value, (), None

    def json_schema(self) -> dict[str, Any]:
        """The JSON Schema (2020-12) of a valid answer, invariants left out; a new dict each time."""
        return schema_of_class(self.cls, forbid_unknown=self.forbid_unknown)

    def instructions(self, example: Any = None) -> str:
        """What to append to a system prompt so that the model answers in this form.

        Args:
            example: a valid answer as plain JSON values, to be shown; ``None`` for none.

        Raises:
            TypeError: *example* is no JSON.
        """
        parts = [
            "Answer with one JSON object and nothing else: no text before or after it, no Markdown fence, no comments.",
            f"It must conform to this JSON Schema:\n\n{_shown(self.json_schema())}",
        ]
        if self.invariants:
            rules = "\n".join(f"- {rule.message}" for rule in self.invariants)
            parts.append(f"These rules must hold:\n\n{rules}")
        if example is not None:
            parts.append(f"For example:\n\n{_shown(example)}")
        return "\n\n".join(parts) + "\n"


def _shown(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


_CODES: Final = {
    MissingKey: ReasonCode.SCHEMA_MISSING_FIELD,
    UnknownKey: ReasonCode.SCHEMA_UNKNOWN_FIELD,
    Refused: ReasonCode.INVARIANT_VIOLATION,
}
_SAID: Final = {MissingKey: "a required field is missing", UnknownKey: "unknown field"}


def _violations_in(error: Exception) -> Iterator[Violation]:
    """What reading raised, place by place, without a value of the document."""
    for problem in problems_in(error):
        if isinstance(problem, TooDeep):
            yield Violation("nested too deeply", "$", ReasonCode.LIMIT_EXCEEDED)
            continue
        if not isinstance(problem, Refused):
            said = _SAID.get(type(problem)) or problem.unquoted
        elif isinstance(problem.cause, CrosswalkError):
            said = clean_message(str(problem), 200)
        else:  # what it says may quote the value; an error of ours never does
            said = f"refused by {problem.cls.__name__} with {type(problem.cause).__name__}"
        yield Violation(said, f"${problem.at}", _CODES.get(type(problem), ReasonCode.SCHEMA_TYPE_ERROR))
