"""The remaining items, and two unions of all items: those of a response, and those of a request."""

from typing import Any, Literal, TypeAlias

from crosswalk.responses.computer_calls import ComputerItem
from crosswalk.responses.families import register
from crosswalk.responses.formats import Reasoning, ResponseTextConfig
from crosswalk.responses.function_calls import FunctionItem
from crosswalk.responses.item import Item, UnknownItem
from crosswalk.responses.messages import (
    EasyInputMessage,
    InputMessage,
    ResponseOutputMessage,
    ResponseReasoningItem,
)
from crosswalk.responses.records import record
from crosswalk.responses.search_calls import SearchItem
from crosswalk.responses.server_calls import ServerItem
from crosswalk.responses.shell_calls import ShellItem
from crosswalk.responses.tools import Tool
from crosswalk.responses.vocabulary import ProgramOutputStatus


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
    status: ProgramOutputStatus | None = None


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
