"""Arguments of several calls whose pieces take turns: read by their likeness as if parsed."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from alike import (
    VLLM,
    Stamped,
    made,
    same_as_parsed,
)
from crosswalk import (
    ResponseDelta,
    ToolCallDelta,
    registry,
)
from crosswalk.mapping.learnt.template import Template
from crosswalk.plugin.hookspecs import hookimpl
from crosswalk.plugin.take import NOTED
from crosswalk.plugins import (
    MappingState,
    ProviderInfo,
    take_string,
)
from wires import chunk, ndjson, registry_of, sse


def piece_of(place: int, text: str, choice: int = 0, **first: Any) -> bytes:
    """A piece of the arguments of the call at *place*."""
    call = {"index": place, "function": {"arguments": text, **first}}
    return sse(chunk({"tool_calls": [call]}, choice=choice), done=False)


def in_turns(order: str) -> list[bytes]:
    """The arguments of two calls, a piece for each digit in *order*; a letter is a piece of the second choice."""
    places = {"0": (0, 0), "1": (1, 0), "2": (2, 0), "a": (0, 1), "b": (1, 1)}
    named = {"name": "go"}
    opened = [piece_of(*places[one][:1], "", places[one][1], **named) for one in sorted({*order})]
    return [*opened, *(piece_of(places[one][0], f"{n} ", places[one][1]) for n, one in enumerate(order))]


@pytest.mark.parametrize(
    ("order", "most"), [("01" * 20, 6), ("0011" * 10, 6), ("012" * 12, 8), ("0" * 9 + "1" * 9, 6)]
)
def test_arguments_of_calls_in_turns_are_not_parsed(parsed: list[bytes], order: str, most: int) -> None:
    frames = [*in_turns(order), sse(chunk({}, "tool_calls"))]
    same_as_parsed(frames, VLLM)
    parsed.clear()
    made(frames, VLLM)
    assert len(parsed) <= most


def test_arguments_of_calls_in_turns_are_read_at_once(one_by_one: list[Template]) -> None:
    """Those of two calls, of a log, in whatever order; one at a time only until both are known."""
    frames = [*in_turns("01" * 6 + "0010111010" * 8 + "1"), sse(chunk({}, "tool_calls"))]
    made([b"".join(frames)], VLLM, shows=False)
    assert len(one_by_one) <= 1
    after = piece_of(1, '"again"', more=1)  # the call that was told of last goes on without its number
    bare = after.replace(b'"index":1,', b"")
    for order in ("01" * 12 + "1", "01" * 12, "10" * 12 + "0"):
        same_as_parsed([*in_turns(order), bare, *in_turns(order)[2:], frames[-1]], VLLM)


@pytest.mark.sweep
@pytest.mark.parametrize("odd", [b"1 0", b"1-0", b"1\t0", b"10 ", b" 10", b"010", b"1e1", b'"10"', b"10.0"])
@pytest.mark.parametrize("first", [0, 9, 10, 100])
def test_the_number_of_a_call_is_a_whole_value(first: int, odd: bytes) -> None:
    """What is written in the middle of it is no JSON."""
    frames = [piece_of(first + n, "", name="go") for n in range(2)]
    frames += [piece_of(first + n % 2, f"w{n} ") for n in range(12)]
    one = piece_of(10, "odd").replace(b'"index":10', b'"index":' + odd)
    frames += [one, *(piece_of(first + n % 2, "z") for n in range(4)), sse(chunk({}, "tool_calls"))]
    same_as_parsed(frames, VLLM)


def test_a_number_in_a_word_is_not_the_number_of_a_choice() -> None:
    """The hook looks at the whole word."""

    class Worded(Stamped):
        leaves_hold = True

        @hookimpl
        def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
            choice = {"c0": 0, "c1": 1}.get(event.pop("c"), 2)
            return [ResponseDelta(content_delta=take_string(event["said"], "text"), choice=choice)]

    mapper = registry_of(worded=Worded()).mapper("worded")
    words = ["c0", "c1"] * 8 + ["c 0", "c-0", "c0 "] + ["c0", "c1"] * 4
    same_as_parsed([ndjson({"c": word, "said": {"text": f"t{n}"}}) for n, word in enumerate(words)], mapper)


@pytest.mark.parametrize("order", ["0101ab01ab", "ab01ab01ab01", "0a1b0a1b0a1b", "010101aaaa0101"])
def test_calls_of_several_choices_in_turns_are_read_as_if_parsed(order: str) -> None:
    ends = [sse(chunk({}, "tool_calls", choice=n), done=False) for n in range(2)]
    same_as_parsed([*in_turns(order), *ends], VLLM)


class Caller(Stamped):
    """A provider with calls, who remembers which one a piece was of, in a way of its own."""

    leaves_hold = True

    def __init__(self, memory: Any) -> None:
        self.memory = memory

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """Promise that arguments are nothing but arguments."""
        return ProviderInfo(title="Caller", text_leaves=("say",))

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
        """A piece of a call; of the last one, where it does not say of which."""
        last = state.data.get("last", 0) if self.memory == "last" else 0
        place = event.pop("call", last)
        state.data["last"] = place if self.memory == "last" else 0
        if self.memory == "lock":
            state.data["lock"] = threading.Lock()
        name = take_string(event, "name")
        return [ResponseDelta(tool_call_delta=ToolCallDelta(place, None, name, take_string(event, "say")))]


@pytest.mark.parametrize(("memory", "parses"), [("none", 4), ("last", 23), ("lock", 23)])
def test_calls_take_turns_where_no_hook_minds_which_came_last(
    parsed: list[bytes], memory: str, parses: int
) -> None:
    mapper = registry_of(caller=Caller(memory)).mapper("caller")
    opened = [ndjson({"call": n, "name": f"go{n}", "say": "x"}) for n in range(2)]
    frames = [*opened, *(ndjson({"call": n % 2, "say": f"{n} "}) for n in range(21))]
    same_as_parsed([*frames, ndjson({"say": "."}), *frames[2:5], ndjson({"say": ","})], mapper)
    parsed.clear()
    made(frames, mapper)
    assert len(parsed) == parses


def test_calls_in_turns_leave_no_notes_behind() -> None:
    """What hooks note of an event that they are shown once more is nobody's."""
    odd = [piece.replace(b'"created":1', b'"created":"x"') for piece in in_turns("01" * 6)]
    before = len(NOTED.values)
    same_as_parsed(odd, VLLM)
    assert len(NOTED.values) == before


class Hearing(Caller):
    """A provider who remembers of the pieces of calls those that it was told of."""

    leaves_hold = True

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
        """A piece of a call, or how many characters it was told of."""
        if "ask" in event:
            return [ResponseDelta(content_delta=f"{sum(map(len, state.unseen.get(0, [])))}")]
        return super().map_delta(event, state)


@pytest.mark.parametrize("order", ["01" * 5, "01" + "0011" * 2])
def test_a_hook_is_told_of_the_pieces_of_all_calls(parsed: list[bytes], order: str) -> None:
    mapper = registry_of(hearing=Hearing("none")).mapper("hearing")
    opened = [ndjson({"call": n, "name": f"go{n}", "say": "x"}) for n in range(2)]
    pieces = [ndjson({"call": int(n), "say": "piece"}) for n in order]
    deltas = made([*opened, *pieces, ndjson({"ask": 1})], mapper)[0]
    seen = len(parsed) - len(opened) - 1
    (told,) = [delta["content_delta"] for delta in deltas if "content_delta" in delta]
    assert told == str(5 * (len(order) - seen))


def test_a_call_that_was_opened_just_now_is_not_gone_on_with() -> None:
    """The next such event may open another one, as every start of Cohere's does."""

    def start(text: str, **more: Any) -> bytes:
        call = {"type": "function", "function": {"arguments": text, **more}}
        message = {"message": {"tool_calls": call}}
        return sse({"type": "tool-call-start", "index": 0, "delta": message}, done=False)

    first = sse({"id": "c", "type": "message-start", "delta": {"message": {"role": "assistant"}}}, done=False)
    deltas = same_as_parsed([first, start("{", name="go"), *map(start, "abcdef")], registry.mapper("cohere"))[
        0
    ]
    assert [delta["tool_call_delta"]["index"] for delta in deltas[-6:]] == [*range(1, 7)]
