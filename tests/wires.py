"""Payloads as servers send them, and short ways to read them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import orjson

from crosswalk import ChatResponse, Registry, ResponseDelta, normalize, registry
from crosswalk.mapping import Reader, ReaderOptions
from crosswalk.plugins import hookimpl

__all__ = [
    "CLOCK",
    "NOW",
    "Echo",
    "body",
    "chunk",
    "line",
    "ndjson",
    "one",
    "outcome",
    "read",
    "reader",
    "registry_of",
    "sse",
    "usage",
]

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def CLOCK() -> datetime:
    """A clock that does not move."""
    return NOW


def sse(*events: Any, done: bool = True) -> bytes:
    """*events* as an SSE stream. Bytes are taken for the data of an event unchanged."""
    datas = [event if isinstance(event, bytes) else orjson.dumps(event) for event in events]
    return b"".join(b"data: " + data + b"\n\n" for data in [*datas, *([b"[DONE]"] if done else [])])


def ndjson(*events: Any) -> bytes:
    """*events* as newline-delimited JSON."""
    return b"".join((e if isinstance(e, bytes) else orjson.dumps(e)) + b"\n" for e in events)


def chunk(delta: Any = None, finish: str | None = None, *, choice: int = 0, **more: Any) -> dict[str, Any]:
    """A chunk of OpenAI's chat dialect. Without *delta* it has no choices."""
    choices = [] if delta is None else [{"index": choice, "delta": delta, "finish_reason": finish}]
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"} | {
        "choices": choices,
        **more,
    }


def body(message: Any, finish: str | None = "stop", **more: Any) -> dict[str, Any]:
    """A whole answer of OpenAI's chat dialect."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m"} | {
        "choices": [choice],
        **more,
    }


def usage(prompt: int, completion: int, **details: Any) -> dict[str, Any]:
    """A usage object of OpenAI's dialect."""
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        **details,
    }


def line(content: str = "", *, done: str | None = None, message: Any = None, **more: Any) -> dict[str, Any]:
    """A line of Ollama's chat. *done* is its ``done_reason``."""
    end = {"done": False} if done is None else {"done": True, "done_reason": done}
    said = {"role": "assistant", "content": content, **(message or {})}
    return {"model": "m", "created_at": "2026-01-01T00:00:00Z", "message": said, **end, **more}


class Echo:
    """A provider of one function: every event is a text."""

    @hookimpl
    def map_delta(self, event: Any, state: Any) -> list[ResponseDelta]:
        """Say the event's text."""
        return [ResponseDelta(content_delta=event["text"])]


def registry_of(**plugins: Any) -> Registry:
    """A registry with *plugins* by name and nothing else."""
    known = Registry(installed=[], environ={})
    for name, plugin in plugins.items():
        known.register(plugin, name)
    return known


def reader(provider: str | Any, **options: Any) -> Reader:
    """A reader for an installed provider, or for a plugin object."""
    known = registry if isinstance(provider, str) else registry_of(test=provider)
    mapper = known.mapper(provider if isinstance(provider, str) else "test")
    return Reader(mapper, ReaderOptions(**{"id_factory": lambda: "made", "clock": CLOCK, **options}))


def read(
    provider: str | Any, chunks: bytes | Iterable[bytes], **options: Any
) -> tuple[list[ResponseDelta], ChatResponse]:
    """The deltas and the response of a stream."""
    reading = reader(provider, **options)
    deltas: list[ResponseDelta] = []
    for piece in [chunks] if isinstance(chunks, bytes) else chunks:
        deltas += reading.read(piece)
    deltas += reading.finish()
    return deltas, reading.response()


def one(provider: str, payload: Any, **options: Any) -> ChatResponse:
    """The response of a payload, with a made-up id and time that are always the same."""
    return normalize(payload, provider, **{"id_factory": lambda: "made", "clock": CLOCK, **options})


def outcome(provider: str | Any, chunks: bytes | Iterable[bytes], **options: Any) -> Any:
    """The response of a stream, or the partial one of the error that it ends in, and that error."""
    from crosswalk import MappingError

    try:
        return read(provider, chunks, **options)[1], None
    except MappingError as error:
        return error.partial, error
