"""Events to snapshots of a response: what is under way, what it held when, and which class stands for what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import lazy

if TYPE_CHECKING:
    from crosswalk.responses.accumulator.accumulating import *
else:
    __getattr__, __dir__ = lazy(__name__, "accumulating")
