"""UsageInfo: counts, their rules and their sums."""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import Any

import attrs
import pytest
from hypothesis import given

from crosswalk.codec import from_json, to_json
from crosswalk.errors import ResponseValidationError
from crosswalk.types import Cost, Provenance, UsageDetails, UsageInfo
from crosswalk.types.usage import later_usage, usage_of
from strategies import usage_details, usage_infos

FIELDS = ["prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens", "cache_write_tokens"]


def test_total_is_prompt_and_completion() -> None:
    """FR-031 to FR-033: the total is computed from the two counts, which include the others."""
    usage = UsageInfo(100, 50, 80, 20, 10)
    assert usage.total_tokens == 150
    assert (usage.cached_tokens, usage.reasoning_tokens, usage.cache_write_tokens) == (80, 20, 10)


@pytest.mark.parametrize("name", FIELDS)
def test_a_negative_count_is_refused(name: str) -> None:
    """FR-036: ``ACODE-RSP-004``, naming the field."""
    with pytest.raises(ResponseValidationError, match=rf"negative: {name}$") as caught:
        UsageInfo(**{"prompt_tokens": 0, "completion_tokens": 0, name: -1})
    assert caught.value.code == "ACODE-RSP-004"


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize(
    ("value", "word"), [(1.0, "number"), ("1", "string"), (True, "boolean"), ([], "array")]
)
def test_a_count_is_an_integer(name: str, value: Any, word: str) -> None:
    """NFR-016: no float, no text, no bool. The error names the field that is wrong and no other."""
    with pytest.raises(ResponseValidationError, match=rf"^{name} must be an integer, not {word}$") as caught:
        UsageInfo(**{"prompt_tokens": 0, "completion_tokens": 0, name: value})
    assert caught.value.code is None


def test_the_form_of_openai() -> None:
    """FR-039: OpenAI's nested form. Details that are not known are left out."""
    assert UsageInfo(10, 5).to_openai() == {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 15,
    }
    assert UsageInfo(10, 5, 4, 3, 2).to_openai() == {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }
    assert UsageInfo(1, 1, cached_tokens=0).to_openai()["prompt_tokens_details"] == {"cached_tokens": 0}


def test_the_text_is_the_one_of_the_seed() -> None:
    """FR-041."""
    assert str(UsageInfo(10, 5, 3)) == "Prompt: 10, Completion: 5, Total: 15"


def test_the_words_of_opentelemetry_and_genai_prices() -> None:
    """Design, section 4: read-only aliases."""
    usage = UsageInfo(10, 5, 3)
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) == (10, 5, 3)


@pytest.mark.parametrize(
    ("left", "right", "total"), [(None, None, None), (1, None, 1), (None, 2, 2), (1, 2, 3), (0, None, 0)]
)
def test_optional_counts_add_up(left: int | None, right: int | None, total: int | None) -> None:
    """FR-040: an optional count is ``None`` only if both sides' are."""
    both = UsageInfo(1, 2, left, left, left) + UsageInfo(3, 4, right, right, right)
    assert both == UsageInfo(4, 6, total, total, total)


@given(usage_infos, usage_infos, usage_infos)
def test_usage_is_a_commutative_monoid(a: UsageInfo, b: UsageInfo, c: UsageInfo) -> None:
    """FR-040: grouping and order do not matter, and ``EMPTY`` is the identity."""
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a == a.add(b)
    assert a + UsageInfo.EMPTY == a == UsageInfo.EMPTY + a
    assert sum([a, b, c], UsageInfo.EMPTY) == a + b + c
    assert (a + b).total_tokens == a.total_tokens + b.total_tokens


DETAILS = [field.name for field in attrs.fields(UsageDetails)]


@pytest.mark.parametrize("name", DETAILS)
def test_a_detail_is_a_count_or_unknown(name: str) -> None:
    assert getattr(UsageInfo(1, 2).details, name) is None
    assert getattr(UsageDetails(**{name: 0}), name) == 0
    with pytest.raises(ResponseValidationError, match=rf"negative: {name}$") as caught:
        UsageDetails(**{name: -1})
    assert caught.value.code == "ACODE-RSP-004"
    wrong: Any = "1"
    with pytest.raises(ResponseValidationError, match=rf"^{name} must be an integer, not string$"):
        UsageDetails(**{name: wrong})
    with pytest.raises(ResponseValidationError, match="63 bits"):
        UsageDetails(**{name: 2**63})
    UsageDetails(**{name: 2**63 - 1})


@given(usage_details, usage_details, usage_details)
def test_details_are_a_commutative_monoid(a: UsageDetails, b: UsageDetails, c: UsageDetails) -> None:
    """A sum is unknown only where both sides are."""
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert a + UsageDetails.EMPTY == a == UsageDetails.EMPTY + a
    for name in DETAILS:
        known = [count for each in (a, b) if (count := getattr(each, name)) is not None]
        assert getattr(a + b, name) == (sum(known) if known else None)


def test_details_add_to_details_only() -> None:
    with pytest.raises(TypeError):
        UsageDetails(1) + 3


def test_the_details_of_usage_are_details() -> None:
    wrong: Any = {"audio_input_tokens": 1}
    with pytest.raises(
        ResponseValidationError, match=r"^UsageInfo\.details must be a UsageDetails, not object$"
    ):
        UsageInfo(1, 1, details=wrong)


def test_unknown_details_are_not_written() -> None:
    """A document of an earlier version is read and written byte for byte."""
    old = b'{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}'
    assert to_json(from_json(old, UsageInfo)) == old
    heard = UsageInfo(9, 2, details=UsageDetails(audio_input_tokens=7, web_search_requests=0))
    assert to_json(heard) == (
        b'{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,'
        b'"details":{"audio_input_tokens":7,"web_search_requests":0}}'
    )


def test_a_later_report_takes_back_no_detail() -> None:
    first = UsageInfo(9, 0, details=UsageDetails(text_input_tokens=9))
    last = UsageInfo(9, 5, details=UsageDetails(text_output_tokens=5))
    assert later_usage(first, last) == UsageInfo(9, 5, details=UsageDetails(9, text_output_tokens=5))
    assert later_usage(first, UsageInfo(9, 5)) == UsageInfo(9, 5, details=UsageDetails(9))
    assert later_usage(UsageInfo(9, 0), last) is last


def test_details_in_the_form_of_openai() -> None:
    details = UsageDetails(audio_input_tokens=4, image_output_tokens=0, web_search_requests=2)
    assert UsageInfo(10, 5, 3, details=details).to_openai() == {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 3, "audio_tokens": 4},
        "completion_tokens_details": {"image_tokens": 0},
    }


def test_usage_adds_to_usage_only() -> None:
    """A number of tokens of what kind? Python's own error says that this does not add."""
    with pytest.raises(TypeError):
        UsageInfo(1, 2) + 3


def cost(amount: str, *more: Any) -> Cost:
    return Cost(Decimal(amount), *more)


def test_costs_add_up_to_the_last_digit() -> None:
    """Whatever precision the application computes with. One that was worked out makes the sum one."""
    small, large = cost("0.000000000000000000000000000001"), cost("999999999")
    with localcontext(prec=3):
        both = UsageInfo(1, 1, cost=small) + UsageInfo(1, 1, cost=large)
    assert str(both.cost) == "999999999.000000000000000000000000000001 USD"
    estimated = cost("1", "USD", Provenance.DERIVED)
    assert (UsageInfo(1, 1, cost=estimated) + UsageInfo(1, 1, cost=large)).cost == cost(
        "1000000000", "USD", Provenance.DERIVED
    )


def test_costs_of_two_currencies_do_not_add_up() -> None:
    with pytest.raises(ResponseValidationError, match="^costs in USD and EUR have no sum$"):
        UsageInfo(1, 1, cost=cost("1")) + UsageInfo(1, 1, cost=cost("1", "EUR"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"amount": 0.1},
        {"amount": Decimal("-1")},
        {"amount": Decimal("NaN")},
        {"amount": Decimal("Infinity")},
        {"amount": Decimal("1e13")},
        {"amount": Decimal("1e-31")},
        {"currency": "usd"},
        {"currency": "credits"},
        {"currency": None},
        {"provenance": "derived"},
    ],
)
def test_a_cost_is_an_amount_of_money(wrong: dict[str, Any]) -> None:
    with pytest.raises(ResponseValidationError, match=rf"^Cost\.{next(iter(wrong))} must be "):
        Cost(**{"amount": Decimal(1), **wrong})


def test_the_cost_of_usage_is_a_cost() -> None:
    with pytest.raises(ResponseValidationError, match=r"^UsageInfo\.cost must be a Cost, not number$"):
        UsageInfo(1, 1, cost=0.1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "counts", [(-1, 0, None, None, None), (0, "1", None, None, None), (0, 0, None, 2**63, None)]
)
def test_the_short_way_refuses_what_the_constructor_refuses(counts: Any) -> None:
    with pytest.raises(ResponseValidationError):
        usage_of(counts, None)
    with pytest.raises(ResponseValidationError):
        usage_of((0, 0, None, None, None), "free")  # type: ignore[arg-type]
    assert usage_of((1, 2, 3, None, 5), None) == UsageInfo(1, 2, 3, None, 5)
