"""Files of logs are read by their content, and a damaged one up to its damage."""

from __future__ import annotations

import bz2
import io
import sqlite3
import sys
from contextlib import closing, suppress
from decimal import Decimal
from pathlib import Path
from typing import BinaryIO

import orjson
import pytest

from crosswalk.records import (
    LogFileError,
    NotAnExchangeError,
    RecordError,
    Unpacked,
    entries_of,
    file_kind,
    layout_of_lines,
    layouts,
    load_layout,
    read_record,
    record_lines,
    vendor_name,
    vendor_of_model,
)

from .log_lines import CHAT, KINDS, MESSAGE

SPEND = KINDS["LiteLLM"].line
SPAN = KINDS["an OTLP span"].line


def read(data: bytes, path: str | None = None) -> tuple[list[dict[str, object]], str]:
    """The objects of the lines in *data*, and why no more can be read."""
    found = []
    try:
        for line in record_lines(io.BytesIO(data), path):
            assert line.data is not None
            with suppress(orjson.JSONDecodeError):  # a line that is cut
                found.append(orjson.loads(line.data))
    except LogFileError as error:
        return found, str(error)
    return found, ""


@pytest.mark.parametrize("space", [b"", b" ", b"\n", b"\xef\xbb\xbf"])
def test_the_items_of_an_array_are_lines(space: bytes) -> None:
    tricky = SPEND | {"note": '}]"\\' + "x" * 3000}
    data = space + b"[" + b",\n".join(map(orjson.dumps, (SPEND, tricky, 7, CHAT))) + b"]\n"
    assert read(data) == ([SPEND, tricky, CHAT], "")


def test_a_text_longer_than_a_block_is_read_whole() -> None:
    long = SPEND | {"note": 'é"' * 1_500_000}
    assert read(orjson.dumps([SPEND, long, SPEND])) == ([SPEND, long, SPEND], "")


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_of_a_document_that_ends_in_the_middle_what_comes_before_is_read(cut: int) -> None:
    data = orjson.dumps([SPEND, {"note": "x" * 60}])
    assert read(data[:-cut]) == (
        [SPEND] + ([{"note": "x" * 60}] if cut == 1 else []),
        "the JSON ends in the middle",
    )


def test_objects_that_follow_each_other_are_lines() -> None:
    data = orjson.dumps(SPEND, option=orjson.OPT_INDENT_2)
    assert read(data + b"\n" + data) == ([SPEND, SPEND], "")
    assert read(data + b"]" + data) == ([SPEND, SPEND], "")


def test_a_value_that_is_too_long_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosswalk.records.files.LONGEST", 4000)
    data = orjson.dumps([SPEND, {"note": "x" * 3_000_000}])
    assert read(data) == ([SPEND], "a value is longer than 4000 bytes")


@pytest.mark.parametrize(
    ("data", "suffixes", "kind"),
    [
        (orjson.dumps(CHAT), [], None),
        (orjson.dumps(CHAT, option=orjson.OPT_INDENT_2), [".json"], None),
        (orjson.dumps(CHAT) * 2, [".jsonl"], "lines"),
        (b'{"a":1}\n{"b":2}\n', [], None),
        (b"[2026-01-01] started\n", [".log"], None),
        (b"started\n", [".log"], None),
        (b"started\n" + orjson.dumps(SPEND), [".log", ".1"], "lines"),
        (orjson.dumps([KINDS["Gemini's batch output"].line["response"]]), [], None),
        (orjson.dumps([CHAT]), [], "document"),
        (orjson.dumps([MESSAGE]), [], "document"),
        (orjson.dumps([CHAT | {"object": "chat.completion.chunk"}]), [], None),
        (orjson.dumps([[1]]), [], None),
        (orjson.dumps(SPEND), [".response", ".json"], None),
        (orjson.dumps(SPEND), [".json"], "lines"),
        (orjson.dumps(SPEND | KINDS["Helicone"].line), [".json"], "lines"),
        (orjson.dumps({"resourceSpans": [], "x": "y" * 300_000})[: 256 * 1024], [], "lines"),
        (orjson.dumps({"messages": "y" * 300_000})[: 256 * 1024], [], None),
        (b'{\n "log": {' + b" " * 300_000, [], "document"),
        (b"a,b\n1,2\n", [".csv"], None),
        (b"\xff,b\n", [".csv"], None),
        (b"", [], None),
    ],
    ids=lambda value: str(len(value)) if isinstance(value, bytes) else None,
)
def test_the_content_says_what_a_file_is(data: bytes, suffixes: list[str], kind: str | None) -> None:
    assert file_kind(data, suffixes) == kind


def test_csv_that_is_damaged_is_read_up_to_the_damage() -> None:
    head = b"CorrelationId,PromptTokens,CompletionTokens\nc,1,\n"
    found, fault = read(head + b"d," + b"9" * 200_000 + b",2\n")
    assert found == [{"CorrelationId": "c", "PromptTokens": "1"}]
    assert fault.startswith("not CSV: ")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (b"interactions: [", "the YAML is damaged"),
        (b"interactions:\n", ""),
        (b"interactions: !!python/name:os.system x", "the YAML is damaged"),
    ],
)
def test_a_cassette_that_is_damaged_is_an_error(text: bytes, fault: str) -> None:
    pytest.importorskip("yaml")
    assert read(text) == ([], fault)


def test_a_cassette_may_hold_bytes() -> None:
    yaml = pytest.importorskip("yaml")
    import gzip

    bodies = [gzip.compress(b"{}"), b"\x1f\x8bno", b"\xff"]
    one = [
        {"request": {"uri": "https://api.openai.com/v1/responses", "seen": {1}},
         "response": {"status": {"code": 200}, "body": {"string": body}}, "recorded_at": None}
        for body in bodies
    ]  # fmt: skip
    found, fault = read(yaml.dump({"interactions": one}).encode())
    assert fault == ""
    assert [line["response"]["body"]["string"] for line in found] == ["{}", "\x1f\ufffdno", "\ufffd"]  # type: ignore[index]


@pytest.mark.parametrize("module", ["yaml", "pyarrow"])
def test_a_package_that_is_missing_is_named(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    if module == "yaml":
        assert read(b"interactions:\n") == ([], "a VCR cassette in YAML needs the package PyYAML")
        return
    extra = "needs the extra: pip install 'crosswalk-llm[batch]'"
    assert read(b"PAR1") == ([], f"Parquet {extra}")
    assert read(b"\x28\xb5\x2f\xfd") == ([], f"zstd {extra}")


def test_a_database_without_a_log_says_so(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE a (b)")
        database.commit()
    data = file.read_bytes()
    assert read(data, str(file)) == ([], "no table with a log that Crosswalk knows: a")
    assert read(data) == ([], "an SQLite file is read by its path")
    file.write_bytes(data[:100] + b"x" * 5000)
    found, fault = read(file.read_bytes(), str(file))
    assert (found, fault.startswith("the database is damaged: ")) == ([], True)


def test_rows_of_parquet_are_lines(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "a.parquet"
    row = {
        "databricks_request_id": "d",
        "status_code": 200,
        "response": orjson.dumps(CHAT),
        "cost": Decimal("0.25"),
    }
    pq.write_table(pa.Table.from_pylist([row]), file)
    assert read(file.read_bytes()) == ([row | {"response": orjson.dumps(CHAT).decode(), "cost": "0.25"}], "")
    found, fault = read(b"PAR1" + b"x" * 100)
    assert (found, fault.startswith("the file is damaged: ")) == ([], True)


@pytest.mark.untraced
@pytest.mark.parametrize("kind", ["gzip", "zstd", "bzip2", "xz"])
def test_of_a_packed_file_that_is_damaged_what_comes_before_is_read(kind: str) -> None:
    pack = packer(kind)
    lines = b"".join(orjson.dumps(SPEND | {"number": number}) + b"\n" for number in range(4_000))
    packed = pack(lines)
    assert len(read(packed)[0]) == 4_000
    found, fault = read(packed[: len(packed) * 2 // 3])
    assert "damaged" in fault
    assert 0 <= len(found) < 4_000


def packer(kind: str):  # type: ignore[no-untyped-def]
    import gzip
    import lzma

    if kind == "zstd":
        pa = pytest.importorskip("pyarrow")
        return lambda data: pa.compress(data, codec="zstd", asbytes=True)
    return {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress}[kind]


def test_a_file_of_pzstd_begins_with_a_frame_to_be_skipped() -> None:
    skipped = b"\x50\x2a\x4d\x18\x04\0\0\0size"
    data = b"".join(skipped + packer("zstd")(line) for line in (b'{"a":1}\n', b'{"b"', b":2}\n"))
    assert read(data) == ([{"a": 1}, {"b": 2}], "")


def test_members_of_gzip_follow_each_other() -> None:
    import gzip

    line = orjson.dumps(SPEND) + b"\n"
    assert len(read(gzip.compress(line) + gzip.compress(line) + b"\0" * 9)[0]) == 2


def test_a_stream_that_cannot_be_looked_into_holds_lines() -> None:
    class Plain(io.RawIOBase):
        def __init__(self, data: bytes) -> None:
            self.data = io.BytesIO(data)

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
            return self.data.readinto(buffer)

    file: BinaryIO = Plain(orjson.dumps(SPEND) + b"\n")  # type: ignore[assignment]
    assert [orjson.loads(line.data or b"") for line in record_lines(file)] == [SPEND]
    assert Unpacked(io.BytesIO(), "gzip").readable()


def test_objects_with_several_exchanges_may_stand_among_others() -> None:
    holder = {"resourceSpans": [{"scopeSpans": [{"spans": [SPAN, SPAN]}]}]}
    text = {
        "events": [
            {"message": "a text"},
            {"message": orjson.dumps(KINDS["Bedrock's invocation log"].line).decode()},
        ]
    }
    assert entries_of(text) == ["a text", KINDS["Bedrock's invocation log"].line]
    found, _ = read(orjson.dumps(holder) + b"\n" + orjson.dumps(SPEND))
    assert found == [SPAN, SPAN, SPEND]
    with pytest.raises(RecordError, match="an object with several exchanges"):
        read_record(orjson.dumps(holder))


def test_lines_of_a_layout_without_exchanges_share_none() -> None:
    other = orjson.dumps({"resourceLogs": []})
    assert layout_of_lines([other, other]) is None
    with pytest.raises(NotAnExchangeError, match="another span of OpenTelemetry"):
        read_record(other)


@pytest.mark.parametrize(
    ("word", "vendor"),
    [("OPENAI", "openai"), ("azure.ai.openai", "azure"), ("Azure", "azure"), ("openai_responses", "openai"), ("vertex_ai", "vertex_ai"),
     ("mistral_ai", "mistral"), ("Kelp Cloud", "kelp_cloud")],
)  # fmt: skip
def test_a_vendor_has_one_spelling(word: str, vendor: str) -> None:
    assert vendor_name(word) == vendor


@pytest.mark.parametrize(
    ("model", "vendor"),
    [("gpt-4o", "openai"), ("o3", "openai"), ("claude-sonnet-4-5", "anthropic"), ("models/gemini-2.5-pro", "gemini"), ("grok-4", "xai"),
     ("mistral-small-latest", "mistral"), ("kimi-k2", "moonshot"), ("glm-4.6", "zai"), ("qwen-plus", "dashscope"),
     ("accounts/fireworks/models/x", "fireworks"), ("anthropic.claude-3-v1:0", "bedrock"), ("eu.amazon.nova-pro-v1:0", "bedrock"),
     ("deepseek-chat", "deepseek"), ("command-r-plus", "cohere"), ("sonar-pro", "perplexity"), ("@cf/meta/llama", "cloudflare"),
     ("llama-3.1-8b", None), ("openai/gpt-4o", None), ("qwen3-32b", None), ("mistral-7b", None)],
)  # fmt: skip
def test_a_model_that_its_maker_serves_names_the_vendor(model: str, vendor: str | None) -> None:
    assert vendor_of_model(model) == vendor


def test_a_path_leads_through_json_in_a_text(tmp_path: Path) -> None:
    file = tmp_path / "ours.toml"
    file.write_text(
        'tier = "batch"\n[fields]\nmodel = "a.b"\nteam = "c.d"\n[states]\nprompt_tokens = "a.n"\n[when]\nkind = ["chat*"]\n'
    )
    layout = load_layout(str(file))
    record = read_record(
        orjson.dumps({"a": '{"b": "m", "n": 7}', "c": "{oops", "kind": "chat.x"}), layout=layout
    )
    assert (record.model, record.team, record.tier, record.tokens) == (
        "m",
        None,
        "batch",
        {"prompt_tokens": 7},
    )
    with pytest.raises(NotAnExchangeError, match="no model call by its kind"):
        read_record(b'{"kind": "tool"}', layout=layout)


def test_each_place_that_contains_lines_is_a_path() -> None:
    for name, layout in layouts().items():
        assert entries_of({"x": 1}) is None
        assert layout.requires, name
