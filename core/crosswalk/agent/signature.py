"""The schema of a tool's arguments, and its context, from the signature and the docstring of its function."""

from __future__ import annotations

import functools
import inspect
import re
import textwrap
import typing
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

import attrs
import orjson

from crosswalk.errors import CrosswalkError
from crosswalk.schemas.metadata import read_metadata, refuse_field_as_default
from crosswalk.structured import Schema, SchemaDefinitionError
from crosswalk.types.message import ToolCall

D = TypeVar("D", covariant=True)

_RESERVED: Final = frozenset({"self", "NOTHING"})
"""Names that the constructor of an attrs class uses itself."""


@attrs.frozen
class ToolContext(Generic[D]):
    """The context of a tool call, for the tool alone. The model does not see it.

    A tool gets it as the parameter that has this annotation: ``def balance(context: ToolContext[Bank], account: str)``.

    Attributes:
        deps: the ``deps=`` of the run, such as the user, a database or a client.
        call: the call that the model made.
    """

    deps: D
    call: ToolCall


def context_parameter(function: Callable[..., Any], name: str) -> tuple[str, Any] | None:
    """Return the name of the parameter that takes the ``ToolContext`` and the type of its ``deps``, or ``None``.

    Raises:
        ToolDefinitionError: there are two such parameters, or an annotation cannot be resolved.
    """
    hints = _type_hints(function, name)[0]
    results = [(key, hint) for key, hint in hints.items() if key != "return" and _is_context(hint)]
    if len(results) > 1:
        cause = f"two parameters take the context: {results[0][0]!r} and {results[1][0]!r}"
        raise ToolDefinitionError(f"tool {name!r}: {cause}", tool=name, parameter=results[1][0])
    return (results[0][0], next(iter(typing.get_args(results[0][1])), Any)) if results else None


def _is_context(hint: object) -> bool:
    return ToolContext in (hint, typing.get_origin(hint))


def arguments_schema(function: Callable[..., Any], name: str) -> Schema[Any]:
    """Return a schema with each parameter's name, type, default and description, without the ``ToolContext``.

    Args:
        function: a function, a bound method, or a callable object.
        name: the name of the tool, for messages.

    Raises:
        ToolDefinitionError: a parameter has no annotation, its type has no JSON Schema, it has a limit that would not be
            checked, or it cannot be passed by name.
    """
    fields: dict[str, Any] = {}
    types, annotated = _type_hints(function, name)
    _, documented = read_docstring(function)
    try:
        for parameter in _parameters(function, name):
            _check_parameter(parameter, types, name)
            if not _is_context(types[parameter.name]):
                fields[parameter.name] = _field(parameter, annotated[parameter.name], documented)
        return Schema(attrs.make_class("Arguments", fields), forbid_unknown=True)
    except SchemaDefinitionError as error:
        raise ToolDefinitionError(f"tool {name!r}: {error}", tool=name) from error


def _check_parameter(parameter: inspect.Parameter, types: dict[str, Any], name: str) -> None:
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise _parameter_error(name, parameter, "cannot be passed by name")
    if parameter.name in _RESERVED or parameter.name.startswith("__"):
        raise _parameter_error(name, parameter, "has a reserved name")
    if parameter.name not in types:
        raise _parameter_error(name, parameter, "needs a type annotation")


def _field(parameter: inspect.Parameter, hint: Any, documented: dict[str, str]) -> Any:
    """Return the field for *parameter*. The text of its ``Annotated`` counts before that of the docstring."""
    refuse_field_as_default(parameter.default, parameter.name)
    is_annotated = typing.get_origin(hint) is typing.Annotated
    said = read_metadata(hint.__metadata__, parameter.name).description if is_annotated else None
    description = said or documented.get(parameter.name)
    default: Any = attrs.NOTHING
    if parameter.default is not parameter.empty:
        # A factory, so that the schema takes the default from _schema_default alone.
        default = attrs.Factory(functools.partial(_same, parameter.default))
    return attrs.field(
        type=hint,
        kw_only=True,
        alias=parameter.name,
        metadata={
            **({"description": description} if description else {}),
            "json_schema": _schema_default(parameter.default),
        },
        default=default,
    )


def _parameter_error(name: str, parameter: inspect.Parameter, cause: str) -> ToolDefinitionError:
    text = f"tool {name!r}: parameter {parameter.name!r} {cause}"
    return ToolDefinitionError(text, tool=name, parameter=parameter.name)


def _parameters(function: Callable[..., Any], name: str) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise ToolDefinitionError(
            f"tool {name!r}: the function has no signature ({error})", tool=name
        ) from None


def _type_hints(function: Callable[..., Any], name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the types of the parameters, without and with the metadata of ``Annotated``."""
    if isinstance(function, functools.partial):
        function = function.func
    elif not inspect.isroutine(function):
        function = type(function).__call__
    try:
        return typing.get_type_hints(function), typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        cause = f"an annotation cannot be resolved ({error})"
        raise ToolDefinitionError(f"tool {name!r}: {cause}", tool=name) from None


def _same(value: Any) -> Any:
    return value


def _schema_default(default: object) -> dict[str, Any]:
    """Return the ``default`` of the JSON Schema, or ``{}`` if JSON cannot represent it or it is ``null``."""
    try:
        default_json = None if default is inspect.Parameter.empty else orjson.loads(orjson.dumps(default))
    except (TypeError, RecursionError):
        return {}
    return {} if default_json is None else {"default": default_json}


_PARAMETERS: Final = frozenset({"args", "arguments", "parameters", "params", "attributes"})
_OTHERS: Final = frozenset({"returns", "return", "yields", "raises", "example", "examples", "note", "notes"})

_UNDERLINE: Final = re.compile(r"-{3,}\s*")


# Sphinx: ``:param city: text``, ``:param str city: text``, ``:returns: text``.
_FIELD: Final = re.compile(r":(\w+)(?:[^:\n]*?(\w+))?\s*:\s*(.*)")


# ``city: text``, ``city (str): text``.
_GOOGLE_ENTRY: Final = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)\n]*\))?\s*:\s*(.*)")


# ``city`` or ``city : str``, with its text below.
_NUMPY_ENTRY: Final = re.compile(r"\*{0,2}(\w+)\s*(?::.*)?()")


def read_docstring(documented: object) -> tuple[str, dict[str, str]]:
    """Return the description in the docstring of *documented*, and the description of each parameter.

    Google, NumPy and Sphinx styles are read. Other sections (returns, raises, examples) address people, not a model,
    and are left out.
    """
    description: list[str] = []
    parameters: dict[str, list[str]] = {}
    section, is_numpy = description, False
    entries: list[tuple[list[str], bool]] = []  # sections of parameters, and whether they are numpy's
    lines = (inspect.getdoc(documented) or "").splitlines()
    for line, below in zip(lines, [*lines[1:], ""], strict=False):
        field = _FIELD.fullmatch(line)
        default_json = line.rstrip(" :").lower()
        if field:
            is_parameter = field[1] in {"param", "parameter", "arg", "argument"} and field[2]
            section = parameters.setdefault(field[2], []) if is_parameter else []
            section.append(field[3])
        elif default_json in _PARAMETERS | _OTHERS and (line.endswith(":") or _UNDERLINE.fullmatch(below)):
            section, is_numpy = [], not line.endswith(":")
            if default_json in _PARAMETERS:
                entries.append((section, is_numpy))
        elif not (is_numpy and _UNDERLINE.fullmatch(line)):
            section.append(line)
    for lines_of_section, is_numpy in entries:
        _read_entries(textwrap.dedent("\n".join(lines_of_section)), is_numpy, parameters)
    return _joined(description), {name: _joined(texts) for name, texts in parameters.items()}


def _read_entries(section: str, is_numpy: bool, parameters: dict[str, list[str]]) -> None:
    """Add the entries of *section* to *parameters*. An entry starts a line, and its continuation is indented."""
    current: list[str] = []
    for line in section.splitlines():
        entry = (_NUMPY_ENTRY if is_numpy else _GOOGLE_ENTRY).fullmatch(line)
        if entry:
            current = parameters.setdefault(entry[1], [])
        current.append(entry[2] if entry else line)


def _joined(lines: list[str]) -> str:
    """Return the paragraphs of *lines*, each on one line."""
    paragraphs = re.split(r"\n\s*\n", "\n".join(lines).strip())
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


class ToolDefinitionError(CrosswalkError, TypeError):
    """The signature of a function cannot be described to a model, or two tools have the same name.

    Attributes:
        tool: the name of the tool.
        parameter: the parameter at fault, or ``None`` if the error is not about one.
    """

    def __init__(self, message: str, *, tool: str, parameter: str | None = None) -> None:
        super().__init__(message)
        self.tool = tool
        self.parameter = parameter
