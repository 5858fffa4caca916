"""Citations: numbered sources, and the markers that stand for them in a text (seed 001, "Citation Management")."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import attrs

from crosswalk.responses.annotations import (
    Annotation,
    AnnotationContainerFileCitation,
    AnnotationFileCitation,
    AnnotationFilePath,
    AnnotationURLCitation,
)
from crosswalk.responses.chunks import Chunk, CitationAnnotation, source_name
from crosswalk.responses.errors import ResponsesValueError
from crosswalk.text import short_repr

__all__ = ["Citation", "CitationMarker"]


@attrs.frozen(kw_only=True, repr=False)
class Citation:
    """A source with its number.

    Attributes:
        number: counts from 1.
        annotation: the source.
        title: what a reader calls it.
    """

    number: int
    annotation: CitationAnnotation
    title: str

    __repr__ = short_repr("number", "title", "annotation")


@attrs.frozen
class CitationMarker:
    """How a citation's number stands in a text.

    Attributes:
        template: what stands there, with ``{number}`` for the number, such as ``[{number}]``.

    Raises:
        ResponsesValueError: the template does not have one ``{number}``.
    """

    template: str = "[{number}]"
    _pattern: re.Pattern[str] = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        parts = self.template.split("{number}") if type(self.template) is str else []
        if len(parts) != 2:
            raise ResponsesValueError("needs {number}, once", path="CitationMarker.template")
        before, after = (re.escape(part) for part in parts)
        # 3 is no marker in 13, and 03 is none at all.
        pattern = f"{before or '(?<![0-9])'}([1-9][0-9]{{0,8}}){after or '(?![0-9])'}"
        object.__setattr__(self, "_pattern", re.compile(pattern))

    def of(self, number: int) -> str:
        """The marker of *number*."""
        return self.template.replace("{number}", str(number))

    def find(self, text: str) -> Iterator[tuple[int, int, int]]:
        """Each marker in *text*: its number, its first character, and the character after its last one."""
        for found in self._pattern.finditer(text):
            yield int(found[1]), found.start(), found.end()


def numbered(
    chunks: Iterable[Chunk], citations: Sequence[Citation]
) -> tuple[tuple[Chunk, ...], tuple[Citation, ...]]:
    """*chunks* with numbers, and *citations* with those that are new: in order of first appearance, behind the old.

    A chunk without a title gets that of its source.
    """
    known: dict[CitationAnnotation, Citation] = {citation.annotation: citation for citation in citations}
    last = max((citation.number for citation in citations), default=0)
    done = []
    for chunk in chunks:
        if chunk.annotation is not None:
            citation = known.get(chunk.annotation)
            if citation is None:
                last += 1
                title = chunk.title or source_name(chunk.annotation)
                citation = Citation(number=last, annotation=chunk.annotation, title=title)
                known[chunk.annotation] = citation
            chunk = attrs.evolve(chunk, number=citation.number, title=chunk.title or citation.title)
        done.append(chunk)
    return tuple(done), tuple(known.values())


def with_cited(citations: Sequence[Citation], annotations: Iterable[Annotation]) -> tuple[Citation, ...]:
    """*citations*, and behind them the sources that *annotations* name and none of them is, in order.

    Servers often cite what no call's results show: OpenAI lists neither the pages of a web search nor the results of a
    file search unless it is asked to. Which source is there already, :func:`named_by` says.
    """
    done = list(citations)
    last = max((citation.number for citation in citations), default=0)
    names = _Names(citation.annotation for citation in citations)
    for annotation in annotations:
        if isinstance(annotation, CitationAnnotation) and not names.fit(annotation):
            last += 1
            done.append(Citation(number=last, annotation=annotation, title=source_name(annotation)))
            names.add(annotation)
    return tuple(done)


def named_by(annotations: Iterable[Annotation], citations: Iterable[Citation]) -> set[int]:
    """The numbers of those of *citations* that one of *annotations* names.

    It names what it is equal to. Where one of the two names a file and no place in it, the same file is enough: many
    servers know nothing of pages.
    """
    names = _Names(annotations)
    return {citation.number for citation in citations if names.fit(citation.annotation)}


class _Names:
    """What annotations name, to be asked about any number of sources."""

    def __init__(self, annotations: Iterable[Annotation]) -> None:
        self._cited: set[CitationAnnotation] = set()
        self._files: set[str] = set()
        self._whole_files: set[str] = set()
        for annotation in annotations:
            self.add(annotation)

    def add(self, annotation: Annotation) -> None:
        """Take note of *annotation*."""
        if isinstance(annotation, AnnotationURLCitation):
            self._cited.add(annotation)
        elif isinstance(annotation, AnnotationFileCitation):
            self._cited.add(annotation)
            self._files.add(annotation.file_id)
            if is_whole_file(annotation):
                self._whole_files.add(annotation.file_id)
        elif isinstance(annotation, AnnotationContainerFileCitation | AnnotationFilePath):
            self._files.add(annotation.file_id)
            self._whole_files.add(annotation.file_id)

    def fit(self, source: CitationAnnotation) -> bool:
        """Whether one of the annotations names *source*."""
        if source in self._cited:
            return True
        if isinstance(source, AnnotationURLCitation):
            return False
        return source.file_id in (self._files if is_whole_file(source) else self._whole_files)


def is_whole_file(annotation: AnnotationFileCitation) -> bool:
    """Whether *annotation* names no place in its file."""
    return annotation.page_number is None and annotation.document_position is None
