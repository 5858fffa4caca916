"""Each part of each turn is in the next request, or named as left out or moved: generated conversations, to every provider."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import attrs
import orjson
import pytest
from hypothesis import given, settings, strategies as st

from crosswalk import (
    ChatMessage,
    ChatResponse,
    ImagePart,
    TextPart,
    ToolCall,
    from_json,
    normalize,
    registry,
    to_json,
)
from crosswalk.service import ChatRequest, HTTPRequest, Turn, UnsupportedRequestError, build_http_request

PROVIDERS: Final = sorted(
    one.name for one in registry.providers() if registry.mapper(one.name).build_request is not None
)
PNG: Final = "iVBORw0KGgo"


@attrs.frozen
class Part:
    """A part of the message *number*: the *mark* by which a request shows it, and the words by which it may be named."""

    number: int
    mark: str
    names: tuple[str, ...]


class Talk:
    """A conversation under construction, in which each part has a mark that nothing else has."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.turns: list[Turn] = []
        self.parts: list[Part] = []
        self._count = 0

    def mark(self, *names: str) -> str:
        """Return a new mark, of a part of the next turn that may be named with one of *names*."""
        self._count += 1
        mark = f"mark{self._count:04}"  # whole bytes of base64
        self.parts.append(Part(len(self.turns), mark, names))
        return mark

    def has(self) -> bool:
        """Draw whether there is one more part."""
        return bool(self.draw(st.booleans()))

    def some(self, *makers: Callable[[], Any]) -> list[Any]:
        """Draw the results of some of *makers*, at least of one, in any order."""
        chosen = self.draw(st.lists(st.sampled_from(makers), min_size=1, max_size=4))
        return [make() for make in chosen]

    def spoken(self, *names: str) -> str:
        """Return a text with a mark."""
        return f"It is {self.mark(*names)}."

    # ------------------------------------------------------------------------ turns of the program

    def user(self) -> None:
        parts = self.some(
            lambda: TextPart(self.spoken()),
            lambda: ImagePart(data=f"{PNG}A{self.mark('image')}", media_type="image/png"),
        )
        name = self.mark("speaker's name") if self.has() else None
        self.turns.append(attrs.evolve(ChatMessage.user(parts), name=name))

    def system(self) -> None:
        self.turns.append(ChatMessage.system(self.spoken("moved")))

    def message(self) -> None:
        """An answer that a program has made, without an owner."""
        calls = [self._call(custom=self.has()) for _ in range(self.draw(st.integers(0, 2)))]
        text = self.spoken() if self.has() or not calls else None
        self.turns.append(ChatMessage.assistant(text, tool_calls=calls or None))
        self._results([call.id for call in calls])

    def _call(self, *, custom: bool) -> ToolCall:
        id = f"call_{len(self.parts)}"
        if custom:
            return ToolCall(id, "patch", self.spoken(), "custom")
        return ToolCall(id, "look", orjson.dumps({"at": self.mark()}).decode())

    def _results(self, ids: list[str]) -> None:
        for id in self.draw(st.permutations(ids)):
            failed = self.draw(st.sampled_from([None, False, True]))
            content: Any = self.spoken("failed")
            if self.has():
                content = [TextPart(content), ImagePart(data=f"{PNG}B{self.mark()}", media_type="image/png")]
            self.turns.append(ChatMessage.tool_result(id, content, is_error=failed))

    # ------------------------------------------------------------------------ answers

    def answer(self, provider: str) -> None:
        """An answer of *provider*, in its format."""
        body = _BODIES.get(provider, _chat)(self)
        response = normalize(orjson.dumps(body), provider, unknown="keep")
        self.turns.append(response)
        self._results([call.id for call in response.tool_calls])


def _arguments(talk: Talk) -> dict[str, str]:
    return {"at": talk.mark()}


def _chat(talk: Talk) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if talk.has():
        message["content"] = talk.spoken()
    if talk.has():
        name = talk.draw(st.sampled_from(["reasoning_content", "reasoning"]))
        message[name] = talk.spoken("reasoning", "state")
    if talk.has():
        detail = {"type": "reasoning.encrypted", "format": "x", "data": talk.mark("reasoning", "state")}
        message["reasoning_details"] = [detail]
    if talk.has():
        message["refusal"] = talk.spoken()
    if talk.has():
        message["x_new"] = {"of": [talk.mark("state")]}
    if talk.has():
        cited = {
            "url": f"https://a.example/{talk.mark('citations', 'state')}",
            "title": "A",
            "start_index": 0,
            "end_index": 2,
        }
        message["annotations"] = [{"type": "url_citation", "url_citation": cited}]
    if talk.has():
        url = f"data:image/png;base64,{PNG}C{talk.mark('picture', 'state')}"
        message["images"] = [{"type": "image_url", "image_url": {"url": url}}]
    calls = []
    for _ in range(talk.draw(st.integers(0, 2))):
        arguments = orjson.dumps(_arguments(talk)).decode()
        call = {
            "id": f"call_{len(talk.parts)}",
            "type": "function",
            "function": {"name": "look", "arguments": arguments},
        }
        if talk.has():
            call["extra_content"] = {"signature": talk.mark("state", "signature")}
        calls.append(call)
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


def _messages(talk: Talk) -> dict[str, Any]:
    def search() -> list[dict[str, Any]]:
        id = f"srvtoolu_{len(talk.parts)}"
        call = {
            "type": "server_tool_use",
            "id": id,
            "name": "web_search",
            "input": {"query": talk.mark("server tool")},
        }
        if talk.has():
            return [call]
        page = {"title": "T", "url": "https://a.example", "encrypted_content": talk.mark("server tool")}
        found = [{"type": "web_search_result", **page}]
        return [call, {"type": "web_search_tool_result", "tool_use_id": id, "content": found}]

    def cited() -> dict[str, Any]:
        return {
            "type": "char_location",
            "cited_text": talk.mark("citations"),
            "document_index": 0,
            "document_title": None,
            "start_char_index": 0,
            "end_char_index": 1,
        }

    blocks = talk.some(
        lambda: [{"type": "text", "text": talk.spoken()}],
        lambda: [{"type": "text", "text": talk.spoken(), "citations": [cited()]}],
        lambda: [
            {
                "type": "thinking",
                "thinking": talk.spoken("reasoning"),
                "signature": talk.mark("reasoning", "state"),
            }
        ],
        lambda: [{"type": "thinking", "thinking": talk.spoken("reasoning")}],
        lambda: [{"type": "redacted_thinking", "data": talk.mark("reasoning", "state")}],
        lambda: [{"type": "x_new", "value": {"deep": talk.mark("state")}}],
        lambda: [
            {"type": "tool_use", "id": f"toolu_{len(talk.parts)}", "name": "look", "input": _arguments(talk)}
        ],
        search,
    )
    content = [block for group in blocks for block in group]
    end = "tool_use" if any(block["type"] == "tool_use" for block in content) else "end_turn"
    return {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "c",
        "content": content,
        "stop_reason": end,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def _gemini(talk: Talk) -> dict[str, Any]:
    def signed() -> dict[str, Any]:
        return {"thoughtSignature": talk.mark("state", "reasoning", "signature")} if talk.has() else {}

    parts = talk.some(
        lambda: {"text": talk.spoken(), **signed()},
        lambda: {"text": talk.spoken("reasoning"), "thought": True, **signed()},
        lambda: {"functionCall": {"name": "look", "args": _arguments(talk)}, **signed()},
        lambda: {
            "inlineData": {"mimeType": "image/png", "data": f"{PNG}D{talk.mark('picture')}"},
            **signed(),
        },
        lambda: {"executableCode": {"language": "PYTHON", "code": talk.spoken("server tool")}},
        lambda: {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": talk.spoken("server tool")}},
        lambda: {"xNew": {"value": talk.mark("state")}},
    )
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "modelVersion": "g", "responseId": "r"}


def _bedrock(talk: Talk) -> dict[str, Any]:
    def signed() -> dict[str, str]:
        return {"text": talk.spoken("reasoning"), "signature": talk.mark("reasoning", "state")}

    content = talk.some(
        lambda: {"text": talk.spoken()},
        lambda: {"reasoningContent": {"reasoningText": signed()}},
        lambda: {"reasoningContent": {"redactedContent": talk.mark("reasoning", "state")}},
        lambda: {
            "toolUse": {"toolUseId": f"tool_{len(talk.parts)}", "name": "look", "input": _arguments(talk)}
        },
        lambda: {"xNew": {"value": talk.mark("state")}},
    )
    end = "tool_use" if any("toolUse" in block for block in content) else "end_turn"
    message = {"role": "assistant", "content": content}
    return {
        "output": {"message": message},
        "stopReason": end,
        "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
    }


def _cohere(talk: Talk) -> dict[str, Any]:
    content = talk.some(
        lambda: {"type": "text", "text": talk.spoken()},
        lambda: {"type": "thinking", "thinking": talk.spoken("reasoning")},
    )
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if talk.has():
        source = {"type": "tool", "id": talk.mark("citations", "state")}
        message["citations"] = [{"start": 0, "end": 2, "text": "It", "sources": [source]}]
    if talk.has():
        function = {"name": "look", "arguments": orjson.dumps(_arguments(talk)).decode()}
        message["tool_calls"] = [{"id": f"call_{len(talk.parts)}", "type": "function", "function": function}]
        message["tool_plan"] = talk.spoken("reasoning", "text")
    return {
        "id": "c",
        "finish_reason": "TOOL_CALL" if "tool_calls" in message else "COMPLETE",
        "message": message,
    }


def _responses(talk: Talk) -> dict[str, Any]:
    def said() -> dict[str, Any]:
        notes = []
        if talk.has():
            url = f"https://a.example/{talk.mark('citations')}"
            notes = [{"type": "url_citation", "url": url, "title": "A", "start_index": 0, "end_index": 2}]
        return {"type": "output_text", "text": talk.spoken(), "annotations": notes, "logprobs": []}

    def item(kind: str, **fields: Any) -> dict[str, Any]:
        return {"id": f"{kind}_{len(talk.parts)}", "type": kind, "status": "completed", **fields}

    def summary() -> list[dict[str, str]]:
        return [{"type": "summary_text", "text": talk.spoken("reasoning")}]

    output = talk.some(
        lambda: item("message", role="assistant", content=[said()]),
        lambda: item("message", role="assistant", content=[{"type": "refusal", "refusal": talk.spoken()}]),
        lambda: item("reasoning", summary=summary(), encrypted_content=talk.mark("reasoning", "state")),
        lambda: item(
            "reasoning", summary=[], content=[{"type": "reasoning_text", "text": talk.spoken("reasoning")}]
        ),
        lambda: item(
            "function_call",
            call_id=f"call_{len(talk.parts)}",
            name="look",
            arguments=orjson.dumps(_arguments(talk)).decode(),
        ),
        lambda: item(
            "custom_tool_call", call_id=f"call_{len(talk.parts)}", name="patch", input=talk.spoken()
        ),
        lambda: item("web_search_call", action={"type": "search", "query": talk.mark("server tool")}),
        lambda: item("image_generation_call", result=f"{PNG}E{talk.mark('picture')}"),
        lambda: item("x_new_item", value=talk.mark("state")),
    )
    return {
        "id": "r",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "m",
        "output": output,
    }


def _ollama(talk: Talk) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": talk.spoken() if talk.has() else ""}
    if talk.has():
        message["thinking"] = talk.spoken("reasoning")
    if talk.has():
        message["x_new"] = talk.mark("state")
    if talk.has():
        message["tool_calls"] = [{"function": {"name": "look", "arguments": _arguments(talk)}}]
    return {
        "model": "m",
        "created_at": "2026-01-01T00:00:00Z",
        "message": message,
        "done": True,
        "done_reason": "stop",
    }


_BODIES: Final[dict[str, Callable[[Talk], dict[str, Any]]]] = {
    "anthropic": _messages,
    "gemini": _gemini,
    "bedrock": _bedrock,
    "cohere": _cohere,
    "openai_responses": _responses,
    "ollama": _ollama,
}


@st.composite
def conversations(draw: Any, target: str) -> Talk:
    """Conversations that go to *target* next, with its own answers and those of others."""
    talk = Talk(draw)
    talk.user()
    owners = st.one_of(st.just(target), st.sampled_from(PROVIDERS))
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["answer", "answer", "message", "system"]))
        if kind == "answer":
            talk.answer(draw(owners))
        else:
            getattr(talk, kind)()
        if talk.has():
            talk.user()
    return talk


def unnamed(talk: Talk, built: HTTPRequest) -> Iterator[str]:
    """Yield the parts of *talk* that are neither in *built* nor named in its adaptations."""
    body = orjson.dumps(built.body).decode()
    for part in talk.parts:
        option = f"messages[{part.number}]"
        reasons = [one.reason for one in built.adaptations if one.field == option]
        if part.mark not in body and not any(name in reason for name in part.names for reason in reasons):
            yield f"{option}: {part.names}; named: {reasons}; turn: {talk.turns[part.number]}"


@pytest.mark.untraced
@pytest.mark.parametrize("target", PROVIDERS)
def test_each_part_is_sent_or_named(target: str) -> None:
    @settings(max_examples=25, deadline=None, derandomize=True, database=None)
    @given(conversations(target))
    def check(talk: Talk) -> None:
        try:
            built = build_http_request(ChatRequest(talk.turns, model="m"), target, on_unsupported="drop")
        except UnsupportedRequestError as error:
            assert "messages" in error.options, error
            return
        assert [*unnamed(talk, built)] == []
        stored = [
            attrs.evolve(from_json(to_json(turn), ChatResponse), raw_events=())
            if isinstance(turn, ChatResponse)
            else from_json(to_json(turn), ChatMessage)
            for turn in talk.turns
        ]
        again = build_http_request(ChatRequest(stored, model="m"), target, on_unsupported="drop")
        assert (again.body, again.dropped) == (built.body, built.dropped)

    check()
