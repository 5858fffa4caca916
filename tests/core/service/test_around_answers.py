"""Faults around the calls of the first spellings: listings, embeddings, counts, slots, media, tables."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest

from crosswalk import (
    AudioPart,
    ChatMessage,
    ChatResponse,
    FilePart,
    ImagePart,
    ResponseMetadata,
    ServerError,
    TextPart,
    ToolCall,
    UsageInfo,
    to_pandas,
)
from crosswalk.errors import ConfigurationError, InvalidRequestError, ResponseValidationError
from crosswalk.service import ChatRequest, Endpoint, LLMService, SyncLLMService, UnsupportedRequestError
from crosswalk.testing import Answer, ReplayServer
from crosswalk.testing.exchange import Delay, Stall


@pytest.fixture
def service(server: ReplayServer) -> Iterator[SyncLLMService]:
    with SyncLLMService(Endpoint("vllm", model="m", base_url=server.url)) as asking:
        yield asking


def test_answers_that_hold_nothing(server: ReplayServer, service: SyncLLMService) -> None:
    server.add(Answer.of_json({"models": "none"}))
    assert service.models() == ()
    server.add(Answer.of_json([1]))
    with pytest.raises(ServerError, match="is not a JSON object"):
        service.models()
    server.add(Answer((b"<html>",)))
    with pytest.raises(ServerError, match="is not a JSON object"):
        service.models()
    server.add(Answer.failure(404, message="nothing here"))
    with pytest.raises(InvalidRequestError, match="HTTP 404 .*nothing here"):
        service.models()
    server.add(Answer.of_json({"data": "none"}))
    with pytest.raises(ServerError, match="holds no embeddings"):
        service.embed("a")


def test_embeddings_and_counts_say_what_they_are(server: ReplayServer, service: SyncLLMService) -> None:
    server.add(Answer.of_json({"data": [{"index": 0, "embedding": [1]}]}))
    assert repr(service.embed("a")).startswith("Embeddings(model='m', vectors=1")
    with (
        SyncLLMService(Endpoint("vllm", base_url=server.url)) as nameless,
        pytest.raises(UnsupportedRequestError, match="no model is named"),
    ):
        nameless.embed("a")
    with SyncLLMService(Endpoint("anthropic", model="m", base_url=server.url, api_key="k")) as claude:
        server.add(Answer.of_json({}))
        with pytest.raises(ServerError, match="holds no count"):
            claude.count_tokens("Hi")


def test_pictures_and_numbers_are_not_estimated(service: SyncLLMService) -> None:
    said = ChatMessage.user(["12345678", ImagePart("data:image/png;base64,AAAA")])
    assert service.count_tokens([said], max_tokens=7).tokens == 2


def test_an_address_of_something_else(server: ReplayServer) -> None:
    server.add(Answer.of_json({"hello": "world"}), times=None)
    with (
        SyncLLMService(base_url=server.url) as service,
        pytest.raises(ConfigurationError, match="does not say what it is"),
    ):
        service.models()


def test_calls_are_streamed_after_the_text(server: ReplayServer, service: SyncLLMService) -> None:
    call = ToolCall("c", "f", "{}")
    server.add(Answer.calls(call, text="Let me look."), times=None)
    for is_stream in (False, True):
        answer = service.complete(ChatRequest("Hi", stream=is_stream))
        assert (answer.text, answer.tool_calls) == ("Let me look.", (call,))


def test_threads_wait_for_a_slot_until_they_are_cancelled(server: ReplayServer) -> None:
    server.add(Answer.text("Hello."), Stall())
    endpoint = Endpoint("vllm", model="m", base_url=server.url)
    with SyncLLMService(endpoint, max_concurrency=1) as service:
        first, second = service.stream("Hi"), service.stream("Hi")
        reading = threading.Thread(target=list, args=(first,))
        reading.start()
        server.wait_for(lambda server: server.requests)
        waiting = threading.Thread(target=list, args=(second,))
        waiting.start()
        second.cancel()
        waiting.join()
        assert second.response.finish_reason == "cancelled"
        first.cancel()
        reading.join()
        server.add(Answer.text("Hello."))
        assert service.complete("Hi").text == "Hello."
    assert len(server.requests) == 2


def test_a_thread_gets_the_slot_of_a_slow_call(server: ReplayServer) -> None:
    server.add(Answer.text("Hello."), Delay(0.1)).add(Answer.text("Hello."))
    endpoint = Endpoint("vllm", model="m", base_url=server.url)
    with SyncLLMService(endpoint, max_concurrency=1) as service:
        slow = threading.Thread(target=service.complete, args=("Hi",))
        slow.start()
        server.wait_for(lambda server: server.requests)
        assert service.complete("Hi").text == "Hello."
        slow.join()


def test_tasks_wait_for_a_slot_until_they_are_cancelled(server: ReplayServer) -> None:
    server.add(Answer.text("Hello."), Stall())

    async def read(stream: Any) -> None:
        async for _ in stream:
            pass

    async def main() -> str:
        endpoint = Endpoint("vllm", model="m", base_url=server.url)
        async with LLMService(endpoint, max_concurrency=1) as service:
            first, second = service.stream("Hi"), service.stream("Hi")
            tasks = [asyncio.create_task(read(stream)) for stream in (first, second)]
            await asyncio.to_thread(server.wait_for, lambda server: server.requests)
            await second.cancel()
            await first.cancel()
            await asyncio.gather(*tasks)
            return second.response.finish_reason

    assert asyncio.run(main()) == "cancelled"
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (b"RIFF\0\0\0\0WEBP", "image/webp"),
        (b"RIFF\0\0\0\0WAVE", "audio/wav"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"%PDF-1.7", "application/pdf"),
    ],
)
def test_bytes_say_what_they_are(content: bytes, media_type: str) -> None:
    assert FilePart(content).media_type == media_type
    assert FilePart(content, media_type="x/y", name="a").media_type == "x/y"


def test_files_among_the_parts_are_what_their_names_say(tmp_path: Path) -> None:
    paths: list[Path] = []
    for name in ("a.pdf", "b.wav", "c.png"):
        paths.append(tmp_path / name)
        (tmp_path / name).write_bytes(b"x")
    content = ChatMessage.user([*paths, TextPart("x")]).content
    assert content is not None
    assert [type(part) for part in content] == [FilePart, AudioPart, ImagePart, TextPart]
    assert content[0].name == "a.pdf"


def test_a_part_is_given_once_and_is_one() -> None:
    with pytest.raises(ResponseValidationError, match="not both"):
        ImagePart("https://x/y", url="https://x/y")
    with pytest.raises(ResponseValidationError, match="an address, a file or bytes, not number"):
        ImagePart(7)  # type: ignore[arg-type]


def test_a_table_has_a_row_for_each_response(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=list))
    answer = ChatResponse.success(
        ChatMessage.assistant("Hi"), UsageInfo(2, 1), "m", ResponseMetadata("vllm", "m")
    )
    rows: Any = to_pandas([answer])
    assert (rows[0]["text"], rows[0]["prompt_tokens"], rows[0]["error"]) == ("Hi", 2, None)


def test_an_endpoint_is_a_provider_or_an_address() -> None:
    for wrong in (7, None):
        with pytest.raises(ConfigurationError, match="provider must be a text"):
            Endpoint(wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="a provider or base_url="):
        Endpoint()


def test_a_client_has_a_proxy_of_its_own() -> None:
    with pytest.raises(ConfigurationError, match="give proxy= to the client"):
        LLMService("vllm", client=httpx2.AsyncClient(), proxy="http://127.0.0.1:9")


def test_texts_among_the_parts_of_a_dictionary() -> None:
    (message,) = ChatRequest(
        [{"role": "user", "content": ["Hi", {"type": "text", "text": " there"}]}]
    ).messages
    assert isinstance(message, ChatMessage)
    assert message.text == "Hi there"
