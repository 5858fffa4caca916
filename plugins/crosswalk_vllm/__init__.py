"""vLLM: ``/v1/chat/completions`` and ``/v1/completions``, versions 0.6 to 0.33.

Facts: provider document "vLLM". The dialect is OpenAI's. This module has vLLM's additions and differences.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from crosswalk.plugins import Access, BatchFile, OpenAIChatDialect, WayBack, hookimpl

if TYPE_CHECKING:
    from crosswalk.plugins import ChatRequest, HTTPRequest

__all__ = ["VLLM", "plugin"]

_OPTIONS = {"top_k": "top_k", "min_p": "min_p", "repeat_penalty": "repetition_penalty"}
"""Its names of the options that OpenAI's API lacks."""


class VLLM(OpenAIChatDialect):
    """The hooks for vLLM's OpenAI server."""

    title: ClassVar[str] = "vLLM"
    model_classes: ClassVar[str | None] = "crosswalk_vllm:models.toml"
    documentation: ClassVar[str | None] = (
        "https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html"
    )
    endpoints: ClassVar[tuple[str, ...]] = (
        *OpenAIChatDialect.endpoints,
        "/v1/chat/completions/batch",
    )
    speaks: ClassVar[tuple[str, ...]] = ("openai_responses", "anthropic")
    marks: ClassVar[tuple[str, ...]] = (
        "prompt_text",
        "kv_transfer_params",
        "prompt_logprobs",
        "choices[].stop_reason",
        "choices[].prompt_logprobs",
    )
    reasoning_name: ClassVar[str] = "reasoning"
    style: ClassVar[Mapping[str, Any]] = {
        "options": _OPTIONS,
        "takes_any_arguments": False,  # it parses arguments (vllm-project/vllm 43995)
    }
    cache_write_tokens: ClassVar[tuple[str, ...]] = (
        "prompt_tokens_details.created_cache_tokens",
        *OpenAIChatDialect.cache_write_tokens,
    )
    usage_details: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **OpenAIChatDialect.usage_details,
        **{
            f"{modality}_input_tokens": (
                f"prompt_tokens_details.multimodal_tokens.{modality}",
                f"prompt_tokens_details.{modality}_tokens",
            )
            for modality in ("audio", "image", "video")
        },
    }
    access: ClassVar[Access | None] = Access.by_name("http://127.0.0.1:8000", "VLLM")
    batch_file: ClassVar[BatchFile | None] = BatchFile()  # of ``vllm run-batch``
    text_paths: ClassVar[tuple[str, ...]] = OpenAIChatDialect.text_paths
    way_back: ClassVar[WayBack] = WayBack(takes_reasoning=True, shows_pictures=True, names_speakers=True)

    @hookimpl
    def build_request(self, request: ChatRequest) -> HTTPRequest:
        """See the hook ``build_request``: OpenAI's fields and vLLM's sampling parameters (version 0.32)."""
        from crosswalk.plugins import RequestRow

        return self.built(
            request, rows=(RequestRow("messages[].content[][video_url].video_url.url", "part.video"),)
        )

    def is_marked(self, event: dict[str, Any]) -> bool:
        """Whether *event* has what only vLLM writes: it sends ``null`` for numbers that others send on request."""
        if super().is_marked(event) or str(event.get("system_fingerprint")).startswith("vllm-"):
            return True
        for holder in (event, *event["choices"]):
            if type(holder) is dict and None in (
                holder.get("prompt_token_ids", ""),
                holder.get("token_ids", ""),
            ):
                return True
        return False


plugin = VLLM()
