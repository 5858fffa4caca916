"""Servers that never stop sending: a limit of time holds while bytes keep arriving, in every service."""

from __future__ import annotations

import asyncio
import importlib.util
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

import attrs
import httpx2
import orjson
import pytest

from crosswalk import ProviderError
from crosswalk.config import Settings
from crosswalk.service import Endpoint, LLMService, SyncLLMService, Timeouts
from crosswalk.types.response import ChatResponse
from wires import chunk

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
KEEP_ALIVE = b": waiting\n\n"
LONG = "x" * 16_000_000
"""More than the buffers of a connection hold."""
REFUSAL = b'{"error": {"message": "too much is said", "code": "too_long"}}'
BROKEN = b'{"error": {"message": "something broke", "code": "broken"}}'
MOST_PIECES = 500_000
"""What a server sends at most, one after the other, so that a service without limits ends too."""


def event(delta: dict[str, str], finish_reason: str | None = None) -> bytes:
    return b"data: %s\n\n" % orjson.dumps(chunk(delta, finish_reason))


@attrs.frozen
class Flood:
    """What a server sends: a beginning once, and a piece again and again, or nothing more, but it stays.

    Attributes:
        said: what it is asked.
        is_proxy: whether it is a proxy, which is asked for a tunnel.
        reads: whether it reads more than the head of the request.
    """

    begin: bytes
    piece: bytes
    limits: dict[str, float]
    code: str | None
    is_stream: bool = True
    said: str = "hi"
    is_proxy: bool = False
    reads: bool = True


FLOODS = {
    "events": Flood(HEAD, event({"content": "word "}), {"total": 0.1}, "total_timeout"),
    "keep-alives": Flood(HEAD, KEEP_ALIVE, {"first_token": 0.05}, "first_token_timeout"),
    "keep-alives behind the end": Flood(
        HEAD + event({"content": "Hello."}) + event({}, "stop"), KEEP_ALIVE, {"after_end": 0.1}, None
    ),
    "interim heads": Flood(b"", INTERIM, {"whole": 0.1}, "whole_timeout", is_stream=False),
    "events without content": Flood(HEAD, event({}) * 500, {"first_token": 0.05}, "first_token_timeout"),
    "nothing behind the sentinel": Flood(
        HEAD + event({"content": "Hello."}) + event({}, "stop") + b"data: [DONE]\n\n", b"", {}, None
    ),
    "heads in the place of a tunnel": Flood(b"", INTERIM, {"connect": 0.1}, "connect_timeout", is_proxy=True),
    "no head of a proxy": Flood(
        b"", b"", {"connect": 0.1}, "connect_timeout", is_stream=False, is_proxy=True
    ),
    "heads of a proxy until the limit of the call": Flood(
        b"", INTERIM, {"call": 0.1}, "call_timeout", is_proxy=True
    ),
    "no reading": Flood(b"", b"", {"whole": 0.1}, "whole_timeout", is_stream=False, said=LONG, reads=False),
    "no reading of a stream's request": Flood(
        b"", b"", {"connect": 0.1}, "transport_timeout", said=LONG, reads=False
    ),
    "no reading, but an answer": Flood(
        b"HTTP/1.1 413 Too Large\r\nContent-Length: %d\r\n\r\n" % len(REFUSAL) + REFUSAL,
        b"",
        {"connect": 0.1},
        "too_long",
        said=LONG,
        reads=False,
    ),
    "an error without an end": Flood(
        b"HTTP/1.1 500 Oops\r\nContent-Type: text/event-stream\r\n\r\ndata: %s\n\n" % BROKEN,
        KEEP_ALIVE * 100,
        {},
        "broken",
    ),
}


@contextmanager
def flooding(flood: Flood) -> Iterator[str]:
    """Yield the address of a server that sends *flood* to everyone."""

    def send(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(4096)
            connection.sendall(flood.begin)
            for _ in range(MOST_PIECES if flood.piece else 0):
                connection.sendall(flood.piece)
            if not flood.reads:
                has_ended.wait()
            connection.recv(65536)

    def run() -> None:
        with suppress(OSError):  # the end of the test
            while True:
                threads.append(threading.Thread(target=send, args=(listener.accept()[0],)))
                threads[-1].start()

    threads: list[threading.Thread] = []
    has_ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threads.append(threading.Thread(target=run))
        threads[-1].start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            has_ended.set()
            listener.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join()


def asked(url: str, flood: Flood) -> tuple[Endpoint, dict[str, Any]]:
    """The endpoint, and the options of a client."""
    options: dict[str, Any] = {"proxy": url} if flood.is_proxy else {}
    base_url = "https://server.test" if flood.is_proxy else url
    return Endpoint("vllm", model="m", base_url=base_url), {"verify": False, **options}


def in_a_loop(url: str, flood: Flood, **options: Any) -> ChatResponse:
    endpoint, client_options = asked(url, flood)

    async def main() -> ChatResponse:
        async with LLMService(endpoint, client_options=client_options, **options) as service:
            if not flood.is_stream:
                return await service.complete(flood.said)
            async with service.stream(flood.said) as events:
                async for _ in events:
                    pass
            return events.response

    return asyncio.run(main())


def in_a_thread(url: str, flood: Flood, **options: Any) -> ChatResponse:
    endpoint, client_options = asked(url, flood)
    given = {} if "client" in options else {"client_options": client_options}
    with SyncLLMService(endpoint, **given, **options) as service:
        if not flood.is_stream:
            return service.complete(flood.said)
        with service.stream(flood.said) as events:
            for _ in events:
                pass
        return events.response


def through_a_client(url: str, flood: Flood, **options: Any) -> ChatResponse:
    with httpx2.Client(**asked(url, flood)[1]) as client:
        return in_a_thread(url, flood, client=client, **options)


def by_aiohttp(url: str, flood: Flood, **options: Any) -> ChatResponse:
    return in_a_loop(url, flood, transport="aiohttp", **options)


Way: TypeAlias = Callable[..., ChatResponse]
WAYS: list[Way] = [in_a_loop, in_a_thread, through_a_client]
if importlib.util.find_spec("aiohttp"):
    WAYS.append(by_aiohttp)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("name", FLOODS)
def test_a_limit_holds_while_bytes_keep_arriving(name: str, way: Way) -> None:
    flood = FLOODS[name]
    if way is by_aiohttp and not flood.reads:
        pytest.skip("aiohttp has no limit for writing a request, and keeps the connection until that is read")
    timeouts = Timeouts(**flood.limits)
    with flooding(flood) as url:
        try:
            response: ChatResponse | None = way(url, flood, settings=Settings(), retry=0, timeout=timeouts)
        except ProviderError as error:
            response = error.response
    assert response is not None
    info = response.error_info
    assert (None if info is None else info.code) == flood.code
    assert flood.code is not None or response.text == "Hello."
