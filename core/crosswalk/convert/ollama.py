"""Ollama's own forms: the body of ``/api/chat`` and of ``/api/generate``, and their lines.

A line is a small whole body: it adds its text and reasoning. A call is written in one line, once it is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import ClassVar, Final

from crosswalk.convert.arguments import CallIDs, input_of
from crosswalk.convert.failure import ollama_error
from crosswalk.convert.form import WireForm
from crosswalk.convert.parts import Piece
from crosswalk.convert.source import put_back
from crosswalk.convert.writer import Event, Heading, Writer, json_of, logprobs_of
from crosswalk.types.values import FinishReason, SegmentType, TokenLogprob
from crosswalk.wire import ollama as wire

_MICROSECOND: Final = timedelta(microseconds=1)


class _Call:
    """A call of the client under construction."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.id: str | None = None
        self.name = ""
        self.arguments: list[str] = []


class OllamaChatWriter(Writer):
    """Writes Ollama's chats, the first of several answers."""

    form = WireForm.OLLAMA
    text: ClassVar[str] = "content"
    """The field for text."""

    def __init__(self, heading: Callable[[], Heading], *, whole: bool = False) -> None:
        super().__init__(heading, whole=whole)
        self._said: dict[str, list[str]] = {}  # of a whole answer
        self._images: list[str] = []
        self._calls: dict[int, _Call] = {}
        self._ids = CallIDs()
        self._logprobs: list[Event] = []  # of the line to come
        self._reason: str | None = None

    def piece(self, piece: Piece) -> Iterable[Event]:
        """See :meth:`Writer.piece`."""
        if piece.choice:
            return
        if piece.call is not None:
            call = self._calls.setdefault(piece.call.index, _Call(piece.call.index))
            call.id = call.id or piece.call.id
            call.name = call.name or piece.call.name or ""
            call.arguments.append(piece.text)
        elif piece.type is SegmentType.MEDIA and piece.text and self.is_own:
            self._images.append(piece.text)  # the official client reads none: no other answer gets any
        elif (name := self._field(piece.type)) and piece.text:
            self._said.setdefault(name, []).append(piece.text)
            if not self.whole:
                yield self._line(self._message({name: piece.text}))

    def _field(self, kind: SegmentType) -> str | None:
        if kind is SegmentType.REASONING:
            return "thinking"
        # The reason of a refusal has no other field.
        return self.text if kind in (SegmentType.TEXT, SegmentType.REFUSAL) else None

    def tokens(self, tokens: tuple[TokenLogprob, ...], choice: int) -> None:
        """See :meth:`Writer.tokens`."""
        if not choice:
            self._logprobs += [_bare(raw) for raw in logprobs_of(tokens)]

    def end(self, reason: FinishReason, raw: str | None, choice: int) -> None:
        """See :meth:`Writer.end`."""
        if not choice:
            self._reason = self.word_for(reason, raw, wire.FINISH_REASONS)

    error_event = staticmethod(ollama_error)

    def _pending(self) -> Iterator[Event]:
        """See :meth:`Writer._pending`. They are calls and images."""
        if self.whole:
            return
        for call in self._tool_calls():
            yield self._line(self._message({"tool_calls": [call]}))
        if self._images:
            yield self._line(self._message({"images": self._images}))

    def _last(self) -> Iterator[Event]:
        """See :meth:`Writer._last`."""
        yield self._line_at_end({})

    @staticmethod
    def frame(event: Event) -> bytes:
        """See :meth:`Writer.frame`: a line."""
        return json_of(event) + b"\n"

    def _body(self) -> Event:
        """See :meth:`Writer._body`."""
        payload: Event = {name: "".join(texts) for name, texts in self._said.items()}
        if self._images:
            payload["images"] = self._images
        if self._calls:
            payload["tool_calls"] = [*self._tool_calls()]
        return self._line_at_end(payload)

    def _message(self, said: Event) -> Event:
        """Return the field, or the fields, of a line for *said*."""
        return {"message": {"role": "assistant", "content": "", **said}}

    def _line_at_end(self, said: Event) -> Event:
        line = self._line(self._message(said)) | {"done": True, "done_reason": self._reason}
        if self.duration:
            line["total_duration"] = self.duration // _MICROSECOND * 1000
        if self.usage is not None:
            counts = {name: getattr(self.usage, count) for count, name in wire.COUNTS.items()}
            line |= {name: count for name, count in counts.items() if count or not self.is_own}
        if self.is_own:
            if not self._reason:
                del line["done_reason"]
            put_back(line, self.left, over=True)
        return line

    def _line(self, said: Event) -> Event:
        line = {"model": self.heading.model, "created_at": self.heading.time, **said, "done": False}
        if self._logprobs:
            line["logprobs"], self._logprobs = self._logprobs, []
        return line

    def _tool_calls(self) -> Iterator[Event]:
        for position, call in enumerate(self._calls.values()):
            requested = input_of("".join(call.arguments))
            function = {"index": position, "name": call.name, "arguments": requested}
            yield {"id": self._ids.take(call.id, call.index), "function": function}


class OllamaGenerateWriter(OllamaChatWriter):
    """Writes Ollama's generated texts, the first of several answers."""

    form = WireForm.OLLAMA_GENERATE
    text = "response"

    def _message(self, said: Event) -> Event:
        return {"response": "", **said}


def _bare(said: Event) -> Event:
    """Return probabilities without empty fields, as Ollama leaves them out."""
    stored = {name: value for name, value in said.items() if value not in (None, [])}
    if "top_logprobs" in stored:
        stored["top_logprobs"] = [_bare(top) for top in stored["top_logprobs"]]
    return stored
