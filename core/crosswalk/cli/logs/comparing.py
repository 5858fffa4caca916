"""The one way in which stored answers are compared with what they are mapped to now."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import attrs

from crosswalk.cli.logs.stored import Failure, Outcome
from crosswalk.cli.terminal import harmless
from crosswalk.codec import ABSENT, Difference, differences
from crosswalk.testing.changes import ERROR, Summary
from crosswalk.types.response import ChatResponse
from crosswalk.types.segment import SegmentType

__all__ = ["Comparison", "between", "provider_of_both"]


class Comparison:
    """Counts what differs; it stays small, however much is compared, and goes from process to process.

    Args:
        accepted: the changes that are accepted, as :func:`crosswalk.cli.logs.accepted.read_accepted` gives them.

    Attributes:
        compared: how many answers were compared.
        different: how many of them differ in more than what is accepted.
        accepted: how many differ in accepted changes alone.
        summary: every kind of change.
    """

    def __init__(self, accepted: Set[tuple[str, str, str, str]] = frozenset()) -> None:
        self.summary = Summary(accepted)
        self.compared = 0
        self.different = 0
        self.accepted = 0

    def add(self, place: str, before: Outcome, after: Outcome) -> list[Difference]:
        """Compare one answer, and give in what it differs.

        Args:
            place: where it stands.
            before: the stored form.
            after: what it is mapped to now.
        """
        found = between(before, after)
        self.count(place, provider_of_both(before, after), found)
        return found

    def count(self, place: str, provider: str, found: list[Difference]) -> None:
        """Count one answer in that was compared.

        Args:
            place: where it stands.
            provider: whose it is; empty where nobody knows.
            found: in what it differs.
        """
        self.compared += 1
        if found:
            is_accepted = self.summary.add(found, provider, harmless(place))
            self.accepted += is_accepted
            self.different += not is_accepted

    def add_same(self, count: int) -> None:
        """Count answers in that are known to be the same."""
        self.compared += count

    def include(self, other: Comparison) -> None:
        """Count what *other* has compared in; it comes after what this one has."""
        self.summary.include(other.summary)
        self.compared += other.compared
        self.different += other.different
        self.accepted += other.accepted


def provider_of_both(before: Outcome, after: Outcome) -> str:
    """The provider of an answer, by what was stored or else by what it is now; empty where neither says."""
    return _provider(before) or _provider(after) or ""


def _provider(outcome: Outcome) -> str | None:
    response = outcome.partial if isinstance(outcome, Failure) else outcome
    return None if response is None else response.metadata.provider_id


def between(before: Outcome, after: Outcome) -> list[Difference]:
    """What *after* says otherwise than *before*; whether and how mapping fails comes before all else."""
    if _error(before) != _error(after):
        return [Difference((ERROR,), _message(before), _message(after))]
    one, other = _received(before), _received(after)
    if one is None or other is None:
        return [] if one is other else [Difference(("partial",), *map(_presence, (one, other)))]
    return differences(one, other)


def _received(outcome: Outcome) -> ChatResponse | None:
    """The response; of a failure what had been received, without the words of the error."""
    if not isinstance(outcome, Failure):
        return outcome
    partial = outcome.partial
    if partial is None or not partial.segments or partial.segments[-1].type is not SegmentType.ERROR:
        return partial
    return attrs.evolve(partial, refusal=None, segments=partial.segments[:-1])


def _error(outcome: Outcome) -> str | None:
    """How mapping failed. What the error said is wording, and no difference."""
    return outcome.error if isinstance(outcome, Failure) else None


def _message(outcome: Outcome) -> Any:
    return f"{outcome.error}: {outcome.message}" if isinstance(outcome, Failure) else ABSENT


def _presence(partial: object) -> Any:
    return ABSENT if partial is None else {}
