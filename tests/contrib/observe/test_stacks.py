"""The traffic of aiohttp, requests, urllib3 and botocore: the application's bytes, and the record of them."""

from __future__ import annotations

import asyncio
import binascii
import gzip
import json
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import Any

import pytest

from crosswalk.testing import Answer, Cut, ReplayServer, load_captures
from crosswalk.testing.exchange import Stall
from crosswalk_observe import (
    Watcher,
    aiohttp_middleware,
    install,
    requests_adapter,
    uninstall,
    watch_bedrock,
)
from crosswalk_observe.patches import watched_request, watched_urlopen
from crosswalk_observe.transports import as_builtin_error

from .conftest import CAPTURES, KEY, PATHS, Seen, Watch, capture, same_as_normalized

aiohttp = pytest.importorskip("aiohttp")
requests = pytest.importorskip("requests")
urllib3 = pytest.importorskip("urllib3")

STREAM = "vllm/chat_think_stream.response.sse"
CHAT = "/v1/chat/completions"
ASKED = {"model": "tiny", "messages": [{"role": "user", "content": "Why?"}], "stream": True}
HEADERS = {"Authorization": KEY}


@pytest.fixture(autouse=True)
def _taken_back() -> Iterator[None]:
    yield
    uninstall()


def by_aiohttp(how: str) -> Callable[..., bytes]:
    def ask(watcher: Watcher | None, url: str, *, most: int | None = None) -> bytes:
        async def run() -> bytes:
            found: list[bytes] = []
            async with (
                aiohttp.ClientSession(
                    middlewares=[] if watcher is None else [aiohttp_middleware(watcher)]
                ) as session,
                session.post(url, json=ASKED, headers=HEADERS) as answer,
            ):
                if how == "read":
                    return bytes(await answer.read())
                if how == "nowait":
                    await answer.content.wait_eof()
                    while not answer.content.at_eof():
                        found.append(answer.content.read_nowait(7))
                    return b"".join(found)
                if how == "exactly":
                    with pytest.raises(asyncio.IncompleteReadError) as raised:
                        await answer.content.readexactly(10**7)
                    return raised.value.partial
                if how == "until":
                    while line := await answer.content.readuntil(b"\n"):
                        found.append(line)
                    return b"".join(found)
                pieces = {
                    "lines": answer.content,
                    "any": answer.content.iter_any(),
                    "chunked": answer.content.iter_chunked(100),
                    "chunks": answer.content.iter_chunks(),
                }[how]
                async for piece in pieces:
                    found.append(piece[0] if how == "chunks" else piece)
                    if len(found) == most:
                        break
            return b"".join(found)

        return asyncio.run(run())

    return ask


def by_requests(how: str) -> Callable[..., bytes]:
    def ask(watcher: Watcher | None, url: str, *, most: int | None = None) -> bytes:
        with requests.Session() as session:
            if watcher is not None:
                session.mount("http://", requests_adapter(watcher))
            with session.post(url, json=ASKED, headers=HEADERS, stream=how != "content") as answer:
                if how == "content":
                    return bytes(answer.content)
                if how == "raw":
                    return bytes(answer.raw.read())
                found = []
                for piece in answer.iter_content(None if how == "content None" else 64):
                    found.append(piece)
                    if len(found) == most:
                        break
                return b"".join(found)

    return ask


def read1(answer: Any) -> Iterator[bytes]:
    while (data := answer.read1(50)) or not answer.isclosed():
        yield data


def by_urllib3(how: str) -> Callable[..., bytes]:
    def ask(watcher: Watcher | None, url: str, *, most: int | None = None) -> bytes:
        with urllib3.PoolManager(headers=HEADERS) as pool:
            if how == "data":
                return bytes(pool.request("POST", url, json=ASKED).data)
            with closing(pool.request("POST", url, json=ASKED, preload_content=False)) as answer:
                pieces = read1(answer) if how == "read1" else answer.stream(50)
                found = []
                for piece in pieces:
                    found.append(piece)
                    if len(found) == most:
                        break
                return b"".join(found)

    return ask


AIOHTTP = {
    f"aiohttp {how}": by_aiohttp(how)
    for how in ("read", "lines", "any", "chunked", "chunks", "nowait", "exactly", "until")
}
REQUESTS = {f"requests {how}": by_requests(how) for how in ("content", "content None", "content 64", "raw")}
URLLIB3 = {f"urllib3 {how}": by_urllib3(how) for how in ("data", "stream", "read1")}
STACKS = {**AIOHTTP, **REQUESTS, **URLLIB3}
STREAMING = ("aiohttp any", "aiohttp lines", "requests content 64", "urllib3 stream", "urllib3 read1")


def both(stacks: Iterable[str]) -> list[tuple[str, str]]:
    """*stacks* with the watcher given to the client, where it takes one, and installed."""
    return [
        (stack, way)
        for stack in stacks
        for way in ("given", "installed")
        if not (stack.startswith("urllib3") and way == "given")
    ]


def asked(ask: Callable[..., bytes], way: str, watcher: Watcher, url: str, **more: Any) -> bytes:
    """The bytes that *ask* reads while *watcher* watches, given to the client or installed."""
    if way == "given":
        return ask(watcher, url, **more)
    install(watcher)
    return ask(None, url, **more)


@pytest.mark.parametrize(("stack", "way"), both(STACKS))
def test_the_application_gets_its_bytes_and_the_record_says_what_they_say(
    stack: str, way: str, server: ReplayServer, watch: Watch, seen: Seen
) -> None:
    one = capture(STREAM)
    server.add(one, times=2)
    assert STACKS[stack](None, server.url + CHAT) == one.body
    assert asked(STACKS[stack], way, watch(), server.url + CHAT) == one.body
    record = seen.one
    assert record.body == one.body
    assert record.is_complete
    assert not record.is_cancelled
    assert (record.method, record.url, record.status) == ("POST", server.url + CHAT, 200)
    assert same_as_normalized(record, "vllm")
    assert record.request.model == "tiny"
    assert record.request.headers["authorization"] == "<secret>"


@pytest.mark.sweep
@pytest.mark.parametrize("stack", ["aiohttp any", "requests content 64", "urllib3 stream"])
@pytest.mark.parametrize("provider", PATHS)
def test_every_kind_of_answer(
    stack: str, provider: str, server: ReplayServer, watch: Watch, seen: Seen
) -> None:
    install(watch(provider))
    for one in load_captures(CAPTURES / provider)[:12]:
        server.add(one)
        assert STACKS[stack](None, server.url + PATHS[provider]) == one.body
        record = seen.pop()
        assert not seen
        assert (record.body, record.status) == (one.body, one.status)
        assert same_as_normalized(record, provider), one.case


@pytest.mark.parametrize(("stack", "way"), both(STREAMING))
def test_a_stream_that_is_left_is_cancelled_with_what_came(
    stack: str, way: str, server: ReplayServer, watch: Watch, seen: Seen
) -> None:
    server.add(capture(STREAM), Stall(after_events=5))
    came = asked(STACKS[stack], way, watch(), server.url + CHAT, most=1)
    record = seen.one
    assert record.is_cancelled
    assert record.error is None
    assert came in record.body
    assert record.response is not None
    assert record.response.attempts[0].outcome == "cancelled"


@pytest.mark.parametrize(
    ("stack", "way"),
    both(["aiohttp any", "requests content None", "urllib3 stream", "urllib3 read1", "requests raw"]),
)
def test_a_connection_that_breaks_reaches_application_and_record(
    stack: str, way: str, server: ReplayServer, watch: Watch, seen: Seen
) -> None:
    server.add(capture(STREAM), Cut(after_events=5))
    errors = (aiohttp.ClientError, requests.RequestException, urllib3.exceptions.HTTPError)
    with pytest.raises(errors):
        asked(STACKS[stack], way, watch(), server.url + CHAT)
    assert seen.one.response is not None
    info = seen.one.response.error_info
    assert info is not None
    assert (info.kind.value, info.code) == ("server", "connection_lost")


@pytest.mark.parametrize("way", ["given", "installed"])
def test_a_body_that_breaks_off_while_all_of_it_is_read_is_kept_as_far_as_it_came(
    way: str, server: ReplayServer, watch: Watch, seen: Seen
) -> None:
    server.add(capture(STREAM), Cut(after_events=5))
    with pytest.raises(aiohttp.ClientPayloadError):
        asked(STACKS["aiohttp read"], way, watch(), server.url + CHAT)
    record = seen.one
    assert record.body != b""
    assert capture(STREAM).body.startswith(record.body)
    assert record.response is not None
    assert record.response.finish_reason == "error"
    assert record.response.error_info is not None
    assert record.response.error_info.code == "connection_lost"
    assert record.response.segments[0].content != ""
    assert not record.is_complete


@pytest.mark.parametrize(("stack", "way"), both(["aiohttp any", "requests content None"]))
def test_a_server_that_is_not_there(stack: str, way: str, watch: Watch, seen: Seen) -> None:
    with ReplayServer() as gone:
        url = gone.url
    with pytest.raises((aiohttp.ClientError, requests.RequestException, urllib3.exceptions.HTTPError)):
        asked(STACKS[stack], way, watch(providers={url.partition("//")[2]: "vllm"}), url + CHAT)
    record = seen.one
    assert record.status is None
    assert record.response is not None
    assert record.response.error_info is not None
    assert record.response.error_info.kind.value == "server"


PACKED = gzip.compress(capture(STREAM).body)


@pytest.mark.parametrize("stack", sorted(STACKS.keys() - {"aiohttp exactly"}))
def test_what_comes_packed_is_kept_unpacked(
    stack: str, server: ReplayServer, watch: Watch, seen: Seen
) -> None:
    server.add(Answer((PACKED,), headers={"Content-Type": "text/event-stream", "Content-Encoding": "gzip"}))
    install(watch())
    came = STACKS[stack](None, server.url + CHAT)
    assert came in (capture(STREAM).body, PACKED)
    assert seen.one.body == capture(STREAM).body
    assert same_as_normalized(seen.one, "vllm")


@pytest.mark.parametrize("way", ["session", "request", "middleware"])
def test_a_session_that_unpacks_nothing(way: str, server: ReplayServer, watch: Watch, seen: Seen) -> None:
    server.add(Answer((PACKED,), headers={"Content-Type": "text/event-stream", "Content-Encoding": "gzip"}))

    async def run() -> bytes:
        options: dict[str, Any] = {}
        if way == "middleware":
            options = {"middlewares": [aiohttp_middleware(watch(), auto_decompress=False)]}
        else:
            install(watch())
        async with aiohttp.ClientSession(auto_decompress=way == "request", **options) as session:
            more = {"auto_decompress": False, "middlewares": ()} if way == "request" else {}
            async with session.post(server.url + CHAT, data=b"{}", **more) as answer:
                return bytes(await answer.read())

    assert asyncio.run(run()) == PACKED
    assert seen.one.body == capture(STREAM).body


def test_what_nobody_wants_to_watch_passes(server: ReplayServer, watch: Watch, seen: Seen) -> None:
    watcher = watch(providers={})
    for stack in ("aiohttp read", "requests content", "urllib3 data"):
        for way in ("given", "installed"):
            server.add(capture(STREAM))
            assert asked(STACKS[stack], way, watcher, server.url + "/elsewhere") == capture(STREAM).body
    assert not seen


def test_bodies_that_are_sent_as_they_are_read_are_not_kept(
    server: ReplayServer, watch: Watch, seen: Seen
) -> None:
    async def pieces() -> Any:
        yield b"{}"

    async def run() -> None:
        async with aiohttp.ClientSession() as session:
            await (await session.post(server.url + CHAT, data=pieces())).read()

    server.add(capture(STREAM), times=None)
    install(watch())
    asyncio.run(run())
    requests.post(server.url + CHAT, data=iter([b"{}"]))
    requests.post(server.url + CHAT, data='{"model": "tiny"}')
    assert [record.request.body for record in seen] == [None, None, b'{"model": "tiny"}']


@pytest.mark.filterwarnings("ignore:unread_data")
def test_what_is_put_back_and_read_again_came_once(server: ReplayServer, watch: Watch, seen: Seen) -> None:
    server.add(capture(STREAM))

    async def run() -> bytes:
        async with (
            aiohttp.ClientSession(middlewares=[aiohttp_middleware(watch())]) as session,
            session.post(server.url + CHAT, json=ASKED) as answer,
        ):
            begin = await answer.content.readexactly(50)
            answer.content.unread_data(begin)
            return await answer.content.readexactly(20) + await answer.content.read()

    assert asyncio.run(run()) == seen.one.body == capture(STREAM).body


def test_who_is_cancelled_may_read_on(server: ReplayServer, watch: Watch, seen: Seen) -> None:
    one = capture(STREAM)
    server.add(Answer.of_events([{"a": 1}]), Stall(after_events=1))

    async def run() -> None:
        async with (
            aiohttp.ClientSession(middlewares=[aiohttp_middleware(watch())]) as session,
            session.post(server.url + CHAT, json=ASKED) as answer,
        ):
            while answer.content.total_bytes == 0:
                await asyncio.sleep(0)
            await answer.content.readany()
            reading = asyncio.ensure_future(answer.content.readany())
            await asyncio.sleep(0)
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            assert not seen

    asyncio.run(run())
    assert seen.one.is_cancelled
    assert one.body


# ------------------------------------------------------------------------------------------- botocore


Bedrock = Callable[[str], Any]


@pytest.fixture
def bedrock() -> Iterator[Bedrock]:
    """Makes clients for a server at a URL, and closes them."""
    import botocore.session
    from botocore.config import Config

    made = []

    def client(url: str) -> Any:
        made.append(
            botocore.session.get_session().create_client(
                "bedrock-runtime",
                region_name="us-east-1",
                endpoint_url=url,
                aws_access_key_id="AKIDEXAMPLEEXAMPLE00",
                aws_secret_access_key="wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
                config=Config(retries={"total_max_attempts": 1}, proxies={}),
            )
        )
        return made[-1]

    yield client
    for one in made:
        one.close()


def frame(name: str, said: Any) -> bytes:
    """A message of an event stream."""
    headers = b""
    for key, value in (
        (":message-type", "event"),
        (":event-type", name),
        (":content-type", "application/json"),
    ):
        headers += bytes([len(key)]) + key.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
    payload = json.dumps(said).encode()
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    begun = prelude + struct.pack(">I", binascii.crc32(prelude)) + headers + payload
    return begun + struct.pack(">I", binascii.crc32(begun))


SAID = [{"role": "user", "content": [{"text": "Why?"}]}]


def watched_client(client: Any, way: str, watcher: Watcher) -> Any:
    if way == "given":
        watch_bedrock(watcher, client)
    else:
        install(watcher)
    return client


TOLD = [
    ("messageStart", {"role": "assistant"}),
    ("contentBlockDelta", {"delta": {"text": "Hi"}, "contentBlockIndex": 0}),
    ("contentBlockStop", {"contentBlockIndex": 0}),
    ("messageStop", {"stopReason": "end_turn"}),
    (
        "metadata",
        {"usage": {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}, "metrics": {"latencyMs": 4}},
    ),
]
FRAMES = b"".join(frame(name, said) for name, said in TOLD)
MODEL = "anthropic.claude-3-haiku"


@pytest.mark.sweep
@pytest.mark.parametrize("way", ["given", "installed"])
def test_bedrock_streams(bedrock: Bedrock, way: str, server: ReplayServer, watch: Watch, seen: Seen) -> None:
    server.add(Answer((FRAMES,), headers={"Content-Type": "application/vnd.amazon.eventstream"}), times=2)
    as_builtin_error = list(bedrock(server.url).converse_stream(modelId=MODEL, messages=SAID)["stream"])
    client = watched_client(bedrock(server.url), way, watch("bedrock"))
    assert list(client.converse_stream(modelId=MODEL, messages=SAID)["stream"]) == as_builtin_error
    assert as_builtin_error[1]["contentBlockDelta"]["delta"] == {"text": "Hi"}
    record = seen.one
    assert record.body == FRAMES
    assert record.request.model == MODEL
    assert record.is_stream
    assert same_as_normalized(record, "bedrock")
    assert record.response is not None
    assert (record.response.text, record.response.usage.total_tokens) == ("Hi", 3)
    assert "AKIDEXAMPLE" not in str(record.request.headers)
    assert record.request.headers["authorization"] == "<secret>"


@pytest.mark.parametrize("way", ["given", "installed"])
def test_bedrock_streams_that_are_left(
    bedrock: Bedrock, way: str, server: ReplayServer, watch: Watch, seen: Seen
) -> None:
    chunks = tuple(frame(name, said) for name, said in TOLD)
    headers = {"Content-Type": "application/vnd.amazon.eventstream"}
    server.add(Answer(chunks, headers=headers, stream=True), Stall(after_events=2))
    client = watched_client(bedrock(server.url), way, watch("bedrock"))
    stream = client.converse_stream(modelId=MODEL, messages=SAID)["stream"]
    assert next(iter(stream)) == {"messageStart": {"role": "assistant"}}
    stream.close()
    assert seen.one.is_cancelled


@pytest.mark.parametrize("way", ["given", "installed"])
def test_bedrock_bodies_and_refusals(
    bedrock: Bedrock, way: str, server: ReplayServer, watch: Watch, seen: Seen
) -> None:
    from botocore.exceptions import ClientError

    captures = {one.case: one for one in load_captures(CAPTURES / "bedrock")}
    whole, refusal = captures["citations"], captures["err_throttled"]
    server.add(whole, times=2)
    server.add(refusal)
    answer = bedrock(server.url).converse(modelId=MODEL, messages=SAID)
    client = watched_client(bedrock(server.url), way, watch("bedrock"))
    assert client.converse(modelId=MODEL, messages=SAID)["output"] == answer["output"]
    assert seen.one.body == whole.body
    assert same_as_normalized(seen.pop(), "bedrock")
    with pytest.raises(ClientError):
        client.converse(modelId=MODEL, messages=SAID)
    assert (seen.one.status, seen.one.body) == (refusal.status, refusal.body)
    assert same_as_normalized(seen.one, "bedrock")


def test_bedrock_that_nobody_watches_or_that_is_not_there(
    bedrock: Bedrock, server: ReplayServer, watch: Watch, seen: Seen
) -> None:
    from botocore.exceptions import BotoCoreError

    one = next(one for one in load_captures(CAPTURES / "bedrock") if one.case == "citations")
    server.add(one)
    client = bedrock(server.url)
    watch_bedrock(watch("bedrock", exclude=["127.0.0.1"], providers={}), client)
    client.converse(modelId=MODEL, messages=SAID)
    assert not seen
    with ReplayServer() as gone:
        url = gone.url
    client = bedrock(url)
    watch_bedrock(watch(providers={url.partition("//")[2]: "bedrock"}), client)
    with pytest.raises(BotoCoreError):
        client.converse(modelId=MODEL, messages=SAID)
    assert seen.one.response is not None
    assert seen.one.response.error_info is not None
    assert seen.one.response.error_info.kind.value == "server"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (urllib3.exceptions.ReadTimeoutError(None, "", ""), TimeoutError),
        (urllib3.exceptions.MaxRetryError(None, "", urllib3.exceptions.ConnectTimeoutError()), TimeoutError),
        (urllib3.exceptions.ProtocolError(), ConnectionError),
        (urllib3.exceptions.DecodeError(), urllib3.exceptions.DecodeError),
        (requests.ReadTimeout(), requests.ReadTimeout),
        (aiohttp.ServerDisconnectedError(), ConnectionError),
        (ValueError(), ValueError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_errors_of_libraries_as_python_s_own(error: BaseException, kind: type[BaseException]) -> None:
    assert type(as_builtin_error(error)) is kind


def test_what_stays_put_around_passes_while_nobody_watches() -> None:
    """Somebody else may have wrapped it, so that it could not be taken back."""

    async def asked(*given: Any, **more: Any) -> Any:
        return given, more

    assert asyncio.run(watched_request(lambda: None, asked)(1, a=2)) == ((1,), {"a": 2})
    called = watched_urlopen(lambda: None, lambda *given, **more: (given, more))
    assert called(1, "POST", "/x", a=2) == ((1, "POST", "/x"), {"a": 2})
