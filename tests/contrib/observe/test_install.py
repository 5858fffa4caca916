"""Every client of the process is watched between ``install`` and ``uninstall``, and none after."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import httpx2
import pytest

from crosswalk import ConfigurationError
from crosswalk.testing import ReplayServer
from crosswalk_observe import Watcher, install, uninstall

from .conftest import Client, Seen, Watch, capture, same_as_normalized

STREAM = "vllm/chat_think_stream.response.sse"
CHAT = "/v1/chat/completions"
ASKED = {"model": "tiny", "stream": True}


@pytest.fixture(autouse=True)
def _taken_back() -> Iterator[None]:
    yield
    uninstall()


def test_clients_are_watched_until_it_is_taken_back(
    client: Client, server: ReplayServer, watch: Watch, seen: Seen
) -> None:
    one = capture(STREAM)
    server.add(one, times=None)
    before = [library.HTTPTransport.handle_request for library in (httpx, httpx2)]
    install(watch())
    assert client.ask(None, server.url + CHAT, json=ASKED) == one.body
    assert same_as_normalized(seen.pop(), "vllm")
    uninstall()
    uninstall()
    assert client.ask(None, server.url + CHAT, json=ASKED) == one.body
    assert seen == []
    assert before == [library.HTTPTransport.handle_request for library in (httpx, httpx2)]


@pytest.mark.parametrize("library", [httpx, httpx2])
def test_a_client_that_exists_already_is_watched(
    library: Any, server: ReplayServer, watch: Watch, seen: Seen
) -> None:
    server.add(capture(STREAM), times=None)
    with library.Client() as client:
        install(watch())
        client.post(server.url + CHAT, json=ASKED)
        assert len(seen) == 1

    async def ask() -> None:
        uninstall()
        async with library.AsyncClient() as client:
            install(watch())
            await client.post(server.url + CHAT, json=ASKED)

    asyncio.run(ask())
    assert len(seen) == 2


def test_what_a_transport_watches_is_not_recorded_twice(
    client: Client, server: ReplayServer, watch: Watch, seen: Seen
) -> None:
    server.add(capture(STREAM))
    watcher = watch()
    install(watcher)
    client.ask(watcher, server.url + CHAT, json=ASKED)
    assert len(seen) == 1


def test_another_watcher_takes_the_place_of_the_first_and_says_so(
    server: ReplayServer, watch: Watch, seen: Seen, caplog: pytest.LogCaptureFixture
) -> None:
    server.add(capture(STREAM), times=None)
    first, second = watch("vllm"), watch("openai")
    install(first)
    install(first)
    install(second)
    httpx2.post(server.url + CHAT, json=ASKED)
    assert seen.one.provider == "openai"
    messages = [record.getMessage() for record in caplog.records]
    assert messages == ["another watcher was installed; this one takes its place"]


def test_what_somebody_else_has_put_around_it_stays(server: ReplayServer, watch: Watch, seen: Seen) -> None:
    original, original_async = (
        httpx2.HTTPTransport.handle_request,
        httpx2.AsyncHTTPTransport.handle_async_request,
    )
    server.add(capture(STREAM), times=None)
    install(watch())
    ours, ours_async = httpx2.HTTPTransport.handle_request, httpx2.AsyncHTTPTransport.handle_async_request
    try:
        httpx2.HTTPTransport.handle_request = lambda *given: ours(*given)  # type: ignore[method-assign]
        httpx2.AsyncHTTPTransport.handle_async_request = lambda *given: ours_async(*given)  # type: ignore[method-assign]
        uninstall()
        httpx2.post(server.url + CHAT, json=ASKED)

        async def ask() -> None:
            async with httpx2.AsyncClient() as client:
                await client.post(server.url + CHAT, json=ASKED)

        asyncio.run(ask())
    finally:
        httpx2.HTTPTransport.handle_request = original  # type: ignore[method-assign]
        httpx2.AsyncHTTPTransport.handle_async_request = original_async  # type: ignore[method-assign]
    assert seen == []
    assert len(server.requests) == 2


def test_what_cannot_watch_is_refused_at_once(seen: Seen) -> None:
    not_a_watcher: Any = seen
    with pytest.raises(ConfigurationError, match=r"takes a Watcher, not Seen: Watcher\(your_sink\)"):
        install(not_a_watcher)
    not_a_sink: Any = "log.jsonl"
    with pytest.raises(ConfigurationError, match="a sink is a callable"):
        Watcher(not_a_sink)


def test_a_library_that_is_not_installed_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, watch: Watch
) -> None:
    monkeypatch.setattr("crosswalk_observe.patches.find_spec", lambda name: None)
    before = httpx.HTTPTransport.handle_request
    install(watch())
    assert httpx.HTTPTransport.handle_request is before
