"""Web search, which finds pages, and file search, document finder and file reader, which find places in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self, TypeVar

import attrs

from crosswalk.responses.annotations import AnnotationFileCitation, AnnotationURLCitation
from crosswalk.responses.chunks import Chunk, CitationAnnotation
from crosswalk.responses.records import Record, record
from crosswalk.responses.search_calls import (
    ActionFind,
    ActionOpenPage,
    ActionSearch,
    FilePage,
    FileSearchResult,
    FoundDocument,
    ResponseDocumentFinderToolCall,
    ResponseFileReaderToolCall,
    ResponseFileSearchToolCall,
    ResponseFunctionWebSearch,
    WebSearchAction,
    WebSearchResult,
    WebSearchSource,
    WebSearchURL,
)
from crosswalk.responses.toolkit.call import (
    RUNNING,
    SEARCHING,
    ResponseToolCall,
    ToolCallError,
    read_arguments,
    with_text,
    write_call,
    wrong_arguments,
)
from crosswalk.responses.vocabulary import FileSearchCallStatus, ItemStatus, WebSearchCallStatus
from crosswalk.types.message import ToolCall


@record
class _WebSearchArguments(Record):
    action: WebSearchAction


@attrs.frozen(repr=False)
class WebSearchToolCall(ResponseToolCall[ResponseFunctionWebSearch]):
    """A search on the web: it looks for pages, opens one, or looks for a pattern in one.

    OpenAI names the pages. Their text is available if the sources are :class:`WebSearchResult`.
    """

    item_type = ResponseFunctionWebSearch
    chat_name = "web_search"
    progression = SEARCHING

    @classmethod
    def from_chat_tool_call(cls, tool_call: ToolCall) -> Self:
        """See :meth:`ResponseToolCall.from_chat_tool_call`. The arguments are those of an action, or a ``query``."""
        action = read_arguments(
            tool_call, _WebSearchArguments, cls, lambda data: {"action": {"type": "search", **data}}
        ).action
        if isinstance(action, ActionSearch) and action.sources is not None:
            raise wrong_arguments(tool_call, "sources are what was found, not asked for")
        status = WebSearchCallStatus.IN_PROGRESS
        return cls(ResponseFunctionWebSearch(id=tool_call.id, action=action, status=status))

    def to_chat_tool_call(self) -> ToolCall:
        """See :meth:`ResponseToolCall.to_chat_tool_call`. A search is written without a ``type``."""
        action = self.item.action
        if action is None:
            raise self._problem("does not say yet what it does")
        if isinstance(action, ActionSearch):
            action = action.replace(sources=None, presence=(action.presence - {"sources"}) | {"type"})
        return write_call(self, action)

    def chunkify(self) -> tuple[Chunk, ...]:
        """Return a chunk for each page. An opened page has one after it was opened."""
        action = self.item.action
        if isinstance(action, ActionOpenPage | ActionFind):
            citation = url_citation(action.url) if self.status in {None, "completed"} else None
            return () if citation is None else (Chunk(content="", annotation=citation),)
        chunks = []
        for index, source in enumerate(self._sources()):
            if isinstance(source, WebSearchResult):
                citation = url_citation(source.url, source.title)
                chunks.append(
                    Chunk(content=source.text or "", title=source.title, annotation=citation, index=index)
                )
            elif isinstance(source, WebSearchURL):
                chunks.append(Chunk(content="", annotation=url_citation(source.url), index=index))
        return tuple(chunks)

    def with_chunks(self, chunks: Sequence[Chunk]) -> Self:
        """See :meth:`ResponseToolCall.with_chunks`. Sources other than pages stay."""
        remaining = {chunk.index: chunk for chunk in chunks}
        pages = {chunk.index for chunk in self.chunkify()}
        action = self.item.action
        if not isinstance(action, ActionSearch) or not action.sources:
            return self
        stored = tuple(
            with_text(source, remaining[index].content) if isinstance(source, WebSearchResult) else source
            for index, source in enumerate(action.sources)
            if index in remaining or index not in pages
        )
        return self._having(action=action.replace(sources=stored))

    def _sources(self) -> tuple[WebSearchSource, ...]:
        return (self.item.action.sources or ()) if isinstance(self.item.action, ActionSearch) else ()


def url_citation(url: str | None, title: str | None = None) -> CitationAnnotation | None:
    """Return the citation of the page at *url*, or ``None`` without a URL."""
    return AnnotationURLCitation(url=url, title=title) if url else None


ResultT = TypeVar("ResultT", FileSearchResult, FoundDocument, FilePage)


def _chosen(results: Sequence[ResultT], chunks: Sequence[Chunk]) -> tuple[ResultT, ...]:
    """Return the *results* of *chunks*, with their contents.

    Raises:
        ToolCallError: a chunk does not belong to any of them.
    """
    if any(chunk.index >= len(results) for chunk in chunks):
        raise ToolCallError("a chunk that the call did not find")
    return tuple(with_text(results[chunk.index], chunk.content) for chunk in chunks)


@record
class _FileSearchArguments(Record):
    queries: tuple[str, ...]


@attrs.frozen(repr=False)
class FileSearchToolCall(ResponseToolCall[ResponseFileSearchToolCall]):
    """A search in vector stores.

    Results with different pages or positions are different sources if their ``attributes``, or their extra fields, have
    an integer ``page_number`` or ``document_position``. Otherwise all pieces of a file are one source.
    """

    item_type = ResponseFileSearchToolCall
    chat_name = "file_search"
    progression = SEARCHING

    @classmethod
    def from_chat_tool_call(cls, tool_call: ToolCall) -> Self:
        """See :meth:`ResponseToolCall.from_chat_tool_call`. The arguments are ``queries``."""
        arguments = read_arguments(tool_call, _FileSearchArguments, cls)
        status = FileSearchCallStatus.IN_PROGRESS
        return cls(ResponseFileSearchToolCall(id=tool_call.id, queries=arguments.queries, status=status))

    def to_chat_tool_call(self) -> ToolCall:
        """See :meth:`ResponseToolCall.to_chat_tool_call`."""
        return write_call(self, _FileSearchArguments(queries=self.item.queries))

    def chunkify(self) -> tuple[Chunk, ...]:
        """A chunk for each result."""
        return tuple(
            Chunk(
                content=result.text or "",
                title=result.filename,
                annotation=_file_citation(result),
                score=result.score,
                index=index,
            )
            for index, result in enumerate(self.item.results or ())
        )

    def with_chunks(self, chunks: Sequence[Chunk]) -> Self:
        """See :meth:`ResponseToolCall.with_chunks`."""
        return self if self.item.results is None else self._having(results=_chosen(self.item.results, chunks))


def _file_citation(result: FileSearchResult | FoundDocument) -> AnnotationFileCitation | None:
    if result.file_id is None:
        return None
    return AnnotationFileCitation(
        file_id=result.file_id,
        filename=result.filename,
        page_number=_place(result, "page_number"),
        document_position=_place(result, "document_position"),
    )


def _place(result: FileSearchResult | FoundDocument, name: str) -> int | None:
    attributes: Mapping[str, Any] = result.attributes or {}
    for value in (attributes.get(name), result.extensions.get(name)):
        if type(value) is int or (type(value) is float and value.is_integer()):
            return int(value)
    return None


@record
class _DocumentFinderArguments(Record):
    queries: tuple[str, ...]
    collections: tuple[str, ...] | None = None


@attrs.frozen(repr=False)
class DocumentFinderToolCall(ResponseToolCall[ResponseDocumentFinderToolCall]):
    """A search for documents across collections."""

    item_type = ResponseDocumentFinderToolCall
    chat_name = "document_finder"
    progression = SEARCHING

    @classmethod
    def from_chat_tool_call(cls, tool_call: ToolCall) -> Self:
        """See :meth:`ResponseToolCall.from_chat_tool_call`. The arguments are ``queries`` and ``collections``."""
        arguments = read_arguments(tool_call, _DocumentFinderArguments, cls)
        return cls(
            ResponseDocumentFinderToolCall(
                id=tool_call.id,
                queries=arguments.queries,
                collections=arguments.collections,
                status=FileSearchCallStatus.IN_PROGRESS,
            )
        )

    def to_chat_tool_call(self) -> ToolCall:
        """See :meth:`ResponseToolCall.to_chat_tool_call`."""
        item = self.item
        return write_call(self, _DocumentFinderArguments(queries=item.queries, collections=item.collections))

    def chunkify(self) -> tuple[Chunk, ...]:
        """A chunk for each document."""
        return tuple(
            Chunk(
                content=result.text or "",
                title=result.title or result.filename,
                annotation=_file_citation(result) or url_citation(result.url, result.title),
                score=result.score,
                index=index,
            )
            for index, result in enumerate(self.item.results or ())
        )

    def with_chunks(self, chunks: Sequence[Chunk]) -> Self:
        """See :meth:`ResponseToolCall.with_chunks`."""
        return self if self.item.results is None else self._having(results=_chosen(self.item.results, chunks))


@record
class _FileReaderArguments(Record):
    file_id: str
    first_page: int | None = None
    last_page: int | None = None


@attrs.frozen(repr=False)
class FileReaderToolCall(ResponseToolCall[ResponseFileReaderToolCall]):
    """A reading of a file."""

    item_type = ResponseFileReaderToolCall
    chat_name = "file_reader"
    progression = RUNNING

    @classmethod
    def from_chat_tool_call(cls, tool_call: ToolCall) -> Self:
        """See :meth:`ResponseToolCall.from_chat_tool_call`. The arguments are ``file_id`` and two pages."""
        arguments = read_arguments(tool_call, _FileReaderArguments, cls)
        return cls(
            ResponseFileReaderToolCall(
                id=tool_call.id,
                file_id=arguments.file_id,
                first_page=arguments.first_page,
                last_page=arguments.last_page,
                status=ItemStatus.IN_PROGRESS,
            )
        )

    def to_chat_tool_call(self) -> ToolCall:
        """See :meth:`ResponseToolCall.to_chat_tool_call`."""
        item = self.item
        return write_call(
            self,
            _FileReaderArguments(file_id=item.file_id, first_page=item.first_page, last_page=item.last_page),
        )

    def chunkify(self) -> tuple[Chunk, ...]:
        """A chunk for each page."""
        item = self.item
        return tuple(
            Chunk(
                content=page.text,
                title=item.filename,
                annotation=AnnotationFileCitation(
                    file_id=item.file_id,
                    filename=item.filename,
                    page_number=page.page_number,
                    document_position=page.document_position,
                ),
                index=index,
            )
            for index, page in enumerate(item.results or ())
        )

    def with_chunks(self, chunks: Sequence[Chunk]) -> Self:
        """See :meth:`ResponseToolCall.with_chunks`."""
        return self if self.item.results is None else self._having(results=_chosen(self.item.results, chunks))
