"""Requests of clients for other things than answers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from contrib_serve import HI, asking, config_of, says, streams
from crosswalk.testing.exchange import Reset
from crosswalk.testing.replay import Answer, ReplayServer
from crosswalk_serve import create_app
from crosswalk_serve.config import Config, KeyHash
from crosswalk_serve.gateway import StoreError

KEY, OTHER = "cw-alice-0123456789abcdefghij", "cw-bob-0123456789abcdefghijkl"
KEYS = (
    f"keys: {{alice: {{hash: '{KeyHash.of(KEY, b'saltsalt')}'}}, "
    f"bob: {{hash: '{KeyHash.of(OTHER, b'saltsalt')}', models: [gpt-*]}}}}"
)
COUNTED = {"model": "tiny", "messages": [{"role": "user", "content": "Hi"}]}


def run(config: Config, do: Callable[[httpx2.AsyncClient, Any], Awaitable[None]], **headers: str) -> None:
    """Do something with a new gateway."""

    async def main() -> None:
        app = create_app(config)
        async with asking(app, headers=headers) as client:
            await do(client, app.state.gateway)
        await app.state.gateway.aclose()

    asyncio.run(main())


def three(upstream: ReplayServer) -> str:
    url = f"{{provider: vllm, base_url: '{upstream.url}'}}"
    return f"tiny: {url}\n  gpt-5: {{provider: vllm, base_url: '{upstream.url}', aliases: [best]}}\n  'any-*': {url}"


def test_each_model_of_ollamas_list_is_one_of_its_own(upstream: ReplayServer) -> None:
    """Its clients take two names with one digest for one model. It has Ollama's form, and stays the same."""

    async def do(client: httpx2.AsyncClient, _: Any) -> None:
        listed.append((await client.get("/api/tags")).json()["models"])

    listed: list[list[dict[str, Any]]] = []
    for models in (three(upstream), f"tiny: {{provider: openai, base_url: '{upstream.url}'}}"):
        run(config_of(upstream, models=models), do)
    digests = {model["name"]: model["digest"] for model in listed[0]}
    assert len({*digests.values()}) == len(digests) == 3
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in digests.values())
    assert [model["digest"] for model in listed[1]] == [digests["tiny"]]


def test_models_in_each_clients_form(upstream: ReplayServer) -> None:
    async def do(client: httpx2.AsyncClient, _: Any) -> None:
        openai = (await client.get("/v1/models")).json()
        assert [model["id"] for model in openai["data"]] == ["tiny", "gpt-5", "best"]
        claude = (await client.get("/v1/models", headers={"anthropic-version": "2023-06-01"})).json()
        assert (claude["first_id"], claude["last_id"], claude["has_more"]) == ("tiny", "best", False)
        tags = (await client.get("/api/tags")).json()
        assert [model["name"] for model in tags["models"]] == ["tiny", "gpt-5", "best"]
        assert (await client.get("/v1/models/any-thing")).json()["id"] == "any-thing"
        assert (await client.get("/v1/models/none")).status_code == 404
        named = await client.get("/v1/models/tiny", headers={"anthropic-version": "1"})
        assert named.json()["type"] == "model"
        assert (await client.get("/api/version")).json()["version"]
        for name in ({"model": "tiny"}, {"name": "tiny"}):
            assert (await client.post("/api/show", json=name)).json()["capabilities"] == [
                "completion",
                "tools",
                "vision",
            ]
        wrong = await client.post("/api/show", json={"model": 7})
        assert (wrong.status_code, wrong.json()["error"]) == (400, "model: must be a string, not number")

    run(config_of(upstream, models=three(upstream)), do)


CLAUDE, GOOGLE = {"anthropic-version": "2023-06-01"}, {"x-goog-api-key": "none"}


@pytest.mark.parametrize(
    ("query", "ids", "has_more"),
    [
        ("", ["tiny", "gpt-5", "best"], False),
        ("limit=2", ["tiny", "gpt-5"], True),
        ("limit=2&after_id=gpt-5", ["best"], False),
        ("limit=1&after_id=tiny", ["gpt-5"], True),
        ("after_id=best", [], False),
        ("limit=1&before_id=best", ["gpt-5"], True),
        ("limit=2&before_id=best", ["tiny", "gpt-5"], False),
        ("before_id=gpt-5", ["tiny"], False),
    ],
)
def test_claudes_clients_get_the_models_page_by_page(
    upstream: ReplayServer, query: str, ids: list[str], *, has_more: bool
) -> None:
    async def do(client: httpx2.AsyncClient, _: Any) -> None:
        page = (await client.get(f"/v1/models?{query}", headers=CLAUDE)).json()
        assert ([model["id"] for model in page["data"]], page["has_more"]) == (ids, has_more)
        assert (page["first_id"], page["last_id"]) == ((ids[0], ids[-1]) if ids else (None, None))

    run(config_of(upstream, models=three(upstream)), do)


def test_geminis_clients_get_the_models_page_by_page(upstream: ReplayServer) -> None:
    async def do(client: httpx2.AsyncClient, _: Any) -> None:
        for size, pages in ((1, 3), (2, 2), (3, 1), (0, 1), (5000, 1)):
            names: list[str] = []
            token = ""
            for number in range(pages):
                query = {"pageSize": size, "pageToken": token}
                page = (await client.get("/v1beta/models", params=query, headers=GOOGLE)).json()
                names += [model["name"] for model in page["models"]]
                assert ("nextPageToken" in page) is (number < pages - 1)
                token = page.get("nextPageToken", "")
            assert names == ["models/tiny", "models/gpt-5", "models/best"]

    run(config_of(upstream, models=three(upstream)), do)


@pytest.mark.parametrize(
    ("path", "headers", "name"),
    [
        ("/v1/models?limit=0", CLAUDE, "limit"),
        ("/v1/models?limit=1001", CLAUDE, "limit"),
        ("/v1/models?limit=abc", CLAUDE, "limit"),
        ("/v1/models?after_id=none", CLAUDE, "after_id"),
        ("/v1/models?before_id=none", CLAUDE, "before_id"),
        ("/v1/models?before_id=tiny&after_id=tiny", CLAUDE, "before_id"),
        ("/v1beta/models?pageSize=-1", GOOGLE, "pageSize"),
        ("/v1beta/models?pageSize=abc", GOOGLE, "pageSize"),
        ("/v1beta/models?pageToken=none", GOOGLE, "pageToken"),
        ("/v1/responses/{id}?stream=maybe", {}, "stream"),
        ("/v1/responses/{id}?stream=True", {}, "stream"),
        ("/v1/responses/{id}?stream=true&starting_after=x", {}, "starting_after"),
        ("/v1/responses/{id}?starting_after=-2", {}, "starting_after"),
        ("/v1/responses/{id}/input_items?order=foo", {}, "order"),
        ("/v1/responses/{id}/input_items?limit=abc", {}, "limit"),
        ("/v1/responses/{id}/input_items?limit=101", {}, "limit"),
        ("/v1/responses/{id}/input_items?limit=", {}, "limit"),
        ("/v1/responses/{id}/input_items?after=none", {}, "after"),
    ],
)
def test_a_wrong_value_of_a_query_is_refused_in_the_apis_own_form(
    upstream: ReplayServer, path: str, headers: dict[str, str], name: str
) -> None:
    async def do(client: httpx2.AsyncClient, _: Any) -> None:
        upstream.add(says())
        id = (await client.post("/v1/responses", json={"model": "tiny", "input": "Hi"})).json()["id"]
        answer = await client.get(path.format(id=id), headers=headers)
        assert answer.status_code == 400
        error = answer.json()["error"]
        assert error["message"].replace("`", "").startswith(f"{name}: ")
        assert "<secret>" not in error["message"]
        if headers is GOOGLE:
            assert error["status"] == "INVALID_ARGUMENT"
        else:
            assert error["type"] == "invalid_request_error"
            assert error.get("param", name) == name

    run(config_of(upstream, models=three(upstream)), do)


def test_loaded_models_are_those_of_the_ollama_servers(upstream: ReplayServer) -> None:
    entries = [{"model": name, "name": name, "size_vram": 7} for name in ("qwen3:latest", "b", "other")]
    upstream.add(Answer.of_json({"models": entries}), path="/api/ps")
    one = f"provider: ollama, base_url: '{upstream.url}'"
    models = (
        f"tiny: {{{one}, model: qwen3}}\n  b: [{{provider: vllm, base_url: '{upstream.url}'}}, {{{one}}}]\n"
        f"  c: {{{one}}}\n  away: {{provider: ollama, base_url: 'http://127.0.0.1:1'}}\n"
        f"  wrong: {{provider: ollama, base_url: '{upstream.url}/below'}}"
    )
    upstream.add(Answer.of_json([]), path="/below/api/ps")

    async def do(client: httpx2.AsyncClient, _: Any) -> None:
        loaded = (await client.get("/api/ps")).json()["models"]
        assert [(entry["model"], entry["name"], entry["size_vram"]) for entry in loaded] == [
            ("tiny", "tiny", 7),
            ("b", "b", 7),
        ]
        tags = {model["name"]: model["digest"] for model in (await client.get("/api/tags")).json()["models"]}
        assert [entry["digest"] for entry in loaded] == [tags["tiny"], tags["b"]]

    run(config_of(upstream, models=models), do)
    assert len(upstream.requests) == 2


@pytest.mark.parametrize(
    ("answer", "capabilities"),
    [
        (Answer.of_json({"details": {"family": "bert"}, "model_info": {}, "capabilities": ["embedding"], "license": "-"}), ["embedding"]),
        (Answer.of_json({"details": {}}), ["completion", "tools", "vision"]),
        (Answer.failure(503), ["completion", "tools", "vision"]),
    ],
)  # fmt: skip
def test_ollamas_server_says_what_its_model_can_do(
    upstream: ReplayServer, answer: Answer, capabilities: list[str]
) -> None:
    upstream.add(answer)

    async def do(client: httpx2.AsyncClient, _: Any) -> None:
        shown = (await client.post("/api/show", json={"model": "tiny"})).json()
        assert shown["capabilities"] == capabilities
        assert shown.keys() == {"details", "model_info", "capabilities"}

    run(config_of(upstream, models=f"tiny: {{provider: ollama, base_url: '{upstream.url}', model: m}}"), do)
    (asked,) = upstream.requests
    assert (asked.path, asked.json()) == ("/api/show", {"model": "m"})


def test_a_model_that_sees_nothing_does_not_say_that_it_does(upstream: ReplayServer) -> None:
    async def do(client: httpx2.AsyncClient, _: Any) -> None:
        assert (await client.post("/api/show", json={"model": "tiny"})).json()["capabilities"] == [
            "completion",
            "tools",
        ]

    run(
        config_of(
            upstream, models=f"tiny: {{provider: vllm, base_url: '{upstream.url}', takes_media: false}}"
        ),
        do,
    )


def test_a_key_sees_its_own_models_alone(upstream: ReplayServer) -> None:
    async def do(client: httpx2.AsyncClient, _: Any) -> None:
        assert [model["id"] for model in (await client.get("/v1/models")).json()["data"]] == ["gpt-5", "best"]
        assert (await client.get("/v1/models/tiny")).status_code == 404
        none = await client.get("/v1/models", headers={"x-api-key": "x"})
        assert none.status_code == 401

    run(config_of(upstream, KEYS, three(upstream)), do, **{"x-api-key": OTHER})


def test_nobody_has_models_where_a_pattern_is_all(upstream: ReplayServer) -> None:
    async def do(client: httpx2.AsyncClient, _: Any) -> None:
        claude = (await client.get("/v1/models", headers={"anthropic-version": "1"})).json()
        assert (claude["data"], claude["first_id"]) == ([], None)

    run(config_of(upstream, models=f"'*': {{provider: vllm, base_url: '{upstream.url}'}}"), do)


def test_somebody_is_there(upstream: ReplayServer) -> None:
    async def do(client: httpx2.AsyncClient, _: Any) -> None:
        assert (await client.head("/")).status_code == 200
        assert (await client.get("/")).text == "crosswalk is running"
        assert (await client.get("/healthz")).json() == {"status": "ok"}
        assert (await client.get("/readyz")).json() == {"status": "ready"}
        assert (await client.get("/metrics")).status_code == 404

    run(config_of(upstream), do)


def test_numbers_are_for_who_may_read_them(upstream: ReplayServer) -> None:
    async def open_to_all(client: httpx2.AsyncClient, _: Any) -> None:
        assert b"crosswalk_serve" in (await client.get("/metrics")).content

    async def for_some(client: httpx2.AsyncClient, _: Any) -> None:
        assert (await client.get("/metrics")).status_code == 403
        assert (await client.get("/metrics", headers={"x-api-key": "x"})).status_code == 401

    run(config_of(upstream, "metrics: true"), open_to_all)
    run(config_of(upstream, f"metrics: true\n{KEYS}"), for_some, **{"x-api-key": KEY})


def test_a_page_that_is_not_offered_is_not_there(upstream: ReplayServer) -> None:
    async def do(client: httpx2.AsyncClient, _: Any) -> None:
        assert (await client.post("/v1/responses/compact", json={})).status_code == 404

    run(config_of(upstream), do)


@pytest.mark.parametrize(
    ("path", "shape"),
    [("/v1/nothing", "openai"), ("/v1/messages/nothing", "anthropic"), ("/api/nothing", "ollama")],
)
def test_a_page_that_is_not_there_is_an_error_in_the_clients_form(
    upstream: ReplayServer, path: str, shape: str
) -> None:
    async def do(client: httpx2.AsyncClient, _: Any) -> None:
        answer = await client.get(path)
        assert answer.status_code == 404
        said = answer.json()
        if shape == "ollama":
            assert "Not Found" in said["error"]
        else:
            assert ("type" in said) is (shape == "anthropic")
            assert "Not Found" in said["error"]["message"]
        if shape == "anthropic":
            assert said["error"]["type"] == "not_found_error"
            assert said["request_id"] == answer.headers["request-id"] == answer.headers["x-request-id"]

    run(config_of(upstream), do)


def test_a_method_that_is_not_there_says_which_are(upstream: ReplayServer) -> None:
    async def do(client: httpx2.AsyncClient, _: Any) -> None:
        answer = await client.get("/v1/chat/completions")
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")

    run(config_of(upstream), do)


# ------------------------------------------------------------------------------------ web pages


def test_web_pages_may_ask_where_the_file_says_so(upstream: ReplayServer) -> None:
    page = {"origin": "https://chat.example"}

    async def refused(client: httpx2.AsyncClient, _: Any) -> None:
        answer = await client.post("/v1/messages", json=HI, headers=page)
        assert (answer.status_code, answer.json()["error"]["type"]) == (403, "permission_error")

    async def served(client: httpx2.AsyncClient, _: Any) -> None:
        upstream.add(says())
        answer = await client.post("/v1/chat/completions", json=HI, headers=page)
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, page["origin"])
        asked = {
            **page,
            "access-control-request-method": "POST",
            "access-control-request-headers": "x-api-key",
        }
        assert (await client.options("/v1/chat/completions", headers=asked)).status_code == 200
        other = await client.post("/v1/chat/completions", json=HI, headers={"origin": "https://evil.example"})
        assert other.status_code == 403

    run(config_of(upstream), refused)
    run(config_of(upstream, "listen: {origins: https://chat.example}"), served)
    upstream.add(says())
    run(config_of(upstream, "listen: {origins: ['*']}"), all_served)


async def all_served(client: httpx2.AsyncClient, _: Any) -> None:
    answer = await client.post("/v1/chat/completions", json=HI, headers={"origin": "https://any.example"})
    assert answer.status_code == 200


def test_nobody_is_sent_to_where_he_says_that_this_is(upstream: ReplayServer) -> None:
    async def do(client: httpx2.AsyncClient, _: Any) -> None:
        answer = await client.post("/v1/chat/completions/", json=HI, headers={"host": "evil.example"})
        assert (answer.status_code, "location" in answer.headers) == (404, False)

    run(config_of(upstream), do)


# ------------------------------------------------------------------------------------ stored responses


def test_an_answer_is_for_its_own_key(upstream: ReplayServer) -> None:
    async def do(client: httpx2.AsyncClient, _: Any) -> None:
        upstream.add(says("Hello"), times=None)
        asked = {"model": "gpt-5", "input": "Hi"}
        id = (await client.post("/v1/responses", json=asked)).json()["id"]
        other = {"x-api-key": OTHER}
        assert (await client.get(f"/v1/responses/{id}")).json()["id"] == id
        assert (await client.get(f"/v1/responses/{id}", headers=other)).status_code == 404
        assert (await client.delete(f"/v1/responses/{id}", headers=other)).status_code == 404
        on = {**asked, "previous_response_id": id}
        assert (await client.post("/v1/responses", json=on, headers=other)).status_code == 400
        assert (await client.post("/v1/responses", json=on)).status_code == 200
        assert (await client.delete(f"/v1/responses/{id}")).json()["deleted"] is True
        assert (await client.get(f"/v1/responses/{id}")).status_code == 404

    run(config_of(upstream, KEYS, three(upstream)), do, **{"x-api-key": KEY})


def id_in(answer: httpx2.Response) -> str:
    """The id of a response, whole or streamed."""
    return re.findall(r'"id":"(chatcmpl-1[^"]*)"', answer.text)[-1]


@pytest.mark.parametrize("is_stream", [False, True])
def test_servers_that_give_an_id_twice_mix_no_conversations(upstream: ReplayServer, is_stream: bool) -> None:
    """As Ollama's OpenAI layer does, which draws a number below 1,000."""

    async def do(client: httpx2.AsyncClient, _: Any) -> None:
        ids = []
        for word in ("one", "two"):
            upstream.add(streams(f"I am {word}.") if is_stream else says(f"I am {word}."))
            asked = {"model": "tiny", "input": f"Who are you? {word}", "stream": is_stream}
            answer = await client.post("/v1/responses", json=asked)
            assert "id" not in re.split(r"[\s,]", answer.text.rpartition("x-crosswalk-dropped:")[2])
            ids.append(id_in(answer))
        assert ids[0] != ids[1]
        upstream.add(says("Yes."))
        on = {"model": "tiny", "input": "Sure?", "previous_response_id": ids[0]}
        assert (await client.post("/v1/responses", json=on)).status_code == 200

    run(config_of(upstream), do)
    said = [turn["content"] for turn in upstream.requests[-1].json()["messages"]]
    assert said == ["Who are you? one", "I am one.", "Sure?"]


def test_the_id_of_a_server_that_speaks_responses_is_its_own(upstream: ReplayServer) -> None:
    body = {
        "id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m",
        "output": [{"id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
                    "content": [{"type": "output_text", "text": "Hi", "annotations": []}]}],
    }  # fmt: skip

    async def do(client: httpx2.AsyncClient, _: Any) -> None:
        upstream.add(Answer.of_json(body))
        answer = await client.post("/v1/responses", json={"model": "tiny", "input": "Hi"})
        assert answer.json()["id"] == "resp_1"
        assert (await client.get("/v1/responses/resp_1")).json() == answer.json()

    model = f"tiny: {{provider: openai_responses, base_url: '{upstream.url}', api_key: k}}"
    run(config_of(upstream, models=model), do)


def test_the_conversation_before_a_response_comes_page_by_page(upstream: ReplayServer) -> None:
    async def do(client: httpx2.AsyncClient, _: Any) -> None:
        upstream.add(says("Hello"), times=2)
        first = id_in(await client.post("/v1/responses", json={"model": "tiny", "input": "Hi"}))
        image = {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto"}
        on = {"model": "tiny", "input": [{"role": "user", "content": [image]}], "previous_response_id": first}
        id = id_in(await client.post("/v1/responses", json=on))
        items = f"/v1/responses/{id}/input_items"
        whole = (await client.get(items, params={"order": "asc"})).json()
        assert [item["role"] for item in whole["data"]] == ["user", "assistant", "user"]
        assert [item["content"][0]["type"] for item in whole["data"]] == [
            "input_text",
            "output_text",
            "input_image",
        ]
        ids = [item["id"] for item in whole["data"]]
        assert (whole["first_id"], whole["last_id"], whole["has_more"]) == (ids[0], ids[2], False)
        page = (await client.get(items, params={"limit": 2})).json()
        assert ([item["id"] for item in page["data"]], page["has_more"]) == ([ids[2], ids[1]], True)
        last = (await client.get(items, params={"after": page["last_id"]})).json()
        assert ([item["id"] for item in last["data"]], last["has_more"]) == ([ids[0]], False)
        empty = (await client.get(items, params={"after": ids[0]})).json()
        assert (empty["data"], empty["first_id"]) == ([], None)
        for wrong in ({"limit": "0"}, {"limit": "x"}, {"after": "x"}):
            assert (await client.get(items, params=wrong)).status_code == 400
        assert (await client.get("/v1/responses/x/input_items")).status_code == 404
        assert (await client.post(f"/v1/responses/{id}/cancel")).status_code == 400
        assert (await client.post("/v1/responses/x/cancel")).status_code == 404
        (only,) = (await client.get(f"/v1/responses/{first}/input_items")).json()["data"]
        assert only["content"] == [{"type": "input_text", "text": "Hi"}]

    run(config_of(upstream), do)


def test_an_item_has_one_id_wherever_it_is_told(upstream: ReplayServer) -> None:
    """That of the client, of the answer that gave it, or the one that it was listed with first."""
    mine = {"role": "assistant", "content": [{"type": "output_text", "text": "Mine"}], "id": "msg_mine"}

    async def do(client: httpx2.AsyncClient, _: Any) -> None:
        async def say(**more: Any) -> dict[str, Any]:
            answer = await client.post("/v1/responses", json={"model": "tiny", **more})
            assert answer.status_code == 200, answer.text
            said: dict[str, Any] = answer.json()
            return said

        async def listed(id: str) -> list[dict[str, Any]]:
            page = await client.get(f"/v1/responses/{id}/input_items", params={"order": "asc"})
            items: list[dict[str, Any]] = page.json()["data"]
            return items

        upstream.add(says("Hello", reasoning_content="Hm."), times=None)
        first = await say(input=[{"role": "user", "content": "Hi"}, {"type": "message", **mine}])
        one = await listed(first["id"])
        assert one[1] == {"type": "message", **mine}
        second = await say(input="And?", previous_response_id=first["id"])
        two = await listed(second["id"])
        assert two[:-1] == [*one, *first["output"]]
        third = await say(input=[mine, {"role": "user", "content": "On"}], previous_response_id=second["id"])
        three = await listed(third["id"])
        assert three[:-1] == [*two, *second["output"]]
        ids = [item["id"] for item in three]
        assert len({*ids}) == len(ids)
        fourth = await say(input=[{"type": "item_reference", "id": id} for id in (ids[0], "msg_mine")])
        assert await listed(fourth["id"]) == three[:2]
        again = await say(input=[{"id": ids[0], "role": "user", "content": "Hi"}])
        assert await listed(again["id"]) == three[:1]

    run(config_of(upstream), do)
    for request in upstream.requests:
        assert b"item_" not in request.body
    assert [turn["content"] for turn in upstream.requests[3].json()["messages"]] == [
        [{"type": "text", "text": "Hi"}],
        "Mine",
    ]


def test_items_that_a_server_gives_without_an_id_get_one(upstream: ReplayServer) -> None:
    def answer(*output: Any) -> dict[str, Any]:
        return {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m",
                "output": output}  # fmt: skip

    text = {"type": "message", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "Hi", "annotations": []}]}  # fmt: skip

    async def do(client: httpx2.AsyncClient, _: Any) -> None:
        upstream.add(Answer.of_json(answer({**text, "id": "msg_1"}, text)))
        upstream.add(Answer.of_json({**answer(text), "id": "resp_2"}), times=None)
        asked: dict[str, Any] = {"model": "tiny", "input": "Hi"}
        await client.post("/v1/responses", json=asked)
        on: Any = [{"id": "msg_1"}, {"id": "item_2_resp_1"}, {"role": "user", "content": "On"}]
        await client.post("/v1/responses", json={**asked, "input": "On", "previous_response_id": "resp_1"})
        page = await client.get("/v1/responses/resp_2/input_items", params={"order": "asc"})
        ids = [item["id"] for item in page.json()["data"]]
        assert ids == ["item_0_resp_1", "msg_1", "item_2_resp_1", "item_3_resp_2"]
        await client.post("/v1/responses", json={**asked, "input": on})
        assert upstream.requests[2].json()["input"] == [{**text, "id": "msg_1"}, text, on[2]]

    model = f"tiny: {{provider: openai_responses, base_url: '{upstream.url}', api_key: k}}"
    run(config_of(upstream, models=model), do)


def test_instructions_are_for_one_answer(upstream: ReplayServer) -> None:
    async def do(client: httpx2.AsyncClient, _: Any) -> None:
        upstream.add(says("Oui"), times=None)
        developer = {"role": "developer", "content": "Be kind."}
        previous: dict[str, Any] = {}
        for more in (
            {"instructions": "Speak French.", "input": [developer, {"role": "user", "content": "Hi"}]},
            {"instructions": "Speak German.", "input": "And?"},
            {"input": "On"},
        ):
            answer = await client.post("/v1/responses", json={"model": "tiny", **more, **previous})
            previous = {"previous_response_id": id_in(answer)}
        items = f"/v1/responses/{previous['previous_response_id']}/input_items"
        page = (await client.get(items, params={"order": "asc"})).json()
        turns = ["Be kind.", "Hi", "Oui", "And?", "Oui", "On"]
        assert [item["content"][0]["text"] for item in page["data"]] == turns
        asked = [[one["content"] for one in request.json()["messages"]] for request in upstream.requests]
        assert asked == [["Speak French.", *turns[:2]], ["Speak German.", *turns[:4]], turns]
        alone = await client.post("/v1/responses", json={"model": "tiny", "instructions": "Greet."})
        assert (await client.get(f"/v1/responses/{id_in(alone)}/input_items")).json()["data"] == []

    run(config_of(upstream), do)


def test_what_is_not_to_be_stored_is_not(upstream: ReplayServer) -> None:
    async def do(client: httpx2.AsyncClient, _: Any) -> None:
        upstream.add(says("Hello"), times=None)
        for asked in ({}, {"stream": True}):
            kept, not_kept = [
                id_in(
                    await client.post(
                        "/v1/responses", json={"model": "tiny", "input": "Hi", "store": store, **asked}
                    )
                )
                for store in (True, False)
            ]
            assert (await client.get(f"/v1/responses/{kept}")).status_code == 200
            assert (await client.get(f"/v1/responses/{not_kept}")).status_code == 404

    run(config_of(upstream), do)


def test_processes_that_share_no_store_keep_nothing(upstream: ReplayServer) -> None:
    """Rather than to find an answer only as often as the process comes up that gave it."""

    async def do(client: httpx2.AsyncClient, _: Any) -> None:
        upstream.add(says("Hello"))
        id = id_in(await client.post("/v1/responses", json={"model": "tiny", "input": "Hi"}))
        assert (await client.get(f"/v1/responses/{id}")).status_code == 404
        on = {"model": "tiny", "input": "On", "previous_response_id": id}
        assert (await client.post("/v1/responses", json=on)).status_code == 400

    run(config_of(upstream, "listen: {workers: 2}"), do)


@pytest.mark.parametrize(
    "asked", [{}, {"store": True}, {"store": False}], ids=["by default", "asked for", "refused"]
)
def test_an_answer_larger_than_the_store_says_that_it_is_not_stored(
    upstream: ReplayServer, asked: dict[str, Any]
) -> None:
    async def do(client: httpx2.AsyncClient, _: Any) -> None:
        upstream.add(says("Hello" * 40))
        answer = await client.post("/v1/responses", json={"model": "tiny", "input": "Hi", **asked})
        assert (answer.status_code, answer.json()["store"]) == (200, False)
        is_named = "response.store" in answer.headers.get("x-crosswalk-dropped", "")
        assert is_named is (asked.get("store") is not False)
        assert (await client.get(f"/v1/responses/{answer.json()['id']}")).status_code == 404

    run(config_of(upstream, "responses: {bytes: 150}"), do)


def test_an_answer_that_the_store_holds_says_so(upstream: ReplayServer) -> None:
    async def do(client: httpx2.AsyncClient, _: Any) -> None:
        upstream.add(says("Hello" * 40))
        answer = await client.post("/v1/responses", json={"model": "tiny", "input": "Hi"})
        assert answer.json()["store"] is True
        assert (await client.get(f"/v1/responses/{answer.json()['id']}")).json() == answer.json()

    run(config_of(upstream, "responses: {bytes: 15000}"), do)


def test_where_the_store_is_away_that_is_said(
    upstream: ReplayServer, caplog: pytest.LogCaptureFixture
) -> None:
    class Away:
        async def put(self, name: str, data: bytes) -> bool:
            raise StoreError("away")

        async def get(self, name: str) -> bytes | None:
            raise StoreError("away")

        async def remove(self, name: str) -> bool:
            raise StoreError("away")

    async def do(client: httpx2.AsyncClient, gateway: Any) -> None:
        gateway.conversations._documents = Away()
        upstream.add(says("Hello"))
        assert (await client.post("/v1/responses", json={"model": "tiny", "input": "Hi"})).status_code == 200
        assert "cannot be continued" in caplog.text
        on = {"model": "tiny", "input": "Hi", "previous_response_id": "x"}
        assert (await client.post("/v1/responses", json=on)).status_code == 503
        assert (await client.get("/v1/responses/x")).status_code == 503
        assert (await client.delete("/v1/responses/x")).status_code == 503

    run(config_of(upstream), do)


# ------------------------------------------------------------------------------------ counts


def test_tokens_are_counted_where_the_server_does(upstream: ReplayServer) -> None:
    async def do(client: httpx2.AsyncClient, _: Any) -> None:
        upstream.add(Answer.of_json({"input_tokens": 7}))
        answer = await client.post("/v1/messages/count_tokens", json=COUNTED)
        assert answer.json() == {"input_tokens": 7}
        (asked,) = upstream.requests
        assert (asked.path, asked.json()) == ("/v1/messages/count_tokens", {**COUNTED, "model": "claude"})
        assert asked.headers["x-api-key"] == "sk-secret"
        assert "anthropic-version" in asked.headers

    url = upstream.url
    run(
        config_of(
            upstream,
            models=f"tiny: {{provider: anthropic, model: claude, api_key: sk-secret, base_url: '{url}'}}",
        ),
        do,
    )


@pytest.mark.parametrize(
    ("more", "answer", "tokens"),
    [
        ("", Answer.of_json({"input_tokens": 7}), 7),
        ("", Answer.failure(404), 3),
        ("", Answer.failure(405), 3),
        (", counts_tokens: false", None, 3),
        ("ollama", None, 3),
    ],
)
def test_tokens_are_estimated_where_the_server_does_not_count(
    upstream: ReplayServer, more: str, answer: Answer | None, tokens: int
) -> None:
    provider, more = ("vllm", more) if more != "ollama" else (more, "")
    if answer is not None:
        upstream.add(answer)

    async def do(client: httpx2.AsyncClient, _: Any) -> None:
        counted = {"model": "tiny", "messages": [{"role": "user", "content": "123456789"}]}
        said = await client.post("/v1/messages/count_tokens", json=counted)
        assert said.json() == {"input_tokens": tokens}
        assert said.headers.get("x-crosswalk-estimated") == ("input_tokens" if tokens == 3 else None)

    run(config_of(upstream, models=f"tiny: {{provider: {provider}, base_url: '{upstream.url}'{more}}}"), do)
    assert len(upstream.requests) == (answer is not None)


def test_a_client_is_not_told_where_the_server_is_that_does_not_count(upstream: ReplayServer) -> None:
    async def do(client: httpx2.AsyncClient, _: Any) -> None:
        answer = await client.post("/v1/messages/count_tokens", json=COUNTED)
        assert answer.status_code == 502
        assert answer.json()["error"]["message"] == "the server of this model cannot be reached"

    away = "tiny: {provider: anthropic, model: claude, api_key: sk-secret, base_url: 'http://127.0.0.1:1'}"
    run(config_of(upstream, models=away), do)


def test_a_server_that_was_said_to_count_may_fail(upstream: ReplayServer) -> None:
    async def do(client: httpx2.AsyncClient, _: Any) -> None:
        upstream.add(Answer.of_json({"input_tokens": "7"})).add(Answer.failure(404))
        upstream.add(Answer((b"[]",))).add(Answer.of_json({}), Reset(after_bytes=0))
        upstream.add(Answer.of_json({"input_tokens": -1}))
        for status in (502, 404, 502, 502, 502):
            answer = await client.post("/v1/messages/count_tokens", json=COUNTED)
            assert (answer.status_code, answer.json()["type"]) == (status, "error")
        wrong = await client.post(
            "/v1/messages/count_tokens", content=b"{", headers={"content-type": "application/json"}
        )
        assert (wrong.status_code, wrong.json()["error"]["type"]) == (400, "invalid_request_error")

    run(
        config_of(
            upstream, models=f"tiny: {{provider: vllm, counts_tokens: true, base_url: '{upstream.url}'}}"
        ),
        do,
    )


VIDEO = {"fileData": {"mimeType": "video/mp4", "fileUri": "https://example.org/a.mp4"}}


@pytest.mark.parametrize("provider", ["anthropic", "openai_responses"])
def test_content_that_no_server_of_the_model_counts_is_refused(upstream: ReplayServer, provider: str) -> None:
    """As a request for an answer is."""

    async def do(client: httpx2.AsyncClient, _: Any) -> None:
        for method in ("countTokens", "generateContent"):
            body = {"contents": [{"role": "user", "parts": [VIDEO]}]}
            refused = await client.post(f"/v1beta/models/tiny:{method}", json=body)
            assert (refused.status_code, refused.json()["error"]["status"]) == (400, "INVALID_ARGUMENT")
            assert "a video cannot be sent" in refused.json()["error"]["message"]

    target = f"tiny: {{provider: {provider}, model: m, api_key: sk-secret, base_url: '{upstream.url}'}}"
    run(config_of(upstream, models=target), do)
    assert not upstream.requests


def test_what_a_server_says_instead_of_a_count_is_told_as_that_of_an_answer(upstream: ReplayServer) -> None:
    def error(kind: str, message: str) -> dict[str, Any]:
        return {"type": "error", "error": {"type": kind, "message": message}}

    async def do(client: httpx2.AsyncClient, _: Any) -> None:
        upstream.add(Answer.of_json(error("invalid_request_error", "too many of sk-secret"), status=400))
        wrong = await client.post("/v1/messages/count_tokens", json=COUNTED)
        assert (wrong.status_code, wrong.json()["error"]) == (
            400,
            {"type": "invalid_request_error", "message": "too many of <secret>"},
        )
        upstream.add(Answer.failure(429, retry_after=6.5))
        often = await client.post("/v1/messages/count_tokens", json=COUNTED)
        assert (often.status_code, often.headers["retry-after"]) == (429, "7")
        assert often.json()["error"]["type"] == "rate_limit_error"
        upstream.add(Answer.of_json(error("authentication_error", "no"), status=401))
        refused = await client.post("/v1/messages/count_tokens", json=COUNTED)
        assert refused.status_code == 502  # the gateway's key, not the client's

    target = f"tiny: {{provider: anthropic, model: claude, api_key: sk-secret, base_url: '{upstream.url}'}}"
    run(config_of(upstream, models=target), do)
