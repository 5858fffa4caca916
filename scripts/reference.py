"""Builds the API reference: a section for every public name, from its signature and docstring.

The signature comes from the running class, because attrs writes it. Griffe splits a docstring into its parts.
"""

from __future__ import annotations

import ast
import enum
import functools
import inspect
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
from griffe import Docstring

__all__ = ["FACES", "INTERNAL", "PublicName", "public_names", "reference_pages"]

CORE = Path(__file__).parents[1] / "core"
FACES = (
    "crosswalk",
    "crosswalk.service",
    "crosswalk.agent",
    "crosswalk.structured",
    "crosswalk.responses",
    "crosswalk.convert",
    "crosswalk.testing",
    "crosswalk.plugins",
    "crosswalk.types",
    "crosswalk.errors",
    "crosswalk.codec",
    "crosswalk.otel",
    "crosswalk.wire",
    "crosswalk.plugin",
    "crosswalk.mapping",
    "crosswalk.stream",
    "crosswalk.config",
    "crosswalk.records",
    "crosswalk.commands",
    "crosswalk.prices",
)
"""The packages with public names. A name that several packages have is described with the first."""
INTERNAL = (
    "__main__",
    "cli",
    "drafts",
    "formats",
    "lazy",
    "manifest",
    "plain_errors",
    "request",
    "schemas",
    "tables",
    "text",
    "version",
    "words",
)
"""The other modules of ``crosswalk``, which only Crosswalk imports."""
_LARGE = 60
"""A package with more names than this has a page for each module."""
_LONG_SOURCE = 2_000
"""A value with more characters of source than this is not shown."""


@attrs.frozen
class PublicName:
    """A public name, in the package that describes it.

    Attributes:
        face: the package that it is imported from.
        name: the name.
        value: its value.
        module: the module that defines it.
        note: its docstring, as written in the source.
        source: the text that it is set to, unless it is a class or a function.
        part: its page, if its package has several.
    """

    face: str
    name: str
    value: Any
    module: str
    note: str
    source: str
    part: str = ""

    @property
    def anchor(self) -> str:
        """The anchor of its section, the same on every page."""
        return f"{self.face}.{self.name.strip('_')}"  # underscores would be Markdown

    @property
    def page(self) -> str:
        """The page that describes it, below ``reference/``."""
        return f"{self.face}-{self.part}.md" if self.part else f"{self.face}.md"

    @property
    def kind(self) -> str:
        """Its kind, in a word."""
        if isinstance(self.value, ModuleType):
            return "module"
        if not isinstance(self.value, type):
            return "function" if inspect.isroutine(self.value) else "type" if self._is_type else "value"
        if issubclass(self.value, BaseException):
            return "error"
        return "enumeration" if issubclass(self.value, enum.Enum) else "class"

    @property
    def _is_type(self) -> bool:
        return type(self.value).__module__ in ("typing", "types", "typing_extensions")

    @property
    def summary(self) -> str:
        """The first sentence of its docstring."""
        return re.split(r"(?<=[.:])\s|\n\n|\Z", " ".join(self.note.split("\n\n")[0].split()), maxsplit=1)[
            0
        ].rstrip(":")


def public_names() -> tuple[list[PublicName], dict[str, dict[str, PublicName]]]:
    """Return every public name once, and the names in each face."""
    assigned = _assigned()
    homes: dict[tuple[str, int], PublicName] = {}
    faces: dict[str, dict[str, PublicName]] = {}
    for face in FACES:
        module = import_module(face)
        faces[face] = {}
        for name in sorted(module.__all__):
            value = getattr(module, name)
            key = (name, id(value))
            if key not in homes:
                homes[key] = _found(face, name, value, assigned)
            faces[face][name] = homes[key]
        own = [found for found in faces[face].values() if found.face == face]
        if len(own) > _LARGE:
            for found in own:
                below = found.module.removeprefix(f"{face}.").removeprefix("crosswalk.").split(".")[0]
                part = attrs.evolve(found, part=below.removeprefix("plain_"))
                homes[(found.name, id(found.value))] = faces[face][found.name] = part
    return sorted(homes.values(), key=lambda found: (found.name.lower(), found.name, found.face)), faces


def _found(face: str, name: str, value: Any, assigned: dict[str, list[tuple[str, str, str]]]) -> PublicName:
    described = isinstance(value, type) or inspect.isroutine(value)
    if isinstance(value, ModuleType):
        return PublicName(face, name, value, value.__name__, inspect.getdoc(value) or "", "")
    if described and value.__module__.startswith("crosswalk"):
        return PublicName(face, name, value, value.__module__, inspect.getdoc(value) or "", "")
    for module, note, source in assigned.get(name, ()):
        if getattr(import_module(module), name, None) is value:
            ours = type(value).__module__.startswith("crosswalk")
            return PublicName(
                face, name, value, module, note or (ours and inspect.getdoc(value)) or "", source
            )
    return PublicName(face, name, value, face, "", "")


@functools.cache
def _assigned() -> dict[str, list[tuple[str, str, str]]]:
    """Map each name that a module sets to the module, the docstring below it, and its source."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for file in sorted((CORE / "crosswalk").rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        body = ast.parse(text).body
        module = ".".join(file.relative_to(CORE).with_suffix("").parts).removesuffix(".__init__")
        for statement, after in pairwise([*body, None]):
            note = ""
            target: str | None = None
            value: ast.expr | None = None
            match statement:
                case ast.Assign(targets=[ast.Name(id=target)], value=value):
                    pass
                case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value):
                    pass
                case ast.FunctionDef(name=target):  # decorated, it may not be a function any more
                    note = ast.get_docstring(statement) or ""
            match after:
                case ast.Expr(value=ast.Constant(value=str() as text_below)) if value is not None:
                    note = inspect.cleandoc(text_below)
            if target is not None:
                source = (ast.get_source_segment(text, value) or "") if value is not None else ""
                found.setdefault(target, []).append((module, note, source))
    return found


# ------------------------------------------------------------------------------------ pages


def reference_pages() -> dict[str, str]:
    """Return the pages of the reference by their names below ``reference/``."""
    names, faces = public_names()
    write = _Writer(names)
    pages = {"index.md": write.index(faces)}
    for face, found in faces.items():
        own = [name for name in found.values() if name.face == face]
        pages[f"{face}.md"] = write.face(import_module(face), found)
        for part in sorted({name.part for name in own}):
            text = "\n".join(write.section(name) for name in own if name.part == part)
            if part:
                pages[f"{face}-{part}.md"] = f"# {face}: {part.replace('_', ' ')}\n\n{text}"
            else:
                pages[f"{face}.md"] += text
    return pages


class _Writer:
    def __init__(self, names: list[PublicName]) -> None:
        self._names = names
        self._links: dict[str, PublicName] = {}
        for name in sorted(names, key=lambda name: FACES.index(name.face), reverse=True):
            for known in (name.name, name.anchor, f"{name.module}.{name.name}"):
                self._links[known] = name

    def index(self, faces: dict[str, dict[str, PublicName]]) -> str:
        lines = ["# API reference", "", "Every public name is imported from one of these packages:", ""]
        for face in faces:
            lines.append(f"- [`{face}`]({face}.md): {self.inline(_first(import_module(face)))}")
        letter = ""
        lines += ["", "From A to Z:"]
        for name in self._names:
            if name.name[0].upper() != letter:
                letter = name.name[0].upper()
                lines += ["", f"## {letter}", "", "| name | from | |", "|---|---|---|"]
            lines.append(f"| {self.link(name)} | `{name.face}` | {self.cell(name.summary)} |")
        return "\n".join([*lines, ""])

    def face(self, module: ModuleType, found: dict[str, PublicName]) -> str:
        """Return the top of the page of a package: its purpose and its names."""
        lines = [f"# {module.__name__}", "", self.text(inspect.getdoc(module) or ""), ""]
        lines += ["| name | | |", "|---|---|---|"]
        for name, value in found.items():
            lines.append(f"| {self.link(value, name)} | {value.kind} | {self.cell(value.summary)} |")
        return "\n".join([*lines, "", ""])

    def section(self, name: PublicName) -> str:
        """Return the section of a name."""
        lines = [f"## `{name.name}` {{ #{name.anchor} }}", "", "```python"]
        lines += [f"from {name.face} import {name.name}", "", *_shown(name), "```", ""]
        lines += [self.docstring(name.note, _types(name.value)), ""]
        value = name.value
        if isinstance(value, type):
            if issubclass(value, enum.Enum):
                lines += [*(f"- `{name.name}.{member.name}` = `{member.value!r}`" for member in value), ""]
            for member, function, decoration in self._members(value):
                lines += [f"### `{name.name}.{member}` {{ #{name.anchor}.{member} }}", "", "```python"]
                lines += [*decoration, _signature(member, function) or member, "```", ""]
                lines += [self.docstring(inspect.getdoc(function) or "", {}), ""]
        return "\n".join(lines)

    def _members(self, value: type) -> Iterator[tuple[str, Callable[..., Any], list[str]]]:
        """Yield the public methods and properties of a class: its own, and those of bases that are not public names."""
        public = {name.value for name in self._names if isinstance(name.value, type)}
        seen: set[str] = set()
        for base in value.__mro__:
            if not base.__module__.startswith("crosswalk") or (base is not value and base in public):
                continue
            for member, held in vars(base).items():
                if member.startswith("_") or member in seen:
                    continue
                seen.add(member)
                if isinstance(held, property) and held.fget is not None:
                    yield member, held.fget, ["@property"]
                elif isinstance(held, (classmethod, staticmethod)):
                    yield member, held.__func__, [f"@{type(held).__name__}"]
                elif inspect.isfunction(held):
                    yield member, held, []

    # -------------------------------------------------------------------------------- docstrings

    def docstring(self, text: str, types: dict[str, str]) -> str:
        """Return a docstring as Markdown, with the *types* of the fields that it describes."""
        found = []
        for section in Docstring(text).parse("google", warnings=False):
            kind, value = section.kind.value, section.value
            if kind == "text":
                found.append(self.text(value))
            elif kind == "admonition":
                found.append(f"**{section.title}**\n\n{self.text(value.contents)}")
            elif kind == "examples":
                found += [f"```python\n{text}\n```" if at.value == "examples" else text for at, text in value]
            else:
                title = "Arguments" if kind == "parameters" else kind.capitalize()
                entries = [self._entry(entry, kind, types) for entry in value]
                found.append("\n".join([f"**{title}**", "", *entries]))
        return "\n\n".join(found)

    def _entry(self, entry: Any, kind: str, types: dict[str, str]) -> str:
        text = self.text(entry.description).replace("\n", "\n    ")
        if kind == "raises":
            return f"- {self.code(str(entry.annotation))}: {text}"
        name = entry.name
        if not name:
            return f"- {text}"
        return f"- `{name}` ({self.code(types[name])}): {text}" if name in types else f"- `{name}`: {text}"

    def text(self, text: str) -> str:
        """Return prose in reStructuredText, a subset that docstrings use, as Markdown."""
        lines = text.splitlines()
        rules = [number for number, line in enumerate(lines) if line.startswith("====")]
        if rules:  # a table
            before, table, after = lines[: rules[0]], lines[rules[0] : rules[-1] + 1], lines[rules[-1] + 1 :]
            shown = ["", "```text", *table, "```", ""]
            return "\n".join([self.text("\n".join(before)), *shown, self.text("\n".join(after))])
        found: list[str] = []
        block: list[str] | None = None
        for line in lines:
            if block is not None and (not line.strip() or line.startswith("    ")):
                block.append(line)
                continue
            found += _fenced(block)
            block = None
            if line.endswith("::"):
                block = []
                line = line[:-1].removeprefix(":")
            found.append(self.inline(line))
        return "\n".join([*found, *_fenced(block)])

    def inline(self, text: str) -> str:
        """Return one line: roles and names as code, and as links if they are public names."""
        pieces = re.split(r"(:\w+:`[^`]+`|``.+?``)", text)
        for number, piece in enumerate(pieces):
            if number % 2 == 0:
                pieces[number] = piece.replace("<", "&lt;")
            elif piece.startswith(":"):
                target = piece.split("`")[1]
                pieces[number] = self.code(target.removeprefix("~").rpartition(".")[2], target.strip("~"))
            else:
                word = piece[2:-2]  # a word like ``messages`` rarely means the name
                pieces[number] = f"`{word}`" if word.isalpha() and word.islower() else self.code(word)
        return "".join(pieces)

    def code(self, text: str, target: str = "") -> str:
        """Return *text* as code, and as a link if it, or *target*, is a public name."""
        found = self._links.get(target or text)
        if found is None and "." in target and target.startswith("crosswalk"):
            found = self._links.get(text)
        return self.link(found, text) if found is not None else f"`{text}`"

    def cell(self, text: str) -> str:
        """Return *text* for a cell of a table."""
        return self.inline(text).replace("|", "\\|")

    def link(self, name: PublicName, text: str = "") -> str:
        """Return a link to the section of *name*."""
        return f"[`{text or name.name}`]({name.page}#{name.anchor})"


def _shown(name: PublicName) -> list[str]:
    """Return the declaration of *name* and its call."""
    value = name.value
    if isinstance(value, ModuleType):
        return [_signature(inside, getattr(value, inside)) or inside for inside in value.__all__]
    if isinstance(value, type):
        bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
        made = "" if issubclass(value, enum.Enum) else _signature(name.name, value)
        return [
            f"class {name.name}({bases})" if bases else f"class {name.name}",
            *(["", made] if made else []),
        ]
    if inspect.isroutine(value):
        return [_signature(name.name, value) or f"{name.name}(...)"]
    source = inspect.cleandoc(name.source)
    short = 0 < len(source) < _LONG_SOURCE
    return [f"{name.name} = {source}" if short else f"{name.name}: {type(value).__name__}"]


def _fenced(lines: list[str] | None) -> list[str]:
    """Return a literal block, or no lines for ``None``."""
    return [] if lines is None else ["", "```python", inspect.cleandoc("\n".join(["", *lines])), "```", ""]


def _first(module: ModuleType) -> str:
    return " ".join((inspect.getdoc(module) or "").split("\n\n")[0].split())


def _types(value: Any) -> dict[str, str]:
    """Return the declared types of a class's fields, including those of its bases."""
    found: dict[str, str] = {}
    for base in reversed(value.__mro__) if isinstance(value, type) else ():
        for name, annotation in vars(base).get("__annotations__", {}).items():
            found[name] = _annotation(annotation)
    return found


def _annotation(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:typing|crosswalk|collections\.abc|datetime)(?:\.\w+)*\.(?=[A-Za-z])", "", text)


def _signature(name: str, value: Any) -> str:
    """Return the call of *value*, or an empty text if Python has no signature for it."""
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return ""
    returned = None if isinstance(value, type) else getattr(value, "__annotations__", {}).get("return")
    shown, star = [], False
    for parameter, after in pairwise([*parameters, None]):
        assert parameter is not None
        kind = parameter.kind
        if kind is parameter.KEYWORD_ONLY and not star:
            shown.append("*")
            star = True
        star = star or kind is parameter.VAR_POSITIONAL
        stars = "*" * ((kind is parameter.VAR_POSITIONAL) + 2 * (kind is parameter.VAR_KEYWORD))
        text = stars + parameter.name
        if parameter.annotation is not parameter.empty:
            text += f": {_annotation(parameter.annotation)}"
        if parameter.default is not parameter.empty:
            default = repr(parameter.default)
            text += f" = {'...' if '<' in default or 'NOTHING' in default or len(default) > 60 else default}"
        shown.append(text)
        if kind is parameter.POSITIONAL_ONLY and (after is None or after.kind is not kind):
            shown.append("/")
    arrow = f" -> {_annotation(returned)}" if returned is not None else ""
    line = f"{name}({', '.join(shown)}){arrow}"
    return line if len(line) <= 88 else f"{name}(\n    " + ",\n    ".join(shown) + f",\n){arrow}"
