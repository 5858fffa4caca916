"""The requests that the replay server receives, the answers that it sends, and the faults on their way."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, Protocol, TypeAlias

import attrs
import orjson

from crosswalk.convert import WireForm, convert, convert_stream
from crosswalk.errors import ConfigurationError, CrosswalkError
from crosswalk.testing.captures import Capture
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.message import ToolCall, ToolCallDelta
from crosswalk.types.response import ChatResponse
from crosswalk.types.usage import UsageInfo
from crosswalk.types.values import FinishReason

# ---------------------------------------------------------------------------------- faults
# The faults of a server on the way: an answer as a list of steps, and the faults that change the list.


@attrs.frozen
class Head:
    """Send the status line and the headers.

    Attributes:
        status: the HTTP status.
        headers: the headers other than those for the framing of the body.
        length: the value of ``Content-Length``, in bytes; ``None`` for a body in HTTP chunks.
    """

    status: int
    headers: Mapping[str, str] = attrs.field(hash=False)
    length: int | None = None


@attrs.frozen
class SentChunk:
    """Send bytes of the body: an event of a stream, or a whole body."""

    data: bytes = attrs.field(repr=False)


@attrs.frozen
class Raw:
    """Send bytes that are not HTTP."""

    data: bytes = attrs.field(repr=False)


@attrs.frozen
class Pause:
    """Do nothing for some seconds."""

    seconds: float


@attrs.frozen
class SentEnd:
    """End the body as HTTP requires. The connection can be used again."""


@attrs.frozen
class Hang:
    """Do nothing more, and keep the connection open until the client or the server is closed."""


@attrs.frozen
class Abort:
    """Reset the connection (TCP RST)."""


@attrs.frozen
class Close:
    """Close the connection, even if more was promised."""


Step: TypeAlias = Head | SentChunk | Raw | Pause | SentEnd | Hang | Abort | Close
"""One action of a server while it answers: a closed set."""


def _is_number(seconds: object) -> bool:
    return isinstance(seconds, int | float) and 0 <= seconds < 86400


def _seconds(_: object, attribute: attrs.Attribute[float], value: object) -> None:
    if not _is_number(value):
        raise ConfigurationError(f"{attribute.name} must be a number from 0 to 86400", key=attribute.name)


def _count(_: object, attribute: attrs.Attribute[int | None], value: object) -> None:
    least = 1 if attribute.name == "chunk_bytes" else 0
    if value is not None and (type(value) is not int or value < least):
        raise ConfigurationError(f"{attribute.name} must be an integer from {least}", key=attribute.name)


@attrs.frozen
class Delay:
    """The server waits before it sends anything.

    Attributes:
        seconds: the length of the wait.
    """

    seconds: float = attrs.field(validator=_seconds)

    def apply(self, steps: Sequence[Step]) -> list[Step]:
        """Return *steps* with this fault in them."""
        return [Pause(self.seconds), *steps]


@attrs.frozen
class Slow:
    """The body arrives in small pieces.

    Attributes:
        seconds: the pause before each piece.
        chunk_bytes: the number of bytes in a piece; ``None`` for one event at a time.
    """

    seconds: float = attrs.field(default=0.0, validator=_seconds)
    chunk_bytes: int | None = attrs.field(default=None, validator=_count)

    def apply(self, steps: Sequence[Step]) -> list[Step]:
        """Return *steps* with this fault in them."""
        slow_steps: list[Step] = []
        for step in steps:
            if isinstance(step, SentChunk):
                size = self.chunk_bytes or max(len(step.data), 1)
                for start in range(0, len(step.data), size):
                    slow_steps += [Pause(self.seconds), SentChunk(step.data[start : start + size])]
            else:
                slow_steps.append(step)
        return slow_steps


@attrs.frozen
class _Placed:
    """A fault at some position of an answer.

    Attributes:
        after_events: the number of events of the body that are sent before it; 0 for the headers alone.
        after_bytes: the number of bytes of the body that are sent before it. If both are missing, nothing at all is
            sent before it, not even the status line.
    """

    after_events: int | None = attrs.field(default=None, kw_only=True, validator=_count)
    after_bytes: int | None = attrs.field(default=None, kw_only=True, validator=_count)

    def __attrs_post_init__(self) -> None:
        if self.after_events is not None and self.after_bytes is not None:
            raise ConfigurationError("a fault lies after so many events or after so many bytes, not both")

    def _split(self, steps: Sequence[Step]) -> tuple[list[Step], list[Step]]:
        """Return the steps before this fault, and the steps that would have followed it.

        A body that is shorter is sent whole, but not ended.
        """
        events_left, bytes_left = self.after_events, self.after_bytes
        if events_left is None and bytes_left is None:
            return [], list(steps)
        steps_before: list[Step] = []
        for number, step in enumerate(steps):
            if isinstance(step, SentEnd):
                return steps_before, list(steps[number:])
            if isinstance(step, SentChunk):
                if events_left == 0 or bytes_left == 0:
                    return steps_before, list(steps[number:])
                if bytes_left is not None and bytes_left < len(step.data):
                    remainder = SentChunk(step.data[bytes_left:])
                    return [*steps_before, SentChunk(step.data[:bytes_left])], [
                        remainder,
                        *steps[number + 1 :],
                    ]
                events_left = None if events_left is None else events_left - 1
                bytes_left = None if bytes_left is None else bytes_left - len(step.data)
            steps_before.append(step)
        return steps_before, []


@attrs.frozen
class Stall(_Placed):
    """The server stops sending and keeps the connection open."""

    def apply(self, steps: Sequence[Step]) -> list[Step]:
        """Return *steps* with this fault in them."""
        return [*self._split(steps)[0], Hang()]


@attrs.frozen
class Reset(_Placed):
    """The connection is reset, as when the server's process dies, after all earlier bytes reached the client's system."""

    def apply(self, steps: Sequence[Step]) -> list[Step]:
        """Return *steps* with this fault in them."""
        return [*self._split(steps)[0], Abort()]


@attrs.frozen
class Cut(_Placed):
    """The answer ends too early.

    Attributes:
        clean: whether HTTP is ended properly, so that only the content shows that something is missing.
            Otherwise the connection is closed in the middle of the body. It needs a position inside the body.
    """

    clean: bool = attrs.field(default=False, kw_only=True)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if self.clean and self.after_events is None and self.after_bytes is None:
            raise ConfigurationError("a clean cut needs after_events or after_bytes", key="clean")

    def apply(self, steps: Sequence[Step]) -> list[Step]:
        """Return *steps* with this fault in them."""
        steps_before = self._split(steps)[0]
        if not self.clean:
            return [*steps_before, Close()]
        sent_bytes = sum(len(step.data) for step in steps_before if isinstance(step, SentChunk))
        return [*(_with_length(step, sent_bytes) for step in steps_before), SentEnd()]


@attrs.frozen
class Garbage(_Placed):
    """Bytes that do not belong to the answer, between those that do. Without a position they are sent instead of HTTP.

    Attributes:
        data: the bytes; by default an event that is neither JSON nor UTF-8, in either framing.
    """

    data: bytes = attrs.field(default=b'data: {"gar\xff\xfebage\n\n', repr=False)

    def apply(self, steps: Sequence[Step]) -> list[Step]:
        """Return *steps* with this fault in them."""
        steps_before, steps_after = self._split(steps)
        if not steps_before:
            return [Raw(self.data), Close()]
        added_bytes = len(self.data)
        longer_steps = (
            _with_length(step, (step.length or 0) + added_bytes) if isinstance(step, Head) else step
            for step in steps_before
        )
        return [*longer_steps, SentChunk(self.data), *steps_after]


def _with_length(step: Step, length: int) -> Step:
    """Return *step*. If it is a head that promises a length, it promises *length* instead."""
    if isinstance(step, Head) and step.length is not None:
        return attrs.evolve(step, length=length)
    return step


Fault: TypeAlias = Delay | Slow | Stall | Reset | Cut | Garbage
"""The possible faults of an answer: a closed set. A wrong status is not a fault but a separate answer."""


# -------------------------------------------------------------------------------- exchange
# The requests that the replay server receives, and the answers that it sends.


_MEDIA_TYPES: Final = {
    ".sse": "text/event-stream",
    ".ndjson": "application/x-ndjson",
    ".txt": "text/plain; charset=utf-8",
}
# An event with its line end or, for SSE, its blank line.
_EVENT_PATTERNS: Final = {
    ".sse": re.compile(rb".*?(?:\r\n\r\n|\n\n|\r\r)|.+", re.DOTALL),
    ".ndjson": re.compile(rb"[^\n]*\n|[^\n]+"),
}


_SOME_USAGE: Final = UsageInfo(7, 3)


class _ModelAnswer(Protocol):
    """A model's answer, written in the format of the endpoint at a path."""

    def whole(self, path: str) -> bytes: ...

    def streamed(self, path: str) -> tuple[tuple[bytes, ...], str]: ...


class ReplayError(CrosswalkError):
    """The replay server was used incorrectly, or the event that a test waited for did not happen."""


class AnswerOutcome(StrEnum):
    """The outcome of an answer: a closed set."""

    ANSWERING = "answering"
    """The answer is still being sent."""
    ANSWERED = "answered"
    """The server did everything it had to do."""
    DISCONNECTED = "disconnected"
    """The client left early."""


@attrs.frozen
class ReceivedRequest:
    """A request that the server received.

    Attributes:
        method: such as ``POST``.
        target: path and query, as they were sent.
        headers: names in lowercase. They are never shown, because they hold credentials.
        body: as it was sent.
        connection: the number of its TCP connection, from 1. Equal numbers mean that the connection was reused.
        case: the name of the capture that answered it, or ``None`` if there was no answer for it.
        outcome: the outcome of the answer, as far as it is known.
    """

    method: str
    target: str
    headers: Mapping[str, str] = attrs.field(repr=False, hash=False)
    body: bytes = attrs.field(repr=False)
    connection: int
    case: str | None = None
    outcome: AnswerOutcome = AnswerOutcome.ANSWERING

    @property
    def path(self) -> str:
        """The path without its query."""
        return self.target.partition("?")[0]

    def json(self) -> Any:
        """The decoded body.

        Raises:
            ReplayError: the body is not JSON.
        """
        try:
            return orjson.loads(self.body)
        except orjson.JSONDecodeError as error:
            raise ReplayError(f"{self.method} {self.path}: the body is not JSON ({error.msg})") from None

    @property
    def wants_stream(self) -> bool | None:
        """Whether it asks for a stream, or ``None`` if it does not say."""
        if "streamGenerateContent" in self.path:
            return True
        try:
            stream = orjson.loads(self.body).get("stream")
        except (orjson.JSONDecodeError, AttributeError):
            return None
        return stream if type(stream) is bool else None


def _header_text(_: object, __: object, headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        try:
            header_bytes = f"{name}{value}".encode("latin-1")
        except UnicodeEncodeError:
            header_bytes = b"\n"
        if b"\r" in header_bytes or b"\n" in header_bytes:
            raise ConfigurationError(f"header {name[:60]!r} cannot be sent", key="headers")


@attrs.frozen
class Answer:
    """An answer that the server is to send.

    Attributes:
        chunks: the body. A stream has one item for each event.
        status: the HTTP status.
        headers: the headers other than those for the framing of the body.
        stream: whether it is sent in HTTP chunks, one for each of *chunks*. Otherwise it is whole, with its length.
        case: the name that is recorded with the requests that got it.
        model: a model's answer, written in the request's format, or ``None`` if *chunks* holds the answer.

    Raises:
        ConfigurationError: HTTP cannot carry a header.
    """

    chunks: tuple[bytes, ...] = attrs.field(repr=False)
    status: int = 200
    headers: Mapping[str, str] = attrs.field(factory=dict, hash=False, validator=_header_text)
    stream: bool = False
    case: str = "answer"
    model: _ModelAnswer | None = attrs.field(default=None, repr=False)

    @classmethod
    def of_capture(cls, capture: Capture) -> Answer:
        """Return the recorded answer, in the recorded framing."""
        suffix = capture.file.suffix
        headers = {"Content-Type": _MEDIA_TYPES.get(suffix, "application/json")}
        event_pattern = _EVENT_PATTERNS.get(suffix)
        chunks = event_pattern.findall(capture.body) if event_pattern else [capture.body]
        return cls(tuple(chunks), capture.status, headers, event_pattern is not None, capture.case)

    @classmethod
    def of_json(cls, value: Any, *, status: int = 200) -> Answer:
        """Return an answer with a custom JSON body."""
        return cls((orjson.dumps(value),), status, {"Content-Type": "application/json"}, case="json")

    @classmethod
    def of_events(cls, events: Iterable[Any], *, done: bool = True) -> Answer:
        """Return a stream of custom server-sent events.

        Args:
            events: the ``data`` of each event, as JSON.
            done: whether ``[DONE]`` follows, as in OpenAI's format.
        """
        chunks = [b"data: %s\n\n" % orjson.dumps(event) for event in events]
        if done:
            chunks.append(b"data: [DONE]\n\n")
        return cls(tuple(chunks), headers={"Content-Type": "text/event-stream"}, stream=True, case="events")

    @classmethod
    def failure(
        cls,
        status: int,
        *,
        retry_after: float | str | None = None,
        message: str = "the replay server is set to fail",
    ) -> Answer:
        """Return an HTTP error.

        Args:
            status: 400 to 599.
            retry_after: the value of ``Retry-After``, seconds or a date; ``None`` for no such header.
            message: for the error's JSON, in OpenAI's format.

        Raises:
            ConfigurationError: another status.
        """
        if not 400 <= status <= 599:
            raise ConfigurationError("the status of a failure is 400 to 599", key="status")
        answer = cls.of_json({"error": {"message": message, "type": "replay", "code": status}}, status=status)
        headers = dict(answer.headers)
        if retry_after is not None:
            headers["Retry-After"] = str(retry_after)
        return attrs.evolve(answer, headers=headers, case=f"failure {status}")

    @classmethod
    def text(cls, text: str, *, usage: UsageInfo = _SOME_USAGE) -> Answer:
        """Return a model's answer, whole or as a stream, in the format that the request asks for.

        Args:
            text: the text of the model. A stream has a piece for each word.
            usage: its tokens.
        """
        return cls.calls(text=text, usage=usage)

    @classmethod
    def calls(cls, *calls: ToolCall, text: str = "", usage: UsageInfo = _SOME_USAGE) -> Answer:
        """Return an answer like that of :meth:`text`, of a model that calls tools.

        Args:
            calls: the tool calls.
            text: the text before them.
            usage: its tokens.
        """
        return cls((), case="text", model=ModelAnswer(text, calls, usage))

    def to(self, request: ReceivedRequest) -> Answer:
        """Return the answer to *request*."""
        if self.model is None:
            return self
        if not request.wants_stream:
            return attrs.evolve(self.of_json(None), chunks=(self.model.whole(request.path),), case=self.case)
        events, media_type = self.model.streamed(request.path)
        return attrs.evolve(
            self, chunks=events, headers={"Content-Type": media_type}, stream=True, model=None
        )

    def steps(self) -> list[Step]:
        """Return the server's steps to send it without faults."""
        length = None if self.stream else sum(map(len, self.chunks))
        return [Head(self.status, self.headers, length), *map(SentChunk, self.chunks), SentEnd()]


# ---------------------------------------------------------------------------- model answer
# A model's answer, written in the format that a request asks for.


_STREAM_TYPES = {WireForm.OLLAMA: "application/x-ndjson", WireForm.OLLAMA_GENERATE: "application/x-ndjson"}


@attrs.frozen
class ModelAnswer:
    """A model's answer.

    Attributes:
        text: its text. A stream has a piece for each word.
        calls: its tool calls.
        usage: its tokens.
    """

    text: str
    calls: tuple[ToolCall, ...]
    usage: UsageInfo

    def whole(self, path: str) -> bytes:
        """Return the body of a whole answer in the format of the endpoint at *path*, or in that of Chat Completions."""
        body: bytes = convert(ChatResponse.from_deltas(self._deltas()), _form(path)).value
        return body

    def streamed(self, path: str) -> tuple[tuple[bytes, ...], str]:
        """Return the events of a stream in that format, and their media type."""
        form = _form(path)
        events: Iterable[bytes] = convert_stream(self._deltas(), form, model="model")
        return tuple(events), _STREAM_TYPES.get(form, "text/event-stream")

    def _deltas(self) -> Iterator[ResponseDelta]:
        words = re.findall(r"\S+\s*|\s+", self.text)
        index = 0
        for index, word in enumerate(words, 1):
            yield ResponseDelta(index - 1, content_delta=word)
        for number, call in enumerate(self.calls):
            fragment = ToolCallDelta(number, call.id, call.name, call.arguments)
            yield ResponseDelta(index + number, tool_call_delta=fragment)
        reason = FinishReason.TOOL_CALLS if self.calls else FinishReason.STOP
        yield ResponseDelta(index + len(self.calls), finish_reason=reason, usage=self.usage)


def _form(path: str) -> WireForm:
    forms = (form for form in WireForm if path.endswith(form.paths))
    return next(forms, WireForm.OPENAI_CHAT)
