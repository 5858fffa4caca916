"""Halves of surrogate pairs, which JSON allows and servers send: joined across events, else replaced and noted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from crosswalk import CrosswalkError, InvalidJSONError, Limits, normalize, normalize_stream


def chunk(content: bytes, **more: bytes) -> bytes:
    """A chunk of OpenAI's dialect. *content* is a JSON string as it is sent, without its quotation marks."""
    fields = b"".join(b',"%s":%s' % (name.encode(), value) for name, value in more.items())
    return b'data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"%b"%b}}]}\n\n' % (
        content,
        fields,
    )


END = b'data: {"id":"c","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


def read(*chunks: bytes, **options: Any) -> Any:
    stream = normalize_stream(chunks, "vllm", **options)
    deltas = [delta.content_delta for delta in stream if delta.content_delta is not None]
    return deltas, stream.response


@pytest.mark.parametrize(
    ("contents", "deltas"),
    [
        ([rb"a\ud83d", rb"\ude00b"], ["a😀", "b"]),
        ([rb"\ud83d", rb"\ude00"], ["😀"]),
        ([rb"Hi ", rb"you \ud83d", rb"\ude00!", rb" And"], ["Hi ", "you 😀", "!", " And"]),
        ([rb"x\ud83d\ude00", rb"y"], ["x😀", "y"]),
        ([rb"x\ud83d", b"", rb"\ude00y"], ["x😀", "y"]),
    ],
)
def test_a_character_that_is_cut_in_two_is_one(contents: Iterable[bytes], deltas: list[str]) -> None:
    chunks = [chunk(content) for content in contents]
    found, response = read(*chunks, END)
    assert found == deltas
    assert response.text == "".join(deltas)
    assert "segments" not in response.metadata.provenance


@pytest.mark.parametrize(
    ("contents", "text"),
    [
        ([rb"a\ud83d", b"b"], "a�b"),
        ([rb"a\ud83d"], "a�"),
        ([rb"\ude00b"], "�b"),
        ([rb"a\ud83db"], "a�b"),
        ([rb"\ud83d", rb"\ud83d", rb"\ude00"], "�😀"),
    ],
)
def test_a_lone_half_is_replaced_and_noted(contents: list[bytes], text: str) -> None:
    _, response = read(*map(chunk, contents), END)
    assert response.text == text
    assert response.metadata.provenance["segments"] == "cut"


DONE = b"data: [DONE]\n\n"


def choice(index: int, content: bytes) -> bytes:
    return b'{"index":%d,"delta":{"content":"%b"}}' % (index, content)


def test_halves_are_joined_within_their_choice() -> None:
    def event(*choices: bytes) -> bytes:
        return b'data: {"id":"c","model":"m","choices":[%b]}\n\n' % b",".join(choices)

    ends = event(*(b'{"index":%d,"delta":{},"finish_reason":"stop"}' % number for number in (0, 1)))
    cut, rest = rb"a\ud83d", rb"\ude00b"
    _, response = read(event(choice(0, cut)), event(choice(1, rest)), ends + DONE)
    assert [one.message.content for one in (response, *response.alternatives)] == ["a�", "�b"]
    _, response = read(event(choice(0, cut)), event(choice(1, b"x"), choice(0, rest)), ends + DONE)
    assert [one.message.content for one in (response, *response.alternatives)] == ["a😀b", "x"]


def choices(*texts: tuple[int, bytes]) -> list[bytes]:
    return [b'data: {"id":"c","model":"m","choices":[%b]}\n\n' % choice(*text) for text in texts]


def call(index: int, arguments: bytes) -> bytes:
    return (
        b'data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"function":{"arguments":"%b"}}]}}]}\n\n'
        % (index, arguments)
    )


@pytest.mark.parametrize(
    ("events", "texts"),
    [
        (choices((0, rb"a\ud83d"), (1, b"x"), (0, rb"\ude00b"), (1, b"y")), ["a😀b", "xy"]),
        (choices((0, rb"a\ud83d"), (1, rb"x\ud83d"), (0, rb"\ude00b"), (1, rb"\ude01y")), ["a😀b", "x😁y"]),
        (choices((1, rb"x\ud83d"), (0, b"a"), (0, b"b"), (1, rb"\ude01y")), ["ab", "x😁y"]),
        (
            [
                chunk(b"").replace(b"[", b"[%b,%b," % (choice(0, rb"a\ud83d"), choice(1, rb"x\ud83d"))),
                *choices((1, rb"\ude01y"), (0, rb"\ude00b")),
            ],
            ["a😀b", "x😁y"],
        ),
    ],
)
def test_a_half_waits_while_other_choices_speak(events: list[bytes], texts: list[str]) -> None:
    ends = choices((0, b""), (1, b""))
    ends = [end.replace(b'"delta":{"content":""}', b'"delta":{},"finish_reason":"stop"') for end in ends]
    _, response = read(*events, *ends, DONE)
    assert [one.message.content for one in (response, *response.alternatives)] == texts
    assert "segments" not in response.metadata.provenance


def test_a_half_of_arguments_waits_while_another_call_goes_on() -> None:
    pieces = [(0, rb"[\"\ud83d"), (1, rb"[\"x\ud83d"), (0, rb"\ude00\"]"), (1, rb"\ude01\"]")]
    chunks = [call(*piece) for piece in pieces]
    for index in (0, 1):
        chunks[index] = chunks[index].replace(b'"function":{', b'"id":"i%d","function":{"name":"f",' % index)
    _, response = read(*chunks, END)
    assert [call.arguments for call in response.message.tool_calls] == ['["😀"]', '["x😁"]']
    assert "segments" not in response.metadata.provenance


@pytest.mark.parametrize(("waiting", "first"), [(31, "😀"), (32, "��")])
def test_at_most_32_events_wait(waiting: int, first: str) -> None:
    halves = choices(*((number, rb"\ud83d") for number in range(1, waiting + 1)))
    ends = [event.replace(rb'{"content":"\ud83d"}', b'{},"finish_reason":"stop"') for event in halves]
    _, response = read(*halves, *choices((0, b"x"), (1, rb"\ude00")), *ends, END)
    assert response.alternatives[0].message.content == first


def test_an_event_is_delivered_as_soon_as_its_other_half_has_come() -> None:
    def chunks() -> Iterator[bytes]:
        yield chunk(rb"a\ud83d")
        yield chunk(rb"\ude00b\ud83d")
        pytest.fail("the first event is complete")

    assert next(normalize_stream(chunks(), "vllm")).content_delta == "a😀"


def test_a_half_waits_while_the_choice_reasons() -> None:
    thought = chunk(b"").replace(b'"content":""', b'"reasoning":"so"')
    _, response = read(chunk(rb"a\ud83d"), thought, chunk(rb"\ude00b"), END)
    assert [(segment.type, segment.content) for segment in response.segments] == [
        ("text", "a😀"),
        ("reasoning", "so"),
        ("text", "b"),
    ]


def test_a_half_waits_for_its_own_block() -> None:
    """An index next to the text tells the blocks of an answer apart."""

    def block(kind: str, index: int, body: str) -> bytes:
        return b'data: {"type":"content_block_%b","index":%d,%b}\n\n' % (kind.encode(), index, body.encode())

    start = b'data: {"type":"message_start","message":{"id":"m","role":"assistant","content":[]}}\n\n'
    opened = [block("start", index, '"content_block":{"type":"text","text":""}') for index in (0, 1)]
    end = b'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n\ndata: {"type":"message_stop"}\n\n'
    closed = [b'data: {"type":"content_block_stop","index":%d}\n\n' % index for index in (0, 1)]
    pieces = (
        block("delta", 0, r'"delta":{"type":"text_delta","text":"a\ud83d"}'),
        closed[0],
        opened[1],
        block("delta", 1, r'"delta":{"type":"text_delta","text":"\ude00b"}'),
        closed[1],
    )
    stream = normalize_stream([start, opened[0], *pieces, end], "anthropic")
    assert stream.until_done().text == "a��b"


def test_a_half_before_the_sentinel_is_replaced() -> None:
    last = chunk(rb"a\ud83d").replace(b'"index":0', b'"index":0,"finish_reason":"stop"')
    deltas, response = read(last, DONE)
    assert (deltas, response.text) == (["a�"], "a�")


def test_a_half_in_a_field_that_nobody_maps_is_noted_there() -> None:
    _, response = read(chunk(b"a"), chunk(b"b", new=rb'"\ud83d"'), END)
    assert response.text == "ab"
    assert response.metadata.extensions["choices"][0]["delta"]["new"] == "�"
    assert response.metadata.provenance["metadata.extensions"] == "cut"


def test_a_body_and_a_list_in_it_are_mended() -> None:
    body = rb'{"id":"c","model":"m","x":["\ude00",{"y":1}],"choices":[{"index":0,"message":{"role":"assistant","content":"\ud83d"},"finish_reason":"stop"}]}'
    response = normalize(body, "vllm")
    assert response.text == "�"
    assert response.metadata.extensions["x"] == ("�", {"y": 1})


def test_a_stream_that_is_cut_behind_a_half_keeps_it() -> None:
    stream = normalize_stream([chunk(b"a"), chunk(rb"b\ud83d")], "vllm")
    with pytest.raises(CrosswalkError):
        list(stream)
    assert stream.partial.text == "ab�"


def test_a_broken_event_behind_a_half_keeps_it() -> None:
    stream = normalize_stream([chunk(b"a"), chunk(rb"b\ud83d"), b"data: {]\n\n"], "vllm")
    with pytest.raises(InvalidJSONError) as caught:
        list(stream)
    assert caught.value.partial is not None
    assert caught.value.partial.text == "ab�"


@pytest.mark.parametrize(
    "body",
    [
        rb'{"\ud83d": 1}',
        rb'{"a": "\ud83d", "b": NaN}',
        rb'{"a": "\ud83d", ]',
        b'{"a": "\\ud83d", "b": ' + b"[" * 9 + b"]" * 9 + b"}",
    ],
)
def test_what_is_not_json_besides_is_refused(body: bytes) -> None:
    with pytest.raises(CrosswalkError, match="not JSON|nested deeper"):
        normalize(body, "vllm", limits=Limits(depth=5))
