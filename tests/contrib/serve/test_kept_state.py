"""State that a server keeps for a client is named again only by the key that received it, and only to that server."""

from __future__ import annotations

import asyncio
from typing import Any, NoReturn

import anthropic
import httpx2
import openai
import orjson
import pytest
from openai.types.responses import Response

from contrib_serve import ABOUT, USAGE, Live, asking, config_of, live, says, streams
from converting import EVENTS
from crosswalk.convert import WireForm
from crosswalk.testing.replay import Answer, ReplayServer
from crosswalk_serve import create_app
from crosswalk_serve.config import KeyHash

HI = {"role": "user", "content": "Hi"}
RESPONSES: dict[str, Any] = {"model": "tiny", "input": "Hi"}
MESSAGES: dict[str, Any] = {"model": "tiny", "max_tokens": 9, "messages": [HI]}
CHAT: dict[str, Any] = {"model": "tiny", "messages": [HI]}
TEXT = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "Hello", "annotations": []}]}  # fmt: skip
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "model": "m",
    "output": [TEXT],
}
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "c", "stop_reason": "end_turn", "stop_sequence": None,
           "content": [{"type": "text", "text": "Hello"}], "usage": {"input_tokens": 1, "output_tokens": 1}}  # fmt: skip
SOUND = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [{"index": 0, "finish_reason": "stop",
         "message": {"role": "assistant", "content": None, "audio": {"id": "kept", "data": "UklGRg==", "transcript": "Hello", "expires_at": 9999999999}}}]}  # fmt: skip
PATHS = {"responses": "/v1/responses", "messages": "/v1/messages", "chat": "/v1/chat/completions"}


def talk(
    upstream: ReplayServer,
    provider: str,
    *asked: tuple[str, str, dict[str, Any]],
    more: str = "",
    also: str = "",
) -> list[httpx2.Response]:
    """The answers to requests, each with its key and its path. The gateway drops what the server cannot express.

    It has *also* another model, whose name at the server follows its own.
    """
    hashes = {name: KeyHash.of(name, b"salt salt") for name in ("alice", "bob")}
    keys = "".join(f"\n  {name}: {{hash: '{hash}'}}" for name, hash in hashes.items())
    server = f"provider: {provider}, base_url: '{upstream.url}', api_key: k"
    name, _, model = also.partition(": ")
    models = f"tiny: {{{server}}}" + (f"\n  {name}: {{{server}, model: {model}}}" if also else "")
    app = create_app(config_of(upstream, f"on_unsupported: drop\n{more}keys:{keys}", models))

    async def main() -> list[httpx2.Response]:
        async with app.router.lifespan_context(app), asking(app) as client:
            return [
                await client.post(PATHS[path], json=body, headers={"authorization": f"Bearer {key}"})
                for key, path, body in asked
            ]

    return asyncio.run(main())


def test_a_turn_is_named_as_the_client_has_it(upstream: ReplayServer) -> None:
    late, system = {"role": "system", "content": "Late."}, {"role": "system", "content": "Be."}
    bodies = [
        ("responses", {"model": "tiny", "instructions": "Be.", "input": [HI, late, HI]}),
        ("messages", {"model": "tiny", "system": "Be.", "messages": [HI, late, HI], "max_tokens": 9}),
        ("chat", {"model": "tiny", "messages": [system, HI, late, HI]}),
    ]
    upstream.add(says("Fine."), times=None)
    answers = talk(upstream, "perplexity", *(("alice", path, body) for path, body in bodies))
    places = [answer.headers["x-crosswalk-dropped"].partition(": moved")[0] for answer in answers]
    assert places == ["request.input[1]", "request.messages[1]", "request.messages[2]"]


CALLING = {"type": "function_call", "id": "fc_1", "call_id": "c_1", "name": "f", "arguments": "{}", "status": "completed"}  # fmt: skip


@pytest.mark.parametrize("before", [[], [HI]], ids=["alone", "after words"])
def test_a_turn_behind_an_unanswered_call_is_named_as_the_client_has_it(
    upstream: ReplayServer, before: list[Any]
) -> None:
    """The result that the call gets moves the turns after it, and no place of the client's."""
    upstream.add(Answer.of_json(RESPONSE))
    upstream.add(Answer.of_json({**RESPONSE, "id": "resp_2", "output": [CALLING]}), times=None)
    reference = {"type": "item_reference", "id": "msg_1"}
    last = {**RESPONSES, "previous_response_id": "resp_2", "input": [*before, reference]}
    bodies = (RESPONSES, RESPONSES, last)
    *_, answer = talk(upstream, "openai_responses", *(("alice", "responses", body) for body in bodies))
    place, _, reason = answer.headers["x-crosswalk-dropped"].partition(": ")
    assert (answer.status_code, place) == (200, f"request.input[{len(before)}]")
    assert reason.startswith("the API does not continue an answer")


SILENT_TURNS = [
    ("perplexity", "messages", {**MESSAGES, "inference_geo": "us"}, says("Fine.")),
    ("anthropic", "chat", {**CHAT, "store": False}, Answer.of_json(MESSAGE)),
]


@pytest.mark.parametrize(("provider", "path", "fields", "said"), SILENT_TURNS)
def test_a_turn_behind_a_silent_one_is_named_as_the_client_has_it(
    upstream: ReplayServer, provider: str, path: str, fields: dict[str, Any], said: Answer
) -> None:
    """The silent one is left out for a server of another form."""
    silent, late = {"role": "user", "content": []}, {"role": "system", "content": "Late."}
    upstream.add(said)
    body = {**fields, "messages": [HI, silent, HI, late, HI]}
    (answer,) = talk(upstream, provider, ("alice", path, body))
    assert "request.messages[3]: moved" in answer.headers["x-crosswalk-dropped"]


REFERENCE = {"type": "container_reference", "container_id": "kept"}
CODE = {
    "type": "code_interpreter_call",
    "id": "ci_1",
    "container_id": "kept",
    "code": "1",
    "status": "completed",
    "outputs": [],
}
SHELL = {
    "type": "shell_call",
    "id": "sh_1",
    "call_id": "c_1",
    "status": "completed",
    "environment": REFERENCE,
    "action": {"commands": ["ls"]},
}

KEPT = [
    ("openai_responses", "responses", RESPONSES, {**RESPONSE, "output": [CODE, TEXT]}, {"tools": [{"type": "code_interpreter", "container": "kept"}]}),
    ("openai_responses", "responses", RESPONSES, {**RESPONSE, "output": [SHELL, TEXT]}, {"tools": [{"type": "shell", "environment": REFERENCE}]}),
    ("openai_responses", "responses", RESPONSES, {**RESPONSE, "continuation_token": "kept"}, {"continuation_token": "kept"}),
    ("openai_responses", "responses", RESPONSES, {**RESPONSE, "conversation": {"id": "kept"}}, {"conversation": "kept"}),
    ("openai_responses", "responses", RESPONSES, {**RESPONSE, "conversation": {"id": "kept"}}, {"conversation": {"id": "kept"}}),
    ("anthropic", "messages", MESSAGES, {**MESSAGE, "container": {"id": "kept", "expires_at": "2999-01-01T00:00:00Z"}}, {"container": "kept"}),
    ("openai", "chat", CHAT, SOUND, {"messages": [HI, {"role": "assistant", "audio": {"id": "kept"}}, HI]}),
    ("anthropic", "messages", {**MESSAGES, "thread": {"type": "create"}}, {**MESSAGE, "id": "kept"},
     {"thread": {"type": "continue", "previous_message_id": "kept"}}),
]  # fmt: skip


@pytest.mark.parametrize(("provider", "path", "first", "answer", "names"), KEPT)
def test_a_key_goes_on_with_what_its_server_keeps_for_it(
    upstream: ReplayServer, provider: str, path: str, first: Any, answer: Any, names: Any
) -> None:
    for _ in range(2):
        upstream.add(Answer.of_json(answer))
    second = {**{key: first[key] for key in first if key != "thread"}, **names}
    one, other, mine = talk(
        upstream, provider, ("alice", path, first), ("bob", path, second), ("alice", path, second)
    )
    assert (one.status_code, other.status_code, mine.status_code) == (200, 400, 200), other.text
    (name,) = names
    tool = names.get("tools", [{}])[0].get("type")
    path = {
        "messages": "messages[1].audio",
        "tools": f"tools[0].{'environment' if tool == 'shell' else 'container'}",
    }.get(name, name)
    error = other.json()["error"]
    assert error.get("param", path) == path
    assert error["message"].replace("`", "").startswith(f"{path}: this key has not received it")
    sent = [request.json() for request in upstream.requests]
    assert len(sent) == 2
    assert sent[1][name] == names[name]


IMAGE = {"type": "image_generation_call", "id": "kept", "status": "completed", "result": "aGk="}
APPROVAL = {"type": "mcp_approval_request", "id": "kept", "server_label": "s", "name": "n", "arguments": "{}"}
APPROVED = {"type": "mcp_approval_response", "approval_request_id": "kept", "approve": True}


@pytest.mark.parametrize(
    ("given", "named", "place"),
    [
        (IMAGE, {"type": "image_generation_call", "id": "kept"}, "input[1]"),
        (IMAGE, {"type": "image_generation_call", "id": "kept", "result": None}, "input[1]"),
        (CODE, CODE, "input[1].container_id"),
        (SHELL, SHELL, "input[1].environment.container_id"),
        (APPROVAL, APPROVED, "input[1].approval_request_id"),
    ],
)
@pytest.mark.parametrize("store", [None, False])
def test_an_item_names_only_what_its_key_has_received(
    upstream: ReplayServer, given: Any, named: Any, place: str, store: bool | None
) -> None:
    upstream.add(Answer.of_json({**RESPONSE, "output": [given]}), times=None)
    first = {**RESPONSES, "store": store}
    second = {**first, "input": [HI, named, HI]}
    asked = [(who, "responses", body) for who, body in (("alice", first), ("bob", second), ("alice", second))]
    _, other, mine = talk(upstream, "openai_responses", *asked)
    is_item = place == "input[1]"
    assert (other.status_code, mine.status_code) == (404 if is_item else 400, 200), mine.text
    assert other.json()["error"]["param"] == place
    assert ("Item with id 'kept' not found" in other.json()["error"]["message"]) is is_item
    _, second_sent = upstream.requests
    assert second_sent.json()["input"][1] == named


def test_an_item_that_says_all_may_be_of_anybody(upstream: ReplayServer) -> None:
    """Its id is a label. An approval may answer a request that the same conversation holds."""
    upstream.add(Answer.of_json(RESPONSE), times=None)
    whole = [HI, IMAGE, {**SHELL, "environment": {"type": "local"}}, {**APPROVAL, "id": "x"}]
    whole.append({**APPROVED, "approval_request_id": "x"})
    (answer,) = talk(upstream, "openai_responses", ("bob", "responses", {**RESPONSES, "input": whole}))
    assert answer.status_code == 200, answer.text
    (sent,) = upstream.requests
    assert sent.json()["input"] == whole


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("responses", {**RESPONSES, "prompt": {"id": "p"}}),
        ("responses", {**RESPONSES, "conversation": "c"}),
        ("responses", {**RESPONSES, "input": [HI, {"type": "item_reference", "id": "rs_1"}]}),
        ("responses", {**RESPONSES, "input": [{"id": "rs_1"}]}),
        ("responses", {**RESPONSES, "input": [HI, {"type": None, "id": "rs_1"}]}),
        ("responses", {**RESPONSES, "continuation_token": "c"}),
        ("responses", {**RESPONSES, "tools": [{"type": "code_interpreter", "container": "c"}]}),
        ("responses", {**RESPONSES, "tools": [{"type": "shell", "environment": REFERENCE}]}),
        ("messages", {**MESSAGES, "continuation_token": "c"}),
        ("messages", {**MESSAGES, "container": "c"}),
        ("messages", {**MESSAGES, "thread": {"type": "create"}}),
    ],
)
@pytest.mark.parametrize("is_own", [False, True])
def test_what_no_server_has_given_is_refused(
    upstream: ReplayServer, path: str, body: Any, is_own: bool
) -> None:
    own = {"responses": "openai_responses", "messages": "anthropic"}[path]
    if body.get("thread") == {"type": "create"}:
        is_own = False  # Anthropic's server begins a thread
    (answer,) = talk(upstream, own if is_own else "vllm", ("alice", path, body))
    assert answer.status_code == (404 if isinstance(body.get("input"), list) else 400)
    (name,) = set(body) - {"model", "max_tokens", "messages", "input"} or {"input[0]", "input[1]"} & {
        part.strip(":") for part in answer.json()["error"]["message"].split()
    }
    assert name in answer.json()["error"]["message"]
    assert not upstream.requests


def test_without_the_store_nothing_is_kept_for_sure(
    upstream: ReplayServer, caplog: pytest.LogCaptureFixture
) -> None:
    upstream.add(Answer.of_json({**MESSAGE, "container": {"id": "kept"}}))
    away = "redis: {url: 'redis://127.0.0.1:1/0'}\n"
    one, two = talk(
        upstream,
        "anthropic",
        ("alice", "messages", MESSAGES),
        ("alice", "messages", {**MESSAGES, "container": "kept"}),
        more=away,
    )
    assert (one.status_code, two.status_code) == (200, 503)
    assert "the state that its server keeps cannot be stored" in caplog.text
    assert "temporarily unavailable" in two.json()["error"]["message"]


def test_an_item_without_an_id_cannot_be_named(upstream: ReplayServer) -> None:
    item = {**TEXT, "id": None}
    upstream.add(Answer.of_json({**RESPONSE, "output": [item, TEXT]})).add(Answer.of_json(RESPONSE))
    named = {**RESPONSES, "input": [HI, {"type": "item_reference", "id": "msg_1"}, HI]}
    one, two = talk(
        upstream, "openai_responses", ("alice", "responses", RESPONSES), ("alice", "responses", named)
    )
    assert (one.status_code, two.status_code) == (200, 200)
    assert upstream.requests[-1].json()["input"] == [HI, TEXT, HI]


def test_servers_with_several_keys_keep_nothing_for_sure(upstream: ReplayServer) -> None:
    models = f"tiny: [{{provider: anthropic, base_url: '{upstream.url}', api_key: a}}, {{provider: anthropic, base_url: '{upstream.url}', api_key: b}}]"
    app = create_app(config_of(upstream, "", models))

    async def main() -> httpx2.Response:
        async with app.router.lifespan_context(app), asking(app) as client:
            return await client.post("/v1/messages", json={**MESSAGES, "container": "c"})

    assert "container: this key has not received it" in asyncio.run(main()).json()["error"]["message"]
    assert not upstream.requests


@pytest.mark.parametrize(
    ("provider", "path", "first", "answer", "names"),
    [one for one in KEPT if one[-1].keys() & {"thread", "conversation", "container"}],
)
def test_one_of_several_servers_goes_on_with_what_it_keeps(
    upstream: ReplayServer, provider: str, path: str, first: Any, answer: Any, names: Any
) -> None:
    server = f"{{provider: {provider}, base_url: '{upstream.url}', api_key: "
    app = create_app(config_of(upstream, "", f"tiny: [{server}a, model: a}}, {server}b, model: b}}]"))
    second = {**{key: first[key] for key in first if key != "thread"}, **names}
    upstream.add(Answer.failure(503)).add(Answer.of_json(answer))  # the second server gives it
    upstream.add(Answer.of_json(answer)).add(Answer.failure(503))

    async def main() -> list[int]:
        async with app.router.lifespan_context(app), asking(app) as client:
            return [
                (await client.post(PATHS[path], json=body)).status_code for body in (first, second, second)
            ]

    assert asyncio.run(main()) == [200, 200, 503]
    assert [request.json()["model"] for request in upstream.requests] == ["a", "b", "b", "b"]


CONVERSATION = {**RESPONSE, "conversation": {"id": "kept"}}
CONTAINER = {**MESSAGE, "container": {"id": "kept", "expires_at": "2999-01-01T00:00:00Z"}}
GOES_ON = [
    ("openai_responses", CONVERSATION, {"conversation": "kept"}),
    ("openai_responses", {**RESPONSE, "previous_response_id": "kept"}, {"previous_response_id": "kept"}),
    ("anthropic", CONTAINER, {"container": "kept"}),
]


def go_on(
    upstream: ReplayServer, provider: str, answers: list[Answer], models: list[str], form: str = "responses"
) -> list[dict[str, Any]]:
    """The requests that servers got of a conversation that goes from model to model, which have several servers."""
    for answer in answers:
        upstream.add(answer)
    server = f"{{provider: {provider}, base_url: '{upstream.url}', api_key: "
    named = f"one: {server}a}}\n  other: {server}b}}\n  both: [{server}a}}, {server}b}}]"
    app = create_app(config_of(upstream, "on_unsupported: drop", named))

    async def main() -> None:
        async with app.router.lifespan_context(app), asking(app) as client:
            previous, messages = None, [HI]
            for model in models:
                body = {
                    "responses": {"model": model, "input": "Hi", "previous_response_id": previous},
                    "chat": {"model": model, "messages": messages},
                }[form]
                answer = await client.post(PATHS[form], json=body)
                assert answer.status_code == 200, answer.text
                previous = answer.json()["id"]
                if form == "chat":
                    messages = [*messages, answer.json()["choices"][0]["message"], HI]

    asyncio.run(main())
    return [request.json() for request in upstream.requests]


def answers_of(answer: dict[str, Any], number: int = 3) -> list[Answer]:
    """So many answers like *answer*, each with ids of its own."""
    outputs = [
        [{**item, "id": f"{item['id']}_{n}"} for item in answer.get("output", ())] for n in range(number)
    ]
    return [
        Answer.of_json({**answer, "id": f"answer_{n}", **({"output": output} if output else {})})
        for n, output in enumerate(outputs)
    ]


def texts_of(body: dict[str, Any]) -> list[str]:
    """The texts of the conversation in a request."""
    turns = body.get("input") or body["messages"]
    return ["Hello" if turn["role"] == "assistant" else "Hi" for turn in turns if "role" in turn]


@pytest.mark.parametrize(("provider", "answer", "names"), GOES_ON)
def test_only_the_server_that_keeps_a_conversation_goes_on_with_it(
    upstream: ReplayServer, provider: str, answer: Any, names: dict[str, str]
) -> None:
    bodies = go_on(upstream, provider, answers_of(answer), ["one", "one", "other"])
    (name,) = names
    assert [body.get(name) for body in bodies] == [None, "kept", None]
    assert texts_of(bodies[2]) == ["Hi", "Hello", "Hi", "Hello", "Hi"]


@pytest.mark.parametrize(("provider", "answer", "names"), GOES_ON)
def test_a_server_that_stands_in_gets_the_whole_conversation(
    upstream: ReplayServer, provider: str, answer: Any, names: dict[str, str]
) -> None:
    answers = [Answer.of_json(answer), Answer.failure(503), Answer.of_json({**answer, "id": "second"})]
    bodies = go_on(upstream, provider, answers, ["both", "both"])
    (name,) = names
    assert len(bodies) == 3
    assert [body.get(name) for body in bodies] == [None, None, None]
    assert texts_of(bodies[2]) == ["Hi", "Hello", "Hi"]


def test_a_conversation_that_the_client_brings_back_is_whole_for_another_server(
    upstream: ReplayServer,
) -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2VhbGVk"}
    answer = {**CONVERSATION, "output": [thought, TEXT]}
    bodies = go_on(upstream, "openai_responses", answers_of(answer), ["one", "one", "other"], "chat")
    assert [body.get("conversation") for body in bodies] == [None, "kept", None]
    assert texts_of(bodies[2]) == ["Hi", "Hello", "Hi", "Hello", "Hi"]


def test_a_reference_is_the_item_that_the_gateway_stores(upstream: ReplayServer) -> None:
    """So it does not matter which server answers."""
    for answer in (says("Hello", reasoning_content="Hm."), says("Fine."), says("Well."), says("Said.")):
        upstream.add(answer)
    first = {**RESPONSES, "input": [HI]}

    def with_references(ids: list[str]) -> dict[str, Any]:
        return {**RESPONSES, "input": [HI, *({"type": "item_reference", "id": id} for id in ids), HI]}

    app = create_app(config_of(upstream, "on_unsupported: drop"))

    async def main() -> list[httpx2.Response]:
        async with app.router.lifespan_context(app), asking(app) as client:
            one = await client.post("/v1/responses", json=first)
            ids = [item["id"] for item in one.json()["output"]]
            two = await client.post("/v1/responses", json=with_references(ids))
            unstored = await client.post("/v1/responses", json={**first, "store": False})
            three = await client.post(
                "/v1/responses", json=with_references([item["id"] for item in unstored.json()["output"]])
            )
            broken = await client.post(
                "/v1/responses", content=b'{"item_reference"', headers={"content-type": "application/json"}
            )
            listed = await client.post("/v1/responses", json=["item_reference"])
            text = await client.post("/v1/responses", json={**RESPONSES, "input": "item_reference"})
            return [one, two, unstored, three, broken, listed, text]

    answers = asyncio.run(main())
    assert [answer.status_code for answer in answers] == [200, 200, 200, 404, 400, 400, 200]
    assert "input[1]" in answers[3].json()["error"]["message"]
    assert [message.get("content") for message in upstream.requests[1].json()["messages"]] == [
        "Hi",
        "Hello",
        "Hi",
    ]


CALLS = [
    {"id": f"call_{number}", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    for number in range(5)
]


def test_an_item_lives_as_long_as_its_answer(upstream: ReplayServer) -> None:
    """However many items the answers have, and however many answers that nobody stores come between."""
    upstream.add(says("Hello", tool_calls=CALLS), times=None)
    app = create_app(config_of(upstream, "on_unsupported: drop\nresponses: {entries: 2}"))
    own = {"type": "message", "role": "user", "id": "msg_own", "content": "Hi"}

    async def main() -> None:
        async with app.router.lifespan_context(app), asking(app) as client:

            async def asked(**more: Any) -> httpx2.Response:
                return await client.post("/v1/responses", json={**RESPONSES, **more})

            async def kept(answer: httpx2.Response, ids: list[str]) -> list[int]:
                found = [await client.get(f"/v1/responses/{answer.json()['id']}")]
                for id in ids:
                    found.append(await asked(input=[{"type": "item_reference", "id": id}, HI], store=False))
                return [one.status_code for one in found]

            first = await asked(input=[own])
            ids = [*(item["id"] for item in first.json()["output"]), "msg_own"]
            await asked(input="Hi")
            assert await kept(first, ids) == [200] * (len(ids) + 1)
            await asked(input="Hi")
            assert await kept(first, ids) == [404] * (len(ids) + 1)

    asyncio.run(main())


def test_the_items_of_a_deleted_answer_are_deleted(upstream: ReplayServer) -> None:
    """Those of the client's input, too. Those of an earlier answer stay."""
    upstream.add(says("Hello"), times=None)
    app = create_app(config_of(upstream, "on_unsupported: drop"))
    own = {"type": "message", "role": "user", "id": "msg_own", "content": "Hi"}

    async def main() -> None:
        async with app.router.lifespan_context(app), asking(app) as client:
            one = (await client.post("/v1/responses", json=RESPONSES)).json()
            two_fields = {**RESPONSES, "input": [own], "previous_response_id": one["id"]}
            two = (await client.post("/v1/responses", json=two_fields)).json()
            ids = [one["output"][0]["id"], two["output"][0]["id"], "msg_own"]
            for expected in ([200, 200, 200], [200, 404, 404]):
                turns = [[{"type": "item_reference", "id": id}, HI] for id in ids]
                told = [
                    await client.post("/v1/responses", json={**RESPONSES, "input": one, "store": False})
                    for one in turns
                ]
                assert [one.status_code for one in told] == expected
                await client.delete(f"/v1/responses/{two['id']}")
            assert (await client.delete(f"/v1/responses/{two['id']}")).status_code == 404

    asyncio.run(main())


@pytest.mark.parametrize("reference", [{}, {"id": 5}, {"id": None}, {"id": ""}], ids=str)
@pytest.mark.parametrize("path", ["/v1/responses", "/v1/responses/input_tokens"])
def test_a_reference_without_an_id_is_refused_by_its_path(
    upstream: ReplayServer, path: str, reference: dict[str, Any]
) -> None:
    app = create_app(config_of(upstream, "on_unsupported: drop"))
    asked = {**RESPONSES, "input": [HI, {"type": "item_reference", **reference}]}

    async def main() -> httpx2.Response:
        async with app.router.lifespan_context(app), asking(app) as client:
            return await client.post(path, json=asked)

    answer = asyncio.run(main())
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "input[1].id")


def test_a_page_that_fails_says_so_in_the_form_of_the_api(
    gateway: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> NoReturn:
        raise LookupError("a fault")

    monkeypatch.setattr(gateway.gateway, "models", fail)
    with httpx2.Client() as client:
        answer = client.get(f"{gateway.url}/v1/models")
        # The HTTP server closes the connection, so that a next request must not be sent on it. No SDK repeats this one.
        assert (answer.headers["connection"], answer.headers["x-should-retry"]) == ("close", "false")
        assert client.get(f"{gateway.url}/healthz").status_code == 200
    assert (answer.status_code, answer.json()["error"]["message"]) == (500, "the gateway failed")


def test_a_refused_thread_has_the_code_that_anthropic_s_sdks_look_for(upstream: ReplayServer) -> None:
    (answer,) = talk(upstream, "vllm", ("alice", "messages", {**MESSAGES, "thread": {"type": "create"}}))
    details = answer.json()["error"]["details"]
    assert details == {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
    continued = {**MESSAGES, "thread": {"type": "continue", "previous_message_id": "x"}}
    (answer,) = talk(upstream, "anthropic", ("alice", "messages", continued))
    assert answer.json()["error"]["details"]["error_code"] == "thread_not_found"


def test_the_tool_runner_goes_on_without_a_thread(gateway: Live, upstream: ReplayServer) -> None:
    """Over three turns, with the reasoning before each call."""
    cities = ["Bern", "Basel"]
    for city in cities:
        function = {"name": "weather", "arguments": f'{{"city":"{city}"}}'}
        call = {"id": f"call_{city}", "type": "function", "function": function}
        upstream.add(says("", tool_calls=[call], reasoning=f"I think of {city}."))
    upstream.add(says("Mild."))

    @anthropic.beta_tool
    def weather(city: str) -> str:
        """The weather in a city."""
        return f"{city} is mild."

    with anthropic.Anthropic(base_url=gateway.url, api_key="none", max_retries=0) as client:
        asked: Any = [HI]
        runner = client.beta.messages.tool_runner(model="tiny", max_tokens=9, messages=asked, tools=[weather])
        last = runner.until_done()
    assert [getattr(block, "text", None) for block in last.content] == ["Mild."]
    messages = upstream.requests[-1].json()["messages"]
    assert [message["role"] for message in messages] == ["user", *["assistant", "tool"] * 2]
    assert [message["content"] for message in messages[2::2]] == [f"{city} is mild." for city in cities]
    assert [message["reasoning"] for message in messages[1::2]] == [f"I think of {city}." for city in cities]


def _reasoned(id: str, **more: Any) -> dict[str, Any]:
    reasoning = {"type": "reasoning", "id": id, "summary": [], **more}
    return {**RESPONSE, "id": f"resp_{id}", "output": [reasoning, TEXT]}


SUMMARY = {"summary": [{"type": "summary_text", "text": "Hm."}]}
SEALED = {"encrypted_content": "gAAAA"}


@pytest.mark.parametrize(("more", "store"), [({}, True), (SEALED, True), (SEALED, False), (SUMMARY, True)])
def test_reasoning_goes_only_to_the_server_that_gave_it(
    upstream: ReplayServer, more: dict[str, Any], *, store: bool
) -> None:
    """Another address, or another key for the same, is another server. The text goes on, and the loss is named."""
    upstream.add(Answer.of_json(_reasoned("rs_1", **more)), times=None)
    own = f"provider: openai_responses, base_url: '{upstream.url}', model: m"
    models = (
        f"tiny: {{{own}, api_key: k}}\n  key: {{{own}, api_key: other}}\n"
        f"  path: {{{own.replace(upstream.url, upstream.url + '/v1')}, api_key: k}}\n"
        f"  pool: [{{{own}, api_key: k}}, {{{own}, api_key: other}}]"
    )
    app = create_app(config_of(upstream, "on_unsupported: drop", models))

    async def main() -> dict[str, httpx2.Response]:
        async with app.router.lifespan_context(app), asking(app) as client:
            first = await client.post(PATHS["responses"], json={**RESPONSES, "store": store})
            history = [
                {"role": "user", "content": "Hi"},
                *first.json()["output"],
                {"role": "user", "content": "On"},
            ]
            body = {"input": history, "store": store}
            names = ("tiny", "key", "path", "pool")
            return {
                name: await client.post(PATHS["responses"], json={**body, "model": name}) for name in names
            }

    answers = asyncio.run(main())
    assert {name: answer.status_code for name, answer in answers.items()} == dict.fromkeys(answers, 200)
    sent = dict(zip(answers, (request.json()["input"] for request in upstream.requests[1:]), strict=True))
    assert {"type": "reasoning", "id": "rs_1", "summary": [], **more} in sent["tiny"]
    for name in ("key", "path", "pool"):
        assert "rs_1" not in str(sent[name])
        assert "gAAAA" not in str(sent[name])
        assert "Hello" in str(sent[name])
        assert "at another address" in answers[name].headers["x-crosswalk-dropped"]


DOWN = Answer.of_json({"error": {"message": "busy", "type": "server_error"}}, status=503)


@pytest.mark.parametrize("more", [{}, SEALED, SUMMARY])
def test_reasoning_of_one_member_of_a_pool_goes_to_no_other(
    upstream: ReplayServer, more: dict[str, Any]
) -> None:
    answer = Answer.of_json(_reasoned("rs_1", **more))
    upstream.add(answer).add(Answer.of_json(RESPONSE)).add(DOWN).add(Answer.of_json(RESPONSE))
    own = f"provider: openai_responses, base_url: '{upstream.url}', model: m"
    models = f"tiny: [{{{own}, api_key: k}}, {{{own}, api_key: other}}]"
    app = create_app(config_of(upstream, "on_unsupported: drop", models))

    async def main() -> list[httpx2.Response]:
        async with app.router.lifespan_context(app), asking(app) as client:
            first = await client.post(PATHS["responses"], json=RESPONSES)
            body = {**RESPONSES, "input": [HI, *first.json()["output"], HI]}
            by_id = {**RESPONSES, "previous_response_id": first.json()["id"]}
            return [first, *[await client.post(PATHS["responses"], json=one) for one in (body, by_id)]]

    answers = asyncio.run(main())
    assert [one.status_code for one in answers] == [200] * 3, answers[-1].text
    sent = [(request.headers["authorization"], str(request.json())) for request in upstream.requests]
    assert [key for key, _ in sent] == ["Bearer k"] * 3 + ["Bearer other"]
    assert ["rs_1" in body for _, body in sent[1:]] == [True, True, False]
    assert "gAAAA" not in sent[-1][1]
    assert "Hello" in sent[-1][1]
    named = answers[-1].headers["x-crosswalk-dropped"]
    assert named.startswith("request.previous_response_id: ")
    assert "at another address" in named


def test_reasoning_that_no_server_stores_is_not_named_by_its_id(upstream: ReplayServer) -> None:
    upstream.add(Answer.of_json(_reasoned("rs_1")), times=None)
    first = {**RESPONSES, "store": False}
    second = {**first, "input": [HI, *_reasoned("rs_1")["output"], HI]}
    talk(upstream, "openai_responses", ("alice", "responses", first), ("alice", "responses", second))
    assert "rs_1" not in str(upstream.requests[1].json())


@pytest.mark.parametrize(("more", "is_sent"), [({}, False), (SEALED, True)])
def test_reasoning_that_no_key_has_received_goes_on_if_it_is_whole(
    more: dict[str, Any], *, is_sent: bool
) -> None:
    asked = {**RESPONSES, "input": [HI, *_reasoned("rs_1", **more)["output"], HI]}
    with ReplayServer() as server:
        server.add(Answer.of_json(RESPONSE))
        (answer,) = talk(server, "openai_responses", ("bob", "responses", asked))
    assert answer.status_code == 200
    assert ("rs_1" in str(server.requests[0].json())) is is_sent


SAID = {"role": "assistant", "content": "Hello"}
CONTENT = {"content": [{"type": "reasoning_text", "text": "zz"}]}
COMPACTION = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA"}


@pytest.mark.parametrize("text", [[TEXT], []])
@pytest.mark.parametrize("more", [{}, {"summary": None}, SUMMARY, CONTENT, SEALED])
@pytest.mark.parametrize("given", [{}, SEALED])
def test_reasoning_that_another_key_has_received_is_left_out(
    upstream: ReplayServer, given: dict[str, Any], more: dict[str, Any], text: list[Any]
) -> None:
    """The id would show the key what a server keeps for another one, whatever stands beside it."""
    upstream.add(Answer.of_json(_reasoned("rs_1", **given)), times=None)
    named = {**_reasoned("rs_1")["output"][0], **more}
    second = {**RESPONSES, "input": [HI, named, *text, HI]}
    asked = [(who, "responses", body) for who, body in (("alice", RESPONSES), ("bob", second))]
    _, other = talk(upstream, "openai_responses", *asked)
    assert other.status_code == 200, other.text
    assert "rs_1" not in str(upstream.requests[1].json())
    assert "request.input[1]: " in other.headers["x-crosswalk-dropped"]


@pytest.mark.parametrize("fields", [{"summary": None}, {}, {"summary": []}])
def test_a_key_names_reasoning_that_it_has_received(upstream: ReplayServer, fields: dict[str, Any]) -> None:
    upstream.add(Answer.of_json(_reasoned("rs_1")), times=None)
    second = {**RESPONSES, "input": [HI, {"type": "reasoning", "id": "rs_1", **fields}, TEXT, HI]}
    asked = [(who, "responses", body) for who, body in (("alice", RESPONSES), ("alice", second))]
    _, mine = talk(upstream, "openai_responses", *asked)
    assert mine.status_code == 200, mine.text
    assert "rs_1" in str(upstream.requests[1].json())


@pytest.mark.parametrize("result", ["", "QkI="])
def test_an_image_that_another_key_has_received_is_refused_or_left_out(
    upstream: ReplayServer, result: str
) -> None:
    upstream.add(Answer.of_json({**RESPONSE, "output": [IMAGE]}), times=None)
    second = {**RESPONSES, "input": [HI, {**IMAGE, "result": result}, HI]}
    asked = [
        (who, "responses", body) for who, body in (("alice", RESPONSES), ("bob", second), ("alice", second))
    ]
    _, other, mine = talk(upstream, "openai_responses", *asked)
    assert (other.status_code, mine.status_code) == (200 if result else 404, 200), other.text
    if result:
        assert "kept" not in str(upstream.requests[1].json())
        assert "a picture" in other.headers["x-crosswalk-dropped"]
    assert "'id': 'kept'" in str(upstream.requests[-1].json())


def test_a_seal_goes_only_to_the_server_that_gave_it(upstream: ReplayServer) -> None:
    """Even without the id of its item, and beside the seal of another server."""
    for seal in ("one", "other"):
        upstream.add(Answer.of_json(_reasoned(f"rs_{seal}", encrypted_content=f"sealed by {seal}")))
    upstream.add(Answer.of_json(RESPONSE), times=None)
    own = f"provider: openai_responses, base_url: '{upstream.url}', model: m"
    models = (
        f"one: {{{own}, api_key: k}}\n  other: {{{own}, api_key: other}}\n"
        f"  pool: [{{{own}, api_key: k}}, {{{own}, api_key: other}}]"
    )
    app = create_app(config_of(upstream, "on_unsupported: drop", models))

    async def main() -> dict[str, httpx2.Response]:
        async with app.router.lifespan_context(app), asking(app) as client:
            items = []
            for name in ("one", "other"):
                answer = await client.post(PATHS["responses"], json={**RESPONSES, "model": name})
                item = dict(answer.json()["output"][0])
                items.append({key: item[key] for key in item if key != "id"})
            questions = {"one": items[:1], "other": items[:1], "pool": [items[0], SAID, items[1]]}
            return {
                name: await client.post(
                    PATHS["responses"], json={"model": name, "input": [HI, *history, SAID, HI]}
                )
                for name, history in questions.items()
            }

    answers = asyncio.run(main())
    assert [answer.status_code for answer in answers.values()] == [200] * 3
    bodies = [str(request.json()) for request in upstream.requests[2:]]
    assert ["sealed by one" in body for body in bodies] == [True, False, False]
    assert "sealed by other" not in bodies[2]
    for name in ("other", "pool"):
        assert "at another address" in answers[name].headers["x-crosswalk-dropped"]


@pytest.mark.parametrize("fields", [("summary", "content"), ("summary",), None])
@pytest.mark.parametrize("summary", [{}, {"reasoning": {"summary": "auto"}}])
def test_the_id_that_the_gateway_gives_to_reasoning_reaches_no_server(
    upstream: ReplayServer, fields: tuple[str, ...] | None, summary: dict[str, Any]
) -> None:
    upstream.add(says("Hello", reasoning_content="Hm.")).add(Answer.of_json(RESPONSE))
    models = (
        f"tiny: {{provider: vllm, base_url: '{upstream.url}'}}\n"
        f"  own: {{provider: openai_responses, base_url: '{upstream.url}', api_key: k}}"
    )
    app = create_app(config_of(upstream, "on_unsupported: drop", models))

    async def main() -> tuple[list[str], httpx2.Response]:
        async with app.router.lifespan_context(app), asking(app) as client:
            first = await client.post(PATHS["responses"], json={**RESPONSES, **summary})
            output = first.json()["output"]
            for number, item in enumerate(output):
                if fields is None:
                    output[number] = {"type": "item_reference", "id": item["id"]}
                elif item["type"] == "reasoning":
                    output[number] = {key: item[key] for key in ("id", "type", *fields) if key in item}
            second = {"model": "own", "input": [HI, *output, HI]}
            ids = [item["id"] for item in output[:-1]]
            return ids, await client.post(PATHS["responses"], json=second)

    ids, answer = asyncio.run(main())
    assert answer.status_code == 200, answer.text
    sent = str(upstream.requests[1].json())
    assert ids
    assert not [id for id in ids if id in sent]
    assert "Hello" in sent
    assert "request.input[1]: reasoning of another provider" in answer.headers["x-crosswalk-dropped"]


def test_a_summary_that_another_key_has_received_is_refused(upstream: ReplayServer) -> None:
    """Without it the server would miss what was said."""
    upstream.add(Answer.of_json({**RESPONSE, "output": [COMPACTION]}), times=None)
    second = {**RESPONSES, "input": [{**COMPACTION, "encrypted_content": "x"}, HI]}
    asked = [(who, "responses", body) for who, body in (("alice", RESPONSES), ("bob", second))]
    _, other = talk(upstream, "openai_responses", *asked)
    assert other.status_code == 400
    assert "only its own server" in other.json()["error"]["message"]


@pytest.mark.parametrize("output", ["text", [7, {"type": "reasoning"}]])
def test_a_field_of_a_chat_that_is_called_output_is_no_item(upstream: ReplayServer, output: Any) -> None:
    upstream.add(Answer.of_json({**orjson.loads(says("Hello").chunks[0]), "output": output}))
    (answer,) = talk(upstream, "vllm", ("alice", "messages", MESSAGES))
    assert answer.status_code == 200


# What an answer of Responses offers: the response, its events, its items, and that it is kept at all.


def thinks(*pieces: str) -> Answer:
    """A streamed chat completion with reasoning and a text."""
    deltas = [*({"reasoning": piece} for piece in pieces), {"content": "Hel"}, {"content": "lo"}]
    choices: list[dict[str, Any]] = [{"index": 0, "delta": one, "finish_reason": None} for one in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    about = {**ABOUT, "object": "chat.completion.chunk"}
    return Answer.of_events(
        [*({**about, "choices": [one]} for one in choices), {**about, "choices": [], "usage": USAGE}]
    )


def responses_stream(answer: dict[str, Any]) -> Answer:
    """A stream of a server of Responses."""
    begun = {**answer, "status": "in_progress", "output": []}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": begun}]
    for number, item in enumerate(answer["output"]):
        about = {"output_index": number, "item": item}
        events += [{"type": f"response.output_item.{word}", **about} for word in ("added", "done")]
    events.append({"type": "response.completed", "response": answer})
    numbered = [{**event, "sequence_number": number} for number, event in enumerate(events)]
    return Answer.of_events(numbered, done=False)


OWN = _reasoned("rs_1", encrypted_content="gAAAA")
ANSWERS: list[tuple[str, bool, Answer]] = [
    ("vllm", False, says("Hello", reasoning="Hm.")),
    ("vllm", True, thinks("H", "m.")),
    ("openai_responses", False, Answer.of_json(OWN)),
    ("openai_responses", True, responses_stream(OWN)),
]
EACH_ANSWER = pytest.mark.parametrize(("provider", "stream", "answer"), ANSWERS)


def client_of(gateway: Live) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="none", max_retries=0)


def gateway_of(upstream: ReplayServer, provider: str, more: str = "on_unsupported: drop") -> Any:
    return live(
        config_of(upstream, more, f"tiny: {{provider: {provider}, base_url: '{upstream.url}', api_key: k}}")
    )


def answer_to(client: openai.OpenAI, *, stream: bool, **more: Any) -> Response:
    """The answer of the model to "Hi", whole or added up from its events."""
    if not stream:
        whole: Response = client.responses.create(**{**RESPONSES, **more})
        return whole
    with client.responses.stream(**{**RESPONSES, **more}) as events:
        return events.get_final_response()


@pytest.mark.untraced
@EACH_ANSWER
def test_each_item_of_an_answer_can_be_referred_to(
    upstream: ReplayServer, provider: str, stream: bool, answer: Answer
) -> None:
    """Also a seal, which the gateway has added."""
    upstream.add(answer).add(says("Fine.") if provider == "vllm" else Answer.of_json(RESPONSE))
    with gateway_of(upstream, provider) as gateway, client_of(gateway) as client:
        first = answer_to(client, stream=stream)
        assert "reasoning" in [item.type for item in first.output]
        references: Any = [{"type": "item_reference", "id": item.id} for item in first.output]
        bare: Any = [{"id": item.id} for item in first.output[-1:]]
        turns: Any = [HI, *references[:-1], *bare, HI]
        client.responses.create(model="tiny", input=turns)
    sent = upstream.requests[-1].json()
    if provider == "vllm":
        thought = {"role": "assistant", "content": "Hello", "reasoning": "Hm."}
        assert sent["messages"] == [HI, thought, HI]
    else:
        assert sent["input"] == [HI, *OWN["output"], HI]


@EACH_ANSWER
def test_a_stored_answer_is_streamed_again(
    upstream: ReplayServer, provider: str, stream: bool, answer: Answer
) -> None:
    upstream.add(answer)
    with gateway_of(upstream, provider) as gateway, client_of(gateway) as client:
        first = answer_to(client, stream=stream)
        events = list(client.responses.retrieve(first.id, stream=True))
        later = list(
            client.responses.retrieve(first.id, stream=True, starting_after=events[2].sequence_number)
        )
        whole = client.responses.retrieve(first.id)
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [event.type for event in events[:2]] == ["response.created", "response.in_progress"]
    begun, ended = events[0], events[-1]
    assert begun.type == "response.created"
    assert (begun.response.status, begun.response.output, begun.response.usage) == ("in_progress", [], None)
    assert ended.type == "response.completed"
    assert ended.response == whole
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == "Hello"
    done = [event.item for event in events if event.type == "response.output_item.done"]
    assert [(item.type, item.id) for item in done] == [(item.type, item.id) for item in first.output]
    assert later == events[3:]


CITATION = {
    "type": "url_citation",
    "url": "https://a.example/",
    "title": "",
    "start_index": 0,
    "end_index": 2,
}
SAID = {"type": "output_text", "text": "Hello", "annotations": [CITATION], "logprobs": []}
COMPLETE = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "temperature": 1.0, "top_p": 1.0}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "c",
    "name": "f",
    "arguments": '{"a":1}',
    "status": "completed",
}
RUN = {
    "type": "custom_tool_call",
    "id": "ctc_1",
    "call_id": "d",
    "name": "run",
    "input": "ls",
    "status": "completed",
}
SEARCH = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "failed",
    "action": {"type": "search", "query": "a", "queries": ["a"]},
}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Sum"}],
           "content": [{"type": "reasoning_text", "text": "Hm."}], "encrypted_content": "gAAAA"}  # fmt: skip
REFUSED = {"type": "refusal", "refusal": "No."}


@pytest.mark.parametrize("ending", ["completed", "incomplete"])
def test_the_events_of_a_stored_answer_are_those_of_the_api(upstream: ReplayServer, ending: str) -> None:
    """Valid by the strict types of the SDK, and they add up to the items, parts and log probabilities that were told."""
    items = [THOUGHT, SEARCH, {**TEXT, "content": [SAID, REFUSED]}, CALL, RUN]
    details = {"reason": "max_output_tokens"} if ending == "incomplete" else None
    answer = {**RESPONSE, **COMPLETE, "output": items, "status": ending, "incomplete_details": details}
    upstream.add(Answer.of_json(answer))
    with (
        gateway_of(upstream, "openai_responses") as gateway,
        httpx2.Client(base_url=gateway.url) as client,
    ):
        client.post("/v1/responses", json=RESPONSES)
        told = client.get("/v1/responses/resp_1").json()
        stream = client.get("/v1/responses/resp_1", params={"stream": "true"}).text
    events = [orjson.loads(line[6:]) for line in stream.split("\n") if line.startswith("data: ")]
    for event in events:
        EVENTS[WireForm.OPENAI_RESPONSES].validate_json(orjson.dumps(event), strict=True)
    assert told["output"] == items
    assert [e["item"] for e in events if e["type"] == "response.output_item.done"] == items
    assert events[-1] == {
        "type": f"response.{ending}",
        "sequence_number": len(events) - 1,
        "response": told,
    }
    parts = [event["part"] for event in events if event["type"] == "response.content_part.done"]
    assert parts == [*THOUGHT["content"], SAID, REFUSED]
    begun = [event["part"] for event in events if event["type"] == "response.content_part.added"]
    assert begun[1] == {**SAID, "text": "", "annotations": []}
    kinds = [event["type"].removeprefix("response.") for event in events if "part" not in event]
    assert kinds == [
        *("created", "in_progress"),
        *("output_item.added", "reasoning_text.delta", "reasoning_text.done"),
        *("reasoning_summary_text.delta", "reasoning_summary_text.done", "output_item.done"),
        *("output_item.added", "web_search_call.in_progress", "web_search_call.searching"),
        *("output_item.done", "output_item.added", "output_text.delta", "output_text.annotation.added"),
        *("output_text.done", "refusal.delta", "refusal.done", "output_item.done", "output_item.added"),
        *("function_call_arguments.delta", "function_call_arguments.done", "output_item.done"),
        *("output_item.added", "custom_tool_call_input.delta", "custom_tool_call_input.done"),
        *("output_item.done", ending),
    ]


@pytest.mark.parametrize(
    ("item", "count"),
    [
        ({**TEXT, "content": [{"type": "output_text", "text": "Hi", "annotations": 7}]}, 6),
        ({**TEXT, "content": [{"type": "output_text", "text": None}, {"type": "summary_text", "text": "Hi"}, {"type": "odd"}]}, 2),
        ({**TEXT, "content": None}, 2),
        ({**THOUGHT, "summary": [{}], "content": [{}]}, 2),
        ({**CALL, "arguments": None}, 2),
        ({"type": "odd"}, 2),
    ],
)  # fmt: skip
def test_odd_items_of_a_stored_answer_are_told_as_they_are(
    upstream: ReplayServer, item: Any, count: int
) -> None:
    upstream.add(Answer.of_json({**RESPONSE, "output": [TEXT, item]}))
    with (
        gateway_of(upstream, "openai_responses") as gateway,
        httpx2.Client(base_url=gateway.url) as client,
    ):
        said = client.post("/v1/responses", json=RESPONSES)
        assert said.status_code == 200, said.text
        stream = client.get("/v1/responses/resp_1", params={"stream": "true"}).text
    events = [orjson.loads(line[6:]) for line in stream.split("\n") if line.startswith("data: ")]
    about = [event for event in events if event.get("output_index") == 1]
    assert len(about) == count
    assert about[-1]["item"] == item


@pytest.mark.parametrize("after", ["", "x", "-2", "1.5", "9" * 20])
def test_events_are_numbered_from_nought(upstream: ReplayServer, after: str) -> None:
    upstream.add(says("Hello"))
    with gateway_of(upstream, "vllm") as gateway, httpx2.Client(base_url=gateway.url) as client:
        id = client.post("/v1/responses", json=RESPONSES).json()["id"]
        answer = client.get(f"/v1/responses/{id}", params={"stream": "true", "starting_after": after})
        missing = client.get("/v1/responses/resp_none", params={"stream": "true"})
    assert (answer.status_code, missing.status_code) == (400, 404)
    assert "starting_after" in answer.json()["error"]["message"]


@pytest.mark.parametrize("more", ["listen: {workers: 2}", "responses: {entries: 0}"])
@EACH_ANSWER
def test_an_answer_that_is_not_kept_says_so(
    upstream: ReplayServer, provider: str, stream: bool, answer: Answer, more: str
) -> None:
    """And what it does not offer is refused in the words by which clients send the whole conversation instead."""
    upstream.add(answer)
    with (
        gateway_of(upstream, provider, f"on_unsupported: drop\n{more}") as gateway,
        client_of(gateway) as client,
    ):
        first = answer_to(client, stream=stream)
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(first.id)
        with pytest.raises(openai.BadRequestError) as raised:
            client.responses.create(**RESPONSES, previous_response_id=first.id)
        named: Any = [{"type": "item_reference", "id": first.output[0].id}]
        with pytest.raises(openai.NotFoundError, match=r"input\[0\]: Item with id '\w+' not found"):
            client.responses.create(model="tiny", input=named)
    assert raised.value.code == "previous_response_not_found"
    if provider == "vllm":
        assert first.model_dump()["store"] is False
    else:
        assert upstream.requests[0].json()["store"] is False  # so its server says the same


@pytest.mark.parametrize(("store", "is_named"), [(True, True), (None, False), (False, False)])
def test_a_wish_to_store_that_nobody_fulfils_is_named(
    upstream: ReplayServer, store: bool | None, *, is_named: bool
) -> None:
    upstream.add(says("Hello"))
    app = create_app(config_of(upstream, "responses: {entries: 0}"))

    async def main() -> httpx2.Response:
        async with app.router.lifespan_context(app), asking(app) as client:
            return await client.post(PATHS["responses"], json={**RESPONSES, "store": store})

    answer = asyncio.run(main())
    assert answer.json()["store"] is False
    assert ("request.store" in answer.headers.get("x-crosswalk-dropped", "")) is is_named


@pytest.mark.parametrize("provider", ["vllm", "openai_responses"])
@pytest.mark.parametrize("policy", ["refuse", "drop"])
def test_no_answer_is_made_in_the_background(upstream: ReplayServer, provider: str, policy: str) -> None:
    """Its server alone would know how it ends. A client that looks for the end finds it at once."""
    upstream.add(says("Hello") if provider == "vllm" else Answer.of_json(RESPONSE))
    with gateway_of(upstream, provider, f"on_unsupported: {policy}") as gateway, client_of(gateway) as client:
        if policy == "refuse":
            with pytest.raises(openai.BadRequestError, match="background"):
                client.responses.create(**RESPONSES, background=True)
            assert not upstream.requests
            return
        raw = client.responses.with_raw_response.create(**RESPONSES, background=True)
        assert "request.background" in raw.headers["x-crosswalk-dropped"]
        answer = raw.parse()
        assert (answer.status, answer.background or False) == ("completed", False)
        assert client.responses.retrieve(answer.id).status == "completed"
    assert "background" not in upstream.requests[0].json()


ENCRYPTED = ["reasoning.encrypted_content"]


@pytest.mark.parametrize(
    ("path", "body", "store", "include"),
    [
        ("chat", CHAT, False, ENCRYPTED),
        ("chat", {**CHAT, "store": False}, False, ENCRYPTED),
        ("chat", {**CHAT, "store": True}, True, None),
        ("chat", {**CHAT, "model": "quick"}, False, None),  # its class does not reason
        ("messages", MESSAGES, False, ENCRYPTED),
        ("responses", RESPONSES, None, None),
        ("responses", {**RESPONSES, "store": False}, False, None),
    ],
)
@pytest.mark.parametrize("keeps", [True, False])
def test_a_server_keeps_only_what_a_client_can_ask_for(
    upstream: ReplayServer, path: str, body: Any, store: Any, include: Any, keeps: bool
) -> None:
    """The reasoning that it does not keep comes encrypted, so that the client can send it back."""
    upstream.add(Answer.of_json(RESPONSE), times=None)
    more = "" if keeps else "responses: {entries: 0}\n"
    (answer,) = talk(upstream, "openai_responses", ("alice", path, body), more=more, also="quick: gpt-4o")
    assert answer.status_code == 200, answer.text
    assert "include" not in answer.headers.get("x-crosswalk-dropped", "")
    (sent,) = upstream.requests
    if not keeps and store is None:
        store, include = False, ENCRYPTED
    assert (sent.json().get("store"), sent.json().get("include")) == (store, include)


def test_a_gateway_without_a_store_adds_to_what_is_included(upstream: ReplayServer) -> None:
    upstream.add(Answer.of_json(RESPONSE), times=None)
    asked = [{**RESPONSES, "include": ["file_search_call.results"]}, {**RESPONSES, "model": "quick"}]
    bodies = [("alice", "responses", body) for body in asked]
    talk(upstream, "openai_responses", *bodies, more="responses: {entries: 0}\n", also="quick: gpt-4o")
    included = [request.json().get("include") for request in upstream.requests]
    assert included == [["file_search_call.results", *ENCRYPTED], None]


@pytest.mark.parametrize(
    ("path", "name", "value"),
    [
        *(("responses", "conversation", value) for value in (5, ["kept"], {"id": ["kept"]}, {"id": 5}, True)),
        ("responses", "prompt", 5),
        *(("messages", "thread", value) for value in (5, [], {"type": "continue", "previous_message_id": 5})),
        ("messages", "container", {"id": ["kept"]}),
    ],
)
def test_state_that_is_no_name_is_refused(upstream: ReplayServer, path: str, name: str, value: Any) -> None:
    provider, body = {"responses": ("openai_responses", RESPONSES), "messages": ("anthropic", MESSAGES)}[path]
    (answer,) = talk(upstream, provider, ("alice", path, {**body, name: value}))
    assert answer.status_code == 400
    assert "must be an id, or an object whose ids are strings" in answer.json()["error"]["message"]
    assert not upstream.requests


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_repeats_no_option_that_its_server_has_not_got(
    upstream: ReplayServer, stream: bool
) -> None:
    upstream.add(streams("Hello") if stream else says("Hello"))
    left_out = {
        "truncation": "auto",
        "max_tool_calls": 2,
        "service_tier": "zz",
        "tool_choice": {"type": "zz"},
    }
    kept = {"metadata": {"a": "b"}, "temperature": 0.5}
    (answer,) = talk(
        upstream, "openai", ("alice", "responses", {**RESPONSES, **left_out, **kept, "stream": stream})
    )
    assert answer.status_code == 200, answer.text
    events = [orjson.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
    for body in [event["response"] for event in events if "response" in event] or [answer.json()]:
        Response.model_validate(body, strict=True)
        repeated = {
            "truncation": "disabled",
            "max_tool_calls": None,
            "service_tier": "default",
            "tool_choice": "auto",
        }
        assert {name: body[name] for name in (*repeated, *kept)} == {**repeated, **kept}


@pytest.mark.parametrize(
    ("name", "value", "place", "expected"),
    [
        ("metadata", "s", "metadata", "must be an object, not string"),
        ("metadata", {"a": 5}, "metadata.a", "must be a string, not number"),
        ("top_logprobs", "s", "top_logprobs", "must be a whole number, not string"),
        ("max_tool_calls", True, "max_tool_calls", "must be a whole number, not boolean"),
        ("safety_identifier", 5, "safety_identifier", "must be a string, not number"),
        ("prompt_cache_key", [1], "prompt_cache_key", "must be a string, not array"),
        ("service_tier", ["x"], "service_tier", "must be a string, not array"),
        ("truncation", {}, "truncation", "must be a string, not object"),
        ("tool_choice", 5, "tool_choice", "must be a string or an object, not number"),
    ],
)
@pytest.mark.parametrize("provider", ["vllm", "openai_responses"])
def test_an_option_of_another_type_is_refused(
    upstream: ReplayServer, provider: str, name: str, value: Any, place: str, expected: str
) -> None:
    (answer,) = talk(upstream, provider, ("alice", "responses", {**RESPONSES, name: value}))
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (400, place)
    assert error["message"] == f"{place}: {expected}"
    assert not upstream.requests


@pytest.mark.parametrize("place", ["prompt", "conversation"])
def test_a_refusal_says_why_nothing_can_be_named(upstream: ReplayServer, place: str) -> None:
    (answer,) = talk(upstream, "openai_responses", ("alice", "responses", {**RESPONSES, place: {"id": "x"}}))
    reasons = {"prompt": "no answer gives it", "conversation": "this key has not received it"}
    assert reasons[place] in answer.json()["error"]["message"]
