from __future__ import annotations

from collections.abc import Callable, Iterator

import orjson
import pytest

from crosswalk.plugin.registry import registry

from .conftest import Done, Terminal

Run = Callable[..., Done]


@pytest.fixture
def blocked() -> Iterator[None]:
    registry.block("vllm")
    yield
    registry.unblock("vllm")


def test_the_installed_providers_are_listed(run: Run) -> None:
    done = run("providers")
    assert (done.status, done.err) == (0, "")
    head, *rows = done.out.splitlines()
    ollama, vllm = (next(row for row in rows if row.startswith(name)) for name in ("ollama", "vllm"))
    assert head.split() == [
        "provider",
        "title",
        "distribution",
        "endpoints",
        "speaks",
        "too",
        "asks",
        "state",
    ]
    assert ollama.split()[:3] == ["ollama", "Ollama", "crosswalk-llm"]
    assert "/api/chat /api/generate" in ollama
    assert vllm.endswith("  openai_responses anthropic  yes   ok")


@pytest.mark.usefixtures("blocked")
def test_a_broken_and_a_blocked_one_are_rows(run: Run, provider: Callable[[object, str], str]) -> None:
    class Silent:
        """A plugin without map_delta."""

    provider(Silent(), "silent")
    done = run("providers", "--json")
    assert done.status == 0
    rows = {row["name"]: row for row in orjson.loads(done.out)}
    assert rows["silent"]["state"] == "broken"
    assert "map_delta" in rows["silent"]["error"]
    assert rows["silent"]["distribution"] is None
    assert rows["vllm"] == {
        "name": "vllm",
        "title": None,
        "distribution": "crosswalk-llm",
        "version": rows["ollama"]["version"],
        "target": "crosswalk_vllm:plugin",
        "overrides": [],
        "endpoints": [],
        "speaks": [],
        "builds_requests": False,
        "documentation": None,
        "state": "blocked",
        "error": None,
    }
    assert "broken: provider 'silent'" in run("providers").out


def test_a_terminal_gets_a_drawn_table(
    run: Run, terminal: Callable[[str], Terminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    screen = terminal("stdout")
    assert run("providers").status == 0
    assert "───" in screen.text()
    assert "crosswalk" in screen.text()


def test_an_override_says_whom_it_overrides(run: Run, provider: Callable[[object, str], str]) -> None:
    provider(registry.mapper, "vllm")  # any object will do
    rows = run("providers").out.splitlines()
    assert next(row for row in rows if row.startswith("vllm")).endswith("ok, overrides crosswalk-llm")
