"""Anthropic's Messages on the wire: its events, blocks and their pieces, citations, words and counts.

Plain data, known once: the provider plugin, the writer of the conversion and the gateway work by it.
Facts: provider document "Anthropic Messages", sections 2 to 7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from crosswalk.errors import ErrorKind
from crosswalk.types.values import PAUSES, FinishReason, SegmentType

__all__ = [
    "AT_END",
    "BLOCKS",
    "CALLER",
    "CATEGORIES",
    "COUNTS",
    "DETAILS",
    "ENCRYPTED",
    "ERRORS",
    "EVENTS",
    "FINISH_REASONS",
    "FOREIGN_SEARCH",
    "LOCATIONS",
    "METRICS",
    "METRICS_COUNTS",
    "NULL_AT_END",
    "NULL_AT_START",
    "NULL_COUNTS",
    "OPAQUE",
    "PAUSES",
    "PIECES",
    "SERVER_TOOLS",
    "SIGNERS",
    "STATE_BLOCKS",
    "TIERS",
    "UNMARKED",
    "WireBlock",
    "WirePiece",
    "foreign_searches",
    "is_known_block",
    "is_server_call",
    "without_foreign_citations",
]

EVENTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "message_start": "message",
        "content_block_start": "content_block",
        "content_block_delta": "delta",
        "content_block_stop": "",
        "message_delta": "delta",
        "message_stop": "",
        "ping": "",
        "error": "error",
    }
)
"""The events of a stream, each with the key of what it brings; ``""`` where it brings nothing."""


class WireBlock(NamedTuple):
    """A type of content block.

    Attributes:
        segment: what it is.
        leaf: the key of what it says: its text, its payload, its input; ``""`` where all of it counts.
        needs: what clients count on, of what a server's own tools did.
    """

    segment: SegmentType
    leaf: str = ""
    needs: Mapping[str, type] = MappingProxyType({})


_RESULT_BLOCK: Final = WireBlock(SegmentType.TOOL_CALL, "", {"tool_use_id": str, "content": object})

BLOCKS: Final[Mapping[str, WireBlock]] = MappingProxyType(
    {
        "text": WireBlock(SegmentType.TEXT, "text"),
        "thinking": WireBlock(SegmentType.REASONING, "thinking"),
        "redacted_thinking": WireBlock(SegmentType.REASONING, "data"),
        "tool_use": WireBlock(SegmentType.TOOL_CALL, "input"),
        "server_tool_use": WireBlock(SegmentType.TOOL_CALL, "input", {"id": str, "name": str}),
        "mcp_tool_use": WireBlock(SegmentType.TOOL_CALL, "input"),
        "web_search_tool_result": _RESULT_BLOCK,
        "web_fetch_tool_result": _RESULT_BLOCK,
        "code_execution_tool_result": _RESULT_BLOCK,
        "bash_code_execution_tool_result": _RESULT_BLOCK,
        "text_editor_code_execution_tool_result": _RESULT_BLOCK,
        "tool_search_tool_result": _RESULT_BLOCK,
        "mcp_tool_result": WireBlock(SegmentType.TOOL_CALL),
        "container_upload": WireBlock(SegmentType.MEDIA, "", {"file_id": str}),
    }
)
"""The content blocks, by type; one of another type is kept as it is."""

STATE_BLOCKS: Final = frozenset({"compaction", "fallback"})
"""The blocks that are not content of the answer, and go back to the server as they are."""


def is_known_block(type: str) -> bool:
    """Whether a block of *type* means something to the typed fields: it is known, or of a tool that nobody has heard of."""
    return type in BLOCKS or type.endswith("_tool_result") or is_server_call(type)


def is_server_call(type: str) -> bool:
    """Whether a block of *type* is a call of a tool of the server's own."""
    return type.endswith("_tool_use")


def foreign_searches(blocks: Sequence[Any]) -> list[int]:
    """Return the positions in *blocks* of the calls and results of web searches by another server.

    Such a call has an id that a conversion has made of an item's, or pages without encrypted content.
    """
    searches: dict[int, Any] = {}
    foreign: list[Any] = []
    for place, block in enumerate(blocks):
        kind = block.get("type") if isinstance(block, dict) else None
        if kind in ("server_tool_use", "web_search_tool_result"):
            searches[place] = id = block.get("id", block.get("tool_use_id"))
            pages = block.get("content")
            pages = pages if isinstance(pages, list) else ()
            if str(id).startswith(FOREIGN_SEARCH) or any(
                isinstance(page, dict) and page.get("encrypted_content") == "" for page in pages
            ):
                foreign.append(id)
    return [place for place, id in searches.items() if id in foreign]


def without_foreign_citations(block: Any) -> Any:
    """Return *block* without the citations of another server's pages, which have no encrypted index."""
    citations = block.get("citations") if isinstance(block, dict) else None
    if not isinstance(citations, list):
        return block
    own = [one for one in citations if not (isinstance(one, dict) and one.get("encrypted_index") == "")]
    return block if len(own) == len(citations) else {**block, "citations": own}


SIGNERS: Final = ("anthropic", "bedrock")
"""The providers of Claude. Each takes the signatures and the encrypted reasoning of the others."""
ENCRYPTED: Final = "crosswalk:encrypted:"
"""The beginning of encrypted reasoning that is of another API than the body that holds it, as a conversion writes it."""
FOREIGN_SEARCH: Final = "srvtoolu_ws_"
"""The beginning of the id of a web search that a conversion has made of an item of Responses."""

OPAQUE: Final[Mapping[str, str]] = MappingProxyType(
    {"thinking": "signature", "redacted_thinking": "encrypted"}
)
"""What the metadata call that which has to go back with a block, or as a block."""


class WirePiece(NamedTuple):
    """A type of piece of a block.

    Attributes:
        block: the block that it is of; one that was never started is of that type.
        leaf: the key of what it brings.
    """

    block: str
    leaf: str


PIECES: Final[Mapping[str, WirePiece]] = MappingProxyType(
    {
        "text_delta": WirePiece("text", "text"),
        "citations_delta": WirePiece("text", "citation"),
        "thinking_delta": WirePiece("thinking", "thinking"),
        "signature_delta": WirePiece("thinking", "signature"),
        "input_json_delta": WirePiece("tool_use", "partial_json"),
    }
)
"""The deltas of blocks, by type."""

SERVER_TOOLS: Final = frozenset(
    {
        "web_search", "web_fetch", "code_execution", "bash_code_execution", "text_editor_code_execution",
        "tool_search_tool_regex", "tool_search_tool_bm25",
    }
)  # fmt: skip
"""The server's own tools that clients know."""

UNMARKED: Final = ("thinking", "redacted_thinking")
"""Blocks of a request that no mark for the cache may stand at."""

LOCATIONS: Final[Mapping[str, Mapping[str, type]]] = MappingProxyType(
    {
        "char_location": {"document_index": int, "start_char_index": int, "end_char_index": int},
        "page_location": {"document_index": int, "start_page_number": int, "end_page_number": int},
        "content_block_location": {"document_index": int, "start_block_index": int, "end_block_index": int},
        "web_search_result_location": {"url": str, "encrypted_index": str},
        "search_result_location": {
            "source": str, "search_result_index": int, "start_block_index": int, "end_block_index": int,
        },
    }
)  # fmt: skip
"""The citations, by type, each with what clients count on beside ``cited_text``."""

FINISH_REASONS: Final[Mapping[str, FinishReason]] = MappingProxyType(
    {
        "end_turn": FinishReason.STOP,
        "stop_sequence": FinishReason.STOP,
        "tool_use": FinishReason.TOOL_CALLS,
        "max_tokens": FinishReason.LENGTH,
        "model_context_window_exceeded": FinishReason.LENGTH,
        "refusal": FinishReason.CONTENT_FILTER,
        "pause_turn": FinishReason.STOP,
        "compaction": FinishReason.STOP,
    }
)
"""What a stop reason means; of several for one meaning the first is written where the provider said none of them."""

AT_END: Final = ("stop_sequence", "stop_details", "container")
"""What is said of a message with its stop reason, at its end."""

NULL_AT_END: Final[Mapping[str, None]] = MappingProxyType(dict.fromkeys(AT_END))
"""The required members at the end of a message, each null where there is nothing to say (Anthropic's OpenAPI document)."""

CALLER: Final[Mapping[str, str]] = MappingProxyType({"type": "direct"})
"""The required ``caller`` of a ``tool_use`` block: the model itself, where nothing says otherwise."""

CATEGORIES: Final = ("cyber", "bio", "frontier_llm", "reasoning_extraction", "general_harms")
"""Why a model may decline."""

COUNTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "prompt_tokens": "input_tokens",  # without those that the cache had or got
        "completion_tokens": "output_tokens",
        "cached_tokens": "cache_read_input_tokens",
        "cache_write_tokens": "cache_creation_input_tokens",
        "reasoning_tokens": "output_tokens_details.thinking_tokens",
    }
)
"""Where a usage has each count."""

DETAILS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "cache_write_5m_tokens": "cache_creation.ephemeral_5m_input_tokens",
        "cache_write_1h_tokens": "cache_creation.ephemeral_1h_input_tokens",
        "web_search_requests": "server_tool_use.web_search_requests",
        "web_fetch_requests": "server_tool_use.web_fetch_requests",
    }
)
"""Where a usage has each of its details."""

METRICS: Final = "amazon-bedrock-invocationMetrics"
"""The key under which Bedrock adds its own counts to the last event of an invoked model's stream."""

METRICS_COUNTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "prompt_tokens": "inputTokenCount",
        "completion_tokens": "outputTokenCount",
        "cached_tokens": "cacheReadInputTokenCount",
        "cache_write_tokens": "cacheWriteInputTokenCount",
    }
)
"""Where these have each count, in the sense of ``COUNTS``. The counts of the message itself go first."""

NULL_COUNTS: Final = (
    "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens_details", "server_tool_use",
)  # fmt: skip
"""The members of every usage that are required and may be null; at the start of a message there are more."""
TIERS: Final = ("standard", "priority", "batch")
"""The service tiers of an answer."""
NULL_AT_START: Final = ("cache_creation", "inference_geo", "service_tier")
"""The further members of a message's own usage, which the last event of a stream does not repeat."""

ERRORS: Final[Mapping[str, ErrorKind]] = MappingProxyType(
    {
        "invalid_request_error": ErrorKind.INVALID_REQUEST,
        "authentication_error": ErrorKind.AUTHENTICATION,
        "permission_error": ErrorKind.PERMISSION,
        "billing_error": ErrorKind.QUOTA,
        "not_found_error": ErrorKind.INVALID_REQUEST,
        "conflict_error": ErrorKind.INVALID_REQUEST,
        "request_too_large": ErrorKind.INVALID_REQUEST,
        "rate_limit_error": ErrorKind.RATE_LIMIT,
        "overloaded_error": ErrorKind.RATE_LIMIT,
        "timeout_error": ErrorKind.TIMEOUT,
        "api_error": ErrorKind.SERVER,
    }
)
"""What the type of an error means; of several for one meaning the first is written."""
