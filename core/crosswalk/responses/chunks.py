"""Chunks: the results of all tools' calls, in one form."""

from __future__ import annotations

from typing import TypeAlias

import attrs

from crosswalk.responses.annotations import AnnotationFileCitation, AnnotationURLCitation
from crosswalk.responses.errors import ResponsesValueError
from crosswalk.text import brief, harmless, short_repr

CitationAnnotation: TypeAlias = AnnotationFileCitation | AnnotationURLCitation
"""A citable source. Sources are equal, with equal hashes, if they cite the same place."""

_LONGEST_TITLE = 120


@brief
@attrs.frozen(kw_only=True, repr=False)
class Chunk:
    """A piece of a tool's result.

    Attributes:
        content: the text, or empty if a server names a source without any text.
        title: the title for readers, or ``None`` if the tool gave none.
        annotation: the source to cite, or ``None`` for results that cannot be cited, such as those of a function.
        number: its number among the citations. ``None`` before
            :meth:`crosswalk.responses.CitedResponse.install_citations`, and always ``None`` without an annotation.
        score: the tool's score for it, or ``None`` if the tool gave none.
        index: its position among the results of its call, from 0. It does not change when others are removed.
        call: the position of its call among the tool calls, from 0.

    Raises:
        ResponsesValueError: the number is below 1 or there is no annotation for it, or a position is negative.
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
        """Return a text annotation that cites this chunk, or ``None`` if it cannot be cited.

        Args:
            start_index: the first character of the citing text, or ``None`` for no position.
            end_index: the character after the last one. Files are cited at a point, without an end.
        """
        if isinstance(self.annotation, AnnotationURLCitation):
            return self.annotation.replace(start_index=start_index, end_index=end_index)
        return None if self.annotation is None else self.annotation.replace(index=start_index)

    def stub(self, marker: str = "[{number}]") -> str:
        """Return one line in place of the content: number and title, as far as they exist.

        Control characters of terminals are escaped as ``\\uXXXX``, see :func:`crosswalk.text.harmless`.

        Args:
            marker: the form of the number, containing ``{number}``.
        """
        name = harmless(" ".join((self.title or source_name(self.annotation)).split()))
        if len(name) > _LONGEST_TITLE:
            name = f"{name[: _LONGEST_TITLE - 1]}…"
        return name if self.number is None else f"{marker.replace('{number}', str(self.number))} {name}"


def source_name(annotation: CitationAnnotation | None) -> str:
    """Return a name for a source without a title."""
    if isinstance(annotation, AnnotationURLCitation):
        return annotation.title or annotation.url
    return "" if annotation is None else annotation.filename or annotation.file_id
