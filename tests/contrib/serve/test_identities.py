"""Nothing that the gateway makes up is taken for an identity: it is absent, said by somebody, or the gateway's own."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import httpx2
import pytest

from contrib_serve import asking, config_of
from crosswalk.testing.replay import Answer, ReplayServer
from crosswalk_serve import create_app

IDENTITY = re.compile(
    r"(^|_)(ids?|digest|size|fingerprint|etag|version|created|at|model|object|owned_by|name)$"
    r"|Id$|Time$|Version$|^name$"
)
"""The fields by which clients tell things apart."""
KINDS_OF_OBJECTS = {
    "chat.completion", "chat.completion.chunk", "list", "model", "response", "response.input_tokens",
    "text_completion",
}  # fmt: skip
API_WORDS = {
    ("version",): "0.33.0",  # of the API that is spoken: clients check it
    ("data[]", "created_at"): "1970-01-01T00:00:00Z",  # Anthropic's word for an unknown release
    ("created_at",): "1970-01-01T00:00:00Z",
    ("data[]", "owned_by"): "crosswalk",
    ("owned_by",): "crosswalk",
}
"""Constants that an API gives a meaning."""
CALL = {"type": "function", "function": {"name": "look", "arguments": "{}"}}
MESSAGE = {"role": "assistant", "content": "Hello", "reasoning_content": "hm"}
TEXT = [{"role": "user", "content": "Hi"}]
ASKS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": TEXT},
    "/v1/completions": {"prompt": "Hi"},
    "/v1/responses": {"input": "Hi"},
    "/v1/messages": {"max_tokens": 5, "messages": TEXT},
    "/api/chat": {"messages": TEXT},
    "/api/generate": {"prompt": "Hi"},
    "/v1beta/models/tiny:generateContent": {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]},
    "/v1/responses/input_tokens": {"input": "Hi"},
    "/v1/messages/count_tokens": {"messages": TEXT},
    "/v1beta/models/tiny:countTokens": {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]},
    "/api/embed": {"input": "Hi"},
    "/api/show": {},
}
LISTS = (
    *("/v1/models", "/v1/models/tiny", "/v1beta/models", "/v1beta/models/tiny"),
    *("/api/tags", "/api/ps", "/api/version"),
)
FIRST, SECOND = 1_800_000_000, 1_800_086_400


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every value in *value*, with the names that lead to it."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, (*path, name))
    elif isinstance(value, list):
        head = (*path[:-1], f"{path[-1]}[]") if path else ("[]",)
        for inner in value:
            yield from leaves(inner, head)
    else:
        yield path, value


def objects_of(answer: httpx2.Response) -> Iterator[Any]:
    """The JSON of a body, of lines, or of the events of a stream."""
    if answer.headers["content-type"].startswith("application/json"):
        yield answer.json()
        return
    for line in answer.text.splitlines():
        line = line.removeprefix("data: ")
        if line.startswith("{"):
            yield json.loads(line)


def identities(answer: httpx2.Response) -> list[tuple[tuple[str, ...], Any]]:
    """The values of *answer* that a client may take for the identity of something."""
    assert answer.status_code == 200, answer.text
    return [
        (path, value)
        for one in objects_of(answer)
        for path, value in leaves(one)
        if path and IDENTITY.search(path[-1].removesuffix("[]")) and value is not None
    ]


def is_time(path: tuple[str, ...], value: Any, *, starts: tuple[float, float]) -> bool:
    """Whether *value* is a time of this test, or of the gateway that was made in it."""
    if not re.search(r"(created|_at|Time)$", path[-1]):
        return False
    seconds = value if isinstance(value, int | float) else datetime.fromisoformat(value).timestamp()
    return seconds in (FIRST, SECOND) or starts[0] - 1 <= seconds <= starts[1] + 1


async def asked(url: str, clock: float, models: str, names: tuple[str, ...]) -> list[tuple[str, Any]]:
    """The answers of a new gateway to everything that it can be asked."""
    config = config_of(ReplayServer(), "on_unsupported: drop", models.replace("URL", url))
    app = create_app(config, clock=lambda: clock)
    answers: list[tuple[str, Any]] = []
    async with asking(app) as client:
        for path, body in ASKS.items():
            said = body if "/models/" in path else {"model": names[0], **body}
            whole = {"stream": False} if path.startswith("/api/") else {}
            answers.append((path, await client.post(path, json={**said, **whole})))
            if path in list(ASKS)[:6]:
                answers.append((f"{path} stream", await client.post(path, json={**said, "stream": True})))
        streamed = "/v1beta/models/tiny:streamGenerateContent?alt=sse"
        answers.append(
            (streamed, await client.post(streamed, json=ASKS["/v1beta/models/tiny:generateContent"]))
        )
        answers += [(path, await client.get(path)) for path in LISTS]
        claude = {"anthropic-version": "2023-06-01"}
        answers += [(f"{path} claude", await client.get(path, headers=claude)) for path in LISTS[:2]]
    await app.state.gateway.aclose()
    return answers


@pytest.mark.parametrize("with_call", [False, True], ids=["text", "call"])
def test_every_identity_is_said_by_somebody_or_is_the_gateways_own(with_call: bool) -> None:
    """The server says no id, no time and no model. So each such value in an answer is null, the client's, or differs.

    An own one differs in the answer to the next request, or is a time. A digest tells models apart instead.
    """
    message = {**MESSAGE, "tool_calls": [CALL]} if with_call else MESSAGE
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    deltas = [
        {"choices": [{"index": 0, "delta": {**message, **({"tool_calls": [{"index": 0, **CALL}]} if with_call else {})}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ]  # fmt: skip
    with ReplayServer() as server:
        server.add(Answer.of_events(deltas), when=lambda request: bool(request.wants_stream), times=None)
        server.add(Answer.of_json({"data": [{"embedding": [0.5]}]}), path="/v1/embeddings", times=None)
        server.add(Answer.failure(404), path="/v1/messages/count_tokens", times=None)
        server.add(Answer.of_json(body), times=None)
        models = "tiny: {provider: vllm, base_url: 'URL'}\n  big: {provider: vllm, base_url: 'URL'}"
        start = datetime.now().timestamp()

        async def main() -> list[list[tuple[str, Any]]]:
            return [await asked(server.url, clock, models, ("tiny", "big")) for clock in (FIRST, SECOND)]

        first, second = asyncio.run(main())
        starts = (start, datetime.now().timestamp())
    found = 0
    for (page, one), (_, other) in zip(first, second, strict=True):
        if one.status_code == 502:  # a call cannot be said in every format
            assert with_call
            assert page.startswith(("/v1/completions", "/api/generate"))
            continue
        others = {value for _, value in identities(other)}
        for path, value in identities(one):
            found += 1
            is_said = (
                value in ("tiny", "big", "models/tiny", "models/big", "look") or value in KINDS_OF_OBJECTS
            )
            is_own = value not in others or is_time(path, value, starts=starts)
            is_digest = path[-1] == "digest" and bool(re.fullmatch("[0-9a-f]{64}", value))
            assert is_said or is_own or is_digest or API_WORDS.get(path) == value, (page, path, value)
    assert found > 60


def test_no_size_and_no_time_of_a_file_that_is_not_there() -> None:
    """Ollama's clients sort and group by them."""
    with ReplayServer() as server:
        models = "tiny: {provider: vllm, base_url: 'URL'}\n  big: {provider: vllm, base_url: 'URL'}"
        answers = dict(asyncio.run(asked_lists(server.url, models)))
    tags = answers["/api/tags"]["models"]
    assert [set(entry) for entry in tags] == [{"name", "model", "digest", "details"}] * 2
    assert len({entry["digest"] for entry in tags}) == 2
    assert [entry["created"] for entry in answers["/v1/models"]["data"]] == [FIRST] * 2


async def asked_lists(url: str, models: str) -> list[tuple[str, Any]]:
    app = create_app(config_of(ReplayServer(), "", models.replace("URL", url)), clock=lambda: FIRST)
    async with asking(app) as client:
        answers = [(path, (await client.get(path)).json()) for path in LISTS]
    await app.state.gateway.aclose()
    return answers
