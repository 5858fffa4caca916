"""Malformed JSON, repaired by the ``json-repair`` library within a bound that does not depend on the clock.

The library takes time that grows with the square of some texts: 6 seconds for 32 KB of unquoted words. So the
text that it gets counts how often it is looked at, in one count for all the candidates of an answer. One long string
takes it such time in a way that no count sees, hence the limit of length.
"""

from __future__ import annotations

import re
from typing import Any, Final, SupportsIndex

import attrs
import orjson

from crosswalk.structured.decode import NO_JSON, loads

__all__ = [
    "LOOKS_PER_CHARACTER",
    "MOST_REPAIRS",
    "REPAIR_LIMIT",
    "Meter",
    "RepairLimitError",
    "mend",
    "repair_json",
]

REPAIR_LIMIT: Final = 2**17
"""The longest text that repair is tried on, in characters."""
LOOKS_PER_CHARACTER: Final = 32
"""How often a character of an answer may be looked at on average; ordinary damage takes less than half of it."""
MOST_REPAIRS: Final = 16
"""How many candidates of one answer are repaired at most."""
_FREE_LOOKS: Final = 250_000
_CHARACTERS_A_LOOK: Final = 64  # of a slice, which is copied as a whole

_item = str.__getitem__


class RepairLimitError(Exception):
    """Repair would take more than the text is worth; never leaves this package."""


@attrs.define
class Meter:
    """What the repair of one answer may still cost.

    Attributes:
        looks: how many more looks at a character.
        repairs: how many more candidates.
    """

    looks: int
    repairs: int = MOST_REPAIRS

    @classmethod
    def for_text(cls, text: str) -> Meter:
        """What the repair of all that is in *text* may cost."""
        return cls(_FREE_LOOKS + LOOKS_PER_CHARACTER * min(len(text), REPAIR_LIMIT))

    def spend(self, looks: int) -> None:
        """Count *looks*.

        Raises:
            RepairLimitError: there are not so many left.
        """
        self.looks -= looks
        if self.looks < 0:
            raise RepairLimitError


class _MeteredText(str):
    """A text that counts how often it is looked at."""

    __slots__ = ("meter",)

    meter: Meter

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


def _metered(text: str, meter: Meter) -> _MeteredText:
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
        return mend(broken_json, Meter.for_text(broken_json))
    except RepairLimitError:
        return None


def mend(broken: str, meter: Meter) -> str | None:
    """As :func:`repair_json`, and says when a limit was passed.

    Raises:
        RepairLimitError: the text is longer than :data:`REPAIR_LIMIT`, takes more than *meter* has left, or is
            nested deeper than Python's stack.
    """
    meter.repairs -= 1
    if len(broken) > REPAIR_LIMIT or meter.repairs < 0:
        raise RepairLimitError
    import json_repair

    text: Any = _metered(broken, meter)
    try:
        repaired = str(json_repair.repair_json(text, skip_json_loads=True, ensure_ascii=False))
        return _without_made_up_texts(repaired, broken) or None
    except (RecursionError, RepairLimitError):
        raise RepairLimitError from None
    except Exception as error:  # the library's own bugs included: a stranger's text must not get through
        if isinstance(error.__context__, RecursionError):
            raise RepairLimitError from None
        return None


_NO_VALUE: Final = re.compile(r"(?<![\w\"'])(?:NaN|[-+]?Infinity|undefined)(?![\w\"'])")


def _without_made_up_texts(repaired: str, broken: str) -> str:
    """*repaired* with ``null`` where the library made a text of a bare word that stands for no value."""
    words = {json for word in set(_NO_VALUE.findall(broken)) if (json := f'"{word}"') not in broken}
    data = loads(repaired) if words else NO_JSON
    if data is NO_JSON:
        return repaired
    return orjson.dumps(_with_null(data, {word[1:-1] for word in words})).decode()


def _with_null(value: Any, words: set[str]) -> Any:
    if type(value) is dict:
        return {key: _with_null(item, words) for key, item in value.items()}
    if type(value) is list:
        return [_with_null(item, words) for item in value]
    return None if type(value) is str and value in words else value
