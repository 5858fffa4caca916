"""Conversion between wire forms: what each form gets, what the report says, what official clients make of it."""

from __future__ import annotations

import json
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anthropic
import attrs
import openai
import orjson
import pytest
from hypothesis import given, settings, strategies as st

from converting import (
    FORMS,
    accept_body,
    accept_stream,
    answer_of_client,
    data_of,
    hidden_losses,
    lost_essentials,
    read_body,
    read_stream,
    trouble_of_client,
)
from crosswalk import (
    Alternative,
    ChatMessage,
    ChatResponse,
    CitationRef,
    CrosswalkError,
    DeltaAccumulator,
    ErrorInfo,
    ErrorKind,
    FinishReason,
    IncompleteStreamError,
    Limits,
    PluginError,
    Provenance,
    ResponseDelta,
    ResponseMetadata,
    Segment,
    SegmentType,
    TokenLogprob,
    ToolCall,
    ToolCallDelta,
    UsageInfo,
    normalize,
    normalize_stream,
)
from crosswalk.convert import (
    ConversionError,
    ConversionReport,
    DangerousLossError,
    Loss,
    LossReason,
    WireForm,
    convert,
    convert_stream,
    error_body,
    from_response,
    to_chat_completion,
    to_response,
)
from crosswalk.convert.losses import RULES
from crosswalk.formats.chat import ChatWriter
from crosswalk.types import Correction
from strategies import chat_responses, names, segments, texts, usage_infos
from tries import tries
from wires import NOW, registry_of

CHAT, RESPONSES, MESSAGES = FORMS
CAPTURES = Path(__file__).parents[2] / "captures"
T = SegmentType


def answer(*parts: Segment, finish: str = "stop", calls: Any = (), **more: Any) -> ChatResponse:
    """An answer of these parts."""
    said = [part.content for part in parts if part.type is T.TEXT]
    message = ChatMessage.assistant("".join(said) if said else None, tool_calls=calls)
    refusals = [part.content for part in parts if part.type is T.REFUSAL]
    given: dict[str, Any] = {
        "id": "a1",
        "message": message,
        "finish_reason": finish,
        "usage": UsageInfo(7, 5),
        "metadata": ResponseMetadata("made_up", "m"),
        "created": NOW,
        "model": "m",
        "refusal": "".join(refusals) if refusals else None,
        "segments": parts,
    }
    return ChatResponse(**{**given, **more})


def call_segment(call: ToolCall, **more: Any) -> Segment:
    return Segment(T.TOOL_CALL, call.arguments, {"id": call.id, "name": call.name, **more})


def converted(response: ChatResponse, form: WireForm) -> tuple[Any, ConversionReport, ChatResponse]:
    """The body, the report and what the body reads as. The body is one that the SDK takes, and nothing is hidden."""
    conversion = convert(response, form, losses="report")
    accept_body(conversion)
    back = read_body(conversion)
    assert hidden_losses(response, back, conversion.report) == []
    return orjson.loads(conversion.value), conversion.report, back


def streamed(
    deltas: list[ResponseDelta], form: WireForm, **said: Any
) -> tuple[bytes, ConversionReport, ChatResponse]:
    """The same for a stream."""
    stream = convert_stream(deltas, form, id="a1", model="m", created=NOW, losses="report", **said)
    sent = b"".join(stream)
    accept_stream(form, sent)
    back = read_stream(form, sent)
    accumulator = DeltaAccumulator(id="a1", model="m", created=NOW)
    for delta in deltas:
        accumulator.append(delta)
    assert hidden_losses(accumulator.build(), back, stream.report) == []
    return sent, stream.report, back


def deltas(
    *pieces: dict[str, Any], finish: str = "stop", usage: UsageInfo | None = None
) -> list[ResponseDelta]:
    made = [ResponseDelta(number, **piece) for number, piece in enumerate(pieces)]
    return [*made, ResponseDelta(len(made), finish_reason=finish, usage=usage)]  # type: ignore[arg-type]


def call_piece(index: int, id: str | None, name: str | None, arguments: str | None = None) -> dict[str, Any]:
    return {"tool_call_delta": ToolCallDelta(index, id, name, arguments)}


# The forms.


def test_a_turn_of_reasoning_text_and_calls_becomes_a_chat_completion() -> None:
    calls = [ToolCall("c1", "find", '{"q": 1}'), ToolCall("c2", "list")]
    parts = [Segment(T.REASONING, "hm"), Segment(T.TEXT, "Look:"), *map(call_segment, calls)]
    body, report, back = converted(answer(*parts, finish="tool_calls", calls=calls), CHAT)
    assert body == {
        "id": "a1",
        "object": "chat.completion",
        "created": int(NOW.timestamp()),
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "Look:",
                    "refusal": None,
                    "reasoning_content": "hm",
                    "tool_calls": [
                        {
                            "id": "c1",
                            "type": "function",
                            "function": {"name": "find", "arguments": '{"q": 1}'},
                        },
                        {"id": "c2", "type": "function", "function": {"name": "list", "arguments": "{}"}},
                    ],
                },
                "logprobs": None,
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12},
    }
    assert report.paths == {"raw_finish_reason", "metadata.provider_id"}
    assert back.segments == tuple(parts)


def test_the_same_turn_becomes_a_response() -> None:
    calls = [ToolCall("c1", "find", '{"q": 1}')]
    parts = [Segment(T.REASONING, "hm"), Segment(T.TEXT, "Look:"), *map(call_segment, calls)]
    body, report, _ = converted(answer(*parts, finish="tool_calls", calls=calls), RESPONSES)
    reasoning, message, call = body["output"]
    assert (reasoning["type"], reasoning["summary"]) == ("reasoning", [])
    assert reasoning["content"] == [{"type": "reasoning_text", "text": "hm"}]
    assert message["content"] == [{"type": "output_text", "text": "Look:", "annotations": []}]
    assert (call["call_id"], call["name"], call["arguments"]) == ("c1", "find", '{"q": 1}')
    assert body["status"] == "completed"
    assert [str(loss) for loss in report.differences][
        -1
    ] == "usage.cache_write_tokens: the form demands it: made up" or (
        Loss("usage.cached_tokens", LossReason.FILLED_IN) in report.differences
    )


def test_the_same_turn_becomes_a_message() -> None:
    calls = [ToolCall("c1", "find", '{"q": 1}')]
    thought = Segment(T.REASONING, "hm", {"signature": "s=="})
    parts = [thought, Segment(T.TEXT, "Look:"), *map(call_segment, calls)]
    usage = UsageInfo(100, 20, cached_tokens=60, reasoning_tokens=4, cache_write_tokens=10)
    body, report, back = converted(answer(*parts, finish="tool_calls", calls=calls, usage=usage), MESSAGES)
    assert body["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "s=="},
        {"type": "text", "text": "Look:", "citations": []},
        {"type": "tool_use", "id": "c1", "name": "find", "input": {"q": 1}, "caller": {"type": "direct"}},
    ]
    assert body["stop_reason"] == "tool_use"
    assert {name: count for name, count in body["usage"].items() if count is not None} == {
        "input_tokens": 30,
        "output_tokens": 20,
        "cache_read_input_tokens": 60,
        "cache_creation_input_tokens": 10,
        "output_tokens_details": {"thinking_tokens": 4},
    }
    assert back.usage == usage
    assert Loss("message.tool_calls[0].arguments", LossReason.RESPELLED) in report.differences
    assert "created" in report.paths


@pytest.mark.sweep
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("reason", [r for r in FinishReason if r is not FinishReason.ERROR])
def test_every_way_to_end_stays_or_is_named(form: WireForm, reason: FinishReason) -> None:
    call = ToolCall("c1", "f")
    calls = [call] if reason is FinishReason.TOOL_CALLS else []
    response = answer(Segment(T.TEXT, "x"), *map(call_segment, calls), finish=reason, calls=calls)
    _, report, back = converted(response, form)
    if reason is FinishReason.CANCELLED and form is not RESPONSES:
        assert back.finish_reason is FinishReason.LENGTH
        assert Loss("finish_reason", LossReason.CHANGED) in report.differences
    else:
        assert back.finish_reason is reason


@pytest.mark.parametrize(
    ("form", "raw", "finish"),
    [
        (CHAT, "stop", "stop"),
        (MESSAGES, "stop_sequence", "stop"),
        (MESSAGES, "model_context_window_exceeded", "length"),
        (RESPONSES, "incomplete:max_messages", "length"),
    ],
)
def test_a_word_that_the_form_knows_is_kept(form: WireForm, raw: str, finish: str) -> None:
    metadata = ResponseMetadata("made_up", "m", extensions={"stop_sequence": "END"})
    response = answer(Segment(T.TEXT, "x"), finish=finish, raw_finish_reason=raw, metadata=metadata)
    body, report, _ = converted(response, form)
    assert "raw_finish_reason" not in report.paths
    assert raw != "stop_sequence" or body["stop_sequence"] == "END"


def test_what_a_form_calls_the_same_is_carried_from_the_extensions() -> None:
    extensions = {
        "service_tier": "flex",
        "system_fingerprint": "fp",
        "parallel_tool_calls": False,
        "previous_response_id": "r0",
    }
    response = answer(Segment(T.TEXT, "x"), metadata=ResponseMetadata("made_up", "m", extensions=extensions))
    for form, carried in ((CHAT, {"service_tier", "system_fingerprint"}), (RESPONSES, extensions.keys())):
        _, report, _ = converted(response, form)
        lost = {f"metadata.extensions.{name}" for name in extensions.keys() - carried}
        assert {path for path in report.paths if "extensions" in path} == lost - {
            "metadata.extensions.system_fingerprint"
        } or form is RESPONSES


# What not every form has.


@pytest.mark.parametrize("form", FORMS)
def test_a_refusal_is_carried_by_every_form(form: WireForm) -> None:
    _, report, back = converted(answer(Segment(T.REFUSAL, "I will not.")), form)
    declined = FinishReason.CONTENT_FILTER if form is MESSAGES else FinishReason.STOP
    assert (back.refusal, back.finish_reason) == ("I will not.", declined)
    assert not report.names("refusal")


def test_a_verdict_of_anthropics_is_carried_by_its_form_alone() -> None:
    verdict = Segment(T.SAFETY, "", {"type": "refusal", "category": "cyber"})
    response = answer(verdict, finish="content_filter")
    assert converted(response, MESSAGES)[0]["stop_details"]["category"] == "cyber"
    for form in (CHAT, RESPONSES):
        assert Loss("segments[0]", LossReason.DROPPED) in converted(response, form)[1].differences
    other = answer(Segment(T.SAFETY, "", {"target": "prompt"}))
    assert converted(other, MESSAGES)[0]["stop_details"] is None


def test_alternatives_are_carried_by_chat_alone() -> None:
    other = Alternative(
        2, ChatMessage.assistant("other"), "length", "length", segments=[Segment(T.TEXT, "other")]
    )
    response = answer(Segment(T.TEXT, "x"), alternatives=[other])
    body, _, back = converted(response, CHAT)
    assert [choice["index"] for choice in body["choices"]] == [0, 2]
    assert back.alternatives == (other,)
    for form in (RESPONSES, MESSAGES):
        assert Loss("alternatives[0]", LossReason.DROPPED) in converted(response, form)[1].differences


def test_alternatives_come_in_the_order_of_their_numbers() -> None:
    others = [
        Alternative(n, ChatMessage.assistant("x"), "stop", segments=[Segment(T.TEXT, "x")]) for n in (2, 1)
    ]
    report = converted(answer(Segment(T.TEXT, "x"), alternatives=others), CHAT)[1]
    assert Loss("alternatives", LossReason.REORDERED) in report.differences


def test_an_alternative_never_mixes_with_the_answer_whose_number_it_has() -> None:
    other = Alternative(0, ChatMessage.assistant("other"), "stop", segments=[Segment(T.TEXT, "other")])
    _, report, back = converted(answer(Segment(T.TEXT, "x"), alternatives=[other]), CHAT)
    assert back.text == "x"
    assert report.names("alternatives[0]")


def test_hidden_reasoning_goes_where_the_form_has_a_place_for_it() -> None:
    response = answer(Segment(T.REASONING, "", {"encrypted": "e==", "id": "rs_9"}), Segment(T.TEXT, "x"))
    item = converted(response, RESPONSES)[0]["output"][0]
    marked = "crosswalk:encrypted:e=="
    assert (item["id"], item["encrypted_content"]) == ("rs_9", marked)
    assert converted(response, MESSAGES)[0]["content"][0] == {"type": "redacted_thinking", "data": marked}
    assert Loss("segments[0]", LossReason.DROPPED) in converted(response, CHAT)[1].differences


def test_a_phase_ends_its_message() -> None:
    parts = [Segment(T.TEXT, "a", {"phase": "commentary", "id": "msg_7"}), Segment(T.TEXT, "b")]
    first, second = converted(answer(*parts), RESPONSES)[0]["output"]
    assert (first["id"], first["phase"]) == ("msg_7", "commentary")
    assert "phase" not in second


def test_a_message_may_have_a_phase_and_no_text() -> None:
    (item,) = converted(answer(Segment(T.TEXT, "", {"phase": "commentary"})), RESPONSES)[0]["output"]
    assert (item["type"], item["phase"]) == ("message", "commentary")


def cited(**about: Any) -> Segment:
    return Segment(T.CITATION, "Title", about, [CitationRef(None, "https://x.test/a", (0, 4))])


@pytest.mark.parametrize("form", FORMS)
def test_a_page_that_is_cited_is_carried(form: WireForm) -> None:
    _, report, back = converted(answer(Segment(T.TEXT, "text"), cited()), form)
    (source,) = [s.annotations[0].source for s in back.segments if s.type is T.CITATION]  # type: ignore[union-attr]
    assert source == "https://x.test/a"
    assert (form is MESSAGES) == report.names("segments[1].annotations[0].span")


@pytest.mark.parametrize("form", FORMS)
def test_a_source_that_is_no_page_is_named(form: WireForm) -> None:
    book = Segment(T.CITATION, "p. 3", {}, [CitationRef("b1", "A book")])
    _, report, _ = converted(answer(Segment(T.TEXT, "text"), book, Segment(T.CITATION, "nothing")), form)
    assert report.names("segments[1]")
    assert report.names("segments[2]")


def test_a_source_that_is_no_page_begins_no_part() -> None:
    book = Segment(T.CITATION, "p. 3", {}, [CitationRef("b1", "A book", (0, 4))])
    body, report, _ = converted(answer(book, Segment(T.TEXT, "text")), RESPONSES)
    (item,) = body["output"]
    assert item["content"] == [{"type": "output_text", "text": "text", "annotations": []}]
    assert report.names("segments[0]")


def test_a_citation_without_a_span_is_of_all_the_text() -> None:
    bare = Segment(T.CITATION, "Title", {}, [CitationRef(None, "https://x.test/a")])
    body, report, _ = converted(answer(Segment(T.TEXT, "text"), bare), CHAT)
    assert body["choices"][0]["message"]["annotations"][0]["url_citation"]["end_index"] == 4
    assert Loss("segments[1].annotations[0].span", LossReason.FILLED_IN) in report.differences


@pytest.mark.parametrize(
    "segment",
    [
        Segment(T.CITATION, "f.txt", {"type": "file_citation", "index": 3}, [CitationRef("file_1")]),
        Segment(T.CITATION, "", {"type": "file_path", "index": 3}, [CitationRef("file_1")]),
        Segment(
            T.CITATION,
            "f.txt",
            {"type": "container_file_citation", "container_id": "c"},
            [CitationRef("file_1", None, (0, 2))],
        ),
    ],
)
def test_responses_own_citations_stay_what_they_are(segment: Segment) -> None:
    _, report, _ = converted(answer(Segment(T.TEXT, "text"), segment), RESPONSES)
    assert not any("segments" in path for path in report.paths)


def test_anthropics_own_citations_stay_with_the_text_behind_them() -> None:
    location = {
        "type": "char_location",
        "document_index": 0,
        "document_title": None,
        "start_char_index": 0,
        "end_char_index": 2,
        "file_id": None,
    }
    quote = Segment(T.CITATION, "so", location, [CitationRef()])
    body, report, _ = converted(answer(Segment(T.TEXT, "a"), quote, Segment(T.TEXT, "b")), MESSAGES)
    assert [block["text"] for block in body["content"]] == ["a", "b"]
    assert body["content"][1]["citations"][0]["cited_text"] == "so"
    assert not any("segments" in path for path in report.paths)
    broken = Segment(T.CITATION, "so", {**location, "document_index": None}, [CitationRef()])
    assert converted(answer(Segment(T.TEXT, "a"), broken), MESSAGES)[1].names("segments[1]")


def test_a_citation_may_come_without_any_text() -> None:
    for form in FORMS:
        _, _, back = converted(answer(cited()), form)
        assert [s.type for s in back.segments] == [T.CITATION]


def test_audio_is_carried_by_chat_if_it_is_whole() -> None:
    about = {"type": "audio", "encoding": "base64", "id": "au", "expires_at": 9, "transcript": "hi"}
    sound = Segment(T.MEDIA, "QUJD", about)
    body, report, _ = converted(answer(sound), CHAT)
    assert body["choices"][0]["message"]["audio"]["data"] == "QUJD"
    assert not report.names("segments[0]")
    for piece in (Segment(T.MEDIA, "QUJD", {"type": "audio"}), Segment(T.MEDIA, "QUJD", {"type": "video"})):
        assert converted(answer(piece), CHAT)[1].names("segments[0]")
    assert converted(answer(sound), RESPONSES)[1].names("segments[0]")
    assert converted(answer(sound), MESSAGES)[1].names("segments[0]")


def test_an_image_becomes_an_image_of_responses() -> None:
    picture = Segment(T.MEDIA, "QUJD", {"media_type": "image/png"})
    body, report, _ = converted(answer(picture), RESPONSES)
    assert (body["output"][0]["type"], body["output"][0]["result"]) == ("image_generation_call", "QUJD")
    assert not report.names("segments[0]")
    linked = Segment(T.MEDIA, "https://x.test/a.png", {"media_type": "image/png"})
    assert converted(answer(linked), RESPONSES)[1].names("segments[0]")


SEARCH = Segment(
    T.TOOL_CALL, '{"query":"kelp"}', {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search"}
)
FOUND = Segment(
    T.TOOL_CALL,
    "",
    {
        "type": "web_search_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": {"type": "web_search_tool_result_error", "error_code": "unavailable"},
    },
)
WEB = Segment(
    T.TOOL_CALL,
    '{"type":"search","query":"kelp"}',
    {"type": "web_search_call", "id": "ws_1", "status": "completed"},
)


def test_what_a_server_did_stays_in_its_own_form() -> None:
    ours = answer(SEARCH, FOUND, Segment(T.MEDIA, "", {"type": "container_upload", "file_id": "f"}))
    assert not any("segments" in path for path in converted(ours, MESSAGES)[1].paths)
    theirs = answer(WEB, Segment(T.TEXT, "x"))
    assert not any("segments" in path for path in converted(theirs, RESPONSES)[1].paths)
    assert converted(ours, RESPONSES)[1].names("segments[0]")
    assert converted(theirs, MESSAGES)[1].names("segments[0]")
    assert converted(theirs, CHAT)[1].names("segments[0]")


def test_a_search_with_sources_that_clients_do_not_know_goes_back_to_its_own_form_alone() -> None:
    page = {"type": "url", "url": "https://x.test/a"}
    action = {"type": "search", "query": "q", "sources": [page, {"type": "api", "name": "weather"}, 1]}
    search = answer(attrs.evolve(WEB, content=orjson.dumps(action).decode()))
    assert converted(search, RESPONSES)[1].names("segments[0]")
    kept = {"output": [{"index": 0, "type": "web_search_call", "id": "ws_1"}]}
    theirs = attrs.evolve(search, metadata=attrs.evolve(search.metadata, extensions=kept))
    assert orjson.loads(convert(theirs, RESPONSES).value)["output"][0]["action"] == action


def test_what_has_no_text_at_all_is_nothing() -> None:
    listed = Segment(
        T.TOOL_CALL, "", {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": []}
    )
    body, report, _ = converted(answer(Segment(T.TEXT, ""), listed, Segment(T.REASONING, "")), RESPONSES)
    assert [item["type"] for item in body["output"]] == ["mcp_list_tools"]
    assert not any("segments" in path for path in report.paths)


@pytest.mark.parametrize(
    "segment",
    [
        attrs.evolve(SEARCH, content="not JSON"),
        attrs.evolve(WEB, content="not JSON"),
        Segment(T.TOOL_CALL, "", {"type": "code_interpreter_call", "id": "ci_1", "status": "completed"}),
        Segment(T.TOOL_CALL, "{}", {"type": "web_search_call", "id": "ws_1", "status": "dreaming"}),
        Segment(T.TOOL_CALL, "", {"type": "server_tool_use", "id": "x", "name": "unheard_of"}),
        Segment(T.TOOL_CALL, "", {"type": ["no", "text"]}),
    ],
)
def test_what_a_server_did_is_named_where_clients_would_not_know_it(segment: Segment) -> None:
    for form in FORMS:
        assert converted(answer(segment), form)[1].names("segments[0]")


def test_probabilities() -> None:
    tokens = [TokenLogprob("a", -0.5, (97,), [TokenLogprob("a", -0.5, (97,)), TokenLogprob("b", -1.0)])]
    response = answer(Segment(T.TEXT, "a"), logprobs=tokens)
    assert not converted(response, CHAT)[1].names("logprobs")
    report = converted(response, RESPONSES)[1]
    assert Loss("logprobs[].top[].bytes", LossReason.FILLED_IN) in report.differences
    assert Loss("logprobs", LossReason.DROPPED) in converted(response, MESSAGES)[1].differences


@pytest.mark.parametrize("form", [CHAT, RESPONSES])
def test_a_probability_that_nobody_told_is_not_made_up(form: WireForm) -> None:
    tokens = [TokenLogprob("a", None), TokenLogprob("b", -1.0, (98,), [TokenLogprob("c", None)])]
    report = converted(answer(Segment(T.TEXT, "ab"), logprobs=tokens), form)[1]
    assert Loss("logprobs", LossReason.CHANGED) in report.differences
    silent = converted(answer(Segment(T.TOOL_CALL), logprobs=tokens[:1]), form)[1]
    assert Loss("logprobs", LossReason.DROPPED) in silent.differences


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (TokenLogprob("a", -1.0, (97,)), TokenLogprob("a", -1.0, (98,))),
        (TokenLogprob("a", -1.0, (97,), [TokenLogprob("b", -2.0)]), TokenLogprob("a", -1.0, (97,))),
    ],
)
def test_probabilities_that_differ_otherwise_are_changed(before: TokenLogprob, after: TokenLogprob) -> None:
    from crosswalk.convert.losses import losses

    one, other = (answer(Segment(T.TEXT, "a"), logprobs=[token]) for token in (before, after))
    assert losses(one, other) == (Loss("logprobs", LossReason.CHANGED),)


def test_a_call_that_nobody_made_is_a_change() -> None:
    from crosswalk.convert.losses import losses

    call = ToolCall("c1", "f")
    one = answer(finish="tool_calls")
    other = answer(finish="tool_calls", calls=[call])
    assert losses(one, other) == (
        Loss("message.tool_calls", LossReason.CHANGED),
        Loss("incomplete_reason", LossReason.DROPPED),  # its call is missing
    )


def test_texts_that_a_form_cannot_keep_apart_are_named_as_joined() -> None:
    call = ToolCall("c1", "f")
    parts = [Segment(T.TEXT, "a"), call_segment(call), Segment(T.TEXT, "b")]
    response = answer(*parts, finish="tool_calls", calls=[call])
    _, report, back = converted(response, CHAT)
    assert back.text == "ab"
    assert Loss("segments[0]", LossReason.JOINED) in report.differences
    for form in (RESPONSES, MESSAGES):
        assert not any("segments" in path for path in converted(response, form)[1].paths)


def test_an_order_that_a_form_cannot_keep_is_named() -> None:
    _, report, _ = converted(answer(Segment(T.TEXT, "a"), Segment(T.REASONING, "b")), CHAT)
    assert Loss("segments", LossReason.REORDERED) in report.differences


def test_an_answer_without_segments_is_told_by_its_message() -> None:
    call = ToolCall("c1", "f", '{"a":1}')
    message = ChatMessage.assistant("Look:", tool_calls=[call])
    response = ChatResponse.tool_calls_required(message, UsageInfo(1, 2), "m")
    for form in FORMS:
        _, _, back = converted(response, form)
        assert (back.text, back.tool_calls) == ("Look:", (call,))


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (("c1", "c1"), ("c1", "call_1")),
        (("call_1", "call_1"), ("call_1", "call_1_")),
        (("call_1", None), ("call_1", "call_1_")),
    ],
)
@pytest.mark.parametrize("form", FORMS)
def test_two_calls_of_one_id_get_two_whole_and_streamed(
    form: WireForm, given: tuple[str, str | None], kept: tuple[str, str]
) -> None:
    pieces = [call_piece(number, id, "f", "{}") for number, id in enumerate(given)]
    sent, _, back = streamed(deltas(*pieces, finish="tool_calls"), form)
    assert tuple(call.id for call in back.tool_calls) == kept
    assert trouble_of_client(form, sent) is None
    for id in kept:
        assert sent.count(b'"%s"' % id.encode()) == sent.count(b'"%s"' % kept[0].encode())
    whole = ChatResponse.from_deltas(deltas(*pieces, finish="tool_calls"))
    body, _, back = converted(whole, form)
    assert tuple(call.id for call in back.tool_calls) == kept
    assert [orjson.dumps(body).count(b'"%s"' % id.encode()) for id in kept] == [1, 1]


@pytest.mark.parametrize("arguments", ["free text", '{"cut": ', "[1]", ""])
def test_arguments_that_are_no_object_are_named_where_an_object_is_demanded(arguments: str) -> None:
    call = ToolCall("c1", "f", arguments)
    response = answer(call_segment(call), finish="tool_calls", calls=[call])
    assert converted(response, MESSAGES)[1].names("message.tool_calls[0].arguments")
    for form in (CHAT, RESPONSES):
        assert converted(response, form)[2].tool_calls[0].arguments == (arguments or "{}")


def test_counts_that_do_not_add_up_keep_their_sum() -> None:
    usage = UsageInfo(10, 1, cached_tokens=50)
    _, report, back = converted(answer(Segment(T.TEXT, "x"), usage=usage), MESSAGES)
    assert back.usage.prompt_tokens == 10
    assert report.names("usage.cached_tokens")


def test_counts_that_nobody_told_are_not_made_up() -> None:
    metadata = ResponseMetadata("made_up", "m", provenance={"usage": Provenance.ABSENT, "model": "absent"})
    response = answer(Segment(T.TEXT, "x"), usage=UsageInfo.EMPTY, metadata=metadata, model="unknown")
    body, report, back = converted(response, CHAT)
    assert "usage" not in body
    assert not report.names("metadata.provenance.usage")
    assert back.metadata.provenance["model"] is Provenance.ABSENT
    # Messages must have counts.
    assert (
        Loss("metadata.provenance.usage", LossReason.FILLED_IN)
        in converted(response, MESSAGES)[1].differences
    )


@pytest.mark.parametrize("form", [CHAT, RESPONSES])
def test_counts_that_a_stream_ended_before_are_not_made_up(form: WireForm) -> None:
    metadata = ResponseMetadata("made_up", "m", provenance={"usage": Provenance.CUT})
    body, report, _ = converted(answer(Segment(T.TEXT, "x"), usage=UsageInfo.EMPTY, metadata=metadata), form)
    assert body.get("usage") is None
    assert report.names("metadata.provenance.usage")  # it looks as if none was to come


def test_what_was_measured_and_judged_is_named() -> None:
    metadata = ResponseMetadata("made_up", "m", timedelta(seconds=1), timedelta(seconds=0.1), {"odd key": 1})
    metadata = attrs.evolve(metadata, provenance={"finish_reason": "derived"})
    verdicts = [{"category": "hate", "severity": "safe", "filtered": False}]
    from crosswalk import ContentFilterResult, ProviderAttempt

    response = answer(
        Segment(T.TEXT, "x", {}, []),
        metadata=metadata,
        content_filter_results=[ContentFilterResult(**verdict) for verdict in verdicts],
        attempts=[ProviderAttempt("p", "m")],
        created=datetime(2026, 1, 1, 0, 0, 0, 500, tzinfo=UTC),
    )
    for form in FORMS:
        paths = converted(response, form)[1].paths
        assert paths >= {
            "metadata.request_duration",
            "metadata.time_to_first_token",
            "metadata.extensions['odd key']",
            "metadata.provenance.finish_reason",
            "content_filter_results",
            "attempts",
        }
        assert "created" in paths  # whole seconds in each form


# Errors.


def failed(kind: ErrorKind, **more: Any) -> ChatResponse:
    return ChatResponse.error(ErrorInfo(kind, "It broke.", **more), model="m")


@pytest.mark.sweep
@pytest.mark.parametrize("kind", ErrorKind)
@pytest.mark.parametrize("form", FORMS)
def test_every_kind_of_http_error_is_one_in_every_form(kind: ErrorKind, form: WireForm) -> None:
    response = failed(kind, status=418)
    conversion = convert(response, form)
    accept_body(conversion)
    assert conversion.status == 418
    back = read_body(conversion)
    assert hidden_losses(response, back, conversion.report) == []
    assert (back.finish_reason, back.refusal) == (FinishReason.ERROR, "It broke.")
    # A status of 418 blames the request.
    vague = (ErrorKind.UNKNOWN, ErrorKind.TIMEOUT, ErrorKind.SERVER)
    assert form is MESSAGES or kind in vague or back.error_info.kind is kind  # type: ignore[union-attr]


@pytest.mark.sweep
@pytest.mark.parametrize("kind", ErrorKind)
def test_an_error_without_a_status_gets_the_usual_one(kind: ErrorKind) -> None:
    assert convert(failed(kind), CHAT).status >= 400
    # A response that failed is a response.
    body, _, back = converted(failed(kind), RESPONSES)
    assert (body["status"], back.refusal) == ("failed", "It broke.")


def test_an_error_keeps_the_words_that_the_form_knows() -> None:
    raw = {"error": {"message": "m", "type": "rate_limit_error", "param": "n"}}
    info = {"code": "rate_limit_error", "status": 429, "raw": raw}
    body = converted(failed(ErrorKind.RATE_LIMIT, **info), CHAT)[0]
    assert body["error"] == {"message": "It broke.", "type": "rate_limit_error", "param": "n", "code": None}
    assert converted(failed(ErrorKind.RATE_LIMIT, **info), MESSAGES)[0]["error"]["type"] == "rate_limit_error"
    assert (
        converted(failed(ErrorKind.SERVER, code="bio_policy"), RESPONSES)[0]["error"]["code"] == "bio_policy"
    )
    assert converted(failed(ErrorKind.SERVER, raw=["odd"], code="x"), CHAT)[0]["error"]["code"] == "x"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ({"message": "busy", "type": "unavailable_error", "code": 503}, "503"),  # llama.cpp
        ({"message": "busy", "code": 503}, "503"),  # OpenRouter
        ({"message": "busy", "code": 503, "status": "UNAVAILABLE"}, "UNAVAILABLE"),  # Google
        ({"message": "busy", "type": "server_error", "code": True}, None),
    ],
)
def test_an_error_keeps_its_number(error: dict[str, Any], code: object) -> None:
    response = normalize(orjson.dumps({"error": error}), "openai", status=503)
    body, _, back = converted(response, CHAT)
    assert body["error"]["code"] == code
    assert back.error_info.kind is response.error_info.kind  # type: ignore[union-attr]


def test_an_error_keeps_further_numbers_and_no_further_text() -> None:
    raw = {
        "message": "no",
        "type": "exceed_context_size_error",
        "n_ctx": 8,
        "param": 1,
        "key": "k",
        "is": True,
    }
    info = ErrorInfo(ErrorKind.CONTEXT_OVERFLOW, "no", raw={"error": raw})
    assert json.loads(error_body(info, WireForm.OPENAI_CHAT).value)["error"] == {
        "message": "no",
        "type": "exceed_context_size_error",
        "param": None,
        "code": "context_length_exceeded",
        "n_ctx": 8,
    }


def test_what_came_before_an_error_is_named_where_a_body_has_no_place_for_it() -> None:
    response = normalize(
        (CAPTURES / "anthropic/made_overloaded_stream.response.sse").read_bytes(), "anthropic"
    )
    for form in (CHAT, MESSAGES):
        assert converted(response, form)[1].names("message.content")
    assert not converted(response, RESPONSES)[1].names("message.content")


# Streams.


@pytest.mark.parametrize("form", FORMS)
def test_official_clients_read_streams(form: WireForm) -> None:
    calls = [
        call_piece(0, "c1", "find", None),
        call_piece(0, None, None, '{"q":'),
        call_piece(0, None, None, "1}"),
    ]
    pieces = [{"reasoning_delta": "hm"}, {"content_delta": "Look"}, {"content_delta": ": é🦙"}, *calls]
    sent, _, back = streamed(deltas(*pieces, finish="tool_calls", usage=UsageInfo(7, 5)), form)
    text, final = answer_of_client(form, sent)
    assert text == back.text == "Look: é🦙"
    assert back.tool_calls == (ToolCall("c1", "find", '{"q":1}'),)
    if form is MESSAGES:
        assert final.content[-1].input == {"q": 1}
        assert (final.usage.input_tokens, final.usage.output_tokens) == (7, 5)
    elif form is CHAT:
        assert final.choices[0].message.tool_calls[0].function.arguments == '{"q":1}'
        assert final.usage.total_tokens == 12
    else:
        assert final.output[-1].arguments == '{"q":1}'
        assert final.usage.total_tokens == 12


@pytest.mark.parametrize("form", FORMS)
def test_official_clients_read_many_citations_and_calls_without_ids(form: WireForm) -> None:
    pages = [
        {"segment": Segment(T.CITATION, "t", {}, [CitationRef(source=f"https://x.test/{number}")])}
        for number in range(3)
    ]
    pieces = [{"content_delta": "a"}, pages[0], pages[1], {"content_delta": "b"}, pages[2]]
    calls = [call_piece(0, None, "f", "{}"), call_piece(1, None, "g", '{"x":1}')]
    sent, _, back = streamed(deltas(*pieces, *calls, finish="tool_calls"), form)
    _, final = answer_of_client(form, sent)
    assert [call.id for call in back.tool_calls] == ["call_0", "call_1"]
    assert len([part for part in back.segments if part.type is T.CITATION]) == 3
    if form is CHAT:
        message = final.choices[0].message
        assert [note.url_citation.url for note in message.annotations] == [
            "https://x.test/0",
            "https://x.test/1",
            "https://x.test/2",
        ]
        assert [call.id for call in message.tool_calls] == ["call_0", "call_1"]


def test_citations_come_before_an_error_too() -> None:
    cited = Segment(T.CITATION, "t", {}, [CitationRef(source="https://x.test/")])
    failure = Segment(T.ERROR, "Broken.", {"kind": "server"})
    sent = streamed(
        deltas({"content_delta": "a"}, {"segment": cited}, {"segment": failure}, finish="error"), CHAT
    )[0]
    assert [kind in sent for kind in (b"annotations", b"error")] == [True, True]


@pytest.mark.parametrize("order", [(1, 0), (2, 1, 0), (0, 2, 1, 2), (2, 1), (1, 2, 0, 1, 2)])
def test_alternatives_out_of_order_are_opened_in_order(order: tuple[int, ...]) -> None:
    tokens = (TokenLogprob("x", -1.0, (120,)),)
    pieces: list[dict[str, Any]] = [{"content_delta": str(number), "choice": number} for number in order]
    ends = [{"finish_reason": "stop", "choice": number} for number in {*order} - {0}]
    sent, _, back = streamed(deltas({"logprobs": tokens, "choice": 1}, *pieces, *ends), CHAT)
    _, final = answer_of_client(CHAT, sent)
    said = [choice.message.content or "" for choice in final.choices]
    assert said == [str(number) * order.count(number) for number in range(max(order) + 1)]
    assert [alternative.index for alternative in back.alternatives] == list(range(1, max(order) + 1))
    assert back.alternatives[0].logprobs == tokens


def test_an_alternative_behind_a_gap_is_not_lost() -> None:
    pieces = [
        {"content_delta": "a"},
        {"content_delta": "c", "choice": 2},
        {"finish_reason": "stop", "choice": 2},
    ]
    back = streamed(deltas(*pieces), CHAT)[2]
    assert [(other.index, other.message.content) for other in back.alternatives] == [(2, "c")]


@pytest.mark.parametrize("form", FORMS)
def test_official_clients_raise_for_an_error_in_a_stream(form: WireForm) -> None:
    body = (CAPTURES / "anthropic/made_overloaded_stream.response.sse").read_bytes()
    stream = convert_stream(normalize_stream([body], "anthropic"), form)
    sent = b"".join(stream)
    assert stream.report.names("metadata.provider_id") == (form is not MESSAGES)
    if form is RESPONSES:
        with pytest.raises(RuntimeError, match="response.completed"):
            answer_of_client(form, sent)
        return
    with pytest.raises((openai.APIError, anthropic.APIError), match="verloaded"):
        answer_of_client(form, sent)


@pytest.mark.parametrize("form", FORMS)
def test_events_come_with_their_deltas_and_the_report_in_the_end(form: WireForm) -> None:
    seen: list[str] = []

    def source() -> Any:
        for delta in deltas({"content_delta": "a"}, {"content_delta": "b"}):
            seen.append("delta")
            yield delta

    stream = convert_stream(source(), form)
    assert seen == []
    first = next(stream)
    assert (seen, bool(first)) == (["delta"], True)
    with pytest.raises(ConversionError, match="not been converted to its end"):
        _ = stream.report
    rest = list(stream)
    assert rest
    assert stream.report.form is form


@pytest.mark.parametrize("form", FORMS)
def test_an_error_of_the_source_ends_the_stream_as_it_is(form: WireForm) -> None:
    body = (CAPTURES / "anthropic/made_cut_stream.response.sse").read_bytes()
    stream = convert_stream(normalize_stream([body], "anthropic"), form)
    with pytest.raises(IncompleteStreamError):
        list(stream)
    with pytest.raises(ConversionError):
        _ = stream.report


def test_a_stream_that_says_nothing_but_its_end() -> None:
    for form in FORMS:
        assert streamed(deltas(), form)[2].text == ""


INTERLEAVED = [
    call_piece(0, "c1", "f", '{"a":'),
    call_piece(1, "c2", "g", '{"b":"\\"}'),
    call_piece(0, None, None, "[1]}"),
    call_piece(1, None, None, '"}'),
]


@pytest.mark.parametrize("form", FORMS)
def test_calls_that_come_in_turns_stay_apart(form: WireForm) -> None:
    _, report, back = streamed(deltas(*INTERLEAVED, finish="tool_calls"), form)
    assert [call.arguments for call in back.tool_calls] == ['{"a":[1]}', '{"b":"\\"}"}']
    assert not report.names("message.tool_calls[0]")


@pytest.mark.sweep
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("order", [(1, 0), (2, 0, 2), (5,)])
def test_calls_come_in_the_order_in_which_they_began(form: WireForm, order: tuple[int, ...]) -> None:
    pieces = [call_piece(number, f"c{number}", "f", "{}" if n < 2 else " ") for n, number in enumerate(order)]
    sent, _, back = streamed(deltas(*pieces, finish="tool_calls"), form)
    assert trouble_of_client(form, sent) is None
    assert [call.id for call in back.tool_calls] == [f"c{number}" for number in dict.fromkeys(order)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "calls",
    [
        [call_piece(0, None, "f", "{}"), call_piece(1, None, "g", "{}")],
        [call_piece(0, "c1", None, "{"), call_piece(0, None, "f", "}"), call_piece(1, None, "g")],
        [call_piece(0, None, None, "{"), call_piece(1, "c2", "g"), call_piece(0, "c1", "f", "}")],
        [call_piece(0, "c1", "f"), call_piece(1, "c2", "g")],
    ],
)
def test_calls_whose_id_or_name_comes_late_or_never(form: WireForm, calls: list[dict[str, Any]]) -> None:
    _, _, back = streamed(deltas(*calls, finish="tool_calls"), form)
    assert {call.name for call in back.tool_calls} == {"f", "g"}


@pytest.mark.parametrize("form", FORMS)
def test_a_call_that_never_got_a_name_is_none(form: WireForm) -> None:
    _, report, back = streamed(deltas(call_piece(0, "c1", None, "{"), finish="length"), form)
    assert back.tool_calls == ()
    assert report.names("segments[0]") == (form is not CHAT)


BROKEN = [
    " ls -la /",
    "{'a':1}",
    "{a:1}",
    '{"a": tru}',
    '{"a":01}',
    '{"a":"x\ny"}',
    '{"a":"\\ud800"}',
    '{"a":1}}',
    '{"a":NaN}',
    "[1]",
    '{"a":' + "[" * 190 + "]" * 190 + "}",
]


@pytest.mark.untraced
@pytest.mark.parametrize("arguments", BROKEN)
def test_arguments_that_are_no_object_are_never_an_empty_input(arguments: str) -> None:
    pieces = [call_piece(0, "c1", "f", arguments[:3]), call_piece(0, None, None, arguments[3:])]
    made = deltas(*pieces, {"content_delta": "x"}, finish="tool_calls")
    loss = Loss("message.tool_calls[0].arguments", LossReason.CHANGED)
    sent, report, _ = streamed(made, MESSAGES)
    assert answer_of_client(MESSAGES, sent)[1].content[0].input == {"INVALID_JSON": arguments}
    assert loss in report.differences
    body, report, _ = converted(ChatResponse.from_deltas(made), MESSAGES)
    assert body["content"][0]["input"] == {"INVALID_JSON": arguments}
    assert loss in report.differences
    for form in (CHAT, RESPONSES):
        sent, _, back = streamed(made, form)
        assert back.tool_calls[0].arguments == arguments
        assert trouble_of_client(form, sent) is None


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ('{"a": 12345678901234567890123}', LossReason.RESPELLED),
        ('{"a":1.00000000000000000001}', LossReason.CHANGED),
        ('{"a":1,"a":2}', LossReason.CHANGED),
        ('{"a":{"b":1,"b":1}}', LossReason.CHANGED),
        ('{ "a": [1, true, null, "\\u00e9 {\\"[\\\\"] }', LossReason.RESPELLED),
        ('{"a":1e2}', LossReason.RESPELLED),
        ('{"a":1e-99999999999999999999}', LossReason.CHANGED),
    ],
)
def test_arguments_that_say_the_same_are_respelled_and_others_changed(
    arguments: str, reason: LossReason
) -> None:
    call = ToolCall("c1", "f", arguments)
    response = answer(call_segment(call), finish="tool_calls", calls=[call])
    _, report, back = converted(response, MESSAGES)
    assert Loss("message.tool_calls[0].arguments", reason) in report.differences
    assert list(lost_essentials(response, back, report)) == []
    sent, report, back = streamed(deltas(call_piece(0, "c1", "f", arguments), finish="tool_calls"), MESSAGES)
    assert back.tool_calls == (call,)
    assert trouble_of_client(MESSAGES, sent) is None


def test_arguments_of_any_depth_are_compared() -> None:
    for depth in (190, 1000):
        call = ToolCall("c1", "f", '{"a": ' + "[" * (depth - 1) + "]" * (depth - 1) + "}")
        _, report, _ = converted(answer(call_segment(call), finish="tool_calls", calls=[call]), MESSAGES)
        reason = LossReason.RESPELLED if depth == 190 else LossReason.CHANGED
        assert Loss("message.tool_calls[0].arguments", reason) in report.differences


@pytest.mark.parametrize("text", ["SELECT 1", '{"a": 1}', ""])
def test_the_free_text_of_a_call_is_one_argument(text: str) -> None:
    for form in (MESSAGES, WireForm.GEMINI, WireForm.OLLAMA):
        call = ToolCallDelta(0, "c1", "sql", text[:3], kind="custom")
        made = deltas({"tool_call_delta": call}, call_piece(0, None, None, text[3:]), finish="tool_calls")
        sent = b"".join(convert_stream(iter(made), form, losses="report"))
        assert read_stream(form, sent).tool_calls[0].parsed() == {"input": text}
        conversion = convert(ChatResponse.from_deltas(made), form, losses="report")
        assert read_body(conversion).tool_calls[0].parsed() == {"input": text}
        assert conversion.report.names("message.tool_calls[0].kind")


@pytest.mark.sweep
@pytest.mark.parametrize("finish", ["length", "tool_calls"])
def test_a_client_of_messages_gets_the_beginning_of_arguments_if_the_answer_was_cut(finish: str) -> None:
    """It takes the beginning for an object. If the answer claims to be whole, the text reaches it as INVALID_JSON."""
    whole = ' {"a\\"{":[1.5e+3,{"b":true}],"é":"\\u00e9\\ud83d\\ude00","c":"d"}'
    for length in range(2, len(whole)):
        cut = whole[:length]
        sent, _, back = streamed(deltas(call_piece(0, "c1", "f", cut), finish=finish), MESSAGES)
        arguments = back.tool_calls[0].arguments
        assert (arguments if finish == "length" else json.loads(arguments)["INVALID_JSON"]) == cut
        assert trouble_of_client(MESSAGES, sent) is None


def test_an_array_of_an_answer_that_was_cut_is_no_beginning_of_an_object() -> None:
    sent, report, _ = streamed(deltas(call_piece(0, "c1", "f", "[1]"), finish="length"), MESSAGES)
    assert b"INVALID_JSON" in sent
    assert report.names("message.tool_calls[0].arguments")


def test_arguments_that_were_cut_are_sent_only_as_deep_as_clients_can_read() -> None:
    for depth, is_sent in ((190, True), (191, False)):  # what is deeper is sent as a text
        cut = '{"a":' + "[" * (depth - 1) + '"[{'
        sent, report, _ = streamed(deltas(call_piece(0, "c1", "f", cut), finish="length"), MESSAGES)
        assert (b"INVALID_JSON" in sent) is not is_sent
        assert report.names("message.tool_calls[0].arguments") is not is_sent


def test_an_input_has_every_digit_that_the_model_wrote() -> None:
    call = ToolCall("c1", "f", '{"a":12345678901234567890123,"b":[1.10]}')
    body = convert(answer(call_segment(call), finish="tool_calls", calls=[call]), MESSAGES).value
    assert b'"input":{"a":12345678901234567890123,"b":[1.10]}' in body


@pytest.mark.parametrize("form", FORMS)
def test_space_behind_the_arguments_belongs_to_them(form: WireForm) -> None:
    pieces = [call_piece(0, "c1", "f", "{}"), call_piece(0, None, None, " \n"), {"content_delta": "x"}]
    _, _, back = streamed(deltas(*pieces, finish="tool_calls"), form)
    assert back.tool_calls[0].arguments == "{} \n"


def test_what_comes_after_the_end_of_a_call_has_no_place() -> None:
    pieces = [call_piece(0, "c1", "f", "{}"), {"content_delta": "x"}, call_piece(0, None, None, "more")]
    for form in (RESPONSES, MESSAGES):
        _, report, _ = streamed(deltas(*pieces, finish="tool_calls"), form)
        assert report.names("message.tool_calls[0].arguments")


@pytest.mark.parametrize("form", FORMS)
def test_usage_of_one_count_after_another(form: WireForm) -> None:
    pieces = [{"usage": UsageInfo(9, 1)}, {"content_delta": "x"}, {"usage": UsageInfo(9, 2)}]
    _, _, back = streamed(deltas(*pieces, usage=UsageInfo(9, 3)), form)
    assert (back.usage.prompt_tokens, back.usage.completion_tokens) == (9, 3)


@pytest.mark.parametrize("form", FORMS)
def test_what_an_event_has_no_text_for(form: WireForm) -> None:
    tokens = (TokenLogprob("x", -1.0, (120,)),)
    pieces = [
        {"logprobs": tokens},
        {"segment": Segment(T.SAFETY, "", {"target": "prompt"})},
        {"reasoning_delta": "a"},
        {"segment": Segment(T.REASONING, "", {"signature": "s"})},
        {"segment": SEARCH},
        {"content_delta": "x"},
        {"segment": Segment(T.TEXT, "", {"phase": "final_answer"})},
        {"content_delta": "y", "choice": 1},
        {"logprobs": tokens, "choice": 1},
        {"finish_reason": "stop", "choice": 1},
    ]
    _, report, back = streamed(deltas(*pieces), form)
    assert (back.text, back.reasoning) == ("x", "a")
    assert report.names("alternatives[0]") == (form is not CHAT)


# The report.


def test_a_report_is_json_for_programs_and_lines_for_people() -> None:
    rules = {rule.name: rule for rule in RULES}
    found = [
        Loss("logprobs", LossReason.DROPPED, rules["logprobs"]),
        Loss("message.tool_calls[0]", LossReason.DROPPED, rules["call"]),
        Loss("a.b[0]", LossReason.FILLED_IN, rules["filled-in"]),
    ]
    report = ConversionReport.of(MESSAGES, found)
    losses = [
        {"path": "logprobs", "reason": "dropped", "rule": "logprobs", "grade": "changed"},
        {"path": "message.tool_calls[0]", "reason": "dropped", "rule": "call", "grade": "dangerous"},
    ]
    harmless = [{"path": "a.b[0]", "reason": "filled_in", "rule": "filled-in", "grade": "harmless"}]
    assert json.loads(report.to_json()) == {"form": "anthropic", "losses": losses, "harmless": harmless}
    carried = ConversionReport.of(MESSAGES, found, is_carried=True)
    assert json.loads(carried.to_json()) == {
        "form": "anthropic",
        "losses": losses,
        "harmless": harmless,
        "carried": True,
    }
    assert str(report).splitlines() == [
        "Messages: 2 dropped; 1 harmless difference",
        "  logprobs: has no place",
        "  message.tool_calls[0]: has no place (dangerous)",
    ]
    assert str(carried).startswith(
        "Messages: 2 dropped; 1 harmless difference, carried for a later conversion\n"
    )
    whole = ConversionReport.of(MESSAGES, found[2:])
    assert str(whole) == "Messages: nothing that changes the meaning was lost; 1 harmless difference"
    assert report.names("a.b[0].c")
    assert not report.names("a.b")
    assert not report.is_lossless
    empty = ConversionReport(CHAT)
    assert (empty.is_lossless, str(empty)) == (True, "Chat Completions: everything carried")


@pytest.mark.parametrize("form", WireForm)
@pytest.mark.parametrize(("final", "is_dangerous"), [("Hi", False), ("Ho", True)])
def test_a_stream_cannot_take_its_text_back(form: WireForm, final: str, *, is_dangerous: bool) -> None:
    """A correction by white space is a change. A stream with another text is not ended as if it were right."""
    deltas = [
        ResponseDelta(0, content_delta="Hi "),
        ResponseDelta(1, correction=Correction("text", final, 0, 3)),
        ResponseDelta(2, finish_reason="stop"),
    ]
    with pytest.raises(DangerousLossError) if is_dangerous else nullcontext():
        assert b"".join(convert_stream(deltas, form, model="m"))


def test_a_writer_that_forgets_something_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The report does not rest on what the writers believe."""
    monkeypatch.setattr(ChatWriter, "_delta", lambda self, piece, choice: {})
    call = ToolCall("c1", "f")
    calling = answer(call_segment(call), finish="tool_calls", calls=[call])
    assert convert(calling, CHAT, losses="report").report.names("message.tool_calls[0]")
    with pytest.raises(DangerousLossError, match=r"Chat Completions: .* @ message.tool_calls\[0\]") as error:
        convert(calling, CHAT)
    assert [loss.rule.grade for loss in error.value.losses] == ["dangerous"]


def test_what_cannot_be_converted_at_all() -> None:
    with pytest.raises(ConversionError, match="losses: one of refuse, report"):
        convert(answer(), CHAT, losses="ignore")  # type: ignore[arg-type]
    with pytest.raises(ConversionError, match="no form 'pigeon'; there are: openai-chat, openai-responses"):
        convert(answer(), "pigeon")
    broken = answer(Segment(T.TEXT, "hi"))
    object.__setattr__(broken.segments[0], "content", "\ud800")  # past every check
    object.__setattr__(broken.message, "content", "\ud800")
    for form in FORMS:
        with pytest.raises(ConversionError, match="JSON"):
            convert(broken, form)
        with pytest.raises(PluginError):
            convert(answer(), form, registry=registry_of())


@settings(max_examples=tries(25))
@given(chat_responses)
def test_no_answer_loses_anything_in_silence(response: ChatResponse) -> None:
    for form in FORMS:
        conversion = convert(response, form, losses="report")
        accept_body(conversion)
        assert hidden_losses(response, read_body(conversion), conversion.report) == []


fragments = st.builds(
    ToolCallDelta,
    st.integers(0, 2),
    st.none() | names,
    st.none() | names,
    st.none() | st.sampled_from(['{"a":', "1}", "{}", '"x"', "", "free"]),
)
pieces = st.one_of(
    st.fixed_dictionaries({"content_delta": texts}),
    st.fixed_dictionaries({"reasoning_delta": texts}),
    st.fixed_dictionaries({"refusal_delta": texts}),
    st.fixed_dictionaries({"tool_call_delta": fragments}),
    st.fixed_dictionaries({"segment": segments}),
)


@settings(max_examples=tries(25))
@given(st.lists(pieces, max_size=8), st.sampled_from(FinishReason), st.none() | usage_infos)
def test_no_stream_loses_anything_in_silence(
    said: list[dict[str, Any]], finish: FinishReason, usage: UsageInfo | None
) -> None:
    made = deltas(*said, finish=finish.value, usage=usage)
    try:
        ChatResponse.from_deltas(made)
    except CrosswalkError:  # a call without a name in an answer that ended well
        return
    for form in FORMS:
        streamed(made, form)


def test_the_comparison_of_these_tests_finds_what_is_hidden() -> None:
    """The judge is judged: a loss that no report names is found."""
    call = ToolCall("c1", "f", '{"a":1}')
    thought = Segment(T.REASONING, "hm", {"signature": "s"})
    before = answer(thought, Segment(T.TEXT, "x"), call_segment(call), finish="tool_calls", calls=[call])
    nothing = ConversionReport(MESSAGES)
    assert [*hidden_losses(before, before, nothing), *lost_essentials(before, before, nothing)] == []
    for after in (
        answer(thought, call_segment(call), finish="tool_calls", calls=[call]),
        answer(Segment(T.REASONING, "hm"), *before.segments[1:], finish="tool_calls", calls=[call]),
        answer(*before.segments, finish="stop", calls=[call]),
        answer(*before.segments, finish="tool_calls", calls=[attrs.evolve(call, arguments="{}")]),
        answer(*reversed(before.segments), finish="tool_calls", calls=[call]),
        attrs.evolve(before, usage=UsageInfo(7, 6)),
    ):
        assert hidden_losses(before, after, nothing), after


def test_frames_are_the_ones_of_each_api() -> None:
    made = deltas({"content_delta": "x"}, usage=UsageInfo(1, 1))
    assert streamed(made, CHAT)[0].endswith(b"data: [DONE]\n\n")
    assert streamed(made, MESSAGES)[0].startswith(b'event: message_start\ndata: {"type":"message_start"')
    events = list(data_of(streamed(made, RESPONSES)[0]))
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [event["type"] for event in events][:2] == ["response.created", "response.in_progress"]


# What each form demands.


def test_a_message_has_every_member_that_the_api_demands() -> None:
    body, _, _ = converted(answer(Segment(T.TEXT, "Hi")), MESSAGES)
    assert {name for name, value in body.items() if value is None} == {
        "container",
        "stop_details",
        "stop_sequence",
    }
    assert body["content"] == [{"type": "text", "text": "Hi", "citations": []}]
    nulls = {name for name, value in body["usage"].items() if value is None}
    assert {"cache_creation", "inference_geo", "server_tool_use", "service_tier"} <= nulls
    events = [*data_of(streamed(deltas({"content_delta": "Hi"}), MESSAGES)[0])]
    last = next(event for event in events if event["type"] == "message_delta")
    assert last["delta"].keys() == {"stop_reason", "stop_sequence", "stop_details", "container"}
    assert "service_tier" not in last["usage"]
    assert "service_tier" in events[0]["message"]["usage"]


def test_a_response_repeats_the_options_of_its_request() -> None:
    response = answer(Segment(T.TEXT, "Hi"))
    tool = {"type": "function", "name": "f"}
    schema = {"type": "json_schema", "name": "s", "schema": {"type": "object"}}
    request: dict[str, Any] = {
        "temperature": 0.5,
        "top_p": None,
        "tools": [tool, {"type": "web_search"}],
        "text": {"format": schema, "verbosity": "low"},
        "reasoning": {"effort": "low"},
        "input": "Hello",
    }
    body = orjson.loads(convert(response, RESPONSES, request=request).value)
    assert (body["temperature"], body["top_p"]) == (0.5, 1)
    assert body["tools"] == [
        {**tool, "description": None, "parameters": None, "strict": None},
        {"type": "web_search"},
    ]
    assert body["text"] == {"format": {**schema, "description": None, "strict": False}, "verbosity": "low"}
    assert body["reasoning"] == {"effort": "low", "summary": None}
    assert "input" not in body
    assert orjson.loads(convert(response, RESPONSES).value)["text"] == {"format": {"type": "text"}}
    terse = orjson.loads(convert(response, RESPONSES, request={"text": {"verbosity": "low"}}).value)
    assert terse["text"] == {"verbosity": "low", "format": {"type": "text"}}


def test_a_response_is_complete_once_its_duration_is_known() -> None:
    seconds = timedelta(seconds=2)
    for duration, done in ((timedelta(), None), (seconds, int((NOW + seconds).timestamp()))):
        made = answer(Segment(T.TEXT, "Hi"), metadata=ResponseMetadata("made_up", "m", duration))
        assert converted(made, RESPONSES)[0]["completed_at"] == done
    cut = answer(Segment(T.TEXT, "Hi"), finish="length", metadata=ResponseMetadata("made_up", "m", seconds))
    assert converted(cut, RESPONSES)[0]["completed_at"] is None


@pytest.mark.parametrize(
    ("kind", "status", "word"),
    [
        (ErrorKind.INVALID_REQUEST, 400, "invalid_request_error"),
        (ErrorKind.INVALID_REQUEST, 404, "not_found_error"),
        (ErrorKind.INVALID_REQUEST, 413, "request_too_large"),
        (ErrorKind.RATE_LIMIT, 429, "rate_limit_error"),
        (ErrorKind.RATE_LIMIT, 503, "overloaded_error"),
        (ErrorKind.RATE_LIMIT, 529, "overloaded_error"),
    ],
)
def test_an_error_has_anthropics_word_for_its_status(kind: ErrorKind, status: int, word: str) -> None:
    made = error_body(ErrorInfo(kind, "no", status=status), MESSAGES)
    assert orjson.loads(made.value)["error"] == {"type": word, "message": "no"}


def test_an_answer_nested_deeper_than_usual_comes_back_to_its_own_form() -> None:
    deep: Any = 1
    for _ in range(230):
        deep = [deep]
    message = {"role": "assistant", "content": "Hi"}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    said = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [choice],
        "deep": deep,
    }
    response = normalize(said, "openai", limits=Limits(depth=400))
    assert json.loads(convert(response, "openai-chat").value)["deep"] == deep


def test_the_two_kinds_of_response_are_told_apart() -> None:
    answer = ChatResponse.success(ChatMessage.assistant("Hi"), UsageInfo(1, 1), "m")
    typed = to_response(answer).value
    assert convert(typed, "anthropic").value == convert(from_response(typed), "anthropic").value
    wrong: Any = to_chat_completion
    with pytest.raises(
        TypeError, match="must be a Response, not ChatResponse; for a ChatResponse call convert"
    ):
        wrong(answer)
    wrong = to_response
    with pytest.raises(
        TypeError, match="must be a ChatResponse, not Response; for a Response call from_response"
    ):
        wrong(typed)
