"""Events added up: what a snapshot holds, when, and what it costs."""

from __future__ import annotations

from typing import Any

import pytest

from crosswalk import responses as r
from crosswalk.responses import ResponseAccumulator, SnapshotError, parse_event, snapshots, to_dict

AT = {"output_index": 0, "item_id": "x_1"}
PART = {**AT, "content_index": 0}
TEXT = {"type": "output_text", "text": "", "annotations": []}


def added(**item: Any) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": 0, "item": {"id": "x_1", **item}}


MESSAGE = added(type="message", role="assistant", status="in_progress", content=[])
REASONING = added(type="reasoning", summary=[])


def output(*events: dict[str, Any]) -> Any:
    """The output in the snapshot after *events*."""
    accumulator = ResponseAccumulator()
    for event in events:
        accumulator.add(
            parse_event(
                {**event, "type": f"response.{event['type']}".replace("response.response.", "response.")}
            )
        )
    assert accumulator.snapshot is not None
    return to_dict(accumulator.snapshot.response)["output"]


@pytest.mark.parametrize(
    ("events", "item"),
    [
        pytest.param(
            [MESSAGE, {"type": "content_part.added", **PART, "part": TEXT}, {"type": "output_text.delta", **PART, "delta": "a"}, {"type": "output_text.delta", **PART, "delta": "b"}],
            {"id": "x_1", "type": "message", "role": "assistant", "status": "in_progress", "content": [{**TEXT, "text": "ab"}]},
            id="text",
        ),
        pytest.param(
            [{"type": "output_text.delta", **PART, "delta": "a"}],
            {"id": "x_1", "type": "message", "role": "assistant", "content": [{**TEXT, "text": "a"}]},
            id="text of an item that was never opened",
        ),
        pytest.param(
            [{"type": "output_text.delta", **PART, "delta": "a"}, {"type": "output_text.done", **PART, "text": "all"}],
            {"id": "x_1", "type": "message", "role": "assistant", "content": [{**TEXT, "text": "all"}]},
            id="the whole text takes the place of its deltas",
        ),
        pytest.param(
            [MESSAGE, {"type": "refusal.delta", **PART, "delta": "n"}, {"type": "refusal.done", **PART, "refusal": "no"}],
            {"id": "x_1", "type": "message", "role": "assistant", "status": "in_progress", "content": [{"type": "refusal", "refusal": "no"}]},
            id="refusal",
        ),
        pytest.param(
            [{"type": "output_text.delta", **PART, "delta": "a", "logprobs": [{"token": "a", "logprob": -1}]}, {"type": "output_text.annotation.added", **PART, "annotation": {"type": "url_citation", "url": "u"}}, {"type": "output_text.annotation.added", **PART, "annotation": None}],
            {"id": "x_1", "type": "message", "role": "assistant", "content": [{**TEXT, "text": "a", "annotations": [{"type": "url_citation", "url": "u"}], "logprobs": [{"token": "a", "logprob": -1}]}]},
            id="annotations and log probabilities",
        ),
        pytest.param(
            [{"type": "refusal.delta", **PART, "delta": "no"}, {"type": "output_text.annotation.added", **PART, "annotation": {"type": "url_citation", "url": "u"}}],
            {"id": "x_1", "type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
            id="an annotation of a part that is no text",
        ),
        pytest.param(
            [{"type": "output_text.delta", **AT, "content_index": 1, "delta": "b"}, {"type": "output_text.delta", **PART, "delta": "a"}, {"type": "content_part.done", **PART, "part": {**TEXT, "text": "A"}}],
            {"id": "x_1", "type": "message", "role": "assistant", "content": [{**TEXT, "text": "A"}, {**TEXT, "text": "b"}]},
            id="parts stand in the order of their index",
        ),
        pytest.param(
            [REASONING, {"type": "reasoning_summary_part.added", **AT, "summary_index": 0, "part": {"type": "summary_text", "text": ""}}, {"type": "reasoning_summary_text.delta", **AT, "summary_index": 0, "delta": "s"}, {"type": "reasoning_text.delta", **PART, "delta": "t"}],
            {"id": "x_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "s"}], "content": [{"type": "reasoning_text", "text": "t"}]},
            id="reasoning and its summary",
        ),
        pytest.param(
            [added(type="function_call", call_id="c", name="f", arguments="{}"), {"type": "function_call_arguments.delta", **AT, "delta": '{"a"'}, {"type": "function_call_arguments.delta", **AT, "delta": ":1}"}],
            {"id": "x_1", "type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a":1}'},
            id="arguments, not joined on what opened the call",
        ),
        pytest.param(
            [added(type="custom_tool_call", call_id="c", name="f", input=""), {"type": "custom_tool_call_input.delta", **AT, "delta": "x"}, {"type": "custom_tool_call_input.done", **AT, "input": "xy"}],
            {"id": "x_1", "type": "custom_tool_call", "call_id": "c", "name": "f", "input": "xy"},
            id="input of a custom tool",
        ),
        pytest.param(
            [added(type="web_search_call", status="in_progress"), {"type": "web_search_call.searching", **AT}],
            {"id": "x_1", "type": "web_search_call", "status": "searching"},
            id="status",
        ),
        pytest.param(
            [added(type="code_interpreter_call", status="in_progress"), {"type": "code_interpreter_call_code.delta", **AT, "delta": "1"}, {"type": "code_interpreter_call_code.delta", **AT, "delta": "+1"}, {"type": "code_interpreter_call.interpreting", **AT}],
            {"id": "x_1", "type": "code_interpreter_call", "status": "interpreting", "code": "1+1"},
            id="code",
        ),
        pytest.param(
            [added(type="shell_call", call_id="c", action={"commands": []}), {"type": "shell_call_command.added", "output_index": 0, "command_index": 0, "command": ""}, {"type": "shell_call_command.delta", "output_index": 0, "command_index": 0, "delta": "ls"}, {"type": "shell_call_command.done", "output_index": 0, "command_index": 1, "command": "pwd"}],
            {"id": "x_1", "type": "shell_call", "call_id": "c", "action": {"commands": ["ls", "pwd"]}},
            id="shell commands",
        ),
        pytest.param(
            [REASONING, {"type": "reasoning_part.added", **PART, "part": {"type": "reasoning_text", "text": ""}}, {"type": "reasoning_text.delta", **PART, "delta": "t"}, {"type": "reasoning_part.done", **PART, "part": {"type": "reasoning_text", "text": "th"}}],
            {"id": "x_1", "type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "th"}]},
            id="a part of reasoning, by vLLM",
        ),
        pytest.param(
            [added(type="apply_patch_call", call_id="c", operation={"type": "update_file", "path": "p", "diff": ""}), {"type": "apply_patch_call_operation_diff.delta", **AT, "delta": "@@"}, {"type": "apply_patch_call_operation_diff.delta", **AT, "delta": " -1"}],
            {"id": "x_1", "type": "apply_patch_call", "call_id": "c", "operation": {"type": "update_file", "path": "p", "diff": "@@ -1"}},
            id="the diff of a patch",
        ),
        pytest.param(
            [added(type="apply_patch_call", call_id="c", operation={"type": "create_file", "path": "p", "diff": "+"}), {"type": "apply_patch_call_operation_diff.done", **AT, "diff": "+a"}],
            {"id": "x_1", "type": "apply_patch_call", "call_id": "c", "operation": {"type": "create_file", "path": "p", "diff": "+a"}},
            id="the whole diff of a patch",
        ),
        pytest.param(
            [added(type="apply_patch_call", call_id="c", operation={"type": "delete_file", "path": "p"}), {"type": "apply_patch_call_operation_diff.delta", **AT, "delta": "x"}],
            {"id": "x_1", "type": "apply_patch_call", "call_id": "c", "operation": {"type": "delete_file", "path": "p"}},
            id="a patch that has no diff",
        ),
        pytest.param(
            [added(type="x_search_call", name="x_keyword_search"), {"type": "x_search_call.searching", **AT}],
            {"id": "x_1", "type": "x_search_call", "name": "x_keyword_search", "status": "searching"},
            id="status of a search on X",
        ),
        pytest.param(
            [added(type="mcp_list_tools", server_label="s", tools=[]), {"type": "mcp_list_tools.failed", **AT}],
            {"id": "x_1", "type": "mcp_list_tools", "server_label": "s", "tools": []},
            id="a status that its item has no place for",
        ),
        pytest.param(
            [added(type="shell_call", call_id="c", action={"commands": ["ls"]}), {"type": "response.compaction.compacting", **AT}],
            {"id": "x_1", "type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}},
            id="an event that changes nothing",
        ),
        pytest.param(
            [added(type="shell_call_output", call_id="c", output=[]), {"type": "shell_call_output_content.delta", **AT, "command_index": 1, "delta": {"stdout": "b"}}, {"type": "shell_call_output_content.delta", **AT, "command_index": 0, "delta": {"stdout": "a", "stderr": "!"}}, {"type": "shell_call_output_content.done", **AT, "command_index": 0, "output": [{"stdout": "A", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]}],
            {"id": "x_1", "type": "shell_call_output", "call_id": "c", "output": [{"stdout": "A", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}, {"stdout": "b", "stderr": ""}]},
            id="output of shell commands",
        ),
        pytest.param(
            [added(type="shell_call_output", call_id="c", output=[])],
            {"id": "x_1", "type": "shell_call_output", "call_id": "c", "output": []},
            id="no output of shell commands",
        ),
    ],
)  # fmt: skip
def test_an_item_grows(events: list[dict[str, Any]], item: dict[str, Any]) -> None:
    assert output(*events) == [item]


def test_what_ends_an_item_takes_the_place_of_all_before() -> None:
    done = {
        "type": "output_item.done",
        "output_index": 0,
        "item": {"id": "other", "type": "message", "role": "assistant", "content": []},
    }
    assert output(MESSAGE, {"type": "output_text.delta", **PART, "delta": "a"}, done) == [done["item"]]


def test_a_call_whose_opening_was_not_sent_is_no_item_yet() -> None:
    delta = {"type": "function_call_arguments.delta", **AT, "delta": "{}"}
    done = {
        "type": "output_item.done",
        "output_index": 0,
        "item": {"id": "x_1", "type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
    }
    created = {"type": "response.created", "response": {"output": []}}
    assert output(created, delta) == []
    assert output(created, delta, done) == [done["item"]]


def test_items_are_found_by_id_where_no_place_is_said() -> None:
    items = [{"id": f"m{n}", "type": "message", "role": "assistant", "content": []} for n in (0, 1)]
    events = [{"type": "output_item.added", "item": item} for item in items]
    deltas = [{"type": "output_text.delta", "item_id": f"m{n}", "delta": str(n)} for n in (1, 0)]
    assert [item["content"][0]["text"] for item in output(*events, *deltas)] == ["0", "1"]


def test_items_stand_in_the_order_of_their_place() -> None:
    later = {**MESSAGE, "output_index": 1}
    assert [item["type"] for item in output(later, REASONING)] == ["reasoning", "message"]


def test_unknown_items_are_left_as_they_are() -> None:
    accumulator = ResponseAccumulator()
    for event in (added(type="telepathy"), {"type": "response.web_search_call.searching", **AT}):
        accumulator.add(parse_event(event, unknown="keep"))
    assert accumulator.snapshot is not None
    assert to_dict(accumulator.snapshot.response)["output"] == [{"id": "x_1", "type": "telepathy"}]


def test_an_unknown_part_is_shown_and_takes_no_text() -> None:
    accumulator = ResponseAccumulator()
    for event in (MESSAGE, {"type": "response.content_part.added", **PART, "part": {"type": "hologram"}}):
        accumulator.add(parse_event(event, unknown="keep"))
    assert accumulator.snapshot is not None
    assert to_dict(accumulator.snapshot.response)["output"][0]["content"] == [{"type": "hologram"}]


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([MESSAGE, {"type": "response.function_call_arguments.delta", **AT, "delta": ""}], "is about a ResponseOutputMessage"),
        ([REASONING, {"type": "response.output_text.delta", **PART, "delta": ""}], "is about a ResponseReasoningItem"),
        ([{"type": "response.reasoning_text.delta", **PART, "delta": ""}, {"type": "response.output_text.delta", **PART, "delta": ""}], "is about a ResponseReasoningItem"),
        ([REASONING, {"type": "response.content_part.added", **PART, "part": TEXT}], "is about a ResponseReasoningItem"),
        ([REASONING, {"type": "response.content_part.added", **PART, "part": {"type": "summary_text", "text": ""}}], "has summary_text in the content"),
        ([REASONING, {"type": "response.reasoning_summary_part.added", **AT, "summary_index": 0, "part": TEXT}], "has output_text in the summary"),
        ([{"type": "response.completed", "response": {}}, MESSAGE], "comes after the end of the response"),
    ],
)  # fmt: skip
def test_an_event_that_does_not_fit_is_refused_and_changes_nothing(
    events: list[dict[str, Any]], said: str
) -> None:
    accumulator = ResponseAccumulator()
    *good, bad = [parse_event({**event, "sequence_number": number}) for number, event in enumerate(events)]
    for event in good:
        before = accumulator.add(event)
    with pytest.raises(SnapshotError, match=said) as caught:
        accumulator.add(bad)
    assert caught.value.event_type == bad.type
    assert caught.value.sequence_number == len(good)
    assert accumulator.snapshot is before


def test_a_snapshot_stays_what_it_was() -> None:
    accumulator = ResponseAccumulator()
    taken = [
        accumulator.add(parse_event({"type": "response.output_text.delta", **PART, "delta": word}))
        for word in "abc"
    ]
    assert [snapshot.text for snapshot in reversed(taken)] == ["abc", "ab", "a"]
    assert taken[1].response is taken[1].response
    assert repr(taken[1]) == "ResponseSnapshot(number=1, event='response.output_text.delta', is_final=False)"


def test_what_is_known_of_the_response_stays_known() -> None:
    created = {
        "type": "response.created",
        "response": {
            "id": "resp_1",
            "model": "tiny",
            "error": None,
            "x": 1,
            "status": "queued",
            "output": [],
        },
    }
    progress = {"type": "response.in_progress", "response": {"id": "resp_1", "status": "in_progress", "y": 2}}
    accumulator = ResponseAccumulator()
    accumulator.add(parse_event(created))
    snapshot = accumulator.add(parse_event(progress))
    assert to_dict(snapshot.response) == {
        "id": "resp_1",
        "model": "tiny",
        "error": None,
        "x": 1,
        "y": 2,
        "status": "in_progress",
        "output": [],
    }


@pytest.mark.parametrize(
    ("event", "error"),
    [
        (
            {"type": "error", "code": "c", "message": "m", "param": None},
            r.ResponseError(code="c", message="m"),
        ),
        (
            {"type": "error", "error": {"message": "m", "type": "t", "code": 5}},
            r.ResponseError(code=5, message="m", type="t"),
        ),
        ({"error": "m"}, r.ResponseError(message="m")),
        ({"error": None}, r.ResponseError(message="")),
    ],
)
def test_an_error_fails_the_response_and_keeps_what_came(
    event: dict[str, Any], error: r.ResponseError
) -> None:
    accumulator = ResponseAccumulator()
    accumulator.add(parse_event({"type": "response.output_text.delta", **PART, "delta": "so far"}))
    snapshot = accumulator.add(parse_event(event))
    assert snapshot.is_final
    assert (snapshot.response.status, snapshot.response.error, snapshot.text) == (
        r.ResponseStatus.FAILED,
        error,
        "so far",
    )
    failed = {
        "type": "response.failed",
        "response": {"status": "failed", "output": [], "error": {"message": "more"}},
    }
    response = accumulator.add(parse_event(failed)).response
    assert response.error == r.ResponseError(message="more")
    assert response.output_text == "so far"


def test_keep_alives_change_nothing() -> None:
    """At any place and with any number: before the beginning, within, between error and failure, after the end."""
    events: list[dict[str, Any]] = [
        {"type": "response.output_text.delta", **PART, "delta": "so far", "sequence_number": 4},
        {"type": "error", "message": "m", "sequence_number": 5},
        {"type": "response.failed", "response": {"status": "failed", "output": []}, "sequence_number": 6},
    ]
    beats: list[dict[str, Any]] = [{"type": "keepalive", "sequence_number": n} for n in (3, 99, 5, 7)]
    alive = [*(event for pair in zip(beats, events, strict=False) for event in pair), beats[-1]]
    taken = list(snapshots(map(parse_event, alive)))
    assert [snapshot.is_final for snapshot in taken] == [False, False, False, True, True, True, True]
    assert [snapshot.text for snapshot in taken] == [
        "",
        "so far",
        "so far",
        "so far",
        "so far",
        "so far",
        "so far",
    ]
    *_, last = snapshots(map(parse_event, events))
    assert taken[-1].response == taken[-2].response == last.response


def test_a_response_that_says_nothing_yet_is_one() -> None:
    events = [{"type": f"response.{word}", "response": {}} for word in ("created", "in_progress")]
    *_, last = map(ResponseAccumulator().add, map(parse_event, events))
    assert to_dict(last.response) == {}


def test_an_error_without_a_type_is_one() -> None:
    snapshot = ResponseAccumulator().add(r.ResponseErrorEvent(type=None, message="m"))
    assert snapshot.is_final
    assert snapshot.response.error == r.ResponseError(message="m")


def test_a_failure_follows_an_error_once() -> None:
    failed = {"type": "response.failed", "response": {"status": "failed", "output": []}}
    with pytest.raises(SnapshotError, match="comes after the end"):
        list(snapshots(map(parse_event, [{"type": "error", "message": "m"}, failed, failed])))


def test_a_stream_gives_a_snapshot_each_and_must_end() -> None:
    delta = parse_event({"type": "response.output_text.delta", **PART, "delta": "a"})
    end = parse_event({"type": "response.completed", "response": {"id": "resp_1", "output": []}})
    assert [snapshot.is_final for snapshot in snapshots([delta, end])] == [False, True]
    with pytest.raises(SnapshotError, match="ended here, before the response did"):
        list(snapshots([delta]))
    with pytest.raises(SnapshotError, match="no event came"):
        list(snapshots([]))
    assert ResponseAccumulator().snapshot is None


def test_snapshots_of_a_long_response_are_read_in_any_order() -> None:
    accumulator = ResponseAccumulator()
    delta = parse_event({"type": "response.output_text.delta", **PART, "delta": "a"})
    taken = [accumulator.add(delta) for _ in range(2_000)]
    assert len(taken[-1].text) == 2_000
    assert [len(snapshot.text) for snapshot in taken[:10]] == [*range(1, 11)]
    assert [len(accumulator.add(delta).text) for _ in range(3)] == [2_001, 2_002, 2_003]


def test_an_item_that_is_told_late_was_not_there_before() -> None:
    part = {"type": "response.content_part.added", **PART}
    events = [
        {**part, "part": {"type": "hologram"}},
        {**part, "part": {"type": "reasoning_text", "text": "t"}},
    ]
    accumulator = ResponseAccumulator()
    first, second = [accumulator.add(parse_event(event, unknown="keep")) for event in events]
    assert [len(snapshot.response.output) for snapshot in (second, first)] == [1, 0]


def test_the_whole_output_of_a_shell_call_takes_the_place_of_that_of_each_command() -> None:
    ended = {"stdout": "a", "stderr": "", "outcome": {"type": "timeout"}}
    command = {"type": "shell_call_output_content.done", **AT, "command_index": 0, "output": [ended]}
    whole = {"id": "x_1", "type": "shell_call_output", "call_id": "c", "output": []}
    events = [added(**{**whole, "output": []}), command]
    assert output(*events)[0]["output"] == [ended]
    assert output(*events, {"type": "output_item.done", "output_index": 0, "item": whole}) == [whole]


def numbered(*numbers: int | None) -> list[Any]:
    return [
        parse_event({"type": "response.output_text.delta", **PART, "delta": "a", "sequence_number": number})
        for number in numbers
    ]


@pytest.mark.parametrize("numbers", [(4, 4), (4, 5, 5), (5, 3), (4, None, 4), (4, 0, 3), (1, -1)])
def test_an_event_that_came_before_is_refused(numbers: tuple[int | None, ...]) -> None:
    """A resumed stream repeats events, and a repeated delta would double the text."""
    accumulator = ResponseAccumulator()
    *first, last = numbered(*numbers)
    for event in first:
        accumulator.add(event)
    before = accumulator.snapshot
    with pytest.raises(SnapshotError, match=r"comes after sequence_number \d") as caught:
        accumulator.add(last)
    assert caught.value.sequence_number == numbers[-1]
    assert accumulator.snapshot is before
    accumulator.add(*numbered(9))


@pytest.mark.parametrize("numbers", [(0, 0, 0), (None, None), (0, 1, 2, 7), (3, None, 0, 4)])
def test_servers_that_do_not_count_are_read(numbers: tuple[int | None, ...]) -> None:
    accumulator = ResponseAccumulator()
    for event in numbered(*numbers):
        snapshot = accumulator.add(event)
    assert snapshot.text == "a" * len(numbers)
