"""How many modules one thing passes from door to door. A reader of the code has to open each of them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

import crosswalk_serve
from contrib_serve import asking, config_of, says
from crosswalk import ChatMessage, Role, ToolCall, normalize, normalize_stream
from crosswalk.service import (
    ChatRequest,
    Endpoint,
    LLMService,
    SyncLLMService,
    ToolDefinition,
    build_http_request,
)
from crosswalk.testing import Answer, ReplayServer
from crosswalk.testing.exchange import Hang, SentChunk, Step
from crosswalk.types import dump_json
from crosswalk_serve import create_app

ROOT = Path(crosswalk_serve.__file__).parents[2]
SHIPPED = tuple(f"{ROOT / top}/" for top in ("core", "plugins", "contrib"))
CAPTURE = ROOT / "tests/captures/vllm/chat_emoji_stream.response.sse"
CHUNKS = [event + b"\n\n" for event in CAPTURE.read_bytes().split(b"\n\n") if event]
CHAT = "/v1/chat/completions"
TWICE = 2
"""What is done once for a process or a service is done in the first two of three requests."""


Walk = set[tuple[str, str]]
"""Functions by the file of their module and their name with that of their class."""


@contextmanager
def walked() -> Iterator[Walk]:
    """The functions that are called in the block, without those of the kit."""
    seen: set[CodeType] = set()
    walk: Walk = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            seen.add(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield walk
    finally:
        sys.setprofile(before)
        found = {(code.co_filename, code.co_qualname) for code in seen}
        walk |= {one for one in found if one[0].startswith(SHIPPED) and "/crosswalk/testing/" not in one[0]}


def modules_of(walk: Walk) -> set[str]:
    """The modules of the functions that are called."""
    return {file for file, _ in walk}


def for_streams(walk: Walk) -> Walk:
    """The functions that only a stream needs: of its driver, its events and its framing, and what tells events alike."""
    modules = ("/types/stream.py", "/mapping/alike.py", "/crosswalk/stream.py")
    return {
        (file, name)
        for file, name in walk
        if file.endswith(modules) or name.startswith("EventStream.") or "Decoder." in name
    }


def walk_of_chunk(number: int) -> set[str]:
    """The modules that the chunk passes, of a stream that has begun."""

    def read() -> Iterator[Any]:
        return iter(normalize_stream(iter(CHUNKS), "vllm"))

    for _ in range(TWICE):
        next(read())
    deltas = read()
    for _ in range(number):
        next(deltas)
    with walked() as walk:
        next(deltas)
    return modules_of(walk)


def test_a_first_chunk_passes_few_modules() -> None:
    assert len(walk_of_chunk(0)) <= 14


def test_a_later_chunk_passes_fewer() -> None:
    assert len(walk_of_chunk(3)) <= 6


def test_a_body_passes_few_modules() -> None:
    (body,) = says("Hello").chunks
    for _ in range(TWICE):
        normalize(body, "vllm")
    with walked() as walk:
        response = normalize(body, "vllm")
    assert (response.text, len(modules_of(walk)) <= 14, for_streams(walk)) == ("Hello", True, set())


async def walk_of_call(upstream: ReplayServer) -> Walk:
    async with LLMService(Endpoint("vllm", model="m", base_url=upstream.url)) as service:
        for _ in range(TWICE):
            await service.complete(ChatRequest("Hi"))
        with walked() as walk:
            await service.complete(ChatRequest("Hi"))
    return walk


def test_a_call_passes_few_modules_and_nothing_of_streams(upstream: ReplayServer) -> None:
    upstream.add(says(), times=None)
    walk = asyncio.run(walk_of_call(upstream))
    assert (len(modules_of(walk)) <= 40, for_streams(walk)) == (True, set())


def test_a_blocking_call_passes_nothing_of_streams(upstream: ReplayServer) -> None:
    upstream.add(says(), times=None)
    with SyncLLMService(Endpoint("vllm", model="m", base_url=upstream.url)) as service:
        with walked() as walk:
            service.complete(ChatRequest("Hi"))
        assert not for_streams(walk)
        with walked() as walk:
            list(service.stream(ChatRequest("Hi")))
    assert for_streams(walk)


PATHS = {
    "vllm": CHAT,
    "anthropic": "/v1/messages",
    "openai_responses": "/v1/responses",
    "gemini": "/v1beta/models/tiny:generateContent",
    "ollama": "/api/chat",
}
"""Where a client of each provider's format asks the gateway."""
SERVERS = ("openai", *PATHS)
TOOL = ToolDefinition(
    "weather", "the weather of a city", {"type": "object", "properties": {"city": {"type": "string"}}}
)
CALL = ToolCall("call_1", "weather", '{"city":"Paris"}')
MOST = 45
"""The modules that a request may pass in a gateway. A reader of it has to open each."""


def asked_by(client: str, number: int, *, is_stream: bool) -> tuple[str, bytes]:
    """The path and the body of a conversation with a tool, in the format of *client*: another one for each *number*."""
    answer = ChatMessage(Role.ASSISTANT, None, tool_calls=[CALL])
    turns = (ChatMessage.user("Hi"), answer, ChatMessage.tool_result(CALL.id, "sunny", name=CALL.name))
    request = ChatRequest(turns, model="tiny", tools=[TOOL], max_tokens=90 + number)
    body = dict(build_http_request(request, client).body)
    if client == "gemini":
        way = "streamGenerateContent?alt=sse" if is_stream else "generateContent"
        return PATHS[client].replace("generateContent", way), dump_json(body)
    return PATHS[client], dump_json({**body, "model": "tiny", "stream": is_stream})


async def walk_of_last(upstream: ReplayServer, server: str, asked: list[tuple[str, bytes]]) -> Walk:
    """The functions that the last of the requests *asked* passes, to a gateway before *server*."""
    upstream.add(Answer.text("It is sunny in Paris."), times=None)
    models = f"tiny: {{provider: {server}, model: m, base_url: '{upstream.url}', api_key: sk-secret-1}}"
    app = create_app(config_of(upstream, "on_unsupported: drop", models=models))
    async with app.router.lifespan_context(app), asking(app) as client:
        *earlier, (path, body) = asked
        for before in earlier:
            assert (await client.post(before[0], content=before[1])).status_code == 200
        with walked() as walk:
            answer = await client.post(path, content=body)
        assert (answer.status_code, "Paris" in answer.text) == (200, True)
    return walk


@pytest.mark.untraced
@pytest.mark.parametrize("is_stream", [False, True], ids=["body", "stream"])
@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("client", PATHS)
def test_a_request_to_the_gateway_passes_few_modules(
    upstream: ReplayServer, client: str, server: str, is_stream: bool
) -> None:
    asked = [asked_by(client, number, is_stream=is_stream) for number in range(TWICE + 1)]
    walk = asyncio.run(walk_of_last(upstream, server, asked))
    assert (len(modules_of(walk)) <= MOST, bool(for_streams(walk))) == (True, is_stream)


def test_a_request_on_its_lane_passes_fewer(upstream: ReplayServer) -> None:
    asked = (CHAT, dump_json({"model": "tiny", "messages": [{"role": "user", "content": "Hi"}]}))
    walk = asyncio.run(walk_of_last(upstream, "vllm", [asked] * (TWICE + 1)))
    assert (len(modules_of(walk)) <= 30, for_streams(walk)) == (True, set())


class UpToText:
    """The events up to the first one with a text come at once, and then none."""

    def apply(self, steps: Sequence[Step]) -> list[Step]:
        """Return *steps* with this fault in them."""
        head, *rest = steps
        chunks = [step.data for step in rest if isinstance(step, SentChunk)]
        count = next(number for number, data in enumerate(chunks, 1) if b"Paris" in data)
        return [head, SentChunk(b"".join(chunks[:count])), Hang()]


async def calls_of_last(upstream: ReplayServer, server: str, asked: list[tuple[str, bytes]]) -> int:
    """The number of calls of our functions for the last of the requests *asked*, up to the first text for the client."""
    called: list[str] = []
    models = f"tiny: {{provider: {server}, model: m, base_url: '{upstream.url}', api_key: sk-secret-1}}"
    app = create_app(config_of(upstream, "on_unsupported: drop", models=models))

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            called.append(frame.f_code.co_filename)

    async def up_to_text(scope: Scope, receive: Receive, send: Send) -> None:
        async def told(message: Message) -> None:
            if sys.getprofile() is not note:
                return  # nobody reads what follows
            await send(message)
            if b"Paris" in message.get("body", b"") and message.get("more_body"):
                sys.setprofile(before)
                await send({"type": "http.response.body"})
                raise ConnectionError

        called.clear()
        before = sys.getprofile()
        sys.setprofile(note)
        try:
            with suppress(ConnectionError):
                await app(scope, receive, told)
        finally:
            sys.setprofile(before)

    async with app.router.lifespan_context(app), asking(up_to_text) as client:
        for path, body in asked:
            assert "Paris" in (await client.post(path, content=body)).text
    return sum(file.startswith(SHIPPED) and "/crosswalk/testing/" not in file for file in called)


@pytest.mark.untraced
@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("client", PATHS)
def test_the_first_event_takes_no_more_calls_than_a_whole_body(
    upstream: ReplayServer, client: str, server: str
) -> None:
    upstream.add(Answer.text("Paris"), times=None, when=lambda request: not request.wants_stream)
    upstream.add(Answer.text("Paris"), UpToText(), times=None)
    calls = []
    for is_stream in (True, False):
        asked = [asked_by(client, number, is_stream=is_stream) for number in range(TWICE + 1)]
        calls.append(asyncio.run(calls_of_last(upstream, server, asked)))
    first_event, body = calls
    assert first_event <= body


def test_the_gateway_has_few_modules() -> None:
    assert len([*(ROOT / "contrib/crosswalk_serve").glob("*.py")]) <= 16
