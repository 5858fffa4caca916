"""Layouts: where the facts of an exchange stand in the lines of a log.

A layout is data. The shipped ones are the TOML files in ``layouts/``, each of which names the public document that it
follows. A layout of your own has the same form:

.. code-block:: toml

    title = "Our proxy's log"
    requires = ["ts", "resp"]     # a line has this layout when it has all of these

    [fields]
    created = "ts@ms"             # a number of milliseconds since 1970
    vendor = "upstream"
    response = "resp"
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path as FilePath
from typing import Any, Final

import attrs

from crosswalk.plain_errors import ConfigurationError
from crosswalk.records.paths import Field, Path, parse_field, parse_path
from crosswalk.types.json import load_json

__all__ = ["FIELDS", "Layout", "layout_of", "layout_of_lines", "layouts", "load_layout", "with_fields"]

FIELDS: Final = (
    "id", "created", "ended", "latency", "provider", "vendor", "model", "status", "request", "response",
    "response_base64", "error", "tags", "cost",
)  # fmt: skip
"""The facts of an exchange that a layout can locate."""

_ANSWER: Final = (
    "id", "model", "message", "finish_reason", "prompt_tokens", "completion_tokens",
)  # fmt: skip
_ERROR: Final = ("type", "code", "message")
_KEYS: Final = {"title", "document", "requires", "dialect", "vendor", "strict", "fields", "answer", "error"}
_FIRST_LINES: Final = 20


@attrs.frozen(kw_only=True)
class Layout:
    """Where the facts of an exchange stand in the lines of one kind of log.

    Attributes:
        name: what it is called, as ``--layout`` takes it.
        title: whose log it is.
        document: the public document that it follows; empty for a layout of your own.
        requires: what a line has that is of this layout: of each entry at least one path.
        dialect: the provider id whose form all answers have; ``None`` where each has its own provider's.
        vendor: who answers, where the lines do not say it; ``None`` where they do, or nobody does.
        fields: where the facts stand; the names are :data:`FIELDS`.
        answer: where the parts of an answer stand, of a log that does not keep the provider's body.
        error: where the parts of an error stand, for lines without an answer.
        strict: the fields whose unreadable value rejects a line; that of any other field counts as absent.
    """

    name: str
    title: str = ""
    document: str = ""
    requires: tuple[tuple[Path, ...], ...] = ()
    dialect: str | None = None
    vendor: str | None = None
    fields: Mapping[str, Field] = attrs.field(factory=dict)
    answer: Mapping[str, Field] = attrs.field(factory=dict)
    error: Mapping[str, Field] = attrs.field(factory=dict)
    strict: tuple[str, ...] = ()

    def fits(self, record: dict[str, Any]) -> bool:
        """Whether *record*, a line's object, has all that the layout requires."""
        return all(any(_has(record, path) for path in paths) for paths in self.requires)

    @classmethod
    def of_description(cls, described: Mapping[str, Any]) -> Layout:
        """The layout that ``attrs.asdict`` described, also after a way through JSON.

        Raises:
            TypeError, KeyError: it is not one.
        """

        def fields(table: Mapping[str, Any]) -> dict[str, Field]:
            return {
                name: Field(tuple(map(tuple, at["paths"])), at["per_second"]) for name, at in table.items()
            }

        return cls(
            **{
                **described,
                "requires": tuple(tuple(map(tuple, paths)) for paths in described["requires"]),
                "strict": tuple(described["strict"]),
                **{name: fields(described[name]) for name in ("fields", "answer", "error")},
            }
        )


def _has(value: Any, path: Path) -> bool:
    for key in path:
        if type(value) is dict and key in value:
            value = value[key]
        elif type(value) is list:
            if not any(type(item) is dict and item.get("key") == key for item in value):
                return False
        else:
            return False
    return True


@cache
def layouts() -> Mapping[str, Layout]:
    """The shipped layouts by name."""
    folder = FilePath(__file__).parent / "layouts"
    return {file.stem: _read(file.read_text("utf-8"), file.stem) for file in sorted(folder.glob("*.toml"))}


def load_layout(name: str) -> Layout:
    """The shipped layout *name*, or the one in the file *name*, which ends in ``.toml``.

    Raises:
        ConfigurationError: there is no such layout or file, or it cannot be read.
    """
    if name.endswith(".toml"):
        try:
            return _read(FilePath(name).read_text("utf-8"), FilePath(name).stem)
        except OSError as error:
            raise ConfigurationError(f"{name}: {error.strerror}") from None
        except ValueError as error:
            raise ConfigurationError(f"{name}: {error}") from None
    try:
        return layouts()[name]
    except KeyError:
        raise ConfigurationError(
            f"no layout {name!r}; name a file that ends in .toml, or one of: {', '.join(layouts())}"
        ) from None


def layout_of(record: dict[str, Any]) -> Layout | None:
    """The shipped layout that *record*, a line's object, has; ``None`` for a plain body.

    Raises:
        ConfigurationError: it fits several.
    """
    own = layouts()["exchange"]
    if own.fits(record):
        return own
    fitting = [each for each in layouts().values() if each is not own and each.fits(record)]
    if len(fitting) > 1:
        names = ", ".join(each.name for each in fitting)
        raise ConfigurationError(f"several layouts fit; name one with --layout: {names}")
    return fitting[0] if fitting else None


def layout_of_lines(lines: Iterable[bytes]) -> Layout | None:
    """The layout that the first 20 of *lines* have in common.

    Returns:
        The layout; ``None`` where they differ, fit several, or are plain bodies: then each line is read by itself.
    """
    found: set[str | None] = set()
    for line, _ in zip(lines, range(_FIRST_LINES), strict=False):
        try:
            record = load_json(line)
            if type(record) is dict:
                layout = layout_of(record)
                found.add(None if layout is None else layout.name)
        except ConfigurationError:  # it fits several
            return None
        except ValueError:  # a damaged line says nothing about the others
            continue
    name = found.pop() if len(found) == 1 else None
    return None if name is None else layouts()[name]


def with_fields(layout: Layout | None, fields: Mapping[str, str]) -> Layout:
    """*layout* with further fields, as ``--field NAME=PATH`` names them; they have to be readable in each line.

    Args:
        layout: what to begin with; ``None`` for the fields of a recorded exchange, which count where they can be read.
        fields: paths by the name of the field.

    Raises:
        ConfigurationError: there is no such field, or a path is not one.
    """
    if layout is None:
        known = {name: at for name, at in layouts()["exchange"].fields.items() if name != "response_base64"}
        layout = Layout(name="custom", fields=known)
    try:
        more = _fields(fields, FIELDS)
    except ValueError as error:
        raise ConfigurationError(str(error)) from None
    return attrs.evolve(layout, fields={**layout.fields, **more}, strict=(*layout.strict, *more))


def _read(text: str, name: str) -> Layout:
    """Raises ValueError where *text* is not a layout."""
    table = tomllib.loads(text)
    if unknown := table.keys() - _KEYS:
        raise ValueError(f"unknown key {min(unknown)!r}; a layout has {', '.join(sorted(_KEYS))}")
    requires = tuple(
        tuple(parse_path(one) for one in ([entry] if type(entry) is str else entry))
        for entry in table.get("requires", ())
    )
    layout = Layout(
        name=name,
        title=table.get("title", ""),
        document=table.get("document", ""),
        requires=requires,
        dialect=table.get("dialect"),
        vendor=table.get("vendor"),
        strict=tuple(table.get("strict", ())),
        fields=_fields(table.get("fields", {}), FIELDS),
        answer=_fields(table.get("answer", {}), _ANSWER),
        error=_fields(table.get("error", {}), _ERROR),
    )
    if not {"response", "response_base64"} & layout.fields.keys() and "message" not in layout.answer:
        raise ValueError("a layout says where the answer stands: [fields] response = …")
    return layout


def _fields(table: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Field]:
    if unknown := table.keys() - {*names}:
        raise ValueError(f"no field {min(unknown)!r}; there are {', '.join(names)}")
    return {name: parse_field(where) for name, where in table.items()}
