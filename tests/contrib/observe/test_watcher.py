"""The watcher handles exchanges in its thread, within bounds, and without ever raising."""

from __future__ import annotations

import gc
import logging
import os
import subprocess
import sys
import threading
import weakref
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from crosswalk import Registry, UnknownProviderError, hookimpl
from crosswalk_observe import ObservedExchange, WatchedExchange, Watcher
from crosswalk_observe.watcher import renew_all

from .conftest import Seen, capture

URL = "https://vllm.example/v1/chat/completions"
HOST = {"vllm.example": "vllm"}
ANSWER = capture("vllm/chat_think_stream.response.sse")


def ask(
    watcher: Watcher, body: bytes = ANSWER.body, url: str = URL, *, end: bool = True
) -> WatchedExchange | None:
    exchange = watcher.begin("POST", url, {"Authorization": "Bearer x"}, b'{"model": "tiny"}')
    if exchange is not None:
        exchange.answered(200, {})
        exchange.chunk(body)
        if end:
            exchange.ended()
    return exchange


class Gate:
    """A sink that waits to be let go on."""

    def __init__(self) -> None:
        self.has_begun = threading.Event()
        self.may_go_on = threading.Event()
        self.seen = Seen()

    def __call__(self, record: ObservedExchange) -> None:
        self.has_begun.set()
        assert self.may_go_on.wait(60)
        self.seen(record)


def test_records_come_in_order_from_a_thread_of_the_watchers_own() -> None:
    threads = set()
    seen = Seen()
    with Watcher(seen, lambda _: threads.add(threading.current_thread()), providers=HOST) as watcher:
        ids = [exchange.id for _ in range(20) if (exchange := ask(watcher)) is not None]
        assert watcher.flush(60)
        assert [record.id for record in seen] == ids
        assert threading.current_thread() not in threads
    (thread,) = threads
    thread.join(60)
    assert not thread.is_alive()


@pytest.mark.parametrize("number", [1, 63, 64, 200])
def test_exchanges_that_end_together_are_recorded_without_a_flush(number: int) -> None:
    seen, are_all_recorded = Seen(), threading.Event()

    def count(_: ObservedExchange) -> None:
        if len(seen) == number:
            are_all_recorded.set()

    with Watcher(seen, count, providers=HOST) as watcher:
        ids = [exchange.id for _ in range(number) if (exchange := ask(watcher)) is not None]
        assert are_all_recorded.wait(60)
        assert [record.id for record in seen] == ids


def test_an_exchange_that_is_over_is_freed_at_once() -> None:
    """It holds bodies, and must not wait for the garbage collector."""
    gc.disable()
    try:
        with Watcher(lambda _: None, providers=HOST, in_background=False) as watcher:
            exchange = ask(watcher)
            assert exchange is not None
            over = weakref.ref(exchange)
            del exchange
            assert over() is None
    finally:
        gc.enable()


def test_flush_says_whether_all_is_handed_on() -> None:
    gate = Gate()
    with Watcher(gate, providers=HOST) as watcher:
        assert watcher.flush(0)
        ask(watcher)
        assert gate.has_begun.wait(60)
        assert not watcher.flush(0)
        gate.may_go_on.set()
        assert watcher.flush(60)
    assert len(gate.seen) == 1


def test_a_sink_that_flushes_does_not_wait_for_itself() -> None:
    told = []
    with Watcher(lambda _: told.append(watcher.flush()), providers=HOST) as watcher:
        ask(watcher)
        assert watcher.flush(60)
    assert told == [False]


def test_what_does_not_fit_in_the_queue_is_dropped_counted_and_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gate = Gate()
    with Watcher(gate, providers=HOST, most_waiting=2) as watcher:
        ask(watcher)
        assert gate.has_begun.wait(60)
        for _ in range(5):
            ask(watcher)
        assert watcher.dropped == 3
        gate.may_go_on.set()
        assert watcher.flush(60)
        assert len(gate.seen) == 3
    assert [record.getMessage() for record in caplog.records] == [
        "no room: 3 exchanges were not recorded so far"
    ]


def test_memory_is_bounded_by_what_all_exchanges_hold() -> None:
    seen = Seen()
    with Watcher(seen, providers=HOST, most_bytes=10_000, in_background=False) as watcher:
        first = ask(watcher, b"x" * 6_000, end=False)
        second = ask(watcher, b"x" * 6_000, end=False)
        assert first is not None
        assert second is not None
        assert watcher.dropped == 1
        assert second.chunks == []
        second.chunk(b"more")
        second.ended()
        first.ended()
        assert [record.id for record in seen] == [first.id]
        assert watcher._reserved_bytes == 0
        assert ask(watcher, b"x" * 9_000) is not None
        assert len(seen) == 2


def test_a_request_for_which_there_is_no_room_is_dropped() -> None:
    seen = Seen()
    with Watcher(seen, providers=HOST, most_bytes=10, in_background=False) as watcher:
        ask(watcher)
        assert watcher.dropped == 1
    assert seen == []


def test_of_a_long_answer_the_beginning_is_kept(caplog: pytest.LogCaptureFixture) -> None:
    seen = Seen()
    with Watcher(seen, providers=HOST, keep_bytes=1000, in_background=False) as watcher:
        exchange = ask(watcher, end=False)
        assert exchange is not None
        exchange.chunk(b"more")
        exchange.ended()
    record = seen.one
    assert record.is_cut
    assert record.body == ANSWER.body[:1000]
    assert str(record.error) == "vllm, after byte 1000: more came than the 1000 bytes that are kept"
    assert record.response is not None
    assert record.response.error_info is not None
    assert record.response.text == "<think>\nThe user wants"


def test_of_a_request_longer_than_what_is_kept_the_model_is_kept() -> None:
    seen = Seen()
    with Watcher(seen, providers=HOST, keep_bytes=10, in_background=False) as watcher:
        exchange = watcher.begin("POST", URL, {}, b'{"model": "tiny"}')
        assert exchange is not None
        exchange.ended()
    assert seen.one.request.body is None
    assert seen.one.request.model == "tiny"


def test_a_sink_that_raises_hurts_nobody_and_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    def broken(record: ObservedExchange) -> None:
        raise ValueError(record.body)

    class Leaves:
        def __call__(self, record: ObservedExchange) -> None:
            raise SystemExit

        def close(self) -> None:
            raise OSError(28, "full")

    seen = Seen()
    with Watcher(broken, Leaves(), seen, providers=HOST) as watcher:
        ask(watcher)
        ask(watcher)
        assert watcher.flush(60)
    assert len(seen) == 2
    assert [
        (record.name, record.getMessage().removesuffix(" (logged once)")) for record in caplog.records
    ] == [
        (
            "crosswalk.observe",
            "test_a_sink_that_raises_hurts_nobody_and_is_told_of_once.<locals>.broken failed with ValueError",
        ),
        (
            "crosswalk.observe",
            "test_a_sink_that_raises_hurts_nobody_and_is_told_of_once.<locals>.Leaves failed with SystemExit",
        ),
        (
            "crosswalk.observe",
            "closing test_a_sink_that_raises_hurts_nobody_and_is_told_of_once.<locals>.Leaves failed with OSError: full",
        ),
    ]


def test_a_sink_that_is_interrupted_does_not_end_the_watching(caplog: pytest.LogCaptureFixture) -> None:
    def interrupted(record: ObservedExchange) -> None:
        raise KeyboardInterrupt

    seen = Seen()
    with Watcher(seen, interrupted, providers=HOST) as watcher:
        ask(watcher)
        ask(watcher)
        assert watcher.flush(60)
    assert len(seen) == 2
    messages = [record.getMessage() for record in caplog.records]
    assert messages == ["a sink failed with KeyboardInterrupt (logged once)"]


class ClosingSink(Seen):
    is_closed = False

    def close(self) -> None:
        self.is_closed = True


class Interrupted(Seen):
    """A sink that is interrupted whatever it does."""

    def __call__(self, record: ObservedExchange) -> None:  # type: ignore[override]
        self.append(record)
        raise KeyboardInterrupt

    def close(self) -> None:
        raise KeyboardInterrupt


class InterruptedOperation(Interrupted):
    """One that begins an operation for each call."""

    def started(self, exchange: WatchedExchange) -> InterruptedOperation:
        return self

    def current(self) -> AbstractContextManager[object]:
        return nullcontext()

    end = Interrupted.__call__


@pytest.mark.parametrize("kind", [Interrupted, InterruptedOperation])
@pytest.mark.parametrize("in_background", [False, True])
def test_every_sink_gets_what_is_there_when_one_is_interrupted(
    kind: type[Interrupted], in_background: bool, caplog: pytest.LogCaptureFixture
) -> None:
    first, second, last = kind(), kind(), ClosingSink()
    watcher = Watcher(first, second, last, providers=HOST, in_background=in_background)
    for _ in range(2):
        with nullcontext() if in_background else pytest.raises(KeyboardInterrupt):
            ask(watcher)
    watcher.flush(60)
    with pytest.raises(KeyboardInterrupt):
        watcher.close()
    assert [len(sink) for sink in (first, second, last)] == [2, 2, 2]
    assert last.is_closed
    messages = [record.getMessage() for record in caplog.records]
    assert messages == ["a sink failed with KeyboardInterrupt (logged once)"] * in_background


def test_every_call_ends_when_a_sink_is_interrupted() -> None:
    first, last = InterruptedOperation(), InterruptedOperation()
    watcher = Watcher(first, last, providers=HOST, in_background=False)
    for _ in range(2):
        exchange = watcher.begin("POST", URL, {"X-Stainless-Retry-Count": "0"}, b'{"model": "tiny"}')
        assert exchange is not None
        exchange.failed(ConnectionError())
    with pytest.raises(KeyboardInterrupt):
        watcher.flush()
    assert [len(sink) for sink in (first, last)] == [2, 2]


def test_sinks_are_closed_once_and_nothing_is_watched_any_more() -> None:
    closed = []

    class Sink(Seen):
        def close(self) -> None:
            closed.append(len(self))

    sink = Sink()
    watcher = Watcher(sink, providers=HOST)
    late = ask(watcher, end=False)
    ask(watcher)
    watcher.close()
    watcher.close()
    assert closed == [2]
    assert ask(watcher) is None
    assert late is not None
    late.ended()
    assert len(sink) == 2


def test_what_cannot_be_handed_on_in_time_is_dropped_at_the_close() -> None:
    gate = Gate()
    watcher = Watcher(gate, providers=HOST)
    ask(watcher)
    assert gate.has_begun.wait(60)
    ask(watcher)
    watcher.close(0)
    assert watcher.dropped == 1
    gate.may_go_on.set()


def test_where_no_thread_can_be_started_nothing_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    seen = Seen()
    with Watcher(seen, providers=HOST) as watcher:
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            ask(watcher)
        assert watcher.dropped == 1
        ask(watcher)
        assert watcher.flush(60)
    assert len(seen) == 1


class Broken:
    """A third party's plugin with a mapping that fails."""

    @hookimpl
    def map_delta(self, event: Any, state: Any) -> None:
        raise ZeroDivisionError


def test_a_plugin_that_fails_is_an_error_of_the_record(caplog: pytest.LogCaptureFixture) -> None:
    registry = Registry(installed=[])
    registry.register(Broken(), "broken")
    seen = Seen()
    options = {"providers": {"vllm.example": "broken"}, "registry": registry, "in_background": False}
    with Watcher(seen, **options) as watcher:
        ask(watcher)
        ask(watcher)
    assert [type(record.error).__name__ for record in seen] == ["MappingError", "MappingError"]
    assert all(record.body == ANSWER.body for record in seen)
    assert len(caplog.records) == 1


def test_a_host_of_no_provider_is_a_mistake() -> None:
    with pytest.raises(UnknownProviderError, match="did you mean 'vllm'"):
        Watcher(providers={"a.example": "vlm"})


def test_what_fails_in_watching_is_told_once_and_passes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    seen = Seen()
    with Watcher(seen, providers=HOST, in_background=False) as watcher:
        with monkeypatch.context() as patched:
            patched.setattr(watcher._hosts, "site", lambda url: 1 / 0)
            assert ask(watcher) is None
        with monkeypatch.context() as patched:
            patched.setattr("crosswalk_observe.watcher.record_of", lambda *_, **__: 1 / 0)
            ask(watcher)
        assert watcher._reserved_bytes == 0
    assert seen == []
    assert [record.getMessage().removesuffix(" (logged once)") for record in caplog.records] == [
        "watching failed with ZeroDivisionError",
        "reading an answer failed with ZeroDivisionError",
    ]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_watches_on_with_an_empty_queue() -> None:
    gate = Gate()
    watcher = Watcher(gate, providers=HOST)
    ask(watcher)
    assert gate.has_begun.wait(60)
    ask(watcher)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            gate.may_go_on.set()
            ask(watcher)
            watcher.flush(60)
            os.write(writing, b"%d" % len(gate.seen))
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert os.read(reading, 10) == b"1"
    gate.may_go_on.set()
    watcher.close(60)
    assert len(gate.seen) == 2


def test_what_waits_at_a_fork_is_the_parents() -> None:
    gate = Gate()
    watcher = Watcher(gate, providers=HOST)
    ask(watcher)
    assert gate.has_begun.wait(60)
    ask(watcher)
    going_on = ask(watcher, end=False)
    assert going_on is not None
    renew_all()  # as in the child
    assert watcher.flush(0)
    assert watcher.dropped == 0
    going_on.ended()
    assert watcher._reserved_bytes == 0
    late = ask(watcher, end=False)
    assert late is not None
    renew_all()
    gate.may_go_on.set()
    watcher.close(60)
    late.ended()
    assert watcher.dropped == 0


def test_what_has_come_is_handed_on_when_the_program_ends(tmp_path: Path) -> None:
    program = f"""
import sys
from crosswalk_observe import JSONLinesLog, ParquetLog, Watcher
watcher = Watcher(JSONLinesLog("log.jsonl"), ParquetLog("parts"), providers={HOST!r})
for _ in range(3):
    exchange = watcher.begin("POST", {URL!r})
    exchange.answered(200, {{}})
    exchange.chunk({ANSWER.body!r})
    exchange.ended()
"""
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    assert (tmp_path / "log.jsonl").read_bytes().count(b"\n") == 3
    assert len(list((tmp_path / "parts").iterdir())) == 1


def test_the_log_is_quiet_where_all_is_well(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    with Watcher(providers=HOST) as watcher:
        ask(watcher)
    assert caplog.records == []
