"""The usage of a response from a server that counts each of its answers apart."""

from __future__ import annotations

from hypothesis import given, strategies as st

from crosswalk import UsageInfo
from crosswalk.plugins import MappingState, Totals

COUNT = st.none() | st.integers(0, 9)
REPORTS = st.tuples(st.integers(0, 3), st.sampled_from("abc"), COUNT, COUNT).filter(
    lambda r: r[2:] != (None, None)
)


@given(st.lists(REPORTS, min_size=1, max_size=12))
def test_the_counts_are_those_of_the_last_reports_of_all(
    reports: list[tuple[int, str, int | None, int | None]],
) -> None:
    """Whatever was reported before, and of which prompt the server said that it was the answer. Null takes nothing back."""
    state = MappingState("test")
    answers: dict[int, tuple[str, int]] = {}
    prompts: dict[str, int] = {}
    for choice, prompt, tokens, generated in reports:
        counts = state.usage_info(tokens, generated)
        assert counts is not None
        found = state.own(Totals).add(choice, prompt, counts, state)
        former, before = answers.get(choice, (prompt, 0))
        answers[choice] = (prompt, before if generated is None else generated)
        if tokens is not None:
            prompts[prompt] = tokens
        elif prompt != former:
            prompts[prompt] = prompts.get(prompt) or prompts.get(former, 0)
        prompts = {key: count for key, count in prompts.items() if key in {of for of, _ in answers.values()}}
    if len(answers) > 1:
        assert found.completion_tokens == sum(generated for _, generated in answers.values())
        assert found.prompt_tokens == sum(prompts.values())
    else:
        assert found == counts


def test_one_answer_has_the_counts_that_it_reports_and_no_word_about_a_sum() -> None:
    state = MappingState("test")
    counts = UsageInfo(5, 2, reasoning_tokens=1)
    assert state.own(Totals).add(0, None, counts, state) is counts
    assert state.provenance == {}


def test_what_was_cached_is_counted_once_for_each_prompt_that_is_counted() -> None:
    state = MappingState("test")
    totals = state.own(Totals)
    totals.add(0, "a", UsageInfo(5, 1, 4), state)
    assert totals.add(1, "a", UsageInfo(5, 1, 4), state) == UsageInfo(5, 2, 4)
    assert totals.add(2, "b", UsageInfo(7, 1, 3), state) == UsageInfo(12, 3, 7)
    assert totals.add(2, "a", UsageInfo(5, 1), state) == UsageInfo(5, 3, 4)
    state.note("usage.prompt_tokens", "absent")
    assert totals.add(2, "c", UsageInfo(0, 1, 9), state) == UsageInfo(10, 3, 13)
    assert totals.add(3, None, UsageInfo(0, 1, 9), state) == UsageInfo(10, 4, 13)


def test_a_prompt_that_is_named_late_takes_its_counts_along() -> None:
    state = MappingState("test")
    totals = state.own(Totals)
    totals.add(0, None, UsageInfo(5, 1, 4), state)
    totals.add(1, None, UsageInfo(6, 1), state)
    state.note("usage.prompt_tokens", "absent")
    assert totals.add(0, "a", UsageInfo(0, 2), state) == UsageInfo(11, 3, 4)
    assert state.provenance["usage.prompt_tokens"] == "derived"
