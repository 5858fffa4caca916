"""The rows of a format's request table: what a client may say, where, and how it is spelled."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final, TypeAlias

import attrs

from crosswalk.types.values import altered
from crosswalk.wire.fields import Fields, Place as Path
from crosswalk.wire.options import OPTIONS, PLACES, PlaceKind

Spelling: TypeAlias = Callable[[Any], Any]
"""A function that returns another spelling of a value, or ``None`` if there is none."""
_OF_OBJECT: Final = re.compile(r"(?<!\[\])\[\w+\]")
_TYPED_ITEM: Final = re.compile(r"\[\]\[\w+\]$")
_VERSION: Final = re.compile(r"_20\d{6}$")


@attrs.frozen
class Row:
    """A word of a format.

    Attributes:
        path: where it stands. ``[]`` is an item of a list, and ``[word]`` behind an item or an object is its type:
            ``messages[].content[][text].text``. A row stands for everything below its path that no other row names.
            ``include[]=word`` is an item of a list of words.
        place: its canonical place, a key of :data:`crosswalk.wire.options.PLACES`, or ``""`` if only this format has it.
        kind: what becomes of it before a server without such a place. A canonical place has a kind.
        why: for a hint of this format alone, the reason why it is one.
        words: the format's words by the canonical ones, or ``None`` if they are the same.
        read, write: functions for values that differ by more than their words.
        replaces: the path that is removed if this row is written.
        needs: the path that must be true beside this one.
        beside: fields that must stand beside this one: the value of each, then others that it may have.
    """

    path: str
    place: str = ""
    kind: PlaceKind = PlaceKind.MEANING
    why: str = attrs.field(default="", kw_only=True)
    words: Mapping[Any, Any] | None = attrs.field(default=None, kw_only=True, hash=False)
    read: Spelling | None = attrs.field(default=None, kw_only=True)
    write: Spelling | None = attrs.field(default=None, kw_only=True)
    replaces: str = attrs.field(default="", kw_only=True)
    needs: str = attrs.field(default="", kw_only=True)
    beside: Mapping[str, tuple[Any, ...]] = attrs.field(factory=dict, kw_only=True, hash=False)

    def __attrs_post_init__(self) -> None:
        if self.place:
            object.__setattr__(self, "kind", PLACES[self.place].kind)

    def written(self, value: Any) -> Any:
        """Return the canonical *value* as the format spells it, or ``None`` if it has no word for it."""
        if self.write is not None:
            try:
                return self.write(value)
            except (AttributeError, LookupError, TypeError):
                return None
        return value if self.words is None else self.words.get(value) if isinstance(value, str) else None

    def value_of(self, written: Any) -> Any:
        """Return the canonical value of *written*, or ``None`` if there is none."""
        if self.read is not None:
            try:
                return self.read(written)
            except (AttributeError, LookupError, TypeError):
                return None
        if self.words is None:
            return written
        return next((ours for ours, theirs in self.words.items() if _is_same(theirs, written)), None)


def _is_same(one: Any, other: Any) -> bool:
    return bool(one == other) and type(one) is type(other)


def meaning(*paths: str, **more: Any) -> tuple[Row, ...]:
    """Return rows of one format alone, which mean something."""
    return tuple(Row(path, **more) for path in paths)


def hint(why: str, *paths: str) -> tuple[Row, ...]:
    """Return rows of one format alone that may be left out, because of *why*."""
    return tuple(Row(path, kind=PlaceKind.HINT, why=why) for path in paths)


def state(*paths: str) -> tuple[Row, ...]:
    """Return rows of one format alone that name what its servers keep."""
    return tuple(Row(path, kind=PlaceKind.STATE) for path in paths)


def link(*paths: str) -> tuple[Row, ...]:
    """Return rows of one format alone that connect items."""
    return tuple(Row(path, kind=PlaceKind.LINK) for path in paths)


def below(at: str, *rows: Row) -> tuple[Row, ...]:
    """Return *rows* with their paths below the path *at*."""
    return tuple(
        altered(row, path=f"{at}{row.path}" if row.path[:1] in ("", "[") else f"{at}.{row.path}")
        for row in rows
    )


@attrs.frozen(eq=False)
class RequestTable:
    """All that a client may say in one format, or to one server.

    Attributes:
        key: its name: ``chat``.
        label: the name for people.
        paths: the endings of the paths of its endpoints.
        rows: its rows. If several have one place, the first is written.
        types: the type of an item that states none, as a function of the item, by the path of the list.
        spelled: returns the spelling of a field in the table, for formats that take several.
        is_strict: whether a server refuses fields that it does not know.
    """

    key: str
    label: str
    paths: tuple[str, ...]
    rows: tuple[Row, ...]
    types: Mapping[str, Callable[[Mapping[str, Any]], str]] = attrs.field(factory=dict)
    spelled: Callable[[str], str] = attrs.field(default=str)
    is_strict: bool = False

    def with_rows(self, *rows: Row, without: tuple[str, ...] = (), is_strict: bool = False) -> RequestTable:
        """Return the table of a server that has *rows* as well, and none of the places or paths in *without*."""
        own = tuple(row for row in self.rows if row.place not in without and row.path not in without)
        return attrs.evolve(self, rows=(*rows, *own), is_strict=self.is_strict or is_strict)

    @cached_property
    def _of_place(self) -> Mapping[str, Row]:
        return {row.place: row for row in reversed(self.rows) if row.place}

    @cached_property
    def options(self) -> tuple[Row, ...]:
        """The rows of options. If several have one path, the first that can read a value counts."""
        return tuple(row for row in self.rows if row.place in OPTIONS)

    @cached_property
    def _of_path(self) -> Mapping[str, Row]:
        return {row.path: row for row in reversed(self.rows)}

    def row(self, place: str) -> Row | None:
        """Return the row that is written for the canonical *place*, or ``None`` if the format has none."""
        return self._of_place.get(place)

    def words(self, place: str) -> Mapping[Any, Any]:
        """Return the format's words for those of *place*, or nothing if it has none."""
        row = self.row(place)
        return {} if row is None or row.words is None else row.words

    def row_at(self, path: str) -> Row | None:
        """Return the row for *path*, in the notation of :attr:`Row.path`, or ``None`` if it is not in the table yet.

        It is the row of that path, or else of the nearest one around it. An object of which only parts have rows is the
        first of them that means something.
        """
        for shorter in (path, _OF_OBJECT.sub("", path)):
            while shorter:
                if shorter in self._of_path:
                    return self._of_path[shorter]
                if _TYPED_ITEM.search(shorter):  # an item of an unknown type is in no row of its list
                    break
                shorter = shorter[: max(shorter.rfind("."), shorter.rfind("["), 0)]
        inside = [row for row in self.rows if row.path.startswith((f"{path}.", f"{path}["))]
        return min(inside, key=lambda row: row.kind is not PlaceKind.MEANING, default=None)

    def details(self, at: str, of: str) -> tuple[tuple[str, str, Row], ...]:
        """Return the details of an *of* (``tool``, ``hosted``) that an object at the path *at* has.

        Each is the path inside the object, the name of the detail, and its row.
        """
        return self._details[at, of]

    @cached_property
    def _details(self) -> Mapping[tuple[str, str], tuple[tuple[str, str, Row], ...]]:
        found: dict[tuple[str, str], tuple[tuple[str, str, Row], ...]] = _Nothing()
        for row in self.rows:
            of, _, name = row.place.partition(".")
            for cut in range(len(row.path)):
                at, inner = row.path[:cut], row.path[cut + 1 :]
                if name and row.path[cut] == "." and "[" not in inner:
                    found[at, of] = (*found[at, of], (inner, name, row))
        return found

    def path_in(self, body: Any, place: Path) -> str:
        """Return the path of the value at *place* in *body*, in the notation of :attr:`Row.path`."""
        path, value = "", body
        for step in place:
            holder, path = (
                path,
                f"{path}[]" if isinstance(step, int) else f"{path}.{self.spelled(step)}".removeprefix("."),
            )
            try:
                value = value[step]
            except (LookupError, TypeError):
                value = None
            kind = value.get("type") if isinstance(value, dict) else None
            if kind is None and isinstance(value, dict) and isinstance(step, int) and holder in self.types:
                kind = self.types[holder](value)
            if isinstance(kind, str):
                path += f"[{_VERSION.sub('', kind)}]"
        return path


class _Nothing(dict[Any, Any]):
    def __missing__(self, key: Any) -> tuple[()]:
        return ()


def read_details(table: RequestTable, at: str, of: str, fields: Fields) -> dict[str, Any]:
    """Take the details of an *of* from *fields*, an object that *table* has at the path *at*. Return them by name.

    A value that has no canonical spelling stays.
    """
    results: dict[str, Any] = {}
    for path, name, row in table.details(at, of):
        *outer, last = path.split(".")
        holder: Fields | None = fields
        for step in outer:
            holder = None if holder is None else holder.inside(step)
        if holder is None or name in results or last not in holder:
            continue
        written = holder.typed(last, PLACES[row.place].type)
        value = row.value_of(written)
        if value is None:
            holder.give(last, written)
        else:
            results[name] = value
    return results


def written_details(
    table: RequestTable, at: str, of: str, values: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Return *values*, the details of an *of* by name, as *table* has them in an object at the path *at*.

    The second result are the names of those that it has no place or no word for.
    """
    result: dict[str, Any] = {}
    lost: list[str] = []
    known = {name: (path, row) for path, name, row in reversed(table.details(at, of))}
    for name, value in values.items():
        path, row = known.get(name, ("", None))
        written = None if row is None else row.written(value)
        if written is None:
            lost.append(name)
        else:
            put(result, path, written)
    return result, lost


def put_row(body: dict[str, Any], row: Row, written: Any) -> bool:
    """Write *written* where *row* says, with what it needs. Return whether nothing else was in these places."""
    for path, values in row.beside.items():
        if not put(body, path, values[0]) and get(body, path) not in values:
            return False
    if not put(body, row.path, written):
        return False
    if row.replaces:
        *outer, last = row.replaces.split(".")
        (get(body, ".".join(outer)) or {}).pop(last, None)
    if row.needs:
        put(body, row.needs, True)
    return True


def get(body: Any, path: str) -> Any:
    """Return the value at *path* in *body*, or ``None`` if there is none."""
    for step in path.split("."):
        body = body.get(step) if isinstance(body, dict) else None
    return body


def put(body: dict[str, Any], path: str, value: Any) -> bool:
    """Write *value* at *path* into *body*, and return whether nothing else was there.

    For ``a[]=word`` the list gets the word, for ``a[].b`` an object with the value under ``b``, and for ``a[][type]`` all
    items of the value.
    """
    path, is_item, inner = path.partition("[]")
    *outer, last = path.split(".")
    for step in outer:
        body = body.setdefault(step, {})
    if is_item:
        found = value if inner[:1] == "[" else [{inner[1:]: value} if inner[:1] == "." else inner[1:]]
        items = body.setdefault(last, [])
        items += [item for item in found if item not in items]
        return True
    return bool(body.setdefault(last, value) == value)
