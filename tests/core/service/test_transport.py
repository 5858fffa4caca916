"""The HTTP client: the application's own or ours, and what its failures mean."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

import crosswalk.service
from crosswalk import (
    ConfigurationError,
    InvalidRequestError,
    ProviderTimeoutError,
    ServerError,
)
from crosswalk.service import ChatRequest, Endpoint, EventStream, LLMService, RetryPolicy
from crosswalk.testing.replay import Answer, ReplayServer
from wires import body, chunk

Make = Callable[..., LLMService]
ASK = ChatRequest("hi")
ONCE = RetryPolicy(attempts=1)
NOWHERE = Endpoint("vllm", model="m", base_url="http://server.test:8000")


def answering(answer: Callable[[httpx2.Request], Any]) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=httpx2.MockTransport(answer))


def raising(error: Exception) -> httpx2.AsyncClient:
    def answer(_: httpx2.Request) -> Any:
        raise error

    return answering(answer)


def ask(service: LLMService) -> Any:
    async def run() -> Any:
        async with service:
            return await service.complete(ASK)

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (httpx2.ConnectTimeout("x"), ProviderTimeoutError, "connect_timeout"),
        (httpx2.ReadTimeout("x"), ProviderTimeoutError, "transport_timeout"),
        (httpx2.PoolTimeout("x"), ProviderTimeoutError, "transport_timeout"),
        (httpx2.ConnectError("x"), ServerError, "connect_error"),
        (httpx2.ProxyError("x"), ServerError, "connect_error"),
        (httpx2.ReadError("x"), ServerError, "connection_lost"),
        (httpx2.RemoteProtocolError("x"), ServerError, "connection_lost"),
        (httpx2.DecodingError("x"), ServerError, "decoding_error"),
        (
            httpx2.LocalProtocolError("Illegal header value b'sk-secret'"),
            InvalidRequestError,
            "LocalProtocolError",
        ),
        (httpx2.UnsupportedProtocol("x"), InvalidRequestError, "UnsupportedProtocol"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_what_a_failure_of_the_client_means(
    service_of: Make, error: Exception, kind: type[Exception], code: str
) -> None:
    service = service_of(NOWHERE, client=raising(error), client_options=None, retry=ONCE)
    with pytest.raises(kind, match=r"server\.test:8000") as raised:
        ask(service)
    assert raised.value.info.code == code
    assert "secret" not in str(raised.value)
    assert raised.value.info.retryable is (kind is not InvalidRequestError)


def test_any_other_error_is_passed_on(service_of: Make) -> None:
    with pytest.raises(ZeroDivisionError):
        ask(service_of(NOWHERE, client=raising(ZeroDivisionError()), client_options=None))


def test_the_applications_own_client_stays_open(service_of: Make) -> None:
    client = answering(lambda _: httpx2.Response(200, json=body({"content": "Hello."})))
    assert ask(service_of(NOWHERE, client=client, client_options=None)).text == "Hello."
    assert not client.is_closed


def test_a_compressed_answer(service_of: Make) -> None:
    import gzip

    import orjson

    data = gzip.compress(orjson.dumps(body({"content": "Hello."})))
    headers = {"content-encoding": "gzip", "x-request-id": "r1"}
    client = answering(lambda _: httpx2.Response(200, content=data, headers=headers))
    response = ask(service_of(NOWHERE, client=client, client_options=None))
    assert response.text == "Hello."
    assert response.attempts[0].extra["request_id"] == "r1"


@pytest.mark.parametrize("options", [{"no_such_option": 1}, {"proxy": "ftp://user:secret@h"}])
def test_options_that_the_client_refuses(service_of: Make, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="client_options") as raised:
        ask(service_of(NOWHERE, client_options=options))
    assert "secret" not in str(raised.value)


def test_a_package_that_the_client_lacks_is_named(service_of: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "socksio", None)
    with pytest.raises(ConfigurationError, match="'socksio' package is not installed") as raised:
        ask(service_of(NOWHERE, client_options={"proxy": "socks5://user:secret@h"}))
    assert "secret" not in str(raised.value)


def test_a_proxy_is_used(server: ReplayServer, service_of: Make) -> None:
    server.add(Answer.of_json(body({"content": "Hello."})))
    ask(service_of(NOWHERE, client_options={"proxy": server.url, "verify": False}))
    assert server.requests[0].target == "http://server.test:8000/v1/chat/completions"


LOCALHOST = str(Path(__file__).with_name("localhost.pem"))


@pytest.mark.parametrize(
    ("options", "makes"),
    [({"http2": False}, "AsyncClient"), ({"verify": LOCALHOST}, "create_ssl_context")],
    ids=["client", "certificates"],
)
def test_first_calls_at_once_share_one_client(
    server: ReplayServer, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], makes: str
) -> None:
    server.add(Answer.of_json(body({"content": "Hi"})), times=None)
    make, made = getattr(httpx2, makes), []

    def counted(*args: Any, **kwargs: Any) -> Any:
        made.append(make(*args, **kwargs))
        return made[-1]

    async def main() -> list[str]:
        secure = Endpoint("vllm", model="m", base_url="https://server.test:8000")
        here = Endpoint("vllm", model="m", base_url=server.url)
        async with LLMService(here, secure, client_options={"trust_env": False, **options}) as service:
            monkeypatch.setattr(httpx2, makes, counted)
            answers = await asyncio.gather(*(service.complete(ASK) for _ in range(50)))
            return [answer.text for answer in answers]

    assert asyncio.run(main()) == ["Hi"] * 50
    assert len(made) == 1


def test_a_first_call_that_is_cancelled_does_not_stop_the_others(
    server: ReplayServer, service_of: Make
) -> None:
    server.add(Answer.of_json(body({"content": "Hi"})), times=None)

    async def main() -> str:
        async with service_of(server) as service:
            first, second = (asyncio.create_task(service.complete(ASK)) for _ in range(2))
            await asyncio.sleep(0)
            first.cancel()
            return (await second).text

    assert asyncio.run(main()) == "Hi"


def test_two_tasks_may_read_one_stream(server: ReplayServer, service_of: Make) -> None:
    """Each event reaches one of them."""
    words = [chunk({"content": str(number)}) for number in range(20)]
    server.add(Answer.of_events([*words, chunk({}, "stop")]))

    async def read(stream: EventStream) -> list[str]:
        texts = []
        async for event in stream:
            if event.delta is not None and event.delta.content_delta:
                texts.append(event.delta.content_delta)
            await asyncio.sleep(0)
        return texts

    async def run() -> list[str]:
        async with service_of(server) as service, service.stream(ASK) as stream:
            first, second = await asyncio.gather(read(stream), read(stream))
            return first + second

    assert sorted(asyncio.run(run()), key=int) == [str(number) for number in range(20)]


def test_requests_are_built_without_the_client() -> None:
    """Neither the package nor what plugins need of it loads HTTP."""
    program = (
        "import sys, crosswalk.service as s\n"
        "s.build_http_request(s.ChatRequest('hi', model='m'), 'vllm')\n"
        "print([m for m in sys.modules if m.startswith(('httpx', 'httpcore', 'opentelemetry', 'cattrs'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_face_names_what_is_there() -> None:
    assert crosswalk.service.__all__ == sorted(set(crosswalk.service.__all__))
    for name in crosswalk.service.__all__:
        assert getattr(crosswalk.service, name) is not None
    assert set(crosswalk.service.__all__) <= set(dir(crosswalk.service))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = crosswalk.service.nothing
