"""``crosswalk convert``: what it writes, what it says about losses, how it ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from converting import FORMS, accept_stream
from crosswalk import normalize
from crosswalk.convert import WireForm, convert

from .conftest import ROOT, Done, line

Run = Callable[..., Done]
Captures = Callable[..., Path]
THINKING = ROOT / "tests/captures/anthropic/made_thinking_tools.response.json"
THINKING_STREAM = ROOT / "tests/captures/anthropic/made_thinking_tools_stream.response.sse"
CUT = ROOT / "tests/captures/anthropic/made_cut_stream.response.sse"


def lines(text: str) -> list[Any]:
    return [orjson.loads(line) for line in text.splitlines()]


def test_the_help_names_every_form(run: Run) -> None:
    said = " ".join(run("convert", "--help").out.split())
    assert f"{', '.join([*WireForm][:-1])} or {[*WireForm][-1]}" in said


@pytest.mark.parametrize("form", WireForm)
def test_an_answer_is_written_in_the_form_that_was_asked_for(run: Run, form: WireForm) -> None:
    done = run("convert", "--to", form.value, "--losses", "report", THINKING)
    assert done.status == 0
    (body,) = lines(done.out)
    assert normalize(body, form.provider).text == normalize(THINKING.read_bytes(), "anthropic").text
    assert done.err.startswith(f"{THINKING}: {form.label}: ")
    assert ("has no place" in done.err) == (form is not WireForm.ANTHROPIC)


@pytest.mark.parametrize("form", WireForm)
def test_a_stream_is_written_as_events(run: Run, form: WireForm) -> None:
    done = run("convert", "--to", form.value, "--losses", "report", "--stream", THINKING_STREAM)
    assert done.status == 0
    if form in FORMS:
        accept_stream(form, done.out.encode())
    assert ("has no place" in done.err) == (form is not WireForm.ANTHROPIC)


def test_many_answers_are_a_line_each_and_what_fails_is_reported(run: Run, captures: Captures) -> None:
    captures("a", line("one"))
    captures("b", {"error": "model 'x' not found"}, status=404)
    folder = captures("c", {"no": "answer"}).parent
    done = run("convert", "--to", "openai-chat", "--provider", "ollama", folder)
    one, error = lines(done.out)
    assert one["choices"][0]["message"]["content"] == "one"
    assert error["error"]["code"] == "model_not_found"
    assert done.status == 1
    assert "c.response.json: " in done.err


def test_the_report_goes_to_a_file(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "report.jsonl"
    done = run("convert", "--to", "openai-chat", "--report", file, THINKING_STREAM, THINKING)
    assert (done.status, done.err) == (0, "")
    first, second = lines(file.read_text())
    assert (first["place"], first["form"]) == (str(THINKING_STREAM), "openai-chat")
    loss = {"path": "segments[0].metadata.signature", "reason": "dropped"}
    assert {**loss, "rule": "reasoning", "grade": "changed"} in first["losses"]
    assert second["place"] == str(THINKING)


def test_a_dangerous_loss_is_an_error_and_a_carried_one_is_not(run: Run) -> None:
    refused = run("convert", "--to", "openai-completions", THINKING)
    assert (refused.status, "DangerousLossError" in refused.err) == (1, True)
    done = run("convert", "--to", "openai-completions", "--carry", THINKING)
    assert done.status == 0
    (body,) = lines(done.out)
    back = convert(normalize(orjson.dumps(body), "openai"), "anthropic")
    assert orjson.loads(back.value) == orjson.loads(THINKING.read_bytes())


def test_the_report_alone_goes_to_standard_output(run: Run) -> None:
    done = run("convert", "--to", "openai-chat", "--report", "-", "--stream", THINKING_STREAM)
    (report,) = lines(done.out)
    assert "segments[0].metadata.signature" in [loss["path"] for loss in report["losses"]]
    assert done.err == ""


def test_a_record_is_called_by_its_id(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    file.write_bytes(orjson.dumps({"body": THINKING.read_text(), "provider": "anthropic", "id": "r7"}))
    done = run("convert", "--to", "openai-chat", file)
    assert done.err.startswith(f"{file}:1 (r7): Chat Completions: ")


def test_a_fault_of_the_input_is_a_failure(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    file.write_text("no JSON\n")
    done = run("convert", "--to", "openai-chat", file)
    assert (done.status, done.out) == (1, "")
    assert "not JSON" in done.err


def test_a_folder_without_answers_is_a_failure(run: Run, tmp_path: Path) -> None:
    done = run("convert", "--to", "openai-chat", tmp_path)
    assert (done.status, done.out) == (2, "")
    assert str(tmp_path) in done.err


def test_a_stream_that_was_cut_is_converted_as_far_as_it_goes(run: Run) -> None:
    done = run("convert", "--to", "openai-chat", "--stream", CUT)
    assert done.status == 1
    assert "chat.completion.chunk" in done.out
    assert "[DONE]" not in done.out
    assert "IncompleteStreamError" in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--to", "pigeon", THINKING], "invalid choice: 'pigeon'"),
        ([THINKING], "--to"),
        (["--to", "anthropic", "--stream", THINKING, THINKING_STREAM], "name one answer"),
        (["--to", "anthropic", "--stream", THINKING.parent], "name one answer"),
        (["--to", "anthropic", "--provider", "nobody", THINKING], "nobody"),
        (["--to", "anthropic", "nowhere.response.json"], "nowhere.response.json"),
        (["--to", "anthropic", "--report", "/nowhere/r.jsonl", THINKING], "/nowhere/r.jsonl: "),
    ],
)
def test_a_wrong_command_line_tries_nothing(run: Run, arguments: list[Any], said: str) -> None:
    done = run("convert", *arguments)
    assert (done.status, done.out) == (2, "")
    assert said in done.err


def test_a_provider_that_was_worked_out_is_no_loss(run: Run, tmp_path: Path) -> None:
    """``normalize`` reports that several would read the answer the same way. No form has a place for it."""
    file = tmp_path / "a.json"
    file.write_text(
        '{"choices": [{"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}]}'
    )
    done = run("convert", "--to", "anthropic", file)
    assert done.status == 0
    assert "provenance['metadata.provider_id']" not in done.err
