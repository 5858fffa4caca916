"""Z.ai's GLM models: OpenAI's dialect with finish words and error codes of its own.

Facts: ``tests/captures/zai/README.md`` names the public page of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from crosswalk.plugins import (
    Access,
    FinishReason,
    VendorErrors,
    WayBack,
)
from crosswalk_openai import ChatDialect

if TYPE_CHECKING:
    from crosswalk.plugins import ChatRequest, HTTPRequest


_FINISH_REASONS: Mapping[str, FinishReason] = {
    "sensitive": FinishReason.CONTENT_FILTER,
    "network_error": FinishReason.ERROR,
    "model_context_window_exceeded": FinishReason.LENGTH,
}


class ZAI(ChatDialect):
    """Reads and asks Z.ai's chat completions."""

    title: ClassVar[str] = "Z.ai"
    model_classes: ClassVar[str | None] = "crosswalk_openai:models/zai.toml"
    documentation: ClassVar[str | None] = "https://docs.z.ai/api-reference/llm/chat-completion"
    errors: ClassVar[VendorErrors | None] = VendorErrors("crosswalk_openai", "zai")
    access: ClassVar[Access | None] = Access.by_name("https://api.z.ai/api/paas/v4", "ZAI")
    style: ClassVar[Mapping[str, Any]] = {
        "path": "/chat/completions",
        "takes_empty": False,
        "include_usage": False,  # the last chunk has it unasked
        "unsupported": dict.fromkeys(("seed", "parallel_tool_calls"), "the API has no such option"),
    }
    way_back: ClassVar[WayBack] = WayBack(takes_reasoning=True, shows_pictures=True, names_speakers=True)
    speaks: ClassVar[tuple[str, ...]] = ("anthropic",)
    endpoints: ClassVar[tuple[str, ...]] = (
        "/api/paas/v4/chat/completions",
        "/api/coding/paas/v4/chat/completions",
    )
    text_paths: ClassVar[tuple[str, ...]] = ChatDialect.text_paths
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = {**ChatDialect.finish_reasons, **_FINISH_REASONS}

    def build_request(self, request: ChatRequest) -> HTTPRequest:
        """See the hook ``build_request``: thinking is on or off, and tools are free."""
        from crosswalk.plugins import Drops, ReasoningEffort, ToolChoice

        http_request, drops = self.built(request), Drops(request)
        if request.tool_choice not in (None, ToolChoice.AUTO):
            del http_request.body["tool_choice"]
            drops.add("tool_choice", "the model decides whether to call a tool")
        effort = request.reasoning_effort
        if effort is not None:
            del http_request.body["reasoning_effort"]
            is_off = effort is ReasoningEffort.NONE
            http_request.body["thinking"] = {"type": "disabled" if is_off else "enabled"}
            if not is_off:
                drops.clamp("reasoning_effort", "enabled", "thinking is on or off")
        return http_request.adapted(*drops.found())

    def is_marked(self, event: dict[str, Any]) -> bool:
        """Whether a choice ended with a word that only Z.ai writes."""
        choices = [choice for choice in event["choices"] if type(choice) is dict]
        words = (choice.get("finish_reason") for choice in choices)
        return any(type(word) is str and word in _FINISH_REASONS for word in words)


plugin = ZAI()
