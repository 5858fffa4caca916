"""What the server counted and measured of an answer, and of several answers to one request (sections 3, 5 and 6).

Each answer has its own counts, the response has those of all. The object ``timings`` stays in the extensions.
"""

from __future__ import annotations

from collections.abc import Hashable
from datetime import timedelta
from typing import Any

import attrs

from crosswalk.plugins import (
    MappingState,
    Provenance,
    UsageInfo,
    accept_object,
    look_at,
    look_at_count,
)

__all__ = ["Totals", "cached_tokens", "note_duration", "usage_of_all", "usage_of_timings"]

_TIMES = ("prompt_ms", "predicted_ms")
_LONGEST = 1e15  # milliseconds: what a timedelta still holds


def note_duration(event: dict[str, Any], state: MappingState) -> None:
    """Note how long the prompt and the answer took together; of several answers at once, the longest."""
    timings = _timings(event)
    times = [time for name in _TIMES if (time := look_at(timings, name, float)) is not None]
    is_known = bool(times) and len(times) == sum(timings.get(name) is not None for name in _TIMES)
    if is_known and 0 <= sum(times) < _LONGEST:
        known = state.request_duration or timedelta()
        state.request_duration = max(known, timedelta(milliseconds=sum(times)))
        state.note("metadata.request_duration", Provenance.DERIVED)


def cached_tokens(event: dict[str, Any]) -> int | None:
    """How many tokens of the prompt came from a cache; ``None`` where it is not said, as in older versions."""
    return look_at_count(_timings(event), "cache_n")


def usage_of_timings(event: dict[str, Any], state: MappingState) -> UsageInfo | None:
    """The counts of a stream whose usage was not asked for; ``None`` without timings (section 5).

    ``prompt_n`` counts the tokens that were processed now, those from the cache come on top. A version that does
    not say how many came from there leaves the prompt's count unknown.
    """
    timings = _timings(event)
    fresh, completion = (look_at_count(timings, name) for name in ("prompt_n", "predicted_n"))
    if fresh is None and completion is None:
        return None
    cached = cached_tokens(event)
    prompt = None if fresh is None or cached is None else fresh + cached
    counts = state.usage_info(prompt, completion, cached_tokens=cached)
    if prompt is not None:
        state.note("usage.prompt_tokens", Provenance.DERIVED)
    return counts


def _timings(event: dict[str, Any]) -> dict[str, Any]:
    return accept_object(event, "timings") or {}


@attrs.define
class _Prompt:
    """A prompt: how many answers it has, and what the last report says of it."""

    answers: int = 0
    tokens: int = 0
    cached: int | None = None


@attrs.define
class Totals:
    """The counts of all answers so far; a report changes them without a look at all the others.

    Attributes:
        reports: of each answer its prompt, and how many tokens were generated.
        prompts: the prompts, by what tells them apart.
        prompts_begun: with how many prompts the server has begun, as far as it says so.
        choice: in the OpenAI layer, the answer that an event without choices is about.
        prompt: the tokens of all prompts.
        cached: how many of them are known to come from a cache; ``None`` while no report says.
        completion: the tokens of all answers.
    """

    reports: dict[int, tuple[Hashable, int]] = attrs.Factory(dict)
    prompts: dict[Hashable, _Prompt] = attrs.Factory(dict)
    prompts_begun: int = 1
    choice: int = 0
    prompt: int = 0
    cached: int | None = None
    completion: int = 0

    @property
    def has_one_report(self) -> bool:
        """Whether at most one answer has been counted: the response's usage is then what the server said."""
        return len(self.reports) < 2

    def add(
        self, choice: int, prompt: Hashable, tokens: int | None, completion: int | None, cached: int | None
    ) -> None:
        """Take the latest report of answer *choice* in; what it does not say, the one before still does."""
        former, generated = self.reports.get(choice, (None, 0))
        if prompt is None:
            prompt = choice if former is None else former
        if completion is None:
            completion = generated
        self.reports[choice] = (prompt, completion)
        self.completion += completion - generated
        known = self.prompts.setdefault(prompt, _Prompt())
        if former != prompt:
            known.answers += 1
            left = self.prompts.get(former)
            if left is not None:
                if tokens is None:
                    tokens = known.tokens or left.tokens
                if cached is None and known.cached is None:
                    cached = left.cached
                self._leave(former, left)
        if tokens is None:
            tokens = known.tokens
        # What was cached of a prompt that nobody has counted would be added to the others' alone.
        self._change(known, tokens, cached if tokens else None)

    def _leave(self, prompt: Hashable, known: _Prompt) -> None:
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


def usage_of_all(choice: int, prompt: Hashable, counts: UsageInfo, state: MappingState) -> UsageInfo:
    """*counts*, the latest of answer *choice*, with those of the other answers.

    What was generated is added up. A prompt that has several answers was read once.

    Args:
        choice: the answer.
        prompt: what tells its prompt from those of other answers; ``None`` where this report does not say.
        counts: its counts so far; ``state`` has noted which of them are absent.
        state: the state of this answer.
    """
    totals = state.own(Totals)
    tokens, completion = (
        None if state.provenance.get(f"usage.{name}") is Provenance.ABSENT else getattr(counts, name)
        for name in ("prompt_tokens", "completion_tokens")
    )
    totals.add(choice, prompt, tokens, completion, counts.cached_tokens)
    if totals.has_one_report:
        return counts
    state.note("usage.prompt_tokens", Provenance.DERIVED)
    state.note("usage.completion_tokens", Provenance.DERIVED)
    return UsageInfo(totals.prompt, totals.completion, totals.cached)
