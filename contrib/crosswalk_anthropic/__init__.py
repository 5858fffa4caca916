"""Anthropic: the Messages API, on its own servers, Amazon Bedrock and Google Vertex, and the older Text Completions.

Facts: provider document "Anthropic Messages". The dialect, which other servers speak too, is
:class:`AnthropicDialect`. This module has the differences of Anthropic's own servers.
"""

from __future__ import annotations

import re
from typing import Any

from crosswalk.plugins import (
    Access,
    CallIds,
    Dialect,
    DialectFamily,
    MappingState,
    ProviderInfo,
    Recognition,
    ServerTool,
    WayBack,
    hookimpl,
    requests_of,
)
from crosswalk_anthropic.messages import AnthropicDialect, CompletionsDialect, anthropic_error

__all__ = ["Anthropic", "AnthropicDialect", "CompletionsDialect", "HostedMessages", "plugin"]

ACCESS = Access(
    base_url="https://api.anthropic.com",
    base_url_variables=("ANTHROPIC_BASE_URL",),
    api_key_variables=("ANTHROPIC_API_KEY",),
    api_key_header="x-api-key",
    api_key_scheme=None,
)

# Other servers make ids of "msg_" or "req_" and hexadecimal digits.
_ID = re.compile(r"(msg_(bdrk_|vrtx_)?|req_)01(?=[0-9a-f]*[g-zA-Z])[0-9A-Za-z]{20,}")
_USAGE_MARKS = ("cache_creation", "inference_geo", "service_tier")


class HostedMessages(AnthropicDialect):
    """The Messages dialect as Anthropic's own models answer in it."""

    def recognizes(self, event: Any) -> Recognition:
        """See the hook ``recognizes``: certain by the form of an id and by counts of no other server."""
        result = super().recognizes(event)
        if result is Recognition.NO:
            return result
        message = event.get("message") if event["type"] == "message_start" else event
        usage = message.get("usage")
        marked = isinstance(usage, dict) and any(mark in usage for mark in _USAGE_MARKS)
        id = event.get("request_id") if event["type"] == "error" else message.get("id")
        return Recognition.CERTAIN if marked or _ID.fullmatch(str(id)) else result


class Anthropic(DialectFamily):
    """The hooks for Anthropic. The first event decides the API of a stream."""

    map_error = staticmethod(hookimpl(anthropic_error))
    build_request = staticmethod(requests_of("crosswalk_anthropic.requests"))

    def dialect(self, event: Any, state: MappingState) -> Dialect:
        """Return the dialect of this stream. A ping does not decide it, because either may begin with one."""
        if isinstance(event, dict) and event.get("type") == "ping":
            return self.dialects[0]
        return super().dialect(event, state)

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """See the hook ``provider_info``."""
        return ProviderInfo(
            title="Anthropic",
            model_classes="crosswalk_anthropic:models.toml",
            endpoints=("/v1/messages", "/v1/complete"),
            is_original=True,
            documentation="https://docs.anthropic.com/en/api/messages",
            message_paths=HostedMessages.message_paths,
            text_paths=(*HostedMessages.text_paths, *CompletionsDialect.text_paths),
            access=ACCESS,
            call_ids=CallIds(pattern="[a-zA-Z0-9_-]+"),
            call_names="[a-zA-Z0-9_-]{1,128}",
            way_back=WayBack(
                needs_signature=True,
                takes_citations=True,
                takes_media=("file",),
                shows_pictures=True,
                moves_system=True,
                knows_failures=True,
                server_tools=(
                    ServerTool("server_tool_use", "*_tool_result", "tool_use_id"),
                    ServerTool("mcp_tool_use", "mcp_tool_result", "tool_use_id"),
                ),
            ),
            hosted_tools=("web_search", "web_fetch", "code_execution"),
        )


plugin = Anthropic(HostedMessages(), CompletionsDialect())
