"""Over real sockets: clients that leave, that take nothing, that send nonsense. And the end of the gateway."""

from __future__ import annotations

import asyncio
import datetime
import json
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from contrib_serve import HI, Live, config_of, live, says, streams
from crosswalk.testing.exchange import Delay, Stall
from crosswalk.testing.replay import Answer, ReplayServer
from crosswalk_serve.config import Config, KeyHash

CHAT = "/v1/chat/completions"
STREAMED = {**HI, "stream": True}


def request_of(body: bytes, path: str = CHAT, method: str = "POST", **headers: str) -> bytes:
    """A request as it goes over the wire."""
    said = {"host": "x", "content-type": "application/json", "content-length": str(len(body))}
    said |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in said.items() if value)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


ASKED = request_of(json.dumps(HI).encode())
STREAM = request_of(json.dumps(STREAMED).encode())


def all_of(connection: socket.socket) -> bytes:
    """The bytes until the other side closes."""
    pieces = []
    try:
        while piece := connection.recv(65536):
            pieces.append(piece)
    except ConnectionError:
        pass
    return b"".join(pieces)


def until(connection: socket.socket, mark: bytes) -> bytes:
    """The bytes up to *mark*. If they are long, the end of them."""
    data = b""
    while mark not in data:
        piece = connection.recv(1 << 20)
        assert piece, data
        data = data[-65536:] + piece
    return data


def wait_for(here: Live, condition: Callable[[Live], object]) -> None:
    """Wait until *condition* of the gateway is true."""
    here.wait_for(condition)


def holds_back(here: Live) -> bool:
    """Whether the gateway has more for a client than that takes."""
    return any(one.flow.write_paused for one in here.server.server_state.connections)  # type: ignore[union-attr]


def wait_until_idle(here: Live) -> None:
    """Wait until no request runs."""
    wait_for(here, lambda here: not here.gateway._running and not here.server.server_state.tasks)


# ------------------------------------------------------------------------------------ servers that are silent

MESSAGES = {"model": "tiny", "max_tokens": 9, "messages": HI["messages"]}
SIGNS = {
    CHAT: (HI, b": \n\n"),
    "/v1/responses": ({"model": "tiny", "input": "Hi"}, b": \n\n"),
    "/v1/messages": (MESSAGES, b'event: ping\ndata: {"type":"ping"}\n\n'),
}


@pytest.mark.parametrize("path", SIGNS)
@pytest.mark.parametrize("after", [0, 1])
def test_a_client_sees_that_a_silent_stream_is_still_open(
    upstream: ReplayServer, path: str, after: int
) -> None:
    upstream.add(streams("Hello", "!"), Stall(after_events=after))
    body, sign = SIGNS[path]
    with live(config_of(upstream, "limits: {silence_seconds: 0.01}")) as here:
        with here.connect() as connection:
            connection.sendall(request_of(json.dumps({**body, "stream": True}).encode(), path))
            begun = (until(connection, b"Hello") if after else b"") + until(connection, sign)
            here.call(here.gateway.end_all)
            rest = until(connection, b"0\r\n\r\n")
        assert begun.startswith(b"HTTP/1.1 200")
        assert b"text/event-stream" in begun
        assert b"is being shut down" in rest
        assert b"[DONE]" not in rest


def test_a_client_without_a_sign_gets_the_head(upstream: ReplayServer) -> None:
    upstream.add(streams("Hello"), Stall(after_events=0))
    with live(config_of(upstream, "limits: {silence_seconds: 0.01}")) as here, here.connect() as connection:
        connection.sendall(request_of(STREAM.partition(b"\r\n\r\n")[2], "/api/chat"))
        assert b"application/x-ndjson" in until(connection, b"\r\n\r\n")
        here.call(here.gateway.end_all)
        assert b"is being shut down" in until(connection, b"0\r\n\r\n")


# ------------------------------------------------------------------------------------ clients that leave


@pytest.mark.parametrize("asked", [ASKED, STREAM], ids=["whole", "stream"])
def test_a_client_that_leaves_before_the_first_byte_ends_the_call(
    upstream: ReplayServer, asked: bytes
) -> None:
    upstream.add(streams("a") if asked is STREAM else says("a"), Stall())
    with live(config_of(upstream)) as here:
        with here.connect() as connection:
            connection.sendall(asked)
            upstream.wait_for(lambda server: server.requests)
        upstream.wait_for(lambda server: server.disconnects)
        wait_until_idle(here)
        upstream.wait_for(lambda server: not server.open_connections)


def counting_at(upstream: ReplayServer) -> Config:
    """A gateway with a model on a server that counts tokens."""
    model = f"tiny: {{provider: anthropic, base_url: '{upstream.url}', api_key: k}}"
    return config_of(upstream, "limits: {shutdown_seconds: 0.01}", model)


COUNT = request_of(json.dumps(HI).encode(), "/v1/messages/count_tokens")


def test_a_client_that_leaves_ends_the_count_of_its_tokens(
    upstream: ReplayServer, caplog: pytest.LogCaptureFixture
) -> None:
    upstream.add(Answer.of_json({"input_tokens": 1}), Stall())
    with live(counting_at(upstream)) as here:
        with here.connect() as connection:
            connection.sendall(COUNT)
            upstream.wait_for(lambda server: server.requests)
        upstream.wait_for(lambda server: server.disconnects)
        wait_until_idle(here)
    assert "Traceback" not in caplog.text


def test_a_count_that_takes_too_long_ends_with_the_gateway(upstream: ReplayServer) -> None:
    upstream.add(Answer.of_json({"input_tokens": 1}), Stall())
    with live(counting_at(upstream)) as here, here.connect() as connection:
        connection.sendall(COUNT)
        upstream.wait_for(lambda server: server.requests)
        here.end()
        answer = all_of(connection)
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"being shut down" in answer


@pytest.mark.parametrize("path", ["/v1/messages/count_tokens", "/api/show"])
def test_a_client_that_leaves_in_the_middle_of_any_request_is_no_failure(
    upstream: ReplayServer, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    with live(config_of(upstream)) as here:
        with here.connect() as connection:
            connection.sendall(request_of(b"{}", path, content_length="9"))
            wait_for(here, lambda here: here.server.server_state.tasks)
        wait_until_idle(here)
    assert "Traceback" not in caplog.text


def test_a_client_that_leaves_in_mid_stream_ends_the_call(upstream: ReplayServer) -> None:
    upstream.add(streams("Hel", "lo", "!"), Stall(after_events=2))
    with live(config_of(upstream, "metrics: true")) as here:
        with here.connect() as connection:
            connection.sendall(STREAM)
            until(connection, b'"lo"')
        upstream.wait_for(lambda server: server.disconnects)
        wait_until_idle(here)
        assert here.gateway.metrics is not None
        assert b"crosswalk_serve_running 0.0" in here.gateway.metrics.text()[0]


def test_a_stream_that_is_left_before_it_was_counted_counts_for_limits(upstream: ReplayServer) -> None:
    upstream.add(streams("Hel", "lo", "!"), Stall(after_events=2))
    key = "cw-alice-0123456789abcdefghij"
    hashed = KeyHash.of(key, b"saltsalt")
    with live(
        config_of(upstream, f"keys: {{alice: {{hash: '{hashed}', tokens_per_minute: 2}}}}"), clock=lambda: 6e8
    ) as here:
        with here.connect() as connection:
            connection.sendall(request_of(json.dumps(STREAMED).encode(), x_api_key=key))
            until(connection, b'"lo"')
        upstream.wait_for(lambda server: server.disconnects)
        wait_until_idle(here)
        assert httpx2.post(here.url + CHAT, json=HI, headers={"x-api-key": key}).status_code == 429


def test_a_client_that_leaves_in_the_middle_of_its_request_is_forgotten(upstream: ReplayServer) -> None:
    with live(config_of(upstream)) as here:
        with here.connect() as connection:
            connection.sendall(ASKED[:-5])
        wait_until_idle(here)
        with here.connect() as connection:
            connection.sendall(ASKED[:30])
        wait_until_idle(here)
    assert upstream.requests == ()


def long_stream(pieces: int) -> Answer:
    """A stream of *pieces* of 64 KiB each."""
    return streams(*["x" * 65536] * pieces)


def test_a_slow_client_slows_its_source_and_gets_all_of_it(upstream: ReplayServer) -> None:
    upstream.add(long_stream(400))
    with live(config_of(upstream)) as here, here.connect() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        connection.sendall(STREAM)
        until(connection, b"data: ")
        # What is sent does not fit into the buffers between: whoever sends it waits for this client to read.
        wait_for(
            here, lambda here: any(one.flow.write_paused for one in here.server.server_state.connections)
        )
        assert upstream.requests[0].outcome == "answering"
        until(connection, b"data: [DONE]")
        upstream.wait_for(lambda server: server.requests[0].outcome == "answered")


def test_a_client_that_takes_nothing_is_given_up(upstream: ReplayServer) -> None:
    upstream.add(long_stream(400))
    with live(config_of(upstream, "limits: {send_seconds: 20}")) as here, here.connect() as connection:
        connection.sendall(STREAM)
        here.pass_time_while(holds_back, 20)
        upstream.wait_for(lambda server: server.disconnects)
        wait_until_idle(here)


# ------------------------------------------------------------------------------------ slow and wrong requests


def test_a_head_that_does_not_come_is_not_waited_for(upstream: ReplayServer) -> None:
    with live(config_of(upstream, "limits: {head_seconds: 20}")) as here:
        for sent in (b"", b"POST / HT", ASKED[:40]):
            with here.connect() as connection:
                connection.sendall(sent)
                wait_for(here, lambda here: here.server.server_state.connections)
                here.pass_time(20)
                assert all_of(connection) == b""


def test_nor_is_that_of_the_next_request(upstream: ReplayServer) -> None:
    upstream.add(says())
    with live(config_of(upstream)) as here, here.connect() as connection:
        connection.sendall(ASKED)
        until(connection, b"Hello")
        here.server.config.head_seconds = 0.05
        connection.sendall(b"POST")
        assert all_of(connection) == b""


def test_a_body_that_does_not_come_is_not_waited_for(upstream: ReplayServer) -> None:
    with live(config_of(upstream, "limits: {body_seconds: 0.2}")) as here, here.connect() as connection:
        connection.sendall(ASKED[:-5])
        answer = all_of(connection)
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b'"message":"no body within 0.2 seconds"' in answer
    assert upstream.requests == ()


def test_a_body_that_is_too_long_is_read_away_and_refused(upstream: ReplayServer) -> None:
    with live(config_of(upstream, "limits: {body_bytes: 1000}")) as here:
        url = here.url + CHAT
        with httpx2.Client() as client:
            refused = client.post(
                url, content=b" " * 100_000_000, headers={"content-type": "application/json"}
            )
            assert (refused.status_code, refused.headers["connection"]) == (413, "close")
            assert refused.json()["error"]["code"] == "request_too_large"

            def chunks() -> Iterator[bytes]:
                yield from [b" " * 1000] * 100

            assert client.post(url, content=chunks()).status_code == 413
        with here.connect() as connection:
            connection.sendall(request_of(b"", content_length="1001", expect="100-continue"))
            assert all_of(connection).startswith(b"HTTP/1.1 413 ")
        with here.connect() as connection:
            connection.sendall(request_of(b"", content_length="999", expect="100-continue"))
            until(connection, b"100 Continue")
    assert upstream.requests == ()


DEEP = b'{"messages": ' + b"[" * 100_000

HOSTILE: dict[str, tuple[bytes, int, bytes]] = {
    "no JSON": (request_of(b"{"), 400, b"the body is not JSON"),
    "nothing": (request_of(b""), 400, b"the body is not JSON"),
    "no object": (request_of(b"[]"), 400, b"object"),
    "bad UTF-8": (request_of(b'{"model": "\xff"}'), 400, b"the body is not JSON"),
    "a lone surrogate": (request_of(b'{"model": "\\ud800"}'), 400, b"error"),
    "deep JSON": (request_of(DEEP), 400, b"the request is nested deeper than 200 levels"),
    "a key twice": (request_of(b'{"model": "tiny", "model": "other"}'), 400, b"error"),
    "another content type": (request_of(b"{}", content_type="text/plain"), 415, b"application/json"),
    "a form": (request_of(b"{}", content_type="multipart/form-data; boundary=x"), 415, b"application/json"),
    "another charset": (request_of(b"{}", content_type="application/json; charset=utf-16"), 415, b"UTF-8"),
    "compressed": (request_of(b"{}", content_encoding="gzip"), 415, b"compressed"),
    "another method": (request_of(b"", method="PUT"), 405, b"Method Not Allowed"),
    "another path": (request_of(b"{}", path="/v1/nothing"), 404, b"Not Found"),
    "a path from below": (request_of(b"{}", path="/v1/../../etc/passwd"), 404, b"Not Found"),
    "a web page": (request_of(b"{}", origin="https://evil.example"), 403, b"web pages"),
    "two lengths": (request_of(b"{}", content_length="2\r\ncontent-length: 3"), 400, b"not a valid HTTP"),
    "a length and chunks": (
        request_of(b"0\r\n\r\n", content_length="5\r\ntransfer-encoding: chunked"), 400, b"not a valid HTTP"),
    "chunks in an odd spelling": (
        request_of(b"0\r\n\r\n", content_length="", transfer_encoding="xchunked"), 400, b"not a valid HTTP"),
    "a space before a colon": (ASKED.replace(b"host:", b"host :"), 400, b"not a valid HTTP"),
    "a line of its own in a header": (ASKED.replace(b"host: x", b"host: x\ny"), 400, b""),
    "a long head": (request_of(b"{}", x="y" * 1_000_000), 431, b"longer than 65536 bytes"),
    "no HTTP": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, b"not a valid HTTP"),
    "a key that is none": (ASKED.replace(b"host: x", b"host: x\r\nauthorization: Bearer \xff\xfe"), 200, b"Hello"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_request_gets_an_error_and_hurts_nobody(upstream: ReplayServer, name: str) -> None:
    sent, status, said = HOSTILE[name]
    upstream.add(says(), times=None)
    with live(config_of(upstream)) as here:
        with here.connect() as connection:
            connection.sendall(sent.replace(b"host: x\r\n", b"host: x\r\nconnection: close\r\n", 1))
            answer = all_of(connection)
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 %d " % status), answer
        assert said in body
        if b"application/json" in head and status != 200:
            error = json.loads(body)["error"]
            assert error["message"]
        with here.connect() as connection:
            connection.sendall(ASKED)
            until(connection, b"Hello")
        wait_until_idle(here)


@pytest.mark.sweep
def test_keys_are_not_guessed_and_not_logged(
    upstream: ReplayServer, caplog: pytest.LogCaptureFixture
) -> None:
    from crosswalk_serve.config import KeyHash
    from crosswalk_serve.routing import new_key

    caplog.set_level("DEBUG")
    key = new_key()
    hashed = KeyHash.of(key, b"saltsalt")
    with live(config_of(upstream, f"keys: {{a: {{hash: '{hashed}'}}}}")) as here, httpx2.Client() as client:
        answers = [
            client.post(here.url + CHAT, json=HI, headers={"x-api-key": f"cw-guess-{number}"})
            for number in range(100)
        ]
        assert {answer.status_code for answer in answers} == {401}
        assert len({answer.content for answer in answers}) == 1
    assert "cw-guess" not in caplog.text
    assert key not in caplog.text
    assert upstream.requests == ()


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("listen", "said"),
    [("", "127.0.0.1"), ("listen: {trusted_proxies: 192.0.2.1}", "127.0.0.1"), ("listen: {trusted_proxies: 127.0.0.1}", "203.0.113.7")],
)  # fmt: skip
@pytest.mark.parametrize(("method", "path"), [("POST", CHAT), ("GET", "/v1/models"), ("GET", "/metrics")])
def test_the_log_says_where_a_wrong_key_came_from(
    upstream: ReplayServer, caplog: pytest.LogCaptureFixture, listen: str, said: str, method: str, path: str
) -> None:
    """On every page. A proxy is believed if the file says so."""
    caplog.set_level("INFO", "crosswalk.serve")
    keys = f"keys: {{a: {{hash: '{KeyHash.of('cw-alice-0123456789abcdefghij', b'saltsalt')}'}}}}"
    headers = {"x-api-key": "cw-guess", "x-forwarded-for": "198.51.100.1, 203.0.113.7"}
    with live(config_of(upstream, f"{keys}\nmetrics: true\n{listen}")) as here:
        answer = httpx2.request(method, here.url + path, headers=headers)
    assert answer.status_code == 401
    refused = [r for r in caplog.records if vars(r).get("event.name") == "crosswalk.key_refused"]
    assert [r.getMessage() for r in refused] == [f"no valid API key was given: from {said}"]


# ------------------------------------------------------------------------------------ the end


def test_at_the_end_answers_may_go_on_and_nobody_new_is_served(upstream: ReplayServer) -> None:
    upstream.add(streams("Hel", "lo"), Delay(0.1), when=lambda _: True)
    with live(config_of(upstream)) as here, here.connect() as idle, here.connect() as connection:
        idle.sendall(request_of(b"", "/readyz", "GET"))
        until(idle, b"ready")
        connection.sendall(STREAM)
        upstream.wait_for(lambda server: server.requests)
        here.end()
        assert b"data: [DONE]" in all_of(connection)
        assert all_of(idle) == b""


def test_what_runs_too_long_ends_in_its_own_form(upstream: ReplayServer) -> None:
    upstream.add(streams("Hel", "lo"), Stall(after_events=1), when=lambda request: bool(request.wants_stream))
    upstream.add(says(), Stall(), times=None)
    with live(config_of(upstream, "limits: {shutdown_seconds: 3}")) as here:
        with here.connect() as streamed, here.connect() as whole, here.connect() as silent:
            streamed.sendall(STREAM)
            until(streamed, b'"Hel"')
            whole.sendall(ASKED)
            silent.sendall(STREAM)
            upstream.wait_for(lambda server: len(server.requests) == 3)
            here.end()
            wait_for(here, lambda here: here.gateway.is_draining)
            here.pass_time(3)
            last = all_of(streamed).split(b"data: ")[-1]
            assert b'"message":"the gateway is being shut down"' in last
            assert last.endswith(b"0\r\n\r\n")
            for refused in (all_of(whole), all_of(silent)):
                assert refused.startswith(b"HTTP/1.1 503 ")
                assert b'"code":"shutting_down"' in refused
        here.thread.join(60)
        assert not here.thread.is_alive()
        upstream.wait_for(lambda server: not server.open_connections)


def test_who_asks_while_it_ends_is_sent_away(upstream: ReplayServer) -> None:
    from contrib_serve import asking
    from crosswalk_serve.app import create_app

    async def main() -> None:
        app = create_app(config_of(upstream))
        async with asking(app) as client:
            app.state.gateway.drain()
            app.state.gateway.drain()
            app.state.gateway.end_all()
            assert (await client.get("/readyz")).status_code == 503
            assert (await client.get("/healthz")).status_code == 200
            refused = await client.post(CHAT, json=HI)
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "shutting_down")
        await app.state.gateway.aclose()

    asyncio.run(main())


def test_a_connection_that_stays_idle_is_closed(upstream: ReplayServer) -> None:
    upstream.add(says())
    with live(config_of(upstream)) as here, here.connect() as connection:
        connection.sendall(ASKED)
        until(connection, b"Hello")
        here.call(lambda: [one.timeout_keep_alive_handler() for one in here.server.server_state.connections])
        assert all_of(connection) == b""


def test_a_body_that_is_too_long_is_not_read_for_ever(
    upstream: ReplayServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crosswalk_serve.requests._DRAIN_SECONDS", 0.1)
    with live(config_of(upstream, "limits: {body_bytes: 10}")) as here, here.connect() as connection:
        connection.sendall(ASKED[:-5])
        assert all_of(connection).startswith(b"HTTP/1.1 413 ")


# ------------------------------------------------------------------------------------ TLS


def test_https_by_files(upstream: ReplayServer, tmp_path: Path) -> None:
    write_certificate(tmp_path)
    upstream.add(says())
    tls = f"tls: {{certificate: {tmp_path}/cert.pem, key: {tmp_path}/key.pem}}"
    context = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
    with live(config_of(upstream, tls)) as here, httpx2.Client(verify=context) as client:
        assert client.post(here.url + CHAT, json=HI).status_code == 200
        assert here.url.startswith("https://")


def write_certificate(folder: Path) -> None:
    """A certificate for 127.0.0.1 that says of itself who it is."""
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "gateway")])
    now = datetime.datetime.now(datetime.UTC)
    address: Any = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    plain = serialization.NoEncryption()
    (folder / "key.pem").write_bytes(key.private_bytes(serialization.Encoding.PEM, form, plain))
