"""Many threads and tasks on one parser, one set of metrics and one cache: every count adds up exactly."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import attrs
import pytest
from prometheus_client import CollectorRegistry

from cache_backends import FAILURE, VALUE, Backend
from crosswalk.structured import Invariant, ParseResult, StructuredParser
from crosswalk.structured.cache import CachedAnswer
from crosswalk.structured.cache_memory import MemoryCache
from crosswalk.structured.cache_stored import ParseUnderWay, StoredCache
from crosswalk.structured.exporters_prometheus import PrometheusExporter
from crosswalk.structured.metrics import ParseRecord, ParserMetrics

THREADS = 50
TASKS = 1000
KEYS = 10


def as_it_is(answer: CachedAnswer) -> CachedAnswer:
    return answer


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


def test_threads_on_one_parser_count_exactly(backend: Backend) -> None:
    metrics, cache = ParserMetrics(), backend.cache()
    parser = StructuredParser(Count, metrics=metrics, cache=cache)
    told: Counter[str] = Counter()
    metrics.set_exporter(lambda name, value: told.update([name]))

    def work(number: int) -> None:
        for step in range(8):
            result: ParseResult[Count] = parser.parse(ANSWERS[step % 4] % step)
            assert result.value == (Count(step) if step % 4 < 3 else None)

    in_threads(work)
    stats, counted = cache.stats(), metrics.snapshot()
    assert stats.hits + stats.misses == THREADS * 8
    assert (stats.misses, stats.stores, stats.errors, cache.size()) == (8, 8, 0, 8)
    assert counted.parses == 8
    assert counted.counters == {
        "direct_parse_ok": 2,
        "extract_ok": 2,
        "repair_ok": 2,
        "partial": 0,
        "final_failed": 2,
    }
    assert told.total() == 8


def test_threads_on_one_parser_without_a_cache_count_every_parse() -> None:
    metrics = ParserMetrics()
    parser = StructuredParser(Count, metrics=metrics)

    def work(number: int) -> None:
        for step in range(20):
            parser.parse(ANSWERS[step % 4] % number)

    in_threads(work)
    counted = metrics.snapshot()
    assert counted.counters == {
        "direct_parse_ok": 250,
        "extract_ok": 250,
        "repair_ok": 250,
        "partial": 0,
        "final_failed": 250,
    }
    assert sum(counted.reasons.values()) == 1000
    assert counted.latencies["total"].count == 1000
    assert counted.success_rate == 0.75


def test_tasks_on_one_parser_count_exactly() -> None:
    metrics, cache = ParserMetrics(), MemoryCache()
    parser = StructuredParser(Count, metrics=metrics, cache=cache)

    async def ask(number: int) -> None:
        await asyncio.sleep(0)
        assert parser.parse(ANSWERS[0] % (number % KEYS)).value == Count(number % KEYS)

    async def ask_all() -> None:
        await asyncio.gather(*(ask(number) for number in range(TASKS)))

    asyncio.run(ask_all())
    assert metrics.snapshot().parses == KEYS
    assert (cache.stats().hits, cache.stats().misses) == (TASKS - KEYS, KEYS)


def test_metrics_alone_lose_nothing() -> None:
    metrics = ParserMetrics()
    last: dict[str, int] = {}
    metrics.set_exporter(lambda name, value: last.__setitem__(name, max(value, last.get(name, 0))))

    def work(number: int) -> None:
        for _ in range(100):
            metrics.record(ParseRecord("direct", None, {"parse": 0.5}, "1.0"))

    in_threads(work)
    counted = metrics.snapshot()
    assert counted.counters["direct_parse_ok"] == counted.schema_versions["1.0"] == 5000
    assert counted.latencies["total"].total == 2500.0
    assert last == {"response_parse_direct_parse_ok": 5000}


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
        metrics.record(ParseRecord("repair", "success", {"repair": 1.0}))
        snapshots.append(metrics.snapshot())

    in_threads(work)
    for each in snapshots:
        assert each.parses == each.reasons["success"] == each.latencies["repair"].count


# ------------------------------------------------------------------------------------- single flight


def test_of_many_threads_one_parses_and_the_others_wait(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, waiting, parses = backend.cache(), threading.Semaphore(0), []
    wait = ParseUnderWay.wait

    def waits(parse: ParseUnderWay) -> object:
        waiting.release()
        return wait(parse)

    monkeypatch.setattr(ParseUnderWay, "wait", waits)

    def produce() -> CachedAnswer:
        parses.append(threading.get_ident())
        for _ in range(THREADS - 1):  # all the others are there
            waiting.acquire()
        return VALUE

    def work(number: int) -> None:
        assert cache.get_or_parse("key", produce, as_it_is, as_it_is) == VALUE

    in_threads(work)
    stats = cache.stats()
    assert len(parses) == stats.misses == stats.stores == 1
    assert stats.hits == stats.shared_hits == THREADS - 1


def ask_in_tasks(cache: StoredCache, produce: Callable[[], object], keys: int) -> list[object]:
    """What the tasks get, exceptions among them."""

    async def ask_all() -> list[object]:
        asks = [
            cache.get_or_parse_async(str(number % keys), produce, as_it_is, as_it_is)  # type: ignore[arg-type]
            for number in range(TASKS)
        ]
        return await asyncio.gather(*asks, return_exceptions=True)

    return asyncio.run(ask_all())


@pytest.mark.sweep
@pytest.mark.parametrize("answer", [VALUE, FAILURE], ids=["value", "failure"])
def test_of_many_tasks_one_parses_and_the_others_wait(backend: Backend, answer: CachedAnswer) -> None:
    cache, parses = backend.cache(), []

    async def produce() -> CachedAnswer:
        parses.append(1)
        await asyncio.sleep(0)
        return answer

    assert ask_in_tasks(cache, produce, KEYS) == [answer] * TASKS
    stats = cache.stats()
    assert len(parses) == stats.misses == stats.stores == KEYS
    assert stats.hits == TASKS - KEYS
    assert stats.negative_hits == (stats.hits if answer is FAILURE else 0)
    assert stats.errors == 0


def test_what_the_one_raises_all_that_waited_get(backend: Backend) -> None:
    cache, attempts = backend.cache(), []

    async def fails() -> CachedAnswer:
        attempts.append(1)
        await asyncio.sleep(0.001)
        raise LookupError("no model")

    results = ask_in_tasks(cache, fails, 1)
    assert all(isinstance(result, LookupError) for result in results)
    assert cache.stats().misses == TASKS
    assert len(attempts) < TASKS
    assert cache.size() == 0


def test_threads_that_waited_get_the_exception_too(monkeypatch: pytest.MonkeyPatch) -> None:
    cache, waiting = MemoryCache(), threading.Event()
    wait = ParseUnderWay.wait
    monkeypatch.setattr(ParseUnderWay, "wait", lambda parse: (waiting.set(), wait(parse))[1])

    def fails() -> CachedAnswer:
        waiting.wait()
        raise LookupError("no model")

    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(cache.get_or_parse, "key", fails, as_it_is, as_it_is) for _ in range(2)]
        assert all(isinstance(one.exception(), LookupError) for one in asked)
    assert cache.stats().misses == 2


def test_where_the_one_is_cancelled_another_takes_its_place(backend: Backend) -> None:
    cache = backend.cache()

    async def scenario() -> list[object]:
        started, forever = asyncio.Event(), asyncio.Event()

        async def hangs() -> CachedAnswer:
            started.set()
            await forever.wait()
            raise AssertionError

        async def answers() -> CachedAnswer:
            return VALUE

        first = asyncio.create_task(cache.get_or_parse_async("key", hangs, as_it_is, as_it_is))
        await started.wait()
        others = [
            asyncio.create_task(cache.get_or_parse_async("key", answers, as_it_is, as_it_is))
            for _ in range(3)
        ]
        waiter = asyncio.create_task(cache.get_or_parse_async("key", answers, as_it_is, as_it_is))
        for _ in range(20):
            await asyncio.sleep(0)
        waiter.cancel()  # one that only waits takes nothing from the others
        await asyncio.sleep(0)
        first.cancel()
        return await asyncio.gather(first, waiter, *others, return_exceptions=True)

    first, waiter, *others = asyncio.run(scenario())
    assert isinstance(first, asyncio.CancelledError)
    assert isinstance(waiter, asyncio.CancelledError)
    assert others == [VALUE] * 3
    assert cache.get("key") == VALUE


def test_a_thread_whose_leader_was_interrupted_goes_on_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    cache, waiting = MemoryCache(), threading.Event()
    wait = ParseUnderWay.wait
    monkeypatch.setattr(ParseUnderWay, "wait", lambda parse: (waiting.set(), wait(parse))[1])
    lead = threading.Event()

    def interrupted() -> CachedAnswer:
        lead.set()
        waiting.wait()
        raise KeyboardInterrupt

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(cache.get_or_parse, "key", interrupted, as_it_is, as_it_is)
        lead.wait()
        second = pool.submit(cache.get_or_parse, "key", lambda: VALUE, as_it_is, as_it_is)
        assert second.result() == VALUE
        assert isinstance(first.exception(), KeyboardInterrupt)


def test_a_parse_that_asks_for_its_own_key_does_not_wait_for_itself(backend: Backend) -> None:
    cache = backend.cache()
    result = cache.get_or_parse(
        "key", lambda: cache.get_or_parse("key", lambda: VALUE, as_it_is, as_it_is), as_it_is, as_it_is
    )
    assert result == VALUE


def test_a_call_that_blocks_the_loop_does_not_wait_for_a_task_of_it(backend: Backend) -> None:
    cache = backend.cache()

    async def scenario() -> None:
        started, may_go = asyncio.Event(), asyncio.Event()

        async def slow() -> CachedAnswer:
            started.set()
            await may_go.wait()
            return VALUE

        task = asyncio.create_task(cache.get_or_parse_async("key", slow, as_it_is, as_it_is))
        await started.wait()
        assert cache.get_or_parse("key", lambda: FAILURE, as_it_is, as_it_is) == FAILURE
        may_go.set()
        assert await task == VALUE

    asyncio.run(scenario())


def test_what_cannot_be_stored_is_shared_all_the_same(backend: Backend) -> None:
    cache, parses = backend.cache(), []

    async def produce() -> CachedAnswer:
        parses.append(1)
        await asyncio.sleep(0)
        return CachedAnswer(document=object(), stage="direct", reason="success")

    results = ask_in_tasks(cache, produce, 1)
    assert len({id(result) for result in results}) == len(parses) == cache.stats().misses == 1
    assert (cache.stats().hits, cache.size()) == (TASKS - 1, 0)


def test_rules_are_asked_once_for_all_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting, asked, wait = threading.Semaphore(0), [], ParseUnderWay.wait
    monkeypatch.setattr(ParseUnderWay, "wait", lambda parse: (waiting.release(), wait(parse))[1])

    def holds(count: Count) -> bool:
        asked.append(count)
        for _ in range(THREADS - 1):
            waiting.acquire()
        return True

    parser = StructuredParser(Count, invariants=[Invariant("any", holds)], cache=MemoryCache())
    in_threads(lambda number: parser.parse('{"items": 1}').unwrap())
    assert asked == [Count(1)]


def test_loops_in_many_threads_share_a_parse(backend: Backend) -> None:
    cache, parses = backend.cache(), []

    async def produce() -> CachedAnswer:
        parses.append(1)
        await asyncio.sleep(0)
        return VALUE

    def work(number: int) -> None:
        async def ask_all() -> list[CachedAnswer]:
            asks = [cache.get_or_parse_async("key", produce, as_it_is, as_it_is) for _ in range(4)]
            return list(await asyncio.gather(*asks))

        assert asyncio.run(ask_all()) == [VALUE] * 4

    in_threads(work)
    assert len(parses) == cache.stats().misses == 1
    assert cache.stats().hits == THREADS * 4 - 1


def test_an_exporter_beside_the_parser_costs_no_count() -> None:
    metrics, registry = ParserMetrics(), CollectorRegistry()
    PrometheusExporter(metrics, registry=registry)

    def work(number: int) -> None:
        metrics.record(ParseRecord("direct"))
        list(registry.collect())

    in_threads(work)
    assert registry.get_sample_value("response_parse_direct_parse_ok") == THREADS


# --------------------------------------------------------------------------------------- waits in a circle


def test_work_that_asks_for_its_own_key_does_not_wait_for_itself(backend: Backend) -> None:
    cache = backend.cache()

    async def outer() -> CachedAnswer:
        return await asyncio.create_task(cache.get_or_parse_async("k", inner, as_it_is, as_it_is))

    async def inner() -> CachedAnswer:
        return VALUE

    async def ask() -> CachedAnswer:
        return await asyncio.wait_for(cache.get_or_parse_async("k", outer, as_it_is, as_it_is), 60)

    assert asyncio.run(ask()) == VALUE
    assert cache.stats().misses == 2


def test_two_that_would_wait_for_each_other_do_not(backend: Backend) -> None:
    """Each makes what the other one is asking for; also over two caches, also with a third in between."""
    caches = [backend.cache(), backend.cache(), backend.cache()]
    begun = threading.Barrier(3)

    def ask(number: int) -> CachedAnswer:
        following = (number + 1) % 3

        def produce() -> CachedAnswer:
            begun.wait()
            cache, key = caches[following], f"k{following}"
            return cache.get_or_parse(key, lambda: VALUE, as_it_is, as_it_is)

        return caches[number].get_or_parse(f"k{number}", produce, as_it_is, as_it_is)

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(ask, range(3), timeout=60)) == [VALUE] * 3


def test_a_parser_waits_for_its_cache_without_holding_up_the_loop(backend: Backend) -> None:
    cache = backend.cache()
    parser = StructuredParser(Count, cache=cache)

    async def ask() -> list[ParseResult[Count]]:
        return await asyncio.gather(*(parser.aparse('{"items": 1}') for _ in range(20)))

    assert {result.value for result in asyncio.run(ask())} == {Count(1)}
    assert (cache.stats().misses, cache.stats().hits) == (1, 19)
    assert asyncio.run(StructuredParser(Count).aparse('{"items": 1}')).value == Count(1)
