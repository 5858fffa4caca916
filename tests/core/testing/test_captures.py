"""Captures: recorded exchanges as files."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import attrs
import pytest

import crosswalk.testing
from crosswalk import ConfigurationError
from crosswalk.plugin.registry import Registry
from crosswalk.plugins import MappingState, hookimpl
from crosswalk.testing import Capture, Problem, by_cause, check_capture, load_captures, pairs
from crosswalk.testing.captures import reframer
from crosswalk.testing.perturbation import MISSING, at, changed_paths, leaves, show_path
from crosswalk.testing.problems import SHARED_STATE, KnownException
from planted.mistakes import MISTAKES
from planted.named import Named
from planted.recordings import NAMED, ROWS


def test_the_kit_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "syrupy.extensions.json", None)
    monkeypatch.delitem(sys.modules, "crosswalk.testing.conformance")
    with pytest.raises(ImportError, match=r"pip install 'crosswalk-llm\[testing\]'"):
        import_module("crosswalk.testing.conformance")


def test_a_folder_without_a_manifest(tmp_path: Path) -> None:
    """The name tells what it is: its form, its pair. Requests and notes are no captures."""
    for name in (
        "a.response.json",
        "a_stream.response.sse",
        "b.ndjson",
        "c.txt",
        "a.request.json",
        "note.md",
    ):
        (tmp_path / name).write_bytes(b'{"x": 1}')
    found = load_captures(tmp_path)
    assert [(c.case, c.stream, c.pair, c.status) for c in found] == [
        ("a", False, "a", 200),
        ("a_stream", True, "a", 200),
        ("b", True, "b", 200),
        ("c", False, "c", 200),
    ]
    assert [(whole.case, streamed.case) for whole, streamed in pairs(found)] == [("a", "a_stream")]
    assert [str(c) for c in found] == ["a", "a_stream", "b", "c"]


def test_a_manifest_in_the_folder_or_above_it(tmp_path: Path) -> None:
    """It says what the name does not. Answers of other paths can be left out."""
    folder = tmp_path / "server"
    folder.mkdir()
    (folder / "x.response.json").write_bytes(b'{"error": "no"}')
    (folder / "y.response.json").write_bytes(b"{}")
    (tmp_path / "MANIFEST.jsonl").write_text(
        '{"file": "server/x.response.json", "status": 404, "path": "/chat", "pair": "p", "complete": false, '
        '"request": "server/x.json"}\n'
        '{"file": "server/y.response.json", "path": "/models"}\n'
    )
    (found,) = load_captures(folder, paths=["/chat"])
    assert (found.status, found.pair, found.complete, found.path) == (404, "p", False, "/chat")
    assert found.events() == [{"error": "no"}]


def test_a_note_beside_a_capture(tmp_path: Path) -> None:
    """CASE.meta.json is read where no manifest names the file."""
    (tmp_path / "x.response.txt").write_bytes(b"gone")
    (tmp_path / "x.meta.json").write_bytes(b'{"status": 410, "stream": false}')
    (found,) = load_captures(tmp_path)
    assert (found.status, found.stream, found.body) == (410, False, b"gone")


def test_what_cannot_be_loaded(tmp_path: Path) -> None:
    """A missing folder and a broken manifest are named."""
    with pytest.raises(ConfigurationError, match="no folder of captures"):
        load_captures(tmp_path / "none")
    (tmp_path / "MANIFEST.jsonl").write_text("[]\n")
    with pytest.raises(ConfigurationError, match="MANIFEST.jsonl:1"):
        load_captures(tmp_path)


def test_the_kit_is_loaded_when_it_is_asked_for() -> None:
    """It needs pytest and syrupy. The checks do not."""
    assert crosswalk.testing.ProviderConformance.__name__ == "ProviderConformance"
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = crosswalk.testing.Nothing


def test_leaves_and_paths() -> None:
    """Every scalar is a leaf. Paths are shown as people write them."""
    events = [{"a": [{"b": 1}, None], "c": {}, "d": []}]
    assert [str(leaf) for leaf in leaves(events)] == ["event 1, a[0].b", "event 1, a[1]"]
    assert show_path(("a", 0, "b"), items=False) == "a[].b"
    before, after = {"a": [1, {"b": True}], "c": 1}, {"a": [1, {"b": 1}, 3]}
    assert [show_path(path) for path in changed_paths(before, after)] == ["a[1].b", "a[2]", "c"]


@pytest.mark.parametrize(
    ("entry", "cause"),
    [
        ('{"file": "a.response.json", "status": "200"}', '"status" is not an HTTP status from 100 to 999'),
        ('{"file": "a.response.json", "status": [1]}', '"status" is not an HTTP status'),
        ('{"file": "a.response.json", "status": 99999}', '"status" is not an HTTP status'),
        ('{"file": "a.response.json", "status": -1}', '"status" is not an HTTP status'),
        ('{"file": "a.response.json", "status": true}', '"status" is not an HTTP status'),
        ('{"file": "a.response.json", "status": 200.5}', '"status" is not an HTTP status'),
        ('{"file": "a.response.json", "pair": ["x"]}', '"pair" is not a string'),
        ('{"file": "a.response.json", "path": 7}', '"path" is not a string'),
        ('{"file": "a.response.json", "server": {}}', '"server" is not a string'),
        ('{"file": "a.response.json", "stream": "yes"}', '"stream" is not true or false'),
        ('{"file": "a.response.json", "complete": 0}', '"complete" is not true or false'),
        ('{"file": "a.response.json", "request": "\\u0000"}', '"request" has a NUL character in it'),
        ('{"file": "\\u0000a"}', '"file" has a NUL character in it'),
        ('{"file": 7}', '"file" is not a string'),
        ('{"file": null}', 'not a JSON object with "file" in it'),
        ("{}", 'not a JSON object with "file" in it'),
        ("7", 'not a JSON object with "file" in it'),
        ("{", 'not a JSON object with "file" in it'),
    ],
)
def test_an_odd_manifest_is_named_with_its_line(tmp_path: Path, entry: str, cause: str) -> None:
    """It may have come with other people's captures: whatever it holds is a typed error, with file and line."""
    (tmp_path / "a.response.json").write_bytes(b"{}")
    (tmp_path / "MANIFEST.jsonl").write_text(f'{{"file": "b.json"}}\n{entry}\n')
    with pytest.raises(ConfigurationError) as caught:
        load_captures(tmp_path)
    assert f"MANIFEST.jsonl:2: {cause}" in str(caught.value)


@pytest.mark.parametrize("note", ["[]", '{"status": "200"}', "no"])
def test_an_odd_note_beside_a_capture_is_named(tmp_path: Path, note: str) -> None:
    (tmp_path / "x.response.json").write_bytes(b"{}")
    (tmp_path / "x.meta.json").write_text(note)
    with pytest.raises(ConfigurationError, match=r"x\.meta\.json: "):
        load_captures(tmp_path)


def test_null_in_a_manifest_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "a_stream.response.sse").write_bytes(b"data: {}\n\n")
    names = ("status", "pair", "stream", "complete", "path", "server", "request")
    nothing = ", ".join(f'"{name}": null' for name in names)
    (tmp_path / "MANIFEST.jsonl").write_text(f'{{"file": "a_stream.response.sse", {nothing}}}\n')
    (found,) = load_captures(tmp_path)
    assert (found.status, found.pair, found.stream, found.complete) == (200, "a", True, True)


def test_what_is_changed_is_written_as_it_came() -> None:
    """In the capture's framing. Unchanged parts keep their bytes, and integers keep their digits."""
    body = b'{"a": 1}\n{"b":2}\n'
    capture = Capture("x", Path("x.ndjson"), body, stream=True)
    frames, events = capture.frames(), capture.events()
    assert reframer(capture, frames, events)([events[0], {"b": 10**30}]) == b'{"a": 1}\n{"b":%d}\n' % 10**30
    assert reframer(capture, frames, events, as_sse=True)(events[:1]) == b'data: {"a": 1}\n\n'
    whole = Capture("x", Path("x.json"), b'{\n "a": 1\n}')
    frames, events = whole.frames(), whole.events()
    assert reframer(whole, frames, events)(events) == b'{"a":1}'
    assert reframer(whole, frames, events)([*events, *events]) == b'{"a":1}\n{"a":1}\n'
    named = Capture("x", Path("x.sse"), b'event: e\ndata: {"a":1}\n\n', stream=True)
    assert reframer(named, named.frames(), named.events())(named.events()) == named.body


def test_json_values_are_compared_with_their_types() -> None:
    before, after = {"a": [1, {"b": 0}], "c": [True]}, {"a": [1.0, {"b": False}], "c": [True]}
    assert [show_path(path) for path in changed_paths(before, after)] == ["a[0]", "a[1].b"]
    assert at(before, ("a", 1, "b")) == 0
    assert {at(before, path) for path in (("a", 5), ("x",), ("c", "d"), ("a", 0, "b"))} == {MISSING}


def test_an_event_that_is_a_scalar_has_no_leaf() -> None:
    """It has no key to change."""
    assert list(leaves([7, "x", None])) == []


def problem(path: str, message: str = "lost", *, case: str = "a", check: str = "nothing lost") -> Problem:
    return Problem("P1", f"{case}, event 1, {path}", message, check=check, path=path, case=case)


def test_one_cause_is_one_problem() -> None:
    """The leaves of one object, and what one check says without a path. The first one names the other places."""
    leaves = [problem(f"error.{name}") for name in ("code", "code", "type", "param", "a", "b", "c", "d")]
    cuts = [
        Problem("P4", f"a, cut after event {number}", "looks complete", "never silently wrong", "", "a")
        for number in (1, 2)
    ]
    elsewhere = [problem("error.code", "not read", check="output shows"), problem("error"), problem("text")]
    found = by_cause([*leaves, *cuts, *elsewhere])
    assert [one.line for one in found] == [
        "P1 a, event 1, error.code: lost; also at error.type, error.param, error.a, error.b, error.c and 2 more; "
        "also seen by output shows [nothing lost: error.code]",
        "P4 a, cut after event 1: looks complete; also at cut after event 2 [never silently wrong: a]",
        "P1 a, event 1, text: lost [nothing lost: text]",
    ]


@pytest.mark.parametrize(
    ("mistake", "line"),
    [
        ("rows: thoughts are the text", 'P4 talk, text: reasoning became text: stated as "Hello There", and read as "Let me See. Hello There"'),
        ("rows: prompt and completion are swapped", "P4 talk, usage.prompt_tokens: prompt tokens became completion tokens: stated as 9, and read as 5"),
        ("rows: the zone of a time is thrown away", 'P4 talk, created: time misread: stated as "2026-01-01T09:45:00Z", and read as 2026-01-01T11:45:00+00:00'),
        ("rows: a full answer is complete", 'P4 long, finish: length became stop: stated as "length", and read as "stop"'),
        ("rows: the id is cut", "P4 talk, event 1, rows[0][1]: id changed: another text in its place is not passed on unchanged"),
        ("rows: log probabilities are rounded", "P4 talk, logprobs: log probabilities changed: the log probability -0.12 is not a number of the payload"),
    ],
)  # fmt: skip
def test_one_mistake_is_one_problem_of_all_captures_and_checks(mistake: str, line: str) -> None:
    (plugin,) = (one.plugin() for one in MISTAKES if str(one) == mistake)
    registry = Registry(installed=[], environ={})
    registry.register(plugin, "rows")
    captures = [attrs.evolve(recording.capture, says=recording.says) for recording in ROWS]
    checks = [
        "as stated",
        "kinds are told apart",
        "text as it was sent",
        "digits kept",
        "parts within wholes",
        "nothing filled in",
    ]
    found = [
        problem
        for one in captures
        for problem in check_capture(registry.mapper("rows"), one, checks=checks, others=captures)
    ]
    (one,) = by_cause(found)
    assert str(one).partition("; ")[0] == line


def at_leaf(path: str, check: str, *fields: str, kind: str = "") -> Problem:
    return attrs.evolve(problem(path, check, check=check), fields=fields, kind=kind)


def test_two_mistakes_of_one_part_are_two_problems() -> None:
    """Thoughts became text, and texts are changed on their way: each at its own leaf."""
    law = "text as it was sent"
    became = at_leaf("parts[].thought", law, "text", kind="reasoning became text")
    changed = at_leaf("parts[].text", law, "message.content")
    again = at_leaf("delta.text", "nothing lost", "text")
    assert by_cause([became, changed, again]) == [
        became,
        attrs.evolve(changed, kind="text changed", others=(again,)),
    ]


def test_a_fact_of_a_choice_joins_the_leaf_of_its_number() -> None:
    mixed = at_leaf("n", "choices are told apart", "alternatives", kind="choices are mixed")
    stated = Problem("P4", "a, choices[0].text", "no", "as stated", case="a", fields=("choices[0].text",))
    (one,) = by_cause([stated, mixed])
    assert (
        str(one)
        == "P4 a, choices[0].text: choices are mixed: no; also at n; also seen by choices are told apart"
    )


@pytest.mark.parametrize(
    ("text", "covered"),
    [
        ("nothing lost: error.code", True),
        ("nothing lost: a", True),
        ("nothing lost: x/a", True),
        ("nothing lost: y/a", False),
        ("nothing lost: error", False),
        ("output shows: error.code", False),
    ],
)
def test_an_exception_names_a_check_and_a_place(text: str, covered: bool) -> None:
    known = KnownException.parsed(text, "why", ["nothing lost", "output shows"])
    assert known.covers(problem("error.code"), "captures/x") is covered
    assert str(known) == text


@pytest.mark.parametrize("text", ["nothing: a", "nothing lost", "nothing lost: ", ""])
def test_what_names_no_check_or_no_place_is_no_exception(text: str) -> None:
    with pytest.raises(ConfigurationError, match="an exception is 'CHECK: PATH' or 'CHECK: CAPTURE'"):
        KnownException.parsed(text, "why", ["nothing lost"])


def test_a_failure_that_is_read_as_an_answer_is_one_problem() -> None:
    """All that only its captures show follows from it, also what lies beside the error's words."""
    finish = Problem(
        "P4", "lost, finish", "no", "as stated", case="lost", fields=("finish",), kind="error became stop"
    )
    code = attrs.evolve(finish, place="lost, error_code", kind="", fields=("error_code",))
    text = attrs.evolve(finish, place="lost, text", kind="", fields=("text",))
    said = attrs.evolve(at_leaf("parts[].text", "text as it was sent", "text"), case="lost")
    elsewhere = attrs.evolve(problem("gust", "lost"), case="talk")
    joined, alone = by_cause([text, said, finish, code, elsewhere])
    assert joined == attrs.evolve(text, kind="error became stop", others=(said, finish, code))
    assert alone == elsewhere


def test_what_a_lost_error_leaves_is_one_problem() -> None:
    """Without a statement: its words are text, its code is lost, its end is made up, and events alone differ from bytes."""
    code, words = problem("error.code"), at_leaf("error.message", "never silently wrong", "text")
    end = Problem(
        "P8", "a, raw_finish_reason", "no word", "nothing invented", case="a", fields=("raw_finish_reason",)
    )
    events = Problem(
        "P3", "a, events", "differently", "framing does not matter", case="a", fields=("framing",)
    )
    (one,) = by_cause([code, words, end, events])
    assert one.others == (words, end, events)
    assert [found.case for found in by_cause([attrs.evolve(events, case="b"), problem("gust"), words])] == [
        "b",
        "a",
        "a",
    ]
    made_up = by_cause([end, problem("p[]"), attrs.evolve(problem("q"), case="b")])
    assert [(found.path, len(found.others)) for found in made_up] == [("", 1), ("q", 0)]


def test_a_state_that_answers_share_is_one_problem() -> None:
    """No comparison means anything then."""
    again = Problem(
        "P5", "a, twice", "other", "deterministic", case="a", fields=("twice",), kind=SHARED_STATE
    )
    (one,) = by_cause([problem("text"), again, problem("gust", case="b")])
    assert one == attrs.evolve(again, others=(problem("text"), problem("gust", case="b")))


class KeepsAll(Named):
    """Keeps what one answer has said where all answers find it."""

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        KEPT.append(len(KEPT))
        return {**event, "kept": KEPT.copy()}


KEPT: list[int] = []


@pytest.mark.untraced
def test_a_plugin_that_keeps_a_list_has_one_problem() -> None:
    registry = Registry(installed=[], environ={})
    registry.register(KeepsAll(), "named")
    captures = [recording.capture for recording in NAMED[:2]]
    found = [
        one for capture in captures for one in check_capture(registry.mapper("named"), capture, sample=4)
    ]
    assert len({one.check for one in found}) > 2
    (one,) = by_cause(found)
    assert (
        one.message
        == "the same bytes give different canonical JSON; what one answer needs belongs in state.data"
    )
