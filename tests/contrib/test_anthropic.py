"""Anthropic's Messages dialect: the fact sheet as tables, and the conformance kit over captures (see their manifest)."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from crosswalk import (
    ChatResponse,
    CitationRef,
    CrosswalkError,
    ErrorKind,
    FinishReason,
    IncompleteStreamError,
    MappingError,
    Provenance,
    SafetyAnnotation,
    Segment,
    SegmentType,
    TrailingContentError,
    UnknownEventError,
    UsageInfo,
    WireTypeError,
    normalize,
)
from crosswalk.mapping.reader import Reader, ReaderOptions
from crosswalk.plugin.registry import registry
from crosswalk.plugins import DialectFamily, MappingState, Recognition, UsageDetails
from crosswalk.testing import ProviderConformance
from crosswalk_anthropic import AnthropicDialect, CompletionsDialect, HostedMessages, plugin

T = SegmentType


class TestAnthropic(ProviderConformance):
    provider = "anthropic"
    captures = "../captures/anthropic"
    snapshots = "../../snapshots"


# Short ways to write the wire.


def body(*content: Any, reason: Any = "end_turn", usage: Any = None, **more: Any) -> dict[str, Any]:
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": list(content)} | {
        "stop_reason": reason,
        "usage": usage or {"input_tokens": 3, "output_tokens": 4},
        **more,
    }


def start(usage: Any = None, content: Any = (), **more: Any) -> dict[str, Any]:
    message = body(*content, reason=None, usage=usage or {"input_tokens": 3, "output_tokens": 0}, **more)
    return {"type": "message_start", "message": message}


def opened(index: Any, /, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def piece(index: Any, kind: str, /, **delta: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **delta}}


def closed(index: Any) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def ending(reason: Any = "end_turn", usage: Any = None, **delta: Any) -> dict[str, Any]:
    more = {} if usage is None else {"usage": usage}
    return {"type": "message_delta", "delta": {"stop_reason": reason, **delta}, **more}


STOP = {"type": "message_stop"}
TOOL = {"type": "tool_use", "id": "toolu_1", "name": "moon"}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search"}
CITED = {"type": "char_location", "cited_text": "blue", "document_index": 0, "document_title": "Sky"}


def sse(*events: Any, names: bool = True) -> bytes:
    return b"".join(
        (b"event: %b\n" % str(event.get("type")).encode() if names else b"")
        + b"data: %b\n\n" % orjson.dumps(event)
        for event in events
    )


def read(*events: Any, names: bool = True, **options: Any) -> ChatResponse:
    return normalize(sse(*events, names=names), "anthropic", **options)


def one(payload: Any, **options: Any) -> ChatResponse:
    return normalize(payload, "anthropic", **options)


def parts(response: ChatResponse) -> list[tuple[str, str, dict[str, Any]]]:
    return [(s.type.value, s.content, s.metadata.thawed()) for s in response.segments]


def failing(*events: Any, names: bool = True, **options: Any) -> MappingError:
    with pytest.raises(MappingError) as caught:
        read(*events, names=names, **options)
    return caught.value


# Section 2.1: content blocks, whole and streamed, what they become and what is left of them.
BLOCKS: list[tuple[str, dict[str, Any], list[Any], list[Any], dict[str, Any]]] = [
    ("text", {"type": "text", "text": "Hi"}, [("text_delta", "text", "Hi")], [("text", "Hi", {})], {}),
    ("text without any", {"type": "text", "text": ""}, [], [], {}),
    (
        "text without citations",
        {"type": "text", "text": "Hi", "citations": None},
        [],
        [("text", "Hi", {})],
        {},
    ),
    (
        "cited text",
        {"type": "text", "text": "Blue.", "citations": [CITED]},
        [("citations_delta", "citation", CITED), ("text_delta", "text", "Blue.")],
        [
            ("citation", "blue", {"type": "char_location", "document_index": 0, "document_title": "Sky"}),
            ("text", "Blue.", {}),
        ],
        {},
    ),
    (
        "thinking",
        {"type": "thinking", "thinking": "Hm.", "signature": "EqQB=="},
        [("thinking_delta", "thinking", "Hm."), ("signature_delta", "signature", "EqQB==")],
        [("reasoning", "Hm.", {"signature": "EqQB=="})],
        {},
    ),
    (
        "hidden thinking",
        {"type": "thinking", "thinking": "", "signature": "EqQB=="},
        [("signature_delta", "signature", "EqQB==")],
        [("reasoning", "", {"signature": "EqQB=="})],
        {},
    ),
    (
        "thinking of a server that signs nothing",
        {"type": "thinking", "thinking": "Hm.", "signature": ""},
        [("thinking_delta", "thinking", "Hm.")],
        [("reasoning", "Hm.", {})],
        {},
    ),
    (
        "redacted thinking",
        {"type": "redacted_thinking", "data": "Eq+/=="},
        [],
        [("reasoning", "", {"encrypted": "Eq+/=="})],
        {},
    ),
    (
        "tool call",
        {**TOOL, "input": {"day": 1}},
        [("input_json_delta", "partial_json", ""), ("input_json_delta", "partial_json", '{"day":1}')],
        [("tool_call", '{"day":1}', {"id": "toolu_1", "name": "moon"})],
        {},
    ),
    (
        "tool call without arguments",
        {**TOOL, "input": {}},
        [],
        [("tool_call", "{}", {"id": "toolu_1", "name": "moon"})],
        {},
    ),
    ("tool call without input", TOOL, [], [("tool_call", "{}", {"id": "toolu_1", "name": "moon"})], {}),
    (
        "tool call of a program",
        {**TOOL, "input": {}, "caller": {"type": "code_execution_20250825", "tool_id": "s"}},
        [("input_json_delta", "partial_json", "{}")],
        [
            (
                "tool_call",
                "{}",
                {
                    "id": "toolu_1",
                    "name": "moon",
                    "caller": {"type": "code_execution_20250825", "tool_id": "s"},
                },
            )
        ],
        {},
    ),
    (
        "tool call with more",
        {**TOOL, "input": {}, "toolset_name": "sky", "caller": None, "index": 7},
        [],
        [("tool_call", "{}", {"id": "toolu_1", "name": "moon", "toolset_name": "sky", "index": 7})],
        {},
    ),
    (
        "call of a server's tool",
        {**SEARCH, "input": {"query": "sky"}},
        [("input_json_delta", "partial_json", '{"query"'), ("input_json_delta", "partial_json", ':"sky"}')],
        [("tool_call", '{"query":"sky"}', SEARCH)],
        {},
    ),
    (
        "its result",
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": [{"encrypted_content": "zz=="}],
        },
        [],
        [
            (
                "tool_call",
                "",
                {
                    "type": "web_search_tool_result",
                    "tool_use_id": "srvtoolu_1",
                    "content": [{"encrypted_content": "zz=="}],
                },
            )
        ],
        {},
    ),
    (
        "file",
        {"type": "container_upload", "file_id": "file_1"},
        [],
        [("media", "", {"type": "container_upload", "file_id": "file_1"})],
        {},
    ),
    (
        "fallback",
        {"type": "fallback", "from": {"model": "a"}},
        [],
        [],
        {"type": "fallback", "from": {"model": "a"}},
    ),
    ("unknown", {"type": "new", "text": "?"}, [], [], {"type": "new", "text": "?"}),
    (
        "text with more",
        {"type": "text", "text": "Hi", "lang": "en"},
        [],
        [("text", "Hi", {})],
        {"lang": "en"},
    ),
]


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("block", "said", "left"), [b[1:2] + b[3:] for b in BLOCKS], ids=[b[0] for b in BLOCKS]
)
def test_block_whole(block: dict[str, Any], said: list[Any], left: dict[str, Any]) -> None:
    response = one(body(block))
    assert parts(response) == said
    assert response.metadata.extensions.thawed() == ({"content": [left]} if left else {})
    assert response.finish_reason == ("tool_calls" if block["type"] == "tool_use" else "stop")


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("block", "pieces", "said", "left"), [b[1:] for b in BLOCKS], ids=[b[0] for b in BLOCKS]
)
def test_block_streamed(
    block: dict[str, Any], pieces: list[Any], said: list[Any], left: dict[str, Any]
) -> None:
    empty: dict[str, dict[str, Any]] = {
        "text_delta": {"text": ""},
        "thinking_delta": {"thinking": ""},
        "signature_delta": {"signature": ""},
        "citations_delta": {"citations": []},
        "input_json_delta": {"input": {}},
    }
    first = {**block}
    for kind, *_ in pieces:
        first |= empty[kind]
    deltas = [piece(0, kind, **{name: value}) for kind, name, value in pieces]
    response = read(start(), opened(0, **first), *deltas, closed(0), ending(), STOP)
    assert parts(response) == said
    assert response.metadata.extensions.thawed() == ({"content": [{"index": 0, **left}]} if left else {})


def test_a_blocks_rest_keeps_its_place() -> None:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": "a"}, {"type": "text", "text": "b", "x": 1}]
    assert one(body(*blocks)).metadata.extensions["content"] == ({}, {"x": 1})
    streamed = read(start(), *[opened(n, **b) for n, b in enumerate(blocks)], ending(), STOP)
    assert streamed.metadata.extensions["content"] == ({"index": 1, "x": 1},)
    first = read(start(content=[*blocks, {"type": "text", "text": "c", "index": 7}]), ending(), STOP)
    assert first.metadata.extensions["content"] == ({"index": 1, "x": 1}, {"index": 7})
    odd = read(start(), opened(0, type="text", text="a", index=7), ending(), STOP)
    assert odd.metadata.extensions["content"] == ({"index": 0, "content_block": {"index": 7}},)
    more = read(start(), opened(0, type="text"), piece(0, "text_delta", text="a", index=7), ending(), STOP)
    assert more.metadata.extensions["content"] == ({"index": 0, "delta": {"index": 7}},)


def test_pieces_of_a_block_that_means_nothing_are_kept() -> None:
    response = read(
        start(),
        opened(0, type="compaction", content=None),
        piece(0, "compaction_delta", content="So far.", encrypted_content="zz=="),
        closed(0),
        ending("compaction"),
        STOP,
    )
    expected = {"index": 0, "type": "compaction", "content": "So far.", "encrypted_content": "zz=="}
    assert response.metadata.extensions["content"] == (expected,)
    other = read(start(), opened(0, type="new"), piece(0, "text_delta", text="?"), ending(), STOP)
    delta = {"type": "text_delta", "text": "?"}
    assert other.metadata.extensions["content"] == ({"index": 0, "type": "new", "delta": delta},)
    assert response.metadata.provenance["finish_reason"] is Provenance.DERIVED


@pytest.mark.parametrize(
    ("citation", "source"),
    [
        ({"url": "https://a.test", "title": "A", "encrypted_index": "e"}, "https://a.test"),
        ({"source": "kb:1", "title": "A"}, "kb:1"),
        ({"file_id": "file_1", "document_title": None}, "file_1"),
        ({"document_title": "Doc", "document_index": 0}, "Doc"),
        ({"title": "Only"}, "Only"),
        ({"document_index": 0}, None),
    ],
)
def test_citations(citation: dict[str, Any], source: str | None) -> None:
    response = one(body({"type": "text", "text": "It is.", "citations": [citation]}))
    assert response.segments[0] == Segment(T.CITATION, "", citation, (CitationRef(source=source),))
    assert response.text == "It is."


def test_hidden_reasoning_never_joins_another_blocks_text() -> None:
    """Each block is sent back as it came: what is encrypted does not sign the reasoning before it."""
    thinking = {"type": "thinking", "thinking": "Hm."}
    hidden = {"type": "redacted_thinking", "data": "Eq+/=="}
    whole = one(body(thinking, hidden))
    streamed = read(start(), opened(0, **thinking), closed(0), opened(1, **hidden), closed(1), ending(), STOP)
    for response in (whole, streamed):
        assert parts(response) == [("reasoning", "Hm.", {}), ("reasoning", "", {"encrypted": "Eq+/=="})]


def test_blocks_may_be_open_at_once() -> None:
    """llama.cpp stops all blocks at the end. Gaps and missing indexes happen too."""
    response = read(
        start(),
        opened(0, type="thinking", thinking=""),
        opened(1, type="text", text=""),
        piece(1, "text_delta", text="Hi"),
        piece(0, "thinking_delta", thinking="Hm"),
        opened(4, **TOOL),
        opened(5, **{**TOOL, "id": "toolu_2"}),
        piece(5, "input_json_delta", partial_json='{"b":2}'),
        piece(4, "input_json_delta", partial_json='{"a":1}'),
        closed(0),
        closed(1),
        closed(4),
        closed(5),
        ending("tool_use"),
        STOP,
    )
    assert (response.text, response.reasoning) == ("Hi", "Hm")
    assert [call.arguments for call in response.tool_calls] == ['{"a":1}', '{"b":2}']
    assert response.metadata.extensions["index"] == 4, "what the order does not tell is kept"


def test_a_block_may_lack_its_start_or_index() -> None:
    response = read(
        start(),
        piece(3, "text_delta", text="a"),
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "b"}},
        {"type": "content_block_stop"},
        {"type": "content_block_start", "content_block": TOOL},
        {"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": "{}"}},
        ending(),
        STOP,
    )
    assert response.text == "ab"
    assert response.tool_calls[0].name == "moon"
    assert response.finish_reason is FinishReason.TOOL_CALLS, "whatever the word (section 4)"
    assert read({"type": "content_block_stop", "index": 2}, ending(), STOP).metadata.extensions["index"] == 2
    lazy = read({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "b"}}, ending(), STOP)
    assert lazy.text == "b"


def test_whole_input_in_the_start_is_not_added_to() -> None:
    response = read(
        start(),
        opened(0, **TOOL, input={"day": 1}),
        piece(0, "input_json_delta", partial_json='{"day":2}'),
        closed(0),
        ending("tool_use"),
        STOP,
    )
    assert response.tool_calls[0].parsed() == {"day": 1}
    extra = {"index": 0, "delta": {"partial_json": '{"day":2}'}}
    assert response.metadata.extensions["content"] == (extra,)


def test_the_start_may_have_the_whole_message() -> None:
    first = start(content=[{**TOOL, "input": {"a": 1}, "caller": {"type": "direct"}}], container={"id": "c"})
    first["message"]["stop_reason"] = "tool_use"
    response = read(first, STOP)
    assert response.tool_calls[0].parsed() == {"a": 1}
    assert response.raw_finish_reason == "tool_use"
    assert response.segments[0].metadata["caller"] == {"type": "direct"}
    assert response.metadata.extensions.thawed() == {"container": {"id": "c"}}


@pytest.mark.parametrize(
    "after",
    [
        [ending("pause_turn"), STOP],
        [STOP],
        [{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}],
    ],
)
def test_a_servers_call_that_never_stopped_is_shown(after: list[Any]) -> None:
    events = [
        start(),
        opened(0, **SEARCH, input={}),
        piece(0, "input_json_delta", partial_json='{"que'),
        *after,
    ]
    assert parts(read(*events))[0] == ("tool_call", '{"que', SEARCH)


# Section 4: stop reasons.


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("pause_turn", "stop"),
        ("refusal", "content_filter"),
        ("compaction", "stop"),
        (None, "error"),
    ],
)
def test_stop_reasons(word: str | None, reason: str) -> None:
    text = {"type": "text", "text": "Hi"}
    for response in (one(body(text, reason=word)), read(start(), opened(0, **text), ending(word), STOP)):
        assert response.finish_reason == reason
        assert response.raw_finish_reason == (word or "")
        derived = word in ("pause_turn", "compaction", None)
        assert ("finish_reason" in response.metadata.provenance) is derived


def test_precedence() -> None:
    call = {**TOOL, "input": {}}
    assert one(body(call, reason="end_turn")).finish_reason is FinishReason.TOOL_CALLS
    assert one(body(call, reason="max_tokens")).finish_reason is FinishReason.LENGTH
    assert one(body(call, reason="refusal")).finish_reason is FinishReason.CONTENT_FILTER
    none = one(body({"type": "text", "text": "Hi"}, reason="tool_use"))
    assert (none.finish_reason, none.raw_finish_reason) == (FinishReason.TOOL_CALLS, "tool_use")


def test_the_first_stop_reason_counts() -> None:
    response = read(start(), ending(None), ending("max_tokens"), ending("end_turn"), STOP)
    assert response.raw_finish_reason == "max_tokens"
    assert response.metadata.extensions["stop_reason"] == "end_turn"


REFUSAL = {"type": "refusal", "category": "cyber", "explanation": "Declined."}


@pytest.mark.parametrize(
    ("details", "segment", "refusal", "left"),
    [
        (
            REFUSAL,
            Segment(
                T.REFUSAL,
                "Declined.",
                {"type": "refusal", "category": "cyber"},
                (SafetyAnnotation("cyber", None, True),),
            ),
            "Declined.",
            {},
        ),
        (
            {**REFUSAL, "explanation": None, "recommended_model": "claude-y"},
            Segment(
                T.SAFETY,
                "",
                {"type": "refusal", "category": "cyber", "recommended_model": "claude-y"},
                (SafetyAnnotation("cyber", None, True),),
            ),
            None,
            {},
        ),
        (
            {"type": "refusal", "category": None, "explanation": None},
            Segment(T.SAFETY, "", {"type": "refusal", "category": None}),
            None,
            {},
        ),
        ({"type": "other", "why": "?"}, None, None, {"stop_details": {"type": "other", "why": "?"}}),
        (None, None, None, {}),
    ],
)
def test_refusals(details: Any, segment: Segment | None, refusal: str | None, left: dict[str, Any]) -> None:
    whole = one(body(reason="refusal", stop_details=details))
    streamed = read(start(), ending("refusal", stop_details=details), STOP)
    for response in (whole, streamed):
        assert response.segments == (() if segment is None else (segment,))
        assert response.refusal == refusal
        assert response.finish_reason is FinishReason.CONTENT_FILTER
        assert response.metadata.extensions.thawed() == left


# Section 5: usage.

FULL = {
    "input_tokens": 12,
    "cache_creation_input_tokens": 4,
    "cache_read_input_tokens": 100,
    "output_tokens": 2,
}


@pytest.mark.parametrize(
    ("first", "later", "usage", "absent"),
    [
        ({"input_tokens": 12, "output_tokens": 2}, {"output_tokens": 31}, UsageInfo(12, 31), []),
        (FULL, {"output_tokens": 31}, UsageInfo(116, 31, 100, None, 4), []),
        (FULL, {"output_tokens": 31, "input_tokens": None}, UsageInfo(116, 31, 100, None, 4), []),
        (FULL, {"input_tokens": 500, "output_tokens": 31}, UsageInfo(604, 31, 100, None, 4), []),
        (
            {"input_tokens": 116, "output_tokens": 0},
            {"input_tokens": 16, "cache_read_input_tokens": 100, "output_tokens": 9},
            UsageInfo(116, 9, 100),
            [],
        ),
        (
            FULL,
            {"output_tokens": 31, "output_tokens_details": {"thinking_tokens": 20}},
            UsageInfo(116, 31, 100, 20, 4),
            [],
        ),
        (FULL, {"service_tier": "standard"}, UsageInfo(116, 2, 100, None, 4), []),
        ({"cache_read_input_tokens": 5}, {"output_tokens": 1}, UsageInfo(0, 1, 5), ["prompt", "total"]),
        ({"input_tokens": 5}, {"speed": "fast"}, UsageInfo(5, 0), ["completion", "total"]),
        ({"input_tokens": 5, "output_tokens": 1}, None, UsageInfo(5, 1), []),
        (
            {"input_tokens": -1, "output_tokens": 2},
            {"output_tokens": "9"},
            UsageInfo(0, 2),
            ["prompt", "total"],
        ),
        ({"speed": "fast"}, {"speed": "fast"}, UsageInfo.EMPTY, [""]),
    ],
)
def test_usage_is_cumulative(first: Any, later: Any, usage: UsageInfo, absent: list[str]) -> None:
    response = read(start(usage=first), ending(usage=later), STOP)
    assert response.usage == usage
    provenance = response.metadata.provenance
    assert [path for path in provenance if path.startswith("usage")] == [
        f"usage.{part}_tokens" if part else "usage" for part in absent
    ]


def test_details_survive_a_repeated_start_and_a_later_report() -> None:
    """The start of a message counts writes to the cache, its end what the server's tools did."""
    counts = {**FULL, "cache_creation": {"ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 0}}
    events = [
        start(usage=counts),
        start(usage=counts),
        start(usage=FULL),
        opened(0, type="text", text="Hi"),
        closed(0),
        ending(usage={"output_tokens": 2, "server_tool_use": {"web_search_requests": 1}}),
        STOP,
    ]
    response = read(*events)
    parts = UsageDetails(cache_write_5m_tokens=4, cache_write_1h_tokens=0, web_search_requests=1)
    assert response.usage.details == parts
    assert "usage" not in response.metadata.extensions


# Section 3: the stream.


def test_the_end_is_a_stop_reason_or_message_stop() -> None:
    """Once the reason is there, nothing is missing but an empty event. Without a reason it ends in failure."""
    events = [start(), opened(0, type="text", text="Hi"), closed(0), ending("max_tokens")]
    assert read(*events).same_content(read(*events, STOP))
    assert isinstance(failing(*events[:-1]), IncompleteStreamError)
    assert isinstance(failing(*events[:-1], ending(None)), IncompleteStreamError)
    assert read(*events[:-1], ending(None), STOP).finish_reason is FinishReason.ERROR


def test_nothing_left_takes_anothers_place() -> None:
    response = read(start(), ending(x=1) | {"x": 2}, STOP)
    assert response.metadata.extensions.thawed() == {"x": 2, "delta": {"x": 1}}


def test_what_is_left_of_a_block_takes_nothings_place() -> None:
    odd = opened(0, type="text", text="Hi", x=1) | {"content": "?"}
    assert read(start(), odd, ending(), STOP).metadata.extensions.thawed() == {
        "content": "?",
        "content_block": {"x": 1},
    }


def test_the_start_once_more_says_nothing_new() -> None:
    """Proxies send it again."""
    first = start(FULL, service_tier="standard")
    events = [first, opened(0, type="text", text="Hi"), closed(0), ending(usage={"output_tokens": 31}), STOP]
    again = [*events[:2], first, *events[2:]]
    assert read(*again).same_content(read(*events))
    other = read(*events[:2], start({**FULL, "output_tokens": 99}), *events[2:])
    assert other.usage == UsageInfo(116, 31, 100, None, 4)
    assert other.metadata.extensions["usage"] == {"output_tokens": 99}


TEXT = {"type": "text", "text": "Hi"}


@pytest.mark.parametrize(
    "second",
    [
        start() | {"message": body(reason=None) | {"id": "msg_2"}},
        start() | {"message": body(reason=None) | {"id": None}},
        start() | {"message": body(reason=None) | {"id": 7}},
        start(content=[TEXT]),
        body(TEXT),
    ],
    ids=["other id", "no id", "odd id", "content", "body"],
)
def test_a_second_message_is_another_answer(second: dict[str, Any]) -> None:
    error = failing(start(), opened(0, **TEXT), second)
    assert isinstance(error, TrailingContentError)
    assert error.partial is not None
    assert error.partial.text == "Hi"
    nameless = start() | {"message": body(reason=None) | {"id": None}}
    assert isinstance(failing(nameless, opened(0, **TEXT), nameless), TrailingContentError)


def test_a_null_takes_nothing_back() -> None:
    response = read(
        start(FULL, stop_sequence="END", container={"id": "c"}),
        opened(0, **TEXT, lang="en"),
        piece(0, "text_delta", text=None, lang=None),
        ending("stop_sequence", usage=dict.fromkeys(FULL), stop_sequence=None, container=None),
        ending(None, stop_details=None),
        STOP,
    )
    assert (response.text, response.raw_finish_reason) == ("Hi", "stop_sequence")
    assert response.usage == UsageInfo(116, 2, 100, None, 4)
    left = response.metadata.extensions.thawed()
    assert left.pop("content") == [{"index": 0, "lang": "en", "delta": {"lang": None}}]
    assert left == {"stop_sequence": "END", "container": {"id": "c"}}


# A side field costs the field, not the answer.

MISTYPED: list[tuple[str, list[Any], str, Any]] = [
    ("index of a start", [opened("0", **TEXT)], "index", "0"),
    ("index below 0", [opened(-1, **TEXT)], "index", -1),
    ("index of a stop", [opened(0, **TEXT), closed([])], "index", ()),
    ("index of a piece", [opened(0, type="text"), piece("0", "text_delta", text="Hi")], "index", "0"),
    ("index beside more", [opened(True, **TEXT, x=1)], "index", True),
    ("citations", [opened(0, **TEXT, citations="x")], "content[0].citations", "x"),
    ("a citation", [opened(0, **TEXT, citations=[CITED, "x"])], "content[0].citations[1]", "x"),
    ("cited text", [opened(0, **TEXT, citations=[{**CITED, "cited_text": 7}])],
     "content[0].citations[0].cited_text", 7),
    ("its source", [opened(0, **TEXT, citations=[{**CITED, "url": []}])], "content[0].citations[0].url", ()),
    ("a citation's piece", [opened(0, **TEXT), piece(0, "citations_delta", citation="x")],
     "content[0].delta.citation", "x"),
    ("usage", [opened(0, **TEXT), {"type": "message_delta", "delta": {}, "usage": "x"}], "usage", "x"),
    ("a count", [opened(0, **TEXT), ending(None, usage={"input_tokens": "3"})], "usage.input_tokens", "3"),
    ("its details", [opened(0, **TEXT), ending(None, usage={"output_tokens_details": 3})],
     "usage.output_tokens_details", 3),
    ("thinking tokens", [opened(0, **TEXT), ending(None, usage={"output_tokens_details": {"thinking_tokens": -1}})],
     "usage.output_tokens_details.thinking_tokens", -1),
    ("stop details", [opened(0, **TEXT), ending(None, stop_details="x")], "stop_details", "x"),
    ("a refusal's category", [opened(0, **TEXT), ending(None, stop_details={**REFUSAL, "category": 7})],
     "stop_details.category", 7),
    ("its explanation", [opened(0, **TEXT), ending(None, stop_details={**REFUSAL, "explanation": 7})],
     "stop_details.explanation", 7),
]  # fmt: skip


@pytest.mark.parametrize(
    ("events", "path", "value"), [row[1:] for row in MISTYPED], ids=[row[0] for row in MISTYPED]
)
def test_a_side_field_of_another_type_stays_where_it_is(events: list[Any], path: str, value: Any) -> None:
    response = read(start(), *events, ending(), STOP)
    assert (response.text, response.finish_reason) == ("Hi", FinishReason.STOP)
    noted = [p for p, why in response.metadata.provenance.items() if why is Provenance.MISTYPED]
    assert noted == [f"metadata.extensions.{path}"]
    found: Any = response.metadata.extensions
    for key in path.replace("[", ".").replace("]", "").split("."):
        found = found[int(key) if key.isdigit() else key]
    assert (found, type(found)) == (value, type(value))


def test_side_fields_of_a_whole_message() -> None:
    cited = {**TEXT, "citations": [{**CITED, "title": 7}]}
    response = one(body(TEXT, cited, reason="refusal", stop_details=7, usage={"input_tokens": 1.5}))
    assert response.text == "HiHi"
    assert {p for p, why in response.metadata.provenance.items() if why is Provenance.MISTYPED} == {
        "metadata.extensions.content[1].citations[0].title",
        "metadata.extensions.stop_details",
        "metadata.extensions.usage.input_tokens",
    }
    assert response.metadata.extensions.thawed() == {
        "content": [{}, {"citations": [{"title": 7}]}],
        "stop_details": 7,
        "usage": {"input_tokens": 1.5},
    }


def test_an_index_that_tells_blocks_apart_is_no_side_field() -> None:
    both = [opened(0, **TOOL, input={}), opened(1, **{**TOOL, "id": "toolu_2"}, input={})]
    error = failing(start(), *both, piece("0", "input_json_delta", partial_json="{}"))
    assert isinstance(error, WireTypeError)
    assert error.place == "event 4, index"
    late = piece("1", "input_json_delta", partial_json='{"a":1}')
    fine = read(start(), both[0], closed(0), both[1], late, ending("tool_use"), STOP)
    assert [call.arguments for call in fine.tool_calls] == ["{}", '{"a":1}']


# What decides the answer is right or raises; what came before it is kept.


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ([TEXT, {"type": "text", "text": 7}], "content[1].text"),
        ([TEXT, {"type": "thinking", "thinking": 7}], "content[1].thinking"),
        ([TEXT, {**TOOL, "input": "{}"}], "content[1].input"),
        ([TEXT, {**TOOL, "id": 7}], "content[1].id"),
        ([TEXT, {"text": "Hi"}], "content[1].type"),
        ([TEXT, "Hi"], "content[1]"),
    ],
)
def test_what_came_before_is_kept(content: list[Any], place: str) -> None:
    for wire, where in (
        (orjson.dumps(body(*content)), place),
        (sse(start(content=content)), f"message.{place}"),
    ):
        with pytest.raises(WireTypeError) as caught:
            one(wire)
        assert caught.value.place == f"event 1, {where}"
        assert caught.value.partial is not None
        assert caught.value.partial.text == "Hi"


def test_a_text_before_an_end_that_is_not_understood_is_kept() -> None:
    with pytest.raises(WireTypeError) as caught:
        one(body(TEXT, reason=7))
    assert caught.value.partial is not None
    assert caught.value.partial.text == "Hi"


def test_an_id_that_two_calls_have_is_the_firsts() -> None:
    response = one(body({**TOOL, "input": {}}, {**TOOL, "input": {}, "caller": {"type": "direct"}}))
    assert [call.id == "toolu_1" for call in response.tool_calls] == [True, False]
    assert response.metadata.extensions["content"] == ({}, {"id": "toolu_1"})
    assert response.segments[1].metadata["caller"] == {"type": "direct"}


def test_identity_is_that_of_the_message() -> None:
    response = read(start(), opened(0, type="text", text="Hi"), ending(), STOP)
    assert (response.id, response.model) == ("msg_1", "m")
    other = read(start() | {"message": body(role="robot") | {"type": "odd"}}, STOP)
    assert other.metadata.extensions.thawed() == {"type": "odd", "role": "robot"}


@pytest.mark.parametrize(
    ("events", "kind"),
    [
        ([{"type": "surprise"}], UnknownEventError),
        ([{"input_tokens": 17}], UnknownEventError),
        ([start(), opened(0, type="text"), piece(0, "new_delta", x=1)], UnknownEventError),
        ([start(), piece(0, "")], UnknownEventError),
        ([start(), opened(0, text="Hi")], WireTypeError),
        ([start(), opened(0, type="text", text=7)], WireTypeError),
        ([start(), {"type": "content_block_start", "index": 0}], WireTypeError),
        ([start(), opened(0, type="text", text="Hi"), {"type": ["ping"]}], WireTypeError),
        ([start(), opened(0, type="text"), piece(0, "input_json_delta", partial_json="{")], WireTypeError),
        ([start(), opened(0, **{**SEARCH, "id": 7})], WireTypeError),
        ([start(), opened(0, **SEARCH, input=[])], WireTypeError),
        ([start(), opened(0, type="new_tool_result", tool_use_id=7)], WireTypeError),
        ([start(), opened(0, **TOOL, input="{}")], WireTypeError),
        ([body("text")], WireTypeError),
        ([body() | {"content": "text"}], WireTypeError),
        ([closed(0), {"type": "message_start", "message": None}], WireTypeError),
        ([{"type": "message_start", "message": None}], UnknownEventError),
        ([start(), ending(7)], WireTypeError),
        ([start(), ending(), ending(7)], WireTypeError),
        ([start(), opened(0, type="tool_use", id="a"), ending("tool_use"), STOP], MappingError),
        ([start(), piece(0, "input_json_delta", partial_json="{"), ending("tool_use"), STOP], MappingError),
        ([closed(0), ["x"]], WireTypeError),
        ([["x"]], UnknownEventError),
    ],
)
def test_what_is_not_understood_is_a_typed_error(events: list[Any], kind: type[CrosswalkError]) -> None:
    reader = Reader(registry.mapper("anthropic"), ReaderOptions())
    with pytest.raises(kind) as caught:
        for event in events:
            list(reader.read_event(event))
        list(reader.finish())
    assert "the plugin failed" not in str(caught.value)


def test_what_is_not_known_can_be_kept() -> None:
    response = read(start(), {"type": "surprise", "x": 1}, ending(), STOP, unknown="keep")
    assert response.metadata.extensions["x"] == 1


# Section 7: errors.


@pytest.mark.parametrize(
    ("status", "word", "message", "kind", "retryable"),
    [
        (400, "invalid_request_error", "messages: at least one", ErrorKind.INVALID_REQUEST, False),
        (400, "invalid_request_error", "prompt is too long: 9 > 8", ErrorKind.CONTEXT_OVERFLOW, False),
        (401, "authentication_error", "invalid x-api-key", ErrorKind.AUTHENTICATION, False),
        (402, "billing_error", "Your credit balance is low", ErrorKind.QUOTA, False),
        (403, "permission_error", "Not yours", ErrorKind.PERMISSION, False),
        (404, "not_found_error", "Not found", ErrorKind.INVALID_REQUEST, False),
        (404, "not_found_error", "model: claude-nope", ErrorKind.MODEL_UNAVAILABLE, False),
        (408, "timeout_error", "Too slow", ErrorKind.TIMEOUT, True),
        (409, "conflict_error", "Busy", ErrorKind.INVALID_REQUEST, False),
        (413, "request_too_large", "Too large", ErrorKind.INVALID_REQUEST, False),
        (429, "rate_limit_error", "Slow down", ErrorKind.RATE_LIMIT, True),
        (500, "api_error", "Oops", ErrorKind.SERVER, True),
        (503, "overloaded_error", "Overloaded", ErrorKind.RATE_LIMIT, True),
        (529, "overloaded_error", "Overloaded", ErrorKind.RATE_LIMIT, True),
        # vLLM's words, and its other shape
        (404, "NotFoundError", "The model `nope` does not exist.", ErrorKind.MODEL_UNAVAILABLE, False),
        (400, "BadRequestError", "Field required", ErrorKind.INVALID_REQUEST, False),
    ],
)
def test_errors(status: int, word: str, message: str, kind: ErrorKind, retryable: bool) -> None:
    said = {"type": "error", "error": {"type": word, "message": message}, "request_id": "req_1"}
    response = one(orjson.dumps(said), status=status)
    info = response.error_info
    assert info is not None
    assert (info.kind, info.message, info.retryable, info.status) == (kind, message, retryable, status)
    assert info.raw == said
    inside = read(start(usage=FULL), opened(0, type="text", text="Half"), said)
    assert inside.error_info is not None
    if word != "BadRequestError":
        assert inside.error_info.kind is kind
    assert (inside.text, inside.usage.prompt_tokens) == ("Half", 116)
    assert inside.finish_reason is FinishReason.ERROR


def test_a_stop_after_an_error_has_no_word() -> None:
    said = {"type": "error", "error": {"type": "api_error", "message": "Oops"}}
    response = read(start(), said, STOP)
    assert (response.finish_reason, response.raw_finish_reason) == (FinishReason.ERROR, "")


def test_an_error_may_be_known_by_its_events_name_alone() -> None:
    """llama.cpp sends the inner object alone (provider document "llama.cpp", section 7)."""
    bare = {"code": 500, "message": "It broke", "type": "server_error"}
    wire = (
        sse(start(), opened(0, type="text", text="Half"))
        + b"event: error\ndata: "
        + orjson.dumps(bare)
        + b"\n\n"
    )
    info = one(wire).error_info
    assert info is not None
    assert (info.kind, info.message, info.raw) == (ErrorKind.SERVER, "It broke", bare)


# Who wrote it.


@pytest.mark.parametrize(
    ("event", "found"),
    [
        (body() | {"id": "msg_01ERcBqAvLTHWQDk9c9qJLWC"}, Recognition.CERTAIN),
        (body() | {"id": "msg_bdrk_01ERcBqAvLTHWQDk9c9qJLWC"}, Recognition.CERTAIN),
        (start() | {"message": body() | {"id": "msg_01ERcBqAvLTHWQDk9c9qJLWC"}}, Recognition.CERTAIN),
        (body(usage={"service_tier": "standard"}), Recognition.CERTAIN),
        (body() | {"id": "msg_01636c933e04644feabea52e"}, Recognition.POSSIBLE),
        (body() | {"id": "chatcmpl-01"}, Recognition.POSSIBLE),
        (body() | {"id": None, "usage": None}, Recognition.POSSIBLE),
        (start(), Recognition.POSSIBLE),
        (opened(0, type="text"), Recognition.POSSIBLE),
        (piece(0, "text_delta"), Recognition.POSSIBLE),
        (ending(), Recognition.POSSIBLE),
        (STOP, Recognition.POSSIBLE),
        ({"type": "error", "error": {"type": "x", "message": "y"}}, Recognition.POSSIBLE),
        ({"type": "error", "error": {}, "request_id": "req_011CYK5mje9HpRs7TuVwXyZa"}, Recognition.CERTAIN),
        ({"type": "error", "error": {}, "request_id": "req_d5ee6b71dc1884c5ba6247c6"}, Recognition.POSSIBLE),
        ({"type": "completion", "completion": "Hi"}, Recognition.CERTAIN),
        ({"completion": "Hi", "stop": None}, Recognition.POSSIBLE),
        ({"type": "error", "code": None, "message": "y"}, Recognition.NO),
        ({"type": "message", "role": "user", "content": [], "object": "conversation.item"}, Recognition.NO),
        ({"type": "message_start"}, Recognition.NO),
        ({"type": ["message"]}, Recognition.NO),
        ({"choices": []}, Recognition.NO),
        (["message"], Recognition.NO),
    ],
)
def test_recognizes(event: Any, found: Recognition) -> None:
    assert plugin.recognizes(event) is found


def test_the_dialect_under_another_name() -> None:
    """Ollama, vLLM, llama.cpp and SGLang answer in it as well: it claims nothing for itself."""

    class Other(DialectFamily):
        """A server of several dialects."""

    known = registry.__class__(installed=[], environ={})
    known.register(Other(AnthropicDialect()), "other")
    known.register(AnthropicDialect(), "alone")
    for name in ("other", "alone"):
        response = normalize(body({"type": "text", "text": "Hi"}), name, registry=known)
        assert (response.text, response.metadata.provider_id) == ("Hi", name)
    assert known.mapper("alone").info.endpoints == ("/v1/messages",)
    failed = normalize(
        {"type": "error", "error": {"type": "api_error", "message": "x"}}, "alone", status=500, registry=known
    )
    assert failed.error_info.kind is ErrorKind.SERVER  # type: ignore[union-attr]
    assert AnthropicDialect().recognizes(body(usage={"service_tier": "x"})) is Recognition.POSSIBLE
    assert HostedMessages().recognizes({}) is Recognition.NO


# Text Completions.


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"type": "surprise", "completion": "Hi"}, UnknownEventError),
        ({"type": "completion"}, UnknownEventError),
        ({"x": 1}, UnknownEventError),
        ({"completion": 7}, WireTypeError),
        ([], WireTypeError),
    ],
)
def test_text_completions_that_are_not_understood(event: Any, kind: type[CrosswalkError]) -> None:
    with pytest.raises(kind):
        list(CompletionsDialect().map_delta(event, MappingState("anthropic")))


def test_text_completions_end() -> None:
    dialect, state = CompletionsDialect(), MappingState("anthropic")
    assert dialect.map_finish_reason("max_tokens", state) is FinishReason.LENGTH
    assert dialect.map_finish_reason("new", state) is None
    assert list(dialect.map_delta({"type": "ping"}, state)) == []
    cut = read(
        {"type": "completion", "completion": "Hi", "stop_reason": None},
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
    )
    assert (cut.text, cut.finish_reason) == ("Hi", FinishReason.ERROR)
    assert dialect.recognizes([]) is Recognition.NO


def test_bedrock_counts_the_tokens_of_text_completions() -> None:
    metrics = {"inputTokenCount": 16, "outputTokenCount": 63, "invocationLatency": 5849}
    end = {"completion": "", "stop_reason": "stop_sequence", "amazon-bedrock-invocationMetrics": metrics}
    response = read({"completion": "Hi", "stop_reason": None}, end)
    assert (response.text, response.usage) == ("Hi", UsageInfo(16, 63))
    assert response.metadata.extensions["amazon-bedrock-invocationMetrics"] == {"invocationLatency": 5849}


def test_details_of_a_refusal_whose_type_is_no_text_are_kept_and_marked() -> None:
    details = {"type": ["refusal"], "explanation": "No."}
    answer = {**body({"type": "text", "text": "Hi"}), "stop_reason": "refusal", "stop_details": details}
    response = normalize(answer, "anthropic")
    assert (response.text, response.refusal) == ("Hi", None)
    assert response.metadata.provenance["metadata.extensions.stop_details.type"] == "mistyped"


@pytest.mark.parametrize("count", ["9", -1, None, {}])
def test_a_metric_that_is_no_count_is_none(count: object) -> None:
    """Bedrock adds its own counts to the last event. The message's counts are there without it."""
    events = [
        {
            "type": "message_start",
            "message": {"id": "m", "model": "m", "content": [], "usage": {"input_tokens": 3}},
        },
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 4}},
        {"type": "message_stop", "amazon-bedrock-invocationMetrics": {"cacheReadInputTokenCount": count}},
    ]
    usage = normalize(events, "anthropic").usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens) == (3, 4, None)
