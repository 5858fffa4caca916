"""The traffic of a watched transport: the application's bytes, and the record of them."""

from __future__ import annotations

import asyncio
import copy
import gzip
import threading
import zlib
from collections.abc import AsyncIterator
from concurrent.futures import CancelledError
from typing import Any

import httpx
import httpx2
import pytest

from crosswalk import FinishReason
from crosswalk.config import Settings
from crosswalk.service import Endpoint, SyncLLMService
from crosswalk.testing import Answer, Cut, ReplayServer, Reset, load_captures
from crosswalk.testing.exchange import Stall
from crosswalk_observe import Watcher

from .conftest import (
    CAPTURES,
    KEY,
    PATHS,
    Client,
    Seen,
    Watch,
    capture,
    same_as_normalized,
)

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""The replay server's sockets are sometimes collected before its loop has closed them."""

STREAM = "vllm/chat_think_stream.response.sse"
CHAT = "/v1/chat/completions"
ASKED = {"model": "tiny", "messages": [{"role": "user", "content": "Why?"}], "stream": True, "seed": 7}


@pytest.mark.sweep
@pytest.mark.parametrize("provider", PATHS)
def test_the_application_gets_its_bytes_and_the_record_says_what_they_say(
    provider: str, client: Client, server: ReplayServer, watch: Watch, seen: Seen
) -> None:
    watcher = watch(provider)
    for one in load_captures(CAPTURES / provider)[:12]:
        if one.status < 200:
            continue
        server.add(one, times=2)
        plain = client.ask(None, server.url + PATHS[provider], json=ASKED)
        assert client.ask(watcher, server.url + PATHS[provider], json=ASKED) == plain == one.body
        record = seen.pop()
        assert not seen
        assert record.body == one.body
        assert record.provider == provider
        assert record.status == one.status
        assert same_as_normalized(record, provider), one.case


def test_a_record_tells_the_request_without_its_credentials(
    client: Client, server: ReplayServer, watch: Watch, seen: Seen
) -> None:
    server.add(capture(STREAM))
    client.ask(watch(), f"{server.url}{CHAT}?api-version=1&key=abcdefgh", json=ASKED)
    record = seen.one
    assert record.url == f"{server.url}{CHAT}?api-version=1&key=<secret>"
    assert (record.method, f"http://{record.host}:{record.port}") == ("POST", server.url)
    assert record.request.model == "tiny"
    assert record.request.options == {"stream": True, "seed": 7}
    assert record.request.headers["authorization"] == "<secret>"
    assert record.is_stream
    assert not record.is_cut
    assert not record.is_cancelled
    assert KEY.partition(" ")[2] not in f"{record!r} {record.request!r} {record.response!r}"
    assert "Why?" not in repr(record)
    assert record.request.body is not None
    assert b"Why?" in record.request.body


def test_a_response_has_the_times_and_the_attempt(
    client: Client, server: ReplayServer, watch: Watch, seen: Seen
) -> None:
    server.add(capture(STREAM))
    client.ask(watch(), server.url + CHAT, json=ASKED)
    record = seen.one
    assert record.response is not None
    first = record.response.metadata.time_to_first_token
    assert record.time_to_first_chunk is not None
    assert first is not None
    assert record.time_to_first_chunk <= first <= record.duration
    assert record.response.metadata.request_duration == record.duration
    (attempt,) = record.response.attempts
    assert (attempt.provider_name, attempt.model, attempt.outcome) == ("vllm", "tiny", "success")
    assert attempt.extra == {"status": 200}


@pytest.mark.untraced
@pytest.mark.parametrize("status", [400, 401, 429, 500, 529])
def test_an_error_status_is_an_error_response(
    status: int, client: Client, server: ReplayServer, watch: Watch, seen: Seen
) -> None:
    server.add(Answer.failure(status))
    client.ask(watch(), server.url + CHAT, json=ASKED)
    record = seen.one
    assert record.error is None
    assert record.status == status
    assert record.response is not None
    assert record.response.error_info is not None
    assert record.response.error_info.status == status
    assert record.response.attempts[0].outcome == "error"


def test_a_stream_that_the_application_leaves_is_cancelled_with_what_came(
    client: Client, server: ReplayServer, watch: Watch, seen: Seen
) -> None:
    server.add(capture(STREAM), Stall(after_events=5))
    client.ask(watch(), server.url + CHAT, json=ASKED, most=5)
    record = seen.one
    assert record.is_cancelled
    assert record.error is None
    assert record.response is not None
    assert record.response.finish_reason is FinishReason.CANCELLED
    assert record.response.reasoning + record.response.text
    assert record.response.attempts[0].outcome == "cancelled"


def test_an_answer_that_is_there_to_its_end_is_not_cancelled_by_leaving(
    client: Client, server: ReplayServer, watch: Watch, seen: Seen
) -> None:
    one = capture(STREAM)
    server.add(
        Answer((one.body,), headers={"Content-Type": "text/event-stream"}, stream=True), Stall(after_events=1)
    )
    client.ask(watch(), server.url + CHAT, json=ASKED, most=1)
    assert not seen.one.is_cancelled
    assert same_as_normalized(seen.one, "vllm")


@pytest.mark.parametrize("fault", [Reset(after_events=5), Cut(after_events=5)], ids=repr)
def test_a_connection_that_breaks_reaches_application_and_record(
    fault: Any, client: Client, server: ReplayServer, watch: Watch, seen: Seen
) -> None:
    server.add(capture(STREAM), fault)
    with pytest.raises((httpx.TransportError, httpx2.TransportError)):
        client.ask(watch(), server.url + CHAT, json=ASKED)
    record = seen.one
    assert record.error is None
    assert record.response is not None
    assert record.response.error_info is not None
    assert record.response.error_info.code == "connection_lost"
    assert record.response.reasoning + record.response.text


def test_a_time_limit_reaches_application_and_record(
    client: Client, server: ReplayServer, watch: Watch, seen: Seen
) -> None:
    server.add(capture(STREAM), Stall(after_events=5))
    limits = client.library.Timeout(60, read=0.2)
    with pytest.raises((httpx.ReadTimeout, httpx2.ReadTimeout)):
        client.ask(watch(), server.url + CHAT, json=ASKED, timeout=limits)
    assert seen.one.response is not None
    assert seen.one.response.error_info is not None
    assert seen.one.response.error_info.kind == "timeout"


def test_a_server_that_is_not_there_is_an_error_response(client: Client, seen: Seen) -> None:
    watcher = Watcher(seen, providers={"127.0.0.1:9": "vllm"}, in_background=False)
    with pytest.raises((httpx.ConnectError, httpx2.ConnectError)):
        client.ask(watcher, f"http://127.0.0.1:9{CHAT}", json=ASKED)
    record = seen.one
    assert record.status is None
    assert record.body == b""
    assert record.time_to_first_chunk is None
    assert record.response is not None
    assert record.response.model == "tiny"
    assert record.response.error_info is not None
    assert record.response.error_info.code == "connect_error"


def test_a_task_that_is_cancelled_leaves_its_answer(server: ReplayServer, watch: Watch, seen: Seen) -> None:
    server.add(capture(STREAM), Stall(after_events=5)).add(capture(STREAM), Stall())

    async def ask(has_begun: asyncio.Event) -> None:
        transport = watcher.transport(httpx2.AsyncHTTPTransport())
        async with httpx2.AsyncClient(transport=transport) as client:
            if len(server.requests):
                has_begun.set()
            async with client.stream("POST", server.url + CHAT, json=ASKED) as answer:
                async for _ in answer.aiter_raw():
                    has_begun.set()

    async def cancel() -> None:
        has_begun = asyncio.Event()
        task = asyncio.create_task(ask(has_begun))
        await has_begun.wait()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    watcher = watch()
    asyncio.run(cancel())
    asyncio.run(cancel())
    streamed, sent = seen
    assert streamed.is_cancelled
    assert streamed.response is not None
    assert streamed.response.finish_reason is FinishReason.CANCELLED
    assert sent.is_cancelled
    assert sent.status is None


class Stopping(httpx2.AsyncByteStream):
    """A body that another thread has cancelled, told as an error of its own."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b"data: "
        raise httpx2.ReadError("the task has ended") from CancelledError()


def test_an_error_that_a_cancellation_has_caused_is_one(watch: Watch, seen: Seen) -> None:
    transport = httpx2.MockTransport(lambda request: httpx2.Response(200, stream=Stopping()))

    async def ask() -> None:
        async with httpx2.AsyncClient(transport=watch().transport(transport)) as client:
            with pytest.raises(httpx2.ReadError):
                await client.post("http://localhost" + CHAT, json=ASKED)

    asyncio.run(ask())
    assert seen.one.is_cancelled


def deflated(data: bytes) -> bytes:
    return zlib.compress(data)


@pytest.mark.parametrize(("encoding", "pack"), [("gzip", gzip.compress), ("deflate", deflated)])
def test_what_comes_packed_reaches_the_application_packed_and_the_record_unpacked(
    encoding: str, pack: Any, client: Client, server: ReplayServer, watch: Watch, seen: Seen
) -> None:
    one = capture(STREAM)
    packed = pack(one.body)
    chunks = (packed[:50], packed[50:])
    headers = {"Content-Type": "text/event-stream", "Content-Encoding": encoding}
    server.add(Answer(chunks, headers=headers, stream=True))
    assert client.ask(watch(), server.url + CHAT, json=ASKED) == packed
    assert seen.one.body == one.body
    assert same_as_normalized(seen.one, "vllm")


def test_what_is_not_packed_as_it_says_is_an_error_response(
    server: ReplayServer, watch: Watch, seen: Seen
) -> None:
    server.add(Answer((b"no gzip",), headers={"Content-Encoding": "gzip"}))
    transport = watch().transport(httpx2.HTTPTransport())
    with httpx2.Client(transport=transport) as client, pytest.raises(httpx2.DecodingError):
        client.post(server.url + CHAT, json=ASKED)
    assert seen.one.response is not None
    assert seen.one.response.error_info is not None
    assert seen.one.response.error_info.code == "decoding_error"


WHOLE = capture("vllm/chat_think.response.json").body


@pytest.mark.parametrize("missing", [1, 6, 30])
def test_what_is_packed_without_its_end_is_a_cut_answer(
    missing: int, client: Client, server: ReplayServer, watch: Watch, seen: Seen
) -> None:
    packed = gzip.compress(WHOLE)[:-missing]
    server.add(Answer((packed,), headers={"Content-Type": "application/json", "Content-Encoding": "gzip"}))
    assert client.ask(watch(), server.url + CHAT, json={"model": "tiny"}) == packed
    record = seen.one
    assert WHOLE.startswith(record.body)
    assert not record.is_complete
    assert record.response is not None
    assert record.response.finish_reason == "error"
    assert record.response.error_info is not None
    assert record.response.error_info.code == "connection_lost"


def test_what_is_packed_and_left_before_its_end_is_cancelled(
    server: ReplayServer, watch: Watch, seen: Seen
) -> None:
    packed = gzip.compress(WHOLE)
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    server.add(Answer((packed[:-30], packed[-30:]), headers=headers, stream=True))
    transport = watch().transport(httpx2.HTTPTransport())
    with (
        httpx2.Client(transport=transport) as client,
        client.stream("POST", server.url + CHAT, json={"model": "tiny"}) as answer,
    ):
        assert next(answer.iter_raw()) == packed[:-30]
    assert seen.one.is_cancelled
    assert seen.one.error is None


def test_an_answer_that_its_connection_leaves_unfinished_is_none_even_if_it_reads_as_one(
    watch: Watch, seen: Seen
) -> None:
    for end, is_whole in (("failed", False), ("abandoned", True), ("ended", True)):
        exchange = watch(providers={"vllm.example": "vllm"}).begin(
            "POST", "http://vllm.example" + CHAT, {}, b'{"model": "tiny"}'
        )
        assert exchange is not None
        exchange.answered(200, {"content-type": "application/json"})
        exchange.chunk(WHOLE)
        getattr(exchange, end)(*[ConnectionError()] * (end == "failed"))
        record = seen.pop()
        assert record.is_complete is is_whole
        assert record.response is not None
        assert (record.response.finish_reason == "error") is not is_whole


def test_what_unpacks_to_more_than_is_kept_is_cut(server: ReplayServer, watch: Watch, seen: Seen) -> None:
    server.add(Answer((gzip.compress(b" " * 10_000_000),), headers={"Content-Encoding": "gzip"}))
    with httpx2.Client(transport=watch(keep_bytes=100_000).transport(httpx2.HTTPTransport())) as client:
        assert len(client.post(server.url + CHAT, json=ASKED).content) == 10_000_000
    assert seen.one.is_cut
    assert len(seen.one.body) == 100_000


def test_redirects_and_upgrades_are_no_answers(server: ReplayServer, watch: Watch, seen: Seen) -> None:
    server.add(Answer((), 307, {"Location": f"{server.url}{CHAT}?again"}))
    server.add(capture(STREAM))
    transport = watch().transport(httpx2.HTTPTransport())
    with httpx2.Client(transport=transport, follow_redirects=True) as client:
        answer = client.post(server.url + CHAT, json=ASKED)
    assert [one.status_code for one in answer.history] == [307]
    assert seen.one.url.endswith("?again=")


def test_what_is_sent_as_a_stream_or_as_files_is_not_read(
    server: ReplayServer, watch: Watch, seen: Seen
) -> None:
    server.add(capture(STREAM), times=2)
    with httpx2.Client(transport=watch().transport(httpx2.HTTPTransport())) as client:
        client.post(server.url + CHAT, content=iter([b'{"model":', b'"tiny"}']))
        client.post(server.url + CHAT, files={"file": b"abc"})
    assert [record.request.body for record in seen] == [None, None]
    assert [record.request.model for record in seen] == [None, None]
    assert server.requests[0].body == b'{"model":"tiny"}'
    assert b"abc" in server.requests[1].body
    assert all(record.response is not None and record.error is None for record in seen)


def test_an_answer_that_its_transport_has_read_already_is_recorded(watch: Watch, seen: Seen) -> None:
    one = capture("vllm/chat_think.response.json")
    handler = httpx2.MockTransport(lambda request: httpx2.Response(200, content=one.body))
    watcher = watch(providers={"example.org": "vllm"})
    with httpx2.Client(transport=watcher.transport(handler)) as client:
        assert client.post(f"https://example.org{CHAT}").content == one.body
    assert same_as_normalized(seen.one, "vllm")
    assert not seen.one.is_stream
    assert seen.one.response is not None
    assert seen.one.response.metadata.time_to_first_token is None


def test_a_transport_keeps_what_it_has_of_its_own(watch: Watch) -> None:
    inner = httpx2.MockTransport(lambda request: httpx2.Response(200))
    transport = watch().transport(inner)
    assert transport.handler is inner.handler
    assert copy.copy(transport).handler is inner.handler


def test_whoever_forgets_an_answer_has_left_it(server: ReplayServer, watch: Watch, seen: Seen) -> None:
    watcher = watch()
    exchange = watcher.begin("POST", server.url + CHAT)
    assert exchange is not None
    exchange.answered(200, {})
    del exchange
    assert seen.one.is_cancelled


@pytest.mark.parametrize("path", ["/v1/models", "/v1/batches", "/v1/files"])
def test_what_is_no_chat_passes_unwatched(
    path: str, client: Client, server: ReplayServer, watch: Watch, seen: Seen
) -> None:
    server.add(Answer.of_json({"object": "list"}))
    assert client.ask(watch(), server.url + path) == b'{"object":"list"}'
    assert seen == []


def test_an_unknown_host_passes_untouched(server: ReplayServer, watch: Watch, seen: Seen) -> None:
    given = []

    def handle(request: httpx2.Request) -> httpx2.Response:
        given.append(httpx2.Response(200, stream=httpx2.ByteStream(b"{}")))
        return given[-1]

    with httpx2.Client(transport=watch().transport(httpx2.MockTransport(handle))) as client:
        request = client.build_request("POST", f"https://unknown.example{CHAT}")
        assert client._transport.handle_request(request) is given[0]
    assert seen == []


def test_an_answer_that_another_thread_ends_is_cancelled(
    server: ReplayServer, watch: Watch, seen: Seen
) -> None:
    """Crosswalk's own blocking service ends the wait of its client."""
    server.add(capture(STREAM), Stall(after_events=5))
    endpoint = Endpoint("vllm", model="m", base_url=server.url)
    with (
        httpx2.Client(transport=watch().transport(httpx2.HTTPTransport())) as client,
        SyncLLMService(endpoint, client=client, settings=Settings()) as service,
    ):
        events = service.stream("hi")
        reading = threading.Thread(target=lambda: list(events))
        reading.start()
        server.wait_for(lambda it: bool(it.requests))
        events.cancel()
        reading.join()
    assert events.response.finish_reason == "cancelled"
    assert seen.one.is_cancelled


def test_an_error_that_is_its_own_cause_is_a_failure(watch: Watch, seen: Seen) -> None:
    class Breaks(httpx2.BaseTransport):
        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            error = httpx2.ReadError("broken")
            error.__cause__ = error
            raise error

    with httpx2.Client(transport=watch().transport(Breaks())) as client, pytest.raises(httpx2.ReadError):
        client.post(f"http://127.0.0.1{CHAT}", json={"model": "m", "messages": []})
    assert not seen.one.is_cancelled
