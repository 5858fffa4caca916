"""Items of tools that are not OpenAI's own: document finder and file reader (seed 001), and found pages with text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from crosswalk.responses.item import Item
from crosswalk.responses.items import register_item
from crosswalk.responses.layouts import register
from crosswalk.responses.records import Record, record
from crosswalk.responses.search_calls import UnknownWebSearchSource
from crosswalk.responses.vocabulary import FileSearchCallStatus, ItemStatus

__all__ = [
    "FilePage",
    "FoundDocument",
    "ResponseDocumentFinderToolCall",
    "ResponseFileReaderToolCall",
    "WebSearchResult",
]


@record
class WebSearchResult(Record):
    """A page that a web search found, with what it says; OpenAI's own sources have a URL only.

    Attributes:
        url: the page.
        title: its title.
        text: what it says.
    """

    type: Literal["result"] = "result"
    url: str
    title: str | None = None
    text: str | None = None


register(WebSearchResult, UnknownWebSearchSource)


@record
class FoundDocument(Record):
    """A document that the document finder found.

    Attributes:
        file_id: the document, as a file.
        filename: the file's name.
        url: the document, on the web; ``file_id`` goes first where both are there.
        title: its title.
        text: what it is about, or a piece of it.
        score: how well it fits, 0 to 1.
        attributes: what is known about it.
    """

    file_id: str | None = None
    filename: str | None = None
    url: str | None = None
    title: str | None = None
    text: str | None = None
    score: float | None = None
    attributes: Mapping[str, str | float | bool] | None = None


@register_item
@record
class ResponseDocumentFinderToolCall(Item):
    """A search for documents across collections.

    Attributes:
        queries: what was looked for.
        collections: where; ``None`` is everywhere.
        status: how far it has come.
        results: what was found; ``None`` before the end.
    """

    type: Literal["document_finder_call"] = "document_finder_call"
    queries: tuple[str, ...] = ()
    collections: tuple[str, ...] | None = None
    status: FileSearchCallStatus | None = None
    results: tuple[FoundDocument, ...] | None = None


@record
class FilePage(Record):
    """A page, or another piece, of a file that was read.

    Attributes:
        text: what it says.
        page_number: the page, from 1; ``None`` in files without pages.
        document_position: the place of the piece in the document; ``None`` when it is not known.
    """

    text: str
    page_number: int | None = None
    document_position: int | None = None


@register_item
@record
class ResponseFileReaderToolCall(Item):
    """A reading of a file.

    Attributes:
        file_id: the file.
        filename: its name.
        first_page: the first page that is read; ``None`` is the file's first.
        last_page: the last page that is read; ``None`` is the file's last.
        status: how far it has come.
        results: what it says; ``None`` before the end.
    """

    type: Literal["file_reader_call"] = "file_reader_call"
    file_id: str
    filename: str | None = None
    first_page: int | None = None
    last_page: int | None = None
    status: ItemStatus | None = None
    results: tuple[FilePage, ...] | None = None
