"""Streams that are never closed: they end, quietly, with the event loop in which they were begun."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import pytest

from crosswalk.config import Settings
from crosswalk.service import Endpoint, LLMService
from crosswalk.testing.exchange import Stall
from crosswalk.testing.replay import Answer, ReplayServer

__all__ = ["WAYS", "collect_garbage", "left_open"]

WAYS: Final = ("kept", "forgotten", "read on")
"""How a stream is left: by somebody who holds it, by nobody, or while it is read."""


def collect_garbage() -> None:
    """Free unreferenced objects, also while another thread does so: then ``gc.collect`` returns at once, having done nothing."""
    ended = gc.get_stats()[-1]["collections"]
    while gc.get_stats()[-1]["collections"] < ended + 2:  # the first may have begun before this call
        gc.collect()


def left_open(
    way: str,
    begin: Callable[[LLMService], AsyncIterator[Any]],
    answer: Answer,
    after_events: int,
    caplog: pytest.LogCaptureFixture,
    **options: Any,
) -> Any:
    """Leave a stream after two events, and its loop. The result is the object that was held, or ``None``.

    The connection has been closed, and nothing was logged.

    Args:
        way: one of :data:`WAYS`.
        begin: begins it.
        answer: what the server says.
        after_events: after how many of its events the server falls silent.
        caplog: hears what is logged.
        options: more for the service.
    """
    kept: list[Any] = []

    async def main(url: str) -> None:
        endpoint = Endpoint("vllm", model="m", base_url=url)
        service = LLMService(endpoint, settings=Settings(), client_options={"verify": False}, **options)
        stream = begin(service)
        await anext(stream)
        await anext(stream)
        if way != "forgotten":
            kept.append(stream)
        if way == "read on":
            kept.append(asyncio.create_task(anext(stream)))  # type: ignore[arg-type]
            await asyncio.sleep(0)

    with ReplayServer() as server, caplog.at_level(logging.WARNING, logger="asyncio"):
        server.add(answer, Stall(after_events=after_events))
        asyncio.run(main(server.url), debug=False)
        collect_garbage()
        server.wait_for(lambda server: server.disconnects)
    assert not caplog.records
    return kept[0] if kept else None
