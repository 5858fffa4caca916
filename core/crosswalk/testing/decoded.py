"""A capture decoded, and the words in it: for checks that compare a capture with the others of its provider."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any

import attrs

from crosswalk.errors import MappingError
from crosswalk.plugin.mapper import Mapper
from crosswalk.testing.captures import Capture
from crosswalk.testing.perturbation import Path, leaves, show_path
from crosswalk.wire.framing import Frame

__all__ = ["Decoded", "decoded", "position"]


@attrs.frozen(slots=False)
class Decoded:
    """The content of a capture.

    Attributes:
        frames: the undecoded events. Empty for an HTTP error, and if the bytes are not frames.
        events: the decoded events. Empty if they are not JSON.
    """

    frames: list[Frame]
    events: list[Any]

    @cached_property
    def words(self) -> dict[str, set[str]]:
        """The texts, and the integers as text, at each :func:`position`."""
        results: dict[str, set[str]] = {}
        for leaf in leaves(self.events):
            if type(leaf.value) in (str, int):
                results.setdefault(position(leaf.path), set()).add(str(leaf.value))
        return results

    @cached_property
    def texts(self) -> set[str]:
        """All of these."""
        return set().union(*self.words.values())


def position(path: Path) -> str:
    """Return *path* without the numbers of items, but with the last key, which may be the place in a row."""
    return f"{show_path(path[:-1], items=False)} {path[-1]}"


@lru_cache(maxsize=256)
def decoded(mapper: Mapper, capture: Capture) -> Decoded:
    """Decode *capture* with the framing of *mapper*."""
    try:
        events = capture.events(mapper)
        return Decoded([] if capture.status >= 400 else capture.frames(mapper), events)
    except (MappingError, ValueError):
        return Decoded([], [])
