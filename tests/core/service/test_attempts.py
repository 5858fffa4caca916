"""What is tried again, and after how long: decided without a network, and without waiting."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from crosswalk import ConfigurationError, ErrorInfo, ErrorKind, ResponseValidationError
from crosswalk.service import RetryPolicy, Timeouts
from crosswalk.service.attempts import Failure, RetryState
from crosswalk.service.failures import request_id_of, retry_after_of

BUSY = Failure(ErrorInfo(ErrorKind.SERVER, "busy", retryable=True))
WRONG = Failure(ErrorInfo(ErrorKind.INVALID_REQUEST, "wrong"))


def state_of(endpoints: int = 1, **policy: Any) -> RetryState:
    return RetryState(endpoints, RetryPolicy(**policy))


def test_a_wait_is_random_below_a_bound_that_doubles() -> None:
    for _ in range(20):
        state = state_of(attempts=5, initial_seconds=1, max_seconds=3)
        waits = [state.after(BUSY, shown=False) for _ in range(5)]
        assert waits[4] is None
        assert all(0 <= wait <= bound for wait, bound in zip(waits[:4], (1, 2, 3, 3), strict=True))


@pytest.mark.parametrize("initial", [1e-300, 0.5, 1e300])
def test_a_bound_never_overflows(initial: float) -> None:
    """However often it doubles, it is the highest that the policy allows."""
    state = state_of(attempts=10_000, initial_seconds=initial, max_seconds=3)
    waits = [state.after(BUSY, shown=False) for _ in range(9_999)]
    assert max(waits) > 2.5
    assert min(waits) >= 0
    assert max(waits) <= 3
    assert state.after(BUSY, shown=False) is None


def test_what_the_server_asks_for_comes_on_top() -> None:
    asked = Failure(BUSY.info, retry_after=10)
    assert 10 <= state_of().after(asked, shown=False) <= 10.5


def test_an_endpoint_after_the_other() -> None:
    state = state_of(3, attempts=2, initial_seconds=0, max_seconds=0)
    seen = [(state.endpoint, state.attempt)]
    while state.after(BUSY, shown=False) is not None:
        seen.append((state.endpoint, state.attempt))
    assert seen == [(0, 1), (0, 2), (1, 1), (1, 2), (2, 1), (2, 2)]


@pytest.mark.parametrize(
    ("failure", "policy", "shown", "goes_on"),
    [
        (WRONG, {}, False, True),
        (WRONG, {"failover_kinds": ()}, False, False),
        (BUSY, {"attempts": 1}, False, True),
        (BUSY, {}, True, False),
        (BUSY, {"after_first_token": True}, True, True),
        (Failure(BUSY.info, cancelled=True), {}, False, False),
    ],
)
def test_whether_it_goes_on(failure: Failure, policy: dict[str, Any], shown: bool, goes_on: bool) -> None:
    assert (state_of(2, **policy).after(failure, shown=shown) is not None) is goes_on


@settings(max_examples=50)
@given(
    st.integers(1, 4),
    st.integers(1, 4),
    st.lists(
        st.tuples(st.sampled_from(ErrorKind), st.booleans(), st.one_of(st.none(), st.floats(0, 1e9))),
        min_size=40,
    ),
)
def test_a_call_always_ends(endpoints: int, attempts: int, failures: list[Any]) -> None:
    """Whatever goes wrong, no endpoint is asked more often than the policy says."""
    state = state_of(endpoints, attempts=attempts)
    asked = 1
    for kind, retryable, after in failures:
        wait = state.after(Failure(ErrorInfo(kind, "x", retryable), after), shown=False)
        if wait is None:
            break
        assert 0 <= wait <= 68
        asked += 1
    assert asked <= endpoints * attempts


@pytest.mark.parametrize(
    "wrong",
    [
        {"attempts": 0},
        {"attempts": True},
        {"initial_seconds": -1},
        {"max_seconds": float("inf")},
        {"max_retry_after": None},
    ],
    ids=str,
)
def test_a_policy_within_its_bounds(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        RetryPolicy(**wrong)


def test_a_policy_knows_its_kinds() -> None:
    assert RetryPolicy(kinds=["timeout"]).kinds == {ErrorKind.TIMEOUT}
    with pytest.raises(ResponseValidationError):
        RetryPolicy(kinds=["bad luck"])


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf"), "1", True])
def test_timeouts_within_their_bounds(wrong: Any) -> None:
    for name in ("connect", "first_token", "between_tokens", "total"):
        with pytest.raises(ConfigurationError, match=name):
            Timeouts(**{name: wrong})


def test_retry_after_as_a_date() -> None:
    at = datetime.now(UTC) + timedelta(seconds=100)
    assert 90 < retry_after_of({"retry-after": format_datetime(at, usegmt=True)}) <= 100
    assert retry_after_of({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "²"}, None),
        ({"retry-after": "."}, None),
        ({"retry-after": "9" * 400}, None),
        ({"retry-after": "Wed, 99 Oct 2015 07:28:00 GMT"}, None),
        ({"retry-after": "nan"}, None),
    ],
    ids=str,
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_of(headers) == seconds


def test_the_servers_own_id() -> None:
    assert request_id_of({}) is None
    assert request_id_of({"x-request-id": "r" * 500}) == "r" * 200
