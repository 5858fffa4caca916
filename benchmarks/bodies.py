"""Whole answers of every size: read and looked at, written as canonical JSON, and read from that.

The floor is ``orjson.loads`` on the body. ``read`` is a call of ``normalize`` whose text, usage, finish reason, extensions,
time and id are then asked for; ``least`` is the least that any such call must do, written by hand for this very body: find
what changes, parse the text, and fill the seven objects of a response. ``nothing learnt`` is the general way, which the
first two bodies of a kind take. To write and to read again is compared with ``read``: they are the other half of a log.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import attrs
import orjson

from benchmarks.measure import medians, print_table
from benchmarks.payloads import body_of, logprobs_body
from crosswalk import ChatResponse, from_json, normalize, registry, to_json
from crosswalk.mapping import Reader, ReaderOptions
from crosswalk.mapping.reader import drain
from crosswalk.types import ChatMessage, RawEvents, ResponseMetadata, Segment, UsageInfo
from crosswalk.types._value import mutable_twin
from crosswalk.types.json import FrozenObject

SIZES = (400, 2_000, 10_000, 100_000)
PROVIDERS = {"vllm": 5.0, "openai": 5.0, "anthropic": 5.0, "ollama": 8.0, "gemini": 8.0}
"""How many times the floor a body of half a kilobyte may cost; with more text it is less."""
LARGER = {10_000: 2.0, 100_000: 1.3}
STORED = 1.0
"""How many times *read* writing and reading again may each cost."""


def looked_at(response: ChatResponse) -> object:
    """What somebody asks of a response."""
    metadata = response.metadata
    return (
        response.text,
        response.usage,
        response.finish_reason,
        metadata.extensions,
        response.created,
        response.id,
    )


def in_the_general_way(body: bytes, provider: str) -> Callable[[], object]:
    """A function that reads *body* where nothing was learnt."""
    mapper = attrs.evolve(registry.mapper(provider), is_plain=False)

    def read() -> object:
        reader = Reader(mapper, ReaderOptions())
        drain(reader.read_whole(body))
        drain(reader.finish())
        return looked_at(reader.response())

    return read


def least(body: bytes, provider: str) -> Callable[[], object]:
    """A function that does what cannot be left out: find the text and the rest, parse them, fill seven objects."""
    response = normalize(body, provider)
    text = orjson.dumps(response.text)
    begin, end = body.split(text, 1)
    behind = re.compile(re.escape(end[:-8]) + b"(.*)").fullmatch
    kinds = (ChatMessage, UsageInfo, ResponseMetadata, Segment, ChatResponse)
    made = {kind: (mutable_twin(kind), [field.name for field in attrs.fields(kind)]) for kind in kinds}
    names: dict[str, Any] = {"FrozenObject": FrozenObject, "RawEvents": RawEvents, "new": object.__new__}
    lines = []
    for kind, (twin, fields) in made.items():
        names |= {kind.__name__: kind, f"twin_{kind.__name__}": twin}
        lines.append(f"made = twin_{kind.__name__}()")
        lines += [f"made.{field} = text" for field in fields]
        lines.append(f"made.__class__ = {kind.__name__}")
    for kind in (FrozenObject, RawEvents):
        lines += [f"part = new({kind.__name__})", f"part.{kind.__slots__[0]} = text"]
    exec("def fill(text):\n" + "".join(f"    {line}\n" for line in [*lines, "return made"]), names)
    fill, start, tail = names["fill"], len(begin), end[:24]

    def read() -> object:
        assert body.startswith(begin)
        at = body.rfind(tail)
        assert behind(body, at) is not None
        return fill(orjson.loads(body[start:at]))

    return read


def main(rounds: int) -> list[str]:
    """Print the tables of bodies; give those that cost more than they may."""
    rows, stored, above = [], [], []
    for provider, small in PROVIDERS.items():
        for size in SIZES:
            body = body_of(provider, size)
            found = measured(body, provider, rounds)
            bar = small if size < 1_000 else LARGER.get(size)
            ratio = found["read"] / found["floor"]
            name = f"{provider}, {len(body):,} bytes"
            if bar is not None and ratio > bar:
                above.append(f"{name} ({ratio:.1f}, {bar:g})")
            cells = [f"{found[way] / found['floor']:.1f}" for way in ("least", "read", "nothing learnt")]
            rows.append((name, f"{found['floor'] * 1e6:.2f}", *cells, "" if bar is None else f"{bar:g}"))
            again = {way: found[way] / found["read"] for way in ("to_json", "from_json")}
            above += [
                f"{name}, {way} ({ratio:.1f}, {STORED:g})" for way, ratio in again.items() if ratio > STORED
            ]
            stored.append((name, *(f"{ratio:.1f}" for ratio in again.values())))
    print_table(
        "bodies, times orjson.loads", ("", "floor us", "least", "read", "nothing learnt", "read may be"), rows
    )
    print_table("canonical JSON, times reading the same body", ("", "to_json", "from_json"), stored)
    body = logprobs_body(500)
    read = in_the_general_way(body, "vllm")
    found = medians(
        {"floor": lambda: [orjson.loads(body) for _ in range(9)], "ours": lambda: [read() for _ in range(9)]},
        rounds,
    )
    print(
        f"\n500 log probabilities, {len(body):,} bytes, nothing learnt: {found['ours'] / found['floor']:.1f} x floor"
    )
    return above


def ways_of(body: bytes, provider: str) -> dict[str, Callable[[], object]]:
    """What can be done with *body*, each as often as :func:`repeats` says."""
    for _ in range(2):
        normalize(body, provider)
    response = normalize(body, provider)
    written = to_json(response)
    ways: dict[str, Callable[[], object]] = {
        "floor": lambda: orjson.loads(body),
        "least": least(body, provider),
        "read": lambda: looked_at(normalize(body, provider)),
        "nothing learnt": in_the_general_way(body, provider),
        "to_json": lambda: to_json(response),
        "from_json": lambda: from_json(written, ChatResponse),
    }
    times = repeats(body)
    return {name: (lambda run=run: [run() for _ in range(times)] and None) for name, run in ways.items()}


def repeats(body: bytes) -> int:
    """How often each is done in a round: the process clock is too coarse for what is short."""
    return max(1, 200_000 // (len(body) + 1_000))


def measured(body: bytes, provider: str, rounds: int) -> dict[str, float]:
    """CPU seconds of each way with *body*."""
    found = medians(ways_of(body, provider), rounds)
    return {name: spent / repeats(body) for name, spent in found.items()}
