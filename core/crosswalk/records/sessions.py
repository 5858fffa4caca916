"""Session files of coding agents: Claude Code and Codex.

Such a file has a line for each step of a conversation, and one answer of the model takes several lines. This module joins
them into one line for each answer, which has the layout ``claude_code`` or ``codex``. Lines of the user, of tools and of
the agent itself are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs

from crosswalk.types.json import dump_json, load_json

if TYPE_CHECKING:
    from crosswalk.records.reading import Line


_Object: TypeAlias = dict[str, Any]

_FIRST_LINES: Final = 20
_WITHOUT_EXCHANGE: Final = {"summary", "file-history-snapshot"}
"""Lines of Claude Code that are sometimes alone in a file."""
_CODEX_LINES: Final = {"session_meta", "turn_context", "response_item", "event_msg", "compacted"}
_ERRORS: Final = {
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
    """Whether the first of *lines* are those of a session file."""
    return _joiner([_object(line) for line, _ in zip(lines, range(_FIRST_LINES), strict=False)]) is not None


def exchange_lines(lines: Iterator[Line]) -> Iterator[Line]:
    """Yield *lines*, or a line for each answer if they are those of a session file.

    Damaged lines are not left out. Ordinary logs are decided by their first line, so that a live log is not delayed.
    """
    first: list[Line] = []
    for line in lines:
        first.append(line)
        if not _is_heading(_object(line.data)) or len(first) == _FIRST_LINES:
            break
    join = _joiner([_object(line.data) for line in first])
    everything = chain(first, lines)
    return everything if join is None else join(everything)


def _joiner(records: list[_Object | None]) -> Callable[[Iterable[Line]], Iterator[Line]] | None:
    """Return the function that joins the lines of a file that begins with *records*, or ``None`` if it is not a session."""
    for record in records:
        if record is None:
            return None
        if record.get("type") in _CODEX_LINES and type(record.get("payload")) is dict:
            return _codex_lines
        if type(record.get("type")) is str and {"uuid", "sessionId", "timestamp"} <= record.keys():
            return _claude_code_lines
        if not _is_heading(record):
            return None
    types = {record["type"] for record in records if record is not None}
    return _claude_code_lines if types and types <= _WITHOUT_EXCHANGE else None


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
    results: dict[str, _Joined] = {}
    left_out = 0
    for line in lines:
        record = _object(line.data)
        if record is None:
            yield line
            continue
        part = _answer_or_error(record)
        if part is None:
            left_out += line.size
            continue
        message = part["message"]
        key = str(message.get("id") or record.get("uuid"))
        if key not in results:
            results[key] = _Joined(line, line.size + left_out, part)
            left_out = 0
        else:
            results[key].size += line.size
            _add_message(results[key].record["message"], message)
    for one in results.values():
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
        word = record.get("error")
        error = {
            "type": _ERRORS.get(word, word) if type(word) is str else "api_error",
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


def _add_message(message: _Object, more: _Object) -> None:
    """Add the next part of a message. A block that is there already counts once, because sessions are copied."""
    content, blocks = message.get("content"), more.get("content")
    if type(content) is list and type(blocks) is list:
        message["content"] = content + [block for block in blocks if block not in content]
    for name in ("stop_reason", "stop_sequence", "usage"):
        if more.get(name) is not None:
            message[name] = more[name]


def _complete(record: _Object) -> None:
    """Make up the finish reason of an answer that some versions of Claude Code do not store."""
    message = record["message"]
    if message.get("type") != "error" and message.get("stop_reason") is None:
        content = message.get("content")
        last = content[-1] if type(content) is list and content else None
        is_call = type(last) is dict and last.get("type") == "tool_use"
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
        kind, what = record.get("type"), payload.get("type")
        if kind == "session_meta" and not self.session:  # a fork repeats that of its origin
            self.session = payload
        elif kind == "turn_context":
            yield from self.end()
            self.turn, self.error = payload, None
        elif kind == "response_item" and what == "message" and payload.get("role") != "assistant":
            yield from self.end()
        elif kind == "response_item" and not str(what).endswith("_output"):
            self.first = self.first or (line, record)
            self.items.append(payload)
        elif kind == "event_msg" and what == "token_count":
            info = payload.get("info")
            if type(info) is dict and info.get("total_token_usage") != self.total:  # else it is repeated
                self.total = info.get("total_token_usage")
                self.first = self.first or (line, record)
                yield from self.end(info.get("last_token_usage"))
        elif kind == "event_msg" and what in ("error", "task_complete"):
            error = payload if what == "error" else payload.get("error")
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
        more = {} if "usage" in response else {"is_finish_unknown": True}
        yield self._line(*self.first, response, more)
        self.items, self.first = [], None

    def _line(self, line: Line, record: _Object, response: _Object, more: _Object) -> Line:
        joined = {
            "timestamp": record.get("timestamp"),
            "session_meta": {name: self.session[name] for name in _SESSION_FACTS if name in self.session},
            "turn_context": {name: self.turn[name] for name in _TURN_FACTS if name in self.turn},
            "model_provider": self.session.get("model_provider"),
            "response": {name: value for name, value in response.items() if value is not None},
            **more,
        }
        size, self.size = self.size, 0
        return _Joined(line, size, joined).as_line()


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
    word, details = next(iter(info.items()), (None, None)) if type(info) is dict else (info, None)
    status = details.get("http_status_code") if type(details) is dict else None
    return {"error": {"message": str(error.get("message") or ""), "code": word}}, {"status": status}
