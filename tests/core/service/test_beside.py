"""Requests for other things than answers."""

from __future__ import annotations

import asyncio

import pytest

from crosswalk.errors import ProviderTimeoutError, ServerError
from crosswalk.service import Endpoint, LLMService, PlainAnswer, SyncLLMService, Timeouts
from crosswalk.testing.exchange import Reset, Stall
from crosswalk.testing.replay import Answer, ReplayServer

PATH = "/v1/messages/count_tokens"


def posted(server: ReplayServer, timeouts: Timeouts | None = None, provider: str = "vllm") -> PlainAnswer:
    async def main() -> PlainAnswer:
        endpoint = Endpoint(provider, base_url=f"{server.url}/v1", api_key="sk-secret")
        async with LLMService(endpoint, timeout=timeouts) as service:
            return await service.request("POST", PATH, {"model": "m"}, {"x-version": "1"})

    return asyncio.run(main())


def test_it_is_asked_with_the_endpoints_own_address_and_key() -> None:
    with ReplayServer() as server:
        answer = posted(server.add(Answer.of_json({"input_tokens": 7})))
        assert (answer.status, answer.body) == (200, b'{"input_tokens":7}')
        (asked,) = server.requests
        assert (asked.method, asked.path, asked.json()) == ("POST", PATH, {"model": "m"})
        assert (asked.headers["authorization"], asked.headers["x-version"]) == ("Bearer sk-secret", "1")


def test_it_is_the_same_without_an_event_loop() -> None:
    with ReplayServer() as server, SyncLLMService(Endpoint("vllm", base_url=server.url)) as service:
        server.add(Answer.of_json({"input_tokens": 7}))
        assert service.request("POST", PATH, {}).body == b'{"input_tokens":7}'


def test_any_body_goes_to_any_endpoint() -> None:
    with ReplayServer() as server:
        endpoints = [Endpoint("vllm", base_url=f"{server.url}/{name}") for name in ("a", "b")]
        with SyncLLMService(*endpoints) as service:
            server.add(Answer((b"RIFF",), headers={"Content-Type": "audio/wav"}))
            kind = {"Content-Type": "multipart/form-data; boundary=x"}
            answer = service.request("PUT", "/v1/any", b"--x--", kind, endpoint=1)
            assert (answer.body, answer.content_type) == (b"RIFF", "audio/wav")
        (sent,) = server.requests
        assert (sent.method, sent.path, sent.body) == ("PUT", "/b/v1/any", b"--x--")
        assert sent.headers["content-type"] == kind["Content-Type"]


def test_its_errors_are_given_as_they_are() -> None:
    with ReplayServer() as server:
        answer = posted(server.add(Answer.failure(404, retry_after=2.5)))
        assert (answer.status, answer.retry_after) == (404, 2.5)
        assert repr(answer).startswith("PlainAnswer(status=404")


def test_a_request_is_signed_where_the_api_wants_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")

    async def main(server: ReplayServer) -> None:
        async with LLMService(Endpoint("bedrock", base_url=server.url)) as service:
            await service.request("POST", PATH, {})

    with ReplayServer() as server:
        asyncio.run(main(server.add(Answer.of_json({}))))
        assert server.requests[0].headers["authorization"].startswith("AWS4-HMAC-SHA256")


def test_a_server_that_fails_is_an_error_of_its_kind() -> None:
    with ReplayServer() as server:
        server.add(Answer.of_json({}), Reset(after_bytes=0))
        with pytest.raises(ServerError, match="broke"):
            posted(server)
        server.add(Answer.of_json({}), Stall())
        with pytest.raises(ProviderTimeoutError):
            posted(server, Timeouts(total=0.05))


def test_what_is_too_long_is_refused_and_a_closed_service_asks_nobody() -> None:
    with ReplayServer() as server:
        server.add(Answer((b"x" * 2**20,) * 65, stream=True))
        with pytest.raises(ServerError, match="more than 67108864 bytes"):
            posted(server)

    async def closed() -> None:
        service = LLMService(Endpoint("vllm"))
        await service.aclose()
        with pytest.raises(Exception, match="closed"):
            await service.request("POST", PATH, {})

    asyncio.run(closed())
