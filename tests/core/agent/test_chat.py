"""Chat agents: whole and streamed, sync and async, against real recordings, and 200 at once."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from crosswalk import (
    ChatMessage,
    ChatResponse,
    ConfigurationError,
    ContextOverflowError,
    MappingError,
    ProviderError,
    ResponseDelta,
    ResponseValidationError,
    ServerError,
    StreamState,
    normalize,
)
from crosswalk.agent import (
    RETRIED,
    AsyncChatAgent,
    ChatAgent,
    ChatConfig,
    ChatSession,
    ChatStream,
    Group,
    Trimming,
    keep_turns,
    tool,
)
from crosswalk.service import (
    CacheMark,
    ChatRequest,
    Endpoint,
    HostedTool,
    LLMService,
    RetryPolicy,
    SyncLLMService,
    ToolDefinition,
)
from crosswalk.testing import load_capture
from crosswalk.testing.exchange import Cut, Garbage, Slow, Stall
from crosswalk.testing.replay import Answer, ReplayServer
from pages import ROOT

CAPTURES = ROOT / "tests/captures"
WHOLE = load_capture(CAPTURES / "vllm/reasoning_chat_think.response.json")
STREAM = load_capture(CAPTURES / "vllm/reasoning_chat_think_stream.response.sse")
Run = Callable[..., Any]


def exhausted(stream: Any) -> tuple[list[ResponseDelta], ChatResponse]:
    """The values of a generator, and its result."""
    deltas = []
    while True:
        try:
            deltas.append(next(stream))
        except StopIteration as stop:
            return deltas, stop.value


# ----------------------------------------------------------------------------------------------- sync


def test_chat_gives_the_response(server: ReplayServer, service: SyncLLMService) -> None:
    server.add(WHOLE)
    response = ChatAgent(service).chat([ChatMessage.user("Why?")])
    assert response.message == normalize(WHOLE.body, "vllm").message
    assert server.requests[0].json()["messages"] == [{"role": "user", "content": "Why?"}]


def test_stream_chat_yields_deltas_and_returns_the_response(
    server: ReplayServer, service: SyncLLMService
) -> None:
    server.add(STREAM).add(STREAM)
    deltas, response = exhausted(ChatAgent(service).stream_chat("Why?"))
    assert "".join(delta.content_delta or "" for delta in deltas) == response.text
    assert "".join(delta.reasoning_delta or "" for delta in deltas) == response.reasoning
    assert response.same_content(normalize_of(STREAM, response))
    assert ChatResponse.from_deltas(deltas).text == response.text
    assert [delta.index for delta in deltas] == list(range(len(deltas)))

    stream = ChatAgent(service).stream_chat("Why?")

    def outer() -> Iterator[ResponseDelta]:
        returned = yield from stream
        assert returned.text == response.text

    with pytest.raises(ResponseValidationError, match="not been read to its end"):
        _ = stream.response
    assert "".join(delta.content_delta or "" for delta in outer()) == response.text
    assert stream.response.text == response.text
    assert stream.response.is_complete


def normalize_of(capture: Any, response: ChatResponse) -> ChatResponse:
    from attrs import evolve

    return evolve(normalize(capture.body, "vllm"), attempts=response.attempts)


def test_closing_the_generator_closes_the_connection(server: ReplayServer, service: SyncLLMService) -> None:
    server.add(STREAM, Stall(after_events=5))
    stream = ChatAgent(service).stream_chat("Why?")
    next(stream)
    stream.close()
    server.wait_for(lambda server: server.disconnects)


def close(stream: ChatStream) -> None:
    stream.close()


def stop(stream: ChatStream) -> None:
    thread = threading.Thread(target=stream.stop)
    thread.start()
    thread.join()


def throw(stream: ChatStream) -> None:
    with pytest.raises(KeyboardInterrupt):
        stream.throw(KeyboardInterrupt())


@pytest.mark.parametrize("end", [close, stop, throw])
def test_a_stop_leaves_what_came(
    server: ReplayServer, service: SyncLLMService, end: Callable[[ChatStream], None]
) -> None:
    server.add(STREAM, Stall(after_events=5))
    stream = ChatAgent(service).stream_chat("Why?")
    shown = (next(stream).reasoning_delta or "") + (next(stream).reasoning_delta or "")
    end(stream)
    shown += "".join(delta.reasoning_delta or "" for delta in stream)  # what had been read already
    response = stream.response
    assert response.finish_reason == "cancelled"
    assert shown
    assert response.reasoning.startswith(shown)  # more may have come than was looked at
    assert end is not stop or response.reasoning == shown
    session = ChatSession()
    session.add_response(response)


def test_a_stop_before_the_first_delta(server: ReplayServer, service: SyncLLMService) -> None:
    stream = ChatAgent(service).stream_chat("Why?")
    stream.close()
    assert list(stream) == []
    assert (stream.response.finish_reason, stream.response.text) == ("cancelled", "")
    assert not server.requests


@pytest.mark.parametrize(
    ("answer", "fault", "error"),
    [
        (Answer.failure(500), (), ServerError),
        (Answer.of_capture(STREAM), (Cut(after_events=5),), ProviderError),
        (Answer.of_capture(STREAM), (Garbage(after_events=5),), MappingError),
    ],
    ids=["refused", "cut", "garbage"],
)
def test_a_failed_stream_raises_after_its_deltas(
    server: ReplayServer,
    service: SyncLLMService,
    run: Run,
    answer: Answer,
    fault: Any,
    error: type[Exception],
) -> None:
    """A program that only iterates cannot take it for an answer, and the partial one is kept."""
    server.add(answer, *fault).add(answer, *fault)
    agent = ChatAgent(service)
    texts: list[str] = []
    with pytest.raises(error) as caught:
        texts.extend(
            (delta.content_delta or "") + (delta.reasoning_delta or "") for delta in agent.stream_chat("Why?")
        )

    async def use(service: LLMService) -> list[str]:
        texts = []
        stream = AsyncChatAgent(service).stream_chat("Why?")
        with pytest.raises(error):
            async for delta in stream:
                texts.append((delta.content_delta or "") + (delta.reasoning_delta or ""))
        assert stream.state is StreamState.ERROR
        return texts

    assert run(use) == texts
    kept = getattr(caught.value, "response", None) or getattr(caught.value, "partial", None)
    assert isinstance(kept, ChatResponse)
    assert kept.reasoning + kept.text == "".join(texts)
    assert bool("".join(texts)) is bool(fault)
    assert len(kept.attempts) == 1


@pytest.mark.parametrize("is_async", [False, True])
def test_void_text_is_marked(server: ReplayServer, endpoint: Endpoint, is_async: bool) -> None:
    """The point at which a service starts over after its user has seen text."""
    server.add(STREAM, Cut(after_events=5)).add(STREAM)
    policy = RetryPolicy(initial_seconds=0, after_first_token=True)
    options: Any = {"retry": policy, "client_options": {"verify": False}}

    async def main() -> tuple[list[ResponseDelta], ChatResponse]:
        async with LLMService(endpoint, **options) as service:
            stream = AsyncChatAgent(service).stream_chat("Why?")
            return [delta async for delta in stream], await stream.response()

    if is_async:
        deltas, response = asyncio.run(main())
    else:
        with SyncLLMService(endpoint, **options) as service:
            deltas, response = exhausted(ChatAgent(service).stream_chat("Why?"))
    (place,) = (place for place, delta in enumerate(deltas) if RETRIED in delta.extensions)
    assert deltas[place].extensions == {RETRIED: 1}
    texts = [delta.reasoning_delta or delta.content_delta or "" for delta in deltas]
    assert "".join(texts[:place])
    assert "".join(texts[place:]) == response.reasoning + response.text
    assert ChatResponse.from_deltas(deltas[place + 1 :]).text == response.text


# ---------------------------------------------------------------------------------------------- async


def test_the_async_twin(server: ReplayServer, run: Run) -> None:
    server.add(WHOLE).add(STREAM)

    async def use(service: LLMService) -> tuple[ChatResponse, list[ResponseDelta], ChatResponse]:
        agent = AsyncChatAgent(service, ChatConfig(seed=7))
        whole = await agent.chat("Why?")
        async with agent.stream_chat("Why?", ChatConfig(seed=8)) as stream:
            deltas = [delta async for delta in stream]
            return whole, deltas, await stream.response()

    whole, deltas, streamed = run(use)
    assert whole.message == streamed.message
    assert "".join(delta.content_delta or "" for delta in deltas) == streamed.text
    assert [request.json()["seed"] for request in server.requests] == [7, 8]


def test_leaving_an_async_stream_closes_the_connection(server: ReplayServer, run: Run) -> None:
    server.add(STREAM, Stall(after_events=5))

    async def use(service: LLMService) -> None:
        async with AsyncChatAgent(service).stream_chat("Why?") as stream:
            async for _ in stream:
                break

    run(use)
    server.wait_for(lambda server: server.disconnects)


def test_an_async_stop_leaves_what_came(server: ReplayServer, run: Run) -> None:
    server.add(STREAM, Stall(after_events=5)).add(STREAM, Stall(after_events=5))

    async def use(service: LLMService) -> None:
        agent = AsyncChatAgent(service)
        async with agent.stream_chat("Why?") as stream:
            async for _ in stream:
                break
        response = await stream.response()
        assert response.finish_reason == "cancelled"
        assert response.reasoning
        assert stream.state is StreamState.CANCELLED
        stream = agent.stream_chat("Why?")
        task = asyncio.ensure_future(stream.response())
        while not server.requests[1:]:
            await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.wait({task})
        assert (await stream.response()).finish_reason == "cancelled"

    run(use)


@pytest.mark.sweep
def test_200_streams_on_one_event_loop_all_come_back_whole(server: ReplayServer, run: Run) -> None:
    """Each answer is its own, cut into pieces, and none is read on before all have begun."""
    count = 200
    body = STREAM.body
    for number in range(count):
        own = body.replace(b"forty-two", b"number-%03d" % number)
        answer = Answer.of_capture(STREAM)
        chunks = tuple(chunk.replace(b"forty-two", b"number-%03d" % number) for chunk in answer.chunks)
        assert b"".join(chunks) == own
        server.add(
            Answer(chunks, headers=answer.headers, stream=True),
            Slow(0.0, chunk_bytes=701),
            when=lambda request, number=number: request.json()["seed"] == number,  # type: ignore[misc]
        )

    async def use(service: LLMService) -> list[ChatResponse]:
        agent = AsyncChatAgent(service)
        all_are_here = asyncio.Barrier(count)

        async def ask(number: int) -> ChatResponse:
            async with agent.stream_chat("Why?", ChatConfig(seed=number)) as stream:
                async for _ in stream:
                    await all_are_here.wait()
                    break
                return await stream.response()

        return await asyncio.gather(*map(ask, range(count)))

    responses = run(use)
    expected = normalize(body, "vllm").text
    assert [response.text for response in responses] == [
        expected.replace("forty-two", f"number-{number:03d}") for number in range(count)
    ]
    assert len(server.requests) == server.connections == count
    assert all(len(response.attempts) == 1 for response in responses)


# ------------------------------------------------------------------------------------- configuration, session


@tool
def look(word: str) -> str:
    """Look it up."""
    return word


def test_a_configuration_reaches_the_request(server: ReplayServer, service: SyncLLMService) -> None:
    server.add(WHOLE)
    config = ChatConfig(
        model="other",
        temperature=0.5,
        max_tokens=9,
        stop=("a", "b"),
        tools=(look, ToolDefinition("by_hand"), plain),
        tool_choice="required",
        provider_options={"vllm": {"min_p": 0.1}},
    )
    ChatAgent(service, config).chat("Why?")
    body = server.requests[0].json()
    assert {key: body[key] for key in ("model", "temperature", "stop", "tool_choice", "min_p")} == {
        "model": "other",
        "temperature": 0.5,
        "stop": ["a", "b"],
        "tool_choice": "required",
        "min_p": 0.1,
    }
    assert [one["function"]["name"] for one in body["tools"]] == ["look", "by_hand", "plain"]


def plain(number: int) -> int:
    return number


@pytest.mark.parametrize(
    "wrong", [{"temperature": -1}, {"top_p": 2}, {"tool_choice": "maybe"}, {"stop": ("",)}]
)
def test_a_wrong_configuration_is_refused_at_once(wrong: Any) -> None:
    with pytest.raises(ResponseValidationError):
        ChatConfig(**wrong)


def test_a_conversation_goes_on_after_a_pause(
    server: ReplayServer, service: SyncLLMService, tmp_path: Path
) -> None:
    """Seed 004's typical use: ask, keep the answer, save, load, ask again."""
    server.add(WHOLE, times=2)
    agent = ChatAgent(service)
    session = ChatSession()
    session.add_message(ChatMessage.user("Hello"))
    response = agent.chat(session.messages)
    assert response.usage.total_tokens > 0
    assert response.metadata.provider_id == "vllm"
    session.add_response(response)
    session.save(tmp_path / "s.json")

    resumed = ChatSession.load(tmp_path / "s.json")
    resumed.add_message(ChatMessage.user("And now?"))
    agent.chat(resumed.turns)
    messages = server.requests[1].json()["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert messages[1]["content"] == response.text


@pytest.mark.sweep
def test_importing_agents_loads_no_http_client() -> None:
    code = "from crosswalk.agent import *; import sys; print({'httpx2', 'rich'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# ---------------------------------------------------------------------------- options, and what is too long

TOO_LONG = Answer.of_json(
    {"error": {"code": "context_length_exceeded", "message": "This is too long."}}, status=400
)
TALK = [ChatMessage.user("One?"), ChatMessage.assistant("1"), ChatMessage.user("Two?")]


def test_a_config_passes_on_what_a_request_takes() -> None:
    config = ChatConfig(hosted_tools=["web_search"], cache_marks=["system", 2, -3])
    request = config.request(TALK)
    assert request.hosted_tools == (HostedTool("web_search"),)
    assert request.cache_marks == (CacheMark("system"), CacheMark(2), CacheMark(-3))
    assert hash(config) == hash(ChatConfig(hosted_tools="web_search", cache_marks=config.cache_marks))
    with pytest.raises(ResponseValidationError, match="does not exist"):
        config.request("One?")


def test_a_config_takes_every_option_of_a_request() -> None:
    """Without the conversation, and what the agent decides: whether it streams, and whom it asks."""
    of_request, of_config = (inspect.signature(cls).parameters for cls in (ChatRequest, ChatConfig))
    assert set(of_request) - set(of_config) == {"messages", "stream", "provider"}
    assert ChatConfig(max_completion_tokens=5) == ChatConfig(max_tokens=5)
    assert not set(of_config) - set(of_request)
    assert of_config["options"].annotation == of_request["options"].annotation == "Unpack[ExtraOptions]"


def test_a_config_passes_on_further_options_and_headers() -> None:
    config = ChatConfig(  # type: ignore[call-arg]  # a program may use this name as well
        frequency_penalty=0.3,
        repetition_penalty=1.1,
        extra_options={"n": 2},
        extra_headers={"anthropic-beta": "x"},
    )
    request = attrs.evolve(config, temperature=0.5).request("Hi")
    assert request == ChatRequest(
        "Hi",
        temperature=0.5,
        n=2,
        frequency_penalty=0.3,
        repeat_penalty=1.1,
        extra_headers={"anthropic-beta": "x"},
    )
    with pytest.raises(ConfigurationError, match="did you mean 'frequency_penalty'"):
        ChatConfig(frequency_penalties=0.3)  # type: ignore[call-arg]
    for wrong in ({"extra_options": {"x": 1}}, {"extra_headers": {"authorization": "k"}}):
        with pytest.raises(ResponseValidationError):
            ChatConfig(**wrong)


@pytest.mark.parametrize("wrong", [{"hosted_tools": ["telepathy"]}, {"cache_marks": ["here"]}, {"top_p": 2}])
def test_a_wrong_option_is_refused_at_once(wrong: Any) -> None:
    with pytest.raises(ResponseValidationError):
        ChatConfig(**wrong)


@pytest.mark.parametrize("config", [{"temperature": 0.5}, {}, "creative", 7])
def test_what_is_no_config_is_refused_by_name(
    server: ReplayServer, service: SyncLLMService, config: Any
) -> None:
    message = f"config must be ChatConfig, not {type(config).__name__}"
    other = LLMService(Endpoint("vllm", base_url=server.url, model="m"))
    refused = (
        lambda: ChatAgent(service, config),
        lambda: ChatAgent(service).chat("hi", config),
        lambda: ChatAgent(service).stream_chat("hi", config),
        lambda: AsyncChatAgent(other, config),
        lambda: AsyncChatAgent(other).stream_chat("hi", config),
    )
    for attempt in refused:
        with pytest.raises(ConfigurationError, match=message):
            attempt()
    with pytest.raises(ConfigurationError, match="trim must be a function, not str"):
        ChatAgent(service, trim="10")  # type: ignore[arg-type]
    assert server.requests == ()


def test_what_is_too_long_is_asked_again_shorter(server: ReplayServer, service: SyncLLMService) -> None:
    server.add(TOO_LONG).add(WHOLE).add(TOO_LONG).add(STREAM)
    agent = ChatAgent(service, ChatConfig(cache_marks=[0, 2, "tools"]), trim=keep_turns(1))
    assert agent.chat(TALK).text
    stream = agent.stream_chat(TALK)
    assert "".join(delta.content_delta or "" for delta in stream) == stream.response.text != ""
    assert [len(request.json()["messages"]) for request in server.requests] == [3, 1, 3, 1]


def test_what_is_too_long_is_asked_again_shorter_in_a_loop(server: ReplayServer, run: Run) -> None:
    server.add(TOO_LONG).add(WHOLE).add(TOO_LONG).add(STREAM).add(TOO_LONG)

    async def use(service: LLMService) -> None:
        agent = AsyncChatAgent(service, trim=keep_turns(1))
        assert (await agent.chat(TALK)).text
        async with agent.stream_chat(TALK) as stream:
            shown = "".join([delta.content_delta or "" async for delta in stream])
            assert shown == (await stream.response()).text != ""
        with pytest.raises(ContextOverflowError):
            await AsyncChatAgent(service).chat(TALK)

    run(use)
    assert [len(request.json()["messages"]) for request in server.requests] == [3, 1, 3, 1, 3]


@pytest.mark.parametrize("trim", [None, keep_turns(2), keep_turns(1)], ids=["none", "no help", "not enough"])
def test_what_stays_too_long_is_raised(
    server: ReplayServer, service: SyncLLMService, trim: Trimming | None
) -> None:
    server.add(TOO_LONG, times=None)
    agent = ChatAgent(service, trim=trim)
    with pytest.raises(ContextOverflowError):
        agent.chat(TALK)
    stream = agent.stream_chat(TALK)
    with pytest.raises(ContextOverflowError):
        list(stream)
    assert stream.response.error_info is not None


def test_a_stop_while_it_is_made_shorter(server: ReplayServer, service: SyncLLMService) -> None:
    server.add(TOO_LONG)

    def trim(groups: Sequence[Group]) -> Sequence[Group]:
        stream.stop()
        return groups[-1:]

    stream = ChatAgent(service, trim=trim).stream_chat(TALK)
    assert "".join(delta.content_delta or "" for delta in stream) == ""
    assert stream.response.finish_reason == "cancelled"
    assert len(server.requests) == 1
