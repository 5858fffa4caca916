"""Bytes to deltas to a response, and the building blocks that plugins are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import lazy

if TYPE_CHECKING:
    from crosswalk.mapping.options import *
    from crosswalk.mapping.reader import *
else:
    __getattr__, __dir__ = lazy(__name__, "options reader")
