"""What a stream of Responses says of its store holds, however it ends: the client can ask for the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx2
import orjson
import pytest

from contrib_serve import asking, config_of, live, streams
from crosswalk.testing.exchange import Stall
from crosswalk.testing.replay import Answer, ReplayServer
from crosswalk_serve import create_app

ASKED = {"model": "tiny", "input": "Hi", "stream": True}
TEXT = {"type": "output_text", "text": "Hello", "annotations": [], "logprobs": []}
MESSAGE = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [TEXT]}
RESPONSE = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "store": True, "output": []}
BEGUN = [
    {"type": "response.created", "response": {**RESPONSE, "status": "in_progress"}},
    {"type": "response.output_item.added", "output_index": 0, "item": {**MESSAGE, "status": "in_progress", "content": []}},
    {"type": "response.content_part.added", "item_id": "msg_1", "output_index": 0, "content_index": 0, "part": {**TEXT, "text": ""}},
    {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": "Hello", "logprobs": []},
]  # fmt: skip
FAILED = {"code": "server_error", "message": "The model has failed."}
USAGE = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
ENDS: dict[str, dict[str, Any]] = {
    "completed": {},
    "incomplete": {"incomplete_details": {"reason": "max_output_tokens"}},
    "failed": {"error": FAILED, "usage": USAGE},
}


def ending(status: str) -> dict[str, Any]:
    """The last event of the server."""
    response = {**RESPONSE, "status": status, "output": [MESSAGE], **ENDS[status]}
    return {"type": f"response.{status}", "response": response, "sequence_number": 9}


def numbered(*more: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**event, "sequence_number": number} for number, event in enumerate([*BEGUN, *more])]


def told(body: bytes) -> list[dict[str, Any]]:
    """The events of a stream."""
    return [orjson.loads(line[6:]) for line in body.splitlines() if line.startswith(b"data: {")]


def streamed(
    upstream: ReplayServer, provider: str, more: str = ""
) -> tuple[list[dict[str, Any]], httpx2.Response]:
    """The events for a client, and what it gets when it asks for their answer again."""
    models = f"tiny: {{provider: {provider}, base_url: '{upstream.url}', api_key: k}}"
    app = create_app(config_of(upstream, more, models))

    async def main() -> tuple[list[dict[str, Any]], httpx2.Response]:
        async with app.router.lifespan_context(app), asking(app) as client:
            events = told((await client.post("/v1/responses", json=ASKED)).content)
            return events, await client.get(f"/v1/responses/{events[0]['response']['id']}")

    return asyncio.run(main())


@pytest.mark.parametrize("status", ENDS)
def test_the_servers_own_end_is_passed_on_and_kept(upstream: ReplayServer, status: str) -> None:
    last = ending(status)
    upstream.add(Answer.of_events(numbered(last), done=False))
    events, kept = streamed(upstream, "openai_responses")
    assert events[-1] == {**last, "sequence_number": len(BEGUN)}
    assert kept.json() == last["response"]


def test_a_client_learns_no_more_of_a_failure_than_it_may(upstream: ReplayServer) -> None:
    error = {"code": "invalid_api_key", "message": "Incorrect API key provided: sk-12."}
    last = ending("failed")
    upstream.add(Answer.of_events(numbered({**last, "response": {**last["response"], "error": error}})))
    events, kept = streamed(upstream, "openai_responses")
    assert "sk-12" not in str(events) + kept.text
    assert events[-1]["type"] == "response.failed"
    assert events[-1]["response"]["output"] == [MESSAGE]


CUT: dict[str, Callable[[], Answer]] = {
    "openai_responses": lambda: Answer.of_events(numbered(), done=False),
    "openai": lambda: Answer(streams("Hello").chunks[:1], headers=streams("Hello").headers, stream=True),
}


@pytest.mark.parametrize("provider", CUT)
def test_an_answer_that_was_cut_is_kept_as_far_as_it_came(upstream: ReplayServer, provider: str) -> None:
    upstream.add(CUT[provider]())
    events, kept = streamed(upstream, provider)
    assert events[0]["response"]["store"] is True
    assert kept.json()["status"] == "failed"
    assert kept.json()["id"] == events[0]["response"]["id"]
    assert kept.json()["output"][0]["content"][0]["text"] == "Hello"


@pytest.mark.parametrize("provider", CUT)
def test_the_last_event_says_that_a_large_answer_is_not_kept(upstream: ReplayServer, provider: str) -> None:
    whole = {"openai_responses": Answer.of_events(numbered(ending("completed"))), "openai": streams("Hello")}
    upstream.add(whole[provider])
    events, kept = streamed(upstream, provider, "responses: {bytes: 200}")
    assert (events[-1]["type"], events[-1]["response"]["store"]) == ("response.completed", False)
    assert kept.status_code == 404


@pytest.mark.parametrize("provider", CUT)
def test_an_answer_whose_client_left_is_kept_as_far_as_it_came(upstream: ReplayServer, provider: str) -> None:
    whole = {
        "openai_responses": Answer.of_events(numbered(ending("completed"))),
        "openai": streams("Hello", "!"),
    }
    upstream.add(whole[provider], Stall(after_events=len(BEGUN) if provider == "openai_responses" else 1))
    models = f"tiny: {{provider: {provider}, base_url: '{upstream.url}', api_key: k}}"
    with live(config_of(upstream, "", models)) as here, httpx2.Client(base_url=here.url) as client:
        with client.stream("POST", "/v1/responses", json=ASKED) as answer:
            lines = iter(answer.iter_lines())
            first = next(line for line in lines if line.startswith("data: "))
            next(line for line in lines if "Hello" in line)
        id = orjson.loads(first[6:])["response"]["id"]
        here.wait_for(lambda here: not here.server.server_state.tasks)
        kept = client.get(f"/v1/responses/{id}").json()
    assert kept["status"] in ("cancelled", "failed")
    assert kept["output"][0]["content"][0]["text"] == "Hello"


def test_the_last_event_waits_for_no_server_that_keeps_its_connection(upstream: ReplayServer) -> None:
    events = numbered(ending("completed"))
    upstream.add(Answer.of_events(events, done=False), Stall(after_events=len(events)))
    models = f"tiny: {{provider: openai_responses, base_url: '{upstream.url}', api_key: k}}"
    with (
        live(config_of(upstream, "", models)) as here,
        httpx2.Client(base_url=here.url) as client,
        client.stream("POST", "/v1/responses", json=ASKED) as answer,
    ):
        assert any("response.completed" in line for line in answer.iter_lines())


THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "EqQB"}
CLAUDE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "c", "stop_reason": "end_turn", "stop_sequence": None,
          "content": [THOUGHT, {"type": "text", "text": "Hello"}], "usage": {"input_tokens": 1, "output_tokens": 2}}  # fmt: skip


@pytest.mark.parametrize("summary", ["auto", None])
def test_a_stream_anew_tells_the_items_of_the_answer(upstream: ReplayServer, summary: str | None) -> None:
    upstream.add(Answer.of_json(CLAUDE))
    models = f"tiny: {{provider: anthropic, base_url: '{upstream.url}', api_key: k}}"
    app = create_app(config_of(upstream, "", models))

    async def main() -> None:
        async with app.router.lifespan_context(app), asking(app) as client:
            asked = {"model": "tiny", "input": "Hi", "reasoning": {"summary": summary}}
            answer = (await client.post("/v1/responses", json=asked)).json()
            again = told((await client.get(f"/v1/responses/{answer['id']}?stream=true")).content)
        done = [event["item"] for event in again if event["type"] == "response.output_item.done"]
        assert done == answer["output"] == again[-1]["response"]["output"]
        added = [event["item"] for event in again if event["type"] == "response.output_item.added"]
        assert {item.get("status") for item in added} == {"in_progress"}
        (thought,) = [event for event in again if event.get("delta") == "Hm."]
        place = "summary" if summary else "content"
        words = {"summary": "reasoning_summary_text", "content": "reasoning_text"}
        assert thought["type"] == f"response.{words[place]}.delta"
        assert (thought[f"{place}_index"], thought["item_id"]) == (0, answer["output"][0]["id"])
        assert [part["text"] for part in answer["output"][0][place]] == ["Hm."]

    asyncio.run(main())


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_names_the_one_before_it(upstream: ReplayServer, stream: bool) -> None:
    """Its server has got the whole conversation, and knows of no answer before."""
    last = ending("completed")
    response = {**last["response"], "previous_response_id": None}
    answer = (
        Answer.of_events([*BEGUN, {**last, "response": response}]) if stream else Answer.of_json(response)
    )
    upstream.add(answer, times=None)
    models = f"tiny: {{provider: openai_responses, base_url: '{upstream.url}', api_key: k}}"
    app = create_app(config_of(upstream, "", models))

    async def main() -> None:
        async with app.router.lifespan_context(app), asking(app) as client:
            asked: dict[str, Any] = {**ASKED, "stream": stream}
            for id in (None, "resp_1"):
                body = {**asked, "previous_response_id": id}
                content = (await client.post("/v1/responses", json=body)).content
                got = told(content)[-1]["response"] if stream else orjson.loads(content)
                kept = (await client.get("/v1/responses/resp_1")).json()
                assert got["previous_response_id"] == kept["previous_response_id"] == id

    asyncio.run(main())


PAUSED = {**CLAUDE, "stop_reason": "pause_turn",
          "content": [{"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}]}  # fmt: skip


@pytest.mark.parametrize("more", [{"input": []}, {"input": ""}, {}, {"input": "Go on."}])
def test_a_paused_answer_goes_on(upstream: ReplayServer, more: dict[str, Any]) -> None:
    """Claude's call of a tool of its server is the end of the conversation then. A client that says more ends the pause."""
    upstream.add(Answer.of_json(PAUSED))
    upstream.add(Answer.of_json(CLAUDE), times=None)
    models = f"tiny: {{provider: anthropic, base_url: '{upstream.url}', api_key: k}}"
    app = create_app(config_of(upstream, "on_unsupported: drop", models))

    async def main() -> None:
        async with app.router.lifespan_context(app), asking(app) as client:
            first = (await client.post("/v1/responses", json={"model": "tiny", "input": "Hi"})).json()
            body = {"model": "tiny", "previous_response_id": first["id"], **more}
            answer = await client.post("/v1/responses", json=body)
            assert answer.status_code == 200
            *_, sent = upstream.requests
            roles = [message["role"] for message in sent.json()["messages"]]
            if more.get("input"):
                assert "srvtoolu_1" not in str(sent.json()["messages"])
            else:
                assert sent.json()["messages"][-1]["content"] == PAUSED["content"]
                assert roles == ["user", "assistant"]
                assert "without a result" not in answer.headers.get("x-crosswalk-dropped", "")

    asyncio.run(main())
