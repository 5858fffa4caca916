"""The gateway's rules for a request in HTTP/1.1, beyond those of its parser."""

from __future__ import annotations

import inspect
import json
import socket
from contextlib import suppress
from typing import Any

import pytest
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from contrib_serve import HI, config_of, live, says
from crosswalk.errors import ConfigurationError
from crosswalk.testing.exchange import Stall
from crosswalk.testing.replay import ReplayServer
from crosswalk_serve import create_app
from crosswalk_serve.server import GuardedProtocol, GuardedSocket, server_config

BODY = json.dumps(HI).encode()
LENGTH = b"content-length: %d\r\n" % len(BODY)
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
ASKED = HEAD + LENGTH + b"\r\n" + BODY
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(BODY), BODY)


def all_of(connection: socket.socket) -> bytes:
    """The bytes until the other side closes."""
    return b"".join(iter(lambda: connection.recv(65536), b""))


def overridden(kind: type = GuardedProtocol) -> dict[str, Any]:
    """The methods of the gateway's connections that replace uvicorn's."""
    methods = {name: value for name, value in vars(kind).items() if inspect.isfunction(value)}
    return {name: value for name, value in methods.items() if not name.startswith("_")}


@pytest.mark.parametrize("kind", [GuardedProtocol, GuardedSocket])
def test_nothing_private_of_uvicorn_is_replaced(kind: type) -> None:
    names = [name for name in vars(kind) if name.startswith("_") and not name.endswith("__")]
    assert not [name for name in names if hasattr(kind.__bases__[0], name)]
    assert overridden(kind)


def test_a_uvicorn_that_would_not_call_them_is_refused(
    upstream: ReplayServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_of(upstream)
    server_config(create_app(config), config)
    monkeypatch.delattr(HttpToolsProtocol, "on_response_complete")
    with pytest.raises(
        ConfigurationError, match=r"uvicorn .* is unknown: its connections have no on_response"
    ):
        server_config(create_app(config), config)


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in (GuardedProtocol, GuardedSocket) for name in overridden(kind)]
)
def test_each_overridden_method_is_uvicorns(kind: type, name: str) -> None:
    own, base = overridden(kind)[name], getattr(kind.__bases__[0], name)
    assert len(inspect.signature(own).parameters) == len(inspect.signature(base).parameters)


def test_uvicorn_calls_the_overridden_methods(
    upstream: ReplayServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the transport and the parser are called by these, the others by uvicorn alone."""
    called = set()

    def noted(name: str, method: Any) -> Any:
        def note(self: GuardedProtocol, *arguments: Any) -> None:
            called.add(name)
            method(self, *arguments)

        return note

    for name, method in overridden().items():
        monkeypatch.setattr(GuardedProtocol, name, noted(name, method))
    upstream.add(says(), times=None)
    upgraded = ASKED.replace(b"host: x\r\n", b"host: x\r\nconnection: upgrade\r\nupgrade: h2c\r\n")
    with live(config_of(upstream, "limits: {head_seconds: 9}")) as here:
        websocket = b"GET /none HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"
        closing = ASKED.replace(b"host: x\r\n", b"host: x\r\nconnection: close\r\n")
        for sent in (closing, WRONG["no host"], websocket):
            with here.connect() as connection:
                connection.sendall(sent)
                all_of(connection)
        with here.connect() as connection:
            connection.sendall(upgraded)
            connection.recv(1)
            here.end()
            all_of(connection)
    seldom = {"pause_writing", "resume_writing", "timeout_keep_alive_handler"}  # see test_live.py
    assert called == overridden().keys() - seldom


WRONG = {
    "no host": ASKED.replace(b"host: x\r\n", b""),
    "two hosts": ASKED.replace(b"host: x\r\n", b"host: x\r\nhost: x\r\n"),
    "two hosts in the old protocol": ASKED.replace(b"HTTP/1.1\r\n", b"HTTP/1.0\r\nhost: y\r\n"),
    "chunks in the old protocol": CHUNKED.replace(b"HTTP/1.1", b"HTTP/1.0") + b"0\r\n\r\n",
    "an older protocol": ASKED.replace(b"HTTP/1.1", b"HTTP/0.9"),
    "a protocol that is not spoken": ASKED.replace(b"HTTP/1.1", b"HTTP/2.0"),
    "chunks said twice": CHUNKED.replace(b"transfer-", b"transfer-encoding: chunked\r\ntransfer-", 1),
    "chunks of something compressed": CHUNKED.replace(b": chunked", b": gzip, chunked"),
    "a length that is none": ASKED.replace(LENGTH, b"content-length: +5\r\n"),
    "a length and chunks": CHUNKED.replace(b"host: x\r\n", b"host: x\r\ncontent-length: 5\r\n"),
    "the same, with another protocol offered": CHUNKED.replace(
        b"host: x\r\n", b"host: x\r\nconnection: upgrade\r\nupgrade: h2c\r\ncontent-length: 5\r\n"
    ),
    "a chunk that is none": CHUNKED + b"x\r\n",
    "a chunk that is longer than it says": CHUNKED.replace(b"\r\n\r\n", b"\r\n\r\n1\r\n", 1),
    "a folded header": ASKED.replace(b"host: x\r\n", b"host: x\r\n y\r\n"),
    "line feeds alone": ASKED.replace(b"\r\n", b"\n"),
    "a header of zero bytes": ASKED.replace(b"host: x", b"host: x\0"),
    "a tunnel": b"CONNECT x:443 HTTP/1.1\r\nhost: x\r\n\r\n",
    "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_request_gets_an_error_in_json(upstream: ReplayServer, name: str) -> None:
    with live(config_of(upstream)) as here, here.connect() as connection:
        connection.sendall(WRONG[name])
        head, _, body = all_of(connection).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert b"connection: close" in head
        assert "not a valid HTTP/1.1 request" in json.loads(body)["error"]["message"]
    assert upstream.requests == ()


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b"POST /v1/messages HTTP/1.1", {"type": "error"}),
        (b"POST /v1/models HTTP/1.1\r\nanthropic-version: 1", {"type": "error"}),
        (b"POST /api/chat HTTP/1.1", {}),
    ],
)
def test_the_error_has_the_clients_form(upstream: ReplayServer, line: bytes, error: dict[str, str]) -> None:
    with live(config_of(upstream)) as here, here.connect() as connection:
        connection.sendall(line + b"\r\nhost: x\r\nx : y\r\n\r\n")
        said = json.loads(all_of(connection).partition(b"\r\n\r\n")[2])
        assert said.items() >= error.items()
        assert isinstance(said["error"], dict if error else str)


def test_a_head_that_is_long_is_not_read_to_its_end(upstream: ReplayServer) -> None:
    with live(config_of(upstream)) as here, here.connect() as connection:
        connection.sendall(HEAD + b"x: " + b"y" * 70_000)
        assert all_of(connection).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize(("length", "status"), [(60_000, b"200"), (66_000, b"431")])
def test_nor_is_one_served_that_comes_with_its_end(
    upstream: ReplayServer, length: int, status: bytes
) -> None:
    upstream.add(says())
    with live(config_of(upstream)) as here, here.connect() as connection:
        connection.sendall(
            ASKED.replace(b"host: x\r\n", b"host: x\r\nconnection: close\r\nx: " + b"y" * length + b"\r\n")
        )
        assert all_of(connection).startswith(b"HTTP/1.1 " + status)


@pytest.mark.parametrize(("count", "status"), [(90, b"200"), (101, b"431"), (10_000, b"431")])
@pytest.mark.parametrize("parts", [1, 7])
def test_a_head_of_many_short_headers_is_refused(
    upstream: ReplayServer, count: int, status: bytes, parts: int
) -> None:
    upstream.add(says(), times=None)
    many = b"host: x\r\nconnection: close\r\n" + b"a: b\r\n" * count
    asked = ASKED.replace(b"host: x\r\n", many)
    size = len(asked) // parts + 1
    with live(config_of(upstream)) as here, here.connect() as connection:
        for start in range(0, len(asked), size):
            with suppress(ConnectionError):  # it is refused before its end
                connection.sendall(asked[start : start + size])
        with suppress(ConnectionError):
            assert all_of(connection).startswith(b"HTTP/1.1 " + status)
    assert bool(upstream.requests) is (status == b"200")


def test_the_old_protocol_needs_no_host(upstream: ReplayServer) -> None:
    upstream.add(says())
    with live(config_of(upstream)) as here, here.connect() as connection:
        connection.sendall(ASKED.replace(b"HTTP/1.1\r\nhost: x", b"HTTP/1.0"))
        assert b"Hello" in all_of(connection)


def test_what_stands_behind_a_body_is_no_header(upstream: ReplayServer) -> None:
    upstream.add(says())
    with live(config_of(upstream)) as here, here.connect() as connection:
        head = CHUNKED.replace(b"host: x\r\n", b"host: x\r\nconnection: close\r\n")
        connection.sendall(head + b"0\r\nauthorization: Bearer x\r\nhost: y\r\n\r\n")
        assert b"Hello" in all_of(connection)


def test_requests_that_are_sent_at_once_are_answered_in_turn(upstream: ReplayServer) -> None:
    upstream.add(says("first"))
    upstream.add(says("second"))
    with live(config_of(upstream)) as here, here.connect() as connection:
        connection.sendall(ASKED + ASKED.replace(b"host: x\r\n", b"host: x\r\nconnection: close\r\n"))
        got = all_of(connection)
        assert 0 < got.find(b"first") < got.find(b"second")


OFFER = b"host: x\r\nconnection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: x\r\n"


@pytest.mark.parametrize("asked", [ASKED, CHUNKED + b"0\r\n\r\n"], ids=["length", "chunks"])
@pytest.mark.parametrize("parted", [10, 150, 250])
def test_where_another_protocol_is_offered_this_one_is_spoken(
    upstream: ReplayServer, asked: bytes, parted: int
) -> None:
    upstream.add(says())
    offering = asked.replace(b"host: x\r\n", OFFER)
    with live(config_of(upstream)) as here, here.connect() as connection:
        for sent in (offering[:parted], offering[parted:]):
            connection.sendall(sent)
        got = b""
        while b"Hello" not in got:
            got += connection.recv(65536)
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        assert b"HTTP/1.1 200 OK" in all_of(connection)
    assert upstream.requests[0].json()["messages"] == HI["messages"]


@pytest.mark.parametrize(
    "behind", [b"\0nonsense", ASKED + b"\0nonsense", ASKED.replace(b"host: x\r\n", OFFER)]
)
def test_behind_nonsense_what_was_asked_before_is_answered(upstream: ReplayServer, behind: bytes) -> None:
    upstream.add(says())
    with live(config_of(upstream)) as here, here.connect() as connection:
        connection.sendall(ASKED + behind)
        got = all_of(connection)
        assert got.startswith(b"HTTP/1.1 200 ")
        assert got.count(b"HTTP/1.1") == 1


def test_a_client_that_leaves_with_requests_waiting_ends_the_call(upstream: ReplayServer) -> None:
    upstream.add(says(), Stall())
    with live(config_of(upstream)) as here:
        with here.connect() as connection:
            connection.sendall(ASKED + ASKED)
            upstream.wait_for(lambda server: server.requests)
        upstream.wait_for(lambda server: server.disconnects)
    assert len(upstream.requests) == 1


def test_what_comes_behind_nonsense_is_not_looked_at(upstream: ReplayServer) -> None:
    upstream.add(says(), Stall())
    with live(config_of(upstream)) as here, here.connect() as connection:
        connection.sendall(ASKED)
        upstream.wait_for(lambda server: server.requests)
        (ours,) = here.server.server_state.connections
        here.call(lambda: [ours.data_received(sent) for sent in (b"\0nonsense", ASKED)])
        connection.shutdown(socket.SHUT_WR)
        assert all_of(connection) == b""
    assert len(upstream.requests) == 1
