"""Reasoning is where the readers of each API look for it, and its events have the client's words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx2
import openai
import pytest

from contrib_serve import ABOUT, USAGE, Live, config_of, live, says
from crosswalk import normalize, normalize_stream
from crosswalk.testing.replay import Answer, ReplayServer

ASKED: dict[str, Any] = {"model": "tiny", "input": "Hi"}
OPEN = {"OpenResponses-Version": "latest"}


def thinks() -> Answer:
    """A streamed chat completion with reasoning."""
    deltas = [{"reasoning": "Hm. "}, {"reasoning": "Paris."}, {"content": "Hel"}, {"content": "lo"}]
    choices: list[dict[str, Any]] = [{"index": 0, "delta": one, "finish_reason": None} for one in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    about = {**ABOUT, "object": "chat.completion.chunk"}
    return Answer.of_events(
        [*({**about, "choices": [one]} for one in choices), {**about, "choices": [], "usage": USAGE}]
    )


def response_events(word: str) -> list[dict[str, Any]]:
    """A stream of a server of Responses that calls the events of its reasoning by *word*."""
    base = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "output": []}
    item = {"type": "reasoning", "id": "rs_1", "summary": []}
    whole = {**item, "content": [{"type": "reasoning_text", "text": "Hm."}]}
    place = {"item_id": "rs_1", "output_index": 0, "content_index": 0}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**base, "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": f"response.{word}.delta", **place, "delta": "Hm."},
        {"type": f"response.{word}.done", **place, "text": "Hm."},
        {"type": "response.output_item.done", "output_index": 0, "item": whole},
        {"type": "response.completed", "response": {**base, "status": "completed", "output": [whole]}},
    ]
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def post(url: str, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> httpx2.Response:
    with httpx2.Client(timeout=60) as client:
        answer = client.post(f"{url}/v1/responses", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer


def types_of(stream: str) -> list[str]:
    """The types of the events in *stream*, which are their names, too."""
    names = [line.removeprefix("event: ") for line in stream.split("\n") if line.startswith("event: ")]
    events = [json.loads(line[6:]) for line in stream.split("\n") if line.startswith("data: {")]
    assert [one["type"] for one in events] == names
    return names


SUMMARIES: list[dict[str, Any]] = [
    {"summary": "auto"},
    {"summary": "detailed", "effort": "low"},
    {"generate_summary": "concise"},
]
NONE: list[dict[str, Any]] = [{}, {"reasoning": {"effort": "low"}}, {"reasoning": {"summary": None}}]


@pytest.mark.parametrize("reasoning", SUMMARIES)
def test_who_asks_for_a_summary_reads_the_reasoning_there(
    gateway: Live, upstream: ReplayServer, reasoning: dict[str, Any]
) -> None:
    upstream.add(says("Hello", reasoning="Hm. Paris."))
    answer = post(gateway.url, {**ASKED, "reasoning": reasoning})
    item = answer.json()["output"][0]
    assert item["summary"] == [{"type": "summary_text", "text": "Hm. Paris."}]
    assert "content" not in item
    assert "summary" not in answer.headers.get("x-crosswalk-dropped", "")
    assert normalize(answer.content, "openai_responses").reasoning == "Hm. Paris."


@pytest.mark.parametrize("body", NONE)
def test_who_does_not_ask_for_one_gets_the_reasoning_itself(
    gateway: Live, upstream: ReplayServer, body: dict[str, Any]
) -> None:
    upstream.add(says("Hello", reasoning="Hm. Paris."))
    item = post(gateway.url, {**ASKED, **body}).json()["output"][0]
    assert item["content"] == [{"type": "reasoning_text", "text": "Hm. Paris."}]
    assert item["summary"] == []


def test_without_reasoning_a_summary_is_named_as_dropped(gateway: Live, upstream: ReplayServer) -> None:
    upstream.add(says("Hello"))
    answer = post(gateway.url, {**ASKED, "reasoning": {"summary": "auto"}})
    assert "request.reasoning.summary" in answer.headers["x-crosswalk-dropped"]


@pytest.mark.parametrize("reasoning", SUMMARIES)
def test_a_stream_has_the_events_of_a_summary(
    gateway: Live, upstream: ReplayServer, reasoning: dict[str, Any]
) -> None:
    upstream.add(thinks())
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="none", max_retries=0) as client:
        asked: Any = reasoning
        stream = client.responses.create(**ASKED, reasoning=asked, stream=True)
        kinds, deltas, last = [], "", None
        for event in stream:
            kinds.append(event.type)
            deltas += event.delta if event.type == "response.reasoning_summary_text.delta" else ""
            last = event
    assert deltas == "Hm. Paris."
    assert [kind for kind in kinds if "summary_part" in kind] == [
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_part.done",
    ]
    assert "response.reasoning_text.delta" not in kinds
    assert last is not None
    assert last.type == "response.completed"
    assert last.response.output[0].type == "reasoning"
    assert [part.text for part in last.response.output[0].summary] == ["Hm. Paris."]


@pytest.mark.untraced
@pytest.mark.parametrize("more", ["", "reasoning_events: open-responses\n"])
@pytest.mark.parametrize("headers", [{}, OPEN])
@pytest.mark.parametrize("server", ["vllm", "reasoning_text", "reasoning"])
def test_raw_reasoning_has_the_words_of_the_client(
    upstream: ReplayServer, more: str, headers: dict[str, str], server: str
) -> None:
    """Whatever the words of the server are, whether its stream is converted or passed on."""
    if server == "vllm":
        upstream.add(thinks())
        models = ""
    else:
        upstream.add(Answer.of_events(response_events(server), done=False))
        models = f"tiny: {{provider: openai_responses, base_url: '{upstream.url}', api_key: k}}"
    with live(config_of(upstream, f"on_unsupported: drop\n{more}", models)) as gateway:
        answer = post(gateway.url, {**ASKED, "stream": True}, headers)
    wanted, other = ("reasoning", "reasoning_text") if more or headers else ("reasoning_text", "reasoning")
    kinds = types_of(answer.text)
    assert {f"response.{wanted}.delta", f"response.{wanted}.done"} <= set(kinds)
    assert not {f"response.{other}.delta", f"response.{other}.done"} & set(kinds)
    assert kinds[-1] == "response.completed"
    read = normalize_stream([answer.content], "openai_responses")
    assert "".join(delta.reasoning_delta or "" for delta in read).startswith("Hm.")


@pytest.mark.parametrize("kind", [["response.reasoning_text.delta"], {"a": 1}, 7, None])
def test_an_event_with_a_strange_type_is_passed_on(upstream: ReplayServer, kind: Any) -> None:
    events = response_events("reasoning_text")
    strange = {"type": kind, "sequence_number": 2}
    upstream.add(Answer.of_events([*events[:2], strange, *events[2:]], done=False))
    models = f"tiny: {{provider: openai_responses, base_url: '{upstream.url}', api_key: k}}"
    with live(config_of(upstream, "", models)) as gateway:
        answer = post(gateway.url, {**ASKED, "stream": True}, OPEN)
    assert json.dumps(kind, separators=(",", ":")) in answer.text.replace(" ", "")
