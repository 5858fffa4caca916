"""What three packages say about models, and what Crosswalk says: each disagreement is a line.

The packages are witnesses, no judges: each is wrong somewhere. ``model_disagreements.toml`` has the lines that somebody has
looked at, with the version of the package. Of litellm and modelparams only a file is read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeAlias

from crosswalk.service import (
    ChatRequest,
    HTTPRequest,
    UnsupportedRequestError,
    build_http_request,
    max_tokens_of,
)
from model_requests import EFFORTS, PAIRS, about_thinking

__all__ = ["WITNESSES", "disagreements"]

Facts: TypeAlias = dict[str, Any]
"""By the name of a fact whether the model takes it, or the number of tokens. A fact that is unknown is missing."""

WORDS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_TOOLS: Final = [
    {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
]
_BEGUN: Final = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "{"}]
_ASKS: Final[dict[str, dict[str, Any]]] = {
    "temperature": {"temperature": 0.3},
    "a forced call": {"tools": _TOOLS, "tool_choice": "required"},
    "a prefill": {"messages": _BEGUN},
}


def _built(provider: str, model: str, options: Mapping[str, Any]) -> HTTPRequest | None:
    """Return the request with *options* for *model*, or ``None`` if it is refused."""
    try:
        return build_http_request(ChatRequest(**{"messages": "Hi", "model": model, **options}), provider)
    except UnsupportedRequestError:
        return None


def _ours(provider: str, model: str) -> Facts | None:
    """Return what Crosswalk says of *model*, or ``None`` if it has no row for the name."""
    plain = _built(provider, model, {})
    if plain is None or plain.model_class is None or plain.model_class.endswith(("unknown", "(assumed)")):
        return None
    facts: Facts = {}
    for word in WORDS:
        sent = _built(provider, model, {"reasoning_effort": word})
        said = json.dumps(about_thinking(sent.body)).lower() if sent is not None else ""
        if word == "none":
            facts[word] = sent is not None
        elif "budget" not in said:
            facts[word] = f'"{word}"' in said
    for name, options in _ASKS.items():
        sent = _built(provider, model, options)
        if sent is None or not any(change.field in options for change in sent.adaptations):
            facts[name] = sent is not None
    if (most := max_tokens_of(model, provider)) is not None:
        facts["max_tokens"] = most
    return facts


def _file_of(package: str, path: str) -> Any:
    spec = find_spec(package)
    assert spec is not None, "the caller has looked"
    assert spec.origin is not None
    return json.loads((Path(spec.origin).parent / path).read_bytes())


def _words(words: Iterable[str]) -> Facts:
    known = {word.lower() for word in words}
    return {word: word in known for word in WORDS}


_LITELLM: Final = {
    **{name: name for name in ("anthropic", "deepseek", "gemini", "groq", "minimax", "mistral", "moonshot")},
    **{name: name for name in ("openai", "xai", "zai", "dashscope")},
    "cohere_chat": "cohere",
}


def _litellm() -> Iterator[tuple[str, str, Facts]]:
    for name, row in _file_of("litellm", "model_prices_and_context_window_backup.json").items():
        provider = _LITELLM.get(row.get("litellm_provider"))
        if provider is None or row.get("mode") not in ("chat", "responses") or "ft:" in name:
            continue
        facts = {word: row.get(f"supports_{word}_reasoning_effort") for word in WORDS}
        if "reasoning_effort_levels" in row:
            facts.update(_words(row["reasoning_effort_levels"]))
        facts["temperature"] = row.get("supports_sampling_params")
        facts["a forced call"] = row.get("supports_forced_tool_use")
        facts["a prefill"] = False if row.get("supports_assistant_prefill") is False else None
        facts["max_tokens"] = row.get("max_output_tokens")
        yield provider, name.removeprefix(f"{row['litellm_provider']}/"), facts


_MODELPARAMS: Final = {
    ("anthropic", "anthropic-messages"): "anthropic",
    ("openai", "openai-chat-completions"): "openai",
    ("openai", "openai-responses"): "openai_responses",
    ("google", "google-generate-content"): "gemini",
    ("cohere", "cohere-chat"): "cohere",
    **{
        (name, "openai-chat-completions"): ours
        for name, ours in {"alibaba": "dashscope", "z-ai": "zai"}.items()
    },
    **{
        (name, "openai-chat-completions"): name
        for name in ("mistral", "minimax", "xai", "moonshot", "groq", "deepseek")
    },
}


def _modelparams() -> Iterator[tuple[str, str, Facts]]:
    for row in _file_of("modelparams", "_generated/catalog.json"):
        provider = _MODELPARAMS.get((row["provider"], row["apiSurface"]))
        if provider is None:
            continue
        facts: Facts = {}
        last = {option["path"].rpartition(".")[2]: option for option in row["params"]}
        for name in ("reasoning_effort", "effort", "thinkingLevel"):
            if values := last.get(name, {}).get("values"):
                facts = {word: takes for word, takes in _words(values).items() if word != "none"}
        facts["temperature"] = "temperature" in last
        for name in ("max_tokens", "max_completion_tokens", "maxOutputTokens"):
            facts["max_tokens"] = last.get(name, {}).get("range", {}).get("max", facts.get("max_tokens"))
        yield provider, row["model"], facts


_PROFILES: Final = {
    "anthropic": "anthropic",
    "gemini": "google",
    "openai": "openai",
    "openai_responses": "openai",
    "xai": "grok",
}


def _pydantic_ai() -> Iterator[tuple[str, str, Facts]]:
    profiles: dict[str, Callable[[str], Any]] = {
        provider: getattr(import_module(f"pydantic_ai.profiles.{module}"), f"{module}_model_profile")
        for provider, module in _PROFILES.items()
    }
    named = {*EFFORTS, *(pair[:2] for pair in PAIRS)}
    for provider, model in sorted(named):
        if provider not in profiles or "/" in model or model.startswith("ft:"):
            continue
        profile: Mapping[str, Any] = profiles[provider](model) or {}
        facts: Facts = {}
        for name in ("openai_reasoning_efforts", "google_thinking_levels", "grok_reasoning_efforts"):
            if name in profile:
                facts = _words(profile[name])
        if profile.get("supports_thinking"):
            facts["none"] = not profile.get("thinking_always_enabled")
        if "anthropic_supports_effort" in profile:
            takes = profile["anthropic_supports_effort"]
            facts |= dict.fromkeys(("low", "medium", "high"), takes)
            facts["xhigh"] = takes and profile["anthropic_supports_xhigh_effort"]
            facts["max"] = takes and profile["anthropic_supports_max_effort"]
            facts["temperature"] = not profile["anthropic_disallows_sampling_settings"]
            facts["a forced call"] = profile["supports_forced_tool_choice"]
            facts["max_tokens"] = profile["anthropic_max_output_tokens"]
        yield provider, model, facts


WITNESSES: Final[Mapping[str, Callable[[], Iterator[tuple[str, str, Facts]]]]] = {
    "litellm": _litellm,
    "modelparams": _modelparams,
    "pydantic_ai": _pydantic_ai,
}
"""By the package's import name: provider, model, and its facts."""


def disagreements(witness: str) -> set[str]:
    """Return a line for each fact of which the package *witness* says otherwise than Crosswalk."""
    lines: set[str] = set()
    for provider, model, theirs in WITNESSES[witness]():
        ours = _ours(provider, model) or {}
        for name in ours.keys() & theirs.keys():
            if theirs[name] is not None and theirs[name] != ours[name]:
                lines.add(f"{provider} {model}: {name}: {_shown(theirs[name])}, here {_shown(ours[name])}")
    return lines


def _shown(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
