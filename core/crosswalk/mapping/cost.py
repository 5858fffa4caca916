"""What a request cost, in the shapes in which services say so beside their token counts."""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Any, Final

from crosswalk.plain_errors import ResponseValidationError
from crosswalk.plugin.take import leave_mistyped
from crosswalk.types.usage import Cost

__all__ = ["look_at_cost"]

_TICK: Final = -10  # as a power of ten
_EXACT: Final = Context(prec=60)  # whatever the application has set
_MOST: Final = 10**22  # a million million dollars in ticks


def look_at_cost(usage: dict[str, Any]) -> Cost | None:
    """What the request cost, in US dollars, as the object of its counts says; ``None`` where that does not.

    xAI counts ``cost_in_usd_ticks``; OpenRouter has a number ``cost`` and its parts in ``cost_details``; Perplexity an
    object ``cost`` with its parts and their ``total_cost``. A ``cost`` of another shape has no known currency. All of it
    stays, the parts with their sum.
    """
    if "cost_in_usd_ticks" in usage:
        return _money(usage, "cost_in_usd_ticks", _TICK)
    if "cost_details" in usage or "is_byok" in usage:
        return _money(usage, "cost")
    parts = usage.get("cost")
    return _money(parts, "total_cost") if type(parts) is dict else None


def _money(holder: dict[str, Any], key: str, power: int = 0) -> Cost | None:
    amount = holder.get(key)
    if amount is None:
        return None
    if (type(amount) is int or type(amount) is float) and 0 <= amount <= _MOST:
        try:
            # By its shortest text, which is what the provider wrote: 0.1, not what binary makes of it.
            return Cost(Decimal(repr(amount)).scaleb(power, _EXACT).normalize(_EXACT))
        except ResponseValidationError:
            pass
    leave_mistyped(holder, key)
    return None
