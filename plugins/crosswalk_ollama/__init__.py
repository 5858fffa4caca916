"""Ollama: its native ``/api/chat`` and ``/api/generate``, and its OpenAI layer.

Facts: provider document "Ollama".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from crosswalk.plugins import (
    Access,
    DialectFamily,
    FinishReason,
    OpenAIChatDialect,
    ProviderInfo,
    WayBack,
    hookimpl,
    requests_of,
)
from crosswalk_ollama.native import NativeDialect, ollama_error, take_logprobs

__all__ = ["Ollama", "plugin"]

ACCESS = Access(
    base_url="http://127.0.0.1:11434",
    base_url_variables=("OLLAMA_HOST",),
    api_key_variables=("OLLAMA_API_KEY",),
)


class OpenAILayer(OpenAIChatDialect):
    """OpenAI's dialect as Ollama speaks it: ``/v1/chat/completions`` and ``/v1/completions`` (section 9).

    A runner's failure in mid-stream leaves no trace but a missing end, which the reader reports.
    """

    finish_reasons: ClassVar[Mapping[str, FinishReason]] = {
        **OpenAIChatDialect.finish_reasons,
        **NativeDialect.finish_reasons,
    }
    reasoning_name: ClassVar[str] = "reasoning"
    numbers_calls: ClassVar[bool] = True

    def is_marked(self, event: dict[str, Any]) -> bool:
        """Return whether *event* is of this layer, by its fingerprint."""
        return bool(event.get("system_fingerprint") == "fp_ollama")


class Ollama(DialectFamily):
    """The hooks for an Ollama server. The first event decides the dialect of a stream."""

    map_error = staticmethod(hookimpl(ollama_error))
    build_request = staticmethod(requests_of("crosswalk_ollama.requests"))

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """See the hook ``provider_info``."""
        return ProviderInfo(
            title="Ollama",
            model_classes="crosswalk_ollama:models.toml",
            endpoints=("/api/chat", "/api/generate", *OpenAILayer.endpoints),
            documentation="https://github.com/ollama/ollama/blob/main/docs/api.md",
            message_paths=OpenAILayer.message_paths,
            text_paths=(*NativeDialect.text_paths, *OpenAILayer.text_paths),
            timestamp_key="created_at",
            usage_key="usage",
            logprob_paths={"logprobs": take_logprobs, "choices[0].logprobs": OpenAILayer().logprobs},
            pieces=("message.tool_calls", "tool_calls", *OpenAILayer.pieces),
            access=ACCESS,
            way_back=WayBack(takes_reasoning=True, takes_media=("image",), shows_pictures=True),
            spell=OpenAILayer().spell,
            speaks=("openai_responses", "anthropic"),
        )


plugin = Ollama(NativeDialect(), OpenAILayer())
