"""A public class has one home: a reader who looks for its name finds one class."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent
PLACES = ("core", "contrib/crosswalk_batch", "contrib/crosswalk_observe", "contrib/crosswalk_serve")


def test_a_public_class_has_one_home() -> None:
    homes: defaultdict[str, list[str]] = defaultdict(list)
    for file in (file for place in PLACES for file in sorted((ROOT / place).rglob("*.py"))):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(f"{file.relative_to(ROOT)}:{node.lineno}")
    assert len(homes) > 700
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}
