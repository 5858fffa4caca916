"""Reading of the lines of a log: bytes in, and a record or an error out."""

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
from crosswalk.records.sessions import exchange_lines
from crosswalk.text import brief, json_type_name
from crosswalk.types.json import load_json
from crosswalk.wire.framing import MIB

_LONGEST: Final = 256 * MIB
_BOM: Final = b"\xef\xbb\xbf"
_NOTHING: Final[Mapping[str, Path]] = MappingProxyType({})


@brief
@attrs.frozen(eq=False, repr=False, kw_only=True)
class Record(Exchange):
    """An answer in a log, and the facts that the log states about it.

    Attributes:
        body: the bytes of the answer, serialized again if the line holds an object. Empty if the log does not store it.
        layout: the name of the line's layout, or ``None`` for a plain body, which is the whole line.
        fields: the contents of the line when it is written again, with ``response`` free for the mapped response.
        stored: the existing ``response`` of the record, or ``None``.
        number: the number of the line, from 1.
        size: the size of the line in bytes, with its line end.
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
    """A line that contains no answer.

    Attributes:
        cause: the reason, without quoting the line.
        number: the number of the line, from 1.
        size: its size in bytes, with its line end.
        line: its bytes without the line end, or ``b""`` if it exceeds the maximum of 256 MiB.
        exchange: the facts of the line, or ``None`` if it cannot be read at all.
    """

    cause: str
    number: int
    size: int
    line: bytes = b""
    exchange: Exchange | None = None


@brief
@attrs.frozen(eq=False, repr=False)
class Line:
    """A line of a log that is not parsed yet.

    Attributes:
        number: its number, from 1. Empty lines count.
        size: its size in bytes, with its line end.
        data: its bytes, or ``None`` if it exceeds the maximum of 256 MiB.
    """

    number: int
    size: int
    data: bytes | None

    def read(self, layout: Layout | None = None) -> Record | BadRecord:
        """Return the answer in the line, or the reason for its absence. *layout* is that of :func:`read_record`."""
        if self.data is None:
            return BadRecord(f"the line is longer than {_LONGEST} bytes", self.number, self.size)
        try:
            return read_record(self.data, layout=layout, number=self.number, size=self.size)
        except RecordError as error:
            line = self.data.rstrip(b"\r\n")
            return BadRecord(str(error), self.number, self.size, line, error.exchange)


def record_lines(file: BinaryIO) -> Iterator[Line]:
    """Yield the lines of *file*, without empty ones, one at a time to bound memory.

    The lines of a session file of Claude Code or Codex are joined: you get one for each answer of the model.

    Args:
        file: a binary file. A byte order mark at its beginning is skipped.
    """
    return exchange_lines(_lines(file))


def _lines(file: BinaryIO) -> Iterator[Line]:
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
    """Yield the answers in *file*, one for each line, and the lines without an answer.

    See :func:`record_lines` and :func:`read_record`.
    """
    return (line.read(layout) for line in record_lines(file))


def read_record(
    line: bytes,
    *,
    layout: Layout | None = None,
    keep: Mapping[str, Path] = _NOTHING,
    number: int = 1,
    size: int | None = None,
) -> Record:
    """Return the exchange in one line of a log.

    If the log states facts such as token counts without storing the answer, the record has no body and ``has_answer`` is
    false.

    Args:
        line: the line, with or without its line end.
        layout: the layout that locates the facts, or ``None`` to detect one of the included layouts.
        keep: the paths of further values to keep, by name.
        number: the number of the line in its log.
        size: its size in the log in bytes, or ``None`` for the length of *line*.

    Raises:
        RecordError: the line is not a JSON object, or contains no answer.
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
    """Return the exchange in *record*, an object of a log or the columns of a row.

    Args:
        record: the object.
        layout: the layout that locates the facts.
        keep: the paths of further values to keep, by name.
        more: further attributes of the :class:`Record`.

    Raises:
        RecordError: the record has no answer, or a strict field is invalid. Its ``exchange`` has the other facts.
    """
    facts = read_facts(record, layout, keep)
    try:
        answer = answer_of(record, layout, facts)
    except RecordError as error:
        raise RecordError(str(error), Exchange(**facts)) from None
    if answer.provider is not None:
        facts["provider"] = answer.provider
    facts["has_answer"] = answer.body != b"" or not layout.states
    facts["is_finish_unknown"] = answer.is_finish_unknown or facts.get("is_finish_unknown", False)
    more.setdefault("fields", record)
    return Record(body=answer.body, layout=layout.name, **facts, **more)
