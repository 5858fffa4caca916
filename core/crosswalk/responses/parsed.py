"""A response with its text read as values of a custom type."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

import attrs

from crosswalk.codec.canonical import problems_in
from crosswalk.codec.layout import Refused
from crosswalk.errors import FramingError
from crosswalk.responses.content import ResponseOutputText
from crosswalk.responses.messages import ResponseOutputMessage
from crosswalk.responses.reading import load_json
from crosswalk.responses.response import Response
from crosswalk.responses.vocabulary import ResponsesParseError, ResponseStatus
from crosswalk.schemas.check import compile_schema
from crosswalk.schemas.json_schema import schema_of
from crosswalk.schemas.metadata import Check, Report
from crosswalk.schemas.values import answer_converter

T = TypeVar("T")


@attrs.frozen(kw_only=True)
class ParsedText(Generic[T]):
    """A text part that was read as a value.

    Attributes:
        output_index: the position of its message in the output.
        content_index: its position in the message.
        parsed: the value.
    """

    output_index: int
    content_index: int
    parsed: T


@attrs.frozen(kw_only=True)
class ParsedResponse(Generic[T]):
    """A response with the values read from its text parts.

    Attributes:
        response: the response.
        texts: a value for each text part, in order. Commentary is not read.
    """

    response: Response
    texts: tuple[ParsedText[T], ...]

    @property
    def output_parsed(self) -> T | None:
        """The first value, or ``None`` without any text, as after a refusal."""
        return self.texts[0].parsed if self.texts else None

    @property
    def refusal(self) -> str | None:
        """The model's words of refusal, or ``None`` if it did not refuse."""
        messages = [item for item in self.response.output if isinstance(item, ResponseOutputMessage)]
        refusals = [message.refusal for message in messages if message.refusal is not None]
        return "".join(refusals) if refusals else None


def parse_output(response: Response, into: type[T]) -> ParsedResponse[T]:
    """Read each text part of *response* as JSON into *into*.

    Messages of the phase ``commentary``, which a model writes before its calls of tools, are not part of the answer
    and are skipped. Types must match exactly: numbers are not converted to strings, and ``null`` is refused for a
    number. Unknown keys are refused, and so are missing ones without a default.

    Args:
        response: a completed response.
        into: a type as :class:`crosswalk.structured.Schema` takes it, such as an attrs class, a dataclass or a list.

    Raises:
        ResponsesParseError: the response is not completed, or a text is not JSON or does not match *into*. ``path`` is the
            location, such as ``$.output[0].content[0].text``, and inside the text ``$.output[0].content[0].text.price``.
        TypeError: *into* has no form in JSON.
    """
    if response.status is not ResponseStatus.COMPLETED:
        status = response.status.value if response.status else "of unknown status"
        raise ResponsesParseError(f"the response is {status}, so its text may be cut off", path="$.status")
    texts: list[ParsedText[T]] = []
    for output_index, item in enumerate(response.output):
        if not isinstance(item, ResponseOutputMessage) or item.phase == _COMMENTARY_PHASE:
            continue
        for content_index, part in enumerate(item.content):
            if isinstance(part, ResponseOutputText):
                path = f"$.output[{output_index}].content[{content_index}].text"
                parsed = _decode(part.text, into, path)
                texts.append(
                    ParsedText(output_index=output_index, content_index=content_index, parsed=parsed)
                )
    return ParsedResponse(response=response, texts=tuple(texts))


_COMMENTARY_PHASE: Final = "commentary"


def _decode(text: str, into: type[T], path: str) -> T:
    target_type: Any = into
    check, make = _reader_of(target_type)
    report = Report()
    try:
        checked_value = check(load_json(text), "$", report)
        violation = next((each for each in report.violations if not each.is_advice), None)
        if violation is None:
            value: T = make(checked_value, into)
            return value
        problem, inner_path = violation.message, violation.path.removeprefix("$")
    except FramingError as error:
        problem, inner_path = error.cause, ""
    except Exception as error:
        first_problem = problems_in(error)[0]
        # The message of a class that refuses its fields may quote them.
        problem = (
            f"refused ({type(first_problem.cause).__name__})"
            if isinstance(first_problem, Refused)
            else str(first_problem)
        )
        inner_path = first_problem.at
    # Raised out here, the error does not carry along its context, which holds content.
    raise ResponsesParseError(problem, path=path + inner_path)


@functools.lru_cache
def _reader_of(into: Any) -> tuple[Check, Callable[[Any, Any], Any]]:
    """The check of decoded JSON for the type *into*, and the hook that makes a value of it."""
    schema, _ = schema_of(into, forbid_unknown=True, with_rules=True)
    return compile_schema(schema), answer_converter().get_structure_hook(into)
