"""What a request must say to each of 50 models, for each word of reasoning effort, and 62 other pairs of model and option.

Written by hand from the vendors' references and error texts before the code that makes it true. No code of Crosswalk is
used: a wanted outcome is JSON.
"""

from __future__ import annotations

from typing import Any

__all__ = ["EFFORTS", "KEPT_BACK", "NEIGHBOURS", "PAIRS", "REFUSED", "WORDS", "about_thinking"]

WORDS = ("none", "minimal", "low", "medium", "high", "xhigh")
REFUSED = "refused"
"""Refused by name before anything is sent, because no form of the request exists."""

_FIELDS = (
    "reasoning_effort", "reasoning", "thinking", "output_config", "outputConfig", "additionalModelRequestFields",
    "enable_thinking", "thinking_budget", "think", "chat_template_kwargs",
)  # fmt: skip


def about_thinking(body: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of *body* that say how the model thinks."""
    fields = {name: body[name] for name in _FIELDS if name in body}
    thinking = body.get("generationConfig", {}).get("thinkingConfig")
    return {**fields, **({} if thinking is None else {"thinkingConfig": thinking})}


def _each(write: Any, none: Any, *words: Any) -> dict[str, Any]:
    """Return what is wanted for each word: *none*, then *write* of each of *words*."""
    return dict(zip(WORDS, (none, *map(write, words)), strict=True))


def _words(*words: Any, none: Any = REFUSED) -> dict[str, Any]:
    return _each(lambda word: {"reasoning_effort": word}, none, *words)


def _responses(*words: Any) -> dict[str, Any]:
    return _each(lambda word: {"reasoning": {"effort": word}}, REFUSED, *words)


def _adaptive(*words: str, none: Any) -> dict[str, Any]:
    def write(word: str) -> Any:
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": word}}

    return _each(write, none, *words)


def _budget(tokens: int) -> dict[str, Any]:
    return {"thinking": {"type": "enabled", "budget_tokens": tokens}}


def _gemini(key: str, *values: Any, none: Any = REFUSED) -> dict[str, Any]:
    return _each(lambda value: {"thinkingConfig": {key: value, "includeThoughts": True}}, none, *values)


def _thinking(*words: str | None) -> dict[str, Any]:
    def write(word: str | None) -> Any:
        return {"thinking": {"type": "enabled"}, **({} if word is None else {"reasoning_effort": word})}

    return _each(write, _DISABLED, *words)


_DISABLED = {"thinking": {"type": "disabled"}}
_NOTHING: dict[str, Any] = {word: {} for word in WORDS}
"""The model takes no effort: it is left out, and named."""
_TO_XHIGH = ("low", "low", "medium", "high", "xhigh")
_TO_HIGH = ("low", "low", "medium", "high", "high")
_CLAUDE = _each(_budget, {}, 1024, 2048, 10000, 16384, 32768)
_OPUS_4_5 = _each(
    lambda pair: {**_budget(pair[1]), "output_config": {"effort": pair[0]}},
    {},
    ("low", 2048), ("low", 2048), ("medium", 10000), ("high", 16384), ("high", 16384),
)  # fmt: skip
_OPUS_4_6 = _adaptive("low", "low", "medium", "high", "max", none={})
_CLAUDE_5 = _adaptive(*_TO_XHIGH, none=_DISABLED)
_CLAUDE_5_5 = _adaptive(*_TO_XHIGH, none=REFUSED)
_FLASH = _gemini(
    "thinkingBudget", 1024, 2048, 8192, 24576, 24576, none={"thinkingConfig": {"thinkingBudget": 0}}
)
_LEVELS = ("LOW", "LOW", "MEDIUM", "HIGH", "HIGH")
_NONE = {"reasoning_effort": "none"}

EFFORTS: dict[tuple[str, str], dict[str, Any]] = {
    ("anthropic", "claude-haiku-4-5"): _CLAUDE,
    ("anthropic", "claude-sonnet-4-5"): _CLAUDE,
    ("anthropic", "claude-opus-4-1"): {**_CLAUDE, "xhigh": _budget(27904)},  # below the 32,000 of max_tokens
    ("anthropic", "claude-opus-4-5"): _OPUS_4_5,
    ("anthropic", "claude-opus-4-6"): _OPUS_4_6,
    ("anthropic", "claude-sonnet-4-6"): _OPUS_4_6,
    ("anthropic", "claude-opus-4-8"): _adaptive(*_TO_XHIGH, none={}),
    ("anthropic", "claude-sonnet-5"): _CLAUDE_5,
    ("anthropic", "claude-opus-5"): _CLAUDE_5,
    ("anthropic", "claude-haiku-5-5"): _CLAUDE_5,
    ("anthropic", "claude-opus-5-5"): _CLAUDE_5_5,
    ("anthropic", "claude-sonnet-5-5"): {**_CLAUDE_5_5, "none": {"thinking": {"type": "between_tools"}}},
    ("anthropic", "claude-fable-5-1"): _CLAUDE_5_5,
    ("gemini", "gemini-2.5-pro"): _gemini("thinkingBudget", 1024, 2048, 8192, 24576, 32768),
    ("gemini", "gemini-2.5-flash"): _FLASH,
    ("gemini", "gemini-2.5-flash-lite"): _FLASH,
    ("gemini", "gemini-3.1-pro-preview"): _gemini("thinkingLevel", *_LEVELS),
    ("gemini", "gemini-3.5-flash"): _gemini("thinkingLevel", "MINIMAL", *_LEVELS[1:]),
    ("gemini", "gemini-3.8-flash"): _gemini("thinkingLevel", *_LEVELS),
    ("gemini", "gemini-4-argon"): _gemini("thinkingLevel", *_LEVELS),
    ("openai", "o3"): _words(*_TO_HIGH),
    ("openai", "gpt-5"): _words("minimal", *_TO_HIGH[1:]),
    ("openai", "gpt-5.1"): _words(*_TO_HIGH, none=_NONE),
    ("openai", "gpt-5.4"): _words(*_TO_XHIGH, none=_NONE),
    ("openai", "gpt-5.6-sol"): _words(*_TO_XHIGH, none=_NONE),
    ("openai", "gpt-6-sol"): _words(*_TO_XHIGH, none=_NONE),
    ("openai", "gpt-6-astra"): _words(*_TO_XHIGH),
    ("openai", "gpt-4.1"): _NOTHING,
    ("openai_responses", "gpt-5-pro"): _responses(*["high"] * 5),
    ("openai_responses", "gpt-5.5-pro"): _responses("medium", "medium", "medium", "high", "xhigh"),
    ("xai", "grok-4.3"): _words(*_TO_HIGH, none=_NONE),
    ("xai", "grok-4.5"): _words("minimal", *_TO_XHIGH[1:]),
    ("xai", "grok-4.6"): _words("minimal", *_TO_XHIGH[1:]),
    ("mistral", "mistral-medium-2604"): _words(*["high"] * 5, none=_NONE),
    ("mistral", "codestral-latest"): _NOTHING,
    ("groq", "openai/gpt-oss-120b"): _words(*_TO_HIGH),
    ("groq", "qwen/qwen3-32b"): _words(*["default"] * 5, none=_NONE),
    ("groq", "llama-3.3-70b-versatile"): _NOTHING,
    ("moonshot", "kimi-k3"): _words("low", "low", "high", "high", "max"),
    ("moonshot", "kimi-k2.6"): _thinking(*[None] * 5),
    ("deepseek", "deepseek-v4-pro"): _thinking(*_TO_XHIGH),
    ("zai", "glm-5.3"): _words("low", "low", "high", "high", "max"),
    ("zai", "glm-4.6"): _thinking(*[None] * 5),
    ("zai", "glm-5.2"): _thinking("minimal", *_TO_XHIGH[1:]),
    ("dashscope", "qwen3.7-plus"): _each(
        lambda tokens: {"enable_thinking": True, "thinking_budget": tokens},
        {"enable_thinking": False},
        1024, 2048, 8192, 16384, 32768,
    ),
    ("cohere", "command-a-reasoning-08-2025"): _each(
        lambda tokens: {"thinking": {"type": "enabled", "token_budget": tokens}},
        _DISABLED,
        512, 2048, 8192, 16384, 31000,
    ),
    ("minimax", "MiniMax-M3"): _each(lambda _: {"thinking": {"type": "adaptive"}}, _DISABLED, *range(5)),
    ("minimax", "MiniMax-M2.5"): _words(*_TO_HIGH),
    ("ollama", "gpt-oss:20b"): _each(lambda word: {"think": word}, REFUSED, *_TO_HIGH),
    ("ollama", "llama3.2"): {**_NOTHING, "none": {"think": False}},
}  # fmt: skip
"""For provider and model: what the body says about thinking, by the word that was asked for."""

_TOOL = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
_FORCED: dict[str, Any] = {"tools": _TOOL, "tool_choice": "required"}
_SCHEMA = {
    "type": "json_schema",
    "json_schema": {"name": "a", "schema": {"type": "object", "properties": {}}},
}
_PREFILL = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "{"}]
_BEDROCK = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"


def _level(word: str) -> dict[str, Any]:
    return {"generationConfig": {"thinkingConfig": {"thinkingLevel": word, "includeThoughts": True}}}


PAIRS: list[tuple[str, str, dict[str, Any], Any]] = [
    ("anthropic", "claude-sonnet-4-5", {"reasoning_effort": "high"}, {**_budget(16384), "max_tokens": 64000}),
    ("anthropic", "claude-haiku-4-5", {"reasoning_effort": "low"}, {**_budget(2048), "max_tokens": 64000}),
    ("anthropic", "claude-opus-4-5", {"reasoning_effort": "high"}, {**_budget(16384), "output_config": {"effort": "high"}}),
    ("anthropic", "claude-opus-4-6", {"reasoning_effort": "xhigh"}, {"output_config": {"effort": "max"}, "max_tokens": 128000}),
    ("anthropic", "claude-opus-5-5", {"reasoning_effort": "none"}, "reasoning_effort"),
    ("anthropic", "claude-sonnet-5-5", {"reasoning_effort": "none"}, {"thinking": {"type": "between_tools"}}),
    ("anthropic", "claude-fable-5", {"reasoning_effort": "none"}, "reasoning_effort"),
    ("anthropic", "claude-opus-4-8", {"temperature": 0.2}, "temperature"),
    ("anthropic", "claude-haiku-5-5", {"top_p": 0.9}, "top_p"),
    ("anthropic", "claude-sonnet-4-5", {"temperature": 0.5, "top_p": 0.9}, "top_p"),
    ("anthropic", "claude-opus-5-5", _FORCED, "tool_choice"),
    ("anthropic", "claude-sonnet-4-6", {"messages": _PREFILL}, "messages"),
    ("anthropic", "claude-sonnet-4-0", {"response_format": _SCHEMA}, {"output_config": None}),
    ("anthropic", "claude-sonnet-4-6", {"reasoning_effort": "high"}, {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}),
    ("bedrock", _BEDROCK, {"reasoning_effort": "high"}, {"additionalModelRequestFields": _budget(16384)}),
    ("bedrock", "openai.gpt-oss-120b-1:0", {"reasoning_effort": "xhigh"}, {"additionalModelRequestFields": {"reasoning_effort": "high"}}),
    ("gemini", "gemini-2.5-flash", {"reasoning_effort": "high"}, {"generationConfig": {"thinkingConfig": {"thinkingBudget": 24576, "includeThoughts": True}}}),
    ("gemini", "gemini-2.5-pro", {"reasoning_effort": "none"}, "reasoning_effort"),
    ("gemini", "gemini-2.5-flash", {"reasoning_effort": "none"}, {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}}),
    ("gemini", "gemini-3.1-pro-preview", {"reasoning_effort": "minimal"}, _level("LOW")),
    ("gemini", "gemini-3.8-flash", {"reasoning_effort": "xhigh"}, _level("HIGH")),
    ("gemini", "gemini-3.1-pro-preview", {"reasoning_effort": "none"}, "reasoning_effort"),
    ("gemini", "gemini-2.0-flash", {"reasoning_effort": "low"}, {"generationConfig": None}),
    ("gemini", "gemini-2.5-flash", {"extra_options": {"frequency_penalty": 0.3}}, "frequency_penalty"),
    ("openai", "gpt-5", {"temperature": 0.2}, "temperature"),
    ("openai", "o3", {"reasoning_effort": "minimal"}, {"reasoning_effort": "low"}),
    ("openai", "gpt-6-astra", {"reasoning_effort": "none"}, "reasoning_effort"),
    ("openai", "gpt-5.6-terra", {"reasoning_effort": "medium", "tools": _TOOL}, "reasoning_effort"),
    ("openai", "gpt-4.1", {"reasoning_effort": "low"}, {"reasoning_effort": None}),
    ("openai", "o4-mini", {"stop": ["END"]}, "stop"),
    ("openai", "gpt-5", {"max_tokens": 500}, {"max_completion_tokens": 500, "max_tokens": None}),
    ("openai_responses", "gpt-5-pro", {"reasoning_effort": "low"}, {"reasoning": {"effort": "high"}}),
    ("openai_responses", "o3", {"temperature": 0.3}, "temperature"),
    ("xai", "grok-4.6", {"reasoning_effort": "none"}, "reasoning_effort"),
    ("xai", "grok-4.6", {"stop": ["END"]}, "stop"),
    ("xai", "grok-4.20-0309-reasoning", {"reasoning_effort": "low"}, {"reasoning_effort": None}),
    ("deepseek", "deepseek-v4-pro", _FORCED, {**_DISABLED, "tool_choice": "required"}),
    ("deepseek", "deepseek-flash", {"response_format": _SCHEMA}, {"response_format": {"type": "json_object"}}),
    ("mistral", "mistral-medium-2604", {"reasoning_effort": "low"}, {"reasoning_effort": "high"}),
    ("mistral", "codestral-latest", {"reasoning_effort": "high"}, {"reasoning_effort": None}),
    ("cohere", "command-a-reasoning-08-2025", {"reasoning_effort": "high"}, {"thinking": {"type": "enabled", "token_budget": 16384}}),
    ("dashscope", "qwen3.7-plus", {"reasoning_effort": "high", **_FORCED}, {"enable_thinking": False, "tool_choice": "required"}),
    ("dashscope", "qwen3-32b", {}, {"stream": True}),
    ("zai", "glm-5.3", {"reasoning_effort": "none"}, "reasoning_effort"),
    ("zai", "glm-5.3", {"reasoning_effort": "medium"}, {"reasoning_effort": "high", "thinking": None}),
    ("zai", "glm-4.6", {"reasoning_effort": "high"}, {"thinking": {"type": "enabled"}, "reasoning_effort": None}),
    ("moonshot", "kimi-k2.6", {"reasoning_effort": "none"}, {**_DISABLED, "reasoning_effort": None}),
    ("moonshot", "kimi-k3", {"reasoning_effort": "medium"}, {"reasoning_effort": "high"}),
    ("moonshot", "kimi-k2.6", {"temperature": 0.3}, "temperature"),
    ("moonshot", "kimi-k2.6", _FORCED, "tool_choice"),
    ("minimax", "MiniMax-M2.5", {"reasoning_effort": "none"}, "reasoning_effort"),
    ("minimax", "MiniMax-M3", {"reasoning_effort": "none"}, _DISABLED),
    ("groq", "qwen/qwen3-32b", {"reasoning_effort": "high"}, {"reasoning_effort": "default"}),
    ("groq", "openai/gpt-oss-120b", {"reasoning_effort": "none"}, "reasoning_effort"),
    ("groq", "llama-3.3-70b-versatile", {"reasoning_effort": "low"}, {"reasoning_effort": None}),
    ("openrouter", "openai/gpt-oss-120b", {"reasoning_effort": "none"}, "reasoning_effort"),
    ("ollama", "qwen3:8b", {"reasoning_effort": "high"}, {"think": True}),
    ("ollama", "gpt-oss:20b", {"reasoning_effort": "none"}, "reasoning_effort"),
    ("ollama", "llama3.2", {"reasoning_effort": "low"}, {"think": None}),
    ("ollama", "qwen3.8:27b", {"reasoning_effort": "xhigh"}, {"think": "max"}),
    ("vllm", "Qwen/Qwen3-8B", {"reasoning_effort": "none"}, {"reasoning_effort": "none"}),
    ("vllm", "Qwen/Qwen3.8-27B", {"reasoning_effort": "none"}, "reasoning_effort"),
]  # fmt: skip
"""Provider, model, options, and what is wanted: fields of the body (``None``: absent), or the option that is refused."""

_PROFILE = "arn:aws:bedrock:us-east-1:1:inference-profile/us-gov.anthropic.claude-opus-4-7-v1:0"
_ADAPTIVE = {"thinking": {"type": "adaptive"}}

NEIGHBOURS: list[tuple[str, str, dict[str, Any], Any]] = [
    # Other models of known families, and other spellings: prefixes, dates, fine-tuned names, deployments, regions.
    ("anthropic", "claude-sonnet-5@20260301", {"reasoning_effort": "none"}, _DISABLED),
    ("anthropic", "Claude-Haiku-5.5", {"temperature": 0.3}, "temperature"),
    ("anthropic", "anthropic/claude-sonnet-4.5", {"reasoning_effort": "high"}, {**_budget(16384), "output_config": None}),
    ("anthropic", "claude-3.7-sonnet", {"reasoning_effort": "low"}, {**_budget(2048), "max_tokens": 6144}),
    ("anthropic", "claude-3-5-haiku-20241022", {"reasoning_effort": "low"}, {"thinking": None, "max_tokens": 8192}),
    ("anthropic", "claude-opus-4-9", {"reasoning_effort": "max"}, {**_ADAPTIVE, "output_config": {"effort": "max"}}),
    ("anthropic", "claude-opus-6-20270101", _FORCED, "tool_choice"),
    ("bedrock", "global.anthropic.claude-sonnet-5-5-v1:0", {"reasoning_effort": "none"},
     {"additionalModelRequestFields": {"thinking": {"type": "between_tools"}}}),
    ("bedrock", _PROFILE, {"reasoning_effort": "xhigh"},
     {"additionalModelRequestFields": _ADAPTIVE, "outputConfig": {"effort": "xhigh"}}),
    ("bedrock", "apac.anthropic.claude-sonnet-4-20250514-v1:0", {"reasoning_effort": "medium"},
     {"additionalModelRequestFields": _budget(10000), "outputConfig": None}),
    ("openai", "ft:gpt-4.1-mini-2025-04-14:acme:chat:A1:ckpt-step-90", {"reasoning_effort": "low"}, {"reasoning_effort": None}),
    ("openai", "ft:gpt-4o-2024-08-06:acme::x", {"max_tokens": 32000}, {"max_completion_tokens": 16384}),
    ("openai", "o3-mini-2025-01-31", {"reasoning_effort": "minimal"}, {"reasoning_effort": "low"}),
    ("openai", "gpt-5.2-2025-12-11", {"temperature": 0.3}, {"temperature": 0.3}),
    ("openai", "gpt-5.2-2025-12-11", {"temperature": 0.3, "reasoning_effort": "low"}, "temperature"),
    ("openai", "gpt-5.4-mini-2026-03-17", {"tools": _TOOL, "reasoning_effort": "low"}, "reasoning_effort"),
    ("openai", "gpt-5.5-mini", {"reasoning_effort": "max"}, {"reasoning_effort": "xhigh"}),
    ("openai", "gpt-35-turbo", {"reasoning_effort": "low"}, {"reasoning_effort": None}),
    ("openai", "prod-eu-chat-7", {"reasoning_effort": "xhigh", "temperature": 0.1, "stop": ["END"]},
     {"reasoning_effort": "xhigh", "temperature": 0.1, "stop": ["END"]}),
    ("openai_responses", "gpt-6.1-sol-2026-10-01", {"reasoning_effort": "none"}, "reasoning_effort"),
    ("openai_responses", "gpt-5.6-luna-2026-07-09", {"reasoning_effort": "max"}, {"reasoning": {"effort": "max"}}),
    ("openai_responses", "gpt-5.4-pro", {"reasoning_effort": "low"}, {"reasoning": {"effort": "medium"}}),
    ("gemini", "gemini-3.9-flash", {"reasoning_effort": "xhigh"}, _level("HIGH")),
    ("gemini", "models/gemini-2.5-pro-preview-06-05", {"reasoning_effort": "none"}, "reasoning_effort"),
    ("gemini", "gemini-3-pro-preview", {"reasoning_effort": "medium"}, _level("HIGH")),
    ("xai", "grok-4-fast-reasoning", {"reasoning_effort": "xhigh"}, {"reasoning_effort": "high"}),
    ("xai", "grok-4.7-mini", {"stop": ["END"]}, "stop"),
    ("xai", "grok-4.20-0309-reasoning", {"reasoning_effort": "none"}, "reasoning_effort"),
    ("xai", "grok-4.20-0309-non-reasoning", {"reasoning_effort": "none"}, {"reasoning_effort": None}),
    ("deepseek", "deepseek-reasoner", _FORCED, "tool_choice"),
    ("mistral", "ft:open-mistral-7b:acme:2024", {"reasoning_effort": "high"}, {"reasoning_effort": None}),
    ("mistral", "mistral-large-4-0", {"reasoning_effort": "low"}, {"reasoning_effort": "high"}),
    ("cohere", "command-a-plus-05-2026", {"reasoning_effort": "none"}, _DISABLED),
    ("dashscope", "qwen3.6-plus-2026-04-02", _FORCED, {"enable_thinking": False, "tool_choice": "required"}),
    ("zai", "glm-5.1", {"reasoning_effort": "high"}, {"thinking": {"type": "enabled"}, "reasoning_effort": None}),
    ("moonshot", "kimi-k2.5", {"temperature": 0.6, "reasoning_effort": "none"}, {**_DISABLED, "temperature": 0.6}),
    ("openrouter", "anthropic/claude-sonnet-5.5:beta", {"reasoning_effort": "none"}, "reasoning_effort"),
    ("ollama", "hf.co/bartowski/Qwen3-8B-GGUF:Q4_K_M", {"reasoning_effort": "high"}, {"think": True}),
    ("ollama", "gpt-oss:120b-cloud", {"reasoning_effort": "minimal"}, {"think": "low"}),
    ("vllm", "Qwen/Qwen3-Coder-30B-A3B-Instruct", {"reasoning_effort": "low"}, {"reasoning_effort": None}),
    ("vllm", "openai/gpt-oss-20b", {"reasoning_effort": "none"}, "reasoning_effort"),
]  # fmt: skip
"""As ``PAIRS``, of names that no row has in full."""


def _penalty(name: str, value: float) -> dict[str, Any]:
    return {"extra_options": {name: value}}


_PARALLEL = {"tools": _TOOL, "parallel_tool_calls": False}

KEPT_BACK: list[tuple[str, str, dict[str, Any], Any]] = [
    # Judged by the facts page after the rows were written.
    ("anthropic", "claude-opus-4-5", {"temperature": 0.3, "top_p": 0.9}, "top_p"),
    ("anthropic", "claude-opus-4-7", {"top_p": 0.9}, "top_p"),
    ("anthropic", "claude-sonnet-4-6", {"temperature": 0.3, "reasoning_effort": "high"}, "temperature"),
    ("anthropic", "claude-sonnet-4-6", {"temperature": 0.3}, {"temperature": 0.3, "thinking": None}),
    ("anthropic", "claude-opus-4-6", {**_FORCED, "reasoning_effort": "high"}, {"tool_choice": {"type": "any"}, "output_config": {"effort": "high"}}),
    ("anthropic", "claude-opus-4-5", {**_FORCED, "reasoning_effort": "high"}, {"tool_choice": {"type": "any"}, "thinking": None}),
    ("anthropic", "claude-sonnet-5-5", _FORCED, "tool_choice"),
    ("anthropic", "claude-sonnet-5", _FORCED, {"tool_choice": {"type": "any"}}),
    ("anthropic", "claude-haiku-4-5", {"messages": _PREFILL}, {"max_tokens": 64000}),
    ("anthropic", "claude-opus-5", {"messages": _PREFILL}, "messages"),
    ("anthropic", "claude-fable-5-2", {"reasoning_effort": "none"}, "reasoning_effort"),
    ("anthropic", "claude-opus-5", {"reasoning_effort": "none", **_PARALLEL}, {**_DISABLED, "tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}),
    ("anthropic", "claude-sonnet-4-0", {}, {"max_tokens": 4096}),
    ("bedrock", "us.anthropic.claude-opus-4-7-v1:0", {"temperature": 0.3}, "temperature"),
    ("bedrock", "anthropic.claude-opus-4-6-v1:0", {"reasoning_effort": "xhigh"}, {"additionalModelRequestFields": _ADAPTIVE, "outputConfig": {"effort": "max"}}),
    ("gemini", "gemini-3.6-flash", {"reasoning_effort": "none"}, "reasoning_effort"),
    ("gemini", "gemini-2.5-pro", _penalty("presence_penalty", 0.5), "presence_penalty"),
    ("gemini", "gemini-2.0-flash", {"reasoning_effort": "none"}, {"generationConfig": None}),
    ("openai", "gpt-5.2", {"reasoning_effort": "none", "temperature": 0.3}, {"reasoning_effort": "none", "temperature": 0.3}),
    ("openai", "gpt-5.5", {"temperature": 0.3}, "temperature"),
    ("openai", "gpt-5.5", {"temperature": 0.3, "reasoning_effort": "none"}, {"temperature": 0.3, "reasoning_effort": "none"}),
    ("openai", "gpt-5-mini", {"stop": ["END"]}, "stop"),
    ("openai", "o4-mini", _PARALLEL, "parallel_tool_calls"),
    ("openai", "gpt-4o", {"temperature": 0.3, "stop": ["END"], "max_tokens": 50}, {"temperature": 0.3, "stop": ["END"], "max_completion_tokens": 50}),
    ("openai", "gpt-5.4", {"tools": _TOOL, "reasoning_effort": "none"}, {"reasoning_effort": "none"}),
    ("openai_responses", "gpt-5.6-sol", {"tools": _TOOL, "reasoning_effort": "high"}, {"reasoning": {"effort": "high"}}),
    ("xai", "grok-4.5", _penalty("frequency_penalty", 0.5), "frequency_penalty"),
    ("xai", "grok-4.3", {"reasoning_effort": "xhigh", "temperature": 0.3}, {"reasoning_effort": "high", "temperature": 0.3}),
    ("deepseek", "deepseek-v4-pro", {"response_format": _SCHEMA}, {"response_format": {"type": "json_object"}}),
    ("mistral", "magistral-medium-2509", {"reasoning_effort": "high"}, {"reasoning_effort": None}),
    ("cohere", "command-a-reasoning-08-2025", _penalty("frequency_penalty", 1.5), "frequency_penalty"),
    ("cohere", "command-a-plus-05-2026", _penalty("presence_penalty", -0.5), "presence_penalty"),
    ("cohere", "command-a-reasoning-08-2025", _penalty("frequency_penalty", 0.5), {"frequency_penalty": 0.5}),
    ("dashscope", "qwen-plus", {"reasoning_effort": "none"}, {"enable_thinking": False}),
    ("zai", "glm-5.2", {"reasoning_effort": "none"}, {**_DISABLED, "reasoning_effort": None}),
    ("zai", "glm-5.3", {"reasoning_effort": "minimal"}, {"reasoning_effort": "low", "thinking": None}),
    ("moonshot", "kimi-k2.5", {"temperature": 0.3}, "temperature"),
    ("moonshot", "kimi-k2.7-code", {"reasoning_effort": "none"}, "reasoning_effort"),
    ("groq", "qwen/qwen3-32b", {"reasoning_effort": "none"}, {"reasoning_effort": "none"}),
    ("openrouter", "openai/gpt-5.4", {"reasoning_effort": "xhigh"}, {"reasoning_effort": "xhigh"}),
    ("minimax", "MiniMax-M2.5", {"temperature": 0}, "temperature"),
    ("minimax", "MiniMax-M3", {"temperature": 1.2}, "temperature"),
    ("minimax", "MiniMax-M2.5", {"temperature": 1}, {"temperature": 1}),
    ("vllm", "google/gemma-4-31b-it", {"reasoning_effort": "none"}, {"reasoning_effort": "none"}),
    # Asked of every row of the facts page: 184 options and efforts for each of 160 models.
    ("openai", "o3", {"stop": ["END"]}, "stop"),
    ("openai", "o3-2025-04-16", {"stop": ["END"]}, "stop"),
    ("openai", "o3-mini", {"stop": ["END"]}, {"stop": ["END"]}),
    ("openai", "gpt-5.2-codex", {"tools": _TOOL}, "tools"),
    ("openai_responses", "gpt-5.2-codex", {"tools": _TOOL, "reasoning_effort": "high"}, {"reasoning": {"effort": "high"}}),
    ("openai", "gpt-5-pro", {}, "model"),
    ("openai", "gpt-5.4-pro-2026-03-05", {"reasoning_effort": "high"}, "model"),
    ("openai", "gpt-5.1-codex-max", {}, "model"),
    ("openai_responses", "gpt-5.1-codex-max", {"reasoning_effort": "xhigh"}, {"reasoning": {"effort": "xhigh"}}),
    ("cohere", "command-r-plus", {"max_tokens": 10**6}, {"max_tokens": 4000}),
    ("cohere", "command-a-03-2025", {"max_tokens": 10**6}, {"max_tokens": 8000}),
    ("dashscope", "qwen-max-2025-01-25", {"max_tokens": 10**6}, {"max_tokens": 8192}),
    ("dashscope", "qwen3-max-preview", {"max_tokens": 10**6}, {"max_tokens": 65536}),
    ("dashscope", "qwen3-coder-plus", {"max_tokens": 10**6}, {"max_tokens": 10**6}),
    ("openrouter", "anthropic/claude-sonnet-4.5:thinking", {**_FORCED, "reasoning_effort": "high"}, {"reasoning_effort": "none"}),
    ("openrouter", "anthropic/claude-opus-4.6", {"messages": _PREFILL}, "messages"),
    ("openrouter", "anthropic/claude-opus-5.5", _FORCED, "tool_choice"),
    ("openrouter", "anthropic/claude-opus-4.8", {"reasoning_effort": "minimal", "temperature": 0.3}, {"reasoning": {"effort": "minimal"}, "temperature": 0.3}),
    ("openrouter", "anthropic/claude-haiku-4.5", {"messages": _PREFILL}, {"reasoning": None}),
    ("vllm", "Qwen/Qwen3.6-35B-A3B", {"reasoning_effort": "xhigh"}, {"reasoning_effort": "high"}),
    ("vllm", "Qwen/Qwen3-30B-A3B-Thinking-2507", {"reasoning_effort": "none"}, "reasoning_effort"),
    ("vllm", "Qwen/Qwen3-30B-A3B-Instruct-2507", {"reasoning_effort": "none"}, {"reasoning_effort": None}),
    ("ollama", "qwen3-coder:30b", {"reasoning_effort": "high"}, {"think": None}),
]  # fmt: skip
"""As ``PAIRS``, asks that no row was written for."""
