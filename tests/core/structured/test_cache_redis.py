"""What is special about Redis: it lives elsewhere, others use it too, and it may be away."""

from __future__ import annotations

import socket
import sys

import pytest
from fakeredis import FakeRedis, FakeServer
from redis import Redis

from cache_backends import VALUE, Backend, Clock
from crosswalk.errors import ConfigurationError, CrosswalkError
from crosswalk.structured.cache import CacheStats
from crosswalk.structured.redis_cache import RedisCache


def client_of(backend: Backend) -> Redis:
    assert backend.client is not None
    return backend.client


def test_all_who_use_a_namespace_share_its_entries(in_redis: Backend) -> None:
    one, other = in_redis.cache(), in_redis.cache()
    one.put("key", VALUE)
    assert other.get("key") == VALUE
    assert in_redis.cache(namespace="another").get("key") is None


def test_redis_itself_forgets_an_entry_after_its_time(in_redis: Backend) -> None:
    in_redis.cache().put("key", VALUE, ttl=90)
    assert 89_000 < client_of(in_redis).pttl("crosswalk:answers:entry:key") <= 90_000


def test_clearing_leaves_what_others_stored(in_redis: Backend) -> None:
    client, cache = client_of(in_redis), in_redis.cache(namespace="mine[1]*")
    client.set("mine1:entry:a", "x")
    in_redis.cache(namespace="mine[1]*2").put("key", VALUE)
    cache.put("key", VALUE)
    cache.clear()
    assert cache.size() == 0
    left = sorted(name.decode() for name in client.keys())
    assert left == ["mine1:entry:a", "mine[1]*2:entry:key", "mine[1]*2:expiry", "mine[1]*2:used"]


def test_an_entry_that_redis_lost_makes_no_room_twice(in_redis: Backend) -> None:
    cache = in_redis.cache(max_entries=2)
    cache.put("a", VALUE)
    client_of(in_redis).delete("crosswalk:answers:entry:a")
    assert cache.get("a") is None
    for key in "bc":
        cache.put(key, VALUE)
    assert [key for key in "abc" if cache.get(key)] == ["b", "c"]


@pytest.mark.parametrize("place", ["entry:key", "used", "expiry"])
def test_something_else_under_one_of_its_names_is_a_miss(in_redis: Backend, place: str) -> None:
    client_of(in_redis).hset(f"crosswalk:answers:{place}", "a", "b")
    cache = in_redis.cache()
    assert cache.get("key") is None
    cache.put("key", VALUE)
    assert cache.get("other") is None
    assert cache.stats().misses == 2
    assert cache.stats().hits == 0


def test_names_that_are_no_text_can_stand_in_the_indexes(in_redis: Backend) -> None:
    client, cache = client_of(in_redis), in_redis.cache(max_entries=1)
    client.zadd("crosswalk:answers:used", {b"\xff\xfe": 1.0})
    client.zadd("crosswalk:answers:expiry", {b"\xfd": 1.0})
    cache.put("key", VALUE)
    assert cache.get("key") == VALUE
    assert cache.size() == 1
    assert cache.stats().errors == 0


def test_a_client_that_decodes_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="without decode_responses"):
        RedisCache(FakeRedis(decode_responses=True))


# ------------------------------------------------------------------------------------- when it is away


def nobody() -> str:
    """An address where nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"redis://:hunter2@127.0.0.1:{probe.getsockname()[1]}"


def test_a_redis_that_is_away_is_a_miss(caplog: pytest.LogCaptureFixture) -> None:
    cache = RedisCache.from_url(nobody())
    assert cache.get_or_parse("key", lambda: "parsed", lambda _: VALUE, lambda _: "stored") == "parsed"
    assert cache.stats() == CacheStats(misses=1, errors=2)  # looked, tried to store
    assert cache.get("key") is None
    cache.clear()
    assert cache.size() is None
    assert cache.stats() == CacheStats(misses=2, errors=5)
    assert "the cache works without its store: Redis: ConnectionError" in caplog.text
    assert caplog.text.count("the cache works") == 1
    assert "hunter2" not in caplog.text + repr(cache)


def test_a_redis_that_goes_and_comes_back_is_used_again() -> None:
    server, clock = FakeServer(), Clock()
    cache = RedisCache(FakeRedis(server=server), clock=clock)
    cache.put("key", VALUE)
    server.connected = False
    assert cache.get("key") is None
    server.connected = True
    assert cache.get("key") is None  # it is not asked again at once: each try may cost a timeout
    clock.now += 1
    assert cache.get("key") == VALUE
    cache.put("key", VALUE)
    assert cache.stats() == CacheStats(hits=1, misses=2, stores=2, errors=2)


def test_a_redis_that_never_answers_is_a_miss() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        cache = RedisCache.from_url(f"redis://127.0.0.1:{silent.getsockname()[1]}", timeout=0.01)
        assert cache.get("key") is None
    assert cache.stats() == CacheStats(misses=1, errors=1)


def test_a_redis_that_is_full_is_a_cache_that_stores_nothing(redis_address: str) -> None:
    with Redis.from_url(redis_address) as client:
        client.config_set("maxmemory", 1)
        try:
            cache = RedisCache(client)
            cache.put("key", VALUE)
        finally:
            client.config_set("maxmemory", 0)
    assert (cache.stats().stores, cache.stats().errors) == (0, 1)


def test_a_cache_from_an_address_works(redis_address: str) -> None:
    cache = RedisCache.from_url(redis_address, namespace="from-url", max_entries=5, ttl=9, negative_ttl=None)
    cache.clear()
    cache.put("key", VALUE)
    assert cache.get("key") == VALUE


@pytest.mark.parametrize(
    "url", ["", "http://:hunter2@x", "redis://:hunter2@x:port", "redis://x:1/a?db=hunter2"]
)
def test_what_is_no_address_is_refused_without_quoting_it(url: str) -> None:
    with pytest.raises(ConfigurationError, match="url: no address of a Redis") as refused:
        RedisCache.from_url(url)
    assert "hunter2" not in str(refused.value)
    assert refused.value.__suppress_context__


def test_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(CrosswalkError, match=r"pip install 'crosswalk-llm\[redis\]'"):
        RedisCache.from_url("redis://localhost")
