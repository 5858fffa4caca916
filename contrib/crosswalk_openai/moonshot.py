"""Moonshot AI's Kimi API: OpenAI's dialect with the token counts of a stream inside the choice.

Facts: ``tests/captures/moonshot/README.md`` names the public page of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from crosswalk.plugins import (
    Access,
    CallIds,
    VendorErrors,
    WayBack,
)
from crosswalk_openai import NO_REASONING, ChatDialect

if TYPE_CHECKING:
    from crosswalk.plugins import ChatRequest, HTTPRequest


class Moonshot(ChatDialect):
    """Reads and asks Moonshot AI's Kimi API."""

    title: ClassVar[str] = "Moonshot AI"
    model_classes: ClassVar[str | None] = "crosswalk_openai:models/moonshot.toml"
    documentation: ClassVar[str | None] = "https://platform.kimi.ai/docs/api/chat"
    errors: ClassVar[VendorErrors | None] = VendorErrors("crosswalk_openai", "moonshot")
    access: ClassVar[Access | None] = Access.by_name("https://api.moonshot.ai/v1", "MOONSHOT")
    style: ClassVar[Mapping[str, Any]] = {"takes_empty": False, "call_reasoning": NO_REASONING}
    way_back: ClassVar[WayBack] = WayBack(takes_reasoning=True, shows_pictures=True, names_speakers=True)
    speaks: ClassVar[tuple[str, ...]] = ("anthropic",)
    endpoints: ClassVar[tuple[str, ...]] = ("/v1/chat/completions",)
    cached_tokens: ClassVar[tuple[str, ...]] = ("cached_tokens", *ChatDialect.cached_tokens)
    usage_key: ClassVar[str | None] = None  # the counts of two places are compared
    text_paths: ClassVar[tuple[str, ...]] = ChatDialect.text_paths
    call_ids: ClassVar[CallIds | None] = CallIds()  # two calls of one id are refused

    def build_request(self, request: ChatRequest) -> HTTPRequest:
        """See the hook ``build_request``."""
        from crosswalk_openai.requests import continue_last_answer

        built = self.built(request, arrange=continue_last_answer)
        if built.body.get("reasoning_effort") == "none":
            del built.body["reasoning_effort"]
            built.body["thinking"] = {"type": "disabled"}
        return built

    def is_marked(self, event: dict[str, Any]) -> bool:
        """Whether a choice has counts. TGI has a null there."""
        choices = (choice for choice in event["choices"] if type(choice) is dict)
        return any(type(choice.get("usage")) is dict for choice in choices)


plugin = Moonshot()
