"""Writes ``docs/serve-configuration.md``, the gateway's file as a page of Markdown, from its types."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal

import attrs

from crosswalk.schemas.json_schema import documented_attributes
from crosswalk.service import Secret
from crosswalk_serve.config import Config, KeyHash

PAGE: Final = Path(__file__).parents[1] / "docs/serve-configuration.md"
_HEAD: Final = """# The gateway's configuration

`python scripts/serve_configuration.py` generates this page, so do not edit it by hand. [A gateway](serve.md) is the guide.

You configure the gateway with one YAML file. `${NAME}` in a text is an environment variable. A secret may also be
`{file: PATH}`, for mounted secrets. You may omit the brackets of a list with one item. `crosswalk serve --check FILE`
reports mistakes with line and key, and the gateway does not start with one.
"""
_UNIONS: Final = (types.UnionType, typing.Union)
_WORDS: Final = {
    str: "text",
    bool: "true or false",
    int: "whole number",
    float: "number",
    Path: "path",
    datetime: "time",
    Secret: "secret",
    KeyHash: "hash",
}


def current_page() -> str:
    """Return the page."""
    sections = {name: kind for name, kind in _sections(Config, "") if name}
    parts = [_HEAD, *_table(Config)]
    for name, kind in sections.items():
        parts += [f"\n## `{name}`\n", *_about(kind), *_table(kind)]
    return "\n".join(parts) + "\n"


def _sections(kind: Any, path: str) -> Iterator[tuple[str, Any]]:
    yield path, kind
    for name, hint in typing.get_type_hints(kind).items():
        inner, mark = _inner(hint)
        if attrs.has(inner) and inner not in (KeyHash, Secret) and name in attrs.fields_dict(kind):
            is_known = path and name in attrs.fields_dict(Config)
            if not is_known:  # a model's own timeouts are described with the gateway's
                yield from _sections(inner, f"{path}.{name}{mark}".removeprefix("."))


def _about(kind: Any) -> list[str]:
    raw = (kind.__doc__ or "").partition("\n\n")[0]
    return [" ".join(raw.replace("``", "`").split()), ""]


def _table(kind: Any) -> list[str]:
    hints, raw = typing.get_type_hints(kind), documented_attributes(kind)
    rows = ["| key | value | default | |", "|---|---|---|---|"]
    for field in attrs.fields(kind):
        text = raw[field.name].rstrip(".").replace("|", "\\|")
        rows.append(f"| `{field.name}` | {_word(hints[field.name])} | {_default(field)} | {text} |")
    return rows


def _inner(hint: Any) -> tuple[Any, str]:
    """Return the innermost type of *hint*, and the mark of its place."""
    arguments = [one for one in typing.get_args(hint) if one not in (types.NoneType, Ellipsis)]
    origin = typing.get_origin(hint)
    if origin is None or origin is Literal:
        return hint, ""
    inner, mark = _inner(arguments[-1])
    own = "[]" if origin in (tuple, frozenset) else "" if origin in _UNIONS else ".*"
    return inner, own + mark


def _word(hint: Any) -> str:
    """Describe the type *hint* for people."""
    arguments = [one for one in typing.get_args(hint) if one not in (types.NoneType, Ellipsis)]
    origin = typing.get_origin(hint)
    if origin is Literal:
        return " or ".join(f"`{one}`" for one in arguments)
    if origin in _UNIONS:
        return _word(arguments[0])
    if origin in (tuple, frozenset):
        return f"list of {_plural(_word(arguments[0]))}"
    if origin is not None:
        return "mapping" if arguments[-1] is Any else f"mapping of names to {_plural(_word(arguments[-1]))}"
    return _WORDS.get(hint) or ("word" if issubclass(hint, str) else "section")


def _plural(word: str) -> str:
    return word if word.endswith("`") else f"{word}s"


def _default(field: attrs.Attribute[Any]) -> str:
    default: Any = field.default
    if default is attrs.NOTHING:
        return "needed"
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]  # it is a class, whatever its stub says
        return ""
    if isinstance(default, frozenset):
        return ", ".join(sorted(f"`{one}`" for one in default))
    if default is None or default == ():
        return ""
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


if __name__ == "__main__":
    PAGE.write_text(current_page(), encoding="utf-8")
