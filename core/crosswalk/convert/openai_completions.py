"""Legacy Completions: the body of ``/v1/completions``, and its chunks. They hold only text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from crosswalk.convert.failure import openai_error
from crosswalk.convert.form import WireForm
from crosswalk.convert.parts import Piece
from crosswalk.convert.source import put_back
from crosswalk.convert.writer import Event, Heading, Writer, unnamed_frame
from crosswalk.errors import ErrorInfo
from crosswalk.types.finish import FinishReason
from crosswalk.types.logprob import TokenLogprob
from crosswalk.types.segment import SegmentType
from crosswalk.wire import chat as wire

__all__ = ["CompletionsWriter"]

_WORDS: Final = {
    word: meaning for word, meaning in wire.WRITTEN.items() if meaning is not FinishReason.TOOL_CALLS
}


class _Choice:
    """One answer under construction."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.length = 0  # in characters
        self.logprobs: list[TokenLogprob] = []  # of the chunk to come
        self.finish: str | None = None


class CompletionsWriter(Writer):
    """Writes legacy Completions."""

    form = WireForm.OPENAI_COMPLETIONS

    def __init__(self, heading: Callable[[], Heading], *, whole: bool = False) -> None:
        super().__init__(heading, whole=whole)
        self._choices: dict[int, _Choice] = {0: _Choice()}

    def piece(self, piece: Piece) -> Iterable[Event]:
        """See :meth:`Writer.piece`."""
        # The reason of a refusal has no other field.
        if piece.call is None and piece.type in (SegmentType.TEXT, SegmentType.REFUSAL) and piece.text:
            choice = self._choice(piece.choice)
            choice.texts.append(piece.text)
            if not self.whole:
                yield self._chunk(piece.choice, piece.text)

    def tokens(self, tokens: tuple[TokenLogprob, ...], choice: int) -> None:
        """See :meth:`Writer.tokens`."""
        self._choice(choice).logprobs += tokens

    def end(self, reason: FinishReason, raw: str | None, choice: int) -> None:
        """See :meth:`Writer.end`."""
        self._choice(choice).finish = self.word_for(reason, raw, _WORDS)

    def fail(self, info: ErrorInfo) -> Iterable[Event]:
        """See :meth:`Writer.fail`. A chunk with the error ends the stream, without an end marker."""
        self.error = info
        yield self.error_event(info)

    error_event = staticmethod(openai_error)

    def close(self) -> Iterable[Event]:
        """See :meth:`Writer.close`."""
        if self.error is not None or self.whole:
            return
        last = [self._chunk(number, "", end=True) for number in sorted(self._choices)]
        ends = [chunk["choices"][0] for chunk in last]
        if self.usage is not None:
            last.append({**self._top(), "choices": [], "usage": self.usage.to_openai()})
        self._put_back(last[-1], ends)
        yield from last
        yield {}  # the end marker

    def frame(self, event: Event) -> bytes:
        """See :meth:`Writer.frame`. Events have no names."""
        return unnamed_frame(event)

    def body(self) -> Event:
        """See :meth:`Writer.body`."""
        if self.error is not None:
            return self.error_event(self.error)
        choices = [
            self._said(number, "".join(choice.texts), end=True)
            for number, choice in sorted(self._choices.items())
        ]
        body = {**self._top(), "choices": choices}
        if self.usage is not None:
            body["usage"] = self.usage.to_openai()
        self._put_back(body, choices)
        return body

    def _put_back(self, top: Event, choices: list[Event]) -> None:
        """Put the stored fields of the answer back into its *choices*, and the others into *top*."""
        if self.is_own:
            remaining = self.left
            stored = remaining.pop("choices", ())
            for entry in stored if isinstance(stored, list) else ():
                if isinstance(entry, dict):  # some servers use this name for the answers of a chat, too
                    entry.pop("message", None)
                    entry.pop("delta", None)
            put_back({"choices": choices}, {"choices": stored})
            put_back(top, remaining)

    def _choice(self, number: int) -> _Choice:
        return self._choices.setdefault(number, _Choice())

    def _chunk(self, number: int, text: str, *, end: bool = False) -> Event:
        return {**self._top(), "choices": [self._said(number, text, end=end)]}

    def _said(self, number: int, text: str, *, end: bool) -> Event:
        choice = self._choice(number)
        tokens, choice.logprobs = choice.logprobs, []
        logprobs = _logprobs(tokens, choice.length) if tokens else None
        choice.length += len(text)
        finish = choice.finish if end else None
        return {"text": text, "index": number, "logprobs": logprobs, "finish_reason": finish}

    def _top(self) -> Event:
        heading = self.heading
        created = int(heading.created.timestamp())
        top: Event = {"id": heading.id, "object": wire.TEXT, "created": created, "model": heading.model}
        fingerprint = heading.extensions.get("system_fingerprint")
        if isinstance(fingerprint, str):
            top["system_fingerprint"] = fingerprint
        return top


def _logprobs(tokens: Iterable[TokenLogprob], start: int) -> Event:
    """Return *tokens* in the lists of the legacy form. *start* is the position of the first one in the text."""
    payload: dict[str, list[Any]] = {
        "tokens": [],
        "token_logprobs": [],
        "top_logprobs": [],
        "text_offset": [],
    }
    for token in tokens:
        payload["tokens"].append(token.token)
        payload["token_logprobs"].append(token.logprob)
        payload["top_logprobs"].append({other.token: other.logprob for other in token.top} or None)
        payload["text_offset"].append(start)
        start += len(token.token)
    return payload
