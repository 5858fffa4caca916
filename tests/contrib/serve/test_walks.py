"""How many modules one thing passes from door to door. A reader of the code has to open each of them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

import crosswalk_serve
from contrib_serve import asking, config_of, says
from crosswalk import normalize, normalize_stream
from crosswalk.service import ChatRequest, Endpoint, LLMService
from crosswalk.testing import Answer, ReplayServer
from crosswalk_serve import create_app

ROOT = Path(crosswalk_serve.__file__).parents[2]
SHIPPED = tuple(f"{ROOT / top}/" for top in ("core", "plugins", "contrib"))
CAPTURE = ROOT / "tests/captures/vllm/chat_emoji_stream.response.sse"
CHUNKS = [event + b"\n\n" for event in CAPTURE.read_bytes().split(b"\n\n") if event]
HI = {"model": "tiny", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "Hello"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 9, "output_tokens": 4},
}
CHAT = "/v1/chat/completions"
TWICE = 2
"""What is done once for a process or a service is done in the first two of three requests."""


@contextmanager
def walked() -> Iterator[set[str]]:
    """The modules with functions that are called in the block, without those of the kit."""
    seen: set[CodeType] = set()
    modules: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            seen.add(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield modules
    finally:
        sys.setprofile(before)
        files = {code.co_filename for code in seen}
        modules |= {file for file in files if file.startswith(SHIPPED) and "/crosswalk/testing/" not in file}


def walk_of_chunk(number: int) -> set[str]:
    """The modules that the chunk passes, of a stream that has begun."""

    def read() -> Iterator[Any]:
        return iter(normalize_stream(iter(CHUNKS), "vllm"))

    for _ in range(TWICE):
        next(read())
    deltas = read()
    for _ in range(number):
        next(deltas)
    with walked() as modules:
        next(deltas)
    return modules


def test_a_first_chunk_passes_few_modules() -> None:
    assert len(walk_of_chunk(0)) <= 14


def test_a_later_chunk_passes_fewer() -> None:
    assert len(walk_of_chunk(3)) <= 6


def test_a_body_passes_few_modules() -> None:
    (body,) = says("Hello").chunks
    for _ in range(TWICE):
        normalize(body, "vllm")
    with walked() as modules:
        response = normalize(body, "vllm")
    assert (response.text, len(modules) <= 14) == ("Hello", True)


async def walk_of_call(upstream: ReplayServer) -> set[str]:
    async with LLMService(Endpoint("vllm", model="m", base_url=upstream.url)) as service:
        for _ in range(TWICE):
            await service.complete(ChatRequest("Hi"))
        with walked() as modules:
            await service.complete(ChatRequest("Hi"))
    return modules


def test_a_call_passes_few_modules(upstream: ReplayServer) -> None:
    for _ in range(TWICE + 1):
        upstream.add(says())
    assert len(asyncio.run(walk_of_call(upstream))) <= 40


async def walk_of_request(upstream: ReplayServer, models: str, path: str, *, repeats: bool) -> set[str]:
    app = create_app(config_of(upstream, models=models))
    options = [{} if repeats else {"temperature": number / 10} for number in range(TWICE + 1)]
    async with app.router.lifespan_context(app), asking(app) as client:
        for said in options[:TWICE]:
            assert (await client.post(path, json={**HI, **said})).status_code == 200
        with walked() as modules:
            answer = await client.post(path, json={**HI, **options[TWICE]})
            assert answer.status_code == 200
    return modules


@pytest.mark.parametrize(
    ("path", "provider", "answer", "repeats", "most"),
    [
        (CHAT, "vllm", says(), True, 30),
        (CHAT, "vllm", says(), False, 45),
        (CHAT, "anthropic", Answer.of_json(MESSAGE), True, 45),
        ("/v1/messages", "vllm", says(), True, 45),
    ],
    ids=["chat to chat on its lane", "chat to chat", "chat to messages", "messages to chat"],
)
def test_a_request_to_the_gateway_passes_few_modules(
    upstream: ReplayServer, path: str, provider: str, answer: Answer, repeats: bool, most: int
) -> None:
    for _ in range(TWICE + 1):
        upstream.add(answer)
    models = f"tiny: {{provider: {provider}, model: m, base_url: '{upstream.url}', api_key: sk-secret-1}}"
    assert len(asyncio.run(walk_of_request(upstream, models, path, repeats=repeats))) <= most
