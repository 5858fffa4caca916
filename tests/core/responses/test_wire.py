"""One knowledge of the wire: the table, the typed records, what adds events up, and the provider plugin hold together."""

from __future__ import annotations

import typing
from pathlib import Path
from typing import Any

import pytest

from crosswalk import ChatResponse, FinishReason, SegmentType, UnknownEventError
from crosswalk.codec.canonical import json_types
from crosswalk.codec.layout import without_none
from crosswalk.mapping.reader import Reader, ReaderOptions
from crosswalk.plugin.registry import registry
from crosswalk.responses import (
    IncompleteDetailsReason,
    Response,
    ResponseAccumulator,
    ResponseStatus,
    UnknownTypeError,
    parse_event,
    parse_item,
    to_dict,
)
from crosswalk.responses.accumulator import END_EVENTS, EVENT_CLASSES, FOLDS_OF, ITEM_CLASSES, PART_CLASSES
from crosswalk.responses.records import keys_of
from crosswalk.testing import Capture, load_captures
from crosswalk.wire.responses import (
    EVENTS,
    FINISH_REASONS,
    ITEMS,
    LISTS,
    PARTS,
    PENDING,
    EventRole,
    ItemRole,
)
from crosswalk_openai_responses import HANDLERS

ROOT = Path(__file__).parents[3]

# What there is.


@pytest.mark.parametrize(
    ("classes", "table"), [(EVENT_CLASSES, EVENTS), (ITEM_CLASSES, ITEMS), (PART_CLASSES, PARTS)]
)
def test_what_is_typed_and_what_the_table_knows_is_the_same(classes: Any, table: Any) -> None:
    assert set(classes) == set(table)


def test_each_role_of_events_is_read_and_added_up() -> None:
    assert set(HANDLERS) | {EventRole.ERROR} == set(EventRole)
    changes_nothing = {EventRole.PREVIEW, EventRole.AUDIO, EventRole.TRANSCRIPT, EventRole.NOTICE}
    assert set(FOLDS_OF) == set(EventRole) - changes_nothing


def test_the_keys_of_the_table_are_fields_of_the_records() -> None:
    for type, known in EVENTS.items():
        keys = keys_of(EVENT_CLASSES[type])
        assert {known.leaf} - {""} <= keys.keys(), type
        if known.role in (EventRole.TEXT, EventRole.PART):
            place = known.of if known.role is EventRole.PART else PARTS[known.of].list
            assert LISTS[place] in keys, type
    for type, item in ITEMS.items():
        assert set(item.fields) <= keys_of(ITEM_CLASSES[type]).keys(), type
        if item.fields:
            hint = typing.get_type_hints(ITEM_CLASSES[type])[item.fields[0]]
            assert item.kind in json_types(without_none(hint)), type
    for type, part in PARTS.items():
        assert part.leaf in keys_of(PART_CLASSES[type])
        assert part.list in keys_of(ITEM_CLASSES[part.item])


def words_of(cls: type[Any], field: str) -> set[str]:
    hint = typing.get_type_hints(cls).get(field)
    return {word.value for inner in typing.get_args(hint) if hasattr(inner, "__members__") for word in inner}


def test_a_status_that_an_event_tells_is_one_that_its_item_may_have() -> None:
    for known in EVENTS.values():
        words = words_of(ITEM_CLASSES[known.of], "status") if known.role is EventRole.STATUS else None
        assert not words or known.word in words, known


def test_statuses_and_what_they_mean() -> None:
    details = {f"incomplete:{reason.value}" for reason in IncompleteDetailsReason}
    assert set(FINISH_REASONS) == {status.value for status in ResponseStatus} | details
    assert {status.value for status in ResponseStatus if not status.is_final} == set(PENDING)
    told = {known.of for known in EVENTS.values() if known.role is EventRole.RESPONSE}
    assert told == {status.value for status in ResponseStatus}
    assert {cls.__name__ for cls in END_EVENTS} == {
        "ResponseCompletedEvent", "ResponseIncompleteEvent", "ResponseFailedEvent", "ResponseCancelledEvent", "ResponseErrorEvent",
    }  # fmt: skip


# What each type of event is to all who read it.

AT = {"item_id": "i_1", "output_index": 0}
OUTPUT = [{"stdout": "ab", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]
STEER = {"previous_response_id": "resp_1"}


def body(*output: Any, status: str = "completed") -> dict[str, Any]:
    return {"id": "resp_1", "object": "response", "status": status, "model": "m", "output": list(output)}


def sample(type: str) -> dict[str, Any]:
    """An event of this *type*, with all that it must have."""
    known, event = EVENTS[type], {"type": type}
    match known.role:
        case EventRole.RESPONSE:
            return event | {"response": body(status=known.of)}
        case EventRole.ERROR:
            return event | {"message": "Oh."}
        case EventRole.ITEM:
            return event | {
                "output_index": 0,
                "item": {"type": "message", "id": "i_1", "role": "assistant", "content": []},
            }
        case EventRole.PART:
            kind = next(kind for kind, part in PARTS.items() if part.list == known.of)
            return event | AT | {LISTS[known.of]: 0, "part": {"type": kind, PARTS[kind].leaf: "ab"}}
        case EventRole.TEXT:
            return event | AT | {LISTS[PARTS[known.of].list]: 0, known.leaf: "ab"}
        case EventRole.ANNOTATION:
            return (
                event
                | AT
                | {
                    "content_index": 0,
                    known.leaf: {
                        "type": "url_citation",
                        "url": "u",
                        "title": "t",
                        "start_index": 0,
                        "end_index": 1,
                    },
                }
            )
        case EventRole.FIELD if known.of == "shell_call_output":
            return event | AT | {known.leaf: OUTPUT if known.word == "done" else {"stdout": "ab"}}
        case EventRole.FIELD:
            return event | AT | {known.leaf: "ab"}
        case EventRole.STATUS:
            return event | AT
        case EventRole.PREVIEW:
            return event | AT | {known.leaf: "iVBO"}
        case EventRole.AUDIO | EventRole.TRANSCRIPT:
            return event | {known.leaf: "ab"}
        case EventRole.NOTICE:
            steer = {"steer": STEER, "reason": "r", "error": {"type": "t", "code": "c", "message": "m"}}
            word = known.word if known.family == "steer" else ""
            wanted = {
                "": (),
                "accepted": ("steer",),
                "pending": ("steer", "reason"),
                "failed": ("steer", "error"),
            }[word]
            return event | {name: steer[name] for name in wanted}


def read(*events: Any) -> ChatResponse:
    reader = Reader(registry.mapper("openai_responses"), ReaderOptions())
    for event in events:
        list(reader.read_event(event))
    list(reader.finish())
    return reader.response()


def partial(*events: Any) -> ChatResponse:
    reader = Reader(registry.mapper("openai_responses"), ReaderOptions())
    for event in events:
        list(reader.read_event(event))
    return reader.partial("as far as it came")


CREATED = {"type": "response.created", "response": body(status="in_progress")}


@pytest.mark.sweep
@pytest.mark.parametrize("type", EVENTS)
def test_an_event_is_read_by_all(type: str) -> None:
    event = sample(type)
    typed = parse_event(event)
    assert to_dict(typed) == event
    before = [CREATED] if type != "response.created" else []
    accumulator = ResponseAccumulator()
    for one in (*map(parse_event, before), typed):
        snapshot = accumulator.add(one)
    assert snapshot.is_final is isinstance(typed, END_EVENTS)
    assert partial(*before, event).id == snapshot.response.id == "resp_1"


@pytest.mark.parametrize("type", ["response.hologram.delta", "response.output_text", "keep_alive"])
def test_an_event_that_the_table_does_not_have_is_known_to_none(type: str) -> None:
    with pytest.raises(UnknownTypeError):
        parse_event({"type": type})
    with pytest.raises(UnknownEventError):
        partial(CREATED, {"type": type})


def test_what_an_event_without_a_type_is() -> None:
    assert parse_event({"error": "Oh."}).type == "error"
    assert partial({"error": "Oh."}).error_info is not None


@pytest.mark.parametrize(
    "family", sorted({known.family for known in EVENTS.values() if known.role is EventRole.TEXT})
)
def test_a_text_in_pieces_is_the_same_to_all(family: str) -> None:
    first, done = sample(f"response.{family}.delta"), sample(f"response.{family}.done")
    known = EVENTS[done["type"]]
    second = {**first, "delta": "c"}
    done |= {known.leaf: "abc"}
    for events in ((first, second), (first, second, done), (done,)):
        accumulator = ResponseAccumulator()
        snapshot = [accumulator.add(parse_event(event)) for event in (CREATED, *events)][-1]
        (item,) = to_dict(snapshot.response)["output"]
        part = PARTS[known.of]
        assert item["type"] == part.item
        assert [one[part.leaf] for one in item[part.list]] == ["abc"]
        segments = partial(CREATED, *events).segments
        assert [(one.type, one.content) for one in segments][:1] == [(part.segment, "abc")]


# What each type of item is to all who read it.

ITEM_SAMPLES: dict[str, dict[str, Any]] = {
    "message": {"role": "assistant", "content": [{"type": "output_text", "text": "Hi", "annotations": []}]},
    "reasoning": {"summary": [{"type": "summary_text", "text": "Hm"}]},
    "function_call": {"call_id": "c", "name": "n", "arguments": "{}"},
    "custom_tool_call": {"call_id": "c", "name": "n", "input": "i"},
    "mcp_approval_request": {"server_label": "s", "name": "n", "arguments": "{}"},
    "computer_call": {
        "call_id": "c",
        "action": {"type": "wait"},
        "status": "completed",
        "pending_safety_checks": [],
    },
    "local_shell_call": {"call_id": "c", "action": {"type": "exec", "command": ["ls"], "env": {}}},
    "shell_call": {"call_id": "c", "action": {"commands": ["ls"]}},
    "apply_patch_call": {"call_id": "c", "operation": {"type": "delete_file", "path": "p"}},
    "tool_search_call": {"call_id": "c", "execution": "client", "arguments": {"q": 1}},
    "web_search_call": {"action": {"type": "search", "query": "q"}, "status": "completed"},
    "x_search_call": {"name": "x_keyword_search", "arguments": "{}"},
    "document_finder_call": {"queries": ["q"]},
    "file_reader_call": {"file_id": "f"},
    "file_search_call": {"queries": ["q"]},
    "code_interpreter_call": {"code": "1+1"},
    "mcp_call": {"server_label": "s", "name": "n", "arguments": "{}"},
    "program": {"call_id": "c", "code": "text(1)", "fingerprint": "f"},
    "mcp_list_tools": {"server_label": "s", "tools": []},
    "function_call_output": {"call_id": "c", "output": "o"},
    "custom_tool_call_output": {"call_id": "c", "output": "o"},
    "computer_call_output": {"call_id": "c", "output": {"type": "computer_screenshot"}},
    "local_shell_call_output": {"output": "o"},
    "shell_call_output": {"call_id": "c", "output": OUTPUT},
    "apply_patch_call_output": {"call_id": "c", "status": "completed"},
    "tool_search_output": {"call_id": "c", "tools": []},
    "program_output": {"call_id": "c", "result": "r"},
    "image_generation_call": {"result": "iVBO"},
    "mcp_approval_response": {"approval_request_id": "a", "approve": True},
    "additional_tools": {"role": "developer", "tools": []},
    "compaction": {"encrypted_content": "gAAA"},
}


def test_there_is_a_sample_of_each_item() -> None:
    assert set(ITEM_SAMPLES) == set(ITEMS)


@pytest.mark.parametrize("type", ITEMS)
def test_an_item_is_the_same_to_all(type: str) -> None:
    item, known = {"type": type, "id": "i_1", **ITEM_SAMPLES[type]}, ITEMS[type]
    assert to_dict(parse_item(item)) == item
    answer = read(body(item))
    kinds = [segment.type for segment in answer.segments]
    is_call = known.role in (ItemRole.CALL, ItemRole.ACTION)
    assert (answer.finish_reason is FinishReason.TOOL_CALLS) is is_call
    assert len(answer.tool_calls) == is_call
    expected = {ItemRole.MEDIA: [SegmentType.MEDIA], ItemRole.STATE: []}.get(
        known.role, [SegmentType.TOOL_CALL]
    )
    if known.role is ItemRole.TEXT:
        expected = [next(part.segment for part in PARTS.values() if part.item == type)]
    assert kinds == expected
    if known.role is ItemRole.CALL:
        assert answer.tool_calls[0].arguments == item[known.fields[0]]
    if (
        known.role in (ItemRole.SERVER, ItemRole.MEDIA)
        and known.fields
        and isinstance(item[known.fields[0]], str)
    ):
        assert answer.segments[0].content == item[known.fields[0]]


@pytest.mark.parametrize(
    "family", sorted({known.family for known in EVENTS.values() if known.role is EventRole.FIELD})
)
def test_what_is_asked_in_pieces_is_the_same_to_all(family: str) -> None:
    """The typed response has it in the field of its item, the answer of the plugin as arguments or as pieces."""
    first, done = sample(f"response.{family}.delta"), sample(f"response.{family}.done")
    known = EVENTS[done["type"]]
    item = {"type": known.of, "id": "i_1", **ITEM_SAMPLES[known.of]}
    if known.of == "apply_patch_call":
        item["operation"] = {"type": "create_file", "path": "p", "diff": ""}
    added = {"type": "response.output_item.added", "output_index": 0, "item": item}
    accumulator = ResponseAccumulator()
    pieces = (added, first) if known.of == "shell_call_output" else (added, first, done)
    snapshot = [accumulator.add(parse_event(event)) for event in (CREATED, *pieces)][-1]
    (written,) = to_dict(snapshot.response)["output"]
    assert "ab" in str({name: value for name, value in written.items() if value != item.get(name)})
    answer = partial(CREATED, *pieces)
    if ITEMS[known.of].role is ItemRole.CALL:
        assert answer.tool_calls[0].arguments == "ab"
    else:
        left = answer.metadata.extensions.thawed()["output"][0][family]
        assert left["delta"] in (["ab"], [{"stdout": "ab"}])


# Real streams.

STREAMS = [
    capture
    for capture in load_captures(ROOT / "tests/captures/openai_responses")
    if capture.file.suffix == ".sse" and capture.status in (None, 200)
]


@pytest.mark.parametrize("capture", STREAMS, ids=lambda capture: capture.case)
def test_a_stream_is_the_same_to_all(capture: Capture) -> None:
    """Text and calls, also where the stream breaks off or fails."""
    events = [parse_event(data) for data, _ in capture.frames()]
    accumulator = ResponseAccumulator()
    typed: Response = [accumulator.add(event) for event in events][-1].response
    reader = Reader(registry.mapper("openai_responses"), ReaderOptions())
    list(reader.read(capture.body))
    answer = reader.partial("as far as it came")
    assert answer.text == typed.output_text
    assert [(call.id, call.name) for call in answer.tool_calls] == [
        (item.call_id, getattr(item, "name", item.type))
        for item in typed.output
        if ITEMS[item.type or ""].role in (ItemRole.CALL, ItemRole.ACTION)
        and not capture.case.startswith("xai")  # whose server runs the call itself
    ]
