"""A request holds only what makes sense, and a plugin's request is checked before it is sent."""

from __future__ import annotations

import copy
import json
import pickle
import re
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from crosswalk import (
    ChatMessage,
    PluginError,
    ResponseValidationError,
    ToolCall,
    UnknownProviderError,
)
from crosswalk.plugin.hooks import fits_ids
from crosswalk.plugins import CallIds, ProviderInfo, hookimpl, message_of
from crosswalk.request import as_request
from crosswalk.service import (
    Adaptation,
    AdaptationKind,
    CacheMark,
    ChatRequest,
    HostedTool,
    HTTPRequest,
    NamedTool,
    ReasoningEffort,
    ResponseFormat,
    ToolChoice,
    ToolDefinition,
    UnsupportedRequestError,
    build_http_request,
    read_request,
)
from crosswalk.types import AudioPart, ContentPart, FilePart, ImagePart
from wires import Echo, registry_of

TOOL = ToolDefinition("f")


def test_a_text_is_the_users_message() -> None:
    assert ChatRequest("hi").messages == (ChatMessage.user("hi"),)


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda request: pickle.loads(pickle.dumps(request))]
)
def test_a_request_can_be_copied_and_sent_to_another_process(
    copied: Callable[[ChatRequest], ChatRequest],
) -> None:
    call = ToolCall("1", "f", "{}")
    request = ChatRequest(
        [
            ChatMessage.user("hi"),
            ChatMessage.assistant(tool_calls=[call]),
            ChatMessage.tool_result("1", "yes"),
        ],
        model="m",
        tools=[ToolDefinition("f", parameters={"type": "object"})],
        tool_choice=NamedTool("f"),
        response_format=ResponseFormat({"type": "object"}, name="r"),
        cache_marks=[CacheMark("tools")],
        provider_options={"vllm": {"top_k": [1, {"a": None}]}},
    )
    assert copied(request) == request
    assert copied(request).provider_options["vllm"] == {"top_k": [1, {"a": None}]}


def test_turns_are_added_at_the_end() -> None:
    more = ChatMessage.assistant("yes")
    assert ChatRequest("hi").with_turns(more).messages == (ChatMessage.user("hi"), more)


def test_words_become_their_types() -> None:
    request = ChatRequest("hi", tool_choice="required", reasoning_effort="low", stop="end", tools=[TOOL])
    assert request.tool_choice is ToolChoice.REQUIRED
    assert request.reasoning_effort is ReasoningEffort.LOW
    assert request.stop == ("end",)
    assert ChatRequest("hi", tool_choice=NamedTool("f")).tool_choice == NamedTool("f")


@pytest.mark.parametrize(
    "wrong",
    [
        {"messages": ()},
        {"messages": 7},
        {"messages": ["hi"]},
        {"temperature": -0.1},
        {"temperature": float("nan")},
        {"temperature": float("inf")},
        {"temperature": True},
        {"top_p": 1.1},
        {"top_k": -2},
        {"top_k": 1.5},
        {"max_tokens": 0},
        {"seed": 2**70},
        {"stop": ("",)},
        {"stop": (1,)},
        {"tools": ("f",)},
        {"tools": (TOOL, TOOL)},
        {"tool_choice": "f"},
        {"reasoning_effort": "much"},
        {"response_format": "json"},
        {"model": ""},
        {"provider_options": {"vllm": 1}},
        {"provider_options": []},
        {"hosted_tools": ["telepathy"]},
        {"hosted_tools": ["web_search", "web_search"]},
        {"cache_marks": ["everything"]},
        {"cache_marks": [1]},
        {"cache_marks": [-2]},
        {"cache_marks": [True]},
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ResponseValidationError):
        ChatRequest(**{"messages": "hi", **wrong})


@pytest.mark.parametrize(
    "make",
    [
        lambda: ToolDefinition(""),
        lambda: ToolDefinition("f", 7),  # type: ignore[arg-type]
        lambda: ToolDefinition("f", strict=1),  # type: ignore[arg-type]
        lambda: ToolDefinition("f", parameters={"a": float("nan")}),
        lambda: NamedTool(""),
        lambda: ResponseFormat(name=""),
        lambda: HostedTool("web_search", allowed_domains="example.org"),
        lambda: HostedTool("web_search", blocked_domains=[""]),
        lambda: HostedTool("web_search", max_uses=0),
        lambda: CacheMark("system", "2h"),  # type: ignore[arg-type]
    ],
)
def test_what_makes_no_sense_alone_is_refused(make: Any) -> None:
    with pytest.raises(ResponseValidationError):
        make()


def test_nothing_is_shown_in_full() -> None:
    request = ChatRequest("x" * 5000, tools=[TOOL])
    assert len(repr(request)) < 400
    assert len(repr(HTTPRequest("/p", {"messages": ["x" * 5000]}, headers={"X-Key": "secret"}))) < 200
    assert "secret" not in repr(HTTPRequest("/p", {}, headers={"X-Key": "secret"}))


# ------------------------------------------------------------------------------------ building


class Asks:
    """A provider with any request that a test wants."""

    def __init__(self, built: Any) -> None:
        self.built = built

    @hookimpl
    def map_delta(self, event: Any) -> list[Any]:
        return []

    @hookimpl
    def build_request(self, request: ChatRequest) -> Any:
        if isinstance(self.built, Exception):
            raise self.built
        return self.built


ASK = ChatRequest("hi", model="m")


def build(built: Any, request: ChatRequest = ASK, **options: Any) -> HTTPRequest:
    return build_http_request(request, "test", registry=registry_of(test=Asks(built)), **options)


def test_options_of_the_provider_are_merged_into_the_body() -> None:
    """Objects key by key, lists one behind the other, and in the place of the plugin's own defaults."""
    options = {"test": {"a": {"c": 2}, "b": [2], "n": None}, "other": {"a": 7}}
    request = ChatRequest("hi", model="m", provider_options=options)
    built = build(HTTPRequest("/p", {"a": {"b": 1, "c": 1}, "b": [1]}), request)
    assert built.body == {"a": {"b": 1, "c": 2}, "b": [1, 2], "n": None}


@pytest.mark.parametrize(
    ("provider", "said", "options", "is_refused"),
    [
        ("anthropic", {}, {"max_tokens": 9}, False),  # the plugin's default
        ("anthropic", {"max_tokens": 5}, {"max_tokens": 9}, True),
        ("anthropic", {"max_tokens": 5}, {"max_tokens": 5}, False),
        ("anthropic", {"stop": ["a"]}, {"stop_sequences": ["b"]}, False),
        ("anthropic", {"stop": ["a"]}, {"stop_sequences": "b"}, True),
        ("anthropic", {"messages": [ChatMessage.system("s"), ChatMessage.user("u")]}, {"system": "t"}, True),
        ("ollama", {}, {"stream": True}, False),
        ("ollama", {"temperature": 0.5}, {"options": {"num_ctx": 1}}, False),
        ("ollama", {"temperature": 0.5}, {"options": {"temperature": 1}}, True),
        ("ollama", {"temperature": 0.5}, {"options": None}, True),
        ("openai", {"stream": True}, {"stream_options": {"include_usage": False}}, True),
        ("vllm", {}, {"model": "another"}, True),
        ("gemini", {"max_tokens": 5}, {"generationConfig": {"maxOutputTokens": 6}}, True),
        ("gemini", {"max_tokens": 5}, {"generation_config": {"max_output_tokens": 6}}, True),
        ("openai", {"max_tokens": 5}, {"max_tokens": 6}, True),
        ("openai", {"max_tokens": 5}, {"max_tokens": 6, "max_completion_tokens": 5}, True),
        ("vllm", {"max_tokens": 5}, {"max_completion_tokens": 6}, True),
        ("mistral", {"seed": 5}, {"seed": 6}, True),
        ("anthropic", {"hosted_tools": ["web_search"]}, {"tools": [{"type": "web_search_20260209", "name": "web_search"}]}, True),
        ("openai_responses", {"hosted_tools": ["web_search"]}, {"tools": [{"type": "web_search_preview"}]}, True),
        ("openai", {"tools": [TOOL]}, {"tools": [{"type": "function", "function": {"name": TOOL.name, "strict": True, "parameters": {"type": "array"}}}]}, True),
    ],
)  # fmt: skip
def test_what_the_request_says_is_not_said_otherwise(
    provider: str, said: dict[str, Any], options: dict[str, Any], is_refused: bool
) -> None:
    request = ChatRequest(**{"messages": "hi", "model": "m", "provider_options": {provider: options}, **said})
    if is_refused:
        with pytest.raises(UnsupportedRequestError, match="contradicts the request") as raised:
            build_http_request(request, provider, on_unsupported="drop")
        assert raised.value.options[0].startswith(f"provider_options['{provider}']")
    else:
        body = build_http_request(request, provider).body
        name, value = next(iter(options.items()))
        assert body[name] == value or set(value) <= set(body[name])


@pytest.mark.parametrize(
    ("provider", "said", "options", "expected"),
    [
        ("openai", {"max_tokens": 5}, {"max_tokens": 5}, {"max_completion_tokens": 5}),
        ("vllm", {"max_tokens": 5}, {"max_completion_tokens": 5}, {"max_tokens": 5}),
        ("vllm", {}, {"max_completion_tokens": 5}, {"max_completion_tokens": 5}),
        (
            "gemini",
            {"max_tokens": 5},
            {"generation_config": {"max_output_tokens": 5, "candidate_count": 1}},
            {"generationConfig": {"maxOutputTokens": 5, "candidate_count": 1}},
        ),
        (
            "anthropic",
            {"hosted_tools": ["web_search"]},
            {"tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 2}, {"type": "x", "name": "y"}]},
            {"tools": [
                {"type": "web_search_20250305", "name": "web_search", "max_uses": 2}, {"type": "x", "name": "y"},
            ]},
        ),
        (
            "openai_responses",
            {"hosted_tools": ["web_search"]},
            {"tools": [{"type": "web_search"}, {"type": "mcp", "server_label": "a"}, {"type": "mcp", "server_label": "b"}]},
            {"tools": [
                {"type": "web_search"}, {"type": "mcp", "server_label": "a"}, {"type": "mcp", "server_label": "b"},
            ]},
        ),
        (
            "gemini",
            {"hosted_tools": ["web_search", "web_fetch"]},
            {"tools": [{"google_search": {"a": 1}, "urlContext": {}, "codeExecution": {}}]},
            {"tools": [{"googleSearch": {"a": 1}}, {"urlContext": {}}, {"codeExecution": {}}]},
        ),
        (
            "bedrock",
            {"tools": [TOOL]},
            {"toolConfig": {"tools": [{"cachePoint": {"type": "default"}}, {"toolSpec": {"name": "g"}}, 7]}},
            None,
        ),
    ],
)  # fmt: skip
def test_one_option_in_two_spellings_goes_out_once(
    provider: str, said: dict[str, Any], options: dict[str, Any], expected: dict[str, Any] | None
) -> None:
    plain = ChatRequest(**{"messages": "hi", "model": "m", **said})
    before = build_http_request(plain, provider).body
    body = build_http_request(attrs.evolve(plain, provider_options={provider: options}), provider).body
    if expected is None:  # nothing is the same: all is there
        more = options["toolConfig"]["tools"]
        expected = {"toolConfig": {"tools": [*before["toolConfig"]["tools"], *more]}}
    assert body == {**before, **expected}


@pytest.mark.parametrize(
    ("provider", "hosted"),
    [
        ("openai_responses", {"type": "web_search"}),
        ("anthropic", {"type": "web_search_20250305", "name": "web_search"}),
        ("gemini", {"googleSearch": {}}),
        ("groq", {"type": "browser_search"}),
    ],
)
def test_ones_own_tools_stay_beside_hosted_ones(provider: str, hosted: dict[str, Any]) -> None:
    """Whether they are asked for in words that several providers know, or in the provider's own."""
    mine = ChatRequest("hi", model="m", tools=[TOOL])
    raw = attrs.evolve(mine, provider_options={provider: {"tools": [hosted]}})
    typed = attrs.evolve(mine, hosted_tools=["web_search"])
    bodies = [build_http_request(request, provider).body["tools"] for request in (mine, raw, typed)]
    assert bodies[1] == bodies[2] == [*bodies[0], hosted]


def test_a_hosted_tool_that_nobody_runs_is_refused_or_dropped() -> None:
    request = ChatRequest("hi", model="m", hosted_tools=[HostedTool("web_search"), "code_execution"])
    with pytest.raises(UnsupportedRequestError, match="the API runs no web_search") as raised:
        build_http_request(request, "vllm")
    assert raised.value.options == ("hosted_tools", "hosted_tools")
    built = build_http_request(request, "vllm", on_unsupported="drop")
    assert "tools" not in built.body
    known = build_http_request(
        attrs.evolve(request, hosted_tools=["web_fetch", "web_search"]),
        "openai_responses",
        on_unsupported="drop",
    )
    assert known.body["tools"] == [{"type": "web_search"}]
    assert [one.reason for one in known.dropped] == ["the API runs no web_fetch"]


def test_a_plugin_that_knows_nothing_of_hosted_tools_is_given_none() -> None:
    request = ChatRequest("hi", model="m", hosted_tools=["web_search"])
    with pytest.raises(UnsupportedRequestError, match="test: it cannot express hosted_tools"):
        build(HTTPRequest("/p", {}), request)


def lost(field: str, reason: str) -> Adaptation:
    return Adaptation.dropped(field, reason, refuses=True)


def test_what_cannot_be_expressed_raises_or_is_dropped() -> None:
    built = HTTPRequest("/p", {}, adaptations=(lost("seed", "there is none"), lost("top_k", "no")))
    with pytest.raises(
        UnsupportedRequestError, match=r"test: it cannot express seed \(there is none\); top_k"
    ) as raised:
        build(built)
    assert raised.value.options == ("seed", "top_k")
    assert build(built, on_unsupported="drop").dropped == built.dropped


def test_what_is_recorded_alone_is_no_reason_to_raise() -> None:
    dropped = (Adaptation.dropped("messages[0]", "another one's reasoning"),)
    assert build(HTTPRequest("/p", {}, adaptations=dropped)).dropped == dropped
    both = HTTPRequest("/p", {}, adaptations=(*dropped, lost("seed", "there is none")))
    with pytest.raises(UnsupportedRequestError, match="cannot express seed") as raised:
        build(both)
    assert raised.value.options == ("seed",)


def test_a_request_may_have_more_to_say_than_a_plugin_builds() -> None:
    class Sealed(ChatRequest):
        def built_by(self, build: Callable[[ChatRequest], HTTPRequest]) -> HTTPRequest:
            built = build(self)
            return attrs.evolve(built, body={**built.body, "seal": self.provider})

    request = Sealed("hi", model="m", hosted_tools=["web_search"])
    built = build_http_request(request, "vllm", on_unsupported="drop")
    assert built.body["seal"] == "vllm"
    assert [each.field for each in built.dropped] == ["hosted_tools"]


def test_a_request_needs_a_model() -> None:
    with pytest.raises(UnsupportedRequestError, match="test: no model is named"):
        build(HTTPRequest("/p", {}), ChatRequest("hi"))


def test_a_plugin_may_build_none() -> None:
    with pytest.raises(UnsupportedRequestError, match="builds no requests"):
        build_http_request(ASK, "echo", registry=registry_of(echo=Echo()))


class Picky(Asks):
    """A third party's provider that takes only its own kind of ids."""

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(title="Picky", call_ids=CallIds(pattern="[A-Z0-9a-z]+", maximum=12))

    @hookimpl
    def build_request(self, request: ChatRequest) -> Any:
        found = [message_of(turn) for turn in request.messages]
        calls = [call.id for message in found for call in message.tool_calls or ()]
        return HTTPRequest(
            "/p", {"calls": calls, "results": [m.tool_call_id for m in found if m.tool_call_id]}
        )


def test_a_plugins_rule_for_ids_is_kept_before_it_builds() -> None:
    ids = ["fits", "does not fit", "x" * 13]
    calls = ChatMessage.assistant(tool_calls=[ToolCall(id, "f", "{}") for id in ids])
    results = [ChatMessage.tool_result(id, "1") for id in reversed(ids)]
    request = ChatRequest([ChatMessage.user("hi"), calls, *results], model="m")
    body = build_http_request(request, "picky", registry=registry_of(picky=Picky(None))).body
    assert body["calls"] == body["results"][::-1]
    assert body["calls"][0] == "fits"
    assert all(len(id) <= 12 and id.isalnum() for id in body["calls"])
    assert len(set(body["calls"])) == 3


def test_a_long_id_is_not_remembered() -> None:
    """Clients choose the ids, and 1,024 of a megabyte would stay in memory."""
    before = fits_ids.cache_info().currsize
    ids = ["y" * 10_000 + str(number) for number in range(3)]
    calls = ChatMessage.assistant(tool_calls=[ToolCall(id, "f", "{}") for id in ids])
    results = [ChatMessage.tool_result(id, "1") for id in ids]
    request = ChatRequest([ChatMessage.user("hi"), calls, *results], model="m")
    body = build_http_request(request, "picky", registry=registry_of(picky=Picky(None))).body
    assert (fits_ids.cache_info().currsize, len({*body["calls"]})) == (before, 3)


def test_an_unknown_provider_is_named() -> None:
    with pytest.raises(UnknownProviderError, match="olama"):
        build_http_request(ASK, "olama")


WRONG: Any = ["secret"]


@pytest.mark.parametrize(
    "built",
    [
        {"messages": []},
        KeyError("secret"),
        HTTPRequest(WRONG, {}),
        HTTPRequest("/p", WRONG),
        HTTPRequest("/p", {}, method=WRONG),
    ],
    ids=["no request", "an error", "path", "body", "method"],
)
def test_a_plugin_that_breaks_its_word(built: Any) -> None:
    with pytest.raises(PluginError, match="provider 'test': build_request") as raised:
        build(built)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("own", [None, "somebody"])
def test_a_plugins_own_refusal_says_for_whom(own: str | None) -> None:
    with pytest.raises(UnsupportedRequestError, match=f"^{own or 'test'}: not this$") as raised:
        build(UnsupportedRequestError("not this", provider=own, options=["messages"]))
    assert raised.value.options == ("messages",)


@pytest.mark.parametrize(
    "value", ["\ud800", 10**5000, object()], ids=["a surrogate", "too many digits", "an object"]
)
def test_what_is_no_json_is_not_sent(value: Any) -> None:
    with pytest.raises(UnsupportedRequestError, match="is not JSON"):
        build(HTTPRequest("/p", {"a": value}))


@pytest.mark.parametrize(
    "options",
    [
        {"stop": None},
        {"stop": 7},
        {"tools": None},
        {"parallel_tool_calls": "yes"},
        {"stream": "x"},
        {"provider": 5},
    ],
    ids=str,
)
def test_a_field_of_another_type(options: dict[str, Any]) -> None:
    with pytest.raises(ResponseValidationError, match=f"{next(iter(options))} must be"):
        ChatRequest("hi", **options)


@pytest.mark.parametrize(
    ("options", "provider", "body", "dropped"),
    [
        ({"frequency_penalty": 0.3}, "ollama", {"options": {"frequency_penalty": 0.3}}, []),
        ({"repeat_penalty": 1.1}, "vllm", {"repetition_penalty": 1.1}, []),
        ({"repeat_penalty": 1.1}, "openai", {}, [("repeat_penalty", "no such option of this server is known", True)]),
        ({"top_logprobs": 3}, "openai", {"logprobs": True, "top_logprobs": 3}, []),
        ({"top_logprobs": 3}, "ollama", {"logprobs": True, "top_logprobs": 3}, []),
        ({"top_logprobs": 3}, "gemini", {"generationConfig": {"logprobs": 3, "responseLogprobs": True}}, []),
        ({"logprobs": False, "top_logprobs": 3}, "openai", {"logprobs": False, "top_logprobs": 3}, []),
        ({"store": False}, "anthropic", {}, []),
        ({"logprobs": True}, "openai_responses", {"include": ["message.output_text.logprobs"]}, []),
        ({"service_tier": "flex"}, "anthropic", {}, [("service_tier", "Messages knows auto and standard_only", False)]),
        (
            {"user": "a", "safety_identifier": "b"},
            "anthropic",
            {"metadata": {"user_id": "a"}},
            [("safety_identifier", "the request sets metadata.user_id differently", False)],
        ),
        (
            {"thinking_budget": 99},
            "gemini",
            {"generationConfig": {"thinkingConfig": {"includeThoughts": True, "thinkingBudget": 99}}},
            [],
        ),
        ({"min_p": 0.1}, "tgi", {}, [("min_p", "no such option of this server is known", True)]),
        ({"min_p": 0.1}, "cohere", {}, [("min_p", "Cohere's chat has no such option", True)]),
    ],
)  # fmt: skip
def test_options_that_several_apis_have(
    options: dict[str, Any], provider: str, body: dict[str, Any], dropped: list[tuple[str, str, bool]]
) -> None:
    effort: Any = "low" if "thinking_budget" in options else None
    request = ChatRequest("Hi", model="m", extra_options=options, reasoning_effort=effort)
    built = build_http_request(request, provider, on_unsupported="drop")
    assert {name: built.body.get(name) for name in body} == body
    assert [(one.field, one.reason, one.refuses) for one in built.dropped] == dropped


BUDGET_BOUNDS = "it must be at least 1024 and below max_tokens"


@pytest.mark.parametrize(
    ("said", "max_tokens", "budget", "notes"),
    [
        ({"thinking_budget": 8000}, 24_384, 8000, []),
        ({"thinking_budget": 8000, "max_tokens": 9000}, 9000, 8000, []),
        ({"thinking_budget": 8000, "max_tokens": 8000}, 8000, 7999, [(BUDGET_BOUNDS, False)]),
        ({"thinking_budget": 5}, 17_408, 1024, [(BUDGET_BOUNDS, False)]),
        ({"thinking_budget": 8000, "max_tokens": 1024}, 1024, None, [(BUDGET_BOUNDS, True)]),
        ({"thinking_budget": "many"}, 16_384, None, [("it must be a whole number", True)]),
        ({"thinking_budget": 2000, "reasoning_effort": "none"}, 16_384, None, [("reasoning_effort is none", True)]),
    ],
)  # fmt: skip
def test_a_budget_of_thought_has_its_type_and_is_below_the_ceiling(
    said: dict[str, Any], max_tokens: int, budget: int | None, notes: list[tuple[str, bool]]
) -> None:
    fields = {name: value for name, value in said.items() if name != "thinking_budget"}
    options = {"thinking_budget": said["thinking_budget"]}
    request = ChatRequest("hi", model="m", extra_options=options, **fields)
    built = build_http_request(request, "anthropic", on_unsupported="drop")
    off = {"type": "disabled"} if "reasoning_effort" in said else None
    expected = off if budget is None else {"type": "enabled", "budget_tokens": budget}
    assert (built.body["max_tokens"], built.body.get("thinking")) == (max_tokens, expected)
    added = [one.sent for one in built.adaptations if one.kind is AdaptationKind.DEFAULTED]
    assert added == ([] if "max_tokens" in said else [max_tokens])
    named = [one for one in built.adaptations if one.field != "max_tokens"]
    assert [(one.reason, one.refuses) for one in named] == notes
    assert {one.field for one in named} <= {"thinking_budget"}


def test_what_an_effort_rules_out_a_budget_rules_out() -> None:
    request = ChatRequest(
        "hi",
        model="c",
        temperature=0.5,
        top_p=0.95,
        tools=[TOOL],
        tool_choice="required",
        extra_options={"thinking_budget": 2000},
    )
    built = build_http_request(request, "anthropic", on_unsupported="drop")
    assert {"temperature", "tool_choice"}.isdisjoint(built.body)
    assert built.body["top_p"] == 0.95
    assert [(one.field, one.reason) for one in built.dropped] == [
        ("temperature", "not with thinking_budget"),
        ("tool_choice", "no call can be forced with thinking_budget"),
    ]


@pytest.mark.parametrize(
    ("provider", "own", "expected", "instead"),
    [
        (
            "anthropic",
            {"thinking": {"type": "enabled", "budget_tokens": 8000}},
            {
                "max_tokens": 24_384,
                "thinking": {"type": "enabled", "budget_tokens": 8000},
                "output_config": None,
            },
            "thinking.type",
        ),
        (
            "anthropic",
            {"thinking": {"type": "enabled", "budget_tokens": 8000}, "max_tokens": 9000},
            {"max_tokens": 9000, "thinking": {"type": "enabled", "budget_tokens": 8000}},
            "thinking.type",
        ),
        (
            "anthropic",
            {"thinking": {"type": "disabled"}},
            {"thinking": {"type": "disabled"}},
            "thinking.type",
        ),
        (
            "anthropic",
            {"thinking": {"type": "adaptive", "display": "omitted"}},
            {"thinking": {"type": "adaptive", "display": "omitted"}, "output_config": {"effort": "high"}},
            None,
        ),
        (
            "anthropic",
            {"output_config": {"effort": "max"}},
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}},
            None,
        ),
        (
            "gemini",
            {"generation_config": {"thinking_config": {"thinking_budget": 8000}}},
            {"generation_config": {"thinking_config": {"thinking_budget": 8000}}, "generationConfig": None},
            "generationConfig.thinkingConfig.thinkingBudget",
        ),
        (
            "gemini",
            {"generationConfig": {"thinkingConfig": {"includeThoughts": False}}},
            {"generationConfig": {"thinkingConfig": {"thinkingLevel": "HIGH", "includeThoughts": False}}},
            None,
        ),
        ("openai", {"reasoning_effort": "max"}, {"reasoning_effort": "max"}, None),
        ("openai_responses", {"reasoning": {"effort": "max"}}, {"reasoning": {"effort": "max"}}, None),
        ("ollama", {"think": "max"}, {"think": "max"}, None),
        (
            "openrouter",
            {"reasoning": {"max_tokens": 2000}},
            {"reasoning": {"max_tokens": 2000}, "reasoning_effort": None},
            "reasoning.max_tokens",
        ),
        (
            "bedrock",
            {"additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 2000}}},
            {
                "additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 2000}},
                "outputConfig": None,
            },
            "additionalModelRequestFields.thinking.type",
        ),
    ],
)
def test_provider_options_win_over_the_effort(
    provider: str, own: dict[str, Any], expected: dict[str, Any], instead: str | None
) -> None:
    """A number of tokens next to a word would be refused, so the word is left out, and reported."""
    request = ChatRequest("hi", model="m", reasoning_effort="high", provider_options={provider: own})
    built = build_http_request(request, provider)
    assert {name: built.body.get(name) for name in expected} == expected
    notes = [] if instead is None else [("reasoning_effort", f"provider_options sets {instead}", False)]
    assert [(one.field, one.reason, one.refuses) for one in built.dropped] == notes


@pytest.mark.parametrize("thinking", [7, {"budget_tokens": "x"}, {"budget_tokens": -1}, {"type": "enabled"}])
def test_a_budget_that_is_none_changes_no_ceiling(thinking: Any) -> None:
    request = ChatRequest("hi", model="m", provider_options={"anthropic": {"thinking": thinking}})
    assert build_http_request(request, "anthropic").body["max_tokens"] == 16_384


def test_a_model_of_an_unknown_name_gets_functions_beside_an_effort() -> None:
    request = ChatRequest("hi", model="m", tools=[TOOL], reasoning_effort="high")
    assert build_http_request(request, "openai").body["reasoning_effort"] == "high"
    assert build_http_request(request, "openai_responses").body["reasoning"] == {"effort": "high"}


PLAIN_EFFORT: list[tuple[str, str, dict[str, Any], str | None]] = [
    ("anthropic", "minimal", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}, "low"),
    ("gemini", "max", {"generationConfig": {"thinkingConfig": {"thinkingLevel": "XHIGH", "includeThoughts": True}}}, "xhigh"),
    ("bedrock", "minimal", {"outputConfig": {"effort": "low"}}, "low"),
    ("ollama", "minimal", {"think": "low"}, "low"),
    ("ollama", "max", {"think": "high"}, "high"),
    ("minimax", "xhigh", {"reasoning_effort": "xhigh"}, None),
    ("dashscope", "low", {"enable_thinking": True, "reasoning_effort": None}, "on or off"),
    ("zai", "high", {"thinking": {"type": "enabled"}, "reasoning_effort": None}, "on or off"),
    ("cohere", "medium", {"thinking": {"type": "enabled"}}, "on or off"),
    ("openai", "max", {"reasoning_effort": "max"}, None),
]  # fmt: skip


@pytest.mark.parametrize(("provider", "effort", "body", "said"), PLAIN_EFFORT)
def test_an_unknown_model_is_asked_for_effort_in_the_plain_form_of_its_api(
    provider: str, effort: Any, body: dict[str, Any], said: str | None
) -> None:
    """An effort is a wish: it is never refused, and what of it is not sent is named."""
    built = build_http_request(ChatRequest("hi", model="m", reasoning_effort=effort), provider)
    assert {name: built.body.get(name) for name in body} == body
    assert built.model_class == "unknown"
    named = [one for one in built.adaptations if one.field != "max_tokens"]
    assert [(one.field, one.asked) for one in named] == (
        [] if said is None else [("reasoning_effort", effort)]
    )
    assert all((said or "") in f"{one.sent} {one.reason}" and not one.refuses for one in named)


def test_an_api_that_cannot_switch_thinking_off_refuses_it_for_an_unknown_model() -> None:
    with pytest.raises(UnsupportedRequestError, match="reasoning_effort"):
        build_http_request(ChatRequest("hi", model="m", reasoning_effort="none"), "bedrock")


def test_a_small_effort_rules_out_what_a_larger_one_does() -> None:
    request = ChatRequest("hi", model="m", temperature=0.2, reasoning_effort="minimal")
    with pytest.raises(UnsupportedRequestError, match="temperature"):
        build_http_request(request, "anthropic")


def test_a_dictionary_may_have_such_an_option() -> None:
    given = {"messages": [{"role": "user", "content": "Hi"}], "frequency_penalty": 0.3}
    assert as_request(given).extra_options == {"frequency_penalty": 0.3}


def test_an_option_that_no_api_has() -> None:
    with pytest.raises(ResponseValidationError, match="no option 'frequency_penaltys', did you mean"):
        ChatRequest("Hi", extra_options={"frequency_penaltys": 1})
    with pytest.raises(ResponseValidationError, match="no option 'temperature'"):
        ChatRequest("Hi", extra_options={"temperature": 1})


def test_a_choice_among_some_tools_has_a_mode_and_names() -> None:
    def built(value: Any) -> HTTPRequest:
        request = ChatRequest("Hi", model="m", extra_options={"allowed_tools": value})
        return build_http_request(request, "openai_responses", on_unsupported="drop")

    choice = built({"mode": "auto", "tools": [{"type": "function", "name": "f"}]}).body["tool_choice"]
    assert choice == {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]}
    for wrong in (
        {"mode": "new", "tools": []},
        {"mode": "auto", "tools": [{"type": "mcp", "name": "f"}]},
    ):
        assert [one.field for one in built(wrong).dropped] == ["allowed_tools"]


# ----------------------------------------------------------------------------------------- media


def _block_for(provider: str, part: ContentPart) -> Any:
    request = ChatRequest([ChatMessage.user(["Look:", part])], model="m")
    body = build_http_request(request, provider).body
    return body["messages"][0]["content"][1]


WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


@pytest.mark.parametrize(
    ("provider", "part"),
    [
        ("anthropic", FilePart(data="UEsDBA==", media_type=WORD, name="a.docx")),
        ("anthropic", FilePart(data="AAAA", media_type="video/mp4")),
        ("anthropic", FilePart(data="//79", media_type="text/plain")),  # no UTF-8
        ("anthropic", FilePart(url="https://a.test/a.docx", media_type=WORD)),
        ("anthropic", ImagePart(data="AAAA", media_type="image/tiff")),
        ("anthropic", ImagePart(data="PHN2Zz4=", media_type="image/svg+xml")),
        ("bedrock", ImagePart(data="AAAA", media_type="image/tiff")),
        ("bedrock", FilePart(data="AAAA", media_type="video/mp4")),
    ],
)
def test_media_that_a_server_does_not_take_are_refused_by_their_type(provider: str, part: Any) -> None:
    with pytest.raises(UnsupportedRequestError, match=f"of type {re.escape(part.media_type[:60])} cannot"):
        _block_for(provider, part)


@pytest.mark.parametrize(
    ("part", "source"),
    [
        (FilePart(data="JVBERi0=", name="a.pdf"), {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}),
        (FilePart(url="https://a.test/a"), {"type": "url", "url": "https://a.test/a"}),
        (FilePart(data=b"a: 1", media_type="application/yaml"), {"type": "text", "media_type": "text/plain", "data": "a: 1"}),
        (FilePart(data=b"<svg>", media_type="image/svg+xml"), {"type": "text", "media_type": "text/plain", "data": "<svg>"}),
        (FilePart(data=b"let a", media_type="application/javascript"), {"type": "text", "media_type": "text/plain", "data": "let a"}),
        (FilePart(data=b"a", media_type="Text/Plain; charset=utf-8"), {"type": "text", "media_type": "text/plain", "data": "a"}),
    ],
)  # fmt: skip
def test_a_file_is_a_document_for_anthropic_if_it_is_a_pdf_or_a_text(
    part: FilePart, source: dict[str, Any]
) -> None:
    title = {} if part.name is None else {"title": part.name}
    assert _block_for("anthropic", part) == {"type": "document", "source": source, **title}


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        (FilePart(data="AAAA", media_type="image/png"), "image/png"),
        (ImagePart(data="AAAA", media_type="image/jpg"), "image/jpeg"),
        (ImagePart(data="AAAA", media_type="image/webp"), "image/webp"),
    ],
)
def test_a_picture_is_an_image_for_anthropic_however_it_is_given(part: ContentPart, kind: str) -> None:
    source = {"type": "base64", "media_type": kind, "data": "AAAA"}
    assert _block_for("anthropic", part) == {"type": "image", "source": source}
    if isinstance(part, ImagePart):
        image = _block_for("bedrock", part)["image"]
        assert image == {"format": kind.removeprefix("image/"), "source": {"bytes": "AAAA"}}
    located = ImagePart(url="https://a.test/a.tiff", media_type="image/tiff")
    assert _block_for("anthropic", located)["source"] == {"type": "url", "url": "https://a.test/a.tiff"}


@pytest.mark.parametrize(
    ("given", "standard"),
    [("-_8=", "+/8="), ("-_8", "+/8="), ("-A", "+A=="), ("+/8=", "+/8="), ("AAAA", "AAAA")],
)
def test_base64_is_written_in_the_alphabet_that_servers_take(given: str, standard: str) -> None:
    """Google's SDK sends that of addresses."""
    pictures = [
        read_request(body, form, model="m").request.messages[0]
        for form, body in (
            ("gemini", {"contents": [{"parts": [{"inlineData": {"mimeType": "image/png", "data": given}}]}]}),
            ("openai-chat", {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{given}"}}]}]}),
            ("anthropic", {"max_tokens": 9, "messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": given}}]}]}),
        )
    ]  # fmt: skip
    for turn in pictures:
        for provider in ("openai", "openai_responses", "anthropic", "ollama", "bedrock", "gemini"):
            body = build_http_request(ChatRequest([turn], model="m"), provider).body
            assert standard in json.dumps(body)
            assert given == standard or given not in json.dumps(body).replace(standard, "")
    sound = AudioPart(data=given, media_type="audio/wav")
    body = build_http_request(ChatRequest([ChatMessage.user([sound])], model="m"), "openai").body
    assert body["messages"][0]["content"][0]["input_audio"]["data"] == standard
    assert FilePart(data=given, media_type="application/pdf").data == standard
