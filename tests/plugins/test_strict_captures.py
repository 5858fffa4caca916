"""After every recorded answer the conversation goes on: no strict server refuses the request that is built for it."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from crosswalk import ChatMessage, ChatResponse, CrosswalkError, from_json, normalize, to_json
from crosswalk.service import ChatRequest, HTTPRequest, build_http_request
from crosswalk.testing import STRICT_PROVIDERS, Capture, load_captures, strict_rules
from crosswalk.testing.strict.rules import Issued, StrictRequest

CAPTURES = Path(__file__).parents[1] / "captures"
SOURCES = sorted(folder.name for folder in CAPTURES.iterdir() if folder.is_dir())
MODELS = {"bedrock": "anthropic.claude-x", "gemini": "gemini-3-pro"}
"""The models whose rules are strictest."""


@functools.cache
def answers(source: str) -> list[tuple[Capture, ChatResponse]]:
    """The recorded answers of *source* that a conversation can go on after."""
    found = []
    for capture in load_captures(CAPTURES / source):
        if capture.status == 200:
            try:
                found.append((capture, normalize(capture.body, source, unknown="keep")))
            except CrosswalkError:
                continue  # a recording of an answer that cannot be read
    return found


def requests_after(response: ChatResponse, target: str) -> Iterator[tuple[str, HTTPRequest]]:
    """The next requests: the results of its calls, as answered and as stored. And the user, who speaks instead."""
    results = [ChatMessage.tool_result(call.id, "{}", name=call.name) for call in response.tool_calls]
    stored = from_json(to_json(response), ChatResponse)
    more = ChatMessage.user("Go on.")
    for name, turns in (
        ("goes on", (response, *(results or [more]))),
        ("stored", (stored, *(results or [more]))),
        ("later", (response, *results, more)),
    ):
        request = ChatRequest((ChatMessage.user("Hi"), *turns), model=MODELS.get(target, "m"))
        yield name, build_http_request(request, target, on_unsupported="drop")


OTHERS = {
    "anthropic": ("made_nameless", "ollama_think", "sglang_think"),  # thinking without a signature
    "openai_responses": ("xai_x_search",),  # a custom tool that the server runs
}
"""Answers in a provider's dialect that its own server never gives."""


def violations(source: str, target: str) -> Counter[str]:
    """How many requests each rule of *target* refuses after the answers of *source*."""
    found: Counter[str] = Counter()
    rules = strict_rules(target)
    for capture, response in answers(source):
        if source == target and capture.pair in OTHERS.get(source, ()):
            continue
        issued = Issued(rules.framing)
        if source == target:
            issued.add(capture)
        for _, built in requests_after(response, target):
            path = built.path.partition("?")[0]
            assert path.endswith(rules.endpoint)
            broken = rules.violations(StrictRequest(path, built.body, issued))
            found.update({rule.name for rule, _ in broken})
    return found


PAIRS = [(source, target) for source in SOURCES for target in STRICT_PROVIDERS]


@pytest.mark.sweep
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_no_request_after_a_recorded_answer_is_refused(source: str, target: str) -> None:
    assert violations(source, target) == {}
