"""Spark's ``mapInArrow`` with the function that all engines call, if Spark and a Java are installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from crosswalk_batch import combined, normalize_batch

from .conftest import lines, record

sql = pytest.importorskip("pyspark.sql")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    session = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    yield session
    session.stop()


def test_a_log_is_mapped_by_spark(spark: Any, tmp_path: Path) -> None:
    from_arrow_schema = pytest.importorskip("pyspark.sql.pandas.types").from_arrow_schema

    def mapped(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from combined(normalize_batch(batch)).to_batches()

    (tmp_path / "log.jsonl").write_bytes(lines(*map(record, range(50)), b"{oops"))
    nothing = pa.RecordBatch.from_pydict({"body": pa.array([], pa.binary())})
    columns = from_arrow_schema(combined(normalize_batch(nothing)).schema)
    log = spark.read.text(str(tmp_path / "log.jsonl")).withColumnRenamed("value", "line")
    asked = log.mapInArrow(mapped, columns).selectExpr(
        "record_id",
        "response.message.content AS text",
        "response.usage.total_tokens AS tokens",
        "reject.error",
    )
    rows = [tuple(row) for row in asked.collect()]
    expected = [(f"r{number}", f"Hi {number}", 5, None) for number in range(50)]
    assert rows == [*expected, (None, None, None, "RecordError")]
