"""Streams of every wire form, with what changes from event to event: read live, one event a read, and from a log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs
import orjson

from benchmarks.least import parsing_reader, stream_readers, text_of
from benchmarks.measure import Above, medians, print_table
from benchmarks.payloads import chunks, words
from crosswalk import registry
from crosswalk.mapping import Reader, ReaderOptions

PIECES = 1_000
Event = tuple[str | None, dict[str, Any]]


@attrs.frozen
class Stream:
    """One row of the table.

    Attributes:
        provider: whose stream it is.
        events: its events, each with its SSE name.
        live: how many times ``orjson.loads`` it may cost, an event a read.
        logged: the same in reads of 4 KiB, for who wants the response alone.
    """

    provider: str
    events: Callable[[list[str]], Iterable[Event]]
    live: float
    logged: float


def _chunk(delta: dict[str, Any], finish: str | None = None, *, choice: int = 0, **more: Any) -> Event:
    said = {
        "index": choice,
        "delta": delta,
        "logprobs": None,
        "finish_reason": finish,
        **more.pop("choice_", {}),
    }
    return None, {
        "id": "chatcmpl-9ca274c8eee52b9f",
        "object": "chat.completion.chunk",
        "created": 1795168361,
        "model": "tiny",
        "choices": [said],
        **more,
    }


def _text(pieces: list[str]) -> Iterable[Event]:
    yield from (_chunk({"content": piece}) for piece in pieces)
    yield _chunk({}, "stop")


def _reasoning(pieces: list[str]) -> Iterable[Event]:
    yield from (_chunk({"reasoning": piece}) for piece in pieces)
    yield _chunk({"content": "So."}, "stop")


def _arguments(pieces: list[str]) -> Iterable[Event]:
    function = {"name": "save", "arguments": ""}
    yield _chunk({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]})
    yield from (_chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}) for piece in pieces)
    yield _chunk({}, "tool_calls")


def _choices(count: int) -> Callable[[list[str]], Iterable[Event]]:
    def events(pieces: list[str]) -> Iterable[Event]:
        yield from (_chunk({"content": piece}, choice=n % count) for n, piece in enumerate(pieces))
        yield from (_chunk({}, "stop", choice=n) for n in range(count))

    return events


def _logprobs(pieces: list[str]) -> Iterable[Event]:
    for piece in pieces:
        token = {"token": piece, "logprob": -0.25, "bytes": list(piece.encode())}
        top = [{**token, "logprob": -0.25 - n} for n in range(2)]
        yield _chunk(
            {"content": piece},
            choice_={"logprobs": {"content": [{**token, "top_logprobs": top}], "refusal": None}},
        )
    yield _chunk({}, "stop")


def _running_usage(pieces: list[str]) -> Iterable[Event]:
    for number, piece in enumerate(pieces):
        usage = {"prompt_tokens": 20, "total_tokens": 21 + number, "completion_tokens": 1 + number}
        yield _chunk({"content": piece}, usage=usage)
    yield _chunk({}, "stop")


def _padded(pieces: list[str]) -> Iterable[Event]:
    for number, piece in enumerate(pieces):
        yield _chunk({"content": piece}, obfuscation="x" * (number % 9 + 1))
    yield _chunk({}, "stop")


def _ollama(key: str) -> Callable[[list[str]], Iterable[Event]]:
    def line(message: dict[str, Any], number: int, **more: Any) -> Event:
        at = f"2026-11-20T09:48:23.{371791712 + number * 37:09d}Z"
        said = {"role": "assistant", "content": "", **message}
        return None, {"model": "tiny", "created_at": at, "message": said, "done": False, **more}

    def events(pieces: list[str]) -> Iterable[Event]:
        yield from (line({key: piece}, number) for number, piece in enumerate(pieces))
        yield line({}, len(pieces), done=True, done_reason="stop", prompt_eval_count=20, eval_count=1000)

    return events


def _anthropic(block: dict[str, Any], kind: str, key: str) -> Callable[[list[str]], Iterable[Event]]:
    def named(type: str, **event: Any) -> Event:
        return type, {"type": type, **event}

    def events(pieces: list[str]) -> Iterable[Event]:
        usage = {"input_tokens": 20, "output_tokens": 1}
        message = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "tiny",
            "content": [],
            "usage": usage,
        }
        yield named("message_start", message=message)
        yield named("content_block_start", index=0, content_block=block)
        for piece in pieces:
            yield named("content_block_delta", index=0, delta={"type": kind, key: piece})
        yield named("content_block_stop", index=0)
        end = {"stop_reason": "end_turn", "stop_sequence": None}
        yield named("message_delta", delta=end, usage={"output_tokens": 1000})
        yield named("message_stop")

    return events


def _gemini(pieces: list[str]) -> Iterable[Event]:
    for number, piece in enumerate(pieces):
        finish = {"finishReason": "STOP"} if number == len(pieces) - 1 else {}
        candidate = {"content": {"parts": [{"text": piece}], "role": "model"}, **finish, "index": 0}
        counts = {"promptTokenCount": 20, "candidatesTokenCount": number, "totalTokenCount": 20 + number}
        yield (
            None,
            {"candidates": [candidate], "usageMetadata": counts, "modelVersion": "tiny", "responseId": "r1"},
        )


def _responses(pieces: list[str]) -> Iterable[Event]:
    numbers = iter(range(10**9))

    def named(type: str, **event: Any) -> Event:
        return type, {"type": type, "sequence_number": next(numbers), **event}

    response = {"id": "resp_1", "object": "response", "created_at": 1795168361, "model": "tiny", "output": []}
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
    part = {"type": "output_text", "text": "", "annotations": []}
    at = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    yield named("response.created", response={**response, "status": "in_progress"})
    yield named("response.output_item.added", output_index=0, item=item)
    yield named("response.content_part.added", **at, part=part)
    for piece in pieces:
        yield named("response.output_text.delta", **at, delta=piece, logprobs=[], obfuscation="xyz")
    whole = {**part, "text": "".join(pieces)}
    done = {**item, "status": "completed", "content": [whole]}
    yield named("response.output_text.done", **at, text=whole["text"])
    yield named("response.content_part.done", **at, part=whole)
    yield named("response.output_item.done", output_index=0, item=done)
    usage = {"input_tokens": 20, "output_tokens": 1000, "total_tokens": 1020}
    yield named(
        "response.completed", response={**response, "status": "completed", "output": [done], "usage": usage}
    )


def _cohere(pieces: list[str]) -> Iterable[Event]:
    def named(type: str, **event: Any) -> Event:
        return type, {"type": type, **event}

    def content(**said: str) -> dict[str, Any]:
        return {"message": {"content": said}}

    empty = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
    yield named("message-start", id="c14c", delta={"message": empty})
    yield named("content-start", index=0, delta=content(type="text", text=""))
    for piece in pieces:
        yield named("content-delta", index=0, delta=content(text=piece))
    yield named("content-end", index=0)
    counts = {"tokens": {"input_tokens": 20.0, "output_tokens": 1000.0}}
    yield named("message-end", delta={"finish_reason": "COMPLETE", "usage": counts})


def _bedrock(pieces: list[str]) -> Iterable[Event]:
    yield "messageStart", {"role": "assistant", "p": "abcdef"}
    for number, piece in enumerate(pieces):
        padding = "abcdefghijkl"[: number % 12 + 1]
        yield "contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": piece}, "p": padding}
    yield "contentBlockStop", {"contentBlockIndex": 0, "p": "ab"}
    yield "messageStop", {"stopReason": "end_turn", "p": "abcd"}
    usage = {"inputTokens": 20, "outputTokens": 1000, "totalTokens": 1020}
    yield "metadata", {"usage": usage, "metrics": {"latencyMs": 430}, "p": "abc"}


STREAMS = {
    "vLLM: text": Stream("vllm", _text, 1.5, 1.1),
    "vLLM: reasoning": Stream("vllm", _reasoning, 1.5, 1.1),
    "vLLM: tool arguments": Stream("vllm", _arguments, 1.5, 1.1),
    "vLLM: two choices": Stream("vllm", _choices(2), 3, 2),
    "vLLM: eight choices": Stream("vllm", _choices(8), 3, 2),
    "vLLM: log probabilities": Stream("vllm", _logprobs, 3, 2),
    "vLLM: usage in each event": Stream("vllm", _running_usage, 3, 2),
    "OpenAI: padded text": Stream("openai", _padded, 3, 2),
    "Ollama: text": Stream("ollama", _ollama("content"), 2.2, 1.3),
    "Ollama: thinking": Stream("ollama", _ollama("thinking"), 2.2, 1.3),
    "Anthropic: text": Stream(
        "anthropic", _anthropic({"type": "text", "text": ""}, "text_delta", "text"), 2, 1.5
    ),
    "Anthropic: thinking": Stream(
        "anthropic", _anthropic({"type": "thinking", "thinking": ""}, "thinking_delta", "thinking"), 2, 1.5
    ),
    "Anthropic: tool arguments": Stream(
        "anthropic",
        _anthropic(
            {"type": "tool_use", "id": "toolu_1", "name": "save", "input": {}},
            "input_json_delta",
            "partial_json",
        ),
        2,
        1.5,
    ),
    "Gemini: text": Stream("gemini", _gemini, 3, 2),
    "Responses: text": Stream("openai_responses", _responses, 3, 2),
    "Cohere: text": Stream("cohere", _cohere, 3, 2),
    "Bedrock: text, unframed": Stream("bedrock", _bedrock, 3, 2),
}
IN_THE_WAY = {
    "live": "least knows the stream; here a template is found, its limits, numbers and counts are kept, and the state "
    "of the answer is right after each event, however the stream goes on",
    "logged": "as live; and the few events of an answer that are like no other, and its response, take as long as a quarter "
    "of these thousand events and more",
    "general": "least takes the text and leaves the rest unread; the hooks of a plugin, Python too, take an event apart key "
    "by key and what they leave is kept, of a short event as of a long one",
}
GENERAL = 10.0
"""How many times ``orjson.loads`` any stream may cost where nothing is learnt from it."""


def _framed(provider: str, name: str | None, data: bytes) -> bytes:
    if provider == "ollama":
        return data + b"\n"
    event = b"" if name is None else b"event: " + name.encode() + b"\n"
    return event + b"data: " + data + b"\n\n"


def _gaps(events: Sequence[bytes]) -> tuple[list[bytes], list[Any]]:
    """The bytes of the last of *events* around what differs from one of those before, and that: what nobody can know."""
    *before, last = map(orjson.loads, events)
    changing = [path for path, value in _leaves(last) if any(_at(other, path) != value for other in before)]
    values = [_at(last, path) for path in changing]
    for path in changing:
        _at(last, path[:-1])[path[-1]] = _MARK
    return orjson.dumps(last).split(orjson.dumps(_MARK)), values


_MARK = "\N{CHECK MARK}"


def _leaves(value: Any, *path: Any) -> Iterable[tuple[tuple[Any, ...], Any]]:
    """Each text, number and list of numbers in *value*, with the keys that lead there."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, *path, key)
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        for number, item in enumerate(value):
            yield from _leaves(item, *path, number)
    else:
        yield path, value


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def ways_to_read(stream: Stream) -> dict[str, Callable[[], object]]:
    events = [(name, orjson.dumps(event)) for name, event in stream.events(words(PIECES))]
    live = [_framed(stream.provider, name, data) for name, data in events]
    if stream.provider in ("vllm", "openai"):
        live.append(b"data: [DONE]\n\n")
    logged = chunks(b"".join(live))
    learning = registry.mapper(stream.provider)
    general = attrs.evolve(learning, is_plain=False)
    middle, reader, deltas = len(events) // 2, Reader(learning, ReaderOptions()), []
    for frame in live[: middle + 1]:
        deltas = list(reader.read(frame))
    datas = [data for _, data in events]
    around, delta = live[middle].split(datas[middle]), deltas[-1]
    least_live, least_logged = stream_readers(*around, *_gaps(datas[middle - 12 : middle + 1]), delta)
    leaves, text = _leaves(orjson.loads(datas[middle])), text_of(delta)
    place = next(path for path, value in leaves if value == text)
    least_general = parsing_reader(*around, place, delta, text)

    for least, reads in ((least_live, live), (least_logged, logged), (least_general, logged)):
        texts, raw = least(reads)
        assert len(texts) > PIECES - 20, "it has not read all"
        assert set(raw) <= set(datas), "it has read something else"

    def read(reads: list[bytes], mapper: Any, *, shows: bool = True) -> object:
        reader = Reader(mapper, ReaderOptions(), shows=shows)
        for one in reads:
            for _ in reader.read(one):
                pass
        for _ in reader.finish():
            pass
        return reader.response()

    return {
        "floor": lambda: [orjson.loads(data) for data in datas],
        "least live": lambda: least_live(live),
        "least logged": lambda: least_logged(logged),
        "least general": lambda: least_general(logged),
        "live": lambda: read(live, learning),
        "logged": lambda: read(logged, learning, shows=False),
        "each delta": lambda: read(logged, learning),
        "general": lambda: read(logged, general),
    }


def main(rounds: int) -> list[Above]:
    """Print the table of streams; give those that cost more than they may."""
    rows, above = [], []
    for name, stream in STREAMS.items():
        found = medians(ways_to_read(stream), rounds)
        times = {way: spent / found["floor"] for way, spent in found.items()}
        bars = {"live": stream.live, "logged": stream.logged, "general": GENERAL}
        cells = [f"{found['floor'] / PIECES * 1e6:.2f}"]
        for way, bar in bars.items():
            least = times[f"least {way}"]
            cells += [f"{least:.1f}", f"{times[way]:.1f} ({bar:g})"]
            if times[way] > bar:
                above.append(Above(f"{name}, {way}", times[way], bar, least, IN_THE_WAY[way]))
            if way == "logged":
                cells.append(f"{times['each delta']:.1f}")
        rows.append((name, *cells))
    print_table(
        f"streams of {PIECES:,} pieces, times orjson.loads (and how many it may be)",
        ("", "floor us", "least", "live", "least", "logged", "each delta", "least", "nothing learnt"),
        rows,
    )
    return above
