"""The base of all items, and the callers of calls."""

from typing import ClassVar, Literal, TypeAlias

from crosswalk.responses.records import Record, Unknown, record


@record
class Item(Record):
    """A piece of a conversation: a message, a call, its output …

    Attributes:
        id: its id, in stream events ``item_id``, or ``None`` if it has none, as in many inputs.
    """

    id: str | None = None


@record
class UnknownItem(Unknown, Item):
    """An item of a type that is not registered."""

    family: ClassVar[str] = "item"
    type: str | None = None


@record
class CallerDirect(Record):
    """The model itself."""

    type: Literal["direct"] = "direct"


@record
class CallerProgram(Record):
    """A program that the model wrote.

    Attributes:
        caller_id: the ``call_id`` of the program's item.
    """

    type: Literal["program"] = "program"
    caller_id: str


@record
class UnknownCaller(Unknown, Record):
    """A caller of a type that is not registered."""

    family: ClassVar[str] = "caller"
    type: str | None = None


Caller: TypeAlias = CallerDirect | CallerProgram | UnknownCaller
"""The caller that asked for a call."""
