"""Deltas to responses, and one stream for many consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import lazy

if TYPE_CHECKING:
    from crosswalk.stream.replay import *
    from crosswalk.types.accumulator import *
else:
    __getattr__, __dir__ = lazy(__name__, "replay types.accumulator")
