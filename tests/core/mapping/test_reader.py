"""The rules that are the same for every provider (design, sections 5 and 6)."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import orjson
import pytest
from hypothesis import given, strategies as st

from crosswalk import (
    ChatResponse,
    CrosswalkError,
    DeltaAccumulator,
    ErrorInfo,
    ErrorKind,
    FinishReason,
    IncompleteStreamError,
    InvalidJSONError,
    Limits,
    LineTooLongError,
    MappingError,
    NestingTooDeepError,
    PluginError,
    ResponseDelta,
    ResponseValidationError,
    Segment,
    SegmentType,
    StreamTooLargeError,
    TooManyEventsError,
    TrailingContentError,
    UnknownEventError,
    UnknownFinishReasonError,
    UsageInfo,
    WireTypeError,
    to_jsonable,
)
from crosswalk.plugin.state import mistyped
from crosswalk.plugins import MappingState, ProviderInfo, accept_count, error_delta, hookimpl
from wires import Echo, body, chunk, line, ndjson, outcome, read, reader, sse, usage

STOP, LENGTH, CALLS = FinishReason.STOP, FinishReason.LENGTH, FinishReason.TOOL_CALLS
FILTER, ERROR, CANCELLED = FinishReason.CONTENT_FILTER, FinishReason.ERROR, FinishReason.CANCELLED


class Plain:
    """A provider with the events that the tests need: every key is one thing to do."""

    pieces: tuple[str, ...] = ()

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """Describe it."""
        return ProviderInfo(title="Plain")

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
        """Say what the event's keys say."""
        if "unknown" in event:
            raise UnknownEventError("a new kind of event", event_type=event["unknown"])
        if "error" in event:
            return [error_delta(ErrorInfo(ErrorKind.SERVER, event["error"]))]
        choice = event.get("choice", 0)
        deltas = []
        if "call" in event:
            call = state.tool_call(name=event["call"], choice=choice, whole=True)
            deltas.append(ResponseDelta(tool_call_delta=call, choice=choice))
        if "text" in event or "end" in event or "reason" in event:
            deltas.append(
                ResponseDelta(
                    content_delta=event.get("text"),
                    raw_finish_reason=event.get("end"),
                    finish_reason=event.get("reason"),
                    choice=choice,
                )
            )
        return deltas

    @hookimpl
    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason:
        """Know the canonical words."""
        try:
            return FinishReason(reason)
        except ValueError:
            raise UnknownFinishReasonError(reason) from None

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """Read the counts, where None is a count that was not sent."""
        if "usage" not in event:
            return None
        counts = event["usage"]
        for name, count in zip(("prompt_tokens", "completion_tokens"), counts, strict=False):
            state.note(f"usage.{name}", "absent" if count is None else None)
        return UsageInfo(counts[0] or 0, counts[1] or 0, *counts[2:])

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """Leave the rest."""
        taken = {"text", "end", "reason", "choice", "call", "usage", "error"}
        return {key: value for key, value in event.items() if key not in taken}


def plain(*events: Any, **options: Any) -> tuple[list[ResponseDelta], ChatResponse]:
    return read(Plain(), ndjson(*events), **options)


def failure(*events: Any, **options: Any) -> tuple[ChatResponse, MappingError]:
    partial, error = outcome(Plain(), ndjson(*events), **options)
    assert isinstance(error, MappingError)
    return partial, error


# --------------------------------------------------------------------------------------------- the end


@pytest.mark.parametrize(
    "events",
    [
        events
        for events in itertools.permutations([{"text": "a"}, {"end": "length"}, {"usage": [3, 4]}, {"x": 1}])
        if events.index({"text": "a"}) < events.index({"end": "length"})
    ],
)
def test_the_end_comes_last_with_the_usage(events: tuple[Any, ...]) -> None:
    """In whatever order the provider sends them, the last delta has finish reason, word and usage, and only it."""
    deltas, response = plain(*events)
    *before, last = deltas
    assert (last.finish_reason, last.raw_finish_reason, last.usage) == (LENGTH, "length", UsageInfo(3, 4))
    assert not any(delta.is_complete or delta.raw_finish_reason for delta in before)
    assert [delta.index for delta in deltas] == list(range(len(deltas)))
    assert (response.text, response.finish_reason) == ("a", LENGTH)
    assert response.usage == UsageInfo(3, 4)
    assert response.metadata.extensions == {"x": 1}


def test_what_comes_with_the_end_is_shown_before_it() -> None:
    """The last text, a call and the residue of a final event each come as what they are. The end is one more delta."""
    deltas, response = plain({"text": "a"}, {"text": "b", "call": "go", "end": "stop", "x": 1})
    assert [delta.content_delta for delta in deltas] == ["a", None, "b", None]
    assert deltas[1].tool_call_delta is not None
    assert deltas[1].extensions == {"x": 1}
    assert deltas[-1].finish_reason is CALLS
    assert response.text == "ab"


@pytest.mark.parametrize(
    "events",
    [
        ({"text": "a"}, {"end": "stop"}, {"text": "b"}, {"end": "stop"}),
        ({"text": "a", "end": "stop"}, {"call": "go"}),
        ({"text": "a"}, {"text": "b", "choice": 1, "end": "stop"}, {"text": "c", "choice": 1}),
    ],
)
def test_content_after_the_end_is_a_second_answer(events: tuple[Any, ...]) -> None:
    """Two answers in one input never pass as one: the first is kept, the second refused."""
    partial, error = failure(*events)
    assert isinstance(error, TrailingContentError)
    assert error.place == f"event {len(events) if events[-1].get('end') is None else len(events) - 1}"
    assert partial.finish_reason is ERROR
    assert partial.text == "a"


def test_an_event_after_the_sentinel_is_a_second_answer() -> None:
    """Nothing may follow ``[DONE]``, but keep-alives and another ``[DONE]``."""
    events = [b'data: {"text": "a", "end": "stop"}', b"data: [DONE]", b": ping", b"data: [DONE]", b"data:"]
    whole = b"\n\n".join([*events, b""])
    assert read(Plain(), whole)[1].text == "a"
    partial, error = outcome(Plain(), whole + b'data: {"x": 1}\n\n')
    assert isinstance(error, TrailingContentError)
    assert partial.text == "a"


class Named(Plain):
    """Plain, with ids and a finish that may be repeated."""

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(title="Named", repeats_finish=True)

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
        state.identify(id=event.pop("id", None))
        return super().map_delta(event, state)


def test_another_id_after_the_end_is_a_second_answer() -> None:
    """Also where it has no content, and where a finish word alone does not end an answer."""
    first, second = {"text": "a", "end": "stop", "id": "1"}, {"end": "stop", "id": "2"}
    partial, error = outcome(Named(), ndjson(first, second))
    assert isinstance(error, TrailingContentError)
    assert (partial.text, partial.id) == ("a", "1")
    assert read(Named(), ndjson(first, {"text": "b", "id": "1"}))[1].text == "ab"
    # A server that gives each event an id of its own tells nothing by it.
    own = [{"text": "a", "id": "1"}, {"text": "b", "end": "stop", "id": "2"}, {"x": 1, "id": "3"}]
    assert read(Named(), ndjson(*own))[1].text == "ab"


def test_a_server_that_repeats_its_finish_may_go_on() -> None:
    """If the plugin declares it, an early finish reason ends nothing."""

    class Repeats(Plain):
        @hookimpl
        def provider_info(self) -> ProviderInfo:
            return ProviderInfo(title="Repeats", repeats_finish=True)

    _, response = read(Repeats(), ndjson({"text": "a", "end": "stop"}, {"text": "b", "end": "stop"}))
    assert (response.text, response.finish_reason) == ("ab", STOP)


def test_an_answer_has_ended_before_its_input_has() -> None:
    """With the ends of all choices that began. Nothing may follow the sentinel alone."""
    reading = reader(Plain())
    told = []
    for event in (
        {"text": "a"},
        {"text": "b", "choice": 1},
        {"end": "stop"},
        {"end": "stop", "choice": 1},
        b"[DONE]",
    ):
        list(reading.read(sse(event, done=False)))
        told.append((reading.has_ended, reading.is_done))
    assert told == [(False, False)] * 3 + [(True, False), (True, True)]


def test_of_a_server_that_repeats_its_finish_the_end_is_not_known() -> None:
    class Repeats(Plain):
        @hookimpl
        def provider_info(self) -> ProviderInfo:
            return ProviderInfo(title="Repeats", repeats_finish=True)

    reading = reader(Repeats())
    list(reading.read(sse({"text": "a", "end": "stop"}, done=False)))
    assert not reading.has_ended
    list(reading.finish())
    assert reading.has_ended


def test_messages_are_redacted_and_nothing_else() -> None:
    """Fields of the request, which a server may repeat."""
    reading = reader(Plain(), redact=lambda text: text.replace("hunter2", "***"), status=401)
    list(reading.read(b'{"error": {"message": "not hunter2", "code": "hunter2"}}'))
    list(reading.finish())
    response = reading.response()
    info = response.error_info
    assert info is not None
    assert (info.message, info.code, response.refusal) == ("not ***", "***", "not ***")
    assert info.raw["error"]["message"] == "not hunter2"


ENDS: list[tuple[list[str], bool, FinishReason, str | None]] = [
    (["stop"], False, STOP, None),
    (["length"], False, LENGTH, None),
    (["content_filter"], False, FILTER, None),
    (["cancelled"], False, CANCELLED, None),
    (["error"], False, ERROR, None),
    (["tool_calls"], False, CALLS, "derived"),
    (["stop"], True, CALLS, "derived"),
    (["tool_calls"], True, CALLS, None),
    (["length"], True, LENGTH, None),
    (["content_filter"], True, FILTER, None),
    (["cancelled"], True, CANCELLED, None),
    (["error"], True, ERROR, None),
    *(
        (
            [first, second],
            False,
            max(FinishReason(first), FinishReason(second), key=[STOP, LENGTH].index),
            None,
        )
        for first, second in itertools.permutations(["stop", "length"], 2)
    ),
    (["content_filter", "length"], False, FILTER, None),
    (["length", "content_filter"], False, FILTER, None),
    (["cancelled", "content_filter"], False, CANCELLED, None),
    (["content_filter", "cancelled"], False, CANCELLED, None),
    (["error", "cancelled"], False, ERROR, None),
    (["cancelled", "error"], False, ERROR, None),
    (["stop", "error", "length"], True, ERROR, None),
    (["tool_calls", "stop"], True, CALLS, None),
    (["stop", "tool_calls", "length"], True, LENGTH, None),
]


@pytest.mark.sweep
@pytest.mark.parametrize(("words", "called", "reason", "provenance"), ENDS)
@pytest.mark.parametrize("choice", [0, 1])
def test_the_finish_precedence(
    words: list[str], called: bool, reason: FinishReason, provenance: str | None, choice: int
) -> None:
    """error > cancelled > content_filter > length > tool_calls > stop, for each choice by itself."""
    events: list[Any] = [{"end": "stop"}] if choice else []
    events += [{"call": "go", "choice": choice}] if called else [{"text": "a", "choice": choice}]
    events += [{"end": word, "choice": choice} for word in words]
    _, response = plain(*events)
    ended: Any = response if choice == 0 else response.alternatives[0]
    assert ended.finish_reason is reason
    assert ended.raw_finish_reason in words
    where = "finish_reason" if choice == 0 else "alternatives[0].finish_reason"
    said = response.metadata.provenance.get(where)
    assert said == (provenance if words[-1] == ended.raw_finish_reason else said)


def test_of_two_words_of_one_meaning_the_later_is_kept() -> None:
    """As everywhere, what is said later replaces what was said before."""
    assert plain({"end": "STOP"}, {"end": "Stop"})[1].raw_finish_reason == "Stop"


def test_a_finish_reason_that_the_plugin_gives_is_left_as_it_is() -> None:
    """A delta that carries its finish reason is not asked about. The word next to it is kept."""
    deltas, response = plain({"text": "a", "reason": "length", "end": "whatever"})
    assert (response.finish_reason, response.raw_finish_reason) == (LENGTH, "whatever")
    assert [delta.is_complete for delta in deltas] == [False, True]
    _, response = plain({"end": "stop"}, {"reason": "stop"})
    assert (response.finish_reason, response.raw_finish_reason) == (STOP, "stop")


def test_an_error_word_makes_an_error_response() -> None:
    """An end of the kind error has an error segment, although the provider gave no cause."""
    _, response = plain({"text": "a"}, {"end": "ERROR"})
    assert response.finish_reason is ERROR
    assert response.refusal == "the provider ended the answer with 'ERROR'"
    assert response.error_info is not None
    _, response = plain({"text": "a"}, {"reason": "error"})
    assert response.refusal == "the provider ended the answer without a reason"


@pytest.mark.parametrize("unknown", ["raise", "keep"])
def test_an_unknown_finish_word(unknown: str) -> None:
    """Raised by default, when everything has been received. Kept, it is stop and marked unmapped."""
    events = [{"text": "a"}, {"text": "b", "end": "full"}, {"usage": [3, 4], "x": 1}]
    if unknown == "keep":
        _, response = plain(*events, unknown="keep")
        assert (response.finish_reason, response.raw_finish_reason) == (STOP, "full")
        assert response.metadata.provenance["finish_reason"] == "unmapped"
        return
    partial, error = failure(*events)
    assert isinstance(error, UnknownFinishReasonError)
    assert error.reason == "full"
    assert str(error) == "test, event 2: unknown finish reason 'full'"
    assert (partial.text, partial.usage, partial.raw_finish_reason) == ("ab", UsageInfo(3, 4), "full")
    assert partial.metadata.extensions == {"x": 1}
    assert partial.finish_reason is ERROR


def test_the_first_unknown_word_is_the_one_raised() -> None:
    """If there are several, the first is named. Each choice may have its own."""
    _, error = failure({"end": "full"}, {"end": "void", "choice": 1})
    assert isinstance(error, UnknownFinishReasonError)
    assert error.reason == "full"
    _, response = plain({"end": "full"}, {"end": "void", "choice": 1, "text": "b"}, unknown="keep")
    assert response.metadata.provenance["alternatives[0].finish_reason"] == "unmapped"
    assert response.alternatives[0].raw_finish_reason == "void"


def test_an_unknown_word_with_calls_is_tool_calls() -> None:
    """Kept, an unknown word is stop, or tool_calls if a call is present."""
    _, response = plain({"call": "go", "end": "full"}, unknown="keep")
    assert response.finish_reason is CALLS
    assert response.metadata.provenance["finish_reason"] == "unmapped"


def test_a_hook_that_answers_nothing_knows_no_word() -> None:
    """A map_finish_reason that gives None leaves the word unknown, unless it is a canonical one."""

    class Silent(Plain):
        answer: Any = None

        @hookimpl
        def map_finish_reason(self, reason: str, state: Any) -> Any:
            return self.answer

    partial, error = outcome(Silent(), ndjson({"text": "a", "end": "over"}))
    assert isinstance(error, UnknownFinishReasonError)
    assert partial.text == "a"
    response, error = outcome(Silent(), ndjson({"text": "a", "end": "Length"}))
    assert (error, response.finish_reason) == (None, LENGTH)
    assert "finish_reason" not in response.metadata.provenance


# ---------------------------------------------------------------------------------------- incomplete


@pytest.mark.parametrize(
    ("events", "cause"),
    [
        ([{"text": "a"}], "test, after event 1: the input ended without the provider's terminal signal"),
        ([{"x": 1}], "test, after event 1: the input ended without the provider's terminal signal"),
        (
            [{"text": "a", "end": "stop"}, {"text": "b", "choice": 1}],
            "test, after event 2: the input ended without the provider's terminal signal of choice 1",
        ),
        (
            [{"text": "a"}, {"text": "b", "choice": 2, "end": "stop"}],
            "test, after event 2: the input ended without the provider's terminal signal",
        ),
        (
            [{"text": "b", "choice": 2, "end": "stop"}],
            "test, after event 1: the input ended without the provider's terminal signal",
        ),
    ],
)
@pytest.mark.parametrize("done", [True, False])
def test_a_stream_that_just_ends_is_incomplete(events: list[Any], cause: str, done: bool) -> None:
    """No terminal signal for every choice that began is an error, [DONE] or not. The answer so far is in partial."""
    partial, error = outcome(Plain(), sse(*events, done=done))
    assert isinstance(error, IncompleteStreamError)
    assert str(error) == cause
    assert error.partial is partial is not None
    assert partial.finish_reason is ERROR
    assert partial.refusal == error.cause
    assert partial.text == "".join(e.get("text", "") for e in events if "choice" not in e)


@pytest.mark.parametrize("data", [b"", b"\n\n", b"data: [DONE]\n\n", b": ping\n\n", b"data:\n\n"])
def test_an_empty_input_is_incomplete(data: bytes) -> None:
    """Nothing, or only keep-alives and a sentinel, is not an answer. There is nothing to keep of it."""
    for plugin in (Plain(), Echo()):
        partial, error = outcome(plugin, data)
        assert isinstance(error, IncompleteStreamError)
        assert str(error) == "test, at the start: the input is empty"
        assert partial is None


def test_a_stream_cut_in_the_middle_of_an_event_is_incomplete() -> None:
    """Half an event at the end of the input is the mark of a broken connection. Alone it is just not JSON."""
    partial, error = outcome(Plain(), b'{"text":"a"}\n{"text":"b"')
    assert isinstance(error, IncompleteStreamError)
    assert error.cause == "the input ended in the middle of an event"
    assert error.partial is not None
    assert error.partial.refusal == error.cause  # one story: what is raised is what the response tells
    assert partial.text == "a"
    _, error = outcome(Plain(), b'{"text":"a"')
    assert isinstance(error, InvalidJSONError)


def test_the_raw_word_of_a_choice_that_ended_is_kept() -> None:
    """If another choice never ends, the partial response knows how the others did."""
    partial, _ = failure(
        {"text": "a", "end": "stop"}, {"text": "b", "choice": 1, "end": "length"}, {"text": "c", "choice": 2}
    )
    assert partial.raw_finish_reason == "stop"
    assert [answer.raw_finish_reason for answer in partial.alternatives] == ["length", None]


def test_a_provider_without_a_terminal_signal_ends_with_the_input() -> None:
    """If no word is ever mapped, the end of the input is the end of every choice."""
    _, response = read(Echo(), ndjson({"text": "a"}))
    assert response.finish_reason is STOP
    assert response.raw_finish_reason is None


# -------------------------------------------------------------------------------- errors in the stream


def test_an_error_inside_a_stream_is_its_last_delta() -> None:
    """It keeps content, usage and residue. [DONE] and an end after it change nothing, its word is kept."""
    events = [{"text": "a", "x": 1}, {"usage": [3, 4]}, {"error": "it broke"}, {"end": "stop"}]
    deltas, response = read(Plain(), sse(*events))
    last = deltas[-1]
    assert (last.finish_reason, last.usage, last.raw_finish_reason) == (ERROR, UsageInfo(3, 4), "stop")
    assert last.segment is not None
    assert last.segment.type is SegmentType.ERROR
    assert [delta.is_complete for delta in deltas] == [False] * (len(deltas) - 1) + [True]
    assert (response.text, response.refusal, response.usage) == ("a", "it broke", UsageInfo(3, 4))
    assert response.metadata.extensions == {"x": 1}
    assert response.error_info == ErrorInfo(ErrorKind.SERVER, "it broke")


def test_an_error_is_an_end_of_every_choice() -> None:
    """With an error the other choices, which will never end, end with it."""
    _, response = plain({"text": "a"}, {"text": "b", "choice": 1}, {"error": "it broke"})
    assert [answer.finish_reason for answer in response.alternatives] == [ERROR]


def test_an_error_is_stronger_than_an_unknown_word() -> None:
    """A failed answer is not asked for its finish word."""
    _, response = plain({"text": "a", "end": "full"}, {"error": "it broke"})
    assert (response.finish_reason, response.raw_finish_reason) == (ERROR, "full")


def test_every_error_is_kept() -> None:
    """After a second error the response still tells the first, and has both."""
    deltas, response = plain({"text": "a"}, {"error": "one"}, {"error": "two"})
    assert response.refusal == "one"
    assert [segment.content for segment in response.segments] == ["a", "one", "two"]
    assert [delta.is_complete for delta in deltas] == [False, False, True]


def test_what_comes_after_an_error_is_kept() -> None:
    """Residue and text after the error are there as well."""
    _, response = plain({"error": "it broke"}, {"x": 1, "text": "late"}, {"y": 2})
    assert response.text == "late"
    assert response.metadata.extensions == {"x": 1, "y": 2}


def test_a_failure_after_an_error_keeps_both() -> None:
    """When the bytes after an error cannot be read, the partial response tells the provider's error first."""
    partial, error = failure({"text": "a"}, {"usage": [3, 4]}, {"error": "it broke"}, b"{x}")
    assert isinstance(error, InvalidJSONError)
    assert [s.content for s in partial.segments] == ["a", "it broke", error.cause]
    assert partial.refusal == "it broke"
    assert partial.usage == UsageInfo(3, 4)


def test_an_error_delta_of_a_plugins_own_may_carry_more() -> None:
    """Further fields of an error delta are kept with it."""

    class Own(Plain):
        @hookimpl
        def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
            segment = Segment(SegmentType.ERROR, "mine")
            return [
                ResponseDelta(
                    finish_reason=ERROR,
                    segment=segment,
                    raw_finish_reason="failed",
                    extensions={"x": 1},
                )
            ]

    _, response = read(Own(), ndjson({"y": 2}))
    assert (response.refusal, response.raw_finish_reason) == ("mine", "failed")
    assert response.metadata.extensions == {"x": 1, "y": 2}
    _, response = read(Own(), ndjson({"x": 2}))
    assert response.metadata.extensions == {"x": 2}


# -------------------------------------------------------------------------------------- unknown events


def test_an_unknown_event_raises_with_what_came_before() -> None:
    """There is no silent fallback: the event is named, with everything received before it."""
    partial, error = failure({"text": "a"}, {"unknown": "sing"}, {"text": "b", "end": "stop"})
    assert isinstance(error, UnknownEventError)
    assert error.event_type == "sing"
    assert str(error) == "test, event 2: a new kind of event"
    assert partial.text == "a"


def test_an_unknown_event_can_be_kept() -> None:
    """Kept, it is a delta of extensions alone, and the stream goes on."""
    deltas, response = plain(
        {"text": "a"}, {"unknown": "sing", "n": [1]}, {"text": "b", "end": "stop"}, unknown="keep"
    )
    assert deltas[1].extensions == {"unknown": "sing", "n": [1]}
    assert deltas[1].content_delta is None
    assert response.text == "ab"
    assert response.metadata.extensions == {"unknown": "sing", "n": [1]}


def test_the_last_value_counts_after_an_unknown_first_event() -> None:
    """The same event once more is no repetition of the last one."""
    first = {"unknown": "sing", "n": 1}
    deltas, response = plain(first, {"text": "a", "n": 2}, first, {"end": "stop"}, unknown="keep")
    assert [delta.extensions.get("n") for delta in deltas] == [1, 2, 1, None]
    assert response.metadata.extensions == first


def test_what_an_unknown_event_said_before_it_was_unknown_is_kept() -> None:
    """A hook that gives deltas one by one may find out late: they are shown, and the event is kept whole."""

    class Late(Plain):
        @hookimpl
        def map_delta(self, event: Any, state: MappingState) -> Any:
            for part in event["parts"]:
                if "text" not in part:
                    raise UnknownEventError("a part of an unknown kind", event_type=next(iter(part)))
                yield ResponseDelta(content_delta=part.pop("text"))
            yield ResponseDelta(raw_finish_reason="stop")

    parts = {"parts": [{"text": "Low "}, {"text": "water"}, {"sing": 1}]}
    deltas, response = read(Late(), ndjson(parts, {"parts": []}), unknown="keep")
    assert [delta.content_delta for delta in deltas] == ["Low ", "water", None]
    assert response.text == "Low water"
    assert response.metadata.extensions == parts
    assert response.metadata.provenance["metadata.extensions"] == "unmapped"
    partial, error = outcome(Late(), ndjson(parts))
    assert (partial.text, str(error)) == ("Low water", "test, event 1: a part of an unknown kind")


def test_an_unknown_event_may_be_no_object() -> None:
    """If it is kept, a value that is not an object has a name."""

    class Nothing(Plain):
        @hookimpl
        def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
            raise UnknownEventError("nothing is known")

    _, error = outcome(Nothing(), b"[1]", unknown="keep")
    assert isinstance(error, IncompleteStreamError)
    assert error.partial is not None
    assert error.partial.metadata.extensions == {"event": [1]}


# ------------------------------------------------------------------------------------------------ usage


@pytest.mark.parametrize(
    ("reports", "counts", "absent"),
    [
        ([[3, 4]], UsageInfo(3, 4), set()),
        ([[3, 1], [3, 2], [3, 7]], UsageInfo(3, 7), set()),
        ([[3, 0], [0, 7]], UsageInfo(0, 7), set()),
        ([[3, 0], [None, 7]], UsageInfo(3, 7), set()),
        ([[3, 5], [3, None]], UsageInfo(3, 5), set()),
        ([[None, 5], [3, None]], UsageInfo(3, 5), set()),
        ([[None, 5], [None, 6]], UsageInfo(0, 6), {"prompt_tokens"}),
        ([[3, 1, 2, 1, 9], [3, 2]], UsageInfo(3, 2, 2, 1, 9), set()),
        ([[3, 1, 2, None, 9], [3, 2, 0, 1, None]], UsageInfo(3, 2, 0, 1, 9), set()),
        ([[3, 1], [3, 1, 2]], UsageInfo(3, 1, 2), set()),
    ],
)
@pytest.mark.parametrize("with_text", [True, False])
def test_a_later_count_overwrites_an_earlier_one(
    reports: list[list[int | None]], counts: UsageInfo, absent: set[str], with_text: bool
) -> None:
    """Field by field. A missing field erases nothing, and nothing is ever added."""
    more = {"text": "a"} if with_text else {}
    deltas, response = plain(*({"usage": report, **more} for report in reports), {"end": "stop"})
    assert response.usage == counts
    assert deltas[-1].usage == counts
    marked = {path for path, why in response.metadata.provenance.items() if why == "absent"}
    placeholders = {*absent, "total_tokens"} if absent else set()
    assert {path for path in marked if path.startswith("usage")} == {f"usage.{name}" for name in placeholders}


def test_running_counts_stand_on_their_deltas() -> None:
    """A provider that reports running counts has each of them on the delta it came with, never added."""
    deltas, response = plain(
        {"text": "a", "usage": [3, 1]}, {"text": "b", "usage": [3, 2]}, {"usage": [3, 3]}, {"end": "stop"}
    )
    assert [delta.usage for delta in deltas] == [UsageInfo(3, 1), UsageInfo(3, 2), UsageInfo(3, 3)]
    assert response.usage == UsageInfo(3, 3)


def test_no_report_is_lost() -> None:
    """A report that came with nothing to show, and is then contradicted, gets its own delta."""
    deltas, _ = plain({"usage": [1, 1]}, {"usage": [2, 2]}, {"usage": [2, 2]}, {"end": "stop"})
    assert [delta.usage for delta in deltas] == [UsageInfo(1, 1), UsageInfo(2, 2)]


def test_no_usage_is_no_zero() -> None:
    """An answer without any report is marked."""
    deltas, response = plain({"text": "a", "end": "stop"})
    assert deltas[-1].usage is None
    assert response.usage == UsageInfo.EMPTY
    assert response.metadata.provenance["usage"] == "absent"


class Counting(Plain):
    """Gives the usage on its deltas."""

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
        """Count."""
        return [
            ResponseDelta(
                content_delta=event.get("text"),
                raw_finish_reason=event.get("end"),
                usage=UsageInfo(*event["counts"]) if "counts" in event else None,
            )
        ]


@pytest.mark.parametrize(
    "events",
    [
        [{"text": "a", "counts": [3, 1]}, {"end": "stop"}],
        [{"text": "a", "end": "stop", "counts": [3, 1]}],
        [{"text": "a"}, {"end": "stop", "counts": [3, 1]}],
        [{"text": "a", "usage": [1, 1]}, {"counts": [3, 1]}, {"end": "stop"}],
        [{"text": "", "usage": [1, 1]}, {"text": "a", "counts": [2, 1]}, {"end": "stop", "usage": [3, 1]}],
    ],
)
def test_usage_that_a_delta_carries_is_the_answers(events: list[Any]) -> None:
    """A plugin may put the counts on its deltas. The last delta has the last of them."""
    deltas, response = read(Counting(), ndjson(*events))
    assert deltas[-1].usage == response.usage == UsageInfo(3, 1)
    assert response.text == "a"


# ------------------------------------------------------------------------------------------ many choices


def test_the_other_choices_end_just_before_the_final_delta() -> None:
    """With n > 1 the ends come at the end of the stream, that of choice 0 last, whatever the order on the wire."""
    deltas, response = plain(
        {"text": "a"},
        {"text": "c", "choice": 2, "end": "length"},
        {"end": "stop"},
        {"text": "b", "choice": 1, "end": "stop"},
        {"usage": [3, 4]},
    )
    assert [(d.choice, d.finish_reason) for d in deltas if d.is_complete] == [
        (1, STOP),
        (2, LENGTH),
        (0, STOP),
    ]
    assert [delta.is_complete for delta in deltas] == [False, False, False, True, True, True]
    assert deltas[-1].usage == UsageInfo(3, 4)
    assert [(answer.index, answer.message.text) for answer in response.alternatives] == [(1, "b"), (2, "c")]


@given(st.permutations([(0, "a"), (0, "b"), (1, "c"), (1, "d"), (2, "e")]))
def test_interleaved_choices_are_told_apart(pieces: list[tuple[int, str]]) -> None:
    """Each answer has its own text, in its own order."""
    ends = [{"end": "stop", "choice": choice} for choice in (2, 0, 1)]
    _, response = plain(*({"text": text, "choice": choice} for choice, text in pieces), *ends)
    said = {choice: "".join(t for c, t in pieces if c == choice) for choice in range(3)}
    assert response.text == said[0]
    assert {answer.index: answer.message.text for answer in response.alternatives} == {1: said[1], 2: said[2]}


# ------------------------------------------------------------------------------------- unruly plugins


class Unruly(Plain):
    """Gives, or raises, the given value."""

    def __init__(self, hook: str, what: Any) -> None:
        self.hook, self.what = hook, what

    def _do(self, hook: str, otherwise: Any) -> Any:
        if hook != self.hook:
            return otherwise
        if isinstance(self.what, BaseException):
            raise self.what
        return self.what

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Any:
        """Do it, if it is time."""
        found = super().map_delta(event, state)
        return self._do("map_delta", found) if "now" in event else found

    @hookimpl
    def map_finish_reason(self, reason: str, state: MappingState) -> Any:
        """Do it."""
        return self._do("map_finish_reason", STOP)

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> Any:
        """Do it, if it is time."""
        return self._do("map_usage", None) if "now" in event else None

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> Any:
        """Do it, if it is time."""
        return self._do("extensions", {}) if "now" in event else {}

    @hookimpl
    def map_error(self, status: int, body: Any) -> Any:
        """Do it."""
        return self._do("map_error", None)


@pytest.mark.parametrize("hook", ["map_delta", "map_finish_reason", "map_usage", "extensions"])
@pytest.mark.parametrize(
    "fault",
    [
        KeyError("choices"),
        AttributeError("x"),
        IndexError(),
        RecursionError(),
        ResponseValidationError("Delta must have content"),
    ],
)
def test_a_plugins_bug_is_a_typed_error(hook: str, fault: Exception) -> None:
    """Whatever a hook raises on an odd payload names provider and event, and keeps what came before (P4)."""
    partial, error = outcome(
        Unruly(hook, fault), ndjson({"text": "a"}, {"now": 1, "text": "b", "end": "stop"})
    )
    assert type(error) is MappingError
    said = f"test, event 2: the plugin failed with {type(fault).__name__} in _do, line "
    assert str(error).startswith(said)
    assert str(error).endswith(" of test_reader.py")
    assert error.__cause__ is fault
    assert partial.text == ("a" if hook == "map_delta" else "ab")


@pytest.mark.parametrize("hook", ["map_delta", "map_usage", "extensions"])
@pytest.mark.parametrize(
    "fault", [PluginError("broken", plugin="test"), WireTypeError("a.b", expected="string", got=1)]
)
def test_a_plugins_typed_error_is_passed_on(hook: str, fault: CrosswalkError) -> None:
    """An exception of a hook in the words of this library stays unchanged, and gets a place."""
    reading = reader(Unruly(hook, fault))
    with pytest.raises(type(fault)) as caught:
        list(reading.read(ndjson({"now": 1})))
    assert caught.value is fault
    if isinstance(fault, WireTypeError):
        assert str(fault) == "test, event 1, a.b: expected string, got number"


@pytest.mark.parametrize(
    ("hook", "given_value"),
    [
        ("map_delta", 7),
        ("map_usage", {"prompt_tokens": 1}),
        ("map_usage", 7),
        ("map_finish_reason", "ended"),
        ("map_finish_reason", 7),
        ("extensions", [1]),
        ("extensions", "x"),
        ("extensions", 7),
    ],
)
def test_what_a_hook_must_not_give_is_a_typed_error(hook: str, given_value: Any) -> None:
    """A hook that gives another type than its specification is named, with what it gave."""
    with pytest.raises(PluginError, match=rf"^provider 'test': {hook} gave {type(given_value).__name__}"):
        outcome(Unruly(hook, given_value), ndjson({"now": 1, "text": "b", "end": "stop"}))


@pytest.mark.parametrize("deltas", ["text", [{"content_delta": "x"}], [None]])
def test_what_is_no_delta_is_a_typed_error(deltas: Any) -> None:
    """The results of map_delta are deltas, each of them."""
    kind = type(next(iter(deltas))).__name__
    with pytest.raises(PluginError, match=f"map_delta gave {kind}, not ResponseDelta"):
        outcome(Unruly("map_delta", deltas), ndjson({"now": 1, "end": "stop"}))


@pytest.mark.parametrize(
    ("hook", "given_value"), [("map_usage", 0), ("extensions", None), ("map_delta", None)]
)
def test_nothing_is_a_fair_answer(hook: str, given_value: Any) -> None:
    """A hook may have nothing to say."""
    if given_value == 0:
        given_value = None
    _, error = outcome(
        Unruly(hook, given_value), ndjson({"text": "a", "now": 1}, {"text": "b", "end": "stop"})
    )
    assert error is None


def test_a_finish_word_may_be_given_as_text() -> None:
    """A canonical word as plain text is as good as the reason itself."""
    _, response = read(Unruly("map_finish_reason", "length"), ndjson({"text": "a", "end": "x"}))
    assert response.finish_reason is LENGTH
    _, response = read(Unruly("map_finish_reason", "stop"), ndjson({"call": "go", "end": "x"}))
    assert response.finish_reason is CALLS


@pytest.mark.parametrize("parts", [{"tool_call_delta": {"index": 0, "name": "go"}}, {"segment": "a picture"}])
def test_a_delta_of_wrong_parts_is_a_typed_error(parts: dict[str, Any]) -> None:
    """A delta with parts of wrong types cannot be made, and never surfaces as a bare AttributeError."""

    class Clumsy(Plain):
        @hookimpl
        def map_delta(self, event: Any, state: MappingState) -> Any:
            if "now" in event:
                return [ResponseDelta(**parts)]
            return [ResponseDelta(content_delta="a")]

    partial, error = outcome(Clumsy(), ndjson({"text": "a"}, {"now": 1}, {"end": "stop"}))
    assert str(error).startswith("test, event 2: the plugin failed with ResponseValidationError in ")
    assert partial.text == "a"


def test_deltas_are_renumbered() -> None:
    """Wrong indexes from a plugin do not reach anybody: deltas are numbered from 0 without gaps."""

    class Lost(Plain):
        @hookimpl
        def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
            return [
                ResponseDelta(7, content_delta="a"),
                ResponseDelta(0, content_delta="b"),
                ResponseDelta(7, content_delta="c", raw_finish_reason=event.get("end")),
            ]

    deltas, response = read(Lost(), ndjson({}, {"end": "stop"}))
    assert [delta.index for delta in deltas] == list(range(7))
    assert response.text == "abcabc"


def test_a_call_without_a_name_is_no_answer() -> None:
    """A tool call that never gets its name fails with everything that came."""

    class Nameless(Plain):
        @hookimpl
        def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
            call = state.tool_call(id="a", arguments="{}")
            return [ResponseDelta(0, tool_call_delta=call, raw_finish_reason="stop")]

    partial, error = outcome(Nameless(), ndjson({}))
    assert str(error) == "test, after event 1: tool call 0 has no name"
    assert [s.content for s in partial.segments if s.type is SegmentType.TOOL_CALL] == ["{}"]


def test_extensions_of_a_plugins_own_are_merged_with_the_residue() -> None:
    """A delta may bring extensions. The residue of the event joins them."""

    class Own(Plain):
        @hookimpl
        def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
            return [
                ResponseDelta(0, content_delta="a", raw_finish_reason="stop", extensions={"own": {"a": 1}})
            ]

    deltas, response = read(Own(), ndjson({"own": {"b": 2}, "x": 3}))
    assert deltas[0].extensions == {"own": {"a": 1, "b": 2}, "x": 3}
    assert response.metadata.extensions == {"own": {"a": 1, "b": 2}, "x": 3}


# --------------------------------------------------------------------------------------------- residue


def test_what_is_replaced_after_the_end_is_shown() -> None:
    """Residue after the end waits for the final delta. A value that a later event contradicts gets a delta before it."""
    deltas, response = plain({"end": "stop"}, {"x": 1, "o": {"a": 1}}, {"o": {"b": 2}}, {"x": 2}, {"x": 2})
    assert [dict(delta.extensions) for delta in deltas] == [{"x": 1, "o": {"a": 1, "b": 2}}, {"x": 2}]
    assert response.metadata.extensions == {"x": 2, "o": {"a": 1, "b": 2}}


def test_the_residue_of_an_event_without_deltas_is_a_delta() -> None:
    """Before the end it is shown at once."""
    deltas, _ = plain({"x": 1}, {"x": 1}, {"text": "a", "x": 1}, {"end": "stop"})
    assert [dict(delta.extensions) for delta in deltas] == [{"x": 1}, {}, {}]


# ----------------------------------------------------------------------------------------------- limits


def many(count: int, *, done: bool) -> bytes:
    return sse(*[{"text": "a"}] * count, {"end": "stop"}, done=done)


@pytest.mark.parametrize("chunks", ["one", "frames", "bytes"])
@pytest.mark.parametrize("provider", ["plain", "echo"])
def test_the_number_of_events_is_limited(chunks: str, provider: str) -> None:
    """The events within the limit come out first, however the bytes are cut. Keep-alives and ends do not count."""
    cut: dict[str, Callable[[bytes], list[bytes]]] = {
        "one": lambda data: [data],
        "frames": lambda data: [frame + b"\n\n" for frame in data.split(b"\n\n")],
        "bytes": lambda data: [data[i : i + 1] for i in range(len(data))],
    }
    plugin = Plain() if provider == "plain" else Echo()
    data = b"data:\n\n" * 5 + many(4, done=True)
    if provider == "echo":
        data = data.replace(b'{"end":"stop"}', b'{"text":"a"}')
    _, response = read(plugin, cut[chunks](data), limits=Limits(events=5))
    assert response.text.startswith("aaaa")
    partial, error = outcome(plugin, cut[chunks](data), limits=Limits(events=4))
    assert isinstance(error, TooManyEventsError)
    assert error.limit == 4
    assert str(error) == "test, event 4: more than 4 events"
    assert partial.text == "aaaa"


def test_events_that_somebody_decoded_are_counted() -> None:
    """read_event keeps to the same limit."""
    reading = reader(Plain(), limits=Limits(events=1))
    assert [d.content_delta for d in reading.read_event({"text": "a"})] == ["a"]
    with pytest.raises(TooManyEventsError):
        list(reading.read_event({"text": "b"}))


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize(
    ("limits", "error_type"),
    [(Limits(line_bytes=20), LineTooLongError), (Limits(total_bytes=20), StreamTooLargeError)],
)
def test_bytes_are_limited(limits: Limits, error_type: type[MappingError], status: int) -> None:
    """Neither a line without end nor a stream without end is held, be it an answer or an error."""
    reading = reader(Plain(), limits=limits, status=status)
    with pytest.raises(error_type) as caught:
        for _ in range(9):
            list(reading.read(b'{"text": "'))
    assert caught.value.provider == "test"


def test_the_last_frame_is_limited_too() -> None:
    """A limit that is passed only when the input ends is an error as well."""
    _, error = outcome(Plain(), b'{"text":"a"}\n{"text":"b"}', limits=Limits(events=1))
    assert isinstance(error, TooManyEventsError)
    reading = reader(Plain(), limits=Limits(total_bytes=13))
    assert [d.content_delta for d in reading.read(b'{"text":"a"}\n{"text":"b"}')] == ["a"]
    with pytest.raises(StreamTooLargeError) as caught:
        list(reading.finish())
    assert caught.value.partial is not None
    assert caught.value.partial.text == "a"


def test_the_depth_of_an_event_is_limited() -> None:
    """Nesting beyond the limit is an error that names the event."""
    deep = orjson.loads(b'{"x":' + b"[" * 9 + b"]" * 9 + b"}")
    _, error = outcome(Plain(), ndjson({"text": "a"}, deep), limits=Limits(depth=9))
    assert isinstance(error, NestingTooDeepError)
    assert error.place == "event 2"


# ------------------------------------------------------------------------------------- raw, time, events


def test_the_providers_bytes_are_kept() -> None:
    """Event by event, without framing, sentinels and keep-alives. Keep_raw=False drops them."""
    data = b'data: {"text": "a"}\n\ndata:\n\n: ping\n\ndata: {"end":"stop"}\n\ndata: [DONE]\n\n'
    _, response = read(Plain(), data)
    assert response.raw_events.frames == (b'{"text": "a"}', b'{"end":"stop"}')
    _, response = read(Plain(), data, keep_raw=False)
    assert response.raw_events.frames == ()
    _, response = read("ollama", ndjson(line("a"), line("b"), line(done="stop")), keep_raw=False)
    assert (response.text, len(response.raw_events)) == ("ab", 0)


class Clock:
    """A timer that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """The time."""
        return self.now


@pytest.mark.parametrize("first", [{"text": "a"}, {"call": "go"}])
def test_a_timer_measures_duration_and_first_token(first: dict[str, Any]) -> None:
    """From the making of the reader. The first token is the first content, reasoning or call, not residue."""
    timer = Clock()
    reading = reader(Plain(), timer=timer)
    timer.now = 101
    list(reading.read(ndjson({"x": 1})))
    timer.now = 102
    list(reading.read(ndjson(first)))
    timer.now = 103
    list(reading.read(ndjson({"text": "b"})))
    assert reading.partial("so far").metadata.request_duration == timedelta(seconds=3)
    timer.now = 104
    list(reading.read(ndjson({"end": "stop", "usage": [1, 8]})))
    list(reading.finish())
    metadata = reading.response().metadata
    assert metadata.request_duration == timedelta(seconds=4)
    assert metadata.time_to_first_token == timedelta(seconds=2)
    assert metadata.tokens_per_second == 2.0


def test_without_a_token_there_is_no_first() -> None:
    """An answer without content has no time to first token. Without a timer nothing is measured."""
    _, response = plain({"end": "stop"}, timer=Clock())
    assert response.metadata.time_to_first_token is None
    _, response = plain({"text": "a", "end": "stop"})
    assert response.metadata.time_to_first_token is None
    assert response.metadata.request_duration == timedelta(0)
    assert response.metadata.tokens_per_second is None


@pytest.mark.parametrize("provider", ["ollama", "vllm"])
def test_an_event_may_come_decoded(provider: str) -> None:
    """read_event maps what somebody else has decoded as read maps the bytes, also in turns."""
    events = [chunk({"content": t}) for t in "abc"] + [chunk({}, "stop"), chunk(None, usage=usage(1, 2))]
    if provider == "ollama":
        events = [line(t, created_at=f"2026-01-01T00:00:0{n}Z") for n, t in enumerate("abc")] + [
            line(done="stop")
        ]
    _, whole = read(provider, ndjson(*events))
    for pattern in itertools.product([True, False], repeat=len(events)):
        reading = reader(provider)
        deltas: list[ResponseDelta] = []
        for decoded, event in zip(pattern, events, strict=True):
            deltas += reading.read_event(event) if decoded else reading.read(ndjson(event))
        deltas += reading.finish()
        assert reading.response().same_content(whole)
        assert [delta.index for delta in deltas] == list(range(len(deltas)))


def test_an_error_body_may_come_decoded() -> None:
    """With a status of 400 or above a decoded event is the error's body."""
    reading = reader("vllm", status=404)
    list(reading.read_event({"error": "no such model"}))
    list(reading.finish())
    assert reading.response().refusal == "no such model"


def test_a_response_is_the_sum_of_its_deltas() -> None:
    """A program that adds up the deltas has the same as the reader."""
    deltas, response = read(
        "vllm",
        sse(
            chunk({"role": "assistant", "content": ""}),
            *(chunk({"content": t}, choice=c) for c, t in [(0, "a"), (0, "b"), (1, "c"), (0, "d")]),
            chunk({}, "length", choice=1),
            chunk({}, "stop"),
            chunk(None, usage=usage(1, 2)),
        ),
    )
    total = DeltaAccumulator(provider_id="vllm")
    for delta in deltas:
        total.append(delta)
    built = total.build()
    assert (built.message, built.alternatives, built.usage) == (
        response.message,
        response.alternatives,
        response.usage,
    )
    assert built.metadata.extensions == response.metadata.extensions


def test_partial_is_a_look_that_changes_nothing() -> None:
    """It can be taken at any moment, of what has come so far, and the stream goes on as if it had not been."""
    events = [
        {"text": "a", "x": 1},
        {"text": "b", "usage": [1, 1]},
        {"text": "c", "choice": 1, "end": "stop"},
        {"end": "length"},
        {"y": [1], "usage": [1, 2]},
        {"y": [2]},
    ]
    deltas, whole = plain(*events)
    reading = reader(Plain())
    seen: list[ResponseDelta] = []
    texts = []
    for event in events:
        seen += reading.read(ndjson(event))
        partial = reading.partial("so far")
        texts.append((partial.text, partial.raw_finish_reason, partial.usage.completion_tokens))
        assert partial.finish_reason is ERROR
    assert texts == [
        ("a", None, 0),
        ("ab", None, 1),
        ("ab", None, 1),
        ("ab", "length", 1),
        ("ab", "length", 2),
        ("ab", "length", 2),
    ]
    assert partial.metadata.extensions == {"x": 1, "y": [1, 2]}
    seen += reading.finish()
    assert to_jsonable(seen) == to_jsonable(deltas)
    assert reading.response().same_content(whole)
    after = reading.partial("over")
    assert after.metadata.extensions == whole.metadata.extensions
    assert after.raw_finish_reason == "length"


def test_nothing_follows_the_end() -> None:
    """A reader that has finished reads no more."""
    reading = reader(Plain())
    list(reading.read(ndjson({"text": "a", "end": "stop"})))
    list(reading.finish())
    with pytest.raises(TrailingContentError):
        list(reading.read_event({"x": "b"}))


def test_there_is_no_response_before_the_end() -> None:
    """Asked too early a reader says that it has not ended."""
    reading = reader(Plain())
    list(reading.read(ndjson({"text": "a"})))
    with pytest.raises(ResponseValidationError, match="ACODE-RSP-008"):
        reading.response()


# ------------------------------------------------------------------------------------------ HTTP errors


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"error":{"message":"It broke","type":"server_error"}}', "It broke"),
        (b'\xef\xbb\xbf{"error":"It broke"}', "It broke"),
        (b'  {"error":"It broke"}\n', "It broke"),
        (b"It broke\n", "It broke"),
        (
            b"<!DOCTYPE html><html><head><title>502</title><style>x{}</style></head><body>It &amp; all</body>",
            "502 It & all",
        ),
        (b"", "HTTP 500"),
        (b" \n ", "HTTP 500"),
        (b"null", "HTTP 500"),
        (b"[]", "HTTP 500"),
        (b"{}", "HTTP 500"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b'{"error":"cut', '{"error":"cut'),
        (b'{"error":' * 250 + b"1" + b"}" * 250, None),
        (b"[" * 5000, None),
    ],
)
@pytest.mark.parametrize("provider", ["ollama", "vllm", "plain"])
def test_an_http_error_is_an_error_response(data: bytes, message: str | None, provider: str) -> None:
    """From JSON, text, HTML or nothing at all, with the status, and with the bytes."""
    deltas, response = read(Plain() if provider == "plain" else provider, data, status=500)
    assert response.finish_reason is ERROR
    assert response.error_info is not None
    assert response.error_info.status == 500
    assert response.error_info.kind is ErrorKind.SERVER
    assert message is None or response.refusal == message
    assert len(deltas) == 1
    assert response.usage == UsageInfo.EMPTY
    assert response.metadata.provenance["usage"] == "absent"
    assert b"".join(response.raw_events.frames).strip() == data.removeprefix(b"\xef\xbb\xbf").strip()
    to_jsonable(response)


def test_an_error_body_comes_in_pieces() -> None:
    """Cut anywhere, it is the same error. Its bytes are kept only if asked for."""
    _, response = read("vllm", [b'{"err', b'or":"It', b' broke"}'], status=503, keep_raw=False)
    assert response.refusal == "It broke"
    assert len(response.raw_events) == 0


@pytest.mark.parametrize("what", [KeyError("x"), {"kind": "server"}, "text"])
def test_a_map_error_that_fails_is_a_typed_error(what: Any) -> None:
    """The plugin is named."""
    with pytest.raises(PluginError, match="map_error (failed with|gave)") as caught:
        read(Unruly("map_error", what), b"{}", status=500)
    assert caught.value.plugin == "test"


def test_who_stops_the_program_in_map_error_stops_it() -> None:
    with pytest.raises(KeyboardInterrupt):
        read(Unruly("map_error", KeyboardInterrupt()), b"{}", status=500)


def test_map_error_may_leave_it_to_the_general_rules() -> None:
    """None is the answer of a hook that knows no better. Its own ErrorInfo counts."""
    _, response = read(Unruly("map_error", None), b'{"error":"slow down"}', status=429)
    assert response.error_info is not None
    assert response.error_info.kind is ErrorKind.RATE_LIMIT
    _, response = read(Unruly("map_error", ErrorInfo(ErrorKind.TIMEOUT, "mine")), b"{}", status=429)
    assert response.error_info == ErrorInfo(ErrorKind.TIMEOUT, "mine")


def test_an_odd_error_body_keeps_what_its_status_means() -> None:
    """A hook that refuses a leaf of it knows no better either."""
    refused = WireTypeError("error", expected="string", got=1)
    _, response = read(Unruly("map_error", refused), b'{"error":{"message":"slow down"}}', status=429)
    assert response.error_info is not None
    assert (response.error_info.kind, response.refusal) == (ErrorKind.RATE_LIMIT, "slow down")


# ------------------------------------------------------------------------------------------ any cut, any garbage


@given(st.data())
def test_the_cut_of_the_bytes_does_not_matter(data: st.DataObject) -> None:
    """Deltas, response and error are the same for every cut (P3)."""
    events = st.sampled_from(
        [
            chunk({"content": "abc"}),
            chunk({"content": 'é"\n🦙'}),
            chunk({"reasoning": "hm"}),
            chunk({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "go", "arguments": "{}"}}]}),
            chunk({}, "stop"),
            chunk(None, usage=usage(1, 2)),
            {"error": {"message": "It broke", "code": 500}},
            b"{x}",
            b"",
        ]
    )
    stream = sse(*data.draw(st.lists(events, max_size=8)), done=data.draw(st.booleans()))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=6)))
    pieces = [stream[a:b] for a, b in itertools.pairwise([0, *cuts, len(stream)])]

    def made(chunks: list[bytes]) -> Any:
        response, error = outcome("vllm", chunks)
        return response and to_jsonable(response), str(error)

    assert made(pieces) == made([stream])


BODIES: list[tuple[str, Any]] = [
    ("vllm", body({"content": "Hi", "reasoning": "hm"}, usage=usage(1, 2, prompt_tokens_details={"cached_tokens": 1}))),
    ("vllm", body({"content": None, "tool_calls": [{"id": "a", "type": "function", "function": {"name": "go", "arguments": "{}"}}]})),
    ("vllm", chunk({"content": "Hi", "tool_calls": [{"index": 0, "function": {"name": "go"}}]}, "stop", usage=usage(1, 2))),
    ("vllm", {"id": "c", "choices": [{"index": 0, "text": "Hi", "finish_reason": "length", "stop_reason": 7,
      "logprobs": {"tokens": ["Hi"], "token_logprobs": [-1.0], "top_logprobs": [{"Hi": -1.0}], "text_offset": [0]}}]}),
    ("vllm", {"error": {"message": "It broke", "type": "BadRequestError", "param": None, "code": 400}}),
    ("vllm", {"object": "error", "message": "It broke", "code": 404}),
    ("ollama", line("Hi", done="stop", message={"thinking": "hm", "images": ["aGk="]}, total_duration=9, eval_count=2,
      logprobs=[{"token": "Hi", "logprob": -1, "bytes": [72], "top_logprobs": [{"token": "Hi", "logprob": -1}]}])),
    ("ollama", line(done="stop", message={"tool_calls": [{"id": "a", "function": {"index": 0, "name": "go", "arguments": {}}}]})),
    ("ollama", {"model": "m", "created_at": "2026-01-01T00:00:00Z", "response": "Hi", "done": True, "context": [1]}),
    ("ollama", {**line(), "_debug_info": {"rendered_template": "x"}}),
    ("ollama", {"error": "It broke"}),
    ("ollama", body({"content": "Hi"}, system_fingerprint="fp_ollama")),
]  # fmt: skip
GARBAGE: st.SearchStrategy[Any] = st.sampled_from(
    [
        None, True, False, 0, -1, 1, 7.5, 2**63, 1e300, "", "x", "stop", "\x00", "2026-13-01", [], {}, [[]], [None], [{}],
        {"x": 1}, "0001-01-01T00:00:00+10:00", "9999-12-31T23:59:59-10:00",
    ]
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(value, dict):
        found += [place for key, item in value.items() for place in places(item, (*path, key))]
    elif isinstance(value, list):
        found += [place for number, item in enumerate(value) for place in places(item, (*path, number))]
    return found


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = changed(value[path[0]], path[1:], new)
    return copy


def accepts(provider: str, data: bytes, **options: Any) -> None:
    """The input gives a response that can be written, or an error of ours."""
    response: Any
    try:
        response = read(provider, data, **options)[1]
    except CrosswalkError as error:
        assert "the plugin failed with" not in str(error)
        str(error)
        partial = getattr(error, "partial", None)
        response = partial
    if response is not None:
        to_jsonable(response)
        repr(response)


@given(st.data(), st.sampled_from(BODIES), st.sampled_from([200, 400]), st.sampled_from(["raise", "keep"]))
def test_a_payload_with_garbage_in_it(
    data: st.DataObject, payload: tuple[str, Any], status: int, unknown: str
) -> None:
    """Real payloads with values replaced anywhere give a response or a typed error, from either provider."""
    provider, event = payload
    for _ in range(data.draw(st.integers(1, 3))):
        event = changed(event, data.draw(st.sampled_from(places(event))), data.draw(GARBAGE))
    first = payload[1] if data.draw(st.booleans()) else event
    accepts(provider, ndjson(first, event), status=status, unknown=unknown)


@given(st.binary(max_size=80), st.sampled_from(["ollama", "vllm"]), st.sampled_from([200, 500]))
def test_any_bytes(data: bytes, provider: str, status: int) -> None:
    """Whatever the bytes, there is a response or a typed error, nothing else."""
    accepts(provider, data, status=status)


@given(st.data(), st.sampled_from(BODIES))
def test_a_payload_with_bytes_changed(data: st.DataObject, payload: tuple[str, Any]) -> None:
    """The same for bytes that were real and have been cut, doubled or overwritten."""
    provider, event = payload
    stream = ndjson(event) if data.draw(st.booleans()) else sse(event, event)
    start = data.draw(st.integers(0, len(stream)))
    end = data.draw(st.integers(start, min(len(stream), start + 20)))
    put = data.draw(
        st.binary(max_size=4)
        | st.sampled_from([b'"', b"{", b"null", b"\n", b"[", b"}", stream[start:end] * 2])
    )
    accepts(provider, stream[:start] + put + stream[end:])


def test_a_wrong_value_is_told_of_the_plugins_own_line() -> None:
    """If the plugin's callee refuses the value, and not in a file of that."""

    class Wrong:
        @hookimpl
        def map_delta(self, event: Any) -> list[ResponseDelta]:
            return [ResponseDelta(content_delta="a", choice=event["lane"])]

    _, error = outcome(Wrong(), ndjson({"lane": -1}))
    assert str(error).startswith(
        "test, event 1: the plugin failed with ResponseValidationError in map_delta, line "
    )
    assert str(error).endswith(" of test_reader.py")


@pytest.mark.parametrize("fault", [None, KeyError("x")])
def test_nothing_of_an_answer_stays_behind(fault: Exception | None) -> None:
    """Notes about one event are forgotten with it, also if its hook fails: notes hold the payload."""

    class Notes:
        @hookimpl
        def map_delta(self, event: Any) -> list[ResponseDelta]:
            assert accept_count(event, "n") is None
            if fault is not None:
                raise fault
            return [ResponseDelta(content_delta="a")]

    mistyped()  # of whoever has called such a function on this thread
    outcome(Notes(), ndjson({"n": "many"}))
    assert mistyped() == []
