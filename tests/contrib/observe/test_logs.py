"""The logs: they can be read again by every log reader, and hold nothing that they should not."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import orjson
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from crosswalk import CrosswalkError, from_json, normalize
from crosswalk.cli import main
from crosswalk.records import VENDORS, Record, read_record, read_records, record_line
from crosswalk.testing import load_captures
from crosswalk.types.json import dump_json
from crosswalk_batch import from_arrow, schema
from crosswalk_observe import (
    CaptureFolder,
    JSONLinesLog,
    ObservedExchange,
    ParquetLog,
    Sink,
    Watcher,
)

from .conftest import Seen, capture

HOSTS = {"vllm.example": "vllm"}
URL = "https://vllm.example/v1/chat/completions"
STREAM = capture("vllm/chat_think_stream.response.sse")
WHOLE = capture("vllm/chat_think.response.json")
ASKED = b'{"model":"tiny","messages":[{"role":"user","content":"Why?"}],"seed":7}'
HEADERS = {"Content-Type": "text/event-stream"}
KEY = "sesame-open-to-the-application"

Observe = Callable[..., ObservedExchange]


@pytest.fixture
def observe() -> Iterator[Observe]:
    """Lets an exchange be observed by sinks. Gives its record."""
    watchers = []

    def observe(
        *sinks: Sink,
        body: bytes = STREAM.body,
        asked: bytes | None = ASKED,
        headers: Any = HEADERS,
        end: str = "ended",
        status: int = 200,
        key: str = KEY,
    ) -> ObservedExchange:
        seen = Seen()
        watchers.append(Watcher(seen, *sinks, providers=HOSTS, in_background=False))
        exchange = watchers[-1].begin("POST", URL, {"Authorization": f"Bearer {key}"}, asked)
        assert exchange is not None
        exchange.answered(status, headers)
        exchange.chunk(body)
        getattr(exchange, end)()
        return seen.one

    yield observe
    for watcher in watchers:
        watcher.close()


# ------------------------------------------------------------------------------------ lines


@given(
    body=st.binary(),
    status=st.none() | st.integers(0, 1000),
    provider=st.none()
    | st.from_regex("[a-z][a-z0-9_]*", fullmatch=True).filter(lambda name: name not in VENDORS),
    id=st.none() | st.text(min_size=1),
    more=st.dictionaries(st.text(), st.none() | st.integers() | st.text()),
)
def test_any_record_can_be_read_again(body: bytes, more: dict[str, Any], **said: Any) -> None:
    line = record_line(body, more=more, **said)
    record = read_record(line)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert record.body == body
    assert (record.provider, record.id) == (said["provider"], said["id"])
    status = said["status"]
    assert record.status == (status if status is not None and 100 <= status <= 999 else None)
    own = {"id", "provider", "status", "body", "body_base64", "response"}
    assert {
        **record.fields,
        **{name: value for name, value in more.items() if name not in own},
    } == record.fields


def test_a_response_stands_beside_its_record() -> None:
    response = normalize(WHOLE.body, "vllm")
    record = read_record(record_line(WHOLE.body, provider="vllm", response=response))
    assert from_json(dump_json(record.stored), type(response)).same_content(response)


def read(file: Path) -> list[Record]:
    with file.open("rb") as opened:
        found = list(read_records(opened))
    assert all(isinstance(record, Record) for record in found)
    return found  # type: ignore[return-value]


def test_a_line_says_all_but_what_is_private(observe: Observe, tmp_path: Path) -> None:
    file = tmp_path / "made" / "log.jsonl"
    seen = observe(JSONLinesLog(file))
    (record,) = read(file)
    assert (record.body, record.status, record.provider, record.id) == (STREAM.body, 200, "vllm", seen.id)
    assert record.fields == {
        "id": seen.id,
        "provider": "vllm",
        "status": 200,
        "body": STREAM.body.decode(),
        "method": "POST",
        "url": URL,
        "model": "tiny",
        "options": {"seed": 7},
        "began": seen.began.isoformat().replace("+00:00", "Z"),
        "duration_seconds": seen.duration.total_seconds(),
        "time_to_first_chunk_seconds": seen.time_to_first_chunk and seen.time_to_first_chunk.total_seconds(),
        "is_stream": True,
        "is_complete": True,
        "is_cancelled": False,
    }
    assert KEY not in file.read_text()
    assert "Why?" not in file.read_text()


def test_request_and_response_are_written_where_that_is_wanted(observe: Observe, tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    log = JSONLinesLog(file, include_request=True, include_response=True)
    seen = observe(log)
    observe(log, asked=None)
    first, second = read(file)
    assert first.fields["request"] == orjson.loads(ASKED)
    assert first.stored["finish_reason"] == "stop"
    assert first.stored["message"]["content"] == (seen.response and seen.response.text)
    assert "request" not in second.fields


def test_an_exchange_that_nobody_answered_is_a_line_too(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    with Watcher(JSONLinesLog(file), providers=HOSTS, in_background=False) as watcher:
        exchange = watcher.begin("POST", URL)
        assert exchange is not None
        exchange.failed(OSError("refused"))
    (record,) = read(file)
    assert (record.body, record.status) == (b"", None)
    assert not record.fields["is_complete"]


def test_what_follows_half_a_line_is_a_line_of_its_own(observe: Observe, tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    file.write_bytes(b'{"id": "kill')
    observe(JSONLinesLog(file))
    observe(JSONLinesLog(file))
    with file.open("rb") as opened:
        assert [type(record).__name__ for record in read_records(opened)] == ["BadRecord", "Record", "Record"]


def test_a_full_disk_is_told_and_the_next_line_is_whole(
    observe: Observe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "log.jsonl"
    log = JSONLinesLog(file)
    write = os.write
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda opened, data: write(opened, data[:20]))
        observe(log)
    observe(log)
    with file.open("rb") as opened:
        assert [type(record).__name__ for record in read_records(opened)] == ["BadRecord", "Record"]
    assert [record.getMessage() for record in caplog.records] == [
        f"JSONLinesLog failed with OSError: {os.strerror(errno.ENOSPC)} (logged once)"
    ]


def test_many_writers_share_a_file(observe: Observe, tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    record = observe()

    def write() -> None:
        log = JSONLinesLog(file)
        for _ in range(50):
            log(record)

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(read(file)) == 200


def test_the_batch_command_reads_both_logs(
    observe: Observe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    parquet = ParquetLog("parts")
    for body, headers in ((STREAM.body, HEADERS), (WHOLE.body, {})):
        observe(JSONLinesLog("log.jsonl"), parquet, body=body, headers=headers)
    parquet.close()
    for log, output in (("log.jsonl", "one"), (str(*Path("parts").iterdir()), "two")):
        assert main(["batch", log, "--output", output, "--jobs", "1"]) == 0
        (part,) = (tmp_path / output / "responses").iterdir()
        rows = pq.ParquetFile(part).read()
        assert [one.text for one in from_arrow(rows)] == [
            normalize(one.body, "vllm").text for one in (STREAM, WHOLE)
        ]


# ------------------------------------------------------------------------------------ Parquet


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [
        row for file in sorted(folder.glob("*.parquet")) for row in pq.ParquetFile(file).read().to_pylist()
    ]


def test_a_part_holds_bytes_and_columns(observe: Observe, tmp_path: Path) -> None:
    log = ParquetLog(tmp_path, include_request=True)
    seen = observe(log)
    observe(log, asked=None)
    log.close()
    log.close()
    row, other = rows_of(tmp_path)
    response = row.pop("response")
    assert response["usage"]["total_tokens"] == (seen.response and seen.response.usage.total_tokens)
    assert row == {
        "record_id": seen.id,
        "provider": "vllm",
        "status": 200,
        "body": STREAM.body,
        "method": "POST",
        "url": URL,
        "requested_model": "tiny",
        "options": '{"seed":7}',
        "time": seen.began,
        "latency_seconds": seen.duration.total_seconds(),
        **dict.fromkeys(
            ("cost", "cost_source", "tags", "session", "user", "trace_id", "span_id", "resend_count")
        ),
        "time_to_first_chunk_seconds": seen.time_to_first_chunk and seen.time_to_first_chunk.total_seconds(),
        "is_stream": True,
        "is_complete": True,
        "is_cancelled": False,
        "request": ASKED.decode(),
    }
    assert other["request"] is None
    (file,) = tmp_path.iterdir()
    table = pq.ParquetFile(file).read()
    (stored, _) = from_arrow(table.select(["response"]).flatten().rename_columns(schema().names))
    assert seen.response is not None
    assert stored.same_content(seen.response)


def test_where_nothing_could_be_read_the_response_is_null(observe: Observe, tmp_path: Path) -> None:
    record = observe()
    log = ParquetLog(tmp_path)
    for response in (None, record.response, None):
        log(attrs.evolve(record, response=response))
    log.close()
    assert [row["response"] is None for row in rows_of(tmp_path)] == [True, False, True]
    log(attrs.evolve(record, response=None))
    log.close()
    assert len(rows_of(tmp_path)) == 4


@pytest.mark.parametrize(
    "bound", [{"part_records": 2}, {"part_bytes": 2 * len(STREAM.body)}, {"part_seconds": 3.0}]
)
def test_a_part_is_written_when_it_is_full_or_old(
    bound: dict[str, Any], observe: Observe, tmp_path: Path
) -> None:
    ticks = iter(range(100))
    record = observe()
    log = ParquetLog(tmp_path, clock=lambda: float(next(ticks)), **bound)
    for expected in [0, 1, 1, 2] if "part_seconds" not in bound else [0, 0, 1, 1]:
        log(record)
        assert len(list(tmp_path.iterdir())) == expected


def test_what_cannot_be_written_is_tried_again_within_bounds(observe: Observe, tmp_path: Path) -> None:
    record = observe()
    folder = tmp_path / "folder"
    folder.write_bytes(b"a file")
    log = ParquetLog(folder, part_records=2)
    log(record)
    for _ in range(2):
        with pytest.raises(OSError, match="exists"):
            log(record)
    folder.unlink()
    log(record)
    assert len(rows_of(folder)) == 4
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    folder.write_bytes(b"a file")
    log(record)
    for _ in range(3):
        with pytest.raises(OSError, match="exists"):
            log(record)
    folder.unlink()
    log.close()
    assert not folder.exists()


def test_another_process_does_not_write_what_this_one_has(
    observe: Observe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = observe()
    log = ParquetLog(tmp_path)
    log(record)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    log.close()
    assert rows_of(tmp_path) == []
    log(record)
    log.close()
    assert len(rows_of(tmp_path)) == 1


def test_parquet_needs_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "crosswalk_batch.columns", None)
    with pytest.raises(CrosswalkError, match=r"crosswalk-llm\[batch\]"):
        ParquetLog("nowhere")


# ------------------------------------------------------------------------------------ captures


@pytest.mark.sweep
def test_exchanges_become_captures_of_the_kit(observe: Observe, tmp_path: Path) -> None:
    sink = CaptureFolder(tmp_path / "new")
    streamed = observe(sink)
    whole = observe(sink, body=WHOLE.body, headers={"Content-Type": "application/json"})
    left = observe(sink, body=STREAM.body[:1000], end="abandoned")
    captures = {one.case: one for one in load_captures(tmp_path / "new")}
    assert captures.keys() == {
        f"vllm_{streamed.id[:12]}_stream",
        f"vllm_{whole.id[:12]}",
        f"vllm_{left.id[:12]}_stream",
    }
    one = captures[f"vllm_{streamed.id[:12]}_stream"]
    assert (one.body, one.status, one.stream, one.complete) == (STREAM.body, 200, True, True)
    assert (one.path, one.server, one.file.suffix) == ("/v1/chat/completions", "vllm", ".sse")
    assert one.file.with_name(f"{one.case}.request.json").read_bytes() == ASKED
    assert not captures[f"vllm_{left.id[:12]}_stream"].complete
    assert main(["check", str(tmp_path / "new"), "--provider", "vllm"]) in (0, 1)


@pytest.mark.parametrize(
    "given",
    [
        {"body": b'{"error": {"message": "wrong key: sesame-open-to-the-application"}}', "status": 401},
        {"body": b'{"error": {"message": "wrong key: sk-123456789012"}}', "status": 401},
        {"asked": b'{"model":"m","messages":[{"content":"my key is sk-123456789012"}]}'},
    ],
)
def test_what_holds_a_key_becomes_no_capture(
    given: dict[str, Any], observe: Observe, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    observe(CaptureFolder(tmp_path / "new"), **given)
    assert not (tmp_path / "new").exists()
    assert [record.getMessage() for record in caplog.records] == [
        "CaptureFolder failed with CrosswalkError: it holds what looks like a key, and is not recorded (logged once)"
    ]


def test_what_nobody_answered_becomes_no_capture(tmp_path: Path) -> None:
    with Watcher(CaptureFolder(tmp_path / "new"), providers=HOSTS, in_background=False) as watcher:
        exchange = watcher.begin("POST", URL)
        assert exchange is not None
        exchange.failed(OSError("refused"))
    assert not (tmp_path / "new").exists()
