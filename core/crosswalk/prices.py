"""The cost of an answer: the provider's figure, or an estimate from list prices (``genai-prices``, the extra ``prices``)."""

from __future__ import annotations

from datetime import date
from functools import lru_cache
from importlib.util import find_spec
from typing import Final

from crosswalk.errors import ConfigurationError
from crosswalk.types.response import ChatResponse
from crosswalk.types.usage import Cost, Provenance

__all__ = ["check_prices", "cost_of"]

_NAMES: Final = {"bedrock": "aws", "gemini": "google", "openai_responses": "openai", "xai": "x-ai"}
"""The provider's name in the price lists, where it differs from the provider id."""


def cost_of(response: ChatResponse) -> Cost | None:
    """The cost of *response*: ``usage.cost`` if the provider sent it, else an estimate, marked ``derived``.

    An estimate is the list price on the day of ``created`` for the counted tokens, without discounts or fees for
    tools and images. If the provider is a guess (``metadata.provider_id`` is ``derived``), the model's maker counts.

    Returns:
        The cost, or ``None`` if there are no token counts, or no list has a price for the model, as for a local server.

    Raises:
        ConfigurationError: the provider did not send it, and ``genai-prices`` is not installed.
    """
    usage, provenance = response.usage, response.metadata.provenance
    if usage.cost is not None or any(mark is Provenance.ABSENT for mark in map(provenance.get, _COUNTED)):
        return usage.cost
    check_prices()
    from genai_prices import calc_price

    provider = _provider(response)
    if not _is_listed(provider, response.model, response.created.date()):
        return None
    try:
        price = calc_price(
            usage, response.model, provider_id=provider, genai_request_timestamp=response.created
        )
    except (LookupError, ValueError):  # impossible counts
        return None
    return Cost(price.total_price, "USD", Provenance.DERIVED)


def check_prices() -> None:
    """Raise ``ConfigurationError`` if the extra ``prices`` is not installed."""
    if find_spec("genai_prices") is None:
        raise ConfigurationError("prices need the extra: pip install 'crosswalk-llm[prices]'")


def _provider(response: ChatResponse) -> str | None:
    """The name of *response*'s provider in the price lists, or ``None`` if it was derived, so that the model decides."""
    if response.metadata.provenance.get("metadata.provider_id") is Provenance.DERIVED:
        return None
    return _NAMES.get(response.metadata.provider_id, response.metadata.provider_id)


@lru_cache(maxsize=1024)
def _is_listed(provider: str | None, model: str, _day: date) -> bool:
    """Whether a list has *model*. A search in vain takes as long as reading a small answer, so the result is kept for a day:
    lists may be updated while the program runs."""
    from genai_prices import calc_price
    from genai_prices.types import Usage

    try:
        calc_price(Usage(), model, provider_id=provider)
    except LookupError:
        return False
    return True


_COUNTED: Final = ("usage", "usage.prompt_tokens", "usage.completion_tokens")
