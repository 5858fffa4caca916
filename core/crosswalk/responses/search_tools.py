"""Tools that search: files, the web, other tools."""

from typing import Any, Literal, TypeAlias, Union

import attrs

from crosswalk.responses.records import Record, record


@record
class ComparisonFilter(Record):
    """Compares an attribute of a file with a value.

    Attributes:
        type: the comparison.
        key: the attribute.
        value: what it is compared with: a string, number or boolean, or an array of strings and numbers.
    """

    type: Literal["eq", "ne", "gt", "gte", "lt", "lte", "in", "nin"]
    key: str
    value: Any


@record
class CompoundFilter(Record):
    """Joins filters.

    Attributes:
        type: how.
        filters: what is joined.
    """

    type: Literal["and", "or"]
    filters: tuple[Union[ComparisonFilter, "CompoundFilter"], ...]


attrs.resolve_types(CompoundFilter)


FileSearchFilter: TypeAlias = ComparisonFilter | CompoundFilter
"""Which files a file search may look into."""


@record
class HybridSearch(Record):
    """How a search by meaning and one by words are weighed against each other."""

    embedding_weight: float
    text_weight: float


@record
class RankingOptions(Record):
    """How the results of a file search are ranked.

    Attributes:
        ranker: which ranker, ``auto`` for the server's choice.
        score_threshold: the lowest score of a result, 0 to 1.
        hybrid_search: see its class.
    """

    ranker: str | None = None
    score_threshold: float | None = None
    hybrid_search: HybridSearch | None = None


@record
class FileSearchTool(Record):
    """Searches in vector stores.

    Attributes:
        vector_store_ids: the stores.
        filters: which files.
        max_num_results: how many results at most.
        ranking_options: see its class.
    """

    type: Literal["file_search"] = "file_search"
    vector_store_ids: tuple[str, ...]
    filters: FileSearchFilter | None = None
    max_num_results: int | None = None
    ranking_options: RankingOptions | None = None


@record
class WebSearchFilters(Record):
    """Which pages a web search may use."""

    allowed_domains: tuple[str, ...] | None = None


@record
class UserLocation(Record):
    """Roughly where the user is.

    Attributes:
        type: ``approximate``.
        city: free text.
        region: free text.
        country: two letters, ISO 3166-1.
        timezone: IANA's name.
    """

    type: Literal["approximate"] | None = "approximate"
    city: str | None = None
    region: str | None = None
    country: str | None = None
    timezone: str | None = None


@record
class WebSearchTool(Record):
    """Searches the web.

    Attributes:
        filters: which pages.
        search_context_size: how much of them is read: ``low``, ``medium``, ``high``.
        user_location: see its class.
        external_web_access: whether pages are fetched live.
    """

    type: Literal["web_search", "web_search_2025_08_26"] = "web_search"
    filters: WebSearchFilters | None = None
    search_context_size: str | None = None
    user_location: UserLocation | None = None
    external_web_access: bool | None = None


@record
class WebSearchPreviewTool(Record):
    """Searches the web (preview); see :class:`WebSearchTool`."""

    type: Literal["web_search_preview", "web_search_preview_2025_03_11"] = "web_search_preview"
    search_content_types: tuple[str, ...] | None = None
    search_context_size: str | None = None
    user_location: UserLocation | None = None


@record
class XSearchTool(Record):
    """Searches X, on xAI's server.

    Attributes:
        allowed_x_handles: whose posts alone are looked at, without the ``@``.
        excluded_x_handles: whose posts are not.
        from_date: the first day, such as ``2025-10-01``.
        to_date: the last day.
        enable_image_understanding: whether images are looked at.
        enable_video_understanding: whether videos are.
    """

    type: Literal["x_search"] = "x_search"
    allowed_x_handles: tuple[str, ...] | None = None
    excluded_x_handles: tuple[str, ...] | None = None
    from_date: str | None = None
    to_date: str | None = None
    enable_image_understanding: bool | None = None
    enable_video_understanding: bool | None = None


@record
class DocumentFinderTool(Record):
    """Looks for documents across collections; OpenAI has none.

    Attributes:
        collections: where it may look; ``None`` is everywhere.
        filters: which documents.
        max_num_results: how many results at most.
    """

    type: Literal["document_finder"] = "document_finder"
    collections: tuple[str, ...] | None = None
    filters: FileSearchFilter | None = None
    max_num_results: int | None = None


@record
class FileReaderTool(Record):
    """Reads files; OpenAI has none.

    Attributes:
        file_ids: which files it may read; ``None`` is any.
    """

    type: Literal["file_reader"] = "file_reader"
    file_ids: tuple[str, ...] | None = None


@record
class ToolSearchTool(Record):
    """Lets the model look for tools whose loading is deferred.

    Attributes:
        execution: who searches: ``server`` or ``client``.
        description: for a search by the client.
        parameters: the JSON Schema of a search by the client.
    """

    type: Literal["tool_search"] = "tool_search"
    execution: str | None = None
    description: str | None = None
    parameters: Any = None
