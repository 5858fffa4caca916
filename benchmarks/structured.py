"""Structured answers: the chain on valid input, the cost of repair, and a check that nothing is quadratic.

The floor of a valid answer is ``orjson.loads`` and the structuring that the parser uses itself. That of a stream is
pydantic's partial parser and its validation, at every piece. The sizes of the middle table are 10 KB, 100 KB and 1 MB:
linear work takes ten times as long from one to the next.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import attrs
import orjson
from pydantic import BaseModel, TypeAdapter, ValidationError

from benchmarks.measure import Above, is_met, medians, print_table, verdict
from crosswalk.structured import (
    RESPONSE_VERSIONS,
    ParserMetrics,
    ResponseParser,
    Schema,
    StructuredParser,
    StructuredResponse,
)
from crosswalk.structured.response import RESPONSE_INVARIANTS

SIZES = (10_000, 100_000, 1_000_000)
TIMES = range(2_000)


@attrs.frozen
class Item:
    """One item of a long answer."""

    title: str
    count: int
    note: str | None = None


@attrs.frozen
class Long:
    """A long answer."""

    answer: str
    items: tuple[Item, ...] = ()


def long(size: int) -> str:
    """Return a valid answer of *size* characters: half of it one text, half of it items."""
    items = [{"title": f"ADR.{n}", "count": n, "note": None} for n in range(size // 100)]
    return orjson.dumps({"answer": "word " * (size // 10), "items": items}).decode()


def malformed(size: int) -> dict[str, str]:
    """Return malformed answers of *size* characters: first ordinary damage, then texts that are meant to take long."""
    valid = long(size)
    return {
        "valid": valid,
        "valid, in a fence": f"Sure:\n```json\n{valid}\n```",
        "trailing comma": valid[:-1] + ",}",
        "single quotes": valid.replace('"', "'"),
        "cut in the middle": valid[:-5],
        "underscores behind an answer": '{"answer": "A"}\n' + "_" * size,
        "prose alone": "There is {no} JSON [here]. " * (size // 27),
        "many small objects": '{"a": 1} ' * (size // 9),
        "many malformed objects": "{'a': 1,} " * (size // 10),
        "many malformed objects, no two alike": " ".join(
            f"{{'a': {n + 10_000},}}" for n in range(size // 14)
        ),
        "unquoted words": "{" + ",".join(f"k{n}: v{n}" for n in range(size // 12)) + "}",
        "brackets alone": "[" * size,
        "brackets, closed": "[" * (size // 2) + "]" * (size // 2) + ",",
        "braces and quotes": '{"' * (size // 2),
        "backslashes": '{"a": "' + "\\" * size,
    }


def overhead(rounds: int) -> None:
    """Print the ratio of the whole chain to the floor, on valid answers."""
    read = Schema(StructuredResponse).read
    small = '{"answer": "There are five.", "items_shown": 5, "items_total": 18}'
    sources = [{"title": f"ADR.{n}", "type": "ADR"} for n in range(5)]
    fields = {"answer": "word " * 200, "items_shown": 5, "items_total": 18, "count_qualifier": "exact"}
    ordinary = orjson.dumps({**fields, "sources": sources}).decode()
    rows = []
    for name, text in (("66 characters", small), ("1,200 characters", ordinary)):
        parsers: dict[str, StructuredParser[StructuredResponse]] = {
            "StructuredParser(class)": StructuredParser(StructuredResponse),
            "  with its invariant": StructuredParser(StructuredResponse, invariants=RESPONSE_INVARIANTS),
            "  of a registry": StructuredParser(RESPONSE_VERSIONS),
            "  with metrics": StructuredParser(StructuredResponse, metrics=ParserMetrics()),
            "ResponseParser": ResponseParser(),
        }
        functions: dict[str, Callable[[], object]] = {
            "floor: orjson.loads and structuring": lambda text=text: [read(orjson.loads(text)) for _ in TIMES]
        }
        for title, parser in parsers.items():
            functions[title] = lambda parser=parser, text=text: [parser.parse(text) for _ in TIMES]
        found = medians(functions, rounds)
        floor = next(iter(found.values()))
        rows += [
            (f"{title}, {name}", f"{spent / len(TIMES) * 1e6:.2f}", f"{spent / floor:.2f}")
            for title, spent in found.items()
        ]
    print_table("structured: a valid answer to a value", ("", "us", "x floor"), rows)


def growth(rounds: int) -> None:
    """Print the cost of each kind of text at each size, and its result."""
    parser = StructuredParser(Long)
    by_size = [malformed(size) for size in SIZES]
    rows = []
    for name in by_size[0]:
        spent, ends = [], []
        for texts in by_size:
            text = texts[name]
            ends.append(parser.parse(text))
            spent.append(medians({"": lambda text=text: parser.parse(text)}, min(rounds, 3))[""])
        last = ends[-1]
        rows.append((name, *(f"{each * 1e3:,.1f}" for each in spent), str(last.stage), str(last.reason)))
    sizes = tuple(f"{size // 1000:,} KB, ms" for size in SIZES)
    print_table("structured: any text, by size", ("", *sizes, "stage at the end", "reason"), rows)


class PydanticItem(BaseModel):
    """As :class:`Item`."""

    title: str
    count: int
    note: str | None = None


class PydanticLong(BaseModel):
    """As :class:`Long`."""

    answer: str
    items: list[PydanticItem]


STREAM_BAR = 3.0
"""How often the time of pydantic a stream may take."""


def streams(rounds: int) -> list[Above]:
    """Print the cost of streams of objects, as ratios to pydantic's own partial parser and validation at every piece."""
    validate = TypeAdapter(PydanticLong).validate_json
    above, rows = [], []
    for size, piece in ((20_000, 16), (200_000, 512), (1_000_000, 8_192)):
        items = [{"title": f"ADR.{n}", "count": n, "note": None} for n in range(size // 50)]
        text = orjson.dumps({"answer": "Here.", "items": items}).decode()
        pieces = [text[at : at + piece] for at in range(0, len(text), piece)]

        def floor(text: str = text, piece: int = piece) -> None:
            for end in range(piece, len(text) + piece, piece):
                with contextlib.suppress(ValidationError):  # a required field is still to come
                    validate(text[:end], experimental_allow_partial="trailing-strings")

        functions: dict[str, Callable[[], object]] = {"pydantic": floor}
        for kind in (Long, PydanticLong):
            parser: StructuredParser[Any] = StructuredParser(kind)
            functions[kind.__name__] = lambda parser=parser, pieces=pieces: [*parser.parse_stream(pieces)]
        found = medians(functions, min(rounds, 1))
        for name, spent in found.items():
            times = spent / found["pydantic"]
            bar = None if name == "pydantic" else STREAM_BAR
            title = f"{name}, {size // 1000:,} KB in pieces of {piece}"
            rows.append((title, f"{spent * 1e3:,.0f}", f"{times:.2f}", *verdict(times, bar)))
            if bar is not None and not is_met(times, bar):
                above.append(Above(title, times, bar))
    print_table("structured: a stream of objects", ("", "ms", "x pydantic at every piece", "bar", ""), rows)
    return above


def main(rounds: int) -> list[Above]:
    """Print all three tables, and return the rows above their bar."""
    overhead(rounds)
    growth(rounds)
    return streams(rounds)
