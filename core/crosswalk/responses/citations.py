"""Citations: the chunks that tools find, numbered, marked in a text, and compressed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, Literal, TypeAlias, get_args

import attrs

from crosswalk.responses.content import (
    Annotation,
    AnnotationContainerFileCitation,
    AnnotationFileCitation,
    AnnotationFilePath,
    AnnotationURLCitation,
)
from crosswalk.responses.vocabulary import ResponsesValueError
from crosswalk.text import brief, harmless, short_repr

# ---------------------------------------------------------------------------------- chunks
# Chunks: the results of all tools' calls, in one form.


CitationAnnotation: TypeAlias = AnnotationFileCitation | AnnotationURLCitation
"""A citable source. Sources are equal, with equal hashes, if they cite the same place."""

_MAX_TITLE_LENGTH = 120


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
        if len(name) > _MAX_TITLE_LENGTH:
            name = f"{name[: _MAX_TITLE_LENGTH - 1]}…"
        return name if self.number is None else f"{marker.replace('{number}', str(self.number))} {name}"


def source_name(annotation: CitationAnnotation | None) -> str:
    """Return a name for a source without a title."""
    if isinstance(annotation, AnnotationURLCitation):
        return annotation.title or annotation.url
    return "" if annotation is None else annotation.filename or annotation.file_id


# ------------------------------------------------------------------------------- citations
# Citations: numbered sources, their markers in a text, and the compression of the chunks they come from.


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
    chunks: Sequence[Chunk],
    mode: CompressionMode,
    referenced_numbers: Iterable[int],
    marker: str,
    *,
    unread: bool,
) -> tuple[tuple[Chunk, ...], CompressionReport]:
    """Compress *chunks*, which have their numbers, and report the savings.

    Args:
        chunks: all of them.
        mode: the mode.
        referenced_numbers: the numbers that the answer references.
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
        remaining_chunks = tuple(_shorter(chunk, marker) for chunk in chunks)
    elif unread:
        remaining_chunks = tuple(chunks)
    elif mode == "deduplicate":
        remaining_chunks = tuple(_first_ones(chunks))
    else:
        # A chunk that is not a source cannot be referenced, and the answer may rely on it all the same.
        numbers = frozenset(referenced_numbers)
        remaining_chunks = tuple(chunk for chunk in chunks if chunk.number is None or chunk.number in numbers)
    report = CompressionReport(
        mode=mode,
        chunks_before=len(chunks),
        chunks_after=len(remaining_chunks),
        characters_before=sum(len(chunk.content) for chunk in chunks),
        characters_after=sum(len(chunk.content) for chunk in remaining_chunks),
    )
    return remaining_chunks, report


def _first_ones(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    seen_annotations: set[CitationAnnotation] = set()
    for chunk in chunks:
        if chunk.annotation is None:
            yield chunk
        elif chunk.annotation not in seen_annotations:
            seen_annotations.add(chunk.annotation)
            yield chunk


def _shorter(chunk: Chunk, marker: str) -> Chunk:
    """Return *chunk* with a line of number and title in place of longer content."""
    line = chunk.stub(marker)
    return attrs.evolve(chunk, content=line) if len(line) < len(chunk.content) else chunk


@brief
@attrs.frozen(kw_only=True, repr=False)
class NumberedSource:
    """A source with its number.

    Attributes:
        number: counts from 1.
        annotation: the source.
        title: the title for readers.
    """

    number: int
    annotation: CitationAnnotation
    title: str

    __repr__ = short_repr("number", "title", "annotation")


_NUMBER_PATTERN: Final = "[1-9][0-9]{0,8}"
_DASH_PATTERN: Final = "[-\u2010-\u2015\u2212]"
_MAX_RANGE_LENGTH: Final = 50
"""The largest range of numbers. ``[1990-2024]`` is not a citation but years."""


def _list_of(opening: str, closing: str) -> str:
    """Return the pattern of numbers between *opening* and *closing*, with commas, as ranges, or as footnotes."""
    number_or_range = rf"\^?{_NUMBER_PATTERN}(?:\s?{_DASH_PATTERN}\s?\^?{_NUMBER_PATTERN})?"
    footnote_pattern = r"(?:\u2020(?:source|L[0-9]{1,9}(?:-L?[0-9]{1,9})?))?"  # the form of ChatGPT
    more_numbers = rf"(?:\s?(?:[,;&\u3001\uff0c]|\band\b)\s?{number_or_range}){{0,99}}"
    return rf"{opening}({number_or_range}{more_numbers}){footnote_pattern}{closing}"


_NUMBER_OR_RANGE: Final = re.compile(rf"({_NUMBER_PATTERN})(?:\s?{_DASH_PATTERN}\s?\^?({_NUMBER_PATTERN}))?")
_UNREAD_MARKER: Final = re.compile(
    # Anything short in square, curly or angle brackets, an HTML footnote, or a superscript or circled digit.
    r"[\[\u3010\u3014\u3016\u27e6\uff3b][^\[\]\n\u3010\u3011]{0,80}?\d[^\[\]\n\u3010\u3011]{0,80}?"
    r"[\]\u3011\u3015\u3017\u27e7\uff3d]"
    r"|<(?:sup|cite|ref|source)\b[^<>\n]{0,80}>[^<>\n]{0,80}\d|<(?:cite|ref|source)\b[^<>\n]{0,80}\d[^<>\n]{0,80}>"
    r"|(?:(?<=\w\w\w)|(?<=[^\w)]))[\u00b9\u00b2\u00b3\u2070\u2074-\u2079]+|[\u2460-\u2473\u2776-\u277f]"
    # The form that OpenAI's models use internally, between private-use characters, and a word for a source in parentheses.
    r"|\ue200[^\ue201\n]{0,80}?\d[^\ue201\n]{0,80}\ue201|(?<![\w^\\}])\{[1-9]\d?\}"
    r"|\((?i:see|(?:see )?(?:ref|source|doc|document|chunk|citation|passage|result)s?)[.:]?\s?#?\d[^()\n]{0,40}\)"
)
_PARENTHESIZED_NUMBERS: Final = re.compile(_list_of(r"\(", r"\)"))


@attrs.frozen
class CitationMarker:
    """The form of a citation's number in a text.

    Several numbers are allowed, and ranges of up to 50 numbers: ``[1, 2]``, ``[1-3]``, ``[^1]``. The usual brackets
    ``【1†source】`` are read too.

    Attributes:
        template: the form, containing ``{number}``, such as ``[{number}]``.

    Raises:
        ResponsesValueError: the template does not contain exactly one ``{number}``.
    """

    template: str = "[{number}]"
    _pattern: re.Pattern[str] = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        parts = self.template.split("{number}") if type(self.template) is str else []
        if len(parts) != 2:
            raise ResponsesValueError("needs {number}, once", path="CitationMarker.template")
        opening, closing = (re.escape(part) for part in parts)
        if self.template == "[{number}]":
            opening, closing = "[\\[\u3010]", "[\\]\u3011]"
        # 3 is not a marker in 13, and 03 is never one.
        pattern = (
            _list_of(opening, closing)
            if opening and closing
            else f"{opening or '(?<![0-9])'}({_NUMBER_PATTERN}){closing or '(?![0-9])'}"
        )
        object.__setattr__(self, "_pattern", re.compile(pattern))

    def of(self, number: int) -> str:
        """Return the marker of *number*."""
        return self.template.replace("{number}", str(number))

    def find(self, text: str) -> Iterator[tuple[int, int, int]]:
        """Yield each number of a marker in *text*, with the marker's first character and the one after its last."""
        for match in self._pattern.finditer(text):
            for number in _numbers(match[1]):
                yield number, match.start(), match.end()

    def find_unread(self, text: str, numbers: Collection[int]) -> Iterator[str]:
        """Return texts that resemble a marker but are not read as one, such as ``[doc 3]``, ``¹`` and ``[4:0†source]``.

        Args:
            text: the text.
            numbers: the numbers of the citations. ``(3)`` is ignored if there is no third citation.
        """
        marker_starts = {start for _, start, _ in self.find(text)}
        for match in _UNREAD_MARKER.finditer(text):
            if match.start() not in marker_starts:
                yield match[0]
        for match in _PARENTHESIZED_NUMBERS.finditer(text):
            if match.start() not in marker_starts and not {*_numbers(match[1])}.isdisjoint(numbers):
                yield match[0]


def _numbers(number_list: str) -> list[int]:
    """Return the numbers of a list such as ``1, 3-5``, or none if a range is too wide or descends."""
    numbers: list[int] = []
    for first, last in _NUMBER_OR_RANGE.findall(number_list):
        if last and not 0 < int(last) - int(first) < _MAX_RANGE_LENGTH:
            return []
        numbers += range(int(first), int(last or first) + 1)
    return numbers


def numbered(
    chunks: Iterable[Chunk], citations: Sequence[NumberedSource]
) -> tuple[tuple[Chunk, ...], tuple[NumberedSource, ...]]:
    """Return *chunks* with numbers, and *citations* with the new ones after the old, in order of first appearance.

    A chunk without a title gets the title of its source.
    """
    source_by_annotation: dict[CitationAnnotation, NumberedSource] = {
        citation.annotation: citation for citation in citations
    }
    last_number = max((citation.number for citation in citations), default=0)
    numbered_chunks = []
    for chunk in chunks:
        if chunk.annotation is not None:
            citation = source_by_annotation.get(chunk.annotation)
            if citation is None:
                last_number += 1
                title = chunk.title or source_name(chunk.annotation)
                citation = NumberedSource(number=last_number, annotation=chunk.annotation, title=title)
                source_by_annotation[chunk.annotation] = citation
            chunk = attrs.evolve(chunk, number=citation.number, title=chunk.title or citation.title)
        numbered_chunks.append(chunk)
    return tuple(numbered_chunks), tuple(source_by_annotation.values())


def with_cited(
    citations: Sequence[NumberedSource], annotations: Iterable[Annotation]
) -> tuple[NumberedSource, ...]:
    """Return *citations*, followed by the sources that only *annotations* name, in order.

    Servers often cite sources that are missing from the results of the calls. OpenAI lists the pages of a web search and
    the results of a file search only on request. :func:`named_by` decides which sources exist already.
    """
    all_sources = list(citations)
    last_number = max((citation.number for citation in citations), default=0)
    cited_sources = _Names(citation.annotation for citation in citations)
    for annotation in annotations:
        if isinstance(annotation, CitationAnnotation) and not cited_sources.fit(annotation):
            last_number += 1
            all_sources.append(
                NumberedSource(number=last_number, annotation=annotation, title=source_name(annotation))
            )
            cited_sources.add(annotation)
    return tuple(all_sources)


def named_by(annotations: Iterable[Annotation], citations: Iterable[NumberedSource]) -> set[int]:
    """Return the numbers of the *citations* that *annotations* name.

    An annotation names the citations equal to it. If one of the two names a file without a place in it, the same file is
    enough, because many servers do not send pages.
    """
    cited_sources = _Names(annotations)
    return {citation.number for citation in citations if cited_sources.fit(citation.annotation)}


class _Names:
    """The sources that annotations name, prepared for many lookups."""

    def __init__(self, annotations: Iterable[Annotation]) -> None:
        self._citations: set[CitationAnnotation] = set()
        self._file_ids: set[str] = set()
        self._whole_file_ids: set[str] = set()
        for annotation in annotations:
            self.add(annotation)

    def add(self, annotation: Annotation) -> None:
        """Add *annotation*."""
        if isinstance(annotation, AnnotationURLCitation):
            self._citations.add(annotation)
        elif isinstance(annotation, AnnotationFileCitation):
            self._citations.add(annotation)
            self._file_ids.add(annotation.file_id)
            if is_whole_file(annotation):
                self._whole_file_ids.add(annotation.file_id)
        elif isinstance(annotation, AnnotationContainerFileCitation | AnnotationFilePath):
            self._file_ids.add(annotation.file_id)
            self._whole_file_ids.add(annotation.file_id)

    def fit(self, source: CitationAnnotation) -> bool:
        """Return whether one of the annotations names *source*."""
        if source in self._citations:
            return True
        if isinstance(source, AnnotationURLCitation):
            return False
        return source.file_id in (self._file_ids if is_whole_file(source) else self._whole_file_ids)


def is_whole_file(annotation: AnnotationFileCitation) -> bool:
    """Return whether *annotation* names no place in its file."""
    return annotation.page_number is None and annotation.document_position is None
