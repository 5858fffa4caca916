"""Gemini's ``generateContent`` as a client's form: requests, answers, streams and errors, before any server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx2
import orjson
import pytest
from google import genai
from google.genai import types

from contrib_serve import ABOUT, USAGE, Live, asking, config_of, live, says, streams
from crosswalk import ChatResponse, normalize
from crosswalk.convert import WireForm
from crosswalk.service import HostedTool, HostedToolKind, NamedTool, ReasoningEffort, ToolChoice, message_of
from crosswalk.testing.replay import Answer, ReplayServer
from crosswalk.types import AudioPart, FilePart, ImagePart, TextPart
from crosswalk_serve import create_app
from crosswalk_serve.http import form_at
from crosswalk_serve.requests import Incoming, read_request

HI = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
CALL = {"id": "c1", "type": "function", "function": {"name": "tide", "arguments": '{"at":"noon"}'}}


def read(**more: Any) -> Incoming:
    body = orjson.dumps({**HI, **more})
    return read_request(WireForm.GEMINI, body, target={"model": "m", "stream": False})


# Requests.


def test_every_option_has_its_canonical_field() -> None:
    incoming = read(
        systemInstruction={"role": "user", "parts": [{"text": "Be brief."}]},
        generationConfig={
            "temperature": 0.5,
            "topP": 0.9,
            "topK": 3,
            "maxOutputTokens": 9,
            "stopSequences": ["."],
            "seed": 7,
            "responseMimeType": "application/json",
            "responseSchema": {
                "type": "OBJECT",
                "properties": {"type": {"type": "STRING", "nullable": True}},
            },
            "thinkingConfig": {"thinkingLevel": "LOW", "includeThoughts": True},
            "candidateCount": 1,
        },
        tools=[{"functionDeclarations": [{"name": "tide"}], "googleSearch": {}}],
        toolConfig={"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["tide"]}},
    )
    request = incoming.request
    assert (request.temperature, request.top_p, request.top_k, request.max_tokens) == (0.5, 0.9, 3, 9)
    assert (request.stop, request.seed, request.reasoning_effort) == ((".",), 7, ReasoningEffort.LOW)
    assert request.response_format is not None
    assert request.response_format.schema == {
        "type": "object",
        "properties": {"type": {"type": ["string", "null"]}},
    }
    assert [tool.name for tool in request.tools] == ["tide"]
    assert request.hosted_tools == (HostedTool(HostedToolKind.WEB_SEARCH),)
    assert request.tool_choice == NamedTool("tide")
    assert [message_of(turn).text for turn in request.messages] == ["Be brief.", "Hi"]
    assert request.extra_options == {"reasoning_summary": "auto"}
    assert incoming.unread == {}


def test_fields_may_have_their_proto_names() -> None:
    incoming = read(
        system_instruction={"parts": [{"text": "Be brief."}]},
        generation_config={
            "response_mime_type": "text/plain",
            "top_k": 40.0,
            "thinking_config": {"thinking_budget": 0},
        },
        tools=[{"function_declarations": [{"name": "tide", "parameters_json_schema": {"type": "object"}}]}],
        tool_config={"function_calling_config": {"mode": "NONE"}},
    )
    assert incoming.request.reasoning_effort is ReasoningEffort.NONE
    assert incoming.request.tool_choice is ToolChoice.NONE
    assert incoming.request.top_k == 40
    assert len(incoming.request.messages) == 2
    assert incoming.unread == {}


def test_a_format_of_json_needs_no_schema() -> None:
    wanted = read(generationConfig={"responseMimeType": "application/json"}).request.response_format
    assert wanted is not None
    assert wanted.schema is None
    given = {"responseMimeType": "application/json", "responseJsonSchema": {"type": "object"}}
    wanted = read(generationConfig=given).request.response_format
    assert wanted is not None
    assert wanted.schema == {"type": "object"}


def test_an_unknown_schema_stays_as_it_is() -> None:
    schema = {
        "type": "object",
        "anyOf": [{"type": "STRING"}, True],
        "items": "x",
        "nullable": True,
        "properties": 7,
    }
    incoming = read(
        tools=[{"functionDeclarations": [{"name": "f", "parameters": {"type": "object", "x": schema}}]}]
    )
    assert incoming.request.tools[0].parameters["x"] == schema
    incoming = read(tools=[{"functionDeclarations": [{"name": "f", "parameters": schema}]}])
    assert incoming.request.tools[0].parameters == {
        "type": ["object", "null"],
        "anyOf": [{"type": "string"}, True],
        "items": "x",
        "properties": 7,
    }


def test_what_has_no_canonical_field_stays_unread() -> None:
    incoming = read(
        safetySettings=[{"category": "HARM_CATEGORY_HATE_SPEECH", "threshold": "BLOCK_NONE"}],
        generationConfig={"candidateCount": 2, "responseLogprobs": True, "responseMimeType": "text/x.enum"},
        tools=[{"googleSearch": {"excludeDomains": ["a.example"]}}],
        toolConfig={"retrievalConfig": {}},
    )
    assert (incoming.wants.n, incoming.wants.logprobs) == (2, True)
    assert set(incoming.unread) == {
        "safetySettings",
        "generationConfig.candidateCount",
        "generationConfig.responseLogprobs",
        "generationConfig.responseMimeType",
        "tools[0].googleSearch.excludeDomains",
        "toolConfig.retrievalConfig",
    }


def test_media_have_their_kind() -> None:
    parts = [
        {"text": "Look:"},
        {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
        {"inline_data": {"mime_type": "audio/wav", "data": "AAAA"}},
        {
            "fileData": {
                "mimeType": "application/pdf",
                "fileUri": "https://a.example/b.pdf",
                "displayName": "b",
            }
        },
        {"videoMetadata": {"fps": 1}},
    ]
    incoming = read(contents={"parts": parts})
    assert incoming.unread == {"contents.parts[4]": parts[4]}
    (message,) = incoming.request.messages
    assert message.content == (
        TextPart("Look:"),
        ImagePart(data="AAAA", media_type="image/png"),
        AudioPart(data="AAAA", media_type="audio/wav"),
        FilePart(url="https://a.example/b.pdf", media_type="application/pdf", name="b"),
    )


def test_results_belong_to_their_calls() -> None:
    call = {"functionCall": {"name": "tide", "args": {"at": "noon"}}, "thoughtSignature": "AQ=="}
    png = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    incoming = read(
        contents=[
            {"role": "user", "parts": [{"text": "High?"}]},
            {
                "role": "model",
                "parts": [{"text": "Look.", "thought": True}, call, {"function_call": {"name": "wind"}}],
            },
            {
                "role": "function",
                "parts": [
                    {"functionResponse": {"name": "wind", "response": {"error": "calm"}}},
                    {"text": "And:"},
                    {"functionResponse": {"name": "tide", "response": {"m": 3, "t": 1}, "parts": [png]}},
                ],
            },
            {"role": "model", "parts": [{"functionCall": {"name": "sun"}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "sun", "response": {"up": "yes"}}}]},
        ]
    )
    _, turn, wind, said, tide, _, sun = incoming.request.messages
    assert isinstance(turn, ChatResponse)
    assert turn.reasoning == "Look."
    assert [call.id for call in turn.tool_calls] == ["call_1_1", "call_1_2"]
    results = [message_of(one) for one in (wind, tide)]
    assert [one.tool_call_id for one in results] == ["call_1_2", "call_1_1"]
    assert [(one.text, one.is_error) for one in results] == [("calm", True), ('{"m":3,"t":1}', None)]
    assert message_of(said).text == "And:"
    assert message_of(sun).text == '{"up":"yes"}'


def test_the_path_or_the_key_tells_geminis_clients() -> None:
    assert form_at("/v1beta/models", frozenset()) is WireForm.GEMINI
    assert form_at("/v1/models", {"x-goog-api-key"}) is WireForm.GEMINI


# Answers.


def gemini(
    body: dict[str, Any] = HI, *, method: str = "generateContent", config: Any, **headers: str
) -> httpx2.Response:
    """The gateway's answer to a client of Gemini's."""

    async def ask() -> httpx2.Response:
        app = create_app(config)
        async with app.router.lifespan_context(app), asking(app, headers=headers) as client:
            return await client.post(f"/v1beta/models/tiny:{method}", json=body)

    return asyncio.run(ask())


def test_a_chat_server_answers_in_geminis_words(upstream: ReplayServer) -> None:
    upstream.add(says("", tool_calls=[CALL]))
    answer = gemini(config=config_of(upstream))
    assert answer.status_code == 200
    (candidate,) = answer.json()["candidates"]
    called = {"id": "c1", "name": "tide", "args": {"at": "noon"}}
    assert candidate == {
        "content": {"parts": [{"functionCall": called}], "role": "model"},
        "finishReason": "STOP",
        "index": 0,
    }
    assert answer.json()["usageMetadata"]["totalTokenCount"] == 13
    assert upstream.requests[0].json()["messages"] == [{"role": "user", "content": "Hi"}]


def test_a_stream_comes_in_geminis_chunks(upstream: ReplayServer) -> None:
    upstream.add(streams("High ", "tide."))
    answer = gemini(method="streamGenerateContent?alt=sse", config=config_of(upstream))
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert b"[DONE]" not in answer.content
    back = normalize(answer.content, "gemini")
    assert (back.text, back.usage.total_tokens, back.is_complete) == ("High tide.", 13, True)


def test_a_stream_is_an_array_without_alt(upstream: ReplayServer) -> None:
    upstream.add(streams("High ", "tide."))
    answer = gemini(method="streamGenerateContent", config=config_of(upstream))
    assert answer.headers["content-type"] == "application/json"
    parts = answer.json()[0]["candidates"][0]["content"]["parts"]
    assert (parts, len(answer.json())) == ([{"text": "High "}], 3)
    assert normalize(answer.content, "gemini").text == "High tide."


def test_an_array_is_passed_on_from_a_gemini_server(upstream: ReplayServer) -> None:
    chunk = {"candidates": [{"content": {"parts": [{"text": "Hi"}]}, "new": 1, "finishReason": "STOP"}]}
    upstream.add(Answer.of_events([chunk, chunk]))
    models = f"tiny: {{provider: gemini, base_url: '{upstream.url}', api_key: k}}"
    answer = gemini(method="streamGenerateContent", config=config_of(upstream, models=models))
    assert answer.json()[0] == chunk


def test_a_failed_array_ends_with_the_error(upstream: ReplayServer) -> None:
    choice = {"index": 0, "delta": {"content": "High"}}
    upstream.add(Answer.of_events([{"choices": [choice]}, {"error": {"message": "no", "code": 500}}]))
    answer = gemini(method="streamGenerateContent", config=config_of(upstream))
    assert "error" in answer.json()[-1]


@pytest.mark.parametrize("body", [HI, {"generateContentRequest": {"model": "models/tiny", **HI}}])
def test_tokens_are_estimated_or_counted_by_a_gemini_server(
    upstream: ReplayServer, body: dict[str, Any]
) -> None:
    estimated = gemini(body, method="countTokens", config=config_of(upstream))
    assert estimated.json()["totalTokens"] > 0
    assert estimated.headers["x-crosswalk-estimated"] == "totalTokens"
    upstream.add(Answer.of_json({"totalTokens": 7}))
    models = f"tiny: {{provider: gemini, model: real, base_url: '{upstream.url}', api_key: k}}"
    counted = gemini(body, method="countTokens", config=config_of(upstream, models=models))
    assert counted.json() == {"totalTokens": 7}
    assert upstream.requests[-1].path == "/v1beta/models/real:countTokens"
    contents = [{"role": "user", "parts": [{"text": "Hi"}]}]
    assert upstream.requests[-1].json() == {
        "generateContentRequest": {"model": "models/real", "contents": contents}
    }


def test_models_are_listed_for_geminis_clients(upstream: ReplayServer) -> None:
    async def ask() -> list[Any]:
        app = create_app(config_of(upstream))
        async with app.router.lifespan_context(app), asking(app) as client:
            return [(await client.get(f"/v1beta/models{path}")).json() for path in ("", "/tiny", "/none")]

    listed, model, missing = asyncio.run(ask())
    assert listed["models"] == [model]
    assert model["name"] == "models/tiny"
    assert "countTokens" in model["supportedGenerationMethods"]
    assert missing["error"]["code"] == 404


@pytest.mark.parametrize(
    ("method", "status", "problem"),
    [
        ("embedContent", 404, "no such method"),
        ("generateContent", 401, "key"),
    ],
)
def test_errors_have_googles_words(upstream: ReplayServer, method: str, status: int, problem: str) -> None:
    keys = f"keys: {{a: {{hash: 'sha256:{'0' * 32}:{'0' * 64}'}}}}"
    answer = gemini(method=method, config=config_of(upstream, keys if status == 401 else ""))
    assert answer.status_code == status
    assert answer.json()["error"]["code"] == status
    assert problem in answer.json()["error"]["message"]


def test_a_gemini_server_gets_the_request_as_it_came(upstream: ReplayServer) -> None:
    sent = {
        "modelVersion": "real",
        "responseId": "r-1",
        "candidates": [
            {"content": {"parts": [{"text": "Hi"}], "role": "model"}, "finishReason": "STOP", "new": 1}
        ],
    }
    upstream.add(Answer.of_json(sent))
    models = f"tiny: {{provider: gemini, model: real, base_url: '{upstream.url}', api_key: k}}"
    body = {**HI, "safetySettings": [], "generation_config": {"temperature": 1}}
    answer = gemini(body, config=config_of(upstream, models=models))
    assert answer.json() == sent
    assert upstream.requests[0].json() == body
    assert upstream.requests[0].path == "/v1beta/models/real:generateContent"


def test_a_call_that_completions_cannot_say_is_an_error(upstream: ReplayServer) -> None:
    upstream.add(says("", tool_calls=[CALL]))

    async def ask() -> httpx2.Response:
        app = create_app(config_of(upstream))
        async with app.router.lifespan_context(app), asking(app) as client:
            return await client.post("/v1/completions", json={"model": "tiny", "prompt": "Hi"})

    answer = asyncio.run(ask())
    assert answer.status_code == 502
    assert answer.json()["error"]["code"] == "unsupported_answer"


# Google's client.


@pytest.fixture
def gateway(upstream: ReplayServer) -> Iterator[Live]:
    with live(config_of(upstream)) as running:
        yield running


def test_googles_client_reads_answers_and_streams(upstream: ReplayServer, gateway: Live) -> None:
    for given in (says("Hello"), streams("High ", "tide."), says("", tool_calls=[CALL])):
        upstream.add(given)
    client = genai.Client(
        api_key="k", http_options=types.HttpOptions(base_url=f"http://127.0.0.1:{gateway.port}")
    )
    assert client.models.generate_content(model="tiny", contents="Hi").text == "Hello"
    chunks = client.models.generate_content_stream(model="tiny", contents="Hi")
    assert "".join(chunk.text or "" for chunk in chunks) == "High tide."
    called = client.models.generate_content(model="tiny", contents="Hi").function_calls
    assert called is not None
    assert [(call.name, call.args) for call in called] == [("tide", {"at": "noon"})]
    assert [model.name for model in client.models.list()] == ["models/tiny"]
    assert client.models.get(model="tiny").display_name == "tiny"
    assert (client.models.count_tokens(model="tiny", contents="Hi").total_tokens or 0) > 0


GEMINI = "tiny: {{provider: gemini, base_url: '{}', api_key: k}}"
FAILED = {
    "/v1/chat/completions": ("error", "type", "server_error"),
    "/v1/completions": ("error", "type", "server_error"),
    "/v1/messages": ("error", "type", "api_error"),
    "/v1/responses": ("error", "code", "server_error"),
    "/api/chat": None,
}
ASKED = {"model": "tiny", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9, "input": "Hi", "prompt": "Hi"}  # fmt: skip
USED = {
    "/v1/completions": ("prompt",), "/v1/responses": ("input",), "/api/chat": ("messages",),
    "/v1/messages": ("messages", "max_tokens"), "/v1/chat/completions": ("messages",),
}  # fmt: skip


def gemini_ends(word: str, text: str, *, is_stream: bool) -> Answer:
    """An answer of Gemini that ends with *word*."""
    content = {"role": "model", "parts": [{"text": text}] if text else []}
    end = {"finishReason": word, "finishMessage": "Malformed function call: f(", "index": 0}
    usage = {"promptTokenCount": 5, "candidatesTokenCount": 7, "totalTokenCount": 12}
    body = {"candidates": [{"content": content, **end}], "usageMetadata": usage, "responseId": "r"}
    if not is_stream:
        return Answer.of_json(body)
    frame = b"data: %b\n\n" % orjson.dumps(body)
    return Answer((frame,), headers={"Content-Type": "text/event-stream"}, stream=True)


@pytest.mark.parametrize("text", ["", "Well"])
@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("path", FAILED)
@pytest.mark.parametrize("word", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"])
def test_a_call_that_the_model_has_spoilt_is_no_fault_of_the_client(
    upstream: ReplayServer, word: str, path: str, text: str, *, is_stream: bool
) -> None:
    upstream.add(gemini_ends(word, text, is_stream=is_stream))
    asked = {key: ASKED[key] for key in ("model", *USED[path])}
    app = create_app(config_of(upstream, "on_unsupported: drop", GEMINI.format(upstream.url)))

    async def main() -> httpx2.Response:
        async with app.router.lifespan_context(app), asking(app) as client:
            return await client.post(path, json={**asked, "stream": is_stream})

    answer = asyncio.run(main())
    is_begun = path == "/v1/responses" or (is_stream and bool(text))
    assert answer.status_code == (200 if is_begun else 502)
    assert "Malformed function call: f(" in answer.text
    assert not any(blame in answer.text for blame in ("invalid_request", "invalid_prompt"))
    place = FAILED[path]
    if place is not None and not is_stream:
        name, key, expected = place
        assert answer.json()[name][key] == expected


def test_a_stream_comes_in_a_format_that_there_is(gateway: Live, upstream: ReplayServer) -> None:
    for query, status in (("", 200), ("?alt=json", 200), ("?alt=proto", 400)):
        upstream.add(streams("Hello"))
        answer = httpx2.post(f"{gateway.url}/v1beta/models/tiny:streamGenerateContent{query}", json=HI)
        assert answer.status_code == status
    assert answer.json()["error"]["message"] == "alt: must be one of json, sse"


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_client_gets_no_call_whose_arguments_were_cut(
    gateway: Live, upstream: ReplayServer, *, is_stream: bool
) -> None:
    """The SDK would call the function with what stands there. The answer says that it was cut, and a header what is lost."""
    cut: Any = {**CALL, "function": {"name": "tide", "arguments": '{"at":"no'}}
    delta = {"role": "assistant", "content": "Hello", "tool_calls": [{"index": 0, **cut}]}
    choice = {"index": 0, "delta" if is_stream else "message": delta, "finish_reason": "length"}
    kind = "chat.completion.chunk" if is_stream else "chat.completion"
    body = {**ABOUT, "object": kind, "choices": [choice], "usage": USAGE}
    upstream.add(Answer.of_events([body]) if is_stream else Answer.of_json(body))
    method = "streamGenerateContent?alt=sse" if is_stream else "generateContent"
    answer = httpx2.post(f"{gateway.url}/v1beta/models/tiny:{method}", json=HI)
    assert ('"finishReason":"MAX_TOKENS"' in answer.text, "INVALID_JSON" in answer.text) == (True, False)
    assert "functionCall" not in answer.text
    if not is_stream:
        assert "message.tool_calls[0]" in answer.headers["x-crosswalk-dropped"]
