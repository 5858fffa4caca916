"""Parsers of any class: finish reasons, tool calls, streams, caches, metrics, many at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from decimal import Decimal

import attrs
import pytest

from crosswalk import FinishReason, ResponseDelta, SegmentType, ToolCall
from crosswalk.errors import ConfigurationError
from crosswalk.plugins import Correction
from crosswalk.structured import (
    RESPONSE_VERSIONS,
    Invariant,
    MemoryCache,
    ParseResult,
    ParserMetrics,
    Partial,
    ReasonCode,
    Schema,
    SchemaDefinitionError,
    SchemaVersions,
    Stage,
    StructuredAnswerError,
    StructuredParser,
    UnknownSchemaVersionError,
    Violation,
)
from crosswalk.structured.parser import PartialParser
from crosswalk.structured.result import Candidate

from .answers import POINTS, Everything, Picky, Point, response

PARSER = StructuredParser(POINTS)
GOOD = '{"x": 1, "y": 2.5}'


def test_a_class_a_schema_and_a_registry_are_schemas() -> None:
    assert StructuredParser(Point).parse('{"x": -1}').value == Point(-1)
    ruled = StructuredParser(
        Point, invariants=[Invariant("'x' must be even", lambda point: point.x % 2 == 0)]
    )
    assert ruled.parse('{"x": 1}').errors == ["'x' must be even"]
    assert PARSER.parse('{"x": -1}').errors == ["'x' must be >= 0"]
    assert PARSER.schema is POINTS


def test_what_is_no_schema_is_refused() -> None:
    with pytest.raises(SchemaDefinitionError, match="5: an answer cannot hold 5"):
        StructuredParser(5)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="prose: pass one of allow, refuse"):
        StructuredParser(POINTS, prose="some")  # type: ignore[arg-type]
    with pytest.raises(SchemaDefinitionError, match="no schema version is registered"):
        StructuredParser(SchemaVersions())
    with pytest.raises(UnknownSchemaVersionError, match="'9.0'; known are 1.0, 1.1, 2.0") as caught:
        StructuredParser(RESPONSE_VERSIONS, version="9.0")
    assert (caught.value.version, caught.value.known) == ("9.0", ("1.0", "1.1", "2.0"))
    with pytest.raises(TypeError, match="invariants belong"):
        StructuredParser(POINTS, invariants=[Invariant("", lambda _: True)])
    with pytest.raises(TypeError, match="only a registry"):
        StructuredParser(POINTS, version="1.0")


def test_a_result_gives_its_value_or_raises() -> None:
    assert PARSER.parse(GOOD).unwrap() == Point(1, 2.5)
    failed = PARSER.parse('{"x": "1", "y": "2"}')
    with pytest.raises(
        StructuredAnswerError, match=r"schema_type_error: expected integer, got string @ \$\.x;"
    ) as caught:
        failed.unwrap()
    assert caught.value.result is failed
    with pytest.raises(StructuredAnswerError, match="^extraction_failed: the answer contains no JSON$"):
        PARSER.parse("no").unwrap()
    assert repr(failed).startswith("ParseResult(stage='failure', reason='schema_type_error', errors=(")
    assert repr(PARSER.parse('{"x": 1,', partial=Partial.ACCEPT)) == (
        "ParseResult(stage='repair', reason='truncated', partial=True, value=Point(x=1, y=None))"
    )


def test_messages_do_not_quote_content() -> None:
    secret = "sk-" + "a" * 40
    for text in (f'{{"x": "{secret}"}}', f'{{"{secret}": 1}}', f'{{"x": {{"{secret}": 1}}}}', secret):
        assert secret not in " ".join(PARSER.parse(text).errors)


# ------------------------------------------------------------------------------------- the finish reason

UNFINISHED = {
    FinishReason.LENGTH: ReasonCode.TRUNCATED,
    FinishReason.CANCELLED: ReasonCode.CANCELLED,
    FinishReason.CONTENT_FILTER: ReasonCode.CONTENT_FILTER,
    FinishReason.ERROR: ReasonCode.ANSWER_ERROR,
}


@pytest.mark.parametrize("finish", UNFINISHED)
@pytest.mark.parametrize("text", [GOOD, '{"x": 1,', f"```json\n{GOOD}\n```", "{'x': 1}", '"' + "x" * 9, ""])
def test_an_answer_that_did_not_end_well_is_never_a_whole_one(finish: FinishReason, text: str) -> None:
    reason = UNFINISHED[finish]
    assert PARSER.parse(response(text, finish)) == ParseResult(None, Stage.FAILURE, reason)
    accepted = PARSER.parse(response(text, finish), partial=Partial.ACCEPT)
    assert (accepted.reason, accepted.ok) == (reason, False)
    assert accepted.partial is (accepted.value is not None)


def test_by_choice_it_comes_back_marked() -> None:
    result = PARSER.parse(response('{"x": 1, "y": 2', FinishReason.LENGTH), partial=Partial.ACCEPT)
    assert (result.value, result.partial, result.stage) == (Point(1), True, Stage.REPAIR)
    whole = PARSER.parse(response(GOOD, FinishReason.LENGTH), partial=Partial.CLOSE)
    assert (whole.value, whole.partial, whole.stage) == (Point(1, 2.5), True, Stage.DIRECT)


def test_an_answer_that_ended_well_is_read() -> None:
    assert PARSER.parse(response(GOOD)).ok
    assert PARSER.parse(response('{"x": 1')).reason is ReasonCode.TRUNCATED


def test_an_answer_whose_call_is_missing_is_cut() -> None:
    assert PARSER.parse(response(GOOD, FinishReason.TOOL_CALLS)).reason is ReasonCode.TRUNCATED


def test_a_refusal_has_a_reason_of_its_own() -> None:
    assert PARSER.parse(response(None, refusal="I cannot.")).reason is ReasonCode.REFUSAL
    assert PARSER.parse(response(GOOD, refusal="I cannot.")).reason is ReasonCode.REFUSAL
    assert PARSER.parse(response(None)).reason is ReasonCode.EXTRACTION_FAILED


def test_arguments_of_a_tool_call_go_through_the_same_chain() -> None:
    parse = PARSER.parse_tool_call
    assert parse(ToolCall("1", "move", GOOD)).stage is Stage.DIRECT
    assert parse(ToolCall("1", "move", "{'x': 1}")).stage is Stage.REPAIR
    assert parse(ToolCall("1", "move", '"{\\"x\\": 1}"')).stage is Stage.EXTRACT
    assert parse(ToolCall("1", "move", '{"x":')).reason is ReasonCode.TRUNCATED
    assert (
        parse(ToolCall("1", "move", GOOD), finish_reason=FinishReason.LENGTH).reason is ReasonCode.TRUNCATED
    )
    partial = parse(
        ToolCall("1", "move", '{"x": 1,'), finish_reason=FinishReason.LENGTH, partial=Partial.ACCEPT
    )
    assert (partial.value, partial.partial) == (Point(1), True)
    for nothing in ("", " ", "{}"):
        assert parse(ToolCall("1", "move", nothing)).errors == ["a required field is missing @ $.x"]


def test_a_schema_may_forbid_unknown_fields() -> None:
    strict = StructuredParser(Schema(Point, forbid_unknown=True))
    result = strict.parse('{"x": 1, "z": 2}')
    assert (result.reason, result.errors) == (ReasonCode.SCHEMA_UNKNOWN_FIELD, ["unknown field @ $.z"])
    assert strict.parse('{"x": 1}').ok


def test_what_the_class_itself_refuses_is_an_invariant() -> None:
    parser = StructuredParser(Picky)
    assert parser.parse('{"word": "short"}').ok
    result = parser.parse('{"word": "much too long"}')
    assert (result.reason, result.errors) == (
        ReasonCode.INVARIANT_VIOLATION,
        ["refused by Picky with ValueError @ $.word"],
    )


def test_a_rule_that_raises_is_broken() -> None:
    rules = [
        Invariant("'y' must be > 0", lambda point: point.y > 0),
        Invariant("'x' must be 1", lambda p: p.x == 1),
    ]
    parser = StructuredParser(Schema(Point, rules))
    assert parser.parse('{"x": 2}').errors == ["'y' must be > 0", "'x' must be 1"]
    assert parser.parse(GOOD).ok


def test_a_registry_of_one_s_own() -> None:
    """Versions of a user's schema, the newest of which every document is brought to."""
    versions: SchemaVersions[Everything] = SchemaVersions("v", default="1.0")
    versions.register("1.0", Point)
    versions.register(
        "1.1",
        Picky,
        invariants=(Invariant("no noughts", lambda picky: picky.word != "0"),),
        upgrade=lambda point: Picky(str(point.x)),
    )
    parser = StructuredParser(versions, version="1.1")
    assert parser.parse('{"x": 7}').value == Picky("7")
    refused = parser.parse('{"x": 1234567}')
    assert refused.errors == ["from 1.0 to 1.1: ValueError @ $"]
    assert refused.reason is ReasonCode.MIGRATION_FAILED
    assert parser.parse('{"x": 0}').errors == ["no noughts"]
    assert parser.parse('{"v": "1.1", "word": "a"}').value == Picky("a")
    assert parser.parse('{"v": "1.2", "word": "a", "more": 1}').value == Picky("a")
    assert StructuredParser(versions, version="1.0").parse('{"v": "1.2", "word": "a"}').errors == [
        "no way from 1.1 to 1.0 @ $"
    ]


# ------------------------------------------------------------------------------------------------ streams

PIECES = ["Sure: ", '{"x"', ": 1", "2", ', "y": ', "2.", "5", "}", " Done."]


def test_a_value_grows() -> None:
    steps = list(PARSER.parse_stream(PIECES))
    assert [step.fields for step in steps] == [{"x": 12}, {"x": 12, "y": 2.5}, {"x": 12, "y": 2.5}]
    assert [step.value for step in steps] == [None, Point(12, 2.5), Point(12, 2.5)]
    assert [step.partial for step in steps] == [False, True, False]
    assert [step.reason for step in steps] == ["truncated", "truncated", "success"]


def test_a_text_grows_with_every_piece() -> None:
    parser = StructuredParser(Picky)
    steps = list(parser.parse_stream(['{"word": "', "a", "b\\", "nc\\ud8", "3e\\udd99", '"}']))
    assert [step.unwrap().word for step in steps] == ["", "a", "ab", "ab\nc", "ab\nc🦙", "ab\nc🦙", "ab\nc🦙"]
    assert [step.final for step in steps[-3:]] == [frozenset(), {"$.word"}, {"$.word"}]


@attrs.frozen
class Article:
    body: str
    tags: list[str]
    draft: bool = False


def test_fields_are_shown_as_they_come_and_no_default_among_them() -> None:
    pieces = ['{"body": "a te', 'xt", "ta', 'gs": ["x"', ', "y"', "]", "}"]
    steps = list(StructuredParser(Article).parse_stream(pieces))
    assert [(step.fields, set(step.final)) for step in steps] == [
        ({"body": "a te"}, set()),
        ({"body": "a text"}, {"$.body"}),
        ({"body": "a text", "tags": ["x"]}, {"$.body"}),
        ({"body": "a text", "tags": ["x", "y"]}, {"$.body", "$.tags[0]"}),
        ({"body": "a text", "tags": ["x", "y"]}, {"$.body", "$.tags[0]", "$.tags[1]"}),
        *[({"body": "a text", "tags": ["x", "y"]}, {"$.body", "$.tags", "$.tags[0]", "$.tags[1]"})] * 2,
    ]
    assert [step.value is None for step in steps] == [True, True, True, True, True, False, False]
    assert steps[-1].value == Article("a text", ["x", "y"])


def test_an_object_that_is_closed_has_its_defaults() -> None:
    pieces = ['[{"x": 1', "}, ", '{"x": 2', ', "y": 3', "}", "]"]
    steps = list(StructuredParser(list[Point]).parse_stream(pieces))
    assert [step.value for step in steps] == [
        [],
        *[[Point(1)]] * 3,  # the second one may have a "y"
        *[[Point(1), Point(2, 3)]] * 3,
    ]


def test_fields_have_the_schema_s_keys_and_exact_values() -> None:
    @attrs.frozen
    class Bill:
        sum: Decimal
        when: datetime | None = None
        parts: list[Decimal] = attrs.field(factory=list, metadata={"alias": "the-parts"})

    pieces = ['{"Sum": 12.50', ', "The Parts": [1.10', "], ", '"when": "2024-05-01T10:00:00', '+02:00"', "}"]
    *steps, last = StructuredParser(Bill).parse_stream(pieces)
    bill = {"sum": Decimal("12.50"), "the-parts": [Decimal("1.10")]}
    first, second = "$.sum", {"$.sum", "$['the-parts']", "$['the-parts'][0]"}
    written, whole = "2024-05-01T10:00:00", "2024-05-01T10:00:00+02:00"
    assert [(step.fields, set(step.final)) for step in steps] == [
        ({"sum": Decimal("12.50"), "the-parts": []}, {first}),
        (bill, second),
        ({**bill, "when": written}, second),
        ({**bill, "when": whole}, second),
        ({**bill, "when": whole}, second | {"$.when"}),
    ]
    assert str(last.value) == (
        "Bill(sum=Decimal('12.50'), when=datetime.datetime(2024, 5, 1, 10, 0, "
        "tzinfo=datetime.timezone(datetime.timedelta(seconds=7200))), parts=[Decimal('1.10')])"
    )


def test_fields_that_cannot_be_checked_are_shown_as_they_are() -> None:
    parser = StructuredParser({"type": "object", "properties": {"n": {"multipleOf": 1e-9}}})
    step, *_, last = parser.parse_stream(['{"n": 1e300, "m": ', "1}"])
    assert (step.fields, step.final) == ({"n": 1e300}, {"$.n"})
    assert (last.fields, last.value) == ({"n": 1e300, "m": 1}, None)


@pytest.mark.parametrize("body", ['the "new" one', 'a ("b") c', 'he said "stop" and "go" now'])
def test_a_text_that_an_inner_quote_may_change_is_not_final(body: str) -> None:
    text = f'{{"body": "{body}", "tags": []}}'
    *steps, last = StructuredParser(Article).parse_stream(text)
    assert last.unwrap().body == body
    for step in steps:
        assert "$.body" not in step.final or (step.fields or {})["body"] == body


@pytest.mark.parametrize("prefill", ["", "{"])
def test_a_correction_replaces_what_was_streamed(prefill: str) -> None:
    streamed, at = '{"x": 12, "y": 2'.removeprefix(prefill), len('{"x": ') - len(prefill)
    deltas = [
        ResponseDelta(content_delta=streamed),
        ResponseDelta(correction=Correction(SegmentType.REASONING, "no", 0, 9)),
        ResponseDelta(correction=Correction(SegmentType.TEXT, "3", at, at + 2)),
        ResponseDelta(content_delta=".5}"),
        ResponseDelta(finish_reason=FinishReason.STOP),
    ]
    steps = list(StructuredParser(POINTS, prefill=prefill).parse_stream(deltas))
    assert [step.fields for step in steps] == [{"x": 12}, {"x": 3}, *[{"x": 3, "y": 2.5}] * 2]
    assert steps[-1].value == PARSER.parse('{"x": 3, "y": 2.5}').value


def test_a_step_that_breaks_a_rule_is_left_out() -> None:
    assert {step.value for step in PARSER.parse_stream(['{"x": -', "1, ", '"y": 1', "}"])} == {None}
    no_shorter = StructuredParser(Picky, invariants=[Invariant("whole words", lambda p: p.word == "whole")])
    assert [step.ok for step in no_shorter.parse_stream(['{"word": "wh', "ole", '"}'])] == [
        False,
        False,
        False,
        True,
    ]


def test_a_stream_that_is_cut_fails_in_the_end() -> None:
    *_, last = PARSER.parse_stream(PIECES[:4])
    assert (last.value, last.reason, last.partial) == (None, ReasonCode.TRUNCATED, False)
    *_, last = PARSER.parse_stream(PIECES[:5], partial=Partial.ACCEPT)
    assert (last.value, last.partial) == (Point(12), True)


def deltas(*pieces: str, finish: FinishReason | None = FinishReason.STOP) -> list[ResponseDelta]:
    """A stream of deltas, with what else may be among them."""
    made = [ResponseDelta(index, content_delta=piece) for index, piece in enumerate(pieces)]
    made.append(ResponseDelta(len(made), reasoning_delta="hm"))
    made.append(ResponseDelta(len(made), content_delta="{", choice=1))
    made.append(ResponseDelta(len(made), finish_reason=FinishReason.LENGTH, choice=1))
    if finish is not None:
        made.append(ResponseDelta(len(made), finish_reason=finish))
        made.append(ResponseDelta(len(made), extensions={"late": 1}))
    return made


def test_deltas_bring_their_finish_reason() -> None:
    *_, last = PARSER.parse_stream(deltas(*PIECES))
    assert (last.ok, last.value) == (True, Point(12, 2.5))
    *_, last = PARSER.parse_stream(deltas(*PIECES, finish=FinishReason.LENGTH))
    assert (last.value, last.reason) == (None, ReasonCode.TRUNCATED)
    *_, last = PARSER.parse_stream(deltas(*PIECES, finish=None))
    assert (last.value, last.reason) == (None, ReasonCode.TRUNCATED)


def test_deltas_of_a_refusal_end_as_the_response_would() -> None:
    refused = [ResponseDelta(0, refusal_delta="I cannot."), ResponseDelta(1, finish_reason=FinishReason.STOP)]
    (last,) = PARSER.parse_stream(refused)
    assert last == PARSER.parse(response(None, refusal="I cannot."))
    assert last.reason is ReasonCode.REFUSAL
    *_, last = PARSER.parse_stream([ResponseDelta(0, content_delta=GOOD), *refused])
    assert last.ok


@pytest.mark.parametrize("prefill", ["{", '{"x":', "```json\n{", "<think>"])
def test_what_the_request_had_written_is_part_of_the_answer(prefill: str) -> None:
    """Opt-in: nothing in a text tells that its beginning is missing."""
    answer = (
        "Hm.</think>" + GOOD if prefill == "<think>" else (prefill.partition("{")[0] + GOOD)[len(prefill) :]
    )
    parser = StructuredParser(POINTS, prefill=prefill, cache=MemoryCache())
    assert PARSER.parse(answer + "").ok is (prefill == "<think>")
    assert parser.parse(answer).value == Point(1, 2.5)
    assert parser.parse(response(answer)).value == Point(1, 2.5)
    *_, last = parser.parse_stream(answer)
    assert last.value == Point(1, 2.5)
    refused = [ResponseDelta(0, refusal_delta="I cannot."), ResponseDelta(1, finish_reason=FinishReason.STOP)]
    *_, last = parser.parse_stream(refused)
    assert last.reason is ReasonCode.REFUSAL


def test_a_source_s_exception_comes_through() -> None:
    def source() -> Iterator[str]:
        yield '{"x": 1,'
        raise OSError("gone")

    stream = PARSER.parse_stream(source())
    assert next(stream).fields == {"x": 1}
    with pytest.raises(OSError, match="gone"):
        next(stream)


def test_an_awaited_stream_gives_the_same() -> None:
    async def source() -> AsyncIterator[str]:
        for piece in PIECES:
            yield piece

    async def collect() -> list[ParseResult[Point]]:
        return [step async for step in PARSER.aparse_stream(source())]

    assert asyncio.run(collect()) == list(PARSER.parse_stream(PIECES))


@pytest.mark.untraced
def test_a_long_stream_takes_a_bounded_number_of_looks() -> None:
    """Whatever the size of the pieces, what is read again adds up to a multiple of the text."""
    read = 0

    text = '{"word": "' + "x" * 60_000 + '"}'

    def count(data: object) -> Candidate[object]:
        nonlocal read
        read += len(str(data))
        return Candidate(None, (Violation("no"),))

    answer: PartialParser[object] = PartialParser(count)
    for character in text:
        answer.feed(character)
    assert answer.text == text
    assert read < 120 * len(text)


# ----------------------------------------------------------------------------------- metrics and cache

ANSWERS = {
    GOOD: "direct_parse_ok",
    f"```{GOOD}```": "extract_ok",
    "{'x': 1}": "repair_ok",
    "no": "final_failed",
    '{"x": 1,': "partial",
}


def test_every_parse_is_counted_once() -> None:
    metrics = ParserMetrics()
    parser = StructuredParser(POINTS, metrics=metrics)
    for text in ANSWERS:
        parser.parse(text, partial=Partial.ACCEPT)
    now = metrics.get_stats()
    assert now["counters"] == dict.fromkeys(ANSWERS.values(), 1)
    reasons = {reason: count for reason, count in now["reason_codes"].items() if count}
    assert reasons == {"success": 3, "extraction_failed": 1, "truncated": 1}
    counts = {stage: latency["count"] for stage, latency in now["latency"].items()}
    assert counts == {"parse": 5, "extract": 4, "repair": 2, "total": 5}


def test_a_cache_gives_the_same_results() -> None:
    metrics, cache = ParserMetrics(), MemoryCache()
    parser = StructuredParser(POINTS, metrics=metrics, cache=cache)
    for text in [*ANSWERS, '{"x": -1}', '{"x": "1"}']:
        for partial in Partial:
            fresh = PARSER.parse(text, partial=partial)
            assert parser.parse(text, partial=partial) == fresh
            assert parser.parse(text, partial=partial) == fresh
    assert sum(metrics.get_stats()["counters"].values()) == 21
    assert (cache.stats().hits, cache.stats().misses) == (21, 21)


def test_the_key_covers_all_that_the_result_depends_on() -> None:
    cache = MemoryCache()
    cut = response(GOOD, FinishReason.LENGTH)
    for parser in (
        StructuredParser(POINTS, cache=cache),
        StructuredParser(Point, cache=cache),
        StructuredParser(Schema(Point, forbid_unknown=True), cache=cache),
        StructuredParser(Everything, cache=cache),
        StructuredParser(RESPONSE_VERSIONS, cache=cache),
        StructuredParser(RESPONSE_VERSIONS, version="2.0", cache=cache),
    ):
        parser.parse(GOOD)
        parser.parse(GOOD + " ")
        parser.parse(cut)
        parser.parse(GOOD, partial=Partial.ACCEPT)
    assert cache.stats().misses == 24


@pytest.mark.sweep
def test_50_threads_and_1000_tasks_on_one_parser_add_up() -> None:
    metrics, cache = ParserMetrics(), MemoryCache()
    plain = StructuredParser(POINTS, metrics=metrics)
    caching = StructuredParser(POINTS, metrics=metrics, cache=cache)
    texts = list(ANSWERS)[:4]

    def work(number: int) -> bool:
        text = texts[number % 4]
        return plain.parse(text) == caching.parse(text) == PARSER.parse(text)

    with ThreadPoolExecutor(50) as pool:
        assert all(pool.map(work, range(1000)))

    async def task(number: int) -> bool:
        await asyncio.sleep(0)
        return work(number)

    async def tasks() -> list[bool]:
        return await asyncio.gather(*(task(number) for number in range(1000)))

    assert all(asyncio.run(tasks()))
    stats = cache.stats()
    assert (stats.hits + stats.misses, cache.size()) == (2000, 4)
    assert sum(metrics.get_stats()["counters"].values()) == 2000 + stats.misses


def test_a_region_that_may_be_json_too_deep_is_measured() -> None:
    text = '{"x": 1, "more": [' + "[], " * 120 + "[]]}"
    assert PARSER.parse(text).ok


def test_nulls_stand_for_defaults_where_that_is_asked_for() -> None:
    @attrs.frozen
    class Options:
        dark: bool = False
        size: int | None = 5

    parser = StructuredParser(Options)
    assert parser.parse('{"dark": null, "size": null}').errors == ["expected boolean, got null @ $.dark"]
    lenient = parser.with_null_as_default()
    assert lenient.parse('{"dark": null, "size": null}').value == Options(size=None)
    assert lenient.with_null_as_default() is lenient


@attrs.frozen(eq=False)
class Uncomparable:
    x: int

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    __hash__ = None  # type: ignore[assignment]


def test_values_that_cannot_be_compared_are_the_same_if_their_text_is() -> None:
    parser = StructuredParser(Uncomparable)
    assert parser.parse('{"x": 1} {"x": 1}').ok
    assert parser.parse('{"x": 1} {"x": 1, "y": 2}').reason is ReasonCode.AMBIGUOUS


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<plan>{'x': 1} {'x': 2}</plan>", ReasonCode.EXTRACTION_FAILED),
        ("<plan>It is {'x': 1}</plan>", ReasonCode.EXTRACTION_FAILED),
        ("<plan>{'x': 1</plan>", ReasonCode.EXTRACTION_FAILED),
        ('{"x": 1 of 2, "y": [{"x": 1}, {"x"', ReasonCode.TRUNCATED),
        ('{"x": 1 of 2, "y": {"x": 1}', ReasonCode.TRUNCATED),
        ('see [1, 2) {"x": 1', ReasonCode.TRUNCATED),
        ('"{\\"x\\": \\d}" and {"x": 1}', None),
        ('"{\\"x\\": 1} and more" {"x": 2}', None),
        ('"{\\"a\\": \\"\\ud800\\"}" and {"x": 1}', None),
        ("<!-- {'x': 1}", ReasonCode.EXTRACTION_FAILED),
        ('~~ {"x": 1}', None),
        ('"x": {"x": 1}}', ReasonCode.CLOSED_TOO_EARLY),
        ('{"x": 1; "y": 2}', None),
        ("{'x': [1; 2]}", ReasonCode.REPAIR_FAILED),
        ("{'x': ;}", ReasonCode.REPAIR_FAILED),
        ('{"x": 1]', ReasonCode.REPAIR_FAILED),
        ('{"x": [1}', ReasonCode.SCHEMA_TYPE_ERROR),
        ('{"x": 1 of 2, "y": [1]', ReasonCode.TRUNCATED),
        ('{"x": 1, "y": [2]', ReasonCode.TRUNCATED),
    ],
)
def test_what_stands_around_decides_by_its_structure(text: str, reason: ReasonCode | None) -> None:
    result = PARSER.parse(text)
    assert (result.reason is ReasonCode.SUCCESS) if reason is None else (result.reason is reason), result
