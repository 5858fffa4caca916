"""The output of the shipped displays, for any input."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, strategies as st
from rich.console import Console

from crosswalk.responses import (
    DisplayRegistry,
    DisplayStrategy,
    JSONLinesDisplay,
    PlainTextDisplay,
    Response,
    ResponsesValueError,
    UnknownDisplayError,
    Update,
    UpdateKind,
    displays,
    parse_response,
)
from crosswalk.responses.display import LiveDisplay
from crosswalk.text import harmless
from pages import environment


def update(kind: str, text: str, key: str | None = None, **more: Any) -> Update:
    return Update(kind=kind, text=text, key=key, **more)


ANSWER = [
    update("reasoning", "First\n", "0"),
    update("reasoning", "look", "0"),
    update("text", "Checking", "1"),
    update("text", " it.", "1"),
    update("tool", "stock({}): in_progress", "2", replaces=True),
    update("tool", "stock({}): completed", "2", replaces=True),
    update("text", "Nine.\n", "3"),
    update("text", "More", "4"),
    update("text", "Less", "4", replaces=True),
    update("refusal", "No", "5"),
    update("citation", "Fundy <u>"),
    update("words", "3"),
    update("error", "server_error: oh"),
]


def play(display: DisplayStrategy, updates: list[Update]) -> None:
    display.open()
    for item in updates:
        display.show(item)
    display.close()


def plain(updates: list[Update], **options: Any) -> str:
    out = io.StringIO()
    play(PlainTextDisplay(out, **options), updates)
    return out.getvalue()


def live(updates: list[Update], *, terminal: bool = False, width: int = 60) -> str:
    out = io.StringIO()
    play(LiveDisplay(console=Console(file=out, width=width, height=5, force_terminal=terminal, color_system=None)), updates)  # fmt: skip
    return out.getvalue()


def test_plain_text() -> None:
    assert plain(ANSWER).splitlines() == [
        "[reasoning] First",
        "look",
        "Checking it.",
        "[tool] stock({}): in_progress",
        "[tool] stock({}): completed",
        "Nine.",
        "More",
        "Less",
        "[refusal] No",
        "[citation] Fundy <u>",
        "[words] 3",
        "[error] server_error: oh",
    ]


def test_plain_text_without_details() -> None:
    assert plain(ANSWER, details=False).splitlines() == [
        "Checking it.", "Nine.", "More", "Less", "[refusal] No", "[error] server_error: oh",
    ]  # fmt: skip
    assert plain([], details=False) == ""
    assert plain([update("text", "", "0")]) == ""


def test_plain_text_in_a_narrow_encoding() -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    play(PlainTextDisplay(out), [update("text", "né ☃", "0")])
    assert raw.getvalue() == b"n\\xe9 \\u2603\n"


def test_json_lines() -> None:
    out = io.StringIO()
    response = parse_response({"id": "r", "status": "completed", "output": [], "note": "é\u2028"})
    play(JSONLinesDisplay(out), [*ANSWER[3:5], update("end", "é \U0001f4a3 \x7f \x1b", response=response)])
    assert out.getvalue().isascii()
    assert [json.loads(line) for line in out.getvalue().splitlines()] == [
        {"kind": "text", "text": " it.", "key": "1"},
        {"kind": "tool", "text": "stock({}): in_progress", "key": "2", "replaces": True},
        {"kind": "end", "text": "é \U0001f4a3 \x7f \x1b", "response": {"id": "r", "status": "completed", "output": [], "note": "é\u2028"}},
    ]  # fmt: skip


def test_a_live_display_ends_with_the_whole() -> None:
    lines = [line.rstrip() for line in live(ANSWER).splitlines()]
    assert lines == [
        "First",
        "look",
        "Checking it.",
        "[tool] stock({}): completed",
        "Nine.",
        "Less",
        "[refusal] No",
        "[citation] Fundy <u>",
        "[words] 3",
        "[error] server_error: oh",
    ]
    on_terminal = live(ANSWER, terminal=True)
    assert all(line in on_terminal for line in lines)
    assert live([]).strip() == ""


def test_a_live_display_continues_what_has_no_key() -> None:
    shown = live(
        [
            update("text", "a"),
            update("text", ""),
            update("text", "b"),
            update("words", "1"),
            update("words", "2"),
            update("text", "c"),
        ]
    )
    assert [line.rstrip() for line in shown.splitlines()] == ["ab", "[words] 1", "[words] 2", "c"]


def test_a_live_display_shows_the_end_while_it_comes() -> None:
    out = io.StringIO()
    console = Console(file=out, width=20, height=4, force_terminal=True, color_system=None)
    display = LiveDisplay(console=console, refresh_per_second=0.001)
    display.open()
    for number in range(9):
        display.show(update("tool", f"line {number}", str(number)))
    display.show(update("text", "x" * 30_000 + "y" * 50, "text"))
    with console.capture() as drawn:  # printing above a live display draws it anew
        console.print("above")
    display.close()
    assert drawn.get().split()[-4:] == ["above", "x" * 10 + "y" * 10, "y" * 20, "y" * 20]
    assert "line" not in drawn.get()
    assert "line 0" in out.getvalue()


def test_a_live_display_may_be_closed_twice_and_used_again() -> None:
    out = io.StringIO()
    display = LiveDisplay(out)
    for word in ("one", "two"):
        play(display, [update("text", word)])
        display.close()
    assert out.getvalue().split() == ["one", "two"]


@given(st.lists(st.builds(update, st.sampled_from([*UpdateKind, "own\x1b[2J"]), st.text(st.characters(max_codepoint=0x2100, exclude_categories=["Cs"]) | st.sampled_from("\x1b\x9b\u202e\r\b\u2028")), st.sampled_from([None, "a", "b"]), replaces=st.booleans()), max_size=6))  # fmt: skip
def test_nothing_that_a_terminal_would_obey_is_written(updates: list[Update]) -> None:
    out = io.StringIO()
    play(JSONLinesDisplay(out), updates)
    for written in (plain(updates), live(updates), out.getvalue()):
        assert not {c for c in written if not c.isprintable() and c not in "\n\t"} & set(
            map(chr, range(0xA0))
        )
        assert not set("\u202e\u2028\u200e\ufeff") & set(written)


def test_updates_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ResponsesValueError, match="expected string @ Update.text"):
        Update(kind="text", text=3)  # type: ignore[arg-type]
    with pytest.raises(ResponsesValueError, match="expected string @ Update.kind"):
        Update(kind=None, text="")  # type: ignore[arg-type]
    assert repr(update("text", "x" * 1000)).endswith("…')")


def test_displays_are_found_by_name() -> None:
    assert displays.names == ("plain", "live", "jsonl")
    for name in displays.names:
        out = io.StringIO()
        play(displays.make(name, out), [update("text", "hello", "0")])
        assert "hello" in out.getvalue()
    with pytest.raises(
        UnknownDisplayError, match=r"no display 'x\\?.*'; there are plain, live, jsonl"
    ) as caught:
        displays.make("x", sys.stdout)
    assert caught.value.known == displays.names


def test_displays_of_ones_own_are_registered() -> None:
    class Shout(DisplayStrategy):
        def __init__(self, out: Any) -> None:
            self.out = out

        def show(self, update: Update) -> None:
            self.out.write(update.text.upper())

    registry = DisplayRegistry()
    registry.register("shout", Shout)
    out = io.StringIO()
    play(registry.make("shout", out), [update("text", "hey")])
    assert out.getvalue() == "HEY"
    assert isinstance(Response(), Response)


def test_rich_is_loaded_only_for_a_live_display() -> None:
    code = "import sys, crosswalk.responses; assert 'rich' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], env=environment(), check=True)


@pytest.mark.parametrize(
    ("text", "line", "lines"),
    [
        ("a\n\tb", "a\\u000a\\u0009b", "a\n\tb"),
        ("\x1b[2J\r\x07", "\\u001b[2J\\u000d\\u0007", "\\u001b[2J\\u000d\\u0007"),
        (
            "\x9b\u202e\u2028\ufeff\x7f",
            "\\u009b\\u202e\\u2028\\ufeff\\u007f",
            "\\u009b\\u202e\\u2028\\ufeff\\u007f",
        ),
        ("\ud800 é 汉", "\\ud800 é 汉", "\\ud800 é 汉"),
    ],
)
def test_what_is_made_harmless(text: str, line: str, lines: str) -> None:
    assert harmless(text) == line
    assert harmless(text, lines=True) == lines
