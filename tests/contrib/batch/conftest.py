from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crosswalk.cli import main


class Done(NamedTuple):
    """The result of a command line."""

    status: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture
def cores() -> int:
    """How many cores a command finds. Each process that it starts on a second one imports everything anew."""
    return 1


@pytest.fixture
def run(
    cores: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Run:
    """Runs a command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)

    def run(*argv: object) -> Done:
        status = main([str(argument) for argument in argv])
        return Done(status, *capsys.readouterr())

    return run


def ollama(content: str = "Hi", **more: Any) -> dict[str, Any]:
    """A body of Ollama's chat."""
    return {
        "model": "m",
        "created_at": "2026-11-20T10:00:00Z",
        "message": {"role": "assistant", "content": content},
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 3,
        "eval_count": 2,
    } | more


def record(number: int = 0, **more: Any) -> dict[str, Any]:
    """A record of a log."""
    return {"id": f"r{number}", "provider": "ollama", "body": ollama(f"Hi {number}")} | more


def lines(*records: Any) -> bytes:
    """A log of *records*."""
    return b"".join((one if type(one) is bytes else orjson.dumps(one)) + b"\n" for one in records)


def rows(folder: Path | str, kind: str = "responses") -> list[dict[str, Any]]:
    """The contents of the parts in the output *folder*."""
    parts = sorted((Path(folder) / kind).glob("*.parquet"))
    return [row for part in parts for row in pq.ParquetFile(part).read().to_pylist()]


def packed(data: bytes, kind: str) -> bytes:
    """*data* as gzip or zstd."""
    if kind == "gz":
        return gzip.compress(data)
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def contents(folder: Path | str) -> dict[str, bytes]:
    """Every file below *folder*."""
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            file = Path(place, name)
            found[file.relative_to(folder).as_posix()] = file.read_bytes()
    return found
