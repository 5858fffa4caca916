"""Writes every word that a client may say to an LLM server: ``python scripts/request_words.py``.

It walks the types of the official SDKs, and completes each of their words to a small request that is valid by itself. It
compares them with the files of ``tests/request_matrix``, which ``tests/test_request_matrix.py`` sends to every server, and
lists the words that are new, those that are gone, and those that the library does not read. It ends with 1 if the files are
not what the SDKs say, and writes them with ``--write``.

It runs in a process of its own: the order of the words of an enumeration is that of the SDK that is imported first.

It needs the extra ``sdks``, in the versions of ``dev.lock``.
"""

from __future__ import annotations

import base64
import importlib.metadata
import json
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from request_types import Row, Walk, fields_of, file_of, variants, words

__all__ = [
    "FOLDER",
    "FORMATS",
    "LEASTS",
    "SDKS",
    "added",
    "installed",
    "lines_of",
    "rows_of",
    "targets",
    "written",
]

FOLDER: Final = Path(__file__).parents[1] / "tests/request_matrix"
SDKS: Final = {
    "chat": "openai",
    "responses": "openai",
    "messages": "anthropic",
    "gemini": "google-genai",
    "ollama": "ollama",
    "bedrock": "botocore",
    "cohere": "cohere",
    "mistral": "mistralai",
}
"""The package that has the types of each format."""

HI: Final = "Say hello to everyone."
ON: Final = "Please carry on."
Body = dict[str, Any]
LEAST: Final = "-"
"""The name of the request that says nothing but ``HI``."""


def installed() -> dict[str, str]:
    """Return the versions of the SDKs.

    Raises:
        PackageNotFoundError: one is not installed: ``pip install -c dev.lock -e '.[dev,sdks]'``.
    """
    return {name: importlib.metadata.version(name) for name in sorted(set(SDKS.values()))}


def same(body: Body) -> Body:
    """Return *body*: the type of a request describes the body itself."""
    return body


def user(content: Any = HI) -> Body:
    """Return a turn of the user."""
    return {"role": "user", "content": content}


def schema(**more: Any) -> Body:
    """Return the parameters of a tool that takes none."""
    return {"type": "object", "properties": {}, **more}


def function(name: str) -> Body:
    """Return a tool as Chat Completions declares it."""
    return {"type": "function", "function": {"name": name, "parameters": schema()}}


def without_none(body: Body) -> Body:
    """Return *body* without what is ``None``."""
    return {key: value for key, value in body.items() if value is not None}


def text_file(walk: Walk) -> str:
    """Return a file of text in base64."""
    return base64.b64encode(f"the file says {walk.values.marker()} here".encode()).decode()


def completed(walk: Walk, row: Row, complete: Callable[[Body, str], Body]) -> Row:
    """Return *row* with valid requests."""
    without = complete({}, LEAST) if row.without is None else complete(row.without, row.name)
    return row._replace(body=complete(row.body, row.name), without=without)


# Chat Completions.


def chat_rows() -> Iterator[Row]:
    """Yield what OpenAI's types of Chat Completions allow."""
    from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming

    walk = Walk(models=False, skip={"model", "stream"}.__contains__)
    for row in walk.rows(CompletionCreateParamsStreaming, same):
        yield completed(walk, row, chat_request)
    for media_type in ("text/plain", "text/csv"):
        data = f"data:{media_type};base64,{text_file(walk)}"
        part = {"type": "file", "file": {"filename": "a.txt", "file_data": data}}
        body = {"model": "m", "messages": [user([part, {"type": "text", "text": HI}])]}
        name = f"messages[][user].content[list][][file] of {media_type}"
        yield Row(name, "variant", body, chat_request({}, LEAST))


def chat_request(body: Body, name: str) -> Body:
    """Complete what the row *name* says: with the turns that must be around it, and the tools that it calls."""
    body = {**body, "model": "m"}
    body.pop("stream", None)
    turns: list[Body] = [user()]
    if name.startswith("messages"):
        turns = _chat_turns(body, body["messages"][0])
    if "tool_choice" in name or "parallel" in name:
        body["tools"] = _chat_choices(body.get("tool_choice"))
    if name.startswith("function_call"):
        choice = body.get("function_call")
        called = choice["name"] if isinstance(choice, dict) else "look"
        body["functions"] = [{"name": called, "parameters": schema()}]
    if "top_logprobs" in body:
        body["logprobs"] = True
    return {**without_none(body), "messages": turns}


def _chat_turns(body: Body, turn: Body) -> list[Body]:
    if turn["role"] in ("system", "developer"):
        return [turn, user()]
    if turn["role"] == "assistant":
        turn = dict(turn)
        if not turn.keys() & {"content", "tool_calls", "function_call", "refusal", "audio"}:
            turn["content"] = "Before."
        calls = turn.get("tool_calls", ())
        results = [{"role": "tool", "tool_call_id": call["id"], "content": "Done."} for call in calls]
        if "function_call" in turn:
            results = [{"role": "function", "name": turn["function_call"]["name"], "content": "Done."}]
        tools = [
            {"type": "custom", "custom": {"name": call["custom"]["name"]}}
            if "custom" in call
            else function(call["function"]["name"])
            for call in calls
        ]
        body["tools"] = tools or None
        return [user(), turn, *results, user(ON)]
    if turn["role"] == "tool":
        call = {
            "id": turn["tool_call_id"],
            "type": "function",
            "function": {"name": "look", "arguments": "{}"},
        }
        body["tools"] = [function("look")]
        return [user(), {"role": "assistant", "content": None, "tool_calls": [call]}, turn]
    if turn["role"] == "function":
        turn = {**turn, "content": turn.get("content") or "Done."}
        body["functions"] = [{"name": turn["name"], "parameters": schema()}]
        called = {"name": turn["name"], "arguments": "{}"}
        return [user(), {"role": "assistant", "content": None, "function_call": called}, turn]
    return [turn]


def _chat_choices(choice: Any) -> list[Body]:
    """The tools of which *choice* chooses."""
    if not isinstance(choice, dict):
        return [function("look")]
    if choice["type"] == "allowed_tools":
        choice["allowed_tools"]["tools"] = [{"type": "function", "function": {"name": "look"}}]
        return [function("look"), function("listen")]
    if choice["type"] == "custom":
        return [{"type": "custom", "custom": {"name": choice["custom"]["name"]}}]
    return [function(choice["function"]["name"])]


# Responses.

_CALLS: Final[dict[str, Body]] = {
    "function_call_output": {"type": "function_call", "name": "look", "arguments": "{}"},
    "custom_tool_call_output": {"type": "custom_tool_call", "name": "look", "input": "x"},
    "computer_call_output": {
        "type": "computer_call",
        "id": "cu_1",
        "status": "completed",
        "pending_safety_checks": [],
        "action": {"type": "screenshot"},
    },
    "local_shell_call_output": {
        "type": "local_shell_call",
        "id": "lsh_1",
        "status": "completed",
        "action": {"type": "exec", "command": ["ls"], "env": {}},
    },
    "shell_call_output": {
        "type": "shell_call",
        "id": "sh_1",
        "status": "completed",
        "action": {"commands": ["ls"]},
    },
    "apply_patch_call_output": {
        "type": "apply_patch_call",
        "id": "apc_1",
        "status": "completed",
        "operation": {"type": "delete_file", "path": "a.txt"},
    },
    "tool_search_output": {
        "type": "tool_search_call",
        "execution": "client",
        "status": "completed",
        "arguments": {},
    },
    "program_output": {"type": "program", "id": "pr_1", "code": "1", "fingerprint": "f"},
    "mcp_approval_response": {
        "type": "mcp_approval_request",
        "arguments": "{}",
        "name": "look",
        "server_label": "s",
    },
}
"""The call before each kind of output."""

_OUTPUTS: Final[dict[str, Body]] = {
    "function_call": {"type": "function_call_output", "output": "Done."},
    "custom_tool_call": {"type": "custom_tool_call_output", "output": "Done."},
    "shell_call": {
        "type": "shell_call_output",
        "output": [{"stdout": "Done.", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
    },
    "local_shell_call": {"type": "local_shell_call_output", "output": "Done."},
    "apply_patch_call": {"type": "apply_patch_call_output", "status": "completed", "output": "Done."},
    "tool_search_call": {
        "type": "tool_search_output",
        "execution": "client",
        "status": "completed",
        "tools": [],
    },
    "computer_call": {
        "type": "computer_call_output",
        "output": {"type": "computer_screenshot", "image_url": "https://pictures.example/s.png"},
    },
}
"""The output after each kind of call."""

_ITEM: Final = r"input\[list\]\[\]"
_SAME_AS_TOOLS: Final = re.compile(r"(tool_search_output|additional_tools|namespace)\]\.tools\[\]\[\w+\]\.")


def responses_rows() -> Iterator[Row]:
    """Yield what OpenAI's types of the Responses API allow."""
    from openai.types.responses.response_create_params import ResponseCreateParamsStreaming

    least = responses_request({}, LEAST)
    walk = Walk(
        models=False,
        skip=lambda name: name in ("model", "stream") or bool(_SAME_AS_TOOLS.search(name)),
    )
    for row in walk.rows(ResponseCreateParamsStreaming, same):
        whole = completed(walk, row, responses_request)
        yield whole
        if re.fullmatch(rf"{_ITEM}\[\w+_output\]", row.name):
            body = {**whole.body, "input": [*whole.body["input"], user(ON)]}
            yield whole._replace(name=f"{row.name} and a turn", body=body, without=least)
        content = rf"{_ITEM}\[EasyInputMessageParam\]\.content\[list\]\[\]\[\w+\](\.file_id|\.file_url)?"
        if re.fullmatch(content, row.name):
            name = f"{row.name} alone"
            yield row._replace(name=name, body=responses_request(row.body, name), without=least)
    for media_type in ("text/plain", "text/csv"):
        data = f"data:{media_type};base64,{text_file(walk)}"
        part = {"type": "input_file", "filename": "a.txt", "file_data": data}
        body = {"model": "m", "input": [user([part, {"type": "input_text", "text": HI}])]}
        name = f"input[list][][EasyInputMessageParam].content[list][][input_file] of {media_type}"
        yield Row(name, "variant", body, least)
    named = {
        "type": "function_call_output",
        "name": "goal_objective",
        "namespace": "agent",
        "output": f"{walk.values.marker()} words",
    }
    body = {"model": "m", "input": [user(), named, user(ON)]}
    yield Row("input[list][][function_call_output] without call_id", "variant", body, least)


def responses_request(body: Body, name: str) -> Body:
    """Complete what the row *name* says: with the items that must be around it, and the tools that it calls."""
    body = {**body, "model": "m"}
    body.pop("stream", None)
    asked: Any = HI
    if name.startswith("input") and "input" in body:
        asked = body["input"]
        if isinstance(asked, list):
            asked = _items(dict(asked[0]), is_alone=name.endswith(" alone"))
            if tools := [tool for item in asked if (tool := _tool_called(item)) is not None]:
                body["tools"] = tools
    if name.startswith("tool_choice") or "parallel" in name:
        body["tools"] = _responses_choices(body.get("tool_choice"))
    if "context_management" in body:  # a text by its type, of which the API knows one
        body["context_management"] = [{**one, "type": "compaction"} for one in body["context_management"]]
    if "tools" in body:
        body["tools"] = [{**_least_of(tool), **tool} for tool in body["tools"]]
    return {**without_none(body), "input": asked}


def _least_of(tool: Body) -> Body:
    """What the API demands of *tool* and its type does not: one way to an MCP server."""
    is_server = tool.get("type") == "mcp" and not tool.keys() & {"server_url", "connector_id", "tunnel_id"}
    return {"server_url": "https://m.example"} if is_server else {}


def _items(item: Body, *, is_alone: bool) -> list[Body]:
    kind, role = item.get("type"), item.get("role")
    if kind in _CALLS:
        key, own = (
            ("id", "approval_request_id") if kind == "mcp_approval_response" else ("call_id", "call_id")
        )
        call = {**_CALLS[kind], key: item.get(own) or "call_1"}
        if kind == "local_shell_call_output":
            item["id"] = call["call_id"] = item.get("id") or "call_1"
        if kind == "tool_search_output":
            item["call_id"] = item.get("call_id") or "call_1"
        return [user(), call, item]
    if role == "user":
        content = item.get("content")
        if isinstance(content, list) and content[0]["type"] != "input_text" and not is_alone:
            item["content"] = [*content, {"type": "input_text", "text": HI}]
        return [item]
    if role in ("system", "developer"):
        return [item, user()]
    if kind in _OUTPUTS:
        if kind == "tool_search_call":
            item.setdefault("call_id", "call_1")
        key = "id" if kind == "local_shell_call" else "call_id"
        return [user(), item, {**_OUTPUTS[kind], key: item["call_id"]}, user(ON)]
    return [user(), item, user(ON)]


def _responses_function(name: str) -> Body:
    return {"type": "function", "name": name, "parameters": schema(), "strict": False}


def _tool_called(item: Body) -> Body | None:
    kind = item.get("type", "")
    if kind == "function_call":
        return _responses_function(item["name"])
    if kind == "custom_tool_call":
        return {"type": "custom", "name": item["name"]}
    return (
        {"type": kind.removesuffix("_call")}
        if kind in ("shell_call", "local_shell_call", "apply_patch_call")
        else None
    )


def _responses_choices(choice: Any) -> list[Body]:
    """The tools of which *choice* chooses."""
    if not isinstance(choice, dict):
        return [_responses_function("look")]
    kind = choice["type"]
    if kind == "allowed_tools":
        choice["tools"] = [{"type": "function", "name": "look"}]
        return [_responses_function("look"), _responses_function("listen")]
    if kind == "function":
        return [_responses_function(choice["name"])]
    if kind == "custom":
        return [{"type": "custom", "name": choice["name"]}]
    needs: dict[str, Body] = {
        "code_interpreter": {"container": {"type": "auto"}},
        "file_search": {"vector_store_ids": ["v"]},
    }
    if "server_label" in choice:
        needs[kind] = {"server_label": choice["server_label"], "server_url": "https://m.example"}
    return [{"type": kind, **needs.get(kind, {})}]


# Messages.

_OF_MODEL: Final = re.compile(
    r"\[(tool_use|server_tool_use|mcp_tool_use|thinking|redacted_thinking|compaction|fallback|[a-z_]+_tool_result)\]$"
)
_VERSIONED: Final = re.compile(r"\[(\w+)_(20\d{6})\]\.")
_SAID_ELSEWHERE: Final = re.compile(r"\.definition\[(?!custom)|\.definition\[.*\]\.|\.configs\.(?!find\b)\w")
"""What a definition says as ``tools`` do, and what is the same for each tool of a set."""
_USER_BLOCK: Final = r"messages\[\]\[user\]\.content\[list\]\[\]\[(?!tool_result)\w+\](\.source\[\w+\])?"


def messages_rows() -> Iterator[Row]:
    """Yield what Anthropic's types of the Messages API allow, betas included."""
    from anthropic.types.beta.message_create_params import MessageCreateParamsStreaming

    tools = str(fields_of(MessageCreateParamsStreaming)["tools"])
    latest = {
        name.removeprefix("beta_tool_").removeprefix("beta_"): version
        for name, version in sorted(re.findall(r"([a-z_]+)_(20\d{6})", tools))
    }
    walk = Walk(models=False, skip=partial(_is_left_out, latest))
    for row in walk.rows(MessageCreateParamsStreaming, same):
        yield completed(walk, row, messages_request)
        if re.fullmatch(_USER_BLOCK, row.name):
            name = f"{row.name} alone"
            yield row._replace(
                name=name, body=messages_request(row.body, name), without=messages_request({}, LEAST)
            )


def _is_left_out(latest: dict[str, str], name: str) -> bool:
    """What the types allow by their shape, and the API does not take there, as the blocks of a model in a user's turn."""
    if name in ("model", "stream", "betas", "max_tokens") or _SAID_ELSEWHERE.search(name):
        return True
    versioned = _VERSIONED.search(name)
    if versioned is not None and latest.setdefault(versioned[1], versioned[2]) != versioned[2]:
        return True  # the fields of one version of each tool
    if name.count("[") > 5 or not name.endswith("]"):
        return False
    if name.startswith("messages[][user].content[list][]["):
        return bool(_OF_MODEL.search(name))
    if name.startswith("messages[][assistant].content[list][]["):
        return not _OF_MODEL.search(name) and not name.endswith(("[text]", "[container_upload]"))
    return False


def messages_request(body: Body, name: str) -> Body:
    """Complete what the row *name* says: with the turns that must be around it, and the tools that it calls."""
    body = {**body, "model": "m", "max_tokens": 4000}
    body.pop("stream", None)
    turns, tools = [user()], []
    if name.startswith("messages") and "messages" in body:
        turns = _turns(dict(body["messages"][0]), is_alone=name.endswith(" alone"))
        blocks = [block for turn in turns if isinstance(turn["content"], list) for block in turn["content"]]
        tools = [block["name"] for block in blocks if block.get("type") == "tool_use"]
    if name.startswith("tool_choice"):
        tools = [body.get("tool_choice", {}).get("name", "look")]
    if tools:
        body["tools"] = [{"name": name, "input_schema": schema()} for name in tools]
    return {**body, "messages": turns}


def _turns(turn: Body, *, is_alone: bool) -> list[Body]:
    turn.setdefault("content", "Be kind.")
    blocks = turn["content"] if isinstance(turn["content"], list) else []
    block: Body = blocks[0] if blocks else {}
    kind = block.get("type", "")
    if turn["role"] == "system":
        return [user(), turn]
    if turn["role"] == "user" and kind == "tool_result":
        call = {"type": "tool_use", "id": block["tool_use_id"], "name": "look", "input": {}}
        return [user(), {"role": "assistant", "content": [call]}, turn]
    if turn["role"] == "user":
        if blocks and kind != "text" and not is_alone:
            turn["content"] = [*blocks, {"type": "text", "text": HI}]
        return [turn]
    if kind == "tool_use":
        return [user(), turn, user([{"type": "tool_result", "tool_use_id": block["id"], "content": "Done."}])]
    if kind not in ("", "text"):
        turn["content"] = [*_calls_before(block, kind), *blocks, {"type": "text", "text": "Before."}]
    return [user(), turn, user(ON)]


def _calls_before(block: Body, kind: str) -> list[Body]:
    """The call of a tool that the server runs, of which *block* is the result."""
    if not kind.endswith("_tool_result"):
        return []
    name = kind.removesuffix("_tool_result")
    if name == "mcp":
        return [
            {
                "type": "mcp_tool_use",
                "id": block["tool_use_id"],
                "name": "look",
                "server_name": "s",
                "input": {},
            }
        ]
    name = {"tool_search": "tool_search_tool_regex"}.get(name, name)
    return [{"type": "server_tool_use", "id": block["tool_use_id"], "name": name, "input": {}}]


# Gemini.

_OF_SDK: Final = frozenset(
    ["http_options", "should_return_http_response", "automatic_function_calling", "automatic_continuation"]
)
"""What is said to the SDK, and not to the server."""
_PART_OF_MODEL: Final = frozenset(
    [
        "function_call",
        "executable_code",
        "code_execution_result",
        "thought",
        "thought_signature",
        "tool_call",
        "tool_response",
    ]
)
_INLINE: Final = {"mime_type": "application/pdf", "data": base64.b64encode(b"%PDF-1.4").decode()}


class Genai:
    """google-genai's client, whose requests are taken as it would send them."""

    def __init__(self) -> None:
        import httpx
        from google import genai

        self._bodies: list[bytes] = []
        self.types: Any = genai.types
        http = httpx.Client(transport=httpx.MockTransport(self._answer))
        self._client = genai.Client(api_key="none", http_options=genai.types.HttpOptions(httpx_client=http))

    def _answer(self, request: Any) -> Any:
        import httpx

        self._bodies.append(request.read())
        return httpx.Response(200, json={"candidates": []})

    def body(self, contents: Any, config: Any) -> Body | None:
        """Return the body of a request; ``None`` for one that the SDK refuses, as it is for Vertex alone."""
        try:
            self._client.models.generate_content(model="m", contents=contents, config=config)
        except ValueError:
            return None
        found: Body = json.loads(self._bodies.pop())
        return found


def gemini_rows() -> Iterator[Row]:
    """Yield what google-genai's types allow, as it sends them."""
    genai = Genai()
    walk = Walk(models=True)
    for media_type in ("text/plain", "text/csv"):
        part = {"inlineData": {"mimeType": media_type, "data": text_file(walk)}}
        turn = {"role": "user", "parts": [part, {"text": HI}]}
        name = f"part.inline_data of {media_type}"
        yield Row(name, "variant", {"contents": [turn]}, LEASTS["gemini"])
    for row in _gemini_parts(walk, genai.types):
        name = row.name if row.name.startswith("tool_config") else LEAST
        body = genai.body(*gemini_request(row.body, row.name))
        without = genai.body(*gemini_request(row.without or {}, name))
        if body is not None and without is not None and body != without:
            yield row._replace(body=body, without=without)


def _gemini_parts(walk: Walk, types: Any) -> Iterator[Row]:
    """Yield what stands in a configuration, then what stands in a part."""
    options = dict(fields_of(types.GenerateContentConfig))
    options |= {
        "tools": list[types.Tool],
        "system_instruction": types.Content,
        "tool_config": types.ToolConfig,
        "response_schema": types.Schema,
    }
    instruction = {"config": {"system_instruction": {"parts": [{"text": f"{walk.values.marker()} words"}]}}}

    def in_config(field: str, value: Any) -> Body:
        return {"config": {field: value}}

    def in_part(field: str, value: Any) -> Body:
        return {"contents": [{"parts": [{field: value}]}]}

    places = [
        (types.GenerateContentConfig, options, "", in_config),
        (types.Part, fields_of(types.Part), "part.", in_part),
    ]
    for owner, fields, prefix, wrap in places:
        for field, kind in fields.items():
            if field in _OF_SDK:
                continue
            if field == "system_instruction":
                yield Row(field, "field", instruction, None)
                continue
            members = variants(kind, models=True)
            if len(members) == 1 and members[0] is not bool and len(words(members[0])) <= 1:
                value = walk.values.smallest(kind, field, owner)
                yield Row(f"{prefix}{field}", "field", wrap(field, value), None)
            yield from walk.rows(kind, partial(wrap, field), f"{prefix}{field}", field, owner)


def gemini_request(said: Body, name: str) -> tuple[list[Body], Body]:
    """Complete what the row *name* says: contents, with the turns that must be around a part, and a configuration."""
    config: Body = dict(said.get("config", {}))
    contents: list[Body] = [{"role": "user", "parts": [{"text": HI}]}]
    if "contents" in said:
        contents, tools = _gemini_turns(said["contents"][0]["parts"][0])
        if tools:
            config["tools"] = [{"function_declarations": [{"name": tool} for tool in tools]}]
    if name.startswith("tool_config"):
        calling = config.get("tool_config", {}).get("function_calling_config") or {}
        names = calling.get("allowed_function_names")
        config["tools"] = [{"function_declarations": [{"name": one} for one in names or ["look"]]}]
        if names:
            calling["mode"] = "ANY"
    if "logprobs" in config:
        config["response_logprobs"] = True
    if "response_schema" in config or "response_json_schema" in config:
        config["response_mime_type"] = "application/json"
    return contents, config


def _gemini_turns(part: Body) -> tuple[list[Body], list[str]]:
    """The turns around *part*, and the tools that they call."""
    hi = {"role": "user", "parts": [{"text": HI}]}
    if "function_response" in part:
        result = {"name": "look", **part["function_response"]}
        call = {"name": result["name"], "args": {}, **_id_of(result)}
        answer = {"role": "model", "parts": [{"function_call": call}]}
        result_turn = {"role": "user", "parts": [{**part, "function_response": result}]}
        return [hi, answer, result_turn], [part["function_response"].get("name") or "look"]
    if not part.keys() & _PART_OF_MODEL:
        if not part.keys() & {"text", "inline_data", "file_data"}:
            part = {"inline_data": _INLINE, **part}
        return [{"role": "user", "parts": [part, {"text": HI}]}], []
    if part.keys() & {"thought", "thought_signature"}:
        part = {"text": "Before.", **part}
    after, tools = {"role": "user", "parts": [{"text": ON}]}, []
    if "function_call" in part:
        call = {"name": "look", **part["function_call"]}
        part = {**part, "function_call": call}
        result = {"name": call["name"], "response": {"output": "Done."}, **_id_of(call)}
        after, tools = {"role": "user", "parts": [{"function_response": result}]}, [call["name"]]
    return [hi, {"role": "model", "parts": [part]}, after], tools


def _id_of(said: Body) -> Body:
    return {"id": said["id"]} if "id" in said else {}


# Ollama.


def ollama_rows() -> Iterator[Row]:
    """Yield what the types of Ollama's SDK allow."""
    from ollama._types import ChatRequest

    walk = Walk(models=True, skip={"model", "stream"}.__contains__)
    for row in walk.rows(ChatRequest, same):
        yield completed(walk, row, partial(ollama_request, walk))


def ollama_request(walk: Walk, body: Body, name: str) -> Body:
    """Complete what the row *name* says: with the turns that must be around it, and the tools that it calls."""
    body = {**without_none(body), "model": "m"}
    body.pop("stream", None)
    turns: list[Body] = [user()]
    if name.startswith("messages") and body.get("messages"):
        turn = dict(body["messages"][0])
        turns, tools = _ollama_turns(walk, turn)
        body["tools"] = [function(tool) for tool in tools]
    for tool in body.get("tools") or ():
        tool.setdefault("type", "function")
        tool.setdefault("function", {}).setdefault("name", "look")
    return {**{key: value for key, value in body.items() if value not in (None, [])}, "messages": turns}


def _ollama_turns(walk: Walk, turn: Body) -> tuple[list[Body], list[str]]:
    if turn.keys() & {"thinking", "tool_calls"}:
        calls = [call["function"]["name"] for call in turn.get("tool_calls", ())]
        content = turn.get("content") or ("" if calls else "Before.")
        said = {**turn, "role": "assistant", "content": content}
        if not calls and "tool_calls" not in turn:
            return [user(), {**said, "content": "Before."}, user(ON)], []
        return [
            user(),
            said,
            *({"role": "tool", "tool_name": call, "content": "Done."} for call in calls),
        ], calls
    if "tool_name" in turn:
        called = {"function": {"name": turn["tool_name"], "arguments": {}}}
        answer = {"role": "assistant", "content": "", "tool_calls": [called]}
        return [user(), answer, {**turn, "role": "tool", "content": "Done."}], [turn["tool_name"]]
    if "images" in turn:
        turn["images"] = [
            one["value"]
            if isinstance(one, dict) and "value" in one
            else file_of(walk.values.marker(), is_image=True)
            for one in turn["images"]
        ]
    return [{**turn, "role": "user", "content": turn.get("content") or HI}], []


FORMATS: Final[dict[str, Callable[[], Iterator[Row]]]] = {
    "chat": chat_rows,
    "responses": responses_rows,
    "messages": messages_rows,
    "gemini": gemini_rows,
    "ollama": ollama_rows,
}
"""The formats in which clients ask, and what their types allow."""


# What only servers speak.


def bedrock_names() -> Iterator[str]:
    """Yield the places of a request to Bedrock's ``Converse``."""
    import botocore.session  # type: ignore[import-untyped]

    model = botocore.session.get_session().get_service_model("bedrock-runtime")
    seen: set[str] = set()

    def places(shape: Any, at: str) -> Iterator[str]:
        if shape.type_name == "structure" and shape.name not in seen:
            seen.add(shape.name)
            for name, member in shape.members.items():
                yield f"{at}.{name}".removeprefix(".")
                yield from places(member, f"{at}.{name}")
        elif shape.type_name == "list":
            yield from places(shape.member, f"{at}[]")
        elif shape.type_name == "map":
            yield from places(shape.value, f"{at}{{}}")

    return places(model.operation_model("Converse").input_shape, "")


def _in_field(name: str, value: Any) -> Body:
    return {name: value}


def cohere_names() -> Iterator[str]:
    """Yield the places of a request to Cohere."""
    from cohere.v2.client import V2Client

    for name, kind in fields_of(V2Client.chat).items():
        if name not in ("return", "request_options", "model"):
            yield name
            for row in Walk(models=True).rows(kind, partial(_in_field, name), name, name):
                yield row.name


def mistral_names() -> Iterator[str]:
    """Yield the places of a request to Mistral."""
    from mistralai.client.models.chatcompletionrequest import ChatCompletionRequest

    yield from ChatCompletionRequest.model_fields
    for row in Walk(models=True).rows(ChatCompletionRequest, same):
        yield row.name


def fields_known() -> dict[str, list[str]]:
    """Return the fields of a request's body that a server's own type has, where no more of it can be checked."""
    from cohere.v2.client import V2Client
    from mistralai.client.models.chatcompletionrequest import ChatCompletionRequest
    from ollama._types import ChatRequest

    mistral = ChatCompletionRequest.model_fields
    return {
        "cohere": [name for name in fields_of(V2Client.chat) if name not in ("return", "request_options")],
        "mistral": sorted({*mistral, *(field.alias for field in mistral.values() if field.alias)}),
        "ollama": list(ChatRequest.model_fields),
    }


def targets() -> dict[str, Any]:
    """Return what the tests must know of the SDKs beside the rows: versions, places and fields of targets."""
    names = {"bedrock": bedrock_names, "cohere": cohere_names, "mistral": mistral_names}
    return {
        "versions": installed(),
        "fields": fields_known(),
        "places": {format: sorted({*found()}) for format, found in names.items()},
    }


# The files.

LEASTS: Final[dict[str, Body]] = {
    "chat": chat_request({}, LEAST),
    "responses": responses_request({}, LEAST),
    "messages": messages_request({}, LEAST),
    "gemini": {"contents": [{"role": "user", "parts": [{"text": HI}]}]},
    "ollama": {"model": "m", "messages": [user()]},
}
"""The request of each format that says nothing but ``HI``."""


def rows_of(format: str) -> Iterator[Body]:
    """Yield the rows of a format, as its file has them.

    Each has its name as ``row``, its ``kind``, a request as ``body``, and as ``adds`` the place of what the row is about.
    Where the request without the row is another one, it is given as ``without``. A row that has neither is about all that
    its request says beside ``HI``.
    """
    for row in FORMATS[format]():
        one: Body = {"row": row.name, "kind": row.kind, "body": row.body}
        if row.without is not None and row.without != LEASTS[format]:
            place = added(row.without, row.body)
            one |= {"without": row.without} if place is None else {"adds": list(place)}
        yield one


def added(without: Any, body: Any) -> tuple[str | int, ...] | None:
    """Return the place of the one field that *body* has and *without* has not; ``None`` if they differ in more."""
    if isinstance(without, dict) and isinstance(body, dict):
        if without.keys() - body.keys() or len(new := body.keys() - without.keys()) > 1:
            return None
        changed = [key for key in without if without[key] != body[key]]
        if new:
            return None if changed else (new.pop(),)
        places: list[Any] = changed
    elif isinstance(without, list) and isinstance(body, list) and len(without) == len(body):
        places = [index for index, one in enumerate(without) if one != body[index]]
    else:
        return None
    if len(places) != 1:
        return None
    below = added(without[places[0]], body[places[0]])
    return None if below is None else (places[0], *below)


def lines_of(rows: Iterator[Body]) -> str:
    """Return the text of a file with *rows*."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def written() -> dict[str, str]:
    """Return the text of each file, by its name."""
    files = {f"{format}.jsonl": lines_of(rows_of(format)) for format in FORMATS}
    return {**files, "sdks.json": json.dumps(targets(), indent=1) + "\n"}


def unread(format: str) -> Iterator[str]:
    """Yield the rows of a format of which the library's reader leaves something unread, or which it refuses."""
    from crosswalk.errors import CrosswalkError
    from crosswalk.service import read_request

    forms = {"chat": "openai-chat", "responses": "openai-responses", "messages": "anthropic"}
    for row in rows_of(format):
        try:
            incoming = read_request(
                row["body"], forms.get(format, format), model="m" if format == "gemini" else None
            )
        except CrosswalkError:
            yield row["row"]
            continue
        if incoming.request.unread:
            yield row["row"]


def main() -> int:
    """List what is new, gone and unread, or write the files."""
    files = written()
    if "--write" in sys.argv[1:]:
        for name, text in files.items():
            (FOLDER / name).write_text(text, encoding="utf-8")
        return 0
    stale = False
    for name, text in files.items():
        file = FOLDER / name
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        stale |= before != text
        if name.endswith(".jsonl"):
            format = name.removesuffix(".jsonl")
            known, now = (
                {json.loads(line)["row"] for line in given.splitlines()} for given in (before, text)
            )
            found = [
                ("new", sorted(now - known)),
                ("gone", sorted(known - now)),
                ("without a row", list(unread(format))),
            ]
            for what, names in found:
                print(f"{format}: {len(names)} {what}")
                print("".join(f"    {one}\n" for one in names), end="")
    if stale:
        print("the files are stale: python scripts/request_words.py --write")
    return stale


if __name__ == "__main__":
    sys.exit(main())
