"""The kit is tested by mistakes that are planted in four plugins: which it finds is listed, and which it does not.

``planted/mistakes.py`` is the table of mistakes, ``planted/survivors.txt`` lists those that no check finds. A plain run
tries some of them, ``pytest --thorough`` all.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from crosswalk.plugin.mapper import Mapper
from crosswalk.plugin.registry import Registry
from crosswalk.testing import check_capture, check_pair, pairs
from planted.mistakes import MISTAKES, Mistake
from planted.recordings import RECORDINGS

SURVIVORS = (Path(__file__).parents[2] / "planted/survivors.txt").read_text(encoding="utf-8").splitlines()


def mapper(plugin: Any, wire: str) -> Mapper:
    registry = Registry(installed=[], environ={})
    registry.register(plugin, wire)
    return registry.mapper(wire)


def problems(plugin: Any, wire: str) -> Iterator[str]:
    """What the kit finds."""
    mapped, captures = mapper(plugin, wire), [recording.capture for recording in RECORDINGS[wire]]
    for capture in captures:
        yield from map(str, check_capture(mapped, capture))
    for pair in pairs(captures):
        yield from map(str, check_pair(mapped, *pair))


@cache
def without_mistake(wire: str) -> frozenset[str]:
    return frozenset(problems(import_module(f"planted.{wire}").plugin, wire))


def is_found(mistake: Mistake) -> bool:
    before = without_mistake(mistake.wire)
    return any(problem not in before for problem in problems(mistake.plugin(), mistake.wire))


def test_each_mistake_is_one_change_of_a_plugin() -> None:
    """Its plugin can be made, and no two have one name."""
    assert len({str(mistake) for mistake in MISTAKES}) == len(MISTAKES)
    for mistake in MISTAKES:
        assert hasattr(mistake.plugin(), "map_delta"), mistake


def test_each_survivor_is_a_mistake() -> None:
    assert {str(mistake) for mistake in MISTAKES} >= set(SURVIVORS)


@pytest.mark.parametrize("mistake", MISTAKES[::40], ids=str)
def test_some_mistakes_are_found(mistake: Mistake) -> None:
    assert is_found(mistake) == (str(mistake) not in SURVIVORS)


@pytest.mark.thorough
@pytest.mark.parametrize("wire", RECORDINGS)
def test_every_mistake_is_found_or_listed(wire: str) -> None:
    """The list is exact: a mistake that a new check finds is taken off it."""
    mistakes = [mistake for mistake in MISTAKES if mistake.wire == wire]
    found = {str(mistake) for mistake in mistakes if not is_found(mistake)}
    assert found == {name for name in SURVIVORS if name.startswith(f"{wire}: ")}
