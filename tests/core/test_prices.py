"""The cost of an answer: stated by the provider, or worked out from price lists."""

from __future__ import annotations

import re
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib.metadata import version

import attrs
import pytest

from crosswalk import (
    ChatMessage,
    ChatResponse,
    ConfigurationError,
    Cost,
    Provenance,
    ResponseMetadata,
    UsageInfo,
    cost_of,
)
from crosswalk.prices import price_list
from crosswalk.types import UsageDetails


def answer(
    provider: str, model: str, usage: UsageInfo, provenance: dict[str, Provenance] | None = None
) -> ChatResponse:
    metadata = ResponseMetadata(provider, model, provenance=provenance or {})
    return ChatResponse.success(ChatMessage.assistant("Hi"), usage, model, metadata)


@pytest.mark.parametrize(
    ("provider", "model"),
    [("openai", "gpt-4o"), ("openai_responses", "gpt-4o"), ("xai", "grok-4"), ("gemini", "gemini-2.5-pro")],
)
def test_a_list_price_is_an_estimate(provider: str, model: str) -> None:
    """Twice the tokens, twice the price. It is marked as not charged."""
    one = cost_of(answer(provider, model, UsageInfo(1000, 100)))
    two = cost_of(answer(provider, model, UsageInfo(2000, 200)))
    assert one is not None
    assert two is not None
    assert one.provenance is two.provenance is Provenance.DERIVED
    assert two.amount == 2 * one.amount > 0


def test_the_model_decides_where_the_provider_was_worked_out() -> None:
    """A server that only looks like a vendor has no price. The vendor's model has one, under any provider."""
    derived = {"metadata.provider_id": Provenance.DERIVED}
    usage = UsageInfo(1000, 100)
    assert cost_of(answer("ollama", "gpt-4o", usage)) is None
    assert cost_of(answer("ollama", "gpt-4o", usage, derived)) == cost_of(answer("openai", "gpt-4o", usage))
    assert cost_of(answer("openai", "llama3.2", usage, derived)) is None


def test_the_providers_word_comes_first() -> None:
    said = Cost(Decimal("0.5"))
    assert cost_of(answer("openai", "gpt-4o", UsageInfo(1000, 100, cost=said))) == said


def test_tokens_of_audio_have_a_price_of_their_own() -> None:
    """If part of the prompt was cached, the price depends on how much of that was audio."""

    def cost(cached: int, details: UsageDetails = UsageDetails.EMPTY) -> Decimal | None:
        found = cost_of(answer("gemini", "gemini-2.5-flash", UsageInfo(1000, 100, cached, details=details)))
        return None if found is None else found.amount

    text, audio = cost(0), cost(0, UsageDetails(audio_input_tokens=800))
    assert text is not None
    assert audio is not None
    assert audio > text > 0
    cached = cost(400, UsageDetails(audio_input_tokens=800, audio_cache_read_tokens=300))
    assert cached is not None
    assert text < cached < audio
    assert cost(400, UsageDetails(audio_input_tokens=800)) is None


def test_there_is_no_price_for_counts_that_cannot_be_right() -> None:
    assert cost_of(answer("openai", "gpt-4o", UsageInfo(10, 0, cached_tokens=20))) is None


@pytest.mark.parametrize(
    ("provider", "model", "provenance"),
    [
        ("ollama", "llama3", {}),  # nobody charges for it
        ("openai", "no-such-model", {}),
        ("openai", "gpt-4o", {"usage": Provenance.ABSENT}),
        ("openai", "gpt-4o", {"usage.completion_tokens": Provenance.ABSENT}),
    ],
)
def test_there_is_no_price_for_what_is_not_known(
    provider: str, model: str, provenance: dict[str, Provenance]
) -> None:
    assert cost_of(answer(provider, model, UsageInfo(10, 0), provenance)) is None


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'crosswalk-llm\[prices\]'"):
        cost_of(answer("openai", "gpt-4o", UsageInfo(1, 1)))


@pytest.mark.parametrize("model", ["deepseek-chat", "deepseek-reasoner"])
def test_an_answer_is_not_charged_a_price_that_ended_before_it(model: str) -> None:
    one = answer("deepseek", model, UsageInfo(1000, 100))
    before, after = (
        cost_of(attrs.evolve(one, created=datetime(2025, 9, 5, hour, 59, tzinfo=UTC))) for hour in (15, 16)
    )
    assert before is not None
    assert before.amount > 0
    assert after is None
    assert cost_of(answer("deepseek", "deepseek-v4-pro", UsageInfo(1000, 100))) is not None


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4.1-mini"])
def test_a_batch_costs_half_and_an_unknown_tier_has_no_price(model: str) -> None:
    one = answer("openai", model, UsageInfo(1000, 100))
    whole = cost_of(one)
    assert whole is not None
    for tier, amount in (("batch", whole.amount / 2), ("flex", whole.amount / 2), ("default", whole.amount)):
        cost = cost_of(one, tier=tier)
        assert cost is not None
        assert cost.amount == amount
    assert cost_of(one, tier="priority") is None
    assert cost_of(one, vendor="groq", tier="flex") is None


def test_a_price_list_says_its_version_and_its_latest_change(monkeypatch: pytest.MonkeyPatch) -> None:
    from genai_prices import data_snapshot

    name = f"genai-prices {version('genai-prices')}"
    found = re.fullmatch(rf"{re.escape(name)}, latest change (\d{{4}}-\d\d-\d\d)", price_list())
    assert found is not None
    assert date(2026, 1, 1) < date.fromisoformat(found[1]) <= datetime.now(UTC).date()
    empty = data_snapshot.DataSnapshot(providers=[], from_auto_update=False)
    monkeypatch.setattr(data_snapshot, "get_snapshot", lambda: empty)
    assert price_list() == name
