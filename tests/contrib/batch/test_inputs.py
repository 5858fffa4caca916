"""Files cut into pieces: what is read, and what is said of that which cannot be."""

from __future__ import annotations

import base64
import bz2
import errno
import gzip
import lzma
import os
import sys
import tracemalloc
import zlib
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crosswalk.commands import UsageError
from crosswalk.records import LogFileError, RecordError, read_record
from crosswalk_batch import batches, inputs, normalize_batch, pieces as cutting
from crosswalk_batch.batches import Options
from crosswalk_batch.inputs import InputError, find_inputs
from crosswalk_batch.job import read_receipts
from crosswalk_batch.pieces import InputPiece, blocks, cut, grouped

from .conftest import Run, contents, lines, ollama, packed, record, rows


def pieces(path: Path, size: int = 100) -> list[InputPiece]:
    """The pieces of all inputs at *path*."""
    return [piece for each in find_inputs([str(path)], Path("nowhere")) for piece in cut(each, size)]


def read_blocks(path: Path, size: int = 100, column: str = "body") -> list[pa.RecordBatch | LogFileError]:
    """The blocks of all pieces, and why an input ends early."""
    found: list[pa.RecordBatch | LogFileError] = []
    for group in grouped(pieces(path, size)):
        try:
            for batch, _ in blocks(group, size, column, Options()):
                found.append(batch)  # those before an error count
        except LogFileError as error:
            found.append(error)
    return found


def read(path: Path, size: int = 100, **more: Any) -> list[dict[str, Any]]:
    found = read_blocks(path, size, **more)
    assert not [one for one in found if isinstance(one, LogFileError)]
    return [row for batch in found for row in batch.to_pylist()]


def rejects(path: Path, size: int = 100) -> list[dict[str, Any]]:
    """The rejects of the records at *path*."""
    found = [batch for batch in read_blocks(path, size) if not isinstance(batch, LogFileError)]
    return [row for batch in found for row in normalize_batch(batch).rejects.to_pylist()]


@pytest.mark.parametrize("kind", ["", ".gz", ".zst"])
def test_a_log_is_cut_between_lines(tmp_path: Path, kind: str) -> None:
    data = b"\xef\xbb\xbf" + lines(*[b"x" * number for number in range(1, 60)]) + b"\n  \r\nlast\r"
    file = tmp_path / f"log.jsonl{kind}"
    file.write_bytes(packed(data, kind[1:]) if kind else data)
    for size in (1, 7, 100, 10_000):
        found = read(file, size)
        assert [row["line"] for row in found] == [b"x" * number for number in range(1, 60)] + [b"last"]
        assert [row["number"] for row in found] == [*range(1, 60), 62]
        assert {row["source"] for row in found} == {str(file)}
        done = pieces(file, size)
        assert sum(piece.weight for piece in done) == file.stat().st_size
        assert [piece.number for piece in done] == ([0] if kind else list(range(len(done))))
        assert [piece.is_last for piece in done] == [False] * (len(done) - 1) + [True]
    assert len(read_blocks(file, 1)) == (60 if kind else 62)
    file.write_bytes(b"")
    assert read(file) == []


def codex_session(answers: int) -> bytes:
    """A session file of Codex: three lines for each answer."""
    said = []
    for number in range(answers):
        text = {"type": "output_text", "text": f"Hi {number}"}
        usage = {
            "total_token_usage": {"total_tokens": number},
            "last_token_usage": {"input_tokens": 3, "output_tokens": 2},
        }
        said += [
            {"type": "turn_context", "payload": {"model": "gpt-x"}},
            {"type": "response_item", "payload": {"type": "message", "role": "assistant", "content": [text]}},
            {"type": "event_msg", "payload": {"type": "token_count", "info": usage}},
        ]
    return lines({"type": "session_meta", "payload": {"id": "s1"}}, *said)


@pytest.mark.parametrize("kind", ["", ".gz", ".zst"])
def test_a_session_has_a_record_for_each_answer(tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"rollout.jsonl{kind}"
    file.write_bytes(packed(codex_session(20), kind[1:]) if kind else codex_session(20))
    for size in (1, 700, 1_000_000):
        found = read(file, size)
        assert [row["number"] for row in found] == [3 * number + 3 for number in range(20)]
        assert [f"Hi {number}".encode() in row["line"] for number, row in enumerate(found)] == [True] * 20
        (whole,) = pieces(file, size)
        assert whole.weight == file.stat().st_size
    file.write_bytes(packed(codex_session(0), kind[1:]) if kind else codex_session(0))
    assert read(file) == []


def test_of_a_damaged_session_what_comes_before_is_read(tmp_path: Path) -> None:
    file = tmp_path / "rollout.jsonl.gz"
    file.write_bytes(packed(codex_session(20), "gz")[:-1])
    found, fault = read_blocks(file, 1_000_000)
    assert found.num_rows == 20
    assert str(fault) == "after record 60: the file is damaged: it ends in the middle"


def test_an_answer_of_a_session_that_is_too_long_is_a_reject(tmp_path: Path, short: None) -> None:
    file = tmp_path / "rollout.jsonl"
    file.write_bytes(codex_session(1).replace(b"Hi 0", b"x" * 1000))
    (row,) = rejects(file)
    assert (row["line"], row["message"]) == (None, TOO_LONG.format("line"))


def test_packed_files_one_after_another_are_read_to_the_end(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl.gz"
    file.write_bytes(packed(b"a\n", "gz") + packed(b"b\nc", "gz") + b"\0\0")
    assert [row["line"] for row in read(file)] == [b"a", b"b", b"c"]
    file.write_bytes(packed(b"\n" * 500_000, "gz"))  # unpacks to far more than it is
    assert read_blocks(file, 200_000) == []


@pytest.mark.untraced
@pytest.mark.parametrize("kind", ["gz", "zst"])
def test_of_a_damaged_file_what_comes_before_is_read(tmp_path: Path, kind: str) -> None:
    whole = packed(os.urandom(2_000_000).hex().encode() + b"\nrest" * 1000, kind)
    file = tmp_path / f"log.jsonl.{kind}"
    file.write_bytes(packed(lines(*range(100)), kind)[:-1])
    *found, fault = read_blocks(file)
    rows = [line for batch in found for line in batch["line"].to_pylist()]
    assert "the file is damaged: " in str(fault)
    assert not rows or str(fault).startswith(f"after record {len(rows)}: ")
    assert rows == [str(number).encode() for number in range(len(rows))]
    file.write_bytes(whole[: len(whole) // 2])
    *found, fault = read_blocks(file, 1000)
    assert isinstance(fault, LogFileError)
    assert sum(batch.nbytes for batch in found) > 500_000


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes a thousand bytes the most that a record may have."""
    for module in (batches, cutting):
        monkeypatch.setattr(module, "LONGEST", 1000)
    monkeypatch.setattr(cutting, "MIB", 100)


TOO_LONG = "the {} is longer than 1000 bytes; it stays where it is"


def test_a_line_that_is_too_long_is_a_reject_without_its_bytes(tmp_path: Path, short: None) -> None:
    data = b"a\n" + b"x" * 50_000 + b"\nb\n"
    for kind in ("", ".gz"):
        file = tmp_path / f"log.jsonl{kind}"
        file.write_bytes(packed(data, "gz") if kind else data)
        a, long, b = rejects(file, 10)
        assert (a["line"], b["line"], b["number"]) == (b"a", b"b", 3)
        assert {name: value for name, value in long.items() if value is not None} == {
            "source": str(file),
            "number": 2,
            "error": "RecordError",
            "message": TOO_LONG.format("line"),
        }


@pytest.mark.parametrize("kind", ["", ".gz"])
@pytest.mark.parametrize("size", [10, 3000, 7000, 100_000])
def test_a_piece_may_be_larger_than_the_longest_line(
    tmp_path: Path, short: None, kind: str, size: int
) -> None:
    there = [b"a" * 900, b"b" * 1000, b"x" * 1001, b"c" * 900, b"d"] * 10
    file = tmp_path / f"log.jsonl{kind}"
    file.write_bytes(packed(b"\n".join(there), "gz") if kind else b"\n".join(there))
    found = rejects(file, size)
    assert [row["line"] for row in found] == [None if len(one) > 1000 else one for one in there]
    assert [row["number"] for row in found] == list(range(1, 51))


def test_an_answer_that_is_too_long_stays_where_it_is(tmp_path: Path, short: None) -> None:
    bodies = ["a" * 1000, "b" * 1001, None]
    pq.write_table(pa.table({"body": bodies, "provider": ["x", "y", "z"]}), tmp_path / "log.parquet")
    (tmp_path / "page.har").write_bytes(har(entry("a" * 700), entry("b" * 1001)))
    captures = tmp_path / "captures"
    captures.mkdir()
    for body in bodies[:2]:
        (captures / f"{str(body)[0]}.response.txt").write_text(str(body))
    one, two = rejects(tmp_path / "page.har", 100_000)
    assert (one["message"] == TOO_LONG.format("line"), two["message"]) == (False, TOO_LONG.format("line"))
    found = rejects(tmp_path / "log.parquet", 100_000)
    assert [(row["body"] and len(row["body"]), row["number"], row["provider"]) for row in found] == [
        (1000, 1, "x"),
        (None, 2, "y"),
        (None, 3, "z"),
    ]
    assert [row["message"] for row in found[1:]] == [TOO_LONG.format("answer"), "no answer: null"]
    one, two = rejects(captures)
    assert (len(one["body"]), two["body"], two["message"]) == (1000, None, TOO_LONG.format("answer"))


def test_a_file_that_changes_is_told(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    file.write_bytes(lines(1, 2, 3))
    (found,) = find_inputs([str(file)], Path("nowhere"))
    (piece,) = cut(found, 100)
    begun = cut(found, 2)
    next(begun)
    with file.open("ab") as log:
        log.write(b"4\n")
    for reading in (blocks([piece], 100, "body", Options()), begun, cut(found, 100)):
        with pytest.raises(InputError, match="changed while it was read"):
            list(reading)
    file.unlink()
    with pytest.raises(InputError, match=f"{file}: No such file or directory"):
        list(blocks([piece], 100, "body", Options()))


# Captures.


def test_captures_are_records_of_their_own(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"c{number}.response.json").write_bytes(orjson.dumps(ollama(str(number))))
    manifest = lines({"file": "c1.response.json", "status": 500, "server": "vllm"})
    (tmp_path / "MANIFEST.jsonl").write_bytes(manifest)
    found = read(tmp_path, 1)
    assert [(row["number"], row["status"], row["server"]) for row in found] == [
        (1, 500 if number == 1 else 200, "vllm" if number == 1 else None) for number in range(5)
    ]
    assert found[2]["source"] == str(tmp_path / "c2.response.json")
    assert [piece.input.kind for piece in pieces(tmp_path)] == ["capture"] * 5
    assert len(read_blocks(tmp_path)) == 1
    (alone,) = read(tmp_path / "c3.response.json")
    assert orjson.loads(alone["body"])["message"]["content"] == "3"


def test_a_capture_that_cannot_be_read_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "a.response.json").write_bytes(b"{}")
    (tmp_path / "a.meta.json").write_bytes(b"[oops")
    (row,) = read(tmp_path)
    assert (row["body"], "a.meta.json" in row["fault"]) == (None, True)
    found = pieces(tmp_path)
    (tmp_path / "a.response.json").unlink()
    with pytest.raises(InputError, match=r"a.response.json: No such file"):
        list(blocks(found, 100, "body", Options()))


# Parquet.


def test_parquet_gives_a_column_and_what_stands_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "log.parquet"
    bodies = [orjson.dumps(ollama(str(number))) for number in range(30)]
    table = pa.table({"answer": bodies, "status": [200] * 30, "provider": ["ollama"] * 30, "other": [1] * 30})
    pq.write_table(table, file, row_group_size=7)
    found = read(file, 100, column="answer")
    assert [row["body"] for row in found] == bodies
    assert [row["number"] for row in found] == list(range(1, 31))
    assert found[0].keys() == {"body", "provider", "status", "source", "number"}
    assert len(read_blocks(file, 100, column="answer")) > 3


def test_a_parquet_without_the_column_is_told(tmp_path: Path) -> None:
    file = tmp_path / "log.parquet"
    pq.write_table(pa.table({"a": [1], "b": ["x"]}), file)
    (fault,) = read_blocks(file)
    assert str(fault) == "no column 'body' in it (name it with --column): a, b"
    (fault,) = read_blocks(file, column="a")
    assert str(fault) == "column 'a' holds no bytes and no text, but int64"
    file.write_bytes(b"PAR1 no")
    (fault,) = read_blocks(file)
    assert isinstance(fault, LogFileError)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("status", ["fine", "late"]),
        ("time", ["noon", "dusk"]),
        ("user", [{"id": 1}, {"id": 2}]),
        ("tags", [["a"], ["b"]]),
        ("line", [[1], [2]]),
    ],
)
def test_a_parquet_with_another_column_of_a_known_name_is_told_and_the_others_are_read(
    run: Run, name: str, values: list[Any]
) -> None:
    bodies = [orjson.dumps(ollama(str(number))) for number in range(2)]
    pq.write_table(pa.table({"body": bodies, name: values}), "a.parquet")
    Path("log.jsonl").write_bytes(lines(record(1)))
    for _ in range(2):
        done = run("batch", "a.parquet", "log.jsonl", "--output", "out", "--jobs", 1)
        assert done.status == 1
        assert done.err.startswith(f"a.parquet: column {name} is of type ")
        assert done.err.endswith("\n1 record: 1 mapped, 0 rejected\n")


@pytest.mark.parametrize(
    "beside",
    [
        {"source": ["web", "app"]},
        {"number": [70, 80]},
        {"number": ["x", "y"]},
        {"source": [1, 2], "number": [70, 80]},
    ],
    ids=str,
)
def test_columns_of_a_parquet_are_no_origin_unless_a_batch_wrote_them(
    run: Run, beside: dict[str, list[Any]]
) -> None:
    bodies = [orjson.dumps(ollama(str(number))) for number in range(2)]
    pq.write_table(pa.table({"body": bodies, **beside}), "a.parquet")
    run("batch", "a.parquet", "--output", "out", "--provider", "ollama", "--jobs", 1)
    assert [(row["source"], row["number"]) for row in rows("out")] == [("a.parquet", 1), ("a.parquet", 2)]


# HAR.


def har(*entries: Any) -> bytes:
    return orjson.dumps({"log": {"entries": entries}})


def entry(text: Any, kind: str = "application/json", status: Any = 200, **more: Any) -> dict[str, Any]:
    request = {"url": "https://api.example.com/api/chat"}
    return {
        "startedDateTime": "2026-11-20T10:00:00Z",
        "request": request,
        "response": {"status": status, "content": {"mimeType": kind, "text": text} | more},
    }


def logged(row: dict[str, Any]) -> tuple[bytes | str, int | None]:
    """The answer in *row*, or why there is none, and its status."""
    if row["line"] is None:
        return row["fault"], None
    try:
        found = read_record(row["line"])
    except RecordError as error:
        return str(error), None if error.exchange is None else error.exchange.status
    return found.body, found.status


def test_a_har_file_gives_the_answers_of_models(tmp_path: Path) -> None:
    file = tmp_path / "page.har"
    body = orjson.dumps(ollama())
    file.write_bytes(
        b"\xef\xbb\xbf"
        + har(
            entry(body.decode()),
            entry("<html>", "text/html"),
            entry(
                base64.b64encode(b"data: x").decode(), "text/event-stream; charset=utf-8", encoding="base64"
            ),
            entry(None, status=0),
            entry("?", encoding="base64"),
            {"response": 3},
            {"response": {"content": None}},
            None,
        )
    )
    for size in (1, 10_000):
        found = read(file, size)
        assert [(row["number"], *logged(row)) for row in found] == [
            (1, body, 200),
            (3, b"data: x", 200),
            (4, "response.content.text: no answer", None),
            (5, "response.content.text: not base64", 200),
            (6, b'{"response":3}', None),
            (7, b'{"response":{"content":null}}', None),
            (8, "expected an object, got null", None),
        ]
    file.write_bytes(har())
    assert read(file) == []


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"log":{}}', b"", b"\xff"])
def test_a_har_file_that_is_none_is_told(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "page.har"
    file.write_bytes(data)
    (fault,) = read_blocks(file)
    assert str(fault) == "not a HAR file"


@pytest.mark.parametrize("size", [1, 10_000])
def test_of_a_har_file_that_is_damaged_what_comes_before_is_read(tmp_path: Path, size: int) -> None:
    file = tmp_path / "page.har"
    whole = har(*(entry(orjson.dumps(ollama(f"Hi {number}")).decode()) for number in range(3)))
    file.write_bytes(whole[:-40])
    *found, fault = read_blocks(file, size)
    assert sum(batch.num_rows for batch in found) == 2
    assert str(fault) == "after record 2: the HAR file is damaged"


def test_a_har_file_that_is_large_is_never_held_as_a_whole(tmp_path: Path) -> None:
    file = tmp_path / "page.har"
    one = orjson.dumps(entry("x" * 100_000))
    with file.open("wb") as out:
        out.write(b'{"log":{"entries":[')
        out.writelines(one + (b"," if number < 199 else b"]}}") for number in range(200))
    tracemalloc.start()
    found = blocks(pieces(file), 200_000, "body", Options())
    assert sum(batch.num_rows for batch, _ in found) == 200
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 15_000_000 < file.stat().st_size


# What is found.


def test_folders_are_searched_through(tmp_path: Path) -> None:
    for name in (
        "b/log.jsonl.gz",
        "b/x.response.json",
        "a.parquet",
        "c.har",
        ".hidden/x.jsonl",
        "readme.md",
        "d/l.NDJSON",
    ):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/crosswalk-batch.jsonl").write_bytes(b"")
    found = find_inputs([str(tmp_path)], tmp_path / "out")
    assert [(Path(one.path).relative_to(tmp_path).as_posix(), one.kind) for one in found] == [
        ("a.parquet", "parquet"),
        ("c.har", "har"),
        ("b/log.jsonl.gz", "lines"),
        ("b/x.response.json", "capture"),
        ("d/l.NDJSON", "lines"),
    ]


@pytest.mark.parametrize(
    ("paths", "cause"),
    [
        ([], "name files or folders"),
        (["-"], "name files or folders"),
        (["missing.jsonl"], "no such file: missing.jsonl"),
        (["empty"], "empty: contains nothing that can be read"),
        (["odd"], "odd: .*MANIFEST"),
    ],
)
def test_what_is_not_there_is_a_wrong_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, paths: list[str], cause: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("odd").mkdir()
    Path("odd/MANIFEST.jsonl").write_bytes(b"[oops")
    with pytest.raises(UsageError, match=cause):
        find_inputs(paths, Path("out"))


def test_a_file_that_cannot_be_read_is_a_wrong_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.jsonl"
    file.touch()

    def closed(location: str) -> Any:  # permissions would not stop the superuser
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), location)

    monkeypatch.setattr(inputs, "open_file", closed)
    with pytest.raises(UsageError, match=r"a\.jsonl: Permission denied"):
        find_inputs([str(file)], tmp_path / "out")


@pytest.mark.sweep
def test_a_record_of_two_hundred_megabytes_takes_little_memory(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    with file.open("wb") as log:
        log.write(lines(record(1)))
        log.seek(200_000_000, os.SEEK_CUR)  # a hole: it takes no room on the disk
        log.write(b"\n" + lines(record(2)))
    assert [row["number"] for row in read(file, 1000)] == [1, 2, 3]
    [large] = rejects(file, 1000)
    assert (large["number"], large["line"]) == (2, None)
    assert "longer than 134217728 bytes" in large["message"]


def test_the_content_says_what_a_file_is(tmp_path: Path) -> None:
    two = lines(record(1), record(2))
    files = {
        "a.jsonl.1": two,
        "b.jsonl.2026-11-20": two,
        "c.txt": two,
        "d.json": lines(record(1)),
        "e": gzip.compress(two),
        "f.bin": packed(two, "zst"),
        "g.json": orjson.dumps(ollama()),
        "h.json": orjson.dumps(ollama(), option=orjson.OPT_INDENT_2),
        "i.jsonl.bz2": bz2.compress(two),
        "j.jsonl.xz": lzma.compress(two),
        "m.json": b"[" + lines(record(1)).rstrip() + b"," + lines(record(2)) + b"]",
        "n.csv": b"generation_id,tokens_prompt,tokens_completion\ng,1,2\n",
        "o.png": b"\x89PNG",
        "k.txt": b"[1]\n[2]\n",
        "l.json": orjson.dumps({"requestId": "a", "modelId": "b", "input": {}, "request": {}, "response": {"body": {}}}),
        "CASE.request.json": b"{}",
    }  # fmt: skip
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    passed_over: list[str] = []
    found = find_inputs([str(tmp_path)], tmp_path / "out", passed_over)
    captures = [each for each in found if each.kind == "capture"]
    assert [Path(each.name).name for each in captures] == ["g.json", "h.json", "k.txt"]
    found = [each for each in found if each not in captures]
    assert {Path(each.name).name: each.kind for each in found} == {
        "a.jsonl.1": "lines",
        "b.jsonl.2026-11-20": "lines",
        "c.txt": "lines",
        "d.json": "lines",
        "e": "gzip",
        "f.bin": "zstd",
        "i.jsonl.bz2": "bzip2",
        "j.jsonl.xz": "xz",
        "l.json": "lines",
        "m.json": "document",
        "n.csv": "csv",
    }
    assert [Path(name).name for name in passed_over] == ["o.png"]
    assert [each.kind for each in find_inputs([str(tmp_path / "g.json")], tmp_path)] == ["capture"]
    for each in found:
        assert len(read(Path(each.path))) == (
            1 if Path(each.name).name in ("d.json", "l.json", "n.csv") else 2
        ), each


def test_a_file_is_one_input_however_it_is_named(run: Run) -> None:
    Path("logs").mkdir()
    Path("logs/day1.jsonl").write_bytes(lines(record(1)))
    whole = Path("logs").resolve()
    for paths in (
        ["logs/day1.jsonl", "logs/day1.jsonl"],
        ["logs/day1.jsonl", "./logs/../logs/day1.jsonl", "logs", whole, f"file://{whole}/day1.jsonl"],
    ):
        assert [each.name for each in find_inputs([*map(str, paths)], "out")] == ["logs/day1.jsonl"]
    Path("logs/latest.jsonl").symlink_to("day1.jsonl")
    Path("link").symlink_to("logs")
    assert run("batch", "logs", "link", "--output", "out").err == "1 record: 1 mapped, 0 rejected\n"
    Path("logs/copy.jsonl").write_bytes(lines(record(1)))
    assert len(find_inputs(["logs"], "out")) == 2  # a copy is a file of its own


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="no such names there")
def test_names_that_are_not_utf_8_are_read(run: Run) -> None:
    folder = os.fsdecode(b"caf\xe9")
    Path(folder).mkdir()
    for name, data in {
        b"\xe8.jsonl": lines(record(1)),
        b"\xe9.jsonl": lines(record(2)),
        b"\xe9.csv": b"generation_id,tokens_prompt,tokens_completion\ng,1,2\n",
        b"\xe9.response.json": orjson.dumps(ollama()),
    }.items():
        Path(folder, os.fsdecode(name)).write_bytes(data)
    done = run("batch", folder, "--output", "out", "--jobs", 1)
    assert (done.status, done.err.startswith("4 records: 4 mapped, 0 rejected\n")) == (0, True)
    assert {row["source"] for row in rows("out")} == {
        f"caf\\xe9/{name}" for name in ("\\xe8.jsonl", "\\xe9.jsonl", "\\xe9.csv", "\\xe9.response.json")
    }
    assert run("diff", "--stored", "out").out == "4 compared: 0 different, 4 the same\n"
    again = run("batch", folder, "--output", folder)
    assert (again.status, "its name is not UTF-8; name another folder" in again.err) == (2, True)


@pytest.mark.skipif(sys.platform == "win32", reason="no pipes in folders there")
def test_links_to_nothing_pipes_and_outputs_in_a_folder_are_no_inputs(run: Run) -> None:
    Path("logs/deep").mkdir(parents=True)
    Path("logs/deep/a.jsonl").write_bytes(lines(record(1)))
    run("batch", "logs", "--output", "logs/deep/old")
    Path("logs/gone.jsonl").symlink_to("nothing.jsonl")
    os.mkfifo("logs/pipe.jsonl")
    done = run("batch", "logs", "--output", "out")
    assert (done.status, done.err) == (
        0,
        "passed over 2 files without a log in it: logs/gone.jsonl, logs/pipe.jsonl\n"
        "1 record: 1 mapped, 0 rejected\n",
    )
    done = run("batch", "logs/gone.jsonl", "--output", "other")
    assert (done.status, done.err) == (2, "crosswalk batch: no such file: logs/gone.jsonl\n")


def test_what_is_passed_over_is_said(run: Run) -> None:
    Path("logs").mkdir()
    Path("logs/a.jsonl").write_bytes(lines(record(1)))
    for name in ("b.md", "c.md", "d.md", "e.md"):
        Path("logs", name).write_bytes(b"# No log\n")
    done = run("batch", "logs", "--output", "out")
    assert done.status == 0
    assert done.err.startswith(
        "passed over 4 files without a log in it: logs/b.md, logs/c.md, logs/d.md, …\n"
    )


def test_small_inputs_share_a_part(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "MIB", 1000)
    Path("logs").mkdir()
    payload = {"request_id": "h", "request_created_at": "2026-11-20", "response_body": ollama()}
    for number in range(12):
        data = lines(payload if number == 3 else record(number))
        Path(f"logs/{number:02}.jsonl").write_bytes(data)
    Path("logs/12.jsonl").write_bytes(lines(*map(record, range(12, 24))))
    done = run("batch", "logs", "--output", "out", "--part-size", 1, "--jobs", 1)
    assert done.err.endswith("24 records: 24 mapped, 0 rejected\nlayouts: 23 exchange, 1 helicone\n")
    assert [row["source"] for row in rows("out")][:12] == [f"logs/{number:02}.jsonl" for number in range(12)]
    assert 4 < len(read_receipts("out")) < 10
    assert run("diff", "--stored", "out").status == 0
    assert run("batch", "logs", "--output", "two", "--part-size", 1, "--jobs", 2).status == 0
    assert contents("out") == contents("two")


def test_one_process_unpacks_a_packed_file_and_stores_it_in_several(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "MIB", 600)
    log = lines(*map(record, range(12)), b"{oops")
    Path("log.jsonl.gz").write_bytes(gzip.compress(log) + gzip.compress(lines(record(12)))[:-9])
    Path("none.jsonl.gz").write_bytes(gzip.compress(b""))
    command = ("batch", "log.jsonl.gz", "none.jsonl.gz", "--output", "out", "--part-size", 1, "--jobs", 1)
    done = run(*command)
    assert done.status == 1
    assert done.err == (
        "log.jsonl.gz: after record 14: the file is damaged: it ends in the middle\n"
        "14 records: 13 mapped, 1 rejected (1 RecordError)\n"
    )
    (part,) = read_receipts("out")
    assert "responses/part-000000_1.parquet" in [file.name for file in part.files]
    assert [row["record_id"] for row in rows("out")] == [f"r{number}" for number in range(13)]
    monkeypatch.setattr(cutting, "record_lines", None)
    assert run(*command) == done  # nothing is unpacked again
    assert run("batch", "--output", "out", "--verify").status == 0


def test_a_packed_file_without_lines_is_a_part_without_files(run: Run) -> None:
    Path("none.jsonl.gz").write_bytes(gzip.compress(b""))
    assert run("batch", "none.jsonl.gz", "--output", "out", "--jobs", 1).status == 0
    (part,) = read_receipts("out")
    assert (part.records, part.files) == (0, ())


def test_a_packed_file_that_keeps_a_process_busy_is_shared_between_all(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "MIB", 600)
    monkeypatch.setattr(cutting, "LARGE", 10)
    Path("log.jsonl.gz").write_bytes(gzip.compress(lines(*map(record, range(12)))))
    assert run("batch", "log.jsonl.gz", "--output", "out", "--part-size", 1, "--jobs", 1).status == 0
    assert len(read_receipts("out")) > 3
    assert [row["number"] for row in rows("out")] == list(range(1, 13))
    whole = contents("out")
    for number in (1, 3):
        Path(f"out/responses/part-{number:06}.parquet").unlink()
    assert run("batch", "log.jsonl.gz", "--output", "out", "--part-size", 1, "--jobs", 1).status == 0
    assert contents("out") == whole
    assert run("diff", "--stored", "out").out == "12 compared: 0 different, 12 the same\n"
    Path("log.jsonl.gz").write_bytes(gzip.compress(lines(*map(record, range(12))))[:-9])
    for _ in range(2):
        done = run("batch", "log.jsonl.gz", "--output", "half", "--part-size", 1, "--jobs", 1)
        assert (done.status, "log.jsonl.gz: after record " in done.err) == (1, True)


def test_a_folder_that_cannot_be_searched_is_a_wrong_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(folder: str) -> Any:  # permissions would not stop the superuser
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), folder)

    monkeypatch.setattr("os.scandir", closed)
    with pytest.raises(UsageError, match="Permission denied"):
        find_inputs([str(tmp_path)], tmp_path / "out")


def test_row_groups_are_shared_between_processes(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "MIB", 600)
    table = pa.Table.from_pylist([{"body": orjson.dumps(ollama(str(number)))} for number in range(30)])
    pq.write_table(table, "log.parquet", row_group_size=10)
    assert run("batch", "log.parquet", "--output", "out", "--part-size", 1, "--jobs", 1).status == 0
    receipts = read_receipts("out")
    assert [part.records for part in receipts] == [10, 10, 10]
    assert len(receipts[0].files) > 1
    assert sorted(row["number"] for row in rows("out")) == list(range(1, 31))
    assert run("batch", "log.parquet", "--output", "one", "--part-size", 100, "--jobs", 1).status == 0
    (part,) = read_receipts("one")  # small row groups share a part
    assert part.records == 30
    pq.write_table(table.slice(0, 0), "empty.parquet")
    assert run("batch", "empty.parquet", "--output", "empty").status == 0


@pytest.mark.parametrize("kind", ["", ".gz", ".zst"])
def test_a_document_is_read_as_the_other_commands_read_it(run: Run, tmp_path: Path, kind: str) -> None:
    data = orjson.dumps([record(1), record(2)])
    file = tmp_path / f"log.json{kind}"
    file.write_bytes(packed(data, kind[1:]) if kind else data)
    assert [orjson.loads(row["line"])["id"] for row in read(file)] == ["r1", "r2"]
    file.write_bytes(packed(data[:-1], kind[1:]) if kind else data[:-1])
    found, fault = read_blocks(file, 10_000)
    assert found["number"].to_pylist() == [1, 2]
    assert str(fault) == "after record 2: the JSON ends in the middle"
    if not kind:
        done = run("report", file)
        assert done.status == 1
        assert f"{file}: the JSON ends in the middle" in run("report", file, "--verbose").err


def test_lines_that_are_no_exchanges_are_left_out_and_said(run: Run) -> None:
    tool = {"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}}
    span = {"traceId": "t", "startTimeUnixNano": "1", "attributes": [tool]}
    Path("log.jsonl").write_bytes(lines(record(1), span, record(2)))
    done = run("batch", "log.jsonl", "--output", "out")
    assert done.status == 0
    assert "left out 1 line: 1 " in done.err
    assert len(rows("out")) == 2
    assert [*read_receipts("out")[0].counts["left_out"].values()] == [1]


def bgzip(data: bytes, size: int) -> bytes:
    """*data* as bgzip packs it: blocks of up to *size* bytes, and an empty one."""
    blocks_of = [data[start : start + size] for start in range(0, len(data), size)]
    return b"".join(_block(one) for one in [*blocks_of, b""])


def _block(data: bytes) -> bytes:
    deflate = zlib.compressobj(6, zlib.DEFLATED, -15)
    packed_data = deflate.compress(data) + deflate.flush()
    head = b"\x1f\x8b\x08\x04" + bytes(5) + b"\xff\x06\0BC\x02\0"
    end = zlib.crc32(data).to_bytes(4, "little") + len(data).to_bytes(4, "little")
    return head + (len(head) + 2 + len(packed_data) + 8 - 1).to_bytes(2, "little") + packed_data + end


def zstd_frames(data: bytes, size: int) -> bytes:
    """*data* as pzstd packs it: frames of *size* bytes, with frames to be skipped, and one of a block of equal bytes."""
    skipped = b"\x50\x2a\x4d\x18\x04\0\0\0size"
    begun = [packed(data[start : start + size], "zst") for start in range(0, len(data), size)]
    line = (
        b" " * 9
    )  # magic, a frame of one segment with its size and a checksum, a last block: 9 times one byte
    spaces = b"\x28\xb5\x2f\xfd\x20\x09" + (9 << 3 | 1 << 1 | 1).to_bytes(3, "little") + line[:1]
    return b"".join([*(skipped + one for one in begun), spaces])


FRAMED = [("gz", bgzip), ("zst", zstd_frames)]


@pytest.mark.parametrize(("kind", "pack"), FRAMED)
@pytest.mark.parametrize("size", [30, 333, 4000])
def test_frames_of_a_large_file_give_what_the_whole_file_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, pack: Callable[[bytes, int], bytes], size: int
) -> None:
    """Wherever lines are cut: in the middle of a frame, at its end, or over several."""
    data = b"\xef\xbb\xbf" + lines(*map(record, range(9)), b"x" * 700, b"", *map(record, range(9)))
    data += b"  \r\n" + lines(record(9)).rstrip(b"\n")
    file = tmp_path / f"log.jsonl.{kind}"
    file.write_bytes(pack(data, size))
    whole = read(file, 8)
    assert len(pieces(file, 8)) == 1
    monkeypatch.setattr(cutting, "LARGE", 10)
    assert read(file, 8) == whole
    assert [row["number"] for row in whole] == [*range(1, 11), *range(12, 21), 22]
    found = pieces(file, 8)
    assert len(found) > 1
    assert not any(piece.is_passed for piece in found)
    assert [piece.first for piece in found] == list(
        accumulate((piece.rows or 0 for piece in found[:-1]), initial=1)
    )
    assert sum(piece.weight for piece in found) == file.stat().st_size
    assert {piece.layout for piece in found} == {"exchange"}


@pytest.mark.parametrize(("kind", "pack"), FRAMED)
def test_parts_of_frames_are_made_by_several_processes_and_one_at_a_time_again(
    run: Run, monkeypatch: pytest.MonkeyPatch, kind: str, pack: Callable[[bytes, int], bytes]
) -> None:
    monkeypatch.setattr(inputs, "MIB", 600)
    monkeypatch.setattr(cutting, "LARGE", 10)
    name = f"log.jsonl.{kind}"
    Path(name).write_bytes(pack(lines(*map(record, range(30))), 100))
    how = ("--output", "out", "--part-size", 1, "--jobs", 1)
    assert run("batch", name, *how).err == "30 records: 30 mapped, 0 rejected\n"
    assert [row["record_id"] for row in rows("out")] == [f"r{number}" for number in range(30)]
    assert len(read_receipts("out")) > 3
    whole = contents("out")
    Path("out/responses/part-000002.parquet").unlink()
    monkeypatch.setattr(cutting, "cut", None)  # a part is read where it is
    assert run("batch", name, *how).status == 0
    assert contents("out") == whole
    assert run("diff", "--stored", "out").out == "30 compared: 0 different, 30 the same\n"


@pytest.mark.parametrize(("kind", "pack"), FRAMED)
def test_of_damaged_frames_what_comes_before_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, pack: Callable[[bytes, int], bytes]
) -> None:
    monkeypatch.setattr(cutting, "LARGE", 10)
    data = lines(*map(record, range(30)))
    file = tmp_path / f"log.jsonl.{kind}"
    whole = pack(data, 400)
    for damaged in (
        *(whole[:-less] for less in (1, 2, 4, 6, 9, 25)),
        whole[: len(whole) // 2] + b"\xff" * 99,
    ):
        file.write_bytes(damaged)
        monkeypatch.setattr(cutting, "LARGE", 10**9)
        *expected, fault = read_blocks(file, 8)
        monkeypatch.setattr(cutting, "LARGE", 10)
        *found, fault_of_frames = read_blocks(file, 8)
        before, those = (
            [row for batch in some for row in batch.to_pylist()]  # type: ignore[union-attr]
            for some in (expected, found)
        )
        if kind == "gz":
            assert (those, str(fault_of_frames)) == (before, str(fault))
        assert those[: len(before)] == before  # of zstd, the frames before a damage are whole
        assert len(those) > 10
        assert str(fault_of_frames).startswith(f"after record {those[-1]['number']}: the file is damaged: ")


@pytest.mark.parametrize(
    "data",
    [lines(record(1)), lines(*map(record, range(20))), codex_session(20), orjson.dumps([record(1)] * 9)],
)
@pytest.mark.parametrize("kind", ["gz", "zst"])
def test_a_file_of_one_frame_or_without_lines_is_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, data: bytes
) -> None:
    file = tmp_path / f"log.jsonl.{kind}"
    file.write_bytes(packed(data, kind))
    whole = read(file, 8)
    monkeypatch.setattr(cutting, "LARGE", 10)
    assert read(file, 8) == whole
    assert all(piece.is_passed for piece in pieces(file, 8))
    file.write_bytes(packed(data, kind) * 2)  # two, and each too large
    monkeypatch.setattr(cutting, "LARGEST_FRAME", 10)
    assert all(piece.is_passed for piece in pieces(file, 8))


@pytest.mark.parametrize(("kind", "pack"), FRAMED)
def test_a_line_of_frames_that_is_too_long_is_a_reject_and_the_next_is_read(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    short: None,
    kind: str,
    pack: Callable[[bytes, int], bytes],
) -> None:
    monkeypatch.setattr(cutting, "LARGE", 10)
    file = tmp_path / f"log.jsonl.{kind}"
    file.write_bytes(pack(b"{\n" + b"x" * 5000 + b"\n[]\n", 2000))
    assert len(pieces(file, 8)) > 2
    assert [(row["number"], row["line"]) for row in rejects(file)] == [(1, b"{"), (2, None), (3, b"[]")]
    assert rejects(file)[1]["message"] == TOO_LONG.format("line")
