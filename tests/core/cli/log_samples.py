"""Small logs of products, and what they state, counted by hand.

Their keys and forms are those that the producers document or write. Ids, texts and numbers are made up.
"""

from __future__ import annotations

import gzip
from typing import Any, NamedTuple

import orjson

START, END = "2026-05-01T10:00:00.000Z", "2026-05-01T10:00:02.000Z"
NANOSECONDS = ("1777629600000000000", "1777629602000000000")
MODEL = "gpt-4o-2024-08-06"
CHAT = {
    "id": "chatcmpl-1", "object": "chat.completion", "created": 1777629601, "model": MODEL, "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 500, "completion_tokens": 20, "total_tokens": 520, "prompt_tokens_details": {"cached_tokens": 300}},
}  # fmt: skip
CLAUDE = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": [{"type": "text", "text": "Hi"}],
    "stop_reason": "end_turn", "usage": {"input_tokens": 100, "cache_read_input_tokens": 300, "output_tokens": 20},
}  # fmt: skip
GEMINI = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "Hi"}]}, "finishReason": "STOP"}], "modelVersion": "gemini-2.5-pro",
    "usageMetadata": {"promptTokenCount": 500, "candidatesTokenCount": 15, "thoughtsTokenCount": 5, "totalTokenCount": 520},
}  # fmt: skip
ASK = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello"}]}
EMBEDDED = {"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [0.1]}], "model": "text-embedding-3-small",
            "usage": {"prompt_tokens": 8, "total_tokens": 8}}  # fmt: skip


def text(value: Any) -> str:
    return orjson.dumps(value).decode()


def lines(*values: Any) -> bytes:
    return b"".join(orjson.dumps(value) + b"\n" for value in values)


def document(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2)


def otlp(**attributes: Any) -> dict[str, Any]:
    def typed(value: Any) -> dict[str, Any]:
        if isinstance(value, list):
            return {"arrayValue": {"values": [typed(one) for one in value]}}
        return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}

    return {
        "traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174", "name": "chat", "kind": 3,
        "startTimeUnixNano": NANOSECONDS[0], "endTimeUnixNano": NANOSECONDS[1], "status": {},
        "attributes": [{"key": key.replace("__", "."), "value": typed(value)} for key, value in attributes.items()],
    }  # fmt: skip


def otlp_file(*spans: dict[str, Any]) -> dict[str, Any]:
    return {
        "resourceSpans": [
            {"resource": {"attributes": []}, "scopeSpans": [{"scope": {"name": "s"}, "spans": list(spans)}]}
        ]
    }


CHAT_SPAN = otlp(
    gen_ai__operation__name="chat", gen_ai__provider__name="openai", gen_ai__request__model="gpt-4o", gen_ai__response__model=MODEL,
    gen_ai__usage__input_tokens=500, gen_ai__usage__output_tokens=20, gen_ai__usage__cache_read__input_tokens=300,
    gen_ai__response__finish_reasons=["stop"],
)  # fmt: skip
AGENT_SPAN = otlp(
    gen_ai__operation__name="invoke_agent", gen_ai__usage__input_tokens=500, gen_ai__usage__output_tokens=20
)
TOOL_SPAN = otlp(gen_ai__operation__name="execute_tool", gen_ai__tool__name="look")
HTTP_SPAN = otlp(http__request__method="POST")
FAILED_SPAN = otlp(gen_ai__operation__name="chat", gen_ai__provider__name="openai", gen_ai__request__model=MODEL, error__type="timeout") | {
    "status": {"code": 2, "message": "too slow"}
}  # fmt: skip
CONSOLE = {
    "name": "chat", "context": {"trace_id": "0x01", "span_id": "0x02", "trace_state": "[]"}, "kind": "SpanKind.CLIENT", "parent_id": None,
    "start_time": START, "end_time": END, "status": {"status_code": "UNSET"}, "events": [], "links": [], "resource": {}, "attributes": {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-4o",
        "gen_ai.response.model": MODEL, "gen_ai.usage.input_tokens": 500, "gen_ai.usage.output_tokens": 20,
        "gen_ai.usage.cache_read.input_tokens": 300, "gen_ai.response.finish_reasons": ["stop"]},
}  # fmt: skip
GENERATION = {
    "id": "o1", "traceId": "t", "type": "GENERATION", "startTime": START, "endTime": END, "model": MODEL, "input": [],
    "output": {"role": "assistant", "content": "Hi"}, "level": "DEFAULT", "usageDetails": {"input": 200, "input_cached_tokens": 300,
    "output": 20, "total": 520}, "costDetails": {"total": 0.25},
}  # fmt: skip
SPEND = {
    "request_id": "r1", "call_type": "acompletion", "spend": 0.25, "total_tokens": 520, "prompt_tokens": 500, "completion_tokens": 20,
    "startTime": START, "endTime": END, "model": MODEL, "custom_llm_provider": "openai", "api_base": "https://api.openai.com/v1",
    "user": "u1", "team_id": "kelp", "end_user": "", "messages": {}, "response": {}, "status": "success",
    "metadata": {"usage_object": {"prompt_tokens_details": {"cached_tokens": 300}}},
}  # fmt: skip
RUN = {
    "id": "1", "name": "ChatOpenAI", "run_type": "llm", "start_time": "2026-05-01T10:00:00.000000", "end_time": "2026-05-01T10:00:02",
    "error": None, "extra": {"metadata": {"ls_provider": "openai", "ls_model_name": MODEL}}, "inputs": {"messages": []},
    "outputs": CHAT, "trace_id": "t", "prompt_tokens": 500, "completion_tokens": 20, "prompt_token_details": {"cache_read": 300},
    "total_cost": 0.25, "tags": [],
}  # fmt: skip
SPAN = {
    "id": "r", "span_id": "s", "root_span_id": "s", "created": START, "input": [], "output": [CHAT["choices"][0]], "error": None,  # type: ignore[index]
    "metadata": {"model": MODEL, "provider": "openai"}, "span_attributes": {"type": "llm", "name": "Chat Completion"}, "metrics": {
        "start": 1777629600, "end": 1777629602, "prompt_tokens": 500, "completion_tokens": 20, "prompt_cached_tokens": 300, "tokens": 520},
}  # fmt: skip
OPIK = {
    "id": "0", "name": "chat", "type": "llm", "start_time": START, "end_time": END, "input": {}, "output": {"choices": CHAT["choices"]},
    "model": MODEL, "provider": "openai", "total_estimated_cost": 0.25, "trace_id": "t", "usage": {"prompt_tokens": 500,
    "completion_tokens": 20, "total_tokens": 520, "original_usage.prompt_tokens_details.cached_tokens": 300},
}  # fmt: skip
TRACE = {
    "info": {"trace_id": "tr-1", "request_time": START, "state": "OK"}, "data": {"spans": [
        {"trace_id": "x", "span_id": "a", "name": "predict", "start_time_unix_nano": 1777629600000000000, "end_time_unix_nano": 1777629602000000000,
         "status": {"code": "STATUS_CODE_OK"}, "attributes": {"mlflow.spanType": '"CHAIN"', "mlflow.spanOutputs": '"Hi"'}},
        {"trace_id": "x", "span_id": "b", "name": "Completions", "start_time_unix_nano": 1777629600000000000,
         "end_time_unix_nano": 1777629602000000000, "status": {"code": "STATUS_CODE_OK"}, "attributes": {
             "mlflow.spanType": '"CHAT_MODEL"', "mlflow.spanInputs": text(ASK), "mlflow.spanOutputs": text(CHAT),
             "mlflow.chat.tokenUsage": '{"input_tokens": 500, "output_tokens": 20, "total_tokens": 520}'}}]},
}  # fmt: skip
DATADOG = {
    "id": "AQ", "type": "span", "attributes": {
        "span_id": "1", "trace_id": "2", "ml_app": "kelp", "span_kind": "llm", "status": "ok", "start_ms": 1777629600000, "duration": 2000000000,
        "model_name": MODEL, "model_provider": "openai", "output": {"messages": [{"role": "assistant", "content": "Hi"}]},
        "metrics": {"input_tokens": 500, "output_tokens": 20, "cache_read_input_tokens": 300}, "tags": ["env:prod"]},
}  # fmt: skip
POSTHOG = {
    "uuid": "1", "event": "$ai_generation", "distinct_id": "u1", "timestamp": START, "properties": {
        "$ai_model": MODEL, "$ai_provider": "openai", "$ai_input_tokens": 500, "$ai_output_tokens": 20, "$ai_cache_read_input_tokens": 300,
        "$ai_output_choices": [{"role": "assistant", "content": "Hi"}], "$ai_latency": 2.0, "$ai_http_status": 200, "$ai_total_cost_usd": 0.25},
}  # fmt: skip
KONG = {
    "started_at": 1777629600000, "latencies": {"request": 2000}, "request": {"id": "r"}, "response": {"status": 200}, "service": {"name": "kelp"},
    "ai": {"proxy": {"meta": {"provider_name": "openai", "request_model": "gpt-4o", "response_model": MODEL},
                     "usage": {"prompt_tokens": 500, "completion_tokens": 20, "total_tokens": 520, "cost": 0.25}}},
}  # fmt: skip
ENVOY = {
    "start_time": START, "duration": 2000, "response_code": 200, "gen_ai.request.model": "gpt-4o", "gen_ai.response.model": MODEL,
    "gen_ai.provider.name": "openai", "gen_ai.usage.input_tokens": 500, "gen_ai.usage.output_tokens": 20,
}  # fmt: skip
APIM = {"TimeGenerated": START, "CorrelationId": "c", "SequenceNumber": 0, "OperationName": "chat", "ModelName": MODEL, "PromptTokens": 500,
        "CompletionTokens": 20, "TotalTokens": 520, "IsStreamCompletion": False}  # fmt: skip
DATABRICKS = {"databricks_request_id": "d", "request_time": START, "status_code": 200, "execution_duration_ms": 2000, "request": text(ASK),
              "response": text(CHAT), "served_entity_id": "e", "requester": "u1"}  # fmt: skip
VERTEX = {"endpoint": "publishers/google/models/gemini-2.5-pro", "logging_time": "2026-05-01 10:00:00.000000 UTC", "request_id": 7,
          "model": "gemini-2.5-pro", "full_request": {"contents": []}, "full_response": GEMINI, "api_method": "generateContent"}  # fmt: skip
NEW_API = {"id": 1, "user_id": 3, "created_at": 1777629600, "type": 2, "content": "", "username": "u1", "token_name": "k", "model_name": MODEL,
           "quota": 125000, "prompt_tokens": 500, "completion_tokens": 20, "use_time": 2, "is_stream": False, "channel": 1, "group": "kelp",
           "other": '{"cache_tokens":300}'}  # fmt: skip
HELICONE = {"request_id": "r", "request_created_at": START, "response_status": 200, "delay_ms": 2000, "provider": "OPENAI", "request_model": MODEL,
            "prompt_tokens": 200, "prompt_cache_read_tokens": 300, "completion_tokens": 20, "cost": 0.25, "signed_body_url": "https://x.example/1",
            "request_user_id": "u1"}  # fmt: skip
CLOUDFLARE = {"id": "c", "created_at": START, "duration": 2000, "provider": "openai", "model": MODEL, "status_code": 200, "success": True,
              "tokens_in": 500, "tokens_out": 20, "cost": 0.25, "path": "chat/completions"}  # fmt: skip
PROMPTLAYER = {"request_id": 1, "provider_type": "openai", "engine": MODEL, "function_name": "openai.chat.completions.create",
               "request_start_time": START, "request_end_time": END, "input_tokens": 500, "output_tokens": 20, "price": 0.25,
               "request_response": CHAT, "tags": ["a"]}  # fmt: skip
WEAVE = {"id": "w", "op_name": "weave:///e/p/op/openai.chat.completions.create:v1", "started_at": START, "ended_at": END, "inputs": ASK,
         "output": CHAT, "summary": {}, "wb_user_id": "u1", "attributes": {}}  # fmt: skip
BEDROCK = {"schemaType": "ModelInvocationLog", "timestamp": START, "requestId": "r", "operation": "Converse", "modelId": "amazon.nova-pro-v1:0",
           "input": {"inputTokenCount": 200, "cacheReadInputTokenCount": 300}, "output": {"outputTokenCount": 20, "outputBodyS3Path": "s3://b/k"}}  # fmt: skip
HAR_ENTRY = {"startedDateTime": START, "time": 2000, "request": {"method": "POST", "url": "https://api.groq.com/openai/v1/chat/completions"},
             "response": {"status": 200, "content": {"mimeType": "application/json", "text": text(CHAT)}}}  # fmt: skip
INTERACTION = {"request": {"method": "POST", "uri": "https://api.openai.com/v1/chat/completions", "body": text(ASK), "headers": {}},
               "response": {"status": {"code": 200, "message": "OK"}, "headers": {}, "body": {"string": text(CHAT)}}}  # fmt: skip
CASSETTE = f"""interactions:
- request:
    body: '{{"model":"gpt-4o"}}'
    headers: {{}}
    method: POST
    uri: https://api.openai.com/v1/chat/completions
  response:
    body:
      string: '{text(CHAT)}'
    headers: {{}}
    status: {{code: 200, message: OK}}
- request: {{body: null, headers: {{}}, method: GET, uri: https://api.openai.com/v1/models}}
  response: {{body: {{string: '{{}}'}}, headers: {{}}, status: {{code: 200, message: OK}}}}
version: 1
"""
GEMINI_CLI = {
    "hrTime": [1777629600, 0], "resource": {"attributes": {}}, "body": "API response from gemini-2.5-pro. Status: 200.", "attributes": {
        "session.id": "s", "event.name": "gemini_cli.api_response", "event.timestamp": START, "model": "gemini-2.5-pro", "duration_ms": 2000,
        "status_code": 200, "input_token_count": 500, "output_token_count": 15, "thoughts_token_count": 5, "cached_content_token_count": 300}}  # fmt: skip
GEMINI_CHAT = {"sessionId": "s", "projectHash": "p", "startTime": START, "lastUpdated": END, "messages": [
    {"id": "1", "timestamp": START, "type": "user", "content": "Hello"},
    {"id": "2", "timestamp": END, "type": "gemini", "content": "Hi", "model": "gemini-2.5-pro",
     "tokens": {"input": 500, "output": 15, "cached": 300, "thoughts": 5, "tool": 0, "total": 520}}]}  # fmt: skip
OPENCODE = {"id": "msg_1", "sessionID": "ses_1", "role": "assistant", "time": {"created": 1777629600000, "completed": 1777629602000},
            "modelID": MODEL, "providerID": "openai", "cost": 0.25, "tokens": {"input": 200, "output": 15, "reasoning": 5,
            "cache": {"read": 300, "write": 0}}, "finish": "stop"}  # fmt: skip
PROMPTFOO = {"evalId": "e", "results": {"version": 3, "timestamp": START, "results": [
    {"id": "1", "promptIdx": 0, "testIdx": 0, "provider": {"id": "openai:gpt-4o", "label": ""}, "latencyMs": 2000, "cost": 0.25, "success": False,
     "failureReason": 1, "error": "Expected output to contain x", "prompt": {"raw": "Hello"}, "vars": {},
     "response": {"output": "Hi", "tokenUsage": {"total": 520, "prompt": 500, "completion": 20}}},
    {"id": "2", "promptIdx": 0, "testIdx": 1, "provider": {"id": "openai:gpt-4o", "label": ""}, "latencyMs": 2, "success": False, "failureReason": 2,
     "error": "API error: 429", "prompt": {"raw": "Hello"}, "vars": {}, "response": {"error": "API error: 429"}}]}}  # fmt: skip
LLM = {"id": "01", "model": MODEL, "prompt": "Hello", "system": None, "response": "Hi", "response_json": {"model": MODEL}, "conversation_id": "c",
       "duration_ms": 2000, "datetime_utc": "2026-05-01T10:00:00", "input_tokens": 500, "output_tokens": 20,
       "token_details": '{"prompt_tokens_details":{"cached_tokens":300}}'}  # fmt: skip
EVALS = [{"spec": {"run_id": "r", "completion_fns": ["gpt-4o"]}},
         {"run_id": "r", "event_id": 0, "sample_id": "s.0", "type": "sampling", "data": {"prompt": [], "sampled": ["Hi"], "model": MODEL,
          "usage": {"prompt_tokens": 500, "completion_tokens": 20}}, "created_by": "", "created_at": "2026-05-01 10:00:00.000000+00:00"},
         {"run_id": "r", "event_id": 1, "sample_id": "s.0", "type": "match", "data": {"correct": True}, "created_by": "", "created_at": START},
         {"final_report": {"accuracy": 1.0}}]  # fmt: skip
AIDER = {"event": "message_send", "properties": {"main_model": MODEL, "prompt_tokens": 500, "completion_tokens": 20, "cost": 0.25}, "user_id": "u1",
         "time": 1777629600}  # fmt: skip
OPENROUTER = {"id": "gen-1", "model": "openai/gpt-4o", "provider_name": "OpenAI", "created_at": START, "tokens_prompt": 490,
              "tokens_completion": 19, "native_tokens_prompt": 500, "native_tokens_completion": 20, "native_tokens_cached": 300,
              "total_cost": 0.25, "generation_time": 2000, "finish_reason": "stop"}  # fmt: skip
OPENROUTER_CSV = b"""generation_id,created_at,cost_total,tokens_prompt,tokens_completion,model_permaslug,provider_name
gen-1,2026-05-01 10:00:00,0.25,500,20,openai/gpt-4o,"OpenAI"
"""
CANCELLED_CSV = b"""generation_id,created_at,cost_total,tokens_prompt,tokens_completion,model_permaslug,provider_name,cancelled
g1,2026-05-01 10:00:00.123,0.25,500,20,openai/gpt-4o,OpenAI,false
g2,2026-05-01 10:00:00.123,0,10,0,openai/gpt-4o,OpenAI,true
"""
INFERENCE = otlp(
    openinference__span__kind="LLM", llm__model_name=MODEL, llm__provider="openai", llm__token_count__prompt=500,
    llm__token_count__completion=20, llm__token_count__prompt_details__cache_read=300, output__value="Hi",
)  # fmt: skip
CHAIN = otlp(openinference__span__kind="CHAIN", output__value="Hi")
TRACELOOP = otlp(
    llm__request__type="chat", gen_ai__system="OpenAI", gen_ai__request__model="gpt-4o", gen_ai__response__model=MODEL,
    gen_ai__usage__prompt_tokens=500, gen_ai__usage__completion_tokens=20, gen_ai__completion__0__content="Hi",
    gen_ai__completion__0__finish_reason="stop",
)  # fmt: skip
PHOENIX = {
    "name": "ChatCompletion", "span_kind": "LLM", "parent_id": None, "start_time": START, "end_time": END, "status_code": "OK",
    "status_message": "", "context.span_id": "s", "context.trace_id": "t", "attributes.llm.model_name": MODEL, "attributes.llm.provider": "openai",
    "attributes.llm.token_count.prompt": 500, "attributes.llm.token_count.completion": 20,
    "attributes.llm.token_count.prompt_details.cache_read": 300, "attributes.output.value": text(CHAT),
}  # fmt: skip


def on_console(**attributes: Any) -> dict[str, Any]:
    """A span as the console exporter prints it."""
    return {**CONSOLE, "attributes": {key.replace("__", "."): value for key, value in attributes.items()}}


INFERENCE_ON_CONSOLE = on_console(
    openinference__span__kind="LLM", llm__model_name="gpt-4o", llm__provider="openai", llm__token_count__prompt=500,
    llm__token_count__completion=20, llm__token_count__prompt_details__cache_read=300, output__value=text(CHAT),
)  # fmt: skip
INFERENCE_FAILED = on_console(
    openinference__span__kind="LLM",
    llm__model_name=MODEL,
    llm__provider="openai",
    output__value='{"generations": []}',
) | {"status": {"status_code": "ERROR", "description": "slow down"}}
TRACELOOP_ON_CONSOLE = on_console(
    llm__request__type="chat", gen_ai__system="OpenAI", gen_ai__request__model="gpt-4o", gen_ai__response__model=MODEL,
    gen_ai__usage__prompt_tokens=500, gen_ai__usage__completion_tokens=20, gen_ai__usage__cache_read_input_tokens=300,
)  # fmt: skip
AGENT_ON_CONSOLE = on_console(agent="a")
DUMPED = {**CHAT, "moderation": None, "choices": [{"index": 0, "logprobs": None, "finish_reason": "stop", "message": {
    "role": "assistant", "content": "Hi", "refusal": None, "annotations": None, "audio": None, "function_call": None, "tool_calls": None}}]}  # fmt: skip
"""An answer as OpenAI's SDK dumps it, with all that it lacks as null."""
USAGE_OF_LANGCHAIN = {
    "input_tokens": 500,
    "output_tokens": 20,
    "total_tokens": 520,
    "input_token_details": {"cache_read": 300},
}
LOCAL_RUN = {key: value for key, value in RUN.items() if "token" not in key and key != "total_cost"} | {"outputs": {"generations": [[{
    "text": "Hi", "generation_info": {"finish_reason": "stop"}, "message": {"lc": 1, "kwargs": {
        "content": "Hi", "usage_metadata": USAGE_OF_LANGCHAIN, "response_metadata": {"model_name": MODEL}}}}]]}}  # fmt: skip
POSTHOG_CLAUDE = {**POSTHOG, "properties": {
    "$ai_model": "claude-sonnet-4-5", "$ai_provider": "anthropic", "$ai_input_tokens": 150, "$ai_output_tokens": 20, "$ai_cache_read_input_tokens": 300,
    "$ai_cache_creation_input_tokens": 50, "$ai_output_choices": [{"role": "assistant", "content": [{"type": "text", "text": "Hi"}]}]}}  # fmt: skip


def mlflow_span(**attributes: Any) -> dict[str, Any]:
    """A span of MLflow, whose attributes are JSON."""
    named = {f"mlflow.{key.replace('__', '.')}": text(value) for key, value in attributes.items()}
    return {"trace_id": "x", "span_id": "b", "name": "n", "start_time_unix_nano": 1777629600000000000,
            "end_time_unix_nano": 1777629602000000000, "status": {"code": "STATUS_CODE_OK"}, "attributes": named}  # fmt: skip


MLFLOW_SPANS = [
    mlflow_span(
        spanType="CHAT_MODEL",
        llm__model=MODEL,
        spanOutputs=DUMPED,
        chat__tokenUsage={"input_tokens": 500, "output_tokens": 20},
    ),
    mlflow_span(spanType="EMBEDDING", llm__model="text-embedding-3-small", spanOutputs=EMBEDDED),
    mlflow_span(spanType="CHAT_MODEL", llm__model=MODEL) | {"status": {"code": "STATUS_CODE_ERROR"}},
    mlflow_span(spanType="UNKNOWN", spanOutputs=None),
]
OUTPUT_ITEMS = [
    {"type": "reasoning", "content": []},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]},
]
OPIK_OUTPUTS = [
    {"output": OUTPUT_ITEMS[1:], "reasoning": {"effort": "low"}},
    {"output": OUTPUT_ITEMS},
    {"content": [{"type": "text", "text": "Hi", "citations": None}]},
    {"content": [{"type": "tool_use", "id": "t", "name": "look", "input": {}}]},
    {"content": ["Hi"]},
    {"output": {"text": "Hi"}},
]
"""The content of answers alone, as Opik's integrations cut it out."""
PROMPTFOO_CLAUDE = {"promptIdx": 0, "testIdx": 0, "provider": {"id": "anthropic:messages:claude-sonnet-4-5", "label": ""}, "latencyMs": 2000,
    "cost": 0.25, "success": True, "failureReason": 0, "prompt": {"raw": "Hello"}, "vars": {}, "response": {"output": "Hi", "tokenUsage": {
        "total": 520, "prompt": 500, "completion": 20, "completionDetails": {"cacheReadInputTokens": 300}}}}  # fmt: skip


GEMINI_DUMPED = {"candidates": [{"content": {"parts": [{"text": "Hi", "function_call": None}, {"function_call": {"name": "look", "args": {"a_b": 1}}}],
    "role": "model"}, "finish_reason": "STOP", "token_count": None}], "model_version": "gemini-2.5-pro", "usage_metadata": {
    "prompt_token_count": 500, "candidates_token_count": 20, "cached_content_token_count": 300, "total_token_count": 520}, "parsed": None}  # fmt: skip
"""An answer as Google's SDK dumps it."""
USAGE_OF_KONG = {
    "prompt_tokens": 500,
    "completion_tokens": 20,
    "total_tokens": 520,
    "prompt_tokens_details": {"cached_tokens": 300},
}
QWEN = {**GEMINI_CLI, "attributes": {**GEMINI_CLI["attributes"], "event.name": "qwen-code.api_response", "model": "qwen3-coder-plus",  # type: ignore[dict-item]
                                     "output_token_count": 20}}  # fmt: skip


def qwen_of(auth_type: str, output: int) -> dict[str, Any]:
    """A line of Qwen Code that asks a server of this kind, with 5 tokens of reasoning."""
    attributes: Any = QWEN["attributes"]
    return {**QWEN, "attributes": {**attributes, "auth_type": auth_type, "output_token_count": output}}


def kong_of(**plugins: int) -> dict[str, Any]:
    """A line of Kong whose plugins, with _ for -, have each called a model with so many prompt tokens and 10 more."""
    meta: Any = KONG["ai"]["proxy"]["meta"]  # type: ignore[index]
    return {**KONG, "ai": {name.replace("_", "-"): {"meta": meta, "usage": {"prompt_tokens": prompt, "completion_tokens": 10}}
                           for name, prompt in plugins.items()}}  # fmt: skip


METRICS = {"resource": {"attributes": {}}, "scopeMetrics": [{"scope": {"name": "gemini-cli"}, "metrics": []}]}
NEW_API_CLAUDE = {**NEW_API, "model_name": "claude-sonnet-4-5", "prompt_tokens": 150, "other": text(
    {"usage_semantic": "anthropic", "cache_tokens": 300, "cache_creation_tokens": 50})}  # fmt: skip
DATADOG_CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"name": "look", "arguments": {"a": 1}, "tool_id": "c", "type": "function"}],
}
LANGCHAIN_CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"name": "look", "args": {"a": 1}, "id": "c", "type": "tool_call"}],
}
SAID = otlp(gen_ai__operation__name="chat", gen_ai__request__model=MODEL, gen_ai__usage__input_tokens=500, gen_ai__usage__output_tokens=20,
            gen_ai__usage__cache_read__input_tokens=300, gen_ai__output__messages=text([{"role": "assistant", "finish_reason": "end_turn",
            "parts": [{"type": "text", "content": "Hi"}]}]))  # fmt: skip
DRAWN = otlp(gen_ai__operation__name="chat", gen_ai__request__model=MODEL, gen_ai__usage__input_tokens=500, gen_ai__usage__output_tokens=20,
             gen_ai__usage__cache_read__input_tokens=300, gen_ai__output__messages=text([{"role": "assistant", "parts": [
                 {"type": "blob", "content": "x"}]}]))  # fmt: skip


class Sample(NamedTuple):
    """A log and what it states: exchanges, failures, tokens, cost, vendor, model, and the lines that are no exchanges."""

    file: str
    data: bytes
    exchanges: int = 1
    errors: int = 0
    prompt: int = 500
    completion: int = 20
    cached: int = 300
    cost: float = 0
    vendors: tuple[str, ...] = ("openai",)
    models: tuple[str, ...] = (MODEL,)
    left_out: int = 0


SAMPLES = {
    "Google's SDK, in Weave": Sample("a.jsonl", lines(WEAVE | {"op_name": "weave:///e/p/op/google.genai.models.Models.generate_content:v1",
                                     "output": GEMINI_DUMPED}), vendors=("gemini",), models=("gemini-2.5-pro",)),
    "Google's SDK, in MLflow": Sample("a.jsonl", lines(mlflow_span(spanType="LLM", spanOutputs=GEMINI_DUMPED)), vendors=("gemini",),
                                      models=("gemini-2.5-pro",)),
    "Kong, with details": Sample("a.jsonl", lines(*({**KONG, "ai": {name: {**KONG["ai"]["proxy"], "usage": USAGE_OF_KONG}}}  # type: ignore[index]
                                 for name in ("proxy", "ai-proxy", "ai-proxy-advanced"))), exchanges=3, prompt=1500, completion=60, cached=900),
    "Kong, two calls": Sample("a.jsonl", lines(kong_of(ai_proxy=300, ai_request_transformer=200)), exchanges=2, cached=0),
    "Kong, three calls after one": Sample("a.jsonl", lines(kong_of(proxy=10), kong_of(ai_request_transformer=150, proxy=240, ai_response_transformer=100)),
                                           exchanges=4, completion=40, cached=0),
    "Kong, a transformer alone": Sample("a.jsonl", lines({**kong_of(ai_request_transformer=500), "response": {"status": 502}}), completion=10, cached=0),
    "Kong, older names": Sample("a.jsonl", lines({**KONG, "ai": {"ai-proxy": {"meta": {"provider_name": "openai", "response_model": MODEL}, "usage": {
                                "prompt_token": 500, "completion_token": 20, "total_tokens": 520}}}}), cached=0),
    "Qwen Code at Google's": Sample("a.jsonl", lines(qwen_of("gemini", 15), qwen_of("vertex-ai", 15), qwen_of("openai", 20), qwen_of("qwen-oauth", 20)),
                                    exchanges=4, prompt=2000, completion=80, cached=1200, vendors=("",), models=("qwen3-coder-plus",)),
    "Qwen Code": Sample("a.jsonl", lines(QWEN), vendors=("",), models=("qwen3-coder-plus",)),
    "Gemini CLI, with metrics": Sample("a.log", document(GEMINI_CLI) + b"\n" + document(METRICS), vendors=("gemini",), models=("gemini-2.5-pro",),
                                       left_out=1),
    "aider, a failure": Sample("a.jsonl", lines(AIDER, {**AIDER, "event": "message_send_exception", "properties": {"main_model": MODEL,
                               "exception": "x"}}, {**AIDER, "event": "launched"}), exchanges=2, errors=1, cached=0, cost=0.25, left_out=1),
    "New API, Claude": Sample("a.jsonl", lines(NEW_API_CLAUDE, NEW_API_CLAUDE | {"other": '{"claude":true,"cache_tokens":300}'}), exchanges=2,
                              prompt=950, completion=40, cached=600, vendors=("anthropic",), models=("claude-sonnet-4-5",)),
    "API Management, in rows": Sample("a.jsonl", lines(APIM, *({**APIM, "SequenceNumber": number, "ModelName": "", "PromptTokens": 0,
                                      "CompletionTokens": 0, "RequestMessages": "[]"} for number in (1, 2))), cached=0, vendors=("azure",), left_out=2),
    "Envoy, another route": Sample("a.jsonl", lines(ENVOY, *({**ENVOY, "response_code": status, **dict.fromkeys(
        [key for key in ENVOY if key.startswith("gen_ai")], absent)} for status, absent in ((200, "-"), (404, None)))), cached=0, left_out=2),
    "Databricks, failures": Sample("a.jsonl", lines(DATABRICKS, DATABRICKS | {"status_code": 500, "response": None}, DATABRICKS | {
        "status_code": 429, "response": '{"error_code":"REQUEST_LIMIT_EXCEEDED","message":"slow down"}'}), exchanges=3, errors=2,
        models=(MODEL, "gpt-4o")),
    "Datadog, a call of a tool": Sample("a.jsonl", lines({**DATADOG, "attributes": {**DATADOG["attributes"], "output": {"messages": [  # type: ignore[dict-item]
        DATADOG_CALL]}}})),
    "Langfuse, a call of a tool": Sample("a.jsonl", lines(GENERATION | {"output": LANGCHAIN_CALL}), cost=0.25),
    "Langfuse, parts of its own": Sample("a.jsonl", lines(*(GENERATION | {"output": output} for output in (3, [[1]], {"role": "model", "parts": [
        {"text": "Hi"}]}))), exchanges=3, prompt=1500, completion=60, cached=900, cost=0.75),
    "Langfuse, a failure without counts": Sample("a.jsonl", lines(GENERATION, GENERATION | {"level": "ERROR", "output": None, "usageDetails": {},
        "costDetails": {}, "usage": {"input": 200, "output": 50, "total": 250}}), exchanges=2, errors=1, cost=0.25),
    "LiteLLM, other APIs": Sample("a.jsonl", lines(
        SPEND | {"call_type": "anthropic_messages", "response": CLAUDE, "custom_llm_provider": "anthropic", "model": "claude-sonnet-4-5"},
        SPEND | {"call_type": "pass_through_endpoint", "response": CLAUDE, "custom_llm_provider": "anthropic", "model": "claude-sonnet-4-5"},
        SPEND | {"call_type": "agenerate_content", "response": GEMINI, "custom_llm_provider": "gemini", "model": "gemini-2.5-pro"},
        SPEND | {"call_type": "aocr", "response": {"pages": []}}), exchanges=4, prompt=1800, completion=80, cached=1200, cost=1,
        vendors=("anthropic", "gemini", "openai"), models=("claude-sonnet-4-5", "gemini-2.5-pro", MODEL)),
    "LangSmith, a message": Sample("a.jsonl", lines(RUN | {"outputs": {"message": {"role": "assistant", "content": "Hi"}}}), cost=0.25),
    "PromptLayer, Claude": Sample("a.jsonl", lines(PROMPTLAYER | {"request_response": CLAUDE, "engine": "claude-sonnet-4-5"}), prompt=400, cost=0.25,
                                  models=("claude-sonnet-4-5",)),
    "OTLP, Anthropic's finish reason": Sample("a.jsonl", lines(otlp_file(SAID))),
    "OTLP, an image": Sample("a.jsonl", lines(otlp_file(DRAWN))),
    "a file of OTLP": Sample("a.jsonl", lines(otlp_file(CHAT_SPAN, AGENT_SPAN, TOOL_SPAN, HTTP_SPAN), otlp_file(FAILED_SPAN)),
                             exchanges=2, errors=1, left_out=3),
    "a file of OTLP, indented": Sample("a.json", document(otlp_file(HTTP_SPAN, CHAT_SPAN)), left_out=1),
    "OTLP, a span a line": Sample("a.jsonl", lines(HTTP_SPAN, CHAT_SPAN), left_out=1),
    "OTLP, metrics between the spans": Sample("a.jsonl", lines({"resourceMetrics": []}, CHAT_SPAN), left_out=1),
    "OpenInference in a file of OTLP": Sample("a.jsonl", lines(otlp_file(CHAIN, INFERENCE)), left_out=1),
    "OpenLLMetry in a file of OTLP": Sample("a.jsonl", lines(otlp_file(TRACELOOP, HTTP_SPAN)), cached=0, left_out=1),
    "three conventions in one file": Sample("a.jsonl", lines(otlp_file(CHAT_SPAN, INFERENCE, TRACELOOP)), exchanges=3, prompt=1500,
                                            completion=60, cached=600),
    "the console exporter": Sample("a.txt", document(CONSOLE) + b"\n" + document(CONSOLE), exchanges=2, prompt=1000, completion=40, cached=600),
    "Phoenix": Sample("a.jsonl", lines(PHOENIX, PHOENIX | {"span_kind": "CHAIN"}), left_out=1),
    "Langfuse, a page": Sample("a.json", orjson.dumps({"data": [GENERATION, GENERATION | {"type": "SPAN"}], "meta": {"page": 1}}), cost=0.25,
                               left_out=1),
    "Langfuse, an application's output": Sample("a.jsonl", lines(GENERATION | {"output": {"answer": 42}}), cost=0.25),
    "Langfuse, Gemini": Sample("a.jsonl", lines(GENERATION | {"model": "gemini-2.5-pro"}), cost=0.25, vendors=("gemini",),
                               models=("gemini-2.5-pro",)),
    "LiteLLM, an array of spend logs": Sample("a.json", orjson.dumps([SPEND, SPEND | {"status": "failure", "prompt_tokens": 0,
                                              "completion_tokens": 0, "spend": 0, "metadata": {}}]), exchanges=2, errors=1, cost=0.25),
    "LiteLLM, a page": Sample("a.json", document({"data": [SPEND], "total": 1}), cost=0.25),
    "LangSmith, wrapped": Sample("a.jsonl", lines(RUN, RUN | {"run_type": "chain"}, RUN | {"outputs": None, "error": "429", "prompt_tokens": 0,
                                 "completion_tokens": 0, "total_cost": 0, "prompt_token_details": {}}), exchanges=2, errors=1, cost=0.25, left_out=1),
    "Braintrust": Sample("a.json", orjson.dumps({"events": [SPAN, SPAN | {"span_attributes": {"type": "task"}}]}), left_out=1),
    "PromptLayer": Sample("a.jsonl", lines(PROMPTLAYER), cost=0.25),
    "Opik, a page": Sample("a.json", orjson.dumps({"page": 1, "content": [OPIK, OPIK | {"type": "general"}]}), cost=0.25, left_out=1),
    "Weave": Sample("a.jsonl", lines(WEAVE, WEAVE | {"op_name": "weave:///e/p/op/ask:v0"}), left_out=1),
    "MLflow": Sample("a.jsonl", lines(TRACE), left_out=1),
    "MLflow, a document": Sample("a.json", document([TRACE, TRACE]), exchanges=2, prompt=1000, completion=40, cached=600, left_out=2),
    "Datadog, a page": Sample("a.json", orjson.dumps({"data": [DATADOG, {**DATADOG, "attributes": {**DATADOG["attributes"], "span_kind": "tool"}}]}),  # type: ignore[dict-item]
                              left_out=1),
    "PostHog": Sample("a.jsonl", lines(POSTHOG, POSTHOG | {"event": "$pageview"}), cost=0.25, left_out=1),
    "Kong": Sample("a.log", lines(KONG), cached=0, cost=0.25),
    "Envoy": Sample("a.log", lines(ENVOY), cached=0),
    "API Management": Sample("a.jsonl", lines(APIM), cached=0, vendors=("azure",)),
    "API Management, CSV": Sample("a.csv", b"TimeGenerated,CorrelationId,ModelName,PromptTokens,CompletionTokens\n"
                                  b"2026-05-01T10:00:00Z,c," + MODEL.encode() + b",500,20\n", cached=0, vendors=("azure",)),
    "Databricks": Sample("a.jsonl", lines(DATABRICKS)),
    "Vertex AI's logging": Sample("a.jsonl", lines(VERTEX), cached=0, vendors=("vertex_ai",), models=("gemini-2.5-pro",)),
    "New API, a page": Sample("a.json", orjson.dumps({"success": True, "data": {"items": [NEW_API, NEW_API | {"type": 1}]}}), left_out=1),
    "Helicone, a page": Sample("a.json", orjson.dumps({"data": [HELICONE], "error": None}), cost=0.25),
    "Cloudflare, a page": Sample("a.json", orjson.dumps({"result": [CLOUDFLARE], "success": True}), cached=0, cost=0.25),
    "Bedrock, exported from CloudWatch": Sample("a.json", document({"events": [{"timestamp": 1, "message": text(BEDROCK)}]}), vendors=("bedrock",),
                                                models=("amazon.nova-pro-v1:0",)),
    "OpenAI's batch": Sample("a.jsonl", lines({"id": "b", "custom_id": "1", "response": {"status_code": 200, "body": CHAT}, "error": None})),
    "Mistral's batch": Sample("a.jsonl", lines({"id": "b", "custom_id": "1", "error": None, "response": {
        "status_code": 200, "body": CHAT | {"model": "mistral-small-latest"}}}), vendors=("mistral",), models=("mistral-small-latest",)),
    "Anthropic's batch": Sample("a.jsonl", lines({"custom_id": "1", "result": {"type": "succeeded", "message": CLAUDE}}), prompt=400,
                                vendors=("anthropic",), models=("claude-sonnet-4-5",)),
    "a HAR file": Sample("a.har", document({"log": {"version": "1.2", "entries": [HAR_ENTRY, HAR_ENTRY | {"request": {"method": "POST",
                         "url": "https://telemetry.example/v1"}}]}}), vendors=("groq",), left_out=1),
    "a HAR file on one line": Sample("page", orjson.dumps({"log": {"entries": [HAR_ENTRY]}}), vendors=("groq",)),
    "a VCR cassette": Sample("a.yaml", CASSETTE.encode(), left_out=1),
    "a VCR cassette in JSON": Sample("a.json", document({"version": 1, "interactions": [INTERACTION]})),
    "Gemini CLI, its telemetry": Sample("telemetry.log", document(GEMINI_CLI) + b"\n" + document({**GEMINI_CLI, "attributes": {
        **GEMINI_CLI["attributes"], "event.name": "gemini_cli.user_prompt"}}), vendors=("gemini",), models=("gemini-2.5-pro",), left_out=1),  # type: ignore[dict-item]
    "Gemini CLI, a chat": Sample("session-1.json", document(GEMINI_CHAT), vendors=("gemini",), models=("gemini-2.5-pro",), left_out=1),
    "opencode": Sample("a.jsonl", lines(OPENCODE, {"id": "m", "sessionID": "s", "role": "user", "time": {"created": 1}}), cost=0.25, left_out=1),
    "opencode, an export": Sample("a.json", document({"info": {"id": "s"}, "messages": [{"info": OPENCODE, "parts": []}]}), cost=0.25),
    "promptfoo": Sample("a.json", document(PROMPTFOO), exchanges=2, errors=1, cached=0, cost=0.25, vendors=("openai",), models=("openai:gpt-4o",)),
    "OpenAI Evals": Sample("a.jsonl", lines(*EVALS), cached=0, left_out=3),
    "llm, JSON": Sample("a.json", document([LLM])),
    "aider": Sample("a.jsonl", lines(AIDER, AIDER | {"event": "exit", "properties": {}}), cached=0, cost=0.25, left_out=1),
    "OpenRouter, a generation": Sample("a.json", orjson.dumps({"data": OPENROUTER}), cost=0.25, vendors=("openrouter",), models=("openai/gpt-4o",)),
    "OpenRouter, CSV": Sample("a.csv", OPENROUTER_CSV, cached=0, cost=0.25, vendors=("openrouter",), models=("openai/gpt-4o",)),
    "OpenRouter, CSV, a cancelled one": Sample("a.csv", CANCELLED_CSV, exchanges=2, errors=1, prompt=510, cached=0, cost=0.25, vendors=("openrouter",),
                                               models=("openai/gpt-4o",)),
    "New API, texts": Sample("a.jsonl", lines(*({**NEW_API, "type": type, "prompt_tokens": tokens, "other": "{}"} for type, tokens in
                             (("2", 500), ("5", 0), ("1", 900)))), exchanges=2, errors=1, completion=40, cached=0, left_out=1),
    "Cloudflare, texts": Sample("a.jsonl", lines(*({**CLOUDFLARE, "success": word, "status_code": None} for word in ("True", "False"))), exchanges=2,
                                errors=1, prompt=1000, completion=40, cached=0, cost=0.5),
    "OpenInference on the console": Sample("a.txt", b"\n".join(map(document, (INFERENCE_ON_CONSOLE, INFERENCE_FAILED, AGENT_ON_CONSOLE))),
                                           exchanges=2, errors=1, left_out=1),
    "OpenLLMetry's earlier words on the console": Sample("a.txt", document(AGENT_ON_CONSOLE) + document(TRACELOOP_ON_CONSOLE), left_out=1),
    "LangSmith, runs of LangChain": Sample("a.jsonl", lines(LOCAL_RUN)),
    "LangSmith, a failure without a status": Sample("a.jsonl", lines(LOCAL_RUN | {"outputs": {"output": None}, "error": "RateLimitError()"}),
                                                    errors=1, prompt=0, completion=0, cached=0),
    "Langfuse, the beginning of a failed answer": Sample("a.jsonl", lines(GENERATION | {"level": "ERROR", "statusMessage": "timeout"}),
                                                         errors=1, cost=0.25),
    "Langfuse, a model that several vendors serve": Sample("a.jsonl", lines(GENERATION | {"model": "llama-3.3-70b"}), cost=0.25,
                                                           vendors=("",), models=("llama-3.3-70b",)),
    "PostHog, Claude": Sample("a.jsonl", lines(POSTHOG_CLAUDE), vendors=("anthropic",), models=("claude-sonnet-4-5",)),
    "MLflow, as its library writes it": Sample("a.jsonl", lines({"info": {}, "data": {"spans": MLFLOW_SPANS}}), exchanges=3, errors=1, prompt=508,
                                               models=(MODEL, "text-embedding-3-small"), left_out=1),
    "Opik, content alone": Sample("a.jsonl", lines(*(OPIK | {"output": output} for output in OPIK_OUTPUTS)), exchanges=6, prompt=3000,
                                  completion=120, cached=1800, cost=1.5),
    "promptfoo, Claude": Sample("a.jsonl", lines(PROMPTFOO_CLAUDE), cost=0.25, vendors=("anthropic",),
                                models=("anthropic:messages:claude-sonnet-4-5",)),
    "OpenAI's batch of embeddings": Sample("a.jsonl", lines({"id": "b", "custom_id": "1", "response": {"status_code": 200, "body": EMBEDDED},
                                           "error": None}), prompt=8, completion=0, cached=0, models=("text-embedding-3-small",)),
    "Databricks, embeddings": Sample("a.jsonl", lines(DATABRICKS | {"response": text(EMBEDDED)}, DATABRICKS), exchanges=2, prompt=508,
                                     models=(MODEL, "text-embedding-3-small")),
    "embeddings of other servers": Sample("a.jsonl", lines(
        {"body": {"id": "e", "embeddings": {"float": [[0.1]]}, "meta": {"billed_units": {"input_tokens": 8}}}, "vendor": "cohere"},
        {"body": {"model": "e", "embeddings": [[0.1]], "prompt_eval_count": 8}, "vendor": "cohere"},
        {"body": {"embedding": [0.1], "inputTextTokenCount": 8}, "vendor": "cohere"}), exchanges=3, prompt=24, completion=0, cached=0,
        vendors=("cohere",), models=("e", "")),
    "a page of bodies": Sample("a.json", orjson.dumps({"object": "list", "data": [CHAT, DUMPED], "has_more": False}), exchanges=2, prompt=1000,
                               completion=40, cached=600),
    "a page of Crosswalk's own lines": Sample("a.json", document({"data": [{"body": CHAT, "vendor": "openai"}, {"body": CHAT}]}), exchanges=2,
                                              prompt=1000, completion=40, cached=600),
    "bodies in an array": Sample("a.json", orjson.dumps([CHAT, CLAUDE]), exchanges=2, prompt=900, completion=40, cached=600,
                                 vendors=("openai", "anthropic"), models=(MODEL, "claude-sonnet-4-5")),
    "embeddings": Sample("a.jsonl", lines(CHAT, EMBEDDED), exchanges=2, prompt=508, models=(MODEL, "text-embedding-3-small")),
    "packed": Sample("a.jsonl.gz", gzip.compress(lines(SPEND)), cost=0.25),
    "packed, an array": Sample("a.bin", gzip.compress(orjson.dumps([SPEND])), cost=0.25),
    "rotated": Sample("a.jsonl.1", lines(SPEND, CHAT), exchanges=2, prompt=1000, completion=40, cached=600, cost=0.25),
}  # fmt: skip
