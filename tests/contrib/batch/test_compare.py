"""``crosswalk diff`` over what a batch stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest

from crosswalk import FinishReason, registry
from crosswalk_batch import command, compare, inputs
from upgrading import Wren

from .conftest import Done, lines

Run = Callable[..., Done]


@pytest.fixture
def wren(monkeypatch: pytest.MonkeyPatch) -> Iterator[Wren]:
    """The plugin, in this process: so everything is compared in it."""

    @contextmanager
    def here(perform: Callable[[Any], Any], *_: Any) -> Iterator[Any]:
        yield partial(map, perform)

    for module in (compare, command):
        monkeypatch.setattr(module, "processes", here)
    monkeypatch.setattr(inputs, "MIB", 150)  # parts of two records
    plugin = Wren()
    plugin.words = {"end": FinishReason.STOP}
    registry.register(plugin, "wren")
    yield plugin
    registry.unregister(plugin, "wren")


def log(*why: str) -> None:
    records = [
        {"id": f"r{n}", "provider": "wren", "body": {"say": "Hi", "why": each, "cached": n}}
        for n, each in enumerate(why)
    ]
    Path("log.jsonl").write_bytes(lines(*records))


@pytest.mark.untraced
def test_an_upgrade_is_seen_accepted_and_seen_again(run: Run, wren: Wren) -> None:
    log("end", "end", "full", "end", "end", "end", "end")
    arguments = ["--part-size", 1, "--jobs", 1]
    run("batch", "log.jsonl", "--output", "old", *arguments)
    assert len(list(Path("old/responses").iterdir())) > 2
    same = run("diff", "--stored", "old")
    assert same == (0, "7 compared: 0 different, 7 the same\n", "")
    assert run("diff", "log.jsonl", "--stored", "old", "--provider", "wren") == same

    wren.reads_cache = True
    wren.words = {**wren.words, "full": FinishReason.LENGTH}
    done = run("diff", "--stored", "old", "--json", "--html", "page.html", "--write-accepted", "accepted")
    assert done.status == 0
    counts = orjson.loads(done.out)
    changes = counts.pop("changes")
    assert counts == {"compared": 7, "different": 7, "accepted": 0, "same": 0, "not_compared": 0}
    assert [
        (one["path"], one["before"], one["after"], one["captures"], one["examples"]) for one in changes
    ] == [
        (
            "usage.cached_tokens",
            "absent",
            "number",
            6,
            ["log.jsonl:1 (r0)", "log.jsonl:2 (r1)", "log.jsonl:4 (r3)"],
        ),
        ("error", "UnknownFinishReasonError", "absent", 1, ["log.jsonl:3 (r2)"]),
    ]
    assert "log.jsonl:3 (r2)" in Path("page.html").read_text()
    done = run("diff", "--stored", "old", "--accept", "accepted")
    assert done.status == 0
    assert done.out.endswith("7 compared: 0 different, 7 as accepted, 0 the same\n")

    run("batch", "log.jsonl", "--output", "new", *arguments)
    by_folder = run("diff", "new", "--stored", "old", "--summary")
    assert (by_folder.status, by_folder.out) == (1, run("diff", "--stored", "old", "--summary").out)
    assert run("diff", "old", "new", "--summary") == by_folder
    assert run("diff", "old", "old").status == 0
    wren.words = {}
    assert run("diff", "--stored", "new", "--accept", "accepted").status == 1


def test_answers_of_other_inputs_are_not_compared(run: Run, wren: Wren) -> None:
    log("end")
    run("batch", "log.jsonl", "--output", "old")
    log("full", "end")
    done = run("diff", "log.jsonl", "--stored", "old")
    assert (done.status, "other inputs, or they have changed since" in done.err) == (2, True)
    run("batch", "log.jsonl", "--output", "new")
    done = run("diff", "new", "--stored", "old")
    assert (done.status, "in other parts" in done.err) == (2, True)
    done = run("diff", "--stored", "old")
    assert (done.status, "log.jsonl: it is another file now; name the one" in done.err) == (2, True)


@pytest.mark.untraced
def test_inputs_under_other_names_are_the_same_inputs(run: Run, wren: Wren) -> None:
    """Moved, in two parts, with a reject, and in folders by day."""
    how = ["--part-size", 1, "--jobs", 1, "--partition-by", "day"]
    log("end", "full", "end", "end")
    Path("b.jsonl").write_bytes(Path("log.jsonl").read_bytes().replace(b"Hi", b"Yo"))
    run("batch", "b.jsonl", "log.jsonl", "--output", "old", *how)
    Path("moved").mkdir()
    Path("log.jsonl").rename("moved/a.jsonl")
    Path("b.jsonl").rename("moved/z.jsonl")
    wren.reads_cache = True
    run("batch", "moved/z.jsonl", "moved/a.jsonl", "--output", "new", *how)
    done = run("diff", "old", "new", "--json")
    counts = orjson.loads(done.out)
    assert (counts["compared"], counts["different"], counts["same"]) == (8, 6, 2)
    assert "b.jsonl:1 (r0)" in counts["changes"][0]["examples"]
    assert done.out == run("diff", "moved/z.jsonl", "moved/a.jsonl", "--stored", "old", "--json").out
    run("batch", "moved/z.jsonl", "moved/a.jsonl", "--output", "again", *how)
    assert run("diff", "new", "again").out == "8 compared: 0 different, 8 the same\n"
    Path("moved").rename("elsewhere")
    run("batch", "elsewhere/z.jsonl", "elsewhere/a.jsonl", "--output", "far", *how)
    assert run("diff", "new", "far").out == "8 compared: 0 different, 8 the same\n"


def test_an_input_that_cannot_be_read_is_not_compared(run: Run, wren: Wren) -> None:
    log("end")
    Path("a.har").write_bytes(b"{")
    run("batch", "log.jsonl", "a.har", "--output", "old")
    done = run("diff", "--stored", "old")
    assert (done.status, done.err) == (1, "a.har: not a HAR file\n")
    assert done.out == "1 compared: 0 different, 1 the same; 1 could not be compared\n"


def test_of_a_job_that_was_stopped_the_finished_parts_are_compared(run: Run, wren: Wren) -> None:
    log(*["end"] * 6)
    run("batch", "log.jsonl", "--output", "old", "--part-size", 1, "--jobs", 1)
    first, *others = sorted(Path("old/crosswalk-batch").iterdir())
    for receipt in others:
        receipt.unlink()
    records = orjson.loads(first.read_bytes())["records"]
    assert run("diff", "--stored", "old").out == f"{records} compared: 0 different, {records} the same\n"


@pytest.mark.parametrize("data", [b"", b"{oops\n", b"[]\n", b"{}\n"])
def test_a_receipt_that_is_none_is_told(run: Run, wren: Wren, data: bytes) -> None:
    Path("old/crosswalk-batch").mkdir(parents=True)
    assert run("diff", "--stored", "old").status == 2  # nothing to compare
    Path("old/crosswalk-batch/part-000000.json").write_bytes(data)
    done = run("diff", "--stored", "old")
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert "old/crosswalk-batch/part-000000.json: it cannot be read" in done.err
