"""`crosswalk report` reads what the logs of products state, and leaves out what is no exchange."""

from __future__ import annotations

import bz2
import csv
import io
import lzma
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from .conftest import Done
from .log_samples import LLM, SAMPLES, SPEND, Sample, lines

Run = Callable[..., Done]


def check(run: Run, file: Path, sample: Sample) -> None:
    done = run("report", file, "--by", "vendor,model", "--csv")
    rows = list(csv.DictReader(io.StringIO(done.out)))

    def total(name: str) -> float:
        return sum(float(row[name] or 0) for row in rows)

    found = [
        total(name)
        for name in ("exchanges", "errors", "prompt_tokens", "completion_tokens", "cached_tokens", "cost")
    ]
    assert found == [*sample[2:7], pytest.approx(sample.cost)], done.err
    assert {row["vendor"] for row in rows} == {*sample.vendors}
    assert {row["model"] for row in rows} == {*sample.models}
    assert done.status == 0
    left_out = [line for line in done.err.splitlines() if line.startswith("left out ")]
    assert [line.split()[2] for line in left_out] == ([str(sample.left_out)] if sample.left_out else [])


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_what_a_log_states_counts(run: Run, tmp_path: Path, sample: Sample) -> None:
    file = tmp_path / sample.file
    file.write_bytes(sample.data)
    check(run, file, sample)


@pytest.mark.parametrize(
    "name", ["a file of OTLP", "the console exporter", "a HAR file", "a VCR cassette", "OpenRouter, CSV"]
)
def test_standard_input_is_read_by_its_content(
    run: Run, stdin: Callable[[bytes], None], tmp_path: Path, name: str
) -> None:
    stdin(SAMPLES[name].data)
    check(run, Path("-"), SAMPLES[name])


@pytest.mark.parametrize("pack", [bz2.compress, lzma.compress])
def test_other_packed_files_are_read(run: Run, tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    file = tmp_path / "log"
    file.write_bytes(pack(lines(SPEND)))
    check(run, file, SAMPLES["packed"])


def test_the_database_of_llm_is_read(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "logs.db"
    row = LLM | {"response_json": '{"usage": {}}'}
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE conversations (id TEXT, name TEXT)")
        database.execute("INSERT INTO conversations VALUES ('c', 'Hello')")
        database.execute(f"CREATE TABLE responses ({', '.join(row)})")
        database.execute(f"INSERT INTO responses VALUES ({', '.join('?' * len(row))})", [*row.values()])
        database.commit()
    check(run, file, SAMPLES["llm, JSON"])


def test_a_folder_is_read_by_the_content_of_its_files(run: Run, tmp_path: Path) -> None:
    for name in ("packed", "packed, an array", "rotated"):
        (tmp_path / SAMPLES[name].file).write_bytes(SAMPLES[name].data)
    both = Sample("", b"", exchanges=4, prompt=2000, completion=80, cached=1200, cost=0.75)
    check(run, tmp_path, both)
