"""What the templates read is what the parser reads: every capture, and 10,000 broken ones, both ways."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import attrs
import pytest

from crosswalk import CrosswalkError, ResponseDelta, registry, to_jsonable
from crosswalk.mapping import Reader, ReaderOptions
from crosswalk.testing import Capture, load_captures
from wires import CLOCK

pytestmark = pytest.mark.sweep

FOLDERS = sorted(path for path in (Path(__file__).parents[1] / "captures").iterdir() if path.is_dir())
BITS = [b'"', b"\\", b"\\u00e9", b"\xff", b"\n", b"x", b"1", b"{}", b",", b'","a":"b', b"null", b" ", b"\x00"]
ROUNDS = 20
MUTATIONS = 500


def captures(folder: Path) -> list[Capture]:
    return list(load_captures(folder))


def reads(body: bytes, cut: str) -> list[bytes]:
    """*body* as a socket may give it: an event at a time, in odd pieces, or all at once."""
    if cut == "event":
        separator = next((s for s in (b"\r\n\r\n", b"\n\n") if s in body), b"\n")
        *events, rest = body.split(separator)
        return [*(event + separator for event in events), rest]
    size = 97 if cut == "odd" else len(body) or 1
    return [body[start : start + size] for start in range(0, len(body), size)]


def made(provider: str, chunks: list[bytes], status: int, *, templates: bool, raw: bool) -> Any:
    """Everything that is made of *chunks*: deltas, what was there in the middle, response or error, bytes."""
    mapper = attrs.evolve(registry.mapper(provider), is_plain=templates)
    options = ReaderOptions(status=status, id_factory=lambda: "made", clock=CLOCK, keep_raw=raw)
    reading = Reader(mapper, options)
    deltas: list[ResponseDelta] = []
    partials, error, response = [], None, None
    try:
        for number, chunk in enumerate(chunks):
            deltas += reading.read(chunk)
            if number in (3, 11):
                partials.append(to_jsonable(reading.partial("asked for")))
        deltas += reading.finish()
        response = reading.response()
    except CrosswalkError as caught:
        response = getattr(caught, "partial", None)
        error = f"{type(caught).__name__}: {caught}"
    kept = None if response is None else (to_jsonable(response), response.raw_events.frames)
    return to_jsonable(deltas), partials, kept, error


def assert_same(provider: str, capture: Capture, body: bytes, cut: str, *, raw: bool = True) -> None:
    chunks = reads(body, cut)
    ways = [made(provider, chunks, capture.status, templates=on, raw=raw) for on in (True, False)]
    assert ways[0] == ways[1], f"{capture.case}, {cut}"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_capture_is_read_as_if_parsed(folder: Path) -> None:
    for capture in captures(folder):
        for cut in ("event", "odd", "whole"):
            assert_same(folder.name, capture, capture.body, cut)


def mutated(body: bytes, chance: random.Random) -> bytes:
    """*body* with some bytes put in, left out, or said again."""
    data = bytearray(body)
    for _ in range(chance.randint(1, 4)):
        place, kind = chance.randrange(len(data) + 1), chance.random()
        if kind < 0.5:
            data[place : place + chance.randint(0, 3)] = chance.choice(BITS)
        elif kind < 0.75:
            start = chance.randrange(len(data) + 1)
            data[place:place] = data[start : start + chance.randint(1, 300)]
        else:
            del data[place : place + chance.randint(1, 40)]
    return bytes(data)


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_broken_answers_are_read_as_if_parsed(seed: int) -> None:
    chance = random.Random(seed)
    found = [(folder.name, capture) for folder in FOLDERS for capture in captures(folder)]
    streams = [(provider, capture) for provider, capture in found if 1000 < len(capture.body) < 40_000]
    for _ in range(MUTATIONS):
        provider, capture = chance.choice(streams)
        cut = chance.choice(("event", "event", "odd", "whole"))
        assert_same(provider, capture, mutated(capture.body, chance), cut, raw=chance.random() < 0.7)
