"""``crosswalk batch``: whole, stopped, continued, done. The bytes are the same for every engine."""

from __future__ import annotations

import errno
import gzip
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import orjson
import pytest

from crosswalk import ChatResponse, from_json, registry
from crosswalk.records import with_fields
from crosswalk_batch import Options, inputs, job as engines, job as jobs, job as parts, manifest
from crosswalk_batch.inputs import find_inputs
from crosswalk_batch.job import (
    Job,
    JobOutput,
    JobStoppedError,
    Pace,
    Task,
    cores,
    in_order,
    perform,
    processes,
    read_part,
)
from crosswalk_batch.manifest import MANIFEST, Part, Total, manifest_at, read_manifest

from .conftest import Done, contents, lines, ollama, packed, record, rows

Run = Callable[..., Done]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes parts of a few records."""
    monkeypatch.setattr(inputs, "MIB", 400)


def log(*records: Any, name: str = "log.jsonl") -> Path:
    file = Path(name)
    file.write_bytes(lines(*records))
    return file


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_who_answered_is_told_by_each_answer_as_normalize_does(
    run: Run, pack: Callable[[bytes], bytes]
) -> None:
    """In every part, after any other line. The end reports how many fit several providers."""
    chat = {"choices": [{"message": {"role": "assistant", "content": "any"}, "finish_reason": "stop"}]}
    marked = {**chat, "system_fingerprint": "vllm-0.33.0-tp2-1a2b3c4d"}
    data = lines(b"{oops", marked, *[chat] * 30)
    Path("log.jsonl").write_bytes(data)
    name = "log.jsonl" if pack is bytes else "log.jsonl.gz"
    Path(name).write_bytes(pack(data))
    done = run("batch", name, "--output", "out", "--part-size", 1)
    assert done.err.endswith(
        "30 answers of several possible providers: 30 as openai; --provider names another\n"
    )
    assert run("batch", name, "--output", "out", "--part-size", 1) == done
    found = [one["metadata"] for one in rows("out")]
    assert [one["provider_id"] for one in found] == ["vllm", *["openai"] * 30]
    said = [orjson.loads(one)["metadata"] for one in run("normalize", "log.jsonl").out.splitlines()]
    assert [one["provider_id"] for one in said] == [one["provider_id"] for one in found]
    assert ["metadata.provider_id" in one["provenance"] for one in said] == [
        "metadata.provider_id" in dict(one["provenance"]) for one in found
    ]
    assert len(contents("out")) > 4


def test_a_log_becomes_columns(run: Run) -> None:
    log(record(1), b"{oops", record(2, body='{"error":"busy"}', status=503))
    done = run("batch", "log.jsonl", "--output", "out")
    assert done == (0, "", "3 records: 2 mapped, 1 rejected (1 RecordError)\n")
    one, two = rows("out")
    assert (one["source"], one["number"], one["record_id"], one["model"]) == ("log.jsonl", 1, "r1", "m")
    assert (one["message"]["content"], one["usage"]["total_tokens"], two["finish_reason"]) == (
        "Hi 1",
        5,
        "error",
    )
    (reject,) = rows("out", "rejects")
    assert (reject["number"], reject["body"], reject["line"]) == (2, None, b"{oops")
    assert sorted(contents("out")) == [
        MANIFEST,
        "rejects/part-000000.parquet",
        "responses/part-000000.parquet",
    ]
    job, (part,) = read_manifest(Path("out"))
    assert (part.records, part.errors, part.weight) == (
        3,
        {"RecordError": 1},
        Path("log.jsonl").stat().st_size,
    )
    assert job["places"][0]["name"] == "log.jsonl"
    assert job["places"][0]["path"] == str(Path("log.jsonl").resolve())


def test_a_run_that_is_done_does_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    log(record(1))
    first = run("batch", "log.jsonl", "--output", "out")
    before = contents("out")
    monkeypatch.setattr(parts, "perform", None)
    assert run("batch", "log.jsonl", "--output", "out") == first == (0, "", first.err)
    assert contents("out") == before


@pytest.mark.sweep
def test_two_processes_write_the_same_bytes(run: Run, small: None) -> None:
    log(*map(record, range(12)), b"{", *map(record, range(12, 20)))
    one = run("batch", "log.jsonl", "--output", "one", "--part-size", 2, "--jobs", 1)
    two = run("batch", "log.jsonl", "--output", "two", "--part-size", 2, "--jobs", 2)
    assert one == two
    assert contents("one") == contents("two")
    assert len(contents("one")) > 4
    assert [row["number"] for row in rows("one")] == [*range(1, 13), *range(14, 22)]


def test_a_job_that_was_stopped_goes_on(run: Run, small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    log(*map(record, range(20)))
    run("batch", "log.jsonl", "--output", "whole", "--part-size", 1, "--jobs", 1)
    performed: list[int] = []

    def failing(task: Task) -> Any:
        performed.append(task.piece.number)
        if len(performed) == 4:
            raise OSError(errno.ENOSPC, "No space left on device", "out/responses/x")
        return perform(task)

    monkeypatch.setattr(parts, "perform", failing)
    done = run("batch", "log.jsonl", "--output", "out", "--part-size", 1, "--jobs", 1)
    assert done.status == 3
    assert done.err == (
        "crosswalk batch: out/responses/x: No space left on device; "
        "finished parts are stored, and the same command continues from there\n"
    )
    with open(f"out/{MANIFEST}", "ab") as killed:
        killed.write(b'{"part":3,"rec')  # killed while it wrote
    done = run("batch", "log.jsonl", "--output", "out", "--part-size", 1, "--jobs", 1)
    assert (done.status, performed[4:]) == (0, list(range(3, 3 + len(performed) - 4)))
    assert contents("out") == contents("whole")


def test_workers_that_write_elsewhere_are_found_out(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a cluster of nodes with separate file systems."""
    log(record(1), b"{oops")

    def elsewhere(task: Task) -> Any:
        return perform(attrs.evolve(task, output=attrs.evolve(task.output, folder="there")))

    monkeypatch.setattr(parts, "perform", elsewhere)
    done = run("batch", "log.jsonl", "--output", "out")
    assert (done.status, "are not visible from here" in done.err) == (3, True)
    assert read_manifest(Path("out"))[1] == []


@pytest.mark.parametrize(
    "change",
    [["--unknown", "keep"], ["--format", "jsonl"], ["--raw"], ["--partition-by", "day"], ["other.jsonl"]],
)
def test_a_folder_holds_the_output_of_one_job(run: Run, change: list[str]) -> None:
    log(record(1))
    log(record(2), name="other.jsonl")
    run("batch", "log.jsonl", "--output", "out")
    done = run("batch", "log.jsonl", "--output", "out", *change)
    assert done.status == 2
    assert "out holds the output of another job (" in done.err


def test_a_log_that_has_changed_is_another_job(run: Run) -> None:
    log(record(1))
    run("batch", "log.jsonl", "--output", "out")
    log(record(1), record(2))
    assert "another job (inputs differ)" in run("batch", "log.jsonl", "--output", "out").err


def test_only_one_process_writes_into_a_folder(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    log(record(1))
    run("batch", "log.jsonl", "--output", "out")
    fcntl = pytest.importorskip("fcntl")
    with open(f"out/{MANIFEST}", "ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = run("batch", "log.jsonl", "--output", "out")
    assert (done.status, done.err) == (
        2,
        f"crosswalk batch: {Path('out').resolve()}: another process writes there\n",
    )
    monkeypatch.setattr(manifest, "fcntl", None)  # as on Windows
    assert run("batch", "log.jsonl", "--output", "out").status == 0
    Path("file").write_bytes(b"")
    assert run("batch", "log.jsonl", "--output", "file").status == 2


def test_a_log_that_grows_meanwhile_stops_the_job(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    file = log(record(1))

    def growing(task: Task) -> Any:
        with file.open("ab") as out:
            out.write(lines(record(2)))
        return perform(task)

    monkeypatch.setattr(parts, "perform", growing)
    done = run("batch", "log.jsonl", "--output", "out")
    assert (done.status, done.err) == (3, "crosswalk batch: log.jsonl: it changed while it was read\n")
    assert not rows("out")


def test_a_damaged_input_is_told_and_the_others_are_read(run: Run) -> None:
    Path("a.parquet").write_bytes(b"PAR")
    log(record(1))
    for _ in range(2):
        done = run("batch", "a.parquet", "log.jsonl", "--output", "out", "--jobs", 1)
        assert done.status == 1
        assert done.err.startswith("a.parquet: ")
        assert done.err.endswith("1 record: 1 mapped, 0 rejected\n")
    assert len(rows("out")) == 1


def test_all_kinds_of_inputs_in_one_job(run: Run) -> None:
    openai = {
        "id": "b",
        "custom_id": "c1",
        "response": {"status_code": 200, "body": ollama("two")},
        "error": None,
    }
    anthropic = {"custom_id": "c2", "result": {"type": ""}}
    Path("logs").mkdir()
    log(openai, anthropic, name="logs/results.jsonl")
    Path("logs/a.response.json").write_bytes(orjson.dumps(ollama("one")))
    done = run("batch", "logs", "--output", "logs/out", "--provider", "ollama", "--status", "200")
    assert done.status == 0
    assert [row["message"]["content"] for row in rows("logs/out")] == ["one", "two"]
    (reject,) = rows("logs/out", "rejects")
    assert reject["message"] == "result.message: no answer"


@pytest.mark.parametrize("raw", [[], ["--raw"]])
def test_json_lines_instead_of_parquet(run: Run, raw: list[str]) -> None:
    log(record(1), record(2, body="{oops", status=200), b"[]")
    run("batch", "log.jsonl", "--output", "out", "--format", "jsonl", *raw)
    (line,) = Path("out/responses/part-000000.jsonl").read_bytes().splitlines()
    said = orjson.loads(line)
    assert (said["source"], said["number"], said["record_id"]) == ("log.jsonl", 1, "r1")
    assert from_json(orjson.dumps(said["response"]), ChatResponse).text == "Hi 1"
    assert ("raw_events" in said["response"]) == bool(raw)
    # Rejects can be read again, with a mapping that was mended.
    one, _ = Path("out/rejects/part-000000.jsonl").read_bytes().splitlines()
    Path("again.jsonl").write_bytes(one)
    assert run("batch", "again.jsonl", "--output", "again").err.startswith("1 record: 0 mapped, 1 rejected")
    (reject,) = rows("again", "rejects")
    assert (reject["body"], reject["provider"], reject["record_id"]) == (b"{oops", "ollama", "r2")
    run("batch", "log.jsonl", "--output", "columns", *raw)
    for kind in ("jsonl", "parquet"):
        folder = "out" if kind == "jsonl" else "columns"
        found = read_part(
            JobOutput(folder, kind), read_manifest(Path(folder))[1][0], Options(include_raw=bool(raw))
        )  # type: ignore[arg-type]
        assert found.responses.num_rows == 1
        assert found.rejects["body"].to_pylist() == [b"{oops", None]
        assert found.rejects["line"].to_pylist() == [None, b"[]"]


def test_rejects_in_parquet_can_be_read_again(run: Run) -> None:
    log(record(1, body="{oops", status=200))
    run("batch", "log.jsonl", "--output", "out")
    done = run("batch", "out/rejects", "--output", "again", "--jobs", 1)
    assert done.status == 0
    (reject,) = rows("again", "rejects")
    assert (reject["body"], reject["provider"], reject["record_id"]) == (b"{oops", "ollama", "r1")


def test_the_time_of_answers_without_one_can_be_said(run: Run) -> None:
    log({"body": ollama(created_at=None)})
    arguments = ["batch", "log.jsonl", "--provider", "ollama"]
    run(*arguments, "--output", "out")
    run(*arguments, "--output", "said", "--created", "2026-01-02T03:00:00+03:00", "--field", "response=.body")
    assert [str(rows(folder)[0]["created"]) for folder in ("out", "said")] == [
        "None",
        "2026-01-02 00:00:00+00:00",
    ]
    assert dict(rows("out")[0]["metadata"]["provenance"])["created"] == "synthetic"


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["log.jsonl"],
        ["log.jsonl", "--output", "out", "--jobs", "0"],
        ["log.jsonl", "--output", "out", "--status", "99"],
        ["log.jsonl", "--output", "out", "--created", "yesterday"],
        ["log.jsonl", "--output", "out", "--created", "2026-01-01T00:00:00"],
        ["log.jsonl", "--output", "out", "--provider", "olama"],
        ["log.jsonl", "--output", "out", "--field", "response=."],
        ["log.jsonl", "--output", "out", "--field", "response"],
        ["log.jsonl", "--output", "out", "--field", "id=a", "--field", "id=b"],
        ["log.jsonl", "--output", "out", "--keep", "a..b"],
        ["log.jsonl", "--output", "out", "--keep", "model"],
        ["log.jsonl", "--output", "out", "--layout", "kelp"],
        ["missing.jsonl", "--output", "out"],
    ],
)
def test_a_wrong_command_line_is_status_2(run: Run, argv: list[str]) -> None:
    log(record(1))
    done = run("batch", *argv)
    assert (done.status, done.out) == (2, "")
    assert not Path("out").exists()


def test_without_its_extra_it_says_what_to_install(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "crosswalk_batch.inputs", None)
    done = run("batch", "x", "--output", "out")
    assert done.status == 2
    assert "pip install 'crosswalk-llm[batch]'" in done.err


def test_without_ray_it_says_what_to_install(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "crosswalk_batch.ray", raising=False)
    (tmp_path / "l.jsonl").write_bytes(lines(record(0)))
    done = run("batch", tmp_path / "l.jsonl", "--output", tmp_path / "out", "--ray", "local")
    assert done.status == 2
    assert "pip install 'crosswalk-llm[ray]'" in done.err


def test_its_help_needs_no_arrow() -> None:
    program = "import sys, crosswalk.cli; crosswalk.cli.main(['batch', '--help']); assert 'pyarrow' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "logs of recorded answers" in done.stdout


def test_a_cluster_is_asked_where_one_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Cluster:
        @staticmethod
        @contextmanager
        def tasks_on(address: str, perform: Callable[[Task], Any]) -> Iterator[Any]:
            assert address == "somewhere"
            yield partial(map, perform)

    monkeypatch.setitem(sys.modules, "crosswalk_batch.ray", Cluster)  # type: ignore[arg-type]
    log(record(1))
    assert run("batch", "log.jsonl", "--output", "out", "--ray", "somewhere").status == 0


# Processes.


def double(number: int) -> int:
    if number == 13:
        os._exit(9)
    return 2 * number


def test_results_come_in_order_and_few_at_once() -> None:
    begun: list[int] = []

    def submit(task: int) -> Callable[[], int]:
        begun.append(task)
        return lambda: task * 2

    results = in_order(iter(range(6)), submit, 3)
    assert next(results) == 0
    assert begun == [0, 1, 2]
    assert list(results) == [2, 4, 6, 8, 10]
    assert list(in_order([], submit, 3)) == []


def test_a_process_that_dies_stops_the_job() -> None:
    with pytest.raises(JobStoppedError, match="a process died"), processes(double, 2) as each:
        assert next(each([1, 2, 13])) in (2,)
        list(each([13]))


def test_a_worker_is_set_up_and_ends_with_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    monkeypatch.setattr(engines, "parent_process", lambda: None)
    handler = signal.getsignal(signal.SIGINT)
    import gc

    thresholds = gc.get_threshold()
    try:
        engines._begin()  # no process of somebody else's: nothing to end with
        reader, writer = os.pipe()
        os.close(writer)

        class Parent:
            sentinel = reader

        class Now:
            def __init__(self, target: Callable[..., None], args: Iterable[Any], daemon: bool) -> None:
                self.start = lambda: target(*args)

        monkeypatch.setattr(engines, "parent_process", lambda: Parent)
        monkeypatch.setattr(engines, "Thread", Now)
        engines._begin()
        os.close(reader)
    finally:
        signal.signal(signal.SIGINT, handler)
        gc.set_threshold(*thresholds)
    assert ended == [1]


def test_the_cores_are_those_that_may_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cores() >= 1
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert cores() == (os.cpu_count() or 1)


@pytest.mark.sweep
def test_a_killed_run_goes_on_where_it_was(run: Run, tmp_path: Path) -> None:
    log(*map(record, range(400)))
    program = "import sys; from crosswalk_batch import inputs; inputs.MIB = 2000; from crosswalk.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [
        sys.executable,
        "-c",
        program,
        "batch",
        "log.jsonl",
        "--output",
        "out",
        "--part-size",
        "1",
        "--jobs",
        "1",
    ]
    killed = subprocess.Popen(command)
    try:
        while killed.poll() is None and sum(1 for _ in Path("out").glob("responses/*")) < 2:
            pass
    finally:
        killed.kill()
        killed.wait()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr.startswith("400 records: 400 mapped, 0 rejected")
    assert [row["record_id"] for row in rows("out")] == [f"r{number}" for number in range(400)]


@contextmanager
def full_after(size: int) -> Iterator[None]:
    """Lets no file become larger than *size* bytes, as if the disk were full."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limit[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit there")
@pytest.mark.parametrize("room", [0, 100, 2000])
def test_a_full_disk_loses_nothing(run: Run, room: int) -> None:
    """Neither where a part does not fit, nor where not even the manifest's first line does."""
    log(*map(record, range(50)))
    with full_after(room):
        done = run("batch", "log.jsonl", "--output", "out")
    assert done.status == 3
    assert done.err.startswith(f"crosswalk batch: {Path('out').resolve()}: ")
    assert "File too large; finished parts are stored" in done.err
    assert list(contents("out")) == [MANIFEST]
    assert run("batch", "log.jsonl", "--output", "out").status == 0
    assert len(rows("out")) == 50


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit there")
def test_a_part_that_cannot_be_noted_is_done_again(tmp_path: Path) -> None:
    job = {"options": {}}
    part = Part(0, 3, {"RecordError": 1}, 100)
    with manifest_at(str(tmp_path), job) as begun:
        with full_after((tmp_path / MANIFEST).stat().st_size + 5), pytest.raises(OSError, match="too large"):
            begun.add(part)
        assert begun.total.parts == 0
    with manifest_at(str(tmp_path), job) as again:
        assert again.total.parts == 0
        again.add(part)
    assert read_manifest(tmp_path) == (job, [part])


@pytest.mark.parametrize("line", [b"{oops", b"5", b"{}", b'{"part": 0}', b'{"faults": []}\n[]'])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_manifest_that_is_damaged_is_told_and_kept(run: Run, line: bytes, is_first: bool) -> None:
    log(record(1))
    run("batch", "log.jsonl", "--output", "out")
    file = Path("out", MANIFEST)
    data = line + b"\n" if is_first else file.read_bytes().splitlines(True)[0] + line + b"\n"
    file.write_bytes(data)
    done = run("batch", "log.jsonl", "--output", "out")
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"crosswalk batch: {Path('out').resolve()}")
    assert file.read_bytes() == data


# What is said meanwhile, and kept.


def test_the_pace_is_a_line_a_minute_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, 59.0, 60.0, 100.0, 120.0, 200.0])
    pace = Pace(1_000_000, 10_000_000, lambda: next(times))
    total = Total(records=500, weight=4_000_000)
    said = [pace.line(total) for _ in range(4)]
    assert said == [
        None,
        "40 %: 500 records, 0.1 MB/s, 120 s left",
        None,
        "40 %: 500 records, 0.0 MB/s, 240 s left",
    ]
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert pace.line(total) is None


def test_the_pace_is_said_in_a_run(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    log(record(1))
    monkeypatch.setattr(jobs, "_EVERY", -1.0)
    done = run("batch", "log.jsonl", "--output", "out")
    assert done.err.startswith("100 %: 1 record, ")


def test_a_job_is_what_its_manifest_says(run: Run) -> None:
    log(record(1))
    run(
        "batch",
        "log.jsonl",
        "--output",
        "out",
        "--field",
        "response=body",
        "--keep",
        "tenant=a.b",
        "--provider",
        "ollama",
    )
    described, _ = read_manifest(Path("out"))
    job = Job.of_description(described, Path("out"))
    assert job.description() == described
    assert job.options.layout == with_fields(None, {"response": "body"})
    assert job.options.keep == {"tenant": ("a", "b")}
    assert job.inputs == find_inputs(["log.jsonl"], Path("out"))
    assert registry.mapper(job.options.provider or "").provider == "ollama"


# ---------------------------------------------------------------------------------------- more inputs


def ids(folder: str = "out") -> list[str]:
    """The ids of the answers in *folder*, part by part."""
    return [row["record_id"] for row in rows(folder)]


def test_a_new_day_is_added_to_an_output(run: Run) -> None:
    Path("logs").mkdir()
    log(record(2), name="logs/day2.jsonl")
    assert run("batch", "logs", "--output", "out", "--add").status == 0
    log(record(1), name="logs/day1.jsonl")
    refused = run("batch", "logs", "--output", "out")
    assert (refused.status, "(inputs differ): --add adds inputs to it" in refused.err) == (2, True)
    before = contents(Path("out/responses"))
    for arguments in (["logs"], ["logs/day1.jsonl"], ["logs"]):
        done = run("batch", *arguments, "--output", "out", "--add")
        assert (done.status, done.err) == (0, "2 records: 2 mapped, 0 rejected\n")
    assert ids() == ["r2", "r1"]
    assert contents(Path("out/responses")).items() >= before.items()
    assert run("batch", "logs", "--output", "out", "--verify").status == 0
    assert run("diff", "--stored", "out").status == 0
    assert run("batch", "logs", "--output", "out", "--add", "--unknown", "keep").status == 2


def test_two_inputs_with_the_same_bytes_are_added_twice(run: Run) -> None:
    log(record(1), name="one.jsonl")
    run("batch", "one.jsonl", "--output", "out")
    log(record(1), name="two.jsonl")
    for arguments in (["one.jsonl"], ["two.jsonl", "one.jsonl"], ["one.jsonl", "two.jsonl"]):
        run("batch", *arguments, "--output", "out", "--add")
    assert ids() == ["r1", "r1"]


def test_earlier_inputs_are_read_again_only_to_replace_a_part(run: Run) -> None:
    for number in range(3):
        log(record(number), name=f"{number}.jsonl")
        run("batch", f"{number}.jsonl", "--output", "out", "--add")
    whole = contents(Path("out"))
    Path("0.jsonl").unlink()
    Path("out/responses/part-000001.parquet").unlink()
    done = run("batch", "2.jsonl", "--output", "out", "--add")
    assert (done.status, "part 1 was missing or damaged; it is there again" in done.err) == (0, True)
    assert contents(Path("out")) == whole
    Path("out/responses/part-000000.parquet").unlink()
    done = run("batch", "2.jsonl", "--output", "out", "--add")
    assert (done.status, "0.jsonl: No such file" in done.err) == (3, True)


def test_an_addition_that_was_stopped_continues(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    log(record(0), b"{", name="0.jsonl")
    Path("1.jsonl.gz").write_bytes(packed(lines(record(1)), "gz")[:-1])
    run("batch", "0.jsonl", "--output", "whole")
    assert run("batch", "1.jsonl.gz", "--output", "whole", "--add").status == 1

    def stopping(task: Task) -> Any:
        raise OSError("full")

    run("batch", "0.jsonl", "--output", "out")
    with monkeypatch.context() as patched:
        patched.setattr(parts, "perform", stopping)
        for arguments in (["1.jsonl.gz"], ["0.jsonl", "1.jsonl.gz"]):
            assert run("batch", *arguments, "--output", "out", "--add", "--jobs", 1).status == 3
        unfinished = run("batch", "whole", "--output", "out", "--add")
    assert (unfinished.status, "its job is not done; run that first" in unfinished.err) == (2, True)
    assert run("batch", "1.jsonl.gz", "--output", "out", "--add").status == 1
    assert contents(Path("out")) == contents(Path("whole"))
