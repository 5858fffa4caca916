"""Every capture of the Messages dialect that lies beside the project, whoever served it, from where it lies.

As ``tests/providers/test_all_captures.py``: the folder is ``$CROSSWALK_CAPTURES``, by default ``../shared/captures``; without
it these tests skip. ``pytest tests/contrib/test_all_anthropic.py --crosswalk-sample all -s`` tries every leaf.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from crosswalk import Mapper, Recognition, Registry
from crosswalk.testing import Capture, Tally, check_capture, check_pair, load_captures, pairs
from crosswalk.testing.checks import normalized
from crosswalk_anthropic import AnthropicDialect, plugin

ROOT = Path(__file__).parents[2]
CAPTURES = Path(os.environ.get("CROSSWALK_CAPTURES", ROOT / "../shared/captures")).resolve()
SAMPLE = 2

pytestmark = pytest.mark.skipif(
    not CAPTURES.is_dir(), reason=f"no captures beside the project ({CAPTURES.name} is absent)"
)

SERVERS = {
    "ollama": "ollama",
    "vllm": "vllm",
    "vllm-reasoning": "vllm",
    "vllm-force-usage": "vllm",
    "sglang": "sglang",
    "sglang-reasoning": "sglang",
    "llama-server": "llamacpp",
}
"""The folders of ``live/``, with the id under which each server is a provider."""
RECORDED = (
    "anthropic/full",
    "anthropic/stream",
    "anthropic/error",
    "bedrock-invoke/full",
    "bedrock-invoke/stream",
)

OTHERS = {
    "ruby-openai__conversations_create_items": "an item of OpenAI's Conversations API, filed here by mistake"
}
"""Captures that are not of this dialect."""

FORCED = "the server streams what a forced tool is called with, though it is no JSON; the body has none or other text"
UNEQUAL_PAIRS = {
    "ollama/v1_msg_tool_parallel": "the server failed with HTTP 500 for the body only",
    "vllm/msg_tool_any": FORCED,
    "vllm/msg_tool_cut": "the server streams a call that was cut; in the body it gives its text instead",
    "vllm-reasoning/msg_tool_parallel": "the server sampled another answer for the stream",
    "sglang/msg_empty": "the server reports 0 input tokens when it streams nothing",
    "sglang/msg_tool_cut": "the server streams a call that was cut; the body has none",
    "sglang/msg_tool_named": FORCED,
    "sglang/msg_tool_parallel": "the server sampled another answer for the stream",
    "llama-server/msg_tool_any": "the server sampled another answer for the stream",
    "llama-server/msg_tool_cut": "the server gives no input where the arguments were cut; the stream has the piece",
    "llama-server/msg_tool_parallel": "the server sampled another answer for the stream",
}
"""Pairs whose two forms the server itself answered differently."""

UNMARKED = {
    "dd-trace-py__anthropic_completion_thinking_tools": "its id was replaced and its usage cut down by who recorded it",
    "ai__anthropic-advisor-stop-reasons-v2": "its id was written by hand",
    "openllmetry-js__e-attributes-in-span-for-given-prompt-with-streaming-result_3091204960-recording-v2": "Bedrock "
    "leaves out the type of a text completion",
    "dd-trace-py__anthropic_completion_error": "an error without a request's id",
}
"""Answers of Anthropic's that carry no mark of its own: they are possibly its own, not certainly."""


def mapper_of(provider: str) -> Mapper:
    """The provider: Anthropic's own plugin, or the dialect alone under the name of the server that speaks it."""
    known = Registry(installed=[], environ={})
    known.register(plugin if provider == "anthropic" else AnthropicDialect(), provider)
    return known.mapper(provider)


@functools.cache
def recordings() -> dict[str, dict[str, Any]]:
    lines = (CAPTURES / "recorded/MANIFEST.jsonl").read_text(encoding="utf-8").splitlines()
    return {entry["file"]: entry for entry in map(json.loads, lines)}


def about(capture: Capture) -> dict[str, Any]:
    return recordings()[str(capture.file.relative_to(CAPTURES / "recorded"))]


def recorded(folder: str) -> list[Capture]:
    found: list[Capture] = []
    for capture in load_captures(CAPTURES / "recorded" / folder):
        shape = about(capture)["shape"]
        if capture.case not in OTHERS and (shape or folder).startswith("anthropic"):
            found += messages(capture)
    return found


def live(server: str) -> list[Capture]:
    return load_captures(CAPTURES / "live" / server, paths=["/v1/messages"])


def messages(capture: Capture) -> Iterator[Capture]:
    """The messages of a capture: who recorded ``programmatic-tool-calling`` put fifteen streams into one file."""
    mark = b"event: message_start\n"
    streams = capture.body.split(mark)
    if len(streams) < 3:
        yield capture
        return
    for number, stream in enumerate(streams[1:], 1):
        yield attrs.evolve(capture, case=f"{capture.case} {number}", body=mark + stream)


def sample_of(request: pytest.FixtureRequest) -> int | None:
    given = request.config.getoption("--crosswalk-sample")
    return SAMPLE if given is None else None if given == "all" else int(given)


def check(provider: str, folder: str, found: list[Capture], sample: int | None) -> None:
    tally, problems = Tally(), []
    for capture in found:
        problems += check_capture(mapper_of(provider), capture, sample=sample, tally=tally)
    print(f"\n{provider} {folder}: {tally}")
    assert found
    assert not problems, "\n".join(str(problem) for problem in problems)


@pytest.mark.parametrize("folder", RECORDED)
def test_every_recording_keeps_the_promises(folder: str, request: pytest.FixtureRequest) -> None:
    check("anthropic", f"recorded/{folder}", recorded(folder), sample_of(request))


@pytest.mark.parametrize("server", SERVERS)
def test_every_server_keeps_the_promises(server: str, request: pytest.FixtureRequest) -> None:
    check(SERVERS[server], f"live/{server}", live(server), sample_of(request))


def spelling(whole: dict[str, Any], streamed: dict[str, Any]) -> list[str]:
    """Where the two differ in spelling alone: a body has arguments as an object, a stream as the model wrote them.

    And vLLM signs reasoning with random text, another one each time.
    """
    left, right = whole.get("response", {}), streamed.get("response", {})
    places = []
    for name, key in (("message.tool_calls", "arguments"), ("segments", "content")):
        first, *rest = name.split(".")
        before, after = left.get(first, {}), right.get(first, {})
        for part in rest:
            before, after = before.get(part, []), after.get(part, [])
        for number, (one, other) in enumerate(zip(before, after, strict=False)):
            if one.get("type", "tool_call") == other.get("type", "tool_call") == "tool_call" and same_json(
                one[key], other[key]
            ):
                places.append(f"{name}[{number}].{key}")
            if "signature" in one.get("metadata", {}) and "signature" in other.get("metadata", {}):
                places.append(f"{name}[{number}].metadata.signature")
    return places


def same_json(left: str, right: str) -> bool:
    try:
        return bool(json.loads(left) == json.loads(right))
    except ValueError:
        return left == right


def disagreements(server: str) -> dict[str, str]:
    mapper = mapper_of(SERVERS[server])
    found = {}
    for whole, streamed in pairs(live(server)):
        ignored = spelling(normalized(mapper, whole), normalized(mapper, streamed))
        problems = check_pair(mapper, whole, streamed, ignored=ignored)
        if problems:
            found[f"{server}/{whole.pair}"] = str(problems[0])
    return found


def test_body_and_stream_agree() -> None:
    """P2, but for the listed pairs, and each of those is still unequal."""
    found: dict[str, str] = {}
    count = 0
    for server in SERVERS:
        found |= disagreements(server)
        count += len(pairs(live(server)))
    print(f"\n{count} pairs, {len(UNEQUAL_PAIRS)} of them unequal")
    assert sorted(found) == sorted(UNEQUAL_PAIRS), "\n".join(found.values())


def test_anthropics_own_answers_are_recognized() -> None:
    """Those of its servers for certain, those of others as possible: they speak its dialect."""
    own = [c for folder in RECORDED for c in recorded(folder)]
    others = [c for server in SERVERS for c in live(server)]
    unmarked = {}
    for capture in own:
        served_by = about(capture)["served_by"]
        if served_by in ("anthropic", "bedrock") and recognized(capture) is not Recognition.CERTAIN:
            unmarked[capture.case] = recognized(capture)
    assert unmarked == dict.fromkeys(UNMARKED, Recognition.POSSIBLE)
    assert all(recognized(capture) is not Recognition.CERTAIN for capture in others)


def recognized(capture: Capture) -> Recognition:
    return max(Recognition(plugin.recognizes(event) or 0) for event in capture.events()[:50])
