"""Requests to vLLM's ``/v1/chat/completions``.

Facts: vLLM's ``ChatCompletionRequest``, version 0.32: OpenAI's fields and the sampling parameters of its own.
"""

from __future__ import annotations

from crosswalk import Access
from crosswalk.service import ChatRequest, HTTPRequest, OpenAIChatStyle, build_openai_chat_request

__all__ = ["ACCESS", "build_request"]

ACCESS = Access(
    base_url="http://127.0.0.1:8000",
    base_url_variables=("VLLM_BASE_URL",),
    api_key_variables=("VLLM_API_KEY",),
)
_STYLE = OpenAIChatStyle(top_k=True, reasoning="reasoning")


def build_request(request: ChatRequest) -> HTTPRequest:
    """*request* for the chat endpoint.

    Raises:
        UnsupportedRequestError: a message holds what the API cannot take.
    """
    return build_openai_chat_request(request, _STYLE)
