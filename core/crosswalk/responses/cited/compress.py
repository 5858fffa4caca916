"""Compression of chunks, so that a context holds less of what nobody needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeAlias, get_args

import attrs

from crosswalk.responses.chunks import Chunk, CitationAnnotation
from crosswalk.responses.errors import ResponsesValueError

__all__ = ["CompressionMode", "CompressionReport"]

CompressionMode: TypeAlias = Literal["all", "deduplicate", "nonrefed"]
"""``all``: each content becomes a line with number and title, if that is shorter. ``deduplicate``: of chunks with equal
annotations the first stays. ``nonrefed``: chunks of sources that the answer does not reference go. The last two keep
all while there are unread markers in the answer."""


@attrs.frozen(kw_only=True)
class CompressionReport:
    """What a compression saved.

    Attributes:
        mode: the mode.
        chunks_before: how many chunks there were.
        chunks_after: how many there are.
        characters_before: how long their contents were together, in characters.
        characters_after: how long they are.
    """

    mode: CompressionMode
    chunks_before: int
    chunks_after: int
    characters_before: int
    characters_after: int

    @property
    def removed_chunks(self) -> int:
        """How many chunks went."""
        return self.chunks_before - self.chunks_after

    @property
    def saved_characters(self) -> int:
        """How much shorter the contents are together."""
        return self.characters_before - self.characters_after


def compress(
    chunks: Sequence[Chunk], mode: CompressionMode, referenced: Iterable[int], marker: str, *, unread: bool
) -> tuple[tuple[Chunk, ...], CompressionReport]:
    """*chunks*, which have their numbers, in short, and what that saved.

    Args:
        chunks: all of them.
        mode: how.
        referenced: the numbers that the answer references.
        marker: how a number stands in a text.
        unread: whether the answer may reference others too, in a form that nobody reads: then no chunk goes.

    Raises:
        ResponsesValueError: there is no such mode.
    """
    if mode not in get_args(CompressionMode):
        raise ResponsesValueError(
            f"expected {', '.join(get_args(CompressionMode))}", path="compress_chunks.mode"
        )
    if mode == "all":
        left = tuple(_shorter(chunk, marker) for chunk in chunks)
    elif unread:
        left = tuple(chunks)
    elif mode == "deduplicate":
        left = tuple(_first_ones(chunks))
    else:
        # What is no source cannot be referenced: that nothing names it does not mean that nothing rests on it.
        numbers = frozenset(referenced)
        left = tuple(chunk for chunk in chunks if chunk.number is None or chunk.number in numbers)
    report = CompressionReport(
        mode=mode,
        chunks_before=len(chunks),
        chunks_after=len(left),
        characters_before=sum(len(chunk.content) for chunk in chunks),
        characters_after=sum(len(chunk.content) for chunk in left),
    )
    return left, report


def _first_ones(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    seen: set[CitationAnnotation] = set()
    for chunk in chunks:
        if chunk.annotation is None:
            yield chunk
        elif chunk.annotation not in seen:
            seen.add(chunk.annotation)
            yield chunk


def _shorter(chunk: Chunk, marker: str) -> Chunk:
    """*chunk* with its line with number and title for a content that is longer."""
    line = chunk.stub(marker)
    return attrs.evolve(chunk, content=line) if len(line) < len(chunk.content) else chunk
