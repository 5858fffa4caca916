"""Which provider a payload of unknown origin comes from."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

from crosswalk.errors import DetectionError, PluginError
from crosswalk.plugin.info import Recognition
from crosswalk.plugin.mapper import is_cancellation
from crosswalk.plugin.registry import Registry

__all__ = ["LOOKED_AT", "ask", "candidates", "detect"]

LOOKED_AT = 50
"""A stream tells its origin early, or not at all."""


def candidates(events: Iterable[Any], registry: Registry) -> dict[str, Recognition]:
    """The providers that recognize *events*, and how well: the best of the first fifty events.

    One whose server speaks a dialect that another provider recognizes is possible too, and no more than that.
    Imports every provider that is not blocked; a broken one is passed over.
    """
    looked_at = list(islice(events, LOOKED_AT))
    found: dict[str, Recognition] = {}
    speaks: dict[str, tuple[str, ...]] = {}
    for name in registry.names():
        try:
            mapper = registry.mapper(name)
        except PluginError:
            continue
        speaks[name] = mapper.info.speaks
        best = max((ask(mapper.recognizes, event) for event in looked_at), default=Recognition.NO)
        if best is not Recognition.NO:
            found[name] = best
    spoken = {name for name, dialects in speaks.items() if not found.keys().isdisjoint(dialects)}
    return found | dict.fromkeys(spoken - found.keys(), Recognition.POSSIBLE)


def ask(recognizes: Any, event: Any) -> Recognition:
    """How well a provider fits *event*, as its hook *recognizes* says; one that fails does not fit."""
    try:
        return Recognition(recognizes(event) or Recognition.NO)
    except BaseException as error:  # a stranger's code on a payload that need not be his
        if is_cancellation(error):
            raise
        return Recognition.NO


def detect(events: Iterable[Any], registry: Registry) -> str:
    """The one provider that recognizes *events* best.

    Raises:
        DetectionError: none does, or several do equally; it lists them.
    """
    found = candidates(events, registry)
    best = max(found.values(), default=Recognition.NO)
    names = sorted(name for name, how in found.items() if how is best)
    if len(names) == 1:
        return names[0]
    if not names:
        known = ", ".join(registry.names()) or "none"
        raise DetectionError(f"no provider recognizes this payload; pass provider=…, one of: {known}")
    raise DetectionError(
        f"several providers speak this dialect: {', '.join(names)}; pass provider=…", candidates=names
    )
