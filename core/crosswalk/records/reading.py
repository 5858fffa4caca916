"""The lines of a log, read into records or errors, and written; sessions of coding agents become lines first."""

from __future__ import annotations

import base64
import errno
import io
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path as FilePath
from types import MappingProxyType
from typing import Any, BinaryIO, Final, TypeAlias

import attrs
import orjson

from crosswalk.plain_errors import ConfigurationError
from crosswalk.records.answers import answer_of, plain_body
from crosswalk.records.facts import LoggedExchange, NotAnExchangeError, RecordError, kept_values, read_facts
from crosswalk.records.files import (
    BOM,
    HEAD,
    LONGEST,
    PACKED,
    LogFileError,
    Unpacked,
    log_kind,
    log_rows,
)
from crosswalk.records.layout import Layout, Path, entries_of, layout_of, layouts, verdict_of
from crosswalk.text import brief, json_type_name
from crosswalk.types.json import dump_json, load_json
from crosswalk.types.response import ChatResponse

# -------------------------------------------------------------------------------- sessions
# Session files of coding agents: Claude Code and Codex.
#
# Such a file has a line for each step of a conversation, and one answer of the model takes several lines. This module
# joins
# them into one line for each answer, which has the layout ``claude_code`` or ``codex``. Lines of the user, of tools and
# of
# the agent itself are left out.


_Object: TypeAlias = dict[str, Any]

_MAX_HEAD_LINES: Final = 20
_TYPES_WITHOUT_EXCHANGE: Final = {"summary", "file-history-snapshot"}
"""Lines of Claude Code that are sometimes alone in a file."""
_CODEX_LINE_TYPES: Final = {"session_meta", "turn_context", "response_item", "event_msg", "compacted"}
_ERROR_TYPES: Final = {
    "authentication_failed": "authentication_error",
    "invalid_request": "invalid_request_error",
    "rate_limit": "rate_limit_error",
    "server_error": "api_error",
}
"""The types of errors in Anthropic's API, by Claude Code's names for them."""
_SESSION_FACTS: Final = ("id", "forked_from_id", "cwd", "originator", "cli_version", "source", "git")
_TURN_FACTS: Final = ("turn_id", "cwd", "model", "effort")
"""The facts that are repeated with each answer of Codex. Others, such as the instructions, are long."""


def is_session(lines: Iterable[bytes]) -> bool:
    """Whether the first of *lines* are those of a session file, or contain several exchanges each."""
    records = [_object(line) for line, _ in zip(lines, range(_MAX_HEAD_LINES), strict=False)]
    return _joiner(records) is not None or (bool(records) and _entries(records[0]) is not None)


def exchange_lines(lines: Iterator[Line]) -> Iterator[Line]:
    """Yield *lines*, or a line for each answer if they are those of a session file or contain several.

    Damaged lines are not left out. Ordinary logs are decided by their first line, so that a live log is not delayed.
    """
    first_lines: list[Line] = []
    for line in lines:
        first_lines.append(line)
        if not _is_heading(_object(line.data)) or len(first_lines) == _MAX_HEAD_LINES:
            break
    records = [_object(line.data) for line in first_lines]
    join = _joiner(records)
    all_lines = chain(first_lines, lines)
    if join is None and records and _entries(records[0]) is not None:
        join = _entry_lines
    return all_lines if join is None else join(all_lines)


def _entries(record: _Object | None) -> list[Any] | None:
    return None if record is None or _has_layout(record) else entries_of(record)


def _has_layout(record: _Object) -> bool:
    try:
        return layout_of(record) is not None
    except ConfigurationError:  # it fits several
        return True


def _entry_lines(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield a line for each object that *lines* contain, such as the spans of an OTLP file. Other lines stay."""
    for line in lines:
        entries = _entries(_object(line.data))
        if entries is None:
            yield line
            continue
        for index, entry in enumerate(entries):
            yield Line(line.number, line.size if index == 0 else 0, dump_json(entry))


def _joiner(records: list[_Object | None]) -> Callable[[Iterable[Line]], Iterator[Line]] | None:
    """Return the function that joins the lines of a file that begins with *records*, or ``None`` if it is not a session."""
    for record in records:
        if record is None:
            return None
        if record.get("type") in _CODEX_LINE_TYPES and type(record.get("payload")) is dict:
            return _codex_lines
        if type(record.get("type")) is str and {"uuid", "sessionId", "timestamp"} <= record.keys():
            return _claude_code_lines
        if _is_of_kong(record):
            return _kong_lines
        if not _is_heading(record):
            return None
    types = {record["type"] for record in records if record is not None}
    return _claude_code_lines if types and types <= _TYPES_WITHOUT_EXCHANGE else None


def _is_of_kong(record: _Object) -> bool:
    return "started_at" in record and type(record.get("latencies")) is dict


_PROXIES: Final = ("proxy", "ai-proxy", "ai-proxy-advanced")


def _kong_lines(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield a line for each call of a model in *lines*, since the plugins of Kong may make several for one request.

    Status and duration of the request are those of its proxy alone.
    """
    for line in lines:
        record = _object(line.data) or {}
        plugins = record.get("ai")
        calls = {
            name: call
            for name, call in (plugins.items() if type(plugins) is dict else ())
            if type(call) is dict and type(call.get("usage")) is dict
        }
        if len(calls) < 2 and calls.keys() <= {*_PROXIES}:
            yield line
            continue
        size = line.size
        for name, call in calls.items():
            left_out = () if name in _PROXIES else ("response", "latencies")
            facts = {key: value for key, value in record.items() if key not in left_out}
            yield Line(line.number, size, dump_json({**facts, "ai": {"proxy": call}}))
            size = 0


def _is_heading(record: _Object | None) -> bool:
    """Whether *record* may be a line of Claude Code that belongs to no message, such as a title."""
    if record is None or type(record.get("type")) is not str or "uuid" in record:
        return False
    return not record.keys().isdisjoint({"sessionId", "leafUuid", "snapshot"})


def _object(line: bytes | None) -> _Object | None:
    try:
        record = None if line is None else load_json(line)
    except ValueError:
        return None
    return record if type(record) is dict else None


@attrs.define
class _Joined:
    """The lines of one answer.

    Attributes:
        line: the first of them.
        size: their bytes, and those of the lines before that were left out.
        record: the object of the joined line.
    """

    line: Line
    size: int
    record: _Object

    def as_line(self) -> Line:
        return attrs.evolve(self.line, size=self.size, data=dump_json(self.record))


# ---------------------------------------------------------------------------------------- Claude Code


def _claude_code_lines(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield a line for each answer, with the content of all lines of the same message, and a line for each failed request.

    The lines of different messages may be mixed, because agents run at the same time.
    """
    joined_by_message: dict[str, _Joined] = {}
    left_out_bytes = 0
    for line in lines:
        record = _object(line.data)
        if record is None:
            yield line
            continue
        part = _answer_or_error(record)
        if part is None:
            left_out_bytes += line.size
            continue
        message = part["message"]
        key = str(message.get("id") or record.get("uuid"))
        if key not in joined_by_message:
            joined_by_message[key] = _Joined(line, line.size + left_out_bytes, part)
            left_out_bytes = 0
        else:
            joined_by_message[key].size += line.size
            _add_message(joined_by_message[key].record["message"], message)
    for one in joined_by_message.values():
        _complete(one.record)
        yield one.as_line()


def _answer_or_error(record: _Object) -> _Object | None:
    """Return *record* if its message is a model's, or an error in its place, or ``None``."""
    message, kind = record.get("message"), record.get("type")
    if kind == "system" and record.get("subtype") == "api_error":  # an attempt that was repeated
        error = record.get("error")
        return None if type(error) is not dict else {**record, **_failed_attempt(error)}
    if kind != "assistant" or type(message) is not dict:
        return None
    if record.get("isApiErrorMessage"):
        error_word = record.get("error")
        error = {
            "type": _ERROR_TYPES.get(error_word, error_word) if type(error_word) is str else "api_error",
            "message": _text(message),
        }
        return {**record, "message": {"type": "error", "error": error}}
    return None if message.get("model") == "<synthetic>" else {**record, "message": {**message}}


def _failed_attempt(error: _Object) -> _Object:
    body, cause = error.get("error"), error.get("cause")
    if type(body) is not dict:  # no answer came
        code = cause.get("code") if type(cause) is dict else None
        body = {"type": "api_error", "message": str(error.get("message") or code or "")}
    if body.get("type") != "error":
        body = {"type": "error", "error": body}
    return {"message": body, "apiErrorStatus": error.get("status")}


def _text(message: _Object) -> str:
    blocks = message.get("content")
    texts = [block.get("text") for block in blocks if type(block) is dict] if type(blocks) is list else []
    return "".join(text for text in texts if type(text) is str)


def _add_message(message: _Object, next_part: _Object) -> None:
    """Add the next part of a message. A block that is there already counts once, because sessions are copied."""
    content, blocks = message.get("content"), next_part.get("content")
    if type(content) is list and type(blocks) is list:
        message["content"] = content + [block for block in blocks if block not in content]
    for name in ("stop_reason", "stop_sequence", "usage"):
        if next_part.get(name) is not None:
            message[name] = next_part[name]


def _complete(record: _Object) -> None:
    """Make up the finish reason of an answer that some versions of Claude Code do not store."""
    message = record["message"]
    if message.get("type") != "error" and message.get("stop_reason") is None:
        content = message.get("content")
        last_block = content[-1] if type(content) is list and content else None
        is_call = type(last_block) is dict and last_block.get("type") == "tool_use"
        message["stop_reason"] = "tool_use" if is_call else "end_turn"
        record["isFinishUnknown"] = True


# ---------------------------------------------------------------------------------------------- Codex


class _Codex:
    """The state of a session of Codex between two of its lines."""

    def __init__(self) -> None:
        self.session: _Object = {}
        self.turn: _Object = {}
        self.items: list[_Object] = []
        self.first: tuple[Line, _Object] | None = None
        self.total: Any = None
        self.error: Any = None
        self.size = 0

    def take(self, line: Line, record: _Object, payload: _Object) -> Iterator[Line]:
        """Yield the lines that end with *line*, whose object is *record*."""
        self.size += line.size
        kind, payload_type = record.get("type"), payload.get("type")
        if kind == "session_meta" and not self.session:  # a fork repeats that of its origin
            self.session = payload
        elif kind == "turn_context":
            yield from self.end()
            self.turn, self.error = payload, None
        elif kind == "response_item" and payload_type == "message" and payload.get("role") != "assistant":
            yield from self.end()
        elif kind == "response_item" and not str(payload_type).endswith("_output"):
            self.first = self.first or (line, record)
            self.items.append(payload)
        elif kind == "event_msg" and payload_type == "token_count":
            info = payload.get("info")
            if type(info) is dict and info.get("total_token_usage") != self.total:  # else it is repeated
                self.total = info.get("total_token_usage")
                self.first = self.first or (line, record)
                yield from self.end(info.get("last_token_usage"))
        elif kind == "event_msg" and payload_type in ("error", "task_complete"):
            error = payload if payload_type == "error" else payload.get("error")
            if type(error) is dict and error.get("message") != self.error:
                self.error = error.get("message")
                yield from self.end()
                yield self._line(line, record, *_codex_error(error))

    def end(self, usage: Any = None) -> Iterator[Line]:
        """Yield the answer whose items have come, with *usage* if the model has completed it."""
        if self.first is None:
            return
        response = {
            "object": "response",
            "model": self.turn.get("model"),
            "status": "completed",
            "output": self.items,
        }
        if type(usage) is dict:
            response["usage"] = _codex_usage(usage)
        extra_fields = {} if "usage" in response else {"is_finish_unknown": True}
        yield self._line(*self.first, response, extra_fields)
        self.items, self.first = [], None

    def _line(self, line: Line, record: _Object, response: _Object, extra_fields: _Object) -> Line:
        joined_record = {
            "timestamp": record.get("timestamp"),
            "session_meta": {name: self.session[name] for name in _SESSION_FACTS if name in self.session},
            "turn_context": {name: self.turn[name] for name in _TURN_FACTS if name in self.turn},
            "model_provider": self.session.get("model_provider"),
            "response": {name: value for name, value in response.items() if value is not None},
            **extra_fields,
        }
        size, self.size = self.size, 0
        return _Joined(line, size, joined_record).as_line()


def _codex_lines(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield a line for each answer: its items up to the event with its token counts. Errors have a line too."""
    session = _Codex()
    for line in lines:
        record = _object(line.data)
        payload = None if record is None else record.get("payload")
        if record is None or type(payload) is not dict:
            yield line
        else:
            yield from session.take(line, record, payload)
    yield from session.end()


def _codex_usage(usage: _Object) -> _Object:
    """Return *usage* in the words of the Responses API."""
    return {
        "input_tokens": usage.get("input_tokens"),
        "input_tokens_details": {"cached_tokens": usage.get("cached_input_tokens")},
        "output_tokens": usage.get("output_tokens"),
        "output_tokens_details": {"reasoning_tokens": usage.get("reasoning_output_tokens")},
        "total_tokens": usage.get("total_tokens"),
    }


def _codex_error(error: _Object) -> tuple[_Object, _Object]:
    """Return the body of an error, and its HTTP status if it is known."""
    info = error.get("codex_error_info")
    code, details = next(iter(info.items()), (None, None)) if type(info) is dict else (info, None)
    status = details.get("http_status_code") if type(details) is dict else None
    return {"error": {"message": str(error.get("message") or ""), "code": code}}, {"status": status}


# --------------------------------------------------------------------------------- reading
# Reading of the lines of a log: bytes in, and a record or an error out.


_LONGEST: Final = LONGEST
_NO_PATHS: Final[Mapping[str, Path]] = MappingProxyType({})


@brief
@attrs.frozen(eq=False, repr=False, kw_only=True)
class Record(LoggedExchange):
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
        is_exchange: whether it should contain one. If not, *cause* says what it is, such as the span of a tool.
    """

    cause: str
    number: int
    size: int
    line: bytes = b""
    exchange: LoggedExchange | None = None
    is_exchange: bool = True


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

    def read(
        self, layout: Layout | None = None, keep: Mapping[str, Path] = MappingProxyType({})
    ) -> Record | BadRecord:
        """Return the answer in the line, or the reason for its absence. The arguments are those of :func:`read_record`."""
        if self.data is None:
            return BadRecord(f"the line is longer than {_LONGEST} bytes", self.number, self.size)
        try:
            return read_record(self.data, layout=layout, keep=keep, number=self.number, size=self.size)
        except RecordError as error:
            line = self.data.rstrip(b"\r\n")
            return BadRecord(str(error), self.number, self.size, line, error.exchange)
        except NotAnExchangeError as error:
            line = self.data.rstrip(b"\r\n")
            return BadRecord(str(error), self.number, self.size, line, is_exchange=False)


def record_lines(file: BinaryIO, path: str | None = None) -> Iterator[Line]:
    """Yield the lines of *file*, without empty ones, one at a time to bound memory.

    The lines of a session file of Claude Code or Codex are joined: you get one for each answer of the model. The content
    decides how the file is read. It may be packed, and it may be a JSON document, CSV, SQLite, Parquet, a HAR file or a VCR
    cassette. You get a line for each of its objects.

    Args:
        file: a binary file. A byte order mark at its beginning is skipped.
        path: the path of the file, which SQLite needs.

    Raises:
        LogFileError: the file is damaged, or its kind needs a package. Everything before the damage was yielded.
    """
    if not file.seekable() and not hasattr(file, "peek"):
        return exchange_lines(_lines(file))
    kind = log_kind(file)
    if kind in PACKED:
        return _unpacked_lines(file, kind)
    rows = log_rows(file, path)
    return exchange_lines(_lines(file) if rows is None else _row_lines(rows))


def _unpacked_lines(file: BinaryIO, kind: str) -> Iterator[Line]:
    unpacked = Unpacked(file, kind)
    yield from record_lines(io.BufferedReader(unpacked, HEAD))
    if unpacked.fault:
        raise LogFileError(unpacked.fault)


def _row_lines(rows: Iterator[bytes]) -> Iterator[Line]:
    return (Line(number, len(row), row) for number, row in enumerate(rows, 1))


def _lines(file: BinaryIO) -> Iterator[Line]:
    number = 0
    while line := file.readline(_LONGEST):
        number += 1
        size = len(line)
        if size == _LONGEST and not line.endswith(b"\n"):
            while next_piece := file.readline(_LONGEST):
                size += len(next_piece)
                if next_piece.endswith(b"\n"):
                    break
            yield Line(number, size, None)
            continue
        if number == 1:
            line = line.removeprefix(BOM)
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
    keep: Mapping[str, Path] = _NO_PATHS,
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
        NotAnExchangeError: the line is something else than an exchange with a model.
    """
    size = len(line) if size is None else size
    try:
        record = load_json(line)
    except orjson.JSONDecodeError as error:
        raise RecordError(f"not JSON: {error.msg}") from None
    if type(record) is not dict:
        raise RecordError(f"expected an object, got {json_type_name(record)}")
    stored_response = None
    if record.keys() == {"record", "response"} and type(record["record"]) is dict:
        stored_response, record = record["response"], record["record"]
    if layout is None or layout.is_fallback:
        try:
            detected_layout = layout_of(record)
        except ConfigurationError as error:
            raise RecordError(str(error)) from None
        is_extended = layout is not None and layout.name == "custom"
        if layout is None or (
            detected_layout is not None and not (detected_layout.name == "exchange" and is_extended)
        ):
            layout = detected_layout
    if layout is None:
        if entries_of(record) is not None:
            raise RecordError("an object with several exchanges, among lines with one each")
        kept_texts = kept_values(record, keep)
        return Record(
            body=plain_body(record),
            fields={"body": record},
            stored=stored_response,
            number=number,
            size=size,
            kept=kept_texts,
        )
    fields = {"record": record}
    if layout.name == "exchange":
        fields, stored_response = record, record.get("response")
    return read_entry(
        record, layout, keep=keep, fields=fields, stored=stored_response, number=number, size=size
    )


def read_entry(
    record: dict[str, Any], layout: Layout, *, keep: Mapping[str, Path] = _NO_PATHS, **record_fields: Any
) -> Record:
    """Return the exchange in *record*, an object of a log or the columns of a row.

    Args:
        record: the object.
        layout: the layout that locates the facts.
        keep: the paths of further values to keep, by name.
        record_fields: further attributes of the :class:`Record`.

    Raises:
        RecordError: the record has no answer, or a strict field is invalid. Its ``exchange`` has the other facts.
        NotAnExchangeError: the record is something else than an exchange with a model.
    """
    if (reason := layout.why_no_exchange(record)) is not None:
        raise NotAnExchangeError(reason)
    facts = read_facts(record, layout, keep)
    is_stated = "model" in facts or facts.get("cost") or any(facts.get("tokens", {}).values())
    if not layout.has_answers and not is_stated and not verdict_of(layout.failed, record):
        raise NotAnExchangeError("no model call, since it has neither a model nor counts")
    try:
        answer = answer_of(record, layout, facts)
    except RecordError as error:
        raise RecordError(str(error), LoggedExchange(**facts)) from None
    if answer.provider is not None:
        facts["provider"] = answer.provider
    facts["has_answer"] = answer.body != b"" or not layout.states
    if answer.embedded is not None:  # no message, but with a model and counts of its own
        facts["has_answer"] = False
        for name, value in read_facts(answer.embedded, layouts()["embeddings"], _NO_PATHS).items():
            facts.setdefault(name, value)
    facts["is_finish_unknown"] = answer.is_finish_unknown or facts.get("is_finish_unknown", False)
    record_fields.setdefault("fields", record)
    return Record(body=answer.body, layout=layout.name, **facts, **record_fields)


# --------------------------------------------------------------------------------- writing
# Writing of lines that :mod:`crosswalk.records` reads, and appending them to a file.


_APPEND_FLAGS: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)


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
        status: the HTTP status, or ``None`` if unknown.
        provider: the provider id, or ``None`` if unknown.
        id: the id of the exchange in the log, or ``None``.
        response: the mapped response, or ``None`` to omit it.
        more: further fields as plain JSON, which readers ignore.

    Raises:
        CanonicalJSONError: the response holds a value that JSON cannot represent.
        TypeError: a further field holds such a value.
    """
    fields: dict[str, Any] = {"id": id, "provider": provider}
    fields["status"] = status if status is not None and 100 <= status <= 999 else None
    try:
        fields["body"] = body.decode()
    except UnicodeDecodeError:
        fields["body_base64"] = base64.b64encode(body).decode()
    if response is not None:
        # Imported here, because it builds a layout of every type, which reading does not need.
        from crosswalk.codec.canonical import to_jsonable

        fields["response"] = to_jsonable(response)
    taken_names = {"body", "body_base64", "response", *fields}
    extra_fields = {name: value for name, value in (more or {}).items() if name not in taken_names}
    known_fields = {name: value for name, value in fields.items() if value is not None}
    return dump_json({**known_fields, **extra_fields}) + b"\n"


def append_line(path: FilePath, line: bytes, *, mode: int = 0o666) -> None:
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
    descriptor = os.open(path, _APPEND_FLAGS, mode)
    try:
        file_stat = os.fstat(descriptor)
        if stat.S_ISREG(file_stat.st_mode) and file_stat.st_size:
            os.lseek(descriptor, file_stat.st_size - 1, os.SEEK_SET)
            if os.read(descriptor, 1) != b"\n":
                line = b"\n" + line
        if os.write(descriptor, line) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    finally:
        os.close(descriptor)
