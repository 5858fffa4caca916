"""``crosswalk batch``: whole, stopped, continued, done. The bytes are the same for every engine."""

from __future__ import annotations

import errno
import gzip
import hashlib
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest

import crosswalk
from crosswalk import registry
from crosswalk.records import with_fields
from crosswalk_batch import inputs, job as engines, job as parts
from crosswalk_batch.inputs import find_inputs
from crosswalk_batch.job import (
    RECEIPTS_FOLDER,
    Job,
    Task,
    cores,
    perform,
    read_receipts,
)

from .conftest import Done, contents, lines, ollama, packed, record, rows

Run = Callable[..., Done]
RECEIPT = f"{RECEIPTS_FOLDER}/part-000000.json"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes parts of a few records."""
    monkeypatch.setattr(inputs, "MIB", 400)


def log(*records: Any, name: str = "log.jsonl") -> Path:
    file = Path(name)
    file.write_bytes(lines(*records))
    return file


@pytest.mark.untraced
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
        RECEIPT,
        "rejects/part-000000.parquet",
        "responses/part-000000.parquet",
    ]
    receipt = orjson.loads(Path("out", RECEIPT).read_bytes())
    assert (receipt["records"], receipt["counts"]["errors"]) == (3, {"RecordError": 1})
    assert receipt["job"]["crosswalk"] == crosswalk.__version__
    assert receipt["job"]["options"]["unknown"] == "raise"
    (piece,) = receipt["pieces"]
    assert (piece["input"]["name"], piece["input"]["path"]) == (
        "log.jsonl",
        str(Path("log.jsonl").resolve()),
    )
    assert piece["input"]["size"] == piece["size"] == Path("log.jsonl").stat().st_size
    for file in receipt["files"]:
        data = Path("out", file["name"]).read_bytes()
        assert (file["size"], file["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())


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


@pytest.mark.untraced
def test_a_job_that_was_stopped_goes_on(run: Run, small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    log(*map(record, range(20)))
    run("batch", "log.jsonl", "--output", "whole", "--part-size", 1, "--jobs", 1)
    performed: list[int] = []

    def failing(task: Task) -> Any:
        performed.append(task.receipt.part)
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
    Path("out/responses/part-000003.parquet").write_bytes(b"PAR1")  # killed before the receipt
    Path("out/responses/part-000099_1.parquet").write_bytes(b"PAR1")
    done = run("batch", "log.jsonl", "--output", "out", "--part-size", 1, "--jobs", 1)
    assert (done.status, performed[4:]) == (0, list(range(3, 3 + len(performed) - 4)))
    assert contents("out") == contents("whole")


@pytest.mark.parametrize(
    "change",
    [["--unknown", "keep"], ["--raw"], ["--partition-by", "day"], ["other.jsonl"]],
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
    held = os.open(f"out/{RECEIPTS_FOLDER}", os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    done = run("batch", "log.jsonl", "--output", "out")
    os.close(held)
    assert (done.status, done.err) == (
        2,
        f"crosswalk batch: {Path('out').resolve()}: another process writes there\n",
    )
    monkeypatch.setattr(engines, "fcntl", None)  # as on Windows
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
def test_both_kinds_of_bytes_of_rejects_are_kept_and_compared(run: Run, raw: list[str]) -> None:
    log(record(1), record(2, body="{oops", status=200), b"[]")
    run("batch", "log.jsonl", "--output", "out", *raw)
    assert [(row["body"], row["line"]) for row in rows("out", "rejects")] == [(b"{oops", None), (None, b"[]")]
    assert ("raw_events" in rows("out")[0]) == bool(raw)
    assert run("diff", "--stored", "out").out == "3 compared: 0 different, 3 the same\n"


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


def test_its_help_needs_no_arrow() -> None:
    program = "import sys, crosswalk.cli; crosswalk.cli.main(['batch', '--help']); assert 'pyarrow' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "logs of recorded answers" in done.stdout


# Processes.


def die(_: Task) -> None:
    """In place of the work: what the system does to a process that takes too much memory."""
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_that_dies_stops_the_job(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    log(record(1))
    with monkeypatch.context() as patched:
        patched.setattr(parts, "perform", die)
        done = run("batch", "log.jsonl", "--output", "out", "--jobs", 2)
    assert (done.status, "a worker process died" in done.err) == (3, True)
    assert done.err.endswith("finished parts are stored, and the same command continues from there\n")
    assert run("batch", "log.jsonl", "--output", "out", "--jobs", 2).status == 0


def test_the_cores_are_those_that_may_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cores() >= 1
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert cores() == (os.cpu_count() or 1)


@pytest.mark.sweep
def test_two_hundred_thousand_records_are_there_once_after_three_kills(run: Run, tmp_path: Path) -> None:
    count = 200_000
    with Path("log.jsonl").open("wb") as file:
        file.writelines(lines(record(number)) for number in range(count))
    arguments = ["batch", "log.jsonl", "--output", "out", "--part-size", "1", "--jobs", "2"]
    command = [
        sys.executable,
        "-c",
        "import sys; from crosswalk.cli import main; sys.exit(main(sys.argv[1:]))",
    ]
    for enough in (3, 9, 15):
        killed = subprocess.Popen([*command, *arguments])
        try:
            while killed.poll() is None and len(list(Path("out").glob("responses/*"))) < enough:
                pass
        finally:
            killed.kill()
            killed.wait()
        assert run("batch", "--output", "out", "--verify").status == 3
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=True)
    assert done.stderr.endswith("200,000 records: 200,000 mapped, 0 rejected\n")
    numbers = pq.read_table("out/responses", columns=["number"])["number"].to_pylist()
    assert numbers == list(range(1, count + 1))
    assert run("batch", "--output", "out", "--verify").status == 0


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
    """Neither where a part does not fit, nor where its receipt does not."""
    log(*map(record, range(50)))
    with full_after(room):
        done = run("batch", "log.jsonl", "--output", "out")
    assert done.status == 3
    assert done.err.startswith(f"crosswalk batch: {Path('out').resolve()}: ")
    assert "File too large; finished parts are stored" in done.err
    assert not rows("out")
    assert not list(Path("out/crosswalk-batch").glob("*.json"))
    assert run("batch", "log.jsonl", "--output", "out").status == 0
    assert len(rows("out")) == 50


@pytest.mark.parametrize("data", [b"", b"{oops", b"5", b"{}", b'{"part": 0}'])
def test_a_receipt_that_is_damaged_is_told_and_kept(run: Run, data: bytes) -> None:
    log(record(1))
    run("batch", "log.jsonl", "--output", "out")
    file = Path("out", RECEIPT)
    whole = file.read_bytes()
    partly = orjson.dumps({**orjson.loads(whole), "pieces": [{}]})
    for damaged in (data, whole[:-10], partly):
        file.write_bytes(damaged)
        done = run("batch", "log.jsonl", "--output", "out")
        assert (done.status, done.out) == (2, "")
        assert f"{Path('out').resolve()}/{RECEIPT}: it cannot be read: " in done.err
        assert file.read_bytes() == damaged


@pytest.mark.untraced
@pytest.mark.parametrize(
    "change",
    [{"files": []}, {"records": 9}, {"records": "x"}, {"inputs": 0}, {"run": "0"}, {"pieces": []}, {"new": 1}],
    ids=str,
)  # fmt: skip
def test_a_receipt_that_was_edited_is_told_and_nothing_is_deleted(run: Run, change: dict[str, Any]) -> None:
    log(record(1), b"{")
    run("batch", "log.jsonl", "--output", "out")
    file = Path("out", RECEIPT)
    whole = orjson.loads(file.read_bytes())
    file.write_bytes(orjson.dumps(whole | change))
    before = contents("out")
    for command in (
        ["batch", "log.jsonl", "--output", "out"],
        ["batch", "--output", "out", "--verify"],
        ["diff", "--stored", "out"],
    ):
        done = run(*command)
        assert (done.status, "it cannot be read: it is not what was written" in done.err) == (2, True)
    assert contents("out") == before
    file.write_bytes(orjson.dumps(whole, option=orjson.OPT_INDENT_2))  # its form is free
    assert run("batch", "--output", "out", "--verify").status == 0


def test_an_output_of_an_earlier_version_is_refused_and_kept(run: Run) -> None:
    log(record(1))
    run("batch", "log.jsonl", "--output", "out")
    Path("out", RECEIPT).unlink()
    Path("out/crosswalk-batch.jsonl").write_bytes(b"{}\n")
    before = contents("out")
    for arguments in (["log.jsonl"], ["log.jsonl", "--add"], ["--verify"]):
        done = run("batch", *arguments, "--output", "out")
        assert (done.status, "an earlier version wrote it" in done.err) == (2, True)
    assert contents("out") == before


def test_another_version_is_another_job(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    log(record(1))
    run("batch", "log.jsonl", "--output", "out")
    monkeypatch.setattr(parts, "__version__", "99.0")
    for more in ([], ["--add"]):
        done = run("batch", "log.jsonl", "--output", "out", *more)
        assert (done.status, "another job (crosswalk differ)" in done.err) == (2, True)


def test_a_job_is_what_its_receipts_say(run: Run) -> None:
    log(record(1))
    fields = ("--field", "response=body", "--keep", "tenant=a.b", "--provider", "ollama")
    run("batch", "log.jsonl", "--output", "out", *fields)
    (receipt,) = read_receipts("out")
    job = Job.of_description(receipt.job, "out")
    assert job.description() == receipt.job
    assert job.options.layout == with_fields(None, {"response": "body"})
    assert job.options.keep == {"tenant": ("a", "b")}
    assert [piece.input for piece in receipt.pieces] == find_inputs(["log.jsonl"], Path("out"))
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
    monkeypatch.setattr(inputs, "MIB", 300)
    log(record(0), b"{", name="0.jsonl")
    Path("1.jsonl.gz").write_bytes(packed(lines(record(1)), "gz")[:-1])
    log(record(2), name="2.jsonl")
    log(record(3), name="3.jsonl")
    how = ("--output", "out", "--part-size", 1, "--jobs", 1)
    added = ("1.jsonl.gz", "2.jsonl")
    run("batch", "0.jsonl", *how)
    assert run("batch", *added, *how, "--add").status == 1
    whole = contents(Path("out"))
    performed: list[int] = []

    def stopping(task: Task) -> Any:
        performed.append(task.receipt.part)
        if len(performed) == 2:
            raise OSError("full")
        return perform(task)

    for name in whole:
        if "part-000000" not in name:
            Path("out", name).unlink()
    with monkeypatch.context() as patched:
        patched.setattr(parts, "perform", stopping)
        assert run("batch", *added, *how, "--add").status == 3
    for arguments in (["3.jsonl", "--add"], ["2.jsonl", "--add"], ["0.jsonl"]):
        done = run("batch", *arguments, *how)
        said = "its job is not done; run that first, with its inputs alone, 1.jsonl.gz and 1 more input; then add"
        assert (done.status, said in done.err) == (2, True)
    assert run("batch", "0.jsonl", *reversed(added), *how, "--add").status == 1
    assert (performed, contents(Path("out"))) == ([1, 2], whole)


def stopped_at(monkeypatch: pytest.MonkeyPatch, run: Run, count: int, *command: object) -> None:
    """Runs *command* until *count* parts are there."""
    performed: list[Task] = []

    def stopping(task: Task) -> Any:
        performed.append(task)
        if len(performed) > count:
            raise OSError("full")
        return perform(task)

    with monkeypatch.context() as patched:
        patched.setattr(parts, "perform", stopping)
        assert run(*command).status == 3


@pytest.mark.parametrize("end", [b"", b'{"id":"r7","provider"'], ids=["whole lines", "in a line"])
def test_a_stopped_job_goes_on_after_its_log_has_grown(
    run: Run, small: None, monkeypatch: pytest.MonkeyPatch, end: bytes
) -> None:
    how = ("--part-size", 1, "--jobs", 1, "--output")
    data = lines(*map(record, range(7)))
    Path("log.jsonl").write_bytes(data + end)
    run("batch", "log.jsonl", *how, "whole")
    stopped_at(monkeypatch, run, 2, "batch", "log.jsonl", *how, "out")
    log(*map(record, range(20)))
    done = run("batch", "log.jsonl", *how, "out")
    assert (done.status, "log.jsonl: it has grown since its job was begun; add" in done.err) == (1, True)
    assert contents("out/responses") == contents("whole/responses")
    assert run("batch", "--output", "out", "--verify").status == 0
    done = run("batch", "log.jsonl", *how, "out", "--add")
    assert done.status == (1 if end else 0)  # a line that was cut cannot be continued
    assert len(ids()) == (7 if end else 20)


def test_a_stopped_job_goes_on_without_a_file_that_has_come(
    run: Run, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("logs").mkdir()
    log(*map(record, range(7)), name="logs/a.jsonl")
    how = ("--part-size", 1, "--jobs", 1, "--output", "out")
    stopped_at(monkeypatch, run, 2, "batch", "logs", *how)
    log(*map(record, range(7, 9)), name="logs/b.jsonl")
    done = run("batch", "logs", *how)
    assert done.status == 2
    assert "; run that first, with its inputs alone, logs/a.jsonl; then add others to it\n" in done.err
    assert run("batch", "logs/a.jsonl", *how).err == "7 records: 7 mapped, 0 rejected\n"
    assert run("batch", "logs", *how, "--add").err == "9 records: 9 mapped, 0 rejected\n"
    assert ids() == [f"r{number}" for number in range(9)]


# -------------------------------------------------------------------------------------- logs that grow


@pytest.mark.untraced
def test_a_log_that_has_grown_counts_nothing_twice(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "MIB", 400)
    how = ("--output", "out", "--part-size", 1, "--jobs", 1, "--add")
    file = log(*map(record, range(7)))
    run("batch", "log.jsonl", *how)
    for end in (8, 20, 21):
        log(*map(record, range(end)))
        if end == 20:
            file = file.rename("rotated.jsonl")
        done = run("batch", file, *how)
        assert (done.status, done.err) == (0, f"{end} records: {end} mapped, 0 rejected\n")
        file = file.rename("log.jsonl")
        assert run("batch", "log.jsonl", *how) == done
    assert sorted(ids()) == sorted(f"r{number}" for number in range(21))
    assert sorted(row["number"] for row in rows("out")) == list(range(1, 22))
    assert run("batch", "--output", "out", "--verify").status == 0


def test_parts_of_a_log_that_has_grown_are_read_again(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "MIB", 400)
    how = ("--output", "out", "--part-size", 1, "--jobs", 1, "--add")
    for end in (7, 20):
        log(*map(record, range(end)))
        run("batch", "log.jsonl", *how)
    assert run("diff", "--stored", "out").out == "20 compared: 0 different, 20 the same\n"
    whole = contents("out")
    Path("out/responses/part-000000.parquet").unlink()
    assert "part 0 was missing or damaged; it is there again" in run("batch", "log.jsonl", *how).err
    assert contents("out") == whole


@pytest.mark.parametrize("is_added", [False, True])
def test_a_log_that_has_grown_is_compared_as_it_was_mapped(run: Run, is_added: bool) -> None:
    Path("logs").mkdir()
    log(*map(record, range(7)), name="logs/log.jsonl")
    run("batch", "logs", "--output", "out")
    log(*map(record, range(20)), name="logs/log.jsonl")
    if is_added:
        run("batch", "logs", "--output", "out", "--add")
    Path("logs/log.jsonl").rename("logs/log.jsonl.1")
    log(record(99), name="logs/log.jsonl")
    count = 20 if is_added else 7
    same = f"{count} compared: 0 different, {count} the same\n"
    assert run("diff", "logs/log.jsonl.1", "--stored", "out").out == same
    done = run("diff", "logs", "--stored", "out")
    assert (done.status, "other inputs, or they have changed since" in done.err) == (2, True)
    done = run("diff", "--stored", "out")
    assert (done.status, "log.jsonl: it is another file now; name the one" in done.err) == (2, True)


def test_a_part_of_a_log_that_was_rotated_is_made_again(run: Run) -> None:
    log(*map(record, range(7)))
    run("batch", "log.jsonl", "--output", "out")
    whole = contents("out/responses")
    log(*map(record, range(20)), name="log.jsonl.1")
    log(record(99))
    Path("out/responses/part-000000.parquet").unlink()
    done = run("batch", "log.jsonl", "--output", "out", "--add")
    assert (done.status, "log.jsonl: it is another file now; name the one" in done.err) == (3, True)
    done = run("batch", "log.jsonl", "log.jsonl.1", "--output", "out", "--add")
    assert (done.status, "part 0 was missing or damaged; it is there again" in done.err) == (0, True)
    assert contents("out/responses").items() >= whole.items()
    assert sorted(ids()) == sorted([*(f"r{number}" for number in range(20)), "r99"])


def test_a_packed_log_that_has_grown_is_another_file(run: Run) -> None:
    Path("log.jsonl.gz").write_bytes(packed(lines(record(1)), "gz"))
    run("batch", "log.jsonl.gz", "--output", "out")
    Path("log.jsonl.gz").write_bytes(packed(lines(record(1)), "gz") + packed(lines(record(2)), "gz"))
    for named in ([], ["log.jsonl.gz"]):
        assert run("diff", *named, "--stored", "out").status == 2


@pytest.mark.parametrize("pack", ["", ".gz"])
def test_a_log_that_cannot_be_continued_is_told_and_the_others_are_added(run: Run, pack: str) -> None:
    """One that is packed, and one whose last line was not complete."""
    data = lines(record(1), record(2))
    begun = packed(data, "gz") if pack else data[:-20]
    Path(f"log.jsonl{pack}").write_bytes(begun)
    run("batch", f"log.jsonl{pack}", "--output", "out")
    before = rows("out") + rows("out", "rejects")
    Path(f"log.jsonl{pack}").write_bytes(begun + (packed(data, "gz") if pack else data[-20:]))
    log(record(3), name="new.jsonl")
    for _ in range(2):
        done = run("batch", f"log.jsonl{pack}", "new.jsonl", "--output", "out", "--add")
        assert (done.status, f"log.jsonl{pack}: it has grown since it was mapped" in done.err) == (1, True)
        assert len(rows("out") + rows("out", "rejects")) == len(before) + 1


def test_logs_that_begin_alike_are_different_logs(run: Run) -> None:
    log(*map(record, range(5)), name="a.jsonl")
    log(*map(record, range(5)), *map(record, range(20, 25)), name="b.jsonl")
    log(record(0), *map(record, range(50, 60)), name="c.jsonl")
    assert run("batch", "a.jsonl", "b.jsonl", "--output", "out").err.startswith("15 records: 15 mapped")
    assert run("batch", "c.jsonl", "--output", "out", "--add").err.startswith("26 records: 26 mapped")


HEADING = b"generation_id,tokens_prompt,tokens_completion\n"


@pytest.mark.parametrize(
    ("name", "begun", "later"),
    [
        ("{}.jsonl", b"", lines(record(1), record(2))),
        ("{}.csv", HEADING, HEADING + b"g,1,2\nh,3,4\n"),
        ("{}.jsonl.gz", packed(lines(record(1), record(2)), "gz")[:20], packed(lines(record(1), record(2)), "gz")),
        ("{}.jsonl", lines({"type": "session_meta"}), lines({"type": "session_meta"}, record(1), record(2))),
    ],
    ids=["empty", "heading", "half a gzip", "session"],
)  # fmt: skip
def test_a_log_without_records_is_the_beginning_of_no_other(
    run: Run, name: str, begun: bytes, later: bytes
) -> None:
    Path(name.format("day1")).write_bytes(begun)
    first = run("batch", name.format("day1"), "--output", "out")
    Path(name.format("day2")).write_bytes(later)
    done = run("batch", name.format("day2"), "--output", "out", "--add")
    assert ("it has grown" in done.err, done.status) == (False, first.status)
    Path(name.format("day1")).write_bytes(later)
    assert run("batch", name.format("day1"), "--output", "alone").status == 0
    assert len(rows("out") + rows("out", "rejects")) == len(rows("alone") + rows("alone", "rejects"))


def test_a_log_that_is_still_there_did_not_grow_into_another(run: Run) -> None:
    Path("logs").mkdir()
    log(record(1), name="logs/d1.jsonl")
    run("batch", "logs", "--output", "out")
    log(record(1), *map(record, range(2, 5)), name="logs/d2.jsonl")
    done = run("batch", "logs", "--output", "out", "--add")
    assert (done.status, done.err) == (0, "5 records: 5 mapped, 0 rejected\n")
    assert ids() == ["r1", "r1", "r2", "r3", "r4"]
    assert run("batch", "logs", "--output", "out", "--add") == done
