"""What answers behind a gateway."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from contrib_serve import Live, config_of, live
from crosswalk.testing import strict_rules
from crosswalk.testing.replay import ReplayServer


@pytest.fixture
def upstream() -> Iterator[ReplayServer]:
    """A server that answers with what tests add to it, and takes no conversation that OpenAI would refuse."""
    with ReplayServer(rules=strict_rules("openai")) as server:
        yield server
    assert server.refusals == ()


@pytest.fixture
def gateway(upstream: ReplayServer) -> Iterator[Live]:
    """A gateway before a vLLM, which drops what that cannot express."""
    with live(config_of(upstream, "on_unsupported: drop")) as here:
        yield here
