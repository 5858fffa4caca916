"""Hugging Face's Text Generation Inference: ``/generate``, ``/generate_stream``, and its OpenAI layer.

Facts: provider document "Hugging Face Text Generation Inference".
"""

from __future__ import annotations

from typing import Any

from crosswalk.plugins import DialectFamily, ErrorInfo, ProviderInfo, hookimpl
from crosswalk_tgi.native import NativeDialect, tgi_error
from crosswalk_tgi.openai import OpenAILayer

__all__ = ["TGI", "plugin"]


class TGI(DialectFamily):
    """The hooks for a TGI server: the first event says which of its dialects a stream is in."""

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """See the hook ``provider_info``. Every token of the native stream differs in more than its text."""
        return ProviderInfo(
            title="Text Generation Inference",
            api=1,
            endpoints=("/generate", "/generate_stream", "/", "/invocations", *OpenAILayer.endpoints),
            documentation="https://huggingface.co/docs/text-generation-inference/reference/api_reference",
            text_leaves=OpenAILayer.text_leaves,
            pieces=(*NativeDialect.pieces, *OpenAILayer.pieces),
        )

    @hookimpl
    def map_error(self, status: int, body: Any) -> ErrorInfo:
        """See the hook ``map_error``."""
        return tgi_error(status, body)


plugin = TGI(NativeDialect(), OpenAILayer())
