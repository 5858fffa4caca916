"""The mutants of plugins that measure the kit: made by a rule, chosen by a seed."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[3] / "scripts"))
import plugin_mutants

SOURCE = '''
"""A docstring."""
from typing import Any

WORDS = {"end": 1.5}

def read(event: "Any") -> "str":
    """Another."""
    if event == 0:
        yield event
    return take(event, "text", whole=True)

def write(data): return b"frame"
'''


def test_what_cannot_be_wrong_is_not_changed() -> None:
    """Docstrings, imports, types, and the function that writes frames for the kit."""
    made = {(name, ast.unparse(node)) for node, name, _ in plugin_mutants.mutants(ast.parse(SOURCE))}
    assert made == {
        ("change text", "'end'"),
        ("change constant", "1.5"),
        ("leave out statement", "WORDS = {'end': 1.5}"),
        ("negate condition", "if event == 0:\n    yield event"),
        ("turn comparison", "event == 0"),
        ("change constant", "0"),
        ("leave out statement", "yield event"),
        ("return None", "return take(event, 'text', whole=True)"),
        ("leave out argument", "take(event, 'text', whole=True)"),
        ("change text", "'text'"),
        ("change constant", "True"),
    }


@pytest.mark.untraced
def test_a_seed_chooses_the_same_mutants_again() -> None:
    first = plugin_mutants.chosen(4, 7, ["rows", "coded"])
    assert (
        first
        == plugin_mutants.chosen(4, 7, ["rows", "coded"])
        != plugin_mutants.chosen(4, 8, ["rows", "coded"])
    )
    assert all(": " in plugin_mutants.described(*mutant) for mutant in first)


@pytest.mark.sweep
def test_a_mutant_is_found_by_what_the_right_plugin_does_not_have() -> None:
    number = next(
        number
        for number, (node, name, _) in enumerate(
            plugin_mutants.mutants(ast.parse(plugin_mutants.source_of("coded")))
        )
        if name == "change text" and ast.unparse(node) == "'A'"  # the word of a finish reason
    )
    assert plugin_mutants.found_by("coded", number, stated=True, every=False)


def test_a_law_names_what_it_alone_finds() -> None:
    found = [("a", {"nothing lost": "…", "digits kept": "…"}), ("b", {"digits kept": "…"}), ("c", {})]
    lines = [*plugin_mutants.laws(found)]
    assert "nothing lost: finds 1, alone 0" in lines
    assert "digits kept: finds 2, alone 1, as b" in lines
    assert "times kept: finds 0, alone 0" in lines


@pytest.mark.untraced
def test_every_law_that_finds_a_planted_mistake_is_named() -> None:
    mistake = ("rows", "rows: thoughts are the text")
    first, stated = plugin_mutants.result_of(mistake, every=True)
    assert {"kinds are told apart", "text as it was sent"} <= {*first}
    assert [*stated] == ["as stated"]
    assert plugin_mutants.described(*mistake) == mistake[1]
