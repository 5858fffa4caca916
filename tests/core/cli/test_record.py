from __future__ import annotations

import asyncio
import errno
import os
import select
import signal
import socketserver
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import attrs
import httpx2
import orjson
import pytest

from crosswalk.cli import record
from crosswalk.errors import PluginError
from crosswalk.testing import load_capture, load_captures, pairs
from crosswalk.testing.exchange import Cut, Garbage, Reset, Stall
from crosswalk.testing.replay import Answer, ReplayServer

from .conftest import ROOT, Done, body, stream, to

Run = Callable[..., Done]
VLLM = ROOT / "tests/captures/vllm"
WHOLE = load_capture(VLLM / "reasoning_chat_think.response.json")
STREAMED = load_capture(VLLM / "reasoning_chat_think_stream.response.sse")
NATIVE = load_capture(ROOT / "tests/captures/ollama/go_chat_stop_stream.response.ndjson")


@pytest.fixture(autouse=True)
def kept(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's temporary folder, where an answer is kept that could not be stored."""
    folder = tmp_path_factory.mktemp("kept")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def recorded(folder: Path | str = "caps") -> dict[str, Any]:
    """The manifest's lines, by file."""
    lines = (Path(folder) / "MANIFEST.jsonl").read_bytes().splitlines()
    return {entry["file"]: entry for entry in map(orjson.loads, lines)}


def test_a_stream_is_kept_byte_for_byte(run: Run, server: ReplayServer) -> None:
    server.add(STREAMED)
    done = run("record", *to(server), "--output", "caps", "--name", "think", "Why?")
    assert (done.status, done.out) == (0, "caps/think_stream.response.sse\n")
    assert (
        done.err
        == f"HTTP 200, {len(STREAMED.body):,} bytes: stop; Tokens: 29 prompt, 11 completion (4 reasoning) (40 total)\n"
    )
    assert Path("caps/think_stream.response.sse").read_bytes() == STREAMED.body
    assert Path("caps/think_stream.request.json").read_bytes() == server.requests[0].body
    draft = orjson.loads(Path("caps/think_stream.says.json").read_bytes())
    assert draft["found"]["choices[].finish_reason"] == "stop"
    assert load_capture("caps/think_stream.response.sse").says is None
    assert recorded() == {
        "think_stream.response.sse": {
            "file": "think_stream.response.sse",
            "server": "vllm",
            "method": "POST",
            "path": "/v1/chat/completions",
            "request": "think_stream.request.json",
            "stream": True,
            "status": 200,
            "content_type": "text/event-stream",
            "complete": True,
            "pair": "think_stream",
        }
    }
    assert server.requests[0].headers["accept-encoding"] == "identity"


@pytest.mark.sweep
def test_what_is_recorded_is_read_by_every_command(run: Run, server: ReplayServer) -> None:
    server.add(WHOLE).add(STREAMED)
    done = run("record", *to(server), "--both", "--output", "caps", "--name", "think", "Why?")
    assert done.out == "caps/think.response.json\ncaps/think_stream.response.sse\n"
    assert [request.wants_stream for request in server.requests] == [None, True]
    assert len(pairs(load_captures("caps"))) == 1
    checked = run("check", "--provider", "vllm", "--sample", "3", "caps")
    assert "\ncaps: 2 captures, " in checked.out
    assert checked.status == 0
    assert run("normalize", "caps", "--output", "stored").status == 0
    assert run("diff", "caps", "--stored", "stored").out == "2 compared: 0 different, 2 the same\n"
    assert run("explain", "caps/think.response.json").status == 0


def test_a_capture_belongs_to_a_named_provider(run: Run, server: ReplayServer) -> None:
    done = run("record", "--base-url", server.url, "--model", "m", "--output", "caps", "--name", "x", "Why?")
    assert done.status == 2
    assert "--provider" in done.err
    assert not server.requests


def test_two_answers_that_differ_are_no_pair(run: Run, server: ReplayServer) -> None:
    server.add(body({"content": "One."})).add(stream("Two."))
    done = run("record", *to(server), "--both", "--output", "caps", "--name", "n", "Why?")
    assert done.status == 0
    assert "they are stored as no pair" in done.err
    assert pairs(load_captures("caps")) == []


def test_an_answer_that_cannot_be_mapped_is_recorded_and_stays_a_pair(run: Run, server: ReplayServer) -> None:
    server.add(body({"content": "One."})).add(stream("One."), Garbage(after_events=1))
    done = run("record", *to(server), "--both", "--output", "caps", "--name", "n", "Why?")
    assert done.status == 1
    assert "InvalidJSONError: vllm, event 2: not JSON" in done.err
    assert len(pairs(load_captures("caps"))) == 1
    assert load_capture("caps/n_stream.response.sse").complete


def test_a_plugin_that_breaks_does_not_lose_the_recording(
    run: Run, server: ReplayServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> Any:
        raise PluginError("its mapping is not written yet", plugin="vllm")
        yield

    monkeypatch.setattr(record, "normalize_stream", broken)
    server.add(WHOLE)
    done = run("record", *to(server), "--no-stream", "--output", "caps", "--name", "n", "Why?")
    assert done.status == 1
    assert "PluginError: its mapping is not written yet" in done.err
    assert load_capture("caps/n.response.json").body == WHOLE.body


def test_lines_of_json_and_the_name_of_a_stream(run: Run, server: ReplayServer) -> None:
    server.add(NATIVE)
    done = run("record", *to(server, "ollama"), "--output", "a/b", "--name", "hi_stream", "Hi")
    assert done.out == "a/b/hi_stream.response.ndjson\n"
    assert recorded("a/b")["hi_stream.response.ndjson"]["path"] == "/api/chat"


def test_an_error_of_the_server_is_an_answer(run: Run, server: ReplayServer) -> None:
    server.add(Answer.failure(404, message="no such model"))
    server.add(Answer((b"go away",), 503, {"Content-Type": "text/plain"}))
    done = run("record", *to(server), "--output", "caps", "--name", "unknown", "Hi")
    assert (done.status, done.out) == (0, "caps/unknown_stream.response.json\n")
    assert "HTTP 404" in done.err
    assert "error, model_unavailable: no such model" in done.err
    assert run("record", *to(server), "--output", "caps", "--name", "down", "Hi").status == 0
    assert len(server.requests) == 2
    assert recorded()["down_stream.response.txt"]["status"] == 503
    assert run("check", "--provider", "vllm", "--sample", "3", "caps").status == 0


def test_an_answer_without_a_type_is_kept_as_text(run: Run, server: ReplayServer) -> None:
    server.add(Answer((b"?",)))
    done = run("record", *to(server), "--no-stream", "--output", "caps", "--name", "n", "Hi")
    assert (done.status, done.out) == (1, "caps/n.response.txt\n")
    assert recorded()["n.response.txt"]["content_type"] is None


@pytest.mark.parametrize("fault", [Cut(after_events=3), Reset(after_events=3)])
def test_what_was_cut_is_recorded_as_not_complete(run: Run, server: ReplayServer, fault: Any) -> None:
    server.add(STREAMED, fault)
    done = run("record", *to(server), "--output", "caps", "--name", "cut", "Hi")
    assert done.status == 1
    assert "crosswalk: vllm: server: the connection to 127.0.0.1" in done.err
    capture = load_capture("caps/cut_stream.response.sse")
    assert not capture.complete
    assert STREAMED.body.startswith(capture.body)
    assert capture.body.count(b"data:") == 3


def test_nothing_that_nobody_answered_is_recorded(run: Run, server: ReplayServer) -> None:
    server.add(stream("Hi"), Reset())
    done = run("record", *to(server), "--both", "--output", "caps", "--name", "n", "Hi")
    assert (done.status, done.out) == (1, "caps/n_stream.response.json\n")  # 404: nothing more to replay
    done = run("record", *to(server), "--no-stream", "--output", "other", "--name", "n", "Hi")
    assert list(recorded()) == ["n_stream.response.json"]


def test_it_does_not_wait_for_ever(run: Run, server: ReplayServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for seconds in ("0.2", "2", "20", "200"):  # a busy machine may not get as far as the headers in the first
        monkeypatch.setenv("CROSSWALK_TIMEOUT_SECONDS", seconds)
        server.add(STREAMED, Stall(after_events=3))
        done = run("record", *to(server), "--output", "caps", "--name", "slow", "Hi")
        assert done.status == 1
        assert "crosswalk: vllm: timeout: 127.0.0.1" in done.err
        if Path("caps/slow_stream.response.sse").exists():
            break
    assert not load_capture("caps/slow_stream.response.sse").complete
    server.wait_for(lambda server: server.disconnects)


@pytest.mark.parametrize(
    ("first", "again"),
    [(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n")],
    ids=["100 Continue", "headers"],
)
def test_the_time_limit_holds_before_the_headers_are_there(
    run: Run, monkeypatch: pytest.MonkeyPatch, first: bytes, again: bytes
) -> None:
    monkeypatch.setenv("CROSSWALK_TIMEOUT_SECONDS", "0.3")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), dripping(first, again)) as dripper:
        threading.Thread(target=dripper.serve_forever).start()
        url = f"http://127.0.0.1:{dripper.server_address[1]}"
        endpoint = ["--provider", "vllm", "--model", "m", "--base-url", url]
        done = run("record", *endpoint, "--output", "caps", "--name", "n", "Hi")
        dripper.shutdown()
    assert (done.status, done.out) == (1, "")
    assert "timeout: 127.0.0.1" in done.err


def dripping(first: bytes, again: bytes) -> type[socketserver.BaseRequestHandler]:
    """Begins its answer with *first*, and repeats *again* as long as a client listens."""

    class Dripping(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(65536)
            with suppress(OSError):
                self.request.sendall(first)
                while not select.select([self.request], [], [], 0.01)[0] or self.request.recv(65536):
                    self.request.sendall(again)  # until the other side hangs up

    return Dripping


def test_an_answer_that_is_too_large_is_left(
    run: Run, server: ReplayServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "_MOST_BYTES", 100)
    server.add(STREAMED)
    done = run("record", *to(server), "--output", "caps", "--name", "large", "Hi")
    assert done.status == 1
    assert "more than 100 bytes: the rest is left" in done.err
    capture = load_capture("caps/large_stream.response.sse")
    assert not capture.complete
    assert STREAMED.body.startswith(capture.body)


@pytest.mark.parametrize("status", [600, 999])
def test_a_status_that_http_does_not_know_is_an_error_of_the_server(
    run: Run, server: ReplayServer, status: int
) -> None:
    server.add(attrs.evolve(Answer.failure(500), status=status))
    done = run("record", *to(server), "--no-stream", "--output", "caps", "--name", "odd", "Hi")
    assert (done.status, done.out) == (0, "caps/odd.response.json\n")
    assert done.err.startswith(f"HTTP {status}, ")
    assert load_capture("caps/odd.response.json").status == status


@pytest.mark.parametrize("kind", ["gopher", "socks5"])
def test_a_proxy_that_cannot_be_used_is_said(
    run: Run, server: ReplayServer, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv("ALL_PROXY", f"{kind}://user:secret@x")
    done = run("record", *to(server), "--output", "caps", "--name", "n", "Hi")
    assert done.status == 2
    assert "the environment's proxy or certificates cannot be used" in done.err
    assert "secret" not in done.err


def test_ctrl_c_keeps_what_came(run: Run, server: ReplayServer, monkeypatch: pytest.MonkeyPatch) -> None:
    chunks = httpx2.Response.aiter_bytes

    async def pressed(response: httpx2.Response) -> Any:
        # A second one, where the events come in several reads, would end the process that tests.
        is_pressed = False
        async for chunk in chunks(response):
            yield chunk
            if not is_pressed:
                is_pressed = True
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    monkeypatch.setattr(httpx2.Response, "aiter_bytes", pressed)
    server.add(STREAMED, Stall(after_events=3))
    done = run("record", *to(server), "--both", "--output", "caps", "--name", "n", "Hi")
    assert done.status == 130
    assert "interrupted: what came is recorded as not complete" in done.err
    assert len(server.requests) == 1
    [entry] = recorded().values()
    assert entry["complete"] is False


def test_ctrl_c_before_anything_came_records_nothing(
    run: Run, server: ReplayServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    @asynccontextmanager
    async def press(*_: object, **__: object) -> Any:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        await asyncio.Event().wait()
        yield

    monkeypatch.setattr(httpx2.AsyncClient, "stream", press)
    done = run("record", *to(server), "--output", "caps", "--name", "n", "Hi")
    assert done == (130, "", "interrupted: nothing came\n")
    assert list(Path("caps").iterdir()) == []


def test_a_mistake_of_this_program_is_not_taken_for_one_of_the_server(
    run: Run, server: ReplayServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "failure_of", lambda *_: None)
    server.add(STREAMED, Reset())
    with pytest.raises(httpx2.TransportError):
        run("record", *to(server), "--output", "caps", "--name", "n", "Hi")


# What is never written.


@pytest.mark.parametrize("key", ["local-key-1234", "EMPTY"])
def test_no_credential_is_recorded(
    run: Run, server: ReplayServer, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("CROSSWALK_VLLM_API_KEY", key)
    server.add(STREAMED)
    assert run("record", *to(server), "--output", "caps", "--name", "n", "Hi").status == 0
    assert server.requests[0].headers["authorization"] == f"Bearer {key}"
    assert all(key.encode() not in file.read_bytes() for file in Path("caps").iterdir())
    server.add(Answer.failure(401, message=f"Incorrect API key: {key}"))
    done = run("record", *to(server), "--output", "caps", "--name", "wrong", "Hi")
    assert done == (1, "", "the exchange quotes a credential of yours: it is not recorded\n")
    done = run("record", *to(server), "--output", "caps", "--name", "prompt", f"My key is {key}.")
    assert done.status == 1
    assert len(recorded()) == 1


@pytest.mark.parametrize(
    "answer",
    [
        Answer((b"{}",), headers={"Content-Type": "text/sk-of-somebody-else"}),
        Answer((b'{"error": "try sk-proj-of-somebody-else"}',)),
    ],
    ids=["header", "body"],
)
def test_a_key_of_somebody_else_is_noticed(run: Run, server: ReplayServer, answer: Answer) -> None:
    """It is recorded all the same: what looks like a key may be none."""
    server.add(answer)
    done = run("record", *to(server), "--output", "caps", "--name", "n", "Hi")
    assert "it holds what looks like a key: look at it before anybody else does\n" in done.err
    assert len(recorded()) == 1


@pytest.mark.parametrize(
    "answer",
    [
        Answer((b"{}",), headers={"Content-Type": "text/local-key-1234"}),
        Answer((b'{"error": "key local\\u002dkey-1234"}',)),
        Answer((b'{"error": "key bG9jYWwta2V5LTEyMzQ="}',)),
    ],
    ids=["header", "escaped", "base64"],
)
def test_no_form_of_a_credential_is_recorded(
    run: Run, server: ReplayServer, monkeypatch: pytest.MonkeyPatch, answer: Answer
) -> None:
    monkeypatch.setenv("CROSSWALK_VLLM_API_KEY", "local-key-1234")
    server.add(answer)
    done = run("record", *to(server), "--output", "caps", "--name", "n", "Hi")
    assert done == (1, "", "the exchange quotes a credential of yours: it is not recorded\n")


@pytest.mark.parametrize("name", ["think", "think_stream"])
def test_nothing_is_ever_written_over(run: Run, server: ReplayServer, name: str) -> None:
    server.add(STREAMED).add(WHOLE)
    arguments = ["--output", "caps", "--name", name, "Hi"]
    run("record", *to(server), *arguments)
    done = run("record", *to(server), *arguments)
    assert done == (2, "", "crosswalk record: caps: there is a capture think_stream already\n")
    assert run("record", *to(server), "--no-stream", *arguments).status == 0
    assert len(server.requests) == 2
    assert sorted(recorded()) == ["think.response.json", "think_stream.response.sse"]


def test_what_cannot_be_written_is_said(
    run: Run, server: ReplayServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server.add(STREAMED)
    Path("file").write_text("")
    done = run("record", *to(server), "--output", "file", "--name", "n", "Hi")
    assert done == (2, "", "crosswalk record: file: File exists\n")
    (tmp_path / "caps").mkdir()
    (tmp_path / "caps/MANIFEST.jsonl").mkdir()
    done = run("record", *to(server), "--output", "caps", "--name", "n", "Hi")
    assert (done.status, done.out) == (1, "")
    assert "Is a directory" in done.err
    assert rescued(done).read_bytes() == STREAMED.body
    assert [file.name for file in (tmp_path / "caps").iterdir()] == ["MANIFEST.jsonl"]


def rescued(done: Done) -> Path:
    """The file in which an answer is that could not be stored."""
    return Path(done.err.rpartition("what came is kept in ")[2].strip())


def test_a_full_disk_keeps_the_answer_elsewhere_and_the_name_free(
    run: Run, server: ReplayServer, monkeypatch: pytest.MonkeyPatch, kept: Path
) -> None:
    server.add(STREAMED, times=2)
    arguments = ["record", *to(server), "--output", "caps", "--name", "n", "Hi"]
    with monkeypatch.context() as full:
        full.setattr(os, "link", no_space)
        done = run(*arguments)
    assert (done.status, done.out) == (1, "")
    assert "No space left on device" in done.err
    assert list(kept.iterdir()) == [rescued(done)]
    assert rescued(done).read_bytes() == STREAMED.body
    assert list(Path("caps").iterdir()) == []
    assert run(*arguments).status == 0


def test_a_disk_that_is_full_at_the_manifest_leaves_it_as_it_was(
    run: Run, server: ReplayServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.add(STREAMED, times=3)
    assert run("record", *to(server), "--output", "caps", "--name", "a", "Hi").status == 0
    before = {file.name: file.read_bytes() for file in Path("caps").iterdir()}
    real = Path.open

    def half_full(path: Path, mode: str = "r", **more: Any) -> Any:
        opened = real(path, mode, **more)
        return HalfFull(opened) if mode == "a+b" else opened

    with monkeypatch.context() as full:
        full.setattr(Path, "open", half_full)
        done = run("record", *to(server), "--output", "caps", "--name", "b", "Hi")
    assert done.status == 1
    assert {file.name: file.read_bytes() for file in Path("caps").iterdir()} == before


def test_an_answer_that_can_be_kept_nowhere_is_said(
    run: Run, server: ReplayServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", no_space)
    monkeypatch.setattr(record, "NamedTemporaryFile", no_space)
    server.add(STREAMED)
    done = run("record", *to(server), "--output", "caps", "--name", "n", "Hi")
    assert done.status == 2
    assert "the answer is lost: No space left on device" in done.err


class HalfFull:
    """A file on a disk that has room for half a line."""

    def __init__(self, opened: Any) -> None:
        self._opened = opened

    def __enter__(self) -> HalfFull:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._opened, name)

    def write(self, data: bytes) -> int:
        self._opened.write(data[: len(data) // 2])
        return no_space()


def no_space(*_: object, **__: object) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("name", ["", "../x", "a/b", "a.b", "-x", "ü", "x" * 101, "_stream"])
def test_a_name_must_be_one(run: Run, name: str) -> None:
    done = run("record", "--provider", "vllm", "--model", "m", "--output", "c", f"--name={name}", "Hi")
    assert done.status == 2
    assert not Path("c").exists()


def test_a_manifest_that_cannot_be_read_is_said_before_anything_is_asked(
    run: Run, server: ReplayServer
) -> None:
    Path("caps").mkdir()
    Path("caps/MANIFEST.jsonl").write_text("oops\n")
    done = run("record", *to(server), "--output", "caps", "--name", "n", "Hi")
    assert done.status == 2
    assert "MANIFEST.jsonl:1: not a JSON object" in done.err
    assert server.requests == ()


def test_the_manifest_above_is_the_one_that_is_read(run: Run, server: ReplayServer) -> None:
    server.add(STREAMED)
    Path("caps").mkdir()
    Path("caps/MANIFEST.jsonl").write_text('{"file": "old.json"}')  # no end of its line
    done = run("record", *to(server), "--output", "caps/vllm", "--name", "n", "Hi")
    assert done.out == "caps/vllm/n_stream.response.sse\n"
    assert list(recorded()) == ["old.json", "vllm/n_stream.response.sse"]
    assert recorded()["vllm/n_stream.response.sse"]["request"] == "vllm/n_stream.request.json"
    assert load_capture("caps/vllm/n_stream.response.sse").path == "/v1/chat/completions"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--provider", "openai", "--model", "m", "--base-url", "http://x", "--top-k", "3"], "top_k"),
        (["--provider", "nobody", "--model", "m"], "'nobody'"),
        (["--model", "m"], "which provider?"),
        (["--provider", "vllm", "--model", "m", "--temperature", "-1"], "temperature must be"),
    ],
)
def test_what_cannot_be_sent_is_said(run: Run, argv: list[str], said: str, server: ReplayServer) -> None:
    done = run("record", *argv, "--output", "caps", "--name", "n", "Hi")
    assert done.status == 2
    assert said in done.err


def test_an_option_may_be_left_out_and_that_is_said(run: Run, server: ReplayServer) -> None:
    server.add(stream("Hi"))
    arguments = ["--top-k", "3", "--unsupported", "drop", "--output", "caps", "--name", "n", "Hi"]
    done = run("record", *to(server, "openai"), *arguments)
    assert done.status == 0
    assert done.err.startswith("dropped: top_k")


def test_an_option_in_another_form_is_said(run: Run, server: ReplayServer) -> None:
    server.add(stream("Hi"))
    arguments = ["--reasoning-effort", "max", "--output", "caps", "--name", "n", "Hi"]
    done = run("record", *to(server, "openai", "gpt-5.1"), *arguments)
    assert done.status == 0
    assert done.err.startswith("clamped: reasoning_effort: max became high: gpt-5.1 takes no 'max'")


def test_unknown_words_may_be_kept(run: Run, server: ReplayServer) -> None:
    server.add(stream("Hi", finish_reason="tired"), times=2)
    arguments = ["--output", "caps", "Hi"]
    assert run("record", *to(server), "--name", "a", *arguments).status == 0
    assert run("record", *to(server), "--name", "b", "--unknown", "raise", *arguments).status == 1


# Against real servers.


def test_what_a_real_server_says_is_recorded_and_passes_the_kit(run: Run, real: list[str]) -> None:
    options = ["--temperature", "0", "--max-tokens", "80", "--both", "--output", "caps"]
    for mode in ("think", "json", "empty"):
        done = run("record", *real, *options, "--name", mode, f"Please answer. mode:{mode}.")
        assert done.status == 0, done.err
    done = run("record", *real, *options, "--name", "long", "x " * 5000)
    assert "error, context_overflow" in done.err
    checked = run("check", "--provider", real[1], "--sample", "10", "caps")
    assert checked.status == 0, checked.out
    assert run("normalize", "--provider", real[1], "caps", "--output", "stored").status == 0
    assert run("diff", "--provider", real[1], "caps", "--stored", "stored").status == 0
