from __future__ import annotations

import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import orjson
import pytest

from crosswalk import (
    ChatMessage,
    ChatResponse,
    Cost,
    FinishReason,
    ProviderAttempt,
    ResponseDelta,
    ResponseMetadata,
    Segment,
    SegmentType,
    UsageInfo,
    from_json,
)
from crosswalk.cli import ask
from crosswalk.cli.ask import Screen, panel_lines
from crosswalk.testing import load_capture
from crosswalk.testing.exchange import Cut, Garbage, Reset, Stall
from crosswalk.testing.replay import Answer, ReplayServer

from .conftest import ROOT, Done, Terminal, body, stream, to, unmeasured

Run = Callable[..., Done]
THINKING = load_capture(ROOT / "tests/captures/vllm/reasoning_chat_think_stream.response.sse")
NATIVE = load_capture(ROOT / "tests/captures/ollama/go_chat_stop_stream.response.ndjson")


# What is asked.


def test_the_answer_is_data_and_what_it_took_is_not(run: Run, server: ReplayServer) -> None:
    server.add(stream("Recursion", " is ", "recursion."))
    done = run("ask", *to(server), "Explain recursion")
    assert done.status == 0
    assert done.out == "Recursion is recursion.\n"
    tokens, times, who, finish = done.err.splitlines()
    assert tokens == "Tokens: 3 prompt, 3 completion (6 total)"
    assert [cell.partition(": ")[0] for cell in times.split("  |  ")] == ["Speed", "Latency", "TTFT"]
    assert who == "Model: m  |  Provider: vllm"
    assert finish == "Finish: stop"
    assert server.requests[0].json()["messages"] == [{"role": "user", "content": "Explain recursion"}]


def test_every_option_reaches_the_server(run: Run, server: ReplayServer) -> None:
    server.add(stream("Hi"))
    options = ["--system", "Be brief.", "--max-tokens", "9", "--temperature", "0.5", "--top-p", "0.9"]
    options += ["--seed", "7", "--stop", "A", "--stop", "B", "--reasoning-effort", "low", "--top-k", "3"]
    assert run("ask", *to(server), *options, "Hi?").status == 0
    asked = server.requests[0].json()
    assert asked["messages"][0] == {"role": "system", "content": "Be brief."}
    said = {
        name: asked[name] for name in ("model", "temperature", "top_p", "top_k", "seed", "stop", "stream")
    }
    assert said == {
        "model": "m",
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 3,
        "seed": 7,
        "stop": ["A", "B"],
        "stream": True,
    }


@pytest.mark.parametrize("said", [["-"], []], ids=["-", "nothing"])
def test_the_prompt_may_come_from_standard_input(
    run: Run, server: ReplayServer, stdin: Callable[[bytes], None], said: list[str]
) -> None:
    server.add(stream("Hi"))
    stdin("\ufeffWhy?\nReally.\n".encode())
    assert run("ask", *to(server), *said).status == 0
    assert server.requests[0].json()["messages"][0]["content"] == "Why?\nReally."


def test_somebody_at_a_terminal_is_told_what_is_waited_for(
    run: Run, server: ReplayServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyboard = Terminal()
    keyboard.buffer.write(b"Why?\n")
    keyboard.seek(0)
    monkeypatch.setattr(sys, "stdin", keyboard)
    server.add(stream("Hi"))
    done = run("ask", *to(server))
    assert done.err.splitlines()[0] == "reading the prompt from the terminal; end it with Ctrl-D"
    assert done.out == "Hi\n"


def test_a_whole_answer_is_shown_alike(run: Run, server: ReplayServer) -> None:
    server.add(body({"content": "Hello.\n"}))
    done = run("ask", *to(server), "--no-stream", "Hi")
    assert (done.status, done.out) == (0, "Hello.\n")
    assert "Finish: stop" in done.err
    assert "TTFT" not in done.err
    assert "stream" not in server.requests[0].json()


def test_json_is_the_canonical_response_and_nothing_else(run: Run, server: ReplayServer) -> None:
    server.add(stream("a\x1bb"))
    done = run("ask", *to(server), "--json", "Hi")
    assert (done.status, done.err) == (0, "")
    response = from_json(done.out, ChatResponse)
    assert response.text == "a\x1bb"
    assert response.attempts[0].outcome == "success"


def test_without_the_panel_there_is_the_answer_alone(run: Run, server: ReplayServer) -> None:
    server.add(stream("Hi"))
    assert run("ask", *to(server), "--no-panel", "Hi") == (0, "Hi\n", "")


def test_without_a_model_the_servers_models_are_listed(run: Run, server: ReplayServer) -> None:
    server.add(Answer.of_json({"data": [{"id": "big"}, {"id": "small"}]}), path="/v1/models", times=None)
    done = run("ask", "--provider", "vllm", "--base-url", server.url, "Hi")
    assert done.status == 2
    assert "which model? pass --model; the server has: big, small" in done.err
    done = run("ask", "--base-url", server.url, "Hi")
    assert done.status == 2
    assert "has several models; name one: big, small" in done.err


def test_a_provider_before_the_prompt_is_that_of_the_option(run: Run, server: ReplayServer) -> None:
    server.add(Answer.text("Hi"), times=None)
    address = ("--base-url", server.url, "--no-panel")
    assert run("ask", "vllm:m", "Hello", *address).out == "Hi\n"
    assert run("ask", "vllm", "-m", "n", *address, "-s", "Be brief.", "Hello").out == "Hi\n"
    assert run("ask", "vllm/org/m", "Hello", *address).out == "Hi\n"
    first, second, third = (request.json() for request in server.requests)
    assert (first["model"], second["model"], third["model"]) == ("m", "n", "org/m")
    assert [message["content"] for message in second["messages"]] == ["Be brief.", "Hello"]


def test_the_models_of_a_server_are_listed(run: Run, server: ReplayServer) -> None:
    server.add(Answer.of_json({"data": [{"id": "big"}, {"id": "sm\x1ball"}]}), path="/v1/models", times=None)
    assert run("models", "vllm", "--base-url", server.url) == (0, "big\nsm\\u001ball\n", "")
    done = run("models")
    assert (done.status, done.out) == (2, "")
    assert "which provider?" in done.err
    done = run("models", "vllm", "--base-url", "http://127.0.0.1:9")
    assert (done.status, done.out) == (1, "")
    assert "crosswalk models: ServerError: cannot connect to 127.0.0.1:9" in done.err


def test_a_model_that_is_not_there_is_answered_with_those_that_are(run: Run, server: ReplayServer) -> None:
    server.add(Answer.of_json({"data": [{"id": "big"}, {"id": "small"}]}), path="/v1/models", times=None)
    missing = {"error": {"message": "The model `huge` does not exist.", "code": "model_not_found"}}
    server.add(Answer.of_json(missing, status=404), times=None)
    done = run("ask", "vllm:huge", "Hi", "--base-url", server.url)
    assert done.status == 1
    assert "crosswalk: the server has: big, small" in done.err


def test_an_address_and_a_text_are_enough(run: Run, server: ReplayServer) -> None:
    listed = {"data": [{"id": "only", "owned_by": "vllm"}]}
    server.add(Answer.of_json(listed), path="/v1/models", times=None).add(Answer.text("Hi"), times=None)
    assert run("ask", "--base-url", server.url, "--no-panel", "Hi") == (0, "Hi\n", "")
    assert run("ask", "--provider", "vllm:m", "--base-url", server.url, "--no-panel", "Hi").out == "Hi\n"
    assert run("ask", server.url, "--no-panel", "Hi") == (0, "Hi\n", "")
    assert [request.json()["model"] for request in server.requests if request.body] == ["only", "m", "only"]


def test_a_key_that_is_missing_is_named_as_a_shell_gives_it(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    done = run("models", "openai")
    assert (done.status, done.out) == (2, "")
    assert "openai: no API key; set CROSSWALK_OPENAI_API_KEY or OPENAI_API_KEY" in done.err


def test_the_settings_name_provider_and_time_limit(
    run: Run, server: ReplayServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".agent").mkdir()
    settings = tmp_path / ".agent/config.yml"
    settings.write_text("model:\n  default_provider: ollama\n  timeout_seconds: 0.2\n")
    server.add(NATIVE)
    done = run("ask", "--model", "tiny-go", "--base-url", server.url, "Hi")
    assert done.out == "Hello! I am a tiny model made of a table. \n"
    assert "Provider: ollama" in done.err
    server.add(NATIVE, Stall())
    done = run("ask", "--model", "m", "--base-url", server.url, "--attempts", "1", "Hi")
    assert done.status == 1
    assert "ProviderTimeoutError: ollama: timeout: no further byte within 0.2 seconds" in done.err
    settings.write_text("model:\n  timeout_seconds: soon\n")
    done = run("ask", *to(server), "Hi")
    assert done.status == 2
    assert "model.timeout_seconds: expected a number above 0" in done.err


def test_the_key_comes_from_the_environment_and_is_never_shown(
    run: Run, server: ReplayServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CROSSWALK_VLLM_API_KEY", "local-key-1234")
    server.add(Answer.failure(401, message="Incorrect API key provided: local-key-1234"))
    done = run("ask", *to(server), "Hi")
    assert server.requests[0].headers["authorization"] == "Bearer local-key-1234"
    assert done.status == 1
    assert "AuthenticationError: vllm: authentication (HTTP 401)" in done.err
    assert "local-key-1234" not in done.err + done.out


# What cannot be asked.


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (
            ["--model", "m", "Hi"],
            "which provider? pass --provider or --base-url, or set CROSSWALK_DEFAULT_PROVIDER",
        ),
        (
            ["--provider", "vllm", "--base-url", "http://127.0.0.1:9", "Hi"],
            "which model? pass --model; its models cannot be listed (cannot connect",
        ),
        (["--provider", "vllm:m", "--model", "m", "Hi"], "model is given twice"),
        (["--provider", "nobody", "--model", "m", "Hi"], "'nobody'"),
        (["--provider", "vllm", "--model", "m", "  "], "the prompt is empty"),
        (
            ["--provider", "vllm", "--model", "m", "--temperature", "nan", "Hi"],
            "temperature must be a number",
        ),
        (["--provider", "vllm", "--model", "m", "--max-tokens", "x", "Hi"], "invalid int value"),
        (["--provider", "vllm", "--model", "m", "--attempts", "0", "Hi"], "attempts must be a whole number"),
        (["--provider", "vllm", "--model", "m", "--base-url", "ftp://x", "Hi"], "must be like http://"),
        (["--provider", "vllm", "--model", "m", "\udcff"], "the user message is not UTF-8"),
        (
            ["--provider", "vllm", "--model", "m", "--system", "\udcff", "Hi"],
            "the system message is not UTF-8",
        ),
        (["--provider", "openai", "--model", "m", "--base-url", "http://x", "--top-k", "3", "Hi"], "top_k"),
        (["--provider", "vllm", "--model", "m", "--fallback", "nobody:m", "Hi"], "'nobody'"),
        (
            ["--provider", "vllm", "--model", "m", "one", "two"],
            "'one' is no provider; put the prompt in quotes",
        ),
        (
            ["--provider", "vllm", "--model", "m", "one", "two", "three"],
            "one prompt at a time: put it in quotes",
        ),
        (["--provider", "vllm", "ollama:m", "Hi"], "the provider is given twice, in front and"),
        (
            ["--base-url", "http://x", "http://y/v1", "Hi"],
            "the address is given twice, in front and with --base-url",
        ),
        (["google:pro", "Hi"], "'google' is no provider: use gemini"),
        (["X-AI/grok-4", "Hi"], "'X-AI' is no provider: use xai"),
        (["ollama", "llama3.2", "Hi"], "put it in quotes, and write ollama:MODEL for a model"),
        (["ollama:m", "Why", "is", "it"], "put it in quotes, and write ollama:MODEL for a model"),
        (["openai/gpt-4o", "Hi"], "no API key; set CROSSWALK_OPENAI_API_KEY or OPENAI_API_KEY"),
        (["anthropic", "Hi"], "no API key; set CROSSWALK_ANTHROPIC_API_KEY or ANTHROPIC_API_KEY"),
    ],
)
def test_what_cannot_be_sent_is_said_and_nothing_is_sent(
    run: Run, argv: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CROSSWALK_DEFAULT_PROVIDER", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    done = run("ask", *argv)
    assert (done.status, done.out) == (2, "")
    assert said in done.err
    assert "=," not in done.err


def test_a_prompt_that_is_no_text_is_refused(run: Run, stdin: Callable[[bytes], None]) -> None:
    stdin(b"ab\xff")
    done = run("ask", "--provider", "vllm", "--model", "m")
    assert done == (2, "", "crosswalk ask: standard input: not UTF-8 at byte 2\n")


def test_an_option_may_be_left_out_and_that_is_said(run: Run, server: ReplayServer) -> None:
    server.add(stream("Hi"))
    done = run("ask", *to(server, "openai"), "--top-k", "3", "--unsupported", "drop", "Hi")
    assert done.status == 0
    assert "Dropped: top_k" in done.err


def test_an_option_in_another_form_is_said(run: Run, server: ReplayServer) -> None:
    server.add(stream("Hi"))
    done = run("ask", *to(server, "openai", "gpt-5.1"), "--reasoning-effort", "max", "Hi")
    assert done.status == 0
    assert server.requests[0].json()["reasoning_effort"] == "high"
    assert "Clamped: reasoning_effort: max became high: gpt-5.1 takes no 'max'" in done.err


# What would be sent.


def test_a_dry_run_sends_nothing_and_says_what_would_be_changed(run: Run, server: ReplayServer) -> None:
    to_it = to(server, "openai", "gpt-5.1")
    done = run("ask", "--dry-run", *to_it, "--reasoning-effort", "max", "Hi")
    assert done == (
        0,
        f"POST {server.url}/v1/chat/completions\n"
        "provider openai, model gpt-5.1, model class gpt-5.1\n"
        "clamped: reasoning_effort: max became high: gpt-5.1 takes no 'max'\n",
        "",
    )
    assert run("ask", "--dry-run", *to_it, "Hi").out.splitlines()[2:] == ["all that is asked for is sent"]
    assert server.requests == ()


def test_a_dry_run_writes_the_whole_request_as_json(
    run: Run, server: ReplayServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CROSSWALK_OPENAI_API_KEY", "a-key-of-mine")
    to_it = to(server, "openai", "gpt-8")
    done = run("ask", "--dry-run", "--json", *to_it, "--top-k", "4", "--unsupported", "drop", "Hi")
    assert "a-key-of-mine" not in done.out + done.err
    shown = orjson.loads(done.out)
    assert (shown["provider"], shown["model"], shown["method"]) == ("openai", "gpt-8", "POST")
    assert shown["model_class"].endswith(" (assumed)")
    assert shown["url"] == f"{server.url}/v1/chat/completions"
    assert shown["headers"]["Authorization"] == "<secret>"
    assert shown["body"]["stream"] is True
    assert shown["adaptations"] == [
        {
            "field": "top_k",
            "kind": "dropped",
            "asked": 4,
            "sent": None,
            "reason": "Chat Completions has no such option",
            "refuses": True,
        }
    ]
    whole = run("ask", "--dry-run", "--json", "--no-stream", *to_it, "Hi")
    assert "stream" not in orjson.loads(whole.out)["body"]
    assert server.requests == ()


def test_a_dry_run_draws_a_table_on_a_terminal_of_80_columns(
    run: Run, server: ReplayServer, terminal: Callable[[str], Terminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = terminal("stdout")
    to_it = to(server, "anthropic", "claude-opus-7")
    assert run("ask", "--dry-run", *to_it, "--reasoning-effort", "minimal", "Hi").status == 0
    lines = re.sub(r"\x1b\[[\d;]*m", "", shown.text()).splitlines()
    where, who, empty, headings, _, *rows = lines
    assert where == f"POST {server.url}/v1/messages"
    assert who == "provider anthropic, model claude-opus-7, model class claude-opus-5.5 (assumed)"
    assert empty == ""
    assert headings.split() == [
        "field",
        "kind",
        "asked",
        "sent",
        "reason",
    ]
    assert max(map(len, rows)) <= 80
    assert rows[0].split() == ["max_tokens", "defaulted", "128000", "the", "API", "needs", "it"]
    assert rows[1].split()[:4] == ["reasoning_effort", "clamped", "minimal", "low"]


def test_a_dry_run_refuses_what_the_command_would_refuse(run: Run, server: ReplayServer) -> None:
    done = run("ask", "--dry-run", *to(server, "openai"), "--top-k", "4", "Hi")
    assert done == (
        2,
        "",
        "crosswalk ask: openai: it cannot express top_k (Chat Completions has no such option)\n",
    )
    done = run("ask", "--dry-run", "--base-url", server.url, "Hi")
    assert (done.status, done.out) == (2, "")
    assert "name the provider" in done.err
    assert server.requests == ()


# What a terminal shows.


def test_nothing_a_model_writes_commands_a_terminal(
    run: Run, server: ReplayServer, terminal: Callable[[str], Terminal]
) -> None:
    evil = "\x1b[2J\x1b]0;owned\x07\u202eabc\x9b1m\r"
    deltas = [{"reasoning": evil}, {"content": evil}, {"content": "\tok\nend"}]
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": evil}
    events: list[Any] = [{**head, "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    events.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    server.add(Answer.of_events(events), times=2)
    piped = run("ask", *to(server), "--reasoning", "Hi")
    harmless = r"\u001b[2J\u001b]0;owned\u0007\u202eabc\u009b1m\u000d"
    assert piped.out == f"{harmless}\tok\nend\n"
    assert piped.err.startswith(f"{harmless}\nTokens: not reported\n")
    shown, said = terminal("stdout"), terminal("stderr")
    assert run("ask", *to(server), "Hi").status == 0
    assert shown.text() == f"{harmless}\tok\nend\n"
    for mark in ("\x1b[2J", "\x1b]0", "\x07", "\u202e", "\x9b"):
        assert mark not in said.text()
    assert harmless in said.text()


def test_a_terminal_gets_dimmed_reasoning_and_a_drawn_panel(
    run: Run, server: ReplayServer, terminal: Callable[[str], Terminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    server.add(THINKING)
    shown, said = terminal("stdout"), terminal("stderr")
    assert run("ask", *to(server), "Hi").status == 0
    assert shown.text().strip() == "The answer is forty-two!"
    assert "waiting for the model" in said.text()
    assert "\x1b[2mThe user\x1b[0m" in said.text().replace("\n", "")
    assert "╭─ Response ─" in said.text()
    assert "Tokens: 29 prompt, 11 completion (4 reasoning) (40 total)" in said.text()


def test_reasoning_is_optional(run: Run, server: ReplayServer, terminal: Callable[[str], Terminal]) -> None:
    server.add(THINKING, times=None)
    said = terminal("stderr")
    assert run("ask", *to(server), "--no-reasoning", "Hi").out.strip() == "The answer is forty-two!"
    assert "The user" not in said.text()


def test_an_interleaved_answer_keeps_its_lines_apart_on_a_terminal_alone(
    run: Run, server: ReplayServer, terminal: Callable[[str], Terminal]
) -> None:
    deltas = [{"content": "one"}, {"reasoning": "hm"}, {"content": " two"}]
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    events = [{**head, "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    events[-1]["choices"][0]["finish_reason"] = "stop"  # type: ignore[index]
    server.add(Answer.of_events(events), times=2)
    done = run("ask", *to(server), "--reasoning", "--no-panel", "Hi")
    assert (done.out, done.err) == ("one two\n", "hm\n")
    shown = terminal("stdout")
    run("ask", *to(server), "--reasoning", "Hi")
    assert shown.text() == "one\n two\n"


def test_a_refusal_is_the_answer_and_a_call_is_named(run: Run, server: ReplayServer) -> None:
    server.add(body({"refusal": "I can't."}))
    assert run("ask", *to(server, "openai"), "--no-stream", "Hi").out == "I can't.\n"
    call = {"id": "1", "type": "function", "function": {"name": "look\x1b", "arguments": '{"a":1}'}}
    server.add(body({"tool_calls": [call]}, "tool_calls"))
    done = run("ask", *to(server, "openai"), "--no-stream", "Hi")
    assert done.out == ""
    assert done.err.startswith('-> look\\u001b({"a":1})\n')


def test_of_several_choices_the_first_is_shown(run: Run, server: ReplayServer) -> None:
    server.add(load_capture(ROOT / "tests/captures/vllm/forced_n2_stream.response.sse"))
    done = run("ask", *to(server), "Hi")
    assert done.status == 0


def test_segments_that_come_whole_are_shown_in_their_place(capsys: Any) -> None:
    screen = Screen(reasoning=True)
    for number, segment in enumerate(
        [
            Segment(SegmentType.REASONING, "hm"),
            Segment(SegmentType.TEXT, "first "),
            Segment(SegmentType.CITATION, "not shown"),
        ]
    ):
        screen.show(ResponseDelta(number, segment=segment))
    screen.show(ResponseDelta(3, content_delta="then"))
    screen.show(ResponseDelta(4, segment=Segment(SegmentType.REFUSAL, " no")))
    assert capsys.readouterr() == ("first then no", "hm\n")


def test_what_does_not_follow_from_the_deltas_is_not_shown_twice(capsys: Any) -> None:
    screen = Screen()
    screen.show(ResponseDelta(0, content_delta="other"))
    screen.finish(ChatResponse.success(ChatMessage.assistant("said"), UsageInfo.EMPTY, "m", SEED))
    assert capsys.readouterr().out == "other\n"


# What fails.


def test_a_busy_server_is_asked_again_and_that_is_told(run: Run, server: ReplayServer, at_once: None) -> None:
    server.add(Answer.failure(429, retry_after=0, message="slow down")).add(stream("Hi"))
    done = run("ask", *to(server), "Hi")
    assert (done.status, done.out) == (0, "Hi\n")
    first, second = done.err.splitlines()[-2:]
    assert "Attempts: 2" in done.err
    assert first.startswith("  1. vllm, m: error after ")
    assert first.endswith(": slow down")
    assert second.startswith("  2. vllm, m: success after ")


def test_another_provider_is_asked_where_one_fails(
    run: Run, server: ReplayServer, at_once: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ReplayServer([NATIVE]) as other:
        monkeypatch.setenv("CROSSWALK_OLLAMA_BASE_URL", other.url)
        server.add(Answer.failure(503), times=2)
        argv = [*to(server), "--attempts", "2", "--fallback", "ollama:llama3.2:8b", "Hi"]
        done = run("ask", *argv)
        assert done.status == 0
        assert other.requests[0].json()["model"] == "llama3.2:8b"
        assert "Provider: ollama" in done.err
        assert "Attempts: 3" in done.err
        server.add(Answer.failure(401))
        assert run("ask", *to(server), "--fallback", "ollama", "Hi").status == 0
        assert other.requests[1].json()["model"] == "m"


@pytest.mark.parametrize("streams", [True, False])
def test_an_error_is_told_by_its_kind(run: Run, server: ReplayServer, streams: bool) -> None:
    server.add(Answer.failure(404, message="no such model"))
    done = run("ask", *to(server), "--stream" if streams else "--no-stream", "Hi")
    assert (done.status, done.out) == (1, "")
    assert "Finish: error" in done.err
    assert "crosswalk: ModelUnavailableError: vllm: model_unavailable (HTTP 404): no such model" in done.err


def test_nobody_there(run: Run, server: ReplayServer, at_once: None) -> None:
    arguments = to(server)
    server.close()
    done = run("ask", *arguments, "Hi")
    assert done.status == 1
    assert "crosswalk: ServerError: vllm: server: cannot connect to 127.0.0.1" in done.err
    assert "pass --base-url, or set CROSSWALK_VLLM_BASE_URL" in done.err
    assert "Tokens" not in done.err


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Cut(after_events=2), "ServerError: vllm: server: the connection to 127.0.0.1"),
        (Cut(after_events=2, clean=True), "ServerError: vllm: server: the input ended without"),
        (Reset(after_events=2), "ServerError: vllm: server: the connection to 127.0.0.1"),
        (Garbage(after_events=2), "InvalidJSONError: vllm, event 3: not JSON at byte 5"),
    ],
    ids=["cut", "ended early", "reset", "garbage"],
)
def test_what_came_before_a_failure_is_kept(run: Run, server: ReplayServer, fault: Any, kind: str) -> None:
    server.add(stream("one ", "two ", "three"), fault, times=2)
    done = run("ask", *to(server), "Hi")
    assert (done.status, done.out) == (1, "one two \n")
    assert f"crosswalk: {kind}" in done.err
    done = run("ask", *to(server), "--json", "Hi")
    response = from_json(done.out, ChatResponse)
    assert (response.text, response.finish_reason) == ("one two ", FinishReason.ERROR)
    assert len(response.attempts) == 1


@pytest.mark.usefixtures("at_once")
def test_a_whole_answer_that_is_none_is_told(run: Run, server: ReplayServer) -> None:
    server.add(Answer((b"{]",)), times=None)
    done = run("ask", *to(server), "--no-stream", "Hi")
    assert done.status == 1
    assert "no answer that can be read" in done.err


# Ctrl-C.


def test_ctrl_c_leaves_what_came_marked_cancelled(
    run: Run, server: ReplayServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.add(stream("one ", "two ", "three"), Stall(after_events=2), times=2)
    write, pressed = ask._Channel.write, []

    def press(channel: Any, text: str) -> None:
        write(channel, text)
        if "two" in text and not pressed:
            pressed.append(text)
            raise KeyboardInterrupt

    monkeypatch.setattr(ask._Channel, "write", press)
    done = run("ask", *to(server), "Hi")
    assert (done.status, done.out) == (130, "one two \n")
    assert "Finish: cancelled" in done.err
    assert done.err.endswith("interrupted: the answer is not complete\n")
    server.wait_for(lambda server: server.disconnects)


def pressing_ctrl_c(*arguments: str) -> subprocess.Popen[str]:
    """The command in a separate process, which a signal is sent to."""
    # A test run in the background may have told its children to ignore Ctrl-C.
    code = """import signal, sys
from crosswalk.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(main(sys.argv[1:]))"""
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=unmeasured()
    )


def test_ctrl_c_while_nothing_comes(server: ReplayServer) -> None:
    server.add(stream("one ", "two ", "three"), Stall(after_events=2))
    with pressing_ctrl_c("ask", *to(server), "--json", "Hi") as process:
        server.wait_for(lambda server: server.requests, timeout=60)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    response = orjson.loads(out)
    assert response["finish_reason"] == "cancelled"
    assert [attempt["outcome"] for attempt in response["attempts"]] == ["cancelled"]
    assert err == "interrupted: the answer is not complete\n"
    server.wait_for(lambda server: server.disconnects)


# The panel.


SEED = ResponseMetadata("ollama", "llama3.2:8b", timedelta(seconds=3.02), timedelta(milliseconds=89))
ABSENT = {"usage.prompt_tokens": "absent"}


def panel(usage: UsageInfo, metadata: ResponseMetadata = SEED, **more: Any) -> list[list[str]]:
    response = ChatResponse.success(ChatMessage.assistant("Hi"), usage, metadata.model_id, metadata)
    return panel_lines(attrs.evolve(response, **more))


def test_the_panel_of_seed_000() -> None:
    assert panel(UsageInfo(45, 128)) == [
        ["Tokens: 45 prompt, 128 completion (173 total)"],
        ["Speed: 42.4 tok/s", "Latency: 3.02s", "TTFT: 89ms"],
        ["Model: llama3.2:8b", "Provider: ollama"],
        ["Finish: stop"],
    ]


@pytest.mark.parametrize(
    ("usage", "metadata", "more", "line"),
    [
        (UsageInfo(45, 128, cached_tokens=5, reasoning_tokens=7), SEED, {}, "Tokens: 45 prompt (5 cached), 128 completion (7 reasoning) (173 total)"),
        (UsageInfo(0, 2), attrs.evolve(SEED, provenance=ABSENT), {}, "Tokens: unknown prompt, 2 completion"),
        (UsageInfo.EMPTY, attrs.evolve(SEED, provenance={"usage": "absent"}), {}, "Tokens: not reported"),
        (UsageInfo(1, 2), SEED, {"raw_finish_reason": "e" * 101}, f"Finish: stop (the provider's word: {'e' * 99}…)"),
        (UsageInfo(1, 2, cost=Cost(Decimal("0.0003"))), SEED, {}, "Cost: 0.0003 USD"),
        (UsageInfo(1000, 100), attrs.evolve(SEED, provider_id="openai", model_id="gpt-4o"), {}, "Cost: about 0.0035 USD"),
        (UsageInfo(1, 2), SEED, {"raw_finish_reason": "eos"}, "Finish: stop (the provider's word: eos)"),
        (UsageInfo(1, 2), SEED, {"attempts": [ProviderAttempt("a", "m"), ProviderAttempt("b", "m", 0.2)]}, "  1. a, m: success"),
    ],
)  # fmt: skip
def test_the_panel_says_what_is_known(
    usage: UsageInfo, metadata: ResponseMetadata, more: dict[str, Any], line: str
) -> None:
    assert [line] in panel(usage, metadata, **more)


def test_the_panel_needs_no_price_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    lines = panel(UsageInfo(1, 2), attrs.evolve(SEED, provider_id="openai", model_id="gpt-4o"))
    assert not any("Cost" in cell for line in lines for cell in line)


def test_the_panel_leaves_out_what_nobody_measured() -> None:
    lines = panel(UsageInfo(1, 2), ResponseMetadata("p", "m"))
    assert [line[0].partition(":")[0] for line in lines] == ["Tokens", "Model", "Finish"]


# Against real servers.


def test_a_real_server_answers(run: Run, real: list[str]) -> None:
    done = run("ask", *real, "--temperature", "0", "--reasoning", "Please answer. mode:think.")
    assert done.status == 0, done.err
    assert done.out.strip() == "The answer is forty-two!"
    assert "The user wants something!" in done.err
    assert "Tokens: 29 prompt" in done.err


def test_a_real_server_is_left(real: list[str]) -> None:
    with pressing_ctrl_c("ask", *real, "--max-tokens", "1900", "--reasoning", "mode:loop.") as process:
        # Where it stands, among answer or reasoning, is the server's business; some of it has to be there.
        readable, _, _ = select.select([process.stdout, process.stderr], [], [], 60)
        assert readable
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Finish: cancelled" in err
