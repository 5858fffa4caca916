"""Mistral's Conversations API and LM Studio's own API: the calls of tools that the server runs, and odd answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson
import pytest

from crosswalk import (
    ChatResponse,
    ErrorKind,
    FinishReason,
    IncompleteStreamError,
    MappingError,
    SegmentType,
    UnknownEventError,
    UsageInfo,
    detect,
    normalize,
    normalize_stream,
    registry,
    to_json,
)

HUB = {"type": "ephemeral_mcp", "server_label": "hub"}
CALL = {"tool": "search", "provider_info": HUB}
ARGUMENTS = {"q": "a=b=="}
DONE = {**CALL, "arguments": ARGUMENTS, "output": "[]"}
FAILED = {"reason": "no such tool", "metadata": {"type": "invalid_name", "tool_name": "open"}}
STATS = {"input_tokens": 9, "total_output_tokens": 8, "reasoning_output_tokens": 3}


def event(type: str, **fields: Any) -> dict[str, Any]:
    return {"type": type, **fields}


def sse(events: Iterable[dict[str, Any]]) -> list[bytes]:
    return [b"event: %s\ndata: %s\n\n" % (event["type"].encode(), orjson.dumps(event)) for event in events]


def read(provider: str, *events: dict[str, Any]) -> ChatResponse:
    return normalize_stream(sse(events), provider).until_done()


def cut(provider: str, *events: dict[str, Any]) -> ChatResponse:
    """The partial answer of a stream without an end."""
    with pytest.raises(IncompleteStreamError) as caught:
        read(provider, *events)
    assert caught.value.partial is not None
    return caught.value.partial


def calls(response: ChatResponse) -> list[tuple[str, Any]]:
    """The text and the fields of each call of a tool that the server has run."""
    return [
        (segment.content, segment.metadata)
        for segment in response.segments
        if segment.type is SegmentType.TOOL_CALL
    ]


# ------------------------------------------------------------------------------------ LM Studio

START = event("chat.start", model_instance_id="qwen3")
BEGUN = event("tool_call.start", **CALL)
ARGUED = event("tool_call.arguments", **CALL, arguments=ARGUMENTS)
TEXT = '{"q":"a=b=="}'


def answer(*output: dict[str, Any]) -> dict[str, Any]:
    return {"model_instance_id": "qwen3", "output": list(output), "stats": STATS, "response_id": "resp_1"}


def end(*output: dict[str, Any]) -> dict[str, Any]:
    return event("chat.end", result=answer(*output))


@pytest.mark.parametrize("result", ["success", "result"])
@pytest.mark.parametrize("before", [(), (BEGUN,), (ARGUED,), (BEGUN, ARGUED)])
def test_a_streamed_call_is_that_of_the_whole_answer(before: tuple[dict[str, Any], ...], result: str) -> None:
    items: list[dict[str, Any]] = [{"type": "tool_call", **DONE}, {"type": "message", "content": "Hi"}]
    whole = normalize(answer(*items), "lmstudio")
    events = (*before, event(f"tool_call.{result}", **DONE), event("message.delta", content="Hi"))
    streamed = read("lmstudio", START, *events, end(*items))
    assert calls(whole) == [(TEXT, {"type": "tool_call", **CALL, "output": "[]"})]
    assert streamed.segments == whole.segments
    assert streamed.usage == whole.usage == UsageInfo(9, 8, reasoning_tokens=3)
    assert streamed.metadata.extensions == whole.metadata.extensions


@pytest.mark.parametrize(
    ("events", "text"), [((BEGUN,), ""), ((BEGUN, ARGUED), TEXT), ((ARGUED,), TEXT), ((ARGUED, ARGUED), TEXT)]
)
def test_a_call_that_is_cut_before_its_result_is_kept(events: tuple[dict[str, Any], ...], text: str) -> None:
    assert calls(cut("lmstudio", START, *events)) == [(text, {"type": "tool_call", **CALL})]


def test_several_calls_stay_apart() -> None:
    second = {**CALL, "tool": "fetch", "arguments": {}, "output": "x"}
    results = (event("tool_call.success", **DONE), event("tool_call.success", **second))
    items: list[dict[str, Any]] = [{"type": "tool_call", **DONE}, {"type": "tool_call", **second}]
    whole = normalize(answer(*items), "lmstudio")
    assert [(text, about["tool"]) for text, about in calls(whole)] == [(TEXT, "search"), ("{}", "fetch")]
    assert read("lmstudio", START, *results, end(*items)).segments == whole.segments
    cut_there = cut("lmstudio", START, BEGUN, ARGUED, results[0], event("tool_call.start", **CALL))
    assert [text for text, _ in calls(cut_there)] == [TEXT, ""]


def test_a_call_that_could_not_be_run() -> None:
    item = {"type": "invalid_tool_call", **FAILED}
    whole = normalize(answer(item), "lmstudio")
    assert calls(whole) == [("", item)]
    streamed = read("lmstudio", START, BEGUN, event("tool_call.failure", **FAILED), end(item))
    assert calls(streamed) == [("", {"type": "tool_call", **CALL}), ("", item)]


def test_arguments_that_change_are_both_kept() -> None:
    changed = event("tool_call.success", **{**DONE, "arguments": {"q": "y"}})
    ((text, about),) = calls(read("lmstudio", START, BEGUN, ARGUED, changed, end()))
    assert (text, about["arguments"]) == (TEXT, {"q": "y"})


def test_what_only_the_end_of_a_stream_has_stays_where_it_is() -> None:
    items: list[dict[str, Any]] = [{"type": "message", "content": "Other"}, {"type": "tool_call", **DONE}]
    response = read("lmstudio", START, event("message.delta", content="Hi"), end(*items))
    assert response.text == "Hi"
    assert response.metadata.extensions["output"] == tuple(items)


def test_a_stream_of_which_only_the_end_came_is_its_answer() -> None:
    response = read("lmstudio", START, end({"type": "message", "content": "Hi"}))
    assert (response.text, response.id, response.finish_reason) == ("Hi", "resp_1", FinishReason.STOP)
    assert "output" not in response.metadata.extensions


@pytest.mark.parametrize("item", [{"type": "painting", "x": 1}, {"type": 7}, {"content": "Hi"}])
def test_an_item_that_nobody_knows_is_kept(item: dict[str, Any]) -> None:
    response = normalize(answer(item), "lmstudio", unknown="keep")
    assert response.metadata.extensions["output"] == (item,)


def test_an_answer_without_counts_has_none() -> None:
    response = normalize({"model_instance_id": "m", "output": []}, "lmstudio")
    assert response.usage == UsageInfo(0, 0)


def test_an_event_that_nobody_knows_is_named() -> None:
    with pytest.raises(UnknownEventError, match=r"message\.wink"):
        read("lmstudio", START, event("message.wink"))


@pytest.mark.parametrize(
    "events",
    [
        (START, event("chat.end")),
        (START, event("chat.end", result=7)),
        (START, event("tool_call.arguments", arguments="x")),
        (START, event("model_load.end"), event("message.delta", content=7)),
    ],
)
def test_an_event_of_another_shape_is_a_typed_error(events: tuple[dict[str, Any], ...]) -> None:
    with pytest.raises(MappingError) as caught:
        read("lmstudio", *events)
    assert caught.value.provider == "lmstudio"
    assert caught.value.partial is not None


# ------------------------------------------------------------------------------------ Mistral

STARTED = event("conversation.response.started", conversation_id="c")
ENDED = event(
    "conversation.response.done",
    usage={"prompt_tokens": 9, "completion_tokens": 8, "total_tokens": 17},
)


def execution(word: str, id: str = "e", index: int = 0, **fields: Any) -> dict[str, Any]:
    return event(f"tool.execution.{word}", id=id, output_index=index, **fields)


def test_the_call_of_a_connector_comes_in_pieces() -> None:
    events = (
        execution("started", name="web_search", arguments=""),
        execution("delta", name="web_search", arguments='{"q":'),
        execution("delta", name="web_search", arguments='"a=b=="}'),
    )
    ((text, about),) = calls(cut("mistral", STARTED, *events))
    assert (text, about) == (TEXT, {"type": "tool.execution", "id": "e", "name": "web_search"})
    done = execution("done", name="web_search", info={"found": 3})
    ((text, about),) = calls(read("mistral", STARTED, *events, done, ENDED))
    assert (text, about["info"]) == (TEXT, {"found": 3})


def test_calls_of_connectors_that_take_turns_stay_apart() -> None:
    events = [
        execution("started", "a", 0, name="x", arguments="1"),
        execution("started", "b", 1, name="y", arguments="2"),
        execution("delta", "a", 0, arguments="3"),
        execution("delta", "b", 1, arguments="4"),
        execution("done", "b", 1),
        execution("done", "a", 0),
    ]
    response = read("mistral", STARTED, *events, ENDED)
    assert [(text, about["name"]) for text, about in calls(response)] == [("13", "x"), ("24", "y")]


def test_a_whole_conversation_has_the_call_and_its_result() -> None:
    entry = {
        "object": "entry",
        "type": "tool.execution",
        "id": "e",
        "name": "x",
        "arguments": "{}",
        "info": {},
    }
    body = {"object": "conversation.response", "conversation_id": "c", "outputs": [entry, {"type": "odd"}]}
    response = normalize(body, "mistral")
    assert calls(response) == [("{}", {"type": "tool.execution", "id": "e", "name": "x", "info": {}})]
    assert response.metadata.extensions["outputs"] == ({"type": "odd", "index": 1},)


def test_a_chunk_that_is_no_list_is_one() -> None:
    chunk = {"type": "text", "text": "Hi"}
    delta = event("message.output.delta", output_index=0, content=chunk, role="assistant", model="m")
    response = read("mistral", STARTED, delta, ENDED)
    assert (response.text, response.model) == ("Hi", "m")


def test_an_empty_piece_says_nothing() -> None:
    delta = event("message.output.delta", output_index=0, content="", role="assistant")
    assert not read("mistral", STARTED, delta, ENDED).text


def test_another_agent_takes_over() -> None:
    handed = [
        event(f"agent.handoff.{word}", output_index=0, next_agent_id="a") for word in ("started", "done")
    ]
    response = read("mistral", STARTED, *handed, ENDED)
    assert b"agent.handoff" in to_json(response)


def test_a_conversation_that_fails_is_an_error() -> None:
    failed = event("conversation.response.error", message="Too many requests", code=429)
    response = read("mistral", STARTED, failed)
    assert response.error_info is not None
    assert response.error_info.kind is ErrorKind.RATE_LIMIT


def test_only_a_conversation_is_read_as_one() -> None:
    assert detect([STARTED], registry) == "mistral"
    body = {"object": "conversation.response", "type": "odd", "outputs": []}
    with pytest.raises(MappingError):
        normalize(body, "mistral")
