"""What recordings show by their keys, their words and each other: each plugin here is right, or reads one thing wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import attrs
import orjson
import pytest

from crosswalk import Registry
from crosswalk.plugins import (
    FINISH,
    ID,
    REFUSAL,
    TEXT,
    ChatRequest,
    CitationRef,
    ErrorInfo,
    ErrorKind,
    FieldRow,
    FieldTable,
    FinishReason,
    HTTPRequest,
    MappingState,
    OpenAIChatDialect,
    ProviderInfo,
    ResponseDelta,
    Segment,
    SegmentType,
    TableDialect,
    UnknownEventError,
    UnsupportedRequestError,
    UsageInfo,
    accept_number,
    accept_objects,
    accept_string,
    calls,
    classify,
    count,
    dump_json,
    hookimpl,
    take_count,
    take_error,
    take_string,
)
from crosswalk.testing import Capture, check_capture


def found_in(plugin: Any, captures: list[Capture], *checks: str) -> list[str]:
    registry = Registry(installed=[], environ={})
    registry.register(plugin, "fern")
    mapper = registry.mapper("fern")
    return [
        problem.line
        for one in captures
        for problem in check_capture(mapper, one, others=captures, checks=checks or CHECKED)
    ]


CHECKED = (
    *(
        "times kept",
        "answers its request",
        "counts are the provider's",
        "failures are errors",
        "nothing lost",
    ),
    *("declarations hold", "rows hold"),
)


def body(case: str, *, status: int = 200, request: Any = None, **said: Any) -> Capture:
    asked = None if request is None else dump_json(request)
    return Capture(case, Path(f"{case}.json"), orjson.dumps(said), status=status, request=asked)


def stream(case: str, *events: Any, end: bytes = b"") -> Capture:
    lines = b"".join(b"data: " + orjson.dumps(event) + b"\n\n" for event in events)
    return Capture(case, Path(f"{case}.sse"), lines + end, stream=True, content_type="text/event-stream")


def lasting(parts: int, *, least: float = 0) -> FieldRow:
    """The row of a duration that counts *parts* of a second. A shorter one than the *least* is only kept."""

    def take(holder: dict[str, Any], key: str, said: Any, state: MappingState) -> None:
        number = accept_number(holder, key, minimum=least, maximum=10**9)
        if number is not None:
            state.request_duration = timedelta(seconds=number / parts)

    return FieldRow("request_duration", take)


COUNTS: Mapping[str, FieldRow] = {
    "n.input_tokens": count("prompt_tokens"),
    "n.output_tokens": count("completion_tokens"),
    "n.cache_read": count("cached_tokens"),
    "n.cache_fill": count("cache_write_tokens"),
}
ROWS: Mapping[str, FieldRow] = {
    "asks": calls(),
    "run": ID,
    "say": TEXT,
    "wont": REFUSAL,
    "end": FINISH,
    **COUNTS,
}
WORDS: Mapping[str, FinishReason] = {
    "over": FinishReason.STOP,
    "spent": FinishReason.LENGTH,
    "asks": FinishReason.TOOL_CALLS,
    "barred": FinishReason.CONTENT_FILTER,
}
NUMBERS = {"input_tokens": 90, "output_tokens": 12, "cache_read": 5, "cache_fill": 7}
TALK = body("talk", run="r-1", say="It is noon here.", end="over", n=NUMBERS)
BARRED = body("barred", run="r-2", wont="I will not say.", end="barred", n=NUMBERS)
SPENT = body("spent", request={"top": {"most": 12}}, run="r-3", say="It is noon", end="spent", n=NUMBERS)
BUSY = {"fault": {"slug": "busy", "why": "Too many at once for us now."}}


class Fern(TableDialect):
    """A server with words of its own."""

    title = "Fern"
    fields = FieldTable(ROWS)
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = WORDS
    kinds: ClassVar[Mapping[str, ErrorKind]] = {"busy": ErrorKind.RATE_LIMIT, "broke": ErrorKind.QUOTA}

    def __init__(
        self, rows: Mapping[str, FieldRow] = ROWS, words: Mapping[str, FinishReason] = WORDS, **more: Any
    ) -> None:
        # A table and words of its own, which the class has for all.
        vars(self).update(fields=FieldTable(rows), finish_reasons={**WORDS, **words})
        self.more = more

    def failure(self, status: int | None, event: dict[str, Any]) -> ErrorInfo:
        slug, why = event["fault"].get("slug"), event["fault"].get("why")
        kind = self.more.get(slug) or self.kinds.get(slug) or classify(status, why, (slug,))
        is_passing = kind in (ErrorKind.RATE_LIMIT, ErrorKind.SERVER)
        return ErrorInfo(kind, why[: self.more.get("letters", 999)], is_passing, status, slug, event)

    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        if self.is_fault(event):
            return [take_error(event, self.failure(None, event))]
        return super().map_delta(event, state)

    def is_fault(self, event: Any) -> bool:
        fault = event.get("fault") if isinstance(event, dict) else None
        return isinstance(fault, dict) and all(isinstance(fault.get(key), str) for key in ("slug", "why"))

    def map_error(self, status: int | None, body: Any) -> ErrorInfo | None:
        if self.is_fault(body):
            return self.failure(status, body)
        return super().map_error(status, body)

    @hookimpl
    def build_request(self, request: ChatRequest) -> HTTPRequest:
        if self.more.get("builds") == "nothing":
            raise UnsupportedRequestError("its server takes none", options=["max_tokens"])
        return HTTPRequest("/run", {"top": {"most": request.max_tokens}})


CALLED = body(
    "called",
    run="r-5",
    say="I look.",
    end="asks",
    n=NUMBERS,
    asks=[{"id": "c-1", "name": "look", "arguments": "{}"}],
)
RIGHT = [
    TALK,
    CALLED,
    BARRED,
    SPENT,
    body("busy", status=429, **BUSY),
    stream("lost", {"run": "r-4", "say": "It"}, BUSY),
]


def test_a_right_plugin_has_no_problem() -> None:
    assert found_in(Fern(), RIGHT) == []


@pytest.mark.parametrize(
    ("key", "value", "parts", "message"),
    [
        ("took_ms", 900, 1000, ""),
        ("took_ms", 900, 1, "the duration 900 is read as 900.0 seconds"),
        ("tookSecs", 2, 1, ""),
        ("secs", 2, 1000, "the duration 2 is read as 0.002 seconds"),
        ("us", 900_000, 10**6, ""),
        ("lasted", 0.5, 1, ""),
        ("lasted", 0.5, 1000, "the duration 0.5 is read as 0.0005 seconds"),
        ("lasted", 500, 1, "the duration 500 is read as 500.0 seconds"),
        ("lasted", 0, 1, ""),
    ],
)
def test_a_duration_is_in_the_unit_of_its_key_or_plausible(
    key: str, value: float, parts: int, message: str
) -> None:
    plugin = Fern({**ROWS, key: lasting(parts)})
    told = found_in(
        plugin, [body("talk", run="r-1", say="It is noon.", end="over", n=NUMBERS, **{key: value})]
    )
    assert [message in line for line in told] == [True] * bool(message), told


def test_a_duration_of_an_answer_without_counts_may_be_any() -> None:
    plugin = Fern({**ROWS, "lasted": lasting(1)})
    assert found_in(plugin, [body("talk", run="r-1", say="It is noon.", end="over", lasted=500)]) == []


def test_a_recorded_duration_of_0_may_be_kept() -> None:
    plugin = Fern({**ROWS, "secs": lasting(1, least=0.1)})
    assert found_in(plugin, [body("talk", run="r-1", say="It is noon.", end="over", n=NUMBERS, secs=0)]) == []


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("opened_at", "the time of the answer is left in the extensions"),
        ("createdAt", "the time of the answer is left in the extensions"),
        ("completed_at", ""),
        ("expiresAt", ""),
    ],
)
def test_a_time_of_an_end_is_not_that_of_the_answer(key: str, message: str) -> None:
    talk = body("talk", run="r-1", say="It is noon.", end="over", n=NUMBERS, **{key: 1764500000})
    told = found_in(Fern(), [talk])
    assert [message in line for line in told] == [True] * bool(message), told


class RefusesNoTime(Fern):
    """Its server never needs 0 seconds."""

    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        if isinstance(event, dict) and event.get("secs") == 0:
            raise UnknownEventError("no time at all")
        return super().map_delta(event, state)


def test_a_duration_of_0_may_be_refused() -> None:
    plugin = RefusesNoTime({**ROWS, "secs": lasting(1000)})
    assert found_in(plugin, [body("talk", run="r-1", say="It is noon.", end="over", n=NUMBERS, secs=2)]) == []


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        (Fern(words={"barred": FinishReason.STOP}), "'barred' ends only refusals, and is read as stop"),
        (Fern(words={"barred": FinishReason.LENGTH}), "'barred' ends only refusals, and is read as length"),
        (Fern(words={"asks": FinishReason.CONTENT_FILTER}), "'asks' ends only calls, and is read as content_filter"),
        (Fern({**ROWS, "wont": TEXT}), "wont is read as text, and only answers that end as content_filter have it"),
        (Fern(words={"spent": FinishReason.STOP}), "the answer has 12 tokens, the limit of its request, and 'spent'"),
        (Fern({**ROWS, "n.cache_read": COUNTS["n.cache_fill"], "n.cache_fill": COUNTS["n.cache_read"]}),
            "cached tokens became cache write tokens: it is counted in usage.cache_write_tokens"),
        (Fern({path: row for path, row in ROWS.items() if path != "n.output_tokens"}),
            "it is not counted in usage.completion_tokens"),
        (Fern(letters=8), "the message 'Too many' is not a text of the payload"),
        (Fern(busy=ErrorKind.INVALID_REQUEST), "HTTP 429 is read as invalid_request"),
    ],
)  # fmt: skip
def test_a_mistake_that_recordings_show_is_found(plugin: Fern, message: str) -> None:
    told = found_in(plugin, RIGHT)
    assert any(message in line for line in told), told


def test_a_builder_that_refuses_names_no_limit() -> None:
    told = found_in(Fern(words={"spent": FinishReason.STOP}, builds="nothing"), RIGHT, "answers its request")
    assert told == []


def test_a_spent_account_is_no_rate_limit() -> None:
    broke = body("broke", status=402, fault={"slug": "broke", "why": "Please pay for what you use."})
    assert found_in(Fern(), [broke], "failures are errors") == []
    (told,) = found_in(Fern(broke=ErrorKind.RATE_LIMIT), [broke], "failures are errors")
    assert "HTTP 402 is read as rate_limit" in told


class Behind(Fern):
    """A server that passes on the errors of another one as text."""

    def map_error(self, status: int | None, body: Any) -> ErrorInfo | None:
        fault = body.get("fault") if isinstance(body, dict) else None
        return self.failure(status, {"fault": orjson.loads(fault)}) if isinstance(fault, str) else None


def test_the_message_of_a_failure_may_be_inside_of_json_in_a_text() -> None:
    busy = body("busy", status=429, fault=orjson.dumps(BUSY["fault"]).decode())
    assert found_in(Behind(), [busy], "failures are errors") == []
    (told,) = found_in(Behind(busy=ErrorKind.INVALID_REQUEST), [busy], "failures are errors")
    assert "HTTP 429 is read as invalid_request" in told


# -------------------------------------------------------------------------- items and ends


class Burr:
    """A server whose items are open at once, and end by their numbers."""

    sources: ClassVar[int | None] = None
    sentinel: ClassVar[bool] = True

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(title="Burr", sentinel=self.sentinel)

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        state.take_identity(event, id="run")
        number, opened = take_count(event, "index"), state.data.setdefault("open", set())
        if (name := take_string(event, "begin")) is not None:
            opened.add(number)
            call = state.tool_call(index=number or 0, id=take_string(event, "ref"), name=name, arguments="{}")
            yield ResponseDelta(tool_call_delta=call)
        elif (kind := take_string(event, "done")) is not None and (kind != "item" or number not in opened):
            raise UnknownEventError("the end of no item", event_type="done")
        if text := take_string(event, "say"):
            yield ResponseDelta(content_delta=text)
        for source in accept_objects(event, "sources")[: self.sources]:
            ref = CitationRef(source=accept_string(source, "link"))
            yield ResponseDelta(segment=Segment(SegmentType.CITATION, "", annotations=(ref,)))
        if word := take_string(event, "end"):
            yield ResponseDelta(raw_finish_reason=word)

    @hookimpl
    def map_finish_reason(self, reason: str) -> FinishReason | None:
        return {"called": FinishReason.TOOL_CALLS, "over": FinishReason.STOP}.get(reason)


class FirstSource(Burr):
    sources = 1


class NoSentinel(Burr):
    sentinel = False


CALLS = stream(
    "calls",
    {"run": "r-1", "index": 0, "begin": "look", "ref": "c-10"},
    {"index": 1, "begin": "look", "ref": "c-11"},
    {"index": 0, "done": "item"},
    {"index": 1, "done": "item"},
    {"end": "called"},
    end=b"data: [DONE]\n\n",
)
SOURCE = body("source", run="r-2", say="Noon.", sources=[{"link": "https://a.example/1"}], end="over")


def test_items_that_are_open_at_once_end_by_their_numbers() -> None:
    assert found_in(Burr(), [CALLS, SOURCE]) == []


def test_one_more_source_is_read_like_the_first() -> None:
    (told,) = found_in(FirstSource(), [SOURCE])
    assert "sources: one more source at the end of the array is not read as a source" in told


def test_a_sentinel_of_each_stream_is_declared() -> None:
    (told,) = found_in(NoSentinel(), [CALLS])
    assert "sentinel: not declared, and every recorded stream ends with [DONE]" in told


class OwnCounts(OpenAIChatDialect):
    """A look-alike that counts under names of its own, and says its thoughts in a field of its own."""

    def usage_info(self, usage: dict[str, Any], state: MappingState) -> UsageInfo | None:
        return state.usage_info(take_count(usage, "read"), take_count(usage, "made"))

    def reasoning(self, part: dict[str, Any], choice: int, state: MappingState) -> str | None:
        return take_string(part, "voice")


def test_a_lookalike_that_reads_by_a_method_of_its_own_states_no_usual_rows() -> None:
    message = {"role": "assistant", "content": "Noon.", "voice": "Look up."}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    said = {"id": "a", "object": "chat.completion", "created": 1764500000, "model": "m", "choices": [choice]}
    assert found_in(OwnCounts(), [body("talk", **said, usage={"read": 30, "made": 4})], "rows hold") == []


# ------------------------------------------------------------------------- numbers of calls


class Limpet(Burr):
    """Its calls have numbers and no ids."""

    keeps_numbers: ClassVar[bool] = False

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        state.take_identity(event, id="run")
        for call in accept_objects(event, "calls"):
            if self.keeps_numbers:
                yield ResponseDelta(
                    tool_call_delta=state.take_tool_call(call, index="slot", name="do", arguments="{}")
                )
            else:
                number, name = take_count(call, "slot"), take_string(call, "do")
                yield ResponseDelta(tool_call_delta=state.tool_call(index=number, name=name, arguments="{}"))
        if word := take_string(event, "end"):
            yield ResponseDelta(raw_finish_reason=word)


class KeepsNumbers(Limpet):
    keeps_numbers = True


@pytest.mark.parametrize(("plugin", "is_named"), [(Limpet(), True), (KeepsNumbers(), False)])
def test_a_lost_number_of_a_call_has_its_cure(plugin: Any, is_named: bool) -> None:
    body = orjson.dumps({"run": "r-1", "calls": [{"slot": 0, "do": "dig"}], "end": "called"})
    registry = Registry(installed=[])
    registry.register(plugin, "limpet")
    capture = Capture("dug", Path("dug"), body)
    found = [one.line for one in check_capture(registry.mapper("limpet"), capture, checks=["nothing lost"])]
    assert any("take_tool_call keeps a number" in line for line in found) is is_named, found


class Heeds(Fern):
    """It reads whether a failure may pass."""

    def failure(self, status: int | None, event: dict[str, Any]) -> ErrorInfo:
        fault = event["fault"]
        is_passing = fault.get("can_retry", False) or fault.get("advice") == "retry"
        return attrs.evolve(super().failure(status, event), retryable=is_passing)


@pytest.mark.parametrize("sign", [{"can_retry": True}, {"advice": "retry"}])
@pytest.mark.parametrize(("plugin", "is_found"), [(Fern(), True), (Heeds(), False)])
def test_a_sign_of_a_failure_that_passes_is_read(plugin: Fern, is_found: bool, sign: dict[str, Any]) -> None:
    registry = Registry(installed=[], environ={})
    registry.register(plugin, "fern")
    one = body("busy", status=429, fault={**BUSY["fault"], **sign})
    found = check_capture(registry.mapper("fern"), one, checks=["failures are errors"])
    message = "it says whether to try again, and changes nothing"
    assert [problem.message for problem in found] == [message] * is_found
