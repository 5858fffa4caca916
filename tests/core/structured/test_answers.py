"""Texts of models, and the values that may come of them: never a wrong value, and the useful ones are read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import attrs
import pytest

from answer_corpus import SCHEMAS, Answer, load_corpus
from crosswalk.structured import Partial, ReasonCode, StructuredParser

ANSWERS = load_corpus()
PARSERS = {name: StructuredParser(schema) for name, schema in SCHEMAS.items()}
BARE_PARSERS = {name: StructuredParser(schema, prose="refuse") for name, schema in SCHEMAS.items()}

KINDS: defaultdict[str, list[Answer]] = defaultdict(list)
for one in ANSWERS:
    KINDS[one.id.rpartition("-")[0]].append(one)
of_each_kind = pytest.mark.parametrize("answers", KINDS.values(), ids=KINDS)


def each(check: Callable[[Answer], None], answers: list[Answer]) -> None:
    """*check* each of *answers* and return the faults of all, with their answers."""
    wrong = []
    for answer in answers:
        try:
            check(answer)
        except Exception as error:
            wrong.append(f"{answer.id}: {type(error).__name__}: {error}")
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.sweep
@of_each_kind
def test_an_answer_is_read_as_it_should_be(answers: list[Answer]) -> None:
    def check(answer: Answer) -> None:
        result = PARSERS[answer.schema].parse(answer.text)
        wanted = answer.want.get("value", answer.want.get("taken_back"))
        if wanted is not None:
            value, wrong = SCHEMAS[answer.schema].read(wanted)[:2]
            assert wrong == ()
            assert (result.value, result.reason) == (value, ReasonCode.SUCCESS), result.errors
        else:
            assert (result.value, result.ok) == (None, False)
            assert answer.want.get("refused") in (None, result.reason)

    each(check, answers)


@of_each_kind
def test_without_prose_nothing_is_read_that_prose_takes_back(answers: list[Answer]) -> None:
    def check(answer: Answer) -> None:
        result = BARE_PARSERS[answer.schema].parse(answer.text)
        if "value" not in answer.want:
            assert result.value is None
        elif result.value is None:
            assert result.reason is ReasonCode.PROSE

    each(check, answers)


@pytest.mark.sweep
@of_each_kind
def test_a_stream_ends_as_its_text_does(answers: list[Answer]) -> None:
    """And what it gives on the way is what the text until there gives, marked."""

    def check(answer: Answer) -> None:
        parser = PARSERS[answer.schema]
        pieces = [answer.text[at : at + 7] for at in range(0, len(answer.text), 7)]
        *steps, last = parser.parse_stream(pieces)
        whole_result = attrs.evolve(last, fields=None, final=frozenset())
        assert whole_result == parser.parse(answer.text)
        assert all(step.partial is (step.value is not None) for step in steps)
        assert all(step.reason is ReasonCode.TRUNCATED for step in steps)
        for partial in (Partial.CLOSE, Partial.ACCEPT):
            accepted = parser.parse(answer.text, partial=partial)
            assert accepted.ok is last.ok
            if last.reason is not ReasonCode.TRUNCATED:
                assert accepted == whole_result or accepted.partial

    each(check, answers)
