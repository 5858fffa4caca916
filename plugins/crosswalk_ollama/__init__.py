"""Ollama: its native ``/api/chat`` and ``/api/generate``, and its OpenAI layer.

Facts: provider document "Ollama".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crosswalk.plugins import Access, DialectFamily, ErrorInfo, ProviderInfo, hookimpl
from crosswalk_ollama.errors import ollama_error
from crosswalk_ollama.native import NativeDialect
from crosswalk_ollama.openai import OpenAILayer

if TYPE_CHECKING:
    from crosswalk.plugins import ChatRequest, HTTPRequest

__all__ = ["Ollama", "plugin"]

ACCESS = Access(
    base_url="http://127.0.0.1:11434",
    base_url_variables=("OLLAMA_HOST",),
    api_key_variables=("OLLAMA_API_KEY",),
)
DOCUMENTATION = "https://github.com/ollama/ollama/blob/main/docs/api.md"


class Ollama(DialectFamily):
    """The hooks for an Ollama server: the first event says which of its dialects a stream is in."""

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """See the hook ``provider_info``."""
        openai = OpenAILayer().provider_info()
        return ProviderInfo(
            title="Ollama",
            api=1,
            endpoints=("/api/chat", "/api/generate", *openai.endpoints),
            documentation=DOCUMENTATION,
            text_leaves=(
                "message.content",
                "message.thinking",
                "response",
                "thinking",
                *openai.text_leaves,
            ),
            stamp_leaves=("created_at",),
            pieces=("message.tool_calls", "tool_calls", *openai.pieces),
            access=ACCESS,
            speaks=("openai_responses", "anthropic"),
        )

    @hookimpl
    def build_request(self, request: ChatRequest) -> HTTPRequest:
        """See the hook ``build_request``."""
        from crosswalk_ollama.requests import build_request

        return build_request(request)

    @hookimpl
    def map_error(self, status: int, body: Any) -> ErrorInfo:
        """See the hook ``map_error``."""
        return ollama_error(status, body)


plugin = Ollama(NativeDialect(), OpenAILayer())
