"""Cohere: chat v2 and v1, and the Generate API before them, whole and streamed, also as Amazon Bedrock invokes them.

Facts: provider document "Cohere Chat".
"""

from __future__ import annotations

from crosswalk.plugins import Access, DialectFamily, ProviderInfo, WayBack, hookimpl, requests_of
from crosswalk_cohere.chat import PIECES, ChatDialect
from crosswalk_cohere.legacy import GenerateDialect, LegacyChatDialect
from crosswalk_cohere.shared import cohere_error

__all__ = ["ChatDialect", "Cohere", "GenerateDialect", "LegacyChatDialect", "plugin"]


ACCESS = Access(
    base_url="https://api.cohere.com",
    base_url_variables=("CO_API_URL",),
    api_key_variables=("CO_API_KEY", "COHERE_API_KEY"),
)


class Cohere(DialectFamily):
    """The hooks for Cohere. The first event decides the API of a stream."""

    build_request = staticmethod(requests_of("crosswalk_cohere.requests"))
    map_error = staticmethod(hookimpl(cohere_error))

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """See the hook ``provider_info``. None of the paths of v1: its end repeats the text, which is compared."""
        return ProviderInfo(
            title="Cohere",
            model_classes="crosswalk_cohere:models.toml",
            endpoints=("/v2/chat", "/v1/chat", "/v1/generate"),
            documentation="https://docs.cohere.com/reference/chat",
            message_paths=("message", "delta.message", "generations[]"),
            text_paths=ChatDialect.text_paths,
            pieces=(*PIECES, "citations"),
            access=ACCESS,
            way_back=WayBack(takes_citations=True, shows_pictures=True),
        )


plugin = Cohere(ChatDialect(), LegacyChatDialect(), GenerateDialect())
