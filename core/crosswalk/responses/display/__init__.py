"""Displays: the updates of processors as text, JSON Lines or a live terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import lazy

if TYPE_CHECKING:
    from crosswalk.responses.display.plain import *
    from crosswalk.responses.display.strategy import *
else:
    __getattr__, __dir__ = lazy(__name__, "plain strategy")
