"""What is known of the documents that were read: see :mod:`crosswalk.codec.alike`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from crosswalk.types import ChatResponse

if TYPE_CHECKING:
    from crosswalk.codec.alike import Shape

__all__ = ["Documents"]

_MOST_SHAPES: Final = 8
_MOST_SEEN: Final = 64
_LINE_END: Final = b"\r\n"
"""What a line of a file has behind its document."""
_LARGEST: Final = 2**20
"""Of a larger document nothing is learnt: to read it costs what its parsing costs, whatever is around its text."""


class Documents:
    """The shapes that were learnt from documents of responses, the one that fitted last first.

    Attributes:
        is_on: whether anything is learnt, and what is known used.
    """

    __slots__ = ("_known", "_seen", "is_on")

    def __init__(self) -> None:
        self.is_on = True
        # Replaced and never changed: other threads may be reading with it.
        self._known: tuple[Shape, ...] = ()
        self._seen: dict[Any, int] = {}

    def read(self, data: bytes) -> ChatResponse | None:
        """The response that the document *data* is; ``None`` where no shape fits it."""
        if not self.is_on:
            return None
        data = data.rstrip(_LINE_END)
        for shape in self._known:
            try:
                response = shape.read(data)
            except Exception:  # it is damaged, or another: the general way knows
                continue
            if response is not None:
                if shape is not self._known[0]:
                    self._known = (shape, *(other for other in self._known if other is not shape))
                return response
        return None

    def note(self, data: bytes, response: ChatResponse, read: Callable[[bytes], ChatResponse]) -> None:
        """Learn from the document *data*, which no shape has fitted and which is *response*, once its like comes again.

        Args:
            data: the document.
            response: what the general way has made of it.
            read: the general way.
        """
        if not self.is_on or len(data) > _LARGEST:
            return
        metadata = response.metadata
        like = (
            metadata.provider_id,
            response.raw_finish_reason,
            *(segment.type for segment in response.segments),
            *metadata.extensions,
            *metadata.provenance.items(),
        )
        seen = self._seen.get(like, 0) + 1
        if len(self._seen) >= _MOST_SEEN:
            self._seen = {}
        self._seen[like] = seen
        # To learn takes as long as to read some sixty documents: the second time, and ever more seldom where it is no use.
        if seen > 1 and not seen & (seen - 1):
            from crosswalk.codec.alike import learn

            known = self._known
            shape = learn(data.rstrip(_LINE_END), response, known, read)
            if shape is not None:
                others = [other for other in known if other.skeleton != shape.skeleton]
                self._known = (shape, *others[: _MOST_SHAPES - 1])

    def forget(self) -> None:
        """Know nothing any more."""
        self._known, self._seen = (), {}
