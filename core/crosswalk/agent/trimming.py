"""Conversations made shorter, so that no call loses its result and the first to speak is the user."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from typing import Any, TypeAlias

import attrs

from crosswalk.errors import ConfigurationError, ErrorKind, ResponseValidationError
from crosswalk.service.request import ChatRequest, Turn
from crosswalk.service.turns import message_of
from crosswalk.types.message import ChatMessage, Role
from crosswalk.types.response import ChatResponse
from crosswalk.types.usage import UsageInfo

__all__ = ["Group", "Trimming", "estimated_tokens", "keep_tokens", "keep_turns"]

Group: TypeAlias = tuple[Turn, ...]
"""What stays together: a message, or an answer with the results of its calls."""

Trimming: TypeAlias = Callable[[Sequence[Group]], Iterable[Group]]
"""Takes a conversation, without the system messages at its beginning, and gives what is to be left of it: some of its
groups, or others in their place, such as a summary."""


def keep_turns(number: int) -> Trimming:
    """Keep the last *number* of the user's turns, and what followed each of them.

    Raises:
        ConfigurationError: *number* is no whole number from 1 on.
    """
    _check_number(number)

    def trim(groups: Sequence[Group]) -> Sequence[Group]:
        places = [place for place, group in enumerate(groups) if _role(group) is Role.USER]
        return groups[places[-number] :] if len(places) > number else groups

    return trim


def keep_tokens(number: int) -> Trimming:
    """Keep what fits into *number* tokens, by the counts that the providers reported with their answers.

    An answer's counts tell how long the conversation was with it; what an earlier answer counted is taken off. What was said
    after the last answer has not been counted, and system messages are counted with the first turn alone: leave room for
    them. What was said last is always kept. Where no provider counts, a token is taken for four characters.

    Raises:
        ConfigurationError: *number* is no whole number from 1 on.
    """
    _check_number(number)

    def trim(groups: Sequence[Group]) -> Sequence[Group]:
        counts = [_usage(group) for group in groups]
        known = [count for count in counts if count is not None]
        if not known:
            return _last_fitting(groups, [estimated_tokens(group) for group in groups], number)
        if known[-1].total_tokens <= number:
            return groups
        costs, before = [], 0
        for count in counts:
            cost = 0
            if count is not None:
                whole = count.total_tokens
                # Where the conversation was longer before, it has been trimmed since: what the answer itself took is known.
                fits = before <= whole and (before or whole <= known[-1].total_tokens)
                cost, before = whole - before if fits else count.completion_tokens, whole
            costs.append(cost)
        return _last_fitting(groups, costs, number)

    return trim


def _last_fitting(groups: Sequence[Group], costs: Sequence[int], room: int) -> Sequence[Group]:
    """The last of *groups* whose *costs* fit into *room*; at least one, if there is one."""
    place = len(groups)
    while place and (room := room - costs[place - 1]) >= 0:
        place -= 1
    return groups[min(place, max(len(groups) - 1, 0)) :]


def estimated_tokens(turns: Iterable[Turn]) -> int:
    """A token for each four characters of texts and calls: where nobody counts."""
    count = 0
    for message in map(message_of, turns):
        calls = message.tool_calls or ()
        count += len(message.text) + sum(len(call.name) + len(call.arguments) for call in calls)
    return -(-count // 4)


def groups_of(turns: Iterable[Turn]) -> list[Group]:
    """*turns* in groups; a result belongs to what stands before it."""
    groups: list[Group] = []
    for turn in turns:
        if groups and message_of(turn).role is Role.TOOL:
            groups[-1] = (*groups[-1], turn)
        else:
            groups.append((turn,))
    return groups


def trim_turns(turns: Sequence[Turn], policy: Trimming) -> tuple[Turn, ...]:
    """What *policy* leaves of *turns*.

    The system messages at the beginning stay. Where an answer would be the first to speak, which servers refuse, the user's
    message that it followed stays too.

    Raises:
        ResponseValidationError: *policy* gives something else.
    """
    system = tuple(takewhile(lambda turn: message_of(turn).role is Role.SYSTEM, turns))
    groups = groups_of(turns[len(system) :])
    kept = [group for group in _as_groups(policy(tuple(groups))) if group]
    if kept and _role(kept[0]) is Role.ASSISTANT:
        place = next((place for place, group in enumerate(groups) if group is kept[0]), 0)
        kept[:0] = [group for group in groups[:place] if _role(group) is Role.USER][-1:]
    return (*system, *(turn for group in kept for turn in group))


def trim_refused_request(
    request: ChatRequest, answer: ChatResponse, policy: Trimming | None
) -> ChatRequest | None:
    """*request* with what *policy* leaves of the conversation, if *answer* says that it is too long for the model.

    ``None`` if it does not, and where nothing would be left, or left out. Marks of the cache on messages that are not
    there any more go with them.
    """
    info = answer.error_info
    if policy is None or info is None or info.kind is not ErrorKind.CONTEXT_OVERFLOW:
        return None
    return trimmed_request(request, policy)


def trimmed_request(request: ChatRequest, policy: Trimming) -> ChatRequest | None:
    """*request* with what *policy* leaves of the conversation; ``None`` where nothing would be left, or left out."""
    turns = trim_turns(request.messages, policy)
    count = len(turns)
    if not 0 < count < len(request.messages):
        return None
    marks = [m for m in request.cache_marks if isinstance(m.after, str) or -count <= m.after < count]
    return attrs.evolve(request, messages=turns, cache_marks=marks)


def _as_groups(given: object) -> list[Group]:
    groups: list[Any] = list(given) if isinstance(given, Iterable) else [given]
    if not all(isinstance(group, list | tuple) and all(map(_is_turn, group)) for group in groups):
        raise ResponseValidationError("a policy gives groups of turns, such as those that it takes")
    return groups


def _is_turn(one: object) -> bool:
    return isinstance(one, ChatMessage | ChatResponse)


def _role(group: Group) -> Role:
    return message_of(group[0]).role


def _usage(group: Group) -> UsageInfo | None:
    """The counts that came with the answer in *group*; ``None`` where none did."""
    answer = group[0]
    return answer.usage if isinstance(answer, ChatResponse) and answer.usage.total_tokens else None


def _check_number(number: int) -> None:
    if type(number) is not int or number < 1:
        raise ConfigurationError("how much to keep must be a whole number of at least 1", key="number")
