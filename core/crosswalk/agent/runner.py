"""A runner of tools: calls run concurrently in a limited number of slots, and every outcome is a result."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import logging
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from contextvars import ContextVar
from typing import Any, TypeAlias

import attrs

from crosswalk.agent.results import (
    ToolError,
    ToolExecutionResult,
    ToolExecutionStart,
    ToolOutcome,
    result_of,
    waiting,
)
from crosswalk.agent.tools import Tool, ToolRegistry
from crosswalk.config import COUNT, TIME_LIMIT_OR_NONE
from crosswalk.errors import ResponseValidationError, ToolCallArgumentsError
from crosswalk.text import clean_message, counted
from crosswalk.types.message import ToolCall
from crosswalk.types.values import as_tuple, checks_keywords

# ----------------------------------------------------------------------------------- slots
# Slots that limit how many tool calls run at a time, over all runs, threads and event loops.


_LATE_THREADS_PER_SLOT = 4  # threads that may run past their time limit


@attrs.define(eq=False)
class ToolSlot:
    """The slot of one call, running or waiting to run.

    Attributes:
        thread: the thread that runs the call, or ``None`` if it runs in its event loop.
        deadline: when its time limit ends, on the monotonic clock, or ``None`` for no limit.
        is_abandoned: whether its run was cancelled while its thread, which cannot be stopped, keeps running.
    """

    thread: threading.Thread | None = None
    deadline: float | None = None
    is_abandoned: bool = False


class ToolSlots:
    """Limits how many calls run at the same time, and tracks threads that run past their time limit.

    A call releases its slot when it ends or its time limit does. If its run is cancelled, it holds the slot while its
    thread runs within the time limit: the limited resource is still in use.

    Args:
        number: how many calls may run at the same time.
    """

    def __init__(self, number: int) -> None:
        self._max_running = number
        self._lock = threading.Lock()
        self._running: set[ToolSlot] = set()
        self._late_threads: set[threading.Thread] = set()
        self._waiting_calls: deque[tuple[ToolSlot, asyncio.Event, asyncio.AbstractEventLoop]] = deque()

    @property
    def has_too_many_late(self) -> bool:
        """Whether so many threads run past their time limit that no other may start."""
        with self._lock:
            self._late_threads = {thread for thread in self._late_threads if thread.is_alive()}
            return len(self._late_threads) >= _LATE_THREADS_PER_SLOT * self._max_running

    async def acquire(self) -> ToolSlot:
        """Wait for a slot, first come, first served.

        A call made by a running call, by an agent inside a tool, shares the slot of the outer call.
        """
        slot, free_event = ToolSlot(), asyncio.Event()
        if self in _held_slots.get():
            return slot
        with self._lock:
            self._waiting_calls.append((slot, free_event, asyncio.get_running_loop()))
        try:
            while not free_event.is_set():
                # Nothing is notified when the time limit of an abandoned call ends, so check again then.
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._grant_free_slots(slot)):
                        await free_event.wait()
        except BaseException:
            self.release(slot)
            raise
        _held_slots.set((*_held_slots.get(), self))
        return slot

    def release(self, slot: ToolSlot, *, is_late: bool = False) -> None:
        """Release *slot* for the next call, from any thread. Releasing it again has no effect.

        Args:
            slot: the slot that :meth:`acquire` returned or was about to return.
            is_late: whether its thread runs past its time limit.
        """
        with self._lock:
            self._waiting_calls = deque(one for one in self._waiting_calls if one[0] is not slot)
            self._running.discard(slot)
            if is_late and slot.thread is not None:
                self._late_threads.add(slot.thread)
        self._grant_free_slots(slot)

    def _grant_free_slots(self, own_slot: ToolSlot) -> float | None:
        """Give free slots to waiting calls.

        Returns the seconds until another slot may become free, or ``None`` if that is unknown.
        """
        with self._lock:
            now, seconds_left = time.monotonic(), []
            for slot in list(self._running):
                if slot.thread is not None and slot.deadline is not None:
                    if slot.deadline > now:
                        seconds_left.append(slot.deadline - now)
                    else:
                        self._running.discard(slot)
                        self._late_threads.add(slot.thread)
            while self._waiting_calls and len(self._running) < self._max_running:
                slot, free_event, loop = self._waiting_calls.popleft()
                with suppress(RuntimeError):  # its event loop has been closed
                    if slot is own_slot:
                        free_event.set()
                    else:
                        loop.call_soon_threadsafe(free_event.set)
                    self._running.add(slot)
            return min(seconds_left, default=None)


_held_slots: ContextVar[tuple[ToolSlots, ...]] = ContextVar("crosswalk_tool_places", default=())
"""The limits in which the current call holds a slot."""


# ---------------------------------------------------------------------------------- runner
# A runner of tools: calls run concurrently, each with a time limit, and every outcome is a result.


_log = logging.getLogger("crosswalk.agent")


Approve: TypeAlias = Callable[[ToolCall], bool | str | Awaitable[bool | str | None] | None]
"""A function that decides whether a call may run. It returns ``True`` to approve, ``None`` to decide later, or a refusal.
A text is the reason for the refusal and is sent to the model.
"""


ToolTracer: TypeAlias = Callable[
    [ToolCall, Tool], AbstractContextManager[Callable[[ToolExecutionResult], None]]
]


def _ignore(_: object) -> None:
    """Ignore a report."""


@attrs.frozen
class _RunHooks:
    """The callbacks of one run."""

    approve: Approve | None
    report: Callable[[ToolExecutionStart | ToolExecutionResult], object]
    trace_tool: ToolTracer | None
    deps: object
    lock: asyncio.Lock = attrs.field(factory=asyncio.Lock)


class ToolRunner:
    """Runs calls of *tools*.

    A call never raises. Every error becomes its result, which is sent to the model. Only a cancellation from outside and
    the end of the program (``SystemExit``, ``KeyboardInterrupt``) propagate. The model gets the whole output of a tool,
    whatever its length.

    Args:
        tools: a registry, or tools and functions to make one from.
        timeout: how many seconds a call may take if its tool has no limit, or ``None`` for no limit. An asynchronous tool
            is cancelled then. A thread cannot be cancelled: a function that is not asynchronous runs to its end, and its
            result is dropped. While four times *max_parallel* such threads are running, no other starts.
        max_parallel: how many calls may run at the same time, over all runs together. A call that a tool makes through the
            same runner uses the tool's own slot.

    Raises:
        ToolDefinitionError: a function cannot be a tool, or two tools have the same name.
        ConfigurationError: a limit is invalid.
    """

    @checks_keywords()
    def __init__(
        self,
        tools: Iterable[Tool | Callable[..., Any]] | ToolRegistry = (),
        *,
        timeout: float | None = 60.0,
        max_parallel: int = 8,
    ) -> None:
        TIME_LIMIT_OR_NONE.check("timeout", timeout)
        COUNT.check("max_parallel", max_parallel)
        self.tools = tools if isinstance(tools, ToolRegistry) else ToolRegistry(tools)
        self._timeout = timeout
        self._slots = ToolSlots(max_parallel)

    async def run(
        self,
        calls: Iterable[ToolCall],
        *,
        report: Callable[[ToolExecutionStart | ToolExecutionResult], object] = _ignore,
        approve: Approve | None = None,
        trace_tool: ToolTracer | None = None,
        deps: object = None,
    ) -> tuple[ToolExecutionResult, ...]:
        """Run *calls* concurrently and return their results in the order of the calls.

        Args:
            calls: the calls that the model made.
            report: called when a tool starts and with each result, including those of a run that is cancelled.
            approve: called before a tool runs that needs approval, for one call at a time. A function that is not
                asynchronous runs in a thread and may wait for an answer. Without *approve* no such tool runs.
            trace_tool: returns a block in which the tool runs, such as a span. The block yields a function that gets the
                result.
            deps: given to each tool that takes a :class:`ToolContext`.

        Raises:
            ResponseValidationError: an item of *calls* is not a tool call. Nothing is run.
            ConfigurationError: *deps* does not have the type that a tool needs. Nothing is run.
            BaseException: *report* or *trace_tool* has raised it. The calls that still run are cancelled.
        """
        calls = as_tuple(calls)
        for call in calls:
            if not isinstance(call, ToolCall):
                raise ResponseValidationError(f"a runner runs ToolCalls, not {type(call).__name__}")
        self.check_deps(deps)
        hooks = _RunHooks(approve, report, trace_tool, deps)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._run_and_report(call, hooks)) for call in calls]
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return tuple(task.result() for task in tasks)

    def check_deps(self, deps: object) -> None:
        """Check that *deps* has the type that each tool needs.

        Raises:
            ConfigurationError: it has another type.
        """
        for tool in self.tools.values():
            tool.check_deps(deps)

    async def _run_and_report(self, call: ToolCall, hooks: _RunHooks) -> ToolExecutionResult:
        result = await self._run_call(call, hooks)
        _log_result(result)
        hooks.report(result)
        return result

    async def _run_call(self, call: ToolCall, hooks: _RunHooks) -> ToolExecutionResult:
        tool = self.tools.get(call.name)
        if tool is None:
            tool_names = ", ".join(self.tools) or "none"
            text = f"there is no tool {clean_message(call.name, 64)!r}; tools: {tool_names}"
            return ToolExecutionResult(call, "", text, outcome=ToolOutcome.UNKNOWN_TOOL)
        try:
            arguments = tool.with_context(tool.read_arguments(call), hooks.deps, call)
        except ToolCallArgumentsError as error:
            outcome = ToolOutcome.INVALID_ARGUMENTS
            return ToolExecutionResult(call, "", str(error), outcome=outcome, exception=error)
        if tool.is_external:
            return waiting(call, "its result comes from elsewhere")
        if tool.needs_approval and (declined_result := await self._declined(call, hooks)) is not None:
            return declined_result
        slot = await self._slots.acquire()
        try:
            hooks.report(ToolExecutionStart(call))
            if hooks.trace_tool is None:
                return await self._execute(tool, call, arguments, slot)
            with hooks.trace_tool(call, tool) as report:
                result = await self._execute(tool, call, arguments, slot)
                report(result)
                return result
        finally:
            if not slot.is_abandoned:
                self._slots.release(slot)

    async def _declined(self, call: ToolCall, hooks: _RunHooks) -> ToolExecutionResult | None:
        """Return the result of *call* if it may not run now, or ``None`` if it is approved."""
        answer: object = "no approval is possible here"
        failure: BaseException | None = None
        if hooks.approve is not None:
            try:
                async with hooks.lock:
                    answer = await self._call(functools.partial(hooks.approve, call), {}, ToolSlot())
            except BaseException as error:
                if _must_propagate(error):
                    raise
                answer, failure = "the approval failed", error
        if answer is True:
            return None
        if answer is None:
            return waiting(call, "the approval is undecided")
        text = f"declined: {answer}" if isinstance(answer, str) and answer else "declined"
        return ToolExecutionResult(call, "", text, outcome=ToolOutcome.DECLINED, exception=failure)

    async def _execute(
        self, tool: Tool, call: ToolCall, arguments: Mapping[str, Any], slot: ToolSlot
    ) -> ToolExecutionResult:
        limit = self._timeout if tool.timeout is None else tool.timeout
        slot.deadline = None if limit is None else time.monotonic() + limit
        result = ToolExecutionResult(call, "")
        failure: BaseException | None = None
        try:
            async with asyncio.timeout(limit) as scope:
                result = result_of(call, await self._call(tool.function, arguments, slot))
        except BaseException as error:
            if isinstance(error, SystemExit) and slot.thread is not None:
                # A tool that the model calls must not end the program.
                failure = ToolError("the tool tried to end the program")
            elif _must_propagate(error):
                raise
            else:
                failure = error
        if isinstance(failure, asyncio.CancelledError):
            text = "the tool was cancelled"
            return ToolExecutionResult(call, "", text, outcome=ToolOutcome.CANCELLED, exception=failure)
        if limit is not None and scope.expired():  # even if the tool ignored the cancellation and returned
            self._slots.release(slot, is_late=slot.is_abandoned)
            text = f"the tool took longer than {counted(limit, 'second')}"
            return ToolExecutionResult(call, "", text, outcome=ToolOutcome.TIMED_OUT, exception=failure)
        if failure is not None:
            text = _error_text(failure)
            return ToolExecutionResult(call, "", text, outcome=ToolOutcome.FAILED, exception=failure)
        return result

    async def _call(self, function: Callable[..., Any], arguments: Mapping[str, Any], slot: ToolSlot) -> Any:
        """Return the result of *function*. It runs in a thread unless it is asynchronous."""
        is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            type(function).__call__
        )
        value = function(**arguments) if is_async else await self._call_in_thread(function, arguments, slot)
        return await value if inspect.isawaitable(value) else value

    async def _call_in_thread(
        self, function: Callable[..., Any], arguments: Mapping[str, Any], slot: ToolSlot
    ) -> Any:
        """Run *function* in a daemon thread, so that a program can end while it runs.

        Threads of the event loop would block that.
        """
        if self._slots.has_too_many_late:
            raise ToolError("the tool was not run: too many calls are running past their time limit")
        loop = asyncio.get_running_loop()
        done_event = asyncio.Event()
        call_results: list[tuple[Any, BaseException | None]] = []
        context = contextvars.copy_context()

        def work() -> None:
            try:
                call_results.append((context.run(function, **arguments), None))
            except BaseException as error:
                call_results.append((None, error))
            with suppress(RuntimeError):  # the event loop is closed
                loop.call_soon_threadsafe(done_event.set)
            if slot.is_abandoned:
                self._slots.release(slot)

        slot.thread = threading.Thread(target=work, name=f"crosswalk tool {function!r:.60}", daemon=True)
        slot.thread.start()
        try:
            await done_event.wait()
        except asyncio.CancelledError:
            slot.is_abandoned = (
                True  # set before the check, so that this task or the thread releases the slot
            )
            if not call_results:
                raise
            slot.is_abandoned = False  # the result exists: return it
        value, failure = call_results[0]
        if failure is not None:
            raise failure
        return value


def _must_propagate(error: BaseException) -> bool:
    """Whether *error* ends the program or cancels the waiting task, rather than being a failure of the function."""
    task = asyncio.current_task()
    is_cancelled = task is not None and task.cancelling() > 0
    return isinstance(error, SystemExit | KeyboardInterrupt) or (
        isinstance(error, asyncio.CancelledError) and is_cancelled
    )


def _error_text(error: BaseException) -> str:
    """Return the text of *error* for the model: the message of a ``ToolError``, or a cleaned message."""
    name = clean_message(type(error).__name__, 80)
    try:
        text = str(error)
    except BaseException:
        return name  # str() of the error fails
    return (
        text.encode(errors="replace").decode()
        if isinstance(error, ToolError)
        else clean_message(f"{name}: {text}")
    )


def _log_result(result: ToolExecutionResult) -> None:
    """Log the result of a call, without arguments, output and error text: a failure at INFO, a success at DEBUG."""
    level = logging.DEBUG if result.error is None else logging.INFO
    if not _log.isEnabledFor(level):
        return
    name = clean_message(result.call.name, 64)
    extra = {
        "event.name": "crosswalk.tool_call",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.id": clean_message(result.call.id, 80),
        "crosswalk.outcome": result.outcome.value,
    }
    if result.exception is not None:
        extra["error.type"] = type(result.exception).__name__
    _log.log(level, "tool %s: %s", name, result.outcome.value, extra=extra)
