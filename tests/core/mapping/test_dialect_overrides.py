"""A method of OpenAIChatDialect that a subclass overrides is called for every part, whatever the part holds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from crosswalk import ChatResponse, MappingError, Registry, Segment, SegmentType, normalize, normalize_stream
from crosswalk.errors import WireTypeError
from crosswalk.plugins import (
    FINISH,
    ID,
    MODEL,
    REASONING,
    REFUSAL,
    TEXT,
    ChatSaid,
    FieldRow,
    MappingState,
    OpenAIChatDialect,
    Said,
    take_string,
)
from crosswalk.types import ResponseDelta, TokenLogprob, ToolCallDelta, UsageInfo

MESSAGES: dict[str, dict[str, Any]] = {
    "text alone": {"content": "Hi"},
    "with a role": {"role": "assistant", "content": "Hi"},
    "a role alone": {"role": "assistant"},
    "empty": {},
    "with a refusal": {"refusal": "No."},
    "with a field of the server's own": {"content": "Hi", "mood": "calm"},
}

PER_PART = ["choice_deltas", "reasoning", "tool_calls", "segments", "logprobs"]


class Counting(OpenAIChatDialect):
    """Notes the calls of each method that a subclass may override."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def choice_deltas(
        self, choice: dict[str, Any], part: dict[str, Any], index: int, state: MappingState, *, whole: bool
    ) -> Iterable[ResponseDelta]:
        self.calls.append("choice_deltas")
        return super().choice_deltas(choice, part, index, state, whole=whole)

    def reasoning(self, part: dict[str, Any], choice: int, state: MappingState) -> str | None:
        self.calls.append("reasoning")
        return super().reasoning(part, choice, state)

    def tool_calls(
        self, part: dict[str, Any], choice: int, state: MappingState, *, whole: bool
    ) -> Iterator[ToolCallDelta]:
        self.calls.append("tool_calls")
        return super().tool_calls(part, choice, state, whole=whole)

    def tool_call(
        self, call: dict[str, Any], choice: int, state: MappingState, *, whole: bool
    ) -> ToolCallDelta:
        self.calls.append("tool_call")
        return super().tool_call(call, choice, state, whole=whole)

    def segments(self, part: dict[str, Any], choice: int, state: MappingState) -> Iterable[Segment]:
        self.calls.append("segments")
        return super().segments(part, choice, state)

    def logprobs(self, choice: dict[str, Any], content: str | None) -> tuple[TokenLogprob, ...] | None:
        self.calls.append("logprobs")
        return super().logprobs(choice, content)

    def usage_info(self, usage: dict[str, Any], state: MappingState) -> UsageInfo | None:
        self.calls.append("usage_info")
        return super().usage_info(usage, state)


def registry_of(dialect: OpenAIChatDialect) -> Registry:
    registry = Registry(installed=[])
    registry.register(dialect, "mine")
    return registry


def body(message: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], **fields}


def chunk(delta: dict[str, Any], **choice: Any) -> dict[str, Any]:
    return {"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, **choice}]}


def stream(events: list[dict[str, Any]], dialect: OpenAIChatDialect) -> ChatResponse:
    lines = [b"data: %b\n\n" % json.dumps(event).encode() for event in events]
    return normalize_stream([*lines, b"data: [DONE]\n\n"], "mine", registry=registry_of(dialect)).until_done()


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES)
def test_a_message_is_given_to_every_method(message: dict[str, Any]) -> None:
    dialect = Counting()
    normalize(body(message), "mine", registry=registry_of(dialect))
    assert sorted(dialect.calls) == sorted(PER_PART)


@pytest.mark.parametrize("delta", MESSAGES.values(), ids=MESSAGES)
def test_every_delta_of_a_stream_is_given_to_every_method(delta: dict[str, Any]) -> None:
    dialect = Counting()
    stream([chunk(delta)] * 5 + [chunk({}, finish_reason="stop")], dialect)
    assert sorted(dialect.calls) == sorted(PER_PART * 6)


def test_a_completion_without_a_message_is_given_to_every_method() -> None:
    dialect = Counting()
    choice = {"index": 0, "text": "Hi", "finish_reason": "stop"}
    assert normalize({"id": "c", "choices": [choice]}, "mine", registry=registry_of(dialect)).text == "Hi"
    assert sorted(dialect.calls) == sorted(PER_PART)


@pytest.mark.parametrize(
    "message",
    [
        {"tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"function_call": {"name": "f", "arguments": "{}"}},
        {"tool_calls": [{"id": "a", "type": "custom", "custom": {"name": "f", "input": "{}"}}]},
    ],
    ids=["tool_calls", "function_call", "custom"],
)
def test_a_call_in_any_form_is_given_to_the_method(message: dict[str, Any]) -> None:
    dialect = Counting()
    response = normalize(body(message), "mine", registry=registry_of(dialect))
    assert [call.name for call in response.tool_calls] == ["f"]
    assert dialect.calls.count("tool_call") == 1


def test_a_usage_object_is_given_to_the_method_wherever_it_arrives() -> None:
    dialect = Counting()
    usage = {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}
    normalize(body({"content": "Hi"}, usage=usage), "mine", registry=registry_of(dialect))
    stream(
        [chunk({"content": "Hi"}, finish_reason="stop"), {**chunk({}), "choices": [], "usage": usage}],
        dialect,
    )
    assert dialect.calls.count("usage_info") == 2


class InText(OpenAIChatDialect):
    """Reads reasoning and calls that the server writes into the text, and scores under its own key."""

    def reasoning(self, part: dict[str, Any], choice: int, state: MappingState) -> str | None:
        text = part.get("content") or ""
        if text.startswith("(("):
            thought, _, part["content"] = text[2:].partition("))")
            return thought
        return super().reasoning(part, choice, state)

    def tool_calls(
        self, part: dict[str, Any], choice: int, state: MappingState, *, whole: bool
    ) -> Iterator[ToolCallDelta]:
        yield from super().tool_calls(part, choice, state, whole=whole)
        if not state.own(Called).is_done:
            state.own(Called).is_done = True
            yield state.tool_call(index=0, id="t", name="ping", arguments="{}", choice=choice, whole=True)

    def segments(self, part: dict[str, Any], choice: int, state: MappingState) -> Iterable[Segment]:
        return [] if state.own(Called).is_cited else self.cite(state)

    def cite(self, state: MappingState) -> list[Segment]:
        state.own(Called).is_cited = True
        return [Segment(SegmentType.CITATION, "x")]

    def logprobs(self, choice: dict[str, Any], content: str | None) -> tuple[TokenLogprob, ...] | None:
        score = choice.pop("score", None)
        return (
            (TokenLogprob(content or "", score),) if score is not None else super().logprobs(choice, content)
        )


class Called:
    is_done = False
    is_cited = False


@pytest.mark.parametrize(
    "message", [{"content": "((Hm.))Yes"}, {"role": "assistant", "content": "((Hm.))Yes"}]
)
@pytest.mark.parametrize("is_stream", [False, True])
def test_what_an_override_reads_does_not_depend_on_the_fields_around_it(
    message: dict[str, Any], is_stream: bool
) -> None:
    if is_stream:
        events = [chunk(message, score=-0.5), chunk({}, finish_reason="stop")]
        response = stream(events, InText())
    else:
        payload = body(message)
        payload["choices"][0]["score"] = -0.5
        response = normalize(payload, "mine", registry=registry_of(InText()))
    assert (response.reasoning, response.text) == ("Hm.", "Yes")
    assert [call.name for call in response.tool_calls] == ["ping"]
    assert [segment.type for segment in response.segments].count(SegmentType.CITATION) == 1
    assert response.logprobs is not None
    assert [token.logprob for token in response.logprobs] == [-0.5]


class WithRows(OpenAIChatDialect):
    """Reads what its server adds by rows."""

    part_rows = {**OpenAIChatDialect.part_rows, "musing": REASONING, "excuse": REFUSAL}


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_row_more_reads_a_key_of_the_servers_own(is_stream: bool) -> None:
    for part, expected in [
        ({"musing": "Hm.", "content": "Yes"}, ("Hm.", "Yes", None)),
        ({"musing": "Hm."}, ("Hm.", "", None)),
        ({"excuse": "No."}, ("", "", "No.")),
    ]:
        if is_stream:
            response = stream([chunk(part), chunk({}, finish_reason="stop")], WithRows())
        else:
            response = normalize(body(part), "mine", registry=registry_of(WithRows()))
        assert (response.reasoning, response.text, response.refusal) == expected
        assert "choices" not in response.metadata.extensions


class WithRowsOfEvents(OpenAIChatDialect):
    """Reads a greeting, a source and an end beside the choices."""

    event_rows = {
        **OpenAIChatDialect.event_rows,
        "greeting": TEXT,
        "source": FieldRow("segments", lambda holder, key, said, state: _cite(holder, key, said)),
        "why": FINISH,
    }


def _cite(holder: dict[str, Any], key: str, said: ChatSaid) -> None:
    source = ResponseDelta(segment=Segment(SegmentType.CITATION, take_string(holder, key) or ""))
    (said.first if said.whole else said.deltas).append(source)


def test_what_a_row_of_the_event_says_comes_before_the_choices_and_its_end_after_them() -> None:
    choice = {"index": 0, "message": {"content": "Hi"}}
    payload = {"choices": [choice], "greeting": "Oh. ", "source": "s", "why": "length"}
    response = normalize(payload, "mine", registry=registry_of(WithRowsOfEvents()))
    assert (response.text, response.finish_reason) == ("Oh. Hi", "length")
    assert [segment.content for segment in response.segments] == ["s", "Oh. Hi"]
    assert response.metadata.extensions == {}


def test_a_value_of_a_wrong_type_beside_the_choices_is_told_after_them() -> None:
    payload = {**body({"content": "Hi"}), "greeting": 1, "source": "s"}
    with pytest.raises(WireTypeError, match="greeting: expected string") as refused:
        normalize(payload, "mine", registry=registry_of(WithRowsOfEvents()))
    assert refused.value.partial is not None
    assert [segment.content for segment in refused.value.partial.segments][:2] == ["s", "Hi"]


@pytest.mark.parametrize("name", ["event_rows", "choice_rows", "part_rows"])
@pytest.mark.parametrize(
    ("rows", "cause"),
    [
        (
            {"musing": "reasoning"},
            " gives a FieldRow for each text, as in {'musing': REASONING}, not str for 'musing'",
        ),
        ({7: REASONING}, ": the key 7 must be text, as in {'musing': REASONING}, not int"),
        ([REASONING], " gives a FieldRow for each text, as in {'musing': REASONING}, not list"),
    ],
    ids=["word", "number", "list"],
)
def test_rows_of_another_type_are_named_with_their_class_and_form(name: str, rows: Any, cause: str) -> None:
    own_rows = {**getattr(OpenAIChatDialect, name), **rows} if isinstance(rows, dict) else rows
    with pytest.raises(TypeError, match=re.escape(f"Wrong.{name}{cause}")):
        type("Wrong", (OpenAIChatDialect,), {name: own_rows})


def test_choices_of_any_number_of_shapes_are_read_alike() -> None:
    registry = registry_of(OpenAIChatDialect())
    for key in [*(f"mood_{number}" for number in range(120)), "m" * 2000]:
        for _ in range(2):
            response = normalize(body({"content": "Hi", key: 1}), "mine", registry=registry)
            assert response.text == "Hi"
            assert response.metadata.extensions["choices"][0]["message"] == {key: 1}


class Fussy(OpenAIChatDialect):
    """Reads a key of the choice before anything else."""

    def choice_deltas(
        self, choice: dict[str, Any], part: dict[str, Any], index: int, state: MappingState, *, whole: bool
    ) -> Iterable[ResponseDelta]:
        take_string(choice, "mood")
        yield from super().choice_deltas(choice, part, index, state, whole=whole)


def test_the_text_beside_a_value_that_an_override_refuses_is_in_the_partial_answer() -> None:
    payload = body({"content": "Hi"})
    payload["choices"][0]["mood"] = 1
    with pytest.raises(MappingError, match=r"choices\[0\]\.mood: expected string") as refused:
        normalize(payload, "mine", registry=registry_of(Fussy()))
    assert refused.value.partial is not None
    assert refused.value.partial.text == "Hi"


class Looking(OpenAIChatDialect):
    """Looks at the calls of a part before it is read, and says after them that there were some."""

    def choice_deltas(
        self, choice: dict[str, Any], part: dict[str, Any], index: int, state: MappingState, *, whole: bool
    ) -> Iterable[ResponseDelta]:
        deltas = super().choice_deltas(choice, part, index, state, whole=whole)
        count = len(part.get("tool_calls", ()))
        yield from deltas
        yield ResponseDelta(segment=Segment(SegmentType.CITATION, str(count)), choice=index)


def test_an_override_may_look_at_the_part_before_it_asks_for_the_deltas() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    response = normalize(body({"tool_calls": [call]}), "mine", registry=registry_of(Looking()))
    assert [segment.content for segment in response.segments if segment.type == "citation"] == ["1"]
    assert [call.name for call in response.tool_calls] == ["f"]


def test_a_row_names_no_other_word_than_those_of_an_answer() -> None:
    def take(holder: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
        """Take nothing."""

    with pytest.raises(ValueError, match="calls"):
        FieldRow("tool_calls", take, "calls")


def reading_by(rows: dict[str, FieldRow]) -> ChatResponse:
    class Server(OpenAIChatDialect):
        event_rows = rows

    registry = Registry(installed=[])
    registry.register(Server(), "server")
    choice = {"index": 0, "message": {"content": "Hi"}, "finish_reason": "stop"}
    body = {"id": "a1", "model": "m", "created": 1700000000, "meta": {"name": "n"}, "choices": [choice]}
    return normalize(json.dumps(body).encode(), "server", registry=registry)


def test_rows_of_an_event_that_a_subclass_replaces_are_the_only_ones() -> None:
    response = reading_by({"meta.name": MODEL, "id": ID})
    assert (response.id, response.model) == ("a1", "n")
    assert response.metadata.extensions["model"] == "m"
    assert response.metadata.extensions["created"] == 1700000000


def test_a_row_of_the_identity_may_read_it_in_another_way() -> None:
    def take_later(holder: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
        holder[key] += 1
        state.take_created(holder, key)

    rows = {**OpenAIChatDialect.event_rows, "created": FieldRow("created", take_later)}
    standard, later = reading_by(dict(OpenAIChatDialect.event_rows)), reading_by(rows)
    assert (later.created - standard.created).total_seconds() == 1
    assert (later.id, later.model) == ("a1", "m")
