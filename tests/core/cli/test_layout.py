"""What commands draw on a terminal, narrow ones included."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from crosswalk.cli.layout import write_table

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
def test_no_word_is_broken(
    run: Run,
    terminal: Callable[[str], Terminal],
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    width: int,
) -> None:
    """Whatever stands in a pipe stands on the terminal too, word by word; only a word may be wider than the screen."""
    plain = run(*command).out
    monkeypatch.setenv("COLUMNS", str(width))
    screen = terminal("stdout")
    run(*command)
    drawn = re.sub(r"\x1b\[[0-9;]*m", "", screen.text())  # headings are bold
    words = {word for word in plain.split() if word.strip("─")}
    assert words - set(drawn.split()) == set()
    assert ("───" in drawn) is (width == 200)
    for line in drawn.splitlines():
        assert len(line) <= width or len(line.split()[-1]) > width - 20


def test_what_is_empty_has_no_line_of_its_own(
    run: Run, terminal: Callable[[str], Terminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    screen = terminal("stdout")
    run("explain", ANSWER)
    done = next(block for block in screen.text().split("\n\n") if "wire   done\n" in block)
    assert done.splitlines() == [
        "event  1",
        "wire   done",
        "value  true",
        "how    another value is refused: IncompleteStreamError",
    ]


def test_one_long_cell_does_not_widen_all_rows(capsys: pytest.CaptureFixture[str]) -> None:
    """In a pipe, where columns are aligned: it moves what follows it in its own row."""
    write_table(["a", "b"], [["x", "1"], ["y" * 500, "2"], ["zz", "3"]])
    assert capsys.readouterr().out.splitlines() == ["a   b", "x   1", f"{'y' * 500}  2", "zz  3"]
