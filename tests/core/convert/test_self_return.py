"""An answer of a form goes back to that form unchanged: every recorded body, and every type of item of the Responses API."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import attrs
import orjson
import pytest

from beside import answers_in, folders, needs_captures
from converting import FORMS, data_of, form_of
from crosswalk import (
    ChatResponse,
    CitationRef,
    FinishReason,
    MappingError,
    ResponseDelta,
    Segment,
    SegmentType,
    UsageInfo,
    from_json,
    normalize,
    normalize_stream,
    to_json,
)
from crosswalk.convert import ConversionError, WireForm, convert, convert_stream, to_events, to_response
from crosswalk.plugin.registry import registry
from crosswalk.responses import parse_item, to_dict
from crosswalk.testing import Capture, load_captures
from crosswalk.types import load_json
from crosswalk.types.json import copy_json, dump_json
from crosswalk.wire.responses import ITEMS

OWN = Path(__file__).parents[2] / "captures"
CHAT, RESPONSES, MESSAGES = FORMS

FROM_CANONICAL_JSON = 0.94
"""How many bodies of a form are the same when nothing is left of them but canonical JSON, at least.

Canonical JSON does not tell what said nothing (``null``, ``[]``, ``{}``, ``""``, an empty text part), and not:
"""
CALLER = {"type": "direct"}
UNTOLD = {
    CHAT: (
        (
            r"\.reasoning(_content)?\b",
            "that an old version, or a server behind another's id, names reasoning otherwise",
        ),
        (
            r"\.tool_calls\[?\]?(\.(index|type|id))? ",
            "whether a call has an index or a type; an id that is none",
        ),
        (
            r"\.(function|custom|function_call)\b",
            "a call in a form of its own: custom, its arguments an object",
        ),
        (r"\.usage\b", "that a server counts under another name than it mostly does"),
        (
            r"\.(annotations|citations|delta|images|web_search)\b",
            "where a server lists what it cites or made, if it differs",
        ),
        (r"\.(content !|padding)", "a content that is no text"),
        (r"\.(id|object|created|index|finish_reason)\b", "what a server does not send, or of another type"),
        (r"\.logprobs\b", "which of OpenAI's two forms probabilities have"),
        (
            r"^\.(choices|error|model|provider|meta|request_id|copilot_usage|prompt_filter_results) ",
            "an error in a choice; what stands beside an answer that does not say its form",
        ),
    ),
    RESPONSES: (
        (
            r"\.output\[\]\.(content|summary)\b",
            "whether reasoning is a summary, where nothing hints; an empty text",
        ),
        (r"\.output_text\b", "the text once more"),
        (r"\.(id|created_at)\b", "what a server does not send"),
        (r"\.output\[\]\.(action|arguments)\b", "a search that xAI writes like a call of a function"),
    ),
    MESSAGES: ((r"\.caller\b", "what the API demands and a server beside Anthropic leaves out"),),
}


def own() -> Iterator[tuple[str, Capture]]:
    """The captures of the project."""
    return (
        (folder.name, capture)
        for folder in OWN.iterdir()
        if folder.is_dir()
        for capture in load_captures(folder)
    )


def all_there_are() -> Iterator[tuple[str, Capture]]:
    """The captures of the project, and those next to it."""
    return chain(own(), (pair for folder in folders() for pair in answers_in(folder)))


def bodies(captures: Iterable[tuple[str, Capture]]) -> Iterator[tuple[WireForm, str, str, bytes]]:
    """Every whole answer of *captures* that is in one of the forms, with its case and who reads it."""
    for provider, capture in captures:
        form = form_of(capture.body)
        if capture.status == 200 and form is not None and capture.body.lstrip().startswith(b"{"):
            yield form, capture.case, provider, capture.body


Captures = Callable[[], Iterable[tuple[str, Capture]]]
recorded = pytest.mark.parametrize(
    "captures",
    [own, pytest.param(all_there_are, marks=[needs_captures, pytest.mark.sweep])],
    ids=lambda captures: captures.__name__,
)


def read(body: bytes, provider: str) -> ChatResponse | None:
    """The answer in *body*, or ``None`` if there is none, such as one that is still being made."""
    try:
        return normalize(body, provider, unknown="keep")
    except MappingError:
        return None


@pytest.mark.sweep
@recorded
def test_a_recorded_body_comes_back_as_it_was_received(captures: Captures) -> None:
    counts: Counter[WireForm] = Counter()
    for form, case, provider, body in bodies(captures()):
        answer = read(body, provider)
        if answer is not None:
            converted = convert(answer, form)
            assert load_json(converted.value) == load_json(body), case
            assert converted.report.is_lossless, case
            assert converted.status == 200
            counts[form] += 1
    assert all(counts[form] >= 10 for form in FORMS), counts


@recorded
def test_a_recorded_body_comes_back_from_canonical_json(captures: Captures) -> None:
    at_least = FROM_CANONICAL_JSON if captures is all_there_are else 0.75  # the project's own show oddities
    counts: Counter[WireForm] = Counter()
    same: Counter[WireForm] = Counter()
    rows: Counter[str] = Counter()
    for form, case, provider, body in bodies(captures()):
        answer = read(body, provider)
        if answer is None:
            continue
        counts[form] += 1
        back = load_json(convert(from_json(to_json(answer), ChatResponse), form).value)
        found = set(differences(saying(load_json(body)), saying(back)))
        same[form] += not found
        for path in found:
            reason = next((why for pattern, why in UNTOLD[form] if re.search(pattern, path)), None)
            assert reason is not None, f"{case}: {path}"
            rows[f"{form.label}: {reason}"] += 1
    print(*(f"\n{form.label}: {same[form]} of {counts[form]}" for form in FORMS))
    print(*(f"{count:5} {row}\n" for row, count in rows.most_common()))
    for form in FORMS:
        assert same[form] >= at_least * counts[form], f"{form.label}: {same[form]} of {counts[form]}"


def saying(value: Any) -> Any:
    """*value* without the keys, and the parts, that say nothing, and without the caller that goes without saying."""
    if isinstance(value, dict):
        said = {key: saying(inner) for key, inner in value.items()}
        return {
            key: inner
            for key, inner in said.items()
            if inner not in (None, "", [], {}, CALLER) or inner is False or inner == 0
        }
    if isinstance(value, list):
        return [saying(item) for item in value if item != {"type": "text", "text": ""}]
    return value


def differences(before: Any, after: Any, path: str = "") -> Iterable[str]:
    """The paths at which two JSON values differ, without numbers, and the kind of difference."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before.keys() | after.keys():
            if key in before and key in after:
                yield from differences(before[key], after[key], f"{path}.{key}")
            else:
                yield f"{path}.{key} {'missing' if key in before else 'added'}"
    elif isinstance(before, list) and isinstance(after, list):
        if len(before) != len(after):
            yield f"{path} !length"
        for one, other in zip(before, after, strict=False):
            yield from differences(one, other, f"{path}[]")
    elif before != after or isinstance(before, bool) is not isinstance(after, bool):
        yield f"{path} !{type(before).__name__}"


def test_a_changed_answer_is_not_sent_as_it_was_received() -> None:
    body = orjson.dumps(response_with({"type": "message", "id": "msg_1", "role": "assistant", "content": []}))
    answer = normalize(body, "openai_responses")
    for changed in (
        attrs.evolve(answer, model="another"),
        attrs.evolve(answer, id="resp_2"),
        attrs.evolve(answer, metadata=attrs.evolve(answer.metadata, extensions={"output": []})),
        attrs.evolve(answer, metadata=attrs.evolve(answer.metadata, provider_id="nobody")),
    ):
        assert convert(changed, RESPONSES).value != body
    assert convert(answer, RESPONSES).value == body
    assert convert(answer, CHAT).value != body


# Every type of item: its reader, its writer and its class know the same.

THE_ITEMS: dict[str, dict[str, Any]] = {
    "message": {
        "role": "assistant",
        "status": "completed",
        "phase": "final_answer",
        "content": [
            {"type": "output_text", "text": "See a and b.", "annotations": [
                {"type": "url_citation", "url": "https://x.test", "title": "X", "start_index": 4, "end_index": 5},
                {"type": "file_citation", "file_id": "file_1", "filename": "a.txt", "index": 3},
                {"type": "container_file_citation", "container_id": "cntr_1", "file_id": "file_2",
                 "filename": "b.png", "start_index": 6, "end_index": 9},
                {"type": "file_path", "file_id": "file_3", "index": 11},
            ]},
            {"type": "refusal", "refusal": "No more."},
        ],
    },
    "reasoning": {
        "summary": [{"type": "summary_text", "text": "First."}, {"type": "summary_text", "text": "Second."}],
        "encrypted_content": "gAAA",
    },
    "function_call": {"call_id": "call_1", "name": "f", "arguments": '{"a": 1.50}', "status": "completed"},
    "custom_tool_call": {"call_id": "call_1", "name": "sql", "input": "SELECT *", "status": "completed"},
    "mcp_approval_request": {"name": "f", "server_label": "s", "arguments": "{}"},
    "computer_call": {
        "call_id": "call_1",
        "action": {"type": "click", "button": "left", "x": 1, "y": 2},
        "pending_safety_checks": [{"id": "sc_1", "code": "malicious", "message": "?"}],
        "status": "completed",
    },
    "local_shell_call": {
        "call_id": "call_1", "action": {"type": "exec", "command": ["ls"], "env": {}}, "status": "completed",
    },
    "shell_call": {
        "call_id": "call_1", "action": {"commands": ["ls"], "timeout_ms": 10, "max_output_length": 9},
        "environment": {"type": "local"}, "status": "completed",
    },
    "apply_patch_call": {
        "call_id": "call_1", "operation": {"type": "create_file", "path": "a", "diff": "+b"}, "status": "completed",
    },
    "tool_search_call": {
        "call_id": "call_1", "arguments": {"query": "q"}, "execution": "client", "status": "completed",
    },
    "web_search_call": {
        "status": "completed", "action": {"type": "search", "query": "q", "sources": [{"type": "api", "name": "w"}]},
    },
    "x_search_call": {"status": "completed", "name": "x_search", "call_id": "xs_1", "arguments": '{"q":"a"}'},
    "file_search_call": {
        "status": "completed", "queries": ["q"], "results": [{"file_id": "file_1", "score": 0.5}],
    },
    "document_finder_call": {"status": "completed", "queries": ["q"], "collections": ["c"]},
    "file_reader_call": {"status": "completed", "file_id": "file_1", "first_page": 2},
    "code_interpreter_call": {
        "status": "completed", "code": "1+1", "container_id": "cntr_1", "outputs": [{"type": "logs", "logs": "2"}],
    },
    "mcp_call": {"name": "f", "server_label": "s", "arguments": "{}", "output": "done"},
    "program": {"call_id": "call_1", "code": "print(1)", "fingerprint": "f"},
    "mcp_list_tools": {"server_label": "s", "tools": [{"name": "f", "input_schema": {"type": "object"}}]},
    "function_call_output": {"call_id": "call_1", "output": "3", "status": "completed"},
    "custom_tool_call_output": {"call_id": "call_1", "output": "3"},
    "computer_call_output": {
        "call_id": "call_1", "output": {"type": "computer_screenshot", "image_url": "https://x.test/i"},
        "status": "completed",
    },
    "local_shell_call_output": {"call_id": "call_1", "output": "{}", "status": "completed"},
    "shell_call_output": {
        "call_id": "call_1", "max_output_length": 9, "status": "completed",
        "output": [{"outcome": {"type": "exit", "exit_code": 0}, "stdout": "a", "stderr": "b"}],
    },
    "apply_patch_call_output": {"call_id": "call_1", "status": "completed", "output": "done"},
    "tool_search_output": {
        "call_id": "call_1", "execution": "server", "status": "completed", "tools": [{"type": "web_search"}],
    },
    "program_output": {"call_id": "call_1", "result": "1", "status": "completed"},
    "image_generation_call": {"status": "completed", "result": "aGk=", "output_format": "png"},
    "mcp_approval_response": {"approval_request_id": "mcpr_1", "approve": True},
    "additional_tools": {"role": "assistant", "tools": [{"type": "web_search"}]},
    "compaction": {"encrypted_content": "gAAA"},
    "unheard_of": {"something": {"new": [1, 2]}},
}  # fmt: skip


def item_of(type: str) -> dict[str, Any]:
    return {"type": type, "id": f"{type}_1", **THE_ITEMS[type]}


def response_with(*items: dict[str, Any]) -> dict[str, Any]:
    """A response with what OpenAI repeats of the request."""
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1790000000,
        "completed_at": 1790000004,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": "Be brief.",
        "max_output_tokens": 99,
        "model": "gpt-x",
        "output": list(items),
        "parallel_tool_calls": False,
        "previous_response_id": "resp_0",
        "reasoning": {"effort": "low", "summary": None},
        "service_tier": "default",
        "temperature": 0.5,
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": {"type": "function", "name": "f"},
        "tools": [
            {
                "type": "function",
                "name": "f",
                "parameters": {"type": "object"},
                "strict": True,
                "description": None,
            },
            {"type": "custom", "name": "sql"},
        ],
        "top_p": 0.9,
        "truncation": "disabled",
        "usage": {
            "input_tokens": 9,
            "input_tokens_details": {"cached_tokens": 4},
            "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 2},
            "total_tokens": 14,
        },
        "metadata": {"k": "v"},
    }


def stream_of(response: dict[str, Any]) -> bytes:
    """*response* as a stream with whole items."""
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": begun}]
    for number, item in enumerate(response["output"]):
        place = {"output_index": number, "item": item}
        empty = {"content": [], "summary": [], "arguments": "", "input": ""}
        added = {key: empty.get(key, value) for key, value in item.items()}
        if item["type"] in (
            "function_call",
            "custom_tool_call",
            "mcp_approval_request",
            "message",
            "reasoning",
        ):
            events.append({"type": "response.output_item.added", **place, "item": added})
        events.append({"type": "response.output_item.done", **place})
    events.append({"type": "response.completed", "response": response})
    frames = ({**event, "sequence_number": number} for number, event in enumerate(events))
    return b"".join(b"data: %s\n\n" % orjson.dumps(frame) for frame in frames)


def test_every_item_is_tried() -> None:
    assert THE_ITEMS.keys() - {"unheard_of"} == ITEMS.keys()


@pytest.mark.parametrize("type", THE_ITEMS)
def test_an_item_comes_back_as_it_was(type: str) -> None:
    """Read by the plugin, written by the writer and read by its class, alone and between others."""
    text = {"type": "message", "id": "msg_0", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "Well.", "annotations": []}]}  # fmt: skip
    item = item_of(type)
    between = () if type == "message" else ([text, item], [item, text], [text, item, {**text, "id": "msg_9"}])
    for items in ([item], *between):  # which of two messages a part is of, nothing tells
        body = response_with(*items)
        answer = normalize(orjson.dumps(body), "openai_responses", keep_raw=False)
        converted = convert(answer, RESPONSES)
        assert load_json(converted.value) == body
        assert converted.report.is_lossless
        assert to_dict(to_response(answer).value) == body
    assert to_dict(parse_item(item, unknown="keep")) == item


@pytest.mark.sweep
@pytest.mark.parametrize("type", THE_ITEMS)
def test_a_streamed_item_comes_back_as_it_was(type: str) -> None:
    body = response_with(item_of(type))
    stream = convert_stream(normalize_stream([stream_of(body)], "openai_responses"), RESPONSES)
    events = list(data_of(b"".join(stream)))
    assert events[-1]["response"] == body
    assert [event["item"] for event in events if event["type"] == "response.output_item.done"] == body[
        "output"
    ]
    assert stream.report.is_lossless
    typed = to_events(normalize_stream([stream_of(body)], "openai_responses"))
    assert [to_dict(event) for event in typed] == events


def test_counts_that_a_stream_begins_with_wait_for_its_end() -> None:
    sent = stream_of(response_with(item_of("function_call")))
    odd = sent.replace(b'"usage":null', b'"usage":{"tier_tokens":3}', 1)
    stream = convert_stream(normalize_stream([odd], "openai_responses"), RESPONSES)
    first, *_, last = data_of(b"".join(stream))
    assert first["response"].get("usage") is None
    assert last["response"]["usage"]["total_tokens"] == 14


def with_left(answer: ChatResponse, left: dict[str, Any]) -> ChatResponse:
    return attrs.evolve(answer, metadata=attrs.evolve(answer.metadata, extensions=left), raw_events=())


def test_what_does_not_come_back_is_named_by_itself() -> None:
    body = {**response_with(item_of("function_call")), "top_logprobs": 2}
    answer = normalize(orjson.dumps(body), "openai_responses", keep_raw=False)
    left = answer.metadata.extensions.thawed()
    left["output"][0]["id"] = 7
    report = convert(with_left(answer, left), RESPONSES).report
    assert report.paths == {"metadata.extensions.output[0].id"}
    assert convert(answer, CHAT).report.names("metadata.extensions.temperature")


def test_what_the_types_cannot_hold_stays_out_of_them_alone() -> None:
    body = {**response_with(), "temperature": "hot", "metadata": ["no", "object"]}
    answer = normalize(orjson.dumps(body), "openai_responses", keep_raw=False)
    assert load_json(convert(answer, RESPONSES).value)["temperature"] == "hot"
    typed = to_response(answer)
    assert typed.value.temperature is None
    assert typed.report.names("metadata.extensions.temperature")
    assert typed.report.names("metadata.extensions.metadata")
    assert typed.value.top_p == 0.9
    received = to_response(normalize(orjson.dumps(body), "openai_responses"))
    assert (received.value.temperature, received.value.top_p) == (None, 0.9)


@pytest.mark.parametrize("more", [{}, {"action": None}, {"action": {"type": "search", "query": "q"}}])
def test_a_search_that_is_written_like_a_call_comes_back(more: dict[str, Any]) -> None:
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "arguments": '{"q":1}', **more}
    answer = normalize(orjson.dumps(response_with(search)), "openai_responses", keep_raw=False)
    assert load_json(convert(answer, RESPONSES).value)["output"] == [search]


def test_blocks_that_stand_nowhere_stay_out() -> None:
    body = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
        "stop_sequence": None, "content": [{"type": "text", "text": "a"}],
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip
    answer = normalize(orjson.dumps(body), "anthropic", keep_raw=False)
    left = {"stop_sequence": None, "content": ["odd", {"index": 7, "type": "compaction"}]}
    converted = convert(with_left(answer, left), MESSAGES)
    assert [block["text"] for block in load_json(converted.value)["content"]] == ["a"]
    assert converted.report.names("metadata.extensions.content")


def test_a_part_that_nobody_knows_comes_back() -> None:
    parts = [
        {"type": "output_text", "text": "a", "annotations": []},
        {"type": "hologram", "index": 4, "x": 1},
    ]
    body = response_with({"type": "message", "id": "msg_1", "role": "assistant", "content": parts})
    answer = normalize(orjson.dumps(body), "openai_responses", keep_raw=False)
    assert load_json(convert(answer, RESPONSES).value) == body


def test_an_item_that_the_types_cannot_hold_stays_out_of_them() -> None:
    body = response_with({"type": "compaction", "id": "cmp_1", "encrypted_content": 5})
    answer = normalize(orjson.dumps(body), "openai_responses", keep_raw=False)
    assert load_json(convert(answer, RESPONSES).value) == body
    assert to_response(answer).value.output == ()


@pytest.mark.parametrize("arguments", ["", "no JSON", "[1]"])
def test_an_action_that_is_none_becomes_a_call_of_a_function(arguments: str) -> None:
    answer = normalize(
        orjson.dumps(response_with(item_of("local_shell_call"))), "openai_responses", keep_raw=False
    )
    (call,) = answer.message.tool_calls or ()
    changed = attrs.evolve(
        answer,
        message=attrs.evolve(answer.message, tool_calls=[attrs.evolve(call, arguments=arguments)]),
        segments=(),
    )
    (item, *_) = load_json(convert(changed, RESPONSES, losses="report").value)["output"]
    assert (item["type"], item["name"], item["call_id"]) == ("function_call", "local_shell_call", "call_1")
    assert item["arguments"] == (arguments or "{}")
    assert to_response(changed).value.output


SERVERS = [
    ("mcp_list_tools", "text that has no field", None),
    ("file_search_call", "no JSON", None),
    ("file_search_call", "", {"queries"}),
    ("program", "", {"code"}),
]


@pytest.mark.parametrize(("type", "text", "absent"), SERVERS)
def test_what_a_server_was_asked_goes_where_its_form_says_it(
    type: str, text: str, absent: set[str] | None
) -> None:
    """An answer that was changed: what it says of the item cannot be written, or is not there."""
    answer = normalize(orjson.dumps(response_with(item_of(type))), "openai_responses", keep_raw=False)
    (segment,) = answer.segments
    output = load_json(
        convert(attrs.evolve(answer, segments=[attrs.evolve(segment, content=text)]), RESPONSES).value
    )["output"]
    if absent is None:  # what is kept of the item is all that there is
        assert output == [
            {"type": type, "id": f"{type}_1"} | ({"status": "completed"} if "status" in item_of(type) else {})
        ]
    else:
        assert output[0].get(*absent, "") == ""


@pytest.mark.parametrize("choices", ["odd", [1], [{"index": 7, "x": 1}]])
def test_choices_that_are_none_do_no_harm(choices: Any) -> None:
    body = {
        "id": "c", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}],
    }  # fmt: skip
    answer = normalize(orjson.dumps(body), "openai", keep_raw=False)
    changed = with_left(answer, {"object": "chat.completion", "choices": choices, "x": 1})
    back = load_json(convert(changed, CHAT).value)
    assert back["choices"][0]["message"]["content"] == "a"
    assert (len(back["choices"]), back["x"]) == (1, 1)
    stream = [
        load_json(event) for event in [orjson.dumps(data) for data in data_of(b"".join(streamed(changed)))]
    ]
    assert stream[-1]["x"] == 1


def streamed(answer: ChatResponse) -> Iterator[bytes]:
    deltas = [
        ResponseDelta(index=0, content_delta="a", extensions=answer.metadata.extensions),
        ResponseDelta(index=1, finish_reason=FinishReason.STOP),
    ]
    return convert_stream(deltas, CHAT)


# The words of one server: what its reader knows, its writer knows.

SPEAKERS = [name for name in registry.names() if registry.mapper(name).info.spell is not None]

IN_OPENAIS_WORDS: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1790000000,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "Well.",
                "reasoning_content": "Hm.",
                "tool_calls": [
                    {"id": f"call__{n}", "type": "function", "function": {"name": "f", "arguments": "{}"}}
                    for n in range(2)
                ],
            },
            "finish_reason": "tool_calls",
        }
    ],
    "usage": {
        "prompt_tokens": 9,
        "completion_tokens": 5,
        "total_tokens": 14,
        "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3},
        "completion_tokens_details": {"reasoning_tokens": 2},
    },
}


def test_servers_of_the_dialect_say_how_they_spell_it() -> None:
    assert {"openai", "vllm", "sglang", "ollama", "deepseek", "llamacpp", "openrouter"} <= {*SPEAKERS}


@pytest.mark.parametrize("reasoning_tokens", [0, 2])
@pytest.mark.parametrize("provider", SPEAKERS)
def test_what_a_server_spells_its_reader_takes(provider: str, reasoning_tokens: int) -> None:
    body = copy_json(IN_OPENAIS_WORDS)
    body["usage"]["completion_tokens_details"] = {"reasoning_tokens": reasoning_tokens}
    spell = registry.mapper(provider).info.spell
    assert spell is not None
    spell(body)
    answer = normalize(orjson.dumps(body), provider, keep_raw=False)
    assert answer.usage == UsageInfo(9, 5, 4, reasoning_tokens, 3)
    assert (answer.text, answer.reasoning) == ("Well.", "Hm.")
    assert [(call.id, call.name) for call in answer.tool_calls] == [("call__0", "f"), ("call__1", "f")]
    left = answer.metadata.extensions.thawed()
    assert left.pop("object") == "chat.completion"
    for part in left.pop("choices", []):  # llama-cpp-python's forced call is one alone
        assert (provider, part["message"].keys()) == ("llamacpp", {"function_call"})
    assert not left
    assert load_json(convert(answer, CHAT).value) == {
        **body,
        "choices": [
            {**choice, "logprobs": None, "message": {**choice["message"], "refusal": None}}
            for choice in body["choices"]
        ],
    }


@pytest.mark.parametrize("provider", ["nobody", "gemini", *SPEAKERS])
@pytest.mark.parametrize(
    "left",
    [
        {"usage": {"prompt_tokens_details": 5, "completion_tokens_details": "odd"}},
        {"choices": [{"index": 0, "message": {"reasoning_details": "odd", "annotations": "odd"}}]},
        {"choices": [{"index": 0, "message": {"tool_calls": "odd", "reasoning_details": ["odd"]}}]},
        {"choices": [{"index": 7, "type": "odd", "message": "odd"}], "search_results": 5},
        {"choices": [{"index": 7, "type": "odd", "message": {"tool_calls": [5], "annotations": [5]}}]},
        {"choices": [{"index": 7, "type": "odd", "message": {"reasoning_details": [5]}}]},
    ],
)
def test_what_is_kept_in_another_shape_does_no_harm(provider: str, left: dict[str, Any]) -> None:
    body = copy_json(IN_OPENAIS_WORDS)
    del body["choices"][0]["message"]["tool_calls"], body["usage"]["prompt_tokens_details"]
    answer = normalize(orjson.dumps(body), "openai", keep_raw=False)
    signed = Segment(SegmentType.REASONING, "Hm.", {"type": "reasoning.text", "signature": "s"})
    cited = Segment(SegmentType.CITATION, "A", annotations=[CitationRef(None, "https://a.test")])
    changed = attrs.evolve(
        with_left(answer, {"object": "chat.completion", **left}),
        segments=[signed, cited, *answer.segments[1:]],
    )
    known = attrs.evolve(changed, metadata=attrs.evolve(changed.metadata, provider_id=provider))
    try:
        back = load_json(convert(known, CHAT).value)
    except ConversionError as error:  # nobody can read it
        assert "has another shape there" in str(error)
    else:
        assert back["choices"][0]["message"]["content"] == "Well."
        assert back["usage"]["total_tokens"] == 14


def test_details_of_reasoning_come_back_with_their_text() -> None:
    body = copy_json(IN_OPENAIS_WORDS)
    message = body["choices"][0]["message"]
    message["reasoning"] = message.pop("reasoning_content")
    for number, call in enumerate(message["tool_calls"]):
        call["index"] = number
    message["reasoning_details"] = [
        {"type": "reasoning.summary", "summary": "Hm.", "format": "f", "index": 0},
        {"type": "reasoning.encrypted", "data": "gAAA", "id": "rs_1", "format": "f", "index": 1},
    ]
    answer = normalize(orjson.dumps(body), "openrouter", keep_raw=False)
    converted = convert(answer, CHAT)
    assert load_json(converted.value)["choices"][0]["message"] == {**message, "refusal": None}
    assert converted.report.is_lossless


def test_a_stream_is_spelled_as_its_server_spells() -> None:
    chunks: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": {"role": "assistant", "reasoning": "Hm."}}]},
        {"choices": [{"index": 0, "delta": {"reasoning_details": [
            {"type": "reasoning.encrypted", "data": "gAAA", "index": 0}]}}]},
        {"choices": [{"index": 0, "delta": {"content": "Well."}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}},
    ]  # fmt: skip
    about = {"id": "gen-1", "object": "chat.completion.chunk", "created": 1790000000, "model": "m"}
    source = b"".join(b"data: %s\n\n" % orjson.dumps({**about, **chunk}) for chunk in chunks)
    stream = convert_stream(normalize_stream([source + b"data: [DONE]\n\n"], "openrouter"), CHAT)
    deltas = [choice["delta"] for event in data_of(b"".join(stream)) for choice in event["choices"]]
    said = {name: value for delta in deltas for name, value in delta.items()}
    assert said["reasoning"] == "Hm."
    assert said["reasoning_details"] == [{"type": "reasoning.encrypted", "data": "gAAA", "index": 0}]


def test_integers_of_any_length_come_back() -> None:
    body = {**copy_json(IN_OPENAIS_WORDS), "seed": 10**30}
    answer = normalize(dump_json(body), "openai", keep_raw=False)
    assert load_json(convert(answer, CHAT).value)["seed"] == 10**30


def test_what_a_streamed_call_has_beside_comes_back_in_its_start() -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}, "caller": {"type": "direct"}}
    begun = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None,
        "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": call},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {**call, "id": "toolu_2"}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None},
         "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ]  # fmt: skip
    source = b"".join(b"data: %s\n\n" % orjson.dumps(event) for event in events)
    stream = convert_stream(normalize_stream([source], "anthropic"), MESSAGES)
    starts = [event for event in data_of(b"".join(stream)) if event["type"] == "content_block_start"]
    assert starts == [events[1], events[4]]
    assert stream.report.is_lossless


# Answers that somebody has changed, and extensions that nobody sends.


@pytest.mark.parametrize("type", ["reasoning", "mcp_list_tools", "function_call", "image_generation_call"])
def test_items_in_another_order_are_written_once(type: str) -> None:
    text = {"type": "message", "id": "msg_0", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "Well.", "annotations": []}]}  # fmt: skip
    item = item_of(type)
    answer = normalize(orjson.dumps(response_with(item, text)), "openai_responses", keep_raw=False)
    turned = attrs.evolve(answer, segments=[answer.segments[-1], *answer.segments[:-1]])
    assert load_json(convert(turned, RESPONSES).value)["output"] == [text, item]


def test_an_output_that_becomes_something_else_in_a_stream_does_no_harm() -> None:
    left: list[Any] = [
        {"output": [{"index": 0, "type": "message", "id": "msg_1"}]},
        {"output": {"7": "odd"}},
        {"output": 5},
    ]
    made = [ResponseDelta(number, content_delta="a", extensions=more) for number, more in enumerate(left)]
    end = ResponseDelta(3, finish_reason=FinishReason.STOP, raw_finish_reason="completed")
    events = [*data_of(b"".join(convert_stream([*made, end], RESPONSES, id="r", model="m")))]
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == "aaa"


@pytest.mark.parametrize("index", [[], {}, "0", None, 1.5, True])
def test_a_choice_whose_number_is_none_does_no_harm(index: Any) -> None:
    body = {
        "id": "c", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}],
    }  # fmt: skip
    answer = normalize(orjson.dumps(body), "openai", keep_raw=False)
    left = {"object": "chat.completion", "choices": [5, {"index": index, "x": 1}]}
    changed = with_left(answer, left)
    assert load_json(convert(changed, CHAT).value)["choices"][0]["message"]["content"] == "a"
    assert [*data_of(b"".join(streamed(changed)))][-1]["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("content", ["5", "null", '"text"', "[1]"])
def test_what_a_search_is_asked_is_an_object_or_goes_back_as_it_is(content: str) -> None:
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}}
    answer = normalize(orjson.dumps(response_with(search)), "openai_responses", keep_raw=False)
    (segment,) = answer.segments
    changed = attrs.evolve(answer, segments=[attrs.evolve(segment, content=content)])
    converted = convert(changed, RESPONSES)
    (item,) = load_json(converted.value)["output"]
    assert item.get("arguments") == (None if content == "null" else content)
    assert bool(converted.report.losses) == (content == "null")


@pytest.mark.parametrize(
    ("reason", "raw", "written"),
    [
        ("stop", "end_turn", "end_turn"),
        ("stop", "compaction", "compaction"),
        ("stop", "tool_use", "tool_use"),
        ("stop", "unheard_of", "unheard_of"),
        ("length", "end_turn", "max_tokens"),
        ("stop", None, "end_turn"),
    ],
)
def test_a_word_for_the_end_goes_back_unless_the_answer_says_another(
    reason: str, raw: str | None, written: str
) -> None:
    body = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
        "stop_sequence": None, "content": [{"type": "text", "text": "a"}],
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip
    answer = normalize(orjson.dumps(body), "anthropic", keep_raw=False)
    changed = attrs.evolve(answer, finish_reason=reason, raw_finish_reason=raw)
    assert load_json(convert(changed, MESSAGES).value)["stop_reason"] == written


def test_a_call_of_a_tool_that_nobody_knows_comes_back() -> None:
    block = {"type": "hologram_tool_use", "id": "t_1", "name": "h", "input": {"a": 1}}
    body = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
        "stop_sequence": None, "content": [block], "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip
    answer = normalize(orjson.dumps(body), "anthropic", keep_raw=False)
    converted = convert(answer, MESSAGES)
    assert (load_json(converted.value), converted.report.is_lossless) == (body, True)
