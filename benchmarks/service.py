"""The cost of the service over the bare HTTP client, and of the providers' own SDKs, over one local socket.

The server runs in a separate process, so the figures are this process's work: CPU seconds, including the HTTP client's.
A live stream sends an event after the previous one has been read. The others arrive as fast as they can be read.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

import attrs
import httpx2
import orjson

from benchmarks.local_server import LIVE, Served, running
from benchmarks.measure import Above, medians, print_table
from benchmarks.payloads import framed, ollama_lines, vllm_lines, words
from benchmarks.sdks import sdk
from crosswalk.config import Settings
from crosswalk.service import ChatRequest, Endpoint, LLMService, SyncLLMService

PIECES = 1_000
LIVE_PIECES = 250
CALLS = 20
"""The number of bodies that are requested in a round."""
STREAM_BAR = 12.0
"""Microseconds per event above the raw bytes."""
BODY_BAR = 2.0
"""Times a bare ``post``."""
PLAIN = {"verify": False}
PATHS = {"ollama": "/api/chat", "vllm": "/v1/chat/completions", "anthropic": "/v1/messages"}

_ANTHROPIC_START = (
    '{"type":"message_start","message":{"id":"msg_01XFDUDYJgAACzvnptvVoYEL","type":"message","role":"assistant",'
    '"content":[],"model":"tiny","stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":26,"output_tokens":1}}}'
)
_ANTHROPIC_END = (
    '{"type":"content_block_stop","index":0}',
    '{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":2000}}',
    '{"type":"message_stop"}',
)


def events_of(provider: str, count: int) -> list[bytes]:
    """Return the events of a stream of *count* pieces, as the server frames and flushes them."""
    if provider == "anthropic":
        head = '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":'
        text = (f"{head}{json.dumps(word)}}}}}" for word in words(count))
        start = '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}'
        lines = (_ANTHROPIC_START, start, *text, *_ANTHROPIC_END)
        return [f"event: {json.loads(line)['type']}\ndata: {line}\n\n".encode() for line in lines]
    lines = ollama_lines(count) if provider == "ollama" else vllm_lines(count)
    end = b"\n" if provider == "ollama" else b"\n\n"
    return framed(provider, lines).removesuffix(end).replace(end, end + b"\0").split(b"\0")


def body_of(provider: str, size: int) -> bytes:
    """Return a body with *size* bytes of text and the fewest other fields that the server sends."""
    text = ("the lazy dog sleeps " * (size // 20 + 1))[:size]
    usage = {"prompt_tokens": 20, "completion_tokens": 40, "total_tokens": 60}
    message = {"role": "assistant", "content": text}
    value: dict[str, object] = {
        "ollama": {
            "model": "tiny", "created_at": "2026-11-20T09:48:24.9Z", "message": message, "done": True,
            "done_reason": "stop", "total_duration": 5764978, "load_duration": 685328, "prompt_eval_count": 384,
            "prompt_eval_duration": 992000, "eval_count": 2000, "eval_duration": 2378000,
        },
        "vllm": {
            "id": "chatcmpl-9ca274c8eee52b9f", "object": "chat.completion", "created": 1795168361, "model": "tiny",
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}], "usage": usage,
        },
        "anthropic": {
            "id": "msg_01XFDUDYJgAACzvnptvVoYEL", "type": "message", "role": "assistant", "model": "tiny",
            "content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "stop_sequence": None,
            "usage": {"input_tokens": 26, "output_tokens": 40},
        },
    }[provider]  # fmt: skip
    return json.dumps(value, separators=(",", ":")).encode()


@attrs.frozen
class Asked:
    """The ways to request one answer from one server.

    Attributes:
        provider: the provider with the server's dialect.
        url: the server's address.
        runner: runs the asynchronous ways.
    """

    provider: str
    url: str
    runner: asyncio.Runner

    def ways(self, *, is_stream: bool) -> dict[str, Callable[[], object]]:
        """Return the functions to measure, by name: first both floors, then the service, then the SDK."""
        url = self.url + PATHS[self.provider]
        content = orjson.dumps({"model": "m", "stream": is_stream})
        client, aclient = httpx2.Client(**PLAIN), httpx2.AsyncClient(**PLAIN)
        endpoint = Endpoint(self.provider, model="m", base_url=self.url, api_key="none")
        options = {"settings": Settings(), "client_options": PLAIN}
        service, sync = LLMService(endpoint, **options), SyncLLMService(endpoint, **options)
        request = ChatRequest("Why?", max_tokens=4096)
        other = sdk(self.provider, self.url)

        def raw() -> object:
            with client.stream("POST", url, content=content) as response:
                return list(response.iter_raw())

        async def araw() -> object:
            async with aclient.stream("POST", url, content=content) as response:
                return [chunk async for chunk in response.aiter_raw()]

        def events() -> object:
            with sync.stream(request) as stream:
                told = [event.delta for event in stream]
            return told, stream.response

        async def aevents() -> object:
            async with service.stream(request) as stream:
                told = [event.delta async for event in stream]
            return told, stream.response

        def run(work: Callable[[], Awaitable[object]]) -> Callable[[], object]:
            async def awaited() -> object:
                return await work()

            return lambda: self.runner.run(awaited())

        if is_stream:
            ways = {"httpx2, raw": run(araw), "httpx2, raw, sync": raw}
            ways |= {"LLMService.stream": run(aevents), "SyncLLMService.stream": events}
            sdks = (
                {} if other is None else {other.name: run(other.astream), f"{other.name}, sync": other.stream}
            )
        else:

            async def several(work: Callable[[], Awaitable[object]]) -> object:
                return [await work() for _ in range(CALLS)]

            def repeated(work: Callable[[], Awaitable[object]]) -> Callable[[], object]:
                return lambda: self.runner.run(several(work))

            ways = {
                "httpx2, post": repeated(lambda: aclient.post(url, content=content)),
                "httpx2, post, sync": lambda: [client.post(url, content=content) for _ in range(CALLS)],
                "LLMService.complete": repeated(lambda: service.complete(request)),
                "SyncLLMService.complete": lambda: [sync.complete(request) for _ in range(CALLS)],
            }
            sdks = (
                {}
                if other is None
                else {
                    other.name: repeated(other.acomplete),
                    f"{other.name}, sync": lambda: [other.complete() for _ in range(CALLS)],
                }
            )
        return ways | sdks


def main(rounds: int) -> list[Above]:
    """Print a table for each provider. Return the rows that are above their bar, or slower than the SDK."""
    above: list[Above] = []
    for provider in PATHS:
        kind = "application/x-ndjson" if provider == "ollama" else "text/event-stream"
        live, many = events_of(provider, LIVE_PIECES), events_of(provider, PIECES)
        served = {
            "live": Served(live, kind, pause=LIVE),
            "burst": Served(many, kind),
            "small": Served([body_of(provider, 400)], "application/json"),
            "large": Served([body_of(provider, 10_000)], "application/json"),
        }
        rows: list[tuple[str, ...]] = []
        with running(served) as url, asyncio.Runner() as runner:
            for name, title, is_stream, per in (
                ("live", "live: an event a read", True, len(live)),
                ("burst", "at once: as fast as it is read", True, len(many)),
                ("small", "a body of half a KB", False, CALLS),
                ("large", "a body of 10 KB", False, CALLS),
            ):
                found = medians(Asked(provider, f"{url}/{name}", runner).ways(is_stream=is_stream), rounds)
                told, failed = _rows(found, per, is_stream=is_stream)
                rows += [(title, "", "", ""), *told]
                above += [one._replace(row=f"{provider}, {title}: {one.row}") for one in failed]
        header = ("", "us", "over httpx2", "bar")
        print_table(f"{provider}: CPU time of an event, or of a body, over a local socket", header, rows)
    return above


def _rows(found: dict[str, float], per: int, *, is_stream: bool) -> tuple[list[tuple[str, ...]], list[Above]]:
    """Return the rows of one kind of answer, and those that are above their bar, or slower than the SDK."""
    names = list(found)
    rows, above = [], []
    for number, name in enumerate(names):
        spent, floor = found[name] / per * 1e6, found[names[number % 2]] / per * 1e6
        over, bar, unit = (spent - floor, STREAM_BAR, " us") if is_stream else (spent / floor, BODY_BAR, " x")
        said = ""
        if number in (2, 3):
            peer = found[names[number + 2]] / per * 1e6 if len(names) > 4 else None
            fails = [f"ABOVE {bar:g}{unit}"] if over > bar else []
            fails += ["SLOWER than the SDK"] if peer is not None and peer <= spent else []
            said = ", ".join(fails) or "met"
            if fails:
                above.append(Above(f"{name} ({said})", over, bar))
        rows.append((f"  {name}", f"{spent:.1f}", "" if number < 2 else f"{over:.1f}{unit}", said))
    return rows, above
