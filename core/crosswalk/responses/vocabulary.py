"""The words of the API: statuses and roles, ids with prefixes, and the errors of its types."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final, Literal, Self, TypeAlias

from crosswalk.errors import CrosswalkError
from crosswalk.wire.responses import PENDING

# ---------------------------------------------------------------------------------- errors
# The errors of the Responses API's types.
#
# CrosswalkError
# └── ResponsesError
#     ├── ResponsesParseError (ValueError)     JSON that is not a value of the requested type
#     │   └── UnknownTypeError                 an item, event, part … of an unregistered type
#     ├── ResponsesValueError (ValueError)     a value made in the program breaks a rule of its type
#     │   └── InvalidIdError                   an id with a wrong prefix or wrong characters
#     ├── NotAStreamError (ValueError)         an error body, a page of HTML … instead of a stream
#     └── SnapshotError                        an event that does not fit the response so far


class ResponsesError(CrosswalkError):
    """The root of the errors that ``crosswalk.responses`` raises."""


class ResponsesParseError(ResponsesError, ValueError):
    """JSON that is not a value of the requested type: a missing field, a wrong type, an unknown word.

    Attributes:
        path: the location, such as ``$.output[0].status``.
        problem: the problem, without the content.
        problems: every problem of the document, as ``problem @ path``.
    """

    def __init__(self, problem: str, *, path: str = "$", problems: Sequence[str] = ()) -> None:
        super().__init__(f"{problem} @ {path}")
        self.problems = tuple(problems) or (f"{problem} @ {path}",)
        self.problem = problem
        self.path = path


class UnknownTypeError(ResponsesParseError):
    """An object with a ``type`` that is not registered. ``unknown="keep"`` would accept it.

    Attributes:
        family: the expected family: ``item``, ``event``, ``content part``, ``annotation``, ``tool`` ….
        type_name: its ``type``, shortened, or ``None`` if it has none.
    """

    def __init__(
        self,
        problem: str,
        *,
        path: str = "$",
        problems: Sequence[str] = (),
        family: str,
        type_name: str | None,
    ) -> None:
        super().__init__(problem, path=path, problems=problems)
        self.family = family
        self.type_name = type_name


class ResponsesValueError(ResponsesError, ValueError):
    """A value made in the program breaks a rule of its type.

    Attributes:
        path: the class and field, such as ``ResponseOutputText.text``.
    """

    def __init__(self, problem: str, *, path: str) -> None:
        super().__init__(f"{problem} @ {path}")
        self.path = path


class InvalidIdError(ResponsesValueError):
    """An id that does not have the form its kind has.

    Attributes:
        kind: the kind of thing it should name, such as ``response``.
    """

    def __init__(self, problem: str, *, kind: str) -> None:
        super().__init__(problem, path=f"{kind}.id")
        self.kind = kind


NotAStreamKind: TypeAlias = Literal["error", "response", "json", "html", "text"]
"""The kinds of content that are not a stream: an error body, a whole response, other JSON, HTML or XML, other text."""


class NotAStreamError(ResponsesError, ValueError):
    """The content is not a stream of server-sent events.

    Attributes:
        kind: the kind of content.
        message: the message of an error body or the beginning of HTML and text, shortened, or ``None`` for other JSON.
    """

    def __init__(self, kind: NotAStreamKind, message: str | None = None) -> None:
        kind_phrases = {
            "error": "an error body",
            "response": "a whole response",
            "json": "JSON",
            "html": "HTML",
        }
        problem = f"not a stream of events: {kind_phrases.get(kind, kind)}"
        super().__init__(problem if message is None else f"{problem}: {message}")
        self.kind = kind
        self.message = message


class SnapshotError(ResponsesError):
    """A stream event that does not fit the response as the events before it made it, or is cut off.

    Attributes:
        event_type: the event's ``type``, or ``stream`` if it is not known.
        sequence_number: its position in the stream, or ``None`` if the server sent none.
    """

    def __init__(self, problem: str, *, event_type: str, sequence_number: int | None) -> None:
        number_suffix = "" if sequence_number is None else f" (sequence_number {sequence_number})"
        super().__init__(f"{event_type}{number_suffix}: {problem}")
        self.event_type = event_type
        self.sequence_number = sequence_number


# ------------------------------------------------------------------------------------- ids
# Ids with prefixes: generating and checking them.


_TOKEN_PATTERN: Final = re.compile(r"[A-Za-z0-9_-]{1,200}")


class IdKind(StrEnum):
    """The kind of object that an id names, in the API's words. Items use their ``type``, and ``CALL`` is a ``call_id``."""

    prefix: str
    """The beginning of ids of this kind, with the underscore. It is OpenAI's prefix if its API shows one."""

    def __new__(cls, word: str, prefix: str) -> Self:
        """The kind of this name, which is its value, and prefix."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.prefix = prefix
        return member

    RESPONSE = "response", "resp_"
    CONVERSATION = "conversation", "conv_"
    CALL = "call", "call_"
    MESSAGE = "message", "msg_"
    REASONING = "reasoning", "rs_"
    FUNCTION_CALL = "function_call", "fc_"
    FUNCTION_CALL_OUTPUT = "function_call_output", "fco_"
    CUSTOM_TOOL_CALL = "custom_tool_call", "ctc_"
    CUSTOM_TOOL_CALL_OUTPUT = "custom_tool_call_output", "ctco_"
    FILE_SEARCH_CALL = "file_search_call", "fs_"
    WEB_SEARCH_CALL = "web_search_call", "ws_"
    TOOL_SEARCH_CALL = "tool_search_call", "tsc_"
    TOOL_SEARCH_OUTPUT = "tool_search_output", "tso_"
    CODE_INTERPRETER_CALL = "code_interpreter_call", "ci_"
    IMAGE_GENERATION_CALL = "image_generation_call", "ig_"
    COMPUTER_CALL = "computer_call", "cu_"
    COMPUTER_CALL_OUTPUT = "computer_call_output", "cuo_"
    LOCAL_SHELL_CALL = "local_shell_call", "lsh_"
    SHELL_CALL = "shell_call", "sh_"
    SHELL_CALL_OUTPUT = "shell_call_output", "sho_"
    APPLY_PATCH_CALL = "apply_patch_call", "apc_"
    APPLY_PATCH_CALL_OUTPUT = "apply_patch_call_output", "apco_"
    MCP_CALL = "mcp_call", "mcp_"
    MCP_LIST_TOOLS = "mcp_list_tools", "mcpl_"
    MCP_APPROVAL_REQUEST = "mcp_approval_request", "mcpr_"
    MCP_APPROVAL_RESPONSE = "mcp_approval_response", "mcpa_"
    PROGRAM = "program", "cm_"
    PROGRAM_OUTPUT = "program_output", "cmo_"
    COMPACTION = "compaction", "cmp_"


_KIND_BY_PREFIX: Final = {kind.prefix: kind for kind in IdKind}


def new_token() -> str:
    """Return 32 random hexadecimal digits."""
    return uuid.uuid4().hex


def make_id(kind: IdKind | str, *, token: Callable[[], str] = new_token) -> str:
    """Return a new id of *kind*, such as ``msg_5d1f…``.

    Args:
        kind: the kind of object.
        token: generates the part after the prefix. Pass a custom function for repeatable ids.

    Raises:
        InvalidIdError: unknown kind, or *token* returns characters that an id cannot have.
    """
    known_kind = _known(kind)
    return check_id(known_kind.prefix + _checked(token(), known_kind), known_kind)


def check_id(id: str, kind: IdKind | str) -> str:
    """Return *id* if it has the form of OpenAI's ids of *kind*. Ids of other servers often differ.

    Raises:
        InvalidIdError: it has another prefix, nothing behind it, or characters other than letters, digits,
            ``_`` and ``-``.
    """
    known_kind = _known(kind)
    if not _checked(id, known_kind).startswith(known_kind.prefix):
        raise InvalidIdError(f"does not begin with {known_kind.prefix!r}", kind=known_kind)
    if not _TOKEN_PATTERN.fullmatch(id, len(known_kind.prefix)):
        raise InvalidIdError(
            f"no 1 to 200 letters, digits, _ or - follow {known_kind.prefix!r}", kind=known_kind
        )
    return id


def id_kind(id: str) -> IdKind | None:
    """Return the kind of *id* by its prefix, or ``None`` if the prefix is not one of OpenAI's."""
    prefix, underscore, _ = id.partition("_")
    return _KIND_BY_PREFIX.get(prefix + underscore)


def _known(kind: IdKind | str) -> IdKind:
    try:
        return IdKind(kind)  # type: ignore[call-arg]  # a word finds its member
    except ValueError:
        raise InvalidIdError("unknown kind of id", kind=str(kind)[:40]) from None


def _checked(text: str, kind: IdKind) -> str:
    if not isinstance(text, str):
        raise InvalidIdError(f"expected a string, got {type(text).__name__}", kind=kind)
    return text


# ------------------------------------------------------------------------------ vocabulary
# Closed vocabularies: the statuses, and other words that reading depends on.
#
# An unknown word is refused. With ``unknown="keep"`` the field is ``None`` and the word stays in ``extensions``.
# All other words of the API (models, service tiers, efforts, error codes …) are plain ``str``, because they change
# often
# and servers add more.


class ResponseStatus(StrEnum):
    """The status of a response. The last four are final."""

    QUEUED = "queued"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether nothing will follow."""
        return self.value not in PENDING


class IncompleteDetailsReason(StrEnum):
    """Why a response is incomplete."""

    MAX_OUTPUT_TOKENS = "max_output_tokens"
    MAX_MESSAGES = "max_messages"
    CONTENT_FILTER = "content_filter"
    STEERED = "steered"


class ItemStatus(StrEnum):
    """The status of a message, a reasoning item, a function call and most other items."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"


class CallStatus(StrEnum):
    """The status of a call of a server's tool, a patch, a program or a screenshot. Each uses some of the words."""

    IN_PROGRESS = "in_progress"
    SEARCHING = "searching"
    INTERPRETING = "interpreting"
    GENERATING = "generating"
    CALLING = "calling"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    FAILED = "failed"


class MessageRole(StrEnum):
    """The author of an input message."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    DEVELOPER = "developer"
