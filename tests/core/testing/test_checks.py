"""The kit finds what it is there to find: each way of breaking a promise is seen, and an honest plugin is let pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from crosswalk import (
    FinishReason,
    Registry,
    ResponseDelta,
    ToolCallDelta,
    UnknownFinishReasonError,
    UsageInfo,
    get_string,
    hookimpl,
    residue,
    taken_if,
)
from crosswalk.mapping import TAKEN
from crosswalk.plugins import MappingState, ProviderInfo
from crosswalk.testing import Capture, Tally, check_capture, check_pair, fixed_clock, normalized

CONSUMED = {
    "id": taken_if(lambda value, _, state: value == state.response_id),
    "model": taken_if(lambda value, _, state: value == state.model),
    "text": TAKEN,
    "end": TAKEN,
}
STREAM = [
    {"id": "r1", "model": "m", "text": "Hel", "extra": {"seed": 7, "none": None}},
    {"text": "lo", "extra": {"seed": 7, "ok": True}},
    {"text": " you", "extra": {"seed": 8}},
    {"text": "", "end": "stop"},
]


class Honest:
    """A small provider that keeps every promise; each dishonest one below breaks one of them."""

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
        state.identify(id=get_string(event, "id"), model=get_string(event, "model"))
        text, end = get_string(event, "text") or None, get_string(event, "end")
        if text is None and end is None:
            return []
        return [ResponseDelta(content_delta=text, raw_finish_reason=end)]

    @hookimpl
    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason:
        if reason != "stop":
            raise UnknownFinishReasonError(reason)
        return FinishReason.STOP

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        return residue(event, CONSUMED, state)


class LosesALeaf(Honest):
    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        return residue(event, {**CONSUMED, "extra": TAKEN}, state)


class TrustsTypes(Honest):
    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
        return [] if len(event["text"]) > 99 else super().map_delta(event, state)


class Ignores(Honest):
    """Reads a text that is none as no text, and says so nowhere."""

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
        return super().map_delta({**event, "text": "x" if event.get("text") else ""}, state)


class HasNoEnd:
    """Takes the end of the input for the end of the answer, although the API says when it ends."""

    map_delta = Honest.map_delta
    extensions = Honest.extensions


class Wavers(Honest):
    """Says something else each time."""

    count = 0

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
        Wavers.count += 1
        return [ResponseDelta(d.index, content_delta=f"{d.content_delta}{Wavers.count}", raw_finish_reason=d.raw_finish_reason)
                for d in super().map_delta(event, state)]  # fmt: skip


class BreaksItsWord(Honest):
    """Promises to pass text on as it is, and then does something to it."""

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(title="x", text_leaves=("text",))

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
        text = get_string(event, "text") or ""
        return super().map_delta({**event, "text": text.upper() if text == "lo" else text}, state)

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        return residue(event, {**CONSUMED, "text": TAKEN}, state)


class IsNoJSON(Honest):
    """Leaves something in the extensions that JSON reads back as something else."""

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        return {**super().extensions(event, state), "pair": (1, 2)}


class Invents(Honest):
    """Passes off an id, a model, a time, counts and the id of a call as said."""

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
        state.identify(id="made", model="up", created=fixed_clock())
        call = ResponseDelta(tool_call_delta=ToolCallDelta(0, "call-made-up", "go", "{}"))
        state.tool_call(id="call-made-up", name="go")
        return [call, *super().map_delta(event, state)] if "end" in event else super().map_delta(event, state)

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        return UsageInfo(0, 0) if "end" in event else None


def capture(events: list[Any], name: str = "case", *, stream: bool = True, status: int = 200) -> Capture:
    body = b"".join(orjson.dumps(event) + b"\n" for event in events)
    return Capture(name, Path(name), body if stream else orjson.dumps(events[0]), status, stream, "case")


def problems(plugin: Any, events: list[Any] | None = None, **options: Any) -> list[str]:
    registry = Registry(installed=[], environ={})
    registry.register(plugin, "toy")
    found = check_capture(registry.mapper("toy"), capture(events or STREAM), sample=None, **options)
    return [str(problem) for problem in found]


def test_an_honest_plugin_passes_and_what_was_tried_is_counted() -> None:
    """No problem, and the tally says how much was tried."""
    tally = Tally()
    assert problems(Honest(), tally=tally) == []
    assert (tally.captures, tally.events, tally.leaves >= 22) == (1, 4, True)
    total = Tally()
    total.add(tally)
    total.add(tally)
    assert str(total).startswith("2 captures, 8 events, ")


@pytest.mark.parametrize(
    ("plugin", "promise", "message"),
    [
        (LosesALeaf(), "P1 case, event 1, extra.seed", "lost: changing its value changes nothing"),
        (LosesALeaf(), "P1 case, event 1, extra.none", "lost: changing its null changes nothing"),
        (LosesALeaf(), "P1 case, event 1, extra.seed", "lost: changing its key changes nothing"),
        (TrustsTypes(), "P4 case, event 1, text", "with null in its place: MappingError: toy, event 1: the plugin failed with TypeError"),
        (TrustsTypes(), "P4 case, event 1, text", "changing its key: MappingError: toy, event 1: the plugin failed with KeyError"),
        (Ignores(), "P4 case, event 1, text", "with 7 in its place nothing changes"),
        (HasNoEnd(), "P4 case, cut after event 1", "looks like a complete answer, and is not"),
        (Wavers(), "P3 case, cuts 0", "it is read differently"),
        (Wavers(), "P3 case, single bytes", "byte by byte it is read differently"),
        (Wavers(), "P3 case, crlf", "framed so, it is read differently"),
        (Wavers(), "P5 case, twice", "the same bytes give different canonical JSON"),
        (IsNoJSON(), "P5 case, round trip", "canonical JSON does not read back to the same value"),
        (IsNoJSON(), "P5 case, delta 0", "does not read back to the same value"),
        (Invents(), "P8 case, id", "made up, and not marked"),
        (Invents(), "P8 case, model", "made up, and not marked"),
        (Invents(), "P8 case, created", "made up, and not marked"),
        (Invents(), "P8 case, usage.prompt_tokens", "0 was not sent, and is not marked"),
        (Invents(), "P8 case, tool call 0", "its id is made up, and not marked"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)  # fmt: skip
def test_each_broken_promise_is_found(plugin: Any, promise: str, message: str) -> None:
    """The report names promise, capture, place and what is wrong."""
    found = problems(plugin)
    assert any(p.startswith(promise) and message in p for p in found), "\n".join(found)


def test_a_promise_about_text_leaves_is_held_to() -> None:
    """What is read by its likeness to the event before must be what mapping it would have given."""
    events = [STREAM[0], {"text": "a"}, {"text": "lo"}, STREAM[-1]]
    assert problems(Honest(), events) == []
    found = problems(BreaksItsWord(), events)
    assert "P3 case, events: parsed event by event it is read differently" in found


def test_a_plugin_that_fails_on_the_capture_itself_is_reported() -> None:
    """P4 before any leaf is touched."""
    found = problems(TrustsTypes(), [{"id": "r1"}, *STREAM])
    assert any(p.startswith("P4 case, as it is: MappingError") for p in found)
    cut = problems(TrustsTypes(), [*STREAM[:2], {"text": "y", "end": "stop"}, {"end": "stop"}])
    assert any("cut after" in p or "as it is" in p for p in cut)


def test_a_sample_is_the_same_every_time() -> None:
    """A seeded sample tries fewer leaves and cuts, always the same."""
    many = [*({"text": f"w{n}", "extra": {"n": n}} for n in range(40)), STREAM[-1]]
    first, second = Tally(), Tally()
    registry = Registry(installed=[], environ={})
    registry.register(Honest(), "toy")
    for tally in (first, second):
        assert check_capture(registry.mapper("toy"), capture(many), sample=5, tally=tally) == []
    assert first == second
    assert first.leaves == 5 + 8


def test_a_single_check_can_be_run() -> None:
    """By its name."""
    assert problems(LosesALeaf(), checks=["deterministic"]) == []


def test_body_and_stream_are_compared() -> None:
    """P2: in everything but ids, times and what a cache held; two errors agree when they are of one kind."""
    registry = Registry(installed=[], environ={})
    registry.register(Honest(), "toy")
    mapper = registry.mapper("toy")
    whole = capture([{"id": "other", "model": "m", "text": "Hello you", "end": "stop"}], stream=False)
    streamed = capture(STREAM, "case_stream")
    assert check_pair(mapper, whole, streamed) == []
    differs = capture([{**STREAM[0], "text": "Bye"}, *STREAM[1:]], "case_stream")
    (problem,) = check_pair(mapper, whole, differs)
    assert str(problem) == (
        "P2 case ~ case_stream: body and stream disagree in message.content, segments[0].content"
    )
    ignored = ("message.content", "segments")
    assert check_pair(mapper, whole, differs, ignored=ignored) == []
    cut = capture(STREAM[:2], "case_stream")
    (problem,) = check_pair(mapper, whole, cut)
    assert problem.message == "ends in None and IncompleteStreamError"
    assert check_pair(mapper, cut, cut) == []
    failed = capture([{"error": "a"}], status=500)
    other = capture([{"error": "b"}], "case_stream", status=500)
    assert check_pair(mapper, failed, other) == []


def test_what_is_normalized_for_a_snapshot() -> None:
    """The response with the number of deltas, or the error with what it kept."""
    registry = Registry(installed=[], environ={})
    registry.register(Honest(), "toy")
    mapper = registry.mapper("toy")
    good = normalized(mapper, capture(STREAM))
    assert (good["response"]["message"]["content"], good["deltas"]) == ("Hello you", 4)
    cut = normalized(mapper, capture(STREAM[:1]))
    assert cut["error"] == "IncompleteStreamError"
    assert cut["partial"]["message"]["content"] == "Hel"
    assert set(normalized(mapper, Capture("empty", Path("empty"), b""))) == {"error", "message"}
