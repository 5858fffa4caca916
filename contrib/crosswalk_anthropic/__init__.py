"""Anthropic: the Messages API, on its own servers, Amazon Bedrock and Google Vertex, and the older Text Completions.

Facts: provider document "Anthropic Messages". The dialect, which other servers speak too, is
:class:`AnthropicDialect`. :class:`HostedMessages` has the differences of Anthropic's own servers.
"""

from __future__ import annotations

from typing import ClassVar

from crosswalk.plugins import (
    Access,
    BatchFile,
    CallIds,
    DialectFamily,
    ProviderInfo,
    ServerTool,
    WayBack,
    hookimpl,
    requests_of,
)
from crosswalk_anthropic.messages import AnthropicDialect, CompletionsDialect, HostedMessages, anthropic_error

__all__ = ["Anthropic", "AnthropicDialect", "CompletionsDialect", "HostedMessages", "plugin"]

ACCESS = Access(
    base_url="https://api.anthropic.com",
    base_url_variables=("ANTHROPIC_BASE_URL",),
    api_key_variables=("ANTHROPIC_API_KEY",),
    api_key_header="x-api-key",
    api_key_scheme=None,
)


class Anthropic(DialectFamily):
    """The hooks for Anthropic. The first event decides the API of a stream."""

    undecided: ClassVar[tuple[str, ...]] = ("ping",)
    map_error = staticmethod(hookimpl(anthropic_error))
    build_request = staticmethod(requests_of("crosswalk_anthropic.requests"))

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
            # https://docs.anthropic.com/en/api/creating-message-batches
            batch_file=BatchFile(
                body="params",
                names_endpoint=False,
                model="line",
                ids=CallIds(pattern="[a-zA-Z0-9_-]+"),
                results="anthropic_batch",
            ),
        )


plugin = Anthropic(HostedMessages(), CompletionsDialect())
