"""Answers in the Responses and Anthropic dialects that other servers gave: the same response, under the server's id."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crosswalk import MappingError, normalize, to_jsonable
from crosswalk.plugin.registry import registry
from crosswalk.testing import Capture, load_captures
from crosswalk.testing.perturbation import fixed_clock, fixed_id

ROOT = Path(__file__).parents[2]

DIALECTS = {"/v1/responses": "openai_responses", "/v1/messages": "anthropic"}
PROVIDERS = {
    "llama-server": "llamacpp",
    "ollama": "ollama",
    "sglang": "sglang",
    "sglang-reasoning": "sglang",
    "vllm": "vllm",
    "vllm-force-usage": "vllm",
    "vllm-reasoning": "vllm",
}


def meaning(capture: Capture, provider: str) -> Any:
    """The mapping of *capture* as *provider*'s, without the provider's name."""
    try:
        response = normalize(
            capture.body, provider, status=capture.status, id_factory=fixed_id, clock=fixed_clock
        )
        error = None
    except MappingError as caught:
        assert caught.partial is not None
        response, error = caught.partial, (type(caught), caught.place)
    found = to_jsonable(response)
    assert found["metadata"].pop("provider_id") == provider
    for segment in found.get("segments", ()):
        if segment["type"] == "error":
            segment["content"] = (
                ""  # names the provider; an HTTP error is explained by the server's own plugin
            )
            segment.pop("metadata", None)
    return found | {"refusal": None}, error


def captures(folder: Path, servers: dict[str, str]) -> Iterator[tuple[Capture, str, str]]:
    """Each capture of *folder* in one of the dialects, with the server's provider and the dialect's."""
    for capture in load_captures(folder):
        server = capture.server or folder.name
        dialect = DIALECTS.get(capture.path or "")
        if dialect is not None and server in servers:
            yield capture, servers[server], dialect


@pytest.mark.sweep
@pytest.mark.parametrize("dialect", sorted(DIALECTS.values()))
def test_the_projects_own_captures(dialect: str) -> None:
    found = list(captures(ROOT / "tests/captures" / dialect, PROVIDERS))
    assert len({provider for _, provider, _ in found}) >= 4
    for capture, provider, of in found:
        assert meaning(capture, provider) == meaning(capture, of), capture.case


def test_they_are_listed_with_what_they_understand() -> None:
    for provider in set(PROVIDERS.values()):
        assert set(DIALECTS) <= set(registry.mapper(provider).endpoints())
