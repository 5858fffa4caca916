"""Two strangers' plugins, built by two backends and installed together: each does what a shipped one does, and harms none."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pyarrow.parquet
import pytest

ROOT = Path(__file__).parents[1]
PROJECTS = {"kelp": ROOT / "examples/outside_plugin", "tern": ROOT / "examples/plain_plugin"}
WHOLE = {"tern": "look.response.json", "kelp": "dive.response.json"}
SHIPPED = sorted(point.name for point in entry_points(group="crosswalk.providers"))
pytestmark = pytest.mark.sweep  # wheels are built

OTHERS = """
import hashlib, json
from datetime import UTC, datetime
from crosswalk import CrosswalkError, normalize, registry
from crosswalk.codec import to_json
from crosswalk.testing import Corpus

NOW = datetime(2026, 1, 1, tzinfo=UTC)

def read(body, provider):
    try:
        response = normalize(body, provider, id_factory=lambda: "id", clock=lambda: NOW)
    except CrosswalkError as error:
        # If nobody reads it, the error lists all who might.
        return f"{type(error).__name__}: {error}".partition("; name one of:")[0]
    return to_json(response).decode()

corpus, answers = Corpus.installed(), {}
for provider in corpus.providers():
    for capture, _ in corpus.load(provider):
        for given in (provider, None):
            text = read(capture.body, given)
            answers[f"{provider}/{capture.case} by {given}"] = hashlib.sha256(text.encode()).hexdigest()
print(json.dumps([answers, registry.names()]))
"""
USE = """
import asyncio, json, sys
from pathlib import Path
import httpx2
from crosswalk import normalize
from crosswalk.convert import convert
from crosswalk.service import ChatRequest, Endpoint, SyncLLMService, ToolDefinition
from crosswalk.testing import load_captures
from crosswalk.testing.replay import ReplayServer
from crosswalk_observe import Watcher
from crosswalk_serve import create_app
from crosswalk_serve.config import read_config

name, folder, whole, stream, path = sys.argv[1:]
captures = load_captures(Path(folder))
whole, stream = (next(one for one in captures if one.case == case) for case in (whole, stream))
said = {}

response = normalize(whole.body)
said["read"] = [response.metadata.provider_id, response.text, [call.name for call in response.tool_calls]]
said["converted"] = [
    json.loads(convert(response, "openai-chat").value)["choices"][0]["message"]["content"],
    [block["type"] for block in json.loads(convert(response, "anthropic", losses="report").value)["content"]],
]

tool = ToolDefinition("get_time", "The time.", {"type": "object", "properties": {}})
with ReplayServer() as server:
    server.add(whole).add(stream)
    with SyncLLMService(Endpoint(name, base_url=server.url, model="tiny")) as service:
        asked = service.complete(ChatRequest("When?", tools=(tool,), temperature=0.5))
        with service.stream(ChatRequest("When?", tools=(tool,))) as events:
            pieces = [one.delta.content_delta for one in events if one.delta and one.delta.content_delta]
    bodies = [request.json() for request in server.requests]
is_same = (asked.id, asked.segments, asked.usage) == (response.id, response.segments, response.usage)
said["asked"] = [asked.text, is_same, pieces, [one.path for one in server.requests]]
said["sent"] = ["When?" in json.dumps(body) and "get_time" in json.dumps(body) for body in bodies]

async def serve():
    with ReplayServer() as server:
        server.add(whole).add(stream)
        config = read_config(f"models:\\n  tiny: {{provider: {name}, base_url: '{server.url}'}}\\n", environ={})
        app = create_app(config)
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as client:
            question = {"model": "tiny", "max_tokens": 99, "messages": [{"role": "user", "content": "When?"}]}
            chat = await client.post("/v1/chat/completions", json=question)
            streamed = await client.post("/v1/messages", json=question | {"stream": True})
    return [chat.json()["choices"][0]["message"]["content"], "message_stop" in streamed.text, streamed.status_code]

said["served"] = asyncio.run(serve())

seen = []
watcher = Watcher(seen.append, providers={"127.0.0.1": name})
with ReplayServer() as server, httpx2.Client(transport=watcher.transport(httpx2.HTTPTransport())) as client:
    server.add(stream)
    client.post(server.url + path, json=bodies[1])
    watcher.flush()
watcher.close()
said["watched"] = [seen[0].response.metadata.provider_id, seen[0].response.text, seen[0].is_stream]
print(json.dumps(said))
"""


def run(*command: str | Path, path: Path | None = None, folder: Path = ROOT) -> str:
    """The output of *command*, with the packages in *path* installed, too."""
    clean = {
        k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "COV", "CROSSWALK_", "PYTHONPATH"))
    }
    if path is not None:
        clean["PYTHONPATH"] = str(path)
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, cwd=folder, env=clean, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout or done.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which both wheels are installed."""
    folder = tmp_path_factory.mktemp("strangers")
    for name, project in PROJECTS.items():
        shutil.copytree(project, folder / name)  # a backend writes into its project
        # An environment of its own would download the backend anew. Both are installed here.
        run(
            sys.executable,
            "-m",
            "build",
            "--wheel",
            "--no-isolation",
            "--outdir",
            folder / "wheels",
            folder / name,
        )
    wheels = [*(folder / "wheels").glob("*.whl")]
    assert len(wheels) == len(PROJECTS)
    uv = shutil.which("uv")
    pip = (sys.executable, "-m", "pip") if uv is None else (uv, "pip")
    run(*pip, "install", "--quiet", "--no-deps", "--target", folder / "packages", *wheels)
    return folder / "packages"


def test_no_answer_of_another_provider_changes(installed: Path) -> None:
    """All recordings of the corpus are read the same, by their provider and by whoever recognizes them."""
    before, names = json.loads(run(sys.executable, "-c", OTHERS))
    after, more_names = json.loads(run(sys.executable, "-c", OTHERS, path=installed))
    assert names == SHIPPED
    assert more_names == sorted([*SHIPPED, *PROJECTS])
    assert len(before) > 1000
    assert {case for case in before if before[case] != after[case]} == set()


@pytest.mark.parametrize(
    ("name", "whole", "stream", "path", "calls"),
    [
        ("tern", "look", "look_stream", "/v1/tell", ["get_time", "get_wind"]),
        ("kelp", "dive", "dive_stream", "/v2/dive", ["get_time", "get_tide"]),
    ],
)
def test_a_stranger_is_read_asked_served_converted_and_watched(
    installed: Path, name: str, whole: str, stream: str, path: str, calls: list[str]
) -> None:
    captures = PROJECTS[name] / "tests/captures"
    said = json.loads(run(sys.executable, "-c", USE, name, captures, whole, stream, path, path=installed))
    assert said == {
        "read": [name, "Let me look.", calls],
        "converted": ["Let me look.", ["thinking", "text", "tool_use", "tool_use"]],
        "asked": ["Let me look.", True, ["Let me", " look."], [path, path]],
        "sent": [True, True],
        "served": ["Let me look.", True, 200],
        "watched": [name, "Let me look.", True],
    }


def test_strangers_are_batched(installed: Path, tmp_path: Path) -> None:
    """One log with the answers of both and of a shipped provider, with their names and without, as columns."""
    answers = [(PROJECTS[name] / "tests/captures" / file).read_text() for name, file in WHOLE.items()]
    answers.append('{"model":"m","message":{"content":"Hi"},"done":true,"done_reason":"stop"}')
    records = [
        {"id": f"{number}{given}", "body": json.loads(answer)} | ({"provider": name} if given else {})
        for number, (name, answer) in enumerate(zip([*WHOLE, "ollama"], answers, strict=True))
        for given in (True, False)
    ]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    batch = ("-m", "crosswalk", "batch", "log.jsonl", "--output", "columns", "--jobs", "1")
    assert "6 records: 6 mapped" in run(sys.executable, *batch, path=installed, folder=tmp_path)
    table = pyarrow.parquet.read_table(tmp_path / "columns/responses")
    found = [(row["metadata"]["provider_id"], row["message"]["content"]) for row in table.to_pylist()]
    look = "Let me look."
    assert found == [*[("tern", look)] * 2, *[("kelp", look)] * 2, *[("ollama", "Hi")] * 2]
