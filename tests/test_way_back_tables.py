"""The tables in docs/way-back.md are what the next requests hold now. ``python scripts/way_back.py`` writes them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from crosswalk import ChatResponse, FinishReason, normalize
from wires import body

sys.path.append(str(Path(__file__).parents[1] / "scripts"))
from way_back import PAGE, Fate, Kind, answers_of, current_page, fates, parts_of

CALL = {"id": "t1", "type": "function", "function": {"name": "ferry", "arguments": '{"day":1}'}}


@pytest.mark.sweep
def test_the_tables_are_current() -> None:
    """If this fails: ``python scripts/way_back.py``, and read the difference."""
    assert current_page() == PAGE.read_text(encoding="utf-8"), "run python scripts/way_back.py"


def test_nothing_is_lost_and_every_answer_can_be_gone_on_after() -> None:
    rows = [row for row in PAGE.read_text(encoding="utf-8").splitlines() if row.startswith("|")]
    table = rows[rows.index("| provider | part | same provider | after save and load |") :]
    assert len(table) > 100
    assert [row for row in table if "lost" in row or "no request" in row] == []


def answer(provider: str, finish: str = "stop", **message: object) -> ChatResponse:
    return normalize(body({"content": None, **message}, finish), provider, unknown="keep")


def test_each_part_has_its_kind() -> None:
    cut = answer("vllm", "length", content="Nine", reasoning="Hm.")
    calls = answer("vllm", "tool_calls", tool_calls=[CALL, {**CALL, "id": "t2"}])
    one = answer("vllm", "tool_calls", content="Look.", tool_calls=[CALL])
    refusal = answer("openai", refusal="No.")
    assert [part.kind for part in parts_of(cut)] == [Kind.CUT, Kind.REASONING]
    assert [part.kind for part in parts_of(calls)] == [Kind.CALLS, Kind.CALLS]
    assert [part.kind for part in parts_of(one)] == [Kind.TEXT, Kind.CALL]
    assert [part.kind for part in parts_of(refusal)] == [Kind.REFUSAL]
    assert cut.finish_reason is FinishReason.LENGTH


def test_what_is_in_the_request_is_back_and_what_is_not_is_lost() -> None:
    thinks = answer("vllm", content="Nine.", reasoning="Hm.")
    assert dict(fates(thinks, "vllm")) == {Kind.TEXT: Fate.BACK, Kind.REASONING: Fate.BACK}
    assert dict(fates(thinks, "mistral"))[Kind.REASONING] in (Fate.LOST, Fate.NAMED)
    calls = answer("vllm", "tool_calls", tool_calls=[CALL])
    assert dict(fates(calls, "vllm")) == {Kind.CALL: Fate.BACK}
    assert dict(fates(calls, "perplexity")) == {Kind.CALL: Fate.WORDS}


def test_only_what_is_planted_counts_in_a_planted_answer() -> None:
    planted = next(one for one in answers_of("anthropic") if one.id.endswith(": block"))
    assert [part.kind for part in parts_of(planted)] == [Kind.BLOCK]
