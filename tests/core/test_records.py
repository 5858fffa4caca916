from __future__ import annotations

import base64
import io
from typing import Any

import orjson
import pytest

from crosswalk import normalize, records
from crosswalk.records import (
    BadRecord,
    Record,
    RecordError,
    parse_path,
    read_record,
    read_records,
    with_fields,
)

BODY = {"id": "x", "object": "chat.completion", "choices": []}
TEXT = orjson.dumps(BODY)
OPENAI = {
    "id": "batch_req_1",
    "custom_id": "r1",
    "response": {"status_code": 429, "body": BODY},
    "error": None,
}
ANTHROPIC = {"custom_id": "r2", "result": {"type": "succeeded", "message": BODY}}
ERRORED = {"custom_id": "r3", "result": {"type": "errored", "error": {"type": "error"}}}


def read(record: Any, path: str | None = None) -> Record:
    layout = None if path is None else with_fields(None, {"response": path})
    return read_record(orjson.dumps(record), layout=layout)


@pytest.mark.parametrize(
    ("record", "path", "expected"),
    [
        (BODY, None, (TEXT, None, None, None, {"body": BODY}, None)),
        ({"body": BODY, "id": "a"}, None, (TEXT, None, None, "a", {"body": BODY, "id": "a"}, None)),
        (
            {"body": "hi", "status": 500, "provider": "p", "response": {"old": 1}},
            None,
            (
                b"hi",
                500,
                "p",
                None,
                {"body": "hi", "status": 500, "provider": "p", "response": {"old": 1}},
                {"old": 1},
            ),
        ),
        (OPENAI, None, (TEXT, 429, None, "r1", {"record": OPENAI}, None)),
        (ANTHROPIC, None, (TEXT, None, "anthropic", "r2", {"record": ANTHROPIC}, None)),
        (ERRORED, None, (b'{"type":"error"}', None, "anthropic", "r3", {"record": ERRORED}, None)),
        (
            {"record": ANTHROPIC, "response": {"old": 1}},
            None,
            (TEXT, None, "anthropic", "r2", {"record": ANTHROPIC}, {"old": 1}),
        ),
        (
            {"a": [{"b": BODY}], "status": "ok", "id": 3, "body": 7},
            "a.0.b",
            (
                TEXT,
                None,
                None,
                "3",
                {"record": {"a": [{"b": BODY}], "status": "ok", "id": 3, "body": 7}},
                None,
            ),
        ),
        ({"a": "t", "status": 404, "id": "n"}, ".a", (b"t", 404, None, "n", None, None)),
    ],
    ids=[
        "plain",
        "exchange",
        "stored",
        "openai",
        "anthropic",
        "errored",
        "again",
        "path",
        "known beside a path",
    ],
)
def test_the_forms_of_a_line(record: Any, path: str | None, expected: tuple[Any, ...]) -> None:
    found = read(record, path)
    fields = {"record": record} if expected[4] is None else expected[4]
    assert (found.body, found.status, found.provider, found.id, found.fields, found.stored) == (
        *expected[:4],
        fields,
        expected[5],
    )
    assert (found.layout is None) is (record is BODY)


def test_base64_is_read() -> None:
    assert read({"body_base64": base64.b64encode(b"\xff\x00").decode()}).body == b"\xff\x00"


@pytest.mark.parametrize(
    ("record", "path", "cause"),
    [
        ([], None, "expected an object, got array"),
        ({"body": None}, None, "body: no answer"),
        ({"body": 1}, None, "body: expected a string or an object, got number"),
        ({"body": [1]}, None, "body: expected a string or an object, got array"),
        ({"body_base64": "!"}, None, "body_base64: not base64"),
        ({"body_base64": 1}, None, "body_base64: expected a string, got number"),
        ({"body": "", "status": True}, None, "status: expected an HTTP status"),
        ({"body": "", "id": []}, None, "id: expected a string, got array"),
        ({**OPENAI, "response": None}, None, "response.body: no answer"),
        (
            {**OPENAI, "response": {"status_code": 1, "body": {}}},
            None,
            "response.status_code: expected an HTTP status",
        ),
        (
            {**OPENAI, "response": {}},
            None,
            "response.body: no answer",
        ),
        ({"custom_id": "a", "result": {}}, None, "result.message: no answer"),
        (
            {"custom_id": "a", "result": {"error": 1}},
            None,
            "result.message: expected a string or an object, got number",
        ),
        ({"a": {"b": 1}}, "a.b", "a.b: expected a string or an object, got number"),
        ({"a": []}, "a.0", "a.0: no answer"),
        ({"a": []}, "a.b", "a.b: no answer"),
        ({}, "a", "a: no answer"),
    ],
)
def test_what_holds_no_answer_says_why(record: Any, path: str | None, cause: str) -> None:
    with pytest.raises(RecordError) as found:
        read(record, path)
    assert str(found.value) == cause


def test_what_is_nested_too_deeply_to_be_written_is_refused() -> None:
    line = b'{"body":' + b'{"a":' * 600 + b"1" + b"}" * 601
    with pytest.raises(RecordError, match="^body: nested too deeply$"):
        read_record(line)


def test_an_answer_that_is_no_text_is_written_as_base64() -> None:
    line = records.record_line(b"\xff\x00", provider="bedrock", id="r")
    assert b"body_base64" in line
    assert read_record(line).body == b"\xff\x00"


def test_a_log_is_read_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosswalk.records.reading._LONGEST", 60)
    lines = [b"\xef\xbb\xbf" + TEXT, b"", b"{", b"y" * 150, b'{"body": "b"}', b"z" * 60]
    found = list(read_records(io.BytesIO(b"\r\n".join(lines))))
    assert [(one.number, one.size) for one in found] == [
        (1, len(TEXT) + 5),
        (3, 3),
        (4, 152),
        (5, 15),
        (6, 60),
    ]
    assert [one.body for one in found if isinstance(one, Record)] == [TEXT, b"b"]
    bad = [one for one in found if isinstance(one, BadRecord)]
    assert [one.line for one in bad] == [b"{", b"", b""]
    assert bad[0].cause.startswith("not JSON: ")
    assert bad[1].cause == bad[2].cause == "the line is longer than 60 bytes"


@pytest.mark.parametrize("text", ["", ".", "a..b", "a.", "..a", "a[", 'a["b'])
def test_a_path_names_something(text: str) -> None:
    with pytest.raises(ValueError, match="keys with dots between them"):
        parse_path(text)


@pytest.mark.parametrize(
    ("record", "provider", "code", "kind"),
    [
        ({**OPENAI, "response": None, "error": {"code": "batch_expired", "message": "Late."}}, "openai", "batch_expired", "timeout"),
        ({**OPENAI, "response": None, "error": {"code": "batch_cancelled"}}, "openai", "batch_cancelled", "unknown"),
        ({"custom_id": "a", "result": {"type": "expired"}}, "anthropic", "expired", "timeout"),
        ({"custom_id": "a", "result": {"type": "canceled"}}, "anthropic", "canceled", "unknown"),
        ({"key": "a", "error": {"code": 4, "message": "Late."}}, "gemini", "4", "timeout"),
        ({"key": "a", "error": {"code": 8, "message": "Enough.", "status": "RESOURCE_EXHAUSTED"}}, "gemini", "RESOURCE_EXHAUSTED", "rate_limit"),
        ({"processed_time": "2026-11-20T10:00:00Z", "request": {}, "status": "Late."}, "gemini", None, "unknown"),
    ],
)  # fmt: skip
def test_a_request_whose_batch_ended_before_is_an_error(
    record: Any, provider: str, code: str | None, kind: str
) -> None:
    """Not a line without an answer: what became of it is known."""
    found = read_record(orjson.dumps(record))
    assert (found.provider, found.id) == (provider, record.get("custom_id", record.get("key")))
    info = normalize(found.body, provider).error_info
    assert info is not None
    assert (info.code, info.kind) == (code, kind)
