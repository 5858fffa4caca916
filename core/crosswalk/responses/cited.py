"""A response with the results of its tools: ``ToolCall -> Chunk -> Annotation``."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Self

import attrs

from crosswalk.responses.citations import (
    Chunk,
    CitationAnnotation,
    CitationMarker,
    CompressionMode,
    CompressionReport,
    NumberedSource,
    compress,
    named_by,
    numbered,
    with_cited,
)
from crosswalk.responses.content import Annotation, AnnotationURLCitation, ResponseOutputText
from crosswalk.responses.messages import Item, ResponseOutputMessage
from crosswalk.responses.response import Response
from crosswalk.responses.toolkit import ResponseToolCall, ToolCallRegistry, tool_registry
from crosswalk.responses.vocabulary import ResponsesValueError
from crosswalk.text import brief, short_repr


@brief
@attrs.frozen(kw_only=True, repr=False)
class CitedResponse:
    """A response, the tool calls behind it, and their results. It is immutable: its methods return new ones.

    Use :meth:`of` to create one.

    Attributes:
        response: the response as it came.
        tool_calls: the calls, in order, as they came. :attr:`compressed_calls` is shorter.
        chunks: their results, in order.
        citations: the sources that have numbers, by number. No compression removes one.
        marker: the form of a citation in the text.
        reports: the savings of each compression, in order.

    Raises:
        ResponsesValueError: two citations have the same number or source, a chunk has another number than its source, or
            a chunk does not belong to any call.
    """

    response: Response
    tool_calls: tuple[ResponseToolCall[Any], ...] = ()
    chunks: tuple[Chunk, ...] = ()
    citations: tuple[NumberedSource, ...] = ()
    marker: CitationMarker = attrs.field(factory=CitationMarker)
    reports: tuple[CompressionReport, ...] = ()

    def __attrs_post_init__(self) -> None:
        numbers = {citation.annotation: citation.number for citation in self.citations}
        if len(numbers) < len(self.citations) or len(set(numbers.values())) < len(self.citations):
            raise ResponsesValueError("a number or a source twice", path="CitedResponse.citations")
        for chunk in self.chunks:
            if chunk.number is not None and chunk.number != numbers.get(chunk.annotation):  # type: ignore[arg-type]
                raise ResponsesValueError("a number that its source has not", path="CitedResponse.chunks")
            if chunk.call >= len(self.tool_calls):
                raise ResponsesValueError(
                    "chunk does not belong to any tool call", path="CitedResponse.chunks"
                )

    __repr__ = short_repr("response", "citations", "chunks")

    @classmethod
    def of(
        cls,
        response: Response,
        *,
        outputs: Iterable[Item] = (),
        tool_calls: Iterable[ResponseToolCall[Any]] | None = None,
        citations: Iterable[NumberedSource] = (),
        marker: str = "[{number}]",
        registry: ToolCallRegistry = tool_registry,
    ) -> Self:
        """Return *response* with the results of its tool calls.

        Args:
            response: the response.
            outputs: the program's answers to its calls, such as outputs of functions.
            tool_calls: the calls, if they are not those of the response, such as calls of earlier responses.
            citations: the citations of an earlier response of the conversation, which keep their numbers.
            marker: the form of a citation in the text, see :class:`CitationMarker`.
            registry: the tools.

        Raises:
            ToolCallError: an output answers no call.
            ResponsesValueError: the marker has no ``{number}``, or a tool returns something other than chunks.
        """
        if tool_calls is None:
            tool_calls = registry.tool_calls_of((*response.output, *outputs))
        calls = tuple(tool_calls)
        return cls(
            response=response,
            tool_calls=calls,
            chunks=tuple(
                _located(chunk, position) for position, call in enumerate(calls) for chunk in call.chunkify()
            ),
            citations=tuple(citations),
            marker=CitationMarker(marker),
        )

    def install_citations(self) -> Self:
        """Number the chunks that are sources, in order of first appearance over all tool calls.

        Sources that only annotations of the text cite come after them, in order. Equal annotations share a number, and a
        number never changes. Calling it again changes nothing.
        """
        chunks, citations = numbered(self.chunks, self.citations)
        return attrs.evolve(self, chunks=chunks, citations=with_cited(citations, self._annotations()))

    @property
    def referenced(self) -> tuple[NumberedSource, ...]:
        """The citations in use: their marker is in the text, or an annotation names them."""
        numbers = named_by(self._annotations(), self.citations) | self._marked()
        return tuple(citation for citation in self.citations if citation.number in numbers)

    @property
    def candidates(self) -> tuple[NumberedSource, ...]:
        """The citations that the answer does not use."""
        used_numbers = {citation.number for citation in self.referenced}
        return tuple(citation for citation in self.citations if citation.number not in used_numbers)

    @property
    def unknown_markers(self) -> tuple[int, ...]:
        """The numbers of markers in the text without a citation, in ascending order."""
        return tuple(sorted(self._marked() - {citation.number for citation in self.citations}))

    @property
    def unread_markers(self) -> tuple[str, ...]:
        """Texts with a digit that may be markers in an unknown form."""
        numbers = {citation.number for citation in self.citations}
        return tuple(
            marker_text
            for part in self._texts()
            for marker_text in self.marker.find_unread(part.text, numbers)
        )

    def compress_chunks(self, mode: CompressionMode) -> Self:
        """Return a copy with compressed chunks. The last of :attr:`reports` has the savings.

        Citations are installed first. No mode changes a number or removes a source that the answer references. While there
        are :attr:`unread_markers`, no mode removes a chunk.

        Args:
            mode: ``all`` replaces each content with a line of number and title. ``deduplicate`` keeps the first of chunks
                with equal annotations. ``nonrefed`` keeps the chunks that the answer references and those that are not
                sources.

        Raises:
            ResponsesValueError: unknown mode.
        """
        numbered_response = self.install_citations()
        referenced_numbers = (citation.number for citation in numbered_response.referenced)
        chunks, report = compress(
            numbered_response.chunks,
            mode,
            referenced_numbers,
            numbered_response.marker.template,
            unread=any(numbered_response.unread_markers),
        )
        return attrs.evolve(numbered_response, chunks=chunks, reports=(*numbered_response.reports, report))

    @property
    def compressed_calls(self) -> tuple[ResponseToolCall[Any], ...]:
        """The tool calls with only :attr:`chunks` as their results."""
        chunks_by_call: list[list[Chunk]] = [[] for _ in self.tool_calls]
        for chunk in self.chunks:
            chunks_by_call[chunk.call].append(chunk)
        return tuple(
            call.with_chunks(chunks) for call, chunks in zip(self.tool_calls, chunks_by_call, strict=True)
        )

    @property
    def compressed_response(self) -> Response:
        """The response with :attr:`compressed_calls` in place of its calls, to be sent as context."""
        compressed_items: dict[int, deque[Item]] = {}  # the same item may occur twice
        for call, compressed_call in zip(self.tool_calls, self.compressed_calls, strict=True):
            compressed_items.setdefault(id(call.item), deque()).append(compressed_call.item)
            if call.output is not None and compressed_call.output is not None:
                compressed_items.setdefault(id(call.output), deque()).append(compressed_call.output)
        output = (
            compressed_items[id(item)].popleft() if compressed_items.get(id(item)) else item
            for item in self.response.output
        )
        return self.response.replace(output=tuple(output))

    def annotate(self) -> Self:
        """Return a copy with an annotation in the response's text for each marker of a citation. It is idempotent."""
        annotation_by_number = {citation.number: citation.annotation for citation in self.citations}
        output = tuple(
            item.replace(content=tuple(map(partial(self._annotated, annotation_by_number), item.content)))
            if isinstance(item, ResponseOutputMessage)
            else item
            for item in self.response.output
        )
        return attrs.evolve(self, response=self.response.replace(output=output))

    def _annotated(self, annotation_by_number: dict[int, CitationAnnotation], part: Any) -> Any:
        if not isinstance(part, ResponseOutputText):
            return part
        existing_places = {
            _place(existing_annotation)
            for existing_annotation in part.annotations
            if isinstance(existing_annotation, CitationAnnotation)
        }
        new_annotations = []
        for number, start, end in self.marker.find(part.text):
            if number in annotation_by_number:
                chunk = Chunk(content="", annotation=annotation_by_number[number])
                annotation = chunk.as_annotation(start_index=start, end_index=end)
                if annotation is not None and _place(annotation) not in existing_places:
                    new_annotations.append(annotation)
        return part.replace(annotations=(*part.annotations, *new_annotations)) if new_annotations else part

    def _texts(self) -> Iterator[ResponseOutputText]:
        for item in self.response.output:
            if isinstance(item, ResponseOutputMessage):
                yield from (part for part in item.content if isinstance(part, ResponseOutputText))

    def _marked(self) -> set[int]:
        return {number for part in self._texts() for number, _, _ in self.marker.find(part.text)}

    def _annotations(self) -> Iterator[Annotation]:
        for part in self._texts():
            yield from part.annotations


def _located(chunk: Chunk, call: int) -> Chunk:
    if not isinstance(chunk, Chunk):
        raise ResponsesValueError(f"expected Chunk, got {type(chunk).__name__}", path="chunkify()")
    return attrs.evolve(chunk, call=call)


def _place(annotation: CitationAnnotation) -> tuple[Any, ...]:
    """Return the cited source and its position in the text."""
    if isinstance(annotation, AnnotationURLCitation):
        return annotation, annotation.start_index, annotation.end_index
    return annotation, annotation.index
