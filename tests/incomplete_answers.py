"""Answers that look whole and are not, and some that are: provider, payload, finish reason, why it is incomplete."""

from __future__ import annotations

from typing import Any

import orjson


def chat(message: dict[str, Any], finish: str | None = "stop", **more: Any) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish, **more}
    return orjson.dumps(
        {"id": "c", "object": "chat.completion", "created": 1767225600, "model": "m", "choices": [choice]}
    )


def chunks(*deltas: dict[str, Any], finish: str = "stop", **more: Any) -> bytes:
    said = [
        *({"delta": delta, "finish_reason": None} for delta in deltas),
        {"delta": {}, "finish_reason": finish, **more},
    ]
    about = {"id": "c", "object": "chat.completion.chunk", "created": 1767225600, "model": "m"}
    events = [orjson.dumps({**about, "choices": [{"index": 0, **one}]}) for one in said]
    return b"".join(b"data: %s\n\n" % event for event in [*events, b"[DONE]"])


def native(word: Any, *, finish: str | None = "stop", text: str = "Hi") -> bytes:
    return chat({"content": text}, finish, native_finish_reason=word)


def message(*content: dict[str, Any], stop: str, **more: Any) -> bytes:
    about = {"id": "m", "type": "message", "role": "assistant", "model": "claude", "stop_sequence": None}
    counts = {"input_tokens": 3, "output_tokens": 2}
    return orjson.dumps({**about, "content": content, "stop_reason": stop, "usage": counts, **more})


def responses(*events: dict[str, Any], content: dict[str, Any] | None = None) -> bytes:
    begins = {"type": "response.created", "response": {"id": "r", "status": "in_progress", "output": []}}
    item = {
        "type": "message",
        "id": "i",
        "role": "assistant",
        "content": [content or {"type": "output_text", "text": "Yes"}],
    }
    whole = {"id": "r", "status": "completed", "model": "m", "created_at": 1767225600, "output": [item]}
    ends = {"type": "response.completed", "response": whole}
    return b"".join(b"data: %s\n\n" % orjson.dumps(event) for event in (begins, *events, ends))


def body(*output: dict[str, Any]) -> bytes:
    about = {"object": "response", "id": "r", "model": "m", "created_at": 1767225600}
    return orjson.dumps({**about, "status": "completed", "output": output})


def gemini(*parts: dict[str, Any]) -> bytes:
    return orjson.dumps({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]})


def cohere(content: list[dict[str, Any]]) -> bytes:
    answer = {"role": "assistant", "content": content}
    return orjson.dumps({"id": "c", "message": answer, "finish_reason": "COMPLETE"})


def bedrock(*content: dict[str, Any]) -> bytes:
    return orjson.dumps(
        {"output": {"message": {"role": "assistant", "content": content}}, "stopReason": "end_turn"}
    )


def dashscope(content: list[dict[str, Any]]) -> bytes:
    choice = {"message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    return orjson.dumps({"request_id": "d", "output": {"choices": [choice]}})


def counted(payload: bytes, tokens: int = 5, reasoning: int | None = None) -> bytes:
    """*payload*, a body of Chat Completions, with counts."""
    usage: dict[str, Any] = {"prompt_tokens": 3, "completion_tokens": tokens, "total_tokens": 3 + tokens}
    if reasoning is not None:
        usage["completion_tokens_details"] = {"reasoning_tokens": reasoning}
    return orjson.dumps({**orjson.loads(payload), "usage": usage})


def broken(arguments: str) -> dict[str, Any]:
    return {"content": None, "tool_calls": [{**CALL, "function": {"name": "go", "arguments": arguments}}]}


CALL = {"id": "k", "type": "function", "function": {"name": "go", "arguments": "{}"}}
STREAMED = [
    {"tool_calls": [{"index": 0, "id": "k", "function": {"name": "go", "arguments": '{"x'}}]},
    {"tool_calls": [{"index": 0, "function": {"arguments": '":'}}]},
]
SAYS = {"text": "Hi there"}
USE = {"type": "tool_use", "id": "k", "name": "go", "input": {}}
TEXT = {"type": "text", "text": "Let me look"}
NEW = {"type": "hologram", "data": "x"}
NOVEL = {"type": "response.output_gesture.delta", "delta": "waves"}

CASES: list[tuple[str, bytes, str, str | None]] = [
    ("openai", chat({"content": "Hi"}), "stop", None),
    ("openai", chat({"content": None, "tool_calls": [CALL]}, "tool_calls"), "tool_calls", None),
    ("openai", chat({"content": "Hi", "novel": "an unknown field"}), "stop", None),
    ("openai", chat({"content": "Hi"}, "length"), "length", "length"),
    ("openai", chat({"content": "Hi"}, "content_filter"), "content_filter", "content_filter"),
    # A finish word, or an event, that no mapping knows.
    ("openai", chat({"content": "Hi"}, "bored"), "stop", "unknown_finish_reason"),
    ("openai", chunks({"content": "Hi"}, finish="bored"), "stop", "unknown_finish_reason"),
    ("openai_responses", responses(NOVEL), "stop", "unknown_event"),
    ("openai_responses", responses(), "stop", None),
    # A part of a type that no mapping knows, in the place of text.
    ("openai", chat({"content": [NEW]}), "stop", "unknown_event"),
    ("openai", chat({"content": [TEXT, NEW]}), "stop", "unknown_event"),
    ("openai_responses", responses(content=NEW), "stop", "unknown_event"),
    ("openai_responses", body({"type": "message", "content": [NEW]}), "stop", "unknown_event"),
    ("openai_responses", body({"type": "hologram", "id": "h"}), "stop", "unknown_event"),
    ("openai_responses", body({"type": "acme:trace", "id": "h"}), "stop", None),
    ("anthropic", message(NEW, stop="end_turn"), "stop", "unknown_event"),
    ("gemini", gemini({"hologram": {"data": "x"}}), "stop", "unknown_event"),
    ("gemini", gemini({"text": "Hi", "novel": 1}, {"thoughtSignature": "x"}, {}), "stop", None),
    ("cohere", cohere([NEW]), "stop", "unknown_event"),
    ("cohere", cohere([TEXT]), "stop", None),
    ("bedrock", bedrock({"hologram": {"data": "x"}}), "stop", "unknown_event"),
    ("bedrock", bedrock({"text": "Hi", "novel": 1}), "stop", None),
    ("dashscope", dashscope([{"hologram": "x"}]), "stop", "unknown_event"),
    ("mistral", chat({"content": [NEW]}), "stop", "unknown_event"),
    # The server says that it calls tools, and no call came.
    ("vllm", chat({"content": "<tool_call>{"}, "tool_calls"), "tool_calls", "missing_call"),
    ("sglang", chunks({"content": "I call"}, finish="tool_calls"), "tool_calls", "missing_call"),
    ("anthropic", message(TEXT, stop="tool_use"), "tool_calls", "missing_call"),
    ("anthropic", message(TEXT, USE, stop="tool_use"), "tool_calls", None),
    # The arguments of a call are no JSON object.
    ("vllm", chat(broken('{"x":'), "tool_calls"), "tool_calls", "invalid_arguments"),
    ("openai", chat(broken("[1]")), "tool_calls", "invalid_arguments"),
    ("groq", chat(broken("null"), "tool_calls"), "tool_calls", "invalid_arguments"),
    ("ollama", chat(broken('{"x":1,"x":2}'), "tool_calls"), "tool_calls", "invalid_arguments"),
    ("mistral", chat({"content": "Hi", **broken(" ")}), "tool_calls", "invalid_arguments"),
    ("openai", chunks(*STREAMED, finish="tool_calls"), "tool_calls", "invalid_arguments"),
    ("openai", chunks(*STREAMED, finish="length"), "length", "length"),
    ("openai", chat({"content": None, "tool_calls": [CALL, *broken("go!")["tool_calls"]]}), "tool_calls", "invalid_arguments"),
    ("openai", chat({"content": None, "tool_calls": [{"id": "k", "type": "custom", "custom": {"name": "go", "input": "{"}}]}), "tool_calls", None),
    ("openai", chat(broken(""), "tool_calls"), "tool_calls", None),
    ("openai_responses", body({"type": "function_call", "call_id": "k", "name": "go", "arguments": '{"x":'}), "tool_calls", "invalid_arguments"),
    # Tokens were counted, there is no content, and text is left in the message.
    *((name, counted(chat(SAYS)), "stop", "unread") for name in ("vllm", "openai", "mistral", "ollama", "dashscope", "tgi")),
    ("openai", counted(chat({"content": None, "parts": [{"words": ["Hi"]}]})), "stop", "unread"),
    ("openai", counted(chat({"content": None, "calls": [{"id": "k", "name": "go", "args": "{}"}]}), 9, 4), "stop", "unread"),
    ("deepseek", counted(chat({"reasoning_content": "Hm", **SAYS}), 9, 4), "stop", "unread"),
    ("cloudflare", orjson.dumps({"result": orjson.loads(counted(chat(SAYS))), "success": True}), "stop", "unread"),
    ("anthropic", message({"type": "text", "words": "Hi"}, stop="end_turn"), "stop", "unread"),
    ("anthropic", message({"type": "text", "words": "Hi"}, stop="pause_turn"), "stop", "unread"),
    ("vllm", counted(chat(SAYS, "length")), "length", "length"),
    ("vllm", counted(chat(SAYS, "tool_calls")), "tool_calls", "missing_call"),
    # Nothing was lost there, or nobody can tell.
    ("vllm", chat(SAYS), "stop", None),
    ("vllm", counted(chat(SAYS), 4, 4), "stop", None),
    ("deepseek", counted(chat({"reasoning_content": "Hm", **SAYS})), "stop", None),
    ("vllm", counted(chat({"content": "Hi", "novel": "words"})), "stop", None),
    ("vllm", counted(chat({"content": "", "name": "Bob", "message_id": "m", "status": "done", "novel": " "})), "stop", None),
    ("vllm", counted(chat({"content": ""}, stop_reason="END")), "stop", None),
    # A refusal.
    ("openai", chat({"content": None, "refusal": "I would rather not."}), "stop", "refusal"),
    ("openai", chunks({"refusal": "I would "}, {"refusal": "rather not."}), "stop", "refusal"),
    ("openai_responses", responses(content={"type": "refusal", "refusal": "No."}), "stop", "refusal"),
    # The model pauses, and goes on when it is asked again.
    ("anthropic", message(TEXT, stop="pause_turn"), "stop", "paused"),
    ("anthropic", message(TEXT, stop="compaction"), "stop", "paused"),
    # The word of the provider behind an aggregator contradicts the aggregator's own, whoever reads the answer.
    ("openrouter", native("error", text=""), "error", "error"),
    ("openrouter", native("MALFORMED_FUNCTION_CALL"), "error", "error"),
    ("openrouter", chunks({"content": "Hi"}, finish="stop", native_finish_reason="failed"), "error", "error"),
    ("openrouter", native("SAFETY"), "content_filter", "content_filter"),
    ("openrouter", native("max_tokens"), "length", "length"),
    ("openrouter", native("end_turn"), "stop", None),
    ("openrouter", native("novel"), "stop", None),
    ("openai", native("malformed_model_output"), "error", "error"),
    ("groq", native("network_error"), "error", "error"),
    ("gemini", native("MALFORMED_FUNCTION_CALL"), "error", "error"),
    ("cloudflare", native("ERROR_TOXIC"), "content_filter", "content_filter"),
    ("dashscope", native("pause_turn"), "stop", "paused"),
    ("together", chunks({"content": "Hi"}, finish="stop", native_finish_reason="TIMEOUT"), "error", "error"),
    ("vllm", native("error", finish="length"), "error", "error"),
    ("openai", native("max_output_tokens"), "length", "length"),
    ("mistral", native("abort"), "cancelled", "cancelled"),
    ("deepseek", native("STOP"), "stop", None),
    ("xai", native("completed", finish="length"), "length", "length"),
    ("openrouter", native("OTHER"), "error", "error"),
    ("openai", native("FINISH_REASON_UNSPECIFIED"), "stop", None),
    # Words of one server alone.
    ("fireworks", chat({"content": "Hi"}, "malformed_function_call"), "error", "error"),
    ("fireworks", chunks({"content": "Hi"}, finish="malformed_function_call"), "error", "error"),
    ("groq", chat({"content": None, "tool_calls": [CALL]}, "tool_use"), "tool_calls", None),
    ("groq", chunks({"content": "Hi"}, finish="tool_use"), "tool_calls", "missing_call"),
    ("groq", chat({"content": "Hi"}, "tool_user"), "stop", "unknown_finish_reason"),
    ("openai", native("tool_use"), "tool_calls", "missing_call"),
    ("openai", native("pause_turn"), "stop", "paused"),
    ("openai", native(["error"]), "stop", None),
    ("openai", chunks({"content": "Hi"}).replace(b"null", b'null,"native_finish_reason":"length"'), "stop", None),
    ("openai", native(""), "stop", None),
]  # fmt: skip
"""Read with ``unknown="keep"``."""
