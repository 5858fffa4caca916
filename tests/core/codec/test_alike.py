"""Documents that differ in a few leaves are read by what they have in common, and say what they would say in the general way."""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given, settings, strategies as st

from crosswalk import CrosswalkError, normalize
from crosswalk.codec import from_json, to_json
from crosswalk.codec.alike import Shape, learn
from crosswalk.codec.reading import documents, note_document, read_in_general
from crosswalk.errors import CanonicalJSONError
from crosswalk.testing import load_captures
from crosswalk.types import (
    Alternative,
    ChatMessage,
    ChatResponse,
    CitationRef,
    Cost,
    FinishReason,
    ProviderAttempt,
    ResponseMetadata,
    Segment,
    SegmentType,
    TokenLogprob,
    ToolCall,
    UsageInfo,
)
from strategies import BY_TYPE, unfolded
from tries import tries

TESTS = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    documents.forget()
    yield
    documents.forget()


def general(data: bytes) -> ChatResponse:
    return read_in_general(data, ChatResponse)


def shape_of(data: bytes) -> Shape | None:
    return learn(data, general(data), (), general)


def wider(data: bytes, shape: Shape) -> Shape:
    """The shape of *data* where every leaf may change; *shape* itself where these are too many."""
    return learn(data, general(data), [unlike(shape)], general) or shape


def unlike(shape: Shape) -> Shape:
    """*shape*, as it were learnt from a document in which every leaf is another."""
    others = tuple([leaf + b" " for leaf in shape.leaves])
    return Shape(shape.read, shape.kind, leaves=others, changing=shape.changing)


def by_shape(shape: Shape, data: bytes) -> ChatResponse | None:
    try:
        return shape.read(data)
    except Exception:
        return None


def outcome(read: Callable[[bytes], Any], data: bytes) -> Any:
    """What reading *data* gives, or the error, in all that can be seen of it."""
    try:
        return unfolded(read(data))
    except CanonicalJSONError as error:
        return type(error), str(error), error.problems


def response(text: str = "It is five.", /, **fields: Any) -> ChatResponse:
    made: dict[str, Any] = {
        "id": "r1",
        "message": ChatMessage.assistant(text),
        "finish_reason": FinishReason.STOP,
        "usage": UsageInfo(3, 4),
        "metadata": ResponseMetadata(
            "p", "m", extensions={"a": [1, {"b": "c"}], "d": {}, "e": [], "f": None}
        ),
        "created": datetime(2024, 1, 15, 10, 30, tzinfo=UTC),
        "model": "m",
        "raw_finish_reason": "stop",
        "segments": [Segment(SegmentType.TEXT, text)],
        **fields,
    }
    return ChatResponse(**made)


BARE = (
    b'{"id":"r","message":{"role":"assistant"},"finish_reason":"stop","usage":{"prompt_tokens":0,"completion_tokens":0},'
    b'"metadata":{"provider_id":"p","model_id":"m"},"created":"2024-01-15T10:30:00Z","model":"m"}'
)
REASONED = [Segment(SegmentType.REASONING, "Two and three."), Segment(SegmentType.TEXT, "It is five.")]
CALLS = (ToolCall("c1", "add", '{"a":2}'), ToolCall("c2", "add", "{}"))
CALLED = [
    Segment(SegmentType.TOOL_CALL, call.arguments, {"id": call.id, "name": call.name}) for call in CALLS
]
ONES = {
    "a text": response(),
    "no text at all": response(message=ChatMessage.assistant(), segments=[]),
    "a text that no segment says": response(segments=[]),
    "an empty text": response(""),
    "a long text": response('A "long" text, 🐎 \\ \n' * 2000),
    "reasoning before it": response(segments=REASONED),
    "reasoning behind it": response(segments=REASONED[::-1]),
    "calls": response(message=ChatMessage.assistant(tool_calls=CALLS), segments=CALLED),
    "a text and calls": response(
        message=ChatMessage.assistant("I add.", tool_calls=CALLS),
        segments=[Segment(SegmentType.TEXT, "I add."), *CALLED],
    ),
    "a citation": response(
        segments=[Segment(SegmentType.TEXT, "It is five.", annotations=[CitationRef("s", "t", (0, 5)), CitationRef()])]
    ),
    "a cost": response(usage=UsageInfo(3, 4, 1, cost=Cost(Decimal("0.25")))),
    "alternatives and attempts": response(
        alternatives=[Alternative(1, ChatMessage.assistant("Or six."), FinishReason.LENGTH)],
        attempts=[ProviderAttempt("p", "m", 12.5), ProviderAttempt("p", "m", None, "error", "no")],
    ),
    "an error": ChatResponse.error("No.", "m"),
}  # fmt: skip


@pytest.mark.parametrize("name", ONES)
def test_a_shape_reads_the_document_and_its_like(name: str) -> None:
    """Whatever stands in its leaves: those that change from the first, and those that have changed once."""
    data = to_json(ONES[name])
    shape = shape_of(data)
    assert shape is not None
    assert unfolded(shape.read(data)) == unfolded(general(data))
    changed = re.sub(
        rb'(?<=":)"(?:It|I|r1|Two|Or)', rb'"\\u00df ', re.sub(rb'(t|n|l)_tokens":', rb'\1_tokens":1', data)
    )
    assert unfolded(shape.read(changed)) == unfolded(general(changed))
    changed = changed.replace(b'"m"', b'"another"')
    assert by_shape(shape, changed) is None
    found = wider(data, shape).read(changed)
    assert unfolded(found) == unfolded(general(changed))
    assert to_json(found) == to_json(general(changed))


@pytest.mark.parametrize(
    "data",
    [
        b" " + to_json(response()),
        to_json(response()).replace(b'"model":"m"', b'"model":"m","other":1'),
        to_json(response()).replace(b'"p","m', b'"p","p":1,"m'),
        to_json(response(), indent=True),
        BARE,
        to_json(response(raw_events=[b"{}"]), include_raw=True),
        to_json(response(logprobs=[TokenLogprob("a", -0.5)])),
        to_json(response(message=ChatMessage.assistant())).replace(b'"assistant"', b'"assistant","content":[{"type":"text","text":"a"}]'),
        to_json(response(metadata=ResponseMetadata("p", "m", extensions={"a": list(range(999))}))),
        to_json(response(metadata=ResponseMetadata("p", "m", extensions={"a": 2**70}))),
    ],
)  # fmt: skip
def test_of_what_is_written_in_another_way_nothing_is_learnt(data: bytes) -> None:
    """Nor of what is too much, or has values of other kinds."""
    assert shape_of(data) is None


def test_so_many_leaves_change_that_nothing_is_learnt() -> None:
    """Comparing them would take longer than parsing."""
    data = to_json(response(metadata=ResponseMetadata("p", "m", extensions={"a": list(range(99))})))
    shape = shape_of(data)
    assert shape is not None
    assert learn(data, general(data), [unlike(shape)], general) is None


@pytest.mark.parametrize("depth", [250, 900])
def test_what_is_nested_too_deeply_to_be_learnt_is_still_read(depth: int) -> None:
    """Python has its own limits for expressions and calls."""
    each = [
        to_json(response()).replace(b'{"b":"c"}', b"[" * depth + b'"%d"' % n + b"]" * depth) for n in range(4)
    ]
    for number, data in enumerate(each):
        value = from_json(data, ChatResponse).metadata.extensions["a"]
        while type(value) is tuple:
            value = value[-1]
        assert value == str(number)
    shape = shape_of(each[0])
    assert shape is None or wider(each[0], shape) is shape


def test_a_shape_that_reads_something_else_is_not_used() -> None:
    """The proof: what the general way makes of other values, or that it refuses them."""
    data = to_json(response())

    def another(data: bytes) -> ChatResponse:
        return attrs.evolve(general(data), refusal="no")

    def refuses(data: bytes) -> ChatResponse:
        raise CanonicalJSONError("no", problems=())

    assert learn(data, general(data), (), another) is None
    assert learn(data, general(data), (), refuses) is None


ODD = [b'""', b'"a', b'"a\\"', b'b","c"', b'"\\ud800"', b'"\xff"', b'"\n"', b"1", b"-0", b"1.5", b"1e3", b"01", b"null", b"true",
       b"[]", b"{}", b'"a","b"', b'"a" ', b"1,2", b"", b'"2024-01-15"', b'"2024-01-15T10:30:00+01:00"', b"9" * 16, b"9" * 40, b"-1",
       b"1e999", b"0." + b"1" * 40, b'"a","content":"b"', b"99999999999.5", b"9" * 20, b'"1.50"', b'"-1"', b'"+1"']  # fmt: skip


@pytest.mark.sweep
@pytest.mark.parametrize("name", ONES)
def test_no_value_is_read_otherwise_than_in_the_general_way(name: str) -> None:
    """Each leaf in turn, and all that are equal at once, with each odd value: the same response, or none."""
    data = to_json(ONES[name])
    first = shape_of(data)
    assert first is not None
    shapes = first, wider(data, first)
    leaves = [
        found.span() for found in re.finditer(rb'(?<=[:\[,])(?:"(?:[^"\\]|\\.)*"(?!:)|-?[0-9.]+)', data)
    ]
    for start, end in leaves:
        for odd in ODD:
            for changed in (data[:start] + odd + data[end:], data.replace(data[start:end], odd)):
                for shape in shapes:
                    found = by_shape(shape, changed)
                    assert found is None or unfolded(found) == unfolded(general(changed))


# ------------------------------------------------------------------------------- what a process remembers


def noted(*responses: ChatResponse) -> None:
    for each in responses:
        note_document(to_json(each), each)


def test_the_second_of_a_kind_is_learnt_from() -> None:
    """And a third one with other values need not be read in the general way."""
    third = to_json(
        response("Three.", id="r3", usage=UsageInfo(7, 8), created=datetime(2025, 2, 3, tzinfo=UTC))
    )
    noted(response("One."))
    assert documents.read(third) is None
    noted(response("Two."))
    assert unfolded(documents.read(third)) == unfolded(general(third))


def test_the_end_of_a_line_is_no_part_of_a_document() -> None:
    """A document is the line of a file, or all of it."""
    data = to_json(response())
    for end in (b"\n", b"\n", b"", b"\r\n"):
        assert unfolded(from_json(data + end, ChatResponse)) == unfolded(general(data))
    assert documents.read(data) is not None
    assert documents.read(data + b"\x00") is None


def test_what_has_changed_once_may_change() -> None:
    """A model, a time that the provider kept: the fourth one teaches it, which does not fit either."""
    each = [
        response(metadata=ResponseMetadata("p", f"m{n}", extensions={"n": n}), model=f"m{n}")
        for n in range(6)
    ]
    noted(*each[:4])
    for one in each:
        assert unfolded(documents.read(to_json(one))) == unfolded(general(to_json(one)))


def test_what_is_read_is_learnt_from() -> None:
    """By whoever calls ``from_json``."""
    data = to_json(response())
    for _ in range(2):
        assert documents.read(data) is None
        from_json(data, ChatResponse)
    assert documents.read(data) is not None


def test_of_a_very_large_one_nothing_is_learnt() -> None:
    large = response("a" * 600_000)
    noted(large, large)
    assert documents.read(to_json(large)) is None


def test_of_one_of_very_many_values_nothing_is_learnt() -> None:
    """It would take seconds."""
    wide = response(metadata=ResponseMetadata("p", "m", extensions={"a": [True] * 4096}))
    noted(wide, wide)
    assert documents.read(to_json(wide)) is None


@pytest.mark.parametrize("name", ["a", "f"])
def test_what_is_the_same_may_be_long(name: str) -> None:
    """It is compared, byte by byte."""

    def one(text: str, more: str = "z") -> ChatResponse:
        said: dict[str, Any] = {"a": [text], "b": [text], "f": text}
        said[name] = [text, "(" * 3000 + more, text]
        return response(text, metadata=ResponseMetadata("p", text, extensions=said))

    noted(*map(one, "abcd"))
    assert unfolded(documents.read(to_json(one("e")))) == unfolded(one("e"))
    assert documents.read(to_json(one("e", "y"))) is None


def test_an_error_is_the_same_when_its_like_is_known() -> None:
    """With the same places."""
    data = to_json(response())
    damaged = [
        data[:-1],
        data.replace(b'"r1"', b'""'),
        data.replace(b":3", b":-3"),
        data.replace(b"It", b"\xff"),
    ]
    before = [outcome(lambda data: from_json(data, ChatResponse), each) for each in damaged]
    from_json(data, ChatResponse)
    from_json(data, ChatResponse)
    assert documents.read(data) is not None
    assert [outcome(lambda data: from_json(data, ChatResponse), each) for each in damaged] == before
    assert all(kind is CanonicalJSONError for kind, *_ in before)


# --------------------------------------------------------------------------------------------- both ways


@functools.cache
def stored() -> list[bytes]:
    """Canonical JSON of each captured answer, and of each that is stored from an older version."""
    found = [path.read_bytes() for path in sorted((TESTS / "stored").glob("v*/response-*.json"))]
    for folder in sorted(path for path in (TESTS / "captures").iterdir() if path.is_dir()):
        for capture in load_captures(folder):
            try:
                found.append(to_json(normalize(capture.body, folder.name, status=capture.status)))
            except CrosswalkError:
                continue
    return found


_PIECES = [b"", b'"', b"\\", b"\0", rb"\u0041", b"}", b"]", b",", b"{}", b"1", b".5", b"-", b"e9", b"\n", b" ", b"\xc3", b"x" * 40,
           rb"\"", b"null", b'"a"', b'","name":"', b"\xc3\x9f", b"Z", b"+01:00", b"0", b"99999999999999999999"]  # fmt: skip


@pytest.mark.sweep
def test_ten_thousand_documents_are_read_alike() -> None:
    """Of each captured answer, and damaged anywhere: the same response, or the same error."""
    chance = random.Random(7)
    known = []
    for data in stored():
        shape = shape_of(data) if type(outcome(general, data)[0]) is type else None
        if shape is not None:
            known += [(data, shape), (data, wider(data, shape))]
    assert len(known) > 200
    fitted = 0
    for number in range(20_000):
        data, shape = known[number % len(known)]
        start = chance.randrange(len(data))
        old, new = data[start : start + chance.randrange(4)], chance.choice(_PIECES)
        data = (
            data.replace(old, new, chance.choice((1, -1, -1))) if old else data[:start] + new + data[start:]
        )
        found = by_shape(shape, data)
        if found is not None:
            fitted += 1
            assert unfolded(found) == unfolded(general(data))
    assert fitted > 1_000


@pytest.mark.sweep
def test_a_log_is_read_alike() -> None:
    """All captured answers, in any order, some damaged, many of each: what is known changes all the time."""
    chance = random.Random(8)

    def read(data: bytes) -> ChatResponse:
        return from_json(data, ChatResponse)

    for _ in range(3_000):
        data = chance.choice(stored())
        if chance.random() < 0.4:
            start = chance.randrange(len(data))
            data = data[:start] + chance.choice(_PIECES) + data[start + chance.randrange(3) :]
        assert outcome(read, data) == outcome(general, data)


@pytest.mark.sweep
@settings(max_examples=tries(100))
@given(one=BY_TYPE[ChatResponse], other=BY_TYPE[ChatResponse], data=st.data())
def test_whatever_a_response_holds(one: ChatResponse, other: ChatResponse, data: st.DataObject) -> None:
    """It is read by its shape as in the general way; so is another with the texts, counts, id and time of a third."""
    written = to_json(one)
    shape = shape_of(written)
    if shape is None:
        return
    assert unfolded(shape.read(written)) == unfolded(general(written))
    changed = attrs.evolve(
        one,
        id=other.id,
        created=other.created,
        model=other.model,
        usage=attrs.evolve(one.usage, prompt_tokens=data.draw(st.integers(0, 2**63 - 1))),
        message=attrs.evolve(one.message, content=other.message.content),
    )
    for each in (shape, wider(written, shape)):
        found = by_shape(each, to_json(changed))
        assert found is None or unfolded(found) == unfolded(general(to_json(changed)))
