from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from crosswalk.cli import ask, demo
from crosswalk.plugin.registry import registry
from crosswalk.testing import check_capture, load_captures

from .conftest import ROOT, Done, Terminal

Run = Callable[..., Done]


def test_it_shows_one_answer_of_each_server_without_a_network(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):  # nothing goes through it
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    monkeypatch.setenv("CROSSWALK_DEFAULT_PROVIDER", "anthropic")
    done = run("demo")
    assert done.status == 0
    assert done.out.startswith("The answer is forty-two!\n\n\nThe answer is forty-two!\n")
    for who in ("Model: tiny-go  |  Provider: ollama", "Model: tiny  |  Provider: vllm"):
        assert who in done.err
    assert len(re.findall(r"^Speed: .* Latency: .* TTFT: ", done.err, re.MULTILINE)) == 2
    assert "> crosswalk ask --provider ollama --model tiny-go 'Please answer. mode:think.'" in done.err


@pytest.mark.untraced
def test_it_shows_one_form_nothing_lost_and_cut_streams_refused(run: Run) -> None:
    done = run("demo")
    assert [line.split() for line in done.out.splitlines()[-3:]] == [
        ["finish_reason", "stop", "done_reason", "choices[0].finish_reason"],
        ["usage.prompt_tokens", "29", "prompt_eval_count", "usage.prompt_tokens"],
        ["usage.completion_tokens", "11", "eval_count", "usage.completion_tokens"],
    ]
    assert "ollama: 56 fields, 0 lost\nvllm: 103 fields, 0 lost\n" in done.err
    assert done.err.count("IncompleteStreamError, which keeps what came: ") == 2


def test_where_somebody_watches_it_takes_its_time(
    run: Run, monkeypatch: pytest.MonkeyPatch, terminal: Callable[[str], Terminal]
) -> None:
    monkeypatch.setattr(demo, "_PACE", 0.001)
    shown, said = terminal("stdout"), terminal("stderr")
    assert run("demo").status == 0
    assert shown.text().count("The answer is forty-two!") == 2
    assert said.text().count("─ Response ─") == 2


def test_ctrl_c_ends_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def press(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ask._Channel, "write", press)
    done = run("demo")
    assert done.status == 130
    assert "--provider vllm" not in done.err


@pytest.mark.sweep
def test_its_recordings_are_captures_of_this_project() -> None:
    recorded = load_captures(demo._RECORDINGS)
    assert [capture.server for capture in recorded] == ["ollama", "vllm"]
    originals = {file.read_bytes() for file in (ROOT / "tests/captures").glob("*/*think*_stream.response.*")}
    for capture in recorded:
        assert capture.body in originals
        assert check_capture(registry.mapper(str(capture.server)), capture, sample=10) == []


def test_what_fails_ends_the_show(run: Callable[..., Done], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "report", lambda *_, **__: 1)
    assert run("demo").status == 1
