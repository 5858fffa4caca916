"""When an answer began and what it cost, in the forms in which services send times and amounts."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from crosswalk.lazy import later
from crosswalk.plain_errors import ResponseValidationError
from crosswalk.plugin.state import leave_mistyped, look_at
from crosswalk.types.usage import Cost, exact

if TYPE_CHECKING:
    import decimal
else:
    decimal = later("decimal")


_TICK: Final = -10  # as a power of ten
_MOST: Final = 10**22  # a million million dollars in ticks


def look_at_cost(usage: dict[str, Any], currency: str | None = None) -> Cost | None:
    """Return the cost of the request in the object of its counts, or ``None`` without any.

    Three servers count in US dollars. xAI sends ``cost_in_usd_ticks``. OpenRouter sends a number ``cost`` next to
    ``cost_details`` or ``is_byok``, also through other services. Perplexity sends an object ``cost`` with its parts and
    their ``total_cost``. All of it stays, the parts with their sum.

    Args:
        usage: the object.
        currency: the currency of a plain number ``cost`` of this provider, as a code of ISO 4217, or ``None`` if unknown.
            Such a number is then not a cost.
    """
    if "cost_in_usd_ticks" in usage:
        return _money(usage, "cost_in_usd_ticks", _TICK)
    if "cost_details" in usage or "is_byok" in usage:
        return _money(usage, "cost")
    parts = usage.get("cost")
    if type(parts) is dict:
        return _money(parts, "total_cost")
    return _money(usage, "cost", currency=currency) if currency else None


def _money(holder: dict[str, Any], key: str, power: int = 0, *, currency: str = "USD") -> Cost | None:
    amount = holder.get(key)
    if amount is None:
        return None
    if (type(amount) is int or type(amount) is float) and 0 <= amount <= _MOST:
        try:
            # By its shortest text, which is what the provider wrote: 0.1, not what binary makes of it.
            money = decimal.Decimal(repr(amount)).scaleb(power, exact())
            return Cost(money.normalize(exact()), currency)
        except ResponseValidationError:
            pass
    leave_mistyped(holder, key)
    return None


def look_at_time(container: dict[str, Any], key: str) -> datetime | None:
    """Return the RFC 3339 time under *key*, which stays there. ``None`` if missing, invalid or, noted, not a string."""
    text = look_at(container, key, str)
    return time_of(text) if text else None


def time_of(text: str) -> datetime | None:
    """Return the time in *text*, in UTC, or ``None`` if it is invalid or has no zone."""
    try:
        time = datetime.fromisoformat(text)
        return time if time.tzinfo is UTC else None if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):  # the latter at the ends of the calendar
        return None
