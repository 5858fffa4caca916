"""One table for each format that a client speaks: all that it may say, with the canonical place, the kind and the spelling.

Readers, builders, the names of what is dropped, the page of requests and their tests use the same tables. The table of a
server is that of its format, with rows more or fewer that its plugin states.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from crosswalk.formats.chat_table import CHAT, COMPLETIONS, OPENAI_CHAT as OPENAI_CHAT
from crosswalk.formats.gemini_table import GEMINI
from crosswalk.formats.messages_table import MESSAGES
from crosswalk.formats.responses_table import RESPONSES
from crosswalk.wire.options import OPTIONS, RequestRow, RequestTable, below, hint, link, state

# -------------------------------------------------------------------------------- ollama
# Facts: Ollama's API documentation, "Generate a chat completion", and the types of its Python client.


_OPTIONS: Final = (
    *("temperature", "top_p", "top_k", "stop", "seed", "frequency_penalty", "presence_penalty", "repeat_penalty", "min_p"),
    *("repeat_last_n", "typical_p", "mirostat", "mirostat_tau", "mirostat_eta", "penalize_newline", "tfs_z"),
    *("num_ctx", "num_batch", "num_gpu", "num_keep", "num_thread", "main_gpu", "numa", "low_vram", "f16_kv", "use_mmap"),
    "use_mlock",
)  # fmt: skip
_ROWS: Final = (
    *below(
        "options", *(RequestRow(name, name) for name in _OPTIONS), RequestRow("num_predict", "max_tokens")
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
