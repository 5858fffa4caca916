"""Deltas add up to a response.

It lives with the types, not on the stream floor that re-exports it, because ``ChatResponse.from_deltas``
needs it; it knows deltas only, no provider and no wire.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any, Final

import attrs

from crosswalk.plain_errors import ResponseValidationError
from crosswalk.text import clean_message
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.error_info import ErrorInfo, ErrorKind
from crosswalk.types.filter import ContentFilterResult
from crosswalk.types.finish import FinishReason
from crosswalk.types.json import EMPTY_OBJECT, FrozenObject
from crosswalk.types.logprob import TokenLogprob
from crosswalk.types.merge import Places, copy_json, merge
from crosswalk.types.message import ChatMessage, Role
from crosswalk.types.metadata import Provenance, ResponseMetadata
from crosswalk.types.raw import RawEvents
from crosswalk.types.response import (
    NO_CAUSE,
    Alternative,
    ChatResponse,
    counted_tokens,
    error_segment,
    new_id,
    now,
)
from crosswalk.types.segment import Segment, SegmentType
from crosswalk.types.tools import ToolCall, ToolCallDelta
from crosswalk.types.usage import UsageInfo

__all__ = ["DeltaAccumulator", "Envelope", "PartialResponse"]

_ZERO: Final = timedelta(0)
_WHOLE: Final = (FinishReason.STOP, FinishReason.TOOL_CALLS)


@attrs.define(repr=False)
class Envelope:
    """What a response needs and its deltas do not say: who answered, when, and how it is known.

    Attributes:
        provider_id: the provider.
        model: the model; ``None`` when the provider did not say.
        id: the provider's id; ``None`` when it sends none.
        created: the provider's time of creation; ``None`` when it sends none.
        request_duration: from request to end; ``None`` when neither measured nor reported.
        time_to_first_token: from request to first token; ``None`` when not measured.
        provenance: canonical path to why its value is not the provider's own word.
        content_filter_results: the worst verdict of each category; ``None`` when the provider gave none.
        raw_events: the provider's bytes, event by event.
        id_factory: makes an id where the provider sends none.
        clock: tells the time of creation where the provider sends none.
    """

    provider_id: str = "unknown"
    model: str | None = None
    id: str | None = None
    created: datetime | None = None
    request_duration: timedelta | None = None
    time_to_first_token: timedelta | None = None
    provenance: dict[str, Provenance] = attrs.Factory(dict)
    content_filter_results: tuple[ContentFilterResult, ...] | None = None
    raw_events: list[bytes] = attrs.Factory(list)
    id_factory: Callable[[], str] = new_id
    clock: Callable[[], datetime] = now


class _Call:
    """A tool call while its fragments come in."""

    __slots__ = ("arguments", "id", "name")

    def __init__(self) -> None:
        self.id: str | None = None
        self.name: str | None = None
        self.arguments: list[str] = []

    def text(self, *, partial: bool) -> str:
        """The arguments; of a whole call without any the empty object, which is what it means."""
        return "".join(self.arguments) or ("" if partial else "{}")


class _Choice:
    """One answer while its deltas come in: its parts in order, text as lists that are joined once."""

    __slots__ = ("blank", "calls", "finish", "logprobs", "more", "open", "parts", "raw_finish", "text")

    def __init__(self) -> None:
        self.parts: list[tuple[SegmentType, list[str]] | Segment | _Call] = []
        self.more: dict[int, Segment] = {}  # what came later about the part of that number
        self.open: SegmentType | None = None
        self.text: list[str] = []  # of the open part
        self.blank = False  # whether a content came that was empty: "", which is not None
        self.calls: dict[int, _Call] = {}
        self.logprobs: list[TokenLogprob] | None = None
        self.finish: FinishReason | None = None
        self.raw_finish: str | None = None

    def write(self, kind: SegmentType, text: str) -> None:
        if self.open is not kind:
            if not text:  # some servers send an empty content with every piece of reasoning
                self.blank = self.blank or kind is SegmentType.TEXT
                return
            self.start(kind)
        self.text.append(text)

    def start(self, kind: SegmentType) -> None:
        self.open, self.text = kind, []
        self.parts.append((kind, self.text))

    def insert(self, part: Segment | _Call) -> None:
        if type(part) is Segment and self._completes(part):
            if part.metadata or part.annotations:
                self.more[len(self.parts) - 1] = part
        else:
            self.parts.append(part)
        self.open = None

    def _completes(self, segment: Segment) -> bool:
        """Whether *segment*, without content of its own, ends the part of its type just before it.

        It may say more about that part: a signature comes when the reasoning has been streamed. Said about a tool
        call, it names no call of its own.
        """
        if segment.content or not self.parts or len(self.parts) - 1 in self.more:
            return False
        if type(self.parts[-1]) is _Call:
            of_its_own = segment.metadata.keys() & {"id", "name", "type"}
            return segment.type is SegmentType.TOOL_CALL and bool(segment.metadata) and not of_its_own
        return segment.type is self.open

    def add(self, delta: ResponseDelta) -> None:
        """Take everything that *delta* says about this choice, reasoning before text before calls."""
        if delta.reasoning_delta is not None:
            self.write(SegmentType.REASONING, delta.reasoning_delta)
        if delta.content_delta is not None:
            self.write(SegmentType.TEXT, delta.content_delta)
        if delta.refusal_delta is not None:
            self.write(SegmentType.REFUSAL, delta.refusal_delta)
        if delta.tool_call_delta is not None:
            self.add_call(delta.tool_call_delta)
        if delta.segment is not None:
            self.insert(delta.segment)
        if delta.logprobs is not None:
            if self.logprobs is None:
                self.logprobs = []
            self.logprobs.extend(delta.logprobs)
        if delta.finish_reason is not None:
            self.finish = delta.finish_reason
        if delta.raw_finish_reason is not None:
            self.raw_finish = delta.raw_finish_reason

    def add_call(self, fragment: ToolCallDelta) -> None:
        call = self.calls.get(fragment.index)
        if call is None:
            call = self.calls[fragment.index] = _Call()
            self.insert(call)
        # An id or a name is set once and never joined on: some servers repeat them in every fragment.
        call.id = call.id or fragment.id
        call.name = call.name or fragment.name
        if fragment.arguments_delta:
            call.arguments.append(fragment.arguments_delta)

    def joined(self, kind: SegmentType) -> str | None:
        """All text of *kind*; ``None`` when there is none."""
        runs: list[str] = []
        for part in self.parts:
            if type(part) is tuple and part[0] is kind:
                runs += part[1]
            elif type(part) is Segment and part.type is kind:
                runs.append(part.content)
        return "".join(runs) if runs else None

    def build(self, path: str, number: int, provenance: dict[str, Provenance], *, partial: bool) -> _Built:
        """The finished parts; what was made up is noted in *provenance*, under *path*.

        A call without a name is no call: it makes :class:`ResponseValidationError`, except in a partial
        answer, where it stays a segment. A call without an id gets one, the same for the same place in the
        answer.
        """
        calls: list[ToolCall] = []
        ids: dict[_Call, str] = {}
        taken = {call.id for call in self.calls.values()}
        for index, call in sorted(self.calls.items()):
            ids[call] = call.id or _free_id(number, index, taken)
            if call.name:
                if not call.id:
                    provenance[f"{path}message.tool_calls[{len(calls)}].id"] = Provenance.SYNTHETIC
                arguments = call.text(partial=partial)
                if not call.arguments and not partial:
                    provenance[f"{path}message.tool_calls[{len(calls)}].arguments"] = Provenance.DERIVED
                calls.append(ToolCall(ids[call], call.name, arguments))
            elif not partial:
                raise ResponseValidationError(f"tool call {index} has no name")
        segments = tuple(
            _with_more(self._segment(part, ids, partial=partial), self.more.get(number))
            for number, part in enumerate(self.parts)
        )
        content = _said(segments, SegmentType.TEXT)
        if content is None and self.blank:
            content = ""
        return _Built(
            ChatMessage(Role.ASSISTANT, content, None, tuple(calls)),
            segments,
            _said(segments, SegmentType.REFUSAL),
            None if self.logprobs is None else tuple(self.logprobs),
        )

    @staticmethod
    def _segment(
        part: tuple[SegmentType, list[str]] | Segment | _Call, ids: dict[_Call, str], *, partial: bool
    ) -> Segment:
        if isinstance(part, Segment):
            return part
        if isinstance(part, tuple):
            kind, pieces = part
            return Segment(kind, "".join(pieces))
        said = {"id": ids[part]}
        if part.name:
            said["name"] = part.name
        return Segment(SegmentType.TOOL_CALL, part.text(partial=partial), FrozenObject.adopt(said))


def _with_more(segment: Segment, more: Segment | None) -> Segment:
    if more is None:
        return segment
    said = {**segment.metadata.thawed(), **more.metadata.thawed()}
    return Segment(segment.type, segment.content, said, (*segment.annotations, *more.annotations))


def _free_id(choice: int, index: int, taken: set[str | None]) -> str:
    made = f"call_{index}" if choice == 0 else f"call_{choice}_{index}"
    while made in taken:
        made += "_"
    taken.add(made)
    return made


@attrs.define
class _Built:
    message: ChatMessage
    segments: tuple[Segment, ...]
    refusal: str | None
    logprobs: tuple[TokenLogprob, ...] | None


class PartialResponse:
    """The answer so far: a live view that copies nothing until a property is asked for (FR-075)."""

    def __init__(self, accumulator: DeltaAccumulator) -> None:
        self._accumulator = accumulator

    @property
    def text(self) -> str:
        """The text so far."""
        return self._accumulator._joined(SegmentType.TEXT)

    @property
    def reasoning(self) -> str:
        """The reasoning so far."""
        return self._accumulator._joined(SegmentType.REASONING)

    @property
    def message(self) -> ChatMessage:
        """The message so far; tool calls that have no name yet are left out."""
        return self._accumulator._build_primary().message

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls so far, their arguments perhaps cut."""
        return self.message.tool_calls or ()

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The parts so far."""
        return self._accumulator._build_primary().segments

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why it ended; ``None`` while it has not."""
        return self._accumulator.finish_reason

    @property
    def usage(self) -> UsageInfo | None:
        """The last usage report; ``None`` while there is none."""
        return self._accumulator.usage

    @property
    def delta_count(self) -> int:
        """How many deltas it is made of."""
        return self._accumulator.delta_count

    def __repr__(self) -> str:
        return f"PartialResponse({self.delta_count} deltas, finish_reason={self.finish_reason})"


class DeltaAccumulator:
    """Adds up deltas to a response (FR-066 to FR-077).

    Deltas may come from several threads and out of order; they are put in order by ``index``. Text is kept
    in lists and joined once. A later usage report replaces an earlier one.

    Args:
        id: the response's id; ``None`` to make one.
        model: the model; ``None`` when unknown.
        provider_id: the provider.
        created: the time of creation; ``None`` to ask *clock*.
        id_factory: makes the id.
        clock: tells the time, with a time zone.
    """

    def __init__(
        self,
        *,
        id: str | None = None,
        model: str | None = None,
        provider_id: str = "unknown",
        created: datetime | None = None,
        id_factory: Callable[[], str] = new_id,
        clock: Callable[[], datetime] = now,
    ) -> None:
        self.envelope = Envelope(provider_id, model, id, created, id_factory=id_factory, clock=clock)
        self._lock = threading.Lock()
        self._next = 0
        self._early: dict[int, ResponseDelta] = {}
        self._primary = _Choice()
        self._others: dict[int, _Choice] = {}
        self._usage: UsageInfo | None = None
        self._extensions: FrozenObject = EMPTY_OBJECT
        self._merged: dict[str, Any] | None = None
        self._places = Places()

    @property
    def delta_count(self) -> int:
        """How many deltas came, those still waiting for an earlier one included (FR-074)."""
        return self._next + len(self._early)

    @property
    def total_tokens(self) -> int:
        """Tokens by the last usage report, 0 while there is none (FR-073)."""
        return self._usage.total_tokens if self._usage is not None else 0

    @property
    def usage(self) -> UsageInfo | None:
        """The last usage report; ``None`` while there is none."""
        return self._usage

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why the answer ended; ``None`` while the final delta is missing."""
        return self._primary.finish

    @property
    def is_complete(self) -> bool:
        """Whether the final delta and every delta before it came."""
        return self._primary.finish is not None and not self._early

    @property
    def current(self) -> PartialResponse:
        """The answer so far, as a live view (FR-075)."""
        return PartialResponse(self)

    def append(self, delta: ResponseDelta) -> None:
        """Add *delta*; safe from several threads at once (FR-076).

        Raises:
            ResponseValidationError: its index came before, or lies after the final delta's
                (``ACODE-RSP-010``); so may one that came too early and waited. What is refused is not kept.
        """
        with self._lock:
            if delta.index != self._next:
                self._keep_early(delta)
                return
            self._add(delta)
            while self._early and self._next in self._early:
                self._add(self._early.pop(self._next))

    def open_text(self, choice: int, kind: SegmentType) -> list[str]:
        """Where the next text of *kind* goes, for a caller that has many deltas of it in a row.

        The caller alone appends deltas; it adds their texts to this list and tells :meth:`catch_up` before
        anything else.
        """
        with self._lock:
            found = self._primary if choice == 0 else self._choice(choice)
            if found.open is not kind:
                found.start(kind)
            return found.text

    def catch_up(self, delta_count: int, extensions: dict[str, Any]) -> None:
        """Count the deltas whose texts went into :meth:`open_text`; *extensions* is what they brought."""
        with self._lock:
            self._next = delta_count
            if extensions:
                self._extend(FrozenObject.adopt(extensions))

    def report(self, usage: UsageInfo) -> None:
        """Take a usage report that no delta carried, for an answer that broke off before its end."""
        with self._lock:
            self._usage = usage

    def _keep_early(self, delta: ResponseDelta) -> None:
        if delta.index < self._next or delta.index in self._early:
            raise _out_of_order(delta.index, "came before")
        if self._primary.finish is not None:
            raise _out_of_order(delta.index, "lies after the final delta")
        self._early[delta.index] = delta

    def _add(self, delta: ResponseDelta) -> None:
        primary = self._primary
        if primary.finish is not None:
            raise _out_of_order(delta.index, "lies after the final delta")
        self._next += 1
        choice = primary if delta.choice == 0 else self._choice(delta.choice)
        choice.add(delta)
        if delta.usage is not None:
            self._usage = delta.usage if self._usage is None else _later(self._usage, delta.usage)
        if delta.extensions is not EMPTY_OBJECT:
            self._extend(delta.extensions)
        if primary.finish is not None and self._early:
            refused = min(self._early)
            self._early.clear()
            raise _out_of_order(refused, "lies after the final delta")

    def _choice(self, number: int) -> _Choice:
        choice = self._others.get(number)
        if choice is None:
            choice = self._others[number] = _Choice()
        return choice

    def _extend(self, extensions: FrozenObject) -> None:
        # The first extensions are kept as they are: a body is one event, and may carry a lot.
        if self._extensions is EMPTY_OBJECT:
            self._extensions = extensions
            return
        if self._merged is None:
            self._merged = copy_json(self._extensions._data)
        merge(self._merged, extensions._data, self._places)

    def build(self) -> ChatResponse:
        """The complete response (FR-072).

        Raises:
            ResponseValidationError: the final delta, or one before it, is missing (``ACODE-RSP-008``).
        """
        with self._lock:
            if self._primary.finish is None:
                missing = f"delta {self._next}" if self._early else "the final delta"
                raise ResponseValidationError(
                    f"Cannot build incomplete response: {missing} has not come",
                    code="ACODE-RSP-008",
                )
            return self._build(self._primary.finish, None)

    def build_partial(self, error: ErrorInfo | str) -> ChatResponse:
        """Everything so far as an error response: for an answer that will not become complete."""
        info = error if isinstance(error, ErrorInfo) else ErrorInfo(ErrorKind.UNKNOWN, error)
        with self._lock:
            return self._build(FinishReason.ERROR, info)

    def _build(self, finish: FinishReason, error: ErrorInfo | None) -> ChatResponse:
        envelope = self.envelope
        provenance = dict(envelope.provenance)
        failed = finish is FinishReason.ERROR
        built = self._primary.build("", 0, provenance, partial=finish not in _WHOLE)
        alternatives = tuple(
            self._alternative(place, number, provenance, failed=failed)
            for place, number in enumerate(sorted(self._others))
        )
        segments = built.segments if error is None else (*built.segments, error_segment(error))
        refusal = built.refusal
        if failed:
            refusal = _error_text(segments) or refusal or NO_CAUSE
        if self._usage is None:
            provenance["usage"] = Provenance.ABSENT
        if envelope.id is None:
            provenance["id"] = Provenance.SYNTHETIC
        if envelope.created is None:
            provenance["created"] = Provenance.SYNTHETIC
        if envelope.model is None:
            provenance["model"] = Provenance.ABSENT
        if envelope.request_duration is None:
            provenance["metadata.request_duration"] = Provenance.ABSENT
        usage = self._usage or UsageInfo.EMPTY
        model = envelope.model or "unknown"
        extensions = self._extensions if self._merged is None else FrozenObject.adopt(copy_json(self._merged))
        return ChatResponse(
            id=envelope.id or envelope.id_factory(),
            message=built.message,
            finish_reason=finish,
            usage=usage,
            metadata=ResponseMetadata(
                envelope.provider_id,
                model,
                envelope.request_duration or _ZERO,
                envelope.time_to_first_token,
                extensions,
                provenance,
                counted_tokens(usage, provenance),
            ),
            created=envelope.created or envelope.clock(),
            model=model,
            refusal=refusal,
            content_filter_results=envelope.content_filter_results,
            raw_finish_reason=self._primary.raw_finish,
            segments=segments,
            logprobs=built.logprobs,
            alternatives=alternatives,
            raw_events=RawEvents(envelope.raw_events),
        )

    def _alternative(
        self, place: int, number: int, provenance: dict[str, Provenance], *, failed: bool
    ) -> Alternative:
        choice = self._others[number]
        if choice.finish is None and not failed:
            raise ResponseValidationError(
                f"Cannot build incomplete response: choice {number} has not ended",
                code="ACODE-RSP-008",
            )
        finish = choice.finish or FinishReason.ERROR
        path = f"alternatives[{place}]."
        built = choice.build(path, number, provenance, partial=failed or finish not in _WHOLE)
        return Alternative(
            index=number,
            message=built.message,
            finish_reason=finish,
            raw_finish_reason=choice.raw_finish,
            refusal=built.refusal,
            segments=built.segments,
            logprobs=built.logprobs,
        )

    def _joined(self, kind: SegmentType) -> str:
        with self._lock:
            return self._primary.joined(kind) or ""

    def _build_primary(self) -> _Built:
        with self._lock:
            return self._primary.build("", 0, {}, partial=True)


def accumulate(deltas: Iterable[ResponseDelta]) -> ChatResponse:
    """The response that *deltas* add up to, whatever their order.

    Raises:
        ResponseValidationError: one is missing (``ACODE-RSP-008``) or repeated (``-010``).
    """
    accumulator = DeltaAccumulator()
    for delta in deltas:
        accumulator.append(delta)
    return accumulator.build()


def _later(old: UsageInfo, new: UsageInfo) -> UsageInfo:
    """*new*, with the counts that it does not have and *old* has: they are not taken back."""
    missing = {
        name: count
        for name in ("cached_tokens", "reasoning_tokens", "cache_write_tokens")
        if getattr(new, name) is None and (count := getattr(old, name)) is not None
    }
    return attrs.evolve(new, **missing) if missing else new


def _said(segments: Iterable[Segment], kind: SegmentType) -> str | None:
    texts = [segment.content for segment in segments if segment.type is kind]
    return "".join(texts) if texts else None


def _error_text(segments: Iterable[Segment]) -> str | None:
    return next((clean_message(s.content) for s in segments if s.type is SegmentType.ERROR), None)


def _out_of_order(index: int, cause: str) -> ResponseValidationError:
    return ResponseValidationError(
        f"Accumulator received out-of-order delta: index {index} {cause}", code="ACODE-RSP-010"
    )
