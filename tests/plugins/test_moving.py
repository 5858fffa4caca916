"""A conversation goes on anywhere: the request keeps the rules of the asked provider, also after it was stored.

The rules are those that the providers publish, or that their servers are known to enforce. Each names where.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import orjson
import pytest

import beside
from crosswalk import (
    ChatMessage,
    ChatResponse,
    CrosswalkError,
    TextPart,
    ToolCall,
    from_json,
    normalize,
    registry,
    to_json,
)
from crosswalk.mapping import Reader, ReaderOptions
from crosswalk.plugins import CallIds
from crosswalk.service import ChatRequest, UnsupportedRequestError, build_http_request
from crosswalk.service.way_back import with_fitting_ids
from crosswalk.testing import Capture, load_captures
from wires import CLOCK, body

CAPTURES = Path(__file__).parents[1] / "captures"
PROVIDERS = sorted(
    entry.name for entry in registry.providers() if registry.mapper(entry.name).build_request is not None
)

ID_RULES = {
    # "Tool call id was … but must be a-z, A-Z, 0-9, with a length of 9" (code 3280).
    "mistral": "[a-zA-Z0-9]{9}",
    # The API reference's pattern of ``tool_use.id``.
    "anthropic": "[a-zA-Z0-9_-]+",
    # "string too long. Expected a string with maximum length 40".
    "openai": ".{1,40}",
    # ``call_id`` in OpenAI's OpenAPI description.
    "openai_responses": ".{1,64}",
    # ``ToolUseId`` in the service model of bedrock-runtime.
    "bedrock": "[a-zA-Z0-9_-]{1,64}",
    # What it passes on, OpenAI and Anthropic take.
    "openrouter": "[a-zA-Z0-9_-]{1,40}",
}  # fmt: skip
OBJECTS_ONLY = {"anthropic", "bedrock", "gemini", "ollama", "llamacpp", "lmstudio", "sglang", "vllm"}
"""Whose servers parse arguments, or take objects: what is no JSON object would be refused."""
IDS = [
    "call_0",  # made up by mapping
    "call_0_2",  # renamed by an agent
    "functions.plot:0",  # Kimi
    "chatcmpl-tool-0123456789abcdef0123456789abcdef",  # vLLM
    "toolu_01A09q90qw90lq917835lq9",
    "D681PevKs",
    "call_" + "x" * 80,
    "über all",
]


def said_ids(value: Any, key: str = "") -> Iterator[tuple[bool, str]]:
    """Whether it is a result's, and the id, of each call and result in *value*, in order."""
    if isinstance(value, list):
        for item in value:
            yield from said_ids(item, key)
    elif isinstance(value, dict):
        is_result = bool(value.keys() & {"tool_call_id", "tool_use_id", "toolResult", "functionResponse"})
        is_result = is_result or key in ("toolResult", "functionResponse")
        is_result = is_result or str(value.get("type")).endswith("_output")
        is_call = key in ("tool_calls", "toolUse", "toolResult", "functionCall", "functionResponse")
        for name, inner in value.items():
            is_id = name in ("tool_call_id", "tool_use_id", "call_id", "toolUseId") or (
                name == "id" and (is_call or value.get("type") == "tool_use")
            )
            if is_id:
                yield is_result, inner
            else:
                yield from said_ids(inner, name)


def test_all_shipped_providers_can_be_asked() -> None:
    assert len(PROVIDERS) == len(registry.providers()) == 25


def messages_of(provider: str, *turns: Any) -> Any:
    built = build_http_request(ChatRequest(turns, model="m"), provider, on_unsupported="drop").body
    return built.get("messages") or built.get("contents") or built["input"]


def answer_of(provider: str, *ids: str, arguments: str = '{"a":1}') -> ChatResponse:
    calls = [{"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}} for id in ids]
    answer = normalize(body({"content": None, "tool_calls": calls}, "tool_calls"), "openai")
    return attrs.evolve(answer, metadata=attrs.evolve(answer.metadata, provider_id=provider))


def asked_by(provider: str) -> ChatResponse:
    """An answer of *provider* itself, with calls: a recorded one where there is one."""
    for capture in load_captures(CAPTURES / provider) if (CAPTURES / provider).is_dir() else ():
        if capture.status == 200 and not capture.stream and capture.complete:
            answer = normalize(capture.body, provider)
            if answer.tool_calls and all(as_object(call) for call in answer.tool_calls):
                return answer
    return answer_of(provider, "call_0", "functions.f:1")


def as_object(call: ToolCall) -> bool:
    try:
        call.parsed()
    except CrosswalkError:
        return False
    return True


@pytest.mark.sweep
@pytest.mark.parametrize("target", [name for name in PROVIDERS if name != "perplexity"])
@pytest.mark.parametrize("origin", PROVIDERS)
def test_a_conversation_goes_on_on_any_other(origin: str, target: str) -> None:
    """All ids are what the target takes, each result has the id of its call, and no two calls have the same."""
    own = asked_by(origin)
    strange = answer_of(origin, *IDS)
    turns: list[Any] = [ChatMessage.user("hi")]
    for answer in (own, strange, own, strange):  # the same ids twice, as servers give them that count from 0
        turns.append(answer)
        turns += [ChatMessage.tool_result(call.id, "{}", name=call.name) for call in answer.tool_calls]
    found = list(said_ids(messages_of(target, *turns, ChatMessage.user("go on"))))
    calls = [id for is_result, id in found if not is_result]
    results = [id for is_result, id in found if is_result]
    assert calls == results
    assert len(calls) == 2 * (len(own.tool_calls) + len(strange.tool_calls))
    assert all(re.fullmatch(ID_RULES.get(target, ".+"), id) for id in calls)
    if target in ID_RULES:
        assert len(set(calls)) == len(calls)
        assert calls == [id for is_result, id in said_ids(messages_of(target, *turns)) if not is_result]


@pytest.mark.sweep
@pytest.mark.parametrize("origin", PROVIDERS)
def test_a_conversation_with_calls_goes_on_where_there_are_no_tools(origin: str) -> None:
    """Perplexity gets them in words: "user and assistant roles should be alternating", its error 400 says."""
    own = asked_by(origin)
    results = [ChatMessage.tool_result(call.id, "{}", name=call.name) for call in own.tool_calls]
    said = messages_of("perplexity", ChatMessage.user("hi"), own, *results, ChatMessage.user("go on"))
    assert [message["role"] for message in said] == ["user", "assistant", "user"]
    assert not [*said_ids(said)]
    assert all(f"(I call {call.name} with {{" in said[1]["content"] for call in own.tool_calls)
    assert said[2]["content"].count("gave: {}") == len(own.tool_calls)


@pytest.mark.parametrize("target", sorted(ID_RULES))
def test_an_id_that_fits_stays_as_it_is(target: str) -> None:
    turns = [
        ChatMessage.user("hi"),
        answer_of("vllm", "D681PevKs"),
        ChatMessage.tool_result("D681PevKs", "1"),
    ]
    ids = {id for _, id in said_ids(messages_of(target, *turns))}
    assert ids == {"D681PevKs"}


NAME_RULES = {
    # The pattern in OpenAI's error of an invalid ``function.name``, and in the references of the others.
    **dict.fromkeys(("openai", "deepseek", "mistral", "openrouter", "bedrock"), "[a-zA-Z0-9_-]{1,64}"),
    **dict.fromkeys(("anthropic", "openai_responses"), "[a-zA-Z0-9_-]{1,128}"),
    "gemini": "[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}",
}


@pytest.mark.untraced
@pytest.mark.parametrize(
    "name", ["multi_tool_use.parallel", "weather in Paris", "f" * 200, "ü", "2 m", "weather-2"]
)
@pytest.mark.parametrize("origin", [None, "vllm"], ids=["its own", "another's"])
@pytest.mark.parametrize("target", sorted(NAME_RULES))
def test_a_tool_that_nobody_offered_can_be_told_about(target: str, origin: str | None, name: str) -> None:
    answer = answer_of(origin or target, "D681PevKs")
    calls = [attrs.evolve(call, name=name) for call in answer.tool_calls]
    message = attrs.evolve(answer.message, tool_calls=calls)
    segments = [attrs.evolve(one, metadata={**one.metadata, "name": name}) for one in answer.segments]
    answer = attrs.evolve(answer, message=message, segments=segments)
    result = ChatMessage.tool_result("D681PevKs", "there is no such tool", name=name)
    for turns in ([answer, result], [message, result]):
        found = {*names_in(messages_of(target, ChatMessage.user("hi"), *turns))}
        assert len(found) == 1
        assert all(re.fullmatch(NAME_RULES[target], one) for one in found)
        assert found == {name} or not re.fullmatch(NAME_RULES[target], name)


def names_in(value: Any) -> Iterator[str]:
    """The names of calls and results in *value*."""
    if isinstance(value, list):
        for item in value:
            yield from names_in(item)
    elif isinstance(value, dict):
        yield from ([value["name"]] if "name" in value else [])
        for inner in value.values():
            yield from names_in(inner)


def test_ids_are_the_same_whatever_follows() -> None:
    """A server finds its cached part of a conversation again."""
    turns = [ChatMessage.user("hi"), answer_of("vllm", *IDS)]
    turns += [ChatMessage.tool_result(id, "1") for id in IDS]
    short, long = (messages_of("mistral", *turns, *more) for more in ((), turns[1:]))
    assert long[: len(short)] == short


def test_two_ids_that_would_become_one_do_not() -> None:
    rule = CallIds(maximum=1)
    ids = [f"call_{number}" for number in range(40)]
    turns = [ChatMessage.user("hi"), answer_of("vllm", *ids)]
    _, answer = with_fitting_ids(turns, rule)
    assert isinstance(answer, ChatResponse)
    found = [call.id for call in answer.tool_calls]
    assert len(set(found)) == 40
    assert [segment.metadata["id"] for segment in answer.segments] == found


@pytest.mark.parametrize("pattern", ["[0-9]+", "call_.*"])
def test_a_rule_that_no_made_id_keeps_is_none(pattern: str) -> None:
    with pytest.raises(ValueError, match="letters and digits"):
        CallIds(pattern=pattern)


# ------------------------------------------------------------------------------------ arguments that are none


def arguments_in(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for item in value:
            yield from arguments_in(item)
    elif isinstance(value, dict):
        for name, inner in value.items():
            if name in ("arguments", "input", "args"):
                yield inner
            else:
                yield from arguments_in(inner)


@pytest.mark.sweep
@pytest.mark.parametrize("text", ['{"city":', "", "[1]", "not JSON", '{"a":1,"a":2}'])
@pytest.mark.parametrize("target", [name for name in PROVIDERS if name != "perplexity"])
def test_arguments_that_are_none_go_back_as_an_object(target: str, text: str) -> None:
    """Or as they were, where the server takes any text: nothing of them is thrown away."""
    for answer in (
        answer_of(target, "D681PevKs", arguments=text),
        answer_of("vllm", "D681PevKs", arguments=text),
    ):
        call = attrs.evolve(answer.tool_calls[0], arguments=text)
        answer = attrs.evolve(answer, message=attrs.evolve(answer.message, tool_calls=[call]))
        segments = [attrs.evolve(segment, content=text) for segment in answer.segments]
        answer = attrs.evolve(answer, segments=segments)
        turns = (ChatMessage.user("hi"), answer, ChatMessage.tool_result("D681PevKs", "no JSON", name="f"))
        (given,) = arguments_in(messages_of(target, *turns))
        if target in OBJECTS_ONLY:
            given = orjson.loads(given) if isinstance(given, str) else given
            assert given == {"INVALID_JSON": text} or (not text and given == {})
        else:
            assert given == text or (not text and given == "{}")


# ------------------------------------------------------------------------------------ refusals, and nothing at all


def texts_in(value: Any) -> Iterator[str]:
    """Each text of the assistant in *value*."""
    for message in value:
        if message["role"] in ("assistant", "model"):
            content = message.get("content", message.get("parts"))
            blocks = content if isinstance(content, list) else [{"text": content}]
            yield from (block.get("text") for block in blocks if "text" in block)  # type: ignore[misc]
            yield from (block["refusal"] for block in blocks if "refusal" in block)
            yield message.get("refusal")


@pytest.mark.parametrize("target", PROVIDERS)
@pytest.mark.parametrize("origin", ["openai", None], ids=["of another", "of its own"])
def test_why_a_model_declined_goes_back(origin: str | None, target: str) -> None:
    refused = normalize(body({"content": None, "refusal": "I would rather not."}), "openai")
    about = attrs.evolve(refused.metadata, provider_id=origin or target)
    refused = attrs.evolve(refused, metadata=about)
    said = messages_of(target, ChatMessage.user("hi"), refused, ChatMessage.user("why?"))
    assert [text for text in texts_in(said) if text] == ["I would rather not."]
    assert [("refusal" in message) for message in said][1] is (target == "openai")


NOTHING = [
    ChatMessage.assistant(),
    ChatMessage.assistant(""),
    attrs.evolve(ChatResponse.error("cut", model="m"), message=ChatMessage.assistant("")),
]
TAKE_EMPTY = {
    "deepseek", "fireworks", "groq", "llamacpp", "lmstudio", "ollama", "openai", "openrouter", "perplexity",
    "sglang", "tgi", "together", "vllm", "xai",
}  # fmt: skip


@pytest.mark.parametrize("nothing", NOTHING, ids=["none", "empty", "an error"])
@pytest.mark.parametrize("target", PROVIDERS)
def test_a_turn_that_says_nothing_is_empty_or_says_so(target: str, nothing: Any) -> None:
    said = messages_of(target, ChatMessage.user("hi"), nothing, ChatMessage.user("go on"))
    answers = [message for message in said if message["role"] == "assistant"]
    if target in TAKE_EMPTY:
        assert answers == [{"role": "assistant", "content": ""}]
    else:
        assert [text for text in texts_in(said) if text] == ["(no answer)"]


@pytest.mark.parametrize("target", PROVIDERS)
def test_an_empty_text_is_no_part(target: str) -> None:
    said = messages_of(target, ChatMessage.user([TextPart(""), TextPart("hi"), TextPart("")]))
    assert b'""' not in orjson.dumps(said)


@pytest.mark.parametrize("target", ["anthropic", "bedrock"])
def test_white_space_alone_is_no_text(target: str) -> None:
    """Both refuse it."""
    turns = [
        ChatMessage.user([TextPart("hi"), TextPart(" \n")]),
        ChatMessage.assistant("\n\n", tool_calls=[ToolCall("c", "f", "{}")]),
        ChatMessage.tool_result("c", [TextPart(" "), TextPart("1")]),
    ]
    said = orjson.dumps(messages_of(target, *turns))
    assert b"\\n" not in said
    assert b'" "' not in said


# ------------------------------------------------------------------------------------ stored and read again


def check_stored(provider: str, capture: Capture) -> None:
    """The request after the answer of *capture* is the same, stored or not, to its provider and to another."""
    ways = []
    for keep_raw in (True, False):
        options = ReaderOptions(
            status=capture.status, id_factory=lambda: "made", clock=CLOCK, keep_raw=keep_raw, unknown="keep"
        )
        reading = Reader(registry.mapper(provider), options)
        try:
            list(reading.read(capture.body))
            list(reading.finish())
            ways.append(reading.response())
        except CrosswalkError as error:
            ways.append(reading.partial(str(error)))
    ways.append(from_json(to_json(ways[0]), ChatResponse))
    for target in (provider, "openai" if provider == "anthropic" else "anthropic"):
        sent = []
        for answer in ways:
            request = ChatRequest([ChatMessage.user("hi"), answer, ChatMessage.user("go on")], model="m")
            try:
                built = build_http_request(request, target, on_unsupported="drop")
            except UnsupportedRequestError as error:
                sent.append(str(error).encode())
            else:
                sent.append(built.path.encode() + orjson.dumps(built.body))
        assert sent[0] == sent[1] == sent[2], f"{provider} {capture.case} to {target}"


@pytest.mark.sweep
@pytest.mark.parametrize("folder", sorted(path.name for path in CAPTURES.iterdir() if path.is_dir()))
def test_what_is_sent_back_is_the_same_after_storing(folder: str) -> None:
    for capture in load_captures(CAPTURES / folder):
        check_stored(folder, capture)


@pytest.mark.sweep
@beside.needs_captures
@pytest.mark.parametrize("folder", beside.folders())
def test_what_is_sent_back_is_the_same_after_storing_of_all_that_was_recorded(folder: str) -> None:
    for provider, capture in beside.answers_in(folder):
        check_stored(provider, capture)
