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
from hypothesis import HealthCheck, settings

from beside import TRIED, table
from crosswalk.testing import Capture, ProviderConformance
from pages import ROOT

UNTIMED: Final = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("crosswalk", UNTIMED, derandomize=True, max_examples=25)
settings.register_profile("thorough", UNTIMED, derandomize=True, max_examples=100)
settings.register_profile("search", UNTIMED, max_examples=5000)  # --hypothesis-profile=search
# Hypothesis's own; a forge's machine has the latter.
if settings.get_current_profile_name() in {"default", "ci"}:
    settings.load_profile("crosswalk")
_SAMPLE: Final = 10
"""How many leaves of a capture the kit changes, where a run is not thorough."""


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
    """Leave the sweeps to a thorough run, unless tests are named, and put what is not traced last."""
    for item in items:
        if _is_change(item) or _reads_captures_beside(item):
            item.add_marker("sweep")
    option = config.option
    is_named = option.keyword or option.markexpr or option.crosswalk_sample or "::" in "".join(config.args)
    if not (option.thorough or is_named):
        config.hook.pytest_deselected(items=[item for item in items if is_sweep(item)])
        items[:] = [item for item in items if not is_sweep(item)]
    items.sort(key=_is_untraced)


def _is_change(item: pytest.Item) -> bool:
    """Whether *item* is one of the kit's changes of a capture of a shipped provider."""
    return item.name.startswith("test_promise[") and item.path.parent.name in {"contrib", "providers"}


def _reads_captures_beside(item: pytest.Item) -> bool:
    given = item.callspec.params if hasattr(item, "callspec") else {}
    return any(type(one) is Capture and not one.file.is_relative_to(ROOT) for one in given.values())


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
    """Whether *item* takes long, and is tried in a thorough run or when it is named."""
    return item.get_closest_marker("sweep") is not None


def _is_untraced(item: pytest.Item) -> bool:
    """Whether *item* tries so much that tracing it would take longer than all the rest."""
    is_marked = is_sweep(item) or item.get_closest_marker("untraced") is not None
    return is_marked or getattr(getattr(item, "obj", None), "is_hypothesis_test", False)


_STOPPED: Final[list[tuple[coverage.Coverage, str | None]]] = []
"""What measures, while an untraced test runs, and what lets the processes that it starts measure."""
_MEASURED: Final = "COVERAGE_PROCESS_CONFIG"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Measure what counts for the coverage."""
    measuring = coverage.Coverage.current()
    if measuring is not None and _is_untraced(item):
        measuring.stop()
        _STOPPED.append((measuring, os.environ.pop(_MEASURED, None)))
    elif _STOPPED and not _is_untraced(item):
        measuring, config = _STOPPED.pop()
        if config is not None:
            os.environ[_MEASURED] = config
        measuring.start()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report how many captures next to the project were tried, also if processes shared the work."""
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    tried = [value for report in reports for name, value in report.user_properties if name == TRIED]
    if tried:
        terminalreporter.section("captures beside the project")
        for line in table(tried):
            terminalreporter.write_line(line)
