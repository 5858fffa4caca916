from __future__ import annotations

import base64
import concurrent.futures
import os
import pickle
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

import crosswalk.records
from crosswalk import ChatResponse, ResponseDelta, from_json, registry
from crosswalk.cli import answers as many, inputs, terminal as terminal_module
from crosswalk.manifest import read_recorded

from .conftest import ROOT, Done, Terminal, line

Run = Callable[..., Done]
Captures = Callable[..., Path]
OLLAMA = ROOT / "tests/captures/ollama"
VLLM = ROOT / "tests/captures/vllm"
WHEN = "2026-01-01T00:00:00Z"
NO_JSON = "its beginning is not JSON; "
KNOWN = ", ".join(registry.names())


def lines(text: str) -> list[Any]:
    return [orjson.loads(line) for line in text.splitlines()]


def records(folder: Path, *given: Any) -> Path:
    file = folder / "records.jsonl"
    file.write_bytes(b"\n".join(r if isinstance(r, bytes) else orjson.dumps(r) for r in given))
    return file


# What is written.


def test_one_file_is_one_indented_object(run: Run) -> None:
    done = run("normalize", OLLAMA / "chat_length_stream.response.ndjson")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith('{\n  "id": ')
    response = from_json(done.out.encode(), ChatResponse)
    assert response.text == "Hello! I am a tiny model"
    assert response.metadata.provider_id == "ollama"


def test_the_same_bytes_give_the_same_output(run: Run) -> None:
    file = OLLAMA / "chat_length.response.json"
    first = run("normalize", file)
    assert first == run("normalize", file)
    assert orjson.loads(first.out)["metadata"]["provenance"]["id"] == "synthetic"
    assert (
        orjson.loads(first.out)["id"] != orjson.loads(run("normalize", VLLM / "n2.response.json").out)["id"]
    )


def test_a_folder_is_json_lines_with_the_manifest_s_status(run: Run, captures: Captures) -> None:
    captures("a", line("one"))
    captures("b", {"error": "model 'x' not found"}, status=404)
    captures("c", line("th", done=False), line("ree"))
    done = run("normalize", "captures", "--provider", "ollama")
    assert (done.status, done.err) == (0, "")
    assert [one["finish_reason"] for one in lines(done.out)] == ["stop", "error", "stop"]


def test_a_folder_is_searched_through(run: Run, tmp_path: Path) -> None:
    for name in (
        "x/a.response.json",
        "x/y/b.sse",
        "x/.git/c.json",
        "x/__pycache__/d.json",
        "x/a.request.json",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(orjson.dumps(line(name)))
    records(tmp_path / "x/y", {"body": line("record")})
    done = run("normalize", "x")
    texts = [one["message"]["content"] for one in lines(done.out)]
    assert texts == ["x/a.response.json", "x/y/b.sse", "record"]


def test_what_a_manifest_calls_a_request_is_no_answer(run: Run, captures: Captures) -> None:
    file = captures("a", line("one"), request="asked.json")
    (file.parent / "asked.json").write_text("{}")
    assert len(lines(run("normalize", "captures", "--format", "jsonl").out)) == 1


def test_an_array_of_many(run: Run, captures: Captures) -> None:
    files = [captures(case, line(case)) for case in "ab"]
    done = run("normalize", *files, "--format", "json")
    assert [one["message"]["content"] for one in orjson.loads(done.out)] == ["a", "b"]
    flat = run("normalize", *files, "--format", "json", "--no-indent")
    assert orjson.loads(flat.out) == orjson.loads(done.out)
    assert len(flat.out.splitlines()) == 4


def test_an_array_of_none(run: Run, tmp_path: Path) -> None:
    file = records(tmp_path)
    assert run("normalize", file, "--format", "json") == (0, "[]\n", "")
    assert run("normalize", file) == (0, "", "")


def test_deltas_are_json_lines(run: Run) -> None:
    done = run("normalize", "--stream", VLLM / "n2_stream.response.sse")
    deltas = [from_json(line.encode(), ResponseDelta) for line in done.out.splitlines()]
    assert [delta.index for delta in deltas] == list(range(len(deltas)))
    assert deltas[-1].is_complete
    assert done.status == 0


def test_raw_events_are_written_where_asked_for(run: Run) -> None:
    file = OLLAMA / "chat_length.response.json"
    assert "raw_events" not in orjson.loads(run("normalize", file).out)
    raw = orjson.loads(run("normalize", file, "--raw").out)["raw_events"]
    assert [orjson.loads(event) for event in raw] == [orjson.loads(file.read_bytes())]


def test_the_time_of_answers_without_one(run: Run, captures: Captures) -> None:
    file = captures("a", line(created_at=""))
    done = run("normalize", file, "--created", "2026-01-01T01:00:00+01:00")
    assert orjson.loads(done.out)["created"] == WHEN


def test_the_status_can_be_said(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("gateway timeout")
    done = run("normalize", "a.json", "--provider", "vllm", "--status", "504")
    assert done.status == 0
    response = from_json(done.out.encode(), ChatResponse)
    assert response.error_info is not None
    assert response.error_info.kind == "timeout"


@pytest.mark.parametrize(
    "options",
    [("--stream", "--partial"), ("--stream", "--raw"), ("--stream", "--format", "json"), ("--indent", ".")],
)
def test_what_contradicts_itself_is_refused(run: Run, tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "a.json").write_text("{}")
    done = run("normalize", *options)
    assert (done.status, done.out) == (2, "")
    assert "JSON Lines" in done.err


# Standard input.


@pytest.mark.parametrize("paths", [(), ("-",)])
def test_standard_input_is_read(run: Run, stdin: Callable[[bytes], None], paths: tuple[str, ...]) -> None:
    stdin(orjson.dumps(line("piped")))
    done = run("normalize", *paths)
    assert (done.status, orjson.loads(done.out)["message"]["content"]) == (0, "piped")


def test_records_on_standard_input(run: Run, stdin: Callable[[bytes], None]) -> None:
    stdin(orjson.dumps({"body": line("a")}) + b"\r\n\n" + orjson.dumps({"body": line("b")}))
    done = run("normalize", "--records")
    assert [one["message"]["content"] for one in lines(done.out)] == ["a", "b"]


def test_somebody_at_a_terminal_is_told_how_to_end(
    run: Run, stdin: Callable[[bytes], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    stdin(orjson.dumps(line()))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    done = run("normalize")
    assert done.err == "reading an answer from the terminal; end it with Ctrl-D\n"


# Records.


def test_the_forms_of_a_record(run: Run, tmp_path: Path) -> None:
    body = orjson.dumps(line("x"))
    file = records(
        tmp_path,
        b"\xef\xbb\xbf" + orjson.dumps({"body": body.decode(), "id": "first"}),
        {"body_base64": base64.b64encode(body).decode(), "provider": "ollama", "status": None},
        {"body": line("x"), "status": 200, "id": ""},
        {"body": '{"error": "overloaded"}', "status": 503, "provider": "ollama", "id": "failed"},
    )
    done = run("normalize", file, "--created", WHEN)
    assert (done.status, done.err) == (0, "")
    found = lines(done.out)
    assert [one["id"] for one in found[::3]] == ["first", "failed"]
    assert found[1] == found[2]
    assert {**found[0], "id": found[1]["id"]} == found[1]
    assert found[3]["finish_reason"] == "error"


def test_bad_records_are_reported_and_the_rest_goes_on(run: Run, tmp_path: Path) -> None:
    file = records(
        tmp_path,
        {"body": line("good")},
        b"{not json",
        [],
        {"no": "body"},
        {"body": 3},
        {"body_base64": "!"},
        {"body_base64": 3},
        {"body": "{}", "status": "4O4"},
        {"body": "{}", "status": 42},
        {"body": "{}", "provider": 3},
        {"body": "{}", "provider": "nobody"},
        {"body": {"unknown": 1}, "id": "r12"},
        {"body": line("cut", done=False), "id": "r13"},
        {"body": line("good too")},
    )
    done = run("normalize", file)
    assert done.status == 1
    assert [one["message"]["content"] for one in lines(done.out)] == ["good", "good too"]
    reports = [report.removeprefix(f"{file}:") for report in done.err.splitlines()]
    assert len(reports) == 13
    assert reports.pop() == (
        "2 mapped, 12 failed: 8 unreadable, 2 DetectionError, 1 UnknownProviderError, 1 IncompleteStreamError"
    )
    assert reports[0].startswith("2: not JSON: ")
    assert reports[1:] == [
        "3: expected an object, got array",
        f"4: DetectionError: no provider recognizes it; pass --provider: {KNOWN}; "
        "pass --layout or --field response=PATH to locate the answer in the line",
        "5: body: expected a string or an object, got number",
        "6: body_base64: not base64",
        "7: body_base64: expected a string, got number",
        "8: status: expected an HTTP status",
        "9: status: expected an HTTP status",
        "10: provider: expected a string, got number",
        f"11: UnknownProviderError: unknown provider 'nobody'; known: {KNOWN}",
        f"12 (r12): DetectionError: no provider recognizes it; pass --provider: {KNOWN}",
        "13 (r13): IncompleteStreamError: ollama, after event 1: "
        "the input ended without the provider's terminal signal",
    ]


def test_a_line_without_end_is_not_held_in_memory(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crosswalk.records.reading._LONGEST", 400)
    file = records(tmp_path, b"x" * 1000, {"body": line("good")}, b"y" * 400)
    done = run("normalize", file)
    assert [one["message"]["content"] for one in lines(done.out)] == ["good"]
    assert done.err == (
        f"{file}:1: the line is longer than 400 bytes\n{file}:3: the line is longer than 400 bytes\n"
        "1 mapped, 2 failed: 2 unreadable\n"
    )


def test_a_stream_in_a_jsonl_file_is_one_answer_if_said_so(run: Run, tmp_path: Path) -> None:
    file = records(tmp_path, line("a", done=False), line("b"))
    assert run("normalize", file).status == 1
    done = run("normalize", file, "--no-records")
    assert orjson.loads(done.out)["message"]["content"] == "ab"


def test_plain_bodies_and_batch_results_are_records(run: Run, tmp_path: Path) -> None:
    file = records(
        tmp_path,
        line("plain"),
        {"custom_id": "a", "response": {"status_code": 200, "body": line("batched")}, "error": None},
        {"custom_id": "b", "response": None, "error": {"code": "batch_expired", "message": "late"}},
        {"log": [{"answer": line("deep")}], "id": "c"},
    )
    done = run("normalize", file, "--created", WHEN)
    *answers, expired = lines(done.out)
    assert [one["message"]["content"] for one in answers] == ["plain", "batched"]
    assert expired["finish_reason"] == "error"
    done = run("normalize", file, "--field", "response=log.0.answer")
    assert [one["id"] for one in lines(done.out)] == [
        "a",
        "b",
        "c",
    ]  # those of a known layout are read as before
    assert done.err.count("log.0.answer: no answer") == 1
    wrong = run("normalize", file, "--field", "response=log..answer")
    assert wrong.status == 2
    assert "crosswalk normalize: a path is keys with dots between them" in wrong.err


def test_a_batch_result_may_hold_the_error_with_or_without_its_envelope(run: Run, tmp_path: Path) -> None:
    error = {"type": "overloaded_error", "message": "Later."}
    results = [{"type": "errored", "error": one} for one in ({"type": "error", "error": error}, error)]
    file = records(tmp_path, *({"custom_id": "a", "result": result} for result in results))
    wrapped, flat = lines(run("normalize", file, "--created", WHEN, "--partial").out)
    assert wrapped["segments"] == flat["segments"]
    assert flat["segments"][0]["metadata"]["kind"] == "rate_limit"


def test_what_is_stored_beside_other_records_can_be_compared(run: Run, tmp_path: Path) -> None:
    result = {"custom_id": "b", "response": {"status_code": 200, "body": line("batched")}, "error": None}
    file = records(tmp_path, line("plain"), result, {"deep": {"answer": line("deep")}})
    once = tmp_path / "once"
    assert run("normalize", file, "--output", once).status == 1
    assert run("normalize", file, "--output", once, "--field", "response=deep.answer").status == 1
    stored = lines((once / "records.jsonl").read_text())
    assert stored[0] == line("plain")  # nothing at that path, so it stays as it is
    assert stored[1]["record"] == result  # of a known layout
    assert stored[2]["record"] == {"deep": {"answer": line("deep")}}
    assert stored[2]["response"]["message"]["content"] == "deep"
    run("normalize", file, "--output", once)
    stored = lines((once / "records.jsonl").read_text())
    assert stored[0]["body"] == line("plain")
    assert stored[1]["record"] == result
    assert run("diff", once / "records.jsonl", "--summary").out.startswith("3 compared: 0 different")


def test_the_command_line_is_stronger_than_a_record(run: Run, tmp_path: Path) -> None:
    file = records(tmp_path, {"body": line(), "provider": "house-name", "status": 500})
    done = run("normalize", file, "--provider", "ollama", "--status", "200")
    assert done.status == 0


# What fails.


def test_a_missing_file_and_an_unknown_provider_stop_before_anything(run: Run, captures: Captures) -> None:
    file = captures("a", line())
    missing = run("normalize", file, "nowhere.json")
    assert missing == (2, "", "crosswalk normalize: no such file: nowhere.json\n")
    unknown = run("normalize", file, "--provider", "acme")
    assert unknown == (2, "", f"crosswalk normalize: unknown provider 'acme'; known: {KNOWN}\n")


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (b"", "it is empty"),
        (b" \n", "it is empty"),
        (b"\x00\xff\xfe garbage", f"{NO_JSON}not JSON at byte 1"),
        (b": keep-alive\n\ndata: [DONE]\n\n", f"{NO_JSON}there is no event in it"),
        (b'{"a":' * 900 + b"1" + b"}" * 900, f"{NO_JSON}the event is nested deeper than 200 levels"),
        (
            b"<!DOCTYPE html><title>502 Bad Gateway</title>",
            f"{NO_JSON}it looks like HTML",
        ),
        (b'{"odd": 1}', f"no provider recognizes it; pass --provider: {KNOWN}"),
        (b'{"error": "anybody"}', "several providers recognize it; pass --provider: "),
    ],
)
def test_what_cannot_be_recognized(run: Run, tmp_path: Path, content: bytes, cause: str) -> None:
    (tmp_path / "a.json").write_bytes(content)
    done = run("normalize", "a.json")
    assert (done.status, done.out) == (1, "")
    assert f"a.json: DetectionError: {cause}" in done.err


def test_the_default_provider_decides_between_several(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.json").write_bytes(b'{"error": "anybody"}')
    monkeypatch.setenv("CROSSWALK_DEFAULT_PROVIDER", "vllm")
    done = run("normalize", "a.json")
    assert orjson.loads(done.out)["metadata"]["provider_id"] == "vllm"
    (tmp_path / "a.json").write_bytes(orjson.dumps(line()))
    done = run("normalize", "a.json")
    assert orjson.loads(done.out)["metadata"]["provider_id"] == "ollama"


def test_the_recorder_decides_between_several(run: Run, tmp_path: Path) -> None:
    """A manifest that names the server settles what the bytes leave open, and only that."""
    (tmp_path / "a.response.json").write_bytes(b'{"error": "anybody"}')
    (tmp_path / "b.response.json").write_bytes(orjson.dumps(line()))
    lines = [orjson.dumps({"file": f"{case}.response.json", "server": "vllm"}) for case in "ab"]
    (tmp_path / "MANIFEST.jsonl").write_bytes(b"\n".join(lines))
    done = run("normalize", "a.response.json", "b.response.json")
    found = [orjson.loads(line)["metadata"]["provider_id"] for line in done.out.splitlines()]
    assert found == ["vllm", "ollama"]


def test_what_was_received_is_written_where_asked_for(run: Run) -> None:
    file = VLLM / "client_disconnect_stream.response.sse"
    without = run("normalize", file)
    assert (without.status, without.out) == (1, "")
    done = run("normalize", file, "--partial")
    assert done.status == 1
    assert done.err == without.err
    assert "client_disconnect_stream.response.sse: IncompleteStreamError: vllm, after event 18" in done.err
    assert from_json(done.out.encode(), ChatResponse).finish_reason == "error"


def test_nothing_is_written_for_what_has_no_part(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"")
    done = run("normalize", "a.json", "--partial", "--provider", "vllm")
    assert (done.status, done.out) == (1, "")


def test_an_unknown_finish_word_is_kept_where_asked_for(run: Run, captures: Captures) -> None:
    file = captures("a", line(done_reason="bored"))
    assert "UnknownFinishReasonError" in run("normalize", file).err
    done = run("normalize", file, "--unknown", "keep")
    assert orjson.loads(done.out)["raw_finish_reason"] == "bored"


def test_a_folder_without_captures_fails_and_the_rest_goes_on(run: Run, captures: Captures) -> None:
    captures("a", line())
    Path("empty").mkdir()
    done = run("normalize", "empty", "captures")
    assert (done.status, done.err, len(lines(done.out))) == (1, "empty: no captures in it\n", 1)


@pytest.mark.parametrize("manifest", ["not json", "[1]", '{"case": "a"}'])
def test_a_manifest_that_cannot_be_read_is_named(run: Run, captures: Captures, manifest: str) -> None:
    file = captures("a", line())
    (file.parent / "MANIFEST.jsonl").write_text(manifest)
    done = run("normalize", file)
    assert done.status == 2
    assert 'MANIFEST.jsonl:1: not a JSON object with "file" in it' in done.err
    assert run("normalize", "captures").status == 2


def test_a_note_beside_a_file_says_its_status(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.response.json").write_text('{"error": "no"}')
    note = tmp_path / "a.meta.json"
    note.write_text('{"status": 404}')
    done = run("normalize", "a.response.json", "--provider", "ollama")
    assert (done.status, orjson.loads(done.out)["finish_reason"]) == (0, "error")
    for wrong in ("no JSON", "3"):
        note.write_text(wrong)
        done = run("normalize", "a.response.json", "--provider", "ollama")
        assert (done.status, done.err) == (2, f"a.response.json: {Path('a.meta.json')}: not a JSON object\n")


def test_a_file_that_cannot_be_read_is_reported(
    run: Run, captures: Captures, locked: Callable[[Path], None]
) -> None:
    files = [captures(case, line(case)) for case in "ab"]
    locked(files[0])
    done = run("normalize", *files)
    assert (done.status, done.err, len(lines(done.out))) == (
        1,
        f"{files[0]}: Permission denied\n1 mapped, 1 failed: 1 unreadable\n",
        1,
    )


@pytest.mark.parametrize("command", [["normalize"], ["convert", "--to", "openai-chat"]])
def test_a_folder_that_nobody_may_look_into_is_reported(
    run: Run, tmp_path: Path, locked: Callable[[Path], None], command: list[str]
) -> None:
    open_one, closed = tmp_path / "tree/open", tmp_path / "tree/sub"
    for folder in (open_one, closed):
        folder.mkdir(parents=True)
        (folder / "a.response.json").write_bytes(orjson.dumps(line()))
    locked(closed)
    done = run(*command, "tree")
    assert (done.status, len(lines(done.out))) == (1, 1)
    assert done.err.startswith("tree/sub: Permission denied\n")
    assert run(*command, "tree/sub") == (2, "", "tree/sub: Permission denied\n")


def test_a_link_that_leads_out_of_reach_costs_no_other_file(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does a file that is not a capture, nor a pipe, which would be waited for."""
    folder = tmp_path / "mix"
    folder.mkdir()
    (folder / "a.response.json").write_bytes(orjson.dumps(line()))
    for name in ("z.response.json", "zz", ".hidden"):
        (folder / name).symlink_to(name)
    is_file = Path.is_file

    def refused(path: Path) -> bool:
        if path.is_symlink():
            raise PermissionError(13, "Permission denied", str(path))
        return is_file(path)

    monkeypatch.setattr(Path, "is_file", refused)
    os.mkfifo(folder / "pipe.jsonl")
    done = run("normalize", "mix")
    assert (done.status, len(lines(done.out))) == (1, 1)
    assert done.err.splitlines()[0] == "mix/z.response.json: Too many levels of symbolic links"


def test_a_file_that_is_out_of_reach_is_not_said_to_be_missing(run: Run, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert run("normalize", "loop") == (2, "", "loop: Too many levels of symbolic links\n")


def test_a_manifest_or_note_that_cannot_be_read_is_named(
    run: Run, tmp_path: Path, locked: Callable[[Path], None]
) -> None:
    file, note = tmp_path / "in/a.response.json", tmp_path / "in/a.meta.json"
    file.parent.mkdir()
    file.write_bytes(orjson.dumps(line()))
    note.write_text('{"status": 404}')
    locked(note)
    assert run("normalize", file) == (2, "", f"{file}: {note}: Permission denied\n")
    manifest = file.with_name("MANIFEST.jsonl")
    manifest.write_text('{"file": "a.response.json"}')
    locked(manifest)
    done = run("normalize", file.parent)
    assert done == (2, "", f"crosswalk normalize: {manifest}: Permission denied\n")


def test_a_file_that_vanishes_is_reported(
    run: Run, captures: Captures, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = captures("a", line())
    find = inputs.find_sources

    def find_and_lose(*args: Any, **kwargs: Any) -> Any:
        found = find(*args, **kwargs)
        file.unlink()
        return found

    monkeypatch.setattr("crosswalk.cli.normalize.find_sources", find_and_lose)
    done = run("normalize", file)
    assert (done.status, done.err) == (2, f"{file}: No such file or directory\n")


def test_an_interrupted_array_does_not_look_complete(
    run: Run, captures: Captures, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [captures(case, line(case)) for case in "ab"]

    def interrupt(file: str) -> Any:
        if file == str(files[1]):
            raise KeyboardInterrupt
        return read_recorded(file)

    monkeypatch.setattr(inputs, "read_recorded", interrupt)
    done = run("normalize", "--format", "json", "--no-indent", *files)
    assert (done.status, done.err) == (130, "interrupted\n")
    assert done.out.startswith("[\n{")
    assert not done.out.endswith("]\n")


# Terminals.

EVIL = "\x1b[31mred\x9b0m\x7f\u202eevil\u2066\u200f"


def test_a_terminal_gets_no_control_characters(
    run: Run, captures: Captures, terminal: Callable[[str], Terminal]
) -> None:
    file = captures("a", line(EVIL))
    piped = run("normalize", file).out
    assert "\u202e" in piped
    screen = terminal("stdout")
    run("normalize", file)
    assert screen.text().isascii()
    assert orjson.loads(screen.text()) == orjson.loads(piped)
    assert orjson.loads(piped)["message"]["content"] == EVIL


def test_a_report_holds_no_control_characters(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a\n\x1b[31m.json").write_bytes(b"")
    done = run("normalize", "a\n\x1b[31m.json")
    assert done.err == "a\\u000a\\u001b[31m.json: DetectionError: it is empty\n"


def test_long_work_shows_a_bar(
    run: Run, captures: Captures, terminal: Callable[[str], Terminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [captures("a", line()), captures("b", {"unknown": "\x1b[31m"}), captures("c", line())]
    screen = terminal("stderr")
    assert run("normalize", *files).status == 1
    assert "normalizing" not in screen.text()  # it was over at once
    monkeypatch.setattr(terminal_module, "_LONG", 0.0)
    screen = terminal("stderr")
    assert run("normalize", *files).status == 1
    assert "normalizing" in screen.text()
    assert "b.response.json: DetectionError: no provider recognizes it" in screen.text()


def test_a_bar_of_bytes_shows_the_rate(
    terminal: Callable[[str], Terminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal_module, "_LONG", 0.0)
    for in_bytes in (True, False):
        screen = terminal("stderr")
        with terminal_module.Progress("mapping", 10_000_000, in_bytes=in_bytes) as bar:
            for _ in range(5):
                bar.advance(1_000_000)
        assert "mapping" in screen.text()
        assert ("/s" in screen.text()) == in_bytes


def test_the_bar_goes_away_for_what_is_written(
    run: Run, captures: Captures, terminal: Callable[[str], Terminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On one terminal, too, long work shows a bar. Output never lands in the middle of it."""
    monkeypatch.setattr(terminal_module, "_LONG", 0.0)
    order: list[str] = []
    begin, hide, write = (
        terminal_module.Progress._begin,
        terminal_module.Progress._hide,
        terminal_module._write,
    )

    def noted(what: str, done: Callable[..., Any]) -> Callable[..., Any]:
        def note(*args: Any) -> Any:
            order.append(what)
            return done(*args)

        return note

    monkeypatch.setattr(terminal_module.Progress, "_begin", noted("begin", begin))
    monkeypatch.setattr(terminal_module.Progress, "_hide", noted("hide", hide))
    out, screen = terminal("stdout"), terminal("stderr")
    run("normalize", captures("a", line()), captures("b", line()))
    assert order == ["hide", "begin", "hide", "begin", "hide"]
    assert len(lines(out.text())) == 2
    assert "normalizing" in screen.text()
    assert terminal_module.before_writing is None
    assert write is terminal_module._write


# Several processes, and whose answers a log holds.


def mixed_log(folder: Path) -> Path:
    """A log with answers, errors, and lines that are none."""
    chat = {"choices": [{"message": {"role": "assistant", "content": "any"}, "finish_reason": "stop"}]}
    many_lines = [{"id": f"r{n}", "body": line(f"text {n}")} for n in range(70)]
    return records(
        folder, {"body": chat}, *many_lines, b"oops", {"body": line("cut", done=False)}, {"body": chat}
    )


class Inline:
    """An executor that works at once. Its arguments and results are pickled, as on the way to a process."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.submitted = 0

    def submit(self, function: Callable[..., Any], *given: Any) -> Any:
        function, given = pickle.loads(pickle.dumps((function, given)))
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        try:
            future.set_result(pickle.loads(pickle.dumps(function(*given))))
        except Exception as error:
            future.set_exception(error)
        self.submitted += 1
        return future

    def shutdown(self, **_: Any) -> None:
        """Nothing runs."""


@pytest.mark.sweep
def test_several_processes_write_the_same(run: Run, tmp_path: Path) -> None:
    file = mixed_log(tmp_path)
    alone = run("normalize", file, "--created", WHEN)
    assert alone.status == 1
    assert len(lines(alone.out)) == 72
    assert alone.err.endswith("72 mapped, 2 failed: 1 unreadable, 1 IncompleteStreamError\n")
    assert run("normalize", file, "--created", WHEN, "--jobs", "2") == alone


def die(*_: object) -> None:
    """In place of the work: what the system does to a process that takes too much memory."""
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_that_dies_is_one_line(
    run: Run, captures: Captures, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many, "_perform", die)
    done = run("normalize", captures("a", line("a")), "--jobs", "2")
    assert (done.status, done.out) == (1, "")
    assert done.err == (
        "crosswalk normalize: a worker process died, perhaps for want of memory; fewer --jobs need less\n"
    )


@pytest.mark.untraced
@pytest.mark.parametrize(
    "command", ["normalize", "normalize --stream", "convert --to anthropic", "store", "diff"]
)
def test_jobs_change_nothing(
    run: Run, tmp_path: Path, captures: Captures, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr(concurrent.futures, "ProcessPoolExecutor", Inline)
    monkeypatch.setattr(many, "_MOST_ITEMS", 3)
    paths = [mixed_log(tmp_path), captures("a", line("a")), captures("b", line("b", done=False))]
    done, stored = [], []
    for jobs in ("1", "3"):
        out = tmp_path / f"out{jobs}"
        name, *options = command.split()
        if name in ("store", "diff"):
            run("normalize", *paths, "--output", out, "--created", WHEN, "--jobs", jobs)
            stored.append({file.name: file.read_bytes() for file in out.iterdir()})
        if name == "diff":
            compared = run("diff", *paths, "--stored", tmp_path / "out1", "--json", "--jobs", jobs)
            assert '"same":75' in compared.out
            done.append(compared)
        elif name != "store":
            given = ["--created", WHEN] if name == "normalize" else []
            done.append(run(name, *paths, *options, *given, "--jobs", jobs))
    assert done[1:] == done[:-1]
    assert stored[1:] == stored[:-1]
    assert done or len(stored[0]) == 3


def test_a_log_asks_every_provider_once(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    for name in registry.names():
        mapper = registry.mapper(name)

        def ask(event: Any, name: str = name, recognizes: Callable[[Any], Any] = mapper.recognizes) -> Any:
            asked.append(name)
            return recognizes(event)

        monkeypatch.setattr(registry, "mapper", registry.mapper)
        object.__setattr__(mapper, "recognizes", ask)
    try:
        run("normalize", records(tmp_path, *({"body": line(f"{n}")} for n in range(30))))
    finally:
        for name in registry.names():
            mapper = registry.mapper(name)
            object.__setattr__(mapper, "recognizes", mapper.recognizes.__defaults__[1])  # type: ignore[attr-defined]
    assert asked.count("ollama") > 20
    assert asked.count("openai") < 5


def test_a_body_path_is_for_records(run: Run, captures: Captures) -> None:
    done = run("normalize", captures("a", line()), "--no-records", "--layout", "litellm")
    assert done == (
        2,
        "",
        "crosswalk normalize: --layout and --field are for records: without --no-records\n",
    )


def test_one_live_answer_needs_no_processes(
    run: Run, stdin: Callable[[bytes], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(concurrent.futures, "ProcessPoolExecutor", None)
    stdin(orjson.dumps(line("piped")))
    assert orjson.loads(run("normalize", "--jobs", "2").out)["message"]["content"] == "piped"


def test_a_log_that_cannot_be_read_is_reported(
    run: Run, tmp_path: Path, locked: Callable[[Path], None]
) -> None:
    file, empty = records(tmp_path, line()), tmp_path / "empty.jsonl"
    empty.touch()
    locked(file)
    assert run("normalize", file, empty) == (2, "", f"{file}: Permission denied\n")
    assert run("normalize", file, empty, "--output", tmp_path / "out").status == 2
    assert (tmp_path / "out/empty.jsonl").read_bytes() == b""


def test_batches_are_full_or_the_last() -> None:
    source = inputs.InputSource(Path("log.jsonl"), records=True)
    every = [inputs.InputItem(source, crosswalk.records.Line(n, 1, b"{}")) for n in range(128)]
    assert [len(batch) for batch in many._batches(every)] == [64, 64]
    assert [len(batch) for batch in many._batches(every[:3])] == [3]
    huge = [inputs.InputItem(source, crosswalk.records.Line(n, 1 << 20, None)) for n in range(2)]
    assert [len(batch) for batch in many._batches(huge)] == [1, 1]


def test_an_id_made_from_a_live_stream_is_that_of_its_bytes(
    run: Run, stdin: Callable[[bytes], None], tmp_path: Path
) -> None:
    """With --provider standard input is mapped as it comes. The id is that of a file with the same bytes."""
    data = orjson.dumps(
        {"message": {"role": "assistant", "content": "Hi."}, "done": True, "done_reason": "stop"}
    )
    (tmp_path / "same.response.json").write_bytes(data)
    of_file = run("normalize", "--provider", "ollama", str(tmp_path / "same.response.json"))
    stdin(data)
    of_stream = run("normalize", "--provider", "ollama")
    assert orjson.loads(of_stream.out)["id"] == orjson.loads(of_file.out)["id"]
    assert orjson.loads(of_stream.out)["metadata"]["provenance"]["id"] == "synthetic"


def test_an_id_made_from_the_bytes_is_the_same_without_the_lean_module(
    run: Run, captures: Captures, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not every Python has it. A prefix gives the same digest."""
    file = captures("a", line())
    lean = orjson.loads(run("normalize", "--provider", "ollama", file).out)
    monkeypatch.setitem(sys.modules, "_sha1", None)
    assert orjson.loads(run("normalize", "--provider", "ollama", file).out)["id"] == lean["id"]
    assert lean["metadata"]["provenance"]["id"] == "synthetic"


def test_a_line_that_stores_no_answer_gives_what_it_states(run: Run, tmp_path: Path) -> None:
    line = {"request_id": "r1", "call_type": "acompletion", "startTime": "2026-05-01T10:00:00Z", "endTime": "2026-05-01T10:00:01Z",
            "model": "m", "prompt_tokens": 950, "completion_tokens": 40, "spend": 0.01, "response": {}}  # fmt: skip
    file = tmp_path / "log.jsonl"
    file.write_bytes(orjson.dumps(line))
    done = run("normalize", file)
    found = orjson.loads(done.out)
    assert (
        done.status,
        found["usage"]["prompt_tokens"],
        found["metadata"]["provenance"]["message.content"],
    ) == (0, 950, "absent")
    for command in (["normalize", "--stream"], ["convert", "--to", "anthropic"]):
        done = run(*command, file)
        assert (done.status, done.out) == (1, "")
        assert f"{file}:1 (r1): RecordError: the log does not store the answer" in done.err


def test_an_envelope_of_a_log_is_not_read_as_another_vendors_answer(run: Run, tmp_path: Path) -> None:
    answer = {"id": "c", "object": "chat.completion", "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"},
                                                                   "finish_reason": "stop"}]}  # fmt: skip
    file = tmp_path / "log.jsonl"
    file.write_bytes(b"\n".join(orjson.dumps({key: answer}) for key in ("output", "response")))
    done = run("normalize", file)
    assert (done.status, done.out) == (1, "")
    assert (
        "log.jsonl:1: DetectionError: there is an answer under 'output', in the envelope of a log; pass --layout or --field"
        in done.err
    )
    assert run("normalize", file, "--field", "response=output").err.count("DetectionError") == 0
    assert run("report", file).status == 1
