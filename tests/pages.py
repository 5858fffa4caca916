"""The pages of the documentation, as tests read and run them.

The blocks of a page share a namespace and run in order, so a page is one test. In a console block a line of
``...`` matches any lines, and `` …`` at the end of a line the rest of it.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

from crosswalk.cli import main

__all__ = ["ROOT", "blocks", "environment", "pages", "run", "write_files"]

ROOT = Path(__file__).parent.parent


def pages() -> list[Path]:
    """README, CONTRIBUTING, CHANGELOG and everything in docs."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of *page* in *language*."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def write_files(page: Path, folder: Path) -> list[str]:
    """Write each file that *page* shows, a bold name above a block, into *folder*. Gives their names."""
    found = re.findall(
        r"^\*\*`([^`]+)`\*\*\n\n```\w+\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL
    )
    for name, content in found:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return [name for name, _ in found]


def environment(**changes: str) -> dict[str, str]:
    """The process's environment, where this interpreter's commands come first and print plain text.

    Without what pytest and coverage tell their own children, which these commands are not.
    """
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COVERAGE_"))
    }
    return {**inherited, "PATH": path, "COLUMNS": "100", "NO_COLOR": "1", **changes}


def run(page: Path) -> None:
    """Run the Python and console blocks of *page*.

    Raises:
        sybil.example.SybilFailure: a command prints something else than the page shows.
        Exception: what a Python block raises.
    """
    sybil = Sybil(
        parsers=[PythonCodeBlockParser(), CodeBlockParser(language="console", evaluator=_run_console)]
    )
    for example in sybil.parse(page).examples():
        example.evaluate()


def _run_console(example: Example) -> str | None:
    for part in re.split(r"^\$ ", str(example.parsed), flags=re.MULTILINE)[1:]:
        command, _, expected = re.sub(r"\\\n\s*", "", part).partition("\n")
        status, printed = _printed(command)
        pieces = re.split(r"^ *\.\.\.$", expected, flags=re.MULTILINE)
        shown = [re.sub(r" +…$", "\0", piece.strip("\n"), flags=re.MULTILINE) for piece in pieces]
        pattern = "(?s:.*)".join(re.escape(piece).replace("\0", r"\s.*") for piece in shown)
        if not re.fullmatch(pattern, printed.strip("\n")):
            return f"$ {command}\nprinted (exit status {status}):\n{printed}\nexpected:\n{expected}"
    return None


def _printed(command: str) -> tuple[int, str]:
    """The exit status of *command* and what it prints. What needs no shell is called here, since a process takes long to start."""
    words = shlex.split(command)
    if words[0] != "crosswalk" or re.search(r"[|&;<>$*?]", command):
        done = subprocess.run(
            command, shell=True, env=environment(), capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout + done.stderr
    outputs = io.BytesIO(), io.BytesIO()
    streams = [io.TextIOWrapper(one, "utf-8", write_through=True) for one in outputs]
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(streams[0]), redirect_stderr(streams[1]):
        for name in ("COLUMNS", "NO_COLOR"):
            patch.setenv(name, environment()[name])
        status = main(words[1:])
    return status, "".join(one.getvalue().decode() for one in outputs)
