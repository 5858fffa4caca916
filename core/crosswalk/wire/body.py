"""A whole payload as one frame: the framing of answers that are not streamed."""

from __future__ import annotations

from crosswalk.wire.framing import Frame, PushDecoder
from crosswalk.wire.limits import DEFAULT, Limits


class BodyDecoder(PushDecoder):
    """
    Keep everything until :meth:`flush` and give it as one frame, less a leading byte order mark.

    An empty body, or one of only whitespace, has no frame. Any other body is returned unchanged,
    whether it is JSON, a proxy's HTML or plain text.

    Args:
        limits: ``line_bytes`` applies to the whole body.

    Raises:
        LineTooLongError: the body is longer than ``line_bytes``. Raised as early as possible.
        StreamTooLargeError: the body is longer than ``total_bytes``.
    """

    def __init__(self, limits: Limits = DEFAULT) -> None:
        super().__init__(limits)
        self._pieces: list[bytes] = []
        self._size = 0

    def read(self, chunk: bytes, frames: list[Frame]) -> None:
        """Return the frames that *chunk* completes, see :class:`PushDecoder`."""
        self._size += len(chunk)
        if self._size > self.limits.line_bytes:
            raise self.too_long("the body")
        self._pieces.append(chunk)

    def finish(self, frames: list[Frame]) -> None:
        """Return the last frame, see :class:`PushDecoder`."""
        body = b"".join(self._pieces)
        self._pieces.clear()
        if body and not body.isspace():
            frames.append((body, None))
