"""Citations: numbered sources, and the markers that stand for them in a text."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

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
from crosswalk.text import brief, short_repr

__all__ = ["Citation", "CitationMarker"]


@brief
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


_NUMBER: Final = "[1-9][0-9]{0,8}"
_DASH: Final = "[-\u2010-\u2015\u2212]"
_WIDEST_RANGE: Final = 50
"""How many numbers a range may have: ``[1990-2024]`` are years."""


def _list_of(before: str, after: str) -> str:
    """The pattern of one or more numbers between *before* and *after*: with commas, as ranges, as footnotes."""
    one = rf"\^?{_NUMBER}(?:\s?{_DASH}\s?\^?{_NUMBER})?"
    said = r"(?:\u2020(?:source|L[0-9]{1,9}(?:-L?[0-9]{1,9})?))?"  # as ChatGPT writes it
    return rf"{before}({one}(?:\s?(?:[,;&\u3001\uff0c]|\band\b)\s?{one}){{0,99}}){said}{after}"


_PART: Final = re.compile(rf"({_NUMBER})(?:\s?{_DASH}\s?\^?({_NUMBER}))?")
_UNREAD: Final = re.compile(
    # Anything short in brackets that are not round, a footnote of HTML, a digit that is raised or has a circle.
    r"[\[\u3010\u3014\u3016\u27e6\uff3b][^\[\]\n\u3010\u3011]{0,80}?\d[^\[\]\n\u3010\u3011]{0,80}?"
    r"[\]\u3011\u3015\u3017\u27e7\uff3d]"
    r"|<(?:sup|cite|ref|source)\b[^<>\n]{0,80}>[^<>\n]{0,80}\d|<(?:cite|ref|source)\b[^<>\n]{0,80}\d[^<>\n]{0,80}>"
    r"|(?:(?<=\w\w\w)|(?<=[^\w)]))[\u00b9\u00b2\u00b3\u2070\u2074-\u2079]+|[\u2460-\u2473\u2776-\u277f]"
    # What OpenAI's models write for themselves, between signs for private use; a word for a source in round brackets.
    r"|\ue200[^\ue201\n]{0,80}?\d[^\ue201\n]{0,80}\ue201|(?<![\w^\\}])\{[1-9]\d?\}"
    r"|\((?i:see|(?:see )?(?:ref|source|doc|document|chunk|citation|passage|result)s?)[.:]?\s?#?\d[^()\n]{0,40}\)"
)
_ROUND: Final = re.compile(_list_of(r"\(", r"\)"))


@attrs.frozen
class CitationMarker:
    """How a citation's number stands in a text.

    Between two signs several numbers may stand, and ranges of up to 50: ``[1, 2]``, ``[1-3]``, ``[^1]``. With the usual
    brackets ``【1†source】`` is read too.

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
        if self.template == "[{number}]":
            before, after = "[\\[\u3010]", "[\\]\u3011]"
        # 3 is no marker in 13, and 03 is none at all.
        pattern = (
            _list_of(before, after)
            if before and after
            else f"{before or '(?<![0-9])'}({_NUMBER}){after or '(?![0-9])'}"
        )
        object.__setattr__(self, "_pattern", re.compile(pattern))

    def of(self, number: int) -> str:
        """The marker of *number*."""
        return self.template.replace("{number}", str(number))

    def find(self, text: str) -> Iterator[tuple[int, int, int]]:
        """Each number in *text* that a marker has: the number, the marker's first character, and the one after its last."""
        for found in self._pattern.finditer(text):
            for number in _numbers(found[1]):
                yield number, found.start(), found.end()

    def find_unread(self, text: str, numbers: Collection[int]) -> Iterator[str]:
        """What looks like a marker in *text* and is not read as one, such as ``[doc 3]``, ``¹``, ``[4:0†source]``.

        Args:
            text: the text.
            numbers: those that citations have: ``(3)`` is none where there is no third one.
        """
        read = {start for _, start, _ in self.find(text)}
        for found in _UNREAD.finditer(text):
            if found.start() not in read:
                yield found[0]
        for found in _ROUND.finditer(text):
            if found.start() not in read and not {*_numbers(found[1])}.isdisjoint(numbers):
                yield found[0]


def _numbers(said: str) -> list[int]:
    """The numbers of a list such as ``1, 3-5``; none where a range is too wide, or runs backwards."""
    numbers: list[int] = []
    for first, last in _PART.findall(said):
        if last and not 0 < int(last) - int(first) < _WIDEST_RANGE:
            return []
        numbers += range(int(first), int(last or first) + 1)
    return numbers


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
