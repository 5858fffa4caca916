"""Conversations that somebody made by hand, in an order or a form that no server takes: mended, or refused by name.

The rules are those that the providers publish, or that their servers are known to enforce. Each names where.
"""

from __future__ import annotations

from typing import Any

import attrs
import orjson
import pytest

from crosswalk import (
    AudioPart,
    ChatMessage,
    ChatResponse,
    FilePart,
    ImagePart,
    TextPart,
    ToolCall,
    normalize,
    registry,
)
from crosswalk.config import Settings
from crosswalk.service import (
    CacheMark,
    ChatRequest,
    Endpoint,
    SyncLLMService,
    UnsupportedRequestError,
    adaptations_of,
    build_http_request,
)
from crosswalk.testing import STRICT_PROVIDERS, strict_rules
from crosswalk.testing.replay import Answer, ReplayServer
from crosswalk.testing.strict.rules import StrictRequest
from wires import body

PROVIDERS = sorted(entry.name for entry in registry.providers())
PNG = "iVBORw0KGgo="
USER, MODEL, SYSTEM, RESULT = (
    ChatMessage.user,
    ChatMessage.assistant,
    ChatMessage.system,
    ChatMessage.tool_result,
)


def calling(*ids: str) -> ChatMessage:
    return MODEL(None, tool_calls=[ToolCall(id, "f", "{}") for id in ids])


def said_by(provider: str, *turns: Any, **options: Any) -> list[dict[str, Any]]:
    built = build_http_request(ChatRequest(turns, model="m", max_tokens=9, **options), provider).body
    said: list[dict[str, Any]] = built.get("messages") or built.get("contents") or built["input"]
    return said


# ------------------------------------------------------------------------------------ refused, by name

REFUSED = {
    r"messages\[1\] is the result of call 'zz', which no answer before it made": [
        USER("hi"),
        RESULT("zz", "1"),
    ],
    r"messages\[0\] is the result of call 'a', which": [RESULT("a", "1"), calling("a"), RESULT("a", "2")],
    r"messages\[3\] is a second result of call 'a'": [
        USER("hi"),
        calling("a"),
        RESULT("a", "1"),
        RESULT("a", "2"),
    ],
    r"messages\[1\] has two calls of one id": [USER("hi"), calling("a", "a"), RESULT("a", "1")],
    r"messages\[1\] calls 'f', and has no result of it": [USER("hi"), calling("a", "b"), RESULT("a", "1")],
    "a conversation without content": [USER("")],
    "without content": [SYSTEM(""), USER(""), USER([TextPart("")])],
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_cannot_be_told_is_refused_by_all_alike(why: str) -> None:
    for provider in PROVIDERS:
        with pytest.raises(UnsupportedRequestError, match=why) as raised:
            said_by(provider, *REFUSED[why])
        assert raised.value.options == ("messages",)
        assert raised.value.provider == provider


@pytest.mark.parametrize("option", ["previous_response_id", "conversation"])
def test_a_result_whose_call_the_server_keeps(option: str) -> None:
    options = {"openai_responses": {option: "resp_1"}}
    (output,) = said_by("openai_responses", RESULT("a", "1"), provider_options=options)
    assert output == {"type": "function_call_output", "call_id": "a", "output": "1"}
    with pytest.raises(UnsupportedRequestError, match="which no answer before it made"):
        said_by("openai", RESULT("a", "1"), provider_options=options)


def test_a_result_of_a_call_that_is_kept_elsewhere_has_no_tools_name() -> None:
    """A caller that wants the name asks for it."""
    (said,) = said_by("ollama", RESULT("a", "1"), provider_options={"ollama": {"conversation": "c"}})
    assert said == {"role": "tool", "content": "1", "tool_call_id": "a"}
    (said,) = said_by("perplexity", RESULT("a", "1"), provider_options={"perplexity": {"conversation": "c"}})
    assert said["content"] == "(What a tool gave: 1)"
    with pytest.raises(UnsupportedRequestError, match="^gemini: a tool's result must name its tool"):
        said_by("gemini", RESULT("a", "1"), provider_options={"gemini": {"conversation": "c"}})


@pytest.mark.parametrize("provider", ["anthropic", "bedrock", "gemini", "mistral"])
def test_an_answer_alone_that_is_empty(provider: str) -> None:
    empty = ChatResponse.error("cut", model="m")
    with pytest.raises(UnsupportedRequestError, match="the conversation has no content"):
        said_by(provider, empty)


# ------------------------------------------------------------------------------------ mended


def check_perplexitys_rules(messages: list[dict[str, Any]]) -> None:
    """ "After the (optional) system message(s), user and assistant roles should be alternating": its error 400
    (perplexityai/api-discussion 265); and "Last message must have role `user`" (BerriAI/litellm 3918). It has no tools.
    """
    roles = [message["role"] for message in messages]
    spoken = roles[roles.count("system") :]
    assert spoken == ["user", *["assistant", "user"] * (len(spoken) // 2)]
    assert all(message.keys() == {"role", "content"} for message in messages)


MENDED: dict[str, list[Any]] = {
    "the user speaks twice": [SYSTEM("Be kind."), USER("hi"), USER([TextPart("well?"), ImagePart(data=PNG)])],
    "the model speaks twice": [USER("hi"), MODEL("Yes?"), MODEL("Well?"), USER("so")],
    "the system speaks alone": [USER("hi"), SYSTEM("Be brief.")],
    "nobody ran a call": [USER("hi"), calling("a", "b"), USER("never mind")],
    "nobody ran one of two": [USER("hi"), calling("a", "b"), RESULT("b", "1"), USER("never mind")],
    "the result came late": [USER("hi"), calling("a"), USER("well?"), RESULT("a", "1")],
    "an id is used again": [USER("hi"), calling("a"), USER("well?"), calling("a"), RESULT("a", "1")],
    "the model greets": [MODEL("How can I help?"), USER("hi")],
    "the system speaks late": [USER("hi"), MODEL("Yes?"), SYSTEM("Be brief."), USER("well?")],
    "the user goes on behind a result": [USER("hi"), calling("a"), RESULT("a", "1"), USER("well?")],
    "a tool gives an image": [USER("hi"), calling("a"), RESULT("a", [ImagePart(data=PNG)])],
    "the answer is begun": [USER("hi"), MODEL("It is ")],
}


@pytest.mark.sweep
@pytest.mark.parametrize("turns", MENDED.values(), ids=MENDED)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_can_be_told_is_sent_as_the_server_takes_it(provider: str, turns: list[Any]) -> None:
    built = build_http_request(ChatRequest(turns, model="m", max_tokens=9), provider)
    count = sum(len(getattr(turn, "tool_calls", None) or ()) for turn in turns)
    if provider == "perplexity":
        check_perplexitys_rules(built.body["messages"])
        assert str(built.body).count("(I call f with {}.)") == count
        assert str(built.body).count("(What f gave:") == count
    else:
        strict = strict_rules(provider if provider in STRICT_PROVIDERS else "openai")
        assert [*strict.violations(StrictRequest(built.path.partition("?")[0], built.body))] == []
        assert str(built.body).count("'name': 'f'") >= count


def test_a_call_that_nobody_ran_is_told_so() -> None:
    for provider in PROVIDERS:
        found = str(said_by(provider, *MENDED["nobody ran one of two"]))
        assert found.count("Error: not run: the conversation went on") == 1


def test_what_perplexity_is_told() -> None:
    """In the order of the conversation, the system first. Nothing of it is left out."""
    turns = [MODEL("Hello."), USER("hi"), SYSTEM("Be brief."), USER([TextPart("well?")]), USER("so?")]
    turns += [calling("a", "b"), RESULT("a", "1"), RESULT("b", [TextPart("2")]), MODEL(""), MODEL("It is ")]
    assert said_by("perplexity", *turns) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "(The conversation begins.)"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": [{"type": "text", "text": text} for text in ("hi", "well?", "so?")]},
        {"role": "assistant", "content": "(I call f with {}.)\n\n(I call f with {}.)"},
        {"role": "user", "content": "(What f gave: 1)\n\n(What f gave: 2)"},
        {"role": "assistant", "content": "It is "},
        {"role": "user", "content": "(Go on.)"},
    ]
    assert said_by("perplexity", SYSTEM("Be brief.")) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "(The conversation begins.)"},
    ]


def test_whole_rounds_go_as_they_are() -> None:
    """In the order in which the results were given."""
    turns = [USER("hi"), calling("a", "b"), RESULT("b", "1"), RESULT("a", "2"), USER("well?")]
    assert [m.get("tool_call_id") for m in said_by("vllm", *turns)] == [None, None, "b", "a", None]


@pytest.mark.parametrize("after", [3, -1])
def test_a_mark_for_the_cache_stays_behind_its_message(after: int) -> None:
    turns = [USER("hi"), calling("a"), USER("well?"), USER("please")]
    messages = said_by("anthropic", *turns, cache_marks=[CacheMark(after), CacheMark("system")])
    marked = [
        part.get("text") for message in messages for part in message["content"] if "cache_control" in part
    ]
    assert marked == ["please"]


# ------------------------------------------------------------------------------------ what a tool shows


@pytest.mark.parametrize("more", [[], [USER("well?")]], ids=["at the end", "the user goes on"])
def test_what_a_tool_shows_the_user_shows_to_cohere(more: list[Any]) -> None:
    """Its results hold texts and documents alone: "ToolMessageV2" of its OpenAPI description."""
    turns = [USER("hi"), calling("a"), RESULT("a", [TextPart("Look."), ImagePart(data=PNG)]), *more]
    _, _, result, shown = said_by("cohere", *turns)
    assert result == {"role": "tool", "tool_call_id": "a", "content": "Look."}
    assert [part["type"] for part in shown["content"]] == ["text", "image_url", *["text"] * len(more)]


def test_what_a_model_cannot_be_shown_is_named() -> None:
    seen = attrs.evolve(
        normalize(body({"content": "."}), "openai"), message=MODEL([TextPart("Here:"), ImagePart(data=PNG)])
    )
    plain: list[Any] = [
        USER("hi"),
        USER([TextPart("a"), TextPart("b")]),
        normalize(body({"content": "."}), "openai"),
    ]
    shown = [FilePart(data="JVBERi0x", media_type="application/pdf", name="a.pdf"), AudioPart(data="UklG")]
    with ReplayServer() as server:
        server.add(Answer.of_json(body({"content": "ok"})))
        endpoint = Endpoint("openai", model="m", base_url=server.url, api_key="k", takes_media=False)
        with SyncLLMService(endpoint, settings=Settings()) as service:
            answer = service.complete(ChatRequest([*plain, seen, USER(shown)]))
    sent = orjson.loads(server.requests[0].body)["messages"]
    assert [message["content"] for message in sent[3:]] == [
        "Here:\n(an image: you cannot be shown it)",
        "(a file: a.pdf, application/pdf, you cannot be shown it)\n(a sound: you cannot be shown it)",
    ]
    left_out = "images, sounds and files: the model takes text alone"
    told = adaptations_of(answer)
    assert [(one.field, one.reason) for one in told] == [
        ("messages[3]", left_out),
        ("messages[4]", left_out),
    ]


def test_state_that_is_no_list_of_objects_stays_here() -> None:
    """A block that is not an object has no place, so the blocks go back as they were read."""
    block = {"type": "text", "text": "Hi"}
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [block]}
    ended = {"stop_reason": "end_turn", "stop_sequence": None, "usage": usage}
    answer = normalize({**message, **ended}, "anthropic")
    metadata = attrs.evolve(answer.metadata, extensions={"content": ["odd"]})
    turns = [ChatMessage.user("Hi"), attrs.evolve(answer, metadata=metadata), ChatMessage.user("Go on.")]
    built = build_http_request(ChatRequest(turns, model="m", max_tokens=9), "anthropic").body
    assert "odd" not in orjson.dumps(built).decode()
