"""What a server keeps or seals goes to no other server of a service, be it of the same provider."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from crosswalk import ChatMessage, ChatResponse, ServerError, normalize
from crosswalk.config import Settings
from crosswalk.errors import CrosswalkError
from crosswalk.service import (
    ChatRequest,
    Endpoint,
    RetryPolicy,
    SyncLLMService,
    UnsupportedRequestError,
    item_ids,
)
from crosswalk.service.setup import AnswerServers
from crosswalk.testing.replay import Answer, ReplayServer

TEXT = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "Hello", "annotations": []}]}  # fmt: skip
SEALED = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"}
NAMED = {"type": "reasoning", "id": "rs_1", "summary": []}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "model": "m",
    "output": [TEXT],
}
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "c", "stop_reason": "end_turn", "stop_sequence": None,
           "content": [{"type": "text", "text": "Hello"}], "usage": {"input_tokens": 1, "output_tokens": 1},
           "container": {"id": "kept", "expires_at": "2999-01-01T00:00:00Z"}}  # fmt: skip
DOWN = Answer.of_json({"error": {"message": "busy", "type": "server_error"}}, status=503)
OPTIONS: dict[str, Any] = {
    "settings": Settings(),
    "retry": RetryPolicy(attempts=1, initial_seconds=0, max_seconds=0),
    "client_options": {"verify": False},
    "on_unsupported": "drop",
}


def service(*endpoints: Endpoint) -> SyncLLMService:
    return SyncLLMService(*endpoints, **OPTIONS)


def two_keys(server: ReplayServer, provider: str) -> list[Endpoint]:
    return [Endpoint(provider, model="m", base_url=server.url, api_key=key) for key in ("first", "second")]


def two_addresses(server: ReplayServer, provider: str) -> list[Endpoint]:
    return [
        Endpoint(provider, model="m", base_url=url, api_key="first")
        for url in (server.url, f"{server.url}/v1")
    ]


def one_server(server: ReplayServer, provider: str) -> list[Endpoint]:
    return [Endpoint(provider, model=model, base_url=server.url, api_key="first") for model in ("m", "other")]


def further(first: ChatResponse) -> ChatRequest:
    return ChatRequest([ChatMessage.user("Hi"), first, ChatMessage.user("On")], max_tokens=9)


ANSWERS: dict[str, tuple[str, dict[str, Any], str]] = {
    "sealed reasoning": ("openai_responses", {**RESPONSE, "output": [SEALED, TEXT]}, "rs_1"),
    "reasoning by its id": ("openai_responses", {**RESPONSE, "output": [NAMED, TEXT]}, "rs_1"),
    "a conversation": ("openai_responses", {**RESPONSE, "conversation": {"id": "kept"}}, "kept"),
    "an answer before": ("openai_responses", {**RESPONSE, "previous_response_id": "kept"}, "kept"),
    "a container": ("anthropic", MESSAGE, "kept"),
}


@pytest.mark.parametrize(("provider", "answer", "name"), ANSWERS.values(), ids=ANSWERS)
@pytest.mark.parametrize("endpoints", [two_keys, two_addresses])
def test_what_a_server_keeps_goes_to_no_other(
    server: ReplayServer,
    endpoints: Callable[[ReplayServer, str], list[Endpoint]],
    provider: str,
    answer: dict[str, Any],
    name: str,
) -> None:
    server.add(Answer.of_json(answer)).add(DOWN).add(Answer.of_json(answer))
    with service(*endpoints(server, provider)) as asked:
        first = asked.complete(ChatRequest("Hi", max_tokens=9))
        again = asked.complete(further(first))
    _, same, other = server.requests
    assert name in str(same.json())
    assert name not in str(other.json())
    assert "Hello" in str(other.json())
    assert "gAAAA" not in str(other.json())
    left_out = [one["reason"] for one in again.attempts[-1].extra["adaptations"]]
    assert any("at another address" in why or "only the server that gave it" in why for why in left_out)


@pytest.mark.parametrize("endpoints", [two_keys, two_addresses])
def test_what_stands_for_a_sealed_conversation_moves_to_no_other(
    server: ReplayServer, endpoints: Callable[[ReplayServer, str], list[Endpoint]]
) -> None:
    """Without the summary the other server would miss what was said, so it is not asked."""
    compacted = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA"}
    server.add(Answer.of_json({**RESPONSE, "output": [compacted, TEXT]})).add(DOWN)
    with service(*endpoints(server, "openai_responses")) as asked:
        first = asked.complete("Hi")
        with pytest.raises(ServerError, match="busy"):
            asked.complete(further(first))
    assert ["gAAAA" in str(request.json()) for request in server.requests] == [False, True]


UNNAMED: dict[str, list[dict[str, Any]]] = {
    "a summary": [{"type": "compaction", "encrypted_content": "gAAAA"}],
    "a summary with an empty id": [{"type": "compaction", "id": None, "encrypted_content": "gAAAA"}],
    "reasoning": [{"type": "reasoning", "summary": [], "encrypted_content": "gAAAA"}],
    "reasoning with an empty id": [{"type": "reasoning", "id": None, "summary": [], "encrypted_content": "gAAAA"}],
    "a summary with an id of no letters": [{"type": "compaction", "id": "", "encrypted_content": "gAAAA"}],
}  # fmt: skip


@pytest.mark.parametrize("items", UNNAMED.values(), ids=UNNAMED)
def test_an_item_without_an_id_gets_none(items: list[dict[str, Any]]) -> None:
    answer = normalize(json.dumps({**RESPONSE, "output": [*items, TEXT]}), "openai_responses", unknown="keep")
    assert item_ids(answer) == {}
    with_another = {**RESPONSE, "output": [*items, {**SEALED, "id": "None"}, NAMED, TEXT]}
    answer = normalize(json.dumps(with_another), "openai_responses", unknown="keep")
    assert item_ids(answer) == {"None": True, "rs_1": False}


def test_a_summary_without_an_id_stays_with_its_server(server: ReplayServer) -> None:
    compacted = UNNAMED["a summary"]
    server.add(Answer.of_json({**RESPONSE, "output": [*compacted, TEXT]})).add(DOWN)
    with service(*two_keys(server, "openai_responses")) as asked:
        first = asked.complete("Hi")
        with pytest.raises(ServerError, match="busy"):
            asked.complete(further(first))
    assert len(server.requests) == 2


@pytest.mark.parametrize(("provider", "answer", "name"), ANSWERS.values(), ids=ANSWERS)
def test_two_models_of_one_server_share_what_it_keeps(
    server: ReplayServer, provider: str, answer: dict[str, Any], name: str
) -> None:
    server.add(Answer.of_json(answer)).add(DOWN).add(Answer.of_json(answer))
    with service(*one_server(server, provider)) as asked:
        asked.complete(further(asked.complete(ChatRequest("Hi", max_tokens=9))))
    assert all(name in str(request.json()) for request in server.requests[1:])


def test_a_plain_answer_goes_to_every_server_as_it_is(server: ReplayServer) -> None:
    server.add(Answer.of_json(RESPONSE)).add(DOWN).add(Answer.of_json(RESPONSE))
    with service(*two_keys(server, "openai_responses")) as asked:
        again = asked.complete(further(asked.complete("Hi")))
    assert "adaptations" not in again.attempts[-1].extra
    assert server.requests[1].json()["input"] == server.requests[2].json()["input"]


@pytest.mark.parametrize(("item", "is_sent"), [(SEALED, True), (NAMED, False)])
def test_of_an_unknown_answer_goes_what_is_whole_in_it(
    server: ReplayServer, item: dict[str, Any], *, is_sent: bool
) -> None:
    """An answer of another run of the program: an id alone is of no server that is known."""
    server.add(Answer.of_json({**RESPONSE, "output": [item, TEXT]}), times=None)
    with service(*two_keys(server, "openai_responses")) as before:
        first = before.complete("Hi")
    with service(*two_keys(server, "openai_responses")) as after:
        after.complete(further(first))
    assert ("rs_1" in str(server.requests[1].json())) is is_sent


def test_the_only_server_of_its_provider_gets_what_is_unknown(server: ReplayServer) -> None:
    server.add(Answer.of_json({**RESPONSE, "output": [NAMED, TEXT]}), times=None)
    (own, _), (other, _) = two_keys(server, "openai_responses"), two_keys(server, "vllm")
    with service(own) as before:
        first = before.complete("Hi")
        name = before.server_of(first)
        assert before.servers == {name}
    with service(own, Endpoint("vllm", model="m", base_url=f"{server.url}/v1")) as after:
        assert after.server_of(first) is None
        after.complete(further(first))
        assert name in after.servers
        assert len(after.servers) == 2
    assert "rs_1" in str(server.requests[1].json())
    assert other.provider == "vllm"


def test_an_answer_of_another_provider_is_another_providers(server: ReplayServer) -> None:
    answer = {**RESPONSE, "output": [SEALED, TEXT]}
    server.add(Answer.of_json(answer)).add(DOWN).add(Answer.of_json(MESSAGE))
    ends = [two_keys(server, "openai_responses")[0], two_keys(server, "anthropic")[0]]
    with service(*ends) as asked:
        again = asked.complete(further(asked.complete(ChatRequest("Hi", max_tokens=9))))
    reasons = [one["reason"] for one in again.attempts[-1].extra["adaptations"]]
    assert "reasoning of another provider (openai_responses)" in reasons


@pytest.mark.parametrize("option", [{"previous_response_id": "resp_1"}, {"conversation": {"id": "kept"}}])
def test_a_request_that_names_what_a_server_keeps_goes_to_that_server_alone(
    server: ReplayServer, option: dict[str, Any]
) -> None:
    server.add(DOWN).add(Answer.of_json({**RESPONSE, "conversation": "kept"})).add(Answer.of_json(RESPONSE))
    asking = ChatRequest("On", provider_options={"openai_responses": option})
    with service(*two_keys(server, "openai_responses")) as asked:
        asked.complete("Hi")
        asked.complete(asking)
    sent = [request.headers["authorization"] for request in server.requests]
    assert sent == ["Bearer first", "Bearer second", "Bearer second"]


def test_a_request_that_names_what_two_servers_keep_goes_to_none(server: ReplayServer) -> None:
    kept = AnswerServers(most=3)
    for id, at in (("resp_1", "one"), ("resp_2", "two"), ("resp_3", "two")):
        kept.note(response_of(server, id), at)
    options = {"openai_responses": {"previous_response_id": "resp_1", "conversation": "resp_2"}}
    request = ChatRequest("On", provider_options=options)
    for at in ("one", "two"):
        with pytest.raises(UnsupportedRequestError, match="only another server of its provider keeps"):
            kept.turns_for(request, "openai_responses", at, is_alone=False)
    kept.note(response_of(server, "resp_4"), "one")
    assert [kept.of(f"resp_{number}") for number in range(1, 5)] == [None, "two", "two", "one"]


def response_of(server: ReplayServer, id: str) -> ChatResponse:
    server.add(Answer.of_json({**RESPONSE, "id": id}))
    with service(two_keys(server, "openai_responses")[0]) as asked:
        return asked.complete("Hi")


def test_a_failed_call_is_noted_too_and_fails_as_before(server: ReplayServer) -> None:
    server.add(DOWN, times=None)
    with service(*two_keys(server, "openai_responses")) as asked, pytest.raises(CrosswalkError):
        asked.complete("Hi").raise_for_error()
