"""Every capture of Text Generation Inference that lies beside the project: recordings that may not be copied in.

The folder is ``$CROSSWALK_CAPTURES``, by default ``../shared/captures`` beside the project. Where it is absent these
tests skip. They try a seeded sample of leaves; ``--crosswalk-sample all -s`` tries all and prints the counts.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from crosswalk import Recognition, registry
from crosswalk.testing import Capture, Tally, check_capture, load_captures
from crosswalk_tgi import plugin

ROOT = Path(__file__).parents[2]
CAPTURES = Path(os.environ.get("CROSSWALK_CAPTURES", ROOT / "../shared/captures")).resolve()
SAMPLE = 3

UNMARKED = {
    "text-generation-inference__basic_tutorials-using_guidance": "a text alone, which other services answer, too",
}
"""Answers of TGI's that carry no mark of its own: they are possibly its own, not certainly."""

pytestmark = pytest.mark.skipif(
    not CAPTURES.is_dir(), reason=f"no captures beside the project ({CAPTURES.name} is absent)"
)


def captures() -> list[Capture]:
    return [c for kind in ("full", "stream") for c in load_captures(CAPTURES / "recorded/tgi" / kind)]


def test_every_capture_keeps_the_promises(request: pytest.FixtureRequest) -> None:
    """P1 to P5 and P8 hold for every recording of the native and the OpenAI endpoints."""
    given = request.config.getoption("--crosswalk-sample")
    sample = SAMPLE if given is None else None if given == "all" else int(given)
    tally, problems = Tally(), []
    found = captures()
    for capture in found:
        problems += check_capture(registry.mapper("tgi"), capture, sample=sample, tally=tally)
    print(f"\ntgi recorded/tgi: {tally}")
    assert found
    assert not problems, "\n".join(str(problem) for problem in problems)


def test_its_answers_are_recognized() -> None:
    """For certain, but for the listed ones, and nobody else's are."""
    assert {
        c.case: recognized(c) for c in captures() if recognized(c) is not Recognition.CERTAIN
    } == dict.fromkeys(UNMARKED, Recognition.POSSIBLE)
    for folder in ("live/vllm", "live/llama-server", "live/sglang", "live/ollama"):
        others = load_captures(CAPTURES / folder)
        assert all(recognized(capture) is not Recognition.CERTAIN for capture in others)


def recognized(capture: Capture) -> Recognition:
    events = capture.events()[:50] if capture.is_json else []
    return max((Recognition(plugin.recognizes(event)) for event in events), default=Recognition.NO)
