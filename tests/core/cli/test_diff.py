"""``crosswalk normalize --output`` and ``crosswalk diff``: normalise today, upgrade, diff, accept."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from crosswalk import (
    ChatResponse,
    FinishReason,
    from_json,
)
from crosswalk.codec import ABSENT, Difference
from crosswalk.testing.changes import ChangeSummary, shown
from upgrading import Wren

from .conftest import ROOT, Done, line

Run = Callable[..., Done]
Captures = Callable[..., Path]
Register = Callable[[object, str], str]
TEXT = "What somebody wrote to somebody else is nobody's business."


@pytest.fixture
def wren(provider: Register) -> Wren:
    plugin = Wren()
    provider(plugin, "wren")
    return plugin


def said(text: str = TEXT, why: str = "end", cached: int = 0) -> dict[str, Any]:
    return {"say": text, "why": why, "cached": cached}


def log(folder: Path, *records: Any, name: str = "log.jsonl") -> Path:
    file = folder / name
    file.write_bytes(b"\n".join(r if isinstance(r, bytes) else orjson.dumps(r) for r in records) + b"\n")
    return file


# The story: two commands.


def test_captures_are_stored_upgraded_compared_accepted(run: Run, captures: Captures, wren: Wren) -> None:
    for number in range(7):
        captures(f"c{number}", said(why="full" if number < 2 else "end", cached=number))
    assert run("normalize", "captures", "--output", "stored") == (0, "", "")
    same = run("diff", "captures", "--stored", "stored")
    assert same == (0, "7 compared: 0 different, 7 the same\n", "")

    wren.reads_cache = True
    wren.words = {**wren.words, "full": FinishReason.LENGTH}
    done = run("diff", "captures", "--stored", "stored")
    assert (done.status, done.err) == (1, "")
    first, *_ = done.out.splitlines()
    assert first == 'captures/c0.response.json: finish_reason: "stop" -> "length"'
    assert "captures/c3.response.json: usage.cached_tokens: absent -> 3\n" in done.out
    assert done.out.partition("\n\n")[2] == (
        "usage.cached_tokens: absent -> number in 7 captures of wren\n"
        'finish_reason: "stop" -> "length" in 2 captures of wren\n'
        "7 compared: 7 different, 0 the same\n"
    )
    assert run("diff", "captures", "--stored", "stored", "--summary").out == done.out.partition("\n\n")[2]

    assert run("normalize", "captures", "--output", "stored").status == 0
    assert run("diff", "captures", "--stored", "stored").status == 0


def test_a_stored_capture_is_canonical_json(run: Run, captures: Captures) -> None:
    captures("a", line("one"))
    run("normalize", "captures", "--output", "stored", "--raw", "--provider", "ollama")
    stored = Path("stored/a.json").read_bytes()
    response = from_json(stored, ChatResponse)
    assert (response.text, len(response.raw_events)) == ("one", 1)
    assert stored.startswith(b"{\n  ")
    assert sorted(os.listdir("stored")) == ["a.json"]


def test_logs_keep_their_records_with_the_response_in_them(run: Run, tmp_path: Path, wren: Wren) -> None:
    records = [
        {"id": "r1", "body": said(cached=5), "user": "u-7"},
        b"{broken",
        b"",
        {"body": said("Hi", "end", 6)},
    ]
    (tmp_path / "logs/deep").mkdir(parents=True)
    log(tmp_path / "logs/deep", *records)
    done = run("normalize", "logs", "--output", "kept")
    assert (done.status, done.out) == (1, "")
    assert done.err.startswith("logs/deep/log.jsonl:2: not JSON")
    first, broken, last = (tmp_path / "kept/deep/log.jsonl").read_bytes().splitlines()
    assert broken == b"{broken"
    assert orjson.loads(first)["user"] == "u-7"
    assert orjson.loads(first)["response"]["id"] == "r1"
    assert orjson.loads(last)["response"]["message"]["content"] == "Hi"

    wren.reads_cache = True
    by_itself = run("diff", "kept", "--summary")
    assert by_itself.status == 1
    assert by_itself.out == (
        "usage.cached_tokens: absent -> 5 in 1 capture of wren\n"
        "usage.cached_tokens: absent -> 6 in 1 capture of wren\n"
        "2 compared: 2 different, 0 the same; 1 could not be compared\n"
    )
    assert run("diff", "logs", "--stored", "kept", "--summary").out == by_itself.out
    lines = run("diff", "kept").out.splitlines()
    assert lines[0] == "kept/deep/log.jsonl:1 (r1): usage.cached_tokens: absent -> 5"
    assert lines[1] == "kept/deep/log.jsonl:3: usage.cached_tokens: absent -> 6"


def test_the_stored_response_of_a_record_may_be_text(
    run: Run, stdin: Callable[[bytes], None], tmp_path: Path, wren: Wren
) -> None:
    run("normalize", log(tmp_path, {"body": said()}), "--output", "kept")
    record = orjson.loads((tmp_path / "kept/log.jsonl").read_bytes())
    record["response"] = orjson.dumps(record["response"]).decode()
    stdin(orjson.dumps(record))
    assert run("diff", "--records").out == "1 compared: 0 different, 1 the same\n"


def test_answers_that_could_not_be_mapped_are_stored_and_compared(
    run: Run, captures: Captures, wren: Wren
) -> None:
    captures("a", said("A", why="weird"))
    captures("b", said("B"))
    done = run("normalize", "captures", "--output", "stored")
    assert done.status == 1
    assert "captures/a.response.json: UnknownFinishReasonError: wren, " in done.err
    stored = orjson.loads(Path("stored/a.json").read_bytes())
    assert stored["error"] == "UnknownFinishReasonError"
    assert stored["partial"]["message"]["content"] == "A"
    assert run("diff", "captures", "--stored", "stored").status == 0

    wren.words = {**wren.words, "weird": FinishReason.STOP}
    done = run("diff", "captures", "--stored", "stored", "--summary")
    assert done.out.splitlines()[0] == "error: UnknownFinishReasonError -> absent in 1 capture of wren"
    run("normalize", "captures", "--output", "stored")
    wren.fails = True
    done = run("diff", "captures", "--stored", "stored")
    assert done.status == 1
    assert (
        "b.response.json: error: absent -> MappingError: wren, event 1: the plugin failed with Key"
        in done.out
    )
    assert "error: absent -> MappingError in 2 captures of wren\n" in done.out


def test_an_answer_that_nobody_recognizes_is_an_outcome_too(run: Run, captures: Captures, wren: Wren) -> None:
    captures("a", {"odd": 1})
    run("normalize", "captures", "--output", "stored")
    assert orjson.loads(Path("stored/a.json").read_bytes())["error"] == "DetectionError"
    assert run("diff", "captures", "--stored", "stored").status == 0
    done = run("diff", "captures", "--stored", "stored", "--provider", "wren")
    assert "error: DetectionError -> MappingError in 1 capture" in done.out


@pytest.mark.parametrize("has_segment", [True, False])
def test_of_the_same_error_what_had_been_received_is_compared_and_not_its_words(
    run: Run, captures: Captures, wren: Wren, has_segment: bool
) -> None:
    captures("a", said("A", why="weird"))
    run("normalize", "captures", "--output", "stored")
    stored = orjson.loads(Path("stored/a.json").read_bytes())
    stored["message"] = stored["partial"]["refusal"] = stored["partial"]["segments"][-1]["content"] = "Oh no!"
    Path("stored/a.json").write_bytes(orjson.dumps(stored))
    assert run("diff", "captures", "--stored", "stored").status == 0
    stored["partial"]["message"]["content"] = "B"
    if not has_segment:
        stored["partial"]["segments"] = []
    Path("stored/a.json").write_bytes(orjson.dumps(stored))
    done = run("diff", "captures", "--stored", "stored")
    assert 'a.response.json: message.content: "…" (1 character) -> "…" (1 character)' in done.out


def test_what_had_been_received_may_come_or_go(run: Run, captures: Captures, wren: Wren) -> None:
    captures("a", said("A", why="weird"))
    run("normalize", "captures", "--output", "stored")
    stored = orjson.loads(Path("stored/a.json").read_bytes())
    del stored["partial"]
    Path("stored/a.json").write_bytes(orjson.dumps(stored))
    assert "partial: absent -> {} in 1 capture" in run("diff", "captures", "--stored", "stored").out


@pytest.mark.sweep
def test_snapshots_of_the_kit_are_stored_answers(run: Run) -> None:
    done = run("diff", ROOT / "tests/captures/ollama", "--stored", ROOT / "snapshots/ollama")
    assert (done.status, done.err) == (0, "")
    assert " compared: 0 different" in done.out


def test_stored_documents_of_every_format_version_are_read(run: Run, captures: Captures, wren: Wren) -> None:
    captures("a", said())
    run("normalize", "captures", "--output", "stored")
    stored = orjson.loads(Path("stored/a.json").read_bytes())
    del stored["format_version"], stored["usage"]["total_tokens"]
    Path("stored/a.json").write_bytes(orjson.dumps({**stored, "unknown_key": 1}))
    assert run("diff", "captures", "--stored", "stored").status == 0


def test_made_up_ids_and_times_are_no_difference(run: Run, tmp_path: Path, wren: Wren) -> None:
    file = log(tmp_path, {"body": said()})
    run("normalize", file, "--output", "kept", "--created", "2026-01-01T00:00:00Z")
    record = orjson.loads((tmp_path / "kept/log.jsonl").read_bytes())
    log(tmp_path, {**record, "id": "another"}, name="kept/log.jsonl")
    assert run("diff", "kept").status == 0


# What cannot be compared.


@pytest.mark.parametrize(
    ("stored", "cause"),
    [
        (None, "no stored answer: no stored/a.json"),
        (b"{", "the stored answer: not JSON: "),
        (b"[]", "the stored answer: expected an object, got array"),
        (b'{"response": null}', "the stored answer: expected an object, got null"),
        (b'{"id": 7}', "the stored answer: cannot read ChatResponse: "),
        (b'{"error": "E", "message": "m", "partial": 7}', "the stored answer: cannot read ChatResponse: "),
        (b'{"format_version": "9.0"}', "the stored answer: cannot read ChatResponse: "),
    ],
)
def test_what_cannot_be_compared_is_reported_and_the_rest_goes_on(
    run: Run, captures: Captures, wren: Wren, stored: bytes | None, cause: str
) -> None:
    captures("a", said())
    captures("b", said())
    run("normalize", "captures", "--output", "stored")
    Path("stored/a.json").unlink()
    if stored is not None:
        Path("stored/a.json").write_bytes(stored)
    done = run("diff", "captures", "--stored", "stored")
    assert done.status == 1
    assert done.err.startswith(f"captures/a.response.json: {cause}")
    assert done.out == "1 compared: 0 different, 1 the same; 1 could not be compared\n"


def test_a_stored_answer_that_is_nested_too_deeply(run: Run, captures: Captures, wren: Wren) -> None:
    captures("a", said())
    run("normalize", "captures", "--output", "stored")
    stored = Path("stored/a.json").read_bytes()
    Path("stored/a.json").write_bytes(stored.replace(b'"kept": 1', b'"kept": ' + b"[" * 400 + b"]" * 400))
    done = run("diff", "captures", "--stored", "stored")
    assert (done.status, done.out) == (2, "")
    assert "a.response.json: the stored answer: nested too deeply" in done.err


def test_names_that_are_no_unicode(run: Run, tmp_path: Path, wren: Wren) -> None:
    (tmp_path / "in").mkdir()
    file = Path(os.fsdecode(b"in/\xff" + b"x" * 240 + b".txt"))
    file.write_bytes(orjson.dumps(said(cached=1)))
    assert run("normalize", "in", "--output", "stored") == (0, "", "")
    wren.reads_cache = True
    for options in ((), ("--json",)):
        done = run("diff", "in", "--stored", "stored", *options)
        assert done.status == 1
        assert "in/\\udcffxxx" in done.out.replace("\\\\", "\\")


def test_a_stored_answer_that_cannot_be_opened(run: Run, captures: Captures, wren: Wren) -> None:
    captures("a", said())
    Path("stored/a.json").mkdir(parents=True)
    done = run("diff", "captures", "--stored", "stored")
    assert done.status == 2
    assert "the stored answer: stored/a.json: Is a directory" in done.err


def test_records_without_a_response(run: Run, tmp_path: Path, wren: Wren) -> None:
    done = run("diff", log(tmp_path, {"body": said()}, {"body": said(), "response": 7}, {"response": {}}))
    assert done.status == 2
    reports = [line.partition("log.jsonl:")[2] for line in done.err.splitlines()[:-1]]
    assert reports == [
        '1: no stored answer: no "response" in the record',
        "2: the stored answer: expected an object, got number",
        '3: no stored answer: no "response" in the record',
    ]
    assert done.err.splitlines()[-1] == "crosswalk diff: nothing could be compared"


def test_stored_answers_that_nobody_may_look_into(
    run: Run, captures: Captures, tmp_path: Path, locked: Callable[[Path], None]
) -> None:
    file = captures("a", line())
    (tmp_path / "stored").mkdir()
    locked(tmp_path / "stored")
    assert run("diff", file, "--stored", "stored") == (2, "", "crosswalk diff: stored: Permission denied\n")


@pytest.mark.parametrize(
    ("argv", "cause"),
    [
        (["captures"], "captures/a.response.json: no stored answer: --stored names the folder of them"),
        (["captures", "--stored", "nowhere"], "crosswalk diff: no such folder: nowhere"),
        (["nowhere", "--stored", "captures"], "crosswalk diff: no such file: nowhere"),
        (["empty", "--stored", "captures"], "empty: no captures in it"),
        (["captures", "--stored", "empty", "--provider", "dodo"], "crosswalk diff: unknown provider 'dodo'"),
    ],
)
def test_nothing_to_compare_is_status_2(
    run: Run, captures: Captures, tmp_path: Path, argv: list[str], cause: str
) -> None:
    captures("a", line())
    (tmp_path / "empty").mkdir()
    done = run("diff", *argv)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(cause)


def test_an_answer_on_standard_input_has_nothing_stored(
    run: Run, stdin: Callable[[bytes], None], tmp_path: Path
) -> None:
    stdin(orjson.dumps(line()))
    done = run("diff", "--stored", tmp_path)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("standard input: no stored answer: no ")


def test_a_mapping_whose_result_is_no_json_is_a_failure(run: Run, captures: Captures, wren: Wren) -> None:
    captures("a", said())
    run("normalize", "captures", "--output", "stored")
    wren.breaks = True
    done = run("diff", "captures", "--stored", "stored", "--summary")
    assert done.out.splitlines()[0] == "error: absent -> PluginError in 1 capture of wren"
    done = run("normalize", "captures", "--output", "stored")
    assert (done.status, "it left in the extensions what is not JSON" in done.err) == (1, True)
    assert run("diff", "captures", "--stored", "stored").status == 0
    # Nor can what had been received be written.
    captures("b", said(why="weird"))
    run("normalize", "captures", "--output", "stored")
    assert orjson.loads(Path("stored/b.json").read_bytes()).keys() == {"error", "message"}


# Where it is stored.


def test_the_folder_of_stored_answers_may_lie_among_the_captures(
    run: Run, captures: Captures, wren: Wren
) -> None:
    captures("a", said())
    for _ in range(2):
        assert run("normalize", "captures", "--output", "captures/canonical") == (0, "", "")
    assert run("diff", "captures", "--stored", "captures/canonical").status == 0
    assert [f.name for f in Path("captures/canonical").iterdir()] == ["a.json"]


def test_no_answer_is_written_over(run: Run, tmp_path: Path, wren: Wren) -> None:
    body, records = orjson.dumps(said()), log(tmp_path, {"body": said()})
    for name in ("a.json", "b.json", "b.txt"):
        (tmp_path / name).write_bytes(body)
    done = run("normalize", "a.json", records.name, "--output", ".")
    assert (done.status, done.out) == (2, "")
    assert done.err.splitlines() == [
        "a.json: not stored: there is another answer at a.json",
        "log.jsonl: not stored: there is another answer at log.jsonl",
    ]
    assert (tmp_path / "a.json").read_bytes() == body
    done = run("normalize", "b.json", "b.txt", "--output", "stored")
    assert done.err == "b.txt: not stored: there is another answer at stored/b.json\n"


def test_the_captures_own_folder_is_not_searched(run: Run, captures: Captures, wren: Wren) -> None:
    captures("a", said())
    done = run("normalize", "captures", "--output", "captures")
    assert (done.status, done.err) == (2, "captures: no captures in it\n")


def test_a_capture_that_is_gone_leaves_what_was_stored(
    run: Run, captures: Captures, wren: Wren, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = captures("a", said())
    run("normalize", "captures", "--output", "stored")
    before = Path("stored/a.json").read_bytes()

    def gone(_: object) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr("crosswalk.cli.inputs.read_recorded", gone)
    done = run("normalize", "captures", "--output", "stored")
    assert (done.status, done.err) == (2, f"captures/{file.name}: No such file or directory\n")
    assert Path("stored/a.json").read_bytes() == before


def test_an_interrupted_log_leaves_what_was_stored(
    run: Run, tmp_path: Path, wren: Wren, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = log(tmp_path, {"body": said()}, {"body": said()})
    run("normalize", file, "--output", "kept")
    before = (tmp_path / "kept/log.jsonl").read_bytes()
    calls: list[object] = []

    def interrupted(*_: object, **__: object) -> None:
        calls.append(1)
        raise KeyboardInterrupt

    monkeypatch.setattr("crosswalk.cli.stored.outcome_of", interrupted)
    assert run("normalize", file, "--output", "kept").status == 130
    assert calls == [1]
    assert (tmp_path / "kept/log.jsonl").read_bytes() == before
    assert [f.name for f in (tmp_path / "kept").iterdir()] == ["log.jsonl"]


def test_a_line_that_is_too_long_is_reported(
    run: Run, tmp_path: Path, wren: Wren, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crosswalk.records.reading._LONGEST", 400)
    done = run("normalize", log(tmp_path, {"body": said("x" * 500)}, {"body": said()}), "--output", "kept")
    assert (done.status, "longer than 400 bytes" in done.err) == (1, True)
    assert len((tmp_path / "kept/log.jsonl").read_bytes().splitlines()) == 1


def test_a_record_that_is_nested_too_deeply_is_reported(run: Run, tmp_path: Path, wren: Wren) -> None:
    deep = b"[" * 400 + b"]" * 400
    file = log(
        tmp_path,
        b'{"body": {"say": "a", "why": "end"}, "note": ' + deep + b"}",
        b'{"body": {"say": ' + deep + b"}}",
        {"body": said()},
    )
    done = run("normalize", file, "--output", "kept")
    assert [line.partition(".jsonl:")[2] for line in done.err.splitlines()] == [
        "1: left out: the record is nested too deeply to be written again",
        "2: body: nested too deeply",
        "",  # the total
    ]
    first, last = (tmp_path / "kept/log.jsonl").read_bytes().splitlines()
    assert (b"response" in first, b"response" in last) == (False, True)


@pytest.mark.parametrize(
    "options", [("--stream",), ("--partial",), ("--format", "json"), ("--indent",), ("--no-indent",)]
)
def test_files_have_their_own_form(run: Run, captures: Captures, options: tuple[str, ...]) -> None:
    captures("a", line())
    done = run("normalize", "captures", "--output", "stored", *options)
    assert (done.status, done.out) == (2, "")
    assert "--output writes files" in done.err


def test_what_has_no_name_has_no_file(run: Run, stdin: Callable[[bytes], None]) -> None:
    stdin(b"{}")
    assert "standard input has no name" in run("normalize", "--output", "stored").err


def test_a_folder_that_cannot_be_written_is_status_2(run: Run, captures: Captures, tmp_path: Path) -> None:
    captures("a", line())
    (tmp_path / "file").write_text("")
    done = run("normalize", "captures", "--provider", "ollama", "--output", "file")
    assert (done.status, done.out) == (2, "")
    assert done.err == "crosswalk normalize: file: File exists\n"


# How it is said.


@pytest.mark.parametrize(
    ("path", "before", "after", "expected"),
    [
        ("usage.cached_tokens", ABSENT, 12, "absent -> 12"),
        ("finish_reason", "stop", "length", '"stop" -> "length"'),
        ("model", "m" * 99, None, '"' + "m" * 39 + '…" -> null'),
        ("metadata.provenance.usage", "absent", ABSENT, '"absent" -> absent'),
        ("metadata.extensions.id", "abcd", "abcx", '"ab…" (4 characters) -> "ab…" (4 characters)'),
        ("message.content", "", "a", '"" (0 characters) -> "…" (1 character)'),
        ("metadata.extensions.done", True, 1.5, "true -> 1.5"),
        ("segments", [1, 2], [1], "2 items -> 1 item"),
        ("metadata.extensions.x", {}, dict.fromkeys("abcde", 1), "{} -> {a, b, c, d, …}"),
        ("error", ABSENT, "E: " + "x" * 999, "absent -> E: " + "x" * 156 + "…"),
    ],
)
def test_a_value_is_shown_short(path: str, before: Any, after: Any, expected: str) -> None:
    difference = Difference(tuple(path.split(".")), before, after)
    assert " -> ".join(shown(difference)) == expected


def test_of_two_long_texts_the_place_is_shown_where_they_part() -> None:
    one, other = f"{TEXT} Yes, {TEXT}", f"{TEXT} No, {TEXT}"
    before, after = shown(Difference(("message", "content"), one, other))
    assert before == '"…siness. Yes, What somebo…" (122 characters)'
    assert after == '"…siness. No, What somebod…" (121 characters)'


def test_no_text_is_shown_as_a_whole() -> None:
    for length in range(1, 60):
        text = "abcdefghij"[: length % 10] * 9 + "z" * length
        for before, after in ((ABSENT, text), (text, "other"), (text, text + "!")):
            assert text not in " ".join(shown(Difference(("message", "content"), before, after)))


def test_the_summary_tells_kinds_apart_and_stays_small() -> None:
    summary = ChangeSummary()
    for number in range(40):
        summary.add(
            [
                Difference(("usage", "cached_tokens"), ABSENT, number),
                Difference(("usage", "prompt_tokens"), number, number + 1),
                Difference(("message", "content"), f"text {number}", "another text"),
                Difference(("segments", number, "content"), f"text {number}", "another text"),
                Difference(("segments", number + 1, "content"), "x", "y"),
                Difference(("metadata", "extensions", f"key {number}"), ABSENT, None),
                Difference(("finish_reason",), "stop", "length" if number % 4 else "error"),
                Difference(("error",), f"MappingError: event {number}", ABSENT),
            ]
        )
    said = [str(kind) for kind in summary.kinds()]
    assert said[:7] == [
        "usage.cached_tokens: absent -> number in 40 captures",
        "usage.prompt_tokens: number -> a higher number in 40 captures",
        "message.content: text -> another text in 40 captures",
        "segments[].content: text -> another text in 40 captures",
        "error: MappingError -> absent in 40 captures",
        'finish_reason: "stop" -> "length" in 30 captures',
        'finish_reason: "stop" -> "error" in 10 captures',
    ]
    assert len(said) == 47


def test_a_field_has_a_short_name() -> None:
    summary = ChangeSummary()
    summary.add([Difference(("metadata", "extensions", "k" * 9999, 3, "x y"), 1, 2)])
    (kind,) = summary.kinds()
    assert kind.path == f"metadata.extensions['{'k' * 39}…'][]['x y']"


def test_of_too_many_fields_the_rest_is_only_counted() -> None:
    summary = ChangeSummary()
    for number in range(1005):
        summary.add([Difference(("metadata", "extensions", f"k{number}"), 1, 2)])
    kinds = summary.kinds()
    assert len(kinds) == 1001
    assert str(kinds[-1]) == "further fields: a value -> another in 5 captures"


def test_many_differences_of_one_capture_are_cut(run: Run, captures: Captures, wren: Wren) -> None:
    captures("a", said())
    run("normalize", "captures", "--output", "stored")
    stored = orjson.loads(Path("stored/a.json").read_bytes())
    stored["metadata"]["extensions"] |= {"\x1b[2J": 1} | {f"k{number}": {"x": number} for number in range(30)}
    Path("stored/a.json").write_bytes(orjson.dumps(stored))
    done = run("diff", "captures", "--stored", "stored")
    assert done.status == 1
    assert (
        done.out.splitlines()[0] == "captures/a.response.json: metadata.extensions['\\x1b[2J']: 1 -> absent"
    )
    assert "captures/a.response.json: and 11 more differences\n" in done.out
    assert "\x1b" not in done.out


def test_json_lines_for_programs(run: Run, captures: Captures, wren: Wren) -> None:
    captures("a", said(cached=1))
    captures("b", said(cached=2))
    run("normalize", "captures", "--output", "stored")
    wren.reads_cache = True
    done = run("diff", "captures", "--stored", "stored", "--json")
    lines = [orjson.loads(line) for line in done.out.splitlines()]
    change = {"path": "usage.cached_tokens", "before": "absent"}
    assert lines == [
        {"place": "captures/a.response.json", "differences": [{**change, "after": "1"}]},
        {"place": "captures/b.response.json", "differences": [{**change, "after": "2"}]},
        {
            "compared": 2,
            "different": 2,
            "accepted": 0,
            "same": 0,
            "not_compared": 0,
            "changes": [
                {
                    **change,
                    "after": after,
                    "captures": 1,
                    "provider": "wren",
                    "examples": [place],
                    "is_accepted": False,
                }
                for after, place in (("1", "captures/a.response.json"), ("2", "captures/b.response.json"))
            ],
        },
    ]
    assert (
        run("diff", "captures", "--stored", "stored", "--json", "--summary").out
        == done.out.splitlines(keepends=True)[-1]
    )


# What is accepted, and the page.


def test_what_is_accepted_does_not_fail(run: Run, captures: Captures, wren: Wren) -> None:
    for number in range(7):
        captures(f"c{number}", said(why="full" if number < 2 else "end", cached=number))
    run("normalize", "captures", "--output", "stored")
    wren.reads_cache = True
    written = run("diff", "captures", "--stored", "stored", "--write-accepted", "accepted", "--summary")
    assert (written.status, written.err) == (0, "")
    assert [orjson.loads(line) for line in Path("accepted").read_bytes().splitlines()] == [
        {
            "provider": "wren",
            "path": "usage.cached_tokens",
            "before": "absent",
            "after": "number",
            "captures": 7,
            "examples": [f"captures/c{number}.response.json" for number in range(3)],
        }
    ]
    done = run("diff", "captures", "--stored", "stored", "--accept", "accepted", "--summary")
    assert done.status == 0
    assert done.out == (
        "usage.cached_tokens: absent -> number in 7 captures of wren; accepted\n"
        "7 compared: 0 different, 7 as accepted, 0 the same\n"
    )

    wren.words = {**wren.words, "full": FinishReason.LENGTH}
    done = run("diff", "captures", "--stored", "stored", "--accept", "accepted", "--summary")
    assert done.status == 1
    assert done.out.splitlines()[1:] == [
        'finish_reason: "stop" -> "length" in 2 captures of wren',
        "7 compared: 2 different, 5 as accepted, 0 the same",
    ]


def test_a_value_is_accepted_for_itself_alone(run: Run, captures: Captures, wren: Wren) -> None:
    captures("a", said(cached=1))
    captures("b", said(cached=2))
    run("normalize", "captures", "--output", "stored")
    wren.reads_cache = True
    line = {"provider": "wren", "path": "usage.cached_tokens", "before": "absent", "after": "2"}
    Path("accepted").write_bytes(b"# since 0.2\n\n" + orjson.dumps({**line, "reason": "cache"}))
    done = run("diff", "captures", "--stored", "stored", "--accept", "accepted", "--summary")
    assert done.status == 1
    assert "2 compared: 1 different, 1 as accepted, 0 the same\n" in done.out


@pytest.mark.parametrize("line", [b"{", b"[]", b'{"provider": "x"}', b"3"])
def test_a_list_that_cannot_be_read_is_a_wrong_command_line(
    run: Run, captures: Captures, line: bytes
) -> None:
    captures("a", said())
    Path("accepted").write_bytes(b"\n" + line)
    done = run("diff", "captures", "--stored", "captures", "--accept", "accepted")
    assert (done.status, "accepted:2: expected an object with provider" in done.err) == (2, True)
    assert run("diff", "captures", "--stored", "captures", "--accept", "missing").status == 2


@pytest.mark.parametrize("option", ["--html", "--write-accepted"])
def test_what_cannot_be_written_is_said(run: Run, captures: Captures, wren: Wren, option: str) -> None:
    captures("a", said())
    run("normalize", "captures", "--output", "stored")
    Path("taken").mkdir()
    done = run("diff", "captures", "--stored", "stored", option, "taken")
    assert (done.status, done.err.startswith("crosswalk diff: taken: ")) == (2, True)


def test_the_changes_are_a_page(run: Run, captures: Captures, wren: Wren) -> None:
    captures("a<b", said(cached=1))
    run("normalize", "captures", "--output", "stored")
    assert run("diff", "captures", "--stored", "stored", "--html", "page.html").status == 0
    assert "Nothing differs." in Path("page.html").read_text()
    wren.reads_cache = True
    run("diff", "captures", "--stored", "stored", "--html", "page.html", "--write-accepted", "accepted")
    page = Path("page.html").read_text()
    assert (
        '<tr class="new"><td class="n">1</td><td>wren</td><td><code>usage.cached_tokens</code></td>' in page
    )
    assert "<del>absent</del> → <ins>1</ins>" in page
    assert "captures/a&lt;b.response.json" in page
    run("diff", "captures", "--stored", "stored", "--html", "page.html", "--accept", "accepted")
    assert "<small>accepted</small>" in Path("page.html").read_text()


def test_summaries_of_parts_add_up() -> None:
    def part(*numbers: int) -> ChangeSummary:
        summary = ChangeSummary()
        for number in numbers:
            summary.add([Difference(("usage", "cached_tokens"), ABSENT, number)], "wren", f"log:{number}")
        return summary

    whole, two, many = part(1, 2, 3), part(1, 2), part(4, 5, 6, 7, 8)
    two.include(part(3))
    assert two.kinds() == whole.kinds()
    two.include(many)
    assert [str(kind) for kind in two.kinds()] == [
        "usage.cached_tokens: absent -> number in 8 captures of wren"
    ]
    assert two.kinds()[0].examples == ("log:1", "log:2", "log:3")
    many.include(whole)
    assert many.kinds()[0].examples == ("log:4", "log:5", "log:6")


def in_words(text: str) -> dict[str, Any]:
    return {
        "body": {
            "id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [
                {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        },
        "provider": "openai",
    }  # fmt: skip


def written_by_normalize(run: Run, folder: Path, name: str, *texts: str) -> Path:
    log = folder / name
    log.parent.mkdir(exist_ok=True)
    log.write_bytes(b"".join(orjson.dumps(in_words(text)) + b"\n" for text in texts))
    output = folder.with_name(f"{folder.name}-output")
    assert run("normalize", log, "--output", output).status == 0
    return output


def test_two_outputs_of_normalize_are_compared_with_each_other(run: Run, tmp_path: Path) -> None:
    before = written_by_normalize(run, tmp_path / "one", "monday.jsonl", "Hi", "Bye")
    after = written_by_normalize(run, tmp_path / "two", "tuesday.jsonl", "Hi", "Ciao")
    done = run("diff", before, after)
    assert done.status == 1
    assert "tuesday.jsonl:2: message.content" in done.out
    assert done.out.endswith("2 compared: 1 different, 1 the same\n")
    assert run("diff", before, after, "--summary").out.count("message.content") == 1
    same = run("diff", before, before)
    assert (same.status, same.out) == (0, "2 compared: 0 different, 2 the same\n")


def test_answers_that_only_one_of_two_outputs_has_cannot_be_compared(run: Run, tmp_path: Path) -> None:
    before = written_by_normalize(run, tmp_path / "one", "log.jsonl", "Hi")
    after = written_by_normalize(run, tmp_path / "two", "log.jsonl", "Hi", "Bye")
    written_by_normalize(run, tmp_path / "two", "other.jsonl", "Hi")
    done = run("diff", before, after)
    assert (done.status, done.out) == (1, "1 compared: 0 different, 1 the same; 2 could not be compared\n")
    (after / "log.jsonl").write_bytes((after / "log.jsonl").read_bytes() + b"{\n")
    assert run("diff", before, after).out.endswith("3 could not be compared\n")


def test_outputs_with_an_answer_a_file_are_compared_by_their_names(run: Run, tmp_path: Path) -> None:
    for name in ("one", "two"):
        for case in ("a", "b"):
            body = orjson.dumps(in_words(case if case == "a" else name)["body"])
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / name / f"{case}.response.json").write_bytes(body)
        run("normalize", tmp_path / name, "--provider", "openai", "--output", tmp_path / f"{name}-output")
    done = run("diff", tmp_path / "one-output", tmp_path / "two-output")
    assert done.status == 1
    assert "b.json: message.content" in done.out
    assert done.out.endswith("2 compared: 1 different, 1 the same\n")


def test_folders_with_nothing_in_common_are_read_as_logs(run: Run, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder, names in ((one, "ab"), (two, "cd")):
        for name in names:
            written_by_normalize(run, folder, f"{name}.jsonl", "Hi")
    done = run("diff", tmp_path / "one-output", tmp_path / "two-output")
    assert (done.status, done.out) == (0, "4 compared: 0 different, 4 the same\n")
    assert run("diff", one, two).status == 2
