"""A server that answers with what a test gives it, and a service that asks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from crosswalk.config import Settings
from crosswalk.service import Endpoint, LLMService, RetryPolicy
from crosswalk.testing.replay import ReplayServer
from strict_answers import every_api

SETTINGS = Settings()
PLAIN = {"verify": False}
"""Loading certificates would take most of a test's time."""
AT_ONCE = RetryPolicy(initial_seconds=0, max_seconds=0)


@pytest.fixture
def server() -> Iterator[ReplayServer]:
    """It takes no conversation that a real server would refuse."""
    with every_api() as running:
        yield running


@pytest.fixture
def service_of() -> Callable[..., LLMService]:
    """A service for servers, retrying at once, with any settings of the environment."""

    def make(*servers: ReplayServer | Endpoint, **options: Any) -> LLMService:
        endpoints = [
            one if isinstance(one, Endpoint) else Endpoint("vllm", model="m", base_url=one.url)
            for one in servers
        ]
        return LLMService(
            *endpoints, **{"settings": SETTINGS, "retry": AT_ONCE, "client_options": PLAIN, **options}
        )

    return make
