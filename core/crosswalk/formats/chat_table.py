"""What clients of Chat Completions, and of legacy Completions, may say.

Facts: OpenAI's reference of ``POST /v1/chat/completions``, the types of its SDK, and the references of other servers.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from crosswalk.wire.options import OPTIONS, RequestRow, RequestTable, below, hint, link, meaning, put, state

# -------------------------------------------------------------------------------- values
# Canonical values that are objects, and the functions that several tables read and write them with. A function that
# finds something else raises ``LookupError``, ``TypeError`` or ``AttributeError``, as an access to it does.


_MODES: Final = ("auto", "required")
_NAMED_KINDS: Final = ("function", "custom")


def allowed_tools(value: Any) -> dict[str, Any]:
    """Return *value* as the option ``allowed_tools``: ``{"mode": …, "tools": [{"type": "function", "name": …}]}``."""
    tools = [{"type": tool["type"], "name": tool["name"]} for tool in value["tools"]]
    if value["mode"] not in _MODES or not all(
        tool["type"] in _NAMED_KINDS and isinstance(tool["name"], str) for tool in tools
    ):
        raise LookupError
    return {"mode": value["mode"], "tools": tools}


def read_location(location: Any) -> dict[str, Any]:
    """Return the place of a searcher without its type."""
    if location.get("type", "approximate") != "approximate":
        raise LookupError
    return {name: value for name, value in location.items() if name != "type"}


def write_location(location: Any) -> dict[str, Any]:
    """Return the place of a searcher with its type."""
    return {"type": "approximate", **location}


def placed(values: Mapping[str, Any], prefix: str, rows: tuple[RequestRow, ...], path: str) -> dict[str, Any]:
    """Return those of *values*, the details of an *prefix* by name, that *rows* have in an object at the path *path*."""
    placed_fields: dict[str, Any] = {}
    for row in rows:
        value = values.get(row.place.removeprefix(f"{prefix}.")) if row.place else None
        wire_value = None if value is None else row.written(value)
        if wire_value is not None:
            put(placed_fields, row.path.removeprefix(f"{path}."), wire_value)
    return placed_fields


# -------------------------------------------------------------------------- client tools
# The tools that a client runs and a vendor defines, for servers of other vendors, which get functions.
# Each table has its own.


class ClientTool(NamedTuple):
    """A tool that the client runs.

    Attributes:
        description: its purpose.
        parameters: the JSON Schema of its arguments.
        call: the type of the items that call it, which is its name elsewhere, or ``""`` if the client names it.
        declared: the item of ``tools`` that declares it to a server of its format.
        inside: the field of such a call that holds the arguments, or ``""`` if the call is an ordinary one.
    """

    description: str
    parameters: dict[str, Any]
    call: str = ""
    declared: Mapping[str, Any] = MappingProxyType({})
    inside: str = ""


def arguments(*required: str, **properties: Any) -> dict[str, Any]:
    """Return the schema of arguments with these *properties*, of which some are *required*."""
    return {"type": "object", "properties": properties, "required": list(required)}


TEXT: Final = {"type": "string"}
WHOLE: Final = {"type": "integer"}
TEXTS: Final = {"type": "array", "items": TEXT}


def one_of(*words: str) -> dict[str, Any]:
    """Return the schema of one of *words*."""
    return {"type": "string", "enum": list(words)}


# --------------------------------------------------------------------------------- table


_EFFORTS: Final = {word: word for word in ("none", "minimal", "low", "medium", "high", "xhigh", "max")}
_CHOICE_WORDS: Final = {word: word for word in ("auto", "none", "required")}


def _read_allowed(choice: Any) -> dict[str, Any]:
    choice_fields = choice["allowed_tools"]
    tools = [{"type": tool["type"], "name": tool[tool["type"]]["name"]} for tool in choice_fields["tools"]]
    return allowed_tools({"mode": choice_fields["mode"], "tools": tools})


def _write_allowed(value: Any) -> dict[str, Any]:
    canonical_choice = allowed_tools(value)
    tools = [
        {"type": tool["type"], tool["type"]: {"name": tool["name"]}} for tool in canonical_choice["tools"]
    ]
    return {"type": "allowed_tools", "allowed_tools": {"mode": canonical_choice["mode"], "tools": tools}}


_MARK_ROWS: Final = (
    RequestRow("prompt_cache_breakpoint", "cache.mark", write=lambda _: {"mode": "explicit"}),
    *hint("the lifetimes of other servers are others", "prompt_cache_breakpoint.ttl"),
)
_PART_ROWS: Final = (
    *below("[text]", RequestRow("text", "part.text")),
    *below("[refusal]", RequestRow("refusal", "part.text")),
    *below(
        "[image_url]",
        RequestRow("image_url.url", "part.image"),
        RequestRow("image_url.detail", "part.detail"),
    ),
    *below("[input_audio]", RequestRow("input_audio", "part.audio")),
    *below(
        "[file]",
        RequestRow("file.file_data", "part.file"),
        RequestRow("file.file_id", "part.file_id"),
        RequestRow("file.filename", "part.name"),
    ),
)
VIDEO: Final = RequestRow("messages[].content[][video_url].video_url.url", "part.video")
"""The row of videos, which vLLM and OpenRouter take."""
_MESSAGE_ROWS: Final = (
    *below("messages[].content[]", *_PART_ROWS),
    RequestRow("messages[].name", "message.name"),
    RequestRow("messages[].refusal", "refusal"),
    RequestRow("messages[].tool_calls", "call"),
    RequestRow("messages[].function_call", "call"),
    *link("messages[].tool_call_id", "messages[].role"),
    *state("messages[].audio", "continuation_token"),
)
_TOOL_ROWS: Final = (
    *below(
        "tools[][function].function",
        RequestRow("name", "tool.name"),
        RequestRow("description", "tool.description"),
        RequestRow("parameters", "tool.parameters"),
        RequestRow("strict", "tool.strict"),
    ),
    *below(
        "tools[][custom].custom",
        RequestRow("name", "tool.name"),
        RequestRow("description", "tool.description"),
        RequestRow("format", "tool.input_format"),
    ),
    *below(
        "functions[]",
        RequestRow("name", "tool.name"),
        RequestRow("description", "tool.description"),
        RequestRow("parameters", "tool.parameters"),
    ),
)

_COMMON_ROWS: Final = (
    RequestRow("temperature", "temperature"),
    RequestRow("top_p", "top_p"),
    RequestRow("max_tokens", "max_tokens"),
    RequestRow("max_completion_tokens", "max_tokens"),
    RequestRow("stop", "stop"),
    RequestRow("seed", "seed"),
    RequestRow("parallel_tool_calls", "parallel_tool_calls"),
    RequestRow("reasoning_effort", "reasoning_effort", words=_EFFORTS),
    RequestRow("tool_choice", "tool_choice", words=_CHOICE_WORDS),
    RequestRow("tool_choice", "allowed_tools", read=_read_allowed, write=_write_allowed),
    RequestRow("function_call", "tool_choice", words={"auto": "auto", "none": "none"}),
    RequestRow("response_format", "response_format"),
    *below(
        "response_format[json_schema].json_schema",
        RequestRow("schema", "format.schema"),
        RequestRow("name", "format.name"),
        RequestRow("description", "format.description"),
        RequestRow("strict", "format.strict"),
    ),
    RequestRow("frequency_penalty", "frequency_penalty"),
    RequestRow("presence_penalty", "presence_penalty"),
    RequestRow("logit_bias", "logit_bias"),
    RequestRow("n", "n"),
    RequestRow("logprobs", "logprobs"),
    RequestRow("top_logprobs", "top_logprobs", needs="logprobs"),
    RequestRow("modalities", "modalities"),
    RequestRow("audio", "audio"),
    RequestRow("web_search_options", "web_search"),
    RequestRow("web_search_options.search_context_size", "hosted.search_context_size"),
    RequestRow(
        "web_search_options.user_location",
        "hosted.user_location",
        read=lambda location: {**location["approximate"]},
        write=lambda location: {"type": "approximate", "approximate": location},
    ),
    RequestRow("user", "user"),
    *_MESSAGE_ROWS,
    *_TOOL_ROWS,
)
"""The rows that servers of this format have in common."""

_OPENAI_ROWS: Final = (
    *(
        row
        for kind in ("text", "image_url", "input_audio", "file")
        for row in below(f"messages[].content[][{kind}]", *_MARK_ROWS)
    ),
    RequestRow("verbosity", "verbosity"),
    RequestRow("prediction", "prediction"),
    RequestRow("moderation", "moderation"),
    RequestRow("safety_identifier", "safety_identifier"),
    RequestRow("metadata", "metadata"),
    RequestRow("store", "store"),
    RequestRow("prompt_cache_key", "prompt_cache_key"),
    RequestRow("prompt_cache_retention", "prompt_cache_retention"),
    RequestRow("prompt_cache_options.mode", "prompt_cache_mode"),
    RequestRow("prompt_cache_options.ttl", "prompt_cache_ttl", words={"30m": "30m"}),
    RequestRow(
        "service_tier",
        "service_tier",
        words={word: word for word in ("auto", "default", "flex", "priority", "scale", "fast")},
    ),
    RequestRow("stream_options.include_obfuscation", "include_obfuscation"),
)
"""The rows of OpenAI's own server."""

_OTHER_ROWS: Final = (
    RequestRow("n_predict", "max_tokens"),  # llama.cpp
    RequestRow("top_k", "top_k"),
    RequestRow("repetition_penalty", "repeat_penalty"),
    RequestRow("repeat_penalty", "repeat_penalty"),  # llama.cpp
    RequestRow("min_p", "min_p"),
    *(
        RequestRow(name, name)
        for name in ("repeat_last_n", "typical_p", "mirostat", "mirostat_tau", "mirostat_eta")
    ),
    RequestRow("cache_control", "cache_control"),  # OpenRouter
    RequestRow("messages[].content[][text].cache_control", "cache.mark"),
    RequestRow("messages[].content[][text].cache_control.ttl", "cache.ttl"),
    VIDEO,
    *below(
        "messages[].content[]",
        RequestRow("[audio_url].audio_url.url", "part.audio"),  # vLLM
        RequestRow("[document_url].document_url", "part.file"),  # Mistral
        RequestRow("[document_url].document_name", "part.name"),
        RequestRow("[file].file_id", "part.file_id"),
        RequestRow("[thinking]", "reasoning"),
        RequestRow("[reference]", "citation"),
    ),
    *link("messages[].prefix"),  # of an answer to continue
    *(
        RequestRow(f"messages[].{name}", "reasoning")
        for name in ("reasoning_content", "reasoning", "reasoning_details")
    ),
    *hint("the text is the same without its sources", "messages[].annotations"),
)
"""The rows of servers other than OpenAI's. A client may send each of them to any server of this format."""

_PATHS: Final = ("/chat/completions",)
CHAT: Final = RequestTable("chat", "Chat Completions", _PATHS, (*_COMMON_ROWS, *_OPENAI_ROWS, *_OTHER_ROWS))
"""All that a client of Chat Completions may say."""
OPENAI_CHAT: Final = RequestTable("chat", "Chat Completions", _PATHS, (*_COMMON_ROWS, *_OPENAI_ROWS))
"""What OpenAI's own server takes."""
CHAT_SERVER: Final = RequestTable("chat", "Chat Completions", _PATHS, _COMMON_ROWS).with_rows(
    without=("allowed_tools", "part.file", "part.file_id", "part.name")
)
"""What servers of Chat Completions take, to which the plugin of one adds rows, or from which it removes some.

Files and a choice among some tools are OpenAI's own: the types of vLLM, SGLang, llama.cpp, Groq, Together, Fireworks and
Perplexity do not have them.
"""

_SHARED_OPTIONS: Final = (
    "temperature", "top_p", "top_k", "max_tokens", "stop", "seed", "frequency_penalty", "presence_penalty", "logit_bias",
    "n", "best_of", "user",
)  # fmt: skip
COMPLETIONS: Final = RequestTable(
    "completions",
    "Completions",
    ("/v1/completions",),
    (
        *(RequestRow(name, name) for name in _SHARED_OPTIONS),
        *meaning("echo", "logprobs", "suffix"),
        *link("prompt"),
        *state("continuation_token"),
    ),
)
"""All that a client of legacy Completions may say."""


def server_rows(paths_by_option: Any) -> tuple[RequestRow, ...]:
    """Return the rows for *paths_by_option*, the paths of options at a server by the options' names."""
    return tuple(RequestRow(path, name) for name, path in paths_by_option.items() if name in OPTIONS)
