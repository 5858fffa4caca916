"""vLLM: ``/v1/chat/completions`` and ``/v1/completions``, versions 0.6 to 0.33.

Facts: provider document "vLLM". The dialect is OpenAI's; only what vLLM adds or says differently stands here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from crosswalk import FinishReason, OpenAIChatDialect, Recognition, hookimpl
from crosswalk.plugin import Access
from crosswalk.service.request import ChatRequest, HTTPRequest
from crosswalk_vllm.requests import ACCESS, build_request

__all__ = ["VLLM", "plugin"]

_MARKS = ("prompt_token_ids", "kv_transfer_params", "prompt_logprobs")
_CHOICE_MARKS = ("stop_reason", "token_ids", "prompt_logprobs")


class VLLM(OpenAIChatDialect):
    """The hooks for vLLM's OpenAI server."""

    title: ClassVar[str] = "vLLM"
    documentation: ClassVar[str | None] = (
        "https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html"
    )
    endpoints: ClassVar[tuple[str, ...]] = (
        *OpenAIChatDialect.endpoints,
        "/v1/chat/completions/batch",
    )
    speaks: ClassVar[tuple[str, ...]] = ("openai_responses", "anthropic")
    cache_write_field: ClassVar[str] = "created_cache_tokens"
    access: ClassVar[Access | None] = ACCESS
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = MappingProxyType(
        {
            **OpenAIChatDialect.finish_reasons,
            "abort": FinishReason.CANCELLED,
            "error": FinishReason.ERROR,
            # The repetition detector cut the text: it is incomplete, if not for its length.
            "repetition": FinishReason.LENGTH,
        }
    )

    @hookimpl
    def build_request(self, request: ChatRequest) -> HTTPRequest:
        """See the hook ``build_request``."""
        return build_request(request)

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        """See the hook ``recognizes``: by the fields that only vLLM writes."""
        found = super().recognizes(event)
        if found is Recognition.NO or not isinstance(event.get("choices"), list):
            return found
        marked = (
            str(event.get("system_fingerprint")).startswith("vllm-")
            or any(mark in event for mark in _MARKS)
            or any(mark in c for c in event["choices"] if isinstance(c, dict) for mark in _CHOICE_MARKS)
        )
        return Recognition.CERTAIN if marked else found


plugin = VLLM()
