"""Compression of chunks, to save context."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeAlias, get_args

import attrs

from crosswalk.responses.chunks import Chunk, CitationAnnotation
from crosswalk.responses.errors import ResponsesValueError

__all__ = ["CompressionMode", "CompressionReport"]

CompressionMode: TypeAlias = Literal["all", "deduplicate", "nonrefed"]
"""``all`` replaces each content with a line of number and title, if that is shorter. ``deduplicate`` keeps the first of
chunks with equal annotations. ``nonrefed`` removes chunks of sources that the answer does not reference. The last two
remove nothing while the answer has unread markers.
"""


@attrs.frozen(kw_only=True)
class CompressionReport:
    """The savings of a compression.

    Attributes:
        mode: the mode.
        chunks_before: the number of chunks before.
        chunks_after: the number of chunks after.
        characters_before: the total length of their contents before, in characters.
        characters_after: the total length after.
    """

    mode: CompressionMode
    chunks_before: int
    chunks_after: int
    characters_before: int
    characters_after: int

    @property
    def removed_chunks(self) -> int:
        """The number of chunks that were removed."""
        return self.chunks_before - self.chunks_after

    @property
    def saved_characters(self) -> int:
        """The number of characters that were saved."""
        return self.characters_before - self.characters_after


def compress(
    chunks: Sequence[Chunk], mode: CompressionMode, referenced: Iterable[int], marker: str, *, unread: bool
) -> tuple[tuple[Chunk, ...], CompressionReport]:
    """Compress *chunks*, which have their numbers, and report the savings.

    Args:
        chunks: all of them.
        mode: the mode.
        referenced: the numbers that the answer references.
        marker: the form of a number in a text.
        unread: whether the answer may reference others in an unknown form. Then no chunk is removed.

    Raises:
        ResponsesValueError: unknown mode.
    """
    if mode not in get_args(CompressionMode):
        raise ResponsesValueError(
            f"expected {', '.join(get_args(CompressionMode))}", path="compress_chunks.mode"
        )
    if mode == "all":
        remaining = tuple(_shorter(chunk, marker) for chunk in chunks)
    elif unread:
        remaining = tuple(chunks)
    elif mode == "deduplicate":
        remaining = tuple(_first_ones(chunks))
    else:
        # A chunk that is not a source cannot be referenced, and the answer may rely on it all the same.
        numbers = frozenset(referenced)
        remaining = tuple(chunk for chunk in chunks if chunk.number is None or chunk.number in numbers)
    report = CompressionReport(
        mode=mode,
        chunks_before=len(chunks),
        chunks_after=len(remaining),
        characters_before=sum(len(chunk.content) for chunk in chunks),
        characters_after=sum(len(chunk.content) for chunk in remaining),
    )
    return remaining, report


def _first_ones(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    seen: set[CitationAnnotation] = set()
    for chunk in chunks:
        if chunk.annotation is None:
            yield chunk
        elif chunk.annotation not in seen:
            seen.add(chunk.annotation)
            yield chunk


def _shorter(chunk: Chunk, marker: str) -> Chunk:
    """Return *chunk* with a line of number and title in place of longer content."""
    line = chunk.stub(marker)
    return attrs.evolve(chunk, content=line) if len(line) < len(chunk.content) else chunk
