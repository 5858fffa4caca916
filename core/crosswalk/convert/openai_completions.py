"""Legacy Completions: the body of ``/v1/completions``, and its chunks. They hold only text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from crosswalk.convert.form import WireForm
from crosswalk.convert.openai_chat import ChatWriter, Choice
from crosswalk.convert.parts import Piece
from crosswalk.convert.source import put_back
from crosswalk.convert.writer import Event
from crosswalk.types.values import FinishReason, SegmentType, TokenLogprob
from crosswalk.wire import chat as wire

_WORDS: Final = {
    word: meaning for word, meaning in wire.WRITTEN.items() if meaning is not FinishReason.TOOL_CALLS
}


class CompletionsWriter(ChatWriter):
    """Writes legacy Completions: Chat Completions with a text in place of the message."""

    form = WireForm.OPENAI_COMPLETIONS
    objects = (wire.TEXT, wire.TEXT)

    def piece(self, piece: Piece) -> Iterable[Event]:
        """See :meth:`Writer.piece`."""
        # The reason of a refusal has no other field.
        if piece.call is None and piece.type in (SegmentType.TEXT, SegmentType.REFUSAL) and piece.text:
            choice = self._choice(piece.choice)
            if self.whole:
                choice.held.append({"text": piece.text})
            else:
                yield self._chunk(choice, {"text": piece.text})

    def end(self, reason: FinishReason, raw: str | None, choice: int) -> None:
        """See :meth:`Writer.end`."""
        self._choice(choice).finish = self.word_for(reason, raw, _WORDS)

    def spelled(self, event: Event) -> Event:
        """See :meth:`Writer.spelled`."""
        return event

    def _entry(self, choice: Choice) -> Event:
        return self._said(choice, "".join(delta["text"] for delta in choice.held), choice.finish)

    def _chunk(self, choice: Choice, delta: Event, finish: str | None = None) -> Event:
        return {**self._top(), "choices": [self._said(choice, delta.get("text", ""), finish)]}

    def _said(self, choice: Choice, text: str, finish: str | None) -> Event:
        tokens, choice.tokens = choice.tokens, []
        logprobs = _logprobs(tokens, choice.length) if tokens else None
        choice.length += len(text)
        return {"text": text, "index": choice.number, "logprobs": logprobs, "finish_reason": finish}

    def _put_back(self, top: Event, choices: list[Event]) -> None:
        remaining = self.left
        stored = remaining.pop("choices", ())
        for entry in stored if isinstance(stored, list) else ():
            if isinstance(entry, dict):  # some servers use this name for the answers of a chat, too
                entry.pop("message", None)
                entry.pop("delta", None)
        put_back({"choices": choices}, {"choices": stored})
        put_back(top, remaining)


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
