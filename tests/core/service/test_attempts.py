"""Retries and their delays: decided without a network, and without waiting."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from crosswalk import ChatResponse, ConfigurationError, ErrorInfo, ErrorKind, ResponseValidationError
from crosswalk.service import RetryPolicy, ServerFailures, Timeouts
from crosswalk.service.endpoint import (
    AttemptFailure,
    Cooling,
    RetryState,
    is_unstarted,
    request_id_of,
    retry_after_of,
    should_retry,
)
from tries import tries

BUSY = AttemptFailure(ErrorInfo(ErrorKind.SERVER, "busy", retryable=True))
WRONG = AttemptFailure(ErrorInfo(ErrorKind.INVALID_REQUEST, "wrong"))


def servers(count: int) -> list[ServerFailures]:
    return [ServerFailures() for _ in range(count)]


def state_of(endpoints: int = 1, **policy: Any) -> RetryState:
    chosen = RetryPolicy(**policy)
    return RetryState(range(endpoints), chosen, Cooling(servers(endpoints), chosen, float))


def test_a_wait_is_random_below_a_bound_that_doubles() -> None:
    for _ in range(20):
        state = state_of(attempts=5, initial_seconds=1, max_seconds=3)
        waits = [state.after(BUSY, shown=False) for _ in range(5)]
        assert waits[4] is None
        assert all(0 <= wait <= bound for wait, bound in zip(waits[:4], (1, 2, 3, 3), strict=True))


@pytest.mark.parametrize("initial", [1e-300, 0.5, 1e9])
def test_a_bound_never_overflows(initial: float) -> None:
    """However often it doubles, it is the highest that the policy allows."""
    state = state_of(attempts=10_000, initial_seconds=initial, max_seconds=3)
    waits = [state.after(BUSY, shown=False) for _ in range(9_999)]
    assert max(waits) > 2.5
    assert min(waits) >= 0
    assert max(waits) <= 3
    assert state.after(BUSY, shown=False) is None


def test_what_the_server_asks_for_comes_on_top() -> None:
    asked = AttemptFailure(BUSY.info, retry_after=10)
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
        (AttemptFailure(BUSY.info, cancelled=True), {}, False, False),
    ],
)
def test_whether_it_goes_on(
    failure: AttemptFailure, policy: dict[str, Any], shown: bool, goes_on: bool
) -> None:
    assert (state_of(2, **policy).after(failure, shown=shown) is not None) is goes_on


@pytest.mark.parametrize(
    ("failure", "repeat_started", "is_repeated"),
    [
        (BUSY, True, True),
        (BUSY, False, False),
        (AttemptFailure(BUSY.info, is_unstarted=True), False, True),
        (AttemptFailure(BUSY.info, is_retry_requested=True), False, True),
        (AttemptFailure(WRONG.info, is_unstarted=True), False, False),
    ],
)
def test_what_may_be_paid_twice_is_repeated_if_the_policy_allows_it(
    failure: AttemptFailure, repeat_started: bool, is_repeated: bool
) -> None:
    state = state_of(repeat_started=repeat_started)
    assert (state.after(failure, shown=False) is not None) is is_repeated


@pytest.mark.parametrize(
    ("status", "code", "unstarted"),
    [
        *((status, None, True) for status in (429, 503, 529)),
        *((status, None, False) for status in (200, 408, 500, 502, 504)),
        (None, "connect_error", True),
        (None, "connect_timeout", True),
        (None, "connection_lost", False),
        (None, "transport_timeout", False),
        (None, None, False),
        (200, "connect_error", False),
    ],
)
def test_whether_a_server_can_have_begun(status: int | None, code: str | None, unstarted: bool) -> None:
    assert is_unstarted(status, code) is unstarted


# ------------------------------------------------------------------------------------ endpoints that cool down

RESPONSE = ChatResponse.error("busy", model="m")
DOWN = AttemptFailure(BUSY.info, response=RESPONSE)
LOCKED = AttemptFailure(ErrorInfo(ErrorKind.AUTHENTICATION, "locked", status=401), response=RESPONSE)
UNPAID = AttemptFailure(ErrorInfo(ErrorKind.QUOTA, "no money", status=402), response=RESPONSE)
REFUSED = AttemptFailure(WRONG.info, response=RESPONSE)
LEFT = AttemptFailure(BUSY.info, response=RESPONSE, cancelled=True)


class Service:
    """The calls of a service, and a clock that a test sets."""

    def __init__(self, endpoints: int = 2, **policy: Any) -> None:
        self.now = 0.0
        self._count = endpoints
        self._policy = RetryPolicy(**{"initial_seconds": 0, "max_seconds": 0, "attempts": 2, **policy})
        self._cooling = Cooling(servers(endpoints), self._policy, lambda: self.now)

    def begin(self) -> RetryState:
        return RetryState(range(self._count), self._policy, self._cooling)

    def call(self, *answers: AttemptFailure | None, shown: bool = False) -> list[int]:
        """Which endpoints a call asks. *answers* says for each what it does, ``None`` for a right answer."""
        state, asked = self.begin(), []
        while True:
            asked.append(state.endpoint)
            if state.after(answers[state.endpoint], shown=shown) is None:
                return asked


def test_a_dead_endpoint_costs_one_probe_each_time_it_has_cooled_down() -> None:
    service = Service(cool_down_seconds=30)
    assert service.call(DOWN, None) == [0, 0, 1]
    for service.now in (0, 10, 29.9):
        assert service.call(DOWN, None) == [1]
    service.now = 30
    assert service.call(DOWN, None) == [0, 1]
    assert service.call(DOWN, None) == [1]
    service.now = 59.9
    assert service.call(DOWN, None) == [1]
    service.now = 60
    assert service.call(None, None) == [0]
    assert service.call(DOWN, None) == [0, 0, 1]  # it was well again, and has all its attempts


def test_one_call_at_a_time_tries_an_endpoint_that_cools_down() -> None:
    service = Service(3, cool_down_seconds=30)
    service.call(DOWN, None, None)
    service.now = 30
    trying, other = service.begin(), service.begin()
    assert (trying.endpoint, trying.passed_over) == (0, [])
    assert (other.endpoint, other.passed_over) == (1, [0])
    assert trying.after(None, shown=False) is None
    assert service.begin().endpoint == 0


@pytest.mark.parametrize(
    ("told", "shown", "next_endpoint"),
    [
        (None, False, 0),
        (REFUSED, False, 0),  # whoever refuses a request is there
        (LOCKED, False, 1),  # the key will be wrong again
        (UNPAID, False, 1),  # and nobody has paid meanwhile
        (LEFT, True, 0),
        (LEFT, False, 1),  # nobody waited for what it would have said
        (WRONG, False, 1),  # nothing was sent
    ],
)
def test_what_a_trial_tells(told: AttemptFailure | None, shown: bool, next_endpoint: int) -> None:
    service = Service()
    service.call(DOWN, None)
    service.now = 30
    trial = service.begin()
    assert trial.endpoint == 0
    trial.after(told, shown=shown)
    assert service.begin().endpoint == next_endpoint


def test_single_failures_cool_nothing_down() -> None:
    service = Service(attempts=3)
    for _ in range(5):
        state = service.begin()
        assert state.after(DOWN, shown=False) == 0
        assert state.after(DOWN, shown=False) == 0
        assert state.after(None, shown=False) is None
    assert service.begin().endpoint == 0


def test_failures_of_several_calls_add_up() -> None:
    """As those of streams that break behind what was shown."""
    service = Service()
    assert service.call(DOWN, None, shown=True) == [0]
    assert service.call(DOWN, None, shown=True) == [0]
    assert service.call(DOWN, None, shown=True) == [1]


@pytest.mark.parametrize("failure", [LOCKED, UNPAID])
def test_an_account_that_no_call_can_use_cools_down(failure: AttemptFailure) -> None:
    service = Service(cool_down_seconds=30)
    assert service.call(failure, None) == [0, 1]
    assert service.call(failure, None) == [0, 1]
    assert service.call(failure, None) == [1]
    service.now = 30
    assert service.call(failure, None) == [0, 1]
    assert service.call(failure, None) == [1]


@pytest.mark.parametrize(("seconds", "pause"), [(1e9, 3600), (40, 40), (20.1, 30), (20, None), (None, None)])
def test_a_server_that_asks_for_a_long_pause_cools_down_at_once(
    seconds: float | None, pause: float | None
) -> None:
    service = Service(attempts=3, max_retry_after=20, cool_down_seconds=30)
    asked = service.begin()
    asked.after(AttemptFailure(BUSY.info, seconds, RESPONSE), shown=False)
    assert asked.cool_down == pause
    service.now = (pause or 0) - 0.1
    assert service.begin().endpoint == (0 if pause is None else 1)
    service.now = pause or 0
    assert service.begin().endpoint == 0


def test_where_all_cool_down_all_are_asked() -> None:
    service = Service(3)
    assert service.call(DOWN, DOWN, DOWN) == [0, 0, 1, 1, 2, 2]
    assert service.call(DOWN, DOWN, DOWN) == [0, 1, 2, 2]
    assert service.call(DOWN, None, DOWN) == [0, 1]
    assert service.call(DOWN, None, DOWN) == [1]


def test_what_cools_down_is_asked_when_nobody_else_answers() -> None:
    service = Service()
    service.call(DOWN, None)
    assert service.call(None, DOWN) == [1, 1, 0]


@pytest.mark.parametrize(("endpoints", "policy"), [(1, {}), (2, {"cool_down_seconds": 0})])
def test_nothing_cools_down_alone_or_if_it_is_not_wanted(endpoints: int, policy: dict[str, Any]) -> None:
    service = Service(endpoints, **policy)
    first = service.call(*[DOWN] * endpoints)
    assert service.call(*[DOWN] * endpoints) == first


@settings(max_examples=tries(50))
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
        wait = state.after(AttemptFailure(ErrorInfo(kind, "x", retryable), after), shown=False)
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
        {"cool_down_seconds": -1},
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
    for name in ("connect", "first_token", "between_tokens", "total", "after_end", "call"):
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
        ({"retry-after": "9" * 20}, 1e9),
        ({"retry-after": "9" * 400}, 1e9),
        ({"retry-after": "Fri, 31 Dec 99999 23:59:59 GMT"}, 1e9),
        ({"retry-after": "Wed, 99 Oct 2015 07:28:00 GMT"}, None),
        ({"retry-after": "nan"}, None),
        # Sent twice, as some proxies do.
        ({"retry-after": "1, 1"}, 1),
        ({"retry-after": "3,7"}, 7),
        ({"retry-after": "soon, 4"}, 4),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT, Wed, 21 Oct 2015 07:28:01 GMT"}, 0),
        ({"retry-after": "5, Wed, 21 Oct 2015 07:28:00 GMT"}, 5),
        ({"retry-after-ms": "", "retry-after": ", "}, None),
    ],
    ids=str,
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_of(headers) == seconds


def google_error(*details: Any) -> dict[str, Any]:
    return {"error": {"code": 429, "message": "Wait", "status": "RESOURCE_EXHAUSTED", "details": [*details]}}


RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (google_error({"@type": "x/google.rpc.Help"}, {"@type": RETRY_INFO, "retryDelay": "2s"}), 2),
        ([google_error({"@type": RETRY_INFO, "retryDelay": "0.25s"})], 0.25),
        (google_error({"@type": RETRY_INFO, "retryDelay": "40000s"}), 40_000),
        (google_error({"@type": RETRY_INFO, "retryDelay": "9" * 20 + "s"}), 1e9),
        (google_error({"@type": RETRY_INFO, "retryDelay": "soon"}), None),
        (google_error({"@type": RETRY_INFO}, "x", None), None),
        (google_error({"@type": "my.RetryInfo", "retryDelay": "2s"}), None),
        ({"error": {"details": "none"}}, None),
        ({"error": "x"}, None),
        ([], None),
        ("x", None),
        (None, None),
    ],
    ids=str,
)
def test_a_delay_that_the_error_itself_asks_for(error: Any, seconds: float | None) -> None:
    """Google's servers send no ``Retry-After``, and where there is one, it counts."""
    assert retry_after_of({}, error) == seconds
    assert retry_after_of({"retry-after": "9"}, error) == 9


@pytest.mark.parametrize(
    ("value", "retryable"), [("true", True), (" False ", False), ("", None), ("maybe", None)]
)
def test_a_server_says_whether_to_retry(value: str, retryable: bool | None) -> None:
    """Its ``x-should-retry`` counts more than the kind of its error."""
    for failure in (BUSY, WRONG):
        expected = failure.info.retryable if retryable is None else retryable
        assert should_retry({"x-should-retry": value}, failure.info).retryable is expected
    assert should_retry({}, BUSY.info) is BUSY.info


def test_the_servers_own_id() -> None:
    assert request_id_of({}) is None
    assert request_id_of({"x-request-id": "r" * 500}) == "r" * 200
