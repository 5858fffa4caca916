"""OpenAI's Responses dialect: the fact sheet as tables, and the conformance kit over captures (see their manifest)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from crosswalk import (
    CallKind,
    ChatResponse,
    CitationRef,
    ErrorKind,
    FinishReason,
    IncompleteStreamError,
    MappingError,
    Provenance,
    Registry,
    Segment,
    SegmentType,
    ToolCall,
    TrailingContentError,
    UnknownEventError,
    UnknownFinishReasonError,
    UsageInfo,
    WireTypeError,
    normalize,
)
from crosswalk.mapping.reader import Reader, ReaderOptions
from crosswalk.plugin.registry import registry
from crosswalk.plugins import DialectFamily, OpenAIChatDialect, Recognition
from crosswalk.testing import ProviderConformance
from crosswalk_openai_responses import ResponsesDialect, plugin

T = SegmentType


class TestOpenAIResponses(ProviderConformance):
    provider = "openai_responses"
    captures = "../captures/openai_responses"
    snapshots = "../../snapshots"


# Short ways to write the wire.


def response(*output: Any, status: Any = "completed", **more: Any) -> dict[str, Any]:
    return {"id": "resp_1", "object": "response", "created_at": 1790000000, "model": "m"} | {
        "status": status,
        "output": list(output),
        **more,
    }


def message(text: str, id: Any = "msg_1", **more: Any) -> dict[str, Any]:
    return {"type": "message", "id": id, "role": "assistant", "content": [output_text(text)], **more}


def output_text(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": [], **more}


def call(arguments: Any = '{"a":1}', **more: Any) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "sum",
        "arguments": arguments,
        **more,
    }


def event(kind: str, /, **more: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", **more}


def started(**more: Any) -> dict[str, Any]:
    return event("created", response=response(status="in_progress", **more))


def ended(*output: Any, **more: Any) -> dict[str, Any]:
    return event("completed", response=response(*output, **more))


def piece(text: str, kind: str = "output_text", **more: Any) -> dict[str, Any]:
    return event(f"{kind}.delta", item_id="msg_1", output_index=0, content_index=0, delta=text, **more)


def read(*events: Any, keep: bool = False, provider: str = "openai_responses") -> ChatResponse:
    """The response that *events*, or one body, give."""
    reader = Reader(registry.mapper(provider), ReaderOptions(unknown="keep" if keep else "raise"))
    for one in events:
        for _ in reader.read_event(one):
            pass
    for _ in reader.finish():
        pass
    return reader.response()


def extensions(answer: ChatResponse) -> dict[str, Any]:
    return answer.metadata.extensions.thawed()


def shown(answer: ChatResponse) -> list[tuple[str, str]]:
    return [(segment.type.value, segment.content) for segment in answer.segments]


# The response object.


@pytest.mark.parametrize(
    ("created", "marked", "left"),
    [
        (1790000000, None, False),
        (1790000000.5, None, False),
        (0, Provenance.SYNTHETIC, False),
        (None, Provenance.SYNTHETIC, True),
        (10**30, Provenance.SYNTHETIC, True),
        ("then", Provenance.SYNTHETIC, True),
        (True, Provenance.SYNTHETIC, True),
    ],
)
def test_the_time(created: Any, marked: Any, left: bool) -> None:
    answer = read(response(created_at=created))
    assert answer.metadata.provenance.get("created") == marked
    assert ("created_at" in extensions(answer)) is left


@pytest.mark.parametrize(
    ("text", "left"), [("Hi", False), ("", True), ("Ho", True), (7, True)], ids=lambda value: str(value)
)
def test_the_text_that_some_servers_add(text: Any, left: bool) -> None:
    assert ("output_text" in extensions(read(response(message("Hi"), output_text=text)))) is left


@pytest.mark.parametrize(
    ("status", "details", "output", "reason", "raw"),
    [
        ("completed", None, [], "stop", "completed"),
        ("completed", None, [call()], "tool_calls", "completed"),
        ("incomplete", None, [], "length", "incomplete"),
        ("incomplete", {"reason": None}, [], "length", "incomplete"),
        ("incomplete", {"reason": "max_output_tokens"}, [call()], "length", "incomplete:max_output_tokens"),
        ("incomplete", {"reason": "max_messages"}, [], "length", "incomplete:max_messages"),
        ("incomplete", {"reason": "content_filter"}, [], "content_filter", "incomplete:content_filter"),
        ("incomplete", {"reason": "steered"}, [], "cancelled", "incomplete:steered"),
        ("cancelled", None, [], "cancelled", "cancelled"),
        ("failed", None, [], "error", "failed"),
    ],
)
def test_how_it_ends(status: str, details: Any, output: list[Any], reason: str, raw: str) -> None:
    answer = read(response(*output, status=status, incomplete_details=details))
    assert (answer.finish_reason, answer.raw_finish_reason) == (reason, raw)
    assert not {"status", "incomplete_details"} & extensions(answer).keys()


@pytest.mark.parametrize("word", ["added", "done"])
def test_an_empty_part_says_nothing(word: str) -> None:
    about = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    answer = read(started(), event(f"content_part.{word}", **about, part={}), piece("Hi"), ended())
    assert (answer.text, answer.finish_reason) == ("Hi", "stop")


def test_a_detail_that_does_not_count_is_left() -> None:
    answer = read(response(incomplete_details={"reason": "max_output_tokens"}))
    assert answer.finish_reason == "stop"
    assert extensions(answer)["incomplete_details"] == {"reason": "max_output_tokens"}


@pytest.mark.parametrize("status", ["complete", "incomplete"])
def test_an_unknown_end(status: str) -> None:
    body = response(status=status, incomplete_details={"reason": "boredom"})
    with pytest.raises(UnknownFinishReasonError):
        read(body)
    answer = read(body, keep=True)
    assert answer.metadata.provenance["finish_reason"] is Provenance.UNMAPPED


@pytest.mark.parametrize(
    ("kind", "status", "reason"),
    [
        ("completed", "incomplete", "length"),  # vLLM
        ("completed", "in_progress", "stop"),
        ("completed", None, "stop"),
        ("incomplete", None, "length"),
        ("cancelled", "cancelled", "cancelled"),
    ],
)
def test_the_status_counts_more_than_the_event(kind: str, status: Any, reason: str) -> None:
    answer = read(started(), event(kind, response=response(status=status)))
    assert answer.finish_reason == reason


@pytest.mark.parametrize(
    ("status", "reason"), [("incomplete", "length"), ("completed", "stop"), (None, "stop")]
)
def test_a_message_that_is_not_whole_cuts_a_completed_response(status: Any, reason: str) -> None:
    item = {"type": "message", "id": "m", "role": "assistant", "status": status}
    part = {"type": "output_text", "text": "Half", "annotations": []}
    body = response({**item, "content": [part]})
    streamed = started(), event("completed", response=body)
    for answer in (read(body, keep=True), read(*streamed, keep=True)):
        assert answer.finish_reason == reason
        assert answer.is_complete is (reason == "stop")
        assert answer.text == "Half"


USAGE: list[tuple[dict[str, Any], UsageInfo, dict[str, Any]]] = [
    (
        {
            "input_tokens": 90,
            "input_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 3},
            "output_tokens": 40,
            "output_tokens_details": {"reasoning_tokens": 20},
            "total_tokens": 130,
        },
        UsageInfo(90, 40, 64, 20, 3),
        {},
    ),
    ({"input_tokens": 5, "output_tokens": 2, "total_tokens": 9}, UsageInfo(5, 2), {"total_tokens": 9}),
    ({"input_tokens": 5, "output_tokens": None, "total_tokens": 5}, UsageInfo(5, 0), {}),
    (
        {
            "input_tokens": 5,
            "input_tokens_details": {"cached_tokens_per_turn": [0]},
            "output_tokens": 1,
            "cost": 0.5,
        },
        UsageInfo(5, 1),
        {"input_tokens_details": {"cached_tokens_per_turn": [0]}, "cost": 0.5},
    ),
    ({"output_tokens": 1, "total_tokens": 1}, UsageInfo(0, 1), {"total_tokens": 1}),
]


@pytest.mark.parametrize(("usage", "counts", "left"), USAGE)
def test_tokens(usage: dict[str, Any], counts: UsageInfo, left: dict[str, Any]) -> None:
    answer = read(response(usage=usage))
    assert answer.usage == counts
    assert extensions(answer).get("usage", {}) == left
    absent = "input_tokens" not in usage
    assert (answer.metadata.provenance.get("usage.prompt_tokens") == Provenance.ABSENT) is absent


@pytest.mark.parametrize("usage", [None, {}, {"cost": 1}])
def test_no_tokens(usage: Any) -> None:
    assert read(response(usage=usage)).metadata.provenance["usage"] is Provenance.ABSENT


# Items of a body.


@pytest.mark.parametrize(
    ("item", "segments"),
    [
        ({}, [("reasoning", "")]),
        ({"summary": [{"type": "summary_text", "text": "S"}]}, [("reasoning", "S")]),
        ({"content": [{"type": "reasoning_text", "text": "C"}], "summary": []}, [("reasoning", "C")]),
        (
            {
                "content": [{"type": "reasoning_text", "text": "C"}],
                "summary": [{"type": "summary_text", "text": "S"}],
                "encrypted_content": "",
            },
            [("reasoning", "C"), ("reasoning", "S")],
        ),
        (
            {
                "summary": [{"type": "summary_text", "text": text} for text in ("A", "B")],
                "encrypted_content": None,
            },
            [("reasoning", "A"), ("reasoning", "B")],
        ),
    ],
)
def test_reasoning(item: dict[str, Any], segments: list[tuple[str, str]]) -> None:
    assert shown(read(response({"type": "reasoning", "id": "rs_1", **item}))) == segments


def test_reasoning_without_an_id() -> None:
    assert read(response({"type": "reasoning", "summary": []})).segments == (Segment(T.REASONING),)


ANNOTATIONS: list[tuple[dict[str, Any], Segment]] = [
    (
        {"type": "url_citation", "start_index": 0, "end_index": 5, "title": "T", "url": "https://x"},
        Segment(T.CITATION, "T", {"type": "url_citation"}, (CitationRef(None, "https://x", (0, 5)),)),
    ),
    (
        {"type": "file_citation", "file_id": "f", "filename": "n.txt", "index": 27},
        Segment(T.CITATION, "n.txt", {"type": "file_citation", "index": 27}, (CitationRef("f"),)),
    ),
    (
        {"type": "container_file_citation", "container_id": "c", "file_id": "f", "filename": "n", "start_index": 1, "end_index": 2},
        Segment(T.CITATION, "n", {"type": "container_file_citation", "container_id": "c"}, (CitationRef("f", None, (1, 2)),)),
    ),
    (
        {"type": "file_path", "file_id": "f", "index": 0},
        Segment(T.CITATION, "", {"type": "file_path", "index": 0}, (CitationRef("f"),)),
    ),
    (
        {"type": "url_citation", "start_index": 3, "end_index": None, "title": "", "url": None},
        Segment(
            T.CITATION,
            "",
            {"type": "url_citation", "start_index": 3},
            (CitationRef(),),
        ),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("annotation", "segment"), ANNOTATIONS)
def test_annotations(annotation: dict[str, Any], segment: Segment) -> None:
    item = {"type": "message", "id": "m", "content": [output_text("Hello", annotations=[annotation])]}
    answer = read(response(item))
    assert answer.segments == (Segment(T.TEXT, "Hello"), segment)
    assert extensions(answer)["output"] == [{"index": 0, "type": "message", "id": "m"}]


CALLS: list[tuple[dict[str, Any], ToolCall, dict[str, Any]]] = [
    (call(namespace="n"), ToolCall("call_1", "sum", '{"a":1}'), {"id": "fc_1", "namespace": "n"}),
    (
        {"type": "custom_tool_call", "call_id": "c", "name": "sql", "input": "SELECT 1"},
        ToolCall("c", "sql", "SELECT 1", CallKind.CUSTOM),
        {},
    ),
    (
        {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "n", "arguments": "{}"},
        ToolCall("mcpr_1", "n", "{}"),
        {"id": "mcpr_1", "server_label": "s"},
    ),
    (
        {"type": "computer_call", "call_id": "c", "action": {"type": "wait"}, "pending_safety_checks": []},
        ToolCall("c", "computer_call", '{"action":{"type":"wait"},"pending_safety_checks":[]}'),
        {},
    ),
    (
        {
            "type": "local_shell_call",
            "call_id": "c",
            "action": {"type": "exec", "command": ["ls"], "env": {}},
        },
        ToolCall("c", "local_shell_call", '{"action":{"type":"exec","command":["ls"],"env":{}}}'),
        {},
    ),
    (
        {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}, "environment": None},
        ToolCall("c", "shell_call", '{"action":{"commands":["ls"]}}'),
        {"environment": None},
    ),
    (
        {"type": "shell_call", "call_id": "c", "action": {"commands": []}, "environment": {"type": "local"}},
        ToolCall("c", "shell_call", '{"action":{"commands":[]},"environment":{"type":"local"}}'),
        {},
    ),
    (
        {"type": "apply_patch_call", "call_id": "c", "operation": {"type": "delete_file", "path": "p"}},
        ToolCall("c", "apply_patch_call", '{"operation":{"type":"delete_file","path":"p"}}'),
        {},
    ),
    (
        {"type": "tool_search_call", "call_id": "c", "execution": "client", "arguments": {"q": 1}},
        ToolCall("c", "tool_search_call", '{"q":1}'),
        {"execution": "client"},
    ),
]


@pytest.mark.parametrize(("item", "expected", "left"), CALLS, ids=lambda value: str(value)[:40])
def test_calls_of_the_client(item: dict[str, Any], expected: ToolCall, left: dict[str, Any]) -> None:
    answer = read(response(item))
    assert answer.tool_calls == (expected,)
    assert answer.finish_reason == "tool_calls"
    assert extensions(answer)["output"] == [{"index": 0, "type": item["type"], **left}]
    derived = expected.name == item["type"]
    assert ("message.tool_calls[0].name" in answer.metadata.provenance) is derived


def test_a_call_without_an_id() -> None:
    answer = read(
        response({"type": "tool_search_call", "call_id": None, "execution": "client", "arguments": {}})
    )
    assert answer.metadata.provenance["message.tool_calls[0].id"] is Provenance.SYNTHETIC


SERVER_ITEMS: list[tuple[dict[str, Any], str]] = [
    (
        {"type": "web_search_call", "action": {"type": "search", "query": "q"}},
        '{"type":"search","query":"q"}',
    ),
    ({"type": "web_search_call", "call_id": "", "name": "web_search", "arguments": '{"q":1}'}, '{"q":1}'),
    ({"type": "x_search_call", "arguments": "{}"}, "{}"),
    ({"type": "file_search_call", "queries": ["q"], "results": None}, '["q"]'),
    ({"type": "code_interpreter_call", "code": "1+1", "outputs": [{"type": "logs", "logs": "2"}]}, "1+1"),
    (
        {
            "type": "mcp_call",
            "server_label": "s",
            "name": "n",
            "arguments": "{}",
            "output": "o",
            "error": None,
        },
        "{}",
    ),
    ({"type": "mcp_list_tools", "server_label": "s", "tools": [{"name": "n", "input_schema": {}}]}, ""),
    (
        {"type": "shell_call", "action": {"commands": []}, "environment": {"type": "container_reference"}},
        '{"commands":[]}',
    ),
    ({"type": "shell_call_output", "output": [{"stdout": "o", "outcome": {"type": "timeout"}}]}, ""),
    ({"type": "tool_search_call", "execution": "server", "arguments": {"p": []}}, '{"p":[]}'),
    ({"type": "tool_search_output", "execution": "server", "tools": []}, ""),
    ({"type": "program", "code": "text(1)", "fingerprint": "gAAA"}, "text(1)"),
    ({"type": "code_interpreter_call", "code": None}, ""),
]


@pytest.mark.parametrize(("item", "content"), SERVER_ITEMS, ids=lambda value: str(value)[:40])
def test_what_the_server_did_is_no_call_of_the_client(item: dict[str, Any], content: str) -> None:
    item = {"id": "i_1", "status": "completed", **item}
    answer = read(response(item))
    (segment,) = answer.segments
    assert (segment.type, segment.content, answer.tool_calls) == (T.TOOL_CALL, content, ())
    assert answer.finish_reason == "stop"
    known = segment.metadata.thawed()
    assert known.items() <= item.items()
    assert len(item) - len(known) == (1 if content else 0)
    kept = {key: item[key] for key in ("id", "type", "status")}
    assert extensions(answer)["output"] == [{"index": 0, **kept}]


def test_an_image() -> None:
    item = {
        "type": "image_generation_call",
        "id": "ig",
        "result": "iVBO",
        "output_format": "png",
        "size": "1x1",
    }
    (segment,) = read(response(item)).segments
    assert (segment.type, segment.content) == (T.MEDIA, "iVBO")
    known = {"encoding": "base64", "media_type": "image/png"}
    assert segment.metadata == {name: value for name, value in item.items() if name != "result"} | known
    (segment,) = read(response({"type": "image_generation_call", "id": "ig", "result": "iVBO"})).segments
    assert "media_type" not in segment.metadata


@pytest.mark.parametrize(
    "item",
    [
        {"type": "image_generation_call", "id": "ig", "status": "failed", "result": None},
        {"type": "image_generation_call", "id": "ig", "status": "failed", "result": ""},
        {"type": "compaction", "id": "cmp", "encrypted_content": "gAAA"},
        {"type": "mcp_approval_response", "id": "r", "approve": True},
        {"type": "hologram", "id": "h", "content": [1], "summary": "flat", "role": "assistant"},
        {"type": "hologram", "index": 7, "content": [{"type": "light", "lumen": 3}]},
    ],
)
def test_what_has_no_typed_place_stays(item: dict[str, Any]) -> None:
    answer = read(response(item))
    assert answer.segments == ()
    (left,) = extensions(answer)["output"]
    assert left.pop("index") == 0
    left["index"] = left.pop("own_index", None)
    if left["index"] is None:
        del left["index"]
    for part in left["content"] if item["type"] == "hologram" and item["content"] != [1] else ():
        assert part.pop("index") == 0
    assert left == {key: value for key, value in item.items() if key != "role"}


# Streams.


def stream_of_text(*pieces: str, index: Any = 0) -> list[dict[str, Any]]:
    """The text of message ``msg_1``, as OpenAI streams it."""
    about = {"item_id": "msg_1", "output_index": index, "content_index": 0}
    whole = output_text("".join(pieces))
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []}
    return [
        event("output_item.added", output_index=index, item=item),
        event("content_part.added", **about, part=output_text("")),
        *(event("output_text.delta", **about, delta=text, logprobs=[]) for text in pieces),
        event("output_text.done", **about, text=whole["text"], logprobs=[]),
        event("content_part.done", **about, part=whole),
        event(
            "output_item.done", output_index=index, item={**item, "status": "completed", "content": [whole]}
        ),
    ]


@pytest.mark.parametrize("count", range(1, 7))
def test_any_of_the_repetitions_is_enough(count: int) -> None:
    """Deltas, or the text, its part, its item, or the response alone: all say the same."""
    events = stream_of_text("Hello")
    chosen = [events[count]] if count < 6 else []
    assert shown(read(started(), *chosen, ended(message("Hello")))) == [("text", "Hello")]


def test_what_the_end_adds_is_said() -> None:
    token = {"token": "Hello", "logprob": -1.0}
    note = {"type": "url_citation", "url": "u", "title": "t"}
    whole = {**message(""), "content": [output_text("Hello", logprobs=[token], annotations=[note])]}
    answer = read(started(), piece("Hel"), ended(whole, call()))
    assert answer.text == "Hello"
    assert [token.token for token in answer.logprobs or ()] == ["Hello"]
    assert [segment.type for segment in answer.segments] == [T.TEXT, T.CITATION, T.TOOL_CALL]
    assert answer.finish_reason == "tool_calls"


@pytest.mark.parametrize(
    "later",
    [
        event("output_text.done", item_id="msg_1", output_index=0, content_index=0, text="Hullo"),
        event(
            "content_part.done", item_id="msg_1", output_index=0, content_index=0, part=output_text("Hullo")
        ),
        event("output_item.done", output_index=0, item=message("Hullo")),
        ended(message("Hullo")),
    ],
    ids=lambda event: str(event["type"]),
)
def test_the_final_text_replaces_the_streamed_one(later: dict[str, Any]) -> None:
    end = [] if later["type"] == "response.completed" else [ended()]
    answer = read(started(), piece("Hello"), later, *end)
    assert shown(answer) == [("text", "Hullo")]
    assert answer.metadata.provenance["message.content"] is Provenance.DERIVED
    (item,) = extensions(answer)["output"]
    assert item["content"] == [{"index": 0, "streamed_text": "Hello"}]


def piece_of(text: str, number: int, item: str = "msg_1") -> dict[str, Any]:
    return event("output_text.delta", item_id=item, output_index=0, content_index=number, delta=text)


@pytest.mark.parametrize(
    ("pieces", "texts", "wanted"),
    [
        ("0H 1i", ["Hi"], ["Hi"]),
        ("1i 0H", ["Hi"], ["Hi"]),
        ("0H 1i 0! 1?", ["Hi"], ["Hi"]),
        ("0H 1i 2x", ["Hi", "x"], ["Hi", "x"]),
        ("0A 1B 0a 1b", ["Aa", "Bb"], ["Aa", "Bb"]),
        ("0A 1B 0a 1b", ["Aa", "C"], ["Aa", "C"]),
        ("0A 1B", ["A2", "B2"], ["A2", "B2"]),
        ("0one 1two", [""], ["onetwo"]),
        ("3a 5b 7c", ["x"], ["x"]),
    ],
)
@pytest.mark.parametrize("is_item", [True, False])
def test_the_final_item_settles_the_parts(
    pieces: str, texts: list[str], wanted: list[str], *, is_item: bool
) -> None:
    """Whatever numbers the pieces had. The deltas add up to the same."""
    whole = {**message(""), "content": [output_text(text) for text in texts]}
    events = [started(), *(piece_of(one[1:], int(one[0])) for one in pieces.split())]
    if is_item:
        events.append(event("output_item.done", output_index=0, item=whole))
    events.append(ended(whole))
    reader = Reader(registry.mapper("openai_responses"), ReaderOptions())
    deltas = [delta for one in events for delta in reader.read_event(one)] + [*reader.finish()]
    answer = reader.response()
    assert shown(answer) == [("text", text) for text in wanted]
    assert ChatResponse.from_deltas(deltas).segments == answer.segments


def test_an_end_that_forgets_takes_nothing_back() -> None:
    assert read(started(), *stream_of_text("Hi"), ended()).text == "Hi"


def test_tokens_in_pieces() -> None:
    rough, fine = {"token": "Hi", "logprob": -0.25}, {"token": "Hi", "logprob": -0.25, "bytes": [72, 105]}
    events = [
        piece("Hi", logprobs=[rough]),
        ended({**message(""), "content": [output_text("Hi", logprobs=[fine])]}),
    ]
    answer = read(started(), *events)
    assert [token.bytes for token in answer.logprobs or ()] == [None]
    assert extensions(answer)["output"][0]["content"] == [{"index": 0, "logprobs": [{"bytes": [72, 105]}]}]


def test_a_token_without_text() -> None:
    answer = read(started(), piece("", logprobs=[{"token": "", "logprob": -1.0}]), piece("Hi"), ended())
    assert (answer.text, len(answer.logprobs or ())) == ("Hi", 1)


def test_rounded_and_shorter_tokens() -> None:
    tokens = [{"token": text, "logprob": value} for text, value in (("a", -1.25), ("b", -2.0))]
    rounded = [{"token": text, "logprob": value} for text, value in (("a", -1.2), ("b", -2.0))]
    part = event(
        "content_part.done", item_id="msg_1", output_index=0, content_index=0, part=output_text("ab")
    )
    item = {**message(""), "content": [output_text("ab", logprobs=rounded)]}
    answer = read(started(), piece("ab", logprobs=tokens), part, ended(item))
    assert extensions(answer)["output"][0]["content"] == [{"index": 0, "logprobs": [{"logprob": -1.2}, {}]}]


def test_reasoning_in_pieces() -> None:
    about = {"item_id": "rs_1", "output_index": 0}
    item = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": t} for t in ("AB", "C")],
    }
    done = {**item, "encrypted_content": "two"}
    answer = read(
        started(),
        event("output_item.added", output_index=0, item={**item, "summary": [], "encrypted_content": "one"}),
        event(
            "reasoning_summary_part.added",
            **about,
            summary_index=0,
            part={"type": "summary_text", "text": ""},
        ),
        event("reasoning_summary_text.delta", **about, summary_index=0, delta="A"),
        event("reasoning_summary_text.delta", **about, summary_index=0, delta="B", obfuscation="x"),
        event("reasoning_summary_text.done", **about, summary_index=0, text="AB"),
        event(
            "reasoning_summary_part.done",
            **about,
            summary_index=0,
            part=item["summary"][0],
            status="incomplete",
        ),
        event("reasoning_summary_text.delta", **about, summary_index=1, delta="C"),
        event("output_item.done", output_index=0, item=done),
        ended(done),
    )
    assert answer.segments == (
        Segment(T.REASONING, "AB"),
        Segment(T.REASONING, "C", {"id": "rs_1", "encrypted": "two"}),
    )
    left = extensions(answer)
    assert left["output"] == [
        {
            "index": 0,
            "type": "reasoning",
            "id": "rs_1",
            "added": {"encrypted_content": "one"},
            "summary": [{"index": 1}],
        }
    ]
    assert (left["obfuscation"], left["event_status"]) == ("x", "incomplete")


REASONING: dict[str, Any] = {"type": "reasoning", "id": "rs_1", "summary": []}


def sealed(payload: Any) -> dict[str, Any]:
    """Reasoning of which only its payload is shown."""
    return {**REASONING, "encrypted_content": payload}


def item_event(kind: str, item: dict[str, Any]) -> dict[str, Any]:
    return event(f"output_item.{kind}", output_index=0, item=item)


@pytest.mark.parametrize("first", ["AAA", "BBB", "", None])
@pytest.mark.parametrize("in_between", [[], [item_event("done", sealed("BBB"))]], ids=["end", "item"])
def test_a_payload_of_the_beginning_is_told_from_the_last(first: Any, in_between: list[Any]) -> None:
    """It is kept (P1), but not in the place of the item's own payload."""
    streamed = read(started(), item_event("added", sealed(first)), *in_between, ended(sealed("BBB")))
    whole = read(response(sealed("BBB")))
    assert streamed.segments == (Segment(T.REASONING, "", {"id": "rs_1", "encrypted": "BBB"}),)
    assert streamed.segments == whole.segments
    left = extensions(streamed)["output"][0] if first else {}
    assert left.get("added", {}).get("encrypted_content") == (first or None)
    assert "encrypted_content" not in left


def test_the_payloads_of_an_item_and_of_the_end() -> None:
    """Either may be sent back: the segment keeps the first, in its place, and the extensions the last."""
    answer = read(
        started(),
        item_event("added", sealed("AAA")),
        item_event("done", sealed("BBB")),
        piece("Hi") | {"output_index": 1},
        ended(sealed("CCC"), message("Hi")),
    )
    assert answer.segments[0] == Segment(T.REASONING, "", {"id": "rs_1", "encrypted": "BBB"})
    assert extensions(answer)["output"][0]["encrypted_content"] == "CCC"


def test_a_payload_that_comes_with_the_beginning_alone() -> None:
    answer = read(started(), item_event("added", sealed("AAA")), item_event("done", REASONING), ended())
    assert answer.segments == (Segment(T.REASONING, "", {"id": "rs_1", "encrypted": "AAA"}),)


def test_a_refusal_in_pieces() -> None:
    about = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    part = {"type": "refusal", "refusal": "No."}
    answer = read(
        started(),
        piece("No", "refusal"),
        piece(".", "refusal"),
        event("refusal.done", **about, refusal="No."),
        event("content_part.done", **about, part=part),
        ended({"type": "message", "id": "msg_1", "content": [part]}),
    )
    assert (answer.refusal, answer.text) == ("No.", "")


def test_what_is_to_come_is_nothing_yet() -> None:
    item = {
        "type": "mcp_call",
        "id": "mcp",
        "arguments": "",
        "output": None,
        "error": None,
        "server_label": None,
    }
    left = extensions(read(started(), event("output_item.added", output_index=0, item=item), ended()))[
        "output"
    ]
    assert left == [{"index": 0, "type": "mcp_call", "id": "mcp", "server_label": None}]
    item |= {"output": "early", "tools": {}}
    left = extensions(read(started(), event("output_item.added", output_index=0, item=item), ended()))[
        "output"
    ]
    assert (left[0]["output"], left[0]["tools"]) == ("early", {})


ADDED = event("output_item.added", output_index=0, item=call("", status="in_progress"))
ARGUMENTS = {"item_id": "fc_1", "output_index": 0}


@pytest.mark.parametrize(
    "events",
    [
        [ADDED, event("function_call_arguments.delta", **ARGUMENTS, delta='{"a"'), event("function_call_arguments.delta", **ARGUMENTS, delta=":1}")],
        [ADDED, event("function_call_arguments.done", **ARGUMENTS, arguments='{"a":1}')],
        [ADDED, event("output_item.done", output_index=0, item=call())],
        [ADDED],
        [event("output_item.added", output_index=0, item=call()), event("function_call_arguments.delta", **ARGUMENTS, delta='{"a":1}')],
        [event("function_call_arguments.delta", **ARGUMENTS, delta='{"a":1}')],
        [event("function_call_arguments.delta", **ARGUMENTS, delta='{"a":1}'), event("function_call_arguments.done", **ARGUMENTS, arguments='{"a":1}', name="sum")],
        [event("function_call_arguments.delta", **ARGUMENTS, delta='{"a":1}'), ADDED],
        [event("output_item.done", output_index=0, item=call())],
    ],
)  # fmt: skip
def test_a_call_in_pieces(events: list[Any]) -> None:
    answer = read(started(), *events, ended(call(status="completed")))
    assert answer.tool_calls == (ToolCall("call_1", "sum", '{"a":1}'),)
    (item,) = extensions(answer)["output"]
    item.pop("arguments", None)  # those that the first event had all at once
    assert item == {"index": 0, "type": "function_call", "id": "fc_1", "status": "completed"}


def test_arguments_that_were_revised() -> None:
    answer = read(
        started(),
        ADDED,
        event("function_call_arguments.delta", **ARGUMENTS, delta='{"b"'),
        ended(call(call_id="call_2")),
    )
    assert answer.tool_calls[0].arguments == '{"a":1}'
    assert answer.metadata.provenance["message.tool_calls[0].arguments"] is Provenance.DERIVED
    (item,) = extensions(answer)["output"]
    assert (item["streamed_arguments"], item["call_id"]) == ('{"b"', "call_2")


def test_arguments_that_the_end_of_their_pieces_revises() -> None:
    about = {**ARGUMENTS, "arguments": "{}", "name": "product"}
    answer = read(started(), ADDED, event("function_call_arguments.delta", **ARGUMENTS, delta='{"b"'), event("function_call_arguments.done", **about), ended())  # fmt: skip
    assert answer.tool_calls == (ToolCall("call_1", "sum", "{}"),)
    (item,) = extensions(answer)["output"]
    assert (item["streamed_arguments"], item["name"]) == ('{"b"', "product")


@pytest.mark.parametrize("arguments", [None, ""])
def test_a_call_without_arguments(arguments: Any) -> None:
    assert read(response(call(arguments))).tool_calls == (ToolCall("call_1", "sum", "{}"),)


@pytest.mark.parametrize("text", [None, ""])
def test_a_text_that_is_nothing(text: Any) -> None:
    answer = read(
        started(), piece("Hi"), ended({**message(""), "content": [{"type": "output_text", "text": text}]})
    )
    assert answer.text == "Hi"


def test_two_calls_that_overlap() -> None:
    items = [call(f'{{"a":{n}}}', id=f"fc_{n}", call_id=f"call_{n}") for n in (0, 1)]
    deltas = [
        event("function_call_arguments.delta", item_id=f"fc_{n}", output_index=n, delta=text)
        for n, text in ((0, '{"a"'), (1, '{"a"'), (0, ":0}"), (1, ":1}"))
    ]
    opened = [
        event("output_item.added", output_index=n, item={**item, "arguments": ""})
        for n, item in enumerate(items)
    ]
    answer = read(started(), *opened, *deltas, ended(*items))
    assert [call.arguments for call in answer.tool_calls] == ['{"a":0}', '{"a":1}']


def test_pieces_of_nothing_known() -> None:
    """Without number and id they belong to the last item, or to a new one."""
    answer = read(
        started(), event("output_text.delta", delta="A"), event("output_text.delta", delta="B"), ended()
    )
    assert answer.text == "AB"
    late = event("output_text.delta", delta="C", item_id="msg_9")
    last = event("output_text.delta", delta="D", output_index=0)
    answer = read(started(), event("output_text.delta", delta="A"), late, last, ended())
    assert extensions(answer)["output"] == [{"index": 0, "id": "msg_9"}, {"index": 1, "output_index": 0}]
    answer = read(
        started(),
        event("output_text.delta", delta="A"),
        event("output_item.done", item=message("A")),
        ended(),
    )
    assert (answer.text, extensions(answer)["output"][0]["id"]) == ("A", "msg_1")


@pytest.mark.parametrize("id", ["msg_1", None])
def test_an_item_that_is_named_in_the_end(id: Any) -> None:
    answer = read(started(), event("output_text.delta", delta="A"), ended(message("AB", id)))
    assert shown(answer) == [("text", "AB")]
    (left,) = extensions(answer)["output"]
    assert left.get("id") == id


def test_an_item_that_begins_when_it_has_been_written() -> None:
    """Repetitions of its beginning add nothing. Other values than parts stay."""
    begun = {"type": "message", "id": "msg_1", "role": "assistant"}
    parts = [output_text("He"), {"type": ["odd"]}, {"type": "refusal", "refusal": ""}]
    answer = read(started(), piece("He"), item_event("added", {**begun, "content": parts}), ended())
    assert (answer.text, extensions(answer)["output"]) == (
        "He",
        [
            {
                "index": 0,
                "id": "msg_1",
                "type": "message",
                "content": [{"type": ["odd"], "index": 1}, {**parts[2], "index": 2}],
            }
        ],
    )
    answer = read(started(), piece("He"), item_event("added", {**begun, "content": ["odd"]}), ended())
    assert extensions(answer)["output"][0]["content"] == ["odd"]


def test_an_item_that_is_named_late() -> None:
    about = {"output_index": 0, "content_index": 0}
    answer = read(
        started(),
        event("output_text.delta", **about, delta="A"),
        event("output_text.delta", **about, delta="B", item_id="msg_7"),
        event("output_text.delta", **about, delta="C", item_id="msg_8"),
        event("output_text.delta", content_index=0, delta="D", item_id="msg_7", output_index=3),
        ended(),
    )
    assert answer.text == "ABCD"
    assert extensions(answer)["output"] == [
        {"index": 0, "id": "msg_7", "item_id": "msg_8", "output_index": 3}
    ]


def test_a_number_that_comes_late() -> None:
    answer = read(started(), event("output_text.delta", item_id="m", delta="A"), event("output_text.delta", item_id="m", output_index=0, delta="B"), event("output_text.delta", item_id="m", output_index=0, delta="C"), ended())  # fmt: skip
    assert (answer.text, extensions(answer)["output"]) == (
        "ABC",
        [{"index": 0, "id": "m", "output_index": 0}],
    )


def test_other_ids_and_another_order_in_the_end() -> None:
    """OpenRouter."""
    thought = {
        "type": "reasoning",
        "id": "rs_x",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "Hm"}],
    }
    answer = read(
        started(),
        *stream_of_text("4"),
        event("reasoning_text.delta", item_id="rs_y", output_index=1, content_index=0, delta="Hm"),
        event("output_item.done", output_index=1, item={**thought, "id": "rs_y"}),
        ended(thought, message("4", "msg_z")),
    )
    assert shown(answer) == [("text", "4"), ("reasoning", "Hm")]
    assert [item["id"] for item in extensions(answer)["output"]] == ["msg_z", "rs_x"]


@pytest.mark.sweep
def test_many_items_and_parts() -> None:
    """As many as there may be: each is found without looking at the others."""
    count = 1000
    texts = [output_text("a")] * count
    numbers = range(count)
    items = [message("a", f"msg_{n}") for n in numbers]
    pieces = [piece("a") | {"output_index": n, "item_id": f"msg_{n}"} for n in numbers]
    answer = read(started(), *pieces, ended(*reversed(items)))
    assert (answer.text, len(answer.segments)) == ("a" * count, count)
    pieces = [piece("a") | {"content_index": n} for n in numbers]
    answer = read(started(), *pieces, ended({**message(""), "content": texts}))
    assert (answer.text, len(answer.segments)) == ("a" * count, count)


# Parts that the stream numbers otherwise than the item does: the item wins, and each text is there once.


def text_event(kind: str, number: int, text: str) -> dict[str, Any]:
    """An event of one text: a ``delta``, its whole ``text``, or its ``part`` that is ``added`` or ``done``."""
    at = {"item_id": "msg_1", "output_index": 0, "content_index": number}
    if kind == "delta":
        return event("output_text.delta", **at, delta=text)
    if kind == "text":
        return event("output_text.done", **at, text=text)
    return event(f"content_part.{kind}", **at, part=output_text(text))


BEGUN = [started(), event("output_item.added", output_index=0, item={**message(""), "content": []})]


@pytest.mark.parametrize(
    "events",
    [
        [("delta", 1, "Hi")],
        [("added", 1, ""), ("delta", 1, "Hi"), ("text", 1, "Hi"), ("done", 1, "Hi")],
        [("added", 1, ""), ("delta", 1, "Hi"), ("text", 0, "Hi"), ("done", 0, "Hi")],
        [("added", 0, ""), ("delta", 1, "Hi"), ("text", 1, "Hi"), ("done", 0, "Hi")],
        [("added", 0, ""), ("delta", 1, "H"), ("delta", 1, "i"), ("done", 0, "Hi")],
        [("delta", 7, "H"), ("text", 0, "Hi")],
    ],
)
def test_the_number_of_a_part_may_differ_in_the_item(events: list[tuple[str, int, str]]) -> None:
    end = message("Hi")
    streamed = [text_event(*said) for said in events]
    for last in ([ended(end)], [event("output_item.done", output_index=0, item=end), ended(end)]):
        answer = read(*BEGUN, *streamed, *last)
        assert (answer.text, answer.is_complete) == ("Hi", True)
        assert "message.content" not in answer.metadata.provenance


def test_several_parts_are_numbered_as_the_item_does() -> None:
    end = {**message(""), "content": [output_text("Hi"), output_text(" you")]}
    streamed = [text_event("delta", 1, "Hi"), text_event("delta", 2, " yo")]
    assert read(*BEGUN, *streamed, ended(end)).text == "Hi you"


def test_a_refusal_between_does_not_move_a_text() -> None:
    refusal = {"type": "refusal", "refusal": "No."}
    end = {**message(""), "content": [output_text("Hi"), refusal, output_text(" you")]}
    streamed = [text_event("delta", 0, "Hi"), text_event("delta", 2, " you")]
    answer = read(*BEGUN, *streamed, ended(end))
    assert (answer.text, answer.refusal) == ("Hi you", "No.")


@pytest.mark.parametrize(
    ("events", "texts"),
    [
        ([("delta", 0, "Hi"), ("text", 0, "Hi"), ("text", 1, "Hi you")], ("Hi", "Hi you")),
        ([("added", 0, ""), ("delta", 0, "Hi"), ("added", 1, ""), ("done", 1, "Ho")], ("Hi", "Ho")),
        ([("delta", 0, "a"), ("delta", 1, "a"), ("text", 2, "ab")], ("a", "a", "ab")),
    ],
)
def test_a_whole_part_of_its_own_is_no_repetition(
    events: list[tuple[str, int, str]], texts: tuple[str, ...]
) -> None:
    end = {**message(""), "content": [*map(output_text, texts)]}
    assert read(*BEGUN, *(text_event(*said) for said in events), ended(end)).text == "".join(texts)


def test_a_part_between_pieces_that_repeat_is_corrected_once() -> None:
    said = [("delta", 0, "a"), ("delta", 0, "b"), ("delta", 0, "c"), ("delta", 1, "x"), ("delta", 0, "d")]
    whole = [("text", 0, "abcd"), ("done", 0, "abcd")]
    events = [*BEGUN, *(text_event(*one) for one in said + whole), ended(message("abcd"))]
    deltas = []
    for read_one, encode in (
        (Reader.read, lambda one: b"data: %b\n\n" % orjson.dumps(one)),
        (Reader.read_event, dict),
    ):
        reader = Reader(registry.mapper("openai_responses"))
        deltas.append([delta for one in events for delta in read_one(reader, encode(one))])
    assert deltas[0] == deltas[1]


# Open Responses.


def test_an_event_of_a_vendors_own_is_kept_and_changes_nothing() -> None:
    traces = [{"type": "acme:trace_event", "id": "t", "span": span, "sequence_number": 2} for span in "ab"]
    answer = read(started(sequence_number=1), *traces, ended(message("Hi")))
    assert (answer.id, answer.text, answer.is_complete) == ("resp_1", "Hi", True)
    spans = [trace["span"] for trace in extensions(answer)["acme:trace_event"]]
    assert spans == ["a", "b"]


@pytest.mark.parametrize("kind", ["response.acme.trace_event", "trace_event", 5])
def test_an_event_without_the_mark_of_a_vendor_is_unknown(kind: Any) -> None:
    with pytest.raises(UnknownEventError):
        read(started(), {"type": kind})


def test_numbers_that_are_used_twice() -> None:
    """The last item of a number is meant, even if an earlier one gets it later. An id counts more."""
    about = {"content_index": 0, "delta": "A"}
    answer = read(
        started(),
        event("output_text.delta", **about, item_id="x"),
        item_event("added", message("", "y")),
        event("output_text.delta", **about, output_index=0),
        event("output_text.delta", **about, output_index=0, item_id="x"),
        event("output_text.delta", **about, output_index=0),
        item_event("added", message("", "z")),
        event("output_text.delta", **about, output_index=0),
        ended(),
    )
    assert [item["id"] for item in extensions(answer)["output"]] == ["x", "y", "z"]
    assert shown(answer) == [("text", "A")] * 5


def test_citations_in_pieces() -> None:
    notes = [{"type": "url_citation", "url": f"u{n}", "title": "t"} for n in (0, 1)]
    about = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    whole = {**message(""), "content": [output_text("Hi", annotations=notes)]}
    answer = read(
        started(),
        piece("Hi"),
        event("output_text.annotation.added", **about, annotation_index=0, annotation=notes[0]),
        event("output_text.annotation.added", **about, annotation=notes[1]),
        event("output_text.annotation.added", **about, annotation_index=2, annotation=None),
        ended(whole),
    )
    assert [segment.annotations[0].source for segment in answer.segments[1:]] == ["u0", "u1"]
    assert extensions(answer) == {"output": [{"index": 0, "id": "msg_1", "type": "message"}]}


def test_a_citation_out_of_turn() -> None:
    about = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    note = {"type": "url_citation", "url": "u"}
    one = event("output_text.annotation.added", **about, annotation_index=1, annotation=note)
    answer = read(
        started(),
        piece("Hi"),
        one,
        one,
        ended({**message(""), "content": [output_text("Hi", annotations=[note])]}),
    )
    assert [segment.type for segment in answer.segments] == [T.TEXT, T.CITATION, T.CITATION]
    (part,) = extensions(answer)["output"][0]["content"]
    assert part["annotation_index"] == 1


def test_a_citation_does_not_end_its_text() -> None:
    about = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    note = event(
        "output_text.annotation.added", **about, annotation_index=0, annotation={"type": "x", "url": "u"}
    )
    answer = read(started(), piece("A"), note, piece("B"), ended())
    assert answer.text == "AB"
    assert ("text", "") not in shown(answer)


def test_commands_of_a_shell() -> None:
    about = {"output_index": 0, "command_index": 0}
    answer = read(
        started(),
        event(
            "output_item.added",
            output_index=0,
            item={"type": "shell_call", "id": "sh", "call_id": "c", "action": {}},
        ),
        event("shell_call_command.added", **about, command=""),
        event("shell_call_command.delta", **about, delta="l", obfuscation="x"),
        event("shell_call_command.delta", **about, delta="s", obfuscation="y"),
        event("shell_call_command.done", **about, command="ls"),
        event("shell_call_output_content.delta", **about, delta={"stdout": "a"}),
        event("shell_call_output_content.done", **about, output=[{"stdout": "a"}]),
        ended(),
    )
    (item,) = extensions(answer)["output"]
    assert item["shell_call_command"] == [{"index": 0, "delta": ["l", "s"]}]
    assert item["shell_call_output_content"] == [
        {"index": 0, "delta": [{"stdout": "a"}], "output": [{"stdout": "a"}]}
    ]
    assert answer.finish_reason == "stop"


@pytest.mark.parametrize("operation", [-1, "update", [{}], True])
def test_an_action_that_is_no_object_stays_as_it_was_sent(operation: Any) -> None:
    patch = {"type": "apply_patch_call", "id": "p", "call_id": "c", "operation": operation}
    answer = read(response(patch))
    (tool_call,) = answer.message.tool_calls or ()
    assert (tool_call.name, tool_call.arguments) == ("apply_patch_call", "{}")
    assert extensions(answer)["output"][0]["operation"] == operation


def test_the_whole_of_what_was_said_otherwise() -> None:
    about = {"item_id": "mcp", "output_index": 0}
    said = [
        event("mcp_call_arguments.delta", **about, delta="{"),
        event("mcp_call_arguments.done", **about, arguments="{}"),
    ]
    assert extensions(read(started(), *said, ended()))["output"] == [
        {"index": 0, "id": "mcp", "mcp_call_arguments": {"delta": ["{"], "arguments": "{}"}}
    ]


def test_a_preview_of_an_image() -> None:
    shown = event(
        "image_generation_call.partial_image",
        item_id="ig",
        output_index=0,
        partial_image_index=0,
        partial_image_b64="iV",
    )
    assert extensions(read(started(), shown, ended()))["output"] == [
        {"index": 0, "id": "ig", "partial_image_index": 0, "partial_image_b64": "iV"}
    ]


def test_audio() -> None:
    answer = read(
        started(),
        event("audio.delta", delta="UklG"),
        event("audio.delta", delta=""),
        event("audio.done"),
        event("audio.transcript.delta", delta="Hi"),
        event("audio.transcript.delta", delta=""),
        event("audio.transcript.done"),
        ended(),
    )
    assert answer.segments == (
        Segment(T.MEDIA, "UklG", {"type": "audio", "encoding": "base64", "transcript": "Hi"}),
    )


KEEP_ALIVE = {"type": "keepalive"}


def unnumbered(events: list[Any]) -> list[Any]:
    return events


def counted(events: list[Any]) -> list[Any]:
    return [{**one, "sequence_number": number} for number, one in enumerate(events)]


def numbered_apart(events: list[Any]) -> list[Any]:
    numbers = iter(range(len(events)))
    return [{**one, "sequence_number": 0 if one is KEEP_ALIVE else next(numbers)} for one in events]


@pytest.mark.parametrize("sent", [unnumbered, counted, numbered_apart])
def test_keep_alives_change_nothing_wherever_they_stand(sent: Callable[[list[Any]], list[Any]]) -> None:
    """OpenAI sends them while a model takes its time, and counts them like other events."""
    done = {**item_event("done", call()), "output_index": 1}
    events = [started(), *stream_of_text("He", "l", "l", "o", "!"), done, ended(message("Hello!"), call())]
    expected = read(*sent(events))
    assert (expected.text, expected.finish_reason) == ("Hello!", FinishReason.TOOL_CALLS)
    for place in range(len(events) + 1):
        answer = read(*sent([*events[:place], KEEP_ALIVE, KEEP_ALIVE, *events[place:]]))
        assert answer.same_content(expected)
        assert answer.metadata.extensions == expected.metadata.extensions


@pytest.mark.parametrize("provider", ["openai", "xai", "vllm", "ollama", "llamacpp"])
def test_an_answer_that_begins_with_a_keep_alive_is_read_whoever_serves_it(provider: str) -> None:
    """It tells the dialect of the answer."""
    answer = read(KEEP_ALIVE, started(), *stream_of_text("Hi"), ended(message("Hi")), provider=provider)
    assert (answer.text, answer.metadata.provider_id) == ("Hi", provider)


@pytest.mark.parametrize("provider", ["openai_responses", "openai", "vllm"])
@pytest.mark.parametrize("numbered", [False, True])
def test_parts_of_reasoning(numbered: bool, provider: str) -> None:
    """vLLM's gpt-oss and Amazon Bedrock tell of them as OpenAI tells of parts of a message."""
    about = {"item_id": "rs_1", "output_index": 0, **({"content_index": 0} if numbered else {})}
    whole = {"type": "reasoning_text", "text": "Hmm."}
    item = {**REASONING, "content": [whole]}
    answer = read(
        started(),
        item_event("added", REASONING),
        event("reasoning_part.added", **about, part={"type": "reasoning_text", "text": ""}),
        event("reasoning_text.delta", **about, delta="Hm"),
        event("reasoning_text.delta", **about, delta="m."),
        event("reasoning_text.done", **about, text="Hmm."),
        event("reasoning_part.done", **about, part=whole),
        item_event("done", item),
        ended(item, message("Hi")),
        provider=provider,
    )
    assert shown(answer) == [("reasoning", "Hmm."), ("text", "Hi")]
    assert extensions(answer)["output"][0] == {"index": 0, "type": "reasoning", "id": "rs_1"}
    assert shown(read(started(), event("reasoning_part.done", **about, part=whole), ended())) == [
        ("reasoning", "Hmm.")
    ]


def test_the_diff_of_a_patch_in_pieces() -> None:
    about = {"item_id": "apc_1", "output_index": 0}
    item = {"type": "apply_patch_call", "id": "apc_1", "call_id": "call_1", "status": "in_progress"}
    operation = {"type": "update_file", "path": "p", "diff": "@@\n-1\n+2"}
    done = {**item, "status": "completed", "operation": operation}
    answer = read(
        started(),
        item_event("added", {**item, "operation": {**operation, "diff": ""}}),
        event("apply_patch_call_operation_diff.delta", **about, delta="@@\n", obfuscation="x"),
        event("apply_patch_call_operation_diff.delta", **about, delta="-1\n+2"),
        event("apply_patch_call_operation_diff.done", **about, diff=operation["diff"]),
        item_event("done", done),
        ended(done),
    )
    assert answer.tool_calls == (
        ToolCall("call_1", "apply_patch_call", orjson.dumps({"operation": operation}).decode()),
    )
    (left,) = extensions(answer)["output"]
    assert left["apply_patch_call_operation_diff"] == {"delta": ["@@\n", "-1\n+2"]}
    with pytest.raises(IncompleteStreamError) as caught:
        read(started(), event("apply_patch_call_operation_diff.done", **about, diff="@@"))
    assert caught.value.partial is not None
    assert extensions(caught.value.partial)["output"][0]["apply_patch_call_operation_diff"] == {"diff": "@@"}


def test_input_that_joins_a_response_is_kept() -> None:
    """On a WebSocket."""
    steer = {"id": "s", "previous_response_id": "resp_1"}
    answer = read(started(), event("steer.accepted", steer=steer), ended(message("Hi")))
    assert (answer.text, extensions(answer)["steer"]) == ("Hi", steer)


X_CALL = {"type": "custom_tool_call", "call_id": "xs_call_1", "id": "ctc_1", "name": "x_keyword_search"}
X_TOOLS = [{"type": "x_search"}]


def x_search_stream(tools: Any) -> list[dict[str, Any]]:
    """A search on X and what came of it, as xAI streams it."""
    about = {"item_id": "ctc_1", "output_index": 0}
    done = {**X_CALL, "input": '{"query":"q"}', "status": "completed"}
    return [
        started(tools=tools),
        item_event("added", {**X_CALL, "input": "", "status": "in_progress"}),
        event("custom_tool_call_input.delta", **about, delta='{"query":"q"}'),
        event("custom_tool_call_input.done", **about, input='{"query":"q"}'),
        item_event("done", done),
        *stream_of_text("Found.", index=1),
        ended(done, message("Found.", status="completed"), tools=tools),
    ]


@pytest.mark.parametrize("streamed", [False, True])
def test_a_custom_tool_that_nobody_declared_is_the_servers(streamed: bool) -> None:
    """xAI writes its searches on X like calls of the client's custom tools, and answers them itself."""
    events = x_search_stream(X_TOOLS)
    answer = read(*events) if streamed else read(events[-1]["response"])
    assert answer.segments == (
        Segment(
            T.TOOL_CALL,
            '{"query":"q"}',
            {**X_CALL, "status": "completed"},
        ),
        Segment(T.TEXT, "Found."),
    )
    assert (answer.finish_reason, answer.tool_calls) == (FinishReason.STOP, ())
    left = extensions(answer)["output"][0]
    begun = {
        "call_id": "xs_call_1",
        "name": "x_keyword_search",
        "custom_tool_call_input": {"delta": ['{"query":"q"}']},
    }
    assert left == {"index": 0, "type": "custom_tool_call", "id": "ctc_1", "status": "completed"} | (
        begun if streamed else {}
    )


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    "tools",
    [
        [*X_TOOLS, {"type": "custom", "name": "x_keyword_search"}],
        [{"type": "namespace", "name": "n", "tools": [{"type": "custom", "name": "x_keyword_search"}]}],
        [*X_TOOLS, {"type": "tool_search"}],  # what it finds is declared nowhere
        [{"type": "namespace", "name": "n", "tools": [{"type": "tool_search"}]}],
        [],  # some servers do not repeat the tools
        None,
        "x_search",
    ],
)
def test_a_custom_tool_that_may_have_been_declared_is_the_clients(tools: Any, streamed: bool) -> None:
    events = x_search_stream(tools)
    answer = read(*events) if streamed else read(events[-1]["response"])
    assert answer.tool_calls == (ToolCall("xs_call_1", "x_keyword_search", '{"query":"q"}', CallKind.CUSTOM),)
    assert answer.finish_reason is FinishReason.TOOL_CALLS


@pytest.mark.parametrize(
    ("events", "error"),
    [
        ([{**X_CALL, "namespace": "n"}], None),  # of tools that came later
        ([{**X_CALL, "name": None}], MappingError),  # nobody knows whose
    ],
)
def test_whose_a_custom_call_is_where_more_is_known_of_it(events: list[Any], error: Any) -> None:
    body = response({**events[0], "input": "{}"}, tools=["?", *X_TOOLS])
    if error is None:
        assert read(body).finish_reason is FinishReason.TOOL_CALLS
    else:
        with pytest.raises(error):
            read(body)


def test_a_custom_call_whose_input_comes_first_is_the_clients() -> None:
    """Nothing tells its name when its first piece has to be shown."""
    _, _, *events = x_search_stream(X_TOOLS)
    answer = read(started(tools=X_TOOLS), *events)
    assert answer.tool_calls == (ToolCall("xs_call_1", "x_keyword_search", '{"query":"q"}', CallKind.CUSTOM),)


def test_parts_of_a_type_that_is_not_known() -> None:
    about = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    part = {"type": "output_light", "lumen": 3}
    answer = read(
        started(), event("content_part.added", **about, part=part), ended({**message(""), "content": [part]})
    )
    assert extensions(answer)["output"][0]["content"] == [{"index": 0, **part}]


def test_items_in_the_making_are_kept() -> None:
    """A stream that is taken up again begins with what there was."""
    with pytest.raises(IncompleteStreamError) as caught:
        read(event("in_progress", response=response(message("Hi"), status="in_progress")))
    assert caught.value.partial is not None
    assert extensions(caught.value.partial)["output"][0]["content"][0]["text"] == "Hi"


def test_numbers_in_order_are_no_news() -> None:
    numbered = [{**one, "sequence_number": n} for n, one in enumerate([started(), piece("A"), ended()])]
    assert extensions(read(*numbered))["sequence_number"] == 0
    numbered[1]["sequence_number"] = 7
    assert extensions(read(*numbered))["sequence_number"] == 2
    assert extensions(read({**started(), "sequence_number": "x"}, ended()))["sequence_number"] == "x"


def test_what_an_event_has_beside_a_response_of_the_same_name() -> None:
    answer = read({**started(temperature=1), "temperature": 2, "model": "n"}, ended())
    left = extensions(answer)
    assert (left["temperature"], left["event_temperature"], left["event_model"]) == (1, 2, "n")


# Several answers in one input.


def numbered_answer(id: str, text: str) -> list[dict[str, Any]]:
    """A separate stream: from ``created`` to ``completed``."""
    return [
        event("created", response=response(status="in_progress", id=id)),
        piece(text),
        event("completed", response=response(message(text), id=id)),
    ]


SECOND_ANSWERS: dict[str, list[dict[str, Any]]] = {
    "two bodies": [response(message("A"), id="r1"), response(message("B"), id="r2")],
    "one body twice": [response(message("A")), response(message("A"))],
    "two streams": [*numbered_answer("r1", "A"), *numbered_answer("r2", "B")],
    "one stream twice": [*numbered_answer("r1", "A"), *numbered_answer("r1", "A")],
    "a body and a stream": [response(message("A")), started()],
    "two beginnings": [started(), started()],
    "a beginning after the end": [started(), ended(), event("in_progress", response=response(status=None))],
    "two ends": [started(), ended(), ended()],
    "an end of another kind": [started(), ended(), event("failed", response=response(status="failed"))],
    "a failure and another answer": [
        response(status="failed", error={"code": "x", "message": "Oh."}, id="r1"),
        response(message("B"), id="r1"),
    ],
}


@pytest.mark.parametrize("events", SECOND_ANSWERS.values(), ids=SECOND_ANSWERS)
@pytest.mark.parametrize("keep", [False, True])
def test_a_second_answer(events: list[dict[str, Any]], keep: bool) -> None:
    with pytest.raises(TrailingContentError):
        read(*events, keep=keep)


@pytest.mark.parametrize("sse", [False, True])
def test_a_second_answer_in_bytes(sse: bool) -> None:
    events = SECOND_ANSWERS["two streams" if sse else "two bodies"]
    data = [orjson.dumps(one) for one in events]
    payload = b"".join(b"data: %b\n\n" % one for one in data) if sse else b"\n".join(data)
    with pytest.raises(TrailingContentError) as caught:
        normalize(payload, "openai_responses")
    assert caught.value.partial is not None
    assert caught.value.partial.text == "A"


def test_one_answer_that_is_told_of_again_and_again() -> None:
    """Its id may be missing, come late, or be another one each time: some gateways make one for each event."""
    about = {"object": "response", "status": "queued"}
    answer = read(
        event("queued", response=about),
        event("created", response={**about, "id": ""}),
        event("in_progress", response={**about, "id": "r1"}),
        event("in_progress", response=about),
        ended(message("A"), id="r2"),
    )
    assert (answer.id, answer.text, extensions(answer)["id"]) == ("r1", "A", "r2")


# Errors.


@pytest.mark.parametrize(
    ("event", "kind", "code", "text", "retryable"),
    [
        ({"type": "error", "code": "server_error", "message": "Oh.", "param": None}, "server", "server_error", "Oh.", True),
        ({"type": "error", "code": None, "message": "Oh."}, "unknown", None, "Oh.", False),
        ({"type": "error", "error": {"type": "tokens", "code": "rate_limit_exceeded", "message": "Slow."}}, "rate_limit", "rate_limit_exceeded", "Slow.", True),
        ({"error": {"code": 500, "message": "Oh.", "type": "server_error"}}, "server", "server_error", "Oh.", True),
        ({"object": "error", "message": "model x does not exist", "code": 404}, "model_unavailable", "404", "model x does not exist", False),
        ({"type": "error", "code": "bio_policy", "message": "No."}, "content_filter", "bio_policy", "No.", False),
        ({"type": "error", "code": "vector_store_timeout", "message": "Late."}, "timeout", "vector_store_timeout", "Late.", True),
        ({"type": "error", "code": "image_too_large", "message": "Big."}, "invalid_request", "image_too_large", "Big.", False),
        ({"type": "error", "code": "invalid_prompt", "message": "Bad."}, "invalid_request", "invalid_prompt", "Bad.", False),
    ],
)  # fmt: skip
def test_error_events(event: dict[str, Any], kind: str, code: Any, text: str, retryable: bool) -> None:
    answer = read(started(), piece("Once"), event)
    info = answer.error_info
    assert info is not None
    assert (info.kind, info.code, info.message, info.retryable) == (ErrorKind(kind), code, text, retryable)
    assert info.raw == event
    assert answer.text == "Once"


def test_a_failed_response() -> None:
    failed = response(status="failed", error={"code": "rate_limit_exceeded", "message": "Slow."}, store=True)
    answer = read(started(), piece("Once"), event("failed", response=failed))
    assert answer.error_info is not None
    assert (answer.error_info.kind, answer.raw_finish_reason) == (
        ErrorKind.RATE_LIMIT,
        "failed:rate_limit_exceeded",
    )
    assert (answer.text, extensions(answer)["store"]) == ("Once", True)
    assert answer.error_info.raw == failed["error"]
    assert read(failed).raw_finish_reason == "failed:rate_limit_exceeded"


def test_an_error_that_is_told_twice() -> None:
    """OpenAI sends an event for it, then the failed response."""
    error = {"type": "error", "error": {"code": "server_error", "message": "Oh."}}
    failed = event(
        "failed", response=response(status="failed", error={"code": "server_error", "message": "Oh!"})
    )
    assert [segment.content for segment in read(started(), error, failed).segments] == ["Oh.", "Oh!"]


@pytest.mark.parametrize("error", ["", {}, False])
def test_an_error_that_is_none(error: Any) -> None:
    answer = read(response(error=error))
    assert (answer.finish_reason, extensions(answer)["error"]) == (FinishReason.STOP, error)


@pytest.mark.parametrize("error", ["crosswalk", True, ["x"]])
def test_an_error_of_another_type(error: Any) -> None:
    assert read(response(error=error)).finish_reason == "error"
    assert read(response(status="failed", error={"code": 7})).raw_finish_reason == "failed"


def test_http_errors() -> None:
    body = orjson.dumps({"error": {"message": "Too long.", "type": "x", "code": "context_length_exceeded"}})
    answer = normalize(body, "openai_responses", status=400)
    assert answer.error_info is not None
    assert (answer.error_info.kind, answer.error_info.status) == (ErrorKind.CONTEXT_OVERFLOW, 400)
    answer = normalize(b"", "openai_responses", status=502)
    assert answer.error_info is not None
    assert answer.error_info.raw is None


@pytest.mark.parametrize(
    "unknown",
    [{"type": "response.hologram.delta", "delta": "x"}, {"type": 7}, {}, {"object": "list"}, {"output": "x"}],
)
def test_unknown_events(unknown: dict[str, Any]) -> None:
    with pytest.raises(UnknownEventError):
        read(started(), unknown)
    left = extensions(read(started(), unknown, ended(), keep=True))
    assert unknown.items() <= left.items()


@pytest.mark.parametrize(
    "wrong",
    [
        7,
        event("created"),
        event("completed", response=[]),
        response(output=[7]),
        response(output={}),
        response(incomplete_details="x"),
        response(message("x") | {"content": "text"}),
        response(message("x") | {"content": ["text"]}),
        response(message("x") | {"content": [output_text(7)]}),  # type: ignore[arg-type]
        response(call(7)),
        response(call(call_id=7)),
        response({"type": 7}),
        response(status="incomplete", incomplete_details={"reason": 7}),
        response({"type": "function_call_output", "id": 7}),
        response(status=7),
        event("output_item.added", item=7),
        event("output_item.done", item=None),
        event("content_part.added", part="x"),
        event("output_text.delta", delta=7),
        event("output_text.delta", delta="x", output_index="0"),
        event("output_text.delta", delta="x", item_id=7),
        event("output_text.delta", delta="x", content_index=-1),
        event("function_call_arguments.done", arguments="{}", name=7),
    ],
)
def test_wrong_types(wrong: Any) -> None:
    with pytest.raises(WireTypeError):
        read(wrong)


def at(value: Any, path: str) -> Any:
    """The value at *path* of *value*."""
    for key in path.replace("[", ".").replace("]", "").split("."):
        value = value[int(key) if type(value) is list else key]
    return value


NOTE = {"type": "url_citation", "title": "t", "url": "u", "start_index": 0, "end_index": 1}
TOKEN = {"token": "Hi", "logprob": -0.5, "bytes": [72, 105], "top_logprobs": []}
SIDE_FIELDS: list[tuple[list[Any], str, Any]] = [
    ([response(created_at="then")], "created_at", "then"),
    ([response(usage={"input_tokens": 5, "output_tokens": -9})], "usage.output_tokens", -9),
    ([response(usage={"input_tokens": 5, "output_tokens": 1, "total_tokens": "6"})], "usage.total_tokens", "6"),
    ([response(usage={"input_tokens": "5"})], "usage.input_tokens", "5"),
    ([response(usage={"input_tokens": 2**63})], "usage.input_tokens", 2**63),
    ([response(usage=[5])], "usage", [5]),
    ([response(usage={"input_tokens_details": {"cached_tokens": 0.5}})], "usage.input_tokens_details.cached_tokens", 0.5),
    ([response(usage={"output_tokens_details": 0})], "usage.output_tokens_details", 0),
    ([response(message("Hi", phase=7))], "output[0].phase", 7),
    ([response({"type": "reasoning", "id": "r", "encrypted_content": 7})], "output[0].encrypted_content", 7),
    ([response({"type": "image_generation_call", "id": "i", "result": 7})], "output[0].result", 7),
    ([response({"type": "code_interpreter_call", "code": 7, "outputs": []})], "output[0].code", 7),
    ([response({"type": "web_search_call", "action": "q"})], "output[0].action", "q"),
    ([response({"type": "web_search_call", "arguments": {"q": 1}})], "output[0].arguments", {"q": 1}),
    ([response({"type": "file_search_call", "queries": {"q": 1}})], "output[0].queries", {"q": 1}),
    ([response({**message(""), "content": [output_text("Hi", annotations="x")]})], "output[0].content[0].annotations", "x"),
    ([response({**message(""), "content": [output_text("Hi", annotations=["x"])]})], "output[0].content[0].annotations[0]", "x"),
    ([response({**message(""), "content": [output_text("Hi", annotations=[{**NOTE, "url": 7}])]})], "output[0].content[0].annotations[0].url", 7),
    ([response({**message(""), "content": [output_text("Hi", annotations=[{**NOTE, "start_index": -1}])]})], "output[0].content[0].annotations[0].start_index", -1),
    ([response({**message(""), "content": [output_text("Hi", logprobs=7)]})], "output[0].content[0].logprobs", 7),
    ([response({**message(""), "content": [output_text("Hi", logprobs=[{**TOKEN, "bytes": "Hi"}])]})], "output[0].content[0].logprobs[0].bytes", "Hi"),
    ([started(), item_event("added", sealed(7)), ended()], "output[0].encrypted_content", 7),
    ([started(), piece("Hi", logprobs=7), ended()], "output[0].content[0].logprobs", 7),
    ([started(), piece("Hi"), event("output_text.done", item_id="msg_1", output_index=0, content_index=0, text="Hi", logprobs=[7]), ended()], "output[0].content[0].logprobs", [7]),
    ([started(), event("output_text.annotation.added", annotation="x"), ended()], "annotation", "x"),
    ([started(), event("output_text.annotation.added", annotation_index="0", annotation=NOTE), ended()], "annotation_index", "0"),
    ([started(), event("output_text.annotation.added", annotation={**NOTE, "file_id": 7}), ended()], "annotation.file_id", 7),
    ([started(), event("mcp_call_arguments.delta", delta=7), ended()], "delta", 7),
    ([started(), event("shell_call_command.delta", delta="l", command_index="0"), ended()], "command_index", "0"),
    ([started(), event("audio.delta", delta=7), ended()], "delta", 7),
    ([started(), event("audio.transcript.delta", delta=7), ended()], "delta", 7),
]  # fmt: skip


@pytest.mark.parametrize(("events", "path", "left"), SIDE_FIELDS, ids=lambda value: str(value)[-40:])
def test_a_side_field_of_another_type_costs_the_field_not_the_answer(
    events: list[Any], path: str, left: Any
) -> None:
    answer = read(*events)
    assert answer.finish_reason is FinishReason.STOP
    assert at(extensions(answer), path) == left
    assert answer.metadata.provenance[f"metadata.extensions.{path}"] is Provenance.MISTYPED
    assert answer.text in ("", "Hi")
    assert len([word for word in answer.metadata.provenance.values() if word is Provenance.MISTYPED]) == 1


def test_a_count_below_zero_is_no_count() -> None:
    """o4-mini-deep-research was seen to send one."""
    usage = {"input_tokens": 5, "output_tokens": -9, "total_tokens": -4}
    answer = read(response(message("Hi"), usage=usage))
    assert (answer.text, answer.usage) == ("Hi", UsageInfo(5, 0))
    assert answer.metadata.provenance["usage.completion_tokens"] is Provenance.ABSENT
    assert extensions(answer)["usage"] == {"output_tokens": -9, "total_tokens": -4}


def test_what_is_amiss_with_a_citation_is_all_that_is_left_of_it() -> None:
    item = {**message(""), "content": [output_text("Hi", annotations=[{**NOTE, "url": 7, "x": 1}])]}
    answer = read(started(), item_event("done", item), ended(item))
    assert answer.segments[1] == Segment(
        T.CITATION, "t", {"type": "url_citation", "x": 1}, (CitationRef(None, None, (0, 1)),)
    )
    (left,) = extensions(answer)["output"][0]["content"]
    assert left == {"index": 0, "annotations": [{"url": 7}]}


def test_of_a_body_that_cannot_be_read_to_its_end_the_beginning_is_kept() -> None:
    with pytest.raises(WireTypeError) as caught:
        read(response(message("Hi"), call(7)))
    assert caught.value.place == "event 1, output[1].arguments"
    assert caught.value.partial is not None
    assert caught.value.partial.text == "Hi"
    with pytest.raises(WireTypeError) as caught:
        read(started(), ended(message("Hi"), message("x", "msg_2") | {"content": [{"type": 7}]}))
    assert caught.value.place == "event 2, response.output[1].content[0].type"


def test_a_call_without_a_name_is_an_error() -> None:
    with pytest.raises(MappingError):
        read(response(call(name=None)))


# Detection, and other servers.


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (response(), Recognition.POSSIBLE),
        (started(), Recognition.POSSIBLE),
        (ended(), Recognition.POSSIBLE),
        (piece("x"), Recognition.POSSIBLE),
        ({"error": {"message": "x"}}, Recognition.POSSIBLE),
        ({"type": "message_start"}, Recognition.NO),
        ({"type": 7}, Recognition.NO),
        ({"choices": []}, Recognition.NO),
        ([], Recognition.NO),
    ],
)
def test_recognition(payload: Any, expected: Recognition) -> None:
    assert plugin.recognizes(payload) is expected


def test_a_server_that_speaks_it_too() -> None:
    known = Registry(installed=[], environ={})
    known.register(DialectFamily(OpenAIChatDialect(), ResponsesDialect()), "elsewhere")
    answer = normalize(orjson.dumps(response(message("Hi"))), "elsewhere", registry=known)
    assert (answer.text, answer.metadata.provider_id) == ("Hi", "elsewhere")


def test_the_description() -> None:
    info = plugin.provider_info()
    assert info.endpoints == ("/v1/responses",)
    assert "output[].shell_call_command[].delta" in info.pieces


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ({"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}, (5, 2, None)),
        ({"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 3}}, (5, 0, 3)),
        ({"input_tokens": 4, "output_tokens": 1, "prompt_tokens": 9}, (4, 1, None)),
    ],
)
def test_counts_under_the_names_of_chat(usage: dict[str, Any], counts: tuple[int, int, int | None]) -> None:
    """Proxies that translate Chat Completions leave them so. The API's own names come first."""
    body = {
        "id": "r",
        "object": "response",
        "status": "completed",
        "model": "m",
        "output": [],
        "usage": usage,
    }
    found = normalize(body, "openai_responses").usage
    assert (found.prompt_tokens, found.completion_tokens, found.cached_tokens) == counts


@pytest.mark.parametrize("odd", [False, 0, ""])
def test_an_annotation_that_is_no_object_stays(odd: Any) -> None:
    found = read(response({"type": "message", "id": "m", "content": [output_text("Hi", annotations=[odd])]}))
    assert found.text == "Hi"
    assert extensions(found)["output"][0]["content"] == [{"index": 0, "annotations": [odd]}]
