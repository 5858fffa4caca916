"""llama.cpp: the native ``/completion`` of its server, and its OpenAI layer, which llama-cpp-python has too.

Facts: provider document "llama.cpp server". What the server answers in Anthropic's form or as a Responses API is read
by the providers of those dialects.
"""

from __future__ import annotations

from typing import Any

from crosswalk import Dialect, DialectFamily, ErrorInfo, MappingState, ProviderInfo, error_info, hookimpl
from crosswalk.service.request import ChatRequest, HTTPRequest
from crosswalk_llamacpp.native import NativeDialect
from crosswalk_llamacpp.nothing import NothingDialect
from crosswalk_llamacpp.openai import OpenAILayer
from crosswalk_llamacpp.requests import ACCESS, build_request

__all__ = ["LlamaCpp", "plugin"]

DOCUMENTATION = "https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md"


class LlamaCpp(DialectFamily):
    """The hooks for a llama.cpp server: the first event that says anything tells the dialect of the rest."""

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """See the hook ``provider_info``."""
        return ProviderInfo(
            title="llama.cpp",
            endpoints=("/completion", "/completions", "/infill", *OpenAILayer.endpoints),
            documentation=DOCUMENTATION,
            text_leaves=(*NativeDialect.text_leaves, *OpenAILayer.text_leaves),
            pieces=(*NativeDialect.pieces, *OpenAILayer.pieces),
            speaks=("openai_responses", "anthropic"),
            access=ACCESS,
        )

    def dialect(self, event: Any, state: MappingState) -> Dialect:
        """The dialect of this stream; of a ``null`` before it, none.

        Raises:
            UnknownEventError: as from ``DialectFamily.dialect``.
        """
        return _NOTHING if event is None else super().dialect(event, state)

    @hookimpl
    def build_request(self, request: ChatRequest) -> HTTPRequest:
        """See the hook ``build_request``."""
        return build_request(request)

    @hookimpl
    def map_error(self, status: int, body: Any) -> ErrorInfo:
        """See the hook ``map_error``."""
        return error_info(status, body)


_NOTHING = NothingDialect()
plugin = LlamaCpp(NativeDialect(), OpenAILayer())
