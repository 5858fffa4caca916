"""Lines that do not store the answer count with the facts that they state."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import orjson
import pytest

from crosswalk import normalize
from crosswalk.records import (
    Layout,
    Record,
    RecordError,
    layouts,
    load_layout,
    read_record,
    stated_response,
    with_facts,
)
from crosswalk.types import ChatResponse, IncompleteReason, Provenance

from .log_lines import CHAT, EPOCH, ISO, KINDS, TIME, attributes

SPEND = {
    "request_id": "r1", "call_type": "acompletion", "startTime": ISO, "endTime": "2026-11-20T10:00:01.750Z", "model": "gpt-x",
    "custom_llm_provider": "openai", "spend": 0.01, "prompt_tokens": 950, "completion_tokens": 40, "total_tokens": 990,
    "status": "success", "end_user": "u1", "messages": {}, "response": {},
}  # fmt: skip
"""A row of the spend logs of LiteLLM's proxy, which stores no content by default."""
PAYLOAD = {
    "id": "r1", "call_type": "acompletion", "startTime": EPOCH, "endTime": EPOCH + 1.5, "model": "gpt-x", "status": "success",
    "custom_llm_provider": "openai", "response_cost": 0.01, "prompt_tokens": 950, "completion_tokens": 40, "end_user": "u1",
    "error_str": None, "error_information": {"error_code": "", "error_class": "", "error_message": ""},
    "response": "redacted-by-litellm",
}  # fmt: skip
HELICONE = {
    "request_id": "r1", "request_created_at": ISO, "delay_ms": 1500, "provider": "OPENAI", "request_model": "gpt-x",
    "response_status": 200, "request_body": {}, "response_body": {}, "cost": 0.01, "prompt_tokens": 100, "completion_tokens": 40,
    "prompt_cache_read_tokens": 800, "prompt_cache_write_tokens": 50, "request_user_id": "u1",
}  # fmt: skip
EMBEDDED = {"object": "list", "data": [{"embedding": [0.1], "index": 0}], "usage": {"prompt_tokens": 950}}
WITHOUT_ANSWER: dict[str, dict[str, Any]] = {
    "a spend log": SPEND,
    "a spend log, answers as text": SPEND | {"response": "{}"},
    "a spend log, a column left out": {key: value for key, value in SPEND.items() if key != "response"},
    "a spend log before its column status": SPEND | {"status": None, "metadata": {"status": "success"}},
    "a spend log of older versions": {key: value for key, value in SPEND.items() if key != "status"},
    "a redacted payload": PAYLOAD,
    "a redacted payload of another kind": PAYLOAD | {"response": {"text": "redacted-by-litellm"}},
    "a payload without an answer": PAYLOAD | {"response": None},
    "an embedding": PAYLOAD | {"call_type": "aembedding", "response": EMBEDDED},
    "Helicone, an empty body": HELICONE,
    "Helicone, no body": HELICONE | {"response_body": None},
    "Helicone, a body elsewhere": {key: value for key, value in HELICONE.items() if key != "response_body"}
    | {"signed_body_url": "https://example.com/r1"},
    **{
        f"Helicone, the model as {name}": HELICONE | {"request_model": None, name: "gpt-x"}
        for name in ("response_model", "model", "model_override")
    },
}


def read(line: dict[str, Any], layout: Layout | None = None) -> Record:
    return read_record(orjson.dumps(line), layout=layout)


def mapped(record: Record) -> ChatResponse:
    """The response of *record*, as an application makes it."""
    if not record.has_answer:
        return stated_response(record)
    return with_facts(
        normalize(record.body, record.provider or "openai", status=record.status or 200), record
    )


def own(tmp_path: Path, text: str) -> Layout:
    file = tmp_path / "ours.toml"
    file.write_text(text)
    return load_layout(str(file))


@pytest.mark.parametrize("line", WITHOUT_ANSWER.values(), ids=WITHOUT_ANSWER)
def test_a_line_without_its_answer_counts_with_what_it_states(line: dict[str, Any]) -> None:
    record = read(line)
    assert (record.has_answer, record.body) == (False, b"")
    assert (record.id, record.created, record.model, record.cost) == ("r1", TIME, "gpt-x", Decimal("0.01"))
    assert record.latency is not None
    assert (record.latency.total_seconds(), record.user) == (1.5, "u1")
    found = stated_response(record)
    assert (found.usage.prompt_tokens, found.usage.completion_tokens) == (950, 40)
    assert (found.error_info, found.text, found.id, found.model) == (None, "", "r1", "gpt-x")
    assert (found.created, found.metadata.provider_id) == (TIME, "openai")


def test_stated_values_are_marked_and_an_answer_that_is_not_stored_is_not_complete() -> None:
    found = stated_response(read(HELICONE))
    assert (found.is_complete, found.incomplete_reason) == (False, IncompleteReason.UNKNOWN_FINISH_REASON)
    provenance = found.metadata.provenance
    stated = (
        "prompt_tokens",
        "completion_tokens",
        "cached_tokens",
        "cache_write_tokens",
    )
    assert {provenance[f"usage.{name}"] for name in stated} == {Provenance.DERIVED}
    assert provenance["message.content"] is provenance["finish_reason"] is Provenance.ABSENT
    assert found.metadata.completion_tokens == 40


def test_a_prompt_includes_what_the_log_counts_beside_it() -> None:
    usage = stated_response(read(HELICONE)).usage
    assert (usage.prompt_tokens, usage.cached_tokens, usage.cache_write_tokens) == (950, 800, 50)
    cached = {"prompt_tokens_details": {"cached_tokens": 800}, "cache_creation_input_tokens": 50}
    usage = stated_response(read(SPEND | {"metadata": {"usage_object": cached}})).usage
    assert (usage.prompt_tokens, usage.cached_tokens, usage.cache_write_tokens) == (950, 800, 50)


@pytest.mark.parametrize(
    "line",
    [
        SPEND | {"status": "failure"},
        SPEND | {"status": None, "metadata": {"status": "failure"}},
        HELICONE | {"response_status": 500},
        HELICONE | {"response_status": -1},
    ],
)
def test_a_stated_failure_is_an_error(line: dict[str, Any]) -> None:
    found = mapped(read(line))
    assert found.error_info is not None
    assert found.error_info.message == "the log states a failure without a cause"
    assert found.usage.completion_tokens == 40


def test_a_stated_failure_has_its_cause() -> None:
    metadata = {
        "error_information": {"error_code": "429", "error_class": "RateLimitError", "error_message": "busy"}
    }
    found = mapped(read(SPEND | {"status": "failure", "metadata": metadata}))
    assert found.error_info is not None
    assert (found.error_info.kind, found.error_info.status, found.error_info.message) == (
        "rate_limit",
        429,
        "busy",
    )


def test_a_stated_success_is_no_error_whatever_is_beside_it() -> None:
    assert not read(PAYLOAD | {"error_str": "retried once"}).has_answer


def test_the_counts_of_the_answer_win() -> None:
    found = mapped(
        read(PAYLOAD | {"response": CHAT, "metadata": {"usage_object": {"cache_read_input_tokens": 1}}})
    )
    assert (found.text, found.usage.prompt_tokens, found.usage.cached_tokens) == ("Hi", 3, 1)
    assert "usage.prompt_tokens" not in found.metadata.provenance
    assert found.metadata.provenance["usage.cached_tokens"] is Provenance.DERIVED


def test_an_answer_without_counts_gets_those_that_the_line_states() -> None:
    redacted = {**CHAT, "choices": [{"index": 0, "message": {"role": "assistant", "content": "redacted-by-litellm"},
                                     "finish_reason": "stop"}]}  # fmt: skip
    del redacted["usage"]
    record = read(PAYLOAD | {"response": redacted, "completion_tokens": None})
    found = mapped(record)
    assert record.has_answer
    assert (found.usage.prompt_tokens, found.usage.completion_tokens) == (950, 0)
    provenance = found.metadata.provenance
    assert provenance["usage.prompt_tokens"] is Provenance.DERIVED
    assert provenance["usage.completion_tokens"] is Provenance.ABSENT
    assert found.metadata.completion_tokens is None


@pytest.mark.parametrize(
    ("value", "count"),
    [("40", 40), (40.0, 40), (0, 0), (-1, None), (True, None), (1.5, None), ("x", None), (10**16, None), ("9" * 17, None), ([], None)],
)  # fmt: skip
def test_a_count_is_a_whole_number_in_any_spelling(value: Any, count: int | None) -> None:
    assert read(SPEND | {"completion_tokens": value}).tokens.get("completion_tokens") == count


@pytest.mark.parametrize(
    "line",
    [
        {"startTime": ISO, "endTime": ISO, "call_type": "completion", "response": {}},
        {"startTime": ISO, "endTime": ISO, "call_type": "completion", "response": ""},
    ],
)
def test_a_line_that_states_nothing_has_no_answer(line: dict[str, Any]) -> None:
    with pytest.raises(RecordError, match="^response: no answer$"):
        read(line)


@pytest.mark.parametrize("answer", [EMBEDDED, orjson.dumps(EMBEDDED).decode()], ids=type)
def test_embeddings_are_no_message_and_count_with_their_own_numbers(answer: Any) -> None:
    line = {"startTime": ISO, "endTime": ISO, "call_type": "x", "response": answer}
    found = read(line)
    assert (found.has_answer, found.tokens) == (False, {"prompt_tokens": 950})
    assert read(line | {"prompt_tokens": 8}).tokens == {"prompt_tokens": 8}
    assert read(line | {"response": '{"embedding'}).has_answer


@pytest.mark.parametrize(
    ("word", "model"), [('"m"', "m"), ('"a"b"', '"a"b"'), ('"', '"'), ("m", "m"), ('"1', '"1')]
)
def test_a_name_that_is_written_as_json_is_read(word: str, model: str) -> None:
    assert read(SPEND | {"model": word}).model == model


def test_a_layout_says_for_which_lines_counts_are_left_out(tmp_path: Path) -> None:
    layout = own(
        tmp_path,
        'excludes = ["cached_tokens"]\n[states]\nprompt_tokens = "in"\ncached_tokens = "hit"\n[excludes_when]\nby = ["anthropic"]\n',
    )
    again = Layout.of_description(attrs.asdict(layout))
    for by, count in (("anthropic", 3), ("openai", 1), (None, 1)):
        assert [
            read({"in": 1, "hit": 2, "by": by}, one).tokens["prompt_tokens"] for one in (layout, again)
        ] == [count] * 2


def test_a_log_without_ids_gets_the_same_ids_each_time() -> None:
    lines = [{**SPEND, "request_id": None, "completion_tokens": count} for count in (1, 1, 2)]
    first, again, other = (stated_response(read(line)).id for line in lines)
    assert first == again != other


def test_a_line_without_a_time_gets_one() -> None:
    when = datetime(2026, 1, 1, tzinfo=UTC)
    found = stated_response(read(SPEND | {"startTime": "noon"}), clock=lambda: when)
    assert (found.created, found.metadata.provenance["created"]) == (when, Provenance.SYNTHETIC)


def test_a_layout_of_counts_alone(tmp_path: Path) -> None:
    layout = own(
        tmp_path,
        'excludes = ["cached_tokens"]\n[fields]\nmodel = "m"\n[states]\nprompt_tokens = "in"\ncached_tokens = "hit"\n'
        "[failed]\nok = [false]\n",
    )
    found = stated_response(read({"m": "gpt-x", "in": 1, "hit": 2, "ok": True}, layout))
    assert (found.model, found.usage.prompt_tokens, found.metadata.provider_id) == ("gpt-x", 3, "unknown")
    assert stated_response(read({"hit": 2}, layout)).usage.prompt_tokens == 0
    assert mapped(read({"ok": False}, layout)).error_info is not None
    with pytest.raises(RecordError, match="^response: no answer$"):
        read({"m": "gpt-x"}, layout)


def test_a_value_that_stands_for_an_answer_is_compared_as_json(tmp_path: Path) -> None:
    layout = own(
        tmp_path, '[fields]\nresponse = "a"\n[states]\nprompt_tokens = "in"\n[no_answer]\nkept = [0]\n'
    )
    assert read({"a": CHAT, "in": 1, "kept": False}, layout).has_answer
    assert not read({"a": CHAT, "in": 1, "kept": 0}, layout).has_answer


@pytest.mark.parametrize("name", layouts())
def test_a_layout_can_be_described(name: str) -> None:
    described = orjson.loads(orjson.dumps(attrs.asdict(layouts()[name])))
    assert Layout.of_description(described) == layouts()[name]


def test_langfuse_counts_without_an_output() -> None:
    found = mapped(read(KINDS["Langfuse, a message"].line | {"output": None}))
    assert (found.error_info, found.usage.prompt_tokens, found.usage.completion_tokens) == (None, 3, 2)


CLOUDFLARE = {
    "id": "r1", "created_at": ISO, "duration": 1500, "provider": "openai", "model": "gpt-x", "status_code": 200, "success": True,
    "tokens_in": 950, "tokens_out": 40, "cost": 0.01, "cached": False,
}  # fmt: skip
LANGFUSE = {
    "id": "r1", "traceId": "t1", "type": "GENERATION", "startTime": ISO, "model": "gpt-x", "output": None, "level": "DEFAULT",
    "statusMessage": "from the cache", "costDetails": {"total": 0.01},
    "usageDetails": {"input": 100, "cache_read_input_tokens": 800, "cache_creation_input_tokens": 50, "output": 30,
                     "output_reasoning_tokens": 10, "total": 990},
}  # fmt: skip
PORTKEY = {
    "id": "r1", "created_at": ISO, "ai_org": "openai", "ai_model": "gpt-x", "response_status_code": 200, "response": None,
    "prompt_tokens": None, "req_units": 950, "res_units": 40, "cost": 1, "is_success": True, "metadata": {"_user": "u1"},
}  # fmt: skip
BEDROCK = {
    "timestamp": ISO, "requestId": "r1", "modelId": "gpt-x",
    "input": {"inputTokenCount": 100, "cacheReadInputTokenCount": 800, "cacheWriteInputTokenCount": 50},
    "output": {"outputBodyS3Path": "s3://logs/r1", "outputTokenCount": 40},
}  # fmt: skip
SPAN = {
    "traceId": "t1", "spanId": "r1", "startTimeUnixNano": "1795168800250000000", "status": {},
    "attributes": attributes(
        gen_ai__operation__name={"stringValue": "chat"}, gen_ai__request__model={"stringValue": "gpt-x"},
        gen_ai__usage__input_tokens={"intValue": "950"}, gen_ai__usage__output_tokens={"intValue": "40"},
        gen_ai__usage__cache_read__input_tokens={"intValue": "800"},
    ),
}  # fmt: skip
OTHER_LOGS: dict[str, tuple[dict[str, Any], int | None]] = {
    "Cloudflare's list of logs": (CLOUDFLARE, None),
    "Cloudflare, a cut answer": (CLOUDFLARE | {"response_head": '{"id":"c", "obj', "response_head_complete": False}, None),
    "Langfuse": (LANGFUSE, 800),
    "Langfuse's export": (
        {"id": "r1", "trace_id": "t1", "type": "GENERATION", "start_time": ISO, "model": "gpt-x", "output": "",
         "total_cost": "0.01", "user_id": "u1", "usage_details": LANGFUSE["usageDetails"]},
        800,
    ),
    "Portkey's export": (PORTKEY, None),
    "Bedrock, the answer in S3": (BEDROCK, 800),
    "a span without content": (SPAN, 800),
}  # fmt: skip


@pytest.mark.parametrize(("line", "cached"), OTHER_LOGS.values(), ids=OTHER_LOGS)
def test_other_logs_state_their_counts_too(line: dict[str, Any], cached: int | None) -> None:
    record = read(line)
    found = stated_response(record)
    assert (record.has_answer, found.error_info, found.id, found.model) == (False, None, "r1", "gpt-x")
    assert (found.usage.prompt_tokens, found.usage.completion_tokens, found.usage.cached_tokens) == (
        950,
        40,
        cached,
    )
    assert record.cost in (None, Decimal("0.01"))


@pytest.mark.parametrize(
    "line",
    [
        CLOUDFLARE | {"success": False},
        LANGFUSE | {"level": "ERROR", "statusMessage": None},
        PORTKEY | {"is_success": False},
        BEDROCK | {"errorCode": "ThrottlingException"},
        SPAN | {"status": {"code": 2}},
        SPAN | {"status": {"code": "STATUS_CODE_ERROR", "message": "too slow"}},
    ],
)
def test_other_logs_state_their_failures_too(line: dict[str, Any]) -> None:
    found = mapped(read(line))
    assert found.error_info is not None
    assert found.usage.prompt_tokens == 950


def test_an_answer_beside_an_excluded_count_keeps_its_own() -> None:
    usage = mapped(read(LANGFUSE | {"output": CHAT})).usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens) == (3, 2, 800)


def test_a_part_that_a_log_excludes_counts_with_its_whole_alone() -> None:
    details = {"cache_read_input_tokens": 800, "output": 30, "output_reasoning_tokens": 10}
    assert dict(read(LANGFUSE | {"usageDetails": details}).tokens) == {
        "completion_tokens": 40,
        "cached_tokens": 800,
        "reasoning_tokens": 10,
    }


def test_a_span_of_opik_is_not_langfuses() -> None:
    span = {"id": "0", "type": "llm", "start_time": ISO, "trace_id": "t", "output": {"choices": CHAT["choices"]}, "model": "m",
            "usage": {"prompt_tokens": 3}}  # fmt: skip
    record = read(span)
    assert (record.layout, record.tokens, mapped(record).text) == ("opik", {"prompt_tokens": 3}, "Hi")


def test_a_cost_may_be_in_cents() -> None:
    assert read(PORTKEY | {"cost": 0.25}).cost == Decimal("0.0025")
