"""Several answers to one request: each has its own counts, the response has those of all (section 3)."""

from __future__ import annotations

import attrs

from crosswalk import MappingState, Provenance, UsageInfo

__all__ = ["has_one_report", "usage_of_all"]


@attrs.define
class _Totals:
    """The counts of all answers so far."""

    reports: dict[int, UsageInfo] = attrs.Factory(dict)
    prompt: int = 0
    completion: int = 0


def _totals(state: MappingState) -> _Totals:
    totals: _Totals = state.data.setdefault("totals", _Totals())
    return totals


def has_one_report(state: MappingState) -> bool:
    """Whether at most one answer has been counted: the response's usage is then what the server said."""
    return len(_totals(state).reports) < 2


def usage_of_all(choice: int, counts: UsageInfo, state: MappingState) -> UsageInfo:
    """*counts*, the latest of answer *choice*, and those of the other answers: each has a prompt of its own."""
    totals = _totals(state)
    former = totals.reports.get(choice, UsageInfo.EMPTY)
    totals.reports[choice] = counts
    totals.prompt += counts.prompt_tokens - former.prompt_tokens
    totals.completion += counts.completion_tokens - former.completion_tokens
    if has_one_report(state):
        return counts
    state.note("usage.prompt_tokens", Provenance.DERIVED)
    state.note("usage.completion_tokens", Provenance.DERIVED)
    return attrs.evolve(counts, prompt_tokens=totals.prompt, completion_tokens=totals.completion)
