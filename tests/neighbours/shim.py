"""Crosswalk before wiretruth (https://pypi.org/project/wiretruth): reads a call, makes it, and prints what was observed.

``wiretruth-shim.json`` beside this file describes it. wiretruth runs it once for each cell of its suite.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import crosswalk
from crosswalk import ChatMessage, ChatResponse, FinishReason, MappingError, Provenance, ProviderError
from crosswalk.service import (
    ChatRequest,
    Endpoint,
    NamedTool,
    ResponseFormat,
    RetryPolicy,
    SyncLLMService,
    ToolChoice,
    ToolDefinition,
    UnsupportedRequestError,
)
from crosswalk.types import IncompleteReason

PROVIDERS = {
    "openai-chat": "openai",
    "openai-responses": "openai_responses",
    "anthropic": "anthropic",
    "gemini": "gemini",
    "ollama": "ollama",
    "ollama-openai": "openai",
}
COUNTS = {
    "input": "prompt_tokens",
    "cached_input": "cached_tokens",
    "output": "completion_tokens",
    "reasoning": "reasoning_tokens",
    "total": "total_tokens",
}
CATEGORIES = {"RateLimitError": "rate_limit", "ContextOverflowError": "context_length"}
CATEGORIES |= {"ContentFilterError": "content_filter"}
NOT_COUNTED = {Provenance.ABSENT, Provenance.CUT}


def request_of(call: dict[str, Any]) -> ChatRequest:
    choice, schema, reasoning = call["tool_choice"], call["output_schema"], call["reasoning"]
    return ChatRequest(
        [ChatMessage(one["role"], one["content"]) for one in call["messages"]],
        model=call["model"],
        max_tokens=call["max_output_tokens"],
        stop=call["stop"] or (),
        tools=[
            ToolDefinition(tool["name"], tool["description"], tool["parameters"]) for tool in call["tools"]
        ],
        tool_choice=NamedTool(choice["name"]) if isinstance(choice, dict) else choice and ToolChoice(choice),
        response_format=None if schema is None else ResponseFormat(schema=schema, name="answer"),
        reasoning_effort=None if reasoning is None else reasoning["effort"],
    )


def finish_of(response: ChatResponse) -> str:
    if response.incomplete_reason in (IncompleteReason.UNKNOWN_FINISH_REASON, IncompleteReason.PAUSED):
        return "other"
    if response.raw_finish_reason == "refusal" or response.incomplete_reason is IncompleteReason.REFUSAL:
        return "refusal"
    return "other" if response.finish_reason is FinishReason.CANCELLED else response.finish_reason.value


def raw_of(response: ChatResponse) -> str | None:
    """The word of the wire. Crosswalk writes the status of the Responses API before its detail."""
    status, _, detail = (response.raw_finish_reason or "").partition(":")
    return detail if status == "incomplete" else status or None


def count_of(response: ChatResponse, name: str) -> int | None:
    provenance = response.metadata.provenance
    if provenance.get("usage") in NOT_COUNTED or provenance.get(f"usage.{name}") in NOT_COUNTED:
        return None
    count: int | None = getattr(response.usage, name)
    return count


def call_of(call: Any) -> dict[str, Any]:
    try:
        arguments, is_parsed = json.loads(call.arguments), True
    except ValueError:
        arguments, is_parsed = None, False
    return {
        "id": call.id,
        "name": call.name,
        "arguments_raw": call.arguments,
        "arguments_parsed_ok": is_parsed,
        "arguments": arguments,
    }


def observed(response: ChatResponse | None) -> dict[str, Any]:
    """What the caller of the library sees in *response*."""
    if response is None:
        return {"finish": None, "text": None, "tool_calls": [], "usage": None}
    counts = {name: count_of(response, field) for name, field in COUNTS.items()}
    surfaces = {name: "absent" if count is None else "primary" for name, count in counts.items()}
    return {
        "finish": {
            "value": finish_of(response),
            "raw": raw_of(response),
            "surface": "primary",
            "source": "response.finish_reason",
        },
        "text": {"value": response.text or None, "surface": "primary" if response.text else "absent"},
        "tool_calls": [call_of(call) for call in response.message.tool_calls or ()],
        "usage": {**counts, "surface": surfaces},
    }


def main() -> None:
    call = json.load(sys.stdin)
    base_url = os.environ[f"WIRETRUTH_BASE_URL_{call['provider'].upper().replace('-', '_')}"]
    endpoint = Endpoint(
        PROVIDERS[call["provider"]], base_url=base_url, api_key=os.environ["WIRETRUTH_API_KEY"]
    )
    service = SyncLLMService(endpoint, retry=RetryPolicy(attempts=1))
    response: ChatResponse | None = None
    error: Exception | None = None
    seen = None
    begun = time.monotonic()
    try:
        if call["stream"]:
            seen = 0
            with service.stream(request_of(call)) as events:
                for event in events:
                    seen += event.delta is not None
            response = events.response.raise_for_error()
        else:
            response = service.complete(request_of(call))
    except ProviderError as failure:
        error, response = failure, failure.response
    except MappingError as failure:
        error, response = failure, failure.partial
    except UnsupportedRequestError as failure:
        error = failure
    category = "parse" if isinstance(error, MappingError) else "api"
    if isinstance(error, UnsupportedRequestError):
        category = "validation"
    print(
        json.dumps(
            {
                "format": "wiretruth.observation/v1",
                "library": {
                    "name": "crosswalk",
                    "version": crosswalk.__version__,
                    "language": "python",
                    "api": "SyncLLMService.stream" if call["stream"] else "SyncLLMService.complete",
                },
                "outcome": "returned" if error is None else "raised",
                "unsupported_reason": None,
                "error": None
                if error is None
                else {
                    "type": f"{type(error).__module__}.{type(error).__qualname__}",
                    "message": str(error)[:500],
                    "category": CATEGORIES.get(type(error).__name__, category),
                    "retry_after": None,
                    "stack_top": None,
                },
                **observed(response),
                "structured": {"attempted": False, "returned_as_success": False, "value": None},
                "stream": {
                    "used": call["stream"],
                    "completed": (error is None) if call["stream"] else None,
                    "chunks_seen": seen,
                },
                "notes": [],
                "elapsed_ms": (time.monotonic() - begun) * 1000,
            }
        )
    )


if __name__ == "__main__":
    main()
