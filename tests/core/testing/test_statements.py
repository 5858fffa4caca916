"""Statements about captures: how they are read, and what the kit makes of a plugin that disagrees with one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import orjson
import pytest

from crosswalk import Registry, registry as installed
from crosswalk.errors import ConfigurationError
from crosswalk.testing import Capture, Problem, Tally, check_capture, load_captures
from crosswalk.testing.captures import NAMES, stated_differences
from planted import named, netstrings
from planted.more_recordings import MORE_RECORDINGS
from planted.recordings import NAMED

ANSWER = next(one for one in NAMED if one.capture.case == "talk")
CALLS = next(one for one in NAMED if one.capture.case == "whole")
FAILURE = next(one for one in NAMED if one.capture.case == "busy")
REGISTRY = Registry(installed=[], environ={})
REGISTRY.register(named.plugin, "named")


def problems(folder: Path, recording: Any, statement: Any, *, tally: Tally | None = None) -> list[Problem]:
    """Check one recording in *folder*, with *statement* in a file next to it."""
    capture = recording.capture
    (folder / f"{capture.case}.response.json").write_bytes(capture.body)
    (folder / f"{capture.case}.says.json").write_bytes(orjson.dumps(statement))
    (folder / f"{capture.case}.meta.json").write_bytes(orjson.dumps({"status": capture.status}))
    (loaded,) = load_captures(folder)
    return check_capture(REGISTRY.mapper("named"), loaded, checks=["as stated"], tally=tally)


@pytest.mark.parametrize("recording", [ANSWER, CALLS, FAILURE], ids=lambda one: one.capture.case)
def test_a_plugin_that_agrees_has_no_problem(tmp_path: Path, recording: Any) -> None:
    tally = Tally()
    assert problems(tmp_path, recording, recording.says, tally=tally) == []
    assert (tally.captures, tally.unstated) == (1, 0)


@pytest.mark.parametrize(
    ("recording", "name", "stated", "message"),
    [
        (ANSWER, "text", "Hello", 'text: stated as "Hello", and read as "Hello There"'),
        (ANSWER, "text", None, 'text: stated as null, and read as "Hello There"'),
        (ANSWER, "reasoning", "", 'reasoning: stated as "", and read as "Let me See. "'),
        (ANSWER, "refusal", "No.", 'refusal: stated as "No.", and read as null'),
        (ANSWER, "finish", "length", 'finish: stated as "length", and read as "stop"'),
        (ANSWER, "raw_finish", "cap", 'raw_finish: stated as "cap", and read as "done"'),
        (ANSWER, "model", None, 'model: stated as null, and read as "reed-1"'),
        (ANSWER, "id", "run-92", 'id: stated as "run-92", and read as "run-91"'),
        (
            ANSWER,
            "created",
            "2026-01-01T09:45:01Z",
            'created: stated as "2026-01-01T09:45:01Z", and read as 2026-01-01T09:45:00+00:00',
        ),
        (ANSWER, "error", "server", 'error: stated as "server", and read as null'),
        (ANSWER, "retryable", True, "retryable: stated as true, and read as null"),
        (ANSWER, "complete", False, "complete: stated as false, and read as true"),
        (ANSWER, "usage", None, "usage.prompt_tokens: stated as null, and read as 9"),
        (ANSWER, "usage", {"cached_tokens": None}, "usage.cached_tokens: stated as null, and read as 6"),
        (ANSWER, "usage", {"cache_write_tokens": 0}, "usage.cache_write_tokens: stated as 0, and read as null"),
        (ANSWER, "calls", [{"name": "tides"}], "calls: stated as 1 calls, and read as 0"),
        (CALLS, "calls", None, "calls: stated as 0 calls, and read as 1"),
        (CALLS, "calls", [{"id": None}], 'calls[0].id: stated as null, and read as "c-81"'),
        (CALLS, "calls", [{"arguments": {}}], "calls[0].arguments: stated as {}, and read as"),
        (CALLS, "calls", [{"arguments": "{}"}], 'calls[0].arguments: stated as "{}", and read as'),
        (FAILURE, "error", "server", 'error: stated as "server", and read as "rate_limit"'),
        (FAILURE, "retryable", False, "retryable: stated as false, and read as true"),
        (FAILURE, "id", "run-91", 'id: stated as "run-91", and read as null'),
        (FAILURE, "usage", {"prompt_tokens": 0}, "usage.prompt_tokens: stated as 0, and read as null"),
        (ANSWER, "raises", "WireTypeError", "raises: stated as WireTypeError, and read as an answer"),
        (ANSWER, "choices", [{"text": "a"}, {"text": "b"}], "choices: stated as 2 choices, and read as 1"),
        (ANSWER, "choices", [{"text": "a"}], 'choices[0].text: stated as "a", and read as "Hello There"'),
        (CALLS, "choices", [{"calls": [{"name": "n"}]}], 'choices[0].calls[0].name: stated as "n", and read as "tides"'),
        (ANSWER, "order", ["text"], 'order: stated as ["text"], and read as ["reasoning","text"]'),
        (ANSWER, "media", ["image/png"], 'media: stated as ["image/png"], and read as []'),
        (ANSWER, "logprobs", {"count": 3}, "logprobs.count: stated as 3, and read as 2"),
        (ANSWER, "logprobs", {"last": -0.5}, "logprobs.last: stated as -0.5, and read as -0.4375"),
        (ANSWER, "logprobs", None, "logprobs.count: stated as null, and read as 2"),
        (ANSWER, "duration", 2.5, "duration: stated as 2.5, and read as null"),
        (FAILURE, "error_code", "busy", 'error_code: stated as "busy", and read as "too_fast"'),
        (FAILURE, "error_message", "no", 'error_message: stated as "no", and read as "slow down"'),
        (FAILURE, "order", [], 'order: stated as [], and read as ["error"]'),
    ],
)  # fmt: skip
def test_each_fact_that_disagrees_is_a_problem(
    tmp_path: Path, recording: Any, name: str, stated: Any, message: str
) -> None:
    found = problems(tmp_path, recording, {name: stated})
    assert message in f"{found[0].place}: {found[0].message}"
    assert {problem.check for problem in found} == {"as stated"}


def test_a_duration_is_compared_in_seconds(tmp_path: Path) -> None:
    body = b'{"model": "m", "message": {"content": "Hi"}, "done": true, "done_reason": "stop", "total_duration": 2500000000}'
    mapper = installed.mapper("ollama")
    capture = Capture("a", tmp_path / "a", body, says={"duration": 2.5})
    assert not [*check_capture(mapper, capture, checks=["as stated"])]
    (problem,) = check_capture(mapper, attrs.evolve(capture, says={"duration": 2.4}), checks=["as stated"])
    assert "duration: stated as 2.4, and read as 2.5" in str(problem)


def test_two_choices_are_compared_each_by_its_own_facts(tmp_path: Path) -> None:
    recording = next(one for one in MORE_RECORDINGS["netstrings"] if one.capture.case == "two_stream")
    registry = Registry(installed=[], environ={})
    registry.register(netstrings.plugin, "strings")
    capture = attrs.evolve(recording.capture, says={"choices": [{"finish": "stop"}, {"text": "no"}]})
    (problem,) = check_capture(registry.mapper("strings"), capture, checks=["as stated"])
    assert "choices[1].text: stated as" in str(problem)
    assert problem.message.endswith("; yield it in map_delta as ResponseDelta(choice=NUMBER, …=…)")


def test_each_difference_comes_with_its_remedy_and_first(tmp_path: Path) -> None:
    statement = {"text": "no", "finish": "length", "usage": {"prompt_tokens": 1}, "error_code": "x"}
    found = problems(tmp_path, ANSWER, statement)
    assert [problem.message.rpartition("; ")[2] for problem in found] == [
        "yield it in map_delta as ResponseDelta(content_delta=…)",
        "give it its meaning in map_finish_reason",
        "accept_count in map_usage",
        "give it in ErrorInfo(code=…)",
    ]
    (capture,) = load_captures(tmp_path)
    assert check_capture(REGISTRY.mapper("named"), capture)[0].check == "as stated"


def test_the_page_lists_every_name(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs/plugins.md").read_text(encoding="utf-8")
    table = page.partition("| name | what you state |")[2].partition("\n\n")[0]
    assert {name for name in NAMES if f"`{name}`" in table} == {*NAMES}


def test_a_name_that_is_left_out_is_not_stated(tmp_path: Path) -> None:
    assert problems(tmp_path, ANSWER, {"note": "from the documents"}) == []


def test_arguments_that_are_no_object_differ_from_a_stated_object(tmp_path: Path) -> None:
    body = ANSWER.capture.body.replace(
        b'"parts":[', b'"parts":[{"kind":"tool","slot":0,"id":"c","name":"n","input":"{"},'
    )
    (tmp_path / "broken.response.json").write_bytes(body)
    (tmp_path / "broken.says.json").write_bytes(orjson.dumps({"calls": [{"arguments": {}}]}))
    (capture,) = load_captures(tmp_path)
    (problem,) = check_capture(REGISTRY.mapper("named"), capture, checks=["as stated"])
    assert "calls[0].arguments: stated as {}" in str(problem)


def test_a_draft_states_nothing(tmp_path: Path) -> None:
    tally = Tally()
    assert problems(tmp_path, ANSWER, {"draft": "correct this", "text": "?"}, tally=tally) == []
    assert str(tally).endswith("; 1 capture without a statement")


def test_a_statement_may_be_in_the_manifest(tmp_path: Path) -> None:
    (tmp_path / "talk.response.json").write_bytes(ANSWER.capture.body)
    line = {"file": "talk.response.json", "says": {"text": "Bye"}}
    (tmp_path / "MANIFEST.jsonl").write_bytes(orjson.dumps(line))
    (capture,) = load_captures(tmp_path)
    assert capture.says == {"text": "Bye"}
    (problem,) = check_capture(REGISTRY.mapper("named"), capture, checks=["as stated"])
    assert "text: stated as" in str(problem)


def test_a_capture_may_have_to_be_refused(tmp_path: Path) -> None:
    """A statement about it is kept by a typed error. Other errors, and the other checks, find nothing more."""
    (tmp_path / "odd_stream.response.sse").write_bytes(b'event: murmur\ndata: {"text":"x"}\n\n')
    for stated, count in (("UnknownEventError", 0), ("WireTypeError", 1)):
        (tmp_path / "odd_stream.says.json").write_bytes(orjson.dumps({"raises": stated, "text": None}))
        (capture,) = load_captures(tmp_path)
        assert len(check_capture(REGISTRY.mapper("named"), capture)) == count
    (tmp_path / "odd_stream.says.json").write_bytes(
        orjson.dumps({"raises": "UnknownEventError", "text": "y"})
    )
    (capture,) = load_captures(tmp_path)
    (problem,) = check_capture(REGISTRY.mapper("named"), capture)
    assert 'text: stated as "y"' in str(problem)


def test_without_a_response_no_fact_agrees() -> None:
    found = dict(stated_differences({"raises": "PluginError", "text": None}, None, "PluginError"))
    assert found == {"text": "stated as null, and there is no response"}


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (b"{", "not JSON"),
        (b"[]", "not a JSON object"),
        (b'{"tone":"mild"}', '"tone": unknown; it may be text, reasoning,'),
        (b'{"text":7}', '"text": must be a string or null'),
        (b'{"finish":null}', '"finish": must be one of stop, length'),
        (b'{"error":"busy"}', '"error": must be one of rate_limit'),
        (b'{"complete":null}', '"complete": must be true or false'),
        (b'{"created":"today"}', '"created": must be a time in ISO 8601'),
        (b'{"created":"2026-01-01T09:45:00"}', '"created": must have a time zone'),
        (b'{"usage":{"in":7}}', '"usage": must be an object of prompt_tokens'),
        (b'{"usage":{"prompt_tokens":-1}}', '"usage": must hold counts'),
        (b'{"duration":-1}', '"duration": must be a number of seconds'),
        (b'{"order":["words"]}', '"order": must be a list of text, reasoning'),
        (b'{"media":[7]}', '"media": must be a list of strings'),
        (b'{"logprobs":{"mean":1}}', '"logprobs": must be an object of count, first, last'),
        (b'{"choices":[7]}', '"choices": must be a list of objects, one for each choice'),
        (b'{"choices":[{"text":7}]}', '"choices": "text": must be a string or null'),
        (b'{"choices":[{"usage":{}}]}', '"choices": "usage": unknown; it may be text, reasoning'),
        (b'{"asked":[]}', '"asked": must be an object'),
        (b'{"calls":{}}', '"calls": must be a list of calls'),
        (b'{"calls":[{"tool":"x"}]}', '"calls": a call must be an object of id, name, arguments'),
    ],
)
def test_a_statement_with_a_mistake_is_named(tmp_path: Path, statement: bytes, message: str) -> None:
    (tmp_path / "talk.response.json").write_bytes(ANSWER.capture.body)
    (tmp_path / "talk.says.json").write_bytes(statement)
    with pytest.raises(ConfigurationError, match="talk.says.json") as raised:
        load_captures(tmp_path)
    assert message in str(raised.value)
