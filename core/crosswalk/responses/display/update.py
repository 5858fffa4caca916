"""What there is to show: the words between processors and displays."""

from __future__ import annotations

from enum import StrEnum

import attrs

from crosswalk.responses.errors import ResponsesValueError
from crosswalk.responses.response import Response
from crosswalk.text import brief, short_repr

__all__ = ["Update", "UpdateKind"]


class UpdateKind(StrEnum):
    """What the shipped processors have to show; others may use words of their own."""

    TEXT = "text"
    REASONING = "reasoning"
    REFUSAL = "refusal"
    TOOL = "tool"
    CITATION = "citation"
    END = "end"
    ERROR = "error"

    @property
    def is_written(self) -> bool:
        """Whether its texts continue one another; those of other kinds are lines, each for itself."""
        return self in {UpdateKind.TEXT, UpdateKind.REASONING, UpdateKind.REFUSAL}


@brief
@attrs.frozen(kw_only=True, repr=False)
class Update:
    """Something to show.

    Attributes:
        kind: an :class:`UpdateKind`, or a word of one's own; those are shown as lines.
        text: what to show, as the model wrote it: a display makes it harmless.
        key: what it is about: updates of one kind and key continue one another, or with ``replaces`` take the place
            of what came before; ``None`` is about nothing in particular.
        replaces: whether it takes the place of all that was shown of its kind and key.
        response: the whole response, with the last update of a stream.

    Raises:
        ResponsesValueError: kind or text are no text.
    """

    kind: str
    text: str
    key: str | None = None
    replaces: bool = False
    response: Response | None = None

    def __attrs_post_init__(self) -> None:
        for name in ("kind", "text"):
            if not isinstance(getattr(self, name), str):
                raise ResponsesValueError("expected string", path=f"Update.{name}")

    @property
    def is_written(self) -> bool:
        """Whether it continues what was written, see :attr:`UpdateKind.is_written`."""
        return self.kind in _WRITTEN

    __repr__ = short_repr("kind", "key", "text")


_WRITTEN = frozenset(kind for kind in UpdateKind if kind.is_written)
