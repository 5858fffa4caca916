"""Every capture next to the project, from its own folder, under the provider that reads it.

If the folder is absent these tests skip. Every capture is read and compared with its pair. Each run tries a
part of the rest, which takes most of the time, by the names of the captures: one of five with other texts in
its place and with other answers, one of ten also with a seeded sample of its leaves, and one of thirty also
cut and with wrong types. ``pytest tests/providers --crosswalk-sample 30`` does all of it to every capture,
with that many leaves and cuts. ``all`` takes all of them. The end lists the tries.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable

import attrs
import pytest

from beside import TRIED, answers_in, captures_in, folders, needs_captures, provider_of
from crosswalk.plugin.registry import registry
from crosswalk.testing import CHECKS, Capture, Problem, Tally, check_capture, check_pair, pairs
from known_differences import (
    BROKEN_PROMISES,
    EXCEPTIONS,
    MISTAKEN,
    NO_ANSWERS,
    NOT_COMPARED,
    SEVERAL_STREAMS,
    UNEQUAL_PAIRS,
    UNMARKED,
)

SAMPLE = 2
SAMPLE_OF_LISTED = 40  # so many find what breaks
ONE_OF = 30
WITH_LEAVES = 3
WITH_TEXTS = 6
TEXTS = ("text paths hold", "body leaves hold", "one answer at a time")
SLOW = ("framing does not matter", "never silently wrong")

pytestmark = [needs_captures, pytest.mark.sweep]


@attrs.frozen
class Thoroughness:
    """How much of each capture is tried.

    Attributes:
        sample: how many leaves and cuts; ``None`` for all.
        is_complete: whether the slow checks are made of every capture.
    """

    sample: int | None = SAMPLE
    is_complete: bool = False

    def check(self, provider: str, capture: Capture, tally: Tally) -> list[Problem]:
        lot = 0 if self.is_complete else random.Random(capture.case).randrange(ONE_OF)
        sample = self.sample if lot < WITH_LEAVES else 0
        left_out = (*(SLOW if lot else ()), *(TEXTS if lot >= WITH_TEXTS else ()))
        checks = [name for name in CHECKS if name not in left_out]
        if capture.case in MISTAKEN:
            checks.remove("recognizes its own")
        known = EXCEPTIONS.get(provider, ())
        mapper = registry.mapper(provider)
        return check_capture(mapper, capture, sample=sample, checks=checks, tally=tally, exceptions=known)


@pytest.fixture
def thoroughness(request: pytest.FixtureRequest) -> Thoroughness:
    given = request.config.getoption("--crosswalk-sample")
    if given is None:
        return Thoroughness()
    return Thoroughness(None if given == "all" else int(given), is_complete=True)


@pytest.mark.parametrize("folder", folders())
def test_every_answer_keeps_the_promises(
    folder: str, thoroughness: Thoroughness, record_property: Callable[[str, object], None]
) -> None:
    """P1, P3, P4, P5 and P8 for each answer, P2 for each pair. Each listed exception is still one."""
    answers: defaultdict[str, list[Capture]] = defaultdict(list)
    for provider, capture in answers_in(folder):
        answers[provider].append(capture)
    assert answers or not any(map(provider_of, captures_in(folder)))
    tried, problems = {}, []
    for provider, captures in answers.items():
        tally, exceptions, in_both_forms = Tally(), 0, pairs(captures)
        for capture in captures:
            if capture.case in BROKEN_PROMISES:
                exceptions += 1
                problems += unlike_the_list(provider, capture, thoroughness, tally)
            else:
                problems += [str(problem) for problem in thoroughness.check(provider, capture, tally)]
        for whole, streamed in in_both_forms:
            is_listed = not names_of_pair(whole, streamed).isdisjoint(UNEQUAL_PAIRS)
            exceptions += is_listed
            problems += disagreements(provider, whole, streamed, is_listed=is_listed)
        tried[provider] = attrs.asdict(tally) | {"pairs": len(in_both_forms), "exceptions": exceptions}
    record_property(TRIED, tried)
    assert not problems, "\n".join(problems)


def unlike_the_list(provider: str, capture: Capture, thoroughness: Thoroughness, tally: Tally) -> list[str]:
    known, given = EXCEPTIONS.get(provider, ()), thoroughness.sample
    sample = None if given is None else max(given, SAMPLE_OF_LISTED)
    found = check_capture(registry.mapper(provider), capture, sample=sample, tally=tally, exceptions=known)
    broken, listed = {problem.promise for problem in found}, BROKEN_PROMISES[capture.case].promises
    if broken == listed:
        return []
    return [f"{capture.case}: breaks {sorted(broken)}, and is listed with {sorted(listed)}"]


def disagreements(provider: str, whole: Capture, streamed: Capture, *, is_listed: bool) -> list[str]:
    ignored = NOT_COMPARED.get(whole.file.parent.name, ())
    found = check_pair(registry.mapper(provider), whole, streamed, ignored=ignored)
    if is_listed:
        return [] if found else [f"{streamed.case}: equal, and listed as unequal"]
    return [f"{whole.file.parent.name}: {problem}" for problem in found]


def names_of_pair(whole: Capture, streamed: Capture) -> set[str]:
    """How the list calls the two: by what they have in common, or, where several streams have, by the one."""
    server = whole.file.parent.name
    return {f"{server}/{whole.pair}", f"{server}/{streamed.case}"}


def test_every_exception_is_one_of_a_capture() -> None:
    found = [capture for folder in folders() for capture in captures_in(folder)]
    cases = {capture.case for capture in found} | set(folders())
    servers = {capture.file.parent.name for capture in found}
    assert set(UNEQUAL_PAIRS) <= {name for capture in found for name in names_of_pair(capture, capture)}
    assert set(NOT_COMPARED) <= servers
    assert cases >= {*BROKEN_PROMISES, *NO_ANSWERS, *SEVERAL_STREAMS, *MISTAKEN, *UNMARKED}
