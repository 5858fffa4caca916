"""The official SDKs at a gateway before a server with another API: reasoning, stored responses, errors, lists
of models.

``test_clients.py`` has the cases that every client has.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import ollama
import openai
import pytest

from contrib_serve import ABOUT, USAGE, Live, says, streams
from crosswalk.testing.exchange import Cut
from crosswalk.testing.replay import Answer, ReplayServer

WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Paris"}'}}


@pytest.fixture
def gpt(gateway: Live) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture
def claude(gateway: Live) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=gateway.url, api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture
def llama(gateway: Live) -> Iterator[ollama.Client]:
    with ollama.Client(host=gateway.url) as client:
        yield client


def thinks() -> Answer:
    """A stream with reasoning, text and a call."""
    deltas: list[dict[str, Any]] = [
        {"role": "assistant", "reasoning": "Hm. "},
        {"reasoning": "Paris."},
        {"content": "I look."},
        {"tool_calls": [{"index": 0, **CALL, "function": {"name": "weather", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"city":'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '"Paris"}'}}]},
    ]
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls"})
    chunks = [{**ABOUT, "object": "chat.completion.chunk", "choices": [choice]} for choice in choices]
    return Answer.of_events(
        [*chunks, {**ABOUT, "object": "chat.completion.chunk", "choices": [], "usage": USAGE}]
    )


# ------------------------------------------------------------------------------------ openai


class TestOpenAI:
    @pytest.mark.parametrize(
        ("status", "error"),
        [(400, openai.BadRequestError), (429, openai.RateLimitError), (500, openai.InternalServerError)],
    )
    def test_errors(
        self, gpt: openai.OpenAI, upstream: ReplayServer, status: int, error: type[Exception]
    ) -> None:
        upstream.add(Answer.failure(status))
        with pytest.raises(error):
            gpt.chat.completions.create(model="tiny", messages=[{"role": "user", "content": "Hi"}])
        with pytest.raises(openai.NotFoundError):
            gpt.chat.completions.create(model="none", messages=[{"role": "user", "content": "Hi"}])

    def test_a_completion_goes_on_with_one_text(self, gpt: openai.OpenAI, upstream: ReplayServer) -> None:
        with pytest.raises(openai.BadRequestError) as raised:
            gpt.completions.create(model="tiny", prompt=["Once", "Twice"])
        assert raised.value.param == "prompt"
        assert "holds 2 texts: send a request for each" in raised.value.message
        assert upstream.requests == ()
        upstream.add(says(" upon"))
        assert gpt.completions.create(model="tiny", prompt=["Once"]).choices[0].text == " upon"

    def test_an_error_in_mid_stream(self, gpt: openai.OpenAI, upstream: ReplayServer) -> None:
        upstream.add(streams("Hel", "lo"), Cut(after_events=1))
        with pytest.raises(openai.APIError):
            list(
                gpt.chat.completions.create(
                    model="tiny", messages=[{"role": "user", "content": "Hi"}], stream=True
                )
            )

    def test_an_address_without_a_version(self, gateway: Live, upstream: ReplayServer) -> None:
        """LiteLLM's proxy and llama.cpp take it, so programs have it."""
        upstream.add(says("Hello"))
        with openai.OpenAI(base_url=gateway.url, api_key="none", max_retries=0) as client:
            answer = client.chat.completions.create(
                model="tiny", messages=[{"role": "user", "content": "Hi"}]
            )
        assert answer.choices[0].message.content == "Hello"

    def test_models(self, gpt: openai.OpenAI) -> None:
        assert [model.id for model in gpt.models.list()] == ["tiny"]
        assert gpt.models.retrieve("tiny").id == "tiny"

    def test_responses_whole_and_gone_on_with(self, gpt: openai.OpenAI, upstream: ReplayServer) -> None:
        upstream.add(says("I am Ada.")).add(says("Ada."))
        first = gpt.responses.create(model="tiny", input="Who are you?")
        assert first.output_text == "I am Ada."
        again = gpt.responses.create(model="tiny", input="Once more?", previous_response_id=first.id)
        assert again.output_text == "Ada."
        said = [(one["role"], one["content"]) for one in upstream.requests[-1].json()["messages"]]
        assert said == [("user", "Who are you?"), ("assistant", "I am Ada."), ("user", "Once more?")]
        assert gpt.responses.retrieve(first.id).output_text
        with pytest.raises(openai.BadRequestError, match="previous_response_id"):
            gpt.responses.create(model="tiny", input="x", previous_response_id="resp_none")

    @pytest.mark.sweep
    def test_responses_streamed(self, gpt: openai.OpenAI, upstream: ReplayServer) -> None:
        upstream.add(thinks()).add(says("Mild."))
        tools: Any = [{"type": "function", "name": "weather", "parameters": WEATHER, "strict": None}]
        with gpt.responses.stream(model="tiny", input="The weather?", tools=tools) as events:
            kinds = [event.type for event in events]
            final = events.get_final_response()
        assert kinds[0] == "response.created"
        assert kinds[-1] == "response.completed"
        call = final.output[-2]  # the last is the seal
        assert (call.type, call.name, call.arguments) == ("function_call", "weather", '{"city":"Paris"}')
        result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "mild"}
        answer = gpt.responses.create(
            model="tiny", input=[result], previous_response_id=final.id, tools=tools
        )
        assert answer.output_text == "Mild."
        assert [one["role"] for one in upstream.requests[-1].json()["messages"]] == [
            "user",
            "assistant",
            "tool",
        ]


# ------------------------------------------------------------------------------------ anthropic


class TestAnthropic:
    def test_an_ordinary_answer_drops_nothing(
        self, claude: anthropic.Anthropic, upstream: ReplayServer
    ) -> None:
        upstream.add(says("Hi"))
        question: Any = [{"role": "user", "content": "Hi"}]
        raw = claude.messages.with_raw_response.create(model="tiny", max_tokens=9, messages=question)
        assert "x-crosswalk-dropped" not in raw.headers

    def test_tools_over_turns(self, claude: anthropic.Anthropic, upstream: ReplayServer) -> None:
        upstream.add(thinks()).add(says("Mild."))
        tools: Any = [{"name": "weather", "input_schema": WEATHER}]
        messages: list[Any] = [{"role": "user", "content": "The weather?"}]
        with claude.messages.stream(model="tiny", max_tokens=9, messages=messages, tools=tools) as events:
            text = "".join(events.text_stream)
            message = events.get_final_message()
        assert text == "I look."
        kinds = [block.type for block in message.content]
        assert kinds == ["thinking", "text", "thinking", "tool_use"]  # the second thinking is the seal
        call = message.content[-1]
        assert (call.name, call.input, message.stop_reason) == ("weather", {"city": "Paris"}, "tool_use")
        result: Any = {"type": "tool_result", "tool_use_id": call.id, "content": "mild"}
        messages += [{"role": "assistant", "content": message.content}, {"role": "user", "content": [result]}]
        answer = claude.messages.create(model="tiny", max_tokens=9, messages=messages, tools=tools)
        assert answer.content[0].text == "Mild."
        said = upstream.requests[-1].json()["messages"]
        assert [one["role"] for one in said] == ["user", "assistant", "tool"]
        assert json.loads(said[1]["tool_calls"][0]["function"]["arguments"]) == {"city": "Paris"}
        assert said[1]["reasoning"] == message.content[0].thinking

    @pytest.mark.parametrize(
        ("status", "error"),
        [
            (400, anthropic.BadRequestError),
            (429, anthropic.RateLimitError),
            (500, anthropic.InternalServerError),
        ],
    )
    def test_errors(
        self, claude: anthropic.Anthropic, upstream: ReplayServer, status: int, error: type[Exception]
    ) -> None:
        upstream.add(Answer.failure(status))
        with pytest.raises(error):
            claude.messages.create(model="tiny", max_tokens=9, messages=[{"role": "user", "content": "Hi"}])
        with pytest.raises(anthropic.NotFoundError):
            claude.messages.create(model="none", max_tokens=9, messages=[{"role": "user", "content": "Hi"}])

    def test_an_error_in_mid_stream(self, claude: anthropic.Anthropic, upstream: ReplayServer) -> None:
        upstream.add(streams("Hel", "lo"), Cut(after_events=1))
        with (
            pytest.raises(anthropic.APIError),
            claude.messages.stream(
                model="tiny", max_tokens=9, messages=[{"role": "user", "content": "Hi"}]
            ) as events,
        ):
            list(events.text_stream)

    def test_models_and_counts(self, claude: anthropic.Anthropic) -> None:
        assert [model.id for model in claude.models.list()] == ["tiny"]
        assert claude.models.retrieve("tiny").id == "tiny"
        counted = claude.messages.count_tokens(model="tiny", messages=[{"role": "user", "content": "Hi"}])
        assert counted.input_tokens == 1


# ------------------------------------------------------------------------------------ ollama


class TestOllama:
    def test_tools_over_turns(self, llama: ollama.Client, upstream: ReplayServer) -> None:
        upstream.add(thinks()).add(says("Mild."))
        tools: Any = [{"type": "function", "function": {"name": "weather", "parameters": WEATHER}}]
        messages: list[Any] = [{"role": "user", "content": "The weather?"}]
        chunks = [*llama.chat("tiny", messages, tools=tools, stream=True, think=True)]
        assert "".join(chunk.message.thinking or "" for chunk in chunks) == "Hm. Paris."
        (call,) = [call for chunk in chunks for call in chunk.message.tool_calls or ()]
        assert (call.function.name, call.function.arguments) == ("weather", {"city": "Paris"})
        messages += [
            {"role": "assistant", "content": "I look.", "tool_calls": [call]},
            {"role": "tool", "tool_name": "weather", "content": "mild"},
        ]
        assert llama.chat("tiny", messages, tools=tools).message.content == "Mild."
        assert [one["role"] for one in upstream.requests[-1].json()["messages"]] == [
            "user",
            "assistant",
            "tool",
        ]

    def test_generate(self, llama: ollama.Client, upstream: ReplayServer) -> None:
        upstream.add(says("Hello")).add(streams("Hel", "lo"))
        assert llama.generate("tiny", "Hi").response == "Hello"
        assert "".join(chunk.response or "" for chunk in llama.generate("tiny", "Hi", stream=True)) == "Hello"

    def test_errors(self, llama: ollama.Client, upstream: ReplayServer) -> None:
        upstream.add(Answer.failure(500)).add(streams("Hel", "lo"), Cut(after_events=1))
        with pytest.raises(ollama.ResponseError) as raised:
            llama.chat("tiny", [{"role": "user", "content": "Hi"}])
        assert raised.value.status_code == 500
        with pytest.raises(ollama.ResponseError):
            [*llama.chat("tiny", [{"role": "user", "content": "Hi"}], stream=True)]
        with pytest.raises(ollama.ResponseError):
            llama.chat("none", [{"role": "user", "content": "Hi"}])

    def test_models(self, llama: ollama.Client) -> None:
        assert [model.model for model in llama.list().models] == ["tiny"]
        assert "completion" in (llama.show("tiny").capabilities or ())
