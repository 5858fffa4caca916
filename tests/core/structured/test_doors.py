"""The short ways to a value: a function, a response, a tool call, and a schema for a client of one's own."""

from __future__ import annotations

from typing import Any

import attrs
import pydantic
import pytest

from crosswalk import ConfigurationError, FinishReason, ToolCall
from crosswalk.structured import (
    ParseResult,
    Schema,
    SchemaDefinitionError,
    StructuredAnswerError,
    StructuredParser,
    parse,
)

from .answers import response


@attrs.frozen
class Book:
    title: str
    pages: int | None = None


class Größe(pydantic.BaseModel):
    wert: float


GOOD = '{"title": "Dune"}'


def call(arguments: str) -> ToolCall:
    return ToolCall("c", "save", arguments)


SCHEMA = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}


@pytest.mark.parametrize("answer", [GOOD, response(GOOD), call(GOOD)], ids=["text", "response", "call"])
def test_one_function_reads_any_answer_as_any_type(answer: Any) -> None:
    for _ in range(2):
        assert parse(answer, Book).unwrap() == Book("Dune")
        assert parse(answer, Schema(Book)).value == Book("Dune")
        assert parse(answer, SCHEMA).value == {"title": "Dune"}
    assert StructuredParser(Book).parse(answer).value == Book("Dune")


def test_the_function_takes_the_options_of_a_parser() -> None:
    assert parse(f"Here: {GOOD}", Book, prose="refuse").value is None
    assert parse(f'{{"result": {GOOD}}}', Book, unwrap="result").value == Book("Dune")
    assert parse(f'{{"result": {GOOD}}}', SCHEMA, unwrap="result").value == {"title": "Dune"}
    with pytest.raises(SchemaDefinitionError, match="an answer cannot hold"):
        parse(GOOD, complex)
    with pytest.raises(ConfigurationError, match="there is no option 'colour'"):
        parse(GOOD, Book, colour="red")


def test_a_result_is_true_if_it_holds_a_whole_value() -> None:
    assert parse(GOOD, Book)
    assert not parse("no", Book)
    partial: ParseResult[Book] = StructuredParser(Book).parse('{"title": "Dune"', partial="accept")  # type: ignore[arg-type]
    assert partial.value == Book("Dune")
    assert not partial


def test_an_error_lists_its_problems() -> None:
    with pytest.raises(StructuredAnswerError) as caught:
        parse('{"title": 5}', Book).unwrap()
    assert caught.value.errors == ["expected string, got number @ $.title"]


def test_a_response_gives_a_value_of_a_type() -> None:
    assert response(GOOD).parsed(Book) == Book("Dune")
    assert response("[1, 2]").parsed(list[int]) == [1, 2]
    with pytest.raises(StructuredAnswerError, match="truncated"):
        response(GOOD, FinishReason.LENGTH).parsed(Book)


def test_a_tool_call_gives_a_value_of_a_type() -> None:
    assert call(GOOD).parsed(Book) == Book("Dune")
    assert call(GOOD).parsed() == {"title": "Dune"}
    with pytest.raises(StructuredAnswerError, match="a required field is missing"):
        call("{}").parsed(Book)


def test_a_schema_has_the_form_of_a_request() -> None:
    wanted = Schema(Book).response_format()
    assert wanted["type"] == "json_schema"
    assert (wanted["json_schema"]["name"], wanted["json_schema"]["strict"]) == ("Book", True)
    assert wanted["json_schema"]["schema"]["required"] == ["title", "pages"]
    assert Schema(Größe).response_format()["json_schema"]["name"] == "Gr__e"
