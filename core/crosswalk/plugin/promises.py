"""Whose promises hold: what a class declares as leaves does not hold for a class derived from it that reads otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import MemberDescriptorType
from typing import Any, Final

import attrs

from crosswalk.plugin.hookspecs import PROJECT
from crosswalk.plugin.info import ProviderInfo

__all__ = ["overrides_its_leaves"]

_HOOKS: Final = frozenset({"map_delta", "map_usage", "extensions"})
_MARK: Final = f"{PROJECT}_impl"
_HARMLESS: Final = {
    *(field.name for field in attrs.fields(ProviderInfo)),
    *("build_request", "choice_of", "map_error", "map_finish_reason", "provider_info"),
}
"""What reads neither texts nor counts."""
_CHOOSING: Final = {"is_marked", "recognizes"}
"""What says who reads, where a server speaks several dialects."""
_TRICKS: Final = frozenset({"__getattr__", "__getattribute__"})


def overrides_its_leaves(plugin: Any, *, speaks: bool = False) -> str | None:
    """The method by which *plugin* may read otherwise than those knew who declared its leaves; ``None`` where there is none.

    Leaves are declared by the first class, from the base on, that has ``provider_info``. One between that and the plugin's
    own that overrides anything that reads says ``leaves_hold = True`` in its body, if it is so, or nothing is learnt of what
    the plugin reads. So does a class of a dialect that a family of another package speaks.

    Args:
        plugin: the plugin.
        speaks: whether its server speaks other dialects, too: who recognizes an answer then says who reads it.
    """
    kinds = _kinds(plugin)
    promising = [number for number, kind in enumerate(kinds) if "provider_info" in vars(kind)]
    if not promising:
        return None
    harmless = _HARMLESS if speaks else _HARMLESS | _CHOOSING
    found = _overridden(kinds[: promising[-1]], kinds, harmless)
    packages = {_package(kinds[promising[-1]]), __name__.partition(".")[0]}
    for dialect in _dialects(plugin):
        found = found or _foreign(dialect, packages)
    return found


def _foreign(dialect: Any, packages: set[str]) -> str | None:
    """What of *dialect* is not of any of these *packages*, and reads."""
    kinds = _kinds(dialect)
    known = [number for number, kind in enumerate(kinds) if number and _package(kind) in packages]
    if known:
        return _overridden(kinds[: known[0]], kinds, _HARMLESS)
    return None if vars(type(dialect)).get("leaves_hold") is True else type(dialect).__name__


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


def _overridden(some: Sequence[Any], kinds: Sequence[Any], harmless: set[str]) -> str | None:
    """What one of *some*, which stand before all other *kinds*, overrides without a word."""
    for number, kind in enumerate(some):
        if vars(kind).get("leaves_hold") is True:
            continue
        others = kinds[number + 1 :]
        reads = any("map_delta" in vars(base) for base in others)
        for name, value in vars(kind).items():
            mark = getattr(value, _MARK, None)
            hook = (mark.get("specname") if isinstance(mark, dict) else None) or name
            if not _is_method(value) or hook in harmless:
                continue
            replaced = next((vars(base)[name] for base in others if name in vars(base)), None)
            is_override = _is_method(replaced) and not isinstance(replaced, MemberDescriptorType)
            if name in _TRICKS or (hook in _HOOKS and reads) or (is_override and not name.startswith("__")):
                return str(name)
    return None


def _is_method(value: Any) -> bool:
    """Whether *value* is, or gives when it is asked for, something that may be called: no plain data."""
    return callable(value) or hasattr(type(value), "__get__")
