"""The lines that the pytest plugin writes at the end of a run."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pytest

__all__ = ["UNSTATED", "Summary"]

UNSTATED: Final = "crosswalk_unstated"
"""The property of a test whose capture has no statement: the provider id."""


class Summary:
    """A pytest plugin that counts the captures without a statement.

    The counts travel as properties of the tests, so that they also arrive from the processes of pytest-xdist.
    """

    def __init__(self) -> None:
        self._unstated: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Read the properties of a finished test."""
        if report.when == "call":
            self._unstated.update(str(value) for name, value in report.user_properties if name == UNSTATED)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write a line for each provider with captures that have no statement."""
        for provider, count in sorted(self._unstated.items()):
            captures = "1 capture has" if count == 1 else f"{count} captures have"
            terminalreporter.write_line(f"crosswalk: {provider}: {captures} no statement (CASE.says.json)")
