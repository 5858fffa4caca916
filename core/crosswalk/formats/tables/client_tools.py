"""The tools that a client runs and a vendor defines: what they take, for servers of other vendors, which get functions.

Facts: OpenAI's pages "Shell", "Local shell", "Apply patch"; Anthropic's "Bash tool", "Text editor tool", "Memory tool".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple


class ClientTool(NamedTuple):
    """A tool that the client runs.

    Attributes:
        description: its purpose.
        parameters: the JSON Schema of its arguments.
        call: the type of the items that call it, which is its name elsewhere, or ``""`` if the client names it.
    """

    description: str
    parameters: dict[str, Any]
    call: str = ""


def _object(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


_TEXT: Final = {"type": "string"}
_WHOLE: Final = {"type": "integer"}
_TEXTS: Final = {"type": "array", "items": _TEXT}
_RANGE: Final = {"type": "array", "items": _WHOLE, "minItems": 2, "maxItems": 2}


def _one_of(*words: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(words)}


CLIENT_TOOLS: Final[Mapping[str, Mapping[str, ClientTool]]] = {
    "messages": {
        "bash": ClientTool(
            "Run a command in a bash session that stays open.",
            _object(command=_TEXT, restart={"type": "boolean"}),
        ),
        "text_editor": ClientTool(
            "View, create and edit text files.",
            _object(
                "command",
                "path",
                command=_one_of("view", "create", "str_replace", "insert"),
                path=_TEXT,
                file_text=_TEXT,
                old_str=_TEXT,
                new_str=_TEXT,
                insert_line=_WHOLE,
                insert_text=_TEXT,
                view_range=_RANGE,
            ),
        ),
        "memory": ClientTool(
            "Keep notes in files below /memories, which later conversations can read.",
            _object(
                "command",
                command=_one_of("view", "create", "str_replace", "insert", "delete", "rename"),
                path=_TEXT,
                view_range=_RANGE,
                file_text=_TEXT,
                old_str=_TEXT,
                new_str=_TEXT,
                insert_line=_WHOLE,
                insert_text=_TEXT,
                old_path=_TEXT,
                new_path=_TEXT,
            ),
        ),
    },
    "responses": {
        "shell": ClientTool(
            "Run commands in a shell.",
            _object("commands", commands=_TEXTS, timeout_ms=_WHOLE, max_output_length=_WHOLE),
            "shell_call",
        ),
        "local_shell": ClientTool(
            "Run a command in a shell.",
            _object(
                "type",
                "command",
                "env",
                type=_one_of("exec"),
                command=_TEXTS,
                env={"type": "object", "additionalProperties": _TEXT},
                working_directory=_TEXT,
                timeout_ms=_WHOLE,
                user=_TEXT,
            ),
            "local_shell_call",
        ),
        "apply_patch": ClientTool(
            "Create, update or delete a file. A diff has the form of V4A.",
            _object(
                "type",
                "path",
                type=_one_of("create_file", "update_file", "delete_file"),
                path=_TEXT,
                diff=_TEXT,
            ),
            "apply_patch_call",
        ),
    },
}
"""The tools of each format, by type without a version."""
