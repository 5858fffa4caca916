"""llama.cpp: the native ``/completion`` of its server, and its OpenAI layer, which llama-cpp-python has too.

Facts: provider document "llama.cpp server". What the server answers in Anthropic's form or as a Responses API is read
by the providers of those dialects.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from crosswalk.plugins import (
    Access,
    DialectFamily,
    MappingState,
    ProviderInfo,
    ResponseDelta,
    UsageInfo,
    hookimpl,
)
from crosswalk_llamacpp.native import NativeDialect
from crosswalk_llamacpp.openai import Notes, OpenAILayer

if TYPE_CHECKING:
    from crosswalk.plugins import ChatRequest, HTTPRequest

__all__ = ["LlamaCpp", "plugin"]

ACCESS = Access(
    base_url="http://127.0.0.1:8080",
    base_url_variables=("LLAMACPP_BASE_URL",),
    api_key_variables=("LLAMA_API_KEY",),
)


class LlamaCpp(DialectFamily):
    """The hooks for a llama.cpp server: the first event that says anything tells the dialect of the rest.

    The event ``null`` says nothing, but that of several prompts, whose answers are streamed, one more has begun.
    """

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """See the hook ``provider_info``."""
        return ProviderInfo(
            title="llama.cpp",
            api=1,
            endpoints=("/completion", "/completions", "/infill", *OpenAILayer.endpoints),
            documentation="https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md",
            text_leaves=(*NativeDialect.text_leaves, *OpenAILayer.text_leaves),
            pieces=(*NativeDialect.pieces, *OpenAILayer.pieces),
            speaks=("openai_responses", "anthropic"),
            access=ACCESS,
            spell=OpenAILayer().spell,
        )

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """See the hook ``map_delta``. An answer that ``null`` has begun must end; the first begins without a word."""
        if event is None:
            notes = state.own(Notes)
            state.begin(notes.prompts)
            notes.prompts += 1
            return ()
        return super().map_delta(event, state)

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """See the hook ``map_usage``."""
        return None if event is None else super().map_usage(event, state)

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """See the hook ``extensions``."""
        return {} if event is None else super().extensions(event, state)

    @hookimpl
    def build_request(self, request: ChatRequest) -> HTTPRequest:
        """See the hook ``build_request``: OpenAI's fields, as ``oaicompat_chat_params_parse`` in the server reads them."""
        from crosswalk.plugins import OpenAIChatStyle, build_openai_chat_request

        return build_openai_chat_request(request, OpenAIChatStyle(top_k=True, reasoning="reasoning_content"))


plugin = LlamaCpp(NativeDialect(), OpenAILayer())
