"""Bytes to deltas to a response, and the building blocks that plugins are made of."""

from crosswalk.mapping.reader import Reader, ReaderOptions

__all__ = ["Reader", "ReaderOptions"]
