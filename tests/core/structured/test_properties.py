"""Laws for any text: a valid value or a reason, never an exception. A cut one is never whole."""

# ruff: noqa: RUF001 - models write such quotes and numbers

from __future__ import annotations

import ast
import contextlib
import json
import re
import warnings
from collections.abc import Iterator
from typing import Any

import attrs
import jsonschema
import orjson
import pytest
from hypothesis import given, settings, strategies as st

from answer_corpus import load_corpus
from crosswalk.structured import (
    RESPONSE_VERSIONS,
    Partial,
    ReasonCode,
    Stage,
    StructuredParser,
    StructuredResponse,
    Violation,
    extract_json,
    repair_json,
    value_to_json,
)
from crosswalk.structured.chain import run_chain
from crosswalk.structured.response import RESPONSE_INVARIANTS
from crosswalk.structured.result import Candidate
from crosswalk.structured.scan import scan
from tries import tries

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


@settings(max_examples=tries(300))
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


@settings(max_examples=tries(200))
@given(texts)
def test_the_building_blocks_take_any_text(text: str) -> None:
    found = extract_json(text)
    assert found is None or found in text
    repaired = repair_json(text)
    assert repaired is None or isinstance(repaired, str)
    scanned = scan(text)
    for region in scanned.regions:
        part = scanned.text[region.start : region.end]
        assert part == region.text or part.startswith('"')


@settings(max_examples=tries(60))
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


@settings(max_examples=tries(60))
@given(documents, st.integers(1, 9))
def test_a_stream_ends_as_its_text_does(document: dict[str, Any], size: int) -> None:
    text = "So: " + orjson.dumps(document).decode()
    *steps, last = PARSER.parse_stream(text[at : at + size] for at in range(0, len(text), size))
    assert attrs.evolve(last, fields=None, final=frozenset()) == PARSER.parse(text)
    assert last.fields == document
    for step in steps:
        assert step.partial is (step.value is not None)
        assert step.fields.keys() <= document.keys()
        assert all(step.fields[name] == document[name] for name in document if f"$.{name}" in step.final)
        assert document["answer"].startswith(step.fields.get("answer", ""))


def test_extract_json_prefers_what_is_json() -> None:
    assert extract_json("see {'a': 1} and {\"b\": 2}") == '{"b": 2}'
    assert extract_json("see {'a': 1} only") == "{'a': 1}"
    assert extract_json('{"a": 1} ```json\n[2]\n```') == "[2]"
    assert extract_json('{"a": [1, 2') is None


# ----------------------------------------------------------------- what is read stands in the text

_DELIMITERS = r"""\s\u00ad\u200b-\u200f\u2060\ufeff,:\uff0c\uff1a{}\[\]()="'`“”„‘’‚«»"""
_CLOSING = {'"': '"', "'": "'", "`": "`", "“": "”", "”": "”", "„": "“”", "‘": "’", "‚": "‘’", "«": "»"}


def readings(literal: str) -> list[Any]:
    """The values of *literal* in JSON and in Python."""
    found: list[Any] = []
    for read in (json.loads, lambda text: json.loads(text, strict=False), ast.literal_eval):
        with warnings.catch_warnings(), contextlib.suppress(ValueError, SyntaxError):
            warnings.simplefilter("ignore")
            found.append(read(literal))
    return found


def is_scalar_of(text: str, scalar: object) -> bool:
    """Whether *scalar* is the value of one whole literal of *text*: decided without the reader, by trying all of it."""
    if not isinstance(scalar, str):
        words = re.split(f"[{_DELIMITERS}]+", text)
        numbers = [word.lstrip("+") for word in words if word]
        return any(
            type(said) is type(scalar) and said == scalar for word in numbers for said in readings(word)
        )
    for start, opening in enumerate(text):
        for closing in _CLOSING.get(opening, ""):
            end = text.find(closing, start + 1)
            while end >= 0:
                inner = text[start + 1 : end]
                after = (
                    text[end + 1 :]
                    .lstrip()
                    .lstrip("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff")
                    .lstrip()[:1]
                )
                before = (
                    text[:start]
                    .rstrip()
                    .rstrip("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff")
                    .rstrip()[-1:]
                )
                is_whole = (after in _AFTER or not after) and (before in _BEFORE or not before)
                if is_whole and scalar in (inner, *readings(f'"{inner}"'), *readings(f"'''{inner}'''")):
                    return True
                end = text.find(closing, end + 1)
    return False


_COMMENT = r"//[^\n]*|#[^\n]*|/\*.*?\*/"
_COMMENTS = re.compile(rf'("(?:[^"\\]|\\.)*")|{_COMMENT}', re.DOTALL)
_ANY_COMMENTS = re.compile(f"(){_COMMENT}", re.DOTALL)  # also where a quote is missing before them
_AFTER = tuple(
    """,:\uff0c\uff1a=}])"'`“”„‘‚«{[/#"""
)  # a comma or colon may be missing, and a comment may follow
_BEFORE = tuple("""{[(,:\uff0c\uff1a=>"'`”“’»/}]""")


def scalars(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from scalars(item)
            assert isinstance(key, str)
    elif isinstance(value, list):
        for item in value:
            yield from scalars(item)
    else:
        yield value


def anything(data: Any) -> Candidate[Any]:
    """A schema that takes whatever was read."""
    return Candidate(data) if isinstance(data, dict | list) else Candidate(None, (Violation("no object"),))


_LITERALS = [
    "1",
    "-1",
    "+2",
    "0",
    "-0",
    "03",
    ".5",
    "5.",
    "1.5e3",
    "1e999",
    "0x1F",
    "1_000",
    "1,000",
    "1'000",
    "−3",
    "12:30",
    "2*3",
    "5+",
    "<5",
    "18446744073709551616",
    "true",
    "True",
    "false",
    "null",
    "None",
    "NaN",
    "!true",
    "tea",
    "...",
    "…",
    "etc.",
    "$5",
    "50%",
    "3·5",
    '"a"',
    '"a\\n"',
    '"\\/"',
    '"\\ud83d\\ude00"',
    '"\\d+"',
    '"\\a"',
    '"C:\\x"',
    "'b'",
    "'b\"c'",
    "'it\\'s'",
    '"it\'s"',
    "“c”",
    "„d“",
    "‘e’",
    "«e»",
    "`f`",
    "`${g}`",
    '"a"+"b"',
    'r"a"',
    'f"{x}"',
    "b'x'",
    '"a"or"b"',
    '"""h"""',
    "(1,2)",
    "(1)",
    "{}",
    "[]",
    '{"k":1}',
    '["l",2]',
    '"m""n"',
    '"o"s',
]
_SEPARATORS = [", "] * 8 + [
    ",",
    ",\n",
    " ",
    ",,",
    " // c\n",
    ", # d\n",
    " /* e */ ",
    ", \u200b",
    "; ",
    " or ",
    " + ",
    ": ",
]
_KEYS = ['"k{}"', "'k{}'", "k{}", "“k{}”", "„k{}“", "`k{}`", '"k{}', '"k"', "..."]
_COLONS = [": "] * 6 + [":", " = ", " => ", " ", ":\u200b"]
literals = (
    st.sampled_from(_LITERALS)
    | st.integers(-(10**25), 10**25).map(str)
    | json_values.map(lambda v: json.dumps(v))
)


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """An object with members that are literals or other texts, in a structure that is right or not."""
    members = [
        draw(st.sampled_from(_KEYS)).replace("{}", str(number))
        + draw(st.sampled_from(_COLONS))
        + draw(literals)
        for number in range(draw(st.integers(1, 3)))
    ]
    items = draw(st.lists(literals, max_size=3))
    parts = [*members, *([f'"list": [{draw(st.sampled_from(_SEPARATORS)).join(items)}]'] if items else [])]
    joined = parts[0] + "".join(draw(st.sampled_from(_SEPARATORS)) + part for part in parts[1:])
    around = draw(
        st.sampled_from(
            ["{%s}"] * 4 + ["{%s,}", "```json\n{%s}\n```", "So: {%s} ok", "{%s", "<think>{%s}</think>"]
        )
    )
    return around.replace("%s", joined)


_ESCAPED = ("\\", "&quot;", "&#")  # what stands for another text
_ANSWERS = [
    answer.text
    for answer in load_corpus()
    if len(answer.text) < 300 and not any(mark in answer.text for mark in _ESCAPED)
]
_EDITS = [
    *_MARKS.split(),
    *"0123456789.+-_xe \n\t<>=()*|;?!~$%",
    *"“”„‘’−–·½％\u00a0\u3000",
    "...",
    " or ",
    "12",
]


@st.composite
def edited(draw: st.DrawFn) -> str:
    """An answer as a model wrote it, with some of its characters gone, doubled or exchanged for what damages it."""
    text = draw(st.sampled_from(_ANSWERS))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.sampled_from([0, 0, 1, 1, 2, 5, 20])))
        piece = draw(st.sampled_from(_EDITS) | st.sampled_from(["", text[start:end] * 2]))
        text = text[:start] + piece + text[end:]
    return text


@pytest.mark.sweep
@settings(max_examples=tries(1500))
@given(damaged() | texts | edited(), st.sampled_from(Partial))
def test_each_scalar_is_one_literal_of_the_text(text: str, partial: Partial) -> None:
    result = run_chain(anything, text, None, partial)
    if result.value is None or result.stage is Stage.DIRECT:
        return
    without_comments = [each.sub(lambda found: found[1] or " ", text) for each in (_COMMENTS, _ANY_COMMENTS)]
    sources = [
        text,
        *(re.sub(r"(?m)^[ \t]*>+", "", each) for each in without_comments),
    ]  # nor quoting's marks
    for scalar in scalars(result.value):
        if result.cut is not None and isinstance(scalar, str):
            continue  # it is told that a text goes on, and which
        assert any(is_scalar_of(source, scalar) for source in sources), (scalar, result)


_WORDS = st.sampled_from(
    ["Sure", "it's [1, 5)", "a -> b", "see [2]", 'the "key"', "5 < 6", "{name}", "…", "über", "#1"]
)
_PROSE = st.lists(_WORDS, max_size=4).map(" ".join)
_REASONING = st.sampled_from(
    ["", "<think>{'x': 9} or [ so</think>", "<plan>one {</plan>", "[THINK]x[/THINK]"]
)
_AROUND = st.sampled_from(
    [("", ""), ("```json", "```"), ("<answer>", "</answer>"), ("<answer>```", "```</answer>")]
)


@settings(max_examples=tries(200))
@given(_REASONING, _PROSE, _AROUND, _PROSE)
def test_every_character_outside_of_the_value_is_accounted_for(
    reasoning: str, before: str, around: tuple[str, str], after: str
) -> None:
    text = "\n".join([reasoning, before, around[0], '{"x": 1, "y": 2.5}', around[1], after])
    result = POINT_PARSER.parse(text)
    assert result.value == Point(1, 2.5), result
    assert (result.before, result.after) == (before.strip(), after.strip())
    bare = StructuredParser(POINTS, prose="refuse").parse(text)
    assert bare.ok is (not before.strip() and not after.strip())
