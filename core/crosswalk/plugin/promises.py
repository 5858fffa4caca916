"""Whose promises hold: what a class declares as leaves does not hold for a class derived from it that reads otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

__all__ = ["overrides_its_leaves"]

_HOOKS: Final = frozenset({"map_delta", "map_usage", "extensions"})
_MARK: Final = "crosswalk_impl"
_HARMLESS: Final = frozenset({
    "build_request", "choice_of", "is_marked", "map_error", "map_finish_reason", "provider_info", "recognizes", "spell",
    # They declare leaves.
    "logprob_leaves",
})  # fmt: skip
"""What reads neither texts nor counts."""
_TRICKS: Final = frozenset({"__getattr__", "__getattribute__"})


def overrides_its_leaves(plugin: Any) -> str | None:
    """The method by which *plugin* may read otherwise than those knew who declared its leaves; ``None`` where there is none.

    Leaves are declared by the first class, from the base on, that has ``provider_info``. One between that and the plugin's
    own that overrides anything that reads says ``leaves_hold = True`` in its body, if it is so, or nothing is learnt of what
    the plugin reads. So does a class of a dialect that a family of another package speaks.
    """
    kinds = _kinds(plugin)
    promising = [number for number, kind in enumerate(kinds) if "provider_info" in vars(kind)]
    if not promising:
        return None
    found = _overridden(kinds[: promising[-1]], kinds)
    packages = {_package(kinds[promising[-1]]), __name__.partition(".")[0]}
    for dialect in _dialects(plugin) if found is None else ():
        own = _kinds(dialect)
        known = (number for number, kind in enumerate(own) if number and _package(kind) in packages)
        found = found or _overridden(own[: next(known, 0)], own)
    return found


def _kinds(plugin: Any) -> list[Any]:
    """Where attributes of *plugin* are looked for, in that order; Python's own ``object`` has none."""
    return [
        kind for kind in (plugin, *type(plugin).__mro__) if hasattr(kind, "__dict__") and kind is not object
    ]


def _package(kind: Any) -> str:
    return str(getattr(kind, "__module__", "")).partition(".")[0]


def _dialects(plugin: Any) -> Iterable[Any]:
    found = getattr(plugin, "dialects", ())
    return found if isinstance(found, tuple | list) else ()


def _overridden(some: Sequence[Any], kinds: Sequence[Any]) -> str | None:
    """What one of *some*, which stand before all other *kinds*, overrides without a word."""
    for number, kind in enumerate(some):
        if vars(kind).get("leaves_hold") is True:
            continue
        for name, value in vars(kind).items():
            if name in _HARMLESS or not _is_method(value):
                continue
            replaced = (vars(base)[name] for base in kinds[number + 1 :] if name in vars(base))
            mark = getattr(value, _MARK, None)
            hook = (mark.get("specname") if isinstance(mark, dict) else None) or name
            if (
                name in _TRICKS
                or hook in _HOOKS
                or (not name.startswith("__") and _is_method(next(replaced, None)))
            ):
                return str(name)
    return None


def _is_method(value: Any) -> bool:
    """Whether *value* is, or gives when it is asked for, something that may be called: no plain data."""
    return callable(value) or hasattr(type(value), "__get__")
