"""Whole answers of every size: read and looked at, written as canonical JSON, and read from that.

The floor is ``orjson.loads`` on the body. ``read`` is a call of ``normalize`` whose text, usage, finish reason, extensions,
time and id are then asked for; ``least`` is the least that any such call must do, written by hand for this very body: find
what changes, parse it, make an id and a time where needed, and fill the objects of a response; where it is not written
it is blank. ``nothing learnt`` is the general way, which the first two bodies of a kind take. To write and to read
again is compared with ``read``: they are the other half of a log. What is learnt is learnt from others of the same log.
In a varied log the bodies of several models, or of all kinds, come in turns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final, TypeAlias

import attrs
import orjson

from benchmarks.least import maker
from benchmarks.measure import Above, medians, print_table
from benchmarks.wire_bodies import BODIES, SMALL, TEXTS, Body
from crosswalk import ChatResponse, from_json, normalize, registry, to_json, to_jsonable
from crosswalk.mapping import Reader, ReaderOptions
from crosswalk.mapping.reader import drain
from crosswalk.plugin.registry import Registry
from crosswalk.types.response import new_id

Log: TypeAlias = Sequence[tuple[bytes, str]]
"""Bodies, each with its provider."""
_OTHERS: Final = 8
_LOG: Final = 500
ELSE: Final = 10.0
STORED = {"to_json": 5.0, "from_json": 12.0}
"""How many times ``orjson.loads`` of the same text writing and reading again may each cost."""
IN_THE_WAY = {
    "read": "of the values the text, the sum of the counts, the time and the id are checked, and which shape fits has to be "
    "found: the answer is to be that of the general way, to the byte",
    "unlearnt": "nothing is learnt of such a body, or it was forgotten for others: it takes the general path",
    "to_json": "cattrs makes a dict of each object first, key by key",
    "from_json": "cattrs gives each value to its hook, and the class checks it again",
}


def looked_at(response: ChatResponse) -> object:
    """What somebody asks of a response."""
    metadata = response.metadata
    return (
        response.text or response.tool_calls,
        response.usage,
        response.finish_reason,
        metadata.extensions,
        response.created,
        response.id,
    )


def in_the_general_way(log: Log) -> Callable[[], object]:
    """A function that reads *log* where nothing was learnt."""
    mappers = {provider: attrs.evolve(registry.mapper(provider), is_plain=False) for _, provider in log}

    def read(body: bytes, provider: str) -> object:
        reader = Reader(mappers[provider], ReaderOptions())
        drain(reader.read_whole(body))
        drain(reader.finish())
        return looked_at(reader.response())

    return lambda: [read(*one) for one in log] and None


def said_in(response: ChatResponse) -> str:
    """What *response* says: its text, or the arguments of its call."""
    return response.text or response.tool_calls[0].arguments


def least(body: bytes, response: ChatResponse) -> Callable[[], object]:
    """A function that does what cannot be left out: find the text and the rest, parse them, fill a response.

    Arguments that are an object are parsed and written, as the response has them; a body with log probabilities is parsed.
    """
    text = said_in(response)
    if response.logprobs:  # of another answer all of it is other
        remake = maker(response, text)
        return lambda: orjson.loads(body) and looked_at(remake(text))
    is_object = orjson.dumps(text) not in body
    before, behind = body.split(text.encode() if is_object else orjson.dumps(text), 1)
    start, end, near = _around(before).match, _around(behind).fullmatch, behind[:24]
    find = body.rfind if body.count(near) == 1 else body.find
    make, is_synthetic = maker(response, text), "id" in response.metadata.provenance
    created = orjson.loads(body).get("created_at")

    def read() -> object:
        first = start(body)
        assert first is not None
        at = find(near, first.end())
        last = end(body, at)
        assert last is not None
        orjson.loads(b"[%b]" % b",".join(first.groups() + last.groups()))
        if is_synthetic:
            new_id()
        if isinstance(created, str):
            datetime.fromisoformat(created)
        said = orjson.loads(body[first.end() : at])
        return looked_at(make(orjson.dumps(said).decode() if is_object else said))

    return read


_CHANGING = re.compile(
    rb'(?<="id":)"[^"]*"|(?<="responseId":)"[^"]*"|(?<="created_at":)"[^"]*"|(?<=:)[0-9]+(?=[,}])'
)


def _around(part: bytes) -> re.Pattern[bytes]:
    """What matches *part* of a body with other numbers, another id and another time."""
    kinds = [b'("[^"]*")' if found.startswith(b'"') else b"([0-9]+)" for found in _CHANGING.findall(part)]
    literals = [re.escape(literal) for literal in _CHANGING.split(part)]
    return re.compile(b"".join(one for pair in zip(literals, [*kinds, b""], strict=True) for one in pair))


def least_written(response: ChatResponse) -> Callable[[], object]:
    """A function that writes what is plain already; a long text, which stands there twice, once."""
    plain = to_jsonable(response)
    text = said_in(response)
    holder, key = plain["message"], "content"
    if not response.text:
        holder, key = plain["message"]["tool_calls"][0], "arguments"

    def write() -> object:
        written = orjson.Fragment(orjson.dumps(text))
        holder[key] = plain["segments"][0]["content"] = written
        return orjson.dumps(plain)

    return write


def least_read_again(written: bytes, response: ChatResponse) -> Callable[[], object]:
    """A function that parses canonical JSON, a text that stands there twice once, and fills the objects of the response."""
    text = said_in(response)
    make = maker(response, text)
    before, between, behind = written.split(orjson.dumps(text))
    first = slice(len(before), len(before) + len(orjson.dumps(text)))
    second, tail = first.stop + len(between), slice(len(written) - len(behind), None)

    def read() -> object:
        text = written[first]
        if not written.startswith(text, second):
            raise ValueError
        orjson.loads(b'%b""%b""%b' % (written[: first.start], written[first.stop : second], written[tail]))
        return make(orjson.loads(text))

    return read


def leasts(body: bytes, written: bytes, response: ChatResponse) -> dict[str, Callable[[], object]]:
    """The least that can be done with *body* and its canonical JSON, where it says one thing, which stands there once.

    The text of a second choice is left as it is.
    """
    text = orjson.dumps(said_in(response))
    is_once = (body.count(text) or body.count(said_in(response).encode())) == 1
    if response.logprobs:
        remake = maker(response, said_in(response))
        return {
            "least": least(body, response),
            "least from_json": lambda: orjson.loads(written) and remake(response.text or ""),
        }
    if not is_once or written.count(text) != 2:
        return {}
    return {
        "least": least(body, response),
        "least to_json": least_written(response),
        "least from_json": least_read_again(written, response),
    }


def ways_with(log: Log, known: Registry) -> dict[str, Callable[[], object]]:
    """What can be done with each body of *log*, where *known* has learnt."""
    responses = [normalize(*one, registry=known) for one in log]
    written = [to_json(response) for response in responses]

    def read_again() -> object:
        return [from_json(one, ChatResponse) for one in written] and None

    return {
        "floor": lambda: [orjson.loads(body) for body, _ in log] and None,
        "read": lambda: [looked_at(normalize(*one, registry=known)) for one in log] and None,
        "nothing learnt": in_the_general_way(log),
        "to_json": lambda: [to_json(response) for response in responses] and None,
        "from_json": read_again,
        "floor of the stored": lambda: [orjson.loads(one) for one in written] and None,
    }


def leasts_of(log: Log) -> dict[str, Callable[[], object]]:
    """The least that can be done with all of *log*, as far as that of each of its bodies is known."""
    responses = [normalize(*one) for one in log]
    each = [leasts(body, to_json(one), one) for (body, _), one in zip(log, responses, strict=True)]
    ways = set.intersection(*({*known} for known in each))
    return {way: lambda way=way: [known[way]() for known in each] and None for way in sorted(ways)}


def log_of(body: Body, size: int) -> Log:
    """So many answers that the process clock is not too coarse for them, no two alike."""
    count = max(4, 200_000 // (size + 1_000))
    return [(body.written(size, number), body.provider) for number in range(count)]


def ways_of(body: Body, size: int) -> dict[str, Callable[[], object]]:
    """What can be done with each of a log of *body*."""
    log = log_of(body, size)
    for number in range(len(log), len(log) + _OTHERS):
        from_json(to_json(normalize(body.written(size, number), body.provider)), ChatResponse)
    data, _ = log[0]
    response = normalize(data, body.provider)
    return ways_with(log, registry) | {
        name: (lambda run=run: [run() for _ in log] and None)
        for name, run in leasts(data, to_json(response), response).items()
    }


def varied_logs() -> dict[str, tuple[float, Log]]:
    """Logs whose small bodies differ in more than an answer: how many times the floor they may cost, and they."""
    vllm, kinds = TEXTS["vllm"], list(BODIES.values())
    logs: dict[str, tuple[float, Log]] = {}
    for count in (1, 8, 70):
        bodies = [vllm.written(SMALL, number, model=f"model-{number % count}") for number in range(_LOG)]
        name = f"a log of vLLM: {count} models in turn"
        logs[name] = vllm.most, [(body, "vllm") for body in bodies]
    mixed = [
        (kind.written(kind.sizes[0], number), kind.provider) for number in range(_LOG // 20) for kind in kinds
    ]
    return logs | {"a log of all the kinds above in turn": (ELSE, mixed)}


def main(rounds: int) -> list[Above]:
    """Print the tables of bodies; give those that cost more than they may."""
    rows, stored, above = [], [], []

    def add(name: str, bar: float, count: int, ways: dict[str, Callable[[], object]]) -> None:
        found = medians(ways, rounds)
        times = {way: spent / found["floor"] for way, spent in found.items()}
        again = {way: spent / found["floor of the stored"] for way, spent in found.items()}
        if times["read"] > bar:
            is_unlearnt = times["read"] > times["nothing learnt"] / 2
            why = IN_THE_WAY["unlearnt" if is_unlearnt else "read"]
            above.append(Above(name, times["read"], bar, times.get("least"), why))
        for way in ("to_json", "from_json"):
            if again[way] > STORED[way]:
                row = f"{name}, {way}"
                above.append(Above(row, again[way], STORED[way], again.get(f"least {way}"), IN_THE_WAY[way]))
        cells = _cells(times, "least", "read", "nothing learnt")
        rows.append((name, f"{found['floor'] / count * 1e6:.2f}", *cells, f"{bar:g}"))
        ways_stored = (
            "least to_json",
            "to_json",
            "least from_json",
            "from_json",
        )
        stored.append((name, *_cells(again, *ways_stored)))

    for name, body in BODIES.items():
        for size in body.sizes:
            length = len(body.written(size))
            add(f"{name}, {length:,} bytes", body.bar(size), len(log_of(body, size)), ways_of(body, size))
    for name, (bar, log) in varied_logs().items():
        add(name, bar, len(log), ways_with(log, Registry()) | leasts_of(log))
    header = ("", "floor us", "least", "read", "nothing learnt", "read may be")
    print_table("bodies, times orjson.loads", header, rows)
    header = ("", "least", "to_json", "least", "from_json")
    print_table("canonical JSON, times orjson.loads of the same text", header, stored)
    return above


def _cells(times: Mapping[str, float], *ways: str) -> list[str]:
    return [f"{times[way]:.1f}" if way in times else "" for way in ways]
