"""The size of the house, and one home for a public class: a reader who looks for its name finds one class."""

from __future__ import annotations

import ast
import runpy
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent
COUNT = runpy.run_path(str(ROOT / "scripts/lines.py"))
PLACES = ("core", "contrib/crosswalk_batch", "contrib/crosswalk_observe", "contrib/crosswalk_serve")


def test_a_public_class_has_one_home() -> None:
    homes: defaultdict[str, list[str]] = defaultdict(list)
    for file in (file for place in PLACES for file in sorted((ROOT / place).rglob("*.py"))):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(f"{file.relative_to(ROOT)}:{node.lineno}")
    assert len(homes) > 700
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}


def test_a_module_is_a_subject_that_can_be_read() -> None:
    modules = [file for top in COUNT["SHIPPED"] for file in sorted((ROOT / top).rglob("*.py"))]
    assert 200 < len(modules) <= 280
    texts = {file.relative_to(ROOT): file.read_text("utf-8") for file in modules}
    counts = {name: COUNT["code_lines"](text) for name, text in texts.items() if text.count("\n") > 700}
    assert {name: count for name, count in counts.items() if count > 700} == {}
