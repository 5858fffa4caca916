"""ResponseMetadata and ProviderAttempt."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from crosswalk.errors import ResponseValidationError
from crosswalk.types import FrozenObject, ProviderAttempt, ResponseMetadata


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"provider_id": ""}, "ACODE-RSP-005"),
        ({"model_id": ""}, "ACODE-RSP-006"),
        ({"request_duration": timedelta(microseconds=-1)}, "ACODE-RSP-007"),
        ({"time_to_first_token": timedelta(microseconds=-1)}, None),
        ({"request_duration": 2.5}, None),
        ({"request_duration": None}, None),
        ({"time_to_first_token": 0.1}, None),
    ],
)
def test_what_metadata_refuses(fields: dict[str, Any], code: str | None) -> None:
    """FR-051 to FR-053, NFR-016."""
    with pytest.raises(ResponseValidationError) as caught:
        ResponseMetadata(**{"provider_id": "p", "model_id": "m", **fields})
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("seconds", "tokens", "rate"), [(2, 10, 5.0), (0.5, 1, 2.0), (2, 0, 0.0), (0, 10, None), (2, None, None)]
)
def test_tokens_per_second(seconds: float, tokens: int | None, rate: float | None) -> None:
    """FR-047: completion tokens by duration. Unknown where either is, never infinite."""
    metadata = ResponseMetadata("p", "m", timedelta(seconds=seconds), completion_tokens=tokens)
    assert metadata.tokens_per_second == rate


def test_completion_tokens_can_be_filled_in() -> None:
    """A response does: everything else stays, and what is equal stays equal."""
    metadata = ResponseMetadata(
        "p",
        "m",
        timedelta(1),
        timedelta(0),
        FrozenObject({"a": 1}),
        {"id": "absent"},
    )
    counted = metadata.with_completion_tokens(86400)
    assert counted.tokens_per_second == 1.0
    assert counted == metadata
    assert hash(counted) == hash(metadata)


def test_the_error_of_an_attempt_is_clean() -> None:
    """Design, section 7: nothing of a credential in any error."""
    attempt = ProviderAttempt("vllm", "m", outcome="error", error="401 for Bearer abc")
    assert attempt.error == "401 for Bearer <secret>"
