"""Computer use: the model's actions, and the screen that they lead to."""

from typing import ClassVar, Literal, TypeAlias

from crosswalk.responses.item import Item
from crosswalk.responses.records import Record, Unknown, record
from crosswalk.responses.vocabulary import ComputerCallOutputStatus, ItemStatus


@record
class Click(Record):
    """A click at ``x`` and ``y``, in pixels. ``button`` is ``left``, ``right``, ``wheel``, ``back`` or ``forward``."""

    type: Literal["click"] = "click"
    button: str
    x: int
    y: int
    keys: tuple[str, ...] | None = None


@record
class DoubleClick(Record):
    """A double click, with ``keys`` held down."""

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
    """A drag along some points, with ``keys`` held down."""

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
    """A movement of the pointer, with ``keys`` held down."""

    type: Literal["move"] = "move"
    x: int
    y: int
    keys: tuple[str, ...] | None = None


@record
class Screenshot(Record):
    """A screenshot."""

    type: Literal["screenshot"] = "screenshot"


@record
class Scroll(Record):
    """A scroll by a number of pixels at a point, with ``keys`` held down."""

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
    """An action of an unregistered type."""

    family: ClassVar[str] = "computer action"
    type: str | None = None


ComputerAction: TypeAlias = (
    Click | DoubleClick | Drag | Keypress | Move | Screenshot | Scroll | Type | Wait | UnknownComputerAction
)
"""The actions of the model."""


@record
class SafetyCheck(Record):
    """A safety check for a person to look at first.

    Attributes:
        id: its id.
        code: its kind.
        message: its description.
    """

    id: str
    code: str | None = None
    message: str | None = None


@record
class ResponseComputerToolCall(Item):
    """An action on a computer, for the caller to perform and answer.

    Attributes:
        call_id: the id that the answer names.
        action: the action.
        actions: several actions, in order.
        pending_safety_checks: the checks to look at first.
        status: its progress.
    """

    type: Literal["computer_call"] = "computer_call"
    call_id: str
    action: ComputerAction | None = None
    actions: tuple[ComputerAction, ...] | None = None
    pending_safety_checks: tuple[SafetyCheck, ...] = ()
    status: ItemStatus | None = None


@record
class ResponseComputerToolCallOutputScreenshot(Record):
    """A screenshot, by URL (also a data URL) or as an uploaded file."""

    type: Literal["computer_screenshot"] = "computer_screenshot"
    image_url: str | None = None
    file_id: str | None = None


@record
class ResponseComputerToolCallOutputItem(Item):
    """The answer to a computer call.

    Attributes:
        call_id: the call.
        output: the screenshot.
        acknowledged_safety_checks: the checks that a person has looked at.
        status: its progress, sent only by the server.
        created_by: its creator.
    """

    type: Literal["computer_call_output"] = "computer_call_output"
    call_id: str
    output: ResponseComputerToolCallOutputScreenshot
    acknowledged_safety_checks: tuple[SafetyCheck, ...] | None = None
    status: ComputerCallOutputStatus | None = None
    created_by: str | None = None


ComputerItem: TypeAlias = ResponseComputerToolCall | ResponseComputerToolCallOutputItem
"""A call of a computer, or its answer."""
