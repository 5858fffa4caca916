"""What holds of any text: a valid value or a reason, never an exception; cut is never whole."""

from __future__ import annotations

from typing import Any

import jsonschema
import orjson
import pytest
from hypothesis import given, settings, strategies as st

from crosswalk.structured import (
    RESPONSE_VERSIONS,
    Partial,
    ReasonCode,
    Stage,
    StructuredParser,
    StructuredResponse,
    extract_json,
    repair_json,
    value_to_json,
)
from crosswalk.structured.response import RESPONSE_INVARIANTS
from crosswalk.structured.scan import closed, find_regions

from .answers import POINTS, Node, Point

PARSER = StructuredParser(RESPONSE_VERSIONS)
POINT_PARSER = StructuredParser(POINTS)
NODES = StructuredParser(Node)

# Pieces that make structure likely where random characters would not.
_MARKS = """{ } [ ] : , " ' \\ / # ` 0 - e . ``` \\u00e9 \\ud83e true None NaN /* */ "answer" "items_shown" "x" "name" "child" answer 3"""
pieces = st.sampled_from(
    [*_MARKS.split(), " ", "\n", "\t", "```json\n", "// c\n", "1e999", "9" * 25, "…", "“", "🦙", "\x00"]
)
texts = st.text(st.characters(), max_size=60) | st.lists(pieces, max_size=40).map("".join)
texts_of_json = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts_of_json,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts_of_json, inner, max_size=3),
    max_leaves=8,
)
documents = st.fixed_dictionaries(
    {"answer": texts_of_json, "items_shown": st.integers(0, 20)},
    optional={
        "items_total": st.none() | st.integers(20, 999),
        "count_qualifier": st.sampled_from([None, "exact", "at_least", "approx"]),
        "transparency_statement": st.none() | texts_of_json,
        "sources": st.lists(st.dictionaries(texts_of_json, json_values, max_size=3), max_size=3),
        "other": json_values,
    },
)


@settings(max_examples=300)
@given(texts, st.sampled_from(Partial))
def test_any_text_gives_a_valid_value_or_a_reason(text: str, partial: Partial) -> None:
    for parser in (PARSER, POINT_PARSER, NODES):
        result = parser.parse(text, partial=partial)
        assert result.ok is (result.value is not None and not result.partial)
        assert (result.value is None) is (result.stage is Stage.FAILURE)
        if isinstance(result.value, Point):
            jsonschema.validate(orjson.loads(value_to_json(result.value)), POINTS.json_schema())
            assert result.value.x >= 0
        if isinstance(result.value, StructuredResponse):
            assert all(rule.is_kept(result.value) for rule in RESPONSE_INVARIANTS)


@settings(max_examples=200)
@given(texts)
def test_the_building_blocks_take_any_text(text: str) -> None:
    found = extract_json(text)
    assert found is None or found in text
    repaired = repair_json(text)
    assert repaired is None or isinstance(repaired, str)
    for region in find_regions(text):
        assert region.text in text
        closed(region.text, keep_cut_string=True)


@settings(max_examples=60)
@given(
    documents, st.sampled_from(["{}", "```json\n{}\n```", "Sure: {}", "<a>{}</a>"]), st.booleans(), st.data()
)
def test_a_document_is_read_whole_or_said_to_be_cut(
    document: dict[str, Any], around: str, is_pretty: bool, data: st.DataObject
) -> None:
    json = orjson.dumps(document, option=orjson.OPT_INDENT_2 if is_pretty else 0).decode()
    text = around.replace("{}", json)
    whole = PARSER.parse(text)
    assert whole.ok
    assert whole.value.answer == document["answer"]
    start = text.index(json)
    cut = text[: start + data.draw(st.integers(0, len(json) - 1))]
    assert PARSER.parse(cut).value is None
    for partial in (Partial.CLOSE, Partial.ACCEPT):
        accepted = PARSER.parse(cut, partial=partial)
        assert not accepted.ok
        if accepted.value is not None:
            assert accepted.reason is ReasonCode.TRUNCATED
            assert document["answer"].startswith(accepted.value.answer)
            assert accepted.value.items_shown == document["items_shown"]


@settings(max_examples=60)
@given(documents, st.integers(1, 9))
def test_a_stream_ends_as_its_text_does(document: dict[str, Any], size: int) -> None:
    text = "So: " + orjson.dumps(document).decode()
    *steps, last = PARSER.parse_stream(text[at : at + size] for at in range(0, len(text), size))
    assert last == PARSER.parse(text)
    for step in steps:
        assert step.partial
        assert document["answer"].startswith(step.value.answer)


@settings(max_examples=100)
@given(json_values, st.data())
def test_the_beginning_of_json_is_closed_into_json(value: Any, data: st.DataObject) -> None:
    text = orjson.dumps([value]).decode()
    cut = text[: data.draw(st.integers(1, len(text)))]
    for keep in (True, False):
        made = closed(cut, keep_cut_string=keep)
        assert made is not None
        orjson.loads(made)
    assert closed(text, keep_cut_string=True) == text


@pytest.mark.parametrize("text", ["{]", "[}", '{"a": [}', "[1}, 2"])
def test_brackets_that_do_not_match_are_not_closed(text: str) -> None:
    assert closed(text, keep_cut_string=True) is None


def test_extract_json_prefers_what_is_json() -> None:
    assert extract_json("see {'a': 1} and {\"b\": 2}") == '{"b": 2}'
    assert extract_json("see {'a': 1} only") == "{'a': 1}"
    assert extract_json('{"a": 1} ```json\n[2]\n```') == "[2]"
    assert extract_json('{"a": [1, 2') is None


def test_repair_gives_up_where_the_work_would_not_be_worth_it() -> None:
    assert repair_json("[" * 5000) is None
    assert repair_json("{'a': '" + "x" * 2**17 + "'}") is None
    assert repair_json("{" + ",".join(f"k{n}: v{n}" for n in range(3000)) + "}") is None
    assert repair_json("") is None
    assert repair_json("(" * 900) is None


def test_repair_counts_what_the_library_puts_together() -> None:
    """A repeated key without a comma makes it write its input anew, each time it occurs."""
    assert repair_json('[{"a": 1 "a": 2}]') == '[{"a": 1}, {"a": 2}]'
    assert repair_json('[{"a": 1 ' + '"a": 2 ' * 9000 + "}]") is None


def test_a_bug_of_the_library_is_a_failed_repair(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it raises, a stranger's text gives a reason."""

    def broken(*_: object, **__: object) -> str:
        raise IndexError

    monkeypatch.setattr("json_repair.repair_json", broken)
    assert POINT_PARSER.parse("{'x': 1}").reason is ReasonCode.REPAIR_FAILED
    assert POINT_PARSER.parse('{"x": 1,', partial=Partial.ACCEPT).value == Point(1)
    assert POINT_PARSER.parse('{"x": ', partial=Partial.ACCEPT).reason is ReasonCode.TRUNCATED
