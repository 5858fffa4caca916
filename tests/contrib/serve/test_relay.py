"""A stream in the client's own format goes out as it came, but for the model, unwanted counts and errors."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import attrs
import orjson
import pytest
from openai.types.responses import ResponseError, ResponseErrorEvent

from contrib_serve import ABOUT, USAGE, asking, config_of, says, streams
from crosswalk import normalize_stream
from crosswalk.convert import WireForm, convert_stream
from crosswalk.errors import ErrorInfo, ErrorKind
from crosswalk.service import Sent
from crosswalk.testing.exchange import Cut, Garbage
from crosswalk.testing.replay import Answer, ReplayServer
from crosswalk.types import dump_json
from crosswalk_serve import create_app
from crosswalk_serve.answers import Relay
from crosswalk_serve.config import Config
from crosswalk_serve.requests import read_request

ASKED: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "Hi"}]},
    "/v1/messages": {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9},
    "/v1/responses": {"input": "Hi"},
    "/api/chat": {"messages": [{"role": "user", "content": "Hi"}]},
}
PROVIDERS = {
    "/v1/chat/completions": "openai",
    "/v1/messages": "anthropic",
    "/v1/responses": "openai_responses",
    "/api/chat": "ollama",
}
COUNTED = {"stream_options": {"include_usage": True}}


def chunk(choices: list[Any], **more: Any) -> dict[str, Any]:
    return {**ABOUT, "object": "chat.completion.chunk", "choices": choices, **more}


CHAT = [
    chunk([{"index": 0, "delta": {"role": "assistant", "plan": "The "}}], progress={"at": 1}),
    chunk([{"index": 0, "delta": {"content": "Hi", "plan": "plan"}}], progress={"at": 2}),
    chunk([{"index": 0, "delta": {}, "finish_reason": "stop"}]),
    chunk([], usage=USAGE),
]
TEXT_BLOCK = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
STARTED = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "tiny-1",
    "content": [],
    "stop_reason": None,
}
MESSAGES = [
    {"type": "message_start", "message": {**STARTED, "usage": {"input_tokens": 25, "output_tokens": 1}}},
    TEXT_BLOCK,
    {"type": "ping"},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}, "brand": [1.50]},
    {"type": "content_block_stop", "index": 0},
    {"type": "brand", "payload": 5},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
]  # fmt: skip
ITEM = {"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []}
TEXT = {"type": "output_text", "text": "Hi", "annotations": []}
DONE_ITEM = {**ITEM, "status": "completed", "content": [TEXT]}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "tiny-1",
    "status": "in_progress",
    "output": [],
}
RESPONSES = [
    {"type": "response.created", "sequence_number": 0, "response": RESPONSE},
    {"type": "response.new", "sequence_number": 1, "z": 4},
    {"type": "response.output_item.added", "sequence_number": 2, "output_index": 0, "item": ITEM},
    {"type": "response.output_text.delta", "sequence_number": 3, "output_index": 0, "content_index": 0, "item_id": "msg_1", "delta": "Hi"},
    {"type": "response.output_item.done", "sequence_number": 4, "output_index": 0, "item": DONE_ITEM},
    {"type": "response.completed", "sequence_number": 5, "response": {**RESPONSE, "status": "completed", "output": [DONE_ITEM]}},
]  # fmt: skip
LINES = [
    {"model": "tiny-1", "created_at": "2026-01-01T00:00:00Z", "message": {"role": "assistant", "content": "Hi"}, "done": False, "new": 1},
    {"model": "tiny-1", "created_at": "2026-01-01T00:00:01Z", "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop", "new": 2},
]  # fmt: skip


def frame(event: dict[str, Any], *, named: bool) -> bytes:
    name = b"event: %b\n" % event["type"].encode() if named else b""
    return b"%bdata: %b\n\n" % (name, orjson.dumps(event))


def sends(path: str, events: list[dict[str, Any]]) -> Answer:
    """A stream of *events* as the server at *path* frames them."""
    if path.startswith("/api/"):
        lines = tuple(orjson.dumps(event) + b"\n" for event in events)
        return Answer(lines, headers={"Content-Type": "application/x-ndjson"}, stream=True)
    frames = [frame(event, named="type" in event) for event in events]
    if "completions" in path:
        frames.append(b"data: [DONE]\n\n")
    return Answer(tuple(frames), headers={"Content-Type": "text/event-stream"}, stream=True)


def at(upstream: ReplayServer, path: str, model: str = "tiny", more: str = "") -> Config:
    """A gateway with the model ``tiny``, which is *model* at a server that speaks the format of *path*."""
    target = f"provider: {PROVIDERS[path]}, model: {model}, base_url: '{upstream.url}', api_key: k"
    return config_of(upstream, f"on_unsupported: drop\n{more}", f"tiny: {{{target}}}")


def posted(config: Config, path: str, **more: Any) -> bytes:
    """The body of the streamed answer."""

    async def post() -> bytes:
        app = create_app(config)
        async with app.router.lifespan_context(app), asking(app) as client:
            body = {"model": "tiny", "stream": True, **ASKED[path], **more}
            answer = await client.post(path, json=body)
            assert answer.status_code == 200, answer.text
            return answer.content

    return asyncio.run(post())


@pytest.mark.parametrize(
    ("path", "events", "more"),
    [
        ("/v1/chat/completions", CHAT, COUNTED),
        ("/v1/messages", MESSAGES, {}),
        ("/v1/responses", RESPONSES, {}),
        ("/api/chat", LINES, {}),
    ],
)
def test_a_stream_in_the_clients_format_goes_out_to_the_byte(
    upstream: ReplayServer, path: str, events: list[dict[str, Any]], more: dict[str, Any]
) -> None:
    """New fields, new events and numbers as they were written arrive, each in its own event."""
    given = sends(path, events)
    upstream.add(given)
    assert posted(at(upstream, path), path, **more) == b"".join(given.chunks)


@pytest.mark.parametrize(
    ("path", "events"),
    [("/v1/messages", MESSAGES), ("/v1/responses", RESPONSES), ("/v1/chat/completions", CHAT)],
)
@pytest.mark.parametrize("key", [", api_key: sk-own", ""])
def test_a_server_is_asked_in_its_further_formats(
    upstream: ReplayServer, monkeypatch: pytest.MonkeyPatch, path: str, events: Any, key: str
) -> None:
    """Its key is sent in both ways, and never one of the environment."""
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_RESPONSES_API_KEY"):
        monkeypatch.setenv(name, "sk-of-another")
    upstream.add(given := sends(path, events))
    target = f"provider: llamacpp, base_url: '{upstream.url}', formats: [messages, responses]{key}"
    models = f"tiny: {{{target}}}"
    more = COUNTED if "chat" in path else {}
    assert posted(config_of(upstream, models=models), path, **more) == b"".join(given.chunks)
    (asked,) = upstream.requests
    assert asked.path == path
    own = "sk-own" if key else None if "chat" in path else "none"
    assert asked.headers.get("authorization") == (own and f"Bearer {own}")
    assert asked.headers.get("x-api-key", own) == own


def test_a_count_event_that_was_not_asked_for_stays_out(upstream: ReplayServer) -> None:
    path = "/v1/chat/completions"
    upstream.add(given := sends(path, CHAT))
    assert posted(at(upstream, path), path) == b"".join([*given.chunks[:3], given.chunks[-1]])


def test_other_fields_of_a_count_event_go_out(upstream: ReplayServer) -> None:
    path = "/v1/chat/completions"
    upstream.add(sends(path, [*CHAT[:3], chunk([], usage=USAGE, timings={"ms": 7})]))
    *_, last, done, _ = posted(at(upstream, path), path).split(b"\n\n")
    assert orjson.loads(last.removeprefix(b"data: ")) == chunk([], timings={"ms": 7})
    assert done == b"data: [DONE]"


@pytest.mark.parametrize(
    ("path", "events"),
    [
        ("/v1/chat/completions", CHAT[:3]),
        ("/v1/messages", MESSAGES),
        ("/v1/responses", RESPONSES),
        ("/api/chat", LINES),
    ],
)
def test_a_model_with_another_name_here_carries_that(
    upstream: ReplayServer, path: str, events: list[dict[str, Any]]
) -> None:
    upstream.add(given := sends(path, events))
    expected = b"".join(given.chunks).replace(b'"model":"tiny-1"', b'"model":"tiny"').replace(b"1.50", b"1.5")
    assert posted(at(upstream, path, "tiny-1"), path) == expected


WHOLE: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": chunk([{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}], object="chat.completion"),
    "/v1/messages": {**STARTED, "content": [{"type": "text", "text": "Hi"}], "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1}},
    "/v1/responses": {
        "id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "tiny-1",
        "output": [{"id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
                    "content": [{"type": "output_text", "text": "Hi", "annotations": []}]}],
    },
    "/api/chat": {"model": "tiny-1", "message": {"role": "assistant", "content": "Hi"}, "done": True, "done_reason": "stop"},
}  # fmt: skip


@pytest.mark.parametrize("path", WHOLE)
@pytest.mark.parametrize("model", ["tiny", "gemma-9"])
def test_a_whole_answer_carries_the_clients_name_too(upstream: ReplayServer, path: str, model: str) -> None:
    body = {**WHOLE[path], "timings": {"ms": 1.50}}
    upstream.add(Answer.of_json(body))
    sent = posted(at(upstream, path, model), path, stream=False)
    assert orjson.loads(sent) == {**body, "model": "tiny" if model == "gemma-9" else "tiny-1"}


@pytest.mark.parametrize("path", [path for path in WHOLE if path != "/v1/chat/completions"])
@pytest.mark.parametrize("is_stream", [False, True])
def test_so_does_a_converted_one(upstream: ReplayServer, path: str, is_stream: bool) -> None:
    upstream.add(streams("Hi") if is_stream else says("Hi"))
    config = config_of(
        upstream, models=f"tiny: {{provider: vllm, model: gemma-9, base_url: '{upstream.url}'}}"
    )
    sent = posted(config, path, stream=is_stream)
    assert set(re.findall(rb'"model":"([^"]*)"', sent)) == {b"tiny"}


@pytest.mark.parametrize(
    ("path", "events", "error"),
    [
        ("/v1/chat/completions", CHAT[:2], {"error": {"message": "it broke at 10.0.0.7", "type": "server_error"}}),
        ("/v1/messages", MESSAGES[:4], {"type": "error", "error": {"type": "api_error", "message": "it broke"}}),
        ("/v1/responses", RESPONSES[:4], {"type": "error", "code": "server_error", "message": "it broke", "param": None, "sequence_number": 4}),
        ("/api/chat", LINES[:1], {"error": "it broke"}),
    ],
)  # fmt: skip
def test_an_error_in_the_stream_is_written_by_the_gateway(
    upstream: ReplayServer, path: str, events: list[dict[str, Any]], error: dict[str, Any]
) -> None:
    given = sends(path, [*events, {**error, "internal": "rack 7"}])
    upstream.add(given)
    got = posted(at(upstream, path), path)
    before = b"".join(given.chunks[: len(events)])
    assert got.startswith(before)
    last = got.removeprefix(before)
    assert b"it broke" in last
    assert b"rack 7" not in last
    assert b"[DONE]" not in last
    assert last.startswith(b"event: error\n") is path.startswith(("/v1/messages", "/v1/responses"))


BROKEN_STREAMS: list[tuple[list[dict[str, Any]], list[Garbage | Cut], str]] = [
    (RESPONSES[:4], [], "server_error"),
    (RESPONSES, [Cut(after_events=3)], "server_error"),
    (RESPONSES, [Garbage(after_events=4, data=b"data: [7]\n\n")], "server_error"),
]


@pytest.mark.parametrize(("events", "faults", "code"), BROKEN_STREAMS, ids=["no end", "cut", "garbage"])
def test_a_broken_stream_of_responses_ends_with_a_code_of_the_api(
    upstream: ReplayServer, events: list[dict[str, Any]], faults: list[Garbage | Cut], code: str
) -> None:
    path = "/v1/responses"
    upstream.add(sends(path, events), *faults)
    last = posted(at(upstream, path), path).strip().split(b"\n\n")[-1]
    event = ResponseErrorEvent.model_validate(orjson.loads(last.partition(b"data: ")[2]), strict=True)
    assert event.code == code
    ResponseError.model_validate({"code": event.code, "message": event.message}, strict=True)


def test_an_event_that_cannot_be_read_does_not_go_out(upstream: ReplayServer) -> None:
    path = "/v1/chat/completions"
    upstream.add(sends(path, CHAT), Garbage(after_events=2, data=b'data: {"choices": 7}\n\n'))
    got = posted(at(upstream, path), path)
    assert b'"choices": 7' not in got
    assert b'"error"' in got.split(b"\n\n")[-2]


def test_a_whole_answer_to_a_streaming_request_becomes_a_stream(upstream: ReplayServer) -> None:
    path = "/v1/chat/completions"
    message = {"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}
    upstream.add(Answer.of_json({**ABOUT, "object": "chat.completion", "choices": [message]}))
    got = posted(at(upstream, path), path)
    assert b"chat.completion.chunk" in got
    assert b"data: [DONE]\n\n" in got


def relay_of(path: str) -> Relay:
    body = orjson.dumps({"model": "m", **ASKED[path]})
    request = read_request(WireForm.OPENAI_CHAT, body)
    return Relay(request, Sent("openai", "other", path, "text/event-stream"))


@pytest.mark.parametrize(
    ("data", "framed"),
    [(b'{"error":\n1}', b'data: {"error":\ndata: 1}\n\n'), (b"[1]", b"data: [1]\n\n")],
)
def test_an_odd_frame_goes_out_as_it_came(data: bytes, framed: bytes) -> None:
    """One of several lines, and one that is not an object. A thing that looked like an error waits for the end."""
    relay = relay_of("/v1/chat/completions")
    assert relay.frames([data]) + relay.finish() == framed + b"data: [DONE]\n\n"
    assert relay.fail(ErrorInfo(ErrorKind.SERVER, "too late")) == b""


def test_what_comes_after_what_only_looked_like_an_error_goes_out_in_its_order() -> None:
    relay = relay_of("/v1/chat/completions")
    events = [b'{"error":1}', b'{"choices":[]}', b'{"error":2}', b"[1]"]
    assert relay.frames(events) == b""
    assert relay.finish() == b"".join(b"data: %b\n\n" % one for one in (*events, b"[DONE]"))


@pytest.mark.parametrize("include_usage", [True, False])
def test_an_error_ends_a_stream_and_takes_no_content_away(
    upstream: ReplayServer, include_usage: bool
) -> None:
    """What came in the same event is sent, and nothing that came after it, such as an end without an error."""
    path, message = "/v1/chat/completions", {"index": 0, "delta": {"content": "b"}, "finish_reason": "stop"}
    about = {**ABOUT, "object": "chat.completion.chunk"}
    failed = {**about, "usage": USAGE, "error": {"message": "boom", "code": "x"}}
    said = {**about, "choices": [{**message, "delta": {"content": "a"}, "finish_reason": None}]}
    upstream.add(
        Answer.of_events([said, {**failed, "choices": [message, 7]}, {**about, "choices": [message]}])
    )
    more = {"stream_options": {"include_usage": True}} if include_usage else {}
    got = posted(at(upstream, path), path, **more).strip().split(b"\n\n")
    first, second, last = (orjson.loads(one.partition(b"data: ")[2]) for one in got[:3])
    assert (first["choices"], second["choices"]) == (said["choices"], [{**message, "finish_reason": None}])
    assert ("usage" in second, "error" in second) == (include_usage, False)
    assert last["error"]["message"] == "boom"
    assert b'"stop"' not in b"".join(got)


def test_an_answer_that_failed_is_stored_as_failed_whatever_comes_after(upstream: ReplayServer) -> None:
    path = "/v1/responses"
    upstream.add(sends(path, [RESPONSES[0], {"type": "error", "code": "server_error", "message": "boom", "param": None, "sequence_number": 1}, RESPONSES[-1]]))  # fmt: skip

    async def ask() -> Any:
        app = create_app(at(upstream, path))
        async with app.router.lifespan_context(app), asking(app) as client:
            told = await client.post(path, json={"model": "tiny", "stream": True, **ASKED[path]})
            assert b"response.completed" not in told.content
            return (await client.get(f"{path}/resp_1")).json()

    assert asyncio.run(ask())["status"] == "failed"


def test_an_answer_with_an_event_that_nobody_knows_is_stored(upstream: ReplayServer) -> None:
    path = "/v1/responses"
    upstream.add(sends(path, RESPONSES))

    async def ask() -> Any:
        app = create_app(at(upstream, path))
        async with app.router.lifespan_context(app), asking(app) as client:
            await client.post(path, json={"model": "tiny", "stream": True, **ASKED[path]})
            return (await client.get(f"{path}/resp_1")).json()

    stored = asyncio.run(ask())
    assert (stored["status"], stored["output"]) == ("completed", [DONE_ITEM])


@pytest.mark.parametrize("word", ["completed", "incomplete"])
def test_a_stored_answer_is_what_its_stream_has_told(upstream: ReplayServer, word: str) -> None:
    """Every field and its order, also those that say nothing, such as an empty list of log probabilities."""
    part = {"type": "output_text", "text": "Hi", "annotations": [], "logprobs": []}
    details = {"reason": "max_output_tokens"} if word == "incomplete" else None
    told = {
        **RESPONSE,
        "output": [{**DONE_ITEM, "content": [part]}],
        "status": word,
        "incomplete_details": details,
    }
    *events, _ = RESPONSES
    upstream.add(
        sends(
            "/v1/responses", [*events, {"type": f"response.{word}", "sequence_number": 9, "response": told}]
        )
    )

    async def ask() -> Any:
        app = create_app(at(upstream, "/v1/responses"))
        async with app.router.lifespan_context(app), asking(app) as client:
            await client.post(
                "/v1/responses", json={"model": "tiny", "stream": True, **ASKED["/v1/responses"]}
            )
            return (await client.get("/v1/responses/resp_1")).text

    assert asyncio.run(ask()) == orjson.dumps(told).decode()


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/responses", "/api/chat"])
def test_a_stream_that_carries_an_answer_is_told_without_its_mark(path: str, upstream: ReplayServer) -> None:
    """The text comes in the client's own format, as any other. The mark of the carried answer is for readers of ours."""
    content = [
        {"type": "thinking", "thinking": "Hm.", "signature": "EqQB"},
        {"type": "text", "text": "Hello"},
    ]
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content}
    answer = orjson.dumps(
        {**message, "stop_reason": "end_turn", "usage": {"input_tokens": 9, "output_tokens": 4}}
    )
    carried = convert_stream(normalize_stream([answer], "anthropic"), WireForm.OPENAI_CHAT, carry=True)
    upstream.add(Answer(tuple(carried), headers={"Content-Type": "text/event-stream"}, stream=True))

    async def ask() -> str:
        app = create_app(config_of(upstream))
        async with app.router.lifespan_context(app), asking(app) as client:
            asked = await client.post(path, json={"model": "tiny", "stream": True, **ASKED[path]})
            return asked.text

    sent = asyncio.run(ask())
    assert all(text in sent for text in ("Hel", "Hm."))
    assert '"crosswalk"' not in sent


def halved(path: str, model: str = "tiny-1") -> list[dict[str, Any]]:
    """A stream whose second text has the halves of an emoji in two events, as UTF-16 code units come."""
    text = {
        "/v1/chat/completions": [
            chunk([{"index": 0, "delta": {"content": one}}], model=model) for one in ("HIGH", "LOW bye")
        ],
        "/v1/messages": [
            {**MESSAGES[3], "delta": {"type": "text_delta", "text": one}} for one in ("HIGH", "LOW bye")
        ],
        "/v1/responses": [{**RESPONSES[3], "delta": one} for one in ("HIGH", "LOW bye")],
        "/api/chat": [
            {**LINES[0], "message": {"role": "assistant", "content": one}} for one in ("HIGH", "LOW bye")
        ],
    }[path]
    around: dict[str, tuple[list[Any], list[Any]]] = {
        "/v1/chat/completions": (CHAT[:1], CHAT[2:3]),
        "/v1/messages": (MESSAGES[:2], MESSAGES[4:]),
        "/v1/responses": (RESPONSES[:3], RESPONSES[4:]),
        "/api/chat": ([], LINES[1:]),
    }
    begin, end = around[path]
    return [*begin, *text, *end]


def escaped(data: bytes) -> bytes:
    return data.replace(b"HIGH", b"\\ud83d").replace(b"LOW", b"\\ude00")


def sends_halves(given: Answer) -> Answer:
    return attrs.evolve(given, chunks=tuple(map(escaped, given.chunks)))


@pytest.mark.parametrize("model", ["tiny", "tiny-1"])
@pytest.mark.parametrize("path", ASKED)
def test_halves_of_a_character_go_out_as_they_came(upstream: ReplayServer, path: str, model: str) -> None:
    given = sends_halves(sends(path, halved(path)))
    upstream.add(given)
    expected = b"".join(given.chunks)
    if model != "tiny":
        expected = expected.replace(b'"model":"tiny-1"', b'"model":"tiny"').replace(b"1.50", b"1.5")
    assert posted(at(upstream, path, model), path) == expected


HALF_TEXT = {"type": "output_text", "text": "HIGH", "annotations": []}
HALF_CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "HIGH",
    "name": "f",
    "arguments": '{"a":"HIGH"}',
}
HALF_OUTPUT = [{**DONE_ITEM, "content": [HALF_TEXT]}, HALF_CALL]


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_with_half_a_character_is_stored(upstream: ReplayServer, stream: bool) -> None:
    """A later request goes on from it. There the half is a replacement character, which any server takes."""
    answer = {**RESPONSE, "status": "completed", "output": HALF_OUTPUT}
    last = {"type": "response.completed", "sequence_number": 5, "response": answer}
    first = sends("/v1/responses", [*RESPONSES[:-1], last]) if stream else Answer.of_json(answer)
    upstream.add(sends_halves(first))
    upstream.add(Answer.of_json({**WHOLE["/v1/responses"], "id": "resp_2", "output": []}), times=2)

    async def ask() -> tuple[bytes, bytes, Any, Any]:
        app = create_app(at(upstream, "/v1/responses"))
        async with app.router.lifespan_context(app), asking(app) as client:
            asked = {"model": "tiny", "stream": stream, "input": "Hi"}
            told = await client.post("/v1/responses", json=asked)
            assert b"\\ud83d" in told.content
            stored = await client.get("/v1/responses/resp_1")
            anew = await client.get("/v1/responses/resp_1?stream=true")
            result = {"type": "function_call_output", "call_id": "\N{REPLACEMENT CHARACTER}", "output": "1"}
            next_turn = {"model": "tiny", "previous_response_id": "resp_1", "input": [result]}
            said = await client.post("/v1/responses", json=next_turn)
            assert said.status_code == 200, said.text
            items = await client.get("/v1/responses/resp_2/input_items?order=asc")
            names = [{"type": "item_reference", "id": "msg_1"}, {"role": "user", "content": "Hi"}]
            await client.post("/v1/responses", json={"model": "tiny", "input": names})
            return stored.content, anew.content, items.json(), upstream.requests[1].json()

    stored, anew, items, sent = asyncio.run(ask())
    assert stored == escaped(orjson.dumps(answer))
    assert b"\\ud83d" in anew
    assert (
        items["data"][1]["content"][0]["text"]
        == sent["input"][1]["content"][0]["text"]
        == "\N{REPLACEMENT CHARACTER}"
    )
    assert upstream.requests[2].json()["input"][0]["content"][0]["text"] == "\N{REPLACEMENT CHARACTER}"


def test_half_a_character_stays_where_the_name_of_the_model_is_exchanged(upstream: ReplayServer) -> None:
    """Also where the body is written anew, because it has a second field of this name."""
    choice = {"index": 0, "message": {"role": "assistant", "content": "HIGH"}, "finish_reason": "stop"}
    body = {**chunk([choice], object="chat.completion"), "by": {"model": "x"}, "big": 12345678901234567890123}
    text = escaped(dump_json(body))
    upstream.add(Answer((text,), headers={"Content-Type": "application/json"}))
    path = "/v1/chat/completions"
    sent = posted(at(upstream, path, "tiny-1"), path, stream=False)
    assert sent == text.replace(b'"model":"tiny-1"', b'"model":"tiny"')


def test_so_does_one_in_an_answer_without_a_conversation(upstream: ReplayServer) -> None:
    text = escaped(dump_json({"model": "tiny-1", "data": [], "said": "HIGH", "big": 12345678901234567890123}))
    upstream.add(Answer((text,), headers={"Content-Type": "application/json"}))

    async def ask() -> bytes:
        app = create_app(at(upstream, "/v1/chat/completions", "tiny-1"))
        async with app.router.lifespan_context(app), asking(app) as client:
            return (await client.post("/v1/embeddings", json={"model": "tiny", "input": "Hi"})).content

    assert asyncio.run(ask()) == text.replace(b'"model":"tiny-1"', b'"model":"tiny"')
