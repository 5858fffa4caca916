"""The JSON of a session: written, read, and saved to a file."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import attrs
import orjson

from crosswalk.codec import to_jsonable
from crosswalk.codec.converters import shared_converter, transform_error
from crosswalk.codec.layout import cannot
from crosswalk.errors import ResponseValidationError
from crosswalk.request import Turn
from crosswalk.text import json_type_name
from crosswalk.types.json import dump_json, load_json
from crosswalk.types.message import ChatMessage
from crosswalk.types.response import ChatResponse

SESSION_FORMAT_VERSION: Final = "1.0"
"""The version of a session's JSON, as ``major.minor``. A reader of a major version reads all its minor versions."""

_READABLE_VERSION: Final = re.compile(r"1\.(?:0|[1-9][0-9]{0,8})")


@attrs.frozen
class TurnDocument:
    """A turn in JSON. Exactly one of the two fields is set."""

    message: ChatMessage | None = None
    response: ChatResponse | None = None

    def __attrs_post_init__(self) -> None:
        if (self.message is None) == (self.response is None):
            raise ResponseValidationError("a turn is either a message or a response")

    @property
    def turn(self) -> Turn:
        """The message or the response."""
        turn = self.message if self.response is None else self.response
        assert turn is not None
        return turn


@attrs.frozen
class SessionDocument:
    """A session in JSON."""

    id: str = attrs.field(validator=attrs.validators.min_len(1))
    created: datetime
    turns: list[TurnDocument]
    refused_lengths: dict[str, int] = attrs.field(factory=dict)


def write_session(session: Any, turns: Iterable[Turn], *, indent: bool = False) -> bytes:
    """Return *session*, a ``ChatSession``, with *turns* as JSON, indented by two spaces a level if *indent*.

    Raises:
        CanonicalJSONError: a turn holds a value that JSON cannot represent, or is nested too deeply.
    """
    document = {
        "format_version": SESSION_FORMAT_VERSION,
        "id": session.id,
        "created": session.created,
        "turns": list(map(_turn_fields, turns)),
        **({"refused_lengths": session.refused_lengths} if session.refused_lengths else {}),
    }
    session_id: object = session.id  # callers may set it to anything
    if not isinstance(session_id, str):
        raise cannot("write", type(session), ["the id is not a string @ $"])
    return _dumped(document, type(session), orjson.OPT_UTC_Z | (orjson.OPT_INDENT_2 if indent else 0))


def write_turn(turn: Turn) -> bytes:
    """Return one turn of a session as JSON.

    Raises:
        CanonicalJSONError: it holds a value that JSON cannot represent, or is nested too deeply.
    """
    return _dumped(_turn_fields(turn), type(turn), orjson.OPT_UTC_Z)


def _turn_fields(turn: Turn) -> dict[str, Any]:
    return {"response" if isinstance(turn, ChatResponse) else "message": to_jsonable(turn)}


def _dumped(document: object, cls: type, option: int) -> bytes:
    try:
        return dump_json(document, option=option)
    except TypeError as error:
        # A turn at the depth limit is too deep inside a session. An id may contain an unpaired surrogate.
        raise cannot("write", cls, [f"{error} @ $"]) from None


def read_document(data: bytes | str, cls: type, turns: Iterable[bytes] | None = None) -> SessionDocument:
    """Read the JSON of a session. Unknown keys are ignored.

    Args:
        data: the JSON.
        cls: the class that errors name.
        turns: the JSON of each turn, if they are not in *data*.

    Raises:
        CanonicalJSONError: *data* is not JSON, has another format version, or is not a session.
    """
    try:
        payload = load_json(data)
        if turns is not None and isinstance(payload, dict):
            payload["turns"] = list(map(load_json, turns))
    except orjson.JSONDecodeError as error:
        raise cannot("read", cls, [f"not JSON ({error.msg} at character {error.pos}) @ $"]) from None
    version = payload.get("format_version", "1.0") if isinstance(payload, dict) else "1.0"
    if not isinstance(version, str):
        raise cannot("read", cls, [f"expected string, got {json_type_name(version)} @ $.format_version"])
    if not _READABLE_VERSION.fullmatch(version):
        problem = f"unknown format version {version[:40]!r} (readable: 1.x)"
        raise cannot("read", cls, [f"{problem} @ $.format_version"])
    try:
        return shared_converter().structure(payload, SessionDocument)
    except Exception as error:
        problems = transform_error(error)
    # Raised outside the handler, so that the error has no context, which would quote content.
    raise cannot("read", cls, problems)


def write_file(file: Path, data: bytes) -> None:
    """Write *data* to *file*, which afterwards is complete or, if writing fails, unchanged."""
    file = Path(os.path.realpath(file))
    handle, name = tempfile.mkstemp(prefix=f".{file.name[:100]}.", dir=file.parent)
    try:
        with os.fdopen(handle, "wb") as opened:
            opened.write(data)
        if file.exists():
            shutil.copymode(file, name)
        os.replace(name, file)
    except BaseException:
        os.unlink(name)
        raise
