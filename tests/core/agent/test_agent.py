"""An agent: what it asks, what it runs, and how each run ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import attrs
import pytest

from crosswalk import (
    ChatMessage,
    ChatResponse,
    ConfigurationError,
    CrosswalkError,
    FinishReason,
    MappingError,
    ModelUnavailableError,
    ProviderError,
    ResponseMetadata,
    ResponseValidationError,
    Segment,
    SegmentType,
    ServerError,
    StreamEvent,
    StreamEventType,
    ToolCall,
    UsageInfo,
)
from crosswalk.agent import (
    Agent,
    AgentError,
    AgentOutcome,
    AgentResponse,
    AgentTurn,
    ChatConfig,
    ChatSession,
    ToolDefinitionError,
    ToolExecutionStart,
    ToolOutcome,
    ToolRunner,
    collect,
    final_answer,
    tool,
)
from crosswalk.service import ChatRequest, Endpoint, LLMService, UnsupportedRequestError
from crosswalk.testing import load_capture
from crosswalk.testing.exchange import Stall
from crosswalk.testing.replay import Answer, ReplayServer
from pages import ROOT
from wires import body

from .conftest import answered

CAPTURES = ROOT / "tests/captures"
PLAIN = {"verify": False}  # no certificates to load
Run = Callable[..., Any]
Said = Callable[..., Answer]


@tool
def get_weather(city: str, unit: str) -> str:
    """The weather in a city."""
    return f"18 degrees {unit} in {city}"


@tool
async def get_time(zone: str) -> dict[str, str]:
    """The time in a zone."""
    return {"zone": zone, "time": "12:00"}


# ---------------------------------------------------------------------------------- two turns, real recordings


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_tools_over_two_turns(server: ReplayServer, run: Run, streamed: bool) -> None:
    suffix = "_stream.response.sse" if streamed else ".response.json"
    asked = load_capture(CAPTURES / f"vllm/reasoning_tool_auto_parallel_seed4{suffix}")
    told = load_capture(CAPTURES / f"vllm/reasoning_chat_think{suffix}")
    server.add(asked).add(told)

    async def use(service: LLMService) -> list[Any]:
        agent = Agent(service, [get_weather, get_time], config=ChatConfig(temperature=0.0))
        return [step async for step in (agent.stream if streamed else agent.run)("Weather and time?")]

    steps = run(use)
    first, second = (step for step in steps if isinstance(step, AgentTurn))
    assert [call.name for call in first.response.tool_calls] == ["get_time", "get_weather"]
    assert [(result.call, result.output) for result in first.tool_results] == [
        (first.response.tool_calls[0], '{"zone":"Europe/Paris","time":"12:00"}'),
        (first.response.tool_calls[1], "18 degrees celsius in Paris"),
    ]
    assert (first.outcome, first.final_output, first.annotations) == (None, None, {})
    assert (second.outcome, second.tool_results) == (AgentOutcome.ANSWERED, ())
    assert second.final_output == second.response.text
    assert "The answer is forty-two!" in second.response.text

    events = [step for step in steps if isinstance(step, StreamEvent)]
    endings = [event.response for event in events if event.response is not None]
    assert endings == ([first.response, second.response] if streamed else [])
    assert bool(events) is streamed
    if streamed:  # each answer's events come before its turn
        assert steps.index(first) == next(
            n for n, step in enumerate(steps) if step is endings[0] or step == first
        )
        ran = steps[steps.index(first) - 4 : steps.index(first)]
        begun = [ToolExecutionStart(call) for call in first.response.tool_calls]
        assert sorted(ran, key=repr) == sorted([*begun, *first.tool_results], key=repr)
        assert ran[0] == begun[0]
        assert steps[-1] is second

    one, two = (request.json() for request in server.requests)
    assert [definition["function"]["name"] for definition in one["tools"]] == ["get_weather", "get_time"]
    assert one["temperature"] == two["temperature"] == 0.0
    assert two["tools"] == one["tools"]
    assert two["messages"][: len(one["messages"])] == one["messages"]
    assistant, *results = two["messages"][1:]
    assert [call["id"] for call in assistant["tool_calls"]] == [result["tool_call_id"] for result in results]
    assert [result["content"] for result in results] == [result.output for result in first.tool_results]
    assert server.connections == 1


def test_signed_reasoning_goes_back_byte_for_byte(server: ReplayServer) -> None:
    server.add(load_capture(CAPTURES / "anthropic/made_thinking_tools.response.json"))
    server.add(load_capture(CAPTURES / "anthropic/ollama_think.response.json"))

    @tool
    def moon_phase(day: str) -> str:
        return "full"

    @tool
    def list_rooms() -> list[str]:
        return ["blue"]

    async def main() -> AgentResponse:
        endpoint = Endpoint("anthropic", model="m", base_url=server.url, api_key="k")
        async with asyncio.timeout(60), LLMService(endpoint, client_options=PLAIN) as service:
            config = ChatConfig(max_tokens=100)
            return await Agent(service, [moon_phase, list_rooms], config=config).answer("Which room?")

    response = asyncio.run(main())
    assert response.outcome is AgentOutcome.ANSWERED
    sent = load_capture(CAPTURES / "anthropic/made_thinking_tools.response.json").events()[0]["content"]
    user, assistant, results = server.requests[1].json()["messages"]
    assert user["role"] == "user"
    signed = [part for part in sent if part["type"] in ("thinking", "redacted_thinking")]
    assert signed
    assert [
        part for part in assistant["content"] if part["type"] in ("thinking", "redacted_thinking")
    ] == signed
    assert [part["tool_use_id"] for part in results["content"]] == ["toolu_01A", "toolu_01B"]


def test_a_paused_answer_is_no_answer(server: ReplayServer) -> None:
    """It goes back as it came, and the provider goes on with it."""
    server.add(load_capture(CAPTURES / "anthropic/made_pause_turn_stream.response.sse"))
    server.add(load_capture(CAPTURES / "anthropic/made_complete_stream.response.sse"))

    async def main() -> list[AgentTurn]:
        endpoint = Endpoint("anthropic", model="m", base_url=server.url, api_key="k")
        async with asyncio.timeout(60), LLMService(endpoint, client_options=PLAIN) as service:
            steps = Agent(service, config=ChatConfig(max_tokens=100)).stream("Look it up.")
            return [step async for step in steps if isinstance(step, AgentTurn)]

    paused, done = asyncio.run(main())
    assert (paused.outcome, paused.response.raw_finish_reason) == (None, "pause_turn")
    assert done.outcome is not None
    first, second = (request.json()["messages"] for request in server.requests)
    assert second[: len(first)] == first
    assert [message["role"] for message in second] == ["user", "assistant"]
    assert [part["type"] for part in second[1]["content"]] == ["redacted_thinking", "server_tool_use"]


def test_an_answer_that_is_still_paused_after_the_last_turn(server: ReplayServer) -> None:
    server.add(load_capture(CAPTURES / "anthropic/made_pause_turn_stream.response.sse"))

    async def main() -> AgentResponse:
        endpoint = Endpoint("anthropic", model="m", base_url=server.url, api_key="k")
        async with asyncio.timeout(60), LLMService(endpoint, client_options=PLAIN) as service:
            config = ChatConfig(max_tokens=100)
            run = Agent(service, config=config, max_turns=1).stream("Look it up.")
            return await run.finish()

    assert asyncio.run(main()).outcome is AgentOutcome.MAX_TURNS


@pytest.mark.parametrize("output_type", [None, list[int]])
def test_an_answer_that_paused_is_whole_in_the_end(server: ReplayServer, output_type: Any) -> None:
    first, second = ("[1, ", "2]") if output_type else ("So ", "far.")
    paused = {
        "id": "m", "type": "message", "role": "assistant", "model": "c", "stop_reason": "pause_turn",
        "content": [{"type": "text", "text": first}], "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip
    ended = {**paused, "content": [{"type": "text", "text": second}], "stop_reason": "end_turn"}
    server.add(Answer.of_json(paused)).add(Answer.of_json(ended))

    async def main() -> AgentResponse[Any]:
        endpoint = Endpoint("anthropic", model="m", base_url=server.url, api_key="k")
        async with asyncio.timeout(60), LLMService(endpoint, client_options=PLAIN) as service:
            agent: Agent[Any] = Agent(service, config=ChatConfig(max_tokens=100), output_type=output_type)
            return await agent.answer("Go on.")

    answered = asyncio.run(main())
    assert answered.final_output == first + second
    assert answered.output == ([1, 2] if output_type else "So far.")
    assert [turn.response.text for turn in answered.turns] == [first, second]


def test_every_word_for_a_pause_goes_on(server: ReplayServer) -> None:
    compacted = {
        "id": "m", "type": "message", "role": "assistant", "model": "c", "stop_reason": "compaction",
        "content": [{"type": "text", "text": "So far."}], "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip
    server.add(Answer.of_json(compacted)).add(Answer.of_json({**compacted, "stop_reason": "end_turn"}))

    async def main() -> AgentResponse:
        endpoint = Endpoint("anthropic", model="m", base_url=server.url, api_key="k")
        async with asyncio.timeout(60), LLMService(endpoint, client_options=PLAIN) as service:
            return await Agent(service, config=ChatConfig(max_tokens=100)).answer("Go on.")

    response = asyncio.run(main())
    assert ([turn.outcome for turn in response.turns], len(server.requests)) == ([None, "answered"], 2)


# --------------------------------------------------------------------------------------- ids that are repeated


def test_repeated_ids_are_told_apart(server: ReplayServer, run: Run, said: Said) -> None:
    """From answer to answer, and against the conversation before: each result finds its call.

    In one answer it is the mapping that tells them apart, by ids that it makes up: the same ones every time.
    """
    weather = '{"city": "Paris", "unit": "c"}'
    server.add(
        said(None, ("a", "get_weather", weather), ("a", "get_time", '{"zone": "x"}'), ("b", "get_time", "{}"))
    )
    server.add(said(None, ("a", "get_weather", weather), ("a", "get_weather", weather)))
    server.add(said("Done."))
    before = [
        ChatMessage.user("Hi"),
        ChatMessage.assistant(tool_calls=[get("b")]),
        ChatMessage.tool_result("b", "x"),
    ]
    response = answered(run, get_weather, get_time, messages=before)
    first, second, _ = response.turns
    assert first.annotations == {"renamed_calls": (("b", "b_2"),)}
    assert second.annotations == {"renamed_calls": (("a", "a_2"), ("call_1", "call_1_2"))}
    assert [call.id for call in first.response.tool_calls] == ["a", "call_1", "b"]
    assert [result.call.id for result in first.tool_results] == ["a", "call_1", "b_2"]
    assert [result.error is None for result in first.tool_results] == [True, True, False]
    messages = server.requests[2].json()["messages"]
    called = [call["id"] for message in messages for call in message.get("tool_calls", ())]
    assert called == ["b", "a", "call_1", "b_2", "a_2", "call_1_2"]
    assert [message["tool_call_id"] for message in messages if message["role"] == "tool"] == called


def get(id: str) -> ToolCall:
    return ToolCall(id, "get_time", '{"zone": "x"}')


def test_renamed_calls_are_renamed_in_segments_too(server: ReplayServer) -> None:
    """A provider that takes back segments, not messages, sees the same ids. Segments of other calls stay."""
    server.add(load_capture(CAPTURES / "anthropic/made_thinking_tools.response.json"), times=2)
    server.add(load_capture(CAPTURES / "anthropic/ollama_think.response.json"))

    async def main() -> AgentResponse:
        endpoint = Endpoint("anthropic", model="m", base_url=server.url, api_key="k")
        async with asyncio.timeout(60), LLMService(endpoint, client_options=PLAIN) as service:
            return await Agent(service, config=ChatConfig(max_tokens=100)).answer("Which room?")

    response = asyncio.run(main())
    assert response.turns[1].annotations["renamed_calls"] == (
        ("toolu_01A", "toolu_01A_2"),
        ("toolu_01B", "toolu_01B_2"),
    )
    messages = server.requests[2].json()["messages"]
    parts = [part for message in messages[1:] for part in message["content"]]
    assert [part["id"] for part in parts if part["type"] == "tool_use"] == [
        "toolu_01A", "toolu_01B", "toolu_01A_2", "toolu_01B_2",
    ]  # fmt: skip
    assert [part["tool_use_id"] for part in parts if part["type"] == "tool_result"] == [
        "toolu_01A", "toolu_01B", "toolu_01A_2", "toolu_01B_2",
    ]  # fmt: skip


# ------------------------------------------------------------------------------------------ the model's mistakes


def test_the_model_is_told_its_mistakes(server: ReplayServer, run: Run, said: Said) -> None:
    server.add(
        said(
            "Let me see.",
            ("1", "get_wether", "{}"),
            ("2", "get_weather", '{"city": 3}'),
            ("3", "get_weather", "{"),
        )
    )
    server.add(said("I cannot."))
    response = answered(run, get_weather)
    assert response.final_output == "I cannot."
    assert [said.message.text if isinstance(said, ChatResponse) else said.role for said in response.conversation] == [
        "Let me see.", "tool", "tool", "tool", "I cannot.",
    ]  # fmt: skip
    assert response.usage == UsageInfo(20, 10)
    assert [result.outcome for result in response.turns[0].tool_results] == [
        ToolOutcome.UNKNOWN_TOOL,
        ToolOutcome.INVALID_ARGUMENTS,
        ToolOutcome.INVALID_ARGUMENTS,
    ]
    _, assistant, *results = server.requests[1].json()["messages"]
    assert assistant["content"] == "Let me see."
    assert [result["content"] for result in results] == [
        "Error: there is no tool 'get_wether'; tools: get_weather",
        "Error: invalid arguments: expected string, got number @ $.city; a required field is missing @ $.unit",
        "Error: arguments of tool call '3' to 'get_weather': not JSON (unexpected end of data at character 1)",
    ]


# --------------------------------------------------------------------------------------------- how a run ends

HALF = ("1", "get_weather", '{"city": "Pa')
WHOLE = ("1", "get_weather", '{"city": "Paris", "unit": "c"}')


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("answer", "outcome", "error"),
    [
        (((None, WHOLE, HALF), {"finish": "length"}), AgentOutcome.TRUNCATED, AgentError),
        ((("The answer is",), {"finish": "length"}), AgentOutcome.TRUNCATED, AgentError),
        (((None, WHOLE), {"finish": "guardrail_intervened"}), AgentOutcome.UNMAPPED, AgentError),
        ((("The answer is",), {"finish": "guardrail_intervened"}), AgentOutcome.UNMAPPED, AgentError),
        ((("<tool_call>{",), {"finish": "tool_calls"}), AgentOutcome.MISSING_CALL, AgentError),
        (((None,), {"words": "Hello there"}), AgentOutcome.UNREAD, AgentError),
        (((None,), {"refusal": "No."}), AgentOutcome.REFUSED, AgentError),
        ((("Well",), {"finish": "content_filter"}), AgentOutcome.CONTENT_FILTER, AgentError),
        ((("Well", WHOLE), {"finish": "abort"}), AgentOutcome.CANCELLED, AgentError),
        (Answer.failure(404, message="no such model"), AgentOutcome.ERROR, ModelUnavailableError),
        (Answer.failure(503), AgentOutcome.ERROR, ServerError),
        (Answer.of_json({"choices": 3}), AgentOutcome.ERROR, MappingError),
    ],
    ids=[
        "half a call",
        "half a text",
        "unknown end of a call",
        "unknown end of a text",
        "missing call",
        "unread text",
        "refusal",
        "moderation",
        "aborted",
        "unknown model",
        "down",
        "nonsense",
    ],
)
def test_a_run_without_an_answer(
    server: ReplayServer,
    run: Run,
    said: Said,
    answer: Any,
    outcome: AgentOutcome,
    error: type[Exception],
    streamed: bool,
) -> None:
    server.add(answer if isinstance(answer, Answer) else said(*answer[0], **answer[1]))

    async def use(service: LLMService) -> AgentResponse:
        agent = Agent(service, [get_weather])
        if not streamed:
            return await agent.answer("Hello?")
        turns = [step async for step in agent.stream("Hello?") if isinstance(step, AgentTurn)]
        return AgentResponse(tuple(turns), turns[-1].final_output)

    response = run(use)
    (turn,) = response.turns
    assert (response.outcome, response.final_output) == (outcome, None)
    assert [result.outcome for result in turn.tool_results] == [ToolOutcome.NOT_RUN] * len(
        turn.response.tool_calls
    )
    assert len(server.requests) == 1
    assert (turn.response.finish_reason is FinishReason.ERROR) is (outcome is AgentOutcome.ERROR)
    assert turn.response.attempts
    with pytest.raises(error) as caught:
        response.raise_for_outcome()
    if isinstance(caught.value, AgentError):
        assert caught.value.response is response
        assert str(caught.value) == f"no answer after 1 turn: {outcome}"


def test_what_was_done_before_a_failure_is_kept(server: ReplayServer, run: Run, said: Said) -> None:
    unreadable = Answer.of_json(body({"content": 7}))
    server.add(said("Looking.", WHOLE)).add(unreadable)
    response = answered(run, get_weather)
    assert [turn.outcome for turn in response.turns] == [None, AgentOutcome.ERROR]
    assert response.turns[0].tool_results[0].output == "18 degrees c in Paris"
    assert isinstance(response.turns[1].error, MappingError)
    session = ChatSession([ChatMessage.user("Hello?")])
    session.extend(response.conversation)  # the failure is no part of it
    assert [message.role.value for message in session.messages] == ["user", "assistant", "tool"]


def test_too_many_turns_are_an_outcome(server: ReplayServer, run: Run, said: Said) -> None:
    server.add(said(None, WHOLE), times=None)
    response = answered(run, get_weather, max_turns=3)
    assert [turn.outcome for turn in response.turns] == [None, None, AgentOutcome.MAX_TURNS]
    assert response.turns[-1].tool_results[0].output == "18 degrees c in Paris"
    assert len(server.requests) == 3
    with pytest.raises(AgentError, match="no answer after 3 turns: max_turns"):
        response.raise_for_outcome()


def test_an_answer_passes(server: ReplayServer, run: Run, said: Said) -> None:
    server.add(said("42"))
    response = answered(run)
    assert response.raise_for_outcome() is response
    assert repr(response).startswith("AgentResponse(outcome='answered', final_output='42'")


def test_a_request_that_cannot_be_sent_is_raised(server: ReplayServer) -> None:
    async def main() -> None:
        async with LLMService(Endpoint("vllm", base_url=server.url)) as service:
            await Agent(service).answer("Hello?")

    with pytest.raises(UnsupportedRequestError):
        asyncio.run(main())
    assert server.requests == ()


class Scripted:
    """A service that gives the answers that it is given."""

    def __init__(self, *answers: ChatResponse | CrosswalkError) -> None:
        self.answers = list(answers)
        self.requests: list[ChatRequest] = []

    async def complete(self, request: ChatRequest) -> ChatResponse:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, CrosswalkError):
            raise answer
        return answer


@pytest.mark.parametrize("error", [MappingError("nothing came"), ProviderError("nothing came")], ids=repr)
def test_an_error_without_a_response_is_raised(error: CrosswalkError) -> None:
    with pytest.raises(CrosswalkError) as caught:
        asyncio.run(Agent(Scripted(error)).answer("Hello?"))  # type: ignore[arg-type]
    assert caught.value is error


def test_renaming_leaves_other_segments_alone() -> None:
    """Such as the call of a tool that the provider itself has run."""
    metadata = ResponseMetadata("p", "m")
    segments = (
        Segment(SegmentType.TOOL_CALL, "{}", {"id": "own", "name": "search"}),
        Segment(SegmentType.TOOL_CALL, '{"zone": "x"}', {"id": "1", "name": "get_time"}),
        Segment(SegmentType.TEXT, "So."),
    )
    message = ChatMessage.assistant("So.", tool_calls=[get("1")])
    asks = ChatResponse.tool_calls_required(message, UsageInfo.EMPTY, "m", metadata)
    asks = attrs.evolve(asks, segments=segments)
    service = Scripted(
        asks, asks, ChatResponse.success(ChatMessage.assistant("12"), UsageInfo.EMPTY, "m", metadata)
    )
    asyncio.run(Agent(service, [get_time]).answer("Hello?"))  # type: ignore[arg-type]
    _, first, _, second, _ = service.requests[-1].messages
    assert first is asks
    assert isinstance(second, ChatResponse)
    assert [segment.metadata.get("id") for segment in second.segments] == ["own", "1_2", None]


# -------------------------------------------------------------------------------------------- the final answer

counted: list[str] = []


@tool(name="final_answer", is_final=True)
def counting(answer: str) -> str:
    counted.append(answer)
    return answer.upper()


def test_a_final_answer_ends_the_run_and_is_run_once(server: ReplayServer, run: Run, said: Said) -> None:
    counted.clear()
    server.add(
        said(
            "So:",
            ("1", "final_answer", '{"answer": 1}'),
            ("2", "final_answer", '{"answer": "yes"}'),
            ("3", *WHOLE[1:]),
            ("4", "final_answer", '{"answer": "no"}'),
        )
    )
    response = answered(run, get_weather, counting)
    assert (response.outcome, response.final_output, counted) == (AgentOutcome.ANSWERED, "YES", ["yes"])
    (turn,) = response.turns
    assert [(result.call.id, result.outcome) for result in turn.tool_results] == [
        ("1", ToolOutcome.INVALID_ARGUMENTS),
        ("2", ToolOutcome.OK),
        ("3", ToolOutcome.OK),
        ("4", ToolOutcome.NOT_RUN),
    ]
    assert len(server.requests) == 1


def test_a_final_answer_that_is_wrong_is_asked_for_again(server: ReplayServer, run: Run, said: Said) -> None:
    server.add(said(None, ("1", "final_answer", "{}")))
    server.add(said(None, ("1", "final_answer", '{"answer": "42"}')))
    response = answered(run, final_answer)
    assert [turn.outcome for turn in response.turns] == [None, AgentOutcome.ANSWERED]
    assert response.final_output == "42"


# ------------------------------------------------------------------------------------ cancellation and leaving


@pytest.mark.parametrize("method", ["run", "stream"])
def test_a_cancelled_agent_closes_its_connection(server: ReplayServer, run: Run, method: str) -> None:
    answer = load_capture(CAPTURES / "vllm/reasoning_chat_think_stream.response.sse")
    server.add(answer, Stall(after_events=4))

    async def use(service: LLMService) -> None:
        agent = Agent(service)
        task = asyncio.create_task(drain(getattr(agent, method)("Hello?")))
        while not server.requests:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(use)
    server.wait_for(lambda server: server.disconnects)


async def drain(steps: Any) -> None:
    async for _ in steps:
        pass


def test_leaving_a_stream_closes_its_connection(server: ReplayServer, run: Run) -> None:
    answer = load_capture(CAPTURES / "vllm/reasoning_chat_think_stream.response.sse")
    server.add(answer, Stall(after_events=4))

    async def use(service: LLMService) -> StreamEventType | None:
        async with aclosing(Agent(service).stream("Hello?")) as steps:
            async for step in steps:
                assert isinstance(step, StreamEvent)
                if step.delta is not None and step.delta.reasoning_delta is not None:
                    return step.event_type
        return None

    assert run(use) is StreamEventType.REASONING_DELTA
    server.wait_for(lambda server: server.disconnects)


def test_a_run_that_was_left_is_no_answer(server: ReplayServer, run: Run, said: Said) -> None:
    server.add(said(None, WHOLE))

    async def use(service: LLMService) -> AgentTurn:
        async with aclosing(Agent(service, [get_weather]).run("Hello?")) as turns:
            return await anext(turns)

    turn = run(use)
    response = AgentResponse((turn,), turn.final_output)
    assert response.outcome is AgentOutcome.CANCELLED
    with pytest.raises(AgentError):
        response.raise_for_outcome()


# ------------------------------------------------------------------------------------------------ the options


def test_options(server: ReplayServer, run: Run, said: Said) -> None:
    server.add(said("42"))
    runner = ToolRunner([get_weather], timeout=1)

    async def use(service: LLMService) -> AgentResponse:
        config = ChatConfig(stop="END", tool_choice="auto", model="other")
        return await collect(Agent(service, runner, config=config).run([ChatMessage.user("Hello?")]))

    run(use)
    body = server.requests[0].json()
    assert [one["function"]["name"] for one in body["tools"]] == ["get_weather"]
    assert (body["model"], body["stop"], body["tool_choice"]) == ("other", ["END"], "auto")


def test_options_are_checked() -> None:
    with pytest.raises(ConfigurationError, match="max_turns"):
        Agent(None, max_turns=0)  # type: ignore[arg-type]
    with pytest.raises(ToolDefinitionError):
        Agent(None, [get_time, get_time])  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="not in its config"):
        Agent(None, config=ChatConfig(tools=(get_time,)))  # type: ignore[arg-type]


@pytest.mark.parametrize("option", ["instructions", "config", "limits", "approve", "trim", "name"])
def test_options_of_another_type(option: str) -> None:
    """Refused at once, not when the first answer has been paid for."""
    with pytest.raises(ConfigurationError, match=f"{option} must be .*, not int") as caught:
        Agent(None, **{option: 3})  # type: ignore[arg-type]
    assert caught.value.key == option


@pytest.mark.parametrize("more", [{"session": "ann"}, {"save": "ann.json"}])
def test_a_run_needs_a_session_and_a_function(server: ReplayServer, run: Run, more: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="must be (ChatSession|a function), not str"):
        run(lambda service: Agent(service).answer("Hi", **more))
    assert server.requests == ()


def test_nothing_to_answer(server: ReplayServer, run: Run) -> None:
    with pytest.raises(ResponseValidationError, match="at least one message"):
        run(lambda service: Agent(service, instructions="Be brief.").answer())


@pytest.mark.parametrize("turns", [0, 1.5, True, "3", None])
def test_a_number_of_turns_that_is_none(turns: Any) -> None:
    with pytest.raises(ConfigurationError, match="max_turns must be a whole number"):
        Agent(None, max_turns=turns)  # type: ignore[arg-type]  # no service is asked


def test_a_run_that_never_began_is_none() -> None:
    async def nothing() -> Any:
        for turn in ():
            yield turn

    with pytest.raises(ResponseValidationError, match="at least one turn"):
        asyncio.run(collect(nothing()))


def test_a_tool_that_was_added_since_is_told_to_the_model(server: ReplayServer, run: Run) -> None:
    server.add(Answer.of_json(body({"content": "Hi."})), times=None)
    runner = ToolRunner([get_weather])

    async def use(service: LLMService) -> None:
        agent = Agent(service, runner)
        await agent.answer("Hello?")
        runner.tools.add(final_answer)
        await agent.answer("Hello?")

    run(use)
    told = [[one["function"]["name"] for one in request.json()["tools"]] for request in server.requests]
    assert told == [["get_weather"], ["get_weather", "final_answer"]]
