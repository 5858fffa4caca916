"""The providers' own SDKs, if installed (``pip install 'crosswalk-llm[bench]'``), through their real parse paths.

They read the same bytes from an in-memory transport, so that no network is measured.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["peers"]

Run = Callable[[list[bytes]], object]
MESSAGES = [{"role": "user", "content": "hello"}]


def peers(provider: str) -> dict[str, Run]:
    """Return the peers that can read this provider's stream, by name."""
    found: dict[str, Run] = {}
    if provider == "ollama" and importlib.util.find_spec("ollama"):
        found["ollama SDK"] = _ollama()
    if provider == "vllm" and importlib.util.find_spec("openai"):
        found["openai SDK"] = _openai()
    return found


def _transport(httpx: Any, content_type: str, holder: dict[str, list[bytes]]) -> Any:
    class Body(httpx.SyncByteStream):  # type: ignore[misc]
        def __iter__(self) -> Iterator[bytes]:
            yield from holder["chunks"]

    def handle(_: Any) -> Any:
        return httpx.Response(200, headers={"content-type": content_type}, stream=Body())

    return httpx.MockTransport(handle)


def _ollama() -> Run:
    import httpx
    import ollama

    holder: dict[str, list[bytes]] = {}
    client = ollama.Client(transport=_transport(httpx, "application/x-ndjson", holder))

    def run(chunks: list[bytes]) -> object:
        holder["chunks"] = chunks
        return [part.message.content for part in client.chat("tiny", MESSAGES, stream=True)]

    return run


def _openai() -> Run:
    import openai
    from openai import _base_client

    # Either httpx or its successor, depending on the version.
    httpx = getattr(_base_client, "httpx2", None) or _base_client.httpx
    holder: dict[str, list[bytes]] = {}
    transport = _transport(httpx, "text/event-stream", holder)
    client = openai.OpenAI(
        api_key="none", base_url="http://localhost", http_client=httpx.Client(transport=transport)
    )

    def run(chunks: list[bytes]) -> object:
        holder["chunks"] = chunks
        stream = client.chat.completions.create(model="tiny", messages=MESSAGES, stream=True)
        return [chunk.choices[0].delta.content for chunk in stream if chunk.choices]

    return run
