"""Inputs that are meant to break a parser: odd choices, odd classes, odd rules, deep and costly texts."""

from __future__ import annotations

from enum import Enum
from typing import Any, Literal

import attrs
import jsonschema
import orjson
import pytest

from crosswalk.errors import ConfigurationError, CrosswalkError
from crosswalk.structured import (
    AnswerTypeError,
    Invariant,
    MemoryCache,
    MigrationError,
    Partial,
    ReasonCode,
    ResponseParser,
    ResponseValidator,
    Schema,
    SchemaDefinitionError,
    SchemaVersions,
    Stage,
    StructuredParser,
    StructuredResponse,
    value_to_json,
)
from crosswalk.types import ChatMessage, ToolCall, UsageInfo

from .answers import POINTS, Everything, Picky, Point

PARSER = StructuredParser(POINTS)
CUT = '{"x": 1, "y": 2'


# ------------------------------------------------------------------------------------- odd arguments


def test_partial_may_be_a_word() -> None:
    assert PARSER.parse(CUT, partial="refuse").value is None  # type: ignore[arg-type]
    assert PARSER.parse(CUT, partial="accept").value == Point(1)  # type: ignore[arg-type]
    assert ResponseParser.parse_with_fallbacks("{", partial="refuse")[0] is None  # type: ignore[arg-type]


@pytest.mark.parametrize("partial", [None, False, True, "REFUSE", "", 1, ["refuse"]])
def test_what_is_no_choice_is_refused(partial: Any) -> None:
    caching = StructuredParser(POINTS, cache=MemoryCache())
    for parser in (PARSER, caching):
        for text in (CUT, '{"x": 1}'):
            with pytest.raises(ConfigurationError, match="partial: pass one of refuse, close, accept"):
                parser.parse(text, partial=partial)
            with pytest.raises(ConfigurationError):
                parser.parse_tool_call(ToolCall("1", "f", text), partial=partial)
            with pytest.raises(ConfigurationError):
                next(parser.parse_stream([text], partial=partial))
            with pytest.raises(ConfigurationError):
                parser.parse(text + " ", partial=partial)


@pytest.mark.parametrize("answer", [None, b'{"x": 1}', 5, ["{}"]])
def test_what_is_no_answer_is_refused(answer: Any) -> None:
    with pytest.raises(
        AnswerTypeError, match="an answer is a str, a ChatResponse, an Alternative or a ToolCall, not"
    ):
        PARSER.parse(answer)
    with pytest.raises(AnswerTypeError, match="a piece is a str or a ResponseDelta, not"):
        list(PARSER.parse_stream([answer]))
    assert issubclass(AnswerTypeError, CrosswalkError)


# ------------------------------------------------------------------------------------ odd migrations


@attrs.frozen
class Many:
    xs: list[str]


@pytest.mark.parametrize("made", ["no Many", Many([1]), None, Many(["a"] * 3 + [object()])])  # type: ignore[arg-type, list-item]
def test_what_a_migration_makes_is_checked(made: Any) -> None:
    versions: SchemaVersions[Any] = SchemaVersions()
    versions.register("1.0", Point).register("2.0", Many, upgrade=lambda _: made)
    result = StructuredParser(versions, version="2.0").parse('{"x": 1}')
    assert (result.value, result.stage, result.reason) == (None, Stage.FAILURE, ReasonCode.MIGRATION_FAILED)


def test_a_migration_gives_what_an_answer_would() -> None:
    versions: SchemaVersions[Any] = SchemaVersions()
    versions.register("1.0", Point).register("2.0", Many, upgrade=lambda point: Many((str(point.x),)))  # type: ignore[arg-type]
    assert StructuredParser(versions, version="2.0").parse('{"x": 1}').value == Many(["1"])
    with pytest.raises(MigrationError, match="from 2.0 to 1.0: would lose") as caught:
        _lossy().migrate(Many([]), "1.0")
    assert (caught.value.source, caught.value.target) == ("2.0", "1.0")


def _lossy() -> SchemaVersions[Any]:
    def refuse(_: Any) -> Any:
        raise MigrationError("would lose 'xs'")

    versions: SchemaVersions[Any] = SchemaVersions()
    versions.register("1.0", Point)
    return versions.register("2.0", Many, upgrade=lambda _: Many([]), downgrade=refuse)


# ---------------------------------------------------------------------------------------- odd rules


def test_a_rule_is_asked_once() -> None:
    """Also one that changes its mind: there is a value, or there is a violation."""
    for starts_with in (True, False):
        said = [starts_with]

        def fickle(_: Point, said: list[bool] = said) -> bool:
            said.append(not said[-1])
            return said[-2]

        result = StructuredParser(Schema(Point, [Invariant("fickle", fickle)])).parse('{"x": 1}')
        assert len(said) == 2
        assert result.ok is (result.value is not None) is (result.reason is ReasonCode.SUCCESS) is starts_with
        assert (result.errors == ["fickle"]) is not starts_with


def test_an_invariant_is_an_invariant() -> None:
    with pytest.raises(SchemaDefinitionError, match="an invariant is an Invariant"):
        StructuredParser(Point, invariants=["no"])  # type: ignore[list-item]


# ------------------------------------------------------------------------------------- unions, words


class Kind(Enum):
    A = "a"
    B = "b"


class Odd(Enum):
    LIST = [1]


@attrs.frozen
class Cat:
    age: int


@attrs.frozen
class Dog:
    age: str


@attrs.frozen
class One:
    v: Literal[1]
    a: int = 0


@attrs.frozen
class Two:
    v: Literal[2]
    a: int = 0


def holding(kind: object) -> type:
    return attrs.make_class("Holding", {"value": attrs.field(type=kind)}, frozen=True)  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (Cat | Dog, {"age": "1"}, {"age": None}),
        (Cat | Dog, {"age": 1}, {"age": 1.5}),
        (list[int] | list[str], ["a"], [None]),
        (dict[str, int] | dict[str, str], {"a": "b"}, {"a": None}),
        (Cat | dict[str, Any], {"age": "x"}, 5),
        (One | Two, {"v": 2, "a": 1}, {"v": 3}),
        (Literal[Kind.A], "a", "b"),
        (Literal[Kind.A] | None, None, "b"),
        (list[Cat] | list[Dog], [{"age": "1"}], [{"age": 1}, {"age": "1"}]),
        (Cat | Any, {"age": []}, ...),
        (UsageInfo | Cat, {"age": 1}, {"age": "1"}),
    ],
    ids=str,
)
def test_a_union_takes_what_its_json_schema_takes(kind: object, good: object, bad: object) -> None:
    schema = Schema(holding(kind))
    jsonschema.validate({"value": good}, schema.json_schema())
    value, violations, _ = schema.read({"value": good})[:3]
    assert violations == ()
    assert orjson.loads(value_to_json(value))["value"] == good
    if bad is not ...:
        assert schema.read({"value": bad})[1]
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"value": bad}, schema.json_schema())


@pytest.mark.parametrize("kind", [Odd, Literal[b"a"]])
def test_a_word_that_json_cannot_tell_is_refused(kind: object) -> None:
    with pytest.raises(SchemaDefinitionError, match=r"Holding.value: a word of an answer is"):
        Schema(holding(kind))


@attrs.frozen
class Tree:
    left: Tree | Twin | int = 0
    right: Tree | Twin | int = 0


@attrs.frozen
class Twin:
    left: Twin | Tree | str = ""
    right: Twin | Tree | str = ""


def test_a_deep_union_is_read_in_time_that_grows_with_it() -> None:
    deep: dict[str, Any] = {"left": None}
    for _ in range(30):
        deep = {"left": deep, "right": deep}
    # One object at many places: a copy would have a billion.
    assert Schema(Tree).read(deep)[0] is None


# ----------------------------------------------------------------------------------- deep and unequal


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


@attrs.frozen
class Loose:
    anything: Any = None
    more: Loose | None = None


@pytest.mark.untraced
@pytest.mark.parametrize("depth", [99, 100, 300, 900, 5000])
def test_what_is_read_can_be_written_and_shown(depth: int) -> None:
    parser = StructuredParser(Loose)
    for text in (
        f'{{"anything": {nested(depth)}}}',
        '{"more": ' * depth + "{}" + "}" * depth,
        f'So: {{"anything": {nested(depth)}}}',
        f'{{"anything": {nested(depth)},}}',
    ):
        result = parser.parse(text)
        assert result.ok is (depth < 100), result
        if result.value is not None:
            assert parser.parse(value_to_json(result.value).decode()).value == result.value
            assert repr(result)
        else:
            assert result.reason in (ReasonCode.LIMIT_EXCEEDED, ReasonCode.TRUNCATED)
        *_, last = parser.parse_stream([text[: len(text) // 2], text[len(text) // 2 :]])
        assert attrs.evolve(last, fields=None, final=frozenset()) == result
    answer = f'{{"answer": "A", "items_shown": 1, "sources": [{{"a": {nested(depth)}}}]}}'
    response, fallback = ResponseParser.parse_with_fallbacks(answer)
    if response is None:
        assert fallback.reason is ReasonCode.LIMIT_EXCEEDED
        assert ResponseValidator.parse_and_validate(answer)[0] is None
    else:
        assert StructuredResponse(**response.to_dict()) == response


@attrs.frozen(eq=False)
class Incomparable:
    x: int

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    __hash__ = None  # type: ignore[assignment]


def test_a_class_may_compare_as_it_likes() -> None:
    steps = [
        step.value.x
        for step in StructuredParser(Incomparable).parse_stream(['{"x": 1', ", ", "}"])
        if step.value
    ]
    assert steps == [1, 1, 1]


class SpeechlessError(ValueError):
    """One that cannot be shown."""

    def __str__(self) -> str:
        raise RuntimeError


def _refuse(*_: Any) -> None:
    raise SpeechlessError


@attrs.frozen
class Speechless:
    x: int = attrs.field(validator=_refuse)


def test_an_exception_that_cannot_be_shown_is_a_violation() -> None:
    result = StructuredParser(Speechless).parse('{"x": 1}')
    assert result.errors == ["refused by Speechless with SpeechlessError"]


# ----------------------------------------------------------------------------------- versions, content


def test_the_result_has_the_version_that_a_document_names_also_where_it_is_invalid() -> None:
    parser = ResponseParser(cache=MemoryCache())
    for version in ("1.1", "2.0", "3.0", "1.7"):
        first = parser.parse(f'{{"schema_version": "{version}", "answer": 5}}')
        assert first.schema_version == version
        assert parser.parse(f'{{"schema_version": "{version}", "answer": 5}}') == first
    assert parser.parse('{"answer": "A", "items_shown": 1}').schema_version == "1.0"


def test_the_key_of_a_cache_covers_the_registry() -> None:
    cache = MemoryCache()

    def registry(key: str, default: str) -> SchemaVersions[Any]:
        versions: SchemaVersions[Any] = SchemaVersions(key, default=default)
        return versions.register("1.0", Point).register("2.0", Many, upgrade=lambda _: Many([]))

    for key in ("v", "version"):
        for default in ("1.0", "2.0"):
            StructuredParser(registry(key, default), cache=cache).parse('{"x": 1, "xs": []}')
    assert (cache.stats().misses, cache.stats().hits) == (4, 0)


@attrs.frozen
class InSet:
    word: str = attrs.field(validator=attrs.validators.in_(["a", "b"]))


SECRET = "sk-secret"


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (Everything, f'{{"text": "t", "needed": 1, "colour": "{SECRET}"}}'),
        (Everything, f'{{"text": "t", "needed": 1, "size": "{SECRET}"}}'),
        (Everything, f'{{"text": "t", "needed": 1, "day": "{SECRET}"}}'),
        (Everything, f'{{"text": "t", "needed": 1, "moment": "{SECRET}"}}'),
        (Everything, f'{{"text": "t", "needed": 1, "shape": {{"kind": "{SECRET}"}}}}'),
        (InSet, f'{{"word": "{SECRET}"}}'),
        (Picky, f'{{"word": "{SECRET}"}}'),
    ],
)
def test_a_violation_quotes_no_value(schema: type, text: str) -> None:
    result = StructuredParser(schema).parse(text)
    assert result.errors
    assert SECRET not in str(result.errors)


def test_an_unknown_version_is_quoted_only_where_it_looks_like_one() -> None:
    assert "'3.0'" in ResponseParser().parse('{"schema_version": "3.0"}').errors[0]
    assert SECRET not in ResponseParser().parse(f'{{"schema_version": "{SECRET}"}}').errors[0]


def test_a_migration_s_own_exception_is_not_quoted() -> None:
    versions: SchemaVersions[Any] = SchemaVersions()
    versions.register("1.0", Picky).register("2.0", Many, upgrade=lambda picky: int(picky.word))
    result = StructuredParser(versions, version="2.0").parse('{"word": "sk-1"}')
    assert result.errors == ["from 1.0 to 2.0: ValueError @ $"]


def test_the_place_is_the_field_that_the_class_refused() -> None:
    assert [v.path for v in StructuredParser(InSet).parse('{"word": "c"}').violations] == ["$.word"]


class OwnError(CrosswalkError, ValueError):
    """One of the user's that keeps the rule of our errors: no content."""


@attrs.frozen
class Outspoken:
    x: int

    def __attrs_post_init__(self) -> None:
        raise OwnError("never good enough")


def test_an_error_of_ours_says_what_is_wrong() -> None:
    assert StructuredParser(Outspoken).parse('{"x": 1}').errors == ["never good enough"]


def test_a_word_of_a_canonical_type_is_not_quoted() -> None:
    parser = StructuredParser(holding(ChatMessage))
    (problem,) = parser.parse(f'{{"value": {{"role": "{SECRET}", "content": ""}}}}').errors
    assert SECRET not in problem
    assert "$.value.role" in problem


@pytest.mark.parametrize("partial", Partial)
@pytest.mark.parametrize("whole", ['{"x": 1}', "{'x': 1}"])
def test_a_whole_answer_before_one_that_breaks_off_is_not_taken(partial: Partial, whole: str) -> None:
    """The one that breaks off may be the correction: what is known of it counts, and that it is not whole."""
    result = PARSER.parse(f'{whole} then {{"z": 2,', partial=partial)
    assert (result.value, result.reason) == (None, ReasonCode.TRUNCATED)
    result = PARSER.parse(f'{whole} then {{"x": 3,', partial=partial)
    assert result.value == (None if partial is Partial.REFUSE else Point(3))
    assert result.reason is ReasonCode.TRUNCATED
