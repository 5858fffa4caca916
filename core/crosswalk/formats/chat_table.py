"""What clients of Chat Completions, and of legacy Completions, may say.

Facts: OpenAI's reference of ``POST /v1/chat/completions``, the types of its SDK, and the references of other servers.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from crosswalk.errors import ResponseValidationError
from crosswalk.request import ToolDefinition
from crosswalk.text import meant
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


def placed(values: Mapping[str, Any], of: str, rows: tuple[RequestRow, ...], at: str) -> dict[str, Any]:
    """Return those of *values*, the details of an *of* by name, that *rows* have in an object at the path *at*."""
    result: dict[str, Any] = {}
    for row in rows:
        value = values.get(row.place.removeprefix(f"{of}.")) if row.place else None
        written = None if value is None else row.written(value)
        if written is not None:
            put(result, row.path.removeprefix(f"{at}."), written)
    return result


# -------------------------------------------------------------------------- client tools
# The tools that a client runs and a vendor defines, for servers of other vendors, which get functions.
# Facts: OpenAI's pages "Shell", "Local shell", "Apply patch"; Anthropic's "Bash tool", "Text editor tool", "Memory tool".


class ClientTool(NamedTuple):
    """A tool that the client runs.

    Attributes:
        description: its purpose.
        parameters: the JSON Schema of its arguments.
        call: the type of the items that call it, which is its name elsewhere, or ``""`` if the client names it.
        declared: the item of ``tools`` that declares it to a server of its format.
    """

    description: str
    parameters: dict[str, Any]
    call: str = ""
    declared: Mapping[str, Any] = MappingProxyType({})


def _object(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


_TEXT: Final = {"type": "string"}
_WHOLE: Final = {"type": "integer"}
_TEXTS: Final = {"type": "array", "items": _TEXT}
_RANGE: Final = {"type": "array", "items": _WHOLE, "minItems": 2, "maxItems": 2}


def _one_of(*words: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(words)}


CLIENT_TOOLS: Final[Mapping[str, Mapping[str, ClientTool]]] = {
    "messages": {
        "bash": ClientTool(
            "Run a command in a bash session that stays open.",
            _object(command=_TEXT, restart={"type": "boolean"}),
            declared={"type": "bash_20250124", "name": "bash"},
        ),
        "text_editor": ClientTool(
            "View, create and edit text files.",
            _object(
                "command",
                "path",
                command=_one_of("view", "create", "str_replace", "insert"),
                path=_TEXT,
                file_text=_TEXT,
                old_str=_TEXT,
                new_str=_TEXT,
                insert_line=_WHOLE,
                insert_text=_TEXT,
                view_range=_RANGE,
            ),
            declared={"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
        ),
        "memory": ClientTool(
            "Keep notes in files below /memories, which later conversations can read.",
            _object(
                "command",
                command=_one_of("view", "create", "str_replace", "insert", "delete", "rename"),
                path=_TEXT,
                view_range=_RANGE,
                file_text=_TEXT,
                old_str=_TEXT,
                new_str=_TEXT,
                insert_line=_WHOLE,
                insert_text=_TEXT,
                old_path=_TEXT,
                new_path=_TEXT,
            ),
            declared={"type": "memory_20250818", "name": "memory"},
        ),
    },
    "responses": {
        "shell": ClientTool(
            "Run commands in a shell.",
            _object("commands", commands=_TEXTS, timeout_ms=_WHOLE, max_output_length=_WHOLE),
            "shell_call",
            {"type": "shell"},
        ),
        "local_shell": ClientTool(
            "Run a command in a shell.",
            _object(
                "type",
                "command",
                "env",
                type=_one_of("exec"),
                command=_TEXTS,
                env={"type": "object", "additionalProperties": _TEXT},
                working_directory=_TEXT,
                timeout_ms=_WHOLE,
                user=_TEXT,
            ),
            "local_shell_call",
            {"type": "local_shell"},
        ),
        "apply_patch": ClientTool(
            "Create, update or delete a file. A diff has the form of V4A.",
            _object(
                "type",
                "path",
                type=_one_of("create_file", "update_file", "delete_file"),
                path=_TEXT,
                diff=_TEXT,
            ),
            "apply_patch_call",
            {"type": "apply_patch"},
        ),
    },
}
"""The tools of each format, by type without a version."""


def client_tool(kind: str) -> ToolDefinition:
    """Return the tool *kind* that a vendor has defined and you run: ``shell``, ``local_shell`` or ``apply_patch`` of OpenAI,
    ``bash``, ``text_editor`` or ``memory`` of Anthropic.

    Its vendor gets it as its own tool, for which its models are trained, and any other server as a function. You run each
    call, and answer it with ``ChatMessage.tool_result``.

    Raises:
        ResponseValidationError: there is no such tool.
    """
    known = {name: tool for tools in CLIENT_TOOLS.values() for name, tool in tools.items()}
    if kind not in known:
        raise ResponseValidationError(f"there is no tool {kind!r:.60} that clients run{meant(kind, known)}")
    tool = known[kind]
    name = tool.call or tool.declared["name"]
    return ToolDefinition(name, tool.description, tool.parameters, client_tool=kind)


# --------------------------------------------------------------------------------- table


_EFFORTS: Final = {word: word for word in ("none", "minimal", "low", "medium", "high", "xhigh", "max")}
_CHOICES: Final = {word: word for word in ("auto", "none", "required")}


def _read_allowed(choice: Any) -> dict[str, Any]:
    inner = choice["allowed_tools"]
    tools = [{"type": tool["type"], "name": tool[tool["type"]]["name"]} for tool in inner["tools"]]
    return allowed_tools({"mode": inner["mode"], "tools": tools})


def _write_allowed(value: Any) -> dict[str, Any]:
    wanted = allowed_tools(value)
    tools = [{"type": tool["type"], tool["type"]: {"name": tool["name"]}} for tool in wanted["tools"]]
    return {"type": "allowed_tools", "allowed_tools": {"mode": wanted["mode"], "tools": tools}}


_MARK: Final = (
    RequestRow("prompt_cache_breakpoint", "cache.mark", write=lambda _: {"mode": "explicit"}),
    *hint("the lifetimes of other servers are others", "prompt_cache_breakpoint.ttl"),
)
_PARTS: Final = (
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
_MESSAGES: Final = (
    *below("messages[].content[]", *_PARTS),
    RequestRow("messages[].name", "message.name"),
    RequestRow("messages[].refusal", "refusal"),
    RequestRow("messages[].tool_calls", "call"),
    RequestRow("messages[].function_call", "call"),
    *link("messages[].tool_call_id", "messages[].role"),
    *state("messages[].audio", "continuation_token"),
)
_TOOLS: Final = (
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

_SERVERS: Final = (
    RequestRow("temperature", "temperature"),
    RequestRow("top_p", "top_p"),
    RequestRow("max_tokens", "max_tokens"),
    RequestRow("max_completion_tokens", "max_tokens"),
    RequestRow("stop", "stop"),
    RequestRow("seed", "seed"),
    RequestRow("parallel_tool_calls", "parallel_tool_calls"),
    RequestRow("reasoning_effort", "reasoning_effort", words=_EFFORTS),
    RequestRow("tool_choice", "tool_choice", words=_CHOICES),
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
    *_MESSAGES,
    *_TOOLS,
)
"""The rows that servers of this format have in common."""

_OPENAI: Final = (
    *(
        row
        for kind in ("text", "image_url", "input_audio", "file")
        for row in below(f"messages[].content[][{kind}]", *_MARK)
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

_OTHERS: Final = (
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
    *(
        RequestRow(f"messages[].{name}", "reasoning")
        for name in ("reasoning_content", "reasoning", "reasoning_details")
    ),
    *hint("the text is the same without its sources", "messages[].annotations"),
)
"""The rows of servers other than OpenAI's. A client may send each of them to any server of this format."""

_PATHS: Final = ("/chat/completions",)
CHAT: Final = RequestTable("chat", "Chat Completions", _PATHS, (*_SERVERS, *_OPENAI, *_OTHERS))
"""All that a client of Chat Completions may say."""
OPENAI_CHAT: Final = RequestTable("chat", "Chat Completions", _PATHS, (*_SERVERS, *_OPENAI))
"""What OpenAI's own server takes."""
CHAT_SERVER: Final = RequestTable("chat", "Chat Completions", _PATHS, _SERVERS)
"""What servers of Chat Completions take, to which the plugin of one adds rows, or from which it removes some."""

_SHARED: Final = (
    "temperature", "top_p", "top_k", "max_tokens", "stop", "seed", "frequency_penalty", "presence_penalty", "logit_bias",
    "n", "best_of", "user",
)  # fmt: skip
COMPLETIONS: Final = RequestTable(
    "completions",
    "Completions",
    ("/v1/completions",),
    (
        *(RequestRow(name, name) for name in _SHARED),
        *meaning("echo", "logprobs", "suffix"),
        *link("prompt"),
        *state("continuation_token"),
    ),
)
"""All that a client of legacy Completions may say."""


def server_rows(names: Any) -> tuple[RequestRow, ...]:
    """Return the rows for *names*, the paths of options at a server by the options' names."""
    return tuple(RequestRow(path, name) for name, path in names.items() if name in OPTIONS)
