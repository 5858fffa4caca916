"""Which leaves the typed fields have taken. What is not named here stays in the extensions."""

from __future__ import annotations

from typing import Any

from crosswalk import TAKEN, residue
from crosswalk.plugins import MappingState
from crosswalk_kelp.answers import time
from crosswalk_kelp.errors import is_error

__all__ = ["rest_of"]

_CONSUMED = {
    "out": [{"think": TAKEN, "say": TAKEN, "do": TAKEN, "with": TAKEN}],
    "tide": TAKEN,
    # The sum of "in" and "in_cached" does not show "in"; the duration shows no trailing zeros.
    "bye": {"spent": {"in_cached": TAKEN, "out": TAKEN}},
}


def rest_of(event: Any, state: MappingState) -> dict[str, Any]:
    """*event* less what the typed fields have taken; the error segment keeps an error whole."""
    if is_error(event):
        return {}
    rest = residue(event, _CONSUMED, state)
    # A table says the same of every item of an array; what a position means is said here.
    if "hi" in rest:
        rest["hi"] = [
            value for position, value in enumerate(rest["hi"]) if not _is_taken(position, value, state)
        ]
    if "p" in rest:
        rest["p"] = rest["p"][3:]
    return {key: value for key, value in rest.items() if value != []}


def _is_taken(position: int, value: Any, state: MappingState) -> bool:
    if position == 1:
        return bool(value == state.model)
    if position == 2:
        return bool(value == state.response_id)
    return position == 3 and state.created is not None and time(value) == state.created
