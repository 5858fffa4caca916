"""Bytes to deltas to a response, and the building blocks that plugins are made of (design, section 5)."""

from crosswalk.mapping.detect import candidates, detect
from crosswalk.mapping.normalize import (
    DeltaStream,
    anormalize_stream,
    normalize,
    normalize_stream,
)
from crosswalk.mapping.reader import Reader, ReaderOptions

__all__ = [
    "DeltaStream",
    "Reader",
    "ReaderOptions",
    "anormalize_stream",
    "candidates",
    "detect",
    "normalize",
    "normalize_stream",
]
