"""The price of an answer, as the number of Python's calls: the same on every machine and under any load."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType

import pytest
from benchmarks.wire_bodies import BODIES

from crosswalk import normalize, normalize_stream

CAPTURES = Path(__file__).parents[2] / "captures"


def frames_of(call: Callable[[], object]) -> list[str]:
    """The file of each function of Python that *call* calls, or goes on with, once all is loaded.

    In a thread of its own, where no value of a wrong type is noted that a test has left outside of a reader.
    """
    with ThreadPoolExecutor(1) as own_thread:
        return own_thread.submit(_frames_here, call).result()


def _frames_here(call: Callable[[], object]) -> list[str]:
    files: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            files.append(frame.f_code.co_filename)

    call()
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return files[1:]  # without that of call itself


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("vLLM: text", 110),
        ("OpenAI: text", 114),
        ("DeepSeek: text", 112),
        ("Anthropic: text", 123),
        ("Ollama: text", 120),
        ("Bedrock: text", 122),
        ("Cohere: text", 133),
        ("Gemini: text", 141),
        ("Responses: text", 161),
        ("vLLM: a tool call", 166),
        ("Anthropic: a tool call", 179),
    ],
)
def test_a_short_body_makes_few_calls(name: str, most: int) -> None:
    body = BODIES[name]
    data = body.written(body.sizes[0])
    assert len(frames_of(lambda: normalize(data, body.provider))) <= most


@pytest.mark.parametrize(("name", "most"), [("vLLM: text", 14), ("OpenAI: text", 15)])
def test_a_short_body_passes_few_modules(name: str, most: int) -> None:
    body = BODIES[name]
    data = body.written(body.sizes[0])
    own = {file for file in frames_of(lambda: normalize(data, body.provider)) if "crosswalk" in file}
    assert len(own) <= most


def test_a_stream_costs_little_before_its_first_and_after_its_last_piece() -> None:
    """Two streams that differ in their number of pieces alone show the price of a piece and of the rest."""
    stream = (CAPTURES / "vllm/chat_emoji_stream.response.sse").read_bytes()
    events = [event + b"\n\n" for event in stream.split(b"\n\n") if event]
    text = next(event for event in events if b'"content":"' in event and event != events[0])
    at, end = events.index(text), next(n for n, event in enumerate(events) if b'"finish_reason":"' in event)

    def calls(count: int) -> int:
        longer = [*events[:at], *[text] * count, *events[end:]]
        return len(frames_of(lambda: [*normalize_stream(iter(longer), "vllm")]))

    short, long = calls(10), calls(110)
    piece = (long - short) / 100
    assert piece <= 7
    assert short - 10 * piece <= 360


@pytest.mark.parametrize(
    "name", ["gemini/array_stream.response.json", "bedrock/citations_stream.response.ndjson"]
)
def test_the_arguments_of_a_framing_are_counted_once_for_all_answers(name: str) -> None:
    provider, data = name.partition("/")[0], (CAPTURES / name).read_bytes()
    files = frames_of(lambda: [*normalize_stream(iter([data]), provider)])
    assert not [file for file in files if file.endswith("inspect.py")]
