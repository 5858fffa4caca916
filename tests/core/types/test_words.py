"""The closed sets of words, and what reads them."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import pytest

from crosswalk.errors import ErrorKind, ResponseValidationError
from crosswalk.types import (
    AttemptOutcome,
    ChatMessage,
    ContentFilterCategory,
    ContentFilterResult,
    ContentFilterSeverity,
    FinishReason,
    Provenance,
    ProviderAttempt,
    ResponseDelta,
    ResponseMetadata,
    Role,
    Segment,
    SegmentType,
    StreamEvent,
    StreamEventType,
)

WORDS: dict[type[StrEnum], str] = {
    FinishReason: "stop length tool_calls content_filter error cancelled",
    ContentFilterCategory: "sexual violence hate self_harm",
    ContentFilterSeverity: "safe low medium high",
    Role: "system user assistant tool",
    SegmentType: "text reasoning tool_call citation refusal safety error media",
    Provenance: "synthetic derived absent unmapped mistyped cut",
    AttemptOutcome: "success error cancelled",
    StreamEventType: "response.created response.in_progress response.retried response.output_text.delta"
    " response.reasoning.delta response.refusal.delta response.function_call_arguments.delta"
    " response.output_text.annotation.added response.safety.added response.media.added response.error.added"
    " response.completed response.incomplete response.error",
    ErrorKind: "rate_limit quota context_overflow model_unavailable authentication permission invalid_request"
    " content_filter tool_call_validation timeout server unknown",
}


@pytest.mark.parametrize("kind", WORDS)
def test_a_closed_set_has_exactly_these_words(kind: type[StrEnum]) -> None:
    """FR-019 to FR-025, FR-090, FR-091, seed 003: the words, in lowercase snake_case (FR-026, FR-106)."""
    assert [member.value for member in kind] == WORDS[kind].split()
    assert all(str(member) == member.value == member.value.lower() for member in kind)


@pytest.mark.parametrize("reason", FinishReason)
@pytest.mark.parametrize("change", [str.lower, str.upper, str.title, str.swapcase])
def test_finish_reasons_are_read_in_any_case(reason: FinishReason, change: Callable[[str], str]) -> None:
    """FR-027."""
    assert FinishReason(change(reason.value)) is reason


@pytest.mark.parametrize("word", ["", "stopped", " stop", None, 1, [], {}])
def test_no_other_finish_reason_is_read(word: Any) -> None:
    """FR-018: any other word is not a finish reason."""
    with pytest.raises(ValueError, match="is not a valid FinishReason"):
        FinishReason(word)


REFUSING: list[tuple[Callable[[Any], object], str, str | None]] = [
    (lambda w: ResponseDelta(0, finish_reason=w), "Invalid finish reason value", "ACODE-RSP-003"),
    (lambda w: ContentFilterResult(w, "low", True), "unknown content filter category", None),
    (lambda w: ContentFilterResult("hate", w, True), "unknown content filter severity", None),
    (lambda w: ChatMessage(w, "hi"), "unknown role", None),
    (lambda w: Segment(w), "unknown segment type", None),
    (lambda w: ProviderAttempt("p", "m", outcome=w), "unknown outcome of an attempt", None),
    (lambda w: ResponseMetadata("p", "m", provenance={"id": w}), "unknown provenance", None),
    (lambda w: StreamEvent(w), "unknown type of stream event", None),
]


@pytest.mark.parametrize(("make", "wrong", "code"), REFUSING)
@pytest.mark.parametrize(
    ("word", "shown"), [("odd", "'odd'"), (5, "number"), ([], "array"), ("x" * 99, "x" * 40)]
)
def test_an_unknown_word_is_refused_by_name(
    make: Callable[[Any], object], wrong: str, code: str | None, word: Any, shown: str
) -> None:
    """NFR-016: with our error, which shows the word and no more than 40 characters of it."""
    with pytest.raises(ResponseValidationError, match=wrong) as caught:
        make(word)
    assert caught.value.code == code
    assert shown in str(caught.value)
    assert "x" * 41 not in str(caught.value)


def test_words_become_members() -> None:
    """With the word you need not import the enum."""
    assert ChatMessage("user", "hi").role is Role.USER  # type: ignore[arg-type]
    assert Segment("text").type is SegmentType.TEXT  # type: ignore[arg-type]
    assert ResponseDelta(0, finish_reason="STOP").finish_reason is FinishReason.STOP  # type: ignore[arg-type]
    verdict = ContentFilterResult("self_harm", "high", True)
    assert (verdict.category, verdict.severity) == (
        ContentFilterCategory.SELF_HARM,
        ContentFilterSeverity.HIGH,
    )
    assert ProviderAttempt("p", "m", outcome="cancelled").outcome is AttemptOutcome.CANCELLED
    metadata = ResponseMetadata("p", "m", provenance={"id": "synthetic"})
    assert metadata.provenance["id"] is Provenance.SYNTHETIC
    assert StreamEvent("response.created").event_type is StreamEventType.CREATED
