"""One failed call of an SDK, with its own repetitions, is three calls of the server at most, and one if that may be paid."""

from __future__ import annotations

import logging
import re
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from contrib_serve import HI, live, says
from crosswalk.testing.exchange import Cut, Fault, Garbage, Reset
from crosswalk.testing.replay import Answer, ReplayServer
from crosswalk_serve.config import Config, KeyHash, read_config

KEY = "cw-alice-0123456789abcdefghij"
AT_ONCE = "initial_seconds: 0, max_seconds: 0"
TWO_LENGTHS = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx"
LONG_HEAD = b"HTTP/1.1 200 OK\r\nX: " + b"y" * 3_000_000 + b"\r\n\r\n"
PAGE = Answer((b"<html>",), headers={"content-type": "text/html"})
OVERLOADED = Answer.of_events([{"error": {"message": "busy", "code": 503}}])

MAY_BE_PAID: list[tuple[Answer, list[Fault]]] = [
    (says(), [Reset()]),
    (says(), [Reset(after_bytes=9)]),
    (says(), [Cut(after_bytes=9)]),
    (says(), [Garbage(data=TWO_LENGTHS)]),
    (says(), [Garbage(data=LONG_HEAD)]),
    (PAGE, []),
    (OVERLOADED, []),
    *((Answer.failure(status), []) for status in (408, 500, 504)),
]
"""Failures after which the server may have read the prompt, and answered."""

TURNED_AWAY = [429, 503, 529]

Ask = Callable[[str], object]


def openai_whole(url: str) -> object:
    with openai.OpenAI(base_url=f"{url}/v1", api_key=KEY) as client:
        return client.chat.completions.create(**HI)


def openai_streamed(url: str) -> object:
    with openai.OpenAI(base_url=f"{url}/v1", api_key=KEY) as client:
        return list(client.chat.completions.create(**HI, stream=True))


def openai_responses(url: str) -> object:
    with openai.OpenAI(base_url=f"{url}/v1", api_key=KEY) as client:
        return client.responses.create(model="tiny", input="Hi")


def anthropic_whole(url: str) -> object:
    with anthropic.Anthropic(base_url=url, api_key=KEY) as client:
        return client.messages.create(**HI, max_tokens=9)


def anthropic_streamed(url: str) -> object:
    with (
        anthropic.Anthropic(base_url=url, api_key=KEY) as client,
        client.messages.stream(**HI, max_tokens=9) as events,
    ):
        return events.get_final_message()


def openai_embeddings(url: str) -> object:
    with openai.OpenAI(base_url=f"{url}/v1", api_key=KEY) as client:
        return client.embeddings.create(model="tiny", input="Hi")


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDKs wait for nothing before they ask again."""
    monkeypatch.setattr(time, "sleep", lambda seconds: None)


def config_at(*urls: str, retry: str = AT_ONCE, more: str = "") -> Config:
    endpoints = ", ".join(f"{{provider: vllm, base_url: '{url}'}}" for url in urls)
    return read_config(f"retry: {{{retry}}}\nmodels: {{tiny: [{endpoints}]}}\n{more}", environ={})


def calls_of(ask: Ask, config: Config, upstream: ReplayServer) -> int:
    """How often *upstream* is asked for one call of an SDK, which fails."""
    with (
        live(config) as gateway,
        pytest.raises((openai.APIError, anthropic.APIError)),
    ):
        ask(gateway.url)
    return len(upstream.requests)


@pytest.mark.untraced
@pytest.mark.parametrize("ask", [openai_whole, openai_streamed, anthropic_streamed])
@pytest.mark.parametrize(("answer", "faults"), MAY_BE_PAID, ids=str)
def test_a_prompt_that_may_have_been_read_is_sent_once(
    upstream: ReplayServer, ask: Ask, answer: Answer, faults: list[Fault]
) -> None:
    upstream.add(answer, *faults, times=None)
    assert calls_of(ask, config_at(upstream.url), upstream) == 1


ASKS = [
    openai_whole,
    openai_streamed,
    openai_responses,
    openai_embeddings,
    anthropic_whole,
    anthropic_streamed,
]


@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("fault", [Reset(), Cut()], ids=str)
@pytest.mark.parametrize(("allowed", "count"), [("", 1), ("repeat_started: true, attempts: 1, ", 2)])
def test_nor_over_a_connection_that_was_kept(
    upstream: ReplayServer, ask: Ask, fault: Fault, allowed: str, count: int
) -> None:
    """It ends without a byte. Only an operator may take that for the end of an idle connection."""
    upstream.add(Answer.failure(400)).add(says(), fault, times=None)
    with live(config_at(upstream.url, retry=allowed + AT_ONCE)) as gateway:
        for _ in range(2):
            with pytest.raises((openai.APIStatusError, anthropic.APIStatusError)) as raised:
                ask(gateway.url)
    first, *others = upstream.requests
    assert len(others) == count
    assert others[0].connection == first.connection
    assert raised.value.response.headers["x-should-retry"] == "false"


@pytest.mark.parametrize("ask", [openai_responses, openai_embeddings, anthropic_whole])
@pytest.mark.parametrize("faults", [[Reset()], []], ids=str)
def test_nor_in_other_formats(upstream: ReplayServer, ask: Ask, faults: list[Fault]) -> None:
    upstream.add(Answer.failure(500), *faults, times=None)
    assert calls_of(ask, config_at(upstream.url), upstream) == 1


@pytest.mark.parametrize("ask", [openai_whole, openai_streamed, anthropic_whole])
@pytest.mark.parametrize("status", TURNED_AWAY)
def test_a_server_that_turns_away_is_asked_three_times(upstream: ReplayServer, ask: Ask, status: int) -> None:
    upstream.add(Answer.failure(status), times=None)
    assert calls_of(ask, config_at(upstream.url), upstream) == 3


@pytest.mark.parametrize("ask", [openai_whole, anthropic_streamed, openai_embeddings])
def test_without_attempts_of_its_own_it_leaves_them_to_the_client(upstream: ReplayServer, ask: Ask) -> None:
    upstream.add(Answer.failure(429), times=None)
    assert calls_of(ask, config_at(upstream.url, retry="attempts: 1"), upstream) == 3


@pytest.mark.parametrize("ask", [openai_whole, anthropic_streamed])
def test_a_long_wait_is_the_clients(upstream: ReplayServer, ask: Ask) -> None:
    """The gateway does not wait for it, so that it has asked once each time."""
    upstream.add(Answer.failure(429, retry_after=9), times=None)
    assert calls_of(ask, config_at(upstream.url), upstream) == 3


@pytest.mark.parametrize("ask", [openai_responses, anthropic_whole])
def test_a_server_that_is_not_there_is_tried_three_times(
    caplog: pytest.LogCaptureFixture, ask: Ask, refused: str
) -> None:
    with (
        caplog.at_level(logging.WARNING, "crosswalk.serve"),
        live(config_at(refused)) as gateway,
        pytest.raises((openai.APIError, anthropic.APIError)),
    ):
        ask(gateway.url)
    assert len([line for line in caplog.messages if "attempt failed" in line]) == 3


@pytest.fixture
def refused() -> Iterator[str]:
    """An address at which nothing listens, and nothing will meanwhile."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


@pytest.mark.parametrize("ask", [openai_whole, anthropic_streamed, openai_embeddings])
def test_the_next_endpoint_is_asked_once_and_the_client_repeats_nothing(
    upstream: ReplayServer, ask: Ask
) -> None:
    upstream.add(Answer.failure(500), times=None)
    config = config_at(upstream.url, f"{upstream.url}/")
    assert calls_of(ask, config, upstream) == 2


@pytest.mark.parametrize("ask", [openai_whole, anthropic_streamed])
def test_an_operator_may_repeat_what_may_be_paid_twice(upstream: ReplayServer, ask: Ask) -> None:
    upstream.add(Answer.failure(500), times=None)
    config = config_at(upstream.url, retry=f"repeat_started: true, {AT_ONCE}")
    assert calls_of(ask, config, upstream) == 3


@pytest.mark.parametrize("ask", [openai_whole, anthropic_whole])
def test_a_server_may_ask_to_be_asked_again(upstream: ReplayServer, ask: Ask) -> None:
    busy = Answer((b"{}",), 500, {"x-should-retry": "true", "content-type": "application/json"})
    upstream.add(busy, times=None)
    assert calls_of(ask, config_at(upstream.url), upstream) == 3


BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": HI,
    "/v1/responses": {"model": "tiny", "input": "Hi"},
    "/v1/messages": {**HI, "max_tokens": 9},
    "/v1/embeddings": {"model": "tiny", "input": "Hi"},
}


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (Answer.failure(500), 424),
        (Answer.failure(409), 424),
        (Answer.failure(400), 400),
        (Answer.failure(429, retry_after=9), 429),
    ],
    ids=str,
)
def test_a_client_that_reads_the_status_alone_gets_one_that_it_does_not_repeat(
    upstream: ReplayServer, path: str, answer: Answer, status: int
) -> None:
    """Vercel's AI SDK repeats any 408, 409, 429 and 5xx twice, whatever ``x-should-retry`` says."""
    upstream.add(answer, times=None)
    agent = {"user-agent": "ai/6.0.326 ai-sdk/openai/3.0.141 runtime/node.js/24"}
    with live(config_at(upstream.url)) as gateway, httpx2.Client() as client:
        said = [client.post(gateway.url + path, json=BODIES[path], headers=one) for one in (agent, {})]
    assert [one.status_code for one in said] == [status, answer.status]
    assert said[0].json()["error"] == said[1].json()["error"]


@pytest.mark.parametrize(
    "agent", ["google-genai-sdk/3.6.1 gl-python/3.11.7", "OpenAI/Python 2.1.0", "my-ai-sdk/1.0"]
)
def test_a_client_whose_name_only_ends_alike_gets_the_servers_status(
    upstream: ReplayServer, agent: str
) -> None:
    upstream.add(Answer.failure(500), times=None)
    with live(config_at(upstream.url)) as gateway, httpx2.Client(headers={"user-agent": agent}) as client:
        path = "/v1beta/models/tiny:generateContent"
        said = client.post(gateway.url + path, json={"contents": [{"parts": [{"text": "Hi"}]}]})
        assert (said.status_code, said.json()["error"]["code"]) == (500, 500)
        assert client.post(f"{gateway.url}/v1/chat/completions", json=HI).status_code == 500


OF_A_DAY = "Rate limit reached for tokens per day (TPD): Limit 10"
OF_A_DAY_FOR_GOOGLE = [{"violations": [{"quotaId": "GenerateRequestsPerDayPerProject"}]}]
NO_MONEY = {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}
SPENT = [
    Answer.failure(402),
    Answer.of_json(NO_MONEY, status=429),
    Answer.failure(429, message=OF_A_DAY),
    Answer.failure(429, message="The monthly limit of this plan is reached"),
    Answer.of_json({"error": {"message": "No.", "details": OF_A_DAY_FOR_GOOGLE}}, status=429),
]
"""What no repetition brings back: money, and limits of a day or longer."""


@pytest.mark.untraced
@pytest.mark.parametrize(
    "ask", [openai_whole, openai_streamed, openai_responses, openai_embeddings, anthropic_streamed]
)
@pytest.mark.parametrize("answer", SPENT, ids=str)
def test_what_is_spent_is_asked_for_once(upstream: ReplayServer, ask: Ask, answer: Answer) -> None:
    """Neither the gateway nor the client's SDK repeats the request."""
    upstream.add(answer, times=None)
    assert calls_of(ask, config_at(upstream.url), upstream) == 1


@pytest.mark.untraced
@pytest.mark.parametrize("ask", [openai_whole, anthropic_streamed, openai_embeddings])
@pytest.mark.parametrize("answer", SPENT, ids=str)
def test_the_next_endpoint_may_have_what_is_spent(upstream: ReplayServer, ask: Ask, answer: Answer) -> None:
    upstream.add(answer, times=None)
    assert calls_of(ask, config_at(upstream.url, f"{upstream.url}/"), upstream) == 2


@pytest.mark.parametrize("ask", [openai_streamed, anthropic_whole])
def test_a_repetition_that_helps_is_seen_by_nobody(upstream: ReplayServer, ask: Ask) -> None:
    upstream.add(Answer.failure(503)).add(Answer.failure(429))
    upstream.add(says(), times=None, when=lambda request: not request.wants_stream)
    streamed = Answer.of_events(
        [
            {
                "id": "c",
                "object": "chat.completion.chunk",
                "model": "tiny",
                "choices": [{"index": 0, "delta": {"content": "Hello"}, "finish_reason": "stop"}],
            }
        ]
    )
    upstream.add(streamed, times=None)
    with live(config_at(upstream.url)) as gateway:
        assert "Hello" in str(ask(gateway.url))
    assert len(upstream.requests) == 3


def headers_of(config: Config, key: str = KEY, **body: Any) -> httpx2.Headers:
    """The headers of the gateway's error."""
    with live(config) as gateway, httpx2.Client() as client:
        answer = client.post(
            f"{gateway.url}/v1/chat/completions",
            json={**HI, **body},
            headers={"authorization": f"Bearer {key}"},
        )
        assert answer.status_code >= 400
        return answer.headers


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("answer", SPENT, ids=str)
def test_a_client_is_told_that_no_wait_helps(upstream: ReplayServer, answer: Answer, stream: bool) -> None:
    upstream.add(answer, times=None)
    assert headers_of(config_at(upstream.url), stream=stream)["x-should-retry"] == "false"


def test_what_the_gateway_refuses_itself_may_be_asked_again(upstream: ReplayServer) -> None:
    """Nothing was sent to a server, so it costs nothing."""
    hashed = KeyHash.of(KEY, b"saltsalt")
    limit = f"keys: {{alice: {{hash: '{hashed}', requests_per_minute: 1}}}}"
    upstream.add(Answer.failure(429), times=None)
    with live(config_at(upstream.url, more=limit)) as gateway, httpx2.Client() as client:
        kind = {"headers": {"authorization": f"Bearer {KEY}"}}
        answers = [client.post(f"{gateway.url}/v1/chat/completions", json=HI, **kind) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [429, 429]
    assert re.fullmatch(r"\d+", answers[1].headers["retry-after"])
    assert "x-should-retry" not in answers[1].headers
    assert "x-should-retry" not in headers_of(config_at(upstream.url), model="none")


def openai_embeddings_with(url: str, headers: dict[str, str]) -> object:
    with openai.OpenAI(base_url=f"{url}/v1", api_key=KEY) as client:
        return client.embeddings.create(model="tiny", input="Hi", extra_headers=headers)


def openai_whole_with(url: str, headers: dict[str, str]) -> object:
    with openai.OpenAI(base_url=f"{url}/v1", api_key=KEY) as client:
        return client.chat.completions.create(**HI, extra_headers=headers)


def anthropic_streamed_with(url: str, headers: dict[str, str]) -> object:
    with (
        anthropic.Anthropic(base_url=url, api_key=KEY) as client,
        client.messages.stream(**HI, max_tokens=9, extra_headers=headers) as events,
    ):
        return events.get_final_message()


@pytest.mark.parametrize("ask", [openai_whole_with, openai_embeddings_with, anthropic_streamed_with])
def test_a_server_learns_which_requests_are_one(
    upstream: ReplayServer, ask: Callable[[str, dict[str, str]], object]
) -> None:
    """The SDK repeats its call twice, as it comes. A server that knows the key need not work on the request again."""
    upstream.add(Answer.failure(429), times=None)
    with (
        live(config_at(upstream.url, retry="attempts: 1")) as gateway,
        pytest.raises((openai.APIError, anthropic.APIError)),
    ):
        ask(gateway.url, {"Idempotency-Key": "order 17"})
    sent = [request.headers for request in upstream.requests]
    assert [one["idempotency-key"] for one in sent] == ["order 17"] * 3
    assert [one.get("x-stainless-retry-count", "0") for one in sent] == ["0", "1", "2"]


@pytest.mark.parametrize("ask", [openai_whole, anthropic_streamed])
@pytest.mark.parametrize("waits", [1, 2])
def test_attempts_of_the_client_and_of_the_gateway_are_counted_together(
    upstream: ReplayServer, ask: Ask, waits: int
) -> None:
    """A long wait is the client's. What it has asked for before, the gateway does not ask for as often again."""
    for _ in range(waits):
        upstream.add(Answer.failure(429, retry_after=9))
    upstream.add(Answer.failure(503), times=None)
    assert calls_of(ask, config_at(upstream.url), upstream) == 3


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/embeddings"])
@pytest.mark.parametrize("key", ["", "\xe9", "k" * 256])
def test_an_idempotency_key_is_a_line_of_plain_text(upstream: ReplayServer, key: str, path: str) -> None:
    with live(config_at(upstream.url)) as gateway, httpx2.Client() as client:
        headers = {"idempotency-key": key.encode("latin-1")}
        answer = client.post(gateway.url + path, json={**HI, "input": "Hi"}, headers=headers)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "idempotency-key"
    assert not upstream.requests


def test_a_count_of_repetitions_that_is_no_number_counts_nothing(upstream: ReplayServer) -> None:
    upstream.add(Answer.failure(503), times=None)
    with live(config_at(upstream.url)) as gateway, httpx2.Client() as client:
        client.post(
            f"{gateway.url}/v1/chat/completions", json=HI, headers={"x-stainless-retry-count": "often"}
        )
    assert len(upstream.requests) == 3
