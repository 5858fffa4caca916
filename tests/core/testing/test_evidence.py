"""What no recording shows, and declarations that the recordings contradict."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import attrs
import orjson
import pytest

from crosswalk.plugin.registry import Registry
from crosswalk.plugins import (
    FINISH,
    ID,
    REASONING,
    TEXT,
    Access,
    ErrorKind,
    FieldTable,
    FinishReason,
    MappingState,
    ProviderHooks,
    ProviderInfo,
    ResponseDelta,
    TableDialect,
    calls,
    hookimpl,
    take_string,
)
from crosswalk.testing import Capture, check_capture
from crosswalk.testing.evidence import unproven
from planted import lookalike, named
from planted.recordings import KELP, NAMED

CAPTURES = [recording.capture for recording in NAMED]


def mapper(plugin: Any) -> Any:
    registry = Registry(installed=[], environ={})
    registry.register(plugin, "toy")
    return registry.mapper("toy")


def test_every_plugin_is_told_what_nobody_recorded() -> None:
    missing = unproven(mapper(named.plugin), CAPTURES)
    assert missing == ["a second choice", "an image", "a cut stream"]
    cut = attrs.evolve(next(one for one in CAPTURES if one.stream), complete=False)
    assert "a cut stream" not in unproven(mapper(named.plugin), [cut])
    assert unproven(mapper(named.plugin), [])[:2] == ["a whole body", "a stream"]


def test_what_a_server_has_not_is_answered_by_an_exception() -> None:
    answers = ["not recorded: a second choice, an image", "nothing lost: a cut stream"]
    assert unproven(mapper(named.plugin), CAPTURES, answers) == ["a cut stream"]
    told = [recording.capture for recording in KELP][:1]
    (rows,) = [one for one in unproven(mapper(lookalike.plugin), told) if one.startswith("the rows ")]
    assert "choices[].delta.function_call" in rows
    left = unproven(mapper(lookalike.plugin), told, ["not recorded: choices[].delta.function_call"])
    assert rows not in left
    assert any(one.startswith("the rows ") and "delta.function_call" not in one for one in left)
    left = unproven(mapper(lookalike.plugin), told, [f"not recorded: {rows}"])
    assert not [one for one in left if one.startswith("the rows ")]


def test_a_look_alike_is_told_of_its_own_words_too() -> None:
    captures = [recording.capture for recording in KELP]
    assert not [name for name in unproven(mapper(lookalike.plugin), captures) if "word" in name]
    told = [capture for capture in captures if capture.case == "told"]
    assert {"a refusal", "calls", "the finish word 'blocked'"} <= {*unproven(mapper(lookalike.plugin), told)}


class Heron(TableDialect):
    """A plain wire with a word of its own."""

    title = "Heron"
    fields = FieldTable({"text": TEXT, "why": FINISH})
    finish_reasons: ClassVar[Any] = {
        "over": FinishReason.STOP,
        "stop": FinishReason.STOP,
        "full": FinishReason.LENGTH,
    }


def test_a_table_is_told_of_its_own_words_too() -> None:
    said = [Capture("talk", Path("talk.json"), b'{"text":"Hi","why":"over"}')]
    missing = unproven(mapper(Heron()), said)
    assert [name for name in missing if "word" in name] == ["the finish word 'full'"]


class Declares(ProviderHooks):
    """Reads texts and ends, and declares what a test says."""

    def __init__(self, **declarations: Any) -> None:
        self.declarations = declarations

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(title="Toy", **self.declarations)

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
        text, word = take_string(event, "text"), take_string(event, "done")
        return [ResponseDelta(content_delta=text, raw_finish_reason=word)]

    @hookimpl
    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason:
        return FinishReason(reason)


def test_hooks_are_told_of_the_words_and_codes_of_their_module(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("brant")
    vars(module).update(
        WORDS={"stop": FinishReason.STOP, "full": FinishReason.LENGTH},
        KINDS={"busy": (ErrorKind.RATE_LIMIT, True), "lost": ErrorKind.SERVER, "odd": ()},
    )
    monkeypatch.setitem(sys.modules, "brant", module)
    access = Access.by_name("https://brant.example", "BRANT")
    plugin = type("Brant", (Declares,), {"__module__": "brant"})(access=access)
    recorded = [Capture("talk", Path("talk.json"), b'{"text":"Hi","done":"stop","note":"lost"}')]
    missing = unproven(mapper(plugin), recorded)
    wanted = ["the finish word 'full'", "the error code 'busy'", "the key in Authorization"]
    assert missing[-3:] == wanted
    assert "the key in Authorization" not in unproven(mapper(Declares()), recorded)


def test_something_else_by_the_name_of_the_words_is_left_alone() -> None:
    has_other = type("HasOther", (Declares,), {"finish_reasons": len})
    missing = unproven(
        mapper(has_other()), [Capture("talk", Path("talk.json"), b'{"text":"Hi","why":"over"}')]
    )
    assert not [name for name in missing if "word" in name]


EVENTS = [
    {"text": "Hel", "n": 1, "word": "x"},
    {"text": "lo", "n": 2, "word": "y", "done": "stop", "usage": {"in": 1}},
]


def told(*more: bytes, **declarations: Any) -> list[str]:
    body = b"".join(b"data: %b\n\n" % one for one in (*map(orjson.dumps, EVENTS), *more))
    captures = [Capture("a", Path("a"), body, stream=True), Capture("b", Path("b"), body, stream=True)]
    problems = [
        (problem.path, problem.message, problem.exception)
        for capture in captures
        for problem in check_capture(
            mapper(Declares(**declarations)), capture, checks=["declarations hold"], others=captures
        )
    ]
    assert all(exception == f"declarations hold: {path}" for path, _, exception in problems)
    return [f"{path}: {message}" for path, message, _ in problems]


@pytest.mark.parametrize(
    ("declarations", "problem"),
    [
        ({"sentinel": True}, "sentinel: declared, and no recorded stream ends with [DONE]"),
        ({"repeats_finish": True}, "repeats_finish: declared, and no recorded stream goes on after its finish word"),
        ({"text_paths": ("delta.text",)}, "text_paths: declared, and no recorded event has any of them"),
        ({"access": Access.by_name("https://api.toy.example", "TOY")},
         "access: declared, and the plugin builds no requests, so nobody can ask"),
    ],
)  # fmt: skip
def test_a_declaration_that_recordings_contradict_is_told_once(
    declarations: dict[str, Any], problem: str
) -> None:
    assert told(**declarations) == [problem]


def test_a_declaration_with_evidence_is_no_problem() -> None:
    good: dict[str, Any] = {
        "number_key": "n",
        "usage_key": "usage",
        "timestamp_key": "word",
        "text_paths": ("text",),
    }
    assert told(**good) == []
    assert told(b"[DONE]", sentinel=True) == []
    assert told(b'{"text":"more"}', repeats_finish=True) == []
    assert told() == []


def test_a_capture_alone_is_no_evidence() -> None:
    """Without the others of its folder nothing is said of declarations."""
    capture = Capture("a", Path("a"), b'{"text":"x","done":"stop"}')
    assert check_capture(mapper(Declares(sentinel=True)), capture, checks=["declarations hold"]) == []


class Tide(TableDialect):
    """Reads a text and its end, and keeps the rest."""

    title = "Tide"
    fields = FieldTable({"run": ID, "text": TEXT, "why": FINISH})
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = {"done": FinishReason.STOP}


class WholeTide(Tide):
    """Reads more."""

    fields = FieldTable(
        {**Tide.fields.rows, "acts": calls(name="tool", arguments="with"), "thinking": REASONING}
    )


def read_as(said: dict[str, Any], plugin: Any, status: int = 200) -> tuple[list[str], list[str]]:
    """Return the problems of kinds in a body that says *said*, and what is not recorded with it."""
    body = orjson.dumps({"run": "r1", "text": "It is late.", "why": "done", **said})
    one = Capture("tide", Path("tide.json"), body, status=status)
    problems = check_capture(mapper(plugin), one, checks=["kinds are read"])
    return [str(problem).removeprefix("P1 tide, event 1, ") for problem in problems], unproven(
        mapper(plugin), [one]
    )


ACTS = [{"id": "act-1", "tool": "look", "with": {"at": "sea"}}]


@pytest.mark.parametrize(
    ("said", "kind", "leaf"),
    [
        ({"acts": ACTS}, "calls", "acts[0]"),
        ({"parts": [{"call": {"name": "look", "args": {}}}]}, "calls", "parts[0].call"),
        ({"tool_calls": [{"function": {"name": "look", "arguments": ""}}]}, "calls", "tool_calls[0].function"),
        ({"choices": [{"index": 1, "text": "Late."}]}, "a second choice", "choices[0]"),
        ({"candidates": [{"text": "Late."}, {"text": "Soon."}]}, "a second choice", "candidates"),
        ({"thinking": "Hm. What time is it?"}, "reasoning", "thinking"),
        ({"picture": "iVBORw0KGgoAAAANSUhEUg"}, "an image", "picture"),
        ({"odds": {"tokens": ["It", " is"], "token_logprobs": [-0.5, -0.1]}}, "log probabilities", "odds"),
        ({"odds": [{"token": "It", "logprob": -0.5}]}, "log probabilities", "odds[0]"),
        ({"engine": "tide-1"}, "a model", "engine"),
        ({"fault": {"code": 7}}, "an error", "fault"),
        ({"used": {"in": 3, "out": 4}}, "counts", "used"),
        ({"output_tokens": 3}, "counts", "output_tokens"),
    ],
)  # fmt: skip
def test_what_a_recording_holds_is_read_or_named(said: dict[str, Any], kind: str, leaf: str) -> None:
    found, missing = read_as(said, Tide())
    assert found == [
        f"{leaf}: it looks like {kind}, and the plugin reads none: write a row, a hook or an exception"
    ]
    assert kind not in missing
    assert read_as(said, Tide(), status=500)[0] == []


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"tools": [{"name": "look", "parameters": {"type": "object", "properties": {}}}]},
        {"settings": {"model": "tide-1", "tool": "look", "with": {"at": "sea"}}},
        {"odds": [-0.5], "odd": {"text": "It", "logprobs": [-0.5], "avg_logprob": -0.5}},
        {"thinking": "on", "engine": "", "error": None, "max_tokens": 3, "output_tokens": 0},
        {
            "choices": [{"index": 0}],
            "candidates": [{"index": "b"}],
            "offsets": [{"from": 1, "to": 2}],
            "ratio": 0.5,
            "call": {"name": "x"},
        },
    ],
)
def test_what_looks_like_nothing_is_only_kept(said: dict[str, Any]) -> None:
    assert read_as(said, Tide())[0] == []


def test_what_is_read_is_recorded() -> None:
    found, missing = read_as({"acts": ACTS, "thinking": "Hm. What time is it?"}, WholeTide())
    assert found == []
    assert not {"calls", "reasoning"} & {*missing}


def test_the_id_of_a_call_is_not_made_up_beside_its_own() -> None:
    class LosesIds(WholeTide):
        fields = FieldTable({**WholeTide.fields.rows, "acts": calls(id="act", name="tool", arguments="with")})

    (problem,) = read_as({"acts": ACTS}, LosesIds())[0]
    assert problem == "acts[0].tool: its call has a made-up id, and the id beside its name is left"
    for same_for_all in ("0", "null", 7, "r1"):
        assert read_as({"acts": [{**ACTS[0], "id": same_for_all}]}, LosesIds())[0] == []


@pytest.mark.parametrize(
    ("ids", "is_found"),
    [(("r-1", "r-2", "r-3"), True), (("r-1", "r-2"), False), (("r-1", "r-1", "r-3"), False)],
)
def test_what_is_another_word_in_each_answer_is_its_id(ids: tuple[str, ...], is_found: bool) -> None:
    bodies = [orjson.dumps({"ref": one, "text": "Hello", "why": "done"}) for one in ids]
    recorded = [Capture(f"talk{n}", Path(f"{n}.json"), one) for n, one in enumerate(bodies)]
    found = check_capture(mapper(Tide()), recorded[0], checks=["kinds are read"], others=recorded)
    message = "its id is made up, and this one is left"
    assert [(one.path, one.message) for one in found] == [("", message)] * is_found
