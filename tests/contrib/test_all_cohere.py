"""Every capture of Cohere's APIs that lies beside the project, from where it lies.

As ``tests/providers/test_all_captures.py``: the folder is ``$CROSSWALK_CAPTURES``, by default ``../shared/captures``; without
it these tests skip. ``pytest tests/contrib/test_all_cohere.py --crosswalk-sample all -s`` tries every leaf.
"""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import Any

import pytest

from crosswalk import Recognition
from crosswalk.plugin import registry
from crosswalk.testing import Capture, Tally, check_capture, load_captures
from crosswalk_cohere import plugin

ROOT = Path(__file__).parents[2]
CAPTURES = Path(os.environ.get("CROSSWALK_CAPTURES", ROOT / "../shared/captures")).resolve()
SAMPLE = 3

pytestmark = pytest.mark.skipif(
    not CAPTURES.is_dir(), reason=f"no captures beside the project ({CAPTURES.name} is absent)"
)

FOLDERS = ("cohere/full", "cohere/stream", "cohere/error", "bedrock-invoke/full", "bedrock-invoke/stream")

UNMARKED = {
    "openllmetry-js__e-attributes-in-span-for-given-prompt-with-streaming-result_3091204960-recording": "Bedrock "
    "leaves out what Generate says of its version",
    "openllmetry__agents-agent_with_multiple_tools__5": "an error: a message and an id",
    "ruby_llm__chat_error_handling_with_cohere_command-a-03-2025_raises_appropriate_auth_error": "likewise",
    "ruby_llm__error_scenarios_cohere_command-a-03-2025_handles_context_length_exceeded_errors": "likewise",
}
"""Answers that carry no mark of Cohere's own: they are possibly its own, not certainly."""


@functools.cache
def recordings() -> dict[str, dict[str, Any]]:
    lines = (CAPTURES / "recorded/MANIFEST.jsonl").read_text(encoding="utf-8").splitlines()
    return {entry["file"]: entry for entry in map(json.loads, lines)}


def recorded(folder: str) -> list[Capture]:
    """The captures in *folder*; of what Bedrock invoked, those of Cohere's models."""
    found = load_captures(CAPTURES / "recorded" / folder)
    if folder.startswith("cohere"):
        return found
    shapes = (recordings()[f"{folder}/{capture.file.name}"]["shape"] for capture in found)
    return [capture for capture, shape in zip(found, shapes, strict=True) if str(shape).startswith("cohere")]


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_recording_keeps_the_promises(folder: str, request: pytest.FixtureRequest) -> None:
    given = request.config.getoption("--crosswalk-sample")
    sample = SAMPLE if given is None else None if given == "all" else int(given)
    tally, problems = Tally(), []
    found = recorded(folder)
    for capture in found:
        problems += check_capture(registry.mapper("cohere"), capture, sample=sample, tally=tally)
    print(f"\ncohere {folder}: {tally}")
    assert found
    assert not problems, "\n".join(str(problem) for problem in problems)


def test_coheres_own_answers_are_recognized() -> None:
    unmarked = {}
    for folder in FOLDERS:
        for capture in recorded(folder):
            found = max(Recognition(plugin.recognizes(event) or 0) for event in capture.events()[:50])
            if found is not Recognition.CERTAIN:
                unmarked[capture.case] = found
    assert unmarked == dict.fromkeys(UNMARKED, Recognition.POSSIBLE)
