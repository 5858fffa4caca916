"""The function in engines: the blocks of the page run as they are, where the engine is installed."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crosswalk_batch import combined, inputs, normalize_batch
from crosswalk_batch.job import read_receipts

from .conftest import Run, contents, lines, record, rows

PAGES = [Path(__file__).parents[3] / "docs" / name for name in ("batch.md", "batch-engines.md")]
BLOCKS = [
    block
    for page in PAGES
    for block in re.findall(r"^```(?:python|text)\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
]


def block(word: str) -> str:
    """The block of the pages that uses *word*."""
    (found,) = [each for each in BLOCKS if word in each]
    assert len([line for line in found.splitlines() if line.strip()]) <= 16
    return found


def write_log() -> pa.Table:
    """Write a log, and return what one machine makes of it."""
    tool = {"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}}
    span = {"traceId": "t", "startTimeUnixNano": "1", "attributes": [tool]}
    log = lines(*map(record, range(200)), b"{oops", span, *map(record, range(200, 400)), b'{"body": 1}')
    Path("log.jsonl").write_bytes(log)
    return combined(normalize_batch(pa.table({"line": log.splitlines()})))


def told(found: Any) -> Counter[tuple[Any, ...]]:
    """What rows say that an engine may return in another order."""

    def value(row: Any, *path: str) -> Any:
        for name in path:
            row = None if row is None else row[name]
        return row

    return Counter(
        (
            value(row, "record_id"),
            value(row, "time"),
            value(row, "response", "message", "content"),
            value(row, "response", "usage", "total_tokens"),
            value(row, "reject", "error"),
            value(row, "reject", "line"),
        )
        for row in found
    )


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pa.Table:
    """An empty folder with a log, and what one machine makes of it."""
    monkeypatch.chdir(tmp_path)
    return write_log()


@pytest.mark.sweep
@pytest.mark.filterwarnings("ignore")
def test_daft_gives_the_rows_of_one_machine(here: pa.Table) -> None:
    pytest.importorskip("daft")
    found: dict[str, Any] = {"pa": pa}
    exec(block("import daft"), found)
    assert told(found["rows"]) == told(here.to_pylist())


@pytest.mark.sweep
@pytest.mark.filterwarnings("ignore")
def test_spark_gives_the_rows_of_one_machine(here: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = pytest.importorskip("pyspark.sql")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("TZ", "UTC")
    builder = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    try:
        found: dict[str, Any] = {"pa": pa, "spark": session}
        exec(block("mapInArrow"), found)
    finally:
        session.stop()
    expected = [row | {"time": None} for row in here.to_pylist()]
    assert told(row.asDict() | {"time": None} for row in found["rows"]) == told(expected)


@pytest.fixture
def two_nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A Ray cluster of two nodes with a processor each."""
    ray = pytest.importorskip("ray")
    cluster_utils = importlib.import_module("ray.cluster_utils")
    root = Path(__file__).parents[3]
    paths = [str(root / name) for name in ("core", "plugins", "contrib")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([*paths, *filter(None, sys.path)]))
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False)
    yield ray
    ray.shutdown()
    cluster.shutdown()


@pytest.mark.sweep
@pytest.mark.filterwarnings("ignore")
def test_ray_gives_the_rows_of_one_machine_on_two_nodes(two_nodes: Any, here: pa.Table) -> None:
    found: dict[str, Any] = {}
    path = str(Path("log.jsonl").absolute())  # a node has a working folder of its own
    exec(block("import ray").replace('"log.jsonl"', repr(path)), found)
    assert told(found["rows"]) == told(here.to_pylist())


@pytest.mark.sweep
@pytest.mark.filterwarnings("ignore")
def test_ray_loses_nothing_when_a_worker_is_killed_and_uses_both_nodes(
    two_nodes: Any, here: pa.Table, tmp_path: Path
) -> None:
    """The records come from memory, and each worker has a folder of its own, so no node reads a file of the other one."""
    log = [line for line in Path("log.jsonl").read_bytes().splitlines() if line]
    blocks = [pa.table({"line": log[start : start + 20]}) for start in range(0, len(log), 20)]
    marker = str(tmp_path / "killed")

    def normalized(table: pa.Table) -> pa.Table:
        import signal
        import tempfile
        from contextlib import suppress

        os.chdir(tempfile.mkdtemp())
        if b'"r120"' in b"".join(table["line"].to_pylist()):
            with suppress(FileExistsError):
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
                os.kill(os.getpid(), signal.SIGKILL)
        rows = combined(normalize_batch(table))
        node = pa.array(
            [importlib.import_module("ray").get_runtime_context().get_node_id()] * len(rows), pa.string()
        )
        return rows.append_column("node", node)

    dataset = two_nodes.data.from_arrow(blocks)
    found = dataset.map_batches(normalized, batch_format="pyarrow", batch_size=None).take_all()
    assert os.path.exists(marker)
    assert told(found) == told(here.to_pylist())
    assert len({row["node"] for row in found}) == 2


# Files put together by DuckDB.


@pytest.fixture
def year(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Writes ``year``, an output of several parts, with rejects."""
    monkeypatch.setattr(inputs, "MIB", 600)
    several = [each for number in range(9) for each in (record(number), *([b"{oops"] * (number % 3 == 2)))]
    Path("log.jsonl").write_bytes(lines(*several))
    assert run("batch", "log.jsonl", "--output", "year", "--part-size", 1, "--jobs", 1).status == 0
    assert len(read_receipts("year")) > 2
    return run


def tables(folder: str) -> dict[str, pa.Table]:
    """The rows of each folder of files, in the order of their names."""
    found: dict[str, list[pa.Table]] = {}
    for file in sorted(Path(folder).rglob("*.parquet")):
        found.setdefault(str(file.parent.relative_to(folder)), []).append(pq.ParquetFile(file).read())
    return {name: pa.concat_tables(some) for name, some in found.items()}


@pytest.mark.untraced
@pytest.mark.parametrize(
    "by", [(), pytest.param(("--partition-by", "provider,day"), marks=pytest.mark.sweep)]
)
def test_the_lines_of_the_page_keep_types_order_and_metadata(year: Run, by: tuple[str, ...]) -> None:
    if by:
        shutil.rmtree("year")
        year("batch", "log.jsonl", "--output", "year", "--part-size", 1, "--jobs", 1, *by)
    exec(block("shutil.copytree"), {})
    before, after = tables("year"), tables("compact")
    assert before.keys() == after.keys()
    for name, table in before.items():
        assert after[name].schema.equals(table.schema, check_metadata=True)
        assert after[name].equals(table)
        assert len(list(Path("compact", name).glob("*.parquet"))) == 1
    for how in (
        ["--stored", "compact"],
        ["year", "compact"],
        ["compact", "year"],
        ["log.jsonl", "--stored", "compact"],
    ):
        done = year("diff", *how)
        assert (done.status, " 0 different, 12 the same" in done.out) == (0, True)
    assert year("report", "compact", "--csv") == year("report", "year", "--csv")


@pytest.mark.parametrize("cores", [2])
def test_rows_in_any_order_are_found_by_several_processes(year: Run) -> None:
    Path("compact").mkdir()
    shutil.copytree("year/crosswalk-batch", "compact/crosswalk-batch")
    for kind in ("responses", "rejects"):
        source = f"FROM 'year/{kind}/*.parquet' ORDER BY number DESC"
        Path("compact", kind).mkdir()
        duckdb.sql(f"COPY ({source}) TO 'compact/{kind}/x.parquet'")
    assert year("diff", "--stored", "compact").out.endswith("12 compared: 0 different, 12 the same\n")


@pytest.mark.parametrize("more", ["WHERE number <> 1", "UNION ALL FROM 'year/responses/part-000000.parquet'"])
def test_rows_that_are_lost_or_there_twice_are_said(year: Run, more: str) -> None:
    exec(block("shutil.copytree"), {})
    duckdb.sql(f"COPY (FROM 'year/responses/*.parquet' {more}) TO 'compact/responses/all.parquet'")
    done = year("diff", "--stored", "compact")
    assert done.status == 1
    assert done.err == "compact: rows of part 0 are missing, or there more than once\n"
    whole = 12 - read_receipts("year")[0].records
    assert done.out == f"{whole} compared: 0 different, {whole} the same; 1 could not be compared\n"


def test_a_folder_that_an_engine_wrote_is_not_added_to(year: Run) -> None:
    exec(block("shutil.copytree"), {})
    before = contents("compact")
    how = ("--output", "compact", "--part-size", 1)
    for more in ([], ["--add"]):
        done = year("batch", "log.jsonl", *how, *more)
        assert (done.status, ": no receipt names re" in done.err) == (2, True)
    assert year("batch", "--output", "compact", "--verify").status == 1
    assert contents("compact") == before
    assert len(rows("year")) == 9
