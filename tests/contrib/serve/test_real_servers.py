"""The official clients through the gateway to real servers, where some are running:
``CROSSWALK_TEST_VLLM_URL``, ``CROSSWALK_TEST_LLAMACPP_URL``. They serve the tiny scripted model. The last
message chooses its script."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import anthropic
import attrs
import httpx2
import ollama
import openai
import pytest

from contrib_serve import Live, live
from crosswalk_serve.config import read_config

URLS = {
    "vllm": os.environ.get("CROSSWALK_TEST_VLLM_URL"),
    "llamacpp": os.environ.get("CROSSWALK_TEST_LLAMACPP_URL"),
}
HELLO = "Hello! I am a tiny model made of a table."
COLD: Any = {"extra_body": {"temperature": 0}}
"""What the SDK has no argument for any more."""
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "unit": {"enum": ["celsius", "fahrenheit"]}},
    "required": ["city", "unit"],
    "additionalProperties": False,
}


@pytest.fixture(params=URLS)
def gateway(request: pytest.FixtureRequest) -> Iterator[Live]:
    url = URLS[request.param]
    if not url:
        pytest.skip(f"no server: CROSSWALK_TEST_{request.param.upper()}_URL is not set")
    file = f"models:\n  tiny: {{provider: {request.param}, base_url: '{url}'}}\non_unsupported: drop\n"
    with live(read_config(file, environ={})) as here:
        yield here


@pytest.fixture
def plain(request: pytest.FixtureRequest) -> Any:
    """Without thoughts, where the server looks for them: the tiny model never ends one."""
    is_vllm = request.node.callspec.params["gateway"] == "vllm"
    return {"extra_body": {"chat_template_kwargs": {"enable_thinking": False}}} if is_vllm else {}


def asked(mode: str) -> Any:
    return [{"role": "user", "content": f"Please answer. mode:{mode}."}]


class TestOpenAI:
    @pytest.fixture
    def client(self, gateway: Live) -> Iterator[openai.OpenAI]:
        with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="none", max_retries=0) as client:
            yield client

    def test_whole_and_streamed(self, client: openai.OpenAI, plain: Any) -> None:
        options: Any = {
            "model": "tiny",
            "messages": asked("hello"),
            "temperature": 0,
            "max_tokens": 40,
            **plain,
        }
        whole = client.chat.completions.create(**options)
        chunks = [
            *client.chat.completions.create(**options, stream=True, stream_options={"include_usage": True})
        ]
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        assert text == whole.choices[0].message.content
        assert text.startswith(HELLO)
        assert chunks[-1].usage.total_tokens == whole.usage.total_tokens > 0

    def test_a_round_of_tools(self, client: openai.OpenAI) -> None:
        tool: Any = {"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS}}
        messages = asked("tool")
        answer = client.chat.completions.create(
            model="tiny", messages=messages, tools=[tool], temperature=0, max_tokens=80
        )
        calls: Any = answer.choices[0].message.tool_calls
        (call,) = calls
        assert call.function.name == "get_weather"
        messages += [
            answer.choices[0].message,
            {"role": "tool", "tool_call_id": call.id, "content": "20"},
            *asked("hello"),
        ]
        after = client.chat.completions.create(model="tiny", messages=messages, tools=[tool], max_tokens=40)
        assert after.choices[0].finish_reason in ("stop", "length")

    def test_responses_and_what_they_go_on_from(self, client: openai.OpenAI) -> None:
        first = client.responses.create(
            model="tiny", input="mode:hello.", temperature=0, max_output_tokens=40
        )
        assert HELLO in first.model_dump_json()  # as text or as reasoning
        second = client.responses.create(
            model="tiny", input="mode:hello.", previous_response_id=first.id, max_output_tokens=40
        )
        assert second.usage.input_tokens > first.usage.input_tokens

    def test_a_schema_is_kept_to(self, client: openai.OpenAI, plain: Any) -> None:
        schema = {
            "name": "out",
            "schema": {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]},
        }
        wanted: Any = {"type": "json_schema", "json_schema": {**schema, "strict": True}}
        answer = client.chat.completions.create(
            model="tiny",
            messages=asked("json"),
            response_format=wanted,
            temperature=0,
            max_tokens=90,
            **plain,
        )
        assert answer.choices[0].message.content.lstrip().startswith("{")

    def test_an_error_is_the_clients_own(self, client: openai.OpenAI) -> None:
        with pytest.raises(openai.BadRequestError):
            client.chat.completions.create(
                model="tiny", messages=[{"role": "user", "content": "word " * 20_000}], max_tokens=5
            )
        with pytest.raises(openai.NotFoundError):
            client.chat.completions.create(model="none", messages=asked("hello"))

    def test_a_stream_that_is_left_ends_there_too(self, client: openai.OpenAI, plain: Any) -> None:
        with client.chat.completions.create(
            model="tiny", messages=asked("loop"), max_tokens=1500, stream=True
        ) as stream:
            assert next(iter(stream)).choices
        again = client.chat.completions.create(model="tiny", messages=asked("hello"), max_tokens=20, **plain)
        assert again.choices[0].message.content


class TestAnthropic:
    @pytest.fixture
    def client(self, gateway: Live) -> Iterator[anthropic.Anthropic]:
        with anthropic.Anthropic(base_url=gateway.url, api_key="none", max_retries=0) as client:
            yield client

    def test_whole_and_streamed(self, client: anthropic.Anthropic) -> None:
        options: Any = {"model": "tiny", "messages": asked("hello"), "max_tokens": 40, **COLD}
        whole = client.messages.create(**options)
        with client.messages.stream(**options) as stream:
            last = stream.get_final_message()
        assert [block.to_dict() for block in last.content] == [block.to_dict() for block in whole.content]
        assert HELLO in last.model_dump_json()  # as text or as thinking
        assert last.usage.output_tokens == whole.usage.output_tokens > 0

    def test_a_round_of_tools(self, client: anthropic.Anthropic) -> None:
        tool: Any = {"name": "get_weather", "input_schema": PARAMETERS}
        messages = asked("tool")
        options: Any = {"model": "tiny", "tools": [tool], "max_tokens": 80, **COLD}
        with client.messages.stream(messages=messages, **options) as stream:
            answer = stream.get_final_message()
        (call,) = [block for block in answer.content if block.type == "tool_use"]
        assert set(call.input) == {"city", "unit"}
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "20"}
        said = [{"type": "text", "text": "mode:hello."}]
        messages += [
            {"role": "assistant", "content": answer.content},
            {"role": "user", "content": [result, *said]},
        ]
        after = client.messages.create(messages=messages, **options)
        assert after.stop_reason in ("end_turn", "max_tokens")


class TestOllama:
    @pytest.fixture
    def client(self, gateway: Live) -> Iterator[ollama.Client]:
        with ollama.Client(host=gateway.url) as client:
            yield client

    def test_whole_and_streamed(self, client: ollama.Client) -> None:
        options: Any = {"options": {"temperature": 0, "num_predict": 40}}
        whole = client.chat("tiny", asked("hello"), **options)
        parts = [*client.chat("tiny", asked("hello"), stream=True, **options)]
        text = "".join(part.message.content or part.message.thinking or "" for part in parts)
        assert text == (whole.message.content or whole.message.thinking)
        assert text.startswith(HELLO)
        assert (parts[-1].done, parts[-1].eval_count) == (True, whole.eval_count)

    def test_a_tool(self, client: ollama.Client) -> None:
        tool = {"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS}}
        answer = client.chat(
            "tiny", asked("tool"), tools=[tool], options={"temperature": 0, "num_predict": 80}
        )
        (call,) = answer.message.tool_calls or ()
        assert (call.function.name, set(call.function.arguments)) == ("get_weather", {"city", "unit"})


# ------------------------------------------------------------------------------------ a long conversation

TURNS = 20
THINK = "Please answer. mode:thinktool."
"""The tiny model thinks, then answers, or calls one or more tools: by chance."""
TOOLS = {
    "get_weather": PARAMETERS,
    "get_time": {"type": "object", "properties": {"zone": {"type": "string"}}, "required": ["zone"]},
}
"""The tools that the model knows."""
HOT: Any = {"extra_body": {"temperature": 1}}


@attrs.define
class Log:
    """The requests that a server got, and its answers.

    Attributes:
        asked: the messages of each request.
        told: each answer's reasoning, and the names of the tools that it calls.
    """

    asked: list[list[Any]] = attrs.field(factory=list)
    told: list[tuple[str, list[str]]] = attrs.field(factory=list)


@contextmanager
def recorded(url: str, log: Log) -> Iterator[str]:
    """The address of a relay to the server at *url*, which records in *log*."""

    class Relay(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            answer = httpx2.post(url + self.path, content=body, timeout=120)
            log.asked.append(json.loads(body)["messages"])
            log.told.append(reasoning_and_calls(answer.json()["choices"][0]["message"]))
            self.send_response(answer.status_code)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Relay) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def reasoning_and_calls(message: Any) -> tuple[str, list[str]]:
    names = [call["function"]["name"] for call in message.get("tool_calls", ())]
    return message.get("reasoning_content", ""), names


@attrs.frozen
class Talk:
    """A conversation of :data:`TURNS` turns with an official client, which keeps the history."""

    url: str

    def chat(self) -> None:
        tools: Any = [
            {"type": "function", "function": {"name": name, "parameters": schema}}
            for name, schema in TOOLS.items()
        ]
        messages: list[Any] = []
        with openai.OpenAI(base_url=f"{self.url}/v1", api_key="none", max_retries=0) as client:
            for seed in range(TURNS):
                messages.append({"role": "user", "content": THINK})
                options: Any = {"messages": messages, "tools": tools, "temperature": 1, "seed": seed}
                answer = client.chat.completions.create(model="tiny", max_tokens=90, **options)
                message = answer.choices[0].message
                messages.append(message)
                for call in message.tool_calls or ():
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": "20"})

    def responses(self) -> None:
        tools: Any = [
            {"type": "function", "name": name, "parameters": schema} for name, schema in TOOLS.items()
        ]
        items: list[Any] = []
        with openai.OpenAI(base_url=f"{self.url}/v1", api_key="none", max_retries=0) as client:
            for _ in range(TURNS):
                items.append({"role": "user", "content": THINK})
                answer = client.responses.create(
                    model="tiny", input=items, tools=tools, max_output_tokens=90, temperature=1, store=False
                )
                items += answer.output
                for item in answer.output:
                    if item.type == "function_call":
                        items.append(
                            {"type": "function_call_output", "call_id": item.call_id, "output": "20"}
                        )

    def messages(self) -> None:
        tools: Any = [{"name": name, "input_schema": schema} for name, schema in TOOLS.items()]
        turns: list[Any] = []
        results: list[Any] = []
        with anthropic.Anthropic(base_url=self.url, api_key="none", max_retries=0) as client:
            for _ in range(TURNS):
                turns.append({"role": "user", "content": [*results, {"type": "text", "text": THINK}]})
                answer = client.messages.create(
                    model="tiny", messages=turns, tools=tools, max_tokens=90, **HOT
                )
                turns.append({"role": "assistant", "content": answer.content})
                results = [
                    {"type": "tool_result", "tool_use_id": block.id, "content": "20"}
                    for block in answer.content
                    if block.type == "tool_use"
                ]

    def ollama(self) -> None:
        tools = [
            {"type": "function", "function": {"name": name, "parameters": schema}}
            for name, schema in TOOLS.items()
        ]
        messages: list[Any] = []
        with ollama.Client(host=self.url) as client:
            for seed in range(TURNS):
                messages.append({"role": "user", "content": THINK})
                options: Any = {"temperature": 1, "seed": seed, "num_predict": 90}
                answer = client.chat("tiny", messages, tools=tools, options=options)
                messages.append(answer.message)
                for call in answer.message.tool_calls or ():
                    messages.append({"role": "tool", "tool_name": call.function.name, "content": "20"})


@pytest.mark.parametrize("hold", [Talk.chat, Talk.responses, Talk.messages, Talk.ollama])
def test_reasoning_reaches_the_server_again_in_each_of_twenty_turns(hold: Callable[[Talk], None]) -> None:
    if not URLS["llamacpp"]:
        pytest.skip("no server: CROSSWALK_TEST_LLAMACPP_URL is not set")
    log = Log()
    with recorded(URLS["llamacpp"], log) as url:
        file = f"models:\n  tiny: {{provider: llamacpp, base_url: '{url}'}}\non_unsupported: drop\n"
        with live(read_config(file, environ={})) as here:
            hold(Talk(here.url))
    assert len(log.asked) == TURNS
    assert all(reasoning for reasoning, _ in log.told)
    assert sum(bool(names) for _, names in log.told) >= 2
    for number, messages in enumerate(log.asked):
        again = [reasoning_and_calls(message) for message in messages if message["role"] == "assistant"]
        assert again == log.told[:number]
