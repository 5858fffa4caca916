"""A log to columns: the work of ``crosswalk batch`` on a piece of a log, against ``orjson.loads`` on the same lines.

``map`` is ``normalize_batch``, which returns columns. ``part`` is the whole work of a process on the piece: it is read,
cut, mapped and stored as Parquet. ``to_arrow`` and ``from_arrow`` are compared with ``to_json`` and ``from_json``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import orjson

from benchmarks.measure import medians, print_table
from benchmarks.wire_bodies import TEXTS
from crosswalk import ChatResponse, from_json, to_json
from crosswalk_batch import Options, from_arrow, normalize_batch, to_arrow
from crosswalk_batch.inputs import find_inputs
from crosswalk_batch.job import Job, Receipt, Task, perform
from crosswalk_batch.pieces import blocks, cut

SIZES = (400, 2_000, 10_000)
PROVIDERS = tuple(TEXTS)
_BYTES = 1_000_000


def log_of(size: int) -> bytes:
    """Return a log of a megabyte: bodies of *size* bytes, of each provider in turn."""
    lines = []
    for number in range(_BYTES // size):
        provider = PROVIDERS[number % len(PROVIDERS)]
        body = orjson.loads(TEXTS[provider].written(size + number % 50, number))
        lines.append(orjson.dumps({"id": f"r{number}", "provider": provider, "body": body}) + b"\n")
    return b"".join(lines)


def main(rounds: int) -> None:
    """Print the tables."""
    rows, stored = [], []
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            log = Path(folder, f"{size}.jsonl")
            log.write_bytes(log_of(size))
            (each,) = find_inputs([str(log)], Path(folder, "out"))
            (piece,) = cut(each, 10 * _BYTES)
            job = Job(folder=str(Path(folder, "out")), piece_bytes=10 * _BYTES)
            ((batch, _),) = blocks([piece], job.piece_bytes, job.column, Options())
            task = Task(job, Receipt(0, job.description(), "", 1, (piece,)), [piece])
            lines = log.read_bytes().splitlines()
            responses = from_arrow(normalize_batch(batch).responses)
            assert len(responses) == len(lines)
            texts = [to_json(response) for response in responses]
            table = to_arrow(responses)
            functions: dict[str, Callable[[], object]] = {
                "loads": lambda lines=lines: [orjson.loads(line) for line in lines],
                "map": lambda batch=batch: normalize_batch(batch),
                "part": lambda task=task: perform(task),
                "to_arrow": lambda responses=responses: to_arrow(responses),
                "to_json": lambda responses=responses: [to_json(one) for one in responses],
                "from_arrow": lambda table=table: from_arrow(table),
                "from_json": lambda texts=texts: [from_json(text, ChatResponse) for text in texts],
            }  # type: ignore[misc]
            took = medians(functions, rounds)
            floor = took["loads"]
            rows.append((f"{size} bytes", f"{took['map'] / floor:.1f}", f"{took['part'] / floor:.1f}"))
            stored.append(
                (
                    f"{size} bytes",
                    f"{took['to_arrow'] / took['to_json']:.1f}",
                    f"{took['from_arrow'] / took['from_json']:.1f}",
                )
            )
    print_table("A log to columns, times orjson.loads on its lines", ("body", "map", "part"), rows)
    print_table("Columns, times canonical JSON", ("body", "written", "read"), stored)
