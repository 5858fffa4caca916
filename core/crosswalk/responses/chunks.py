"""Chunks: what the calls of all tools found, in one form."""

from __future__ import annotations

from typing import TypeAlias

import attrs

from crosswalk.responses.annotations import AnnotationFileCitation, AnnotationURLCitation
from crosswalk.responses.errors import ResponsesValueError
from crosswalk.text import brief, harmless, short_repr

__all__ = ["Chunk", "CitationAnnotation"]

CitationAnnotation: TypeAlias = AnnotationFileCitation | AnnotationURLCitation
"""What can be cited; two are equal when they cite the same place, and so are their hashes."""

_LONGEST_TITLE = 120


@brief
@attrs.frozen(kw_only=True, repr=False)
class Chunk:
    """A piece of what a tool found.

    Attributes:
        content: the text, or empty where a server names a source and says nothing of it.
        title: what a reader calls it, or ``None`` when the tool gave no title.
        annotation: what is cited when it is cited, or ``None`` for what is no source, such as the result of a function.
        number: its number among the citations; ``None`` before
            :meth:`crosswalk.responses.CitedResponse.install_citations`, and always without an annotation.
        score: how well it fits, as the tool said, or ``None`` when it said nothing.
        index: its place among the results of its call, from 0; it stays when others are removed.
        call: the place of its call among the tool calls, from 0.

    Raises:
        ResponsesValueError: a number below 1, or one without an annotation; a negative place.
    """

    content: str
    title: str | None = None
    annotation: CitationAnnotation | None = None
    number: int | None = None
    score: float | None = None
    index: int = 0
    call: int = 0

    def __attrs_post_init__(self) -> None:
        if type(self.content) is not str:
            raise ResponsesValueError("expected string", path="Chunk.content")
        if self.number is not None:
            if type(self.number) is not int or self.number < 1:
                raise ResponsesValueError("citations are numbered from 1", path="Chunk.number")
            if self.annotation is None:
                raise ResponsesValueError("a number needs an annotation", path="Chunk.number")
        if self.index < 0 or self.call < 0:
            raise ResponsesValueError("places are counted from 0", path="Chunk.index")

    __repr__ = short_repr("number", "title", "annotation", "content")

    def as_annotation(
        self, *, start_index: int | None = None, end_index: int | None = None
    ) -> CitationAnnotation | None:
        """The annotation of a text that cites this chunk, or ``None`` when it is no source.

        Args:
            start_index: the first character of the text's part that cites it; ``None`` leaves the place open.
            end_index: the character after the last one; files are cited at a point, and have none.
        """
        if isinstance(self.annotation, AnnotationURLCitation):
            return self.annotation.replace(start_index=start_index, end_index=end_index)
        return None if self.annotation is None else self.annotation.replace(index=start_index)

    def stub(self, marker: str = "[{number}]") -> str:
        """One line that can stand for the content: number and title, as far as there are any.

        What a terminal would obey stands in it as ``\\uXXXX``, see :func:`crosswalk.text.harmless`.

        Args:
            marker: how the number stands there, with ``{number}`` for it.
        """
        name = harmless(" ".join((self.title or source_name(self.annotation)).split()))
        if len(name) > _LONGEST_TITLE:
            name = f"{name[: _LONGEST_TITLE - 1]}…"
        return name if self.number is None else f"{marker.replace('{number}', str(self.number))} {name}"


def source_name(annotation: CitationAnnotation | None) -> str:
    """What to call a source of which nobody said the title."""
    if isinstance(annotation, AnnotationURLCitation):
        return annotation.title or annotation.url
    return "" if annotation is None else annotation.filename or annotation.file_id
