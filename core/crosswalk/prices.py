"""What an answer cost: the provider's own word, or an estimate by list prices (``genai-prices``, the extra ``prices``)."""

from __future__ import annotations

from datetime import date
from functools import lru_cache
from typing import Final

from crosswalk.errors import ConfigurationError
from crosswalk.types.metadata import Provenance
from crosswalk.types.response import ChatResponse
from crosswalk.types.usage import Cost

__all__ = ["cost_of"]

_NAMES: Final = {"bedrock": "aws", "gemini": "google", "openai_responses": "openai", "xai": "x-ai"}
"""What the price lists call a provider, where that is not its id."""


def cost_of(response: ChatResponse) -> Cost | None:
    """What *response* cost: ``usage.cost`` where the provider has said it, else an estimate, marked ``derived``.

    The list price of the day of ``created`` for the counted tokens: neither discounts, nor fees of tools, nor of images.
    Where the provider was worked out (``metadata.provider_id`` is ``derived``), the list is that of the model's maker.

    Returns:
        The cost; ``None`` where the provider counted no tokens or no list has a price for its model, as for a local server.

    Raises:
        ConfigurationError: the provider has not said it, and ``genai-prices`` is not installed.
    """
    usage, provenance = response.usage, response.metadata.provenance
    if usage.cost is not None or any(mark is Provenance.ABSENT for mark in map(provenance.get, _COUNTED)):
        return usage.cost
    try:
        from genai_prices import calc_price
    except ImportError:
        raise ConfigurationError("prices need the extra: pip install 'crosswalk-llm[prices]'") from None
    provider = _provider(response)
    if not _is_listed(provider, response.model, response.created.date()):
        return None
    try:
        price = calc_price(
            usage, response.model, provider_id=provider, genai_request_timestamp=response.created
        )
    except (LookupError, ValueError):  # counts that cannot be right
        return None
    return Cost(price.total_price, "USD", Provenance.DERIVED)


def _provider(response: ChatResponse) -> str | None:
    """What the price lists call the provider of *response*; ``None`` where it was worked out: then the model decides."""
    if response.metadata.provenance.get("metadata.provider_id") is Provenance.DERIVED:
        return None
    return _NAMES.get(response.metadata.provider_id, response.metadata.provider_id)


@lru_cache(maxsize=1024)
def _is_listed(provider: str | None, model: str, _day: date) -> bool:
    """Whether a list has *model*: to find out that none has takes as long as reading a small answer. Lists may be updated
    while the program runs, so it is asked again another day."""
    from genai_prices import calc_price
    from genai_prices.types import Usage

    try:
        calc_price(Usage(), model, provider_id=provider)
    except LookupError:
        return False
    return True


_COUNTED: Final = ("usage", "usage.prompt_tokens", "usage.completion_tokens")
