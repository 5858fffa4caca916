"""The base of all displays, and which there are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import TextIO, TypeAlias

from crosswalk.responses.display.update import Update
from crosswalk.responses.errors import ResponsesError
from crosswalk.text import clean_message

__all__ = ["DisplayFactory", "DisplayRegistry", "DisplayStrategy", "UnknownDisplayError"]


class DisplayStrategy(ABC):
    """A way to show a stream.

    Any of its methods may be a coroutine function; it can then be used with :meth:`StreamHandler.ahandle` only.
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
        """Add a display; it takes the place of one with the same name."""
        self._factories[name] = factory

    @property
    def names(self) -> tuple[str, ...]:
        """The names that there are, in order of registration."""
        return tuple(self._factories)

    def make(self, name: str, out: TextIO) -> DisplayStrategy:
        """A new display of that name that writes to *out*.

        Raises:
            UnknownDisplayError: there is none.
        """
        if name not in self._factories:
            raise UnknownDisplayError(name, known=self.names)
        return self._factories[name](out)
