"""The choices of an answer while it is received: their text, segments, tool calls and corrections."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from crosswalk.plain_errors import ResponseValidationError
from crosswalk.types._value import unchecked
from crosswalk.types.delta import Correction, ResponseDelta
from crosswalk.types.finish import FinishReason
from crosswalk.types.json import FrozenObject
from crosswalk.types.logprob import TokenLogprob
from crosswalk.types.message import ChatMessage, Role
from crosswalk.types.metadata import Provenance
from crosswalk.types.segment import Segment, SegmentType
from crosswalk.types.tools import CallKind, ToolCall, ToolCallDelta

_TEXT: Final = SegmentType.TEXT  # an enum's members are slow to look up
_ASSISTANT: Final = Role.ASSISTANT


class Call:
    """One tool call of one choice, as far as it has been received.

    Attributes:
        index: its position among the calls of its choice, in order of first appearance.
        id: the provider's id, or ``None`` until one comes.
        name: the tool's name, or ``None`` until one comes.
        arguments: the pieces of its arguments so far.
        kind: ``custom`` for free text, or ``None`` for a JSON object.
        wire_index: the provider's own index, or ``None`` if it sends none.
        other_id: the id of its last fragment, if that is not the id of the call.
    """

    __slots__ = ("arguments", "id", "index", "kind", "name", "other_id", "wire_index")

    def __init__(self, index: int) -> None:
        self.index = index
        self.id: str | None = None
        self.name: str | None = None
        self.arguments: list[str] = []
        self.kind: CallKind | None = None
        self.wire_index: int | None = None
        self.other_id: str | None = None

    def text(self, *, partial: bool) -> str:
        """The arguments. A whole call without any has the empty object, which is its meaning, or no text."""
        return "".join(self.arguments) or ("" if partial or self.kind is not None else "{}")


class Built:
    """The finished parts of a choice."""

    __slots__ = ("logprobs", "message", "refusal", "segments")

    def __init__(
        self,
        message: ChatMessage,
        segments: tuple[Segment, ...],
        refusal: str | None,
        logprobs: tuple[TokenLogprob, ...] | None,
    ) -> None:
        self.message = message
        self.segments = segments
        self.refusal = refusal
        self.logprobs = logprobs


class Choice:
    """One of the answers to a request while its deltas come in. Parts are in order; texts are lists that are joined once.

    Attributes:
        parts: text of a kind as pieces, whole segments, and tool calls.
        open: the kind of text that the next piece continues, or ``None`` if it begins a part.
        text: the pieces of that part.
        calls: the tool calls, by their position.
        logprobs: the tokens so far, or ``None`` before the first.
        finish: why it ended, or ``None`` until a delta reports it.
        raw_finish: the provider's own word for that, or ``None`` until it sends one.
    """

    __slots__ = (
        "_blank", "_more", "_shown", "calls", "finish", "logprobs", "open", "parts", "raw_finish", "text",
    )  # fmt: skip

    def __init__(self) -> None:
        self.parts: list[tuple[SegmentType, list[str]] | Segment | Call] = []
        self.open: SegmentType | None = None
        self.text: list[str] = []
        self.calls: dict[int, Call] = {}
        self.logprobs: list[TokenLogprob] | None = None
        self.finish: FinishReason | None = None
        self.raw_finish: str | None = None
        self._shown: set[int] = set()  # the calls that are among the parts
        self._more: dict[int, Segment] = {}  # what came later about the part of that number
        self._blank = False  # whether a content came that was empty: "", which is not None

    def add(self, delta: ResponseDelta) -> None:
        """Add all fields of *delta* for this choice: reasoning before text before calls."""
        text = delta.content_delta
        if delta.reasoning_delta is not None:
            self.write(SegmentType.REASONING, delta.reasoning_delta)
        if text is not None:
            if self.open is SegmentType.TEXT:  # most of any stream
                self.text.append(text)
            else:
                self.write(SegmentType.TEXT, text)
        if delta.refusal_delta is not None:
            self.write(SegmentType.REFUSAL, delta.refusal_delta)
        if delta.tool_call_delta is not None:
            self.add_call(delta.tool_call_delta)
        if delta.segment is not None:
            self.insert(delta.segment)
        if delta.correction is not None:
            self.correct(delta.correction)
        if delta.logprobs is not None:
            self.weigh(delta.logprobs)
        if delta.finish_reason is not None:
            self.finish = delta.finish_reason
        if delta.raw_finish_reason is not None:
            self.raw_finish = delta.raw_finish_reason

    def weigh(self, tokens: Iterable[TokenLogprob]) -> None:
        """Take the log probabilities of more *tokens*."""
        if self.logprobs is None:
            self.logprobs = []
        self.logprobs.extend(tokens)

    def start(self, kind: SegmentType) -> None:
        """Begin a part of text of *kind*."""
        self.open, self.text = kind, []
        self.parts.append((kind, self.text))

    def write(self, kind: SegmentType, text: str) -> None:
        """Take a piece of text of *kind*."""
        if self.open is not kind:
            if not text:  # some servers send an empty content with every piece of reasoning
                self._blank = self._blank or kind is SegmentType.TEXT
                return
            self.start(kind)
        self.text.append(text)

    def insert(self, part: Segment | Call) -> None:
        """Add a whole part, or more fields of the one before."""
        if type(part) is Segment and self._completes(part):
            if part.metadata or part.annotations:
                self._more[len(self.parts) - 1] = part
        else:
            self.parts.append(part)
        self.open = None

    def _completes(self, segment: Segment) -> bool:
        """Return whether *segment*, without content itself, ends the part of its type just before it.

        It may add to that part: a signature comes when the reasoning has been streamed. For a tool call, it must not name
        another call.
        """
        if segment.content or not self.parts or len(self.parts) - 1 in self._more:
            return False
        if type(self.parts[-1]) is Call:
            of_its_own = segment.metadata.keys() & {"id", "name", "type"}
            return segment.type is SegmentType.TOOL_CALL and bool(segment.metadata) and not of_its_own
        return segment.type is self.open

    def add_call(self, fragment: ToolCallDelta) -> None:
        """Take a call, or a fragment of one."""
        index = fragment.index
        call = self.calls.get(index)
        if call is None:
            call = self.calls[index] = Call(index)
        if index not in self._shown:
            self._shown.add(index)
            self.insert(call)
        # An id or a name is set once and never joined on: some servers repeat them in every fragment.
        call.id = call.id or fragment.id
        call.name = call.name or fragment.name
        call.kind = call.kind or fragment.kind
        if fragment.arguments_delta:
            call.arguments.append(fragment.arguments_delta)

    def correct(self, correction: Correction) -> None:
        """Replace streamed characters, which may lie in several parts. Emptied parts are left out of the answer."""
        if correction.call is None:
            texts = [part[1] for part in self.parts if type(part) is tuple and part[0] is correction.type]
        else:
            texts = [self.calls[correction.call].arguments] if correction.call in self.calls else []
        start, end, new = correction.start, correction.end, correction.text
        for pieces in texts:
            text = "".join(pieces)
            if start < len(text) and end > 0:
                pieces[:] = [text[: max(start, 0)] + new + text[max(end, 0) :]]
                new = ""
            start, end = start - len(text), end - len(text)

    @property
    def has_calls(self) -> bool:
        """Whether a tool call is among the parts."""
        return bool(self._shown)

    def joined(self, kind: SegmentType) -> str:
        """Return all text of *kind*, or ``""`` if there is none."""
        runs: list[str] = []
        for part in self.parts:
            if type(part) is tuple and part[0] is kind:
                runs += part[1]
            elif type(part) is Segment and part.type is kind:
                runs.append(part.content)
        return "".join(runs)

    def build(self, path: str, number: int, provenance: dict[str, Provenance], *, partial: bool) -> Built:
        """Return the finished parts. Values that were made up are noted in *provenance*, under *path*.

        A call without a name raises :class:`ResponseValidationError`, except in a partial answer, where it stays a
        segment. A call without an id gets one, the same for the same position in the answer.
        """
        logprobs = None if self.logprobs is None else tuple(self.logprobs)
        if (
            len(self.parts) == 1
            and type(part := self.parts[0]) is tuple
            and part[0] is _TEXT
            and not self._more
        ):
            text = "".join(part[1])  # most answers are one text, whose pieces were checked
            message = unchecked(ChatMessage, role=_ASSISTANT, content=text)
            return Built(message, (unchecked(Segment, type=_TEXT, content=text),), None, logprobs)
        calls: list[ToolCall] = []
        ids: dict[Call, str] = {}
        taken = {call.id for call in self.calls.values()}
        for index in sorted(self._shown):
            call = self.calls[index]
            ids[call] = call.id or _free_id(number, index, taken)
            if call.name:
                if not call.id:
                    provenance[f"{path}message.tool_calls[{len(calls)}].id"] = Provenance.SYNTHETIC
                if not call.arguments and not partial and call.kind is None:
                    provenance[f"{path}message.tool_calls[{len(calls)}].arguments"] = Provenance.DERIVED
                calls.append(ToolCall(ids[call], call.name, call.text(partial=partial), call.kind))
            elif not partial:
                raise ResponseValidationError(f"tool call {index} has no name")
        segments = tuple(
            _with_more(self._segment(part, ids, partial=partial), self._more.get(number))
            for number, part in enumerate(self.parts)
            if type(part) is not tuple
            or any(part[1])
            or number in self._more  # a correction may empty a text
        )
        content = said(segments, SegmentType.TEXT)
        if content is None and self._blank:
            content = ""
        return Built(
            ChatMessage(Role.ASSISTANT, content, None, tuple(calls)),
            segments,
            said(segments, SegmentType.REFUSAL),
            logprobs,
        )

    @staticmethod
    def _segment(
        part: tuple[SegmentType, list[str]] | Segment | Call, ids: dict[Call, str], *, partial: bool
    ) -> Segment:
        if isinstance(part, Segment):
            return part
        if isinstance(part, tuple):
            kind, pieces = part
            return Segment(kind, "".join(pieces))
        payload = {"id": ids[part]}
        if part.name:
            payload["name"] = part.name
        return Segment(SegmentType.TOOL_CALL, part.text(partial=partial), FrozenObject.adopt(payload))


def _with_more(segment: Segment, more: Segment | None) -> Segment:
    if more is None:
        return segment
    payload = {**segment.metadata.thawed(), **more.metadata.thawed()}
    return Segment(segment.type, segment.content, payload, (*segment.annotations, *more.annotations))


def _free_id(choice: int, index: int, taken: set[str | None]) -> str:
    made = f"call_{index}" if choice == 0 else f"call_{choice}_{index}"
    while made in taken:
        made += "_"
    taken.add(made)
    return made


def said(segments: Iterable[Segment], kind: SegmentType) -> str | None:
    """Return the joined contents of the segments of a kind, or ``None`` if there is none."""
    texts = [segment.content for segment in segments if segment.type is kind]
    return "".join(texts) if texts else None
