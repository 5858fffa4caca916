"""An event that is like another one but for its text is read without the hooks, and means the same."""

from __future__ import annotations

import copy
from asyncio import CancelledError
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, ClassVar

import attrs
import orjson
import pytest
from hypothesis import example, given, strategies as st

from crosswalk import (
    FinishReason,
    Limits,
    MappingError,
    PluginError,
    ResponseDelta,
    Segment,
    SegmentType,
    TokenLogprob,
    ToolCallDelta,
    TooManyEventsError,
    UsageInfo,
    normalize_stream,
    registry,
    to_json,
    to_jsonable,
)
from crosswalk.mapping.reader import Reader
from crosswalk.plugins import (
    DialectFamily,
    MappingState,
    OpenAIChatDialect,
    ProviderInfo,
    Recognition,
    accept_count,
    accept_object,
    accept_string,
    hookimpl,
    take_count,
    take_error,
    take_object,
    take_objects,
    take_string,
)
from crosswalk.wire import Frame, PushDecoder
from wires import CLOCK, registry_of


def take_probs(holder: dict[str, Any], text: str | None) -> tuple[TokenLogprob, ...] | None:
    """Take the log probability of a text: a number in an array."""
    values = holder.get("probs")
    if type(values) is not list or not all(type(value) is float for value in values):
        return None
    del holder["probs"]
    return tuple(TokenLogprob(token=text or "", logprob=value) for value in values)


class Toy:
    """Texts, reasoning, refusals and calls, each under its own key. It notes which events it gets."""

    repeats_finish = True

    def __init__(self) -> None:
        self.events: list[Any] = []

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """Declare a path for each kind of text, and what may change alongside."""
        return ProviderInfo(
            title="Toy",
            text_paths=("text", "parts[0].think", "call.args", "bare"),
            timestamp_key="at",
            number_key="n",
            usage_key="usage",
            logprob_paths={"probs": take_probs, "parts[0].probs": take_probs},
            pieces=("ids",),
            repeats_finish=self.repeats_finish,
        )

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        """Make a delta of each text."""
        self.events.append(copy.deepcopy(event))
        if type(event) is not dict:
            return
        if "fail" in event:
            yield take_error(event)
        if "n" in event and "keeps" not in event:
            event.pop("n")
        choice = take_count(event, "choice") or 0
        text = take_string(event, "text")
        if text is not None:
            yield self.delta(event, text, choice)
        for part in take_objects(event, "parts"):
            thought = take_string(part, "think")
            yield ResponseDelta(reasoning_delta=thought, choice=choice, logprobs=take_probs(part, thought))
        call = take_object(event, "call")
        if call is not None:
            args = take_string(call, "args")
            yield ResponseDelta(
                content_delta=event.pop("words", None),
                reasoning_delta=event.pop("says", None),
                tool_call_delta=state.take_tool_call(call, arguments=args, choice=choice),
                logprobs=take_probs(event, args),
                choice=choice,
            )
        if (bare := take_string(event, "bare")) is not None:
            yield ResponseDelta(tool_call_delta=ToolCallDelta(3, arguments_delta=bare))
        accept_string(event, "note")
        if end := take_string(event, "end"):
            yield ResponseDelta(raw_finish_reason=end, choice=choice)

    def delta(self, event: dict[str, Any], text: str, choice: int) -> ResponseDelta:
        """The delta of a text, with whatever the event says of it."""
        match event.pop("as", None):
            case "both":
                return ResponseDelta(content_delta=text, reasoning_delta=text, choice=choice)
            case "upper":
                return ResponseDelta(content_delta=text.upper(), choice=choice)
            case "refusal":
                return ResponseDelta(content_delta=text, refusal_delta=text, choice=choice)
            case "segment":
                return ResponseDelta(content_delta=text, segment=Segment(SegmentType.CITATION, text))
            case "finish":
                return ResponseDelta(content_delta=text, finish_reason=FinishReason.STOP)
            case "raw":
                return ResponseDelta(content_delta=text, raw_finish_reason="stop")
            case "usage":
                return ResponseDelta(content_delta=text, usage=UsageInfo(1, 1))
            case "probs":
                return ResponseDelta(
                    content_delta=text, logprobs=(TokenLogprob(token=text, logprob=event.pop("chances")[0]),)
                )
            case "extensions":
                return ResponseDelta(content_delta=text, extensions={"own": 1})
        return ResponseDelta(content_delta=text, choice=choice, logprobs=take_probs(event, text))

    @hookimpl
    def map_finish_reason(self, reason: str) -> FinishReason:
        """Every word means the same."""
        return FinishReason.STOP

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """Take the counts, of either of two keys."""
        counts = None
        if type(event) is dict:
            counts = accept_object(event, "usage") or accept_object(event, "tokens")
        return (
            None
            if counts is None
            else state.usage_info(accept_count(counts, "in"), accept_count(counts, "out"))
        )


class Shortens(Toy):
    """It keeps neither the time as it came nor all that is left of the counts."""

    provider_info = Toy.provider_info

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> Any:
        """Shorten the time and drop a count."""
        if "at" in event:
            event["at"] = event["at"][:1]
        event.get("usage", {}).pop("more", None)
        return event or None


def take_no_three(holder: dict[str, Any], text: str | None) -> Any:
    """Take log probabilities. It fails on -3.0 and gives a list for -4.0."""
    taken = take_probs(holder, text) or ()
    numbers = [token.logprob for token in taken]
    return numbers if numbers == [-4.0] else 1 / (numbers != [-3.0]) and taken


class Fails(Toy):
    """It fails on a count of 3 and gives a text for 4."""

    fault: BaseException = ZeroDivisionError()

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """Declare the same, with a reader that fails."""
        return attrs.evolve(super().provider_info(), logprob_paths={"probs": take_no_three})

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> Any:
        """Fail, where the count is bad."""
        usage = super().map_usage(event, state)
        count = usage and usage.prompt_tokens
        if count == 3:
            raise self.fault
        return "four" if count == 4 else usage


class Asked(Toy):
    """The same, but it overrides a method and declares no paths: its hooks get every event."""

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        """Map as the base does."""
        yield from super().map_delta(event, state)


def told(plugin: Any, chunks: list[bytes], **options: Any) -> tuple[list[bytes], Any]:
    """The deltas of a live stream as JSON, and the response, or the error that ended it."""
    stream = normalize_stream(
        chunks, "toy", registry=registry_of(toy=plugin), id_factory=lambda: "made", clock=CLOCK, **options
    )
    deltas = []
    try:
        for delta in stream:
            deltas.append(to_json(delta))
        return deltas, to_json(stream.response)
    except MappingError as error:
        assert error.partial is not None
        return deltas, (str(error), to_json(error.partial))


def frames(*events: Any) -> list[bytes]:
    """A chunk for each event: a line of JSON. Bytes are sent unchanged."""
    return [one if type(one) is bytes else orjson.dumps(one) + b"\n" for one in events]


END = {"end": "stop"}


def mapped(*events: Any, kind: type[Toy] = Toy, **options: Any) -> list[Any]:
    """Which events of a stream the hooks of a plugin get. In any case they mean what they mean where the hooks get all."""
    plugin, chunks = kind(), frames(*events, END)
    assert told(plugin, chunks, **options) == told(Asked(), chunks, **options)
    assert plugin.events.pop() == END
    return plugin.events


def mapped_by(kind: type[Toy], *events: Any) -> list[Any]:
    """The same as :func:`mapped`, for a plugin that is compared with itself without its declaration. Errors are equal too."""

    class Off(kind):  # type: ignore[misc, valid-type]
        @hookimpl
        def map_delta(self, event: Any, state: MappingState) -> Any:
            return super().map_delta(event, state)

    plugin, chunks = kind(), frames(*events, END)
    assert told(plugin, chunks) == told(Off(), chunks)
    return [event for event in plugin.events if event != END]


def say(text: str, **more: Any) -> dict[str, Any]:
    """An event with a text."""
    return {"text": text, **more}


A, B, C, D = (say(text) for text in "abcd")


def sse_frames(*events: tuple[str, Any]) -> list[bytes]:
    """A chunk of SSE for each event, with its name."""
    return [b"event: %b\ndata: %b\n\n" % (name.encode(), orjson.dumps(event)) for name, event in events]


# ------------------------------------------------------------------------------------- what is a repetition


@pytest.mark.parametrize(
    "make",
    [
        say,
        lambda text: {"parts": [{"think": text}], "more": {"x": 1.5, "y": {"z": ""}}},
        lambda text: {"text": text, "left": {"deep": {"x": None}}},
    ],
)
def test_the_hooks_get_the_first_two_of_equal_events(make: Any) -> None:
    """The first is the contents of each event, the second is its text alone."""
    events = [make(text) for text in ("a", "b", "c", "\n", 'q"', "\N{GRINNING FACE}", "c")]
    assert mapped(*events) == events[:2]


def test_arguments_repeat() -> None:
    """As soon as the call is open and has arguments."""
    opens = {"call": {"index": 0, "id": "c", "name": "f", "args": "{"}}
    pieces = [{"call": {"index": 0, "args": text}} for text in ('"a"', ":", "1", "}")]
    assert mapped(opens, *pieces) == [opens, pieces[0]]


@pytest.mark.parametrize("end", ["2}", "2"])
def test_arguments_with_the_id_of_another_call_are_mapped(end: str) -> None:
    opens = {"call": {"index": 1, "id": "a", "name": "f", "args": '{"x":'}}
    foreign = [{"call": {"index": 1, "id": "b", "args": text}} for text in ("1", "1", "1", end, "3", "4")]
    assert mapped_by(Toy, opens, *foreign) == [opens, *foreign]


def test_the_same_text_again_is_more_text() -> None:
    assert mapped(A, A, A, A) == [A, A]


@pytest.mark.parametrize("text", ["", None])
def test_an_event_without_a_text_is_mapped(text: str | None) -> None:
    empty = say(text)  # type: ignore[arg-type]
    assert mapped(A, B, empty, C) == [A, B, empty, C]


def test_a_text_of_another_type_is_an_error() -> None:
    chunks = frames(A, B, C, say(7), END)  # type: ignore[arg-type]
    assert told(Toy(), chunks) == told(Asked(), chunks)


@pytest.mark.parametrize(
    "event",
    [
        say("x", more=1),
        {"more": 1},
        say("x", left=None),
        say("x", left=1.0),
        say("x", left=True),
        {"left": 1, "text": "x"},
    ],
)
def test_an_event_with_anything_else_is_mapped(event: dict[str, Any]) -> None:
    """The order of keys counts as well, and 1, 1.0 and true are not the same."""
    events = [say(text, left=1) for text in "abc"]
    assert mapped(*events, event)[2:] == [event]


def test_events_with_another_name_are_mapped() -> None:
    plugin, asked = Toy(), Asked()
    chunks = sse_frames(("x", A), ("x", B), ("x", C), ("x", D), ("y", A), ("y", B), ("x", C), ("x", END))
    assert told(plugin, chunks) == told(asked, chunks)
    assert plugin.events == [A, B, A, C, END]


def test_escapes_of_any_kind_repeat() -> None:
    escaped = [
        b'{"text":"\\u0061"}\n',
        b'{"text":"\\u00e9"}\n',
        b'{"text":"\xc3\xa9"}\n',
        b'{"text":"\\/"}\n',
    ]
    assert mapped(A, B, *escaped, C) == [A, B]


def test_a_server_that_escapes_every_letter_beyond_ascii_repeats() -> None:
    escaped = [b'{"text":"\\u00e9"}\n'] * 4
    assert mapped(*escaped, A) == [say("\u00e9")] * 2


def test_other_white_space_is_mapped() -> None:
    """The bytes around the text are not the same."""
    spaced = [b'{ "text": "a" }\n', b'{"text" :"b"}\n', b'{"text":"c"}\n']
    assert mapped(A, B, *spaced, C, D) == [A, B, A, B, C]


def test_spaces_between_the_last_brackets_may_change() -> None:
    """Servers pad their events with them."""
    padded = [b'{"call":{"index":0,"args":"x"%b}%b}\n' % (b" " * n, b" " * (5 - n)) for n in range(5)]
    opens = {"call": {"index": 0, "id": "c", "name": "f", "args": "{"}}
    piece = {"call": {"index": 0, "args": "x"}}
    assert mapped(opens, *padded) == [opens, piece]
    more = {"call": {"index": 0, "args": "x", "more": 1}}
    assert mapped(opens, *padded, b'{"call":{"index":0,"args":"x","more":1}}\n') == [opens, piece, more]


@pytest.mark.parametrize(
    "event",
    [
        b'{"text":"c","left":1,"text":"d"}\n',  # a key that stands there twice
        b'{"left":"d","left":1,"text":"d"}\n',
        b'{"text":{"text":"d"},"left":1}\n',
        b'{"text":null,"left":1}\n',
    ],
)
def test_bytes_around_a_text_that_hold_more_than_a_text(event: bytes) -> None:
    plain = [say(text, left=1) for text in "abcd"]
    chunks = frames({"left": 1}, *({"text": one["text"], "left": 1} for one in plain), event, *plain, END)
    assert told(Toy(), chunks) == told(Asked(), chunks)


def test_a_key_that_stands_there_twice_has_its_last_value() -> None:
    """Also where the first one is the text."""
    a, b, c, d = ({"left": 1, "text": text} for text in "abcd")
    twice = b'{"left":"d","left":1,"text":"d"}\n'
    assert mapped(a, b, twice, c, d) == [a, b, d, c]
    assert mapped(a, b, twice, twice, twice) == [a, b, d, d, d]


def test_a_long_event_repeats_within_its_limits() -> None:
    long = say("x" * 100_000)
    assert mapped(long, long, long) == [long, long]
    chunks = frames(A, B, C, say("x" * 1000), END)
    limits = Limits(line_bytes=500)
    assert told(Toy(), chunks, limits=limits) == told(Asked(), chunks, limits=limits)


def test_a_text_that_is_a_key_of_its_event_repeats() -> None:
    assert mapped(A, B, say("text"), say("text"), C) == [A, B]


def test_a_text_that_stands_elsewhere_in_its_event_is_mapped() -> None:
    """And so is the next one: the hooks may compare the two."""
    events = [
        say(text, left={"y": "same", "x": {"x": "too"}})
        for text in ("a", "b", "c", "same", "d", "e", "too", "f")
    ]
    assert mapped(*events) == [events[0], events[1], *events[3:5], *events[6:]]


@pytest.mark.parametrize("more", ['b"a', '"a', {"b": 'c"a'}])
def test_a_text_that_another_one_ends_with_as_if_it_were_quoted_is_mapped(more: Any) -> None:
    """Its bytes with the quotation marks are in that of the other one as well."""
    events = [say(text, left=more) for text in "aaabc"]
    assert mapped(*events) == events


@pytest.mark.parametrize("digits", ["123456789012345678901", "1.5e30", "1.23456789012345678901", "1.5"])
def test_a_number_repeats_if_it_has_the_same_digits(digits: str) -> None:
    """Also one of more digits than a float has."""
    events = [b'{"text":"%b","left":%b}\n' % (text.encode(), digits.encode()) for text in "abc"]
    assert len(mapped(*events)) == 2
    assert len(mapped(*events, b'{"text":"d","left":%b1}\n' % digits.encode())) == 3


def test_an_event_that_is_nested_too_deeply_to_be_compared_is_mapped() -> None:
    deep = [b'{"text":"%b","left":%b}\n' % (text, b"[" * 260 + b"]" * 260) for text in (b"a", b"b", b"c")]
    plugins, chunks = (Toy(), Asked()), frames(*deep, END)
    for plugin in plugins:
        stream = normalize_stream(chunks, "toy", registry=registry_of(toy=plugin), limits=Limits(depth=300))
        assert [delta.content_delta for delta in stream][:3] == ["a", "b", "c"]
        assert len(plugin.events) == 4


def test_an_event_that_only_the_standard_library_reads_is_mapped() -> None:
    """Or refused, the same as without the rule."""
    chunks = frames(A, B, C, b'{"text":"\\ud83d"}\n', D, D, D, END)
    assert told(Toy(), chunks) == told(Asked(), chunks)
    odd = [b'{"text":"%b","left":"\\ude00"}\n' % text for text in (b"a", b"b", b"c")]
    assert told(Toy(), frames(A, *odd, END)) == told(Asked(), frames(A, *odd, END))


def test_an_event_that_is_not_an_object_is_mapped() -> None:
    assert mapped(A, B, C, [1], D) == [A, B, [1], D]


# ------------------------------------------------------------------------- what an event may do and be repeated


@pytest.mark.parametrize(
    "event",
    [
        *(
            say("x", **{"as": kind})
            for kind in ("both", "upper", "refusal", "segment", "usage", "extensions")
        ),
        say("x", note=7),
        say("x", tokens={"in": 1}),
        say("x", parts=[{"think": "y"}]),
        {"parts": [{"think": "x"}, {"think": "y"}]},
        {"call": {"index": 0, "id": "c", "name": "f", "args": "x"}, "words": "y"},
        {"call": {"index": 0, "id": "c", "name": "f", "args": "x"}, "says": "y"},
        {"call": {"index": 0, "id": "c", "name": "f", "args": "x"}, "probs": [-0.5]},
    ],
)
def test_an_event_that_does_more_than_add_a_text_is_mapped_each_time(event: dict[str, Any]) -> None:
    """And the next one that does no more than that, once more."""
    assert mapped(A, B, C, event, event, event, D, D, D) == [A, B, event, event, event, D]


@pytest.mark.parametrize(
    "left", [{"ids": [1]}, {"left": [1]}, {"left": [{"x": 1}]}, {"delta": {"left": "1"}}]
)
def test_an_event_that_adds_to_the_extensions_is_mapped_each_time(left: dict[str, Any]) -> None:
    event, other = say("x", **left), {"left": {"other": 1}}
    assert mapped(A, B, C, other, event, event, event) == [A, B, other, event, event, event]


def test_an_event_with_an_array_is_mapped_each_time_though_no_event_before_left_anything() -> None:
    event = say("x", ids=[1])
    assert mapped(A, B, C, event, event, event) == [A, B, event, event, event]


@pytest.mark.parametrize("name", ["id", "name"])
def test_a_call_is_opened_by_one_event(name: str) -> None:
    event = {"call": {"index": 0, name: "c", "args": "x"}}
    assert mapped(A, event, event, event) == [A, event, event]


def test_a_call_without_an_id_or_a_name_is_mapped_until_it_has_arguments() -> None:
    """The next fragment like it may open another one."""
    event = {"call": {"args": "{}"}}
    assert mapped(A, event, event, event) == [A, event, event]


def test_a_call_that_the_state_does_not_know_is_mapped() -> None:
    """The plugin has made its delta by itself."""
    events = [{"bare": text} for text in "abc"]
    assert mapped(A, *events) == [A, *events[:2]]


@pytest.mark.parametrize(
    "event", [say("x", end="stop"), *(say("x", **{"as": kind}) for kind in ("finish", "raw"))]
)
def test_what_comes_after_an_end_is_mapped(event: dict[str, Any]) -> None:
    """A server may say a finish word before its end. Nothing is the last of its kind from then on."""
    assert mapped(A, B, C, event, D, D, D)[2:] == [event, D, D, D]


def test_what_comes_after_an_error_is_mapped() -> None:
    failed = {"fail": True, "error": {"message": "no"}}
    plugin, chunks = Toy(), frames(A, B, C, failed, D, D, D)
    assert told(plugin, chunks) == told(Asked(), chunks)
    assert plugin.events == [A, B, failed, D, D, D]


def test_each_choice_has_its_own_last_event() -> None:
    turns = [say(text, choice=choice) for text in "abcd" for choice in (0, 1)]
    ends = [{"choice": choice, "end": "stop"} for choice in (1,)]
    assert mapped(*turns, *ends)[:-1] == turns[:3]


class Twins(Toy):
    """It drops the second copy of a text."""

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """Declare the same."""
        return super().provider_info()

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        """Keep a copy that is another text."""
        self.events.append({**event})
        twin = event.get("twin")
        if twin is not None and twin == event.get("text"):
            del event["twin"]
        events, self.events = self.events, []
        yield from super().map_delta(event, state)
        self.events = events


@pytest.mark.parametrize("more", [{}, {"at": "t"}, {"left": 1}])
def test_a_text_may_stand_in_two_places(more: dict[str, Any]) -> None:
    """If it is the same in both."""
    first = [{"twin": text, "text": text, **more} for text in ("a", "b", "c", 'q"', "\N{GRINNING FACE}")]
    last = [{"text": text, **more, "twin": text} for text in "abc"]
    other = {"twin": "y", "text": "x", **more}
    assert mapped_by(Twins, *first, other, *first) == [*first[:2], other, first[0]]
    assert mapped_by(Twins, *last, *first)[:2] == last[:2]


@pytest.mark.parametrize("number", [2, 8, 12])
def test_choices_in_turns_repeat(number: int) -> None:
    """The first event of each is mapped, and that of the stream comes before any is remembered."""
    turns = [say(text, choice=choice) for text in "abcdef" for choice in range(number)]
    ends = [{"choice": choice, "end": "stop"} for choice in range(1, number)]
    assert mapped(*turns, *ends) == [*turns[: number + 1], *ends]
    mixed = [*turns, *turns[::-1], *turns[::3], *turns[1::2]]
    assert mapped(*mixed, *ends) == [*turns[: number + 1], *ends]


def call(args: str, **more: Any) -> dict[str, Any]:
    """An event with a piece of a call."""
    return {"call": {**more, "args": args}}


PIECES = st.sampled_from(
    [
        *(call(text, index=index) for text in "ab" for index in range(3)),
        *(call(text, id=f"c{index}") for text in "cd" for index in range(3)),
        *(call(text) for text in "ef"),
        *(say(text, choice=choice) for text in "gh" for choice in range(2)),
        {"parts": [{"think": "i"}]}, {"bare": "j"}, {"bare": "k"}, call("l", index=1, choice=1),
        call("{}", index=1, id="new", name="g"), call("m", index=2, id="c1"), say("n", **call("o", index=0)),
    ]
)  # fmt: skip


@given(st.lists(st.lists(PIECES, min_size=1, max_size=4), max_size=4), st.integers(1, 6))
def test_pieces_in_any_turns_mean_what_they_mean_to_the_hooks(turns: list[list[Any]], times: int) -> None:
    opens = [call("{", index=index, id=f"c{index}", name="f") for index in range(3)]
    events = [event for turn in turns for event in turn * times]
    mapped(*opens, *events, {"choice": 1, "end": "stop"})


def test_of_many_choices_the_last_ones_are_remembered() -> None:
    """And none is mixed up with another."""
    first = [say("a", choice=choice) for choice in range(40)]
    turns = [say(text, choice=choice) for text in "bcd" for choice in range(40)]
    ends = [{"choice": choice, "end": "stop"} for choice in range(1, 40)]
    assert len(mapped(*first, *turns, *ends)) == len([*first, *turns, *ends])
    again = [say(text, choice=39) for text in "efg"]
    assert len(mapped(*first[32:], *again)) < 8 + len(again)


def test_a_stream_in_which_few_events_are_alike_repeats_where_many_are() -> None:
    """After events in vain fewer are remembered, but one in 32 still is."""
    odd = [say("x", left=number) for number in range(100)]
    alike = [say(f"y{number}", left="same") for number in range(100)]
    got = mapped(*odd, *alike, *odd, *alike)
    assert len(got) < 2 * (100 + 40)


def test_a_choice_that_changes_its_form_is_mapped_once() -> None:
    thought = {"parts": [{"think": "t"}]}
    assert mapped(A, B, C, thought, thought, A, A, thought) == [A, B, thought, A, thought]


def test_a_field_that_an_event_changes_makes_the_others_forgotten() -> None:
    """They were mapped before it came."""
    first, second = say("a", choice=0), say("b", choice=1)
    changing = say("c", choice=0, left=1)
    end = {"choice": 1, "end": "stop"}
    other = {"other": 1}
    assert mapped(other, first, second, first, second, changing, changing, second, first, end) == [
        *(other, first, second, changing, second, first, end)
    ]


# ------------------------------------------------------------------------------ what may change alongside


def test_a_time_may_change() -> None:
    events = [say("x", at=f"t{number}") for number in (1, 2, 3, 3, 4)]
    assert mapped(*events) == events[:2]


class Watches(Toy):
    """It notes the times that its hook for extensions gets."""

    provider_info = Toy.provider_info

    def __init__(self) -> None:
        super().__init__()
        self.times: list[Any] = []

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> Any:
        """Keep everything."""
        self.times.append(event.get("at"))
        return event


def test_a_time_that_repeats_goes_past_the_hook_for_extensions() -> None:
    """That the extensions alone keep it, as it came, is what the plugin declares: the last one is there."""
    plugin = Watches()
    events = [say("x", at=f"t{number}") for number in range(4)]
    deltas, response = told(plugin, frames(*events, END))
    assert plugin.times == ["t0", "t1", None]
    assert orjson.loads(response)["metadata"]["extensions"] == {"at": "t3"}
    assert [orjson.loads(delta).get("extensions") for delta in deltas] == [
        *({"at": f"t{n}"} for n in range(4)),
        None,
    ]


@pytest.mark.parametrize("at", [b'"\\ud83d"', b'"\\ud83d\\ud83d"', b'"a\\tb"', b'"\\"at\\":1"', b"NaN"])
def test_a_time_of_any_text_means_what_it_means_to_the_hooks(at: bytes) -> None:
    """Also one that only the standard library reads."""
    odd = [b'{"text":"%b","at":%b}\n' % (text, at) for text in (b"a", b"b", b"c")]
    chunks = frames(say("x", at="t"), *odd, say("y", at="t"), END)
    assert told(Toy(), chunks) == told(Asked(), chunks)


@pytest.mark.parametrize("number", [b"1" * 5000, b"1" * 30, b"-1", b"1e3", b"0"])
def test_any_number_means_what_it_means_to_the_hooks(number: bytes) -> None:
    odd = [b'{"text":"%b","n":%b}\n' % (text, number) for text in (b"a", b"b", b"c")]
    chunks = frames(*(say("x", n=n) for n in range(3)), *odd, say("y", n=3), END)
    assert told(Toy(), chunks) == told(Asked(), chunks)


def test_a_time_that_is_null_erases_nothing() -> None:
    events = [say("x", at=f"t{number}") for number in (1, 2, 3)]
    assert mapped(*events, say("x", at=None), say("x")) == [*events[:2], say("x", at=None), say("x")]


@pytest.mark.parametrize("at", [3, {"x": 1}])
def test_a_time_of_another_type_is_mapped(at: Any) -> None:
    events = [say("x", at=f"t{number}") for number in (1, 2, 3)]
    assert mapped(*events, say("x", at=at), say("x")) == [*events[:2], say("x", at=at), say("x")]


@pytest.mark.parametrize("at", [3, None, {"x": 1}, True])
def test_a_time_of_another_type_before_the_text_is_mapped(at: Any) -> None:
    events = [{"at": f"t{number}", "text": "x"} for number in range(3)]
    assert mapped(*events, {"at": at, "text": "x"}) == [*events[:2], {"at": at, "text": "x"}]


def test_an_event_that_only_begins_like_another_is_mapped() -> None:
    events = [{"at": f"t{number}", "text": "x"} for number in range(3)]
    other = {"at": "t3", "left": "x"}
    assert mapped(*events, other) == [*events[:2], other]


@pytest.mark.parametrize("times", [(1, 2), (1, "t2"), ("t1", 2), ({"x": 1}, {"x": 2})])
def test_times_of_another_type_and_choices_in_turn_are_mapped(times: tuple[Any, Any]) -> None:
    events = [say("x", choice=number % 2, at=times[number % 2]) for number in range(6)]
    mapped(*events, say("y", at=times[0]))


def test_a_time_that_the_extensions_do_not_keep_is_mapped() -> None:
    events = [say("x", at=f"t{number}") for number in range(4)]
    assert mapped_by(Shortens, *events) == events


def test_what_is_left_of_counts_goes_through_the_hook_for_extensions() -> None:
    events = [say("x", usage={"in": number, "more": number, "rest": number}) for number in range(4)]
    assert mapped_by(Shortens, *events) == events[:2]


@pytest.mark.parametrize(
    ("before", "more"),
    [
        ({"usage": {"in": 1}}, {"usage": {"in": 3}}),
        ({"probs": [-1.0]}, {"probs": [-3.0]}),
        ({"probs": [-1.0]}, {"probs": [-4.0]}),
    ],
)
def test_a_hook_that_fails_on_a_repetition_gets_the_event_whole(before: Any, more: Any) -> None:
    events = [*(say(text, **before) for text in "abc"), say("d", **more)]
    assert mapped_by(Fails, *events) == [*events[:2], events[3]]


def test_a_repetition_with_counts_of_another_type_is_a_fault_of_the_plugin() -> None:
    with pytest.raises(PluginError, match="map_usage gave str, not UsageInfo"):
        told(Fails(), frames(*(say("x", usage={"in": count}) for count in (1, 1, 4))))


@pytest.mark.parametrize("fault", [KeyboardInterrupt(), CancelledError()])
def test_an_interrupt_in_a_repetition_passes(fault: BaseException) -> None:
    plugin = Fails()
    plugin.fault = fault
    with pytest.raises(type(fault)):
        told(plugin, frames(*(say("x", usage={"in": count}) for count in (1, 1, 3))))
    assert len(plugin.events) == 2


def test_a_time_is_put_back_into_an_event_that_is_mapped() -> None:
    event = say("same", at="t2", n=3, usage={"in": 3}, probs=[-0.5], left="same")
    before = [say(t, at="t1", n=n, usage={"in": n}, probs=[-0.25], left="same") for n, t in enumerate("abc")]
    assert mapped(*before, event)[2:] == [event]


def test_a_number_may_rise_by_one() -> None:
    events = [say("x", n=number) for number in range(6)]
    assert mapped(*events) == events[:2]


@pytest.mark.parametrize("number", [5, 3, 2, 4.0, None, "4", True])
def test_a_number_that_does_not_follow_is_mapped(number: Any) -> None:
    events = [say("x", n=number) for number in range(4)]
    assert mapped(*events, say("x", n=number))[2:] == [say("x", n=number)]


def test_events_without_their_number_repeat_among_themselves() -> None:
    """But not one without after one with it, nor the reverse."""
    numbered = [say("x", n=number) for number in range(3)]
    assert mapped(*numbered, A, A, say("x", n=3), say("x", n=4)) == [*numbered[:2], A, say("x", n=3)]


def test_the_number_of_an_event_without_a_text_counts() -> None:
    other = {"n": 3, "left": 1}
    events = [say("x", n=number) for number in (0, 1, 2)]
    assert mapped(*events, other, say("x", n=4), say("x", n=5)) == [*events[:2], other, say("x", n=4)]


def test_a_number_that_the_extensions_keep_is_mapped() -> None:
    events = [say("x", keeps=1, n=number) for number in range(4)]
    assert mapped(*events) == events


def test_counts_may_change() -> None:
    events = [say("x", usage={"in": 3, "out": number}) for number in range(5)]
    assert mapped(*events) == events[:2]


def test_counts_that_are_null_erase_nothing() -> None:
    events = [say("x", usage={"in": number}) for number in range(3)]
    assert mapped(*events, say("x", usage=None)) == [*events[:2], say("x", usage=None)]


@pytest.mark.parametrize(
    "first",
    ["usage", "at"],
)
def test_counts_leave_what_nobody_takes(first: str) -> None:
    """It goes to the extensions, in the order of the event."""
    made = [(f"t{number // 2}", {"in": 3, "out": number, "left": number}) for number in range(6)]
    events = [
        say("x", at=at, usage=counts) if first == "at" else say("x", usage=counts, at=at)
        for at, counts in made
    ]
    assert mapped(*events) == events[:2]


@pytest.mark.parametrize(
    "counts",
    [7, {"in": "3"}, {"in": -1}, b"123456789012345678901"],
)
def test_counts_that_are_none_are_mapped(counts: Any) -> None:
    before = [say("x", usage={"in": number}) for number in range(3)]
    event: Any = say("x", usage=counts)
    if type(counts) is bytes:
        event = b'{"text":"x","usage":{"in":%b}}\n' % counts
    assert len(mapped(*before, event)) == 3


class DeclaresText(Toy):
    """It has the same values beside a text, and declares none of them."""

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """Declare the text alone."""
        return attrs.evolve(
            super().provider_info(), timestamp_key=None, number_key=None, usage_key=None, logprob_paths={}
        )


class ReadsInside(Toy):
    """Its hook takes an aside of a wrong type, and reads another stream, before the rest of its event."""

    provider_info = Toy.provider_info

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        """Read the inner events with the same plugin."""
        accept_string(event, "aside")
        if inner := event.pop("inner", None):
            assert mapped(*inner) == inner[:2]
        yield from super().map_delta(event, state)


def test_what_a_hook_noted_is_its_own_whatever_it_reads_inside() -> None:
    """Events that are alike inside neither end for its note nor take it away."""
    inner = [say("x", usage={"in": number}, probs=[-0.5]) for number in range(4)]
    _, response = told(ReadsInside(), frames(say("a", aside=1, inner=inner), END))
    assert orjson.loads(response)["metadata"]["provenance"]["metadata.extensions.aside"] == "mistyped"


@pytest.mark.parametrize(
    "more", [{"usage": {"in": 1}}, {"usage": {"in": 1, "left": 2}}, {"probs": [-0.5]}], ids=str
)
def test_values_that_no_path_declares_are_mapped(more: dict[str, Any]) -> None:
    """Also if they are the same in each event: each delta shows them."""
    events = [say(text, **more) for text in "abcd"]
    assert mapped(*events, kind=DeclaresText) == events


def test_counts_with_reasoning_and_arguments() -> None:
    thoughts = [{"parts": [{"think": "x"}], "usage": {"out": number}} for number in range(4)]
    opens = {"call": {"index": 0, "id": "c", "name": "f", "args": "{"}}
    pieces = [{"call": {"index": 0, "args": "x"}, "usage": {"out": number}} for number in range(4, 8)]
    assert mapped(*thoughts, opens, *pieces) == [*thoughts[:2], opens, pieces[0]]


def test_log_probabilities_may_change() -> None:
    events = [say("x", probs=[-0.5 - number]) for number in range(5)]
    assert mapped(*events) == events[:2]
    thoughts = [{"parts": [{"think": "x", "probs": [-0.5 - number]}]} for number in range(5)]
    assert mapped(*thoughts) == thoughts[:2]


@pytest.mark.parametrize(
    "probs",
    [None, [], 7, [7], ["x"], [-1.5, 7]],
)
def test_log_probabilities_that_are_none_are_mapped(probs: Any) -> None:
    before = [say("x", probs=[-0.5 - number]) for number in range(3)]
    assert mapped(*before, say("x", probs=probs))[2:] == [say("x", probs=probs)]


@pytest.mark.parametrize("more", [{"deep": {"probs": {"x": 1}}}, {"probs": {"x": 1}, "deep": {"probs": {}}}])
def test_log_probabilities_that_no_declaration_names_are_mapped(more: dict[str, Any]) -> None:
    events = [say("x", **{"as": "probs", "chances": [-0.5], **more}) for _ in range(4)]
    assert mapped(*events) == events


class ReadsOther(Toy):
    """Its hooks take other log probabilities than it declares."""

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """Declare a reader that fails."""
        return attrs.evolve(super().provider_info(), logprob_paths={"probs": lambda holder, text: 1 / 0})


def test_declared_log_probabilities_that_cannot_be_read_alone_are_mapped() -> None:
    events = [say("x", probs=[-0.5]) for _ in range(4)]
    assert mapped_by(ReadsOther, *events) == events


def test_counts_in_another_place_are_mapped() -> None:
    events = [say("x", tokens={"in": number}) for number in range(3)]
    assert mapped(*events) == events


class Takes(Toy):
    """It takes a text and counts, and looks at nothing else."""

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """Declare the same."""
        return super().provider_info()

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        """Take the text or the end."""
        text, end = event.pop("text", None), event.pop("end", None)
        yield ResponseDelta(content_delta=text, raw_finish_reason=end)

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """Take the counts with all that is in them."""
        counts = event.pop("usage", None)
        return counts and state.usage_info(counts["in"], 1)


@pytest.mark.parametrize("levels", [10, 900, 990])
def test_deeply_nested_counts_mean_what_they_mean_to_the_hooks(levels: int) -> None:
    deep = [
        b'{"text":"%b","usage":{"in":1,"more":%b1%b}}\n' % (text, b"[" * levels, b"]" * levels)
        for text in (b"a", b"b", b"c")
    ]
    chunks, limits = frames(*deep, END), Limits(depth=1000)
    deltas, response = told(Takes(), chunks, limits=limits)
    assert len(deltas) == 4
    assert orjson.loads(response)["message"]["content"] == "abc"


class Lists(Toy):
    """It reads arrays as well."""

    provider_info = Toy.provider_info

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        """Say the first item."""
        if type(event) is list:
            self.events.append([*event])
            yield ResponseDelta(content_delta=event[0])
            event.clear()
        else:
            yield from super().map_delta(event, state)


def test_events_that_are_arrays_are_mapped() -> None:
    events = [[text] for text in "abcd"]
    assert mapped_by(Lists, A, B, *events) == [A, B, *events]


def test_log_probabilities_elsewhere_are_mapped() -> None:
    """An event may have them where no declaration names them."""
    events = [say("x", **{"as": "probs", "chances": [-0.5]}) for _ in range(4)]
    assert mapped(*events) == events


# ------------------------------------------------------------------------------------- what still counts


def test_the_texts_that_hooks_have_not_got_are_in_the_state() -> None:
    """By choice, until they get an event."""
    got: list[dict[int, list[str]]] = []

    class Remembers(Toy):
        @hookimpl
        def provider_info(self) -> ProviderInfo:
            return super().provider_info()

        @hookimpl
        def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
            got.append({choice: [*texts] for choice, texts in state.repeated_texts.items() if texts})
            yield from super().map_delta(event, state)

    told(Remembers(), frames(A, B, C, D, {"left": 1}, A, B, END))
    assert got == [{}, {}, {0: ["c", "d"]}, {}, {0: ["b"]}]


def test_repeated_events_count_towards_the_limits() -> None:
    chunks = frames(A, B, C, D, END)
    assert told(Toy(), chunks, limits=Limits(events=5)) == told(Asked(), chunks, limits=Limits(events=5))
    with pytest.raises(TooManyEventsError, match="more than 4 events"):
        [*normalize_stream(chunks, "toy", registry=registry_of(toy=Toy()), limits=Limits(events=4))]


def test_the_bytes_of_repeated_events_are_kept() -> None:
    chunks = frames(A, B, C, D, END)
    stream = normalize_stream(chunks, "toy", registry=registry_of(toy=Toy()))
    assert stream.until_done().raw_events.frames == tuple(chunk.strip() for chunk in chunks)


# ---------------------------------------------------------------------------- events with their framing


def now_and_then(usual: bytes, *odd: bytes) -> st.SearchStrategy[bytes]:
    """Most often *usual*, or one of *odd*."""
    return st.sampled_from([usual] * (12 * len(odd)) + [*odd])


STRINGS = (
    b'"a"', b'"b c"', b'"\\n"', b'"\\""', b'"\\\\"', b'"\\u00e9"', b'"\xc3\xa9"', b'"x"', b'""', b'null', b"7", b'"\\ud83d"',
    b'"\xff"', b'"a\n"', b'"a"\n', b'"a"\r', b' "a"', b'"a" ', b'"a', b'"a","text":"b"', b'"a","x":"b"', b'"a"}\n\ndata: {"text":"b"',
    b'"a\\"}\n\n"', b"[]", b"NaN",
)  # fmt: skip
NUMBERS = (
    b"1",
    b"4",
    b"-1",
    b"-0",
    b"2.0",
    b"2e0",
    b"02",
    b" 2",
    b"2 ",
    b"2\n",
    b"null",
    b'"2"',
    b"9223372036854775808",
)
COUNTS = (
    b'{"in":1,"out":-2}', b'{"in":1,"out":2.0}', b'{"in":1,"out":02}', b'{"in":1}', b'{"in":1,"out":2,"more":[]}', b"{}", b"null",
    b'{"in":1,"out":12345678901234567890123}', b'{"in":1,"out": 2}', b'{"in":1,"out":2\n}', b'{"in":1,\r"out":2}',
    b'{"in":1,"out":2}\n', b' {"in":1,"out":2}', b'{"in":1,"out":2},"x":{"y":"z"}', b'{"in":1,"out":"2"}', b"[1]", b'{"in":1,"out":}',
)  # fmt: skip
HEADS = (b"data:", b"data:  ", b": x\ndata: ", b"event: y\ndata: ", b"data:\ndata: ", b"\r\ndata: ", b"")
TAILS = (b"\r\n\r\n", b" \n\n", b"\n \n", b"\n\r\n", b"\n", b"\n\n\n", b"\n\ndata: ", b"\r\r", b"")
FORMS = (
    "text",
    "at text",
    "text at",
    "n text",
    "text n",
    "n at text",
    "text x at",
    "text text",
    "at text n",
    "usage text",
    "text usage x",
    "at usage n text",
    "call",
)


@st.composite
def reads(draw: st.DrawFn) -> list[bytes]:
    """Reads of a live stream with an event in each, of one form but for some of them."""
    head = draw(st.sampled_from([b"", b"data: ", b"data:", b"event: x\ndata: ", b"event: x\r\ndata: "]))
    tail = draw(st.sampled_from([b"\n\n", b"\r\n\r\n"] if head else [b"\n", b"\r\n"]))
    form = draw(st.sampled_from(FORMS))
    opens = b'{"call":{"index":0,"id":"c","name":"f","args":"{"}}'
    chunks = [head + opens + tail] if form == "call" else []
    for number in range(draw(st.integers(4, 8))):
        fields = []
        text = draw(now_and_then(b'"t%d"' % number, *STRINGS))
        for name in form.split():
            match name:
                case "text":
                    fields.append(b'"%b":%b' % ([b"text", b"note"][b'"text' in b"".join(fields)], text))
                case "at":
                    fields.append(b'"at":' + draw(now_and_then(b'"2026-%d"' % (number // 2), *STRINGS)))
                case "n":
                    fields.append(b'"n":' + draw(now_and_then(b"%d" % number, *NUMBERS)))
                case "usage":
                    counts = b'{"in":%d,"out":%d}' % (number * 9, number)
                    fields.append(b'"usage":' + draw(now_and_then(counts, *COUNTS)))
                case "call":
                    fields.append(b'"call":{"index":0,"args":%b%b}' % (text, b" " * draw(st.integers(0, 2))))
                case _:
                    fields.append(b'"x":{"y":"z"}')
        padding = b" " * draw(st.integers(0, 1))
        event = b"{%b%b}" % (b",".join(fields), padding)
        chunks.append(draw(now_and_then(head, *HEADS)) + event + draw(now_and_then(tail, *TAILS)))
    return [*chunks, head + b'{"end":"stop"}' + tail]


PADDED = [b'data: {"call":{"index":0,"args":"%d"}}%b' % (number, b"\n\n") for number in range(4)]


@given(reads())
@example([*PADDED, PADDED[0].replace(b"\n\n", b"\n \n"), *PADDED])
@example([b'{"text":"a" }\n', b'{"text":"b" }\n', b'{"text":"c" }\n', b'{"text":"d" }\n', b'{"text":"e"} \n'])
def test_a_read_with_one_event_means_what_its_bytes_mean_to_the_hooks_one_by_one(chunks: list[bytes]) -> None:
    results = []
    joined = b"".join(chunks)
    for plugin, parts in ((Toy(), chunks), (Asked(), [joined[at : at + 1] for at in range(len(joined))])):
        reader = Reader(registry_of(toy=plugin).mapper("toy"))
        deltas: list[Any] = []
        try:
            for part in parts:
                deltas += map(to_json, reader.read(part))
            deltas += map(to_json, reader.finish())
            outcome = to_jsonable(reader.response())["segments"]
        except MappingError as error:
            outcome = str(error)
        results.append((deltas, outcome, reader.frames))
    assert results[0] == results[1]


@pytest.mark.parametrize("name", ["total_bytes", "line_bytes", "events"])
def test_events_with_their_framing_count_towards_the_limits(name: str) -> None:
    chunks = frames(A, B, C, D, say("e"), say("a longer text"), say("f"), END)
    outcomes = []
    bounds = {"events": (2, len(chunks) + 2)}
    for limit in range(*bounds.get(name, (max(map(len, chunks)) - 4, len(b"".join(chunks)) + 2))):
        outcome = told(Toy(), chunks, limits=Limits(**{name: limit}))
        assert outcome == told(Asked(), chunks, limits=Limits(**{name: limit}))
        outcomes.append(type(outcome[1]))
    assert outcomes[0] is tuple
    assert outcomes[-1] is bytes


class Records(PushDecoder):
    """Frames that end with a NUL."""

    def read(self, chunk: bytes, frames: list[Frame]) -> None:
        """Cut complete frames, which no test cuts in two."""
        frames += [(data, None) for data in chunk.split(b"\0")[:-1]]

    def finish(self, frames: list[Frame]) -> None:
        """Nothing is left."""


class InRecords(Toy):
    """In a framing of its own, the bytes around an event are not looked at."""

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """Declare the same, with the framing."""
        framing = lambda start, limits, content_type: Records(limits)  # noqa: E731
        return attrs.evolve(super().provider_info(), framing=framing)


def test_a_framing_of_a_provider_of_its_own_repeats() -> None:
    plugin, events = InRecords(), [A, B, C, D, say("\n"), END]
    deltas, _ = told(plugin, [orjson.dumps(event) + b"\0" for event in events])
    assert (deltas, plugin.events) == (told(Asked(), frames(*events))[0], [A, B, END])


# --------------------------------------------------------------------------------- who declares the paths


class Chat(OpenAIChatDialect):
    """A dialect that reads as its base does: an attribute, a new method and a method that reads no event."""

    title = "Chat"
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = {"done": FinishReason.STOP}

    def more(self) -> None:
        """Do nothing."""

    def spell(self, event: dict[str, Any]) -> None:
        """Change nothing."""


class Redacts(Chat):
    """It overrides a method and declares no paths."""

    def reasoning(self, part: dict[str, Any], choice: int, state: MappingState) -> Any:
        """Take it and say nothing."""
        part.pop("reasoning", None)
        return None


class Inherits(Redacts):
    """Nor does its base."""


class Declares(Redacts):
    """It declares them again."""

    text_paths: ClassVar[tuple[str, ...]] = Chat.text_paths


class Mix(OpenAIChatDialect):
    """It overrides a method, and may be between a class and its base."""

    def reasoning(self, part: dict[str, Any], choice: int, state: MappingState) -> Any:
        """Say nothing."""
        return None


class Mixed(Declares, Mix):
    """The class that declares the paths does not know of the one behind it."""


class Computed(Chat):
    """A property in the place of a method is an override as well."""

    reasoning = property(lambda self: super().reasoning)  # type: ignore[assignment]


class Anything(Chat):
    """Its overrides are unknown."""

    def __getattribute__(self, name: str) -> Any:
        """As any object does."""
        return super().__getattribute__(name)


class Slotted:
    """It has no additional attributes."""

    __slots__ = ()

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
        """Say nothing."""
        return []


class Undeclared(Slotted):
    """A dialect without paths."""

    def recognizes(self, event: Any) -> Recognition:
        """Recognize any event."""
        return Recognition.POSSIBLE


def with_attribute() -> Chat:
    """A dialect with one method that was replaced in the object."""
    chat = Chat()
    chat.reasoning = lambda part, choice, state: None  # type: ignore[method-assign]
    return chat


def module() -> ModuleType:
    """A plugin that is a module."""
    made = ModuleType("toy_module")
    made.map_delta = hookimpl(lambda event, state: [])  # type: ignore[attr-defined]
    return made


@pytest.mark.parametrize(
    ("plugin", "holds"),
    [
        (Toy(), True),
        (Asked(), False),
        (Chat(), True),
        (Redacts(), False),
        (Inherits(), False),
        (Declares(), True),
        (Mixed(), False),
        (Computed(), False),
        (Anything(), False),
        (with_attribute(), False),
        (Slotted(), True),
        (module(), True),
        (DialectFamily(Chat(), Declares()), True),
        (DialectFamily(Chat(), Redacts()), False),
        (DialectFamily(Chat(), Undeclared()), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_declaration_holds_for_the_class_that_makes_it(plugin: Any, holds: bool) -> None:
    assert registry_of(toy=plugin).mapper("toy").is_unmodified is holds


def test_a_plugin_that_somebody_overrides_gets_every_event() -> None:
    class Counts:
        @hookimpl
        def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
            return None

    toy = Toy()
    known = registry_of(toy=toy)
    known.register(Counts(), "toy")
    stream = normalize_stream(frames(A, B, C, D, END), "toy", registry=known)
    assert stream.until_done().text == "abcd"
    assert toy.events == [A, B, C, D, END]


def test_log_probabilities_that_leave_a_list_are_mapped() -> None:
    """A null that they leave is in the extensions already. A list may be pieces."""

    def chunk(number: int, refusal: Any) -> bytes:
        tokens = [{"token": "x", "logprob": -0.5 * number, "bytes": [120], "top_logprobs": []}]
        logprobs = {"content": tokens, "refusal": refusal}
        choice = {
            "index": 0,
            "delta": {"content": f"t{number} "},
            "logprobs": logprobs,
            "finish_reason": None,
        }
        return b"data: " + orjson.dumps({"id": "c", "model": "m", "choices": [choice]}) + b"\n\n"

    chunks = [chunk(number, None) for number in range(4)] + [chunk(4, [{"x": 1}]), chunk(5, None)]
    end = {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    stream = [*chunks, b"data: " + orjson.dumps(end) + b"\n\n", b"data: [DONE]\n\n"]
    mapper = registry.mapper("vllm")
    readings = []
    for one in (mapper, attrs.evolve(mapper, is_unmodified=False)):
        reader = Reader(one)
        deltas = [delta for part in stream for delta in reader.read(part)]
        readings.append(
            (to_jsonable([*deltas, *reader.finish()]), to_jsonable(reader.response())["metadata"])
        )
    assert readings[0] == readings[1]
    assert readings[0][1]["extensions"]["choices"][0]["logprobs"]["refusal"] == [{"x": 1}]


def test_each_shipped_provider_declares_the_paths_of_its_own_reading() -> None:
    """A class that overrides a method and declares no paths reads every event by its hooks, four times as slowly."""
    shipped, _ = registry.names_by_origin()
    assert [name for name in shipped if not registry.mapper(name).is_unmodified] == []


def test_lists_of_equal_strings_are_kept_in_events_that_are_alike() -> None:
    """In the extensions as in an event that is read by the hooks."""
    tags = ',"tags":["a","b"]'
    pieces = [
        b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m"%b,"choices":[{"index":0,"delta":'
        b'{"content":"%b"},"finish_reason":null}]}\n\n' % (tags.encode(), word)
        for word in (b"a", b"b", b"c", b"d", b"e")
    ]
    deltas = normalize_stream(iter(pieces), "vllm")
    assert "".join(next(deltas).text for _ in pieces) == "abcde"
