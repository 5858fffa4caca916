"""The code that adds to the extensions what an event adds to them: what ``merge`` would do with its tree, see :mod:`.kept`.

The objects and lists that it adds to are looked up once: they are the same as long as no other event comes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from crosswalk.mapping.learnt.marks import UnlikeError, is_mark, number_of
from crosswalk.types.json import dump_json, load_json
from crosswalk.types.merge import JOIN, Pieces, Places, is_indexed, pieces_table

__all__ = ["Merge", "Merger", "merger_of"]

Merge: TypeAlias = Callable[..., dict[str, Any]]
"""Adds to the extensions what an event with these values adds, and gives what of it is new."""
Merger: TypeAlias = Callable[[dict[str, Any], Places], tuple[Merge, tuple[Any, ...]] | None]
"""Makes that, for these extensions; and the objects and lists in them that it adds to. ``None`` where not all are there."""


def merger_of(tree: dict[str, Any], kinds: Sequence[type], pieces: tuple[str, ...]) -> Merger:
    """What makes, of the extensions, what adds to them what *tree* is with other values.

    Args:
        tree: the tree.
        kinds: the types of the values in its gaps.
        pieces: which lists of the extensions arrive in pieces.

    Raises:
        UnlikeError: another list is in it, or one of which only its values say whether it goes by an ``index``.
    """
    merger: Merger = _merger(dump_json(tree), tuple(kinds), pieces)
    return merger


@lru_cache(maxsize=256)
def _merger(tree: bytes, kinds: tuple[type, ...], pieces: tuple[str, ...]) -> Any:
    code = _MergeCode(kinds)
    code.add(load_json(tree), pieces_table(pieces), "root", "news")
    names = ", ".join(f"h{number}" for number in range(len(kinds)))
    lines = [
        *("def made(root, places):", *(f"    {line}" for line in code.finding)),
        *(f"    def merge({names}):", "        news = {}", *(f"        {line}" for line in code.adding)),
        *("        return news", f"    return merge, ({''.join(f'{name}, ' for name in code.found)})"),
    ]
    exec("\n".join(lines), code.names)
    return code.names["made"]


class _MergeCode:
    """Writes the lines; nothing that a server says gets into its source.

    Attributes:
        names: what they know by name.
        finding: those that find the objects and lists in the extensions.
        found: by which names these go.
        adding: those that add to them, and to the news.
    """

    def __init__(self, kinds: Sequence[type]) -> None:
        self._kinds = kinds
        self.names: dict[str, Any] = {}
        self.finding: list[str] = []
        self.found: list[str] = []
        self.adding: list[str] = []

    def add(self, tree: dict[str, Any], pieces: Pieces, known: str, news: str) -> None:
        """Add *tree* to the object that goes by the name *known*, and what of it is new to *news*."""
        for key, value in tree.items():
            name, inner = self._name(key), JOIN if pieces is JOIN else pieces.get(key, {})
            place = f"{known}.get({name})"
            if type(value) is dict:
                found, more = self._find("dict", place)
                self.adding.append(f"{more} = {{}}")
                self.add(value, inner, found, more)
                self.adding.append(f"if {more}: {news}[{name}] = {more}")
            elif type(value) is list and is_indexed(value):
                found, more = self._find("list", place)
                self.adding.append(f"{more} = []")
                for item in value:
                    self._add_item(item, inner, found, more)
                self.adding.append(f"if {more}: {news}[{name}] = {more}")
            elif type(value) is list or (is_mark(value) and self._kinds[number_of(value)] is list):
                if inner is not JOIN or any(map(_may_be_indexed, value)):
                    raise UnlikeError
                found, _ = self._find("list", place)
                self.adding.append(f"{found}.extend({self._value(value, copied=True)})")
                self.adding.append(f"places.forget({found})")
                self.adding.append(f"{news}[{name}] = {self._value(value)}")
            else:
                said = self._value(value)
                is_news = f"{place} != {said} or type({known}[{name}]) is not type({said})"
                self.adding.append(f"if {is_news}: {known}[{name}] = {news}[{name}] = {said}")

    def _add_item(self, item: dict[str, Any], pieces: Pieces, known: str, news: str) -> None:
        """Add the *item* of an indexed list."""
        index = self._name(item["index"])
        found, more = self._find("dict", f"(places.of({known}) or {{}}).get({index})")
        self.adding.append(f"{more} = {{}}")
        self.add({key: value for key, value in item.items() if key != "index"}, pieces, found, more)
        self.adding.append(f"if {more}: {news}.append({{'index': {index}, **{more}}})")

    def _find(self, kind: str, place: str) -> tuple[str, str]:
        """Names for the container of this *kind* that is at *place* in the extensions, and for what is new in it."""
        found = f"known{len(self.found)}"
        self.found.append(found)
        self.finding += [f"{found} = {place}", f"if type({found}) is not {kind}: return None"]
        return found, f"{found}_news"

    def _value(self, tree: Any, *, copied: bool = False) -> str:
        """The expression for what *tree* makes; its lists may be *copied*."""
        if type(tree) is dict:
            items = (f"{self._name(key)}: {self._value(item, copied=copied)}" for key, item in tree.items())
            return f"{{{', '.join(items)}}}"
        if type(tree) is list:
            return f"[{', '.join(self._value(item, copied=copied) for item in tree)}]"
        if not is_mark(tree):
            return self._name(tree)
        number = number_of(tree)
        return f"[*h{number}]" if copied and self._kinds[number] is list else f"h{number}"

    def _name(self, value: Any) -> str:
        name = f"c{len(self.names)}"
        self.names[name] = value
        return name


def _may_be_indexed(item: Any) -> bool:
    return type(item) is dict and is_mark(item.get("index"))
