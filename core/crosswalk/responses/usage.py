"""Token counts of a response."""

from crosswalk.responses.records import Record, record

__all__ = [
    "CacheWriteTokensDetails",
    "CachedTokensDetails",
    "ImageGenerationUsage",
    "InputTokensDetails",
    "ModalityTokens",
    "OutputTokensDetails",
    "ResponseUsage",
    "ToolUsage",
    "WebSearchUsage",
]


@record
class CacheWriteTokensDetails(Record):
    """Tokens written to the cache, by how long they stay there."""

    ttl_30m_tokens: int | None = None
    ttl_12h_tokens: int | None = None


@record
class InputTokensDetails(Record):
    """Parts of the input tokens.

    Attributes:
        cached_tokens: read from the cache.
        cache_write_tokens: written to the cache.
        cache_write_tokens_details: see its class.
    """

    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    cache_write_tokens_details: CacheWriteTokensDetails | None = None


@record
class OutputTokensDetails(Record):
    """Parts of the output tokens.

    Attributes:
        reasoning_tokens: spent on thinking.
    """

    reasoning_tokens: int | None = None


@record
class ResponseUsage(Record):
    """Tokens of a response, all turns of the server's tools together.

    Attributes:
        input_tokens: of the prompt, cached ones included.
        output_tokens: of the answer, reasoning included.
        total_tokens: both, as the server adds them up.
        input_tokens_details: see its class.
        output_tokens_details: see its class.
    """

    input_tokens: int
    output_tokens: int
    total_tokens: int | None = None
    input_tokens_details: InputTokensDetails | None = None
    output_tokens_details: OutputTokensDetails | None = None


@record
class ModalityTokens(Record):
    """Tokens by modality."""

    image_tokens: int | None = None
    text_tokens: int | None = None


@record
class CachedTokensDetails(Record):
    """Cached tokens by modality."""

    cached_image_tokens: int | None = None
    cached_text_tokens: int | None = None


@record
class ImageGenerationUsage(Record):
    """Tokens of images that the server made, not included in :class:`ResponseUsage`."""

    input_tokens: int
    output_tokens: int
    total_tokens: int | None = None
    input_tokens_details: ModalityTokens | None = None
    output_tokens_details: ModalityTokens | None = None
    cached_tokens: int | None = None
    cached_tokens_details: CachedTokensDetails | None = None


@record
class WebSearchUsage(Record):
    """The number of web searches."""

    num_requests: int


@record
class ToolUsage(Record):
    """The usage of the server's tools."""

    image_gen: ImageGenerationUsage | None = None
    web_search: WebSearchUsage | None = None
