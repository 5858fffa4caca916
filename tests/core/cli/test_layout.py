"""The output of commands on a terminal, narrow ones included."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from crosswalk.cli.terminal import write_table

from .conftest import ROOT, Done, Terminal

Run = Callable[..., Done]
ANSWER = str(ROOT / "tests/captures/ollama/go_chat_stop.response.json")


@pytest.mark.sweep
@pytest.mark.parametrize(
    "command",
    [("explain", ANSWER), ("providers",), ("table", "ollama", ANSWER)],
    ids=lambda command: str(command[0]),
)
@pytest.mark.parametrize("width", [200, 80, 60])
def test_no_name_is_broken(
    run: Run,
    terminal: Callable[[str], Terminal],
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    width: int,
) -> None:
    """Every name in a pipe is on the terminal too, and no line is wider than the window."""
    plain = run(*command).out
    drawn = on_terminal(run, terminal, monkeypatch, width, *command)
    names = set(re.findall(r"\b[a-z_]{4,}\b", plain)) - {"metadata", "extensions", "event"}
    assert names - set(re.findall(r"[a-z_]+", drawn)) == set()
    assert max(map(len, drawn.splitlines())) <= width


@pytest.mark.parametrize("command", [("explain", ANSWER), ("providers",)], ids=["explain", "providers"])
def test_a_usual_terminal_shows_a_table(
    run: Run, terminal: Callable[[str], Terminal], monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    assert "───" in on_terminal(run, terminal, monkeypatch, 80, *command)


def test_the_columns_of_one_event_are_wire_value_where_how(
    run: Run, terminal: Callable[[str], Terminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = on_terminal(run, terminal, monkeypatch, 80, "explain", ANSWER)
    headings, _, first, created, *_ = drawn.splitlines()
    assert headings.split() == ["wire", "value", "where", "how"]
    assert first.split() == ["model", '"tiny-go"', "metadata.model_id,", "model", "typed"]
    assert "…created_at" in created


def test_what_is_empty_has_no_line_of_its_own(
    run: Run, terminal: Callable[[str], Terminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a window that is too narrow for columns."""
    drawn = on_terminal(run, terminal, monkeypatch, 40, "explain", ANSWER)
    done = next(block for block in drawn.split("\n\n") if "wire   done\n" in block)
    assert done.splitlines() == ["wire   done", "value  true", "how    another value is refused"]


def on_terminal(
    run: Run,
    terminal: Callable[[str], Terminal],
    monkeypatch: pytest.MonkeyPatch,
    width: int,
    *command: str,
) -> str:
    """The text that *command* draws on a terminal of *width* columns, without bold and other styles."""
    monkeypatch.setenv("COLUMNS", str(width))
    screen = terminal("stdout")
    run(*command)
    return re.sub(r"\x1b\[[0-9;]*m", "", screen.text())


def test_one_long_cell_does_not_widen_all_rows(capsys: pytest.CaptureFixture[str]) -> None:
    """In a pipe, where columns are aligned: it moves what follows it in its own row."""
    write_table(["a", "b"], [["x", "1"], ["y" * 500, "2"], ["zz", "3"]])
    assert capsys.readouterr().out.splitlines() == ["a   b", "x   1", f"{'y' * 500}  2", "zz  3"]
