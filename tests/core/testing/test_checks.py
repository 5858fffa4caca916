"""The kit finds what it is there to find: each way of breaking a promise is seen, and an honest plugin is let pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import attrs
import orjson
import pytest

from crosswalk.errors import UnknownEventError, UnknownFinishReasonError, WireTypeError
from crosswalk.plugin.hooks import hookimpl
from crosswalk.plugin.registry import Registry, registry
from crosswalk.plugins import (
    ProviderInfo,
    Recognition,
    accept_count,
    accept_logprobs,
    accept_object,
    take_error,
)
from crosswalk.testing import (
    Capture,
    Tally,
    check_capture,
    check_pair,
    normalized,
)
from crosswalk.types.delta import ResponseDelta
from crosswalk.types.message import ToolCallDelta
from crosswalk.types.usage import UsageInfo
from crosswalk.types.values import FinishReason
from crosswalk.wire.framing import Limits, NDJSONDecoder

STREAM = [
    {"id": "r1", "model": "m", "text": "Hel", "extra": {"seed": 7, "none": None, "ok": True}},
    {"text": "lo", "extra": {"seed": 7, "none": None, "ok": True}},
    {"text": " you", "extra": {"seed": 8, "none": None, "ok": True}},
    {"text": "", "end": "stop", "extra": {"seed": 8, "none": None, "ok": False}},
]

GOOD_LINES = [
    "text | extra.seed=7 extra.none=null extra.ok=true: Hel",
    "text: lo",
    "text | extra.seed=8:  you",
    "finish_reason=stop raw_finish_reason=stop | extra.ok=false",
]


def take(event: dict[str, Any], key: str) -> str | None:
    """The text that *event* has at *key*, taken out of it."""
    value = event.get(key)
    if not isinstance(value, str | None):
        raise WireTypeError(key, expected="string", got=value)
    return event.pop(key, None)


class Honest:
    """A small provider that keeps every promise."""

    @hookimpl
    def map_delta(self, event: Any, state: Any) -> list[ResponseDelta]:
        if "error" in event:
            return [take_error(event)]
        state.identify(id=take(event, "id"), model=take(event, "model"))
        text, end = take(event, "text") or None, take(event, "end")
        return [] if text is end is None else [ResponseDelta(0, content_delta=text, raw_finish_reason=end)]

    @hookimpl
    def map_finish_reason(self, reason: str, state: Any) -> FinishReason:
        if reason != "stop":
            raise UnknownFinishReasonError(reason)
        return FinishReason.STOP

    @hookimpl
    def extensions(self, event: Any, state: Any) -> dict[str, Any]:
        return dict(event)


class BreaksItsWord(Honest):
    """Promises to pass text on unchanged, and then changes it."""

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(title="x", text_paths=("text",))

    @hookimpl
    def map_delta(self, event: Any, state: Any) -> list[ResponseDelta]:
        text = event.get("text") or ""
        return super().map_delta({**event, "text": text.upper() if text == "lo" else text}, state)

    @hookimpl
    def extensions(self, event: Any, state: Any) -> dict[str, Any]:
        return {}


class TrustsTypes(Honest):
    @hookimpl
    def map_delta(self, event: Any, state: Any) -> list[ResponseDelta]:
        return [] if len(event["text"]) > 99 else super().map_delta(event, state)


class CatchesUp(Honest):
    """Says at the end what of the whole text was not said in pieces."""

    @hookimpl
    def map_delta(self, event: Any, state: Any) -> list[ResponseDelta]:
        said = state.data.setdefault("said", event.get("text"))
        if str(event.get("all")).startswith(said or " "):
            event["text"] = take(event, "all")[len(said) :]  # type: ignore[index]
        return super().map_delta(event, state)


def test_a_text_that_a_later_event_goes_on_with_is_no_other_text() -> None:
    """The whole begins with a line break, too: put alone in the place of the piece, it is followed by the rest."""
    events = [{"id": "r1", "model": "m", "text": "\nHi"}, {"all": "\nHi there", "end": "stop"}]
    assert problems(CatchesUp(), events, checks=["text as it was sent"]) == []


class Wavers(Honest):
    """Says something else each time."""

    count = 0

    @hookimpl
    def extensions(self, event: Any, state: Any) -> dict[str, Any]:
        Wavers.count += 1
        return {**event, "count": Wavers.count}


class Refuses(Honest):
    @hookimpl
    def map_delta(self, event: Any, state: Any) -> list[ResponseDelta]:
        raise UnknownEventError("no answer of ours")


class FramesItself(Honest):
    """Has a unique framing: lines of JSON after a zero."""

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(title="x", framing=self.framing)

    def framing(self, start: bytes, limits: Limits, _: str) -> NDJSONDecoder | None:
        return AfterZero(limits) if start.startswith(b"\0") else None


class AfterZero(NDJSONDecoder):
    def decode(self, chunk: bytes) -> list[Any]:
        return super().decode(chunk.replace(b"\0", b""))


class NormalizesNumbers(Honest):
    """Has another type in one leaf, rightly: a word may come as its number."""

    @hookimpl
    def map_delta(self, event: Any, state: Any) -> list[ResponseDelta]:
        if type(event.get("model")) is int:
            event["model"] = str(event["model"])
        return super().map_delta(event, state)


def capture(events: list[Any], name: str = "case", *, stream: bool = True, status: int = 200) -> Capture:
    body = b"".join(orjson.dumps(event) + b"\n" for event in events)
    return Capture(name, Path(name), body if stream else orjson.dumps(events[0]), status, stream, "case")


def mapper(plugin: Any) -> Any:
    registry = Registry(installed=[], environ={})
    registry.register(plugin, "toy")
    return registry.mapper("toy")


def problems(plugin: Any, events: list[Any] | None = None, **options: Any) -> list[str]:
    found = check_capture(mapper(plugin), capture(events or STREAM), sample=None, **options)
    return [str(problem) for problem in found]


@pytest.mark.sweep
def test_an_honest_plugin_passes_and_what_was_tried_is_counted() -> None:
    """No problem, and the tally says how much was tried."""
    tally = Tally()
    assert problems(Honest(), tally=tally) == []
    assert (tally.captures, tally.events, tally.leaves >= 22) == (1, 4, True)
    total = Tally()
    total.add(tally)
    total.add(tally)
    assert str(total).startswith("2 captures, 8 events, ")


@pytest.mark.sweep
@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[:1000],
        lambda text: text.replace("\r\n", "\n"),
        lambda text: text.replace("\0", ""),
        lambda text: text.strip("\ufeff"),
        lambda text: text.strip("\u200b"),
    ],
)
def test_a_text_that_is_changed_is_found_although_its_path_is_declared(change: Any) -> None:
    """A repeated event would pass it on unchanged."""

    class Changes(Honest):
        @hookimpl
        def provider_info(self) -> ProviderInfo:
            return ProviderInfo(title="Toy", text_paths=("text",))

        @hookimpl
        def map_delta(self, event: Any, state: Any) -> list[ResponseDelta]:
            found = super().map_delta(event, state)
            return [
                attrs.evolve(delta, content_delta=change(delta.content_delta))
                if delta.content_delta
                else delta
                for delta in found
            ]

    assert any("is not passed on unchanged" in problem for problem in problems(Changes()))


@pytest.mark.sweep
@pytest.mark.parametrize("place", ["cuts 0", "single bytes", "crlf", "blank lines", "no last newline"])
def test_each_way_of_framing_is_tried(place: str) -> None:
    """Any cut, byte by byte, and whatever line endings the framing allows."""
    assert any(problem.startswith(f"P3 case, {place}: ") for problem in problems(Wavers()))


@pytest.mark.sweep
@pytest.mark.parametrize("place", ["crlf", "cr", "comments", "byte order mark"])
def test_each_way_of_framing_events_is_tried(place: str) -> None:
    """Server-sent events have ways of their own."""
    body = b"".join(b"data: %b\n\n" % orjson.dumps(event) for event in STREAM)
    found = check_capture(mapper(Wavers()), Capture("case", Path("case"), body, stream=True), sample=1)
    assert any(str(problem).startswith(f"P3 case, {place}: ") for problem in found)
    assert (
        check_capture(mapper(Honest()), Capture("case", Path("case"), body, stream=True), sample=None) == []
    )


def test_what_the_provider_refuses_is_one_report() -> None:
    """Not one for every leaf that changes nothing then."""
    assert problems(Refuses()) == [
        "P4 case, as it is: refused: UnknownEventError: toy, event 1: no answer of ours"
    ]
    assert problems(Refuses(), checks=["nothing lost"]) == []


class IgnoresErrors(Honest):
    """Takes the event that says what broke for the end of the answer."""

    @hookimpl
    def map_delta(self, event: Any, state: Any) -> list[ResponseDelta]:
        if event.pop("error", None):
            return [ResponseDelta(raw_finish_reason="stop")]
        return super().map_delta(event, state)


@pytest.mark.sweep
def test_an_error_in_mid_stream_that_is_ignored_is_lost() -> None:
    assert problems(IgnoresErrors()) == [
        "P4 case, event 3 an error: the answer is whole, and the error is gone"
    ]
    found = problems(IgnoresErrors(), [*STREAM[:2], {"error": {"message": "It broke"}}])
    assert "P1 case, event 3, error.message: lost: changing its value changes nothing" in found


@pytest.mark.sweep
def test_a_framing_of_the_providers_own_is_used() -> None:
    """If the bytes are in it, the tries are written as server-sent events."""
    body = b"".join(b"\0" + orjson.dumps(event) + b"\n" for event in STREAM)
    binary, tally = Capture("case", Path("case"), body, stream=True), Tally()
    assert check_capture(mapper(FramesItself()), binary, sample=None, tally=tally) == []
    assert tally.events == 4
    assert problems(FramesItself()) == []
    unread = Tally()
    check_capture(mapper(Honest()), binary, tally=unread)
    assert unread.events == 0


class Rows(Honest):
    """Reads rows: each event is an array of a text and of what it is, a whole body an array of one row."""

    own: Any = None

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(title="x", framing=self.own)

    @hookimpl
    def map_delta(self, event: Any, state: Any) -> list[ResponseDelta]:
        if (
            len(event) != 2
            or not all(isinstance(cell, str) for cell in event)
            or event[1] not in ("text", "end")
        ):
            raise UnknownEventError("no row of ours")
        return super().map_delta(dict([event[::-1]]), state)

    @hookimpl
    def extensions(self, event: Any, state: Any) -> dict[str, Any]:
        return {}


class RowsInLines(Rows):
    @staticmethod
    def own(start: bytes, limits: Limits, _: str) -> NDJSONDecoder | None:
        return NDJSONDecoder(limits) if start.startswith(b"[") else None


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        (
            b'["Hel", "text"]\n["lo", "text"]\n["stop", "end"]\n',
            'not JSON at byte 16: unexpected content after document; what begins with "[" is read as one JSON body: lines '
            'that are arrays need "framing" in provider_info, such as NDJSONDecoder of crosswalk.plugins',
        ),
        (
            b'[["Hello", "text"], ["stop", "end"], ["x", "y"]]',
            'no row of ours; the body is an array, and so one event: map_delta reads it as a whole, unless "framing" in '
            "provider_info gives its items one by one",
        ),
        (
            b"Hel;lo;stop",
            "not JSON at byte 0: unexpected character, expected a JSON value; what is neither server-sent events, lines of JSON objects nor one "
            'JSON body needs "framing" in provider_info',
        ),
        (b'{"text": "Hello"}', "no row of ours"),
    ],
)
def test_an_author_is_told_that_a_framing_is_missing(body: bytes, hint: str) -> None:
    """A file that is read as one body, and is not one, is refused by name, with the declaration that it needs."""
    (problem,) = check_capture(mapper(Rows()), Capture("case", Path("case"), body, stream=True))
    assert problem.message.startswith("refused: ")
    assert problem.message.endswith(f": {hint}")


def test_lines_of_arrays_are_read_by_the_decoder_of_lines() -> None:
    body = b'["Hel", "text"]\n["lo", "text"]\n["stop", "end"]\n'
    assert check_capture(mapper(RowsInLines()), Capture("case", Path("case"), body, stream=True)) == []
    broken = Capture("case", Path("case"), body.replace(b",", b";"), stream=True)
    (problem,) = check_capture(mapper(RowsInLines()), broken)
    assert problem.message == (
        "refused: InvalidJSONError: toy, event 1: not JSON at byte 6: unexpected character, expected ',' or ']'"
    )


def test_what_was_cut_on_its_way_may_be_no_json() -> None:
    body = b'data: {"text": "Hel'
    cut = Capture("case", Path("case"), body, stream=True, complete=False)
    assert check_capture(mapper(Honest()), cut) == []


@pytest.mark.sweep
def test_an_exception_is_for_one_check_at_one_path() -> None:
    """A right finding of a check may be right nevertheless."""
    found = problems(NormalizesNumbers())
    assert all("model: with" in problem for problem in found)
    assert found
    assert problems(NormalizesNumbers(), exceptions=["never silently wrong: model"]) == []
    assert (
        problems(NormalizesNumbers(), exceptions=["nothing lost: model", "never silently wrong: text"])
        == found
    )


@pytest.mark.sweep
def test_a_promise_about_text_paths_is_held_to() -> None:
    """A repetition must mean what mapping it would have given."""
    events = [STREAM[0], {"text": "a"}, {"text": "lo"}, STREAM[-1]]
    assert problems(Honest(), events) == []
    found = problems(BreaksItsWord(), events)
    assert "P3 case, events: parsed event by event it is read differently" in found


class Counting(Honest):
    """Has a number, counts and tokens in each event, and keeps its word about them."""

    number_key: str | None = "n"

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        tokens = {"tokens": lambda holder, _: accept_logprobs(holder, "tokens")}
        return ProviderInfo(
            title="x",
            text_paths=("text",),
            number_key=self.number_key,
            usage_key="usage",
            logprob_paths=tokens,
        )

    @hookimpl
    def map_delta(self, event: Any, state: Any) -> list[ResponseDelta]:
        last = state.data.get("n", 0) + sum(map(len, state.repeated_texts.values()))
        if self.is_next(event.get("n"), last):
            del event["n"]
        state.data["n"] = last + 1
        tokens = self.tokens(accept_logprobs(event, "tokens"))
        state.data["long"] = len(event.get("text") or "") > 4
        deltas = super().map_delta(event, state)
        return [attrs.evolve(delta, logprobs=tokens) if delta.content_delta else delta for delta in deltas]

    def is_next(self, number: Any, last: int) -> bool:
        return bool(number == last + 1)

    def tokens(self, found: Any) -> Any:
        return found

    @hookimpl
    def map_usage(self, event: Any, state: Any) -> UsageInfo | None:
        usage = accept_object(event, "usage")
        if not usage:
            return None
        return state.usage_info(accept_count(usage, "in"), self.count(accept_count(usage, "out"), state))

    def count(self, count: int | None, state: Any) -> int | None:
        return count


class NumbersAreForNothing(Counting):
    provider_info = Counting.provider_info

    def is_next(self, number: Any, last: int) -> bool:
        return type(number) is int and number % 4 > 0


class CountsByText(Counting):
    provider_info = Counting.provider_info

    def count(self, count: int | None, state: Any) -> int | None:
        return count if count is None else count + state.data.get("long", 0)


class RoundsTokens(Counting):
    provider_info = Counting.provider_info

    def tokens(self, found: Any) -> Any:
        return found and tuple(attrs.evolve(token, logprob=round(token.logprob)) for token in found)


def counting(number: int, **more: Any) -> dict[str, Any]:
    tokens = [{"token": "x", "logprob": -1}]
    return {"n": number, "text": f"t{number}", "usage": {"in": 3, "out": number}, "tokens": tokens, **more}


@pytest.mark.parametrize(
    ("plugin", "keeps_its_word"),
    [(Counting(), True), (NumbersAreForNothing(), False), (CountsByText(), False), (RoundsTokens(), True)],
    ids=lambda value: type(value).__name__,
)
def test_a_promise_about_what_stands_beside_texts_is_held_to(plugin: Any, keeps_its_word: bool) -> None:
    """If an event contradicts it, the hooks get that event, and no promise is broken."""
    start, *_, end = STREAM
    events = [{**start, "n": 1}, *(counting(n) for n in range(2, 8)), {**end, "n": 8}]
    found = problems(plugin, events, checks=["text paths hold"])
    assert (found == []) is keeps_its_word
    assert all("is not read as its text_paths promise" in problem for problem in found)


class GoesByNames(Honest):
    """Reads what an event means from its SSE name alone."""

    names = frozenset({"piece", "end"})

    @hookimpl
    def map_delta(self, event: Any, state: Any) -> list[ResponseDelta]:
        if state.event_name not in self.names:
            raise UnknownEventError("an event of a name that is not known", event_type=state.event_name)
        return super().map_delta(event, state)


class PassesOverNames(GoesByNames):
    @hookimpl
    def map_delta(self, event: Any, state: Any) -> list[ResponseDelta]:
        return super().map_delta(event, state) if state.event_name in self.names else []


class TextByName(BreaksItsWord, GoesByNames):
    """Promises too much, about events with names."""

    provider_info = BreaksItsWord.provider_info


def test_an_event_of_a_name_that_nobody_knows_is_an_error() -> None:
    """If the name of an SSE event gives its kind, not the event itself."""
    named = [("piece", STREAM[0]), ("piece", STREAM[1]), ("piece", {"text": "lo"}), ("end", STREAM[-1])]
    body = b"".join(b"event: %s\ndata: %s\n\n" % (n.encode(), orjson.dumps(e)) for n, e in named)
    stream = Capture("case", Path("case"), body, 200, True, "case")

    def found(plugin: Any) -> list[str]:
        return [str(problem) for problem in check_capture(mapper(plugin), stream)]

    unlike = "with an unknown name they change the answer without an error"
    assert found(GoesByNames()) == []
    assert found(PassesOverNames()) == [
        f"P4 case, events named piece: {unlike}",
        "P4 case, event 3 an error: the answer is whole, and the error is left in the extensions",
    ]
    promised = "an event with another text here is not read as its text_paths promise"
    assert any(promised in problem for problem in found(TextByName()))


def test_a_plugin_that_fails_on_the_capture_itself_is_reported() -> None:
    """P4 before any leaf is touched."""
    found = problems(TrustsTypes(), [{"id": "r1"}, *STREAM])
    assert any(p.startswith("P4 case, as it is: refused: MappingError") for p in found)
    cut = problems(TrustsTypes(), [*STREAM[:2], {"text": "y", "end": "stop"}, {"end": "stop"}])
    assert any("cut after" in p or "as it is" in p for p in cut)


def test_a_sample_is_the_same_every_time() -> None:
    """A seeded sample tries fewer leaves and cuts, always the same. A sample of none tries one leaf of each meaning."""
    many = [*({"text": f"w{n}", "extra": {"n": n}} for n in range(40)), {**STREAM[-1], "extra": {"n": 40}}]
    first, second = Tally(), Tally()
    for tally in (first, second):
        assert check_capture(mapper(Honest()), capture(many), sample=5, tally=tally) == []
    assert first == second
    assert first.leaves == 5 + len(["text", "extra.n", "end"])
    none = Tally()
    assert check_capture(mapper(Honest()), capture(many), sample=0, tally=none) == []
    assert none.leaves == len(["text", "extra.n", "end"])
    assert none.mappings < first.mappings


def test_a_single_check_can_be_run() -> None:
    """By its name."""
    assert problems(Wavers(), checks=["output shows"]) == []


def test_body_and_stream_are_compared() -> None:
    """P2: in everything but ids, times and what a cache held. Two errors agree when they are of one kind."""
    honest = mapper(Honest())
    whole = capture([{"id": "other", "model": "m", "text": "Hello you", "end": "stop"}], stream=False)
    streamed = capture(STREAM, "case_stream")
    assert check_pair(honest, whole, streamed) == []
    differs = capture([{**STREAM[0], "text": "Bye"}, *STREAM[1:]], "case_stream")
    (problem,) = check_pair(honest, whole, differs)
    assert str(problem) == (
        "P2 case ~ case_stream: body and stream disagree in message.content, segments[0].content"
    )
    ignored = ("message.content", "segments")
    assert check_pair(honest, whole, differs, ignored=ignored) == []
    cut = capture(STREAM[:2], "case_stream")
    (problem,) = check_pair(honest, whole, cut)
    assert problem.message == "ends in None and IncompleteStreamError"
    assert check_pair(honest, cut, cut) == []
    failed = capture([{"error": "a"}], status=500)
    other = capture([{"error": "b"}], "case_stream", status=500)
    assert check_pair(honest, failed, other) == []


def test_what_is_normalized_for_a_snapshot() -> None:
    """The response, or the error with what it kept, and the deltas."""
    honest = mapper(Honest())
    good = normalized(honest, capture(STREAM))
    assert good["response"]["message"]["content"] == "Hello you"
    assert good["deltas"] == GOOD_LINES
    cut = normalized(honest, capture(STREAM[:1]))
    assert cut["error"] == "IncompleteStreamError"
    assert cut["partial"]["message"]["content"] == "Hel"
    assert cut["deltas"] == GOOD_LINES[:1]
    assert set(normalized(honest, Capture("empty", Path("empty"), b""))) == {"error", "message"}


class Bars(Honest):
    """Whatever its word, an end is moderation's: no answer that looks whole."""

    @hookimpl
    def map_finish_reason(self, reason: str, state: Any) -> FinishReason:
        return FinishReason.STOP if reason == "stop" else FinishReason.CONTENT_FILTER


def test_an_unknown_word_may_mean_that_an_answer_is_not_whole() -> None:
    assert problems(Bars(), checks=["unknown words raise"]) == []


def test_who_else_is_certain_of_a_capture_is_named() -> None:
    """The capture could not be detected. One that the provider does not know as its own is another's."""

    class Grabs(Honest):
        @hookimpl
        def recognizes(self, event: Any) -> Recognition:
            return Recognition.CERTAIN if "extra" in event else Recognition.NO

    grabs = Grabs()
    registry.register(grabs, "grabs")
    try:
        found = problems(Grabs(), checks=["recognizes its own"])
        assert found == ["P4 case, detection: grabs is certain that this is its answer"]
        assert problems(Honest(), checks=["recognizes its own"]) == []
    finally:
        registry.unregister(grabs, "grabs")


def test_an_event_of_which_a_plugin_is_certain_bears_a_sign_of_its_entry_point(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without one, detection might not ask it."""

    class Knows(Honest):
        @hookimpl
        def recognizes(self, event: Any) -> Recognition:
            return Recognition.CERTAIN if "extra" in event else Recognition.NO

    for signs, found in (
        (None, []),
        ([{"other"}, {"extra"}], []),
        (
            [{"extra", "other"}],
            ["P4 case, detection: certain of an event without a key of its entry point"],
        ),
    ):
        monkeypatch.setattr(registry, "signs", lambda signs=signs: {"toy": signs})
        assert problems(Knows(), checks=["recognizes its own"]) == found


def test_a_change_that_a_broken_answer_hides_is_found() -> None:
    """P1 and P4 hold for what came before the end that is missing, too."""

    class Deaf(Honest):
        @hookimpl
        def extensions(self, event: Any, state: Any) -> dict[str, Any]:
            return {}

    cut = attrs.evolve(capture(STREAM[:2]), complete=False)
    found = [str(problem) for problem in check_capture(mapper(Deaf()), cut, sample=None)]
    assert "P1 case, event 1, extra.seed: lost: changing its value changes nothing" in found
    assert "P4 case, event 1, extra.seed: with true in its place nothing changes" in found


def test_a_long_body_is_not_read_byte_by_byte() -> None:
    """It is cut here and there."""
    found = problems(
        Wavers(), [{**STREAM[0], "text": "x" * 20_000}, *STREAM[1:]], checks=["framing does not matter"]
    )
    assert any("cuts 0" in problem for problem in found)
    assert not any("single bytes" in problem for problem in found)


def test_arguments_are_compared_by_their_meaning() -> None:
    """White space makes no difference. Text that is not JSON is compared unchanged."""

    class Calls(Honest):
        @hookimpl
        def map_delta(self, event: Any, state: Any) -> list[ResponseDelta]:
            deltas = super().map_delta(event, state)
            call = ToolCallDelta(0, "c", "look", take(event, "arguments"))
            return [ResponseDelta(0, tool_call_delta=call), *deltas]

    calls = mapper(Calls())

    def compared(left: str, right: str) -> list[Any]:
        events = [[{"id": "r", "model": "m", "arguments": text, "end": "stop"}] for text in (left, right)]
        return check_pair(calls, capture(events[0], stream=False), capture(events[1], "case_stream"))

    assert compared('{"a": 1}', '{"a":1}') == []
    assert compared('{"a": ', '{"a": ') == []
    assert len(compared('{"a": ', '{"a":')) == 1


def test_an_answer_may_be_empty() -> None:
    """If no words were counted in it."""
    assert problems(Honest(), [{"id": "r", "model": "m", "text": "", "end": "stop"}]) == []


class Counted(Honest):
    """Takes counts, too."""

    @hookimpl
    def map_usage(self, event: Any, state: Any) -> UsageInfo | None:
        count = accept_count(event, "out")
        return None if count is None else UsageInfo(3, count)


def test_body_and_stream_are_compared_by_field() -> None:
    """A field that one form marks as absent is no difference. Texts, calls and ends always are, each excepted alone."""
    event = {"id": "r", "model": "m", "text": "Hello", "end": "stop", "out": 5}
    whole, counted = capture([event], stream=False), mapper(Counted())

    def fields(**changes: Any) -> list[str]:
        other = {name: value for name, value in {**event, **changes}.items() if value is not None}
        found = check_pair(counted, whole, capture([other], "case_stream"))
        assert [one.exception for one in found] == [
            f"body and stream agree: case {one.path}" for one in found
        ]
        return [problem.path for problem in found]

    assert fields() == fields(out=None, model=None) == []
    assert fields(out=6) == ["usage"]
    assert fields(out=6, text="Hallo") == ["message.content", "usage"]
    assert fields(out=None, text="Hallo") == ["message.content"]


class LateWords(Honest):
    """Its server may say one finish word, and then a graver one, which counts."""

    words: ClassVar[dict[str, FinishReason]] = {
        "normal": FinishReason.STOP,
        "length": FinishReason.LENGTH,
        "filtered": FinishReason.CONTENT_FILTER,
    }

    @hookimpl
    def map_finish_reason(self, reason: str, state: Any) -> FinishReason:
        return self.words[reason]

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(title="Late", repeats_finish=True)


def test_a_finish_word_that_a_graver_one_follows_is_no_kind_of_text() -> None:
    """The server never sends ``length`` before ``filtered``; that the latter counts is right."""
    registry = Registry(installed=[], environ={})
    registry.register(LateWords(), "late")
    filtered = capture(
        [
            {"id": "r1", "model": "m", "text": "Hel", "end": "normal"},
            {"text": "lo", "end": "normal"},
            {"text": "!", "end": "filtered"},
        ],
        "filtered_stream",
    )
    cut = capture(
        [{"id": "r2", "model": "m", "text": "Hel", "end": "normal"}, {"text": "lo", "end": "length"}],
        "cut_stream",
    )
    others = [filtered, cut]
    found = [
        problem
        for one in others
        for problem in check_capture(
            registry.mapper("late"), one, checks=["kinds are told apart"], sample=None, others=others
        )
    ]
    assert found == []
