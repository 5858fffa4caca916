"""Marks around an answer are no text, and what follows a list on its line refuses it."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import pydantic
import pytest

from crosswalk.structured import (
    Partial,
    ReasonCode,
    Schema,
    SchemaVersions,
    StructuredParser,
    repair_json,
)


@dataclasses.dataclass
class City:
    city: str
    temp_c: float
    note: str | None = None


GOOD = '{"city": "Rome", "temp_c": 20}'
ROME = City("Rome", 20.0)


@pytest.mark.parametrize(
    "text",
    [
        *(f"{GOOD}{token}" for token in ("<eos>", "<end_of_turn>", "<pad>", "<pad><pad>", "<unk>", "<end_of_utterance>", "</s>")),
        f"<bos>{GOOD}",
        f"<start_of_turn>model\n{GOOD}<end_of_turn>",
        f"{GOOD}\n[[ ## completed ## ]]",
        f"[[ ## answer ## ]]\n{GOOD}\n\n[[ ## completed ## ]]",
        f"\ufeff{GOOD}",
        f"\ufeff```json\n{GOOD}\n```",
        f'```json title="a.json"\n{GOOD}\n```',
        f"```json title='a.json' {{1-3}} linenums\n{GOOD}\n```",
        f"```json {{1, 3-4}}\n{GOOD}\n```",
    ],
)  # fmt: skip
def test_a_mark_is_no_prose(text: str) -> None:
    result = StructuredParser(City, prose="refuse").parse(text)
    assert (result.value, result.before, result.after) == (ROME, "", "")


@pytest.mark.parametrize(
    "text", [f"```json {GOOD}\n```", f"```json see {GOOD}\n```", f'``` json "a" b\n{GOOD}\n```']
)
def test_the_line_of_a_fence_hides_no_answer(text: str) -> None:
    assert StructuredParser(City).parse(text).value in (ROME, None)
    assert StructuredParser(City).parse(text).ok or '"a"' in text


@pytest.mark.parametrize("text", ["`approve`", "``approve``", "Reasoning: <think>x</think>`approve`"])
def test_a_word_may_be_written_as_code(text: str) -> None:
    value = StructuredParser(Literal["approve", "reject"]).parse(text).value
    assert value == (None if text.startswith("R") else "approve")
    assert StructuredParser(int).parse("`42`").value == 42


@pytest.mark.parametrize("text", ["`approve` or `reject`", "`approve", "``approve`", "not `approve`"])
def test_code_among_other_text_is_no_word(text: str) -> None:
    assert StructuredParser(Literal["approve", "reject"]).parse(text).value is None


@dataclasses.dataclass
class Fact:
    name: str


FACTS = '[{"name": "a"}]'


@pytest.mark.parametrize(
    "after",
    [
        "[0]",
        " + more",
        " * 2",
        " if x else y",
        " - b",
        " | sort",
        " and so on",
        " → b",
        "[-1].name",
        ", as asked.",
    ],
)
def test_what_follows_a_list_on_its_line_refuses_it(after: str) -> None:
    for kind, text in ((list[Fact], FACTS), (list[str], '["a", "b"]')):
        assert StructuredParser(kind).parse(f"{text}{after}").value is None


@pytest.mark.parametrize("after", ["", "\nDone.", ".", ";", ",", " \t\n", "`", "\n```", "</answer>", "<eos>"])
def test_blanks_closing_marks_and_the_end_of_a_sentence_leave_a_list(after: str) -> None:
    before = {"\n```": "```json\n", "</answer>": "<answer>", "`": "`"}.get(after, "")
    assert StructuredParser(list[Fact]).parse(f"{before}{FACTS}{after}").value == [Fact("a")]


@pytest.mark.parametrize(
    "after", [" => temp_c: 21", "\n\ntemp_c → 21", "\ntemp_c -> 21", "\n=> temp_c = 21", "\n⇒ temp_c ⇒ 21"]
)
def test_a_key_that_is_set_again_behind_any_sign_takes_the_answer_back(after: str) -> None:
    assert StructuredParser(City).parse(GOOD + after).value is None
    assert StructuredParser(City).parse(f"{GOOD}\nMore => later.").value == ROME


@pytest.mark.parametrize("kind", [tuple[float, float], list[float], set[float]])
def test_integers_that_prose_cites_are_no_decimal_numbers(kind: Any) -> None:
    assert StructuredParser(kind).parse("Sources: [1, 2]").value is None
    assert StructuredParser(kind).parse("Position: [1.5, 2]").ok
    assert StructuredParser(kind).parse("Position:\n[1, 2]").ok
    assert StructuredParser(kind).parse("[1, 2]").ok


# -------------------------------------------------------------------------------- a missing brace


@pytest.mark.parametrize(
    ("text", "repaired"),
    [
        ('{\n  "a": "b",\n  "n": 3\n', '{"a":"b","n":3}'),
        ('{\n  "n": 1.5\n', '{"n":1.5}'),
        ('{\n  "m": {\n    "n": 1\n', '{"m":{"n":1}}'),
        ('{\n  "n": 3', None),
        ('{"n": 1 ', '{"n":1}'),
        ('{\n  "n": [3\n', None),
    ],
)
def test_white_space_closes_a_number(text: str, repaired: str | None) -> None:
    assert repair_json(text) == repaired


def test_an_answer_in_lines_without_its_last_brace_is_closed() -> None:
    text = '{\n  "city": "Rome",\n  "temp_c": 20\n'
    parser = StructuredParser(City)
    assert parser.parse(text).reason is ReasonCode.TRUNCATED
    assert parser.parse(text, partial=Partial.CLOSE).value == ROME
    assert parser.parse(text.rstrip(), partial=Partial.CLOSE).value is None


# -------------------------------------------------------------------------------- options


class Person(pydantic.BaseModel):
    name: str
    weight_kg: float | None = None


@dataclasses.dataclass
class Child:
    name: str
    children: list[str] = dataclasses.field(default_factory=list)


@pytest.mark.parametrize(
    ("kind", "text", "key"),
    [
        (Person, '{"name": "a", "weight": 71}', "weight"),
        (Child, '{"name": "a", "child": ["b"]}', "child"),
        (City, '{"city": "Rome", "temp_c": 20, "notes": "x"}', "notes"),
    ],
)
def test_a_doubtful_key_is_refused_where_that_is_asked_for(kind: Any, text: str, key: str) -> None:
    assert StructuredParser(kind).parse(text).unknown == (f"$.{key}",)
    result = StructuredParser(kind, refuse_doubtful=True).parse(text)
    assert result.errors == [f"unknown field beside an absent optional one @ $.{key}"]


def test_an_unknown_key_beside_no_absent_one_is_not_doubtful() -> None:
    parser = StructuredParser(City, refuse_doubtful=True)
    assert parser.parse('{"city": "Rome", "temp_c": 20, "note": null, "x": 1}').unknown == ("$.x",)


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        (f'{{"result": {GOOD}}}', ()),
        (f'{{"jsonrpc": "2.0", "id": 1, "result": {GOOD}}}', ("$.jsonrpc", "$.id")),
        (f'Here:\n```json\n{{"result": {GOOD}}}\n```', ()),
        (GOOD, ()),
        ('{"result": {"city": "Rome", "temp_c": 20, "x": 1}}', ("$.result.x",)),
        ('{"result": "{\\"city\\": \\"Rome\\", \\"temp_c\\": 20}"}', ()),
    ],
)  # fmt: skip
def test_a_wrapper_is_opened_where_the_caller_names_it(text: str, unknown: tuple[str, ...]) -> None:
    parser = StructuredParser(City, unwrap="result")
    result = parser.parse(text)
    assert (result.value, result.unknown) == (ROME, unknown)
    assert StructuredParser(Schema(City), unwrap="result").parse(text).value == ROME
    if text != GOOD:
        assert StructuredParser(City).parse(text).value is None


def test_a_wrapper_may_hold_a_list_and_is_told_of_in_a_stream() -> None:
    assert StructuredParser(list[int], unwrap="items").parse('{"items": [1, 2]}').value == [1, 2]
    assert StructuredParser(City, unwrap="result").parse('{"result": 1}').value is None
    *steps, last = StructuredParser(City, unwrap="result").parse_stream(f'{{"result": {GOOD}}}')
    assert {"city": "Rome"} in [step.fields for step in steps]
    assert last.value == ROME


def test_a_registry_has_no_wrapper() -> None:
    versions: SchemaVersions[City] = SchemaVersions[City]().register("1.0", City)
    with pytest.raises(TypeError, match="for a type or a Schema"):
        StructuredParser(versions, unwrap="result")
