"""The turns and the response of an agent run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Generic

import attrs
from typing_extensions import TypeVar

from crosswalk.agent.results import ToolExecutionResult, with_calls
from crosswalk.errors import CrosswalkError
from crosswalk.request import Turn
from crosswalk.text import brief, counted, short_repr
from crosswalk.types.json import EMPTY_OBJECT, FrozenObject, as_frozen_object
from crosswalk.types.message import ChatMessage, ToolCall
from crosswalk.types.response import ChatResponse
from crosswalk.types.usage import UsageInfo
from crosswalk.types.values import FinishReason, IncompleteReason
from crosswalk.words import suggests_names


class AgentOutcome(StrEnum):
    """How a run ended: a closed set."""

    ANSWERED = "answered"
    """The model answered, or gave its answer to the final-answer tool."""
    REFUSED = "refused"
    """The model declined."""
    CONTENT_FILTER = "content_filter"
    """Moderation stopped the answer."""
    TRUNCATED = "truncated"
    """A limit cut the answer. None of its tool calls was run, because the last one may be incomplete."""
    UNMAPPED = "unmapped"
    """The answer has a finish reason or an event that no mapping knows. None of its calls was run."""
    MISSING_CALL = "missing_call"
    """The server reports a tool call, but none arrived. Its parser may have failed."""
    UNREAD = "unread"
    """Tokens were counted and no content was found, but the answer holds text that no mapping has read."""
    CANCELLED = "cancelled"
    """The answer was cancelled, or the run was stopped."""
    ERROR = "error"
    """The provider failed, or its answer cannot be read."""
    MAX_TURNS = "max_turns"
    """The model still calls tools after the maximum number of turns."""
    INVALID_OUTPUT = "invalid_output"
    """The model answered, but not with a value of the output type, even after one correction."""
    WAITING = "waiting"
    """Calls wait for an approval, or for a result from the application. They are open in the session: answer them with
    ``approved=`` or ``results=``, in this process or another one.
    """
    USAGE_LIMIT = "usage_limit"
    """The run has reached a usage limit. The calls of its last answer were not run."""


OutputT = TypeVar("OutputT", default=Any)
"""The type of an agent's answers."""

_OUTCOME_BY_REASON = {
    IncompleteReason.LENGTH: AgentOutcome.TRUNCATED,
    IncompleteReason.CONTENT_FILTER: AgentOutcome.CONTENT_FILTER,
    IncompleteReason.CANCELLED: AgentOutcome.CANCELLED,
    IncompleteReason.ERROR: AgentOutcome.ERROR,
    IncompleteReason.UNKNOWN_FINISH_REASON: AgentOutcome.UNMAPPED,
    IncompleteReason.UNKNOWN_EVENT: AgentOutcome.UNMAPPED,
    IncompleteReason.REFUSAL: AgentOutcome.REFUSED,
    IncompleteReason.MISSING_CALL: AgentOutcome.MISSING_CALL,
    IncompleteReason.UNREAD: AgentOutcome.UNREAD,
}
"""The outcome of a run that ends with an incomplete answer.

A paused answer is sent back instead. For invalid arguments, the model gets an error as the result of its call.
"""


def outcome_of(answer: ChatResponse, calls: Sequence[ToolCall]) -> AgentOutcome | None:
    """Return how a run ends with *answer*, which made *calls*, or ``None`` if the run continues."""
    reason = answer.incomplete_reason
    if reason in _OUTCOME_BY_REASON:
        return _OUTCOME_BY_REASON[reason]
    return None if calls or reason is IncompleteReason.PAUSED else AgentOutcome.ANSWERED


def _as_object(value: Mapping[str, Any]) -> FrozenObject:
    return as_frozen_object(value)


@brief
@attrs.frozen(repr=False)
class AgentTurn:
    """One answer of the model and the results of its tool calls.

    Attributes:
        response: the answer, as the service returned it.
        tool_results: the results of its tool calls, in order, empty if it made none.
        annotations: notes about the turn, read-only. ``renamed_calls``: pairs of a provider's id that was already
            taken and its new id. ``trimmed``: how many messages were ``sent`` of how many (``of``), if the conversation
            was too long. ``estimated_usage``: the provider reported no tokens, so that they count for the run's limits
            at four characters a token.
        outcome: how the run ended with this turn, or ``None`` if it continues.
        final_output: the answer to the user, or ``None`` unless the outcome is ``answered``.
        error: the error that the service raised, or ``None`` if it raised none.
        value: the answer as a value of the output type, or the value of the final tool, or the text.
        reply: the agent's message about an answer that does not fit the output type, or ``None``.
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
        """Whether a resumed run must ask for this turn again: it was stopped, cut or refused, and nothing was run."""
        continuing_outcomes = (None, AgentOutcome.ANSWERED, AgentOutcome.MAX_TURNS, AgentOutcome.WAITING)
        return self.outcome not in continuing_outcomes and not any(
            result.was_run for result in self.tool_results
        )

    @property
    def conversation(self) -> tuple[Turn, ...]:
        """The turn as part of a conversation: the answer with the call ids of the results, then the results.

        Empty for an error response, which cannot be part of a conversation.
        """
        if self.response.finish_reason is FinishReason.ERROR:
            return ()
        answer = with_calls(self.response, [result.call for result in self.tool_results])
        reply = () if self.reply is None else (self.reply,)
        return (answer, *messages_of(self.tool_results), *reply)

    __repr__ = short_repr("outcome", "response", "tool_results", "final_output")


@suggests_names
@brief
@attrs.frozen(repr=False)
class AgentResponse(Generic[OutputT]):
    """A run, complete or as far as it got. ``OutputT`` is the output type of its agent.

    Attributes:
        turns: all turns, in order. None if the run was left before the first answer.
        final_output: the answer to the user, or ``None`` if the run ended without one, see ``outcome``.
        open_results: the results of calls that were open when the run began.
        value: the answer as a value of the output type, or the value of the final tool, or the text.
    """

    turns: tuple[AgentTurn, ...]
    final_output: str | None
    open_results: tuple[ToolExecutionResult, ...] = ()
    value: OutputT | None = None

    @property
    def outcome(self) -> AgentOutcome:
        """How the run ended, or ``cancelled`` if it was left before its end."""
        if self.turns:
            return self.turns[-1].outcome or AgentOutcome.CANCELLED
        if self.waiting:
            return AgentOutcome.WAITING
        return AgentOutcome.CANCELLED if self.final_output is None else AgentOutcome.ANSWERED

    @property
    def output(self) -> OutputT | None:
        """The ``value``, under the name that other agents give it."""
        return self.value

    @property
    def waiting(self) -> tuple[ToolCall, ...]:
        """The calls that wait for an approval or a result. Answer them with ``approved=`` or ``results=``."""
        results = self.turns[-1].tool_results if self.turns else self.open_results
        return tuple(result.call for result in results if result.is_waiting)

    @property
    def usage(self) -> UsageInfo:
        """The tokens of all turns together."""
        return sum((turn.response.usage for turn in self.turns), UsageInfo.EMPTY)

    @property
    def conversation(self) -> tuple[Turn, ...]:
        """Everything that the run adds to the conversation, for a session or for the next run."""
        return conversation_of(self.open_results, self.turns)

    def unwrap(self) -> OutputT:
        """Return the ``value``, if the run ended with an answer. Raises the errors of :meth:`raise_for_outcome`."""
        value: Any = self.raise_for_outcome().value
        return value  # type: ignore[no-any-return]  # a value of the output type, which may be None

    def raise_for_outcome(self) -> AgentResponse[OutputT]:
        """Return this response if the run ended with an answer.

        Raises:
            CrosswalkError: the service raised an error that ended the run.
            ProviderError: an error of the provider ended the run.
            AgentError: the run ended in another way.
        """
        if self.outcome is AgentOutcome.ANSWERED:
            return self
        for last_turn in self.turns[-1:]:
            if last_turn.error is not None:
                raise last_turn.error
            last_turn.response.raise_for_error()
        raise AgentError(f"no answer after {counted(len(self.turns), 'turn')}: {self.outcome}", response=self)

    __repr__ = short_repr("outcome", "final_output", "turns")


def conversation_of(results: Iterable[ToolExecutionResult], turns: Iterable[AgentTurn]) -> tuple[Turn, ...]:
    """Return the messages and answers that *results* of earlier calls, and then *turns*, add to a conversation."""
    return (*messages_of(results), *(message for turn in turns for message in turn.conversation))


def messages_of(results: Iterable[ToolExecutionResult]) -> Iterator[ChatMessage]:
    """Yield the messages for *results*, without calls that wait."""
    return (result.message for result in results if not result.is_waiting)


class AgentError(CrosswalkError):
    """A run ended without an answer. Raised by ``AgentResponse.raise_for_outcome()``.

    Attributes:
        response: all turns of the run.
    """

    def __init__(self, message: str, *, response: AgentResponse) -> None:
        super().__init__(message)
        self.response = response
