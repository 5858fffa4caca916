"""Whose promises hold: what a class declares as leaves does not hold for a class derived from it that reads otherwise."""

from __future__ import annotations

from types import FunctionType, MethodType
from typing import Any, Final

__all__ = ["overrides_its_leaves"]

_METHODS: Final = (FunctionType, MethodType, property, staticmethod, classmethod)
_HOOKS: Final = frozenset({"map_delta", "extensions"})
_HARMLESS: Final = frozenset({
    # They read no text.
    "__init__", "build_request", "is_marked", "map_error", "map_finish_reason", "recognizes", "spell",
    # What they make of counts and of log probabilities is asked, of each event that is learnt from.
    "logprobs", "map_usage", "usage_info",
})  # fmt: skip


def overrides_its_leaves(plugin: Any) -> str | None:
    """The method by which *plugin* may read otherwise than those who declared its leaves knew; ``None`` where there is none.

    Leaves are declared where ``provider_info`` is. A class between that and the plugin's own which overrides anything that
    reads says ``leaves_hold = True`` in its body, if it is so, or nothing is learnt of what the plugin reads.
    """
    kinds: list[object] = [kind for kind in (plugin, *type(plugin).__mro__) if hasattr(kind, "__dict__")]
    promising = next((number for number, kind in enumerate(kinds) if "provider_info" in vars(kind)), 0)
    for number, kind in enumerate(kinds[:promising]):
        if vars(kind).get("leaves_hold") is not True:
            for name, value in vars(kind).items():
                is_new = not any(name in vars(base) for base in kinds[number + 1 :])
                if isinstance(value, _METHODS) and name not in _HARMLESS and (name in _HOOKS or not is_new):
                    return name
    return None
