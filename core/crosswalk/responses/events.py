"""Events of calls, and the union of all events."""

from __future__ import annotations

from typing import Literal, TypeAlias

from crosswalk.responses.answer_events import Event, ItemEvent, LifecycleEvent, TextEvent, UnknownEvent
from crosswalk.responses.records import ResponsesRecord, record, register
from crosswalk.types.json import FrozenObject

# ----------------------------------------------------------------------------------- calls
# Events of calls: their input and their progress.


@record
class ResponseFunctionCallArgumentsDeltaEvent(ItemEvent):
    """More arguments of a function call.

    Attributes:
        delta: the new JSON text.
        obfuscation: padding that hides the length.
    """

    type: Literal["response.function_call_arguments.delta"] = "response.function_call_arguments.delta"
    delta: str
    obfuscation: str | None = None


@record
class ResponseFunctionCallArgumentsDoneEvent(ItemEvent):
    """All arguments of a function call.

    Attributes:
        arguments: the arguments as JSON text.
        name: the function, by some servers.
    """

    type: Literal["response.function_call_arguments.done"] = "response.function_call_arguments.done"
    arguments: str
    name: str | None = None


@record
class ResponseCustomToolCallInputDeltaEvent(ItemEvent):
    """More input of a custom tool."""

    type: Literal["response.custom_tool_call_input.delta"] = "response.custom_tool_call_input.delta"
    delta: str


@record
class ResponseCustomToolCallInputDoneEvent(ItemEvent):
    """All input of a custom tool."""

    type: Literal["response.custom_tool_call_input.done"] = "response.custom_tool_call_input.done"
    input: str


@record
class ResponseMcpCallArgumentsDeltaEvent(ItemEvent):
    """More arguments of an MCP call.

    Attributes:
        delta: the new JSON text.
        obfuscation: padding that hides the length.
    """

    type: Literal["response.mcp_call_arguments.delta"] = "response.mcp_call_arguments.delta"
    delta: str
    obfuscation: str | None = None


@record
class ResponseMcpCallArgumentsDoneEvent(ItemEvent):
    """All arguments of an MCP call."""

    type: Literal["response.mcp_call_arguments.done"] = "response.mcp_call_arguments.done"
    arguments: str


@record
class ResponseMcpCallInProgressEvent(ItemEvent):
    """An MCP call begins."""

    type: Literal["response.mcp_call.in_progress"] = "response.mcp_call.in_progress"


@record
class ResponseMcpCallCompletedEvent(ItemEvent):
    """An MCP call has been answered."""

    type: Literal["response.mcp_call.completed"] = "response.mcp_call.completed"


@record
class ResponseMcpCallFailedEvent(ItemEvent):
    """An MCP call failed."""

    type: Literal["response.mcp_call.failed"] = "response.mcp_call.failed"


@record
class ResponseMcpListToolsInProgressEvent(ItemEvent):
    """An MCP server's tools are being listed."""

    type: Literal["response.mcp_list_tools.in_progress"] = "response.mcp_list_tools.in_progress"


@record
class ResponseMcpListToolsCompletedEvent(ItemEvent):
    """An MCP server's tools are listed."""

    type: Literal["response.mcp_list_tools.completed"] = "response.mcp_list_tools.completed"


@record
class ResponseMcpListToolsFailedEvent(ItemEvent):
    """An MCP server's tools could not be listed."""

    type: Literal["response.mcp_list_tools.failed"] = "response.mcp_list_tools.failed"


@record
class ResponseWebSearchCallInProgressEvent(ItemEvent):
    """A web search begins."""

    type: Literal["response.web_search_call.in_progress"] = "response.web_search_call.in_progress"


@record
class ResponseWebSearchCallSearchingEvent(ItemEvent):
    """A web search is under way."""

    type: Literal["response.web_search_call.searching"] = "response.web_search_call.searching"


@record
class ResponseWebSearchCallCompletedEvent(ItemEvent):
    """A web search is done."""

    type: Literal["response.web_search_call.completed"] = "response.web_search_call.completed"


@record
class ResponseFileSearchCallInProgressEvent(ItemEvent):
    """A file search begins."""

    type: Literal["response.file_search_call.in_progress"] = "response.file_search_call.in_progress"


@record
class ResponseFileSearchCallSearchingEvent(ItemEvent):
    """A file search is under way."""

    type: Literal["response.file_search_call.searching"] = "response.file_search_call.searching"


@record
class ResponseFileSearchCallCompletedEvent(ItemEvent):
    """A file search is done."""

    type: Literal["response.file_search_call.completed"] = "response.file_search_call.completed"


@record
class ResponseCodeInterpreterCallInProgressEvent(ItemEvent):
    """The model writes code."""

    type: Literal["response.code_interpreter_call.in_progress"] = "response.code_interpreter_call.in_progress"


@record
class ResponseCodeInterpreterCallInterpretingEvent(ItemEvent):
    """Code runs."""

    type: Literal["response.code_interpreter_call.interpreting"] = (
        "response.code_interpreter_call.interpreting"
    )


@record
class ResponseCodeInterpreterCallCompletedEvent(ItemEvent):
    """Code has run."""

    type: Literal["response.code_interpreter_call.completed"] = "response.code_interpreter_call.completed"


@record
class ResponseCodeInterpreterCallCodeDeltaEvent(ItemEvent):
    """More code.

    Attributes:
        delta: the new code.
        obfuscation: padding that hides the length.
    """

    type: Literal["response.code_interpreter_call_code.delta"] = "response.code_interpreter_call_code.delta"
    delta: str
    obfuscation: str | None = None


@record
class ResponseCodeInterpreterCallCodeDoneEvent(ItemEvent):
    """The whole code."""

    type: Literal["response.code_interpreter_call_code.done"] = "response.code_interpreter_call_code.done"
    code: str


@record
class ResponseImageGenCallInProgressEvent(ItemEvent):
    """An image begins."""

    type: Literal["response.image_generation_call.in_progress"] = "response.image_generation_call.in_progress"


@record
class ResponseImageGenCallGeneratingEvent(ItemEvent):
    """An image is being made."""

    type: Literal["response.image_generation_call.generating"] = "response.image_generation_call.generating"


@record
class ResponseImageGenCallCompletedEvent(ItemEvent):
    """An image is done."""

    type: Literal["response.image_generation_call.completed"] = "response.image_generation_call.completed"


@record
class ResponseImageGenCallPartialImageEvent(ItemEvent):
    """A preview of an image, which replaces the previous one.

    Attributes:
        partial_image_index: its position among the previews, from 0.
        partial_image_b64: the preview in base64.
        background: see :class:`crosswalk.responses.ImageGeneration`, also for the other fields.
    """

    type: Literal["response.image_generation_call.partial_image"] = (
        "response.image_generation_call.partial_image"
    )
    partial_image_index: int | None = None
    partial_image_b64: str
    background: str | None = None
    output_format: str | None = None
    quality: str | None = None
    size: str | None = None


@record
class ResponseApplyPatchCallOperationDiffDeltaEvent(ItemEvent):
    """More of the diff of a patch.

    Attributes:
        delta: the new text.
        obfuscation: padding that hides the length.
    """

    type: Literal["response.apply_patch_call_operation_diff.delta"] = (
        "response.apply_patch_call_operation_diff.delta"
    )
    delta: str
    obfuscation: str | None = None


@record
class ResponseApplyPatchCallOperationDiffDoneEvent(ItemEvent):
    """The whole diff of a patch."""

    type: Literal["response.apply_patch_call_operation_diff.done"] = (
        "response.apply_patch_call_operation_diff.done"
    )
    diff: str


@record
class ResponseToolStatusEvent(ItemEvent):
    """The progress of a server tool, in words that OpenAI's types lack. The last one is the status."""

    type: Literal[
        "response.x_search_call.in_progress",
        "response.x_search_call.searching",
        "response.x_search_call.completed",
        "response.x_search_call.failed",
        "response.document_finder_call.in_progress",
        "response.document_finder_call.searching",
        "response.document_finder_call.completed",
        "response.document_finder_call.failed",
        "response.file_reader_call.in_progress",
        "response.file_reader_call.completed",
        "response.web_search_call.failed",
        "response.file_search_call.failed",
        "response.code_interpreter_call.failed",
        "response.image_generation_call.failed",
    ]


@record
class ShellCommandEvent(Event):
    """Something that happened to a command of a shell call.

    Attributes:
        output_index: the call's position in the output.
        command_index: the command's position in the call.
    """

    output_index: int | None = None
    command_index: int | None = None


@record
class ResponseShellCallCommandAddedEvent(ShellCommandEvent):
    """A command begins."""

    type: Literal["response.shell_call_command.added"] = "response.shell_call_command.added"
    command: str


@record
class ResponseShellCallCommandDeltaEvent(ShellCommandEvent):
    """More of a command.

    Attributes:
        delta: the new text.
        obfuscation: padding that hides the length.
    """

    type: Literal["response.shell_call_command.delta"] = "response.shell_call_command.delta"
    delta: str
    obfuscation: str | None = None


@record
class ResponseShellCallCommandDoneEvent(ShellCommandEvent):
    """A whole command."""

    type: Literal["response.shell_call_command.done"] = "response.shell_call_command.done"
    command: str


@record
class ShellOutputDelta(ResponsesRecord):
    """More output of a command, more errors of it, or both."""

    stdout: str | None = None
    stderr: str | None = None


@record
class ResponseShellCallOutputContentDeltaEvent(ItemEvent):
    """More output of a command.

    Attributes:
        command_index: the command's position in the call.
        delta: the new output.
    """

    type: Literal["response.shell_call_output_content.delta"] = "response.shell_call_output_content.delta"
    command_index: int | None = None
    delta: ShellOutputDelta


@record
class ResponseShellCallOutputContentDoneEvent(ItemEvent):
    """The whole output of a command.

    Attributes:
        command_index: the command's position in the call.
        output: its output.
    """

    type: Literal["response.shell_call_output_content.done"] = "response.shell_call_output_content.done"
    command_index: int | None = None
    output: tuple[FrozenObject, ...]


@record
class ResponseCompactionCompactingEvent(ItemEvent):
    """The conversation is being shortened."""

    type: Literal["response.compaction.compacting"] = "response.compaction.compacting"


CallEvent: TypeAlias = (
    ResponseFunctionCallArgumentsDeltaEvent
    | ResponseFunctionCallArgumentsDoneEvent
    | ResponseCustomToolCallInputDeltaEvent
    | ResponseCustomToolCallInputDoneEvent
    | ResponseMcpCallArgumentsDeltaEvent
    | ResponseMcpCallArgumentsDoneEvent
    | ResponseMcpCallInProgressEvent
    | ResponseMcpCallCompletedEvent
    | ResponseMcpCallFailedEvent
    | ResponseMcpListToolsInProgressEvent
    | ResponseMcpListToolsCompletedEvent
    | ResponseMcpListToolsFailedEvent
    | ResponseWebSearchCallInProgressEvent
    | ResponseWebSearchCallSearchingEvent
    | ResponseWebSearchCallCompletedEvent
    | ResponseFileSearchCallInProgressEvent
    | ResponseFileSearchCallSearchingEvent
    | ResponseFileSearchCallCompletedEvent
    | ResponseCodeInterpreterCallInProgressEvent
    | ResponseCodeInterpreterCallInterpretingEvent
    | ResponseCodeInterpreterCallCompletedEvent
    | ResponseCodeInterpreterCallCodeDeltaEvent
    | ResponseCodeInterpreterCallCodeDoneEvent
    | ResponseImageGenCallInProgressEvent
    | ResponseImageGenCallGeneratingEvent
    | ResponseImageGenCallCompletedEvent
    | ResponseImageGenCallPartialImageEvent
    | ResponseApplyPatchCallOperationDiffDeltaEvent
    | ResponseApplyPatchCallOperationDiffDoneEvent
    | ResponseToolStatusEvent
    | ResponseShellCallCommandAddedEvent
    | ResponseShellCallCommandDeltaEvent
    | ResponseShellCallCommandDoneEvent
    | ResponseShellCallOutputContentDeltaEvent
    | ResponseShellCallOutputContentDoneEvent
    | ResponseCompactionCompactingEvent
)
"""An event of a call."""


# ----------------------------------------------------------------------------------- union
# All events of a stream as one type, and how a program adds its own.


KnownStreamEvent: TypeAlias = LifecycleEvent | TextEvent | CallEvent
"""An event of a stream, of a type of the API, selected by ``type``."""

ResponseStreamEvent: TypeAlias = KnownStreamEvent | UnknownEvent
"""An event of a stream."""


def register_event(cls: type[Event]) -> type[Event]:
    """Read events with the ``type`` of *cls* as one.

    Use it as a decorator of a :func:`crosswalk.responses.record` that derives from ``Event``. A ``type`` of the
    API keeps its meaning. If two classes have the same ``type``, the later one counts.

    Raises:
        TypeError: *cls* has no ``type`` that is a ``Literal``.
    """
    return register(cls, UnknownEvent)
