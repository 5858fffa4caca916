"""One rule says whose answer it is: for whole answers, streams and their beginnings, and in the commands."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest

from crosswalk import (
    DetectionError,
    IncompleteStreamError,
    MappingError,
    ResponseValidationError,
    anormalize_stream,
    detect,
    normalize,
    normalize_stream,
    registry,
)
from crosswalk.types import Provenance

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
