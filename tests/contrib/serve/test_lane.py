"""The native lane: what its requests tell is what the whole way tells, and the server gets the client's own bytes."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from contrib_serve import ABOUT, HI, USAGE, asking, config_of, says, streams
from crosswalk.service import ChatRequest, message_of
from crosswalk.testing.exchange import Cut, Fault, Garbage, Reset
from crosswalk.testing.replay import Answer, ReceivedRequest, ReplayServer
from crosswalk.types import ChatResponse
from crosswalk_serve import create_app
from crosswalk_serve.config import KeyHash, read_config

KEY = "cw-alice-0123456789abcdefghij"
HASHED = str(KeyHash.of(KEY, b"salt" * 4))
ALICE = f"keys: {{alice: {{hash: '{HASHED}', metrics: true, tokens_per_minute: 1000}}}}"
TALK = [
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello"},
    {"role": "user", "content": "Why?"},
]
ASKED: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {**HI, "max_tokens": 9},
    "/v1/messages": {**HI, "max_tokens": 9},
    "/v1/responses": {"model": "tiny", "input": "Hi", "store": False},
    "/api/chat": {**HI, "stream": False},
}
PROVIDERS = {
    "/v1/chat/completions": "vllm",
    "/v1/messages": "anthropic",
    "/v1/responses": "openai_responses",
    "/api/chat": "ollama",
}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "tiny-1",
    "content": [{"type": "text", "text": "Hello"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 9, "output_tokens": 4},
}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "tiny-1",
    "status": "completed",
    "output": [
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Hello", "annotations": []}],
        }
    ],
    "usage": {"input_tokens": 9, "output_tokens": 4, "total_tokens": 13},
}
LINE = {
    "model": "tiny-1",
    "created_at": "2026-01-01T00:00:00Z",
    "message": {"role": "assistant", "content": "Hello"},
    "done": True,
    "done_reason": "stop",
    "prompt_eval_count": 9,
    "eval_count": 4,
}
ANSWERS = {
    "/v1/chat/completions": says("Hello", brand={"x": [1.50]}),
    "/v1/messages": Answer.of_json(MESSAGE),
    "/v1/responses": Answer.of_json(RESPONSE),
    "/api/chat": Answer.of_json(LINE),
}
CHAT = "/v1/chat/completions"
BEGUN = {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None}}
EVENTS = [
    BEGUN,
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
]


def bare(text: str) -> str:
    """*text* without ids of requests and times."""
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID", text)
    text = re.sub(rf'"created":(?!{ABOUT["created"]})\d+', '"created":0', text)  # made up by the gateway
    return re.sub(r"\b\d+\.\d+s", "TIME", text)


@attrs.frozen
class Told:
    """What a request has told, whoever listens.

    Attributes:
        status: of the answer.
        headers: of the answer.
        body: of the answer.
        log: the lines of the log.
        exchange: the line of the log of exchanges, or nothing.
        metrics: the counts.
        sent: the path, headers and JSON of each request of the server.
    """

    status: int
    headers: Mapping[str, str]
    body: str
    log: list[str]
    exchange: dict[str, Any]
    metrics: list[str]
    sent: list[tuple[str, Mapping[str, str], Any]]


def exchange_in(log: Path) -> dict[str, Any]:
    lines = log.read_bytes().splitlines() if log.exists() else []
    fields: dict[str, Any] = json.loads(bare(lines[-1].decode())) if lines else {}
    return {name: value for name, value in fields.items() if name not in ("time", "seconds")}


def told_by(
    path: str,
    asked: Mapping[str, Any],
    answer: Answer,
    *faults: Fault,
    folder: Path,
    caplog: pytest.LogCaptureFixture,
    on_lane: bool,
    more: str = "",
) -> tuple[Told, list[ReceivedRequest]]:
    """What the second of two requests tells. On its lane, the first one differs from it by its text alone."""
    log = folder / f"{on_lane}.jsonl"
    first = {**asked, **({} if on_lane else {"temperature": 0.5})}
    with ReplayServer() as upstream:
        upstream.add(answer if asked.get("stream") else ANSWERS[path])
        upstream.add(answer, *faults, times=None)
        target = f"provider: {PROVIDERS[path]}, model: real, base_url: '{upstream.url}', api_key: sk-secret-1"
        config = config_of(
            upstream,
            f"metrics: true\nlog: {{exchanges: {log}}}\nlimits: {{answer_bytes: 5000}}\n{ALICE}\n{more}",
            f"tiny: {{{target}}}",
        )
        app = create_app(config)

        async def ask() -> Told:
            headers = {"x-api-key": KEY, "content-type": "application/json"}
            async with app.router.lifespan_context(app), asking(app, headers=headers) as client:
                await client.post(path, content=json.dumps(first))
                log.unlink(missing_ok=True)
                caplog.clear()
                with caplog.at_level("INFO", "crosswalk.serve"):
                    got = await client.post(path, content=json.dumps(asked))
                lines = (await client.get("/metrics")).text.splitlines()
            counts = [line for line in lines if not re.search(r"^#|_(created|sum|bucket)\b", line)]
            sent = [(one.path, dict(one.headers), one.json()) for one in upstream.requests[1:]]
            for _, sent_headers, _ in sent:
                sent_headers |= {"host": "", "content-length": ""}
            return Told(
                got.status_code,
                {name: bare(value) for name, value in got.headers.items()},
                bare(got.text),
                [
                    bare(record.getMessage()).replace(upstream.url[7:], "SERVER")
                    for record in caplog.records
                    if record.name == "crosswalk.serve"
                ],
                exchange_in(log),
                [line.replace(upstream.url[7:], "SERVER") for line in counts],
                sent,
            )

        return asyncio.run(ask()), [*upstream.requests]


TOOL_CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
UNCOUNTED = {name: value for name, value in json.loads(says().chunks[0]).items() if name != "usage"}
UNKNOWN_FINISH = {
    **ABOUT,
    "object": "chat.completion",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "bored"}],
    "usage": USAGE,
}
STREAMED = {**HI, "stream": True}
CASES: dict[str, tuple[str, dict[str, Any], Answer, list[Fault]]] = {
    **{f"an answer at {path}": (path, asked, ANSWERS[path], []) for path, asked in ASKED.items()},
    **{f"HTTP {status}": (CHAT, HI, Answer.failure(status), []) for status in (400, 401, 404, 429, 500, 503)},
    "a wait that the server asks for": (
        CHAT,
        HI,
        Answer((b'{"error": {"message": "slow"}}',), 429, {"retry-after": "7"}),
        [],
    ),
    "credentials in an error": (CHAT, HI, Answer.of_json({"error": {"message": "sk-secret-1"}}, status=400), []),
    "a redirect": (CHAT, HI, Answer((b"",), 302, {"location": "http://elsewhere"}), []),
    "a page": (CHAT, HI, Answer((b"<html>",), headers={"content-type": "text/html"}), []),
    "another object": (CHAT, HI, Answer.of_json({"a": 1}), []),
    "an answer in another format": (CHAT, HI, Answer.of_json(MESSAGE), []),
    "an error in place of an answer": (CHAT, HI, Answer.of_json({"error": {"message": "no"}}), []),
    "garbage": (CHAT, HI, says(), [Garbage(after_bytes=9)]),
    "a cut answer": (CHAT, HI, says(), [Cut(after_bytes=9)]),
    "a reset connection": (CHAT, HI, says(), [Reset()]),
    "an answer that is too large": (CHAT, HI, says("long" * 2000), []),
    "a call": (CHAT, HI, says("", tool_calls=[TOOL_CALL]), []),
    "an answer without counts": (CHAT, HI, Answer.of_json(UNCOUNTED), []),
    "an unknown finish word": (CHAT, HI, Answer.of_json(UNKNOWN_FINISH), []),
    "a conversation": (CHAT, {**HI, "messages": [{"role": "system", "content": "Be."}, *TALK]}, says(), []),
    "a message of Responses": (
        "/v1/responses",
        {**ASKED["/v1/responses"], "input": TALK},
        ANSWERS["/v1/responses"],
        [],
    ),
    "a stream": (CHAT, STREAMED, streams("Hel", "lo"), []),
    "a stream with its counts": (
        CHAT,
        {**STREAMED, "stream_options": {"include_usage": True}},
        streams("Hel", "lo"),
        [],
    ),
    "a stream that breaks off": (CHAT, STREAMED, streams("Hel", "lo"), [Cut(after_events=1)]),
    "a stream that begins with an error": (CHAT, STREAMED, Answer.of_events([{"error": {"message": "no"}}]), []),
    "a stream of Messages": ("/v1/messages", {**ASKED["/v1/messages"], "stream": True}, Answer.of_events(EVENTS), []),
}  # fmt: skip


@pytest.mark.untraced
@pytest.mark.parametrize("case", CASES)
def test_the_lane_tells_what_the_whole_way_tells(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, case: str
) -> None:
    """Answer, headers, status, log, log of exchanges and metrics are the same, and so is what the server is asked."""
    path, asked, answer, faults = CASES[case]
    on_lane, its_requests = told_by(
        path, asked, answer, *faults, folder=tmp_path, caplog=caplog, on_lane=True
    )
    whole, _ = told_by(path, asked, answer, *faults, folder=tmp_path, caplog=caplog, on_lane=False)
    for told in (on_lane, whole):  # neither way says that a whole answer is wanted, which is no wish
        told.sent[:] = [
            (to, headers, {k: v for k, v in body.items() if (k, v) != ("stream", False)})
            for to, headers, body in told.sent
        ]
    assert on_lane == whole
    assert len(its_requests) > 1


@pytest.mark.parametrize("path", ASKED)
def test_the_server_gets_the_clients_bytes_with_its_own_name_of_the_model(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    asked = ASKED[path]
    told, requests = told_by(path, asked, ANSWERS[path], folder=tmp_path, caplog=caplog, on_lane=True)
    assert requests[1].body == json.dumps(asked).replace('"tiny"', '"real"').encode()
    assert told.body == ANSWERS[path].chunks[0].decode().replace('"tiny-1"', '"tiny"')


def test_a_stream_asks_for_counts_that_its_client_does_not_get(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told, requests = told_by(CHAT, STREAMED, streams("Hi"), folder=tmp_path, caplog=caplog, on_lane=True)
    assert requests[1].json() == {**STREAMED, "model": "real", "stream_options": {"include_usage": True}}
    assert "usage" not in told.body


def answered(on_lane: bool, answers: list[Answer], more: str, count: int) -> list[tuple[int, str]]:
    """The status and the body of *count* answers after a first one, of a model with two endpoints of one provider."""
    with ReplayServer() as upstream, ReplayServer() as other:
        upstream.add(says("warm"))
        for answer in answers:
            upstream.add(answer)
        other.add(says("other"), times=None)
        endpoints = ", ".join(
            f"{{provider: vllm, model: {name}, base_url: '{server.url}'}}"
            for name, server in (("real", upstream), ("second", other))
        )
        app = create_app(config_of(upstream, more, f"tiny: [{endpoints}]"))

        async def ask() -> list[tuple[int, str]]:
            found = []
            async with app.router.lifespan_context(app), asking(app, headers={"x-api-key": KEY}) as client:
                await client.post(CHAT, json={**HI, **({} if on_lane else {"temperature": 0.5})})
                for number in range(count):
                    asked = {**HI, **({} if on_lane else {"temperature": 0.6 + number / 100})}
                    got = await client.post(CHAT, json=asked)
                    found.append((got.status_code, bare(got.text)))
            return [*found, *((one.json()["model"] == "second", "") for one in other.requests)]

        return asyncio.run(ask())


@pytest.mark.parametrize(
    ("answers", "more", "count"),
    [
        ([Answer.failure(500), says("again")], "", 2),  # the first server cools down
        ([says("one"), says("two")], ALICE.replace("1000", "20"), 3),
        ([Answer.of_json(UNCOUNTED)], ALICE.replace("1000", "15"), 2),
        ([says("one"), says("two")], ALICE.replace("tokens_per_minute: 1000", "requests_per_minute: 2"), 3),
    ],
    ids=["failover", "tokens", "estimated tokens", "requests"],
)
def test_limits_and_other_servers_are_the_same(answers: list[Answer], more: str, count: int) -> None:
    on_lane = answered(on_lane=True, answers=answers, more=more, count=count)
    assert on_lane == answered(on_lane=False, answers=answers, more=more, count=count)
    assert len({status for status, _ in on_lane}) > 1


CHAT_BODY = json.loads(says().chunks[0])


@pytest.mark.parametrize(
    ("sent", "received"),
    [
        (b'{"model" :\n"a\\"b", "x": [1.50], %s', b'{"model" :\n"tiny", "x": [1.50], %s'),
        (b'{"\\u006dodel": "a", %s', None),
        (b'{"model": "a", "more": {"model": "a"}, "x": [1.50], %s', b'{"model": "tiny", "more": {"model": "a"}, "x": [1.50], %s'),
        (b'{"more": {"model": "a"}, "model": "a", "x": [1.50], %s', b'{"more": {"model": "a"}, "model": "tiny", "x": [1.50], %s'),
        (b'{"more": [' + b'{"model": "a"}, ' * 4 + b'1], "model": "a", %s', None),
        (b'{"model": "a", "more": "model", "x": [1.50], %s', b'{"model": "tiny", "more": "model", "x": [1.50], %s'),
        (b'{%s', b'{%s'),
    ],
    ids=["one name", "a name by numbers", "two names", "its own last", "many names", "a text like it", "no name"],
)  # fmt: skip
def test_a_name_is_exchanged_where_it_can_be_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, sent: bytes, received: bytes | None
) -> None:
    """Else the answer is written anew, with the same values."""
    rest = json.dumps({name: value for name, value in CHAT_BODY.items() if name != "model"}).encode()[1:]
    answer = Answer((sent.replace(b"%s", rest),), headers={"content-type": "application/json"})
    told, _ = told_by(CHAT, HI, answer, folder=tmp_path, caplog=caplog, on_lane=True)
    if received is not None:
        assert told.body.encode() == received.replace(b"%s", rest)
    assert json.loads(told.body) == {
        **json.loads(answer.chunks[0]),
        **({"model": "tiny"} if b'"a' in sent else {}),
    }


def test_few_lanes_are_known_at_once(upstream: ReplayServer) -> None:
    """The oldest ones are forgotten: each costs memory, and a client may say another option with every request."""
    upstream.add(says(), times=None)
    app = create_app(config_of(upstream))

    async def ask() -> int:
        async with app.router.lifespan_context(app), asking(app) as client:
            for number in range(70):
                await client.post(CHAT, json={**HI, "seed": number})
        route = app.state.gateway.router.find("tiny")
        return len(route.lanes)

    assert asyncio.run(ask()) == 64


def test_no_lane_is_looked_for_where_the_server_speaks_another_format(upstream: ReplayServer) -> None:
    upstream.add(says("Hello"), times=None)

    async def ask() -> tuple[list[str], int]:
        app = create_app(config_of(upstream, "on_unsupported: drop"))
        async with app.router.lifespan_context(app), asking(app) as client:
            for number in range(3):
                asked = {**HI, "max_tokens": 9 + number}
                assert (await client.post("/v1/messages", json=asked)).status_code == 200
        route = app.state.gateway.router.find("tiny")
        return [form.value for form in route.foreign_forms], len(route.lanes)

    assert asyncio.run(ask()) == (["anthropic"], 1)


def test_a_middleware_of_the_program_sees_every_request(upstream: ReplayServer) -> None:
    """It may change them, so none takes the lane."""
    upstream.add(says(), times=None)
    seen: list[str] = []

    def middleware(request: ChatRequest) -> Generator[ChatRequest | ChatResponse, ChatResponse, None]:
        seen.append(message_of(request.messages[-1]).text)
        yield request

    app = create_app(config_of(upstream), middleware=[middleware])

    async def ask() -> None:
        async with app.router.lifespan_context(app), asking(app) as client:
            for text in ("one", "two"):
                asked = {**HI, "messages": [{"role": "user", "content": text}]}
                assert (await client.post(CHAT, json=asked)).status_code == 200

    asyncio.run(ask())
    assert seen == ["one", "two"]


# ------------------------------------------------------------------------------ conditions


ENDPOINT = "provider: vllm, model: real, base_url: 'URL'"


def bodies_of(
    asked: Mapping[str, Any],
    *,
    path: str = CHAT,
    models: str = f"{{{ENDPOINT}}}",
    more: str = "",
    headers: Mapping[str, str] | None = None,
    times: int = 2,
) -> tuple[bytes, bytes, int]:
    """The bytes of the last request as the client sent it, and as a server got it, and the status of the answer."""
    content = json.dumps(asked).encode()
    with ReplayServer() as upstream:
        upstream.add(ANSWERS.get(path, says()), times=None)
        text = f"retry: {{attempts: 1}}\nmodels:\n  tiny: {models.replace('URL', upstream.url)}\n{more}"
        app = create_app(read_config(text, environ={}))

        async def ask() -> int:
            all_headers = {"content-type": "application/json", "x-api-key": KEY, **(headers or {})}
            async with app.router.lifespan_context(app), asking(app, headers=all_headers) as client:
                for _ in range(times):
                    answer = await client.post(path, content=content)
            return answer.status_code

        status = asyncio.run(ask())
        return content, upstream.requests[-1].body, status


def takes_lane(asked: Mapping[str, Any], **options: Any) -> bool:
    sent, received, status = bodies_of(asked, **options)
    assert status == 200
    return received == sent.replace(b'"tiny"', b'"real"')


def test_a_plain_request_takes_the_lane() -> None:
    assert takes_lane(HI)
    assert takes_lane({**HI, "messages": TALK, "temperature": 0.5, "stream": False})
    assert takes_lane({**HI, "metadata": {"model": "x"}})


ITEM = {"type": "text", "text": "Hi"}
USER, SYSTEM = {"role": "user", "content": "Hi"}, {"role": "system", "content": "Be."}
ASSISTANT = {"role": "assistant", "content": "Hello"}


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": [ITEM]}],
        [{**USER, "name": "ann"}],
        [{"role": "user", "content": " \n"}, ASSISTANT, USER],
        [SYSTEM, SYSTEM, USER],
        [USER, SYSTEM, USER],
        [USER, USER],
        [USER, ASSISTANT],
        [USER, {**ASSISTANT, "reasoning_content": "Hm."}, USER],
    ],
    ids=["parts", "a name", "no text", "two of the system", "one in between", "two of the user", "a prefill", "reasoning"],
)  # fmt: skip
def test_a_conversation_of_more_than_texts_in_turn_goes_the_whole_way(messages: list[Any]) -> None:
    assert not takes_lane({**HI, "messages": messages})


WRITTEN_APART = {**HI, "messages": [{"role": "user", "content": "\U0001f600"}]}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "d": "x" * 70_000}}}


@pytest.mark.parametrize(
    ("asked", "options"),
    [
        (HI, {"headers": {"x-stainless-retry-count": "1"}}),
        (HI, {"headers": {"idempotency-key": "abc"}}),
        (HI, {"more": f"keys: {{alice: {{hash: '{HASHED}', budget_per_day: 5}}}}"}),
        (HI, {"models": f"{{{ENDPOINT}, defaults: {{temperature: 0.2}}}}"}),
        (HI, {"models": f"{{{ENDPOINT}, options: {{min_p: 0.1}}}}"}),
        (HI, {"models": f"[{{{ENDPOINT}}}, {{provider: openai, model: real, api_key: k, base_url: 'URL'}}]"}),
        ({**HI, "temperature": None}, {}),
        (WRITTEN_APART, {}),
        ({**HI, "tools": [TOOL]}, {}),
        ({"model": "tiny", "prompt": "Hi"}, {"path": "/v1/completions"}),
        (ASKED["/v1/messages"], {"path": "/v1/messages"}),
    ],
    ids=[
        "repeated", "idempotent", "budget", "defaults", "options", "two providers", "null", "half pairs",
        "long options", "no conversation", "another format",
    ],
)  # fmt: skip
def test_what_is_read_added_or_left_out_needs_the_whole_way(
    asked: dict[str, Any], options: dict[str, Any]
) -> None:
    assert not takes_lane(asked, **options)
