"""``crosswalk batch --compact``: fewer files with the same rows, whatever happens meanwhile."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from crosswalk_batch import inputs, job as compaction
from crosswalk_batch.inputs import LocalStore
from crosswalk_batch.manifest import JobManifest, is_finished, read_manifest

from .conftest import Run, contents, lines, record, rows

COMPACT = ("batch", "--output", "out", "--compact")
JOB = ("batch", "log.jsonl", "--output", "out", "--part-size", 1, "--jobs", 1)


@pytest.fixture
def job(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Writes ``out``, the output of a job of several parts, with rejects."""
    monkeypatch.setattr(inputs, "MIB", 600)
    several = [each for number in range(9) for each in (record(number), *([b"{oops"] * (number % 3 == 2)))]
    Path("log.jsonl").write_bytes(lines(*several))
    assert run(*JOB).status == 0
    assert len(read_manifest("out")[1]) > 2
    return run


def files_of(kind: str) -> list[str]:
    return sorted(file.name for file in Path("out", kind).rglob("*.parquet"))


def numbers(kind: str = "responses") -> list[int]:
    return sorted(row["number"] for row in rows("out", kind))


def test_the_files_of_each_folder_become_one(job: Run) -> None:
    before = {kind: rows("out", kind) for kind in ("responses", "rejects")}
    last = files_of("responses")[-1].removeprefix("part-")
    done = job(*COMPACT)
    assert (done.status, done.err.endswith("files put together to 2\n")) == (0, True)
    assert files_of("responses") == [f"compact-000000-{last}"]
    assert len(files_of("rejects")) == 1
    assert {kind: rows("out", kind) for kind in before} == before
    assert job("batch", "--output", "out", "--verify").err.startswith("2 files of ")
    assert job("report", "out").status == 1  # for the rejects
    compacted = contents("out")
    assert job(*COMPACT).err == "2 files put together to 2\n"
    assert job(*JOB).status == 0
    assert {name: data for name, data in contents("out").items() if name in compacted} == compacted


def test_a_job_may_end_with_it(job: Run) -> None:
    before = rows("out")
    shutil.rmtree("out")
    assert job(*JOB, "--compact").status == 0
    assert rows("out") == before
    assert len(files_of("responses")) == 1


def test_a_file_gets_no_larger_than_the_limit(job: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    before = rows("out")
    sizes = [file.size for part in read_manifest("out")[1] for file in part.files if "responses" in file.name]
    monkeypatch.setattr(compaction, "FILE_BYTES", sizes[0] + sizes[1])
    job(*COMPACT)
    assert files_of("responses")[0] == "compact-000000-000001.parquet"
    monkeypatch.setattr(compaction, "FILE_BYTES", 1)
    job(*COMPACT)
    assert files_of("responses")[0] == "compact-000000-000001.parquet"
    assert sorted(row["number"] for row in before) == numbers()


def test_days_stay_in_their_folders(job: Run) -> None:
    job(*JOB[:-4], "--output", "days", "--partition-by", "day", "--part-size", 1, "--jobs", 1)
    before = pq.read_table("days/responses")
    assert job("batch", "--output", "days", "--compact").status == 0
    (folder,) = Path("days/responses").iterdir()
    assert len(list(folder.iterdir())) == 1
    assert pq.read_table("days/responses").sort_by("number").equals(before.sort_by("number"))


def test_diff_finds_the_rows_of_each_part(job: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree("out", "other")
    monkeypatch.setattr(compaction, "_ROW_GROUP", 1)
    job(*COMPACT)
    assert pq.ParquetFile(next(Path("out/responses").iterdir())).num_row_groups > 2
    for how in (("--stored", "out"), ("other", "--stored", "out"), ("out", "--stored", "other")):
        done = job("diff", *how)
        assert (done.status, " 0 different, 12 the same" in done.out) == (0, True)


def test_a_day_that_is_added_is_put_together_too(job: Run) -> None:
    job(*COMPACT)
    Path("new.jsonl").write_bytes(lines(*map(record, range(90, 99))))
    added = ("batch", "log.jsonl", "new.jsonl", *JOB[2:], "--add")
    assert job(*added).status == 0
    assert len(files_of("responses")) > 1
    before = rows("out")
    assert job(*COMPACT).status == 0
    assert len(files_of("responses")) == 1
    assert rows("out") == before
    assert job(*added).status == 0
    assert job("diff", "--stored", "out").status == 0


def test_an_output_that_cannot_be_compacted_says_why(job: Run) -> None:
    assert job("batch", "--output", "nowhere", "--compact").status == 2
    job(*JOB[:-4], "--output", "lines", "--format", "jsonl")
    done = job("batch", "--output", "lines", "--compact")
    assert (done.status, "is for Parquet" in done.err) == (2, True)
    manifest = Path("out/crosswalk-batch.jsonl")
    manifest.write_bytes(b"".join(manifest.read_bytes().splitlines(True)[:-1]))
    done = job(*COMPACT)
    assert (done.status, "its job is not done" in done.err) == (2, True)


def test_a_damaged_file_stops_it(job: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = rows("out")
    file = Path("out/responses/part-000001.parquet")
    data = file.read_bytes()
    file.write_bytes(bytes(len(data)))
    for harm in ("is damaged", "is missing"):
        done = job(*COMPACT)
        assert (done.status, f"part-000001.parquet {harm}; delete what is left" in done.err) == (3, True)
        file.unlink(missing_ok=True)
    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "move", full)
        done = job(*JOB, "--compact")
        assert (done.status, "No space left on device; the same command goes on" in done.err) == (3, True)
    assert job(*COMPACT).status == 0
    assert rows("out") == expected


def full(*_: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


class Killed(BaseException):
    """The process ends here."""


def killing(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Let the process end at its write, deletion or move number *step*."""
    done = 0

    def limited(change: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            nonlocal done
            done += 1
            if done == step:
                raise Killed
            return change(*arguments)

        return run

    for owner, names in (
        (LocalStore, ("write", "delete", "move")),
        (JobManifest, ("compact", "settle", "restore", "add")),
    ):
        for name in names:
            monkeypatch.setattr(owner, name, limited(getattr(owner, name)))


@pytest.mark.parametrize("command", [COMPACT, JOB])
def test_a_kill_at_any_step_gives_the_same_rows(
    job: Run, monkeypatch: pytest.MonkeyPatch, command: tuple[Any, ...]
) -> None:
    expected = {kind: rows("out", kind) for kind in ("responses", "rejects")}
    shutil.copytree("out", "before")
    job(*COMPACT)
    files = {name: data for name, data in contents("out").items() if name.endswith(".parquet")}
    steps = 0
    while True:
        steps += 1
        shutil.rmtree("out")
        shutil.copytree("before", "out")
        with monkeypatch.context() as patch:
            killing(patch, steps)
            try:
                job(*COMPACT)
            except Killed:
                is_killed = True
            else:
                is_killed = False
        for kind, whole in expected.items():  # no row is there twice
            assert len({*numbers(kind)}) == len(numbers(kind)) <= len(whole)
        assert job(*command).status == 0
        assert numbers() == sorted(row["number"] for row in expected["responses"])
        assert job("batch", "--output", "out", "--verify").status == 0
        assert job(*COMPACT).status == 0
        assert {kind: rows("out", kind) for kind in expected} == expected
        found = {name: data for name, data in contents("out").items() if name.endswith(".parquet")}
        assert found == files
        if not is_killed:
            break
    assert steps > 10


def test_a_lost_file_is_mapped_again_through_a_kill_at_any_step(
    job: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = {kind: rows("out", kind) for kind in ("responses", "rejects")}
    job(*COMPACT)
    shutil.copytree("out", "before")
    (lost,) = Path("out/responses").iterdir()
    steps, is_killed = 0, True
    while is_killed:
        steps += 1
        shutil.rmtree("out")
        shutil.copytree("before", "out")
        lost.write_bytes(b"") if steps % 2 else lost.unlink()
        verified = job("batch", "--output", "out", "--verify")
        assert (verified.status, verified.err.endswith("1 missing or damaged\n")) == (1, True)
        with monkeypatch.context() as patch:
            killing(patch, steps)
            try:
                job(*JOB)
            except Killed:
                is_killed = True
            else:
                is_killed = False
        assert job(*JOB).status == 0
        assert is_finished("out")
        assert {kind: rows("out", kind) for kind in expected} == expected
        assert job("batch", "--output", "out", "--verify").status == 0
    assert steps == 10
    assert job(*COMPACT).status == 0
    assert {kind: rows("out", kind) for kind in expected} == expected
    assert job("diff", "--stored", "out").status == 0


def test_an_unsettled_compaction_is_not_done(job: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        killing(patch, 3)
        with pytest.raises(Killed):
            job(*COMPACT)
    last = orjson.loads(Path("out/crosswalk-batch.jsonl").read_bytes().splitlines()[-1])
    assert last.keys() == {"compacted"}
    assert not is_finished("out")
    job(*COMPACT)
    assert is_finished("out")


def test_the_rows_are_those_of_one_table(job: Run) -> None:
    tables = [pq.read_table(file) for file in sorted(Path("out/responses").iterdir())]
    job(*COMPACT)
    whole = pq.read_table("out/responses")
    assert whole.equals(pa.concat_tables(tables))
    assert pc.count_distinct(whole["number"]).as_py() == 9
