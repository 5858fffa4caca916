"""Answers in a stream: JSON is read as it grows, and each step is what the reader of any text gives there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple

import attrs
import pydantic
import pytest
from hypothesis import given, settings, strategies as st

from answer_corpus import SCHEMAS, load_corpus
from crosswalk.structured import (
    Invariant,
    ParseResult,
    Schema,
    SchemaVersions,
    StructuredParser,
)
from tries import tries

from .answer_table import load_table
from .answers import POINTS, Point
from .user_types import TYPES, Declared


def pieces_of(text: str, size: int) -> Iterator[str]:
    return (text[at : at + size] for at in range(0, len(text), size))


def known(step: ParseResult[Any] | None) -> Any:
    """What a step tells."""
    if step is None:
        return None
    return (
        step.value, step.fields, set(step.final), step.cut, step.unknown, step.renamed, step.opened, step.partial
    )  # fmt: skip


def as_any_text(parser: StructuredParser[Any], text: str) -> Any:
    """What the reader of any text gives where *text* is the answer so far: reasoning before it is not JSON."""
    steps = list(parser.parse_stream(["<think>So.</think>" + text]))
    return known(steps[0] if len(steps) > 1 else None)


def assert_steps_are_those_of_any_text(parser: StructuredParser[Any], text: str) -> None:
    partial = parser.partial_parser()
    shown = None
    for end, character in enumerate(text, start=1):
        if (step := partial.feed(character)) is not None:
            shown = known(step)
            assert shown == as_any_text(parser, text[:end]), text[:end]
            assert all(path in step.final for path in step.final)
    final = parser.parse(text)
    *_, last = parser.parse_stream(pieces_of(text, 3))
    assert attrs.evolve(last, fields=None, final=frozenset()) == final
    if shown is not None and final.ok and len(text) <= 256:
        assert (last.fields, set(last.final)) == shown[1:3]


@attrs.frozen
class Row:
    name: str
    price: Decimal
    colour: Literal["red", "green"] | None = None
    tags: tuple[str, ...] = ()


@attrs.frozen
class Table:
    rows: list[Row]
    unit_of_all: str = "EUR"


class Bought(pydantic.BaseModel):
    name: str
    price: Decimal
    when: date | None = None


class Cart(pydantic.BaseModel):
    bought: list[Bought]
    note: str = ""


class Pair(NamedTuple):
    left: int
    right: list[int]


ROWS = [
    {"name": 'te\u00e4 \U0001f999 "x"\n', "price": 12.50, "tags": ["a", "b"]},
    {"Name": "b", "price": 3, "colour": "green", "more": {"x": [1, {"y": None}]}},
    {"tags": [], "name": "", "price": 1e3, "colour": None},
]
CART = {
    "bought": [{"name": "a", "price": 12.50, "when": "2024-05-01"}, {"name": "b", "price": 1}],
    "note": "x",
}
TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "of": {"items": {"$ref": "#"}}},
}
DOCUMENTS: list[tuple[str, Any, Any]] = [
    ("a class", Table, {"Unit Of All": "USD", "rows": ROWS}),
    ("a list", list[Row], ROWS),
    ("a list under a key", list[Row], {"value": ROWS}),
    ("a list of pydantic", list[Bought], CART["bought"]),
    ("pydantic", Cart, CART),
    ("a union", Table | Row, {"rows": ROWS}),
    ("a list of unions", list[Row | Pair | int], [ROWS[0], 1, {"left": 1, "right": [2, 3]}]),
    ("lists of lists", list[list[int]], [[1, 2], [], [3]]),
    ("a pair", tuple[int, list[str]], [1, ["a", "b"]]),
    ("a set", set[int], [1, 22, 333]),
    ("a map", dict[str, list[Row]], {"a b": ROWS, "c": []}),
    ("anything", Any, {"a": [1, {"b": ROWS}]}),
    ("a JSON Schema", TREE, {"n": 1, "of": [{"n": 2, "of": []}, {"n": 3, "of": [{"n": 4}]}]}),
    ("a JSON Schema for jsonschema", {**TREE, "not": {"required": ["z"]}}, {"n": 1, "of": [{"n": 2}]}),
    ("limits", Annotated[list[Annotated[str, pydantic.Field(max_length=3)]], pydantic.Field(min_length=2)], ["a", "bc"]),
    ("JSON in a string", dict[str, list[int]], {"a": "[1, 2]", "b": [3]}),
    ("what does not fit", Table, {"rows": [{"name": "x", "price": "dear"}]}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "document"), [each[1:] for each in DOCUMENTS], ids=[each[0] for each in DOCUMENTS]
)
@pytest.mark.parametrize("layout", [{"ensure_ascii": True}, {"indent": 1, "ensure_ascii": False}])
def test_each_step_is_that_of_any_text(kind: Any, document: Any, layout: dict[str, Any]) -> None:
    assert_steps_are_those_of_any_text(StructuredParser(kind), json.dumps(document, **layout))


OF_USERS = {
    name: one for name, one in TYPES.items() if isinstance(one, Declared) and one.good[0] in "{[" and one.bad
}


@pytest.mark.untraced
@pytest.mark.parametrize("name", OF_USERS)
def test_each_type_of_a_user_is_read_in_a_stream(name: str) -> None:
    one = OF_USERS[name]
    parser: StructuredParser[Any] = StructuredParser(one.kind)
    for text in (one.good, one.bad, f'{{"value": {one.good}}}'):
        assert_steps_are_those_of_any_text(parser, text)
    *_, last = parser.parse_stream(one.good)
    assert last.value == one.value


@settings(max_examples=tries(40))
@given(
    st.fixed_dictionaries(
        {"rows": st.lists(st.fixed_dictionaries(
            {"name": st.text(max_size=4), "price": st.integers(0, 99) | st.just(12.5)},
            optional={"colour": st.sampled_from(["red", "green", None]), "Tags": st.lists(st.just("a"), max_size=2),
                      "x": st.recursive(st.integers() | st.text(max_size=3), lambda inner: st.lists(inner, max_size=2))},
        ), max_size=3)},
        optional={"unit_of_all": st.text(max_size=3), "other": st.lists(st.floats(allow_nan=False, allow_infinity=False))},
    ),
    st.sampled_from([Table, dict[str, Any], Table | Row, Schema(Table, [Invariant("few", lambda table: len(table.rows) < 3)])]),
    st.booleans(),
)  # fmt: skip
def test_each_step_of_any_document_is_that_of_any_text(
    document: dict[str, Any], kind: Any, is_ascii: bool
) -> None:
    text = json.dumps(document, ensure_ascii=is_ascii)
    assert_steps_are_those_of_any_text(StructuredParser(kind), text[:250])


BEGUN = [each for each in load_corpus() if each.text.lstrip()[:1] in ("{", "[") and len(each.text) < 300]
IN_TABLE = [each for each in load_table() if each.text.lstrip()[:1] in ("{", "[")]


@pytest.mark.untraced
@pytest.mark.parametrize("part", range(8))
def test_damaged_answers_are_read_as_any_text(part: int) -> None:
    parsers: dict[str, StructuredParser[Any]] = {}
    for answer in BEGUN[part::64]:
        parser = parsers.setdefault(answer.schema, StructuredParser(SCHEMAS[answer.schema]))
        assert_steps_are_those_of_any_text(parser, answer.text)
    for case in IN_TABLE[part::200]:
        parser = parsers.setdefault(repr(case.type), StructuredParser(case.type))
        assert_steps_are_those_of_any_text(parser, case.text)


@pytest.mark.sweep
def test_every_answer_of_both_tables_is_read_as_any_text() -> None:
    parsers: dict[str, StructuredParser[Any]] = {}
    for answer in BEGUN:
        parser = parsers.setdefault(answer.schema, StructuredParser(SCHEMAS[answer.schema]))
        assert_steps_are_those_of_any_text(parser, answer.text)
    for case in IN_TABLE:
        parser = parsers.setdefault(repr(case.type), StructuredParser(case.type))
        assert_steps_are_those_of_any_text(parser, case.text)


UNSOUND = [
    "{,", '{"x":: 1}', '{"x" "y": 1}', '{"x": 1 "y": 2}', '{"x": 1,}', "[1,]", "[1}", '{"x": 1]', "{1: 2}", '{"x": 1, "x": 2}',
    '{"x": tru_e}', '{"x": 1e999}', '{"x": 1.e}', '{"x": 01}', '{"x": \'1\'}', '{"x": "a\x00b"}', '{"x": "\\q"}',
    '{"x": "\\ud800y"}', '{"x": 1} and', '{"x": 1}{"x": 2}', '{"x": 1}}', "{} 1", '{"x": -}', "]", ", {}", '{"x": "\\', '{"x": }',
    '{"x": 1, "y": 2.5} // c', '"x"', '"{\\"x\\": 1}"', "tru", "12", "{12", '["a" tr', "[" * 120, '{"x": ' + "9" * 5000 + "}",
    '{"x": "a\nb"}', "{:", '{"x"}',
]  # fmt: skip


@pytest.mark.parametrize("text", UNSOUND)
def test_what_is_not_json_is_read_as_any_text(text: str) -> None:
    assert_steps_are_those_of_any_text(StructuredParser(POINTS), text)
    assert_steps_are_those_of_any_text(StructuredParser(list[Any]), text)
    *_, last = StructuredParser(POINTS).parse_stream([text])
    assert attrs.evolve(last, fields=None, final=frozenset()) == StructuredParser(POINTS).parse(text)


def test_a_registry_is_read_in_each_step() -> None:
    versions: SchemaVersions[Any] = SchemaVersions("v", default="1.0")
    versions.register("1.0", Point)
    versions.register("1.1", Table, upgrade=lambda point: Table([Row(str(point.x), Decimal(point.x))]))
    for parser in (StructuredParser(versions), StructuredParser(versions, version="1.1")):
        assert_steps_are_those_of_any_text(parser, '{"v": "1.1", "rows": [{"name": "a", "price": 12.50}]}')
        assert_steps_are_those_of_any_text(parser, '{"x": 12, "y": 2.5}')


# ------------------------------------------------------------------------------------------- items


def test_a_list_streams_item_by_item() -> None:
    pieces = ['[{"name": "a", "pr', 'ice": 12.5', "0}, {", '"name": "b", "price": 1', "}", "]"]
    *steps, last = StructuredParser(list[Bought]).parse_stream(pieces)
    names = [[each.name for each in step.value or ()] for step in steps]
    assert names == [[], ["a"], ["a"], ["a", "b"], ["a", "b"]]
    assert ["$[0]" in step.final for step in (*steps, last)] == [False, True, True, True, True, True]
    assert steps[0].fields == [{"name": "a"}]
    assert (
        last.value == steps[-1].value == [Bought(name="a", price=Decimal("12.50")), Bought(name="b", price=1)]
    )  # type: ignore[arg-type]
    assert (last.fields, last.final) == (steps[-1].fields, steps[-1].final)


def test_a_final_item_is_made_once() -> None:
    made = []

    @attrs.frozen
    class Counted:
        n: int

        def __attrs_post_init__(self) -> None:
            made.append(self.n)

    @attrs.frozen
    class Held:
        items: list[Counted]

    text = json.dumps({"items": [{"n": n} for n in range(100)]})
    for kind, sent in ((Held, text), (list[Counted], text.removeprefix('{"items": ').removesuffix("}"))):
        made.clear()
        *steps, last = StructuredParser(kind).parse_stream(sent)  # type: ignore[misc]
        assert len(steps) > 300
        assert last.ok
        assert all(made.count(n) < 12 for n in range(100))  # while it is the last one, and in the end


def test_an_earlier_step_stays_as_it_was() -> None:
    for kind in (Table, Any, dict[str, list[Any]]):
        text = json.dumps({"rows": [{"name": f"n{n}", "price": n, "tags": ["a", "b"]} for n in range(4)]})
        steps, copies = [], []
        for step in StructuredParser(kind).parse_stream(text):
            steps.append((step.value, step.fields, sorted(step.final)))
            copies.append(repr(steps[-1]))
        assert [repr(step) for step in steps] == copies


def test_a_parser_in_a_class_of_a_stream_reads_its_own_lists() -> None:
    inner = StructuredParser(list[int])

    @attrs.frozen
    class Outer:
        numbers: list[str]

        def __attrs_post_init__(self) -> None:
            for text in ("[1, 2, 3]", "[4, 5]"):
                assert inner.parse(text).value == json.loads(text)
                assert [*inner.parse_stream(text)][-1].value == json.loads(text)

    *steps, last = StructuredParser(Outer).parse_stream('{"numbers": ["a", "b", "c"]}')
    assert last.value == Outer(["a", "b", "c"]) == steps[-1].value


class Filled(pydantic.BaseModel):
    percent: float
    unit: str
    of: list[int] = []

    @pydantic.model_validator(mode="before")
    @classmethod
    def fill(cls, data: Any) -> Any:
        return {"unit": "%", **data} if isinstance(data, dict) else data

    @pydantic.field_validator("percent", mode="before")
    @classmethod
    def strip(cls, value: Any) -> Any:
        return float(value.rstrip("%")) if isinstance(value, str) else value


def test_validators_before_the_schema_are_asked_in_a_stream() -> None:
    *steps, last = StructuredParser(Filled).parse_stream(['{"percent": "55%", "of": [1', ", 2", "]}"])
    assert [step.value.of for step in steps if step.value] == [[], [1], [1, 2]]
    assert last.unwrap().percent == 55


def test_a_wrapper_that_is_named_is_opened_in_each_step() -> None:
    parser = StructuredParser(Row, unwrap="result")
    text = '{"id": 7, "result": {"name": "a", "price": 1, "tags": ["b"]}, "more": [0]}'
    assert_steps_are_those_of_any_text(parser, text)
    *steps, _ = parser.parse_stream(['{"id": 7, "result": {"name": "a", "pr', 'ice": 1}', ', "more": [0'])
    assert [(step.fields, set(step.final)) for step in steps] == [
        ({"name": "a"}, {"$.name"}),
        ({"name": "a", "price": 1}, {"$.name", "$.price"}),
        ({"name": "a", "price": 1}, {"$.name", "$.price"}),
    ]


def test_a_list_in_a_wrapper_that_is_named_has_its_items() -> None:
    parser = StructuredParser(list[int], unwrap="items")
    assert_steps_are_those_of_any_text(parser, '{"id": 7, "items": [1, 22], "more": [0]}')
    *steps, last = parser.parse_stream(['{"items": [1', ", 2", "]", "}"])
    assert [(step.fields, set(step.final)) for step in steps[1:]] == [
        ([1], {"$[0]"}),
        ([1, 2], {"$[0]", "$[1]"}),
        ([1, 2], {"$[0]", "$[1]"}),
    ]
    assert last.value == [1, 2]


# ------------------------------------------------------------------------------------------- paths


def test_the_paths_that_are_final_are_a_set() -> None:
    text = '{"a b": {"x": [1, {"y": 2}], "z": "so'
    (step, _) = StructuredParser(dict[str, Any]).parse_stream([text])
    paths = {"$['a b'].x", "$['a b'].x[0]", "$['a b'].x[1]", "$['a b'].x[1].y"}
    assert step.final == paths
    assert len(step.final) == 4
    assert step.final & {"$['a b'].x", "$"} == {"$['a b'].x"}
    assert repr(step.final).startswith("FinalPaths(")
    for path in (
        "$",
        "$['a b']",
        "$['a b'].z",
        "$['a b'].x[2]",
        "$['a b'].x.y",
        "$['a b'].x[1].y.z",
        "$.c",
        "x",
        3,
    ):
        assert path not in step.final


@pytest.mark.sweep
def test_many_steps_of_a_long_map_are_apart() -> None:
    """Nothing can be kept of the members of a map. So the steps of a long one pay for it with characters."""
    text = json.dumps({f"k{n}": n for n in range(4000)})
    steps = list(StructuredParser(dict[str, int]).parse_stream(pieces_of(text, 2)))
    assert 200 < len(steps) < 4000
    assert steps[-1].fields == steps[-1].value == json.loads(text)
