"""Every capture of OpenAI's dialect that lies beside the project: answers of services that may not be copied in.

The folder is ``$CROSSWALK_CAPTURES``, by default ``../shared/captures`` beside the project. Where it is absent these
tests skip. They try a seeded sample of leaves; ``--crosswalk-sample 40 -s`` tries more and prints the counts.
"""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import Any

import pytest

from crosswalk import detect, registry
from crosswalk.errors import DetectionError
from crosswalk.testing import Capture, Tally, check_capture, check_pair, load_captures, pairs

ROOT = Path(__file__).parents[2]
CAPTURES = Path(os.environ.get("CROSSWALK_CAPTURES", ROOT / "../shared/captures")).resolve()
SAMPLE = 2

PATHS = ("/v1/chat/completions", "/v1/completions")
SHAPES = ("openai-chat", "openai-completions", None)  # an error has no shape
FOLDERS = {
    "openai": (
        "recorded/openai-chat/full",
        "recorded/openai-chat/stream",
        "recorded/openai-chat/error",
        "recorded/openai-completions/full",
        "recorded/openai-completions/stream",
        "recorded/other-openai-compat/full",
        "recorded/other-openai-compat/stream",
        "recorded/other-openai-compat/error",
    ),
    "deepseek": ("recorded/deepseek/full", "recorded/deepseek/stream", "recorded/deepseek/error"),
    "groq": ("recorded/groq/full", "recorded/groq/stream", "recorded/groq/error"),
    "mistral": ("recorded/mistral/full", "recorded/mistral/stream", "recorded/mistral/error"),
    "openrouter": ("recorded/openrouter/full", "recorded/openrouter/stream", "recorded/openrouter/error"),
    "perplexity": ("recorded/perplexity/full", "recorded/perplexity/stream", "recorded/perplexity/error"),
    "sglang": ("live/sglang", "live/sglang-reasoning", "recorded/sglang/stream"),
    "together": ("recorded/together/full", "recorded/together/stream", "recorded/together/error"),
    "xai": ("recorded/xai/full", "recorded/xai/stream"),
}

SAMPLED = "the server ignores the seed and samples another answer for the stream"
UNPARSED = "the server streams a call that it cannot parse; in the body it gives no call, or its text"
LINE_BREAK = "in a stream the server keeps the line break before a tool call, in a body it does not"

UNEQUAL_PAIRS = {
    "sglang/json_schema": SAMPLED,
    "sglang/json_schema_cut": SAMPLED,
    "sglang/n2": SAMPLED,
    "sglang/n3_tools": SAMPLED,
    "sglang/tool_auto_badtool": UNPARSED,
    "sglang/tool_auto_cut_in_name": UNPARSED,
    "sglang/tool_auto_parallel_seed2": SAMPLED,
    "sglang/tool_auto_parallel_seed3": SAMPLED,
    "sglang/tool_auto_parallel_seed5": SAMPLED,
    "sglang/tool_auto_parallel_seed8": SAMPLED,
    "sglang/tool_auto_texttool": LINE_BREAK,
    "sglang/tool_auto_think_then_call": SAMPLED,
    "sglang/tool_auto_unktool": UNPARSED,
    "sglang/tool_named": SAMPLED,
    "sglang/tool_required_seed9": SAMPLED,
    "sglang-reasoning/chat_random": SAMPLED,
    "sglang-reasoning/n2": SAMPLED,
    "sglang-reasoning/tool_auto_badtool": UNPARSED,
    "sglang-reasoning/tool_auto_cut_in_arguments": UNPARSED,
    "sglang-reasoning/tool_auto_cut_in_name": UNPARSED,
    "sglang-reasoning/tool_auto_parallel_off": SAMPLED,
    "sglang-reasoning/tool_auto_parallel_seed2": SAMPLED,
    "sglang-reasoning/tool_auto_parallel_seed4": SAMPLED,
    "sglang-reasoning/tool_auto_parallel_seed5": SAMPLED,
    "sglang-reasoning/tool_auto_parallel_seed6": SAMPLED,
    "sglang-reasoning/tool_auto_parallel_seed7": SAMPLED,
    "sglang-reasoning/tool_auto_parallel_seed8": SAMPLED,
    "sglang-reasoning/tool_auto_think_then_call": SAMPLED,
    "sglang-reasoning/tool_named": SAMPLED,
}
"""Pairs whose two forms the server itself answered differently."""

BROKEN = {
    "chatlas__provider_cloudflare-cloudflare_data_extraction": "content is an object, which nobody's API promises: "
    "a typed error, before any other leaf is read",
    "pydantic-ai__openrouter-openrouter_stream_error": "the server ends the answer twice and then reports an error: cut "
    "before that it looks whole, and the word of the first end is not kept",
}
"""Captures on which a promise cannot hold."""

MINUS_ONE = "the kit puts -1 in the place of a -1"
KIT = {"cmpl_logprobs": MINUS_ONE, "cmpl_echo_logprobs": MINUS_ONE}
"""Captures on which the kit sees a problem where none is."""

MISFILED = {
    "llm__tools_streaming-tools_streaming_variant_c__1": "openrouter",
    "llm__tools_streaming-tools_streaming_variant_d": "openrouter",
    "llm__tools_streaming-tools_streaming_variant_d__1": "openrouter",
}
"""Captures whose manifest names OpenAI, and that another service sent."""

pytestmark = pytest.mark.skipif(
    not CAPTURES.is_dir(), reason=f"no captures beside the project ({CAPTURES.name} is absent)"
)


@functools.cache
def manifest() -> dict[str, dict[str, Any]]:
    lines = (CAPTURES / "recorded/MANIFEST.jsonl").read_text(encoding="utf-8").splitlines()
    return {entry["file"]: entry for entry in map(json.loads, lines)}


def entry_of(capture: Capture) -> dict[str, Any]:
    return manifest()[str(capture.file.relative_to(CAPTURES / "recorded"))]


@functools.cache
def captures_in(folder: str) -> list[Capture]:
    """The answers in *folder* that are of this dialect, and of none of the servers that have a plugin elsewhere."""
    if folder.startswith("live/"):
        return load_captures(CAPTURES / folder, paths=PATHS)
    found = [(capture, entry_of(capture)) for capture in load_captures(CAPTURES / folder)]
    return [c for c, entry in found if entry["shape"] in SHAPES and entry["served_by"] != "ollama"]


@pytest.mark.parametrize(
    ("provider", "folder"),
    [(provider, folder) for provider, folders in FOLDERS.items() for folder in folders],
    ids=str,
)
def test_every_capture_keeps_the_promises(provider: str, folder: str, request: pytest.FixtureRequest) -> None:
    """P1 to P5 and P8 hold for every capture of the provider's chat and completions endpoints."""
    mapper = registry.mapper(provider)
    given = request.config.getoption("--crosswalk-sample")
    sample = SAMPLE if given is None else None if given == "all" else int(given)
    tally, problems = Tally(), []
    found = captures_in(folder)
    for capture in found:
        if capture.case not in BROKEN and capture.case not in KIT:
            problems += check_capture(mapper, capture, sample=sample, tally=tally)
    if folder.startswith("live/"):
        for whole, streamed in pairs(found):
            if f"{whole.file.parent.name}/{whole.pair}" not in UNEQUAL_PAIRS:
                problems += check_pair(mapper, whole, streamed)
    print(f"\n{provider} {folder}: {tally}")
    assert found
    assert not problems, "\n".join(str(problem) for problem in problems)


def test_every_unequal_pair_is_still_one() -> None:
    """The list of exceptions holds nothing that has become equal, or that is not there."""
    mapper = registry.mapper("sglang")
    unequal = {
        f"{whole.file.parent.name}/{whole.pair}"
        for folder in FOLDERS["sglang"][:2]
        for whole, streamed in pairs(captures_in(folder))
        if check_pair(mapper, whole, streamed)
    }
    assert unequal == set(UNEQUAL_PAIRS)


def test_every_broken_capture_is_still_one() -> None:
    """The list of exceptions holds nothing that keeps the promises by now."""
    broken = {
        capture.case
        for provider, folders in FOLDERS.items()
        for folder in folders
        for capture in captures_in(folder)
        if capture.case in BROKEN and check_capture(registry.mapper(provider), capture, sample=None)
    }
    assert broken == set(BROKEN)


def test_detection_names_the_right_provider_or_says_that_it_cannot() -> None:
    """A mark that decides is never another provider's."""
    wrong = []
    for provider, folders in FOLDERS.items():
        found = [c for folder in folders if "other-" not in folder for c in captures_in(folder)]
        for capture in found:
            if capture.status < 400 and capture.is_json:
                named = detected(capture)
                if MISFILED.get(capture.case, provider) not in named:
                    wrong.append(f"{capture.case}: {', '.join(named)}, not {provider}")
    assert not wrong, "\n".join(wrong)


def detected(capture: Capture) -> tuple[str, ...]:
    """The one provider, or the candidates."""
    try:
        return (detect(capture.events(), registry),)
    except DetectionError as error:
        return tuple(error.candidates)
