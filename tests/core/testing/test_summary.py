"""The lines at the end of a pytest run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from crosswalk.cli.stored import read_accepted
from crosswalk.plugin.registry import Registry
from crosswalk.plugins import FinishReason, MappingState, UsageInfo, hookimpl
from crosswalk.testing import Capture, normalized
from crosswalk.testing.changes import changes_between
from crosswalk.testing.plugin import CHANGED, UNPROVEN, UNSTATED, Summary, written_changes
from planted import named
from planted.recordings import NAMED


def report(provider: str, when: str = "call", name: str = UNSTATED) -> Any:
    return SimpleNamespace(when=when, user_properties=[(name, provider)])


def lines_of(*reports: Any, update: Path | None = None) -> list[str]:
    summary, lines = Summary(), []
    for one in reports:
        summary.pytest_runtest_logreport(one)
    terminal: Any = SimpleNamespace(write_line=lines.append)
    config: Any = SimpleNamespace(getoption=lambda *_: update is not None, rootpath=update)
    summary.pytest_terminal_summary(terminal, config)
    return lines


def test_captures_without_a_statement_are_counted() -> None:
    assert lines_of(
        report("b"), report("a"), report("b"), report("b", "teardown"), report("c", name="other")
    ) == [
        "crosswalk: a: 1 capture has no statement (CASE.says.json)",
        "crosswalk: b: 2 captures have no statement (CASE.says.json)",
    ]


def test_what_no_capture_shows_is_told_once() -> None:
    text = "kelp: refusal, the finish word 'eos'"
    assert lines_of(report(text, name=UNPROVEN), report(text, name=UNPROVEN)) == [
        "crosswalk: not recorded of kelp: refusal, the finish word 'eos'"
    ]


def test_nothing_is_written_where_each_has_one() -> None:
    assert lines_of() == []


def snapshot(plugin: Any, capture: Capture) -> Any:
    registry = Registry(installed=[], environ={})
    registry.register(plugin, "named")
    return normalized(registry.mapper("named"), capture)


class Newer(named.Named):
    """A mapping with three changes: a finish word, the meaning of cached tokens, a field that has moved."""

    @hookimpl
    def map_finish_reason(self, reason: str) -> FinishReason | None:
        return FinishReason.STOP if reason == "shield" else named.WORDS.get(reason)

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        usage = super().map_usage(event, state)
        return usage and UsageInfo(usage.prompt_tokens + 6, usage.completion_tokens, cached_tokens=6)

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        return {"place": {"zone": event.pop("zone")}, **event} if "zone" in event else event


def summary_of(pairs: list[tuple[str, Any, Any]], update: Path | None = None) -> list[str]:
    changes = [(case, changes_between(before, after)) for case, before, after in pairs]
    reports = (report(written_changes("named", *one), name=CHANGED) for one in changes if one[1])
    return lines_of(*reports, update=update)


def test_an_update_lists_what_was_accepted(tmp_path: Path) -> None:
    """In the format that ``crosswalk diff --accept`` takes. Without a change no list is written."""
    (capture, *_) = [recording.capture for recording in NAMED]
    before = snapshot(named.plugin, capture)
    assert summary_of([("talk", before, before)], tmp_path) == []
    assert not list(tmp_path.iterdir())
    lines = summary_of([("talk", before, snapshot(Newer(), capture))], tmp_path)
    file = tmp_path / "crosswalk-changes.jsonl"
    assert lines[-1] == f"crosswalk: accepted, and listed in {file}; crosswalk diff --accept takes it"
    accepted = read_accepted(str(file))
    assert ("named", "metadata.extensions.zone", "moved", "metadata.extensions.place.zone") in accepted
    assert {path for _, path, *_ in accepted} >= {"usage.prompt_tokens"}
    assert orjson.loads(file.read_bytes().splitlines()[0])["examples"] == ["talk"]


def test_an_upgrade_is_told_by_its_kinds_of_changes() -> None:
    captures = [recording.capture for recording in NAMED]
    lines = summary_of([(c.case, snapshot(named.plugin, c), snapshot(Newer(), c)) for c in captures])
    assert len(lines) <= 25
    assert lines[0] == "crosswalk: 11 snapshots changed"
    for line in (
        "metadata.extensions.zone: moved -> metadata.extensions.place.zone in 11 captures of named",
        "usage.prompt_tokens: 9 -> 15 in 11 captures of named",
        'finish_reason: "content_filter" -> "stop" in 2 captures of named',
    ):
        assert f"crosswalk: {line}" in lines


ANSWER = snapshot(named.plugin, NAMED[0].capture)
FAILURE = {"error": "WireTypeError", "message": "text: expected string, got number"}


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        (ANSWER, FAILURE, "error: absent -> WireTypeError in 1 capture of named"),
        (FAILURE, ANSWER, "error: WireTypeError -> absent in 1 capture of named"),
        (FAILURE, {**FAILURE, "message": "other"}, "error: WireTypeError -> another WireTypeError in 1 capture of named"),
        (ANSWER, {**ANSWER, "deltas": ["text: x"]}, "deltas: 4 items -> 1 item in 1 capture of named"),
        ({**FAILURE, "partial": ANSWER["response"]}, {**FAILURE, "partial": {**ANSWER["response"], "model": "m"}},
         'model: "reed-1" -> "m" in 1 capture of named'),
    ],
)  # fmt: skip
def test_errors_and_deltas_are_changes(before: Any, after: Any, line: str) -> None:
    lines = summary_of([("case", before, after)])
    assert lines[:2] == ["crosswalk: 1 snapshot changed", f"crosswalk: {line}"]


def test_the_same_snapshot_has_no_change() -> None:
    assert summary_of([("case", ANSWER, ANSWER)]) == []


def test_of_very_many_kinds_the_most_frequent_are_told() -> None:
    after = {**ANSWER, "response": {**ANSWER["response"], "metadata": {
        **ANSWER["response"]["metadata"], "extensions": {f"key_{number}": number for number in range(30)}
    }}}  # fmt: skip
    lines = summary_of([("case", {**ANSWER, "response": {**ANSWER["response"], "metadata": {
        **ANSWER["response"]["metadata"], "extensions": {"zone": "N"}}}}, after)])  # fmt: skip
    assert len(lines) == 22
    assert lines[-1] == "crosswalk: and 11 more kinds"
