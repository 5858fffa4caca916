"""Real answers of every provider, converted to every form, whole and streamed, read back and compared. The
official clients read the streams.

Those of the project always. Thousands more are next to it in ``$CROSSWALK_CAPTURES``, of which each run tries
some: with ``--crosswalk-sample all`` every one, by default every twentieth.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from beside import TRIED, answers_in, folders, needs_captures
from converting import (
    FORMS,
    accept_body,
    accept_stream,
    broad_first,
    hidden_losses,
    lost_essentials,
    read_body,
    read_stream,
    trouble_of_client,
)
from crosswalk import ChatResponse, MappingError, normalize, normalize_stream
from crosswalk.convert import ConversionReport, convert, convert_stream
from crosswalk.formats.writing import source_form
from crosswalk.testing import Capture, load_captures

OWN = Path(__file__).parents[2] / "captures"
PROVIDERS = sorted(folder.name for folder in OWN.iterdir() if folder.is_dir())
EVERY = 20

Record = Callable[[str, object], None]


@pytest.mark.parametrize("provider", broad_first(PROVIDERS))
def test_of_the_projects_own_captures_nothing_is_lost_in_silence(provider: str) -> None:
    counts: Counter[str] = Counter()
    problems = []
    for capture in load_captures(OWN / provider):
        problems += problems_of(provider, capture, counts)
    assert counts["converted"]
    assert not problems, "\n".join(problems)


@needs_captures
@pytest.mark.sweep
@pytest.mark.parametrize("folder", folders())
def test_of_the_captures_beside_the_project_nothing_is_lost_in_silence(
    folder: str, request: pytest.FixtureRequest, record_property: Record
) -> None:
    given = request.config.getoption("--crosswalk-sample")
    every = 1 if given == "all" else EVERY
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    problems = []
    for number, (provider, capture) in enumerate(answers_in(folder)):
        if number % every == 0:
            problems += problems_of(provider, capture, counts[provider])
    record_property(TRIED, {name: dict(of_provider) for name, of_provider in counts.items()})
    print(f"\n{folder}: {', '.join(f'{name} {dict(count)}' for name, count in counts.items())}")
    assert not problems, "\n".join(problems)


def problems_of(provider: str, capture: Capture, counts: Counter[str]) -> list[str]:
    """The faults of the conversions of *capture*. Nothing for one that cannot be read at all."""
    try:
        answer = normalize(capture.body, provider, status=capture.status)
    except MappingError:
        counts["unreadable"] += 1
        return []
    problems = []
    for form in FORMS:
        converted = convert(answer, form)
        is_own = converted.value.strip() == capture.body.strip() or source_form(answer) is form
        own = provider if is_own and converted.status == 200 else None
        accept_body(converted, capture.body)
        problems += [
            f"{capture.case} to {form}: {loss}"
            for loss in lost(answer, read_body(converted, own), converted.report)
        ]
        deltas = normalize_stream([capture.body], provider, status=capture.status)
        stream = convert_stream(deltas, form)
        sent = b"".join(stream)
        accept_stream(form, sent, capture.body)
        trouble = trouble_of_client(form, sent)
        if trouble is not None:
            problems.append(f"{capture.case} to {form}, streamed: {trouble}")
        found = lost(deltas.response, read_stream(form, sent, own), stream.report)
        problems += [f"{capture.case} to {form}, streamed: {loss}" for loss in found]
        counts["converted"] += 2
    return problems


def lost(before: ChatResponse, after: ChatResponse, report: ConversionReport) -> list[str]:
    """Losses that the report does not name, and parts that must not be lost at all."""
    return [*hidden_losses(before, after, report), *lost_essentials(before, after, report)]
