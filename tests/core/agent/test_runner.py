"""Running tools: every ending is a result. Only a cancellation from outside gets through."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import sys
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, NamedTuple

import attrs
import pydantic
import pytest

from crosswalk import (
    AudioPart,
    ChatMessage,
    ConfigurationError,
    FilePart,
    ImagePart,
    ResponseValidationError,
    TextPart,
    ToolCall,
    UsageInfo,
)
from crosswalk.agent import (
    ToolDefinitionError,
    ToolError,
    ToolExecutionResult,
    ToolExecutionStart,
    ToolOutcome,
    ToolRegistry,
    ToolRunner,
    tool,
)


class Colour(Enum):
    RED = "red"


@attrs.frozen
class Point:
    x: int
    colour: Colour
    at: datetime


def run(runner: ToolRunner, *calls: ToolCall) -> tuple[ToolExecutionResult, ...]:
    async def main() -> tuple[ToolExecutionResult, ...]:
        async with asyncio.timeout(60):
            return await runner.run(calls)

    return asyncio.run(main())


def outcome_of(function: Callable[..., Any], arguments: str = "{}", **limits: Any) -> ToolExecutionResult:
    runner = ToolRunner(**limits)
    runner.tools.add(tool(name="it")(function))
    (result,) = run(runner, ToolCall("c1", "it", arguments))
    return result


async def later(value: Any) -> Any:
    await asyncio.sleep(0)
    return value


class Model(pydantic.BaseModel):
    at: Decimal


class Pair(NamedTuple):
    a: int
    b: str


@attrs.frozen
class Hidden:
    _x: Any


class Later:
    async def __call__(self) -> str:
        return await later("from an object")


@pytest.mark.parametrize(
    ("function", "output"),
    [
        (lambda: "text", "text"),
        (lambda: "", ""),
        (lambda: None, "null"),
        (lambda: 3, "3"),
        (lambda: [10**30], f"[{10**30}]"),
        (lambda: ["a", 1, None], '["a",1,null]'),
        (lambda: {"a": {"b": (1, 2)}}, '{"a":{"b":[1,2]}}'),
        (
            lambda: Point(1, Colour.RED, datetime(2026, 1, 2, tzinfo=UTC)),
            '{"x":1,"colour":"red","at":"2026-01-02T00:00:00Z"}',
        ),
        (lambda: {1: {2}, "x": frozenset(), None: deque([Colour.RED])}, '{"1":[2],"x":[],"null":["red"]}'),
        (lambda: [Decimal("1.50"), Model(at=Decimal(2))], '["1.50",{"at":"2"}]'),
        (lambda: {Colour.RED: 1}, '{"red":1}'),
        (lambda: [timedelta(minutes=2), Pair(1, "b"), Hidden(3)], '[120.0,{"a":1,"b":"b"},{"x":3}]'),
        (
            lambda: {"used": UsageInfo(1, 2)},
            '{"used":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}',
        ),
        (lambda: later("awaited"), "awaited"),
        (Later(), "from an object"),
    ],
    ids=range(15),
)
def test_what_a_tool_gives_is_told_as_text_or_json(function: Callable[..., Any], output: str) -> None:
    result = outcome_of(function)
    assert (result.output, result.error, result.outcome) == (output, None, ToolOutcome.OK)
    assert result.message == ChatMessage.tool_result("c1", output, name="it")


IMAGE = ImagePart(data="iVBORw0KGgo=", media_type="image/png")
FILE = FilePart(url="https://x/y.pdf")


@pytest.mark.parametrize(
    ("given", "parts", "output"),
    [
        (IMAGE, (IMAGE,), ""),
        (TextPart("seen"), (TextPart("seen"),), "seen"),
        (
            ["It is ", IMAGE, {"x": 1}, FILE],
            (TextPart("It is "), IMAGE, TextPart('{"x":1}'), FILE),
            'It is {"x":1}',
        ),
        ((AudioPart(data="aGk="),), (AudioPart(data="aGk="),), ""),
    ],
)
def test_images_and_files_are_told_as_what_they_are(given: Any, parts: tuple[Any, ...], output: str) -> None:
    result = outcome_of(lambda: given)
    assert (result.parts, result.output, result.value) == (parts, output, given)
    assert result.message == ChatMessage.tool_result("c1", parts, name="it")


@pytest.mark.parametrize(
    "given", [{"image": IMAGE}, [[IMAGE]], {"a": [FILE]}, Hidden(IMAGE), Hidden({"a": [IMAGE]}), b"an image"]
)
def test_an_image_inside_of_something_else_is_no_result(given: Any) -> None:
    """As JSON it would be base64 in words, which no model sees."""
    result = outcome_of(lambda: given)
    assert result.outcome is ToolOutcome.FAILED
    assert "cannot be written as JSON" in (result.error or "")
    assert IMAGE.data not in str(result.error)


def refuse() -> None:
    raise ToolError("the shop is closed")


def fail() -> None:
    raise KeyError("/home/ann/secret.txt api_key=sk-abcdefghijkl")


def stop() -> None:
    raise StopIteration


async def never() -> None:
    await asyncio.Event().wait()


async def cancel_itself() -> None:
    raise asyncio.CancelledError


def surrogate() -> None:
    raise ToolError("gone \ud800")


async def its_own_limit() -> None:
    raise TimeoutError("of its own")


@pytest.mark.parametrize(
    ("function", "outcome", "error", "exception"),
    [
        (refuse, ToolOutcome.FAILED, "the shop is closed", ToolError),
        (fail, ToolOutcome.FAILED, "KeyError: '<path> api_key=<secret>'", KeyError),
        (stop, ToolOutcome.FAILED, "RuntimeError: coroutine raised StopIteration", RuntimeError),
        (never, ToolOutcome.TIMED_OUT, "the tool took longer than 0.01 seconds", TimeoutError),
        (its_own_limit, ToolOutcome.FAILED, "TimeoutError: of its own", TimeoutError),
        (cancel_itself, ToolOutcome.CANCELLED, "the tool was cancelled", asyncio.CancelledError),
        (
            lambda: object(),
            ToolOutcome.FAILED,
            "the tool's result, a object, cannot be written as JSON",
            ToolError,
        ),
        (
            lambda: {"a": [1.5, float("nan"), None]},
            ToolOutcome.FAILED,
            "the tool's result contains NaN or an infinity, which JSON does not have",
            ToolError,
        ),
        (
            lambda: b"x",
            ToolOutcome.FAILED,
            "the tool's result, a bytes, cannot be written as JSON",
            ToolError,
        ),
        (surrogate, ToolOutcome.FAILED, "gone ?", ToolError),
        (lambda: "\ud800", ToolOutcome.FAILED, "the tool's result contains an unpaired surrogate", ToolError),
        (
            lambda: ["\ud800"],
            ToolOutcome.FAILED,
            "the tool's result, a list, cannot be written as JSON",
            ToolError,
        ),
    ],
    ids=range(12),
)
def test_what_goes_wrong_is_told_to_the_model(
    function: Callable[..., Any],
    outcome: ToolOutcome,
    error: str,
    exception: type[BaseException],
) -> None:
    result = outcome_of(function, timeout=0.01 if function is never else 60)
    assert (result.outcome, result.error, result.output) == (outcome, error, "")
    assert isinstance(result.exception, exception)
    assert result.message.content == f"Error: {error}"


def test_the_log_tells_what_was_run_and_no_content(caplog: pytest.LogCaptureFixture) -> None:
    @tool
    def shout(text: str) -> str:
        if not text:
            raise KeyError("content")
        return text.upper()

    calls = [
        ToolCall("1", "shout", '{"text": "content"}'),
        ToolCall("2", "shout", '{"text": ""}'),
        ToolCall("3", "x\n"),
    ]
    run(ToolRunner([shout]), *calls)
    assert not caplog.records
    caplog.set_level(logging.DEBUG, "crosswalk.agent")
    run(ToolRunner([shout]), *calls)
    said = {(one.levelno, one.getMessage(), vars(one).get("error.type")) for one in caplog.records}
    assert said == {
        (logging.DEBUG, "tool shout: ok", None),
        (logging.INFO, "tool shout: failed", "KeyError"),
        (logging.INFO, "tool x: unknown_tool", None),
    }
    assert len(caplog.records) == 3
    assert {key for record in caplog.records for key in vars(record) if "." in key} == {
        "event.name",
        "gen_ai.tool.name",
        "gen_ai.tool.call.id",
        "crosswalk.outcome",
        "error.type",
    }
    assert "content" not in str([vars(record) for record in caplog.records]).lower().replace(
        "relativecreated", ""
    )


def test_wrong_arguments_and_unknown_tools_are_results() -> None:
    @tool
    def double(number: int) -> int:
        return 2 * number

    cut, wrong, unknown, right = run(
        ToolRunner([double]),
        ToolCall("1", "double", '{"numb'),
        ToolCall("2", "double", '{"number": "2"}'),
        ToolCall("3", "triple"),
        ToolCall("4", "double", '{"number": 2}'),
    )
    assert cut.outcome is wrong.outcome is ToolOutcome.INVALID_ARGUMENTS
    assert "not JSON" in str(cut.error)
    assert wrong.error == "invalid arguments: expected integer, got string @ $.number"
    assert (unknown.outcome, unknown.error) == (
        ToolOutcome.UNKNOWN_TOOL,
        "there is no tool 'triple'; tools: double",
    )
    assert (right.output, right.call.id) == ("4", "4")
    (nothing,) = run(ToolRunner(), ToolCall("1", "x\x1b[2J" * 50))
    assert str(nothing.error).endswith("; tools: none")
    assert "\x1b" not in str(nothing.error)


def test_a_function_that_blocks_is_left_behind_at_its_limit() -> None:
    """Neither its result nor its end is waited for, and nothing breaks when it does end."""
    go_on = threading.Event()
    threads: list[threading.Thread] = []

    @tool(timeout=0.01)
    def block() -> None:
        threads.append(threading.current_thread())
        go_on.wait(60)

    (result,) = run(ToolRunner([block], timeout=None), ToolCall("1", "block"))
    assert result.outcome is ToolOutcome.TIMED_OUT
    assert threads[0].is_alive()
    go_on.set()
    threads[0].join()


def test_a_late_result_is_dropped() -> None:
    async def main() -> ToolExecutionResult:
        go_on = threading.Event()
        threads: list[threading.Thread] = []

        @tool(timeout=0.01)
        def block() -> None:
            threads.append(threading.current_thread())
            go_on.wait(60)

        (result,) = await ToolRunner([block]).run([ToolCall("1", "block")])
        go_on.set()
        await asyncio.to_thread(threads[0].join)
        await asyncio.sleep(0)  # what the thread had to say has been heard
        return result

    assert asyncio.run(main()).outcome is ToolOutcome.TIMED_OUT


def test_calls_run_side_by_side_in_the_order_of_their_results() -> None:
    """Each waits for the others: one after the other, they would never end."""
    here = threading.Barrier(3, timeout=60)

    @tool
    def meet(number: int) -> int:
        here.wait()
        return number

    calls = [ToolCall(str(n), "meet", f'{{"number": {n}}}') for n in range(3)]
    assert [result.output for result in run(ToolRunner([meet]), *calls)] == ["0", "1", "2"]


def test_no_more_run_at_once_than_allowed() -> None:
    running, most = 0, 0

    @tool
    async def count() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    run(ToolRunner([count], max_parallel=2), *[ToolCall(str(n), "count") for n in range(9)])
    assert most == 2


def test_a_cancellation_reaches_the_tools() -> None:
    async def main() -> list[str]:
        seen: list[str] = []
        started = asyncio.Event()

        async def wait() -> None:
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                seen.append("cancelled")

        task = asyncio.create_task(ToolRunner([wait]).run([ToolCall("1", "wait"), ToolCall("2", "wait")]))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return seen

    assert asyncio.run(main())


@pytest.mark.parametrize("ending", [SystemExit, KeyboardInterrupt])
def test_what_ends_a_program_gets_through(ending: type[BaseException]) -> None:
    """A signal may come at any time, in the midst of a tool as well."""

    async def leave() -> None:
        raise ending

    with pytest.raises(BaseException) as caught:  # noqa: PT011
        run(ToolRunner([leave]), ToolCall("1", "leave"))
    assert isinstance(caught.value, ending)


def test_a_function_that_leaves_does_not_end_the_program() -> None:
    """As those of a command line do. The model has called it, without a request for an end."""

    def leave() -> None:
        sys.exit("wrong arguments")

    (result,) = run(ToolRunner([leave]), ToolCall("1", "leave"))
    assert (result.outcome, result.error) == (ToolOutcome.FAILED, "the tool tried to end the program")


@pytest.mark.parametrize("calls", [["leave"], [None], "leave", None, 7])
def test_what_is_no_call_is_refused(calls: Any) -> None:
    with pytest.raises(ResponseValidationError, match="ToolCalls, not|expected a list"):
        asyncio.run(ToolRunner([]).run(calls))


def test_a_thread_sees_the_context_of_its_caller() -> None:
    user = contextvars.ContextVar("user", default="nobody")

    async def main() -> str:
        user.set("ann")
        (result,) = await ToolRunner([tool(name="who")(lambda: user.get())]).run([ToolCall("1", "who")])
        return result.output

    assert asyncio.run(main()) == "ann"


def test_limits_and_tools_are_checked() -> None:
    for wrong in ({"timeout": 0}, {"timeout": float("nan")}, {"max_parallel": 0}):
        with pytest.raises(ConfigurationError):
            ToolRunner(**wrong)  # type: ignore[arg-type]
    with pytest.raises(ToolDefinitionError):
        ToolRunner([fail, fail])
    registry = ToolRegistry([fail])
    assert ToolRunner(registry).tools is registry


def test_a_result_of_your_own() -> None:
    call = ToolCall("1", "x")
    assert ToolExecutionResult(call, "out").outcome is ToolOutcome.OK
    assert ToolExecutionResult(call, "", "bad").outcome is ToolOutcome.FAILED
    assert repr(ToolExecutionResult(call, "out")) == (
        "ToolExecutionResult(call=ToolCall(id='1', name='x', arguments='{}'), outcome='ok', output='out')"
    )


# ------------------------------------------------------------------------------------ tools that behave badly


class Untold(Exception):
    """An error that cannot say what it is."""

    def __str__(self) -> str:
        raise ValueError


class Untellable(ToolError):
    __str__ = Untold.__str__


class Own(BaseException):
    """A tool that takes a base class too many."""


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Untold(), "Untold"),
        (Untellable(), "Untellable"),
        (Own("no"), "Own: no"),
        (GeneratorExit(), "GeneratorExit: "),
        (ToolError("bad \ud800"), "bad ?"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_whatever_is_raised_is_a_result(error: BaseException, told: str, is_async: bool) -> None:
    def plain() -> str:
        raise error

    async def coroutine() -> str:
        raise error

    result = outcome_of(coroutine if is_async else plain)
    assert result.outcome is ToolOutcome.FAILED
    assert (result.error or "").strip() == told.strip()
    assert result.exception is error


def test_a_tool_that_takes_no_notice_of_its_time() -> None:
    async def stubborn() -> str:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        return "late"

    result = outcome_of(stubborn, timeout=0.01)
    assert (result.outcome, result.output, result.exception) == (ToolOutcome.TIMED_OUT, "", None)


def test_threads_that_run_on_are_not_without_number() -> None:
    """A thread cannot be stopped: when too many are late, no other is begun until some have ended."""
    go, threads = threading.Event(), []

    def hang() -> str:
        threads.append(threading.current_thread())
        go.wait()
        return "done"

    runner = ToolRunner([hang], timeout=0.01, max_parallel=1)
    call = ToolCall("c", "hang", "{}")
    results = [run(runner, call)[0] for _ in range(6)]
    assert [result.outcome for result in results] == [ToolOutcome.TIMED_OUT] * 4 + [ToolOutcome.FAILED] * 2
    assert "too many calls are running" in (results[-1].error or "")
    go.set()
    for thread in threads:
        thread.join()
    assert run(ToolRunner(runner.tools), call)[0].output == "done"
    assert run(runner, call)[0].error != results[-1].error


# --------------------------------------------------------------------------------------- places are shared


class Counted:
    """A tool in a thread that says how many of it run, and ends when it is let go.

    Attributes:
        most: how many ran at the same time at most.
        runs: how often it was called.
    """

    def __init__(self) -> None:
        self.most = self.runs = self._now = 0
        self.go = threading.Event()
        self.begun = threading.Semaphore(0)
        self._lock = threading.Lock()

    def __call__(self) -> str:
        with self._lock:
            self._now += 1
            self.runs += 1
            self.most = max(self.most, self._now)
        self.begun.release()
        self.go.wait(60)
        with self._lock:
            self._now -= 1
        return "found"


CALL = ToolCall("1", "it", "{}")


def runner_of(function: Callable[..., Any], **limits: Any) -> ToolRunner:
    return ToolRunner([tool(name="it")(function)], **limits)


def test_50_runs_of_one_runner_wait_for_their_turn_and_none_fails() -> None:
    """Their tools take their time, but none is past its limit."""
    counted = Counted()
    runner = runner_of(counted, max_parallel=3)

    async def main() -> list[tuple[ToolExecutionResult, ...]]:
        runs = [asyncio.create_task(runner.run([CALL])) for _ in range(50)]
        for _ in range(3):
            await asyncio.to_thread(counted.begun.acquire)
        counted.go.set()
        return await asyncio.gather(*runs)

    results = asyncio.run(main())
    assert [[result.output for result in one] for one in results] == [["found"]] * 50
    assert (counted.runs, counted.most) == (50, 3)


def test_runs_of_several_event_loops_share_the_places() -> None:
    counted = Counted()
    runner = runner_of(counted, max_parallel=1)
    outputs: list[str] = []
    loops = [
        threading.Thread(target=lambda: outputs.append(run(runner, CALL, CALL)[1].output)) for _ in range(4)
    ]
    for thread in loops:
        thread.start()
    counted.begun.acquire()
    counted.go.set()
    for thread in loops:
        thread.join()
    assert (outputs, counted.most) == (["found"] * 4, 1)


def test_a_call_that_no_longer_waits_keeps_no_place() -> None:
    counted = Counted()
    runner = runner_of(counted, max_parallel=1)

    async def main() -> None:
        first, *others = [asyncio.create_task(runner.run([CALL])) for _ in range(4)]
        await asyncio.to_thread(counted.begun.acquire)
        others[0].cancel()
        counted.go.set()
        await first
        others[1].cancel()  # it may have been given its place
        assert [result.output for result in await others[2]] == ["found"]
        await asyncio.wait(others)

    asyncio.run(main())


def test_an_event_loop_that_is_gone_keeps_no_place() -> None:
    """Its tasks were dropped unchanged when it was closed."""
    counted = Counted()
    runner = runner_of(counted, max_parallel=1)
    gone = asyncio.new_event_loop()

    async def main() -> None:
        first = asyncio.create_task(runner.run([CALL]))
        await asyncio.to_thread(counted.begun.acquire)
        lost = gone.create_task(runner.run([CALL]))
        lost._log_destroy_pending = False  # type: ignore[attr-defined]  # this is what the test is about
        await asyncio.to_thread(lambda: [gone.run_until_complete(asyncio.sleep(0)) for _ in range(3)])
        gone.close()
        counted.go.set()
        await first
        assert [result.output for result in await runner.run([CALL])] == ["found"]

    asyncio.run(main())


def test_a_thread_whose_run_was_cancelled_keeps_its_place_until_it_ends() -> None:
    counted = Counted()
    runner = runner_of(counted, max_parallel=1)

    async def main() -> None:
        stopped = asyncio.create_task(runner.run([CALL]))
        await asyncio.to_thread(counted.begun.acquire)
        stopped.cancel()
        await asyncio.wait({stopped})
        assert stopped.cancelled()
        next = asyncio.create_task(runner.run([CALL]))
        for _ in range(5):
            await asyncio.sleep(0)
        assert counted.runs == 1
        counted.go.set()
        assert [result.output for result in await next] == ["found"]
        assert counted.most == 1

    asyncio.run(main())


def test_and_not_longer_than_its_time() -> None:
    """Then it is one of those that run on behind their limit."""
    counted = Counted()
    runner = runner_of(counted, max_parallel=1, timeout=0.05)

    async def main() -> list[ToolOutcome]:
        stopped = asyncio.create_task(runner.run([CALL]))
        await asyncio.to_thread(counted.begun.acquire)
        stopped.cancel()
        await asyncio.wait({stopped})
        outcomes = [(await runner.run([CALL]))[0].outcome for _ in range(4)]
        counted.go.set()
        return outcomes

    assert asyncio.run(main()) == [ToolOutcome.TIMED_OUT] * 3 + [ToolOutcome.FAILED]
    for thread in threading.enumerate():
        if thread.name.startswith("crosswalk tool"):
            thread.join()


def test_what_a_tool_asks_of_its_own_runner_runs_in_its_place() -> None:
    """An agent in a tool: with places of their own the two would wait for each other."""

    async def outer() -> str:
        return (await runner.run([ToolCall("2", "inner", "{}")]))[0].output

    async def inner() -> str:
        return "from inside"

    runner = ToolRunner([outer, inner], max_parallel=1)
    assert run(runner, ToolCall("1", "outer", "{}"))[0].output == "from inside"


def test_what_a_thread_had_done_when_its_run_was_cancelled_is_its_result() -> None:
    """It has had its effect. The event loop has only not heard of it yet."""
    counted = Counted()
    told: list[Any] = []

    async def main() -> None:
        task = asyncio.create_task(runner_of(counted).run([CALL], report=told.append))
        await asyncio.to_thread(counted.begun.acquire)
        counted.go.set()
        for thread in threading.enumerate():
            if thread.name.startswith("crosswalk tool"):
                thread.join()  # without a step of the event loop
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()

    asyncio.run(main())
    assert told == [ToolExecutionStart(CALL), ToolExecutionResult(CALL, "found")]
    assert repr(told[0]) == "ToolExecutionStart(call=ToolCall(id='1', name='it', arguments='{}'))"


@pytest.mark.parametrize(
    "limits",
    [
        {"timeout": "x"},
        {"timeout": True},
        {"timeout": float("inf")},
        {"max_parallel": 1.5},
        {"max_parallel": "3"},
    ],
    ids=str,
)
def test_limits_that_are_none(limits: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="must be"):
        ToolRunner(**limits)


def test_a_call_beyond_a_limit_runs_nothing() -> None:
    paid = []

    @tool
    def pay(
        amount: Annotated[int, pydantic.Field(ge=1, le=100)],
        note: Annotated[str, pydantic.Field(max_length=3, description="why")] = "",
    ) -> str:
        """Pay.

        Args:
            amount: how much.
            note: not used, the annotation says it.
        """
        paid.append(amount)
        return f"paid {amount}"

    assert pay.parameters["properties"] == {
        "amount": {"type": "integer", "minimum": 1, "maximum": 100, "description": "how much."},
        "note": {"type": "string", "maxLength": 3, "description": "why", "default": ""},
    }
    results = run(
        ToolRunner([pay]),
        ToolCall("1", "pay", '{"amount": 100000}'),
        ToolCall("2", "pay", '{"amount": 1, "note": "rent"}'),
        ToolCall("3", "pay", '{"amount": 100, "note": "tea"}'),
    )
    assert [(result.outcome, result.error or result.output) for result in results] == [
        ("invalid_arguments", "invalid arguments: must be <= 100 @ $.amount"),
        ("invalid_arguments", "invalid arguments: must have at most 3 characters @ $.note"),
        ("ok", "paid 100"),
    ]
    assert paid == [100]
