"""Every recorded ``generateContent`` exchange beside the project, from where it lies: they may not be copied in.

The folder is ``$CROSSWALK_CAPTURES``, by default ``../shared/captures`` beside the project. Where it is absent these
tests skip. They try a seeded sample of leaves; ``--crosswalk-sample all -s`` tries them all and prints the counts.
No server of this project's own speaks this dialect, so there is nothing of it under ``live``.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from crosswalk import Reader, ReaderOptions, Recognition, UnknownEventError
from crosswalk.plugin import registry
from crosswalk.testing import Capture, Tally, check_capture, check_pair, load_captures, pairs
from crosswalk_gemini import plugin

ROOT = Path(__file__).parents[2]
CAPTURES = Path(os.environ.get("CROSSWALK_CAPTURES", ROOT / "../shared/captures")).resolve()
SAMPLE = 2

ENDS_TWICE = "the server says STOP more than once: cut after the first, the stream looks whole"
NO_ANSWER = "the answer of countTokens, not of a model: an unknown event, of which nothing is kept"
EXCEPTIONS = {
    "generative-ai-js__mock-responses-streaming-success-search-grounding": ENDS_TWICE,
    "rig__stream_terminal_matrix-two_terminal_stream_with_visible_thoughts": ENDS_TWICE,
    "vertexai-sdk-test-data__vertexai-streaming-failure-recitation-no-content": ENDS_TWICE,
    "vertexai-sdk-test-data__vertexai-unary-success-detailed-token-response": NO_ANSWER,
}
"""What is known to be reported, each with the reason: facts about the recording, not about the mapping."""
BROKEN = {ENDS_TWICE: {"P4"}, NO_ANSWER: {"P1", "P4"}}

pytestmark = pytest.mark.skipif(
    not CAPTURES.is_dir(), reason=f"no captures beside the project ({CAPTURES.name} is absent)"
)


def recorded(folder: str) -> list[Capture]:
    return load_captures(CAPTURES / "recorded" / folder)


@pytest.mark.parametrize("kind", ["full", "stream", "error"])
def test_every_capture_keeps_the_promises(kind: str, request: pytest.FixtureRequest) -> None:
    """P1 to P5 and P8 hold for every capture, except where the one list above says why not."""
    mapper = registry.mapper("gemini")
    given = request.config.getoption("--crosswalk-sample")
    sample = SAMPLE if given is None else None if given == "all" else int(given)
    tally, problems = Tally(), []
    found = recorded(f"gemini/{kind}")
    for capture in found:
        known = BROKEN.get(EXCEPTIONS.get(capture.case, ""), set())
        reported = check_capture(mapper, capture, sample=sample, tally=tally)
        problems += [problem for problem in reported if problem.promise not in known]
    for whole, streamed in pairs(found):
        problems += check_pair(mapper, whole, streamed)
    print(f"\ngemini {kind}: {tally}, {len(pairs(found))} pairs")
    assert found
    assert not problems, "\n".join(str(problem) for problem in problems)


def test_every_exception_is_still_one() -> None:
    mapper = registry.mapper("gemini")
    found = [capture for kind in ("full", "stream", "error") for capture in recorded(f"gemini/{kind}")]
    for capture in found:
        if capture.case in EXCEPTIONS:
            reported = check_capture(mapper, capture, checks=["nothing lost", "never silently wrong"])
            assert {problem.promise for problem in reported} == BROKEN[EXCEPTIONS[capture.case]]
    assert set(EXCEPTIONS) <= {capture.case for capture in found}


def test_every_stream_reads_the_same_as_an_array() -> None:
    """The other framing of the same stream: only the rests, which are kept item by item, lie elsewhere."""
    mapper = registry.mapper("gemini")
    tried = 0
    for capture in recorded("gemini/stream"):
        events = capture.events()
        if len(events) < 2 or "unknown-enum" in capture.case:
            continue
        one_by_one, array = Reader(mapper, ReaderOptions()), Reader(mapper, ReaderOptions())
        for event in events:
            list(one_by_one.read_event(event))
        list(array.read_event(events))
        list(one_by_one.finish()), list(array.finish())
        left, right = one_by_one.response(), array.response()
        for name in ("message", "finish_reason", "usage", "segments", "logprobs", "refusal", "alternatives"):
            assert getattr(left, name) == getattr(right, name), (capture.case, name)
        tried += 1
    assert tried >= 20


def test_every_answer_is_recognized() -> None:
    """Every answer carries a mark of this API alone, every error could be another server's."""
    for kind in ("full", "stream"):
        for capture in recorded(f"gemini/{kind}"):
            found = max(plugin.recognizes(event) for event in capture.events())
            assert found is Recognition.CERTAIN, capture.case
    for capture in recorded("gemini/error"):
        if EXCEPTIONS.get(capture.case) != NO_ANSWER:
            assert plugin.recognizes(capture.events()[0]) is Recognition.POSSIBLE, capture.case


def test_no_other_servers_answer_is_taken_for_certain() -> None:
    wrong = []
    manifest = (CAPTURES / "recorded/MANIFEST.jsonl").read_text(encoding="utf-8").splitlines()
    apis = {entry["file"].rsplit("/", 1)[0] for entry in map(json.loads, manifest)} - {
        f"gemini/{kind}" for kind in ("full", "stream", "error")
    }
    for folder in sorted(apis):
        for capture in recorded(folder):
            if capture.is_json and any(
                plugin.recognizes(event) is Recognition.CERTAIN for event in capture.events()[:5]
            ):
                wrong.append(f"{folder}/{capture.case}")
    assert wrong == []


def test_the_interactions_api_is_another_protocol() -> None:
    mapper = registry.mapper("gemini")
    for kind in ("full", "stream"):
        for capture in recorded(f"gemini-interactions/{kind}"):
            reader = Reader(mapper, ReaderOptions())
            with pytest.raises(UnknownEventError):
                list(reader.read(capture.body)), list(reader.finish())
