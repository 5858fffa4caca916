"""StreamingChatResponse: one source, many consumers."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

import pytest

from crosswalk import ChatResponse, CrosswalkError, FinishReason, ResponseDelta, anormalize_stream
from crosswalk.stream import DeltaAccumulator, StreamingChatResponse, StreamState

T = TypeVar("T")

TEXTS = ("Hel", "lo", "!")
WHOLE = [*TEXTS, None]  # the contents of all deltas: the final one has none


class Source:
    """A source of deltas that tells what was done to it.

    Args:
        steps: contents, awaitables to wait for before the next one, exceptions to raise.
        end: whether a final delta comes after them.
        on_close: what closing raises.
    """

    def __init__(self, *steps: Any, end: bool = True, on_close: Exception | None = None) -> None:
        self.steps = [*steps, FinishReason.STOP] if end else list(steps)
        self.on_close = on_close
        self.asked = 0
        self.closed = 0
        self.was_cancelled = False
        self.tasks: set[Any] = set()
        self.accumulator = DeltaAccumulator()

    def __aiter__(self) -> AsyncIterator[ResponseDelta]:
        raise AssertionError("an iterator is asked for the next one only")

    async def __anext__(self) -> ResponseDelta:
        self.asked += 1
        self.tasks.add(asyncio.current_task())
        while self.steps:
            step = self.steps.pop(0)
            if isinstance(step, BaseException):
                raise step
            if isinstance(step, asyncio.Event):
                try:
                    await step.wait()
                except asyncio.CancelledError:
                    self.was_cancelled = True
                    raise
                continue
            index = self.accumulator.delta_count
            if isinstance(step, FinishReason):
                delta = ResponseDelta(index, finish_reason=step)
            else:
                delta = ResponseDelta(index, content_delta=step)
            self.accumulator.append(delta)
            return delta
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self.tasks.add(asyncio.current_task())
        self.closed += 1
        if self.on_close is not None:
            raise self.on_close

    def stream(self, *, replay: bool = True) -> StreamingChatResponse:
        """A stream of it."""
        return StreamingChatResponse(self, self.accumulator.build, replay=replay)


def run(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run *main*, and see that it leaves no task behind."""

    async def checked() -> T:
        result = await main()
        for _ in range(5):  # what was told to go may go
            await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return result

    return asyncio.run(checked())


async def contents(stream: StreamingChatResponse) -> list[str | None]:
    """The contents of all deltas."""
    return [delta.content_delta async for delta in stream]


async def following(consumer: AsyncIterator[ResponseDelta]) -> ResponseDelta:
    """The next delta, as a coroutine to make a task of."""
    return await anext(consumer)


async def settle() -> None:
    """Let every other task go as far as it can."""
    for _ in range(10):
        await asyncio.sleep(0)


# ------------------------------------------------------------------------------------------------ reading


@pytest.mark.parametrize("replay", [True, False])
def test_deltas_then_the_response(replay: bool) -> None:
    """FR-054: an async iterable of deltas, in order, then it is complete and its source closed."""

    async def main() -> None:
        source = Source(*TEXTS)
        stream = source.stream(replay=replay)
        assert stream.state.value == "active"
        assert await contents(stream) == WHOLE
        assert stream.state.value == "complete"
        assert (await stream.response()).text == "Hello!"
        assert source.closed == 1

    run(main)


def test_each_consumer_reads_from_the_start() -> None:
    """FR-065: one after the other, and at the same time."""

    async def main() -> None:
        source = Source(*TEXTS)
        stream = source.stream()
        assert await asyncio.gather(*(contents(stream) for _ in range(5))) == [WHOLE] * 5
        assert await contents(stream) == WHOLE
        assert source.asked == len(WHOLE) + 1

    run(main)


def test_consumers_may_come_late_and_leave_early() -> None:
    """FR-065: one that joins in the middle has everything, one that leaves takes nothing."""

    async def main() -> None:
        stream = Source(*TEXTS).stream()
        async for _ in stream:
            break
        late = aiter(stream)
        assert (await anext(late)).content_delta == "Hel"
        assert await contents(stream) == WHOLE
        assert [delta.content_delta async for delta in late] == WHOLE[1:]

    run(main)


def test_the_next_delta_is_not_read_before_somebody_wants_it() -> None:
    """Design, section 6: each reaches the consumer before the next is read."""

    async def main() -> None:
        source = Source(*TEXTS)
        async with source.stream() as stream:
            consumer = aiter(stream)
            await settle()
            assert source.asked == 0
            for count, text in enumerate(TEXTS, 1):
                assert (await anext(consumer)).content_delta == text
                await settle()
                assert source.asked == count
            again = aiter(stream)
            for _ in TEXTS:
                await anext(again)
            await settle()
            assert source.asked == len(TEXTS)

    run(main)


def test_a_delta_comes_as_soon_as_it_is_there() -> None:
    """Seed 000: streaming must not buffer the completion before delivery."""

    async def main() -> None:
        gate = asyncio.Event()
        stream = Source("a", gate, "b").stream()
        consumer = aiter(stream)
        assert (await anext(consumer)).content_delta == "a"
        waiting = asyncio.create_task(following(consumer))
        await settle()
        assert not waiting.done()
        gate.set()
        assert (await waiting).content_delta == "b"
        await stream.response()

    run(main)


def test_a_slow_consumer_slows_nobody() -> None:
    """Design, section 6: the others read on at their own pace."""

    async def main() -> None:
        stream = Source(*TEXTS).stream()
        slow = aiter(stream)
        await anext(slow)
        assert await contents(stream) == WHOLE
        assert [delta.content_delta async for delta in slow] == WHOLE[1:]

    run(main)


def test_a_failing_consumer_hurts_nobody() -> None:
    """Design, section 6, NFR-015: and who failed may start again."""

    async def main() -> None:
        stream = Source(*TEXTS).stream()

        async def failing() -> None:
            async for _ in stream:
                raise ZeroDivisionError

        results = await asyncio.gather(failing(), contents(stream), return_exceptions=True)
        assert isinstance(results[0], ZeroDivisionError)
        assert results[1] == WHOLE
        assert await contents(stream) == WHOLE

    run(main)


def test_the_source_lives_in_one_task() -> None:
    """A source can close what it opens: the same task and context from the first delta to the end."""
    variable = contextvars.ContextVar("variable", default="unset")

    async def deltas() -> AsyncIterator[ResponseDelta]:
        async with asyncio.timeout(60):  # belongs to the task that enters it
            token = variable.set("set")  # belongs to the context that sets it
            try:
                yield ResponseDelta(0, content_delta="a")
                yield ResponseDelta(1, finish_reason=FinishReason.STOP)
            finally:
                variable.reset(token)

    async def main() -> None:
        stream = StreamingChatResponse(deltas(), lambda: ChatResponse.error("unused", model="m"))
        first = aiter(stream)
        await anext(first)
        assert await asyncio.create_task(contents(stream)) == ["a", None]
        closed = StreamingChatResponse(deltas(), lambda: ChatResponse.error("unused", model="m"))
        await anext(aiter(closed))
        await closed.aclose()
        assert variable.get() == "unset"

    run(main)


class Batches(Source):
    """A source of which one read brings several deltas. Each step is one of them."""

    def __init__(self, *batches: list[Any], **options: Any) -> None:
        super().__init__(*(batch[0] for batch in batches), **options)
        self.batches = [batch[1:] for batch in batches]
        self.pending: list[Any] = []

    async def __anext__(self) -> ResponseDelta:
        delta = await super().__anext__()
        self.pending = self.batches.pop(0) if self.batches else []
        return delta

    def ready(self) -> ResponseDelta | None:
        """The next delta of the last read."""
        if not self.pending:
            return None
        step = self.pending.pop(0)
        if isinstance(step, Exception):
            raise step
        delta = ResponseDelta(self.accumulator.delta_count, content_delta=step)
        self.accumulator.append(delta)
        return delta


@pytest.mark.parametrize("replay", [True, False])
def test_deltas_of_one_read_need_no_other_read(replay: bool) -> None:
    """A consumer gets them without waiting for any other task."""

    async def main() -> None:
        source = Batches(["a", "b", "c"], ["d"])
        stream = source.stream(replay=replay)
        consumer = aiter(stream)
        assert (await anext(consumer)).content_delta == "a"
        turns: list[None] = []
        asyncio.get_running_loop().call_soon(turns.append, None)
        assert [(await anext(consumer)).content_delta for _ in "bc"] == ["b", "c"]
        assert (turns, source.asked) == ([], 1)
        assert [delta.content_delta async for delta in consumer] == ["d", None]
        assert (await stream.response()).text == "abcd"
        assert len(source.tasks) == 1

    run(main)


def test_several_consumers_share_the_deltas_of_one_read() -> None:
    """The first consumer takes a delta for all, also for one that waits. Cancelling one does not affect the others."""

    async def main() -> None:
        gate = asyncio.Event()
        source = Batches(["a", "b"], [gate, "d"])
        source.steps.insert(2, "c")
        stream = source.stream()
        first, *others = (asyncio.create_task(contents(stream)) for _ in range(3))
        await settle()
        first.cancel()
        await settle()
        gate.set()
        assert await asyncio.gather(*others) == [["a", "b", "c", "d", None]] * 2
        assert await contents(stream) == ["a", "b", "c", "d", None]
        assert not source.was_cancelled

    run(main)


def test_a_delta_of_a_read_that_cannot_be_made_is_a_failure() -> None:
    """Every consumer has the deltas before it, and the source is closed when they get the error."""

    async def main() -> None:
        source = Batches(["a", "b", ZeroDivisionError()], ["c"])
        stream = source.stream()
        for consumer in (aiter(stream), aiter(stream)):
            assert [(await anext(consumer)).content_delta for _ in "ab"] == ["a", "b"]
            with pytest.raises(ZeroDivisionError):
                await anext(consumer)
            assert (source.asked, source.closed, stream.state) == (1, 1, StreamState.ERROR)

    run(main)


def test_closing_leaves_the_other_deltas_of_a_read_alone() -> None:
    """Closed is closed: what was not delivered before is not delivered after."""

    async def main() -> None:
        source = Batches(["a", "b"])
        async with source.stream() as stream:
            consumer = aiter(stream)
            assert (await anext(consumer)).content_delta == "a"
        with pytest.raises(CrosswalkError, match="the stream was closed"):
            await anext(consumer)
        assert source.pending == ["b"]

    run(main)


def test_a_source_need_not_be_closable() -> None:
    """Any async iterator will do."""

    class Plain(AsyncIterator[ResponseDelta]):
        async def __anext__(self) -> ResponseDelta:
            raise StopAsyncIteration

    async def main() -> None:
        stream = StreamingChatResponse(Plain(), lambda: ChatResponse.error("unused", model="m"))
        assert await contents(stream) == []
        await stream.aclose()

    run(main)


# ---------------------------------------------------------------------------------------------- response()


@pytest.mark.parametrize("replay", [True, False])
def test_the_response_reads_the_rest(replay: bool) -> None:
    """``await stream.response()`` alone, or after some deltas. Asked twice it is there twice."""

    async def main() -> None:
        assert (await Source(*TEXTS).stream(replay=replay).response()).text == "Hello!"
        stream = Source(*TEXTS).stream(replay=replay)
        await anext(aiter(stream))
        assert (await stream.response()).text == (await stream.response()).text == "Hello!"

    run(main)


def test_the_response_at_the_same_time_as_a_consumer() -> None:
    """Neither takes anything from the other."""

    async def main() -> None:
        stream = Source(*TEXTS).stream()
        said, response = await asyncio.gather(contents(stream), stream.response())
        assert (said, response.text) == (WHOLE, "Hello!")

    run(main)


@pytest.mark.parametrize("replay", [True, False])
def test_what_finish_raises_is_raised(replay: bool) -> None:
    """A stream without its final delta has no response (P4)."""

    async def main() -> None:
        stream = Source("a", end=False).stream(replay=replay)
        with pytest.raises(CrosswalkError, match="ACODE-RSP-008"):
            await stream.response()
        assert stream.state is StreamState.COMPLETE

    run(main)


# ------------------------------------------------------------------------------------------------ failures


def test_a_failure_reaches_every_consumer_after_what_came_before() -> None:
    """FR-064: those that wait, those that come later, and ``response()``."""

    async def main() -> None:
        gate = asyncio.Event()
        failure = ConnectionError("gone")
        source = Source("a", gate, failure)
        stream = source.stream()

        async def read() -> list[Any]:
            seen: list[Any] = []
            try:
                async for delta in stream:
                    seen.append(delta.content_delta)
            except ConnectionError as error:
                seen.append(error)
            return seen

        readers = [asyncio.create_task(read()) for _ in range(3)]
        await settle()
        gate.set()
        assert await asyncio.gather(*readers, read()) == [["a", failure]] * 4
        assert await read() == ["a", failure]
        with pytest.raises(ConnectionError):
            await stream.response()
        assert (stream.state, source.closed) == (StreamState.ERROR, 1)

    run(main)


@pytest.mark.parametrize("replay", [True, False])
def test_a_failure_at_once(replay: bool) -> None:
    """Before any delta."""

    async def main() -> None:
        stream = Source(OSError("no")).stream(replay=replay)
        with pytest.raises(OSError, match="no"):
            await contents(stream)

    run(main)


@pytest.mark.parametrize("replay", [True, False])
def test_a_source_that_cancels_itself_is_cancelled(replay: bool) -> None:
    """P4: no complete-looking answer, and no unrequested cancellation in a consumer."""

    async def main() -> None:
        stream = Source("a", asyncio.CancelledError()).stream(replay=replay)
        with pytest.raises(CrosswalkError, match="the stream was cancelled"):
            await contents(stream)
        assert stream.state is StreamState.CANCELLED

    run(main)


@pytest.mark.parametrize("replay", [True, False])
def test_a_failure_of_closing_is_a_failure(replay: bool) -> None:
    """Nothing passes silently, and the first failure is reported."""

    async def main() -> None:
        stream = Source("a", on_close=OSError("not closed")).stream(replay=replay)
        with pytest.raises(OSError, match="not closed"):
            await contents(stream)
        assert stream.state is StreamState.ERROR
        stream = Source("a", ValueError("first"), on_close=OSError("not closed")).stream(replay=replay)
        with pytest.raises(ValueError, match="first"):
            await contents(stream)

    run(main)


# ------------------------------------------------------------------------------------------------- closing


def test_closing_closes_the_source() -> None:
    """Design, section 6: what came can still be read, then comes an error: it is not complete (P4)."""

    async def main() -> None:
        source = Source(*TEXTS)
        async with source.stream() as stream:
            consumer = aiter(stream)
            await anext(consumer)
        assert (stream.state, source.closed) == (StreamState.CANCELLED, 1)
        again = aiter(stream)
        assert (await anext(again)).content_delta == "Hel"
        for reader in (consumer, again):
            with pytest.raises(CrosswalkError, match="the stream was closed"):
                await anext(reader)
        with pytest.raises(CrosswalkError, match="the stream was closed"):
            await stream.response()
        assert source.asked == 1

    run(main)


@pytest.mark.parametrize("replay", [True, False])
@pytest.mark.parametrize("steps", [0, 1, 2, 3])
def test_closing_works_at_any_moment(steps: int, replay: bool) -> None:
    """Before the reading began, while it begins, during a pull. Once, twice, and at the same time."""

    async def main() -> None:
        source = Source(asyncio.Event(), "a")
        stream = source.stream(replay=replay)
        waiting = asyncio.create_task(contents(stream))
        for _ in range(steps):
            await asyncio.sleep(0)
        await asyncio.gather(stream.aclose(), stream.aclose())
        await stream.aclose()
        with pytest.raises(CrosswalkError, match="the stream was closed"):
            await waiting
        assert (source.closed, stream.state) == (1, StreamState.CANCELLED)
        assert len(source.tasks) == 1 or not replay

    run(main)


@pytest.mark.parametrize("replay", [True, False])
def test_closing_what_was_never_read(replay: bool) -> None:
    """The source is closed without being asked for anything."""

    async def main() -> None:
        source = Source(*TEXTS)
        stream = source.stream(replay=replay)
        await stream.aclose()
        assert (source.asked, source.closed, stream.state) == (0, 1, StreamState.CANCELLED)

    run(main)


@pytest.mark.parametrize("replay", [True, False])
def test_closing_what_is_complete_changes_nothing(replay: bool) -> None:
    """It stays complete."""

    async def main() -> None:
        source = Source(*TEXTS)
        stream = source.stream(replay=replay)
        await contents(stream)
        await stream.aclose()
        assert (stream.state, source.closed) == (StreamState.COMPLETE, 1)
        assert (await stream.response()).text == "Hello!"

    run(main)


def test_a_stream_is_complete_with_its_final_delta() -> None:
    """FR-060, FR-062: who stops reading at ``is_complete``, as seed 000 shows, has the whole answer."""

    async def main() -> None:
        async with Source(*TEXTS).stream() as stream:
            async for delta in stream:
                if delta.is_complete:
                    break
        assert stream.state is StreamState.COMPLETE
        assert (await stream.response()).text == "Hello!"
        assert await contents(stream) == WHOLE

    run(main)


def test_the_end_of_another_choice_is_not_the_end() -> None:
    """FR-060: the final delta is that of the first choice."""

    async def deltas() -> AsyncIterator[ResponseDelta]:
        yield ResponseDelta(0, finish_reason=FinishReason.STOP, choice=1)
        raise AssertionError("not asked for")

    async def main() -> None:
        async with StreamingChatResponse(deltas(), lambda: ChatResponse.error("unused", model="m")) as stream:
            assert (await anext(aiter(stream))).is_complete
        assert stream.state is StreamState.CANCELLED

    run(main)


def test_closing_waits_for_the_source() -> None:
    """A source that needs time to close has it, and is not disturbed by being closed again."""

    async def main() -> None:
        gate, closed = asyncio.Event(), asyncio.Event()

        async def deltas() -> AsyncIterator[ResponseDelta]:
            try:
                yield ResponseDelta(0, content_delta="a")
                yield ResponseDelta(1, content_delta="b")
            finally:
                await gate.wait()
                closed.set()

        stream = StreamingChatResponse(deltas(), lambda: ChatResponse.error("unused", model="m"))
        await anext(aiter(stream))
        closing = [asyncio.create_task(stream.aclose()) for _ in range(2)]
        await settle()
        closing[0].cancel()
        await settle()
        assert closing[0].cancelled()
        assert not closing[1].done()
        gate.set()
        await closing[1]
        assert closed.is_set()

    run(main)


# --------------------------------------------------------------------------------------------- cancellation


def test_cancelling_the_last_consumer_closes_the_source() -> None:
    """FR-055: its read is cancelled, it is closed before the consumer's task ends."""

    async def main() -> None:
        source = Source("a", asyncio.Event())
        stream = source.stream()
        task = asyncio.create_task(contents(stream))
        await settle()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert source.was_cancelled
        assert (source.closed, stream.state) == (1, StreamState.CANCELLED)
        with pytest.raises(CrosswalkError, match="the stream was cancelled"):
            await contents(stream)

    run(main)


@pytest.mark.parametrize("replay", [True, False])
def test_cancelling_the_response_closes_the_source(replay: bool) -> None:
    """FR-055: a program that waits for the response alone is a consumer."""

    async def main() -> None:
        source = Source("a", asyncio.Event())
        stream = source.stream(replay=replay)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await stream.response()
        assert (source.closed, stream.state) == (1, StreamState.CANCELLED)

    run(main)


def test_a_cancelled_consumer_hurts_nobody_that_waits() -> None:
    """Design, section 6: also when it was the one to ask for the delta."""

    async def main() -> None:
        gate = asyncio.Event()
        source = Source("a", gate, "b")
        stream = source.stream()
        first, second = (asyncio.create_task(contents(stream)) for _ in range(2))
        await settle()
        first.cancel()
        await settle()
        assert first.cancelled()
        gate.set()
        assert await second == ["a", "b", None]
        assert not source.was_cancelled

    run(main)


def test_a_cancelled_consumer_hurts_nobody_that_is_busy() -> None:
    """Design, section 6: a slow consumer that is not waiting just now is a consumer too."""

    async def main() -> None:
        gate = asyncio.Event()
        source = Source("a", gate, "b")
        stream = source.stream()
        slow = aiter(stream)
        await anext(slow)
        other = asyncio.create_task(contents(stream))
        await settle()
        other.cancel()
        await settle()
        assert other.cancelled()
        assert (stream.state, source.closed) == (StreamState.ACTIVE, 0)
        gate.set()
        assert [delta.content_delta async for delta in slow] == ["b", None]

    run(main)


def test_when_all_are_cancelled_the_source_is_closed() -> None:
    """The last one closes it, and only once. One that left before counts no longer."""

    async def main() -> None:
        source = Source("a", asyncio.Event())
        stream = source.stream()
        async for _ in stream:
            break
        tasks = [asyncio.create_task(contents(stream)) for _ in range(3)]
        await settle()
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(result, asyncio.CancelledError) for result in results)
        assert (source.closed, stream.state) == (1, StreamState.CANCELLED)

    run(main)


def test_a_consumer_may_come_back_after_a_time_limit() -> None:
    """While another one keeps the stream open. It counts again from then on."""

    async def main() -> None:
        gate = asyncio.Event()
        source = Source("a", gate, "b")
        stream = source.stream()
        patient, other = aiter(stream), aiter(stream)
        await anext(patient)
        await anext(other)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await anext(patient)
        back, leaving = (asyncio.create_task(following(it)) for it in (patient, other))
        await settle()
        leaving.cancel()
        await settle()
        assert stream.state is StreamState.ACTIVE
        gate.set()
        assert (await back).content_delta == "b"
        await stream.response()

    run(main)


@pytest.mark.parametrize("replay", [True, False])
def test_a_stream_that_nobody_holds_goes_away(replay: bool) -> None:
    """No task is left behind, and the source is closed, when its consumer broke off and it is dropped."""

    async def main() -> None:
        source = Source(*TEXTS)
        async for _ in source.stream(replay=replay):
            break
        gc.collect()
        await settle()
        assert source.closed == 1

    run(main)


def test_the_end_of_the_program_closes_the_source() -> None:
    """``asyncio.run`` cancels the rest: the source is closed, and a consumer that reads on gets an error."""
    source = Source(*TEXTS)
    kept: list[StreamingChatResponse] = []

    async def main() -> None:
        kept.append(source.stream())
        await anext(aiter(kept[0]))

    asyncio.run(main())
    assert (source.closed, kept[0].state) == (1, StreamState.CANCELLED)
    kept.clear()
    gc.collect()


def test_a_stream_may_outlive_its_loop() -> None:
    """Dropped when its loop is closed: there is nothing left to do, and nothing is done."""
    loop = asyncio.new_event_loop()
    gate = asyncio.Event()
    stream = Source("a", gate).stream()
    consumer = aiter(stream)
    loop.run_until_complete(consumer.__anext__())
    [task] = asyncio.all_tasks(loop)
    task.cancel()
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
    del consumer, stream
    gc.collect()


# --------------------------------------------------------------------------------------------- replay=False


def test_without_replay_a_stream_is_read_once() -> None:
    """Design, section 6: the deltas are not kept, and a second consumer gets an error."""

    async def main() -> None:
        stream = Source(*TEXTS).stream(replay=False)
        assert await contents(stream) == WHOLE
        with pytest.raises(CrosswalkError, match="replay=False: it can be read once"):
            aiter(stream)
        assert (await stream.response()).text == "Hello!"

    run(main)


def test_without_replay_the_response_reads_the_rest() -> None:
    """Alone, or after a consumer broke off."""

    async def main() -> None:
        assert (await Source(*TEXTS).stream(replay=False).response()).text == "Hello!"
        stream = Source(*TEXTS).stream(replay=False)
        async for _ in stream:
            break
        assert (await stream.response()).text == "Hello!"

    run(main)


def test_without_replay_nothing_is_lost_silently() -> None:
    """P4: a consumer gets an error, and not an answer with a hole, if ``response()`` has read its deltas."""

    async def main() -> None:
        stream = Source(*TEXTS).stream(replay=False)
        consumer = aiter(stream)
        await anext(consumer)
        await stream.response()
        with pytest.raises(CrosswalkError, match=r"response\(\) has read on"):
            await anext(consumer)

    run(main)


def test_without_replay_no_task_stands_between_the_source_and_its_consumer() -> None:
    """The consumer's task reads, and nothing else of the loop has a turn for a delta that is there."""

    async def main() -> None:
        source = Source(*TEXTS)
        turns: list[None] = []
        asyncio.get_running_loop().call_soon(turns.append, None)
        assert await contents(source.stream(replay=False)) == WHOLE
        assert (turns, source.tasks, source.closed) == ([], {asyncio.current_task()}, 1)

    run(main)


@pytest.mark.parametrize("failure", [ConnectionError("gone"), CrosswalkError("cannot be read")])
def test_without_replay_a_failure_comes_after_what_came_before(failure: Exception) -> None:
    """FR-064: to the consumer, again if it asks again, and to ``response()``."""

    async def main() -> None:
        source = Source("a", "b", failure)
        stream = source.stream(replay=False)
        consumer = aiter(stream)
        assert [(await anext(consumer)).content_delta for _ in "ab"] == ["a", "b"]
        for _ in range(2):
            with pytest.raises(type(failure)) as caught:
                await anext(consumer)
            assert caught.value is failure
        with pytest.raises(type(failure)):
            await stream.response()
        assert (stream.state, source.asked, source.closed) == (StreamState.ERROR, 3, 1)

    run(main)


def test_without_replay_a_delta_of_a_read_that_cannot_be_made_is_a_failure() -> None:
    """It comes after the other deltas of that read, and the source is closed."""

    async def main() -> None:
        source = Batches(["a", "b", ZeroDivisionError()], ["c"])
        stream = source.stream(replay=False)
        consumer = aiter(stream)
        assert [(await anext(consumer)).content_delta for _ in "ab"] == ["a", "b"]
        with pytest.raises(ZeroDivisionError):
            await anext(consumer)
        assert (source.asked, source.closed, stream.state) == (1, 1, StreamState.ERROR)

    run(main)


def test_without_replay_a_cancelled_consumer_ends_the_stream() -> None:
    """FR-055: its read is cancelled, and the source is closed before the consumer's task ends."""

    async def main() -> None:
        source = Source("a", asyncio.Event())
        stream = source.stream(replay=False)
        consumer = aiter(stream)
        task = asyncio.create_task(following(consumer))
        assert (await task).content_delta == "a"
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await anext(consumer)
        assert source.was_cancelled
        assert (source.closed, stream.state) == (1, StreamState.CANCELLED)
        for read in (lambda: anext(consumer), stream.response):
            with pytest.raises(CrosswalkError, match="the stream was cancelled"):
                await read()

    run(main)


def test_without_replay_the_response_waits_for_its_turn() -> None:
    """A source is asked for one delta at a time, also by a consumer and ``response()`` in two tasks."""

    async def main() -> None:
        gate = asyncio.Event()
        stream = Source("a", gate, "b", "c").stream(replay=False)
        consumer = aiter(stream)
        await anext(consumer)
        waiting = asyncio.create_task(following(consumer))
        response = asyncio.create_task(stream.response())
        await settle()
        gate.set()
        assert (await waiting).content_delta == "b"
        assert (await response).text == "abc"
        with pytest.raises(CrosswalkError, match=r"response\(\) has read on"):
            await anext(consumer)

    run(main)


def test_without_replay_a_source_that_goes_on_when_it_is_closed_is_closed_all_the_same() -> None:
    """What it still gives is delivered, and then comes the error. The consumer's task is not left cancelled."""

    async def deltas() -> AsyncIterator[ResponseDelta]:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        yield ResponseDelta(0, content_delta="late")
        raise AssertionError("not asked for")

    async def main() -> None:
        stream = StreamingChatResponse(
            deltas(), lambda: ChatResponse.error("unused", model="m"), replay=False
        )
        consumer = aiter(stream)

        async def read() -> tuple[str | None, int]:
            task = asyncio.current_task()
            assert task is not None
            return (await anext(consumer)).content_delta, task.cancelling()

        reading = asyncio.create_task(read())
        await settle()
        await stream.aclose()
        assert await reading == ("late", 0)
        with pytest.raises(CrosswalkError, match="the stream was closed"):
            await anext(consumer)

    run(main)


def test_without_replay_a_stream_may_outlive_its_loop() -> None:
    """Dropped when its loop is closed: there is nothing left to do, and nothing is done."""
    source = Source(*TEXTS)
    kept: list[StreamingChatResponse] = []

    async def main() -> None:
        kept.append(source.stream(replay=False))
        await anext(aiter(kept[0]))

    asyncio.run(main())
    kept.clear()
    gc.collect()
    assert source.closed == 0


def test_closing_lets_a_cancelled_source_end() -> None:
    """A second cancellation would cut short what the source does in its ``finally``."""
    log: list[str] = []

    async def run() -> None:
        waits, ends, may_end = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def source() -> AsyncGenerator[bytes, None]:
            try:
                waits.set()
                await asyncio.Event().wait()
                yield b""
            finally:
                ends.set()
                await may_end.wait()
                log.append("ended")

        stream = anormalize_stream(source(), "vllm", replay=False)
        consumer = asyncio.create_task(contents(stream))
        await waits.wait()
        consumer.cancel()
        await ends.wait()
        closing = asyncio.create_task(stream.aclose())
        await asyncio.sleep(0)
        may_end.set()
        await closing
        with pytest.raises(asyncio.CancelledError):
            await consumer

    asyncio.run(run())
    assert log == ["ended"]
