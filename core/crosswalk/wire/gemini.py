"""Gemini's ``generateContent`` on the wire: its parts, the words for the end of an answer and for errors, its counts.

Plain data: the provider plugin, the writer of the conversion and the gateway use it.
Facts: provider document "Google Gemini", sections 1 to 4.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from crosswalk.errors import ErrorKind
from crosswalk.types.json import load_json
from crosswalk.types.values import FinishReason, SegmentType

__all__ = [
    "COUNTS",
    "ERRORS",
    "FAILED",
    "FINISH_REASONS",
    "MEDIA",
    "MEDIA_FIELDS",
    "MODALITIES",
    "PARTS",
    "SERVER_TOOLS",
    "VAGUE",
    "json_name",
    "json_schema",
    "part_of",
]

MEDIA: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {"inlineData": ("data", "base64"), "fileData": ("fileUri", "url")}
)
"""The parts that are media, each with the field of the data and how that is encoded."""

_MEDIA_BY_ENCODING: Final = {encoding: name for name, (_, encoding) in MEDIA.items()}

MEDIA_FIELDS: Final[Mapping[str, str]] = MappingProxyType({"mimeType": "media_type", "displayName": "name"})
"""The further fields of media, by their canonical names."""

SERVER_TOOLS: Final[Mapping[str, tuple[str, bool]]] = MappingProxyType(
    {
        "executableCode": ("code", False),
        "codeExecutionResult": ("output", False),
        "toolCall": ("args", True),
        "toolResponse": ("response", True),
    }
)
"""The parts of the server's own tools: the field that is the segment's content, and whether as JSON."""

PARTS: Final = frozenset({"text", "functionCall", "functionResponse", *MEDIA, *SERVER_TOOLS})
"""The known members of a part. A part without any of them is new."""

_FILTER_WORDS: Final = (
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
    "MODEL_ARMOR",
    "ESCALATION",
)
VAGUE: Final = ("FINISH_REASON_UNSPECIFIED",)
"""They do not say why the answer ended, so it is not complete. It is an error if nothing was produced."""
FAILED: Final[Mapping[str, ErrorKind]] = MappingProxyType(
    {
        "MALFORMED_FUNCTION_CALL": ErrorKind.TOOL_CALL_VALIDATION,
        "UNEXPECTED_TOOL_CALL": ErrorKind.TOOL_CALL_VALIDATION,
        "TOO_MANY_TOOL_CALLS": ErrorKind.TOOL_CALL_VALIDATION,
        "MISSING_THOUGHT_SIGNATURE": ErrorKind.INVALID_REQUEST,
        "MALFORMED_RESPONSE": ErrorKind.SERVER,
        "PUP_LIMITED_DISABLED": ErrorKind.UNKNOWN,
        **dict.fromkeys(("OTHER", "IMAGE_OTHER", "NO_IMAGE", *VAGUE), ErrorKind.UNKNOWN),
    }
)
"""The words of an answer that failed."""

FINISH_REASONS: Final[Mapping[str, FinishReason]] = MappingProxyType(
    {
        "STOP": FinishReason.STOP,
        "MAX_TOKENS": FinishReason.LENGTH,
        "CONTINUATION": FinishReason.LENGTH,
        **dict.fromkeys(_FILTER_WORDS, FinishReason.CONTENT_FILTER),
    }
)
"""The meaning of the other words. If several mean the same, the first is written."""

COUNTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "prompt_tokens": "promptTokenCount",
        "completion_tokens": "candidatesTokenCount",  # without the thoughts
        "reasoning_tokens": "thoughtsTokenCount",
        "cached_tokens": "cachedContentTokenCount",
        "total_tokens": "totalTokenCount",
    }
)
"""The path of each count in a usage."""

MODALITIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "input_tokens": "promptTokensDetails",
        "output_tokens": "candidatesTokensDetails",
        "cache_read_tokens": "cacheTokensDetails",
    }
)
"""The lists of counts by modality, by what the canonical details end with."""

ERRORS: Final[Mapping[str, ErrorKind]] = MappingProxyType(
    {
        "CANCELLED": ErrorKind.TIMEOUT,
        "UNKNOWN": ErrorKind.UNKNOWN,
        "INVALID_ARGUMENT": ErrorKind.INVALID_REQUEST,
        "DEADLINE_EXCEEDED": ErrorKind.TIMEOUT,
        "NOT_FOUND": ErrorKind.MODEL_UNAVAILABLE,
        "ALREADY_EXISTS": ErrorKind.INVALID_REQUEST,
        "PERMISSION_DENIED": ErrorKind.PERMISSION,
        "RESOURCE_EXHAUSTED": ErrorKind.RATE_LIMIT,
        "FAILED_PRECONDITION": ErrorKind.INVALID_REQUEST,
        "ABORTED": ErrorKind.SERVER,
        "OUT_OF_RANGE": ErrorKind.INVALID_REQUEST,
        "UNIMPLEMENTED": ErrorKind.SERVER,
        "INTERNAL": ErrorKind.SERVER,
        "UNAVAILABLE": ErrorKind.SERVER,
        "DATA_LOSS": ErrorKind.SERVER,
        "UNAUTHENTICATED": ErrorKind.AUTHENTICATION,
    }
)
"""The words in the ``status`` of errors of Google's services, each with its nearest kind. They are in the order of their
numbers, from 1 (``google.rpc.Code``)."""


def part_of(kind: SegmentType, content: str, metadata: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the part of an answer that is a segment of type *kind*, or ``None`` if the API has no such part.

    Calls of the client's own tools are not among them.

    Args:
        kind: the type of the segment.
        content: its content.
        metadata: its metadata.
    """
    signature_field = {"thoughtSignature": metadata["signature"]} if "signature" in metadata else {}
    if kind in (SegmentType.TEXT, SegmentType.REFUSAL):
        return {"text": content, **signature_field}
    if kind is SegmentType.REASONING:
        return {"text": content, "thought": True, **signature_field}
    medium = _MEDIA_BY_ENCODING.get(str(metadata.get("encoding"))) if kind is SegmentType.MEDIA else None
    if medium is not None:
        media_fields = {name: metadata[ours] for name, ours in MEDIA_FIELDS.items() if ours in metadata}
        thought_field = {"thought": True} if metadata.get("thought") else {}
        return {medium: {**media_fields, MEDIA[medium][0]: content}, **thought_field, **signature_field}
    tool_type = str(metadata.get("type"))
    if tool_type not in SERVER_TOOLS:
        return None
    field, is_json = SERVER_TOOLS[tool_type]
    tool_fields = {name: value for name, value in metadata.items() if name not in ("type", "signature")}
    if content:
        tool_fields[field] = load_json(content) if is_json else content
    return {tool_type: tool_fields, **signature_field}


def json_name(name: str) -> str:
    """Return the JSON name of a field by its proto name."""
    return re.sub("_([a-z])", lambda match: match[1].upper(), name)


_TYPES: Final = ("STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL")


def json_schema(schema: Any) -> Any:
    """Return Google's *schema* as JSON Schema: types in lower case, ``nullable`` as one more type."""
    if isinstance(schema, list):
        return [json_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    converted_schema: dict[str, Any] = {}
    for name, value in schema.items():
        key = json_name(name)
        if key == "properties" and isinstance(value, dict):
            converted_schema[key] = {name: json_schema(inner) for name, inner in value.items()}
        elif key in ("items", "anyOf"):
            converted_schema[key] = json_schema(value)
        elif key == "type" and value in _TYPES:
            converted_schema[key] = value.lower()
        else:
            converted_schema[key] = value
    if converted_schema.pop("nullable", False) is True and isinstance(converted_schema.get("type"), str):
        converted_schema["type"] = [converted_schema["type"], "null"]
    return converted_schema
