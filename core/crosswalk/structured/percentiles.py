"""Percentiles of durations in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import accumulate
from math import ceil, log
from typing import Final

import attrs

__all__ = ["LatencySummary"]

# Buckets grow by 2 %, so a percentile is at most 1 % off. Between the two bounds lie some 1,200 of them.
_GROWTH: Final = math.log(1.02)
_SHORTEST: Final = 1e-7
_LONGEST: Final = 1e4


@attrs.frozen(kw_only=True)
class LatencySummary:
    """How long something took, over all the times it was measured.

    Attributes:
        count: how many times it was measured.
        total: the sum, in seconds.
        shortest: the shortest time, in seconds; ``None`` where nothing was measured.
        longest: the longest time, in seconds; ``None`` where nothing was measured.
        quantiles: seconds by quantile (0.5, 0.95, 0.99), at most 1 % off; empty where nothing was measured.
    """

    count: int = 0
    total: float = 0.0
    shortest: float | None = None
    longest: float | None = None
    quantiles: Mapping[float, float] = attrs.field(factory=dict)

    @property
    def mean(self) -> float | None:
        """The mean, in seconds; ``None`` where nothing was measured."""
        return self.total / self.count if self.count else None


class StageLatency:
    """A histogram of durations with buckets that grow by 2 %; not thread-safe by itself.

    It keeps counts and no durations: its memory does not grow with what is measured. From 0.1 microseconds to
    10,000 seconds a percentile is at most 1 % off; beyond, it is one of the two bounds or the extreme measured.
    """

    def __init__(self) -> None:
        self._buckets: dict[int, int] = {}
        self._count = 0
        self._total = 0.0
        self._shortest = math.inf
        self._longest = 0.0

    def add(self, seconds: float) -> None:
        """Count one duration, finite and not negative."""
        if seconds < self._shortest:
            self._shortest = seconds
        if seconds > self._longest:
            self._longest = seconds
        within = _SHORTEST if seconds < _SHORTEST else _LONGEST if seconds > _LONGEST else seconds
        bucket = ceil(log(within) / _GROWTH)
        self._buckets[bucket] = self._buckets.get(bucket, 0) + 1
        self._count += 1
        self._total += seconds

    def quantile(self, share: float) -> float | None:
        """The duration that *share* (0 to 1) of all durations do not exceed; ``None`` where there is none."""
        if not self._count:
            return None
        rank = max(math.ceil(share * self._count), 1)
        buckets = sorted(self._buckets)
        seen = accumulate(self._buckets[bucket] for bucket in buckets)
        bucket = next(bucket for bucket, so_far in zip(buckets, seen, strict=True) if so_far >= rank)
        middle = math.exp((bucket - 0.5) * _GROWTH)
        return min(max(middle, self._shortest), self._longest)

    def summary(self) -> LatencySummary:
        """What has been measured until now."""
        if not self._count:
            return LatencySummary()
        quantiles = {share: self.quantile(share) for share in (0.5, 0.95, 0.99)}
        return LatencySummary(
            count=self._count,
            total=self._total,
            shortest=self._shortest,
            longest=self._longest,
            quantiles={share: seconds for share, seconds in quantiles.items() if seconds is not None},
        )
