"""The input of the benchmarks: answers in the framing of the real servers, of any length."""

from __future__ import annotations

import json

CHUNK = 4096
WORDS = (" the", " round", "ing", " and", " fox", ",", ".", " token", "\n", ' "quoted"')
"""The pieces of an answer. Two in ten need an escape in JSON."""

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
    """Return *count* pieces of text."""
    return [WORDS[number % len(WORDS)] for number in range(count)]


def ollama_lines(count: int) -> list[bytes]:
    """Return the lines of a native Ollama stream of *count* pieces."""
    lines = [
        _OLLAMA % (371791712 + number * 37, json.dumps(word)) for number, word in enumerate(words(count))
    ]
    return [line.encode() for line in (*lines, _OLLAMA_END)]


def vllm_lines(count: int) -> list[bytes]:
    """Return the data of a vLLM chat stream of *count* pieces."""
    lines = [_VLLM % json.dumps(word) for word in words(count)]
    return [line.encode() for line in (_VLLM_START, *lines, *_VLLM_END)]


def framed(provider: str, lines: list[bytes]) -> bytes:
    """Return *lines* as the provider's server frames them."""
    if provider == "ollama":
        return b"".join(line + b"\n" for line in lines)
    return b"".join(b"data: " + line + b"\n\n" for line in lines) + b"data: [DONE]\n\n"


def chunks(data: bytes, size: int = CHUNK) -> list[bytes]:
    """Return *data* in pieces, as from a socket."""
    return [data[start : start + size] for start in range(0, len(data), size)]
