"""Which call does a fragment belong to? One table for every server's habits (design, section 5)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, strategies as st

from crosswalk import PluginError, ResponseValidationError, normalize
from crosswalk.plugin.state import End
from crosswalk.plugins import MappingState
from crosswalk.types import ContentFilterResult, FinishReason, Provenance

Fragment = dict[str, Any]
Call = tuple[str | None, str | None, str]


def fragment(
    index: int | None = None, id: str | None = None, name: str | None = None, arguments: str | None = None
) -> Fragment:
    return {"index": index, "id": id, "name": name, "arguments": arguments}


f = fragment


def calls_of(fragments: list[Fragment]) -> list[Call]:
    """Id, name and arguments of the calls that *fragments* add up to, as an accumulator would see them."""
    state = MappingState("test")
    found: dict[int, list[Any]] = {}
    for given_fragment in fragments:
        delta = state.tool_call(**given_fragment)
        call = found.setdefault(delta.index, [None, None, ""])
        assert delta.id is None or call[0] is None, "an id is given once"
        assert delta.name is None or call[1] is None, "a name is given once"
        call[0] = delta.id or call[0]
        call[1] = delta.name or call[1]
        call[2] += delta.arguments_delta or ""
    assert list(found) == list(range(len(found))), "calls are numbered in order of first appearance"
    assert [(slot.id, slot.name) for slot in state.tool_calls()] == [tuple(c[:2]) for c in found.values()]
    return [(id, name, arguments) for id, name, arguments in found.values()]


SCENARIOS: dict[str, tuple[list[Fragment], list[Call]]] = {
    "normal": (
        [f(0, "a", "go", ""), f(0, None, None, '{"x"'), f(0, None, None, ":1}")],
        [("a", "go", '{"x":1}')],
    ),
    "two calls, one after the other": (
        [f(0, "a", "go", "{}"), f(1, "b", "stop", "{"), f(1, None, None, "}")],
        [("a", "go", "{}"), ("b", "stop", "{}")],
    ),
    "interleaved": (
        [f(0, "a", "go", "1"), f(1, "b", "stop", "2"), f(0, None, None, "3"), f(1, None, None, "4")],
        [("a", "go", "13"), ("b", "stop", "24")],
    ),
    "two fragments of one call in one event": (
        [f(1, "b", "plot"), f(1, None, None, "{"), f(1, None, None, "}")],
        [("b", "plot", "{}")],
    ),
    "whole calls in one fragment each": (
        [f(0, "a", "go", "{}"), f(1, "b", "go", "{}")],
        [("a", "go", "{}"), ("b", "go", "{}")],
    ),
    "index 0 for every call, ids differ": (
        [f(0, "a", "go", "{}"), f(0, "b", "stop", "{}"), f(0, "c", "look_at", "{}")],
        [("a", "go", "{}"), ("b", "stop", "{}"), ("c", "look_at", "{}")],
    ),
    "index 0 for every call, the same tool": (
        [f(0, "a", "go", "{"), f(0, None, None, "}"), f(0, "b", "go", "["), f(0, None, None, "]")],
        [("a", "go", "{}"), ("b", "go", "[]")],
    ),
    "index 0 for every call, interleaved by id": (
        [f(0, "a", "go"), f(0, "b", "stop"), f(0, "a", None, "1"), f(0, "b", None, "2")],
        [("a", "go", "1"), ("b", "stop", "2")],
    ),
    "index 0 for every call, no ids, other tools": (
        [f(0, None, "go", "{}"), f(0, None, "stop", "{}")],
        [(None, "go", "{}"), (None, "stop", "{}")],
    ),
    "index 0 for every call, an id only the second time": (
        [f(0, None, "go", "{}"), f(0, "b", "stop", "{}")],
        [(None, "go", "{}"), ("b", "stop", "{}")],
    ),
    "no index, new ids": (
        [f(None, "a", "read", "{}"), f(None, "b", "read", "{}")],
        [("a", "read", "{}"), ("b", "read", "{}")],
    ),
    "no index, a known id": (
        [f(None, "a", "go", "1"), f(None, "b", "stop", "2"), f(None, "a", None, "3")],
        [("a", "go", "13"), ("b", "stop", "2")],
    ),
    "no index, id repeated in every fragment": (
        [f(None, "a", "go", "1"), f(None, "a", "go", "2"), f(None, "a", "go", "3")],
        [("a", "go", "123")],
    ),
    "no index, an unknown id without a name": (
        [f(None, "a", "go", "1"), f(None, "b", None, "2")],
        [("a", "go", "1"), ("b", None, "2")],
    ),
    "no index, the id comes late": (
        [f(None, None, "go", "1"), f(None, "a", None, "2"), f(None, None, None, "3")],
        [("a", "go", "123")],
    ),
    "no index, no id, the name opens": (
        [f(None, None, "go", "1"), f(None, None, None, "2"), f(None, None, "go", "3")],
        [(None, "go", "12"), (None, "go", "3")],
    ),
    "no index, nothing but arguments": (
        [f(None, None, None, "1"), f(None, None, None, "2")],
        [(None, None, "12")],
    ),
    "a missing index is not 0": (
        [f(0, "a", "go", "1"), f(1, "b", "stop", "2"), f(None, None, None, "3")],
        [("a", "go", "1"), ("b", "stop", "23")],
    ),
    "a missing index with the id of an earlier call": (
        [f(0, "a", "go", "1"), f(1, "b", "stop", "2"), f(None, "a", None, "3")],
        [("a", "go", "13"), ("b", "stop", "2")],
    ),
    "the index comes late": (
        [f(None, "a", "go", "1"), f(0, "a", None, "2"), f(0, None, None, "3")],
        [("a", "go", "123")],
    ),
    "the index comes late, without the id": (
        [f(None, "a", "go", "1"), f(0, None, None, "2"), f(0, None, None, "3")],
        [("a", "go", "123")],
    ),
    "the index comes late, for the first of two": (
        [f(None, "a", "go", "1"), f(0, "a", None, "2"), f(1, "b", "stop", "3"), f(0, None, None, "4")],
        [("a", "go", "124"), ("b", "stop", "3")],
    ),
    "the index comes late, with everything again": (
        [f(None, "a", "go", "1"), f(0, "a", "go", "2")],
        [("a", "go", "12")],
    ),
    "an index for the second call only": (
        [f(None, "a", "go", "1"), f(0, "b", "stop", "2"), f(0, "a", None, "3")],
        [("a", "go", "13"), ("b", "stop", "2")],
    ),
    "id and name repeated in every fragment": (
        [f(0, "a", "go", "1"), f(0, "a", "go", "2")],
        [("a", "go", "12")],
    ),
    "id and name empty later": (
        [f(0, "a", "go", "1"), f(0, "", "", "2")],
        [("a", "go", "12")],
    ),
    "id and name empty at first": (
        [f(0, "", "", ""), f(0, "a", "", "1"), f(0, "", "go", "2")],
        [("a", "go", "12")],
    ),
    "the id comes late": (
        [f(0, None, "go", "1"), f(0, "a", None, "2")],
        [("a", "go", "12")],
    ),
    "the id comes late, with the name again": (
        [f(0, None, "go", "1"), f(0, "a", "go", "2")],
        [("a", "go", "12")],
    ),
    "the name comes late": (
        [f(0, "a", None, "1"), f(0, None, "go", "2")],
        [("a", "go", "12")],
    ),
    "no id at all": (
        [f(0, None, "go", "1"), f(1, None, "go", "2"), f(0, None, None, "3")],
        [(None, "go", "13"), (None, "go", "2")],
    ),
    "one id for two calls": (
        [f(0, "0", "go", "{}"), f(1, "0", "go", "[]")],
        [("0", "go", "{}"), (None, "go", "[]")],
    ),
    "one id for two calls, index 0 for both": (
        [f(0, "0", "go", "{}"), f(0, "0", None, "[]")],
        [("0", "go", "{}[]")],
    ),
    "another index for a later fragment, but the id": (
        [f(0, "a", "go", "1"), f(7, "a", None, "2")],
        [("a", "go", "12")],
    ),
    "another id in a later fragment, without a name": (
        [f(0, "a", "go", "1"), f(0, "b", None, "2")],
        [("a", "go", "12")],
    ),
    "another name in a later fragment, but the id": (
        [f(0, "a", "go", "1"), f(0, "a", "stop", "2")],
        [("a", "go", "12")],
    ),
    "indices from 1": (
        [f(1, "a", "go", "1"), f(2, "b", "stop", "2"), f(1, None, None, "3")],
        [("a", "go", "13"), ("b", "stop", "2")],
    ),
    "indices with gaps, and falling": (
        [f(9, "a", "go", "1"), f(4, "b", "stop", "2"), f(9, None, None, "3")],
        [("a", "go", "13"), ("b", "stop", "2")],
    ),
    "an index of its own without id and name": (
        [f(0, "a", "go", "1"), f(1, None, None, ""), f(1, "b", "stop", "2")],
        [("a", "go", "1"), ("b", "stop", "2")],
    ),
    "the harmony counter starts anew": (
        [f(0, "a", "go", "{}"), f(1, "b", "stop", "{}"), f(0, "c", "look_at", "{"), f(0, None, None, "}")],
        [("a", "go", "{}"), ("b", "stop", "{}"), ("c", "look_at", "{}")],
    ),
}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_fragment_finds_its_call(scenario: str) -> None:
    """By index, else by id, else the open one. A fragment that is named otherwise opens a new call."""
    fragments, calls = SCENARIOS[scenario]
    assert calls_of(fragments) == calls


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_choices_do_not_mix_their_calls(scenario: str) -> None:
    """The same fragments in two choices at once are the same calls twice."""
    fragments, calls = SCENARIOS[scenario]
    state = MappingState("test")
    pairs = [
        (state.tool_call(**given_fragment), state.tool_call(**given_fragment, choice=3))
        for given_fragment in fragments
    ]
    assert [left for left, _ in pairs] == [right for _, right in pairs]
    assert len(state.tool_calls(0)) == len(state.tool_calls(3)) == len(calls)
    assert state.has_tool_calls(3)
    assert not state.has_tool_calls(1)


@pytest.mark.parametrize(
    ("fragments", "ids"),
    [
        ([f(0, "a", "go"), f(0, "b", "go")], ["a", "b"]),
        ([f(0, "a", "go"), f(0, "a", "go")], ["a", None]),
        ([f(0, None, "go"), f(0, None, "go")], [None, None]),
        ([f(None, None, "go"), f(None, None, None)], [None, None]),
        ([f(0, "", "go"), f(0, "", "stop")], [None, None]),
    ],
)
def test_whole_calls_are_never_merged(fragments: list[Fragment], ids: list[str | None]) -> None:
    """If every fragment is a whole call neither index nor id make one of two. An id given twice is kept once."""
    state = MappingState("test")
    deltas = [state.tool_call(**given_fragment, whole=True) for given_fragment in fragments]
    assert [delta.index for delta in deltas] == [0, 1]
    assert [delta.id for delta in deltas] == ids


fragments = st.lists(
    st.builds(
        fragment,
        st.none() | st.integers(0, 2),
        st.sampled_from([None, "", "a", "b"]),
        st.sampled_from([None, "", "go", "stop"]),
        st.sampled_from([None, "", "{", "}"]),
    ),
    max_size=12,
)


@given(fragments)
def test_no_argument_text_is_lost_or_doubled(given_fragments: list[Fragment]) -> None:
    """Whatever a server sends: all text arrives once, and no two calls have one id."""
    calls = calls_of(given_fragments)
    sent = sorted("".join(fragment["arguments"] or "" for fragment in given_fragments))
    assert sorted("".join(arguments for _, _, arguments in calls)) == sent
    ids = [id for id, _, _ in calls if id is not None]
    assert len(ids) == len(set(ids))


@given(fragments)
def test_what_a_call_keeps_is_taken_and_the_rest_is_left(given_fragments: list[Fragment]) -> None:
    """A fragment loses exactly the index, id and name that its call has in its own fields."""
    state = MappingState("test")
    for given_fragment in given_fragments:
        wire = {name: value for name, value in given_fragment.items() if name != "arguments"}
        delta = state.take_tool_call(wire, arguments=given_fragment["arguments"])
        call = state.tool_calls()[delta.index]
        for name, kept in (("index", call.index), ("id", call.id), ("name", call.name)):
            said = given_fragment[name]
            assert wire.get(name, kept if said else said) == (
                said if said not in (None, "") else wire.get(name, said)
            )
            assert (name in wire) is (said not in (None, "") and said != kept)


def test_the_name_may_stand_in_an_object_of_its_own() -> None:
    """As in OpenAI's dialect, where the function has it."""
    state = MappingState("test")
    wire: dict[str, Any] = {"index": 1, "id": "a", "more": True}
    function = {"name": "go", "strict": False}
    state.take_tool_call(wire, function, arguments="{}")
    assert (wire, function) == ({"index": 1, "more": True}, {"strict": False})


def test_another_name_of_a_call_is_left() -> None:
    """A call keeps the first, so the other one stays with what no field says."""
    state = MappingState("test")
    state.take_tool_call({"id": "a", "name": "go"}, arguments="{")
    again = {"id": "a", "name": "stop"}
    assert state.take_tool_call(again, arguments="}").index == 0
    assert again == {"name": "stop"}


def test_the_first_identity_stays() -> None:
    """The first id, model and time that is not empty counts. Azure's empty first chunk does not."""
    state = MappingState("test")
    state.identify(id="", model="", created=None)
    first, later = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
    state.identify(id="a", model="m", created=first)
    state.identify(id="b", model="n", created=later)
    assert (state.id, state.model, state.created) == ("a", "m", first)


def test_a_note_can_be_taken_back() -> None:
    """A field is noted as absent until the provider sends it."""
    state = MappingState("test")
    state.note("usage.prompt_tokens", "absent")
    state.note("finish_reason", Provenance.DERIVED)
    assert state.provenance["usage.prompt_tokens"] is Provenance.ABSENT
    state.note("usage.prompt_tokens", None)
    state.note("created", None)
    assert state.provenance == {"finish_reason": Provenance.DERIVED}


@pytest.mark.parametrize(
    "path",
    [
        *("usage.total_tokens", "message.tool_calls[3].id", "alternatives[0].finish_reason", "is_complete"),
        *("metadata.extensions", "metadata.extensions.choices[0].no such key", "segments[2].metadata.id"),
        *("logprobs[0].top[1].token", "usage.cost.amount", "metadata.request_duration"),
    ],
)
def test_what_a_response_has_can_be_noted(path: str) -> None:
    """Its fields and their fields, computed ones among them, and everything in the extensions."""
    state = MappingState("test")
    state.note(path, "derived")
    assert state.provenance == {path: Provenance.DERIVED}


@pytest.mark.parametrize(
    "path",
    [
        *(
            "no.such.path",
            "",
            "usage.",
            "usage.prompt",
            "usage.prompt_tokens.more",
            "usage.add",
            "finish-reason",
        ),
        *("message.tool_calls[x].id", "message tool_calls", "metadata.extension", "id[0]x", None, 7, ["id"]),
    ],
)
@pytest.mark.parametrize("provenance", ["derived", None])
def test_a_note_about_no_field_of_a_response_is_the_plugins_fault(path: Any, provenance: Any) -> None:
    """It could not be found."""
    state = MappingState("test")
    with pytest.raises(PluginError, match="provider 'test': it notes .*, which is not a field of a response"):
        state.note(path, provenance)
    assert state.provenance == {}


def test_a_time_that_a_hook_noted_stays() -> None:
    """The seconds of the first event are taken all the same."""
    state, event = MappingState("test"), {"created": 7}
    state.identify(created=datetime(2026, 1, 1, tzinfo=UTC))
    state.take_identity(event)
    assert (state.created, event) == (datetime(2026, 1, 1, tzinfo=UTC), {})


@pytest.mark.parametrize(
    ("created", "time"),
    [
        (1767261900, "2026-01-01T10:05:00+00:00"),
        ("2026-01-01T10:05:00Z", "2026-01-01T10:05:00+00:00"),
        ("2026-01-01T12:05:00.25+02:00", "2026-01-01T10:05:00.250000+00:00"),
    ],
)
def test_a_time_is_seconds_or_a_text(created: Any, time: str) -> None:
    """A later event may repeat it. One with another time keeps that."""
    state, first, again, other = (
        MappingState("test"),
        {"at": created},
        {"at": created},
        {"at": "2027-01-01T00:00:00Z"},
    )
    for event in (first, again, other):
        state.take_identity(event, created="at")
    assert (first, again, other) == ({}, {}, {"at": "2027-01-01T00:00:00Z"})
    assert state.created is not None
    assert state.created.isoformat() == time


@pytest.mark.parametrize("created", [-3, -0.5, 10**30, 1e300, "yesterday", "2026-01-01T10:05:00", "7", True])
def test_a_time_that_no_calendar_has_stays_and_is_noted(created: Any) -> None:
    """As one of another type does. 0 is not a time, and nothing is wrong with it."""
    said = {
        "id": "a",
        "created": created,
        "choices": [{"index": 0, "message": {"content": "Hi"}, "finish_reason": "stop"}],
    }
    response = normalize(said, "openai")
    assert response.metadata.extensions["created"] == created
    assert response.metadata.provenance["created"] == "synthetic"
    assert response.metadata.provenance["metadata.extensions.created"] == "mistyped"
    assert (
        "metadata.extensions.created" not in normalize({**said, "created": 0}, "openai").metadata.provenance
    )


# ------------------------------------------------------------------------------------------- moderation


def test_of_each_category_the_worst_verdict_stays() -> None:
    """The filtered words count most, then the severity. A harmless repetition takes nothing back."""
    state = MappingState("p")
    for category, severity, filtered in [
        ("hate", "low", False),
        ("hate", "safe", False),
        ("violence", "safe", False),
        ("hate", "medium", True),
        ("hate", "high", False),
    ]:
        state.judge(ContentFilterResult(category, severity, filtered))
    assert [(v.category, v.severity, v.filtered) for v in state.verdicts.values()] == [
        ("hate", "medium", True),
        ("violence", "safe", False),
    ]


def test_a_complete_call_is_followed_by_one_with_an_id_of_its_own() -> None:
    """Servers number parallel calls 0 each. While the arguments are not JSON, another id continues the call."""
    state = MappingState("test")

    def add(**fragment: Any) -> int:
        delta = state.tool_call(index=0, **fragment)
        state.choice(0).add_call(delta)
        return delta.index

    assert add(id="a", name="go", arguments='{"x":') == 0
    assert add(id="b", arguments="1}") == 0
    assert add(id="c", arguments="{") == 1
    state.ends[0] = End(FinishReason.TOOL_CALLS, "tool_calls")
    assert add(id="d", arguments="}") == 2


@pytest.mark.parametrize("choice", [-1, "0", None, True])
def test_a_choice_is_a_number_from_0(choice: Any) -> None:
    with pytest.raises(ResponseValidationError, match="a choice is a number from 0"):
        MappingState("test").begin(choice)


def test_a_duration_is_checked_when_it_is_set() -> None:
    """One of more than a thousand years is not kept: no server took so long."""
    state = MappingState("test")
    for wrong in (1.5, timedelta(-1)):
        with pytest.raises(ResponseValidationError, match="request_duration must be a timedelta from 0"):
            state.request_duration = wrong  # type: ignore[assignment]
    state.request_duration = timedelta(days=400_000)
    assert state.request_duration is None
    state.request_duration = timedelta(seconds=1)
    assert state.request_duration == timedelta(seconds=1)
