"""The table of answers: what is read of each, with prose around it and without."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from crosswalk.structured import ParseResult, ReasonCode, StructuredParser

from .answer_table import Case, Refused, TakenBack, load_table

CASES = load_table()
FAMILIES: defaultdict[str, list[Case]] = defaultdict(list)
for one in CASES:
    FAMILIES[one.id.rpartition("-")[0]].append(one)
PARSERS: dict[tuple[str, str], StructuredParser[Any]] = {}


def parse(case: Case, prose: Any) -> ParseResult[Any]:
    key = repr(case.type), prose
    if key not in PARSERS:
        PARSERS[key] = StructuredParser(case.type, prose=prose)
    return PARSERS[key].parse(case.text)


def is_right(result: ParseResult[Any], want: Any) -> bool:
    if isinstance(want, Refused):
        return result.value is None and want.reason in (None, result.reason)
    # By their text too: 0.1000 is no 0.1, and ten in Berlin is no eight in Greenwich.
    return result.ok and result.value == want and repr(result.value) == repr(want)


@pytest.mark.untraced
@pytest.mark.parametrize("cases", FAMILIES.values(), ids=FAMILIES)
def test_an_answer_gives_what_is_wanted(cases: list[Case]) -> None:
    wrong = []
    for case in cases:
        want = case.want.value if isinstance(case.want, TakenBack) else case.want
        result = parse(case, "allow")
        if not is_right(result, want):
            wrong.append((case.id, case.text, want, result))
    assert wrong == []


@pytest.mark.parametrize("cases", FAMILIES.values(), ids=FAMILIES)
def test_without_prose_only_bare_answers_are_taken(cases: list[Case]) -> None:
    wrong = []
    for case in cases:
        result = parse(case, "refuse")
        want = case.want if case.is_bare and not isinstance(case.want, Refused) else Refused()
        if not is_right(result, want):
            wrong.append((case.id, case.text, want, result))
        is_commented = any(mark in case.text for mark in ("//", "#", "/*"))
        if result.reason is ReasonCode.PROSE and not (result.before or result.after or is_commented):
            wrong.append((case.id, case.text, "the prose", result))
    assert wrong == []
