"""Tables of the Responses API: its events, items and text parts. Functions for the parts of its requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from crosswalk.types.json import FrozenObject, as_json_object, dump_json
from crosswalk.types.message import ContentPart, FilePart, ImagePart, TextPart, ToolCall
from crosswalk.types.values import FinishReason, SegmentType
from crosswalk.wire.chat import read_file, read_image, read_source
from crosswalk.wire.messages import ENCRYPTED
from crosswalk.wire.options import Fields, placed

__all__ = [
    "ANNOTATIONS",
    "BESIDE",
    "COUNTS",
    "DETAILS",
    "ENCRYPTED",
    "ERRORS",
    "EVENTS",
    "FAMILIES",
    "FINISH_REASONS",
    "ITEMS",
    "LISTS",
    "OPEN_RESPONSES",
    "PARTS",
    "PENDING",
    "REPEATED",
    "REQUIRED",
    "SIGNED",
    "STATUSES",
    "EventRole",
    "ItemRole",
    "WireEvent",
    "WireItem",
    "WirePart",
]


# ------------------------------------------------------------------------------- responses
# Tables of the events, items and parts of the Responses API, with the role of each and the place of its text.
#
# The typed events of :mod:`crosswalk.responses`, their accumulator and the provider plugin all read these tables.
# Source: provider document "OpenAI Responses", sections 2 to 4. Additions of other servers name the server.


class EventRole(StrEnum):
    """The purpose of an event."""

    RESPONSE = "response"
    """It carries the response."""
    ERROR = "error"
    """It is an error."""
    ITEM = "item"
    """It carries an item."""
    PART = "part"
    """It carries a part of an item."""
    TEXT = "text"
    """It writes the text of a part."""
    ANNOTATION = "annotation"
    """It adds an annotation to a text."""
    FIELD = "field"
    """It adds to a field of an item: arguments, code or a command of a call, or the output of a tool."""
    STATUS = "status"
    """It reports the status of an item."""
    PREVIEW = "preview"
    """It carries a partial image."""
    AUDIO = "audio"
    """It carries audio of the response, outside of any item."""
    TRANSCRIPT = "transcript"
    """It carries the transcript of that audio."""
    NOTICE = "notice"
    """It changes nothing in the response."""


class WireEvent(NamedTuple):
    """A type of event.

    Attributes:
        role: its purpose.
        family: its type without the prefix ``response.`` and the last word.
        word: the last word of its type, such as ``added``, ``delta`` or ``done``. For a ``STATUS`` it is the status of the
            item.
        of: the part (``TEXT``), the item (``FIELD``, ``STATUS``, ``PREVIEW``) or the list of parts (``PART``) that the event
            changes. For a ``RESPONSE`` it is the default status. Otherwise it is ``""``.
        leaf: the key of its payload, or ``""`` if it has none.
    """

    role: EventRole
    family: str
    word: str
    of: str = ""
    leaf: str = ""


class WirePart(NamedTuple):
    """A type of text part.

    Attributes:
        item: the type of the item that has the part.
        list: the list of that item with the part, a key of :data:`LISTS`.
        leaf: the key of the text.
        segment: the type of the canonical segment.
    """

    item: str
    list: str
    leaf: str
    segment: SegmentType


LISTS: Final[Mapping[str, str]] = MappingProxyType({"content": "content_index", "summary": "summary_index"})
"""The lists of parts. The value is the key with which an event gives the index in the list."""

PARTS: Final[Mapping[str, WirePart]] = MappingProxyType(
    {
        "output_text": WirePart("message", "content", "text", SegmentType.TEXT),
        "refusal": WirePart("message", "content", "refusal", SegmentType.REFUSAL),
        "reasoning_text": WirePart("reasoning", "content", "text", SegmentType.REASONING),
        "summary_text": WirePart("reasoning", "summary", "text", SegmentType.REASONING),
    }
)
"""The parts of an answer, by type."""


class ItemRole(StrEnum):
    """The purpose of an output item."""

    TEXT = "text"
    """It has parts."""
    CALL = "call"
    """A call of a named tool, for the client to run. The server runs a custom tool that the request did not declare."""
    ACTION = "action"
    """A call of a tool that only its type names, for the client to run. Some items say that the server runs it."""
    SERVER = "server"
    """A call of the server's own tool, or the result of any tool."""
    MEDIA = "media"
    """A generated image."""
    STATE = "state"
    """An item that is stored and sent back unchanged."""


class WireItem(NamedTuple):
    """A type of item.

    Attributes:
        role: its purpose.
        fields: the keys of its arguments or its result, the most important one first. Empty if it has none.
        kind: the JSON type of the value of the first key.
        needs: for a call of a server's own tool, the keys that clients require.
        id: for a call, the key of the id that its result repeats.
    """

    role: ItemRole
    fields: tuple[str, ...] = ()
    kind: type[str | dict[str, Any] | list[Any]] = str
    needs: tuple[str, ...] = ()
    id: str = "call_id"


ITEMS: Final[Mapping[str, WireItem]] = MappingProxyType(
    {
        "message": WireItem(ItemRole.TEXT),
        "reasoning": WireItem(ItemRole.TEXT),
        "function_call": WireItem(ItemRole.CALL, ("arguments",)),
        "custom_tool_call": WireItem(ItemRole.CALL, ("input",)),
        "mcp_approval_request": WireItem(ItemRole.CALL, ("arguments",), id="id"),
        "computer_call": WireItem(ItemRole.ACTION, ("action", "actions", "pending_safety_checks"), dict),
        "local_shell_call": WireItem(ItemRole.ACTION, ("action",), dict),
        "shell_call": WireItem(ItemRole.ACTION, ("action", "environment"), dict),
        "apply_patch_call": WireItem(ItemRole.ACTION, ("operation",), dict),
        "tool_search_call": WireItem(ItemRole.ACTION, ("arguments",), dict),
        "web_search_call": WireItem(ItemRole.SERVER, ("action",), dict, ("id", "status", "action")),
        "x_search_call": WireItem(ItemRole.SERVER, ("arguments",)),  # xAI
        "document_finder_call": WireItem(
            ItemRole.SERVER, ("queries", "collections"), list, ("id", "queries")
        ),
        "file_reader_call": WireItem(
            ItemRole.SERVER, ("file_id", "first_page", "last_page"), needs=("id", "file_id")
        ),
        "file_search_call": WireItem(ItemRole.SERVER, ("queries",), list, ("id", "status", "queries")),
        "code_interpreter_call": WireItem(ItemRole.SERVER, ("code",), str, ("id", "status", "container_id")),
        "mcp_call": WireItem(
            ItemRole.SERVER, ("arguments",), str, ("id", "arguments", "name", "server_label")
        ),
        "program": WireItem(ItemRole.SERVER, ("code",)),
        "mcp_list_tools": WireItem(ItemRole.SERVER, needs=("id", "server_label", "tools")),
        "function_call_output": WireItem(ItemRole.SERVER),
        "custom_tool_call_output": WireItem(ItemRole.SERVER),
        "computer_call_output": WireItem(ItemRole.SERVER),
        "local_shell_call_output": WireItem(ItemRole.SERVER),
        "shell_call_output": WireItem(ItemRole.SERVER),
        "apply_patch_call_output": WireItem(ItemRole.SERVER),
        "tool_search_output": WireItem(ItemRole.SERVER),
        "program_output": WireItem(ItemRole.SERVER),
        "image_generation_call": WireItem(ItemRole.MEDIA, ("result",), needs=("id", "status")),
        "mcp_approval_response": WireItem(ItemRole.STATE),
        "additional_tools": WireItem(ItemRole.STATE),
        "compaction": WireItem(ItemRole.STATE),
    }
)
"""The output items, by type."""

BESIDE: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {"message": ("phase", "phase"), "reasoning": ("encrypted_content", "encrypted")}
)
"""The fields of an item besides its texts that are sent back with it, and the name of each in the segment's metadata."""

SIGNED: Final = "crosswalk:signature:"
"""The beginning of an ``encrypted_content`` that is Claude's signature of reasoning, as a conversion writes it."""

REPEATED: Final = FrozenObject(
    {
        "background": False,
        "frequency_penalty": 0,
        "instructions": None,
        "max_output_tokens": None,
        "max_tool_calls": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "presence_penalty": 0,
        "previous_response_id": None,
        "prompt_cache_key": None,
        "reasoning": None,
        "safety_identifier": None,
        "service_tier": "default",
        "store": False,
        "temperature": 1,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_logprobs": 0,
        "top_p": 1,
        "truncation": "disabled",
    }
)
"""The options of the request that a response must repeat, each with its default (OpenAPI document of Open Responses).

A server that stores responses sets ``store``.
"""

REQUIRED: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "function": {"description": None, "parameters": None, "strict": None},
        "json_schema": {"description": None, "strict": False},
        "reasoning": {"effort": None, "summary": None},
    }
)
"""The fields of a tool, an output format or the reasoning that the request may omit and a response states, with defaults."""

PENDING: Final = ("queued", "in_progress")
"""The statuses of a response in progress."""

FINISH_REASONS: Final[Mapping[str, FinishReason]] = MappingProxyType(
    {
        "completed": FinishReason.STOP,
        "incomplete:max_output_tokens": FinishReason.LENGTH,
        "incomplete:max_messages": FinishReason.LENGTH,
        "incomplete": FinishReason.LENGTH,
        "incomplete:content_filter": FinishReason.CONTENT_FILTER,
        "cancelled": FinishReason.CANCELLED,
        "incomplete:steered": FinishReason.CANCELLED,
        "failed": FinishReason.ERROR,
        **dict.fromkeys(PENDING, FinishReason.LENGTH),  # a body whose response is still in progress
    }
)
"""The meaning of a final status. The reason of an incomplete response follows a colon. If several have one meaning and the
provider sent none of them, the first is written."""

COUNTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "prompt_tokens": "input_tokens",
        "completion_tokens": "output_tokens",
        "total_tokens": "total_tokens",
        "cached_tokens": "input_tokens_details.cached_tokens",
        "cache_write_tokens": "input_tokens_details.cache_write_tokens",
        "reasoning_tokens": "output_tokens_details.reasoning_tokens",
    }
)
"""The path of each count in a usage."""

DETAILS: Final[Mapping[str, str]] = MappingProxyType(
    {
        f"{modality}_{side}_tokens": f"{group}.{modality}_tokens"
        for side, group in (
            ("input", "input_tokens_details"),
            ("output", "output_tokens_details"),
            ("cache_read", "input_tokens_details.cached_tokens_details"),
        )
        for modality in ("text", "audio", "image", "video")
    }
)
"""The path of each detail in a usage."""


_POSITION_FIELDS: Final = {"start_index": int, "end_index": int}
ANNOTATIONS: Final[Mapping[str, Mapping[str, type]]] = MappingProxyType(
    {
        "url_citation": {"url": str, "title": str, **_POSITION_FIELDS},
        "file_citation": {"file_id": str, "filename": str, "index": int},
        "container_file_citation": {"container_id": str, "file_id": str, "filename": str, **_POSITION_FIELDS},
        "file_path": {"file_id": str, "index": int},
    }
)
"""The annotations of a text, by type, each with the fields that clients require."""

ERRORS: Final = frozenset(
    {
        "server_error", "rate_limit_exceeded", "invalid_prompt", "data_residency_mismatch", "bio_policy",
        "misalignment_policy_violation", "image_content_policy_violation", "vector_store_timeout", "invalid_image",
        "invalid_image_format", "invalid_base64_image", "invalid_image_url", "image_too_large", "image_too_small",
        "image_parse_error", "invalid_image_mode", "image_file_too_large", "unsupported_image_media_type",
        "empty_image_file", "failed_to_download_image", "image_file_not_found",
    }
)  # fmt: skip
"""The codes of a failed response. The API allows no others."""

_RESPONSE_STATUSES: Final = {
    "created": "in_progress",
    "queued": "queued",
    "in_progress": "in_progress",
    "completed": "completed",
    "incomplete": "incomplete",
    "failed": "failed",
    "cancelled": "cancelled",
}
_TEXT_PARTS: Final = {
    "output_text": "output_text",
    "refusal": "refusal",
    "reasoning_text": "reasoning_text",
    "reasoning_summary_text": "summary_text",
}
_PART_LISTS: Final = {
    "content_part": "content",
    "reasoning_part": "content",  # vLLM, Amazon Bedrock
    "reasoning_summary_part": "summary",
}
_ITEM_FIELDS: Final = {
    "function_call_arguments": ("function_call", "arguments"),
    "custom_tool_call_input": ("custom_tool_call", "input"),
    "mcp_call_arguments": ("mcp_call", "arguments"),
    "code_interpreter_call_code": ("code_interpreter_call", "code"),
    "apply_patch_call_operation_diff": ("apply_patch_call", "diff"),
    "shell_call_command": ("shell_call", "command"),
    "shell_call_output_content": ("shell_call_output", "output"),
}
STATUSES: Final = {
    "web_search_call": ("in_progress", "searching", "completed", "failed"),
    "x_search_call": ("in_progress", "searching", "completed", "failed"),  # xAI
    "file_search_call": ("in_progress", "searching", "completed", "failed"),
    "document_finder_call": ("in_progress", "searching", "completed", "failed"),
    "file_reader_call": ("in_progress", "completed"),
    "code_interpreter_call": ("in_progress", "interpreting", "completed", "failed"),
    "image_generation_call": ("in_progress", "generating", "completed", "failed"),
    "mcp_call": ("in_progress", "completed", "failed"),
    "mcp_list_tools": ("in_progress", "completed", "failed"),
    "compaction": ("compacting",),
}
"""The statuses that events report of each type of item, in their order."""
_NOTICES: Final = (
    "keepalive",  # undocumented; sent while the model is slow
    "response.audio.done",
    "response.audio.transcript.done",
    "response.steer.accepted",
    "response.steer.pending",
    "response.steer.failed",
)


def _events() -> Iterator[tuple[str, EventRole, str, str]]:
    """Yield each type of event with its role, the part or item that it changes, and the key of its payload."""
    for word, status in _RESPONSE_STATUSES.items():
        yield f"response.{word}", EventRole.RESPONSE, status, "response"
    yield "error", EventRole.ERROR, "", ""
    for word in ("added", "done"):
        yield f"response.output_item.{word}", EventRole.ITEM, "", "item"
        for family, list_name in _PART_LISTS.items():
            yield f"response.{family}.{word}", EventRole.PART, list_name, "part"
    for family, part in _TEXT_PARTS.items():
        yield f"response.{family}.delta", EventRole.TEXT, part, "delta"
        yield f"response.{family}.done", EventRole.TEXT, part, PARTS[part].leaf
    yield "response.output_text.annotation.added", EventRole.ANNOTATION, "output_text", "annotation"
    for family, (item, leaf) in _ITEM_FIELDS.items():
        yield f"response.{family}.delta", EventRole.FIELD, item, "delta"
        yield f"response.{family}.done", EventRole.FIELD, item, leaf
    yield "response.shell_call_command.added", EventRole.FIELD, "shell_call", "command"
    for item, words in STATUSES.items():
        for word in words:
            yield f"response.{item}.{word}", EventRole.STATUS, item, ""
    image_item = "image_generation_call"
    yield f"response.{image_item}.partial_image", EventRole.PREVIEW, image_item, "partial_image_b64"
    yield "response.audio.delta", EventRole.AUDIO, "", "delta"
    yield "response.audio.transcript.delta", EventRole.TRANSCRIPT, "", "delta"
    for type in _NOTICES:
        yield type, EventRole.NOTICE, "", ""


def _event(type: str, role: EventRole, of: str, leaf: str) -> WireEvent:
    family, _, word = type.removeprefix("response.").rpartition(".")
    return WireEvent(role, family, word, of, leaf)


EVENTS: Final[Mapping[str, WireEvent]] = MappingProxyType(
    {type: _event(type, role, of, leaf) for type, role, of, leaf in _events()}
)
"""The events of a stream, by type. An event without a type and with an ``error`` counts as ``error``."""

OPEN_RESPONSES: Final[Mapping[str, str]] = MappingProxyType(
    {f"response.reasoning_text.{word}": f"response.reasoning.{word}" for word in ("delta", "done")}
)
"""The events that have another name in the Open Responses specification, by OpenAI's name."""

FAMILIES: Final[Mapping[tuple[EventRole, str], str]] = MappingProxyType(
    {(event.role, event.of): event.family for event in reversed(list(EVENTS.values()))}
)
"""The family of events for each role and part, item or list. If there are several, it is OpenAI's."""


# ----------------------------------------------------------------------- responses request
# The parts of messages and the calls in a request to the Responses API, read and written.


def read_part(part: Fields) -> ContentPart | None:
    """Return the canonical form of *part*, or ``None`` if it has none. Then the part stays unread."""
    kind = part.need("type", part.text("type"))
    if kind == "input_text":
        with placed(part, "text"):
            return TextPart(part.need("text", part.text("text")))
    if kind == "input_image" and "image_url" in part:
        return read_image(part, "image_url")
    if kind == "input_file" and "file_url" in part:
        return FilePart(url=part.text("file_url"), name=part.text("filename"))
    if kind == "input_file":
        return read_file(part)
    part.leave()
    return None


def input_part(
    part: TextPart | ImagePart | FilePart, url: Callable[[ImagePart | FilePart], str]
) -> dict[str, Any]:
    """Return *part* in the form of the API. *url* returns the URL of an image or a file, or a data URL."""
    if isinstance(part, TextPart):
        return {"type": "input_text", "text": part.text}
    if isinstance(part, ImagePart):
        return {"type": "input_image", "image_url": url(part), "detail": part.detail or "auto"}
    name_field = {"filename": part.name} if part.name else {}
    if part.id is not None:
        return {"type": "input_file", "file_id": part.id, **name_field}
    if part.data is None:
        return {"type": "input_file", "file_url": part.url, **name_field}
    return {"type": "input_file", "file_data": url(part), "filename": part.name or "file"}


def call_item(call: ToolCall) -> dict[str, Any]:
    """Return *call* as an item."""
    kind, name = ("custom_tool_call", "input") if call.is_custom else ("function_call", "arguments")
    return {"type": kind, "call_id": call.id, "name": call.name, name: call.arguments}


_ITEM_KEYS: Final = {"type", "id", "status"}
"""The fields of a result item that are not part of the result."""


def read_output(item: Fields, kind: str) -> str | list[ContentPart]:
    """Return the result of a tool without a name in *item*: its image, its text, or all of its fields as JSON."""
    fields = {name: item.look(name) for name in item if name not in _ITEM_KEYS}
    if kind == "apply_patch_call_output":
        fields["status"] = item.look("status")
    for name in fields:
        item.take(name)
    output = fields.get("output")
    images: list[ContentPart] = []
    if isinstance(output, dict) and isinstance(output.get("image_url"), str):
        with placed(item, "output", "image_url"):
            images = [ImagePart(**read_source(output["image_url"]))]
        del fields["output"]
    if fields.keys() == {"output"} and isinstance(output, str) and as_json_object(output) is None:
        return output
    text = dump_json(fields).decode()
    return [*([TextPart(text)] if fields else []), *images] if images else text
