"""Answers that bend the rules of HTTP, or break them. Both HTTP libraries read them in the same way."""

from __future__ import annotations

import asyncio
import gzip
import socket
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import orjson
import pytest

from crosswalk import ProviderError
from crosswalk.config import Settings
from crosswalk.service import Endpoint, LLMService, RetryPolicy, SyncLLMService, Timeouts
from wires import body

HELLO = orjson.dumps(body({"content": "Hello."}))
LENGTH = b"Content-Length: %d\r\n" % len(HELLO)
CHUNKED = b"Transfer-Encoding: chunked\r\n"
CHUNKS = b"%x\r\n%s\r\n%x\r\n%s\r\n0\r\n" % (9, HELLO[:9], len(HELLO) - 9, HELLO[9:])


def answer(headers: bytes = LENGTH, content: bytes = HELLO, *, line: bytes = b"HTTP/1.1 200 OK") -> bytes:
    return b"%s\r\n%s\r\n%s" % (line, headers, content)


def packed(encoding: bytes, content: bytes) -> bytes:
    return answer(b"Content-Encoding: %s\r\nContent-Length: %d\r\n" % (encoding, len(content)), content)


READ = {
    "length": answer(),
    "until the end": answer(b""),
    "chunked": answer(CHUNKED, CHUNKS + b"\r\n"),
    "trailers": answer(CHUNKED, CHUNKS + b"X-Sum: 1\r\n\r\n"),
    "extensions of chunks": answer(CHUNKED, CHUNKS.replace(b"9\r\n", b"9;a=b\r\n", 1) + b"\r\n"),
    "HTTP/1.0": answer(b"", line=b"HTTP/1.0 200 OK"),
    "no reason": answer(line=b"HTTP/1.1 200 "),
    "103 before": answer(b"Link: </x>\r\n", b"", line=b"HTTP/1.1 103 Early Hints") + answer(),
    "100 before": answer(b"", b"", line=b"HTTP/1.1 100 Continue") + answer(),
    "300 headers": answer(b"".join(b"X-%d: a\r\n" % number for number in range(300)) + LENGTH),
    "Latin-1": answer(b"X-Name: J\xfcrgen\r\n" + LENGTH),
    "gzip": packed(b"gzip", gzip.compress(HELLO)),
    "x-gzip": packed(b"X-GZip", gzip.compress(HELLO)),
    "members": packed(b"gzip", gzip.compress(HELLO[:9]) + gzip.compress(HELLO[9:]) + b"\0" * 8),
    "deflate": packed(b"deflate", zlib.compress(HELLO)),
    "identity": packed(b"identity", HELLO),
    "folded": answer(b"X-A: a\r\n b\r\n" + LENGTH),
    "bare line feeds": answer().replace(b"\r\n", b"\n"),
}
READ_BY_HTTPX2 = {  # the parser of aiohttp refuses them
    "the same length twice": answer(LENGTH * 2),
    "bytes behind": answer(content=HELLO + b"x"),
    "length beside chunked": answer(LENGTH + CHUNKED, CHUNKS + b"\r\n"),
}
FAILED = {
    "nothing": (b"", "connection_lost"),
    "half a head": (b"HTTP/1.1 200 ", "connection_lost"),
    "garbage": (b"\x16\x03\x01\x02", "connection_lost"),
    "another protocol": (b"SSH-2.0-OpenSSH_9.6\r\n", "connection_lost"),
    "two lengths": (answer(LENGTH + b"Content-Length: 1\r\n"), "connection_lost"),
    "cut": (answer(content=HELLO[:-1]), "connection_lost"),
    "cut chunks": (answer(CHUNKED, CHUNKS[:20]), "connection_lost"),
    "a broken chunk": (answer(CHUNKED, b"zz\r\n"), "connection_lost"),
    "a head of 200 kB": (answer(b"X-A: %s\r\n" % (b"a" * 200_000) + LENGTH), "connection_lost"),
    "space before the colon": (answer(b"X-A : a\r\n" + LENGTH), "connection_lost"),
    "101": (answer(b"", b"", line=b"HTTP/1.1 101 Switching Protocols"), "connection_lost"),
    "gzip in chunked": (answer(b"Transfer-Encoding: gzip, chunked\r\n", CHUNKS + b"\r\n"), "connection_lost"),
    "broken gzip": (packed(b"gzip", b"not gzip"), "decoding_error"),
    "gzip without its end": (packed(b"gzip", gzip.compress(HELLO)[:-6]), "connection_lost"),
    "a second member without its end": (
        packed(b"gzip", gzip.compress(HELLO) + gzip.compress(b" ")[:-6]),
        "connection_lost",
    ),
}


@contextmanager
def serving(sent: bytes) -> Iterator[Endpoint]:
    """A server that reads one request, sends these bytes and closes the connection."""

    def serve() -> None:
        with suppress(OSError), listener.accept()[0] as connection:
            received = b""
            while not received.endswith(b"}"):
                received += connection.recv(65536) or b"}"
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        port = listener.getsockname()[1]
        try:
            yield Endpoint("vllm", model="m", base_url=f"http://127.0.0.1:{port}")
        finally:
            thread.join()


def ask(sent: bytes, transport: Any) -> Any:
    options: dict[str, Any] = {"client_options": {"verify": False}, "settings": Settings()}
    options |= {"retry": RetryPolicy(attempts=1), "timeout": Timeouts(connect=60, whole=60)}

    async def main(endpoint: Endpoint) -> Any:
        async with LLMService(endpoint, transport=transport, **options) as service:
            return await service.complete("hi")

    with serving(sent) as endpoint:
        if transport != "blocking":
            return asyncio.run(main(endpoint))
        with SyncLLMService(endpoint, **options) as service:
            return service.complete("hi")


every = pytest.mark.parametrize("transport", ["httpx2", "aiohttp", "blocking"])


@every
@pytest.mark.parametrize("name", READ)
def test_an_unusual_answer_is_read(name: str, transport: str) -> None:
    assert ask(READ[name], transport).text == "Hello."


@pytest.mark.parametrize("name", READ_BY_HTTPX2)
def test_aiohttp_is_stricter_about_the_end_of_an_answer(name: str) -> None:
    for transport in ("httpx2", "blocking"):
        assert ask(READ_BY_HTTPX2[name], transport).text == "Hello."
    with pytest.raises(ProviderError, match="broke"):
        ask(READ_BY_HTTPX2[name], "aiohttp")


@every
@pytest.mark.parametrize("name", FAILED)
def test_what_is_not_an_answer_is_the_servers_failure(name: str, transport: str) -> None:
    sent, code = FAILED[name]
    with pytest.raises(ProviderError) as raised:
        ask(sent, transport)
    assert raised.value.info.code == code


@every
def test_a_head_that_is_not_http_is_called_so(transport: str) -> None:
    with pytest.raises(ProviderError, match=r"127\.0\.0\.1:\d+ broke, or its answer is not HTTP"):
        ask(b"SSH-2.0-OpenSSH_9.6\r\n", transport)


@every
def test_a_repeated_header_is_one(transport: str) -> None:
    response = ask(answer(b"X-Request-Id: a\r\nx-request-id: b\r\n" + LENGTH), transport)
    assert response.attempts[0].extra["request_id"] == "a, b"
