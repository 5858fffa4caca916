"""Commands of other packages: found, listed without being imported, run. A broken one is one line."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from crosswalk.cli.parser import installed_commands
from crosswalk.cli.stored import keeper_of

from .conftest import Done

Run = Callable[..., Done]
Install = Callable[..., None]

GOOD = '''
"""Count kelp."""
from crosswalk.commands import FAILED, OK, UsageError, say

def add_arguments(parser):
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--deep", action="store_true")

def run(arguments):
    if not arguments.paths:
        raise UsageError("nowhere")
    say(f"{arguments.paths} {arguments.deep} {arguments.settings.default_provider}")
    return FAILED if arguments.deep else OK
'''


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Installs a distribution with one module and its entry points."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def install(
        source: str, name: str = "kelp", group: str = "crosswalk.commands", module: str = "kelp_cli"
    ) -> None:
        (tmp_path / f"{module}.py").write_text(source)
        monkeypatch.delitem(sys.modules, module, raising=False)
        metadata = tmp_path / f"crosswalk_{module}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: crosswalk-kelp\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[{group}]\n{name} = {module}\n")

    return install


def test_a_stranger_s_command_runs(run: Run, install: Install) -> None:
    install(GOOD)
    assert run("kelp", "a", "--deep", "b") == (1, "", "['a', 'b'] True None\n")
    assert run("kelp", "a").status == 0
    assert run("kelp") == (2, "", "crosswalk kelp: nowhere\n")
    assert "Count kelp." in run("kelp", "--help").out
    wrong = run("kelp", "--dep")
    assert (wrong.status, "did you mean '--deep'?" in wrong.err) == (2, True)


def test_it_is_listed_without_being_imported(run: Run, install: Install) -> None:
    install("raise SystemError('imported')")
    done = run("--help")
    assert done.status == 0
    assert re.search(r"^ +kelp +from crosswalk-kelp$", done.out, re.MULTILINE)
    assert "did you mean 'kelp'?" in run("klep").err
    assert "kelp_cli" not in sys.modules


def test_our_own_commands_cannot_be_replaced(run: Run, install: Install) -> None:
    before = run("--help").out
    install(GOOD, name="providers")
    assert "ollama" in run("providers").out
    assert run("--help").out == before


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        (
            "import a_module_that_is_not_there",
            "ModuleNotFoundError: No module named 'a_module_that_is_not_there'",
        ),
        ("x = = 3", "SyntaxError: invalid syntax"),
        ("def run(arguments): return 0", "it has no add_arguments() and run()"),
        ("run = add_arguments = 3", "it has no add_arguments() and run()"),
        (
            "def add_arguments(parser): 1 / 0\ndef run(arguments): return 0",
            "ZeroDivisionError: division by zero",
        ),
        ("def add_arguments(parser): pass\ndef run(arguments): raise KeyError('a\\nb')", "KeyError: 'a"),
        ("def add_arguments(parser): pass\ndef run(arguments): return 'fine'", "ValueError: invalid literal"),
    ],
)
def test_a_broken_one_is_one_line(run: Run, install: Install, source: str, cause: str) -> None:
    install(source)
    done = run("kelp")
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("crosswalk kelp: the command of crosswalk-kelp is broken: ")
    assert cause in done.err
    assert done.err.count("\n") == 1
    assert run("providers").status == 0


@pytest.mark.parametrize(
    ("source", "status", "said"),
    [
        ("def add_arguments(parser): raise ConfigurationError('no shelf')\ndef run(arguments): pass", 2, "crosswalk: no shelf\n"),
        ("def add_arguments(parser): pass\ndef run(arguments): raise ConfigurationError('no shelf')", 2, "crosswalk kelp: no shelf\n"),
        ("def add_arguments(parser): pass\ndef run(arguments): raise ServerError('no tide')", 1, "crosswalk kelp: ServerError: no tide\n"),
        ("def add_arguments(parser): pass\ndef run(arguments): raise FramingError('no line')", 1, "crosswalk kelp: FramingError: no line\n"),
    ],
)  # fmt: skip
def test_crosswalks_own_error_is_not_the_packages_fault(
    run: Run, install: Install, source: str, status: int, said: str
) -> None:
    install(f"from crosswalk.errors import ConfigurationError, FramingError, ServerError\n{source}")
    assert run("kelp") == (status, "", said)


def test_of_two_with_one_name_the_first_counts(install: Install) -> None:
    install(GOOD)
    install(GOOD, module="other_kelp")
    assert list(installed_commands()).count("kelp") == 1


KEEPER = """
def compare(folder, arguments, comparison):
    comparison.add_same(3)
    return len(arguments.paths)
"""


def test_a_stranger_s_store_is_compared(run: Run, install: Install, tmp_path: Path) -> None:
    install(KEEPER, name="kelp.db", group="crosswalk.stored")
    (tmp_path / "store").mkdir()
    assert keeper_of(tmp_path / "store") is None
    (tmp_path / "store/kelp.db").write_bytes(b"")
    assert run("diff", "--stored", "store").out == "3 compared: 0 different, 3 the same\n"
    done = run("diff", "x", "--stored", "store")
    assert (done.status, done.out) == (1, "3 compared: 0 different, 3 the same; 1 could not be compared\n")


def test_a_broken_store_is_one_line(run: Run, install: Install, tmp_path: Path) -> None:
    install("import nothing_of_that_name", name="kelp.db", group="crosswalk.stored")
    (tmp_path / "kelp.db").write_bytes(b"")
    done = run("diff", "--stored", str(tmp_path))
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert "crosswalk-kelp is broken: ModuleNotFoundError" in done.err
