"""Titles and descriptions for JSON Schemas, out of the docstrings of classes."""

from __future__ import annotations

import inspect
import re
from typing import Final

_ATTRIBUTE: Final = re.compile(r"^    (\w+): ((?:.+)(?:\n {8}.+)*)", re.MULTILINE)


def heading(kind: type) -> dict[str, str]:
    """Return the title of the class *kind*, and its description if it has one."""
    text = first_line(kind)
    return {"title": kind.__name__, **({"description": text} if text else {})}


def first_line(documented: object) -> str:
    """The first line of a docstring, or empty without one."""
    return _plain((inspect.getdoc(documented) or "").partition("\n")[0])


def documented_attributes(cls: type) -> dict[str, str]:
    """The texts of the ``Attributes:`` sections of *cls* and its bases, by attribute."""
    results: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        section = (inspect.getdoc(base) or "").partition("\nAttributes:\n")[2].partition("\n\n")[0]
        results |= {name: _plain(" ".join(text.split())) for name, text in _ATTRIBUTE.findall(section)}
    return results


def _plain(text: str) -> str:
    """*text* without the markup of docstrings."""
    return re.sub(r":\w+:`~?([^`]+)`", r"\1", text).replace("``", "`")
