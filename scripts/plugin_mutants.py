"""Measures the share of small faults of a plugin that the kit finds: ``python scripts/plugin_mutants.py --seed 1``.

The plugins are those of ``tests/planted``, which stand on ``crosswalk.plugins`` alone, as a stranger's does, with the
recordings and statements there. Each mutant is one change that nobody has chosen: a constant is another, a comparison is
turned, a condition is negated, an argument or a statement is left out. A mutant that cannot be registered is not counted.
A mutant is found if the kit reports anything that it does not report of the right plugin. ``--laws`` also lists, for each
check, how many it finds, and how many nothing else finds. ``--planted`` takes the planted mistakes in place of mutants.
"""

from __future__ import annotations

import argparse
import ast
import copy
import random
import signal
import sys
import types
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import attrs

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests")]

from crosswalk.plugin.registry import Registry  # noqa: E402
from crosswalk.testing import CHECKS, Capture, Problem, check_capture, check_pair, pairs  # noqa: E402
from mutate import Replacer, changes  # noqa: E402
from planted.mistakes import MISTAKES  # noqa: E402
from planted.more_mistakes import MORE_MISTAKES  # noqa: E402
from planted.more_recordings import MORE_RECORDINGS  # noqa: E402
from planted.recordings import RECORDINGS  # noqa: E402

ALL_RECORDINGS: Final = {**RECORDINGS, **MORE_RECORDINGS}
ALL_MISTAKES: Final = {str(one): one for one in (*MISTAKES, *MORE_MISTAKES)}
FOR_EVER: Final = "it reads for ever"
_MOST_SECONDS: Final = 120
"""A mutant that reads for ever is found."""


def source_of(wire: str) -> str:
    """The source of the plugin of *wire*."""
    return Path(str(import_module(f"planted.{wire}").__file__)).read_text(encoding="utf-8")


def mutants(tree: ast.Module) -> list[tuple[ast.AST, str, ast.AST]]:
    """Return every change of a plugin's module: the node, a description of the change, and the new node."""
    every = [
        (node, name, new) for node in _nodes(tree) for name, new in (*changes(node), *_more_changes(node))
    ]
    return [one for one in every if ast.dump(one[0]) != ast.dump(one[2])]


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes under *node* that a change can make wrong: no import, no docstring and no type."""
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            is_docstring = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
            is_import = isinstance(child, ast.Import | ast.ImportFrom)
            is_writer = (
                isinstance(child, ast.FunctionDef) and child.name == "write"
            )  # for the kit, not for readers
            if not isinstance(child, ast.AST) or is_docstring or is_import or is_writer:
                continue
            if name not in ("annotation", "returns", "decorator_list", "bases"):
                yield child
                yield from _nodes(child)


def _more_changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield the changes of *node* that a plugin may have, and ``scripts/mutate.py`` does not make."""
    changed = copy.copy(node)
    if isinstance(changed, ast.Constant) and isinstance(changed.value, str) and changed.value:
        changed.value = f"{changed.value}x"
        yield "change text", changed
    elif isinstance(changed, ast.Constant) and type(changed.value) is float:
        changed.value *= 2
        yield "change constant", changed
    elif isinstance(changed, ast.Call) and (changed.args or changed.keywords):
        if changed.keywords:
            changed.keywords = changed.keywords[:-1]
        else:
            changed.args = changed.args[:-1]
        yield "leave out argument", changed
    elif isinstance(changed, ast.Expr) and isinstance(changed.value, ast.Yield | ast.YieldFrom):
        yield "leave out statement", ast.Expr(ast.YieldFrom(ast.Tuple([], ast.Load())))


def plugin_of(wire: str, number: int | str | None) -> Any:
    """The plugin of *wire* with mutant *number*, with the planted mistake of this name, or as it is."""
    if isinstance(number, str):
        return ALL_MISTAKES[number].plugin()
    module: Any = ast.parse(source_of(wire))
    if number is not None:
        old, _, new = mutants(module)[number]
        module = Replacer(old, new).visit(module)
    mutant = types.ModuleType(f"planted.{wire}")
    exec(compile(ast.fix_missing_locations(module), f"{wire}.py", "exec"), vars(mutant))
    return mutant.plugin


def problems(wire: str, number: int | str | None, *, stated: bool) -> Iterator[Problem]:
    """The kit's findings about a plugin, with the statements about its recordings or without them."""
    registry = Registry(installed=[], environ={})
    registry.register(plugin_of(wire, number), wire)
    mapper, write = registry.mapper(wire), getattr(import_module(f"planted.{wire}"), "write", None)
    for capture in (captures := captures_of(wire, stated=stated)):
        yield from check_capture(mapper, capture, write=write, others=captures)
    for pair in pairs(captures):
        yield from check_pair(mapper, *pair)


def captures_of(wire: str, *, stated: bool) -> list[Capture]:
    """The recordings of *wire*."""
    recordings = ALL_RECORDINGS[wire]
    return [attrs.evolve(one.capture, says=one.says) if stated else one.capture for one in recordings]


@cache
def _usual(wire: str, *, stated: bool) -> frozenset[str]:
    return frozenset(map(str, problems(wire, None, stated=stated)))


def found_by(wire: str, number: int | str, *, stated: bool, every: bool) -> dict[str, str]:
    """Return the checks that find the mutant, *every* one or the first, each with a problem that the right plugin lacks."""
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    usual_problems, found = _usual(wire, stated=stated), dict[str, str]()
    signal.alarm(_MOST_SECONDS)
    try:
        for problem in problems(wire, number, stated=stated):
            if str(problem) not in usual_problems:
                found.setdefault(problem.check, str(problem))
                if not every:
                    break
    except KeyboardInterrupt:
        found.setdefault(FOR_EVER, FOR_EVER)
    except Exception as error:
        found.setdefault("the kit fails", f"the kit fails with {type(error).__name__}")
    finally:
        signal.alarm(0)
    return found


def result_of(mutant: tuple[str, int | str], *, every: bool = False) -> tuple[dict[str, str], dict[str, str]]:
    """The checks that find *mutant* without statements, and with them: *every* one, or the first."""
    found = [found_by(*mutant, stated=stated, every=every and not stated) for stated in (False, True)]
    return found[0], found[1]


def chosen(count: int, seed: int, wires: list[str]) -> list[tuple[str, int]]:
    """The mutants to try, by wire and number, those left out that cannot be registered."""
    everything = [(wire, n) for wire in wires for n in range(len(mutants(ast.parse(source_of(wire)))))]
    random.Random(seed).shuffle(everything)
    usable: list[tuple[str, int]] = []
    for wire, number in everything:
        if len(usable) < count and _is_plugin(wire, number):
            usable.append((wire, number))
    return usable


def _is_plugin(wire: str, number: int) -> bool:
    registry = Registry(installed=[], environ={})
    try:
        registry.register(plugin_of(wire, number), wire)
        registry.mapper(wire)
    except Exception:
        return False
    return True


def described(wire: str, number: int | str) -> str:
    """The mutant in words."""
    if isinstance(number, str):
        return number
    old, name, _ = mutants(ast.parse(source_of(wire)))[number]
    return f"{wire}:{getattr(old, 'lineno', 0)} {name}: {' '.join(ast.unparse(old).split())[:90]}"


def laws(found: list[tuple[str, dict[str, str]]]) -> Iterator[str]:
    """Yield a line for each check: how many mutants it finds, how many nothing else finds, and the first of these."""
    counts, alone = Counter(law for _, checks in found for law in checks), dict[str, list[str]]()
    for mutant, checks in found:
        if len(checks) == 1:
            alone.setdefault(next(iter(checks)), []).append(mutant)
    for law in dict.fromkeys((*CHECKS, *counts)):
        only = alone.get(law, [])
        yield f"{law}: finds {counts[law]}, alone {len(only)}{f', as {only[0]}' if only else ''}"


def main() -> None:
    """Print a line for each mutant, then the shares that the kit finds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="how many mutants")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--laws", action="store_true", help="list what each check finds, and finds alone")
    parser.add_argument("--planted", action="store_true", help="the planted mistakes in place of mutants")
    parser.add_argument(
        "--wire", action="append", choices=[*ALL_RECORDINGS], help="only mutants of this plugin"
    )
    options = parser.parse_args()
    wires = options.wire or [*ALL_RECORDINGS]
    tried: list[tuple[str, Any]] = [
        (one.wire, str(one)) for one in ALL_MISTAKES.values() if one.wire in wires
    ]
    if not options.planted:
        tried = [*chosen(options.count, options.seed, wires)]
    results: list[tuple[dict[str, str], dict[str, str]]] = []
    with ProcessPoolExecutor(options.jobs) as executor:
        for mutant, result in zip(
            tried, executor.map(partial(result_of, every=options.laws), tried), strict=True
        ):
            results.append(result)
            word = "found" if result[0] else "STATED" if result[1] else "MISSED"
            print(
                f"{word:6} {described(*mutant)} | {next(iter((*result[0].values(), *result[1].values())), '')}",
                flush=True,
            )
    if options.laws:
        print(
            *laws([(described(*one), result[0]) for one, result in zip(tried, results, strict=True)]),
            sep="\n",
        )
    found = [sum(bool(result[stated]) for result in results) for stated in (0, 1)]
    shares = [f"{count} of {len(tried)} = {100 * count / len(tried):.1f} %" for count in found]
    print(f"found without statements: {shares[0]}; with statements: {shares[1]}")


if __name__ == "__main__":
    main()
