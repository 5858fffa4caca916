"""Structured answers: the chain on valid input, the cost of repair, and a check that nothing is quadratic.

The floor of a valid answer is ``orjson.loads`` and the structuring that the parser uses itself. The sizes of the other
tables are 10 KB, 100 KB and 1 MB: linear work takes ten times as long from one to the next.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import orjson

from benchmarks.measure import medians, print_table
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


def streams(rounds: int) -> None:
    """Print the cost of a stream in pieces of 8 characters, by size."""
    parser = StructuredParser(Long)
    spent = []
    for size in SIZES:
        text = long(size)
        pieces = [text[at : at + 8] for at in range(0, len(text), 8)]

        def run(pieces: list[str] = pieces) -> None:
            for _ in parser.parse_stream(pieces):
                pass

        spent.append(medians({"": run}, min(rounds, 1))[""])
    row = ("parse_stream", *(f"{each * 1e3:,.0f}" for each in spent))
    print_table(
        "structured: a stream in pieces", ("", *(f"{size // 1000:,} KB, ms" for size in SIZES)), [row]
    )


def main(rounds: int) -> None:
    """Print all three tables."""
    overhead(rounds)
    growth(rounds)
    streams(rounds)
