from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson
import pytest

from crosswalk import normalize
from crosswalk.errors import ConfigurationError
from crosswalk.records import (
    Record,
    RecordError,
    layout_of_lines,
    layouts,
    load_layout,
    parse_path,
    read_record,
    stated_response,
    with_facts,
    with_fields,
)
from crosswalk.types import ChatResponse, Provenance

from .log_lines import CHAT, FAILURES, ISO, KINDS, MESSAGE, TIME, Kind, attributes


def read(line: Any, **options: Any) -> Record:
    return read_record(orjson.dumps(line), **options)


def response(record: Record) -> ChatResponse:
    if not record.has_answer:
        return stated_response(record)
    provider = record.provider or record.server or "openai"
    try:
        found = normalize(record.body, record.provider, status=record.status or 200)
    except ValueError:
        found = normalize(record.body, provider, status=record.status or 200)
    return with_facts(found, record)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_each_kind_of_line_says_when_who_what_and_how(kind: Kind) -> None:
    record = read(kind.line, layout=with_fields(None, kind.fields) if kind.fields else None)
    latency = None if record.latency is None else record.latency.total_seconds()
    assert (record.layout, record.created, record.model, record.vendor, record.status) == (
        kind.layout,
        kind.time,
        kind.model,
        kind.vendor,
        kind.status,
    )
    assert (record.id, latency, record.cost) == (
        kind.id,
        kind.latency,
        None if kind.cost is None else Decimal(kind.cost),
    )


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_each_kind_of_line_holds_its_answer(kind: Kind) -> None:
    found = response(read(kind.line, layout=with_fields(None, kind.fields) if kind.fields else None))
    assert (found.text, found.finish_reason, found.metadata.provider_id) == ("Hi", "stop", kind.provider)
    assert (found.usage.prompt_tokens, found.usage.completion_tokens) == (3, 2)


@pytest.mark.parametrize(("line", "kind", "message"), FAILURES.values(), ids=FAILURES)
def test_a_failure_without_an_answer_is_an_error(line: Any, kind: str, message: str) -> None:
    info = response(read(line)).error_info
    assert info is not None
    assert (info.kind, info.message) == (kind, message)


def test_a_response_has_the_facts_that_the_answer_lacks() -> None:
    found = response(
        read({"body": {**MESSAGE, "model": None}, "created": ISO, "model": "claude-y", "duration_seconds": 2})
    )
    assert (found.model, found.metadata.model_id, found.created) == ("claude-y", "claude-y", TIME)
    assert found.metadata.request_duration == timedelta(seconds=2)
    derived = {path for path, word in found.metadata.provenance.items() if word is Provenance.DERIVED}
    assert derived >= {"model", "created", "metadata.request_duration"}


def test_what_the_answer_says_itself_is_left_alone() -> None:
    found = response(read({"body": CHAT, "created": ISO, "model": "gpt-y", "provider": "openai"}))
    assert (found.model, found.created.timestamp()) == ("gpt-x-2026", 1795168801)
    assert not {"model", "created"} & found.metadata.provenance.keys()


def test_a_log_that_keeps_no_finish_word_gets_a_made_up_one() -> None:
    found = response(read(KINDS["Langfuse, a message"].line))
    assert found.metadata.provenance["finish_reason"] is Provenance.SYNTHETIC
    assert "finish_reason" not in response(read(KINDS["an OTLP span"].line)).metadata.provenance


def test_messages_of_telemetry_have_reasoning_and_calls() -> None:
    call = {"type": "tool_call", "id": "c1", "name": "look", "arguments": {"city": "Oslo"}}
    parts = [
        {"type": "reasoning", "content": "hm"},
        call,
        {**call, "id": "c2", "arguments": "{}"},
        {**call, "id": "c3", "arguments": None},
    ]
    message = {"role": "assistant", "parts": parts, "finish_reason": "tool_call"}
    line = {**KINDS["an OTLP span"].line, "attributes": attributes(
        gen_ai__operation__name={"stringValue": "chat"},
        gen_ai__output__messages={"arrayValue": {"values": [message]}},
    )}  # fmt: skip
    found = response(read(line))
    assert (found.finish_reason, found.reasoning) == ("tool_calls", "hm")
    assert [(one.id, one.arguments) for one in found.message.tool_calls] == [
        ("c1", '{"city":"Oslo"}'),
        ("c2", "{}"),
        ("c3", "{}"),
    ]


@pytest.mark.parametrize(
    ("output", "cause"),
    [
        ({"role": "assistant", "parts": [{"type": "blob"}]}, "the answer: a message part that is not text, reasoning or tool_call"),
        ({"role": "assistant", "parts": ["Hi"]}, "the answer: a message part that is not text, reasoning or tool_call"),
        (7, "the answer: expected a message, got number"),
    ],
)  # fmt: skip
def test_other_parts_of_a_message_are_refused(output: Any, cause: str) -> None:
    with pytest.raises(RecordError) as found:
        read(KINDS["Langfuse, a message"].line | {"output": output, "usageDetails": {}, "usage": {}})
    assert str(found.value) == cause


def test_text_that_only_looks_like_json_is_text() -> None:
    assert response(read(KINDS["Langfuse, a message"].line | {"output": "{oops"})).text == "{oops"


def test_each_layout_names_its_document() -> None:
    for name, layout in layouts().items():
        assert layout.title, name
        assert layout.document.startswith(("https://", "http://", "docs/")), name


@pytest.mark.parametrize(
    ("line", "field", "cause"),
    [
        ({"a": "x"}, "is_finish_unknown=a", "a: expected true or false"),
        ({"a": "x"}, "cost=a", "a: expected an amount of money"),
        ({"a": []}, "cost=a", "a: expected an amount of money"),
        ({"a": 1e18}, "cost=a", "a: expected an amount of money"),
        ({"a": 99}, "status=a", "a: expected an HTTP status"),
        ({"a": "20"}, "status=a", "a: expected an HTTP status"),
        ({"a": 1.5}, "id=a", "a: expected a string, got number"),
    ],
)  # fmt: skip
def test_a_field_that_was_named_has_to_be_readable(line: dict[str, Any], field: str, cause: str) -> None:
    name, _, path = field.partition("=")
    with pytest.raises(RecordError) as found:
        read({"body": CHAT, "id": "r1", **line}, layout=with_fields(None, {name: path}))
    assert str(found.value) == cause
    assert found.value.exchange is not None
    assert found.value.exchange.id == (None if name == "id" else "r1")


@pytest.mark.parametrize("value", ["x", True, 1e300, "0001-01-01T00:00:00+14:00", -1e300])
@pytest.mark.parametrize("name", ["created", "ended", "latency"])
def test_a_time_in_an_odd_form_is_left_out(name: str, value: Any) -> None:
    record = read({"body": CHAT, "a": value}, layout=with_fields(None, {name: "a"}))
    assert (record.created, record.latency, record.body) == (None, None, orjson.dumps(CHAT))


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        (-1, "a duration that is not negative"),
        ("x", "a duration: a number (@ms, @us, @ns name its unit)"),
        (1e300, "a duration: a number (@ms, @us, @ns name its unit)"),
    ],
)
def test_a_layout_may_insist_on_a_duration(tmp_path: Path, value: Any, cause: str) -> None:
    file = tmp_path / "own.toml"
    file.write_text('strict = ["latency"]\n[fields]\nresponse = "body"\nlatency = "a"\n')
    with pytest.raises(RecordError) as found:
        read({"body": CHAT, "a": value}, layout=load_layout(str(file)))
    assert str(found.value) == f"a: expected {cause}"


def test_a_layout_may_require_an_item_of_an_array(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text('requires = ["choices.1"]\n[fields]\nresponse = "body"\n')
    layout = load_layout(str(file))
    assert [layout.fits({"choices": [{}] * count}) for count in (0, 1, 2)] == [False, False, True]


def test_a_field_that_was_not_named_may_be_anything() -> None:
    record = read(
        {
            "body": CHAT,
            "created": "noon",
            "duration_seconds": "long",
            "model": 7.5,
            "cost": "free",
            "tags": 1,
            "request": 2,
        }
    )
    assert (record.created, record.latency, record.model, record.cost) == (None, None, None, None)
    assert (record.tags, record.request) == ("1", "2")


def test_times_without_a_zone_are_utc_and_numbers_may_be_text() -> None:
    assert read({"body": CHAT, "created": "2026-11-20 10:00:00.25"}).created == TIME
    assert read({"body": CHAT, "created": "1795168800.25"}).created == TIME
    assert read({"body": CHAT, "created": TIME.replace(tzinfo=None).isoformat() + "+00:00"}).created == TIME


def test_values_are_kept_as_text() -> None:
    keep = {name: parse_path(path) for name, path in {"tenant": "a.tenant", "n": "n", "gone": "b"}.items()}
    record = read({"body": CHAT, "a": {"tenant": "kelp"}, "n": [1]}, keep=keep)
    assert record.kept == {"tenant": "kelp", "n": "[1]", "gone": None}


def test_an_id_stays_where_the_answer_is_missing() -> None:
    with pytest.raises(RecordError) as found:
        read({"custom_id": "order-17", "response": None, "error": None})
    assert found.value.exchange is not None
    assert found.value.exchange.id == "order-17"


def test_a_line_of_two_layouts_has_to_be_told() -> None:
    line = KINDS["Helicone"].line | KINDS["LiteLLM"].line
    with pytest.raises(RecordError, match="several layouts fit; name one with --layout: helicone, litellm"):
        read(line)
    assert read(line, layout=load_layout("litellm")).vendor == "azure"
    assert layout_of_lines([orjson.dumps(line)]) is None


def test_the_first_lines_have_a_layout_in_common() -> None:
    lines = [b"oops", b"[]", *[orjson.dumps(KINDS["LiteLLM"].line)] * 20]
    layout = layout_of_lines(lines)
    assert layout is not None
    assert layout.name == "litellm"
    assert layout_of_lines([*lines[:4], orjson.dumps(CHAT)]) is None
    assert layout_of_lines([*lines, orjson.dumps(CHAT)]) is layout  # the 23rd
    assert layout_of_lines([]) is None


def test_a_layout_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "ours.toml"
    file.write_text(
        'dialect = "openai"\n[fields]\nresponse = ["deep.answer", "answer"]\ncreated = "@timestamp"\nlatency = "took@us"\n'
    )
    layout = load_layout(str(file))
    record = read({"answer": CHAT, "@timestamp": ISO, "took": 1500}, layout=layout)
    assert (record.layout, record.created, record.provider) == ("ours", TIME, "openai")
    assert record.latency == timedelta(microseconds=1500)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("[", "Invalid"),
        ("name = 1", "unknown key 'name'; a layout has"),
        ("[fields]\nanswer = 'a'", "no field 'answer'; there are id, created"),
        ("[fields]\nid = 'a'", "a layout must locate the answer or its counts"),
        (
            "excludes = ['x']\n[states]\nprompt_tokens = 'a'",
            "excludes: no count 'x'; there are cache_write_tokens, cached_tokens, reasoning_tokens",
        ),
        ("[fields]\nresponse = 'a'\n[failed]\nstatus = 'failure'", "status: expected the values in an array"),
        ("[fields]\nresponse = 'a'\n[no_answer]\nstatus = []", "status: expected the values in an array"),
        ("[states]\ntokens = 'a'", "no field 'tokens'; there are prompt_tokens"),
        ("[fields]\nresponse = 'a..b'", "a path is keys"),
        ("[fields]\nresponse = 'a'\ncreated = ['a@ms', 'b']", "one field has one unit"),
        ("[fields]\nresponse = 'a'\n[when]\nkind = 'llm'", "kind: expected the values in an array"),
    ],
)
def test_a_file_that_is_not_a_layout_says_why(text: str, cause: str, tmp_path: Path) -> None:
    file = tmp_path / "ours.toml"
    file.write_text(text)
    with pytest.raises(ConfigurationError) as found:
        load_layout(str(file))
    assert str(found.value).startswith(f"{file}: {cause}")


def test_a_layout_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        load_layout(str(tmp_path / "none.toml"))
    with pytest.raises(
        ConfigurationError,
        match="no layout 'kelp'; name a file that ends in .toml, or one of: aider",
    ):
        load_layout("kelp")
    with pytest.raises(ConfigurationError, match="no field 'body'"):
        with_fields(None, {"body": "a"})


def test_an_error_beside_no_answer_may_be_a_word() -> None:
    found = response(read({"key": "r1", "error": "gone"}))
    assert found.error_info is not None
    assert found.error_info.message == "gone"


def test_a_request_that_is_damaged_names_no_model() -> None:
    assert read({"body": CHAT, "request": "{oops"}).model is None
    assert read({"body": CHAT, "request": '{"model":"m"}'}).model == "m"


def test_a_request_that_is_nested_too_deeply_is_left_out() -> None:
    deep = b'{"body":"{}","request":' + b'{"a":' * 600 + b"1" + b"}" * 601
    assert read_record(deep).request is None


def test_an_attribute_has_to_be_there() -> None:
    line = KINDS["an OTLP span"].line
    assert load_layout("otlp").fits(line)
    assert not load_layout("otlp").fits({**line, "attributes": line["attributes"][1:]})
    assert not load_layout("otlp").fits({**line, "attributes": "none"})


def test_a_log_whose_first_lines_are_damaged_is_read_all_the_same() -> None:
    layout = layout_of_lines([b'{"oops', b"\xff", orjson.dumps(KINDS["Helicone"].line)])
    assert layout is load_layout("helicone")


def test_a_layout_may_hold_messages_alone(tmp_path: Path) -> None:
    file = tmp_path / "ours.toml"
    file.write_text('[answer]\nmessage = "said"\n[states]\nprompt_tokens = "asked"\n')
    layout = load_layout(str(file))
    assert response(read({"said": "Hi"}, layout=layout)).text == "Hi"
    assert response(read({"asked": 3}, layout=layout)).usage.prompt_tokens == 3
    with pytest.raises(RecordError, match="^said: no answer$"):
        read({}, layout=layout)


@pytest.mark.parametrize(
    ("attribute", "model"),
    [
        ({"stringValue": "m"}, "m"),
        ("m", "m"),
        ({"intValue": "x"}, "x"),
        ({"bytesValue": "eA=="}, None),
        ({"boolValue": True}, None),
    ],
)
def test_attributes_of_telemetry_are_unwrapped(attribute: Any, model: str | None) -> None:
    line = {**KINDS["an OTLP span"].line, "attributes": attributes(
        gen_ai__operation__name={"stringValue": "chat"}, gen_ai__request__model=attribute,
    )}  # fmt: skip
    line["attributes"].append("odd")
    with pytest.raises(RecordError) as found:
        read(line)
    assert found.value.exchange is not None
    assert found.value.exchange.model == model


def test_one_line_of_several_layouts_is_enough_to_ask_each_line() -> None:
    both = orjson.dumps(KINDS["Helicone"].line | KINDS["LiteLLM"].line)
    assert layout_of_lines([orjson.dumps(KINDS["Helicone"].line), both]) is None


def test_a_field_may_be_added_to_a_layout() -> None:
    layout = with_fields(load_layout("litellm"), {"tags": "team"})
    record = read({**KINDS["LiteLLM"].line, "team": "kelp"}, layout=layout)
    assert (record.tags, record.model) == ("kelp", "gpt-x")
