"""A server that repeats the key it was sent: the key is in no message, attempt or log."""

from __future__ import annotations

import asyncio
import base64
import logging
import pickle
import string
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import attrs
import httpx2
import pytest
from hypothesis import assume, given, strategies as st

from crosswalk import AuthenticationError, MappingError, ProviderError, UnknownFinishReasonError
from crosswalk.service import ChatRequest, Endpoint, LLMService, Secret, SyncLLMService
from crosswalk.service.endpoint import Redaction
from crosswalk.testing.replay import Answer, ReplayServer
from wires import body, chunk

Make = Callable[..., LLMService]
KEY = "corp/Zq7+hunter2;tail-of-it.0815"
OTHER = "team-rocket"
ASK = ChatRequest("hi", stream=True)


def in_base64(key: str) -> str:
    return base64.b64encode(key.encode()).decode().rstrip("=")


def in_hex(key: str) -> str:
    return key.encode().hex()


CODED = (in_base64, in_hex)
LONG = "x" * 480 + " "


def failing(message: str, **more: Any) -> Answer:
    answer = Answer.of_json({"error": {"message": message, **more}}, status=401)
    headers = {**answer.headers, "x-request-id": f"{KEY}\x1b[31m"}
    return attrs.evolve(answer, headers=headers)


def asked(service: LLMService, request: ChatRequest = ASK) -> Any:
    async def run() -> Any:
        async with service:
            return await service.complete(request)

    return asyncio.run(run())


@pytest.mark.parametrize(
    "answer",
    [
        failing(f"wrong key {KEY} of {OTHER}", code=f"bad_{KEY}\x1b[2J"),
        failing(f"wrong key {KEY.upper()}"),
        failing(f"{LONG}{KEY}"),
        Answer((f"no: {KEY}".encode(),), 403),
        Answer.of_events([{"error": {"message": f"wrong key {KEY}", "code": KEY}}]),
        Answer.of_events([chunk({"content": "a"}), {"error": {"message": f"wrong key {KEY}", "code": KEY}}]),
        Answer((b"<html>",), headers={"Content-Type": KEY}),
    ],
    ids=["json", "another case", "cut", "text", "event", "event behind", "content type"],
)
def test_no_error_quotes_the_key(
    server: ReplayServer, service_of: Make, caplog: pytest.LogCaptureFixture, answer: Answer
) -> None:
    server.add(answer, times=None)
    endpoint = Endpoint(
        "vllm", model="m", base_url=server.url, api_key=KEY, headers={"X-Team": Secret(OTHER)}
    )
    with caplog.at_level(logging.DEBUG, "crosswalk"), pytest.raises(ProviderError) as raised:
        asked(service_of(endpoint))
    error, response = raised.value, raised.value.response
    info = response.error_info
    told = [str(error), repr(error), repr(response), response.refusal, info.message, info.code, repr(info)]
    for attempt in response.attempts:
        told += [attempt.error, *map(str, attempt.extra.values())]
        assert "\x1b" not in f"{attempt.extra}"
    told += [str(record.__dict__) for record in caplog.records]
    shown = "\n".join(map(str, told)).lower()
    for part in ("zq7", "hunter2", "tail-of-it", OTHER):
        assert part not in shown


WORDS = "correctHorseBatteryStaple"
"""A key of no known form: nothing but its own text tells it."""


@pytest.mark.parametrize(("call", "kept"), [("models", 24), ("models", 5), ("embed", 24), ("complete", 24)])
def test_no_error_shows_a_key_that_the_bytes_to_read_end_in(
    server: ReplayServer, call: str, kept: int
) -> None:
    length = 2**20 if call == "complete" else 400
    said = b" " * (length - kept) + WORDS.encode() + b" is wrong"
    server.add(Answer((said,), 401, headers={"Content-Type": "text/plain"}))
    with (
        SyncLLMService(
            Endpoint("openai", model="m", base_url=server.url, api_key=WORDS),
            client_options={"verify": False},
        ) as service,
        pytest.raises(AuthenticationError, match="401.*<secret>") as raised,
    ):
        getattr(service, call)(*([] if call == "models" else ["hi"]))
    assert WORDS[:5] not in f"{raised.value}{raised.value!r}"


def test_no_id_of_a_request_shows_a_key_that_it_is_cut_in(server: ReplayServer, service_of: Make) -> None:
    answer = Answer.of_json(body({"content": "Hi."}))
    headers = {**answer.headers, "x-request-id": "a" * (200 - len(WORDS)) + " " + WORDS}
    server.add(attrs.evolve(answer, headers=headers))
    endpoint = Endpoint("vllm", model="m", base_url=server.url, api_key=WORDS)
    response = asked(service_of(endpoint), ChatRequest("hi"))
    assert response.attempts[0].extra["request_id"] == "a" * (200 - len(WORDS)) + " <secret>"


PASSWORD = "pass word-of/proxy"


def asked_of(kind: str, **options: Any) -> Any:
    if kind == "blocking":
        with SyncLLMService(**options) as service:
            return service.complete("hi")
    return asked(LLMService(transport=kind, **options), ChatRequest("hi"))  # type: ignore[arg-type]


@pytest.mark.parametrize("place", ["proxy=", "httpx2.Proxy", "environment"])
@pytest.mark.parametrize("kind", ["blocking", "httpx2", "aiohttp"])
def test_no_error_quotes_the_password_of_a_proxy(
    server: ReplayServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    kind: str,
    place: str,
) -> None:
    """A proxy that gets the request itself can repeat what it was sent, as plain text and as base64."""
    if kind == "aiohttp":
        pytest.importorskip("aiohttp")
        if place == "httpx2.Proxy":
            pytest.skip("aiohttp takes the address of a proxy alone")
    coded = base64.b64encode(f"usr:{PASSWORD}".encode()).decode()
    server.add(Answer((f"wrong: {PASSWORD}, {quote(PASSWORD, safe='')}, {coded}".encode(),), 407), times=None)
    address = server.url.replace("://", f"://usr:{quote(PASSWORD, safe='')}@")
    options: dict[str, Any] = {"client_options": {"verify": False}}
    if place == "environment":
        for name in ("http_proxy", "HTTP_PROXY"):
            monkeypatch.setenv(name, address)
    elif place == "proxy=":
        options["proxy"] = address
    else:
        options["client_options"]["proxy"] = httpx2.Proxy(server.url, auth=("usr", PASSWORD))
    with (
        caplog.at_level(logging.DEBUG, "crosswalk"),
        pytest.raises(ProviderError, match="<secret>") as raised,
    ):
        asked_of(kind, provider="vllm", model="m", base_url="http://llm.test", retry=0, **options)
    assert server.requests[0].headers["proxy-authorization"] == f"Basic {coded}"
    shown = f"{raised.value} {raised.value.response.attempts} {[vars(record) for record in caplog.records]}"
    for secret in (PASSWORD, quote(PASSWORD, safe=""), coded):
        assert secret not in shown


def test_what_the_provider_said_stays_as_it_is(server: ReplayServer, service_of: Make) -> None:
    """Next to the messages: its own data are its own."""
    server.add(failing(f"wrong key {KEY}"))
    endpoint = Endpoint("vllm", model="m", base_url=server.url, api_key=KEY)
    with pytest.raises(ProviderError) as raised:
        asked(service_of(endpoint))
    assert KEY.encode() in raised.value.response.raw_events.frames[0]
    assert raised.value.info.raw["error"]["message"] == f"wrong key {KEY}"
    service = service_of(endpoint, Endpoint("vllm", model="n", base_url=server.url, api_key=OTHER))
    assert service.redact(f"wrong key {KEY}, not {OTHER}") == "wrong key <secret>, not <secret>"
    with SyncLLMService(endpoint) as blocking:
        assert blocking.redact(f"wrong key {KEY}") == "wrong key <secret>"


def test_an_unknown_word_that_is_kept_does_not_show_it(
    server: ReplayServer, service_of: Make, caplog: pytest.LogCaptureFixture
) -> None:
    server.add(Answer.of_json(body({"content": "Hi."}, f"drifted {KEY}")))
    endpoint = Endpoint("vllm", model="m", base_url=server.url, api_key=KEY)
    with caplog.at_level(logging.DEBUG, "crosswalk"):
        asked(service_of(endpoint), ChatRequest("hi"))
    shown = str([record.__dict__ for record in caplog.records])
    assert "unknown finish reason 'drifted <secret>' is kept" in shown  # told once in a process
    assert "hunter2" not in shown


def test_an_answer_that_cannot_be_read_does_not_quote_it_either(
    server: ReplayServer, service_of: Make, caplog: pytest.LogCaptureFixture
) -> None:
    server.add(Answer.of_json(body({"content": "Hi."}, KEY)))
    endpoint = Endpoint("vllm", model="m", base_url=server.url, api_key=KEY)
    with caplog.at_level(logging.DEBUG, "crosswalk"), pytest.raises(MappingError) as raised:
        asked(service_of(endpoint, unknown="raise"), ChatRequest("hi"))
    assert isinstance(raised.value, UnknownFinishReasonError)
    shown = f"{raised.value} {raised.value!r} {raised.value.partial!r} {[r.__dict__ for r in caplog.records]}"
    assert "<secret>" in shown
    assert "hunter2" not in shown


@pytest.mark.parametrize("form", [str, *CODED], ids=lambda form: form.__name__)
def test_no_id_model_or_finish_word_shows_it(
    server: ReplayServer, service_of: Make, caplog: pytest.LogCaptureFixture, form: Callable[[str], str]
) -> None:
    """Whole and streamed: in the response, its last delta, the log, and a pickle of it without the provider's bytes."""
    echo = form(KEY)
    said = {**body({"content": "Hi."}, echo), "id": f"id-{echo}", "model": f"m-{echo}"}
    piece = {**chunk({"content": "Hi."}), "id": f"id-{echo}", "model": f"m-{echo}"}
    end = {**chunk({}, echo), "id": f"id-{echo}", "model": f"m-{echo}"}
    server.add(Answer.of_json(said)).add(Answer.of_events([piece, end]))
    endpoint = Endpoint("vllm", model="m", base_url=server.url, api_key=KEY)

    async def run() -> list[Any]:
        async with service_of(endpoint, keep_raw=False) as service:
            whole = await service.complete(ChatRequest("hi"))
            streamed = service.stream(ASK)
            events = [event async for event in streamed]
            return [whole, *(event.delta for event in events if event.delta), streamed.response]

    with caplog.at_level(logging.DEBUG, "crosswalk"):
        shown = asyncio.run(run())
    assert shown[0].id == shown[-1].id
    assert shown[0].id.startswith("id-<secret>")
    assert shown[0].metadata.model_id == shown[0].model == shown[0].id.replace("id-", "m-")
    assert shown[-2].raw_finish_reason == shown[-1].raw_finish_reason == shown[0].raw_finish_reason
    told = [*map(repr, shown), *(str(record.__dict__) for record in caplog.records)]
    told += [str(pickle.dumps(each)) for each in shown]
    assert echo not in "\n".join(told)
    assert "hunter2" not in "\n".join(told)


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@given(
    st.text(string.printable, min_size=8, max_size=40).map(str.strip).filter(lambda key: len(key) > 7),
    st.binary(max_size=9),
    st.binary(max_size=9),
)
def test_base64_is_found_amid_other_text(encode: Any, key: str, before: bytes, after: bytes) -> None:
    """At most two of the key's own characters stay: those that share bits with their neighbours."""
    coded = encode(before + key.encode() + after).decode()
    shown = Redaction([key])(coded)
    assume(" " not in key)
    assert "<secret>" in shown
    kept = shown.split("<secret>")
    assert sum(map(len, kept)) <= len(encode(before + after)) + 8


@pytest.mark.parametrize(
    ("values", "text", "shown"),
    [
        ([], "no key", "no key"),
        (["abc"], "abc", "abc"),
        (["Bearer key-1"], "Bearer key-1 is wrong", "Bearer <secret> is wrong"),
        (["a/b+c=d"], "?key=a%2Fb%2Bc%3Dd", "?key=<secret>"),
        (["key-12345"], "it was key-12…", "it was <secret>…"),
        (["key-12345"], "it was long…", "it was long…"),
        (["one-long-part.two-long-part"], "…two-long-part", "…<secret>"),
        (["key-12345"], "it was KEY-1234", "it was <secret>"),
        (["key-12345"], "it was key-123", "it was key-123"),
        (["key-12345"], "it was not a -1234…", "it was not a -1234…"),
        (["correct-horse"], f"it was {in_hex('correct-h')}", "it was <secret>"),
        (["key-12345"], "it was\nKEY-\n123 45, and key-1 2345", "it was\n<secret>, and <secret>"),
        (["key-12345"], f"{in_hex('key-')} {in_hex('12345')} is no key", "<secret> is no key"),
        (["key-12"], "it was key- 12", "it was key- 12"),
    ],
)
def test_what_a_redaction_finds(values: list[str], text: str, shown: str) -> None:
    assert Redaction(values)(text) == shown
    assert "key" not in repr(Redaction(values))
