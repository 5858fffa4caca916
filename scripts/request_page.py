"""Writes ``docs/requests.md``, the page of all that a request may say, from the tables of requests.

``python scripts/request_page.py`` writes it. ``tests/test_request_page.py`` fails where the page is stale.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from crosswalk.formats.tables import TABLES
from crosswalk.wire.options import DETAILS, OPTIONS, PlaceKind, RequestPlace, RequestTable
from crosswalk_bedrock.requests import CONVERSE
from crosswalk_cohere.requests import COHERE

__all__ = ["PAGE", "current_page"]

PAGE: Final = Path(__file__).parents[1] / "docs/requests.md"
SHOWN: Final[Mapping[str, RequestTable]] = {
    "Chat Completions": TABLES["chat"],
    "Responses": TABLES["responses"],
    "Messages": TABLES["messages"],
    "Gemini": TABLES["gemini"],
    "Ollama": TABLES["ollama"],
    "Bedrock Converse": CONVERSE,
    "Cohere": COHERE,
}
"""The tables with a column. Clients speak the first five."""
BECOMES: Final[Mapping[PlaceKind, str]] = {
    PlaceKind.MEANING: "content is told in words; anything else refuses the request, or is left out and named under `drop`",
    PlaceKind.HINT: "it is left out and named",
    PlaceKind.STATE: "the request is refused, because only one server keeps what is named",
    PlaceKind.LINK: "it is written anew, so that calls and results still fit",
}
HEAD: Final = """\
# All that a request may say

One table for each format says what a client may write, where it stands, and what it is for. Readers, builders, the names of
what is dropped and the tests use the same tables, and this page is written from them (`python scripts/request_page.py`). A
word that no table has is passed on to servers of its own format. For any other server it is named as *not in the table yet*.

Each word has a kind, which says what becomes of it before a server that has no place for it:

| Kind | Without a place |
|---|---|"""
PLACES: Final = """\
## Places that several formats have

A program writes the options as fields of `ChatRequest` or in its `extra_options`. If a format has several paths, the first
one is written. `[]` is an item of a list, and a word in brackets is its type."""
ALONE: Final = """\
## Words of one format alone

They are passed on unchanged to servers of the same format."""


def current_page() -> str:
    """The page as it should be."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield HEAD
    for kind, becomes in BECOMES.items():
        yield f"| {kind.value} | {becomes} |"
    yield f"\n{PLACES}"
    for title, places in (("Options", OPTIONS), ("Messages, tools and formats", DETAILS)):
        yield f"\n### {title}\n"
        yield from _places(places.values())
    yield f"\n{ALONE}"
    for title, table in SHOWN.items():
        yield f"\n### {title}\n"
        yield from _alone(table)
    yield ""


def _places(places: Iterable[RequestPlace]) -> Iterator[str]:
    yield f"| Place | Kind | {' | '.join(SHOWN)} |"
    yield f"|---|---|{'---|' * len(SHOWN)}"
    for place in places:
        cells = ["<br>".join(_code(_paths(table, place))) for table in SHOWN.values()]
        kind = f"{place.kind.value}: {place.why}" if place.why else place.kind.value
        yield f"| `{place.name}` | {kind} | {' | '.join(cells)} |"


def _paths(table: RequestTable, place: RequestPlace) -> list[str]:
    return list(dict.fromkeys(row.path for row in table.rows if row.place == place.name and row.path))


def _alone(table: RequestTable) -> Iterator[str]:
    found: dict[tuple[PlaceKind, str], list[str]] = defaultdict(list)
    for row in table.rows:
        if not row.place and row.path:
            found[row.kind, row.why].append(row.path)
    for (kind, why), paths in sorted(found.items(), key=lambda item: list(PlaceKind).index(item[0][0])):
        yield f"- **{kind.value}**{f', because {why}' if why else ''}: {', '.join(_code(sorted(set(paths))))}"
    if not found:
        yield "None."


def _code(paths: Iterable[str]) -> list[str]:
    return [f"`{path}`" for path in paths]


if __name__ == "__main__":
    PAGE.write_text(current_page(), encoding="utf-8")
