"""Chat Completions: the body of ``/v1/chat/completions``, and its chunks.

Reasoning stands in ``reasoning_content``, where servers that show any put it (provider document "OpenAI Chat
Completions", section 9): OpenAI's own endpoint has no field for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from crosswalk.convert.arguments import CallIDs
from crosswalk.convert.failure import openai_error
from crosswalk.convert.form import WireForm
from crosswalk.convert.parts import Piece
from crosswalk.convert.source import put_back
from crosswalk.convert.writer import Heading, Writer, json_of, url_citation, word_for
from crosswalk.errors import ErrorInfo
from crosswalk.types.finish import FinishReason
from crosswalk.types.logprob import TokenLogprob
from crosswalk.types.merge import copy_json
from crosswalk.types.segment import SegmentType

__all__ = ["ChatWriter", "token_logprob"]

_WORDS: Final = {
    FinishReason.STOP: "stop",
    FinishReason.LENGTH: "length",
    FinishReason.TOOL_CALLS: "tool_calls",
    FinishReason.CONTENT_FILTER: "content_filter",
    FinishReason.CANCELLED: "length",  # there is no word for it; this one says that the answer is incomplete
    FinishReason.ERROR: "stop",  # of an alternative: the answer itself becomes an error
}
_TEXTS: Final = {
    SegmentType.TEXT: "content",
    SegmentType.REASONING: "reasoning_content",
    SegmentType.REFUSAL: "refusal",
}
_SPEECH: Final = ("role", "content", "tool_calls")
_TIERS: Final = ("auto", "default", "flex", "scale", "priority", "fast")


class _Choice:
    """One answer while it is written."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.texts: dict[str, list[str]] = {}
        self.length = 0  # of the content, in characters
        self.ids = CallIDs(number)
        self.calls: dict[int, dict[str, Any]] = {}
        self.arguments: dict[int, list[str]] = {}
        self.annotations: list[dict[str, Any]] = []
        self.audio: dict[str, Any] | None = None
        self.details: list[dict[str, Any]] = []  # what is known of its reasoning, in its own form
        self.logprobs: list[dict[str, Any]] = []
        self.pending: list[dict[str, Any]] = []  # tokens of the chunk to come
        self.finish: str | None = None
        self.has_begun = False
        self.held: list[dict[str, Any]] = []  # deltas that wait for the choices before it

    def message(self) -> dict[str, Any]:
        """All of it, as a message."""
        said = {name: "".join(texts) for name, texts in self.texts.items()}
        message: dict[str, Any] = {
            "role": "assistant",
            "content": said.get("content"),
            "refusal": said.get("refusal"),
        }
        if "reasoning_content" in said:
            message["reasoning_content"] = said["reasoning_content"]
        if self.annotations:
            message["annotations"] = self.annotations
        if self.audio is not None:
            message["audio"] = self.audio
        if self.calls:
            message["tool_calls"] = [self._call(index) for index in sorted(self.calls)]
        return message

    def _call(self, index: int) -> dict[str, Any]:
        call = self.calls[index]
        function = {"name": call["name"], "arguments": "".join(self.arguments[index]) or "{}"}
        return {"id": call["id"], "type": "function", "function": function}


class ChatWriter(Writer[dict[str, Any]]):
    """Writes Chat Completions."""

    form = WireForm.OPENAI_CHAT

    def __init__(self, heading: Callable[[], Heading], *, whole: bool = False) -> None:
        super().__init__(heading, whole=whole)
        self._choices: dict[int, _Choice] = {0: _Choice(0)}
        self._next = 0  # the choice to begin next: clients take them in the order of their numbers only

    def piece(self, piece: Piece) -> Iterable[dict[str, Any]]:
        """See :meth:`Writer.piece`."""
        choice = self._choice(piece.choice)
        delta = self._delta(piece, choice)
        if delta:
            choice.held.append(delta)
            yield from self._advance(choice)

    def _advance(self, choice: _Choice) -> Iterator[dict[str, Any]]:
        """Write what waits in *choice*, if those before it have begun, and then in those that waited for it."""
        if choice.number and not self._next:
            yield self._chunk(self._choices[0], {})  # there always is one
            self._next = 1
        ready: _Choice | None = choice
        while ready is not None and ready.held and ready.number <= self._next:
            yield from self._written(ready)
            if ready.number < self._next:
                return
            self._next += 1
            ready = self._choices.get(self._next)

    def _written(self, choice: _Choice) -> Iterator[dict[str, Any]]:
        held, choice.held = choice.held, []
        for delta in held:
            yield self._chunk(choice, delta)

    def _delta(self, piece: Piece, choice: _Choice) -> dict[str, Any]:
        details = self._details(piece)
        choice.details += details
        said = self._said(piece, choice)
        return {**said, "reasoning_details": details} if details and not self.whole else said

    def _details(self, piece: Piece) -> list[dict[str, Any]]:
        """What is to be sent back with the reasoning of *piece*, as its server has sent it."""
        is_detail = piece.type is SegmentType.REASONING and "type" in piece.metadata
        return [piece.metadata.thawed()] if is_detail and self.is_own else []

    def _said(self, piece: Piece, choice: _Choice) -> dict[str, Any]:
        name = _TEXTS.get(piece.type)
        if name is not None:
            if not piece.text:
                return {}
            choice.texts.setdefault(name, []).append(piece.text)
            choice.length += len(piece.text) if name == "content" else 0
            return {name: piece.text}
        if piece.call is not None:
            return {"tool_calls": [self._call(piece, choice)]}
        if piece.type is SegmentType.CITATION:
            cited = url_citation(piece, choice.length)
            if cited is not None:
                annotation = {
                    "type": "url_citation",
                    "url_citation": {
                        "start_index": cited.start,
                        "end_index": cited.end,
                        "title": cited.title,
                        "url": cited.url,
                    },
                }
                choice.annotations.append(annotation)  # clients take one list of them only: at the end
        if piece.type is SegmentType.MEDIA and choice.audio is None:
            choice.audio = _audio(piece)
            return {} if choice.audio is None else {"audio": choice.audio}
        return {}

    @staticmethod
    def _call(piece: Piece, choice: _Choice) -> dict[str, Any]:
        about = piece.call
        assert about is not None, "the caller has looked"
        known = choice.calls.get(about.index)
        function: dict[str, Any] = {"arguments": piece.text}
        said: dict[str, Any] = {"function": function}
        if known is None:
            # In the order in which they begin, as in the other forms: clients take no later number first.
            known = choice.calls[about.index] = {"index": len(choice.calls), "id": None, "name": None}
            choice.arguments[about.index] = []
            said["type"] = "function"
        said["index"] = known["index"]
        choice.arguments[about.index].append(piece.text)
        if about.id and known["id"] is None:
            known["id"] = said["id"] = choice.ids.take(about.id, about.index)
        if about.name and known["name"] is None:
            known["name"] = function["name"] = about.name
        return said

    def tokens(self, tokens: tuple[TokenLogprob, ...], choice: int) -> Iterable[dict[str, Any]]:
        """See :meth:`Writer.tokens`."""
        found = self._choice(choice)
        written = [token_logprob(token) for token in tokens if token.logprob is not None]
        found.logprobs += written
        found.pending += written
        return ()

    def end(self, reason: FinishReason, raw: str | None, choice: int) -> Iterable[dict[str, Any]]:
        """See :meth:`Writer.end`."""
        is_word = raw is not None and self.whole and self.is_own
        self._choice(choice).finish = raw if is_word else word_for(reason, raw, _WORDS, _OWN)
        return ()

    def fail(self, info: ErrorInfo) -> Iterable[dict[str, Any]]:
        """See :meth:`Writer.fail`: a chunk with the error ends the stream, and no mark of its end follows."""
        yield from self._rest()
        self.error = info
        yield openai_error(info)

    def _rest(self) -> Iterator[dict[str, Any]]:
        """What is known at the end only: citations, and ids of calls that got none."""
        for _, choice in sorted(self._choices.items()):
            if choice.annotations:
                choice.held.append({"annotations": choice.annotations})
            for index, call in sorted(choice.calls.items()):
                if call["id"] is None and call["name"] is not None:
                    call["id"] = choice.ids.take(None, index)
                    said = {"index": call["index"], "id": call["id"], "function": {"arguments": ""}}
                    choice.held.append({"tool_calls": [said]})
            yield from self._written(choice)

    def close(self) -> Iterable[dict[str, Any]]:
        """See :meth:`Writer.close`."""
        if self.error is not None:
            return
        yield from self._rest()
        last = [self._chunk(choice, {}, choice.finish) for _, choice in sorted(self._choices.items())]
        if self.usage is not None:
            usage = self.usage.to_openai()
            last.append({**self._top("chat.completion.chunk"), "choices": [], "usage": usage})
        if self.is_own and not self.whole:
            left = self._left_of("delta")
            choices = {
                chunk["choices"][0]["index"]: chunk["choices"][0] for chunk in last if chunk["choices"]
            }
            for entry in left.pop("choices", ()):
                said = choices.get(entry.get("index"))
                entry.pop("logprobs", None)  # they were written, piece by piece
                delta = entry.get("delta")
                if isinstance(delta, dict):
                    entry["delta"] = {key: value for key, value in delta.items() if key not in _SPEECH}
                if said is not None:
                    put_back(said, entry)
            if self.usage is None:
                left.pop("usage", None)
            put_back(last[-1], left)
        yield from last
        yield {}  # the mark of the end

    def _left_of(self, part: str) -> dict[str, Any]:
        """What is kept of the answer; of each choice's message, whole or in pieces, under *part*."""
        left = self.left
        there = "delta" if left.pop("object", None) == "chat.completion.chunk" else "message"
        choices = left.get("choices", [])
        if not (isinstance(choices, list) and all(isinstance(choice, dict) for choice in choices)):
            del left["choices"]
        elif there != part:
            for choice in choices:
                if there in choice:
                    choice[part] = choice.pop(there)
        return left

    def frame(self, event: dict[str, Any]) -> bytes:
        """See :meth:`Writer.frame`: events have no names."""
        return b"data: %s\n\n" % (json_of(event) if event else b"[DONE]")

    def body(self) -> dict[str, Any]:
        """See :meth:`Writer.body`."""
        if self.error is not None:
            return openai_error(self.error)
        choices: list[dict[str, Any]] = [
            {
                "index": number,
                "message": choice.message(),
                "logprobs": {"content": choice.logprobs, "refusal": None} if choice.logprobs else None,
                "finish_reason": choice.finish,
            }
            for number, choice in sorted(self._choices.items())
        ]
        body = {**self._top("chat.completion"), "choices": choices}
        if self.usage is not None:
            body["usage"] = self.usage.to_openai()
        if self.is_own:
            left = self._left_of("message")
            put_back(body, {"choices": left.pop("choices", [])}, over=True)
            put_back(body, left)
            for said, (_, choice) in zip(choices, sorted(self._choices.items()), strict=False):
                _add_details(said["message"], choice.details)
        return self.spelled(body)

    def spelled(self, event: dict[str, Any]) -> dict[str, Any]:
        """See :meth:`Writer.spelled`."""
        spell = None if self.heading.own is None else self.heading.own.info.spell
        if spell is None or self.error is not None:
            return event
        spelled: dict[str, Any] = copy_json(event)
        try:
            spell(spelled)
        except (AttributeError, LookupError, TypeError, ValueError):
            return event  # what is kept of the answer has another shape than that server's answers
        return spelled

    def _choice(self, number: int) -> _Choice:
        found = self._choices.get(number)
        if found is None:
            found = self._choices[number] = _Choice(number)
        return found

    def _chunk(self, choice: _Choice, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        if not choice.has_begun:
            choice.has_begun = True
            delta = {"role": "assistant", **delta}
        said: dict[str, Any] = {"index": choice.number, "delta": delta, "finish_reason": finish}
        if choice.pending:
            said["logprobs"] = {"content": choice.pending, "refusal": None}
            choice.pending = []
        return {**self._top("chat.completion.chunk"), "choices": [said]}

    def _top(self, object: str) -> dict[str, Any]:
        heading = self.heading
        top: dict[str, Any] = {
            "id": heading.id,
            "object": object,
            "created": int(heading.created.timestamp()),
            "model": heading.model,
        }
        tier = heading.extensions.get("service_tier")
        fingerprint = heading.extensions.get("system_fingerprint")
        if tier in _TIERS:
            top["service_tier"] = tier
        if isinstance(fingerprint, str):
            top["system_fingerprint"] = fingerprint
        return top


_OWN: Final = {
    "stop": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "tool_calls": FinishReason.TOOL_CALLS,
    "content_filter": FinishReason.CONTENT_FILTER,
}


def _add_details(message: dict[str, Any], details: list[dict[str, Any]]) -> None:
    """Put into *message* the *details* of its reasoning, each to what is left of it, or behind those of text alone."""
    there = message.setdefault("reasoning_details", []) if details else []
    if not (isinstance(there, list) and all(isinstance(detail, dict) for detail in there)):
        return
    known = {(detail.get("type"), detail.get("index")): detail for detail in there}
    for detail in details:
        same = known.get((detail["type"], detail.get("index")))
        if same is None:
            there.append(detail)
        else:
            same.update(detail)


def token_logprob(token: TokenLogprob) -> dict[str, Any]:
    """A token in OpenAI's words; an alternative without a probability is left out, for none may be made up."""
    return {
        "token": token.token,
        "logprob": token.logprob,
        "bytes": None if token.bytes is None else list(token.bytes),
        "top_logprobs": list(_tops(token)),
    }


def _tops(token: TokenLogprob) -> Iterator[dict[str, Any]]:
    for top in token.top:
        if top.logprob is not None:
            said = None if top.bytes is None else list(top.bytes)
            yield {"token": top.token, "logprob": top.logprob, "bytes": said}


_AUDIO: Final = {"id": str, "expires_at": int, "transcript": str}


def _audio(piece: Piece) -> dict[str, Any] | None:
    """The audio of a message; ``None`` unless the piece says all that the form demands."""
    said = {name: piece.metadata.get(name) for name in _AUDIO}
    if piece.metadata.get("type") != "audio" or not piece.text:
        return None
    if any(type(said[name]) is not kind for name, kind in _AUDIO.items()):
        return None
    return {**said, "data": piece.text}
