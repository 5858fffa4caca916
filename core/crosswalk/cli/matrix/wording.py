"""The words in the rows of a crosswalk, the same for every format."""

from __future__ import annotations

from typing import Final

import attrs

from crosswalk.cli.matrix.effects import How
from crosswalk.cli.matrix.sections import Row, Section, Shape, shown

ELSEWHERE: Final = "another value"
REFUSED: Final = "refused otherwise"
IMPLIED: Final = "implied"
IN_DELTA: Final = "delta"
LOST: Final = "LOST"

LEGEND: Final[dict[str, str]] = {
    How.TYPED: "a typed field holds the value",
    How.CONVERTED: "a typed field holds the value in another unit or form",
    How.DECIDES: "the value decides what the typed fields hold",
    How.SAME: "a typed field already holds the same value",
    How.EMPTY: "the value is null, and so is the typed field",
    How.EXTENSIONS: "stored exactly as sent",
    IMPLIED: "the structure of the typed fields implies it",
    IN_DELTA: "the delta of its event holds it, and a later event replaces it in the response",
    ELSEWHERE: "the extensions hold a value that the typed fields cannot hold",
    REFUSED: "the error that another value raises",
    LOST: "the value is lost, which is a bug of the plugin",
}
"""The words of the tables with their meaning."""

NOTE: Final = (
    "Crosswalk changes each leaf of the recorded answers, maps them again, and lists the canonical paths that change. "
    "In a path, [] means every item of an array, * means every key of an object with free keys, and [text] means the "
    "segments of type text. If an answer has several choices, the others have the same paths below alternatives[]."
)
"""The explanation above each table."""


@attrs.frozen
class Piece:
    """A piece of a cell.

    Attributes:
        text: its text, in which control characters are not escaped yet.
        is_path: whether it is a path.
        label: a word of the legend before it.
    """

    text: str
    is_path: bool = False
    label: str = ""

    def __str__(self) -> str:
        return f"{self.label}: {self.text}" if self.label else self.text


def _without_path(row: Row, *, in_delta: bool) -> str:
    """The wording for a row without an effect on the response."""
    if in_delta:
        return IN_DELTA
    if row.is_lost:
        return LOST
    if row.types == {"null"}:
        return How.EMPTY
    return How.DECIDES if row.refused else IMPLIED


def told(effects: set[tuple[Shape, How]]) -> list[tuple[Shape, How]]:
    """*effects* in their order, without those that others make redundant."""
    paths = {path for path, how in effects if how is not How.OTHERWISE}
    is_typed = any(how is How.TYPED for _, how in effects)
    results: list[tuple[Shape, How]] = []
    for path, how in sorted(effects, key=_order_of_telling):
        is_consequence = is_typed and how in (How.CONVERTED, How.DECIDES, How.SAME)
        is_repeated = path[:2] == ("alternatives", "[]") and path[2:] in paths
        if how is not How.OTHERWISE and not is_consequence and not is_repeated:
            results.append((path, how))
    return results


def _order_of_telling(effect: tuple[Shape, How]) -> tuple[int, bool, int, Shape]:
    path, how = effect
    return list(How).index(how), "segments" in path, len(path), path


def _paths(effects: list[tuple[Shape, How]]) -> list[Piece]:
    return [Piece(shown(path), is_path=True) for path in dict.fromkeys(path for path, _ in effects)]


def headings(section: Section) -> list[str]:
    """The headings of the columns of *section*."""
    middle = ["canonical", "in the delta"] if section.is_stream else ["canonical"]
    return ["wire", "type", *middle, "how"]


def pieces(row: Row, section: Section) -> list[list[Piece]]:
    """The cells of *row*, one for each heading."""
    response, delta = told(row.response), told(row.delta)
    canonical = [_paths(response), _paths(delta)] if section.is_stream else [_paths(response)]
    how: list[str] = list(dict.fromkeys(how for _, how in response))
    how = how or [_without_path(row, in_delta=bool(delta))]
    elsewhere = {path for path, how in row.response if how is How.OTHERWISE}
    elsewhere -= {path for path, _ in response}
    is_switch = not response or How.DECIDES in how
    refused = row.refused if is_switch and row.types != {"null"} else ()
    raw = [
        *map(Piece, how),
        *(Piece(path, is_path=True, label=ELSEWHERE) for path in sorted(map(shown, elsewhere))),
        *(Piece(error, label=REFUSED) for error in sorted(refused)),
        *([Piece(LOST)] if row.is_lost and LOST not in how else []),
    ]
    wire, types = [Piece(shown(row.path), is_path=True)], [Piece(kind) for kind in sorted(row.types)]
    return [wire, types, *canonical, raw]
