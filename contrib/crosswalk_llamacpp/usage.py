"""Several answers to one request: each has its own counts, the response has those of all (section 3)."""

from __future__ import annotations

from collections.abc import Hashable

import attrs

from crosswalk import MappingState, Provenance, UsageInfo

__all__ = ["begin_prompt", "has_one_report", "prompts_begun", "usage_of_all"]


@attrs.define
class _Prompt:
    """A prompt: how many answers it has, and what the last report says of it."""

    answers: int = 0
    tokens: int = 0
    cached: int | None = None


@attrs.define
class _Totals:
    """The counts of all answers so far; a report changes them without a look at all the others.

    Attributes:
        reports: of each answer its prompt, and how many tokens were generated.
        prompts: the prompts, by what tells them apart.
        prompt: the tokens of all prompts.
        cached: how many of them are known to come from a cache; ``None`` while no report says.
        completion: the tokens of all answers.
    """

    reports: dict[int, tuple[Hashable, int]] = attrs.Factory(dict)
    prompts: dict[Hashable, _Prompt] = attrs.Factory(dict)
    prompt: int = 0
    cached: int | None = None
    completion: int = 0

    def add(self, choice: int, prompt: Hashable, counts: UsageInfo) -> None:
        """Take the latest report of answer *choice* in."""
        former, generated = self.reports.get(choice, (None, 0))
        self.reports[choice] = (prompt, counts.completion_tokens)
        self.completion += counts.completion_tokens - generated
        known = self.prompts.setdefault(prompt, _Prompt())
        if former != prompt:
            known.answers += 1
            self._leave(former)
        self._change(known, counts.prompt_tokens, counts.cached_tokens)

    def _leave(self, prompt: Hashable) -> None:
        known = self.prompts.get(prompt)
        if known is not None:
            known.answers -= 1
            if not known.answers:
                self._change(known, 0, None if known.cached is None else 0)
                del self.prompts[prompt]

    def _change(self, known: _Prompt, tokens: int, cached: int | None) -> None:
        self.prompt += tokens - known.tokens
        if cached is not None:
            self.cached = (self.cached or 0) + cached - (known.cached or 0)
            known.cached = cached
        known.tokens = tokens


def _totals(state: MappingState) -> _Totals:
    totals: _Totals = state.data.setdefault("totals", _Totals())
    return totals


def begin_prompt(state: MappingState) -> int:
    """Note that the server has begun with one more prompt of this request, and say with how many by now."""
    state.data["prompts"] = prompts_begun(state) + 1
    return prompts_begun(state)


def prompts_begun(state: MappingState) -> int:
    """With how many prompts of this request the server has begun."""
    return int(state.data.get("prompts", 1))


def has_one_report(state: MappingState) -> bool:
    """Whether at most one answer has been counted: the response's usage is then what the server said."""
    return len(_totals(state).reports) < 2


def usage_of_all(choice: int, prompt: Hashable, counts: UsageInfo, state: MappingState) -> UsageInfo:
    """*counts*, the latest of answer *choice*, with those of the other answers.

    What was generated is added up. A prompt that has several answers was read once.

    Args:
        choice: the answer.
        prompt: what tells its prompt from those of other answers.
        counts: its counts so far.
        state: this stream's state.
    """
    totals = _totals(state)
    totals.add(choice, prompt, counts)
    if has_one_report(state):
        return counts
    state.note("usage.prompt_tokens", Provenance.DERIVED)
    state.note("usage.completion_tokens", Provenance.DERIVED)
    return UsageInfo(totals.prompt, totals.completion, totals.cached)
