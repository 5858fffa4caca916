"""Reads the lines of a log: bytes in, a record or the reason why there is none out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, BinaryIO, Final

import attrs
import orjson

from crosswalk.plain_errors import ConfigurationError
from crosswalk.records.answers import answer_of, plain_body
from crosswalk.records.facts import Exchange, RecordError, read_facts
from crosswalk.records.layout import Layout, layout_of
from crosswalk.records.paths import Path
from crosswalk.text import brief, json_type_name
from crosswalk.types.json import load_json
from crosswalk.wire.limits import MIB

__all__ = ["BadRecord", "Line", "Record", "read_entry", "read_record", "read_records", "record_lines"]

_LONGEST: Final = 256 * MIB
_BOM: Final = b"\xef\xbb\xbf"
_NOTHING: Final[Mapping[str, Path]] = MappingProxyType({})


@brief
@attrs.frozen(eq=False, repr=False, kw_only=True)
class Record(Exchange):
    """One answer of a log, and what the log says beside it.

    Attributes:
        body: the answer's bytes; written anew where the line holds an object.
        layout: the name of the line's layout; ``None`` for a plain body, the whole line of which is the answer.
        fields: what a line that is written again holds, beside which ``response`` is free for what it was mapped to.
        stored: what stands as ``response`` beside a record already; ``None`` where nothing does.
        number: the line's number, from 1.
        size: how many bytes the line takes, its end included.
    """

    body: bytes
    layout: str | None = None
    fields: dict[str, Any]
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

    def read(self, layout: Layout | None = None) -> Record | BadRecord:
        """The answer that it holds, or why it holds none; *layout* is that of :func:`read_record`."""
        if self.data is None:
            return BadRecord(f"the line is longer than {_LONGEST} bytes", self.number, self.size)
        try:
            return read_record(self.data, layout=layout, number=self.number, size=self.size)
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
            while more := file.readline(_LONGEST):
                size += len(more)
                if more.endswith(b"\n"):
                    break
            yield Line(number, size, None)
            continue
        if number == 1:
            line = line.removeprefix(_BOM)
        if line.strip():
            yield Line(number, size, line)


def read_records(file: BinaryIO, *, layout: Layout | None = None) -> Iterator[Record | BadRecord]:
    """The answers of *file*, a line each, and the lines that hold none; see :func:`record_lines`, :func:`read_record`."""
    return (line.read(layout) for line in record_lines(file))


def read_record(
    line: bytes,
    *,
    layout: Layout | None = None,
    keep: Mapping[str, Path] = _NOTHING,
    number: int = 1,
    size: int | None = None,
) -> Record:
    """The exchange that one line of a log holds.

    Args:
        line: the line, with or without its end.
        layout: where its facts stand; ``None`` for the shipped layout that it has.
        keep: paths of further values to keep, by name.
        number: the line's number in its log.
        size: how many bytes it takes there; ``None`` for what it has.

    Raises:
        RecordError: it is not a JSON object, or holds no answer.
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
    if layout is None:
        try:
            layout = layout_of(record)
        except ConfigurationError as error:
            raise RecordError(str(error)) from None
    if layout is None:
        return Record(
            body=plain_body(record), fields={"body": record}, stored=stored, number=number, size=size
        )
    fields = {"record": record}
    if layout.name == "exchange":
        fields, stored = record, record.get("response")
    return read_entry(record, layout, keep=keep, fields=fields, stored=stored, number=number, size=size)


def read_entry(
    record: dict[str, Any], layout: Layout, *, keep: Mapping[str, Path] = _NOTHING, **more: Any
) -> Record:
    """The exchange that *record*, an object of a log or the columns of a row, holds by *layout*.

    Args:
        record: the object.
        layout: where its facts stand.
        keep: paths of further values to keep, by name.
        more: further attributes of the :class:`Record`.

    Raises:
        RecordError: it holds no answer, or a strict field cannot be read; its ``exchange`` has the rest.
    """
    facts = read_facts(record, layout, keep)
    try:
        answer = answer_of(record, layout)
    except RecordError as error:
        raise RecordError(str(error), Exchange(**facts)) from None
    if answer.provider is not None:
        facts["provider"] = answer.provider
    facts["is_finish_unknown"] = answer.is_finish_unknown
    more.setdefault("fields", record)
    return Record(body=answer.body, layout=layout.name, **facts, **more)
