"""Why an answer is not whole: one property, which everybody asks."""

from __future__ import annotations

import pytest

from crosswalk import FinishReason, StreamEvent, normalize
from crosswalk.types import IncompleteReason
from incomplete_answers import CASES


@pytest.mark.parametrize(("provider", "payload", "finish", "reason"), CASES)
def test_an_answer_says_why_it_is_not_whole(
    provider: str, payload: bytes, finish: str, reason: str | None
) -> None:
    """The property, ``is_complete`` and the last event of a stream agree."""
    response = normalize(payload, provider, unknown="keep")
    assert (response.finish_reason, response.incomplete_reason) == (finish, reason)
    assert response.is_complete is (finish == FinishReason.STOP and reason is None)
    kind = {None: "response.completed", IncompleteReason.ERROR: "response.error"}
    assert StreamEvent.terminal(response).event_type == kind.get(
        response.incomplete_reason, "response.incomplete"
    )


def test_the_same_answer_again_is_read_the_same() -> None:
    """Also after answers that are whole: a contradiction is found in each."""
    for _ in range(2):
        for provider, payload, finish, reason in CASES:
            response = normalize(payload, provider, unknown="keep")
            assert (response.finish_reason, response.incomplete_reason) == (finish, reason)
