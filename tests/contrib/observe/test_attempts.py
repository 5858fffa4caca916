"""What a client does for one call makes one span, and a record for each answer: redirects and attempts of its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import httpx2
import openai
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from crosswalk.testing import Answer, ReplayServer
from crosswalk_observe import OpenTelemetrySink, Watcher, install, uninstall

from .conftest import Seen, capture

aiohttp = pytest.importorskip("aiohttp")
requests = pytest.importorskip("requests")
urllib3 = pytest.importorskip("urllib3")

CHAT = "/v1/chat/completions"
ASKED = {"model": "tiny", "messages": [{"role": "user", "content": "Why?"}]}
ANSWER = capture("openai/made_text.response.json")


class Telemetry:
    """A watcher that is installed, the records in ``seen``, and the spans that have ended."""

    def __init__(self, seen: Seen, **options: Any) -> None:
        self._exporter = InMemorySpanExporter()
        tracers = TracerProvider()
        tracers.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.watcher = Watcher(seen, OpenTelemetrySink(tracers), in_background=False, **options)

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        """The spans, with those that wait for another request."""
        self.watcher.flush()
        return self._exporter.get_finished_spans()


@pytest.fixture
def telemetry(seen: Seen) -> Iterator[Telemetry]:
    telemetry = Telemetry(seen)
    install(telemetry.watcher)
    yield telemetry
    uninstall()
    telemetry.watcher.close()


def by_httpx(library: Any) -> Callable[[str], object]:
    return lambda url: library.post(url, json=ASKED, follow_redirects=True)


def by_httpx_async(library: Any) -> Callable[[str], object]:
    async def ask(url: str) -> None:
        async with library.AsyncClient(follow_redirects=True) as client:
            await client.post(url, json=ASKED)

    return lambda url: asyncio.run(ask(url))


def by_aiohttp(url: str) -> None:
    async def ask() -> None:
        async with aiohttp.ClientSession() as session, session.post(url, json=ASKED) as answer:
            await answer.read()

    asyncio.run(ask())


def by_openai(url: str) -> None:
    with openai.OpenAI(base_url=url.removesuffix("/chat/completions"), api_key="none") as client:
        client.chat.completions.create(model="tiny", messages=[{"role": "user", "content": "Why?"}])


def by_pool_manager(url: str) -> None:
    with urllib3.PoolManager() as manager:
        manager.request("POST", url, json=ASKED)


def by_pool(url: str) -> None:
    with urllib3.connection_from_url(url) as pool:
        pool.urlopen("POST", CHAT, body=json.dumps(ASKED))


FOLLOWING = {
    "httpx": by_httpx(httpx),
    "httpx async": by_httpx_async(httpx),
    "httpx2": by_httpx(httpx2),
    "httpx2 async": by_httpx_async(httpx2),
    "aiohttp": by_aiohttp,
    "openai": by_openai,
    "requests": lambda url: requests.post(url, json=ASKED),
    "urllib3": by_pool_manager,
}


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize(
    "location", [CHAT + "?again=%21", "{url}/v2" + CHAT, "//LOCALHOST:{port}/elsewhere#part"]
)
@pytest.mark.parametrize("client", FOLLOWING)
def test_a_redirect_that_is_followed_is_part_of_the_exchange(
    client: str, location: str, status: int, server: ReplayServer, telemetry: Telemetry, seen: Seen
) -> None:
    location = location.format(url=server.url, port=server.url.rpartition(":")[2])
    server.add(Answer((), status, {"Location": location}), times=2).add(ANSWER)
    FOLLOWING[client](server.url + CHAT)
    assert len(server.requests) == 3
    assert seen.one.status == 200
    assert seen.one.body == ANSWER.body
    assert seen.one.request.model == "tiny"
    assert seen.one.request.body is not None
    assert json.loads(seen.one.request.body) == ASKED
    (span,) = telemetry.spans
    assert span.attributes is not None
    assert span.attributes["http.response.status_code"] == 200
    assert span.attributes["crosswalk.exchange.id"] == seen.one.id
    assert span.start_time is not None
    assert span.start_time // 1000 == int(seen.one.began.timestamp() * 1e6)
    assert seen.one.url.startswith(server.url if "localhost" not in seen.one.url else "http://localhost:")


def test_a_redirect_inside_a_pool_is_part_of_the_exchange(
    server: ReplayServer, telemetry: Telemetry, seen: Seen
) -> None:
    server.add(Answer((), 307, {"Location": CHAT + "?again"})).add(ANSWER)
    by_pool(server.url)
    assert (seen.one.status, seen.one.body) == (200, ANSWER.body)
    assert len(telemetry.spans) == 1


@pytest.mark.parametrize("location", ["{url}/elsewhere", "http://[", ""])
def test_a_redirect_that_nobody_follows_is_a_span_of_its_own(
    location: str, server: ReplayServer, telemetry: Telemetry, seen: Seen
) -> None:
    server.add(Answer((), 307, {"Location": location.format(url=server.url)})).add(ANSWER)
    for _ in range(2):
        httpx2.post(server.url + CHAT, json=ASKED)
    assert seen.one.status == 200
    assert len(telemetry.spans) == 2


def test_a_redirect_of_a_request_that_is_not_watched_is_not_watched(
    server: ReplayServer, telemetry: Telemetry, seen: Seen
) -> None:
    server.add(Answer((), 307, {"Location": "/elsewhere"})).add(ANSWER)
    httpx2.post(server.url + "/somewhere", json=ASKED, follow_redirects=True)
    assert seen == []
    assert telemetry.spans == ()


def test_a_redirect_that_is_followed_too_late_begins_another_call(
    server: ReplayServer, telemetry: Telemetry, seen: Seen
) -> None:
    server.add(Answer((), 307, {"Location": CHAT + "?again"})).add(ANSWER)
    with httpx2.Client() as client:
        answer = client.post(server.url + CHAT, json=ASKED)
        assert len(telemetry.spans) == 1  # it waits for nothing more
        assert answer.next_request is not None
        client.send(answer.next_request)
    assert seen.one.status == 200
    assert len(telemetry.spans) == 2
