"""Answers as values: the request's schema, and the value in the response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeAlias, TypeVar

import attrs

from crosswalk.errors import ConfigurationError
from crosswalk.service.request import Asked, ChatRequest, ResponseFormat, as_request
from crosswalk.structured import ParseResult, Partial, Schema, StructuredAnswerError, StructuredParser
from crosswalk.structured.chain import run_chain
from crosswalk.structured.ending import reason_for_response
from crosswalk.structured.growing import GrowingAnswer
from crosswalk.text import brief, summary
from crosswalk.types.json import FrozenObject, JSONObject
from crosswalk.types.message import ChatMessage
from crosswalk.types.response import ChatResponse

__all__ = ["JSONAnswer", "JSONAnswerError"]

T = TypeVar("T")

AnswerType: TypeAlias = type[T] | Schema[T] | StructuredParser[T] | JSONObject
"""What an answer is to be: an attrs class, a schema with invariants, a parser of one's own, or a JSON Schema. Against a
JSON Schema the value is not checked: whether the provider held the model to it is the provider's promise."""


@brief
@attrs.frozen(repr=False)
class JSONAnswer(Generic[T]):
    """A decoded answer and where it came from.

    Attributes:
        value: the value.
        response: the response that holds it.
        result: how it was read: directly, extracted from a text around it, or repaired.
    """

    value: T
    response: ChatResponse
    result: ParseResult[T]

    def __repr__(self) -> str:
        return summary("JSONAnswer", [("stage", self.result.stage.value), ("value", self.value)])


class JSONAnswerError(StructuredAnswerError):
    """The model answered, but not with a valid value.

    Attributes:
        response: what it answered.
    """

    def __init__(self, message: str, *, result: ParseResult[Any], response: ChatResponse) -> None:
        super().__init__(message, result=result)
        self.response = response


def with_schema(asked: Asked, answer: AnswerType[Any], *, instruct: bool) -> ChatRequest:
    """The request *asked* with the schema of *answer* as its response format, unless it has one.

    With *instruct*, the schema is also said to the model in words, for servers that do not hold it to a schema.
    """
    request = as_request(asked)
    schema = _schema_of(answer)
    if request.response_format is None:
        wanted = _json_schema(schema)
        name = wanted.get("title", "answer") if isinstance(schema, Schema) else "answer"
        format = ResponseFormat(FrozenObject(wanted), name=str(name)[:64], strict=_is_strict(wanted))
        request = attrs.evolve(request, response_format=format)
    if instruct:
        if not isinstance(schema, Schema):
            raise ConfigurationError("instruct needs an attrs class or a Schema", key="instruct")
        said = ChatMessage.system(schema.instructions())
        request = attrs.evolve(request, messages=(said, *request.messages))
    return request


def read_answer(response: ChatResponse, answer: AnswerType[T], partial: Partial) -> JSONAnswer[T]:
    """The value in *response*.

    Raises:
        JSONAnswerError: there is no valid one.
    """
    if isinstance(answer, Mapping):
        result = run_chain(_anything, response.text, reason_for_response(response), partial, _unmeasured)
    else:
        parser = answer if isinstance(answer, StructuredParser) else StructuredParser(answer)
        result = parser.parse(response, partial=partial)
    try:
        return JSONAnswer(result.unwrap(), response, result)
    except StructuredAnswerError as error:
        raise JSONAnswerError(str(error), result=result, response=response) from None


def growing(answer: AnswerType[T]) -> GrowingAnswer[T]:
    """What reads the value while it is written."""
    if isinstance(answer, Mapping):
        return GrowingAnswer(_anything)
    return (answer if isinstance(answer, StructuredParser) else StructuredParser(answer)).growing()


def _schema_of(answer: AnswerType[Any]) -> Schema[Any] | JSONObject:
    if isinstance(answer, StructuredParser):
        if not isinstance(answer.schema, Schema):
            raise ConfigurationError(
                "a parser of several versions has no one schema: set response_format", key="answer"
            )
        return answer.schema
    return answer if isinstance(answer, Schema | Mapping) else Schema(answer)


def _json_schema(schema: Schema[Any] | JSONObject) -> dict[str, Any]:
    """The JSON Schema to send: without further keys, which reading passes over but asking need not invite."""
    if isinstance(schema, Schema):
        return attrs.evolve(schema, forbid_unknown=True).json_schema()
    return FrozenObject(schema).thawed()


def _is_strict(schema: Any) -> bool:
    """Whether OpenAI's strict mode takes *schema*: every key of every object required, no others, no defaults."""
    if isinstance(schema, list):
        return all(map(_is_strict, schema))
    if not isinstance(schema, dict):
        return True
    if "default" in schema:
        return False
    if schema.get("type") == "object":
        closed = schema.get("additionalProperties") is False
        if not closed or set(schema.get("required", ())) != set(schema.get("properties", ())):
            return False
    named = {**schema.get("properties", {}), **schema.get("$defs", {})}
    rest = [value for key, value in schema.items() if key not in ("properties", "$defs", "enum", "required")]
    return all(map(_is_strict, [*named.values(), *rest]))


def _anything(data: Any) -> tuple[Any, tuple[()], None]:
    return data, (), None


def _unmeasured(_: str) -> None:
    """No metrics are kept."""
