"""Tools that the caller's program runs."""

from typing import ClassVar, Literal, TypeAlias

import attrs

from crosswalk.responses.records import Record, Unknown, record
from crosswalk.types.json import FrozenObject


@record
class UnknownTool(Unknown, Record):
    """A tool of an unregistered type."""

    family: ClassVar[str] = "tool"
    type: str | None = None


@record
class FunctionTool(Record):
    """A function of the caller's program.

    Attributes:
        name: its name.
        description: its purpose, for the model.
        parameters: the JSON Schema of its arguments.
        strict: whether arguments must match the schema.
        output_schema: the JSON Schema of its result.
        defer_loading: whether the model learns of it only through a tool search.
        async_: whether its result may come later.
        allowed_callers: ``direct``, ``programmatic`` or both.
    """

    type: Literal["function"] = "function"
    name: str
    description: str | None = None
    parameters: FrozenObject | None = None
    strict: bool | None = None
    output_schema: FrozenObject | None = None
    defer_loading: bool | None = None
    async_: bool | None = attrs.field(default=None, metadata={"alias": "async"})
    allowed_callers: tuple[str, ...] | None = None


@record
class TextFormat(Record):
    """Free text as a custom tool's input."""

    type: Literal["text"] = "text"


@record
class GrammarFormat(Record):
    """Text that follows a grammar as a custom tool's input.

    Attributes:
        syntax: ``lark`` or ``regex``.
        definition: the grammar.
    """

    type: Literal["grammar"] = "grammar"
    syntax: str
    definition: str


@record
class UnknownFormat(Unknown, Record):
    """An unregistered format of a custom tool's input."""

    family: ClassVar[str] = "input format"
    type: str | None = None


CustomToolFormat: TypeAlias = TextFormat | GrammarFormat | UnknownFormat
"""The format of a custom tool's input."""


@record
class CustomTool(Record):
    """A tool of the caller's program that takes text instead of JSON, see :class:`FunctionTool`.

    Attributes:
        format: the format of the text, by default free text.
    """

    type: Literal["custom"] = "custom"
    name: str
    description: str | None = None
    format: CustomToolFormat | None = None
    defer_loading: bool | None = None
    async_: bool | None = attrs.field(default=None, metadata={"alias": "async"})
    allowed_callers: tuple[str, ...] | None = None


@record
class NamespaceTool(Record):
    """A named group of tools.

    Attributes:
        name: its name.
        description: their common purpose, for the model.
        tools: functions and custom tools.
    """

    type: Literal["namespace"] = "namespace"
    name: str
    description: str
    tools: tuple[FunctionTool | CustomTool | UnknownTool, ...]
