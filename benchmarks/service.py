"""What the service costs over the bare HTTP client: the same stream, read as raw bytes, and as events and a response.

The server runs in a process of its own and sends the stream as fast as it can, so that what is measured is this
process's work: CPU seconds, the client's included.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import socket
from collections.abc import Callable

import httpx2
import orjson

from benchmarks.measure import medians, print_table
from benchmarks.payloads import framed, ollama_lines, vllm_lines
from crosswalk import normalize_stream
from crosswalk.config import Settings
from crosswalk.service import ChatRequest, Endpoint, LLMService, SyncLLMService

PIECES = 2_000
LINES = {"ollama": (ollama_lines, "/api/chat"), "vllm": (vllm_lines, "/v1/chat/completions")}
PLAIN = {"verify": False}


def serve(listener: socket.socket, data: bytes) -> None:
    """Answer every request with *data*, an event at a time in the HTTP chunks that a server would make of it."""
    events = data.splitlines(keepends=True)
    pieces = [b"".join(events[n : n + 2]) for n in range(0, len(events), 2)]
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                asked = await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                break
            length = next(
                int(line.split(b":")[1])
                for line in asked.split(b"\r\n")
                if line.lower().startswith(b"content-length")
            )
            await reader.readexactly(length)
            writer.write(head + chunks)
            await writer.drain()
        writer.close()

    async def run() -> None:
        async with await asyncio.start_server(answer, sock=listener) as server:
            await server.serve_forever()

    asyncio.run(run())


def functions(
    provider: str, url: str, data: bytes, runner: asyncio.Runner
) -> dict[str, Callable[[], object]]:
    """What is measured for one provider."""
    path = LINES[provider][1]
    endpoint = Endpoint(provider, model="m", base_url=url)
    request = ChatRequest("Why?", stream=True)
    body = orjson.dumps({"model": "m", "stream": True})
    client = httpx2.AsyncClient(**PLAIN)
    options = {"settings": Settings(), "client_options": PLAIN}
    service = LLMService(endpoint, **options)
    sync = SyncLLMService(endpoint, **options)

    async def raw() -> list[bytes]:
        async with client.stream("POST", f"{url}{path}", content=body) as response:
            return [chunk async for chunk in response.aiter_raw()]

    async def events() -> object:
        async with service.stream(request) as stream:
            async for _ in stream:
                pass
        return stream.response

    def mapped() -> object:
        stream = normalize_stream(runner.run(raw()), provider)
        for _ in stream:
            pass
        return stream.response

    def events_sync() -> object:
        with sync.stream(request) as stream:
            for _ in stream:
                pass
        return stream.response

    return {
        "floor: httpx2, raw bytes": lambda: runner.run(raw()),
        "the same, then normalize_stream": mapped,
        "complete (stream=True)": lambda: runner.run(service.complete(request)),
        "stream, every event": lambda: runner.run(events()),
        "stream, every event, SyncLLMService": events_sync,
    }


def main(rounds: int) -> None:
    """Print a table for each provider."""
    for provider, (lines_of, _) in LINES.items():
        lines = lines_of(PIECES)
        data = framed(provider, lines)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            server = multiprocessing.get_context("fork").Process(
                target=serve, args=(listener, data), daemon=True
            )
            server.start()
            with asyncio.Runner() as runner:
                found = medians(functions(provider, url, data, runner), rounds)
            server.terminate()
            server.join()
        floor = next(iter(found.values()))
        rows = [
            (
                name,
                f"{spent / len(lines) * 1e6:.2f}",
                f"{spent / floor:.2f}",
                f"{(spent - floor) / len(lines) * 1e6:.2f}",
            )
            for name, spent in found.items()
        ]
        print_table(
            f"{provider}: a stream of {PIECES:,} pieces over loopback HTTP, to a response",
            ("", "us a line", "x floor", "us over it"),
            rows,
        )
