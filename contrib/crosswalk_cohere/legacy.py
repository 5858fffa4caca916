"""The APIs before v2: chat v1 (``/v1/chat``), whole and streamed (sections 3 and 4), and Generate (``/v1/generate``).

The last event of a stream of chat v1 repeats all of the answer. Repetitions are compared with the earlier events, and taken
if they are equal. Without earlier events, the last one is the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, ClassVar, Final

from crosswalk.plugins import (
    FINISH,
    ID,
    TEXT,
    CountPaths,
    FieldTable,
    MappingState,
    Recognition,
    ResponseDelta,
    Segment,
    SegmentType,
    UsageInfo,
    accept_object,
    accept_objects,
    counted,
    dump_json,
    load_json,
    require_object,
    same_json,
    take_error,
    take_object,
    take_objects,
    take_same,
    take_string,
    unknown_event,
)
from crosswalk_cohere.shared import (
    EARLY_USAGE,
    USAGE,
    FinishWords,
    citation_segment,
    cohere_error,
    end_delta,
    is_error,
    usage_info,
)

_EVENT_TYPES = (
    "stream-start",
    "search-queries-generation",
    "search-results",
    "text-generation",
    "citation-generation",
    "tool-calls-chunk",
    "tool-calls-generation",
    "stream-end",
    "debug",
)


_ID_KEYS = ("response_id", "generation_id")


class _Progress:
    """The progress of an answer.

    Attributes:
        kind: the type of the present event, or ``None`` for a body.
        has_ended: whether the body has arrived, or the event that repeats it.
        length: the number of characters of its text.
        held: the segments of the citations, which would split the text.
        comparisons: how often its calls were compared with the complete ones.
    """

    def __init__(self) -> None:
        self.kind: str | None = None
        self.has_ended = False
        self.length = 0
        self.held: list[Segment] = []
        self.comparisons = 0

    def say(self, text: str | None) -> Iterator[ResponseDelta]:
        """A piece of the text."""
        if text is not None:
            self.length += len(text)
            yield ResponseDelta(content_delta=text)


class LegacyChatDialect(FinishWords):
    """The mapping hooks for chat v1: a body is the last event of a stream."""

    text_paths: ClassVar[tuple[str, ...]] = ()
    body_fields = FieldTable(
        {
            **dict.fromkeys(_ID_KEYS, ID),
            "text": TEXT,
            **{f"meta.{path}": row for path, row in USAGE.items()},
            **{f"token_count.{path}": row for path, row in EARLY_USAGE.items()},
        },
        at=("", "response"),
    )
    """What code reads: a stream repeats its text, and its last event is a body."""

    def recognizes(self, event: Any) -> Recognition:
        """Whether *event* is one of v1, by the names of its events and of its ids."""
        match event:
            case {"event_type": str(kind)} if kind in _EVENT_TYPES:
                return Recognition.CERTAIN
            case {"text": str(), "response_id": _} | {"text": str(), "generation_id": _}:
                return Recognition.CERTAIN
        return Recognition.NO

    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """The deltas of *event*."""
        event, progress = require_object(event), state.own(_Progress)
        kind = progress.kind = take_string(event, "event_type")
        if kind is not None:
            take_same(event, "is_finished", kind == "stream-end")
        match kind:
            case "text-generation":
                yield from progress.say(take_string(event, "text"))
            case "citation-generation":
                _note_citations(event, progress)
            case "tool-calls-chunk":
                yield from _chunk(event, progress, state)
            case "tool-calls-generation":
                yield from _whole_text(event, progress, state)
                yield from _whole_calls(event, progress, state)
            case "stream-end" if not progress.has_ended:
                yield from _whole(event, take_object(event, "response") or {}, progress, state)
            case "stream-start" | "search-queries-generation" | "search-results" | "debug":
                pass
            case None if is_error(event):
                yield take_error(event, cohere_error(None, event))
            case None if "text" in event and not progress.has_ended:
                yield from _whole(event, event, progress, state)
            case _:
                raise unknown_event({"event_type": kind, **event})

    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """Take the counts in ``meta``. The first version of the API had a separate ``token_count``."""
        kind = state.own(_Progress).kind
        body = event if kind is None else event.get("response") if kind == "stream-end" else None
        if not body:
            return None
        token_count = accept_object(body, "token_count")
        return usage_info(accept_object(body, "meta") or {}, state, token_count)

    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """Return the residue of *event* at the path of a body, unless it would replace a value there."""
        remaining: dict[str, Any] = event
        response = remaining.get("response")
        if (
            state.own(_Progress).kind is not None
            and type(response) is dict
            and response.keys().isdisjoint(remaining)
        ):
            del remaining["response"]
            remaining.update(response)
        return remaining


def _chunk(event: dict[str, Any], progress: _Progress, state: MappingState) -> Iterator[ResponseDelta]:
    """Return a piece of the model's text before its tool calls, or of a call."""
    yield from progress.say(take_string(event, "text"))
    piece = take_object(event, "tool_call_delta") or {}
    yield from progress.say(take_string(piece, "text"))
    if piece.get("name") is None and piece.get("parameters") is None:
        return
    index = piece.get("index")
    if type(index) is float and index.is_integer():
        piece["index"] = int(index)  # this API writes its counts as floats
    fragment = state.take_tool_call(piece, arguments=take_string(piece, "parameters"))
    yield ResponseDelta(tool_call_delta=fragment)


def _whole(
    event: dict[str, Any], body: dict[str, Any], progress: _Progress, state: MappingState
) -> Iterator[ResponseDelta]:
    """All of the answer, as a *body* or in the last *event* of a stream, and why it ended."""
    progress.has_ended = True
    for name in _ID_KEYS:
        state.take_identity(body, id=name)
    yield from _whole_text(body, progress, state)
    yield from _whole_calls(body, progress, state)
    known_citations = state.extensions.get("citations")
    if known_citations is None:
        _note_citations(body, progress)
    else:
        take_same(body, "citations", known_citations)
    for citation in progress.held:
        yield ResponseDelta(segment=citation)
    word = take_string(event, "finish_reason") or take_string(body, "finish_reason")
    cause = take_string(event, "error") or take_string(body, "error")
    take_same(body, "finish_reason", word)
    take_same(body, "error", cause)
    yield end_delta(word or "", cause)


def _whole_text(part: dict[str, Any], progress: _Progress, state: MappingState) -> Iterator[ResponseDelta]:
    """The text, unless it has been streamed."""
    text = take_string(part, "text")
    if not progress.length:
        yield from progress.say(text)
    # The lengths first: a stream may repeat itself more than once, and must not make that costly.
    elif text is not None and not (
        len(text) == progress.length and text == state.choice(0).joined(SegmentType.TEXT)
    ):
        part["text"] = text


def _whole_calls(part: dict[str, Any], progress: _Progress, state: MappingState) -> Iterator[ResponseDelta]:
    """Return the calls, with objects as parameters, unless they were streamed."""
    wire_calls = take_objects(part, "tool_calls")
    if not state.has_tool_calls():
        for call in wire_calls:
            parameters = take_object(call, "parameters")
            call.pop("parameters", None)
            arguments = None if parameters is None else dump_json(parameters).decode()
            fragment = state.take_tool_call(call, arguments=arguments, whole=True)
            yield ResponseDelta(tool_call_delta=fragment)
        return
    progress.comparisons += 1
    if progress.comparisons > 2:  # once where they are complete, once at the end: more would be costly
        return
    sent_calls = [{**call, "parameters": call.get("parameters") or {}} for call in wire_calls]
    with suppress(ValueError):  # arguments that are not JSON differ
        calls = ((call.name, load_json(call.text(partial=False))) for call in state.tool_calls())
        if same_json(sent_calls, [{"name": name, "parameters": parameters} for name, parameters in calls]):
            part.pop("tool_calls", None)


def _note_citations(part: dict[str, Any], progress: _Progress) -> None:
    progress.held += [citation_segment(citation) for citation in accept_objects(part, "citations")]


class GenerateDialect(FinishWords):
    """The mapping hooks for Generate: a body is one event, and one generation is one choice."""

    text_paths: ClassVar[tuple[str, ...]] = ()
    fields = FieldTable({"id": ID, **{f"meta.{path}": row for path, row in USAGE.items()}})
    generation_fields = FieldTable({"text": TEXT, "finish_reason": FINISH}, at="generations[]")

    def recognizes(self, event: Any) -> Recognition:
        """Return whether *event* has generations and ``meta``, as only Cohere sends."""
        generations = event.get("generations") if isinstance(event, dict) else None
        if not isinstance(generations, list):
            return Recognition.NO
        return Recognition.CERTAIN if isinstance(event.get("meta"), dict) else Recognition.POSSIBLE

    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        """Text and end of each generation."""
        event = require_object(event)
        if "generations" not in event:
            raise unknown_event(event, "an event without generations")
        state.take_identity(event)
        for number, generation in enumerate(take_objects(event, "generations")):
            text = take_string(generation, "text")
            word = take_string(generation, "finish_reason") or ""
            yield ResponseDelta(content_delta=text, raw_finish_reason=word, choice=number)

    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """The counts in ``meta``: what is charged, as this API tells nothing else. Bedrock tells its own instead."""
        meta = accept_object(event, "meta")
        return usage_info(meta, state) if meta else counted(_METRICS_PATHS.accept(event), state)


_METRICS_PATHS: Final = CountPaths(
    {
        "prompt_tokens": "amazon-bedrock-invocationMetrics.inputTokenCount",
        "completion_tokens": "amazon-bedrock-invocationMetrics.outputTokenCount",
    }
)
