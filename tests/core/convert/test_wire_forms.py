"""One knowledge of each wire form: who reads it, who writes it and the official clients know the words of its table.

For the Responses API ``tests/core/responses/test_wire.py`` holds the typed events and items to the same
table.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import anthropic.types as sdk
import orjson
import pytest
from openai.types.chat import ChatCompletion
from openai.types.responses import ResponseError

import crosswalk_openai as openai_dialect
from converting import FORMS, accept_body, data_of, read_body
from crosswalk import (
    ChatMessage,
    ChatResponse,
    CitationRef,
    ErrorInfo,
    ErrorKind,
    FinishReason,
    ResponseDelta,
    ResponseMetadata,
    Segment,
    SegmentType,
    ToolCall,
    ToolCallDelta,
    UnknownEventError,
    UsageInfo,
    normalize,
    normalize_stream,
)
from crosswalk.convert import WireForm, convert, convert_stream
from crosswalk.formats.writing import Parts, form_of_body
from crosswalk.mapping.openai_chat import OpenAIChatDialect
from crosswalk.responses.accumulator import ITEM_CLASSES
from crosswalk.responses.content import Annotation
from crosswalk.responses.records import classes_of, keys_of
from crosswalk.wire import chat, messages, responses
from crosswalk_anthropic.messages import BLOCKS, PIECES, AnthropicDialect
from wires import NOW

CHAT, RESPONSES, MESSAGES = FORMS
T = SegmentType
WORDS: Mapping[WireForm, Mapping[str, FinishReason]] = {
    CHAT: chat.WRITTEN,
    RESPONSES: responses.FINISH_REASONS,
    MESSAGES: messages.FINISH_REASONS,
}
COUNTS: Mapping[WireForm, Mapping[str, str]] = {
    CHAT: chat.COUNTS,
    RESPONSES: responses.COUNTS,
    MESSAGES: messages.COUNTS,
}


def answer(*parts: Segment, finish: str = "stop", **more: Any) -> ChatResponse:
    said = [part.content for part in parts if part.type is T.TEXT]
    given: dict[str, Any] = {
        "id": "a1",
        "message": ChatMessage.assistant("".join(said) if said else None),
        "finish_reason": finish,
        "usage": UsageInfo(9, 5, 4, 3, 2),
        "metadata": ResponseMetadata("made_up", "m"),
        "created": NOW,
        "model": "m",
        "segments": parts,
    }
    return ChatResponse(**{**given, **more})


def leaves(value: Any, path: str = "") -> Iterator[str]:
    if not isinstance(value, dict):
        yield path
        return
    for name, inner in value.items():
        yield from leaves(inner, f"{path}.{name}" if path else name)


def cases(function: Callable[..., Any]) -> set[str]:
    """The words in the patterns of the ``match`` statements of *function*."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    values = (node.value for node in ast.walk(tree) if isinstance(node, ast.MatchValue))
    return {
        value.value for value in values if isinstance(value, ast.Constant) and isinstance(value.value, str)
    }


def looked_up(function: Callable[..., Any], holder: str) -> set[str]:
    """The keys that *function* looks up in *holder*, one of its variables."""
    found = set()
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function)))):
        match node:
            case ast.Call(args=[ast.Name(id=name), ast.Constant(value=key), *_]) if name == holder:
                found.add(key)
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name)), args=[ast.Constant(value=key), *_]
            ) if name == holder:
                found.add(key)
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=key)) if name == holder:
                found.add(key)
            case ast.Compare(left=ast.Constant(value=key), comparators=[ast.Name(id=name)]) if name == holder:
                found.add(key)
    return {key for key in found if isinstance(key, str)}


def test_the_two_helpers_see_words() -> None:
    def reads(part: dict[str, Any]) -> None:
        match part.get("a"):
            case "x" | "y":
                assert "b" in part
                part["c"] = part.pop("d")

    assert cases(reads) == {"x", "y"}
    assert looked_up(reads, "part") == {"a", "b", "c", "d"}


# Words for the end, counts: all forms.


@pytest.mark.parametrize("form", FORMS)
def test_every_word_for_the_end_is_read_and_written(form: WireForm) -> None:
    words = WORDS[form]
    assert {FinishReason.STOP, FinishReason.LENGTH, FinishReason.CONTENT_FILTER} <= {*words.values()}
    for reason in FinishReason:
        if reason is FinishReason.ERROR:
            continue
        calls = [ToolCall("c1", "f")] if reason is FinishReason.TOOL_CALLS else ()
        made = answer(
            Segment(T.TEXT, "x"), finish=reason.value, message=ChatMessage.assistant("x", tool_calls=calls)
        )
        conversion = convert(made, form)
        accept_body(conversion)
        back = read_body(conversion)
        assert back.raw_finish_reason in words
        if reason in words.values():
            assert back.finish_reason is reason
    for word, reason in words.items():
        if reason is not FinishReason.ERROR:
            made = answer(Segment(T.TEXT, "x"), finish=reason.value, raw_finish_reason=word)
            assert read_body(convert(made, form)).raw_finish_reason == word


def test_readers_have_the_words_of_the_tables() -> None:
    assert OpenAIChatDialect.finish_reasons is chat.FINISH_REASONS
    assert AnthropicDialect.finish_reasons is messages.FINISH_REASONS
    assert {*messages.PAUSES} <= messages.FINISH_REASONS.keys()


@pytest.mark.parametrize("form", FORMS)
def test_every_count_is_read_and_written_where_the_table_says(form: WireForm) -> None:
    response = answer(Segment(T.TEXT, "x"))
    conversion = convert(response, form)
    usage = {
        name: count for name, count in orjson.loads(conversion.value)["usage"].items() if count is not None
    }
    assert set(leaves(usage)) == set(COUNTS[form].values())
    assert read_body(conversion).usage == response.usage
    kept = read_body(conversion).metadata.extensions.thawed().get("usage", {})
    assert not any(value is not None for value in kept.values())


# Chat Completions.

IN_A_MESSAGE: dict[str, Any] = {
    "content": "Hi",
    "reasoning_content": "Hm",
    "reasoning": "Hm",
    "refusal": "No",
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    "function_call": {"name": "f", "arguments": "{}"},
    "annotations": [
        {
            "type": "url_citation",
            "url_citation": {"start_index": 0, "end_index": 2, "title": "A", "url": "https://a.test"},
        }
    ],
    "audio": {"id": "au", "data": "QUJD", "expires_at": 9, "transcript": "Hi"},
    "images": [{"type": "image_url", "image_url": {"url": "https://a.test/i.png"}}],
}


def completion(message: dict[str, Any], finish: str = "stop") -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return orjson.dumps({"id": "c", "object": chat.BODY, "created": 1, "model": "m", "choices": [choice]})


@pytest.mark.parametrize("name", chat.FIELDS)
def test_every_field_of_a_message_is_read(name: str) -> None:
    read = normalize(completion({name: IN_A_MESSAGE[name]}), "openrouter")
    assert [segment.type for segment in read.segments] == [chat.FIELDS[name]]
    assert read.metadata.extensions.keys() == {"object"}
    assert chat.AUDIO.keys() == IN_A_MESSAGE["audio"].keys()
    assert chat.CITATION.keys() == IN_A_MESSAGE["annotations"][0]["url_citation"].keys()


def test_the_readers_of_a_message_look_for_no_other_field() -> None:
    rows = openai_dialect.ChatDialect.part_rows
    assert rows.keys() - {"role", "reasoning_details"} == chat.FIELDS.keys()
    for method in (OpenAIChatDialect.reasoning, OpenAIChatDialect.tool_calls):
        assert looked_up(method, "part") <= chat.FIELDS.keys()
    own = {name for name, row in rows.items() if row.place == "segments"} - {"reasoning_details"}
    assert own == {name for name, kind in chat.FIELDS.items() if kind in (T.CITATION, T.MEDIA)}
    assert {*chat.SPEECH} == chat.FIELDS.keys() - own


RICH = [
    Segment(T.REASONING, "Hm"),
    Segment(T.TEXT, "Hi"),
    Segment(T.CITATION, "A", {}, [CitationRef(None, "https://a.test", (0, 2))]),
    Segment(T.REFUSAL, "No"),
    Segment(T.MEDIA, "QUJD", {"type": "audio", "id": "au", "expires_at": 9, "transcript": "Hi"}),
    Segment(T.TOOL_CALL, "{}", {"id": "c1", "name": "f"}),
]


def test_the_writer_of_a_message_says_the_first_field_for_each_thing() -> None:
    calls = normalize(
        completion({"tool_calls": IN_A_MESSAGE["tool_calls"]}, "tool_calls"), "openai"
    ).message.tool_calls
    made = answer(
        *RICH, message=ChatMessage.assistant("Hi", tool_calls=calls), finish="tool_calls", refusal="No"
    )
    conversion = convert(made, CHAT)
    (choice,) = orjson.loads(conversion.value)["choices"]
    firsts = {kind: name for name, kind in reversed([*chat.FIELDS.items()])}
    assert choice["message"].keys() == {"role", *firsts.values()}
    assert choice["message"]["audio"].keys() == chat.AUDIO.keys()
    (note,) = choice["message"]["annotations"]
    assert note["url_citation"].keys() == chat.CITATION.keys()
    read = normalize(conversion.value, "openrouter")
    assert {segment.type for segment in read.segments} == {*firsts}
    assert read.metadata.extensions.keys() == {"object"}


def test_the_official_client_knows_the_words_of_the_writer() -> None:
    choice = ChatCompletion.model_fields["choices"].annotation.__args__[0]  # type: ignore[union-attr]
    known = {*typing.get_args(choice.model_fields["finish_reason"].annotation)}
    assert known <= chat.FINISH_REASONS.keys()
    assert chat.WRITTEN.keys() <= known


# Messages.

TOOL = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}}
IN_CONTENT: dict[str, dict[str, Any]] = {
    "text": {"type": "text", "text": "Hi"},
    "thinking": {"type": "thinking", "thinking": "Hm", "signature": "s=="},
    "redacted_thinking": {"type": "redacted_thinking", "data": "e=="},
    "tool_use": TOOL,
    "server_tool_use": {**TOOL, "type": "server_tool_use", "name": "web_search"},
    "mcp_tool_use": {**TOOL, "type": "mcp_tool_use", "server_name": "s"},
    **{
        name: {
            "type": name,
            "tool_use_id": "toolu_1",
            "content": {"type": f"{name}_error", "error_code": "unavailable"},
        }
        for name in messages.BLOCKS
        if name.endswith("_tool_result")
    },
    "container_upload": {"type": "container_upload", "file_id": "file_1"},
}


def message(*content: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [*content],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
        **more,
    }


def test_every_block_is_tried() -> None:
    assert IN_CONTENT.keys() == messages.BLOCKS.keys()


@pytest.mark.parametrize("name", messages.BLOCKS)
def test_a_block_is_read_and_written(name: str) -> None:
    body = message(IN_CONTENT[name])
    read = normalize(orjson.dumps(body), "anthropic", keep_raw=False)
    assert [segment.type for segment in read.segments] == [messages.BLOCKS[name].segment]
    assert orjson.loads(convert(read, MESSAGES).value) == body
    deltas = normalize_stream([orjson.dumps(body)], "anthropic")
    events = [*data_of(b"".join(convert_stream(deltas, MESSAGES)))]
    assert {event["type"] for event in events} <= messages.EVENTS.keys()
    assert normalize(
        b"".join(convert_stream(normalize_stream([orjson.dumps(body)], "anthropic"), MESSAGES)), "anthropic"
    ).same_content(normalize(orjson.dumps(body), "anthropic"))


def start(block: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "message_start", "message": message(stop_reason=None)},
        {"type": "content_block_start", "index": 0, "content_block": block},
    ]


IN_PIECES: dict[str, Any] = {
    "text_delta": "Hi",
    "citations_delta": {
        "type": "web_search_result_location", "cited_text": "a", "url": "https://a.test", "title": "A", "encrypted_index": "e",
    },
    "thinking_delta": "Hm",
    "signature_delta": "s==",
    "input_json_delta": '{"a":1}',
}  # fmt: skip
EMPTY: dict[str, dict[str, Any]] = {
    "text": {"type": "text", "text": "", "citations": None},
    "thinking": {"type": "thinking", "thinking": "", "signature": ""},
    "tool_use": {**TOOL, "input": {}},
}
END: list[dict[str, Any]] = [
    {"type": "content_block_stop", "index": 0},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn", "stop_sequence": None},
        "usage": {"output_tokens": 1},
    },
    {"type": "message_stop"},
]


def stream(events: list[dict[str, Any]]) -> bytes:
    return b"".join(b"data: %s\n\n" % orjson.dumps(event) for event in events)


@pytest.mark.parametrize("type", messages.PIECES)
def test_a_piece_is_read_and_written(type: str) -> None:
    piece = messages.PIECES[type]
    delta = {"type": type, piece.leaf: IN_PIECES[type]}
    event = {"type": "content_block_delta", "index": 0, "delta": delta}
    sent = stream([*start(EMPTY[piece.block]), event, *END])
    read = normalize(sent, "anthropic")
    segment = read.segments[-1]
    said = [segment.content, segment.metadata.get(piece.leaf), segment.metadata.get("url")]
    assert IN_PIECES[type] in said or IN_PIECES[type]["url"] in said
    assert "content" not in read.metadata.extensions
    events = [*data_of(b"".join(convert_stream(normalize_stream([sent], "anthropic"), MESSAGES)))]
    assert [event["delta"] for event in events if event["type"] == "content_block_delta"] == [delta]


def test_the_reader_of_messages_knows_no_other_word() -> None:
    said_nothing = {"error", "ping", "content_block_stop"}
    assert AnthropicDialect.fields.keys() == {"message", *messages.EVENTS} - said_nothing
    assert {type: [*table.rows] for type, table in PIECES.items()} == {
        type: [piece.leaf] for type, piece in messages.PIECES.items()
    }
    assert all(messages.BLOCKS[type].leaf in table.rows for type, table in BLOCKS.items())
    for unknown in (
        {"type": "content_block_delta", "index": 0, "delta": {"type": "hologram_delta"}},
        {"type": "hologram"},
    ):
        with pytest.raises(UnknownEventError):
            normalize(stream([*start(EMPTY["text"]), unknown, *END]), "anthropic")


def test_every_event_of_messages_is_read_and_written() -> None:
    said = [
        *start(EMPTY["text"]),
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
        *END,
    ]
    events = [said[0], {"type": "ping"}, *said[1:]]
    assert {event["type"] for event in events} == messages.EVENTS.keys() - {"error"}
    for event in events:
        brings = messages.EVENTS[event["type"]]
        assert not brings or brings in event
    assert normalize(stream(events), "anthropic").text == "Hi"
    failed = stream(
        [*events[:-1], {"type": "error", "error": {"type": "overloaded_error", "message": "No."}}]
    )
    assert normalize(failed, "anthropic").finish_reason is FinishReason.ERROR
    written = [*data_of(b"".join(convert_stream(normalize_stream([failed], "anthropic"), MESSAGES)))]
    assert {event["type"] for event in written} == messages.EVENTS.keys() - {
        "ping",
        "message_delta",
        "message_stop",
    }


@pytest.mark.parametrize("type", messages.LOCATIONS)
def test_a_place_that_is_cited_is_read_and_written(type: str) -> None:
    samples: dict[Any, Any] = {int: 1, str: "https://a.test"}
    place = {
        "type": type,
        "cited_text": "a",
        **{name: samples[of] for name, of in messages.LOCATIONS[type].items()},
    }
    body = message({"type": "text", "text": "a", "citations": [place]})
    read = normalize(orjson.dumps(body), "anthropic", keep_raw=False)
    assert [segment.type for segment in read.segments] == [T.CITATION, T.TEXT]
    assert orjson.loads(convert(read, MESSAGES).value) == body
    foreign = answer(*read.segments)
    assert orjson.loads(convert(foreign, MESSAGES).value)["content"][0]["citations"] == [place]


@pytest.mark.parametrize("type", messages.ERRORS)
def test_an_error_of_messages_is_read_and_written(type: str) -> None:
    body = {"type": "error", "error": {"type": type, "message": "It broke."}, "request_id": None}
    read = normalize(orjson.dumps(body), "anthropic")
    assert read.error_info is not None
    assert read.error_info.kind is messages.ERRORS[type]
    assert orjson.loads(convert(read, MESSAGES).value) == body


def discriminators(union: Any) -> set[str]:
    members = typing.get_args(typing.get_args(union)[0])
    return {typing.get_args(member.model_fields["type"].annotation)[0] for member in members}


def test_the_official_client_knows_the_words_of_messages() -> None:
    clients = discriminators(sdk.ContentBlock)
    assert clients <= messages.BLOCKS.keys()
    assert {name for name, known in messages.BLOCKS.items() if known.needs} <= clients
    assert {*typing.get_args(sdk.StopReason)} <= messages.FINISH_REASONS.keys()
    assert discriminators(sdk.TextCitation) == messages.LOCATIONS.keys()
    assert discriminators(sdk.RawContentBlockDelta) == messages.PIECES.keys()
    assert discriminators(sdk.RawMessageStreamEvent) == messages.EVENTS.keys() - {"ping", "error"}
    tools = typing.get_args(sdk.ServerToolUseBlock.model_fields["name"].annotation)
    assert {*tools} == messages.SERVER_TOOLS
    details = typing.get_args(sdk.RefusalStopDetails.model_fields["category"].annotation)[0]
    assert {*typing.get_args(details)} == {*messages.CATEGORIES}
    members = typing.get_args(typing.get_args(sdk.ErrorObject)[0])
    errors = {typing.get_args(member.model_fields["type"].annotation)[0] for member in members}
    assert errors <= messages.ERRORS.keys()


# Responses.


def test_annotations_are_those_of_the_types() -> None:
    classes = classes_of(Annotation)
    assert classes.keys() == responses.ANNOTATIONS.keys()
    for type, needs in responses.ANNOTATIONS.items():
        assert needs.keys() <= keys_of(classes[type]).keys()


@pytest.mark.parametrize("type", responses.ANNOTATIONS)
def test_an_annotation_is_read_and_written(type: str) -> None:
    samples: dict[Any, Any] = {int: 1, str: "https://a.test"}
    note = {"type": type, **{name: samples[of] for name, of in responses.ANNOTATIONS[type].items()}}
    part = {"type": "output_text", "text": "ab", "annotations": [note]}
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
    body = {
        "id": "r",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "m",
        "output": [item],
    }
    read = normalize(orjson.dumps(body), "openai_responses")
    foreign = answer(*read.segments)
    written = orjson.loads(convert(foreign, RESPONSES).value)["output"][0]["content"][0]
    assert written["annotations"] == [note]


def test_what_an_item_has_beside_its_texts_is_a_field_of_its_type() -> None:
    for type, (field, _) in responses.BESIDE.items():
        assert field in keys_of(ITEM_CLASSES[type])
    for type, item in responses.ITEMS.items():
        if item.role in (responses.ItemRole.CALL, responses.ItemRole.ACTION):
            assert item.id in keys_of(ITEM_CLASSES[type])


KINDS = {
    "server_error": ErrorKind.SERVER,
    "rate_limit_exceeded": ErrorKind.RATE_LIMIT,
    "vector_store_timeout": ErrorKind.TIMEOUT,
    "bio_policy": ErrorKind.CONTENT_FILTER,
    "misalignment_policy_violation": ErrorKind.CONTENT_FILTER,
    "image_content_policy_violation": ErrorKind.CONTENT_FILTER,
}
"""The kinds of the codes that do not blame the request."""


@pytest.mark.parametrize("code", sorted(responses.ERRORS))
def test_an_error_of_a_response_is_read_and_written(code: str) -> None:
    made = ChatResponse.error(ErrorInfo(ErrorKind.UNKNOWN, "It broke.", code=code), model="m")
    conversion = convert(made, RESPONSES)
    assert orjson.loads(conversion.value)["error"]["code"] == code
    info = read_body(conversion).error_info
    assert info is not None
    assert (info.code, info.kind) == (code, KINDS.get(code, ErrorKind.INVALID_REQUEST))


def test_the_official_client_knows_the_codes_of_responses() -> None:
    assert {*typing.get_args(ResponseError.model_fields["code"].annotation)} == responses.ERRORS


def test_the_writer_of_responses_makes_events_of_the_table_alone() -> None:
    pieces: list[dict[str, Any]] = [
        {"reasoning_delta": "Hm"},
        {"content_delta": "Hi"},
        {"segment": RICH[2]},
        {"refusal_delta": "No"},
        {"tool_call_delta": ToolCallDelta(0, "c1", "f", "{}")},
    ]
    ends = {FinishReason.STOP: "completed", FinishReason.LENGTH: "incomplete", FinishReason.ERROR: "failed"}
    for reason, word in ends.items():
        deltas = [ResponseDelta(number, **piece) for number, piece in enumerate(pieces)]
        last = ResponseDelta(len(deltas), finish_reason=reason)
        events = [*data_of(b"".join(convert_stream([*deltas, last], RESPONSES, id="a", model="m")))]
        types = {event["type"] for event in events}
        assert types <= responses.EVENTS.keys()
        roles = {responses.EVENTS[type].role for type in types}
        assert roles == {
            responses.EventRole.RESPONSE, responses.EventRole.ITEM, responses.EventRole.PART,
            responses.EventRole.TEXT, responses.EventRole.ANNOTATION, responses.EventRole.FIELD,
        }  # fmt: skip
        assert events[-1]["type"] == f"response.{word}"


def test_what_is_no_object_is_in_no_form() -> None:
    """Such as the array in which Gemini sends a stream."""
    assert form_of_body([{"object": "response"}]) is None


def test_a_text_of_nothing_begins_no_part() -> None:
    parts = Parts()
    assert [*parts.of(ResponseDelta(0, content_delta=""))] == []
    (piece,) = parts.of(ResponseDelta(1, content_delta="Hi"))
    assert (piece.part, piece.text) == (0, "Hi")
