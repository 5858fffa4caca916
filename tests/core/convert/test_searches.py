"""Searches of the web, their citations and signatures of reasoning between Messages and Responses, and on the way back."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from converting import accept_body, accept_stream, hidden_losses, read_body
from crosswalk import ChatMessage, ChatRequest, ChatResponse, from_json, normalize, normalize_stream, to_json
from crosswalk.convert import WireForm, convert, convert_stream, events_of
from crosswalk.errors import ResponseValidationError
from crosswalk.service import build_http_request, read_request

MESSAGES, RESPONSES = WireForm.ANTHROPIC, WireForm.OPENAI_RESPONSES
CALL = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "tide"}}
PAGE = {"type": "web_search_result", "title": "Tides", "url": "https://x.test/a", "encrypted_content": "zz"}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [PAGE, {"type": "odd"}, 1]}
ERROR = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
FAILED = {**FOUND, "content": ERROR}
TEXT = {"type": "text", "text": "At nine."}
PLACE = {"type": "web_search_result_location", "url": "https://x.test/a", "title": "Tides"}
QUOTE = {**PLACE, "cited_text": "so", "encrypted_index": "ii"}
CITED = {"type": "text", "text": "High.", "citations": [QUOTE]}
HI: Any = {"role": "user", "content": "Hi"}


def claude(*blocks: Any, stop: str = "end_turn", **usage: Any) -> dict[str, Any]:
    counts = {"input_tokens": 1, "output_tokens": 1, **usage}
    end = {"stop_reason": stop, "stop_sequence": None, "usage": counts}
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": "c", "content": [*blocks], **end}


def item(**more: Any) -> dict[str, Any]:
    return {"type": "web_search_call", "id": "ws_1", "status": "completed", **more}


def openai(*items: Any) -> dict[str, Any]:
    return {"id": "r", "object": "response", "status": "completed", "model": "m", "output": [*items]}


def read(body: dict[str, Any]) -> ChatResponse:
    return normalize(orjson.dumps(body), (MESSAGES if "role" in body else RESPONSES).provider)


def into(body: dict[str, Any], form: WireForm) -> dict[str, Any]:
    """Return *body* in *form*, which the SDK takes. What it lacks is named, and a stream of it says the same."""
    answer = read(body)
    conversion = convert(answer, form, losses="report")
    accept_body(conversion)
    assert hidden_losses(answer, read_body(conversion), conversion.report) == []
    value: dict[str, Any] = orjson.loads(conversion.value)
    events = events_of(answer, form)
    accept_stream(
        form,
        b"".join(
            b"event: %s\ndata: %s\n\n" % (event["type"].encode(), orjson.dumps(event)) for event in events
        ),
    )
    if form is RESPONSES:
        assert [event["item"] for event in events if event["type"] == "response.output_item.done"] == [
            *value["output"]
        ]
    return value


def test_a_search_goes_to_responses_and_back() -> None:
    there = into(claude(CALL, FOUND, TEXT, server_tool_use={"web_search_requests": 1}), RESPONSES)
    action = {"type": "search", "query": "tide", "sources": [{"type": "url", "url": "https://x.test/a"}]}
    assert there["output"][0] == item(id="ws_srvtoolu_1", action=action)
    assert there["tool_usage"]["web_search"] == {"num_requests": 1}
    back = into(there, MESSAGES)
    call, found, text = back["content"]
    assert {**call, "caller": None} == {**CALL, "caller": None}
    assert found["tool_use_id"] == "srvtoolu_1"
    assert found["content"] == [{**PAGE, "title": "", "encrypted_content": "", "page_age": None}]
    assert text["text"] == "At nine."
    assert back["usage"]["server_tool_use"]["web_search_requests"] == 1


def test_the_title_of_a_page_is_named_as_lost() -> None:
    assert convert(read(claude(CALL, FOUND, TEXT)), RESPONSES).report.names("segments[1]")


def test_a_search_that_failed_has_failed_in_both() -> None:
    there = into(claude(CALL, FAILED, TEXT), RESPONSES)
    assert there["output"][0] == item(
        id="ws_srvtoolu_1", status="failed", action={"type": "search", "query": "tide"}
    )
    assert into(there, MESSAGES)["content"][1]["content"] == {**ERROR, "error_code": "unavailable"}


@pytest.mark.parametrize("action", [{"query": "tide"}, {"queries": ["tide", "moon"]}])
def test_a_search_without_sources_has_no_result(action: dict[str, Any]) -> None:
    back = into(openai(item(action={"type": "search", **action})), MESSAGES)
    (call,) = back["content"]
    assert call == {**CALL, "id": "srvtoolu_ws_1", "caller": {"type": "direct"}}
    assert into(back, RESPONSES)["output"] == [item(action={"type": "search", "query": "tide"})]


@pytest.mark.parametrize("action", [{"type": "search"}, {"type": "open_page", "url": "https://x.test/a"}])
def test_another_action_is_named(action: dict[str, Any]) -> None:
    answer = read(openai(item(action=action)))
    assert convert(answer, MESSAGES).report.names("segments[0]")
    assert into(openai(item(action=action)), MESSAGES)["content"] == []


def test_a_search_of_another_id_has_one_that_no_search_of_claude_has() -> None:
    back = into(openai(item(id="x1", action={"type": "search", "query": "tide"})), MESSAGES)
    assert back["content"][0]["id"] == "srvtoolu_ws_x1"
    assert into(back, RESPONSES)["output"][0]["id"] == "ws_x1"


def test_a_source_that_is_no_page_is_left_out() -> None:
    sources = [{"type": "api", "name": "oai-weather"}, {"type": "url", "url": "https://x.test/a"}]
    _, found = into(openai(item(action={"type": "search", "query": "q", "sources": sources})), MESSAGES)[
        "content"
    ]
    assert [page["url"] for page in found["content"]] == ["https://x.test/a"]


def test_a_search_that_was_cut_is_in_progress() -> None:
    (search,) = into(claude(CALL, stop="pause_turn"), RESPONSES)["output"]
    assert search["status"] == "in_progress"


def test_of_two_searches_with_one_id_each_is_written() -> None:
    first, second = into(claude(CALL, CALL, FOUND), RESPONSES)["output"]
    assert ("sources" in first["action"], "sources" in second["action"]) == (False, True)


def test_a_stream_says_when_a_search_begins_and_ends() -> None:
    events = events_of(read(claude(CALL, FOUND)), RESPONSES)
    kinds = [event["type"].removeprefix("response.") for event in events]
    steps = [f"web_search_call.{word}" for word in ("in_progress", "searching", "completed")]
    assert kinds[2:-1] == ["output_item.added", *steps, "output_item.done"]
    assert events[2]["item"] == item(
        id="ws_srvtoolu_1", status="in_progress", action={"type": "search", "query": "tide"}
    )


SEARCHED = {"type": "search", "query": "tide"}
MCP = {"type": "mcp_call", "id": "mcp_1", "server_label": "s", "name": "n", "arguments": "{}"}


@pytest.mark.parametrize(
    ("one", "steps"),
    [
        (item(action=SEARCHED), ["in_progress", "searching", "completed"]),
        (item(action=SEARCHED, status="failed"), ["in_progress", "searching"]),
        ({**MCP, "status": "completed"}, ["in_progress", "completed"]),
        ({**MCP, "status": "failed"}, ["in_progress", "failed"]),
        ({"type": "compaction", "id": "cmp_1", "encrypted_content": "zz"}, []),
    ],
)
def test_a_stream_of_a_whole_answer_says_the_steps_of_its_tools(
    one: dict[str, Any], steps: list[str]
) -> None:
    events = events_of(read(openai(one)), RESPONSES)
    kinds = [event["type"].removeprefix("response.") for event in events]
    assert kinds[2:-1] == [
        "output_item.added",
        *(f"{one['type']}.{word}" for word in steps),
        "output_item.done",
    ]
    assert {event["item_id"] for event in events[3 : 3 + len(steps)]} <= {one["id"]}


def test_a_citation_stays_with_its_text() -> None:
    there = into(claude(TEXT, CITED), RESPONSES)
    plain, cited = there["output"][0]["content"]
    assert plain["annotations"] == []
    (note,) = cited["annotations"]
    assert (note["url"], note["title"], note["start_index"], note["end_index"]) == (
        QUOTE["url"],
        "Tides",
        0,
        5,
    )
    assert [len(block["citations"]) for block in into(there, MESSAGES)["content"]] == [0, 1]


def test_a_citation_of_a_document_is_named() -> None:
    span = {"document_index": 0, "start_char_index": 0, "end_char_index": 2}
    quote = {"type": "char_location", "cited_text": "so", "document_title": None, "file_id": None, **span}
    body = claude({**CITED, "citations": [quote]})
    assert into(body, RESPONSES)["output"][0]["content"][0]["annotations"] == []
    assert convert(read(body), RESPONSES).report.names("segments[0]")


def test_a_citation_that_follows_its_text_stays_there() -> None:
    start = {"type": "message_start", "message": {**claude(), "stop_reason": None}}
    delta: dict[str, Any] = {"type": "content_block_delta", "index": 0}
    events = [
        start,
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {**delta, "delta": {"type": "text_delta", "text": "High."}},
        {**delta, "delta": {"type": "citations_delta", "citation": QUOTE}},
        {**delta, "delta": {"type": "citations_delta", "citation": QUOTE}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    frames = [b"data: %s\n\n" % orjson.dumps(event) for event in events]
    sent = b"".join(convert_stream(normalize_stream(frames, "anthropic"), RESPONSES))
    response = orjson.loads(sent.strip().split(b"data: ")[-1])["response"]
    assert len(response["output"][0]["content"][0]["annotations"]) == 2


def thought(text: str, signature: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": signature}


@pytest.mark.parametrize(
    "thoughts", [[("Hm.", "aa")], [("", "aa")], [("Hm.", "aa"), ("", "bb")], [("", "aa"), ("So.", "bb")]]
)
def test_signatures_come_back(thoughts: list[tuple[str, str]]) -> None:
    blocks = [thought(*one) for one in thoughts]
    there = into(claude(*blocks, TEXT), RESPONSES)
    signatures = [one.get("encrypted_content") for one in there["output"] if one["type"] == "reasoning"]
    assert signatures == [f"crosswalk:signature:{signature}" for _, signature in thoughts]
    assert into(there, MESSAGES)["content"][:-1] == blocks
    again = from_json(to_json(read(there)), ChatResponse)  # without its bytes
    assert orjson.loads(convert(again, RESPONSES).value)["output"] == there["output"]


def test_a_signature_at_the_end_of_a_stream_joins_its_thinking() -> None:
    events = events_of(read(claude(thought("Hm.", "aa"), TEXT)), MESSAGES)
    frames = [b"data: %s\n\n" % orjson.dumps(event) for event in events]
    sent = b"".join(convert_stream(normalize_stream(frames, "anthropic"), RESPONSES))
    reasoning, _ = orjson.loads(sent.strip().split(b"data: ")[-1])["response"]["output"]
    assert reasoning["content"][0]["text"] == "Hm."
    assert reasoning["encrypted_content"] == "crosswalk:signature:aa"


# ------------------------------------------------------------------------------------ the way back


def asked(body: dict[str, Any], provider: str) -> Any:
    form = MESSAGES if "messages" in body else RESPONSES
    return build_http_request(read_request({"model": "m", **body}, form).request, provider)


FOREIGN = [
    {**CALL, "id": "srvtoolu_ws_1"},
    {**FOUND, "tool_use_id": "srvtoolu_ws_1", "content": [{**PAGE, "encrypted_content": ""}]},
]
UNCITED = {"type": "text", "text": "High.", "citations": [QUOTE, {**QUOTE, "encrypted_index": ""}, 5]}


def test_a_search_of_another_server_does_not_go_to_claude() -> None:
    said = [*FOREIGN, CALL, FOUND, TEXT, UNCITED, CITED, 5]
    messages = [HI, {"role": "assistant", "content": said[:-1]}, HI]
    request = asked({"max_tokens": 9, "messages": messages}, "anthropic")
    sent = request.body["messages"][1]["content"]
    assert sent == [CALL, FOUND, TEXT, {**UNCITED, "citations": [QUOTE, 5]}, CITED]
    places = [f"messages[1].content[{place}]" for place in ("0", "1")]
    assert [one.field for one in request.dropped] == [*places, "messages[1].content[].citations"]


FOREIGN_CALL, FOREIGN_FOUND = FOREIGN
PAUSED = {**CALL, "id": "srvtoolu_2"}


@pytest.mark.parametrize(
    ("said", "sent"),
    [
        ([FOREIGN_CALL, TEXT], [TEXT]),
        ([FOREIGN_CALL, {**FOREIGN_FOUND, "content": ERROR}, TEXT], [TEXT]),
        ([FOREIGN_CALL, {**FOREIGN_FOUND, "content": []}, TEXT, PAUSED], [TEXT, PAUSED]),
        ([{"type": "text", "text": " "}, *FOREIGN], [{"type": "text", "text": "(no answer)"}]),
        (FOREIGN, [{"type": "text", "text": "(no answer)"}]),
    ],
)
def test_no_half_of_a_search_of_another_server_goes_to_claude(said: list[Any], sent: list[Any]) -> None:
    messages = [HI, {"role": "assistant", "content": said}, HI]
    assert asked({"max_tokens": 9, "messages": messages}, "anthropic").body["messages"][1]["content"] == sent


def test_a_block_that_is_no_object_is_refused() -> None:
    with pytest.raises(ResponseValidationError, match=r"messages\[1\].content\[1\]"):
        asked(
            {"messages": [HI, {"role": "assistant", "content": [TEXT, 5]}, HI], "max_tokens": 9}, "anthropic"
        )


def test_a_search_of_another_server_in_an_answer_does_not_go_to_claude() -> None:
    answer = read(claude(*FOREIGN, CALL, FOUND, {**UNCITED, "citations": UNCITED["citations"][:2]}))
    request = ChatRequest(
        [ChatMessage.user("Hi"), answer, ChatMessage.user("Hi")], model="m", provider="anthropic"
    )
    built = build_http_request(request, "anthropic")
    blocks = built.body["messages"][1]["content"]
    assert [block["type"] for block in blocks] == ["server_tool_use", "web_search_tool_result", "text"]
    assert len(blocks[2]["citations"]) == 1
    assert "web search of another server" in str(built.dropped)


def test_signed_reasoning_of_another_api_does_not_go_to_openai() -> None:
    output = into(claude(thought("Hm.", "aa"), TEXT), RESPONSES)["output"]
    request = asked({"input": [HI, *output, HI]}, "openai_responses")
    assert [one["type"] for one in request.body["input"][1:-1]] == ["message"]
    assert [one.field for one in request.dropped] == ["input[1]"]


def test_signed_reasoning_comes_back_to_claude() -> None:
    thoughts = [thought("Hm.", "aa"), thought("", "bb")]
    output = into(claude(*thoughts, CALL, FOUND, CITED), RESPONSES)["output"]
    request = asked({"input": [HI, *output, HI]}, "anthropic")
    assert request.body["messages"][1]["content"] == [*thoughts, {"type": "text", "text": "High."}]
    lost = str(request.dropped)
    assert "citations of another provider" in lost
    assert "a server tool of another provider" in lost
    assert "reasoning" not in lost


def test_a_signature_of_another_model_than_claude_is_named() -> None:
    part = {"text": "Hm.", "thought": True, "thoughtSignature": "gg"}
    body = {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}]}
    answer = normalize(orjson.dumps(body), "gemini")
    conversion = convert(answer, RESPONSES)
    assert orjson.loads(conversion.value)["output"][0].get("encrypted_content") is None
    assert conversion.report.names("segments[0].metadata.signature")


MARK = "crosswalk:encrypted:"
HIDDEN = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ee"}
REDACTED = {"type": "redacted_thinking", "data": "cc"}
SAID = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
SAID_ITEM = {**SAID, "content": [{"type": "output_text", "text": "At nine.", "annotations": []}]}


def test_encrypted_reasoning_is_marked_in_the_body_of_another_api() -> None:
    there = into(openai(HIDDEN, SAID_ITEM), MESSAGES)
    assert there["content"][0] == {"type": "redacted_thinking", "data": f"{MARK}ee"}
    assert into(there, RESPONSES)["output"][0]["encrypted_content"] == "ee"
    again = from_json(to_json(read(there)), ChatResponse)  # without its bytes
    assert orjson.loads(convert(again, MESSAGES).value)["content"][0] == there["content"][0]
    other = into(claude(REDACTED, TEXT), RESPONSES)
    assert other["output"][0]["encrypted_content"] == f"{MARK}cc"
    assert into(other, MESSAGES)["content"][0] == REDACTED


def test_claude_of_another_cloud_keeps_its_encrypted_reasoning() -> None:
    content = [{"reasoningContent": {"redactedContent": "cc"}}, {"text": "At nine."}]
    end = {"stopReason": "end_turn", "usage": {"inputTokens": 1, "outputTokens": 1}}
    body = {"output": {"message": {"role": "assistant", "content": content}}, **end}
    answer = normalize(orjson.dumps(body), "bedrock")
    assert orjson.loads(convert(answer, MESSAGES).value)["content"][0] == REDACTED


def test_encrypted_reasoning_of_openai_does_not_go_to_claude() -> None:
    """A conversion has marked it. How a value begins says nothing about whose it is."""
    own = {**REDACTED, "data": "gAAAAABee"}
    content = [REDACTED, own, {**REDACTED, "data": f"{MARK}ee"}, TEXT]
    request = asked(
        {"messages": [HI, {"role": "assistant", "content": content}, HI], "max_tokens": 9}, "anthropic"
    )
    assert request.body["messages"][1]["content"] == [REDACTED, own, TEXT]
    assert [one.field for one in request.dropped] == ["messages[1].content[2]"]


def test_encrypted_reasoning_of_claude_does_not_go_to_openai() -> None:
    output = into(claude(REDACTED, TEXT), RESPONSES)["output"]
    request = asked({"input": [HI, *output, HI]}, "openai_responses")
    assert [one["type"] for one in request.body["input"][1:-1]] == ["message"]
    assert [one.field for one in request.dropped] == ["input[1]"]


@pytest.mark.parametrize(
    ("body", "provider"),
    [
        ({**claude(REDACTED, TEXT), "content": [{**REDACTED, "data": f"{MARK}ee"}, TEXT]}, "anthropic"),
        (openai({**HIDDEN, "encrypted_content": f"{MARK}cc"}, SAID_ITEM), "openai_responses"),
    ],
)
def test_marked_reasoning_in_an_answer_goes_to_nobody(body: dict[str, Any], provider: str) -> None:
    turns = [ChatMessage.user("Hi"), read(body), ChatMessage.user("Hi")]
    built = build_http_request(ChatRequest(turns, model="m", provider=provider), provider)
    assert "redacted" not in str(built.body)
    assert "encrypted" not in str(built.body)
    assert "reasoning of another provider" in str(built.dropped)


def test_signed_reasoning_in_an_answer_does_not_go_to_openai() -> None:
    answer = read(into(claude(thought("Hm.", "aa"), TEXT), RESPONSES))
    request = ChatRequest(
        [ChatMessage.user("Hi"), answer, ChatMessage.user("Hi")], model="m", provider="openai_responses"
    )
    built = build_http_request(request, "openai_responses")
    assert "signature" not in str(built.body)
    assert "a signature" in str(built.dropped)
