"""Streams of every wire form, with what changes from event to event: read live, one event a read, and from a log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs
import orjson

from benchmarks.least import Reading, parsing_reader, stream_readers, text_of
from benchmarks.measure import Above, medians, print_table
from benchmarks.payloads import chunks
from benchmarks.wires import PIECES, STREAMS, Stream
from crosswalk import registry
from crosswalk.mapping import Reader, ReaderOptions

IN_THE_WAY = {
    "live": "least knows the stream; here a template is found, its limits, numbers and counts are kept, and the state "
    "of the answer is right after each event, however the stream goes on",
    "logged": "as live; and the few events of an answer that are like no other, and its response, take as long as a quarter "
    "of these thousand events and more",
    "unlearnt": "nothing is learnt of such events: they take the general path",
    "short": "of a short answer the events that are like no other, the reader and the response are most of it; least has "
    "none of these",
    "general": "least takes the text and leaves the rest unread; the hooks of a plugin, Python too, take an event apart key "
    "by key and what they leave is kept, of a short event as of a long one",
}
GENERAL = 10.0
"""How many times ``orjson.loads`` any stream may cost where nothing is learnt from it."""


def _gaps(events: Sequence[bytes]) -> tuple[list[bytes], list[Any]]:
    """The bytes of the last of *events* around what differs from one of those before, and that: what nobody can know."""
    *before, last = map(orjson.loads, events)
    changing = [path for path, value in _leaves(last) if any(_at(other, path) != value for other in before)]
    values = [_at(last, path) for path in changing]
    for path in changing:
        _at(last, path[:-1])[path[-1]] = _MARK
    return orjson.dumps(last).split(orjson.dumps(_MARK)), values


_MARK = "\N{CHECK MARK}"


def _leaves(value: Any, *path: Any) -> Iterable[tuple[tuple[Any, ...], Any]]:
    """Each text, number and list of numbers in *value*, with the keys that lead there."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, *path, key)
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        for number, item in enumerate(value):
            yield from _leaves(item, *path, number)
    else:
        yield path, value


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def ways_to_read(stream: Stream) -> dict[str, Callable[[], object]]:
    """What can be done with the answers of *stream*, short ones as many as have the pieces of a long one."""
    answers = [stream.answer(number) for number in range(PIECES // stream.pieces)]
    datas = [data for answer in answers for data in answer.datas]
    live = [answer.frames for answer in answers]
    logged = [chunks(b"".join(frames)) for frames in live]
    learning = registry.mapper(stream.provider)
    general = attrs.evolve(learning, is_plain=False)
    least_live, least_logged, least_general = _least(stream)

    for least, reads in ((least_live, live), (least_logged, logged), (least_general, logged)):
        read_texts = 0
        for one in reads:
            texts, raw = least(one)
            read_texts += len(texts)
            assert set(raw) <= set(datas), "it has read something else"
        assert read_texts > PIECES - 20, "it has not read all"

    def read(answers: list[list[bytes]], mapper: Any, *, shows: bool = True) -> object:
        for reads in answers:
            reader = Reader(mapper, ReaderOptions(), shows=shows)
            for one in reads:
                for _ in reader.read(one):
                    pass
            for _ in reader.finish():
                pass
            response = reader.response()
        return response

    return {
        "floor": lambda: [orjson.loads(data) for data in datas],
        "least live": lambda: [least_live(reads) for reads in live] and None,
        "least logged": lambda: [least_logged(reads) for reads in logged] and None,
        "least general": lambda: [least_general(reads) for reads in logged] and None,
        "live": lambda: read(live, learning),
        "logged": lambda: read(logged, learning, shows=False),
        "each delta": lambda: read(logged, learning),
        "general": lambda: read(logged, general),
    }


def _in_the_way(stream: Stream, way: str, times: Mapping[str, float]) -> str:
    if stream.pieces < PIECES:
        return IN_THE_WAY["short"]
    is_unlearnt = way != "general" and times[way] > times["general"] / 2
    return IN_THE_WAY["unlearnt" if is_unlearnt else way]


def _least(stream: Stream) -> tuple[Reading, Reading, Reading]:
    """What does the least with *stream*: live, from a log, and from a log by parsing each event."""
    long = attrs.evolve(stream, pieces=PIECES)
    answer, middle = long.answer(), PIECES // 2
    reader, deltas = Reader(registry.mapper(stream.provider), ReaderOptions()), []
    for frame in answer.frames[: middle + 1]:
        deltas += [delta for delta in reader.read(frame) if text_of(delta)]
    data, delta = answer.datas[middle], deltas[-1]
    around = answer.frames[middle].split(data)
    others = answer.datas[middle - 12 : middle]
    if stream.pieces < PIECES:
        others.append(long.answer(1).datas[middle])  # its id and time are others
    text = text_of(delta)
    place = next(path for path, value in _leaves(orjson.loads(data)) if value == text)
    return (
        *stream_readers(*around, *_gaps([*others, data]), delta),
        parsing_reader(*around, place, delta, text),
    )


def main(rounds: int) -> list[Above]:
    """Print the table of streams; give those that cost more than they may."""
    rows, above, general = [], [], list[Above]()
    for name, stream in STREAMS.items():
        found = medians(ways_to_read(stream), rounds)
        times = {way: spent / found["floor"] for way, spent in found.items()}
        live, logged = stream.bars
        bars = {"live": live, "logged": logged, "general": GENERAL}
        cells = [f"{found['floor'] / PIECES * 1e6:.2f}"]
        for way, bar in bars.items():
            least = times[f"least {way}"]
            cells += [f"{least:.1f}", f"{times[way]:.1f} ({bar:g})"]
            if times[way] > bar:
                one = Above(f"{name}, {way}", times[way], bar, least, _in_the_way(stream, way, times))
                (general if way == "general" else above).append(one)
            if way == "logged":
                cells.append(f"{times['each delta']:.1f}")
        rows.append((name, *cells))
    print_table(
        f"streams of {PIECES:,} pieces, times orjson.loads (and how many it may be)",
        ("", "floor us", "least", "live", "least", "logged", "each delta", "least", "nothing learnt"),
        rows,
    )
    if general:  # all for the same reason
        most = max(general, key=lambda one: one.times)
        above.append(
            most._replace(row=f"{len(general)} of {len(rows)} where nothing is learnt, the most: {most.row}")
        )
    return above
