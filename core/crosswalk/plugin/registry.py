"""Find providers by name, and keep a broken one from affecting the others."""

from __future__ import annotations

import os
import threading
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from importlib import invalidate_caches
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs

from crosswalk.errors import UnknownProviderError
from crosswalk.lazy import pattern
from crosswalk.plugin.installed import (
    Point,
    distribution_of,
    installed_points,
    normal_distribution,
    source_of,
)
from crosswalk.plugin.mapper import Mapper
from crosswalk.plugin.resolution import OURS, is_ours, resolved, resolved_or_shipped
from crosswalk.text import meant

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


ENTRY_POINT_GROUP = "crosswalk.providers"
"""The entry-point group in which distributions register providers. The name of an entry is the provider id."""
DISABLED_VARIABLE = "CROSSWALK_DISABLED_PLUGINS"
"""The variable with the provider ids that are never imported, separated by commas.

``vllm@their-package`` is the provider of one distribution.
"""
Signs: TypeAlias = tuple[frozenset[str], ...]
"""Sets of keys, with dots between them in an entry point. An object has a sign if it has all keys of one set."""


_PROVIDER_ID = pattern(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")
_ID_RULE: Final = "it takes letters, digits and . _ or - between them, at most 100"


@attrs.frozen
class ProviderEntry:
    """A provider as it is registered. Creating this imports no part of it.

    Attributes:
        name: the provider id.
        distribution: the installed distribution that ships it, or ``None`` if it was registered in the program.
        version: the version of that distribution, or ``None`` likewise.
        target: the entry point's value, or the registered object.
        blocked: whether it must not be imported.
        overrides: the distributions with plugins of the same name that it overrides, hook by hook.
    """

    name: str
    distribution: str | None
    version: str | None
    target: str
    blocked: bool = False
    overrides: tuple[str, ...] = ()


class Registry:
    """The providers that this program can use.

    Installed providers are found by their entry points, which are read once, when first needed. A provider's
    code is imported when it is first resolved. Safe to use from several threads: a plugin with a slow import
    only delays the threads that request that plugin.

    Args:
        installed: the entry points to offer, or ``None`` for those of the environment.
        environ: the mapping with ``CROSSWALK_DISABLED_PLUGINS``, or ``None`` for the process's environment.
    """

    def __init__(
        self,
        *,
        installed: Iterable[EntryPoint] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        names = (os.environ if environ is None else environ).get(DISABLED_VARIABLE, "")
        self._blocked = {_normal(name.strip()) for name in names.split(",") if name.strip()}
        self._given: list[Point] | None = None if installed is None else list(installed)
        self._installed: dict[str, list[Point]] | None = None
        self._registered: dict[str, list[Any]] = {}
        self._mappers: dict[str, Mapper] = {}  # looked up without the lock, changed with it
        self._shipped: dict[str, Mapper] = {}
        self._changes: Counter[str] = Counter()  # the number of changes to each name
        # Of all that are not blocked, filled on first request.
        self._signs: Mapping[str, Signs | None] | None = None
        self._origins: dict[str, tuple[bool, bool]] = {}
        self._names_by_origin: tuple[list[str], list[str]] | None = None
        # Never held while a plugin's code is imported or its hooks run: that code may take for ever, or ask here for
        # another provider while a second thread does the reverse. Python itself runs a module's code only once.
        self._lock = threading.RLock()

    def register(self, plugin: Any, name: str) -> None:
        """Add *plugin*, a module or object with hook implementations, as provider *name*.

        If the name exists already, the new hooks come before those of the same name, and the new wrappers around
        them, as in pluggy. Hooks that *plugin* does not have stay unchanged.

        Raises:
            ValueError: *name* is not a provider id: letters, digits and ``.``, ``_`` or ``-`` between them, at most
                100.
        """
        given: object = name  # the arguments are easily swapped
        if not isinstance(given, str):
            raise TypeError("register(plugin, name): the name is a string")
        if not _PROVIDER_ID.fullmatch(name):
            raise ValueError(f"not a provider id: {name[:40]!r}; {_ID_RULE}")
        with self._lock:
            self._registered.setdefault(name, []).append(plugin)
            self._changed(name)

    def unregister(self, plugin: Any, name: str) -> None:
        """Undo a :meth:`register`.

        Raises:
            UnknownProviderError: *plugin* is not registered under *name*.
        """
        with self._lock:
            plugins = self._registered.get(name, [])
            if plugin not in plugins:
                raise UnknownProviderError(f"provider {name!r}: not registered here", plugin=name)
            plugins.remove(plugin)
            self._changed(name)

    def block(self, name: str) -> None:
        """Never import or resolve provider *name* from now on. ``vllm@their-package`` blocks that of one distribution."""
        with self._lock:
            self._blocked.add(_normal(name))
            self._forget(name)

    def unblock(self, name: str) -> None:
        """Undo a :meth:`block`."""
        with self._lock:
            self._blocked.discard(_normal(name))
            self._forget(name)

    def _forget(self, name: str) -> None:
        provider, _, distribution = name.partition("@")
        if distribution:
            self._installed = None
        self._changed(provider)

    def _changed(self, name: str) -> None:
        """Drop the mappers of *name* and of providers that speak its dialect, also those that other threads are
        resolving.
        """
        self._signs = None
        self._origins.clear()
        self._names_by_origin = None
        speak = [other for other, mapper in self._mappers.items() if name in mapper.info.speaks]
        for one in (name, *speak):
            self._changes[one] += 1
            self._mappers.pop(one, None)

    def refresh(self) -> None:
        """Look for installed plugins again, including those that were installed since the program began."""
        with self._lock:
            invalidate_caches()
            self._installed = None
            for name in [*self._mappers]:
                self._changed(name)
            self._signs = None
            self._origins.clear()
            self._names_by_origin = None

    def providers(self) -> list[ProviderEntry]:
        """Return all providers by name, including blocked ones. Imports none of them."""
        with self._lock:
            names = sorted({*self._entry_points(), *(n for n, p in self._registered.items() if p)})
            return [self._entry(name) for name in names]

    def names(self) -> list[str]:
        """The ids of all providers that are not blocked."""
        return [*self.signs()]

    def signs(self) -> Mapping[str, Signs | None]:
        """Return, for each provider that is not blocked, the sets of keys that every object it is certain of has, by
        name.

        They are declared in its entry points. ``None`` if not: only its code can tell.
        """
        result = self._signs
        if result is None:
            with self._lock:  # without entries: reading a distribution's metadata is slow
                registered = (name for name, plugins in self._registered.items() if plugins)
                names = sorted({*self._entry_points(), *registered} - self._blocked)
                result = self._signs = {name: self._signs_of(name) for name in names}
        return result

    def _signs_of(self, name: str) -> Signs | None:
        points = () if self._registered.get(name) else self._entry_points().get(name, ())
        described = [point.value.partition("[")[1:] for point in points]
        if not all(bracket for bracket, _ in described) or not described:
            return None
        signs = [sign for _, keys in described for sign in keys.strip(" ]").replace(",", " ").split()]
        return tuple([frozenset(sign.split(".")) for sign in signs])

    def is_shipped(self, name: str) -> bool:
        """Whether Crosswalk itself ships provider *name*, and it is not blocked."""
        return self._origin(name)[0]

    def is_changed(self, name: str) -> bool:
        """Whether another distribution, or the program, gives hooks for provider *name*."""
        return self._origin(name)[1]

    def _origin(self, name: str) -> tuple[bool, bool]:
        """Whether Crosswalk ships provider *name*, and whether others give hooks for it."""
        result = self._origins.get(name)
        if result is None:
            with self._lock:
                ours = [is_ours(point) for point in self._entry_points().get(name, ())]
                is_shipped = name not in self._blocked and any(ours)
                is_changed = bool(self._registered.get(name)) or not all(ours)
                result = self._origins[name] = is_shipped, is_changed
        return result

    def names_by_origin(self) -> tuple[list[str], list[str]]:
        """The ids of the providers that Crosswalk ships, and of those for which others give hooks, without blocked ones."""
        result = self._names_by_origin
        if result is None:
            with self._lock:
                names = self.names()
                result = self._names_by_origin = (
                    list(filter(self.is_shipped, names)),
                    [name for name in names if self.is_changed(name)],
                )
        return result

    def shipped(self, name: str) -> Mapper:
        """Return provider *name* as Crosswalk ships it, without overrides of it and of the dialects that it also speaks.

        Raises:
            UnknownProviderError: Crosswalk does not ship it, or it is blocked. PluginError: it cannot be imported.
        """
        if not self.is_shipped(name):
            raise UnknownProviderError(f"provider {name!r} is not shipped", plugin=name, known=self.names())
        return self._shipped.get(name) or self._shipped.setdefault(name, self._resolve_shipped(name))

    def _resolve_shipped(self, name: str) -> Mapper:
        if not self.is_changed(name):
            mapper = self.mapper(name)
            if not any(map(self.is_changed, (name, *mapper.info.speaks))):  # another thread may have
                return mapper
        points = [point for point in self._entry_points()[name] if is_ours(point)]
        return resolved(name, points, (), self.shipped)

    def mapper(self, name: str) -> Mapper:
        """Return provider *name*, resolved to direct callables. Its code is imported now unless it already was.

        Raises:
            UnknownProviderError: that name is not registered, or it is blocked.
            PluginError: the plugin cannot be imported or breaks the hookspec. If it overrides a provider that Crosswalk
                ships, a ``RuntimeWarning`` is issued instead, and the shipped one is used.
        """
        if not isinstance(name, str):  # a caller may not be typed
            given = type(name).__name__
            raise UnknownProviderError(
                f"a provider id is a string, not {given}", plugin=given, known=self.names()
            )
        return self._mappers.get(name) or self._resolve(name)

    def _resolve(self, name: str) -> Mapper:
        with self._lock:
            changes = self._changes[name]
            is_blocked = name in self._blocked
            registered = tuple(self._registered.get(name, ()))
            points = tuple(self._entry_points().get(name, ()))
        if is_blocked:
            raise UnknownProviderError(f"provider {name!r} is blocked", plugin=name, known=self.names())
        if not registered and not points:
            known = self.names()
            error = UnknownProviderError(
                f"unknown provider {name!r}{meant(name, known)}; known: {', '.join(known) or 'none'}",
                plugin=name,
                known=known,
            )
            error.add_note("If its plugin was installed after this program began, call registry.refresh().")
            raise error
        mapper = resolved_or_shipped(name, points, registered, self.mapper)
        if self.is_shipped(name) and self.is_changed(name):
            mapper = attrs.evolve(mapper, shipped=self.shipped(name))
        with self._lock:
            if self._changes[name] != changes:
                return mapper  # right for callers before the change, and for none after it
            return self._mappers.setdefault(name, mapper)

    def _entry_points(self) -> dict[str, list[Point]]:
        if self._installed is None:
            points = installed_points(ENTRY_POINT_GROUP) if self._given is None else self._given
            self._installed = {}
            for point in points:
                if not _PROVIDER_ID.fullmatch(point.name):
                    owner = distribution_of(point)
                    warnings.warn(
                        f"{owner}: not a provider id: {point.name[:40]!r}", RuntimeWarning, stacklevel=4
                    )
                elif not self._is_blocked(point):
                    self._installed.setdefault(point.name, []).append(point)
            for several in self._installed.values():
                if len(several) > 1:
                    several.sort(key=_precedence)
        return self._installed

    def _is_blocked(self, point: Point) -> bool:
        """Return whether *point* is blocked by ``provider@distribution``. Read its distribution only if needed."""
        blocked = [name for name in self._blocked if name.startswith(f"{point.name}@")]
        return bool(blocked) and f"{point.name}@{distribution_of(point)}" in blocked

    def _entry(self, name: str) -> ProviderEntry:
        blocked, overridden = name in self._blocked, self._entry_points().get(name, [])
        if registered := self._registered.get(name):
            target = getattr(registered[-1], "__name__", type(registered[-1]).__qualname__)
            return ProviderEntry(name, None, None, target, blocked, _distributions(overridden))
        *overridden, point = overridden
        by, (owner, version) = _distributions(overridden), source_of(point)
        return ProviderEntry(name, owner, version, point.value.partition("[")[0].strip(), blocked, by)


def _distributions(points: Iterable[Point]) -> tuple[str, ...]:
    return tuple(point.dist.name for point in points if point.dist is not None)


def _precedence(point: Point) -> tuple[bool, str]:
    """Sort Crosswalk's own first, so that another package's plugin of the same name overrides it, and the others by
    name.
    """
    distribution = point.dist.name if point.dist is not None else ""
    return distribution != OURS, distribution


def _normal(name: str) -> str:
    """Return the provider *name*. In ``vllm@Their_Package`` the distribution is as ``distribution_of`` returns it."""
    provider, at, distribution = name.partition("@")
    return f"{provider}@{normal_distribution(distribution)}" if at else name


registry = Registry()
"""The default registry of ``crosswalk.normalize`` and related functions."""


def providers() -> list[ProviderEntry]:
    """Return the installed providers, by name. A broken one has its error."""
    return registry.providers()
