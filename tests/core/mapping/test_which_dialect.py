"""One rule says whose answer it is: for whole answers, streams and their beginnings, and in the commands."""

from __future__ import annotations

import asyncio
import copy
import functools
import json
import operator
import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import attrs
import pytest

from beside import captures_in, folders, needs_captures
from crosswalk import (
    DetectionError,
    IncompleteStreamError,
    MappingError,
    Registry,
    ResponseValidationError,
    anormalize_stream,
    detect,
    normalize,
    normalize_stream,
    registry,
    to_json,
)
from crosswalk.types import Provenance

WHEN: Final = datetime(2026, 5, 1, tzinfo=UTC)
CAPTURES: Final = Path(__file__).parents[2] / "captures"
FILES: Final = sorted(
    file for suffix in ("json", "sse", "ndjson") for file in CAPTURES.glob(f"*/*.response.{suffix}")
)[::4]
RESPONSE: Final = {
    "id": "r",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "output": [],
    "usage": None,
}
CREATED: Final = {"type": "response.created", "response": {**RESPONSE, "status": "in_progress"}}
DELTA: Final = {
    "type": "response.output_text.delta",
    "item_id": "i",
    "output_index": 0,
    "content_index": 0,
    "delta": "Hi",
}
COMPLETED: Final = {"type": "response.completed", "response": {**RESPONSE, "status": "completed"}}


def chunk(delta: Any, finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        **more,
    }


def sse(*events: Any) -> list[bytes]:
    return [b"data: " + json.dumps(event).encode() + b"\n\n" for event in events]


@pytest.mark.untraced
@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_detect_names_the_provider_that_normalize_reads(file: Path) -> None:
    body = file.read_bytes()
    try:
        named: str | None = normalize(body, keep_raw=False).metadata.provider_id
    except MappingError as error:
        named = error.provider
    except DetectionError:
        named = None
    try:
        assert detect(body, registry) == named
    except DetectionError:
        assert named is None


@pytest.mark.parametrize("events", [(CREATED,), (CREATED, DELTA), (CREATED, DELTA, COMPLETED)])
def test_the_beginning_of_a_stream_of_many_servers_is_its_original(events: tuple[Any, ...]) -> None:
    assert detect(b"".join(sse(*events)), registry) == "openai_responses"
    assert detect(events, registry) == "openai_responses"


def test_without_a_guess_the_error_names_the_candidates() -> None:
    with pytest.raises(DetectionError) as caught:
        detect([CREATED], registry, guess=False)
    assert "openai_responses" in caught.value.candidates


async def each(pieces: list[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


BEGINNINGS: Final = pytest.mark.parametrize(
    ("events", "provider", "is_guess"),
    [
        ((CREATED, DELTA, COMPLETED), "openai_responses", True),
        ((chunk({"role": "assistant"}), chunk({"content": "Hi"}), chunk({}, "stop")), "openai", True),
        ((chunk({"content": "Hi"}, x_groq={"id": "r"}), chunk({}, "stop")), "groq", False),
        (
            (
                {"type": "ping"},
                {"type": "message_start", "message": {"id": "m", "model": "m", "content": []}},
            ),
            "anthropic",
            True,
        ),
    ],
)


@BEGINNINGS
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_the_first_event_of_a_stream_names_its_provider(
    events: tuple[Any, ...], provider: str, is_guess: bool, size: int
) -> None:
    data = b"".join(sse(*events))
    pieces = [data[place : place + size] for place in range(0, len(data), size)]
    stream = normalize_stream(pieces)
    try:
        response = stream.until_done()
    except IncompleteStreamError:
        response = stream.partial
    assert response.metadata.provider_id == provider
    derived = response.metadata.provenance.get("metadata.provider_id")
    assert (derived is Provenance.DERIVED) is is_guess


@BEGINNINGS
@pytest.mark.parametrize("size", [7, 10_000])
def test_an_asynchronous_stream_is_read_as_any_other(
    events: tuple[Any, ...], provider: str, is_guess: bool, size: int
) -> None:
    data = b"".join(sse(*events))
    pieces = [data[place : place + size] for place in range(0, len(data), size)]
    expected = normalize_stream(pieces)
    failure: Exception | None = None
    deltas = []
    try:
        for delta in expected:
            deltas.append(delta)
    except IncompleteStreamError as error:
        failure = error

    async def read() -> None:
        stream = anormalize_stream(each(pieces))
        received = []
        try:
            async for delta in stream:
                received.append(delta)
        except IncompleteStreamError as error:
            assert str(error) == str(failure)
            assert error.provider == provider
        else:
            metadata = (await stream.response()).metadata
            assert metadata.provider_id == provider
            assert metadata.provenance == expected.response.metadata.provenance
        assert received == deltas

    asyncio.run(read())


def test_every_consumer_of_an_unknown_stream_is_told() -> None:
    async def read(pieces: list[bytes]) -> None:
        async with anormalize_stream(each(pieces)) as stream:
            for _ in range(2):
                with pytest.raises(DetectionError, match="no provider recognizes"):
                    await stream.response()

    for pieces in (sse({"hello": 1}), [], sse(*[{"hello": number} for number in range(60)])):
        asyncio.run(read(pieces))


def test_nothing_of_a_stream_is_read_before_it_is_asked_for() -> None:
    stream = normalize_stream(iter(sse(chunk({"content": "Hi"}), chunk({}, "stop"))))
    with pytest.raises(ResponseValidationError, match="first event"):
        stream.response  # noqa: B018
    assert stream.until_done().text == "Hi"


@pytest.mark.parametrize(
    "pieces",
    [
        [b""],
        sse({"hello": 1}),
        sse(*[{"hello": number} for number in range(60)]),
        [b"data: [DONE]\n\n"],
    ],
)
def test_a_stream_that_nobody_recognizes_says_so(pieces: list[bytes]) -> None:
    with pytest.raises(DetectionError, match="no provider recognizes"):
        normalize_stream(pieces).until_done()


def test_a_cut_stream_that_all_read_alike_keeps_its_part() -> None:
    with pytest.raises(IncompleteStreamError) as caught:
        normalize(b"".join(sse(CREATED, DELTA)))
    assert caught.value.partial is not None
    assert caught.value.partial.text == "Hi"
    assert caught.value.provider == "openai_responses"


def test_a_document_that_is_no_answer_is_named() -> None:
    with pytest.raises(DetectionError, match="no answer, but a batch job"):
        detect(b'{"id":"b","object":"batch","status":"validating"}', registry)
    with pytest.raises(DetectionError, match="no answer, but a count of tokens"):
        normalize_stream([b'{"input_tokens":3}']).until_done()


# ------------------------------------------------------------------------- remembered verdicts

TEXTS: Final = (
    "", " ", "Hi", " Hi", "Hi there\n", "<think>a</think>b", "</think>x", "a <b>c</b>", "<|im|>", "{}", '{"a":1}', "[1]", "{broken", "{broken too", "[1, 2]",
    "[DONE]", "null", "7", "**Hi**", "ä", "stop", "length", "call__1", "call_123456789", "123456789", "vllm-0.33-tp2", "assistant",
)  # fmt: skip
ALIKE: Final = "all read it alike"
NUMBERS: Final = (0, 1, 2, 3, 5, 10, 12, 100, 1764000000, -1, 10**12, 2.5, None, True, "5")


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return [leaf for key, item in items for leaf in leaves(item, (*path, key))]
    return [path]


def changed(body: Any, chance: random.Random) -> bytes:
    """*body* with another value in one or two places, perhaps one that stands in another place or is one more."""
    result = copy.deepcopy(body)
    places = leaves(result)
    for path in chance.sample(places, min(len(places), chance.choice((0, 1, 1, 2)))):
        *above, last = path
        holder = functools.reduce(operator.getitem, above, result)
        others = [functools.reduce(operator.getitem, place, result) for place in places]
        numbers = [value + chance.choice((0, 1)) for value in others if type(value) is int]
        others = [value for value in others if type(value) is str]
        is_text = type(holder[last]) is str
        holder[last] = chance.choice((*TEXTS, *others) if is_text else (*NUMBERS, *numbers))
    return json.dumps(result).encode()


def without_nulls(value: Any) -> Any:
    """*value* without nulls, which say nothing, and without what holds nothing else but the number of a choice."""
    if isinstance(value, dict):
        left = {name: item for name, one in value.items() if (item := without_nulls(one)) is not None}
        return None if left.keys() <= {"index"} else left
    if isinstance(value, list):
        items = [without_nulls(item) for item in value]
        return None if items.count(None) == len(items) else items
    return value


def whose(data: bytes) -> str | None:
    """Whose answer *data* is: what each candidate reads is compared with what the others do."""
    try:
        return detect(data, registry, guess=False)
    except DetectionError as error:
        candidates = error.candidates
    outcomes = []
    for name in candidates:
        try:
            response = normalize(data, name, id_factory=lambda: "-", clock=lambda: WHEN, keep_raw=False)
        except IncompleteStreamError as failure:
            assert failure.partial is not None
            response = failure.partial
        except MappingError:
            return None
        extensions = without_nulls(json.loads(to_json(response)).get("metadata", {}).get("extensions")) or {}
        metadata = attrs.evolve(response.metadata, provider_id="-", extensions=extensions)
        outcomes.append((response.incomplete_reason, to_json(attrs.evolve(response, metadata=metadata))))
    return ALIKE if outcomes and outcomes.count(outcomes[0]) == len(outcomes) else None


def detected(data: bytes) -> str | None:
    """What detection says of *data*, which may remember how alike bodies are read."""
    try:
        name = detect(data, registry)
    except DetectionError:
        return None
    try:
        return detect(data, registry, guess=False)
    except DetectionError as error:
        assert name in error.candidates
        return ALIKE


def check_bodies(count: int, seed: int) -> None:
    files = [file for file in CAPTURES.glob("*/*.response.json") if file.stat().st_size < 20_000]
    chance = random.Random(seed)
    several = 0
    for file in chance.choices(sorted(files), k=count):
        try:
            body = json.loads(file.read_bytes())
        except ValueError:
            continue
        data = changed(body, chance)
        expected = whose(data)
        assert detected(data) == expected, data
        several += expected in (ALIKE, None)
    assert several > count // 4


def test_a_verdict_for_like_bodies_is_that_of_each() -> None:
    check_bodies(300, 1)


@pytest.mark.parametrize("name", ["system_fingerprint", "request_id", "tool_call_id"])
def test_ids_of_a_body_are_told_apart_where_providers_do(name: str) -> None:
    ids = (
        "fp_1a",
        "fp_2b",
        "fp_ollama",
        "vllm-0.33-tp2",
        "b6082-1e0b3a2c",
        "b6083-1e0b3a2c",
        "req_1",
        "",
        None,
        7,
        "fp_3c",
    )
    for id in ids:
        data = chat(
            {"content": "Hi there"},
            usage={"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
            **{name: id},
        )
        assert detected(data) == whose(data), id


@pytest.mark.sweep
def test_verdicts_for_many_like_bodies_are_those_of_each() -> None:
    check_bodies(3000, 2)


def changed_stream(data: bytes, chance: random.Random) -> bytes:
    """*data* with other pieces of text, and perhaps another value, one event more or less, or another end of an event."""
    end = b"\n\n" if b"\n\n" in data else b"\n"
    blocks = data.split(end)
    words = (" the", "ing", "Hi", "\n", " ", "ä", '"a"', "{", "b\\", "7")
    for place, block in enumerate(blocks):
        event = block.rpartition(b"data: ")[2]
        try:
            body = json.loads(event)
        except ValueError:
            continue
        texts = [
            path for path in leaves(body) if path and path[-1] in ("content", "reasoning_content", "text")
        ]
        for *above, last in texts:
            holder = functools.reduce(operator.getitem, above, body)
            if isinstance(holder[last], str) and holder[last] and chance.random() < 0.5:
                holder[last] = chance.choice(words)
        data = changed(body, chance) if chance.random() < 1.5 / len(blocks) else json.dumps(body).encode()
        blocks[place] = block[: len(block) - len(event)] + data
    place, change = chance.randrange(len(blocks)), chance.random()
    if change < 0.2:
        blocks[place:place] = [blocks[place]] * chance.choice((1, 2, 40))
    elif change < 0.4:
        del blocks[place]
    elif change < 0.5:
        blocks[place] += chance.choice((b"x", b"\n", b" ", b"\r"))
    return end.join(blocks)


def is_ambiguous(data: bytes) -> bool:
    try:
        detect(data, registry, guess=False)
    except DetectionError as error:
        return bool(error.candidates)
    return False


def check_streams(streams: list[bytes], count: int, seed: int) -> None:
    """Compare each of *streams* that fits several providers, and *count* changes of them, with what each candidate reads."""
    chance = random.Random(seed)
    streams = [data for data in streams if len(data) < 8_000 and is_ambiguous(data)]
    assert len(streams) > 5
    verdicts = []
    for data in (*streams, *(changed_stream(one, chance) for one in chance.choices(streams, k=count))):
        expected = whose(data)
        assert [detected(data), detected(data)] == [expected, expected], data
        verdicts.append(expected)
    assert {ALIKE, None} <= {*verdicts}


@pytest.mark.sweep
def test_a_verdict_for_like_streams_is_that_of_each() -> None:
    check_streams([file.read_bytes() for file in sorted(CAPTURES.glob("*/*.response.sse"))], 150, 3)


@needs_captures
@pytest.mark.sweep
def test_verdicts_for_many_recorded_streams_are_those_of_each() -> None:
    check_streams(
        [one.body for folder in folders() for one in captures_in(folder) if one.file.suffix == ".sse"],
        300,
        4,
    )


def pieces(*texts: Any, **more: Any) -> bytes:
    """A stream of chunks with a piece of text each, or with another delta."""
    deltas = [text if isinstance(text, dict) else {"content": text} for text in texts]
    events = [chunk({"role": "assistant", "content": ""}), *map(chunk, deltas), chunk({}, "stop", **more)]
    return b"".join(sse(*events)) + b"data: [DONE]\n\n"


@pytest.mark.parametrize(
    "others",
    [
        [pieces("Hi", " there"), pieces("Good", " mor", "ning"), pieces("7", " of", " 9")],
        [pieces("Hi", " there"), pieces("<think>", "a", "</think>", "b"), pieces("<", "think>", "a")],
        [pieces("Hi", " there"), pieces("Hi", "Hi there"), pieces("A", "A b", "A b c")],
        [pieces({"reasoning": "a", "reasoning_content": "a"}), pieces({"reasoning": "b", "reasoning_content": "a"})],
        [pieces({"content": "Hi", "text": "Hi"}), pieces({"content": "Yo", "text": "Hi"})],
        [pieces("Hi", message={"content": "Hi"}), pieces("Yo", message={"content": "Hi"})],
        [pieces(" ", "Hi"), pieces("\n\n", "Hi"), pieces("Hi", " ")],
        [pieces("\0", "Hi"), pieces("\0again"), pieces("\ud800", "x")],
        [pieces('{"a"', ":1}"), pieces("{", "broken"), pieces("[", "]")],
        [pieces("Hi", p="abc"), pieces("Hi", p="abcd"), pieces("Hi", p=""), pieces("Hi", obfuscation="x")],
        [pieces("Hi", index=3), b"data: {\n\n", b"data: 7\n\ndata: 8\n\n", pieces("Hi") + b"data: {", pieces("Hi").replace(b"Hi", b"\\x"),
         pieces("Hi").replace(b"Hi", b"\xff"), pieces("Hi").replace(b"Hi", b"a\n\nb")],
        [pieces(*[text, {"refusal": text}]) for text in ("Hi", "Yo", "")],
        [pieces(*[{"role": role} for role in ("assistant", "user") * 20]), pieces(*"abc" * 20)],
        [pieces("Hi").replace(b"data: ", b"").replace(b"[DONE]\n\n", b"").replace(b"\n\n", b"\n"), b'{"a":1}\n{"a":2}\n'],
    ],
    ids=["mere text", "tags", "cumulative", "two reasonings", "two texts", "a whole one", "white space", "odd characters", "JSON",
         "padding", "damaged", "a refusal", "many", "lines of JSON"],
)  # fmt: skip
def test_streams_of_one_shape_are_those_that_each_candidate_reads_alike(others: list[bytes]) -> None:
    for data in (*others, *others[::-1]):
        assert detected(data) == whose(data), data


def chat(message: Any, **more: Any) -> bytes:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": None, **message},
        "finish_reason": "stop",
    }
    return json.dumps(
        {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], **more}
    ).encode()


def calls(count: int) -> list[dict[str, Any]]:
    return [
        {"id": f"call_{number:06}", "type": "function", "function": {"name": "look", "arguments": '{"at":1}'}}
        for number in range(count)
    ]


@pytest.mark.parametrize(
    "last",
    [
        {},
        {"index": 39},
        {"index": 3},
        {"id": "call__000039"},
        {"id": "call_000001"},
        {"id": 7},
        {"function": {"name": "look", "arguments": {"at": 1}}},
        {"function": {"name": "look", "arguments": "{"}},
        {"function": {"name": "", "arguments": "{}"}},
        {"function": None},
        {"type": "custom", "custom": {"name": "look", "input": "x"}},
        {"thought": "x"},
        "no call",
    ],
    ids=str,
)
def test_the_last_of_many_calls_counts(last: Any) -> None:
    several: list[Any] = [*calls(40)]
    several[-1] = {**several[-1], **last} if isinstance(last, dict) else last
    for data in (
        chat({"tool_calls": several}),
        chat({"tool_calls": several, "function_call": {"name": "look", "arguments": '{"at":1}'}}),
        chat(
            {
                "tool_calls": [
                    {**call, "index": place} if isinstance(call, dict) else call
                    for place, call in enumerate(several)
                ]
            }
        ),
    ):
        assert detected(data) == whose(data)


@pytest.mark.parametrize(
    "usage",
    [{f"{letter}_tokens": 2**place for place, letter in enumerate("abcdefghijklmno")}, {"total_tokens": 5}],
)
def test_odd_counts_are_compared_as_they_are(usage: Any) -> None:
    for prompt in (3, 4, 4):
        data = chat({"content": "Hi"}, usage={"prompt_tokens": prompt, "completion_tokens": 1, **usage})
        assert detected(data) == whose(data)


def test_what_was_remembered_of_a_plugin_is_not_told_of_its_successor() -> None:
    known = Registry()
    data = chat({"content": "Hi"}, usage={"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4})
    assert [detect(data, known) for _ in range(2)] == ["openai", "openai"]
    known.block("openai")
    assert detect(data, known) != "openai"
    known.unblock("openai")
    assert detect(data, known) == "openai"


def test_more_verdicts_than_are_remembered_stay_right() -> None:
    bodies = [chat({"content": "<think>a</think>b"}, **{f"x{number}": 1}) for number in range(2100)]
    expected = detected(bodies[0])
    assert {detected(body) for body in (*bodies, *bodies[:50])} == {expected}
    assert expected == whose(bodies[0])


def test_an_answer_with_something_behind_it_is_read_by_all() -> None:
    for more in (b"\n{", b"\n\n", b" x"):
        data = chat({"content": "Hi"}) + more
        assert detected(data) == whose(data)


@pytest.mark.parametrize(
    "nulls", [{"audio": None}, {"function_call": None, "annotations": None}, {"x": {"y": [None]}}]
)
def test_what_an_sdk_dumps_as_null_is_no_difference(nulls: Any) -> None:
    data = chat({"content": "Hi", **nulls}, moderation=None)
    assert detected(data) == whose(data) == ALIKE
    odd = chat(
        {"content": "Hi", **nulls},
        usage={"prompt_tokens": 3, "completion_tokens": 1, "num_search_queries": 2},
    )
    assert detected(odd) == whose(odd)


@pytest.mark.parametrize("text", TEXTS)
def test_an_odd_text_is_read_by_all_or_by_none(text: str) -> None:
    for data in (
        chat({"content": text}),
        chat({"content": "Hi", "reasoning": text, "reasoning_content": text}),
    ):
        assert detected(data) == detected(data) == whose(data)
