"""Recorded exchanges as files: the server's answer, byte for byte, and the statements of their authors."""

from __future__ import annotations

import itertools
import json
import math
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs
import orjson

from crosswalk.errors import ConfigurationError, CrosswalkError, FramingError
from crosswalk.manifest import STATEMENT_SUFFIX, manifest_of, read_recorded
from crosswalk.text import counted
from crosswalk.types.message import ToolCall
from crosswalk.types.response import Alternative, ChatResponse
from crosswalk.types.usage import Provenance
from crosswalk.types.values import ErrorKind, FinishReason, SegmentType
from crosswalk.wire.framing import Frame, Limits, NeedMore, SniffingDecoder, is_done, load_event

if TYPE_CHECKING:
    from crosswalk.plugin.registry import Mapper


# ------------------------------------------------------------------------------ statements
# Statements: the facts that the author of a capture writes down, and the check that a plugin agrees with them.
#
# A snapshot records the output of a plugin. A statement is written before the plugin, from the recorded bytes and the
# provider's documents, so it also catches a mistake in the first version.


COUNTS: Final = (
    "prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens", "cache_write_tokens",
)  # fmt: skip
"""The counts that a statement about ``usage`` may name."""

_NOTE_KEYS: Final = frozenset({"draft", "found", "note"})
"""Keys for the author. They are not checked."""


def statement_file(file: Path, case: str) -> Path:
    """Return the file of the statement about the capture *case* in *file*."""
    return file.with_name(f"{case}{STATEMENT_SUFFIX}")


def read_statement(file: Path, case: str) -> dict[str, Any] | None:
    """Read the statement about the capture *case* in *file*.

    The statement is in ``CASE.says.json``, or under the key ``says`` of its line in the manifest.

    Returns:
        The statement without its notes, or ``None`` without a statement, and for a draft that the author has not
        corrected yet.

    Raises:
        ConfigurationError: the statement is not a JSON object, has an unknown key, or a value of a wrong type.
    """
    own_file = statement_file(file, case)
    source = str(own_file)
    if own_file.is_file():
        try:
            statement = orjson.loads(own_file.read_bytes())
        except orjson.JSONDecodeError as error:
            raise ConfigurationError(f"{source}: not JSON: {error}", source=source) from None
    else:
        statement = manifest_of(str(file.parent)).answers.get(str(file.resolve()), {}).get("says")
        source = f"{file}: says"
    if statement is None or (isinstance(statement, dict) and "draft" in statement):
        return None
    _check(statement, source)
    return {name: value for name, value in statement.items() if name not in _NOTE_KEYS}


def _check(statement: Any, source: str) -> None:
    """Raise a ConfigurationError if *statement* has an unknown key or a value of a wrong type."""
    if not isinstance(statement, dict):
        raise ConfigurationError(f"{source}: not a JSON object", source=source)
    for name, value in statement.items():
        fault = None if name in _NOTE_KEYS else _fault(name, value, NAMES)
        if fault is not None:
            raise ConfigurationError(f'{source}: "{name}": {fault}', key=name, source=source)


def _fault(name: str, value: Any, names: Sequence[str]) -> str | None:
    """Return what is wrong with *value* of the fact *name*, or ``None``."""
    if name not in names:
        return f"unknown; it may be {', '.join(names)}"
    is_none = value is None and name not in ("finish", "complete")
    return None if is_none else _FACTS[name].fault_of(value)


_Fault: TypeAlias = Callable[[Any], str | None]


def _text(value: Any) -> str | None:
    return None if isinstance(value, str) else "must be a string or null"


def _flag(value: Any) -> str | None:
    return None if isinstance(value, bool) else "must be true or false"


def _time(value: Any) -> str | None:
    try:
        return None if datetime.fromisoformat(value).tzinfo else "must have a time zone, such as Z"
    except (TypeError, ValueError):
        return "must be a time in ISO 8601, such as 2026-01-01T09:45:00Z"


def _seconds(value: Any) -> str | None:
    return None if type(value) in (int, float) and value >= 0 else "must be a number of seconds"


def _member_of(words: type[FinishReason | ErrorKind]) -> _Fault:
    return lambda value: None if value in tuple(words) else f"must be one of {', '.join(words)}"


def _texts(words: Collection[str] = ()) -> _Fault:
    fault = f"must be a list of {', '.join(words) or 'strings'}"

    def fault_of(value: Any) -> str | None:
        is_right = isinstance(value, list) and all(isinstance(one, str) for one in value)
        return None if is_right and (not words or {*value} <= {*words}) else fault

    return fault_of


def _usage(value: Any) -> str | None:
    if not isinstance(value, dict) or not value.keys() <= {*COUNTS}:
        return f"must be an object of {', '.join(COUNTS)}"
    is_right = all(count is None or (type(count) is int and count >= 0) for count in value.values())
    return None if is_right else "must hold counts, or null for a count that was not sent"


def _object_of(*names: str) -> _Fault:
    fault = f"must be an object of {', '.join(names)}"
    return lambda value: None if isinstance(value, dict) and value.keys() <= {*names} else fault


def _calls(value: Any) -> str | None:
    if not isinstance(value, list):
        return "must be a list of calls"
    faults = map(_object_of("id", "name", "arguments"), value)
    return next((f"a call {fault}" for fault in faults if fault is not None), None)


def _choices(value: Any) -> str | None:
    if not isinstance(value, list) or not all(isinstance(choice, dict) for choice in value):
        return "must be a list of objects, one for each choice"
    faults = ((name, _fault(name, fact, _CHOICE_NAMES)) for choice in value for name, fact in choice.items())
    return next((f'"{name}": {fault}' for name, fault in faults if fault is not None), None)


# ------------------------------------------------------------------------------------- the answer


_Choice: TypeAlias = ChatResponse | Alternative


@attrs.frozen
class _Fact:
    """A name that a statement may have.

    Attributes:
        fault_of: returns what is wrong with a stated value, or ``None``.
        read: reads the fact from a response.
        remedy: what the author of a plugin does if both differ.
    """

    fault_of: _Fault
    read: Callable[[Any], Any]
    remedy: str


def _content(choice: _Choice, kind: SegmentType) -> str:
    return "".join(segment.content for segment in choice.segments if segment.type is kind)


def _refusal(choice: _Choice) -> str | None:
    """Return the text of a refusal. The message of an error is not one."""
    is_error = isinstance(choice, ChatResponse) and choice.error_info is not None
    return (_content(choice, SegmentType.REFUSAL) or None) if is_error else choice.refusal


def _unless(response: ChatResponse, path: str, value: Any) -> Any:
    """Return *value*, or ``None`` if the provenance of *path* marks it as not sent by the provider."""
    is_own = response.metadata.provenance.get(path) not in (Provenance.SYNTHETIC, Provenance.ABSENT)
    return value if is_own else None


def _count(response: ChatResponse, name: str) -> int | None:
    provenance = response.metadata.provenance
    mark = provenance.get("usage", provenance.get(f"usage.{name}"))
    return None if mark is Provenance.ABSENT else getattr(response.usage, name)


def _logprobs(response: ChatResponse) -> dict[str, Any]:
    tokens = response.logprobs or ()
    first, last = (tokens[0].logprob, tokens[-1].logprob) if tokens else (None, None)
    return {"count": len(tokens) or None, "first": first, "last": last}


def _media(response: ChatResponse) -> list[Any]:
    return [one.metadata.get("media_type") for one in response.segments if one.type is SegmentType.MEDIA]


def _of_error(name: str) -> Callable[[ChatResponse], Any]:
    return lambda response: None if response.error_info is None else getattr(response.error_info, name)


def _identity(name: str) -> Callable[[ChatResponse], Any]:
    return lambda response: _unless(response, name, getattr(response, name))


_DELTA: Final = "yield it in map_delta as ResponseDelta({}=…)"
_FACTS: Final[dict[str, _Fact]] = {
    "text": _Fact(_text, lambda one: one.message.content, _DELTA.format("content_delta")),
    "reasoning": _Fact(_text, lambda one: _content(one, SegmentType.REASONING), _DELTA.format("reasoning_delta")),
    "refusal": _Fact(_text, _refusal, _DELTA.format("refusal_delta")),
    "calls": _Fact(_calls, lambda one: one.message.tool_calls or (), "take it with state.take_tool_call"),
    "finish": _Fact(_member_of(FinishReason), lambda one: one.finish_reason, "give it its meaning in map_finish_reason"),
    "raw_finish": _Fact(_text, lambda one: one.raw_finish_reason, _DELTA.format("raw_finish_reason")),
    "choices": _Fact(_choices, lambda response: [response, *response.alternatives], _DELTA.format("choice=NUMBER, …")),
    "order": _Fact(_texts(tuple(SegmentType)), lambda one: [str(part.type) for part in one.segments], "yield in that order"),
    "media": _Fact(_texts(), _media, _DELTA.format("segment=Segment(SegmentType.MEDIA, …), …")),
    "logprobs": _Fact(_object_of("count", "first", "last"), _logprobs, _DELTA.format("content_delta=…, logprobs")),
    "usage": _Fact(_usage, lambda one: {name: _count(one, name) for name in COUNTS}, "accept_count in map_usage"),
    "model": _Fact(_text, _identity("model"), "take it with state.take_identity"),
    "id": _Fact(_text, _identity("id"), "take it with state.take_identity"),
    "created": _Fact(_time, _identity("created"), "take it in its unit: state.identify(created=…)"),
    "duration": _Fact(_seconds, lambda one: one.metadata.request_duration.total_seconds() or None,
        "set state.request_duration, in its unit"),
    "error": _Fact(_member_of(ErrorKind), _of_error("kind"), "give the code its kind: error_info(…, codes=…)"),
    "error_code": _Fact(_text, _of_error("code"), "give it in ErrorInfo(code=…)"),
    "error_message": _Fact(_text, _of_error("message"), "give it in ErrorInfo(message=…)"),
    "retryable": _Fact(_flag, _of_error("retryable"), "give it in ErrorInfo(retryable=…)"),
    "complete": _Fact(_flag, lambda response: response.is_complete, "it follows from finish and error"),
    "asked": _Fact(lambda asked: None if isinstance(asked, dict) else "must be an object", lambda _: None, "build it so"),
    "raises": _Fact(_text, lambda _: None, "raise it in the hook that reads this"),
}  # fmt: skip
"""What a statement may say of an answer, in the order of a draft."""
NAMES: Final = tuple(_FACTS)
"""The names that a statement may have."""
_CHOICE_NAMES: Final = ("text", "reasoning", "refusal", "calls", "finish", "raw_finish")
"""The names of the facts about each of ``choices``."""


def remedy_of(fact: str) -> str:
    """Return what the author of a plugin does about a *fact* from :func:`stated_differences`."""
    return _FACTS[re.split(r"[.[]", fact)[0]].remedy


def stated_differences(
    statement: Mapping[str, Any], response: ChatResponse | None, error: str | None, message: str = ""
) -> list[tuple[str, str]]:
    """Return the facts of *statement* that disagree with a mapper's result for the capture, each with the difference.

    ``null`` in a statement means that there is no such value. A missing name means that nothing is stated. ``complete``
    follows from the other facts, so it is compared only if they agree.

    Args:
        statement: from :func:`read_statement`.
        response: the response, also a partial one, or ``None`` if there is none.
        error: the name of the error that was raised, or ``None`` without one.
        message: its message.
    """
    stated_error = statement.get("raises")
    if statement and error != stated_error:
        actual_result = "an answer" if error is None else f"{error}: {message}".removesuffix(": ")
        return [("raises", f"stated as {stated_error or 'an answer'}, and read as {actual_result}")]
    facts = {name: value for name, value in statement.items() if name not in ("asked", "raises", "complete")}
    if response is None:
        return [(name, f"stated as {shown(fact)}, and there is no response") for name, fact in facts.items()]
    differences = [it for name, fact in facts.items() for it in _differences(name, fact, response, response)]
    if not differences and "complete" in statement:
        differences += _differences("complete", statement["complete"], response, response)
    return differences


def taken_for(fact: str, statement: Mapping[str, Any], response: ChatResponse, others: Iterable[str]) -> str:
    """Return the kind of mistake, such as ``reasoning became text``, if *response* has a *fact* as one of *others*."""
    if fact == "finish":
        return f"{statement[fact]} became {response.finish_reason}"
    stated = _flat(statement).get(fact)
    names = ("text", "reasoning", "refusal", "id", "model", "usage")
    actual = _flat({name: _FACTS[name].read(response) for name in names})
    for other in others:
        value = actual.get(other)
        is_text_in = isinstance(stated, str) and isinstance(value, str) and stated in value
        if stated and other != fact and (is_text_in or value == stated):
            return f"{fact} became {other}".replace("usage.", "").replace("_", " ")
    return ""


def _flat(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return *facts* with those of ``usage`` under their own names, as :func:`stated_differences` names them."""
    return {**facts, **{f"usage.{name}": count for name, count in (facts.get("usage") or {}).items()}}


def _differences(
    name: str, stated: Any, choice: _Choice, response: ChatResponse, path: str = ""
) -> Iterator[tuple[str, str]]:
    """Yield the differences of one fact of *choice* of *response*, which is at *path* in it."""
    actual: Any = _FACTS[name].read(choice)
    if name == "choices":
        stated = stated or [{}]
        if len(stated) != len(actual):
            yield name, f"stated as {counted(len(stated), 'choice')}, and read as {len(actual)}"
            return
        for number, (stated_choice, one) in enumerate(zip(stated, actual, strict=True)):
            one_path = f"alternatives[{number - 1}]." if number else ""
            for fact, value in stated_choice.items():
                for where, text in _differences(fact, value, one, response, one_path):
                    yield f"choices[{number}].{where}", text
    elif name == "calls":
        yield from _different_calls(stated or [], actual, response, path)
    elif isinstance(actual, dict):
        for key in stated or actual:
            value = None if stated is None else stated[key]
            if value != actual[key]:
                yield f"{name}.{key}", f"stated as {shown(value)}, and read as {shown(actual[key])}"
    elif not _is_same(name, stated, actual):
        yield name, f"stated as {shown(stated)}, and read as {shown(actual)}"


def shown(value: Any) -> str:
    """Return the JSON of *value*, cut where it is long."""
    text = value.isoformat() if isinstance(value, datetime) else orjson.dumps(value).decode()
    return text if len(text) <= 80 else f"{text[:80]}…"


def _is_same(name: str, stated: Any, actual: Any) -> bool:
    if name == "created" and stated is not None and actual is not None:
        return bool(datetime.fromisoformat(stated) == actual)
    if name == "duration" and stated is not None and actual is not None:
        return math.isclose(stated, actual, abs_tol=1e-6)
    if name in ("text", "reasoning", "refusal", "order", "media"):
        return bool((stated or None) == (actual or None))
    return bool(stated == actual)


def _different_calls(
    stated: list[dict[str, Any]], calls: Sequence[ToolCall], response: ChatResponse, path: str
) -> Iterator[tuple[str, str]]:
    if len(stated) != len(calls):
        yield "calls", f"stated as {len(stated)} calls, and read as {len(calls)}"
        return
    for number, (stated_call, call) in enumerate(zip(stated, calls, strict=True)):
        call_path = f"{path}message.tool_calls[{number}]"
        own_id = _unless(response, f"{call_path}.id", call.id)
        actual_call = {"id": own_id, "name": call.name, "arguments": call.arguments}
        mark = response.metadata.provenance.get(f"{call_path}.arguments")
        if mark is Provenance.DERIVED and not stated_call.get("arguments"):
            # "{}" represents arguments that were not sent
            actual_call["arguments"] = stated_call.get("arguments")
        for name, value in stated_call.items():
            if not _same_argument(value, actual_call[name]):
                difference = f"stated as {shown(value)}, and read as {shown(actual_call[name])}"
                yield f"calls[{number}].{name}", difference


def _same_argument(stated: Any, actual: Any) -> bool:
    """Whether both are the same text, or *actual* the JSON text of the object *stated*."""
    return bool((json_object(actual) if isinstance(stated, dict) else actual) == stated)


def json_object(value: Any) -> dict[str, Any] | None:
    """Return *value* if it is an object, the object that it is the JSON text of, or ``None``."""
    with suppress(orjson.JSONDecodeError, TypeError):
        value = value if isinstance(value, dict) else orjson.loads(value)
    return value if isinstance(value, dict) else None


# -------------------------------------------------------------------------------- captures
# Recorded exchanges as files: the server's answer, byte for byte, and the facts known about it.


_SUFFIXES = (".json", ".sse", ".ndjson", ".txt")
_OTHER_SUFFIXES = (".request.json", ".meta.json", STATEMENT_SUFFIX)
_LEADING_BYTES = b"\xef\xbb\xbf \r\n\t"
"""Bytes that may come before the first byte that identifies the framing."""

Write: TypeAlias = Callable[[bytes, str | None], bytes]
"""Writes one frame of a provider's own framing, from an event's data and its name."""


@attrs.frozen
class Capture:
    """A recorded answer.

    Attributes:
        case: its name inside its folder.
        file: the file with its bytes.
        body: the bytes that the server sent.
        status: the HTTP status.
        stream: whether it was requested, and sent, as a stream.
        pair: the name that it shares with the other form, whole or streamed, of the same answer.
        complete: whether the body ended as the server meant it to.
        path: the HTTP path of the request, or ``None`` if unknown.
        server: the name of the server, in the recorder's words, or ``None`` if unknown.
        content_type: the media type of the answer, without parameters, or ``""`` if unknown.
        says: the author's statement about the answer, or ``None`` if nothing is stated.
        request: the body of the request, or ``None`` if it was not recorded.
    """

    case: str
    file: Path
    body: bytes = attrs.field(repr=False)
    status: int = 200
    stream: bool = False
    pair: str = ""
    complete: bool = True
    path: str | None = None
    server: str | None = None
    content_type: str = ""
    says: Mapping[str, Any] | None = attrs.field(default=None, eq=False, repr=False)
    request: bytes | None = attrs.field(default=None, repr=False)

    def frames(self, mapper: Mapper | None = None) -> list[Frame]:
        """Return the undecoded events, in order, without end sentinels and empty keep-alives.

        Args:
            mapper: the provider, which may have its own framing; ``None`` for SSE, NDJSON and JSON alone.

        Raises:
            MappingError: the bytes are not frames.
        """
        decoder = SniffingDecoder() if mapper is None else mapper.new_decoder(content_type=self.content_type)
        frames = [*decoder.decode(self.body), *decoder.flush()]
        return [(data, name) for data, name in frames if data and not is_done(data)]

    def has_own_framing(self, mapper: Mapper) -> bool:
        """Whether the body is in the provider's own framing."""
        start = self.body.lstrip(_LEADING_BYTES)
        if not start or self.status >= 400:
            return False
        try:
            decoder = mapper.own_decoder(start, Limits(), self.content_type)
        except CrosswalkError:  # reading it says why
            return False
        return decoder is not None and not isinstance(decoder, NeedMore)

    def events(self, mapper: Mapper | None = None) -> list[Any]:
        """Return the decoded events, in order.

        Args:
            mapper: as for :meth:`frames`.

        Raises:
            FramingError: an event is not JSON.
        """
        frames = [(self.body, None)] if self.status >= 400 else self.frames(mapper)
        events = [load_event(data, Limits(), place=self.case, halves="mend") for data, _ in frames]
        return events if mapper is None else [mapper.info.opened(event) for event in events]

    def __str__(self) -> str:
        return self.case


def load_captures(folder: Path | str, *, paths: Iterable[str] = ()) -> list[Capture]:
    """Load the captures in *folder*, sorted by name. Folders inside it are not searched.

    A capture is a file ``CASE.response.json`` (or ``.sse``, ``.ndjson``, ``.txt``; ``.response`` may be left
    out). Facts that its name does not contain are in ``MANIFEST.jsonl``, a line each with ``file``, ``status``,
    ``pair``, ``stream``, ``complete``, ``path`` and ``server``, in the folder or one above it, or in
    ``CASE.meta.json``. Without either an answer has status 200, and ``CASE_stream`` is the streamed form of ``CASE``.
    ``CASE.says.json`` states the content of the answer, see :mod:`crosswalk.testing.captures`.

    Args:
        folder: the folder of the files.
        paths: keep only answers of these HTTP paths; empty for all.

    Raises:
        ConfigurationError: the folder does not exist, or its manifest cannot be read.
    """
    wanted_paths = set(paths)
    captures = map(load_capture, capture_files(folder))
    return [capture for capture in captures if not wanted_paths or capture.path in wanted_paths]


def capture_files(folder: Path | str) -> Iterator[Path]:
    """Yield the files in *folder* that :func:`load_captures` reads: all but requests, by suffix or by the manifest.

    Raises:
        ConfigurationError: the folder does not exist, or its manifest cannot be read.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ConfigurationError(f"no folder of captures at {folder}", source=str(folder))
    request_files = manifest_of(str(folder)).requests
    for file in sorted(folder.iterdir()):
        is_other = file.name.endswith(_OTHER_SUFFIXES) or os.path.realpath(file) in request_files
        if file.suffix in _SUFFIXES and is_file(file) and not is_other:
            yield file


def is_file(path: Path) -> bool:
    """Whether *path* is a file, as far as can be seen. Reading a file that is out of reach raises the error."""
    try:
        return path.is_file()
    except OSError:
        return True


def load_capture(file: Path | str) -> Capture:
    """Read the capture in *file*, with its line in the manifest and its statement, if there are any.

    Raises:
        ConfigurationError: the manifest or the statement cannot be read.
    """
    file = Path(file)
    body, fields = read_recorded(str(file))
    says, request = read_statement(file, fields["case"]), _read_request(file, fields["case"])
    return Capture(body=body, file=file, says=says, request=request, **fields)


def _read_request(file: Path, case: str) -> bytes | None:
    """Read the request whose answer is *file*: from the file in its line of the manifest, or ``CASE.request.json``."""
    entry = manifest_of(str(file.parent)).answers.get(str(file.resolve()), {})
    request_file = Path(entry.get("request") or file.with_name(f"{case}.request.json"))
    return request_file.read_bytes() if is_file(request_file) else None


def pairs(captures: Iterable[Capture]) -> list[tuple[Capture, Capture]]:
    """Return the answers that were recorded whole and streamed, each as (whole, streamed)."""
    by_pair: dict[str, tuple[list[Capture], list[Capture]]] = {}
    for capture in captures:
        by_pair.setdefault(capture.pair, ([], []))[capture.stream].append(capture)
    return [pair for both in by_pair.values() for pair in itertools.product(*both)]


def reframer(
    capture: Capture,
    frames: Sequence[Frame],
    events: Sequence[Any],
    *,
    as_sse: bool = False,
    write: Write | None = None,
    text_events: Collection[str] = (),
) -> Callable[[Sequence[Any]], bytes]:
    """Return a function that writes the body of *capture* with other events.

    Args:
        capture: the recorded answer, for its framing.
        frames: its frames; empty for an HTTP error.
        events: the decoded events of *frames*.
        as_sse: whether to write server-sent events regardless of the framing of the capture.
        write: writes a frame in the provider's own framing. It is used instead of server-sent events.
        text_events: the names of events whose data is text.

    Returns:
        A function of any number of events. An event that was not changed keeps its data. It raises ``FramingError`` for
        an event that the framing cannot carry.
    """
    if not frames:
        return lambda changed: written(changed[0])
    is_sse = as_sse or not capture.body.lstrip(_LEADING_BYTES).startswith(b"{")
    is_body = len(frames) == 1 and not capture.stream and not as_sse
    frame_count = len(frames)

    def framed(data: bytes, event_name: str | None) -> bytes:
        if as_sse and write is not None:
            return write(data, event_name)
        if not is_sse:
            return data + b"\n"
        if event_name in text_events:
            data = _text_of(data)
        event_line = b"" if event_name is None else b"event: %s\n" % event_name.encode()
        return event_line + b"data: " + b"\ndata: ".join(data.split(b"\n")) + b"\n\n"

    @cache
    def kept(number: int) -> bytes:
        data, event_name = frames[number]
        return framed(data if is_sse or b"\n" not in data else written(events[number]), event_name)

    def body(changed_events: Sequence[Any]) -> bytes:
        if is_body and len(changed_events) == 1:
            return written(changed_events[0])
        # Events beyond the last frame repeat the frames from the start.
        return b"".join(
            kept(number % frame_count)
            if event is events[number % frame_count]
            else framed(written(event), frames[number % frame_count][1])
            for number, event in enumerate(changed_events)
        )

    return body


def _text_of(data: bytes) -> bytes:
    """Return the text of an event that carries nothing else.

    Raises:
        FramingError: it carries something else, or a text with a line end that server-sent events cannot carry.
    """
    event = orjson.loads(data)
    text = event.get("data") if isinstance(event, dict) and len(event) == 1 else None
    if not isinstance(text, str) or "\r" in text:
        raise FramingError("an event of text carries one text, without a carriage return")
    return text.encode()


def written(value: Any) -> bytes:
    """Return *value* as JSON, with all digits of integers that orjson does not write."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
