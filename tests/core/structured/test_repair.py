"""The reader: which literals it knows, what of a damaged structure it mends, and where it says no."""

from __future__ import annotations

from typing import Any

import pytest

from crosswalk.structured import Partial, ReasonCode, StructuredParser, StructuredResponse, repair_json
from crosswalk.structured.repair import UnreadableError, decode_string, read_json
from crosswalk.structured.scan import scan

TRUNCATED, REPAIR, DUPLICATE, LIMIT = (
    ReasonCode.TRUNCATED,
    ReasonCode.REPAIR_FAILED,
    ReasonCode.DUPLICATE_KEY,
    ReasonCode.LIMIT_EXCEEDED,
)


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("0", 0),
        ("-0", 0),
        ("+7", 7),
        ("0x1F", 31),
        ("-0xff", -255),
        ("0o17", 15),
        ("0b101", 5),
        ("1_000_000", 1_000_000),
        (".5", 0.5),
        ("5.", 5.0),
        ("-1.5e-3", -0.0015),
        ("1_000.5", 1000.5),
        ("1E3", 1000.0),
        ("9" * 100, int("9" * 100)),
        ("True", True),
        ("null", None),
        ("None", None),
        ("()", []),
        ("(1,)", [1]),
        ("(1, (2, 3))", [1, [2, 3]]),
    ],
)
def test_a_literal_is_read_as_it_is_written(literal: str, value: Any) -> None:
    found = read_json(f"[{literal}]").value[0]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "code", "path"),
    [
        ('{"a": 1, "b": {"c": [1, 2*3]}}', REPAIR, "$.b.c[1]"),
        ('{"a": [1, {"b": x}]}', REPAIR, "$.a[1].b"),
        ('{"a": 1 2}', REPAIR, "$.a"),
        ('{"a": "x" "y"}', REPAIR, "$.a"),
        ('{"a": "x", "b": "y" or "z"}', REPAIR, "$.b"),
        ('{"a b": "x}', REPAIR, "$['a b']"),
        ('{"a"}', REPAIR, "$.a"),
        ('{"a":}', REPAIR, "$.a"),
        ("{a}", REPAIR, "$.a"),
        ("{a 1}", REPAIR, "$.a"),
        ("{a {}}", REPAIR, "$.a"),
        ("{:1}", REPAIR, "$"),
        ("{1: 2}", REPAIR, "$"),
        ("{[1]}", REPAIR, "$"),
        ('{"a": 1: 2}', REPAIR, "$.a"),
        ("[1,, 2]", REPAIR, "$[1]"),
        ("[(1)]", REPAIR, "$[0]"),
        ("[1 (2)]", REPAIR, "$[0]"),
        ("[1]]", REPAIR, "$"),
        ("[1] x", REPAIR, "$"),
        ("]", REPAIR, "$"),
        ("[1)", REPAIR, "$[0]"),
        ("[{]}]", REPAIR, "$[0]"),
        ("5", REPAIR, "$"),
        ("", REPAIR, "$"),
        ("[1, 'a]", REPAIR, "$[1]"),
        ("['a' 'b']", REPAIR, "$[0]"),
        ('["\\a"]', REPAIR, "$[0]"),
        ("[`${x}`]", REPAIR, "$[0]"),
        ("[1e999]", REPAIR, "$[0]"),
        ("[" + "9" * 5000 + "]", LIMIT, "$[0]"),
        ("[0x" + "F" * 5000 + "]", LIMIT, "$[0]"),
        ("[" * 101, LIMIT, "$" + "[0]" * 100),
        ('{"a": 1, "b": 2, "a": 3}', DUPLICATE, "$.a"),
        ('{"a": {"b": 1, b: 2}}', DUPLICATE, "$.a.b"),
        ("[1, ...]", TRUNCATED, "$[1]"),
        ("[1 …]", TRUNCATED, "$[0]"),
        ("[1, 2 // ... and more\n]", TRUNCATED, "$[1]"),
        ("[; 1]", REPAIR, "$[0]"),
        ("[1,\n  // same as before\n]", TRUNCATED, "$[1]"),
        ("[1, /* unchanged */]", TRUNCATED, "$[1]"),
        ("[1, /* and the others */]", TRUNCATED, "$[1]"),
        ('{"a": 1, ...}', TRUNCATED, "$"),
        ('{"a": [1,', TRUNCATED, "$.a[1]"),
        ('{"a": ', TRUNCATED, "$.a"),
    ],
)
def test_what_is_not_certain_is_refused_with_its_place(text: str, code: ReasonCode, path: str) -> None:
    with pytest.raises(UnreadableError) as caught:
        read_json(text)
    assert (caught.value.violation.code, caught.value.violation.path) == (code, path)


def test_a_comment_on_a_line_of_its_own_leaves_nothing_out() -> None:
    text = '{ // the values\n"a": 1,\n // same as before\n "b": [ // unchanged\n2, 3]}'
    reading = read_json(text)
    assert (reading.value, reading.has_comments) == ({"a": 1, "b": [2, 3]}, True)


@pytest.mark.parametrize(
    "comment", ["// as before\n", "# unchanged\n", "/* the count */", "//\n", "/* not 1 */"]
)
@pytest.mark.parametrize(
    "before", ['{"a": 1', '{"a": 1,', '{"a": "b"', '{"a": {}', '{"a":', '{"a"', '{"a": [1,']
)
def test_a_comment_behind_a_value_is_refused_whatever_its_words_are(before: str, comment: str) -> None:
    with pytest.raises(UnreadableError) as caught:
        read_json(f'{before} {comment} "z": 2}}')
    assert caught.value.violation.code in (ReasonCode.REPAIR_FAILED, TRUNCATED)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[[1, 2}", None),
        ('{"a": [1, 2}', {"a": [1, 2]}),
        ('{"a": (1, 2}', {"a": [1, 2]}),
        ('[{"a": 1]', [{"a": 1}]),
        ('{"a": {"b": 2', {"a": {"b": 2}}),
        ('{"a": [1, 2', None),
        ('{"a": [1, }', None),
    ],
)
def test_a_bracket_may_be_missing_after_a_whole_value(text: str, value: Any) -> None:
    if value is None:
        with pytest.raises(UnreadableError):
            read_json(text)
    else:
        reading = read_json(text)
        assert (reading.value, reading.is_closed_early) == (value, True)


@pytest.mark.parametrize("end", ["\n", " ", "\t", "\r\n", " \n  ", "\u00a0 "])
@pytest.mark.parametrize(
    ("word", "value"), [("12", 12), ("-1.5", -1.5), ("1_000", 1000), ("true", True), ("None", None)]
)
def test_white_space_closes_a_number_and_a_word(word: str, value: Any, end: str) -> None:
    """The value stands there in whole, so nothing but the closing bracket is missing."""
    for text in (f'{{"a": {word}{end}', f'{{\n  "b": {{"a": {word}{end}', f'{{"l": [1], "a": {word}{end}'):
        for is_cut in (True, False):
            reading = read_json(text, is_cut=is_cut)
            assert reading.is_between
            assert reading.value.get("b", reading.value)["a"] == value
        assert StructuredParser(dict[str, Any]).parse(text, partial=Partial.CLOSE).value == reading.value
    assert repair_json(f'{{"a": {word}{end}') is not None


@pytest.mark.parametrize("end", ["", "\u00a0", "\u2009", "\u200b"])
def test_no_other_space_closes_a_number(end: str) -> None:
    """Some languages write a space inside numbers."""
    reading = read_json(f'{{"a": "x", "b": 12{end}', is_cut=True)
    assert (reading.value, reading.is_between) == ({"a": "x"}, False)
    assert repair_json(f'{{"b": 12{end}') is None


def test_the_contract_without_its_last_brace_is_read() -> None:
    """Document 002, as a model prints it in lines, whole and in pieces."""
    lines = [
        '"schema_version": "1.0"', '"answer": "Your response text here"', '"items_shown": 5', '"count_qualifier": "exact"',
        '"sources": [{"title": "ADR.21", "type": "ADR"}]', '"items_total": 18',
    ]  # fmt: skip
    for at in range(len(lines)):
        members = [*lines[:at], *lines[at + 1 :], lines[at]]  # each of them comes last once
        text = "{\n    " + ",\n    ".join(members) + "\n"
        parser = StructuredParser(StructuredResponse)
        result = parser.parse(text, partial=Partial.CLOSE)
        assert result.value is not None
        assert (result.value.items_shown, result.value.items_total) == (5, 18)
        *_, last = parser.parse_stream(list(text), partial=Partial.CLOSE)
        assert last.value == result.value
        assert parser.parse(text[:-1] + "}").value == result.value
        assert parser.parse(f"```json\n{text}```").value == result.value


@pytest.mark.parametrize(
    ("text", "value", "cut"),
    [
        ('{"a": 1', {}, None),
        ('{"a": 1 ', {"a": 1}, None),
        ('{"a": 1,', {"a": 1}, None),
        ('{"a": tru', {}, None),
        ('{"a": [1, 2', {"a": [1]}, None),
        ('{"a": [1, 2 ', {"a": [1, 2]}, None),
        ('{"a": [1, 2]', {"a": [1, 2]}, None),
        ('{"a": [1, [', {"a": [1, []]}, None),
        ('{"a": "b', {"a": "b"}, "$.a"),
        ('{"a": "b"', {"a": "b"}, None),
        ('{"a": ["b", \'c', {"a": ["b", "c"]}, "$.a[1]"),
        ('{"a" "b', {"a": "b"}, "$.a"),
        ('{"a": "b", "c', {"a": "b"}, None),
        ('{"a": "b", "c"', {"a": "b"}, None),
        ('{"a": "b", c', {"a": "b"}, None),
        ("{a", {}, None),
        ('{"a": "b\\', {"a": "b"}, "$.a"),
        ('{"a": "b\\u00', {"a": "b"}, "$.a"),
        ('{"a": "b\\x4', {"a": "b"}, "$.a"),
        ('{"a": "b\\ud83d', {"a": "b"}, "$.a"),
        ('{"a": "b\\\\ud83d', {"a": "b\\ud83d"}, "$.a"),
        ('{"a": "b\\ud83d\\ude00', {"a": "b😀"}, "$.a"),
        ("{", {}, None),
    ],
)
def test_what_breaks_off_holds_what_is_known(text: str, value: Any, cut: str | None) -> None:
    reading = read_json(text, is_cut=True)
    assert (reading.value, reading.cut) == (value, cut)


@pytest.mark.parametrize(
    "text", ['["a" "b', '{"a": "b\\uzz', '{"a": "b" c', '{"a": "b" "c"', "", "5", '{"a": x, ']
)
def test_what_breaks_off_may_be_unreadable(text: str) -> None:
    with pytest.raises(UnreadableError):
        read_json(text, is_cut=True)


@pytest.mark.parametrize(
    ("content", "value"),
    [
        ("plain", "plain"),
        ("a\\/b\\n\\u00e9\\ud83d\\ude00", "a/b\né😀"),
        ("it\\'s \\v \\x41 \\0", "it's \x0b A \x00"),
        ("one\\\ntwo\\\r\nthree", "onetwothree"),
        ("raw\nbreak\tand \x01", "raw\nbreak\tand \x01"),
        ('a "b"\n', 'a "b"\n'),
        ("\\d+\\.\\d*", "\\d+\\.\\d*"),
        ('\\s\\"\\\\', '\\s"\\'),
        ("\\d\\n", None),
        ("\\d\\q\\N", None),
        ("\\$", None),
        ("\\a", None),
        ("\\07", None),
        ("\\u12", None),
        ("\\ud83d\x01", None),
        ("\ud83d", None),
    ],
)
def test_a_string_says_what_json_and_python_agree_on(content: str, value: str | None) -> None:
    assert decode_string(content) == value


@pytest.mark.parametrize(
    ("content", "quote", "value"), [("a\\`b", "`", "a`b"), ("a\\”b", "“", "a”b"), ("a\\”b", '"', None)]
)
def test_a_string_may_escape_its_own_quote(content: str, quote: str, value: str | None) -> None:
    assert decode_string(content, quote) == value


@pytest.mark.parametrize(
    ("text", "repaired"),
    [
        ("{'a': 1,}", '{"a":1}'),
        ('{"answer": "test", "items_shown": 5,', '{"answer":"test","items_shown":5}'),
        ('{"a": [1, [2]', None),
        ('{"a": {"b": [1]', '{"a":{"b":[1]}}'),
        ('{"a": "x", "b": true', '{"a":"x","b":true}'),
        ('{"a": "x"', '{"a":"x"}'),
        ('{"a": 1', None),
        ('{"a": "x', None),
        ('{"a": "x,', None),
        ('{"a": 1, "b', None),
        ('{"wei": 1250000000000000000001,}', '{"wei":1250000000000000000001}'),
        ("{'a': 1} and more", None),
        ("no", None),
        ("", None),
        ("nonsense}", None),
        ("[" * 5000, None),
    ],
)
def test_repair_mends_brackets_and_makes_up_nothing(text: str, repaired: str | None) -> None:
    assert repair_json(text) == repaired


@pytest.mark.parametrize(
    ("text", "left", "is_open"),
    [
        ("<think>a</think>b", "b", False),
        ("a <think>b", "a", True),
        ("a</think>b", "b", False),
        ("a <b>c</b>", "a <b>c</b>", False),
        ("I think so", "I think so", False),
        ('{"a": "<think>"}', '{"a": "<think>"}', False),
        ("Here is my thought process:\na\nHere is my response:\nb", "b", False),
        ("<|channel|>final<|message|>a<|return|>", "a", False),
        ("<|channel|>analysis<|message|>a<|end|>", "", True),
        ("analysisWe think.assistantfinal{}", "{}", False),
        ("analysisWe think.", "", True),
        ("analysis of it", "analysis of it", False),
        ("> {\n>  1\n> }", "{\n 1\n}", False),
        ("> no\n> json", "> no\n> json", False),
        ('{"a": "\n> {b}\n"}', '{"a": "\n> {b}\n"}', False),
    ],
)
def test_reasoning_is_left_out(text: str, left: str, is_open: bool) -> None:
    found = scan(text)
    assert (found.prose(), found.is_thinking) == (left, is_open)


HOSTILE = [
    '{"a": "' + "\\" * 60_001, '{"a": "' + "\\d" * 30_000, "['" * 30_000, '["a"' * 15_000, "[(" * 30_000, "/*" * 30_000,
    "<think>" * 9_000, "</think>" * 9_000, "<think " * 9_000, "<|channel|>a" * 5_000, "\n \n" * 20_000 + "think", "> {\n" * 15_000,
    '{\\"' * 20_000, "```json\n" * 9_000, '"\\' * 30_000 + "<think>", "[...", '{"a": 1 // ' * 6_000, "“" * 60_000, "{a: " * 15_000,
]  # fmt: skip


@pytest.mark.untraced
@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:12]))
def test_a_hostile_text_has_an_end(text: str) -> None:
    """In time that grows with the text: with its square each of these would take minutes."""
    assert repair_json(text) is None
    scan(text)
