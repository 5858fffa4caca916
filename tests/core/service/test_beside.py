"""Requests for other things than answers."""

from __future__ import annotations

import asyncio
import importlib.util
import threading
from collections.abc import Callable
from typing import Any

import pytest

from crosswalk.errors import CrosswalkError, ProviderTimeoutError, ServerError
from crosswalk.service import Embeddings, Endpoint, LLMService, PlainAnswer, SyncLLMService, Timeouts
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


WAYS = ["blocking", "httpx2", *(["aiohttp"] if importlib.util.find_spec("aiohttp") else [])]
ASKED: dict[str, Callable[[Any], Any]] = {
    "request": lambda service: service.request("GET", "/x"),
    "models": lambda service: service.models(),
    "embed": lambda service: service.embed("Hi"),
    "count_tokens": lambda service: service.count_tokens("Hi"),
    "complete": lambda service: service.complete("Hi"),
}
"""What sends a request that is not a model's. The address alone makes a call ask what server is there."""


def options_of(server: ReplayServer, what: str) -> dict[str, Any]:
    fields: dict[str, Any] = {"base_url": server.url}
    return (
        fields
        if what == "complete"
        else {**fields, "provider": "anthropic" if what[0] == "c" else "vllm", "model": "m"}
    )


def outcome(way: str, what: str, **options: Any) -> Any:
    """Return what comes of the call, with the service closed as soon as a request has come if *options* have a server."""
    closed_by: ReplayServer | None = options.pop("closed_by", None)

    async def main() -> Any:
        async with LLMService(transport=way, **options) as service:  # type: ignore[arg-type]
            task = asyncio.ensure_future(ASKED[what](service))
            if closed_by is not None:
                await asyncio.to_thread(closed_by.wait_for, lambda it: bool(it.requests))
                await service.aclose()
            return await task

    try:
        if way != "blocking":
            return asyncio.run(main())
        with SyncLLMService(**options) as service:
            if closed_by is not None:
                threading.Thread(
                    target=lambda: (closed_by.wait_for(lambda it: bool(it.requests)), service.close())
                ).start()
            return ASKED[what](service)
    except CrosswalkError as error:
        return error


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("what", ASKED)
class TestEveryRequestThatIsNotAModels:
    def test_it_has_the_limit_of_a_call(self, way: str, what: str) -> None:
        with ReplayServer() as server:
            server.add(Answer.of_json({}), Stall())
            error = outcome(way, what, timeout=Timeouts(call=0.1), **options_of(server, what))
            assert isinstance(error, ProviderTimeoutError)
            assert error.info is not None
            assert error.info.code == "call_timeout"

    def test_it_ends_with_its_service(self, way: str, what: str) -> None:
        with ReplayServer() as server:
            server.add(Answer.of_json({}), Stall())
            error = outcome(way, what, closed_by=server, **options_of(server, what))
            assert str(error) == "the service was closed before the answer was complete"

    def test_it_is_sent_once(self, way: str, what: str) -> None:
        with ReplayServer() as server:
            server.add(Answer.of_json({}), Reset(after_bytes=0), times=None)
            assert isinstance(outcome(way, what, **options_of(server, what)), ServerError)
            assert len(server.requests) == 1


@pytest.mark.parametrize("way", WAYS)
def test_a_stream_ends_while_the_server_is_asked_what_it_is(way: str) -> None:
    limits = Timeouts(first_token=0.1)
    with ReplayServer() as server:
        server.add(Answer.of_json({}), Stall(), times=None)

        async def main() -> tuple[Any, Any]:
            async with LLMService(base_url=server.url, transport=way) as service:  # type: ignore[arg-type]
                stream = service.stream("Hi")
                reading = asyncio.ensure_future(anext(stream))
                await asyncio.to_thread(server.wait_for, lambda it: bool(it.requests))
                await stream.cancel()
                with pytest.raises(ProviderTimeoutError) as raised:
                    await anext(service.stream("Hi", timeout=limits))
                return (await reading, stream.response), raised.value

        def blocking() -> tuple[Any, Any]:
            with SyncLLMService(base_url=server.url) as service:
                stream = service.stream("Hi")
                ending = threading.Thread(
                    target=lambda: (server.wait_for(lambda it: bool(it.requests)), stream.cancel())
                )
                ending.start()
                events = list(stream)
                ending.join()
                with pytest.raises(ProviderTimeoutError) as raised:
                    next(service.stream("Hi", timeout=limits))
                return (events[-1], stream.response), raised.value

        (event, response), error = blocking() if way == "blocking" else asyncio.run(main())
        assert (event.event_type, response.finish_reason) == ("response.incomplete", "cancelled")
        assert response.attempts == ()
        assert error.info.code == "first_token_timeout"


def test_a_request_in_another_event_loop_is_left_alone() -> None:
    """Its tasks are not those of the loop in which the service is closed."""
    errors: list[Any] = []

    async def asking() -> None:
        with pytest.raises(CrosswalkError) as raised:
            await service.request("GET", "/x")
        errors.append(raised.value)

    with ReplayServer() as server:
        server.add(Answer.of_json({}), Stall())
        service = LLMService(Endpoint("vllm", base_url=server.url))
        thread = threading.Thread(target=lambda: asyncio.run(asking()))
        thread.start()
        server.wait_for(lambda it: bool(it.requests))
        asyncio.run(service.aclose())
    thread.join()
    assert isinstance(errors[0], ServerError)


@pytest.mark.parametrize(
    "body",
    [
        {"data": [{"id": "a"}]},
        {"data": [{"embedding": [1, "x"], "index": 0}]},
        {"data": [{"embedding": [1]}, {"embedding": [2]}]},
        {"data": [7]},
        {"data": None},
        {"data": [{"embedding": [1]}], "usage": [1]},
        {"embeddings": 5},
        {},
    ],
)
def test_what_holds_no_embeddings_is_refused(body: dict[str, Any]) -> None:
    with (
        ReplayServer() as server,
        SyncLLMService(Endpoint("vllm", model="m", base_url=server.url)) as service,
    ):
        server.add(Answer.of_json(body))
        with pytest.raises(ServerError, match="holds no embeddings"):
            service.embed("Hi")


def test_a_count_that_is_no_number_is_unknown() -> None:
    with (
        ReplayServer() as server,
        SyncLLMService(Endpoint("vllm", model="m", base_url=server.url)) as service,
    ):
        server.add(Answer.of_json({"data": [{"embedding": [1]}], "usage": {"prompt_tokens": "7"}}))
        assert service.embed("Hi") == Embeddings(((1.0,),), "m")
