"""The format of an answer's text, and the options of reasoning."""

from typing import ClassVar, Literal, TypeAlias

from crosswalk.responses.records import Record, Unknown, record
from crosswalk.types.json import FrozenObject


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
        description: its purpose.
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
    """A format of an unregistered type."""

    family: ClassVar[str] = "text format"
    type: str | None = None


ResponseFormatTextConfig: TypeAlias = (
    ResponseFormatText | ResponseFormatTextJSONSchemaConfig | ResponseFormatJSONObject | UnknownTextFormat
)
"""The format of an answer's text."""


@record
class ResponseTextConfig(Record):
    """How the answer is written.

    Attributes:
        format: its format.
        verbosity: its length: ``low``, ``medium``, ``high``.
    """

    format: ResponseFormatTextConfig | None = None
    verbosity: str | None = None


@record
class Reasoning(Record):
    """The options of reasoning.

    Attributes:
        effort: the amount: ``none``, ``minimal``, ``low``, ``medium``, ``high``, ``xhigh``, ``max``.
        summary: the form of the summary: ``auto``, ``concise``, ``detailed``.
        generate_summary: the former name of ``summary``.
        context: the earlier reasoning that the model gets: ``auto``, ``current_turn``, ``all_turns``.
        mode: ``standard`` or ``pro``.
    """

    effort: str | None = None
    summary: str | None = None
    generate_summary: str | None = None
    context: str | None = None
    mode: str | None = None
