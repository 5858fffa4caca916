"""The one function that every engine calls."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson
import pyarrow as pa
import pytest

from crosswalk import ResponseDelta, UnknownProviderError, hookimpl, normalize, registry, to_json
from crosswalk.records import with_fields
from crosswalk_batch import (
    PLACE,
    Options,
    combined,
    from_arrow,
    normalize_batch,
    rejects_schema,
    responses_schema,
    to_arrow,
)

from .conftest import ollama, record


def batch(**columns: list[Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def body(content: str = "Hi", **more: Any) -> bytes:
    return orjson.dumps(ollama(content, **more))


def test_bodies_become_what_normalize_makes_of_them() -> None:
    found = normalize_batch(
        batch(
            body=[body("one"), body("two")], provider=["ollama", None], source=["log", "log"], number=[4, 5]
        )
    )
    assert found.responses.schema.equals(responses_schema(), check_metadata=True)
    assert found.rejects.schema.equals(rejects_schema())
    assert found.rejects.num_rows == 0
    places = found.responses.select(PLACE.names).to_pylist()
    assert [tuple(place.values()) for place in places] == [("log", 4, None), ("log", 5, None)]
    one, two = from_arrow(found.responses)
    assert one.same_content(normalize(body("one"), "ollama"))
    assert (two.text, two.created) == ("two", datetime(2026, 11, 20, 10, tzinfo=UTC))


def test_lines_are_read_as_records_of_a_log() -> None:
    line = orjson.dumps(record(7, provider=None))
    found = normalize_batch(batch(line=[line, b"{oops", line], number=[1, 2, 3]))
    assert found.responses["record_id"].to_pylist() == ["r7", "r7"]
    assert [one.id for one in from_arrow(found.responses)] == ["r7", "r7"]
    (reject,) = found.rejects.to_pylist()
    assert {name: value for name, value in reject.items() if value is not None} == {
        "number": 2,
        "error": "RecordError",
        "message": reject["message"],
        "line": b"{oops",
    }
    assert reject["message"].startswith("not JSON")


def test_the_same_batch_gives_the_same_tables() -> None:
    records = batch(body=[body("one", created_at=None), b"{}", body("two")], provider=["ollama"] * 3)
    one, two = normalize_batch(records), normalize_batch(records)
    assert one.responses.equals(two.responses)
    assert one.rejects.equals(two.rejects)
    assert one.responses["id"].to_pylist()[0] != one.responses["id"].to_pylist()[1]


def test_a_reject_says_where_and_why_and_keeps_the_bytes() -> None:
    unfinished = body("secret", done=False)
    found = normalize_batch(
        batch(
            body=[unfinished, None, b"\x00"],
            provider=["ollama", "ollama", None],
            status=[200, None, None],
            source=["a", "a", "b"],
            number=[1, 2, 9],
            record_id=["x", None, None],
        )
    )
    assert found.responses.num_rows == 0
    one, two, three = found.rejects.to_pylist()
    assert (one["source"], one["number"], one["record_id"]) == ("a", 1, "x")
    assert (one["provider"], one["status"], one["error"], one["body"]) == (
        "ollama",
        200,
        "IncompleteStreamError",
        unfinished,
    )
    assert "secret" not in one["message"]
    assert (two["error"], two["message"], two["body"]) == ("RecordError", "no answer: null", None)
    assert (three["error"], three["body"]) == ("DetectionError", b"\x00")


def test_a_fault_of_the_reader_is_a_reject() -> None:
    found = normalize_batch(batch(line=[None, None], fault=["the line is too long", None]))
    assert found.rejects["message"].to_pylist() == ["the line is too long", "no answer: null"]


def test_an_error_of_the_provider_is_an_answer() -> None:
    found = normalize_batch(batch(body=[b'{"error":"busy"}'], provider=["ollama"], status=[503]))
    assert found.responses["finish_reason"].to_pylist() == ["error"]


def test_options_decide() -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    odd = body(created_at=None, done_reason="dance")
    options = Options(provider="ollama", unknown="keep", created=noon, include_raw=True)
    found = normalize_batch(batch(body=[odd]), options)
    (one,) = from_arrow(found.responses)
    assert (one.created, one.raw_finish_reason, one.raw_events.frames) == (noon, "dance", (odd,))
    assert normalize_batch(batch(body=[odd]), Options(provider="ollama")).rejects.num_rows == 1
    failed = normalize_batch(batch(body=[b'{"error":"x"}']), Options(provider="ollama", status=500))
    assert failed.responses["finish_reason"].to_pylist() == ["error"]
    inside = batch(line=[orjson.dumps({"log": {"answer": ollama()}})])
    found = normalize_batch(inside, Options(layout=with_fields(None, {"response": "log.answer"})))
    assert found.responses["message"].to_pylist()[0]["content"] == "Hi"


AMBIGUOUS = orjson.dumps(
    {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "Hi", "x": [1]}, "finish_reason": "stop"}
        ],
        "timings": {"predicted_ms": 3.5},
        "cost": 3,
    }
)


def test_who_answered_counts_where_several_fit() -> None:
    assert normalize_batch(batch(body=[AMBIGUOUS])).rejects["error"].to_pylist() == ["DetectionError"]
    found = normalize_batch(batch(body=[AMBIGUOUS], server=["vllm"]))
    assert found.responses["metadata"].to_pylist()[0]["provider_id"] == "vllm"
    found = normalize_batch(batch(body=[AMBIGUOUS], server=["nobody"]), Options(prefer="groq"))
    assert found.responses["metadata"].to_pylist()[0]["provider_id"] == "groq"


def test_texts_and_fixed_bytes_are_bodies_too() -> None:
    text = pa.array([body().decode()], pa.string())
    found = normalize_batch(pa.RecordBatch.from_arrays([text], ["body"]))
    assert found.responses.num_rows == 1


@pytest.mark.parametrize(
    ("records", "cause"),
    [
        (batch(answer=[b"{}"]), "needs a column body or line; it has answer"),
        (pa.RecordBatch.from_arrays([], []), "it has none"),
        (batch(body=[[1]]), "column body is of type list<"),
        (batch(body=[b"{}"], number=["one"]), "column number is of type string, not int64"),
    ],
)
def test_a_batch_that_is_none_is_refused(records: pa.RecordBatch, cause: str) -> None:
    with pytest.raises(ValueError, match=cause):
        normalize_batch(records)


def test_a_provider_that_is_not_there_stops() -> None:
    with pytest.raises(UnknownProviderError):
        normalize_batch(batch(body=[body()]), Options(provider="olama"))


class Odd:
    """A provider with extensions that JSON cannot represent."""

    @hookimpl
    def map_delta(self, event: Any) -> list[ResponseDelta]:
        return [ResponseDelta(content_delta="x", raw_finish_reason="stop")]

    @hookimpl
    def map_finish_reason(self, reason: str) -> str:
        return "stop"

    @hookimpl
    def extensions(self, event: Any) -> dict[str, Any]:
        return {"n": float(event["n"])}


def test_what_json_cannot_say_is_a_reject_and_the_rest_goes_on() -> None:
    plugin = Odd()
    registry.register(plugin, "odd")
    try:
        bodies = [b'{"n":"1"}', b'{"n":"nan"}', b"{", b'{"n":"2"}']
        found = normalize_batch(batch(body=bodies, number=[1, 2, 3, 4]), Options(provider="odd"))
    finally:
        registry.unregister(plugin, "odd")
    assert found.responses["number"].to_pylist() == [1, 4]
    assert found.rejects["number"].to_pylist() == [2, 3]
    assert found.rejects["error"].to_pylist() == ["PluginError", "InvalidJSONError"]


def test_one_table_holds_both() -> None:
    found = normalize_batch(
        batch(body=[body(), b"{", body("two")], number=[1, 2, 3], provider=["ollama"] * 3)
    )
    both = combined(found)
    both.validate(full=True)
    assert both["number"].to_pylist() == [1, 3, 2]
    assert [row["reject"] is None for row in both.to_pylist()] == [True, True, False]
    answers = pa.Table.from_struct_array(both["response"].combine_chunks().drop_null())
    assert [one.text for one in from_arrow(answers)] == ["Hi", "two"]
    assert combined(normalize_batch(batch(body=pa.array([], pa.binary())))).num_rows == 0


def test_a_table_of_responses_is_canonical_json() -> None:
    (one,) = from_arrow(normalize_batch(batch(body=[body()], provider=["ollama"])).responses)
    assert to_arrow([one]).num_rows == 1
    assert b'"content":"Hi"' in to_json(one)


def test_columns_say_what_a_line_does_not() -> None:
    line = orjson.dumps({"body": ollama(), "id": "own"})
    found = normalize_batch(batch(line=[line], provider=["ollama"], record_id=["other"], status=[201]))
    (row,) = found.responses.to_pylist()
    assert (row["record_id"], row["status"], row["vendor"]) == ("own", 201, "ollama")


def test_a_column_of_seconds_is_the_latency() -> None:
    records = pa.table({"body": [body(), body()], "provider": ["ollama"] * 2, "latency_seconds": [1.5, None]})
    found = normalize_batch(records)  # a table is a batch, too
    assert found.responses["latency_seconds"].to_pylist() == [1.5, None]
