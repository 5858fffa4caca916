"""The pages for those who come from another library: of each pair, both programs print the same."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, Protocol, runtime_checkable

import pytest

from crosswalk.testing import Answer, ReceivedRequest
from pages import ROOT, blocks
from strict_answers import every_api

PAGES = ("from-openai", "from-litellm", "from-langchain")
TEXT = ("Forty", "-two.")
USAGE = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
HEAD = {"id": "chatcmpl-1", "created": 1780000000, "model": "tiny"}


def pairs() -> list[Any]:
    """Each page's blocks of Python, two by two, by the heading above them."""
    found = []
    for page in PAGES:
        text = (ROOT / f"docs/{page}.md").read_text()
        for heading, section in re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL):
            programs = re.findall(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
            if programs:
                assert len(programs) == 2, heading
                found.append(pytest.param(*programs, id=f"{page}: {heading}"))
    assert sum(len(blocks(ROOT / f"docs/{page}.md", "python")) for page in PAGES) == 2 * len(found)
    return found


@pytest.fixture
def server() -> Iterator[str]:
    """The address of a server that speaks Chat Completions, with one model, ``tiny``."""
    with every_api() as server:
        server.add(Answer.of_json({"error": MISSING}, status=404), when=is_for_another, times=None)
        server.add(Answer.of_json(whole("How?", calls=True)), when=wants_a_call, times=None)
        server.add(Answer.of_json(whole("It is mild in Paris.")), when=has_a_result, times=None)
        server.add(Answer.of_json(whole('{"city": "Paris", "celsius": 20}')), when=wants_json, times=None)
        server.add(
            Answer.of_events([*pieces()]), when=lambda asked: bool(asked.json().get("stream")), times=None
        )
        server.add(Answer.of_json(whole("".join(TEXT))), times=None)
        yield server.url


MISSING = {"message": "The model `missing` does not exist.", "type": "NotFoundError", "code": 404}


def is_for_another(asked: ReceivedRequest) -> bool:
    return bool(asked.json()["model"] != "tiny")


def has_a_result(asked: ReceivedRequest) -> bool:
    return bool(asked.json()["messages"][-1]["role"] == "tool")


def wants_a_call(asked: ReceivedRequest) -> bool:
    return bool(asked.json().get("tools")) and not has_a_result(asked)


def wants_json(asked: ReceivedRequest) -> bool:
    return "response_format" in asked.json()


def whole(text: str, *, calls: bool = False) -> dict[str, Any]:
    """A body with *text*, or with a call of ``get_weather``."""
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "get_weather", "arguments": '{"city":"Paris"}'},
    }
    message = (
        {"role": "assistant", "content": None, "tool_calls": [call]}
        if calls
        else {"role": "assistant", "content": text}
    )
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    return {**HEAD, "object": "chat.completion", "choices": [choice], "usage": USAGE}


def pieces() -> Iterator[dict[str, Any]]:
    """The same as a stream."""
    head = {**HEAD, "object": "chat.completion.chunk"}
    for text in TEXT:
        yield {
            **head,
            "choices": [{"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}],
        }
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    yield {**head, "choices": [], "usage": USAGE}


@runtime_checkable
class Closable(Protocol):
    def close(self) -> object: ...


def printed(program: str, server: str) -> str:
    """The output of *program* with *server* as the one that it names."""
    out, names = io.StringIO(), {"__name__": "page"}
    with contextlib.redirect_stdout(out):
        exec(compile(program.replace("http://localhost:8000", server), "<page>", "exec"), names)
    for value in names.values():
        if isinstance(value, Closable) and not isinstance(value, type):  # the end of the program would do it
            value.close()
    return out.getvalue()


@pytest.mark.sweep
@pytest.mark.filterwarnings("default")  # the others' warnings are theirs
@pytest.mark.parametrize(("theirs", "ours"), pairs())
def test_both_programs_print_the_same(theirs: str, ours: str, server: str) -> None:
    mine = printed(ours, server)
    assert mine.strip()
    needed = sorted(set(re.findall(r"^(?:from|import) (openai|litellm|langchain_\w+)", theirs, re.MULTILINE)))
    assert needed
    for package in needed:
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed: only ours ran, and printed {mine!r}")
    said = printed(theirs, server)
    # LiteLLM tells standard output of each failure, in words that change, before it goes on.
    assert said.endswith(mine) if needed == ["litellm"] else said == mine
