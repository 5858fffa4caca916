"""The Responses API over a WebSocket, as OpenAI's SDK and coding agents speak it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import openai
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from contrib_serve import HI, Live, config_of, live, says, streams
from crosswalk.testing.exchange import Stall
from crosswalk.testing.replay import Answer, ReplayServer
from crosswalk_serve import create_app
from crosswalk_serve.config import KeyHash
from crosswalk_serve.server import GuardedSocket

CREATE = {"type": "response.create", "model": "tiny", "input": "Hi", "store": False}


def socket_to(gateway: Live, **headers: str) -> ClientConnection:
    """A connection to the page of *gateway*."""
    url = f"ws://127.0.0.1:{gateway.port}/v1/responses"
    seconds: Any = {"open_timeout": 60, "close_timeout": 60, "ping_interval": None}
    return connect(url, additional_headers=headers, proxy=None, max_size=None, **seconds)


def ask(socket: ClientConnection, **fields: Any) -> list[dict[str, Any]]:
    """The events of the answer to a request with *fields*."""
    socket.send(json.dumps({**CREATE, **fields}))
    return answer(socket)


def answer(socket: ClientConnection) -> list[dict[str, Any]]:
    """The events of the next answer."""
    events = []
    while not events or events[-1]["type"] not in ("response.completed", "response.failed", "error"):
        events.append(json.loads(socket.recv(60)))
    return events


def test_an_answer_goes_on_although_it_is_not_stored(upstream: ReplayServer, gateway: Live) -> None:
    upstream.add(streams("Hel", "lo")).add(streams("Fine"))
    with socket_to(gateway) as socket:
        first = ask(socket)
        assert first[0]["type"] == "response.created"
        assert [one["delta"] for one in first if one["type"] == "response.output_text.delta"] == ["Hel", "lo"]
        second = ask(socket, input="And you?", previous_response_id=first[-1]["response"]["id"])
        assert second[-1]["response"]["output"][0]["content"][0]["text"] == "Fine"
    assert [one["content"] for one in upstream.requests[1].json()["messages"]] == ["Hi", "Hello", "And you?"]


def test_no_other_connection_goes_on_with_it(upstream: ReplayServer, gateway: Live) -> None:
    upstream.add(streams("Hello"))
    with socket_to(gateway) as socket:
        id = ask(socket)[-1]["response"]["id"]
    with socket_to(gateway) as socket:
        (error,) = ask(socket, previous_response_id=id)
    assert (error["status"], error["error"]["code"]) == (400, "previous_response_not_found")


def test_a_stored_answer_is_there_for_all(upstream: ReplayServer, gateway: Live) -> None:
    upstream.add(streams("Hello")).add(streams("Fine"))
    with socket_to(gateway) as socket:
        id = ask(socket, store=True)[-1]["response"]["id"]
    with socket_to(gateway) as socket:
        assert ask(socket, previous_response_id=id)[-1]["type"] == "response.completed"


def test_a_request_may_be_prepared(upstream: ReplayServer, gateway: Live) -> None:
    upstream.add(streams("Four"))
    with socket_to(gateway) as socket:
        events = ask(socket, input="Be brief.", instructions="Only now.", generate=False)
        assert [one["type"] for one in events][:1] == ["response.created"]
        prepared = events[-1]["response"]
        assert (prepared["output"], prepared["status"], upstream.requests) == ([], "completed", ())
        ask(socket, input="2+2?", previous_response_id=prepared["id"], generate=True)
    assert [one["content"] for one in upstream.requests[0].json()["messages"]] == ["Be brief.", "2+2?"]


@pytest.mark.parametrize(
    ("message", "status", "param"),
    [
        ("{", 400, None),
        ('{"type": "response.steer"}', 400, "type"),
        (json.dumps({**CREATE, "model": "none"}), 404, None),
        (json.dumps({**CREATE, "model": "none", "generate": False}), 404, None),
        (json.dumps({**CREATE, "input": 5, "generate": False}), 400, "input"),
        (json.dumps({**CREATE, "input": 5}).encode(), 400, "input"),
    ],
)
def test_a_mistake_is_an_event(gateway: Live, message: str | bytes, status: int, param: str | None) -> None:
    with socket_to(gateway) as socket:
        socket.send(message)
        (error,) = answer(socket)
    assert (error["status"], error["error"]["param"]) == (status, param)


@pytest.mark.parametrize("generate", [True, False])
def test_a_request_names_items_that_the_gateway_keeps(
    upstream: ReplayServer, gateway: Live, generate: bool
) -> None:
    """So does one that is prepared: the request after it continues with the item."""
    upstream.add(streams("Hello")).add(streams("Fine")).add(streams("Well"))
    with socket_to(gateway) as socket:
        (item,) = ask(socket, store=True)[-1]["response"]["output"]
        reference = {"type": "item_reference", "id": item["id"]}
        named = ask(socket, input=[{"role": "user", "content": "Hi"}, reference], generate=generate)[-1]
        ask(socket, input="And?", previous_response_id=named["response"]["id"])
    told = [one["content"] for one in upstream.requests[-1].json()["messages"]]
    assert told == ["Hi", "Hello", *(["Fine"] if generate else []), "And?"]


@pytest.mark.parametrize("generate", [True, False])
@pytest.mark.parametrize(
    ("reference", "status", "param"),
    [({}, 400, "input[0].id"), ({"id": 5}, 400, "input[0].id"), ({"id": "msg_none"}, 404, "input[0]")],
)
def test_a_wrong_reference_is_refused_by_its_path(
    gateway: Live, reference: dict[str, Any], status: int, param: str, generate: bool
) -> None:
    with socket_to(gateway) as socket:
        (error,) = ask(socket, input=[{"type": "item_reference", **reference}], generate=generate)
    assert (error["status"], error["error"]["param"]) == (status, param)


IMAGE = {"role": "user", "content": [{"type": "input_image", "file_id": "file_1"}]}


@pytest.mark.parametrize("generate", [True, False])
@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"input": [IMAGE]}, "input[0].content[0]"),
        ({"prompt": {"id": "pmpt_1"}}, "prompt"),
        ({"conversation": "conv_1"}, "conversation"),
    ],
)
def test_what_no_gateway_keeps_is_not_prepared(
    gateway: Live, fields: dict[str, Any], place: str, *, generate: bool
) -> None:
    with socket_to(gateway) as socket:
        (error,) = ask(socket, **fields, generate=generate)
    assert error["status"] == 400
    assert place in error["error"]["message"]


@pytest.mark.parametrize("provider", ["openai_responses", "vllm"])
def test_a_conversation_on_a_server_is_not_prepared(upstream: ReplayServer, provider: str) -> None:
    """The request that continues it would go without it."""
    conversation = {"id": "conv_1"}
    events = [
        {"type": "response.created", "sequence_number": 0, "response": {**RESPONSE, "status": "in_progress"}},
        {
            "type": "response.completed",
            "sequence_number": 1,
            "response": {**RESPONSE, "conversation": conversation},
        },
    ]
    upstream.add(Answer.of_events(events) if provider == "openai_responses" else streams("Hello"))
    models = f"tiny: {{provider: {provider}, base_url: '{upstream.url}', api_key: k}}"
    with live(config_of(upstream, "on_unsupported: drop", models)) as gateway, socket_to(gateway) as socket:
        ask(socket, store=True)
        (error,) = ask(socket, conversation=conversation, generate=False)
    assert (error["status"], error["error"]["param"]) == (400, "conversation")
    assert len(upstream.requests) == 1


def test_a_request_that_is_prepared_counts_as_one(upstream: ReplayServer) -> None:
    key_hash = KeyHash.of("a", b"salt salt")
    keys = f"keys: {{a: {{hash: '{key_hash}', requests_per_minute: 2}}}}"
    with live(config_of(upstream, keys)) as gateway, socket_to(gateway, authorization="Bearer a") as socket:
        ends = [ask(socket, generate=False)[-1] for _ in range(3)]
    assert [one["type"] for one in ends] == ["response.completed", "response.completed", "error"]
    assert (ends[-1]["status"], upstream.requests) == (429, ())


def test_a_servers_error_is_an_event_and_the_connection_stays(upstream: ReplayServer, gateway: Live) -> None:
    upstream.add(Answer.failure(429, retry_after=7)).add(streams("Hello"))
    with socket_to(gateway) as socket:
        (error,) = ask(socket)
        assert (error["status"], error["headers"]["retry-after"]) == (429, "7")
        assert ask(socket)[-1]["type"] == "response.completed"


def test_requests_are_answered_one_after_the_other(upstream: ReplayServer, gateway: Live) -> None:
    upstream.add(streams("One")).add(streams("Two"))
    with socket_to(gateway) as socket:
        for _ in range(2):
            socket.send(json.dumps(CREATE))
        texts = [answer(socket)[-1]["response"]["output"][0]["content"][0]["text"] for _ in range(2)]
    assert texts == ["One", "Two"]


def test_a_client_that_leaves_ends_the_call_and_one_request_waits_for_it(
    upstream: ReplayServer, gateway: Live
) -> None:
    upstream.add(streams("Hello"), Stall())
    with socket_to(gateway) as socket:
        for _ in range(3):
            socket.send(json.dumps(CREATE))
        (error,) = answer(socket)
        assert (error["status"], error["error"]["code"]) == (429, "too_many_requests")
        upstream.wait_for(lambda server: server.requests)
    upstream.wait_for(lambda server: server.disconnects)


LONG = ["x" * 65536] * 400
"""It does not fit into the buffers between the gateway and a client that reads nothing."""


def test_a_slow_client_slows_its_source_and_gets_all_of_it(upstream: ReplayServer, gateway: Live) -> None:
    upstream.add(streams(*LONG))
    with socket_to(gateway) as socket:
        socket.send(json.dumps(CREATE))
        gateway.wait_for(holds_back)
        assert answer(socket)[-1]["response"]["output"][0]["content"][0]["text"] == "".join(LONG)


def test_a_client_that_takes_nothing_is_given_up(upstream: ReplayServer) -> None:
    upstream.add(streams(*LONG))
    with live(config_of(upstream, "limits: {send_seconds: 20}")) as gateway, socket_to(gateway) as socket:
        socket.send(json.dumps(CREATE))
        gateway.pass_time_while(holds_back, 20)
        upstream.wait_for(lambda server: server.disconnects)
        socket.close_timeout = 0  # nobody answers


def holds_back(gateway: Live) -> bool:
    """Whether it has more for a client than that takes."""
    return any(not one.writable.is_set() for one in sockets(gateway))


def sockets(gateway: Live) -> list[Any]:
    """The connections of *gateway* to clients that have a WebSocket."""
    return [one for one in gateway.server.server_state.connections if isinstance(one, GuardedSocket)]


OFFER = b"GET /v1/responses HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
OFFER += b"sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
BODY = json.dumps(HI).encode()
REQUEST = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
REQUEST += b"content-length: %d\r\n\r\n%s" % (len(BODY), BODY)


def sent(gateway: Live, data: bytes) -> bytes:
    """All that comes after *data*, until the gateway closes."""
    with gateway.connect() as connection:
        connection.sendall(data)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_a_websocket_behind_a_request_is_refused(upstream: ReplayServer, gateway: Live) -> None:
    upstream.add(says())
    got = sent(gateway, REQUEST + OFFER + b"\r\n")
    assert got.startswith(b"HTTP/1.1 200 ")
    assert got.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize(
    ("offer", "status"),
    [
        (OFFER + b"content-length: 2\r\n\r\n{}", 400),
        (OFFER + b"x: y\r\n" * 200 + b"\r\n", 431),
        (OFFER + b"x: " + b"y" * 20_000 + b"\r\n\r\n", 400),
        (OFFER.replace(b"sec-websocket-key: ", b"other: ") + b"\r\n", 400),
        (OFFER.replace(b"/v1/responses", b"/v1/messages") + b"\r\n", 403),
    ],
    ids=["a body", "many headers", "a long header", "no key", "another page"],
)
def test_a_wrong_handshake_is_refused(gateway: Live, offer: bytes, status: int) -> None:
    assert sent(gateway, offer).startswith(b"HTTP/1.1 %d " % status)


def test_only_who_has_a_key_gets_a_connection(
    upstream: ReplayServer, caplog: pytest.LogCaptureFixture
) -> None:
    key = "cw-0123456789abcdefghijklmnop"
    config = config_of(upstream, f"keys: {{me: {{hash: '{KeyHash.of(key, b'12345678')}'}}}}")
    upstream.add(streams("Hello"))
    with live(config) as gateway:
        with pytest.raises(InvalidStatus) as raised:
            socket_to(gateway)
        assert raised.value.response.status_code == 401
        assert json.loads(raised.value.response.body or b"")["error"]["code"] == "invalid_api_key"
        with socket_to(gateway, Authorization=f"Bearer {key}") as socket:
            assert ask(socket)[-1]["type"] == "response.completed"
    assert [one.getMessage() for one in caplog.records if one.levelname == "ERROR"] == []


def test_no_page_of_another_origin_gets_one(gateway: Live) -> None:
    with pytest.raises(InvalidStatus) as raised:
        socket_to(gateway, Origin="https://evil.example")
    assert raised.value.response.status_code == 403


def test_a_message_has_the_limit_of_a_body(upstream: ReplayServer) -> None:
    with live(config_of(upstream, "limits: {body_bytes: 200}")) as gateway, socket_to(gateway) as socket:
        socket.send("x" * 201)
        with pytest.raises(ConnectionClosed) as raised:
            socket.recv(60)
    assert raised.value.rcvd is not None
    assert raised.value.rcvd.code == 1009


def test_a_client_that_has_left_gets_nothing_more(upstream: ReplayServer) -> None:
    """As a server hears of it that notices only when it writes."""
    upstream.add(streams("Hello"))
    app = create_app(config_of(upstream))
    messages = [{"type": "websocket.connect"}, {"type": "websocket.receive", "text": json.dumps(CREATE)}]
    written: list[str] = []

    async def receive() -> Any:
        return messages.pop(0) if messages else await asyncio.Event().wait()

    async def send(message: Any) -> None:
        written.append(message["type"])
        if message["type"] == "websocket.send":
            raise OSError

    async def ask() -> None:
        headers = [(b"host", b"gateway")]
        scope = {"type": "websocket", "path": "/v1/responses", "headers": headers, "query_string": b""}
        async with app.router.lifespan_context(app):
            await app(scope, receive, send)

    asyncio.run(ask())
    assert written[:2] == ["websocket.accept", "websocket.send"]


@pytest.mark.filterwarnings("ignore:connect\\(\\) must be used:DeprecationWarning")
def test_openais_sdk(upstream: ReplayServer, gateway: Live) -> None:
    upstream.add(streams("Hello"))
    client = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="k", max_retries=0)
    with client, client.responses.connect() as connection:
        connection.response.create(model="tiny", input="Hi", store=False)
        event = next(one for one in connection if one.type == "response.completed")
    assert event.response.output_text == "Hello"


def test_the_word_for_websockets_is_not_for_the_server(upstream: ReplayServer) -> None:
    events = [
        {"type": "response.created", "sequence_number": 0, "response": RESPONSE | {"status": "in_progress"}},
        {"type": "response.completed", "sequence_number": 1, "response": RESPONSE},
    ]
    upstream.add(Answer.of_events(events))
    models = f"tiny: {{provider: openai_responses, api_key: k, base_url: '{upstream.url}'}}"
    beta = {"OpenAI-Beta": "responses_websockets=2026-02-06, other=v1"}
    with live(config_of(upstream, models=models)) as gateway, socket_to(gateway, **beta) as socket:
        assert ask(socket)[-1]["type"] == "response.completed"
    assert upstream.requests[0].headers["openai-beta"] == "other=v1"


RESPONSE: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "model": "tiny",
    "output": [],
}
