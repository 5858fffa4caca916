"""The kit is tested by mistakes that are planted in ten plugins: which it finds is listed, and which it does not.

``planted/mistakes.py`` and ``planted/more_mistakes.py`` are the tables of mistakes. With statements about the
captures the kit finds all but ten of them. ``planted/survivors.txt`` lists those that it does not find if
nothing is stated: the meaning of a private word, and other facts that only the author knows. ``pytest
--thorough`` tries them all. ``test_check_of_each_mistake`` tries one for each check.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import attrs
import pytest

from crosswalk.plugin.registry import Mapper, Registry
from crosswalk.testing import check_capture, check_pair, pairs
from planted.mistakes import MISTAKES, Mistake
from planted.more_mistakes import MORE_MISTAKES
from planted.more_recordings import MORE_RECORDINGS
from planted.recordings import RECORDINGS

ALL_RECORDINGS = {**RECORDINGS, **MORE_RECORDINGS}
ALL_MISTAKES = [*MISTAKES, *MORE_MISTAKES]

SURVIVORS = (Path(__file__).parents[2] / "planted/survivors.txt").read_text(encoding="utf-8").splitlines()
WITH_STATEMENTS = [
    "lanes: sources are ids",
    "sealed: the last token is dropped",
    "patches: slots are swapped with choices",
    "patches: unknown places are text",
    # An answer with calls ends with ``tool_calls`` also if its word is read as ``stop``: nothing is lost.
    "netstrings: a call is a good end",
    "lanes: a call is a good end",
    "grown: a call is a good end",
    "sealed: a call is a good end",
    "patches: calls are a good end",
    "coded: a call ends well",
]
"""Mistakes that no statement shows, and no check."""


def mapper(plugin: Any, wire: str) -> Mapper:
    registry = Registry(installed=[], environ={})
    registry.register(plugin, wire)
    return registry.mapper(wire)


def problems(plugin: Any, wire: str, *, stated: bool) -> Iterator[str]:
    """The kit's findings, with the statements about the recordings or without them."""
    mapped, write = mapper(plugin, wire), getattr(import_module(f"planted.{wire}"), "write", None)
    captures = [recording.capture for recording in ALL_RECORDINGS[wire]]
    if stated:
        captures = [attrs.evolve(one.capture, says=one.says) for one in ALL_RECORDINGS[wire]]
    for capture in captures:
        yield from map(str, check_capture(mapped, capture, write=write, others=captures))
    for pair in pairs(captures):
        yield from map(str, check_pair(mapped, *pair))


@cache
def without_mistake(wire: str, *, stated: bool) -> frozenset[str]:
    return frozenset(problems(import_module(f"planted.{wire}").plugin, wire, stated=stated))


def is_found(mistake: Mistake, *, stated: bool) -> bool:
    before = without_mistake(mistake.wire, stated=stated)
    return any(problem not in before for problem in problems(mistake.plugin(), mistake.wire, stated=stated))


@pytest.mark.untraced
def test_each_mistake_is_one_change_of_a_plugin() -> None:
    """Its plugin can be made, and no two have one name."""
    assert len({str(mistake) for mistake in ALL_MISTAKES}) == len(ALL_MISTAKES)
    for mistake in ALL_MISTAKES:
        assert hasattr(mistake.plugin(), "map_delta"), mistake


HEAVY = [pytest.param(wire, marks=pytest.mark.sweep) for wire in MORE_RECORDINGS if wire != "netstrings"]


@pytest.mark.parametrize("wire", ["netstrings", *HEAVY])
def test_a_right_plugin_has_no_problem(wire: str) -> None:
    assert without_mistake(wire, stated=True) == frozenset()


def test_each_survivor_is_a_mistake() -> None:
    """Without statements they are at most one in five, with statements one in twenty."""
    assert {str(mistake) for mistake in ALL_MISTAKES} >= {*SURVIVORS, *WITH_STATEMENTS}
    assert len(SURVIVORS) <= len(ALL_MISTAKES) / 5
    assert len(WITH_STATEMENTS) <= len(ALL_MISTAKES) / 20
    assert {*SURVIVORS} >= {*WITH_STATEMENTS}


@pytest.mark.sweep
@pytest.mark.parametrize("wire", ALL_RECORDINGS)
@pytest.mark.parametrize("stated", [False, True])
def test_every_mistake_is_found_or_listed(wire: str, stated: bool) -> None:
    """The list is exact: a mistake that a new check finds is taken off it."""
    mistakes = [mistake for mistake in ALL_MISTAKES if mistake.wire == wire]
    missed = {str(mistake) for mistake in mistakes if not is_found(mistake, stated=stated)}
    listed = {name for name in (WITH_STATEMENTS if stated else SURVIVORS) if name.startswith(f"{wire}: ")}
    assert missed == listed
