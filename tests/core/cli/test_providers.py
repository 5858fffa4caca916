from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import attrs
import orjson
import pytest

from crosswalk.plugin.registry import registry

from .conftest import Done

Run = Callable[..., Done]


@pytest.fixture
def blocked() -> Iterator[None]:
    registry.block("vllm")
    yield
    registry.unblock("vllm")


def rows_of(done: Done) -> dict[str, list[str]]:
    """The rows by provider, and the headings as ``provider``. Columns are two blanks apart."""
    return {row.split()[0]: re.split("  +", row) for row in done.out.splitlines()}


def test_the_installed_providers_are_listed(run: Run) -> None:
    done = run("providers")
    assert (done.status, done.err) == (0, "")
    rows = rows_of(done)
    assert rows["provider"] == ["provider", "title", "state"]
    assert rows["ollama"] == ["ollama", "Ollama", "ok"]


def test_the_long_list_says_distribution_endpoints_and_formats(run: Run) -> None:
    rows = rows_of(run("providers", "--long"))
    assert rows["provider"][3:] == ["distribution", "endpoints", "speaks too", "asks"]
    assert rows["ollama"][3].startswith("crosswalk-llm ")
    assert rows["ollama"][4].startswith("/api/chat /api/generate")
    assert rows["vllm"][5:] == ["openai_responses anthropic", "yes"]


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
        "ignored": [],
        "endpoints": [],
        "speaks": [],
        "builds_requests": False,
        "documentation": None,
        "state": "blocked",
        "error": None,
    }
    assert "broken: provider 'silent'" in run("providers").out


def test_an_override_says_whom_it_overrides(run: Run, provider: Callable[[object, str], str]) -> None:
    provider(registry.mapper, "vllm")  # any object will do
    rows = run("providers").out.splitlines()
    assert next(row for row in rows if row.startswith("vllm")).endswith("ok, overrides crosswalk-llm")


def test_a_broken_override_is_told_as_ignored(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not as one that works."""
    shipped = registry.mapper("vllm")
    monkeypatch.setattr(registry, "mapper", lambda name: attrs.evolve(shipped, ignored=("over-vllm",)))
    rows = run("providers").out.splitlines()
    assert next(row for row in rows if row.startswith("vllm")).endswith(
        "ok, overridden by over-vllm: broken, ignored"
    )
