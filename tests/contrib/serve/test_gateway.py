"""The resources that all requests share: prices, Redis, traces, the log's file."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import pickle
import sys
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
from fakeredis import FakeAsyncRedis
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from contrib_serve import ABOUT, HI, asking, config_of, says
from crosswalk import Provenance, normalize
from crosswalk.convert import Loss, LossReason, WireForm, convert
from crosswalk.errors import ConfigurationError, ErrorInfo, ErrorKind
from crosswalk.records import read_record
from crosswalk.service import ChatRequest
from crosswalk.testing.replay import Answer, ReplayServer
from crosswalk.types import ChatMessage, ToolCall
from crosswalk_serve import create_app
from crosswalk_serve.config import KeyHash, load_config
from crosswalk_serve.gateway import Gateway
from crosswalk_serve.http import Interruptible, dropped, dropped_fields, header_of
from crosswalk_serve.routing import new_key
from crosswalk_serve.server import AppOf
from crosswalk_serve.telemetry import ExchangeLog, Traced, exchange_line
from redis_server import redis_address  # noqa: F401  # a fixture

KEY = "cw-alice-0123456789abcdefghij"
HASH = str(KeyHash.of(KEY, b"saltsalt"))
CHAT = "/v1/chat/completions"


# ------------------------------------------------------------------------------------ prices

LOAD = partial(load_config, "gateway.yml")


def test_budgets_need_prices(upstream: ReplayServer, monkeypatch: pytest.MonkeyPatch) -> None:
    budget = f"keys: {{a: {{hash: '{HASH}', budget_per_day: 1}}}}"
    asked = [budget, budget.replace("day", "month"), "costs: true"]
    for one in asked:
        Gateway(config_of(upstream, one))
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    for one in asked:
        with pytest.raises(ConfigurationError, match="budgets need prices"):
            Gateway(config_of(upstream, one))
    priced = f"tiny: {{provider: vllm, base_url: '{upstream.url}', price: {{input_per_million: 1, output_per_million: 2}}}}"
    Gateway(config_of(upstream, budget, priced))


def test_what_an_answer_cost(upstream: ReplayServer, monkeypatch: pytest.MonkeyPatch) -> None:
    body = {
        "id": "1", "model": "gpt-4o-mini", "object": "chat.completion", "created": 1_750_000_000,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1_000_000, "completion_tokens": 1_000_000},
    }  # fmt: skip
    response = normalize(orjson.dumps(body), "openai")
    own = f"a: {{provider: vllm, base_url: '{upstream.url}', price: {{input_per_million: 1, output_per_million: 2}}}}"
    gateway = Gateway(
        config_of(upstream, models=f"{own}\n  b: {{provider: vllm, base_url: '{upstream.url}'}}")
    )
    priced, listed = gateway.router.find("a"), gateway.router.find("b")
    assert priced is not None
    assert listed is not None
    assert priced.cost(response) == 3
    assert listed.cost(response) > 0
    assert listed.cost(normalize(orjson.dumps({**body, "model": "my own"}), "vllm")) is None
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert listed.cost(response) is None


def test_the_most_that_a_request_may_cost(upstream: ReplayServer) -> None:
    own = f"a: {{provider: vllm, base_url: '{upstream.url}', price: {{input_per_million: 4000000, output_per_million: 1000000}}}}"
    listed = ", ".join(
        f"{{provider: openai, model: {name}, api_key: k}}" for name in ("gpt-4o-mini", "gpt-4o")
    )
    router = Gateway(config_of(upstream, models=f"{own}\n  b: [{listed}]")).router
    priced, dear = router.find("a"), router.find("b")
    assert priced is not None
    assert dear is not None
    assert priced.most_cost(ChatRequest("Hi", max_tokens=10), 1) == 4 + 10
    assert priced.most_cost(ChatRequest("Hi", max_tokens=10), 3) == 4 + 30
    assert priced.most_cost(ChatRequest("Hi"), 1) == 4 + 16384
    called = ChatMessage("assistant", None, tool_calls=[ToolCall("1", "f", '{"a": 1}')])
    tool = {"type": "function", "function": {"name": "f"}}
    assert (
        priced.most_cost(
            ChatRequest([called, ChatMessage("tool", "four", tool_call_id="1")], max_tokens=1), 1
        )
        == 12 + 1
    )
    assert priced.most_cost(ChatRequest("Hi", tools=[tool], max_tokens=1), 1) > 4 * 5
    assert dear.most_cost(ChatRequest("Hi", max_tokens=10**6), 1) == pytest.approx(
        10, rel=0.01
    )  # of the second


def test_an_answer_may_cost_what_the_model_writes_at_most(upstream: ReplayServer) -> None:
    price = "price: {input_per_million: 0, output_per_million: 1000000}"
    models = (
        f"a: {{provider: anthropic, model: claude-haiku-4-5, api_key: k, {price}}}\n"
        f"  b: {{provider: openai, model: prod-7, model_class: gpt-5.1, api_key: k, {price}}}"
    )
    router = Gateway(config_of(upstream, models=models)).router
    for name, most in (("a", 64000), ("b", 128000)):
        route = router.find(name)
        assert route is not None
        assert route.most_cost(ChatRequest("Hi"), 1) == most
        assert route.most_cost(ChatRequest("Hi", max_tokens=9), 1) == 9


def test_a_class_that_is_not_there_is_found_at_the_start(upstream: ReplayServer) -> None:
    models = "a: {provider: openai, model: prod-7, model_class: no-such, api_key: k}"
    with pytest.raises(ConfigurationError, match=r"models\.a: openai: there is no model class 'no-such'"):
        Gateway(config_of(upstream, models=models))


def test_a_class_holds_in_each_format_that_has_it(upstream: ReplayServer) -> None:
    models = (
        f"a: {{provider: openai, model: prod-7, model_class: gpt-5.1, base_url: '{upstream.url}', api_key: k, "
        "formats: [messages, responses]}"
    )
    route = Gateway(config_of(upstream, models=models)).router.find("a")
    assert route is not None
    (target,) = route.model.endpoints
    classes = {form: one.model.endpoints[0].model_class for form, one in route.native.items()}
    assert classes == {WireForm.ANTHROPIC: None, WireForm.OPENAI_RESPONSES: target.model_class}


# ------------------------------------------------------------------------------------ extras


def test_what_is_not_installed_is_named(upstream: ReplayServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(ConfigurationError, match="crosswalk-llm\\[prometheus\\]"):
        Gateway(config_of(upstream, "metrics: true"))
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    with pytest.raises(ConfigurationError, match="crosswalk-llm\\[redis\\]"):
        Gateway(config_of(upstream, "redis: {url: redis://h}"))


def test_a_gateway_closes_its_connections_to_redis(
    upstream: ReplayServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = []

    class Kept(FakeAsyncRedis):
        async def aclose(self, *given: Any, **more: Any) -> None:
            closed.append(self)
            await super().aclose(*given, **more)

    monkeypatch.setattr("redis.asyncio.Redis.from_url", lambda *_, **__: Kept())
    asyncio.run(Gateway(config_of(upstream, "redis: {url: redis://h}")).aclose())
    assert len(closed) == 1


def test_processes_share_what_they_count_and_keep(
    upstream: ReplayServer,
    redis_address: str,  # noqa: F811
) -> None:
    more = (
        f"redis: {{url: '{redis_address}', prefix: '{new_key()}'}}\n"
        f"keys: {{a: {{hash: '{HASH}', requests_per_minute: 2}}}}"
    )

    async def main() -> None:
        upstream.add(says("Hello"), times=None)
        config = config_of(upstream, more)
        one, other = (create_app(config, clock=lambda: 4_000_000_020.0) for _ in range(2))
        headers = {"x-api-key": KEY}
        async with asking(one, headers=headers) as first, asking(other, headers=headers) as second:
            id = (await first.post("/v1/responses", json={"model": "tiny", "input": "Hi"})).json()["id"]
            assert (await second.get(f"/v1/responses/{id}")).json()["id"] == id
            on = {"model": "tiny", "input": "On", "previous_response_id": id}
            assert (await second.post("/v1/responses", json=on)).status_code == 200
            assert (await first.post("/v1/responses", json=on)).status_code == 429
        for app in (one, other):
            await app.state.gateway.aclose()

    asyncio.run(main())
    assert len(upstream.requests[-1].json()["messages"]) == 3


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """Gets all spans."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    return exporter


def test_no_client_makes_up_the_name_of_a_span(
    upstream: ReplayServer, exporter: InMemorySpanExporter
) -> None:
    async def main() -> None:
        async with asking(create_app(config_of(upstream, "tracing: true"))) as client:
            for method, path in [
                ("GET", "/v1/models/tiny"),
                ("GET", "/any"),
                ("FOO", "/v1/models"),
                ("FOO", "/any"),
            ]:
                await client.request(method, path)

    asyncio.run(main())
    spans = [(span.name, span.attributes["http.request.method"]) for span in exporter.get_finished_spans()]
    assert spans == [
        ("GET /v1/models/{id:path}", "GET"),
        ("GET", "GET"),
        ("_OTHER /v1/models", "_OTHER"),
        ("_OTHER", "_OTHER"),
    ]


def test_traces_go_on_from_the_clients(upstream: ReplayServer, exporter: InMemorySpanExporter) -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    async def main() -> None:
        app = create_app(config_of(upstream, "tracing: true"))
        async with app.router.lifespan_context(app), asking(app, headers={"traceparent": parent}) as client:
            upstream.add(says()).add(Answer.failure(500))
            for _ in range(2):
                await client.post(CHAT, json=HI)

    asyncio.run(main())
    call, request, _, failed = exporter.get_finished_spans()
    assert f"{request.context.trace_id:032x}" == parent.split("-")[1]
    assert f"{request.parent.span_id:016x}" == parent.split("-")[2]
    assert call.parent.span_id == request.context.span_id
    assert request.attributes["http.response.status_code"] == 200
    assert (request.name, request.attributes["http.route"]) == (f"POST {CHAT}", CHAT)
    assert (failed.attributes["http.response.status_code"], failed.status.is_ok) == (500, False)
    assert "Hello" not in str([span.to_json() for span in exporter.get_finished_spans()])


def test_a_span_is_for_a_request_alone() -> None:
    seen: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["type"])

    asyncio.run(Traced(app)({"type": "lifespan"}, None, None))  # type: ignore[arg-type]  # nothing is received
    assert seen == ["lifespan"]


def test_numbers_of_several_processes_are_read_from_their_folder(
    upstream: ReplayServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gateway = Gateway(config_of(upstream, "metrics: true"))
    assert gateway.metrics is not None
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    assert gateway.metrics.text()[0] == b""


def test_a_process_that_only_begins_to_count_or_dies_is_no_error(
    upstream: ReplayServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gateway = Gateway(config_of(upstream, "metrics: true"))
    assert gateway.metrics is not None
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    (tmp_path / "counter_1.db").touch()
    (tmp_path / "gauge_livesum_2.db").symlink_to("removed")
    assert gateway.metrics.text()[0] == b""


def test_another_process_makes_the_same_application(
    upstream: ReplayServer, caplog: pytest.LogCaptureFixture
) -> None:
    thresholds, logger = gc.get_threshold(), logging.getLogger("crosswalk.serve")
    made = pickle.loads(pickle.dumps(AppOf(config_of(upstream), LOAD)))
    try:
        first, second = made(), made()
        assert first.state.gateway.router.names == second.state.gateway.router.names == ("tiny",)
        (handler,) = logger.handlers
        logger.removeHandler(handler)
        quiet = AppOf(config_of(upstream, "log: {requests: false}"), LOAD)
        quiet()
        assert logger.handlers == []
    finally:
        logger.setLevel(logging.NOTSET)
        gc.set_threshold(*thresholds)
        gc.unfreeze()


# ------------------------------------------------------------------------------------ what ends a request


def leaving(after: asyncio.Event) -> Any:
    messages = iter([{"type": "http.request"}])

    async def receive() -> dict[str, str]:
        for message in messages:
            return message
        await after.wait()
        return {"type": "http.disconnect"}

    return receive


CAUSE = ErrorInfo(ErrorKind.SERVER, "it ends")


def test_a_block_ends_once_for_one_reason() -> None:
    async def main() -> None:
        left = asyncio.Event()
        block = Interruptible(leaving(left))
        block.interrupt(CAUSE)  # it has not begun
        assert block.cause is None
        async with block:
            block.interrupt(CAUSE)
            block.interrupt(ErrorInfo(ErrorKind.SERVER, "again"))
            await asyncio.Event().wait()
        assert (block.cause, block.has_left) == (CAUSE, False)
        left.set()
        block.interrupt(CAUSE)  # it has ended

        both = Interruptible(leaving(left))
        async with both:
            await asyncio.Event().wait()
        assert (both.cause, both.has_left) == (None, True)

    asyncio.run(main())


def test_who_leaves_while_a_block_is_being_ended_is_noticed() -> None:
    async def main() -> None:
        left = asyncio.Event()
        block = Interruptible(leaving(left))
        async with block:
            block.interrupt(CAUSE)
            try:
                await asyncio.Event().wait()
            finally:
                left.set()
                await asyncio.sleep(0)
                await asyncio.sleep(0)
        assert (block.cause, block.has_left) == (CAUSE, True)

    asyncio.run(main())


def test_a_client_that_leaves_when_all_is_done_changes_nothing() -> None:
    async def main() -> None:
        left = asyncio.Event()
        block = Interruptible(leaving(left))
        async with block:
            left.set()
            await asyncio.sleep(0)  # the watcher wakes up when the block has been left
        await asyncio.sleep(0)
        assert asyncio.current_task().cancelling() == 0

    asyncio.run(main())


def test_who_else_cancels_the_task_is_obeyed() -> None:
    async def main() -> None:
        async def work() -> None:
            async with Interruptible(leaving(asyncio.Event())):
                await asyncio.Event().wait()

        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


# ------------------------------------------------------------------------------------ the log of exchanges


def test_a_log_that_cannot_be_opened_is_said_before_anything_listens(
    upstream: ReplayServer, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match="log.exchanges: .*: Is a directory"):
        Gateway(config_of(upstream, f"log: {{exchanges: {tmp_path}}}"))


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full")
def test_another_server_in_front_may_let_two_lengths_pass(upstream: ReplayServer) -> None:
    """Its own server refuses such a request. The application may be behind one that does not."""

    async def main() -> None:
        async with asking(create_app(config_of(upstream))) as client:
            framed = {
                "transfer-encoding": "chunked",
                "content-length": "2",
                "content-type": "application/json",
            }
            answer = await client.post(CHAT, content=b"{}", headers=framed)
            assert answer.status_code == 400
            assert "conflicting Content-Length" in answer.json()["error"]["message"]

    asyncio.run(main())
    assert upstream.requests == ()


def test_a_full_disk_is_said_once_and_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    log = ExchangeLog(Path("/dev/full"))
    response = normalize(b'{"done": true, "message": {"content": "Hi"}, "done_reason": "stop"}', "ollama")
    for _ in range(2):
        log.add(response, {}, str)
    assert len(caplog.records) == 1


def test_bytes_that_are_no_text_are_kept_as_they_are() -> None:
    body = b'{"error": "\xff"}'
    response = normalize(body, "vllm", status=500)
    record = read_record(exchange_line(response, {}))
    assert (record.body, record.status) == (body, 500)


@pytest.mark.parametrize("ends", [b"data: [DONE]\n\n", b""])
def test_a_stream_that_was_cut_is_cut_in_the_log_too(ends: bytes) -> None:
    """After the finish word and before the counts: what the server did not send is not made up."""
    chunk = {**ABOUT, "object": "chat.completion.chunk"}
    choices = [
        {"index": 0, "delta": {"content": "Hi"}, "finish_reason": None},
        {"index": 0, "delta": {}, "finish_reason": "stop"},
    ]
    sent = b"".join(b"data: %b\n\n" % orjson.dumps({**chunk, "choices": [choice]}) for choice in choices)
    response = normalize(sent + ends, "vllm")
    again = normalize(read_record(exchange_line(response, {})).body, "vllm")
    assert again.same_content(response)
    expected = Provenance.ABSENT if ends else Provenance.CUT
    assert again.metadata.provenance["usage"] is response.metadata.provenance["usage"] is expected


def test_a_line_after_half_a_line_is_not_lost(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b'{"half')
    response = normalize(b'{"done": true, "message": {"content": "Hi"}, "done_reason": "stop"}', "ollama")
    ExchangeLog(tmp_path / "log").add(response, {}, str)
    half, whole = (tmp_path / "log").read_bytes().splitlines()
    assert half == b'{"half'
    assert normalize(read_record(whole).body, "ollama").text == "Hi"


def test_lines_of_several_processes_do_not_mix(tmp_path: Path) -> None:
    one, other = ExchangeLog(tmp_path / "log"), ExchangeLog(tmp_path / "log")
    response = normalize(b'{"done": true, "message": {"content": "Hi"}, "done_reason": "stop"}', "ollama")
    for log in (one, other, one):
        log.add(response, {"x": os.getpid()}, str)
    assert len([read_record(line) for line in (tmp_path / "log").read_bytes().splitlines()]) == 3


# ------------------------------------------------------------------------------------ losses


def test_a_header_is_short_and_plain() -> None:
    assert header_of(["a", "b", "a"]) == "a, b"
    assert header_of(['x["é,\r\n"]']) == 'x["?;??"]'
    many = header_of([f"path.{number}" for number in range(100)])
    assert many.endswith("path.19, and 80 more")
    assert header_of(["x" * 600, "y" * 600]) == "x" * 600 + ", and 1 more"
    assert header_of([]) == ""


def test_what_no_server_has_said_is_no_loss() -> None:
    response = normalize(b'{"done": true, "message": {"content": "Hi"}, "done_reason": "stop"}', "ollama")
    assert dropped_fields([Loss("segments[0]", LossReason.DROPPED)], response) == ["text"]
    assert dropped_fields(convert(response, WireForm.OPENAI_CHAT).report.losses, response) == []
    assert dropped(response) == []
