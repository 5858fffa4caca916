"""Measures the share of small faults that a room's tests find: ``python scripts/mutate.py --room mapping --count 30``.

A room is a folder of core/crosswalk. Each mutant is one change in one of its modules: a comparison turned, a condition
negated, a number one higher, a statement left out. Only the room's own tests run, on a copy of the tree.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


class Replacer(ast.NodeTransformer):
    """Replaces *old* by *new*."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old = old
        self.new = new

    def visit(self, node: ast.AST) -> ast.AST:
        """Return *new* for *old*, and any other node unchanged."""
        return self.new if node is self.old else super().generic_visit(node)


def mutants(tree: ast.Module) -> list[tuple[ast.AST, str, ast.AST]]:
    """Return every change of a function of a module: the node, a description of the change, and the new node."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    nodes = {id(node): node for function in functions for part in function.body for node in ast.walk(part)}
    return [(node, name, new) for node in nodes.values() for name, new in changes(node)]


def changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield the possible replacements of *node*, each with a name."""
    changed = copy.copy(node)
    if isinstance(changed, ast.Compare):
        changed.ops = [COMPARISONS[type(changed.ops[0])](), *changed.ops[1:]]
        yield "turn comparison", changed
    elif isinstance(changed, ast.BoolOp):
        changed.op = ast.And() if isinstance(changed.op, ast.Or) else ast.Or()
        yield "swap and/or", changed
    elif isinstance(changed, ast.If | ast.While | ast.IfExp):
        changed.test = ast.UnaryOp(ast.Not(), changed.test)
        yield "negate condition", changed
    elif isinstance(changed, ast.Constant) and type(changed.value) in (int, bool):
        value = changed.value
        changed.value = (not value) if type(value) is bool else int(value) + 1  # type: ignore[arg-type]
        yield "change constant", changed
    elif isinstance(changed, ast.BinOp) and isinstance(changed.op, ast.Add | ast.Sub):
        changed.op = ast.Sub() if isinstance(changed.op, ast.Add) else ast.Add()
        yield "swap +/-", changed
    elif isinstance(changed, ast.Return) and changed.value is not None:
        changed.value = ast.Constant(None)
        yield "return None", changed
    elif isinstance(changed, ast.Assign | ast.AugAssign) or (
        isinstance(changed, ast.Expr) and isinstance(changed.value, ast.Call)
    ):
        yield "leave out statement", ast.Pass()


def run(tree: Path, tests: list[str], limit: float | None) -> bool:
    """Run the tests in *tree*. Return whether they pass within *limit* seconds."""
    paths = os.pathsep.join(str(tree / name) for name in ("core", "plugins", "contrib"))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    quiet = subprocess.DEVNULL
    try:
        done = subprocess.run(command, cwd=tree, env=environment, stdout=quiet, stderr=quiet, timeout=limit)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def main() -> int:
    """Print a line for each mutant, then the rate. Unknown arguments are passed to pytest."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--room", required=True, help="a folder of core/crosswalk")
    parser.add_argument("--count", type=int, default=30, help="how many mutants")
    parser.add_argument("--seed", type=int, default=1)
    options, more = parser.parse_known_args()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        hidden = shutil.ignore_patterns(".*", "__pycache__", "docs", "site", "dist")
        shutil.copytree(ROOT, tree, ignore=hidden, symlinks=True)
        tests = [f"tests/core/{options.room}", *more]
        started = time.monotonic()
        if not run(tree, tests, None):
            print("the tests fail without any mutant", file=sys.stderr)
            return 2
        limit = 3 * (time.monotonic() - started) + 10
        modules = sorted((tree / "core/crosswalk" / options.room).rglob("*.py"))
        everything = [
            (path, number) for path in modules for number in range(len(mutants(ast.parse(path.read_text()))))
        ]
        chosen = rng.sample(everything, min(options.count, len(everything)))
        killed = 0
        for path, number in chosen:
            source = path.read_text()
            module = ast.parse(source)
            old, name, new = mutants(module)[number]
            line = getattr(old, "lineno", 0)
            path.write_text(ast.unparse(ast.fix_missing_locations(Replacer(old, new).visit(module))))
            survived = run(tree, tests, limit)
            path.write_text(source)
            killed += not survived
            word = "SURVIVED" if survived else "killed"
            print(f"{word:8} {path.relative_to(tree)}:{line} {name}", flush=True)
        print(f"{options.room}: {killed} of {len(chosen)} killed, {len(everything)} mutants possible")
    return 0


if __name__ == "__main__":
    sys.exit(main())
