"""The vendor of an exchange: by the word of its log, then its URL, then its model, then the form of its answer."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Final, Literal, TypeAlias

from crosswalk.plugin.registry import registry
from crosswalk.records import LoggedExchange, vendor_name, vendor_of_model
from crosswalk.service.hosts import Hosts
from crosswalk.types.response import ChatResponse

VendorSource: TypeAlias = Literal["log", "url", "model", "answer"]
"""What names a vendor. ``model`` and ``answer`` derive it."""

_WIRE_FORMATS: Final = frozenset({"anthropic", "gemini", "openai", "openai_responses"})
"""Providers in whose form many servers answer."""
_UNKNOWN: Final = "unknown"
_MOST_URLS: Final = 4096


def vendor_of(
    exchange: LoggedExchange | None, response: ChatResponse | None
) -> tuple[str | None, VendorSource | None]:
    """Return the one spelling of the vendor's name, and what names it; or twice ``None`` if nothing does.

    Args:
        exchange: the facts of the log, or ``None`` for a file that holds an answer alone.
        response: the answer, or ``None`` if it cannot be read.
    """
    if exchange is not None and exchange.vendor is not None:
        return vendor_name(exchange.vendor), "log"
    if exchange is not None and exchange.url is not None and (at := _vendor_at(exchange.url)) is not None:
        return at, "url"
    provider = None if response is None else response.metadata.provider_id
    is_guess = response is not None and "metadata.provider_id" in response.metadata.provenance
    if provider not in {None, _UNKNOWN, *_WIRE_FORMATS} and not is_guess:
        return vendor_name(str(provider)), "answer"
    models = [] if response is None else [response.model]
    if exchange is not None:
        models += [model for model in (exchange.answered_model, exchange.model) if model is not None]
    for model in models:
        if (vendor := vendor_of_model(model)) is not None:
            return vendor, "model"
    return (None, None) if provider in (None, _UNKNOWN) else (vendor_name(str(provider)), "answer")


@lru_cache(_MOST_URLS)
def _vendor_at(url: str) -> str | None:
    """Return the vendor whose server *url* names, or ``None``."""
    site = _hosts().site(url if "://" in url else f"https://{url}")
    return vendor_name(site.providers[0]) if site is not None and site.is_sure and site.providers else None


@cache
def _hosts() -> Hosts:
    return Hosts(registry, environ={})
