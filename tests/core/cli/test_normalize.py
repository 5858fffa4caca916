from __future__ import annotations

import base64
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from crosswalk import ChatResponse, ResponseDelta, from_json, registry
from crosswalk.cli import progress, sources
from crosswalk.testing import load_capture

from .conftest import ROOT, Done, Terminal, line

Run = Callable[..., Done]
Captures = Callable[..., Path]
OLLAMA = ROOT / "tests/captures/ollama"
VLLM = ROOT / "tests/captures/vllm"
WHEN = "2026-01-01T00:00:00Z"
NO_JSON = "no JSON can be read from its beginning; --provider NAME says why"
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


def test_one_file_as_json_lines(run: Run) -> None:
    done = run("normalize", OLLAMA / "chat_length.response.json", "--format", "jsonl")
    assert len(done.out.splitlines()) == 1


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
        {"body": "{}", "status": "404"},
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
    assert len(reports) == 12
    assert reports[0].startswith("2: not JSON: ")
    assert reports[1:] == [
        "3: expected an object, got array",
        '4: neither "body" nor "body_base64" in it; --no-records reads the file as one answer',
        "5: body: expected a string or an object, got number",
        "6: body_base64: not base64",
        "7: body_base64: expected a string, got number",
        "8: status: expected an HTTP status",
        "9: status: expected an HTTP status",
        "10: provider: expected a string, got number",
        f"11: UnknownProviderError: unknown provider 'nobody'; known: {KNOWN}",
        f"12 (r12): DetectionError: no provider recognizes it; say --provider: {KNOWN}",
        "13 (r13): IncompleteStreamError: ollama, after event 1: "
        "the input ended without the provider's terminal signal",
    ]


def test_a_line_without_end_is_not_held_in_memory(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "_LONGEST_RECORD", 400)
    file = records(tmp_path, b"x" * 1000, {"body": line("good")}, b"y" * 400)
    done = run("normalize", file)
    assert [one["message"]["content"] for one in lines(done.out)] == ["good"]
    assert done.err == (
        f"{file}:1: the line is longer than 400 bytes\n{file}:3: the line is longer than 400 bytes\n"
    )


def test_a_stream_in_a_jsonl_file_is_one_answer_if_said_so(run: Run, tmp_path: Path) -> None:
    file = records(tmp_path, line("a", done=False), line("b"))
    assert run("normalize", file).status == 1
    done = run("normalize", file, "--no-records")
    assert orjson.loads(done.out)["message"]["content"] == "ab"


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
        (b"\x00\xff\xfe garbage", NO_JSON),
        (b"\x1f\x8b\x08\x00 compressed", NO_JSON),
        (b"<!DOCTYPE html><title>502 Bad Gateway</title>", NO_JSON),
        (b'{"odd": 1}', f"no provider recognizes it; say --provider: {KNOWN}"),
        (b'{"error": "anybody"}', "several providers recognize it; say --provider: "),
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
    assert done.status == 1
    assert 'MANIFEST.jsonl:1: no JSON object with "file" in it' in done.err
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
        assert (done.status, done.err) == (1, f"a.response.json: {Path('a.meta.json')}: no JSON object\n")


def test_a_file_that_cannot_be_read_is_reported(
    run: Run, captures: Captures, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [captures(case, line(case)) for case in "ab"]
    read = Path.read_bytes

    def refuse(path: Path) -> bytes:
        if path == files[0]:
            raise PermissionError(13, "Permission denied")
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    done = run("normalize", *files)
    assert (done.status, done.err, len(lines(done.out))) == (1, f"{files[0]}: Permission denied\n", 1)


def test_a_file_that_vanishes_is_reported(
    run: Run, captures: Captures, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = captures("a", line())
    find = sources.find_sources

    def find_and_lose(*args: Any, **kwargs: Any) -> Any:
        found = find(*args, **kwargs)
        file.unlink()
        return found

    monkeypatch.setattr("crosswalk.cli.normalize.find_sources", find_and_lose)
    done = run("normalize", file)
    assert (done.status, done.err) == (1, f"{file}: No such file or directory\n")


def test_an_interrupted_array_does_not_look_complete(
    run: Run, captures: Captures, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [captures(case, line(case)) for case in "ab"]
    load = load_capture

    def interrupt(path: Path) -> Any:
        if path == files[1]:
            raise KeyboardInterrupt
        return load(path)

    monkeypatch.setattr(sources, "load_capture", interrupt)
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
    monkeypatch.setattr(progress, "_LONG", 0.0)
    screen = terminal("stderr")
    assert run("normalize", *files).status == 1
    assert "normalizing" in screen.text()
    assert "b.response.json: DetectionError: no provider recognizes it" in screen.text()


def test_no_bar_where_the_output_itself_scrolls_by(
    run: Run, captures: Captures, terminal: Callable[[str], Terminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_LONG", 0.0)
    terminal("stdout")
    screen = terminal("stderr")
    run("normalize", captures("a", line()))
    assert screen.text() == ""


def test_an_id_made_from_a_live_stream_is_that_of_its_bytes(
    run: Run, stdin: Callable[[bytes], None], tmp_path: Path
) -> None:
    """With --provider standard input is mapped as it comes; the id is that of a file with the same bytes."""
    data = orjson.dumps(
        {"message": {"role": "assistant", "content": "Hi."}, "done": True, "done_reason": "stop"}
    )
    (tmp_path / "same.response.json").write_bytes(data)
    of_file = run("normalize", "--provider", "ollama", str(tmp_path / "same.response.json"))
    stdin(data)
    of_stream = run("normalize", "--provider", "ollama")
    assert orjson.loads(of_stream.out)["id"] == orjson.loads(of_file.out)["id"]
    assert orjson.loads(of_stream.out)["metadata"]["provenance"]["id"] == "synthetic"
