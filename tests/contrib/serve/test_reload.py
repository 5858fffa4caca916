"""A changed file is taken while requests run. A wrong one is refused."""

from __future__ import annotations

import asyncio
import logging

import pytest

from contrib_serve import HI, asking, config_of, says
from crosswalk.errors import ConfigurationError, CrosswalkError
from crosswalk.service import ChatRequest
from crosswalk.testing.replay import ReplayServer
from crosswalk_serve import create_app
from crosswalk_serve.config import Config
from crosswalk_serve.server import reload

CHAT = "/v1/chat/completions"


def two(upstream: ReplayServer, more: str = "") -> Config:
    one = f"{{provider: vllm, base_url: '{upstream.url}'}}"
    return config_of(upstream, more, f"small: {one}\n  large: {one}")


def test_models_and_keys_are_the_new_ones(upstream: ReplayServer) -> None:
    upstream.add(says(), times=2)

    async def main() -> None:
        app = create_app(config_of(upstream))
        gateway = app.state.gateway
        async with asking(app) as client:
            assert (await client.post(CHAT, json=HI)).status_code == 200
            assert gateway.reload(two(upstream, "listen: 127.0.0.1:1234")) == ("listen",)
            assert (await client.post(CHAT, json=HI)).status_code == 404
            assert (await client.post(CHAT, json={**HI, "model": "large"})).status_code == 200
            key = f"keys: {{a: {{hash: 'sha256:{'0' * 32}:{'0' * 64}'}}}}"
            assert gateway.reload(two(upstream, key)) == ()
            assert (await client.post(CHAT, json={**HI, "model": "large"})).status_code == 401
        await gateway.aclose()

    asyncio.run(main())


def test_a_request_that_runs_keeps_its_connections(upstream: ReplayServer) -> None:
    upstream.add(says())

    async def main() -> None:
        app = create_app(config_of(upstream))
        gateway = app.state.gateway
        with gateway.slot():
            service = gateway.router.find("tiny").service()
            gateway.reload(two(upstream))
            assert (await service.complete(ChatRequest("Hi"))).text == "Hello"
        await gateway.aclose()
        with pytest.raises(CrosswalkError, match="closed"):
            await service.complete(ChatRequest("Hi"))

    asyncio.run(main())


def test_a_wrong_file_is_refused(upstream: ReplayServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "crosswalk.serve")
    upstream.add(says())

    def wrong() -> Config:
        raise ConfigurationError("no such model", key="models")

    async def main() -> None:
        app = create_app(config_of(upstream))
        reload(app.state.gateway, wrong)
        assert "not reloaded: " in caplog.text
        unknown = config_of(upstream, models="tiny: {provider: made_up}")
        reload(app.state.gateway, lambda: unknown)
        assert "made_up" in caplog.text
        async with asking(app) as client:
            assert (await client.post(CHAT, json=HI)).status_code == 200
        reload(app.state.gateway, lambda: two(upstream, "listen: 127.0.0.1:1234"))
        assert "models: small, large" in caplog.text
        assert "a restart is needed for: listen" in caplog.text
        caplog.clear()
        reload(app.state.gateway, lambda: two(upstream))
        assert "restart" not in caplog.text
        await app.state.gateway.aclose()

    asyncio.run(main())
