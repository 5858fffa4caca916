"""Amazon Bedrock Converse: the fact sheet as tables, and the conformance kit over invented captures."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from bedrock_frames import BEGIN, END, METADATA, USAGE, piece, read, start, stop
from crosswalk import (
    ChatResponse,
    CitationRef,
    ErrorKind,
    FinishReason,
    SafetyAnnotation,
    SegmentType,
    UnknownEventError,
    UnknownFinishReasonError,
    UsageInfo,
    WireTypeError,
    normalize,
)
from crosswalk.plugins import Recognition
from crosswalk.service import build_http_request, read_request
from crosswalk.testing import ProviderConformance
from crosswalk_bedrock import plugin


class TestBedrock(ProviderConformance):
    provider = "bedrock"
    captures = "../captures/bedrock"
    snapshots = "../../snapshots"


def whole(*content: Any, reason: str | None = "end_turn", **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": list(content)}
    return {"output": {"message": message}, "stopReason": reason, "usage": USAGE, **more}


def stream(*between: Any) -> ChatResponse:
    return read(BEGIN, *between, END, METADATA)


def segments(response: ChatResponse) -> list[tuple[str, str, dict[str, Any]]]:
    return [(s.type.value, s.content, s.metadata.thawed()) for s in response.segments]


def left(response: ChatResponse) -> Any:
    return response.metadata.extensions.thawed()


def content_left(response: ChatResponse) -> Any:
    return left(response)["output"]["message"]["content"]


# Section 2: the answer and its blocks.


def test_nothing_says_who_answered_but_what_an_sdk_or_a_router_adds() -> None:
    plain = read(whole({"text": "Hi"}))
    assert plain.metadata.provenance["id"] == "synthetic"
    assert plain.metadata.provenance["model"] == "absent"
    assert plain.metadata.extensions == {}
    told = {
        "ResponseMetadata": {"RequestId": "r-1", "HTTPStatusCode": 200},
        "trace": {"promptRouter": {"invokedModelId": "m-1"}},
    }
    response = read(whole({"text": "Hi"}, **told))
    assert (response.id, response.model) == ("r-1", "m-1")
    assert left(response) == {"ResponseMetadata": {"HTTPStatusCode": 200}}
    assert read(whole(**{"$metadata": {"requestId": "r-2"}})).id == "r-2"


def test_latency_is_the_duration_and_stays() -> None:
    response = stream(piece(0, {"text": "Hi"}))
    assert response.metadata.request_duration.total_seconds() == 0.43
    assert left(response) == {"metrics": {"latencyMs": 430}}
    endless = read(whole(metrics={"latencyMs": 10**15}))
    assert left(endless) == {"metrics": {"latencyMs": 10**15}}


def test_blocks_of_one_type_stay_apart() -> None:
    expected = [("text", "AB", {}), ("text", "C", {}), ("reasoning", "D", {}), ("reasoning", "E", {})]
    thoughts = [{"reasoningContent": {"reasoningText": {"text": text}}} for text in "DE"]
    assert segments(read(whole({"text": "AB"}, {"text": "C"}, *thoughts))) == expected
    said = [{"text": "B"}, {"text": "C"}]
    streamed = stream(
        piece(0, {"text": "A"}),
        piece(0, said[0]),
        piece(1, said[1]),
        *(piece(n, {"reasoningContent": {"text": text}}) for n, text in ((2, "D"), (3, "E"))),
    )
    assert segments(streamed) == expected


def test_a_block_or_a_piece_without_a_value_for_its_field_says_nothing() -> None:
    nulls = {"citation": None, "toolUse": None, "toolResult": None, "image": None}
    response = stream(piece(0, {"text": "A", **nulls}), piece(0, {"text": "B"}))
    assert (segments(response), response.message.tool_calls) == ([("text", "AB", {})], None)
    body = read(whole({"text": "A", "citationsContent": None, **nulls}))
    assert (segments(body), body.message.tool_calls) == ([("text", "A", {})], None)


def test_no_piece_adds_to_arguments_that_came_at_once() -> None:
    use = {"toolUseId": "t", "name": "f", "input": {"a": 1}}
    start = {"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": use}}}
    response = stream(start, piece(0, {"toolUse": {"input": "{}"}}), stop(0))
    assert [call.arguments for call in response.tool_calls] == ['{"a":1}']
    content = response.metadata.extensions["output"]["message"]["content"]
    assert content == ({"index": 0, "deltas": ({"toolUse": {"input": "{}"}},)},)


def test_an_empty_text_is_no_missing_one() -> None:
    assert read(whole({"text": ""})).message.content == ""
    assert stream(piece(0, {"text": ""})).message.content == ""
    assert read(whole()).message.content is None


@pytest.mark.parametrize("reason", ["end_turn", "tool_use"])
def test_a_call_has_its_input_as_text_and_none_is_an_empty_object(reason: str) -> None:
    uses = [
        {"toolUseId": "t1", "name": "f", "input": {"a": [1, 2.5]}},
        {"toolUseId": "t2", "name": "f", "input": {}},
    ]
    body = read(whole(*({"toolUse": use} for use in uses), reason=reason))
    assert [(c.id, c.name, c.arguments) for c in body.tool_calls] == [
        ("t1", "f", '{"a":[1,2.5]}'),
        ("t2", "f", "{}"),
    ]
    assert body.finish_reason is FinishReason.TOOL_CALLS
    streamed = stream(
        start(0, {"toolUse": {"toolUseId": "t1", "name": "f"}}),
        start(1, {"toolUse": {"toolUseId": "t2", "name": "f"}}),
        piece(0, {"toolUse": {"input": '{"a":'}}),
        piece(0, {"toolUse": {"input": "[1,2.5]}"}}),
        stop(0),
    )
    assert streamed.tool_calls == body.tool_calls


def test_a_signature_joins_its_reasoning_and_what_is_redacted_stands_in_its_place() -> None:
    signed = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}}
    hidden = {"reasoningContent": {"redactedContent": "AAE="}}
    expected = [("reasoning", "Hm.", {"signature": "c2ln"}), ("reasoning", "", {"encrypted": "AAE="})]
    assert segments(read(whole(signed, hidden))) == expected
    pieces = ({"text": "Hm."}, {"signature": "c2ln"}, {"redactedContent": "AAE="})
    at = [piece(number // 2, {"reasoningContent": said}) for number, said in enumerate(pieces)]
    assert segments(stream(*at)) == expected


def test_what_is_redacted_never_joins_the_reasoning_of_another_block() -> None:
    response = read(
        whole(
            {"reasoningContent": {"reasoningText": {"text": "Hm."}}},
            {"reasoningContent": {"redactedContent": "AAE="}},
        )
    )
    assert segments(response) == [("reasoning", "Hm.", {}), ("reasoning", "", {"encrypted": "AAE="})]


def test_a_servers_tool_is_no_call_of_the_client() -> None:
    use = {"toolUseId": "t", "name": "grounding", "type": "server_tool_use"}
    result = {"toolUseId": "t", "status": "success", "type": "grounding_result"}
    expected = [
        ("tool_call", '{"q":1}', {"id": "t", "name": "grounding", "type": "server_tool_use"}),
        (
            "tool_call",
            "",
            {"id": "t", "status": "success", "type": "grounding_result", "content": [{"text": "1"}]},
        ),
    ]
    body = read(
        whole({"toolUse": {**use, "input": {"q": 1}}}, {"toolResult": {**result, "content": [{"text": "1"}]}})
    )
    assert segments(body) == expected
    assert (body.tool_calls, body.finish_reason) == ((), FinishReason.STOP)
    streamed = stream(
        start(0, {"toolUse": use}),
        piece(0, {"toolUse": {"input": '{"q":1}'}}),
        stop(0),
        start(1, {"toolResult": result}),
        piece(1, {"toolResult": [{"text": "1"}]}),
    )  # the end of the second block is missing
    assert segments(streamed) == expected


def test_a_servers_tool_without_input_or_start() -> None:
    use = {"toolUseId": "t", "id": "own", "type": "server_tool_use"}
    assert segments(read(whole({"toolUse": use})))[0] == ("tool_call", "", use)
    bare = stream(piece(0, {"toolResult": [{"json": 1}]}))
    assert segments(bare) == [("tool_call", "", {"type": "tool_result", "content": [{"json": 1}]})]


def test_citations_come_before_the_words_that_rest_on_them() -> None:
    paged = {
        "title": "manual",
        "sourceContent": [{"text": "Gauges "}, {"text": "read."}],
        "location": {"documentPage": {"documentIndex": 0, "start": 1, "end": 2}},
    }
    web = {"location": {"web": {"url": "https://example.org", "domain": "example.org"}}, "source": "s"}
    body = read(whole({"citationsContent": {"content": [{"text": "They read."}], "citations": [paged, web]}}))
    streamed = stream(
        piece(0, {"citation": paged}), piece(0, {"citation": web}), piece(0, {"text": "They read."})
    )
    for response in (body, streamed):
        assert segments(response) == [
            ("citation", "Gauges read.", paged),
            ("citation", "", web),
            ("text", "They read.", {}),
        ]
        assert [s.annotations for s in response.segments[:2]] == [
            (CitationRef(source="manual"),),
            (CitationRef(source="https://example.org"),),
        ]


@pytest.mark.parametrize(
    ("kind", "item", "content", "about"),
    [
        (
            "image",
            {"format": "png", "source": {"bytes": "iVBO"}},
            "iVBO",
            {"media_type": "image/png", "encoding": "base64", "image": {"format": "png"}},
        ),
        (
            "video",
            {"format": "mp4", "source": {"s3Location": {"uri": "s3://b/v", "bucketOwner": "1"}}},
            "s3://b/v",
            {
                "media_type": "video/mp4",
                "encoding": "url",
                "video": {"format": "mp4", "source": {"s3Location": {"bucketOwner": "1"}}},
            },
        ),
        (
            "audio",
            {"source": {"s3Location": {"uri": "s3://b/a"}}},
            "s3://b/a",
            {"encoding": "url"},
        ),
        (
            "document",
            {"format": "pdf", "name": "d", "source": {"text": "T"}},
            "",
            {
                "media_type": "application/pdf",
                "document": {"format": "pdf", "name": "d", "source": {"text": "T"}},
            },
        ),
        (
            "document",
            {"format": "odt", "source": {"bytes": ""}},
            "",
            {"media_type": "application/octet-stream", "encoding": "base64", "document": {"format": "odt"}},
        ),
        ("image", {"error": {"message": "no"}}, "", {"image": {"error": {"message": "no"}}}),
    ],
)
def test_files_are_media(kind: str, item: dict[str, Any], content: str, about: dict[str, Any]) -> None:
    assert segments(read(whole({kind: item}))) == [("media", content, {"kind": kind, **about})]


def test_an_image_that_never_came_is_told_of() -> None:
    response = stream(start(0, {"image": {"format": "gif"}}), stop(0))
    told = {"kind": "image", "media_type": "image/gif", "image": {"format": "gif"}}
    assert segments(response) == [("media", "", told)]


@pytest.mark.parametrize(
    "block",
    [
        {"cachePoint": {"type": "default"}},
        {"guardContent": {"text": {"text": "x"}}},
        {"SDK_UNKNOWN_MEMBER": {"name": "x"}},
    ],
)
def test_other_blocks_stay_in_their_place(block: dict[str, Any]) -> None:
    assert content_left(read(whole({"text": "A"}, block))) == [{}, block]


def test_what_is_odd_about_a_stream_stays_where_a_body_has_it() -> None:
    response = read(
        {"messageStart": {"role": "user", "p": "abc", "at": 1}},
        start(4, {"toolUse": {"toolUseId": "t", "name": "f", "type": "other"}}),
        piece(4, {"audio": "a"}),
        piece(4, {"audio": "a"}),
        stop(4),
        stop(4),
        stop(9),
        {"messageStop": {"stopReason": "tool_use", "p": "ab"}},
        {"messageStop": {"stopReason": "end_turn"}},
        {"metadata": {"usage": USAGE, "p": "a"}, "amazon-bedrock-invocationMetrics": {"inputTokenCount": 9}},
    )
    assert left(response) == {
        "p": "a",
        "output": {
            "message": {
                "role": "user",
                "at": 1,
                "content": [
                    {"index": 4, "start": {"toolUse": {"type": "other"}}, "deltas": [{"audio": "a"}] * 2},
                    {"index": 9},
                ],
            }
        },
        "stopReason": "end_turn",
        "amazon-bedrock-invocationMetrics": {"inputTokenCount": 9},
    }


def test_a_sibling_of_the_wrapper_takes_nobodys_place() -> None:
    response = read(BEGIN, piece(0, {"text": "Hi"}), END, {"metadata": {"x": 1}, "x": 2})
    assert left(response) == {"metadata": {"x": 1}, "x": 2}
    odd = {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "Hi", "x": 1}, "output": 2}}
    assert left(read(BEGIN, odd, END)) == {"delta": {"x": 1}, "output": 2}


def test_an_index_may_be_missing() -> None:
    response = stream(stop(None), piece(None, {"text": "H"}), piece(None, {"text": "i", "x": 1}), stop(None))
    assert response.text == "Hi"
    assert content_left(response) == [{"index": 0, "deltas": [{"x": 1}]}]


# Section 3: events with names, and events that are none.


def framed(*sent: dict[str, Any]) -> bytes:
    lines = [b"event: %b\ndata: %b\n\n" % (k.encode(), orjson.dumps(v)) for e in sent for k, v in e.items()]
    return b"".join(lines)


@pytest.mark.parametrize("said", [{"text": "Hi"}, {"reasoningContent": {"text": "Hm."}}])
def test_padding_changes_nothing_but_itself(said: dict[str, Any]) -> None:
    padded = [piece(0, said) for _ in range(5)]
    for number, one in enumerate(padded):
        one["contentBlockDelta"]["p"] = "abcde"[number:]
    sent = (BEGIN, *padded, stop(0), END, METADATA)
    wrapped = read(*sent, id_factory=lambda: "x")
    assert normalize(framed(*sent), "bedrock", id_factory=lambda: "x").same_content(wrapped)
    assert left(wrapped) == {"p": "e", "metrics": {"latencyMs": 430}}
    assert [s[1] for s in segments(wrapped)] == [5 * next(iter(said.get("reasoningContent", said).values()))]


@pytest.mark.parametrize(
    ("sent", "word"),
    [
        ({"typing": {}}, "typing"),
        ({"type": "other"}, "other"),
        ({}, "no type"),
    ],
)
def test_an_unknown_event_is_named(sent: dict[str, Any], word: str) -> None:
    with pytest.raises(UnknownEventError, match=word):
        read(sent)


@pytest.mark.parametrize("second", [BEGIN, whole({"text": "Hi"})])
def test_a_second_message_is_an_error(second: dict[str, Any]) -> None:
    with pytest.raises(UnknownEventError, match="second message"):
        read(BEGIN, second, END)


@pytest.mark.parametrize(
    "event",
    [
        {"contentBlockDelta": []},
        {"contentBlockDelta": {"contentBlockIndex": -1, "delta": {"text": "x"}}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": 1}}},
        {"contentBlockDelta": {"contentBlockIndex": 0}},
        {"contentBlockStart": {"contentBlockIndex": 0, "start": "x"}},
        {"contentBlockStop": {"contentBlockIndex": "0"}},
        {"metadata": {"ResponseMetadata": {"RequestId": 1}}},
        {"metadata": {"trace": {"promptRouter": 1}}},
        whole({"toolUse": {"toolUseId": "t", "name": "f", "input": "x"}}),
        whole({"toolUse": {"toolUseId": 1, "name": "f", "input": {}}}),
        whole({"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": 1}}}),
        whole({"citationsContent": {"content": [{"text": 1}]}}),
        whole("text"),
        {"messageStop": 1},
        {"messageStop": {"stopReason": 1}},
    ],
)
def test_what_decides_the_answer_is_right_or_raises(event: Any) -> None:
    with pytest.raises(WireTypeError):
        read(event, END)


def test_the_place_of_what_raised_is_named() -> None:
    for event, place in (
        (piece(0, {"toolUse": {"input": 1}}), "contentBlockDelta.delta.toolUse.input"),
        (whole({"text": "A"}, {"text": 1}), "output.message.content[1].text"),
    ):
        with pytest.raises(WireTypeError) as caught:
            read(event)
        assert caught.value.place == f"event 1, {place}"


def noted(response: ChatResponse) -> set[str]:
    return {path for path, why in response.metadata.provenance.items() if why == "mistyped"}


@pytest.mark.parametrize(
    ("more", "paths"),
    [
        ({"metrics": {"latencyMs": "430"}}, {"metrics.latencyMs"}),
        ({"metrics": {"latencyMs": -1}}, {"metrics.latencyMs"}),
        ({"metrics": 430}, {"metrics"}),
        ({"usage": {"inputTokens": 1.5, "outputTokens": 2}}, {"usage.inputTokens"}),
        ({"usage": {"inputTokens": 1, "outputTokens": 2, "totalTokens": True}}, {"usage.totalTokens"}),
        ({"usage": {"outputTokens": 2, "serverToolUsage": 1}}, {"usage.serverToolUsage"}),
        ({"usage": 9}, {"usage"}),
        ({"trace": "t"}, {"trace"}),
        ({"trace": {"guardrail": 1}}, {"trace.guardrail"}),
        (
            {"trace": {"guardrail": {"inputAssessment": [], "outputAssessments": {"g": [1], "h": "x"}}}},
            {
                "trace.guardrail.inputAssessment",
                "trace.guardrail.outputAssessments.g[0]",
                "trace.guardrail.outputAssessments.h",
            },
        ),
        (
            {
                "trace": {
                    "guardrail": {
                        "inputAssessment": {
                            "g": {"topicPolicy": 1, "contentPolicy": {"filters": [2, {"action": 3}]}}
                        }
                    }
                }
            },
            {
                f"trace.guardrail.inputAssessment.g.{path}"
                for path in ("topicPolicy", "contentPolicy.filters[0]", "contentPolicy.filters[1].action")
            },
        ),
    ],
)
def test_a_side_field_of_another_type_costs_itself_alone(more: dict[str, Any], paths: set[str]) -> None:
    body = read({**whole({"text": "Hi"}), "usage": USAGE, **more})
    streamed = read(BEGIN, piece(0, {"text": "Hi"}), END, {"metadata": {"usage": USAGE, **more}})
    for response in (body, streamed):
        assert (response.text, response.finish_reason) == ("Hi", FinishReason.STOP)
        assert noted(response) == {f"metadata.extensions.{path}" for path in paths}
        kept = left(response)
        for path in paths:
            value, sent = kept, more
            for key in path.replace("[", ".").replace("]", "").split("."):
                step: Any = int(key) if key.isdigit() else key
                value, sent = value[step], sent[step]
            assert value == sent
    if "usage" not in more:
        assert body.usage == streamed.usage == UsageInfo(9, 12)


def test_a_finding_whose_words_are_mistyped_is_still_shown() -> None:
    filters = [{"type": 1, "confidence": 2, "action": "BLOCKED"}]
    trace = {"guardrail": {"inputAssessment": {"g": {"contentPolicy": {"filters": filters}}}}}
    response = read(whole({"text": "Hi"}, trace=trace))
    assert response.segments[-1].annotations == (SafetyAnnotation("filters", None, True),)
    assert left(response) == {"trace": trace}
    assert len(noted(response)) == 2


@pytest.mark.parametrize(
    ("item", "shown", "kept"),
    [
        (
            {"citationsContent": {"content": [{"text": "A"}], "citations": ["c", {"title": 1, "x": 2}]}},
            [("citation", "", {"x": 2}), ("text", "A", {})],
            {"citationsContent": {"citations": ["c", {"title": 1}]}},
        ),
        (
            {"citationsContent": {"content": [{"text": "A"}], "citations": {}}},
            [("text", "A", {})],
            {"citationsContent": {"citations": {}}},
        ),
        (
            {
                "citationsContent": {
                    "citations": [
                        {
                            "sourceContent": [{"text": "B"}, {"text": 1}, 2],
                            "location": {"web": {"url": 3, "domain": "d"}},
                            "source": "s",
                        }
                    ]
                }
            },
            [
                (
                    "citation",
                    "B",
                    {
                        "sourceContent": [{"text": "B"}, {}],
                        "location": {"web": {"domain": "d"}},
                        "source": "s",
                    },
                )
            ],
            {
                "citationsContent": {
                    "citations": [{"sourceContent": [{}, {"text": 1}, 2], "location": {"web": {"url": 3}}}]
                }
            },
        ),
        ({"image": 1}, [], {"image": 1}),
        (
            {"image": {"format": 1, "source": {"bytes": "iVBO"}}},
            [("media", "iVBO", {"kind": "image", "encoding": "base64"})],
            {"image": {"format": 1}},
        ),
        ({"video": {"source": "s"}}, [("media", "", {"kind": "video"})], {"video": {"source": "s"}}),
        (
            {"video": {"source": {"s3Location": {"uri": 1}}}},
            [("media", "", {"kind": "video"})],
            {"video": {"source": {"s3Location": {"uri": 1}}}},
        ),
        ({"toolResult": "r"}, [], {"toolResult": "r"}),
        (
            {"toolResult": {"toolUseId": 1, "content": "c", "status": "success"}},
            [("tool_call", "", {"type": "tool_result", "status": "success"})],
            {"toolResult": {"toolUseId": 1, "content": "c"}},
        ),
        (
            {"toolUse": {"toolUseId": 1, "name": "f", "type": "server_tool_use", "input": "i"}},
            [("tool_call", '"i"', {"name": "f", "type": "server_tool_use"})],
            {"toolUse": {"toolUseId": 1}},
        ),
    ],
)
def test_what_a_segment_cannot_say_stays(item: Any, shown: list[Any], kept: Any) -> None:
    response = read(whole(item, {"text": "."}))
    assert segments(response)[: len(shown)] == shown
    assert (response.text or "")[-1:] == "."
    assert content_left(response) == [kept, {}]
    assert noted(response)


def test_what_a_piece_cannot_say_stays_with_its_block() -> None:
    response = stream(
        piece(0, {"citation": {"title": 1}}), piece(0, {"toolResult": 2}), piece(0, {"text": "A"})
    )
    assert segments(response) == [("citation", "", {}), ("text", "A", {})]
    assert content_left(response) == [{"index": 0, "deltas": [{"citation": {"title": 1}}, {"toolResult": 2}]}]
    place = "metadata.extensions.output.message.content[0].deltas"
    assert noted(response) == {f"{place}[0].citation.title", f"{place}[1].toolResult"}


def test_what_came_before_an_error_is_kept_of_a_body_too() -> None:
    hidden = {"reasoningContent": {"reasoningText": {"text": "Hm."}}}
    for sent in (
        whole(hidden, {"text": "Hi"}, {"toolUse": {"toolUseId": 1}}),
        whole(hidden, {"text": "Hi"}, reason=5),  # type: ignore[arg-type]
        whole(hidden, {"text": "Hi"}, ResponseMetadata=1),
    ):
        with pytest.raises(WireTypeError) as caught:
            read(sent)
        assert caught.value.partial is not None
        assert [s[:2] for s in segments(caught.value.partial)[:2]] == [("reasoning", "Hm."), ("text", "Hi")]


def test_null_takes_nothing_back() -> None:
    said = {"additionalModelResponseFields": {"stop_sequence": "#"}, "serviceTier": {"type": "flex"}}
    response = read(
        BEGIN,
        piece(0, {"text": "Hi"}),
        {"messageStop": {"stopReason": "end_turn", **said}},
        {"messageStop": {"stopReason": None}},
        {"metadata": {"usage": USAGE, "metrics": {"latencyMs": 1}}},
        {"metadata": {"usage": None, "metrics": None, **dict.fromkeys(said)}},
    )
    assert (response.usage, response.raw_finish_reason) == (UsageInfo(9, 12), "end_turn")
    assert left(response) == {**said, "metrics": {"latencyMs": 1}}


# Section 4: how it ended.


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("end_turn", FinishReason.STOP),
        ("stop_sequence", FinishReason.STOP),
        ("max_tokens", FinishReason.LENGTH),
        ("model_context_window_exceeded", FinishReason.LENGTH),
        ("content_filtered", FinishReason.CONTENT_FILTER),
        ("guardrail_intervened", FinishReason.CONTENT_FILTER),
        ("malformed_model_output", FinishReason.ERROR),
        ("malformed_tool_use", FinishReason.ERROR),
        (None, FinishReason.ERROR),
    ],
)
def test_finish_reasons(word: str | None, reason: FinishReason) -> None:
    for response in (
        read(whole({"text": "Hi"}, reason=word)),
        read(BEGIN, piece(0, {"text": "Hi"}), {"messageStop": {"stopReason": word}}, METADATA),
    ):
        assert (response.finish_reason, response.raw_finish_reason) == (reason, word or "")
        assert response.text == "Hi"


def test_an_unknown_finish_word_is_named() -> None:
    with pytest.raises(UnknownFinishReasonError, match="tired"):
        read(whole({"text": "Hi"}, reason="tired"))


@pytest.mark.parametrize(
    ("after", "why"),
    [
        ((), "cut"),
        ((METADATA,), None),
        (({"metadata": {"metrics": {"latencyMs": 1}}},), "absent"),
        (({"throttlingException": {"message": "no"}},), "cut"),
    ],
)
def test_a_stream_without_what_follows_its_stop_is_cut(after: Any, why: str | None) -> None:
    sent = (BEGIN, piece(0, {"text": "Hi"}), END, *after)
    for response in (read(*sent), normalize(framed(*sent), "bedrock")):
        assert response.text == "Hi"
        assert response.metadata.provenance.get("usage") == why


def test_metadata_may_come_before_the_stop_and_a_body_is_never_cut() -> None:
    response = read(BEGIN, piece(0, {"text": "Hi"}), METADATA, END)
    assert response.usage == UsageInfo(9, 12)
    assert "usage" not in response.metadata.provenance
    bare = read(BEGIN, piece(0, {"text": "Hi"}), {"metadata": {}}, END)
    assert bare.metadata.provenance["usage"] == "absent"
    body = read({key: value for key, value in whole({"text": "Hi"}).items() if key != "usage"})
    assert body.metadata.provenance["usage"] == "absent"


# Section 5: usage.


@pytest.mark.parametrize(
    ("usage", "expected", "kept"),
    [
        (USAGE, UsageInfo(9, 12), {}),
        (
            {
                "inputTokens": 20,
                "outputTokens": 15,
                "totalTokens": 99,
                "cacheReadInputTokens": 60,
                "cacheWriteInputTokens": 4,
            },
            UsageInfo(84, 15, 60, None, 4),
            {},
        ),
        (
            {"inputTokens": 20, "outputTokens": 15, "totalTokens": 35, "cacheReadInputTokens": 60},
            UsageInfo(80, 15, 60),
            {"totalTokens": 35},
        ),
        (
            {
                "inputTokens": 12,
                "outputTokens": 13,
                "cacheReadInputTokenCount": 2,
                "cacheWriteInputTokenCount": 0,
            },
            UsageInfo(14, 13, 2, None, 0),
            {},
        ),
        (
            {"inputTokens": 1, "outputTokens": 1, "cacheReadInputTokens": 2, "cacheReadInputTokenCount": 3},
            UsageInfo(3, 1, 2),
            {"cacheReadInputTokenCount": 3},
        ),
        ({"inputTokens": 1, "serverToolUsage": {}}, UsageInfo(1, 0), {}),
        ({"cacheReadInputTokens": 2}, UsageInfo(0, 0, 2), {}),
    ],
)
def test_the_prompt_includes_what_the_cache_had_and_got(
    usage: dict[str, Any], expected: UsageInfo, kept: dict[str, Any]
) -> None:
    response = read({**whole({"text": "Hi"}), "usage": usage})
    assert response.usage == expected
    assert left(response) == ({"usage": kept} if kept else {})


def test_a_count_that_was_not_sent_is_marked() -> None:
    provenance = read({**whole({"text": "Hi"}), "usage": {"outputTokens": 3}}).metadata.provenance
    assert provenance["usage.prompt_tokens"] == "absent"
    assert "usage.completion_tokens" not in provenance
    assert read({**whole(), "usage": {"totalTokens": 3}}).metadata.provenance["usage"] == "absent"
    assert read({**whole(), "usage": {}}).metadata.provenance["usage"] == "absent"


# Section 7: errors.

EXCEPTIONS = [
    ("validationException", ErrorKind.INVALID_REQUEST, False),
    ("throttlingException", ErrorKind.RATE_LIMIT, True),
    ("internalServerException", ErrorKind.SERVER, True),
    ("serviceUnavailableException", ErrorKind.SERVER, True),
    ("modelStreamErrorException", ErrorKind.SERVER, True),
    ("modelTimeoutException", ErrorKind.TIMEOUT, True),
    ("accessDeniedException", ErrorKind.PERMISSION, False),
]


@pytest.mark.parametrize(("name", "kind", "retryable"), EXCEPTIONS)
def test_an_exception_in_a_stream_keeps_what_came_before(name: str, kind: ErrorKind, retryable: bool) -> None:
    said = {"message": "it broke", "originalStatusCode": 500}
    before = (BEGIN, piece(0, {"text": "Hal"}))
    for response in (
        read(*before, {name: said}),
        read(*before, {"error": {"type": name, **said}}),
        normalize(framed(*before, {name: said}), "bedrock"),
    ):
        assert (response.text, response.finish_reason) == ("Hal", FinishReason.ERROR)
        error = response.segments[-1]
        assert error.type is SegmentType.ERROR
        about = error.metadata.thawed()
        assert (error.content, about["kind"], about["retryable"]) == ("it broke", kind.value, retryable)
        assert about["code"] == name
        assert about["raw"]["originalStatusCode"] == 500
    assert left(read(*before, {name: said, "p": "abc"})) == {"p": "abc"}


@pytest.mark.parametrize(
    ("status", "body", "kind", "retryable"),
    [
        (429, {"message": "Too many requests, please wait before trying again."}, ErrorKind.RATE_LIMIT, True),
        (
            429,
            {"message": "Too many tokens, please wait before trying again.", "__type": "ThrottlingException"},
            ErrorKind.RATE_LIMIT,
            True,
        ),
        (403, {"Message": "User is not authorized"}, ErrorKind.PERMISSION, False),
        (
            403,
            {"message": "The security token included in the request is expired"},
            ErrorKind.AUTHENTICATION,
            False,
        ),
        (400, {"message": "The provided model identifier is invalid."}, ErrorKind.MODEL_UNAVAILABLE, False),
        (400, {"message": "Input is too long for requested model."}, ErrorKind.CONTEXT_OVERFLOW, False),
        (
            400,
            {"message": "maximum context length is 5", "__type": "ValidationException"},
            ErrorKind.CONTEXT_OVERFLOW,
            False,
        ),
        (
            400,
            {"message": "bad", "__type": "com.amazon#ThrottlingException:http://x"},
            ErrorKind.RATE_LIMIT,
            True,
        ),
        (503, "<html><body>busy</body></html>", ErrorKind.SERVER, True),
        (500, {}, ErrorKind.SERVER, True),
        (400, [], ErrorKind.INVALID_REQUEST, False),
        (400, {"message": {"message": "x"}}, ErrorKind.INVALID_REQUEST, False),
    ],
)
def test_http_errors(status: int, body: Any, kind: ErrorKind, retryable: bool) -> None:
    sent = body.encode() if isinstance(body, str) else orjson.dumps(body)
    response = normalize(sent, "bedrock", status=status)
    about = response.segments[-1].metadata
    assert (about["kind"], about["retryable"], about["status"]) == (kind.value, retryable, status)


def test_an_error_body_whose_status_nobody_kept_is_an_error() -> None:
    response = read({"message": "The provided model identifier is invalid."})
    assert response.finish_reason is FinishReason.ERROR


# Section 8: what a guardrail found.


def test_a_guardrail_is_shown_and_its_trace_stays() -> None:
    trace = {
        "guardrail": {
            "inputAssessment": {
                "g": {
                    "wordPolicy": {"customWords": [{"match": "x", "action": "BLOCKED"}]},
                    "contentPolicy": {"filters": [{"type": "HATE", "confidence": "LOW", "action": "NONE"}]},
                }
            },
            "outputAssessments": {
                "g": [
                    {
                        "contentPolicy": {
                            "filters": [{"type": "INSULTS", "confidence": "HIGH", "action": "BLOCKED"}]
                        }
                    },
                    {
                        "sensitiveInformationPolicy": {
                            "piiEntities": [{"type": "NAME", "action": "ANONYMIZED"}]
                        }
                    },
                ]
            },
        }
    }
    body = read(whole({"text": "No."}, reason="guardrail_intervened", trace=trace))
    end = {"metadata": {"usage": USAGE, "trace": trace}}
    streamed = read(
        BEGIN, piece(0, {"text": "No."}), {"messageStop": {"stopReason": "guardrail_intervened"}}, end
    )
    for response in (body, streamed):
        assert [(s.metadata.thawed(), s.annotations) for s in response.segments[1:]] == [
            ({"of": "prompt"}, (SafetyAnnotation("customWords", None, True),)),
            (
                {"of": "answer"},
                (SafetyAnnotation("INSULTS", "HIGH", True), SafetyAnnotation("NAME", None, False)),
            ),
        ]
        assert left(response) == {"trace": trace}


# Detection.


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (whole({"text": "Hi"}), Recognition.CERTAIN),
        (BEGIN, Recognition.CERTAIN),
        (METADATA, Recognition.CERTAIN),
        (stop(1), Recognition.CERTAIN),
        (stop(1)["contentBlockStop"], Recognition.CERTAIN),
        ({"throttlingException": {}}, Recognition.CERTAIN),
        ({"message": "no"}, Recognition.POSSIBLE),
        ({"Message": "no"}, Recognition.POSSIBLE),
        ({"metadata": {"user": 1}}, Recognition.NO),
        ({"output": [{"type": "message"}]}, Recognition.NO),
        ([], Recognition.NO),
    ],
)
def test_recognition(event: Any, expected: Recognition) -> None:
    assert plugin.recognizes(event) is expected


@pytest.mark.parametrize("kind", [["server_tool_use"], {"type": "server_tool_use"}, 5])
def test_whose_call_it_is_decides(kind: Any) -> None:
    """A type that is not text does not turn the server's call into one of the client's."""
    use = {"toolUseId": "t", "name": "nova_grounding", "type": kind, "input": {}}
    with pytest.raises(WireTypeError) as caught:
        read(whole({"text": "Hi"}, {"toolUse": use}))
    assert caught.value.partial is not None
    assert caught.value.partial.text == "Hi"
    assert not caught.value.partial.tool_calls


PDF = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}
FOUND = {"type": "search_result", "title": "Tides", "source": "https://sea.example", "content": [{"type": "text", "text": "It rises."}]}  # fmt: skip
CITED = {"citations": {"enabled": True}}
HELLO = {"type": "text", "text": "Hello"}


def of_claude(
    *blocks: dict[str, Any], model: str = "anthropic.claude-sonnet-4-5", result: bool = False
) -> Any:
    """What Converse gets of *blocks* of Messages."""
    turns: list[dict[str, Any]] = [{"role": "user", "content": [*blocks]}]
    if result:
        call = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
        output = {"type": "tool_result", "tool_use_id": "c", "content": [*blocks]}
        turns = [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [output]},
        ]
    body = {"model": model, "max_tokens": 9, "messages": turns}
    return build_http_request(read_request(body, "anthropic").request, "bedrock", on_unsupported="drop")


def text_document(**more: Any) -> dict[str, Any]:
    return {
        "type": "document",
        "source": {"type": "text", "media_type": "text/plain", "data": "The tide."},
        **more,
    }


@pytest.mark.parametrize(
    ("block", "wanted"),
    [
        (
            {"type": "document", "source": PDF, "title": "Tides.pdf", "context": "Of 1923.", **CITED},
            {"document": {"format": "pdf", "name": "Tides pdf", "source": {"bytes": "JVBERi0="}, "context": "Of 1923.", **CITED}},
        ),
        (
            text_document(title="Tides", context="Of 1923.", **CITED),
            {"document": {"format": "txt", "name": "Tides", "source": {"text": "The tide."}, "context": "Of 1923.", **CITED}},
        ),
        (text_document(**CITED), {"document": {"format": "txt", "name": "file", "source": {"text": "The tide."}, **CITED}}),
        (FOUND, {"text": "Tides\nhttps://sea.example\n\nIt rises."}),
        ({**FOUND, **CITED}, {"searchResult": {"source": "https://sea.example", "title": "Tides", "content": [{"text": "It rises."}], **CITED}}),
    ],
)  # fmt: skip
def test_documents_and_search_results_that_are_cited_go_as_they_are(block: Any, wanted: Any) -> None:
    built = of_claude(block, HELLO)
    assert built.body["messages"][0]["content"] == [wanted, {"text": "Hello"}]
    assert built.dropped == ()
    result = of_claude(block, result=True)
    assert result.body["messages"][2]["content"][0]["toolResult"]["content"] == [wanted]
    assert result.dropped == ()


@pytest.mark.parametrize(
    ("blocks", "model", "text", "dropped"),
    [
        # other models are not known to take them, and a document needs a text beside it
        ([text_document(title="Tides"), HELLO], "amazon.nova-pro-v1:0", "Tides\n\nThe tide.", []),
        ([FOUND, HELLO], "amazon.nova-pro-v1:0", "Tides\nhttps://sea.example\n\nIt rises.", []),
        ([text_document(title="Tides")], "anthropic.claude-x", "Tides\n\nThe tide.", []),
        ([text_document(title="Tides"), FOUND], "anthropic.claude-x", "Tides\n\nThe tide.", []),
        ([text_document(**CITED)], "anthropic.claude-x", "The tide.", ["messages[0].content[0].citations"]),
        (
            [text_document(**CITED), {"type": "document", "source": PDF, **CITED}],
            "anthropic.claude-x",
            "The tide.",
            ["messages[0].content[0].citations"],
        ),
        ([{**FOUND, "content": [*FOUND["content"], HELLO]}, HELLO], "anthropic.claude-x", "Tides\nhttps://sea.example\n\nIt rises.\n\nHello", []),
    ],
)  # fmt: skip
def test_they_are_told_as_text_where_they_would_be_refused(
    blocks: Any, model: str, text: str, dropped: list[str]
) -> None:
    built = of_claude(*blocks, model=model)
    assert built.body["messages"][0]["content"][0] == {"text": text}
    assert [one.field for one in built.dropped] == dropped


def test_other_servers_have_no_place_for_what_is_said_of_a_document() -> None:
    block = {"type": "document", "source": PDF, "context": "Of 1923.", **CITED}
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": [block, HELLO]}]}
    built = build_http_request(read_request(body, "anthropic").request, "openai", on_unsupported="drop")
    assert {one.field for one in built.dropped} == {
        "messages[0].content[0].context",
        "messages[0].content[0].citations",
    }


def change(word: str, **more: Any) -> dict[str, Any]:
    return {"type": word, "tool": {"type": "tool_reference", "name": "look"}, **more}


ADDED, REMOVED = ({word: {"tool": {"name": "look"}}} for word in ("toolAddition", "toolRemoval"))
ASKED = {"role": "user", "content": [{"text": "Hello"}]}
DATED = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
OF_SERVER = {
    "type": "tool_addition",
    "tool": {"type": "mcp_tool_reference", "server_name": "s", "name": "look"},
}


@pytest.mark.parametrize(
    ("turns", "wanted"),
    [
        # the system speaks behind a message of the user, and never first
        ([{"role": "user", "content": [change("tool_addition"), HELLO]}], [ASKED, {"role": "system", "content": [ADDED]}]),
        (
            [{"role": "user", "content": "Hello"}, {"role": "system", "content": [change("tool_removal"), change("tool_addition", **DATED)]}],
            [ASKED, {"role": "system", "content": [REMOVED, ADDED, {"cachePoint": {"type": "default", "ttl": "1h"}}]}],
        ),
        (
            [{"role": "system", "content": [change("tool_removal")]}, {"role": "user", "content": [HELLO]}],
            [ASKED, {"role": "system", "content": [REMOVED]}],
        ),
        (  # nor between a call and its result
            [
                {"role": "user", "content": [HELLO]},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
                {"role": "user", "content": [change("tool_removal"), {"type": "tool_result", "tool_use_id": "c", "content": "1"}, HELLO]},
            ],
            [
                ASKED,
                {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c", "name": "f", "input": {}}}]},
                {"role": "user", "content": [{"toolResult": {"toolUseId": "c", "content": [{"text": "1"}]}}, {"text": "Hello"}]},
                {"role": "system", "content": [REMOVED]},
            ],
        ),
    ],
)  # fmt: skip
def test_tools_are_added_and_removed_by_the_system_behind_the_user(turns: Any, wanted: Any) -> None:
    body = {"model": "anthropic.claude-x", "max_tokens": 9, "messages": turns}
    built = build_http_request(read_request(body, "anthropic").request, "bedrock", on_unsupported="raise")
    assert built.body["messages"] == wanted
    assert not built.dropped


@pytest.mark.parametrize(
    "block",
    [
        OF_SERVER,
        {"type": "tool_addition"},
        {"type": "tool_removal", "tool": "look"},
        {"type": "tool_removal", "tool": {"type": "tool_reference"}},
        change("tool_addition", cache_control={"type": "forever"}),
    ],
)
def test_a_change_of_other_tools_is_named(block: Any) -> None:
    """Converse declares no MCP servers, so it has no tool of one."""
    built = of_claude(block, HELLO)
    assert built.body["messages"] == [ASKED]
    assert [(one.field, one.reason) for one in built.dropped] == [
        ("messages[0].content[0]", "Converse has no such value")
    ]


def test_a_document_is_cited_beside_a_text_that_changes_tools() -> None:
    built = of_claude(text_document(**CITED), HELLO, change("tool_addition"))
    document = {"format": "txt", "name": "file", "source": {"text": "The tide."}, **CITED}
    assert built.body["messages"] == [
        {"role": "user", "content": [{"document": document}, {"text": "Hello"}]},
        {"role": "system", "content": [ADDED]},
    ]
    assert not built.dropped
