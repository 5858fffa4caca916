"""The operation of a request by its path, and the token counts of operations that return no chat answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import attrs

from crosswalk.records import look_up

_COMPLETIONS: Final = ("/completions", "/completion", "/complete", "/infill", "/generate", "/generate_stream")
_OTHERS: Final = {
    r"/deployments/(?P<model>[^/]+)/embeddings": ("embeddings", "openai"),
    r"/deployments/(?P<model>[^/]+)/images/(generations|edits|variations)": ("image_generation", "openai"),
    r"/deployments/(?P<model>[^/]+)/audio/transcriptions": ("transcription", "openai"),
    r"/deployments/(?P<model>[^/]+)/audio/translations": ("translation", "openai"),
    r"/deployments/(?P<model>[^/]+)/audio/speech": ("speech", "openai"),
    r"/embeddings": ("embeddings", "openai"),
    r"/api/embed": ("embeddings", "ollama"),
    r"/v\d+/embed": ("embeddings", "cohere"),
    r"/models/(?P<model>[^/:]+):(embedContent|batchEmbedContents)": ("embeddings", "gemini"),
    r"/v\d+/rerank": ("rerank", "cohere"),
    r"/moderations": ("moderation", "openai"),
    r"/images/(generations|edits|variations)": ("image_generation", "openai"),
    r"/audio/transcriptions": ("transcription", "openai"),
    r"/audio/translations": ("translation", "openai"),
    r"/audio/speech": ("speech", "openai"),
}
"""Endpoints that return no chat answer: the operation and the provider. Azure has the model in the path. The conventions
name only ``embeddings``.
"""
_PATTERNS: Final = {re.compile(f"(?:/.*)?{path}/?"): operation for path, operation in _OTHERS.items()}
_FETCHED: Final = re.compile(r"(.*/responses)/resp_[^/]+")
_COUNTS: Final = {
    "input": (
        ("usage", "prompt_tokens"),
        ("usage", "input_tokens"),
        ("prompt_eval_count",),
        ("usageMetadata", "promptTokenCount"),
        ("meta", "billed_units", "input_tokens"),
    ),
    "output": (
        ("usage", "completion_tokens"),
        ("usage", "output_tokens"),
        ("meta", "billed_units", "output_tokens"),
    ),
}
"""The paths of token counts: OpenAI's two forms, Ollama's, Gemini's and Cohere's."""


@attrs.frozen
class OtherOperation:
    """An operation that returns no chat answer: its name, its provider, and the model in the path."""

    name: str
    provider: str
    model: str | None


def other_operation(path: str) -> OtherOperation | None:
    """Return the operation at *path*, or ``None`` if it returns chat answers."""
    for pattern, (name, provider) in _PATTERNS.items():
        if (pattern_match := pattern.fullmatch(path)) is not None:
            return OtherOperation(name, provider, pattern_match.groupdict().get("model"))
    return None


def operation_of(path: str) -> str:
    """Return OpenTelemetry's name for the chat operation at *path*."""
    path = path.rstrip("/")
    if path.endswith((":generateContent", ":streamGenerateContent")):
        return "generate_content"
    is_text = path.endswith(_COMPLETIONS) and not path.endswith("/chat/completions")
    return "text_completion" if is_text else "chat"


def fetched_from(url: str) -> str | None:
    """Return the address that created the stored response at *url*, or ``None`` if *url* is not a stored response."""
    pattern_match = _FETCHED.fullmatch(url.partition("?")[0].partition("#")[0])
    return None if pattern_match is None else pattern_match[1]


def tokens_of(body: Mapping[str, Any]) -> dict[str, int]:
    """Return the token counts in the JSON *body* of an answer, as ``input`` and ``output``."""
    counts: dict[str, int] = {}
    for kind, paths in _COUNTS.items():
        sent = [count for path in paths if type(count := look_up(body, path)) is int]
        if sent:
            counts[kind] = sent[0]
    return counts
