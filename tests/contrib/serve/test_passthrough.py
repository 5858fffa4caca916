"""Requests that go to the server of their model as they came."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import ollama
import openai
import orjson
import pytest
from starlette.applications import Starlette

from contrib_serve import asking, config_of, live
from crosswalk.testing.exchange import Reset, Stall
from crosswalk.testing.replay import Answer, ReplayServer
from crosswalk_serve import create_app
from crosswalk_serve.config import Config, KeyHash

KEY = "cw-alice-0123456789abcdefghij"
HASH = f"hash: '{KeyHash.of(KEY, b'saltsalt')}'"
VECTORS = {
    "object": "list",
    "model": "e5",
    "data": [{"object": "embedding", "index": n, "embedding": [0.5, n]} for n in range(2)],
    "usage": {"prompt_tokens": 7, "total_tokens": 7},
}
EMBED = {"model": "tiny", "input": ["a", "b"]}


@pytest.fixture
def upstream() -> Any:
    with ReplayServer() as server:
        yield server


def model(upstream: ReplayServer, provider: str = "vllm", more: str = "") -> str:
    return f"tiny: {{provider: {provider}, base_url: '{upstream.url}', api_key: sk-own{more}}}"


def run(config: Config, do: Callable[[httpx2.AsyncClient, Starlette], Awaitable[None]]) -> None:
    async def main() -> None:
        app = create_app(config)
        async with asking(app, headers={"x-api-key": KEY}) as client:
            await do(client, app)
        await app.state.gateway.aclose()

    asyncio.run(main())


def send(config: Config, method: str, path: str, **options: Any) -> httpx2.Response:
    answers = []

    async def do(client: httpx2.AsyncClient, _: Starlette) -> None:
        answers.append(await client.request(method, path, **options))

    run(config, do)
    return answers[0]


# ------------------------------------------------------------------------------------ the way there and back


@pytest.mark.parametrize(
    ("provider", "base", "wanted"),
    [
        ("vllm", "", "/v1/embeddings"),
        ("openai_responses", "/v1", "/v1/embeddings"),
        ("ollama", "", "/v1/embeddings"),
        ("cohere", "", "/v2/embeddings"),
    ],
)
def test_embeddings_reach_the_server_of_their_model(
    upstream: ReplayServer, provider: str, base: str, wanted: str
) -> None:
    upstream.add(Answer.of_json(VECTORS))
    one = f"tiny: {{provider: {provider}, base_url: '{upstream.url}{base}', api_key: sk-own}}"
    body = b'{"model": "tiny",  "input": "a", "new": 1}'
    answer = send(
        config_of(upstream, models=one),
        "POST",
        "/v1/embeddings",
        content=body,
        headers={"content-type": "application/json"},
    )
    assert (answer.status_code, answer.json()) == (200, VECTORS)
    (asked,) = upstream.requests
    assert (asked.path, asked.body, asked.headers["authorization"]) == (wanted, body, "Bearer sk-own")
    assert answer.headers["x-request-id"]


def test_the_alias_stays_in_the_answer(upstream: ReplayServer) -> None:
    upstream.add(Answer.of_json(VECTORS)).add(Answer.of_json({**VECTORS, "model": None}))
    config = config_of(upstream, models=model(upstream, more=", model: e5"))
    assert send(config, "POST", "/v1/embeddings", json=EMBED).json() == {**VECTORS, "model": "tiny"}
    assert upstream.requests[0].json() == {**EMBED, "model": "e5"}
    assert send(config, "POST", "/v1/embeddings", json=EMBED).json() == {**VECTORS, "model": None}


FORM = (
    b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\nContent-Type: audio/wav\r\n\r\n'
    b"RI\r\n\r\nFF\r\n--x\r\ncontent-disposition: form-data; name=model\r\n\r\ntiny\r\n--x--\r\n"
)
KIND = {"content-type": 'multipart/form-data; boundary="x"'}


def test_audio_goes_there_in_a_form_and_comes_as_it_is(upstream: ReplayServer) -> None:
    upstream.add(Answer.of_json({"text": "Hi", "usage": {"input_tokens": 3, "output_tokens": 2}}))
    upstream.add(Answer((b"ID3\xff",), headers={"Content-Type": "audio/mpeg"})).add(
        Answer((b"?",), headers={})
    )
    config = config_of(upstream, models=model(upstream, more=", model: whisper"))
    answer = send(config, "POST", "/v1/audio/transcriptions", content=FORM, headers=KIND)
    assert answer.json()["text"] == "Hi"
    (asked,) = upstream.requests
    assert (asked.body, asked.headers["content-type"]) == (
        FORM.replace(b"tiny", b"whisper"),
        KIND["content-type"],
    )
    speech = send(config, "POST", "/v1/audio/speech", json={"model": "tiny", "input": "Hi"})
    assert (speech.content, speech.headers["content-type"]) == (b"ID3\xff", "audio/mpeg")
    unnamed = send(config, "POST", "/v1/audio/speech", json={"model": "tiny", "input": "Hi"})
    assert unnamed.headers["content-type"] == "application/octet-stream"


def test_files_are_named_with_their_model(upstream: ReplayServer) -> None:
    upstream.add(Answer.of_json({"id": "file-1"}), times=None)
    config = config_of(upstream, models=model(upstream, more=", model: gpt"))
    form = FORM.replace(b"name=model", b"name=purpose")
    assert send(config, "POST", "/v1/files?model=tiny", content=form, headers=KIND).status_code == 200
    assert send(config, "GET", "/v1/files?model=tiny&after=a%26b").json() == {"id": "file-1"}
    assert send(config, "DELETE", "/v1/files/file-1?model=tiny").status_code == 200
    assert send(config, "GET", "/v1/files/file-1/content?model=tiny").status_code == 200
    asked = [(one.method, one.target) for one in upstream.requests]
    assert asked == [
        ("POST", "/v1/files"),
        ("GET", "/v1/files?after=a%26b"),
        ("DELETE", "/v1/files/file-1"),
        ("GET", "/v1/files/file-1/content"),
    ]
    assert upstream.requests[0].body == form
    assert send(config, "GET", "/v1/files").json()["error"]["param"] == "model"
    for path in ("..", "a%3fb", "a%2f..%2fb"):
        assert send(config, "DELETE", f"/v1/files/{path}?model=tiny").status_code in (404, 405)
    assert len(upstream.requests) == 4


@pytest.mark.parametrize("path", ["/api/embed", "/api/embeddings"])
def test_ollamas_requests_go_to_any_server(upstream: ReplayServer, path: str) -> None:
    upstream.add(Answer.of_json({"embeddings": [[1.0]], "prompt_eval_count": 2}))
    body = {"model": "tiny", "prompt": "a", "input": "a", "truncate": True}
    own = send(config_of(upstream, models=model(upstream, "ollama")), "POST", path, json=body)
    assert own.json()["embeddings"] == [[1.0]]
    assert upstream.requests[0].path == path
    upstream.add(Answer.of_json(VECTORS)).add(Answer.of_json({**VECTORS, "usage": None}))
    body = {
        "model": "tiny",
        "prompt" if path == "/api/embeddings" else "input": "a",
        "dimensions": 2,
        "truncate": True,
    }
    config = config_of(upstream, models=model(upstream, more=", model: e5"))
    answer = send(config, "POST", path, json=body)
    assert upstream.requests[1].json() == {"model": "e5", "input": "a", "dimensions": 2}
    assert answer.headers["x-crosswalk-dropped"] == "request.truncate"
    whole = {"model": "tiny", "embeddings": [[0.5, 0], [0.5, 1]], "prompt_eval_count": 7}
    assert answer.json() == ({"embedding": [0.5, 0]} if path == "/api/embeddings" else whole)
    del body["dimensions"]
    assert "prompt_eval_count" not in send(config, "POST", path, json=body).json()


# ------------------------------------------------------------------------------------ what goes wrong


def test_the_next_server_is_asked_after_a_failure(
    upstream: ReplayServer, caplog: pytest.LogCaptureFixture
) -> None:
    upstream.add(Answer.of_json({}), Reset(after_bytes=0)).add(Answer.failure(503, message="sk-own is busy"))
    upstream.add(Answer.of_json(VECTORS))
    one = f"{{provider: vllm, base_url: '{upstream.url}', api_key: sk-own, model: NAME}}"
    models = f"tiny: [{', '.join(one.replace('NAME', name) for name in 'abc')}]"
    assert send(config_of(upstream, models=models), "POST", "/v1/embeddings", json=EMBED).status_code == 200
    assert [asked.json()["model"] for asked in upstream.requests] == ["a", "b", "c"]
    failed = [one.message for one in caplog.records if "attempt failed" in one.message]
    assert len(failed) == 2
    assert "<secret> is busy" in failed[1]
    assert "sk-own" not in caplog.text


@pytest.mark.parametrize(
    ("answer", "status", "told"),
    [
        (Answer.failure(400, message="no sk-own"), 400, "no <secret>"),
        (Answer.failure(401, message="no"), 502, "has refused the gateway's credentials"),
        (Answer.failure(404, message="no such page"), 404, "no such page"),
        (Answer.of_json({"error": {"message": "no idea"}}, status=600), 599, "no idea"),
        (Answer((b"<html>",), status=302), 502, "gave no answer"),
    ],
)
def test_errors_are_the_gateways(upstream: ReplayServer, answer: Answer, status: int, told: str) -> None:
    upstream.add(answer)
    refused = send(config_of(upstream, models=model(upstream)), "POST", "/v1/embeddings", json=EMBED)
    assert (refused.status_code, len(upstream.requests)) == (status, 1)
    assert told in refused.json()["error"]["message"]


def test_an_api_without_such_a_page_is_said(upstream: ReplayServer) -> None:
    refused = send(config_of(upstream, models=model(upstream, "gemini")), "POST", "/v1/rerank", json=EMBED)
    assert refused.json()["error"]["message"] == "the server of this model has no such page"


@pytest.mark.parametrize("body", [{"data": [{}]}, [], {}])
def test_an_answer_without_embeddings_is_an_error(upstream: ReplayServer, body: Any) -> None:
    upstream.add(Answer.of_json(body))
    assert send(config_of(upstream), "POST", "/api/embed", json=EMBED).status_code == 502


@pytest.mark.parametrize("count", [2**63, 2**64 - 1, -1, 1.5, "5", None, True, [], {}])
@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/rerank", "/api/embed", "/api/embeddings"])
def test_counts_that_cannot_be_are_not_counted(upstream: ReplayServer, path: str, count: Any) -> None:
    """The answer was paid: it goes out."""
    counts = {"prompt_tokens": count, "total_tokens": count}
    for usage in (counts, count):
        upstream.add(Answer.of_json({**VECTORS, "usage": usage, "prompt_eval_count": count}))
        answer = send(config_of(upstream, "costs: true"), "POST", path, json={**EMBED, "prompt": "a"})
        assert answer.status_code == 200
        assert "x-crosswalk-cost-usd" not in answer.headers


@pytest.mark.parametrize("error", [{"message": "no sk-own", "code": "KeyError"}, "no sk-own"])
def test_an_error_with_a_status_of_success_is_an_error(upstream: ReplayServer, error: Any) -> None:
    upstream.add(Answer.of_json({"error": error}))
    failed = send(config_of(upstream, models=model(upstream)), "POST", "/v1/embeddings", json=EMBED)
    assert (failed.status_code, failed.json()["error"]["message"]) == (502, "no <secret>")
    assert failed.headers["x-should-retry"] == "false"


def test_a_file_may_say_anything(upstream: ReplayServer) -> None:
    upstream.add(Answer.of_json({"error": "is the text of a file"}))
    answer = send(config_of(upstream), "GET", "/v1/files/f-1/content", params={"model": "tiny"})
    assert answer.json() == {"error": "is the text of a file"}


def test_an_answer_that_is_not_json_after_all_goes_out(upstream: ReplayServer) -> None:
    upstream.add(Answer((b"{",), headers={"Content-Type": "application/json"}))
    assert send(config_of(upstream), "POST", "/v1/embeddings", json=EMBED).content == b"{"


@pytest.mark.parametrize(
    ("form", "kind", "said"),
    [
        (FORM.replace(b"--x--", b"--x\r\nContent-Disposition: form-data; name=model\r\n\r\nb\r\n--x--"), "x", "named twice"),
        (FORM.replace(b"name=model", b"name=other"), "x", "is missing"),
        (FORM.replace(b"name=model", b"name*=UTF-8''model"), "x", "no plain name"),
        (FORM.replace(b"name=model", b"name=model; name*=a"), "x", "no plain name"),
        (FORM.replace(b"name=model", b"name=a; name=model"), "x", "no plain name"),
        (FORM.replace(b"name=model", b"name='model'"), "x", "no plain name"),
        (FORM.replace(b"name=model", b'name="model[]"'), "x", "no plain name"),
        (FORM.replace(b"name=model", b"name=model[a]"), "x", "no plain name"),
        (FORM.replace(b"name=model", b'name=" model"'), "x", "no plain name"),
        (FORM.replace(b"name=model", b"name=model_path"), "x", "is missing"),
        (FORM.replace(b"RI", b"\n--x\nContent-Disposition: form-data; name=model\n\nb"), "x", "no head or no end"),
        (b"a" + FORM, "x", "not between its boundaries"),
        (FORM.replace(b"--x--", b"--x"), "x", "not between its boundaries"),
        (b"", "x", "not between its boundaries"),
        (FORM.replace(b"tiny", b"\xff"), "x", "must be UTF-8"),
        (FORM, None, "no boundary"),
    ],
)  # fmt: skip
def test_a_form_that_can_be_read_in_two_ways_is_refused(
    upstream: ReplayServer, form: bytes, kind: str | None, said: str
) -> None:
    headers = {"content-type": "multipart/form-data" + (f"; boundary={kind}" if kind else "")}
    refused = send(config_of(upstream), "POST", "/v1/audio/transcriptions", content=form, headers=headers)
    assert (refused.status_code, upstream.requests) == (400, ())
    assert said in refused.json()["error"]["message"]


def test_a_body_names_one_model(upstream: ReplayServer) -> None:
    config = config_of(upstream)
    twice = send(config, "POST", "/v1/files?model=tiny", content=FORM, headers=KIND)
    assert "named twice" in twice.json()["error"]["message"]
    for body in ({"input": "a"}, {"model": 7}):
        assert send(config, "POST", "/v1/embeddings", json=body).json()["error"]["param"] == "model"
    assert send(config, "POST", "/v1/embeddings", json={"model": "other"}).status_code == 404
    assert upstream.requests == ()


# ------------------------------------------------------------------------------------ keys and counts


def test_keys_and_their_limits_hold(upstream: ReplayServer) -> None:
    upstream.add(Answer.failure(500)).add(Answer.of_json(VECTORS), times=None)
    price = ", price: {input_per_million: 1000000, output_per_million: 0}"
    keys = f"metrics: true\nkeys: {{alice: {{{HASH}, metrics: true, budget_per_day: 10}}, bob: {{{HASH[:-2]}0', models: []}}}}"

    async def do(client: httpx2.AsyncClient, _: Starlette) -> None:
        answers = [await client.post("/v1/embeddings", json=EMBED) for _ in range(4)]
        assert [answer.status_code for answer in answers] == [500, 200, 200, 429]
        assert (
            await client.post("/v1/embeddings", json=EMBED, headers={"x-api-key": "x"})
        ).status_code == 401
        lines = (await client.get("/metrics")).text.splitlines()
        requests = (
            'crosswalk_serve_requests_total{form="/v1/embeddings",key="alice",model="tiny",status="200"}'
        )
        assert f"{requests} 2.0" in lines
        assert 'crosswalk_serve_tokens_total{key="alice",model="tiny",type="input"} 14.0' in lines
        assert 'crosswalk_serve_cost_dollars_total{key="alice",model="tiny"} 14.0' in lines

    run(config_of(upstream, keys, model(upstream, more=price)), do)


def test_what_is_not_counted_is_estimated(upstream: ReplayServer) -> None:
    upstream.add(Answer.of_json({"results": []}), times=None)
    keys = f"keys: {{alice: {{{HASH}, tokens_per_minute: 2}}}}"

    async def do(client: httpx2.AsyncClient, _: Starlette) -> None:
        body = {"model": "tiny", "query": "12345678", "documents": []}
        answers = [await client.post("/v1/rerank", json=body) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [200, 429]

    run(config_of(upstream, keys), do)


def test_a_client_that_leaves_ends_the_call(upstream: ReplayServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "crosswalk.serve")
    upstream.add(Answer.of_json(VECTORS), Stall())
    body = orjson.dumps(EMBED)
    head = "POST /v1/embeddings HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: "
    with live(config_of(upstream)) as here:
        with here.connect() as connection:
            connection.sendall(f"{head}{len(body)}\r\n\r\n".encode() + body)
            upstream.wait_for(lambda server: server.requests)
        upstream.wait_for(lambda server: server.disconnects)
    assert "/v1/embeddings tiny - 499" in caplog.text


def test_the_sdks(upstream: ReplayServer) -> None:
    upstream.add(Answer.of_json(VECTORS), path="/v1/embeddings", times=None)
    upstream.add(Answer.of_json({"text": "Hi"}), path="/v1/audio/transcriptions")
    with live(config_of(upstream)) as here:
        with openai.OpenAI(base_url=f"{here.url}/v1", api_key="none") as client:
            made = client.embeddings.create(model="tiny", input=["a", "b"], encoding_format="float")
            assert [item.embedding for item in made.data] == [[0.5, 0], [0.5, 1]]
            assert client.audio.transcriptions.create(model="tiny", file=("a.wav", b"RIFF")).text == "Hi"
        with ollama.Client(host=here.url) as own:
            assert own.embed(model="tiny", input=["a", "b"]).embeddings == [[0.5, 0], [0.5, 1]]
            assert own.embeddings(model="tiny", prompt="a").embedding == [0.5, 0]
