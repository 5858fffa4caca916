"""Answers as values: the request's schema, and the value in the response."""

from __future__ import annotations

import functools
import re
from collections.abc import Hashable
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import attrs

from crosswalk.errors import ConfigurationError
from crosswalk.service.request import Asked, ChatRequest, ResponseFormat, as_request
from crosswalk.structured import ParseResult, Partial, Prose, Schema, StructuredAnswerError, StructuredParser
from crosswalk.structured.reason import as_prose
from crosswalk.text import brief, summary
from crosswalk.types.json import FrozenObject, JSONObject
from crosswalk.types.message import ChatMessage
from crosswalk.types.response import ChatResponse

__all__ = ["JSONAnswer", "JSONAnswerError"]

T = TypeVar("T")

AnswerType: TypeAlias = type[T] | Schema[T] | StructuredParser[T] | JSONObject
"""The type of an answer: any type that :class:`~crosswalk.structured.Schema` accepts, a schema with invariants, a custom
parser, or a JSON Schema."""
ProseChoice: TypeAlias = Prose | Literal["allow", "refuse"]


@brief
@attrs.frozen(repr=False)
class JSONAnswer(Generic[T]):
    """A decoded answer with its source.

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
        response: the model's answer.
    """

    def __init__(self, message: str, *, result: ParseResult[Any], response: ChatResponse) -> None:
        super().__init__(message, result=result)
        self.response = response


def parser_for(answer: AnswerType[T], prose: ProseChoice = Prose.ALLOW) -> StructuredParser[T]:
    """Return the parser of *answer*. A custom parser keeps its own rule about prose.

    Raises:
        ConfigurationError: a parser of several versions, or *prose* is not a choice.
        SchemaDefinitionError: *answer* cannot be the type of an answer.
    """
    if isinstance(answer, StructuredParser):
        parser = answer
    else:
        parser = (
            _made(answer, as_prose(prose))
            if isinstance(answer, Hashable)
            else StructuredParser(answer, prose=prose)
        )
    if not isinstance(parser.schema, Schema):
        raise ConfigurationError("a parser of several versions has no one schema", key="answer")
    # Strict mode makes every key required, so a null stands for a default.
    return parser.with_null_as_default() if parser.schema.server_schema()[1] else parser


@functools.lru_cache(maxsize=256)
def _made(answer: Any, prose: Prose) -> StructuredParser[Any]:
    return StructuredParser(answer, prose=prose)


def with_schema(asked: Asked, parser: StructuredParser[Any], *, instruct: bool) -> ChatRequest:
    """Return the request *asked* with the schema of *parser* as its response format, unless it has one.

    With *instruct*, the schema is also put into a system message, for servers that do not enforce it.
    """
    request, schema = as_request(asked), parser.schema
    assert isinstance(schema, Schema)
    if request.response_format is None:
        wanted, is_strict = schema.server_schema()
        name = re.sub(r"\W", "_", schema.name)[:64]
        format = ResponseFormat(FrozenObject(wanted), name=name, strict=is_strict)
        request = attrs.evolve(request, response_format=format)
    if instruct:
        said = ChatMessage.system(schema.instructions())
        request = attrs.evolve(request, messages=(said, *request.messages))
    return request


def read_answer(response: ChatResponse, parser: StructuredParser[T], partial: Partial) -> JSONAnswer[T]:
    """Return the value in *response*.

    Raises:
        JSONAnswerError: there is no valid one.
    """
    result = parser.parse(response, partial=partial)
    try:
        return JSONAnswer(result.unwrap(), response, result)
    except StructuredAnswerError as error:
        raise JSONAnswerError(str(error), result=result, response=response) from None


def asked_again(request: ChatRequest, error: JSONAnswerError) -> ChatRequest:
    """Return *request* with the answer that could not be used, and its errors."""
    said = ChatMessage.assistant(error.response.text), ChatMessage.user(error.result.feedback())
    return attrs.evolve(request, messages=(*request.messages, *said))
