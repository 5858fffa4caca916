"""A right plugin of lines that are arrays gets no alarm: numbers of blocks, times, and options that only it has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import orjson
import pytest

from crosswalk import Registry
from crosswalk.plugins import (
    ChatRequest,
    Drops,
    FinishReason,
    HTTPRequest,
    MappingState,
    NDJSONDecoder,
    ProviderInfo,
    RequestRow,
    RequestTable,
    ResponseDelta,
    SegmentType,
    Texts,
    UnknownEventError,
    UnknownFinishReasonError,
    arguments_object,
    hookimpl,
    message_of,
    put_options,
    reasoning_of,
    thaw,
    time_of,
)
from crosswalk.testing import Capture, Problem, check_capture

TABLE = RequestTable(
    "stint",
    "Stint",
    ("/ask",),
    (
        RequestRow("knobs.heat", "temperature"),
        RequestRow("knobs.most", "max_tokens"),
        RequestRow("odds", "logprobs"),
    ),
)
TALK: list[list[Any]] = [
    ["hi", "m-1", "a1", "2026-03-04T05:06:07.123456Z"],
    ["b", 0, "Hm, ", "muse"],
    ["p", 0, "tide."],
    ["b", 1, "Low ", "say"],
    ["p", 1, "tide."],
    ["x", None, "d"],
]
KINDS = {"say": SegmentType.TEXT, "muse": SegmentType.REASONING}


class Stint:
    """Reads blocks of text and of reasoning, each piece with the number of its block."""

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(
            title="Stint",
            endpoints=("/ask",),
            framing=lambda start, limits, kind: NDJSONDecoder(limits),
        )

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        blocks = state.data.setdefault("blocks", {})
        texts = state.own(Texts)
        match event:
            case ["hi", str(model), str(id), str(time)]:
                created = time_of(time)
                state.identify(id=id, model=model, created=created)
                event[:] = [time] if created is None else []
            case ["b", int(at), str(text), str(kind)] if kind in KINDS:
                blocks[at] = KINDS[kind]
                event.clear()
                yield from texts.say(blocks[at], at, text)
            case ["p", int(at), str(text)] if at in blocks:
                event.clear()
                yield from texts.say(blocks[at], at, text)
            case ["x", None, str(word)]:
                event.clear()
                yield ResponseDelta(raw_finish_reason=word)
            case _:
                raise UnknownEventError("no line of Stint")

    @hookimpl
    def map_finish_reason(self, reason: str) -> FinishReason:
        if reason != "d":
            raise UnknownFinishReasonError(reason)
        return FinishReason.STOP

    @hookimpl
    def build_request(self, request: ChatRequest) -> HTTPRequest:
        drops = Drops(request)
        rows: list[list[Any]] = []
        for turn in request.messages:
            message = message_of(turn)
            rows += [["muse", thought]] if (thought := reasoning_of(turn)) else []
            head = [str(message.role), message.tool_call_id] if message.tool_call_id else [str(message.role)]
            rows += [[*head, message.text]] if message.text else []
            rows += [["c", call.id, call.name, arguments_object(call)] for call in message.tool_calls or ()]
        body: dict[str, Any] = {"m": request.model, "talk": rows, "flow": request.stream}
        put_options(body, request, TABLE, drops)
        if request.tools:
            body["fns"] = [[tool.name, tool.description, thaw(tool.parameters)] for tool in request.tools]
        drops.given(request, "tool_choice", "response_format", "reasoning_effort")
        return HTTPRequest("/ask", body, adaptations=drops.found(), table=TABLE)


ASKED: dict[str, Any] = {"m": "m-1", "talk": [["user", "Hi"]], "flow": True, "odds": True}


def talk(*lines: list[Any], case: str = "talk", **facts: Any) -> Capture:
    body = b"".join(orjson.dumps(line) + b"\n" for line in lines)
    return Capture(case, Path(f"{case}.ndjson"), body, stream=True, path="/ask", **facts)


MORE: list[list[Any]] = [["b", 2, "Low, ", "muse"], ["p", 2, "then."], ["b", 3, "Yes.", "say"]]
CAPTURES = [
    talk(*TALK, request=orjson.dumps(ASKED)),
    talk(*TALK[:3], TALK[-1], case="thought"),
    talk(*TALK[:-1], *MORE, TALK[-1], case="more"),
]


def found(capture: Capture, check: str, *others: Capture, plugin: Any = None) -> list[Problem]:
    registry = Registry(installed=[], environ={})
    registry.register(plugin or Stint(), "stint")
    return check_capture(
        registry.mapper("stint"),
        capture,
        sample=None,
        checks=[check],
        write=lambda data, name: data + b"\n",
        others=[capture, *others],
    )


@pytest.mark.parametrize("number", range(3))
def test_the_numbers_of_blocks_are_no_kinds(number: int) -> None:
    assert found(CAPTURES[number], "kinds are told apart", *CAPTURES) == []


def test_numbers_that_do_not_count_up_are_kinds() -> None:
    class Confuses(Stint):
        """It reads a thought, which is 7, as a text, which is 3."""

        @hookimpl
        def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
            match event:
                case ["p", 3 | 7, str(text)]:
                    event.clear()
                    yield ResponseDelta(content_delta=text)
                case ["p", *_]:
                    raise UnknownEventError("no kind of Stint")
                case _:
                    yield from super().map_delta(event, state)

    lines = [TALK[0], ["p", 7, "Hm, tide."], ["p", 3, "Low tide."], TALK[-1]]
    problems = found(talk(*lines), "kinds are told apart", plugin=Confuses())
    assert "another kind of this provider" in "".join(map(str, problems))


@pytest.mark.parametrize("digits", ["", ".123", ".123456", ".123456789"])
def test_a_time_counts_every_byte_but_digits_below_a_microsecond(digits: str) -> None:
    lines = [["hi", "m-1", "a1", f"2026-03-04T05:06:07{digits}Z"], *TALK[1:]]
    assert found(talk(*lines), "own framing is exact") == []


def test_the_byte_that_changes_nothing_is_named() -> None:
    class Loose(Stint):
        @hookimpl
        def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
            if event[:1] == ["hi"]:
                event[3] = event[3].replace("U", "T")
            yield from super().map_delta(event, state)

    (problem,) = found(CAPTURES[0], "own framing is exact", plugin=Loose())
    assert str(problem).endswith("event 1, [3]: another byte changes nothing: 'U' for 'T'")


def test_an_option_with_a_row_of_its_own_is_built() -> None:
    assert found(CAPTURES[0], "requests say all", CAPTURES[1]) == []


def test_a_problem_of_a_request_has_a_place_that_alone_can_be_excepted() -> None:
    class ForgetsTools(Stint):
        @hookimpl
        def build_request(self, request: ChatRequest) -> HTTPRequest:
            return super().build_request(attrs.evolve(request, tools=()))

    problems = found(CAPTURES[0], "requests say all", CAPTURES[1], plugin=ForgetsTools())
    assert "requests say all: request.tools" in {problem.exception for problem in problems}
