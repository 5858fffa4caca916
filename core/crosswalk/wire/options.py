"""The options of requests in every format: their spellings, their values, and the grade of a loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

import attrs

from crosswalk.wire import gemini, messages
from crosswalk.wire.gemini import json_name

# --------------------------------------------------------------------------- allowed tools
# A choice among some of the tools, as each format writes it.
#
# The option ``allowed_tools`` is ``{"mode": "auto" | "required", "tools": [{"type": "function" | "custom", "name":
# …}]}``.


_MODES: Final = {"auto": "VALIDATED", "required": "ANY"}
"""Gemini's words. With both it calls only the functions that are named."""
_NAMED_KINDS: Final = ("function", "custom")


def write_allowed_tools(value: Any, format: str) -> dict[str, Any] | None:
    """Return the option *value* as *format* writes it, or ``None`` if it is not such an option."""
    try:
        mode, tools = value["mode"], [(tool["type"], tool["name"]) for tool in value["tools"]]
        is_known = mode in _MODES and all(
            kind in _NAMED_KINDS and isinstance(name, str) for kind, name in tools
        )
    except (KeyError, TypeError):
        return None
    if not is_known:
        return None
    if format == "gemini":
        return {"mode": _MODES[mode], "allowedFunctionNames": [name for _, name in tools]}
    if format == "chat":
        nested = [{"type": kind, kind: {"name": name}} for kind, name in tools]
        return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": nested}}
    flat = [{"type": kind, "name": name} for kind, name in tools]
    return {"type": "allowed_tools", "mode": mode, "tools": flat}


def read_allowed_tools(value: Any, format: str) -> dict[str, Any] | None:
    """Return the option that *value* is in *format*, or ``None`` if it is something else or more."""
    try:
        if format == "gemini":
            value = {json_name(key): inner for key, inner in value.items()}
            mode = next(ours for ours, theirs in _MODES.items() if theirs == value["mode"])
            tools = [{"type": "function", "name": name} for name in value["allowedFunctionNames"]]
        elif format == "chat":
            mode, tools = value["allowed_tools"]["mode"], value["allowed_tools"]["tools"]
            tools = [{"type": tool["type"], "name": tool[tool["type"]]["name"]} for tool in tools]
        else:
            mode, tools = (
                value["mode"],
                [{"type": tool["type"], "name": tool["name"]} for tool in value["tools"]],
            )
    except (AttributeError, KeyError, TypeError, StopIteration):
        return None
    results = {"mode": mode, "tools": tools}
    return results if write_allowed_tools(results, format) == value else None


# ------------------------------------------------------------------------------ web search
# The web search of a server, as each format asks for it.
#
# The option ``web_search_options`` is the one of Chat Completions: ``{"search_context_size": …, "user_location":
# {"type": "approximate", "approximate": {"city": …}}}``. The other formats have a tool instead.


_WEB_SEARCH_TOOLS: Final[Mapping[str, tuple[Mapping[str, Any], frozenset[str]]]] = {
    "responses": ({"type": "web_search"}, frozenset({"search_context_size", "user_location"})),
    "messages": (
        {"type": messages.HOSTED_TOOLS["web_search"], "name": "web_search"},
        frozenset({"user_location"}),
    ),
    "gemini": ({gemini.HOSTED_TOOLS["web_search"]: {}}, frozenset()),
}
"""The tool of each format, and the options that it has."""


def write_web_search(value: Any, format: str) -> dict[str, Any] | None:
    """Return the option *value* as the tool of *format*, or ``None`` if the tool has no such option."""
    if format == "chat":
        return value  # type: ignore[no-any-return]
    tool, known = _WEB_SEARCH_TOOLS[format]
    if not (isinstance(value, dict) and value.keys() <= known):
        return None
    written = {**tool, **value}
    location = value.get("user_location")
    if location is not None:
        if not (isinstance(location, dict) and isinstance(location.get("approximate"), dict)):
            return None
        written["user_location"] = {"type": location.get("type", "approximate"), **location["approximate"]}
    return written


# --------------------------------------------------------------------------------- options
# The options of requests in every format: their spellings, their values, and the grade of a loss.
#
# Reading a request, building one and refusing one for an option all use :data:`OPTIONS` and :data:`WORDS`.
# Facts: the references of the APIs, the types of their Python SDKs, the parameters of vLLM, SGLang, llama.cpp and
# OpenRouter.


class OptionGrade(StrEnum):
    """The grade of an option's loss."""

    HARMLESS = "harmless"
    """The answer is the same: it is not reported."""
    CHANGED = "changed"
    """The answer is as good, but its cost, its record or its details may differ: it is reported."""
    DANGEROUS = "dangerous"
    """The answer would be another one: the request is refused, unless the caller says otherwise."""


FORMATS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = MappingProxyType(
    {
        "chat": ("Chat Completions", ("/chat/completions",)),
        "completions": ("Completions", ("/v1/completions",)),
        "responses": ("Responses", ("/responses",)),
        "messages": ("Messages", ("/messages",)),
        "ollama": ("Ollama's chat", ("/api/chat",)),
        "generate": ("Ollama's generate", ("/api/generate",)),
        "gemini": ("Gemini", (":generateContent", ":streamGenerateContent")),
        "bedrock": ("Converse", ("/converse", "/converse-stream")),
        "cohere": ("Cohere's chat", ("/v2/chat",)),
    }
)
"""The common name of each format, and the endings of its endpoints' paths."""

_CHAT_SERVERS: Final = ("openai", "vllm", "sglang", "llamacpp", "openrouter")
"""Providers with additional options in Chat Completions."""
_CACHE_ALONE: Final = ("chat", "responses", "ollama", "gemini")
"""Formats whose servers cache a prompt without being told."""


def format_of_path(path: str) -> str | None:
    """Return the format of a request to *path*, or ``None`` if it is another one."""
    plain = path.partition("?")[0]
    return next((name for name, (_, ends) in FORMATS.items() if plain.endswith(ends)), None)


@attrs.frozen
class Option:
    """An option of a request.

    Attributes:
        name: its name in this table, which is the field of ``ChatRequest`` if there is one.
        grade: the grade of its loss.
        spellings: its path in each format that has it, or for a provider that has it in that format. ``include[]=word`` is
            an item of a list, and ``tools[]`` one more item. The first of several paths is written.
        values: the words of formats with other values. The format has no other values.
        neutral: the value that changes nothing, so its loss is harmless.
        harmless_in: formats in which nothing is lost without it.
        replaces: the path that is removed if this option is written, by format.
        needs: the path that must be true beside this option, by format.
        reader, writer: for an option that is an object with other fields in each format, the functions that read and
            write it. They get the value and the format, and return ``None`` for a value that is not such an option.
    """

    name: str
    grade: OptionGrade
    spellings: Mapping[str, tuple[str, ...]]
    values: Mapping[str, Mapping[Any, Any]] = {}
    neutral: Any = None
    harmless_in: tuple[str, ...] = ()
    replaces: Mapping[str, str] = {}
    needs: Mapping[str, str] = {}
    reader: Callable[[Any, str], Any] | None = None
    writer: Callable[[Any, str], Any] | None = None

    def path(self, format: str | None, provider: str | None = None) -> str | None:
        """Return its path in *format* at *provider*, or ``None`` if it has none."""
        own = self.spellings.get(provider or "", ()) if format == "chat" else ()
        paths = own or self.spellings.get(format or "", ())
        return paths[0] if paths else None

    def written(self, value: Any, format: str) -> Any:
        """Return *value* in the words of *format*, or ``None`` if it has none."""
        if self.writer is not None:
            return self.writer(value, format)
        values = self.values.get(format)
        return value if values is None else values.get(value)

    def read(self, value: Any, format: str) -> Any:
        """Return the table's word for the *value* in *format*, or ``None`` if there is none."""
        if self.reader is not None:
            return self.reader(value, format)
        values = self.values.get(format)
        if values is None:
            return value
        return next((name for name, written in values.items() if written == value), None)

    def lost(self, value: Any, format: str | None) -> OptionGrade:
        """Return the grade of the loss if *value* does not reach a server of *format*."""
        is_neutral = value == self.neutral and type(value) is type(self.neutral)
        return OptionGrade.HARMLESS if is_neutral or format in self.harmless_in else self.grade


def _option(
    name: str,
    grade: OptionGrade,
    *,
    values: Mapping[str, Mapping[Any, Any]] | None = None,
    neutral: Any = None,
    harmless_in: tuple[str, ...] = (),
    replaces: Mapping[str, str] | None = None,
    needs: Mapping[str, str] | None = None,
    reader: Callable[[Any, str], Any] | None = None,
    writer: Callable[[Any, str], Any] | None = None,
    **spellings: str | tuple[str, ...],
) -> Option:
    paths = {
        format: (spelling,) if isinstance(spelling, str) else spelling
        for format, spelling in spellings.items()
    }
    return Option(
        name, grade, paths, values or {}, neutral, harmless_in, replaces or {}, needs or {}, reader, writer
    )


_LOST, _CHANGED, _NOTHING = OptionGrade.DANGEROUS, OptionGrade.CHANGED, OptionGrade.HARMLESS
_LOGPROBS: Final = "include[]=message.output_text.logprobs"

OPTIONS: Final[tuple[Option, ...]] = (
    # Fields of a ChatRequest.
    _option(
        "temperature", _LOST, chat="temperature", completions="temperature", responses="temperature", messages="temperature",
        ollama="options.temperature", gemini="generationConfig.temperature", bedrock="inferenceConfig.temperature",
        cohere="temperature",
    ),
    _option(
        "top_p", _LOST, chat="top_p", completions="top_p", responses="top_p", messages="top_p", ollama="options.top_p",
        gemini="generationConfig.topP", bedrock="inferenceConfig.topP", cohere="p",
    ),
    _option(
        "top_k", _LOST, vllm="top_k", sglang="top_k", llamacpp="top_k", openrouter="top_k", completions="top_k",
        messages="top_k", ollama="options.top_k", gemini="generationConfig.topK", cohere="k",
    ),
    _option(
        "max_tokens", _LOST, chat=("max_tokens", "max_completion_tokens", "n_predict"), completions="max_tokens",
        responses="max_output_tokens", messages="max_tokens", ollama="options.num_predict",
        gemini="generationConfig.maxOutputTokens", bedrock="inferenceConfig.maxTokens", cohere="max_tokens",
    ),
    _option(
        "stop", _LOST, chat="stop", completions="stop", messages="stop_sequences", ollama="options.stop",
        gemini="generationConfig.stopSequences", bedrock="inferenceConfig.stopSequences", cohere="stop_sequences",
    ),
    _option(
        "seed", _LOST, chat="seed", completions="seed", ollama="options.seed", gemini="generationConfig.seed", cohere="seed",
    ),
    _option("parallel_tool_calls", _LOST, chat="parallel_tool_calls", responses="parallel_tool_calls"),
    _option(
        "allowed_tools", _LOST, reader=read_allowed_tools, writer=write_allowed_tools, chat="tool_choice",
        responses="tool_choice", gemini="toolConfig.functionCallingConfig",
    ),
    _option(
        "web_search_options", _LOST, writer=write_web_search, chat="web_search_options", responses="tools[]",
        messages="tools[]", gemini="tools[]",
    ),
    # Sampling.
    _option(
        "frequency_penalty", _LOST, neutral=0, chat="frequency_penalty", completions="frequency_penalty",
        ollama="options.frequency_penalty",
        gemini="generationConfig.frequencyPenalty", cohere="frequency_penalty",
    ),
    _option(
        "presence_penalty", _LOST, neutral=0, chat="presence_penalty", completions="presence_penalty",
        ollama="options.presence_penalty",
        gemini="generationConfig.presencePenalty", cohere="presence_penalty",
    ),
    _option(
        "repeat_penalty", _LOST, neutral=1, vllm="repetition_penalty", sglang="repetition_penalty",
        openrouter="repetition_penalty", llamacpp="repeat_penalty", ollama="options.repeat_penalty",
    ),
    _option(
        "min_p", _LOST, vllm="min_p", sglang="min_p", openrouter="min_p", llamacpp="min_p", ollama="options.min_p",
    ),
    *(
        _option(name, _LOST, llamacpp=name, ollama=f"options.{name}")
        for name in ("repeat_last_n", "typical_p", "mirostat", "mirostat_tau", "mirostat_eta")
    ),
    _option("logit_bias", _LOST, neutral={}, chat="logit_bias", completions="logit_bias"),
    # The answer.
    _option("n", _LOST, neutral=1, chat="n", completions="n", gemini="generationConfig.candidateCount"),
    _option(
        "logprobs", _LOST, neutral=False, chat="logprobs", responses=_LOGPROBS, ollama="logprobs",
        gemini="generationConfig.responseLogprobs", cohere="logprobs",
    ),
    _option(
        "top_logprobs", _LOST, neutral=0, chat="top_logprobs", responses="top_logprobs", ollama="top_logprobs",
        gemini="generationConfig.logprobs",
        needs={"chat": "logprobs", "ollama": "logprobs", "gemini": "generationConfig.responseLogprobs"},
    ),
    _option("verbosity", _LOST, neutral="medium", openai="verbosity", openrouter="verbosity", responses="text.verbosity"),
    _option("modalities", _LOST, neutral=["text"], chat="modalities"),
    _option("best_of", _LOST, neutral=1, completions="best_of"),
    _option("prediction", _CHANGED, openai="prediction"),
    _option("moderation", _LOST, openai="moderation", responses="moderation"),
    _option("encrypted_reasoning", _CHANGED, responses="include[]=reasoning.encrypted_content"),
    _option(
        "reasoning_summary", _CHANGED, responses="reasoning.summary",
        gemini="generationConfig.thinkingConfig.includeThoughts",
        values={"gemini": {"auto": True, "concise": True, "detailed": True}},
    ),
    _option(
        "thinking_budget", _CHANGED, messages="thinking.budget_tokens",
        gemini="generationConfig.thinkingConfig.thinkingBudget",
        replaces={"gemini": "generationConfig.thinkingConfig.thinkingLevel"},
    ),
    _option("think", _CHANGED, ollama="think"),
    _option("truncation", _LOST, neutral="disabled", responses="truncation"),
    _option("background", _LOST, neutral=False, responses="background"),
    # The user, records and cost.
    _option("user", _CHANGED, chat="user", completions="user", responses="user", messages="metadata.user_id"),
    _option(
        "safety_identifier", _CHANGED, openai="safety_identifier", responses="safety_identifier",
        messages="metadata.user_id",
    ),
    _option("metadata", _CHANGED, neutral={}, openai="metadata", responses="metadata"),
    _option("store", _CHANGED, neutral=False, openai="store", responses="store"),
    _option("prompt_cache_key", _CHANGED, openai="prompt_cache_key", responses="prompt_cache_key"),
    _option(
        "prompt_cache_retention", _CHANGED, openai="prompt_cache_retention", responses="prompt_cache_retention",
    ),
    _option("cache_control", _CHANGED, harmless_in=_CACHE_ALONE, openrouter="cache_control", messages="cache_control"),
    _option(
        "service_tier", _CHANGED, neutral="auto", openai="service_tier", openrouter="service_tier",
        responses="service_tier", messages="service_tier", gemini="serviceTier",
        values={
            "messages": {"auto": "auto", "default": "standard_only"},
            "gemini": {"default": "standard", "flex": "flex", "priority": "priority"},
        },
    ),
    _option("speed", _CHANGED, neutral="standard", messages="speed"),
    _option("safety_settings", _CHANGED, neutral=[], gemini="safetySettings"),
    _option(
        "include_obfuscation", _CHANGED, neutral=False, openai="stream_options.include_obfuscation",
        responses="stream_options.include_obfuscation",
    ),
    # Ollama's runner.
    _option("keep_alive", _CHANGED, ollama="keep_alive"),
    *(
        _option(name, _CHANGED, ollama=f"options.{name}")
        for name in (
            "num_ctx", "num_batch", "num_gpu", "num_keep", "num_thread", "main_gpu", "numa", "low_vram", "f16_kv",
            "use_mmap", "use_mlock",
        )
    ),
    *(_option(name, _LOST, ollama=f"options.{name}") for name in ("penalize_newline", "tfs_z")),
    *(_option(name, _LOST, ollama=name) for name in ("truncate", "shift")),
)  # fmt: skip
"""The options of all formats. If two options have one spelling in a format, the first is read, and the first that is set is
written."""

NESTED: Final[Mapping[str, Option]] = MappingProxyType(
    {
        option.name: option
        for option in (
            _option("cache_control", _CHANGED, harmless_in=_CACHE_ALONE),
            _option("detail", _CHANGED, neutral="auto", chat="detail", responses="detail"),
            _option(
                "strict", _CHANGED, neutral=False, chat="strict", responses="strict", messages="strict", ollama="strict",
                bedrock="strict", cohere="strict_tools",
            ),
            _option("eager_input_streaming", _NOTHING, messages="eager_input_streaming"),
            *(
                _option(name, _CHANGED)
                for name in ("annotations", "id", "include", "input_examples", "metadata", "status")
            ),
        )
    }
)  # fmt: skip
"""Fields within a message, a tool or a list that change nothing essential, by name."""

STATE: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "chat": ("audio",),
        "responses": ("conversation", "previous_response_id", "prompt", "item_reference"),
        "messages": ("container", "thread"),
        "gemini": ("cachedContent", "continuationToken"),
        "generate": ("context",),
    }
)
"""What a request of each format names that a server keeps: its fields, a field of a message, and types of items."""

_EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_SAME_EFFORTS: Final = {word: word for word in _EFFORTS}

WORDS: Final[Mapping[str, Mapping[str, Mapping[str, Any]]]] = MappingProxyType(
    {
        "reasoning_effort": {
            "chat": _SAME_EFFORTS,
            "responses": _SAME_EFFORTS,
            "messages": {word: word for word in _EFFORTS[2:]},
            "ollama": {"none": False, "low": "low", "medium": "medium", "high": "high"},
            "gemini": {word: word.upper() for word in _EFFORTS[1:6]},
            "bedrock": {word: word for word in _EFFORTS[2:]},
        },
        "tool_choice": {
            "chat": {word: word for word in ("auto", "none", "required")},
            "responses": {word: word for word in ("auto", "none", "required")},
            "messages": {"auto": "auto", "none": "none", "required": "any"},
            "gemini": {"auto": "AUTO", "none": "NONE", "required": "ANY"},
            "bedrock": {"auto": "auto", "required": "any"},
            "cohere": {"none": "NONE", "required": "REQUIRED"},
        },
    }
)
"""The words of a format for the words of a ``ChatRequest``, for options with other words."""


def _by_path() -> Iterator[tuple[tuple[str, str], Option]]:
    for option in reversed(OPTIONS):
        for column, paths in option.spellings.items():
            for path in paths:
                yield ("chat" if column in _CHAT_SERVERS else column, path), option


_BY_PATH: Final[Mapping[tuple[str, str], Option]] = MappingProxyType(dict(_by_path()))


def options_read(format: str) -> dict[str, Option]:
    """Return the options that a request in *format* may have, by path."""
    return {path: option for (column, path), option in _BY_PATH.items() if column == format}


def option_of(format: str, path: str) -> Option | None:
    """Return the option at *path* of a request in *format*, or ``None`` if the table has none."""
    return _BY_PATH.get((format, path))


def put(body: dict[str, Any], path: str, value: Any) -> bool:
    """Write *value* at *path* into *body*, and return whether nothing else was there."""
    path, is_item, word = path.partition("[]")
    *outer, last = path.split(".")
    for step in outer:
        body = body.setdefault(step, {})
    if is_item:
        item, items = word.removeprefix("=") or value, body.setdefault(last, [])
        items += [] if item in items else [item]
        return True
    return bool(body.setdefault(last, value) == value)
