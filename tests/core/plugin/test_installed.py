"""Entry points, found in the folders of installed distributions."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from crosswalk.plugin.installed import InstalledPoint, installed_points
from crosswalk.plugin.registry import ENTRY_POINT_GROUP


def install(place: Path, folder: str, text: str | None, name: str = "made") -> Path:
    where = place / folder
    where.mkdir(parents=True)
    (where / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n")
    if text is not None:
        (where / "entry_points.txt").write_text(text)
    return where


def told(points: Any) -> list[tuple[str, str]]:
    return sorted((point.name, point.value) for point in points)


@pytest.mark.parametrize("group", [ENTRY_POINT_GROUP, "console_scripts", "nobody.has.this"])
def test_it_tells_what_the_standard_library_tells(group: str) -> None:
    points = installed_points(group)
    assert told(points) == told(entry_points(group=group))
    assert all(isinstance(point, InstalledPoint) for point in points)


def test_a_distribution_is_read_where_it_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    install(
        first,
        "Made_it-1.5.dist-info",
        "# a comment\n[g]\n a = os.path : join.__call__ [extra]\n#b = c\n[h]\nd = e\n",
    )
    install(second, "made.it-1.4.egg-info", "[g]\nold = os\n")
    install(second, "other-1.dist-info", "[g]\nother=os\n")
    install(second, "silent-1.dist-info", None)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "missing"), str(first), str(second)])
    points = installed_points("g")
    assert told(points) == told(entry_points(group="g"))
    (point,) = (point for point in points if point.name == "a")
    assert point.load()("x", "y") == f"x{__import__('os').sep}y"
    assert (point.dist.name, point.dist.version) == ("made", "1.5")
    (module,) = (point for point in points if point.name == "other")
    assert module.load() is __import__("os")


@pytest.mark.parametrize("place", ["archive.zip", "unpacked.egg"])
def test_what_is_in_no_folder_is_left_to_the_standard_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    if place.endswith(".egg"):
        install(tmp_path / place, "EGG-INFO", "[g]\nfrom_egg = os\n")
    else:
        (tmp_path / place).write_bytes(b"PK\x05\x06" + bytes(18))
    monkeypatch.setattr(sys, "path", [str(tmp_path / place), *sys.path])
    points = installed_points(ENTRY_POINT_GROUP)
    assert told(points) == told(entry_points(group=ENTRY_POINT_GROUP))
    assert not any(isinstance(point, InstalledPoint) for point in points)


def test_and_so_is_what_an_applications_own_finder_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    class Finder:
        @staticmethod
        def find_spec(*_: Any) -> None:
            return None

        @staticmethod
        def find_distributions(*_: Any) -> tuple[()]:
            return ()

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder])
    assert not any(isinstance(point, InstalledPoint) for point in installed_points(ENTRY_POINT_GROUP))
