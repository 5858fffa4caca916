"""What the text of an answer looks like, and how the model thinks."""

from typing import ClassVar, Literal, TypeAlias

from crosswalk.responses.records import Record, Unknown, record
from crosswalk.types.json import FrozenObject

__all__ = [
    "Reasoning",
    "ResponseFormatJSONObject",
    "ResponseFormatText",
    "ResponseFormatTextConfig",
    "ResponseFormatTextJSONSchemaConfig",
    "ResponseTextConfig",
    "UnknownTextFormat",
]


@record
class ResponseFormatText(Record):
    """Free text."""

    type: Literal["text"] = "text"


@record
class ResponseFormatTextJSONSchemaConfig(Record):
    """JSON that matches a schema.

    Attributes:
        name: names the schema.
        schema: the JSON Schema.
        description: what it is for.
        strict: whether the answer must match it.
    """

    type: Literal["json_schema"] = "json_schema"
    name: str | None = None
    schema: FrozenObject
    description: str | None = None
    strict: bool | None = None


@record
class ResponseFormatJSONObject(Record):
    """Any JSON object."""

    type: Literal["json_object"] = "json_object"


@record
class UnknownTextFormat(Unknown, Record):
    """A format of a type that nobody registered."""

    family: ClassVar[str] = "text format"
    type: str | None = None


ResponseFormatTextConfig: TypeAlias = (
    ResponseFormatText | ResponseFormatTextJSONSchemaConfig | ResponseFormatJSONObject | UnknownTextFormat
)
"""What the text of an answer looks like."""


@record
class ResponseTextConfig(Record):
    """How the answer is written.

    Attributes:
        format: what it looks like.
        verbosity: how long it is: ``low``, ``medium``, ``high``.
    """

    format: ResponseFormatTextConfig | None = None
    verbosity: str | None = None


@record
class Reasoning(Record):
    """How the model thinks.

    Attributes:
        effort: how long: ``none``, ``minimal``, ``low``, ``medium``, ``high``, ``xhigh``, ``max``.
        summary: how it tells: ``auto``, ``concise``, ``detailed``.
        generate_summary: the former name of ``summary``.
        context: which earlier reasoning it sees: ``auto``, ``current_turn``, ``all_turns``.
        mode: ``standard`` or ``pro``.
    """

    effort: str | None = None
    summary: str | None = None
    generate_summary: str | None = None
    context: str | None = None
    mode: str | None = None
