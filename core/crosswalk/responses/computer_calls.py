"""Control of a computer: what the model wants done, and what the screen then shows."""

from typing import ClassVar, Literal, TypeAlias

from crosswalk.responses.item import Item
from crosswalk.responses.records import Record, Unknown, record
from crosswalk.responses.vocabulary import ComputerCallOutputStatus, ItemStatus

__all__ = [
    "Click",
    "ComputerAction",
    "DoubleClick",
    "Drag",
    "DragPath",
    "Keypress",
    "Move",
    "ResponseComputerToolCall",
    "ResponseComputerToolCallOutputItem",
    "ResponseComputerToolCallOutputScreenshot",
    "SafetyCheck",
    "Screenshot",
    "Scroll",
    "Type",
    "UnknownComputerAction",
    "Wait",
]


@record
class Click(Record):
    """A click; ``x`` and ``y`` in pixels, ``button`` is ``left``, ``right``, ``wheel``, ``back`` or ``forward``."""

    type: Literal["click"] = "click"
    button: str
    x: int
    y: int
    keys: tuple[str, ...] | None = None


@record
class DoubleClick(Record):
    """A double click; ``keys`` are held down meanwhile."""

    type: Literal["double_click"] = "double_click"
    x: int
    y: int
    keys: tuple[str, ...] | None = None


@record
class DragPath(Record):
    """A point, in pixels."""

    x: int
    y: int


@record
class Drag(Record):
    """A drag along some points; ``keys`` are held down meanwhile."""

    type: Literal["drag"] = "drag"
    path: tuple[DragPath, ...]
    keys: tuple[str, ...] | None = None


@record
class Keypress(Record):
    """Keys pressed together."""

    type: Literal["keypress"] = "keypress"
    keys: tuple[str, ...]


@record
class Move(Record):
    """A movement of the pointer; ``keys`` are held down meanwhile."""

    type: Literal["move"] = "move"
    x: int
    y: int
    keys: tuple[str, ...] | None = None


@record
class Screenshot(Record):
    """A look at the screen."""

    type: Literal["screenshot"] = "screenshot"


@record
class Scroll(Record):
    """A scroll by so many pixels at a point; ``keys`` are held down meanwhile."""

    type: Literal["scroll"] = "scroll"
    x: int
    y: int
    scroll_x: int
    scroll_y: int
    keys: tuple[str, ...] | None = None


@record
class Type(Record):
    """Text to be typed."""

    type: Literal["type"] = "type"
    text: str


@record
class Wait(Record):
    """A pause."""

    type: Literal["wait"] = "wait"


@record
class UnknownComputerAction(Unknown, Record):
    """An action of a type that nobody registered."""

    family: ClassVar[str] = "computer action"
    type: str | None = None


ComputerAction: TypeAlias = (
    Click | DoubleClick | Drag | Keypress | Move | Screenshot | Scroll | Type | Wait | UnknownComputerAction
)
"""What the model wants done."""


@record
class SafetyCheck(Record):
    """Something that a person should look at first.

    Attributes:
        id: names the check.
        code: which kind.
        message: what it is about.
    """

    id: str
    code: str | None = None
    message: str | None = None


@record
class ResponseComputerToolCall(Item):
    """Something to be done on a computer, for the caller to do and to answer.

    Attributes:
        call_id: what the answer names.
        action: what to do.
        actions: several things to do, in order.
        pending_safety_checks: what to look at first.
        status: how far it has come.
    """

    type: Literal["computer_call"] = "computer_call"
    call_id: str
    action: ComputerAction | None = None
    actions: tuple[ComputerAction, ...] | None = None
    pending_safety_checks: tuple[SafetyCheck, ...] = ()
    status: ItemStatus | None = None


@record
class ResponseComputerToolCallOutputScreenshot(Record):
    """What the screen shows, by URL (a data URL too) or as an uploaded file."""

    type: Literal["computer_screenshot"] = "computer_screenshot"
    image_url: str | None = None
    file_id: str | None = None


@record
class ResponseComputerToolCallOutputItem(Item):
    """The answer to a computer call.

    Attributes:
        call_id: the call.
        output: what the screen shows.
        acknowledged_safety_checks: what a person has looked at.
        status: how far it has come; sent by the server only.
        created_by: what created it.
    """

    type: Literal["computer_call_output"] = "computer_call_output"
    call_id: str
    output: ResponseComputerToolCallOutputScreenshot
    acknowledged_safety_checks: tuple[SafetyCheck, ...] | None = None
    status: ComputerCallOutputStatus | None = None
    created_by: str | None = None


ComputerItem: TypeAlias = ResponseComputerToolCall | ResponseComputerToolCallOutputItem
"""A call of a computer, or its answer."""
