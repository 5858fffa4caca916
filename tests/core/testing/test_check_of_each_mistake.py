"""Which check finds a planted mistake, and what it says about it."""

from __future__ import annotations

import re
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import attrs
import pytest

from crosswalk.plugin.registry import Registry
from crosswalk.plugins import (
    MappingState,
    ResponseDelta,
    TokenLogprob,
    WireTypeError,
    hookimpl,
    take_string,
)
from crosswalk.testing import Capture, check_capture
from planted import binary, lanes, named, rows
from planted.found_by import FOUND
from planted.mistakes import MISTAKES
from planted.more_mistakes import MORE_MISTAKES
from planted.more_recordings import MORE_RECORDINGS
from planted.recordings import RECORDINGS

BY_NAME = {str(mistake): mistake for mistake in (*MISTAKES, *MORE_MISTAKES)}


@pytest.mark.parametrize(("name", "check", "message"), FOUND, ids=[name for name, _, _ in FOUND])
def test_a_mistake_is_found_by_its_check(name: str, check: str, message: str) -> None:
    mistake = BY_NAME[name]
    found = problems(mistake.plugin(), mistake.wire, check)
    assert any(message in problem for problem in found), found


def problems(plugin: Any, wire: str, check: str, **changes: Any) -> list[str]:
    registry = Registry(installed=[], environ={})
    registry.register(plugin, wire)
    mapper = registry.mapper(wire)
    write = changes.pop("write", getattr(import_module(f"planted.{wire}"), "write", None))
    captures = [
        attrs.evolve(recording.capture, **changes) for recording in {**RECORDINGS, **MORE_RECORDINGS}[wire]
    ]
    return [
        str(problem)
        for one in captures
        for problem in check_capture(mapper, one, checks=[check], write=write, others=captures)
    ]


@pytest.mark.untraced
def test_a_stream_that_was_cut_on_its_way_may_end_anywhere() -> None:
    mistake = BY_NAME["rows: a failure is passed over"]
    assert problems(mistake.plugin(), "rows", "never silently wrong")
    assert problems(mistake.plugin(), "rows", "never silently wrong", complete=False) == []


def test_a_statement_settles_what_a_status_leaves_open() -> None:
    """An account without money is a 429, too, and no repetition helps."""
    mistake = BY_NAME["rows: too many requests is not to be repeated"]
    assert problems(mistake.plugin(), "rows", "failures are errors")
    assert problems(mistake.plugin(), "rows", "failures are errors", says={"retryable": False}) == []
    mistake = BY_NAME["rows: too many requests is the server's fault"]
    assert problems(mistake.plugin(), "rows", "failures are errors", says={"error": "server"}) == []


def test_a_function_that_writes_other_frames_is_named() -> None:
    def write(data: bytes, name: str | None) -> bytes:
        return binary.write(data.replace(b"Hello", b"Hallo"), name)

    found = problems(binary.plugin, "binary", "own framing is exact", write=write)
    assert found == [
        "P3 talk_stream, write: the frames that it writes are read differently from the recorded ones"
    ]


class WithoutEnd:
    """A plugin for an API without a terminal signal, which lacks the hook for finish words."""

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
        state.take_identity(event)
        text = take_string(event, "text")
        return [ResponseDelta(content_delta=text)] if text else []


def test_without_a_terminal_signal_a_cut_and_a_repetition_cannot_be_seen() -> None:
    registry = Registry(installed=[], environ={})
    registry.register(WithoutEnd(), "without")
    body = b'{"id":"a","model":"m","created":1767260700,"text":"Hel"}\n{"text":"lo"}\n'
    capture = Capture("talk_stream", Path("talk"), body, stream=True)
    checks = ["never silently wrong", "one answer at a time"]
    assert check_capture(registry.mapper("without"), capture, checks=checks) == []


class Strict(named.Named):
    """Refuses some numbers, and calls without arguments."""

    def logprobs(self, part: dict[str, Any], text: str) -> tuple[TokenLogprob, ...]:
        if part.get("lp") == 0:
            raise WireTypeError("lp", expected="a number below 0", got=0)
        return super().logprobs(part, text)


def test_a_number_may_be_refused() -> None:
    assert problems(Strict(), "named", "digits kept") == []


class InUTC(rows.Rows):
    """Takes times in UTC alone."""

    def created(self, row: rows.Row) -> datetime:
        time = super().created(row)
        if time.microsecond:
            raise WireTypeError("row[3]", expected="a time in seconds", got=str(time))
        return time


def test_a_time_may_be_refused() -> None:
    assert problems(InUTC(), "rows", "times kept") == []


def test_a_statement_may_say_that_a_time_is_none() -> None:
    mistake = BY_NAME["lookalike: milliseconds are taken for seconds"]
    assert problems(mistake.plugin(), "lookalike", "times kept")
    assert problems(mistake.plugin(), "lookalike", "times kept", says={"created": None}) == []


@pytest.mark.parametrize(
    ("body", "status", "check"),
    [
        (b'"busy"', 429, "failures are errors"),
        (b'{"run":{"id":"a","model":"m"},"why":"cap","parts":[{"kind":"tool","slot":0,"id":"c","name":"n","input":"{"}]}', 200, "arguments told apart"),
    ],
)  # fmt: skip
def test_what_tells_nothing_is_no_problem(body: bytes, status: int, check: str) -> None:
    """An error that is a text, and arguments that are not JSON."""
    registry = Registry(installed=[], environ={})
    registry.register(named.plugin, "named")
    capture = Capture("case", Path("case"), body.replace(b'"cap"', b'"done"'), status=status)
    assert check_capture(registry.mapper("named"), capture, checks=[check]) == []


def captured(wire: str, case: str) -> Capture:
    return next(one.capture for one in MORE_RECORDINGS[wire] if one.capture.case == case)


def compared(plugin: Any, wire: str, capture: Capture, others: list[Capture], check: str) -> list[str]:
    registry = Registry(installed=[], environ={})
    registry.register(plugin, wire)
    found = check_capture(registry.mapper(wire), capture, checks=[check], others=others)
    return [str(problem) for problem in found]


def test_a_finish_word_may_mean_an_error_without_a_report() -> None:
    plugin, capture = BY_NAME["patches: policy is an error"].plugin(), captured("patches", "barred")
    assert compared(plugin, "patches", capture, [], "failures are errors") == []


def test_a_sum_may_equal_one_of_its_parts() -> None:
    """The plugin leaves the part in the extensions, because the sum hides it as soon as the other part is not 0."""
    capture = captured("lanes", "call")
    one = attrs.evolve(capture, body=re.sub(rb'"remembered": ?\d+', b'"remembered":0', capture.body))
    assert compared(lanes.plugin, "lanes", one, [], "counts are the provider's") == []
