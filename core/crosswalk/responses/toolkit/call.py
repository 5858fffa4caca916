"""The one interface of all tool calls, and the statuses that a call goes through."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Final, Generic, Self, TypeVar

import attrs

from crosswalk.errors import ToolCallArgumentsError
from crosswalk.responses.chunks import Chunk
from crosswalk.responses.errors import ResponsesError
from crosswalk.responses.families import keys_of, tags_of
from crosswalk.responses.item import Item
from crosswalk.responses.reading import parse, to_json
from crosswalk.responses.records import Record
from crosswalk.text import brief, clean_message, short_repr
from crosswalk.types.message import ToolCall


class ToolCallError(ResponsesError, ValueError):
    """A tool call that is not of the tool asked for, that lacks what the other form needs, or of no registered tool.

    Attributes:
        tool: the tool, as the ``type`` of its items, or ``None`` when it is not known.
        call_id: the call, shortened, or ``None`` when it has no id.
    """

    def __init__(self, problem: str, *, tool: str | None = None, call_id: str | None = None) -> None:
        self.tool = tool
        self.call_id = None if call_id is None else clean_message(call_id, 60)
        where = " ".join(part for part in (tool, self.call_id and repr(self.call_id)) if part)
        super().__init__(f"{where}: {problem}" if where else problem)


class StatusProgressionError(ResponsesError, ValueError):
    """A call's status that cannot follow the one before.

    Attributes:
        tool: the tool, as the ``type`` of its items.
        before: the status it had, or ``None`` when it had none.
        after: the status it should have had next, shortened.
        call_id: the call, shortened, or ``None`` when it has no id.
    """

    def __init__(self, *, tool: str, before: str | None, after: str, call_id: str | None = None) -> None:
        self.tool = tool
        self.before = before
        self.after = clean_message(after, 40)
        self.call_id = None if call_id is None else clean_message(call_id, 60)
        name = tool if self.call_id is None else f"{tool} {self.call_id!r}"
        problem = f"cannot follow {before!r}" if before is not None else "is no status of this tool"
        super().__init__(f"{name}: {self.after!r} {problem}")


@attrs.frozen
class StatusProgression:
    """The steps that a tool's status takes.

    A call goes along the *path*, one step at a time, and from its last step to the *end*. It may break off at any
    step: a response that is cancelled or full ends calls that have hardly begun. A final status
    does not change. Repeating the same status is allowed.

    Attributes:
        path: the steps on the way, in order.
        end: the final status of a successful call.
        interruptions: the other final statuses.
    """

    path: tuple[str, ...]
    end: str = "completed"
    interruptions: frozenset[str] = frozenset({"incomplete"})

    @property
    def words(self) -> frozenset[str]:
        """All the statuses that there are."""
        return frozenset({*self.path, self.end, *self.interruptions})

    def allows(self, before: str | None, after: str) -> bool:
        """Return whether *after* may follow *before*. Anything may follow an unknown status."""
        if after not in self.words:
            return False
        if before is None or before == after:
            return True
        if before not in self.path:
            return False
        following = (*self.path, self.end)[self.path.index(before) + 1]
        return after == following or after in self.interruptions

    def check(self, before: str | None, after: str, *, tool: str, call_id: str | None = None) -> None:
        """Refuse an impossible step.

        Raises:
            StatusProgressionError: a call that was *before* cannot next be *after*.
        """
        if not self.allows(before, after):
            raise StatusProgressionError(
                tool=tool, before=before if after in self.words else None, after=after, call_id=call_id
            )


SEARCHING: Final = StatusProgression(
    ("in_progress", "searching"), interruptions=frozenset({"incomplete", "failed"})
)
"""Of searches: ``in_progress -> searching -> completed``."""
RUNNING: Final = StatusProgression(("in_progress",))
"""Of functions and most other tools: ``in_progress -> completed``."""


ItemT = TypeVar("ItemT", bound=Item)
R = TypeVar("R", bound=Record)


@brief
@attrs.frozen(repr=False)
class ResponseToolCall(ABC, Generic[ItemT]):
    """A call of a tool: its item, and the item that answers it, if the answer is a separate item.

    A tool is a subclass, registered with :func:`crosswalk.responses.register_tool_call`.

    Attributes:
        item: the call, as in a response.
        output: its answer, as in the next request, or ``None`` if it is unanswered or the results of the tool are in
            the call.

    Raises:
        ToolCallError: an item of another tool, or the output of another call.
    """

    item: ItemT
    output: Item | None = None

    item_type: ClassVar[type[Item]]
    """The type of its items, which has a literal ``type``."""
    output_type: ClassVar[type[Item] | None] = None
    """The type of the items that answer it, or ``None`` if its results are in the call."""
    chat_name: ClassVar[str | None] = None
    """The name of its function in chat, or ``None`` if it has many names, like functions."""
    progression: ClassVar[StatusProgression]
    """The steps of its status."""

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.item, self.item_type):
            raise ToolCallError(f"expected {self.item_type.__name__}, got {type(self.item).__name__}")
        if self.output is None:
            return
        if self.output_type is None or not isinstance(self.output, self.output_type):
            raise self._problem(f"is not answered by a {type(self.output).__name__}")
        answered = getattr(self.output, "call_id", None)
        if answered is not None and answered != self.id:
            raise self._problem("the output is another call's")

    __repr__ = short_repr("item", "output")

    @classmethod
    @abstractmethod
    def from_chat_tool_call(cls, tool_call: ToolCall) -> Self:
        """The call that *tool_call* of a chat asks for, in progress.

        Raises:
            ToolCallError: it is a call of another tool.
            ToolCallArgumentsError: its arguments are not what the tool takes.
        """

    @abstractmethod
    def to_chat_tool_call(self) -> ToolCall:
        """Return the tool call in a chat: id, name and arguments, without status and results.

        Raises:
            ToolCallError: it has no id, or its action is not known yet.
        """

    @abstractmethod
    def chunkify(self) -> tuple[Chunk, ...]:
        """Return its results, in order, or none so far."""

    def with_chunks(self, chunks: Sequence[Chunk]) -> Self:
        """Return the call with only *chunks*, of those of :meth:`chunkify`, as its results, with their contents.

        A tool that does not implement it is unchanged.
        """
        return self

    @classmethod
    def tool(cls) -> str:
        """The ``type`` of its items."""
        return str(tags_of(cls.item_type)[0])

    @property
    def id(self) -> str | None:
        """The id that answers name: ``call_id``, or the item's ``id`` if the server answers."""
        result: str | None = getattr(self.item, "call_id", None) or self.item.id
        return result

    @property
    def status(self) -> str | None:
        """Its status, or ``None`` if unknown."""
        result = getattr(self.item, "status", None)
        return None if result is None else str(result)

    def advance(self, status: str) -> Self:
        """Return the call with its next status, or with the same one.

        Raises:
            StatusProgressionError: *status* cannot follow the present one.
            ToolCallError: *status* is not a string.
        """
        if not isinstance(status, str):
            raise self._problem(f"expected a status, got {type(status).__name__}")
        self.progression.check(self.status, status, tool=self.tool(), call_id=self.id)
        return self._having(status=status)

    def answered(self, output: Item) -> Self:
        """Return the call with *output* as its answer.

        Raises:
            ToolCallError: it does not answer this call.
        """
        return attrs.evolve(self, output=output)

    def _having(self, **changes: Any) -> Self:
        return attrs.evolve(self, item=self.item.replace(**changes))

    def _problem(self, problem: str) -> ToolCallError:
        return ToolCallError(problem, tool=self.tool(), call_id=self.id)


def read_arguments(
    tool_call: ToolCall,
    arguments: type[R],
    tool: type[ResponseToolCall[Any]],
    prepare: Callable[[dict[str, Any]], dict[str, Any]] = dict,
) -> R:
    """Return the arguments of *tool_call*, which must be a call of *tool*.

    Args:
        tool_call: the call.
        arguments: the class of the tool's arguments.
        tool: the tool.
        prepare: brings the arguments, as the model wrote them, into the form of *arguments*.

    Raises:
        ToolCallError: it is a call of another tool.
        ToolCallArgumentsError: its arguments do not match *arguments*. Unknown ones are refused.
    """
    if tool_call.name != tool.chat_name:
        raise ToolCallError(f"is no call of {tool.chat_name!r}", tool=tool.tool(), call_id=tool_call.id)
    data = tool_call.parsed()
    try:
        read = parse(arguments, prepare(data))
    except ResponsesError as error:
        problem = str(error)
    else:
        unknown = next(_unknown_fields(read), None)
        if unknown is None:
            return read
        problem = f"it takes no {clean_message(unknown, 40)!r}"
    raise wrong_arguments(tool_call, problem)


def wrong_arguments(tool_call: ToolCall, problem: str) -> ToolCallArgumentsError:
    """Return the error of a call with JSON arguments that its tool does not accept."""
    name, call_id = clean_message(tool_call.name, 60), clean_message(tool_call.id, 60)
    return ToolCallArgumentsError(
        f"arguments of tool call {call_id!r} to {name!r}: {problem}",
        name=tool_call.name,
        call_id=tool_call.id,
    )


def with_text(result: Any, text: str) -> Any:
    """Return *result*, a record with a ``text``, with *text*. No text and an empty one are the same."""
    return result if (result.text or "") == text else result.replace(text=text)


def _unknown_fields(value: Any) -> Iterator[str]:
    if isinstance(value, Record):
        yield from value.extensions
        for name in keys_of(type(value)).values():
            yield from _unknown_fields(getattr(value, name))
    elif isinstance(value, tuple):
        for item in value:
            yield from _unknown_fields(item)


def write_call(call: ResponseToolCall[Any], arguments: Record) -> ToolCall:
    """The chat's form of *call*.

    Raises:
        ToolCallError: it has no id.
    """
    if not call.id or call.chat_name is None:
        raise ToolCallError("a chat's tool call needs an id", tool=call.tool())
    return ToolCall(call.id, call.chat_name, to_json(arguments).decode())
