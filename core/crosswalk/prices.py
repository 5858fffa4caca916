"""The cost of an answer: the provider's figure, or an estimate from list prices (``genai-prices``, the extra ``prices``)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache, lru_cache
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from typing import Final

from crosswalk.errors import ConfigurationError
from crosswalk.plugin.registry import registry
from crosswalk.types.response import ChatResponse
from crosswalk.types.usage import Cost, Provenance

__all__ = ["check_prices", "cost_of", "price_list", "tier_of"]

_LISTED_PLATFORMS: Final = {"vertex_ai": "google"}
"""The name in the price lists of a vendor that is no provider. A provider says its own: ``ProviderInfo.names``."""
_USUAL_TIERS: Final = frozenset({"auto", "default", "on_demand", "standard", "standard_only"})
_HALF: Final = Decimal("0.5")
_TIER_SHARES: Final = {
    "batch": dict.fromkeys(
        ("anthropic", "aws", "azure", "fireworks", "google", "groq", "mistral", "openai", "together"), _HALF
    ),
    "flex": dict.fromkeys(("google", "openai"), _HALF),
}
"""The share of the list price that a tier costs, by the provider's name in the price lists. Other tiers have prices of their
own for each model, which the lists do not have: https://platform.openai.com/docs/pricing,
https://docs.claude.com/en/docs/build-with-claude/batch-processing, https://ai.google.dev/gemini-api/docs/pricing,
https://aws.amazon.com/bedrock/pricing/, https://docs.mistral.ai/capabilities/batch/, https://console.groq.com/docs/batch,
https://docs.together.ai/docs/batch-inference, https://docs.fireworks.ai/guides/batch-inference.
"""


@cache
def _ended_prices() -> dict[tuple[str, str], tuple[datetime, frozenset[Decimal]]]:
    """By provider and model of the price lists: when a price ended, and what a million tokens of input cost until then."""
    rows = tomllib.loads(files("crosswalk").joinpath("ended_prices.toml").read_text(encoding="utf-8"))[
        "ended"
    ]
    return {
        (row["provider"], row["model"]): (row["on"], frozenset(map(Decimal, row["input"]))) for row in rows
    }


def tier_of(response: ChatResponse) -> str | None:
    """The service tier that *response* states, such as ``flex`` or ``batch``, or ``None``."""
    extensions = response.metadata.extensions
    usage = extensions.get("usage")
    tier = extensions.get("service_tier") or (
        usage.get("service_tier") if isinstance(usage, Mapping) else None
    )
    return tier if isinstance(tier, str) else None


def price_list() -> str:
    """The name and the version of the installed price lists, and the day of the latest change of a price in them."""
    from genai_prices.data_snapshot import get_snapshot
    from genai_prices.types import StartDateConstraint

    snapshot = get_snapshot()
    change_days = [
        price.constraint.start_date
        for provider in snapshot.providers
        for model in provider.models
        for price in (model.prices if isinstance(model.prices, list) else ())
        if isinstance(price.constraint, StartDateConstraint)
    ]
    today = datetime.now(UTC).date()
    latest_change = max((day for day in change_days if day <= today), default=None)
    return f"genai-prices {version('genai-prices')}" + (
        f", latest change {latest_change}" if latest_change else ""
    )


def cost_of(response: ChatResponse, *, vendor: str | None = None, tier: str | None = None) -> Cost | None:
    """The cost of *response*: ``usage.cost`` if the provider sent it, else an estimate, marked ``derived``.

    An estimate is the list price on the day of ``created`` for the counted tokens, without discounts or fees for
    tools and images. A batch, and a service tier that the answer or *tier* states, cost their share of it. If the provider
    is a guess (``metadata.provider_id`` is ``derived``), the model's maker counts.

    Args:
        response: the answer.
        vendor: the vendor that served it, or ``None`` for the answer's provider.
        tier: the service tier, such as ``batch``, or ``None`` for the answer's own.

    Returns:
        The cost, or ``None`` if there are no token counts, or no list has a price for the model or its tier, as for a local
        server, or only one that ended before the answer.

    Raises:
        ConfigurationError: the provider did not send it, and ``genai-prices`` is not installed.
    """
    usage, provenance = response.usage, response.metadata.provenance
    if usage.cost is not None or any(mark is Provenance.ABSENT for mark in map(provenance.get, _COUNT_PATHS)):
        return usage.cost
    check_prices()
    from genai_prices import calc_price

    provider = _provider(response) if vendor is None else _listed(vendor)
    share = _share(provider, tier or tier_of(response))
    if share is None or not _is_listed(provider, response.model, response.created.date()):
        return None
    try:
        price = calc_price(
            usage, response.model, provider_id=provider, genai_request_timestamp=response.created
        )
    except (LookupError, ValueError):  # impossible counts
        return None
    end_date, ended_prices = _ended_prices().get((price.provider.id, price.model.id), (None, frozenset()))
    if end_date is not None and response.created >= end_date and price.model_price.input_mtok in ended_prices:
        return None
    return Cost(price.total_price * share, "USD", Provenance.DERIVED)


def _share(provider: str | None, tier: str | None) -> Decimal | None:
    """The share of the list price that *tier* costs, or ``None`` if it is unknown."""
    if tier is None or tier in _USUAL_TIERS:
        return Decimal(1)
    return _TIER_SHARES.get(tier, {}).get(provider or "")


def check_prices() -> None:
    """Raise ``ConfigurationError`` if the extra ``prices`` is not installed."""
    if find_spec("genai_prices") is None:
        raise ConfigurationError("prices need the extra: pip install 'crosswalk-llm[prices]'")


def _provider(response: ChatResponse) -> str | None:
    """The name of *response*'s provider in the price lists, or ``None`` if it was derived, so that the model decides."""
    if response.metadata.provenance.get("metadata.provider_id") is Provenance.DERIVED:
        return None
    return _listed(response.metadata.provider_id)


def _listed(vendor: str) -> str:
    return _LISTED_PLATFORMS.get(vendor) or registry.names_of(vendor).prices or vendor


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


_COUNT_PATHS: Final = ("usage", "usage.prompt_tokens", "usage.completion_tokens")
