"""A request fits its model: the changes are named, the caller's own words win, and an unknown model gets the plain form."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest

from crosswalk import ConfigurationError, PluginError, registry
from crosswalk.convert import WireForm
from crosswalk.plugins import AudioPart, ImagePart, ProviderInfo, TextPart, hookimpl
from crosswalk.service import (
    Adaptation,
    AdaptationKind,
    ChatRequest,
    Endpoint,
    HTTPRequest,
    SyncLLMService,
    UnsupportedRequestError,
    build_http_request,
    read_request,
)
from crosswalk.testing import Answer, ReplayServer
from crosswalk_openai import OpenAI
from model_requests import EFFORTS, about_thinking
from wires import Echo, body, registry_of

ROOT = Path(__file__).parents[3]
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object", "properties": {}}}}


def built(provider: str, model: str, *, drop: bool = False, **options: Any) -> HTTPRequest:
    request = ChatRequest(**{"messages": "Hi", "model": model, **options})
    return build_http_request(request, provider, on_unsupported="drop" if drop else "raise")


def changes(request: HTTPRequest) -> list[tuple[str, Any, Any]]:
    return [(one.field, one.asked, one.sent) for one in changed(request)]


def changed(request: HTTPRequest) -> tuple[Adaptation, ...]:
    """All adaptations but the ceiling of an API that needs one."""
    return tuple(
        one for one in request.adaptations if (one.field, one.kind.value) != ("max_tokens", "defaulted")
    )


# --------------------------------------------------------------------------------------- effort


def test_a_change_says_what_was_asked_what_is_sent_and_why() -> None:
    request = built("anthropic", "claude-opus-4-6", reasoning_effort="xhigh")
    why = "claude-opus-4-6 takes no 'xhigh'"
    assert changed(request) == (
        Adaptation("reasoning_effort", AdaptationKind.CLAMPED, why, asked="xhigh", sent="max"),
    )
    assert request.model_class == "claude-4.6"


def read_for(form: str, said: dict[str, Any], to: str, model: str, *, drop: bool = False) -> HTTPRequest:
    """Return what a client's request in *form* becomes for *model* at the provider *to*."""
    read = read_request(said, form, model="x" if form == "gemini" else None).request
    request = attrs.evolve(read, model=model)
    return build_http_request(request, to, on_unsupported="drop" if drop else "raise")


SHOWN = {
    "openai-responses": {"model": "x", "input": "u", "reasoning": {"summary": "auto"}},
    "gemini": {
        "contents": [{"role": "user", "parts": [{"text": "u"}]}],
        "generationConfig": {"thinkingConfig": {"includeThoughts": True}},
    },
}


@pytest.mark.parametrize("form", SHOWN)
@pytest.mark.parametrize(
    "model",
    [
        "claude-3-5-haiku-20241022",
        "claude-sonnet-4-20250514",
        "claude-opus-4-5",
        "claude-opus-4-6",
        "unknown",
    ],
)
def test_a_wish_to_see_the_reasoning_does_not_switch_it_on(form: str, model: str) -> None:
    request = read_for(form, SHOWN[form], "anthropic", model)
    assert "thinking" not in request.body
    assert changes(request) == [("reasoning_summary", "auto", None)]


@pytest.mark.parametrize(
    ("model", "thinking"),
    [
        ("claude-opus-4-5", {"type": "enabled", "budget_tokens": 16384, "display": "summarized"}),
        ("claude-opus-4-6", {"type": "adaptive", "display": "summarized"}),
        ("unknown", {"type": "adaptive", "display": "summarized"}),
    ],
)
def test_the_reasoning_that_is_asked_for_is_shown(model: str, thinking: Any) -> None:
    said = {"model": "x", "input": "u", "reasoning": {"effort": "high", "summary": "auto"}}
    request = read_for("openai-responses", said, "anthropic", model)
    assert request.body["thinking"] == thinking
    assert changes(request) == []
    if model == "claude-opus-4-5":
        short = read_for(
            "openai-responses", {**said, "max_output_tokens": 500}, "anthropic", model, drop=True
        )
        assert "thinking" not in short.body
        assert [field for field, _, _ in changes(short)] == ["reasoning_effort", "reasoning_summary"]


@pytest.mark.parametrize(
    ("form", "thinking"),
    [
        ("anthropic", {"thinking": {"type": "enabled", "budget_tokens": 12345}, "max_tokens": 20000}),
        ("gemini", {"generationConfig": {"thinkingConfig": {"thinkingBudget": 12345}}}),
    ],
)
def test_a_budget_is_named_as_left_out_once_and_only_if_it_is(form: str, thinking: dict[str, Any]) -> None:
    said = {
        **(
            SHOWN["gemini"]
            if form == "gemini"
            else {"model": "x", "messages": [{"role": "user", "content": "u"}]}
        ),
        **thinking,
    }
    sonnet = read_for(form, said, "bedrock", "anthropic.claude-sonnet-4-20250514-v1:0")
    assert sonnet.body["additionalModelRequestFields"]["thinking"]["budget_tokens"] == 12345
    for to, model, is_named in (
        ("bedrock", "anthropic.claude-sonnet-4-20250514-v1:0", False),
        ("bedrock", "anthropic.claude-opus-4-6", True),
        ("openai", "gpt-5", True),
        ("bedrock", "amazon.nova", True),
    ):
        named = [one for one in read_for(form, said, to, model).adaptations if one.asked == 12345]
        assert len(named) == is_named, (to, model)


def test_a_model_that_always_reasons_shows_it_without_an_effort() -> None:
    request = read_for("openai-responses", SHOWN["openai-responses"], "anthropic", "claude-sonnet-5")
    assert request.body["thinking"] == {"type": "adaptive", "display": "summarized"}
    said = {"model": "x", "input": "u", "reasoning": {"effort": "none", "summary": "auto"}}
    request = read_for("openai-responses", said, "anthropic", "claude-sonnet-5")
    assert request.body["thinking"] == {"type": "disabled"}


def test_a_wish_that_the_model_lacks_leaves_no_empty_object() -> None:
    request = read_for("openai-responses", SHOWN["openai-responses"], "gemini", "gemini-2.0-flash")
    assert request.body.keys() == {"contents"}
    assert [field for field, _, _ in changes(request)] == ["reasoning_summary"]
    request = read_for(
        "gemini",
        {**SHOWN["gemini"], "generationConfig": {**SHOWN["gemini"]["generationConfig"], "topK": 4}},
        "gemini",
        "gemini-2.0-flash",
    )
    assert request.body["generationConfig"] == {"topK": 4}


@pytest.mark.parametrize(
    ("form", "said", "kept"),
    [
        (
            "openai-chat",
            {"logprobs": True, "top_logprobs": 2, "messages": [{"role": "user", "content": "u"}]},
            None,
        ),
        ("gemini", {**SHOWN["gemini"], "generationConfig": {"responseLogprobs": True}}, None),
        ("openai-responses", {"input": "u", "include": ["message.output_text.logprobs"]}, None),
        (
            "openai-responses",
            {"input": "u", "include": ["message.output_text.logprobs", "reasoning.encrypted_content"]},
            ["reasoning.encrypted_content"],
        ),
    ],
)
def test_a_model_without_logprobs_is_asked_for_none(form: str, said: dict[str, Any], kept: Any) -> None:
    said = said if form == "gemini" else {"model": "x", **said}
    with pytest.raises(UnsupportedRequestError, match="gpt-5 takes no logprobs"):
        read_for(form, said, "openai_responses", "gpt-5")
    request = read_for(form, said, "openai_responses", "gpt-5", drop=True)
    assert request.body.get("include") == kept
    assert ("logprobs", True, None) in changes(request)


@pytest.mark.parametrize(
    ("provider", "model", "said", "sent"),
    [
        ("anthropic", "claude-opus-5-5", "low", "low"),
        ("gemini", "gemini-2.5-pro", {"thinkingBudget": 1024, "includeThoughts": True}, 1024),
        ("openai", "gpt-5", "minimal", "minimal"),
        ("ollama", "gpt-oss", "low", "low"),
    ],
)
def test_dropping_turns_none_into_the_least_word(provider: str, model: str, said: Any, sent: Any) -> None:
    request = built(provider, model, drop=True, reasoning_effort="none")
    assert json.dumps(said) in json.dumps(about_thinking(request.body))
    (change,) = changed(request)
    assert (change.field, change.asked, change.refuses) == ("reasoning_effort", "none", True)
    assert change.sent in (sent, "minimal")


def test_a_model_that_always_thinks_and_takes_no_word_cannot_be_made_not_to() -> None:
    with pytest.raises(
        UnsupportedRequestError, match="no way is known to switch off the thinking of kimi-k2"
    ):
        built("moonshot", "kimi-k2-thinking", reasoning_effort="none")
    request = built("moonshot", "kimi-k2-thinking", drop=True, reasoning_effort="none")
    assert (about_thinking(request.body), changes(request)) == ({}, [("reasoning_effort", "none", None)])
    request = built("moonshot", "kimi-k2-thinking", reasoning_effort="low")
    assert (about_thinking(request.body), changes(request)) == ({}, [("reasoning_effort", "low", None)])


@pytest.mark.untraced
@pytest.mark.parametrize("word", ["xhigh", "max"])
@pytest.mark.parametrize(("provider", "model"), EFFORTS)
def test_the_highest_word_is_taken_by_every_model_that_takes_high(
    provider: str, model: str, word: str
) -> None:
    request = built(provider, model, reasoning_effort=word)
    takes = EFFORTS[provider, model]["high"] != {}
    assert bool(about_thinking(request.body)) is takes
    assert takes or changes(request) == [("reasoning_effort", word, None)]


@pytest.mark.parametrize(
    ("provider", "model", "options", "fields"),
    [
        ("anthropic", "claude-sonnet-4-5", {}, {"thinking": {"type": "enabled", "budget_tokens": 8000}}),
        ("anthropic", "claude-opus-4-1", {}, {"thinking": {"type": "enabled", "budget_tokens": 8000}, "max_tokens": 12096}),
        ("anthropic", "claude-sonnet-4-5", {"reasoning_effort": "low"}, {"thinking": {"type": "enabled", "budget_tokens": 8000}}),
        ("gemini", "gemini-2.5-flash", {}, {"generationConfig": {"thinkingConfig": {"thinkingBudget": 8000, "includeThoughts": True}}}),
    ],
)  # fmt: skip
def test_a_budget_is_the_callers_own_where_the_model_takes_one(
    provider: str, model: str, options: Any, fields: dict[str, Any]
) -> None:
    request = built(provider, model, extra_options={"thinking_budget": 8000}, **options)
    assert {name: request.body[name] for name in fields} == fields
    assert not changed(request)


@pytest.mark.parametrize(
    ("provider", "model", "options", "sent", "change"),
    [
        ("anthropic", "claude-opus-4-8", {}, {"effort": "medium"}, ("thinking_budget", 8000, "medium")),
        ("anthropic", "claude-opus-4-8", {"reasoning_effort": "max"}, {"effort": "max"}, ("thinking_budget", 8000, None)),
        ("anthropic", "claude-3-haiku-20240307", {}, None, ("thinking_budget", 8000, None)),
    ],
)  # fmt: skip
def test_a_budget_becomes_a_word_where_the_model_takes_none(
    provider: str, model: str, options: Any, sent: Any, change: Any
) -> None:
    request = built(provider, model, extra_options={"thinking_budget": 8000}, **options)
    assert request.body.get("output_config") == sent
    assert changes(request) == [change]


def test_a_small_budget_is_the_least_word() -> None:
    request = built("gemini", "gemini-3.5-flash", extra_options={"thinking_budget": 10})
    assert about_thinking(request.body)["thinkingConfig"]["thinkingLevel"] == "MINIMAL"


@pytest.mark.parametrize("budget", [True, "many", -1])
def test_a_budget_that_is_no_number_of_tokens_is_no_word(budget: Any) -> None:
    request = built("gemini", "gemini-3.5-flash", extra_options={"thinking_budget": budget})
    assert changes(request) == [("thinking_budget", budget, None)]
    assert about_thinking(request.body) == {}
    request = built("gemini", "gemini-2.5-flash", extra_options={"thinking_budget": -1})
    assert about_thinking(request.body) == {"thinkingConfig": {"thinkingBudget": -1}}
    assert not changed(request)


def test_a_budget_of_nothing_is_none() -> None:
    request = built("gemini", "gemini-2.5-flash", extra_options={"thinking_budget": 0})
    assert about_thinking(request.body) == {"thinkingConfig": {"thinkingBudget": 0}}
    with pytest.raises(UnsupportedRequestError, match="switch off the thinking of gemini-2.5-pro"):
        built("gemini", "gemini-2.5-pro", extra_options={"thinking_budget": 0})


def test_a_budget_above_the_models_is_the_models() -> None:
    request = built("gemini", "gemini-2.5-flash", extra_options={"thinking_budget": 10**6})
    assert about_thinking(request.body)["thinkingConfig"]["thinkingBudget"] == 24576
    assert changes(request) == [("thinking_budget", 10**6, 24576)]


def test_a_budget_stays_below_max_tokens() -> None:
    request = built("anthropic", "claude-sonnet-4-5", reasoning_effort="high", max_tokens=5000)
    assert request.body["thinking"] == {"type": "enabled", "budget_tokens": 4999}
    why = "it must be below max_tokens"
    change = Adaptation("reasoning_effort", AdaptationKind.CLAMPED, why, asked="high", sent=4999)
    assert changed(request) == (change,)


@pytest.mark.parametrize(
    ("model", "budget", "options", "sent", "reason"),
    [
        ("claude-sonnet-4-5", 8000, {}, 8000, None),
        ("claude-sonnet-4-5", 8000, {"max_tokens": 9000}, 8000, None),
        ("claude-sonnet-4-5", 8000, {"max_tokens": 8000}, 7999, "it must be below max_tokens"),
        ("claude-sonnet-4-5", 5, {}, 1024, "claude-sonnet-4-5 thinks with 1024 to 63999 tokens"),
        ("claude-opus-4-1", 60000, {}, 27904, "claude-opus-4-1 thinks with 1024 to 27904 tokens"),
    ],
)
def test_a_budget_that_is_asked_for_is_within_the_bounds_of_the_model(
    model: str, budget: int, options: Any, sent: int, reason: str | None
) -> None:
    request = built("anthropic", model, extra_options={"thinking_budget": budget}, **options)
    assert request.body["thinking"] == {"type": "enabled", "budget_tokens": sent}
    assert request.body["max_tokens"] > sent
    assert request.dropped == ()
    assert [(one.reason, one.asked, one.sent) for one in changed(request)] == (
        [] if reason is None else [(reason, budget, sent)]
    )


def test_a_budget_without_room_or_beside_no_thought_is_refused_by_its_name() -> None:
    for options in ({"max_tokens": 1024}, {"reasoning_effort": "none"}):
        asked: dict[str, Any] = {"extra_options": {"thinking_budget": 8000}, **options}
        with pytest.raises(UnsupportedRequestError) as caught:
            built("anthropic", "claude-sonnet-4-5", **asked)
        assert caught.value.options == ("thinking_budget",)
        request = built("anthropic", "claude-sonnet-4-5", drop=True, **asked)
        assert about_thinking(request.body) == {}
        assert changes(request) == [("thinking_budget", 8000, None)]


@pytest.mark.parametrize(
    ("model", "least"),
    [
        *((model, "none") for model in ("gpt-5.2", "gpt-5.4", "gpt-5.4-mini", "gpt-5.5", "gpt-5.6-terra")),
        *((model, "none") for model in ("gpt-6-sol", "gpt-6.1-terra", "gpt-60")),
    ],
)
def test_functions_beside_an_effort_have_an_api_of_their_own(model: str, least: str) -> None:
    asked: dict[str, Any] = {"tools": [TOOL], "reasoning_effort": "high"}
    with pytest.raises(UnsupportedRequestError, match="openai_responses takes both") as caught:
        built("openai", model, **asked)
    assert caught.value.options == ("reasoning_effort",)
    dropped = built("openai", model, drop=True, **asked)
    assert dropped.body["tools"]
    assert dropped.body["reasoning_effort"] == least
    assert changes(dropped) == [("reasoning_effort", "high", least)]
    assert built("openai_responses", model, **asked).body["reasoning"] == {"effort": "high"}
    assert built("openai", model, reasoning_effort="high").body["reasoning_effort"] == "high"
    assert built("openai", model, tools=[TOOL], reasoning_effort="none").adaptations == ()


@pytest.mark.parametrize("model", ["gpt-5", "gpt-5-mini", "gpt-5.1", "o3"])
def test_models_that_take_functions_beside_an_effort_get_both(model: str) -> None:
    request = built("openai", model, tools=[TOOL], reasoning_effort="high")
    assert request.body["reasoning_effort"] == "high"
    assert changed(request) == ()


def test_max_tokens_without_room_for_the_least_budget_is_refused_by_name() -> None:
    with pytest.raises(
        UnsupportedRequestError, match="thinks with at least 1024 tokens, and max_tokens leaves 499"
    ):
        built("anthropic", "claude-sonnet-4-5", reasoning_effort="high", max_tokens=500)
    request = built("anthropic", "claude-sonnet-4-5", drop=True, reasoning_effort="high", max_tokens=500)
    assert about_thinking(request.body) == {}
    assert changes(request) == [("reasoning_effort", "high", None)]


# --------------------------------------------------------------------------------- the answer's length


@pytest.mark.parametrize(
    ("model", "options", "most"),
    [
        ("claude-opus-4-8", {}, 128000),
        ("claude-haiku-4-5", {}, 64000),
        ("claude-opus-4-1-20250805", {}, 4096),
        ("claude-3-haiku-20240307", {}, 4096),
        ("my-own-claude", {}, 16384),
    ],
)
def test_an_answer_may_be_as_long_as_the_model_writes(model: str, options: Any, most: int) -> None:
    request = built("anthropic", model, **options)
    assert request.body["max_tokens"] == most
    assert [(one.kind.value, one.sent) for one in request.adaptations if one.field == "max_tokens"] == [
        ("defaulted", most)
    ]


def test_more_tokens_than_the_model_writes_are_its_ceiling() -> None:
    request = built("openai", "gpt-4-turbo", max_tokens=10**6)
    assert request.body["max_completion_tokens"] == 10**6  # unknown: nothing is left out
    request = built("openai", "gpt-5", max_tokens=10**6)
    assert request.body["max_completion_tokens"] == 128000
    assert changes(request) == [("max_tokens", 10**6, 128000)]


def test_the_length_in_provider_options_is_the_callers() -> None:
    options = {"anthropic": {"max_tokens": 77}}
    request = built("anthropic", "claude-opus-4-8", provider_options=options)
    assert request.body["max_tokens"] == 77


# ------------------------------------------------------------------------------------- other options


def test_a_demand_comes_before_thinking() -> None:
    for provider, model, off in (
        ("deepseek", "deepseek-v4-pro", {"thinking": {"type": "disabled"}}),
        ("anthropic", "claude-haiku-4-5", {}),
        ("dashscope", "qwen-plus", {"enable_thinking": False}),
    ):
        request = built(provider, model, reasoning_effort="high", tools=[TOOL], tool_choice="required")
        assert about_thinking(request.body) == off
        assert request.body["tool_choice"] in ("required", {"type": "any"})
        assert changes(request) == [("reasoning_effort", "high", "none")]


def test_functions_beside_effort_are_refused_with_the_api_that_takes_both() -> None:
    with pytest.raises(UnsupportedRequestError, match="openai_responses takes both") as caught:
        built("openai", "gpt-5.4", reasoning_effort="low", tools=[TOOL])
    assert caught.value.options == ("reasoning_effort",)
    request = built("openai", "gpt-5.4", drop=True, reasoning_effort="low", tools=[TOOL])
    assert request.body["reasoning_effort"] == "none"
    assert built("openai", "gpt-5.4", tools=[TOOL]).body.get("reasoning_effort") is None
    assert (
        built("openai", "gpt-5.4", tools=[TOOL], reasoning_effort="none").body["reasoning_effort"] == "none"
    )
    taken = built("openai_responses", "gpt-5.4", reasoning_effort="low", tools=[TOOL])
    assert taken.body["reasoning"] == {"effort": "low"}


def test_a_model_that_thinks_unasked_is_asked_not_to_beside_functions() -> None:
    request = built("openai", "gpt-5.6", tools=[TOOL])
    assert request.body["reasoning_effort"] == "none"
    assert changes(request) == [("reasoning_effort", None, "none")]


def test_functions_for_a_model_that_never_takes_them_here_are_refused_with_the_other_api() -> None:
    with pytest.raises(UnsupportedRequestError, match="openai_responses does") as caught:
        built("openai", "gpt-6-astra", tools=[TOOL], tool_choice="required")
    assert caught.value.options == ("tools",)
    request = built("openai", "gpt-6-astra", drop=True, tools=[TOOL], tool_choice="required")
    assert {"tools", "tool_choice"}.isdisjoint(request.body)


@pytest.mark.parametrize(
    ("provider", "model", "options", "refused", "gone"),
    [
        ("anthropic", "claude-opus-4-7", {"top_k": 3}, "top_k", "top_k"),
        ("anthropic", "claude-opus-4-6", {"temperature": 0.3, "reasoning_effort": "low"}, "temperature", "temperature"),
        ("anthropic", "claude-haiku-4-5", {"top_p": 0.9, "reasoning_effort": "low"}, "top_p", "top_p"),
        ("openai", "gpt-5.1", {"temperature": 0.3, "reasoning_effort": "low"}, "temperature", "temperature"),
        ("openai", "o3", {"extra_options": {"logprobs": True}}, "logprobs", "logprobs"),
        ("xai", "grok-4.3", {"extra_options": {"presence_penalty": 1}}, "presence_penalty", "presence_penalty"),
        ("moonshot", "kimi-k2.6", {"temperature": 1, "reasoning_effort": "none"}, "temperature", "temperature"),
        ("gemini", "gemini-2.5-pro", {"response_format": {"type": "json_object"}, "tools": [TOOL]}, "response_format",
         "generationConfig"),
        ("anthropic", "claude-sonnet-5-5", {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "f"}}},
         "tool_choice", "tool_choice"),
        ("xai", "grok-4.6", {"stop": ["a", "b"]}, "stop", "stop"),
    ],
)  # fmt: skip
def test_an_option_that_the_model_refuses_is_refused_by_name_or_dropped(
    provider: str, model: str, options: dict[str, Any], refused: str, gone: str
) -> None:
    with pytest.raises(UnsupportedRequestError, match=f"{model} takes no {refused}") as caught:
        built(provider, model, **options)
    assert caught.value.options == (refused,)
    request = built(provider, model, drop=True, **options)
    assert gone not in request.body
    assert [one.field for one in request.dropped] == [refused]


@pytest.mark.parametrize(
    ("provider", "model", "options", "said"),
    [
        ("anthropic", "claude-haiku-4-5", {"temperature": 1, "reasoning_effort": "low"}, {"temperature": 1}),
        ("anthropic", "claude-haiku-4-5", {"top_p": 0.97, "reasoning_effort": "low"}, {"top_p": 0.97}),
        ("anthropic", "claude-haiku-4-5", {"temperature": 0.2}, {"temperature": 0.2}),
        ("anthropic", "claude-opus-4-8", {"tools": [TOOL], "tool_choice": "required", "reasoning_effort": "high"}, {"tool_choice": {"type": "any"}}),
        ("anthropic", "claude-opus-5-5", {"tools": [TOOL], "tool_choice": "auto"}, {"tool_choice": {"type": "auto"}}),
        ("openai", "gpt-5.1", {"temperature": 0.3}, {"temperature": 0.3}),
        ("openai", "gpt-5.1", {"temperature": 0.3, "reasoning_effort": "none"}, {"temperature": 0.3}),
        ("deepseek", "deepseek-v4-pro", {"response_format": {"type": "json_object"}}, {"response_format": {"type": "json_object"}}),
        ("deepseek", "deepseek-v4-pro", {"response_format": SCHEMA}, {"response_format": {"type": "json_object"}}),
        ("gemini", "gemini-2.5-pro", {"response_format": SCHEMA, "tools": [TOOL]}, {"generationConfig": None}),
        ("moonshot", "kimi-k2.6", {"temperature": 0.6, "reasoning_effort": "none"}, {"temperature": 0.6}),
        ("openai", "o3", {"extra_options": {"frequency_penalty": 0}}, {"frequency_penalty": None}),
    ],
)  # fmt: skip
def test_an_option_that_the_model_takes_is_sent(
    provider: str, model: str, options: dict[str, Any], said: dict[str, Any]
) -> None:
    request = built(provider, model, **options)
    assert {name: request.body.get(name) for name in said} == said


def test_an_option_without_effect_is_named_and_sent() -> None:
    request = built("gemini", "gemini-3.8-flash", temperature=0.3)
    assert request.body["generationConfig"] == {"temperature": 0.3}
    assert changes(request) == [("temperature", 0.3, 0.3)]
    request = built("deepseek", "deepseek-v4-pro", temperature=0.3)
    assert changes(request) == [("temperature", 0.3, 0.3)]
    assert not built("deepseek", "deepseek-v4-pro", temperature=0.3, reasoning_effort="none").adaptations


def test_an_answer_that_the_request_begins_is_refused_or_left_out() -> None:
    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "{"}]
    request = built("anthropic", "claude-opus-5", drop=True, messages=turns)
    assert [message["role"] for message in request.body["messages"]] == ["user"]
    assert [one.field for one in request.dropped] == ["messages"]
    assert len(built("anthropic", "claude-haiku-4-5", messages=turns).body["messages"]) == 2
    greeting = [{"role": "assistant", "content": "Hello!"}]
    assert built("anthropic", "claude-opus-5", messages=greeting).body["messages"][-1]["role"] == "assistant"


def test_a_kind_of_content_that_the_model_does_not_take_is_refused_so_that_another_may_take_it() -> None:
    sound = [{"role": "user", "content": [AudioPart(data="aGk=", media_type="audio/wav")]}]
    with pytest.raises(UnsupportedRequestError, match=r"messages\[0\]: gpt-5 takes no audio") as caught:
        built("openai", "gpt-5", messages=sound)
    assert caught.value.options == ("messages",)
    assert built("openai", "gpt-audio", messages=sound).body["messages"]
    picture = [TextPart("What is this?"), ImagePart(data="aGk=", media_type="image/png")]
    turns = [
        {"role": "user", "content": picture},
        {"role": "assistant", "content": "A"},
        {"role": "user", "content": "B"},
    ]
    assert len(built("openai", "gpt-5", messages=turns).body["messages"]) == 3
    assert built("perplexity", "sonar", messages="Hi").model_class is None


def test_a_model_that_answers_in_a_stream_alone_is_asked_for_one() -> None:
    request = built("dashscope", "qwen3-32b")
    assert changes(request) == [("stream", False, True)]
    assert not built("dashscope", "qwen3-32b", stream=True).adaptations
    assert "stream" not in built("dashscope", "qwen3-32b", reasoning_effort="none").body


# --------------------------------------------------------------------------------------- who wins


@pytest.mark.parametrize(
    ("provider", "model", "theirs"),
    [
        ("anthropic", "claude-haiku-4-5", {"thinking": {"type": "enabled", "budget_tokens": 1234}}),
        ("gemini", "gemini-2.5-pro", {"generationConfig": {"thinkingConfig": {"thinkingBudget": 777}}}),
        ("deepseek", "deepseek-v4-pro", {"thinking": {"type": "disabled"}, "reasoning_effort": "low"}),
        ("gemini", "gemini-2.5-pro", {"generationConfig": 3}),
    ],
)
def test_provider_options_win(provider: str, model: str, theirs: dict[str, Any]) -> None:
    request = built(provider, model, reasoning_effort="high", provider_options={provider: theirs})
    assert {name: request.body[name] for name in theirs} == theirs
    (note,) = request.dropped
    assert (note.field, note.refuses) == ("reasoning_effort", False)
    assert note.reason.startswith(tuple(f"provider_options sets {name}" for name in theirs))


@pytest.mark.parametrize(
    ("provider", "model", "theirs", "expected"),
    [
        (
            "gemini",
            "gemini-2.5-pro",
            {"generation_config": {"thinking_config": {"thinking_budget": 777}}},
            {
                "generation_config": {"thinking_config": {"thinking_budget": 777}},
                "generationConfig": None,
            },
        ),
        (
            "gemini",
            "gemini-2.5-pro",
            {"generationConfig": {"thinkingConfig": {"includeThoughts": False}}},
            {"generationConfig": {"thinkingConfig": {"thinkingBudget": 32768, "includeThoughts": False}}},
        ),
        (
            "gemini",
            "gemini-3.5-flash",
            {"generationConfig": {"thinkingConfig": {"thinkingBudget": 777}}},
            {"generationConfig": {"thinkingConfig": {"thinkingBudget": 777}}},
        ),
        (
            "anthropic",
            "claude-opus-4-8",
            {"thinking": {"display": "omitted"}},
            {"thinking": {"type": "adaptive", "display": "omitted"}, "output_config": {"effort": "max"}},
        ),
        (
            "anthropic",
            "claude-opus-4-8",
            {"output_config": {"effort": "max"}},
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}},
        ),
        (
            "anthropic",
            "claude-opus-4-1",
            {"thinking": {"type": "enabled", "budget_tokens": 20000}},
            {"thinking": {"type": "enabled", "budget_tokens": 20000}, "max_tokens": 24096},
        ),
        ("openai", "o3", {"reasoning_effort": "xhigh"}, {"reasoning_effort": "xhigh"}),
        (
            "openrouter",
            "openai/gpt-oss-20b",
            {"reasoning": {"max_tokens": 2000}},
            {"reasoning": {"max_tokens": 2000}, "reasoning_effort": None},
        ),
        (
            "dashscope",
            "qwen3.7-plus",
            {"thinking_budget": 99},
            {"enable_thinking": True, "thinking_budget": 99},
        ),
    ],
)
def test_provider_options_win_in_either_spelling_and_leave_the_rest(
    provider: str, model: str, theirs: dict[str, Any], expected: dict[str, Any]
) -> None:
    request = built(provider, model, reasoning_effort="max", provider_options={provider: theirs})
    assert {name: request.body.get(name) for name in expected} == expected


@pytest.mark.parametrize("effort", [None, "none", "low", "high"])
@pytest.mark.parametrize(
    ("provider", "model", "theirs"),
    [
        ("deepseek", "deepseek-v4-pro", {"thinking": {"type": "disabled"}}),
        ("zai", "glm-4.6", {"thinking": {"type": "disabled"}}),
        ("dashscope", "qwen-plus", {"enable_thinking": False}),
        ("ollama", "gpt-oss:20b", {"think": False}),
        ("gemini", "gemini-2.5-flash", {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}}),
        ("anthropic", "claude-haiku-4-5", {"thinking": {"type": "disabled"}}),
        ("openai_responses", "gpt-5.4", {"reasoning": {"effort": "none"}}),
        ("openai", "gpt-5.4", {"reasoning_effort": "none"}),
        ("openai", "gpt-5.4", {"reasoning_effort": None}),
        ("deepseek", "one-of-tomorrow", {"thinking": {"type": "disabled"}}),
    ],
)
def test_provider_options_that_switch_thinking_off_stand_alone(
    provider: str, model: str, theirs: dict[str, Any], effort: Any
) -> None:
    """No server gets a word of the request beside them, and the rules of a model that does not think hold."""
    request = built(
        provider, model, reasoning_effort=effort, temperature=0.5, provider_options={provider: theirs}
    )
    assert about_thinking(request.body) == theirs.get("generationConfig", theirs)
    assert changed(request) == request.dropped
    assert {(one.field, one.refuses) for one in request.dropped} <= {("reasoning_effort", False)}
    if effort == "high":
        assert request.dropped


@pytest.mark.parametrize(
    ("provider", "model", "theirs"),
    [
        ("deepseek", "deepseek-v4-pro", {"thinking": {"type": "enabled"}}),
        ("deepseek", "deepseek-v4-pro", {"reasoning_effort": "low"}),
        ("anthropic", "claude-haiku-4-5", {"thinking": {"type": "enabled", "budget_tokens": 2000}}),
        ("openai", "gpt-5.4", {"reasoning_effort": "low"}),
        ("zai", "one-of-tomorrow", {"thinking": {"type": "enabled"}}),
    ],
)
def test_provider_options_that_switch_thinking_on_stand_against_none(
    provider: str, model: str, theirs: dict[str, Any]
) -> None:
    for options in ({"reasoning_effort": "none"}, {"extra_options": {"thinking_budget": 0}}):
        request = built(provider, model, provider_options={provider: theirs}, **options)
        assert about_thinking(request.body) == theirs
        assert all(not one.refuses for one in request.dropped)


@pytest.mark.parametrize(
    ("provider", "model", "theirs", "asked"),
    [
        ("openai", "gpt-5.4", {"reasoning_effort": "low"}, {"tools": [TOOL]}),
        ("openai", "gpt-5.4", {"reasoning_effort": "low"}, {"temperature": 0.5}),
        ("openai", "gpt-5.5", {"reasoning_effort": None}, {"tools": [TOOL], "reasoning_effort": "none"}),
        ("openai_responses", "gpt-5.4", {"reasoning": {"effort": "high"}}, {"top_p": 0.5}),
        ("deepseek", "deepseek-v4-pro", {"thinking": {"type": "enabled"}}, {"tool_choice": "required"}),
        ("anthropic", "claude-haiku-4-5", {"thinking": {"type": "enabled", "budget_tokens": 2000}}, {"tool_choice": "required"}),
    ],
)  # fmt: skip
def test_what_the_model_takes_is_judged_with_the_effort_of_the_provider_options(
    provider: str, model: str, theirs: dict[str, Any], asked: dict[str, Any]
) -> None:
    more = {"tools": [TOOL]} if "tool_choice" in asked else {}
    with pytest.raises(UnsupportedRequestError) as caught:
        built(provider, model, provider_options={provider: theirs}, **asked, **more)
    assert caught.value.options == (next(iter(asked)),)


@pytest.mark.parametrize(
    ("provider", "model", "theirs", "is_refused"),
    [
        ("openai", "gpt-5.4", {"tools": [{"type": "function", "function": {"name": "look"}}]}, True),
        ("deepseek", "deepseek-v4-pro", {"tool_choice": "required"}, False),
        ("deepseek", "deepseek-v4-pro", {"tool_choice": {"type": "function", "function": {"name": "look"}}}, False),
        ("anthropic", "claude-haiku-4-5", {"tool_choice": {"type": "any"}}, False),
    ],
)  # fmt: skip
def test_an_effort_is_judged_with_the_demands_of_the_provider_options(
    provider: str, model: str, theirs: dict[str, Any], *, is_refused: bool
) -> None:
    options: dict[str, Any] = {"reasoning_effort": "high", "provider_options": {provider: theirs}}
    if is_refused:
        with pytest.raises(UnsupportedRequestError, match="reasoning_effort"):
            built(provider, model, **options)
    request = built(provider, model, drop=True, **options)
    assert changes(request) == [("reasoning_effort", "high", "none")]
    free = built("deepseek", "deepseek-v4-pro", provider_options={"deepseek": {"tool_choice": "auto"}})
    assert not changed(free)


def test_provider_options_win_over_an_option_for_a_budget() -> None:
    theirs = {"thinking": {"type": "disabled"}}
    options = {"thinking_budget": 3000}
    request = built(
        "anthropic", "claude-haiku-4-5", extra_options=options, provider_options={"anthropic": theirs}
    )
    assert request.body["thinking"] == {"type": "disabled"}
    assert [(one.field, one.refuses) for one in request.dropped] == [("thinking_budget", False)]


def test_provider_options_win_for_their_part() -> None:
    theirs = {"thinking": {"type": "enabled", "budget_tokens": 1234}, "generationConfig": {"topK": 3}}
    request = built(
        "anthropic", "claude-opus-4-5", reasoning_effort="high", provider_options={"anthropic": theirs}
    )
    assert request.body["output_config"] == {"effort": "high"}
    assert request.body["thinking"]["budget_tokens"] == 1234
    options = {"gemini": {"generationConfig": {"topK": 3}}}
    request = built("gemini", "gemini-2.5-pro", reasoning_effort="high", provider_options=options)
    config = request.body["generationConfig"]
    assert (config["topK"], config["thinkingConfig"]["thinkingBudget"]) == (3, 24576)


def test_a_class_by_name_wins_over_the_models_name() -> None:
    request = ChatRequest("Hi", model="prod-7", reasoning_effort="xhigh")
    for name in ("gpt-5.1", "gpt-5.1-2026-01-01"):
        sent = build_http_request(request, "openai", model_class=name)
        assert (sent.body["model"], sent.body["reasoning_effort"]) == ("prod-7", "high")
        assert sent.model_class == "gpt-5.1"
    for provider, name in (("openai", "no-such-class"), ("perplexity", "gpt-5.1")):
        with pytest.raises(ConfigurationError, match=f"{provider}: there is no model class '{name}'"):
            build_http_request(request, provider, model_class=name)


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        *(("anthropic", f"claude-{name}") for name in ("opus-5-6", "sonnet-5-1-20270101", "fable-5.3", "haiku-6", "opus-10")),
        *(("openai", name) for name in ("o5", "o6-mini", "gpt-5.10", "gpt-7")),
        ("gemini", "gemini-2.5-computer-use-preview-10-2025"),
        ("moonshot", "kimi-k3.5"),
        ("deepseek", "deepseek-v4.1-flash"),
        ("minimax", "MiniMax-M3.5"),
        ("dashscope", "qwen3.8-max"),
        ("dashscope", "qwen4-plus"),
        ("openrouter", "anthropic/claude-opus-6"),
    ],
)  # fmt: skip
def test_a_later_version_than_any_row_has_is_assumed_and_says_so(provider: str, model: str) -> None:
    assert str(built(provider, model).model_class).endswith(" (assumed)")


@pytest.mark.parametrize(
    "model",
    ["claude-sonnet-5", "claude-sonnet-5-20260301", "claude-opus-5-latest", "claude-opus-5@20260301", "claude-fable-5"],
)  # fmt: skip
def test_a_version_with_a_date_is_known(model: str) -> None:
    assert str(built("anthropic", model).model_class) in ("claude-5", "claude-fable-5")


def test_a_model_that_is_only_on_another_api_is_refused_with_it() -> None:
    with pytest.raises(UnsupportedRequestError, match="openai_responses has it") as caught:
        built("openai", "gpt-5-pro", drop=True)
    assert caught.value.options == ("model",)
    places = [
        Endpoint(provider=name, model="gpt-5-pro", api_key="k") for name in ("openai", "openai_responses")
    ]
    with SyncLLMService(*places) as service:
        assert service.plan("Hi").endpoint.provider == "openai_responses"


def test_a_model_that_is_on_no_known_api_is_refused_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "models.toml"
    file.write_text('[[classes]]\nproviders = ["vllm"]\nmodels = ["sleeps"]\nrefuses = ["model"]\n')
    monkeypatch.setenv("CROSSWALK_MODEL_CLASSES", str(file))
    with pytest.raises(UnsupportedRequestError, match="sleeps is not on this API$"):
        built("vllm", "sleeps")


def test_a_model_without_a_switch_gets_no_more_tokens_than_it_writes() -> None:
    request = built("deepseek", "deepseek-reasoner", drop=True, reasoning_effort="none", max_tokens=10**6)
    assert request.body["max_tokens"] == 65536
    assert changes(request) == [("reasoning_effort", "none", None), ("max_tokens", 10**6, 65536)]


@pytest.mark.parametrize("model", ["", "latest", "my-own-claude", "gemini-flash-latest"])
def test_an_unknown_model_gets_the_plain_form_and_loses_nothing(model: str) -> None:
    request = built("anthropic", model or "x", temperature=0.2, stop=["a"], top_k=3)
    assert request.model_class == "unknown"
    assert {"temperature", "stop_sequences", "top_k"} <= request.body.keys()
    assert changed(request) == ()


def test_a_new_model_of_a_family_is_assumed_to_be_of_the_newest_class() -> None:
    for provider, model, newest in (
        ("anthropic", "claude-opus-7", "claude-opus-5.5"),
        ("gemini", "gemini-5-flash", "gemini-4"),
        ("openai", "gpt-7-nova", "gpt-6-sol"),
        ("openai_responses", "gpt-7-nova", "gpt-6-sol"),
        ("bedrock", "eu.anthropic.claude-opus-7-v1:0", "claude-opus-5.5"),
        ("xai", "grok-5", "grok-4.6"),
        ("moonshot", "kimi-k4", "kimi-k3"),
        ("zai", "glm-6", "glm-5.3"),
    ):
        assert built(provider, model).model_class == f"{newest} (assumed)"
    with pytest.raises(UnsupportedRequestError, match=re.escape("claude-opus-7 (taken for claude-opus-5.5)")):
        built("anthropic", "claude-opus-7", temperature=0)


@pytest.mark.parametrize(
    ("provider", "model", "known"),
    [
        ("bedrock", "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-opus-4-6-v1", "claude-4.6"),
        ("anthropic", "claude-opus-4-5@20251101", "claude-opus-4.5"),
        ("anthropic", "Claude-Opus-4.5", "claude-opus-4.5"),
        ("gemini", "models/gemini-2.5-flash-lite", "gemini-2.5-flash-lite"),
        ("gemini", "publishers/google/models/gemini-2.5-flash-image", "gemini-2.0"),
        ("openai", "ft:gpt-4.1-2025-04-14:org::id", "gpt-4.1"),
        ("openai", "o3-mini", "o-series"),
        ("openai_responses", "gpt-5.1-codex-max", "gpt-5.1-codex-max"),
        ("openai", "gpt-4o-audio-preview", "unknown"),
        ("openrouter", "openai/gpt-oss-20b:free", "mandatory reasoning on OpenRouter"),
        ("fireworks", "accounts/fireworks/models/gpt-oss-120b", "gpt-oss"),
        ("vllm", "Qwen/Qwen3.8-27B", "qwen3.8 on vLLM"),
        ("vllm", "Qwen/Qwen3-8B", "qwen3 on vLLM"),
        ("ollama", "qwen3:8b", "on and off on Ollama"),
        ("mistral", "mistral-large-latest", "unknown"),
        ("gemini", "gemini-pro-latest", "unknown"),
    ],
)
def test_a_name_is_found_without_region_folder_version_and_tag(provider: str, model: str, known: str) -> None:
    assert built(provider, model).model_class == known


# ----------------------------------------------------------------------------------- a file of one's own

OWN = """
[[classes]]
providers = ["openai", "openai_responses"]
models = ["prod-*"]
like = "gpt-5.4"
refuses = ["seed"]

[[classes]]
providers = ["vllm"]
id = "tiny"
models = ["tiny"]
effort = { low = { word = "l", budget = 10 }, high = { word = "h", budget = 90 } }
form = "both"
budget = [5, 80]

[forms]
both = { chat_template_kwargs = { level = "{word}", tokens = "{budget}" } }
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "models.toml"
    monkeypatch.setenv("CROSSWALK_MODEL_CLASSES", str(path))
    yield path


def test_a_file_of_ones_own_comes_first(own: Path) -> None:
    own.write_text(OWN)
    request = built("openai", "prod-7", reasoning_effort="max")
    assert (request.model_class, request.body["reasoning_effort"]) == ("prod-*", "xhigh")
    with pytest.raises(UnsupportedRequestError, match="prod-7 takes no seed"):
        built("openai", "prod-7", seed=1)
    assert built("openai", "gpt-5.1").model_class == "gpt-5.1"
    request = built("vllm", "tiny", reasoning_effort="xhigh")
    assert request.body["chat_template_kwargs"] == {"level": "h", "tokens": 80}
    assert changes(request) == [("reasoning_effort", "xhigh", "h")]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("classes = 3", "classes must be tables"),
        ("other = 3", "there is no part 'other'"),
        ("forms = 3", "forms must be a table of tables"),
        ("forms.a = 3", "forms must be a table of tables"),
        ("not toml", "Expected"),
        ('[[classes]]\nmodels = ["a"]', r"classes\[0\]: providers must be a list"),
        ('[[classes]]\nproviders = ["openai"]\nlike = "no"', r"classes\[0\]: like: openai has no class 'no'"),
        ('[[classes]]\nproviders = ["openai"]\nmodels = "a"', "models must be a list of texts"),
        ('[[classes]]\nproviders = ["openai"]\nmodels = [1]', "models must be a list of texts"),
        ('[[classes]]\nproviders = ["openai"]\ntakes = []', "there is no field 'takes'"),
        ('[[classes]]\nproviders = ["openai"]\nrefuses = ["warmth"]', "'warmth' names no option"),
        ('[[classes]]\nproviders = ["openai"]\nrefuses = ["tool_choice=odd"]', "compares with something unknown"),
        ('[[classes]]\nproviders = ["openai"]\nrefuses = ["temperature<hot"]', "compares with no number"),
        ('[[classes]]\nproviders = ["openai"]\nrefuses = ["temperature>hot"]', "compares with no number"),
        ('[[classes]]\nproviders = ["openai"]\neffort = ["much"]', "effort has no word 'much'"),
        ('[[classes]]\nproviders = ["openai"]\neffort = 3', "effort must be a list of words"),
        ('[[classes]]\nproviders = ["openai"]\neffort = { low = 1.5 }', "effort stands for a word"),
        ('[[classes]]\nproviders = ["openai"]\neffort = { low = { word = 1, budget = 2 } }', "effort stands for a word"),
        ('[[classes]]\nproviders = ["openai"]\neffort = { low = 5 }', "without a form"),
        ('[[classes]]\nproviders = ["openai"]\nform = "no"', "there is no form 'no'"),
        ('[[classes]]\nproviders = ["openai"]\nbudget_form = "no"', "there is no form 'no'"),
        ('[[classes]]\nproviders = ["openai"]\nbudget = [1]', "budget must be two whole numbers"),
        ('[[classes]]\nproviders = ["openai"]\nthinks = 1', "thinks must be bool"),
        (None, "No such file"),
    ],
)  # fmt: skip
def test_a_file_that_means_nothing_is_refused_with_the_place(own: Path, text: str | None, why: str) -> None:
    if text is not None:
        own.write_text(text)
    with pytest.raises(ConfigurationError, match=f"CROSSWALK_MODEL_CLASSES: .*{why}") as caught:
        built("openai", "gpt-5")
    assert caught.value.key == "CROSSWALK_MODEL_CLASSES"


# ------------------------------------------------------------------------------------ a plugin's file


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("other = 3", "there is no part 'other'"),
        ("needs = 3", "not iterable"),
        ('[[classes]]\nbudget = "1"', r"classes\[0\]: budget must be two whole numbers"),
        ("include = 3", "include must be tables"),
        (None, "No such file"),
    ],
)
def test_a_plugins_file_that_means_nothing_is_the_plugins_fault(
    text: str | None, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"facts_{abs(hash((text, why)))}"
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("")
    if text is not None:
        (tmp_path / name / "models.toml").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(PluginError, match=f"model_classes '{name}:models.toml': .*{why}"):
        _asked(f"{name}:models.toml", "Hi")


def test_a_plugin_has_its_own_facts_and_those_of_other_providers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "facts_of_a_stranger").mkdir()
    (tmp_path / "facts_of_a_stranger/__init__.py").write_text("")
    text = '[[include]]\nprovider = "nobody"\n[[include]]\nprovider = "plain"\n[[include]]\n[[classes]]\nmodels = ["ray-*"]\n'
    (tmp_path / "facts_of_a_stranger/models.toml").write_text(
        text + 'refuses = ["top_p"]\neffort = ["low"]\n'
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    place = "facts_of_a_stranger:models.toml"
    assert _asked(place, "Hi", model="ray-1").model_class == "ray-*"
    assert _asked(place, "Hi", model="sun-1").model_class == "unknown"
    with pytest.raises(UnsupportedRequestError, match="ray-1 takes no top_p"):
        _asked(place, "Hi", model="ray-1", top_p=0.5)


@pytest.mark.parametrize(
    ("strongest", "expected"),
    [
        ("included", "high"),
        ("plugin", "minimal"),
        ("user", "low"),
        ("endpoint", "xhigh"),
        ("provider_options", "theirs"),
    ],
)
def test_the_stronger_statement_wins(
    strongest: str,
    expected: str,
    own: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each is made beside all that are weaker: rows that a plugin includes, its own, a user's file, the endpoint, the request."""
    steps = ("included", "plugin", "user", "endpoint", "provider_options")
    said = steps[: steps.index(strongest) + 1]
    package = f"facts_up_to_{strongest}"
    row = '[[classes]]\nid = "of-the-plugin"\nmodels = ["gpt-5.1"]\neffort = ["minimal"]\n'
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").write_text("")
    (tmp_path / package / "models.toml").write_text(
        '[[include]]\nprovider = "openai"\n' + (row if "plugin" in said else "")
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    row = '[[classes]]\nproviders = ["stranger"]\nid = "of-the-user"\nmodels = ["gpt-5*"]\neffort = ["low"]\n'
    own.write_text(row if "user" in said else "")

    class Stranger(OpenAI):
        model_classes: ClassVar[str | None] = f"{package}:models.toml"

    options = {"stranger": {"reasoning_effort": "theirs"}} if "provider_options" in said else {}
    with ReplayServer() as server:
        server.add(Answer.of_json(body({"content": "Hi"})))
        endpoint = Endpoint(
            "stranger",
            model="gpt-5.1",
            model_class="gpt-5.4" if "endpoint" in said else None,
            base_url=f"{server.url}/v1",
            api_key="k",
        )
        known = registry_of(stranger=Stranger(), openai=OpenAI())
        with SyncLLMService(endpoint, registry=known) as service:
            service.complete("Hi", reasoning_effort="max", provider_options=options)
        (asked,) = server.requests
    assert asked.json()["reasoning_effort"] == expected


def _asked(place: str, messages: str, *, model_class: str | None = None, **options: Any) -> HTTPRequest:
    class Stranger(Echo):
        @hookimpl
        def provider_info(self) -> ProviderInfo:
            return ProviderInfo(title="Stranger", model_classes=place)

        @hookimpl
        def build_request(self, request: ChatRequest) -> HTTPRequest:
            if request.model == "-":
                raise UnsupportedRequestError("it wants a real model")
            return HTTPRequest("/ask", {"effort": request.reasoning_effort, "p": request.top_p})

    known = registry_of(stranger=Stranger(), plain=Echo(), openai=OpenAI())
    request = ChatRequest(messages, **{"model": "m", **options})
    return build_http_request(request, "stranger", registry=known, model_class=model_class)


# ------------------------------------------------------------------------------------------ the service


def test_a_call_records_what_was_changed() -> None:
    with ReplayServer() as server:
        server.add(Answer.of_json(body({"content": "Hi"})))
        endpoint = Endpoint(
            "openai", model="prod-7", model_class="gpt-5.1", base_url=f"{server.url}/v1", api_key="k"
        )
        with SyncLLMService(endpoint) as service:
            response = service.complete("Hi", reasoning_effort="max")
        assert server.requests[0].json()["reasoning_effort"] == "high"
    (change,) = response.attempts[-1].extra["adaptations"]
    assert (change["field"], change["asked"], change["sent"]) == ("reasoning_effort", "max", "high")
    assert "prod-7 takes no 'max'" in change["reason"]


def test_a_class_must_be_a_text() -> None:
    wrong: Any = 3
    with pytest.raises(ConfigurationError, match="model_class must be a text") as caught:
        Endpoint("openai", model_class=wrong)
    assert caught.value.key == "model_class"


# ------------------------------------------------------------------------------------------- the facts

PROVIDERS = [name for name in registry.names() if registry.mapper(name).info.model_classes]


def test_every_row_has_a_source_and_a_date() -> None:
    import tomllib
    from importlib.resources import files

    assert len(PROVIDERS) >= 17
    ids: list[str] = []
    for provider in PROVIDERS:
        package, _, path = str(registry.mapper(provider).info.model_classes).partition(":")
        content = tomllib.loads(files(package).joinpath(path).read_text("utf-8"))
        for row in content.get("classes", ()):
            assert row["sources"], row["id"]
            assert row["checked"].year >= 2026
            assert row["confidence"] in ("high", "medium", "low")
            ids.append(row["id"])
    assert len(ids) >= 75
    assert len(set(ids)) == len(ids)


def test_no_name_is_of_two_classes_of_one_file() -> None:
    """If it were, the order of the rows would decide, and one row would never count."""
    import tomllib
    from importlib.resources import files

    for place in {str(registry.mapper(provider).info.model_classes) for provider in PROVIDERS}:
        package, _, path = place.partition(":")
        rows = tomllib.loads(files(package).joinpath(path).read_text("utf-8")).get("classes", ())
        for part in ("models", "family"):
            patterns = Counter(pattern for row in rows for pattern in row.get(part, ()))
            assert max(patterns.values(), default=1) == 1, f"{place}: {patterns.most_common(1)}"


NAMES = re.compile(
    r"\bgpt(-\w|['\"])|gemini-[\d(\[]|\bo[134](-(mini|pro)|['\"])|claude-|sonnet|opus-?\d|haiku|(fable|mythos)-\d"
    r"|grok-\w|glm-\d|kimi-\w|qwen-?\w|\bqwq|deepseek-[a-z]+|command-[ar]\b|mistral-(small|medium|large)"
    r"|(magi|code|mini|dev)stral|gemma|llama-?\d|minimax-m\d|(['\"])(claude|gpt|grok|glm|kimi|qwen|llama|gemma)\W",
    re.IGNORECASE,
)
OTHERS = re.compile(r"https?://\S+|llama[.-]?cpp\b|llamafile|claude[ _-]code", re.I)
"""Addresses, and programs with the name of a family of models."""
EXAMPLES = {
    "core/crosswalk/agent/agent.py": 1,
    "core/crosswalk/agent/chat.py": 3,
    "core/crosswalk/agent/sync.py": 1,
    "core/crosswalk/cli/demo.py": 1,
    "core/crosswalk/cli/ask.py": 1,
    "core/crosswalk/cli/chat.py": 1,
    "core/crosswalk/cli/record.py": 1,
    "core/crosswalk/service/__init__.py": 1,
    "core/crosswalk/service/endpoint.py": 2,
    "core/crosswalk/service/service.py": 1,
    "contrib/crosswalk_serve/command.py": 2,
}
"""How often a file has an example for its reader, of a command, an argument or a configuration: always the same name."""


def names_in(text: str) -> list[str]:
    return [match[0] for match in NAMES.finditer(OTHERS.sub("", text))]


@pytest.mark.untraced
def test_no_code_knows_the_name_of_a_model() -> None:
    """Neither a text, nor a comment or a docstring. The test servers of ``crosswalk.testing`` may."""
    found: list[str] = []
    examples: Counter[str] = Counter()
    for folder in ("core", "plugins", "contrib", "scripts", "benchmarks"):
        for path in (ROOT / folder).rglob("*.py"):
            if "testing" in path.parts:
                continue
            place = str(path.relative_to(ROOT))
            for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
                rest, count = re.subn(r"\bllama3\.2\b", "", line)
                examples.update({place: count} if count else ())
                found += [f"{place}:{number}: {name}" for name in names_in(rest)]
    assert found == []
    assert examples == EXAMPLES


@pytest.mark.parametrize("model", sorted({model.rpartition("/")[2] for _, model in EFFORTS}))
def test_the_names_are_recognized_in_code(model: str) -> None:
    assert names_in(f'if model == "{model}":')


@pytest.mark.parametrize(
    "code",
    ['name.startswith("gpt")', "if 'qwen' in name:", r're.compile(r"gemini-(?![12])")', '("claude", "x")'],
)
def test_families_and_patterns_are_recognized_too(code: str) -> None:
    assert names_in(code)


# --------------------------------------------------------------------------------------- the gateway


def of_client(form: WireForm, model: str, said: dict[str, Any]) -> ChatRequest:
    """A client's request, for another model than the client named."""
    content = "input" if form is WireForm.OPENAI_RESPONSES else "messages"
    asked = {"model": "best", content: [{"role": "user", "content": "Hi"}], **said}
    return read_request(asked, form).request.for_model(model)


TO_O3 = {"temperature": 0.2, "reasoning_effort": "xhigh", "frequency_penalty": 1}
OWN_FORMAT: list[tuple[WireForm, str, str, dict[str, Any]]] = [
    (WireForm.OPENAI_CHAT, "openai", "o3", TO_O3),
    (WireForm.OPENAI_CHAT, "vllm", "o3", TO_O3),
    (WireForm.OPENAI_CHAT, "openai", "gpt-4.1", {"reasoning_effort": "high", "tools": [TOOL]}),
    (WireForm.OPENAI_RESPONSES, "openai_responses", "o3", {"temperature": 0.2, "reasoning": {"effort": "xhigh"}}),
    (WireForm.OPENAI_RESPONSES, "openai_responses", "gpt-6-astra", {"reasoning": {"effort": "none"}}),
    (WireForm.ANTHROPIC, "anthropic", "claude-opus-4-8", {"temperature": 0.2, "max_tokens": 999_999}),
    (WireForm.ANTHROPIC, "anthropic", "claude-sonnet-4-5", {"thinking": {"type": "adaptive"}, "max_tokens": 9}),
]  # fmt: skip


@pytest.mark.parametrize(("form", "provider", "model", "said"), OWN_FORMAT)
def test_what_a_client_writes_for_a_model_in_its_own_format_is_not_changed(
    form: WireForm, provider: str, model: str, said: dict[str, Any]
) -> None:
    asked = of_client(form, model, {**said, "model": model}).for_model(model)
    sent = build_http_request(asked, provider)
    assert {name: sent.body[name] for name in said} == said
    assert (sent.adaptations, sent.model_class) == ((), None)


@pytest.mark.parametrize(("form", "provider", "model", "said"), OWN_FORMAT)
def test_an_exchanged_model_or_another_format_lets_the_facts_count(
    form: WireForm, provider: str, model: str, said: dict[str, Any]
) -> None:
    asked = of_client(form, model, said)
    assert build_http_request(asked, provider, on_unsupported="drop").model_class not in (None, "")
    same_name = of_client(form, model, {**said, "model": model}).for_model(model)
    other = "gemini" if form is WireForm.ANTHROPIC else "anthropic"
    assert build_http_request(same_name, other, on_unsupported="drop").model_class is not None


def test_a_forced_call_that_is_left_out_leaves_the_rest_of_the_choice() -> None:
    choice = {"type": "any", "disable_parallel_tool_use": True}
    tools = [{"name": "f", "input_schema": {"type": "object"}}]
    said = {"max_tokens": 3000, "thinking": {"type": "adaptive"}, "tools": tools, "tool_choice": choice}
    request = of_client(WireForm.ANTHROPIC, "claude-opus-5-5", said)
    sent = build_http_request(request, "anthropic", on_unsupported="drop")
    assert sent.body["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}


@pytest.mark.parametrize(
    ("model", "thinking", "said", "gone"),
    [
        ("claude-opus-4-8", {"type": "adaptive"}, {"temperature": 0.2}, ["temperature"]),
        ("claude-opus-4-8", {"type": "enabled", "budget_tokens": 2000}, {"top_p": 0.2, "top_k": 4}, ["top_p", "top_k"]),
        ("claude-haiku-4-5", {"type": "enabled", "budget_tokens": 2000}, {"temperature": 0.2}, ["temperature"]),
        ("claude-opus-5-5", {"type": "adaptive"}, {"tools": [{"name": "f", "input_schema": {"type": "object"}}],
                                                   "tool_choice": {"type": "any"}}, ["tool_choice"]),
        ("claude-haiku-4-5", {"type": "disabled"}, {"temperature": 0.2}, []),
    ],
)  # fmt: skip
def test_what_is_named_as_left_out_beside_a_clients_thinking_is_not_sent(
    model: str, thinking: dict[str, Any], said: dict[str, Any], gone: list[str]
) -> None:
    request = of_client(WireForm.ANTHROPIC, model, {"max_tokens": 3000, "thinking": thinking, **said})
    sent = build_http_request(request, "anthropic", on_unsupported="drop")
    assert [one.field for one in sent.dropped if one.refuses] == gone
    assert {name: sent.body.get(name) for name in said} == {**said, **dict.fromkeys(gone)}


def test_a_route_to_another_model_fits_the_request_to_it() -> None:
    said = {
        "temperature": 0.2,
        "reasoning_effort": "xhigh",
        "frequency_penalty": 1,
        "max_completion_tokens": 9,
    }
    request = of_client(WireForm.OPENAI_CHAT, "o3", said)
    sent = build_http_request(request, "openai", on_unsupported="drop")
    assert sent.body["reasoning_effort"] == "high"
    assert {"temperature", "frequency_penalty"}.isdisjoint(sent.body)
    assert sent.body["max_completion_tokens"] == 9
    assert sorted(one.field for one in sent.dropped) == ["frequency_penalty", "temperature"]
    assert changes(sent) == [
        ("reasoning_effort", "xhigh", "high"),
        ("temperature", 0.2, None),
        ("frequency_penalty", 1, None),
    ]
    with pytest.raises(UnsupportedRequestError) as caught:
        build_http_request(request, "openai")
    assert sorted(caught.value.options) == ["frequency_penalty", "temperature"]


def test_a_clients_budget_fits_the_model_behind_the_alias() -> None:
    said = {"max_tokens": 20000, "thinking": {"type": "enabled", "budget_tokens": 9000}}
    for model, sent, named in (
        ("claude-haiku-4-5", {"type": "enabled", "budget_tokens": 9000}, []),
        ("claude-opus-4-8", {"type": "adaptive"}, ["medium"]),
    ):
        request = build_http_request(of_client(WireForm.ANTHROPIC, model, said), "anthropic")
        assert request.body["thinking"] == sent
        assert (
            [request.body["output_config"]["effort"]] == named
            if named
            else "output_config" not in request.body
        )
    request = build_http_request(of_client(WireForm.ANTHROPIC, "gemini-2.5-pro", said), "gemini")
    assert about_thinking(request.body)["thinkingConfig"]["thinkingBudget"] == 9000
    assert not changed(request)
    request = build_http_request(of_client(WireForm.ANTHROPIC, "gemini-3.5-flash", said), "gemini")
    assert about_thinking(request.body)["thinkingConfig"]["thinkingLevel"] == "MEDIUM"
    assert changes(request) == [("thinking_budget", 9000, None)]


@pytest.mark.parametrize("model", ["m", "gpt-5"])
@pytest.mark.parametrize("failure", [KeyError, SystemExit, RecursionError], ids=lambda kind: kind.__name__)
def test_a_plugin_that_fails_is_told_apart_from_one_that_refuses(
    failure: type[BaseException], model: str
) -> None:
    """What asks a plugin for its format is fenced as what asks it for a request is."""

    class Fails(OpenAI):
        @hookimpl
        def build_request(self, request: ChatRequest) -> HTTPRequest:
            raise failure("sk-secret-1")

    known = registry_of(fails=Fails(), openai=OpenAI())
    for model_class in (None, "gpt-5.1"):
        with pytest.raises(PluginError, match=f"'fails'.*{failure.__name__}") as raised:
            build_http_request(
                ChatRequest("Hi", model=model), "fails", registry=known, model_class=model_class
            )
        assert "secret" not in str(raised.value)
