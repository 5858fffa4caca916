"""Logs of answers, a line of JSON each: recorded exchanges, plain bodies, the files of results that batch APIs give.

One line is one of these, and it tells itself which:

- a recorded exchange: an object with the answer as ``body`` (a text or an object) or ``body_base64``, and perhaps
  ``status``, ``provider`` and ``id``;
- a result of OpenAI's Batch API, and of those who took over its form: the answer is ``response.body``;
- a result of Anthropic's Message Batches: the answer is ``result.message``, or an error ``result.error``;
- a line that was made of one of these, stored beside what it was mapped to: ``record`` is the line;
- any other object is itself the answer, a plain body.
"""

from __future__ import annotations

import base64
import errno
import os
import stat
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeAlias

import attrs
import orjson

from crosswalk.plain_errors import CrosswalkError
from crosswalk.text import brief, json_type_name
from crosswalk.types.json import dump_json, load_json
from crosswalk.types.response import ChatResponse
from crosswalk.wire.limits import MIB

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "BadRecord",
    "BodyPath",
    "Line",
    "Record",
    "RecordError",
    "append_line",
    "body_path",
    "read_record",
    "read_records",
    "record_line",
    "record_lines",
]

_LONGEST: Final = 256 * MIB
_APPENDING: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
_BOM: Final = b"\xef\xbb\xbf"

BodyPath: TypeAlias = tuple[str, ...]
"""The keys that lead from a line's object to its answer."""


class RecordError(CrosswalkError, ValueError):
    """A line of a log holds no answer; its message says why, and quotes nothing of it."""


@brief
@attrs.frozen(eq=False, repr=False, kw_only=True)
class Record:
    """One answer of a log.

    Attributes:
        body: the answer's bytes; written anew where the line holds an object.
        status: the HTTP status; ``None`` where the line does not say.
        provider: the provider id; ``None`` where the line does not say.
        id: what the log calls it; ``None`` when it has no name.
        fields: what a line that is written again holds, beside which ``response`` is free for what it was mapped to.
        is_plain: whether the whole line was taken for the answer.
        stored: what stands as ``response`` beside a record already; ``None`` where nothing does.
        number: the line's number, from 1.
        size: how many bytes the line takes, its end included.
    """

    body: bytes
    status: int | None = None
    provider: str | None = None
    id: str | None = None
    fields: dict[str, Any]
    is_plain: bool = False
    stored: Any = None
    number: int = 1
    size: int = 0


@brief
@attrs.frozen(eq=False, repr=False)
class BadRecord:
    """A line that holds no answer.

    Attributes:
        cause: why not, without anything of the line.
        number: the line's number, from 1.
        size: how many bytes it takes, its end included.
        line: its bytes without its end; empty where it is longer than any record may be, 256 MiB.
    """

    cause: str
    number: int
    size: int
    line: bytes = b""


@brief
@attrs.frozen(eq=False, repr=False)
class Line:
    """A line of a log, not read yet.

    Attributes:
        number: its number, from 1; empty lines count.
        size: how many bytes it takes, its end included.
        data: its bytes; ``None`` where it is longer than any record may be, 256 MiB.
    """

    number: int
    size: int
    data: bytes | None

    def read(self, path: BodyPath | None = None) -> Record | BadRecord:
        """The answer that it holds, or why it holds none; *path* is that of :func:`read_record`."""
        if self.data is None:
            return BadRecord(f"the line is longer than {_LONGEST} bytes", self.number, self.size)
        try:
            return read_record(self.data, path=path, number=self.number, size=self.size)
        except RecordError as error:
            return BadRecord(str(error), self.number, self.size, self.data.rstrip(b"\r\n"))


def record_lines(file: BinaryIO) -> Iterator[Line]:
    """The lines of *file*, one at a time, so that memory stays flat; empty ones are passed over.

    Args:
        file: opened for bytes; a byte order mark before its first line is passed over.
    """
    number = 0
    while line := file.readline(_LONGEST):
        number += 1
        size = len(line)
        if size == _LONGEST and not line.endswith(b"\n"):
            while rest := file.readline(_LONGEST):
                size += len(rest)
                if rest.endswith(b"\n"):
                    break
            yield Line(number, size, None)
            continue
        if number == 1:
            line = line.removeprefix(_BOM)
        if line.strip():
            yield Line(number, size, line)


def read_records(file: BinaryIO, *, path: BodyPath | None = None) -> Iterator[Record | BadRecord]:
    """The answers of *file*, a line each, and the lines that hold none; see :func:`record_lines`, :func:`read_record`."""
    return (line.read(path) for line in record_lines(file))


def read_record(
    line: bytes, *, path: BodyPath | None = None, number: int = 1, size: int | None = None
) -> Record:
    """The answer that one line of a log holds.

    Args:
        line: the line, with or without its end.
        path: where the answer stands, as :func:`body_path` gives it; ``None`` to find it out. With it, only an ``id``
            that is a text and a ``status`` that is an HTTP status count; all else in the line is the log's own business.
        number: the line's number in its log.
        size: how many bytes it takes there; ``None`` for what it has.

    Raises:
        RecordError: it is no JSON object, or holds no answer.
    """
    size = len(line) if size is None else size
    try:
        record = load_json(line)
    except orjson.JSONDecodeError as error:
        raise RecordError(f"not JSON: {error.msg}") from None
    if type(record) is not dict:
        raise RecordError(f"expected an object, got {json_type_name(record)}")
    stored = None
    if record.keys() == {"record", "response"} and type(record["record"]) is dict:
        stored, record = record["response"], record["record"]
    if path is not None:
        found = _at(record, path)
    elif "body" in record or "body_base64" in record:
        own = _exchange(record)
        return attrs.evolve(own, stored=record.get("response"), number=number, size=size)
    else:
        found = _openai_result(record) or _anthropic_result(record) or _plain(record)
    return attrs.evolve(found, stored=stored, number=number, size=size)


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


def body_path(text: str) -> BodyPath:
    """The path to the answer that *text* says: ``response.body``, also with a dot before it; a number counts in an array.

    Raises:
        ValueError: it names nothing.
    """
    keys = tuple(text.removeprefix(".").split("."))
    if not all(keys):
        raise ValueError("a path to the answer is keys with dots between them, such as response.body")
    return keys


def _exchange(record: dict[str, Any]) -> Record:
    return Record(
        body=_body(record.get("body"), record.get("body_base64")),
        status=_status(record.get("status")),
        provider=_text(record, "provider"),
        id=_text(record, "id"),
        fields=record,
    )


def _openai_result(record: dict[str, Any]) -> Record | None:
    """A line of the output or error file of a batch of OpenAI's, or of one who does it like that."""
    if "custom_id" not in record or "response" not in record:
        return None
    answer, error = record["response"], record.get("error")
    if (
        answer is None and type(error) is dict and error
    ):  # it was never sent: its batch expired, or was cancelled
        return Record(
            body=_body({"error": error}, None), id=_text(record, "custom_id"), fields={"record": record}
        )
    if type(answer) is not dict:
        raise RecordError("no answer")
    return Record(
        body=_body(answer.get("body"), None, "response.body"),
        status=_status(answer.get("status_code"), "response.status_code"),
        id=_text(record, "custom_id"),
        fields={"record": record},
    )


def _anthropic_result(record: dict[str, Any]) -> Record | None:
    """A line of the results of a Message Batch of Anthropic's."""
    result = record.get("result")
    if "custom_id" not in record or type(result) is not dict:
        return None
    answer = result.get("message", result.get("error"))
    if answer is None and _is_word(result.get("type")):  # canceled, or expired
        answer = {"type": "error", "error": {"type": result["type"]}}
        return Record(
            body=_body(answer, None),
            provider="anthropic",
            id=_text(record, "custom_id"),
            fields={"record": record},
        )
    if answer is None:
        raise RecordError("no answer")
    body = _body(answer, None, "result.message" if "message" in result else "result.error")
    return Record(body=body, id=_text(record, "custom_id"), fields={"record": record})


def _plain(record: dict[str, Any]) -> Record:
    return Record(body=_body(record, None), fields={"body": record}, is_plain=True)


def _at(record: dict[str, Any], path: BodyPath) -> Record:
    value: Any = record
    place = ".".join(path)
    for key in path:
        if type(value) is dict and key in value:
            value = value[key]
        elif type(value) is list and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            raise RecordError(f"no {place} in it")
    status, name = record.get("status"), record.get("id")
    return Record(
        body=_body(value, None, place),
        status=status if _is_status(status) else None,
        id=name if type(name) is str and name else None,
        fields={"record": record},
    )


def _body(body: object, encoded: object, place: str = "body") -> bytes:
    if type(encoded) is str:
        try:
            return base64.b64decode(encoded, validate=True)
        except ValueError:
            raise RecordError("body_base64: not base64") from None
    if encoded is not None:
        raise RecordError(f"body_base64: expected a string, got {json_type_name(encoded)}")
    if type(body) is str:
        return body.encode(errors="surrogatepass")
    if type(body) is not dict:
        raise RecordError(f"{place}: expected a string or an object, got {json_type_name(body)}")
    try:
        return dump_json(body)
    except TypeError:
        raise RecordError(f"{place}: nested too deeply") from None


def _status(status: Any, place: str = "status") -> int | None:
    if status is None or _is_status(status):
        return status  # type: ignore[no-any-return]
    raise RecordError(f"{place}: expected an HTTP status")


def _is_status(status: Any) -> bool:
    return type(status) is int and 100 <= status <= 599


def _is_word(value: object) -> bool:
    return type(value) is str and value.isidentifier() and len(value) <= 40


def _text(record: dict[str, Any], key: str) -> str | None:
    value = record.get(key)
    if value is None or type(value) is str:
        return value or None
    raise RecordError(f"{key}: expected a string, got {json_type_name(value)}")
