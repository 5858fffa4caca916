"""The record of an exchange: what its bytes say whatever they are and however they were cut, and no credentials."""

from __future__ import annotations

import base64
from datetime import timedelta
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given, strategies as st

import bedrock_frames
from crosswalk import Registry, hookimpl, normalize
from crosswalk.plugins import Access, ProviderInfo
from crosswalk.testing import load_captures
from crosswalk_observe import ObservedExchange, Watcher

from .conftest import CAPTURES, Seen, capture, same_as_normalized

HOSTS = {f"{name}.example": name for name in ("vllm", "ollama", "anthropic", "bedrock", "gemini")}
PATHS = {
    "vllm": "/v1/chat/completions",
    "ollama": "/api/chat",
    "anthropic": "/v1/messages",
    "bedrock": "/model/tiny/converse-stream",
    "gemini": "/v1beta/models/tiny:streamGenerateContent",
}
SEEN = Seen()
WATCHER = Watcher(SEEN, providers=HOSTS, in_background=False)
STREAM = capture("vllm/chat_think_stream.response.sse")


def observe(
    *chunks: bytes,
    provider: str = "vllm",
    status: int = 200,
    headers: Any = (),
    asked: bytes | None = b'{"model":"tiny"}',
    sent: Any = (),
    query: str = "",
    end: str = "ended",
    watcher: Watcher | None = None,
) -> ObservedExchange:
    url = f"https://{provider}.example{PATHS.get(provider, '')}{query}"
    exchange = (watcher or WATCHER).begin("POST", url, sent, asked)
    assert exchange is not None
    exchange.answered(status, headers)
    for chunk in chunks:
        exchange.chunk(chunk)
    getattr(exchange, end)()
    return SEEN.pop()


@pytest.mark.sweep
@pytest.mark.parametrize("provider", PATHS)
def test_each_capture_is_what_normalize_makes_of_it(provider: str) -> None:
    for one in load_captures(CAPTURES / provider):
        record = observe(one.body, provider=provider, status=one.status)
        assert record.provider == provider
        assert record.body == one.body
        assert same_as_normalized(record, provider), one.case


@given(st.data())
def test_how_the_bytes_are_cut_does_not_matter(data: st.DataObject) -> None:
    one = data.draw(st.sampled_from([STREAM, capture("ollama/chat_length_stream.response.ndjson")]))
    provider = one.file.parent.name
    places = sorted(data.draw(st.lists(st.integers(0, len(one.body)), max_size=20)))
    cuts = [0, *places, len(one.body)]
    record = observe(*(one.body[start:end] for start, end in pairwise(cuts)), provider=provider)
    assert record.body == one.body
    assert record.response is not None
    assert same_as_normalized(record, provider)


@given(
    chunks=st.lists(st.binary(max_size=200), max_size=5),
    status=st.integers(200, 999).filter(lambda status: not 300 <= status < 400),
    headers=st.dictionaries(
        st.sampled_from(["content-encoding", "content-type", "x-request-id"]),
        st.sampled_from(["gzip", "br", "deflate, gzip", "zstd", "identity", "text/event-stream", "?"]),
    ),
    end=st.sampled_from(["ended", "abandoned"]),
    asked=st.none() | st.binary(max_size=100),
)
def test_any_bytes_give_a_response_or_an_error(chunks: list[bytes], **given: Any) -> None:
    record = observe(*chunks, **given)
    assert record.response is not None
    assert record.status == given["status"]
    assert not record.response.is_complete
    assert repr(record)


@given(st.integers(0, len(STREAM.body)), st.sampled_from(["abandoned", "ended"]))
def test_a_stream_that_stops_anywhere_keeps_what_came(place: int, end: str) -> None:
    record = observe(STREAM.body[:place], end=end)
    assert record.response is not None
    whole = normalize(STREAM.body, "vllm")
    assert (whole.reasoning + whole.text).startswith(record.response.reasoning + record.response.text)
    assert record.is_complete is (record.response.finish_reason in ("stop", "length") or end == "ended")
    assert record.is_cancelled is (record.response.finish_reason == "cancelled")


def test_an_error_of_the_connection_is_told_by_its_kind() -> None:
    exchange = WATCHER.begin("POST", "https://vllm.example/v1/chat/completions")
    assert exchange is not None
    exchange.failed(ZeroDivisionError("with content"))
    record = SEEN.pop()
    assert record.response is not None
    assert record.response.error_info is not None
    assert record.response.error_info.message == "failed with ZeroDivisionError"
    assert record.response.model
    assert not record.is_complete


def test_what_cannot_be_read_is_an_error_with_what_came() -> None:
    head = STREAM.body[:1000]
    record = observe(head[: head.rindex(b"\n\n") + 2] + b"data: {broken\n\ndata: [DONE]\n\n")
    assert record.error is not None
    assert str(record.error).startswith("vllm, event ")
    assert record.response is not None
    assert record.response.text
    assert record.response.attempts[0].outcome == "error"


class Odd:
    """A stranger's plugin."""

    def __init__(self, breaks: str) -> None:
        self._breaks = breaks

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(
            title="Odd", access=Access(base_url="http://localhost:7777"), endpoints=("/talk",)
        )

    @hookimpl
    def map_delta(self, event: Any, state: Any) -> None:
        if self._breaks == "state":
            state.model = 7

    @hookimpl
    def recognizes(self, event: Any) -> Any:
        return "yes" if self._breaks == "recognizes" else None


@pytest.mark.parametrize(
    ("breaks", "end", "error", "said"),
    [
        ("nothing", "ended", None, "stop"),
        ("nothing", "abandoned", None, "cancelled"),
        ("recognizes", "ended", None, "stop"),
        ("state", "ended", "PluginError", None),
        ("state", "abandoned", "PluginError", None),
    ],
)
def test_whatever_a_plugin_does_there_is_a_record(
    breaks: str, end: str, error: str | None, said: str | None
) -> None:
    own = Registry(installed=[])
    own.register(Odd(breaks), "odd")
    watcher = Watcher(SEEN, registry=own, in_background=False)
    exchange = watcher.begin("POST", "http://localhost:7777/talk")
    assert exchange is not None
    exchange.answered(200, {})
    exchange.chunk(b'{"a": 1}\n')
    getattr(exchange, end)()
    record = SEEN.pop()
    assert record.provider == "odd"
    assert record.body == b'{"a": 1}\n'
    assert (record.error and type(record.error).__name__) == error
    assert (record.response and record.response.finish_reason) == said
    assert record.is_cancelled is (end == "abandoned")


def test_a_provider_that_is_blocked_meanwhile_is_an_error() -> None:
    own = Registry(installed=[])
    own.register(Odd("nothing"), "odd")
    watcher = Watcher(SEEN, registry=own, in_background=False)
    exchange = watcher.begin("POST", "http://localhost:7777/talk")
    assert exchange is not None
    own.block("odd")
    exchange.ended()
    record = SEEN.pop()
    assert (type(record.error).__name__, record.response) == ("UnknownProviderError", None)


@pytest.mark.parametrize(
    ("path", "headers", "asked", "expected"),
    [
        ("", {"content-type": "text/event-stream; charset=utf-8"}, b"{}", True),
        ("", [("Content-Type", "application/x-ndjson")], b"{}", True),
        ("", {}, b'{"stream": true}', True),
        ("", {}, b'{"stream": 1}', False),
        ("", {}, b"[1]", False),
        ("", {}, b"no JSON", False),
    ],
)
def test_a_record_says_whether_it_is_of_a_stream(
    path: str, headers: Any, asked: bytes, expected: bool
) -> None:
    record = observe(b"{}", headers=headers, asked=asked)
    assert record.is_stream is expected
    assert (record.request.body is None) is (asked in (b"[1]", b"no JSON", b"{}"))


def test_what_the_headers_say_of_the_request_is_with_the_attempt() -> None:
    record = observe(STREAM.body, headers=[("X-Request-Id", "r1"), ("x-a", "1"), ("X-A", "2")])
    assert record.headers == {"x-request-id": "r1", "x-a": "1, 2"}
    assert record.response is not None
    assert record.response.attempts[0].extra == {"status": 200, "request_id": "r1"}


def test_the_times_are_those_of_the_bytes() -> None:
    record = observe()
    assert record.time_to_first_chunk is None
    assert record.duration >= timedelta(0)


# ------------------------------------------------------------------------------- credentials

KEY = "wombat/1234+5678"
SECRET = [
    "Authorization", "X-API-Key", "api-key", "Cookie", "X-Goog-Api-Key", "X-Amz-Security-Token", "X-Auth-Token",
    "Ocp-Apim-Subscription-Key", "x-my-secret", "Proxy-Authorization", "X-Session-Id", "signature",
]  # fmt: skip
HARMLESS = [
    "x-ratelimit-remaining-tokens",
    "anthropic-ratelimit-tokens-limit",
    "content-type",
    "x-request-id",
]


@pytest.mark.parametrize("name", SECRET)
def test_a_credential_is_nowhere_in_a_record(name: str) -> None:
    said = f'{{"error": {{"message": "no such key: {KEY} {KEY.replace("/", chr(92) + "/")}"}}}}'.encode()
    record = observe(
        said[:40],
        said[40:],
        status=401,
        sent={name: f"session={KEY}; path=/" if name == "Cookie" else f"Bearer {KEY}"},
        headers={"set-cookie": KEY, "x-echo": KEY},
        asked=b'{"model":"m","options":{"key":"%s"}}' % KEY.encode(),
    )
    assert record.request.headers == {name.lower(): "<secret>"}
    assert record.headers == {"set-cookie": "<secret>", "x-echo": "<secret>"}
    assert record.body == b'{"error": {"message": "no such key: <secret> <secret>"}}'
    assert record.request.body == b'{"model":"m","options":{"key":"<secret>"}}'
    assert record.response is not None
    assert "wombat" not in f"{record} {record.request} {record.response} {record.response.error_info}"


@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_no_credential_stays(name: str) -> None:
    assert observe(sent={name: "17"}, headers={name: "18"}).request.headers == {name: "17"}


def test_what_looks_like_a_key_is_a_credential_whatever_its_header_is_called() -> None:
    assert observe(sent={"x-other": "sk-12345678901234"}).request.headers == {"x-other": "<secret>"}


@pytest.mark.parametrize(
    ("header", "body", "expected"),
    [
        (
            "AWS4-HMAC-SHA256 Credential=WOMBATWOMBAT/20260101/r/s/aws4_request, SignedHeaders=content-type, Signature=0123456789abcdef",
            b"AWS4-HMAC-SHA256 WOMBATWOMBAT content-type 0123456789abcdef",
            b"AWS4-HMAC-SHA256 <secret> content-type <secret>",
        ),
        ("session_of_user=wombat-wombat; b=2", b"session_of_user wombat-wombat", b"session_of_user <secret>"),
    ],
)
def test_what_stands_beside_a_credential_is_none(header: str, body: bytes, expected: bytes) -> None:
    name = "authorization" if header.startswith("AWS4") else "Cookie"
    assert observe(body, status=400, sent={name: header}).body == expected


def test_a_credential_that_is_meant_for_a_tool_is_one_too() -> None:
    tool = {"type": "mcp", "headers": {"Authorization": f"Bearer {KEY}"}, "authorization_token": "short"}
    asked = {"model": "m", "tools": [tool], "max_tokens": 5, "secret": 'a \\ " b'}
    record = observe(b'{"error": "%s is no key"}' % KEY.encode(), status=400, asked=orjson.dumps(asked))
    assert record.body == b'{"error": "<secret> is no key"}'
    assert record.request.options == {"max_tokens": 5}
    assert record.request.body is not None
    sent = orjson.loads(record.request.body)
    assert sent["tools"] == [
        {"type": "mcp", "headers": {"Authorization": "<secret>"}, "authorization_token": "<secret>"}
    ]


@given(st.text(), st.dictionaries(st.text(), st.text()), st.binary())
def test_whatever_is_sent_there_is_a_record(query: str, headers: dict[str, str], asked: bytes) -> None:
    record = observe(STREAM.body, query=f"?{query}", sent=headers, asked=asked)
    assert record.response is not None
    assert record.url.startswith("https://vllm.example/v1/chat/completions")


def test_what_no_url_can_say_is_replaced() -> None:
    assert observe(STREAM.body, query="?a=\ud800").url.endswith("?a=%3F")


def test_a_word_for_no_key_is_not_taken_out_of_the_answer() -> None:
    body = b'{"error": {"message": "EMPTY is the ollama of vllm"}}'
    for word in ("EMPTY", "ollama"):
        assert observe(body, status=400, sent={"Authorization": f"Bearer {word}"}).body == body


def test_a_url_keeps_what_is_no_credential() -> None:
    path, query = "/p/pass-word-12345/v1/chat/completions", "?a=1&key=k&token=t&b=%20#f"
    exchange = WATCHER.begin(
        "POST", f"https://me:pass-word-12345@vllm.example{path}{query}", (), b'{"model":"tiny"}'
    )
    assert exchange is not None
    exchange.answered(200, ())
    exchange.ended()
    redacted_path = path.replace("pass-word-12345", "<secret>")
    assert SEEN.pop().url == f"https://vllm.example{redacted_path}?a=1&key=<secret>&token=<secret>&b=%20"


# --------------------------------------------------------------- streams of Bedrock's InvokeModel

INVOKED: list[Any] = [
    {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "model": "claude-x", "content": [],
                                          "usage": {"input_tokens": 9, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 12}},
    {"type": "message_stop"},
]  # fmt: skip


def chunk(event: Any) -> bytes:
    """A message of an event stream with an event of the model's vendor in it."""
    return bedrock_frames.event("chunk", {"bytes": base64.b64encode(orjson.dumps(event)).decode()})


def invoke(*chunks: bytes, end: str = "ended", status: int = 200) -> ObservedExchange:
    url = "https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude/invoke-with-response-stream"
    exchange = WATCHER.begin("POST", url, {}, b"{}")
    assert exchange is not None
    exchange.answered(status, {"content-type": "application/vnd.amazon.eventstream"})
    for one in chunks:
        exchange.chunk(one)
    getattr(exchange, end)()
    return SEEN.pop()


@pytest.mark.parametrize("size", [7, 100, 10_000])
def test_a_stream_of_an_invoked_model_is_read_in_the_words_of_its_vendor(size: int) -> None:
    data = b"".join(map(chunk, INVOKED))
    record = invoke(*(data[start : start + size] for start in range(0, len(data), size)))
    assert record.body == b"".join(orjson.dumps(event) + b"\n" for event in INVOKED)
    assert (record.provider, record.request.model, record.is_stream, record.is_complete) == (
        "anthropic",
        "anthropic.claude",
        True,
        True,
    )
    assert record.response is not None
    assert (record.response.text, record.response.usage.total_tokens) == ("Hi", 21)


def test_a_stream_of_an_invoked_model_may_fail_or_break_off() -> None:
    begun = [chunk(event) for event in INVOKED[:3]]
    failed = invoke(*begun, bedrock_frames.event("throttlingException", {"message": "slow"}))
    unsaid = invoke(*begun, bedrock_frames.event("throttlingException", b"1"))
    cut = invoke(*begun, chunk(INVOKED[3])[:-5])
    left = invoke(*begun, chunk(INVOKED[3])[:-5], end="abandoned")
    broken = invoke(*begun, b"\0" * 100)
    refused = invoke(b'{"message": "not ready"}', status=429)
    for record, kind, code in (
        (failed, "rate_limit", "throttlingException"),
        (unsaid, "rate_limit", "throttlingException"),
        (cut, "unknown", "IncompleteStreamError"),
        (broken, "unknown", "EventStreamError"),
        (refused, "rate_limit", None),
    ):
        assert record.response is not None
        assert record.response.error_info is not None
        assert (record.response.error_info.kind, record.response.error_info.code) == (kind, code)
        assert record.response.text == ("" if record is refused else "Hi")
    assert (cut.is_complete, left.is_cancelled, broken.is_complete) == (False, True, False)


# -------------------------------------------------------------------------------- what a sink needs


class Facts(Seen):
    """A sink that needs no copy of an exchange."""

    needs = "facts"


@pytest.mark.parametrize("status", [200, 500])
def test_a_sink_that_needs_facts_gets_them_without_a_copy_of_the_exchange(status: int) -> None:
    key = "sk-abcdefghijklmnop"
    body = orjson.dumps({"error": {"message": f"wrong key {key}"}})
    chunks = [STREAM.body] if status == 200 else [body]
    facts, everything = Facts(), Seen()
    for sink in (facts, everything):
        with Watcher(sink, providers=HOSTS, in_background=False) as watcher:
            url = f"https://vllm.example{PATHS['vllm']}?key={key}"
            exchange = watcher.begin("POST", url, {"authorization": f"Bearer {key}"}, b'{"model":"tiny"}')
            assert exchange is not None
            exchange.answered(status, {"x-request-id": "r1"})
            for chunk in chunks:
                exchange.chunk(chunk)
            exchange.ended()
    few, whole = facts.one, everything.one
    assert few.response is not None
    assert whole.response is not None
    assert few.response.usage == whole.response.usage
    assert few.response.finish_reason is whole.response.finish_reason
    assert (few.response.model, few.provider, few.status) == (whole.response.model, "vllm", status)
    assert few.duration > timedelta()
    assert (few.url, few.headers, few.body, few.request.headers, few.request.body) == ("", {}, b"", {}, None)
    assert (few.request.model, few.response.attempts) == ("tiny", ())
    assert key not in f"{few.response.error_info} {few.response.text}"
    assert (whole.headers, len(whole.response.attempts)) == ({"x-request-id": "r1"}, 1)


def test_a_sink_that_needs_everything_gets_it_beside_one_that_needs_facts() -> None:
    facts, everything = Facts(), Seen()
    with Watcher(facts, everything, providers=HOSTS, in_background=False) as watcher:
        exchange = watcher.begin("POST", f"https://vllm.example{PATHS['vllm']}", (), b'{"model":"tiny"}')
        assert exchange is not None
        exchange.answered(200, ())
        exchange.chunk(STREAM.body)
        exchange.ended()
    assert facts.one is everything.one
    assert everything.one.body == STREAM.body
