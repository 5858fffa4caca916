"""Tools that a model may call, made from typed Python functions."""

from __future__ import annotations

import functools
import inspect
import re
import textwrap
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Generic, TypeVar, overload

import attrs
import orjson

from crosswalk.agent.results import ToolError
from crosswalk.config import TIME_LIMIT_OR_NONE
from crosswalk.errors import ConfigurationError, CrosswalkError, ToolCallArgumentsError
from crosswalk.request import ToolDefinition
from crosswalk.schemas.json_schema import type_hints
from crosswalk.schemas.metadata import description_of, refuse_field_as_default
from crosswalk.structured import Schema, SchemaDefinitionError
from crosswalk.structured.repair import loads
from crosswalk.text import brief, short_repr
from crosswalk.types.json import FrozenObject, as_frozen_object
from crosswalk.types.message import ToolCall
from crosswalk.types.values import checks_keywords

# ------------------------------------------------------------------------------- signature
# The schema of a tool's arguments, and its context, from the signature and the docstring of its function.


D = TypeVar("D", covariant=True)

_RESERVED_NAMES: Final = frozenset({"self", "NOTHING"})
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
    context_parameters = [(key, hint) for key, hint in hints.items() if key != "return" and _is_context(hint)]
    if len(context_parameters) > 1:
        cause = (
            f"two parameters take the context: {context_parameters[0][0]!r} and {context_parameters[1][0]!r}"
        )
        raise ToolDefinitionError(f"tool {name!r}: {cause}", tool=name, parameter=context_parameters[1][0])
    return (
        (context_parameters[0][0], next(iter(typing.get_args(context_parameters[0][1])), Any))
        if context_parameters
        else None
    )


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
    types, annotated_types = _type_hints(function, name)
    _, descriptions = read_docstring(function)
    try:
        for parameter in _parameters(function, name):
            _check_parameter(parameter, types, name)
            if not _is_context(types[parameter.name]):
                fields[parameter.name] = _field(parameter, annotated_types[parameter.name], descriptions)
        return Schema(attrs.make_class("Arguments", fields), forbid_unknown=True)
    except SchemaDefinitionError as error:
        raise ToolDefinitionError(f"tool {name!r}: {error}", tool=name) from error


def _check_parameter(parameter: inspect.Parameter, types: dict[str, Any], name: str) -> None:
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise _parameter_error(name, parameter, "cannot be passed by name")
    if parameter.name in _RESERVED_NAMES or parameter.name.startswith("__"):
        raise _parameter_error(name, parameter, "has a reserved name")
    if parameter.name not in types:
        raise _parameter_error(name, parameter, "needs a type annotation")


def _field(parameter: inspect.Parameter, hint: Any, descriptions: dict[str, str]) -> Any:
    """Return the field for *parameter*. The text of its ``Annotated`` counts before that of the docstring."""
    refuse_field_as_default(parameter.default, parameter.name)
    is_annotated = typing.get_origin(hint) is typing.Annotated
    annotated_description = description_of(hint.__metadata__) if is_annotated else None
    description = annotated_description or descriptions.get(parameter.name)
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
        hints = type_hints(function)
    except (NameError, TypeError) as error:
        cause = f"an annotation cannot be resolved ({error})"
        raise ToolDefinitionError(f"tool {name!r}: {cause}", tool=name) from None
    bare_types = {
        key: typing.get_args(hint)[0]
        for key, hint in hints.items()
        if typing.get_origin(hint) is typing.Annotated
    }
    return hints | bare_types, hints


def _same(value: Any) -> Any:
    return value


def _schema_default(default: object) -> dict[str, Any]:
    """Return the ``default`` of the JSON Schema, or ``{}`` if JSON cannot represent it or it is ``null``."""
    try:
        default_json = None if default is inspect.Parameter.empty else orjson.loads(orjson.dumps(default))
    except (TypeError, RecursionError):
        return {}
    return {} if default_json is None else {"default": default_json}


_PARAMETER_HEADINGS: Final = frozenset({"args", "arguments", "parameters", "params", "attributes"})
_OTHER_HEADINGS: Final = frozenset(
    {"returns", "return", "yields", "raises", "example", "examples", "note", "notes"}
)

_UNDERLINE: Final = re.compile(r"-{3,}\s*")


# Sphinx: ``:param city: text``, ``:param str city: text``, ``:returns: text``.
_SPHINX_FIELD: Final = re.compile(r":(\w+)(?:[^:\n]*?(\w+))?\s*:\s*(.*)")


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
    parameter_sections: list[
        tuple[list[str], bool]
    ] = []  # sections of parameters, and whether they are numpy's
    lines = (inspect.getdoc(documented) or "").splitlines()
    for line, next_line in zip(lines, [*lines[1:], ""], strict=False):
        field_match = _SPHINX_FIELD.fullmatch(line)
        heading = line.rstrip(" :").lower()
        if field_match:
            is_parameter = field_match[1] in {"param", "parameter", "arg", "argument"} and field_match[2]
            section = parameters.setdefault(field_match[2], []) if is_parameter else []
            section.append(field_match[3])
        elif heading in _PARAMETER_HEADINGS | _OTHER_HEADINGS and (
            line.endswith(":") or _UNDERLINE.fullmatch(next_line)
        ):
            section, is_numpy = [], not line.endswith(":")
            if heading in _PARAMETER_HEADINGS:
                parameter_sections.append((section, is_numpy))
        elif not (is_numpy and _UNDERLINE.fullmatch(line)):
            section.append(line)
    for lines_of_section, is_numpy in parameter_sections:
        _read_entries(textwrap.dedent("\n".join(lines_of_section)), is_numpy, parameters)
    return _joined(description), {name: _joined(texts) for name, texts in parameters.items()}


def _read_entries(section: str, is_numpy: bool, parameters: dict[str, list[str]]) -> None:
    """Add the entries of *section* to *parameters*. An entry starts a line, and its continuation is indented."""
    current_lines: list[str] = []
    for line in section.splitlines():
        entry = (_NUMPY_ENTRY if is_numpy else _GOOGLE_ENTRY).fullmatch(line)
        if entry:
            current_lines = parameters.setdefault(entry[1], [])
        current_lines.append(entry[2] if entry else line)


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


# ----------------------------------------------------------------------------------- tools
# Tools that a model may call, made from typed Python functions.


_NAME_PATTERN: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@brief
@attrs.frozen(repr=False, eq=False)
class Tool:
    """A function that a model may call.

    Make one with :meth:`from_function` or the decorator :func:`tool`. You can call it like the function.

    Attributes:
        name: the name for the model: 1 to 64 letters, digits, ``_`` and ``-``.
        description: the description for the model.
        schema: the schema of its arguments. A ``Schema`` reads and checks them. A JSON Schema is only sent to the model,
            and the function checks its arguments.
        function: the function, run in its own thread unless it is asynchronous.
        is_final: whether its output is the final answer of an agent's run.
        timeout: how many seconds a call may take, or ``None`` for the runner's limit.
        needs_approval: whether each call must be approved before it runs. See ``approve`` of an ``Agent``.
        is_external: whether it runs elsewhere, such as in a browser. A call waits for its result.
        context: the name of the parameter that takes the :class:`ToolContext`, and the type of its ``deps``, or ``None``.

    Raises:
        ToolDefinitionError: *timeout* is not a valid time limit.
    """

    name: str
    description: str
    schema: Schema[Any] | FrozenObject
    function: Callable[..., Any]
    is_final: bool = False
    timeout: float | None = None
    needs_approval: bool = False
    is_external: bool = False
    context: tuple[str, Any] | None = None

    def __attrs_post_init__(self) -> None:
        if not TIME_LIMIT_OR_NONE.fits(self.timeout):
            raise ToolDefinitionError(
                f"tool {self.name[:80]!r}: timeout must be {TIME_LIMIT_OR_NONE.words}", tool=self.name
            )

    @classmethod
    @checks_keywords()
    def from_function(
        cls,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        is_final: bool = False,
        timeout: float | None = None,
        needs_approval: bool = False,
    ) -> Tool:
        """Make a tool that runs *function*.

        The schema comes from the signature, the annotations and the docstring. A parameter without a default is required.
        ``Annotated[T, "text"]`` or the docstring describes it. A parameter annotated with :class:`ToolContext` gets the
        context of the call.

        Args:
            function: a function with annotations on all parameters. It may use the types of a field of an answer, see
                :class:`crosswalk.structured.Schema`, a dataclass, typed dict, named tuple, pydantic model, set, sequence,
                ``UUID`` or ``Decimal``.
            name: the name, or ``None`` for the function's own.
            description: the description, or ``None`` for the docstring without its parameters.
            is_final: whether its output ends an agent's run.
            timeout: how many seconds a call may take, or ``None`` for the runner's limit.
            needs_approval: whether each call must be approved before it runs.

        Raises:
            ToolDefinitionError: a parameter cannot be described to a model, or the name is invalid.
        """
        name = name or str(getattr(function, "__name__", type(function).__name__))
        if not _NAME_PATTERN.fullmatch(name):
            raise ToolDefinitionError(
                f"tool {name[:80]!r}: a name has 1 to 64 letters, digits, _ and -", tool=name
            )
        return cls(
            name=name,
            description=read_docstring(function)[0] if description is None else description,
            schema=arguments_schema(function, name),
            function=function,
            is_final=is_final,
            timeout=timeout,
            needs_approval=needs_approval,
            context=context_parameter(function, name),
        )

    @classmethod
    def external(cls, name: str, description: str, parameters: Mapping[str, Any]) -> Tool:
        """Make a tool that runs elsewhere, such as in the user's browser.

        A run that calls it ends as ``waiting``. Pass its result to ``Agent.answer(session=..., results={call_id: value})``.

        Args:
            name: the name for the model.
            description: the description for the model.
            parameters: the JSON Schema of its arguments.

        Raises:
            ToolDefinitionError: the name is invalid.
        """
        if not _NAME_PATTERN.fullmatch(name):
            raise ToolDefinitionError(
                f"tool {name[:80]!r}: a name has 1 to 64 letters, digits, _ and -", tool=name
            )
        return cls(name, description, as_frozen_object(parameters), _run_elsewhere, is_external=True)

    @property
    def definition(self) -> ToolDefinition:
        """The definition that a request sends to the model."""
        return ToolDefinition(self.name, self.description or None, self.parameters)

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON Schema of its arguments, a new dict each time."""
        schema = self.schema.json_schema() if isinstance(self.schema, Schema) else self.schema.thawed()
        # Some providers refuse "$schema", and none needs "title".
        return {key: value for key, value in schema.items() if key not in ("$schema", "title")}

    def read_arguments(self, call: ToolCall) -> dict[str, Any]:
        """Return the arguments of *call* for the function. Nothing is coerced.

        Raises:
            ToolCallArgumentsError: the arguments are not a JSON object, or do not fit the parameters. It names each problem.
        """
        arguments = call.parsed()
        if not isinstance(self.schema, Schema):
            return arguments
        if self.schema.has_decimal and type(exact_arguments := loads(call.arguments, is_exact=True)) is dict:
            arguments = exact_arguments
        value, violations = self.schema.read(arguments)[:2]
        if violations:
            text = f"invalid arguments: {'; '.join(map(str, violations))}"
            raise ToolCallArgumentsError(text, name=call.name, call_id=call.id)
        return {field.name: getattr(value, field.name) for field in attrs.fields(self.schema.cls)}

    def check_deps(self, deps: object) -> None:
        """Check that *deps* has the type that the tool's context names. A type that has no instances is not checked.

        Raises:
            ConfigurationError: it has another type.
        """
        expected_type = Any if self.context is None else self.context[1]
        try:
            is_instance = expected_type is Any or isinstance(deps, expected_type)
        except TypeError:  # such as a protocol or a generic alias
            return
        if not is_instance:
            type_name = getattr(expected_type, "__name__", expected_type)
            text = f"tool {self.name!r} needs deps= of type {type_name}, not {type(deps).__name__}"
            raise ConfigurationError(text, key="deps")

    def with_context(self, arguments: dict[str, Any], deps: object, call: ToolCall) -> dict[str, Any]:
        """Return *arguments* with the context of *call*, if the tool takes it."""
        return arguments if self.context is None else {**arguments, self.context[0]: ToolContext(deps, call)}

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the function directly."""
        return self.function(*arguments, **named)

    __repr__ = short_repr("name", "description")


def _run_elsewhere(**_: Any) -> Any:
    raise ToolError("the tool runs elsewhere")


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    is_final: bool = False,
    timeout: float | None = None,
    needs_approval: bool = False,
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None, /, **options: Any
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool from the decorated function: ``@tool``, or with the options of :meth:`Tool.from_function`.

    Raises:
        ToolDefinitionError: the function cannot be a tool.
    """
    if function is not None:
        return Tool.from_function(function, **options)
    return lambda function: Tool.from_function(function, **options)


@tool(is_final=True)
def final_answer(answer: str) -> str:
    """Give the final answer to the user. Call this once, when nothing more needs to be found out.

    Args:
        answer: the complete answer.
    """
    return answer


class ToolRegistry(Mapping[str, Tool]):
    """Tools by name, in the order in which they were added.

    Args:
        tools: tools, or functions to make tools from.

    Raises:
        ToolDefinitionError: two tools have the same name, or a function cannot be a tool.
        ConfigurationError: *tools* is not iterable.
    """

    def __init__(self, tools: Iterable[Tool | Callable[..., Any]] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        iterable: object = tools
        if not isinstance(iterable, Iterable):
            raise ConfigurationError(f"tools must be a list, not {type(iterable).__name__}", key="tools")
        for one in tools:
            self.add(one)

    def add(self, one: Tool | Callable[..., Any]) -> Tool:
        """Add a tool, or a tool made from a function, and return it.

        Raises:
            ToolDefinitionError: there is already a tool with that name, or the function cannot be a tool.
        """
        if not isinstance(one, Tool) and not callable(one):
            raise ToolDefinitionError(
                f"tools must be functions or Tools, which an agent can run, not {type(one).__name__}; "
                "a definition that is only sent to the model goes into ChatConfig(tools=…)",
                tool=type(one).__name__,
            )
        new_tool = one if isinstance(one, Tool) else Tool.from_function(one)
        if new_tool.name in self._tools:
            raise ToolDefinitionError(f"there are two tools {new_tool.name!r}", tool=new_tool.name)
        self._tools[new_tool.name] = new_tool
        return new_tool

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def __repr__(self) -> str:
        return f"ToolRegistry({', '.join(self._tools)})"
