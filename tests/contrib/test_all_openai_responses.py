"""Every capture of the Responses dialect that lies beside the project, whoever served it, from where it lies.

As ``tests/providers/test_all_captures.py``: the folder is ``$CROSSWALK_CAPTURES``, by default ``../shared/captures``; without
it these tests skip. ``pytest tests/contrib/test_all_openai_responses.py --crosswalk-sample all -s`` tries every leaf.
"""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import Any

import pytest

from crosswalk import Mapper, Recognition, Registry
from crosswalk.testing import Capture, Tally, check_capture, check_pair, load_captures, pairs
from crosswalk_openai_responses import plugin

ROOT = Path(__file__).parents[2]
CAPTURES = Path(os.environ.get("CROSSWALK_CAPTURES", ROOT / "../shared/captures")).resolve()
SAMPLE = 3

pytestmark = pytest.mark.skipif(
    not CAPTURES.is_dir(), reason=f"no captures beside the project ({CAPTURES.name} is absent)"
)

LIVE = (
    "llama-server",
    "ollama",
    "sglang",
    "sglang-reasoning",
    "vllm",
    "vllm-force-usage",
    "vllm-reasoning",
)
"""The servers of ``live/`` that answer in this dialect."""
RECORDED = tuple(
    f"{api}/{kind}"
    for api in ("openai-responses", "deepseek", "openrouter", "other-openai-compat", "xai")
    for kind in ("full", "stream", "error")
    if api == "openai-responses" or kind != "error"
)

SAMPLED = "the server sampled another answer for the stream"
UNEQUAL_PAIRS = {
    "llama-server/resp_tool_required": SAMPLED,
    "ollama/crash_v1_resp": "the server was killed: the body is its HTTP error, the stream just ends",
    "ollama/v1_resp_json_schema": SAMPLED,
    "ollama/v1_resp_texttool_auto": "the server drops the text of a body that has a call",
    "ollama/v1_resp_tool_parallel": "the server failed with HTTP 500 for the body only",
    "sglang/resp_json_schema": SAMPLED,
    "sglang/resp_texttool_auto": "the server cuts the white space at the end of a body's text",
    "sglang/resp_tool_required": "the server streams a call that was cut; the body has none",
    "vllm/resp_json_schema": SAMPLED,
    "vllm/resp_logprobs": "the server streams tokens without their bytes, and gives them with the whole alone",
    "vllm/resp_tool_required": SAMPLED,
    "vllm-force-usage/resp_json_schema": SAMPLED,
    "vllm-force-usage/resp_tool_parallel": SAMPLED,
    "vllm-reasoning/resp_emoji": "the server counts other reasoning tokens in a stream than in the body",
    "vllm-reasoning/resp_tool_parallel": SAMPLED,
}
"""Pairs whose two forms the server itself answered differently."""

UNRECOGNIZED = {
    "rig__http_errors-nonstreaming_unauthorized_preserves_status_and_body": "an error as web frameworks write it: "
    "anybody's",
}
"""Answers that have no trait of this dialect."""

IDS = [f"segments[{number}].metadata.id" for number in range(20)]
"""A server gives its items new ids in each exchange."""


@functools.cache
def mapper() -> Mapper:
    known = Registry(installed=[], environ={})
    known.register(plugin, "openai_responses")
    return known.mapper("openai_responses")


@functools.cache
def recordings() -> dict[str, dict[str, Any]]:
    lines = (CAPTURES / "recorded/MANIFEST.jsonl").read_text(encoding="utf-8").splitlines()
    return {entry["file"]: entry for entry in map(json.loads, lines)}


def captures_in(folder: str) -> list[Capture]:
    found = load_captures(CAPTURES / folder)
    if folder.startswith("live/"):
        return [capture for capture in found if (capture.path or "").startswith("/v1/responses")]
    return [capture for capture in found if is_of_the_dialect(capture)]


def is_of_the_dialect(capture: Capture) -> bool:
    entry = recordings()[str(capture.file.relative_to(CAPTURES / "recorded"))]
    return "openai-responses" in (entry["shape"], entry["api"])


FOLDERS = [*(f"live/{server}" for server in LIVE), *(f"recorded/{folder}" for folder in RECORDED)]


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_capture_keeps_the_promises(folder: str, request: pytest.FixtureRequest) -> None:
    given = request.config.getoption("--crosswalk-sample")
    sample = SAMPLE if given is None else None if given == "all" else int(given)
    tally, problems = Tally(), []
    found = captures_in(folder)
    for capture in found:
        problems += check_capture(mapper(), capture, sample=sample, tally=tally)
    for whole, streamed in pairs(found):
        if f"{whole.file.parent.name}/{whole.pair}" not in UNEQUAL_PAIRS:
            problems += check_pair(mapper(), whole, streamed, ignored=IDS)
    print(f"\nopenai_responses {folder}: {tally}")
    assert found
    assert not problems, "\n".join(str(problem) for problem in problems)


def test_every_known_difference_is_still_one() -> None:
    unequal = {
        f"{server}/{whole.pair}"
        for server in LIVE
        for whole, streamed in pairs(captures_in(f"live/{server}"))
        if check_pair(mapper(), whole, streamed, ignored=IDS)
    }
    assert unequal == set(UNEQUAL_PAIRS)


def test_every_answer_may_be_of_this_dialect() -> None:
    """None is certainly OpenAI's: no field is written by its servers alone."""
    found = {
        capture.case: max(map(plugin.recognizes, capture.events()))
        for folder in FOLDERS
        for capture in captures_in(folder)
    }
    others = {case for case, recognition in found.items() if recognition is not Recognition.POSSIBLE}
    assert others == set(UNRECOGNIZED)
