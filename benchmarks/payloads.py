"""What the benchmarks read: answers as the real servers frame them, as long as one likes."""

from __future__ import annotations

import json
from collections.abc import Iterator

CHUNK = 4096
WORDS = (" the", " round", "ing", " and", " fox", ",", ".", " token", "\n", ' "quoted"')
"""The pieces of an answer; two in ten need an escape in JSON."""

_OLLAMA = (
    '{"model":"tiny","created_at":"2026-11-20T09:48:23.%09dZ","message":{"role":"assistant","content":%s},'
    '"done":false}'
)
_OLLAMA_END = (
    '{"model":"tiny","created_at":"2026-11-20T09:48:24.9Z","message":{"role":"assistant","content":""},"done":true,'
    '"done_reason":"stop","total_duration":5764978,"load_duration":685328,"prompt_eval_count":384,'
    '"prompt_eval_duration":992000,"eval_count":2000,"eval_duration":2378000}'
)
_VLLM_START = (
    '{"id":"chatcmpl-9ca274c8eee52b9f","object":"chat.completion.chunk","created":1795168361,"model":"tiny","choices":'
    '[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],'
    '"prompt_token_ids":null,"prompt_text":null}'
)
_VLLM = (
    '{"id":"chatcmpl-9ca274c8eee52b9f","object":"chat.completion.chunk","created":1795168361,"model":"tiny","choices":'
    '[{"index":0,"delta":{"content":%s},"logprobs":null,"finish_reason":null,"token_ids":null}]}'
)
_VLLM_END = (
    '{"id":"chatcmpl-9ca274c8eee52b9f","object":"chat.completion.chunk","created":1795168361,"model":"tiny","choices":'
    '[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop","stop_reason":null,"token_ids":null}]}',
    '{"id":"chatcmpl-9ca274c8eee52b9f","object":"chat.completion.chunk","created":1795168361,"model":"tiny","choices":[],'
    '"usage":{"prompt_tokens":20,"total_tokens":2020,"completion_tokens":2000},'
    '"system_fingerprint":"vllm-0.32.0-c5125ecc"}',
)


def words(count: int) -> list[str]:
    """*count* pieces of text."""
    return [WORDS[number % len(WORDS)] for number in range(count)]


def ollama_lines(count: int) -> list[bytes]:
    """The lines of a native Ollama stream of *count* pieces."""
    lines = [
        _OLLAMA % (371791712 + number * 37, json.dumps(word)) for number, word in enumerate(words(count))
    ]
    return [line.encode() for line in (*lines, _OLLAMA_END)]


def vllm_lines(count: int) -> list[bytes]:
    """The data of a vLLM chat stream of *count* pieces."""
    lines = [_VLLM % json.dumps(word) for word in words(count)]
    return [line.encode() for line in (_VLLM_START, *lines, *_VLLM_END)]


def framed(provider: str, lines: list[bytes]) -> bytes:
    """*lines* as the provider's server frames them."""
    if provider == "ollama":
        return b"".join(line + b"\n" for line in lines)
    return b"".join(b"data: " + line + b"\n\n" for line in lines) + b"data: [DONE]\n\n"


def chunks(data: bytes, size: int = CHUNK) -> list[bytes]:
    """*data* as it might come from a socket."""
    return [data[start : start + size] for start in range(0, len(data), size)]


def bodies(provider: str) -> Iterator[tuple[str, bytes]]:
    """Whole answers of several sizes, by name."""
    for count in (20, 2_000, 20_000, 200_000):
        text = "".join(words(count))
        yield f"{count:,} tokens of text", _body(provider, text)
    if provider == "vllm":
        yield "2,000 tokens with prompt_logprobs", _body(provider, "hello", prompt_logprobs=2_000)
        yield "2,000 tokens with top-5 logprobs", _body(provider, "hello", logprobs=2_000)


def _body(provider: str, text: str, *, prompt_logprobs: int = 0, logprobs: int = 0) -> bytes:
    if provider == "ollama":
        value = json.loads(_OLLAMA_END)
        value["message"]["content"] = text
        return json.dumps(value, separators=(",", ":")).encode()
    top = [{"token": f" t{n}", "logprob": -0.5 - n, "bytes": [32, 116, 48 + n]} for n in range(5)]
    one = {"token": " t0", "logprob": -0.5, "bytes": [32, 116, 48], "top_logprobs": top}
    ranks = {str(n): {"logprob": -0.5 - n, "rank": n, "decoded_token": f" t{n}"} for n in range(5)}
    value = {
        "id": "chatcmpl-9ca274c8eee52b9f", "object": "chat.completion", "created": 1795168361, "model": "tiny",
        "choices": [{
            "index": 0,
            "message": {"role": "assistant", "content": text, "refusal": None, "annotations": None, "audio": None,
                        "function_call": None, "reasoning": None},
            "logprobs": {"content": [one] * logprobs} if logprobs else None,
            "finish_reason": "stop", "stop_reason": None, "token_ids": None,
        }],
        "service_tier": None, "system_fingerprint": "vllm-0.32.0-c5125ecc",
        "usage": {"prompt_tokens": 20, "total_tokens": 2020, "completion_tokens": 2000, "prompt_tokens_details": None},
        "prompt_logprobs": [None, *[ranks] * prompt_logprobs] if prompt_logprobs else None,
        "kv_transfer_params": None,
    }  # fmt: skip
    return json.dumps(value, separators=(",", ":")).encode()
