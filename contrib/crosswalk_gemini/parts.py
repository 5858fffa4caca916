"""The parts of a candidate's content (section 2.1), calls of the client's tools among them (section 3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from crosswalk.plugins import (
    CitationRef,
    MappingState,
    ResponseDelta,
    SafetyAnnotation,
    Segment,
    SegmentType,
    ToolCallDelta,
    accept_string,
    dump_json,
    take_boolean,
    take_object,
    take_objects,
    take_string,
    take_whole,
    wrong_type,
)
from crosswalk_gemini.arguments import ArgumentsWriter

__all__ = ["SERVER_TOOLS", "Answer", "Answers", "Citation", "call_end", "part_deltas"]

_MEDIA = {"inlineData": ("data", "base64"), "fileData": ("fileUri", "url")}
_ABOUT_MEDIA = {"mimeType": "media_type", "displayName": "name"}
SERVER_TOOLS = {
    "executableCode": ("code", False),
    "codeExecutionResult": ("output", False),
    "toolCall": ("args", True),
    "toolResponse": ("response", True),
}
"""What the server's own tools were asked and answered: the field that is the segment's content, and whether as JSON."""


@attrs.frozen
class Citation:
    """A source and the words that rest on it.

    Attributes:
        source: the source, without a span.
        start: the first byte of the words in the text.
        end: the byte after them; ``None`` when the provider does not say.
        words: the words themselves; ``None`` when the provider does not say.
        about: more about the source, for the segment's metadata.
    """

    source: CitationRef
    start: int = 0
    end: int | None = None
    words: str | None = None
    about: dict[str, str] = attrs.Factory(dict)


@attrs.define
class Answer:
    """One candidate so far.

    Attributes:
        choice: its number.
        said: the pieces of its text, thoughts left out.
        produced: whether it has text, a call of a client's tool, or media.
        writer: writes the arguments of the call that is being streamed; ``None`` when none is.
        word: its first finish word, which old servers send with every chunk; ``None`` before.
        citations: which of its words are cited, one after the other.
        grounding: the same by its search; the last report is the whole of it.
        ratings: the last verdicts that are not harmless.
        shown: the segments that these gave, so that what the provider repeats comes once.
    """

    choice: int
    said: list[str] = attrs.Factory(list)
    produced: bool = False
    writer: ArgumentsWriter | None = None
    word: str | None = None
    citations: list[Citation] = attrs.Factory(list)
    grounding: list[Citation] = attrs.Factory(list)
    ratings: tuple[SafetyAnnotation, ...] = ()
    shown: set[Segment] = attrs.Factory(set)


class Answers(dict[int, Answer]):
    """The candidates of one response by their number; each is made when it is first asked for."""

    def __missing__(self, choice: int) -> Answer:
        answer = self[choice] = Answer(choice)
        return answer


def part_deltas(part: dict[str, Any], answer: Answer, state: MappingState) -> Iterator[ResponseDelta]:
    """The deltas of one part; of a part of a kind that is not known, none: it stays in the extensions.

    A signature belongs to the very part that carries it. Text, reasoning and calls are streamed as deltas,
    which have no room for it; it follows them in a segment of the same type without content, which joins them.

    Raises:
        WireTypeError: what the part says, or whether it is a thought, has another type than the API promises.
    """
    thought = take_boolean(part, "thought")
    text = take_string(part, "text")
    if text and thought:
        yield ResponseDelta(reasoning_delta=text, choice=answer.choice)
    elif text:
        answer.said.append(text)
        answer.produced = True
        yield ResponseDelta(content_delta=text, choice=answer.choice)
    if part:  # most parts have no more
        is_media = not part.keys().isdisjoint(_MEDIA)
        yield from _other_deltas(part, answer, state, thought=bool(thought))
        if thought and is_media:
            return
    if thought is not None and not text:
        part["thought"] = thought  # nothing shows it


def _other_deltas(
    part: dict[str, Any], answer: Answer, state: MappingState, *, thought: bool
) -> Iterator[ResponseDelta]:
    signature = accept_string(part, "thoughtSignature")
    signed = {"signature": signature} if signature else {}
    kind = SegmentType.REASONING if thought else SegmentType.TEXT
    if "functionCall" in part and (call := take_object(part, "functionCall")) is not None:
        kind = kind if thought else SegmentType.TOOL_CALL
        for fragment in _call_deltas(call, answer, state):
            yield ResponseDelta(tool_call_delta=fragment, choice=answer.choice)
    for segment in _segments(part, {"thought": True} if thought else {}, signed):
        signed = {}
        answer.produced = answer.produced or (segment.type is SegmentType.MEDIA and not thought)
        yield ResponseDelta(segment=segment, choice=answer.choice)
    if signed:
        yield ResponseDelta(segment=Segment(kind, "", signed), choice=answer.choice)


def _segments(part: dict[str, Any], thought: dict[str, Any], signed: dict[str, Any]) -> Iterator[Segment]:
    """The parts that come whole: media and what the server's own tools did."""
    for kind, (field, encoding) in _MEDIA.items():
        if kind in part and (data := take_object(part, kind)) is not None:
            said = {
                ours: value for name, ours in _ABOUT_MEDIA.items() if (value := accept_string(data, name))
            }
            content = take_string(data, field) or ""
            yield Segment(SegmentType.MEDIA, content, {"encoding": encoding, **signed, **said, **thought})
    for kind, (field, is_json) in SERVER_TOOLS.items():
        if kind in part and (item := take_object(part, kind)) is not None:
            given = take_object(item, field) if is_json else take_string(item, field)
            content = given or "" if isinstance(given, str | None) else dump_json(given).decode()
            item.pop(field, None)
            yield Segment(SegmentType.TOOL_CALL, content, {"type": kind, **take_whole(item), **signed})


def _call_deltas(call: dict[str, Any], answer: Answer, state: MappingState) -> Iterator[ToolCallDelta]:
    """A whole call, or a fragment of one whose arguments are streamed (section 3).

    Raises:
        WireTypeError: it has no name and continues no call, or a leaf has another type than the API promises.
    """
    choice = answer.choice
    args = take_object(call, "args")
    pieces = take_objects(call, "partialArgs")
    goes_on = take_boolean(call, "willContinue")
    if goes_on is not None:
        call["willContinue"] = goes_on  # at the end of a call nothing else shows it
    is_named, has_id = (call.get(key) not in (None, "") for key in ("name", "id"))
    answer.produced = True
    if is_named:
        yield from call_end(answer, state)
        arguments = None
        if pieces or goes_on:
            answer.writer = ArgumentsWriter()
        elif args is not None:
            arguments = dump_json(args).decode()
            args.clear()
        yield state.take_tool_call(call, arguments=arguments, choice=choice, whole=True)
    elif args or (answer.writer is None and (pieces or has_id or not state.has_tool_calls(choice))):
        # Without all of these it ends a call that has ended already.
        raise wrong_type(call, "name", "a tool's name")
    if answer.writer is not None:
        text = "".join(map(answer.writer.write, pieces))
        if has_id and not is_named:
            yield state.take_tool_call(call, arguments=text, choice=choice)
        elif text:
            yield state.tool_call(arguments=text, choice=choice)
        if not goes_on:
            yield from call_end(answer, state)


def call_end(answer: Answer, state: MappingState) -> Iterator[ToolCallDelta]:
    """The end of the call that is being streamed, where one is."""
    if answer.writer is not None:
        closing, answer.writer = answer.writer.close(), None
        if closing:
            yield state.tool_call(arguments=closing, choice=answer.choice)
