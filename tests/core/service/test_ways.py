"""The connections of a service: with and without an event loop, encrypted, compressed, through a client. And how waits end."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from crosswalk import ConfigurationError, CrosswalkError, FinishReason, ServerError
from crosswalk.config import Settings
from crosswalk.service import (
    ChatRequest,
    Endpoint,
    LLMService,
    RetryPolicy,
    SyncLLMService,
    Timeouts,
    client_options,
)
from crosswalk.service.blocking import BlockingTransport
from crosswalk.service.http import ClientTransport, TimedWait
from crosswalk.service.setup import LogObserver, Setup
from crosswalk.testing.exchange import Stall
from crosswalk.testing.replay import Answer, ReplayServer
from leaving import collect_garbage
from wires import body, chunk

ASK = ChatRequest("hi")
PEM = Path(__file__).with_name("localhost.pem")
HELLO = orjson.dumps(body({"content": "Hello."}))
STREAM = Answer.of_events([chunk({"content": "Hel"}), chunk({"content": "lo."}), chunk({}, "stop")])
OPTIONS: dict[str, Any] = {
    "settings": Settings(),
    "retry": RetryPolicy(attempts=1),
    "timeout": Timeouts(total=60, connect=60),
}


def ask(endpoint: Endpoint, **options: Any) -> Any:
    async def main() -> Any:
        async with LLMService(endpoint, **{**OPTIONS, **options}) as service:
            return await service.complete(ASK)

    return asyncio.run(main())


def ask_sync(endpoint: Endpoint, **options: Any) -> Any:
    with SyncLLMService(endpoint, **{**OPTIONS, **options}) as service:
        return service.complete(ASK)


def ask_by_aiohttp(endpoint: Endpoint, **options: Any) -> Any:
    return ask(endpoint, transport="aiohttp", **options)


both_ways = pytest.mark.parametrize("way", [ask, ask_sync], ids=lambda way: way.__name__)
all_ways = pytest.mark.parametrize("way", [ask, ask_sync, ask_by_aiohttp], ids=lambda way: way.__name__)
Way = Callable[..., Any]


def at(server: ReplayServer) -> Endpoint:
    return Endpoint("vllm", model="m", base_url=server.url)


# ------------------------------------------------------------------------------------ encrypted


@pytest.fixture
def secure() -> Iterator[Endpoint]:
    """A server that speaks TLS and answers all that is asked over each of two connections, one after the other."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(PEM)
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(HELLO) + HELLO

    def serve() -> None:
        for _ in range(2):
            try:
                connection, _ = listener.accept()
                with context.wrap_socket(connection, server_side=True) as encrypted:
                    while asked := encrypted.recv(65536):
                        while not asked.endswith(b"}"):  # all of it: what is not read breaks the connection
                            asked += encrypted.recv(65536) or b"}"
                        encrypted.sendall(answer)
            except OSError:
                pass  # the client trusts it not, or the test is over

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        port = listener.getsockname()[1]
        yield Endpoint("vllm", model="m", base_url=f"https://localhost:{port}")
        for _ in range(2):
            socket.create_connection(("127.0.0.1", port)).close()
        thread.join()


@all_ways
def test_a_server_is_spoken_to_in_tls(secure: Endpoint, way: Way) -> None:
    trusting = ssl.create_default_context(cafile=PEM)
    assert way(secure, client_options={"verify": trusting}).text == "Hello."


@pytest.mark.parametrize("transport", ["httpx2", "aiohttp"])
def test_a_connection_in_tls_serves_one_request_after_the_other(secure: Endpoint, transport: Any) -> None:
    async def main() -> list[str]:
        trusting = ssl.create_default_context(cafile=PEM)
        options = {**OPTIONS, "transport": transport, "client_options": {"verify": trusting}}
        async with LLMService(secure, **options) as service:
            return [(await service.complete(ASK)).text for _ in range(5)]

    assert asyncio.run(main()) == ["Hello."] * 5


@pytest.fixture
def proxy() -> Iterator[tuple[str, list[bytes]]]:
    """A proxy that makes one tunnel, its address, and the first line of the request for it."""
    requested: list[bytes] = []

    def pass_on(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def serve() -> None:
        client, _ = listener.accept()
        with client, client.makefile("rb") as lines:
            words = lines.readline().split()
            requested.append(b" ".join(words))
            while lines.readline().strip():
                pass
            if not words:
                return  # the test is over
            name, _, port = words[1].decode().partition(":")
            with socket.create_connection((name, int(port))) as server:
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                back = threading.Thread(target=pass_on, args=(server, client))
                back.start()
                pass_on(client, server)
                back.join()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        port = listener.getsockname()[1]
        yield f"http://127.0.0.1:{port}", requested
        socket.create_connection(("127.0.0.1", port)).close()
        thread.join()


@all_ways
def test_a_proxy_makes_a_tunnel_to_a_server_in_tls(
    secure: Endpoint, proxy: tuple[str, list[bytes]], way: Way
) -> None:
    address, requested = proxy
    trusting = ssl.create_default_context(cafile=PEM)
    response = way(secure, client_options={"verify": trusting, "proxy": address})
    assert response.text == "Hello."
    assert secure.base_url is not None
    assert requested == [f"CONNECT {secure.base_url.removeprefix('https://')} HTTP/1.1".encode()]


@all_ways
def test_whom_the_environment_trusts_is_trusted(
    secure: Endpoint, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(PEM))
    assert way(secure).text == "Hello."


@all_ways
def test_nobody_else_is(secure: Endpoint, way: Way) -> None:
    with pytest.raises(ServerError, match=r"the certificate of localhost:\d+ is not trusted: self.signed"):
        way(secure, client_options={"verify": ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)})


@all_ways
def test_a_client_that_refuses_its_options_is_misconfigured(secure: Endpoint, way: Way) -> None:
    with pytest.raises(ConfigurationError, match="client_options"):
        way(secure, client_options={"verify": "no file", "cert": "with this"})


# ------------------------------------------------------------------------------------ what is sent and received


@all_ways
def test_a_compressed_answer_is_unpacked(server: ReplayServer, way: Way) -> None:
    packed = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    server.add(Answer((gzip.compress(HELLO),), 200, packed))
    assert way(at(server)).text == "Hello."
    server.add(Answer((gzip.compress(HELLO),), 200, {**packed, "Content-Encoding": "X-Gzip"}))
    assert way(at(server)).text == "Hello."
    server.add(Answer((b"not gzip",), 200, packed))
    with pytest.raises(ServerError) as raised:
        way(at(server))
    assert raised.value.info.code == "decoding_error"


@all_ways
def test_headers_of_ones_own_come_before_ours(server: ReplayServer, way: Way) -> None:
    server.add(Answer.of_json(body({"content": "Hello."})))
    headers = {"User-Agent": "mine", "Host": "other.test"}
    way(Endpoint("vllm", model="m", base_url=server.url, headers=headers))
    (request,) = server.requests
    sent = {name.lower(): value for name, value in request.headers.items()}
    assert (sent["user-agent"], sent["host"], sent["content-type"]) == (
        "mine",
        "other.test",
        "application/json",
    )


@all_ways
def test_gzip_may_have_several_members(server: ReplayServer, way: Way) -> None:
    packed = gzip.compress(HELLO[:9]) + gzip.compress(HELLO[9:]) + b"\0" * 8
    server.add(Answer((packed,), 200, {"Content-Type": "application/json", "Content-Encoding": "gzip"}))
    assert way(at(server)).text == "Hello."


def test_what_takes_long_is_not_loaded_in_the_event_loop(
    server: ReplayServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first call imports an HTTP library and reads certificates. Meanwhile the application goes on."""
    threads: list[int] = []
    with_context = client_options.with_context

    def noted(options: Any) -> Any:
        threads.append(threading.get_ident())
        return with_context(options)

    monkeypatch.setattr(client_options, "with_context", noted)
    server.add(Answer.of_json(body({"content": "Hello."})))
    assert ask(at(server)).text == "Hello."
    assert threads
    assert threading.get_ident() not in threads


def test_an_endpoints_model_is_a_text() -> None:
    with pytest.raises(ConfigurationError, match="model must be a text"):
        Endpoint("vllm", model=5)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------ how waits end


def test_a_time_limit_is_kept_without_an_event_loop(server: ReplayServer) -> None:
    server.add(STREAM, Stall(after_events=1), times=None)
    limited = {**OPTIONS, "timeout": Timeouts(between_tokens=0.1, total=60)}
    with SyncLLMService(at(server), **limited) as service, service.stream(ASK) as events:
        assert [event.event_type.value for event in events][-1] == "response.error"
    assert events.response.error_info is not None
    assert events.response.error_info.code == "between_tokens_timeout"
    assert events.response.text == "Hel"


def test_what_an_observer_cancels_in_the_middle_of_a_read_ends(server: ReplayServer) -> None:
    """As a signal's handler would: in the thread that reads, which cannot wait for itself."""

    class Impatient(LogObserver):
        def started(self, call: Any) -> Any:
            events.cancel()
            return super().started(call)

    server.add(STREAM)
    with SyncLLMService(at(server), observers=[Impatient()], **OPTIONS) as service:
        events = service.stream(ASK)
        assert [event.event_type.value for event in events] == ["response.incomplete"]
    assert server.requests == ()


def test_a_call_is_cancelled_while_the_connections_are_made(
    server: ReplayServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> Any:
        is_waiting = asyncio.Event()

        async def forever(_: object) -> None:
            is_waiting.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(ClientTransport, "ready", forever)
        async with LLMService(at(server), **OPTIONS) as service:
            events = service.stream(ASK)
            reading = asyncio.create_task(anext(events))
            await is_waiting.wait()
            await events.cancel()
            await reading
            return events.response

    assert asyncio.run(main()).finish_reason is FinishReason.CANCELLED
    assert server.requests == ()


@both_ways
def test_a_timeout_of_making_connections_is_no_limit_of_the_call(
    server: ReplayServer, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_: object) -> None:
        raise TimeoutError("a bug")

    for transport in (ClientTransport, BlockingTransport):
        monkeypatch.setattr(transport, "ready", fail)
    with pytest.raises(TimeoutError, match="a bug"):
        way(at(server))


def test_a_timer_that_rings_too_early_is_set_again() -> None:
    """One timer serves all waits of a call: set for an early limit, it has nothing to say about a later one."""

    async def main() -> float:
        wait = TimedWait()
        wait.begin()
        begin = wait.now()
        await wait.within(begin + 0.01, asyncio.sleep(0))
        wait._ring()  # nothing is waited for
        await wait.within(begin + 0.01, asyncio.sleep(0))
        with pytest.raises(TimeoutError):
            await wait.within(begin + 0.03, asyncio.sleep(60))
        assert wait.is_late
        await wait.within(wait.now() + 60, asyncio.sleep(0))
        await wait.within(wait.now() + 30, asyncio.sleep(0))  # sooner: it is set again
        await wait.within(None, asyncio.sleep(0.02))
        assert not wait.is_late
        wait.end()
        return wait.now() - begin

    assert asyncio.run(main()) >= 0.03


def test_a_task_that_is_cancelled_as_the_limit_passes_is_cancelled() -> None:
    async def main() -> None:
        wait = TimedWait()
        wait.begin()
        task = asyncio.current_task()
        assert task is not None
        wait.cancel()  # nothing is waited for
        asyncio.get_running_loop().call_soon(lambda: (wait.cancel(), wait.cancel(), task.cancel()))
        try:
            await wait.within(None, asyncio.sleep(60))
        finally:
            assert task.cancelling() == 1

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())


# ------------------------------------------------------------------------------------ several threads


def test_a_service_is_closed_while_a_call_begins() -> None:
    pool = ClientTransport(None, {})
    with pytest.raises(CrosswalkError, match="closed"):
        asyncio.run(pool.send("http://127.0.0.1:9", "POST", {}, b"", Timeouts(), TimedWait()))


def test_the_pool_of_another_process_is_left(server: ReplayServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.add(Answer.of_json(body({"content": "Hello."})), times=2)

    async def main() -> None:
        async with LLMService(at(server), **OPTIONS) as service:
            await service.complete(ASK)
            pool = service._setup.transport._client
            with monkeypatch.context() as patched:
                patched.setattr("os.getpid", lambda: -1)
                await service.complete(ASK)
            assert service._setup.transport._left == [pool]
            await pool.aclose()

    asyncio.run(main())
    assert [request.connection for request in server.requests] == [1, 2]


def test_calls_that_begin_meanwhile_do_not_hinder_closing(server: ReplayServer) -> None:
    class Calls:
        tries = 0

        def __iter__(self) -> Iterator[Any]:
            self.tries += 1
            if self.tries == 1:
                raise RuntimeError("Set changed size during iteration")
            return iter(())

    setup = SimpleNamespace(calls=Calls())
    assert Setup.open_calls(setup) == []  # type: ignore[arg-type]


def test_a_forgotten_stream_closes_its_connection(server: ReplayServer) -> None:
    """At once, for nothing of it has to wait for an event loop."""
    server.add(STREAM, Stall(after_events=1))
    with SyncLLMService(at(server), **OPTIONS) as service:
        events = service.stream(ASK)
        next(events)
        del events
        collect_garbage()
        server.wait_for(lambda it: bool(it.disconnects))
