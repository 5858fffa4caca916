"""What importing costs: time and modules, in fresh interpreters."""

from __future__ import annotations

import statistics
import subprocess
import sys

from benchmarks.measure import print_table

_PROGRAM = """
import sys, time
before, started = set(sys.modules), time.process_time()
{statement}
spent = time.process_time() - started
new = set(sys.modules) - before
watched = {{"httpx", "httpx2", "rich", "pytest", "crosswalk_ollama", "crosswalk_vllm"}}
heavy = sorted(name for name in new if name.split(".")[0] in watched)
print(spent, len(new), ",".join(heavy[:3]) or "-")
"""

STATEMENTS = (
    "import crosswalk",
    "from crosswalk import ChatResponse",
    "from crosswalk import normalize",
    "from crosswalk import to_json",
    "from crosswalk import registry; registry.mapper('ollama')",
    "from crosswalk.cli import main",
)


def main(rounds: int) -> None:
    """Print the table."""
    rows = []
    for statement in STATEMENTS:
        found = []
        for _ in range(rounds):
            program = _PROGRAM.format(statement=statement)
            ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
            found.append(ran.stdout.split())
        spent = statistics.median(float(one[0]) for one in found)
        rows.append((statement, f"{spent * 1e3:.1f}", found[0][1], found[0][2]))
    print_table("import", ("", "ms", "modules", "plugins, HTTP, terminal"), rows)
