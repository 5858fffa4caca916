"""What clients of Anthropic's Messages may say.

Facts: Anthropic's reference of "Create a Message" and the types of its SDK; provider document "Anthropic Messages".
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from crosswalk.formats.chat_table import (
    TEXT,
    WHOLE,
    ClientTool,
    arguments,
    one_of,
    placed,
    read_location,
    write_location,
)
from crosswalk.request import NO_ANSWER
from crosswalk.wire.messages import ENCRYPTED, foreign_searches, without_foreign_citations
from crosswalk.wire.options import RequestRow, RequestTable, below, hint, link, meaning, state

_EFFORTS: Final = {word: word for word in ("low", "medium", "high", "xhigh", "max")}
_MARK_ROW: Final = RequestRow("cache_control", "cache.mark", write=lambda mark: {"type": "ephemeral", **mark})
_CITATION_ROWS: Final = (
    RequestRow("citations.enabled", "part.citations"),
    RequestRow("citations", "part.citations"),
)


def _parts(path: str) -> tuple[RequestRow, ...]:
    """Return the rows of the blocks of a list at *path*, which the user, the system or a tool's result may hold."""
    return below(
        path,
        *below("[text]", RequestRow("text", "part.text"), RequestRow("citations", "citation"), _MARK_ROW),
        *below(
            "[image]",
            RequestRow("source", "part.image"),
            RequestRow("source[file]", "part.file_id"),
            _MARK_ROW,
        ),
        *hint("it sets how a picture is fitted to the model", "[image].transformations"),
        *below(
            "[document]",
            RequestRow("source", "part.file"),
            RequestRow("source[file]", "part.file_id"),
            RequestRow("source[text]", "part.document"),
            RequestRow("source[content]", "part.document"),
            RequestRow("title", "part.name"),
            RequestRow("context", "part.context"),
            *_CITATION_ROWS,
            _MARK_ROW,
        ),
        *below("[search_result]", RequestRow("content", "part.search_result"), *_CITATION_ROWS, _MARK_ROW),
        *below(
            "[search_result]",
            RequestRow("title", "part.search_result"),
            RequestRow("source", "part.search_result"),
        ),
        *below("[tool_reference]", *meaning("tool_name"), _MARK_ROW),
        *below("[browser_state]", *meaning(""), _MARK_ROW),
        *below("[container_upload]", RequestRow("", "part.file_id"), _MARK_ROW),
        *below("[tool_addition]", RequestRow("tool", "message.tool_addition"), _MARK_ROW),
        *below("[tool_removal]", RequestRow("tool", "message.tool_removal"), _MARK_ROW),
        *meaning("[mcp_tool_listing]"),
    )


_CONTENT_PATH: Final = "messages[].content[]"
_MESSAGE_ROWS: Final = (
    *below("messages[]", RequestRow("content", "part.text"), *link("role")),
    *hint("it is a label of a turn for the server's own tools", "messages[].clear_at"),
    *meaning("messages[].output_config"),
    *_parts(_CONTENT_PATH),
    *_parts("system[]"),
    *below(
        f"{_CONTENT_PATH}[tool_result]",
        *_parts("content[]"),
        RequestRow("content", "result"),
        RequestRow("is_error", "result.is_error"),
        _MARK_ROW,
        *link("tool_use_id"),
        *hint("it says of which group of tools it is", "toolset_name"),
    ),
    *below(
        f"{_CONTENT_PATH}[tool_use]",
        RequestRow("input", "call"),
        _MARK_ROW,
        *link("id", "name", "caller", "toolset_name"),
    ),
    *(RequestRow(f"{_CONTENT_PATH}[{kind}]", "reasoning") for kind in ("thinking", "redacted_thinking")),
    *hint("only its own server reads it", f"{_CONTENT_PATH}[compaction]", f"{_CONTENT_PATH}[fallback]"),
    *meaning(f"{_CONTENT_PATH}[server_tool_use]", f"{_CONTENT_PATH}[mcp_tool_use]"),
    *(
        RequestRow(f"{_CONTENT_PATH}[{name}_tool_result]")
        for name in (
            *("web_search", "web_fetch", "advisor", "code_execution", "bash_code_execution"),
            *("text_editor_code_execution", "tool_search", "mcp"),
        )
    ),
    *hint("a cache mark", f"{_CONTENT_PATH}[server_tool_use].cache_control"),
)


def _names(tools: Any) -> list[str] | None:
    return None if isinstance(tools, Mapping) else [*tools]  # a filter has no place here


_SERVER_ROWS: Final = below(
    "mcp_servers[]",
    RequestRow("name", "mcp.name"),
    RequestRow("url", "mcp.url"),
    RequestRow("authorization_token", "mcp.authorization"),
    RequestRow("tool_configuration.allowed_tools", "mcp.allowed_tools", write=_names),
    *link("type"),
)


def _write_servers(servers: Any) -> list[dict[str, Any]]:
    return [{"type": "url", **placed(server, "mcp", _SERVER_ROWS, "mcp_servers[]")} for server in servers]


_OF_TOOLSET: Final = {"type", "mcp_server_name", "default_config", "configs", "cache_control"}


def says_toolset(server: dict[str, Any], toolset: dict[str, Any]) -> bool:
    """Return whether *server*, as it is or with a list of its tools, says what *toolset* says."""
    default, configs = toolset.get("default_config") or {}, toolset.get("configs") or {}
    each = [default, *configs.values()] if isinstance(configs, dict) else [configs]
    is_known = all(isinstance(one, dict) and one.keys() <= {"enabled", "defer_loading"} for one in each)
    if not is_known or "allowed_tools" in server or toolset.keys() - _OF_TOOLSET:
        return False
    is_on = default.get("enabled") is not False
    enabled = [name for name, one in configs.items() if one.get("enabled", is_on)]
    if is_on:
        return len(enabled) == len(configs)
    if enabled:
        server["allowed_tools"] = enabled
    return bool(enabled)


_COMPACT_TYPE: Final = "compact_20260112"


def _read_compaction(management: Any) -> dict[str, Any]:
    edit = management["edits"][0]
    if len(management["edits"]) != 1 or edit["type"] != _COMPACT_TYPE or edit.keys() - {"type", "trigger"}:
        raise LookupError
    trigger = edit.get("trigger")
    return {} if trigger is None else {"threshold": {"input_tokens": trigger["value"]}[trigger["type"]]}


def _write_compaction(value: Any) -> dict[str, Any]:
    threshold = value.get("threshold")
    trigger = {} if threshold is None else {"trigger": {"type": "input_tokens", "value": threshold}}
    return {"edits": [{"type": _COMPACT_TYPE, **trigger}]}


def _hosted(kind: str, version: str) -> RequestRow:
    """Return the row of the server's tool *kind*. The *version* is the first one that needs no beta header."""
    return RequestRow("", kind, beside={"type": (f"{kind}_{version}",), "name": (kind,)})


_COMMON_TOOL_ROWS: Final = (
    RequestRow("strict", "tool.strict"),
    RequestRow("defer_loading", "tool.defer_loading"),
    RequestRow("cache_control", "cache.tools"),
    *meaning("allowed_callers"),
)
_SEARCH_LIMIT_ROWS: Final = (
    RequestRow("allowed_domains", "hosted.allowed_domains"),
    RequestRow("blocked_domains", "hosted.blocked_domains"),
    RequestRow("max_uses", "hosted.max_uses"),
)
_TOOL_ROWS: Final = (
    *below(
        "tools[][custom]",
        RequestRow("name", "tool.name"),
        RequestRow("description", "tool.description"),
        RequestRow("input_schema", "tool.parameters"),
        *_COMMON_TOOL_ROWS,
        RequestRow("input_examples", "tool.input_examples"),
        *hint("it sets how arguments are streamed", "eager_input_streaming"),
    ),
    *below(
        "tools[][web_search]",
        *link("name", "type"),
        _hosted("web_search", "20250305"),
        *_SEARCH_LIMIT_ROWS,
        RequestRow("user_location", "hosted.user_location", read=read_location, write=write_location),
        *_COMMON_TOOL_ROWS,
    ),
    *below(
        "tools[][web_fetch]",
        *link("name", "type"),
        _hosted("web_fetch", "20250910"),
        *_SEARCH_LIMIT_ROWS,
        *_COMMON_TOOL_ROWS,
        *meaning("citations", "max_content_tokens", "url_sources"),
    ),
    *below(
        "tools[][code_execution]",
        *link("name", "type"),
        _hosted("code_execution", "20250825"),
        *_COMMON_TOOL_ROWS,
    ),
    *(
        row
        for name in ("bash", "text_editor", "memory", "computer")
        for row in below(
            f"tools[][{name}]",
            *link("name", "type"),
            RequestRow("", "client_tool"),
            *_COMMON_TOOL_ROWS,
            RequestRow("input_examples", "tool.input_examples"),
        )
    ),
    *meaning(
        "tools[][text_editor].max_characters",
        "tools[][computer].display_number",
        "tools[][browser_toolset]",
        "tools[][computer_toolset]",
        "tools[][advisor]",
        "tools[][tool_search_tool_bm25]",
        "tools[][tool_search_tool_regex]",
    ),
    RequestRow("tools[][mcp_toolset]", "mcp_toolset"),
    RequestRow("mcp_servers", "mcp_servers", write=_write_servers),
    *_SERVER_ROWS,
    *meaning("mcp_servers[].tool_configuration.enabled"),
)

_DISPLAYS: Final = {"auto": "summarized", "concise": "summarized", "detailed": "summarized"}
_OPTION_ROWS: Final = (
    RequestRow("temperature", "temperature"),
    RequestRow("top_p", "top_p"),
    RequestRow("top_k", "top_k", write=partial(max, 0)),
    RequestRow("max_tokens", "max_tokens"),
    RequestRow("stop_sequences", "stop"),
    RequestRow("output_config.effort", "reasoning_effort", words=_EFFORTS),
    RequestRow("thinking.type", "reasoning_effort"),
    RequestRow("thinking.budget_tokens", "thinking_budget"),
    RequestRow(
        "thinking.display",
        "reasoning_summary",
        words=_DISPLAYS,
        beside={"thinking.type": ("adaptive", "enabled")},
    ),
    *meaning("thinking.block_binding", "thinking[between_tools]"),
    RequestRow("output_config.format", "response_format"),
    RequestRow("output_config.format[json_schema].schema", "format.schema"),
    *meaning("output_config.task_budget"),
    RequestRow("tool_choice", "tool_choice", words={"auto": "auto", "none": "none", "required": "any"}),
    RequestRow("tool_choice.disable_parallel_tool_use", "parallel_tool_calls"),
    RequestRow("metadata.user_id", "user"),
    RequestRow("metadata.user_id", "safety_identifier"),
    RequestRow("service_tier", "service_tier", words={"auto": "auto", "default": "standard_only"}),
    RequestRow("speed", "speed"),
    RequestRow("cache_control", "cache_control"),
    RequestRow("messages[].content[][text].cache_control.ttl", "cache.ttl"),
    RequestRow("context_management", "compaction", read=_read_compaction, write=_write_compaction),
    *hint(
        "it is for the records of the account",
        "user_profile_id",
        "workspace_id",
        "billing_policy",
        "diagnostics",
    ),
    *meaning("inference_geo", "fallbacks", "fallback", "system"),
    RequestRow("container", "container"),
    *state("thread", "fallback_credit_token", "continuation_token"),
)

# Anthropic's pages "Bash tool", "Text editor tool", "Memory tool".
_RANGE: Final = {"type": "array", "items": WHOLE, "minItems": 2, "maxItems": 2}
CLIENT_TOOLS: Final[Mapping[str, ClientTool]] = {
    "bash": ClientTool(
        "Run a command in a bash session that stays open.",
        arguments(command=TEXT, restart={"type": "boolean"}),
        declared={"type": "bash_20250124", "name": "bash"},
    ),
    "text_editor": ClientTool(
        "View, create and edit text files.",
        arguments(
            "command",
            "path",
            command=one_of("view", "create", "str_replace", "insert"),
            path=TEXT,
            file_text=TEXT,
            old_str=TEXT,
            new_str=TEXT,
            insert_line=WHOLE,
            insert_text=TEXT,
            view_range=_RANGE,
        ),
        declared={"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
    ),
    "memory": ClientTool(
        "Keep notes in files below /memories, which later conversations can read.",
        arguments(
            "command",
            command=one_of("view", "create", "str_replace", "insert", "delete", "rename"),
            path=TEXT,
            view_range=_RANGE,
            file_text=TEXT,
            old_str=TEXT,
            new_str=TEXT,
            insert_line=WHOLE,
            insert_text=TEXT,
            old_path=TEXT,
            new_path=TEXT,
        ),
        declared={"type": "memory_20250818", "name": "memory"},
    ),
}
"""The tools that a client runs, by type without a version."""

MESSAGES: Final = RequestTable(
    "messages",
    "Messages",
    ("/messages",),
    (*_OPTION_ROWS, *_MESSAGE_ROWS, *_TOOL_ROWS),
    types={"tools": lambda _: "custom"},
)
"""All that a client of Messages may say."""


def without_unsigned(
    raw_body: dict[str, Any], unsigned: tuple[Any, ...] = ("",)
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return *raw_body* without what Claude refuses: opaque values that are empty, because another server has none.

    The other item of the result says what is left out, by its place. Thinking has none with a signature among *unsigned*.
    """
    messages = raw_body.get("messages")
    results: dict[str, str] = {}
    new_messages: list[Any] = []
    for number, message in enumerate(messages if isinstance(messages, list) else ()):
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, list) and message.get("role") == "assistant":
            reasons = dict.fromkeys(foreign_searches(content), "a web search of another server")
            reasons |= {
                place: why for place, block in enumerate(content) if (why := _refused(block, unsigned))
            }
            if reasons:
                results |= {f"messages[{number}].content[{place}]": why for place, why in reasons.items()}
                left = (block for place, block in enumerate(content) if place not in reasons)
                blocks = [block for block in left if not _is_blank(block)]
                message = {**message, "content": blocks or [{"type": "text", "text": NO_ANSWER}]}
            uncited = [without_foreign_citations(block) for block in message["content"]]
            if uncited != message["content"]:
                results[f"messages[{number}].content[].citations"] = "citations of another server"
                message = {**message, "content": uncited}
        new_messages.append(message)
    return ({**raw_body, "messages": new_messages}, results) if results else (raw_body, {})


def _refused(block: Any, unsigned: tuple[Any, ...]) -> str:
    """Return why *block* is left out by itself, or ``""``."""
    if not isinstance(block, dict):
        return ""
    if block.get("type") == "thinking" and block.get("signature") in unsigned:
        return "thinking with an empty signature"
    is_foreign = block.get("type") == "redacted_thinking" and str(block.get("data")).startswith(ENCRYPTED)
    return "reasoning of another provider" if is_foreign else ""


def _is_blank(block: Any) -> bool:
    """Whether *block* is an empty text, which Claude refuses."""
    return isinstance(block, dict) and block.get("type") == "text" and not str(block.get("text")).strip()
