"""No value without evidence: brackets of prose are no answer, and text without JSON has no value of any type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional, TypedDict

import attrs
import pytest

from crosswalk.structured import RESPONSE_VERSIONS, Partial, ReasonCode, StructuredParser, StructuredResponse


@attrs.frozen
class Config:
    theme: str | None = None


@attrs.frozen
class Book:
    title: str


@attrs.frozen
class Tree:
    name: str
    children: list[Tree] = attrs.field(factory=list)


@dataclass
class Outer:
    book: Book | None = None


class Loose(TypedDict, total=False):
    theme: str


class Ticket(TypedDict):
    title: str


TREE: dict[str, Any] = {
    "$ref": "#/$defs/tree",
    "$defs": {"tree": {
        "type": "object", "properties": {"name": {"type": "string"}, "next": {"$ref": "#/$defs/tree"}}, "required": ["name"],
    }},
}  # fmt: skip


def parse(kind: Any, text: str, **options: Any) -> Any:
    parser: StructuredParser[Any] = StructuredParser(kind, **options)
    return parser.parse(text)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (list[str], "I'm sorry, I can't help. The input list was []."),
        (list[int], "According to [1], there are no further items."),
        (dict[str, int], "function f() {}"),
        (tuple[float, float], "x lies in [0, 1]."),
        (list[str], "- [ ] task one\n- [ ] task two"),
        (Config, "Use {} for the defaults. Which theme do you want?"),
        (list[str], "items: list[str] = []"),
        (list[str], "def f(a=[]):\n    return a"),
        (dict[str, int], "Expected {} but the file was missing"),
        (list[Book], "[] means none; but I did not read the text."),
        (list[int], "assert f(2) == [1, 2]"),
        (list[int], "if f(2) >= [1, 2]"),
        (set[int], "See [1] and [1]."),
        (list[list[int]], "The matrix is [[1]], I think."),
        (Any, "As shown in [1], it depends."),
        ({"type": "array"}, "I found none: []"),
        ({"type": "object"}, "Use {} here."),
        (list[str], "I found nothing.\n\n[]"),
        (dict[str, str], 'Call f({"a": "b"}) first.'),
        (list[int], "<think>The list.</think>It was [1]."),
        (list[int], "<answer>It was [1].</answer>"),
        (list[int], "<answer>[] is all I have</answer>"),
        (Config | list[int], "Neither {} nor a list."),  # type: ignore[operator]
        (list[int], "It was `[1]`, I think"),
        (list[int], "It was `[1] of them"),
        (Config, 'You asked me not to return {"theme": "dark"}, sorry. I cannot help.'),
        (list[Config], 'An answer such as [{"theme": "dark"}] would be wrong.'),
        (Config | None, 'Something like {"theme": "dark"} is no answer.'),
        (Loose, 'You asked me not to return {"theme": "dark"}, sorry.'),
        (Outer, 'You asked me not to return {"book": {"title": "A"}}, sorry.'),
        ({"type": "object", "properties": {"a": {}}}, 'You asked me not to return {"a": 1}, sorry.'),
        (dict[str, Config], 'Not {"a": {"theme": "dark"}} as you said.'),
        (list[Book], 'I\'m sorry, I can\'t help. The input list was [{"title": "x"}].'),
        (list[Book] | Book, 'I\'m sorry, I can\'t help. The input list was [{"title": "x"}].'),  # type: ignore[operator]
        (list[Book] | None, 'The input list was [{"title": "x"}].'),
        (list[Ticket], 'The input list was [{"title": "x"}], as you see.'),
        (tuple[Book, ...], 'The tool gave [{"title": "x"}] and failed.'),
        (tuple[Book, int], 'The tool gave [{"title": "x"}, 1].'),
        (list[list[Book]], 'The tool gave [[{"title": "x"}]].'),
        (dict[str, Book], 'The tool gave {"k":{"title":"x"}} which is invalid.'),
        (dict[str, list[Book]], 'The tool gave {"k":[{"title":"x"}]} which is invalid.'),
        (
            {"type": "array", "items": TREE["$defs"]["tree"], "$defs": TREE["$defs"]},
            'The tool gave [{"name": "x"}].',
        ),
        (list[int], "The numbers: [1, 2].. so it goes"),
    ],
    ids=str,
)
def test_brackets_of_prose_are_no_answer(kind: Any, text: str) -> None:
    result = parse(kind, text)
    assert (result.value, result.reason) == (None, ReasonCode.EXTRACTION_FAILED)
    assert result.errors == ["brackets among other text are not an answer @ $"]
    assert parse(kind, text, prose="refuse").reason == ReasonCode.PROSE


EMPTIES: list[tuple[Any, str, Any]] = [
    (list[Config], "[{}]", [Config()]),
    (list[Config], "[{ }, {,}]", [Config(), Config()]),
    (tuple[Config, ...], "[{\n}]", (Config(),)),
    (tuple[Config], "[{\u200b}]", (Config(),)),
    (Optional[list[Config]], "[{,}]", [Config()]),  # noqa: UP045
    (list[list[str]], "[[], []]", [[], []]),
    (list[list[Config]], "[[{}], []]", [[Config()], []]),
    (list[dict[str, int]], "[{}]", [{}]),
    (dict[str, int], "{,}", {}),
    (Config, "{ }", Config()),
    (Config, "\uff5b\uff5d", Config()),
    (list[str], "[\n]", []),
    ({"type": "array"}, "[[[{}]]]", [[[{}]]]),
]


@pytest.mark.untraced
@pytest.mark.parametrize(("kind", "empty", "value"), EMPTIES, ids=str)
def test_a_nest_of_empties_counts_only_alone(kind: Any, empty: str, value: Any) -> None:
    for text in (f"I would say:\n{empty}", f"They are: {empty}", f"x = {empty}", f"{empty}\nis all I have"):
        result = parse(kind, text)
        assert (result.value, result.reason) == (None, ReasonCode.EXTRACTION_FAILED)
        *_, last = StructuredParser[Any](kind).parse_stream(list(text))
        assert last.value is None
    for text in (empty, f"Sure:\n```json\n{empty}\n```\nBye.", f"So: <answer>{empty}</answer>", f"`{empty}`"):
        assert parse(kind, text).value == value


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (list[Config], 'They are: [{}, {"theme": "dark"}]', [Config(), Config("dark")]),
        (list[list[int]], "They are: [[], [0]]", [[], [0]]),
        (list[int | None], "They are: [null]", [None]),
        (list[str], 'They are: [""]', [""]),
        (dict[str, list[int]], 'They are: {"a": []}', {"a": []}),
    ],
    ids=str,
)
def test_a_list_with_anything_in_it_counts_behind_a_colon(kind: Any, text: str, value: Any) -> None:
    assert parse(kind, text).value == value


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (list[int], "[1]", [1]),
        (list[int], "[]", []),
        (list[int], "`[]`", []),
        (list[int], "Here you are:\n```json\n[]\n```\nAnything else?", []),
        (list[int], "Here you are: <answer>[]</answer> Anything else?", []),
        (list[int], "<think>None of them.</think>\n[]", []),
        (list[int], "[]<|im_end|>", []),
        (dict[str, int], "Sure:\n```\n{}\n```", {}),
        (Config, "```json\n{}\n```", Config()),
        (list[int], "Here you are: [1, 2]", [1, 2]),
        (list[int], "Here you are\uff1a[1, 2]", [1, 2]),
        (list[int], "**Answer:** [1, 2]", [1, 2]),
        (list[int], "Answer: `[1, 2]`\nBye.", [1, 2]),
        (list[int], "Here you are\n  [1, 2]  \nBye.", [1, 2]),
        (list[int], "Here you are\n[\n  1,\n  2\n]\nBye.", [1, 2]),
        (list[int], "<think>Hm.</think>[1, 2]\nBye.", [1, 2]),
        (list[int], "<answer>The numbers:\n[1, 2]\n</answer>", [1, 2]),
        (list[int], "```python\nnumbers = [1, 2];\n```", [1, 2]),
        (tuple[float, float], "position = [0.5, 1]", (0.5, 1.0)),
        (dict[str, int], 'The stock:\n{"tea": 2}', {"tea": 2}),
        (list[int], "I looked at [1, 2], so:\n```\n[1, 2]\n```", [1, 2]),
        (list[int], "```\n[1, 2]\n```\nAgain, that is [1, 2], as I said.", [1, 2]),
        (Config, 'I would take:\n{"theme": "dark"}\nBye.', Config("dark")),
        (Config, 'I would take: {"theme": "dark"}', Config("dark")),
        (Config, '**{"theme": "dark"}**', Config("dark")),
        (Config, '<![CDATA[{"theme": "dark"}]]>', Config("dark")),
        (Config, '\u200b{{"theme": "dark"}}', Config("dark")),
        (list[int], "**[]**", []),
        # A key of an object that needs one is evidence anywhere.
        (Book, 'I have {"title": "A"}.', Book("A")),
        (Config | Book, 'I have {"title": "A"}.', Book("A")),  # type: ignore[operator]
        (Tree, 'I have {"name": "A", "children": []}.', Tree("A")),
        (TREE, 'I have {"name": "A"}.', {"name": "A"}),
        (list[Book] | Book, 'I have {"title": "A"}.', Book("A")),  # type: ignore[operator]
        # A list or map of them is none, but where it begins and ends its line.
        (list[Book], 'I have: [{"title": "A"}].', [Book("A")]),
        (list[Book], 'I have\n[{"title": "A"}] ;\nBye.', [Book("A")]),
        (list[int], "I have: `[1, 2]`.", [1, 2]),
        (list[int], "\u5217\u8868\uff1a[1, 2]\u3002", [1, 2]),
        (dict[str, Book], 'books = {"x": {"title": "A"}}, \nBye.', {"x": Book("A")}),
        (tuple[Book, ...], '```\n[{"title": "A"}]\n```', (Book("A"),)),
        (list[Ticket] | None, '<answer>[{"title": "A"}]</answer>', [{"title": "A"}]),
    ],
    ids=str,
)
def test_a_value_that_stands_alone_is_read(kind: Any, text: str, value: Any) -> None:
    assert parse(kind, text).value == value


def test_brackets_of_prose_still_contradict_an_answer() -> None:
    result = parse(list[int], "[1, 2]\nThat is, without [3].")
    assert (result.value, result.reason, result.candidates) == (None, "ambiguous", ([1, 2], [3]))
    result = parse(list[int], "[1, 2]\n<answer>It is [3] now.</answer>")
    assert (result.value, result.reason) == (None, "ambiguous")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (list[int], "According to [1, 2"),
        (dict[str, int], 'function f() {"a": 1, '),
        (list[str], "The list is ["),
        (Config, "Use {"),
        (Config, 'I take {"theme": "dark", '),
    ],
)
def test_a_cut_bracket_of_prose_is_no_partial_answer(kind: Any, text: str) -> None:
    parser: StructuredParser[Any] = StructuredParser(kind)
    result = parser.parse(text, partial=Partial.ACCEPT)
    assert (result.value, result.reason, result.fields or {}) == (None, "truncated", {})
    assert all(not step.fields and step.value is None for step in parser.parse_stream(list(text)))


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (list[int], "[1, 2, ", [1, 2]),
        (list[int], "Here you are:\n[1, 2, ", [1, 2]),
        (list[int], "```json\n[", []),
        (dict[str, int], 'The stock: {"a": 1, ', {"a": 1}),
        (Config, 'I take:\n{"theme": "dark", ', Config("dark")),
    ],
)
def test_a_cut_value_that_stands_alone_is_read(kind: Any, text: str, value: Any) -> None:
    parser: StructuredParser[Any] = StructuredParser(kind)
    assert parser.parse(text, partial=Partial.ACCEPT).value == value


@pytest.mark.parametrize("kind", [Any, Optional[Any], {}, {"title": "x"}, list[Any] | Any])  # noqa: UP045
@pytest.mark.parametrize("text", ["", " ", "no json at all", "nan", "<think>5</think>", "1 2", "'a'"])
def test_a_text_without_json_has_no_value_of_any_type(kind: Any, text: str) -> None:
    for partial in Partial:
        parser: StructuredParser[Any] = StructuredParser(kind)
        result = parser.parse(text, partial=partial)
        assert (result.value, result.candidates) == (None, ())
        assert result.reason in (ReasonCode.EXTRACTION_FAILED, ReasonCode.TRUNCATED)


@pytest.mark.parametrize("kind", [Any, {}, list[Any], StructuredResponse, RESPONSE_VERSIONS])
def test_json_that_is_too_deep_has_no_value_of_any_type(kind: Any) -> None:
    result = parse(kind, "[" * 200 + "]" * 200)
    assert (result.value, result.reason) == (None, ReasonCode.LIMIT_EXCEEDED)
    assert (result.errors, result.schema_version) == (["nested too deeply @ $"], None)
    assert parse(kind, f"Here you are:\n{'[' * 200 + ']' * 200}").value is None
