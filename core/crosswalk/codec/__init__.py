"""Canonical JSON, both ways: how answers are stored, compared and sent on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import lazy

if TYPE_CHECKING:
    from crosswalk.codec.compare import *
    from crosswalk.codec.converters import *
    from crosswalk.codec.version import *
    from crosswalk.codec.writing import *
else:
    __getattr__, __dir__ = lazy(
        __name__,
        "writing compare converters version",  # what most ask for first
    )
