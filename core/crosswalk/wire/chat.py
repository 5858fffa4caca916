"""Chat Completions on the wire: the fields of a choice, its finish words, and the paths of the counts.

Plain data, stated once, for the dialect that reads the form and the writer of the conversion.
Facts: provider document "OpenAI Chat Completions". Additions of other servers name their server.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from crosswalk.types.usage import OPENAI_COUNTS as COUNTS, OPENAI_DETAILS as DETAILS
from crosswalk.types.values import FinishReason, SegmentType

__all__ = [
    "AUDIO",
    "BODY",
    "CHUNK",
    "CITATION",
    "COUNTS",
    "DETAILS",
    "FIELDS",
    "FINISH_REASONS",
    "SPEECH",
    "TEXT",
    "WRITTEN",
]

BODY: Final = "chat.completion"
"""The ``object`` of a whole answer."""
TEXT: Final = "text_completion"
"""The ``object`` of a legacy completion, and of its chunks."""
CHUNK: Final = "chat.completion.chunk"
"""The ``object`` of each event of a stream."""

FIELDS: Final[Mapping[str, SegmentType]] = MappingProxyType(
    {
        "content": SegmentType.TEXT,
        "reasoning_content": SegmentType.REASONING,  # of OpenAI's own servers none
        "reasoning": SegmentType.REASONING,  # vLLM, OpenRouter, Groq, Ollama
        "refusal": SegmentType.REFUSAL,
        "tool_calls": SegmentType.TOOL_CALL,
        "function_call": SegmentType.TOOL_CALL,  # before there were several
        "annotations": SegmentType.CITATION,
        "audio": SegmentType.MEDIA,
        "images": SegmentType.MEDIA,  # OpenRouter
    }
)
"""The fields of a message or a delta, by name. If several names mean the same, the first is written."""

SPEECH: Final = tuple(
    name for name, kind in FIELDS.items() if kind not in (SegmentType.CITATION, SegmentType.MEDIA)
)
"""Those with which it speaks."""

CITATION: Final[Mapping[str, type]] = MappingProxyType(
    {"start_index": int, "end_index": int, "title": str, "url": str}
)
"""The fields of an annotation of the type ``url_citation``."""

AUDIO: Final[Mapping[str, type]] = MappingProxyType(
    {"data": str, "id": str, "expires_at": int, "transcript": str}
)
"""The fields of a sound."""

WRITTEN: Final[Mapping[str, FinishReason]] = MappingProxyType(
    {
        "stop": FinishReason.STOP,
        "length": FinishReason.LENGTH,
        "tool_calls": FinishReason.TOOL_CALLS,
        "content_filter": FinishReason.CONTENT_FILTER,
    }
)
"""OpenAI's finish words, which are written."""

FINISH_REASONS: Final[Mapping[str, FinishReason]] = MappingProxyType(
    {
        **WRITTEN,
        "tool_call": FinishReason.TOOL_CALLS,  # DeepSeek's models on Azure
        "function_call": FinishReason.TOOL_CALLS,
        # Words of one server or another, which gateways pass on.
        "abort": FinishReason.CANCELLED,
        "error": FinishReason.ERROR,
        "insufficient_system_resource": FinishReason.ERROR,  # DeepSeek
        "max_tokens": FinishReason.LENGTH,  # OpenAI's first models that read images, in ``finish_details``
        "model_length": FinishReason.LENGTH,  # Mistral
        "repetition": FinishReason.LENGTH,  # vLLM's detector cut the text: incomplete, if not for its length
    }
)
"""The meaning of each finish word."""
