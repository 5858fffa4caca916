"""Every field of every canonical type is checked when a value is made (NFR-016).

A value that a field cannot hold raises :class:`ResponseValidationError` and nothing else. Every accepted
value can be written as canonical JSON and read back.
"""

from __future__ import annotations

import math
import typing
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from http import HTTPStatus
from pathlib import Path
from types import NoneType
from typing import Any

import attrs
import pytest

from crosswalk import from_json, to_json
from crosswalk.codec.layout import union_members, without_none
from crosswalk.errors import ResponseValidationError
from crosswalk.types import (
    Alternative,
    AudioPart,
    ChatMessage,
    ChatResponse,
    CitationRef,
    ContentFilterResult,
    Correction,
    FilePart,
    FrozenObject,
    ImagePart,
    ProviderAttempt,
    RawEvents,
    ResponseBuilder,
    ResponseDelta,
    ResponseMetadata,
    SafetyAnnotation,
    Segment,
    StreamEvent,
    TextPart,
    TokenLogprob,
    ToolCall,
    ToolCallDelta,
    UsageInfo,
)

MESSAGE = ChatMessage.assistant("hi", tool_calls=[ToolCall("1", "f")])
USAGE = UsageInfo(1, 2, 0, 1, 0)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
METADATA = ResponseMetadata("p", "m", timedelta(1), timedelta(1), {"a": 1}, {"id": "synthetic"})
SEGMENT = Segment("text", "hi", {"a": 1}, [CitationRef("a", "b", (0, 1))])
TOKEN = TokenLogprob("a", -1.0, (97,), (TokenLogprob("b", None),))
VERDICT = ContentFilterResult("hate", "low", False, "why")
ATTEMPT = ProviderAttempt("p", "m", 1.5, "error", "why", {"a": 1})
ALTERNATIVE = Alternative(1, MESSAGE, "stop", "eos", "no", [SEGMENT], [TOKEN])
RESPONSE = ChatResponse(
    "id", MESSAGE, "stop", USAGE, METADATA, NOW, "m", "no", [VERDICT], "eos", [SEGMENT], [TOKEN], [ALTERNATIVE],
    [ATTEMPT], [b"{}"],
)  # fmt: skip
CORRECTION = Correction("text", "hi", 0, 2)
DELTA = ResponseDelta(
    index=0,
    content_delta="hi",
    tool_call_delta=ToolCallDelta(0, "1", "f", "{}"),
    finish_reason="stop",
    usage=USAGE,
    reasoning_delta="why",
    refusal_delta="no",
    segment=SEGMENT,
    correction=CORRECTION,
    raw_finish_reason="eos",
    logprobs=[TOKEN],
    choice=0,
    extensions={"a": 1},
)
# Every field of each has a value; where no single one can, there are two.
SAMPLES: list[Any] = [
    TextPart("hi"),
    ImagePart(url="u", media_type="m", detail="low"),
    AudioPart(data="aGk=", media_type="m"),
    FilePart(url="u", media_type="m", name="n"),
    FilePart(data="aGk="),
    FilePart(id="file-1"),
    MESSAGE,
    attrs.evolve(MESSAGE, name="n"),
    ChatMessage.tool_result("1", [TextPart("hi")], name="f"),
    ToolCall("1", "f", "{}"),
    ToolCallDelta(0, "1", "f", "{}"),
    SEGMENT,
    CitationRef("a", "b", (0, 1)),
    SafetyAnnotation("a", "b", True),
    TOKEN,
    VERDICT,
    METADATA,
    ATTEMPT,
    ALTERNATIVE,
    RESPONSE,
    StreamEvent("response.completed", DELTA, [SEGMENT], [ATTEMPT], {"a": [1]}, RESPONSE),
    DELTA,
    CORRECTION,
    Correction("tool_call", "{}", 0, 2, 1),
    USAGE,
]


class Words(StrEnum):
    WORD = "word"


class Text(str):
    __slots__ = ()


class Later(datetime):
    pass


class Odd:
    """Nothing that any field can hold."""


DEEP: Any = []
for _ in range(5000):
    DEEP = [DEEP]

ANYTHING: list[Any] = [
    None, True, False, 0, 1, -1, 7, 2**63, 2**64, 10**400, 0.5, -0.5, 1e300, math.nan, math.inf, -math.inf, Decimal("1.5"),
    "", "x", "é", "\ud800", "a\udfffb", "stop", "STOP", "text", Words.WORD, Text("x"), Text("\ud800"), HTTPStatus.OK,
    b"", b"x", bytearray(b"x"), [], ["x"], [7], [None], [b"x"], (), ("x",), (1, 2), (0, -1), (0, 1, 2), (True, 1), [1.5],
    [256], [-1], set(), {"x"}, frozenset({1}), {}, {"a": 1}, {"a": math.nan}, {"a": "\ud800"}, {7: 1}, {"a": b"x"},
    {"id": "synthetic"}, {"id": "nonsense"}, {"id": None}, {"é": "absent"}, {"\ud800": "absent"}, [["a", "b"]], range(2),
    {"a": 2**64}, {"a": {1}}, {"a": DEEP}, DEEP, object(), Odd(), str, len, Path("x"), datetime(2026, 1, 1), NOW,
    Later(2026, 1, 1, 1, 2, 3, 4, tzinfo=UTC), datetime.min.replace(tzinfo=UTC), timedelta(0), timedelta(-1),
    timedelta.max, timedelta(microseconds=1), RawEvents(), FrozenObject(), *SAMPLES,
    [SEGMENT], [TOKEN], [VERDICT], [ATTEMPT], [ALTERNATIVE], [ToolCall("1", "f")], [TextPart("x")], [CitationRef()],
    [b"{}"], (b"\xff",),
]  # fmt: skip


def is_allowed(value: object, hint: Any) -> bool:
    """Whether *value* is what *hint* says, or says the same in another form."""
    if members := union_members(hint):
        return any(is_allowed(value, member) for member in members)
    if hint is Any:
        return True
    if hint is NoneType:
        return value is None
    kind = typing.get_origin(hint) or hint
    if kind is tuple:
        # Of what it holds, the round trip tells.
        return hasattr(value, "__iter__") and not isinstance(value, str | Mapping | set | frozenset)
    if kind is Mapping or kind is FrozenObject:
        return isinstance(value, Mapping) or value is None
    if kind is RawEvents:
        return not isinstance(value, str | bytes) and hasattr(value, "__iter__")
    if issubclass(kind, Enum):
        return isinstance(value, str)
    if kind in (int, float):
        return isinstance(value, {int: int, float: float | int}[kind]) and not isinstance(value, bool)
    return isinstance(value, kind)


def fields() -> Iterator[Any]:
    for number, sample in enumerate(SAMPLES):
        cls = type(sample)
        for field in attrs.fields(cls):
            yield pytest.param(sample, field.name, id=f"{cls.__name__}{number}-{field.name}")


@pytest.mark.parametrize(("sample", "name"), [*fields()])
def test_a_field_holds_its_type_or_the_value_is_not_made(sample: Any, name: str) -> None:
    cls = type(sample)
    hint = typing.get_type_hints(cls)[name]
    given = {field.alias: getattr(sample, field.name) for field in attrs.fields(cls)}
    wrong = []
    for value in ANYTHING:
        if name == "data" and isinstance(value, bytes):
            continue  # media may be given as their bytes
        try:
            made = cls(**{**given, name: value})
        except ResponseValidationError:
            continue
        except Exception as error:
            wrong.append(f"{shown(value)}: {type(error).__name__}: {error}")
            continue
        if not is_allowed(value, hint):
            wrong.append(f"{shown(value)}: accepted")
        else:
            wrong += [f"{shown(value)}: {problem}" for problem in unreadable(made, name, hint)]
    assert not wrong


def shown(value: object) -> str:
    try:
        return f"{value!r:.80}"
    except RecursionError:
        return type(value).__name__


def unreadable(made: Any, name: str, hint: Any) -> Iterator[str]:
    """Why *made*, read back from its JSON, is another value."""
    try:
        read = from_json(to_json(made, include_raw=True), type(made))
    except Exception as error:
        yield f"{type(error).__name__}: {error}"
        return
    for field in attrs.fields(type(made)):
        if field.name == "completion_tokens" and type(made) is ResponseMetadata:
            continue  # a response fills it in
        before, after = getattr(made, field.name), getattr(read, field.name)
        if before != after or (type(before) is not type(after) and hint is not Any):
            yield f"{field.name} is {before!r:.60} and read as {after!r:.60}"


def test_whatever_is_none_is_refused_where_none_is_not_allowed() -> None:
    """The table above is sharp: in each required field ``None`` is refused, in each optional one accepted."""
    for sample in SAMPLES:
        given = {field.alias: getattr(sample, field.name) for field in attrs.fields(type(sample))}
        for name, hint in typing.get_type_hints(type(sample)).items():
            kind = without_none(hint)
            if (
                name not in given
                or kind is not hint
                or kind in (FrozenObject, Any)
                or typing.get_origin(kind) is Mapping
            ):
                continue
            with pytest.raises(ResponseValidationError):
                type(sample)(**{**given, name: None})


@pytest.mark.parametrize(
    ("made", "field", "expected"),
    [
        (lambda: ToolCall(Words.WORD, Text("f")), "id", "word"),
        (lambda: ToolCallDelta(HTTPStatus.OK, Words.WORD), "index", 200),
        (lambda: ToolCallDelta(HTTPStatus.OK, Words.WORD), "id", "word"),
        (lambda: TokenLogprob("a", 0), "logprob", 0.0),
        (lambda: TokenLogprob("a", None, b"ab"), "bytes", (97, 98)),
        (lambda: TokenLogprob("a", None, iter([97])), "bytes", (97,)),
        (lambda: Segment("text", Text("é")), "content", "é"),
        (lambda: Segment("text", annotations=iter([CitationRef()])), "annotations", (CitationRef(),)),
        (lambda: ProviderAttempt("p", "m", 3), "latency_ms", 3.0),
        (lambda: attrs.evolve(RESPONSE, created=Later(2026, 1, 1, tzinfo=UTC)), "created", NOW),
    ],
)
def test_what_says_the_same_is_converted(made: Any, field: str, expected: Any) -> None:
    """Subclasses become the plain type, other sequences tuples: nothing is lost."""
    found = getattr(made(), field)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Correction("citation", "a", 0, 1), "a correction is of text, reasoning, a refusal or a call's arguments"),
        (lambda: Correction("text", "a", 0, 1, 0), "a correction is of text, reasoning, a refusal or a call's arguments"),
        (lambda: ToolCallDelta(0, 5), "ToolCallDelta.id must be text, not number"),
        (lambda: ToolCallDelta(True), "ToolCallDelta.index must be an integer from 0, not boolean"),
        (lambda: ToolCallDelta(2**63), r"ToolCallDelta.index must be an integer from 0 to 2\*\*63 - 1"),
        (lambda: Segment("text", "a\ud800"), "Segment.content holds a lone surrogate, which is not text"),
        (lambda: Segment("text", annotations=["x"]), "Segment.annotations must hold CitationRef or SafetyAnnotation, not string"),
        (lambda: Segment("text", annotations="x"), "expected a list, got string"),
        (lambda: TokenLogprob("a", math.nan), "TokenLogprob.logprob must be a finite number"),
        (lambda: TokenLogprob("a", "1"), "TokenLogprob.logprob must be a number, not string"),
        (lambda: ContentFilterResult("hate", "low", 1), "ContentFilterResult.filtered must be true or false, not number"),
        (lambda: attrs.evolve(ALTERNATIVE, message=b""), "Alternative.message must be ChatMessage, not bytes"),
        (lambda: attrs.evolve(RESPONSE, model=""), "ACODE-RSP-006: Model ID cannot be empty"),
        (lambda: attrs.evolve(METADATA, request_duration=timedelta.max), "a duration cannot be longer than 1000 years"),
        (lambda: ResponseBuilder().with_segments("x"), "expected a list, got string"),
    ],
)  # fmt: skip
def test_the_error_says_which_field_and_what_it_held(make: Any, message: str) -> None:
    """It names types and no content."""
    with pytest.raises(ResponseValidationError, match=f"^{message}$"):
        make()


class Number(IntEnum):
    ONE = 1


@pytest.mark.parametrize("days", [98_615, 365_250])
def test_long_durations_are_read_back(days: int) -> None:
    """To the microsecond for 270 years, and without an error for as long as there may be."""
    longest = timedelta(days=days) - timedelta(microseconds=1)
    metadata = attrs.evolve(METADATA, request_duration=longest, time_to_first_token=longest)
    read = from_json(to_json(metadata), ResponseMetadata).request_duration
    assert read - longest <= timedelta(microseconds=0 if days < 100_000 else 8)


def test_a_subclass_of_int_is_an_int() -> None:
    made = ToolCallDelta(Number.ONE)
    assert (made.index, type(made.index)) == (1, int)
