"""The SDKs themselves: what they hand to the application is the same with and without the layer, and the record is right."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from typing import Any

import anthropic
import google.genai
import httpx
import httpx2
import ollama
import openai
import pytest

from crosswalk.testing import Answer, Capture, ReplayServer, load_captures
from crosswalk.testing.exchange import Stall
from crosswalk_observe import Watcher, install, uninstall

from .conftest import CAPTURES, Seen, Watch, same_as_normalized

SAID: Any = [{"role": "user", "content": "Why?"}]
KEY = "sk-no-key-at-all"
Ask = Callable[..., list[Any]]


@pytest.fixture(autouse=True)
def _taken_back() -> Iterator[None]:
    yield
    uninstall()


def transport(watcher: Watcher | None, library: Any, *, is_async: bool = False) -> Any:
    inner = (library.AsyncHTTPTransport if is_async else library.HTTPTransport)()
    return inner if watcher is None else watcher.transport(inner)


def taken(events: Iterator[Any], most: int | None) -> list[Any]:
    found = []
    for event in events:
        found.append(event)
        if len(found) == most:
            break
    return found


async def ataken(events: AsyncIterator[Any], most: int | None) -> list[Any]:
    found = []
    async for event in events:
        found.append(event)
        if len(found) == most:
            break
    return found


def plain(value: Any) -> Any:
    """The result of an SDK, as JSON to compare."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, Exception):
        return type(value).__name__, str(value)
    if isinstance(value, str):  # what openai's SDK makes of a stream that it took for a body
        return value
    return json.loads(value.model_dump_json(exclude={"sdk_http_response"}, warnings=False))


def openai_chat(watcher: Watcher | None, url: str, *, stream: bool, most: int | None) -> list[Any]:
    with (
        openai.DefaultHttpxClient(transport=transport(watcher, httpx2)) as http,
        openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0, http_client=http) as client,
    ):
        if not stream:
            return [client.chat.completions.create(model="tiny", messages=SAID)]
        with client.chat.completions.create(model="tiny", messages=SAID, stream=True) as events:
            return taken(events, most)


def openai_responses(watcher: Watcher | None, url: str, *, stream: bool, most: int | None) -> list[Any]:
    with (
        openai.DefaultHttpxClient(transport=transport(watcher, httpx2)) as http,
        openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0, http_client=http) as client,
    ):
        if not stream:
            return [client.responses.create(model="tiny", input="Why?")]
        with client.responses.create(model="tiny", input="Why?", stream=True) as events:
            return taken(events, most)


def openai_async(watcher: Watcher | None, url: str, *, stream: bool, most: int | None) -> list[Any]:
    async def ask() -> list[Any]:
        async with (
            openai.DefaultAsyncHttpxClient(transport=transport(watcher, httpx2, is_async=True)) as http,
            openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0, http_client=http) as client,
        ):
            if not stream:
                return [await client.chat.completions.create(model="tiny", messages=SAID)]
            async with await client.chat.completions.create(
                model="tiny", messages=SAID, stream=True
            ) as events:
                return await ataken(aiter(events), most)

    return asyncio.run(ask())


def anthropic_messages(watcher: Watcher | None, url: str, *, stream: bool, most: int | None) -> list[Any]:
    with (
        anthropic.DefaultHttpxClient(transport=transport(watcher, library_of(anthropic))) as http,
        anthropic.Anthropic(base_url=url, api_key=KEY, max_retries=0, http_client=http) as client,
    ):
        if not stream:
            return [client.messages.create(model="tiny", messages=SAID, max_tokens=9)]
        with client.messages.create(model="tiny", messages=SAID, max_tokens=9, stream=True) as events:
            return taken(events, most)


def anthropic_async(watcher: Watcher | None, url: str, *, stream: bool, most: int | None) -> list[Any]:
    async def ask() -> list[Any]:
        inner = transport(watcher, library_of(anthropic), is_async=True)
        async with (
            anthropic.DefaultAsyncHttpxClient(transport=inner) as http,
            anthropic.AsyncAnthropic(base_url=url, api_key=KEY, max_retries=0, http_client=http) as client,
        ):
            if not stream:
                return [await client.messages.create(model="tiny", messages=SAID, max_tokens=9)]
            async with await client.messages.create(
                model="tiny", messages=SAID, max_tokens=9, stream=True
            ) as events:
                return await ataken(aiter(events), most)

    return asyncio.run(ask())


def ollama_chat(watcher: Watcher | None, url: str, *, stream: bool, most: int | None) -> list[Any]:
    client = ollama.Client(url, transport=transport(watcher, httpx))
    with closing(client._client):
        answer: Any = client.chat(model="tiny", messages=SAID, stream=stream)
        if not stream:
            return [answer]
        with closing(answer):
            return taken(answer, most)


def gemini(watcher: Watcher | None, url: str, *, stream: bool, most: int | None) -> list[Any]:
    with httpx.Client(transport=transport(watcher, httpx)) as http:
        client = google.genai.Client(
            api_key=KEY, http_options=google.genai.types.HttpOptions(base_url=url, httpx_client=http)
        )
        if not stream:
            return [client.models.generate_content(model="gemini-x", contents="Why?")]
        events: Any = client.models.generate_content_stream(model="gemini-x", contents="Why?")
        found = taken(events, most)
        events.close()
        return found


def gemini_async(_: Watcher | None, url: str, *, stream: bool, most: int | None) -> list[Any]:
    """With aiohttp, where that is installed. It takes no client."""

    async def ask() -> list[Any]:
        client = google.genai.Client(api_key=KEY, http_options=google.genai.types.HttpOptions(base_url=url))
        async with client.aio as aio:
            if not stream:
                return [await aio.models.generate_content(model="gemini-x", contents="Why?")]
            events: Any = await aio.models.generate_content_stream(model="gemini-x", contents="Why?")
            found = await ataken(events, most)
            await events.aclose()
            return found

    return asyncio.run(ask())


def langchain(watcher: Watcher | None, url: str, *, stream: bool, most: int | None) -> list[Any]:
    openai_of_langchain = pytest.importorskip("langchain_openai", reason="langchain-openai is not installed")
    with openai.DefaultHttpxClient(transport=transport(watcher, httpx2)) as http:
        model = openai_of_langchain.ChatOpenAI(
            model="tiny", base_url=f"{url}/v1", api_key=KEY, max_retries=0, http_client=http
        )
        if not stream:
            answers = [model.invoke("Why?")]
        else:
            events = model.stream("Why?")
            answers = taken(events, most)
            events.close()
    for answer in answers:
        answer.id = None  # made up
    return answers


def library_of(sdk: Any) -> Any:
    """httpx or httpx2, whichever *sdk*'s client is of."""
    names = {kind.__module__.partition(".")[0] for kind in sdk.DefaultHttpxClient.__mro__}
    return httpx2 if "httpx2" in names else httpx


SDKS: dict[str, tuple[Ask, str, str]] = {
    "openai": (openai_chat, "vllm", "/v1/chat/completions"),
    "openai async": (openai_async, "vllm", "/v1/chat/completions"),
    "openai of OpenAI": (openai_chat, "openai", "/v1/chat/completions"),
    "openai responses": (openai_responses, "openai_responses", "/v1/responses"),
    "anthropic": (anthropic_messages, "anthropic", "/v1/messages"),
    "anthropic async": (anthropic_async, "anthropic", "/v1/messages"),
    "ollama": (ollama_chat, "ollama", "/api/chat"),
    "google-genai": (gemini, "gemini", "/v1beta/models/gemini-x:"),
    "google-genai async": (gemini_async, "gemini", "/v1beta/models/gemini-x:"),
    "langchain-openai": (langchain, "vllm", "/v1/chat/completions"),
}


def chosen(provider: str, path: str) -> list[Capture]:
    """Two of each kind: whole and streamed, with and without tools, and refusals."""
    found: dict[Any, list[Capture]] = {}
    for one in load_captures(CAPTURES / provider):
        if one.path is not None and one.path.startswith(path):
            calls = any(
                word in one.body for word in (b"tool_calls", b"tool_use", b"functionCall", b"function_call")
            )
            found.setdefault((one.stream, one.status >= 400, calls), []).append(one)
    assert len(found) >= 4
    return [one for kind in found.values() for one in kind[:2]]


def given(ask: Ask, watcher: Watcher | None, url: str, *, stream: bool, most: int | None = None) -> Any:
    """The application's result: objects, or the error."""
    try:
        return plain(ask(watcher, url, stream=stream, most=most))
    except Exception as error:
        return plain(error)


@pytest.mark.sweep
@pytest.mark.filterwarnings("default")  # the others' warnings are theirs
@pytest.mark.parametrize(
    ("sdk", "way"),
    [
        (sdk, way)
        for sdk in SDKS
        for way in ("given", "installed")
        if sdk != "google-genai async" or way == "installed"
    ],
)
def test_an_sdk_gives_the_same_and_the_record_is_what_normalize_says(
    sdk: str, way: str, server: ReplayServer, watch: Watch, seen: Seen
) -> None:
    ask, provider, path = SDKS[sdk]
    watcher = watch(provider)
    for one in chosen(provider, path):
        server.add(one, times=2)
        alone = given(ask, None, server.url, stream=one.stream)
        if way == "installed":
            install(watcher)
        watched = given(ask, watcher if way == "given" else None, server.url, stream=one.stream)
        uninstall()
        assert watched == alone, one.case
        record = seen.pop()
        assert not seen
        assert (record.provider, record.status) == (provider, one.status)
        assert record.is_complete
        assert same_as_normalized(record, provider), one.case
        assert record.request.model == ("gemini-x" if provider == "gemini" else "tiny")
        assert KEY not in str((record.request.headers, record.url))


@pytest.mark.untraced
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("sdk", SDKS)
def test_a_stream_that_the_application_leaves(
    sdk: str, server: ReplayServer, watch: Watch, seen: Seen
) -> None:
    ask, provider, path = SDKS[sdk]
    one = next(c for c in chosen(provider, path) if c.stream and c.status == 200 and len(c.events()) > 4)
    server.add(one, Stall(after_events=3), times=2)
    alone = given(ask, None, server.url, stream=True, most=1)
    install(watch(provider))
    assert given(ask, None, server.url, stream=True, most=1) == alone
    assert len(alone) == 1
    record = seen.one
    assert record.is_cancelled
    assert record.response is not None
    assert record.response.finish_reason.value == "cancelled"
    assert one.body.startswith(record.body)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("sdk", SDKS)
def test_a_server_that_answers_nothing_of_the_kind(
    sdk: str, server: ReplayServer, watch: Watch, seen: Seen
) -> None:
    ask, provider, _ = SDKS[sdk]
    server.add(Answer((b"<html>",), status=502, headers={"Content-Type": "text/html"}), times=2)
    alone = given(ask, None, server.url, stream=False)
    install(watch(provider))
    assert given(ask, None, server.url, stream=False) == alone
    assert isinstance(alone, tuple)
    assert (seen.one.status, seen.one.body) == (502, b"<html>")
    assert seen.one.response is not None
    assert seen.one.response.error_info is not None
