"""Laws that hold for any mapping, each with a plugin that breaks it: choices, errors, and what is left aside."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import orjson
import pytest

from crosswalk import Registry
from crosswalk.plugins import (
    FINISH,
    MODEL,
    TEXT,
    CitationRef,
    ErrorInfo,
    ErrorKind,
    FieldRow,
    FieldTable,
    FinishReason,
    MappingState,
    ProviderInfo,
    Recognition,
    ResponseDelta,
    Said,
    Segment,
    SegmentType,
    TableDialect,
    TokenLogprob,
    UnknownEventError,
    UsageInfo,
    accept_count,
    accept_number,
    accept_object,
    count,
    dump_json,
    error_info,
    hookimpl,
    require_object,
    take_arguments,
    take_count,
    take_error,
    take_string,
)
from crosswalk.testing import Capture, check_capture, normalized
from crosswalk.testing.evidence import unproven

KINDS: dict[int, ErrorKind] = {7001: ErrorKind.SERVER, 7002: ErrorKind.RATE_LIMIT}


class Quay:
    """A server whose events are named, and whose choices are a number or a part of a path."""

    names: ClassVar[tuple[str, ...]] = ("head", "text", "call", "tally", "close", "fault")

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(title="Quay")

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        return Recognition.POSSIBLE if isinstance(event, dict) and "quay" in event else Recognition.NO

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        event, name = require_object(event), state.event_name
        if "fault" in event:
            yield take_error(event, self.failure(event["fault"], None, dict(event)))
            return
        if name is not None and name not in self.names:
            raise self.unknown(name)
        state.take_identity(event, id="quay")
        choice = self.choice(event)
        if text := take_string(event, "text"):
            number = accept_number(event, self.logprob_key)
            logprobs = (TokenLogprob(text, number),) if number is not None or "lp" in event else None
            yield ResponseDelta(content_delta=text, logprobs=logprobs, choice=choice)
        if "fn" in event:
            yield self.call(event, choice, state)
        if why := take_string(event, "why"):
            yield ResponseDelta(raw_finish_reason=why, choice=choice)

    logprob_key: ClassVar[str] = "lp"

    def choice(self, event: dict[str, Any]) -> int:
        place = take_string(event, "at")
        if place is None:
            return take_count(event, "n") or 0
        if not re.fullmatch("/[0-9]{1,3}/", place):
            raise UnknownEventError("a place that nobody knows", event_type=place)
        return int(place[1:-1])

    def call(self, event: dict[str, Any], choice: int, state: MappingState) -> ResponseDelta:
        arguments, _ = take_arguments(event, "args")
        delta = state.take_tool_call(
            event, arguments=arguments, id="cid", name="fn", choice=choice, whole=True
        )
        return ResponseDelta(tool_call_delta=delta, choice=choice)

    def unknown(self, name: str) -> UnknownEventError:
        return UnknownEventError("unknown", event_type=name)

    def failure(self, fault: Any, status: int | None, raw: Any) -> ErrorInfo:
        fault = require_object(fault)
        code, kind = fault.get("code"), ErrorKind.UNKNOWN
        if type(code) is int:
            kind = KINDS.get(code, kind)
        is_passing = kind is not ErrorKind.UNKNOWN
        return ErrorInfo(kind, str(fault.get("say")), is_passing, status, self.code(code), raw)

    def code(self, code: Any) -> str:
        return str(code)

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        tally = accept_object(event, "tally") or {}
        return state.usage_info(accept_count(tally, "in"), accept_count(tally, "out"))

    @hookimpl
    def map_finish_reason(self, reason: str) -> FinishReason | None:
        return {"end": FinishReason.STOP, "called": FinishReason.TOOL_CALLS}.get(reason)

    @hookimpl
    def map_error(self, status: int, body: Any) -> ErrorInfo | None:
        if isinstance(body, dict) and "fault" in body:
            return self.failure(body["fault"], status, body)
        return None


HEAD = {"quay": "q-1", "model": "m-2", "created": 1767261900}
TALLY = {"in": 11, "out": 4}
ARGUMENTS = {"port": "Brest"}


def stream(name: str, *events: tuple[str, dict[str, Any]]) -> Capture:
    body = b"".join(
        b"event: %s\ndata: %s\n\n" % (kind.encode(), orjson.dumps(event)) for kind, event in events
    )
    return Capture(name, Path(name), body, stream=True)


CAPTURES = [
    stream(
        "talk_stream",
        ("head", HEAD),
        ("text", {"n": 0, "text": "Hel", "lp": -0.25}),
        ("text", {"n": 0, "text": "lo", "lp": -1.5}),
        ("tally", {"tally": TALLY}),
        ("close", {"n": 0, "why": "end"}),
    ),
    stream(
        "path_stream",
        ("head", HEAD),
        ("text", {"at": "/0/", "text": "Hel"}),
        ("call", {"at": "/0/", "cid": "c", "fn": "look", "args": {"port": "Brest"}}),
        ("close", {"at": "/0/", "why": "called"}),
    ),
    stream("lost_stream", ("head", HEAD), ("fault", {"fault": {"code": 7001, "say": "The tide went out."}})),
    Capture(
        "call",
        Path("call"),
        orjson.dumps({**HEAD, "n": 0, "cid": "c", "fn": "look", "args": orjson.dumps(ARGUMENTS).decode(), "why": "called"}),
    ),
    Capture("busy", Path("busy"), orjson.dumps({"fault": {"code": 7002, "say": "Too many."}}), status=429),
]  # fmt: skip


def found_in(plugin: Any, *checks: str) -> list[str]:
    registry = Registry(installed=[])
    registry.register(plugin, "quay")
    names = {"checks": checks} if checks else {}
    return [
        problem.line
        for capture in CAPTURES
        for problem in check_capture(registry.mapper("quay"), capture, sample=None, others=CAPTURES, **names)  # type: ignore[arg-type]
    ]


@pytest.mark.untraced
def test_a_right_plugin_breaks_no_law() -> None:
    assert found_in(Quay()) == []


class TextOfTheFirst(Quay):
    def choice(self, event: dict[str, Any]) -> int:
        number = super().choice(event)
        return 0 if "text" in event else number


class CallOfTheFirst(Quay):
    def call(self, event: dict[str, Any], choice: int, state: MappingState) -> ResponseDelta:
        return super().call(event, 0, state)


class NamesNoUnknownEvent(Quay):
    def unknown(self, name: str) -> UnknownEventError:
        return UnknownEventError("unknown")


class FailsOnUnknownEvents(Quay):
    def unknown(self, name: str) -> UnknownEventError:
        return UnknownEventError()  # type: ignore[call-arg]


class DropsUnknownFields(Quay):
    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        return {}


class TakesAnything(Quay):
    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        return Recognition.POSSIBLE


class ForgetsTheKind(Quay):
    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        if "fault" in event:
            return iter([take_error(event, error_info(None, {"message": event["fault"]["say"]}))])
        return super().map_delta(event, state)


class HasAnEmptyCode(Quay):
    def code(self, code: Any) -> str:
        return ""


class MakesACodeUp(Quay):
    def code(self, code: Any) -> str:
        return "quay_failure"


class FailsOnProxies(Quay):
    @hookimpl
    def map_error(self, status: int, body: Any) -> ErrorInfo | None:
        return self.failure(body["fault"], status, body) if "fault" in body else None


class LeavesLogprobs(Quay):
    logprob_key = "logprob"


class LeavesArguments(Quay):
    def call(self, event: dict[str, Any], choice: int, state: MappingState) -> ResponseDelta:
        delta = state.take_tool_call(event, arguments=None, id="cid", name="fn", choice=choice, whole=True)
        return ResponseDelta(tool_call_delta=delta, choice=choice)


class LeavesCounts(Quay):
    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        return None


@pytest.mark.parametrize(
    ("plugin", "check", "message"),
    [
        (TextOfTheFirst(), "choices are told apart", "talk_stream, event 2, n: choices are mixed: in a second choice, its text is given as that of the first"),
        (CallOfTheFirst(), "choices are told apart", "path_stream, event 2, at: choices are mixed: in a second choice, its tool_call is given as"),
        (CallOfTheFirst(), "choices are told apart", "call, event 1, n: choices are mixed: in a second choice, its tool_call is given as"),
        (NamesNoUnknownEvent(), "unknown words raise", "events named head: the error for an unknown name does not name it"),
        (FailsOnUnknownEvents(), "unknown words raise", "the plugin's code: on a changed answer: MappingError: quay, event 1: the plugin failed"),
        (DropsUnknownFields(), "unknown words raise", "event 3 unknown: lost: it is neither refused nor kept"),
        (TakesAnything(), "recognizes its own", "detection: takes an answer of nobody for one of its own"),
        (ForgetsTheKind(), "failures are errors", "failure: of no kind in a stream, and server in the body of an HTTP error"),
        (HasAnEmptyCode(), "failures are errors", "lost_stream, failure: its code '' is not a value of the payload"),
        (MakesACodeUp(), "failures are errors", "busy, failure: its code 'quay_failure' is not a value of the payload"),
        (FailsOnProxies(), "failures are errors", "HTTP 502: with the body 'null' it is not read as an error"),
        (LeavesLogprobs(), "digits kept", "talk_stream, logprobs: no token has a log probability, and a negative number is left"),
        (LeavesArguments(), "arguments told apart", "path_stream, event 3, fn: the arguments of its call are left in the extensions"),
        (LeavesArguments(), "arguments told apart", "call, event 1, fn: the arguments of its call are left in the extensions"),
        (LeavesCounts(), "kinds are read", "talk_stream, event 4, tally: it looks like counts, and the plugin reads none"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Quay) else None,
)  # fmt: skip
def test_a_broken_law_is_named(plugin: Any, check: str, message: str) -> None:
    found = found_in(plugin, check)
    assert any(message in line for line in found), found


class WritesAnyArguments(Quay):
    """Arguments may be any JSON, or the text of it."""

    def call(self, event: dict[str, Any], choice: int, state: MappingState) -> ResponseDelta:
        if not isinstance(event.get("args"), str):
            event["args"] = dump_json(event.get("args")).decode()
        return super().call(event, choice, state)


def test_an_object_of_arguments_may_be_anything() -> None:
    """In its place, not in place of a text."""
    found = found_in(WritesAnyArguments(), "never silently wrong")
    assert [line for line in found if "path_stream" in line] == []
    assert any(
        "call, event 1, args: with true in its place it is read as the text 'true'" in line for line in found
    )


def test_an_answer_may_repeat_the_tools_of_its_request() -> None:
    """Their schemas are no arguments of a call that has none."""
    registry = Registry(installed=[], environ={})
    registry.register(Quay(), "quay")
    tools = b'"tools":[{"name":"look","parameters":{"type":"object","properties":{}}}]'
    body = b'{"quay":"q1","fn":"look","cid":"c1","args":{},"why":"stop",%b}' % tools
    echo = Capture("echo", Path("echo.json"), body)
    assert check_capture(registry.mapper("quay"), echo, checks=["arguments told apart"]) == []


class Cove(TableDialect):
    """Says how full its cache is."""

    title = "Cove"
    fields = FieldTable(
        {
            "text": TEXT,
            "why": FINISH,
            "evaluated": count("prompt_tokens"),
            "predicted": count("completion_tokens"),
        }
    )
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = {"stop": FinishReason.STOP}


@pytest.mark.parametrize(("cached", "is_filling"), [(7, True), (8, True), (3, False), (9, False)])
def test_how_full_a_cache_is_does_not_say_what_was_read_from_it(cached: int, is_filling: bool) -> None:
    """As llama.cpp's ``tokens_cached``, of prompt and completion without the last token."""
    registry = Registry(installed=[], environ={})
    registry.register(Cove(), "cove")
    body = b'{"text":"Hello","why":"stop","evaluated":5,"predicted":3,"tokens_cached":%d}' % cached
    one = Capture("talk", Path("talk.json"), body)
    for others in ([], [one]):
        found = check_capture(registry.mapper("cove"), one, others=others)
        assert {problem.path for problem in found} == (set() if is_filling else {"tokens_cached"})


def cited(row: str, first: int = 0, last: int = 1) -> FieldRow:
    """The row of a source, which is named by its *row*, and cited from *first* to *last* of its span."""

    def take(holder: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
        span = holder[key].pop("span")
        note = CitationRef(source=holder[key].pop(row), span=(span[first], span[last]))
        said.deltas.append(ResponseDelta(segment=Segment(SegmentType.CITATION, annotations=(note,))))

    return FieldRow("segments", take)


class Cites(Cove):
    """It says where its text comes from."""

    fields = FieldTable({**Cove.fields.rows, "from": cited("link")})


class CitesTitles(Cove):
    fields = FieldTable({**Cove.fields.rows, "from": cited("title")})


class CitesBackwards(Cove):
    fields = FieldTable({**Cove.fields.rows, "from": cited("link", 1, 0)})


TITLED = b'{"text":"Hello","why":"stop","from":{"title":"Kelp","link":"https://kelp.example","span":[1,3]}}'
UNTITLED = b'{"text":"Hello","why":"stop","from":{"title":"Kelp","span":[1,3]},"home":"https://kelp.example"}'


@pytest.mark.parametrize(
    ("plugin", "body", "told"),
    [
        (Cites(), TITLED, []),
        (CitesBackwards(), TITLED, ["P8 talk, citations: one ends before it begins"]),
        (CitesTitles(), TITLED, ["P8 talk, citations: a source is 'Kelp', and its URL is left"]),
        (CitesTitles(), UNTITLED, []),
    ],
)
def test_a_source_is_its_url_if_it_has_one(plugin: Cove, body: bytes, told: list[str]) -> None:
    registry = Registry(installed=[], environ={})
    registry.register(plugin, "cove")
    found = check_capture(
        registry.mapper("cove"), Capture("talk", Path("talk.json"), body), checks=["parts within wholes"]
    )
    assert [str(problem).partition(" [")[0] for problem in found] == told


class LeavesASet(Cove):
    """Leaves in the event what JSON does not have."""

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        if isinstance(event, dict) and "gust" in event:
            event["gust"] = {"from": {event["gust"]}}
        return super().map_delta(event, state)


@pytest.mark.parametrize(
    ("body", "complete"),
    [
        (b'{"text":"It is late.","gust":"ne","why":"stop"}', True),
        (b'{"text":"It is","gust":"ne"}\n{"text":" late."}\n', False),
    ],
    ids=["answer", "partial"],
)
def test_what_json_does_not_have_is_named_with_its_capture(body: bytes, complete: bool) -> None:
    registry = Registry(installed=[], environ={})
    registry.register(LeavesASet(), "cove")
    mapper = registry.mapper("cove")
    one = Capture("windy", Path("windy"), body, stream=not complete, complete=complete)
    calm = Capture(
        "calm", Path("calm"), body.replace(b"gust", b"calm"), stream=not complete, complete=complete
    )
    (problem,) = check_capture(mapper, one, others=[one, calm])
    assert str(problem) == (
        "P4 windy, as it is: refused: CanonicalJSONError: cannot write ChatResponse: "
        "set is not a JSON value @ $.metadata.extensions.gust.from"
    )
    assert "partial" not in normalized(mapper, one)
    assert check_capture(mapper, calm, others=[one, calm]) == []
    assert "calls" in unproven(mapper, [one, calm])


def test_a_damaged_state_is_named_as_it_is() -> None:
    class Damages(Cove):
        @hookimpl
        def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
            state.model = 7  # type: ignore[assignment]
            return super().map_delta(event, state)

    registry = Registry(installed=[], environ={})
    registry.register(Damages(), "cove")
    one = Capture("talk", Path("talk.json"), b'{"text":"Hello","why":"stop"}')
    (problem,) = check_capture(registry.mapper("cove"), one)
    assert "refused: PluginError: provider 'cove': " in str(problem)


def born(read: Callable[[Any], datetime | None]) -> Any:
    """Return a plugin that reads a time of creation as *read* does, and keeps what it cannot read."""

    class Born(Cove):
        @hookimpl
        def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
            if isinstance(event, dict) and type(event.get("born")) in (str, int, float):
                try:
                    state.identify(created=read(event["born"]))
                    del event["born"]
                except (ValueError, OverflowError):
                    pass
            return super().map_delta(event, state)

    return Born()


def in_unit(parts: int) -> Callable[[Any], datetime]:
    return lambda value: datetime.fromtimestamp(0, UTC) + timedelta(microseconds=int(value) * 10**6 // parts)


def iso(text: Any) -> datetime:
    time = datetime.fromisoformat(text) if isinstance(text, str) else None
    if time is None or time.tzinfo is None:
        raise ValueError(text)
    return time


def cut_to_seconds(text: Any) -> datetime:
    """Cut the fraction off a time in UTC that has one, as a pattern does that was written for one recording."""
    return iso(f"{text[:19]}Z" if text.endswith("Z") and "." in text else text)


def milliseconds_alone(text: Any) -> datetime:
    return iso(text).replace(microsecond=iso(text).microsecond // 1000 * 1000)


NANOSECONDS = 1_767_260_700_123_456_789


@pytest.mark.parametrize(
    ("value", "right", "mistakes"),
    [
        ("2026-01-01T09:45:00Z", iso, [cut_to_seconds, milliseconds_alone]),
        ("2026-01-01T09:45:00.123456789Z", iso, [cut_to_seconds, milliseconds_alone]),
        ("2026-01-01T15:15:00.123+05:30", iso, [cut_to_seconds]),
        (NANOSECONDS // 10**9, in_unit(1), []),
        (NANOSECONDS / 10**9, lambda value: datetime.fromtimestamp(value, UTC), [in_unit(1)]),
        (NANOSECONDS // 10**6, in_unit(1000), [lambda value: in_unit(1)(value // 1000)]),
        (NANOSECONDS // 10**3, in_unit(10**6), [lambda value: in_unit(1000)(value // 1000)]),
        (NANOSECONDS, in_unit(10**9), [lambda value: in_unit(1000)(value // 10**6)]),
    ],
    ids=lambda value: None if callable(value) or isinstance(value, list) else str(value),
)
def test_a_time_keeps_its_fraction_in_each_spelling(
    value: Any, right: Callable[[Any], datetime], mistakes: list[Callable[[Any], datetime]]
) -> None:
    one = Capture(
        "talk",
        Path("talk.json"),
        orjson.dumps({"text": "Hello", "why": "stop", "seen": value, "born": value}),
    )
    registry = Registry(installed=[], environ={})
    registry.register(born(right), "right")
    assert check_capture(registry.mapper("right"), one, checks=["times kept"]) == []
    for number, mistake in enumerate(mistakes):
        registry.register(born(mistake), f"wrong{number}")
        (problem,) = check_capture(registry.mapper(f"wrong{number}"), one, checks=["times kept"])
        assert problem.path == "born"
        assert " is read as 2026-01-01 10:45:37" in problem.message


class RemembersTheModel(Cove):
    """Takes the model of the last answer that named one for an answer that names none."""

    fields = FieldTable({**Cove.fields.rows, "engine": MODEL})
    last: ClassVar[dict[str, str]] = {}

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        deltas = [*super().map_delta(event, state)]
        if state.model:
            self.last["model"] = state.model
        state.identify(model=self.last.get("model"))
        return deltas


class MixesAnswers(Cove):
    """Gives the first text of an answer again, of whichever answer came last, where a text is missing."""

    heard = ""

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        self.heard = (
            event["text"] if isinstance(event, dict) and type(event.get("text")) is str else self.heard
        )
        if isinstance(event, dict) and "why" in event and self.heard == "Low":
            event["last"] = self.heard
        return super().map_delta(event, state)


HIGH = b'{"text":"High","engine":"cove-1"}\n{"text":" tide."}\n{"why":"stop"}\n'
LOW = b'{"text":"Low","engine":"cove-1"}\n{"why":"stop"}\n'


@pytest.mark.parametrize(
    ("plugin", "where"),
    [
        (RemembersTheModel(), "one answer after another"),
        (MixesAnswers(), "two answers at once"),
        (Cove(), None),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Cove) else None,
)
def test_another_answer_changes_nothing(plugin: Any, where: str | None) -> None:
    registry = Registry(installed=[], environ={})
    registry.register(plugin, "cove")
    high, low = (
        Capture(name, Path(f"{name}.ndjson"), body, stream=True)
        for name, body in (("high", HIGH), ("low", LOW))
    )
    found = {
        problem.place
        for problem in check_capture(
            registry.mapper("cove"), high, checks=["one answer at a time"], others=[high, low]
        )
    }
    assert found == (set() if where is None else {f"high, {where}"})
