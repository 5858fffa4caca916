"""Finds providers by name, and keeps a broken one from hurting the others."""

from __future__ import annotations

import difflib
import os
import threading
from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import attrs
import pluggy

from crosswalk.errors import PluginError, UnknownProviderError
from crosswalk.plugin import hookspecs
from crosswalk.plugin.mapper import Mapper, implements, resolve

__all__ = ["DISABLED_VARIABLE", "ENTRY_POINT_GROUP", "ProviderEntry", "Registry", "registry"]

ENTRY_POINT_GROUP = "crosswalk.providers"
"""The entry-point group in which distributions register providers; the entry's name is the provider id."""
DISABLED_VARIABLE = "CROSSWALK_DISABLED_PLUGINS"
"""Names the provider ids, separated by commas, that are never imported."""
_OURS = "crosswalk"
"""The distribution of what is shipped."""
# A plugin is a stranger's code: whatever it raises, SystemExit included, must not stop the others.
_STRANGERS_FAULTS = (Exception, SystemExit)


@attrs.frozen
class ProviderEntry:
    """A provider as it is registered; nothing of it has been imported for this.

    Attributes:
        name: the provider id.
        distribution: the installed distribution that ships it; ``None`` when registered in the program.
        version: that distribution's version; ``None`` likewise.
        target: the entry point's value, or what was registered.
        blocked: whether it must not be imported.
        overrides: the distributions whose plugins of the same name it overrides, hook by hook.
    """

    name: str
    distribution: str | None
    version: str | None
    target: str
    blocked: bool = False
    overrides: tuple[str, ...] = ()


class Registry:
    """The providers that this program can use.

    Installed providers are found by their entry points, which are read once, when first needed; a provider's
    code is imported when it is first resolved. Safe to use from several threads.

    Args:
        installed: the entry points to offer; ``None`` for those of the environment.
        environ: where to look for ``CROSSWALK_DISABLED_PLUGINS``; ``None`` for the process's environment.
    """

    def __init__(
        self,
        *,
        installed: Iterable[EntryPoint] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        names = (os.environ if environ is None else environ).get(DISABLED_VARIABLE, "")
        self._blocked = {name.strip() for name in names.split(",") if name.strip()}
        self._given = None if installed is None else list(installed)
        self._installed: dict[str, list[EntryPoint]] | None = None
        self._registered: dict[str, list[Any]] = {}
        self._mappers: dict[str, Mapper] = {}
        self._lock = threading.RLock()

    def register(self, plugin: Any, name: str) -> None:
        """Add *plugin*, a module or object with hook implementations, as provider *name*.

        Where the name is known already, the newcomer's hooks come before those of the same name, and its wrappers around
        them, as in pluggy; hooks that it does not have stay as they are.
        """
        given: object = name  # the arguments are easily swapped
        if not isinstance(given, str) or not given:
            raise TypeError("register(plugin, name): the name is a string")
        with self._lock:
            self._registered.setdefault(name, []).append(plugin)
            self._mappers.pop(name, None)

    def unregister(self, plugin: Any, name: str) -> None:
        """Take back a :meth:`register`.

        Raises:
            UnknownProviderError: *plugin* is not registered under *name*.
        """
        with self._lock:
            plugins = self._registered.get(name, [])
            if plugin not in plugins:
                raise UnknownProviderError(f"provider {name!r}: not registered here", plugin=name)
            plugins.remove(plugin)
            self._mappers.pop(name, None)

    def block(self, name: str) -> None:
        """Never import or resolve provider *name* from now on."""
        with self._lock:
            self._blocked.add(name)
            self._mappers.pop(name, None)

    def unblock(self, name: str) -> None:
        """Take back a :meth:`block`."""
        with self._lock:
            self._blocked.discard(name)

    def providers(self) -> list[ProviderEntry]:
        """All providers by name, blocked ones included; imports none of them."""
        with self._lock:
            names = sorted({*self._entry_points(), *(n for n, p in self._registered.items() if p)})
            return [self._entry(name) for name in names]

    def names(self) -> list[str]:
        """The ids of all providers that are not blocked."""
        with self._lock:  # without entries: a distribution's metadata takes long to read
            registered = (name for name, plugins in self._registered.items() if plugins)
            return sorted({*self._entry_points(), *registered} - self._blocked)

    def mapper(self, name: str) -> Mapper:
        """Provider *name*, resolved to direct callables; its code is imported now if it was not yet.

        Raises:
            UnknownProviderError: nobody registered that name, or it is blocked.
            PluginError: the plugin cannot be imported or breaks the hookspec.
        """
        with self._lock:
            mapper = self._mappers.get(name)
            if mapper is None:
                if not isinstance(name, str):
                    given = type(name).__name__  # a caller may not be typed
                    known = self.names()
                    raise UnknownProviderError(
                        f"a provider id is a string, not {given}", plugin=given, known=known
                    )
                mapper = self._mappers[name] = self._resolve(name)
            return mapper

    def _resolve(self, name: str) -> Mapper:
        if name in self._blocked:
            raise UnknownProviderError(f"provider {name!r} is blocked", plugin=name, known=self.names())
        registered = self._registered.get(name, [])
        found = self._entry_points().get(name, [])
        if not registered and not found:
            known = self.names()
            raise UnknownProviderError(
                f"unknown provider {name!r}{_meant(name, known)}; known: {', '.join(known) or 'none'}",
                plugin=name,
                known=known,
            )
        manager = pluggy.PluginManager(hookspecs.PROJECT)
        manager.add_hookspecs(hookspecs)
        sources: dict[int, EntryPoint] = {}
        for point in found:
            plugin = _load(name, point)
            sources[id(plugin)] = point
            _register(manager, name, plugin, point)
        for plugin in registered:
            _register(manager, name, plugin, None)
        if not implements(manager, "map_delta"):
            raise _broken(name, found[-1] if found else None, "it does not implement map_delta")
        try:
            return resolve(name, manager, self.mapper)
        except _STRANGERS_FAULTS as error:
            describer = manager.hook.provider_info.get_hookimpls()[-1]
            point_at_fault = sources.get(id(describer.plugin))
            raise _broken(name, point_at_fault, f"provider_info failed: {_shown(error)}") from error

    def _entry_points(self) -> dict[str, list[EntryPoint]]:
        if self._installed is None:
            points = self._given
            if points is None:
                points = list(entry_points(group=ENTRY_POINT_GROUP))
            self._installed = {}
            for point in points:
                self._installed.setdefault(point.name, []).append(point)
            for several in self._installed.values():
                if len(several) > 1:
                    several.sort(key=_precedence)
        return self._installed

    def _entry(self, name: str) -> ProviderEntry:
        blocked = name in self._blocked
        if self._registered.get(name):
            plugin = self._registered[name][-1]
            target = getattr(plugin, "__name__", type(plugin).__qualname__)
            installed = self._entry_points().get(name, [])
            return ProviderEntry(name, None, None, target, blocked, _distributions(installed))
        *overridden, point = self._entry_points()[name]
        distribution = point.dist
        return ProviderEntry(
            name,
            distribution.name if distribution else None,
            distribution.version if distribution else None,
            point.value,
            blocked,
            _distributions(overridden),
        )


def _distributions(points: Iterable[EntryPoint]) -> tuple[str, ...]:
    return tuple(point.dist.name for point in points if point.dist is not None)


def _precedence(point: EntryPoint) -> tuple[bool, str]:
    """What Crosswalk ships comes first, so that another package's plugin of the same name overrides it; then by name."""
    distribution = point.dist.name if point.dist is not None else ""
    return distribution != _OURS, distribution


def _load(name: str, point: EntryPoint) -> Any:
    try:
        return point.load()
    except _STRANGERS_FAULTS as error:
        raise _broken(name, point, f"it cannot be imported: {_shown(error)}") from error


def _register(manager: pluggy.PluginManager, name: str, plugin: Any, point: EntryPoint | None) -> None:
    if manager.is_registered(plugin):
        return  # two entry points, or two calls of register(), may name one object
    try:
        # Under a name of its own: two plugins may be classes, or modules, of one name.
        manager.register(plugin, f"{name} {len(manager.get_plugins()) + 1}")
        manager.check_pending()
    except _STRANGERS_FAULTS as error:
        raise _broken(name, point, f"it breaks the hookspec: {_shown(error)}") from error


def _broken(name: str, point: EntryPoint | None, cause: str) -> PluginError:
    distribution = point.dist.name if point is not None and point.dist is not None else None
    source = f" (from distribution {distribution!r})" if distribution else ""
    return PluginError(f"provider {name!r}{source}: {cause}", plugin=name, distribution=distribution)


def _meant(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name.lower(), known, n=1)
    return f", did you mean {close[0]!r}?" if close else ""


def _shown(error: BaseException) -> str:
    cause = " ".join(str(error).split())
    return f"{type(error).__name__}: {cause[:400]}" if cause else type(error).__name__


registry = Registry()
"""The registry that ``crosswalk.normalize`` and its kin use where none is given."""
