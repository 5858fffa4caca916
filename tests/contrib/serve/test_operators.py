"""What an operator is told: a line of JSON for each request, what an answer costs, and how keys end."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, NoReturn

import httpx2
import pytest
from starlette.applications import Starlette

from contrib_serve import HI, asking, config_of, says, streams
from crosswalk.testing.exchange import Reset, Stall
from crosswalk.testing.replay import Answer, ReplayServer
from crosswalk_serve import asking as asking_module, create_app
from crosswalk_serve.config import Config, KeyHash
from crosswalk_serve.server import AppOf, reload

CHAT = "/v1/chat/completions"
KEY = "cw-alice-0123456789abcdefghij"
HASHED = f"'{KeyHash.of(KEY, b'saltsalt')}'"
PRICE = "price: {input_per_million: 1, output_per_million: 2.5}"
STREAMED = {**HI, "stream": True}


class Clock:
    now = datetime(2027, 1, 30, tzinfo=UTC).timestamp()

    def __call__(self) -> float:
        return self.now


@contextmanager
def own_log() -> Iterator[None]:
    """Let the process log as a new one does, which has no handlers of pytest."""
    root, logger = logging.getLogger(), logging.getLogger("crosswalk.serve")
    handlers, level = list(root.handlers), logger.level
    root.handlers.clear()
    try:
        yield
    finally:
        root.handlers[:] = handlers
        logger.setLevel(level)


def lines_of(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """The objects that were written to standard error, one in each line."""
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def served(config: Config) -> Starlette:
    """The application of a process of the gateway."""
    return AppOf(config, lambda: config)()


async def ask(
    app: Starlette, *bodies: dict[str, Any], path: str = CHAT, **headers: str
) -> list[httpx2.Response]:
    async with asking(app, headers=headers) as client:
        return [await client.post(path, json=body) for body in bodies]


# ------------------------------------------------------------------------------------ the log


def test_each_request_is_a_line_of_json(upstream: ReplayServer, capsys: pytest.CaptureFixture[str]) -> None:
    upstream.add(says()).add(streams("Hel", "lo")).add(Answer.failure(500))
    models = f"tiny: {{provider: vllm, base_url: '{upstream.url}', {PRICE}}}"
    more = f"log: {{format: json}}\ncosts: true\nkeys: {{alice: {{hash: {HASHED}}}}}"

    async def main() -> None:
        app = served(config_of(upstream, more, models))
        await ask(app, HI, STREAMED, HI, **{"x-api-key": KEY})
        await ask(app, HI, **{"x-api-key": "cw-guess"})
        await app.state.gateway.aclose()

    with own_log():
        asyncio.run(main())
    lines = lines_of(capsys)
    whole, streamed, attempt, failed, refused_key, refused = lines
    assert [line["event.name"] for line in lines] == [
        *["crosswalk.request"] * 2,
        *["crosswalk.attempt", "crosswalk.request"],
        *["crosswalk.key_refused", "crosswalk.request"],
    ]
    timestamp, seconds, id = (
        whole.pop(name) for name in ("timestamp", "http.server.request.duration", "crosswalk.request.id")
    )
    assert datetime.fromisoformat(timestamp).tzinfo == UTC
    assert 0 < seconds < 600
    assert whole.pop("body").startswith(f"{id} openai-chat tiny alice 200 ")
    assert whole == {
        "severity_text": "INFO",
        "event.name": "crosswalk.request",
        "crosswalk.form": "openai-chat",
        "crosswalk.key": "alice",
        "crosswalk.cost_usd": 19e-6,
        "client.address": "127.0.0.1",
        "gen_ai.request.model": "tiny",
        "gen_ai.provider.name": "vllm",
        "gen_ai.response.model": "tiny-1",
        "gen_ai.usage.input_tokens": 9,
        "gen_ai.usage.output_tokens": 4,
        "http.response.status_code": 200,
    }
    assert (streamed["gen_ai.usage.output_tokens"], streamed["crosswalk.cost_usd"]) == (4, 19e-6)
    assert attempt["crosswalk.request.id"] == failed["crosswalk.request.id"]
    assert (attempt["severity_text"], attempt["error.type"]) == ("WARNING", "server")
    assert "crosswalk.key" not in refused
    assert refused["http.response.status_code"] == 401
    assert refused_key["client.address"] == "127.0.0.1"
    said = json.dumps(lines)
    assert not [secret for secret in (KEY, "cw-guess", "Hello", HASHED, '"Hi"') if secret in said]


def test_an_estimate_is_called_one(upstream: ReplayServer, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody has counted, so the tokens are an estimate, and no header says what they cost."""
    choice = {"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}
    upstream.add(Answer.of_json({"id": "1", "object": "chat.completion", "model": "m", "choices": [choice]}))
    upstream.add(Answer.of_json({"data": [], "object": "list"}))
    models = f"tiny: {{provider: vllm, base_url: '{upstream.url}', {PRICE}}}"

    async def main() -> None:
        app = served(config_of(upstream, "log: {format: json}\ncosts: true", models))
        (chat,) = await ask(app, HI)
        (vectors,) = await ask(app, {"model": "tiny", "input": "Hi"}, path="/v1/embeddings")
        assert (chat.status_code, vectors.status_code) == (200, 200)
        assert not {"x-crosswalk-cost-usd"} & {*chat.headers, *vectors.headers}
        await app.state.gateway.aclose()

    with own_log():
        asyncio.run(main())
    assert [line["crosswalk.estimated"] for line in lines_of(capsys)] == [True, True]


@pytest.mark.parametrize(
    "answer",
    [
        Answer((b"<html>",), headers={"Content-Type": "text/html"}),
        Answer.failure(500),
        Answer.failure(503),
        "reset",
        "timeout",
    ],
    ids=str,
)
def test_what_no_server_has_counted_has_no_cost(
    upstream: ReplayServer, answer: Answer | str, caplog: pytest.LogCaptureFixture
) -> None:
    if isinstance(answer, Answer):
        upstream.add(answer)
    else:
        upstream.add(says(), Stall() if answer == "timeout" else Reset())
    limit = "timeouts: {total: 0.05}, " if answer == "timeout" else ""
    models = f"tiny: {{provider: vllm, base_url: '{upstream.url}', {limit}{PRICE}}}"
    app = create_app(config_of(upstream, "costs: true", models))

    async def main() -> None:
        (chat,) = await ask(app, HI)
        assert chat.status_code == 504 if answer == "timeout" else chat.status_code >= 500
        assert "x-crosswalk-cost-usd" not in chat.headers
        await app.state.gateway.aclose()

    caplog.set_level(logging.INFO, "crosswalk.serve")
    asyncio.run(main())
    line = vars(caplog.records[-1])
    assert line["crosswalk.cost_usd"] is None
    assert not {"gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "crosswalk.estimated"} & {*line}


@pytest.mark.parametrize("path", [CHAT, "/v1/responses"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ["whole", "dropped", "relayed", "written"])
def test_a_paid_answer_that_the_gateway_fails_to_send_counts(
    upstream: ReplayServer,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    path: str,
    stream: bool,
) -> None:
    """A fault of the gateway itself. The log has the status that the client has seen."""

    def fail(*_: object, **__: object) -> NoReturn:
        raise LookupError("a fault")

    monkeypatch.setattr(asking_module, name, fail)
    upstream.add(streams("Hello") if stream else says())
    models = f"tiny: {{provider: vllm, base_url: '{upstream.url}', {PRICE}}}"
    app = create_app(config_of(upstream, "costs: true", models))
    asked = {**HI, "input": "Hi", "stream": stream}
    asked.pop("messages" if path != CHAT else "input")
    is_hit = {"whole": not stream, "dropped": True}.get(
        name, stream and (name == "relayed") == (path == CHAT)
    )

    async def main() -> httpx2.Response:
        (answer,) = await ask(app, asked, path=path)
        await app.state.gateway.aclose()
        return answer

    caplog.set_level(logging.INFO, "crosswalk.serve")
    answer = asyncio.run(main())
    assert ("the gateway failed" in answer.text) is is_hit
    line = vars(caplog.records[-1])
    assert line["http.response.status_code"] == answer.status_code == (500 if is_hit and not stream else 200)
    assert line["gen_ai.usage.output_tokens"] > 0
    assert line["crosswalk.cost_usd"] > 0


def test_other_libraries_and_errors_are_lines_of_json_too(
    upstream: ReplayServer, capsys: pytest.CaptureFixture[str]
) -> None:
    with own_log():
        app = served(config_of(upstream, "log: {format: json, requests: false}"))
        logging.getLogger("crosswalk.serve").info("not asked for")
        logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
        try:
            raise ValueError("\ud800 is no character")
        except ValueError:
            logging.getLogger("crosswalk.serve").exception("request %s failed", "1\n2")
    asyncio.run(app.state.gateway.aclose())
    uvicorn, failed = lines_of(capsys)
    assert (uvicorn["body"], uvicorn["severity_text"]) == ("Invalid HTTP request received.", "WARNING")
    assert failed["body"] == "request 1\n2 failed"
    assert "ValueError" in failed["exception.stacktrace"]


# ------------------------------------------------------------------------------------ what it costs


@pytest.mark.parametrize(
    ("price", "more", "cost"),
    [
        (PRICE, "costs: true", "0.000019000"),
        (PRICE, "", None),
        ("takes_media: true", "costs: true", None),  # no list has a price for it
        ("price: {input_per_million: 0, output_per_million: 0}", "costs: true", "0.000000000"),
    ],
)
def test_a_header_says_what_a_whole_answer_costs(
    upstream: ReplayServer, price: str, more: str, cost: str | None
) -> None:
    upstream.add(says()).add(streams("Hello")).add(
        Answer.of_json({"data": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4}})
    )
    app = create_app(
        config_of(upstream, more, f"tiny: {{provider: vllm, base_url: '{upstream.url}', {price}}}")
    )

    async def main() -> None:
        whole, streamed = await ask(app, HI, STREAMED)
        (vectors,) = await ask(app, {"model": "tiny", "input": "Hi"}, path="/v1/embeddings")
        assert whole.headers.get("x-crosswalk-cost-usd") == cost
        assert vectors.headers.get("x-crosswalk-cost-usd") == cost
        assert "x-crosswalk-cost-usd" not in streamed.headers  # its head is sent before it is known
        await app.state.gateway.aclose()

    asyncio.run(main())


# ------------------------------------------------------------------------------------ keys that end


def test_a_key_ends_and_a_new_file_prolongs_it(upstream: ReplayServer) -> None:
    upstream.add(says(), times=None)
    clock = Clock()
    file = f"keys: {{alice: {{hash: {HASHED}, expires: 2027-01-31T00:00Z}}}}"
    app = create_app(config_of(upstream, file), clock=clock)

    async def main() -> None:
        headers = {"x-api-key": KEY}
        (valid,) = await ask(app, HI, **headers)
        clock.now += 86400
        (expired,) = await ask(app, HI, **headers)
        reload(app.state.gateway, lambda: config_of(upstream, file.replace("01-31", "02-28")))
        (prolonged,) = await ask(app, HI, **headers)
        assert [one.status_code for one in (valid, expired, prolonged)] == [200, 401, 200]
        assert expired.json()["error"]["message"] == "the API key has expired"
        await app.state.gateway.aclose()

    asyncio.run(main())


def test_a_budget_of_a_month_survives_a_new_file(upstream: ReplayServer) -> None:
    """The file may raise it. What was spent stays spent until the month ends."""
    upstream.add(says(), times=None)
    clock = Clock()
    models = f"tiny: {{provider: vllm, base_url: '{upstream.url}', price: {{input_per_million: 1000, output_per_million: 2000}}}}"
    file = f"keys: {{alice: {{hash: {HASHED}, budget_per_month: 0.02}}}}"
    app = create_app(config_of(upstream, file, models), clock=clock)

    async def main() -> None:
        headers, body = {"x-api-key": KEY}, {**HI, "max_tokens": 4}
        first, second = await ask(app, body, body, **headers)
        reload(app.state.gateway, lambda: config_of(upstream, f"{file}\nmetrics: true", models))
        clock.now += 86400
        (third,) = await ask(app, body, **headers)
        reload(app.state.gateway, lambda: config_of(upstream, file.replace("0.02", "0.04"), models))
        raised, last = await ask(app, body, body, **headers)
        clock.now += 86400
        (next_month,) = await ask(app, body, **headers)
        statuses = [one.status_code for one in (first, second, third, raised, last, next_month)]
        assert statuses == [200, 429, 429, 200, 429, 200]
        assert "the budget of the month" in second.json()["error"]["message"]
        assert second.json()["error"]["code"] == "insufficient_quota"
        assert second.headers["retry-after"] == str(2 * 86400)
        await app.state.gateway.aclose()

    asyncio.run(main())


@pytest.mark.parametrize("answering", ["my-deployment", "gpt-4o-2024-08-06"])
def test_an_answer_of_an_unpriced_name_costs_what_was_reserved(
    upstream: ReplayServer, answering: str
) -> None:
    """A deployment answers by its own name. A dated name has a price of its own."""
    answer = json.loads(says().chunks[0])
    upstream.add(Answer.of_json({**answer, "model": answering}), times=None)
    models = f"tiny: {{provider: openai, base_url: '{upstream.url}', model: gpt-4o, api_key: k}}"
    file = f"costs: true\nkeys: {{alice: {{hash: {HASHED}, budget_per_day: 0.0001}}}}"
    app = create_app(config_of(upstream, file, models), clock=Clock())

    async def main() -> None:
        first, second = await ask(app, *[{**HI, "max_tokens": 4}] * 2, **{"x-api-key": KEY})
        assert first.headers["x-crosswalk-cost-usd"] == "0.000062500"  # 9 tokens at $2.50, 4 at $10 a million
        assert (first.status_code, second.status_code) == (200, 429)
        await app.state.gateway.aclose()

    asyncio.run(main())
