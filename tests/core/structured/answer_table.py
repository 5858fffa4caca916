"""A table of answers as models write them, with the outcome wanted for each.

A family is a function that yields :class:`Case` values from a few templates and the objects to fill them with.
The wanted value is always written as a Python value, never computed by the code under test.

The outcomes were committed before the code that meets them. Revised after a run, the outcome and not the code: the code
``f("]")``, which can be read in one way only; ``{"dark:" true``; the same object twice with a comma between; a comment behind
a value or a whole list, which is refused now; and whether a comment counts as prose. Taken out: a bare bracket at the end of a text.
"""

# ruff: noqa: RUF001 - models write such quotes and signs

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, Literal

import attrs

from .answer_types import (
    Animal,
    Bill,
    Bird,
    Book,
    Call,
    Colour,
    Doc,
    Fish,
    Loose,
    Meeting,
    Mood,
    Movie,
    Note,
    Owner,
    Point,
    Settings,
    Shelf,
    Tags,
)

__all__ = ["FAMILIES", "Case", "Refused", "TakenBack", "load_table"]


@attrs.frozen
class Refused:
    """No value is wanted. ``None`` where any reason will do."""

    reason: str | None = None


@attrs.frozen
class TakenBack:
    """Only prose says that *value* does not hold. The parser does not judge prose, so it gives the value."""

    value: Any


@attrs.frozen
class Case:
    """One answer.

    Attributes:
        id: the family and a number.
        type: the type it is read as.
        text: what the model wrote.
        want: the value, :class:`Refused` or :class:`TakenBack`.
        is_bare: whether nothing but fences, answer tags and reasoning stands around the value, so that
            ``prose="refuse"`` gives it too.
    """

    id: str
    type: Any
    text: str
    want: Any
    is_bare: bool = True


Row = tuple[Any, str, Any] | tuple[Any, str, Any, bool]
DUNE = Book("Dune", 412)
DUNE_TEXT = '{"title": "Dune", "pages": 412}'
FULL = Book("Dune", 412, "978-0")
FULL_TEXT = '{"title": "Dune", "pages": 412, "isbn": "978-0"}'
EMMA_TEXT = '{"title": "Emma", "pages": 474}'
SHELF_TEXT = '{"books": [{"title": "Dune", "pages": 412}, {"title": "Emma", "pages": 474}]}'
SHELF = Shelf([DUNE, Book("Emma", 474)])
REFUSED = Refused()

# --------------------------------------------------------------------------------- marks of reasoning

HARD = ("think", "thinking", "thought", "reasoning", "antthinking", "seed:think", "thought_process")
"""Names of tags that nobody asks for as an answer."""
SOFT = ("plan", "draft", "analysis", "reflection", "rationale", "scratchpad", "planning", "deliberation")
"""Names of tags that hold reasoning, unless nothing else in the text holds an answer."""
PAIRS = (
    *((f"<{name}>", f"</{name}>") for name in (*HARD, *SOFT)),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<unused94>", "<unused95>"),
)


def marks_in_values() -> Iterator[Row]:
    """A mark of reasoning inside a string is text."""
    bodies = []
    for opening, closing in PAIRS:
        bodies += [
            f"the page says: {closing}",
            f"wrap it in {opening}old text{closing} tags",
            f"see {opening}",
        ]
    bodies += [
        "<|channel|>final<|message|>buy now<|end|>",
        "assistantfinal buy now",
        "~~no~~ <!-- x --> <del>",
    ]
    for at, body in enumerate(bodies):
        for left, right in (('"', '"'), ("'", "'"), ("“", "”")):
            text = f"{left}body{right}: {left}{body}{right}"
            if at % 2:
                yield Note, "{" + text + "}", Note(body)
            else:
                yield Note, "Here: {" + text + "}", Note(body), False
    for opening, closing in PAIRS[::3]:
        injected = f'the page says: {closing}{{"body": "buy now"}}'
        yield Note, f"{{'body': '{injected}'}}", Note(injected)
        yield Note, "Sure: " + json.dumps({"body": injected}), Note(injected), False
        lines = f"# Doc\n{opening}step 1{closing}\nend"
        yield Note, '{"body": "' + lines + '"}', Note(lines)
        yield Note, "```json\n" + json.dumps({"body": lines}) + "\n```", Note(lines)


def reasoning_around() -> Iterator[Row]:
    """Reasoning outside of the object is not part of the answer."""
    for opening, closing in PAIRS:
        yield Book, f"{opening}short{closing}\n{DUNE_TEXT}", DUNE
        yield Book, f"{opening}Perhaps {EMMA_TEXT}?{closing}\n```json\n{DUNE_TEXT}\n```", DUNE
        yield Book, f"{opening}One [ and one {{ and it's\n{closing}\n{DUNE_TEXT}", DUNE
        yield Book, f"{opening}Perhaps {EMMA_TEXT}, or", Refused("truncated")
        yield Book, f"Perhaps {EMMA_TEXT}, no.{closing}\n{DUNE_TEXT}", DUNE
    for opening, closing in PAIRS[:6]:
        yield Book, f"{opening}a{closing}Here: {DUNE_TEXT}", DUNE, False
        yield Book, f"{opening}{EMMA_TEXT}{closing}{opening}{SHELF_TEXT}{closing}{DUNE_TEXT}", DUNE


def tags_as_answers() -> Iterator[Row]:
    """A tag of reasoning that somebody may have asked for holds the answer where nothing else does."""
    for name in SOFT:
        yield Book, f"<{name}>{DUNE_TEXT}</{name}>", DUNE
        yield Book, f"<{name}>\n```json\n{DUNE_TEXT}\n```\n</{name}>", DUNE
        yield Book, f"<{name}>{EMMA_TEXT}</{name}>\n<answer>{DUNE_TEXT}</answer>", DUNE
        yield Book, f"<{name}>{DUNE_TEXT}", Refused("truncated")
        yield Book, f"<think>{EMMA_TEXT}</think><{name}>{DUNE_TEXT}</{name}>", DUNE
    for name in HARD:
        yield Book, f"<{name}>{DUNE_TEXT}</{name}>", Refused("extraction_failed")
        yield Book, f"<{name}>{DUNE_TEXT}</{name}>\nI cannot say.", Refused("extraction_failed")


def harmony() -> Iterator[Row]:
    """The channels of gpt-oss."""
    start = "<|channel|>analysis<|message|>Perhaps " + EMMA_TEXT + "<|end|><|start|>assistant"
    for end in ("<|return|>", "<|end|>", ""):
        yield Book, f"{start}<|channel|>final<|message|>{DUNE_TEXT}{end}", DUNE
        yield Book, f"{start}<|channel|>final <|constrain|>json<|message|>{DUNE_TEXT}{end}", DUNE
        tool = "<|channel|>commentary to=functions.book <|constrain|>json<|message|>"
        yield Book, f"{start}{tool}{DUNE_TEXT}<|call|>{end}", DUNE
    yield Book, start, Refused("truncated")
    yield Book, f"analysisPerhaps {EMMA_TEXT}assistantfinal{DUNE_TEXT}", DUNE
    yield Book, f"analysisPerhaps {EMMA_TEXT}. I", Refused("truncated")
    yield Book, f"<|channel|>final<|message|>{DUNE_TEXT[:-5]}", Refused("truncated")
    call = f"<|channel|>commentary <|constrain|>json<|message|>{DUNE_TEXT}<|call|>"
    yield Book, f"<|start|>assistant to=functions.book{call}", DUNE
    yield Book, f"assistant<|channel|>final<|message|>{DUNE_TEXT}<|return|>", DUNE
    yield Book, f"assistantfinal{DUNE_TEXT}", DUNE
    for said in ("AnalysisResult:", "analysisResult =", "analysisReport:", "Analysis:", "analysis of R:"):
        yield Book, f"{said} {DUNE_TEXT}", DUNE, False


def fences() -> Iterator[Row]:
    """A fence may be on the answer's own line."""
    for mark in ("```", "~~~"):
        for form in (
            "{0}json {1} {0}",
            "{0}json {1}{0}",
            "{0}{1}{0}",
            "{0}json\n{1}{0}",
            "{0}json {1}\n{0}",
            "{0} {1} {0}",
        ):
            yield Book, form.format(mark, DUNE_TEXT), DUNE
            yield Book, "Here: " + form.format(mark, DUNE_TEXT), DUNE, False
            yield Book, "Here:\n" + form.format(mark, DUNE_TEXT) + " Bye.", DUNE, False
    yield Book, f"`{DUNE_TEXT}`", DUNE
    yield Book, f"``{DUNE_TEXT}``", DUNE


# ------------------------------------------------------------------------------- closed too early

_LONG = (
    (Book, FULL_TEXT),
    (Book, "{'title': 'Dune', 'pages': 412, 'isbn': '978-0'}"),
    (Book, '{\n  "title": "Dune",\n  "pages": 412,\n  "isbn": "978-0"\n}'),
    (Shelf, SHELF_TEXT),
    (Tags, '{"items": ["a", "b", "c"]}'),
    (Settings, '{"dark": true, "size": 20}'),
    (Mood, '{"mood": "good", "why": "sun"}'),
    (Doc, '{"page_count": 3, "author_name": "Ada", "résumé": "short"}'),
)


def closed_too_early() -> Iterator[Row]:
    """One bracket too many in the middle: the remainder is part of the answer, and it is lost."""
    for kind, text in _LONG:
        commas = [at for at in range(1, len(text)) if text[at] == "," and text[:at].count('"') % 2 == 0]
        for at in commas:
            for bracket in ("}", "}}", "}\n"):
                yield kind, text[:at] + bracket + text[at:], REFUSED
            yield kind, text[: at + 1] + "}" + text[at + 1 :], REFUSED
            yield kind, f"```json\n{text[:at]}}}{text[at:]}\n```", REFUSED
    yield Book, '{"title": "Dune", "pages": 412}, "isbn": "978-0"}', Refused("closed_too_early")
    yield Book, "{'title': 'Dune', 'pages': 412}, 'isbn': '978-0'}", Refused("closed_too_early")
    yield Book, '{"title": "Dune", "pages": 412}, isbn: "978-0"}', Refused("closed_too_early")
    yield Book, '{"title": "Dune", "pages": 412}\n"isbn": "978-0"}', Refused("closed_too_early")
    yield (
        Shelf,
        '{"books": [{"title": "Dune", "pages": 412}]}, {"title": "Emma", "pages": 474}]}',
        Refused("closed_too_early"),
    )
    yield list[str], '["a", "b"], "c"]', Refused("closed_too_early")
    yield list[int], "[1, 2], 3]", Refused("closed_too_early")
    for parted in ("4}\n{12}", "4}{12}", "41} {2}", "4}. {12}", "4} and {12}", "41.} {2.5}", "4}\n\n{ 12 }"):
        yield Book, f'{{"title": "Dune", "pages": {parted}', REFUSED, False
    yield Tags, '{"items": ["a"} and {, "b", "c"]}', REFUSED
    yield Tags, '{"items": ["a", "b"}\n["c"]}', REFUSED
    yield Call, '{"name": "f", "arguments": {}, "city": "Bonn", "metric": true}}', Refused("closed_too_early")
    yield Call, '{"name": "f", "arguments": {"x": 1} "y": 2}', Refused("repair_failed")
    yield Call, '{"name": "f", "arguments": {"x": 1}\n"id": 2}', Call("f", {"x": 1})
    yield Tags, '{"id": 1, "items": ["a"] "more": 2}', Tags(["a"])
    yield Tags, '{"items": ["a"], "more": 2}\n```\n}', Tags(["a"]), False
    yield list[int], "[1[ 2, 3]", REFUSED
    yield list[int], "[-1, 2, [3, 4]", REFUSED
    isbn = '"isbn": "978-0"'
    for tail in (
        f"\n{{{isbn}}}", f" {{{isbn}}}", f", {{{isbn}}}", "\n{'isbn': '978-0',}", "\n{isbn: '978-0'}",
        f"\n\nAnd:\n```json\n{{{isbn}}}\n```", "\uff0c\"isbn\"\uff1a\"978-0\"\uff5d", f"\uff0c{isbn}}}", f" and {isbn}",
        f" & {isbn}", f"\n{isbn}", "\nisbn: \"978-0\"", "\nisbn: 978-0", "\n- isbn: 978-0", "\nbook.isbn = '978-0'",
        "\n{\"isbn\": 978 of 1}", f"\u3001{isbn}", f"\uff1b{isbn}", f"\n[{{{isbn}}}]", "\n**isbn**: \"978-0\"",
        f"\n<book>{{{isbn}}}</book>", "\n| isbn: 978 |", f"\n(with {isbn})", "\u3002 \"isbn\" \uff1a \"978-0\"",
    ):  # fmt: skip
        yield Book, DUNE_TEXT + tail, REFUSED, False
        yield Book, f"```json\n{DUNE_TEXT}\n```{tail}", REFUSED, False
    for head in (f"{{{isbn}}}\n", f"{isbn}\n", f"```json\n{{{isbn}}}\n```\n", "{'isbn': '978-0',} and "):
        yield Book, head + DUNE_TEXT, REFUSED, False
    for tail in (f'\n{{"book": {{{isbn}}}}}', '\nisbn: ["978-0"]', f'\n[{{"x": {{{isbn}}}}}]'):
        yield Book, DUNE_TEXT + tail, REFUSED, False
    echo = '{"type": "object", "properties": {"title": {}, "isbn": {"type": "string"}}}'
    yield Book, f"{DUNE_TEXT}\nSchema: {echo}", DUNE, False
    yield Book, f"book: {DUNE_TEXT}\nisbn: 978-0", REFUSED, False
    yield Book, f"isbn: 978-0\nbook: {DUNE_TEXT}", REFUSED, False
    yield Book, f"- book: {DUNE_TEXT}\n  isbn: unknown", REFUSED, False
    for tail in (f"\n{EMMA_TEXT}", f"\n[{EMMA_TEXT}]", f"\n- {EMMA_TEXT}", f"\n```json\n{EMMA_TEXT}\n```"):
        yield Shelf, f'{{"books": [{DUNE_TEXT}]}}' + tail, REFUSED, False
        yield list[Book], f"[{DUNE_TEXT}]" + tail, REFUSED, False
    for tail in (
        "\nThe isbn is unknown.",
        "\nisbn was not in the text.",
        '\nI left out "isbn".',
        "\n{isbn}",
        "\n(no isbn)",
    ):
        yield Book, DUNE_TEXT + tail, DUNE, False
    for tail in (
        "}",
        "]",
        ";",
        '"',
        ")",
        "}}",
        "]}",
        "\n}",
        " ;",
        "}\n```",
        "`",
        ".",
        "}\n\nDone.",
        "\uff5d",
        "\uff3d",
    ):
        yield Book, DUNE_TEXT + tail, DUNE, False
        yield Shelf, SHELF_TEXT + tail, SHELF, False


_CODE = (
    'if (a) { s = "}"; } return s', 'echo("}")', 'a { content: "}" }', 'x = "]}"', 'grep "[a-z]}" file',
    'say("}"); say("{")', '{"a": "b"}', 'f("]")', 'print("}", end="")', 'k = {"}": 1}',
)  # fmt: skip


def inner_quotes() -> Iterator[Row]:
    """A quote inside a string that is not escaped never shortens the text."""
    for code in _CODE:
        # One of them can be read in one way only.
        yield Note, f'{{"body": "{code}"}}', Note(code) if code == 'f("]")' else REFUSED
        if code != 'f("]")':
            yield Note, f'Sure:\n```json\n{{"body": "{code}"}}\n```', REFUSED
        yield Note, json.dumps({"body": code}), Note(code)
    for body in ('the "new" one', 'a "b" c "d" e', 'he said "stop" twice', 'say "a" or "b" now'):
        yield Note, f'{{"body": "{body}"}}', Note(body)
        yield Book, f'{{"title": "{body}", "pages": 3}}', Book(body, 3)
    for value in ('"tea" or "coffee"', '"a" + "b"', '"5" pipe"', '"a" "b"', '"a", "b"', '"tea" (or "mate")'):
        yield Note, f'{{"body": {value}}}', REFUSED


# ----------------------------------------------------------------------------------------- keys


def keys() -> Iterator[Row]:
    """Unknown keys are reported. One that is nearly a missing one is read as that."""
    spellings = {
        "isbn": ("ISBN", "Isbn", "is-bn", "i_s_b_n", "iSBN"),
        "pages": ("Pages", "PAGES", "pa_ges", "pages ", "pagés"),
        "title": ("Title", "TITLE", "ti-tle", "títle", "ti tle"),
    }
    for field, names in spellings.items():
        for name in names:
            for quote in '"', "'":
                text = FULL_TEXT.replace(f'"{field}"', f'"{name}"').replace('"', quote)
                yield Book, text, FULL
    for name in (
        "pageCount",
        "PageCount",
        "page-count",
        "page count",
        "PAGE_COUNT",
        "pagecount",
        "Page Count",
    ):
        yield Doc, json.dumps({name: 3, "authorName": "Ada"}), Doc(3, "Ada")
        yield Doc, json.dumps({name: 3, "resume": "short"}), Doc(3, None, "short")
        yield Doc, "Here: " + json.dumps({name: 3, "Author-Name": "Ada"}), Doc(3, "Ada"), False
    for name in ("note", "publisher", "error", "pages2", "titles", "isbn_13"):
        yield Book, json.dumps({"title": "Dune", "pages": 412, name: "x"}), DUNE
    for name in ("error", "settings", "properties", "answer", "type", "darkness", "$schema"):
        for value in ("x", {"dark": True, "size": 20}, None, []):
            yield Settings, json.dumps({name: value}), Refused("schema_unknown_field")
    yield Settings, "{}", Settings()
    yield Settings, '{"dark": true}', Settings(True)
    yield Settings, '{"Dark": true, "SIZE": 20}', Settings(True, 20)
    for both in (
        '{"dark": true, "Dark": false}',
        '{"DARK": false, "dark": true}',
        '{"dark": true, "da-rk": null}',
    ):
        yield Settings, both, Refused("duplicate_key")
    yield Settings, '{"dark": true, "Dark": true}', Settings(True)
    yield Owner, '{"pet": {"name": "Rio", "wings": 2, "Wings": 3}}', REFUSED
    for sign in ("!", "~", "#", "//", "?", ".", "*", "@", "+", "\u00ac", "x:"):
        yield Settings, json.dumps({f"{sign}dark": True}), Refused("schema_unknown_field")
        yield Book, json.dumps({"title": "Dune", f"{sign}pages": 412}), Refused("schema_missing_field")
        yield Settings, json.dumps({f"{sign}dark": True, "size": 5}), Settings(False, 5)
    for key in ("dark!", "dark?", "d.ark", "dark:", "dark()", "da/rk", "dark\u0338"):
        yield Settings, json.dumps({key: True}), Refused("schema_unknown_field")
    yield Settings, '{"Dark": true, "DARK": false}', REFUSED
    yield Settings, '{"dark:" true, "size": 5}', REFUSED
    yield Owner, '{"pet": {"name": "Rio", "wings": 2}}', Owner(Bird("Rio", 2))
    yield Owner, '{"pet": {"name": "Rio", "Wings": 2}}', Owner(Bird("Rio", 2))
    yield Owner, '{"pet": {"Name": "Rio", "fins": 3}}', Owner(Fish("Rio", 3))
    yield Owner, '{"pet": {"feathers": 9}}', REFUSED
    yield Owner, '{"Pet": {"name": "Rio", "WINGS": 2}}', Owner(Bird("Rio", 2))


# ---------------------------------------------------------------------------------------- prose

_TAKING_BACK = (
    "The page count above is off, take 604.", "All of this is fictional, as I got no text.", "Wait, that is wrong.",
    "Actually, the count is 500.", "I made these numbers up.", "Please do not use this.", "Das stimmt so nicht.",
    "C'est faux, prenez 604.", "これは例です。", "Это неверно.", "Scratch that.", "(and 9 more)", "Just a placeholder.",
    "Hold on, let me check again.", "Pages should be 604.", "That was only a sample.", "I am not sure about any of it.",
    "Please ignore the above.", "Disregard it.", "Oops.", "Correction: 604 pages.", "To je špatně.", "Λάθος.",
    "Yanlış oldu.", "Do you want the other nine as well?", "There are more of them.", "Replace the values with yours.",
)  # fmt: skip
_HARMLESS = (
    "Let me know if you need more.", "The pages are counted without the index.", "Source: the publisher.",
    "Hope this helps!", "I left out the ISBN since the text has none.", "Wait for the next edition if you can.",
    "No other book matches.", "(from the text)", "Note: 1 book found.", "It is not a novel for children.",
    "Gern geschehen.", "以上です。", "That is all.", "Voilà.", "The JSON is valid.", "Use the key \"title\" to sort.",
    "See [1] for details.", "A {placeholder} in braces.", "a -> b", "x > y and y < z", "5 < 6", "Cheers :)", "* done",
    "It's done, isn't it?", "He said \"fine\".", "**Done**", "Price: 5", "- one\n- two",
)  # fmt: skip


def prose() -> Iterator[Row]:
    """Prose is handed over and not judged."""
    for said in _TAKING_BACK:
        yield Book, f"{DUNE_TEXT}\n\n{said}", TakenBack(DUNE), False
        yield Book, f"```json\n{DUNE_TEXT}\n```\n{said}", TakenBack(DUNE), False
    for said in (
        "No text was attached. A result would look as follows:",
        "Never write",
        "For example:",
        "Wrong:",
    ):
        yield Book, f"{said}\n{DUNE_TEXT}", TakenBack(DUNE), False
    for said in _HARMLESS:
        yield Book, f"{DUNE_TEXT}\n{said}", DUNE, False
        yield Book, f"{said}\n```json\n{DUNE_TEXT}\n```", DUNE, False


# ------------------------------------------------------------------------------------- comments


def comments() -> Iterator[Row]:
    """A comment in the place of an item counts as items. One after a value may correct it, whatever its words are."""
    one = '{"title": "Dune", "pages": 412}'
    words = (
        "the other nine in the same form",
        "etc",
        "und so weiter",
        "other books",
        "end of list",
        "usw.",
        "…",
    )
    for said in words:
        yield Shelf, f'{{"books": [{one} // {said}\n]}}', Refused("truncated")
        yield Shelf, f'{{"books": [{one}, // {said}\n]}}', Refused("truncated")
        yield Shelf, f'{{"books": [{one},\n  // {said}\n]}}', Refused("truncated")
        yield Shelf, f'{{"books": [\n  // {said}\n  {one}\n]}}', Refused("truncated")
        yield Shelf, f'{{"books": [{one},\n  /* {said} */\n  {EMMA_TEXT}\n]}}', Refused("truncated")
        yield Shelf, f'{{"books": [{one} /* {said} */]}}', Refused("truncated")
        yield Shelf, f'{{"books": [/* {said} */]}}', Refused("truncated")
        yield Tags, f'{{"items": ["a", "b" # {said}\n]}}', Refused("truncated")
    for said in ("... rest", "other fields", "and so on", "und so weiter", "more", "as above"):
        for kind in (dict[str, int], Loose, Book, Settings):
            first = '"title": "Dune", "pages"' if kind is Book else '"data"' if kind is Loose else '"size"'
            opening = "{" + f"{first}: 4"
            for rest in (
                f", // {said}\n}}", f", # {said}\n}}", f", /* {said} */}}", f", /* {said} */ }}", f",\n  // {said}\n}}",
                f",\n  /* {said} */\n}}", f"\n  // {said}\n}}",
            ):  # fmt: skip
                yield kind, opening + rest, Refused("truncated")
        for rest in (
            f',\n// {said}\n"z": 26}}',
            f', /* {said} */ "z": 26}}',
        ):
            yield dict[str, int], '{"a": 1' + rest, Refused("truncated")
        for rest in (f" /* {said} */}}", f" // {said}\n}}"):
            yield dict[str, int], '{"a": 1' + rest, Refused(None if "." in said else "repair_failed")
        yield Book, f'{{"title": "Dune",\n// {said}\n"pages": 412}}', Refused("truncated")
        yield Book, f'{{\n// {said}\n"title": "Dune",\n"pages": 412}}', Refused("truncated")
        yield Book, f'{{"title": "Dune", /* {said} */ "pages": 412}}', Refused("truncated")
        yield Shelf, f'{{"books": [{{"title": "Dune", "pages": 412, /* {said} */}}]}}', Refused("truncated")
        yield Shelf, f'{{"books": [{{"title": "Dune",\n// {said}\n"pages": 412}}]}}', Refused("truncated")
        if "." not in said:
            whole = Book("Dune", 412, None)
            yield Book, f'{{"title": "Dune",\n// {said}\n"pages": 412, "isbn": null}}', whole, False
            yield Note, f'{{\n// {said}\n"body": "ok"}}', Note("ok"), False
    for said in (
        "ought to be 604",
        "not sure",
        "604",
        "never counted",
        "or 604?",
        "isn't right",
        "2nd edition",
        "placeholder",
        "wrong, fix",
        "the title",
        "without the index",
        "as counted",
        "Seiten",
        "",
    ):
        yield Book, f'{{"title": "Dune", "pages": 412 // {said}\n}}', Refused("repair_failed")
        yield Book, f'{{"title": "Dune", "pages": 412, // {said}\n"isbn": null}}', Refused("repair_failed")
        yield Book, f'{{"title": "Dune", "pages": 412 /* {said} */}}', Refused("repair_failed")
        yield Book, f'{{"title": "Dune", "pages": /* {said} */ 412}}', Refused("repair_failed")
        yield Book, f'{{"title": "Dune", // {said}\n"pages": 412}}', Refused("repair_failed")
        yield Tags, f'{{"items": ["a", // {said}\n"b"]}}', Refused("repair_failed")
    for said in ("the title", "without the index", "as counted", "an integer", "Seiten", "in pages"):
        yield Book, f'{{ // {said}\n"title": "Dune", "pages": 412}}', DUNE, False
        full = f'{{\n  # {said}\n  "title": "Dune",\n  /* {said} */\n  "pages": 412, "isbn": "978-0"\n}}'
        yield Book, full, FULL, False
        yield Tags, f'{{"items": [ // {said}\n"a", "b"]}}', Tags(["a", "b"]), False
        yield Tags, f'{{"items": ["a", "b"] // {said}\n}}', Refused("truncated")


def elided() -> Iterator[Row]:
    """Dots replace omitted text."""
    for dots in ("...", "…", "....", ".."):
        yield Tags, f'{{"items": ["a", {dots}]}}', Refused("truncated")
        yield Tags, f'{{"items": ["a", "b", {dots} "z"]}}', Refused("truncated")
        yield Book, f'{{"title": "Dune", "pages": 412, {dots}}}', Refused("truncated")
        yield Book, f'{{"title": "Dune", {dots} "pages": 412}}', Refused("truncated")
    for dots in ("...", "…"):
        yield Tags, f'{{"items": ["a"]}} {dots}', Refused("truncated")
        yield Tags, f'{{"items": ["a"]}}\n{dots}\n', Refused("truncated")
        yield Tags, f'{{"items": ["a{dots}", "{dots}"]}}', Tags([f"a{dots}", dots])
        yield Tags, f'{dots}\n{{"items": ["a"]}}\n{dots}', Tags(["a"]), False


# ------------------------------------------------------------------------------- brackets of prose

_STRAY = (
    "Half-open [1, 5) is meant.", "regex [0-9", "arr[0", "(see [2, p. 5)", "a set {a: 1", "the \x1b[1m", "[1", "{x: y",
    "f(x) = {1, if x", "An interval [0, 1) and", "use [A-Z", "ls [a", "the key {name: of it", "[\"a\", as I said",
    "{'a', it's", "C:[\\", "a list [1, 2 of", "see [3", "[-1, 1)",
)  # fmt: skip


def brackets_of_prose() -> Iterator[Row]:
    """A bracket that nothing closes, with a whole object behind it, belongs to the prose."""
    for said in _STRAY:
        yield Book, f"{said}\n{DUNE_TEXT}", DUNE, False
        yield Book, f"{said}\n```json\n{DUNE_TEXT}\n```", DUNE, False
    yield Note, '\x1b[1m{"body": "ok"}\x1b[0m', Note("ok"), False
    yield Note, 'regex [0-9 {"body": "ok"}', Note("ok"), False
    for tail in (" :-{", " :-[", "\nsee [3", "\nopen [1, 5)", " [x"):
        yield Note, '{"body": "ok"}' + tail, Note("ok"), False


def cut() -> Iterator[Row]:
    """A text that breaks off is truncated."""
    for kind, text in ((Book, FULL_TEXT), (Shelf, SHELF_TEXT), (Tags, '{"items": ["a", "b", "c"]}')):
        for at in range(2, len(text) - 1, 2):
            yield kind, text[:at], Refused("truncated")
        for at in range(9, len(text) - 1, 7):
            yield kind, f"Sure, here it is:\n```json\n{text[:at]}", REFUSED
            yield kind, f"Here: {text[:at]}", REFUSED
    for said in ("oops", "and", "5 of 7 [", "..."):
        yield Book, f"[{DUNE_TEXT}, {said} {EMMA_TEXT}", REFUSED
        yield Shelf, f'{{"books": [{DUNE_TEXT}, {said} {SHELF_TEXT}', REFUSED
        yield Settings, f'{{"dark": true {said}, {{"size": 3}}', REFUSED
    for at in range(8, len(SHELF_TEXT) - 1, 9):
        yield Shelf, f"[{SHELF_TEXT}, {SHELF_TEXT[:at]}", REFUSED
        yield Book, f"{DUNE_TEXT}\n{SHELF_TEXT[:at]}", REFUSED
    yield list[Book], f"[{DUNE_TEXT}, {EMMA_TEXT}", Refused("truncated")
    yield Book, f"[{DUNE_TEXT}, {EMMA_TEXT}", Refused("truncated")
    for mark in ("```", "~~~", "```\n\nDone."):
        yield Shelf, f'```json\n{{"books": [{DUNE_TEXT}\n{mark}', REFUSED
        yield list[Book], f"Here:\n```json\n[{DUNE_TEXT}, {EMMA_TEXT}\n{mark}", REFUSED
    yield Shelf, f'```json\n{{"books": [{DUNE_TEXT}\n```', Refused("truncated")
    yield Shelf, f'```json\n{{"books": [{DUNE_TEXT},\n```', Refused("truncated")
    yield list[Book], f"```json\n[{DUNE_TEXT}, {EMMA_TEXT}\n```", Refused("truncated")
    yield Tags, '```\n{"items": ["a", "b"\n```', Refused("truncated")
    yield Book, f"```json\n{DUNE_TEXT[:-1]}\n```", DUNE
    yield Book, f"~~~json\n{DUNE_TEXT[:-1]}\n~~~", DUNE
    yield Book, f"<answer>{DUNE_TEXT[:20]}", Refused("truncated")
    yield Book, "<answer>", Refused("truncated")
    yield Book, f"Draft: {EMMA_TEXT}\n<answer>", Refused("truncated")
    yield Book, f"{EMMA_TEXT}\n```json\n", Refused("truncated")


# --------------------------------------------------------------------------------- what is no answer


def others() -> Iterator[Row]:
    """A tool's text, struck-out text and hidden text are not the model's answer."""
    hidden = (
        ("<tool_response>", "</tool_response>"), ("<tool_result>", "</tool_result>"),
        ("<function_results>", "</function_results>"), ("<tool_output>", "</tool_output>"),
        ("~~", "~~"), ("<del>", "</del>"), ("<s>", "</s>"), ("<strike>", "</strike>"), ("<!-- ", " -->"),
        ("<function_response>", "</function_response>"), ("<!--\n", "\n-->"), ("[TOOL_RESULTS]", "[/TOOL_RESULTS]"),
        ("<\uff5ctool\u2581output\u2581begin\uff5c>", "<\uff5ctool\u2581output\u2581end\uff5c>"),
        ("<\uff5ctool\u2581outputs\u2581begin\uff5c>", "<\uff5ctool\u2581outputs\u2581end\uff5c>"),
        ("<|tool_response_start|>", "<|tool_response_end|>"), ("<|START_TOOL_RESULT|>", "<|END_TOOL_RESULT|>"),
        ("<|start_header_id|>ipython<|end_header_id|>\n\n", "<|eot_id|>"), ("<|im_start|>tool\n", "<|im_end|>"),
        ("<|im_start|>user\n", "<|im_end|>"), ("<|start_header_id|>user<|end_header_id|>\n", "<|eot_id|>"),
        ("<|start|>functions.book to=assistant<|channel|>commentary<|message|>", "<|end|>"),
        ("<|start_of_role|>tool_response<|end_of_role|>", "<|end_of_text|>"), ("<tool-response>", "</tool-response>"),
        ("<tool_call_result>", "</tool_call_result>"), ("<ToolOutput name='x'>", "</ToolOutput>"),
    )  # fmt: skip
    for opening in (
        "[TOOL_RESULTS]",
        "<\uff5ctool\u2581outputs\u2581begin\uff5c>",
        "<tool_response>",
        "<|im_start|>tool\n",
    ):
        yield Book, opening + EMMA_TEXT, REFUSED, False
        yield Book, f"{opening}{EMMA_TEXT}\n{DUNE_TEXT}", REFUSED, False
    for opening, closing in hidden:
        yield Book, f"{opening}{EMMA_TEXT}{closing}", Refused("extraction_failed"), False
        yield Book, f"{opening}{EMMA_TEXT}{closing}\n{DUNE_TEXT}", DUNE, False
        yield Book, f"{DUNE_TEXT}\n{opening}{EMMA_TEXT}{closing}", DUNE, False
        body = f"{opening}x{closing}"
        yield Note, json.dumps({"body": body}), Note(body)
    for tail in (
        " + {'pages': 3}",
        ' + {"isbn": "x"}',
        "['title']",
        ".get('title')",
        " if x else {}",
        '["title"]',
    ):
        yield Book, DUNE_TEXT + tail, REFUSED, False
    for tail in (
        '\n"pages": 413',
        "\n'pages': 413,",
        '\n"title": "Emma"',
        "\nbook.pages = 413",
        "\n`pages`: 413",
    ):
        yield Book, DUNE_TEXT + tail, REFUSED, False
    yield Book, f"book: {DUNE_TEXT}\npages: 604", REFUSED, False
    yield Book, f"title: Emma\nbook: {DUNE_TEXT}", REFUSED, False
    yield Book, f"status: done\nbook: {DUNE_TEXT}", DUNE, False


def several() -> Iterator[Row]:
    """Several different objects: a tag, a heading or a fence names the answer, words do not."""
    yield Book, "{'title': 'Dune', 'pages': 412,}\n" * 3, DUNE, False
    yield Book, '{"title": Dune, "pages": 412}\n' * 3, Refused("repair_failed")
    yield (
        Book,
        f'<scratch>{EMMA_TEXT}</scratch>\n<answer>{{"title", "Dune": "pages": 412}}</answer>',
        Refused("ambiguous"),
        False,
    )
    yield Book, f'{EMMA_TEXT}\n## Answer\n{{"Dune" 412}}', Refused("ambiguous"), False
    for first, last in (
        ("Draft:", "Final:"),
        ("Example:", "Answer:"),
        ("First try:", "Corrected:"),
        ("A:", "B:"),
    ):
        yield Book, f"{first} {EMMA_TEXT}\n{last} {DUNE_TEXT}", Refused("ambiguous"), False
        yield (
            Book,
            f"{first}\n```json\n{EMMA_TEXT}\n```\n{last}\n```json\n{DUNE_TEXT}\n```",
            Refused("ambiguous"),
            False,
        )
        yield Book, f"{first} {EMMA_TEXT}\n```json\n{DUNE_TEXT}\n```", DUNE, False
    for tag in ("answer", "final", "final_answer", "result", "response", "output"):
        yield Book, f"{EMMA_TEXT}\n<{tag}>{DUNE_TEXT}</{tag}>", DUNE, False
        yield Book, f"<notes>{EMMA_TEXT}</notes>\n<{tag}>\n{DUNE_TEXT}\n</{tag}>", DUNE, False
        yield Book, f"<{tag}>\n```json\n{DUNE_TEXT}\n```\n</{tag}>", DUNE
        yield Book, f"<{tag}>{EMMA_TEXT}</{tag}>\n<{tag}>{DUNE_TEXT}</{tag}>", Refused("ambiguous"), False
        yield Book, f"{EMMA_TEXT}\n<{tag}>{DUNE_TEXT}", REFUSED, False
    for heading in (
        "## Answer",
        "# Final answer",
        "### Result",
        "## Output",
        "**Answer**",
        "**Final answer:**",
    ):
        yield Book, f"## Thinking\n{EMMA_TEXT}\n\n{heading}\n{DUNE_TEXT}", DUNE, False
        yield Book, f"## Notes\n```json\n{EMMA_TEXT}\n```\n{heading}\n```json\n{DUNE_TEXT}\n```", DUNE, False
    for layout in (
        "{0}\n{1}",
        "{0} {1}",
        "- {0}\n- {1}",
        "```\n{0}\n```\n```\n{1}\n```",
        "{0} or {1}",
        "{0},\n{1}",
    ):
        yield Book, layout.format(EMMA_TEXT, DUNE_TEXT), REFUSED, False
        yield Book, layout.format(DUNE_TEXT, DUNE_TEXT), DUNE, False
    null = '{"title": "Dune", "pages": 412, "isbn": null}'
    for pair in ((DUNE_TEXT, null), (null, DUNE_TEXT)):
        yield Book, "\n".join(pair), DUNE, False
        yield Book, "{}\n```json\n{}\n```".format(*pair), DUNE, False
    yield Book, f"[{DUNE_TEXT}, {EMMA_TEXT}]", REFUSED
    yield Book, f"{DUNE_TEXT}\n{{'title': 'Emma', 'pages': 4 of 7}}", REFUSED, False


# ----------------------------------------------------------------------------------- literals

_NOT_NUMBERS = (
    "5 of 18", "1,000", "~5", "5 pages", "5-6", "five", "5%", "NaN", "Infinity", "5 or 6", "> 5", "5+", "2*3", "1 000",
    "−5", "05", "5e", "0x", "1.000,5", "5?", "\"5\"", "5.5", "null", "true", "[5]", "{}", "[]", "one hundred", "1/2",
    "≈5", "5!", "5 (approx.)", "$5", "5k", "5 000", "１２",
)  # fmt: skip


def literals() -> Iterator[Row]:
    """A value is one whole literal of the text, or there is none."""
    for word in _NOT_NUMBERS:
        yield Book, f'{{"title": "Dune", "pages": {word}}}', REFUSED
        yield Book, f"{{'title': 'Dune', 'pages': {word},}}", REFUSED
    for word in ("TRUE", "True", "true"):
        yield Settings, f'{{"dark": {word}}}', Settings(True)
    for word in ("FALSE", "False", "false"):
        yield Settings, f'{{"dark": {word}}}', Settings()
    for word in ("NULL", "Null", "None", "null"):
        yield Book, f'{{"title": "Dune", "pages": 412, "isbn": {word}}}', DUNE
    yield Book, '｛"title": "Dune", "pages": 412｝', DUNE
    yield Tags, '{"items": ["a"\n"b"]}', Tags(["a", "b"])
    yield Tags, '{"items": [\n  "a"\n  "b",\n  "c"\n]}', Tags(["a", "b", "c"])
    yield Tags, '{"items": ["a" "b"]}', REFUSED
    yield Book, '{"title": "Dune"; "pages": 412}', DUNE
    yield Book, '{"title" = "Dune", "pages" => 412}', DUNE
    yield Book, "{title: 'Dune', pages: 412,}", DUNE
    yield Book, '{"title": "Dune" "pages": 412}', DUNE
    yield Book, '{"title": Dune, "pages": 412}', REFUSED
    for separator in (
        '"" :Dune",',
        '"" : Dune",',
        '": "Dune," ',
        '": "Dune" ,"',
    ):  # outside of the quotes, as meant
        yield Book, f'{{"title{separator}"pages": 412}}', REFUSED
    yield Tags, '{"items": ["a,"\n"b"]}', REFUSED
    yield Tags, '{"items": ["a"\n",b"]}', REFUSED
    yield Book, '{"title": "Dune", "title": "Emma", "pages": 412}', Refused("duplicate_key")
    yield Note, '{"body": "ok"]', REFUSED
    for number, value in (("12.50", "12.50"), ("-3.20", "-3.20"), ('"-3.20"', "-3.20"), ("7", "7"), ('"0.10"', "0.10"),
                          ("-0.5", "-0.5"), ("1e3", "1E+3"), ("0.1000", "0.1000"), ("123456789012345678901.25",) * 2):  # fmt: skip
        yield Bill, f'{{"sum": {number}}}', Bill(Decimal(value))
        yield Bill, f"Sum: {{'sum': {number.replace(chr(34), chr(39))}}}", Bill(Decimal(value)), False
    for number in ('"12,50"', '"5 EUR"', "true", "null", '"NaN"', '""', "12,50", "5 EUR"):
        yield Bill, f'{{"sum": {number}}}', REFUSED
    plus = timezone(timedelta(hours=2))
    for said, zone in (("2024-05-01T10:00:00+02:00", plus), ("2024-05-01T10:00:00Z", UTC), ("2024-05-01t10:00:00z", UTC)):  # fmt: skip
        yield Meeting, f'{{"start": "{said}"}}', Meeting(datetime(2024, 5, 1, 10, tzinfo=zone))
    for said in ("2024-05-01T10:00:00", "2024-05-01", "tomorrow", "01.05.2024 10:00", "10:00", ""):
        yield Meeting, f'{{"start": "{said}"}}', REFUSED


# --------------------------------------------------------------------------------------- types


def types() -> Iterator[Row]:
    """Every type, not only a class of attrs."""
    both = f"[{DUNE_TEXT}, {EMMA_TEXT}]"
    yield list[Book], both, [DUNE, Book("Emma", 474)]
    yield list[Book], f"Here:\n```json\n{both}\n```", [DUNE, Book("Emma", 474)], False
    yield list[Book], f'{{"value": {both}}}', [DUNE, Book("Emma", 474)]
    yield list[Book], DUNE_TEXT, REFUSED
    yield list[int], "[1, 2, 3]", [1, 2, 3]
    yield list[int], "[1, 2.5]", REFUSED
    yield dict[str, int], '{"a": 1, "b": 2}', {"a": 1, "b": 2}
    yield dict[str, int], '{"a": 1, "b": "2"}', REFUSED
    yield dict[str, Book], f'{{"x": {DUNE_TEXT}}}', {"x": DUNE}
    yield Animal, '{"name": "cat"}', Animal("cat")
    yield Animal, "Here: {'name': 'bird', 'legs': 2}", Animal("bird", 2), False
    yield Animal, '{"legs": 2}', Refused("schema_missing_field")
    yield Point, '{"x": 1, "y": 2}', Point(1, 2)
    yield Point, '{"x": 1}', Point(1)
    yield Movie, '{"title": "Alien", "year": 1979}', {"title": "Alien", "year": 1979}
    yield Movie, '{"title": "Alien"}', Refused("schema_missing_field")
    want: Any
    for text, want in (
        ('"red"', Colour.RED),
        ("red", Colour.RED),
        ('{"value": "blue"}', Colour.BLUE),
        ("green", REFUSED),
    ):
        yield Colour, text, want
    for text, want in (
        ('"yes"', "yes"),
        ("no", "no"),
        ("maybe", REFUSED),
        ("yes and no", REFUSED),
        ('{"value": "no"}', "no"),
    ):
        yield Literal["yes", "no"], text, want
    for text, want in (
        ("5", 5),
        ('{"value": 5}', 5),
        ("5.5", REFUSED),
        ('"5"', REFUSED),
        ("```json\n5\n```", 5),
    ):
        yield int, text, want
    yield Fish | Bird, '{"name": "Rio", "wings": 2}', Bird("Rio", 2)
    yield Fish | Bird, '{"value": {"name": "Rio", "fins": 2}}', Fish("Rio", 2)
    for kind in (Book, Book | None, list[int] | None, Colour, {"type": ["integer", "null"]}):
        yield kind, "null", Refused("schema_type_error")
        yield kind, '{"value": null}', REFUSED
    yield Loose, '{"data": [1, {"a": null}]}', Loose([1, {"a": None}])
    yield Mood, '{"mood": "good"}', Mood("good")
    yield Mood, '{"mood": "Good"}', REFUSED
    yield Mood, '{"mood": "great"}', Refused("schema_type_error")
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}
    for text, want in (
        ('{"n": 1}', {"n": 1}),
        ('{"n": 0}', REFUSED),
        ('{"n": "1"}', REFUSED),
        ("{}", REFUSED),
    ):
        yield schema, text, want
        yield schema, f"```\n{text}\n```", want


FAMILIES: tuple[Callable[[], Iterator[Row]], ...] = (
    marks_in_values, reasoning_around, tags_as_answers, harmony, fences, closed_too_early, inner_quotes, keys, prose, comments,
    elided, brackets_of_prose, cut, others, several, literals, types,
)  # fmt: skip


def load_table() -> list[Case]:
    """All cases. A text occurs once for each type."""
    cases: list[Case] = []
    seen: set[tuple[str, str]] = set()
    for family in FAMILIES:
        number = 0
        for kind, text, *outcome in family():
            if (repr(kind), text) not in seen:
                seen.add((repr(kind), text))
                number += 1
                cases.append(Case(f"{family.__name__}-{number:03}", kind, text, *outcome))
    return cases
