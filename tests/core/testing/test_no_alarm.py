"""What the kit does not take for a mistake: a word that waits for the end, the number of a choice, another line end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crosswalk import Registry, registry
from crosswalk.plugins import (
    FinishReason,
    MappingState,
    NDJSONDecoder,
    ProviderInfo,
    Recognition,
    ResponseDelta,
    UnknownFinishReasonError,
    hookimpl,
    require_object,
    take_count,
    take_string,
)
from crosswalk.testing import Capture, check_capture, check_pair, load_capture

BODY = b"""{"weir": 0, "text": "Low "}
{"weir": 1, "text": "High "}
{"weir": 0, "text": "tide."}
{"weir": 1, "text": "water."}
{"weir": 0, "code": 1}
{"weir": 1, "code": 1}
{"close": true}
"""


class Weir:
    """Lines of two choices. The code of each is told with the last line."""

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(title="Weir", framing=lambda start, limits, kind: NDJSONDecoder(limits))

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        return Recognition.CERTAIN if isinstance(event, dict) and "weir" in event else Recognition.NO

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        event = require_object(event)
        choice = take_count(event, "weir") or 0
        codes = state.data.setdefault("codes", {})
        if (code := take_count(event, "code")) is not None:
            codes[choice] = str(code)
        if text := take_string(event, "text"):
            yield ResponseDelta(content_delta=text, choice=choice)
        if "close" in event:
            for number, word in codes.items():
                yield ResponseDelta(raw_finish_reason=word, choice=number)

    @hookimpl
    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason:
        if reason != "1":
            raise UnknownFinishReasonError(reason)
        return FinishReason.STOP


def found(body: bytes, *, write: Any = lambda data, name: data + b"\n", **facts: Any) -> list[str]:
    registry = Registry(installed=[], environ={})
    registry.register(Weir(), "weir")
    capture = Capture("tide", Path("tide.response.ndjson"), body, stream=True, **facts)
    checks = ["nothing lost", "own framing is exact", "unknown words raise"]
    problems = check_capture(
        registry.mapper("weir"), capture, sample=None, write=write, others=[capture], checks=checks
    )
    return [problem.line for problem in problems]


def test_the_number_of_a_choice_and_a_line_end_are_no_finish_word_and_no_byte_of_a_frame() -> None:
    assert found(BODY) == []


def test_a_word_that_waits_for_the_end_of_a_cut_stream_is_not_lost() -> None:
    cut = b"".join(BODY.splitlines(keepends=True)[:5])
    assert found(cut, complete=False, says={"raises": "IncompleteStreamError"}) == []


@pytest.mark.parametrize(
    ("provider", "name", "check"),
    [
        ("gemini", "tools.response.json", "arguments told apart"),
        ("vllm", "reasoning_chat_think.response.json", "kinds are told apart"),
    ],
)
def test_what_a_right_plugin_refuses_or_tells_apart_is_no_mistake(
    provider: str, name: str, check: str
) -> None:
    recorded = load_capture(Path(__file__).parents[2] / "captures" / provider / name)
    assert check_capture(registry.mapper(provider), recorded, sample=None, checks=[check]) == []


def test_a_count_that_one_form_lacks_is_no_difference() -> None:
    answer = b'{"id":"a","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant",'
    answer += b'"content":"Hi"},"finish_reason":"stop"}],"usage":{"completion_tokens":1%b}}'
    one, other = (
        Capture(name, Path(name), answer % more)
        for name, more in (("whole", b',"prompt_tokens":3'), ("lacking", b""))
    )
    assert check_pair(registry.mapper("openai"), one, other) == []
