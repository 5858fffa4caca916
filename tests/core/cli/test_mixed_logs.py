"""A log of many servers: each line gives the same as alone, whatever comes before it."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from crosswalk import Provenance
from crosswalk.testing import load_captures
from pages import ROOT

from .conftest import Done, line

Run = Callable[..., Done]
WHEN = "2026-01-01T00:00:00Z"
CHAT = {
    "id": "chatcmpl-B",
    "object": "chat.completion",
    "created": 1795168362,
    "model": "gpt-4o",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
}


def exchanges() -> list[bytes]:
    """All captures that are text, as lines of a log that does not name their provider."""
    found = []
    for folder in sorted((ROOT / "tests/captures").iterdir()):
        for capture in load_captures(folder) if folder.is_dir() else ():
            try:
                body = capture.body.decode()
            except UnicodeDecodeError:
                continue
            found.append(orjson.dumps({"status": capture.status, "body": body}))
    return found


def outcomes(done: Done) -> tuple[list[str], list[str]]:
    """The JSON of the answers, and why the others are none, without their places."""
    causes = [one.partition(": ")[2] for one in done.err.splitlines() if "log.jsonl:" in one]
    return done.out.splitlines(), causes


def check_lines_in_any_order(run: Run, tmp_path: Path, count: int) -> None:
    lines, file = exchanges(), tmp_path / "log.jsonl"
    order = random.Random(36).choices(range(len(lines)), k=count)
    alone = {}
    for number in {*order}:
        file.write_bytes(lines[number] + b"\n")
        alone[number] = outcomes(run("normalize", file, "--records", "--created", WHEN))
    file.write_bytes(b"".join(lines[number] + b"\n" for number in order))
    answers, causes = outcomes(run("normalize", file, "--records", "--created", WHEN))
    assert answers == [answer for number in order for answer in alone[number][0]]
    assert causes == [cause for number in order for cause in alone[number][1]]


@pytest.mark.untraced
def test_each_line_gives_what_it_gives_alone(run: Run, tmp_path: Path) -> None:
    check_lines_in_any_order(run, tmp_path, 100)


@pytest.mark.sweep
def test_each_of_many_lines_gives_what_it_gives_alone(run: Run, tmp_path: Path) -> None:
    check_lines_in_any_order(run, tmp_path, 20_000)


@pytest.mark.parametrize("turned", [False, True])
def test_the_lines_before_an_answer_say_nothing_of_it(run: Run, tmp_path: Path, turned: bool) -> None:
    """And the end of the run says how many answers fit several providers."""
    marked = {**CHAT, "system_fingerprint": "vllm-0.33.0-tp2-1a2b3c4d"}
    records = [line("of Ollama"), CHAT, marked, CHAT]
    file = tmp_path / "log.jsonl"
    file.write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in (records[::-1] if turned else records)))
    done = run("normalize", file)
    found = [orjson.loads(one)["metadata"] for one in done.out.splitlines()]
    providers = [(one["provider_id"], one.get("provenance", {}).get("metadata.provider_id")) for one in found]
    openai = ("openai", Provenance.DERIVED)
    expected = [("ollama", None), openai, ("vllm", None), openai]
    assert providers == (expected[::-1] if turned else expected)
    assert done.err == "2 answers of several possible providers: 2 as openai; --provider names another\n"
    stored = run("normalize", file, "--output", tmp_path / "out")
    assert stored.err == done.err
    assert run("normalize", file, "--provider", "vllm", "--unknown", "keep").err.count("possible") == 0
