"""Unchanged coding agents, in front of servers that know nothing of their API, if they are installed.

``npm install --prefix tests/clients`` brings both, and so does an installation of yours on ``PATH``.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from contrib_serve import ABOUT, config_of, live, streams
from crosswalk.testing import strict_rules
from crosswalk.testing.exchange import ReceivedRequest
from crosswalk.testing.replay import Answer, ReplayServer

INSTALLED = str(Path(__file__).parents[2] / "clients/node_modules/.bin")
PATIENCE = 300
"""Seconds in which an agent should have come to its end, on the slowest machine."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    for number in range(CALLS):
        (folder / f"note{number}.txt").write_text(f"the kelp of day {number} is green\n")
    return folder


@attrs.frozen
class Server:
    """How a server streams reasoning and a call, and where its requests have both again.

    Attributes:
        provider: its provider.
        rules: the provider whose rules it enforces.
        reasoning: the field of a message that has its reasoning; ``None`` for Gemini's parts.
    """

    provider: str
    rules: str
    reasoning: str | None = None

    def calls(self, number: int, name: str, arguments: str) -> Answer:
        """A stream that thinks, then calls the tool *name*: the call *number*."""
        if self.reasoning is None:
            call = {"name": name, "args": json.loads(arguments)}
            parts = [
                {"text": thought(number), "thought": True},
                {"functionCall": call, "thoughtSignature": signature(number)},
            ]
            return gemini_streams(f"r{number}", *parts)
        call = {
            "index": 0,
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": name, "arguments": ""},
        }
        deltas: list[dict[str, Any]] = [
            {"role": "assistant", self.reasoning: thought(number)},
            {"tool_calls": [call]},
            *({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in arguments),
        ]
        choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
        choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls"})
        about = {
            **ABOUT,
            "id": f"chat-{number}",
            "object": "chat.completion.chunk",
        }  # Claude Code joins answers of one id
        return Answer.of_events([{**about, "choices": [one]} for one in choices])

    def says(self, *pieces: str) -> Answer:
        """A stream of text."""
        if self.reasoning is not None:
            return streams(*pieces)
        return gemini_streams("last", *({"text": one} for one in pieces))

    def results(self, request: ReceivedRequest) -> list[str]:
        """The results of the tools, as sent to the server."""
        if self.reasoning is not None:
            return [str(one["content"]) for one in request.json()["messages"] if one["role"] == "tool"]
        parts = [part for content in request.json()["contents"] for part in content["parts"]]
        return [str(part["functionResponse"]["response"]) for part in parts if "functionResponse" in part]

    def thoughts(self, request: ReceivedRequest) -> list[str]:
        """The reasoning of the earlier answers, as sent to the server. For Gemini, the signatures of its calls."""
        if self.reasoning is not None:
            return [one[self.reasoning] for one in request.json()["messages"] if "tool_calls" in one]
        parts = [part for content in request.json()["contents"] for part in content["parts"]]
        return [part["thoughtSignature"] for part in parts if "functionCall" in part]


def thought(number: int) -> str:
    return f"I think of {number}."


def signature(number: int) -> str:
    return base64.b64encode(f"signature {number}".encode()).decode()


def gemini_streams(id: str, *parts: dict[str, Any]) -> Answer:
    candidates: list[dict[str, Any]] = [
        {"content": {"role": "model", "parts": [part]}, "index": 0} for part in parts
    ]
    candidates[-1]["finishReason"] = "STOP"
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 4, "totalTokenCount": 13}
    about = {"usageMetadata": usage, "modelVersion": "gemini-3-pro", "responseId": id}
    return Answer.of_events([{"candidates": [one], **about} for one in candidates], done=False)


SERVERS = [
    Server("deepseek", "deepseek", "reasoning_content"),
    Server("gemini", "gemini"),
    Server("vllm", "openai", "reasoning"),
]
CALLS = 10


def run(agent: str, arguments: Sequence[str], folder: Path, **environment: str) -> str:
    """The output of *agent*. The test is skipped if it is not installed."""
    command = shutil.which(agent) or shutil.which(agent, path=INSTALLED)
    if command is None:
        pytest.skip(f"npm install --prefix tests/clients, which brings {agent}")
    done = subprocess.run(
        [command, *arguments],
        cwd=folder,
        env={**os.environ, "HOME": str(folder.parent), **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(params=SERVERS, ids=lambda server: server.provider)
def server(request: pytest.FixtureRequest) -> Server:
    found: Server = request.param
    return found


def hold(
    server: Server,
    tool: str,
    arguments: Callable[[int], str],
    talk: Callable[[str], str],
    wanted: Callable[[int], str],
) -> None:
    """A conversation of ten calls of *tool*, which its server refuses nowhere, and that brings each *wanted* thought back."""

    def is_at(number: int) -> Callable[[ReceivedRequest], bool]:
        return lambda request: f'"{tool}"'.encode() in request.body and len(server.results(request)) == number

    with ReplayServer(rules=strict_rules(server.rules)) as upstream:
        for number in range(CALLS):
            upstream.add(server.calls(number, tool, arguments(number)), when=is_at(number), times=None)
        upstream.add(server.says("It ", "is ", "green."), when=is_at(CALLS), times=None)
        upstream.add(server.says("A title"), times=None)
        model = (
            f"{{provider: {server.provider}, model: gemini-3-pro, base_url: '{upstream.url}', api_key: k}}"
        )
        with live(config_of(upstream, "on_unsupported: drop", f"tiny: {model}")) as gateway:
            assert "It is green." in talk(gateway.url)
    assert [request.case for request in upstream.refusals] == []
    last = next(request for request in reversed(upstream.requests) if is_at(CALLS)(request))
    assert all(f"the kelp of day {n} is green" in result for n, result in enumerate(server.results(last)))
    assert server.thoughts(last) == [wanted(number) for number in range(CALLS)]


def codex(project: Path, *settings: str) -> Callable[[str], str]:
    """Codex with *settings* of its provider."""

    def talk(url: str) -> str:
        home = project.parent / "codex"
        home.mkdir()
        provider = ['name = "Crosswalk"', f'base_url = "{url}/v1"', 'wire_api = "responses"', *settings]
        lines = ['model = "tiny"', 'model_provider = "crosswalk"', "[model_providers.crosswalk]", *provider]
        (home / "config.toml").write_text("\n".join(lines))
        asked = ["exec", "--skip-git-repo-check", "What colour is the kelp?"]
        return run("codex", asked, project, CODEX_HOME=str(home))

    return talk


def reads_note(number: int) -> str:
    return f'{{"cmd":"cat note{number}.txt"}}'


def test_codex_holds_a_conversation_of_ten_calls(server: Server, project: Path) -> None:
    hold(server, "exec_command", reads_note, codex(project), thought if server.reasoning else signature)


def test_codex_holds_a_conversation_over_a_websocket(project: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="uvicorn.error")
    hold(SERVERS[0], "exec_command", reads_note, codex(project, "supports_websockets = true"), thought)
    assert '"WebSocket /v1/responses" [accepted]' in caplog.text


def test_claude_code_holds_a_conversation_of_ten_calls(server: Server, project: Path) -> None:
    def talk(url: str) -> str:
        return run(
            "claude",
            ["-p", "What colour is the kelp?", "--model", "tiny"],
            project,
            ANTHROPIC_BASE_URL=url,
            ANTHROPIC_API_KEY="none",
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        )

    def wanted(number: int) -> str:
        """Claude Code brings no redacted thinking back, in which the signatures are: Gemini gets its placeholder."""
        return thought(number) if server.reasoning else signature(number)

    hold(server, "Read", lambda number: f'{{"file_path":"{project / f"note{number}.txt"}"}}', talk, wanted)
