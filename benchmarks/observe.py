"""The cost of watching: a stream read with and without the layer, raw and by the openai SDK, over one local socket.

*Passed on* is the work of the application's thread for the layer: nothing is mapped, because there is no room. *Mapped*
includes the watcher's thread, up to the record in a sink that does nothing.
"""

from __future__ import annotations

import asyncio
import importlib.util
import logging
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import httpx2
import orjson
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider

from benchmarks.local_server import LIVE, Served, running
from benchmarks.measure import Above, medians, print_table
from benchmarks.sdks import MESSAGES
from benchmarks.service import CALLS, LIVE_PIECES, PATHS, PIECES, body_of, events_of
from crosswalk_observe import OpenTelemetrySink, Watcher

PATH = PATHS["vllm"]
ASKED = orjson.dumps({"model": "m", "stream": True})
BAR = 1.5
"""Times the same stream unwatched: the limit for the cost of passing on to the application."""
WHOLE_BAR = 1.3
"""Times the same calls unwatched: the limit for whole bodies and short streams, up to their records or spans."""
SHORT = 20


def ways(
    url: str, watcher: Watcher | None, runner: asyncio.Runner, stack: ExitStack
) -> dict[str, Callable[[], object]]:
    """Return the functions that read a stream at *url*, by name, up to the record if *watcher* makes one."""

    def watched(transport: Any) -> Any:
        return transport if watcher is None else watcher.transport(transport)

    client = stack.enter_context(httpx2.Client(transport=watched(httpx2.HTTPTransport(verify=False))))
    aclient = httpx2.AsyncClient(transport=watched(httpx2.AsyncHTTPTransport(verify=False)))
    stack.callback(lambda: runner.run(aclient.aclose()))

    def raw() -> object:
        with client.stream("POST", url + PATH, content=ASKED) as response:
            return list(response.iter_raw())

    async def araw() -> object:
        async with aclient.stream("POST", url + PATH, content=ASKED) as response:
            return [chunk async for chunk in response.aiter_raw()]

    found: dict[str, Callable[[], object]] = {"httpx2": lambda: runner.run(araw()), "httpx2, sync": raw}
    if importlib.util.find_spec("openai"):
        import openai

        given: Any = {"api_key": "none", "base_url": f"{url}/v1"}
        sdk = openai.OpenAI(http_client=client, **given)
        asdk = openai.AsyncOpenAI(http_client=aclient, **given)

        async def achunks() -> object:
            chunks = await asdk.chat.completions.create(model="m", messages=MESSAGES, stream=True)
            return [chunk async for chunk in chunks]

        found["openai SDK"] = lambda: runner.run(achunks())
        found["openai SDK, sync"] = lambda: [
            *sdk.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        ]
    return found if watcher is None else {name: _to_the_record(way, watcher) for name, way in found.items()}


def whole(url: str, watcher: Watcher | None, stack: ExitStack, *, is_stream: bool) -> Callable[[], object]:
    """Return a function that makes calls by the openai SDK, and reads them, up to the end of what *watcher* makes."""
    import openai

    inner = httpx2.HTTPTransport(verify=False)
    client = stack.enter_context(
        httpx2.Client(transport=inner if watcher is None else watcher.transport(inner))
    )
    sdk = openai.OpenAI(http_client=client, api_key="none", base_url=f"{url}/v1")

    def read() -> object:
        came: list[object] = []
        for _ in range(CALLS):
            answer: Any = sdk.chat.completions.create(model="m", messages=MESSAGES, stream=is_stream)
            came.append([*answer] if is_stream else answer)
        if watcher is not None:
            watcher.flush()
        return came

    return read


def _to_the_record(way: Callable[[], object], watcher: Watcher) -> Callable[[], object]:
    def read() -> object:
        came = way()
        watcher.flush()
        return came

    return read


def main(rounds: int) -> list[Above]:
    """Print a table. Return the rows in which passing on is slower than the bar allows."""
    logging.getLogger("crosswalk.observe").setLevel(
        logging.ERROR
    )  # one of the watchers drops everything on purpose
    live, many = events_of("vllm", LIVE_PIECES), events_of("vllm", PIECES)
    kind = "text/event-stream"
    served = {
        "live": Served(live, kind, pause=LIVE),
        "burst": Served(many, kind),
        "whole": Served([body_of("vllm", 1_000)], "application/json"),
        "short": Served(events_of("vllm", SHORT), kind),
    }
    rows: list[tuple[str, ...]] = []
    calls: list[tuple[str, ...]] = []
    above: list[Above] = []
    with running(served) as url, asyncio.Runner() as runner, ExitStack() as stack:
        host = {url.partition("//")[2]: "vllm"}
        passing = stack.enter_context(Watcher(providers=host, most_waiting=0))
        mapping = stack.enter_context(Watcher(lambda record: None, providers=host))
        for name, title, count in (
            ("live", "live: an event a read", len(live)),
            ("burst", "at once: as fast as it is read", len(many)),
        ):
            streams = {
                (way, how): read
                for how, watcher in (("plain", None), ("passed on", passing), ("mapped", mapping))
                for way, read in ways(f"{url}/{name}", watcher, runner, stack).items()
            }
            found = medians({f"{way}: {how}": read for (way, how), read in streams.items()}, rounds)
            rows.append((title, "", "", "", "", ""))
            for way in dict.fromkeys(way for way, _ in streams):
                plain, passed, mapped = (found[f"{way}: {how}"] for how in ("plain", "passed on", "mapped"))
                times = [f"{spent / count * 1e6:.1f}" for spent in (plain, passed, mapped)]
                ratio = passed / plain
                rows.append((f"  {way}", *times, f"{ratio:.2f} x", f"{mapped / plain:.2f} x"))
                if ratio > BAR:
                    above.append(Above(f"{title}: {way}, passed on", ratio, BAR))
        if importlib.util.find_spec("openai"):
            sink = OpenTelemetrySink(TracerProvider(), MeterProvider())
            watchers = {
                "unwatched": None,
                "records": mapping,
                "spans": stack.enter_context(Watcher(sink, providers=host)),
                "spans, provider unnamed": stack.enter_context(Watcher(sink)),
            }
            for kind_of_call, title in (("whole", "a whole body"), ("short", f"a stream of {SHORT} events")):
                at, is_stream = f"{url}/{kind_of_call}", kind_of_call == "short"
                made = {
                    how: whole(at, watcher, stack, is_stream=is_stream) for how, watcher in watchers.items()
                }
                times = medians(made, rounds)
                for how in watchers:
                    ratio = times[how] / times["unwatched"]
                    calls.append((f"{title}: {how}", f"{times[how] / CALLS * 1e6:.0f}", f"{ratio:.2f} x"))
                    if ratio > WHOLE_BAR:
                        above.append(Above(f"{title}: {how}", ratio, WHOLE_BAR))
    header = ("", "us unwatched", "passed on", "mapped", "passed on / unwatched", "mapped / unwatched")
    print_table("watching: CPU time of an event, over a local socket", header, rows)
    print_table("watching: CPU time of a call of the openai SDK", ("", "us", "of unwatched"), calls)
    return above
