"""Tables of fields: a dialect that says as data what it understands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from itertools import permutations
from typing import Any, ClassVar

import pytest

from crosswalk import ChatResponse, Registry, normalize, normalize_stream
from crosswalk.errors import (
    ErrorInfo,
    ErrorKind,
    IncompleteStreamError,
    PluginError,
    TrailingContentError,
    UnknownEventError,
    UnknownFinishReasonError,
    WireTypeError,
)
from crosswalk.mapping.fields import stated_rows
from crosswalk.plugins import (
    CREATED,
    FINISH,
    ID,
    MODEL,
    REASONING,
    REFUSAL,
    TEXT,
    FieldRow,
    FieldTable,
    FinishReason,
    MappingState,
    Recognition,
    ResponseDelta,
    Said,
    Segment,
    SegmentType,
    TableDialect,
    UsageInfo,
    accept_logprobs,
    calls,
    count,
    counted,
    hookimpl,
    same,
    take_count,
    take_string,
    thaw,
    unknown_event,
)


def take_picture(holder: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
    said.deltas.append(ResponseDelta(segment=Segment(SegmentType.MEDIA, take_string(holder, key) or "")))


def take_logprobs(holder: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
    said.logprobs = accept_logprobs(holder, key)


def refuse_omen(holder: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
    raise unknown_event(holder, "an omen")


TABLE = FieldTable(
    {
        "run": ID,
        "engine": MODEL,
        "began": CREATED,
        "say.text": TEXT,
        "say.by": same("heron"),
        "whole": TEXT,
        "think": REASONING,
        "no": REFUSAL,
        "odds": FieldRow("logprobs", take_logprobs),
        "tools": calls(name="tool", arguments="with"),
        "picture": FieldRow("segments", take_picture),
        "parts[].text": TEXT,
        "parts[].why": FINISH,
        "why": FINISH,
        "omen": FieldRow("error", refuse_omen),
        "used.in": count("prompt_tokens"),
        "used.out": count("completion_tokens"),
        "used.old_out": count("completion_tokens"),
        "used.seen": count("image_input_tokens"),
        "used.all": count("total_tokens"),
    }
)


class Heron(TableDialect):
    """A provider that is nothing but its table."""

    title = "Heron"
    api = "1.2"
    endpoints = ("/v1/stand",)
    fields = TABLE
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = {str(reason): reason for reason in FinishReason}
    marks = ("odds", "say.by")


class BusyHeron(Heron):
    """Reads errors itself. As with each hook of a table's dialect, the method needs no mark."""

    def map_error(self, status: int, body: Any) -> ErrorInfo | None:
        return ErrorInfo(ErrorKind.RATE_LIMIT, f"busy: {body['why']}") if status == 503 else None


class Flock(Heron):
    """Several birds answer, each by its number, and what one of them drank counts as well as what it ate."""

    @staticmethod
    def take_bird(holder: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
        said.choice = take_count(holder, key) or 0

    fields = FieldTable(
        {
            "flock[].bird": FieldRow("choice", take_bird),
            "flock[].say": TEXT,
            "flock[].tools": calls(name="tool", arguments="with"),
            "flock[].odds": FieldRow("logprobs", take_logprobs),
            "flock[].why": FINISH,
            "used.eaten": count("completion_tokens"),
            "used.drunk": count("reasoning_tokens"),
        }
    )

    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        counts = self.fields.accept_counts(event)
        return counted({"completion_tokens": sum(counts.values())} if counts else {}, state)


def test_the_items_of_an_array_may_be_answers_of_their_own() -> None:
    tool = {"id": "c1", "tool": "fish", "with": "{}"}
    odds = [{"token": "Yo", "logprob": -0.5}]
    response = read(
        {"flock": [{"bird": 1, "say": "Yo", "tools": [tool], "odds": odds}, {"bird": 0, "say": "Hi"}]},
        {
            "flock": [{"bird": 0, "why": "stop"}, {"bird": 1, "why": "length"}],
            "used": {"eaten": 3, "drunk": 2},
        },
        plugin=Flock(),
    )
    other = response.alternatives[0]
    assert (response.text, other.message.content, other.finish_reason) == ("Hi", "Yo", "length")
    assert [call.name for call in other.message.tool_calls] == ["fish"]
    assert [token.token for token in other.logprobs or ()] == ["Yo"]
    assert response.usage.completion_tokens == 5


def test_a_table_may_read_objects_in_the_event() -> None:
    table = FieldTable({"say": TEXT, "by": same(""), "no": same(None)}, at="flock[]")
    assert list(table.rows) == ["flock[].say", "flock[].by", "flock[].no"]
    assert [row.place for row in table.rows.values()] == ["text", "always empty", "always None"]
    assert table.text_paths == ("flock[0].say",)


@pytest.mark.parametrize(("status", "kind"), [(503, ErrorKind.RATE_LIMIT), (500, ErrorKind.SERVER)])
def test_a_table_may_read_errors_by_a_hook(status: int, kind: ErrorKind) -> None:
    registry = Registry(installed=[])
    registry.register(BusyHeron(), "heron")
    response = normalize({"why": "nesting"}, "heron", status=status, registry=registry)
    assert response.error_info is not None
    assert response.error_info.kind is kind
    assert (response.error_info.message == "busy: nesting") is (status == 503)


def read(*events: dict[str, Any], plugin: Any = None) -> ChatResponse:
    registry = Registry(installed=[])
    registry.register(plugin or Heron(), "heron")
    return normalize(b"\n".join(json.dumps(event).encode() for event in events), "heron", registry=registry)


def test_a_table_alone_reads_a_stream() -> None:
    response = read(
        {"run": "r1", "engine": "e", "began": 1_700_000_000, "think": "Hm.", "wind": {"from": "north"}},
        {"run": "r1", "engine": "e", "began": 1_700_000_000, "say": {"by": "heron", "text": "Hel"}},
        {"say": {"by": "heron", "text": "lo"}, "empty": {}},
        {"why": "length", "used": {"in": 3, "out": 2, "seen": 1, "more": 9}},
    )
    assert (response.text, response.reasoning, response.finish_reason) == ("Hello", "Hm.", "length")
    assert (response.id, response.model, response.created.year) == ("r1", "e", 2023)
    assert (response.usage.prompt_tokens, response.usage.details.image_input_tokens) == (3, 1)
    assert response.metadata.extensions == {"wind": {"from": "north"}, "empty": {}, "used": {"more": 9}}


def test_a_dialect_of_a_table_describes_itself_and_is_recognized_by_its_marks() -> None:
    registry = Registry(installed=[])
    registry.register(Heron(), "heron")
    mapper = registry.mapper("heron")
    assert (mapper.info.title, mapper.info.endpoints) == ("Heron", ("/v1/stand",))
    assert (len(mapper.info.text_paths), mapper.is_unmodified) == (len(TABLE.text_paths), True)
    assert mapper.recognizes({"say": {"by": "heron"}}) is Recognition.CERTAIN
    assert {mapper.recognizes(event) for event in ({"say": {}}, {"by": 1}, [], "say")} == {Recognition.NO}


def test_an_error_an_unknown_event_and_an_unknown_word_are_told() -> None:
    failed = read({"whole": "Hel"}, {"error": {"message": "overloaded", "code": 529}})
    assert (failed.text, failed.finish_reason, failed.metadata.extensions) == ("Hel", "error", {})
    assert failed.error_info is not None
    assert failed.error_info.message == "overloaded"
    with pytest.raises(UnknownEventError, match="no field of the table"):
        read({"whole": "Hel"}, {"tide": "low"})
    with pytest.raises(UnknownFinishReasonError):
        read({"whole": "Hel", "why": "rain"})


@pytest.mark.parametrize(
    ("row", "call"),
    [
        (calls(), {"id": "c1", "name": "fly", "arguments": '{"to":"sea"}'}),
        (calls(function="function"), {"id": "c1", "function": {"name": "fly", "arguments": {"to": "sea"}}}),
        (calls("Id", "Name", "With"), {"Id": "c1", "Name": "fly", "With": '{"to":"sea"}'}),
    ],
)
def test_calls_are_read_by_their_row(row: FieldRow, call: dict[str, Any]) -> None:
    class Caller(Heron):
        fields = FieldTable({"run": ID, "tools": row, "why": FINISH})

    first, second = read(
        {"tools": [call, {**call, "id": "c2", "Id": "c2"}], "why": "stop"}, plugin=Caller()
    ).tool_calls
    assert (first.id, first.name, first.parsed(), second.id) == ("c1", "fly", {"to": "sea"}, "c2")


def test_calls_segments_and_other_words_come_in_the_canonical_order_whatever_the_order_of_keys() -> None:
    event = {
        "why": "stop",
        "picture": "p",
        "tools": [{"tool": "fly", "with": "{}"}],
        "no": "Not now",
        "odds": [{"token": "Hi", "logprob": -1.0}],
        "say": {"text": "Hi"},
    }
    readings = [read(dict(order)) for order in [*permutations(event.items())][::29]]
    first = readings[0]
    assert [segment.type.value for segment in first.segments] == ["text", "refusal", "tool_call", "media"]
    assert (first.refusal, first.logprobs[0].token, first.finish_reason) == ("Not now", "Hi", "tool_calls")
    assert {(each.segments, each.tool_calls, each.refusal, each.logprobs) for each in readings} == {
        (first.segments, first.tool_calls, first.refusal, first.logprobs)
    }
    assert not first.metadata.extensions


@pytest.mark.parametrize(
    ("event", "place"),
    [
        ({"say": {"text": 7}, "think": "Hm.", "whole": "kept", "why": "stop"}, "say.text"),
        ({"run": {"a": 1}, "whole": "kept", "why": "stop"}, "run"),
        ({"whole": "kept", "say": ["no object"], "why": "stop"}, "say"),
        ({"whole": "kept", "parts": [{"text": 1}, {"text": "kept"}]}, "parts[0].text"),
        ({"whole": "kept", "why": False, "tools": [{"tool": 1}]}, "tools[0].tool"),
    ],
)
def test_a_wrong_type_is_told_when_the_rest_has_been_read(event: dict[str, Any], place: str) -> None:
    with pytest.raises(WireTypeError) as caught:
        read(event)
    assert f"event 1, {place}: expected" in str(caught.value)
    assert caught.value.partial is not None
    assert caught.value.partial.text.startswith("kept")


def test_what_says_the_same_again_is_taken_and_what_differs_stays() -> None:
    again = read({"say": {"text": "Hi"}, "whole": "Hi", "parts": [{"text": ""}], "why": "stop"})
    other = read({"say": {"text": "Hi", "by": "stork"}, "whole": "Ho", "engine": "e", "why": "stop"})
    assert (again.text, again.metadata.extensions) == ("Hi", {})
    assert (other.text, other.metadata.extensions) == ("Hi", {"say": {"by": "stork"}, "whole": "Ho"})
    assert read({"say": {"text": "Hi"}, "whole": "", "why": "stop"}).metadata.extensions == {}
    later = read({"engine": "e", "whole": "Hi"}, {"engine": "f", "began": None, "think": None, "why": "stop"})
    assert (later.model, later.metadata.extensions) == ("e", {"engine": "f", "began": None})


def test_of_two_rows_with_a_count_the_first_decides_whatever_the_order_in_the_event() -> None:
    for used in ({"old_out": 5, "out": 2}, {"out": 2, "old_out": 5}):
        response = read({"whole": "Hi", "why": "stop", "used": used})
        assert response.usage.completion_tokens == 2
        assert response.metadata.extensions == {"used": {"old_out": 5}}
    assert read({"why": "stop", "used": {"out": 2, "old_out": 2}}).metadata.extensions == {}
    assert read({"why": "stop", "used": {"old_out": 5}}).usage.completion_tokens == 5


def test_a_count_of_0_that_was_sent_is_known_also_if_a_later_event_does_not_repeat_it() -> None:
    none_of = {"in": None, "out": None}
    for first, last in (({"in": 0, "out": 1}, {"out": 2}), ({"in": 1, "out": 0}, {"in": 0})):
        response = read({"used": none_of | first, "whole": "Hi"}, {"used": none_of | last, "why": "stop"})
        assert (response.usage.prompt_tokens, "usage" in response.metadata.provenance) == (0, False)
        assert response.usage.completion_tokens == (last.get("out") or 0)
        assert not {"usage.prompt_tokens", "usage.completion_tokens"} & response.metadata.provenance.keys()
    unknown = read({"used": {"out": 1}, "whole": "Hi"}, {"used": {"out": 2}, "why": "stop"})
    assert unknown.metadata.provenance["usage.prompt_tokens"] == "absent"


def test_a_total_is_taken_if_it_is_the_sum() -> None:
    def left(used: dict[str, Any]) -> dict[str, Any]:
        return read({"whole": "Hi", "why": "stop", "used": used}).metadata.extensions.thawed()

    assert (
        left({"in": 3, "out": 2, "all": 5}) == left({"in": 3, "all": 3}) == left({"in": 3, "all": None}) == {}
    )
    assert left({"in": 3, "out": 2, "all": 6}) == {"used": {"all": 6}}
    assert left({"out": 2, "all": 2}) == {"used": {"all": 2}}
    assert left({"in": 3, "all": "3"}) == {"used": {"all": "3"}}


def test_a_count_of_a_wrong_type_stays_and_is_noted() -> None:
    mistyped = read({"whole": "Hi", "why": "stop", "used": {"in": "3", "out": 2}, "began": "noon"})
    assert mistyped.metadata.extensions == {"used": {"in": "3"}, "began": "noon"}
    assert mistyped.metadata.provenance["metadata.extensions.used.in"] == "mistyped"
    assert mistyped.metadata.provenance["metadata.extensions.began"] == "mistyped"


def test_each_object_of_an_array_speaks_for_itself() -> None:
    parts = [{"text": "Hel", "mood": "calm"}, {"text": "lo"}, {"why": "length"}]
    response = read({"parts": parts})
    assert (response.text, response.finish_reason) == ("Hello", "length")
    assert response.metadata.extensions == {"parts": [{"mood": "calm"}, {}, {}]}
    assert read({"parts": [{"text": "Hello"}], "why": "stop"}).metadata.extensions == {}


def test_an_empty_finish_word_is_no_end() -> None:
    assert read({"whole": "Hel", "why": ""}, {"whole": "lo", "why": "stop"}).text == "Hello"
    with pytest.raises(IncompleteStreamError):
        read({"whole": "Hel", "why": ""})


def test_another_id_after_the_end_is_another_answer() -> None:
    with pytest.raises(TrailingContentError):
        read({"run": "r1", "whole": "Hi", "why": "stop"}, {"run": "r2"})


def test_an_unknown_event_keeps_what_stands_beside_it() -> None:
    with pytest.raises(Exception, match="an omen") as caught:
        read({"omen": 1, "whole": "Hi"})
    partial: Any = caught.value
    assert partial.partial.text == "Hi"


def test_an_override_of_the_hook_reads_in_place_of_the_table() -> None:
    class Louder(Heron):
        @hookimpl
        def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
            event["whole"] = event["whole"].upper()
            return super().map_delta(event, state)

    assert read({"whole": "a"}, {"whole": "b"}, {"whole": "c", "why": "stop"}, plugin=Louder()).text == "ABC"


def test_a_table_tells_its_rows_and_the_paths_of_its_texts() -> None:
    assert {path: row.place for path, row in TABLE.rows.items()} == {
        "run": "id", "engine": "model", "began": "created", "say.text": "text", "say.by": "always heron",
        "whole": "text", "think": "reasoning", "no": "refusal", "odds": "logprobs", "tools": "tool_calls",
        "picture": "segments", "parts[].text": "text", "parts[].why": "finish_reason", "why": "finish_reason",
        "omen": "error", "used.in": "usage.prompt_tokens", "used.out": "usage.completion_tokens",
        "used.old_out": "usage.completion_tokens", "used.seen": "usage.image_input_tokens",
        "used.all": "usage.total_tokens",
    }  # fmt: skip
    assert TABLE.text_paths == ("say.text", "whole", "think", "parts[0].text")


def test_a_path_with_a_row_leads_to_no_other() -> None:
    with pytest.raises(ValueError, match="'say' has a row of its own"):
        FieldTable({"say": TEXT, "say.text": TEXT})


@pytest.mark.parametrize("path", ["", "say..text", ".text", "a[x]", "[2", "[]", "a[].[1]"])
def test_a_path_that_leads_nowhere_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"{path!r} is no path of a row")):
        FieldTable({path: TEXT})


PLACES = FieldTable(
    {"[0]": same("tick"), "[1]": TEXT, "[2][0].why": FINISH, "[3]": count("completion_tokens"), "[4]": calls(),
     "[5][][1]": REASONING}
)  # fmt: skip


class Ticker(TableDialect):
    """A server whose events are arrays."""

    title = "Ticker"
    fields = PLACES
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = {"done": FinishReason.STOP}


def ticked(*events: Any) -> ChatResponse:
    registry = Registry(installed=[], environ={})
    registry.register(Ticker(), "ticker")
    body = b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in events)
    stream = normalize_stream([body], "ticker", registry=registry)
    assert [*stream]
    return stream.response


def test_a_place_in_an_array_has_a_row() -> None:
    call = {"id": "c", "name": "look", "arguments": {}}
    response = ticked(
        ["tick", "Hel", None, None, [call], [["a", "Hm"], ["b", "."]]],
        ["tick", "lo", None, 4, None, None, "more"],
        ["tock", None, [{"why": "done"}]],
    )
    assert (response.text, response.reasoning, response.finish_reason) == ("Hello", "Hm.", "tool_calls")
    assert response.usage.completion_tokens == 4
    assert [one.name for one in response.message.tool_calls or ()] == ["look"]
    left = thaw(response.metadata.extensions["event"])
    assert [item for item in left if item is not None] == [[["a", None], ["b", None]], "more", "tock"]


@pytest.mark.parametrize(
    ("event", "place"),
    [
        (["tick", 7], "[1]"),
        (["tick", "x", {}], "[2]"),
        (["tick", "x", [{"why": 1}]], "[2][0].why"),
        (["tick", "x", None, None, None, [["a", 3]]], "[5][0][1]"),
        (["tick", "x", None, None, None, ["a"]], "[5]"),
    ],
)
def test_a_wrong_type_at_a_place_is_told_with_the_place(event: Any, place: str) -> None:
    with pytest.raises(WireTypeError) as caught:
        ticked(event)
    assert caught.value.place == f"event 1, {place}"
    with pytest.raises(UnknownEventError):
        ticked([])


def test_an_array_has_places_and_an_object_has_keys() -> None:
    assert FieldTable({"[1]": TEXT, "[2].say": TEXT}).text_paths == ()
    assert FieldTable({"rows[][1]": TEXT}).text_paths == ("rows[0][1]",)
    with pytest.raises(ValueError, match="an object has no places, and an array no keys"):
        FieldTable({"a[1]": TEXT, "a.b": TEXT})


def test_a_count_that_there_is_not_is_refused_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="no count 'promt_tokens', did you mean 'prompt_tokens'?"):
        count("promt_tokens")


# A shipped dialect that is a table.


def line(**fields: Any) -> bytes:
    return json.dumps({"model": "m", "created_at": "2026-11-20T09:48:01.371791713Z", **fields}).encode()


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"fields": {"text": TEXT}}, "fields is a FieldTable, as in FieldTable({'text': TEXT}), not dict"),
        ({"fields": None}, "fields is a FieldTable, as in FieldTable({'text': TEXT}), not NoneType"),
        ({"finish_reasons": [("done", FinishReason.STOP)]},
         "finish_reasons gives a FinishReason for each text, as in {'done': FinishReason.STOP}, not list"),
        ({"finish_reasons": {"done": "stopped"}},
         "finish_reasons gives a FinishReason for each text, as in {'done': FinishReason.STOP}, not str for 'done'"),
        ({"finish_reasons": {1: FinishReason.STOP}},
         "finish_reasons: the key 1 must be text, as in {'done': FinishReason.STOP}, not int"),
        ({"marks": "said.by"}, "marks is a tuple of strings, as in ('said.by',), not 'said.by'"),
        ({"marks": (1,)}, "marks is a tuple of strings, as in ('said.by',), not '(1,)'"),
    ],
    ids=["dict", "none", "list", "word", "code", "text", "number"],
)  # fmt: skip
def test_an_attribute_of_another_type_is_named_with_its_form(
    attributes: dict[str, Any], message: str
) -> None:
    registry = Registry(installed=[], environ={})
    registry.register(type("Wrong", (Heron,), attributes)(), "wrong")
    with pytest.raises(
        PluginError, match=re.escape(f"provider 'wrong': provider_info failed: TypeError: {message}")
    ):
        normalize(b'{"text":"x"}', "wrong", registry=registry)


def test_an_attribute_with_nearly_the_name_of_a_declaration_is_warned_of() -> None:
    words = {
        "finish_reason": {},
        "sentinal": True,
        "repeat_finish": True,
        "mark": ("text",),
        "own": 1,
        "_field": 2,
    }
    registry = Registry(installed=[], environ={})
    registry.register(type("Near", (Heron,), words)(), "near")
    with pytest.warns(UserWarning, match="declares nothing") as caught:
        registry.mapper("near")
    assert [str(warning.message) for warning in caught] == [
        "Near.finish_reason declares nothing, did you mean 'finish_reasons'?",
        "Near.sentinal declares nothing, did you mean 'sentinel'?",
        "Near.repeat_finish declares nothing, did you mean 'repeats_finish'?",
    ]


def test_a_function_of_a_row_gets_four_arguments() -> None:
    with pytest.raises(
        TypeError, match="<lambda>, of the row 'text', gets holder, key, said, state: too many"
    ):
        FieldRow("text", lambda holder, key: None)  # type: ignore[arg-type, misc]
    with pytest.raises(TypeError, match="str, of the row 'text', gets"):
        FieldRow("text", "text")  # type: ignore[arg-type]


@pytest.mark.parametrize("keys", [{"id": 5}, {"name": None}, {"arguments": ["args"]}, {"function": 1}])
def test_the_keys_of_a_call_are_strings(keys: Any) -> None:
    with pytest.raises(TypeError, match="the keys of a call are strings"):
        calls(**keys)


@pytest.mark.parametrize(
    ("rows", "cause"),
    [
        ([("text", TEXT)], " gives a FieldRow for each text, as in {'said.text': TEXT}, not list"),
        ({"text": "text"}, " gives a FieldRow for each text, as in {'said.text': TEXT}, not str for 'text'"),
        ({1: TEXT}, ": the key 1 must be text, as in {'said.text': TEXT}, not int"),
    ],
    ids=["list", "word", "number"],
)
def test_a_row_of_another_type_is_named_with_its_form(rows: Any, cause: str) -> None:
    with pytest.raises(TypeError, match=re.escape(f"a table{cause}")):
        FieldTable(rows)


@pytest.mark.parametrize(
    "fields",
    [
        {"message": {"content": "Hi", "images": ["aGk="]}, "done": True, "done_reason": "stop"},
        {"response": "Hi", "images": ["aGk="], "done": True, "done_reason": "stop"},
    ],
    ids=["chat", "generate"],
)
def test_ollamas_images_are_segments(fields: dict[str, Any]) -> None:
    response = normalize(line(**fields), "ollama")
    media = [segment for segment in response.segments if segment.type is SegmentType.MEDIA]
    assert (response.text, [segment.content for segment in media]) == ("Hi", ["aGk="])
    assert response.metadata.extensions.keys() == {"created_at"}


def test_a_line_that_is_done_ends_with_its_word_although_it_shows_the_prompt() -> None:
    prompt = {"rendered_template": "Hi"}
    done = normalize(
        line(message={"content": ""}, done=True, done_reason="length", _debug_info=prompt), "ollama"
    )
    shown = normalize(line(message={"content": ""}, done=False, _debug_info=prompt), "ollama")
    assert (done.finish_reason, shown.finish_reason) == ("length", "stop")
    assert shown.metadata.provenance["finish_reason"] == "derived"


def test_a_line_without_a_message_and_a_response_is_unknown() -> None:
    first = line(message={"content": "Hi"}, done=False)
    with pytest.raises(UnknownEventError, match="no message and no response"):
        normalize(first + b"\n" + line(done=True), "ollama")


def test_an_object_that_keeps_something_stays() -> None:
    response = normalize(line(message={"content": "Hi", "mood": "calm"}, done=True), "ollama")
    assert response.metadata.extensions["message"] == {"mood": "calm"}
    assert (
        "message" not in normalize(line(message={}, response="Hi", done=True), "ollama").metadata.extensions
    )


@pytest.mark.parametrize("path", ["rows[].used", "usage[2]", "[1][0]"])
def test_a_count_where_none_is_read_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="a count is read in objects"):
        FieldTable({"text": TEXT, path: count("prompt_tokens")})


def test_a_row_without_a_function_takes_its_silent_values_alone() -> None:
    class Quiet(TableDialect):
        title, api, endpoints = "Quiet", "1.4", ("/v1/quiet",)
        fields = FieldTable({"text": TEXT, "notes": FieldRow("always []", None, silent=([],)), "why": FINISH})
        finish_reasons: ClassVar[Mapping[str, FinishReason]] = {"stop": FinishReason.STOP}

    registry = Registry(installed=[])
    registry.register(Quiet(), "quiet")
    for notes, expected in ([], {}), ([1], {"notes": [1]}), (None, {"notes": None}):
        response = normalize({"text": "Hi", "notes": notes, "why": "stop"}, "quiet", registry=registry)
        assert (response.text, response.metadata.extensions) == ("Hi", expected)


# Objects of several types, each with a table of its own.


class TypedSaid(Said):
    """What an event says, and how many pieces there were."""

    pieces = 0


def take_piece(event: dict[str, Any], key: str, said: TypedSaid, state: MappingState) -> None:
    said.pieces += 1
    piece = event[key]
    if (table := PIECES.get(piece.pop("type", None))) is None:
        raise unknown_event(event, "a piece of no type")
    table.read(piece, said, state)


PIECES = {"words": FieldTable({"text": TEXT}), "idea": FieldTable({"text": REASONING, "why[0]": FINISH})}


class Typed:
    """A wire with a table for each type of event, and for each type of piece."""

    fields: ClassVar[Mapping[str, FieldTable]] = {
        "piece": FieldTable({"piece": FieldRow("segments", take_piece, inside=PIECES)}),
        "ends": FieldTable({"why": FINISH, "used.in": count("prompt_tokens")}),
    }
    other_fields = FieldTable({"[1]": TEXT})
    words: ClassVar[Mapping[str, str]] = {"a": "b"}

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
        said = TypedSaid()
        self.fields[event.pop("type")].read(event, said, state)
        said.deltas += [ResponseDelta(content_delta=".")] * said.pieces
        return [*said.speak()]

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        return self.fields["ends"].map_usage(event, state)

    @hookimpl
    def map_finish_reason(self, reason: str) -> FinishReason | None:
        return FinishReason.STOP if reason == "stop" else None


def test_a_row_reads_what_is_inside_by_the_table_of_its_type() -> None:
    response = read(
        {"type": "piece", "piece": {"type": "words", "text": "Hi", "mood": 1}},
        {"type": "piece", "piece": {"type": "idea", "text": "Why"}},
        {"type": "ends", "why": "stop", "used": {"in": 3}},
        plugin=Typed(),
    )
    assert (response.text, response.reasoning, response.usage.prompt_tokens) == ("Hi..", "Why", 3)
    assert response.metadata.extensions == {"piece": {"mood": 1}}


def test_the_rows_of_each_type_are_stated_apart() -> None:
    assert [{path: row.place for path, row in rows.items()} for rows in stated_rows(Typed())] == [
        {"piece": "segments", "piece.text": "text"},
        {"piece": "segments", "piece.text": "reasoning", "piece.why[0]": "finish_reason"},
        {"why": "finish_reason", "used.in": "usage.prompt_tokens"},
        {"[1]": "text"},
    ]


def test_a_dialect_without_a_table_may_state_rows_by_type() -> None:
    class Stating:
        finish_reasons: ClassVar[Mapping[str, FinishReason]] = {"stop": FinishReason.STOP}
        rows: ClassVar[Mapping[str, Mapping[str, FieldRow]]] = {
            "whole": {"text": TEXT},
            "piece": {"delta": TEXT, "why": FieldRow("finish_reason", None)},
        }

    assert stated_rows(Stating()) == [*Stating.rows.values()]


@pytest.mark.parametrize("inside", [7, {"say": TEXT}])
def test_inside_a_row_are_tables(inside: Any) -> None:
    with pytest.raises(TypeError, match="inside, of the row 'segments', gives a FieldTable"):
        FieldRow("segments", take_piece, inside=inside)
