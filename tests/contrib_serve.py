"""A gateway in this process: as an application, or listening in its own thread. Its upstream replays the given answers."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import attrs
import httpx2
import uvicorn.server
from starlette.applications import Starlette

from crosswalk.testing.replay import Answer, ReplayServer
from crosswalk_serve import create_app
from crosswalk_serve.config import Config, read_config
from crosswalk_serve.gateway import Gateway
from crosswalk_serve.server import server_config
from driven_clock import DrivenLoop, run_driven

HI = {"model": "tiny", "messages": [{"role": "user", "content": "Hi"}]}
ABOUT = {"id": "chatcmpl-1", "created": 1_700_000_000, "model": "tiny-1"}
USAGE = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}


def says(content: str = "Hello", **more: Any) -> Answer:
    """A whole chat completion."""
    message = {"role": "assistant", "content": content, **more}
    finish = "tool_calls" if "tool_calls" in more else "stop"
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return Answer.of_json({**ABOUT, "object": "chat.completion", "choices": [choice], "usage": USAGE})


def streams(*pieces: str) -> Answer:
    """A streamed chat completion."""
    deltas: list[tuple[dict[str, str], str | None]] = [({"content": piece}, None) for piece in pieces]
    deltas.append(({}, "stop"))
    choices = [{"index": 0, "delta": delta, "finish_reason": finish} for delta, finish in deltas]
    chunks = [{**ABOUT, "object": "chat.completion.chunk", "choices": [choice]} for choice in choices]
    last = {**ABOUT, "object": "chat.completion.chunk", "choices": [], "usage": USAGE}
    return Answer.of_events([*chunks, last])


def config_of(upstream: ReplayServer, more: str = "", models: str = "") -> Config:
    """A gateway's file: the model ``tiny`` at *upstream*, and *more*."""
    models = models or f"tiny: {{provider: vllm, base_url: '{upstream.url}'}}"
    return read_config(f"retry: {{attempts: 1}}\nmodels:\n  {models}\n{more}", environ={})


def asking(app: Starlette, **options: Any) -> httpx2.AsyncClient:
    """A client of *app*, without sockets."""
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://gateway", **options)


class _Hurried(ModuleType):
    """asyncio as uvicorn has it here. Its server looks every tenth of a second whether to end: here, twenty times as often."""

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    @staticmethod
    async def sleep(seconds: float) -> None:
        """Sleep a twentieth of *seconds*."""
        await asyncio.sleep(seconds / 20)


uvicorn.server.asyncio = _Hurried("asyncio")  # type: ignore[attr-defined]


@attrs.define
class Live:
    """A gateway that listens.

    Attributes:
        url: its address.
        port: its port.
        gateway: what all requests share.
        server: uvicorn's server.
        loop: that of the server.
    """

    url: str
    port: int
    gateway: Gateway
    server: uvicorn.Server
    thread: threading.Thread
    loop: DrivenLoop | None = None

    def connect(self) -> socket.socket:
        """A connection to it."""
        connection = socket.create_connection(("127.0.0.1", self.port))
        connection.settimeout(60)
        return connection

    def end(self) -> None:
        """Tell it to end, as a signal does."""
        self.server.should_exit = True

    def pass_time(self, seconds: float) -> None:
        """Let *seconds* pass at once by the clock of its timers."""
        assert self.loop is not None
        self.loop.pass_time(seconds)

    def pass_time_while(self, holds: Callable[[Live], bool], seconds: float) -> None:
        """Let *seconds* pass whenever *holds* is true, until all connections are closed."""

        def is_over(here: Live) -> bool:
            if holds(here):
                here.pass_time(seconds)
            return not here.server.server_state.connections

        self.wait_for(lambda here: here.server.server_state.connections)
        self.wait_for(is_over)

    def call(self, do: Callable[[], Any]) -> None:
        """Do something in its thread."""
        assert self.loop is not None
        self.loop.call_soon_threadsafe(do)

    def wait_for(self, condition: Callable[[Live], object]) -> None:
        """Wait until *condition* is true. It is asked in its thread."""
        seen, is_over = threading.Event(), threading.Event()

        def look() -> None:
            if condition(self):
                seen.set()
            elif not is_over.is_set():
                asyncio.get_running_loop().call_later(0.005, look)

        self.call(look)
        assert seen.wait(60)
        is_over.set()


@contextmanager
def live(config: Config, **options: Any) -> Iterator[Live]:
    """A gateway that listens, in its own thread, until the block is left."""
    app = create_app(config, **options)
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    port = listener.getsockname()[1]
    server = uvicorn.Server(server_config(app, config))
    ready = threading.Event()
    thread = threading.Thread(target=lambda: run_driven(main()), daemon=True)
    scheme = "http" if config.tls is None else "https"
    here = Live(f"{scheme}://127.0.0.1:{port}", port, app.state.gateway, server, thread)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, DrivenLoop)
        here.loop = loop
        ready.set()
        await server.serve([listener])

    thread.start()
    ready.wait(60)
    try:
        yield here
    finally:
        server.should_exit = True
        thread.join(60)
        assert not thread.is_alive()
