"""One table for each format that a client speaks: all that it may say, with the canonical place, the kind and the spelling.

Readers, builders, the names of what is dropped, the page of requests and their tests use the same tables. The table of a
server is that of its format, with rows more or fewer that its plugin states.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from crosswalk.errors import ResponseValidationError
from crosswalk.formats import messages_table, responses_table
from crosswalk.formats.chat_table import CHAT, COMPLETIONS, OPENAI_CHAT as OPENAI_CHAT, ClientTool
from crosswalk.formats.gemini_table import GEMINI
from crosswalk.formats.messages_table import MESSAGES
from crosswalk.formats.responses_table import RESPONSES
from crosswalk.request import ToolDefinition
from crosswalk.text import meant
from crosswalk.wire.options import OPTIONS, Place, RequestRow, RequestTable, below, hint, link, state

# -------------------------------------------------------------------------------- ollama
# Facts: Ollama's API documentation, "Generate a chat completion", and the types of its Python client.


_OPTION_NAMES: Final = (
    *("temperature", "top_p", "top_k", "stop", "seed", "frequency_penalty", "presence_penalty", "repeat_penalty", "min_p"),
    *("repeat_last_n", "typical_p", "mirostat", "mirostat_tau", "mirostat_eta", "penalize_newline", "tfs_z"),
    *("num_ctx", "num_batch", "num_gpu", "num_keep", "num_thread", "main_gpu", "numa", "low_vram", "f16_kv", "use_mmap"),
    "use_mlock",
)  # fmt: skip
_ROWS: Final = (
    *below(
        "options",
        *(RequestRow(name, name) for name in _OPTION_NAMES),
        RequestRow("num_predict", "max_tokens"),
    ),
    *hint(OPTIONS["num_ctx"].why, "options.logits_all", "options.vocab_only", "options.embedding_only"),
    RequestRow("logprobs", "logprobs"),
    RequestRow("top_logprobs", "top_logprobs", needs="logprobs"),
    RequestRow(
        "think", "reasoning_effort", words={"none": False, "low": "low", "medium": "medium", "high": "high"}
    ),
    RequestRow("think", "think"),
    RequestRow("format", "format.schema"),
    RequestRow("keep_alive", "keep_alive"),
    RequestRow("truncate", "truncate"),
    RequestRow("shift", "shift"),
    *below(
        "messages[]",
        RequestRow("content", "part.text"),
        RequestRow("images", "part.image"),
        RequestRow("thinking", "reasoning"),
        RequestRow("tool_calls", "call"),
    ),
    *state("continuation_token"),
    *link("messages[].role", "messages[].tool_name", "messages[].tool_call_id"),
    *below(
        "tools[][function].function",
        RequestRow("name", "tool.name"),
        RequestRow("description", "tool.description"),
        RequestRow("parameters", "tool.parameters"),
        RequestRow("strict", "tool.strict"),
    ),
)

OLLAMA: Final = RequestTable(
    "ollama", "Ollama's chat", ("/api/chat",), _ROWS, types={"tools": lambda _: "function"}
)
"""All that a client of Ollama's chat may say."""
GENERATE: Final = RequestTable(
    "generate",
    "Ollama's generate",
    ("/api/generate",),
    (*_ROWS, *state("context")),
    types={"tools": lambda _: "function"},
)
"""All that a client of Ollama's generate may say."""


# -------------------------------------------------------------------------------- tables


TABLES: Final[Mapping[str, RequestTable]] = MappingProxyType(
    {table.key: table for table in (CHAT, COMPLETIONS, RESPONSES, MESSAGES, OLLAMA, GENERATE, GEMINI)}
)
"""The tables of what clients may say, by the name of the format."""


def option_paths() -> Mapping[str, tuple[str, ...]]:
    """Return the paths of each option in the bodies of all formats: ``top_p`` is at ``top_p`` and ``generationConfig.topP``.

    An option that is an item of a list has no path.
    """
    paths: dict[str, dict[str, None]] = {}
    for row in (row for table in TABLES.values() for row in table.options if "[" not in row.path):
        paths.setdefault(row.place, {})[row.path] = None
    return {place: tuple(found) for place, found in paths.items()}


def part_types(place: str) -> tuple[str, ...]:
    """Return the types of the parts and items that are a *place*, such as ``call`` or ``result``, in all formats.

    Some formats name a part by its key. It stands for its type.
    """
    rows = (row for table in TABLES.values() for row in table.rows if row.place == place and "[]" in row.path)
    words = (_WORD.search(row.path.rpartition("[]")[2]) for row in rows)
    return tuple(dict.fromkeys(word[0] for word in words if word))


_WORD: Final = re.compile(r"\w+")

# The names of tools in a request of any format.

_WITH_TOOLS: Final = frozenset(
    {"allowed_tools", "tools", "functions", "tool_choice", "toolConfig", "tool_config", "messages", "input", "contents"}
)  # fmt: skip
"""The fields of a request, of any format, that name tools."""
_NO_TOOLS: Final = frozenset(
    {
        "args", "arguments", "parameters", "parametersJsonSchema", "input", "input_schema", "input_examples", "response",
        "responseJsonSchema",
    }
)  # fmt: skip
"""The fields in them that hold arguments, results or schemas."""


def fields_with_names(fields: Mapping[str, Any], rename: Callable[[str], str]) -> dict[str, Any]:
    """Return *fields* of a request in any format, with what *rename* returns for each name of a tool."""
    return {name: named_at((name,), value, rename) for name, value in fields.items()}


def named_at(place: Place, value: Any, rename: Callable[[str], str]) -> Any:
    """Return *value*, at *place* in a request, with what *rename* returns for each name of a tool."""
    if place[0] not in _WITH_TOOLS or not _NO_TOOLS.isdisjoint(place[1:]):
        return value
    if isinstance(value, dict):
        is_speaker = value.get("role", "tool") != "tool"
        return {
            key: inner if is_speaker and key == "name" else named_at((*place, key), inner, rename)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [named_at((*place, "name"), inner, rename) for inner in value]
    is_name = place[-1] in ("name", "tool_name") and isinstance(value, str)
    return rename(value) if is_name else value


CLIENT_TOOLS: Final[Mapping[str, Mapping[str, ClientTool]]] = MappingProxyType(
    {MESSAGES.key: messages_table.CLIENT_TOOLS, RESPONSES.key: responses_table.CLIENT_TOOLS}
)
"""The tools of each format that a client runs, by type without a version."""


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
