"""Load the plugins of one provider, and name the distribution of a broken one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import getattr_static
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

import pluggy

from crosswalk.errors import PluginError
from crosswalk.plugin.hookspecs import PROJECT, ProviderHooks
from crosswalk.plugin.installed import Point, distribution_of, unmet_requirement
from crosswalk.plugin.mapper import (
    HOOKS,
    Mapper,
    check_info,
    implements,
    is_cancellation,
    is_wrapper,
    resolve,
)

if TYPE_CHECKING:
    from crosswalk.plugin.info import ProviderInfo


OURS = "crosswalk-llm"
"""The distribution of the shipped providers. It is not ``crosswalk``, which is an unrelated project on PyPI."""


def is_ours(point: Point) -> bool:
    """Return whether *point* is of Crosswalk itself."""
    return distribution_of(point) == OURS


def resolved_or_shipped(
    name: str, points: tuple[Point, ...], registered: Iterable[Any], lookup: Callable[[str], Mapper]
) -> Mapper:
    """Return the mapper of *points* and *registered*, without the override of another distribution if that is broken.

    Raises:
        PluginError: as from :func:`resolved`, if the shipped provider is broken, or there is none.
    """
    try:
        return resolved(name, points, registered, lookup)
    except PluginError as error:
        working = tuple(point for point in points if is_ours(point) or not _is_of(point, error.distribution))
        if len(working) == len(points) or not any(map(is_ours, working)):
            raise
        warnings.warn(
            f"{error}; it is ignored, and the shipped provider is used", RuntimeWarning, stacklevel=4
        )
        return resolved_or_shipped(name, working, registered, lookup)


def _is_of(point: Point, distribution: str | None) -> bool:
    return point.dist is not None and point.dist.name == distribution


def resolved(
    name: str, points: Iterable[Point], registered: Iterable[Any], lookup: Callable[[str], Mapper]
) -> Mapper:
    """Return the mapper of the plugins that *points* load and those *registered*, the later before the earlier.

    Args:
        name: the provider id.
        points: the entry points, in order of precedence.
        registered: plugins that a program has registered.
        lookup: returns the mapper of another provider, for a dialect that builds on it.

    Raises:
        PluginError: a plugin cannot be imported or breaks the hookspec. It names the distribution.
    """
    manager = _Manager(PROJECT)
    manager.add_hookspecs(ProviderHooks)
    point: Point | None = None
    sources: dict[int, Point] = {}
    for point in points:
        with _blaming(name, point, "it cannot be imported"):
            plugin = point.load()
        sources[id(plugin)] = point
        _register(manager, name, plugin, point)
    for plugin in registered:
        _register(manager, name, plugin, None)
    if not implements(manager, "map_delta"):
        raise _broken(name, point, "it does not implement map_delta")
    describers = manager.hook.provider_info.get_hookimpls()
    _merge_descriptions(name, [one for one in reversed(describers) if not is_wrapper(one)], sources)
    with _blaming(name, sources.get(id(describers[-1].plugin)) if describers else None, _UNDESCRIBED):
        return resolve(name, manager, lookup)


def _merge_descriptions(
    name: str, describers: Sequence[pluggy.HookImpl], sources: Mapping[int, Point]
) -> None:
    """Make the first of *describers* return the fields of the others, too, unless it sets them itself."""
    functions = [(one.function, sources.get(id(one.plugin))) for one in describers]

    def merged() -> ProviderInfo | None:
        result: ProviderInfo | None = None
        for function, point in functions:
            with _blaming(name, point, _UNDESCRIBED):
                info: Any = function()
                check_info(info)
            result = info if result is None or info is None else result.over(info)
        return result

    if len(functions) > 1:
        object.__setattr__(describers[0], "function", merged)  # this provider's own record of it


def _register(manager: pluggy.PluginManager, name: str, plugin: Any, point: Point | None) -> None:
    with _blaming(name, point, "it breaks the hookspec"):
        if manager.is_registered(plugin):
            return  # two entry points, or two calls of register(), may name one object
        # Under a unique name: two plugins may be classes, or modules, of one name.
        manager.register(plugin, f"{name} {len(manager.get_plugins()) + 1}")
        manager.check_pending()
        for caller in manager.get_hookcallers(plugin) or () if isinstance(plugin, type) else ():
            if isinstance(getattr_static(plugin, caller.name), FunctionType):
                raise TypeError(f"{plugin.__name__} is a class: give an object of it")


@contextmanager
def _blaming(name: str, point: Point | None, cause: str) -> Iterator[None]:
    """Raise a :class:`PluginError` for any exception of a plugin: its ``SystemExit`` must not end the program."""
    try:
        yield
    except BaseException as error:
        if is_cancellation(error) or (isinstance(error, PluginError) and error.plugin == name):
            raise
        raise _broken(name, point, f"{cause}: {_shown(error)}") from error


_UNDESCRIBED: Final = "provider_info failed"


def _broken(name: str, point: Point | None, cause: str) -> PluginError:
    distribution = point.dist.name if point is not None and point.dist is not None else None
    source = f" (from distribution {distribution!r})" if distribution else ""
    # It loads importlib.metadata, which reading answers does not need.
    from crosswalk.version import __version__

    needed = None if point is None else unmet_requirement(point, OURS, __version__)
    if needed is not None:
        cause += (
            f"; it requires {OURS}>={needed}, and {__version__} is installed: pip install '{OURS}>={needed}'"
        )
    return PluginError(f"provider {name!r}{source}: {cause}", plugin=name, distribution=distribution)


def _shown(error: BaseException) -> str:
    try:
        cause = " ".join(str(error).split())
    except Exception:  # it is the plugin's own class
        cause = ""
    return f"{type(error).__name__}: {cause[:400]}" if cause else type(error).__name__


class _Manager(pluggy.PluginManager):
    """Skips Python's own names and specifications of unknown hooks, which take most of the time of finding a plugin's
    hooks.

    A method that overrides a hook is one, even without the marker.
    """

    def parse_hookimpl_opts(self, plugin: Any, name: str) -> Any:
        if name.startswith("__"):
            return None
        stored = _stored(plugin, name)
        if type(stored) is FunctionType:  # pluggy takes ten times as long to inspect it
            mark = getattr(stored, _MARK, None)
            if mark is not None or name not in HOOKS:
                return mark
        elif name not in HOOKS and not (callable(stored) or hasattr(type(stored), "__get__")):
            return None  # plain data
        result = super().parse_hookimpl_opts(plugin, name)
        if result is None and name in HOOKS and callable(getattr(plugin, name)):
            overridden = [getattr(kind, name, None) for kind in type(plugin).__mro__]
            marks = (getattr(method, _MARK, None) for method in overridden)
            is_typed = not hasattr(stored, _SPEC) and any(hasattr(method, _SPEC) for method in overridden)
            return next(filter(None, marks), {} if is_typed else None)
        return result

    def parse_hookspec_opts(self, module_or_class: Any, name: str) -> Any:
        return getattr(getattr(module_or_class, name), _SPEC) if name in HOOKS else None


_MARK: Final = f"{PROJECT}_impl"
_SPEC: Final = f"{PROJECT}_spec"


def _stored(plugin: Any, name: str) -> Any:
    """Return the attribute *name* of *plugin* or its class, without evaluating a property. A property if it is unknown."""
    kinds = plugin.__mro__ if isinstance(plugin, type) else type(plugin).__mro__
    for names in (getattr(plugin, "__dict__", {}), *map(vars, kinds)):
        if name in names:
            return names[name]
    return property()
