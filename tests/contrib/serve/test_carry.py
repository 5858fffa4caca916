"""An answer that a server carries in another format reaches the client as the vendor of its own format gave it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import orjson
import pytest

from beside import answers_in, folders, needs_captures
from contrib_serve import asking, config_of
from crosswalk import ChatResponse, MappingError, from_json, normalize, normalize_stream, to_json
from crosswalk.convert import WireForm, convert, convert_stream, events_of
from crosswalk.formats.writing import form_of_body, source_form
from crosswalk.testing import Answer, Capture, ReplayServer, load_captures
from crosswalk.types import load_json
from crosswalk_serve import create_app

CAPTURES = Path(__file__).parents[2] / "captures"
CHAT, RESPONSES, MESSAGES = LARGE = (WireForm.OPENAI_CHAT, WireForm.OPENAI_RESPONSES, WireForm.ANTHROPIC)
ASKED: dict[WireForm, tuple[str, dict[str, Any]]] = {
    CHAT: ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]}),
    RESPONSES: ("/v1/responses", {"input": "Hi"}),
    MESSAGES: ("/v1/messages", {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9}),
}
COUNTED = {"stream_options": {"include_usage": True}}
EVENTS = re.compile(rb"^data: (\{.*\})$", re.MULTILINE)
SIGNED = b"""{"id": "msg_01", "type": "message", "role": "assistant", "model": "claude-x", "content": [
  {"type": "thinking", "thinking": "The moon first.", "signature": "EqQB"},
  {"type": "text", "text": "I'll check.", "citations": null},
  {"type": "tool_use", "id": "toolu_1", "name": "moon_phase", "input": {}}],
  "stop_reason": "tool_use", "stop_sequence": null, "usage": {"input_tokens": 12, "output_tokens": 60}}"""


def shipped(form: WireForm) -> Iterator[tuple[str, Capture]]:
    """The captures of the vendor of *form*."""
    return ((form.provider, capture) for capture in load_captures(CAPTURES / form.provider))


def carrying(provider: str, capture: Capture, via: WireForm) -> tuple[ChatResponse, bytes] | None:
    """The answer of *capture*, and what a server sends that carries it in *via*, or ``None`` for an error."""
    deltas = normalize_stream([capture.body], provider, status=capture.status)
    try:
        sent = b"".join(convert_stream(deltas, via, carry=True, losses="report"))
    except MappingError:
        return None
    answer = deltas.response
    if answer.error_info is not None:
        return None
    return answer, sent if capture.stream else convert(answer, via, carry=True).value


def events(data: bytes) -> list[Any]:
    """The events in *data*."""
    return [load_json(event) for event in EVENTS.findall(data)]


def told(own: WireForm, via: WireForm, sent: Iterable[bytes], model: str = "", **asks: Any) -> list[bytes]:
    """What a client of *own* gets from a gateway before a server that speaks *via* and sends each of *sent*.

    Args:
        own: the client's format.
        via: the server's.
        sent: what that sends.
        model: the model in the gateway's file, with ``URL`` for the server's, or ``""`` for ``tiny``.
        asks: more of the request.
    """
    path, asked = ASKED[own]
    answers: list[bytes] = []

    async def ask() -> None:
        plain = f"tiny: {{provider: {via.provider}, model: tiny, base_url: 'URL', api_key: k}}"
        models = (model or plain).replace("URL", upstream.url)
        app = create_app(config_of(upstream, "on_unsupported: drop", models))
        async with app.router.lifespan_context(app), asking(app) as client:
            for body in sent:
                is_stream = EVENTS.search(body) is not None
                kind = "text/event-stream" if is_stream else "application/json"
                upstream.add(Answer((body,), headers={"Content-Type": kind}, stream=is_stream))
                wants = {"model": models.partition(":")[0], "stream": is_stream, **asked, **asks}
                if is_stream and own is CHAT:
                    wants |= COUNTED
                answers.append((await client.post(path, json=wants)).content)

    with ReplayServer() as upstream:
        asyncio.run(ask())
    return answers


def check_exact(own: WireForm, via: WireForm, captures: Iterable[tuple[str, Capture]]) -> int:
    """Check that each answer in *captures* of the format *own* comes back from *via*. Return how many there were."""
    tried: list[tuple[str, ChatResponse, bytes]] = []
    for provider, capture in captures:
        found = carrying(provider, capture, via)
        if found is None:
            continue
        is_body = len(found[0].raw_events) == 1
        if (form_of_body(found[0].raw_events[0]) if is_body else source_form(found[0])) is own:
            tried.append((capture.case, *found))
    answers = told(own, via, [sent for *_, sent in tried])
    for (case, answer, _), got in zip(tried, answers, strict=True):
        if len(answer.raw_events) == 1:
            assert load_json(got) == answer.raw_events[0], case
        else:
            stored = from_json(to_json(answer), ChatResponse)
            assert events(got) == load_json(orjson.dumps(events_of(stored, own))), case
    return len(tried)


def signed(via: WireForm, *, is_stream: bool) -> bytes:
    """What a server sends that speaks *via* and carries :data:`SIGNED`."""
    if is_stream:
        return b"".join(convert_stream(normalize_stream([SIGNED], "anthropic"), via, carry=True))
    return convert(normalize(SIGNED, "anthropic"), via, carry=True).value


@pytest.mark.parametrize("via", [CHAT, RESPONSES])
def test_a_carried_answer_comes_back_exactly(via: WireForm) -> None:
    body, stream = told(MESSAGES, via, [signed(via, is_stream=is_stream) for is_stream in (False, True)])
    assert load_json(body) == load_json(SIGNED)
    stored = from_json(to_json(normalize(SIGNED, "anthropic")), ChatResponse)
    assert events(stream) == load_json(orjson.dumps(events_of(stored, MESSAGES)))


@pytest.mark.parametrize("is_stream", [False, True], ids=["body", "stream"])
def test_a_carried_answer_has_the_name_that_the_client_asked_for(is_stream: bool) -> None:
    model = "small: {provider: openai, model: tiny, base_url: 'URL', api_key: k}"
    (got,) = told(MESSAGES, CHAT, [signed(CHAT, is_stream=is_stream)], model=model)
    message = events(got)[0]["message"] if is_stream else load_json(got)
    assert (message["model"], b"EqQB" in got) == ("small", True)


@pytest.mark.parametrize("is_stream", [False, True], ids=["body", "stream"])
def test_a_carried_answer_goes_to_a_client_of_a_third_format(is_stream: bool) -> None:
    (got,) = told(RESPONSES, CHAT, [signed(CHAT, is_stream=is_stream)])
    response = events(got)[-1]["response"] if is_stream else load_json(got)
    kinds = [item["type"] for item in response["output"]]
    assert (response["model"], kinds[-2:]) == ("claude-x", ["message", "function_call"])


@pytest.mark.parametrize("is_stream", [False, True], ids=["body", "stream"])
def test_an_answer_that_other_servers_may_get_back_is_sealed_also_if_it_was_carried(is_stream: bool) -> None:
    """The seal names the server whose signature this is, and the client sends it back with it."""
    server = "{provider: PROVIDER, model: tiny, base_url: 'URL', api_key: k}"
    servers = ", ".join(server.replace("PROVIDER", one) for one in ("openai", "anthropic"))
    (got,) = told(MESSAGES, CHAT, [signed(CHAT, is_stream=is_stream)], model=f"tiny: [{servers}]")
    assert all(text in got for text in (b"EqQB", b"crosswalk", b"check."))
    assert b'"version"' not in got


def test_a_client_of_custom_tools_gets_the_carried_call_as_it_declared_the_tool() -> None:
    answer = normalize(SIGNED.replace(b'"input": {}', b'"input": {"input": "full"}'), "anthropic")
    sent = convert(answer, CHAT, carry=True).value
    tool = {"type": "custom", "name": "moon_phase", "description": "d"}
    (got,) = told(RESPONSES, CHAT, [sent], tools=[tool])
    call = load_json(got)["output"][-1]
    assert (call["type"], call["input"]) == ("custom_tool_call", "full")


@pytest.mark.sweep
@pytest.mark.parametrize(("own", "via"), [*permutations(LARGE, 2)])
def test_every_carried_answer_comes_back_exactly(own: WireForm, via: WireForm) -> None:
    assert check_exact(own, via, shipped(own)) >= 20


BESIDE = {
    CHAT: ("recorded/openai-chat", "recorded/groq", "recorded/deepseek", "live/vllm"),
    RESPONSES: ("recorded/openai-responses",),
    MESSAGES: ("recorded/anthropic",),
}
"""Where answers of each format lie beside the project."""


@pytest.mark.sweep
@needs_captures
@pytest.mark.parametrize(("own", "via"), [*permutations(LARGE, 2)])
def test_a_recorded_answer_that_is_carried_comes_back_exactly(own: WireForm, via: WireForm) -> None:
    inside = [one for one in folders() if one.startswith(BESIDE[own]) and not one.endswith("error")]
    captures = [answer for folder in inside for answer in answers_in(folder)]
    assert check_exact(own, via, captures) >= 60
