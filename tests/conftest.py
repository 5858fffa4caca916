"""How every test runs: the same examples every time, and none judged by the clock."""

from __future__ import annotations

import pytest
from hypothesis import settings

from beside import TRIED, table
from crosswalk.testing import Capture
from pages import ROOT

settings.register_profile("crosswalk", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=5000)  # --hypothesis-profile=search
if settings.get_current_profile_name() == "default":
    settings.load_profile("crosswalk")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what tries very many captures: with tracing it would take longer than all the rest.

    That is the kit's changes of every capture of a shipped provider, and all tests of a capture that lies beside the project.
    """
    for item in items:
        is_kit = item.name.startswith("test_promise[") and item.path.parent.name in {"contrib", "providers"}
        given = item.callspec.params.values() if hasattr(item, "callspec") else ()
        if is_kit or any(type(one) is Capture and not one.file.is_relative_to(ROOT) for one in given):
            item.add_marker("sweep")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how much of the captures beside the project was tried, also where processes shared the work."""
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    tried = [value for report in reports for name, value in report.user_properties if name == TRIED]
    if tried:
        terminalreporter.section("captures beside the project")
        for line in table(tried):
            terminalreporter.write_line(line)
