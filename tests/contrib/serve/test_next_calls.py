"""What clients of each API call next: counts of tokens, files and batches, and pages that are not there."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from websockets.sync.client import connect

from contrib_serve import Live, config_of, live, says
from crosswalk.testing.replay import Answer, ReplayServer
from crosswalk_serve.config import KeyHash

KEY = "cw-alice-0123456789abcdefghij"
ASKED: dict[str, Any] = {"model": "tiny", "input": "Hi, how are you?"}
COUNTED = Answer.of_json({"object": "response.input_tokens", "input_tokens": 11})
REASONED = {
    "id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m",
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
         "content": [{"type": "output_text", "text": "Hello", "annotations": []}]},
    ],
}  # fmt: skip
VERSION = {"anthropic-version": "2023-06-01"}


@pytest.fixture
def upstream() -> Iterator[ReplayServer]:
    """A server that looks into no body: those of files and of cancelled batches are no JSON."""
    with ReplayServer() as server:
        yield server


def model(upstream: ReplayServer, provider: str, more: str = "") -> str:
    return f"tiny: {{provider: {provider}, base_url: '{upstream.url}', api_key: k{more}}}"


def gateway_of(upstream: ReplayServer, provider: str, more: str = "", about: str = "") -> Any:
    return live(config_of(upstream, f"on_unsupported: drop\n{more}", model(upstream, provider, about)))


def client_of(gateway: Live) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{gateway.url}/v1", api_key=KEY, max_retries=0)


# Counts.


def test_a_server_of_responses_counts_its_tokens(upstream: ReplayServer) -> None:
    upstream.add(Answer.of_json(REASONED)).add(COUNTED, times=None)
    with (
        gateway_of(upstream, "openai_responses", about=", model: m") as gateway,
        client_of(gateway) as client,
    ):
        tools: Any = [{"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": False}]
        first = client.responses.create(**ASKED)
        count = client.responses.input_tokens.count(
            **ASKED, instructions="Be kind.", tools=tools, reasoning={"effort": "low"}
        )
        client.responses.input_tokens.count(**ASKED, previous_response_id=first.id)
        named: Any = [{"type": "item_reference", "id": "rs_1"}, {"role": "user", "content": "On"}]
        client.responses.input_tokens.count(model="tiny", input=named)
    assert (count.input_tokens, count.object) == (11, "response.input_tokens")
    plain, continued, referred = (request.json() for request in upstream.requests[1:])
    assert {request.path for request in upstream.requests[1:]} == {"/v1/responses/input_tokens"}
    assert plain == {
        "model": "m",
        "input": ASKED["input"],
        "instructions": "Be kind.",
        "tools": tools,
        "reasoning": {"effort": "low"},
    }
    assert [item.get("id") for item in continued["input"]] == [None, "rs_1", "msg_1", None]
    assert referred["input"][0] == REASONED["output"][0]  # type: ignore[index]


@pytest.mark.parametrize("status", [404, 405, 501])
@pytest.mark.parametrize("provider", ["openai_responses", "mistral"])
def test_other_counts_are_estimates(upstream: ReplayServer, provider: str, status: int) -> None:
    upstream.add(Answer.failure(status), times=None)
    with gateway_of(upstream, provider) as gateway, client_of(gateway) as client:
        raw = client.responses.input_tokens.with_raw_response.count(**ASKED)
    assert raw.parse().input_tokens == 4
    assert raw.headers["x-crosswalk-estimated"] == "input_tokens"


@pytest.mark.parametrize(
    ("statuses", "told", "asked", "advice"),
    [
        ([503, 200], 200, ["a", "b"], None),
        ([400], 400, ["a"], "false"),
        ([503, 503], 503, ["a", "b"], "false"),  # the client's repetitions would multiply them
    ],
)
def test_the_next_server_counts_if_the_first_one_fails(
    upstream: ReplayServer, statuses: list[int], told: int, asked: list[str], advice: str | None
) -> None:
    for status in statuses:
        upstream.add(COUNTED if status == 200 else Answer.failure(status))
    server = f"provider: openai_responses, base_url: '{upstream.url}', api_key: k"
    models = f"tiny: [{{{server}, model: a}}, {{{server}, model: b}}]"
    with live(config_of(upstream, "", models)) as gateway, httpx2.Client(base_url=gateway.url) as client:
        answer = client.post("/v1/responses/input_tokens", json=ASKED)
    assert (answer.status_code, answer.json().get("input_tokens")) == (told, 11 if told == 200 else None)
    assert answer.headers.get("x-should-retry") == advice
    assert [request.json()["model"] for request in upstream.requests] == asked


def test_an_estimate_counts_the_turns_before(upstream: ReplayServer) -> None:
    upstream.add(says("x" * 400))
    with gateway_of(upstream, "mistral") as gateway, client_of(gateway) as client:
        first = client.responses.create(**ASKED)
        count = client.responses.input_tokens.count(**ASKED, previous_response_id=first.id)
    assert count.input_tokens == 108


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"previous_response_id": "resp_none"}, "previous_response_not_found"),
        ({"input": [{"type": "item_reference", "id": "rs_none"}]}, None),
        ({"conversation": "conv_other"}, None),
    ],
)
def test_a_count_names_only_what_its_key_has_received(
    upstream: ReplayServer, more: dict[str, Any], code: str | None
) -> None:
    with (
        gateway_of(upstream, "openai_responses") as gateway,
        client_of(gateway) as client,
        pytest.raises(openai.NotFoundError if "input" in more else openai.BadRequestError) as raised,
    ):
        client.responses.input_tokens.count(**{**ASKED, **more})
    assert raised.value.code == code
    assert not upstream.requests


# Files and batches.

BATCH = {
    "id": "batch_1", "object": "batch", "endpoint": "/v1/chat/completions", "input_file_id": "file_1",
    "completion_window": "24h", "status": "completed", "created_at": 1,
    "usage": {"input_tokens": 9, "output_tokens": 9, "total_tokens": 18,
              "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}},
}  # fmt: skip
MESSAGE_BATCH = {
    "id": "msgbatch_1", "type": "message_batch", "processing_status": "ended", "results_url": None,
    "created_at": "2026-01-01T00:00:00Z", "expires_at": "2026-01-02T00:00:00Z",
    "request_counts": {"processing": 0, "succeeded": 1, "errored": 0, "canceled": 0, "expired": 0},
}  # fmt: skip
TINY: dict[str, Any] = {"extra_query": {"model": "tiny"}}
KEYED = f"keys: {{alice: {{hash: '{KeyHash.of(KEY, b'saltsalt')}', requests_per_minute: 99, %s}}}}"


def test_batches_of_openai_are_passed_on(upstream: ReplayServer) -> None:
    listed = Answer.of_json({"object": "list", "data": [BATCH], "has_more": False})
    upstream.add(listed, when=lambda request: request.target.endswith("limit=1"))
    upstream.add(Answer.of_json(BATCH), times=None)
    more = "metrics: true\n" + KEYED % "metrics: true, batches: true, tokens_per_minute: 20"
    with gateway_of(upstream, "openai", more, ", model: gpt") as gateway, client_of(gateway) as client:
        made = client.batches.create(
            input_file_id="file_1", endpoint="/v1/chat/completions", completion_window="24h", **TINY
        )
        for _ in range(3):  # more looks than the key has tokens
            assert client.batches.retrieve(made.id, **TINY) == made
        assert client.batches.cancel(made.id, **TINY) == made
        assert client.batches.list(limit=1, **TINY).data == [made]
    assert [(one.method, one.target) for one in upstream.requests] == [
        ("POST", "/v1/batches"),
        *[("GET", "/v1/batches/batch_1")] * 3,
        ("POST", "/v1/batches/batch_1/cancel"),
        ("GET", "/v1/batches?limit=1"),
    ]
    assert "model" not in upstream.requests[0].json()


def test_batches_and_files_of_anthropic_are_passed_on(upstream: ReplayServer) -> None:
    file = {"id": "file_1", "type": "file", "filename": "a.txt", "mime_type": "text/plain", "size_bytes": 1,
            "created_at": "2026-01-01T00:00:00Z", "downloadable": False}  # fmt: skip
    upstream.add(Answer.of_json(file), path="/v1/files")
    line = b'{"custom_id":"a","result":{"type":"canceled"}}\n'
    lines = Answer((line,), headers={"content-type": "application/x-jsonl"})
    upstream.add(lines, when=lambda request: request.path.endswith("/results"))
    upstream.add(Answer.of_json(MESSAGE_BATCH), times=None)
    params: Any = {"model": "c", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
    with (
        gateway_of(upstream, "anthropic") as gateway,
        anthropic.Anthropic(base_url=gateway.url, api_key=KEY, max_retries=0) as client,
    ):
        made = client.messages.batches.create(requests=[{"custom_id": "a", "params": params}], **TINY)
        assert client.messages.batches.retrieve(made.id, **TINY) == made
        assert client.messages.batches.cancel(made.id, **TINY) == made
        client.messages.batches.delete(made.id, **TINY)
        results = client.get(f"/v1/messages/batches/{made.id}/results?model=tiny", cast_to=httpx2.Response)
        assert results.content == line
        beta = {"anthropic-beta": "files-api-2025-04-14"}
        file_sent = ("a.txt", io.BytesIO(b"x"))
        assert client.beta.files.upload(file=file_sent, extra_headers=beta, **TINY).id == "file_1"
    assert upstream.requests[0].json() == {"requests": [{"custom_id": "a", "params": params}]}
    assert [request.target for request in upstream.requests] == [
        "/v1/messages/batches",
        "/v1/messages/batches/msgbatch_1",
        "/v1/messages/batches/msgbatch_1/cancel",
        "/v1/messages/batches/msgbatch_1",
        "/v1/messages/batches/msgbatch_1/results",
        "/v1/files",
    ]
    assert all(request.headers["anthropic-version"] for request in upstream.requests)
    assert upstream.requests[-1].headers["anthropic-beta"] == "files-api-2025-04-14"


@pytest.mark.parametrize("path", ["/v1/batches?model=tiny", "/v1/messages/batches/msgbatch_1?model=tiny"])
@pytest.mark.parametrize(("right", "status"), [("batches: false", 403), ("batches: true", 200)])
def test_a_key_needs_a_right_for_batches(upstream: ReplayServer, path: str, right: str, status: int) -> None:
    """A batch names its models itself, and the gateway counts nothing of it."""
    upstream.add(Answer.of_json(BATCH), times=None)
    with gateway_of(upstream, "anthropic", KEYED % right) as gateway, httpx2.Client() as client:
        answer = client.get(gateway.url + path, headers={"x-api-key": KEY})
    assert answer.status_code == status
    assert bool(upstream.requests) is (status == 200)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_batch_needs_its_model_in_the_query(upstream: ReplayServer, method: str) -> None:
    with gateway_of(upstream, "openai") as gateway, httpx2.Client() as client:
        answer = client.request(method, f"{gateway.url}/v1/batches", json={"model": "tiny"})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "model"
    assert not upstream.requests


def test_a_server_without_batches_has_no_such_page(upstream: ReplayServer) -> None:
    with (
        gateway_of(upstream, "gemini") as gateway,
        client_of(gateway) as client,
        pytest.raises(openai.NotFoundError, match="has no such page"),
    ):
        client.batches.list(**TINY)


# Pages that are not there.

ABSENT = [
    ("/v1/conversations", {}, ("error", "type"), "invalid_request_error"),
    ("/v1/responses/compact", {}, ("error", "type"), "invalid_request_error"),
    ("/v1/realtime/sessions", {}, ("error", "type"), "invalid_request_error"),
    ("/v1/messages/none", VERSION, ("error", "type"), "not_found_error"),
    ("/v1/skills", VERSION, ("error", "type"), "not_found_error"),
    ("/v1beta/models/tiny:embedContent", {}, ("error", "status"), "NOT_FOUND"),
    ("/v1beta/interactions", {}, ("error", "status"), "NOT_FOUND"),
]


@pytest.mark.parametrize(("path", "headers", "place", "word"), ABSENT)
def test_a_page_that_is_not_there_says_so_in_its_apis_words(
    gateway: Live, path: str, headers: dict[str, str], place: tuple[str, str], word: str
) -> None:
    with httpx2.Client() as client:
        answer = client.post(gateway.url + path, json={"model": "tiny"}, headers=headers)
    assert answer.status_code == 404
    assert answer.json()[place[0]][place[1]] == word


# Results of tools, for a call to which the server gave no id.


CALL = {"name": "weather", "arguments": {"city": "Paris"}}
IDLESS: dict[str, dict[str, Any]] = {
    "ollama": {
        "model": "m", "created_at": "2026-01-01T00:00:00Z", "done": True, "done_reason": "stop",
        "message": {"role": "assistant", "content": "", "tool_calls": [{"function": CALL}, {"function": CALL}]},
    },
    "gemini": {
        "candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [
            {"functionCall": {"name": "weather", "args": {"city": "Paris"}}},
            {"functionCall": {"name": "weather", "args": {"city": "Paris"}}},
        ]}}],
    },
    "openai": {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "content": None,
            "tool_calls": [{"id": "same", "type": "function", "function": {"name": "weather", "arguments": "{}"}}] * 2}}],
    },
}  # fmt: skip


def idless(provider: str, is_stream: bool) -> Answer:
    """An answer of two calls, whose ids are missing or the same."""
    body = IDLESS[provider]
    if not is_stream:
        return Answer.of_json(body)
    if provider == "ollama":
        line = json.dumps(body).encode() + b"\n"
        return Answer((line,), headers={"Content-Type": "application/x-ndjson"}, stream=True)
    if provider == "openai":
        (choice,) = body["choices"]
        calls = [{"index": number, **one} for number, one in enumerate(choice["message"]["tool_calls"])]
        delta = {"index": 0, "finish_reason": "tool_calls", "delta": {"tool_calls": calls}}
        body = {**body, "object": "chat.completion.chunk", "choices": [delta]}
    return Answer.of_events([body], done=provider == "openai")


def results_at(provider: str, body: dict[str, Any]) -> list[tuple[str, str]]:
    """The result of each call in a request to *provider*, by the id of the call."""
    if provider == "gemini":
        _, called, answered = body["contents"]
        call_ids = [part["functionCall"]["id"] for part in called["parts"]]
        results = [part["functionResponse"] for part in answered["parts"]]
        texts = {result["id"]: result["response"]["result"] for result in results}
    else:
        _, called, *answered = body["messages"]
        call_ids = [call["id"] for call in called["tool_calls"]]
        texts = {turn["tool_call_id"]: turn["content"] for turn in answered}
    return [(id, texts.pop(id)) for id in call_ids] + list(texts.items())


@pytest.mark.untraced
@pytest.mark.parametrize("is_socket", [False, True])
@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("provider", IDLESS)
def test_a_result_finds_its_call_by_the_id_that_the_client_got(
    upstream: ReplayServer, provider: str, is_stream: bool, is_socket: bool
) -> None:
    upstream.add(idless(provider, is_stream or is_socket)).add(idless(provider, is_stream=is_socket))
    tools = [{"type": "function", "name": "weather", "parameters": {"type": "object"}}]

    def ask(**fields: Any) -> dict[str, Any]:
        body = {**ASKED, "tools": tools, **fields}
        if is_socket:
            socket.send(json.dumps({"type": "response.create", **body}))
            while (event := json.loads(socket.recv(60)))["type"] not in ("response.completed", "error"):
                pass
        else:
            text = httpx2.post(f"{gateway.url}/v1/responses", json=body, timeout=60).text
            event = json.loads(text.rpartition("data: ")[2])
        response: dict[str, Any] = event.get("response", event)
        return response

    with gateway_of(upstream, provider) as gateway, ExitStack() as stack:
        if is_socket:
            address = f"ws://127.0.0.1:{gateway.port}/v1/responses"
            socket = stack.enter_context(connect(address, proxy=None, open_timeout=60, close_timeout=60))
        first = ask(stream=is_stream)
        ids = [item["call_id"] for item in first["output"]]
        outputs = [
            {"type": "function_call_output", "call_id": id, "output": text}
            for id, text in zip(ids, ["Sunny", "Rainy"], strict=True)
        ]
        ask(input=outputs, previous_response_id=first["id"])
    results = results_at(provider, upstream.requests[-1].json())
    assert results == [(ids[0], "Sunny"), (ids[1], "Rainy")]
    assert ids[0] != ids[1]


def test_a_listed_input_item_can_be_named(upstream: ReplayServer) -> None:
    upstream.add(says("Hello"), times=None)
    with gateway_of(upstream, "openai") as gateway, client_of(gateway) as client:
        first = client.responses.create(**ASKED)
        (listed,) = client.responses.input_items.list(first.id).data
        named: Any = {"type": "item_reference", "id": listed.id}
        client.responses.create(model="tiny", input=[named, {"role": "user", "content": "On"}])
        said = [turn["content"] for turn in upstream.requests[-1].json()["messages"]]
        assert said == [[{"type": "text", "text": ASKED["input"]}], "On"]
        for id in (f"item_1_{first.id}", "item_0_none", first.id):
            with pytest.raises(openai.NotFoundError, match=f"Item with id '{id}' not found"):
                client.responses.create(model="tiny", input=[{"type": "item_reference", "id": id}])
