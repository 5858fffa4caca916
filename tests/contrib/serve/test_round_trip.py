"""A request that is sent in a form is read, in that form, as one that is sent the same. Reading is the inverse of building."""

from __future__ import annotations

import itertools
from typing import Any

import attrs
import pytest
from hypothesis import given, strategies as st

from crosswalk.convert import WireForm
from crosswalk.service import (
    CacheMark,
    ChatRequest,
    HostedTool,
    HTTPRequest,
    NamedTool,
    ReasoningEffort,
    ResponseFormat,
    ToolChoice,
    ToolDefinition,
    build_http_request,
)
from crosswalk.types import AudioPart, CallKind, ChatMessage, FilePart, ImagePart, TextPart, ToolCall
from crosswalk.types.json import dump_json
from crosswalk_serve.requests import read_request

FORMS = (
    WireForm.OPENAI_CHAT,
    WireForm.OPENAI_RESPONSES,
    WireForm.ANTHROPIC,
    WireForm.OLLAMA,
    WireForm.GEMINI,
)
OPENAI = FORMS[:2]
PNG = "iVBORw0KGgo="

texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Z", "C"]), min_size=1, max_size=8)
names = st.text("abcdefghij_", min_size=1, max_size=8)
objects = st.dictionaries(names, st.one_of(st.integers(-9, 9), st.booleans(), texts), max_size=2)
schemas = st.builds(lambda properties: {"type": "object", "properties": properties}, objects)


FORMATS = st.sampled_from(
    [{"type": "text"}, {"type": "grammar", "syntax": "lark", "definition": "start: A"}],
)


def parts(form: WireForm) -> st.SearchStrategy[Any]:
    kinds: list[st.SearchStrategy[Any]] = [
        st.builds(TextPart, texts),
        st.just(ImagePart(data=PNG, media_type=None if form is WireForm.OLLAMA else "image/png")),
    ]
    if form is not WireForm.OLLAMA:
        kinds.append(st.just(ImagePart(url="https://example.org/a.png")))
        kinds.append(
            st.builds(lambda name: FilePart(data="JVBERi0=", media_type="application/pdf", name=name), names)
        )
    if form in OPENAI:
        kinds.append(st.just(ImagePart(url="https://example.org/a.png", detail="high")))
        kinds.append(st.builds(lambda name: FilePart(id="file-1", name=name), st.one_of(st.none(), names)))
    if form is WireForm.OPENAI_CHAT:
        kinds.append(st.just(AudioPart(data="UklGRg==", media_type="audio/wav")))
    return st.lists(st.one_of(kinds), min_size=1, max_size=3)


@st.composite
def conversations(draw: st.DrawFn, form: WireForm) -> list[ChatMessage]:
    found = [ChatMessage.system(text) for text in draw(st.lists(texts, max_size=2))]
    ids = map(str, itertools.count())
    for _ in range(draw(st.integers(1, 3))):
        found.append(ChatMessage.user(draw(st.one_of(texts, parts(form)))))
        wanted = draw(st.lists(st.tuples(names, objects), max_size=2))
        calls = [ToolCall(f"call_{next(ids)}", name, dump_json(said).decode()) for name, said in wanted]
        if calls:
            found.append(ChatMessage.assistant(draw(st.one_of(st.none(), texts)), tool_calls=calls))
            found += [ChatMessage.tool_result(call.id, draw(texts)) for call in calls]
        found.append(ChatMessage.assistant(draw(texts)))
    return [*found, ChatMessage.user(draw(texts))]


@st.composite
def requests(draw: st.DrawFn, form: WireForm) -> ChatRequest:
    def maybe(strategy: st.SearchStrategy[Any]) -> Any:
        return draw(st.one_of(st.none(), strategy))

    messages = draw(conversations(form))
    tools = [
        ToolDefinition(name, maybe(texts), draw(schemas), maybe(st.booleans()))
        for name in draw(st.lists(names, unique=True, max_size=2))
    ]
    if form in OPENAI and draw(st.booleans()):
        tools.append(
            ToolDefinition("custom", maybe(texts), kind=CallKind.CUSTOM, input_format=maybe(FORMATS))
        )
    choices: list[Any] = [*ToolChoice, *(NamedTool(tool.name) for tool in tools)]
    hosted = [HostedTool("web_search", allowed_domains=["a.org"])] if draw(st.booleans()) else []
    return ChatRequest(
        messages,
        model="m",
        temperature=maybe(st.floats(0, 1)),
        top_p=maybe(st.floats(0.25, 1)),
        top_k=maybe(st.integers(1, 99)),
        max_tokens=maybe(st.integers(1, 99)),
        stop=draw(st.lists(texts, max_size=2)),
        seed=maybe(st.integers(0, 99)),
        tools=tools,
        hosted_tools=hosted,
        tool_choice=maybe(st.sampled_from(choices)) if tools else None,
        parallel_tool_calls=maybe(st.booleans()),
        response_format=maybe(
            st.one_of(st.just(ResponseFormat()), st.builds(ResponseFormat, schemas, names, st.booleans()))
        ),
        reasoning_effort=maybe(st.sampled_from(ReasoningEffort)),
        cache_marks=[CacheMark(after) for after in ("tools", "system", -1) if draw(st.booleans())],
        stream=draw(st.booleans()),
    )


def sent(request: ChatRequest, form: WireForm) -> HTTPRequest:
    return build_http_request(request, form.provider, on_unsupported="drop")


@pytest.mark.parametrize("form", FORMS)
@given(data=st.data())
def test_what_is_sent_is_read_as_what_is_sent_again(form: WireForm, data: st.DataObject) -> None:
    request = data.draw(requests(form))
    built = sent(request, form)
    target = {"model": "m", "stream": request.stream} if form is WireForm.GEMINI else None
    incoming = read_request(form, dump_json(built.body), target=target)
    assert incoming.unread == {}
    asked = incoming.request.asked
    again = sent(asked, form)
    assert again.body == built.body
    assert again.dropped == ()
    assert sent(incoming.request, form).body == built.body
    same = ("model", "stream", "tools", "max_tokens", "temperature", "top_p")
    dropped = {each.field for each in built.dropped}
    for name in same:
        value = getattr(request, name)
        if value is not None and name not in dropped:
            is_fitted = form is not WireForm.OPENAI_CHAT or any(tool.strict for tool in request.tools)
            assert getattr(asked, name) == value or (name == "tools" and is_fitted)


def test_an_answer_goes_back_to_its_server_as_it_was() -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "EqQB"}
    blocks = [thinking, {"type": "text", "text": "yes"}]
    said = {
        "model": "m",
        "max_tokens": 9,
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "?"}]},
            {"role": "assistant", "content": blocks},
        ],
    }
    incoming = read_request(WireForm.ANTHROPIC, dump_json(said))
    assert sent(attrs.evolve(incoming.request.asked), WireForm.ANTHROPIC).body == said
