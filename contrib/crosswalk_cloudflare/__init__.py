"""Cloudflare Workers AI: its own answers and OpenAI's, each bare or inside the envelope of Cloudflare's API.

Facts: ``tests/captures/cloudflare/README.md`` names the public page of each.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from crosswalk.plugins import (
    Access,
    ConfigurationError,
    DialectFamily,
    MappingState,
    OpenAIChatDialect,
    ProviderInfo,
    Recognition,
    ResponseDelta,
    UsageInfo,
    hookimpl,
    require_object,
    take_error,
    take_same,
)
from crosswalk_cloudflare.native import Envelope, NativeDialect, cloudflare_error, is_failure

if TYPE_CHECKING:
    from crosswalk.plugins import ChatRequest, HTTPRequest

__all__ = ["Cloudflare", "plugin"]

_ENVELOPE_KEYS = {"result", "success", "errors", "messages"}
_BARE_KEYS = {"response", "tool_calls", "usage", "p"}
"""The keys of its own answers outside of the envelope."""
_SUCCESS_FIELDS: dict[str, Any] = {"success": True, "errors": [], "messages": []}


def _locate() -> str:
    account = os.environ.get("CLOUDFLARE_ACCOUNT_ID")
    if not account:
        raise ConfigurationError("cloudflare: no account; set CLOUDFLARE_ACCOUNT_ID or pass base_url=")
    return f"https://api.cloudflare.com/client/v4/accounts/{account}/ai/v1"


ACCESS = Access(
    base_url="https://api.cloudflare.com/client/v4/accounts/{account}/ai/v1",
    base_url_variables=("CLOUDFLARE_BASE_URL",),
    api_key_variables=("CLOUDFLARE_API_TOKEN", "CLOUDFLARE_API_KEY"),
    locate=_locate,
)


class Cloudflare(DialectFamily):
    """The hooks of Workers AI. The first event decides the dialect of an answer."""

    map_error = staticmethod(hookimpl(cloudflare_error))

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """See the hook ``provider_info``."""
        return ProviderInfo(
            title="Cloudflare Workers AI",
            model_classes="crosswalk_cloudflare:models.toml",
            endpoints=(
                "/client/v4/accounts/{account}/ai/run/{model}",
                "/client/v4/accounts/{account}/ai/v1/chat/completions",
            ),
            documentation="https://developers.cloudflare.com/workers-ai/",
            message_paths=(*OpenAIChatDialect.message_paths, "result.choices[].message", "result.*"),
            text_paths=(*NativeDialect.text_paths, *OpenAIChatDialect.text_paths),
            timestamp_key="p",
            pieces=OpenAIChatDialect.pieces,
            access=ACCESS,
            way_back=OpenAIChatDialect.way_back,
            speaks=("openai_responses",),
        )

    @hookimpl
    def build_request(self, request: ChatRequest) -> HTTPRequest:
        """See the hook ``build_request``: OpenAI's endpoint, which refuses a content of null and takes a bare schema."""
        from crosswalk.plugins import OpenAIChatStyle, build_openai_chat_request, thaw

        http_request = build_openai_chat_request(
            request, OpenAIChatStyle(takes_empty=False, null_content=False)
        )
        response_format = request.response_format
        is_openai_model = (request.model or "").startswith("@cf/openai/")
        if response_format is not None and response_format.schema is not None and not is_openai_model:
            http_request.body["response_format"]["json_schema"] = thaw(response_format.schema)
        return http_request

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        """See the hook ``recognizes``: no other server writes the envelope. Records of logs have a ``response``, too."""
        if isinstance(event, dict) and event.keys() >= _ENVELOPE_KEYS:
            return Recognition.CERTAIN
        if isinstance(event, dict) and "response" in event and not event.keys() <= _BARE_KEYS:
            return Recognition.NO
        return super().recognizes(event)

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """See the hook ``map_delta``: reads what is inside the envelope."""
        event = require_object(event)
        if is_failure(event):
            return (take_error(event, cloudflare_error(None, event)),)
        for key, value in _SUCCESS_FIELDS.items():
            if key in event:
                take_same(event, key, value)
        answer = _inside(event)
        state.own(Envelope).is_around = answer is not event
        return super().map_delta(answer, state)

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """See the hook ``map_usage``."""
        return super().map_usage(_inside(event), state)

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """See the hook ``extensions``."""
        remaining: dict[str, Any] = event
        answer = _inside(remaining)
        if answer is remaining:
            return super().extensions(remaining, state)
        remaining["result"] = super().extensions(answer, state)
        return remaining


def _inside(event: dict[str, Any]) -> dict[str, Any]:
    """Return the answer in *event*: its ``result``, or the event without an envelope."""
    result = event.get("result")
    return result if type(result) is dict else event


plugin = Cloudflare(NativeDialect(), OpenAIChatDialect())
