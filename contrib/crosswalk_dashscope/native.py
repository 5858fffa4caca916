"""DashScope's own API, whole and streamed: choices under ``output``, whose text comes in pieces or whole so far."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any

from crosswalk.plugins import (
    CountPaths,
    ErrorInfo,
    FinishReason,
    MappingState,
    OpenAIChatDialect,
    Recognition,
    ResponseDelta,
    Segment,
    SegmentType,
    ToolCallDelta,
    TrailingContentError,
    UsageInfo,
    accept_object,
    counted,
    require_object,
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
_COUNT_PATHS = CountPaths(
    {
        "prompt_tokens": "input_tokens",
        "completion_tokens": "output_tokens",
        "total_tokens": "total_tokens",
        "cached_tokens": "prompt_tokens_details.cached_tokens",
        "reasoning_tokens": "output_tokens_details.reasoning_tokens",
        **{
            f"{modality}_{side}_tokens": (
                f"{side}_tokens_details.{modality}_tokens",
                *((f"{modality}_tokens",) if side == "input" and modality != "text" else ()),
            )
            for side in ("input", "output")
            for modality in ("text", "audio", "image", "video")
        },
    }
)
"""Where the usage has the counts by modality; those beside ``input_tokens`` are part of it."""


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


class NativeDialect:
    """The mapping hooks for ``text-generation`` and ``multimodal-generation``."""

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
        state.take_identity(event, id="request_id")
        take_same(event, "code", "")
        take_same(event, "message", "")
        choices = take_objects(output, "choices")
        if choices:
            take_same(output, "text", None)
            take_same(output, "finish_reason", None)
        else:
            choices = [output]  # result_format is "text"
        for number, choice in enumerate(choices):
            index = take_count(choice, "index")
            yield from _choice_deltas(
                choice, number if index is None else index, state, is_alone=len(choices) == 1
            )
        if not any(choices):
            output.pop("choices", None)

    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        """Read a finish word, which is OpenAI's."""
        return _CHAT_DIALECT.map_finish_reason(reason, state)

    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """The counts so far."""
        usage = accept_object(event, "usage")
        if not usage:
            return None
        return counted(_COUNT_PATHS.accept(usage), state)


def _is_error(event: dict[str, Any]) -> bool:
    return event.keys() >= _ERROR_KEYS and bool(event["code"]) and not event.get("output")


def _choice_deltas(
    choice: dict[str, Any], index: int, state: MappingState, *, is_alone: bool
) -> Iterator[ResponseDelta]:
    """The reasoning, text and calls of one choice, then its end."""
    if state.has_ended(index):
        raise TrailingContentError("a second answer has begun")
    state.begin(index)
    texts = state.own(_Texts)
    take_same(choice, "finish_reason", "null")
    word = take_string(choice, "finish_reason")
    ends = bool(word)
    message = take_object(choice, "message")
    if message is None:
        text = take_string(choice, "text")
    else:
        take_same(message, "role", "assistant")
        reasoning = take_string(message, "reasoning_content")
        if reasoning:
            texts.is_so_far = False  # a model that thinks streams in pieces alone
            yield ResponseDelta(reasoning_delta=reasoning, choice=index)
        text = yield from _content(message, index, state)
    if text is not None:
        is_alone = is_alone and not (message and message.get("tool_calls"))
        new_text = texts.take(index, None, text, ends=ends, is_alone=is_alone)
        if new_text:
            yield ResponseDelta(content_delta=new_text, choice=index)
    if message is not None:
        yield from _calls(message, index, state, ends=ends)
        if not message:
            choice.pop("message", None)
    if choice.get("logprobs") is not None:
        logprobs = _CHAT_DIALECT.logprobs(choice, text)
        if logprobs:
            yield ResponseDelta(logprobs=logprobs, choice=index)
    if word:
        yield from _rest(index, state)
        yield ResponseDelta(raw_finish_reason=word, choice=index)


def _content(
    part: dict[str, Any], index: int, state: MappingState
) -> Generator[ResponseDelta, None, str | None]:
    """Take the text of a message, or the joined texts of a list, whose images become segments."""
    if type(part.get("content")) is not list:
        return take_string(part, "content")
    texts = []
    items = take_objects(part, "content")
    for item in items:
        texts.append(take_string(item, "text"))
        image = take_string(item, "image")
        if texts[-1] is None and not image:
            state.note_unknown_part()
        if image:
            yield ResponseDelta(segment=Segment(SegmentType.MEDIA, image, {"type": "image"}), choice=index)
    if not any(items):
        part.pop("content", None)
    sent_texts = [text for text in texts if text is not None]
    return "".join(sent_texts) if sent_texts else None


def _calls(part: dict[str, Any], index: int, state: MappingState, *, ends: bool) -> Iterator[ResponseDelta]:
    texts = state.own(_Texts)
    calls = take_objects(part, "tool_calls")
    for call in calls:
        take_same(call, "type", "function")
        function = take_object(call, "function") or {}
        arguments, _ = take_arguments(function)
        call_start = state.take_tool_call(call, function, arguments=None, choice=index)
        new_arguments = texts.take(index, call_start.index, arguments or "", ends=ends, is_alone=False)
        if not function:
            call.pop("function", None)
        yield _call_delta(call_start, new_arguments, index)
    if not any(calls):
        part.pop("tool_calls", None)


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
