"""The cost of a request, in the shapes of three services: one field."""

from __future__ import annotations

from copy import deepcopy
from decimal import Decimal, localcontext
from typing import Any

import pytest

from crosswalk.plugin.state import mistyped
from crosswalk.plugins import Cost, look_at_cost


@pytest.fixture(autouse=True)
def _no_notes() -> None:
    """Nothing is noted of what a test before has read."""
    mistyped()


@pytest.mark.parametrize(
    ("usage", "amount"),
    [
        ({"cost_in_usd_ticks": 37756000}, "0.0037756"),  # xAI
        ({"cost_in_usd_ticks": 0}, "0"),
        ({"cost": 0.000669, "is_byok": False}, "0.000669"),  # OpenRouter
        ({"cost": 3.36e-05, "cost_details": {"a": 1}}, "0.0000336"),
        ({"cost": 10, "cost_details": None}, "10"),
        ({"cost": {"request_cost": 0.005, "total_cost": 0.00501}}, "0.00501"),  # Perplexity
        ({"cost": {"total_cost": 0.00015780000000000001}}, "0.00015780000000000001"),
    ],
)
def test_a_cost_is_read_with_every_digit_and_stays(usage: dict[str, Any], amount: str) -> None:
    before = deepcopy(usage)
    with localcontext(prec=2):  # the application's own
        assert look_at_cost(usage) == Cost(Decimal(amount))
    assert usage == before


def test_a_lone_number_is_money_of_the_currency_that_the_plugin_knows() -> None:
    assert look_at_cost({"cost": 0.5}, "EUR") == Cost(Decimal("0.5"), "EUR")
    assert look_at_cost({"cost": {"total_cost": 0.5}}, "EUR") == Cost(
        Decimal("0.5")
    )  # Perplexity's, in dollars
    assert look_at_cost({"cost": None}, "EUR") is look_at_cost({}, "EUR") is None
    assert mistyped() == []
    assert look_at_cost({"cost": "0.5"}, "EUR") is None
    assert [key for _, key in mistyped()] == ["cost"]


@pytest.mark.parametrize(
    "usage",
    [
        {},
        {"cost": 0.5},  # of what currency?
        {"cost": {"diem": 0, "usd": 0.0001578}},
        {"cost": None, "cost_details": {}},
        {"cost_in_usd_ticks": None},
        {"is_byok": True},
    ],
)
def test_what_says_no_cost_stays(usage: dict[str, Any]) -> None:
    before = dict(usage)
    assert look_at_cost(usage) is None
    assert (usage, mistyped()) == (before, [])


@pytest.mark.parametrize("wrong", [-1, "12", True, [], float("nan"), 10**30, 1e-300])
def test_what_is_no_amount_stays_and_is_noted(wrong: Any) -> None:
    usage = {"cost": wrong, "cost_details": {}}
    assert look_at_cost(usage) is None
    assert usage["cost"] is wrong
    assert [(container is usage, key) for container, key in mistyped()] == [(True, "cost")]
