"""The log of exchanges says what the provider sent: reading it gives the answer again, of every provider that streams."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import attrs
import orjson
import pytest

from bedrock_frames import binary
from contrib_serve import HI, asking, config_of
from crosswalk import normalize
from crosswalk.errors import MappingError
from crosswalk.records import read_record
from crosswalk.testing.captures import Capture, load_captures
from crosswalk.testing.exchange import Cut, Fault
from crosswalk.testing.replay import Answer, ReplayServer
from crosswalk.types import ChatResponse, SegmentType
from crosswalk_serve import create_app
from crosswalk_serve.telemetry import exchange_line

FOLDER = Path(__file__).parents[2] / "captures"


def as_sent(capture: Capture) -> Capture:
    """*capture* as it comes over the wire: Bedrock's are kept in the words of SDKs, AWS frames them."""
    if capture.file.parent.name != "bedrock":
        return capture
    frames = [(orjson.loads(data), name) for data, name in capture.frames()]
    return attrs.evolve(
        capture, body=binary(*(data if name is None else {name: data} for data, name in frames))
    )


STREAMS = {
    folder.name: [
        as_sent(capture)
        for capture in load_captures(folder)
        if capture.stream and capture.status < 400 and "cut" not in capture.case.split("_")[:1]
    ]
    for folder in sorted(FOLDER.iterdir())
    if folder.is_dir()
}


def read(body: bytes, provider: str | None, status: int | None = 200) -> ChatResponse | None:
    """The contents of *body*, as far as it can be read."""
    try:
        return normalize(body, provider, status=status or 200)
    except MappingError as error:
        return error.partial


def said(response: ChatResponse | None) -> Any:
    """The text of the model. Another framing has another message for a stream that broke off."""
    assert response is not None
    own = [segment for segment in response.segments if segment.type is not SegmentType.ERROR]
    return own, response.usage, response.metadata.extensions


def logged(upstream: ReplayServer, provider: str, folder: Path, answer: Capture, *faults: Fault) -> Any:
    """The gateway's log after it has handed *answer* on as a stream."""
    upstream.add(Answer.of_capture(answer), *faults)
    model = f"tiny: {{provider: {provider}, model: m, api_key: sk-own, base_url: '{upstream.url}'}}"
    log = folder / "log.jsonl"
    log.unlink(missing_ok=True)
    app = create_app(config_of(upstream, f"log: {{exchanges: {log}}}", models=model))

    async def main() -> None:
        async with app.router.lifespan_context(app), asking(app) as client:
            await client.post("/v1/chat/completions", json={**HI, "stream": True})

    asyncio.run(main())
    (line,) = log.read_bytes().splitlines()
    return read_record(line)


@pytest.mark.sweep
@pytest.mark.parametrize("provider", STREAMS)
def test_streams_are_read_from_the_log_as_they_came(
    upstream: ReplayServer, tmp_path: Path, provider: str
) -> None:
    """Whole, and with an error of the server's in the middle: its status is that of the answer's head."""
    assert STREAMS[provider]
    for capture in STREAMS[provider]:
        expected = read(capture.body, provider)
        assert expected is not None
        record = logged(upstream, provider, tmp_path, capture)
        again = read(record.body, record.provider, record.status)
        assert record.status == 200, capture
        assert again is not None, capture
        assert again.same_content(expected) or not capture.complete, capture
        assert said(again) == said(expected), capture


@pytest.mark.sweep
@pytest.mark.parametrize("provider", STREAMS)
def test_so_is_one_that_broke_off(upstream: ReplayServer, tmp_path: Path, provider: str) -> None:
    capture = max(STREAMS[provider], key=lambda one: len(one.body))
    for at in (len(capture.body) // 3, len(capture.body) // 2):
        expected = read(capture.body[:at], provider)
        record = logged(upstream, provider, tmp_path, capture, Cut(after_bytes=at, clean=True))
        assert said(read(record.body, record.provider, record.status)) == said(expected)


@pytest.mark.sweep
@pytest.mark.parametrize("provider", STREAMS)
def test_wherever_it_breaks_off(provider: str) -> None:
    for capture in STREAMS[provider]:
        for part in range(1, 12):
            first = read(capture.body[: len(capture.body) * part // 12], provider)
            if first is None:
                continue
            record = read_record(exchange_line(first, {}))
            again = read(record.body, provider, record.status)
            assert again is not None
            if provider == "bedrock" and again.error_info is None:
                continue  # cut behind the finish word: of a piece of a message, nothing is kept that could tell
            assert said(again) == said(first), (capture, part)
            if provider not in ("bedrock", "gemini") and len(first.raw_events) > 1:
                assert again.same_content(first), (capture, part)
