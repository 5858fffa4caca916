"""Clients of Python and JavaScript at a gateway: whole, streamed, with tools over three turns, and so on.

``npm install --prefix tests/clients`` brings those of JavaScript, ``pip install langchain-openai langchain-anthropic
langchain-ollama llm llm-ollama 'pydantic-ai-slim[anthropic,google,openai]'`` brings the ones of Python that the development environment does not have.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from clients.run import CLIENTS, PNG
from contrib_serve import ABOUT, USAGE, config_of, live, says
from crosswalk.service import ToolDefinition, client_tool
from crosswalk.testing.exchange import ReceivedRequest, Stall
from crosswalk.testing.replay import Answer, ReplayServer
from pages import environment

FOLDER = Path(__file__).parents[2] / "clients"
VECTORS = {
    "object": "list",
    "model": "m",
    "data": [{"object": "embedding", "index": 0, "embedding": [0.5, 1.0]}],
}
SECONDS = 1200
RUN_BY_CLIENTS: dict[str, dict[str, Any]] = {
    "shell": {"commands": ["cat kelp"]},
    "local_shell": {"type": "exec", "command": ["cat", "kelp"], "env": {}},
    "apply_patch": {"type": "create_file", "path": "kelp", "diff": "+green"},
    "bash": {"command": "cat kelp"},
    "text_editor": {"command": "view", "path": "kelp"},
    "memory": {"command": "view", "path": "/memories"},
}
"""The arguments of each tool that a vendor defines and a client runs, by its type."""
MORE = {"google-genai": 1, "pydantic-ai anthropic": 1}
"""How many cases more than others a client has."""


def streamed(*deltas: dict[str, Any], finish: str = "stop") -> Answer:
    """A stream of *deltas*, of which the first names its provider, as those of real servers do."""
    about = {**ABOUT, "object": "chat.completion.chunk"}
    first, *others = deltas
    choices: list[dict[str, Any]] = [{"delta": {"role": "assistant", **first}}]
    choices += [*({"delta": delta} for delta in others), {"delta": {}, "finish_reason": finish}]
    chunks = [{**about, "choices": [{"index": 0, **choice}]} for choice in choices]
    return Answer.of_events([*chunks, {**about, "choices": [], "usage": USAGE}])


def text(*pieces: str, stream: bool) -> Answer:
    """An answer with a text."""
    return streamed(*({"content": piece} for piece in pieces)) if stream else says("".join(pieces))


def calls(name: str, id: str, *, stream: bool, thought: str | None = None, **arguments: Any) -> Answer:
    """A call of the tool *name*, after a *thought*."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"index": 0, "id": id, "type": "function", "function": function}
    if not stream:
        return says("", tool_calls=[call], **({} if thought is None else {"reasoning": thought}))
    thoughts = [{"reasoning": piece} for piece in re.findall(r"\S+\s*", thought or "")]
    return streamed(*thoughts, {"tool_calls": [call]}, finish="tool_calls")


def answer_all(upstream: ReplayServer) -> None:
    """Answer in the ways that both scripts describe, for any number of clients."""

    def answers(answer: Answer, when: Callable[[ReceivedRequest], Any], *, stream: bool) -> None:
        upstream.add(
            answer, when=lambda one: bool(when(one)) and bool(one.wants_stream) is stream, times=None
        )

    def last(request: ReceivedRequest) -> str:
        return json.dumps(request.json()["messages"][-1])

    def has_schema_tool(request: ReceivedRequest) -> bool:
        return any(tool["function"]["name"] == "json" for tool in request.json().get("tools", ()))

    def has_run(tool: ToolDefinition, count: int) -> Callable[[ReceivedRequest], bool]:
        """Whether a request declares *tool* alone, in our words, and has the results of so many calls of it."""

        def has(request: ReceivedRequest) -> bool:
            body = request.json()
            tools = [
                (one["function"]["name"], one["function"]["description"]) for one in body.get("tools", ())
            ]
            results = [str(one["content"]) for one in body["messages"] if one["role"] == "tool"]
            return (
                tools == [(tool.name, tool.description)]
                and [f"kelp {number + 1}" in one for number, one in enumerate(results)] == [True] * count
            )

        return has

    def results(count: int) -> Any:
        return lambda request: (
            request.json().get("tools")
            and sum(message["role"] == "tool" for message in request.json()["messages"]) == count
        )

    upstream.add(Answer.of_json(VECTORS), path="/v1/embeddings", times=None)
    upstream.add(Answer.failure(404), path="/v1/messages/count_tokens", times=None)
    refused = Answer.failure(400, message="no")
    upstream.add(refused, when=lambda request: '"error"' in last(request), times=None)
    upstream.add(Answer.failure(500), when=lambda request: '"broken"' in last(request), times=None)
    stalled = text("Hel", "lo", stream=True)
    upstream.add(stalled, Stall(after_events=1), when=lambda one: "stall" in last(one), times=None)
    for stream in (False, True):
        # Vercel's SDK asks for structured output of Messages with a tool.
        answers(calls("json", "call_0", stream=stream, answer=42), has_schema_tool, stream=stream)
        for kind, given in RUN_BY_CLIENTS.items():
            tool = client_tool(kind)
            for count in range(2):
                call = calls(tool.name, f"call_{count}", stream=stream, **given)
                answers(call, has_run(tool, count), stream=stream)
            answers(text("Do", "ne", stream=stream), has_run(tool, 2), stream=stream)
        for count, city in enumerate(("Paris", "Rome")):
            thought = f"I think of {city}."
            call = calls("weather", f"call_{count}", stream=stream, thought=thought, city=city)
            answers(call, results(count), stream=stream)
        answers(text("Do", "ne", stream=stream), results(2), stream=stream)
        schema = text('{"answer"', ": 42}", stream=stream)
        answers(schema, lambda one: "answer" in json.dumps(one.json().get("response_format")), stream=stream)
        answers(text("I ", "see", stream=stream), lambda one: PNG in last(one), stream=stream)
        answers(text("Hel", "lo", stream=stream), lambda _: True, stream=stream)


def check(upstream: ReplayServer, script: list[str | Path], *clients: str, count: int) -> None:
    """Run *script* against a gateway: all *count* cases pass, and the server sees that clients have left."""
    answer_all(upstream)
    with live(config_of(upstream, "on_unsupported: drop")) as here:
        command = [*script, here.url, *clients]
        done = subprocess.run(
            command, env=environment(), capture_output=True, text=True, timeout=SECONDS, check=False
        )
        results = {one["case"]: one["error"] for one in map(json.loads, done.stdout.splitlines())}
        failed = {name: error for name, error in results.items() if error is not None}
        assert not failed, (failed, done.stderr)
        assert (len(results), done.returncode) == (count, 0), done.stderr
        aborted = [name for name in results if name.endswith(": abort")]
        upstream.wait_for(
            lambda server: sum(b"stall" in one.body for one in server.disconnects) == len(aborted)
        )


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_of_python_passes_every_case(upstream: ReplayServer, client: str) -> None:
    package, _ = CLIENTS[client]
    if find_spec(package.partition(".")[0]) is None or find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    check(upstream, [sys.executable, FOLDER / "run.py"], client, count=7 + MORE.get(client, 0))


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
@pytest.mark.skipif(not (FOLDER / "node_modules").is_dir(), reason="npm install --prefix tests/clients")
def test_every_client_of_javascript_passes_every_case(upstream: ReplayServer) -> None:
    check(upstream, ["node", FOLDER / "run.mjs"], count=95)
