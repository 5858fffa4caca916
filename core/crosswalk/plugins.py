"""Everything that the author of a provider plugin needs, in one module; a plugin imports nothing else of Crosswalk.

A plugin is an object with two to four of the hooks, each marked :data:`hookimpl`, registered under the entry-point
group ``crosswalk.providers``. Its hooks take from an event what they understand (``take_…``, ``accept_…``); what they leave
reaches ``metadata.extensions``. :data:`API` is the version of this module and of the hooks: while it stays, names stay and
signatures grow by keywords alone. A plugin says in ``ProviderInfo(api=…)`` which one it was written for.

What requests are made of (``ChatRequest``, ``HTTPRequest`` and their kin) is loaded when it is first used: reading answers
does not need it. Import it where it is used, in ``build_request``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from crosswalk.errors import (
    ConfigurationError,
    CrosswalkError,
    ErrorInfo,
    ErrorKind,
    FramingError,
    IncompleteStreamError,
    InvalidJSONError,
    LineTooLongError,
    MappingError,
    StreamTooLargeError,
    TrailingContentError,
    UnknownEventError,
    UnknownFinishReasonError,
    WireTypeError,
)
from crosswalk.mapping.blocks import Block, Blocks, Texts
from crosswalk.mapping.choices import Echo, part_of
from crosswalk.mapping.dialects import Dialect, DialectFamily, event_type, unknown_event
from crosswalk.mapping.ending import take_end
from crosswalk.mapping.failures import classify, error_delta, error_info, refined, take_error
from crosswalk.mapping.logprobs import accept_legacy_logprobs, accept_logprobs, logprob_of
from crosswalk.mapping.openai_chat import (
    OpenAIChatDialect,
    accept_count_at,
    take_arguments,
    take_text,
)
from crosswalk.mapping.times import look_at_time
from crosswalk.mapping.totals import Totals
from crosswalk.plugin import API, Access, MappingState, ProviderInfo, Recognition, hookimpl
from crosswalk.plugin.take import (
    accept_array,
    accept_boolean,
    accept_count,
    accept_integer,
    accept_number,
    accept_object,
    accept_objects,
    accept_string,
    leave_mistyped,
    look_at,
    look_at_count,
    require_object,
    take_array,
    take_boolean,
    take_count,
    take_integer,
    take_number,
    take_object,
    take_objects,
    take_same,
    take_string,
    take_strings,
    take_whole,
    wrong_type,
)
from crosswalk.types import (
    Annotation,
    AudioPart,
    ChatMessage,
    ChatResponse,
    CitationRef,
    ContentFilterCategory,
    ContentFilterResult,
    ContentFilterSeverity,
    ContentPart,
    FilePart,
    FinishReason,
    ImagePart,
    Provenance,
    ResponseDelta,
    Role,
    SafetyAnnotation,
    Segment,
    SegmentType,
    TextPart,
    TokenLogprob,
    ToolCall,
    ToolCallDelta,
    UsageInfo,
    thaw,
)
from crosswalk.types.json import dump_json, load_json
from crosswalk.types.merge import same_json
from crosswalk.wire import Decoder, Frame, Limits, messages as messages_wire, responses as responses_wire
from crosswalk.wire.framing import PushDecoder

if TYPE_CHECKING:
    from crosswalk.service import (
        ChatRequest,
        Drops,
        HTTPRequest,
        NamedTool,
        OpenAIChatStyle,
        ReasoningEffort,
        ResponseFormat,
        ToolChoice,
        ToolDefinition,
        Turn,
        UnsupportedRequestError,
        alternating,
        arguments_object,
        as_json_object,
        build_openai_chat_request,
        content_parts,
        is_of,
        media_type_of,
        message_of,
        openai_tool,
        options_of,
        reasoning_of,
        segments_of,
        system_text,
        tool_fields,
        tool_names,
        unsupported_part,
    )

__all__ = [
    "API",
    "Access",
    "Annotation",
    "AudioPart",
    "Block",
    "Blocks",
    "ChatMessage",
    "ChatRequest",
    "ChatResponse",
    "CitationRef",
    "ConfigurationError",
    "ContentFilterCategory",
    "ContentFilterResult",
    "ContentFilterSeverity",
    "ContentPart",
    "CrosswalkError",
    "Decoder",
    "Dialect",
    "DialectFamily",
    "Drops",
    "Echo",
    "ErrorInfo",
    "ErrorKind",
    "FilePart",
    "FinishReason",
    "Frame",
    "FramingError",
    "HTTPRequest",
    "ImagePart",
    "IncompleteStreamError",
    "InvalidJSONError",
    "Limits",
    "LineTooLongError",
    "MappingError",
    "MappingState",
    "NamedTool",
    "OpenAIChatDialect",
    "OpenAIChatStyle",
    "Provenance",
    "ProviderInfo",
    "PushDecoder",
    "ReasoningEffort",
    "Recognition",
    "ResponseDelta",
    "ResponseFormat",
    "Role",
    "SafetyAnnotation",
    "Segment",
    "SegmentType",
    "StreamTooLargeError",
    "TextPart",
    "Texts",
    "TokenLogprob",
    "ToolCall",
    "ToolCallDelta",
    "ToolChoice",
    "ToolDefinition",
    "Totals",
    "TrailingContentError",
    "Turn",
    "UnknownEventError",
    "UnknownFinishReasonError",
    "UnsupportedRequestError",
    "UsageInfo",
    "WireTypeError",
    "accept_array",
    "accept_boolean",
    "accept_count",
    "accept_count_at",
    "accept_integer",
    "accept_legacy_logprobs",
    "accept_logprobs",
    "accept_number",
    "accept_object",
    "accept_objects",
    "accept_string",
    "alternating",
    "arguments_object",
    "as_json_object",
    "build_openai_chat_request",
    "classify",
    "content_parts",
    "dump_json",
    "error_delta",
    "error_info",
    "event_type",
    "hookimpl",
    "is_of",
    "leave_mistyped",
    "load_json",
    "logprob_of",
    "look_at",
    "look_at_count",
    "look_at_time",
    "media_type_of",
    "message_of",
    "messages_wire",
    "openai_tool",
    "options_of",
    "part_of",
    "reasoning_of",
    "refined",
    "require_object",
    "responses_wire",
    "same_json",
    "segments_of",
    "system_text",
    "take_arguments",
    "take_array",
    "take_boolean",
    "take_count",
    "take_end",
    "take_error",
    "take_integer",
    "take_number",
    "take_object",
    "take_objects",
    "take_same",
    "take_string",
    "take_strings",
    "take_text",
    "take_whole",
    "thaw",
    "tool_fields",
    "tool_names",
    "unknown_event",
    "unsupported_part",
    "wrong_type",
]


if not TYPE_CHECKING:  # pragma: no branch; else every misspelt name would have a type

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module("crosswalk.service"), name)
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
