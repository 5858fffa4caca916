"""What the replay server is asked, and what it answers."""

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
from crosswalk.types.tools import ToolCall
from crosswalk.types.usage import UsageInfo

__all__ = ["Answer", "Outcome", "ReceivedRequest", "ReplayError"]

_MEDIA_TYPES: Final = {
    ".sse": "text/event-stream",
    ".ndjson": "application/x-ndjson",
    ".txt": "text/plain; charset=utf-8",
}
# An event with the end of its line or, for SSE, its blank line.
_EVENTS: Final = {
    ".sse": re.compile(rb".*?(?:\r\n\r\n|\n\n|\r\r)|.+", re.DOTALL),
    ".ndjson": re.compile(rb"[^\n]*\n|[^\n]+"),
}


_SOME_USAGE: Final = UsageInfo(7, 3)


class _ModelAnswer(Protocol):
    """A model's answer, which takes the form of the endpoint at a path."""

    def whole(self, path: str) -> bytes: ...

    def streamed(self, path: str) -> tuple[tuple[bytes, ...], str]: ...


class ReplayError(CrosswalkError):
    """The replay server was used wrongly, or what a test waited for did not happen."""


class Outcome(StrEnum):
    """How an answer went: a closed set."""

    ANSWERING = "answering"
    """It goes on."""
    ANSWERED = "answered"
    """The server did all that it was to do."""
    DISCONNECTED = "disconnected"
    """The client left before."""


@attrs.frozen
class ReceivedRequest:
    """A request that the server received.

    Attributes:
        method: such as ``POST``.
        target: path and query, as they were sent.
        headers: names in lowercase; never shown, for they hold credentials.
        body: as it was sent.
        connection: the number of its TCP connection, from 1; equal numbers mean that it was used again.
        case: which answer it got: the capture's name; ``None`` where there was none for it.
        outcome: how the answer went, as far as it is known.
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
        """The body, decoded.

        Raises:
            ReplayError: it is no JSON.
        """
        try:
            return orjson.loads(self.body)
        except orjson.JSONDecodeError as error:
            raise ReplayError(f"{self.method} {self.path}: the body is no JSON ({error.msg})") from None

    @property
    def wants_stream(self) -> bool | None:
        """Whether it asks for a stream; ``None`` when it does not say."""
        if "streamGenerateContent" in self.path:
            return True
        try:
            said = orjson.loads(self.body).get("stream")
        except (orjson.JSONDecodeError, AttributeError):
            return None
        return said if type(said) is bool else None


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
    """What the server is to send.

    Attributes:
        chunks: the body: an event each for a stream.
        status: the HTTP status.
        headers: beside those that say how the body is framed.
        stream: whether it is sent in HTTP chunks, one for each of *chunks*; else whole, with its length.
        case: the name that requests which got it are recorded with.
        model: a model's answer, which takes the form of the request; ``None`` for one that is written out in *chunks*.

    Raises:
        ConfigurationError: a header that HTTP cannot carry.
    """

    chunks: tuple[bytes, ...] = attrs.field(repr=False)
    status: int = 200
    headers: Mapping[str, str] = attrs.field(factory=dict, hash=False, validator=_header_text)
    stream: bool = False
    case: str = "answer"
    model: _ModelAnswer | None = attrs.field(default=None, repr=False)

    @classmethod
    def of_capture(cls, capture: Capture) -> Answer:
        """What was recorded, in the recorded framing."""
        suffix = capture.file.suffix
        headers = {"Content-Type": _MEDIA_TYPES.get(suffix, "application/json")}
        event = _EVENTS.get(suffix)
        chunks = event.findall(capture.body) if event else [capture.body]
        return cls(tuple(chunks), capture.status, headers, event is not None, capture.case)

    @classmethod
    def of_json(cls, value: Any, *, status: int = 200) -> Answer:
        """A JSON body of your own."""
        return cls((orjson.dumps(value),), status, {"Content-Type": "application/json"}, case="json")

    @classmethod
    def of_events(cls, events: Iterable[Any], *, done: bool = True) -> Answer:
        """A stream of server-sent events of your own.

        Args:
            events: what each event's ``data`` holds, as JSON.
            done: whether ``[DONE]`` follows, as OpenAI's format has it.
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
        """An HTTP error.

        Args:
            status: 400 to 599.
            retry_after: what ``Retry-After`` says, seconds or a date; ``None`` for no such header.
            message: for the error's JSON, in OpenAI's form.

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
        """A model's answer, whole or as a stream, in the form in which it is asked for.

        Args:
            text: what the model says; a stream has a piece for each word.
            usage: its tokens.
        """
        return cls.calls(text=text, usage=usage)

    @classmethod
    def calls(cls, *calls: ToolCall, text: str = "", usage: UsageInfo = _SOME_USAGE) -> Answer:
        """As :meth:`text`, of a model that asks for tools.

        Args:
            calls: what it asks for.
            text: what it says before.
            usage: its tokens.
        """
        from crosswalk.testing.model_answer import ModelAnswer

        return cls((), case="text", model=ModelAnswer(text, calls, usage))

    def to(self, request: ReceivedRequest) -> Answer:
        """What is sent to *request*."""
        if self.model is None:
            return self
        if not request.wants_stream:
            return attrs.evolve(self.of_json(None), chunks=(self.model.whole(request.path),), case=self.case)
        events, media_type = self.model.streamed(request.path)
        return attrs.evolve(
            self, chunks=events, headers={"Content-Type": media_type}, stream=True, model=None
        )

    def steps(self) -> list[Step]:
        """What the server does to send it, when nothing goes wrong."""
        length = None if self.stream else sum(map(len, self.chunks))
        return [Head(self.status, self.headers, length), *map(Chunk, self.chunks), End()]
