"""``crosswalk.plugins``: everything that the author of a plugin needs, and nothing that reading does not."""

from __future__ import annotations

import ast
import builtins
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import crosswalk.plugins as face

ROOT = Path(__file__).parents[3]
APPLICATIONS = {"crosswalk_batch", "crosswalk_observe", "crosswalk_serve"}
"""No plugins: import-linter says what these may use."""
SHIPPED = sorted(
    file
    for folder in ("plugins", "contrib")
    for file in (ROOT / folder).glob("crosswalk_*/**/*.py")
    if APPLICATIONS.isdisjoint(file.parts)
)


@pytest.mark.untraced
@pytest.mark.parametrize("name", face.__all__)
def test_every_name_is_there(name: str) -> None:
    """Also those that are loaded when they are first used."""
    assert getattr(face, name) is not None


def test_the_names_are_told_without_helpers() -> None:
    """To editors and to a star, also those that are loaded when they are first used."""
    assert {"ChatRequest", "take_string", "responses"} <= set(face.__all__) <= set(dir(face))
    assert {"TYPE_CHECKING", "face", "prune"}.isdisjoint(face.__all__)
    with pytest.raises(AttributeError, match="no attribute 'residue'"):
        face.residue  # noqa: B018


EXAMPLES = {"Authorization", "Class", "YourNotes"}
"""What the page names that is nobody's."""
HOOKS_PAGE, NAMES_PAGE = (
    (ROOT / f"docs/{name}.md").read_text(encoding="utf-8") for name in ("hooks", "plugin-tools")
)


def test_the_page_has_every_name_once_and_thirty_come_first() -> None:
    """In a table with a row for each purpose, so that an author need not read 240 names."""
    table = NAMES_PAGE.partition("## Names")[2].partition("\n## ")[0]
    rows = [
        re.findall(r"`(\w+)`", line.split("|")[2]) for line in table.splitlines() if line.startswith("| ")
    ][1:]
    names = [name for row in rows for name in row]
    assert len(rows[0]) <= 30
    assert sorted(names) == sorted(set(names)) == sorted(face.__all__)


def test_the_page_names_only_what_can_be_imported() -> None:
    """Each class, error and function in code, outside of examples: from ``crosswalk.plugins``, or a package that is named."""
    text = re.sub(r"```python.*?```", "", HOOKS_PAGE + NAMES_PAGE, flags=re.DOTALL)
    spans = " ".join(re.findall(r"`([^`]+)`", text))
    modules = map(import_module, ("crosswalk", "crosswalk.plugin", "crosswalk.service"))
    places = [face, *modules, face.MappingState, face.ProviderHooks, builtins]
    classes = set(re.findall(r"(?<![\w.\"])[A-Z]\w*[a-z]\w*", spans)) - EXAMPLES
    functions = set(re.findall(r"(?<![\w.])(?:take|accept|look_at|build)_[a-z]\w*", spans))
    assert {name for name in classes | functions if not any(hasattr(one, name) for one in places)} == set()


@pytest.mark.parametrize("provider", ["crosswalk_ollama", "crosswalk_vllm"])
def test_reading_loads_no_service(provider: str) -> None:
    """A plugin that only reads costs neither requests nor a transport."""
    code = f"import sys, {provider}; print(*(m for m in sys.modules if m.startswith('crosswalk.service')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.untraced
@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_the_shipped_plugins_use_what_a_stranger_may_use(file: Path) -> None:
    """They import ``crosswalk.plugins`` and nothing else of Crosswalk, wherever the import is."""
    own = file.relative_to(ROOT).parts[1]
    for node in ast.walk(ast.parse(file.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        for name in names:
            if name.split(".")[0].startswith("crosswalk"):
                assert name == "crosswalk.plugins" or name.split(".")[0] == own


@pytest.mark.parametrize(
    "make",
    [lambda: face.ResponseDelta(0, "text"), lambda: face.ProviderInfo("T"), lambda: face.Access("u")],  # type: ignore[call-arg]
)
def test_what_may_grow_takes_its_fields_by_name(make: Callable[[], Any]) -> None:
    """So that a field that comes in between breaks no plugin."""
    with pytest.raises(TypeError, match="positional argument"):
        make()
