"""What answers behind a gateway."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from crosswalk.testing.replay import ReplayServer


@pytest.fixture
def upstream() -> Iterator[ReplayServer]:
    """A server that answers with what tests add to it."""
    with ReplayServer() as server:
        yield server
