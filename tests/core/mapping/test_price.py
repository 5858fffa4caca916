"""The price of an answer, as the number of Python's calls: the same on every machine and under any load."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType

import pytest
from benchmarks.wire_bodies import BODIES

from crosswalk import SegmentType, normalize, normalize_stream, registry
from crosswalk.testing import Capture, load_captures

CAPTURES = Path(__file__).parents[2] / "captures"
SHIPPED = registry.names_by_origin()[0]


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
    gc.disable()  # others have set functions that the collector calls
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
        gc.enable()
    return files[1:]  # without that of call itself


def reading(name: str) -> Callable[[], object]:
    """What reads the shortest of the bodies of that *name*."""
    body = BODIES[name]
    data = body.written(body.sizes[0])
    return lambda: normalize(data, body.provider)


@pytest.mark.parametrize("name", [name for name in BODIES if name.endswith(": text")])
def test_a_short_body_makes_few_calls(name: str) -> None:
    assert len(frames_of(reading(name))) <= 114


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("vLLM: a tool call", 105),
        ("Anthropic: a tool call", 112),
        ("Ollama: a tool call", 114),
        ("Cohere: a tool call", 119),
        ("Bedrock: a tool call", 122),
        ("Responses: a tool call", 131),
        ("Gemini: a tool call", 133),
    ],
)
def test_a_short_tool_call_makes_few_calls(name: str, most: int) -> None:
    assert len(frames_of(reading(name))) <= most


@pytest.mark.parametrize("provider", SHIPPED)
def test_a_short_body_passes_few_modules(provider: str) -> None:
    data = short_text(provider)
    assert len(own_modules(lambda: normalize(data, provider))) <= 14


def short_text(provider: str) -> bytes:
    """A short body with a text: a made one, else a recorded one, else that of OpenAI, which the others speak."""
    own = [body for name, body in BODIES.items() if body.provider == provider and name.endswith(": text")]
    bodies = [body.written(body.sizes[0]) for body in own] or [
        capture.body
        for capture in load_captures(CAPTURES / provider)
        if not (capture.stream or capture.status >= 400) and capture.complete and is_text(capture, provider)
    ]
    return min(bodies, key=len) if bodies else BODIES["OpenAI: text"].written(BODIES["OpenAI: text"].sizes[0])


def is_text(capture: Capture, provider: str) -> bool:
    """Whether the answer is one text, without log probabilities."""
    response = normalize(capture.body, provider, unknown="keep")
    is_alone = not response.alternatives and response.logprobs is None
    return is_alone and [one.type for one in response.segments] == [SegmentType.TEXT]


def own_modules(call: Callable[[], object]) -> set[str]:
    return {file for file in frames_of(call) if "/crosswalk" in file}


def test_a_first_chunk_passes_few_modules() -> None:
    """``test_house`` holds which modules read a later one."""
    stream = (CAPTURES / "vllm/chat_emoji_stream.response.sse").read_bytes()
    first = stream.partition(b"\n\n")[0] + b"\n\n"
    assert len(own_modules(lambda: next(normalize_stream(iter([first]), "vllm")))) <= 12


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
    assert piece <= 5
    assert short - 10 * piece <= 285


@pytest.mark.parametrize(
    "name", ["gemini/array_stream.response.json", "bedrock/citations_stream.response.ndjson"]
)
def test_the_arguments_of_a_framing_are_counted_once_for_all_answers(name: str) -> None:
    provider, data = name.partition("/")[0], (CAPTURES / name).read_bytes()
    files = frames_of(lambda: [*normalize_stream(iter([data]), provider)])
    assert not [file for file in files if file.endswith("inspect.py")]
