"""The HTTP client: the application's own or ours, and what its failures mean."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import httpx2
import pytest

import crosswalk.service
from crosswalk import (
    ChatResponse,
    ConfigurationError,
    CrosswalkError,
    InvalidRequestError,
    ProviderTimeoutError,
    ServerError,
)
from crosswalk.config import Settings
from crosswalk.service import (
    ChatRequest,
    Endpoint,
    EventStream,
    LLMService,
    RetryPolicy,
    SyncLLMService,
    Timeouts,
)
from crosswalk.service.client_options import proxy_for
from crosswalk.service.http import AiohttpTransport
from crosswalk.testing.replay import Answer, ReplayServer
from leaving import collect_garbage
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
            "not_http",
        ),
        (httpx2.UnsupportedProtocol("x"), InvalidRequestError, "not_http"),
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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"no_such_option": 1}, "client_options: httpx2.AsyncClient has no option"),
        ({"verify": "/no/such/secret"}, "client_options: httpx2 refuses 'verify'"),
        *(
            ({name: 5}, f"client_options: httpx2 refuses '{name}'")
            for name in (
                "auth",
                "base_url",
                "cookies",
                "event_hooks",
                "headers",
                "limits",
                "mounts",
                "params",
            )
        ),
        ({"transport": 5}, "client_options: httpx2 refuses 'transport'"),
        *(
            ({"proxy": proxy}, "proxy must be the address of a proxy, such as http://host:port")
            for proxy in (
                "ftp://user:secret@h",
                "//h:1",
                "http://h:99999",
                "http://[",
                " ",
                5,
                b"h:1",
                [],
                {},
            )
        ),
    ],
)
def test_options_that_the_client_refuses(service_of: Make, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as raised:
        ask(service_of(NOWHERE, client_options=options))
    assert "secret" not in str(raised.value)


def test_no_option_is_blamed_for_the_environment(service_of: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/no/such/file")
    message = "client_options, or a proxy of the environment: httpx2 refuses them"
    with pytest.raises(ConfigurationError, match=message):
        ask(service_of(NOWHERE, client_options={"http2": False}))


@pytest.mark.parametrize("name", ["limits", "transport"])
def test_options_that_the_blocking_client_refuses(name: str) -> None:
    with (
        SyncLLMService(NOWHERE, settings=Settings(), client_options={name: 5}) as service,
        pytest.raises(ConfigurationError, match=f"client_options: httpx2 refuses '{name}'"),
    ):
        service.complete("hi")


def test_a_package_that_the_client_lacks_is_named(service_of: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "socksio", None)
    with pytest.raises(ConfigurationError, match="'socksio' package is not installed") as raised:
        ask(service_of(NOWHERE, client_options={"proxy": "socks5://user:secret@h"}))
    assert "secret" not in str(raised.value)


both = pytest.mark.parametrize("transport", ["httpx2", "aiohttp"])


@pytest.mark.parametrize("way", ["blocking", "httpx2", "aiohttp"])
def test_a_proxy_without_a_scheme_is_one_of_http(server: ReplayServer, service_of: Make, way: str) -> None:
    server.add(Answer.text("Hello."))
    options: dict[str, Any] = {"proxy": server.url.removeprefix("http://"), "settings": Settings()}
    if way == "blocking":
        with SyncLLMService(NOWHERE, **options) as service:
            assert service.complete("hi").text == "Hello."
        return
    if way == "aiohttp":
        pytest.importorskip("aiohttp")
    assert ask(service_of(NOWHERE, transport=way, **options)).text == "Hello."


@pytest.mark.parametrize("headers", [{"Content-Length": "5"}, {"transfer-encoding": "gzip"}, {"Expect": "x"}])
def test_a_header_that_says_how_the_body_is_sent_is_the_client_s_own(headers: dict[str, str]) -> None:
    name = next(iter(headers))
    with SyncLLMService(NOWHERE, settings=Settings()) as service:
        for ask_so in (
            lambda: service.complete("hi", headers=headers),
            lambda: service.request("POST", "/x", {}, headers),
            lambda: Endpoint("vllm", headers=headers),
        ):
            with pytest.raises(ConfigurationError, match=f"headers: {name} is set by the connection"):
                ask_so()


@pytest.mark.parametrize("headers", ["x", ["x"], 5, {1: "a"}, {"a": 1}])
def test_headers_that_are_none_are_refused(headers: Any) -> None:
    with (
        SyncLLMService(NOWHERE, settings=Settings()) as service,
        pytest.raises(ConfigurationError, match="header|credential"),
    ):
        service.complete("hi", headers=headers)


def test_a_limit_that_no_clock_has_is_refused() -> None:
    for wrong in (10**400, 2e9):
        with pytest.raises(ConfigurationError, match="seconds above 0, at most 1e9"):
            SyncLLMService(NOWHERE, timeout=wrong)


def test_a_client_that_is_closed_is_named() -> None:
    client = httpx2.Client()
    client.close()
    with pytest.raises(CrosswalkError, match="client= is closed"):
        SyncLLMService(NOWHERE, client=client).complete("hi")

    async def main() -> None:
        client = httpx2.AsyncClient()
        await client.aclose()
        with pytest.raises(CrosswalkError, match="client= is closed"):
            await LLMService(NOWHERE, client=client).complete("hi")

    asyncio.run(main())


@both
def test_a_proxy_is_used(server: ReplayServer, service_of: Make, transport: str) -> None:
    server.add(Answer.of_json(body({"content": "Hello."})))
    ask(service_of(NOWHERE, transport=transport, client_options={"proxy": server.url, "verify": False}))
    assert server.requests[0].target == "http://server.test:8000/v1/chat/completions"


@pytest.fixture
def environment_proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[ReplayServer]:
    """A proxy, and no other one in the environment."""
    for known in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(known, raising=False)
        monkeypatch.delenv(known.lower(), raising=False)
    with ReplayServer() as proxy:
        yield proxy


def asked_blocking(endpoint: Endpoint, **options: Any) -> ChatResponse:
    client_options = {"verify": False, **options}
    with SyncLLMService(endpoint, settings=Settings(), client_options=client_options) as service:
        return service.complete(ASK)


@both
@pytest.mark.parametrize(
    ("name", "bypass", "is_used"),
    [("HTTP_PROXY", "", True), ("ALL_PROXY", "", True), ("HTTP_PROXY", "*", False)],
)
def test_a_proxy_of_the_environment_is_used(
    server: ReplayServer,
    environment_proxy: ReplayServer,
    service_of: Make,
    monkeypatch: pytest.MonkeyPatch,
    transport: str,
    name: str,
    bypass: str,
    is_used: bool,
) -> None:
    for one, text in ((server, "direct"), (environment_proxy, "by proxy")):
        one.add(Answer.of_json(body({"content": text})))
    monkeypatch.setenv(name.lower(), environment_proxy.url)
    monkeypatch.setenv("no_proxy", bypass)
    response = ask(service_of(server, transport=transport))
    assert response.text == ("by proxy" if is_used else "direct")


DIRECT = ["127.0.0.1", " 127.0.0.1 ", "a.test,127.0.0.1", "127.0.0.0/8", "127.0.0.1:PORT", "a.test, *"]
DIRECT += ["http://127.0.0.1", "all://127.0.0.1", "http://127.0.0.1:PORT", ",,127.0.0.1,"]
DIRECT += ["*:PORT", "a.test 127.0.0.1", "HTTP://127.0.0.1"]
BY_PROXY = [
    "127.0.0.1:1",
    "https://127.0.0.1",
    "10.0.0.0/8",
    "[127.0.0.1",
    "127.0.0.1:x",
    ",",
    "a.test",
]


@pytest.mark.parametrize("way", ["httpx2", "aiohttp", "blocking", "blocking over httpx2"])
@pytest.mark.parametrize("bypass", DIRECT + BY_PROXY)
def test_servers_that_no_proxy_names_are_asked_directly(
    server: ReplayServer,
    environment_proxy: ReplayServer,
    service_of: Make,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
    bypass: str,
) -> None:
    for one, text in ((server, "direct"), (environment_proxy, "by proxy")):
        one.add(Answer.of_json(body({"content": text})))
    monkeypatch.setenv("http_proxy", environment_proxy.url.replace("http", "HTTP"))
    monkeypatch.setenv("no_proxy", bypass.replace("PORT", server.url.rpartition(":")[2]))
    endpoint = Endpoint("vllm", model="m", base_url=server.url)
    options = {} if way == "blocking" else {"http1": True}
    response = (
        asked_blocking(endpoint, **options)
        if way.startswith("blocking")
        else ask(service_of(endpoint, transport=way))
    )
    assert response.text == ("direct" if bypass in DIRECT else "by proxy")


def test_a_transport_of_the_application_needs_no_proxy(
    environment_proxy: ReplayServer, service_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", environment_proxy.url)
    answer = httpx2.MockTransport(lambda _: httpx2.Response(200, json=body({"content": "Hello."})))
    assert ask(service_of(NOWHERE, client_options={"transport": answer})).text == "Hello."


@pytest.mark.parametrize(
    ("host", "bypass", "is_used"),
    [
        ("a.one.test", "one.test", False),
        ("one.test", ".one.test", False),
        ("a.one.test", "*.one.test:8000", False),
        ("a.one.test", "ONE.test:8000", False),
        ("a.one.test", "http://one.test:80", True),
        ("someone.test", "one.test:8000", True),
        ("::1", "[::1]:8000", False),
        ("::1", "::/64", False),
        ("::1", "[0:0:0:0:0:0:0:1]:8000", False),
        ("::1", "[0:0:0:0:0:0:0:1]:80", True),
        ("2001:db8::5", "[2001:db8::]/32", False),
        ("one.test", "HTTP://one.test", False),
        ("one.test", "http://", False),
        ("one.test", "https://", True),
        ("one.test", ":8000", False),
        ("one.test", ":80", True),
        ("a.one.test", "one.test.", False),
        ("a.one.test.", "one.test", False),
    ],
)
def test_no_proxy_names_domains_and_networks(
    monkeypatch: pytest.MonkeyPatch, host: str, bypass: str, is_used: bool
) -> None:
    monkeypatch.setenv("http_proxy", " proxy.test:3128 ")
    monkeypatch.setenv("no_proxy", bypass)
    assert proxy_for("http", host, 8000, {}) == ("http://proxy.test:3128" if is_used else None)


def test_a_proxy_that_aiohttp_cannot_use_is_refused(service_of: Make) -> None:
    options = {"proxy": "socks5://user:secret@h"}
    with pytest.raises(ConfigurationError, match="cannot use a proxy of the kind 'socks5'") as raised:
        ask(service_of(NOWHERE, transport="aiohttp", client_options=options))
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"transport": "requests"}, "transport is 'httpx2' or 'aiohttp'"),
        ({"transport": "aiohttp", "client_options": {"http2": True}}, "aiohttp has no option 'http2'"),
    ],
)
def test_a_transport_that_does_not_exist_is_refused(
    service_of: Make, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        service_of(NOWHERE, **options)


def test_aiohttp_takes_no_client_of_httpx2(service_of: Make) -> None:
    client = answering(lambda _: httpx2.Response(200))
    with pytest.raises(ConfigurationError, match="aiohttp cannot use client="):
        service_of(NOWHERE, client=client, client_options=None, transport="aiohttp")


def test_aiohttp_is_an_extra(service_of: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'crosswalk-llm\[aiohttp\]'"):
        service_of(NOWHERE, transport="aiohttp")


@both
def test_a_server_that_is_not_there_is_an_error(service_of: Make, transport: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    endpoint = Endpoint("vllm", model="m", base_url=f"http://127.0.0.1:{port}")
    with pytest.raises(ServerError) as raised:
        ask(service_of(endpoint, transport=transport, retry=ONCE))
    assert raised.value.info.code == "connect_error"


@both
def test_a_proxy_that_refuses_a_tunnel_is_an_error(service_of: Make, transport: str) -> None:
    endpoint = Endpoint("vllm", model="m", base_url="https://server.test")
    with ReplayServer() as proxy, pytest.raises(ServerError, match="the proxy refused a connection"):
        options = {"proxy": proxy.url, "verify": False}
        ask(service_of(endpoint, transport=transport, retry=ONCE, client_options=options))


@both
@pytest.mark.parametrize("is_left", [False, True], ids=["too slow", "cancelled"])
def test_a_connection_on_which_nobody_shakes_hands_is_closed(
    service_of: Make, transport: str, is_left: bool
) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        endpoint = Endpoint("vllm", model="m", base_url=f"https://127.0.0.1:{listener.getsockname()[1]}")
        limits = Timeouts(connect=None if is_left else 0.01)
        async with service_of(endpoint, transport=transport, retry=ONCE, timeout=limits) as service:
            asking = asyncio.create_task(service.complete(ASK))
            connection, _ = await loop.sock_accept(listener)
            with connection:
                if is_left:
                    await loop.sock_recv(connection, 2**16)
                    asking.cancel()
                with pytest.raises(asyncio.CancelledError if is_left else ProviderTimeoutError) as raised:
                    await asking
                assert is_left or raised.value.info.code == "connect_timeout"
                async with asyncio.timeout(60):
                    while await loop.sock_recv(connection, 2**16):
                        pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        asyncio.run(main())


@both
def test_a_method_that_http_does_not_know_is_refused(
    server: ReplayServer, service_of: Make, transport: str
) -> None:
    async def main() -> None:
        async with service_of(server, transport=transport) as service:
            await service.request("NOT ONE", "/x")

    with pytest.raises(InvalidRequestError, match="is not HTTP"):
        asyncio.run(main())


def test_a_session_of_aiohttp_is_given_up_quietly() -> None:
    """When the transport was closed while the session was made, and in another event loop."""

    async def close_early() -> None:
        transport = AiohttpTransport({"verify": False})
        making = asyncio.create_task(transport.ready())
        await asyncio.sleep(0)
        await transport.aclose()
        with pytest.raises(CrosswalkError, match="closed"):
            await making

    asyncio.run(close_early())
    transport = AiohttpTransport({"verify": False})
    asyncio.run(transport.ready())
    asyncio.run(transport.aclose())
    collect_garbage()


@pytest.mark.parametrize(
    ("transport", "library", "makes"),
    [("httpx2", httpx2, "AsyncClient"), ("aiohttp", aiohttp, "ClientSession")],
    ids=["httpx2", "aiohttp"],
)
def test_first_calls_at_once_share_one_client(
    server: ReplayServer, monkeypatch: pytest.MonkeyPatch, transport: Any, library: Any, makes: str
) -> None:
    server.add(Answer.of_json(body({"content": "Hi"})), times=None)
    make, made = getattr(library, makes), []

    def counted(*args: Any, **kwargs: Any) -> Any:
        made.append(make(*args, **kwargs))
        return made[-1]

    async def main() -> list[str]:
        here = Endpoint("vllm", model="m", base_url=server.url)
        pem = str(Path(__file__).with_name("localhost.pem"))
        async with LLMService(here, transport=transport, client_options={"verify": pem}) as service:
            monkeypatch.setattr(library, makes, counted)
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
