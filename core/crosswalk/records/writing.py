"""Lines of a log as :mod:`crosswalk.records` reads them, and how they are added to a file."""

from __future__ import annotations

import base64
import errno
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from crosswalk.types.json import dump_json
from crosswalk.types.response import ChatResponse

__all__ = ["append_line", "record_line"]

_APPENDING: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)


def record_line(
    body: bytes,
    *,
    status: int | None = None,
    provider: str | None = None,
    id: str | None = None,
    response: ChatResponse | None = None,
    more: Mapping[str, Any] | None = None,
) -> bytes:
    """The line of a log that :func:`read_record` reads as this recorded exchange, with its end.

    Args:
        body: the answer's bytes, which come back as they are.
        status: the HTTP status; one above 599, as some servers send, is written as 599. ``None`` where it is not known.
        provider: the provider id; ``None`` where it is not known.
        id: what the log calls it; ``None`` for no name.
        response: what it was mapped to; ``None`` not to write that.
        more: further fields, plain JSON, which readers leave as they are.

    Raises:
        CanonicalJSONError: the response holds what JSON cannot say.
        TypeError: one of the further fields does.
    """
    fields: dict[str, Any] = {"id": id, "provider": provider}
    fields["status"] = None if status is None or status < 100 else min(status, 599)
    try:
        fields["body"] = body.decode()
    except UnicodeDecodeError:
        fields["body_base64"] = base64.b64encode(body).decode()
    if response is not None:
        # It takes a layout of every type, which reading does not need.
        from crosswalk.codec.writing import to_jsonable

        fields["response"] = to_jsonable(response)
    taken = {"body", "body_base64", "response", *fields}
    beside = {name: value for name, value in (more or {}).items() if name not in taken}
    said = {name: value for name, value in fields.items() if value is not None}
    return dump_json({**said, **beside}) + b"\n"


def append_line(path: Path, line: bytes, *, mode: int = 0o666) -> None:
    """Add *line*, which has its end, to the log *path*: one write at the end of it, so that several processes may share it.

    The file is opened each time, so it can be moved away at any time. After half a line, which somebody left who was
    stopped, it begins one of its own.

    Args:
        path: the log; it is made where it is missing.
        line: as :func:`record_line` gives it.
        mode: who may read and write a log that is made, as for ``os.open``.

    Raises:
        OSError: it cannot be written, for example on a full disk. What was written of the line is one of its own.
    """
    file = os.open(path, _APPENDING, mode)
    try:
        status = os.fstat(file)
        if stat.S_ISREG(status.st_mode) and status.st_size:
            os.lseek(file, status.st_size - 1, os.SEEK_SET)
            if os.read(file, 1) != b"\n":
                line = b"\n" + line
        if os.write(file, line) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    finally:
        os.close(file)
