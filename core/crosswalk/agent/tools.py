"""Tools: what a model may ask for, made from typed Python functions."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, overload

import attrs

from crosswalk.agent.results import ToolError
from crosswalk.agent.signature import ToolDefinitionError, arguments_schema, read_docstring
from crosswalk.errors import ConfigurationError, ToolCallArgumentsError
from crosswalk.service.request import ToolDefinition
from crosswalk.structured import Schema
from crosswalk.text import brief, short_repr
from crosswalk.types.json import FrozenObject, as_frozen_object
from crosswalk.types.tools import ToolCall

__all__ = ["Tool", "ToolRegistry", "final_answer", "tool"]

_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def is_limit(seconds: object) -> bool:
    """Whether *seconds* are a time limit: a number above 0, or ``None`` for none."""
    return seconds is None or (
        isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 < seconds < math.inf
    )


@brief
@attrs.frozen(repr=False, eq=False)
class Tool:
    """A function that a model may call.

    Make one with :meth:`from_function` or with the decorator :func:`tool`. It can be called as the function.

    Attributes:
        name: what the model calls it: letters, digits, ``_`` and ``-``, up to 64.
        description: what the model is told about it.
        schema: what its arguments have to be: read and checked by it, or a JSON Schema that is told to the model, where the
            function checks what it gets.
        function: what is run, in a thread of its own unless it is asynchronous.
        is_final: whether its output is the answer of an agent's run, which it ends.
        timeout: how many seconds a call may take; ``None`` for what the runner allows.
        needs_approval: whether somebody has to approve of each call before it runs; see ``approve`` of an ``Agent``.
        is_external: whether somebody else runs it, such as a browser: a call waits for its result.

    Raises:
        ToolDefinitionError: a time limit that is none.
    """

    name: str
    description: str
    schema: Schema[Any] | FrozenObject
    function: Callable[..., Any]
    is_final: bool = False
    timeout: float | None = None
    needs_approval: bool = False
    is_external: bool = False

    def __attrs_post_init__(self) -> None:
        if not is_limit(self.timeout):
            raise ToolDefinitionError(
                f"tool {self.name[:80]!r}: timeout must be seconds above 0, or None", tool=self.name
            )

    @classmethod
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
        """A tool that runs *function*.

        Its schema comes from the signature, the annotations and the docstring: a parameter without a default
        is required, ``Annotated[T, "text"]`` or the docstring describes it.

        Args:
            function: each of its parameters has an annotation: a type that a field of an answer may have, see
                :class:`crosswalk.structured.Schema`, a dataclass, typed dict, named tuple, pydantic model, set, sequence,
                ``UUID`` or ``Decimal``.
            name: ``None`` for the function's own.
            description: ``None`` for what the docstring says, parameters left out.
            is_final: whether its output ends an agent's run.
            timeout: how many seconds a call may take; ``None`` for what the runner allows.
            needs_approval: whether somebody has to approve of each call before it runs.

        Raises:
            ToolDefinitionError: a parameter cannot be described to a model, or the name cannot be used.
        """
        name = name or str(getattr(function, "__name__", type(function).__name__))
        if not _NAME.fullmatch(name):
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
        )

    @classmethod
    def external(cls, name: str, description: str, parameters: Mapping[str, Any]) -> Tool:
        """A tool that somebody else runs, such as the user's browser.

        A run that calls it ends as ``waiting``; give its result by ``Agent.answer(session=..., results={call_id: value})``.

        Args:
            name: what the model calls it.
            description: what the model is told about it.
            parameters: the JSON Schema of its arguments.

        Raises:
            ToolDefinitionError: the name cannot be used.
        """
        if not _NAME.fullmatch(name):
            raise ToolDefinitionError(
                f"tool {name[:80]!r}: a name has 1 to 64 letters, digits, _ and -", tool=name
            )
        return cls(name, description, as_frozen_object(parameters), _run_elsewhere, is_external=True)

    @property
    def definition(self) -> ToolDefinition:
        """What a request tells the model about it."""
        return ToolDefinition(self.name, self.description or None, self.parameters)

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON Schema of its arguments; a new dict each time."""
        schema = self.schema.json_schema() if isinstance(self.schema, Schema) else self.schema.thawed()
        # Words for people who read schemas; some providers refuse the first, none needs the second.
        return {key: value for key, value in schema.items() if key not in ("$schema", "title")}

    def read_arguments(self, call: ToolCall) -> dict[str, Any]:
        """The arguments of *call* as the function takes them; nothing is coerced.

        Raises:
            ToolCallArgumentsError: they are no JSON object, or do not fit the parameters; it says each problem.
        """
        arguments = call.parsed()
        if not isinstance(self.schema, Schema):
            return arguments
        value, violations = self.schema.read(arguments)[:2]
        if violations:
            text = f"invalid arguments: {'; '.join(map(str, violations))}"
            raise ToolCallArgumentsError(text, name=call.name, call_id=call.id)
        return {field.name: getattr(value, field.name) for field in attrs.fields(self.schema.cls)}

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the function, as it is."""
        return self.function(*arguments, **named)

    __repr__ = short_repr("name", "description")


def _run_elsewhere(**_: Any) -> Any:
    raise ToolError("the tool is run elsewhere")


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
    """Make a tool of the function below: ``@tool``, or with the options of :meth:`Tool.from_function`.

    Raises:
        ToolDefinitionError: the function cannot be a tool.
    """
    if function is not None:
        return Tool.from_function(function)
    return lambda function: Tool.from_function(function, **options)


@tool(is_final=True)
def final_answer(answer: str) -> str:
    """Give the final answer to the user. Call this once, when nothing more needs to be found out.

    Args:
        answer: the complete answer.
    """
    return answer


class ToolRegistry(Mapping[str, Tool]):
    """The tools that a model may use, by name, in the order in which they were added.

    Args:
        tools: tools, or functions to make tools of.

    Raises:
        ToolDefinitionError: two have one name, or a function cannot be a tool. ConfigurationError: *tools* is no list.
    """

    def __init__(self, tools: Iterable[Tool | Callable[..., Any]] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        given: object = tools
        if not isinstance(given, Iterable):
            raise ConfigurationError(f"tools must be a list, not {type(given).__name__}", key="tools")
        for one in tools:
            self.add(one)

    def add(self, one: Tool | Callable[..., Any]) -> Tool:
        """Add a tool, or a function to make one of; gives the tool.

        Raises:
            ToolDefinitionError: there is one of that name, or the function cannot be a tool.
        """
        if not isinstance(one, Tool) and not callable(one):
            raise ToolDefinitionError(
                f"tools must be functions or Tools, which an agent can run, not {type(one).__name__}; "
                "what is only told to the model goes into ChatConfig(tools=…)",
                tool=type(one).__name__,
            )
        added = one if isinstance(one, Tool) else Tool.from_function(one)
        if added.name in self._tools:
            raise ToolDefinitionError(f"there are two tools {added.name!r}", tool=added.name)
        self._tools[added.name] = added
        return added

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def __repr__(self) -> str:
        return f"ToolRegistry({', '.join(self._tools)})"
