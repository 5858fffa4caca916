"""DashScope's own API, whole and streamed: choices under ``output``, whose text comes in pieces or whole so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from crosswalk.plugins import (
    CREATED,
    ID,
    MODEL,
    ErrorInfo,
    FieldRow,
    FieldTable,
    FinishReason,
    MappingState,
    OpenAIChatDialect,
    Recognition,
    ResponseDelta,
    Said,
    Segment,
    SegmentType,
    ToolCallDelta,
    TrailingContentError,
    UsageInfo,
    accept_object,
    count,
    require_object,
    same,
    take_arguments,
    take_count,
    take_error,
    take_object,
    take_objects,
    take_same,
    take_string,
    unknown_event,
)

_ERROR_KEYS = {"code", "message", "request_id"}
_ANSWER_KEYS = {"output", "usage", "request_id", "code", "message", "status_code"}
"""The keys of an answer. The last three are those of DashScope's SDK."""
_CHAT_DIALECT = OpenAIChatDialect()
_COUNTS = {
    "input_tokens": "prompt_tokens",
    "output_tokens": "completion_tokens",
    "total_tokens": "total_tokens",
    "prompt_tokens_details.cached_tokens": "cached_tokens",
    "output_tokens_details.reasoning_tokens": "reasoning_tokens",
    **{
        f"{side}_tokens_details.{modality}_tokens": f"{modality}_{side}_tokens"
        for side in ("input", "output")
        for modality in ("text", "audio", "image", "video")
    },
    **{f"{modality}_tokens": f"{modality}_input_tokens" for modality in ("audio", "image", "video")},
}
"""The paths of the counts in the usage. Those by modality beside ``input_tokens`` are part of it."""


class _Text:
    """One text of a stream: what it says so far, and the texts of events that are held back."""

    def __init__(self) -> None:
        self.said = ""
        self.held: list[str] = []

    def is_so_far(self, sent_text: str, *, ends: bool, is_alone: bool) -> bool | None:
        """Tell whether *sent_text*, the next text, is all of it so far. ``None`` if it may also be a piece.

        All of it so far begins with the text before it and grows. It may stay the same in the last event, and in an event
        that has something else that grows.
        """
        last_text = self.held[-1] if self.held else self.said
        if not last_text:
            return None
        if not sent_text.startswith(last_text):
            return False
        if ends:
            return True  # the API's default
        if sent_text == last_text:
            return False if is_alone else None
        return True if self.held else None

    def finish(self) -> str:
        """Give the texts that are still held back. The last event had none of it, so it came in pieces."""
        remainder = "".join(self.held)
        self.held.clear()
        self.said += remainder
        return remainder


class _Texts(dict[tuple[int, int | None], _Text]):
    """By choice the text, and by choice and call its arguments.

    Each event of a stream has a piece of each or, without ``incremental_output``, all of it so far. No event repeats that
    option, so the texts tell. A text that may be either is held back, for at most an event where it grows.
    """

    is_so_far: bool | None = None
    is_alone = False  # the choice of the present event

    def take(self, choice: int, call: int | None, sent_text: str, *, ends: bool, is_alone: bool) -> str:
        """Add *sent_text* to the text of *choice*, or to the arguments of its *call*, and give the part that is new.

        Args:
            choice: the number of the choice.
            call: the position of the call, or ``None`` for the text.
            sent_text: the text of the present event.
            ends: whether it is the last event of the choice.
            is_alone: whether the event has no other text and no call.

        Raises:
            TrailingContentError: the text was whole so far, and *sent_text* does not continue it.
        """
        text = self.setdefault((choice, call), _Text())
        if self.is_so_far is None:
            self.is_so_far = text.is_so_far(sent_text, ends=ends, is_alone=is_alone)
        if self.is_so_far is None and text.said:
            text.held.append(sent_text)
            return ""
        if not self.is_so_far:
            sent_text = text.finish() + sent_text
        elif sent_text.startswith(text.said):
            sent_text = sent_text[len(text.said) :]
        else:
            raise TrailingContentError("the text does not continue the text before it")
        text.held.clear()
        text.said += sent_text
        return sent_text


# The rows of a choice, in the order of its deltas.


def _take_word(choice: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
    if choice[key] == "null":
        del choice[key]
    else:
        said.finish = take_string(choice, key) or None


def _take_reasoning(message: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
    said.reasoning = take_string(message, key)
    if said.reasoning:
        state.own(_Texts).is_so_far = False  # a model that thinks streams in pieces alone


def _take_text(part: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
    """Take what is new in the text of a message, or of a choice without one."""
    if key == "text" and part.get("message") is not None:
        return
    is_array = key == "content" and type(part[key]) is list
    text = _joined(part, key, said, state) if is_array else take_string(part, key)
    if text is not None:
        texts = state.own(_Texts)
        is_alone = texts.is_alone and not part.get("tool_calls")
        new_text = texts.take(said.choice, None, text, ends=said.finish is not None, is_alone=is_alone)
        if new_text:
            said.deltas.append(ResponseDelta(content_delta=new_text, choice=said.choice))


def _joined(message: dict[str, Any], key: str, said: Said, state: MappingState) -> str | None:
    """Take the joined texts of a list, whose images become segments."""
    texts = []
    items = take_objects(message, key)
    for item in items:
        texts.append(take_string(item, "text"))
        image = take_string(item, "image")
        if texts[-1] is None and not image:
            state.note_unknown_part()
        if image:
            segment = Segment(SegmentType.MEDIA, image, {"type": "image"})
            said.deltas.append(ResponseDelta(segment=segment, choice=said.choice))
    if not any(items):
        message.pop(key, None)
    sent_texts = [text for text in texts if text is not None]
    return "".join(sent_texts) if sent_texts else None


def _take_calls(message: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
    texts = state.own(_Texts)
    calls = take_objects(message, key)
    for call in calls:
        take_same(call, "type", "function")
        function = take_object(call, "function") or {}
        arguments, _ = take_arguments(function)
        call_start = state.take_tool_call(call, function, arguments=None, choice=said.choice)
        new_arguments = texts.take(
            said.choice, call_start.index, arguments or "", ends=said.finish is not None, is_alone=False
        )
        if not function:
            call.pop("function", None)
        said.deltas.append(_call_delta(call_start, new_arguments, said.choice))
    if not any(calls):
        message.pop(key, None)


def _take_logprobs(choice: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
    logprobs = _CHAT_DIALECT.logprobs(choice, None)
    if logprobs:
        said.deltas.append(ResponseDelta(logprobs=logprobs, choice=said.choice))


_CHOICE = {"finish_reason": FieldRow("finish_reason", _take_word), "text": FieldRow("text", _take_text)}
"""The rows of a choice, or of an output that is the only one."""


class NativeDialect:
    """The mapping hooks for ``text-generation`` and ``multimodal-generation``."""

    fields = FieldTable(
        {
            "request_id": ID,
            "model": MODEL,
            "created": CREATED,
            "code": same(""),
            "message": same(""),
        }
    )
    usage_fields = FieldTable({path: count(name) for path, name in _COUNTS.items()}, at="usage")
    output_fields = FieldTable(_CHOICE, at="output")
    choice_fields = FieldTable(
        {
            **_CHOICE,
            "message.role": same("assistant"),
            "message.reasoning_content": FieldRow("reasoning", _take_reasoning),
            "message.content": FieldRow("text", _take_text),
            "message.tool_calls": FieldRow("tool_calls", _take_calls),
            "logprobs": FieldRow("logprobs", _take_logprobs),
        },
        at="output.choices[]",
    )
    text_paths = ()

    def __init__(self, map_error: Callable[[int | None, Any], ErrorInfo]) -> None:
        self.map_error = map_error

    def recognizes(self, event: Any) -> Recognition:
        """Whether *event* has choices or a text under ``output``. Its errors have no mark.

        Lines of logs have an ``output``, too, beside keys of their own.
        """
        if not isinstance(event, dict):
            return Recognition.NO
        output = event.get("output")
        if isinstance(output, dict) and ("choices" in output or "text" in output):
            if "request_id" in event:
                return Recognition.CERTAIN
            return Recognition.POSSIBLE if event.keys() <= _ANSWER_KEYS else Recognition.NO
        return Recognition.POSSIBLE if _is_error(event) else Recognition.NO

    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        """The deltas of each choice."""
        event = require_object(event)
        if _is_error(event):
            yield take_error(event, self.map_error(None, event))
            return
        output = take_object(event, "output")
        if output is None:
            raise unknown_event(event, "no output in it")
        event_said, texts = Said(), state.own(_Texts)
        self.fields.read(event, event_said, state)
        choices, fields = take_objects(output, "choices"), self.choice_fields
        if choices:
            take_same(output, "text", None)
            take_same(output, "finish_reason", None)
        else:
            choices, fields = [output], self.output_fields  # result_format is "text"
        texts.is_alone = len(choices) == 1
        for number, choice in enumerate(choices):
            index, said = take_count(choice, "index"), Said()
            said.choice = number if index is None else index
            if state.has_ended(said.choice):
                raise TrailingContentError("a second answer has begun")
            state.begin(said.choice)
            fields.read(choice, said, state)
            if said.finish:
                said.deltas += _rest(said.choice, state)
            yield from said.speak()
        if not any(choices):
            output.pop("choices", None)
        if event_said.error is not None:
            raise event_said.error

    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """The counts so far."""
        usage = accept_object(event, "usage")
        return self.usage_fields.map_usage(usage, state) if usage else None

    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        """Read a finish word, which is OpenAI's."""
        return _CHAT_DIALECT.map_finish_reason(reason, state)


def _is_error(event: dict[str, Any]) -> bool:
    return event.keys() >= _ERROR_KEYS and bool(event["code"]) and not event.get("output")


def _rest(index: int, state: MappingState) -> Iterator[ResponseDelta]:
    """The texts that are still held back of a choice that has ended."""
    for (choice, call), text in state.own(_Texts).items():
        new_text = text.finish() if choice == index else ""
        if new_text and call is None:
            yield ResponseDelta(content_delta=new_text, choice=index)
        elif new_text:
            yield _call_delta(ToolCallDelta(call or 0), new_text, index)


def _call_delta(call_start: ToolCallDelta, arguments: str, choice: int) -> ResponseDelta:
    fragment = ToolCallDelta(call_start.index, call_start.id, call_start.name, arguments or None)
    return ResponseDelta(tool_call_delta=fragment, choice=choice)
