"""A job is never done without its data: what was written is checked, wherever it is."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pytest

from crosswalk_batch import inputs, job as parts
from crosswalk_batch.job import Task, perform, read_receipts

from .conftest import Run, contents, lines, packed, record, rows

PARTED = ("--part-size", 1, "--jobs", 1)


@pytest.fixture
def job(run: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs one job of several parts into ``out``."""
    monkeypatch.setattr(inputs, "MIB", 600)
    Path("log.jsonl").write_bytes(lines(*map(record, range(12)), b"{oops"))
    return lambda *how: run("batch", "log.jsonl", "--output", "out", *PARTED, *how)


def empty(file: Path) -> None:
    file.write_bytes(b"")


def overwrite(file: Path) -> None:
    file.write_bytes(bytes(file.stat().st_size))


def files_of(folder: str) -> list[Path]:
    return sorted(Path(folder).rglob("part-*.parquet"))


@pytest.mark.untraced
@pytest.mark.parametrize("harm", [Path.unlink, empty])
@pytest.mark.parametrize("place", [0, 2, -1])
def test_a_part_that_is_missing_or_another_size_is_done_again(
    job: Callable[..., Any], harm: Callable[[Path], None], place: int
) -> None:
    first = job()
    before = contents("out")
    harm(files_of("out")[place])
    again = job()
    assert again.status == 0
    assert again.err.endswith(first.err)
    assert "was missing or damaged; it is there again" in again.err
    assert contents("out") == before


def test_a_stopped_job_checks_what_is_there_before_it_goes_on(
    job: Callable[..., Any], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("batch", "log.jsonl", "--output", "whole", *PARTED)
    performed: list[int] = []

    def failing(task: Task) -> Any:
        performed.append(task.receipt.part)
        if len(performed) == 3:
            raise OSError("No space left on device")
        return perform(task)

    monkeypatch.setattr(parts, "perform", failing)
    assert job().status == 3
    assert run("batch", "--output", "out", "--verify").status == 3
    files_of("out")[0].unlink()
    assert job().status == 0
    assert performed[3:5] == [0, 2]
    assert contents("out") == contents("whole")


@pytest.mark.parametrize(
    ("harm", "word"), [(Path.unlink, "is missing"), (empty, "is damaged"), (overwrite, "is damaged")]
)
def test_verify_reads_every_file(
    job: Callable[..., Any], run: Run, harm: Callable[[Path], None], word: str
) -> None:
    job()
    count = len(files_of("out"))
    done = run("batch", "--output", "out", "--verify")
    parts_of = len(read_receipts("out"))
    assert done == (0, "", f"{count} files of {parts_of} parts, 0 missing or damaged\n")
    file = files_of("out")[1]
    name = file.relative_to("out").as_posix()
    harm(file)
    done = run("batch", "--output", "out", "--verify")
    assert done.status == 1
    assert f"{Path('out').resolve()}: {name} {word}" in done.err
    assert done.err.endswith("1 missing or damaged\n")
    assert run("batch", "--output", "nowhere", "--verify").status == 2


def test_a_part_that_comes_out_differently_stops(
    job: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    job()
    files_of("out")[0].unlink()

    def other(task: Task) -> Any:
        return perform(attrs.evolve(task, receipt=attrs.evolve(task.receipt, records=99)))

    monkeypatch.setattr(parts, "perform", other)
    done = job()
    assert done.status == 3
    assert "differs from its first version" in done.err


def test_diff_names_what_is_damaged_and_compares_the_rest(job: Callable[..., Any], run: Run) -> None:
    job()
    shutil.copytree("out", "other")
    overwrite(files_of("out")[0])
    Path("other/responses/part-000001.parquet").unlink()
    for how in (("--stored", "out"), ("other", "--stored", "out")):
        done = run("diff", *how)
        assert done.status == 1
        assert "responses/part-000000.parquet is damaged" in done.err + done.out or "rejects/" in done.err
    assert "responses/part-000001.parquet is missing" in done.err


def test_a_part_whose_receipt_is_lost_is_done_again(job: Callable[..., Any], run: Run) -> None:
    first = job()
    before = contents("out")
    Path("out/crosswalk-batch/part-000001.json").unlink()
    done = run("batch", "--output", "out", "--verify")
    assert (done.status, done.err.endswith("; the job is not done yet\n")) == (3, True)
    assert job() == first
    assert contents("out") == before


@pytest.mark.parametrize("is_empty", [True, False])
def test_a_draft_of_a_receipt_is_no_receipt(job: Callable[..., Any], run: Run, is_empty: bool) -> None:
    """A process was killed while it wrote the receipt, before its rename."""
    first = job()
    before = contents("out")
    receipt = Path("out/crosswalk-batch/part-000001.json")
    draft = receipt.with_name(".crosswalk-0123456789abcdef.part")
    receipt.rename(draft)
    if is_empty:
        empty(draft)
    assert run("batch", "--output", "out", "--verify").status == 3
    assert job() == first
    draft.unlink(missing_ok=True)
    assert contents("out") == before


def test_other_files_beside_the_receipts_are_none(job: Callable[..., Any], run: Run) -> None:
    first = job()
    folder = Path("out/crosswalk-batch")
    shutil.copy(folder / "part-000000.json", folder / "part-000000 (copy).json")
    (folder / ".DS_Store").write_bytes(b"\0\0")
    (folder / "old").mkdir()
    shutil.copy(folder / "part-000000.json", folder / "old/part-000000.json")
    assert job("--add") == first
    assert run("batch", "--output", "out", "--verify").status == 0


@pytest.mark.parametrize("name", ["part-000099.json", "part-0000000.json"])
def test_a_receipt_under_the_name_of_another_is_told(job: Callable[..., Any], name: str) -> None:
    job()
    shutil.copy("out/crosswalk-batch/part-000000.json", Path("out/crosswalk-batch", name))
    done = job("--add")
    assert done.status == 2
    assert f"crosswalk-batch/{name}: it cannot be read: it is the receipt of part 0" in done.err


@pytest.mark.untraced
@pytest.mark.parametrize("how", [[], ["--add"]])
def test_parts_are_kept_if_all_receipts_are_lost(job: Callable[..., Any], run: Run, how: list[str]) -> None:
    job()
    for lost in Path("out/crosswalk-batch").iterdir():
        lost.unlink()
    before = contents("out")
    Path("new.jsonl").write_bytes(lines(record(99)))
    for name in ("new.jsonl", "log.jsonl"):
        done = run("batch", name, "--output", "out", *PARTED, *how)
        assert (done.status, "no receipt names re" in done.err) == (2, True)
        shutil.rmtree("out/crosswalk-batch")  # also if their folder is gone
        assert contents("out") == before


def test_parts_that_a_killed_run_left_before_its_first_receipt_are_done_again(
    job: Callable[..., Any], run: Run
) -> None:
    first = job()
    before = contents("out")
    for lost in Path("out/crosswalk-batch").iterdir():
        lost.unlink()
    Path("out/crosswalk-batch/begun").touch()
    assert job() == first
    assert contents("out") == before
    Path("out/crosswalk-batch/begun").touch()  # killed just after the first receipt
    assert job() == first
    assert contents("out") == before


@pytest.mark.untraced
def test_rows_that_no_receipt_names_are_told(job: Callable[..., Any], run: Run) -> None:
    job()
    Path("new.jsonl").write_bytes(lines(record(99)))
    run("batch", "new.jsonl", "--output", "out", *PARTED, "--add")
    last = max(Path("out/crosswalk-batch").iterdir())
    last.unlink()
    name = f"responses/{last.stem}.parquet"
    done = run("batch", "--output", "out", "--verify")
    assert (done.status, f"{name}: no receipt names it\n" in done.err) == (1, True)
    for command in (["diff", "--stored", "out"], ["diff", "out", "out"], ["report", "out"]):
        done = run(*command)
        assert f"out: no receipt names 1 file, such as {name}\n" in done.err
        assert "not done" not in done.err
    assert run("batch", "new.jsonl", "--output", "out", *PARTED, "--add").status == 0
    assert run("batch", "--output", "out", "--verify").status == 0


def test_a_job_that_is_not_done_is_told_by_who_reads_its_output(job: Callable[..., Any], run: Run) -> None:
    job()
    last = max(Path("out/crosswalk-batch").iterdir())
    (Path("out/responses") / f"{last.stem}.parquet").unlink(missing_ok=True)
    (Path("out/rejects") / f"{last.stem}.parquet").unlink(missing_ok=True)
    last.unlink()
    for command in (["diff", "--stored", "out"], ["diff", "out", "out"], ["report", "out"]):
        assert "out: the job is not done yet\n" in run(*command).err


def scratch(file: Path) -> None:
    """Overwrites the pages of a file of Parquet, and leaves its footer."""
    data = file.read_bytes()
    file.write_bytes(data[:4] + bytes(len(data) // 3) + data[4 + len(data) // 3 :])


@pytest.mark.parametrize("harm", [empty, overwrite, scratch])
@pytest.mark.parametrize("kind", ["responses", "rejects"])
def test_a_damaged_part_is_told_with_what_to_do_and_that_mends_it(
    job: Callable[..., Any], run: Run, harm: Callable[[Path], None], kind: str
) -> None:
    job()
    before = contents("out")
    file = sorted(Path("out", kind).iterdir())[0]
    harm(file)
    done = run("report", "out")
    assert done.status == 2
    assert "out: a file is damaged; crosswalk batch --verify names it\n" in done.err
    done = run("batch", "--output", "out", "--verify")
    assert (
        f"{kind}/{file.name} is damaged: it is not what was written; delete it and run the batch again"
        in done.err
    )
    file.unlink()
    assert job().status == 0
    assert contents("out") == before


def test_an_input_is_known_by_what_it_holds(job: Callable[..., Any], run: Run, tmp_path: Path) -> None:
    job()
    (tmp_path / "moved").mkdir()
    shutil.copy("log.jsonl", "moved/copy.jsonl")
    Path("log.jsonl").unlink()
    files_of("out")[0].unlink()
    done = run("batch", "moved/copy.jsonl", "--output", "out", *PARTED)
    assert done.status == 0
    assert {row["source"] for row in rows("out")} == {"log.jsonl"}
    assert run("diff", "moved/copy.jsonl", "--stored", "out").status == 0
    Path("moved/copy.jsonl").write_bytes(lines(*map(record, range(1, 13)), b"{oops"))
    assert run("batch", "moved/copy.jsonl", "--output", "out", *PARTED).status == 2
    assert run("diff", "moved/copy.jsonl", "--stored", "out").status == 2


def test_two_inputs_of_the_same_bytes_are_two_inputs(run: Run) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        Path(name).write_bytes(lines(record(1)))
    run("batch", "a.jsonl", "b.jsonl", "--output", "out", "--jobs", 1)
    assert [row["source"] for row in rows("out")] == ["a.jsonl", "b.jsonl"]


@pytest.mark.parametrize("url", ["kelp://bucket/columns", "hdfs://host/columns", "http://host/columns"])
def test_another_scheme_is_refused(run: Run, url: str) -> None:
    Path("log.jsonl").write_bytes(lines(record(1)))
    for argv in (("log.jsonl", "--output", url), (url, "--output", "out")):
        done = run("batch", *argv)
        assert done.status == 2
        assert "is not supported; there are s3://, gs://" in done.err
    assert [file.name for file in Path().iterdir()] == ["log.jsonl"]


@pytest.mark.parametrize("url", ["s3://bucket/x?colour=red", "az://container/x?colour=red"])
def test_a_url_that_cannot_be_used_is_said(run: Run, url: str) -> None:
    Path("log.jsonl").write_bytes(lines(record(1)))
    done = run("batch", "log.jsonl", "--output", url)
    assert (done.status, done.err.startswith(f"crosswalk batch: {url}: ")) == (2, True)


def test_a_file_url_is_decoded(run: Run, tmp_path: Path) -> None:
    Path("a b%.jsonl").write_bytes(lines(record(1)))
    url = f"file://{tmp_path}/a%20b%25.jsonl"
    assert run("batch", url, "--output", f"file://{tmp_path}/o%20t").status == 0
    assert [row["source"] for row in rows("o t")] == [str(tmp_path / "a b%.jsonl")]
    assert run("batch", "--output", "o t", "--verify").status == 0


def test_a_file_url_is_a_path(run: Run, tmp_path: Path) -> None:
    Path("log.jsonl").write_bytes(lines(record(1)))
    assert run("batch", f"file://{tmp_path}/log.jsonl", "--output", f"file://{tmp_path}/out").status == 0
    assert [row["record_id"] for row in rows("out")] == ["r1"]


# Object storage: a server that speaks S3's protocol, in this process.


@pytest.fixture(scope="module")
def s3() -> Iterator[Callable[[str], str]]:
    """Gives URLs of a local S3 server, in a separate bucket."""
    server = pytest.importorskip("moto.server")
    patch = pytest.MonkeyPatch()
    patch.setenv("AWS_ACCESS_KEY_ID", "test")
    patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    running = server.ThreadedMotoServer(port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    query = f"endpoint_override={host}:{port}&scheme=http&region=us-east-1&allow_bucket_creation=true"
    system, _ = fs.FileSystem.from_uri(f"s3://logs?{query}")
    system.create_dir("logs")
    yield lambda path: f"s3://logs/{path}?{query}"
    running.stop()
    patch.undo()


def put(url: str, data: bytes) -> None:
    system, path = fs.FileSystem.from_uri(url)
    with system.open_output_stream(path, compression=None) as out:
        out.write(data)


def stored(url: str) -> dict[str, bytes]:
    system, path = fs.FileSystem.from_uri(url)
    found = system.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True))
    files = [info.path for info in found if info.type is fs.FileType.File]
    return {file.removeprefix(f"{path}/"): system.open_input_stream(file).read() for file in files}


@pytest.mark.filterwarnings("ignore")
def test_a_job_reads_and_writes_object_storage(
    run: Run, s3: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "MIB", 600)
    data = lines(*map(record, range(12)), b"{oops")
    table = pa.Table.from_pylist([{"body": b"{}", "provider": "ollama"}])
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    files = {
        "a.jsonl": data,
        "b/c.jsonl.gz": packed(data, "gz"),
        "b/d.parquet": sink.getvalue().to_pybytes(),
        "b/e.txt": b"x",
    }
    for name, content in files.items():
        put(s3(f"in/{name}"), content)
        Path("in", name).parent.mkdir(parents=True, exist_ok=True)
        Path("in", name).write_bytes(content)
    done = run("batch", s3("in"), "--output", s3("out"), *PARTED)
    assert done.status == 0
    assert "27 records: 24 mapped, 3 rejected" in done.err
    found = stored(s3("out"))
    assert {f"crosswalk-batch/part-{number:06}.json" for number in range(3)} <= found.keys()
    run("batch", "in", "--output", "out", *PARTED)
    local = pq.read_table("out/responses")
    remote = pa.concat_tables(
        pq.read_table(pa.BufferReader(content))
        for name, content in sorted(found.items())
        if name.startswith("responses/")
    )
    assert remote.drop_columns(["source"]).equals(local.drop_columns(["source"]))
    assert set(remote["source"].to_pylist()) == {"s3://logs/in/a.jsonl", "s3://logs/in/b/c.jsonl.gz"}
    assert run("batch", "--output", s3("out"), "--verify").status == 0
    assert run("batch", s3("in"), "--output", s3("out"), *PARTED) == done
    assert run("batch", s3("in/a.jsonl"), "--output", s3("out"), *PARTED).status == 2  # another job
    put(s3("in/new.jsonl"), data)
    assert run("batch", s3("in"), "--output", s3("out"), *PARTED, "--add").status == 0
    assert run("batch", s3("in"), "--output", s3("out"), *PARTED, "--add").status == 0
    assert run("batch", "--output", s3("out"), "--verify").status == 0
    assert sum("responses/" in name for name in stored(s3("out"))) > sum(
        "responses/" in name for name in found
    )
    assert run("batch", s3("in/b/e.txt"), "--output", "text").status == 2
    assert run("batch", s3("none"), "--output", "none").status == 2


@pytest.mark.untraced
@pytest.mark.filterwarnings("ignore")
def test_a_stopped_job_goes_on_in_object_storage(
    run: Run, s3: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "MIB", 600)
    Path("log.jsonl").write_bytes(lines(*map(record, range(12))))
    assert run("batch", "log.jsonl", "--output", s3("whole"), *PARTED).status == 0
    performed: list[int] = []

    def failing(task: Task) -> Any:
        performed.append(task.receipt.part)
        if len(performed) == 3:
            raise OSError("the network is down")
        return perform(task)

    monkeypatch.setattr(parts, "perform", failing)
    assert run("batch", "log.jsonl", "--output", s3("stopped"), *PARTED).status == 3
    system, path = fs.FileSystem.from_uri(s3("stopped/responses/part-000000.parquet"))
    system.delete_file(path)
    assert run("batch", "log.jsonl", "--output", s3("stopped"), *PARTED).status == 0
    assert performed[3:5] == [0, 2]
    assert stored(s3("stopped")) == stored(s3("whole"))
    put(s3("stopped/responses/part-000001.parquet"), b"x")
    done = run("batch", "--output", s3("stopped"), "--verify")
    assert (done.status, "responses/part-000001.parquet is damaged" in done.err) == (1, True)


@pytest.mark.filterwarnings("ignore")
def test_an_input_of_object_storage_that_is_gone_is_named(s3: Callable[[str], str]) -> None:
    gone = inputs.Input(s3("gone.jsonl"), "gone.jsonl", "lines", 1, "x", (1, 1))
    with pytest.raises(inputs.InputError, match="^gone.jsonl: No such file"):
        gone.check()


@pytest.mark.filterwarnings("ignore")
def test_the_local_server_keeps_a_second_writer_out_and_pyarrow_does_not(s3: Callable[[str], str]) -> None:
    """The page says that two writers are not excluded: the server has the condition, and pyarrow never sends it."""
    url = s3("lock/manifest.json")
    put(url, b"first")
    put(url, b"second")
    assert stored(s3("lock")) == {"manifest.json": b"second"}
    host, port = url.partition("endpoint_override=")[2].partition("&")[0].split(":")
    connection = HTTPConnection(host, int(port), timeout=60)
    try:
        connection.request("PUT", "/logs/lock/manifest.json", b"third", {"If-None-Match": "*"})
        assert connection.getresponse().status == 412
    finally:
        connection.close()
    assert stored(s3("lock")) == {"manifest.json": b"second"}


@pytest.mark.filterwarnings("ignore")
def test_a_log_in_object_storage_that_changes_stops_the_job(
    run: Run, s3: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(s3("grows/log.jsonl"), lines(record(1)))

    def growing(task: Task) -> Any:
        put(s3("grows/log.jsonl"), lines(record(1), record(2)))
        return perform(task)

    monkeypatch.setattr(parts, "perform", growing)
    done = run("batch", s3("grows/log.jsonl"), "--output", "out", "--jobs", 1)
    assert (done.status, "it changed while it was read" in done.err) == (3, True)
