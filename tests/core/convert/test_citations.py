"""The text that a client of another format finds at the indices of a citation is the text that was cited."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import orjson
import pytest

from converting import data_of
from crosswalk import (
    CitationRef,
    Segment,
    SegmentType,
    normalize,
    normalize_stream,
)
from crosswalk.convert import WireForm, convert, convert_stream, events_of

CHAT, GEMINI, MESSAGES, RESPONSES = (
    WireForm.OPENAI_CHAT,
    WireForm.GEMINI,
    WireForm.ANTHROPIC,
    WireForm.OPENAI_RESPONSES,
)
FORMS = [CHAT, GEMINI, RESPONSES]
A, B = "https://x.test/a", "https://x.test/b"
CLAUDE = [(A, "is 𐍈 high"), (B, "the moon")]
THREE_PARTS = [(A, "Kelp"), (B, "Moss")]


def quoted(body: Any, form: WireForm) -> Iterator[tuple[str, str]]:
    """Return the URL and the text of each citation with indices that a client finds in *body*."""
    if form is CHAT:
        message = body["choices"][0]["message"]
        for note in message.get("annotations", ()):
            page = note["url_citation"]
            yield page["url"], message["content"][page["start_index"] : page["end_index"]]
    elif form is GEMINI:
        candidate = body["candidates"][0]
        grounding = candidate.get("groundingMetadata", {})
        text = "".join(part.get("text", "") for part in candidate["content"]["parts"]).encode()
        for support in grounding.get("groundingSupports", ()):
            segment = support["segment"]
            cited = text[segment["startIndex"] : segment["endIndex"]].decode()
            assert cited == segment["text"]
            for number in support["groundingChunkIndices"]:
                yield grounding["groundingChunks"][number]["web"]["uri"], cited
    elif form is RESPONSES:
        texts = (part for item in body["output"] for part in item.get("content", ()) if "text" in part)
        for part in texts:
            for note in part.get("annotations", ()):
                yield note["url"], part["text"][note["start_index"] : note["end_index"]]
    else:
        for block in body["content"]:
            for note in block.get("citations") or ():
                yield note["url"], block["text"]


def added_up(events: list[Any], form: WireForm) -> Any:
    """Return the body that *events* of a stream amount to for a client."""
    if form is CHAT:
        message: dict[str, Any] = {"content": "", "annotations": []}
        for event in events:
            for choice in event.get("choices", ()) if isinstance(event, dict) else ():
                message["content"] += choice["delta"].get("content") or ""
                message["annotations"] += choice["delta"].get("annotations", ())
        return {"choices": [{"message": message}]}
    if form is GEMINI:
        candidates = [event["candidates"][0] for event in events]
        parts = [part for one in candidates for part in one.get("content", {}).get("parts", ())]
        return {"candidates": [{**candidates[-1], "content": {"parts": parts}}]}
    if form is RESPONSES:
        return events[-1]["response"]
    blocks: dict[int, Any] = {}
    for event in events:
        if event["type"] == "content_block_start":
            blocks[event["index"]] = {**event["content_block"], "citations": []}
        elif event["type"] == "content_block_delta":
            block, delta = blocks[event["index"]], event["delta"]
            block["text"] = block.get("text", "") + delta.get("text", "")
            block["citations"] += [delta["citation"]] if "citation" in delta else []
    return {"content": [*blocks.values()]}


def in_a_body(body: Any, provider: str, form: WireForm) -> list[tuple[str, str]]:
    answer = normalize(orjson.dumps(body), provider)
    written = orjson.loads(convert(answer, form, losses="report").value)
    said = [*quoted(added_up([*events_of(answer, form)], form), form)]  # of a finished answer, as a stream
    assert said == [*quoted(written, form)]
    return said


def in_a_stream(events: list[Any], provider: str, form: WireForm) -> list[tuple[str, str]]:
    frames = [b"data: %s\n\n" % orjson.dumps(event) for event in events]
    sent = b"".join(convert_stream(normalize_stream(frames, provider), form, losses="report"))
    return [*quoted(added_up([*data_of(sent)], form), form)]


def place(url: str) -> dict[str, Any]:
    about = {"title": "T", "cited_text": "so", "encrypted_index": "ii"}
    return {"type": "web_search_result_location", "url": url, **about}


BLOCKS: list[Any] = [
    {"type": "text", "text": "😀 The sea: "},
    {"type": "text", "text": "is 𐍈 high", "citations": [place(A)]},
    {"type": "text", "text": " and é"},
    {"type": "text", "text": "the moon", "citations": [place(B)]},
    {"type": "tool_use", "id": "t1", "name": "w", "input": {}},
]
MESSAGE: Any = {
    "type": "message", "id": "m", "role": "assistant", "model": "c", "content": BLOCKS, "stop_reason": "tool_use",
    "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
}  # fmt: skip


def claude_events(*, is_cited_ahead: bool) -> Iterator[Any]:
    yield {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None}}
    for index, block in enumerate(BLOCKS):
        start = {**block, "text": "", "citations": []} if "text" in block else block
        yield {"type": "content_block_start", "index": index, "content_block": start}
        text = block.get("text", "")
        deltas: list[Any] = [{"type": "text_delta", "text": half} for half in (text[:3], text[3:]) if half]
        citations = [{"type": "citations_delta", "citation": one} for one in block.get("citations", ())]
        for delta in citations + deltas if is_cited_ahead else deltas + citations:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}


@pytest.mark.parametrize("form", [*FORMS, MESSAGES])
def test_a_block_of_claude_is_what_its_citations_are_of(form: WireForm) -> None:
    assert in_a_body(MESSAGE, "anthropic", form) == CLAUDE
    assert in_a_stream([*claude_events(is_cited_ahead=True)], "anthropic", form) == CLAUDE
    assert in_a_stream([*claude_events(is_cited_ahead=False)], "anthropic", form) == CLAUDE


@pytest.mark.parametrize("form", FORMS)
def test_a_citation_of_a_text_that_never_came_is_left_out(form: WireForm) -> None:
    events = [*claude_events(is_cited_ahead=True)]
    cut = next(number for number, event in enumerate(events) if "citations_delta" in str(event))
    assert in_a_stream([*events[: cut + 1], *events[-2:]], "anthropic", form) == []


def test_a_citation_behind_no_text_is_of_the_next() -> None:
    parts = [
        Segment(SegmentType.TEXT, "", {"citations": "follow"}),
        located(A),
        Segment(SegmentType.TEXT, "At six."),
    ]
    answer = attrs.evolve(
        normalize(orjson.dumps(chat({"content": "At six."})), "openai"), segments=tuple(parts)
    )
    assert [*quoted(orjson.loads(convert(answer, CHAT, losses="report").value), CHAT)] == [(A, "At six.")]


def located(url: str) -> Segment:
    return Segment(
        SegmentType.CITATION, "so", {"type": "web_search_result_location"}, (CitationRef(source=url),)
    )


@pytest.mark.parametrize("form", [*FORMS, MESSAGES])
def test_a_block_of_bedrock_is_what_its_citations_are_of(form: WireForm) -> None:
    cited = {
        "content": [{"text": "bars are pressure."}],
        "citations": [{"location": {"web": {"url": A, "domain": "x.test"}}}],
    }
    content = [{"text": "Gauges read bar, and "}, {"citationsContent": cited}, {"text": " So be it."}]
    message = {"role": "assistant", "content": content}
    body = {
        "output": {"message": message},
        "stopReason": "end_turn",
        "usage": {"inputTokens": 1, "outputTokens": 1},
    }
    assert in_a_body(body, "bedrock", form) == [(A, "bars are pressure.")]


def note(url: str, start: int, end: int) -> dict[str, Any]:
    return {"type": "url_citation", "url": url, "title": "T", "start_index": start, "end_index": end}


def text_part(text: str, *notes: Any) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [*notes]}


def response(*items: Any) -> dict[str, Any]:
    return {"id": "r", "object": "response", "status": "completed", "model": "m", "output": [*items]}


def message_item(*parts: Any) -> dict[str, Any]:
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [*parts]}


SEARCH = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "q"},
}


@pytest.mark.parametrize("form", [CHAT, GEMINI])
@pytest.mark.parametrize(
    "items",
    [
        [message_item(text_part("😀 Look. "), text_part("A Kelp. ", note(A, 2, 6)), text_part("B Moss.", note(B, 2, 6)))],
        [message_item(text_part("😀 ")), SEARCH, message_item(text_part("Kelp. ", note(A, 0, 4)), text_part("Moss", note(B, 0, 4)))],
        [message_item(text_part("Kelp. ", note(A, 0, 4))), message_item(text_part("Moss", note(B, 0, 4)))],
    ],
)  # fmt: skip
def test_a_part_of_a_response_is_what_its_indices_count(items: list[Any], form: WireForm) -> None:
    assert in_a_body(response(*items), "openai_responses", form) == THREE_PARTS


@pytest.mark.parametrize("form", [CHAT, GEMINI])
def test_a_part_of_a_streamed_response_goes_on_behind_its_citations(form: WireForm) -> None:
    place: Any = {"item_id": "msg_1", "output_index": 0, "content_index": 1}
    whole = message_item(text_part("Look. "), text_part("Kelp. Moss.", note(A, 0, 4), note(B, 6, 10)))
    delta, noted = "response.output_text.delta", "response.output_text.annotation.added"
    events: list[Any] = [
        {"type": "response.created", "response": {**response(), "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**message_item(), "status": "in_progress"}},
        {"type": delta, **place, "content_index": 0, "delta": "Look. "},
        {"type": delta, **place, "delta": "Kelp"},
        {"type": noted, **place, "annotation_index": 0, "annotation": note(A, 0, 4)},
        {"type": delta, **place, "delta": ". Moss"},
        {"type": noted, **place, "annotation_index": 1, "annotation": note(B, 6, 10)},
        {"type": delta, **place, "delta": "."},
        {"type": "response.output_item.done", "output_index": 0, "item": whole},
        {"type": "response.completed", "response": response(whole)},
    ]  # fmt: skip
    assert in_a_stream(events, "openai_responses", form) == THREE_PARTS


def chat(message: dict[str, Any]) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


@pytest.mark.parametrize("form", FORMS)
def test_a_source_of_the_whole_answer_has_no_other_indices(form: WireForm) -> None:
    body = {**chat({"content": "High at noon [1]."}), "citations": [A]}
    whole = [] if form is GEMINI else [(A, "High at noon [1].")]
    assert in_a_body(body, "xai", RESPONSES) == [(A, "High at noon [1].")]
    chunk: Any = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "citations": [A]}
    events = [
        {**chunk, "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}
        for text, finish in (("High", None), (" at noon [1].", "stop"))
    ]
    assert in_a_stream(events, "perplexity", form) == whole


BETWEEN: list[list[dict[str, Any]]] = [
    [
        {"executableCode": {"language": "PYTHON", "code": "1"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
    ],
    [{"functionCall": {"name": "f", "args": {}}}],
    [{"text": "Hm.", "thought": True}],
]


@pytest.mark.parametrize("form", [CHAT, RESPONSES])
@pytest.mark.parametrize("last", ["A Moss.", ""])
@pytest.mark.parametrize("between", BETWEEN)
def test_what_is_cited_of_an_earlier_part_is_said_of_that(
    between: list[dict[str, Any]], last: str, form: WireForm
) -> None:
    """Its sources come last of all. A stream names the part, which has ended, and its last event has all of them."""
    parts = [{"text": "Kelp. "}, *between, *([{"text": last}] if last else [])]
    supports = [
        {"segment": {"startIndex": start, "endIndex": start + 4}, "groundingChunkIndices": [number]}
        for number, start in enumerate((0, 8) if last else (0,))
    ]
    grounding = {
        "groundingChunks": [{"web": {"uri": url}} for url in (A, B)[: len(supports)]],
        "groundingSupports": supports,
    }

    def body(*said: dict[str, Any], **end: Any) -> dict[str, Any]:
        candidate = {"content": {"role": "model", "parts": [*said]}, "index": 0, **end}
        return {"candidates": [candidate], "modelVersion": "g", "responseId": "r"}

    end = {"finishReason": "STOP", "groundingMetadata": grounding}
    expected = [(A, "Kelp"), *([(B, "Moss")] if last else [])]
    assert in_a_body(body(*parts, **end), "gemini", form) == expected
    chunks = [*map(body, parts), body({"text": ""}, **end)]
    assert in_a_stream(chunks, "gemini", form) == expected


@pytest.mark.parametrize("has_span", [True, False])
def test_an_annotation_after_a_call_is_one_of_the_text(*, has_span: bool) -> None:
    span = {"start_index": 0, "end_index": 4} if has_span else {}
    annotation = {"type": "url_citation", "url_citation": {"url": A, "title": "T", **span}}
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    deltas: list[dict[str, Any]] = [
        {"content": "Kelp"},
        {"tool_calls": [call]},
        {"annotations": [annotation]},
    ]
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls"})
    about = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    assert in_a_stream([{**about, "choices": [one]} for one in choices], "openai", RESPONSES) == [(A, "Kelp")]


def test_what_a_plan_of_cohere_rests_on_is_not_cited_in_the_text() -> None:
    cited = {
        "start": 0,
        "end": 4,
        "text": "Look",
        "sources": [{"type": "document", "id": "d", "document": {"url": A}}],
    }
    message = {"role": "assistant", "tool_plan": "Look.", "content": [{"type": "text", "text": "Blue."}]}
    body = {
        "id": "c",
        "finish_reason": "COMPLETE",
        "message": {**message, "citations": [{**cited, "type": "PLAN"}]},
    }
    assert in_a_body(body, "cohere", CHAT) == []
    body["message"]["citations"] = [{**cited, "type": "TEXT_CONTENT", "text": "Blue"}]  # type: ignore[index]
    assert in_a_body(body, "cohere", CHAT) == [(A, "Blue")]
