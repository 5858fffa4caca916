"""The installed distributions that register providers. Nothing of them is loaded.

``importlib.metadata`` tells it too, but loads e-mail and zip for it, which takes longer than reading an answer; so it is
left for what it alone can do: distributions in archives, and finders of an application's own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache, reduce
from importlib import import_module
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any, TypeAlias

from crosswalk.lazy import pattern

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint


class InstalledPoint:
    """An entry point of a distribution that is installed in a folder.

    Attributes:
        name: what it is called.
        value: what it points to: ``module:attribute``.
        folder: where the distribution's metadata are.
    """

    __slots__ = ("folder", "name", "value")

    def __init__(self, name: str, value: str, folder: str) -> None:
        self.name = name
        self.value = value
        self.folder = folder

    @property
    def dist(self) -> Distribution:
        """The distribution that registers it."""
        from importlib.metadata import Distribution
        from pathlib import Path

        return Distribution.at(Path(self.folder))

    def load(self) -> Any:
        """Import and return its target.

        Raises:
            Exception: whatever the import raises.
        """
        module, _, attribute = self.value.partition("[")[0].partition(":")
        names = [name for name in attribute.strip().split(".") if name]
        # Of a package and a module in it, which two threads import first, Python hands out a half where the package
        # imports that module and is not there before.
        package, _, submodule = module.strip().partition(".")
        package_module = import_module(package)
        return reduce(
            getattr, names, import_module(f"{package}.{submodule}") if submodule else package_module
        )


def distribution_of(point: Point) -> str | None:
    """The normalized name of the distribution that registers *point*, from its folder's name: no file is read."""
    if isinstance(point, InstalledPoint):
        return _named_by(point.folder)
    return None if point.dist is None else normal_distribution(point.dist.name)


@lru_cache(maxsize=256)  # detection asks it of every point
def _named_by(folder: str) -> str:
    return normal_distribution(os.path.basename(folder).removesuffix(".egg-info").partition("-")[0])


def normal_distribution(name: str) -> str:
    """The *name* of a distribution in small letters, with ``-`` alone between its words."""
    return name.lower().replace("_", "-").replace(".", "-")


def source_of(point: Point) -> tuple[str, str] | tuple[None, None]:
    """Return name and version of the distribution that registers *point*. If it is in a folder, they are read once."""
    if isinstance(point, InstalledPoint):
        return _said_in(point.folder)
    return (None, None) if point.dist is None else (point.dist.name, point.dist.version)


@lru_cache(maxsize=256)
def _said_in(folder: str) -> tuple[str, str]:
    from importlib.metadata import Distribution
    from pathlib import Path

    metadata = Distribution.at(Path(folder)).metadata
    return metadata["Name"], metadata["Version"]


def unmet_requirement(point: Point, distribution: str, version: str) -> str | None:
    """The lowest version of *distribution* that the plugin of *point* requires, or ``None`` if *version* is enough.

    Versions are compared by their numbers alone.
    """
    for requirement in () if point.dist is None else point.dist.requires or ():
        name_match, lowest_match = (
            _NAME_PATTERN.match(requirement),
            _LOWEST_PATTERN.search(requirement.partition(";")[0]),
        )
        names_distribution = name_match is not None and normal_distribution(name_match[0]) == distribution
        if names_distribution and lowest_match is not None and _numbers(version) < _numbers(lowest_match[1]):
            return lowest_match[1]
    return None


_NAME_PATTERN = pattern(r"[A-Za-z0-9._-]+")
_LOWEST_PATTERN = pattern(r">=\s*([0-9][^,)\s]*)")


def _numbers(version: str) -> tuple[int, ...]:
    numbers = [int(number) for number in (_RELEASE_PATTERN.match(version) or [""])[0].split(".") if number]
    while numbers and not numbers[-1]:
        del numbers[-1]
    return tuple(numbers)


_RELEASE_PATTERN = pattern(r"[0-9]+(?:\.[0-9]+)*")


Point: TypeAlias = "EntryPoint | InstalledPoint"


def installed_points(group: str) -> list[Point]:
    """The entry points of *group*, as ``importlib.metadata.entry_points`` gives them."""
    folders = _folders(sys.path)
    others = (finder for finder in sys.meta_path if finder is not PathFinder)
    if folders is None or any(hasattr(finder, "find_distributions") for finder in others):
        from importlib.metadata import entry_points

        return list(entry_points(group=group))
    return [point for folder in folders for point in _points(folder, group)]


def _folders(search_path: Iterable[str]) -> list[str] | None:
    """The first folder of metadata of each distribution on *search_path*, or ``None`` if some may be in no folder."""
    folder_by_distribution: dict[str, str] = {}
    for folder in search_path:
        try:
            entries = list(os.scandir(folder or "."))
        except FileNotFoundError:
            continue
        except OSError:
            return None  # an archive, or what cannot be read
        if folder.endswith(".egg"):
            return None
        for entry in entries:
            if entry.name.endswith((".dist-info", ".egg-info")):
                distribution = _normalized(entry.name.rpartition(".")[0].partition("-")[0])
                folder_by_distribution.setdefault(distribution, entry.path)
    return list(folder_by_distribution.values())


def _normalized(name: str) -> str:
    """The normalized *name* of a distribution, which has several spellings."""
    return "-".join(filter(None, name.lower().replace("_", "-").replace(".", "-").split("-")))


def _points(folder: str, group: str) -> Iterator[InstalledPoint]:
    try:
        with open(f"{folder}/entry_points.txt", "rb", buffering=0) as file:
            data = file.read()
    except OSError:
        return  # it registers nothing
    if group.encode() not in data:
        return
    text = data.decode(errors="replace")
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            section = line.strip("[]")
        elif section == group and "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            yield InstalledPoint(name.strip(), value.strip(), folder)
