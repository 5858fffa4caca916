"""Web search, which finds pages."""

from collections.abc import Sequence
from typing import Self

import attrs

from crosswalk.responses.annotations import AnnotationURLCitation
from crosswalk.responses.chunks import Chunk, CitationAnnotation
from crosswalk.responses.records import Record, record
from crosswalk.responses.search_calls import (
    ActionFind,
    ActionOpenPage,
    ActionSearch,
    ResponseFunctionWebSearch,
    WebSearchAction,
    WebSearchResult,
    WebSearchSource,
    WebSearchURL,
)
from crosswalk.responses.toolkit.call import (
    ResponseToolCall,
    read_arguments,
    with_text,
    write_call,
    wrong_arguments,
)
from crosswalk.responses.toolkit.progress import SEARCHING
from crosswalk.responses.vocabulary import WebSearchCallStatus
from crosswalk.types.tools import ToolCall

__all__ = ["WebSearchToolCall"]


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
