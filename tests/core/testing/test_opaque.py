"""What is sent arrives: spaces of tokenizers, the end of a signature, a duration, and each log probability."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from crosswalk import Registry
from crosswalk.plugins import (
    FinishReason,
    MappingState,
    Recognition,
    ResponseDelta,
    Segment,
    SegmentType,
    TokenLogprob,
    hookimpl,
)
from crosswalk.testing import Capture, check_capture

EVENTS: list[dict[str, Any]] = [
    {"brook": 1, "text": "The brook", "token": "The brook", "lp": -0.25},
    {"brook": 1, "text": "The brook runs fast", "token": "runs fast", "lp": -0.5},
    {"brook": 1, "thought": "It is old.", "signature": "c2lnbmVk=="},
    {"brook": 1, "why": "done", "took": 0.5},
]


class Brook:
    """A stream in which the text grows, and each piece of it has a log probability."""

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        return Recognition.CERTAIN if isinstance(event, dict) and "brook" in event else Recognition.NO

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        whole = event.get("text")
        if whole is not None:
            before = state.data.get("text", "")
            state.data["text"] = whole
            piece = self.rest(whole, before)
            yield ResponseDelta(content_delta=piece, logprobs=self.logprobs(event, piece))
        if "thought" in event:
            metadata = {"signature": self.signature(event.get("signature", ""))}
            yield ResponseDelta(segment=Segment(SegmentType.REASONING, event["thought"], metadata))
        if "why" in event:
            state.request_duration = self.duration(event["took"])
            yield ResponseDelta(raw_finish_reason=event["why"])

    def rest(self, whole: str, before: str) -> str:
        return whole.removeprefix(before)

    def signature(self, text: str) -> str:
        return text

    def duration(self, seconds: float) -> timedelta | None:
        return timedelta(seconds=seconds)

    def logprobs(self, event: dict[str, Any], piece: str) -> tuple[TokenLogprob, ...] | None:
        return (TokenLogprob(event["token"], event["lp"]),) if "lp" in event else None

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        return {}

    @hookimpl
    def map_finish_reason(self, reason: str) -> FinishReason | None:
        return FinishReason.STOP if reason == "done" else None


class CountsBytes(Brook):
    """Takes the number of bytes of the text so far for its number of letters."""

    def rest(self, whole: str, before: str) -> str:
        return whole[len(before.encode()) :]


class TakesSignsForSpaces(Brook):
    def rest(self, whole: str, before: str) -> str:
        return super().rest(whole, before).replace("\u2581", " ")


class PadsNothing(Brook):
    def signature(self, text: str) -> str:
        return text.rstrip("=")


class ForgetsCertainTokens(Brook):
    def logprobs(self, event: dict[str, Any], piece: str) -> tuple[TokenLogprob, ...] | None:
        return (TokenLogprob(event["token"], event["lp"] or None),) if "lp" in event else None


class NeedsText(Brook):
    def logprobs(self, event: dict[str, Any], piece: str) -> tuple[TokenLogprob, ...] | None:
        return super().logprobs(event, piece) if event["text"] else None


class TakesNoTimeForNone(Brook):
    def duration(self, seconds: float) -> timedelta | None:
        return super().duration(seconds) if seconds else None


def found(plugin: Brook) -> set[str]:
    registry = Registry(installed=[], environ={})
    registry.register(plugin, "brook")
    body = b"".join(b"data: %b\n\n" % orjson.dumps(event) for event in EVENTS)
    capture = Capture("run", Path("run.response.sse"), body, stream=True)
    checks = ["text as it was sent", "digits kept", "times kept"]
    problems = check_capture(registry.mapper("brook"), capture, sample=None, checks=checks)
    return {problem.message for problem in problems}


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (TakesSignsForSpaces, "a text with invisible characters in its place is not passed on unchanged"),
        (PadsNothing, "a text that ends with == in its place is not passed on unchanged"),
        (ForgetsCertainTokens, "0.0 in its place is not read as a log probability"),
        (NeedsText, "with an empty text in its place, log probabilities are gone"),
        (TakesNoTimeForNone, "0 in its place is read as no duration"),
    ],
)
def test_what_is_sent_arrives(mistake: type[Brook], message: str) -> None:
    assert message not in found(Brook())
    assert message in found(mistake())
