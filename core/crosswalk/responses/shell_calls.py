"""Shell commands and patches, and what came of them."""

from collections.abc import Mapping
from typing import ClassVar, Literal, TypeAlias

from crosswalk.responses.containers import ContainerReference, LocalEnvironment, UnknownEnvironment
from crosswalk.responses.item import Caller, Item
from crosswalk.responses.records import Record, Unknown, record
from crosswalk.responses.vocabulary import ApplyPatchCallOutputStatus, ApplyPatchCallStatus, ItemStatus


@record
class LocalShellAction(Record):
    """A command for the caller's machine.

    Attributes:
        command: the command and its arguments.
        env: environment variables.
        timeout_ms: how long it may take, in milliseconds.
        user: the user that runs it.
        working_directory: its directory.
    """

    type: Literal["exec"] = "exec"
    command: tuple[str, ...]
    env: Mapping[str, str]
    timeout_ms: int | None = None
    user: str | None = None
    working_directory: str | None = None


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
    action: LocalShellAction
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
class ShellAction(Record):
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
    environment: LocalEnvironment | ContainerReference | UnknownEnvironment | None = None
    status: ItemStatus | None = None
    caller: Caller | None = None
    created_by: str | None = None


@record
class ExitOutcome(Record):
    """The command ended."""

    type: Literal["exit"] = "exit"
    exit_code: int


@record
class TimeoutOutcome(Record):
    """The command took too long."""

    type: Literal["timeout"] = "timeout"


@record
class UnknownShellOutcome(Unknown, Record):
    """An outcome of an unregistered type."""

    family: ClassVar[str] = "shell outcome"
    type: str | None = None


ShellOutcome: TypeAlias = ExitOutcome | TimeoutOutcome | UnknownShellOutcome
"""The outcome of a command."""


@record
class ResponseFunctionShellCallOutputContent(Record):
    """The output of a command.

    Attributes:
        stdout: its output.
        stderr: its errors.
        outcome: its outcome, or ``None`` while it runs.
        created_by: its creator.
    """

    stdout: str = ""
    stderr: str = ""
    outcome: ShellOutcome | None = None
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
    output: tuple[ResponseFunctionShellCallOutputContent, ...] = ()
    max_output_length: int | None = None
    status: ItemStatus | None = None
    caller: Caller | None = None
    created_by: str | None = None


@record
class PatchCreateFile(Record):
    """A new file, as a V4A diff."""

    type: Literal["create_file"] = "create_file"
    path: str
    diff: str


@record
class PatchUpdateFile(Record):
    """A change of a file, as a V4A diff."""

    type: Literal["update_file"] = "update_file"
    path: str
    diff: str


@record
class PatchDeleteFile(Record):
    """A file that goes."""

    type: Literal["delete_file"] = "delete_file"
    path: str


@record
class UnknownPatchOperation(Unknown, Record):
    """An operation of an unregistered type."""

    family: ClassVar[str] = "patch operation"
    type: str | None = None


PatchOperation: TypeAlias = PatchCreateFile | PatchUpdateFile | PatchDeleteFile | UnknownPatchOperation
"""The change of a patch to a file."""


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
    operation: PatchOperation
    status: ApplyPatchCallStatus | None = None
    caller: Caller | None = None
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
    status: ApplyPatchCallOutputStatus | None = None
    output: str | None = None
    caller: Caller | None = None
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
