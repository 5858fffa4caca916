"""Folders by day and provider: what tools that know Hive's way read as columns."""

from __future__ import annotations

from pathlib import Path

import duckdb
import orjson
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from crosswalk_batch import inputs
from crosswalk_batch.inputs import OutputStore, StoredFile
from crosswalk_batch.job import partitions, read_receipts

from .conftest import Run, contents, lines, ollama, record

DAYS = ("2026-11-20", "2026-11-21", "2026-11-20", "2026-11-22")


def log(count: int = 4) -> None:
    made = [
        {**record(number), "body": ollama(f"Hi {number}", created_at=f"{DAYS[number % 4]}T23:59:59Z")}
        for number in range(count)
    ]
    vllm = {
        "id": "c1", "object": "chat.completion", "created": 1795168361, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Yo"}, "finish_reason": "stop"}],
    }  # fmt: skip
    Path("log.jsonl").write_bytes(lines(*made, {"provider": "vllm", "body": vllm}, b"{oops"))


def test_answers_stand_in_the_folder_of_their_provider_and_day(run: Run) -> None:
    log()
    done = run("batch", "log.jsonl", "--output", "out", "--partition-by", "provider,day")
    assert done.err == "6 records: 5 mapped, 1 rejected (1 RecordError)\n"
    assert sorted(contents("out")) == [
        "crosswalk-batch/part-000000.json",
        "rejects/part-000000.parquet",
        "responses/provider=ollama/day=2026-11-20/part-000000.parquet",
        "responses/provider=ollama/day=2026-11-21/part-000000.parquet",
        "responses/provider=ollama/day=2026-11-22/part-000000.parquet",
        "responses/provider=vllm/day=2026-11-20/part-000000.parquet",
    ]


def test_tools_read_the_folders_as_columns(run: Run) -> None:
    log()
    run("batch", "log.jsonl", "--output", "out", "--partition-by", "day,provider")
    asked = "SELECT day::DATE::TEXT, provider, count(*) FROM 'out/responses/**/*.parquet' GROUP BY ALL ORDER BY ALL"
    expected = [
        ("2026-11-20", "ollama", 2),
        ("2026-11-20", "vllm", 1),
        ("2026-11-21", "ollama", 1),
        ("2026-11-22", "ollama", 1),
    ]
    assert duckdb.sql(asked).fetchall() == expected
    dataset = ds.dataset("out/responses", partitioning="hive")
    assert dataset.count_rows(filter=ds.field("provider") == "ollama") == 4


@pytest.mark.sweep
def test_a_part_is_put_together_in_the_order_of_its_records(run: Run) -> None:
    log(8)
    run("batch", "log.jsonl", "--output", "out", "--partition-by", "day")
    run("batch", "log.jsonl", "--output", "flat")
    assert run("diff", "--stored", "out").err == run("diff", "--stored", "flat").err
    assert run("diff", "flat", "--stored", "out").status == 0


@pytest.mark.sweep
def test_the_same_folders_whoever_writes_them(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "MIB", 400)
    log(20)
    how = ("--partition-by", "day", "--part-size", 2)
    run("batch", "log.jsonl", "--output", "one", *how, "--jobs", 1)
    run("batch", "log.jsonl", "--output", "two", *how, "--jobs", 2)
    assert contents("one") == contents("two")
    described = orjson.loads(Path("one/crosswalk-batch/part-000000.json").read_bytes())["job"]
    assert described["partition_by"] == ["day"]
    assert run("batch", "log.jsonl", "--output", "one", "--part-size", 2).status == 2  # another job


@pytest.mark.parametrize("names", ["model", "day,day", "", "day,hour"])
def test_other_names_are_refused(run: Run, names: str, capsys: pytest.CaptureFixture[str]) -> None:
    log()
    assert run("batch", "log.jsonl", "--output", "out", "--partition-by", names).status == 2
    assert not Path("out").exists()


def test_a_provider_cannot_name_another_folder(run: Run) -> None:
    log()
    run("batch", "log.jsonl", "--output", "out")
    table = pq.read_table("out/responses/part-000000.parquet")

    metadata = [{**row, "provider_id": "../a b"} for row in table["metadata"].to_pylist()]
    field = table.schema.field("metadata")
    odd = pa.Table.from_arrays([pa.array(metadata, field.type)], schema=pa.schema([field]))
    assert [name for name, _ in partitions(odd, ["provider"])] == ["provider=..%2Fa%20b"]


class Killed(BaseException):
    """The process ends here."""


def test_a_kill_between_any_two_writes_gives_the_same_files(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part has a file for each day and provider, and one of rejects. Its receipt comes last."""
    monkeypatch.setattr(inputs, "MIB", 900)
    log(8)
    how = ("--partition-by", "provider,day", "--part-size", 1, "--jobs", 1)
    run("batch", "log.jsonl", "--output", "whole", *how)
    whole, write, step, is_killed = contents("whole"), OutputStore.write, 0, True
    while is_killed:
        step, done = step + 1, 0
        folder = f"out{step}"

        def limited(store: OutputStore, name: str, data: bytes) -> StoredFile:
            nonlocal done
            done += 1
            if done == step:
                raise Killed
            return write(store, name, data)

        with monkeypatch.context() as patch:
            patch.setattr(OutputStore, "write", limited)
            try:
                run("batch", "log.jsonl", "--output", folder, *how)
            except Killed:
                is_killed = True
            else:
                is_killed = False
        named = {file.name for one in read_receipts(folder) for file in one.files}
        assert named <= contents(folder).keys()
        assert run("batch", "log.jsonl", "--output", folder, *how).status == 0
        assert contents(folder) == whole
    assert step > len(whole) > 7
