"""The cost of an answer: the most that a request may cost, and the real cost afterwards."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from crosswalk.errors import ConfigurationError
from crosswalk.prices import cost_of
from crosswalk.service import ChatRequest
from crosswalk.types import ChatMessage, ChatResponse, FinishReason, ResponseMetadata, Role, UsageInfo
from crosswalk_serve.config import Config, Target
from crosswalk_serve.estimated_usage import prompt_tokens
from crosswalk_serve.routing import Route

__all__ = ["check_prices", "cost", "cost_of_tokens", "most_cost"]

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
