"""Write the statements about the project's own captures: a file ``CASE.says.json`` for each.

The script reads the recorded bytes according to the providers' documents. It imports nothing of Crosswalk, so that a
mistake in a mapping cannot get into the statement that the mapping is checked against. It states the facts that the
documents settle, and leaves out the rest. A person reads the output.

    python scripts/statements.py [PROVIDER ...]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

CAPTURES = Path(__file__).parents[1] / "tests/captures"
ALL_OF = ("ollama", "vllm")
"""The providers with statements about all of their captures."""

Statement: TypeAlias = dict[str, Any]
Reader: TypeAlias = Callable[[list[Any]], Statement | None]

FINISHES = {
    "stop": "stop", "end_turn": "stop", "stop_sequence": "stop", "completed": "stop", "STOP": "stop", "COMPLETE": "stop",
    "eos_token": "stop",
    "length": "length", "max_tokens": "length", "MAX_TOKENS": "length", "max_output_tokens": "length",
    "tool_calls": "tool_calls", "tool_use": "tool_calls", "TOOL_CALL": "tool_calls", "function_call": "tool_calls",
    "content_filter": "content_filter", "SAFETY": "content_filter", "guardrail_intervened": "content_filter",
}  # fmt: skip
"""The finish words of the documents."""

ERRORS = {401: "authentication", 429: "rate_limit", 503: "server", 500: "server"}
"""The kinds that an HTTP status settles if the body does not name another."""

SPENT = {
    # Statuses 429 that concern money or a day's quota, for which a repetition does not help.
    "openai/made_no_quota": ("quota", False),
    "moonshot/made_quota": ("quota", False),
    "cloudflare/made_daily_limit": ("rate_limit", False),
    "zai/made_arrears": ("quota", False),
}


NEVER_ENDED = (
    "openai_responses/ollama_crash_stream",  # the server went away
)
"""Captures that are whole, of answers that are not."""

STILL_MADE = {"openai_responses/vllm_background": "queued"}
"""Bodies of answers that the server is still making, with their status."""


def main(names: list[str]) -> None:
    """Write the statements of the providers *names*, or of all if it is empty."""
    for folder in sorted(CAPTURES.iterdir()):
        if folder.is_dir() and (not names or folder.name in names):
            written = sum(state(folder, entry) for entry in manifest(folder))
            print(f"{folder.name}: {written} statements")


def manifest(folder: Path) -> list[dict[str, Any]]:
    """Return the lines of a folder's manifest."""
    lines = (folder / "MANIFEST.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def state(folder: Path, entry: dict[str, Any]) -> bool:
    """Write the statement about one capture. Return ``False`` if the documents settle nothing about it."""
    file = folder / entry["file"]
    case = file.name.partition(".")[0]
    statement = statement_of(f"{folder.name}/{case}", file.read_bytes(), entry)
    own = folder / f"{case}.says.json"
    if not statement:
        own.unlink(missing_ok=True)
        return False
    own.write_text(json.dumps(statement, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return True


def statement_of(name: str, body: bytes, entry: dict[str, Any]) -> Statement | None:
    """Return the facts about one capture that the documents settle."""
    status = entry.get("status") or 200
    if status >= 400:
        kind, retryable = SPENT.get(name, (ERRORS.get(status), status in (429, 500, 503)))
        error = {} if kind is None else {"error": kind, "retryable": retryable}
        return {"text": None, "calls": [], "finish": "error", **error, "complete": False}
    is_cut = entry.get("complete") is False  # according to the recorder
    try:
        events = events_of(body, is_cut=is_cut)
    except ValueError:
        return None
    if not events or any(not isinstance(event, dict) for event in events):
        return None
    if any("error" in event and event["error"] for event in events):
        return {"finish": "error", "complete": False}
    if name in NEVER_ENDED:
        return {"finish": "error", "complete": False, "raises": "IncompleteStreamError"}
    if name in STILL_MADE:
        return {"finish": "length", "raw_finish": STILL_MADE[name], "complete": False}
    path = (entry.get("path") or "").partition("?")[0]
    reader = next((reader for end, reader in READERS.items() if end in path), None)
    statement = None if reader is None else reader(events)
    if statement is not None and statement.get("calls") and statement.get("finish") == "stop":
        statement["finish"] = "tool_calls"  # an answer that ends with calls asks for them
    if statement is not None and "raw_finish" not in statement and is_cut:
        # An answer without its final signal must not pass for a whole one.
        return {
            "text": statement["text"],
            "finish": "error",
            "complete": False,
            "raises": "IncompleteStreamError",
        }
    text = None if statement is None else statement.get("text")
    if statement is not None and name.startswith("minimax/") and text and text.startswith("<think>"):
        # https://platform.minimax.io/docs: these tags contain the thoughts, at the beginning of the text.
        thought, _, text = text.removeprefix("<think>").partition("</think>")
        statement |= {"text": text, "reasoning": thought}
    return statement


def events_of(body: bytes, *, is_cut: bool) -> list[Any]:
    """Return the events of server-sent events, of lines of JSON, or of one body. Half an event at a cut is left out.

    Raises:
        ValueError: an event is not JSON.
    """
    text = body.decode("utf-8-sig")
    if text.lstrip().startswith(("{", "[")):
        try:
            return [json.loads(text)]
        except ValueError:
            return [json.loads(line) for line in text.splitlines() if line.strip()]
    events = []
    blocks = text.replace("\r\n", "\n").replace("\r", "\n").split("\n\n")
    for block in blocks[:-1] if is_cut else blocks:
        data = "\n".join(line[5:].removeprefix(" ") for line in block.split("\n") if line.startswith("data:"))
        if data.strip() and not data.strip().startswith("[DONE]"):
            events.append(json.loads(data))
    return events


# ----------------------------------------------------------------------------------- small helpers


def joined(pieces: Iterable[Any]) -> str | None:
    """Join the texts among *pieces*, or return ``None`` if the result is empty."""
    return "".join(piece for piece in pieces if isinstance(piece, str)) or None


def first(events: list[Any], key: str) -> Any:
    """Return the first value of *key* that is not empty."""
    return next((event[key] for event in events if event.get(key)), None)


def at_seconds(seconds: Any) -> str | None:
    """Return the time *seconds* after 1970, in ISO 8601."""
    if type(seconds) is not int or seconds <= 0:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def counts(**given: Any) -> Statement:
    """Return the counts that were sent."""
    return {name: count for name, count in given.items() if type(count) is int}


def end(word: Any) -> Statement:
    """Return the meaning of the finish word *word*."""
    finish = FINISHES.get(word)
    known = {} if finish is None else {"finish": finish, "complete": finish == "stop"}
    return {**known, "raw_finish": word}


# -------------------------------------------------------------------------------- Chat Completions


def chat(events: list[Any]) -> Statement | None:
    """https://platform.openai.com/docs/api-reference/chat, and the fields of servers that speak it."""
    choices = [
        choice for event in events for choice in event.get("choices") or () if choice.get("index", 0) == 0
    ]
    parts = [choice.get("delta") or choice.get("message") or {} for choice in choices]
    word = next(
        (choice["finish_reason"] for choice in reversed(choices) if choice.get("finish_reason")), None
    )
    if not choices or any(isinstance(part.get("content"), list) for part in parts):
        return None
    if {True, False} == {"delta" in choice for choice in choices}:
        return None
    if any("delta" in choice and "message" in choice for choice in choices):
        parts = [choices[-1]["message"]]  # Perplexity: each delta comes with the whole message so far
    text = joined(part.get("content") for part in parts)
    if word is None:
        return {"text": text}
    thoughts = [part.get("reasoning_content") or part.get("reasoning") for part in parts]
    if any("reasoning_details" in part for part in parts):
        thoughts = []
    calls = called(parts)
    usages = [event["usage"] for event in events if event.get("usage")]
    # Servers that count several choices separately send several reports.
    usage = None if len(usages) > 1 and several(events) else next(reversed(usages), None)
    found: Statement = {
        "text": text,
        **({"reasoning": joined(thoughts)} if thoughts else {}),
        "refusal": joined(part.get("refusal") for part in parts),
        **({} if calls is None else {"calls": calls}),
        **end(word),
        "id": first(events, "id"),
        "model": first(events, "model"),
        "created": at_seconds(first(events, "created")),
    }
    if calls is None or found["refusal"] or word not in ("stop", "length", "content_filter", "tool_calls"):
        found.pop("complete", None)
    if calls is None:
        found.pop("finish", None)
    if calls:
        found["complete"] = False
    if usage:
        inner, spoken = usage.get("prompt_tokens_details") or {}, usage.get("completion_tokens_details") or {}
        thought, completion = spoken.get("reasoning_tokens"), usage.get("completion_tokens")
        if thought and usage.get("total_tokens") == usage.get("prompt_tokens") + completion + thought:
            completion += thought  # the sum shows that the server counts reasoning separately
        found["usage"] = counts(
            prompt_tokens=usage.get("prompt_tokens"),
            completion_tokens=completion,
            cached_tokens=inner.get("cached_tokens"),
            reasoning_tokens=thought,
        )
    return found


def several(events: list[Any]) -> bool:
    """Whether there is more than one choice."""
    return any(choice.get("index", 0) > 0 for event in events for choice in event.get("choices") or ())


def called(parts: list[Any]) -> list[Statement] | None:
    """Return the calls of a message, or of its deltas by their index. ``None`` if an index is missing or used twice."""
    calls: dict[int, Statement] = {}
    for part in parts:
        listed = part.get("tool_calls") or ()
        if (legacy := part.get("function_call")) and not any(other.get("tool_calls") for other in parts):
            listed = [{"index": 0, "function": legacy}]
        for number, call in enumerate(listed):
            if not isinstance(call, dict) or ("index" not in call and len(parts) > 1):
                return None
            function, index = call.get("function") or {}, call.get("index", number)
            if type(index) is not int or call.get("type", "function") != "function":
                return None
            known = calls.setdefault(
                index, {"id": call.get("id"), "name": function.get("name"), "arguments": ""}
            )
            if function.get("name") and known["name"] not in (None, function["name"]):
                return None
            known["name"] = known["name"] or function.get("name")
            known["id"] = known["id"] or call.get("id")
            arguments = function.get("arguments")
            if isinstance(arguments, dict):
                known["arguments"] = arguments
            elif isinstance(known["arguments"], str):
                known["arguments"] += arguments or ""
    found = [calls[index] for index in sorted(calls)]
    for call in found:
        if call["id"] == "null":
            call["id"] = None  # Mistral's documents: the default of an id is the text "null"
        if call["id"] in (0, "0"):
            del call["id"]  # TGI sends the same for every call
    return found


def completions(events: list[Any]) -> Statement | None:
    """https://platform.openai.com/docs/api-reference/completions."""
    choices = [
        choice for event in events for choice in event.get("choices") or () if choice.get("index", 0) == 0
    ]
    word = next(
        (choice["finish_reason"] for choice in reversed(choices) if choice.get("finish_reason")), None
    )
    if word is None:
        return None
    usages = [event["usage"] for event in events if event.get("usage")]
    usage: Statement = {} if len(usages) > 1 and several(events) else next(reversed(usages), {})
    return {
        "text": joined(choice.get("text") for choice in choices),
        "calls": [],
        **end(word),
        "id": first(events, "id"),
        "model": first(events, "model"),
        "created": at_seconds(first(events, "created")),
        **({"usage": found} if (found := counts(
            prompt_tokens=usage.get("prompt_tokens"), completion_tokens=usage.get("completion_tokens")
        )) else {}),
    }  # fmt: skip


# ------------------------------------------------------------------------------------------ Ollama


def ollama(events: list[Any]) -> Statement | None:
    """https://docs.ollama.com/api: ``/api/chat`` and ``/api/generate``."""
    last = events[-1]
    parts = [
        event.get("message") or {"content": event.get("response"), "thinking": event.get("thinking")}
        for event in events
    ]
    calls = [
        {"id": call.get("id"), "name": call["function"]["name"], "arguments": call["function"]["arguments"]}
        for part in parts for call in part.get("tool_calls") or ()
    ]  # fmt: skip
    if not last.get("done"):
        return {"text": joined(part.get("content") for part in parts), "calls": []}
    word = last.get("done_reason")
    return {
        "text": joined(part.get("content") for part in parts),
        "reasoning": joined(part.get("thinking") for part in parts),
        "calls": calls,
        **({} if word is None else end(word)),
        **({"complete": False} if calls else {}),
        "model": first(events, "model"),
        "id": None,
        "created": moment(events[0].get("created_at")),
        **({"usage": found} if (found := counts(
            prompt_tokens=last.get("prompt_eval_count"), completion_tokens=last.get("eval_count")
        )) else {}),
    }  # fmt: skip


def moment(text: Any) -> str | None:
    """Return a time in RFC 3339, without fractions of a microsecond."""
    if not isinstance(text, str):
        return None
    head, dot, rest = text.partition(".")
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    return f"{head}{dot}{digits[:6]}{rest[len(digits) :]}"


# ------------------------------------------------------------------------------- Anthropic Messages


def messages(events: list[Any]) -> Statement | None:
    """https://docs.anthropic.com/en/api/messages: a message, or the events of a stream."""
    if len(events) == 1 and events[0].get("type") == "message":
        message, blocks = events[0], events[0].get("content") or []
        usage, word = message.get("usage") or {}, message.get("stop_reason")
    else:
        starts = [event["message"] for event in events if event.get("type") == "message_start"]
        ends = [event for event in events if event.get("type") == "message_delta"]
        if len(starts) != 1 or not ends:
            return None
        message, blocks = starts[0], streamed_blocks(events)
        usage = (message.get("usage") or {}) | {
            k: v for k, v in (ends[-1].get("usage") or {}).items() if v is not None
        }
        word = next(
            (one["delta"].get("stop_reason") for one in reversed(ends) if one["delta"].get("stop_reason")),
            None,
        )
    if word is None or word not in ("end_turn", "max_tokens", "stop_sequence", "tool_use"):
        return None
    known = {"text", "thinking", "redacted_thinking", "tool_use"}
    if any(block.get("type") not in known for block in blocks):
        return None
    calls = [
        {"id": block["id"], "name": block["name"], "arguments": block["input"]}
        for block in blocks if block["type"] == "tool_use"
    ]  # fmt: skip
    fresh, read, wrote = (
        usage.get(key) for key in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    )
    return {
        "text": joined(block["text"] for block in blocks if block["type"] == "text"),
        "reasoning": joined(block["thinking"] for block in blocks if block["type"] == "thinking"),
        "calls": calls,
        **end(word),
        **({"complete": False} if calls else {}),
        "id": message.get("id"),
        "model": message.get("model"),
        "created": None,
        "usage": counts(
            prompt_tokens=None if fresh is None else fresh + (read or 0) + (wrote or 0),
            completion_tokens=usage.get("output_tokens"),
            cached_tokens=read,
            cache_write_tokens=wrote,
        ),
    }


def streamed_blocks(events: list[Any]) -> list[Statement]:
    """Return the content blocks in the events of a stream."""
    blocks: dict[int, Statement] = {}
    inputs: dict[int, str] = {}
    for event in events:
        if event.get("type") == "content_block_start":
            blocks[event["index"]] = dict(event["content_block"])
        elif event.get("type") == "content_block_delta":
            delta, block = event["delta"], blocks[event["index"]]
            for key in ("text", "thinking"):
                if delta["type"] == f"{key}_delta":
                    block[key] = block.get(key, "") + delta[key]
            if delta["type"] == "input_json_delta":
                inputs[event["index"]] = inputs.get(event["index"], "") + delta["partial_json"]
    for index, text in inputs.items():
        if text:
            blocks[index]["input"] = text
    return [blocks[index] for index in sorted(blocks)]


# --------------------------------------------------------------------------------------- Responses


def responses(events: list[Any]) -> Statement | None:
    """https://platform.openai.com/docs/api-reference/responses: a response, or the event that ends a stream."""
    ends = ("response.completed", "response.incomplete")
    whole = events[0] if events[0].get("object") == "response" else next(
        (event["response"] for event in events if event.get("type") in ends), None
    )  # fmt: skip
    if whole is None or whole.get("status") != "completed":
        return None
    items = whole.get("output") or []
    if any(item["type"] not in ("message", "reasoning", "function_call") for item in items):
        return None
    parts = [part for item in items if item["type"] == "message" for part in item["content"]]
    calls = [
        {"id": item["call_id"], "name": item["name"], "arguments": item["arguments"]}
        for item in items if item["type"] == "function_call"
    ]  # fmt: skip
    usage = whole.get("usage") or {}
    refusal = joined(part.get("refusal") for part in parts)
    return {
        "text": joined(part.get("text") for part in parts),
        "refusal": refusal,
        "calls": calls,
        **({} if refusal else {"finish": "tool_calls" if calls else "stop"}),
        "complete": not calls and not refusal,
        "id": whole.get("id"),
        "model": whole.get("model"),
        "created": at_seconds(whole.get("created_at")),
        **({"usage": counts(
            prompt_tokens=usage.get("input_tokens"),
            completion_tokens=usage.get("output_tokens"),
            cached_tokens=(usage.get("input_tokens_details") or {}).get("cached_tokens"),
            reasoning_tokens=(usage.get("output_tokens_details") or {}).get("reasoning_tokens"),
        )} if usage else {}),
    }  # fmt: skip


# ------------------------------------------------------------------------------------------ Gemini


def gemini(events: list[Any]) -> Statement | None:
    """https://ai.google.dev/api/generate-content: a response, or the chunks of a stream."""
    chosen = [one for event in events for one in event.get("candidates") or () if one.get("index", 0) == 0]
    parts = [part for one in chosen for part in (one.get("content") or {}).get("parts") or ()]
    word = next((one["finishReason"] for one in reversed(chosen) if one.get("finishReason")), None)
    known = {"text", "thought", "thoughtSignature", "functionCall"}
    if word not in ("STOP", "MAX_TOKENS") or any(part.keys() - known for part in parts):
        return None
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    usage: Statement = next(
        (event["usageMetadata"] for event in reversed(events) if event.get("usageMetadata")), {}
    )
    thought = usage.get("thoughtsTokenCount")
    return {
        "text": joined(part.get("text") for part in parts if not part.get("thought")),
        "reasoning": joined(part.get("text") for part in parts if part.get("thought")),
        **({} if any("partialArgs" in call for call in calls) else {"calls": [
            {"name": call["name"], "arguments": call.get("args", "")} for call in calls
        ]}),
        **end(word),
        **({"finish": "tool_calls", "complete": False} if calls else {}),
        "id": first(events, "responseId"),
        "model": first(events, "modelVersion"),
        "usage": counts(
            prompt_tokens=usage.get("promptTokenCount", 0) + usage.get("toolUsePromptTokenCount", 0),
            completion_tokens=usage.get("candidatesTokenCount", 0) + (thought or 0),
            cached_tokens=usage.get("cachedContentTokenCount"),
            reasoning_tokens=thought,
        ),
    }  # fmt: skip


# ----------------------------------------------------------------------------------- Cohere, Bedrock


def cohere(events: list[Any]) -> Statement | None:
    """https://docs.cohere.com/reference/chat: a body of version 2."""
    body = events[0]
    if len(events) > 1 or body.get("finish_reason") not in FINISHES:
        return None
    message, tokens = body["message"], (body.get("usage") or {}).get("tokens") or {}
    blocks = message.get("content") or []
    calls = [
        {"id": call["id"], **call["function"]} for call in message.get("tool_calls") or ()
    ]  # fmt: skip
    return {
        "text": joined(block.get("text") for block in blocks),
        **({} if "tool_plan" in message else {"reasoning": joined(block.get("thinking") for block in blocks)}),
        "calls": calls,
        **end(body["finish_reason"]),
        "id": body["id"],
        "usage": {
            name: int(tokens[key])
            for name, key in (("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens")) if key in tokens
        },
    }  # fmt: skip


def bedrock(events: list[Any]) -> Statement | None:
    """https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html: a body."""
    body = events[0]
    if (
        len(events) > 1
        or body.get("stopReason") not in FINISHES
        or body["stopReason"] == "guardrail_intervened"
    ):
        return None
    blocks = body["output"]["message"]["content"]
    if any(block.keys() - {"text", "toolUse", "reasoningContent"} for block in blocks):
        return None
    calls = [
        {"id": block["toolUse"]["toolUseId"], "name": block["toolUse"]["name"], "arguments": block["toolUse"]["input"]}
        for block in blocks if "toolUse" in block
    ]  # fmt: skip
    usage = body.get("usage") or {}
    read, wrote = usage.get("cacheReadInputTokens"), usage.get("cacheWriteInputTokens")
    thoughts = [
        block["reasoningContent"].get("reasoningText", {}).get("text")
        for block in blocks
        if "reasoningContent" in block
    ]
    return {
        "text": joined(block.get("text") for block in blocks),
        "reasoning": joined(thoughts),
        "calls": calls,
        **end(body["stopReason"]),
        "usage": counts(
            prompt_tokens=usage.get("inputTokens", 0) + (read or 0) + (wrote or 0),
            completion_tokens=usage.get("outputTokens"),
            cached_tokens=read,
            cache_write_tokens=wrote,
        ),
    }  # fmt: skip


# ------------------------------------------------------------------------ TGI, Cloudflare, DashScope


def tgi(events: list[Any]) -> Statement | None:
    """https://huggingface.github.io/text-generation-inference: ``/generate`` and ``/generate_stream``."""
    last = events[-1]
    details = last.get("details") or {}
    if details.get("finish_reason") not in FINISHES or "best_of_sequences" in details:
        return None
    return {
        # The text of a stream's last event may have the prompt before it.
        "text": last["generated_text"]
        if "token" not in last
        else joined(event["token"]["text"] for event in events if not event["token"]["special"]),
        "calls": [],
        **end(details["finish_reason"]),
        "id": None,
        "model": None,
        "usage": counts(
            completion_tokens=details.get("generated_tokens"), prompt_tokens=details.get("input_length")
        ),
    }


def cloudflare(events: list[Any]) -> Statement | None:
    """https://developers.cloudflare.com/workers-ai: the text of a model that is run."""
    results = [event.get("result", event) for event in events]
    if not all(isinstance(result, dict) and isinstance(result.get("response"), str) for result in results):
        return None
    usage = next((result["usage"] for result in reversed(results) if result.get("usage")), None)
    return {
        "text": joined(result["response"] for result in results),
        "id": None,
        "model": None,
        **(
            {"usage": counts(**usage) | {}}
            if usage and usage.keys() <= {"prompt_tokens", "completion_tokens"}
            else {}
        ),
    }


def dashscope(events: list[Any]) -> Statement | None:
    """https://www.alibabacloud.com/help/en/model-studio: a body of the native API, in its form of messages."""
    choices = (events[0].get("output") or {}).get("choices") or []
    if len(events) > 1 or len(choices) != 1 or not isinstance(choices[0]["message"].get("content"), str):
        return None
    message, usage = choices[0]["message"], events[0].get("usage") or {}
    return {
        "text": message["content"] or None,
        "reasoning": message.get("reasoning_content") or None,
        **end(choices[0]["finish_reason"]),
        "id": events[0].get("request_id"),
        "usage": counts(
            prompt_tokens=usage.get("input_tokens"), completion_tokens=usage.get("output_tokens")
        ),
    }


READERS: dict[str, Reader] = {
    "/chat/completions": chat,
    "/chatcompletion_v2": chat,
    "/completions": completions,
    "/api/chat": ollama,
    "/api/generate": ollama,
    "/v1/messages": messages,
    "/v1/responses": responses,
    ":generateContent": gemini,
    ":streamGenerateContent": gemini,
    "/v2/chat": cohere,
    "/converse": bedrock,
    "/generate": tgi,
    "/ai/run/": cloudflare,
    "/text-generation/generation": dashscope,
}
"""The reader for each HTTP path. The first match counts."""

if __name__ == "__main__":
    main(sys.argv[1:])
