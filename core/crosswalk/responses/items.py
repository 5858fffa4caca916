"""The remaining items, computer use and shells among them, and the unions of all items."""

from typing import Any, ClassVar, Literal, TypeAlias

from crosswalk.responses.content import Reasoning, ResponseTextConfig
from crosswalk.responses.messages import (
    EasyInputMessage,
    FunctionItem,
    InputMessage,
    Item,
    ResponseOutputMessage,
    ResponseReasoningItem,
    UnknownItem,
)
from crosswalk.responses.records import ResponsesRecord, Unknown, record, register
from crosswalk.responses.server_calls import SearchItem, ServerItem
from crosswalk.responses.tools import Tool
from crosswalk.responses.vocabulary import CallStatus, ItemStatus
from crosswalk.types.json import FrozenObject

# -------------------------------------------------------------------------- computer calls
# Computer use: the model's actions, and the screen that they lead to.


@record
class Click(ResponsesRecord):
    """A click at ``x`` and ``y``, in pixels. ``button`` is ``left``, ``right``, ``wheel``, ``back`` or ``forward``."""

    type: Literal["click"] = "click"
    button: str
    x: int
    y: int
    keys: tuple[str, ...] | None = None


@record
class DoubleClick(ResponsesRecord):
    """A double click, with ``keys`` held down."""

    type: Literal["double_click"] = "double_click"
    x: int
    y: int
    keys: tuple[str, ...] | None = None


@record
class DragPath(ResponsesRecord):
    """A point, in pixels."""

    x: int
    y: int


@record
class Drag(ResponsesRecord):
    """A drag along some points, with ``keys`` held down."""

    type: Literal["drag"] = "drag"
    path: tuple[DragPath, ...]
    keys: tuple[str, ...] | None = None


@record
class Keypress(ResponsesRecord):
    """Keys pressed together."""

    type: Literal["keypress"] = "keypress"
    keys: tuple[str, ...]


@record
class Move(ResponsesRecord):
    """A movement of the pointer, with ``keys`` held down."""

    type: Literal["move"] = "move"
    x: int
    y: int
    keys: tuple[str, ...] | None = None


@record
class Screenshot(ResponsesRecord):
    """A screenshot."""

    type: Literal["screenshot"] = "screenshot"


@record
class Scroll(ResponsesRecord):
    """A scroll by a number of pixels at a point, with ``keys`` held down."""

    type: Literal["scroll"] = "scroll"
    x: int
    y: int
    scroll_x: int
    scroll_y: int
    keys: tuple[str, ...] | None = None


@record
class Type(ResponsesRecord):
    """Text to be typed."""

    type: Literal["type"] = "type"
    text: str


@record
class Wait(ResponsesRecord):
    """A pause."""

    type: Literal["wait"] = "wait"


@record
class UnknownComputerAction(Unknown, ResponsesRecord):
    """An action of an unregistered type."""

    family: ClassVar[str] = "computer action"
    type: str | None = None


ComputerAction: TypeAlias = (
    Click | DoubleClick | Drag | Keypress | Move | Screenshot | Scroll | Type | Wait | UnknownComputerAction
)
"""The actions of the model."""


@record
class SafetyCheck(ResponsesRecord):
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
class ResponseComputerToolCallOutputScreenshot(ResponsesRecord):
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
    status: CallStatus | None = None
    created_by: str | None = None


ComputerItem: TypeAlias = ResponseComputerToolCall | ResponseComputerToolCallOutputItem
"""A call of a computer, or its answer."""


# ----------------------------------------------------------------------------- shell calls
# Shell commands and patches, and what came of them.


@record
class LocalShellCall(Item):
    """A command for the caller to run and to answer.

    Attributes:
        call_id: the call.
        action: the command.
        status: its progress.
    """

    type: Literal["local_shell_call"] = "local_shell_call"
    call_id: str
    action: FrozenObject
    status: ItemStatus | None = None


@record
class LocalShellCallOutput(Item):
    """The answer to a local shell call. Its ``id`` is the call's ``call_id``.

    Attributes:
        output: the output of the command, as JSON text.
        status: its progress.
    """

    type: Literal["local_shell_call_output"] = "local_shell_call_output"
    output: str
    status: ItemStatus | None = None


@record
class ShellAction(ResponsesRecord):
    """Commands, each a line for a shell.

    Attributes:
        commands: the commands, which may run at the same time.
        timeout_ms: how long they may take, in milliseconds.
        max_output_length: how many characters of output to give.
    """

    commands: tuple[str, ...]
    timeout_ms: int | None = None
    max_output_length: int | None = None


@record
class ResponseFunctionShellToolCall(Item):
    """Commands for a shell: the caller runs them if the environment is local, else the server.

    Attributes:
        call_id: the call.
        action: the commands.
        environment: its environment.
        status: its progress.
        caller: the model, or the program that asked for it.
        created_by: its creator.
    """

    type: Literal["shell_call"] = "shell_call"
    call_id: str
    action: ShellAction
    environment: FrozenObject | None = None
    status: ItemStatus | None = None
    caller: FrozenObject | None = None
    created_by: str | None = None


@record
class ResponseFunctionShellToolCallOutput(Item):
    """The output of a shell call's commands.

    Attributes:
        call_id: the call.
        output: the output of each command.
        max_output_length: the limit to which it was cut, in characters.
        status: its progress.
        caller: the model, or the program that asked for it.
        created_by: its creator.
    """

    type: Literal["shell_call_output"] = "shell_call_output"
    call_id: str
    output: tuple[FrozenObject, ...] = ()
    max_output_length: int | None = None
    status: ItemStatus | None = None
    caller: FrozenObject | None = None
    created_by: str | None = None


@record
class ResponseApplyPatchToolCall(Item):
    """A patch for the caller to apply and to answer.

    Attributes:
        call_id: the call.
        operation: the change.
        status: its progress.
        caller: the model, or the program that asked for it.
        created_by: its creator.
    """

    type: Literal["apply_patch_call"] = "apply_patch_call"
    call_id: str
    operation: FrozenObject
    status: CallStatus | None = None
    caller: FrozenObject | None = None
    created_by: str | None = None


@record
class ResponseApplyPatchToolCallOutput(Item):
    """The answer to a patch.

    Attributes:
        call_id: the call.
        status: how it ended.
        output: a text for the model.
        caller: the model, or the program that asked for it.
        created_by: its creator.
    """

    type: Literal["apply_patch_call_output"] = "apply_patch_call_output"
    call_id: str
    status: CallStatus | None = None
    output: str | None = None
    caller: FrozenObject | None = None
    created_by: str | None = None


ShellItem: TypeAlias = (
    LocalShellCall
    | LocalShellCallOutput
    | ResponseFunctionShellToolCall
    | ResponseFunctionShellToolCallOutput
    | ResponseApplyPatchToolCall
    | ResponseApplyPatchToolCallOutput
)
"""A call of a shell or a patch, or its answer."""


# ----------------------------------------------------------------------------------- items
# The remaining items, and two unions of all items: those of a response, and those of a request.


@record
class Program(Item):
    """A program that the model wrote to call tools, run by the server.

    Attributes:
        call_id: the id that its output and its calls name.
        code: the program, in JavaScript.
        fingerprint: to be sent back as it came.
    """

    type: Literal["program"] = "program"
    call_id: str
    code: str
    fingerprint: str


@record
class ProgramOutput(Item):
    """The result of a program.

    Attributes:
        call_id: the program.
        result: its result.
        status: its final status.
    """

    type: Literal["program_output"] = "program_output"
    call_id: str
    result: str
    status: CallStatus | None = None


@record
class AdditionalTools(Item):
    """Tools that joined in the middle of the conversation.

    Attributes:
        role: the role that added them, such as ``developer``.
        tools: the tools.
    """

    type: Literal["additional_tools"] = "additional_tools"
    role: str
    tools: tuple[Tool, ...] = ()


@record
class ResponseConfigurationUpdateItem(Item):
    """A change of the configuration in the middle of the conversation."""

    type: Literal["configuration_update"] = "configuration_update"
    reasoning: Reasoning | None = None
    text: ResponseTextConfig | None = None


@record
class ResponseCompactionItem(Item):
    """The server's record of a conversation that it shortened. Send it back unchanged.

    Attributes:
        encrypted_content: for the server alone.
        created_by: its creator.
    """

    type: Literal["compaction"] = "compaction"
    encrypted_content: str
    created_by: str | None = None


@record
class CompactionTrigger(Item):
    """Asks the server to shorten the conversation. It is the last item of a request."""

    type: Literal["compaction_trigger"] = "compaction_trigger"


@record
class ItemReference(Item):
    """Stands for an item that the server has stored under this ``id``."""

    type: Literal["item_reference"] | None = "item_reference"
    id: str

    @classmethod
    def claims(cls, data: dict[str, Any]) -> bool:
        """Return whether it has an id. Objects with a role or content were claimed as messages before."""
        return "id" in data


KnownOutputItem: TypeAlias = (
    ResponseOutputMessage
    | ResponseReasoningItem
    | FunctionItem
    | SearchItem
    | ServerItem
    | ComputerItem
    | ShellItem
    | Program
    | ProgramOutput
    | AdditionalTools
    | ResponseCompactionItem
)
"""An item of a response, of a type of the API, selected by ``type``."""

ResponseOutputItem: TypeAlias = KnownOutputItem | UnknownItem
"""An item of a response."""

KnownInputItem: TypeAlias = (
    KnownOutputItem
    | InputMessage
    | EasyInputMessage
    | ResponseConfigurationUpdateItem
    | CompactionTrigger
    | ItemReference
)
"""An item of a request, of a type that the API has."""

ResponseInputItem: TypeAlias = KnownInputItem | UnknownItem
"""An item of a request. Items of a response may be sent back."""


def register_item(cls: type[Item]) -> type[Item]:
    """Read items with the ``type`` of *cls* as one, in requests and responses, for example a tool of another server.

    Use it as a decorator of a :func:`crosswalk.responses.record` that derives from ``Item``. A ``type`` of the
    API keeps its meaning. If two classes have the same ``type``, the later one counts.

    Raises:
        TypeError: *cls* has no ``type`` that is a ``Literal``.
    """
    return register(cls, UnknownItem)
