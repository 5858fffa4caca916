"""What clients of Ollama's chat and generate may say.

Facts: Ollama's API documentation, "Generate a chat completion", and the types of its Python client.
"""

from __future__ import annotations

from typing import Final

from crosswalk.wire.options import OPTIONS
from crosswalk.wire.rows import RequestTable, Row, below, hint, link, state

_OPTIONS: Final = (
    *("temperature", "top_p", "top_k", "stop", "seed", "frequency_penalty", "presence_penalty", "repeat_penalty", "min_p"),
    *("repeat_last_n", "typical_p", "mirostat", "mirostat_tau", "mirostat_eta", "penalize_newline", "tfs_z"),
    *("num_ctx", "num_batch", "num_gpu", "num_keep", "num_thread", "main_gpu", "numa", "low_vram", "f16_kv", "use_mmap"),
    "use_mlock",
)  # fmt: skip
_ROWS: Final = (
    *below("options", *(Row(name, name) for name in _OPTIONS), Row("num_predict", "max_tokens")),
    *hint(OPTIONS["num_ctx"].why, "options.logits_all", "options.vocab_only", "options.embedding_only"),
    Row("logprobs", "logprobs"),
    Row("top_logprobs", "top_logprobs", needs="logprobs"),
    Row("think", "reasoning_effort", words={"none": False, "low": "low", "medium": "medium", "high": "high"}),
    Row("think", "think"),
    Row("format", "format.schema"),
    Row("keep_alive", "keep_alive"),
    Row("truncate", "truncate"),
    Row("shift", "shift"),
    *below(
        "messages[]",
        Row("content", "part.text"),
        Row("images", "part.image"),
        Row("thinking", "reasoning"),
        Row("tool_calls", "call"),
    ),
    *link("messages[].role", "messages[].tool_name", "messages[].tool_call_id"),
    *below(
        "tools[][function].function",
        Row("name", "tool.name"),
        Row("description", "tool.description"),
        Row("parameters", "tool.parameters"),
        Row("strict", "tool.strict"),
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
