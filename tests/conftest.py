"""How every test runs: the same examples every time, and none judged by the clock."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from typing import Final

import certifi
import coverage
import pytest
from hypothesis import settings

from beside import TRIED, table
from crosswalk.testing import Capture, ProviderConformance
from pages import ROOT

settings.register_profile("crosswalk", deadline=None, derandomize=True, max_examples=25)
settings.register_profile("thorough", deadline=None, derandomize=True, max_examples=100)
settings.register_profile("search", deadline=None, max_examples=5000)  # --hypothesis-profile=search
# Hypothesis's own; a forge's machine has the latter.
if settings.get_current_profile_name() in {"default", "ci"}:
    settings.load_profile("crosswalk")
_SAMPLE: Final = 10
"""How many leaves of a capture the kit changes, where a run is not thorough."""
_EVERY: Final = 4
"""The kit then changes one capture in so many."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for a run that may take its time."""
    parser.addoption(
        "--thorough",
        action="store_true",
        help="try all that is worth trying, as before a release, and not a sample of it",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Try a sample, the same one every time, or everything. Ctrl-C works, also if the caller ignores SIGINT."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.option.thorough:
        settings.load_profile("thorough")
        config.addinivalue_line("filterwarnings", "error::pytest.PytestUnraisableExceptionWarning")
    else:
        ProviderConformance.sample = _SAMPLE


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the sweeps last, and leave out what only a thorough run has time for."""
    for item in items:
        if _tries_much(item):
            item.add_marker("sweep")
    if not config.option.thorough:
        _sample(config, items)
    items.sort(key=is_sweep)


def _tries_much(item: pytest.Item) -> bool:
    """Whether *item* is a sweep without saying so.

    That is what takes long, the kit's changes of a capture of a shipped provider, each test of a capture that lies beside the
    project, and each for which values are invented.
    """
    given = item.callspec.params if hasattr(item, "callspec") else {}
    return (
        _is_change(item)
        or getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
        or item.get_closest_marker("thorough") is not None
        or any(type(one) is Capture and not one.file.is_relative_to(ROOT) for one in given.values())
    )


def _is_change(item: pytest.Item) -> bool:
    return item.name.startswith("test_promise[") and item.path.parent.name in {"contrib", "providers"}


def _sample(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what takes long, and leave the kit's changes of three captures in four out where nobody has said which tests."""
    option = config.option
    is_selected = option.keyword or option.crosswalk_sample or any("::" in one for one in config.args)
    left_out = set()
    captures: dict[object, dict[str, int]] = {}
    for item in items:
        if item.get_closest_marker("thorough") is not None:
            item.add_marker(pytest.mark.skip(reason="takes long: tried with --thorough"))
        if _is_change(item) and not is_selected:
            of_class = captures.setdefault(item.parent, {})
            if of_class.setdefault(item.callspec.params["conformance_capture"].case, len(of_class)) % _EVERY:
                left_out.add(item)
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over what lives as long as the run: twenty thousand tests, looked through each time."""
    gc.collect()
    gc.freeze()


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


_STOPPED: Final[list[tuple[coverage.Coverage, str | None]]] = []
"""What measures, while a sweep runs, and what lets the processes that it starts measure."""
_MEASURED: Final = "COVERAGE_PROCESS_CONFIG"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Measure what counts for the coverage, and no sweep."""
    measuring = coverage.Coverage.current()
    if measuring is not None and is_sweep(item):
        measuring.stop()
        _STOPPED.append((measuring, os.environ.pop(_MEASURED, None)))
    elif _STOPPED and not is_sweep(item):
        measuring, config = _STOPPED.pop()
        if config is not None:
            os.environ[_MEASURED] = config
        measuring.start()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how much of the captures beside the project was tried, also where processes shared the work."""
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    tried = [value for report in reports for name, value in report.user_properties if name == TRIED]
    if tried:
        terminalreporter.section("captures beside the project")
        for line in table(tried):
            terminalreporter.write_line(line)
