"""Tools that a model may call: those of the application, and those that providers run themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Final

import attrs

from crosswalk.errors import ResponseValidationError
from crosswalk.keywords import checks_keywords
from crosswalk.service.given import as_tuple, choice_name, need_bool, need_name, number, tool_fields
from crosswalk.text import brief, json_type_name, short_repr
from crosswalk.types.json import FrozenObject, as_frozen_object
from crosswalk.types.message import CallKind, as_call_kind
from crosswalk.types.values import one_of


class ToolChoice(StrEnum):
    """Whether the model may call tools (OpenAI's words)."""

    AUTO = "auto"
    """The model may call tools."""
    NONE = "none"
    """The model must not call tools."""
    REQUIRED = "required"
    """The model must call at least one tool."""


def _need_text(_: Any, attribute: attrs.Attribute[Any], value: object) -> None:
    if value is not None and not isinstance(value, str):
        raise ResponseValidationError(f"{attribute.name} must be text, not {json_type_name(value)}")


_FREE_TEXT: Final = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
    "additionalProperties": False,
}


@checks_keywords()
@brief
@attrs.frozen(repr=False)
class ToolDefinition:
    """A tool that the model may call.

    Attributes:
        name: the name that the model calls.
        description: the purpose of the tool and when to use it, for the model, or ``None`` for no description.
        parameters: the JSON Schema of its arguments, or an object without properties by default.
        strict: whether arguments must follow the schema exactly. ``None`` leaves that to the provider.
        kind: ``custom`` for a tool that takes free text, which most providers get as a function with one string ``input``,
            or ``None`` for a function.
        input_format: the format of the free text in the form of the Responses API, or ``None`` for any text.

    Raises:
        ResponseValidationError: an empty name, parameters that are not a JSON object, or a field of another type.
    """

    name: str = attrs.field(validator=need_name)
    description: str | None = attrs.field(default=None, validator=_need_text)
    parameters: FrozenObject = attrs.field(
        default=FrozenObject.adopt({"type": "object", "properties": {}}), converter=as_frozen_object
    )
    strict: bool | None = attrs.field(default=None, validator=attrs.validators.optional(need_bool))
    kind: CallKind | None = attrs.field(default=None, converter=as_call_kind)
    input_format: FrozenObject | None = attrs.field(
        default=None, converter=attrs.converters.optional(as_frozen_object)
    )

    __repr__ = short_repr("name", "description", "parameters")

    @property
    def is_custom(self) -> bool:
        """Whether the tool takes free text."""
        return self.kind is CallKind.CUSTOM

    def as_function(self) -> ToolDefinition:
        """Return the function that stands for a custom tool. Its description tells the format of the input in words."""
        if not self.is_custom:
            return self
        format: Mapping[str, Any] = self.input_format or {}
        about = [self.description] if self.description else []
        if format.get("type") == "grammar":
            syntax, grammar = format.get("syntax"), format.get("definition")
            about.append(f"The input must match this grammar ({syntax}):\n{grammar}")
        return ToolDefinition(self.name, "\n\n".join(about) or None, _FREE_TEXT)


@attrs.frozen
class NamedTool:
    """A ``tool_choice``: the model must call the tool of this name.

    Raises:
        ResponseValidationError: an empty name.
    """

    name: str = attrs.field(validator=need_name)


class HostedToolKind(StrEnum):
    """A tool that several providers run themselves."""

    WEB_SEARCH = "web_search"
    """Searches the web."""
    WEB_FETCH = "web_fetch"
    """Reads pages by the addresses in the conversation."""
    CODE_EXECUTION = "code_execution"
    """Runs code that the model writes."""


def _as_kind(value: str) -> HostedToolKind:
    return one_of(
        HostedToolKind, value, "unknown hosted tool; one of a single provider goes into provider_options"
    )


def _as_domains(value: Iterable[str]) -> tuple[str, ...]:
    domains = () if isinstance(value, str) else as_tuple("domains", value)
    if not all(type(domain) is str and domain for domain in domains) or isinstance(value, str):
        raise ResponseValidationError("domains must be a list of names, such as example.org")
    return domains


@attrs.frozen
class HostedTool:
    """A tool that the provider runs, so that the application does not answer its calls.

    Attributes:
        kind: the tool.
        allowed_domains: the only domains that it may look at, or empty for all.
        blocked_domains: the domains that it must not look at.
        max_uses: the most uses in one answer, or ``None`` for the provider's own limit.

    Raises:
        ResponseValidationError: an unknown kind, domains that are not a list of names, or a limit below 1.
    """

    kind: HostedToolKind = attrs.field(converter=_as_kind)
    allowed_domains: tuple[str, ...] = attrs.field(default=(), kw_only=True, converter=_as_domains)
    blocked_domains: tuple[str, ...] = attrs.field(default=(), kw_only=True, converter=_as_domains)
    max_uses: int | None = attrs.field(default=None, kw_only=True)

    def __attrs_post_init__(self) -> None:
        number(1, whole=True)(self, attrs.fields(HostedTool).max_uses, self.max_uses)


def as_definition(value: ToolDefinition | Mapping[str, Any], place: str = "tools") -> ToolDefinition:
    """Convert *value*, found at *place*, to the definition of a tool.

    Raises:
        ResponseValidationError: it does not define a tool.
    """
    return value if isinstance(value, ToolDefinition) else ToolDefinition(**tool_fields(value, place))


def as_tools(value: Iterable[ToolDefinition | Mapping[str, Any]]) -> tuple[ToolDefinition, ...]:
    """Convert *value* to definitions of tools.

    Raises:
        ResponseValidationError: an item does not define a tool, or two have one name.
    """
    tools = tuple(
        as_definition(tool, f"tools[{number}]") for number, tool in enumerate(as_tuple("tools", value))
    )
    names = [tool.name for tool in tools]
    if len(set(names)) != len(names):
        raise ResponseValidationError("two tools have the same name")
    return tools


def as_hosted_tools(value: Iterable[HostedTool | str]) -> tuple[HostedTool, ...]:
    """Convert *value* to hosted tools. A kind alone is accepted as a tool.

    Raises:
        ResponseValidationError: an item is not a hosted tool, or two are of the same kind.
    """
    given = (value,) if isinstance(value, str) else as_tuple("hosted_tools", value)
    tools = tuple(tool if isinstance(tool, HostedTool) else HostedTool(tool) for tool in given)
    if len({tool.kind for tool in tools}) != len(tools):
        raise ResponseValidationError("two hosted tools are of the same kind")
    return tools


def as_tool_choice(value: str | NamedTool | Mapping[str, Any] | None) -> ToolChoice | NamedTool | None:
    """Convert *value* to a tool choice. OpenAI's form is accepted.

    Raises:
        ResponseValidationError: it is not a tool choice.
    """
    if value is None or isinstance(value, NamedTool):
        return value
    if isinstance(value, Mapping):
        return NamedTool(choice_name(value))
    return one_of(ToolChoice, value, "unknown tool choice; for a tool's name write NamedTool(name)")
