"""The work of reading grows with the answer and no faster, whichever part of it comes many times. No clock is asked.

Each array of each captured body gets many items, and each object many keys. The work is counted: lines of Python, and the
characters that methods of texts and bytes look through. A search of the whole for each part shows as four times the work.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from types import FrameType
from typing import Any, Final

import pytest

from crosswalk import normalize, normalize_stream
from crosswalk.convert import convert
from crosswalk.errors import CrosswalkError
from pages import ROOT
from wires import chunk, sse

CAPTURES: Final = ROOT / "tests/captures"
SIZES: Final = 64, 128, 256
_CHARACTERS: Final = 32
"""So many characters that a method looks through count as one line."""


def work_of(call: Callable[[], object]) -> int:
    """The lines that *call* runs, and what methods of texts and bytes look through while it runs."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += 1
        return trace

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        if event == "c_call":
            text = getattr(argument, "__self__", None)
            count += len(text) // _CHARACTERS if isinstance(text, str | bytes) else 0

    before = sys.gettrace(), sys.getprofile()
    sys.settrace(trace)
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(before[1])
        sys.settrace(before[0])
    return count


def grows_too_fast(payload_of: Callable[[int], bytes], read: Callable[[bytes], object]) -> str:
    """The work for each of :data:`SIZES` if it grows faster than they do, otherwise nothing."""
    works = []
    for size in SIZES:
        payload = payload_of(size)
        read(payload)  # what is made at the first use is made
        works.append(work_of(partial(read, payload)))
    small, middle, large = works
    # Twice as many more items are twice as much more work, and a look at a short body that a long one does not get.
    return "" if large - middle <= 2.15 * (middle - small) + 4_000 else f"{works}"


def read_whole(provider: str) -> Callable[[bytes], object]:
    def read(body: bytes) -> None:
        with suppress(CrosswalkError):  # what is there many times may be an error
            normalize(body, provider)

    return read


def paths_in(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The paths to the objects of *value*, and to its arrays that are not empty, through the first item of each."""
    if isinstance(value, dict):
        yield path
        for key, item in value.items():
            yield from paths_in(item, (*path, key))
    elif isinstance(value, list) and value:
        yield path
        yield from paths_in(value[0], (*path, 0))


def numbered(value: Any, number: int) -> Any:
    """A copy of *value* with the *number* as its indexes and in its ids."""
    if isinstance(value, list):
        return [numbered(item, number) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: number if key == "index" else f"{item}{number}" if key in IDS else numbered(item, number)
        for key, item in value.items()
    }


IDS: Final = {"id", "call_id", "toolUseId", "item_id"}


def grown(body: Any, path: tuple[str | int, ...], size: int) -> bytes:
    """The *body* with *size* items in the array at *path*, or so many more keys in the object there."""
    body = json.loads(json.dumps(body))
    place = body
    for step in path:
        place = place[step]
    if isinstance(place, list):
        place[:] = [numbered(place[0], number) for number in range(size)]
    else:
        place |= {f"x_key{number}": number for number in range(size)}
    return json.dumps(body).encode()


@cache
def bodies_of(provider: str) -> dict[str, tuple[Any, tuple[str | int, ...]]]:
    """By path, a captured body with an array or an object there."""
    found: dict[str, tuple[Any, tuple[str | int, ...]]] = {}
    for file in sorted((CAPTURES / provider).glob("*.response.json")):
        try:
            body = json.loads(file.read_bytes())
        except ValueError:  # a damaged one
            continue
        for path in paths_in(body):
            found.setdefault(".".join("[]" if step == 0 else str(step) for step in path), (body, path))
    return found


@pytest.mark.untraced
@pytest.mark.parametrize(
    "provider",
    [
        pytest.param(folder.name, marks=() if folder.name in {"bedrock", "openai"} else pytest.mark.sweep)
        for folder in sorted(CAPTURES.iterdir())
        if folder.is_dir()
    ],
)
def test_each_part_of_a_body_costs_what_it_costs_alone(provider: str) -> None:
    read = read_whole(provider)
    wrong = {
        name: growth
        for name, (body, path) in bodies_of(provider).items()
        if (growth := grows_too_fast(partial(grown, body, path), read))
    }
    assert not wrong


# --------------------------------------------------------------- calls, and their arguments


def calls(size: int, arguments: str, beside: str = "") -> bytes:
    """A body with *size* tool calls, with the *arguments* about their number."""
    made = ",".join(
        f'{{"id":"c{number}","type":"function","function":{{"name":"f","arguments":{arguments.replace("NUMBER", str(number))}}}}}'
        for number in range(size)
    )
    return (
        f'{{"id":"c","object":"chat.completion","created":1,"model":"m",{beside}"choices":[{{"index":0,"message":'
        f'{{"tool_calls":[{made}]}},"finish_reason":"tool_calls"}}]}}'
    ).encode()


@pytest.mark.untraced
@pytest.mark.parametrize("beside", ["", '"x":{"k":1,"k":2},'], ids=["", "a key twice beside them"])
@pytest.mark.parametrize(
    "arguments",
    [r'"{\"a\":1NUMBER}"', '{"a":1NUMBER}', '{"a":1NUMBER,"b":2,"b":3}'],
    ids=["text", "object", "object with a key twice"],
)
def test_many_calls_cost_what_each_costs(arguments: str, beside: str) -> None:
    assert not grows_too_fast(lambda size: calls(size, arguments, beside), read_whole("vllm"))


def test_each_of_many_calls_keeps_its_arguments_as_they_were_sent() -> None:
    """As text that looks like the object of another call, and as an object with a repeated key."""
    given = [f'{{"a":1{number},"b":2,"b":3}}' for number in range(40)]
    body = calls(40, "NUMBER").decode()
    for number, one in enumerate(given):
        sent = one if number % 2 else json.dumps(one)
        body = body.replace(f'"arguments":{number}}}', f'"arguments":{sent}}}')
    assert [call.arguments for call in normalize(body, "vllm").tool_calls] == given


# --------------------------------------------------------------- streams


def chat_calls(size: int) -> list[Any]:
    return [
        chunk({"tool_calls": [{"index": number, "id": f"c{number}", "type": "function",
                               "function": {"name": "f", "arguments": "{}"}}]})
        for number in range(size)
    ]  # fmt: skip


def chat_new_keys(size: int) -> list[Any]:
    return [chunk({"content": "a"}, **{f"x{number}": number}) for number in range(size)]


def chat_new_items(size: int) -> list[Any]:
    return [chunk({"content": "a"}, x_items=[number]) for number in range(size)]


def anthropic_blocks(size: int) -> list[Any]:
    return [
        {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "model": "c",
                                              "content": [], "usage": {"input_tokens": 1, "output_tokens": 1}}},
        *(event for number in range(size) for event in (
            {"type": "content_block_start", "index": number, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": number, "delta": {"type": "text_delta", "text": "a"}},
            {"type": "content_block_stop", "index": number})),
    ]  # fmt: skip


def gemini_parts(size: int) -> list[Any]:
    return [
        {"candidates": [{"content": {"parts": [{"text": "a", "thought": number % 2 == 0}], "role": "model"}, "index": 0}],
         "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": number, "totalTokenCount": number + 1},
         "modelVersion": "g"}
        for number in range(size)
    ]  # fmt: skip


def responses_items(size: int) -> list[Any]:
    """Messages that come in pieces, each followed by its whole, and then all of them."""
    done, events = [], []
    for number in range(size):
        at = {"item_id": f"m{number}", "output_index": number, "content_index": 0}
        part = {"type": "output_text", "text": "ab", "annotations": []}
        item = {
            "type": "message",
            "id": f"m{number}",
            "role": "assistant",
            "status": "completed",
            "content": [part],
        }
        events += [
            {"type": "response.output_item.added", "output_index": number, "item": item | {"content": []}},
            {"type": "response.output_text.delta", **at, "delta": "ab"},
            {"type": "response.output_text.done", **at, "text": "ab"},
            {"type": "response.output_item.done", "output_index": number, "item": item},
        ]
        done.append(item)
    whole = {
        "id": "r",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "completed",
        "output": done,
    }
    return [*events, {"type": "response.completed", "response": whole}]


STREAMS: Final[dict[str, tuple[str, Callable[[int], list[Any]]]]] = {
    "calls": ("openai", chat_calls),
    "new keys": ("openai", chat_new_keys),
    "items of an unknown array": ("openai", chat_new_items),
    "content blocks": ("anthropic", anthropic_blocks),
    "parts": ("gemini", gemini_parts),
    "output items": ("openai_responses", responses_items),
}


@pytest.mark.untraced
@pytest.mark.parametrize("part", STREAMS)
def test_each_part_of_a_stream_costs_what_it_costs_alone(part: str) -> None:
    provider, events_of = STREAMS[part]

    def read(payload: bytes) -> None:
        with suppress(CrosswalkError):  # there is no end
            for _ in normalize_stream([payload], provider):
                pass

    assert not grows_too_fast(lambda size: sse(*events_of(size), done=provider == "openai"), read)


# ------------------------------------------------------------------------------- unknown fields, converted


def _message_events(size: int) -> list[dict[str, Any]]:
    about = {"type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None}
    blocks = [
        event
        for at in range(size)
        for event in (
            {"type": "content_block_start", "index": at, "content_block": {"type": "hologram", "z": at}},
            {"type": "content_block_stop", "index": at},
        )
    ]
    counts = {"input_tokens": 1, "output_tokens": 5}
    return [
        {"type": "message_start", "message": {**about, "id": "m", "usage": counts}},
        *blocks,
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": counts},
        {"type": "message_stop"},
    ]


def _unknown_blocks(size: int) -> bytes:
    events = _message_events(size)
    return b"".join(b"event: %s\ndata: %s\n\n" % (e["type"].encode(), json.dumps(e).encode()) for e in events)


def _chat_with(**more: Any) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}
    about = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    return json.dumps({**about, "choices": [choice], **more}).encode()


def _unknown_keys(size: int) -> bytes:
    return _chat_with(novel={f"key {at}": {"z": "Z"} for at in range(size)})


def _unknown_items(size: int) -> bytes:
    return _chat_with(novel=[{"index": at, "z": "Z"} for at in range(size)])


@pytest.mark.parametrize(
    ("provider", "form", "payload_of"),
    [
        ("anthropic", "anthropic", _unknown_blocks),
        ("anthropic", "openai-chat", _unknown_blocks),
        ("openai", "anthropic", _unknown_keys),
        ("openai", "openai-chat", _unknown_items),
    ],
)
def test_the_report_of_a_conversion_grows_with_the_unknown_fields(
    provider: str, form: str, payload_of: Callable[[int], bytes]
) -> None:
    works = []
    for size in SIZES:
        response = normalize(payload_of(size), provider, unknown="keep")
        write = partial(convert, response, form, losses="report")
        write()  # what is made at the first use is made
        works.append(work_of(write))
    # Over the whole range: a cache of patterns that overflows in the middle makes the last step look small.
    assert works[-1] <= 1.1 * works[0] * SIZES[-1] / SIZES[0], works


# ------------------------------------------------------------------------------- alternatives, converted


_BROKEN_CALL: Final = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "[1"}}
_LOSSY: Final = {
    "broken calls": ({"content": None, "tool_calls": [_BROKEN_CALL]}, "tool_calls"),
    "refusals": ({"content": None, "refusal": "No."}, "stop"),
    "cancelled texts": ({"content": "Hi"}, "abort"),
}
"""A message and its finish word, of which a form loses something."""


@pytest.mark.untraced
@pytest.mark.parametrize("kind", _LOSSY)
def test_the_report_of_a_conversion_grows_with_the_alternatives(kind: str) -> None:
    message, word = _LOSSY[kind]
    works = []
    for size in (64, 640):
        choices = [{"index": at, "message": message, "finish_reason": word} for at in range(size)]
        response = normalize(_chat_with(choices=choices), "openai")
        write = partial(convert, response, "gemini", losses="report")
        assert len(write().report.differences) >= 2 * size
        works.append(work_of(write))
    assert works[-1] <= 1.2 * works[0] * 640 / 64, works
