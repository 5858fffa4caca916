"""The usage of a response with separate counts for each of its answers."""

from __future__ import annotations

from collections.abc import Hashable

import attrs

from crosswalk.plugin.state import MappingState
from crosswalk.types.usage import Provenance, UsageInfo


@attrs.define(eq=False, repr=False)
class _Prompt:
    """A prompt: the number of its answers, and its counts in the last report."""

    answers: int = 0
    tokens: int = 0
    cached: int | None = None


@attrs.define(eq=False, repr=False)
class Totals:
    """The counts of all answers so far (``state.own(Totals)``); a report changes them without reading all the others."""

    # For each answer its prompt, and its generated tokens.
    _reports: dict[int, tuple[Hashable, int]] = attrs.Factory(dict)
    _prompts: dict[Hashable, _Prompt] = attrs.Factory(dict)
    _tokens: int = 0
    _cached: int | None = None
    _completion: int = 0

    def add(self, choice: int, prompt: Hashable, counts: UsageInfo, state: MappingState) -> UsageInfo:
        """Return *counts*, the latest of answer *choice*, plus those of the other answers, or *counts* without any.

        Generated tokens are added. A prompt with several answers was read once. Counts missing from a report keep their
        previous value.

        Args:
            choice: the answer.
            prompt: identifies its prompt among those of other answers, or ``None`` if this report does not.
            counts: its counts so far. *state* has noted the absent ones.
            state: the state of the response.
        """
        said_tokens, said_completion = (
            None if state.provenance.get(f"usage.{name}") is Provenance.ABSENT else getattr(counts, name)
            for name in ("prompt_tokens", "completion_tokens")
        )
        former, generated = self._reports.get(choice, (None, 0))
        if prompt is None:
            prompt = choice if former is None else former
        completion = generated if said_completion is None else said_completion
        self._reports[choice] = prompt, completion
        self._completion += completion - generated
        known = self._prompts.setdefault(prompt, _Prompt())
        tokens = known.tokens if said_tokens is None else said_tokens
        cached = counts.cached_tokens
        if prompt != former:
            known.answers += 1
            remaining = self._prompts.get(former)
            if remaining is not None:
                if said_tokens is None:
                    tokens = tokens or remaining.tokens
                if cached is None and known.cached is None:
                    cached = remaining.cached
                self._leave(former, remaining)
        self._tokens += tokens - known.tokens
        known.tokens = tokens
        # Cached tokens of an uncounted prompt would be added only to those of the others.
        if cached is not None and tokens:
            self._cached = (self._cached or 0) + cached - (known.cached or 0)
            known.cached = cached
        if len(self._reports) == 1:
            return counts
        state.note("usage.prompt_tokens", Provenance.DERIVED)
        state.note("usage.completion_tokens", Provenance.DERIVED)
        return UsageInfo(self._tokens, self._completion, self._cached)

    def _leave(self, prompt: Hashable, left: _Prompt) -> None:
        left.answers -= 1
        if not left.answers:
            del self._prompts[prompt]
            self._tokens -= left.tokens
            if left.cached is not None:
                self._cached = (self._cached or 0) - left.cached
