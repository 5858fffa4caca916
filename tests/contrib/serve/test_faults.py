"""Faults of a network and of what stands in it that no other file here has: half-closed connections, events of many
megabytes, addresses of pictures.
"""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import pytest

from contrib_serve import HI, Live, asking, config_of, streams
from crosswalk.testing import STRICT_PROVIDERS
from crosswalk.testing.exchange import Stall
from crosswalk.testing.replay import Answer, ReplayServer
from crosswalk_serve import create_app
from strict_answers import MODELS

LONG = "kelp " * 2_000_000
"""A text of 10 MB."""


def test_a_client_that_closes_its_half_of_a_connection_ends_its_call(
    gateway: Live, upstream: ReplayServer
) -> None:
    upstream.add(streams("Hello"), Stall())
    body = json.dumps({**HI, "stream": True}).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    with gateway.connect() as connection:
        connection.sendall(head + b"content-length: %d\r\n\r\n" % len(body) + body)
        upstream.wait_for(lambda server: server.requests)
        connection.shutdown(socket.SHUT_WR)
        upstream.wait_for(lambda server: server.disconnects)
        assert connection.recv(65536) == b""


@pytest.mark.untraced
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_an_event_of_many_megabytes_arrives_whole(upstream: ReplayServer, path: str) -> None:
    """Passed on as it came, and converted."""
    upstream.add(streams("Hello ", LONG))
    app = create_app(config_of(upstream, "on_unsupported: drop"))

    async def main() -> str:
        async with app.router.lifespan_context(app), asking(app) as client:
            asked = {**HI, "stream": True, "max_tokens": 9}
            return (await client.post(path, json=asked)).raise_for_status().text

    lines = [line for line in asyncio.run(main()).splitlines() if line.startswith("data: {")]
    events = [json.loads(line.removeprefix("data: ")) for line in lines]
    assert LONG in {value for event in events for value in texts_of(event)}


def texts_of(value: Any) -> list[str]:
    """All texts in *value*."""
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return [text for one in inner for text in texts_of(one)]
    return [value] if isinstance(value, str) else []


PICTURES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": [
        {"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": "URL"}}]}]},
    "/v1/responses": {"input": [{"role": "user", "content": [
        {"type": "input_text", "text": "What is it?"}, {"type": "input_image", "image_url": "URL"}]}]},
    "/v1/messages": {"max_tokens": 9, "messages": [{"role": "user", "content": [
        {"type": "text", "text": "What is it?"}, {"type": "image", "source": {"type": "url", "url": "URL"}}]}]},
}  # fmt: skip


@pytest.mark.untraced
@pytest.mark.parametrize("provider", STRICT_PROVIDERS)
@pytest.mark.parametrize("path", PICTURES)
def test_the_address_of_a_picture_is_never_fetched(
    upstream: ReplayServer, path: str, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes on as an address, or the request is refused."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    upstream.add(Answer.failure(400), times=None)
    model = f"{{provider: {provider}, model: {MODELS.get(provider, 'm')}, base_url: '{upstream.url}', api_key: k}}"
    app = create_app(config_of(upstream, "on_unsupported: drop", f"tiny: {model}"))

    async def main() -> int:
        async with app.router.lifespan_context(app), asking(app) as client:
            asked = json.dumps({"model": "tiny", **PICTURES[path]}).replace(
                "URL", f"{elsewhere.url}/kelp.png"
            )
            return (
                await client.post(path, content=asked, headers={"content-type": "application/json"})
            ).status_code

    with ReplayServer() as elsewhere:
        assert asyncio.run(main()) == 400
        assert elsewhere.requests == ()
