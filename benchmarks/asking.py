"""The cost of asking: a call, an event, and an event 2 ms after the one before, by several clients over one local socket.

The server runs in a separate process, so the figures are this process's work: CPU time, including the HTTP client's.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx2
import orjson
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider

from benchmarks.local_server import Served, running
from benchmarks.measure import Above, is_met, medians, print_table
from benchmarks.sdks import MESSAGES
from benchmarks.service import PATHS, body_of, events_of
from crosswalk.config import Settings
from crosswalk.service import ChatRequest, Endpoint, LLMService, SyncLLMService
from crosswalk_observe import OpenTelemetrySink, Watcher

CALLS = 40
PIECES = 200
KINDS = {"body": "a call", "flushed": "an event", "slow": "an event after 2 ms"}
PEERS = ("aiohttp", "lm15", "openai")
BARS: dict[str, tuple[str, dict[str, float]]] = {
    "SyncLLMService": ("httpx2, sync", {"body": 1.38, "flushed": 1.67, "slow": 1.6}),
    "LLMService over aiohttp": ("aiohttp", {"body": 3.2, "flushed": 1.8}),
    "openai SDK, sync, watched": ("openai SDK, sync", {"body": 1.3, "flushed": 1.3}),
}
"""The client that each is compared with, and what it may cost: times the cost of that client."""

Ways = tuple[Callable[[], object], Callable[[], object]]
"""What makes some calls, and what reads one stream."""


def blocking(
    call: Callable[[], object],
    events: Callable[[], Iterable[object]],
    after: Callable[[], object] = lambda: None,
) -> Ways:
    def calls() -> None:
        for _ in range(CALLS):
            call()
        after()

    def read() -> None:
        for _ in events():
            pass
        after()

    return calls, read


def awaited(
    runner: asyncio.Runner, call: Callable[[], Awaitable[object]], events: Callable[[], AsyncIterable[object]]
) -> Ways:
    async def calls() -> None:
        for _ in range(CALLS):
            await call()

    async def read() -> None:
        async for _ in events():
            pass

    return lambda: runner.run(calls()), lambda: runner.run(read())


def clients(url: str, runner: asyncio.Runner, watcher: Watcher, stack: ExitStack) -> dict[str, Ways]:
    """Return the clients of the server at *url*, by name. *watcher* watches one of them."""
    at, endpoint, request = (
        url + PATHS["vllm"],
        Endpoint("vllm", model="m", base_url=url),
        ChatRequest("Why?"),
    )
    asked: dict[str, Any] = {"model": "m", "messages": MESSAGES}
    client, aclient = httpx2.Client(verify=False), httpx2.AsyncClient(verify=False)

    def lines() -> Iterator[object]:
        with client.stream("POST", at, json={**asked, "stream": True}) as response:
            yield from map(event_of, response.iter_lines())

    async def apost() -> object:
        return (await aclient.post(at, json=asked)).json()

    async def alines() -> AsyncIterator[object]:
        async with aclient.stream("POST", at, json={**asked, "stream": True}) as response:
            async for line in response.aiter_lines():
                yield event_of(line)

    sync = SyncLLMService(endpoint, settings=Settings())
    found = {
        "httpx2, sync": blocking(lambda: client.post(at, json=asked).json(), lines),
        "SyncLLMService": blocking(lambda: sync.complete(request), lambda: sync.stream(request)),
        "httpx2": awaited(runner, apost, alines),
    }
    has = {name: importlib.util.find_spec(name) is not None for name in PEERS}
    for library in ("httpx2", *(["aiohttp"] if has["aiohttp"] else [])):
        service = LLMService(endpoint, settings=Settings(), transport=library)
        stack.callback(lambda service=service: runner.run(service.aclose()))  # type: ignore[misc]
        found[f"LLMService over {library}"] = awaited(
            runner, _with(service.complete, request), _with(service.stream, request)
        )
    if has["aiohttp"]:
        found["aiohttp"] = _aiohttp(at, asked, runner, stack)
    if has["lm15"]:
        found |= _lm15(url, runner)
    if has["openai"]:
        transport = httpx2.HTTPTransport(verify=False)
        found["openai SDK, sync"] = _openai(url, transport)
        found["openai SDK, sync, watched"] = _openai(url, watcher.transport(transport), watcher.flush)
    return found


def event_of(line: str | bytes) -> object:
    """Return the event in *line* as JSON, as a program without an SDK reads it."""
    start = "data: {" if isinstance(line, str) else b"data: {"
    return orjson.loads(line[6:]) if line.startswith(start) else None  # type: ignore[arg-type]


def _with(function: Callable[[Any], Any], given: object) -> Callable[[], Any]:
    return lambda: function(given)


def _aiohttp(at: str, asked: dict[str, Any], runner: asyncio.Runner, stack: ExitStack) -> Ways:
    import aiohttp

    async def open_session() -> aiohttp.ClientSession:
        return aiohttp.ClientSession()

    session = runner.run(open_session())
    stack.callback(lambda: runner.run(session.close()))

    async def post() -> object:
        async with session.post(at, json=asked) as response:
            return await response.json()

    async def lines() -> AsyncIterator[object]:
        async with session.post(at, json={**asked, "stream": True}) as response:
            async for line in response.content:
                yield event_of(line)

    return awaited(runner, post, lines)


def _lm15(url: str, runner: asyncio.Runner) -> dict[str, Ways]:
    import lm15
    from lm15.providers import AsyncOpenAIChatLM, OpenAIChatLM

    said: Any = lm15.Request(model="m", messages=(lm15.Message.user("Why?"),))
    given: Any = {"api_key": "none", "base_url": f"{url}/v1"}
    model, amodel = OpenAIChatLM(**given), AsyncOpenAIChatLM(**given)
    return {
        "lm15, sync": blocking(_with(model.complete, said), _with(model.stream, said)),
        "lm15": awaited(runner, _with(amodel.complete, said), _with(amodel.stream, said)),
    }


def _openai(url: str, transport: Any, after: Callable[[], object] = lambda: None) -> Ways:
    import openai

    client: Any = httpx2.Client(transport=transport)
    chat = openai.OpenAI(http_client=client, api_key="none", base_url=f"{url}/v1").chat.completions
    return blocking(
        lambda: chat.create(model="m", messages=MESSAGES),
        lambda: chat.create(model="m", messages=MESSAGES, stream=True),
        after,
    )


def main(rounds: int) -> list[Above]:
    """Print a table of all clients. Return the rows that miss their bar."""
    events = events_of("vllm", PIECES)
    served = {
        "body": Served([body_of("vllm", 400)], "application/json"),
        "flushed": Served(events, "text/event-stream", pause=0.0),
        "slow": Served(events, "text/event-stream", pause=0.002),
    }
    spent: dict[str, dict[str, float]] = {}
    with running(served) as url, asyncio.Runner() as runner, ExitStack() as stack:
        host = {url.partition("//")[2]: "vllm"}
        with Watcher(OpenTelemetrySink(TracerProvider(), MeterProvider()), providers=host) as watcher:
            for kind in KINDS:
                found = clients(f"{url}/{kind}", runner, watcher, stack)
                number = 0 if kind == "body" else 1
                times = medians({name: ways[number] for name, ways in found.items()}, rounds)
                per = CALLS if kind == "body" else len(events)
                for name, seconds in times.items():
                    spent.setdefault(name, {})[kind] = seconds / per * 1e6
    rows, above = [], []
    for name, of_kind in spent.items():
        floor, bars = BARS.get(name, ("", {}))
        cells = []
        for kind, cost in of_kind.items():
            times_floor = cost / spent[floor][kind] if kind in bars else 0.0
            cells += [f"{cost:.1f}", f"{times_floor:.2f} x" if kind in bars else ""]
            if kind in bars and not is_met(times_floor, bars[kind]):
                above.append(Above(f"{name}: {KINDS[kind]}", times_floor, bars[kind]))
        rows.append((name, *cells, floor))
    header = ("", *(cell for title in KINDS.values() for cell in (f"us {title}", "")), "times")
    print_table("asking: CPU time over a local socket", header, rows)
    for name in PEERS:
        if importlib.util.find_spec(name) is None:
            print(f"  without {name}, which is not installed")
    return above
