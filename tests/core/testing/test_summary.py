"""The lines at the end of a pytest run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from crosswalk.testing.summary import UNSTATED, Summary


def report(provider: str, when: str = "call", name: str = UNSTATED) -> Any:
    return SimpleNamespace(when=when, user_properties=[(name, provider)])


def lines_of(*reports: Any) -> list[str]:
    summary, lines = Summary(), []
    for one in reports:
        summary.pytest_runtest_logreport(one)
    terminal: Any = SimpleNamespace(write_line=lines.append)
    summary.pytest_terminal_summary(terminal)
    return lines


def test_captures_without_a_statement_are_counted() -> None:
    assert lines_of(
        report("b"), report("a"), report("b"), report("b", "teardown"), report("c", name="other")
    ) == [
        "crosswalk: a: 1 capture has no statement (CASE.says.json)",
        "crosswalk: b: 2 captures have no statement (CASE.says.json)",
    ]


def test_nothing_is_written_where_each_has_one() -> None:
    assert lines_of() == []
