"""The cost of the first answer of a fresh process, and of importing: CPU time and modules, in separate interpreters.

The floor is Python's own start with the libraries that reading needs: orjson, attrs, pluggy. Bytecode is cached in a
separate folder, as for an installed package.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile

from benchmarks.measure import Above, is_met, print_table
from benchmarks.service import body_of

_PROGRAM = """
import sys
{statement}
sys.stdout = sys.__stdout__
from resource import RUSAGE_SELF, getrusage
used = getrusage(RUSAGE_SELF)
watched = ["asyncio", "cattrs", "crosswalk.service", "email", "httpcore2", "httpx2", "rich", "yaml", "zipfile"]
print(used.ru_utime + used.ru_stime, len(sys.modules), ",".join(name for name in watched if name in sys.modules) or "-")
"""
IMPORT_BAR = 0.5
"""Times the floor: importing the package loads nothing (P7)."""
FIRST_USE_BAR = 2.0
"""Times the floor: Crosswalk's own classes and hooks cost no more than the libraries that make them."""
COMMAND_BAR = 1.5
"""Times the floor: a third of the command's cost before it was made light (4.7 times, with detection)."""

_SILENT = "import io; sys.stdout = io.TextIOWrapper(io.BytesIO())"
_COMMAND = "from crosswalk.cli import main; main()"
_BODY = body_of("ollama", 400)

ROWS: tuple[tuple[str, str, float | None], ...] = (
    ("Python alone", "pass", None),
    ("floor: import orjson, attrs, pluggy", "import orjson, attrs, pluggy", None),
    ("and argparse, for a command", "import orjson, attrs, pluggy, argparse", None),
    ("import crosswalk", "import crosswalk", IMPORT_BAR),
    ("from crosswalk import ChatResponse", "from crosswalk import ChatResponse", None),
    ("from crosswalk import normalize", "from crosswalk import normalize", None),
    (
        "normalize(body, 'ollama')",
        f"from crosswalk import normalize; normalize({_BODY!r}, 'ollama')",
        FIRST_USE_BAR,
    ),
    ("normalize(body)", f"from crosswalk import normalize; normalize({_BODY!r})", FIRST_USE_BAR),
    ("from crosswalk import to_json", "from crosswalk import to_json", None),
    ("from crosswalk.service import LLMService", "from crosswalk.service import LLMService", None),
    (
        "crosswalk normalize --provider ollama FILE",
        f"{_SILENT}; sys.argv[1:] = ['normalize', '--provider', 'ollama', {{file!r}}]; {_COMMAND}",
        COMMAND_BAR,
    ),
    (
        "crosswalk normalize FILE",
        f"{_SILENT}; sys.argv[1:] = ['normalize', {{file!r}}]; {_COMMAND}",
        COMMAND_BAR,
    ),
    ("crosswalk providers", f"{_SILENT}; sys.argv[1:] = ['providers']; {_COMMAND}", None),
    ("crosswalk --version", f"{_SILENT}; sys.argv[1:] = ['--version']; {_COMMAND}", None),
)


def main(rounds: int) -> list[Above]:
    """Print the table. Return the rows that are above their bar."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "answer.response.json")
        with open(file, "wb") as body:
            body.write(_BODY)
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment |= {"PYTHONPYCACHEPREFIX": os.path.join(folder, "bytecode")}

        def ran(statement: str) -> list[str]:
            program = _PROGRAM.format(statement=statement.replace("{file!r}", repr(file)))
            command = [sys.executable, "-c", program]
            return subprocess.run(
                command, capture_output=True, text=True, check=True, env=environment
            ).stdout.split()

        found: dict[str, list[list[str]]] = {name: [] for name, _, _ in ROWS}
        for number in range(rounds + 1):
            for name, statement, _ in ROWS:
                told = ran(statement)
                if number:
                    found[name].append(told)
    spent = {name: statistics.median(float(one[0]) for one in told) for name, told in found.items()}
    floor = spent[ROWS[1][0]]
    rows, above = [], []
    for name, _, bar in ROWS:
        times = spent[name] / floor
        said = "" if bar is None else "met" if is_met(times, bar) else f"ABOVE {bar:g} x"
        if bar is not None and not is_met(times, bar):
            above.append(Above(name, times, bar))
        modules, heavy = found[name][0][1:]
        rows.append((name, f"{spent[name] * 1e3:.0f}", f"{times:.2f}", said, modules, heavy))
    header = ("", "CPU ms", "x floor", "bar", "modules", "heavy ones")
    print_table("a fresh process, Python's own start included", header, rows)
    return above
