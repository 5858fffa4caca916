"""Seed 002's examples under the names it uses, and its contract in all versions."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from types import MappingProxyType

import pytest
from prometheus_client import CollectorRegistry

from crosswalk import FinishReason
from crosswalk.errors import ConfigurationError, CrosswalkError
from crosswalk.structured import (
    CURRENT_SCHEMA_VERSION,
    RESPONSE_SCHEMA_INSTRUCTIONS,
    RESPONSE_VERSIONS,
    SUPPORTED_SCHEMA_VERSIONS,
    CacheEntry,
    Citation,
    MigrationError,
    ParserMetrics,
    Partial,
    ReasonCode,
    ResponseCache,
    ResponseMetrics,
    ResponseParser,
    ResponseValidator,
    StructuredParser,
    StructuredResponse,
    StructuredResponseV1_1,
    StructuredResponseV2,
    get_parse_stats,
    reset_stats,
)
from crosswalk.structured.metrics import PrometheusExporter
from crosswalk.types import FrozenObject

from .answers import response


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    reset_stats()
    yield
    reset_stats()


class TestResponseSchema:
    """The seed's "Unit Test Example", word for word."""

    def test_direct_parse(self) -> None:
        json_str = '{"answer": "test", "items_shown": 5, "items_total": 10}'
        result, fallback = ResponseParser.parse_with_fallbacks(json_str)

        assert result is not None
        assert fallback == "direct_parse"
        assert result.items_shown == 5
        assert result.items_total == 10

    def test_extract_from_markdown(self) -> None:
        md_text = '```json\n{"answer": "test", "items_shown": 3}\n```'
        result, fallback = ResponseParser.parse_with_fallbacks(md_text)

        assert result is not None
        assert fallback == "extracted_json"

    def test_invariant_violation(self) -> None:
        invalid = {"answer": "test", "items_shown": 10, "items_total": 5}
        is_valid, errors, reason = ResponseValidator.validate(invalid)

        assert not is_valid
        assert reason == ReasonCode.INVARIANT_VIOLATION
        assert "'items_total' must be >= 'items_shown'" in errors

    def test_metrics_tracking(self) -> None:
        ResponseParser.parse_with_fallbacks('{"answer": "a", "items_shown": 1}')
        ResponseParser.parse_with_fallbacks("not json")

        stats = get_parse_stats()
        assert stats["parsing"]["counters"]["direct_parse_ok"] == 1
        assert stats["parsing"]["counters"]["final_failed"] == 1
        assert stats["slo"]["success_rate"] == 0.5


def test_the_stages_of_the_diagram() -> None:
    parse = ResponseParser.parse_with_fallbacks
    assert parse('{"answer": "...", "items_shown": 5}')[1] == "direct_parse"
    assert parse('Here is the answer: ```json\n{"answer": "x", "items_shown": 1}\n```')[1] == "extracted_json"
    structured, fallback = parse('{"answer": "test", "items_shown": 5,')
    assert structured == StructuredResponse("test", 5)
    assert fallback == "repaired_json"
    assert fallback.partial  # nobody can tell whether more was to come
    assert parse("not json") == (None, "parse_failed: extraction_failed")


def test_a_cut_text_is_not_repaired_into_a_whole_one() -> None:
    cut = '{"items_shown": 5, "answer": "There are five: ADR.1, AD'
    assert ResponseParser.parse_with_fallbacks(cut) == (None, "parse_failed: truncated")
    structured, fallback = ResponseParser.parse_with_fallbacks(cut, partial=Partial.ACCEPT)
    assert structured == StructuredResponse("There are five: ADR.1, AD", 5)
    assert (str(fallback), fallback.partial, repr(fallback)) == (
        "repaired_json",
        True,
        "<repaired_json, partial>",
    )


def test_a_response_that_was_cut_is_refused_where_a_text_would_not_be() -> None:
    text = '{"answer": "test", "items_shown": 5,'
    cut = response(text, FinishReason.LENGTH)
    assert ResponseParser.parse_with_fallbacks(cut) == (None, "parse_failed: truncated")
    assert ResponseParser.parse_with_fallbacks(response(text))[0] is None
    structured, fallback = ResponseParser.parse_with_fallbacks(cut, partial=Partial.CLOSE)
    assert structured is not None
    assert fallback.partial


def test_basic_usage() -> None:
    text = '{"answer": "Here are the ADRs", "items_shown": 5, "items_total": 18}'
    structured, fallback_used = ResponseParser.parse_with_fallbacks(text)
    assert structured
    assert f"Showing {structured.items_shown} of {structured.items_total}" == "Showing 5 of 18"
    assert structured.generate_transparency_message() == "Showing 5 of 18 items."
    assert f"{get_parse_stats()['slo']['success_rate']:.2%}" == "100.00%"
    assert repr(fallback_used) == "'direct_parse'"
    assert pickle.loads(pickle.dumps(fallback_used)).stage == "direct"


def test_using_the_cache() -> None:
    cache = ResponseCache.get_instance()
    raw = '{"answer": "x", "items_shown": 1}'
    key = cache.compute_key(
        model_id="ollama/qwen2.5",
        prompt_version="v1.0",
        query="What ADRs exist?",
        doc_ids=["adr-21", "adr-22"],
        raw_text=raw,
    )
    assert key == ResponseCache.compute_key(
        "ollama/qwen2.5", "v1.0", "What ADRs exist?", ("adr-21", "adr-22"), raw
    )
    assert key != ResponseCache.compute_key(
        "ollama/qwen2.5", "v1.0", "What ADRs exist?", ("adr-22", "adr-21"), raw
    )
    assert cache.get(key) is None
    structured, fallback = ResponseParser.parse_with_fallbacks(raw)
    cache.set(
        key,
        raw_response=raw,
        parsed_json=structured.to_dict() if structured else None,
        structured_response=structured,
        validation_result=structured is not None,
        reason_code=ReasonCode.SUCCESS if structured else ReasonCode.INVALID_JSON,
        fallback_used=fallback,
        ttl_seconds=300,
    )
    cached = cache.get(key)
    assert isinstance(cached, CacheEntry)
    assert (cached.structured_response, cached.fallback_used) == (structured, "direct_parse")
    assert "ttl_seconds=300" in repr(cached)
    assert cache.get_stats() == {"hits": 1, "misses": 1, "hit_rate": 0.5, "size": 1, "max_size": 1000}
    assert get_parse_stats()["cache"]["hits"] == 1
    cache.clear()
    assert cache.get(key) is None
    reset_stats()
    assert cache.get_stats()["hit_rate"] is None
    assert (ResponseCache.DEFAULT_TTL_ONLINE, ResponseCache.DEFAULT_TTL_CI) == (300, 3600)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_an_entry_lives_for_some_time(seconds: float) -> None:
    cache = ResponseCache.get_instance()
    cache.reset()
    with pytest.raises(ConfigurationError, match="ttl_seconds"):
        cache.set("k", "", None, None, False, ReasonCode.INVALID_JSON, "parse_failed", ttl_seconds=seconds)
    assert cache.size() == 0


def test_the_seed_s_cache_counts_as_every_cache_does() -> None:
    cache = ResponseCache.get_instance()
    cache.reset()
    cache.set("k", "", None, None, False, ReasonCode.INVALID_JSON, "parse_failed")
    cache.get("k")
    cache.get("l")
    stats = cache.stats()
    assert (stats.hits, stats.misses) == (1, 1)
    registry = CollectorRegistry()
    PrometheusExporter(ResponseMetrics.get_instance(), cache, registry=registry)
    assert registry.get_sample_value("response_cache_hits") == 1
    assert registry.get_sample_value("response_cache_size") == 1


def test_a_reset_sets_back_what_it_is_called_on() -> None:
    own, shared = ParserMetrics(), ResponseMetrics.get_instance()
    shared.reset()
    for metrics in (own, shared):
        metrics.increment("extract_ok")
    own.reset()
    assert [each.get_stats()["counters"]["extract_ok"] for each in (own, shared)] == [0, 1]
    ResponseMetrics.reset()
    assert shared.get_stats()["counters"]["extract_ok"] == 0


def test_a_mapping_is_a_document() -> None:
    document = {"answer": "A", "items_shown": 1, "sources": ({"title": "T"},)}
    for data in (MappingProxyType(document), FrozenObject({**document, "sources": [{"title": "T"}]})):
        assert ResponseValidator.validate(data) == (True, [], ReasonCode.SUCCESS)


def test_the_exporter_is_told_and_taken_away_by_a_reset() -> None:
    told: list[tuple[str, int]] = []
    metrics = ResponseMetrics.get_instance()
    metrics.set_exporter(lambda name, value: told.append((name, value)))
    ResponseParser.parse_with_fallbacks('{"answer": "a", "items_shown": 1}')
    ResponseParser.parse_with_fallbacks('{"answer": "a", "items_shown": 1}', enable_metrics=False)
    assert told == [("response_parse_direct_parse_ok", 1)]
    assert ResponseMetrics.get_instance() is metrics
    ResponseMetrics.reset()
    assert metrics.get_success_rate() == 1.0
    ResponseParser.parse_with_fallbacks("no")
    assert len(told) == 1


def test_the_static_functions() -> None:
    assert ResponseParser.extract_json('see {"a": 1}') == '{"a": 1}'
    assert ResponseParser.repair_json("{'a': 1,}") == '{"a":1}'
    assert (
        ResponseParser.repair_json('{"answer": "test", "items_shown": 5,')
        == '{"answer":"test","items_shown":5}'
    )


def test_parse_and_validate_does_not_extract() -> None:
    value, errors, reason = ResponseValidator.parse_and_validate('{"answer": "A", "items_shown": 3}')
    assert (value, errors, reason) == (StructuredResponse("A", 3), [], ReasonCode.SUCCESS)
    for text in ('```{"answer": "A", "items_shown": 3}```', "", '{"answer": NaN}', "\ud800"):
        assert ResponseValidator.parse_and_validate(text) == (None, ["not JSON @ $"], ReasonCode.INVALID_JSON)
    value, errors, reason = ResponseValidator.parse_and_validate('{"items_shown": "3", "answer": null}')
    assert errors == ["expected string, got null @ $.answer", "expected integer, got string @ $.items_shown"]
    assert (value, reason) == (None, ReasonCode.SCHEMA_TYPE_ERROR)


@pytest.mark.parametrize(
    ("version", "fields"),
    [
        ("1.0", {"answer", "items_shown"}),
        ("1.1", {"answer", "items_shown"}),
        ("1.7", {"answer", "items_shown"}),
        ("2.0", {"response", "items_shown", "citations"}),
        ("2.9", {"response", "items_shown", "citations"}),
        ("3.0", {"answer", "items_shown"}),
        ("nonsense", {"answer", "items_shown"}),
    ],
)
def test_required_fields_by_version(version: str, fields: set[str]) -> None:
    assert ResponseValidator.get_required_fields(version) == fields


def test_the_constants() -> None:
    assert CURRENT_SCHEMA_VERSION == "1.0"
    assert {"1.0", "1.1", "2.0"} == SUPPORTED_SCHEMA_VERSIONS
    assert {"answer", "items_shown"} == ResponseValidator.REQUIRED_FIELDS_V1
    assert {"response", "items_shown", "citations"} == ResponseValidator.REQUIRED_FIELDS_V2
    assert '"title": "ADR.21"' in RESPONSE_SCHEMA_INSTRUCTIONS
    assert "- 'items_total' must be >= 'items_shown'" in RESPONSE_SCHEMA_INSTRUCTIONS
    assert "seed" not in RESPONSE_SCHEMA_INSTRUCTIONS
    example = ResponseParser.extract_json(RESPONSE_SCHEMA_INSTRUCTIONS.partition("For example")[2])
    assert ResponseParser.parse_with_fallbacks(example or "")[1] == "direct_parse"


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (StructuredResponse("A", 5, 18), "Showing 5 of 18 items."),
        (StructuredResponse("A", 5, 18, "exact"), "Showing 5 of 18 items."),
        (StructuredResponse("A", 5, 18, "at_least"), "Showing 5 of at least 18 items."),
        (StructuredResponse("A", 5, 18, "approx"), "Showing 5 of approximately 18 items."),
        (StructuredResponse("A", 5, 5), "Showing all 5 items."),
        (StructuredResponse("A", 5, 5, "at_least"), "Showing 5 of at least 5 items."),
        (StructuredResponse("A", 5), "Showing 5 items."),
        (StructuredResponse("A", 0), ""),
        (StructuredResponse("A", 5, 18, transparency_statement="Five of many."), "Five of many."),
        (StructuredResponseV2("A", (), 5, 18), "Showing 5 of 18 items."),
        (StructuredResponseV2("A", (), 5, 18, transparency_statement="Old words."), "Showing 5 of 18 items."),
    ],
)
def test_the_transparency_message(made: StructuredResponse | StructuredResponseV2, message: str) -> None:
    assert made.generate_transparency_message() == message


# ------------------------------------------------------------------------------------------ versions

V1 = StructuredResponse("A", 3, 18, "exact", "Said.", [{"title": "T", "page": 3}, {"title": 5, "extra": {}}])
V1_1 = StructuredResponseV1_1("A", 3, sources=[{"url": "u"}], confidence=0.5, metadata={"k": [1]})
V2 = StructuredResponseV2(
    "A", (Citation("T", quote="q", extra={"page": 3}), Citation()), 3, confidence=1.0, metadata={"k": 1}
)


@pytest.mark.parametrize("value", [V1, V1_1, V2], ids=["1.0", "1.1", "2.0"])
def test_a_dict_reads_back_as_the_same_value(value: StructuredResponse) -> None:
    assert RESPONSE_VERSIONS.read(value.to_dict())[0] == value


def test_up_and_back_again() -> None:
    for value, version in ((V1, "1.0"), (V1_1, "1.1")):
        up = RESPONSE_VERSIONS.migrate(value, "2.0")
        assert isinstance(up, StructuredResponseV2)
        assert RESPONSE_VERSIONS.migrate(up, version) == value
    assert RESPONSE_VERSIONS.migrate(RESPONSE_VERSIONS.migrate(V2, "1.1"), "2.0") == V2
    assert RESPONSE_VERSIONS.migrate(V2, "2.0") is V2


def test_down_only_where_nothing_is_lost() -> None:
    with pytest.raises(
        MigrationError, match="from 1.1 to 1.0: confidence and metadata would be lost"
    ) as caught:
        RESPONSE_VERSIONS.migrate(V1_1, "1.0")
    assert (caught.value.source, caught.value.target) == ("1.1", "1.0")
    assert isinstance(caught.value, CrosswalkError)
    with pytest.raises(MigrationError, match="metadata would be lost"):
        RESPONSE_VERSIONS.migrate(StructuredResponseV1_1("A", metadata={"k": 1}), "1.0")
    twice = StructuredResponseV2("A", (Citation("T", extra={"title": "U"}),))
    with pytest.raises(MigrationError, match="repeated keys"):
        RESPONSE_VERSIONS.migrate(twice, "1.1")


def test_a_parser_brings_every_version_to_one() -> None:
    up = StructuredParser(RESPONSE_VERSIONS, version="2.0")
    result = up.parse('{"answer": "A", "items_shown": 3, "sources": [{"title": "T"}]}')
    assert result.value == StructuredResponseV2("A", (Citation("T"),), 3)
    assert result.schema_version == "1.0"
    down = StructuredParser(RESPONSE_VERSIONS, version="1.0")
    assert down.parse(
        '{"schema_version": "1.1", "answer": "A", "items_shown": 3}'
    ).value == StructuredResponse("A", 3)
    lost = down.parse('{"schema_version": "1.1", "answer": "A", "items_shown": 3, "confidence": 0.5}')
    assert (lost.value, lost.reason) == (None, ReasonCode.MIGRATION_FAILED)
    assert lost.errors == ["from 1.1 to 1.0: confidence would be lost @ $"]
    assert down.parse("{}").reason is ReasonCode.SCHEMA_MISSING_FIELD


def test_the_seed_s_parser_reads_version_2_as_1_1() -> None:
    text = '{"schema_version": "2.0", "response": "A", "items_shown": 3, "citations": [{"title": "T"}]}'
    result = ResponseParser().parse(text)
    assert result.value == StructuredResponseV1_1("A", 3, sources=[{"title": "T"}])
    assert result.schema_version == "2.0"


def test_an_unknown_minor_is_read_as_the_newest_known_and_named() -> None:
    result = ResponseParser().parse('{"schema_version": "1.8", "answer": "A", "items_shown": 3, "new": 1}')
    assert result.value == StructuredResponseV1_1("A", 3)
    assert result.schema_version == "1.8"


def test_an_unknown_major_says_what_is_known() -> None:
    result = ResponseParser().parse('{"schema_version": "3.0", "answer": "A"}')
    assert result.errors == ["unknown schema version '3.0', known are 1.0, 1.1, 2.0 @ $.schema_version"]
