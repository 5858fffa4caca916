"""The pytest plugin: runs :class:`ProviderConformance` once for every capture, and lends a replay server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from crosswalk.testing.summary import Summary

if TYPE_CHECKING:
    from crosswalk.testing.replay import ReplayServer

__all__ = ["pytest_addoption", "pytest_configure", "pytest_generate_tests", "replay_server"]


@pytest.fixture
def replay_server() -> Iterator[ReplayServer]:
    """A running :class:`crosswalk.testing.replay.ReplayServer` without answers; closed after the test."""
    from crosswalk.testing.replay import ReplayServer  # not imported for a project that tests something else

    with ReplayServer() as server:
        yield server


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the size of the sample."""
    group = parser.getgroup("crosswalk", "checks of provider plugins")
    group.addoption(
        "--crosswalk-sample",
        default=None,
        metavar="N",
        help="leaves and cuts to try per capture, or 'all' (default: what the test class says)",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give each test of a conformance class its captures."""
    # Not imported for a project that tests something else.
    if metafunc.cls is None or "conformance_capture" not in metafunc.fixturenames:
        if metafunc.cls is not None and "conformance_pair" in metafunc.fixturenames:
            found = metafunc.cls.conformance_pairs()
            ids = [whole.pair for whole, _ in found]
            metafunc.parametrize("conformance_pair", found, ids=ids)
        return
    captures = metafunc.cls.conformance_captures()
    metafunc.parametrize("conformance_capture", captures, ids=[str(one.case) for one in captures])


def pytest_configure(config: pytest.Config) -> None:
    """Have a summary written at the end."""
    config.pluginmanager.register(Summary(), "crosswalk-summary")
