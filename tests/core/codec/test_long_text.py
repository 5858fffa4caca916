"""Of the two times that canonical JSON says a long text one is parsed, and the value is that of all of it."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import orjson
import pytest

from crosswalk import CrosswalkError, normalize
from crosswalk.codec import from_json, to_json
from crosswalk.codec.reading import load_response, read
from crosswalk.errors import CanonicalJSONError
from crosswalk.testing import load_captures
from crosswalk.types import ChatMessage, ChatResponse, Segment, SegmentType
from crosswalk.types.json import load_json
from strategies import unfolded
from wires import body, one, usage

CAPTURES = Path(__file__).parents[2] / "captures"
TEXT = 'A "long" text, 🐎 \\ \n' * 300


def response(text: str = TEXT, *before: Segment) -> ChatResponse:
    made = one("vllm", body({"content": "a"}, usage=usage(3, 4)))
    segments = (*before, Segment(SegmentType.TEXT, text))
    return attrs.evolve(made, message=ChatMessage.assistant(text), segments=segments, raw_events=())


def outcome(load: Callable[[bytes], Any], data: bytes) -> Any:
    try:
        return repr(load(data))
    except orjson.JSONDecodeError as error:
        return error.args


@pytest.mark.parametrize("before", [(), (Segment(SegmentType.REASONING, "So, so. " * 99),)])
def test_one_of_two_texts_is_parsed(before: tuple[Segment, ...]) -> None:
    """Both are then the same string."""
    written = to_json(response(TEXT, *before))
    value = load_response(written)
    assert value["message"]["content"] is value["segments"][-1]["content"]
    assert value == orjson.loads(written)
    assert unfolded(from_json(written, ChatResponse)) == unfolded(response(TEXT, *before))


def change(old: bytes, new: bytes, count: int = 1) -> bytes:
    written = to_json(response())
    assert old in written
    return written.replace(old, new, count)


QUOTED = orjson.dumps(TEXT)
CHANGED = {
    "another text": change(b"A ", b"B "),
    "an escape instead of a letter": change(b"A ", rb"\u0041 "),
    "as long, and no string": change(QUOTED, b"1" * len(QUOTED), 2),
    "two strings": change(b"A ", b'A","name":"', 2),
    "a string that does not end": change(b"horse"[:0] + b" text", b"\n text", 2),
    "no text of both": change(b"A ", b"\xff ", 2),
    "the mark in the text": change(b"A ", rb"\u0000 ", 2),
    "the mark elsewhere": change(b'"model":"m"', rb'"model":"\u0000"'),
    "the mark, two times": change(b'"model":"m"', rb'"other":["\u0000"],"model":"\u0000"'),
    "the message twice": change(b'"finish_reason"', b'"message":{"role":"assistant"},"finish_reason"'),
    "no segments": change(b'"segments":[', b'"others":['),
    "a message of parts": change(b'"message":{"role":"assistant","content":', b'"message":{"role":"assistant","content":[').replace(
        b'},"finish_reason"', b']},"finish_reason"', 1
    ),
    "the first text is in another message": change(b'"id":', b'"id":"x","a":{"message":{"role":"assistant","content":"b"}},"id":'),
    "a key that looks like it": change(b'"message":', rb'"\"message":{"role":"assistant","content":"x"},"message":'),
    "much between the texts": change(b'"created"', b'"more":"%b","created"' % (b"m" * 70_000)),
    "behind the segments": change(b',"format_version":"1.0"', b',"attempts":[],"format_version":"1.0"'),
    "another version": change(b'"1.0"}', b'"1.7"}'),
    "a long number": change(b'"model":"m"', b'"model":"m","other":%b' % (b"9" * 40)),
    "no response": b'{"message":{"role":"assistant","content":%b,"segments":[{"type":"text","content":%b}],"format_version":"1.0"}'
    % (QUOTED, QUOTED),
    "a list": b'[{"message":{"role":"assistant","content":%b},"x":[{"type":"text","content":%b}],"format_version":"1.0"}'
    % (QUOTED, QUOTED),
    "cut": to_json(response())[:-7],
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGED)
def test_whatever_was_changed_by_hand_is_read_as_it_is(name: str) -> None:
    """The same value, or the same error with the same place."""
    data = CHANGED[name]
    assert outcome(load_response, data) == outcome(load_json, data)
    try:
        expected = read(load_json(data), ChatResponse)
    except (CanonicalJSONError, orjson.JSONDecodeError) as error:
        with pytest.raises(CanonicalJSONError) as caught:
            from_json(data, ChatResponse)
        if isinstance(error, CanonicalJSONError):
            assert caught.value.problems == error.problems
    else:
        assert unfolded(from_json(data, ChatResponse)) == unfolded(expected)


def captured() -> list[bytes]:
    """Canonical JSON of each captured answer, its text made long."""
    found = []
    folders = [folder for folder in sorted(CAPTURES.iterdir()) if folder.is_dir()]
    captures = [(folder.name, capture) for folder in folders for capture in load_captures(folder)]
    for provider, capture in captures:
        try:
            answer = normalize(capture.body, provider, status=capture.status)
        except CrosswalkError:
            continue
        segments = [
            attrs.evolve(segment, content=TEXT) if segment.type is SegmentType.TEXT else segment
            for segment in answer.segments
        ]
        if answer.text:
            answer = attrs.evolve(
                answer, message=attrs.evolve(answer.message, content=TEXT), segments=segments
            )
        found.append(to_json(answer))
    return found


def is_parsed_once(data: bytes) -> bool:
    try:
        value = load_response(data)
        return value["message"]["content"] is value["segments"][-1]["content"] is not None
    except (orjson.JSONDecodeError, LookupError, TypeError):
        return False


@pytest.mark.sweep
def test_ten_thousand_documents_are_parsed_alike() -> None:
    """Of each captured answer, and damaged in both texts or anywhere."""
    chance = random.Random(5)
    documents = captured()
    for data in documents:
        assert outcome(load_response, data) == outcome(load_json, data)
    documents = [data for data in documents if is_parsed_once(data)]
    assert len(documents) > 100
    short = 0
    for number in range(10_000):
        data = documents[number % len(documents)]
        start = chance.randrange(len(data))
        old, new = data[start : start + chance.randrange(4)], chance.choice(_PIECES)
        data = (
            data.replace(old, new, chance.choice((1, -1, -1))) if old else data[:start] + new + data[start:]
        )
        assert outcome(load_response, data) == outcome(load_json, data)
        short += is_parsed_once(data)
    assert short > 1_000


_PIECES = [b"", b'"', b"\\", b"\0", rb"\u0000", b'"\\u0000"', b"}", b"]", b",", b"{}", b"1", b"\n", b"\xc3", b"x" * 40, rb"\"",
           b'{"type":"text","content":', b'"message":{"role":"assistant","content":']  # fmt: skip
