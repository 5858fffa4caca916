"""Detection over every capture that lies beside the project: the right provider, or an honest list of candidates."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from crosswalk import FramingError, Recognition
from crosswalk.mapping.detect import candidates
from crosswalk.plugin import registry
from crosswalk.testing import Capture, load_captures

ROOT = Path(__file__).parents[2]
CAPTURES = Path(os.environ.get("CROSSWALK_CAPTURES", ROOT / "../shared/captures")).resolve()

pytestmark = pytest.mark.skipif(
    not CAPTURES.is_dir(), reason=f"no captures beside the project ({CAPTURES.name} is absent)"
)

SERVERS = {
    "llama-server": "llamacpp",
    "ollama-gotemplate": "ollama",
    "sglang-reasoning": "sglang",
    "vllm-force-usage": "vllm",
    "vllm-reasoning": "vllm",
}
"""The servers of ``live/`` whose folder has not the provider's name."""

APIS = {"bedrock-converse": "bedrock", "openai-chat": "openai", "openai-completions": "openai"}
"""The folders of ``recorded/`` whose answers are a provider's of another name."""

NOT_READ = {
    "bedrock-invoke": "the model vendor's own body: it is detected as the vendor's",
    "gemini-interactions": "no provider reads it",
    "llama-cpp-python": "no provider of its own: plain OpenAI",
    "llama-cpp-python-functions": "no provider of its own: plain OpenAI",
    "other-openai-compat": "services without a provider of their own",
    "transformers-serve": "no provider of its own: plain OpenAI",
}

MISTAKEN = {
    "sglang-reasoning/ollama_api_chat_nostream": "the server imitates Ollama's answer",
    "stream/llm__tools_streaming-tools_streaming_variant_c__1": "OpenRouter's own fields: it was filed as OpenAI's",
    "stream/llm__tools_streaming-tools_streaming_variant_d": "OpenRouter's own fields: it was filed as OpenAI's",
    "stream/llm__tools_streaming-tools_streaming_variant_d__1": "OpenRouter's own fields: it was filed as OpenAI's",
}
"""Captures for which another provider is certain, with the reason."""


def right_provider(capture: Capture) -> str | None:
    """Whose answer *capture* is by the folder it lies in; ``None`` where no provider reads it."""
    kind, name = capture.file.relative_to(CAPTURES).parts[:2]
    if name in NOT_READ:
        return None
    return SERVERS.get(name, name) if kind == "live" else APIS.get(name, name).replace("-", "_")


def captures() -> Iterator[Capture]:
    for folder in sorted({file.parent for file in CAPTURES.rglob("*") if file.is_file()}):
        if "requests" not in folder.parts:
            yield from load_captures(folder)


def found_in(capture: Capture) -> dict[str, Recognition]:
    try:
        return candidates(capture.events(), registry)
    except (FramingError, ValueError):  # text, or a page of HTML
        return {}


def test_every_capture_is_detected_or_honestly_ambiguous() -> None:
    counts: Counter[str] = Counter()
    mistaken, missed = set(), []
    for capture in captures():
        found, right = found_in(capture), right_provider(capture)
        certain = {name for name, how in found.items() if how is Recognition.CERTAIN}
        name = f"{capture.file.parent.name}/{capture.case}"
        if right is None:
            counts["of no provider, nobody is certain" if not certain else "of no provider, but marked"] += 1
        elif certain - {right}:
            mistaken.add(name)
        elif right in certain:
            counts["the right one"] += 1
        elif right in found:
            counts["the right one among the candidates"] += 1
        elif found:
            missed.append(name)
        else:
            counts["no answer of any provider"] += 1
    print(f"\n{dict(counts)}")
    assert not missed
    assert mistaken == set(MISTAKEN)
