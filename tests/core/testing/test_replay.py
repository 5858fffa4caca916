"""The replay server: what it sends, what goes wrong when asked to, and what it remembers."""

from __future__ import annotations

import asyncio
import http.client
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from crosswalk import ConfigurationError
from crosswalk.testing import load_capture, replay
from crosswalk.testing.exchange import Cut, Delay, Fault, Garbage, Pause, Reset, SentChunk, Slow, Stall
from crosswalk.testing.replay import Answer, AnswerOutcome, ReceivedRequest, ReplayError, ReplayServer
from pages import ROOT

CAPTURES = ROOT / "tests/captures"
BODY = load_capture(CAPTURES / "vllm/chat_think.response.json")
SSE = load_capture(CAPTURES / "vllm/chat_think_stream.response.sse")
NDJSON = load_capture(CAPTURES / "ollama/go_chat_stop_stream.response.ndjson")
PATH = "/v1/chat/completions"


@pytest.fixture
def client() -> Iterator[httpx2.Client]:
    with httpx2.Client(timeout=60) as client:
        yield client


def ask(client: httpx2.Client, server: ReplayServer, path: str = PATH, **body: Any) -> httpx2.Response:
    return client.post(server.url + path, json=body)


# ------------------------------------------------------------------------------------------- what it sends


def test_a_folder_answers_by_path_and_by_form(client: httpx2.Client) -> None:
    with ReplayServer([BODY, SSE, NDJSON]) as server:
        whole = ask(client, server)
        streamed = ask(client, server, stream=True)
        native = ask(client, server, "/api/chat?x=1", model="m")
        unknown = ask(client, server, "/v1/other")
    assert (whole.content, whole.headers["content-type"]) == (BODY.body, "application/json")
    assert whole.headers["content-length"] == str(len(BODY.body))
    assert (streamed.content, streamed.headers["content-type"]) == (SSE.body, "text/event-stream")
    assert streamed.headers["transfer-encoding"] == "chunked"
    assert (native.content, native.headers["content-type"]) == (NDJSON.body, "application/x-ndjson")
    assert unknown.status_code == 404
    assert unknown.json()["error"]["message"] == "the replay server has no answer for POST /v1/other"
    assert [request.case for request in server.requests] == [BODY.case, SSE.case, NDJSON.case, None]


def test_a_folder_by_name_takes_turns_and_keeps_the_status(client: httpx2.Client, tmp_path: Path) -> None:
    for name, text in (("a", "1"), ("b", "2"), ("c_stream", "3")):
        (tmp_path / f"{name}.response.json").write_text(text)
    (tmp_path / "MANIFEST.jsonl").write_text(
        '{"file": "b.response.json", "status": 529}\n{"file": "c_stream.response.json", "stream": true}'
    )
    with ReplayServer(str(tmp_path)) as server:
        answers = [ask(client, server, "/any", stream=False) for _ in range(3)]
        assert ask(client, server, "/any", stream=True).text == "3"
    assert [(one.status_code, one.text) for one in answers] == [(200, "1"), (529, "2"), (200, "1")]
    assert answers[1].reason_phrase == "Unknown"


@pytest.mark.parametrize(
    ("target", "body", "said"),
    [
        ("/v1", b'{"stream": true}', True),
        ("/v1", b'{"stream": false}', False),
        ("/v1", b'{"stream": "yes"}', None),
        ("/v1", b"{}", None),
        ("/v1", b"[]", None),
        ("/v1", b"\xff", None),
        ("/models/m:streamGenerateContent?alt=sse", b"", True),
    ],
)
def test_a_request_says_whether_it_wants_a_stream(target: str, body: bytes, said: bool | None) -> None:
    assert ReceivedRequest("POST", target, {}, body, 1).wants_stream is said


@pytest.mark.parametrize("capture", [SSE, NDJSON], ids=str)
def test_a_stream_is_sent_event_by_event(capture: Any) -> None:
    answer = Answer.of_capture(capture)
    assert len(answer.chunks) > 3
    assert b"".join(answer.chunks) == capture.body
    assert all(chunk.endswith(b"\n") for chunk in answer.chunks)


def test_added_answers_come_first_and_in_order(client: httpx2.Client) -> None:
    with ReplayServer([BODY]) as server:
        server.add(Answer.failure(429, retry_after=2)).add(Answer.of_json({"n": 2}), path="/two")
        server.add(SSE, when=lambda request: request.json().get("n") == 3, times=2)
        first, second = ask(client, server), ask(client, server, "/two")
        third, fourth, fifth = (ask(client, server, n=3) for _ in range(3))
    assert (first.status_code, first.headers["retry-after"]) == (429, "2")
    assert second.json() == {"n": 2}
    assert third.content == fourth.content == SSE.body
    assert fifth.content == BODY.body


def test_an_answer_for_ever_and_one_of_events(client: httpx2.Client) -> None:
    with ReplayServer() as server:
        server.add(Answer.of_events([{"a": 1}, {"b": 2}]), times=1)
        server.add(Answer.of_events([{"a": 1}], done=False), times=None)
        assert ask(client, server).text == 'data: {"a":1}\n\ndata: {"b":2}\n\ndata: [DONE]\n\n'
        assert [ask(client, server).text for _ in range(3)] == ['data: {"a":1}\n\n'] * 3


def test_an_empty_chunk_does_not_end_a_body(client: httpx2.Client, replay_server: ReplayServer) -> None:
    replay_server.add(Answer((b"a", b"", b"b"), stream=True)).add(Answer((b"",)), Slow())
    assert (ask(client, replay_server).text, ask(client, replay_server).text) == ("ab", "")


# ---------------------------------------------------------------------------------------------- its faults


def arrived(client: httpx2.Client, server: ReplayServer) -> tuple[bytes, str | None]:
    """The result of an answer's body, and the name of the error that ended it."""
    received = b""
    try:
        with client.stream("POST", server.url + PATH, json={}) as response:
            for chunk in response.iter_raw():
                received += chunk
    except httpx2.HTTPError as error:
        return received, type(error).__name__
    return received, None


EVENTS = (b"data: 1\n\n", b"data: 2\n\n", b"data: 3\n\n")
WHOLE = b"".join(EVENTS)
STREAM = Answer(EVENTS, stream=True)
PLAIN = Answer((WHOLE,))


@pytest.mark.parametrize("answer", [STREAM, PLAIN], ids=["stream", "whole"])
@pytest.mark.parametrize(
    ("fault", "received", "error"),
    [
        (Delay(0.01), WHOLE, None),
        (Slow(0.0), WHOLE, None),
        (Slow(0.001, chunk_bytes=4), WHOLE, None),
        (Cut(), b"", "RemoteProtocolError"),
        (Cut(after_events=0), b"", "RemoteProtocolError"),
        (Cut(after_bytes=13), WHOLE[:13], "RemoteProtocolError"),
        (Cut(after_bytes=13, clean=True), WHOLE[:13], None),
        (Cut(after_bytes=999, clean=True), WHOLE, None),
        (Reset(), b"", "ReadError"),
        (Reset(after_bytes=9), WHOLE[:9], "ReadError"),
        (Garbage(data=b"\x00\x01\r\n\r\n"), b"", "RemoteProtocolError"),
        (Garbage(after_bytes=9, data=b"!?"), WHOLE[:9] + b"!?" + WHOLE[9:], None),
        (Garbage(after_events=99, data=b"!?"), WHOLE + b"!?", None),
    ],
    ids=repr,
)
def test_a_fault_does_what_it_says(
    client: httpx2.Client,
    replay_server: ReplayServer,
    answer: Answer,
    fault: Fault,
    received: bytes,
    error: str | None,
) -> None:
    replay_server.add(answer, fault)
    assert arrived(client, replay_server) == (received, error)
    # What was wrong with one answer has no effect on the next.
    replay_server.add(PLAIN)
    assert arrived(client, replay_server) == (WHOLE, None)


@pytest.mark.parametrize(
    ("fault", "received"),
    [
        (Cut(after_events=0, clean=True), b""),
        (Cut(after_events=2, clean=True), EVENTS[0] + EVENTS[1]),
        (Cut(after_events=9, clean=True), WHOLE),
        (Cut(after_bytes=0, clean=True), b""),
    ],
    ids=repr,
)
def test_a_place_counts_events(
    client: httpx2.Client, replay_server: ReplayServer, fault: Fault, received: bytes
) -> None:
    replay_server.add(STREAM, fault)
    assert arrived(client, replay_server) == (received, None)


def test_a_reset_loses_nothing_that_came_before_it(replay_server: ReplayServer) -> None:
    """Also where the client's system takes little at a time, so that much is on its way for long."""
    much = bytes(2**20)
    replay_server.add(Answer((much, b"more")), Reset(after_bytes=len(much)))
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", int(replay_server.url.rpartition(":")[2])))
        client.sendall(b"GET /x HTTP/1.1\r\n\r\n")
        got = b""
        with pytest.raises(ConnectionResetError):
            while data := client.recv(65536):
                got += data
    assert got.partition(b"\r\n\r\n")[2] == much


def test_where_the_system_does_not_tell_a_reset_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        monkeypatch.setattr("sys.platform", "win32")
        assert replay._on_its_way(ours) == 0


def test_a_conversation_that_ends_behind_its_server_ends_quietly() -> None:
    """The server has let go of all connections by then."""

    class Gone:
        closed = SimpleNamespace(wait=lambda: asyncio.sleep(0))

        async def read_request(self) -> None:
            return None

        def close(self) -> None:
            pass

    server = ReplayServer()
    asyncio.run(server._converse(Gone()))  # type: ignore[arg-type]
    assert server.open_connections == 0


def test_faults_add_up() -> None:
    steps: Any = STREAM.steps()
    for fault in (Slow(0.5, chunk_bytes=5), Delay(2), Cut(after_bytes=7)):
        steps = fault.apply(steps)
    assert steps[0] == Pause(2)
    assert [step.data for step in steps if isinstance(step, SentChunk)] == [b"data:", b" 1"]
    # A fault behind the place of another never comes to pass.
    assert Garbage(after_events=3).apply(Cut(after_bytes=0).apply(STREAM.steps()))[-1] == SentChunk(
        Garbage().data
    )


@pytest.mark.parametrize(
    "fault", [Stall(), Stall(after_events=0), Stall(after_events=2), Delay(600)], ids=repr
)
def test_silence_lasts_until_the_client_leaves(replay_server: ReplayServer, fault: Fault) -> None:
    replay_server.add(STREAM, fault)
    with closing(http.client.HTTPConnection(urlsplit(replay_server.url).netloc)) as connection:
        connection.request("POST", PATH, b"{}")
        replay_server.wait_for(lambda server: server.requests)
        if fault == Stall(after_events=2):
            assert connection.getresponse().read(18) == EVENTS[0] + EVENTS[1]
        assert replay_server.requests[0].outcome is AnswerOutcome.ANSWERING
        assert replay_server.open_connections == 1
    replay_server.wait_for(lambda server: server.disconnects)
    replay_server.wait_for(lambda server: not server.open_connections)
    assert [request.outcome for request in replay_server.requests] == [AnswerOutcome.DISCONNECTED]


def test_a_client_that_leaves_in_the_middle_is_seen(replay_server: ReplayServer) -> None:
    replay_server.add(Answer((b"x" * 1_000_000,) * 50, stream=True))
    with closing(http.client.HTTPConnection(urlsplit(replay_server.url).netloc)) as connection:
        connection.request("POST", PATH, b"{}")
        connection.getresponse().read(10)
    replay_server.wait_for(lambda server: server.disconnects)


def test_a_client_that_ends_its_side_has_left(replay_server: ReplayServer) -> None:
    replay_server.add(Answer((b"x",) * 1000, stream=True), Slow())
    with socket.create_connection(urlsplit(replay_server.url).netloc.split(":")) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        replay_server.wait_for(lambda server: server.disconnects)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Delay(-1),
        lambda: Delay(float("nan")),
        lambda: Slow(0, 0),
        lambda: Stall(after_events=-1),
        lambda: Stall(after_events=1, after_bytes=1),
        lambda: Cut(after_bytes=1.5),  # type: ignore[arg-type]
        lambda: Cut(clean=True),
        lambda: Answer.failure(200),
        lambda: Answer((), headers={"X": "\u20ac"}),
        lambda: Answer((), headers={"X": "a\r\nSet-Cookie: b"}),
        lambda: ReplayServer("no/such/folder"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigurationError):
        wrong()


# --------------------------------------------------------------------------------------- what it remembers


def test_requests_are_recorded_and_their_secrets_not_shown(
    client: httpx2.Client, replay_server: ReplayServer
) -> None:
    replay_server.add(BODY)
    client.post(replay_server.url + "/a?b=c", json={"x": 1}, headers={"Authorization": "Bearer s3cret"})
    client.get(replay_server.url + "/d")
    posted, got = replay_server.requests
    assert (posted.method, posted.target, posted.path) == ("POST", "/a?b=c", "/a")
    assert (posted.json(), posted.headers["authorization"]) == ({"x": 1}, "Bearer s3cret")
    assert "s3cret" not in repr(posted)
    assert (got.method, got.body, got.case) == ("GET", b"", None)
    with pytest.raises(ReplayError, match="GET /d: the body is not JSON"):
        got.json()


def test_a_connection_is_used_again_and_closed_when_asked(
    client: httpx2.Client, replay_server: ReplayServer
) -> None:
    replay_server.add(SSE).add(BODY).add(BODY).add(BODY)
    for headers in ({}, {}, {"Connection": "close"}, {}):
        client.post(replay_server.url, headers=headers)
    assert [request.connection for request in replay_server.requests] == [1, 1, 1, 2]
    assert replay_server.connections == 2


def test_a_body_in_chunks_is_read(client: httpx2.Client, replay_server: ReplayServer) -> None:
    replay_server.add(BODY)
    client.post(replay_server.url, content=iter([b'{"a"', b": 1}"]))
    assert replay_server.requests[0].json() == {"a": 1}


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: many\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n12",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET / HTTP/1.1\r\n" + b"x" * 100_000,
        b"",
    ],
    ids=range(6),
)
def test_what_is_no_request_is_not_answered(replay_server: ReplayServer, sent: bytes) -> None:
    async def talk() -> bytes:
        host, port = urlsplit(replay_server.url).netloc.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(sent)
        writer.write_eof()
        try:
            return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.close()

    assert asyncio.run(talk()) == b""
    assert replay_server.requests == ()
    replay_server.wait_for(lambda server: not server.open_connections)


def test_waiting_for_what_does_not_happen_is_an_error(replay_server: ReplayServer) -> None:
    with pytest.raises(ReplayError, match=r"within 0\.01 seconds"):
        replay_server.wait_for(lambda server: server.disconnects, timeout=0.01)


# ------------------------------------------------------------------------------------------ start and close


def test_closing_ends_everything_at_once() -> None:
    """Whatever it was doing: no thread and no connection is left."""
    threads = threading.active_count()
    server = ReplayServer().add(STREAM, Stall(after_events=1)).add(STREAM, Delay(600)).start()
    connections = [http.client.HTTPConnection(urlsplit(server.url).netloc) for _ in range(3)]
    for connection in connections:
        connection.connect()
    for connection in connections[:2]:
        connection.request("POST", PATH, b"{}")
    server.wait_for(lambda server: len(server.requests) == 2 and server.open_connections == 3)
    server.close()
    server.close()
    assert threading.active_count() == threads
    assert server.open_connections == 0
    for connection in connections:
        connection.close()
    with pytest.raises(ReplayError, match="does not run"):
        _ = server.url


def test_it_starts_again_but_not_twice(client: httpx2.Client) -> None:
    server = ReplayServer([BODY])
    for _ in range(2):
        with server:
            assert ask(client, server).content == BODY.body
            with pytest.raises(ReplayError, match="runs already"):
                server.start()


def test_a_failing_matcher_is_reported(client: httpx2.Client) -> None:
    server = ReplayServer().add(BODY, when=lambda request: bool(1 / 0)).start()
    assert ask(client, server).status_code == 404
    with pytest.raises(ReplayError, match="answering failed with ZeroDivisionError"):
        server.close()
    server.close()


def test_a_fault_that_is_none_is_reported(client: httpx2.Client) -> None:
    server = ReplayServer().add(BODY, "nonsense").start()  # type: ignore[arg-type]
    with pytest.raises(httpx2.RemoteProtocolError):
        ask(client, server)
    server.wait_for(lambda server: not server.open_connections)
    with pytest.raises(ReplayError, match="answering failed with AttributeError"):
        server.close()


def test_async_clients_are_served_all_at_once() -> None:
    async def main() -> list[bytes]:
        async with ReplayServer([SSE], faults=[Slow(0.001)]) as server, httpx2.AsyncClient() as client:
            answers = await asyncio.gather(
                *(client.post(server.url + PATH, json={"stream": True}) for _ in range(20))
            )
            assert 1 < server.connections <= 20
        return [answer.content for answer in answers]

    assert asyncio.run(main()) == [SSE.body] * 20


@pytest.mark.sweep
def test_plain_use_needs_no_test_framework() -> None:
    code = "import crosswalk.testing.replay, sys; print({'pytest', 'syrupy', 'httpx2'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
