"""Requests to llama.cpp's ``/v1/chat/completions``.

Facts: ``oaicompat_chat_params_parse`` in the server's ``server-common.cpp``; provider document "llama.cpp server".
"""

from __future__ import annotations

from crosswalk import Access
from crosswalk.service import ChatRequest, HTTPRequest, OpenAIChatStyle, build_openai_chat_request

__all__ = ["ACCESS", "build_request"]

ACCESS = Access(
    base_url="http://127.0.0.1:8080",
    base_url_variables=("LLAMACPP_BASE_URL",),
    api_key_variables=("LLAMA_API_KEY",),
)
_STYLE = OpenAIChatStyle(top_k=True, reasoning="reasoning_content")


def build_request(request: ChatRequest) -> HTTPRequest:
    """*request* for the chat endpoint.

    Raises:
        UnsupportedRequestError: a message holds what the API cannot take.
    """
    return build_openai_chat_request(request, _STYLE)
