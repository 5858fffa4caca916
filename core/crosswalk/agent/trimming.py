"""Trimming of conversations that are too long. No call loses its result, and the user speaks first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from typing import Any, TypeAlias

import attrs

from crosswalk.errors import ConfigurationError, ErrorKind, ResponseValidationError
from crosswalk.request import ChatRequest, Turn
from crosswalk.service.turns import message_of
from crosswalk.types.message import ChatMessage, Role
from crosswalk.types.response import ChatResponse
from crosswalk.types.usage import UsageInfo

Group: TypeAlias = tuple[Turn, ...]
"""Turns that stay together: a message, or an answer with the results of its calls."""

Trimming: TypeAlias = Callable[[Sequence[Group]], Iterable[Group]]
"""A policy. It takes a conversation without its leading system messages and returns the groups to keep, or replacements
such as a summary.
"""


def keep_turns(number: int) -> Trimming:
    """Keep the last *number* user turns, and the turns that follow each.

    Raises:
        ConfigurationError: *number* is not a whole number of at least 1.
    """
    _check_number(number)

    def trim(groups: Sequence[Group]) -> Sequence[Group]:
        starts = [start for start, group in enumerate(groups) if _role(group) is Role.USER]
        return groups[starts[-number] :] if len(starts) > number else groups

    return trim


def keep_tokens(number: int) -> Trimming:
    """Keep the turns that fit into *number* tokens, by the counts that providers report with their answers.

    The count of an answer covers the conversation up to it, so the cost of a turn is the difference from the answer before.
    Messages after the last answer are not counted, and system messages count with the first turn, so leave room for both.
    The last turn is always kept. If no provider reports counts, four characters count as a token.

    Raises:
        ConfigurationError: *number* is not a whole number of at least 1.
    """
    _check_number(number)

    def trim(groups: Sequence[Group]) -> Sequence[Group]:
        counts = [_usage(group) for group in groups]
        reported = [count for count in counts if count is not None]
        if not reported:
            return _last_fitting(groups, [estimated_tokens(group) for group in groups], number)
        if reported[-1].total_tokens <= number:
            return groups
        costs, before = [], 0
        for count in counts:
            cost = 0
            if count is not None:
                whole = count.total_tokens
                # A conversation that was longer before has been trimmed since, so only the answer's own tokens are certain.
                is_longer = before <= whole and (before or whole <= reported[-1].total_tokens)
                cost, before = whole - before if is_longer else count.completion_tokens, whole
            costs.append(cost)
        return _last_fitting(groups, costs, number)

    return trim


def _last_fitting(groups: Sequence[Group], costs: Sequence[int], room: int) -> Sequence[Group]:
    """Return the last of *groups* whose *costs* fit into *room*, but at least one if there are any."""
    start = len(groups)
    while start and (room := room - costs[start - 1]) >= 0:
        start -= 1
    return groups[min(start, max(len(groups) - 1, 0)) :]


def estimated_tokens(turns: Iterable[Turn]) -> int:
    """Estimate the tokens of texts and calls, at four characters a token."""
    count = 0
    for message in map(message_of, turns):
        calls = message.tool_calls or ()
        count += len(message.text) + sum(len(call.name) + len(call.arguments) for call in calls)
    return -(-count // 4)


def groups_of(turns: Iterable[Turn]) -> list[Group]:
    """Group *turns*. The result of a call belongs to the group before it."""
    groups: list[Group] = []
    for turn in turns:
        if groups and message_of(turn).role is Role.TOOL:
            groups[-1] = (*groups[-1], turn)
        else:
            groups.append((turn,))
    return groups


def trim_turns(turns: Sequence[Turn], policy: Trimming) -> tuple[Turn, ...]:
    """Return the turns that *policy* keeps.

    Leading system messages stay. If an answer would come first, which servers refuse, the user message before it stays too.

    Raises:
        ResponseValidationError: *policy* returns something other than groups of turns.
    """
    system = tuple(takewhile(lambda turn: message_of(turn).role is Role.SYSTEM, turns))
    groups = groups_of(turns[len(system) :])
    stored = [group for group in _as_groups(policy(tuple(groups))) if group]
    if stored and _role(stored[0]) is Role.ASSISTANT:
        start = next((index for index, group in enumerate(groups) if group is stored[0]), 0)
        stored[:0] = [group for group in groups[:start] if _role(group) is Role.USER][-1:]
    return (*system, *(turn for group in stored for turn in group))


def trim_refused_request(
    request: ChatRequest, answer: ChatResponse, policy: Trimming | None
) -> ChatRequest | None:
    """Return *request* trimmed by *policy*, if *answer* is an error that says the conversation is too long for the model.

    Returns ``None`` otherwise, and if the policy would remove nothing or everything.
    """
    info = answer.error_info
    if policy is None or info is None or info.kind is not ErrorKind.CONTEXT_OVERFLOW:
        return None
    return trimmed_request(request, policy)


def trimmed_request(request: ChatRequest, policy: Trimming) -> ChatRequest | None:
    """Return *request* trimmed by *policy*, or ``None`` if that would remove nothing or everything.

    Cache marks on removed messages are removed too.
    """
    turns = trim_turns(request.messages, policy)
    count = len(turns)
    if not 0 < count < len(request.messages):
        return None
    marks = [m for m in request.cache_marks if isinstance(m.after, str) or -count <= m.after < count]
    return attrs.evolve(request, messages=turns, cache_marks=marks)


def _as_groups(result: object) -> list[Group]:
    groups: list[Any] = list(result) if isinstance(result, Iterable) else [result]
    if not all(isinstance(group, list | tuple) and all(map(_is_turn, group)) for group in groups):
        raise ResponseValidationError("a trimming policy must return groups of turns, like those it receives")
    return groups


def _is_turn(one: object) -> bool:
    return isinstance(one, ChatMessage | ChatResponse)


def _role(group: Group) -> Role:
    return message_of(group[0]).role


def _usage(group: Group) -> UsageInfo | None:
    """Return the usage that came with the answer in *group*, or ``None``."""
    answer = group[0]
    return answer.usage if isinstance(answer, ChatResponse) and answer.usage.total_tokens else None


def _check_number(number: int) -> None:
    if type(number) is not int or number < 1:
        raise ConfigurationError("how much to keep must be a whole number of at least 1", key="number")
