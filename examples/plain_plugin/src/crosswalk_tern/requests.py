"""Requests to Tern, which takes the messages, tools and options of OpenAI's chat at an address of its own."""

from __future__ import annotations

from crosswalk.plugins import ChatRequest, HTTPRequest, OpenAIChatStyle, build_openai_chat_request

STYLE = OpenAIChatStyle(path="/v1/tell", include_usage=False)


def build_request(request: ChatRequest) -> HTTPRequest:
    """*request* in Tern's words."""
    return build_openai_chat_request(request, STYLE)
