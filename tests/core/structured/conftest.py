"""The fixtures of the tests about caches."""

from __future__ import annotations

from cache_backends import backend, in_redis, redis_address

__all__ = ["backend", "in_redis", "redis_address"]
