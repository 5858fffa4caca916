"""The model and the options that a request's body names, in the words of the wire; nothing of its content."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from crosswalk.types.json import load_json

__all__ = ["json_object", "options_of"]

_NUMBERS: Final = frozenset((
    "best_of", "budget_tokens", "candidateCount", "frequencyPenalty", "frequency_penalty", "include_usage",
    "includeThoughts", "keep_alive", "k", "logprobs", "maxOutputTokens", "maxTokens", "max_completion_tokens",
    "max_new_tokens", "max_output_tokens", "max_tokens", "max_tool_calls", "min_p", "min_tokens", "mirostat",
    "mirostat_eta", "mirostat_tau", "n", "n_predict", "num_ctx", "num_predict", "p", "parallel_tool_calls",
    "presencePenalty", "presence_penalty", "repeat_last_n", "repeat_penalty", "repetition_penalty",
    "responseLogprobs", "seed", "store", "stream", "temperature", "thinkingBudget", "topK", "topP", "top_k",
    "top_logprobs", "top_n_tokens", "top_p", "typical_p", "use_cache", "background", "think", "echo",
))  # fmt: skip
_WORDS: Final = frozenset((
    "effort", "modalities", "previous_response_id", "reasoning_effort", "responseMimeType", "response_mime_type",
    "service_tier", "stop", "stopSequences", "stop_sequences", "summary", "think", "thinkingLevel", "tool_choice",
    "truncation", "type", "verbosity", "format",
))  # fmt: skip
_OBJECTS: Final = frozenset((
    "generationConfig", "inferenceConfig", "options", "output_config", "parameters", "reasoning", "response_format",
    "stream_options", "text", "thinking", "thinkingConfig", "tool_choice", "format",
))  # fmt: skip
"""What may stand in an option, by its name: numbers, words, or further options."""


def json_object(content: bytes | None) -> dict[str, Any]:
    """The JSON object that *content* is; an empty one where it is something else."""
    try:
        found = load_json(content or b"")
    except ValueError:
        return {}
    return found if type(found) is dict else {}


def options_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """What of a request's JSON *body* is an option."""
    found: dict[str, Any] = {}
    for name, value in body.items():
        if isinstance(value, bool | int | float):
            if name in _NUMBERS:
                found[name] = value
        elif isinstance(value, dict):
            if name in _OBJECTS:
                found[name] = options_of(value)
        elif name in _WORDS and (isinstance(value, str) or _is_words(value)):
            found[name] = value
    return found


def _is_words(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)
