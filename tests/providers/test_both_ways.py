"""The repetition rule delivers what the hooks make of every event: every capture, and 10,000 broken ones, both ways."""

from __future__ import annotations

import functools
import random
from itertools import chain
from pathlib import Path
from typing import Any

import attrs
import orjson
import pytest

from crosswalk import CrosswalkError, ResponseDelta, registry, to_jsonable
from crosswalk.mapping.reader import Reader, ReaderOptions
from crosswalk.plugin.registry import Mapper
from crosswalk.testing import Capture, load_captures
from wires import CLOCK, chunk, sse

pytestmark = pytest.mark.sweep

FOLDERS = sorted(path for path in (Path(__file__).parents[1] / "captures").iterdir() if path.is_dir())
BITS = [b'"', b"\\", b"\\u00e9", b"\xff", b"\n", b"x", b"1", b"{}", b",", b'","a":"b', b"null", b" ", b"\x00"]
ROUNDS = 20
MUTATIONS = 500


@functools.cache
def captures(folder: Path) -> list[Capture]:
    return list(load_captures(folder))


def running_counts(number: int, choice: int = 0) -> Any:
    """A chunk of OpenAI's dialect that counts. Now and then the total is not the sum."""
    counts = {
        "prompt_tokens": 9,
        "completion_tokens": number,
        "total_tokens": 9 + number + (number % 11 == 10),
    }
    more = {"prompt_tokens_details": {"cached_tokens": number % 3}} if number % 2 else {}
    return {**chunk({"content": f"w{number} "}, choice=choice), "usage": {**counts, **more}}


def with_tokens(number: int) -> Any:
    """A chunk of OpenAI's dialect with log probabilities. Now and then the server says something odd of them."""
    text = f"w{number} "
    token = {"token": text, "logprob": -0.5 * number, "bytes": [*text.encode()]}
    if number % 9 == 8:
        token |= [{"bytes": "odd"}, {"logprob": None}, {"more": 1}, {"logprob": "odd"}][number // 9 % 4]
    said = chunk({"content": text})
    said["choices"][0]["logprobs"] = {"content": [{**token, "top_logprobs": [token]}], "refusal": None}
    return said


def of_gemini(number: int) -> Any:
    part = {"text": f"w{number} ", **({"thought": True} if number < 12 else {})}
    counts = {"promptTokenCount": 9, "candidatesTokenCount": number, "totalTokenCount": 9 + number}
    details = {"promptTokensDetails": [{"modality": "TEXT", "tokenCount": 9}]}
    content = {"parts": [part], "role": "model"}
    said = {"candidates": [{"content": content, "index": 0}], "usageMetadata": {**counts, **details}}
    if number == 39:
        place = {"startIndex": 3, "endIndex": 60, "uri": "https://x.example"}
        said["candidates"][0] |= {"finishReason": "STOP", "citationMetadata": {"citationSources": [place]}}
    return {**said, "modelVersion": "m", "responseId": "r1"}


def of_responses(*, with_logprobs: bool = False) -> list[tuple[str, Any]]:
    texts = [f"w{n} " for n in range(30)]
    weighed: list[list[Any]] = [[] for _ in texts]
    if with_logprobs:
        weighed = [
            [{"token": text, "logprob": -n / 8, "bytes": [*text.encode()]}] for n, text in enumerate(texts)
        ]
    response = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "output": []}
    item: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
    call = {"id": "fc_1", "type": "function_call", "call_id": "c", "name": "go", "arguments": ""}
    at = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    part = {"type": "output_text", "text": "".join(texts), "annotations": []}
    asked = {"item_id": "fc_1", "output_index": 1}
    whole = [{**item, "content": [part]}, {**call, "arguments": '{"a":' + "1" * 20 + "}"}]
    said: list[tuple[str, Any]] = [
        ("response.created", {"response": {**response, "status": "in_progress"}}),
        ("response.output_item.added", {"output_index": 0, "item": item}),
        *(
            ("response.output_text.delta", {**at, "delta": text, "logprobs": tokens})
            for text, tokens in zip(texts, weighed, strict=True)
        ),
        ("response.output_text.done", {**at, "text": part["text"], "logprobs": [*chain(*weighed)]}),
        ("response.output_item.done", {"output_index": 0, "item": whole[0]}),
        ("response.output_item.added", {"output_index": 1, "item": call}),
        *(
            ("response.function_call_arguments.delta", {**asked, "delta": piece})
            for piece in ['{"a":', *"1" * 20, "}"]
        ),
        ("response.function_call_arguments.done", {**asked, "arguments": whole[1]["arguments"]}),
        ("response.completed", {"response": {**response, "status": "completed", "output": whole}}),
    ]
    for number, (name, event) in enumerate(said):
        # Now and then a number is left out, or there is none.
        event["sequence_number"] = number + (number > 20)
        if number % 13 == 12:
            del event["sequence_number"]
        event |= {"type": name, "obfuscation": "x" * (number % 4)}
    return said


def with_ids(number: int) -> Any:
    """A chunk of OpenAI's dialect with the ids of its tokens. Now and then there are none, or odd ones."""
    said = chunk({"content": f"w{number} "})
    odd = [[], None, [-1], [1.5], "x"][number // 9 % 5]
    said["choices"][0]["token_ids"] = odd if number % 9 == 8 else [number, 5]
    return said


def of_llama(number: int) -> Any:
    """An event of llama.cpp's own. Now and then one of another answer comes between."""
    counts = {"tokens_predicted": number, "tokens_evaluated": 9}
    about = {"index": int(number == 60), "id_slot": -1, "stop": False}
    return {**about, "content": f"w{number} ", "tokens": [number] if number < 12 else [], **counts}


def with_timings(number: int) -> Any:
    """A chunk of llama.cpp's that tells how long it took. Now and then that is odd, or less than before."""
    said = chunk({"content": f"w{number} "}, choice=int(number in (30, 31)))
    timings: dict[str, Any] = {"cache_n": 16, "prompt_n": 4, "prompt_ms": 2.5, "predicted_n": number}
    timings |= {"predicted_ms": number + 0.25, "predicted_per_second": 1000 / (number + 1)}
    odd: list[dict[str, Any]] = [
        *({"predicted_ms": ms} for ms in (7, -1.5, 1e300, 2**63, None, "odd")),
        *({"predicted_n": count} for count in (2.5, -1, 2**63)),
        *({"cache_n": None}, {"more": [1]}, {"prompt_ms": 0.0}),
    ]
    return {**said, "timings": timings | (odd[number // 5 % len(odd)] if number % 5 == 4 else {})}


def of_tgi(number: int) -> Any:
    """An event of TGI's own. Now and then its token is special, or has no number."""
    token: dict[str, Any] = {
        "id": 500 + number,
        "text": f"w{number} ",
        "logprob": -number / 8,
        "special": False,
    }
    odd: list[dict[str, Any]] = [{"special": True}, {"logprob": None}, {"id": None}, {"logprob": 0}]
    if number % 9 == 8:
        token |= odd[number // 9 % len(odd)]
    return {"index": number, "token": token, "generated_text": None, "details": None}


def of_cohere(number: int) -> Any:
    """A piece of Cohere's with the one token of it. Now and then there are two, or none."""
    text = f"w{number} "
    said: dict[str, Any] = {"text": text, "token_ids": [500 + number], "logprobs": [-number / 8]}
    odd: list[dict[str, Any]] = [
        {"token_ids": [1, 2], "logprobs": [-1.0, -2.0]},
        {"logprobs": []},
        {"token_ids": [1.5]},
        {"text": None},
        {"token_ids": [-1]},
    ]
    if number % 9 == 8:
        said |= odd[number // 9 % len(odd)]
    delta = {"message": {"content": {"text": text}}}
    return {"type": "content-delta", "index": 0, "delta": delta, "logprobs": said}


def streams_that_count() -> dict[str, bytes]:
    """Streams that say more than a text in each event, by provider and kind."""
    end = sse(chunk({}, "stop"))
    ends = sse(chunk({}, "stop"), chunk({}, "stop", choice=1))
    return {
        "vllm: counts": sse(*map(running_counts, range(40)), done=False) + end,
        "sglang: counts of two": sse(*(running_counts(n, n % 2) for n in range(40)), done=False) + ends,
        "vllm: kept lists": sse(*map(with_ids, range(50)), done=False) + end,
        "llamacpp: kept counts": sse(
            *map(of_llama, range(70)),
            *({**of_llama(n), "stop": True, "stop_type": "eos"} for n in (60, 70)),
            done=False,
        ),
        "openai: tokens": sse(*map(with_tokens, range(50)), done=False) + end,
        "llamacpp: kept timings": sse(*map(with_timings, range(90)), done=False) + ends,
        "tgi: kept ids": sse(*map(of_tgi, range(50)), done=False)
        + sse({**of_tgi(50), "generated_text": "w0", "details": {"finish_reason": "length"}}, done=False),
        "cohere: kept ids": sse(
            {"type": "message-start", "id": "r1", "delta": {"message": {"role": "assistant"}}},
            {
                "type": "content-start",
                "index": 0,
                "delta": {"message": {"content": {"type": "text", "text": ""}}},
            },
            *map(of_cohere, range(50)),
            {"type": "content-end", "index": 0},
            {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}},
            done=False,
        ),
        "gemini: counts": sse(*map(of_gemini, range(40)), done=False),
        "openai_responses: numbers": b"".join(
            b"event: %b\ndata: %b\n\n" % (name.encode(), orjson.dumps(event))
            for name, event in of_responses()
        ),
        "openai_responses: tokens": b"".join(
            b"event: %b\ndata: %b\n\n" % (name.encode(), orjson.dumps(event))
            for name, event in of_responses(with_logprobs=True)
        ),
    }


MADE = [
    (name.partition(":")[0], Capture(case=name, file=Path(name), body=body, stream=True))
    for name, body in streams_that_count().items()
]


def reads(body: bytes, cut: str) -> list[bytes]:
    """*body* as a socket may give it: an event at a time, in odd pieces, or all at once."""
    if cut == "event":
        separator = next((s for s in (b"\r\n\r\n", b"\n\n") if s in body), b"\n")
        *events, rest = body.split(separator)
        return [*(event + separator for event in events), rest]
    size = 97 if cut == "odd" else len(body) or 1
    return [body[start : start + size] for start in range(0, len(body), size)]


@functools.cache
def mapper_of(provider: str, *, shortcut: bool) -> Mapper:
    """The provider's mapper, with the repetition rule or without it."""
    return attrs.evolve(registry.mapper(provider), is_unmodified=shortcut)


def made(provider: str, chunks: list[bytes], status: int, *, shortcut: bool, raw: bool) -> Any:
    """Everything that is made of *chunks*: deltas, what was there in the middle, response or error, bytes."""
    mapper = mapper_of(provider, shortcut=shortcut)
    options = ReaderOptions(status=status, id_factory=lambda: "made", clock=CLOCK, keep_raw=raw)
    reading = Reader(mapper, options)
    deltas: list[ResponseDelta] = []
    partials, error, response = [], None, None
    try:
        for number, piece in enumerate(chunks):
            for delta in reading.read(piece):
                deltas.append(delta)
                if len(deltas) in (5, 23, 24):  # also in the middle of a read
                    partials.append((to_jsonable(reading.partial("asked for")), reading.last_event()))
            if number in (3, 11):
                partials.append((to_jsonable(reading.partial("asked for")), reading.has_ended))
        deltas += reading.finish()
        response = reading.response()
    except CrosswalkError as caught:
        response = getattr(caught, "partial", None)
        error = f"{type(caught).__name__}: {caught}"
    kept = None if response is None else (to_jsonable(response), response.raw_events.frames)
    return to_jsonable(deltas), partials, kept, error


def assert_same(provider: str, capture: Capture, body: bytes, cut: str, *, raw: bool = True) -> None:
    chunks = reads(body, cut)
    ways = [made(provider, chunks, capture.status, shortcut=on, raw=raw) for on in (True, False)]
    assert ways[0] == ways[1], f"{capture.case}, {cut}"


@pytest.mark.parametrize(("provider", "capture"), MADE, ids=lambda value: getattr(value, "case", ""))
def test_values_that_change_alongside_the_text_are_read_as_the_hooks_read_them(
    provider: str, capture: Capture
) -> None:
    for cut in ("event", "odd", "whole"):
        for raw in (True, False):
            assert_same(provider, capture, capture.body, cut, raw=raw)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_capture_is_read_as_the_hooks_read_it(folder: Path) -> None:
    for capture in captures(folder):
        for cut in ("event", "odd", "whole"):
            assert_same(folder.name, capture, capture.body, cut)


def mutated(body: bytes, chance: random.Random) -> bytes:
    """*body* with some bytes put in, left out, or said again."""
    data = bytearray(body)
    for _ in range(chance.randint(1, 4)):
        place, kind = chance.randrange(len(data) + 1), chance.random()
        if kind < 0.5:
            data[place : place + chance.randint(0, 3)] = chance.choice(BITS)
        elif kind < 0.75:
            start = chance.randrange(len(data) + 1)
            data[place:place] = data[start : start + chance.randint(1, 300)]
        else:
            del data[place : place + chance.randint(1, 40)]
    return bytes(data)


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_broken_answers_are_read_as_the_hooks_read_them(seed: int) -> None:
    chance = random.Random(seed)
    found = [(folder.name, capture) for folder in FOLDERS for capture in captures(folder)]
    streams = [(provider, capture) for provider, capture in found if 1000 < len(capture.body) < 40_000]
    streams += MADE * (len(streams) // 5 // len(MADE))
    for _ in range(MUTATIONS):
        provider, capture = chance.choice(streams)
        cut = chance.choice(("event", "event", "odd", "whole"))
        assert_same(provider, capture, mutated(capture.body, chance), cut, raw=chance.random() < 0.7)
