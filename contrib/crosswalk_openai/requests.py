"""Requests to OpenAI and to the services and servers that speak its dialect: where they are, and in what they differ.

Facts: each provider's reference of its chat endpoint; provider document "OpenAI Chat Completions", section 9.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from crosswalk import Access, ChatResponse, Segment, SegmentType
from crosswalk.service import (
    ChatRequest,
    HTTPRequest,
    OpenAIChatStyle,
    build_openai_chat_request,
    is_of,
    message_of,
    reasoning_of,
)

__all__ = ["ACCESS", "STYLES", "deepseek_request", "openrouter_request"]


def _service(base_url: str, name: str) -> Access:
    return Access(
        base_url=base_url, base_url_variables=(f"{name}_BASE_URL",), api_key_variables=(f"{name}_API_KEY",)
    )


ACCESS: Mapping[str, Access] = MappingProxyType(
    {
        "openai": _service("https://api.openai.com/v1", "OPENAI"),
        "deepseek": _service("https://api.deepseek.com/v1", "DEEPSEEK"),
        "fireworks": _service("https://api.fireworks.ai/inference/v1", "FIREWORKS"),
        "groq": _service("https://api.groq.com/openai/v1", "GROQ"),
        "lmstudio": _service("http://127.0.0.1:1234/v1", "LMSTUDIO"),
        "mistral": _service("https://api.mistral.ai/v1", "MISTRAL"),
        "openrouter": _service("https://openrouter.ai/api/v1", "OPENROUTER"),
        "perplexity": _service("https://api.perplexity.ai", "PERPLEXITY"),
        "sglang": _service("http://127.0.0.1:30000/v1", "SGLANG"),
        "together": _service("https://api.together.xyz/v1", "TOGETHER"),
        "xai": _service("https://api.x.ai/v1", "XAI"),
    }
)
"""Where each provider is, by its id."""

_NO_TOOLS = "the API has no tools"
STYLES: Mapping[str, OpenAIChatStyle] = MappingProxyType(
    {
        # Its reasoning models refuse ``max_tokens``.
        "openai": OpenAIChatStyle(max_tokens="max_completion_tokens"),
        "fireworks": OpenAIChatStyle(top_k=True),
        "groq": OpenAIChatStyle(max_tokens="max_completion_tokens"),
        "lmstudio": OpenAIChatStyle(top_k=True),
        # It counts without being asked to, and refuses fields that it does not know.
        "mistral": OpenAIChatStyle(seed="random_seed", include_usage=False),
        "openrouter": OpenAIChatStyle(top_k=True),
        "perplexity": OpenAIChatStyle(
            path="/chat/completions",
            top_k=True,
            unsupported=MappingProxyType(
                {
                    "tools": _NO_TOOLS,
                    "tool_choice": _NO_TOOLS,
                    "parallel_tool_calls": _NO_TOOLS,
                    "seed": "the API has no such option",
                }
            ),
        ),
        "sglang": OpenAIChatStyle(top_k=True, reasoning="reasoning_content"),
        "together": OpenAIChatStyle(top_k=True),
    }
)
"""In what each provider's requests differ, by its id; the others' differ in nothing."""


def deepseek_request(request: ChatRequest) -> HTTPRequest:
    """*request* for DeepSeek: it wants its reasoning back beside its tool calls, and refuses it elsewhere."""
    built = build_openai_chat_request(request)
    for turn, said in zip(request.messages, built.body["messages"], strict=True):
        if message_of(turn).tool_calls and (reasoning := reasoning_of(turn, request)):
            said["reasoning_content"] = reasoning
    return built


def openrouter_request(request: ChatRequest) -> HTTPRequest:
    """*request* for OpenRouter: it wants reasoning back in details, each with the signature that came with it."""
    built = build_openai_chat_request(request, STYLES["openrouter"])
    for turn, said in zip(request.messages, built.body["messages"], strict=True):
        if isinstance(turn, ChatResponse) and is_of(turn, request):
            details = [_detail(segment) for segment in turn.segments if segment.type is SegmentType.REASONING]
            if details:
                said["reasoning_details"] = details
    return built


def _detail(segment: Segment) -> dict[str, Any]:
    said = segment.metadata.thawed()
    if "encrypted" in said:
        data = said.pop("encrypted")
        return {**said, "type": "reasoning.encrypted", "data": data}
    return {**said, "type": "reasoning.text", "text": segment.content}
