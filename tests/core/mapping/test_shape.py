"""Reading a body by its likeness to one before is the same as reading it in the general way."""

from __future__ import annotations

import json
import logging
import math
import random
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from datetime import UTC, datetime, timedelta, timezone
from itertools import count
from pathlib import Path
from typing import Any

import attrs
import orjson
import pytest

from crosswalk import (
    CanonicalJSONError,
    ChatResponse,
    CrosswalkError,
    Limits,
    LineTooLongError,
    Registry,
    ResponseDelta,
    normalize,
    to_json,
)
from crosswalk.learning import OddError
from crosswalk.mapping.learnt.shape import Shape, learn
from crosswalk.mapping.reader import Reader, ReaderOptions, drain
from crosswalk.plugin.mapper import Mapper
from crosswalk.plugin.registry import registry
from crosswalk.plugins import (
    MappingState,
    ProviderInfo,
    UsageInfo,
    hookimpl,
    take_count,
    take_same,
    take_string,
)
from crosswalk.shapes import Shapes
from crosswalk.testing import load_captures
from crosswalk.types.json import FrozenObject, thaw
from crosswalk.types.segment import Segment, SegmentType
from wires import CLOCK, body, line, registry_of, sse, usage

CAPTURES = Path(__file__).parents[2] / "captures"


def gemini(text: str, **more: Any) -> dict[str, Any]:
    counts = {"promptTokenCount": 3, "candidatesTokenCount": 4, "totalTokenCount": 7}
    said = {
        "content": {"parts": [{"text": text}], "role": "model"},
        "finishReason": "STOP",
        "avgLogprobs": -0.25,
    }
    return {"candidates": [said], "usageMetadata": counts, "modelVersion": "m", "responseId": "r1", **more}


def anthropic(*blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    counts = {"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": 5}
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": list(blocks),
        "stop_reason": "end_turn", "stop_sequence": None, "usage": counts, **more,
    }  # fmt: skip


def ollama(text: str, **more: Any) -> dict[str, Any]:
    counts = {"total_duration": 5764978, "prompt_eval_count": 3, "eval_count": 4, "eval_duration": 99}
    return line(text, done="stop", **counts, **more)


def tool(name: str = "save", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{name}", "name": name, "input": arguments}


def function(**arguments: Any) -> dict[str, Any]:
    return {"function": {"name": "save", "arguments": arguments}}


def choice(text: str, index: int) -> dict[str, Any]:
    return {"index": index, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}


def converse(name: str, **arguments: Any) -> dict[str, Any]:
    content = [{"toolUse": {"toolUseId": name, "name": "save", "input": arguments}}]
    counts = {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7, "cacheReadInputTokens": 0}
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": "tool_use",
        "usage": {**counts, "cacheReadInputTokenCount": 0},
        "metrics": {"latencyMs": 5},
    }


def part(**arguments: Any) -> dict[str, Any]:
    parts = [{"functionCall": {"name": "save", "args": arguments}}]
    return gemini("", candidates=[{"content": {"parts": parts, "role": "model"}, "finishReason": "STOP"}])


def cached(prompt: int, hit: int, completion: int) -> dict[str, int]:
    return {
        "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion,
        "prompt_cache_hit_tokens": hit, "prompt_cache_miss_tokens": prompt - hit,
    }  # fmt: skip


def responded(text: str, prompt: int) -> dict[str, Any]:
    message = {"type": "message", "id": f"msg_{text}", "role": "assistant", "status": "completed"}
    content = [{"type": "output_text", "text": text, "annotations": []}]
    counts = {"input_tokens": prompt, "output_tokens": 4, "total_tokens": prompt + 4}
    return {
        "id": f"resp_{text}", "object": "response", "created_at": 5, "status": "completed", "model": "m",
        "output": [{**message, "content": content}], "usage": counts,
    }  # fmt: skip


def made() -> str:
    return "made"


def call(arguments: str) -> dict[str, Any]:
    return {"id": "call_1", "type": "function", "function": {"name": "save", "arguments": arguments}}


def said_by(mapper: Mapper, data: bytes, **options: Any) -> tuple[bytes, tuple[bytes, ...]] | tuple[str, str]:
    """What the general way makes of *data*: the response with its bytes, or the error."""
    reader = Reader(attrs.evolve(mapper, is_plain=False), ReaderOptions(**options))
    try:
        drain(reader.read_whole(data))
        drain(reader.finish())
        return told(reader.response())
    except CrosswalkError as error:
        return type(error).__name__, str(error)


def told(response: ChatResponse) -> tuple[bytes, tuple[bytes, ...]]:
    return to_json(response, include_raw=True), response.raw_events.frames


def shape_of(mapper: Mapper, data: bytes) -> Shape | None:
    def read(body: bytes, id_factory: Callable[[], str], clock: Callable[[], datetime]) -> ChatResponse:
        reader = Reader(mapper, ReaderOptions(id_factory=id_factory, clock=clock))
        drain(reader.read_whole(body))
        drain(reader.finish())
        return reader.response()

    return learn(data, mapper.info.body_leaves, read)


@pytest.fixture
def general(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The bodies that were read in the general way."""
    seen: list[bytes] = []
    read_whole = Reader.read_whole

    def read(self: Reader, answer: bytes) -> Iterator[ResponseDelta]:
        seen.append(answer)
        return read_whole(self, answer)

    monkeypatch.setattr(Reader, "read_whole", read)
    return seen


ALIKE = {
    "ollama": (
        "ollama",
        ollama("a \n"),
        ollama('"b" 🦙 \\', created_at="2026-02-01T00:00:00.123456789+01:00"),
    ),
    "ollama, thinking": (
        "ollama",
        ollama("a", message={"content": "a", "thinking": "Hm."}),
        ollama("b", message={"content": "b", "thinking": "So?"}),
    ),
    "ollama, long": ("ollama", ollama("a \n"), ollama('b "🦙"\n' * 5000)),
    "vllm": (
        "vllm",
        body({"content": "a"}, usage=usage(3, 4)),
        body({"content": "b"}, usage=usage(0, 11), created=2),
    ),
    "openai, a call": (
        "openai",
        body({"content": None, "tool_calls": [call('{"a":1}')]}, "tool_calls", usage=usage(3, 4)),
        body({"content": None, "tool_calls": [call("no JSON")]}, "tool_calls", usage=usage(3, 5)),
    ),
    "openai, details": (
        "openai",
        body({"content": "a"}, usage=usage(9, 4, prompt_tokens_details={"cached_tokens": 5})),
        body({"content": "b"}, usage=usage(9, 9, prompt_tokens_details={"cached_tokens": 0})),
    ),
    "sglang, reasoning": (
        "sglang",
        body({"content": "a", "reasoning_content": "Hm."}),
        body({"content": "b", "reasoning_content": "So?"}),
    ),
    "vllm, reasoning twice": (
        "vllm",
        body({"content": "a", "reasoning": "Hm.", "reasoning_content": "Hm."}),
        body({"content": "b", "reasoning": "So?", "reasoning_content": "So?"}),
    ),
    "llamacpp, equal numbers": (
        "llamacpp",
        body({"content": "a"}, timings={"prompt_n": 1, "prompt_ms": 1.0, "prompt_per_token_ms": 1.0}),
        body({"content": "b"}, timings={"prompt_n": 2, "prompt_ms": 1, "prompt_per_token_ms": 1.0}),
    ),
    "anthropic": (
        "anthropic",
        anthropic({"type": "text", "text": "a"}),
        anthropic({"type": "text", "text": "b"}, id="msg_2"),
    ),
    "anthropic, thinking": (
        "anthropic",
        anthropic(
            {"type": "thinking", "thinking": "Hm.", "signature": "s+/="}, {"type": "text", "text": "a"}
        ),
        anthropic(
            {"type": "thinking", "thinking": "So?", "signature": "t+/="}, {"type": "text", "text": "b"}
        ),
    ),
    "another model": ("openai", body({"content": "a"}), {**body({"content": "b"}), "model": "m2"}),
    "openai, two calls": (
        "openai",
        body({"content": None, "tool_calls": [call("1"), {**call("2"), "id": "call_2"}]}, "tool_calls"),
        body({"content": None, "tool_calls": [call("3"), {**call("{}"), "id": "call_4"}]}, "tool_calls"),
    ),
    "openai, two choices": (
        "openai",
        {**body({"content": "a"}), "choices": [choice("a", 0), choice("b", 1)]},
        {**body({"content": "a"}), "choices": [choice("c", 0), choice("d", 1)]},
    ),
    "vllm, no time": ("vllm", body({"content": "a"}, created=0), body({"content": "b"}, created=0)),
    "deepseek": (
        "deepseek",
        body({"content": "a"}, usage=cached(9, 5, 4)),
        body({"content": "b"}, usage=cached(20, 0, 7)),
    ),
    "a server that speaks Responses": ("vllm", responded("a", 3), responded("b", 5)),
    "anthropic, calls": (
        "anthropic",
        anthropic({"type": "text", "text": "a"}, tool(a=1), tool("b", c=[{}]), stop_reason="tool_use"),
        anthropic(
            {"type": "text", "text": "b"},
            tool("load", x={"y": ["}]}", 2**62, -0.0]}, z=""),
            tool("c", c=None),
            stop_reason="tool_use",
        ),
    ),
    "ollama, a call": (
        "ollama",
        ollama("", message={"content": "", "tool_calls": [function(a="b")]}),
        ollama("", message={"content": "", "tool_calls": [function(c={"d": 1.5}, e="}}]")]}),
    ),
    "gemini, a call": ("gemini", part(a="b"), part(c="d", e=[])),
    "bedrock, a call": ("bedrock", converse("tooluse_1", a="b"), converse("tooluse_2", c="d", e={})),
    "gemini": ("gemini", gemini("a"), gemini("b", responseId="r2")),
    "gemini, two parts": (
        "gemini",
        gemini(
            "a", candidates=[{"content": {"parts": [{"text": "a"}, {"text": "b"}]}, "finishReason": "STOP"}]
        ),
        gemini(
            "a", candidates=[{"content": {"parts": [{"text": "c"}, {"text": "d"}]}, "finishReason": "STOP"}]
        ),
    ),
}


@pytest.mark.sweep
@pytest.mark.parametrize("name", ALIKE)
@pytest.mark.parametrize("keep_raw", [True, False])
@pytest.mark.parametrize("end", [b"", b"\n", b" \r\n"])
def test_the_third_body_is_read_like_the_second(
    name: str, keep_raw: bool, end: bytes, general: list[bytes]
) -> None:
    """One of a kind costs nothing more; the second is learnt from; what is like it is read without the hooks."""
    provider, first, other = ALIKE[name]
    known = Registry()
    options = {"id_factory": made, "clock": CLOCK, "keep_raw": keep_raw}
    data = orjson.dumps(first) + end
    normalize(data, provider, registry=known, **options)
    assert general == [data]
    normalize(data, provider, registry=known, **options)
    general.clear()
    for one in (first, other, first):
        data = orjson.dumps(one) + end
        response = normalize(data, provider, registry=known, **options)
        assert not general
        assert told(response) == said_by(registry.mapper(provider), data, **options)
        assert type(response) is ChatResponse
        assert response.text == one_text(response)
        general.clear()


def one_text(response: ChatResponse) -> str:
    return "".join(segment.content for segment in response.segments if segment.type == "text")


ODD = {
    "another finish word": body({"content": "b"}, "length"),
    "one more field": body({"content": "b"}, service_tier="x"),
    "a total that is none": body({"content": "b"}, usage={**usage(3, 4), "total_tokens": 8}),
    "a count below 0": body({"content": "b"}, usage={**usage(3, 4), "prompt_tokens": -1}),
    "a count that is none": body({"content": "b"}, usage={**usage(3, 4), "completion_tokens": 4.0}),
    "a long count": body({"content": "b"}, usage=usage(10**17, 4)),
    "no time": body({"content": "b"}, created=0),
    "a time in no calendar": body({"content": "b"}, created=10**14),
    "an empty id": body({"content": "b"}, id=""),
    "an id with an escape": body({"content": "b"}, id='"'),
    "no text": body({"content": ""}),
    "null": body({"content": None}),
    "an unknown word": body({"content": "b"}, "x"),
}


@pytest.mark.parametrize("name", ODD)
def test_whatever_does_not_fit_is_read_in_the_general_way(name: str, general: list[bytes]) -> None:
    """The answer, or the error, is then that of the general way, as if nothing had been learnt."""
    known = Registry()
    alike = orjson.dumps(body({"content": "a"}, usage=usage(3, 4)))
    for _ in range(3):
        normalize(alike, "vllm", registry=known)
    assert known.mapper("vllm").memory[Shapes].read(alike, made, CLOCK, True) is not None
    data = orjson.dumps({**ODD[name], "usage": ODD[name].get("usage", usage(3, 4))})
    options = {"id_factory": made, "clock": CLOCK}
    general.clear()
    try:
        found = told(normalize(data, "vllm", registry=known, **options))
    except CrosswalkError as error:
        found = type(error).__name__, str(error)  # type: ignore[assignment]
    assert general[0] == data
    assert found == said_by(registry.mapper("vllm"), data, **options)


ODD_WORDS = {
    "a count with a 0 before it": ("vllm", b":3,", b":03,"),
    "a count of nothing but 0": ("vllm", b":3,", b":00,"),
    "a duration with a 0 before it": ("ollama", b":5764978,", b":05764978,"),
    "a time without a zone": ("ollama", b"00Z", b"00"),
    "a time before the calendar": ("ollama", b"2026-01-01T00:00:00Z", b"0001-01-01T00:00:00+10:00"),
    "a word for a time": ("ollama", b"2026-01-01T00:00:00Z", b"soon"),
}


@pytest.mark.parametrize("name", ODD_WORDS)
def test_what_only_looks_like_a_number_or_a_time_is_read_in_the_general_way(
    name: str, general: list[bytes]
) -> None:
    provider, before, after = ODD_WORDS[name]
    alike = orjson.dumps(ollama("a") if provider == "ollama" else body({"content": "a"}, usage=usage(3, 4)))
    known, data = learnt(provider, alike), alike.replace(before, after)
    assert data != alike
    options = {"id_factory": made, "clock": CLOCK}
    general.clear()
    try:
        found = told(normalize(data, provider, registry=known, **options))
    except CrosswalkError as error:
        found = type(error).__name__, str(error)  # type: ignore[assignment]
    assert general[0] == data
    assert found == said_by(registry.mapper(provider), data, **options)


def captured() -> Iterator[tuple[Mapper, bytes]]:
    """The captured bodies of providers that declare which leaves may change."""
    for folder in sorted(CAPTURES.iterdir()):
        for capture in load_captures(folder) if folder.is_dir() else ():
            mapper = registry.mapper(folder.name)
            if mapper.info.body_leaves and capture.status == 200:
                with suppress(ValueError):  # it is a stream
                    event = orjson.loads(capture.body)
                    yield mapper, json.dumps(event, separators=(",", ":")).encode()  # as servers write it


VALUES = (
    "", "x", " ", "\x00", '"', "\\", "é", "🦙", "a" * 40, '{"a": 1}', "<think>x</think>y", "stop", "assistant", "00", "1e5",
    "2026-01-01T00:00:00Z", "0001-01-01T00:00:00+10:00", '"},"', "crosswalk-mark-1-", 0, 1, 7, 10**9, 10**14, 10**15, 2**63,
    10**30, -1, 1.5, 1e300, 700_001, True, False, None, [], {}, [1], {"a": 1},
)  # fmt: skip
PIECES = ("a", '"', "\\", " ", "\n", "é", "🦙", "{", "}", ",", ":", '"}', "0", "\x7f")


def mutated(data: bytes, mapper: Mapper, chance: random.Random) -> bytes:
    """*data* with other values in some of its leaves, mostly in those that may change, or with some other bytes."""
    event = orjson.loads(data)
    leaves = [*leaves_of(event)]
    declared = [path for path in mapper.info.body_leaves if path in leaves]
    for _ in range(chance.randrange(1, 6)):
        path = chance.choice(declared if declared and chance.random() < 0.9 else leaves)
        old, how = at(event, path), chance.random()
        if how < 0.3:
            new = chance.choice(VALUES)
        elif how < 0.45:
            new = at(event, chance.choice(leaves))
        elif type(old) is int:
            new = chance.choice([old + 1, old * 2, 0, 1, chance.randrange(10**6)])
        elif type(old) is float and how < 0.9:
            new = chance.choice([old + 1, old * 3, -old, 0.0, 1e-9, 12.34567, 5, 1e13, 1e15])
        else:
            new = "".join(chance.choices(PIECES, k=chance.randrange(12)))
        at(event, path[:-1])[path[-1]] = new
    counts = event.get("usage")
    if type(counts) is dict and "total_tokens" in counts and chance.random() < 0.7:
        parts = counts.get("prompt_tokens"), counts.get("completion_tokens")
        counts["total_tokens"] = sum(part for part in parts if type(part) is int)
    data = json.dumps(event, separators=(",", ":"), ensure_ascii=chance.random() < 0.5).encode()
    if chance.random() < 0.1:
        place = chance.randrange(len(data))
        data = data[:place] + bytes([chance.randrange(256)]) + data[place + chance.randrange(3) :]
    return data


def leaves_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if type(value) is dict else enumerate(value) if type(value) is list else None
    if items is None:
        yield path
    for key, item in items or ():
        yield from leaves_of(item, (*path, key))


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


@pytest.mark.sweep
def test_ten_thousand_bodies_are_read_alike_in_both_ways() -> None:
    """Every captured body, and mutations of it: by the shape learnt from it, and in the general way."""
    chance = random.Random(11)
    shapes = []
    for mapper, data in captured():
        shape = shape_of(mapper, data)
        if shape is not None:
            shapes.append((mapper, data, shape))
    fast = 0
    for number in range(10_000):
        mapper, data, shape = shapes[number % len(shapes)]
        given = data if number < len(shapes) else mutated(data, mapper, chance)
        try:
            response = shape(given, made, CLOCK, True)
        except Exception:
            continue  # it is read in the general way
        if response is not None:
            fast += 1
            assert told(response) == said_by(mapper, given, id_factory=made, clock=CLOCK)
    assert len(shapes) > 50
    assert fast > 1_000


def alike(text: str) -> bytes:
    return orjson.dumps(ollama(text))


def learnt(provider: str = "ollama", data: bytes = alike("a")) -> Registry:
    """A registry that has learnt how to read bodies like *data*."""
    known = Registry()
    for _ in range(2):
        normalize(data, provider, registry=known)
    return known


def test_an_id_is_made_and_the_clock_is_read_as_in_the_general_way() -> None:
    """Once for each response, the id first, and not where the provider says both."""
    told: list[str] = []
    numbers = count()

    def factory() -> str:
        told.append("id")
        return f"id-{next(numbers)}"

    def clock() -> datetime:
        told.append("clock")
        return datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))

    data = orjson.dumps({**ollama("a"), "created_at": "now"})
    known = learnt(data=data)
    responses = [normalize(data, "ollama", registry=known, id_factory=factory, clock=clock) for _ in range(2)]
    assert [response.id for response in responses] == ["id-0", "id-1"]
    assert told == ["id", "clock"] * 2
    assert responses[0].created == CLOCK()
    assert responses[0].created.tzinfo is UTC
    known, data = learnt("vllm", orjson.dumps(body({"content": "a"}))), orjson.dumps(body({"content": "b"}))
    normalize(data, "vllm", registry=known, id_factory=factory, clock=clock)
    assert told == ["id", "clock"] * 2


@pytest.mark.parametrize(
    ("ids", "times"),
    [
        (("é0", "é1"), (CLOCK(),)),
        (("", "a"), (CLOCK(),)),
        ((7, "a"), (CLOCK(),)),
        (("a", "b"), (datetime(2026, 1, 1), CLOCK())),
        (("a", "b"), (datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=2))),)),
    ],
)
def test_what_is_made_oddly_is_made_once(ids: tuple[Any, ...], times: tuple[datetime, ...]) -> None:
    """The general way judges it."""
    nameless = orjson.dumps({**ollama("a"), "created_at": "soon"})

    def read(known: Registry) -> Any:
        made_ids, made_times = iter(ids), iter(times)
        options: dict[str, Any] = {"id_factory": made_ids.__next__, "clock": made_times.__next__}
        try:
            found: Any = told(normalize(nameless, "ollama", registry=known, **options))
        except (TypeError, ValueError) as error:
            found = str(error)
        return found, [*made_ids], [*made_times]

    assert read(learnt(data=nameless)) == read(Registry())


def test_a_time_alone_is_told_once() -> None:
    """The provider sends an id, and no time."""
    data = orjson.dumps({name: said for name, said in body({"content": "a"}).items() if name != "created"})

    def read(known: Registry) -> Any:
        times = iter([datetime(2026, 1, 1), CLOCK()])
        with pytest.raises(ValueError, match="without a time zone"):
            normalize(data, "vllm", registry=known, clock=times.__next__)
        return [*times]

    assert read(learnt("vllm", data)) == read(Registry())


def test_what_is_longer_than_any_line_may_be_is_refused_all_the_same() -> None:
    """Its like is known, and shorter."""
    known = learnt()
    with pytest.raises(LineTooLongError):
        normalize(alike("a" * Limits().line_bytes), "ollama", registry=known)


@pytest.mark.parametrize("made", ["", 7, "\ud800", "é"])
def test_an_odd_id_is_what_the_general_way_makes_of_it(made: Any) -> None:
    """It is refused, or kept, with the same words."""
    options: dict[str, Any] = {"id_factory": lambda: made, "clock": CLOCK}
    found = []
    for known in (learnt(), Registry()):
        try:
            found.append(told(normalize(alike("b"), "ollama", registry=known, **options)))
        except (TypeError, ValueError) as error:
            found.append((type(error).__name__, str(error)))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "options",
    [{"status": 201}, {"limits": Limits(depth=9)}, {"provider": "vllm"}, {"registry": registry_of()}],
)
def test_what_is_asked_for_otherwise_is_read_otherwise(options: dict[str, Any], general: list[bytes]) -> None:
    """Another status, other limits, another provider."""
    given = {"provider": "ollama", "registry": learnt(), **options}
    general.clear()
    with (
        pytest.raises(CrosswalkError)
        if given["provider"] == "vllm" or options.keys() == {"registry"}
        else nullcontext()
    ):
        normalize(alike("b"), **given)
    assert general == ([] if options.keys() == {"registry"} else [alike("b")])


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(sse({"model": "m"}), id="a stream"),
        pytest.param(alike("a") + b"\n" + alike("b"), id="several"),
        pytest.param(orjson.dumps([ollama("a")]), id="an array"),
        pytest.param(alike(""), id="no text"),
        pytest.param(alike("a" * 2**20), id="a large one"),
        pytest.param(orjson.dumps(ollama("a", odd=[True] * 4096)), id="one of very many values"),
    ],
)
def test_nothing_is_learnt_from(data: bytes) -> None:
    """Of these no other body could be read alike, or none any faster."""
    known = Registry()
    for _ in range(3):
        with suppress(CrosswalkError):
            normalize(data, "ollama", registry=known)
    assert known.mapper("ollama").memory[Shapes].read(data, made, CLOCK, True) is None


class Plugin:
    """Says a text and a count, and has promised more than it keeps."""

    def __init__(self, odd: Callable[[str, int], ResponseDelta | None] = lambda text, count: None) -> None:
        self.odd = odd

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(title="A plugin", body_leaves=("text", "count", "stamp"))

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
        text, number = take_string(event, "text") or "", take_count(event, "count") or 0
        state.own(dict)["count"] = number
        odd = self.odd(text, number)
        return [ResponseDelta(content_delta=text) if odd is None else odd]

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        return state.usage_info(1, state.own(dict)["count"])


EVENT = {"text": "a", "count": 1, "stamp": "s"}
BROKEN = {
    "a text that is cleaned": lambda text, _: ResponseDelta(content_delta=text.strip() or "-"),
    "a text that is quoted": lambda text, _: ResponseDelta(content_delta=f"<{text}>"),
    "a text that decides": lambda text, _: (
        ResponseDelta(reasoning_delta=text) if "</think>" in text else None
    ),
    "a text that breaks it": lambda text, _: None if len(text) < 2 else ResponseDelta(),
    "a count of its own": lambda text, number: ResponseDelta(reasoning_delta=text) if not number else None,
    "a count that is a text": lambda text, number: ResponseDelta(content_delta=f"{text}{number}"),
}


def test_a_strangers_plugin_gets_it_for_its_declaration() -> None:
    """Also for a leaf that nothing takes; not where it is overridden."""
    data, other = orjson.dumps(EVENT), orjson.dumps({"text": "b", "count": 22, "stamp": "t"})
    known = registry_of(test=Plugin())
    for _ in range(2):
        normalize(data, "test", registry=known)
    response = known.mapper("test").memory[Shapes].read(other, made, CLOCK, True)
    assert response is not None
    assert told(response) == said_by(known.mapper("test"), other, id_factory=made, clock=CLOCK)
    assert response.metadata.extensions["stamp"] == "t"
    assert response.usage.completion_tokens == 22
    known.register(
        type("Override", (), {"map_usage": hookimpl(lambda self, event: UsageInfo(8, 9))})(), "test"
    )
    for _ in range(3):
        assert normalize(data, "test", registry=known).usage == UsageInfo(8, 9)


@pytest.mark.parametrize("key", ["text", "other"])
def test_what_is_no_json_number_is_found_however_it_was_read(key: str) -> None:
    """A hook may put it beside what changes, or beside what is the same: who writes it is told."""

    def with_metadata(text: str, _: int) -> ResponseDelta:
        metadata = FrozenObject.adopt({"a": text if key == "text" else "same", "odd": math.inf})
        return ResponseDelta(segment=Segment(SegmentType.MEDIA, text, metadata))

    known = registry_of(test=Plugin(with_metadata))
    for text in ("a", "b", "c"):
        data = orjson.dumps({**EVENT, "text": text, "none": None})
        shapes = known.mapper("test").memory.get(Shapes)
        response = shapes and shapes.read(data, made, CLOCK, True)
        assert (response is not None) is (text == "c")
        with pytest.raises(
            CanonicalJSONError, match=r"JSON has no number for inf @ \$.segments\[0\].metadata.odd"
        ):
            to_json(response or normalize(data, "test", registry=known))


def test_whether_two_texts_are_the_same_may_matter() -> None:
    """Also where one of them is the same in all bodies: a call that is said in both forms is one."""
    mapper = registry.mapper("openai")
    old = {"name": "save", "arguments": "{}"}

    def said(arguments: str) -> bytes:
        message = {"content": None, "function_call": old, "tool_calls": [call(arguments)]}
        return orjson.dumps(body(message, "tool_calls"))

    shape = shape_of(mapper, said("[]"))
    assert shape is not None
    for arguments in ("[1]", "{}", "save"):
        response = shape(said(arguments), made, CLOCK, True)
        assert (response is None) is (arguments != "[1]")
    assert shape_of(mapper, said("{}")) is None


@pytest.mark.parametrize(
    ("arguments", "is_read"),
    [
        (b'{"b":1}', True),
        (b'{ "b" : [ ] , "c": {"d":"\\u00e9}]}"} }', True),
        (b'{"b":123456789012345678901234567890,"c":1.0}', True),
        (b"{}", False),
        (b'{"b":1,"b":2}', False),  # of both the answer says something
        (b'{"b":{"c":1,"c":1}}', False),
        (b'{"a":' + b"[" * 99 + b"]" * 99 + b"}", True),
        (b'{"a":' + b"[" * 100 + b"]" * 100 + b"}", False),
        (b'{"a":' + b"[" * 200 + b"]" * 200 + b"}", False),
        (b"[1]", False),
        (b'"a"', False),
        (b"null", False),
        (b'{"a":1},{"b":2}', False),
        (b'{"a":NaN}', False),
        (b'{"a":"\xff"}', False),
    ],
)
def test_arguments_may_be_any_object(arguments: bytes, is_read: bool) -> None:
    """With one thing that is odd about them they are read in the general way."""
    data = orjson.dumps(anthropic(tool(a=1), stop_reason="tool_use"))
    mapper = registry.mapper("anthropic")
    shape = shape_of(mapper, data)
    assert shape is not None
    other = data.replace(b'{"a":1}', arguments)
    try:
        response = shape(other, made, CLOCK, True)
    except ValueError:
        response = None
    assert (response is not None) is is_read
    if response is not None:
        assert told(response) == said_by(mapper, other, id_factory=made, clock=CLOCK)


def test_two_calls_may_have_the_same_arguments() -> None:
    """Or one's may be what another text says: who looks for that is not known."""
    mapper = registry.mapper("anthropic")
    blocks = {"type": "text", "text": '{"a":1}'}, tool(a=2), tool("b", a=3)
    data = orjson.dumps(anthropic(*blocks, stop_reason="tool_use"))
    shape = shape_of(mapper, data)
    assert shape is not None
    for old, new, is_read in ((b"3", b"4", True), (b"3", b"2", False), (b"2", b"1", False)):
        other = data.replace(b'"a":' + old, b'"a":' + new)
        assert (shape(other, made, CLOCK, True) is not None) is is_read


@pytest.mark.parametrize(
    ("counts", "is_read"),
    [
        (cached(30, 10, 7), True),
        (cached(0, 0, 0), True),
        ({**cached(30, 10, 7), "prompt_cache_miss_tokens": 21}, False),
        ({**cached(30, 10, 7), "total_tokens": 38}, False),
    ],
)
def test_what_was_a_sum_has_to_be_one(counts: dict[str, int], is_read: bool) -> None:
    """Otherwise the hooks keep what they have taken here."""
    mapper = registry.mapper("deepseek")
    shape = shape_of(mapper, orjson.dumps(body({"content": "a"}, usage=cached(9, 5, 4))))
    assert shape is not None
    other = orjson.dumps(body({"content": "b"}, usage=counts))
    response = shape(other, made, CLOCK, True)
    assert (response is not None) is is_read
    if response is not None:
        assert told(response) == said_by(mapper, other, id_factory=made, clock=CLOCK)


def test_of_a_sum_that_nobody_finds_nothing_is_learnt() -> None:
    """The hook compares with what stands in no leaf."""

    class Compares(Plugin):
        leaves_hold = True

        @hookimpl
        def map_usage(self, event: Any, state: MappingState) -> UsageInfo:
            take_same(event, "stamp", 22)
            return UsageInfo(3, 0)

    mapper = registry_of(test=Compares()).mapper("test")
    assert shape_of(mapper, orjson.dumps({**EVENT, "stamp": 21})) is not None
    assert shape_of(mapper, orjson.dumps({**EVENT, "stamp": 22})) is None


@pytest.mark.parametrize("name", BROKEN)
def test_a_promise_that_does_not_hold_is_seen(name: str) -> None:
    """What the probes show to be otherwise is not learnt."""
    mapper = registry_of(test=Plugin(BROKEN[name])).mapper("test")
    assert shape_of(mapper, orjson.dumps(EVENT)) is None


def test_a_body_cannot_play_a_mark() -> None:
    """What stands in a body of what the probes are made of stays what it is."""
    mapper = registry_of(test=Plugin()).mapper("test")
    for more in (
        {"x": "crosswalk-made-id"},
        {"x": "crosswalk-mark-0-"},
        {"x": 700_001},
        {"crosswalk-mark-0-": 1},
    ):
        data = orjson.dumps({**EVENT, **more})
        assert (shape_of(mapper, data) is None) is ("x" in more)
        shape = shape_of(mapper, data) or shape_of(mapper, orjson.dumps(EVENT))
        assert shape is not None
        response = shape(data, made, CLOCK, True)
        if response is not None:
            assert told(response) == said_by(mapper, data, id_factory=made, clock=CLOCK)


def test_the_log_hears_of_answers_and_not_of_probes(caplog: pytest.LogCaptureFixture) -> None:
    """One record for each response, whichever way it was read."""
    known = Registry()
    with caplog.at_level(logging.DEBUG, "crosswalk"):
        for _ in range(4):
            normalize(alike("a"), "ollama", registry=known)
        bad = registry_of(test=Plugin(BROKEN["a text that breaks it"]))
        for _ in range(2):
            normalize(orjson.dumps(EVENT), "test", registry=bad)
    assert [record.levelname for record in caplog.records] == ["DEBUG"] * 6


def test_what_was_learnt_goes_with_its_mapper() -> None:
    """A provider that is registered anew begins anew."""
    known = registry_of(test=Plugin())
    for _ in range(2):
        normalize(orjson.dumps(EVENT), "test", registry=known)
    known.register(Plugin(BROKEN["a text that is quoted"]), "test")
    assert normalize(orjson.dumps(EVENT), "test", registry=known).text == "<a>"


def test_a_text_may_be_all_that_changes() -> None:
    """Nothing else of the body has to be parsed then."""
    mapper = registry_of(test=Plugin()).mapper("test")
    shape = shape_of(mapper, b'{"text": "a", "x": null}')
    assert shape is not None
    other = b'{"text": "\\u00e9", "x": null}'
    response = shape(other, made, CLOCK, True)
    assert response is not None
    assert told(response) == said_by(mapper, other, id_factory=made, clock=CLOCK)


def bedrock(latency: int) -> dict[str, Any]:
    said = {"message": {"role": "assistant", "content": [{"text": "a"}]}}
    counts = {"inputTokens": 9, "outputTokens": 12, "totalTokens": 21}
    return {"output": said, "stopReason": "end_turn", "usage": counts, "metrics": {"latencyMs": latency}}


def cited(text: str) -> dict[str, Any]:
    said = gemini(text)
    said["candidates"][0]["citationMetadata"] = {
        "citationSources": [{"startIndex": 122, "endIndex": 182, "uri": "u"}]
    }
    return said


def mistral(id: str) -> dict[str, Any]:
    return body({"content": "", "tool_calls": [{**call("{}"), "id": id}]}, finish="tool_calls")


def called(id: str) -> dict[str, Any]:
    """Two calls, of which one is learnt."""
    calls = [{**call('{"a": 1}'), "id": id}, {**call("{}"), "id": "b"}]
    return body({"content": "", "tool_calls": calls}, finish="tool_calls")


def deepseek(prompt: int) -> dict[str, Any]:
    details = {"prompt_tokens_details": {"cached_tokens": 0}, "prompt_cache_miss_tokens": 9}
    return body({"content": "a"}, usage={**usage(prompt, 4, **details), "total_tokens": None})


@pytest.mark.parametrize(
    ("provider", "odd", "usual"),
    [
        pytest.param("ollama", ollama("a", created_at="soon"), ollama("b"), id="what is no time"),
        pytest.param("openai", body({"content": "a"}, created=10**15 - 1), body({"content": "b"}), id="no year"),
        pytest.param("bedrock", bedrock(7), bedrock(10**14), id="a duration of 3000 years"),
        pytest.param("deepseek", deepseek(5), deepseek(9), id="a count that is another one's rest"),
        pytest.param("gemini", cited("a"), cited("It is five. " * 20), id="a citation of what it does not say"),
        pytest.param("mistral", mistral("gSIMJiOkT"), mistral("null"), id="an id that is none"),
        pytest.param("openai", called("a"), called("b"), id="an id that another call has, too"),
    ],
)  # fmt: skip
def test_an_odd_answer_does_not_change_how_the_next_is_read(provider: str, odd: Any, usual: Any) -> None:
    known, options = Registry(), {"id_factory": made, "clock": CLOCK}
    for one in (odd, odd, usual, odd):
        data = orjson.dumps(one)
        try:
            found = told(normalize(data, provider, registry=known, **options))
        except CrosswalkError as error:
            found = type(error).__name__, str(error)  # type: ignore[assignment]
        assert found == said_by(registry.mapper(provider), data, **options)


def test_what_the_hooks_left_may_be_the_text_of_the_next_answer() -> None:
    """They leave the ``text`` of a choice that its ``content`` does not say, and take the one that it does."""
    known = Registry()
    for text in ("a", "a", "c", "left", "a"):
        one = body({"content": text})
        one["choices"][0]["text"] = "left"
        data = orjson.dumps(one)
        assert told(normalize(data, "vllm", registry=known)) == said_by(registry.mapper("vllm"), data)


@pytest.mark.parametrize("place", ["before", "between", "behind", "at the end"])
def test_what_is_the_same_may_be_long(place: str) -> None:
    """It is compared, byte by byte."""

    def data(text: str, more: str = "z") -> bytes:
        long, about = {"x": "(" * 3000 + more}, {"id": text, "created": 5}
        said = {"choices": [{"index": 0, "message": {"content": text}, "finish_reason": "stop"}]}
        parts = {
            "before": (long, about, said),
            "between": ({"id": text}, long, {"created": 5}, said),
            "behind": (said, long, about),
            "at the end": (about, said, long),
        }
        return orjson.dumps(dict(item for part in parts[place] for item in part.items()))

    mapper = learnt("openai", data("a")).mapper("openai")
    shapes = mapper.memory[Shapes]
    response = shapes.read(data("b"), made, CLOCK, True)
    assert response is not None
    assert told(response) == said_by(mapper, data("b"), id_factory=made, clock=CLOCK)
    assert shapes.read(data("b", "y"), made, CLOCK, True) is None


def test_what_somebody_changes_is_in_no_later_answer() -> None:
    """What is the same in all answers of a kind they share; who wants plain JSON gets his own."""
    known, data = Registry(), orjson.dumps({**body({"content": "a"}), "more": {"a": [{"b": 1}]}})
    for _ in range(4):
        extensions = normalize(data, "vllm", registry=known).metadata.extensions
        assert extensions["more"] == {"a": ({"b": 1},)}
        for plain in (thaw(extensions), extensions.thawed()):
            plain.clear()
        thaw(extensions)["more"]["a"][0]["b"] = 2


@pytest.mark.parametrize("name", ["id_factory", "clock"])
def test_who_makes_ids_or_tells_times_may_fail_once(name: str) -> None:
    """Then the answer fails, whichever way it is read; and nobody is asked once more for it."""
    data = b'{"model":"m","done":true,"done_reason":"stop","response":"%b"}'
    asked: list[list[str]] = []
    for known in (learnt(data=data % b"a"), Registry()):
        calls: list[str] = []
        asked.append(calls)

        def make(kind: str, value: Any, calls: list[str] = calls) -> Any:
            calls.append(kind)
            if kind == name:
                raise OSError(kind)
            return value

        given: dict[str, Any] = {
            "id_factory": lambda make=make: make("id_factory", "i"), "clock": lambda make=make: make("clock", CLOCK())
        }  # fmt: skip
        with pytest.raises(OSError, match=name):
            normalize(data % b"other", "ollama", registry=known, **given)
    assert asked[0] == asked[1]


def said_of(message: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A body of OpenAI's with a text in each that differs from all others."""
    return body(message, "stop", usage=usage(2, 3)) | more


def tool_called(arguments: Any, **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "f", "arguments": arguments}, **more}


DETAILS = [{"type": "reasoning.text", "text": text} for text in ("AB", "CD")]
OLD_CALL = {"name": "f", "arguments": {"a": 1}}
GROQ = {"usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}}
RELATED: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "an id that would have been made up": (
        "openai",
        [
            said_of({"tool_calls": [tool_called("{}"), tool_called('{"a":1}', id=id)]})
            for id in ("t1", "t2", "t3", "call_0")
        ],
    ),
    "an object that stands elsewhere": (
        "openai",
        [
            said_of({"function_call": OLD_CALL, "tool_calls": [tool_called({name: 1}, id=f"t{name}")]})
            for name in ("x", "y", "z", "a")
        ],
    ),
    "a count that stands elsewhere": (
        "groq",
        [said_of({"content": f"t{n}"}, usage=usage(n, 3), x_groq=GROQ) for n in (20, 21, 22, 7)],
    ),
    "a sum that is too large for a count": (
        "openai",
        [
            said_of({"content": f"t{n}"}, usage={**usage(n, 1), "total_tokens": 10**15})
            for n in (5, 6, 7, 10**15 - 1)
        ],
    ),
    "a text that is put together of others": (
        "openai",
        [
            said_of({"content": f"t{n}", "reasoning": said, "reasoning_details": DETAILS})
            for n, said in enumerate(("x", "y", "z", "ABCD"))
        ],
    ),
}


@pytest.mark.parametrize("name", RELATED)
def test_what_a_body_says_elsewhere_may_mean_something(name: str) -> None:
    """Where a value is by chance what hooks compare it with, it is read as in the general way."""
    provider, bodies = RELATED[name]
    known = Registry()
    for each in bodies:
        response = normalize(orjson.dumps(each), provider, registry=known, id_factory=made, clock=CLOCK)
    assert told(response) == said_by(
        known.mapper(provider), orjson.dumps(bodies[-1]), id_factory=made, clock=CLOCK
    )


def test_a_fixed_text_may_be_put_together_of_others() -> None:
    """As the Responses API says all texts once more, if they are that."""

    def answer(*texts: str) -> bytes:
        items = [
            {
                "type": "message",
                "id": f"m{n}",
                "role": "assistant",
                "content": [{"type": "output_text", "text": text}],
            }
            for n, text in enumerate(texts)
        ]
        about = {"id": "r", "object": "response", "created_at": 9, "status": "completed", "model": "m"}
        return orjson.dumps(
            {**about, "output": items, "output_text": "hello world", "usage": {"input_tokens": 1}}
        )

    known = Registry()
    for texts in (("a", "b"), ("c", "d"), ("e", "f"), ("hello ", "world")):
        response = normalize(answer(*texts), "openai_responses", registry=known, id_factory=made, clock=CLOCK)
    mapper = known.mapper("openai_responses")
    assert told(response) == said_by(mapper, answer("hello ", "world"), id_factory=made, clock=CLOCK)


@pytest.mark.parametrize("behind", [b"\n", b" ", b"\r\n"])
@pytest.mark.parametrize("inside", [b"\n", b"\r\n", b" \n"])
def test_a_line_end_inside_a_body_that_has_one_behind(behind: bytes, inside: bytes) -> None:
    known = learnt(data=alike("a") + behind)
    data = alike("b").replace(b'"content":', b'"content":' + inside) + behind
    response = normalize(data, "ollama", registry=known, id_factory=made, clock=CLOCK)
    assert told(response) == said_by(known.mapper("ollama"), data, id_factory=made, clock=CLOCK)


def test_nothing_is_learnt_from_a_body_with_a_key_twice() -> None:
    """What its arguments are compared with is nobody's promise."""
    data = orjson.dumps(said_of({"content": "a"})).replace(b'"choices"', b'"z":{"a":1,"a":2},"choices"')
    assert shape_of(Registry().mapper("vllm"), data) is None


@pytest.mark.parametrize("how", ["block", "override"])
def test_what_another_provider_is_asked_for_is_learnt_with_it(how: str) -> None:
    """vLLM answers in the dialect of Responses too, which somebody may block, or override, at any time."""
    about = {"id": "r", "object": "response", "created_at": 9, "status": "completed", "model": "m"}
    text = {
        "type": "message",
        "id": "m",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "a"}],
    }
    data = orjson.dumps(
        {**about, "output": [text], "usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}}
    )
    known = Registry()
    for _ in range(3):
        assert normalize(data, "vllm", registry=known).usage.total_tokens == 3

    class Counts:
        @hookimpl
        def map_usage(self, event: Any, state: MappingState) -> UsageInfo:
            return UsageInfo(7, 0)

    if how == "block":
        known.block("openai_responses")
        with pytest.raises(CrosswalkError):
            normalize(data, "vllm", registry=known)
    else:
        known.register(Counts(), "openai_responses")
        assert normalize(data, "vllm", registry=known).usage.total_tokens == 7


def test_what_was_made_in_vain_is_made_again_and_then_others() -> None:
    """Of a body that only the general way can judge: here since its time is in no time zone."""
    shape = shape_of(
        Registry().mapper("ollama"), b'{"model":"m","done":true,"done_reason":"stop","response":"a"}'
    )
    assert shape is not None
    ids, data = map(str, count()), b'{"model":"m","done":true,"done_reason":"stop","response":"b"}'
    with pytest.raises(OddError) as odd:
        shape(data, ids.__next__, lambda: CLOCK().replace(tzinfo=None), True)
    assert [odd.value.id_factory() for _ in range(3)] == ["0", "1", "2"]
    assert odd.value.clock().tzinfo is None
    assert odd.value.clock() == odd.value.clock()
