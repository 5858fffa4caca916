"""A benchmark tells what it has found: a row above its bar is returned, and none if there is none."""

from __future__ import annotations

import itertools
from importlib import import_module
from pathlib import Path

import pytest


@pytest.mark.untraced
@pytest.mark.parametrize(("seconds", "is_slow"), [(1000.0, True), (0.0, False)])
def test_values_that_cost_more_than_their_bound_are_returned(
    seconds: float, is_slow: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a clock on which whatever runs takes so many seconds."""
    monkeypatch.syspath_prepend(Path(__file__).parents[1])
    ticks = itertools.count(0.0, seconds) if seconds else itertools.repeat(0.0)
    monkeypatch.setattr("time.process_time", lambda: next(ticks))
    above = import_module("benchmarks.values").main(1)
    names = [row.row for row in above]
    # What takes as long as an empty loop costs nothing.
    wanted = [
        "DeltaAccumulator.append",
        "asynchronous enumeration, a delta",
        "the same without replay",
        "build() of 2,000 deltas",
    ]
    assert names == (wanted if is_slow else [])
    assert "bound us" in capsys.readouterr().out


def test_a_row_above_its_bar_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[1])
    measure = import_module("benchmarks.measure")
    measure.print_above([("values", measure.Above("a delta", 1.48, 1))])
    assert "values: a delta" in capsys.readouterr().out
