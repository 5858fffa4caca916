"""The providers' own SDKs over a real socket, with and without ``await``, if installed (``crosswalk-llm[bench]``)."""

from __future__ import annotations

import importlib.util
from collections.abc import Awaitable, Callable
from typing import Any

import attrs

__all__ = ["SDK", "sdk"]

MESSAGES: Any = [{"role": "user", "content": "Why?"}]


@attrs.frozen
class SDK:
    """One provider's SDK.

    Attributes:
        name: its name.
        stream: reads a stream to its end, as events.
        complete: requests a body.
        astream: as ``stream``, in an event loop.
        acomplete: as ``complete``, in an event loop.
    """

    name: str
    stream: Callable[[], object]
    complete: Callable[[], object]
    astream: Callable[[], Awaitable[object]]
    acomplete: Callable[[], Awaitable[object]]


def sdk(provider: str, url: str) -> SDK | None:
    """Return the SDK of *provider*, for a server at *url*, or ``None`` if it is not installed."""
    package, make = {
        "ollama": ("ollama", _ollama),
        "vllm": ("openai", _openai),
        "anthropic": ("anthropic", _anthropic),
    }[provider]
    return make(url) if importlib.util.find_spec(package) else None


def _ollama(url: str) -> SDK:
    import ollama

    client, aclient = ollama.Client(url, verify=False), ollama.AsyncClient(url, verify=False)

    async def astream() -> object:
        parts = await aclient.chat("m", MESSAGES, stream=True)
        return [part.message.content async for part in parts]

    return SDK(
        "ollama SDK",
        lambda: [part.message.content for part in client.chat("m", MESSAGES, stream=True)],
        lambda: client.chat("m", MESSAGES).message.content,
        astream,
        lambda: aclient.chat("m", MESSAGES),
    )


def _openai(url: str) -> SDK:
    import openai
    from openai import _base_client

    # Either httpx or its successor, depending on the version.
    httpx: Any = getattr(_base_client, "httpx2", None) or _base_client.httpx  # type: ignore[attr-defined]
    given: Any = {"api_key": "none", "base_url": f"{url}/v1"}
    client = openai.OpenAI(http_client=httpx.Client(verify=False), **given)
    aclient = openai.AsyncOpenAI(http_client=httpx.AsyncClient(verify=False), **given)

    async def astream() -> object:
        stream = await aclient.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        return [chunk.choices[0].delta.content async for chunk in stream if chunk.choices]

    def stream() -> object:
        chunks = client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        return [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]

    return SDK(
        "openai SDK",
        stream,
        lambda: client.chat.completions.create(model="m", messages=MESSAGES),
        astream,
        lambda: aclient.chat.completions.create(model="m", messages=MESSAGES),
    )


def _anthropic(url: str) -> SDK:
    import anthropic
    from anthropic import _base_client

    httpx: Any = getattr(_base_client, "httpx2", None) or _base_client.httpx  # type: ignore[attr-defined]
    given: Any = {"api_key": "none", "base_url": url}
    client = anthropic.Anthropic(http_client=httpx.Client(verify=False), **given)
    aclient = anthropic.AsyncAnthropic(http_client=httpx.AsyncClient(verify=False), **given)
    asked: Any = {"model": "m", "max_tokens": 4096, "messages": MESSAGES}

    async def astream() -> object:
        return [event.type async for event in await aclient.messages.create(stream=True, **asked)]

    return SDK(
        "anthropic SDK",
        lambda: [event.type for event in client.messages.create(stream=True, **asked)],
        lambda: client.messages.create(**asked),
        astream,
        lambda: aclient.messages.create(**asked),
    )
