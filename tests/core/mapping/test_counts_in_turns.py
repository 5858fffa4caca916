"""Counts that a hook remembers, of several choices that take turns: a later report replaces an earlier one, or nothing is learnt."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, strategies as st

from alike import Stamped, made, same_as_parsed
from crosswalk import ResponseDelta, UsageInfo, registry
from crosswalk.plugin.hookspecs import hookimpl
from crosswalk.plugins import (
    MappingState,
    Provenance,
    ProviderInfo,
    accept_count,
    accept_object,
    take_count,
    take_string,
)
from wires import ndjson, registry_of, sse

GEMINI = registry.mapper("gemini")


def candidate(
    number: int, text: str, prompt: int = 20, completion: int = 1, *, end: str | None = None
) -> bytes:
    """A piece of candidate *number*, with the counts so far."""
    said: dict[str, Any] = {"content": {"parts": [{"text": text}], "role": "model"}, "index": number}
    counts = {"promptTokenCount": prompt, "candidatesTokenCount": completion}
    usage = counts | {"totalTokenCount": prompt + completion}
    finish = {} if end is None else {"finishReason": end}
    return sse({"candidates": [said | finish], "usageMetadata": usage, "responseId": "r"}, done=False)


@pytest.mark.parametrize("candidates", [2, 8])
def test_candidates_that_take_turns_are_learnt_from(parsed: list[bytes], candidates: int) -> None:
    """Each but the first of each is read by its likeness, and the usage is that of the last."""
    pieces = [candidate(n % candidates, f"w{n} ", completion=n) for n in range(1, 101)]
    ends = [candidate(n, "end", completion=200 + n, end="STOP") for n in range(candidates)]
    same_as_parsed([*pieces, *ends], GEMINI)
    parsed.clear()
    _, shown, error, _ = same_as_parsed([*pieces, *ends], GEMINI)
    assert error is None
    assert shown["usage"]["completion_tokens"] == 200 + candidates - 1
    live = len(parsed) - 100 - 3 * candidates  # without those of the way that parses each
    assert live < 4 * 2 * candidates


numbers = st.integers(0, 40)


@given(st.lists(st.tuples(st.integers(0, 2), st.text(max_size=3), numbers, numbers), max_size=30))
def test_candidates_in_any_order(said: list[tuple[int, str, int, int]]) -> None:
    """Also where prompts and completions change from one to the next, and texts are empty."""
    frames = [candidate(number, text, prompt, completion) for number, text, prompt, completion in said]
    same_as_parsed([*frames, *(candidate(n, "", end="STOP") for n in range(3))], GEMINI)


class Adding(Stamped):
    """A server that counts each choice by itself, whose counts a hook adds up: no report replaces another's."""

    leaves_hold = True

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """Promise more than is so."""
        return ProviderInfo(title="Adding", text_leaves=("say",), usage_leaves=("count",))

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
        """The text of a choice."""
        return [ResponseDelta(content_delta=take_string(event, "say"), choice=event["choice"])]

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """All choices together."""
        counts = state.data.setdefault("counts", {})
        counts[take_count(event, "choice")] = accept_count(event, "count") or 0
        return UsageInfo(0, sum(counts.values()))


def test_counts_that_are_added_up_are_not_taken_for_such_as_are_replaced() -> None:
    """Of all that have counted nothing yet that cannot be told by a look at one."""
    adding = registry_of(adding=Adding()).mapper("adding")
    frames = [ndjson({"choice": n % 2, "say": f"w{n} ", "count": 0 if n < 6 else n}) for n in range(20)]
    _, partial, _, _ = same_as_parsed(frames, adding)
    assert partial["usage"]["completion_tokens"] == 18 + 19


class Remembering(Stamped):
    """Remembers of its counts what was sent: the last of the cached ones, and of the prompt's, say, the most."""

    def __init__(self, memory: Any = None, most: Any = None) -> None:
        self.memory = memory
        self.most = most or (lambda _, new: new)

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        """Promise that a report replaces the one before, which of the most is not so."""
        return ProviderInfo(title="Remembering", text_leaves=("say",), usage_leaves=("usage",))

    leaves_hold = True

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
        """The text of a choice; at the end there is none."""
        choice = take_count(event, "choice") or 0
        return (
            [ResponseDelta(content_delta=take_string(event, "say"), choice=choice)] if "say" in event else []
        )

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """The counts; at the end with what was cached before."""
        usage = accept_object(event, "usage")
        if not usage:
            return None
        state.data["memory"] = self.memory
        last, cached = state.data.get("cached"), accept_count(usage, "cached")
        prompt = self.most(state.data.get("most", 0), accept_count(usage, "in") or 0)
        if cached is not None:
            state.data["cached"], state.data["most"] = cached, prompt
            if last is not None and cached > last + 500:
                state.note("usage.cached_tokens", Provenance.DERIVED)
                state.identify(id=f"odd-{cached}")
                state.begin(3)
                state.request_duration = timedelta(seconds=cached)
        return UsageInfo(prompt, accept_count(usage, "out") or 0, last if "end" in event else cached)


REMEMBERING = registry_of(remembering=Remembering()).mapper("remembering")


def test_one_report_that_is_remembered_and_one_that_is_not() -> None:
    """The hook is told of the last of the former, though others came after it."""
    frames = []
    for n in range(24):
        frames.append(ndjson({"choice": 0, "say": f"a{n} ", "usage": {"in": 50, "out": n, "cached": n}}))
        frames.append(ndjson({"choice": 1, "say": f"b{n} ", "usage": {"in": 50, "out": n}}))
    _, partial, _, _ = same_as_parsed(
        [*frames, ndjson({"end": 1, "usage": {"in": 50, "out": 30}})], REMEMBERING
    )
    assert partial["usage"]["cached_tokens"] == 23


@pytest.mark.parametrize("most", [max, lambda old, new: min(old or new, new), lambda old, new: old + new])
def test_counts_that_do_not_replace_those_before_are_not_learnt(most: Any, parsed: list[bytes]) -> None:
    """Though the plugin promises it: the hook is asked with more, and with less."""
    mapper = registry_of(remembering=Remembering(most=most)).mapper("remembering")
    counts = (50, 60, 40, 70, 30, 30)
    frames = [
        ndjson({"say": f"a{n} ", "usage": {"in": count, "out": n, "cached": 7}})
        for n, count in enumerate(counts)
    ]
    same_as_parsed(frames, mapper)
    parsed.clear()
    made(frames, mapper)
    assert len(parsed) >= len(frames)


def test_of_what_was_only_tried_nothing_is_remembered() -> None:
    """Neither counts that were put into an event to see what the hook makes of them, nor what it has noted of these."""
    frames = [ndjson({"say": f"a{n} ", "usage": {"in": 50, "out": n, "cached": 7}}) for n in range(4)]
    _, partial, _, _ = same_as_parsed(
        [*frames, ndjson({"end": 1, "usage": {"in": 50, "out": 9}})], REMEMBERING
    )
    assert partial["usage"]["prompt_tokens"] == 50
    assert partial["id"] == "made"
    assert "request_duration" not in partial["metadata"]
    assert "usage.cached_tokens" not in partial["metadata"]["provenance"]


def test_of_what_cannot_be_copied_nothing_is_learnt(parsed: list[bytes]) -> None:
    """The hook that remembers it cannot be asked apart."""
    frames = [ndjson({"say": f"a{n} ", "usage": {"in": 50, "out": n, "cached": 7}}) for n in range(4)]
    for memory, parses in ((None, 2), (threading.Lock(), 4)):
        mapper = registry_of(remembering=Remembering(memory)).mapper("remembering")
        same_as_parsed(frames, mapper)
        parsed.clear()
        made(frames, mapper)
        assert (len(parsed) == 4) is (parses == 4)
