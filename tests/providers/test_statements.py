"""The statements about the project's own captures, and that the shipped providers agree with them."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "scripts"))
import statements
from crosswalk.plugin.registry import registry
from crosswalk.testing import check_capture, load_captures

FOLDERS = [folder for folder in sorted(statements.CAPTURES.iterdir()) if folder.is_dir()]
FEWEST = 5


@pytest.mark.untraced
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_shipped_provider_agrees_with_the_statements(folder: Path) -> None:
    mapper, captures = registry.mapper(folder.name), load_captures(folder)
    stated = [capture for capture in captures if capture.says is not None]
    assert len(stated) >= (len(captures) if folder.name in statements.ALL_OF else min(FEWEST, len(captures)))
    problems = [problem for one in stated for problem in check_capture(mapper, one, checks=["as stated"])]
    assert problems == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_script_writes_the_statements(folder: Path) -> None:
    for entry in statements.manifest(folder):
        file = folder / entry["file"]
        case = file.name.partition(".")[0]
        own = folder / f"{case}.says.json"
        written = statements.statement_of(f"{folder.name}/{case}", file.read_bytes(), entry)
        assert written == (json.loads(own.read_bytes()) if own.exists() else None), own


def test_the_script_knows_nothing_of_the_mappings() -> None:
    tree = ast.parse(Path(statements.__file__).read_bytes())
    imported = {
        name.name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([ast.alias(node.module or "")] if isinstance(node, ast.ImportFrom) else node.names)
    }
    assert imported == {"__future__", "collections", "datetime", "json", "pathlib", "sys", "typing"}
