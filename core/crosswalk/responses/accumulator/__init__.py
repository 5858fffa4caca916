"""Accumulates events into snapshots of a response."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import lazy

if TYPE_CHECKING:
    from crosswalk.responses.accumulator.accumulating import *
else:
    __getattr__, __dir__ = lazy(__name__, "accumulating")
