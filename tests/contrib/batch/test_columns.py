"""Responses as Arrow tables: nothing lost, both ways, in every engine that is installed."""

from __future__ import annotations

import runpy
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

import crosswalk_batch
from crosswalk import (
    CanonicalJSONError,
    ChatMessage,
    ChatResponse,
    FinishReason,
    Segment,
    SegmentType,
    UsageInfo,
    normalize,
    to_json,
)
from crosswalk.types import Cost, FrozenObject, ImagePart, ResponseMetadata, TextPart, TokenLogprob
from crosswalk_batch import from_arrow, schema, to_arrow
from strategies import chat_responses
from tries import tries

from .conftest import ollama

ROOT = Path(__file__).parents[3]


def response(**more: Any) -> ChatResponse:
    return attrs.evolve(normalize(ollama(), "ollama", id_factory=lambda: "r"), **more)


def with_plain_cost(one: ChatResponse) -> ChatResponse:
    """*one* with its cost as columns have it: without zeros at its end, which mean nothing."""
    cost = one.usage.cost
    if cost is None:
        return one
    amount = Decimal(f"{cost.amount.normalize():f}")
    return attrs.evolve(one, usage=attrs.evolve(one.usage, cost=attrs.evolve(cost, amount=amount)))


def test_an_error_without_a_message_stays_without_one() -> None:
    said_nothing = (Segment(SegmentType.ERROR, ""),)
    one = attrs.evolve(response(), finish_reason=FinishReason.ERROR, refusal="", segments=said_nothing)
    (back,) = from_arrow(to_arrow([one]))
    assert (back.refusal, to_json(back)) == ("", to_json(one))


@settings(max_examples=tries(60))
@given(chat_responses)
def test_a_table_holds_all_of_a_response(one: ChatResponse) -> None:
    one = with_plain_cost(one)
    table = to_arrow([one, response()], include_raw=True)
    table.validate(full=True)
    back, other = from_arrow(table)
    assert to_json(back, include_raw=True) == to_json(one, include_raw=True)
    assert other.same_content(response())
    (sliced,) = from_arrow(to_arrow([response(), one]).slice(1))
    assert sliced.same_content(one)
    assert len(sliced.raw_events) == 0


def test_an_empty_table_has_the_schema() -> None:
    table = to_arrow([])
    assert table.schema.equals(schema(), check_metadata=True)
    assert schema().metadata == {b"crosswalk.format_version": b"1.0"}
    assert from_arrow(table) == []


def test_every_key_of_canonical_json_has_a_column() -> None:
    keys = set(schema(include_raw=True).names)
    assert keys == set(attrs.fields_dict(ChatResponse)) | {"format_version"}


def test_integers_keep_every_digit() -> None:
    large = 2**63 - 1
    one = response(
        usage=UsageInfo(large, large),
        metadata=ResponseMetadata("p", "m", extensions=FrozenObject({"n": 10**40, "f": 1e300})),
    )
    table = to_arrow([one])
    assert table["usage"].to_pylist()[0]["total_tokens"] is None  # computed, and more than an int64 holds
    (back,) = from_arrow(table)
    assert back.same_content(one)
    assert back.metadata.extensions["n"] == 10**40


@pytest.mark.parametrize(
    ("amount", "stored"),
    [
        ("1000000000000", "1000000000000"),
        ("0.000000000000000001", "0.000000000000000001"),
        ("0.0000000000000000001", "0"),
    ],
)
def test_an_amount_of_money_is_a_decimal_number(amount: str, stored: str) -> None:
    usage = UsageInfo(1, 1, cost=Cost(Decimal(amount)))
    table = to_arrow([response(usage=usage)])
    assert table["usage"].combine_chunks().field("cost").field("amount").to_pylist() == [Decimal(stored)]
    assert from_arrow(table)[0].usage == UsageInfo(1, 1, cost=Cost(Decimal(stored)))


def test_a_class_inside_of_itself_is_json_below() -> None:
    inner = TokenLogprob("a", -1.0, (97,), (TokenLogprob("b", None, None, (TokenLogprob("c", -2.0),)),))
    one = response(logprobs=(TokenLogprob("x", -0.5, None, (inner,)),))
    table = to_arrow([one])
    (row,) = table["logprobs"].to_pylist()
    assert row[0]["top"][0]["token"] == "a"
    assert row[0]["top"][0]["top"].startswith('[{"token":"b"')
    assert from_arrow(table)[0].same_content(one)


def test_a_content_is_a_text_or_parts() -> None:
    parts = (TextPart("look"), ImagePart(url="https://x.example/y.png"))
    one = response(message=attrs.evolve(response().message, content=parts))
    message = to_arrow([one])["message"].to_pylist()[0]
    assert (message["content"], [part["type"] for part in message["content_parts"]]) == (
        None,
        ["text", "image"],
    )
    assert from_arrow(to_arrow([one]))[0].message == one.message


def test_other_engines_types_are_read() -> None:
    table = to_arrow([response()])
    small = [
        pa.field(field.name, pa.string()) if field.type == pa.large_string() else field
        for field in table.schema
    ]
    (back,) = from_arrow(table.cast(pa.schema(small)).to_batches()[0])
    assert back.same_content(response())


def test_optional_columns_may_be_missing_and_further_ones_be_there() -> None:
    table = to_arrow([response()]).drop_columns(["segments", "format_version", "logprobs"])
    (back,) = from_arrow(table.append_column("mine", pa.array([1])))
    assert (back.text, back.segments) == ("Hi", ())
    with pytest.raises(CanonicalJSONError, match="there is no column model"):
        from_arrow(table.drop_columns(["model"]))


def replaced(name: str, array: pa.Array) -> pa.Table:
    table = to_arrow([response()])
    return table.set_column(table.schema.get_field_index(name), name, array)


@pytest.mark.parametrize(
    ("table", "cause"),
    [
        (replaced("model", pa.array([[1]])), "column model is of another type: list<"),
        (replaced("usage", pa.array([True])), "column usage is of another type: bool"),
        (replaced("model", pa.array([""])), "row 0: ACODE-RSP-006"),
        (replaced("finish_reason", pa.array([None], pa.string())), "row 0: .*finish"),
        (replaced("finish_reason", pa.array(["dance"])), "'dance' is not a valid|dance"),
        (replaced("format_version", pa.array(["2.0"])), "unknown format version '2.0'"),
    ],
)
def test_what_is_none_of_ours_is_refused(table: pa.Table, cause: str) -> None:
    with pytest.raises(CanonicalJSONError, match=cause):
        from_arrow(table)


def test_the_version_may_stand_in_the_metadata_alone() -> None:
    table = to_arrow([response()]).drop_columns(["format_version"])
    assert len(from_arrow(table.replace_schema_metadata(None))) == 1
    with pytest.raises(CanonicalJSONError, match="format version '9'"):
        from_arrow(table.replace_schema_metadata({b"crosswalk.format_version": b"9"}))


def test_a_broken_extension_is_refused() -> None:
    table = to_arrow([response()])
    metadata = table["metadata"].combine_chunks().to_pylist()
    for broken in ("[1]", "{"):
        metadata[0]["extensions"] = broken
        changed = replaced("metadata", pa.array(metadata, table.schema.field("metadata").type))
        with pytest.raises(CanonicalJSONError, match="row 0: "):
            from_arrow(changed)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object()])
def test_what_json_cannot_say_is_refused(value: Any) -> None:
    odd = FrozenObject.adopt({"deep": [{"x": value}]})
    one = response(metadata=attrs.evolve(response().metadata, extensions=odd))
    with pytest.raises(CanonicalJSONError, match="cannot write extensions"):
        to_arrow([one])
    null = FrozenObject({"x": None})
    fine = response(metadata=attrs.evolve(response().metadata, extensions=null))
    assert from_arrow(to_arrow([fine]))[0].metadata.extensions == null


def test_the_page_of_columns_is_what_the_schema_says(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "scripts/batch_columns.py"), run_name="__main__")
    assert capsys.readouterr().out == (ROOT / "docs/batch-columns.md").read_text(), (
        "python scripts/batch_columns.py > docs/batch-columns.md"
    )


# The engines that read Parquet.

ONES = [
    response(),
    response(
        id="two",
        created=datetime(2026, 1, 2, 3, 4, 5, 678, UTC),
        usage=UsageInfo(10, 20, 4),
        message=ChatMessage.assistant("🦙"),
        logprobs=(TokenLogprob("a", -1.0, (97,)),),
    ),
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    pq.write_table(to_arrow(ONES), tmp_path / "responses.parquet", compression="zstd")
    return tmp_path / "responses.parquet"


def test_duckdb_reads_it(file: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    query = f"""SELECT model, created::DATE AS day, sum(usage.prompt_tokens), sum(usage.completion_tokens)
        FROM '{file}' GROUP BY ALL ORDER BY ALL"""
    found = duckdb.sql(query).fetchall()
    assert [(str(day), int(asked), int(said)) for _, day, asked, said in found] == [
        ("2026-01-02", 10, 20),
        ("2026-11-20", 3, 2),
    ]
    back = from_arrow(duckdb.sql(f"SELECT * FROM '{file}'").to_arrow_table())
    assert all(one.same_content(other) for one, other in zip(ONES, back, strict=True))


def test_polars_reads_it(file: Path) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.read_parquet(file)
    assert frame["usage"].struct.field("prompt_tokens").to_list() == [3, 10]
    assert frame["message"].struct.field("content").to_list() == ["Hi", "🦙"]


def test_pandas_reads_it(file: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_parquet(file)
    assert [one["prompt_tokens"] for one in frame["usage"]] == [3, 10]
    assert str(frame["created"].dt.year.to_list()) == "[2026, 2026]"


@pytest.mark.filterwarnings("ignore")
def test_spark_reads_it(file: Path) -> None:
    sql = pytest.importorskip("pyspark.sql")
    spark = sql.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        found = spark.read.parquet(str(file)).selectExpr("id", "usage.prompt_tokens AS n").collect()
        assert [(row.id, row.n) for row in found] == [("r", 3), ("two", 10)]
    finally:
        spark.stop()


def test_the_face_has_the_names_of_its_modules() -> None:
    assert {"from_arrow", "normalize_batch", "schema", "to_arrow"} <= set(dir(crosswalk_batch))
