"""The page about watching: its programs, with a server in the place of OpenAI's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from crosswalk.testing import Answer, ReplayServer
from crosswalk_observe import uninstall
from pages import ROOT, run

USAGE = {"prompt_tokens": 9, "completion_tokens": 8, "total_tokens": 17}
HEAD = {"id": "chatcmpl-1", "created": 1780000000, "model": "tiny"}


def chunk(**delta: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": None if delta else "stop"}
    return {**HEAD, "object": "chat.completion.chunk", "choices": [choice]}


EVENTS = [
    chunk(role="assistant", content="Because"),
    chunk(content=" of Rayleigh."),
    chunk(),
    {**HEAD, "object": "chat.completion.chunk", "choices": [], "usage": USAGE},
]
MESSAGE = {"role": "assistant", "content": "Because of Rayleigh."}
WHOLE = {
    **HEAD,
    "object": "chat.completion",
    "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "stop"}],
    "usage": USAGE,
}


@pytest.fixture(autouse=True)
def _closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Closes the clients that the page leaves open, as most programs do."""
    make, made = httpx2.Client.__init__, []

    def noted(self: httpx2.Client, *given: Any, **named: Any) -> None:
        make(self, *given, **named)
        made.append(self)

    monkeypatch.setattr(httpx2.Client, "__init__", noted)
    yield
    for client in made:
        client.close()


@pytest.fixture(autouse=True)
def _openai(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with ReplayServer() as server:
        server.add(Answer.of_events(EVENTS), when=lambda asked: bool(asked.wants_stream), times=None)
        server.add(Answer.of_json(WHOLE), times=None)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
        yield
        uninstall()


def test_the_examples_of_the_page_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    run(ROOT / "docs" / "observe.md")
