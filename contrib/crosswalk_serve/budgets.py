"""Budgets: the tokens of a request and an answer, and their cost in dollars. Estimates where no server has counted."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

import attrs

from crosswalk.errors import ConfigurationError
from crosswalk.prices import cost_of
from crosswalk.service import ChatRequest, message_of
from crosswalk.types import (
    Alternative,
    ChatMessage,
    ChatResponse,
    FinishReason,
    Provenance,
    ResponseMetadata,
    Role,
    SegmentType,
    UsageInfo,
    dump_json,
)
from crosswalk_serve.config import Config, Target
from crosswalk_serve.routing import Route

__all__ = ["by_length", "check_prices", "cost", "cost_of_tokens", "most_cost", "prompt_tokens"]

_BYTES: Final = 4
"""The bytes of a token, about: a limit that a client passes by leaving early would be none."""
_SAID: Final = (SegmentType.TEXT, SegmentType.REASONING, SegmentType.TOOL_CALL, SegmentType.REFUSAL)
_COUNTS: Final = ("usage", "usage.prompt_tokens", "usage.completion_tokens")
_NONE: Final = (Provenance.ABSENT, Provenance.CUT)


def prompt_tokens(request: ChatRequest) -> int:
    """Estimate the tokens of the conversation and the tools in *request* by their length. Media do not count."""
    messages = [message_of(turn) for turn in request.messages]
    texts = [message.text for message in messages]
    texts += [call.arguments for message in messages for call in message.tool_calls or ()]
    tools = [[tool.name, tool.description, tool.parameters.thawed()] for tool in request.tools]
    return _tokens([*texts, *(dump_json(tool).decode() for tool in tools)])


def by_length(response: ChatResponse, asked: Iterable[ChatMessage | ChatResponse]) -> ChatResponse:
    """*response* with counts by length, where the server has not counted to the end, or less than that.

    Args:
        response: the answer; one that was counted stays as it is, and so does one that says nothing, such as most errors.
        asked: the conversation that it answers.
    """
    usage, metadata = response.usage, response.metadata
    is_cut = response.finish_reason in (FinishReason.ERROR, FinishReason.CANCELLED)
    if not is_cut and not any(metadata.provenance.get(count) in _NONE for count in _COUNTS):
        return response
    answers: tuple[ChatResponse | Alternative, ...] = (response, *response.alternatives)
    raw = [one.content for answer in answers for one in answer.segments if one.type in _SAID]
    if not any(raw):
        return response
    counts = attrs.evolve(
        usage,
        prompt_tokens=max(usage.prompt_tokens, _tokens(message_of(turn).text for turn in asked)),
        completion_tokens=max(usage.completion_tokens, _tokens(raw)),
    )
    known = {path: mark for path, mark in metadata.provenance.items() if path not in _COUNTS}
    return attrs.evolve(response, usage=counts, metadata=attrs.evolve(metadata, provenance=known))


def _tokens(texts: Iterable[str]) -> int:
    return -(-sum(len(text.encode()) for text in texts) // _BYTES)


_ANSWER_TOKENS: Final = 4096
"""The tokens to reserve for an answer if neither the request nor the model's defaults have ``max_tokens``."""


def cost(response: ChatResponse, route: Route) -> float:
    """Return the cost of *response* in US dollars, as far as known."""
    price, usage = route.model.price, response.usage
    if price is not None:
        tokens = (usage.prompt_tokens, usage.completion_tokens)
        per_million = (price.input_per_million, price.output_per_million)
        return sum(count * rate for count, rate in zip(tokens, per_million, strict=True)) / 1e6
    try:
        listed = cost_of(response)
    except ConfigurationError:  # without price lists no budget depends on them, see check_prices
        return 0.0
    return float(listed.amount) if listed is not None and listed.currency == "USD" else 0.0


def cost_of_tokens(usage: UsageInfo, route: Route, target: Target, model: str) -> float:
    """Return the cost of *usage* in US dollars, as far as known, if *target* has answered with *model*."""
    metadata = ResponseMetadata(target.provider, model, timedelta(0))
    message, now = ChatMessage(Role.ASSISTANT, ""), datetime.now(UTC)
    return cost(ChatResponse("-", message, FinishReason.STOP, usage, metadata, now, model), route)


def most_cost(request: ChatRequest, route: Route, answers: int) -> float:
    """Return the most that *answers* to *request* may cost in US dollars, at the most expensive endpoint of *route*.

    The prompt is estimated by its length. An answer counts with ``max_tokens``, or else with 4,096 tokens.
    """
    usage = UsageInfo(prompt_tokens(request), (request.max_tokens or _ANSWER_TOKENS) * answers)
    return max(
        cost_of_tokens(usage, route, target, target.model or request.model or route.name)
        for target in route.model.endpoints
    )


def check_prices(config: Config) -> None:
    """Refuse budgets that cannot be counted.

    Raises:
        ConfigurationError: a key with a budget may use a model without a price, and there are no price lists.
    """
    unpriced = [name for name, model in config.models.items() if model.price is None]
    limited = [key for key in config.keys.values() if key.budget_per_day is not None]
    name = next((name for name in unpriced if any(key.may_ask(name) for key in limited)), None)
    if name is None:
        return
    try:
        import genai_prices  # noqa: F401  # whether it is there
    except ImportError:
        raise ConfigurationError(
            f"models.{name}: budgets need prices: give the model its price, or pip install 'crosswalk-llm[prices]'",
            key=f"models.{name}",
        ) from None
