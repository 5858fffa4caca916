"""What an agent did: turn by turn, and altogether."""

from __future__ import annotations

from collections.abc import AsyncIterable, Mapping
from enum import StrEnum
from typing import Any

import attrs

from crosswalk.agent.calls import with_calls
from crosswalk.agent.result import ToolExecutionResult
from crosswalk.errors import CrosswalkError, ResponseValidationError
from crosswalk.service.request import Turn
from crosswalk.text import short_repr
from crosswalk.types import ChatResponse, FinishReason, UsageInfo
from crosswalk.types.json import EMPTY_OBJECT, FrozenObject, as_frozen_object

__all__ = ["AgentError", "AgentOutcome", "AgentResponse", "AgentTurn", "collect"]


class AgentOutcome(StrEnum):
    """How a run ended: a closed set."""

    ANSWERED = "answered"
    """The model answered, or gave its answer to the final-answer tool."""
    REFUSED = "refused"
    """The model declined."""
    CONTENT_FILTER = "content_filter"
    """Moderation stopped the answer."""
    TRUNCATED = "truncated"
    """A limit cut the answer; none of its tool calls was run, for the last one may be half."""
    CANCELLED = "cancelled"
    """The answer was cancelled."""
    ERROR = "error"
    """The provider failed, or its answer cannot be read."""
    MAX_TURNS = "max_turns"
    """The model still asks for tools after as many turns as it may have."""


def _as_object(value: Mapping[str, Any]) -> FrozenObject:
    return as_frozen_object(value)


@attrs.frozen(repr=False)
class AgentTurn:
    """One answer of the model and what its tool calls gave (seed 003, section "Agent").

    Attributes:
        response: the answer, as the service gave it.
        tool_results: what became of its tool calls, in their order; empty where it made none.
        annotations: notes about the turn, read-only. ``renamed_calls``: the provider's ids that were taken
            already, and what the calls are called instead, as pairs.
        outcome: how the run ended with this turn; ``None`` when it goes on.
        final_output: the answer to the user; ``None`` unless the outcome is ``answered``.
        error: what the service raised; ``None`` when it raised nothing.
    """

    response: ChatResponse
    tool_results: tuple[ToolExecutionResult, ...] = ()
    annotations: FrozenObject = attrs.field(default=EMPTY_OBJECT, converter=_as_object)
    outcome: AgentOutcome | None = None
    final_output: str | None = None
    error: CrosswalkError | None = attrs.field(default=None, eq=False)

    @property
    def conversation(self) -> tuple[Turn, ...]:
        """The turn as it goes on in a conversation: the answer, its calls called as in the results, and these.

        Empty for an error response, which is no part of one.
        """
        if self.response.finish_reason is FinishReason.ERROR:
            return ()
        answer = with_calls(self.response, [result.call for result in self.tool_results])
        return (answer, *(result.message for result in self.tool_results))

    __repr__ = short_repr("outcome", "response", "tool_results", "final_output")


def _need_turns(_: object, __: object, turns: tuple[AgentTurn, ...]) -> None:
    if not turns:
        raise ResponseValidationError("a run has at least one turn")


@attrs.frozen(repr=False)
class AgentResponse:
    """A whole run (seed 003, section "Agent").

    Attributes:
        turns: every turn, in order; at least one.
        final_output: the answer to the user; ``None`` when the run ended without one, see ``outcome``.

    Raises:
        ResponseValidationError: no turns.
    """

    turns: tuple[AgentTurn, ...] = attrs.field(validator=_need_turns)
    final_output: str | None

    @property
    def outcome(self) -> AgentOutcome:
        """How the run ended; ``cancelled`` when it was left before its end."""
        return self.turns[-1].outcome or AgentOutcome.CANCELLED

    @property
    def usage(self) -> UsageInfo:
        """The tokens of all turns together."""
        return sum((turn.response.usage for turn in self.turns), UsageInfo.EMPTY)

    @property
    def conversation(self) -> tuple[Turn, ...]:
        """All turns as they go on in a conversation: for a session, or for the next run."""
        return tuple(said for turn in self.turns for said in turn.conversation)

    def raise_for_outcome(self) -> AgentResponse:
        """This response, if the run ended with an answer.

        Raises:
            CrosswalkError: what the service raised, if that ended it.
            ProviderError: the provider's error, if that ended it.
            AgentError: it ended otherwise.
        """
        if self.outcome is AgentOutcome.ANSWERED:
            return self
        last = self.turns[-1]
        if last.error is not None:
            raise last.error
        last.response.raise_for_error()
        raise AgentError(f"no answer after {len(self.turns)} turns: {self.outcome}", response=self)

    __repr__ = short_repr("outcome", "final_output", "turns")


async def collect(turns: AsyncIterable[AgentTurn]) -> AgentResponse:
    """Run to the end what ``Agent.run`` gives, and put the turns together.

    Raises:
        ResponseValidationError: there are none: the iterator had been closed before its first turn.
    """
    collected = tuple([turn async for turn in turns])
    return AgentResponse(collected, collected[-1].final_output if collected else None)


class AgentError(CrosswalkError):
    """A run ended without an answer; raised by ``AgentResponse.raise_for_outcome()``.

    Attributes:
        response: all turns of the run.
    """

    def __init__(self, message: str, *, response: AgentResponse) -> None:
        super().__init__(message)
        self.response = response
