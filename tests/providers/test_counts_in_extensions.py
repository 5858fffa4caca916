"""Counts of tokens and amounts of money are in typed fields: what of them stays in the extensions has a reason."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from crosswalk import UsageInfo, normalize
from crosswalk.plugins import UsageDetails
from crosswalk.types.usage import OPENAI_COUNT_PATHS, OPENAI_COUNTS
from crosswalk.wire import messages, responses

SNAPSHOTS: Final = Path(__file__).parents[2] / "snapshots"
COUNT: Final = re.compile(r"tokens?$|token_?count$|_tokens_|cost", re.IGNORECASE)
EXPLAINED: Final[Mapping[str, str]] = {
    r"(.*\.)?(generation_settings|__verbose)\..*|max_output_tokens": "an option of the request, or a copy for debugging",
    r"usage\.iterations\[\]\..*": "the parts of the counts, by round of the server's tools",
    r"(meta|usage)\.billed_units\..*": "tokens as they are billed, not as they were counted",
    r"tool_usage\.image_gen\..*": "tokens of another model, which made a picture",
    r"usage\.output_tokens_details\.tool_output_tokens": "a part of the output without a typed field",
    r"usage\.completion_tokens_details\.(accepted|rejected)_prediction_tokens": "a part without a typed field",
    r"usage\.total_tool_use_tokens|usageMetadata\.toolUsePrompt\w+(\[\]\.tokenCount)?": "counted beside the prompt",
    r"usage\.cost(\..*)?|usage\.cost_in_usd_ticks": "money is read and stays with its parts, as the sum has none",
    r"(.*\.)?timings\..*|perf_metrics\..*|stats\..*": "a time, or a copy of a count next to a time",
    r"(choices\[\]\.)?(tokens_cached|tokens_evaluated|tokens_predicted)": "llama.cpp's own count beside ``timings``",
    r"usage\.(prompt_tokens|completion_tokens|total_tokens|prompt_tokens_details\.cached_tokens)": "of several answers",
    r"details\.(best_of_sequences\[\]\.)?generated_tokens": "a count of one candidate of several",
}
"""Why a count is left, by its path in the extensions."""


def leaves(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item, f"{path}[]")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path


def test_no_count_of_a_capture_stays_in_the_extensions_without_a_reason() -> None:
    left = {
        f"{file.parent.name}: {path}"
        for file in SNAPSHOTS.glob("*/*.json")
        for holder in [json.loads(file.read_text("utf-8"))]
        for response in [holder.get("response") or holder.get("partial") or {}]
        for path in leaves((response.get("metadata") or {}).get("extensions") or {})
        if COUNT.search(path) and not any(re.fullmatch(known, path) for known in EXPLAINED)
    }
    assert not left


def filled(paths: Mapping[str, str]) -> dict[str, Any]:
    """An object with another number at each of *paths*. The prompt and the completion are larger than their parts."""
    made: dict[str, Any] = {}
    for number, path in enumerate(dict.fromkeys(paths.values()), 1):
        *groups, name = path.split(".")
        holder = made
        for group in groups:
            holder = holder.setdefault(group, {})
        holder[name] = 1000 if number <= 2 else number
    return made


CHAT: Final = {**OPENAI_COUNTS, **OPENAI_COUNT_PATHS}
FORMS: Final[dict[str, tuple[Mapping[str, str], dict[str, Any]]]] = {
    "chat": (
        CHAT,
        {
            "object": "chat.completion",
            "choices": [
                {"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}
            ],
        },
    ),
    "responses": (
        {**responses.COUNTS, **responses.DETAILS},
        {"object": "response", "status": "completed", "output": []},
    ),
    "messages": (
        {**messages.COUNTS, **messages.DETAILS},
        {"type": "message", "role": "assistant", "content": [], "stop_reason": "end_turn"},
    ),
}
SPEAKERS: Final = {
    "chat": (
        *(
            "cloudflare",
            "dashscope",
            "deepseek",
            "fireworks",
            "groq",
            "llamacpp",
            "lmstudio",
            "minimax",
            "mistral",
        ),
        *(
            "moonshot",
            "ollama",
            "openai",
            "openrouter",
            "perplexity",
            "sglang",
            "tgi",
            "together",
            "vllm",
            "xai",
            "zai",
        ),
    ),
    "responses": (
        "llamacpp",
        "ollama",
        "openai_responses",
        "openrouter",
        "perplexity",
        "sglang",
        "vllm",
        "xai",
    ),
    "messages": ("anthropic", "llamacpp", "ollama", "openrouter", "sglang", "vllm"),
}


@pytest.mark.parametrize(
    ("form", "provider"), [(form, name) for form, names in SPEAKERS.items() for name in names]
)
def test_every_count_of_a_form_reaches_its_field_whoever_sends_it(form: str, provider: str) -> None:
    paths, body = FORMS[form]
    usage = filled({name: path for name, path in paths.items() if name != "total_tokens"})
    response = normalize({"id": "x", "model": "m", **body, "usage": usage}, provider)
    assert "usage" not in response.metadata.extensions
    for name in paths.keys() - {"total_tokens", "prompt_tokens", "completion_tokens"}:
        holder: UsageInfo | UsageDetails = response.usage
        assert getattr(holder if hasattr(holder, name) else response.usage.details, name) is not None, name
