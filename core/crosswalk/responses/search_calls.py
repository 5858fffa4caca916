"""Searches that the server runs: in files, on the web, for tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypeAlias

from crosswalk.responses.item import Item
from crosswalk.responses.records import Record, Unknown, record
from crosswalk.responses.tools import Tool
from crosswalk.responses.vocabulary import FileSearchCallStatus, ItemStatus, WebSearchCallStatus

__all__ = [
    "ActionFind",
    "ActionOpenPage",
    "ActionSearch",
    "FileSearchResult",
    "ResponseFileSearchToolCall",
    "ResponseFunctionWebSearch",
    "ResponseToolSearchCall",
    "ResponseToolSearchOutputItem",
    "ResponseXSearchToolCall",
    "UnknownWebSearchAction",
    "UnknownWebSearchSource",
    "WebSearchAPI",
    "WebSearchAction",
    "WebSearchSource",
    "WebSearchURL",
]


@record
class FileSearchResult(Record):
    """A piece of a file that a search found.

    Attributes:
        file_id: the file.
        filename: its name.
        text: the piece.
        score: how well it fits, 0 to 1.
        attributes: what is known about the file.
    """

    file_id: str | None = None
    filename: str | None = None
    text: str | None = None
    score: float | None = None
    attributes: Mapping[str, str | float | bool] | None = None


@record
class ResponseFileSearchToolCall(Item):
    """A search in vector stores.

    Attributes:
        queries: what was looked for.
        status: how far it has come.
        results: what was found, where it was asked for.
    """

    type: Literal["file_search_call"] = "file_search_call"
    queries: tuple[str, ...] = ()
    status: FileSearchCallStatus | None = None
    results: tuple[FileSearchResult, ...] | None = None


@record
class WebSearchURL(Record):
    """A page that a search used."""

    type: Literal["url"] = "url"
    url: str


@record
class WebSearchAPI(Record):
    """A data feed that a search used, such as ``oai-weather``; OpenAI sends it, its SDK does not know it."""

    type: Literal["api"] = "api"
    name: str | None = None


@record
class UnknownWebSearchSource(Unknown, Record):
    """A source of a web search of a type that nobody registered."""

    family: ClassVar[str] = "web search source"
    type: str | None = None


WebSearchSource: TypeAlias = WebSearchURL | WebSearchAPI | UnknownWebSearchSource
"""Where a web search found something."""


@record
class ActionSearch(Record):
    """Looks for pages.

    Attributes:
        query: what was looked for.
        queries: all that was looked for.
        sources: what was used, where it was asked for.
    """

    type: Literal["search"] = "search"
    query: str | None = None
    queries: tuple[str, ...] | None = None
    sources: tuple[WebSearchSource, ...] | None = None


@record
class ActionOpenPage(Record):
    """Opens a page."""

    type: Literal["open_page"] = "open_page"
    url: str | None = None


@record
class ActionFind(Record):
    """Looks for a pattern in a page."""

    type: Literal["find_in_page"] = "find_in_page"
    url: str | None = None
    pattern: str


@record
class UnknownWebSearchAction(Unknown, Record):
    """An action of a web search of a type that nobody registered."""

    family: ClassVar[str] = "web search action"
    type: str | None = None


WebSearchAction: TypeAlias = ActionSearch | ActionOpenPage | ActionFind | UnknownWebSearchAction
"""What a web search does."""


@record
class ResponseFunctionWebSearch(Item):
    """A search on the web.

    Attributes:
        action: what it does; ``None`` while that is not known.
        status: how far it has come.
    """

    type: Literal["web_search_call"] = "web_search_call"
    action: WebSearchAction | None = None
    status: WebSearchCallStatus | None = None


@record
class ResponseXSearchToolCall(Item):
    """A search on X, by xAI's server.

    Attributes:
        call_id: empty; there is nothing to answer.
        name: how it searches, such as ``x_semantic_search``.
        arguments: what was looked for, as JSON text.
        status: how far it has come.
    """

    type: Literal["x_search_call"] = "x_search_call"
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    status: WebSearchCallStatus | None = None


@record
class ResponseToolSearchCall(Item):
    """A search for tools whose loading is deferred.

    Attributes:
        call_id: what the answer names, where the client searches.
        execution: who searches: ``server`` or ``client``.
        arguments: what was looked for, any JSON value.
        status: how far it has come.
        created_by: what created it.
    """

    type: Literal["tool_search_call"] = "tool_search_call"
    call_id: str | None = None
    execution: str | None = None
    arguments: Any = None
    status: ItemStatus | None = None
    created_by: str | None = None


@record
class ResponseToolSearchOutputItem(Item):
    """The tools that a search found.

    Attributes:
        call_id: the search, where the client searched.
        execution: who searched: ``server`` or ``client``.
        tools: what it found.
        status: how far it has come.
        created_by: what created it.
    """

    type: Literal["tool_search_output"] = "tool_search_output"
    call_id: str | None = None
    execution: str | None = None
    tools: tuple[Tool, ...] = ()
    status: ItemStatus | None = None
    created_by: str | None = None
