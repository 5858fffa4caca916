"""Coding agents as they are installed, in front of a server that knows nothing of their API; where they are installed.

``npm install --global @openai/codex @anthropic-ai/claude-code`` brings both.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from contrib_serve import ABOUT, Live, streams
from crosswalk.testing.exchange import ReceivedRequest
from crosswalk.testing.replay import Answer, ReplayServer

PATIENCE = 300
"""Seconds in which an agent should have come to its end, on the slowest machine."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "note.txt").write_text("the kelp is green\n")
    return folder


def calls(name: str, arguments: str) -> Answer:
    """A stream that calls the tool *name*."""
    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": name, "arguments": ""}}
    deltas: list[dict[str, Any]] = [
        {"role": "assistant", "tool_calls": [call]},
        *({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in arguments),
    ]
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls"})
    return Answer.of_events(
        [{**ABOUT, "object": "chat.completion.chunk", "choices": [choice]} for choice in choices]
    )


def results(request: ReceivedRequest) -> list[str]:
    """What the tools gave, as the server is told."""
    return [str(message["content"]) for message in request.json()["messages"] if message["role"] == "tool"]


def run(agent: str, arguments: Sequence[str], folder: Path, **environment: str) -> str:
    """What *agent* prints; the test is skipped where it is not installed."""
    command = shutil.which(agent)
    if command is None:
        pytest.skip(f"{agent} is not installed")
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


def answers(upstream: ReplayServer, tool: str, arguments: str) -> None:
    """Call *tool* where it is offered and has not been called, else say what colour it is."""
    upstream.add(streams("It ", "is ", "green."), when=lambda request: bool(results(request)), times=None)
    upstream.add(
        calls(tool, arguments), when=lambda request: f'"{tool}"'.encode() in request.body, times=None
    )
    upstream.add(streams("A title"), times=None)


def test_codex_reads_a_file_and_answers(gateway: Live, upstream: ReplayServer, project: Path) -> None:
    answers(upstream, "exec_command", '{"cmd":"cat note.txt"}')
    home = project.parent / "codex"
    home.mkdir()
    (home / "config.toml").write_text(
        'model = "tiny"\nmodel_provider = "crosswalk"\n\n[model_providers.crosswalk]\nname = "Crosswalk"\n'
        f'base_url = "{gateway.url}/v1"\nwire_api = "responses"\n'
    )
    asked = ["exec", "--skip-git-repo-check", "What colour is the kelp?"]
    said = run("codex", asked, project, CODEX_HOME=str(home))
    assert "It is green." in said
    (result,) = results(upstream.requests[-1])
    assert "the kelp is green" in result


def test_claude_code_reads_a_file_and_answers(gateway: Live, upstream: ReplayServer, project: Path) -> None:
    answers(upstream, "Read", f'{{"file_path":"{project / "note.txt"}"}}')
    said = run(
        "claude",
        ["-p", "What colour is the kelp?", "--model", "tiny"],
        project,
        ANTHROPIC_BASE_URL=gateway.url,
        ANTHROPIC_API_KEY="none",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
    )
    assert said.strip() == "It is green."
    assert any("the kelp is green" in result for request in upstream.requests for result in results(request))
