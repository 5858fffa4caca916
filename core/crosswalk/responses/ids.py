"""Ids with prefixes: generating and checking them."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from enum import StrEnum
from typing import Final, Self

from crosswalk.responses.errors import InvalidIdError

_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{1,200}")


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


_KINDS: Final = {kind.prefix: kind for kind in IdKind}


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
    known = _known(kind)
    return check_id(known.prefix + _checked(token(), known), known)


def check_id(id: str, kind: IdKind | str) -> str:
    """Return *id* if it has the form of OpenAI's ids of *kind*. Ids of other servers often differ.

    Raises:
        InvalidIdError: it has another prefix, nothing behind it, or characters other than letters, digits,
            ``_`` and ``-``.
    """
    known = _known(kind)
    if not _checked(id, known).startswith(known.prefix):
        raise InvalidIdError(f"does not begin with {known.prefix!r}", kind=known)
    if not _TOKEN.fullmatch(id, len(known.prefix)):
        raise InvalidIdError(f"no 1 to 200 letters, digits, _ or - follow {known.prefix!r}", kind=known)
    return id


def id_kind(id: str) -> IdKind | None:
    """Return the kind of *id* by its prefix, or ``None`` if the prefix is not one of OpenAI's."""
    prefix, underscore, _ = id.partition("_")
    return _KINDS.get(prefix + underscore)


def _known(kind: IdKind | str) -> IdKind:
    try:
        return IdKind(kind)  # type: ignore[call-arg]  # a word finds its member
    except ValueError:
        raise InvalidIdError("unknown kind of id", kind=str(kind)[:40]) from None


def _checked(text: str, known: IdKind) -> str:
    if not isinstance(text, str):
        raise InvalidIdError(f"expected a string, got {type(text).__name__}", kind=known)
    return text
