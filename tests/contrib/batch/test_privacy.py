"""Columns without content."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest

from crosswalk.cli.samples import SAMPLE_LOG
from crosswalk_batch import from_arrow

from .conftest import Run, lines, ollama, rows

SECRET = "sesame"
CALL = {"function": {"name": "open", "arguments": {"word": SECRET}}}
LOG: list[Any] = [
    {
        "provider": "ollama",
        "request": {"prompt": SECRET},
        "tags": [SECRET],
        "body": ollama(SECRET, extra=SECRET),
    },
    {
        "provider": "ollama",
        "body": {**ollama(), "message": {"role": "assistant", "content": "", "tool_calls": [CALL]}},
    },
    {"provider": "ollama", "status": 500, "body": {"error": SECRET}},
    {"provider": "ollama", "body": ollama(SECRET, done=False)},
    {"provider": 7, "body": SECRET},
]


def files(folder: str) -> bytes:
    """The contents of the parts in *folder*, uncompressed."""
    return b"".join(
        orjson.dumps(pq.read_table(file).to_pylist(), default=str) for file in Path(folder).rglob("*.parquet")
    )


@pytest.mark.untraced
@pytest.mark.parametrize("how", ["--no-content", "--hash-content"])
def test_no_content_is_anywhere(run: Run, how: str) -> None:
    Path("log.jsonl").write_bytes(lines(*LOG))
    run("batch", "log.jsonl", "--output", "with", "--raw")
    run("batch", "log.jsonl", "--output", "out", "--raw", how)
    assert SECRET.encode() in files("with")
    assert SECRET.encode() not in files("out")
    for kept in ("usage", "finish_reason", "model", "error_kind", "number"):
        assert [row[kept] for row in rows("out")] == [row[kept] for row in rows("with")]
    assert rows("out")[1]["message"]["tool_calls"][0]["name"] == "open"
    assert len(rows("out", "rejects")) == 2
    assert run("diff", "--stored", "out").status == 0
    assert [one.usage.total_tokens for one in from_arrow(pq.read_table("out/responses"))] == [5, 5, 0]


def test_equal_texts_have_equal_checksums(run: Run) -> None:
    Path("log.jsonl").write_bytes(lines(*LOG))
    run("batch", "log.jsonl", "--output", "out", "--hash-content")
    wanted = hashlib.sha256(SECRET.encode()).hexdigest()
    assert rows("out")[0]["message"]["content"] == wanted
    assert rows("out")[2]["error_message"] == wanted
    one, other = rows("out", "rejects")
    assert one["partial"]["message"]["content"] == wanted
    assert len(one["body"]) == len(other["line"]) == 64


def test_a_sample_without_content_gives_the_same_report(run: Run) -> None:
    run("batch", SAMPLE_LOG, "--output", "with", "--jobs", 1)
    run("batch", SAMPLE_LOG, "--output", "without", "--jobs", 1, "--hash-content")
    whole, bare = (
        run("report", folder, "--by", "vendor,model", "--csv").out for folder in ("with", "without")
    )
    drop = [line.split(",")[:12] for line in whole.splitlines()]
    assert [line.split(",")[:12] for line in bare.splitlines()] == drop


def test_some_columns_alone(run: Run) -> None:
    Path("log.jsonl").write_bytes(lines(*LOG))
    run("batch", "log.jsonl", "--output", "out", "--columns", "model,usage", "--partition-by", "provider")
    assert pq.read_table(
        "out/responses/provider=ollama/part-000000.parquet", partitioning=None
    ).schema.names == [
        "source",
        "number",
        "usage",
        "model",
    ]
    assert run("diff", "--stored", "out").status == 2
    done = run("report", "out")
    assert (done.status, done.err.endswith("out: a report needs the column cost\n")) == (2, True)


@pytest.mark.parametrize(
    "argv",
    [
        ["--columns", "model,colour"],
        ["--no-content", "--hash-content"],
    ],
)
def test_a_wrong_use_is_status_2(run: Run, argv: list[str]) -> None:
    Path("log.jsonl").write_bytes(lines(*LOG))
    assert run("batch", "log.jsonl", "--output", "out", *argv).status == 2
    assert not Path("out").exists()
