"""What clients of OpenAI's Responses may say.

Facts: OpenAI's reference of "Create a model response" and the types of its SDK; provider document "OpenAI Responses".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from crosswalk.formats.chat_table import (
    TEXT,
    TEXTS,
    WHOLE,
    ClientTool,
    allowed_tools,
    arguments,
    one_of,
    placed,
    read_location,
    write_location,
)
from crosswalk.wire.options import RequestRow, RequestTable, below, hint, link, meaning, state

_EFFORTS: Final = {word: word for word in ("none", "minimal", "low", "medium", "high", "xhigh", "max")}
_CHOICE_WORDS: Final = {word: word for word in ("auto", "none", "required")}
_OWN_SERVER_REASON: Final = "only its own server reads it"


def _write_allowed(value: Any) -> dict[str, Any]:
    return {"type": "allowed_tools", **allowed_tools(value)}


def _read_names(tools: Any) -> Any:
    """Return the names of *tools* if it is a filter by names alone."""
    return tools["tool_names"] if isinstance(tools, dict) and tools.keys() == {"tool_names"} else tools


_SERVER_ROWS: Final = below(
    "tools[][mcp]",
    RequestRow("server_label", "mcp.name"),
    RequestRow("server_url", "mcp.url"),
    RequestRow("authorization", "mcp.authorization"),
    RequestRow("headers", "mcp.headers"),
    RequestRow("allowed_tools", "mcp.allowed_tools", read=_read_names),
    RequestRow("require_approval", "mcp.approval"),
)


def _write_servers(servers: Any) -> list[dict[str, Any]]:
    return [{"type": "mcp", **placed(server, "mcp", _SERVER_ROWS, "tools[][mcp]")} for server in servers]


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


_MARK_ROWS: Final = (
    RequestRow("prompt_cache_breakpoint", "cache.mark", write=lambda _: {"mode": "explicit"}),
    *hint("the lifetimes of other servers are others", "prompt_cache_breakpoint.ttl"),
)
_PART_ROWS: Final = (
    *below("[input_text]", RequestRow("text", "part.text"), *_MARK_ROWS),
    *below(
        "[input_image]",
        RequestRow("image_url", "part.image"),
        RequestRow("file_id", "part.file_id"),
        RequestRow("detail", "part.detail"),
        *_MARK_ROWS,
    ),
    *below(
        "[input_file]",
        RequestRow("file_data", "part.file"),
        RequestRow("file_url", "part.file"),
        RequestRow("file_id", "part.file_id"),
        RequestRow("filename", "part.name"),
        RequestRow("detail", "part.detail"),
        *_MARK_ROWS,
    ),
)
_OUTPUT_PART_ROWS: Final = (
    *below(
        "[output_text]",
        RequestRow("text", "part.text"),
        RequestRow("annotations", "citation"),
        *meaning("logprobs"),
    ),
    *below("[refusal]", RequestRow("refusal", "refusal")),
)


_CONTAINER_ROWS: Final = (
    *state("[code_interpreter].container", "[shell].environment[container_reference]"),
    *meaning("[code_interpreter].container[auto]"),
)
"""The rows of where tools run: in a container that the server keeps, or in a new one."""


def _item(kind: str, *rows: RequestRow) -> tuple[RequestRow, ...]:
    """Return the rows of an item of type *kind*, with those that all items have."""
    stated_paths = {row.path for row in rows}
    return below(
        f"input[][{kind}]",
        *rows,
        *hint("it says how far an item came", "status"),
        *hint("it says whether the model or a program called", "caller"),
        *hint("it says of which group of tools it is", "namespace"),
        *link(*(name for name in ("type", "id", "call_id", "name") if name not in stated_paths)),
    )


_ITEM_ROWS: Final = (
    RequestRow("input", "part.text"),
    RequestRow("instructions", "part.text"),
    *_item(
        "message",
        *below("content[]", *_PART_ROWS, *_OUTPUT_PART_ROWS),
        RequestRow("content", "part.text"),
        *link("role"),
        *hint("it says at which stage of an answer a text was said", "phase"),
    ),
    *_item("function_call", RequestRow("arguments", "call"), *hint("it says how a call was made", "async")),
    *_item("custom_tool_call", RequestRow("input", "call"), *hint("it says how a call was made", "async")),
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
        for row in _item(kind, *(RequestRow(name, "call") for name in rows))
    ),
    *(
        row
        for kind in ("function_call_output", "custom_tool_call_output")
        for row in _item(kind, *below("output[]", *_PART_ROWS), RequestRow("output", "result"))
    ),
    *(
        row
        for kind in ("computer", "local_shell", "shell", "apply_patch", "program")
        for row in _item(f"{kind}{'' if kind == 'program' else '_call'}_output", RequestRow("", "result"))
    ),
    *_item("tool_search_output", RequestRow("", "result")),
    *_item(
        "mcp_approval_response",
        *hint("it is a label of the item", "id"),
        RequestRow("", "result"),
        *link("approval_request_id"),
    ),
    *_item("reasoning", RequestRow("", "reasoning")),
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
    *_item("additional_tools", *meaning("tools"), *below("tools[]", *_CONTAINER_ROWS)),
    *_item("configuration_update", *meaning("")),
    *hint(_OWN_SERVER_REASON, "input[][compaction]", "input[][compaction_trigger]"),
    *state("input[][item_reference]"),
)

_COMMON_TOOL_ROWS: Final = (
    RequestRow("defer_loading", "tool.defer_loading"),
    *meaning("allowed_callers", "async"),
)
_SEARCH_ROWS: Final = (
    RequestRow("user_location", "hosted.user_location", read=read_location, write=write_location),
    RequestRow("search_context_size", "hosted.search_context_size"),
)
_TOOL_ROWS: Final = (
    *below(
        "tools[][function]",
        RequestRow("name", "tool.name"),
        RequestRow("description", "tool.description"),
        RequestRow("parameters", "tool.parameters"),
        RequestRow("strict", "tool.strict"),
        RequestRow("output_schema", "tool.output_schema"),
        *_COMMON_TOOL_ROWS,
    ),
    *below(
        "tools[][custom]",
        RequestRow("name", "tool.name"),
        RequestRow("description", "tool.description"),
        RequestRow("format", "tool.input_format"),
        *_COMMON_TOOL_ROWS,
    ),
    *below(
        "tools[][web_search]",
        RequestRow("", "web_search", beside={"type": ("web_search",)}),
        RequestRow("filters.allowed_domains", "hosted.allowed_domains"),
        *_SEARCH_ROWS,
        *meaning("external_web_access"),
    ),
    *below(
        "tools[][web_search_preview]",
        RequestRow("", "web_search"),
        *_SEARCH_ROWS,
        *meaning("search_content_types"),
    ),
    *below(
        "tools[][code_interpreter]",
        RequestRow(
            "", "code_execution", beside={"type": ("code_interpreter",), "container": ({"type": "auto"},)}
        ),
        *meaning("allowed_callers"),
    ),
    *below("tools[]", *_CONTAINER_ROWS),
    RequestRow("tools[][mcp]", "mcp_servers", write=_write_servers),
    *_SERVER_ROWS,
    *below(
        "tools[][mcp]",
        *meaning("connector_id", "tunnel_id", "server_description", "defer_loading", "allowed_callers"),
    ),
    *below(
        "tools[][namespace]",
        RequestRow("name", "tool.description"),
        RequestRow("description", "tool.description"),
        *link("tools"),
        *below("tools[]", *_CONTAINER_ROWS),
    ),
    *(
        row
        for name in ("shell", "local_shell", "apply_patch")
        for row in below(
            f"tools[][{name}]", RequestRow("", "client_tool"), *meaning("allowed_callers", "environment")
        )
    ),
    *below(
        "tools[][file_search]",
        RequestRow("", "file_search", beside={"type": ("file_search",)}),
        RequestRow("vector_store_ids", "hosted.file_store_ids"),
        RequestRow("max_num_results", "hosted.max_results"),
        *meaning("filters", "ranking_options"),
    ),
    *below(
        "tools[][image_generation]",
        RequestRow("", "image_generation", beside={"type": ("image_generation",)}),
        *(RequestRow(name, f"hosted.{name}") for name in ("size", "quality", "background", "output_format")),
    ),
    *meaning(
        "tools[][computer]",
        "tools[][computer_use_preview]",
        "tools[][programmatic_tool_calling]",
        "tools[][tool_search]",
    ),
)

_OPTION_ROWS: Final = (
    RequestRow("temperature", "temperature"),
    RequestRow("top_p", "top_p"),
    RequestRow("max_output_tokens", "max_tokens"),
    RequestRow("parallel_tool_calls", "parallel_tool_calls"),
    RequestRow("reasoning.effort", "reasoning_effort", words=_EFFORTS),
    RequestRow("reasoning.summary", "reasoning_summary"),
    *hint("it sets what is shown of the reasoning", "reasoning.generate_summary"),
    *meaning("reasoning.context", "reasoning.mode"),
    RequestRow("tool_choice", "tool_choice", words=_CHOICE_WORDS, types=(str, dict)),
    RequestRow("tool_choice", "allowed_tools", read=allowed_tools, write=_write_allowed),
    RequestRow("text.format", "response_format"),
    *below(
        "text.format[json_schema]",
        RequestRow("schema", "format.schema"),
        RequestRow("name", "format.name"),
        RequestRow("description", "format.description"),
        RequestRow("strict", "format.strict"),
    ),
    RequestRow("text.verbosity", "verbosity"),
    RequestRow("include[]=message.output_text.logprobs", "logprobs"),
    RequestRow("include[]=reasoning.encrypted_content", "encrypted_reasoning"),
    *hint("it adds to what an answer shows of the server's tools", "include"),
    RequestRow("top_logprobs", "top_logprobs", types=(int,)),
    RequestRow("moderation", "moderation"),
    RequestRow("truncation", "truncation", types=(str,)),
    RequestRow("context_management", "compaction", read=_read_compaction, write=_write_compaction),
    RequestRow("background", "background"),
    RequestRow("user", "user"),
    RequestRow("safety_identifier", "safety_identifier", types=(str,)),
    RequestRow("metadata", "metadata", types=(dict,)),
    RequestRow("store", "store"),
    RequestRow("prompt_cache_key", "prompt_cache_key", types=(str,)),
    RequestRow("prompt_cache_retention", "prompt_cache_retention"),
    RequestRow("prompt_cache_options.mode", "prompt_cache_mode"),
    RequestRow("prompt_cache_options.ttl", "prompt_cache_ttl"),
    *hint("it prepares a later request", "prompt_cache_options.prewarm"),
    *hint("it compares the cache of two responses", "prompt_cache_options.comparison_response_id"),
    RequestRow("service_tier", "service_tier", types=(str,)),
    RequestRow("stream_options.include_obfuscation", "include_obfuscation"),
    *meaning("access_programs", "image"),
    *meaning("max_tool_calls", types=(int,)),
    *hint("it sets when a response in the background is made", "background_options"),
    RequestRow("conversation", "conversation"),
    RequestRow("previous_response_id", "previous_response_id"),
    *state("prompt", "continuation_token"),
)

# OpenAI's pages "Shell", "Local shell", "Apply patch".
CLIENT_TOOLS: Final[Mapping[str, ClientTool]] = {
    "shell": ClientTool(
        "Run commands in a shell.",
        arguments("commands", commands=TEXTS, timeout_ms=WHOLE, max_output_length=WHOLE),
        "shell_call",
        {"type": "shell"},
        "action",
    ),
    "local_shell": ClientTool(
        "Run a command in a shell.",
        arguments(
            "type",
            "command",
            "env",
            type=one_of("exec"),
            command=TEXTS,
            env={"type": "object", "additionalProperties": TEXT},
            working_directory=TEXT,
            timeout_ms=WHOLE,
            user=TEXT,
        ),
        "local_shell_call",
        {"type": "local_shell"},
        "action",
    ),
    "apply_patch": ClientTool(
        "Create, update or delete a file. A diff has the form of V4A.",
        arguments(
            "type",
            "path",
            type=one_of("create_file", "update_file", "delete_file"),
            path=TEXT,
            diff=TEXT,
        ),
        "apply_patch_call",
        {"type": "apply_patch"},
        "operation",
    ),
}
"""The tools that a client runs, by type."""

RESPONSES: Final = RequestTable(
    "responses",
    "Responses",
    ("/responses",),
    (*_OPTION_ROWS, *_ITEM_ROWS, *_TOOL_ROWS),
    types={"input": lambda item: "message" if "role" in item else "item_reference"},
)
"""All that a client of Responses may say."""
