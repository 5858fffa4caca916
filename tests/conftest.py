"""How every test runs: the same examples every time, and none judged by the clock."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Final

import certifi
import coverage
import pytest
from hypothesis import settings

from beside import TRIED, table
from crosswalk.learning import Budget
from crosswalk.testing import Capture
from pages import ROOT

settings.register_profile("crosswalk", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=5000)  # --hypothesis-profile=search
if settings.get_current_profile_name() == "default":
    settings.load_profile("crosswalk")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what tries very many captures or values, and put all that is marked so last.

    That is the kit's changes of every capture of a shipped provider, all tests of a capture that lies beside the project, and
    all for which values are invented.
    """
    for item in items:
        is_kit = item.name.startswith("test_promise[") and item.path.parent.name in {"contrib", "providers"}
        is_property = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
        given = item.callspec.params.values() if hasattr(item, "callspec") else ()
        if (
            is_kit
            or is_property
            or any(type(one) is Capture and not one.file.is_relative_to(ROOT) for one in given)
        ):
            item.add_marker("sweep")
    items.sort(key=is_sweep)


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over what lives as long as the run: twenty thousand tests, looked through each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def everything_is_learnt() -> Iterator[None]:
    """Or what a test reads would be learnt from only where those before have not spent all that may be; see ``test_learning``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Budget, "allows", lambda self, cost: True)
        yield


@pytest.fixture(scope="session", autouse=True)
def one_authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One certificate for each of thousands of HTTP clients to load, not all of them: that takes 17 ms, and next to none is used."""
    file = tmp_path_factory.mktemp("authority") / "one.pem"
    first, end, _ = certifi.contents().partition("-----END CERTIFICATE-----\n")
    file.write_text(first + end, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(file))
        yield


def is_sweep(item: pytest.Item) -> bool:
    """Whether *item* tries so much that tracing it would take longer than all the rest."""
    return item.get_closest_marker("sweep") is not None


_STOPPED: Final[list[coverage.Coverage]] = []
"""What measures, while a sweep runs."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Measure what counts for the coverage, and no sweep."""
    measuring = coverage.Coverage.current()
    if measuring is not None and is_sweep(item):
        measuring.stop()
        _STOPPED.append(measuring)
    elif _STOPPED and not is_sweep(item):
        _STOPPED.pop().start()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how much of the captures beside the project was tried, also where processes shared the work."""
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    tried = [value for report in reports for name, value in report.user_properties if name == TRIED]
    if tried:
        terminalreporter.section("captures beside the project")
        for line in table(tried):
            terminalreporter.write_line(line)
