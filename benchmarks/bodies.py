"""Whole answers of every size: read and looked at, written as canonical JSON, and read from that.

The floor is ``orjson.loads`` on the body. ``read`` is a call of ``normalize`` whose text, usage, finish reason, extensions,
time and id are then asked for; ``least`` is the least that any such call must do, written by hand for this very body: find
what changes, parse it, make an id and a time where needed, and fill the objects of a response. ``nothing learnt`` is the
general way, which the first two bodies of a kind take. To write and to read again is compared with ``read``: they are the
other half of a log. What is learnt is learnt from others of the same log: see :func:`another`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Final

import attrs
import orjson

from benchmarks.least import maker
from benchmarks.measure import Above, medians, print_table
from benchmarks.payloads import body_of, logprobs_body
from crosswalk import ChatResponse, from_json, normalize, registry, to_json, to_jsonable
from crosswalk.mapping import Reader, ReaderOptions
from crosswalk.mapping.reader import drain
from crosswalk.types.response import new_id

SIZES = (400, 2_000, 10_000, 100_000)
PROVIDERS = {"vllm": 5.0, "openai": 5.0, "anthropic": 5.0, "ollama": 8.0, "gemini": 8.0}
"""How many times the floor a body of half a kilobyte may cost; with more text it is less."""
LARGER = {10_000: 2.0, 100_000: 1.3}
STORED = 1.0
"""How many times *read* writing and reading again may each cost."""
IN_THE_WAY = {
    "read": "of the values the text, the sum of the counts, the time and the id are checked, and which shape fits has to be "
    "found: the answer is to be that of the general way, to the byte",
    "to_json": "least writes what is plain already; the objects are made so first, key by key; and to write a long text "
    "takes longer than to parse it",
    "from_json": "least knows where everything stands and what it is; a stored file may have been changed, so what is "
    "always the same is compared, and the rest has to be what its field may hold; and a long text stands there twice",
}


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


def least(body: bytes, response: ChatResponse) -> Callable[[], object]:
    """A function that does what cannot be left out: find the text and the rest, parse them, fill a response."""
    before, behind = body.split(orjson.dumps(response.text), 1)
    start, end, near = _around(before).match, _around(behind).fullmatch, behind[:24]
    make, is_synthetic = maker(response, response.text), "id" in response.metadata.provenance
    created = orjson.loads(body).get("created_at")

    def read() -> object:
        first = start(body)
        assert first is not None
        at = body.rfind(near, first.end())
        last = end(body, at)
        assert last is not None
        orjson.loads(b"[%b]" % b",".join(first.groups() + last.groups()))
        if is_synthetic:
            new_id()
        if created is not None:
            datetime.fromisoformat(created)
        return looked_at(make(orjson.loads(body[first.end() : at])))

    return read


_CHANGING = re.compile(
    rb'(?<="id":)"[^"]*"|(?<="responseId":)"[^"]*"|(?<="created_at":)"[^"]*"|(?<=:)[0-9]+(?=[,}])'
)


_OTHERS: Final = 8
_VALUES: Final = re.compile(
    rb'(?<="id":)"[^"]*"|(?<="responseId":)"[^"]*"|(?<="created_at":)"[^"]*"|(?<=:)-?[0-9.]+(?=[,}])|\bdog\b'
)


def another(body: bytes, number: int) -> bytes:
    """A body of the same log as *body*: its text, id and time are others, and each number is so many times as large."""

    def other(found: re.Match[bytes]) -> bytes:
        value = found[0]
        if value.startswith(b'"20'):
            return b'"2%d%b' % (number, value[3:])
        if value.startswith(b'"'):
            return b'"%d%b' % (number, value[1:])
        return b"dog %d" % number if value == b"dog" else orjson.dumps(orjson.loads(value) * number)

    return _VALUES.sub(other, body)


def _around(part: bytes) -> re.Pattern[bytes]:
    """What matches *part* of a body with other numbers, another id and another time."""
    kinds = [b'("[^"]*")' if found.startswith(b'"') else b"([0-9]+)" for found in _CHANGING.findall(part)]
    literals = [re.escape(literal) for literal in _CHANGING.split(part)]
    return re.compile(b"".join(one for pair in zip(literals, [*kinds, b""], strict=True) for one in pair))


def least_written(response: ChatResponse) -> Callable[[], object]:
    """A function that writes what is plain already; a long text, which stands there twice, once."""
    plain = to_jsonable(response)
    text = response.text

    def write() -> object:
        written = orjson.Fragment(orjson.dumps(text))
        plain["message"]["content"] = plain["segments"][0]["content"] = written
        return orjson.dumps(plain)

    return write


def least_read_again(written: bytes, response: ChatResponse) -> Callable[[], object]:
    """A function that parses canonical JSON, a text that stands there twice once, and fills the objects of the response."""
    make = maker(response, response.text)
    before, between, behind = written.split(orjson.dumps(response.text))
    first = slice(len(before), len(before) + len(orjson.dumps(response.text)))
    second, tail = first.stop + len(between), slice(len(written) - len(behind), None)

    def read() -> object:
        text = written[first]
        if not written.startswith(text, second):
            raise ValueError
        orjson.loads(b'%b""%b""%b' % (written[: first.start], written[first.stop : second], written[tail]))
        return make(orjson.loads(text))

    return read


def main(rounds: int) -> list[Above]:
    """Print the tables of bodies; give those that cost more than they may."""
    rows, stored, above = [], [], []
    for provider, small in PROVIDERS.items():
        for size in SIZES:
            body = body_of(provider, size)
            found = measured(body, provider, rounds)
            times = {way: spent / found["floor"] for way, spent in found.items()}
            bar = small if size < 1_000 else LARGER.get(size)
            name = f"{provider}, {len(body):,} bytes"
            if bar is not None and times["read"] > bar:
                above.append(Above(name, times["read"], bar, times["least"], IN_THE_WAY["read"]))
            cells = [f"{times[way]:.1f}" for way in ("least", "read", "nothing learnt")]
            rows.append((name, f"{found['floor'] * 1e6:.2f}", *cells, "" if bar is None else f"{bar:g}"))
            again = {way: spent / found["read"] for way, spent in found.items()}
            for way in ("to_json", "from_json"):
                if again[way] > STORED:
                    row = f"{name}, {way}"
                    above.append(Above(row, again[way], STORED, again[f"least {way}"], IN_THE_WAY[way]))
            ways = ("least to_json", "to_json", "least from_json", "from_json")
            stored.append((name, *(f"{again[way]:.1f}" for way in ways)))
    header = ("", "floor us", "least", "read", "nothing learnt", "read may be")
    print_table("bodies, times orjson.loads", header, rows)
    header = ("", "least", "to_json", "least", "from_json")
    print_table(f"canonical JSON, times reading the same body (each may be {STORED:g})", header, stored)
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
    for number in range(2, 2 + _OTHERS):
        from_json(to_json(normalize(another(body, number), provider)), ChatResponse)
    response = normalize(body, provider)
    written = to_json(response)
    ways: dict[str, Callable[[], object]] = {
        "floor": lambda: orjson.loads(body),
        "least": least(body, response),
        "read": lambda: looked_at(normalize(body, provider)),
        "nothing learnt": in_the_general_way(body, provider),
        "to_json": lambda: to_json(response),
        "from_json": lambda: from_json(written, ChatResponse),
        "least to_json": least_written(response),
        "least from_json": least_read_again(written, response),
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
