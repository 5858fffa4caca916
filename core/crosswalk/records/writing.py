"""Writing of lines that :mod:`crosswalk.records` reads, and appending them to a file."""

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
    """Return the line of a log that :func:`read_record` reads as this recorded exchange, with its line end.

    Args:
        body: the bytes of the answer, which are read back unchanged.
        status: the HTTP status, or ``None`` if unknown. A status above 599, which some servers send, is written as 599.
        provider: the provider id, or ``None`` if unknown.
        id: the id of the exchange in the log, or ``None``.
        response: the mapped response, or ``None`` to omit it.
        more: further fields as plain JSON, which readers ignore.

    Raises:
        CanonicalJSONError: the response holds a value that JSON cannot represent.
        TypeError: a further field holds such a value.
    """
    fields: dict[str, Any] = {"id": id, "provider": provider}
    fields["status"] = None if status is None or status < 100 else min(status, 599)
    try:
        fields["body"] = body.decode()
    except UnicodeDecodeError:
        fields["body_base64"] = base64.b64encode(body).decode()
    if response is not None:
        # Imported here, because it builds a layout of every type, which reading does not need.
        from crosswalk.codec.canonical import to_jsonable

        fields["response"] = to_jsonable(response)
    taken = {"body", "body_base64", "response", *fields}
    extra = {name: value for name, value in (more or {}).items() if name not in taken}
    known = {name: value for name, value in fields.items() if value is not None}
    return dump_json({**known, **extra}) + b"\n"


def append_line(path: Path, line: bytes, *, mode: int = 0o666) -> None:
    """Append *line*, with its line end, to the log *path* in a single write, so that several processes may share the file.

    The file is opened each time, so you can move it away at any time. After an incomplete line, which a killed process may
    leave, *line* starts on a new line.

    Args:
        path: the log, created if it does not exist.
        line: a line of :func:`record_line`.
        mode: the permissions of a new log, as for ``os.open``.

    Raises:
        OSError: the line cannot be written, for example on a full disk. A partial line stays on its own line.
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
