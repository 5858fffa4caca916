"""Servers that lie: their answers do not harm the gateway, nor reach other users."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest

from contrib_serve import ABOUT, HI, asking, config_of, says, streams
from crosswalk import normalize
from crosswalk.records import read_record
from crosswalk.testing.replay import Answer, ReplayServer
from crosswalk_serve import create_app
from crosswalk_serve.config import Config

CHAT = "/v1/chat/completions"


def post(config: Config, body: Any = HI, path: str = CHAT) -> httpx2.Response:
    """The answer of a new gateway."""

    async def main() -> httpx2.Response:
        app = create_app(config)
        async with app.router.lifespan_context(app), asking(app) as client:
            return await client.post(path, json=body)

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("answer", "is_stream", "status"),
    [(says("x" * 2000), False, 502), (streams(*["x"] * 50), False, 502), (streams(*["x"] * 50), True, 200)],
)
def test_an_answer_without_an_end_is_cut(
    upstream: ReplayServer, answer: Answer, is_stream: bool, status: int
) -> None:
    upstream.add(answer, times=2)
    said = post(config_of(upstream, "limits: {answer_bytes: 2000}"), {**HI, "stream": is_stream})
    assert said.status_code == status
    assert "longer than 2000 bytes" in said.text
    assert "[DONE]" not in said.text
    said = post(config_of(upstream), {**HI, "stream": is_stream})
    assert "error" not in said.text


@pytest.mark.parametrize("status", [301, 302, 304, 307])
def test_a_redirection_is_not_followed_and_no_fault_of_the_clients(
    upstream: ReplayServer, status: int
) -> None:
    upstream.add(Answer((), status=status, headers={"Location": f"{upstream.url}/elsewhere"}))
    said = post(config_of(upstream))
    assert (said.status_code, said.json()["error"]["code"]) == (502, "no_answer")
    assert upstream.url not in said.text
    assert len(upstream.requests) == 1


ECHO = {"error": {"message": "no: Bearer sk-secret-1", "headers": {"authorization": "Bearer sk-secret-1"}}}


@pytest.mark.parametrize(
    "answer",
    [
        Answer.of_json(ECHO, status=400),
        Answer.of_json(ECHO, status=401),
        Answer((b"Bearer sk-secret-1 \xff is wrong",), status=500, headers={"Content-Type": "text/plain"}),
        Answer.of_events(
            [
                {
                    **ABOUT,
                    "object": "chat.completion.chunk",
                    "choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": None}],
                },
                ECHO,
            ]
        ),
    ],
)
@pytest.mark.parametrize("is_stream", [False, True])
def test_credentials_that_a_server_repeats_reach_nobody(
    upstream: ReplayServer, tmp_path: Path, caplog: pytest.LogCaptureFixture, answer: Answer, is_stream: bool
) -> None:
    """Neither the client, nor a log, that of exchanges included."""
    upstream.add(answer)
    caplog.set_level("INFO")
    model = f"tiny: {{provider: vllm, base_url: '{upstream.url}', api_key: sk-secret-1}}"
    config = config_of(upstream, f"log: {{exchanges: {tmp_path}/log}}", model)
    said = post(config, {**HI, "stream": is_stream})
    record = read_record((tmp_path / "log").read_bytes())
    assert b"<secret>" in record.body
    for text in (said.text, str(said.headers), caplog.text, record.body.decode("latin-1")):
        assert "sk-secret-1" not in text
    assert normalize(record.body, "vllm", status=500).error_info is not None


CLIENTS: dict[str, Any] = {
    CHAT: HI,
    "/v1/responses": {"model": "tiny", "input": "Hi"},
    "/v1/messages": {**HI, "max_tokens": 9},
    "/v1beta/models/tiny:generateContent": {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]},
    "/api/chat": {**HI, "stream": False},
}


KEY = "sk-secret-1"
WORDS = {"message": KEY, "type": KEY, "param": KEY, "code": KEY, KEY: 7}
PARTIAL = {**ABOUT, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "a"}}]}
FAILED = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "status": "failed",
    "model": "m",
    "error": WORDS,
}
SAID = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "a", "annotations": []}]}  # fmt: skip
REPEATING: dict[str, tuple[str, Answer]] = {
    "a body of Chat": ("vllm", Answer.of_json({"error": WORDS}, status=400)),
    "a stream of Chat": ("vllm", Answer.of_events([PARTIAL, {"error": WORDS}])),
    "an answer of Chat with an error": ("vllm", Answer.of_json({**ABOUT, "object": "chat.completion", "choices": [{"index": 0, "message": {"role": "assistant", "content": "a"}, "finish_reason": "error"}], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}, "error": WORDS})),
    "a body of Responses": ("openai_responses", Answer.of_json({"error": WORDS}, status=400)),
    "an answer of Responses with an error": ("openai_responses", Answer.of_json({**FAILED, "output": [SAID], "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}})),
    "a stream of Responses": ("openai_responses", Answer.of_events([{"type": "response.created", "sequence_number": 0, "response": {**FAILED, "error": None, "status": "in_progress", "output": []}}, {"type": "response.failed", "sequence_number": 1, "response": {**FAILED, "output": [SAID], "error": {"code": KEY, "message": "no"}}}])),
    "a body of Messages": ("anthropic", Answer.of_json({"type": "error", "error": {"type": KEY, "message": KEY, "details": {"error_code": KEY, KEY: KEY}}, "request_id": KEY}, status=400)),
    "a body of Gemini": ("gemini", Answer.of_json({"error": {"code": 400, "message": KEY, "status": KEY, "details": [{"@type": KEY, "reason": KEY}]}}, status=400)),
}  # fmt: skip
"""Answers of servers that repeat their key in every word of an error, by what they are, with the provider."""


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("path", CLIENTS)
@pytest.mark.parametrize("name", REPEATING)
def test_no_word_of_an_error_shows_a_credential(
    upstream: ReplayServer, name: str, path: str, is_stream: bool
) -> None:
    provider, answer = REPEATING[name]
    upstream.add(answer)
    base = f"{upstream.url}/v1" if provider == "openai_responses" else upstream.url
    config = config_of(upstream, models=f"tiny: {{provider: {provider}, base_url: '{base}', api_key: {KEY}}}")
    body = {key: value for key, value in CLIENTS[path].items() if key != "stream"}
    if ":" not in path:
        body["stream"] = is_stream
    said = post(config, body, path.replace(":generate", ":streamGenerate") if is_stream else path)
    assert len(upstream.requests) == 1
    assert KEY not in said.text + str(said.headers)
    assert "error" in said.text


def test_no_word_of_an_error_of_a_page_that_is_passed_on_shows_a_credential(
    upstream: ReplayServer,
) -> None:
    upstream.add(Answer.of_json({"error": WORDS}, status=400))
    models = f"tiny: {{provider: vllm, base_url: '{upstream.url}', api_key: {KEY}}}"
    said = post(config_of(upstream, models=models), {"model": "tiny", "input": "a"}, "/v1/embeddings")
    assert said.status_code == 400
    assert KEY not in said.text
    assert said.json()["error"]["message"] == "<secret>"


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("body", [b"null", b"[]", b"{}", b"<html>", b'{"choices": 5}', b'{"choices": []}'])
def test_an_answer_that_cannot_be_read_has_one_type_and_code(
    upstream: ReplayServer, body: bytes, is_stream: bool
) -> None:
    upstream.add(Answer((body,), headers={"Content-Type": "application/json"}))
    said = post(config_of(upstream), {**HI, "stream": is_stream})
    error = said.json()["error"]
    assert (said.status_code, error["type"], error["code"]) == (502, "server_error", "unreadable_answer")


def test_what_a_stream_says_of_a_busy_server_has_google_s_word_for_it(upstream: ReplayServer) -> None:
    upstream.add(Answer.of_events([PARTIAL, {"error": {"message": "busy", "code": 503}}]))
    path = "/v1beta/models/tiny:streamGenerateContent?alt=sse"
    said = post(config_of(upstream), CLIENTS["/v1beta/models/tiny:generateContent"], path)
    assert '{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}' in said.text


@pytest.mark.parametrize("is_stream", [False, True])
def test_an_answer_that_the_client_s_format_cannot_hold_is_the_server_s_fault(
    upstream: ReplayServer, is_stream: bool
) -> None:
    """Ollama's reasoning that is no text, for a client of its older page."""
    about = {"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": True, "done_reason": "stop"}
    message = {"role": "assistant", "content": "x"}
    upstream.add(Answer.of_json({**about, "message": message, "eval_count": 2, "thinking": 5}))
    config = config_of(upstream, models=f"tiny: {{provider: ollama, base_url: '{upstream.url}'}}")
    said = post(config, {"model": "tiny", "prompt": "Hi", "stream": is_stream}, "/api/generate")
    assert said.status_code == (200 if is_stream else 502)
    assert "the gateway failed" not in said.text
    assert is_stream or "cannot be written" in said.json()["error"]


@pytest.mark.untraced
@pytest.mark.parametrize("path", CLIENTS)
@pytest.mark.parametrize(
    "body",
    [b"slow down", b"<html>slow down</html>", b"\xff\x00", b'"slow down"', b"7", b'[{"error": {"code": 429}}]', b""],
    ids=["text", "page", "binary", "a JSON text", "a number", "an array", "nothing"],
)  # fmt: skip
def test_an_error_whose_body_is_no_object_keeps_its_status(
    upstream: ReplayServer, path: str, body: bytes
) -> None:
    headers = {"Content-Type": "text/plain", "Retry-After": "7"}
    upstream.add(Answer((body,), status=429, headers=headers), times=3)
    answer = post(config_of(upstream), CLIENTS[path], path)
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "7")
    assert "the gateway failed" not in answer.text


def test_what_a_server_answers_is_written_down_as_it_came(upstream: ReplayServer, tmp_path: Path) -> None:
    """A key that is not secret, such as EMPTY, is a word like any other."""
    upstream.add(says("an EMPTY one"))
    model = f"tiny: {{provider: vllm, base_url: '{upstream.url}', api_key: EMPTY}}"
    post(config_of(upstream, f"log: {{exchanges: {tmp_path}/log}}", model))
    assert "an EMPTY one" in (tmp_path / "log").read_text()


LOOK = {"type": "function", "name": "look", "parameters": {"type": "object"}}
SEA = [{"type": "namespace", "name": "sea", "description": "", "tools": [LOOK]}]
RESPONSE = {"object": "response", "model": "tiny", "status": "completed"}


@pytest.mark.parametrize("more", [{"output": []}, {"id": "resp_1", "output": None}, {"id": "resp_1"}])
def test_an_answer_without_what_its_format_demands_still_reaches_its_client(
    upstream: ReplayServer, more: dict[str, Any]
) -> None:
    upstream.add(Answer.of_json({**RESPONSE, **more}))
    model = f"tiny: {{provider: openai_responses, base_url: '{upstream.url}', api_key: sk-own}}"
    asked = {"model": "tiny", "input": "Hi", "tools": SEA}
    answer = post(config_of(upstream, models=model), asked, "/v1/responses")
    assert (answer.status_code, answer.json()) == (200, {**RESPONSE, **more})


def test_so_does_a_completion_without_a_text(upstream: ReplayServer) -> None:
    choices = [{"index": 0, "text": "b"}, {"index": 1, "text": None}]
    ended = [{**choice, "finish_reason": "stop"} for choice in choices]
    upstream.add(Answer.of_json({**ABOUT, "object": "text_completion", "choices": ended}))
    asked = {"model": "tiny", "prompt": "a", "echo": True}
    answer = post(config_of(upstream), asked, "/v1/completions")
    assert [choice["text"] for choice in answer.json()["choices"]] == ["ab", "a"]


def test_a_call_of_a_custom_tool_as_a_function_is_a_custom_call(upstream: ReplayServer) -> None:
    call = {"id": "fc_1", "call_id": "c", "name": "run", "arguments": '{"input":"ls"}', "status": "completed"}
    upstream.add(Answer.of_json({**RESPONSE, "id": "r", "output": [{"type": "function_call", **call}]}))
    model = f"tiny: {{provider: openai_responses, base_url: '{upstream.url}', api_key: sk-own}}"
    asked = {"model": "tiny", "input": "Hi", "tools": [{"type": "custom", "name": "run"}]}
    answer = post(config_of(upstream, models=model), asked, "/v1/responses")
    custom = {"type": "custom_tool_call", "id": "fc_1", "call_id": "c", "name": "run", "input": "ls"}
    assert answer.json()["output"] == [{**custom, "status": "completed"}]
    assert "x-crosswalk-dropped" not in answer.headers


UNREAD = [
    {"id": "x", "object": "chat.completion", "model": "m", "choices": 7},
    {"id": "x", "object": "chat.completion", "model": "m", "choices": [{"index": 0, "message": {"content": 7}}]},
    {"id": "x", "object": "chat.completion", "model": "m", "choices": [[]]},
]  # fmt: skip
"""Answers that are JSON of no shape that the API has."""
PAGES = [b"<html>", b"", b" ", b"{}", b'{"choices":[{"index":0,"message":{"content":"Hel"}}]}']
KINDS = ["application/json", "text/html"]


ASKED = {CHAT: HI, "/v1/responses": {"model": "tiny", "input": "Hi"}}


@pytest.mark.parametrize("path", ASKED)
@pytest.mark.parametrize("answer", UNREAD)
def test_the_code_of_an_unreadable_answer_is_a_word(upstream: ReplayServer, answer: Any, path: str) -> None:
    """And not the name of a class of Python. A page in place of the answer has the same one."""
    pages = [Answer((text,), headers={"content-type": kind}) for text in PAGES for kind in KINDS]
    for one in (Answer.of_json(answer), *pages):
        upstream.add(one)
    config = config_of(upstream)
    for said in [post(config, ASKED[path], path) for _ in range(1 + len(pages))]:
        assert (said.status_code, said.json()["error"]["code"]) == (502, "unreadable_answer")


@pytest.mark.parametrize("path", ASKED)
def test_so_is_that_of_an_unreadable_event(upstream: ReplayServer, path: str) -> None:
    about = {**ABOUT, "object": "chat.completion.chunk"}
    events = [
        {**about, "choices": [{"index": 0, "delta": {"content": content}, "finish_reason": None}]}
        for content in ("Hel", 7)
    ]
    upstream.add(Answer.of_events(events))
    said = post(config_of(upstream), {**ASKED[path], "stream": True}, path)
    assert "TypeError" not in said.text
    if path == CHAT:
        assert '"code":"unreadable_answer"' in said.text


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("path", "status", "said"),
    [(CHAT, 400, '"code":"tool_use_failed"'), ("/v1/messages", 500, '"type":"api_error"')],
)
def test_a_call_that_its_model_has_failed_to_write(
    upstream: ReplayServer, path: str, status: int, said: str, stream: bool
) -> None:
    """Groq says 400 then. Where no word tells that it is the model's fault, the status does."""
    error = {"message": "No.", "type": "invalid_request_error", "code": "tool_use_failed"}
    upstream.add(Answer.of_json({"error": error}, status=400))
    model = f"tiny: {{provider: groq, base_url: '{upstream.url}', api_key: k}}"
    answer = post(config_of(upstream, models=model), {**HI, "max_tokens": 9, "stream": stream}, path)
    assert (answer.status_code, answer.headers["x-should-retry"]) == (status, "false")
    assert said in answer.text


def test_an_answer_that_fails_before_its_content_is_a_stream_that_fails(upstream: ReplayServer) -> None:
    """A client of Responses reads events: it would take a body in their place for a stream without any."""
    candidate = {"content": {}, "finishReason": "NO_IMAGE", "index": 0}
    counts = {"promptTokenCount": 5, "candidatesTokenCount": 7, "totalTokenCount": 12}
    upstream.add(Answer.of_events([{"candidates": [candidate], "usageMetadata": counts}]))
    model = f"tiny: {{provider: gemini, model: g, base_url: '{upstream.url}', api_key: k}}"
    said = post(
        config_of(upstream, models=model), {"model": "tiny", "input": "hi", "stream": True}, "/v1/responses"
    )
    assert said.headers["content-type"].startswith("text/event-stream")
    events = [line.removeprefix("event: ") for line in said.text.splitlines() if line.startswith("event: ")]
    assert events == ["response.created", "response.in_progress", "response.failed"]


@pytest.mark.parametrize(
    ("code", "shown"), [("insufficient_quota", "insufficient_quota"), (None, None), (7, "7")]
)
def test_the_code_of_an_error_stays_also_where_it_is_its_type(
    upstream: ReplayServer, code: object, shown: object
) -> None:
    error = {"message": "You exceeded your quota.", "type": "insufficient_quota", "param": None, "code": code}
    upstream.add(Answer.of_json({"error": error}, status=429))
    assert post(config_of(upstream)).json()["error"]["code"] == shown
