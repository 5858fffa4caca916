"""The captures next to the project, with the provider of each.

Hundreds of real answers that may not all be copied in. Their folder is ``$CROSSWALK_CAPTURES``, by default
``../shared/captures`` next to the project. If it is absent, tests marked with :data:`needs_captures` skip.
"""

from __future__ import annotations

import functools
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from crosswalk.plugin.registry import registry
from crosswalk.testing import Capture, load_captures
from known_differences import NO_ANSWERS, SEVERAL_STREAMS

__all__ = [
    "CAPTURES",
    "TRIED",
    "answers_in",
    "captures_in",
    "folders",
    "is_answer",
    "needs_captures",
    "provider_of",
    "table",
]

ROOT = Path(__file__).parents[1]
CAPTURES = Path(os.environ.get("CROSSWALK_CAPTURES", ROOT / "../shared/captures")).resolve()

needs_captures = pytest.mark.skipif(
    not CAPTURES.is_dir(), reason=f"no captures beside the project ({CAPTURES.name} is absent)"
)

PROVIDERS = {
    "live/llama-cpp-python": "llamacpp",
    "live/llama-cpp-python-functions": "llamacpp",
    "live/llama-server": "llamacpp",
    "live/ollama-gotemplate": "ollama",
    "live/sglang-reasoning": "sglang",
    "live/transformers-serve": "openai",
    "live/vllm-force-usage": "vllm",
    "live/vllm-reasoning": "vllm",
    "recorded/bedrock-converse": "bedrock",
    "recorded/gemini-interactions": "gemini",
    "recorded/openai-chat": "openai",
    "recorded/openai-completions": "openai",
    "recorded/openai-responses": "openai_responses",
}
"""The folders that are not named after the provider; ``None`` where no provider reads what lies there."""

SHAPES = {
    "anthropic": "anthropic",
    "anthropic-legacy-completion": "anthropic",
    "cohere-generate": "cohere",
    "cohere-v1": "cohere",
    "openai-chat": "openai",
    "openai-responses": "openai_responses",
}
"""Who reads what a model's vendor made and another service sent."""
MIXED = {"recorded/bedrock-invoke": "bedrock", "recorded/other-openai-compat": "openai"}
"""The folders of such answers, where the shape decides, with who reads an error, which has none."""


def provider_of(capture: Capture) -> str | None:
    """The provider that reads *capture*, a file in or below :data:`CAPTURES`. ``None`` where none does."""
    folder = "/".join(capture.file.relative_to(CAPTURES).parts[:2])
    if folder.startswith("recorded/") and capture.server == "ollama":
        return "ollama"  # what it answers in the dialects of others is filed under theirs
    if folder in MIXED:
        shape = _recording(capture)["shape"]
        return MIXED[folder] if shape is None else SHAPES.get(shape)
    return PROVIDERS.get(folder, folder.removeprefix("live/").removeprefix("recorded/"))


def folders() -> list[str]:
    """The folders that hold answers, such as ``live/vllm`` and ``recorded/openai-chat/stream``."""
    files = (file for file in CAPTURES.glob("*/**/*") if file.is_file() and "requests" not in file.parts)
    found = {file.parent.relative_to(CAPTURES) for file in files}
    return sorted(str(folder) for folder in found if len(folder.parts) > 1)


def captures_in(folder: str) -> list[Capture]:
    """Everything in *folder*, also files that are not answers of a model."""
    return load_captures(CAPTURES / folder)


def answers_in(folder: str) -> Iterator[tuple[str, Capture]]:
    """The answers of models in *folder* that a provider reads, each with the provider."""
    for capture in captures_in(folder):
        provider = provider_of(capture)
        if provider is not None and is_answer(provider, capture):
            for stream in _streams_of(capture):
                yield provider, stream


def is_answer(provider: str, capture: Capture) -> bool:
    """Whether the server was asked for an answer of a model, not for a list of its models or another thing."""
    if capture.file.is_relative_to(CAPTURES / "recorded"):
        return capture.case not in NO_ANSWERS
    asked = capture.path or ""
    return asked in registry.mapper(provider).endpoints() or asked.startswith("/v1/responses/")


def _streams_of(capture: Capture) -> Iterator[Capture]:
    mark = SEVERAL_STREAMS.get(capture.case)
    if mark is None:
        yield capture
        return
    for number, stream in enumerate(capture.body.split(mark)[1:], 1):
        yield attrs.evolve(capture, case=f"{capture.case} {number}", body=mark + stream)


def _recording(capture: Capture) -> dict[str, Any]:
    return _recordings()[str(capture.file.relative_to(CAPTURES / "recorded"))]


@functools.cache
def _recordings() -> dict[str, dict[str, Any]]:
    lines = (CAPTURES / "recorded/MANIFEST.jsonl").read_text(encoding="utf-8").splitlines()
    return {entry["file"]: entry for entry in map(json.loads, lines)}


TRIED = "tried"
"""The property in which a test records what it tried: for each provider its counts."""


def table(tried: Iterable[dict[str, dict[str, int]]]) -> list[str]:
    """The sum of what tests tried as lines, one for each provider."""
    sums: dict[str, Counter[str]] = {}
    columns: dict[str, None] = {}
    for of_a_test in tried:
        for provider, counts in of_a_test.items():
            for name in ("all", provider):
                sums.setdefault(name, Counter()).update(counts)
            columns |= dict.fromkeys(counts)
    rows = [*sorted(sums.keys() - {"all"}), "all"]
    lines = [f"{'provider':<18}" + "".join(f"{column:>14}" for column in columns)]
    for name in rows:
        lines.append(f"{name:<18}" + "".join(f"{sums[name][column]:>14,}" for column in columns))
    return lines
