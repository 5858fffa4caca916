"""A process that ends, or reloads its file, while streams run, as a balancer and the clients see it."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest

from contrib_serve import ABOUT, HI

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")

ASKED: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {**HI, "stream": True},
    "/v1/completions": {"model": "tiny", "prompt": "Hi", "stream": True},
    "/v1/responses": {"model": "tiny", "input": "Hi", "stream": True},
    "/v1/messages": {**HI, "max_tokens": 9, "stream": True},
    "/api/chat": HI,
    "/api/generate": {"model": "tiny", "prompt": "Hi"},
}
CHAT = "/v1/chat/completions"
PATIENCE = 900
"""Seconds after which something hangs. Each process of a gateway loads all modules before it answers, and a machine under load
takes a minute for those of two, which trace their lines."""


def _piece(content: str, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": content}, "finish_reason": finish}
    data = orjson.dumps({**ABOUT, "object": "chat.completion.chunk", "choices": [choice]})
    event = b"data: %b\n\n" % data + (b"data: [DONE]\n\n" if finish else b"")
    return b"%x\r\n%b\r\n" % (len(event), event)


class Held:
    """A server of models that streams the first half of each answer, and the rest when it is let go on."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.goes_on = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        try:
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()
        except OSError:
            pass  # closed

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            connection.recv(65536)
            head = (
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n"
                b"connection: close\r\n\r\n"
            )
            connection.sendall(head + _piece("Hel"))
            if self.goes_on.wait(PATIENCE):
                connection.sendall(_piece("lo", "stop") + b"0\r\n\r\n")

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture
def held() -> Iterator[Held]:
    server = Held()
    yield server
    server.close()


@contextmanager
def serving(folder: Path, held: Held, more: str, *words: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A gateway before *held* in a separate process, and its address."""
    models = f"models:\n  tiny: {{provider: vllm, base_url: '{held.url}'}}\n"
    (folder / "g.yml").write_text(f"{models}listen: 127.0.0.1:0\n{more}\n")
    command = [sys.executable, "-m", "crosswalk", "serve", str(folder / "g.yml"), *words]
    env = {**os.environ, "COVERAGE_CORE": "sysmon"}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env, start_new_session=True)
    assert process.stderr is not None
    try:
        found = re.search(r"http://[^;]+", process.stderr.readline())
        assert found
        yield found[0], process
    finally:
        with suppress(ProcessLookupError):  # with its workers, which would hold its standard error open
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def text_of(stream: str) -> str:
    """The text of a streamed chat completion, which must be whole."""
    lines = [line.removeprefix("data: ") for line in stream.split("\n") if line.startswith("data: ")]
    assert lines.pop() == "[DONE]"
    return "".join(
        choice["delta"].get("content") or "" for line in lines for choice in json.loads(line)["choices"]
    )


def asked_anew(url: str, path: str = "/readyz", body: Any = None) -> httpx2.Response | None:
    """The answer to a new connection. ``None`` if it was closed by a process that has just ended."""
    with httpx2.Client(timeout=PATIENCE) as client:
        try:
            return client.get(url + path) if body is None else client.post(url + path, json=body)
        except (httpx2.RemoteProtocolError, httpx2.ReadError):
            return None


def until_it_is_to_end(url: str) -> None:
    while (answer := asked_anew(url)) is None or answer.status_code == 200:
        pass
    assert (answer.status_code, answer.json()) == (503, {"status": "ending"})


@pytest.mark.parametrize(
    ("told", "workers"),
    [
        (signal.SIGTERM, 1),
        pytest.param(signal.SIGTERM, 2, marks=pytest.mark.untraced),
        pytest.param(signal.SIGINT, 1, marks=pytest.mark.untraced),
        pytest.param(signal.SIGINT, 2, marks=pytest.mark.sweep),  # three processes begin for it
    ],
)
def test_while_streams_end_a_balancer_is_told_and_nobody_new_is_served(
    held: Held, tmp_path: Path, told: signal.Signals, workers: int
) -> None:
    with serving(tmp_path, held, "", "--workers", str(workers)) as (url, process):
        with (
            httpx2.Client(timeout=PATIENCE) as client,
            client.stream("POST", url + CHAT, json=ASKED[CHAT]) as stream,
        ):
            pieces = stream.iter_text()
            begun = next(pieces)
            process.send_signal(told)
            until_it_is_to_end(url)
            process.send_signal(signal.SIGTERM)  # once more, which changes nothing
            refused = None
            while refused is None:
                refused = asked_anew(url, CHAT, HI)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            assert refused.headers["connection"] == "close"
            assert refused.json()["error"]["code"] == "shutting_down"
            health = None
            while health is None:
                health = asked_anew(url, "/healthz")
            assert health.status_code == 200
            held.goes_on.set()
            assert text_of(begun + "".join(pieces)) == "Hello"
        assert process.wait(PATIENCE) == 0
        with pytest.raises(httpx2.ConnectError):
            asked_anew(url)


ENDS = {
    "/v1/chat/completions": b'"message":"the gateway is being shut down"',
    "/v1/completions": b'"message":"the gateway is being shut down"',
    "/v1/responses": b"event: response.failed\n",
    "/v1/messages": b"event: error\n",
    "/api/chat": b'{"error":"the gateway is being shut down"',
    "/api/generate": b'{"error":"the gateway is being shut down"',
}


@pytest.mark.parametrize(
    "twice",
    [pytest.param(False, marks=pytest.mark.untraced), True],
    ids=["its time is over", "somebody does not wait"],
)
def test_what_runs_longer_ends_in_its_clients_form(held: Held, tmp_path: Path, twice: bool) -> None:
    seconds = 600 if twice else 0.2
    with serving(tmp_path, held, f"limits: {{shutdown_seconds: {seconds}}}") as (url, process):
        with httpx2.Client(timeout=PATIENCE) as client:
            requests = {path: client.build_request("POST", url + path, json=ASKED[path]) for path in ASKED}
            streams = {path: client.send(request, stream=True) for path, request in requests.items()}
            readers = {path: stream.iter_raw() for path, stream in streams.items()}
            begun = {path: next(reader) for path, reader in readers.items()}
            process.send_signal(signal.SIGINT)
            if twice:
                until_it_is_to_end(url)
                process.send_signal(signal.SIGINT)
            for path, reader in readers.items():
                rest = b"".join(reader)
                assert ENDS[path] in rest, path
                assert b"shut down" in rest, path
                assert b"[DONE]" not in begun[path] + rest, path
        assert process.wait(PATIENCE) == 0


# A new file.


def models_at(url: str) -> list[str]:
    with httpx2.Client(timeout=PATIENCE) as client:
        return [one["id"] for one in client.get(f"{url}/v1/models").json()["data"]]


def lines_until(process: subprocess.Popen[str], text: str) -> None:
    assert process.stderr is not None
    while text not in process.stderr.readline():
        assert process.poll() is None


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.untraced), 2])
def test_a_signal_reloads_the_file_under_a_stream(held: Held, tmp_path: Path, workers: int) -> None:
    with serving(tmp_path, held, "", "--workers", str(workers)) as (url, process):
        file = tmp_path / "g.yml"
        before = file.read_text()
        with (
            httpx2.Client(timeout=PATIENCE) as client,
            client.stream("POST", url + CHAT, json=ASKED[CHAT]) as stream,
        ):
            pieces = stream.iter_text()
            begun = next(pieces)
            for wrong, why in (
                ("3", "models: expected object, got number"),
                ("{a: {provider: x}}", "models.a: unknown"),
            ):
                file.write_text(f"models: {wrong}")
                process.send_signal(signal.SIGHUP)
                lines_until(process, f"not reloaded: {file}, line 1: {why}")
            assert models_at(url) == ["tiny"]
            file.write_text(before.replace("tiny:", "other:"))
            process.send_signal(signal.SIGHUP)
            for _ in range(workers):
                lines_until(process, "was reloaded")
            assert models_at(url) == ["other"]
            held.goes_on.set()
            assert text_of(begun + "".join(pieces)) == "Hello"
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
