"""The same on a Ray of several processes, one of which is killed in the middle. Runs where the extra ``ray`` is installed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest

from crosswalk.commands import UsageError
from crosswalk_batch.batches import normalize_batch
from crosswalk_batch.inputs import InputError, find_inputs
from crosswalk_batch.job import Job, JobOutput, JobStoppedError, Task, perform, processes

from .conftest import contents, lines, record

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parents[3] / "contrib")]))
    yield
    ray.shutdown()


def test_a_dataset_loses_nothing_when_a_worker_is_killed(cluster: None, tmp_path: Path) -> None:
    from crosswalk_batch.ray import normalize_dataset

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    log = [orjson.dumps(record(number)) if number % 50 else b"{oops" for number in range(400)]
    blocks = [
        pa.table({"line": log[start : start + 40], "number": list(range(start, start + 40))})
        for start in range(0, 400, 40)
    ]
    marker = str(tmp_path / "killed")

    def dying(batch: pa.Table) -> pa.Table:
        if batch["number"][0].as_py() == 120:
            try:
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
                os.kill(os.getpid(), signal.SIGKILL)
            except FileExistsError:
                pass
        return batch

    dataset = ray.data.from_arrow(blocks).map_batches(dying, batch_format="pyarrow", batch_size=None)
    found = normalize_dataset(dataset, batch_size=None).take_all()
    assert os.path.exists(marker)
    assert sorted(row["number"] for row in found) == list(range(400))
    assert sum(row["reject"] is not None for row in found) == 8
    whole = normalize_batch(pa.RecordBatch.from_pydict({"line": log, "number": list(range(400))}))
    texts = {
        row["number"]: row["response"]["message"]["content"] for row in found if row["response"] is not None
    }
    for row in whole.responses.select(["number", "message"]).to_pylist():
        assert texts[row["number"]] == row["message"]["content"]


def test_a_job_gives_the_same_bytes_when_a_worker_is_killed(
    cluster: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from crosswalk_batch.ray import tasks_on

    monkeypatch.chdir(tmp_path)
    Path("log.jsonl").write_bytes(lines(*map(record, range(200))))
    marker = str(tmp_path / "killed")

    def dying(task: Task) -> Any:
        if task.piece.number == 3:
            try:
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
                os.kill(os.getpid(), signal.SIGKILL)
            except FileExistsError:
                pass
        return perform(task)

    def job(folder: str) -> Job:
        inputs = find_inputs([str(tmp_path / "log.jsonl")], Path(folder))
        return Job(inputs=inputs, output=JobOutput(str(tmp_path / folder)), piece_bytes=2000)

    job("here").run(processes(perform, 1))
    total = job("there").run(tasks_on("local", dying))
    assert os.path.exists(marker)
    assert (total.records, total.rejects) == (200, 0)
    assert contents("here") == contents("there")


def failing(task: str) -> str:
    if task == "changed":
        raise InputError("log.jsonl: it changed while it was read")
    if task == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    return task


def test_what_fails_there_is_told_in_a_line(cluster: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from crosswalk_batch import ray as on_ray

    monkeypatch.setattr(on_ray, "_RETRIES", 1)
    with on_ray.tasks_on("local", failing) as each:
        assert list(each(["one", "two"])) == ["one", "two"]
        with pytest.raises(InputError, match="^log.jsonl: it changed while it was read$"):
            list(each(["changed"]))
        with pytest.raises(JobStoppedError, match="^Ray: .*; finished parts are stored") as stopped:
            list(each(["dies"]))
    assert "\n" not in str(stopped.value)


def test_a_cluster_that_is_not_there_is_told(cluster: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from crosswalk_batch.ray import tasks_on

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(UsageError, match="^--ray auto: "), tasks_on("auto", failing):
        pass
