from __future__ import annotations

import io
import os
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest

from crosswalk.cli import main
from crosswalk.config import Settings, apply_settings
from crosswalk.plugin.registry import registry
from crosswalk.testing.replay import Answer, ReplayServer
from strict_answers import every_api

ROOT = Path(__file__).parents[3]


def unmeasured() -> dict[str, str]:
    """The environment of a process that a signal is sent to: one that comes inside of coverage's lock would hang it."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COV")}


@pytest.fixture
def locked(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Refuses every way to open a file or look into a folder. Permissions would not stop the superuser."""

    def lock(path: Path) -> None:
        def refusing(way: Callable[..., Any]) -> Callable[..., Any]:
            def refuse(file: Any = ".", *given: Any, **named: Any) -> Any:
                if not isinstance(file, int) and os.path.abspath(file) == str(path):
                    raise PermissionError(13, "Permission denied", str(file))
                return way(file, *given, **named)

            return refuse

        opens = refusing(open)
        monkeypatch.setattr("builtins.open", opens)
        monkeypatch.setattr("io.open", opens)  # pathlib's
        monkeypatch.setattr("os.listdir", refusing(os.listdir))
        monkeypatch.setattr("os.scandir", refusing(os.scandir))

    return lock


class Done(NamedTuple):
    """The result of a command line."""

    status: int
    out: str
    err: str


class Terminal(io.TextIOWrapper):
    """A stream that says that it is a terminal, and keeps what it was given."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)

    def isatty(self) -> bool:
        return True

    def text(self) -> str:
        written: bytes = self.buffer.getvalue()  # type: ignore[attr-defined]
        return written.decode()


def line(content: str = "Hi", **more: Any) -> dict[str, Any]:
    """The last line, or the body, of an answer of Ollama's chat."""
    message = {"role": "assistant", "content": content}
    return {"model": "m", "created_at": "2026-11-20T10:00:00Z", "message": message, "done": True} | {
        "done_reason": "stop",
        **more,
    }


def to(server: ReplayServer, provider: str = "vllm", model: str = "m") -> list[str]:
    """The arguments of a command that asks *server*."""
    return ["--provider", provider, "--model", model, "--base-url", server.url]


def stream(*contents: str, **last: Any) -> Answer:
    """An answer of an OpenAI-like server in as many events, with its usage."""
    usage = {"prompt_tokens": 3, "completion_tokens": len(contents), "total_tokens": 3 + len(contents)}
    deltas = [{"index": 0, "delta": {"content": content}, "finish_reason": None} for content in contents]
    deltas[-1] |= {"finish_reason": "stop", **last}
    head = {"id": "c-1", "object": "chat.completion.chunk", "created": 1795175124, "model": "m"}
    events = [{**head, "choices": [delta]} for delta in deltas]
    return Answer.of_events([*events, {**head, "choices": [], "usage": usage}])


def body(message: dict[str, Any], finish_reason: str = "stop") -> Answer:
    """A whole answer of an OpenAI-like server."""
    message = {"role": "assistant", "content": None, **message}
    return Answer.of_json(
        {
            "id": "c-2",
            "object": "chat.completion",
            "created": 1795175124,
            "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
        }
    )


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ReplayServer]:
    """A server that answers with what a test gives it, directly connected to a command."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for variable in (
        "VLLM_API_KEY",
        "OLLAMA_API_KEY",
        "CROSSWALK_VLLM_API_KEY",
        "CROSSWALK_DEFAULT_PROVIDER",
    ):
        monkeypatch.delenv(variable, raising=False)
    with every_api() as running:
        yield running


@pytest.fixture(params=["vllm", "llamacpp"])
def real(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The arguments of a command that asks a real server, which serves the tiny scripted model."""
    url = os.environ.get(f"CROSSWALK_TEST_{request.param.upper()}_URL")
    if not url:
        pytest.skip(f"no server: CROSSWALK_TEST_{request.param.upper()}_URL is not set")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return ["--provider", request.param, "--model", "tiny", "--base-url", url]


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is waited for before a retry."""
    monkeypatch.setattr(random, "uniform", lambda low, high: low)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    def run(*argv: object) -> Done:
        status = main([str(argument) for argument in argv])
        return Done(status, *capsys.readouterr())

    return run


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    def give(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(data))))

    return give


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Terminal]:
    def make(name: str) -> Terminal:
        stream = Terminal()
        monkeypatch.setattr(sys, name, stream)
        return stream

    return make


@pytest.fixture
def provider() -> Iterator[Callable[[object, str], str]]:
    """Registers plugins of a test, and takes them back."""
    registered: list[tuple[object, str]] = []

    def register(plugin: object, name: str) -> str:
        registry.register(plugin, name)
        registered.append((plugin, name))
        return name

    yield register
    for plugin, name in registered:
        registry.unregister(plugin, name)


@pytest.fixture
def captures(tmp_path: Path) -> Callable[..., Path]:
    """Writes captures of Ollama's chat into a folder of their own."""
    folder = tmp_path / "captures"
    folder.mkdir()

    def write(case: str, *events: dict[str, Any], path: str | None = "/api/chat", **known: Any) -> Path:
        suffix = "ndjson" if len(events) > 1 else "json"
        file = folder / f"{case}.response.{suffix}"
        file.write_bytes(b"\n".join(map(orjson.dumps, events)))
        entry = {"file": file.name, "path": path, **known}
        with (folder / "MANIFEST.jsonl").open("ab") as manifest:
            manifest.write(orjson.dumps(entry) + b"\n")
        return file

    return write


@pytest.fixture(autouse=True)
def _as_at_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No settings of the developer's, and none left behind."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    yield
    apply_settings(Settings())
