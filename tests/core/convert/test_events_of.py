"""A complete answer as the events of a stream that says all of it."""

from __future__ import annotations

import pytest

from crosswalk import ChatResponse, normalize, normalize_stream
from crosswalk.convert import WireForm, events_of
from crosswalk.testing import load_capture
from crosswalk.types import dump_json
from pages import ROOT

CAPTURES = [
    ("openai_responses", "ollama_tool_required"),
    ("openai_responses", "sglang_think"),
    ("anthropic", "made_thinking_tools"),
    ("deepseek", "made_call"),
]
FORMS = [
    WireForm.OPENAI_CHAT,
    WireForm.OPENAI_RESPONSES,
    WireForm.ANTHROPIC,
    WireForm.GEMINI,
    WireForm.OLLAMA,
]


def answer_of(provider: str, case: str) -> ChatResponse:
    (file, *_) = sorted((ROOT / "tests/captures" / provider).glob(f"{case}*.response.json"))
    return normalize(load_capture(file).body, provider, keep_raw=False)


def said(response: ChatResponse) -> tuple[str, list[tuple[str, object]]]:
    return response.text, [(call.name, call.parsed()) for call in response.tool_calls]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("provider", "case"), CAPTURES)
def test_the_events_say_the_whole_answer(form: WireForm, provider: str, case: str) -> None:
    response = answer_of(provider, case)
    lines = [dump_json(event) for event in events_of(response, form)]
    is_lines = form is WireForm.OLLAMA
    frames = [line + b"\n" if is_lines else b"data: " + line + b"\n\n" for line in lines]
    end = [b"data: [DONE]\n\n"] if form is WireForm.OPENAI_CHAT else []
    stream = normalize_stream([*frames, *end], form.provider)
    list(stream)
    assert said(stream.response) == said(response)
    assert stream.response.finish_reason is response.finish_reason
    assert stream.response.usage.total_tokens == response.usage.total_tokens
