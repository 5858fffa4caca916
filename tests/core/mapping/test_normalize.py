"""The entry points: bodies, streams, asynchronous streams."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import orjson
import pytest
from hypothesis import given, strategies as st

from crosswalk import (
    ChatResponse,
    CrosswalkError,
    ErrorInfo,
    ErrorKind,
    FinishReason,
    FrozenObject,
    IncompleteStreamError,
    InvalidJSONError,
    Limits,
    LineTooLongError,
    NestingTooDeepError,
    ResponseDelta,
    ResponseValidationError,
    StreamState,
    UnknownProviderError,
    anormalize_stream,
    normalize,
    normalize_stream,
    to_json,
    to_jsonable,
)
from crosswalk.plugin.registry import Registry
from crosswalk.plugins import hookimpl
from wires import CLOCK, NOW, Echo, body, chunk, line, ndjson, registry_of, sse, usage

FIXED: dict[str, Any] = {"id_factory": lambda: "made", "clock": CLOCK}
TEXT = '{"model":"m","response":"Grüße 🦙","done":true,"done_reason":"stop"}'
DATA = TEXT.encode()
CHUNKS = [
    sse(chunk({"role": "assistant", "content": ""}), done=False),
    sse(chunk({"content": "Hel"}), chunk({"content": "lo"}), done=False),
    sse(chunk({"content": "!"}, "stop"), done=False),
    sse(chunk(None, usage=usage(1, 2))),
]


@pytest.mark.parametrize(
    "given_body",
    [
        DATA,
        bytearray(DATA),
        memoryview(DATA),
        memoryview(b"xx" + DATA + b"xx")[2:-2],
        TEXT,
        orjson.loads(DATA),
        FrozenObject(orjson.loads(DATA)),
    ],
    ids=["bytes", "bytearray", "memoryview", "a part", "str", "dict", "frozen"],
)
def test_a_body_may_have_any_form(given_body: Any) -> None:
    """Bytes of every kind, text, and the decoded object are the same answer."""
    response = normalize(given_body, "ollama", **FIXED)
    assert response.text == "Grüße 🦙"
    assert to_json(response) == to_json(normalize(DATA, "ollama", **FIXED))
    assert orjson.loads(response.raw_events.frames[0]) == orjson.loads(DATA)


def deep(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = {"x": value}
    return value


@pytest.mark.parametrize(
    ("given_body", "error_type"),
    [
        ('{"x":"\ud800"}', InvalidJSONError),
        ({"x": {1, 2}}, InvalidJSONError),
        ({"x": 10**4300}, InvalidJSONError),
        ({1: "x"}, InvalidJSONError),
        (deep(10_000), InvalidJSONError),
        (deep(230), NestingTooDeepError),
        ({}, CrosswalkError),
        (b"{", InvalidJSONError),
        (b"", IncompleteStreamError),
        (b"[]", CrosswalkError),
        (b"7", CrosswalkError),
        (b"null", CrosswalkError),
    ],
)
@pytest.mark.parametrize("provider", ["ollama", "vllm"])
def test_what_is_no_body_is_a_typed_error(
    given_body: Any, error_type: type[Exception], provider: str
) -> None:
    """Lone surrogates, sets, huge numbers, keys that are no text, too deep: nothing of it surfaces untyped."""
    with pytest.raises(error_type):
        normalize(given_body, provider)


def test_id_and_clock_are_asked_only_where_the_provider_is_silent() -> None:
    """A provider's own id and time are used. Made-up ones are marked (P8)."""
    response = normalize(DATA, "ollama", **FIXED)
    assert (response.id, response.created) == ("made", NOW)
    assert response.metadata.provenance["id"] == "synthetic"
    assert response.metadata.provenance["created"] == "synthetic"
    response = normalize(body({"content": "Hi"}), "vllm", **FIXED)
    assert (response.id, response.created.timestamp()) == ("chatcmpl-1", 1.0)
    assert not {"id", "created"} & set(response.metadata.provenance)
    assert normalize(DATA, "ollama").id != normalize(DATA, "ollama").id


def test_the_options_reach_the_reader() -> None:
    """status, unknown, keep_raw, limits and registry do what they say."""
    error = normalize(b"gone", "vllm", status=404)
    assert (error.finish_reason, error.refusal) == (FinishReason.ERROR, "gone")
    odd = normalize(body({"content": "Hi"}, "eos"), "vllm", unknown="keep")
    assert odd.metadata.provenance["finish_reason"] == "unmapped"
    assert len(normalize(DATA, "ollama", keep_raw=False).raw_events) == 0
    with pytest.raises(LineTooLongError):
        normalize(DATA, "ollama", limits=Limits(line_bytes=10))
    assert normalize(b'{"text":"Hi"}', "echo", registry=registry_of(echo=Echo())).text == "Hi"
    calls: list[tuple[Any, Any]] = [(normalize, b""), (normalize_stream, []), (anormalize_stream, [])]
    for call, empty in calls:
        with pytest.raises(UnknownProviderError):
            call(empty, "nobody", registry=registry_of())


@pytest.mark.parametrize("body", [{"a"}, 5, None, iter(())])
def test_what_is_no_body_is_refused_with_what_is(body: Any) -> None:
    """A set, a number or nothing at all is a mistake in the program: the message says what to pass instead."""
    with pytest.raises(TypeError, match="bytes, text or decoded JSON object, not "):
        normalize(body, "ollama")


@pytest.mark.parametrize("chunks", [b"{}", {}, bytearray()])
def test_a_whole_answer_is_no_stream_of_chunks(chunks: Any) -> None:
    """Bytes are an iterable too, but of numbers."""
    with pytest.raises(TypeError, match="for a whole answer call normalize"):
        normalize_stream(chunks, "ollama")


def test_a_file_name_is_no_stream() -> None:
    with pytest.raises(TypeError, match="not str: open a file"):
        normalize_stream("answer.sse", "ollama")


def test_a_body_is_a_stream_of_length_one() -> None:
    """A stream may be given whole to normalize, a body to normalize_stream (P2)."""
    stream = normalize(b"".join(CHUNKS), "vllm")
    assert (stream.text, stream.usage.total_tokens) == ("Hello!", 3)
    whole = normalize_stream([DATA], "ollama", **FIXED)
    assert [delta.content_delta for delta in whole] == ["Grüße 🦙", None]
    assert whole.response.same_content(normalize(DATA, "ollama", **FIXED))


# ---------------------------------------------------------------------------------------------- streams


class Source:
    """Chunks that remember how many of them were asked for, and whether they were closed."""

    def __init__(self, chunks: list[bytes], failure: BaseException | None = None) -> None:
        self.chunks, self.failure = chunks, failure
        self.asked = 0
        self.closed = False

    def __iter__(self) -> Iterator[bytes]:
        for piece in self.chunks:
            self.asked += 1
            yield piece
        if self.failure is not None:
            raise self.failure

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            for piece in self.chunks:
                self.asked += 1
                await asyncio.sleep(0)
                yield piece
            if self.failure is not None:
                raise self.failure
        finally:
            self.closed = True


def test_bytes_are_asked_for_only_when_a_delta_is() -> None:
    """Nothing is read ahead: a delta is there as soon as its bytes are."""
    source = Source(CHUNKS)
    stream = normalize_stream(source, "vllm")
    assert source.asked == 0
    assert next(stream).extensions["object"] == "chat.completion.chunk"
    assert source.asked == 1
    assert [next(stream).content_delta, source.asked] == ["Hel", 2]
    assert [next(stream).content_delta, source.asked] == ["lo", 2]
    assert [next(stream).content_delta, source.asked] == ["!", 3]
    last = next(stream)
    assert (last.finish_reason, source.asked) == (FinishReason.STOP, 4)
    with pytest.raises(StopIteration):
        next(stream)


def test_a_stream_is_its_own_iterator() -> None:
    """A loop that was left can be taken up again."""
    stream = normalize_stream(Source(CHUNKS), "vllm")
    for delta in stream:
        if delta.content_delta == "Hel":
            break
    assert [delta.content_delta for delta in stream] == ["lo", "!", None]


def test_the_response_is_there_when_the_deltas_are_exhausted() -> None:
    """Before that it is an error with that message, and partial shows the answer so far."""
    stream = normalize_stream(Source(CHUNKS), "vllm")
    assert stream.partial.text == ""
    next(stream), next(stream)
    with pytest.raises(ResponseValidationError, match="ACODE-RSP-008"):
        _ = stream.response
    partial = stream.partial
    assert (partial.text, partial.finish_reason) == ("Hel", FinishReason.ERROR)
    assert partial.refusal == "the stream has not been read to its end"
    deltas = list(stream)
    assert stream.response.text == "Hello!"
    assert deltas[-1].usage == stream.response.usage


def test_who_wants_no_more_deltas_reads_until_done() -> None:
    frames = [sse(chunk({"content": f"{n} "}), done=False) for n in range(90)]
    chunks = [b"".join(frames), sse(chunk({}, "stop"))]
    stream = normalize_stream(chunks, "vllm")
    assert [next(stream).content_delta for _ in range(5)] == ["0 ", "1 ", "2 ", "3 ", "4 "]
    response = stream.until_done()
    assert response is stream.response
    assert response.text == "".join(f"{n} " for n in range(90))
    assert normalize_stream(chunks, "vllm").until_done().same_content(response)
    assert list(stream) == []


def test_a_whole_answer_is_read_until_done_as_delta_by_delta() -> None:
    """It is done then, and its failure is told again."""
    stream = normalize_stream([DATA], "ollama", **FIXED)
    response = stream.until_done()
    assert stream.response is response
    assert [*stream] == []
    begun_stream = normalize_stream([DATA], "ollama", **FIXED)
    next(begun_stream)
    assert begun_stream.until_done().same_content(response)

    broken_stream = normalize_stream([DATA[:-1]], "ollama", **FIXED)
    for read in (broken_stream.until_done, lambda: broken_stream.response):
        with pytest.raises(InvalidJSONError):
            read()
    assert broken_stream.partial.finish_reason is FinishReason.ERROR


def test_what_ends_a_stream_that_nobody_looks_at_is_raised() -> None:
    stream = normalize_stream([sse(chunk({"content": "Hi"}), done=False), b"data: {\n\n"], "vllm")
    with pytest.raises(InvalidJSONError):
        stream.until_done()
    assert stream.partial.text == "Hi"


def test_a_stream_that_fails_tells_why_again() -> None:
    """The error that ended it is what asking for the response raises. Partial keeps what came."""
    stream = normalize_stream(Source(CHUNKS[:2]), "vllm")
    with pytest.raises(IncompleteStreamError) as caught:
        list(stream)
    with pytest.raises(IncompleteStreamError) as again:
        _ = stream.response
    assert again.value is caught.value
    assert stream.partial is caught.value.partial
    assert stream.partial.text == "Hello"
    assert list(stream) == []


def test_whoever_knows_why_a_stream_ended_says_it() -> None:
    """Before its end, and where the end itself was the failure."""
    for take in (lambda stream: next(stream), list):
        stream = normalize_stream(Source(CHUNKS[:2]), "vllm")
        with contextlib.suppress(IncompleteStreamError):
            take(stream)
        for cause in ("the line was cut", ErrorInfo(ErrorKind.SERVER, "the line was cut")):
            response = stream.ended_by(cause)
            assert response.finish_reason is FinishReason.ERROR
            assert response.refusal == "the line was cut"
            assert "Hello".startswith(response.text)


def test_a_stream_that_fails_at_once_has_a_partial_too() -> None:
    """Also where nothing came that an error could keep."""
    stream = normalize_stream([], "vllm")
    with pytest.raises(IncompleteStreamError):
        list(stream)
    assert stream.partial.text == ""
    assert stream.partial.model == "unknown"


def test_a_plugins_error_ends_the_stream() -> None:
    """An error that is not a mapping error has no partial."""

    class Broken(Echo):
        @hookimpl
        def map_error(self, status: int, body: Any) -> None:
            raise KeyError

    stream = normalize_stream([b"x"], "echo", registry=registry_of(echo=Broken()), status=500)
    with pytest.raises(CrosswalkError):
        list(stream)
    assert stream.partial.finish_reason is FinishReason.ERROR


def test_a_failing_source_is_not_our_error() -> None:
    """An exception of the source comes out unchanged, after the deltas before it. Partial has them."""
    stream = normalize_stream(Source(CHUNKS[:2], ConnectionResetError("gone")), "vllm")
    seen = []
    with pytest.raises(ConnectionResetError, match="gone"):
        seen += [delta.content_delta for delta in iter(stream.__next__, None)]
    assert stream.partial.text == "Hello"
    with pytest.raises(ResponseValidationError, match="ACODE-RSP-008"):
        _ = stream.response


def test_a_timer_measures_a_stream() -> None:
    """Duration and time to first token count from the call on."""
    ticks = iter(range(0, 1000, 10))
    stream = normalize_stream(CHUNKS, "vllm", timer=lambda: float(next(ticks)))
    list(stream)
    metadata = stream.response.metadata
    assert metadata.time_to_first_token == timedelta(seconds=10)
    assert metadata.request_duration == timedelta(seconds=20)


# ----------------------------------------------------------------------------------------- asynchronous

Made = tuple[list[ResponseDelta], ChatResponse | None, str]


def made(chunks: list[bytes], provider: str, **options: Any) -> Made:
    """The results of normalize_stream: deltas, response or partial, error."""
    stream = normalize_stream(chunks, provider, **FIXED, **options)
    deltas: list[ResponseDelta] = []
    try:
        deltas.extend(stream)
        return deltas, stream.response, ""
    except CrosswalkError as error:
        return deltas, getattr(error, "partial", None), f"{type(error).__name__}: {error}"


async def amade(chunks: list[bytes], provider: str, **options: Any) -> Made:
    """The same with anormalize_stream."""
    source = Source(chunks)
    stream = anormalize_stream(source.__aiter__(), provider, **FIXED, **options)
    deltas: list[ResponseDelta] = []
    try:
        async for delta in stream:
            deltas.append(delta)
        response = await stream.response()
    except CrosswalkError as error:
        assert stream.state is StreamState.ERROR
        return deltas, getattr(error, "partial", None), f"{type(error).__name__}: {error}"
    else:
        assert stream.state is StreamState.COMPLETE
        return deltas, response, ""
    finally:
        assert source.closed


STREAMS: list[tuple[str, list[bytes], dict[str, Any]]] = [
    ("vllm", CHUNKS, {}),
    ("vllm", CHUNKS, {"keep_raw": False, "replay": False}),
    ("vllm", CHUNKS[:2], {}),
    ("vllm", [*CHUNKS[:2], b"data: {x}\n\n"], {}),
    ("vllm", [*CHUNKS[:2], sse({"error": {"message": "It broke"}})], {}),
    ("vllm", [sse(chunk({"content": "a"}, "eos"))], {}),
    ("vllm", [sse(chunk({"content": "a"}, "eos"))], {"unknown": "keep"}),
    ("vllm", [b'{"error":', b'"gone"}'], {"status": 404}),
    ("vllm", CHUNKS, {"limits": Limits(events=2)}),
    ("vllm", [], {}),
    ("ollama", [ndjson(line("a"), line("b")), ndjson(line(done="stop", eval_count=2))], {}),
]


@pytest.mark.parametrize(("provider", "chunks", "options"), STREAMS)
def test_an_asynchronous_stream_equals_a_synchronous_one(
    provider: str, chunks: list[bytes], options: dict[str, Any]
) -> None:
    """The same deltas, the same response or partial, the same error. The source is closed in any case."""
    sync_options = {key: value for key, value in options.items() if key != "replay"}
    expected = made(chunks, provider, **sync_options)
    found = asyncio.run(amade(chunks, provider, **options))
    assert found[0] == expected[0]
    assert found[2] == expected[2]
    for left, right in [(found[1], expected[1])]:
        assert (left and to_jsonable(left)) == (right and to_jsonable(right))


@given(st.data())
def test_they_are_equal_for_every_cut(data: st.DataObject) -> None:
    """However the bytes are cut, sync and async give one response."""
    stream = b"".join(CHUNKS)
    cuts = [0, *sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=5))), len(stream)]
    chunks = [stream[a:b] for a, b in zip(cuts, cuts[1:], strict=False)]
    assert asyncio.run(amade(chunks, "vllm"))[0] == made([stream], "vllm")[0]


def test_a_source_may_be_any_asynchronous_iterable() -> None:
    """One that cannot be closed need not be."""

    class Bare:
        def __init__(self) -> None:
            self.chunks = iter(CHUNKS)

        def __aiter__(self) -> Bare:
            return self

        async def __anext__(self) -> bytes:
            for piece in self.chunks:
                return piece
            raise StopAsyncIteration

    async def text() -> str:
        return (await anormalize_stream(Bare(), "vllm").response()).text

    assert asyncio.run(text()) == "Hello!"


def test_leaving_early_closes_the_source() -> None:
    """A consumer that has enough closes the stream, and with it the source."""

    async def leave() -> tuple[Source, StreamState]:
        source = Source(CHUNKS)
        stream = anormalize_stream(source.__aiter__(), "vllm")
        async with stream:
            async for _ in stream:
                break
        return source, stream.state

    source, state = asyncio.run(leave())
    assert (source.asked, source.closed, state) == (1, True, StreamState.CANCELLED)


def test_a_failing_source_reaches_the_consumer() -> None:
    """An exception of an asynchronous source comes after the deltas before it."""

    async def fail() -> list[str | None]:
        source = Source(CHUNKS[:2], ConnectionResetError("gone"))
        seen: list[str | None] = []
        with pytest.raises(ConnectionResetError, match="gone"):
            async for delta in anormalize_stream(source.__aiter__(), "vllm"):
                seen.append(delta.content_delta)
        return seen

    assert asyncio.run(fail()) == [None, "Hel", "lo"]


def fails() -> Any:
    raise KeyError("mine")


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"id_factory": fails}, KeyError, "mine"),
        ({"id_factory": lambda: None}, TypeError, "id_factory gave NoneType, not str"),
        ({"id_factory": lambda: ""}, ValueError, "id_factory gave an empty id"),
        ({"id_factory": lambda: "\ud800"}, ValueError, "surrogates not allowed"),
        ({"clock": fails}, KeyError, "mine"),
        ({"clock": lambda: 5}, TypeError, "clock gave int, not datetime"),
        ({"clock": lambda: NOW.replace(tzinfo=None)}, ValueError, "clock gave a time without a time zone"),
    ],
)
def test_the_callers_errors_are_the_callers(given: dict[str, Any], error: type[Exception], said: str) -> None:
    """For an id or a time that the caller makes, no plugin is blamed, the first time nor when much is known of such answers."""
    known = Registry()
    for _ in range(4):
        with pytest.raises(error, match=said):
            normalize(DATA, "ollama", registry=known, **{**FIXED, **given})
        normalize(DATA, "ollama", registry=known, **FIXED)
    stream = normalize_stream([DATA], "ollama", registry=known, **{**FIXED, **given})
    with pytest.raises(error, match=said):
        list(stream)
