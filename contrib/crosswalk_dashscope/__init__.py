"""DashScope, where Alibaba Cloud serves Qwen: its own API, and its compatible mode in OpenAI's dialect.

Facts: ``tests/captures/dashscope/README.md`` names the public page of each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crosswalk.plugins import (
    Access,
    DialectFamily,
    ErrorInfo,
    OpenAIChatDialect,
    ProviderInfo,
    VendorErrors,
    WayBack,
    error_info,
    hookimpl,
)
from crosswalk_dashscope.native import NativeDialect

if TYPE_CHECKING:
    from crosswalk.plugins import ChatRequest, HTTPRequest

__all__ = ["DashScope", "plugin"]

ACCESS = Access.by_name("https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "DASHSCOPE")

_ERRORS = VendorErrors(__name__, "dashscope")


class DashScope(DialectFamily):
    """Reads both of DashScope's APIs, and asks the compatible mode."""

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """See the hook ``provider_info``."""
        return ProviderInfo(
            title="DashScope",
            model_classes="crosswalk_dashscope:models.toml",
            endpoints=(
                "/api/v1/services/aigc/text-generation/generation",
                "/api/v1/services/aigc/multimodal-generation/generation",
                "/compatible-mode/v1/chat/completions",
            ),
            documentation="https://www.alibabacloud.com/help/en/model-studio/qwen-api-reference",
            message_paths=(*OpenAIChatDialect.message_paths, "output.choices[].message", "output.*"),
            text_paths=OpenAIChatDialect.text_paths,
            pieces=(*OpenAIChatDialect.pieces, "output.choices[].logprobs.content"),
            access=ACCESS,
            way_back=WayBack(takes_reasoning=True, shows_pictures=True, names_speakers=True),
            speaks=("anthropic", "openai_responses"),
        )

    @hookimpl
    def build_request(self, request: ChatRequest) -> HTTPRequest:
        """See the hook ``build_request``: the compatible mode, in which thinking is on or off."""
        from crosswalk.plugins import (
            Drops,
            HTTPRequest,
            OpenAIChatStyle,
            ReasoningEffort,
            build_openai_chat_request,
        )

        style = OpenAIChatStyle(options={"top_k": "top_k"}, takes_empty=False)
        http_request, drops = build_openai_chat_request(request, style), Drops(request)
        effort = request.reasoning_effort
        if effort is not None:
            del http_request.body["reasoning_effort"]
            http_request.body["enable_thinking"] = effort is not ReasoningEffort.NONE
            if effort is not ReasoningEffort.NONE:
                drops.clamp("reasoning_effort", True, "thinking is on or off")
        adaptations = (*http_request.adaptations, *drops.found())
        return HTTPRequest(
            http_request.path, http_request.body, adaptations=adaptations, spellings=http_request.spellings
        )

    @hookimpl
    def map_error(self, status: int | None, body: Any) -> ErrorInfo:
        """See the hook ``map_error``: the code says more than the status."""
        return dashscope_error(status, body)


def dashscope_error(status: int | None, body: Any) -> ErrorInfo:
    """Read an error in the form of either API. *status* is ``None`` for one inside a stream."""
    return _ERRORS.refined(error_info(status, body))


plugin = DashScope(NativeDialect(dashscope_error), OpenAIChatDialect())
