"""What an agent did: turn by turn, and altogether."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

import attrs

from crosswalk.agent.calls import with_calls
from crosswalk.agent.results import ToolExecutionResult
from crosswalk.errors import CrosswalkError, ResponseValidationError
from crosswalk.service.request import Turn
from crosswalk.text import brief, counted, short_repr
from crosswalk.types.finish import FinishReason, IncompleteReason
from crosswalk.types.json import EMPTY_OBJECT, FrozenObject, as_frozen_object
from crosswalk.types.message import ChatMessage
from crosswalk.types.response import ChatResponse
from crosswalk.types.tools import ToolCall
from crosswalk.types.usage import UsageInfo

__all__ = ["AgentError", "AgentOutcome", "AgentResponse", "AgentTurn"]


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
    UNMAPPED = "unmapped"
    """It ended with a word, or holds an event, that no mapping knows: it may not be whole, and none of its calls was run."""
    MISSING_CALL = "missing_call"
    """The server says that the model calls tools, and no call came; its parser may have failed."""
    CANCELLED = "cancelled"
    """The answer was cancelled, or the run was stopped."""
    ERROR = "error"
    """The provider failed, or its answer cannot be read."""
    MAX_TURNS = "max_turns"
    """The model still asks for tools after as many turns as it may have."""
    INVALID_OUTPUT = "invalid_output"
    """The model answered, but not with a value of the output type, also when it was told what is wrong."""
    WAITING = "waiting"
    """Calls wait for an approval, or for a result of the application's. They are open in the session: answer them with
    ``approved=`` or ``results=``, in this process or another one."""
    USAGE_LIMIT = "usage_limit"
    """The run has used as much as it may; what the model asked for last was not run."""


_OUTCOMES = {
    IncompleteReason.LENGTH: AgentOutcome.TRUNCATED,
    IncompleteReason.CONTENT_FILTER: AgentOutcome.CONTENT_FILTER,
    IncompleteReason.CANCELLED: AgentOutcome.CANCELLED,
    IncompleteReason.ERROR: AgentOutcome.ERROR,
    IncompleteReason.UNKNOWN_FINISH_REASON: AgentOutcome.UNMAPPED,
    IncompleteReason.UNKNOWN_EVENT: AgentOutcome.UNMAPPED,
    IncompleteReason.REFUSAL: AgentOutcome.REFUSED,
    IncompleteReason.MISSING_CALL: AgentOutcome.MISSING_CALL,
}
"""The outcome of a run that ends with an incomplete answer. A paused answer is sent back instead."""


def outcome_of(answer: ChatResponse, calls: Sequence[ToolCall]) -> AgentOutcome | None:
    """Return how a run ends with *answer*, which made *calls*; ``None`` if the run continues."""
    reason = answer.incomplete_reason
    if reason in _OUTCOMES:
        return _OUTCOMES[reason]
    return None if calls or reason is IncompleteReason.PAUSED else AgentOutcome.ANSWERED


def _as_object(value: Mapping[str, Any]) -> FrozenObject:
    return as_frozen_object(value)


@brief
@attrs.frozen(repr=False)
class AgentTurn:
    """One answer of the model and what its tool calls gave.

    Attributes:
        response: the answer, as the service gave it.
        tool_results: what became of its tool calls, in their order; empty where it made none.
        annotations: notes about the turn, read-only. ``renamed_calls``: the provider's ids that were taken
            already, and what the calls are called instead, as pairs. ``trimmed``: how many messages were ``sent``
            and how many there are (``of``), where the conversation was too long. ``estimated_usage``: nobody counted
            its tokens, so that they count for the run's limits by a token for each four characters.
        outcome: how the run ended with this turn; ``None`` when it goes on.
        final_output: the answer to the user; ``None`` unless the outcome is ``answered``.
        error: what the service raised; ``None`` when it raised nothing.
        value: the answer as a value: of the agent's output type, or what the final tool gave; else the text.
        reply: what the agent told the model about an answer that is no value of the output type; ``None`` for nothing.
    """

    response: ChatResponse
    tool_results: tuple[ToolExecutionResult, ...] = ()
    annotations: FrozenObject = attrs.field(default=EMPTY_OBJECT, converter=_as_object)
    outcome: AgentOutcome | None = None
    final_output: str | None = None
    error: CrosswalkError | None = attrs.field(default=None, eq=False)
    value: Any = attrs.field(default=None, kw_only=True)
    reply: ChatMessage | None = attrs.field(default=None, kw_only=True)

    @property
    def is_void(self) -> bool:
        """Whether a run that goes on has to ask for it again: it was stopped, cut or refused, and nothing was run."""
        goes_on = (None, AgentOutcome.ANSWERED, AgentOutcome.MAX_TURNS, AgentOutcome.WAITING)
        return self.outcome not in goes_on and not any(result.was_run for result in self.tool_results)

    @property
    def conversation(self) -> tuple[Turn, ...]:
        """The turn as it goes on in a conversation: the answer, its calls called as in the results, and these.

        Empty for an error response, which is no part of one.
        """
        if self.response.finish_reason is FinishReason.ERROR:
            return ()
        answer = with_calls(self.response, [result.call for result in self.tool_results])
        reply = () if self.reply is None else (self.reply,)
        return (answer, *messages_of(self.tool_results), *reply)

    __repr__ = short_repr("outcome", "response", "tool_results", "final_output")


@brief
@attrs.frozen(repr=False)
class AgentResponse:
    """A run, whole or as far as it came.

    Attributes:
        turns: every turn, in order.
        final_output: the answer to the user; ``None`` when the run ended without one, see ``outcome``.
        open_results: what became of the calls with which the conversation had ended when the run began.
        value: the answer as a value: of the agent's output type, or what the final tool gave; else the text.

    Raises:
        ResponseValidationError: neither turns nor results.
    """

    turns: tuple[AgentTurn, ...]
    final_output: str | None
    open_results: tuple[ToolExecutionResult, ...] = ()
    value: Any = None

    def __attrs_post_init__(self) -> None:
        if not self.turns and not self.open_results:
            raise ResponseValidationError("a run has at least one turn")

    @property
    def outcome(self) -> AgentOutcome:
        """How the run ended; ``cancelled`` when it was left before its end."""
        if self.turns:
            return self.turns[-1].outcome or AgentOutcome.CANCELLED
        if self.waiting:
            return AgentOutcome.WAITING
        return AgentOutcome.CANCELLED if self.final_output is None else AgentOutcome.ANSWERED

    @property
    def waiting(self) -> tuple[ToolCall, ...]:
        """The calls that wait for an approval or a result; answer them with ``approved=`` or ``results=``."""
        results = self.turns[-1].tool_results if self.turns else self.open_results
        return tuple(result.call for result in results if result.is_waiting)

    @property
    def usage(self) -> UsageInfo:
        """The tokens of all turns together."""
        return sum((turn.response.usage for turn in self.turns), UsageInfo.EMPTY)

    @property
    def conversation(self) -> tuple[Turn, ...]:
        """All that the run adds to the conversation: for a session, or for the next run."""
        return conversation_of(self.open_results, self.turns)

    def raise_for_outcome(self) -> AgentResponse:
        """This response, if the run ended with an answer.

        Raises:
            CrosswalkError: what the service raised, if that ended it.
            ProviderError: the provider's error, if that ended it.
            AgentError: it ended otherwise.
        """
        if self.outcome is AgentOutcome.ANSWERED:
            return self
        for last in self.turns[-1:]:
            if last.error is not None:
                raise last.error
            last.response.raise_for_error()
        raise AgentError(f"no answer after {counted(len(self.turns), 'turn')}: {self.outcome}", response=self)

    __repr__ = short_repr("outcome", "final_output", "turns")


def conversation_of(results: Iterable[ToolExecutionResult], turns: Iterable[AgentTurn]) -> tuple[Turn, ...]:
    """What *results* of earlier calls and then *turns* add to a conversation."""
    return (*messages_of(results), *(said for turn in turns for said in turn.conversation))


def messages_of(results: Iterable[ToolExecutionResult]) -> Iterator[ChatMessage]:
    """What the model is told of *results*; nothing of a call that waits."""
    return (result.message for result in results if not result.is_waiting)


class AgentError(CrosswalkError):
    """A run ended without an answer; raised by ``AgentResponse.raise_for_outcome()``.

    Attributes:
        response: all turns of the run.
    """

    def __init__(self, message: str, *, response: AgentResponse) -> None:
        super().__init__(message)
        self.response = response
