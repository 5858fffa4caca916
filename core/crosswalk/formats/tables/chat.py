"""What clients of Chat Completions, and of legacy Completions, may say.

Facts: OpenAI's reference of ``POST /v1/chat/completions``, the types of its SDK, and the references of other servers.
"""

from __future__ import annotations

from typing import Any, Final

from crosswalk.formats.tables.spellings import allowed_tools
from crosswalk.wire.options import OPTIONS
from crosswalk.wire.rows import RequestTable, Row, below, hint, link, meaning, state

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
    Row("prompt_cache_breakpoint", "cache.mark", write=lambda _: {"mode": "explicit"}),
    *hint("the lifetimes of other servers are others", "prompt_cache_breakpoint.ttl"),
)
_PARTS: Final = (
    *below("[text]", Row("text", "part.text")),
    *below("[refusal]", Row("refusal", "part.text")),
    *below("[image_url]", Row("image_url.url", "part.image"), Row("image_url.detail", "part.detail")),
    *below("[input_audio]", Row("input_audio", "part.audio")),
    *below(
        "[file]",
        Row("file.file_data", "part.file"),
        Row("file.file_id", "part.file_id"),
        Row("file.filename", "part.name"),
    ),
)
_MESSAGES: Final = (
    *below("messages[].content[]", *_PARTS),
    Row("messages[].name", "message.name"),
    Row("messages[].refusal", "refusal"),
    Row("messages[].tool_calls", "call"),
    Row("messages[].function_call", "call"),
    *link("messages[].tool_call_id", "messages[].role"),
    *state("messages[].audio"),
)
_TOOLS: Final = (
    *below(
        "tools[][function].function",
        Row("name", "tool.name"),
        Row("description", "tool.description"),
        Row("parameters", "tool.parameters"),
        Row("strict", "tool.strict"),
    ),
    *below(
        "tools[][custom].custom",
        Row("name", "tool.name"),
        Row("description", "tool.description"),
        Row("format", "tool.input_format"),
    ),
    *below(
        "functions[]",
        Row("name", "tool.name"),
        Row("description", "tool.description"),
        Row("parameters", "tool.parameters"),
    ),
)

_SERVERS: Final = (
    Row("temperature", "temperature"),
    Row("top_p", "top_p"),
    Row("max_tokens", "max_tokens"),
    Row("max_completion_tokens", "max_tokens"),
    Row("stop", "stop"),
    Row("seed", "seed"),
    Row("parallel_tool_calls", "parallel_tool_calls"),
    Row("reasoning_effort", "reasoning_effort", words=_EFFORTS),
    Row("tool_choice", "tool_choice", words=_CHOICES),
    Row("tool_choice", "allowed_tools", read=_read_allowed, write=_write_allowed),
    Row("function_call", "tool_choice", words={"auto": "auto", "none": "none"}),
    Row("response_format", "response_format"),
    *below(
        "response_format[json_schema].json_schema",
        Row("schema", "format.schema"),
        Row("name", "format.name"),
        Row("description", "format.description"),
        Row("strict", "format.strict"),
    ),
    Row("frequency_penalty", "frequency_penalty"),
    Row("presence_penalty", "presence_penalty"),
    Row("logit_bias", "logit_bias"),
    Row("n", "n"),
    Row("logprobs", "logprobs"),
    Row("top_logprobs", "top_logprobs", needs="logprobs"),
    Row("modalities", "modalities"),
    *meaning("audio"),
    Row("web_search_options", "web_search"),
    Row("web_search_options.search_context_size", "hosted.search_context_size"),
    Row(
        "web_search_options.user_location",
        "hosted.user_location",
        read=lambda location: {**location["approximate"]},
        write=lambda location: {"type": "approximate", "approximate": location},
    ),
    Row("user", "user"),
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
    Row("verbosity", "verbosity"),
    Row("prediction", "prediction"),
    Row("moderation", "moderation"),
    Row("safety_identifier", "safety_identifier"),
    Row("metadata", "metadata"),
    Row("store", "store"),
    Row("prompt_cache_key", "prompt_cache_key"),
    Row("prompt_cache_retention", "prompt_cache_retention"),
    Row("prompt_cache_options.mode", "prompt_cache_mode"),
    Row("prompt_cache_options.ttl", "prompt_cache_ttl", words={"30m": "30m"}),
    Row(
        "service_tier",
        "service_tier",
        words={word: word for word in ("auto", "default", "flex", "priority", "scale", "fast")},
    ),
    Row("stream_options.include_obfuscation", "include_obfuscation"),
)
"""The rows of OpenAI's own server."""

_OTHERS: Final = (
    Row("n_predict", "max_tokens"),  # llama.cpp
    Row("top_k", "top_k"),
    Row("repetition_penalty", "repeat_penalty"),
    Row("repeat_penalty", "repeat_penalty"),  # llama.cpp
    Row("min_p", "min_p"),
    *(Row(name, name) for name in ("repeat_last_n", "typical_p", "mirostat", "mirostat_tau", "mirostat_eta")),
    Row("cache_control", "cache_control"),  # OpenRouter
    Row("messages[].content[][text].cache_control", "cache.mark"),
    Row("messages[].content[][text].cache_control.ttl", "cache.ttl"),
    *(
        Row(f"messages[].{name}", "reasoning")
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
    (*(Row(name, name) for name in _SHARED), *meaning("echo", "logprobs", "suffix"), *link("prompt")),
)
"""All that a client of legacy Completions may say."""


def server_rows(names: Any) -> tuple[Row, ...]:
    """Return the rows for *names*, the paths of options at a server by the options' names."""
    return tuple(Row(path, name) for name, path in names.items() if name in OPTIONS)
