"""The names of fields that did not reach the client: in the words of the server's API, and no noise."""

from __future__ import annotations

import asyncio
import re
from itertools import chain
from pathlib import Path
from typing import Any

import attrs
import orjson
import pytest

from contrib_serve import asking, config_of
from crosswalk.convert import WireForm, convert
from crosswalk.errors import MappingError
from crosswalk.mapping.normalize import normalize, normalize_stream
from crosswalk.testing.replay import Answer, ReplayServer
from crosswalk.types import ChatResponse
from crosswalk_serve import create_app
from crosswalk_serve.http import dropped_fields, header_of

CHAT = {
    "id": "c1",
    "object": "chat.completion",
    "created": 1_700_000_000,
    "model": "m",
    "system_fingerprint": "fp",
    "timings": {"prompt_ms": 1.5},
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "content": [{"type": "text", "text": "Hi"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 3, "output_tokens": 4},
}
OLLAMA = {
    "model": "m",
    "created_at": "2026-01-02T03:04:05.678Z",
    "message": {"role": "assistant", "content": "Hi"},
    "done": True,
    "done_reason": "stop",
    "total_duration": 5,
    "load_duration": 1,
    "prompt_eval_count": 3,
    "eval_count": 4,
}
RESPONSE: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1_700_000_000,
    "status": "completed",
    "model": "m",
    "output": [
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Hi", "annotations": []}],
        }
    ],
    "usage": {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7},
}
BODIES = {"openai": CHAT, "anthropic": MESSAGE, "ollama": OLLAMA, "openai_responses": RESPONSE}


def read(body: dict[str, Any], provider: str) -> ChatResponse:
    return normalize(orjson.dumps(body), provider)


def names(response: ChatResponse, form: WireForm) -> list[str]:
    return dropped_fields(convert(response, form, losses="report").report.losses, response)


@pytest.mark.parametrize("form", WireForm)
@pytest.mark.parametrize("provider", BODIES)
def test_an_ordinary_answer_drops_nothing(provider: str, form: WireForm) -> None:
    assert names(read(BODIES[provider], provider), form) == []


ECHOES: dict[str, Any] = {
    "instructions": "Be brief.", "temperature": 1.0, "top_p": 0.98, "text": {"format": {"type": "text"}, "verbosity": "medium"},
    "truncation": "disabled", "store": False, "background": False, "parallel_tool_calls": True, "tool_choice": "auto",
    "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": True}], "metadata": {"team": "a"},
    "max_output_tokens": 9, "max_tool_calls": 2, "service_tier": "default", "billing": {"payer": "developer"}, "top_logprobs": 0,
    "reasoning": {"effort": "low", "summary": None}, "user": "u", "frequency_penalty": 0.5, "prompt_cache_retention": "24h",
}  # fmt: skip


@pytest.mark.parametrize("form", WireForm)
def test_the_options_of_its_request_are_no_loss_of_an_answer(form: WireForm) -> None:
    assert names(read({**RESPONSE, **ECHOES}, "openai_responses"), form) == []


def test_another_api_or_field_may_say_something_under_their_names() -> None:
    further = {"store": "kept", "continuation_token": "c"}
    paid = {**RESPONSE, **further, "service_tier": "priority"}
    assert names(read(paid, "openai_responses"), WireForm.OLLAMA) == ["service_tier", "continuation_token"]
    assert names(read({**CHAT, "store": "kept"}, "openai"), WireForm.ANTHROPIC) == ["store"]


CAPTURES = Path(__file__).parents[2] / "captures/openai_responses"
CONTENT = (
    "output[",
    "message.",
    "segments",
    "error.",
    "finish_reason",
    "logprobs",
    "usage.",
    "tool_usage.",
    "model",
)


@pytest.mark.parametrize("form", [WireForm.OPENAI_CHAT, WireForm.ANTHROPIC])
def test_of_recorded_answers_only_content_is_lost(form: WireForm) -> None:
    lost: dict[str, list[str]] = {}
    for file in sorted(CAPTURES.glob("*.response.*")):
        try:
            if file.suffix == ".json":
                response = read(orjson.loads(file.read_bytes()), "openai_responses")
            else:
                stream = normalize_stream([file.read_bytes()], "openai_responses")
                for _ in stream:
                    pass
                response = stream.response
        except MappingError as error:
            assert error.partial is not None
            response = error.partial
        lost[file.name] = names(response, form)
    assert [
        one for one in chain(*lost.values()) if not one.startswith(CONTENT) or one.endswith("phase")
    ] == []
    assert sum(not one for one in lost.values()) > len(lost) / 3


def test_a_new_field_has_its_place_in_the_servers_api() -> None:
    message = {"role": "assistant", "content": "Hi", "plan": {"steps": ["a"], "note": "", "at": 0}}
    choices = [{**CHAT["choices"][0], "message": message, "flag": False}]  # type: ignore[index]
    second = {
        **choices[0],
        "index": 1,
        "message": {"role": "assistant", "content": "Ho", "mood": ["x", {"odd key": 1}]},
    }
    body = {**CHAT, "choices": [*CHAT["choices"], second], "progress": [1]}  # type: ignore[misc]
    assert names(read(body, "openai"), WireForm.ANTHROPIC) == [
        "choices[1]",
        "choices[1].message.mood[0]",
        "choices[1].message.mood[1]['odd key']",
        "choices[1].flag",
        "progress",
    ]
    body = {**CHAT, "choices": choices, "progress": [1], "object_count": 2}
    assert names(read(body, "openai"), WireForm.ANTHROPIC) == [
        "choices[0].message.plan.steps",
        "choices[0].flag",
        "progress",
        "object_count",
    ]


def test_so_has_one_of_a_stream() -> None:
    deltas = [{"plan": "The "}, {"content": "Hi"}]
    chunks = [
        {
            **CHAT,
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": delta, "finish_reason": end}],
        }
        for delta, end in zip(deltas, (None, "stop"), strict=True)
    ]
    stream = normalize_stream((b"data: %b\n\n" % orjson.dumps(chunk) for chunk in chunks), "openai")
    for _ in stream:
        pass
    assert names(stream.response, WireForm.ANTHROPIC) == ["choices[0].delta.plan"]


@pytest.mark.parametrize(
    ("provider", "content", "name"),
    [
        ("anthropic", {"type": "thinking", "thinking": "Hm", "signature": "s"}, "content[].signature"),
        ("anthropic", {"type": "redacted_thinking", "data": "x"}, "content[].reasoning"),
        (
            "openai_responses",
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "Hm"}],
                "encrypted_content": "x",
            },
            "output[].encrypted_content",
        ),
    ],
)
def test_so_has_a_part_of_the_answer(provider: str, content: dict[str, Any], name: str) -> None:
    body, list_ = BODIES[provider], "content" if provider == "anthropic" else "output"
    made = {**body, list_: [content, *body[list_]]}  # type: ignore[index, misc]
    assert names(read(made, provider), WireForm.OLLAMA) == [name]


@pytest.mark.parametrize(
    ("provider", "name"),
    [
        ("openai", "choices[0].message.tool_calls[].function.arguments"),
        ("openai_responses", "output[].arguments"),
    ],
)
def test_so_have_arguments_that_are_not_json(provider: str, name: str) -> None:
    call = {"name": "rm", "arguments": '{"path": "/x'}
    item = {"id": "fc_1", "type": "function_call", "call_id": "c1", "status": "completed", **call}
    message = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": call}]}  # fmt: skip
    body = {
        "openai": {**CHAT, "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]},
        "openai_responses": {**RESPONSE, "output": [item]},
    }[provider]
    found = names(read(body, provider), WireForm.ANTHROPIC)
    assert list(dict.fromkeys(found)) == [name, "incomplete_reason"]
    assert header_of(found) == f"{name}, incomplete_reason"


@pytest.mark.parametrize("form", [WireForm.OLLAMA, WireForm.OLLAMA_GENERATE])
def test_the_tokens_of_reasoning_are_among_those_of_the_answer(form: WireForm) -> None:
    message = {"role": "assistant", "content": "Hi", "reasoning_content": "Greet."}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    usage = {**CHAT["usage"], "completion_tokens_details": {"reasoning_tokens": 2}}
    assert names(read({**CHAT, "choices": choices, "usage": usage}, "openai"), form) == []


def test_a_count_has_the_name_of_the_servers_api() -> None:
    usage = {**MESSAGE["usage"], "cache_read_input_tokens": 2, "cache_creation_input_tokens": 0}  # type: ignore[dict-item]
    response = read({**MESSAGE, "usage": usage}, "anthropic")
    assert names(response, WireForm.OLLAMA) == ["usage.cache_read_input_tokens"]


def test_where_the_format_is_unknown_the_path_is_canonical() -> None:
    thought = {"type": "thinking", "thinking": "Hm", "signature": "s"}
    response = read({**MESSAGE, "content": [thought]}, "anthropic")
    usage = type(response.usage)(3, 4, cached_tokens=2)
    bare = attrs.evolve(response, usage=usage, metadata=type(response.metadata)("x", "m"))
    assert names(bare, WireForm.OLLAMA) == ["reasoning.signature", "usage.cached_tokens"]


def _with_probabilities(*tokens: tuple[str, list[int]]) -> dict[str, Any]:
    entries = [
        {"token": text, "logprob": -0.1, "bytes": bytes_, "top_logprobs": []} for text, bytes_ in tokens
    ]
    choice = {**CHAT["choices"][0], "logprobs": {"content": entries, "refusal": None}}
    return {**CHAT, "choices": [choice]}


def test_bytes_that_the_text_of_a_token_says_are_no_loss() -> None:
    """Half of a character is one: its text is a replacement character."""
    whole, half = ("Hi", [72, 105]), ("\ufffd", [0xC3])
    assert names(read(_with_probabilities(whole), "openai"), WireForm.GEMINI) == []
    assert names(read(_with_probabilities(whole, half), "openai"), WireForm.GEMINI) == ["logprobs"]
    assert names(read(_with_probabilities(whole), "openai"), WireForm.ANTHROPIC) == ["logprobs"]


@pytest.mark.parametrize("form", [WireForm.OPENAI_CHAT, WireForm.GEMINI, WireForm.OLLAMA])
def test_a_count_of_the_server_s_tools_is_lost_under_its_own_name(form: WireForm) -> None:
    """No other API has a place for it, and it costs money. A count of none is nothing."""
    counts = {"web_search_requests": 2, "web_fetch_requests": 0}
    claude = {**MESSAGE, "usage": {**MESSAGE["usage"], "server_tool_use": counts}}
    assert names(read(claude, "anthropic"), form) == ["usage.server_tool_use.web_search_requests"]
    used = {**RESPONSE, "tool_usage": {"web_search": {"num_requests": 2}, "image_gen": {"total_tokens": 0}}}
    assert {*names(read(used, "openai_responses"), form)} == {"tool_usage.web_search.num_requests"}


@pytest.mark.parametrize("form", [WireForm.OPENAI_CHAT, WireForm.OPENAI_RESPONSES])
def test_a_source_that_is_told_in_another_field_is_no_loss(form: WireForm) -> None:
    """Nor are words of the answer that its place says. Words of the page are one, and so are sources that are not told."""
    location = {
        "type": "web_search_result_location",
        "url": "https://a",
        "title": "A",
        "cited_text": "On the page",
    }
    content = [{**MESSAGE["content"][0], "citations": [location]}]
    told = names(read({**MESSAGE, "content": content}, "anthropic"), form)
    assert told == [
        "content[].citation.content",
        "segments",
    ]  # a source comes before its text, and here behind it
    page = {"type": "page_location", "document_index": 0, "document_title": "D", "cited_text": "Hi"}
    content = [
        {**MESSAGE["content"][0], "citations": [{**page, "start_page_number": 1, "end_page_number": 2}]}
    ]
    assert "content[].citation" in names(read({**MESSAGE, "content": content}, "anthropic"), form)
    support = {"segment": {"startIndex": 0, "endIndex": 2, "text": "Hi"}, "groundingChunkIndices": [0]}
    grounding = {
        "groundingChunks": [{"web": {"uri": "https://a", "title": "A"}}],
        "groundingSupports": [support],
    }
    parts = {"role": "model", "parts": [{"text": "Hi"}]}
    candidate = {"content": parts, "finishReason": "STOP", "groundingMetadata": grounding}
    told = names(read({"candidates": [candidate], "modelVersion": "g"}, "gemini"), form)
    assert not any(name.startswith("citation") for name in told)


ENCRYPTED = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAB"}


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize(
    ("path", "is_sealed"),
    [
        ("/v1/chat/completions", True),
        ("/v1/messages", True),
        ("/v1/responses", True),
        ("/v1/completions", False),
    ],
)
def test_reasoning_that_only_its_server_reads_is_no_loss_if_it_comes_back(
    path: str, *, is_sealed: bool, is_stream: bool
) -> None:
    """The seal brings it back. A client of Completions has no place for one, so it is told."""
    answer = {**RESPONSE, "output": [ENCRYPTED, *RESPONSE["output"]]}
    begun = {**ENCRYPTED, "encrypted_content": "gAAAAA"}
    events = [
        {"type": "response.created", "response": {**RESPONSE, "output": [], "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": begun},
        {"type": "response.output_item.done", "output_index": 0, "item": ENCRYPTED},
        {"type": "response.output_item.done", "output_index": 1, "item": RESPONSE["output"][0]},
        {"type": "response.completed", "response": answer},
    ]
    turns: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9}
    asked = {"/v1/responses": {"input": "Hi"}, "/v1/completions": {"prompt": "Hi"}}.get(path, turns)

    async def main() -> str:
        with ReplayServer() as upstream:
            numbered = [{**event, "sequence_number": number} for number, event in enumerate(events)]
            upstream.add(Answer.of_events(numbered) if is_stream else Answer.of_json(answer))
            model = f"tiny: {{provider: openai_responses, base_url: '{upstream.url}', api_key: k}}"
            app = create_app(config_of(upstream, "on_unsupported: drop", model))
            async with app.router.lifespan_context(app), asking(app) as client:
                said = await client.post(path, json={"model": "tiny", **asked, "stream": is_stream})
            named = re.findall(r"(?m)^: x-crosswalk-dropped: (.*)$", said.text)
            return said.headers.get("x-crosswalk-dropped", "") + "".join(named)

    assert asyncio.run(main()) == ("" if is_sealed else "output[].reasoning")
