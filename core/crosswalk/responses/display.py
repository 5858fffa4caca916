"""Updates of a response, and the displays that show them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import TextIO, TypeAlias

import attrs

from crosswalk.responses.response import Response
from crosswalk.responses.vocabulary import ResponsesError, ResponsesValueError
from crosswalk.text import brief, clean_message, short_repr


class UpdateKind(StrEnum):
    """The kinds of updates of the shipped processors. Others may use custom words."""

    TEXT = "text"
    REASONING = "reasoning"
    REFUSAL = "refusal"
    TOOL = "tool"
    CITATION = "citation"
    END = "end"
    ERROR = "error"

    @property
    def is_written(self) -> bool:
        """Whether its texts form one text. Each text of another kind is a line."""
        return self in {UpdateKind.TEXT, UpdateKind.REASONING, UpdateKind.REFUSAL}


@brief
@attrs.frozen(kw_only=True, repr=False)
class Update:
    """An update to show.

    Attributes:
        kind: an :class:`UpdateKind`, or a custom word, which is shown as a line.
        text: the text as the model wrote it. A display escapes it.
        key: the subject. An update continues the earlier ones with the same kind and key, or replaces them if
            ``replaces`` is set. ``None`` means no particular subject.
        replaces: whether it replaces everything with its kind and key.
        response: the whole response, with the last update of a stream.

    Raises:
        ResponsesValueError: kind or text is not a string.
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
        return self.kind in _WRITTEN_KINDS

    __repr__ = short_repr("kind", "key", "text")


_WRITTEN_KINDS = frozenset(kind for kind in UpdateKind if kind.is_written)


class DisplayStrategy(ABC):
    """A way to show a stream.

    Any of its methods may be a coroutine function. You can then use it with :meth:`StreamHandler.ahandle` only.
    """

    def open(self) -> Awaitable[None] | None:
        """Called once before the first event."""
        return None

    @abstractmethod
    def show(self, update: Update) -> Awaitable[None] | None:
        """Show *update*. Its text is a stranger's: :func:`crosswalk.text.harmless` makes it fit for a terminal."""

    def close(self) -> Awaitable[None] | None:
        """Called once at the end, however the stream ended, even after ``show`` failed."""
        return None


DisplayFactory: TypeAlias = Callable[[TextIO], DisplayStrategy]
"""Makes a display that writes to a file."""


class UnknownDisplayError(ResponsesError, LookupError):
    """No display has that name.

    Attributes:
        known: the names that there are.
    """

    def __init__(self, name: str, *, known: tuple[str, ...]) -> None:
        super().__init__(f"no display {clean_message(name, 40)!r}; there are {', '.join(known)}")
        self.known = known


class DisplayRegistry:
    """Displays by name."""

    def __init__(self) -> None:
        self._factories: dict[str, DisplayFactory] = {}

    def register(self, name: str, factory: DisplayFactory) -> None:
        """Add a display, replacing one with the same name."""
        self._factories[name] = factory

    @property
    def names(self) -> tuple[str, ...]:
        """The names that there are, in order of registration."""
        return tuple(self._factories)

    def make(self, name: str, out: TextIO) -> DisplayStrategy:
        """Create the display of that name, which writes to *out*.

        Raises:
            UnknownDisplayError: the name is not registered.
        """
        if name not in self._factories:
            raise UnknownDisplayError(name, known=self.names)
        return self._factories[name](out)
