"""``plan``: what a service would send, and every difference from the request. Nothing is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any

import attrs
import pytest

from crosswalk import ChatResponse, ServerError, normalize
from crosswalk.config import Settings
from crosswalk.errors import ConfigurationError
from crosswalk.service import (
    Adaptation,
    AdaptationKind,
    ChatRequest,
    Endpoint,
    LLMService,
    NamedTool,
    RequestPlan,
    ResponseFormat,
    RetryPolicy,
    ServerFailures,
    SyncLLMService,
    UnsupportedRequestError,
    adaptations_of,
    build_http_request,
    read_request,
)
from crosswalk.testing.replay import Answer, ReplayServer
from crosswalk.wire.options import OPTIONS, PlaceKind

KEY = "sk-a-key-of-mine"
CLAUDE = Endpoint("anthropic", model="claude-opus-4-6", api_key=KEY)


def changed(request: ChatRequest) -> Generator[ChatRequest | ChatResponse, ChatResponse, None]:
    """A middleware that asks for something else."""
    yield attrs.evolve(request, messages="Ho")


def service_of(*endpoints: Endpoint, **options: Any) -> SyncLLMService:
    return SyncLLMService(*endpoints, settings=Settings(), **options)


def planned(endpoint: Endpoint, request: Any = "Hi", **options: Any) -> RequestPlan:
    with service_of(endpoint) as service:
        return service.plan(request, **options)


# ------------------------------------------------------------------------------------ what would be sent


def test_a_plan_says_where_a_request_would_go_and_what_would_be_changed() -> None:
    with service_of(CLAUDE) as service:
        plan = service.plan("Hi", reasoning_effort="xhigh", temperature=1)
    assert (plan.endpoint, plan.model, plan.model_class) == (CLAUDE, "claude-opus-4-6", "claude-4.6")
    assert plan.request.path == "/v1/messages"
    assert plan.request.body["output_config"] == {"effort": "max"}
    assert str(plan) == (
        "POST https://api.anthropic.com/v1/messages\n"
        "provider anthropic, model claude-opus-4-6, model class claude-4.6\n"
        "defaulted: max_tokens: 128000 is sent: the API needs it\n"
        "clamped: reasoning_effort: xhigh became max: claude-opus-4-6 takes no 'xhigh'"
    )


def test_without_a_thread_it_is_the_same_plan() -> None:
    plan = LLMService(CLAUDE, settings=Settings()).plan("Hi", reasoning_effort="xhigh")
    assert str(plan) == str(planned(CLAUDE, reasoning_effort="xhigh"))


@pytest.mark.parametrize(
    ("endpoint", "said"),
    [
        (Endpoint("anthropic", model="claude-opus-4-8", api_key=KEY), "model class claude-opus-4.7"),
        (Endpoint("anthropic", model="claude-opus-7", api_key=KEY), "model class claude-opus-5.5 (assumed)"),
        (Endpoint("anthropic", model="our-own", api_key=KEY), "model class unknown"),
        (Endpoint("perplexity", model="sonar", api_key=KEY), "no model class"),
    ],
)
def test_a_plan_says_how_well_the_model_is_known(endpoint: Endpoint, said: str) -> None:
    who = str(planned(endpoint)).splitlines()[1]
    assert who == f"provider {endpoint.provider}, model {endpoint.model}, {said}"


def test_an_unknown_model_loses_nothing() -> None:
    endpoint = Endpoint("openai", model="our-own", api_key=KEY)
    plan = planned(endpoint, reasoning_effort="max", temperature=0.3, stop=["END"])
    assert (plan.model_class, plan.adaptations) == ("unknown", ())
    assert str(plan).splitlines()[2:] == ["all that is asked for is sent"]


def test_a_call_sends_what_its_plan_shows(server: ReplayServer) -> None:
    message = {"role": "assistant", "content": "Hi"}
    server.add(Answer.of_json({"model": "m", "choices": [{"message": message, "finish_reason": "stop"}]}))
    asked: dict[str, Any] = {"reasoning_effort": "xhigh", "cache_marks": ["system"]}
    endpoint = Endpoint("openai", model="gpt-5.1", base_url=server.url, api_key=KEY)
    with service_of(endpoint) as service:
        plan = service.plan("Hi", **asked)
        assert not server.requests
        response = service.complete("Hi", **asked)
    assert [one.kind.value for one in plan.adaptations] == ["clamped"]
    assert adaptations_of(response) == plan.adaptations
    assert server.requests[0].json() == plan.request.body


@pytest.mark.parametrize(
    "options", [{}, {"middleware": [changed]}, {"base_url": ""}], ids=["known", "middleware", "found"]
)
def test_a_call_sends_what_was_prepared_unless_it_is_not_known_before(
    server: ReplayServer, options: dict[str, Any]
) -> None:
    """A middleware may change the request, and an address alone says what server is there only in the call."""
    message = {"role": "assistant", "content": "Hi"}
    server.add(Answer.of_json({"model": "m", "choices": [{"message": message, "finish_reason": "stop"}]}))
    is_found = "base_url" in options
    endpoints = [] if is_found else [Endpoint("vllm", model="m", base_url=server.url)]
    options = {"base_url": server.url} if is_found else options
    request = ChatRequest("Hi", model="m")

    async def call() -> ChatRequest:
        async with LLMService(*endpoints, settings=Settings(), **options) as service:
            prepared = service.prepare(request)
            if not is_found:
                await service.complete(prepared)
            return prepared

    prepared = asyncio.run(call())
    assert (prepared is request) is bool(options)
    for sent in server.requests:
        assert sent.json()["messages"][0]["content"] == ("Ho" if options else "Hi")


def test_an_answer_that_was_read_has_no_adaptations() -> None:
    body = b'{"message": {"content": "Hi"}, "done": true, "done_reason": "stop"}'
    assert adaptations_of(normalize(body, "ollama")) == ()


def test_a_stream_is_planned_as_one() -> None:
    request = ChatRequest("Hi", stream=True)
    assert planned(CLAUDE, request).request.body["stream"] is True
    assert "stream" not in planned(CLAUDE, "Hi").request.body


# ------------------------------------------------------------------------------------ what is refused


def test_what_has_a_meaning_is_refused_by_its_name_and_what_was_left_out_is_named() -> None:
    endpoint = Endpoint("openai", model="o3", api_key=KEY)
    asked: dict[str, Any] = {"temperature": 0.3, "top_k": 4, "cache_marks": ["system"]}
    with pytest.raises(UnsupportedRequestError, match="top_k .*; temperature") as caught:
        planned(endpoint, **asked)
    assert sorted(caught.value.options) == ["temperature", "top_k"]
    with service_of(endpoint, on_unsupported="drop") as service:
        plan = service.plan("Hi", **asked)
    assert {(one.field, one.asked, one.sent) for one in plan.adaptations if one.refuses} == {
        ("temperature", 0.3, None),
        ("top_k", 4, None),
    }


HINTS = {name: place for name, place in OPTIONS.items() if place.kind is PlaceKind.HINT}


@pytest.mark.parametrize(
    "provider",
    ["anthropic", "openai", "openai_responses", "gemini", "mistral", "ollama", "bedrock", "cohere"],
)
def test_a_hint_is_no_error(provider: str) -> None:
    """A budget of thought that is no number is a mistake, so it is given as one."""
    named = 0
    for name, place in HINTS.items():
        for value in (2000, "some", {"a": 1}, True):
            if place.is_neutral(value) or (name == "thinking_budget" and value != 2000):
                continue
            request = ChatRequest("Hi", model="our-own", extra_options={name: value})
            changes = build_http_request(request, provider).adaptations
            named += any(one.field == name for one in changes)
    assert named > 20


def test_an_endpoint_that_cannot_take_the_conversation_is_passed_over(server: ReplayServer) -> None:
    picture = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
    message = {"role": "user", "content": [picture]}
    deaf = Endpoint("anthropic", model="m", base_url=server.url, api_key=KEY)
    hears = Endpoint("openai", model="n", base_url=server.url, api_key=KEY)
    with service_of(deaf, hears) as service:
        assert service.plan([message]).model == "n"
    with pytest.raises(UnsupportedRequestError) as caught:
        planned(deaf, [message])
    assert caught.value.options == ("messages",)
    assert not server.requests


def test_a_server_that_has_failed_is_planned_last(server: ReplayServer) -> None:
    time = [0.0]
    nowhere = Endpoint("vllm", model="first", base_url="http://127.0.0.1:9")
    answers = Endpoint("vllm", model="second", base_url=server.url)
    message = {"role": "assistant", "content": "Hi"}
    server.add(
        Answer.of_json({"model": "m", "choices": [{"message": message, "finish_reason": "stop"}]}), times=2
    )
    policy = RetryPolicy(attempts=1, cool_down_seconds=30)
    with service_of(nowhere, answers, retry=policy, timer=lambda: time[0]) as service:
        assert service.plan("Hi").model == "first"
        assert len(service.complete("Hi").attempts) == 2
        assert [service.plan("Hi").model for _ in range(2)] == ["second", "second"]
        assert len(service.complete("Hi").attempts) == 1
        time[0] = 31.0
        assert [service.plan("Hi").model for _ in range(2)] == ["first", "first"], (
            "a plan takes nobody's turn"
        )


def test_a_server_that_must_be_asked_what_it_is_has_no_plan(server: ReplayServer) -> None:
    with pytest.raises(ConfigurationError, match="name the provider") as caught:
        planned(Endpoint(base_url=server.url))
    assert caught.value.key == "provider"
    assert not server.requests


# ------------------------------------------------------------------------------------ what it does not show


def test_a_plan_holds_no_credential() -> None:
    server = {"name": "s", "url": "https://s.example", "authorization_token": "token-of-mine"}
    headers = {"Cookie": "cookie-of-mine", "X-Team-Key": "key-of-mine", "X-Team": "ours"}
    secrets = {"secrets": [{"name": "a", "value": "secret-of-mine"}], "secretary": "Jo"}
    endpoint = Endpoint("anthropic", model="m", api_key=KEY, headers={"X-Org": "org-of-mine"})
    servers = [server, {"headers": headers}, secrets]
    own = {"anthropic": {"mcp_servers": servers, "metadata": {"user_id": "u"}}}
    plan = planned(endpoint, ChatRequest("Hi", provider_options=own), headers={"X-More": "more-of-mine"})
    assert plan.request.headers == {
        "Content-Type": "application/json",
        "User-Agent": "crosswalk",
        "anthropic-version": "2023-06-01",
        "x-api-key": "<secret>",
        "X-Org": "<secret>",
        "X-More": "<secret>",
    }
    assert plan.request.body["mcp_servers"] == [
        {**server, "authorization_token": "<secret>"},
        {"headers": {"Cookie": "<secret>", "X-Team-Key": "<secret>", "X-Team": "ours"}},
        {"secrets": [{"name": "<secret>", "value": "<secret>"}], "secretary": "Jo"},
    ]
    assert own["anthropic"]["mcp_servers"] == servers
    assert servers[0]["authorization_token"] == "token-of-mine"
    assert plan.request.body["metadata"] == {"user_id": "u"}
    assert "of-mine" not in f"{plan} {plan!r} {plan.request} {plan.request.body}"


LONG = "once upon a time " * 20


@pytest.mark.parametrize(
    ("field", "value", "shown"),
    [
        ("top_k", 40, 40),
        ("seed", 2**70, "number"),
        ("store", False, False),
        ("reasoning_effort", "high", "high"),
        ("metadata", {"a": LONG}, "1 field"),
        ("stop", ("A", "B"), "A, B"),
        ("tools", ({}, {}), "2 items"),
        ("user", LONG, f"{LONG[:59]}…"),
        ("user", "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789", "<secret>"),
        ("mcp_servers[0].authorization_token", "abc", "<secret>"),
        ("mcp_servers[0].headers.X-Api-Key", 12345, "<secret>"),
        ("headers.Ocp-Apim-Subscription-Key", "abc", "<secret>"),
        ("headers.X-Team-Key", "abc", "<secret>"),
        ("secretary", "abc", "abc"),
        ("prompt_cache_key", "tides", "tides"),
        ("max_tokens", 9, 9),
        ("tool_choice", NamedTool("f"), "named"),
        ("response_format", ResponseFormat(), "json_object"),
        ("response_format", ResponseFormat({"type": "object"}), "json_schema"),
        ("odd", Settings(), "Settings"),
    ],
    ids=str,
)
def test_values_are_short_and_no_secrets(field: str, value: Any, shown: Any) -> None:
    change = Adaptation(field, AdaptationKind.CLAMPED, "why", asked=value, sent=value)
    assert (change.asked, change.sent) == (shown, shown)
    assert str(change) == f"{field}: why"
    assert Adaptation(**change.plain()) == change


def test_what_a_client_said_is_named_in_its_own_words_with_its_value() -> None:
    said = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "a_new_field": LONG, "user": "ada"}
    request = read_request(said, "openai-chat").request
    built = build_http_request(request, "cohere", on_unsupported="drop")
    named = {one.field: (one.asked, one.refuses) for one in built.adaptations}
    assert named == {"a_new_field": (f"{LONG[:59]}…", True), "user": ("ada", False)}


def test_services_share_what_they_know_of_a_server() -> None:
    """One that has no other server leaves it alone for those that have."""
    shared, retry = ServerFailures(), RetryPolicy(attempts=1)
    with ReplayServer() as server:
        server.add(Answer.failure(503))
        endpoint = Endpoint("vllm", base_url=server.url, model="m", api_key=KEY)
        with (
            SyncLLMService(endpoint, retry=retry, failures=[shared]) as alone,
            SyncLLMService(endpoint, CLAUDE, retry=retry, failures=[shared, ServerFailures()]) as service,
        ):
            assert service.plan("Hi", max_tokens=9).endpoint == endpoint
            with pytest.raises(ServerError):
                alone.complete("Hi")
            assert service.plan("Hi", max_tokens=9).endpoint == CLAUDE
            assert alone.plan("Hi").endpoint == endpoint
        with pytest.raises(ConfigurationError, match="for each endpoint"):
            SyncLLMService(endpoint, failures=[shared, shared])
