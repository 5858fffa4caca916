"""Laws for the captures of one provider alone, tried on those next to the project."""

from __future__ import annotations

import orjson
import pytest

from beside import captures_in, needs_captures
from crosswalk import normalize
from crosswalk.mapping.reader import Reader, ReaderOptions
from crosswalk.plugin.registry import registry

pytestmark = [needs_captures, pytest.mark.sweep]


def test_every_stream_of_bedrock_reads_the_same_from_frames_with_names() -> None:
    """As the wire has them: the inner event, and its name next to it."""
    for capture in captures_in("recorded/bedrock-converse/stream"):
        framed = b"".join(
            b"event: %b\ndata: %b\n\n" % (name.encode(), orjson.dumps(payload))
            for event in capture.events()
            for name, payload in event.items()
            if not name.startswith("amazon-bedrock-")
        )
        wrapped = normalize(capture.body, "bedrock")
        assert normalize(framed, "bedrock").message == wrapped.message
        assert normalize(framed, "bedrock").usage == wrapped.usage


def test_every_stream_of_gemini_reads_the_same_as_an_array() -> None:
    """The other framing of the same stream: only the rests, which are kept item by item, lie elsewhere."""
    mapper = registry.mapper("gemini")
    tried = 0
    for capture in captures_in("recorded/gemini/stream"):
        events = capture.events()
        if len(events) < 2 or "unknown-enum" in capture.case:
            continue
        one_by_one, array = Reader(mapper, ReaderOptions()), Reader(mapper, ReaderOptions())
        for event in events:
            list(one_by_one.read_event(event))
        list(array.read_event(events))
        list(one_by_one.finish()), list(array.finish())
        left, right = one_by_one.response(), array.response()
        for name in ("message", "finish_reason", "usage", "segments", "logprobs", "refusal", "alternatives"):
            assert getattr(left, name) == getattr(right, name), (capture.case, name)
        tried += 1
    assert tried >= 20
