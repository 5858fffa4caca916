from __future__ import annotations

from enum import StrEnum
from typing import Any, Generic, TypeVar

import attrs
import pytest

from crosswalk.responses import (
    Response,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputRefusal,
    ResponseOutputText,
    ResponsesParseError,
    ResponseStatus,
    parse_output,
)


class Colour(StrEnum):
    RED = "red"


@attrs.frozen
class Size:
    width: int


@attrs.frozen
class Article:
    sku: str
    price: float | None = None
    tags: tuple[str | int, ...] = ()
    size: Size | None = None
    colour: Colour = Colour.RED
    count: int = attrs.field(default=1, validator=attrs.validators.gt(0))


def response(*texts: str, status: ResponseStatus | None = ResponseStatus.COMPLETED) -> Response:
    message = ResponseOutputMessage(content=tuple(ResponseOutputText(text=text) for text in texts))
    return Response(status=status, output=(ResponseFunctionToolCall(call_id="c", name="f"), message))


def test_each_text_is_read() -> None:
    parsed = parse_output(
        response('{"sku":"a","price":2,"tags":["x",1],"size":{"width":3},"colour":"red"}', '{"sku":"b"}'),
        Article,
    )
    assert parsed.output_parsed == Article("a", 2.0, ("x", 1), Size(3))
    assert [(text.output_index, text.content_index, text.parsed.sku) for text in parsed.texts] == [
        (1, 0, "a"),
        (1, 1, "b"),
    ]
    assert parsed.refusal is None


def test_commentary_is_not_read() -> None:
    said = ResponseOutputMessage(phase="commentary", content=(ResponseOutputText(text="Let me look."),))
    answer = ResponseOutputMessage(phase="final_answer", content=(ResponseOutputText(text='{"sku":"a"}'),))
    parsed = parse_output(Response(status=ResponseStatus.COMPLETED, output=(said, answer)), Article)
    assert [(text.output_index, text.parsed.sku) for text in parsed.texts] == [(1, "a")]


T = TypeVar("T")


@attrs.frozen
class Page(Generic[T]):
    rows: tuple[T, ...]
    place: tuple[int, str] = (0, "")
    first: T | None = None
    best: T = attrs.field(default=None)


def test_generic_classes_are_read() -> None:
    text = '{"rows":[1,2],"place":[3,"a"],"first":1,"best":2}'
    assert parse_output(response(text), Page[int]).output_parsed == Page((1, 2), (3, "a"), 1, 2)
    with pytest.raises(ResponsesParseError, match=r"expected string, got number @ .*text\.rows\[0\]"):
        parse_output(response(text), Page[str])


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("[]", "must have at least 2 items @ $.output[1].content[0].text.place"),
        ("[1,2]", "expected string, got number @ $.output[1].content[0].text.place[1]"),
        ('[1,"a",3]', "must have at most 2 items @ $.output[1].content[0].text.place"),
        ("{}", "expected array, got object @ $.output[1].content[0].text.place"),
    ],
)
def test_a_tuple_of_fixed_length_is_read_exactly(place: str, said: str) -> None:
    with pytest.raises(ResponsesParseError) as caught:
        parse_output(response(f'{{"rows":[],"place":{place}}}'), Page[int])
    assert str(caught.value) == said


def test_a_refusal_has_no_value() -> None:
    message = ResponseOutputMessage(content=(ResponseOutputRefusal(refusal="No."),))
    parsed = parse_output(Response(status=ResponseStatus.COMPLETED, output=(message,)), Article)
    assert (parsed.output_parsed, parsed.refusal) == (None, "No.")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"sku":5}', "expected string, got number @ $.output[1].content[0].text.sku"),
        ("{}", "a required field is missing @ $.output[1].content[0].text.sku"),
        ('{"sku":"a","z":1}', "unknown field @ $.output[1].content[0].text.z"),
        ('{"SKU":"a"}', "a required field is missing @ $.output[1].content[0].text.sku"),
        ('{"sku":"a","size":[]}', "expected Size, got array @ $.output[1].content[0].text.size"),
        (
            '{"sku":"a","size":{"width":true}}',
            "expected integer, got boolean @ $.output[1].content[0].text.size.width",
        ),
        (
            '{"sku":"a","colour":"secret"}',
            "expected 'red', got another string @ $.output[1].content[0].text.colour",
        ),
        ('{"sku":"a","count":0}', "refused (ValueError) @ $.output[1].content[0].text"),
        ("[1]", "expected object, got array @ $.output[1].content[0].text"),
        ("{", "not JSON at byte 1: unexpected end of data @ $.output[1].content[0].text"),
        ("\ud800", "not JSON: half a surrogate pair @ $.output[1].content[0].text"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(ResponsesParseError) as caught:
        parse_output(response(text), Article)
    assert str(caught.value) == said
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (ResponseStatus.INCOMPLETE, "the response is incomplete"),
        (None, "the response is of unknown status"),
    ],
)
def test_a_response_that_may_be_cut_off_is_refused(status: Any, said: str) -> None:
    with pytest.raises(ResponsesParseError, match=said):
        parse_output(response('{"sku":"a"}', status=status), Article)


@attrs.frozen
class Priced:
    price: complex


def test_a_class_that_no_json_is_read_as_is_the_programs_mistake() -> None:
    with pytest.raises(TypeError, match="complex"):
        parse_output(response('{"price":"1.5"}'), Priced)


@attrs.frozen
class Deep:
    sku: str

    def __attrs_post_init__(self) -> None:
        raise RecursionError


def test_a_class_that_takes_too_many_calls_is_too_deep() -> None:
    with pytest.raises(ResponsesParseError, match=r"nested too deeply @ \$\.output\[1\]"):
        parse_output(response('{"sku":"a"}'), Deep)


@attrs.define(init=False)
class Unmade:
    sku: str

    def __init__(self) -> None:
        self.sku = ""


def test_a_class_that_is_not_made_of_its_fields_is_the_programs_mistake() -> None:
    with pytest.raises(TypeError, match="Unmade.sku: its constructor does not take it"):
        parse_output(response('{"sku":"a"}'), Unmade)
