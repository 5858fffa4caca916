"""Requests as the official SDKs send them, each with as much in it as its form has."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import anthropic
import httpx
import httpx2
import ollama
import openai
import orjson

from crosswalk.convert import WireForm

__all__ = ["REQUESTS", "Asked"]

Asked = tuple[WireForm, dict[str, Any]]
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def _sent(ask: Callable[[Any], Any], http: Any, response: Any) -> dict[str, Any]:
    """The body that *ask* sends through the client made of *http*."""
    bodies: list[bytes] = []

    def handler(request: Any) -> Any:
        bodies.append(request.content)
        return response(500, json={"error": "enough"})

    with suppress(openai.APIError, anthropic.APIError, ollama.ResponseError):
        ask(http.MockTransport(handler))
    body: dict[str, Any] = orjson.loads(bodies[0])
    return body


def _openai(ask: Callable[[Any], Any]) -> dict[str, Any]:
    def run(transport: Any) -> None:
        with openai.OpenAI(
            api_key="k", max_retries=0, http_client=httpx2.Client(transport=transport)
        ) as client:
            ask(client)

    return _sent(run, httpx2, httpx2.Response)


def _anthropic(ask: Callable[[Any], Any]) -> dict[str, Any]:
    def run(transport: Any) -> None:
        http: Any = httpx2.Client(transport=transport)
        with anthropic.Anthropic(api_key="k", max_retries=0, http_client=http) as client:
            ask(client)

    return _sent(run, httpx2, httpx2.Response)


def _ollama(ask: Callable[[Any], Any]) -> dict[str, Any]:
    def run(transport: Any) -> None:
        ask(ollama.Client("http://x", transport=transport))

    return _sent(run, httpx, httpx.Response)


CHAT_MESSAGES: Any = [
    {"role": "developer", "content": "Be brief."},
    {"role": "system", "content": [{"type": "text", "text": "Be good."}]},
    {
        "role": "user",
        "name": "ann",
        "content": [
            {"type": "text", "text": "What is this?"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "high"}},
            {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        ],
    },
    {
        "role": "assistant",
        "content": "I look.",
        "reasoning_content": "A picture of something.",
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"city":"Bern"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "A bear."},
    {"role": "assistant", "content": "A bear.", "refusal": None},
    {"role": "user", "content": "Thanks."},
]
CHAT_TOOLS: Any = [
    {
        "type": "function",
        "function": {"name": "look", "description": "Looks.", "parameters": SCHEMA, "strict": True},
    },
    {"type": "function", "function": {"name": "wait"}},
]


def _chat() -> dict[str, Any]:
    return _openai(
        lambda client: client.chat.completions.create(
            model="gpt-x",
            messages=CHAT_MESSAGES,
            tools=CHAT_TOOLS,
            tool_choice={"type": "function", "function": {"name": "look"}},
            parallel_tool_calls=False,
            response_format={
                "type": "json_schema",
                "json_schema": {"name": "place", "schema": SCHEMA, "strict": True, "description": "A place."},
            },
            reasoning_effort="low",
            temperature=0.5,
            top_p=0.5,
            max_completion_tokens=100,
            stop=["END", "STOP"],
            seed=7,
            n=2,
            logprobs=True,
            top_logprobs=2,
            logit_bias={"5": 1},
            frequency_penalty=0.5,
            presence_penalty=0.25,
            metadata={"job": "a"},
            user="u-1",
            store=True,
            service_tier="flex",
            verbosity="low",
            stream=True,
            stream_options={"include_usage": True, "include_obfuscation": False},
            extra_body={"top_k": 5, "invented": {"deep": [1, {"er": True}]}},
        )
    )


def _chat_media() -> dict[str, Any]:
    return _openai(
        lambda client: client.chat.completions.create(
            model="gpt-x",
            max_tokens=9,
            stop="END",
            tool_choice="auto",
            response_format={"type": "json_object"},
            messages=[
                {
                    "role": "user",
                    "content": [
                        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
                        {
                            "type": "file",
                            "file": {
                                "file_data": "data:application/pdf;base64,JVBERi0=",
                                "filename": "a.pdf",
                            },
                        },
                    ],
                },
            ],
        )
    )


def _completions() -> dict[str, Any]:
    return _openai(
        lambda client: client.completions.create(
            model="davinci-x",
            prompt="Once upon a time",
            echo=True,
            max_tokens=20,
            temperature=0.5,
            top_p=0.5,
            n=2,
            best_of=3,
            logprobs=2,
            stop=["END"],
            seed=3,
            suffix="The end.",
            presence_penalty=0.5,
            frequency_penalty=0.25,
            logit_bias={"5": 1},
            user="u-1",
            stream=True,
            stream_options={"include_usage": True},
        )
    )


RESPONSES_INPUT: Any = [
    {"role": "developer", "content": "Be brief."},
    {
        "type": "message",
        "role": "user",
        "content": [
            {"type": "input_text", "text": "What is this?"},
            {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "low"},
            {"type": "input_file", "file_url": "https://example.org/a.pdf"},
            {"type": "input_file", "file_data": "data:application/pdf;base64,JVBERi0=", "filename": "a.pdf"},
        ],
    },
    {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "I think."}],
        "encrypted_content": "gAAA",
    },
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
    },
    {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "look",
        "arguments": '{"city":"Bern"}',
        "status": "completed",
    },
    {"type": "function_call_output", "call_id": "call_1", "output": "A bear."},
    {"role": "assistant", "content": "A bear."},
    {"type": "function_call", "call_id": "call_2", "name": "look", "arguments": "{}"},
    {
        "type": "function_call_output",
        "call_id": "call_2",
        "output": [{"type": "input_text", "text": "A cat."}],
    },
    {"type": "item_reference", "id": "rs_9"},
    {"role": "user", "content": "Thanks."},
]


def _responses() -> dict[str, Any]:
    return _openai(
        lambda client: client.responses.create(
            model="gpt-x",
            instructions="Be good.",
            input=RESPONSES_INPUT,
            tools=[
                {
                    "type": "function",
                    "name": "look",
                    "description": "Looks.",
                    "parameters": SCHEMA,
                    "strict": True,
                },
                {
                    "type": "web_search",
                    "filters": {"allowed_domains": ["example.org"]},
                    "search_context_size": "low",
                },
                {"type": "code_interpreter", "container": {"type": "auto"}},
                {"type": "file_search", "vector_store_ids": ["vs_1"]},
            ],
            tool_choice={"type": "function", "name": "look"},
            parallel_tool_calls=False,
            text={
                "format": {"type": "json_schema", "name": "place", "schema": SCHEMA, "strict": True},
                "verbosity": "low",
            },
            reasoning={"effort": "low", "summary": "auto"},
            temperature=0.5,
            top_p=0.5,
            max_output_tokens=100,
            max_tool_calls=3,
            include=["reasoning.encrypted_content"],
            metadata={"job": "a"},
            previous_response_id="resp_1",
            prompt_cache_key="k",
            safety_identifier="s",
            service_tier="flex",
            store=False,
            truncation="auto",
            user="u-1",
            background=True,
            stream=True,
            extra_body={"invented": {"deep": [1, {"er": True}]}},
        )
    )


MESSAGES: Any = [
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "What is this?", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
            {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
                "title": "a.pdf",
                "citations": {"enabled": True},
                "cache_control": {"type": "ephemeral", "ttl": "5m"},
            },
        ],
    },
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "A picture of something.", "signature": "EqQB"},
            {"type": "redacted_thinking", "data": "EmwK"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"city": "Bern"}},
            {"type": "tool_use", "id": "toolu_2", "name": "look", "input": {}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": "No such city.", "is_error": True},
            {
                "type": "tool_result",
                "tool_use_id": "toolu_2",
                "content": [{"type": "text", "text": "A bear."}],
                "is_error": False,
            },
            {"type": "text", "text": "Well?"},
        ],
    },
    {"role": "assistant", "content": "A bear."},
    {"role": "user", "content": "Thanks."},
]


def _messages() -> dict[str, Any]:
    return _anthropic(
        lambda client: client.messages.create(
            model="claude-x",
            max_tokens=100,
            system=[
                {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}},
                {"type": "text", "text": "Be good.", "cache_control": {"type": "ephemeral", "ttl": "5m"}},
            ],
            messages=MESSAGES,
            tools=[
                {
                    "name": "look",
                    "description": "Looks.",
                    "input_schema": SCHEMA,
                    "strict": True,
                    "input_examples": [{"city": "Bern"}],
                },
                {
                    "type": "web_search_20250305",
                    "name": "web_search",
                    "max_uses": 3,
                    "allowed_domains": ["example.org"],
                    "user_location": {"type": "approximate", "city": "Bern"},
                },
                {"type": "bash_20250124", "name": "bash"},
                {"name": "wait", "input_schema": SCHEMA, "cache_control": {"type": "ephemeral"}},
            ],
            tool_choice={"type": "auto", "disable_parallel_tool_use": True},
            thinking={"type": "enabled", "budget_tokens": 5000},
            output_config={"format": {"type": "json_schema", "schema": SCHEMA}},
            stop_sequences=["END", "STOP"],
            metadata={"user_id": "u-1"},
            service_tier="standard_only",
            stream=True,
            extra_body={"invented": {"deep": [1, {"er": True}]}},
        )
    )


def _messages_plain() -> dict[str, Any]:
    return _anthropic(
        lambda client: client.messages.create(
            model="claude-x",
            max_tokens=100,
            system="Be brief.",
            messages=[{"role": "user", "content": "Hi."}],
            tools=[{"name": "look", "input_schema": SCHEMA}],
            tool_choice={"type": "tool", "name": "look"},
            thinking={"type": "disabled"},
            extra_body={"temperature": 0.5, "top_p": 0.5, "top_k": 5},
        )
    )


OPTIONS: Any = {
    "temperature": 0.5,
    "top_p": 0.5,
    "top_k": 5,
    "seed": 7,
    "num_predict": 100,
    "stop": ["END", "STOP"],
    "num_ctx": 8192,
    "repeat_penalty": 1.5,
}


def _ollama_chat() -> dict[str, Any]:
    return _ollama(
        lambda client: client.chat(
            "llama-x",
            messages=[
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "What is this?", "images": [PNG]},
                {
                    "role": "assistant",
                    "content": "I look.",
                    "thinking": "A picture of something.",
                    "tool_calls": [{"function": {"name": "look", "arguments": {"city": "Bern"}}}],
                },
                {"role": "tool", "tool_name": "look", "content": "A bear."},
                {
                    "role": "assistant",
                    "content": "Once more.",
                    "tool_calls": [{"function": {"name": "look", "arguments": {"city": "Basel"}}}],
                },
                {"role": "tool", "tool_name": "look", "content": "A cat."},
                {"role": "user", "content": "Thanks."},
            ],
            tools=[
                {
                    "type": "function",
                    "function": {"name": "look", "description": "Looks.", "parameters": SCHEMA},
                }
            ],
            stream=False,
            think="low",
            logprobs=True,
            top_logprobs=2,
            format=SCHEMA,
            options=OPTIONS,
            keep_alive="5m",
        )
    )


def _ollama_generate() -> dict[str, Any]:
    return _ollama(
        lambda client: client.generate(
            "llama-x",
            "Once upon a time",
            suffix="The end.",
            system="Be brief.",
            template="{{ .Prompt }}",
            context=[1, 2],
            raw=True,
            think=True,
            images=[PNG],
            format="json",
            options={"num_predict": -1, "top_k": 0, "stop": ["END"], "num_ctx": 8192},
            keep_alive=5.0,
        )
    )


REQUESTS: dict[str, Asked] = {
    "chat": (WireForm.OPENAI_CHAT, _chat()),
    "chat-media": (WireForm.OPENAI_CHAT, _chat_media()),
    "completions": (WireForm.OPENAI_COMPLETIONS, _completions()),
    "responses": (WireForm.OPENAI_RESPONSES, _responses()),
    "messages": (WireForm.ANTHROPIC, _messages()),
    "messages-plain": (WireForm.ANTHROPIC, _messages_plain()),
    "ollama-chat": (WireForm.OLLAMA, _ollama_chat()),
    "ollama-generate": (WireForm.OLLAMA_GENERATE, _ollama_generate()),
}
"""Each by its name: its form, and the body that the SDK sends."""
