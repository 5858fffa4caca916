"""Measures Crosswalk against floors and peers, all in one run: ``python -m benchmarks`` (from the project's root).

Times are CPU seconds, medians over interleaved rounds; a ratio compares two medians of the same run. The floor
of a stream is ``orjson.loads`` on its lines, already split; of a body, ``orjson.loads`` on it. *Least* is what the least
costs that can be done, see ``least.py``. The last table has the rows that are above their bar, and what stands in the way.
"""

from __future__ import annotations

import argparse

from benchmarks import (
    answers,
    batch,
    bodies,
    cores,
    gateway,
    long,
    mapping,
    memory,
    observe,
    responses,
    service,
    start,
    streams,
    structured,
    values,
)
from benchmarks.measure import print_above


def main() -> None:
    """Run what was asked for, print its tables, and then what is above its bar."""
    parts = {
        "streams": streams.main,
        "mapping": mapping.main,
        "bodies": bodies.main,
        "batch": batch.main,
        "cores": cores.main,
        "responses": responses.main,
        "service": service.main,
        "gateway": gateway.main,
        "observe": observe.main,
        "structured": structured.main,
        "answers": answers.main,
        "values": values.main,
        "long": long.main,
        "memory": memory.main,
        "start": start.main,
    }
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("part", nargs="*", choices=[[], *parts], help="which tables; all by default")
    parser.add_argument("--rounds", type=int, default=15, help="how often each thing is measured (15)")
    given = parser.parse_args()
    above = [
        (name, row) for name in given.part or parts for row in parts[name](given.rounds) or ()
    ]  # a part without a bar gives None
    print_above(above)


if __name__ == "__main__":
    main()
