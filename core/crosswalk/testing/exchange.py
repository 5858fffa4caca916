"""The requests that the replay server receives, and the answers that it sends."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Final, Protocol

import attrs
import orjson

from crosswalk.errors import ConfigurationError, CrosswalkError
from crosswalk.testing.captures import Capture
from crosswalk.testing.faults import Chunk, End, Head, Step
from crosswalk.types.message import ToolCall
from crosswalk.types.usage import UsageInfo

_MEDIA_TYPES: Final = {
    ".sse": "text/event-stream",
    ".ndjson": "application/x-ndjson",
    ".txt": "text/plain; charset=utf-8",
}
# An event with its line end or, for SSE, its blank line.
_EVENTS: Final = {
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


class Outcome(StrEnum):
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
    outcome: Outcome = Outcome.ANSWERING

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
            raise ReplayError(f"{self.method} {self.path}: the body is no JSON ({error.msg})") from None

    @property
    def wants_stream(self) -> bool | None:
        """Whether it asks for a stream, or ``None`` if it does not say."""
        if "streamGenerateContent" in self.path:
            return True
        try:
            raw = orjson.loads(self.body).get("stream")
        except (orjson.JSONDecodeError, AttributeError):
            return None
        return raw if type(raw) is bool else None


def _header_text(_: object, __: object, headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        try:
            text = f"{name}{value}".encode("latin-1")
        except UnicodeEncodeError:
            text = b"\n"
        if b"\r" in text or b"\n" in text:
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
        event = _EVENTS.get(suffix)
        chunks = event.findall(capture.body) if event else [capture.body]
        return cls(tuple(chunks), capture.status, headers, event is not None, capture.case)

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
        message: str = "the replay server was told to fail",
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
        from crosswalk.testing.model_answer import ModelAnswer

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
        return [Head(self.status, self.headers, length), *map(Chunk, self.chunks), End()]
