"""The token counts and log probabilities of a repeated event, which the plugin reads without the rest of the event."""

from __future__ import annotations

from collections.abc import Container
from types import NoneType
from typing import Any

from crosswalk.mapping.event import EventMapper
from crosswalk.plugin.hooks import LogprobReader, Path
from crosswalk.plugin.registry import is_cancellation
from crosswalk.plugin.state import NOTED, MappingState, prune
from crosswalk.types.json import is_indexed, same_json
from crosswalk.types.usage import UsageInfo
from crosswalk.types.values import TokenLogprob


def read_alone(
    events: EventMapper,
    state: MappingState,
    values: dict[str, Any],
    sent_empty: Container[int],
    tokens: DetachedLogprobs | None,
    text: str,
) -> tuple[UsageInfo | None, tuple[TokenLogprob, ...] | None, dict[str, Any]] | None:
    """Let the plugin read *values*, and add the residue to the extensions.

    Args:
        events: the mapper of events.
        state: the state of the answer.
        values: an event with only these values.
        sent_empty: its empty containers, by identity.
        tokens: the log probabilities among them, or ``None`` without any.
        text: the text of the event.

    Returns:
        Counts, log probabilities, and changes of the extensions, or ``None`` if the hooks must map the whole event. A hook
        that fails raises its error then.
    """
    logprobs = usage = remaining = None
    mapper, has_failed, residue = events.mapper, False, values
    try:
        if tokens is not None:
            logprobs = tokens.take(text)
        if mapper.info.usage_key in values:
            usage = mapper.map_usage(values, state)
        prune(values, sent_empty)
        if tokens is not None:
            remaining = values.pop(tokens.first, None)
        if values and mapper.extensions is not None:
            stored = mapper.extensions(values, state)
            residue = {} if stored is None else stored
    except BaseException as error:
        if is_cancellation(error):
            raise
        has_failed = True
    if (
        has_failed
        or NOTED.values
        or type(usage) not in (UsageInfo, NoneType)
        or type(residue) is not dict
        or (tokens is not None and type(logprobs) is not tuple)
        or (remaining is not None and tokens is not None and not tokens.is_held(remaining, state.extensions))
    ):
        NOTED.values.clear()
        return None
    return usage, logprobs, events.extend(residue) if residue else residue


class DetachedLogprobs:
    """Log probabilities that were taken out of an event for a moment.

    Attributes:
        first: the top-level key of the event that they are under.
    """

    __slots__ = ("_holder", "_key", "_owners", "_read", "_steps", "_value", "first")

    def __init__(self, owners: list[Any], steps: Path, key: Any, value: Any, read: LogprobReader) -> None:
        self._owners, self._steps, self._key, self._value, self._read = owners, steps, key, value, read
        self._holder = _only(owners[-1], key, value)
        self.first = str(steps[0] if steps else key)

    def attach(self) -> None:
        """Put them back."""
        self._owners[-1][self._key] = self._value

    def nested(self) -> Any:
        """Return the value under :attr:`first` in an event without other values. An item of an array keeps its index."""
        value: Any = self._holder
        for owner, step in zip(reversed(self._owners[:-1]), reversed(self._steps), strict=True):
            value = [value] if type(owner) is list else _only(owner, step, value)
        return value[self.first]

    def take(self, text: str) -> tuple[TokenLogprob, ...] | None:
        """Let the plugin's function read them."""
        return self._read(self._holder, text)

    def is_held(self, left: Any, extensions: dict[str, Any]) -> bool:
        """Whether the *extensions* hold what is *left* of them already, as what the last event left."""
        return self._key not in self._holder or _holds(extensions.get(self.first), left)


def _only(owner: dict[str, Any], key: Any, value: Any) -> dict[str, Any]:
    """*owner* with *value* under *key*, and with its index, in its order, and nothing else."""
    return {name: value if name == key else owner[name] for name in owner if name in (key, "index")}


def _holds(known: Any, part: Any) -> bool:
    """Whether merging *part* into *known* would change nothing."""
    if type(part) is dict:
        return type(known) is dict and all(key in known and _holds(known[key], part[key]) for key in part)
    if type(part) is list:
        if not (type(known) is list and is_indexed(known) and is_indexed(part)):
            return False
        by_index = {item["index"]: item for item in known}
        return all(_holds(by_index.get(item["index"]), item) for item in part)
    return part is None or same_json(known, part)
