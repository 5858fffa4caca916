"""The displays that there are."""

from __future__ import annotations

from typing import TextIO

from crosswalk.responses.display.plain import JSONLinesDisplay, PlainTextDisplay
from crosswalk.responses.display.strategy import DisplayRegistry, DisplayStrategy

__all__ = ["displays", "live_display"]


def live_display(out: TextIO) -> DisplayStrategy:
    """A live display on the terminal *out*, see :class:`crosswalk.responses.display.live.LiveDisplay`."""
    from crosswalk.responses.display.live import LiveDisplay  # which loads rich

    return LiveDisplay(out)


displays = DisplayRegistry()
"""The displays that there are: ``plain``, ``live`` and ``jsonl``, and those that a program adds."""
displays.register("plain", PlainTextDisplay)
displays.register("live", live_display)
displays.register("jsonl", JSONLinesDisplay)
