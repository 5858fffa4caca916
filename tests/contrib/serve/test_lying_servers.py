"""Servers that lie: what they send does not harm the gateway, nor reach anybody whom it does not concern."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest

from contrib_serve import HI, asking, config_of, says, streams
from crosswalk.testing.replay import Answer, ReplayServer
from crosswalk_serve.app import create_app
from crosswalk_serve.config import Config

CHAT = "/v1/chat/completions"


def post(config: Config, body: Any = HI, path: str = CHAT) -> httpx2.Response:
    """What a new gateway answers."""

    async def main() -> httpx2.Response:
        app = create_app(config)
        async with app.router.lifespan_context(app), asking(app) as client:
            return await client.post(path, json=body)

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("answer", "is_stream", "status"),
    [(says("x" * 2000), False, 500), (streams(*["x"] * 50), False, 500), (streams(*["x"] * 50), True, 200)],
)
def test_an_answer_without_an_end_is_cut(
    upstream: ReplayServer, answer: Answer, is_stream: bool, status: int
) -> None:
    upstream.add(answer, times=2)
    said = post(config_of(upstream, "limits: {answer_bytes: 2000}"), {**HI, "stream": is_stream})
    assert said.status_code == status
    assert "longer than 2000 bytes" in said.text
    assert "[DONE]" not in said.text
    said = post(config_of(upstream), {**HI, "stream": is_stream})
    assert "error" not in said.text
