"""The parameters of a function as an attrs class, so that what reads a class reads a call's arguments."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from typing import Any, Final

import attrs
import orjson

from crosswalk.agent.docstring import read_docstring
from crosswalk.agent.errors import ToolDefinitionError
from crosswalk.structured import Schema, SchemaDefinitionError

__all__ = ["arguments_schema"]

_TAKEN: Final = frozenset({"self", "NOTHING"})
"""Names that the constructor of an attrs class uses itself."""


def arguments_schema(function: Callable[..., Any], name: str) -> Schema[Any]:
    """What the arguments of *function* have to be: each parameter's name, type, default and description.

    Args:
        function: a function, a bound method, or an object that can be called.
        name: the tool's name, for messages.

    Raises:
        ToolDefinitionError: a parameter has no annotation, or one that no JSON can stand for, or cannot be
            given by name.
    """
    fields: dict[str, Any] = {}
    types, annotated = _type_hints(function, name)
    _, documented = read_docstring(function)
    for parameter in _parameters(function, name):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise _unfit(name, parameter, "cannot be given by name")
        if parameter.name in _TAKEN or parameter.name.startswith("__"):
            raise _unfit(name, parameter, "cannot be named so")
        if parameter.name not in types:
            raise _unfit(name, parameter, "needs a type annotation")
        said = [text for text in _metadata(annotated[parameter.name]) if isinstance(text, str)]
        description = said[0] if said else documented.get(parameter.name)
        default: Any = attrs.NOTHING
        if parameter.default is not parameter.empty:
            # By a factory, so that _default_word alone tells the schema about it.
            default = attrs.Factory(functools.partial(_same, parameter.default))
        fields[parameter.name] = attrs.field(
            type=types[parameter.name],
            kw_only=True,
            alias=parameter.name,
            metadata={
                **({"description": description} if description else {}),
                "json_schema": _default_word(parameter.default),
            },
            default=default,
        )
    try:
        return Schema(attrs.make_class("Arguments", fields), forbid_unknown=True)
    except SchemaDefinitionError as error:
        raise ToolDefinitionError(f"tool {name!r}: {error}", tool=name) from error


def _unfit(name: str, parameter: inspect.Parameter, cause: str) -> ToolDefinitionError:
    text = f"tool {name!r}: parameter {parameter.name!r} {cause}"
    return ToolDefinitionError(text, tool=name, parameter=parameter.name)


def _parameters(function: Callable[..., Any], name: str) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise ToolDefinitionError(f"tool {name!r}: it has no signature ({error})", tool=name) from None


def _type_hints(function: Callable[..., Any], name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The types of the parameters, and the same with what ``Annotated`` says about them."""
    if isinstance(function, functools.partial):
        function = function.func
    elif not inspect.isroutine(function):
        function = type(function).__call__
    try:
        return typing.get_type_hints(function), typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        cause = f"an annotation cannot be resolved ({error})"
        raise ToolDefinitionError(f"tool {name!r}: {cause}", tool=name) from None


def _metadata(hint: Any) -> tuple[Any, ...]:
    return hint.__metadata__ if typing.get_origin(hint) is typing.Annotated else ()


def _same(value: Any) -> Any:
    return value


def _default_word(default: object) -> dict[str, Any]:
    """The default as the JSON Schema tells it; nothing where JSON cannot. ``null`` goes without saying."""
    try:
        word = None if default is inspect.Parameter.empty else orjson.loads(orjson.dumps(default))
    except (TypeError, RecursionError):
        return {}
    return {} if word is None else {"default": word}
