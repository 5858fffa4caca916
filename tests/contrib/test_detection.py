"""Detection over every capture next to the project: the right provider, or an honest list of candidates."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable

import pytest

from beside import TRIED, captures_in, folders, is_answer, needs_captures, provider_of
from crosswalk import FramingError
from crosswalk.mapping.detect import candidates
from crosswalk.plugin.registry import registry
from crosswalk.plugins import Recognition
from crosswalk.testing import Capture
from known_differences import MISTAKEN, UNMARKED

pytestmark = [needs_captures, pytest.mark.sweep]

MARKED = ("anthropic", "bedrock", "cohere", "gemini", "llamacpp", "ollama", "sglang", "tgi")
"""The providers that write something of their own into every answer of their own dialect."""

WORDS = {
    Recognition.CERTAIN: "certain",
    Recognition.POSSIBLE: "candidate",
    Recognition.NO: "unrecognized",
}


@pytest.mark.parametrize("folder", folders())
def test_every_capture_is_detected_or_honestly_ambiguous(
    folder: str, record_property: Callable[[str, object], None]
) -> None:
    """No other provider is certain, and the right one is among the candidates, if there are any."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    problems = []
    for capture in captures_in(folder):
        right, found = provider_of(capture) or "(none)", recognized(capture)
        how = found.get(right, Recognition.NO)
        counts[right][WORDS[how]] += 1
        others = sorted(name for name, how in found.items() if how is Recognition.CERTAIN and name != right)
        if bool(others) != (capture.case in MISTAKEN):
            problems.append(f"{capture.case}: is {right}'s; certainly others': {others}")
        elif right != "(none)" and found and not how and not others:
            problems.append(f"{capture.case}: is {right}'s; recognized as {sorted(found)}")
        if found and is_marked(right, capture):
            is_listed = folder in UNMARKED or capture.case in UNMARKED
            if (how is not Recognition.CERTAIN) != is_listed:
                problems.append(f"{capture.case}: for {right} {WORDS[how]}; listed as unmarked: {is_listed}")
    record_property(TRIED, {name: dict(of_provider) for name, of_provider in counts.items()})
    assert not problems, "\n".join(problems)


def recognized(capture: Capture) -> dict[str, Recognition]:
    try:
        return candidates(capture.events(), registry)
    except (FramingError, ValueError):  # text, or a page of HTML
        return {}


def is_marked(provider: str, capture: Capture) -> bool:
    """Whether *capture* is an answer, and no error, in the dialect of a provider that marks its answers."""
    if provider not in MARKED or capture.status >= 400 or capture.file.parent.name == "error":
        return False
    mapper = registry.mapper(provider)
    is_of_others = capture.path in set(mapper.endpoints()) - set(mapper.info.endpoints)
    return is_answer(provider, capture) and not is_of_others
