"""Writes README's footprint table: ``python scripts/footprint.py``. It installs each library alone, so it needs PyPI.

Each has an environment of its own, with what it needs and nothing else. An import is measured in fresh processes, with
bytecode cached, as the median of nine: CPU time and the most memory that the process held, without those of Python alone.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import attrs

ROOT: Final = Path(__file__).parents[1]
LIBRARIES: Final = {
    "crosswalk-llm": (str(ROOT), "from crosswalk import normalize, SyncLLMService"),
    "lm15": ("lm15", "import lm15"),
    "anthropic": ("anthropic", "import anthropic"),
    "openai": ("openai", "import openai"),
    "pydantic-ai-slim": ("pydantic-ai-slim[openai]", "from pydantic_ai import Agent"),
    "litellm": ("litellm", "import litellm"),
}
"""What to install and to import, by the name of the distribution."""
_RUNS: Final = 9
_PROGRAM: Final = """
from resource import RUSAGE_SELF, getrusage
import sys
{statement}
used = getrusage(RUSAGE_SELF)
print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, len(sys.modules))
"""
_SIZES: Final = """
from importlib.metadata import distributions
from pathlib import Path
ours = [one for one in distributions() if one.name not in ("pip", "setuptools")]
files = [str(one.locate_file(file)) for one in ours for file in one.files or () if not str(file).endswith(".pyc")]
print(len(ours), sum(Path(file).stat().st_size for file in files if Path(file).is_file()))
print({one.name.lower(): one.version for one in ours}[NAME])
"""


@attrs.frozen
class Footprint:
    """What a library needs: itself as a wheel, all that is installed, and an import of it."""

    version: str
    wheel: int
    distributions: int
    installed: int
    milliseconds: float
    megabytes: float


def footprint(name: str, requirement: str, statement: str, folder: Path) -> Footprint:
    """Install *requirement* below *folder*, and measure it."""
    subprocess.run([sys.executable, "-m", "venv", folder / name], check=True)
    python = str(folder / name / "bin" / "python")
    wheels = folder / f"{name}-wheels"
    _run(python, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(wheels), requirement.partition("[")[0])
    _run(python, "-m", "pip", "install", "-q", requirement)
    counted, total, version = _run(python, "-I", "-c", _SIZES.replace("NAME", repr(name))).split()
    runs = [_import(python, statement) for _ in range(_RUNS + 1)][1:]
    floors = [_import(python, "pass") for _ in range(_RUNS + 1)][1:]
    seconds, memory = (
        statistics.median(column) - statistics.median(floor)
        for column, floor in zip(zip(*runs, strict=True), zip(*floors, strict=True), strict=True)
    )
    size = sum(file.stat().st_size for file in wheels.iterdir())
    return Footprint(version, size, int(counted), int(total), seconds * 1000, memory)


def _import(python: str, statement: str) -> tuple[float, float]:
    seconds, memory, _ = _run(python, "-I", "-c", _PROGRAM.format(statement=statement)).split()
    return float(seconds), float(memory)


def _run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def table(rows: dict[str, Footprint]) -> str:
    """Return *rows* as a table of Markdown."""
    lines = [
        "| | wheel | installed, with what it needs | first import | memory of it |",
        "|---|---|---|---|---|",
    ]
    for name, row in rows.items():
        version, others = row.version.partition(".dev")[0], f"{row.distributions - 1} others"
        lines.append(
            f"| {name} {version} | {row.wheel / 1e6:.1f} MB | {row.installed / 1e6:.0f} MB, {others} "
            f"| {row.milliseconds:.0f} ms | {row.megabytes:.0f} MiB |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure all libraries and rewrite the table."""
    with tempfile.TemporaryDirectory() as folder:
        rows = {name: footprint(name, *what, Path(folder)) for name, what in LIBRARIES.items()}
    page = ROOT / "README.md"
    marks = r"(<!-- footprint -->\n\n).*?(<!-- end of footprint -->)"
    text, count = re.subn(
        marks, lambda found: f"{found[1]}{table(rows)}\n{found[2]}", page.read_text(), flags=re.DOTALL
    )
    assert count == 1, f"{page} has no place for the table"
    page.write_text(text)
    print(table(rows))


if __name__ == "__main__":
    main()
