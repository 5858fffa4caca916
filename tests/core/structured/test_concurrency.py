"""Many threads and tasks on one parser, one set of metrics and one cache: every count adds up exactly."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import attrs
from prometheus_client import CollectorRegistry

from crosswalk.structured import MemoryCache, ParseResult, StructuredParser
from crosswalk.structured.metrics import ParserMetrics, PrometheusExporter

THREADS = 50


def in_threads(work: Callable[[int], None]) -> None:
    """Run *work* in all threads, which begin at once."""
    barrier = threading.Barrier(THREADS)

    def start(number: int) -> None:
        barrier.wait()
        work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(start, range(THREADS)))


@attrs.frozen
class Count:
    """A small answer type."""

    items: int


ANSWERS = [
    '{"items": %d}',
    'Here: ```json\n{"items": %d}\n```',
    "{'items': %d,}",
    "no count %d",
]


# ------------------------------------------------------------------------------------- one parser, metrics and cache


def test_threads_on_one_parser_count_exactly() -> None:
    metrics, cache = ParserMetrics(), MemoryCache()
    parser = StructuredParser(Count, metrics=metrics, cache=cache)
    told: Counter[str] = Counter()
    metrics.set_exporter(lambda name, value: told.update([name]))

    def work(number: int) -> None:
        for step in range(8):
            result: ParseResult[Count] = parser.parse(ANSWERS[step % 4] % step)
            assert result.value == (Count(step) if step % 4 < 3 else None)

    in_threads(work)
    stats, parses = cache.stats(), sum(metrics.get_stats()["counters"].values())
    assert stats.hits + stats.misses == THREADS * 8
    # Threads that miss at once parse each for itself.
    assert parses == stats.misses >= 8
    assert cache.size() == 8
    assert told.total() == parses


def test_threads_on_one_parser_without_a_cache_count_every_parse() -> None:
    metrics = ParserMetrics()
    parser = StructuredParser(Count, metrics=metrics)

    def work(number: int) -> None:
        for step in range(20):
            parser.parse(ANSWERS[step % 4] % number)

    in_threads(work)
    counted = metrics.get_stats()
    assert counted["counters"] == {
        "direct_parse_ok": 250,
        "extract_ok": 250,
        "repair_ok": 250,
        "partial": 0,
        "final_failed": 250,
    }
    assert sum(counted["reason_codes"].values()) == 1000
    assert counted["latency"]["total"]["count"] == 1000
    assert counted["success_rate"] == 0.75


def test_an_exporter_never_sees_a_value_go_back() -> None:
    metrics, told = ParserMetrics(), []
    metrics.set_exporter(lambda name, value: told.append(value))
    in_threads(lambda number: metrics.increment("extract_ok"))
    assert told == sorted(told)
    assert told[-1] == THREADS


def test_a_scrape_in_the_middle_sees_numbers_that_belong_together() -> None:
    metrics = ParserMetrics()
    snapshots = []

    def work(number: int) -> None:
        metrics.record("repair", "success", {"repair": 1.0})
        snapshots.append(metrics.get_stats())

    in_threads(work)
    for each in snapshots:
        counts = (
            each["counters"]["repair_ok"],
            each["reason_codes"]["success"],
            each["latency"]["repair"]["count"],
        )
        assert len(set(counts)) == 1


def test_an_exporter_beside_the_parser_costs_no_count() -> None:
    metrics, registry = ParserMetrics(), CollectorRegistry()
    PrometheusExporter(metrics, registry=registry)

    def work(number: int) -> None:
        metrics.record("direct", "success")
        list(registry.collect())

    in_threads(work)
    assert registry.get_sample_value("response_parse_direct_parse_ok") == THREADS
