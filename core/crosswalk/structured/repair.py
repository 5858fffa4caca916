"""Malformed JSON, repaired by the ``json-repair`` library within a bound that does not depend on the clock.

The library takes time that grows with the square of some texts: 6 seconds for 32 KB of unquoted words. So the
text that it gets counts how often it is looked at. One long string takes it such time in a way that no count
sees, hence the limit of length.
"""

from __future__ import annotations

from typing import Any, Final, SupportsIndex

import attrs

__all__ = ["LOOKS_PER_CHARACTER", "REPAIR_LIMIT", "RepairLimitError", "mend", "repair_json"]

REPAIR_LIMIT: Final = 2**17
"""The longest text that repair is tried on, in characters."""
LOOKS_PER_CHARACTER: Final = 32
"""How often a character may be looked at on average; ordinary damage takes less than half of it."""
_FREE_LOOKS: Final = 250_000
_CHARACTERS_A_LOOK: Final = 64  # of a slice, which is copied as a whole

_item = str.__getitem__


class RepairLimitError(Exception):
    """Repair would take more than the text is worth; never leaves this package."""


@attrs.define
class _Meter:
    left: int

    def spend(self, looks: int) -> None:
        self.left -= looks
        if self.left < 0:
            raise RepairLimitError


class _MeteredText(str):
    """A text that counts how often it is looked at."""

    __slots__ = ("meter",)

    meter: _Meter

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        found = _item(self, key)
        if isinstance(key, slice):
            self.meter.spend(1 + len(found) // _CHARACTERS_A_LOOK)
            # A head or tail: the library puts something between the two and goes on with that.
            return _metered(found, self.meter) if key.start is None or key.stop is None else found
        self.meter.spend(1)
        return found

    def __add__(self, other: str) -> str:
        joined = str.__add__(self, other)
        self.meter.spend(1 + len(joined) // _CHARACTERS_A_LOOK)
        return _metered(joined, self.meter)


def _metered(text: str, meter: _Meter) -> _MeteredText:
    metered = _MeteredText(text)
    metered.meter = meter
    return metered


def repair_json(broken_json: str) -> str | None:
    """Repair malformed JSON.

    Nothing is known here about where the text ends: what it leaves open is closed.

    Returns:
        JSON; ``None`` where it cannot be repaired, or only with more work than the text is worth.
    """
    try:
        return mend(broken_json)
    except RepairLimitError:
        return None


def mend(broken: str) -> str | None:
    """As :func:`repair_json`, and says when a limit was passed.

    Raises:
        RepairLimitError: the text is longer than :data:`REPAIR_LIMIT`, takes too much work, or is nested deeper
            than Python's stack.
    """
    if len(broken) > REPAIR_LIMIT:
        raise RepairLimitError
    import json_repair

    meter = _Meter(_FREE_LOOKS + LOOKS_PER_CHARACTER * len(broken))
    text: Any = _metered(broken, meter)
    try:
        repaired = json_repair.repair_json(text, skip_json_loads=True, ensure_ascii=False)
    except (RecursionError, RepairLimitError):
        raise RepairLimitError from None
    except Exception as error:  # the library's own bugs included: a stranger's text must not get through
        if isinstance(error.__context__, RecursionError):
            raise RepairLimitError from None
        return None
    return str(repaired) or None
