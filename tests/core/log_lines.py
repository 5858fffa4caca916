"""A line of each kind of log that Crosswalk knows, and the facts that it states.

The keys and forms are those of the document that the kind's layout names. Ids, texts and numbers are made up.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple

import orjson

TIME = datetime(2026, 11, 20, 10, 0, 0, 250_000, UTC)
ISO = "2026-11-20T10:00:00.250Z"
LATER = "2026-11-20T10:00:01.750Z"
EPOCH = 1795168800.25

CHAT = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1795168801,
    "model": "gpt-x-2026",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
}
CHUNKS = [
    {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1795168801,
        "model": "gpt-x-2026",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
    for delta, finish in (({"role": "assistant", "content": "H"}, None), ({"content": "i"}, "stop"))
] + [{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1795168801, "model": "gpt-x-2026", "choices": [],
      "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}}]  # fmt: skip
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-x",
    "content": [{"type": "text", "text": "Hi"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 3, "output_tokens": 2},
}
CONVERSE = {
    "output": {"message": {"role": "assistant", "content": [{"text": "Hi"}]}},
    "stopReason": "end_turn",
    "metrics": {"latencyMs": 1500},
    "usage": {"inputTokens": 3, "outputTokens": 2, "totalTokens": 5},
}
GEMINI = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "Hi"}]}, "finishReason": "STOP"}],
    "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5},
}
GEMINI_CHUNKS = [
    {"candidates": [{"content": {"role": "model", "parts": [{"text": "H"}]}}]},
    {**GEMINI, "candidates": [{"content": {"role": "model", "parts": [{"text": "i"}]}, "finishReason": "STOP"}]},
]  # fmt: skip
ASK = {"model": "gpt-x", "messages": [{"role": "user", "content": "Hello"}]}


def text(value: Any) -> str:
    return orjson.dumps(value).decode()


def attributes(**values: Any) -> list[dict[str, Any]]:
    return [{"key": key.replace("__", "."), "value": value} for key, value in values.items()]


class Kind(NamedTuple):
    """A line and what it says. ``None`` where this kind of log does not keep it."""

    line: dict[str, Any]
    layout: str | None
    time: datetime | None = TIME
    model: str | None = "gpt-x"
    vendor: str | None = "openai"
    status: int | None = 200
    latency: float | None = 1.5
    cost: str | None = None
    id: str | None = "r1"
    provider: str = "openai"
    fields: dict[str, str] = {}


SPAN = {"traceId": "t1", "spanId": "r1", "startTimeUnixNano": "1795168800250000000", "endTimeUnixNano": "1795168801750000000"}  # fmt: skip
KINDS = {
    "JSONLinesLog": Kind(
        {"id": "r1", "provider": "openai", "status": 200, "body": text(CHAT), "method": "POST", "model": "gpt-x", "began": ISO,
         "duration_seconds": 1.5, "is_stream": False, "tags": ["a"]},
        "exchange",
    ),
    "log.exchanges": Kind(
        {"id": "r1", "provider": "openai", "status": 200, "body": text(CHAT), "time": ISO, "model": "gpt-x"},
        "exchange",
        latency=None,
    ),
    "words of other programs": Kind(
        {"id": 1, "provider": " Azure ", "status": "200", "body": CHAT, "created": EPOCH, "model": "gpt-x"},
        "exchange",
        vendor=" Azure ",
        latency=None,
        id="1",
    ),
    "a list of chunks": Kind(
        {"id": "r1", "provider": "openai", "status": 200, "body": CHUNKS, "created": ISO, "model": "gpt-x", "duration_seconds": 1.5},
        "exchange",
    ),
    "an array of Gemini's events": Kind(
        {"id": "r1", "provider": "vertex_ai", "status": 200, "body": GEMINI_CHUNKS, "created": ISO, "model": "gemini-x",
         "duration_seconds": 1.5},
        "exchange", model="gemini-x", vendor="vertex_ai", provider="gemini",
    ),
    "LiteLLM": Kind(
        {"id": "r1", "call_type": "acompletion", "startTime": EPOCH, "endTime": EPOCH + 1.5, "model": "gpt-x", "status": "success",
         "custom_llm_provider": "azure", "response": CHAT, "response_cost": 0.0125, "request_tags": ["a"], "messages": ASK["messages"]},
        "litellm", vendor="azure", status=None, cost="0.0125",
    ),
    "Helicone": Kind(
        {"request_id": "r1", "request_created_at": ISO, "delay_ms": 1500, "provider": "OPENAI", "request_model": "gpt-x",
         "response_status": 200, "request_body": ASK, "response_body": CHAT, "cost": 0.5},
        "helicone", vendor="OPENAI", cost="0.5",
    ),
    "Portkey, {request, response: {status, body}}": Kind(
        {"id": "r1", "created_at": ISO, "request": {"provider": "openai", "body": ASK},
         "response": {"status": 200, "body": CHAT, "response_time": 1500}},
        "portkey",
    ),
    "Portkey's export": Kind(
        {"id": "r1", "created_at": ISO, "ai_org": "openai", "ai_model": "gpt-x", "response_status_code": 200, "response_time": 1500,
         "request": ASK, "response": CHAT},
        "portkey_export",
    ),
    "Weave": Kind(
        {"id": "r1", "op_name": "openai.chat.completions.create", "started_at": ISO, "ended_at": LATER, "inputs": ASK, "output": CHAT},
        "weave", vendor=None, status=None,
    ),
    "Cloudflare's AI gateway": Kind(
        {"id": "r1", "created_at": ISO, "duration": 1500, "provider": "openai", "model": "gpt-x", "status_code": 200,
         "request_head": text(ASK), "response_head": text(CHAT), "cost": 0.5},
        "cloudflare_gateway", cost="0.5",
    ),
    "Bedrock's batch output": Kind(
        {"recordId": "r1", "modelInput": {"messages": []}, "modelOutput": MESSAGE},
        "bedrock_batch", time=None, model=None, vendor="bedrock", status=None, latency=None, provider="anthropic",
    ),
    "Bedrock's invocation log": Kind(
        {"schemaType": "ModelInvocationLog", "timestamp": ISO, "requestId": "r1", "modelId": "anthropic.claude-x", "input":
         {"inputBodyJson": {"messages": []}, "inputTokenCount": 3}, "output": {"outputBodyJson": CONVERSE, "outputTokenCount": 2}},
        "bedrock_invocations", model="anthropic.claude-x", vendor="bedrock", status=None, provider="bedrock",
    ),
    "Gemini's batch output": Kind(
        {"key": "r1", "response": GEMINI | {"modelVersion": "gemini-x"}},
        "gemini_batch", time=None, model=None, vendor="gemini", status=None, latency=None, provider="gemini",
    ),
    "Vertex AI's batch output": Kind(
        {"status": "", "processed_time": "2026-11-20T10:00:00.250+00:00", "request": {"contents": []},
         "response": GEMINI | {"modelVersion": "gemini-x"}},
        "vertex_batch", model=None, vendor="vertex_ai", status=None, latency=None, id=None, provider="gemini",
    ),
    "OpenAI's and vLLM's batch output": Kind(
        {"id": "batch_req_1", "custom_id": "r1", "response": {"status_code": 200, "request_id": "x", "body": CHAT}, "error": None},
        "openai_batch", time=None, model=None, vendor=None, latency=None,
    ),
    "Anthropic's batch results": Kind(
        {"custom_id": "r1", "result": {"type": "succeeded", "message": MESSAGE}},
        "anthropic_batch", time=None, model=None, vendor="anthropic", status=None, latency=None, provider="anthropic",
    ),
    "nginx with the body": Kind(
        {"time_iso8601": "2026-11-20T11:00:00+01:00", "request_id": "r1", "status": "200", "request_time": "1.500",
         "request_body": text(ASK), "resp_body": text(CHAT)},
        "nginx", time=TIME.replace(microsecond=0), vendor=None,
    ),
    "Claude Code": Kind(
        {"type": "assistant", "sessionId": "s1", "uuid": "u1", "timestamp": ISO, "requestId": "r1", "message": MESSAGE},
        "claude_code", model=None, vendor="anthropic", status=None, latency=None, provider="anthropic",
    ),
    "Codex, the joined lines of an answer": Kind(
        {"timestamp": ISO, "session_meta": {"id": "s1"}, "turn_context": {"model": "gpt-x"}, "model_provider": "azure", "response": {
            "object": "response", "status": "completed", "usage": {"input_tokens": 3, "output_tokens": 2},
            "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]}]}},
        "codex", vendor="azure", status=None, latency=None, id=None, provider="openai_responses",
    ),
    "a HAR entry": Kind(
        {"startedDateTime": ISO, "time": 1500, "request": {"url": "https://api.openai.com/v1/chat/completions", "postData": {"text": text(ASK)}},
         "response": {"status": 200, "content": {"mimeType": "application/json", "text": text(CHAT)}}},
        "har", vendor=None, id=None,
    ),
    "Langfuse, a provider's body": Kind(
        {"id": "r1", "traceId": "t1", "type": "GENERATION", "startTime": ISO, "endTime": LATER, "model": "gpt-x", "input": ASK,
         "output": CHAT, "usageDetails": {"input": 3, "output": 2}, "costDetails": {"total": 0.5}},
        "langfuse", vendor=None, status=None, cost="0.5",
    ),
    "Langfuse, a message": Kind(
        {"id": "r1", "traceId": "t1", "type": "GENERATION", "startTime": ISO, "endTime": LATER, "model": "gpt-x", "input": ASK,
         "output": {"role": "assistant", "content": "Hi"}, "usageDetails": {"input": 3, "output": 2}, "costDetails": {"total": 0.5}},
        "langfuse", vendor=None, status=None, cost="0.5",
    ),
    "Langfuse's export": Kind(
        {"id": "r1", "trace_id": "t1", "type": "GENERATION", "start_time": "2026-11-20 10:00:00.250000",
         "end_time": "2026-11-20 10:00:01.750000", "provided_model_name": "gpt-x", "input": "Hello", "output": "Hi",
         "usage_details": {"input": 3, "output": 2}, "total_cost": 0.5},
        "langfuse_export", vendor=None, status=None, cost="0.5",
    ),
    "an OTLP span": Kind(
        SPAN | {"attributes": attributes(
            gen_ai__operation__name={"stringValue": "chat"}, gen_ai__provider__name={"stringValue": "azure.ai.openai"},
            gen_ai__request__model={"stringValue": "gpt-x"}, gen_ai__response__model={"stringValue": "gpt-x-2026"},
            gen_ai__usage__input_tokens={"intValue": "3"}, gen_ai__usage__output_tokens={"intValue": 2},
            gen_ai__response__finish_reasons={"arrayValue": {"values": [{"stringValue": "stop"}]}},
            http__response__status_code={"intValue": "200"},
            gen_ai__output__messages={"stringValue": text([{"role": "assistant", "parts": [{"type": "text", "content": "Hi"}]}])},
        )},
        "otlp", vendor="azure.ai.openai",
    ),
    "any line, by --field": Kind(
        {"ts": EPOCH * 1000, "vendor": "openai", "http_status": 200, "rid": "r1", "took": 1500, "request": ASK, "log": [{"answer": CHAT}]},
        "custom",
        fields={"created": "ts@ms", "provider": "vendor", "status": "http_status", "id": "rid", "latency": "took@ms",
                "response": "log[0].answer"},
    ),
}  # fmt: skip

FAILURES = {
    "LiteLLM": (
        {"id": "r1", "call_type": "acompletion", "startTime": EPOCH, "endTime": EPOCH, "model": "gpt-x", "custom_llm_provider": "azure",
         "response": {}, "error_str": "busy", "error_information": {"error_code": "429", "error_class": "RateLimitError"}},
        "rate_limit", "busy",
    ),
    "Vertex AI": (
        {"status": "Bad Request: no such model", "processed_time": ISO, "request": {}, "response": {}},
        "model_unavailable", "Bad Request: no such model",
    ),
    "Bedrock": (
        {"recordId": "r1", "modelInput": {}, "error": {"errorCode": 400, "errorMessage": "too long"}},
        "invalid_request", "too long",
    ),
    "Gemini": ({"key": "r1", "error": {"code": 400, "message": "no"}}, "invalid_request", "no"),
    "a span": (
        SPAN | {"attributes": attributes(gen_ai__operation__name={"stringValue": "chat"}, error__type={"stringValue": "timeout"}),
                "status": {"code": 2, "message": "too slow"}},
        "timeout", "too slow",
    ),
    "Langfuse": (
        {"id": "r1", "traceId": "t1", "type": "GENERATION", "startTime": ISO, "output": None, "statusMessage": "gone"},
        "unknown", "gone",
    ),
}  # fmt: skip
"""Lines without an answer, and what became of the request: the kind of error and its message."""
