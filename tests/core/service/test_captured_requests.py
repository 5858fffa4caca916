"""The requests of the captures next to the project: each is read, and goes to a server of its own form unchanged."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import orjson
import pytest

from beside import CAPTURES, needs_captures
from crosswalk import CrosswalkError
from crosswalk.convert import WireForm
from crosswalk.service import build_http_request, read_request

REFUSED: Final = (
    r"prompt: (holds \d+ texts|must be a text, not numbers of tokens|is missing)",  # it is one conversation each
    r"messages\[\d+\]\.role: must be one of",  # servers that take any word
    r"(messages: must be a list with at least one message|input: must not be empty)",
    r"(tools\[\d+\]\.type|response_format\.json_schema): is missing",
    r"messages\[\d+\]\.content\[\d+\]\.input_audio: must be an object",  # Mistral's sound
)
"""The reasons to refuse a request that its own server has answered."""

NOT_SENT: Final = (
    "a conversation without content",  # it loads or unloads a model of Ollama's
    "a file cannot be sent to this API",  # vLLM takes none
    "a sound needs its media_type",  # the recording has left out its data
    "has no result of it",
)
"""The reasons why a request that was read cannot be sent."""

RESPELLED: Final = {
    *("max_tokens", "max_completion_tokens"),  # vLLM has the older name
    *("functions", "function_call", "tools", "tool_choice"),  # likewise the newer one
    "tools[].function.parameters",  # an object without properties, where none was sent
    *("n", "response_format", "service_tier", "stop", "top_logprobs"),  # values that change nothing
    *("response_format.json_schema.name", "response_format.json_schema.strict"),  # their defaults
    *("messages[].role", "messages[].content"),  # developer is system; null, and a tool's image
    *("messages[].reasoning", "messages[].reasoning_content"),  # vLLM's name for it
    *("messages[].reasoning_details", "messages[].content[].cache_control"),  # OpenRouter's own
    "messages[].tool_calls[].index",  # of a stream
    "web_search_options",  # vLLM searches nothing
    "messages[].content[].image_url",  # an object
    *("messages[].content[].text", "messages[].name", "messages[].tool_calls"),  # nulls
}
"""The fields of Chat Completions that another server of that form gets otherwise, and means the same by."""


def requests() -> Iterator[tuple[str, WireForm, dict[str, Any]]]:
    """The requests that servers have answered, each once."""
    for part, path, file in (
        ("live", "path", "request"),
        ("recorded", "request_path", "request_file"),
    ):
        rows = map(orjson.loads, (CAPTURES / part / "MANIFEST.jsonl").read_bytes().splitlines())
        asked = {row[file]: row for row in rows if row[file] and row["status"] in range(200, 300)}
        for name, row in asked.items():
            end = (row[path] or "").partition("?")[0]
            form = next((form for form in WireForm if end.endswith(form.paths)), None)
            if form is None or not name.endswith(".json"):
                continue
            try:
                body = json.loads((CAPTURES / part / name).read_bytes())
            except ValueError:
                continue  # it was cut, to see what the server says
            if isinstance(body, dict):
                yield f"{part}/{name}", form, body


def differences(one: Any, other: Any, path: str = "") -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        for name in {**one, **other}:
            inner = f"{path}.{name}".removeprefix(".")
            if (name in one) is (name in other):
                yield from differences(one[name], other[name], inner)
            else:
                yield inner
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for item, its in zip(one, other, strict=True):
            yield from differences(item, its, f"{path}[]")
    elif one != other or type(one) is not type(other):
        yield path


@needs_captures
@pytest.mark.sweep
def test_captured_requests_go_to_a_server_of_their_form_as_they_came() -> None:
    problems: list[str] = []
    counts = dict.fromkeys(WireForm, 0)
    for name, form, body in requests():
        try:
            incoming = read_request(body, form, model=None if "model" in body else "m")
        except CrosswalkError as error:
            if not any(re.match(reason, str(error)) for reason in REFUSED):
                problems.append(f"{name}: {error}")
            continue
        targets = {form.provider: set[str]()}
        if form is WireForm.OPENAI_CHAT:
            targets["vllm"] = RESPELLED
        elif form in (WireForm.OPENAI_COMPLETIONS, WireForm.OLLAMA_GENERATE):
            continue  # they become chats
        for provider, known in targets.items():
            try:
                built = build_http_request(incoming.request, provider, on_unsupported="drop")
            except CrosswalkError as error:
                if not str(error).endswith(NOT_SENT):
                    problems.append(f"{name} to {provider}: {error}")
                continue
            counts[form] += 1
            found = {*differences(body, built.body)} - {"model", "stream", "stream_options", *known}
            problems += [f"{name} to {provider}: {path}" for path in found]
    assert not problems, "\n".join(problems)
    assert sum(map(bool, counts.values())) == 5, counts
