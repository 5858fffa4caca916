"""Counters, durations in bounded memory, and an exporter that cannot hurt."""

from __future__ import annotations

import math
from typing import Any

import pytest

from crosswalk.errors import ConfigurationError
from crosswalk.structured.metrics import ParserMetrics
from crosswalk.structured.result import ReasonCode, Stage

DIRECT: tuple[Any, ...] = ("direct", "success", {"parse": 0.001, "total": 0.002})


def parses(metrics: ParserMetrics) -> int:
    return sum(metrics.get_stats()["counters"].values())


# ------------------------------------------------------------------------------------- counters


@pytest.mark.parametrize(
    ("stage", "reason", "counter"),
    [
        ("direct", "success", "direct_parse_ok"),
        ("extract", "success", "extract_ok"),
        ("repair", "success", "repair_ok"),
        (Stage.REPAIR, ReasonCode.SUCCESS, "repair_ok"),
        (Stage.REPAIR, ReasonCode.TRUNCATED, "partial"),
        ("failure", "repair_failed", "final_failed"),
        (Stage.FAILURE, ReasonCode.REFUSAL, "final_failed"),
    ],
)
def test_a_parse_counts_as_one_outcome(stage: str, reason: str, counter: str) -> None:
    metrics = ParserMetrics()
    metrics.record(stage, reason)
    now = metrics.get_stats()
    assert {name: count for name, count in now["counters"].items() if count} == {counter: 1}
    assert {name: count for name, count in now["reason_codes"].items() if count} == {reason: 1}


def test_every_stage_and_reason_of_the_parser_is_counted() -> None:
    for stage in Stage:
        for reason in ReasonCode:
            metrics = ParserMetrics()
            metrics.record(stage, reason)
            assert parses(metrics) == 1


def test_the_success_rate_is_the_share_of_whole_values() -> None:
    metrics = ParserMetrics()
    assert (metrics.get_stats()["success_rate"], metrics.get_success_rate()) == (None, 1.0)
    for stage, reason in [
        ("direct", "success"),
        ("repair", "success"),
        ("repair", "truncated"),
        ("failure", "refusal"),
    ]:
        metrics.record(stage, reason)
    assert metrics.get_stats()["success_rate"] == metrics.get_success_rate() == 0.5


def test_stats_do_not_change_and_a_reset_starts_again() -> None:
    metrics = ParserMetrics()
    metrics.record(*DIRECT)
    before = metrics.get_stats()
    metrics.record(*DIRECT)
    assert (before["counters"]["direct_parse_ok"], parses(metrics)) == (1, 2)
    before["counters"]["direct_parse_ok"] = 5
    assert parses(metrics) == 2
    metrics.reset()
    assert metrics.get_stats() == ParserMetrics().get_stats()


@pytest.mark.parametrize(
    "record",
    [
        ("guess", "success"),
        ("failure", "moonshine"),
        ("direct", "success", {"think": 1.0}),
        ("direct", "success", {"parse": -1e-9}),
        ("direct", "success", {"parse": 0.1, "total": math.nan}),
        ("direct", "success", {"parse": math.inf}),
    ],
    ids=["stage", "reason", "what is timed", "negative", "nan", "infinite"],
)
def test_what_cannot_be_counted_is_refused_whole(record: tuple[Any, ...]) -> None:
    metrics = ParserMetrics()
    with pytest.raises(ConfigurationError):
        metrics.record(*record)
    assert metrics.get_stats() == ParserMetrics().get_stats()


def test_outcomes_can_be_counted_by_hand() -> None:
    metrics = ParserMetrics()
    metrics.increment("extract_ok", 2)
    metrics.record_latency("repair", 250)
    metrics.record_failure(ReasonCode.INVALID_JSON)
    now = metrics.get_stats()
    assert now["counters"]["extract_ok"] == 2
    assert now["latency"]["repair"] == {"count": 1, "avg_ms": 250}
    assert now["reason_codes"]["invalid_json"] == 1
    for refused in (
        lambda: metrics.increment("lucky"),
        lambda: metrics.increment("extract_ok", -1),
        lambda: metrics.record_latency("repair", math.nan),
        lambda: metrics.record_failure("moonshine"),
    ):
        with pytest.raises(ConfigurationError):
            refused()
    assert metrics.get_stats() == now


def test_a_counter_goes_up_by_whole_numbers() -> None:
    with pytest.raises(ConfigurationError, match="by whole numbers"):
        ParserMetrics().increment("extract_ok", 0.5)  # type: ignore[arg-type]


def test_the_stats_have_the_form_of_the_seed() -> None:
    metrics = ParserMetrics()
    metrics.record("repair", "success", {"parse": 0.001, "extract": 0.002, "repair": 0.003})
    stats = metrics.get_stats()
    assert stats["counters"]["repair_ok"] == 1
    assert stats["reason_codes"] == dict.fromkeys(ReasonCode, 0) | {"success": 1}
    assert stats["success_rate"] == 1.0
    assert stats["latency"]["total"] == {"count": 1, "avg_ms": pytest.approx(6.0)}
    assert ParserMetrics().get_stats()["latency"]["total"] == {"count": 0, "avg_ms": None}


# ------------------------------------------------------------------------------------- the exporter


def test_an_exporter_is_told_each_new_value() -> None:
    metrics, told = ParserMetrics(), []
    metrics.set_exporter(lambda name, value: told.append((name, value)))
    metrics.record(*DIRECT)
    metrics.record(*DIRECT)
    metrics.record("failure", "refusal")
    metrics.set_exporter(None)
    metrics.record(*DIRECT)
    assert told == [
        ("response_parse_direct_parse_ok", 1),
        ("response_parse_direct_parse_ok", 2),
        ("response_parse_final_failed", 1),
    ]


def test_an_exporter_that_raises_does_not_reach_the_parser(caplog: pytest.LogCaptureFixture) -> None:
    def exporter(name: str, value: int) -> None:
        raise OSError("statsd://secret@host is away")

    metrics = ParserMetrics()
    metrics.set_exporter(exporter)
    metrics.record(*DIRECT)
    assert parses(metrics) == 1
    assert "the metrics exporter raised OSError" in caplog.text
    assert "secret" not in caplog.text


def test_an_exporter_may_look_at_the_metrics_and_parse() -> None:
    metrics, seen = ParserMetrics(), []

    def exporter(name: str, value: int) -> None:
        seen.append(parses(metrics))
        if value == 1:
            metrics.record(*DIRECT)

    metrics.set_exporter(exporter)
    metrics.record(*DIRECT)
    assert seen == [1, 2]


def test_an_observer_is_told_each_duration() -> None:
    metrics, told = ParserMetrics(), []
    metrics.add_observer(lambda stage, seconds: told.append((stage, seconds)))
    metrics.record(*DIRECT)
    metrics.record_latency("repair", 250)
    metrics.increment("extract_ok")
    assert sorted(told) == [("parse", 0.001), ("repair", 0.25), ("total", 0.002)]
