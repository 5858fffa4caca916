"""Frames, as tests write them."""

from __future__ import annotations

from crosswalk.wire import Frame

__all__ = ["Frame", "frame_of"]


def frame_of(data: bytes, event: str | None = None) -> Frame:
    """The frame of *data*, named *event*."""
    return (data, event)
