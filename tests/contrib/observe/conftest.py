from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import httpx
import httpx2
import pytest

from crosswalk import normalize
from crosswalk.errors import CrosswalkError
from crosswalk.service import completed
from crosswalk.testing import Capture, ReplayServer, load_capture
from crosswalk_observe import ObservedExchange, Watcher

CAPTURES = Path(__file__).parents[2] / "captures"
PATHS = {
    "vllm": "/v1/chat/completions",
    "ollama": "/api/chat",
    "anthropic": "/v1/messages",
    "openai_responses": "/v1/responses",
}
KEY = "Bearer secret-of-the-application"


def capture(name: str) -> Capture:
    """The capture ``provider/file``."""
    return load_capture(CAPTURES / name)


class Seen(list[ObservedExchange]):
    """A sink that keeps what it is given."""

    __call__ = list.append

    @property
    def one(self) -> ObservedExchange:
        """The one record that there is."""
        (record,) = self
        return record


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.fixture
def server() -> Iterator[ReplayServer]:
    with ReplayServer() as server:
        yield server


def host_of(server: ReplayServer) -> str:
    return server.url.partition("//")[2]


Watch = Callable[..., Watcher]


@pytest.fixture
def watch(server: ReplayServer, seen: Seen) -> Iterator[Watch]:
    """Makes a watcher of the server, registered as a provider's. Its records are in ``seen``."""
    made = []

    def watch(provider: str = "vllm", **more: Any) -> Watcher:
        options = {"providers": {host_of(server): provider}, "in_background": False, **more}
        made.append(Watcher(seen, **options))
        return made[-1]

    yield watch
    for watcher in made:
        watcher.close()


class Client:
    """One of the four kinds of client, asked in the same way. ``ask`` gives the raw bytes of the answer."""

    def __init__(self, library: Any, is_async: bool) -> None:
        self.library = library
        self.is_async = is_async

    def __repr__(self) -> str:
        return f"{self.library.__name__}-{'async' if self.is_async else 'sync'}"

    def ask(self, watcher: Watcher | None, url: str, *, most: int | None = None, **request: Any) -> bytes:
        """The raw chunks of the answer, joined. Only the first *most* of them."""
        request = {"headers": {"Authorization": KEY}, **request}
        if not self.is_async:
            inner = self.library.HTTPTransport()
            transport = inner if watcher is None else watcher.transport(inner)
            with (
                self.library.Client(transport=transport) as client,
                client.stream("POST", url, **request) as answer,
            ):
                found = []
                for chunk in answer.iter_raw():
                    found.append(chunk)
                    if len(found) == most:
                        break
                return b"".join(found)

        async def ask() -> bytes:
            inner = self.library.AsyncHTTPTransport()
            transport = inner if watcher is None else watcher.transport(inner)
            async with (
                self.library.AsyncClient(transport=transport) as client,
                client.stream("POST", url, **request) as answer,
            ):
                found = []
                async for chunk in answer.aiter_raw():
                    found.append(chunk)
                    if len(found) == most:
                        break
                return b"".join(found)

        return asyncio.run(ask())


CLIENTS = [Client(library, is_async) for library in (httpx, httpx2) for is_async in (False, True)]


@pytest.fixture(params=CLIENTS, ids=repr)
def client(request: pytest.FixtureRequest) -> Client:
    return request.param


def same_as_normalized(record: ObservedExchange, provider: str) -> bool:
    """Whether the response of *record* says what ``normalize`` makes of its bytes, or its error is the same."""
    try:
        wanted = normalize(record.body, provider, status=record.status or 200, unknown="keep")
    except CrosswalkError as error:
        return type(record.error) is type(error)
    assert record.response is not None
    wanted = completed(wanted, record.request.model, (), is_stream=record.is_stream)
    return record.error is None and attrs.evolve(record.response, attempts=()).same_content(wanted)
