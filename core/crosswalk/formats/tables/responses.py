"""What clients of OpenAI's Responses may say.

Facts: OpenAI's reference of "Create a model response" and the types of its SDK; provider document "OpenAI Responses".
"""

from __future__ import annotations

from typing import Any, Final

from crosswalk.formats.tables.spellings import allowed_tools, placed, read_location, write_location
from crosswalk.wire.rows import RequestTable, Row, below, hint, link, meaning, state

_EFFORTS: Final = {word: word for word in ("none", "minimal", "low", "medium", "high", "xhigh", "max")}
_CHOICES: Final = {word: word for word in ("auto", "none", "required")}
_OWN: Final = "only its own server reads it"


def _write_allowed(value: Any) -> dict[str, Any]:
    return {"type": "allowed_tools", **allowed_tools(value)}


_SERVER: Final = below(
    "tools[][mcp]",
    Row("server_label", "mcp.name"),
    Row("server_url", "mcp.url"),
    Row("authorization", "mcp.authorization"),
    Row("headers", "mcp.headers"),
    Row("allowed_tools", "mcp.allowed_tools"),
    Row("require_approval", "mcp.approval"),
)


def _write_servers(servers: Any) -> list[dict[str, Any]]:
    return [{"type": "mcp", **placed(server, "mcp", _SERVER, "tools[][mcp]")} for server in servers]


def _read_compaction(management: Any) -> dict[str, Any]:
    entry = management[0]
    if len(management) != 1 or entry["type"] != "compaction":
        raise LookupError
    return {
        {"compact_threshold": "threshold"}[name]: value for name, value in entry.items() if name != "type"
    }


def _write_compaction(value: Any) -> list[dict[str, Any]]:
    return [
        {
            "type": "compaction",
            **({} if "threshold" not in value else {"compact_threshold": value["threshold"]}),
        }
    ]


_MARK: Final = (
    Row("prompt_cache_breakpoint", "cache.mark", write=lambda _: {"mode": "explicit"}),
    *hint("the lifetimes of other servers are others", "prompt_cache_breakpoint.ttl"),
)
_PARTS: Final = (
    *below("[input_text]", Row("text", "part.text"), *_MARK),
    *below(
        "[input_image]",
        Row("image_url", "part.image"),
        Row("file_id", "part.file_id"),
        Row("detail", "part.detail"),
        *_MARK,
    ),
    *below(
        "[input_file]",
        Row("file_data", "part.file"),
        Row("file_url", "part.file"),
        Row("file_id", "part.file_id"),
        Row("filename", "part.name"),
        Row("detail", "part.detail"),
        *_MARK,
    ),
)
_OUTPUT_PARTS: Final = (
    *below("[output_text]", Row("text", "part.text"), Row("annotations", "citation"), *meaning("logprobs")),
    *below("[refusal]", Row("refusal", "refusal")),
)


def _item(kind: str, *rows: Row) -> tuple[Row, ...]:
    """Return the rows of an item of type *kind*, with those that all items have."""
    return below(
        f"input[][{kind}]", *rows, *link("type", "id", "status", "call_id", "caller", "namespace", "name")
    )


_ITEMS: Final = (
    Row("input", "part.text"),
    Row("instructions", "part.text"),
    *_item(
        "message",
        *below("content[]", *_PARTS, *_OUTPUT_PARTS),
        Row("content", "part.text"),
        *link("role"),
        *hint("it says at which stage of an answer a text was said", "phase"),
    ),
    *_item("function_call", Row("arguments", "call"), *hint("it says how a call was made", "async")),
    *_item("custom_tool_call", Row("input", "call"), *hint("it says how a call was made", "async")),
    *(
        row
        for kind, rows in {
            "computer_call": ("action", "actions", "pending_safety_checks"),
            "local_shell_call": ("action",),
            "shell_call": ("action", "environment"),
            "apply_patch_call": ("operation",),
            "tool_search_call": ("arguments", "execution"),
            "mcp_approval_request": ("arguments", "server_label"),
        }.items()
        for row in _item(kind, *(Row(name, "call") for name in rows))
    ),
    *(
        row
        for kind in ("function_call_output", "custom_tool_call_output")
        for row in _item(kind, *below("output[]", *_PARTS), Row("output", "result"))
    ),
    *(
        row
        for kind in ("computer", "local_shell", "shell", "apply_patch", "program")
        for row in _item(f"{kind}{'' if kind == 'program' else '_call'}_output", Row("", "result"))
    ),
    *_item("tool_search_output", Row("", "result")),
    *_item("mcp_approval_response", Row("", "result"), *link("approval_request_id")),
    *_item("reasoning", Row("", "reasoning")),
    *(
        row
        for kind in (
            *(
                "file_search_call",
                "web_search_call",
                "image_generation_call",
                "code_interpreter_call",
                "mcp_call",
            ),
            *("mcp_list_tools", "program", "x_search_call", "document_finder_call", "file_reader_call"),
        )
        for row in _item(kind, *meaning(""))
    ),
    *_item("additional_tools", *meaning("tools")),
    *_item("configuration_update", *meaning("")),
    *hint(_OWN, "input[][compaction]", "input[][compaction_trigger]"),
    *state("input[][item_reference]"),
)

_OF_TOOLS: Final = (
    Row("defer_loading", "tool.defer_loading"),
    *meaning("allowed_callers", "async"),
)
_LOCATION: Final = (
    Row("user_location", "hosted.user_location", read=read_location, write=write_location),
    Row("search_context_size", "hosted.search_context_size"),
)
_TOOLS: Final = (
    *below(
        "tools[][function]",
        Row("name", "tool.name"),
        Row("description", "tool.description"),
        Row("parameters", "tool.parameters"),
        Row("strict", "tool.strict"),
        Row("output_schema", "tool.output_schema"),
        *_OF_TOOLS,
    ),
    *below(
        "tools[][custom]",
        Row("name", "tool.name"),
        Row("description", "tool.description"),
        Row("format", "tool.input_format"),
        *_OF_TOOLS,
    ),
    *below(
        "tools[][web_search]",
        Row("", "web_search", beside={"type": ("web_search",)}),
        Row("filters.allowed_domains", "hosted.allowed_domains"),
        *_LOCATION,
        *meaning("external_web_access"),
    ),
    *below(
        "tools[][web_search_preview]", Row("", "web_search"), *_LOCATION, *meaning("search_content_types")
    ),
    *below(
        "tools[][code_interpreter]",
        Row("", "code_execution", beside={"type": ("code_interpreter",), "container": ({"type": "auto"},)}),
        *meaning("container", "allowed_callers"),
    ),
    Row("tools[][mcp]", "mcp_servers", write=_write_servers),
    *_SERVER,
    *below(
        "tools[][mcp]",
        *meaning("connector_id", "tunnel_id", "server_description", "defer_loading", "allowed_callers"),
    ),
    *below("tools[][namespace]", Row("description", "tool.description"), *link("name", "tools")),
    *(
        row
        for name in ("shell", "local_shell", "apply_patch")
        for row in below(
            f"tools[][{name}]", Row("", "client_tool"), *meaning("allowed_callers", "environment")
        )
    ),
    *meaning(
        "tools[][file_search]",
        "tools[][computer]",
        "tools[][computer_use_preview]",
        "tools[][programmatic_tool_calling]",
        "tools[][image_generation]",
        "tools[][tool_search]",
    ),
)

_OPTIONS: Final = (
    Row("temperature", "temperature"),
    Row("top_p", "top_p"),
    Row("max_output_tokens", "max_tokens"),
    Row("parallel_tool_calls", "parallel_tool_calls"),
    Row("reasoning.effort", "reasoning_effort", words=_EFFORTS),
    Row("reasoning.summary", "reasoning_summary"),
    *hint("it sets what is shown of the reasoning", "reasoning.generate_summary"),
    *meaning("reasoning.context", "reasoning.mode"),
    Row("tool_choice", "tool_choice", words=_CHOICES),
    Row("tool_choice", "allowed_tools", read=allowed_tools, write=_write_allowed),
    Row("text.format", "response_format"),
    *below(
        "text.format[json_schema]",
        Row("schema", "format.schema"),
        Row("name", "format.name"),
        Row("description", "format.description"),
        Row("strict", "format.strict"),
    ),
    Row("text.verbosity", "verbosity"),
    Row("include[]=message.output_text.logprobs", "logprobs"),
    Row("include[]=reasoning.encrypted_content", "encrypted_reasoning"),
    *hint("it adds to what an answer shows of the server's tools", "include"),
    Row("top_logprobs", "top_logprobs"),
    Row("moderation", "moderation"),
    Row("truncation", "truncation"),
    Row("context_management", "compaction", read=_read_compaction, write=_write_compaction),
    Row("background", "background"),
    Row("user", "user"),
    Row("safety_identifier", "safety_identifier"),
    Row("metadata", "metadata"),
    Row("store", "store"),
    Row("prompt_cache_key", "prompt_cache_key"),
    Row("prompt_cache_retention", "prompt_cache_retention"),
    Row("prompt_cache_options.mode", "prompt_cache_mode"),
    Row("prompt_cache_options.ttl", "prompt_cache_ttl"),
    *hint("it prepares a later request", "prompt_cache_options.prewarm"),
    *hint("it compares the cache of two responses", "prompt_cache_options.comparison_response_id"),
    Row("service_tier", "service_tier"),
    Row("stream_options.include_obfuscation", "include_obfuscation"),
    *meaning("access_programs", "image", "max_tool_calls"),
    *hint("it sets when a response in the background is made", "background_options"),
    *state("conversation", "previous_response_id", "prompt"),
)

RESPONSES: Final = RequestTable(
    "responses",
    "Responses",
    ("/responses",),
    (*_OPTIONS, *_ITEMS, *_TOOLS),
    types={"input": lambda item: "message" if "role" in item else "item_reference"},
)
"""All that a client of Responses may say."""
