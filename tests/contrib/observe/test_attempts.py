"""What a client does for one call makes one span, and a record for each answer: redirects and attempts of its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from contextvars import Context
from typing import Any

import httpx
import httpx2
import openai
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from crosswalk.testing import Answer, ReplayServer
from crosswalk.testing.exchange import Cut, Reset
from crosswalk_observe import OpenTelemetrySink, Watcher, install, requests_adapter, uninstall

from .conftest import Seen, Watch, capture

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


COOKIE = "hop=Hop-Cookie-99-Value; Path=/"


@pytest.mark.untraced
@pytest.mark.parametrize("status", [301, 302, 303])
@pytest.mark.parametrize("client", FOLLOWING)
def test_a_redirect_that_is_followed_without_its_body_keeps_what_was_asked(
    client: str, status: int, server: ReplayServer, telemetry: Telemetry, seen: Seen
) -> None:
    hop = Answer((b"moved",), status, {"Location": "/v2" + CHAT, "Set-Cookie": COOKIE})
    server.add(hop, times=2)
    server.add(Answer((ANSWER.body.replace(b"Kelp", b"Hop-Cookie-99-Value"),)))
    FOLLOWING[client](server.url + CHAT)
    assert len(server.requests) == 3
    assert (seen.one.status, seen.one.method, seen.one.request.model) == (200, "POST", "tiny")
    assert seen.one.url == f"{server.url}/v2{CHAT}"
    assert json.loads(seen.one.request.body or b"") == ASKED
    assert seen.one.request.headers["content-type"] == "application/json"
    assert seen.one.response is not None
    assert seen.one.response.text.startswith("<secret> grows")
    assert b"Hop-Cookie" not in seen.one.body
    (span,) = telemetry.spans
    assert span.attributes is not None
    assert span.attributes["gen_ai.request.model"] == "tiny"


def test_a_credential_of_a_hop_is_one_of_the_exchange(watch: Watch, seen: Seen) -> None:
    url, content = "https://me:pass-word-12345@one.example", json.dumps(ASKED).encode()
    watcher = watch(include=["*.example"])
    first = watcher.begin(
        "POST", f"{url}{CHAT}?key=query-key-12345", {"X-Api-Key": "wombat-12345-6"}, content
    )
    assert first is not None
    first.answered(303, {"Location": f"https://two.example{CHAT}"})
    second = watcher.begin("GET", f"https://two.example{CHAT}")
    assert second is not None
    second.answered(401, {})
    second.chunk(b"no: wombat-12345-6, query-key-12345, pass-word-12345")
    second.ended()
    assert seen.one.body == b"no: <secret>, <secret>, <secret>"
    assert seen.one.request.headers == {"x-api-key": "<secret>"}


def test_a_redirect_is_followed_by_the_next_request_alone(watch: Watch, seen: Seen) -> None:
    watcher, content = watch(include=["*.example"]), json.dumps(ASKED).encode()
    first = watcher.begin("POST", f"https://one.example{CHAT}", {}, content)
    assert first is not None
    first.answered(302, {"Location": CHAT})
    other = watcher.begin("POST", f"https://other.example{CHAT}", {}, content)
    assert other is not None
    other.discard()
    assert watcher.begin("GET", f"https://one.example{CHAT}") is None
    assert seen == []


def test_what_was_asked_before_a_redirect_needs_room_too(watch: Watch, seen: Seen) -> None:
    watcher = watch(include=["*.example"], most_bytes=5000)
    content = json.dumps({**ASKED, "user": "x" * 3000}).encode()
    first = watcher.begin("POST", f"https://one.example{CHAT}", {}, content)
    assert first is not None
    first.answered(303, {"Location": CHAT})
    other = Context().run(watcher.begin, "POST", f"https://other.example{CHAT}", {}, content)
    assert other is not None
    second = watcher.begin("GET", f"https://one.example{CHAT}")
    assert second is not None
    assert second.answered(200, {}) is False
    assert watcher.dropped == 1
    other.ended()
    assert seen.one.host == "other.example"


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


# ------------------------------------------------------------------------ urllib3 repeats requests itself

Retry: Any = urllib3.Retry
BUSY = Answer.failure(503)


class Patient(Retry):  # type: ignore[misc, valid-type]
    """A ``Retry`` of the program's own."""

    def increment(self, method: Any = None, url: Any = None, *more: Any, **options: Any) -> Any:
        return super().increment(
            method, url, options.pop("response", None), options.pop("error", None), *more, **options
        )

    def sleep(self, *more: Any) -> None:
        super().sleep(*more)
        super().sleep(*more)


def repeating(kind: Any = Retry, **options: Any) -> Any:
    return kind(3, status_forcelist=[503], allowed_methods=None, **options)


def by_requests(retries: Any, url: str, watcher: Watcher | None = None, **options: Any) -> None:
    with requests.Session() as session:
        if watcher is None:
            session.mount("http://", requests.adapters.HTTPAdapter(max_retries=retries))
        else:
            session.mount("http://", requests_adapter(watcher, max_retries=retries))
        session.post(url, json=ASKED, **options)


def by_urllib3(retries: Any, url: str, **options: Any) -> None:
    with urllib3.PoolManager() as manager:
        answer = manager.request("POST", url, json=ASKED, retries=retries, **options)
        answer.read()


def resends(telemetry: Telemetry) -> list[object]:
    """How often the request of each span was repeated."""
    return [(span.attributes or {}).get("http.request.resend_count") for span in telemetry.spans]


@pytest.mark.parametrize("kind", [Retry, Patient])
@pytest.mark.parametrize("way", ["urllib3", "urllib3 streamed", "requests", "given", "given and installed"])
def test_each_answer_to_a_repeated_request_is_a_record(
    way: str, kind: Any, server: ReplayServer, telemetry: Telemetry, seen: Seen
) -> None:
    server.add(BUSY, Reset()).add(BUSY).add(ANSWER)
    if way == "given":
        uninstall()
    if way.startswith("urllib3"):
        by_urllib3(repeating(kind), server.url + CHAT, preload_content=way == "urllib3")
    else:
        watcher = telemetry.watcher if way.startswith("given") else None
        by_requests(repeating(kind), server.url + CHAT, watcher)
    assert [(record.status, record.resend_count) for record in seen] == [(None, 0), (503, 1), (200, 2)]
    assert b"set to fail" in seen[1].body
    assert seen[2].body == ANSWER.body
    assert [json.loads(record.request.body or b"") for record in seen] == [ASKED] * 3
    assert resends(telemetry) == [2]


@pytest.mark.parametrize("raises", [True, False])
@pytest.mark.parametrize("way", ["urllib3", "urllib3 streamed", "requests", "given and installed"])
def test_the_last_attempt_that_fails_has_its_status(
    raises: bool, way: str, server: ReplayServer, telemetry: Telemetry, seen: Seen
) -> None:
    server.add(BUSY, times=4)
    retries = repeating(raise_on_status=raises)
    errors = (urllib3.exceptions.MaxRetryError, requests.RequestException)
    with pytest.raises(errors) if raises else nullcontext():
        if way.startswith("urllib3"):
            by_urllib3(retries, server.url + CHAT, preload_content=way == "urllib3")
        else:
            by_requests(retries, server.url + CHAT, telemetry.watcher if way.startswith("given") else None)
    assert [(record.status, record.resend_count) for record in seen] == [(503, n) for n in range(4)]
    assert all(b"set to fail" in record.body and record.is_complete for record in seen)
    assert resends(telemetry) == [3]
    (span,) = telemetry.spans
    assert span.attributes is not None
    assert span.attributes["http.response.status_code"] == 503


def test_a_server_that_is_not_there_is_asked_as_often_as_urllib3_asks(
    telemetry: Telemetry, seen: Seen
) -> None:
    with ReplayServer() as gone:
        url = gone.url + CHAT
    with pytest.raises(urllib3.exceptions.MaxRetryError):
        by_urllib3(None, url)
    assert [(record.status, record.resend_count) for record in seen] == [(None, n) for n in range(4)]
    assert resends(telemetry) == [3]


def test_a_redirect_inside_a_pool_and_an_attempt_are_told_apart(
    server: ReplayServer, telemetry: Telemetry, seen: Seen
) -> None:
    server.add(Answer((), 307, {"Location": CHAT + "?again"})).add(BUSY).add(ANSWER)
    with urllib3.connection_from_url(server.url) as pool:
        pool.urlopen("POST", CHAT, body=json.dumps(ASKED), retries=repeating())
    assert [(record.status, record.resend_count) for record in seen] == [(503, 0), (200, 1)]
    assert resends(telemetry) == [1]


STREAM = capture("openai/made_text_stream.response.sse")


@pytest.mark.parametrize(
    ("fault", "expected"), [(Cut(after_events=3), "Kelp"), (Reset(after_events=3), "")], ids=["cut", "reset"]
)
def test_a_body_that_breaks_while_urllib3_loads_it_is_known_as_far_as_urllib3_tells(
    fault: Any, expected: str, server: ReplayServer, telemetry: Telemetry, seen: Seen
) -> None:
    server.add(STREAM, fault)
    with pytest.raises(urllib3.exceptions.ProtocolError):
        by_urllib3(False, server.url + CHAT)
    assert (seen.one.status, seen.one.is_complete) == (200, False)
    assert seen.one.response is not None
    assert seen.one.response.finish_reason == "error"
    assert seen.one.response.text.startswith(expected)
    assert bool(seen.one.body) is bool(expected)


def test_the_body_of_a_redirect_inside_a_pool_that_breaks_is_no_answer(
    server: ReplayServer, telemetry: Telemetry, seen: Seen
) -> None:
    server.add(Answer((b"moved", b"away"), 307, {"Location": CHAT}), Cut(after_events=1))
    with urllib3.connection_from_url(server.url) as pool, pytest.raises(urllib3.exceptions.ProtocolError):
        pool.urlopen("POST", CHAT, body=json.dumps(ASKED), retries=urllib3.Retry(0, redirect=1))
    assert (seen.one.status, seen.one.body) == (None, b"")


def test_the_last_answer_that_breaks_while_it_is_drained_is_known_already(
    server: ReplayServer, telemetry: Telemetry, seen: Seen
) -> None:
    server.add(Answer((b'{"error": ', b'"busy"}'), 503), Cut(after_events=1))
    with pytest.raises(urllib3.exceptions.MaxRetryError):
        by_urllib3(
            Retry(0, status_forcelist=[503], allowed_methods=None), server.url + CHAT, preload_content=False
        )
    assert (seen.one.status, seen.one.body) == (503, b'{"error": ')


class Interrupted(Retry):  # type: ignore[misc, valid-type]
    """One whose wait does something else."""

    instead: Any = None

    def sleep(self, *_: Any) -> None:
        Interrupted.instead()
        super().sleep(*_)


def test_a_wait_that_is_interrupted_ends_the_call(
    server: ReplayServer, telemetry: Telemetry, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Interrupted, "instead", interrupt)
    server.add(BUSY).add(ANSWER)
    with pytest.raises(KeyboardInterrupt):
        by_urllib3(repeating(Interrupted), server.url + CHAT)
    assert seen.one.status == 503
    assert len(telemetry.spans) == 1
    by_urllib3(repeating(), server.url + CHAT)
    assert len(telemetry.spans) == 2


def test_an_attempt_after_the_watcher_is_closed_is_not_watched(
    server: ReplayServer, telemetry: Telemetry, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Interrupted, "instead", telemetry.watcher.close)
    server.add(BUSY).add(ANSWER)
    by_urllib3(repeating(Interrupted), server.url + CHAT)
    assert len(server.requests) == 2
    assert seen.one.status == 503


def test_an_adapter_watches_what_goes_through_a_proxy(
    server: ReplayServer, telemetry: Telemetry, seen: Seen
) -> None:
    uninstall()
    server.add(BUSY).add(ANSWER, times=2)
    with requests.Session() as session:
        session.mount("http://", requests_adapter(telemetry.watcher, max_retries=repeating()))
        for _ in range(2):
            session.post(
                "http://api.openai.com/v1/chat/completions", json=ASKED, proxies={"http": server.url}
            )
    assert [(record.status, record.host) for record in seen] == [
        (status, "api.openai.com") for status in (503, 200, 200)
    ]


def test_what_is_not_watched_is_repeated_as_ever(
    server: ReplayServer, telemetry: Telemetry, seen: Seen
) -> None:
    server.add(BUSY, times=3).add(ANSWER)
    by_urllib3(repeating(), server.url + "/elsewhere")
    assert len(server.requests) == 4
    assert seen == []
    assert telemetry.spans == ()
