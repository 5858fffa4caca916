"""Crosswalk before the protocol with which lm15 (https://pypi.org/project/lm15) checks its ports: a line of JSON asks, one answers.

``python tests/neighbours/vet.py`` is what its harness runs. Crosswalk reads: it has the operations that read an answer or an
error, and says of every other that it is unknown, as the protocol wants. Nothing here opens a connection.
"""

from __future__ import annotations

import json
import sys
from base64 import b64decode
from collections.abc import Callable, Iterator
from typing import Any

from crosswalk import (
    ChatResponse,
    CrosswalkError,
    ErrorKind,
    FinishReason,
    MappingError,
    ProviderError,
    SegmentType,
    UsageInfo,
    normalize,
)
from crosswalk.plugins import Provenance
from crosswalk.version import __version__

PROVIDERS = {
    "openai": "openai_responses",
    "openai-chat": "openai",
    "anthropic": "anthropic",
    "gemini": "gemini",
    "xai": "xai",
    "groq": "groq",
    "openrouter": "openrouter",
    "deepseek": "deepseek",
    "zai": "zai",
    "moonshotai": "moonshot",
    "together": "together",
    "fireworks": "fireworks",
    "vllm": "vllm",
    "sglang": "sglang",
}
"""Our names of the providers that both know."""
FINISH = {
    FinishReason.STOP: "stop",
    FinishReason.LENGTH: "length",
    FinishReason.TOOL_CALLS: "tool_call",
    FinishReason.CONTENT_FILTER: "content_filter",
}
CODES = {
    ErrorKind.AUTHENTICATION: "auth",
    ErrorKind.PERMISSION: "auth",
    ErrorKind.QUOTA: "billing",
    ErrorKind.RATE_LIMIT: "rate_limit",
    ErrorKind.INVALID_REQUEST: "invalid_request",
    ErrorKind.CONTENT_FILTER: "invalid_request",
    ErrorKind.CONTEXT_OVERFLOW: "context_length",
    ErrorKind.TIMEOUT: "timeout",
    ErrorKind.SERVER: "server",
    ErrorKind.MODEL_UNAVAILABLE: "unsupported_model",
}
CLASSES = {
    "auth": "AuthError",
    "billing": "BillingError",
    "rate_limit": "RateLimitError",
    "invalid_request": "InvalidRequestError",
    "context_length": "ContextLengthError",
    "timeout": "TimeoutError",
    "server": "ServerError",
    "unsupported_model": "UnsupportedModelError",
    "provider": "ProviderError",
    "stream_assembly": "StreamAssemblyError",
}
COUNTS = {
    "input_tokens": "prompt_tokens",
    "output_tokens": "completion_tokens",
    "cache_read_tokens": "cached_tokens",
    "reasoning_tokens": "reasoning_tokens",
}


def parts_of(response: ChatResponse) -> Iterator[dict[str, Any]]:
    """The parts of the answer in the words of lm15's canonical JSON."""
    for segment in response.segments:
        match segment.type:
            case SegmentType.REASONING if segment.content:
                yield {"type": "thinking", "text": segment.content}
            case SegmentType.REFUSAL if segment.content:
                yield {"type": "refusal", "text": segment.content}
            case SegmentType.TEXT if segment.content:
                yield {"type": "text", "text": segment.content}
    for call in response.tool_calls:
        is_valid = call.has_valid_arguments
        yield {
            "type": "tool_call",
            "id": call.id,
            "name": call.name,
            "input": call.parsed() if is_valid else call.arguments,
        }


def counts_of(usage: UsageInfo, provenance: Any) -> dict[str, int]:
    absent = {Provenance.ABSENT, Provenance.CUT}
    if provenance.get("usage") in absent:
        return {}
    found = {name: getattr(usage, field) for name, field in COUNTS.items()}
    return {
        name: count
        for name, count in found.items()
        if count is not None and provenance.get(f"usage.{COUNTS[name]}") not in absent
    }


def read(message: dict[str, Any]) -> dict[str, Any]:
    """The operations ``parse_response`` and ``replay_stream``."""
    data, provider = b64decode(message["body_b64"]), PROVIDERS[message["provider"]]
    response = normalize(data, provider, status=message.get("status", 200), unknown="keep").raise_for_error()
    canonical = {
        "id": response.id,
        "model": response.model,
        "message": {"role": "assistant", "parts": [*parts_of(response)]},
        "finish_reason": FINISH.get(response.finish_reason, "error"),
        "usage": counts_of(response.usage, response.metadata.provenance),
    }
    return {"canonical_response": {name: value for name, value in canonical.items() if value}}


def named(error: CrosswalkError) -> dict[str, Any]:
    """The words of the protocol for *error*: its class and code, and the vendor's code."""
    info = getattr(error, "info", None)
    code = "stream_assembly" if info is None else CODES.get(info.kind, "provider")
    provider_code = None if info is None else info.code
    message = str(error) if info is None else info.message
    return {"class": CLASSES[code], "code": code, "provider_code": provider_code, "message": message}


def normalize_error(message: dict[str, Any]) -> dict[str, Any]:
    """The operation of that name."""
    body = message["body_text"].encode()
    response = normalize(body, PROVIDERS[message["provider"]], status=message["status"])
    try:
        response.raise_for_error()
    except (MappingError, ProviderError) as error:
        return named(error)
    raise ValueError("the body is no error")


def capabilities(message: dict[str, Any]) -> dict[str, Any]:
    """The operation of that name."""
    return {"language": "python", "ops": sorted(OPERATIONS), "impl_version": __version__}


OPERATIONS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "capabilities": capabilities,
    "parse_response": read,
    "replay_stream": read,
    "normalize_error": normalize_error,
}


def reply(line: str) -> dict[str, Any]:
    """The reply to a line. What fails is part of it."""
    id = None
    try:
        message = json.loads(line)
        id = message.get("id")
        if message.get("op") not in OPERATIONS:
            raise ValueError(f"unknown op: {message.get('op')}")
        return {"id": id, "ok": True, "result": OPERATIONS[message["op"]](message)}
    except (MappingError, ProviderError) as error:
        about = named(error)
        return {"id": id, "ok": False, "error": {"type": about.pop("class"), **about}}
    except Exception as error:  # the protocol: one reply for each line, whatever it is
        return {"id": id, "ok": False, "error": {"type": type(error).__name__, "message": str(error)}}


def main() -> None:
    for line in filter(str.strip, sys.stdin):
        print(json.dumps(reply(line), separators=(",", ":")), flush=True)


if __name__ == "__main__":
    main()
