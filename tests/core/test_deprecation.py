"""How something public goes; and that nothing stays beyond its day."""

from __future__ import annotations

import re
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from crosswalk.deprecation import deprecated, message, renamed, warn

CORE = Path(__file__).parents[2] / "core/crosswalk"
CHANGELOG = CORE.parents[1] / "CHANGELOG.md"


def old(value: int, *, on_error: str | None = None) -> int:
    """A function that has lost an argument."""
    if on_error is not None:
        warn("the argument on_error", instead="errors=", gone_in="0.4")
    return value


def test_an_argument_warns_its_user_at_the_line_of_the_call() -> None:
    with pytest.warns(DeprecationWarning, match="on_error") as caught:
        assert old(3, on_error="raise") == 3
    (warning,) = caught
    assert str(warning.message) == "the argument on_error is deprecated: use errors=; it will be gone in 0.4"
    assert warning.filename == __file__


def test_who_does_not_use_it_is_not_warned() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert old(3) == 3


def test_an_old_name_gives_the_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType("seaweed")
    monkeypatch.setitem(sys.modules, "seaweed", module)
    module.kelp = object()

    def missing(name: str) -> Any:
        raise AttributeError(name)

    module.__getattr__ = renamed("seaweed", missing, {"tangle": "kelp"}, gone_in="0.4")
    with pytest.warns(
        DeprecationWarning, match=r"seaweed\.tangle is deprecated: use seaweed\.kelp; it will"
    ) as caught:
        assert module.tangle is module.kelp
    assert caught[0].filename == __file__
    with pytest.raises(AttributeError, match="dulse"):
        module.dulse  # noqa: B018


def test_a_function_is_marked_for_type_checkers_and_warns() -> None:
    @deprecated("sink is deprecated: use swim; it will be gone in 0.4")
    def sink() -> int:
        return 7

    with pytest.warns(DeprecationWarning, match="use swim"):
        assert sink() == 7
    assert sink.__deprecated__ == message("sink", instead="swim", gone_in="0.4")


def overdue(source: str, version: str) -> list[str]:
    """The versions in which something of *source* should have gone by *version*."""
    days = re.findall(r"""gone_in="([\d.]+)"|it will be gone in ([\d.]+)\"""", source)
    return [day for pair in days for day in pair if day and numbers(day) <= numbers(version)]


def numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


def test_nothing_stays_beyond_its_day() -> None:
    """The version that is being worked on has nothing left that was to be gone in it."""
    found = re.search(r"^## \[([\d.]+)\]", CHANGELOG.read_text(), re.MULTILINE)
    assert found is not None
    assert {f.name: late for f in CORE.rglob("*.py") if (late := overdue(f.read_text(), found[1]))} == {}
    assert overdue('warn("x", instead="y", gone_in="0.4")', "0.4.0") == ["0.4"]
    assert overdue('warn("x", instead="y", gone_in="0.10")', "0.4.0") == []
