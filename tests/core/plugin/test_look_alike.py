"""A stranger's server that speaks OpenAI's dialect: one class reads it and asks it, as the shipped look-alikes do."""

from __future__ import annotations

from typing import Any, ClassVar

from crosswalk import ErrorKind, Registry, registry as default_registry
from crosswalk.plugins import Access, ChatRequest, HostedTool, HTTPRequest, OpenAIChatDialect, VendorErrors
from crosswalk.service import Endpoint, SyncLLMService, build_http_request
from crosswalk.testing.replay import Answer, ReplayServer


class Cerebras(OpenAIChatDialect):
    """All that an author writes."""

    title = "Cerebras"
    access = Access.by_name("https://api.cerebras.ai/v1", "CEREBRAS")


class Refined(Cerebras):
    """A server with words of its own."""

    reasoning_name = "reasoning"
    style: ClassVar[Any] = {"options": {"max_tokens": "max_completion_tokens"}}
    hosted_tools: ClassVar[Any] = {"web_search": {"type": "browser_search"}}
    errors = VendorErrors("crosswalk_openai", "groq")
    text_paths = OpenAIChatDialect.text_paths

    def build_request(self, request: ChatRequest) -> HTTPRequest:
        return self.built(request, path="/v2/chat")


def registry_of(plugin: OpenAIChatDialect) -> Registry:
    registry = Registry(installed=[])
    registry.register(plugin, "cerebras")
    return registry


def test_a_class_with_an_access_can_be_asked() -> None:
    plugin = Cerebras()
    default_registry.register(plugin, "cerebras")
    try:
        with ReplayServer() as server:
            server.add(Answer.text("Hello."), path="/v1/chat/completions")
            endpoint = Endpoint("cerebras", model="m", base_url=f"{server.url}/v1", api_key="k")
            with SyncLLMService(endpoint) as service:
                answer = service.complete("Hi")
            assert (answer.text, answer.metadata.provider_id) == ("Hello.", "cerebras")
            assert server.requests[0].json()["messages"] == [{"role": "user", "content": "Hi"}]
    finally:
        default_registry.unregister(plugin, "cerebras")


def test_its_style_and_tools_are_those_of_its_class() -> None:
    tools = (HostedTool("web_search"),)
    request = ChatRequest("Hi", model="m", max_tokens=9, hosted_tools=tools)
    built = build_http_request(request, "cerebras", registry=registry_of(Refined()))
    assert built.path == "/v2/chat"
    assert (built.body["max_completion_tokens"], built.body["tools"]) == (9, [{"type": "browser_search"}])


def test_a_class_that_only_asks_otherwise_still_reads_as_it_declares() -> None:
    """Its events may be read without the hooks."""
    assert registry_of(Refined()).mapper("cerebras").is_unmodified


def test_what_its_vendor_says_of_errors_counts_first() -> None:
    body = {"error": {"message": "no access", "code": "blocked_api_access"}}
    plain, refined = (
        registry_of(one).mapper("cerebras").map_error(400, body) for one in (Cerebras(), Refined())
    )
    assert plain is not None
    assert refined is not None
    assert (plain.kind, refined.kind) == (ErrorKind.INVALID_REQUEST, ErrorKind.QUOTA)
