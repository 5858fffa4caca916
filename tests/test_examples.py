"""The programs in examples/: each is run as its own text says."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

import crosswalk
from crosswalk import ToolCall
from crosswalk.testing.exchange import Stall
from crosswalk.testing.replay import Answer, ReplayServer
from pages import ROOT, environment
from strict_answers import every_api
from wires import chunk

ALONE = {
    "convert_forms.py": ["unfolded: ResponseReasoningItem, ResponseOutputMessage, ResponseFunctionToolCall"],
    "ask_a_server.py": ["  stop, 40 tokens", "RateLimitError after 2 attempts"],
    "agent_with_tools.py": [
        "The answer is forty-two!",
        "[answered] Prompt: 29, Completion: 11, Total: 40",
    ],
    "responses_parsed.py": [
        "request: 369 bytes",
        "Event(name='Fair', day='Friday', guests=('Alice', 'Bob'))",
        "ResponseUsage(input_tokens=30, output_tokens=16, total_tokens=46)",
    ],
    "responses_pipeline.py": [
        "[tool] web_search(highest tide): completed",
        "Fundy, 16.3 m.",
        "[citation] Fundy <https://example.org/fundy>",
        "[end] completed",
        "[words] 3",
        "resp_1: Fundy, 16.3 m.",
    ],
    "responses_tool_citations.py": [
        "referenced: rules.pdf",
        "candidates: How to get there",
        "all: 0 chunks and 178 characters less",
        "deduplicate: 1 chunks and 72 characters less",
        "nonrefed: 1 chunks and 80 characters less",
        "AnnotationFileCitation(file_id='file_rules', filename='rules.pdf', index=17)",
    ],
    "structured_answers.py": ["6 answers, 50% with a value"],
}
"""Programs that need nothing: the last lines that each prints."""


@pytest.mark.sweep
@pytest.mark.parametrize("name", ALONE)
def test_a_program_that_needs_nothing(name: str) -> None:
    done = run_example(name)
    assert done.returncode in (0, 1), done.stderr  # 1: some of what it shows is meant to fail
    assert done.stdout.splitlines()[-len(ALONE[name]) :] == ALONE[name]


def run_example(name: str, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run a program of examples/ as README says. *text* is what its user types."""
    return subprocess.run(
        [sys.executable, f"examples/{name}", *arguments],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        input=text,
        text=True,
        check=False,
    )


class Server(BaseHTTPRequestHandler):
    """A server that answers every question with the bytes of ``answer``, in pieces."""

    answer: ClassVar[bytes]
    status: ClassVar[int] = 200

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(self.status)
        self.end_headers()
        for start in range(0, len(self.answer), 100):
            self.wfile.write(self.answer[start : start + 100])
            self.wfile.flush()

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@contextmanager
def serving(answer: bytes, status: int = 200) -> Iterator[str]:
    """The address of a server that gives *answer*."""
    handler = type("Handler", (Server,), {"answer": answer, "status": status})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def capture(name: str) -> bytes:
    return (ROOT / "tests/captures" / name).read_bytes()


def test_example_stream_to_terminal_shows_an_answer() -> None:
    with serving(capture("vllm/reasoning_tool_auto_think_then_call_stream.response.sse")) as url:
        done = run_example("stream_to_terminal.py", "vllm", url, "tiny", "Weather?")
    assert done.returncode == 0, done.stderr
    assert "The user wants something!" in done.stdout
    assert '-> get_weather({"city": "Paris", "unit": "celsius"})' in done.stdout
    assert "Prompt: 647, Completion: 16, Total: 663 [tool_calls]" in done.stdout
    assert "TTFT: " in done.stdout


def test_example_stream_to_terminal_shows_no_escapes() -> None:
    answer = rb'{"model":"m","message":{"content":"\u001b[2J\u0007gone"},"done":true,"done_reason":"stop"}'
    with serving(answer) as url:
        done = run_example("stream_to_terminal.py", "ollama", url, "m", "Hi")
    assert "gone" in done.stdout
    assert "\x1b" not in done.stdout


def test_example_stream_to_terminal_reports_an_error() -> None:
    with serving(b'{"error": "model \'m\' not found"}', 404) as url:
        done = run_example("stream_to_terminal.py", "ollama", url, "m", "Hi")
    assert done.returncode == 1
    assert "ollama: model_unavailable (HTTP 404): model 'm' not found" in done.stderr


def test_example_stream_to_terminal_says_how_it_is_used() -> None:
    done = run_example("stream_to_terminal.py")
    assert done.returncode == 2
    assert "python examples/stream_to_terminal.py ollama" in done.stderr


def test_example_audit_folder_counts_tokens_and_errors(tmp_path: Path) -> None:
    cases = ("go_chat_stop.response.json", "crash_gen_stream.response.ndjson", "err_path.response.txt")
    for name in cases:
        (tmp_path / name).write_bytes(capture(f"ollama/{name}"))
    (tmp_path / "empty.json").write_bytes(b"")
    (tmp_path / "MANIFEST.jsonl").write_text('{"file": "err_path.response.txt", "status": 404}\n')
    done = run_example("audit_folder.py", str(tmp_path), "ollama")
    assert done.stdout == (
        "3 answers: 2 error, 1 stop\n"
        "Prompt: 26, Completion: 7, Total: 33; 2 answers were not counted by their server\n"
        "  crash_gen_stream.response.ndjson: server: an error was encountered while running the model: "
        "unexpected EOF\n"
        "  empty.json: ollama, at the start: the input is empty\n"
        "  err_path.response.txt: invalid_request: 404 page not found\n"
    )


@pytest.mark.sweep
def test_example_watch_openai_tells_what_its_own_server_says(monkeypatch: pytest.MonkeyPatch) -> None:
    with every_api() as server:
        server.add(Answer.of_events([chunk({"content": "Hi."}), chunk({}, "stop")]))
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        done = run_example("watch_openai.py", "big")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Hi.\nprogram, no parent\nchat big, below parent\n")


def test_example_custom_provider_reads_its_stream() -> None:
    response = crosswalk.from_json(run_example("custom_provider.py").stdout, crosswalk.ChatResponse)
    assert response.text == "Polly wants a cracker."
    assert response.usage == crosswalk.UsageInfo(4, 6)
    assert response.metadata.extensions == {"perch": "left"}


@pytest.mark.sweep
def test_example_chat_session_goes_on(tmp_path: Path) -> None:
    for turns in (3, 5):
        done = run_example("chat_session.py", str(tmp_path / "s.json"), "Hello!")
        assert done.returncode == 0, done.stderr
        assert f"[{turns} turns, " in done.stdout


@pytest.mark.sweep
def test_example_shop_assistant_waits_over_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    look = ToolCall("c1", "price", '{"item": "tea"}')
    buy = ToolCall("c2", "order", '{"item": "tea", "count": 2}')
    file = str(tmp_path / "session.json")
    with ReplayServer() as down, every_api() as up:
        down.add(Answer.failure(503), times=None)
        up.add(Answer.calls(look)).add(Answer.calls(buy)).add(Answer.text("Two teas are on their way."))
        monkeypatch.setenv("CROSSWALK_VLLM_BASE_URL", down.url)
        monkeypatch.setenv("CROSSWALK_LLAMACPP_BASE_URL", up.url)
        servers = ("vllm:m", "llamacpp:m")
        asked = run_example("shop_assistant.py", file, "Order two teas", *servers)
        assert asked.returncode == 0, asked.stderr
        assert "-> price: tea: 3 euros" in asked.stdout
        assert "failed attempts" in asked.stdout
        assert "May I? order(" in asked.stdout
        assert "[waiting]" in asked.stdout
        done = run_example("shop_assistant.py", file, "--approve", *servers)
        again = run_example("shop_assistant.py", file, "--approve", *servers)
    assert "Nothing waits" in again.stderr
    assert done.returncode == 0, done.stderr
    assert "-> order: ordered 2 of tea" in done.stdout
    assert "Two teas are on their way." in done.stdout
    assert "[answered]" in done.stdout


def test_example_chat_app_runs_tools_and_answers(tmp_path: Path) -> None:
    done = run_example("chat_app.py", str(tmp_path / "c.db"), "ann", text="The weather?\nThanks!\n")
    assert done.returncode == 0, done.stderr
    assert "[get_weather: ok]" in done.stdout
    assert done.stdout.count("The answer is forty-two!\n[answered, vllm]") == 2
    assert run_example("chat_app.py").returncode == 2


@pytest.mark.sweep
def test_example_chat_app_goes_on_where_it_was_killed(tmp_path: Path) -> None:
    """At another provider: the first one is gone. Finished work is not repeated."""
    call = {
        "index": 0,
        "id": "1",
        "type": "function",
        "function": {"name": "note", "arguments": '{"text": "tea"}'},
    }
    asked = Answer.of_events([chunk({"tool_calls": [call]}), chunk({}, "tool_calls")])
    told = Answer.of_events([chunk({"content": "Noted."}), chunk({}, "stop")])
    with every_api() as server:
        server.add(asked).add(told, Stall(after_events=0)).add(told)
        command = [sys.executable, "examples/chat_app.py", str(tmp_path / "c.db"), "ann"]
        first = subprocess.Popen(
            [*command, "vllm", server.url, "m"],
            cwd=ROOT,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        with first:
            assert first.stdin is not None
            first.stdin.write(b"Note: tea\ny\n")
            first.stdin.flush()
            server.wait_for(lambda server: len(server.requests) == 2)
            first.kill()
        second = run_example(
            *("chat_app.py", *command[2:], "vllm", "http://127.0.0.1:9", "m", "llamacpp", server.url, "m")
        )
        assert second.returncode == 0, second.stderr
        assert second.stdout.startswith("[going on]\nNoted.\n[answered, llamacpp]")
        said = [message["content"] for message in server.requests[-1].json()["messages"]]
        assert said[-2:] == [None, "written"]
        assert len(server.requests) == 3
    assert (tmp_path / "c.txt").read_text() == "tea\n"


def test_every_example_is_run() -> None:
    run = set(re.findall(r'run_example\("(\w+\.py)"', Path(__file__).read_text())) | set(ALONE)
    assert {file.name for file in (ROOT / "examples").glob("*.py")} == run
