"""What a function's docstring says about it and about its parameters."""

from __future__ import annotations

import inspect
import re
import textwrap
from typing import Final

__all__ = ["read_docstring"]

_PARAMETERS: Final = frozenset({"args", "arguments", "parameters", "params", "attributes"})
_OTHERS: Final = frozenset({"returns", "return", "yields", "raises", "example", "examples", "note", "notes"})
_UNDERLINE: Final = re.compile(r"-{3,}\s*")
# Sphinx: ``:param city: text``, ``:param str city: text``, ``:returns: text``.
_FIELD: Final = re.compile(r":(\w+)(?:[^:\n]*?(\w+))?\s*:\s*(.*)")
# ``city: text``, ``city (str): text``.
_GOOGLE_ENTRY: Final = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)\n]*\))?\s*:\s*(.*)")
# ``city`` or ``city : str``, with its text below.
_NUMPY_ENTRY: Final = re.compile(r"\*{0,2}(\w+)\s*(?::.*)?()")


def read_docstring(documented: object) -> tuple[str, dict[str, str]]:
    """The description in the docstring of *documented*, and what it says about each parameter.

    Google's, numpy's and Sphinx's forms are read. What stands in other sections (returns, raises, examples)
    is for people, not for a model, and is left out.
    """
    description: list[str] = []
    parameters: dict[str, list[str]] = {}
    section, is_numpy = description, False
    entries: list[tuple[list[str], bool]] = []  # sections of parameters, and whether they are numpy's
    lines = (inspect.getdoc(documented) or "").splitlines()
    for line, below in zip(lines, [*lines[1:], ""], strict=False):
        field = _FIELD.fullmatch(line)
        word = line.rstrip(" :").lower()
        if field:
            is_parameter = field[1] in {"param", "parameter", "arg", "argument"} and field[2]
            section = parameters.setdefault(field[2], []) if is_parameter else []
            section.append(field[3])
        elif word in _PARAMETERS | _OTHERS and (line.endswith(":") or _UNDERLINE.fullmatch(below)):
            section, is_numpy = [], not line.endswith(":")
            if word in _PARAMETERS:
                entries.append((section, is_numpy))
        elif not (is_numpy and _UNDERLINE.fullmatch(line)):
            section.append(line)
    for found, is_numpy in entries:
        _read_entries(textwrap.dedent("\n".join(found)), is_numpy, parameters)
    return _joined(description), {name: _joined(texts) for name, texts in parameters.items()}


def _read_entries(section: str, is_numpy: bool, parameters: dict[str, list[str]]) -> None:
    """Add what *section* says to *parameters*: an entry begins a line, what goes on is indented."""
    current: list[str] = []
    for line in section.splitlines():
        entry = (_NUMPY_ENTRY if is_numpy else _GOOGLE_ENTRY).fullmatch(line)
        if entry:
            current = parameters.setdefault(entry[1], [])
        current.append(entry[2] if entry else line)


def _joined(lines: list[str]) -> str:
    """Paragraphs of one line each."""
    paragraphs = re.split(r"\n\s*\n", "\n".join(lines).strip())
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
