"""The engine's promises to the hooks and about them: the event is theirs, nothing of it is lost, no bug of theirs passes."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from math import inf, nan
from typing import Any

import orjson
import pytest

from crosswalk import (
    CanonicalJSONError,
    ConfigurationError,
    ErrorInfo,
    FinishReason,
    Limits,
    MappingError,
    PluginError,
    Provenance,
    ResponseDelta,
    ResponseValidationError,
    ToolCallDelta,
    TrailingContentError,
    UnknownEventError,
    UnknownProviderError,
    UsageInfo,
    WireTypeError,
    detect,
    normalize,
    normalize_stream,
    providers,
    registry,
    to_json,
)
from crosswalk.mapping.detect import candidates
from crosswalk.plugins import (
    API,
    MappingState,
    ProviderInfo,
    Recognition,
    accept_count,
    accept_object,
    accept_string,
    hookimpl,
    take_error,
    take_objects,
    take_string,
)
from wires import body, chunk, ndjson, one, outcome, read, reader, registry_of, sse, usage


class Taker:
    """Takes a text, an end, and counts. Everything else is left."""

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        """Take, piece by piece."""
        if "fail" in event:
            yield take_error(event)
            return
        state.take_identity(event)
        for item in take_objects(event, "items"):
            text = take_string(item, "text")
            yield ResponseDelta(content_delta=text or "")
        state.data["note"] = accept_string(event, "note")
        if end := take_string(event, "end"):
            yield ResponseDelta(raw_finish_reason=end)

    @hookimpl
    def map_finish_reason(self, reason: str) -> FinishReason:
        """Only one word."""
        return FinishReason.STOP

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """Take the counts."""
        counts = accept_object(event, "usage")
        if counts is None:
            return None
        return state.usage_info(accept_count(counts, "in"), accept_count(counts, "out"))


def taken(event: dict[str, Any], **options: Any) -> Any:
    """The response to one event that ends."""
    return read(Taker(), ndjson({"items": [{"text": "a"}], "end": "stop", **event}), **options)[1]


@pytest.mark.parametrize("more", [{"usage": {"in": 1}}, {"items": [{"text": "b"}]}, {"end": "stop"}])
def test_after_the_end_another_id_is_another_answer(more: dict[str, Any]) -> None:
    """Whatever its event has, counts alone included."""
    first = {"id": "one", "items": [{"text": "a"}], "end": "stop"}
    with pytest.raises(TrailingContentError, match="another answer's id after the end") as caught:
        read(Taker(), ndjson(first, {"id": "two", **more}))
    assert caught.value.partial is not None
    assert (caught.value.partial.id, caught.value.partial.text) == ("one", "a")


# --------------------------------------------------------------------------------------- what is left


def test_what_hooks_leave_is_the_residue() -> None:
    """In the provider's own structure, without what was emptied. Empty objects of the provider's own stay."""
    response = taken(
        {
            "items": [{"text": "a"}, {"text": "b", "score": 1}],
            "usage": {"in": 3, "out": 4, "tier": "x"},
            "empty": {},
            "none": [],
        }
    )
    assert response.text == "ab"
    assert response.usage == UsageInfo(3, 4)
    assert response.metadata.extensions == {
        "items": [{}, {"score": 1}],
        "usage": {"tier": "x"},
        "empty": {},
        "none": [],
    }


class OfArrays(Taker):
    """Its events are arrays, and the residue of one has its own name."""

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        """A text, perhaps some counts, and an end."""
        text, *more = event
        yield ResponseDelta(content_delta=take_string(text, "text"), raw_finish_reason="stop")
        if not more:
            event.clear()

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """Take the counts."""
        return super().map_usage(event[1], state) if event else None


@pytest.mark.parametrize(
    ("event", "left"),
    [
        ([{"text": "a"}], {}),
        ([{"text": "a"}, {"usage": {"in": 1}}], {}),
        ([{"text": "a"}, {"usage": {"in": 1}, "x": 1}], {"event": [{}, {"x": 1}]}),
        ([{"text": "a"}, {"x": {}}], {"event": [{}, {"x": {}}]}),
    ],
)
def test_what_hooks_leave_of_an_array_is_the_residue(event: Any, left: Any) -> None:
    """Without what was emptied, as of an object."""
    response = read(OfArrays(), orjson.dumps(event))[1]
    assert (response.text, response.metadata.extensions) == ("a", left)


def test_a_users_own_object_stays_as_it_is() -> None:
    """It is copied before the hooks take it apart."""
    given = {"items": [{"text": "a", "more": 1}], "usage": {"in": 1, "out": 2}, "end": "stop"}
    before = copy.deepcopy(given)
    reading = reader(Taker())
    deltas = [*reading.read_event(given), *reading.finish()]
    assert given == before
    assert normalize(given, "t", registry=registry_of(t=Taker())).text == "a"
    assert given == before
    assert deltas[0].extensions == {"items": [{"more": 1}]}


def test_an_error_keeps_its_event_whole() -> None:
    """In the error, and nowhere else."""
    _, response = read(Taker(), ndjson({"fail": True, "error": "it broke", "code": 7, "deep": {"x": []}}))
    assert response.error_info is not None
    assert response.error_info.raw == {"fail": True, "error": "it broke", "code": 7, "deep": {"x": []}}
    assert response.metadata.extensions == {}


@pytest.mark.parametrize("events", [[{"x": 1}, {"x": None}], [{"x": None}, {"x": 1}], [{"x": 1}, {}]])
def test_null_erases_nothing(events: list[dict[str, Any]]) -> None:
    """In extensions as in usage."""
    frames = [*({"items": [{"text": "a"}], **event} for event in events), {"end": "stop"}]
    _, response = read(Taker(), ndjson(*frames))
    assert response.metadata.extensions == {"x": 1}
    counts = [{"usage": {"in": 1, "out": 2}}, {"usage": {"in": None, "out": 3}}, {"end": "stop"}]
    assert read(Taker(), ndjson(*counts))[1].usage == UsageInfo(1, 3)


# --------------------------------------------------------------------------------------- wrong types


@pytest.mark.parametrize(
    ("event", "path"),
    [
        ({"note": 7}, "note"),
        ({"usage": "many"}, "usage"),
        ({"usage": {"in": -1, "out": 4}}, "usage.in"),
        ({"usage": {"in": True, "out": 4}}, "usage.in"),
        ({"created": "yesterday"}, "created"),
    ],
)
def test_a_side_field_of_a_wrong_type_costs_the_field(event: dict[str, Any], path: str) -> None:
    """It is in the extensions as it was sent, and is marked. The answer is none the worse."""
    response = taken(event)
    assert (response.text, response.is_complete) == ("a", True)
    assert response.metadata.provenance[f"metadata.extensions.{path}"] == "mistyped"
    found: Any = response.metadata.extensions
    sent: Any = event
    for key in path.split("."):
        found, sent = found[key], sent[key]
    assert found == sent


def test_a_note_of_another_answer_is_not_this_ones() -> None:
    """The residue of a hook that was called by hand belongs to no event."""
    accept_string({"note": 1}, "note")
    assert "mistyped" not in taken({}).metadata.provenance.values()


class Quoting(Taker):
    """Its events quote answers of another provider, which it reads in the middle of its own."""

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        """Look at a side field, read the quoted answer, then go on."""
        accept_string(event, "before")
        if quoted := event.pop("quoted", None):
            assert set(taken(quoted).metadata.provenance) >= {"metadata.extensions.note"}
        yield from super().map_delta(event, state)


def test_an_answer_that_a_hook_reads_keeps_its_notes_to_itself() -> None:
    event = {"items": [{"text": "a"}], "end": "stop", "before": 1, "quoted": {"note": 2}}
    provenance = read(Quoting(), ndjson(event))[1].metadata.provenance
    assert [path for path, said in provenance.items() if said == "mistyped"] == ["metadata.extensions.before"]


@pytest.mark.parametrize(
    ("event", "place"),
    [
        ({"items": [{"text": "b"}, {"text": 7}]}, "items[1].text"),
        ({"items": [{"text": "b"}, "c"]}, "items[1]"),
        ({"items": {"text": "b"}}, "items"),
        ({"id": 7}, "id"),
        ({"end": ["stop"]}, "end"),
    ],
)
def test_what_decides_the_answer_raises_with_its_place(event: dict[str, Any], place: str) -> None:
    """And with everything that came before it, in the same event too."""
    partial, error = outcome(Taker(), ndjson({"items": [{"text": "a"}]}, event))
    assert isinstance(error, WireTypeError)
    assert error.place == f"event 2, {place}"
    assert "container" not in vars(error)
    said = place in {"items[1].text"}
    assert partial.text == ("ab" if said else "a")


def test_of_a_whole_body_the_text_before_a_fault_is_kept() -> None:
    """A body is one event."""
    wrong = body({"content": "the answer", "tool_calls": [{"id": 1, "function": {"name": "f"}}]})
    with pytest.raises(WireTypeError, match=r"choices\[0\].message.tool_calls\[0\].id") as caught:
        one("vllm", wrong)
    assert caught.value.partial is not None
    assert caught.value.partial.text == "the answer"


# --------------------------------------------------------------------------------------------- deltas


def test_a_delta_may_be_given_again() -> None:
    """It is a value: what somebody has already got of it does not change."""
    again = ResponseDelta(content_delta="a")

    class Again:
        @hookimpl
        def map_delta(self, event: Any) -> list[ResponseDelta]:
            event.clear()
            return [again, ResponseDelta(content_delta="b"), again]

    deltas, response = read(Again(), ndjson({"x": 1}, {"x": 2}))
    assert [delta.index for delta in deltas] == list(range(7))
    assert response.text == "abaaba"


@pytest.mark.parametrize("first", [{"x": 1}, {"usage": {"in": 1, "out": 1}}])
def test_what_is_added_to_a_delta_is_not_added_to_the_plugins(first: dict[str, Any]) -> None:
    """Residue and usage come on a copy."""
    given = ResponseDelta(content_delta="a")

    class Given(Taker):
        @hookimpl
        def map_delta(self, event: Any, state: MappingState) -> Any:
            return [given, ResponseDelta(raw_finish_reason="stop")]

    deltas, _ = read(Given(), ndjson(first))
    assert deltas[0].extensions or deltas[0].usage
    assert not given.extensions
    assert given.usage is None


# --------------------------------------------------------------------------------------------- the end


def test_a_finish_word_is_provisional_within_one_answer() -> None:
    """Some servers say one after each parallel call. The worst counts."""

    def call(number: int) -> dict[str, Any]:
        function = {"name": "go", "arguments": "{}"}
        return chunk(
            {"tool_calls": [{"index": number, "id": f"c{number}", "function": function}]}, "tool_calls"
        )

    _, response = read("vllm", sse(call(0), call(1), chunk({"content": "\n"}, "stop")))
    assert [found.id for found in response.tool_calls] == ["c0", "c1"]
    assert (response.finish_reason, response.text) == ("tool_calls", "\n")


@pytest.mark.parametrize(
    "data",
    [
        sse(chunk({"content": "a"}, "stop"), chunk({"content": "b"}, "stop") | {"id": "other"}),
        sse(chunk({"content": "a"}, "stop")) + sse(chunk({"content": "b"}, "stop")),
        ndjson(*[body({"content": "a"})] * 3),
        ndjson(*[body({"content": None, "audio": {"id": "x", "data": "UklG"}})] * 3),
        ndjson(*[{"items": [{"text": "a"}], "end": "stop"}] * 2),
    ],
)
def test_a_second_answer_is_refused(data: bytes) -> None:
    """With another id, after the sentinel, as a separate body, or without an id that names its answer."""
    partial, error = outcome(Taker() if b"items" in data else "vllm", data)
    assert isinstance(error, TrailingContentError)
    assert partial.text in ("a", "")


@pytest.mark.parametrize("word", ["error", "content_filter", "cancelled", "LENGTH"])
@pytest.mark.parametrize("unknown", ["raise", "keep"])
def test_a_canonical_word_means_what_it_says(word: str, unknown: str) -> None:
    """In every dialect, whether or not its own words have it."""
    _, response = read("vllm", sse(chunk({"content": "half"}, word)), unknown=unknown)
    assert response.finish_reason == word.lower()
    assert not response.is_complete
    assert response.metadata.provenance.get("finish_reason") != "unmapped"


def test_an_answer_whose_end_nobody_understands_is_not_complete(caplog: pytest.LogCaptureFixture) -> None:
    """It is kept where that is asked for, marked, and of live traffic logged once."""
    for _ in range(2):
        answer = sse(chunk({"content": "a"}, "guardrail_xyz"))
        read("vllm", answer, unknown="keep")  # what is recorded is not logged
        _, response = read("vllm", answer, unknown="keep", timer=lambda: 0.0)
        assert (response.finish_reason, response.is_complete) == ("stop", False)
        assert response.metadata.provenance["finish_reason"] == "unmapped"
    said = [record.message for record in caplog.records if "guardrail_xyz" in record.message]
    assert said == ["vllm: unknown finish reason 'guardrail_xyz' is kept unchanged"]


def test_an_unknown_event_is_kept_whole_and_marked(caplog: pytest.LogCaptureFixture) -> None:
    """Also where the hook had begun to take it apart."""
    event = {"type": "novel_thing", "id": "chatcmpl-1", "deep": {"x": 1}}
    _, response = read(
        "vllm", sse(chunk({"content": "a"}), event, chunk({}, "stop")), unknown="keep", timer=lambda: 0.0
    )
    assert response.text == "a"
    extensions = response.metadata.extensions
    assert {name: extensions[name] for name in event} == event
    assert response.metadata.provenance["metadata.extensions"] == "unmapped"
    assert [r.message for r in caplog.records if "novel_thing" in r.message] == [
        "vllm: unknown event 'novel_thing' is kept unchanged"
    ]


@pytest.mark.parametrize(
    ("done", "counts", "provenance"),
    [(False, None, "cut"), (True, None, "absent"), (False, usage(1, 2), None), (True, usage(1, 2), None)],
)
def test_usage_that_was_cut_off_is_told_from_usage_that_never_came(
    done: bool, counts: Any, provenance: str | None
) -> None:
    """If the dialect has a sentinel, its absence shows it."""
    more = [chunk(None, usage=counts)] if counts else []
    _, response = read("vllm", sse(chunk({"content": "a"}, "stop"), *more, done=done))
    assert response.metadata.provenance.get("usage") == provenance
    assert (response.text, response.is_complete) == ("a", True)


def test_a_total_without_one_of_its_parts_is_no_total() -> None:
    """Its other part is a placeholder, and so is the sum."""
    response = taken({"usage": {"out": 22}})
    assert response.usage.total_tokens == 22
    assert response.metadata.provenance["usage.total_tokens"] == "absent"
    assert "usage.total_tokens" not in taken({"usage": {"in": 1, "out": 22}}).metadata.provenance


# -------------------------------------------------------------------------------------------- plugins


class Fatal(BaseException):
    """An exception that ``except Exception`` does not catch."""


def reading_with(hook: str, fault: BaseException) -> Callable[[], Any]:
    """How to read an answer of a provider with a *hook* that raises *fault*."""

    class Faulty(Taker):
        @hookimpl
        def extensions(self, event: Any) -> Any:
            return event

        @hookimpl
        def map_error(self, status: int, body: Any) -> Any:
            return None

    def fail(*_: Any) -> Any:
        raise fault

    setattr(Faulty, hook, hookimpl(lambda self, *given, **named: fail()))
    status = 500 if hook == "map_error" else 200
    return lambda: read(Faulty(), ndjson({"items": [], "end": "stop"}), status=status)


@pytest.mark.parametrize("hook", ["map_delta", "map_finish_reason", "map_usage", "extensions", "map_error"])
@pytest.mark.parametrize("fault", [SystemExit(9), GeneratorExit(), Fatal()])
def test_no_plugin_ends_the_program(hook: str, fault: BaseException) -> None:
    """Every exception of it becomes a typed error."""
    with pytest.raises(PluginError, match=type(fault).__name__) as caught:
        reading_with(hook, fault)()
    assert caught.value.__cause__ is fault


@pytest.mark.parametrize("fault", [KeyboardInterrupt(), asyncio.CancelledError()])
def test_an_interrupt_passes(fault: BaseException) -> None:
    """The plugin is not at fault."""

    class Interrupted(Taker):
        @hookimpl
        def map_delta(self, event: Any) -> Any:  # type: ignore[override]
            raise fault

    with pytest.raises(type(fault)):
        read(Interrupted(), ndjson({"items": []}))


@pytest.mark.parametrize("hook", ["map_delta", "map_finish_reason", "map_usage", "extensions", "map_error"])
@pytest.mark.parametrize(
    "fault",
    [
        KeyError("k"),
        PluginError("p", plugin="other"),
        UnknownProviderError("u", plugin="o"),
        ConfigurationError("c"),
    ],
)
def test_what_a_hook_raises_names_its_provider(hook: str, fault: Exception) -> None:
    """Errors of Crosswalk's own, too, which came from elsewhere."""
    with pytest.raises(
        (MappingError, PluginError), match=f"test.* failed with {type(fault).__name__}"
    ) as caught:
        reading_with(hook, fault)()
    assert caught.value.__cause__ is fault


@pytest.mark.parametrize("given", [7, "x", [], {}, ErrorInfo])
def test_a_map_error_that_gives_no_error_info_is_named(given: Any) -> None:
    """An empty one is no `None`."""

    class Faulty(Taker):
        @hookimpl
        def map_error(self, status: int, body: Any) -> Any:
            return given

    with pytest.raises(PluginError, match=f"'test': map_error gave {type(given).__name__}, not ErrorInfo"):
        read(Faulty(), b"{}", status=500)


def test_what_is_left_without_end_is_a_fault_of_the_plugin() -> None:
    """And no `RecursionError`."""

    class Endless(Taker):
        @hookimpl
        def extensions(self, event: Any) -> Any:
            event["again"] = event
            return event

    with pytest.raises(PluginError, match="left in the extensions a value that holds itself"):
        read(Endless(), ndjson({"x": 1}, {"x": 2}))


def touched(touch: Any) -> Any:
    """A plugin that does *touch* to the state."""

    class Touching(Taker):
        @hookimpl
        def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
            touch(state)
            yield from Taker.map_delta(self, event, state)

    return Touching()


@pytest.mark.parametrize(
    "touch",
    [
        lambda state: setattr(state, "request_duration", 1.5),
        lambda state: setattr(state, "request_duration", timedelta(-1)),
        lambda state: setattr(state, "usage", 7),
        lambda state: state.ends.update({0: "stop"}),
        lambda state: state.provenance.update({7: "absent"}),
        lambda state: state.begin(-1),
    ],
)
@pytest.mark.parametrize("end", [{"end": "stop"}, {}])
@pytest.mark.parametrize("counts", [{"usage": {"in": 1}}, {}])
def test_a_value_that_no_response_can_have_is_a_fault_of_the_plugin(
    touch: Any, end: dict[str, Any], counts: dict[str, Any]
) -> None:
    """Reported where it is set, or at the latest with the response, whether the answer ended or not."""
    fault = "'test': it has set a value in the state that a response cannot have|test, event 1: the plugin failed with "
    with pytest.raises((PluginError, MappingError), match=fault):
        read(touched(touch), ndjson({"items": [{"text": "a"}], **end, **counts}))


def test_a_state_that_is_damaged_before_an_event_fails_is_a_fault_of_the_plugin() -> None:
    class Breaks(Taker):
        @hookimpl
        def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
            yield ResponseDelta(content_delta="a")
            state.choices[0] = 7  # type: ignore[assignment]
            raise UnknownEventError("an odd event")

    with pytest.raises(PluginError, match="it has set a value in the state that a response cannot have"):
        read(Breaks(), ndjson({"items": [{"text": "a"}]}))


def test_extensions_that_are_deep_are_json_all_the_same() -> None:
    """Only writing them is refused."""
    deep = b'{"items": [{"text": "a"}], "end": "stop", "x": ' + b"[" * 280 + b"]" * 280 + b"}"
    response = normalize(deep, registry=registry_of(test=Taker()), provider="test", limits=Limits(depth=300))
    with pytest.raises(CanonicalJSONError):
        to_json(response)


@pytest.mark.parametrize(
    "odd",
    [
        *(object(), {1: "a"}, {1, 2}, datetime(2026, 1, 1), b"bytes", ("a", object())),
        *(nan, inf, {"deep": [None, ({"x": -inf},)]}),
    ],
)
def test_extensions_that_are_no_json_are_a_fault_of_the_plugin(odd: Any) -> None:
    """Said when the answer is read, not when somebody writes it."""

    class Odd(Taker):
        @hookimpl
        def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
            return {"odd": odd}

    with pytest.raises(PluginError, match="'test': it left in the extensions what is not JSON"):
        read(Odd(), ndjson({"items": [{"text": "a"}], "end": "stop"}))


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ({"id": 7}, "TypeError"),
        ({"model": ["m"]}, "TypeError"),
        ({"created": datetime(2026, 1, 1)}, "ResponseValidationError"),
        ({"created": 1767261900}, "ResponseValidationError"),
    ],
)
def test_an_identity_that_is_none_is_refused_where_it_is_given(said: dict[str, Any], fault: str) -> None:
    """With the event. The answer so far is kept, and nothing of the event was noted."""
    plugin = touched(lambda state: state.delta_count and state.identify(**{"model": "m", **said}))
    partial, error = outcome(plugin, ndjson({"items": [{"text": "a"}]}, {"end": "stop"}))
    assert f"test, event 2: the plugin failed with {fault}" in str(error)
    assert (partial.text, partial.model) == ("a", "unknown")


def test_a_time_of_another_zone_is_told_in_utc() -> None:
    """As everywhere in a response."""
    state = MappingState("t")
    state.identify(created=datetime.fromisoformat("2026-01-01T01:00:00+01:00"))
    assert state.created == datetime(2026, 1, 1, tzinfo=UTC)
    with pytest.raises(ResponseValidationError):
        state.identify(id="x", created=datetime.fromisoformat("0001-01-01T00:00:00+01:00"))
    assert state.id is None


def test_calls_are_those_that_were_given() -> None:
    """Not those that a plugin asked the state for and kept to itself. One that it made by hand is one."""
    dropped = read(touched(lambda state: state.tool_call(index=0, name="f")), ndjson({"end": "stop"}))[1]
    assert (dropped.finish_reason, dropped.tool_calls) == ("stop", ())

    class ByHand(Taker):
        @hookimpl
        def map_delta(self, event: Any, state: MappingState) -> Any:
            return [ResponseDelta(tool_call_delta=ToolCallDelta(0, "i", "f", "{}"), raw_finish_reason="stop")]

    made = read(ByHand(), ndjson({}))[1]
    assert (made.finish_reason, [call.name for call in made.tool_calls]) == ("tool_calls", ["f"])


@pytest.mark.parametrize(
    "told",
    [
        {"api": "1"},
        {"api": True},
        {"endpoints": "/v1"},
        {"endpoints": (7,)},
        {"text_paths": "text"},
        {"text_paths": (7,)},
        {"logprob_paths": (("lp", len),)},
        {"logprob_paths": {"lp": "read"}},
        {"pieces": "ids"},
        {"pieces": 7},
        {"speaks": "vllm"},
    ],
)
def test_what_a_plugin_says_of_its_provider_is_checked(told: dict[str, Any]) -> None:
    """A string is not a tuple of strings, though it looks like one."""

    class Teller(Taker):
        @hookimpl
        def provider_info(self) -> ProviderInfo:
            return ProviderInfo(title="T", **told)

    with pytest.raises(PluginError, match="'test': provider_info failed: TypeError: "):
        reader(Teller())


@pytest.mark.filterwarnings("ignore:.*framing gets three arguments:DeprecationWarning")
@pytest.mark.parametrize(
    "framing", [7, lambda: 7, lambda start, limits, kind: 7, lambda start, limits, kind: limits["x"]]
)
def test_a_framing_that_fails_is_a_fault_of_the_plugin(framing: Any) -> None:
    """Whether the first bytes come at once or in the end."""

    class Framed(Taker):
        @hookimpl
        def provider_info(self) -> ProviderInfo:
            return ProviderInfo(title="T", framing=framing)

    with pytest.raises(PluginError, match="'test': its framing "):
        read(Framed(), ndjson({"end": "stop"}))


def test_a_framing_that_fails_at_the_end_is_a_fault_of_the_plugin() -> None:
    """The last frames are asked for when the input has ended."""

    class Stuck:
        def decode(self, chunk: bytes) -> Any:
            return []

        def flush(self) -> Any:
            raise KeyError

    class Framed(Taker):
        @hookimpl
        def provider_info(self) -> ProviderInfo:
            return ProviderInfo(title="T", framing=lambda start, limits, kind: Stuck())

    with pytest.raises(PluginError, match="'test': its framing failed with KeyError"):
        read(Framed(), ndjson({"end": "stop"}))


def test_a_caller_who_gives_no_bytes_is_not_the_plugins_fault() -> None:
    """The error is the caller's own."""
    with pytest.raises(TypeError):
        list(reader(Taker()).read({"end": "stop"}))


def test_a_class_is_no_plugin() -> None:
    """Except for one with hooks that need no object."""
    with pytest.raises(PluginError, match="TypeError: Taker is a class: give an object of it"):
        reader(Taker)

    class Static:
        @staticmethod
        @hookimpl
        def map_delta(event: Any) -> Any:
            return [ResponseDelta(content_delta=take_string(event, "text"))]

    assert read(Static, ndjson({"text": "a"}))[1].text == "a"


@pytest.mark.parametrize("fault", [SystemExit(9), GeneratorExit(), KeyError("x")])
def test_no_plugin_ends_the_program_when_it_is_asked_whose_an_event_is(fault: BaseException) -> None:
    """It recognizes nothing. An interrupt passes."""

    class Broken(Taker):
        @hookimpl
        def recognizes(self, event: Any) -> Any:
            raise fault

    class Whole(Taker):
        @hookimpl
        def recognizes(self, event: Any) -> Any:
            return Recognition.CERTAIN

    assert detect([{}], registry_of(broken=Broken(), whole=Whole())) == "whole"
    fault = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        detect([{}], registry_of(broken=Broken()))


@pytest.mark.parametrize("word", ["certain", "", 7, -1, 0.5, object(), []])
def test_only_a_recognition_says_whose_an_event_is(word: Any) -> None:
    """A wrong value is not a silent NO: it is reported if no other provider knows the event, and to a caller that asks that provider."""

    class Wordy(Taker):
        @hookimpl
        def recognizes(self, event: Any) -> Any:
            return word

    class Whole(Taker):
        @hookimpl
        def recognizes(self, event: Any) -> Any:
            return Recognition.CERTAIN

    fault = f"provider 'wordy': recognizes gave {type(word).__name__}, not Recognition"
    with pytest.raises(PluginError, match=fault):
        detect([{}], registry_of(wordy=Wordy()))
    assert candidates([{}], registry_of(wordy=Wordy())) == {}
    with pytest.raises(PluginError, match=fault):
        registry_of(wordy=Wordy()).mapper("wordy").recognizes({})
    assert detect([{}], registry_of(wordy=Wordy(), whole=Whole())) == "whole"


def test_wrappers_see_the_event_whole() -> None:
    """Whatever the hooks before have taken of it. They get back what the hooks left."""
    seen: dict[str, Any] = {}

    class Watcher:
        @hookimpl(wrapper=True)
        def map_delta(self, event: Any) -> Any:
            seen["map_delta"] = copy.deepcopy(event)
            return (yield)

        @hookimpl(wrapper=True)
        def map_usage(self, event: Any, state: MappingState) -> Any:
            seen["map_usage"] = copy.deepcopy(event)
            return (yield)

        @hookimpl(wrapper=True)
        def extensions(self, event: Any) -> Any:
            seen["extensions"] = copy.deepcopy(event)
            return (yield)

    class Kept(Taker):
        @hookimpl
        def extensions(self, event: Any) -> Any:
            return {"left": dict(event)}

    event = {"items": [{"text": "a"}], "usage": {"in": 1, "out": 2}, "end": "stop", "x": 1}
    known = registry_of(t=Kept())
    known.register(Watcher(), "t")
    response = normalize(event, "t", registry=known)
    assert seen == {"map_delta": event, "map_usage": event, "extensions": event}
    assert response.metadata.extensions == {"left": {"x": 1}}
    with pytest.raises(MappingError):
        normalize(b"[1]", "t", registry=known)


@pytest.mark.parametrize(("version", "outdated"), [(API + 1, "crosswalk-llm"), (API - 1, "the plugin")])
def test_a_plugin_for_another_api_is_refused(version: int, outdated: str) -> None:
    """By name, saying which of the two is to be upgraded."""

    class Other(Taker):
        @hookimpl
        def provider_info(self) -> ProviderInfo:
            return ProviderInfo(title="Other", api=version)

    with pytest.raises(PluginError, match=f"version {version} of the plugin API.*upgrade {outdated}$"):
        registry_of(other=Other()).mapper("other")


@pytest.mark.parametrize(
    ("provider", "where", "body"),
    [
        (
            "llamacpp",
            ("timings", "prompt_ms"),
            b'{"content":"Hi","stop":true,"stop_type":"eos","timings":{"prompt_ms":MS,"predicted_ms":1}}',
        ),
        (
            "bedrock",
            ("metrics", "latencyMs"),
            b'{"output":{"message":{"role":"assistant","content":[{"text":"Hi"}]}},"stopReason":"end_turn",'
            b'"metrics":{"latencyMs":MS}}',
        ),
    ],
)
@pytest.mark.parametrize("milliseconds", [32 * 10**12, 10**15 - 1, 10**15, 10**18])
def test_a_duration_of_more_than_a_thousand_years_costs_no_answer(
    provider: str, where: tuple[str, str], body: bytes, milliseconds: int
) -> None:
    """It is as good as none, and stays where the server has said it."""
    body = body.replace(b"MS", b"%d" % milliseconds)
    response = normalize(body, provider)
    assert response.text == "Hi"
    assert response.metadata.request_duration == timedelta(0)
    assert response.metadata.provenance["metadata.request_duration"] is Provenance.ABSENT
    assert response.metadata.extensions[where[0]][where[1]] == milliseconds
    stream = normalize_stream([body + b"\n"], provider)
    assert [delta.content_delta for delta in stream if delta.content_delta] == ["Hi"]
    assert stream.partial.text == stream.response.text == "Hi"


@pytest.mark.parametrize(
    "path", ["", "a.", ".a", "a..b", "txet.[", "a[0", "a]", "a]b[c", "a[0]b", "a[x]", "a[-1]", "a[²]", "a[]"]
)
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="not a path: "):
        ProviderInfo(title="T", text_paths=(path,))


def test_notes_of_different_classes_do_not_meet() -> None:
    """Each class has one object an answer. A plugin's own dict is its own."""

    class Mine:
        count = 0

    class Yours(Mine):
        pass

    state = MappingState("t")
    state.own(Mine).count += 1
    assert state.own(Mine).count == 1
    assert state.own(Yours).count == 0
    assert MappingState("t").own(Mine).count == 0
    assert state.data == {}


def test_what_is_read_after_an_error_goes_where_it_belongs() -> None:
    """A caller may read on: what the bad event had said before its error has begun a segment."""
    reading = reader("vllm")
    for delta in ({"content": "a"}, {"content": "b"}):
        list(reading.read(sse(chunk(delta), done=False)))
    with pytest.raises(WireTypeError):
        list(reading.read(sse(chunk({"reasoning": "r", "tool_calls": 7}), done=False)))
    assert [d.content_delta for d in reading.read(sse(chunk({"content": "c"}), done=False))] == ["c"]
    partial = reading.partial("stopped")
    assert [(s.type.value, s.content) for s in partial.segments][:3] == [
        ("text", "ab"),
        ("reasoning", "r"),
        ("text", "c"),
    ]


def test_the_installed_providers_are_listed() -> None:
    assert [entry.name for entry in providers()] == [entry.name for entry in registry.providers()]


@pytest.mark.parametrize("empty", [b"{}", b"[]", b"{ }", b"[\n]"])
@pytest.mark.parametrize("tokens", [1, 80])
def test_what_was_sent_empty_stays_also_among_very_many_objects(empty: bytes, tokens: int) -> None:
    token = {"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": [{"token": "a", "logprob": -0.5}]}
    said = body({"content": "a" * tokens}, logprobs={"content": [token] * tokens}, pad="x" * 5000)
    said["choices"][0]["logprobs"] = said.pop("logprobs")
    data = orjson.dumps(said).replace(b'"pad":', b'"foo":' + empty + b',"pad":')
    extensions = normalize(data, "vllm").metadata.extensions
    assert extensions.thawed()["foo"] == orjson.loads(empty)


@pytest.mark.parametrize("key", ["", "a.b", "a[0]", 7, ("a",)])
def test_a_key_is_one_key(key: Any) -> None:
    with pytest.raises(ValueError, match="timestamp_key is one key, as in 'created_at', not "):
        ProviderInfo(title="T", timestamp_key=key)


def test_an_end_that_is_not_one_is_a_fault_of_the_plugin() -> None:
    """Found with the last delta, where nothing has asked for it before."""

    class Ends(Taker):
        @hookimpl
        def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
            state.ends[0] = "stop"  # type: ignore[assignment]
            return dict(event)

    with pytest.raises(
        PluginError, match="'test': it has set a value in the state that a response cannot have"
    ):
        read(Ends(), ndjson({"items": [{"text": "a"}]}))
