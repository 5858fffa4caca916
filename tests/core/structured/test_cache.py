"""The cache of results: what it holds, for how long, and what it counts."""

from __future__ import annotations

from typing import Any

import pytest

from crosswalk.errors import ConfigurationError
from crosswalk.structured import CacheStats, MemoryCache, answer_key


class Clock:
    """Seconds that a test lets pass."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def test_a_second_look_up_finds_the_very_value() -> None:
    cache, value = MemoryCache(), object()
    assert cache.get("k") is None
    cache.put("k", value)
    assert cache.get("k") is value
    assert cache.stats() == CacheStats(hits=1, misses=1)
    assert cache.stats().hit_rate == 0.5
    assert (CacheStats().hit_rate, cache.size()) == (None, 1)


def test_clearing_leaves_the_statistics() -> None:
    cache = MemoryCache()
    cache.put("k", 1)
    cache.get("k")
    cache.clear()
    assert (cache.size(), cache.stats().hits) == (0, 1)
    cache.reset_stats()
    assert cache.stats() == CacheStats()


def test_a_value_and_a_failure_live_their_time() -> None:
    clock = Clock()
    cache = MemoryCache(ttl=10, negative_ttl=5, clock=clock)
    cache.put("value", 1)
    cache.put("failure", 2, is_negative=True)
    cache.put("own", 3, ttl=20)
    clock.now += 4.5
    assert (cache.get("value"), cache.get("failure")) == (1, 2)
    clock.now += 0.5
    assert (cache.get("value"), cache.get("failure")) == (1, None)
    clock.now += 5
    assert (cache.get("value"), cache.get("own"), cache.size()) == (None, 3, 1)
    cache.put("own", 4, ttl=1)
    clock.now += 1
    assert cache.get("own") is None


def test_failures_need_not_be_stored() -> None:
    cache = MemoryCache(negative_ttl=None)
    cache.put("k", 1, is_negative=True)
    assert (cache.get("k"), cache.size()) == (None, 0)
    cache.put("k", 1, ttl=5, is_negative=True)
    assert cache.get("k") == 1


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), True, "5", None])
def test_a_time_to_live_is_a_positive_number(seconds: Any) -> None:
    with pytest.raises(ConfigurationError, match="ttl must be seconds above 0"):
        MemoryCache(ttl=seconds)
    if seconds is not None:
        with pytest.raises(ConfigurationError, match="negative_ttl must be"):
            MemoryCache(negative_ttl=seconds)
        with pytest.raises(ConfigurationError, match="ttl must be"):
            MemoryCache().put("k", 1, ttl=seconds)


@pytest.mark.parametrize("count", [0, -1, 1.5, True])
def test_a_cache_holds_at_least_one_entry(count: Any) -> None:
    with pytest.raises(ConfigurationError, match="max_entries must be a whole number of at least 1"):
        MemoryCache(count)


def test_what_has_expired_makes_room_and_then_the_least_recently_used() -> None:
    clock = Clock()
    cache = MemoryCache(2, clock=clock)
    cache.put("a", 1, ttl=5)
    cache.put("b", 2)
    clock.now += 5
    cache.put("c", 3)
    assert (cache.get("b"), cache.get("c")) == (2, 3)
    cache.get("b")
    cache.put("d", 4)
    assert (cache.get("b"), cache.get("c"), cache.get("d")) == (2, None, 4)
    cache.put("d", 5)
    assert (cache.get("b"), cache.get("d")) == (2, 5)


def test_a_key_is_the_same_in_every_process() -> None:
    assert answer_key("m", ["a"], None) == "31dae3900f988aca11c7dcafc855b2ea406b79729b1ffeb7ea89d3f3b67cf33c"
    assert answer_key("a", "b") != answer_key("ab", "") != answer_key(["a", "b"])
