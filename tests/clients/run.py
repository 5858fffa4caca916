"""Runs the clients of Python against a gateway: ``python run.py URL``. Prints one line of JSON for each case.

The server behind the gateway answers as for ``run.mjs``. ``python run.py URL CLIENT`` runs the cases of one client.
"""

from __future__ import annotations

import asyncio
import atexit
import base64
import json
import os
import shutil
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from tempfile import mkdtemp
from typing import Any

MODEL = "tiny"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
DATA_URL = f"data:image/png;base64,{PNG}"
SCHEMA = {
    "title": "answer",
    "type": "object",
    "properties": {"answer": {"type": "integer"}},
    "required": ["answer"],
    "additionalProperties": False,
}
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"name": "weather", "description": "the weather of a city"}
CITIES = ["Paris", "Rome"]
Cases = dict[str, Callable[[], Any]]


def user(content: Any) -> Any:
    """A message of the user."""
    return {"role": "user", "content": content}


def equal(value: Any, wanted: Any) -> None:
    """Fail unless both are equal."""
    if value != wanted:
        raise AssertionError(f"{value!r} instead of {wanted!r}")


def fails(error: type[Exception], do: Callable[[], Any]) -> None:
    """Fail unless *do* raises *error*."""
    try:
        value = do()
    except error:
        return
    raise AssertionError(f"{value!r} instead of {error.__name__}")


def loop(ask: Callable[[], tuple[list[str], str | None]]) -> None:
    """Ask until no tool is called. *ask* goes on with the conversation, and returns the cities of the calls and the text."""
    cities: list[str] = []
    while len(cities) <= len(CITIES):
        calls, text = ask()
        if not calls:
            return equal((cities, text), (CITIES, "Done"))
        cities += calls
    raise AssertionError(f"called for {cities}")


def chat(url: str) -> Cases:
    """OpenAI's SDK with Chat Completions."""
    import openai

    client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    tools: Any = [{"type": "function", "function": {**WEATHER, "parameters": PARAMETERS}}]

    def create(content: Any, **more: Any) -> Any:
        return client.chat.completions.create(model=MODEL, messages=[user(content)], **more)

    def text(content: Any, **more: Any) -> Any:
        return create(content, **more).choices[0].message.content

    def streamed() -> None:
        with client.chat.completions.stream(model=MODEL, messages=[user("Hi")]) as stream:
            equal(stream.get_final_completion().choices[0].message.content, "Hello")

    def over_turns() -> None:
        messages: list[Any] = [user("Weather?")]

        def ask() -> tuple[list[str], str | None]:
            with client.chat.completions.stream(model=MODEL, messages=messages, tools=tools) as stream:
                message = stream.get_final_completion().choices[0].message
            messages.append(message)
            calls = message.tool_calls or []
            messages.extend({"role": "tool", "tool_call_id": call.id, "content": "sunny"} for call in calls)
            return [json.loads(call.function.arguments)["city"] for call in calls], message.content

        loop(ask)

    def structured() -> None:
        schema = {"name": "answer", "strict": True, "schema": SCHEMA}
        answer = text("Hi", response_format={"type": "json_schema", "json_schema": schema})
        equal(json.loads(answer), {"answer": 42})

    def abort() -> None:
        with create("stall", stream=True) as stream:
            equal(next(stream).choices[0].delta.content, "Hel")

    image = [{"type": "text", "text": "What?"}, {"type": "image_url", "image_url": {"url": DATA_URL}}]
    return {
        "whole": lambda: equal(text("Hi"), "Hello"),
        "streamed": streamed,
        "tools": over_turns,
        "image": lambda: equal(text(image), "I see"),
        "structured": structured,
        "error": lambda: fails(openai.BadRequestError, lambda: create("error")),
        "abort": abort,
    }


def responses(url: str) -> Cases:
    """OpenAI's SDK with Responses."""
    import openai

    client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    tools: Any = [{"type": "function", **WEATHER, "parameters": PARAMETERS, "strict": False}]

    def create(content: Any, **more: Any) -> Any:
        return client.responses.create(model=MODEL, input=[user(content)], **more)

    def streamed() -> None:
        with client.responses.stream(model=MODEL, input="Hi") as stream:
            equal(stream.get_final_response().output_text, "Hello")

    def over_turns() -> None:
        items: list[Any] = [user("Weather?")]

        def ask() -> tuple[list[str], str | None]:
            with client.responses.stream(model=MODEL, input=items, tools=tools) as stream:
                answer = stream.get_final_response()
            items.extend(answer.output)
            calls = [item for item in answer.output if item.type == "function_call"]
            items.extend(
                {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"} for call in calls
            )
            return [json.loads(call.arguments)["city"] for call in calls], answer.output_text

        loop(ask)

    def structured() -> None:
        form = {"type": "json_schema", "name": "answer", "strict": True, "schema": SCHEMA}
        equal(json.loads(create("Hi", text={"format": form}).output_text), {"answer": 42})

    def abort() -> None:
        with create("stall", stream=True) as stream:
            next(event for event in stream if event.type == "response.output_text.delta")

    image = [
        {"type": "input_text", "text": "What?"},
        {"type": "input_image", "detail": "auto", "image_url": DATA_URL},
    ]
    return {
        "whole": lambda: equal(create("Hi").output_text, "Hello"),
        "streamed": streamed,
        "tools": over_turns,
        "image": lambda: equal(create(image).output_text, "I see"),
        "structured": structured,
        "error": lambda: fails(openai.BadRequestError, lambda: create("error")),
        "abort": abort,
    }


def messages(url: str) -> Cases:
    """Anthropic's SDK."""
    import anthropic

    client = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)
    tools: Any = [{**WEATHER, "input_schema": PARAMETERS}]

    def text(message: Any) -> str:
        return "".join(block.text for block in message.content if block.type == "text")

    def create(content: Any, **more: Any) -> Any:
        return client.messages.create(model=MODEL, max_tokens=99, messages=[user(content)], **more)

    def streamed() -> None:
        with client.messages.stream(model=MODEL, max_tokens=99, messages=[user("Hi")]) as stream:
            equal(text(stream.get_final_message()), "Hello")

    def over_turns() -> None:
        turns: list[Any] = [user("Weather?")]

        def ask() -> tuple[list[str], str | None]:
            with client.messages.stream(model=MODEL, max_tokens=99, messages=turns, tools=tools) as stream:
                answer: Any = stream.get_final_message()
            calls = [block for block in answer.content if block.type == "tool_use"]
            results = [{"type": "tool_result", "tool_use_id": call.id, "content": "sunny"} for call in calls]
            turns.extend([{"role": "assistant", "content": answer.content}, user(results)])
            return [call.input["city"] for call in calls], text(answer)

        loop(ask)

    def structured() -> None:
        answer = create("Hi", output_config={"format": {"type": "json_schema", "schema": SCHEMA}})
        equal(json.loads(text(answer)), {"answer": 42})

    def abort() -> None:
        with client.messages.stream(model=MODEL, max_tokens=99, messages=[user("stall")]) as stream:
            equal(next(iter(stream.text_stream)), "Hel")

    source = {"type": "base64", "media_type": "image/png", "data": PNG}
    image = [{"type": "text", "text": "What?"}, {"type": "image", "source": source}]
    return {
        "whole": lambda: equal(text(create("Hi")), "Hello"),
        "streamed": streamed,
        "tools": over_turns,
        "image": lambda: equal(text(create(image)), "I see"),
        "structured": structured,
        "error": lambda: fails(anthropic.BadRequestError, lambda: create("error")),
        "abort": abort,
    }


def ollama_chat(url: str) -> Cases:
    """Ollama's SDK."""
    import ollama

    client = ollama.Client(host=url)
    tools: Any = [{"type": "function", "function": {**WEATHER, "parameters": PARAMETERS}}]

    def text(content: str, images: Any = None, **more: Any) -> Any:
        return client.chat(MODEL, [{**user(content), "images": images}], **more).message.content

    def parts(content: str) -> Any:
        return client.chat(MODEL, [user(content)], stream=True)

    def over_turns() -> None:
        turns: list[Any] = [user("Weather?")]

        def ask() -> tuple[list[str], str | None]:
            message = client.chat(MODEL, turns, tools=tools).message
            turns.append(message)
            calls = message.tool_calls or []
            turns.extend({"role": "tool", "tool_name": "weather", "content": "sunny"} for _ in calls)
            return [call.function.arguments["city"] for call in calls], message.content

        loop(ask)

    def abort() -> None:
        stream = parts("stall")
        equal(next(stream).message.content, "Hel")
        stream.close()

    return {
        "whole": lambda: equal(text("Hi"), "Hello"),
        "streamed": lambda: equal("".join(part.message.content for part in parts("Hi")), "Hello"),
        "tools": over_turns,
        "image": lambda: equal(text("What?", [PNG]), "I see"),
        "structured": lambda: equal(json.loads(text("Hi", format=SCHEMA)), {"answer": 42}),
        "error": lambda: fails(ollama.ResponseError, lambda: text("error")),
        "abort": abort,
    }


def gemini(url: str) -> Cases:
    """Google's SDK."""
    from google import genai
    from google.genai import errors, types

    client = genai.Client(api_key="none", http_options=types.HttpOptions(base_url=url))
    tools: Any = [
        types.Tool(function_declarations=[{**WEATHER, "parameters_json_schema": PARAMETERS}])  # type: ignore[list-item]
    ]

    def create(contents: Any, **options: Any) -> Any:
        config: Any = options or None
        return client.models.generate_content(model=MODEL, contents=contents, config=config)

    def parts(content: str) -> Any:
        return client.models.generate_content_stream(model=MODEL, contents=content)

    def over_turns() -> None:
        turns: list[Any] = [types.UserContent("Weather?")]

        def ask() -> tuple[list[str], str | None]:
            answer = create(turns, tools=tools, thinking_config={"include_thoughts": True})
            calls = answer.function_calls or []
            results = [
                types.Part.from_function_response(name=call.name, response={"result": "sunny"})
                for call in calls
            ]
            turns.extend([answer.candidates[0].content, types.UserContent(results or "-")])
            return [call.args["city"] for call in calls], None if calls else answer.text

        loop(ask)

    def functions() -> None:
        cities: list[str] = []

        def weather(city: str) -> str:
            """The weather of a city."""
            cities.append(city)
            return "sunny"

        equal((create("Weather?", tools=[weather]).text, cities), ("Done", CITIES))

    def structured() -> None:
        answer = create("Hi", response_mime_type="application/json", response_json_schema=SCHEMA)
        equal(json.loads(answer.text), {"answer": 42})

    def abort() -> None:
        stream = parts("stall")
        equal(next(stream).text, "Hel")
        stream.close()

    image = ["What?", types.Part.from_bytes(data=base64.b64decode(PNG), mime_type="image/png")]
    return {
        "whole": lambda: equal(create("Hi").text, "Hello"),
        "streamed": lambda: equal("".join(part.text or "" for part in parts("Hi")), "Hello"),
        "tools": over_turns,
        "functions": functions,
        "image": lambda: equal(create(image).text, "I see"),
        "structured": structured,
        "error": lambda: fails(errors.ClientError, lambda: create("error")),
        "abort": abort,
    }


def pydantic_ai(model: Any) -> Cases:
    """An agent of Pydantic AI with one of its models."""
    from pydantic_ai import Agent, BinaryContent, NativeOutput, StructuredDict
    from pydantic_ai.exceptions import ModelHTTPError

    plain: Any = Agent(model)
    picture = BinaryContent(data=base64.b64decode(PNG), media_type="image/png")

    def over_turns() -> None:
        cities: list[str] = []

        def weather(city: str) -> str:
            """The weather of a city."""
            cities.append(city)
            return "sunny"

        agent: Any = Agent(model, tools=[weather])
        equal((agent.run_sync("Weather?").output, cities), ("Done", CITIES))

    def structured() -> None:
        answers: Any = Agent(model, output_type=NativeOutput(StructuredDict(SCHEMA, name="answer")))
        equal(answers.run_sync("Hi").output, {"answer": 42})

    async def first_text(prompt: str) -> str:
        async with plain.run_stream(prompt) as run:
            async for text in run.stream_text(delta=True, debounce_by=None):
                return str(text)
        raise AssertionError("there is no text")

    async def streamed() -> None:
        async with plain.run_stream("Hi") as run:
            equal(await run.get_output(), "Hello")

    return {
        "whole": lambda: equal(plain.run_sync("Hi").output, "Hello"),
        "streamed": lambda: asyncio.run(streamed()),
        "tools": over_turns,
        "image": lambda: equal(plain.run_sync(["What?", picture]).output, "I see"),
        "structured": structured,
        "error": lambda: fails(ModelHTTPError, lambda: plain.run_sync("error")),
        "abort": lambda: equal(asyncio.run(first_text("stall")), "Hel"),
    }


def pydantic_ai_openai(url: str) -> Cases:
    """Pydantic AI with Chat Completions."""
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return pydantic_ai(OpenAIChatModel(MODEL, provider=OpenAIProvider(f"{url}/v1", api_key="none")))


def pydantic_ai_responses(url: str) -> Cases:
    """Pydantic AI with Responses."""
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return pydantic_ai(OpenAIResponsesModel(MODEL, provider=OpenAIProvider(f"{url}/v1", api_key="none")))


def pydantic_ai_anthropic(url: str) -> Cases:
    """Pydantic AI with Messages."""
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.profiles import ModelProfile
    from pydantic_ai.providers.anthropic import AnthropicProvider

    provider = AnthropicProvider(api_key="none", base_url=url)
    profile = ModelProfile(
        supports_json_schema_output=True
    )  # which it knows by the names of Anthropic's models
    model = AnthropicModel(MODEL, provider=provider, profile=profile)

    def memory_kept() -> None:
        """The tool that Anthropic defines and the client runs."""
        from pydantic_ai import Agent
        from pydantic_ai.capabilities import NativeTool
        from pydantic_ai.native_tools import MemoryTool

        paths: list[str] = []

        def memory(command: str, path: str) -> str:
            """Keep notes."""
            paths.append(f"{command} {path}")
            return f"kelp {len(paths)}"

        agent: Any = Agent(model, tools=[memory], capabilities=[NativeTool(MemoryTool())])
        equal((agent.run_sync("Run.").output, paths), ("Done", ["view /memories", "view /memories"]))

    return {**pydantic_ai(model), "memory": memory_kept}


def pydantic_ai_gemini(url: str) -> Cases:
    """Pydantic AI with Gemini's API."""
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    return pydantic_ai(GoogleModel(MODEL, provider=GoogleProvider(api_key="none", base_url=url)))


def langchain(model: Any, error: type[Exception]) -> Cases:
    """One of LangChain's models. It raises its SDK's *error*."""
    from langchain_core.messages import HumanMessage, ToolMessage

    def over_turns() -> None:
        turns: list[Any] = [HumanMessage("Weather?")]
        bound = model.bind_tools([{**WEATHER, "parameters": PARAMETERS}])

        def ask() -> tuple[list[str], str | None]:
            answer = bound.invoke(turns)
            turns.append(answer)
            turns.extend(ToolMessage("sunny", tool_call_id=call["id"]) for call in answer.tool_calls)
            return [call["args"]["city"] for call in answer.tool_calls], answer.text

        loop(ask)

    def image() -> None:
        parts: list[Any] = [
            {"type": "text", "text": "What?"},
            {"type": "image", "base64": PNG, "mime_type": "image/png"},
        ]
        equal(model.invoke([HumanMessage(parts)]).text, "I see")

    def structured() -> None:
        answers = model.with_structured_output(SCHEMA, method="json_schema")
        equal(answers.invoke("Hi"), {"answer": 42})

    def abort() -> None:
        stream = model.stream("stall")
        equal(next(part.text for part in stream if part.text), "Hel")
        stream.close()

    return {
        "whole": lambda: equal(model.invoke("Hi").text, "Hello"),
        "streamed": lambda: equal("".join(part.text for part in model.stream("Hi")), "Hello"),
        "tools": over_turns,
        "image": image,
        "structured": structured,
        "error": lambda: fails(error, lambda: model.invoke("error")),
        "abort": abort,
    }


def langchain_openai(url: str, **more: Any) -> Cases:
    """LangChain's model for OpenAI."""
    import openai
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model=MODEL, base_url=f"{url}/v1", api_key="none", max_retries=0, **more)
    return langchain(model, openai.BadRequestError)


def langchain_anthropic(url: str) -> Cases:
    """LangChain's model for Anthropic."""
    import anthropic
    from langchain_anthropic import ChatAnthropic

    model = ChatAnthropic(model=MODEL, base_url=url, api_key="none", max_retries=0, max_tokens=99)
    return langchain(model, anthropic.BadRequestError)


def langchain_ollama(url: str) -> Cases:
    """LangChain's model for Ollama."""
    import ollama
    from langchain_ollama import ChatOllama

    return langchain(ChatOllama(model=MODEL, base_url=url), ollama.ResponseError)


def llm_chat(url: str) -> Cases:
    """The library ``llm``, with a model as its ``extra-openai-models.yaml`` adds one."""
    import openai
    from llm.default_plugins.openai_models import Chat

    model = Chat(
        MODEL, api_base=f"{url}/v1", vision=True, supports_schema=True, supports_tools=True, can_stream=True
    )
    model.key = "none"
    return llm_model(model, openai.BadRequestError)


def llm_ollama(url: str) -> Cases:
    """The library ``llm`` with its plugin for Ollama, which finds the models of the gateway."""
    folder = mkdtemp()  # it remembers the models there
    atexit.register(shutil.rmtree, folder)
    os.environ |= {"OLLAMA_HOST": url, "LLM_USER_PATH": folder}
    import llm
    import ollama

    (found,) = (one for one in llm.get_models_with_aliases() if one.model.model_id == f"ollama/{MODEL}")
    equal(found.aliases, [])  # a model of another name is another model
    return llm_model(found.model, ollama.ResponseError)


def llm_model(model: Any, refused: type[Exception]) -> Cases:
    """One model of ``llm``, which raises *refused* for a wrong request."""
    import llm

    image = llm.Attachment(type="image/png", content=base64.b64decode(PNG))
    cities: list[str] = []

    def weather(city: str) -> str:
        """The weather of a city."""
        cities.append(city)
        return "sunny"

    def ask(prompt: str, *, stream: bool = False, **more: Any) -> Any:
        return model.prompt(prompt, stream=stream, **more)

    def over_turns() -> None:
        equal(model.chain("Weather?", tools=[weather]).text(), "Done")
        equal(cities, CITIES)

    def abort() -> None:
        parts = iter(ask("stall", stream=True))
        equal(next(parts), "Hel")
        parts.close()

    return {
        "whole": lambda: equal(ask("Hi").text(), "Hello"),
        "streamed": lambda: equal([*ask("Hi", stream=True)], ["Hel", "lo"]),
        "tools": over_turns,
        "image": lambda: equal(ask("What?", attachments=[image]).text(), "I see"),
        "structured": lambda: equal(json.loads(ask("Hi", schema=SCHEMA).text()), {"answer": 42}),
        "error": lambda: fails(refused, lambda: ask("error").text()),
        "abort": abort,
    }


CLIENTS: dict[str, tuple[str, Callable[[str], Cases]]] = {
    "openai": ("openai", chat),
    "openai responses": ("openai", responses),
    "anthropic": ("anthropic", messages),
    "ollama": ("ollama", ollama_chat),
    "google-genai": ("google.genai", gemini),
    "pydantic-ai openai": ("pydantic_ai", pydantic_ai_openai),
    "pydantic-ai responses": ("pydantic_ai", pydantic_ai_responses),
    "pydantic-ai anthropic": ("pydantic_ai", pydantic_ai_anthropic),
    "pydantic-ai gemini": ("pydantic_ai", pydantic_ai_gemini),
    "langchain openai": ("langchain_openai", langchain_openai),
    "langchain responses": (
        "langchain_openai",
        lambda url: langchain_openai(url, use_responses_api=True, output_version="responses/v1"),
    ),
    "langchain anthropic": ("langchain_anthropic", langchain_anthropic),
    "langchain ollama": ("langchain_ollama", langchain_ollama),
    "llm": ("llm", llm_chat),
    "llm ollama": ("llm_ollama", llm_ollama),
}
"""The clients by name, each with its package."""


def results(url: str, clients: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield each case with its error, or ``None``."""
    for client in clients:
        for name, run in CLIENTS[client][1](url).items():
            error = None
            try:
                run()
            except Exception:
                error = traceback.format_exc()
            yield {"case": f"{client}: {name}", "error": error}


if __name__ == "__main__":
    for one in results(sys.argv[1], sys.argv[2:] or CLIENTS):
        print(json.dumps(one), flush=True)
