"""The table of malformed answers: what the chain makes of each."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from crosswalk.structured import (
    FallbackUsed,
    Partial,
    ReasonCode,
    ResponseParser,
    Stage,
    StructuredParser,
    StructuredResponse,
)
from crosswalk.structured.response import RESPONSE_INVARIANTS

from .malformed import CASES, CUT, GOOD, MORE, Case

PARSER = ResponseParser()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_answer_ends_at_its_stage_with_its_reason(case: Case) -> None:
    result = PARSER.parse(case.text)
    assert (result.stage, result.reason) == (case.stage, case.reason), result.errors
    assert result.ok is (result.value is not None) is (result.reason is ReasonCode.SUCCESS)
    assert not result.partial
    if result.value is not None:
        assert result.errors == []
        assert all(rule.is_kept(result.value) for rule in RESPONSE_INVARIANTS)


@pytest.mark.parametrize("case", CUT, ids=lambda case: case.name)
def test_what_is_cut_is_marked_where_it_is_accepted(case: Case) -> None:
    result = PARSER.parse(case.text, partial=Partial.ACCEPT)
    assert not result.ok
    assert result.reason in (ReasonCode.TRUNCATED, ReasonCode.LIMIT_EXCEEDED)
    assert result.partial is (result.value is not None)


# -------------------------------------------------------------------------- truncation at every byte

DOCUMENTS = {
    "plain": GOOD,
    "all fields": MORE,
    "the answer last": '{"items_shown": 12, "items_total": 180, "answer": "Über 12 of \\u00e9 \\"180\\"\\n🦙 {x} [y]"}',
    "pretty": '{\n  "items_shown": 3,\n  "answer": "A",\n  "sources": [\n    {"title": "T", "n": [1, 2.5e3, null, true]}\n  ]\n}',
    "version 1.1": '{"schema_version": "1.1", "answer": "A", "items_shown": 3, "confidence": 0.95, "metadata": {"a": {"b": []}}}',
    "version 2.0": '{"schema_version": "2.0", "response": "A", "items_shown": 3, "citations": [{"title": "T", "quote": "q"}], "confidence": 1}',
    "an answer inside": '{"items_shown": 1, "answer": "A", "like": {"answer": "B", "items_shown": 2}, "x": [{"answer": "C", "items_shown": 3}]}',
    "JSON in a string": '{"items_shown": 1, "answer": "{\\"answer\\": \\"B\\", \\"items_shown\\": 2}"}',
    "in a fence": f"Sure:\n```json\n{MORE}\n```\nDone.",
    "in prose": f"Sure, here it is: {GOOD} Anything else?",
    "in a string of JSON": '"{\\"items_shown\\": 3, \\"answer\\": \\"A\\"}"',
    "in an array": f"[{GOOD}, {GOOD}]",
    "in a fence after an example": f'Form: {{"answer": "EXAMPLE", "items_shown": 0}}\n```json\n{MORE}\n```',
    "after an example that needs repair": f"Example: {{'answer': 'EXAMPLE', 'items_shown': 0}} Answer: {MORE}",
    "in a fence after a stray quote": f'A [5" pipe] costs:\n```json\n{MORE}\n```',
    "in single quotes": "{'items_shown': 3, 'answer': 'a}b] c'}",
    "in smart quotes": "{“items_shown”: 3, “answer”: “a}b] c”}",
}
"""In two of them a whole ``EXAMPLE`` comes first. Cut right after it, nobody can tell that another was to come."""


def is_example(value: StructuredResponse | None, cut: str) -> bool:
    """Whether *cut* ends before anything of a second answer, be it only the fence around it."""
    return value is not None and value.answer == "EXAMPLE" and cut.count("{") == 1 and "`" not in cut


def cuts(text: str) -> list[str]:
    """*text* cut at every byte. Half a character is what a decoder makes of it."""
    data = text.encode()
    return [data[:end].decode(errors="replace") for end in range(len(data))]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_cut_document_is_never_a_success(name: str) -> None:
    text = DOCUMENTS[name]
    whole = PARSER.parse(text).value
    is_complete_at = text.rfind("}") + 1 if whole is not None else len(text)
    for cut in cuts(text):
        result = PARSER.parse(cut)
        if result.ok and is_example(result.value, cut):
            continue
        if len(cut) < is_complete_at:
            assert not result.ok, cut
            assert result.value is None, cut
        else:
            assert result.value in (None, whole), cut  # only the words around it were cut


@pytest.mark.sweep
@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("partial", [Partial.CLOSE, Partial.ACCEPT])
def test_a_cut_document_that_is_accepted_is_marked_and_valid(name: str, partial: Partial) -> None:
    text = DOCUMENTS[name]
    whole = PARSER.parse(text).value
    for cut in cuts(text):
        result = PARSER.parse(cut, partial=partial)
        if result.value is None or result.value == whole or is_example(result.value, cut):
            continue
        assert (result.partial, result.reason, result.stage) == (True, ReasonCode.TRUNCATED, Stage.REPAIR), (
            cut
        )
        assert all(rule.is_kept(result.value) for rule in RESPONSE_INVARIANTS)


def is_part(part: object, whole: object) -> bool:
    """Whether *part* says nothing else than *whole*, and perhaps less."""
    if isinstance(part, tuple) and isinstance(whole, tuple):
        return all(is_part(*pair) for pair in zip(part, whole, strict=False)) and len(part) <= len(whole)
    if isinstance(part, Mapping) and isinstance(whole, Mapping):
        return all(key in whole and is_part(part[key], whole[key]) for key in part)
    return part == whole


@pytest.mark.parametrize("name", ["plain", "all fields", "the answer last", "pretty", "an answer inside"])
def test_only_brackets_missing_means_that_no_text_or_number_was_cut(name: str) -> None:
    """The result of ``close`` holds nothing that the whole document does not hold."""
    parser = StructuredParser(StructuredResponse)
    whole = parser.parse(DOCUMENTS[name]).unwrap()
    for cut in cuts(DOCUMENTS[name]):
        value = parser.parse(cut, partial=Partial.CLOSE).value
        if value is not None:
            assert value.answer == whole.answer
            assert value.items_shown == whole.items_shown
            assert value.items_total in (None, whole.items_total)
            assert is_part(value.sources, whole.sources)


@pytest.mark.untraced
@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_seed_s_function_marks_what_it_gives_of_a_cut_document(name: str) -> None:
    whole = PARSER.parse(DOCUMENTS[name]).value
    for cut in cuts(DOCUMENTS[name]):
        value, fallback = ResponseParser.parse_with_fallbacks(cut, enable_metrics=False)
        assert isinstance(fallback, FallbackUsed)
        assert value is None or value == whole or fallback.partial or is_example(value, cut), cut
