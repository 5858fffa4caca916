"""Events through handlers and processors to displays: what each gets, in order, and what a failing one does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import orjson
import pytest

from crosswalk import FramingError, Limits
from crosswalk.responses import (
    DisplayStrategy,
    EventRouter,
    ItemEvent,
    NotAStreamError,
    PipelineError,
    ProcessorRegistry,
    Response,
    ResponseCompletedEvent,
    ResponseCreatedEvent,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseSnapshot,
    ResponsesParseError,
    ResponseStreamEvent,
    ResponsesValueError,
    ResponseTextDeltaEvent,
    SnapshotError,
    StatusProgressionError,
    StreamHandler,
    StreamStage,
    ToolCallRegistry,
    UnknownEvent,
    UnknownTypeError,
    Update,
    WrittenProcessor,
    aread_events,
    default_processors,
    parse_event,
    read_events,
    to_json,
)
from crosswalk.responses.display import UpdateKind
from crosswalk.testing import Capture, load_captures

FOLDER = Path(__file__).parents[3] / "tests/captures/openai_responses"
STREAMS = [capture for capture in load_captures(FOLDER) if capture.file.suffix == ".sse"]
CUT = {"ollama_crash_stream", "vllm_crash_stream"}
"""Streams that end before their response does."""


class Recorder(DisplayStrategy):
    """Keeps its calls."""

    def __init__(self) -> None:
        self.updates: list[Update] = []
        self.calls: list[str] = []

    def open(self) -> None:
        self.calls.append("open")

    def show(self, update: Update) -> None:
        self.updates.append(update)
        self.calls.append("show")

    def close(self) -> None:
        self.calls.append("close")

    @property
    def lines(self) -> list[str]:
        return [f"{update.kind}: {update.text}" for update in self.updates]


class AsyncRecorder(Recorder):
    async def open(self) -> None:  # type: ignore[override]
        super().open()

    async def show(self, update: Update) -> None:  # type: ignore[override]
        await asyncio.sleep(0)
        super().show(update)

    async def close(self) -> None:  # type: ignore[override]
        super().close()


AT = {"item_id": "m", "output_index": 0, "content_index": 0}


def created(**response: Any) -> dict[str, Any]:
    return {
        "type": "response.created",
        "response": {"id": "r", "status": "in_progress", "output": [], **response},
    }


def delta(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "response.output_text.delta", **AT, "delta": text, **more}


def message(*texts: str, **more: Any) -> dict[str, Any]:
    parts = [{"type": "output_text", "text": text} for text in texts]
    return {"id": "m", "type": "message", "role": "assistant", "content": parts, **more}


def ended(*output: dict[str, Any], how: str = "completed", **more: Any) -> dict[str, Any]:
    return {"type": f"response.{how}", "response": {"id": "r", "status": how, "output": list(output), **more}}


def events(*data: dict[str, Any], unknown: Any = "raise") -> list[ResponseStreamEvent]:
    return [
        parse_event({"sequence_number": number, **event}, unknown=unknown)
        for number, event in enumerate(data)
    ]


HELLO = (created(), delta("Hel"), delta("lo"), ended(message("Hello")))


async def later(items: list[ResponseStreamEvent]) -> AsyncIterator[ResponseStreamEvent]:
    for item in items:
        await asyncio.sleep(0)
        yield item


def one(name: str, processor: Any, *keys: Any) -> ProcessorRegistry:
    registry = ProcessorRegistry()
    registry.register(name, processor, *keys)
    return registry


def say_type(snapshot: ResponseSnapshot) -> list[Update]:
    return [Update(kind="event", text=str(snapshot.event.type))]


# ------------------------------------------------------------------------------------ snapshots


def events_of(capture: Capture) -> list[ResponseStreamEvent]:
    return [parse_event(data) for data, _ in capture.frames()]


@pytest.mark.parametrize("capture", STREAMS, ids=lambda capture: capture.case)
def test_a_real_stream_goes_through(capture: Capture) -> None:
    stream = events_of(capture)
    recorder, other = Recorder(), Recorder()
    handler = StreamHandler(recorder)
    if capture.case in CUT:
        with pytest.raises(SnapshotError, match="ended here"):
            handler.run(stream)
        assert recorder.calls[-1] == "close"
        assert handler.snapshot is not None
        return
    snapshots = list(handler.handle(stream))
    assert [snapshot.event for snapshot in snapshots] == stream
    response = snapshots[-1].response
    assert asyncio.run(StreamHandler(other).arun(later(stream))) == response
    assert other.updates == recorder.updates
    assert shown(recorder.updates, "text") == response.output_text
    assert recorder.updates[-1].response == response
    assert recorder.calls.count("open") == recorder.calls.count("close") == 1


def shown(updates: list[Update], kind: str) -> str:
    """The final output of a display of that kind for *updates*."""
    texts: dict[str | None, str] = {}
    for update in updates:
        if update.kind == kind:
            texts[update.key] = update.text if update.replaces else texts.get(update.key, "") + update.text
    return "".join(texts.values())


def test_the_last_snapshot_is_the_final_response() -> None:
    handler = StreamHandler()
    assert handler.snapshot is None
    snapshots = list(handler.handle(events(*HELLO)))
    assert [snapshot.text for snapshot in snapshots] == ["", "Hel", "Hello", "Hello"]
    assert handler.snapshot is snapshots[-1]
    assert StreamHandler().run(events(*HELLO)) == snapshots[-1].response


@pytest.mark.parametrize("capture", STREAMS, ids=lambda capture: capture.case)
@pytest.mark.parametrize("size", [7, 1_000_000])
def test_events_are_read_from_bytes_cut_anywhere(capture: Capture, size: int) -> None:
    body = capture.body.rstrip(b"\n")  # the last event has no end but the stream's
    chunks = [body[start : start + size] for start in range(0, len(body), size)]

    async def later_chunks() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    async def main() -> list[ResponseStreamEvent]:
        return [event async for event in aread_events(later_chunks())]

    assert list(read_events(chunks)) == events_of(capture)
    assert asyncio.run(main()) == events_of(capture)


def test_what_is_no_event_in_a_stream_is_a_typed_error() -> None:
    good = b'data: {"type":"response.created","response":{}}\n\n: alive\n\n'
    assert (
        len(
            list(
                read_events([good, b"data: [DONE]\n\n", b'data: {"type":"response.completed","response":{}}'])
            )
        )
        == 2
    )
    for bad, error in (
        (b"data: {\n\n", FramingError),
        (b"data: []\n\n", ResponsesParseError),
        (b'data: {"type":"dream"}\n\n', UnknownTypeError),
    ):
        stream = read_events([good, bad])
        assert isinstance(next(stream), ResponseCreatedEvent)
        with pytest.raises(error):
            next(stream)
    assert [event.type for event in read_events([b'data: {"type":"dream"}\n\n'], unknown="keep")] == ["dream"]
    with pytest.raises(FramingError):
        list(read_events([good], limits=Limits(line_bytes=10)))


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        (b'{"error":{"message":"No such\\u001b model","code":404}}', "error", "an error body: No such model"),
        (b'\xef\xbb\xbf {"error":"overloaded"}', "error", "an error body: overloaded"),
        (b'{"detail":"Not Found"}', "error", "an error body: Not Found"),
        (b'{"error":{}}', "error", "an error body"),
        (b'{"object":"response","output":[],"error":null}', "response", "a whole response"),
        (b'{\n "id": "r",\n "output": []\n}', "response", "a whole response"),
        (b"{}", "json", "JSON"),
        (b"[1]", "json", "JSON"),
        (b'{"error', "json", "JSON"),
        (b"<html>\n<title>502 Bad Gateway</title>", "html", "HTML: <html> <title>502 Bad Gateway</title>"),
        (b"upstream connect error", "text", "text: upstream connect error"),
        (b"Error: \xff" + 1000 * b"x", "text", f"text: Error: \ufffd{71 * 'x'}…"),
    ],
)
@pytest.mark.parametrize("size", [3, 10_000])
def test_what_comes_in_the_place_of_a_stream_is_named(body: bytes, kind: str, said: str, size: int) -> None:
    chunks = [body[start : start + size] for start in range(0, len(body), size)]
    handler = StreamHandler()
    with pytest.raises(NotAStreamError) as caught:
        handler.run(read_events(chunks))
    assert str(caught.value) == f"not a stream of events: {said}"
    assert caught.value.kind == kind

    async def main() -> None:
        async def later_chunks() -> AsyncIterator[bytes]:
            for chunk in chunks:
                yield chunk

        await StreamHandler().arun(aread_events(later_chunks()))

    with pytest.raises(NotAStreamError):
        asyncio.run(main())


@pytest.mark.parametrize(
    "body", [b"", b"\n\n", b": alive\n\n", b"eve", b"event: response.created\ndat", b"id: 3"]
)
def test_a_stream_without_an_event_is_a_stream(body: bytes) -> None:
    assert list(read_events([body])) == []
    with pytest.raises(SnapshotError, match="no event came"):
        StreamHandler().run(read_events([body]))


def test_a_stream_may_be_cut_anywhere() -> None:
    body = b"".join(b"data: " + orjson.dumps(event) + b"\n\n" for event in HELLO).rstrip()
    assert StreamHandler().run(read_events([body])).output_text == "Hello"
    assert StreamHandler().run(read_events([body, b"\n\ndata: [DON"])).output_text == "Hello"
    for size in range(len(body)):
        handler = StreamHandler()
        with pytest.raises(SnapshotError) as caught:
            handler.run(read_events([body[:size]]))
        assert caught.value.__context__ is None
        assert (handler.snapshot is not None) == (size >= body.index(b"\n\n"))


# ------------------------------------------------------------------------------------ who gets what


def test_handlers_get_the_events_that_they_subscribed_to() -> None:
    seen: dict[str, list[str]] = {}

    def into(name: str) -> Callable[[ResponseSnapshot], object]:
        return lambda snapshot: seen.setdefault(name, []).append(str(snapshot.event.type).rpartition(".")[2])

    handler = StreamHandler(processors=ProcessorRegistry())
    handler.subscribe(into("class"), ResponseTextDeltaEvent)
    handler.subscribe(into("group"), ItemEvent, ResponseCreatedEvent)
    handler.subscribe(into("word"), "response.completed")
    handler.subscribe(into("all"))
    handler.run(events(*HELLO))
    assert seen == {
        "class": ["delta", "delta"],
        "group": ["created", "delta", "delta"],
        "word": ["completed"],
        "all": ["created", "delta", "delta", "completed"],
    }


def test_unknown_events_are_found_by_their_type() -> None:
    recorder = Recorder()
    stream = events(created(), {"type": "response.dream"}, {"type": "response.nap"}, ended(), unknown="keep")
    StreamHandler(recorder, processors=one("dreams", say_type, "response.dream")).run(stream)
    assert recorder.lines == ["event: response.dream"]
    recorder = Recorder()
    StreamHandler(recorder, processors=one("unknown", say_type, UnknownEvent)).run(stream)
    assert recorder.lines == ["event: response.dream", "event: response.nap"]


def test_processors_work_in_order_and_state_is_per_stream() -> None:
    class Counter:
        def __init__(self) -> None:
            self.count = 0

        def __call__(self, snapshot: ResponseSnapshot) -> Iterator[Update]:
            self.count += 1
            yield Update(kind="count", text=str(self.count))

    registry = one("types", say_type, ResponseCreatedEvent)
    registry.register_factory("counter", Counter, ResponseTextDeltaEvent, ResponseCreatedEvent)
    for _ in range(2):
        recorder = Recorder()
        StreamHandler(recorder, processors=registry).run(events(*HELLO))
        assert recorder.lines == ["event: response.created", "count: 1", "count: 2", "count: 3"]
    registry.register("types", lambda snapshot: None)
    registry.unregister("counter")
    registry.unregister("counter")
    assert registry.names == ("types",)
    recorder = Recorder()
    StreamHandler(recorder, processors=registry).run(events(*HELLO))
    assert recorder.calls == ["open", "close"]


def test_a_copy_of_a_registry_is_its_own() -> None:
    registry = default_processors()
    other = registry.copy()
    other.unregister("text")
    assert registry.names == ("reasoning", "text", "refusal", "tools", "citations", "end")
    assert other.names == ("reasoning", "refusal", "tools", "citations", "end")


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(
        ResponsesValueError, match="expected 'at_once' or 'at_end' @ StreamHandler.on_failure"
    ):
        StreamHandler(on_failure="x")  # type: ignore[arg-type]
    with pytest.raises(ResponsesValueError, match="cannot be called: int @ handler"):
        StreamHandler().subscribe(5, "response.completed")  # type: ignore[arg-type]


@pytest.mark.parametrize("key", [3, None, Response, b"text"])
def test_what_is_no_event_cannot_be_subscribed_to(key: Any) -> None:
    with pytest.raises(ResponsesValueError, match="not an event class or type"):
        StreamHandler().subscribe(print, key)
    with pytest.raises(ResponsesValueError, match="not an event class or type"):
        ProcessorRegistry().register("x", say_type, key)


def test_a_router_forgets_routes_when_there_are_too_many() -> None:
    stage = StreamStage(kind="handler", name="all", call=print)
    router = EventRouter([stage])
    for number in range(1100):
        assert router.route(UnknownEvent(type=f"response.{number}")) == (stage,)
    router.remove(stage)
    assert router.route(UnknownEvent(type="response.1")) == ()


# ------------------------------------------------------------------------------------ sync and async


def test_asynchronous_parts_are_awaited() -> None:
    async def processor(snapshot: ResponseSnapshot) -> list[Update]:
        await asyncio.sleep(0)
        return say_type(snapshot)

    seen: list[str] = []

    async def handle(snapshot: ResponseSnapshot) -> None:
        await asyncio.sleep(0)
        seen.append(snapshot.text)

    async def main() -> list[str]:
        recorder = AsyncRecorder()
        handler = StreamHandler(recorder, processors=one("types", processor, ResponseCompletedEvent))
        handler.subscribe(handle, ResponseTextDeltaEvent)
        snapshots = [snapshot async for snapshot in handler.ahandle(later(events(*HELLO)))]
        assert [snapshot.text for snapshot in snapshots] == ["", "Hel", "Hello", "Hello"]
        assert recorder.calls == ["open", "show", "close"]
        return recorder.lines

    assert asyncio.run(main()) == ["event: response.completed"]
    assert seen == ["Hel", "Hello"]


def test_asynchronous_parts_need_asyncio() -> None:
    async def processor(snapshot: ResponseSnapshot) -> list[Update]:
        raise AssertionError("never awaited")

    with pytest.raises(
        PipelineError, match="processor 'later' failed at response.created .*: TypeError"
    ) as caught:
        StreamHandler(processors=one("later", processor)).run(events(*HELLO))
    assert "use ahandle" in str(caught.value.__cause__)
    loop = asyncio.new_event_loop()
    try:
        future: asyncio.Future[None] = loop.create_future()
        with pytest.raises(PipelineError, match="TypeError"):
            StreamHandler(processors=one("later", lambda snapshot: future)).run(events(*HELLO))
    finally:
        loop.close()
    with pytest.raises(
        PipelineError, match="display 'AsyncRecorder' failed at opening or closing: TypeError"
    ):
        StreamHandler(AsyncRecorder()).run(events(*HELLO))


def test_a_cancelled_stream_closes_its_displays() -> None:
    recorder = AsyncRecorder()

    async def never(snapshot: ResponseSnapshot) -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        handler = StreamHandler(recorder)
        handler.subscribe(never)
        task = asyncio.ensure_future(handler.arun(later(events(*HELLO))))
        while "open" not in recorder.calls:
            await asyncio.sleep(0)
        for _ in range(5):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert handler.failures == ()

    asyncio.run(main())
    assert recorder.calls == ["open", "close"]


def test_a_stream_that_is_left_closes_its_displays() -> None:
    recorder = Recorder()
    stream = StreamHandler(recorder).handle(events(*HELLO))
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    assert recorder.calls == ["open", "close"]


# ------------------------------------------------------------------------------------ failures


def broken(snapshot: ResponseSnapshot) -> list[Update]:
    raise ValueError("SECRET content")


class Broken(Recorder):
    """Fails in one of its methods."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.where = where

    def open(self) -> None:
        super().open()
        self.fail("open")

    def show(self, update: Update) -> None:
        super().show(update)
        self.fail("show")

    def close(self) -> None:
        super().close()
        self.fail("close")

    def fail(self, where: str) -> None:
        if where == self.where:
            raise OSError("SECRET place")


def test_a_failing_processor_ends_the_stream_when_all_others_have_had_the_event() -> None:
    recorder = Recorder()
    registry = one("first", say_type)
    registry.register("bad", broken, ResponseTextDeltaEvent)
    registry.register("last", say_type)
    handler = StreamHandler(recorder, processors=registry)
    with pytest.raises(PipelineError) as caught:
        handler.run(events(*HELLO))
    assert (
        str(caught.value)
        == "processor 'bad' failed at response.output_text.delta (sequence_number 1): ValueError"
    )
    assert isinstance(caught.value.__cause__, ValueError)
    assert caught.value.snapshot is not None
    assert caught.value.snapshot.text == "Hel"
    assert recorder.lines == ["event: response.created"] * 2 + ["event: response.output_text.delta"] * 2
    assert recorder.calls[-1] == "close"
    [failure] = handler.failures
    assert (failure.stage, failure.name, failure.sequence_number) == ("processor", "bad", 1)
    assert caught.value.failures == handler.failures


def test_failures_can_be_raised_at_the_end() -> None:
    recorder, bad_display = Recorder(), Broken("show")
    registry = one("bad", broken, ResponseTextDeltaEvent)
    registry.register("types", say_type)
    handler = StreamHandler(bad_display, recorder, processors=registry, on_failure="at_end")
    handler.subscribe(broken, "response.completed", name="archive")
    seen = []
    with pytest.raises(PipelineError) as caught:
        for snapshot in handler.handle(events(*HELLO)):
            seen.append(snapshot.text)
    assert seen == ["", "Hel", "Hello", "Hello"]
    assert [(failure.stage, failure.name) for failure in caught.value.failures] == [
        ("display", "Broken"), ("processor", "bad"), ("handler", "archive"),
    ]  # fmt: skip
    assert "SECRET" not in str(caught.value)
    assert caught.value.snapshot is not None
    assert caught.value.snapshot.is_final
    assert len(recorder.updates) == 4
    assert bad_display.calls == ["open", "show", "close"]


@pytest.mark.parametrize("where", ["open", "show", "close"])
@pytest.mark.parametrize("on_failure", ["at_once", "at_end"])
def test_a_failing_display_does_not_hurt_another(where: str, on_failure: Any) -> None:
    recorder, bad = Recorder(), Broken(where)
    with pytest.raises(PipelineError, match="display 'Broken' failed") as caught:
        StreamHandler(bad, recorder, on_failure=on_failure).run(events(*HELLO))
    assert isinstance(caught.value.__cause__, OSError)
    assert recorder.calls[0] == "open"
    assert recorder.calls[-1] == bad.calls[-1] == "close"
    whole = on_failure == "at_end" or where == "close"
    assert (shown(recorder.updates, "text") == "Hello") == whole


def test_what_ends_the_stream_tells_of_other_failures() -> None:
    def source() -> Iterator[ResponseStreamEvent]:
        yield from events(*HELLO[:2])
        raise ConnectionError("gone")

    recorder = Recorder()
    handler = StreamHandler(Broken("close"), recorder, processors=one("bad", broken), on_failure="at_end")
    with pytest.raises(ConnectionError) as caught:
        handler.run(source())
    assert caught.value.__notes__ == [
        "processor 'bad' failed at response.created (sequence_number 0): ValueError",
        "display 'Broken' failed at opening or closing: OSError",
    ]
    assert recorder.calls == ["open", "close"]
    with pytest.raises(PipelineError, match="'bad'") as failed:
        StreamHandler(Broken("close"), processors=one("bad", broken)).run(events(*HELLO))
    assert failed.value.__notes__ == ["display 'Broken' failed at opening or closing: OSError"]
    assert len(failed.value.failures) == 1


@pytest.mark.parametrize("said", ["text", ["text"], 3, [Update(kind="a", text="b"), None]])
def test_a_processor_that_gives_no_updates_fails(said: Any) -> None:
    with pytest.raises(PipelineError, match="processor 'odd' failed .*: TypeError"):
        StreamHandler(processors=one("odd", lambda snapshot: said)).run(events(*HELLO))


def test_an_interrupt_is_nobodys_failure() -> None:
    def interrupt(snapshot: ResponseSnapshot) -> None:
        raise KeyboardInterrupt

    recorder = Recorder()
    handler = StreamHandler(recorder, on_failure="at_end")
    handler.subscribe(interrupt)
    with pytest.raises(KeyboardInterrupt):
        handler.run(events(*HELLO))
    assert recorder.calls[-1] == "close"
    assert handler.failures == ()


# ------------------------------------------------------------------------------------ statuses


CALL = {"type": "file_search_call", "id": "fs", "queries": ["q"]}


def call_event(status: str, **place: Any) -> dict[str, Any]:
    return {"type": f"response.file_search_call.{status}", **(place or {"item_id": "fs", "output_index": 0})}


def item_event(how: str, status: str | None, **place: Any) -> dict[str, Any]:
    return {
        "type": f"response.output_item.{how}",
        **(place or {"output_index": 0}),
        "item": {**CALL, "status": status},
    }


@pytest.mark.parametrize(
    "stream",
    [
        [item_event("added", "in_progress"), call_event("in_progress"), call_event("searching"), call_event("completed"), item_event("done", "completed")],
        [item_event("added", None), call_event("searching"), item_event("done", "incomplete")],
        [item_event("done", "completed")],
        [call_event("searching", item_id="fs"), call_event("completed", item_id="fs")],
        [item_event("added", "completed"), {**item_event("added", "in_progress"), "item": {**CALL, "id": "other", "status": "in_progress"}}],
        [call_event("completed", output_index=0, item_id="a"), call_event("searching", output_index=1, item_id="b")],
    ],
)  # fmt: skip
def test_statuses_go_forward(stream: list[dict[str, Any]]) -> None:
    StreamHandler().run(events(created(), *stream, ended()))


@pytest.mark.parametrize(
    "stream",
    [
        [item_event("added", "in_progress"), call_event("completed")],
        [call_event("searching"), call_event("in_progress")],
        [call_event("searching", item_id="fs"), call_event("in_progress", item_id="fs")],
        [call_event("completed"), item_event("done", "failed")],
        [item_event("added", "completed"), item_event("added", "in_progress")],
        [item_event("added", "completed", output_index=0), call_event("searching", item_id="fs")],
    ],
)
def test_an_impossible_step_ends_the_stream(stream: list[dict[str, Any]]) -> None:
    recorder = Recorder()
    handler = StreamHandler(recorder)
    with pytest.raises(StatusProgressionError, match="file_search_call 'fs': '.*' cannot follow"):
        handler.run(events(created(), *stream, ended()))
    assert recorder.calls[-1] == "close"
    assert handler.snapshot is not None
    StreamHandler(tools=ToolCallRegistry()).run(events(created(), *stream, ended()))


def test_impossible_steps_can_be_reported_at_the_end() -> None:
    stream = [item_event("added", "in_progress"), call_event("completed"), call_event("searching")]
    recorder = Recorder()
    handler = StreamHandler(recorder, on_failure="at_end")
    with pytest.raises(PipelineError) as caught:
        handler.run(events(*HELLO[:1], *stream, ended(message("Hello"))))
    assert [str(failure) for failure in caught.value.failures] == [
        "status 'file_search_call' failed at response.file_search_call.completed (sequence_number 2): StatusProgressionError",
        "status 'file_search_call' failed at response.file_search_call.searching (sequence_number 3): StatusProgressionError",
    ]
    assert isinstance(caught.value.__cause__, StatusProgressionError)
    assert shown(recorder.updates, "text") == "Hello"
    assert caught.value.snapshot is not None
    assert caught.value.snapshot.is_final


def test_a_status_that_nobody_knows_is_no_step() -> None:
    stream = [item_event("added", "in_progress"), item_event("done", "dreaming"), call_event("searching")]
    handler = StreamHandler(on_failure="at_end")
    handler.run(events(created(), *stream, ended(), unknown="keep"))
    assert handler.failures == ()


def test_events_of_a_tool_that_tell_no_status_are_no_steps() -> None:
    stream = events(
        created(),
        item_event("added", "in_progress"),
        {"type": "response.file_search_call.yawn"},
        ended(),
        unknown="keep",
    )
    StreamHandler().run(stream)

    class Yawn(ItemEvent):
        type: ClassVar[str] = "response.file_search_call.yawn"

    stream[2] = Yawn(item_id="fs", output_index=0)  # type: ignore[call-overload]
    StreamHandler().run(stream)


# ------------------------------------------------------------------------------------ the shipped processors


def lines_of(*data: dict[str, Any]) -> list[str]:
    recorder = Recorder()
    StreamHandler(recorder).run(events(*data))
    return [
        f"{'!' if update.replaces and update.kind != 'tool' else ''}{line}"
        for update, line in zip(recorder.updates, recorder.lines, strict=True)
    ]


REASON = {"item_id": "rs", "output_index": 0}
THOUGHT = {
    "id": "rs",
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "S"}],
    "content": [{"type": "reasoning_text", "text": "T"}],
}
URL = {"type": "url_citation", "url": "u", "title": "T"}
QUOTE = {"type": "file_citation", "file_id": "f", "filename": "a.pdf", "page_number": 3}


@pytest.mark.parametrize(
    ("stream", "lines"),
    [
        pytest.param([delta("a"), delta(""), delta("b"), {"type": "response.output_text.done", **AT, "text": "ab"}, ended(message("ab"))], ["text: a", "text: b"], id="deltas"),
        pytest.param([{"type": "response.output_text.done", **AT, "text": "ab"}, ended(message("ab"))], ["text: ab"], id="no deltas"),
        pytest.param([{"type": "response.output_item.done", "output_index": 0, "item": message("ab", "c")}, ended(message("ab", "c"))], ["text: ab", "text: c"], id="only the item"),
        pytest.param([ended(message("ab"))], ["text: ab"], id="only the response"),
        pytest.param([delta("a"), ended(message("ab"))], ["text: a", "text: b"], id="the rest at the end"),
        pytest.param([delta("a"), ended(message("xy"))], ["text: a", "!text: xy"], id="something else at the end"),
        pytest.param([{**delta("a"), "output_index": None}, {**delta("b"), "output_index": None}, ended(message("ab"))], ["text: a", "text: b"], id="no places"),
        pytest.param([{**delta("a"), "output_index": None, "item_id": None}, ended(message("a", id=None))], ["text: a"], id="neither place nor id"),
        pytest.param([delta("a"), delta("b", output_index=1), ended(message("a"), message("b"))], ["text: a", "text: b"], id="one id for two items"),
        pytest.param([{"type": "response.refusal.delta", **AT, "delta": "n"}, {"type": "response.refusal.done", **AT, "refusal": "no"}, ended({**message(), "content": [{"type": "refusal", "refusal": "no"}]})], ["refusal: n", "refusal: o"], id="refusal"),
        pytest.param([{"type": "response.reasoning_text.delta", **REASON, "content_index": 0, "delta": "T"}, {"type": "response.reasoning_summary_text.delta", **REASON, "summary_index": 0, "delta": "S"}, {"type": "response.reasoning_summary_text.done", **REASON, "summary_index": 0, "text": "S"}, {"type": "response.output_item.done", "output_index": 0, "item": THOUGHT}, ended(THOUGHT)], ["reasoning: T", "reasoning: S"], id="reasoning"),
        pytest.param([ended(THOUGHT)], ["reasoning: S", "reasoning: T"], id="reasoning at the end"),
        pytest.param([item_event("added", None), call_event("searching"), call_event("searching"), item_event("done", "completed"), ended({**CALL, "status": "completed"})], ["tool: file_search(q)", "tool: file_search(q): searching", "tool: file_search(q): completed"], id="search"),
        pytest.param([call_event("searching"), ended()], ["tool: file_search: searching"], id="a call that was not opened"),
        pytest.param([{"type": "response.image_generation_call.generating", "output_index": 0}, {"type": "response.image_generation_call.partial_image", "output_index": 0, "partial_image_index": 0, "partial_image_b64": "AA"}, ended()], ["tool: image_generation: generating"], id="image"),
        pytest.param([ended({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "status": "completed"}, {"type": "custom_tool_call", "call_id": "c", "name": "g", "input": "x"}, {"type": "web_search_call", "action": {"type": "search", "query": "q"}}, {"type": "web_search_call", "action": {"type": "open_page", "url": "u"}}, {"type": "computer_call", "call_id": "c"})], ["tool: f({}): completed", "tool: g(x)", "tool: web_search(q)", "tool: web_search(u)", "tool: computer"], id="calls at the end"),
        pytest.param([{"type": "response.output_text.annotation.added", **AT, "annotation": URL}, ended({**message(), "content": [{"type": "output_text", "text": "", "annotations": [URL, QUOTE, QUOTE, {"type": "url_citation", "url": "v"}, {"type": "file_citation", "file_id": "g"}, {"type": "file_path", "file_id": "g"}]}, {"type": "refusal", "refusal": ""}]})], ["citation: T <u>", "citation: a.pdf, page 3", "citation: v", "citation: g"], id="citations"),
    ],
)  # fmt: skip
def test_what_the_shipped_processors_show(stream: list[dict[str, Any]], lines: list[str]) -> None:
    assert lines_of(created(), *stream) == [*lines, "end: completed"]


USAGE = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}


@pytest.mark.parametrize(
    ("stream", "lines"),
    [
        ([ended(usage=USAGE)], ["end: completed, 3 input and 4 output tokens"]),
        ([ended(how="incomplete", incomplete_details={"reason": "max_output_tokens"})], ["end: incomplete (max_output_tokens)"]),
        ([ended(how="incomplete", incomplete_details={})], ["end: incomplete"]),
        ([{"type": "response.completed", "response": {}}], ["end: ended"]),
        ([ended(how="failed", error={"code": "server_error", "message": "oh"})], ["error: server_error: oh"]),
        ([ended(how="failed")], ["error: failed"]),
        ([{"type": "error", "code": "c", "message": "oh"}], ["error: c: oh"]),
        ([{"type": "error", "code": "c", "message": "oh"}, ended(how="failed", error={"code": "c", "message": "oh"})], ["error: c: oh"]),
    ],
)  # fmt: skip
def test_how_a_response_ended_is_told_once(stream: list[dict[str, Any]], lines: list[str]) -> None:
    assert lines_of(created(), *stream) == lines


def test_a_processor_of_text_passes_over_other_events() -> None:
    processor = WrittenProcessor(UpdateKind.TEXT)
    handler = StreamHandler(processors=one("text", processor))
    handler.run(events(*HELLO))
    assert ResponseTextDeltaEvent in processor.events
    assert ResponseCreatedEvent not in processor.events


def test_a_long_answer_is_shown_at_a_cost_that_does_not_grow() -> None:
    deltas = [delta("word ") for _ in range(3000)]
    recorder = Recorder()
    response = StreamHandler(recorder).run(events(created(), *deltas, ended(message("word " * 3000))))
    assert sum(len(update.text) for update in recorder.updates) < len(response.output_text) + 100


@pytest.mark.parametrize("item", ["text", {"type": "response.created"}, None, Response()])
def test_what_is_no_event_is_refused(item: Any) -> None:
    recorder = Recorder()
    with pytest.raises(ResponsesValueError, match="expected an event, as parse_event gives, got"):
        StreamHandler(recorder).run([item])
    assert recorder.calls == ["open", "close"]


def test_a_handler_takes_one_stream() -> None:
    handler = StreamHandler()
    handler.run(events(*HELLO))
    with pytest.raises(SnapshotError, match="after the end"):
        handler.run(events(*HELLO))


def test_values_made_in_the_program_go_through_too() -> None:
    text = ResponseOutputText(text="hi")
    response = Response(id="r", status="completed", output=(ResponseOutputMessage(content=(text,)),))  # type: ignore[arg-type]
    recorder = Recorder()
    assert to_json(StreamHandler(recorder).run([ResponseCompletedEvent(response=response)])) == to_json(
        response
    )
    assert recorder.lines == ["text: hi", "end: completed"]
