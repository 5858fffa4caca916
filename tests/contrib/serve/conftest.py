"""The server behind a gateway."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from contrib_serve import Live, config_of, live
from crosswalk.testing.replay import ReplayServer
from strict_answers import every_api


@pytest.fixture
def upstream() -> Iterator[ReplayServer]:
    """A server that answers with what tests add to it, and takes no conversation that a real one would refuse."""
    with every_api() as server:
        yield server


@pytest.fixture
def gateway(upstream: ReplayServer) -> Iterator[Live]:
    """A gateway before a vLLM, which drops what that cannot express."""
    with live(config_of(upstream, "on_unsupported: drop")) as here:
        yield here
