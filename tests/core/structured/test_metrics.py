"""Counters, percentiles in bounded memory, and an exporter that cannot hurt."""

from __future__ import annotations

import math

import pytest

from crosswalk.structured.metrics import (
    MAX_LABELS,
    OTHER,
    LatencySummary,
    MetricsError,
    ParseRecord,
    ParserMetrics,
)
from crosswalk.structured.reason import ReasonCode, Stage

DIRECT = ParseRecord("direct", "success", {"parse": 0.001, "total": 0.002}, "1.0")


def counted(*records: ParseRecord) -> dict[str, int]:
    metrics = ParserMetrics()
    for record in records:
        metrics.record(record)
    return {name: count for name, count in metrics.snapshot().counters.items() if count}


# ------------------------------------------------------------------------------------- counters


@pytest.mark.parametrize(
    ("stage", "reason", "counter", "reason_counted"),
    [
        ("direct", "success", "direct_parse_ok", "success"),
        ("extract", "success", "extract_ok", "success"),
        ("repair", "success", "repair_ok", "success"),
        ("direct", None, "direct_parse_ok", "success"),
        (Stage.REPAIR, ReasonCode.SUCCESS, "repair_ok", "success"),
        (Stage.REPAIR, ReasonCode.TRUNCATED, "partial", "truncated"),
        ("failure", "repair_failed", "final_failed", "repair_failed"),
        (Stage.FAILURE, ReasonCode.REFUSAL, "final_failed", "refusal"),
        ("failure", None, "final_failed", "other"),
    ],
)
def test_a_parse_counts_as_one_outcome(
    stage: str, reason: str | None, counter: str, reason_counted: str
) -> None:
    metrics = ParserMetrics()
    metrics.record(ParseRecord(stage, reason))
    now = metrics.snapshot()
    assert {name: count for name, count in now.counters.items() if count} == {counter: 1}
    assert now.reasons == {reason_counted: 1}
    assert now.parses == 1


def test_every_stage_and_reason_of_the_parser_is_counted() -> None:
    for stage in Stage:
        for reason in ReasonCode:
            assert sum(counted(ParseRecord(stage, reason)).values()) == 1


def test_the_success_rate_is_the_share_of_whole_values() -> None:
    metrics = ParserMetrics()
    assert metrics.success_rate is None
    for stage, reason in [
        ("direct", "success"),
        ("repair", "success"),
        ("repair", "truncated"),
        ("failure", "refusal"),
    ]:
        metrics.record(ParseRecord(stage, reason))
    assert metrics.success_rate == 0.5


def test_a_snapshot_does_not_change_and_a_reset_starts_again() -> None:
    metrics = ParserMetrics()
    metrics.record(DIRECT)
    before = metrics.snapshot()
    metrics.record(DIRECT)
    assert (before.parses, metrics.snapshot().parses) == (1, 2)
    assert metrics.snapshot().schema_versions == {"1.0": 2}
    before.counters["direct_parse_ok"] = 5
    assert metrics.snapshot().parses == 2
    metrics.reset()
    assert metrics.snapshot() == ParserMetrics().snapshot()


@pytest.mark.parametrize(
    "record",
    [
        ParseRecord("guess"),
        ParseRecord("direct", None, {"think": 1.0}),
        ParseRecord("direct", None, {"parse": -1e-9}),
        ParseRecord("direct", None, {"parse": 0.1, "total": math.nan}),
        ParseRecord("direct", None, {"parse": math.inf}),
    ],
    ids=["stage", "what is timed", "negative", "nan", "infinite"],
)
def test_what_cannot_be_counted_is_refused_whole(record: ParseRecord) -> None:
    metrics = ParserMetrics()
    with pytest.raises(MetricsError):
        metrics.record(record)
    assert metrics.snapshot() == ParserMetrics().snapshot()


def test_what_a_model_writes_as_its_version_cannot_fill_the_memory() -> None:
    metrics = ParserMetrics()
    for number in range(1000):
        metrics.record(ParseRecord("direct", None, {}, f"1.{number}"))
    for version in ("9" * 33, "1\n0", "\ud800", "1.0"):
        metrics.record(ParseRecord("direct", None, {}, version))
    versions = metrics.snapshot().schema_versions
    assert len(versions) == MAX_LABELS + 1
    assert versions["1.0"] == 2
    assert versions[OTHER] == 1000 - MAX_LABELS + 3
    assert sum(versions.values()) == 1004


def test_outcomes_can_be_counted_by_hand() -> None:
    metrics = ParserMetrics()
    metrics.increment("extract_ok", 2)
    metrics.record_latency("repair", 250)
    metrics.record_failure(ReasonCode.INVALID_JSON)
    now = metrics.snapshot()
    assert (now.counters["extract_ok"], now.latencies["repair"].total, now.reasons) == (
        2,
        0.25,
        {"invalid_json": 1},
    )
    for refused in (
        lambda: metrics.increment("lucky"),
        lambda: metrics.increment("extract_ok", -1),
        lambda: metrics.record_latency("repair", math.nan),
    ):
        with pytest.raises(MetricsError):
            refused()
    assert metrics.snapshot() == now


def test_a_counter_goes_up_by_whole_numbers() -> None:
    with pytest.raises(MetricsError, match="by whole numbers"):
        ParserMetrics().increment("extract_ok", 0.5)  # type: ignore[arg-type]


def test_the_stats_have_the_form_of_the_seed() -> None:
    metrics = ParserMetrics()
    metrics.record(ParseRecord("repair", "success", {"parse": 0.001, "extract": 0.002, "repair": 0.003}))
    stats = metrics.get_stats()
    assert stats["counters"]["repair_ok"] == 1
    assert stats["reason_codes"] == {
        "success": 1,
        "invalid_json": 0,
        "schema_missing_field": 0,
        "schema_type_error": 0,
        "invariant_violation": 0,
    }
    assert stats["success_rate"] == 1.0
    total = stats["latency"]["total"]
    assert total["count"] == 1
    for figure in ("avg_ms", "min_ms", "max_ms"):
        assert total[figure] == pytest.approx(6.0)
    assert ParserMetrics().get_stats()["latency"]["total"] == {
        "count": 0,
        "avg_ms": None,
        "min_ms": None,
        "max_ms": None,
    }


# ------------------------------------------------------------------------------------- durations


def test_durations_have_a_count_a_mean_and_extremes() -> None:
    metrics = ParserMetrics()
    for milliseconds in (10, 0, 10.1, 5000):
        metrics.record_latency("total", milliseconds)
    latency = metrics.snapshot().latencies["total"]
    assert (latency.count, latency.shortest, latency.longest) == (4, 0, 5)
    assert latency.mean == pytest.approx(1.255025)
    assert LatencySummary().mean is None


# ------------------------------------------------------------------------------------- the exporter


def test_an_exporter_is_told_each_new_value() -> None:
    metrics, told = ParserMetrics(), []
    metrics.set_exporter(lambda name, value: told.append((name, value)))
    metrics.record(DIRECT)
    metrics.record(DIRECT)
    metrics.record(ParseRecord("failure", "refusal"))
    metrics.set_exporter(None)
    metrics.record(DIRECT)
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
    metrics.record(DIRECT)
    assert (metrics.snapshot().parses, metrics.snapshot().exporter_errors) == (1, 1)
    assert "the metrics exporter raised OSError" in caplog.text
    assert "secret" not in caplog.text


def test_an_exporter_may_look_at_the_metrics_and_parse() -> None:
    metrics, seen = ParserMetrics(), []

    def exporter(name: str, value: int) -> None:
        seen.append(metrics.snapshot().parses)
        if value == 1:
            metrics.record(DIRECT)

    metrics.set_exporter(exporter)
    metrics.record(DIRECT)
    assert seen == [1, 2]


def test_an_observer_is_told_each_duration() -> None:
    metrics, told = ParserMetrics(), []
    metrics.add_observer(lambda stage, seconds: told.append((stage, seconds)))
    metrics.record(DIRECT)
    metrics.record_latency("repair", 250)
    metrics.increment("extract_ok")
    assert told == [("parse", 0.001), ("total", 0.002), ("repair", 0.25)]
