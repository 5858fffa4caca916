"""Canonical answers as typed Responses values and back, and conversations folded and unfolded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import orjson
import pytest
from openai.types.chat import ChatCompletion

from converting import hidden_losses
from crosswalk import (
    AudioPart,
    ChatMessage,
    FilePart,
    ImagePart,
    ResponseDelta,
    TextPart,
    ToolCall,
    normalize,
    normalize_stream,
)
from crosswalk.convert import (
    ConversionError,
    FoldedMessage,
    FoldingError,
    fold,
    from_events,
    from_response,
    to_chat_completion,
    to_events,
    to_response,
    unfold,
)
from crosswalk.responses import (
    AnnotationURLCitation,
    EasyInputMessage,
    InputMessage,
    Response,
    ResponseAccumulator,
    ResponseCustomToolCall,
    ResponseCustomToolCallOutputItem,
    ResponseFunctionToolCall,
    ResponseFunctionToolCallOutputItem,
    ResponseInputFile,
    ResponseInputImage,
    ResponseInputText,
    ResponseOutputMessage,
    ResponseOutputRefusal,
    ResponseOutputText,
    ResponseReasoningItem,
    UnknownPart,
    parse_item,
    parse_response,
    to_json,
)

CAPTURES = Path(__file__).parents[2] / "captures"
THINKING = (CAPTURES / "anthropic/made_thinking_tools.response.json").read_bytes()
THINKING_STREAM = (CAPTURES / "anthropic/made_thinking_tools_stream.response.sse").read_bytes()


def test_an_answer_becomes_a_response_and_back() -> None:
    answer = normalize(THINKING, "anthropic")
    conversion = to_response(answer)
    assert isinstance(conversion.value, Response)
    assert conversion.status == 200
    back = from_response(conversion.value)
    assert (back.text, back.reasoning, back.tool_calls) == (answer.text, answer.reasoning, answer.tool_calls)
    assert hidden_losses(answer, back, conversion.report) == []
    assert parse_response(to_json(conversion.value)) == conversion.value


def test_an_http_error_becomes_a_response_that_failed() -> None:
    answer = normalize(
        {"error": {"message": "Slow down.", "code": "rate_limit_exceeded"}}, "openai", status=429
    )
    conversion = to_response(answer)
    assert conversion.value.status == "failed"
    assert hidden_losses(answer, from_response(conversion.value), conversion.report) == []


def test_a_response_in_progress_is_an_unfinished_answer() -> None:
    answer = from_response(Response(id="r", model="m", status="in_progress"))
    assert (answer.finish_reason, answer.raw_finish_reason) == ("length", "in_progress")
    assert not answer.is_complete


def test_a_stream_becomes_typed_events_and_back() -> None:
    deltas = normalize_stream([THINKING_STREAM], "anthropic")
    stream = to_events(deltas)
    events = list(stream)
    answer = deltas.response
    back = from_events(events)
    indices = [delta.index for delta in back]
    assert indices == list(range(len(indices)))
    assert hidden_losses(answer, back.response, stream.report) == []
    accumulator = ResponseAccumulator()
    for event in events:
        accumulator.add(event)
    final = events[-1].response  # type: ignore[union-attr]  # the last one tells of the response
    assert accumulator.snapshot.response == final
    assert events[0].type == "response.created"


def test_deltas_of_ones_own_become_events_of_the_answer_that_one_names() -> None:
    deltas = [ResponseDelta(0, content_delta="Hi"), ResponseDelta(1, finish_reason="stop")]
    stream = to_events(deltas, id="resp_7", model="tiny")
    last = list(stream)[-1]
    assert (last.response.id, last.response.model, last.response.output_text) == ("resp_7", "tiny", "Hi")  # type: ignore[union-attr]


def test_a_response_becomes_a_chat_completion() -> None:
    response = to_response(normalize(THINKING, "anthropic")).value
    conversion = to_chat_completion(response)
    completion = ChatCompletion.model_validate_json(conversion.value, strict=True)
    assert completion.choices[0].finish_reason == "tool_calls"
    assert completion.choices[0].message.tool_calls


# Folding.

REASONING = ResponseReasoningItem(id="rs_1", encrypted_content="e==")
SAID = ResponseOutputMessage(id="msg_1", content=(ResponseOutputText(text="Let me look."),))
CALLS = tuple(ResponseFunctionToolCall(call_id=f"c{n}", name="f", arguments='{"n":1}') for n in (1, 2))
RESULTS = tuple(ResponseFunctionToolCallOutputItem(call_id=f"c{n}", output=f"r{n}") for n in (1, 2))


def test_a_turn_with_reasoning_text_and_several_calls_is_one_message() -> None:
    question = EasyInputMessage(role="user", content="How many?")
    rules = InputMessage(role="developer", content=(ResponseInputText(text="Be brief."),))
    final = ResponseOutputMessage(content=(ResponseOutputText(text="Two."),))
    turns = fold([rules, question, REASONING, SAID, *CALLS, *RESULTS, final])
    calls = [ToolCall("c1", "f", '{"n":1}'), ToolCall("c2", "f", '{"n":1}')]
    assert turns == (
        FoldedMessage(ChatMessage.system([TextPart("Be brief.")])),
        FoldedMessage(ChatMessage.user("How many?")),
        FoldedMessage(
            ChatMessage.assistant("Let me look.", tool_calls=calls),
            (REASONING,),
            None,
            (ChatMessage.tool_result("c1", "r1"), ChatMessage.tool_result("c2", "r2")),
        ),
        FoldedMessage(ChatMessage.assistant("Two.")),
    )
    assert [message.role for message in turns[2].messages] == ["assistant", "tool", "tool"]


def test_folded_and_unfolded_a_conversation_says_the_same() -> None:
    custom = ResponseCustomToolCall(call_id="c9", name="shell", input="ls")
    told = ResponseCustomToolCallOutputItem(call_id="c9", output=(ResponseInputText(text="a.txt"),))
    question = EasyInputMessage(role="user", content="?")
    said = EasyInputMessage(role="assistant", content="Let me look.")
    items = (question, REASONING, said, *CALLS, *RESULTS, REASONING, custom, told)
    assert unfold(fold(items)) == items
    assert fold(unfold(fold(items))) == fold(items)


ORDERS: list[tuple[Any, ...]] = [
    (CALLS[0], SAID, CALLS[1]),
    (REASONING, CALLS[0], ResponseReasoningItem(id="rs_2"), CALLS[1]),
    (CALLS[0], CALLS[1], RESULTS[1], RESULTS[0], SAID),
    (CALLS[0], EasyInputMessage(role="user", content="Well?"), RESULTS[0]),
    (
        ResponseFunctionToolCall(
            id="fc_1", call_id="c1", name="f", arguments="", namespace="n", status="completed"
        ),
    ),
    (InputMessage(role="developer", content=(ResponseInputText(text="a"), ResponseInputText(text="b"))),),
    (InputMessage(role="user", content=(ResponseInputImage(image_url="https://x.test/", detail="high"),)),),
    (
        ResponseOutputMessage(
            id="msg_2",
            phase="commentary",
            status="completed",
            content=(
                ResponseOutputText(
                    text="a",
                    annotations=(AnnotationURLCitation(url="u", title="t", start_index=0, end_index=1),),
                ),
                ResponseOutputRefusal(refusal="no"),
                ResponseOutputText(text="b"),
            ),
        ),
    ),
]


@pytest.mark.parametrize("items", ORDERS)
def test_what_was_folded_unfolds_to_the_very_items(items: tuple[Any, ...]) -> None:
    turns = fold(items)
    assert all(one is other for one, other in zip(unfold(turns), items, strict=True))
    assert tuple(item for turn in turns for item in turn.items) == items


def test_a_turn_that_was_changed_is_what_it_says_now() -> None:
    (turn,) = fold([SAID])
    changed = attrs.evolve(turn, message=ChatMessage.assistant("Never mind."))
    assert changed.items == ()
    assert unfold([changed]) == (EasyInputMessage(role="assistant", content="Never mind."),)


def test_turns_without_their_items_unfold_to_what_they_say() -> None:
    custom = ResponseCustomToolCall(call_id="c9", name="shell", input="ls")
    told = ResponseCustomToolCallOutputItem(call_id="c9", output=(ResponseInputText(text="a.txt"),))
    refused = ResponseOutputMessage(content=(ResponseOutputRefusal(refusal="No."),))
    both = ResponseOutputMessage(content=(ResponseOutputText(text="Well, "), *refused.content))
    question = EasyInputMessage(role="user", content="?")
    items = (question, REASONING, *CALLS, *RESULTS, REASONING, custom, told, refused, question, both)
    made = [FoldedMessage(turn.message, turn.reasoning, turn.refusal, turn.results) for turn in fold(items)]
    assert [turn.items for turn in made] == [()] * len(made)
    assert unfold(made) == items


def test_a_late_result_is_there_once_whatever_becomes_of_the_turns_around_it() -> None:
    hurry, later = (
        EasyInputMessage(role="user", content="Well?"),
        EasyInputMessage(role="user", content="Now?"),
    )
    call, asked = fold([CALLS[0], hurry, RESULTS[0]])
    assert unfold([call]) == (CALLS[0], RESULTS[0])
    changed = attrs.evolve(asked, message=ChatMessage.user("Now?"))
    assert unfold([call, changed]) == (CALLS[0], RESULTS[0], later)
    other = attrs.evolve(call, message=ChatMessage.assistant("I look.", tool_calls=call.message.tool_calls))
    said = EasyInputMessage(role="assistant", content="I look.")
    assert unfold([other, asked]) == (said, CALLS[0], RESULTS[0], hurry)
    with pytest.raises(FoldingError, match=r"a call that is not there @ messages\[0\] \(tool\)"):
        unfold([asked])


def test_a_result_attaches_to_its_call_wherever_it_comes() -> None:
    hurry = EasyInputMessage(role="user", content="Well?")
    turns = fold([CALLS[0], hurry, RESULTS[0]])
    assert turns[0].results == (ChatMessage.tool_result("c1", "r1"),)
    assert turns[1].message == ChatMessage.user("Well?")


def test_a_refusal_is_kept() -> None:
    refused = ResponseOutputMessage(content=(ResponseOutputRefusal(refusal="No."),))
    (turn,) = fold([refused])
    assert (turn.message.content, turn.refusal) == (None, "No.")
    assert unfold([turn]) == (refused,)
    both = ResponseOutputMessage(
        content=(ResponseOutputText(text="Well, "), ResponseOutputRefusal(refusal="no."))
    )
    assert unfold(fold([both])) == (both,)


def test_media_go_by_address_or_as_data() -> None:
    parts = (
        ResponseInputText(text="See:"),
        ResponseInputImage(image_url="https://x.test/a.png", detail="low"),
        ResponseInputImage(image_url="data:image/png;base64,QUJD", detail="auto"),
        ResponseInputFile(file_url="https://x.test/a.pdf", filename="a.pdf"),
        ResponseInputFile(file_data="data:application/pdf;base64,QUJD", filename="b"),
        ResponseInputFile(file_id="file_1", filename="c"),
    )
    message = InputMessage(role="user", content=parts)
    (turn,) = fold([message])
    assert turn.message.content == (
        TextPart("See:"),
        ImagePart(url="https://x.test/a.png", detail="low"),
        ImagePart(data="QUJD", media_type="image/png", detail="auto"),
        FilePart(url="https://x.test/a.pdf", name="a.pdf"),
        FilePart(data="QUJD", media_type="application/pdf", name="b"),
        FilePart(id="file_1", name="c"),
    )
    assert unfold([turn]) == (message,)
    assert unfold([turn.message]) == (EasyInputMessage(role="user", content=parts),)


def test_plain_chat_messages_unfold_too() -> None:
    call = ToolCall("c1", "f", "{}")
    messages = [
        ChatMessage.system("s"),
        ChatMessage.assistant(tool_calls=[call]),
        ChatMessage.tool_result("c1", "r"),
    ]
    assert unfold(messages) == (
        EasyInputMessage(role="system", content="s"),
        ResponseFunctionToolCall(call_id="c1", name="f", arguments="{}"),
        ResponseFunctionToolCallOutputItem(call_id="c1", output="r"),
    )


# What the server's own tools did.

SERVED: list[dict[str, Any]] = [
    {"type": 'web_search_call', "id": 'ws', "status": 'completed', "action": {'type': 'search', 'query': 'q', 'sources': [{'type': 'url', 'url': 'u'}]}},
    {"type": "web_search_call", "id": "ws", "status": "failed"},
    {"type": 'file_search_call', "id": 'fs', "queries": ['a'], "results": [{'file_id': 'f', 'text': 't'}]},
    {"type": "code_interpreter_call", "id": "ci", "code": "1+1", "container_id": "c", "outputs": None},
    {"type": 'mcp_call', "id": 'm', "server_label": 's', "name": 'roll', "arguments": '{"n":2}', "output": '7'},
    {"type": "mcp_call", "id": "m", "server_label": "s", "name": "roll", "arguments": "", "error": "no", "output": "x"},
    {"type": "image_generation_call", "id": "ig", "result": "QUJD", "output_format": "webp", "revised_prompt": "a cat"},
    {"type": "image_generation_call", "id": "ig", "result": "QUJD"},
    {"type": "image_generation_call", "id": "ig", "status": "failed"},
    {"type": 'x_search_call', "id": 'x', "call_id": '', "name": 'x_keyword_search', "arguments": '{"q":1}'},
    {"type": "x_search_call", "id": "x"},
    {"type": 'document_finder_call', "id": 'd', "queries": ['q'], "collections": ['c']},
    {"type": 'file_reader_call', "id": 'r', "file_id": 'f', "results": [{'text': 't'}]},
]  # fmt: skip
KEPT = [
    {"type": "mcp_list_tools", "id": "l", "server_label": "s", "tools": []},
    {"type": "mcp_approval_request", "id": "a", "server_label": "s", "name": "roll", "arguments": "{}"},
    {"type": "mcp_approval_response", "approval_request_id": "a", "approve": True},
    {"type": "program", "id": "p", "call_id": "c", "code": "1", "fingerprint": "f"},
    {"type": "program_output", "id": "o", "call_id": "c", "result": "1"},
    {"type": "tool_search_call", "id": "t", "execution": "server", "arguments": {}},
    {"type": "tool_search_output", "id": "u", "execution": "server", "tools": []},
    {"type": "shell_call", "id": "s", "call_id": "h", "action": {"commands": ["ls"]}, "environment": {"type": "container_reference", "container_id": "c"}},
    {"type": "shell_call_output", "id": "v", "call_id": "h", "output": []},
]  # fmt: skip


@pytest.mark.parametrize("data", [*SERVED, *KEPT[:-1]], ids=lambda data: data["type"])
def test_what_the_server_did_stays_beside_the_messages(data: dict[str, Any]) -> None:
    item = parse_item(data)
    (turn,) = fold([REASONING, item, SAID, CALLS[0], RESULTS[0]])
    assert turn.server_calls == (item,)
    assert [message.role for message in turn.messages] == ["assistant", "tool"]
    assert unfold([turn]) == (REASONING, item, SAID, CALLS[0], RESULTS[0])
    changed = attrs.evolve(
        turn, message=ChatMessage.assistant("Hm.", tool_calls=turn.message.tool_calls or ())
    )
    said = EasyInputMessage(role="assistant", content="Hm.")
    assert unfold([changed]) == (REASONING, item, said, CALLS[0], RESULTS[0])


def test_all_that_the_server_did_at_once() -> None:
    items = [parse_item(data) for data in (*SERVED, *KEPT)]
    conversation = [CALLS[0], *items, CALLS[1], *RESULTS, SAID]
    turns = fold(conversation)
    assert unfold(turns) == tuple(conversation)
    assert [item for turn in turns for item in turn.server_calls] == items


PATCH = parse_item(
    {"type": "apply_patch_call", "call_id": "c", "operation": {"type": "delete_file", "path": "p"}}
)
SHELL = parse_item(
    {"type": "shell_call", "call_id": "c", "action": {"commands": []}, "environment": {"type": "local"}}
)
FOUND = parse_item({"type": "tool_search_output", "call_id": "c", "execution": "client"})
ODD = UnknownPart(type="hologram")


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([PATCH], "an item without a counterpart in a chat @ items[0] (apply_patch_call)"),
        ([SHELL], "an item without a counterpart in a chat @ items[0] (shell_call)"),
        ([FOUND], "an item without a counterpart in a chat @ items[0] (tool_search_output)"),
        (
            [parse_item({"type": "shell_call_output", "call_id": "c", "output": []})],
            "an item without a counterpart in a chat @ items[0] (shell_call_output)",
        ),
        ([RESULTS[0]], "the result of a call that is not there @ items[0] (function_call_output)"),
        ([CALLS[0], RESULTS[0], RESULTS[0]], "a second result of one call @ items[2] (function_call_output)"),
        ([CALLS[0], CALLS[0]], "a second call of one id @ items[1] (function_call)"),
        ([CALLS[0].replace(name="")], "a call without an id or a name @ items[0] (function_call)"),
        (
            [InputMessage(role="user", content=(ResponseInputImage(file_id="f"),))],
            "a part without a counterpart in a chat @ items[0] (message)",
        ),
        (
            [InputMessage(role="user", content=(ResponseInputFile(filename="f"),))],
            "a part without a counterpart in a chat @ items[0] (message)",
        ),
        (
            [InputMessage(role="user", content=(ODD,))],
            "a part without a counterpart in a chat @ items[0] (message)",
        ),
        (
            [ResponseOutputMessage(content=(ODD,))],
            "a part without a counterpart in a chat @ items[0] (message)",
        ),
        (
            [EasyInputMessage(role="assistant", content=(ResponseInputImage(file_id="f"),))],
            "an assistant's part that is not text @ items[0] (None)",
        ),
    ],
)
def test_what_cannot_be_folded_is_named(items: list[Any], message: str) -> None:
    with pytest.raises(FoldingError) as raised:
        fold(items)
    assert str(raised.value) == message
    assert isinstance(raised.value, ConversionError)
    assert raised.value.place in message


def test_an_assistants_input_of_parts_is_its_text() -> None:
    item = EasyInputMessage(
        role="assistant", content=(ResponseInputText(text="a"), ResponseInputText(text="b"))
    )
    assert fold([item])[0].message == ChatMessage.assistant("ab")


def test_what_cannot_be_unfolded_is_named() -> None:
    with pytest.raises(
        FoldingError, match=r"audio or video cannot be part of an item @ messages\[0\] \(user\)"
    ):
        unfold([ChatMessage.user([AudioPart(data="QUJD")])])
    with pytest.raises(FoldingError, match=r"a call that is not there @ messages\[0\] \(tool\)"):
        unfold([ChatMessage.tool_result("c1", "r")])


def test_output_of_a_conversion_folds() -> None:
    response = to_response(normalize(THINKING, "anthropic")).value
    (turn,) = fold(response.output)
    assert turn.message.text == response.output_text
    assert len(turn.reasoning) == 2
    assert orjson.loads(turn.message.tool_calls[0].arguments) is not None  # type: ignore[index]
