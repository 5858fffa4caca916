"""The table of answers."""

from __future__ import annotations

from collections import Counter

from .answer_table import Refused, TakenBack, load_table

CASES = load_table()


def test_the_table_is_large_and_of_every_kind() -> None:
    assert len(CASES) >= 900
    assert max(Counter(case.id for case in CASES).values()) == 1
    refused = [case for case in CASES if isinstance(case.want, Refused)]
    taken_back = [case for case in CASES if isinstance(case.want, TakenBack)]
    assert min(len(refused), len(CASES) - len(refused) - len(taken_back)) > 300
