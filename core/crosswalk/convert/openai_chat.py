"""Chat Completions: the body of ``/v1/chat/completions``, and its chunks.

A body is the sum of the deltas of its chunks. Reasoning is written to ``reasoning_content``, where servers that show
any put it (provider document "OpenAI Chat Completions", section 9). OpenAI's own endpoint has no field for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar, Final

from crosswalk.convert.arguments import CallIDs
from crosswalk.convert.failure import openai_error
from crosswalk.convert.form import WireForm
from crosswalk.convert.parts import Piece
from crosswalk.convert.source import put_back
from crosswalk.convert.writer import (
    TIERS,
    Event,
    Heading,
    Writer,
    first_words,
    logprobs_of,
    unnamed_frame,
    url_citation,
)
from crosswalk.types.json import copy_json
from crosswalk.types.values import PAUSES, FinishReason, SegmentType, TokenLogprob
from crosswalk.wire import chat as wire

_FIELD: Final = first_words(wire.FIELDS)
_TEXTS: Final = (SegmentType.TEXT, SegmentType.REASONING, SegmentType.REFUSAL)


class Choice:
    """One answer under construction."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.length = 0  # of the content, in characters
        self.ids = CallIDs(number)
        self.calls: dict[int, Event] = {}  # their fields that were sent
        self.annotations: list[Event] = []
        self.details: list[Event] = []  # the known details of its reasoning, in its own form
        self.tokens: list[TokenLogprob] = []  # of the chunk to come
        self.finish: str | None = None
        self.has_begun = False
        self.has_audio = False
        self.held: list[
            Event
        ] = []  # deltas that wait for the choices before it; all of them for a whole answer

    def message(self) -> Event:
        """Return all buffered deltas as a message."""
        message: Event = {"role": "assistant", "content": None, "refusal": None}
        texts: dict[str, list[str]] = {}
        calls: dict[int, Event] = {}
        for name, raw in (item for delta in self.held for item in delta.items()):
            if isinstance(raw, str):
                texts.setdefault(name, []).append(raw)
            elif name == "tool_calls":
                call = {key: value for key, value in raw[0].items() if key != "index"}
                calls[raw[0]["index"]] = call
                if "function" in call:
                    call["function"]["arguments"] = call["function"]["arguments"] or "{}"
            else:
                message[name] = raw
        message |= {name: "".join(raw) for name, raw in texts.items()}
        if calls:
            message["tool_calls"] = [calls[self.calls[index]["index"]] for index in sorted(self.calls)]
        return message


class ChatWriter(Writer):
    """Writes Chat Completions."""

    form = WireForm.OPENAI_CHAT
    objects: ClassVar[tuple[str, str]] = (wire.BODY, wire.CHUNK)
    """The ``object`` of a body, and of a chunk."""

    def __init__(self, heading: Callable[[], Heading], *, whole: bool = False) -> None:
        super().__init__(heading, whole=whole)
        self._choices: dict[int, Choice] = {0: Choice(0)}
        self._next = 0  # the choice to begin next: clients take them in the order of their numbers only

    def piece(self, piece: Piece) -> Iterable[Event]:
        """See :meth:`Writer.piece`."""
        choice = self._choice(piece.choice)
        delta = self._delta(piece, choice)
        detail = _detail_of(piece, is_own=self.is_own)
        if detail is not None:
            choice.details.append(detail)  # it is restored with the reasoning
            if not self.whole:
                delta["reasoning_details"] = [choice.details[-1]]
        if delta:
            choice.held.append(delta)
            if not self.whole:
                yield from self._advance(choice)

    def _advance(self, choice: Choice) -> Iterator[Event]:
        """Write the waiting deltas of *choice* if the choices before it have begun, then those that waited for it."""
        if choice.number and not self._next:
            yield self._chunk(self._choices[0], {})  # there always is one
            self._next = 1
        ready: Choice | None = choice
        while ready is not None and ready.held and ready.number <= self._next:
            yield from self._written(ready)
            if ready.number < self._next:
                return
            self._next += 1
            ready = self._choices.get(self._next)

    def _written(self, choice: Choice) -> Iterator[Event]:
        buffered, choice.held = choice.held, []
        for delta in buffered:
            yield self._chunk(choice, delta)

    def _delta(self, piece: Piece, choice: Choice) -> Event:
        if piece.call is not None:
            return {"tool_calls": [self._call(piece, choice)]}
        name = _FIELD.get(piece.type, "")
        if piece.type in _TEXTS:
            choice.length += len(piece.text) if piece.type is SegmentType.TEXT else 0
            return {name: piece.text} if piece.text else {}
        if piece.type is SegmentType.CITATION:
            cited = url_citation(piece, choice.length)
            if cited is not None:  # clients take one list of them only: at the end
                choice.annotations.append({"type": "url_citation", "url_citation": cited})
        if piece.type is SegmentType.MEDIA and not choice.has_audio:
            audio = {**piece.metadata.thawed(), "data": piece.text}
            is_whole = all(type(audio.get(key)) is kind for key, kind in wire.AUDIO.items())
            if is_whole and piece.text and audio.get("type") == name:
                choice.has_audio = True
                return {name: {key: audio[key] for key in wire.AUDIO}}
        return {}

    def _call(self, piece: Piece, choice: Choice) -> Event:
        about = piece.call
        assert about is not None, "the caller has looked"
        known = choice.calls.get(about.index, {})
        # OpenAI's client cannot add up the pieces of a custom call.
        kind = "custom" if self.whole and about.kind is not None else "function"
        about_tool = {"arguments" if kind == "function" else "input": piece.text}
        payload: Event = {"index": known.get("index", len(choice.calls)), kind: about_tool}
        if not known:
            # In the order in which they begin, as in the other forms: clients take no later number first.
            known = choice.calls[about.index] = {"index": payload["index"], "id": None, "name": None}
            payload["type"] = kind
        if about.id and known["id"] is None:
            known["id"] = payload["id"] = choice.ids.take(about.id, about.index)
        if about.name and known["name"] is None:
            known["name"] = about_tool["name"] = about.name
        return payload

    def tokens(self, tokens: tuple[TokenLogprob, ...], choice: int) -> None:
        """See :meth:`Writer.tokens`."""
        self._choice(choice).tokens += tokens

    def end(self, reason: FinishReason, raw: str | None, choice: int) -> None:
        """See :meth:`Writer.end`."""
        own = raw if (self.whole and self.is_own) or raw in PAUSES else None
        self._choice(choice).finish = self.word_for(reason, own, wire.WRITTEN)

    error_event = staticmethod(openai_error)
    frame = staticmethod(unnamed_frame)

    def _pending(self) -> Iterator[Event]:
        """See :meth:`Writer._pending`. Citations, and ids of calls that got none, are known only at the end."""
        for _, choice in sorted(self._choices.items()):
            if choice.annotations:
                choice.held.append({_FIELD[SegmentType.CITATION]: choice.annotations})
            for index, call in sorted(choice.calls.items()):
                if call["id"] is None and call["name"] is not None:
                    payload = {"index": call["index"], "id": choice.ids.take(None, index)}
                    choice.held.append({"tool_calls": [{**payload, "function": {"arguments": ""}}]})
            if not self.whole:
                yield from self._written(choice)

    def _last(self) -> Iterable[Event]:
        """See :meth:`Writer._last`."""
        last = [self._chunk(choice, {}, choice.finish) for _, choice in sorted(self._choices.items())]
        raw = [chunk["choices"][0] for chunk in last]
        if self.usage is not None:
            last.append({**self._top(), "choices": [], "usage": self.usage.to_openai()})
        if self.is_own:
            self._put_back(last[-1], raw)
        yield from last
        yield {}  # the end marker

    def _body(self) -> Event:
        """See :meth:`Writer._body`."""
        choices = [self._entry(choice) for _, choice in sorted(self._choices.items())]
        body = {**self._top(), "choices": choices}
        if self.usage is not None:
            body["usage"] = self.usage.to_openai()
        if self.is_own:
            self._put_back(body, choices)
        for raw in choices:
            if details := self._choices[raw["index"]].details:
                _add_details(raw["message"], details)
        return self.spelled(body)

    def _entry(self, choice: Choice) -> Event:
        """Return *choice* in a body."""
        about = {"index": choice.number, "message": choice.message()}
        return {**about, "logprobs": _logprobs(choice), "finish_reason": choice.finish}

    def _put_back(self, top: Event, choices: list[Event]) -> None:
        """Put the stored fields of the answer back into its *choices*, and the others into *top*."""
        remaining, part = self.left, "message" if self.whole else "delta"
        there = "delta" if remaining.pop("object", None) == wire.CHUNK else "message"
        payload = {choice["index"]: choice for choice in choices}
        stored = remaining.pop("choices", ())
        for position, entry in enumerate(stored if isinstance(stored, list) else ()):
            if not isinstance(entry, dict) or type(entry.get("index", position)) is not int:
                continue
            if there in entry:
                entry[part] = entry.pop(there)
            if not self.whole:
                entry.pop("logprobs", None)  # they were written, piece by piece
                if isinstance(entry.get(part), dict):
                    entry[part] = {key: value for key, value in entry[part].items() if key not in _SPEECH}
            choice = payload.get(entry.pop("index", position))
            if choice is not None:
                put_back(choice, entry, over=self.whole)
        if self.usage is None and not self.whole:
            remaining.pop("usage", None)
        put_back(top, remaining)

    def spelled(self, event: Event) -> Event:
        """See :meth:`Writer.spelled`."""
        spell = None if self.heading.own is None else self.heading.own.info.spell
        if spell is None or self.error is not None:
            return event
        spelled: Event = copy_json(event)
        try:
            spell(spelled)
        except (AttributeError, LookupError, TypeError, ValueError):
            return event  # the stored fields have another shape than that server's answers
        return spelled

    def _choice(self, number: int) -> Choice:
        return self._choices.setdefault(number, Choice(number))

    def _chunk(self, choice: Choice, delta: Event, finish: str | None = None) -> Event:
        if not choice.has_begun:
            choice.has_begun = True
            delta = {"role": "assistant", **delta}
        payload: Event = {"index": choice.number, "delta": delta, "finish_reason": finish}
        if logprobs := _logprobs(choice):
            payload["logprobs"] = logprobs
        return {**self._top(), "choices": [payload]}

    def _top(self) -> Event:
        heading = self.heading
        created, object = int(heading.created.timestamp()), self.objects[not self.whole]
        top: Event = {"id": heading.id, "object": object, "created": created, "model": heading.model}
        tier, fingerprint = map(heading.extensions.get, ("service_tier", "system_fingerprint"))
        if tier in TIERS:
            top["service_tier"] = tier
        if isinstance(fingerprint, str):
            top["system_fingerprint"] = fingerprint
        return top


_SPEECH: Final = ("role", _FIELD[SegmentType.TEXT], _FIELD[SegmentType.TOOL_CALL])
"""The fields that the deltas of a stream have sent, regardless of the stored ones."""


def _logprobs(choice: Choice) -> Event | None:
    """Return the log probabilities of *choice* that have not been written, or ``None`` without any."""
    tokens, choice.tokens = logprobs_of(tuple(choice.tokens)), []
    return {"content": tokens, "refusal": None} if tokens else None


def _detail_of(piece: Piece, *, is_own: bool) -> Event | None:
    """Return the detail of reasoning in *piece*: as its server has sent it, or a gateway's seal, or ``None`` for another."""
    about = piece.metadata
    if piece.type is not SegmentType.REASONING or "type" not in about:
        return None
    if is_own:
        return about.thawed()
    is_seal = about.get("format") == "crosswalk"
    return {"type": about["type"], "format": about["format"], "data": about["encrypted"]} if is_seal else None


def _add_details(message: Event, details: list[Event]) -> None:
    """Put the *details* of its reasoning into *message*, each into its stored entry, or behind those of text alone."""
    there = message.setdefault("reasoning_details", [])
    if not (isinstance(there, list) and all(isinstance(detail, dict) for detail in there)):
        return
    known = {(str(detail.get("type")), str(detail.get("index"))): detail for detail in there}
    for detail in details:
        same = known.get((str(detail["type"]), str(detail.get("index"))))
        if same is None:
            there.append(detail)
        else:
            same.update(detail)
