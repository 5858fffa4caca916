"""OpenTelemetry spans of agents and their tools, after the GenAI conventions. Needs ``crosswalk-llm[otel]``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from crosswalk.agent.results import ToolExecutionResult
from crosswalk.agent.tools import Tool
from crosswalk.agent.turn import AgentOutcome, AgentTurn
from crosswalk.errors import CrosswalkError
from crosswalk.text import clean_message
from crosswalk.types.message import ToolCall
from crosswalk.types.usage import UsageInfo

if TYPE_CHECKING:
    from opentelemetry.trace import Span, TracerProvider


class AgentTelemetry:
    """Creates a span ``invoke_agent`` for each run and a span ``execute_tool`` for each tool that starts.

    The spans of ``crosswalk.service.otel.OpenTelemetry`` are children of the run's span. No span contains content.

    Args:
        tracer_provider: creates the tracer, or ``None`` for the global provider.

    Raises:
        CrosswalkError: OpenTelemetry is not installed.
    """

    def __init__(self, tracer_provider: TracerProvider | None = None) -> None:
        try:
            from opentelemetry import trace
        except ImportError:
            raise CrosswalkError("this needs OpenTelemetry: pip install 'crosswalk-llm[otel]'") from None
        self._tracer = trace.get_tracer("crosswalk.agent", tracer_provider=tracer_provider)

    def begin(self, name: str | None, conversation_id: str | None) -> RunSpan:
        """Start the span of a run of the agent *name* in the session *conversation_id*."""
        attributes = {"gen_ai.operation.name": "invoke_agent"}
        if name is not None:
            attributes["gen_ai.agent.name"] = name
        if conversation_id is not None:
            attributes["gen_ai.conversation.id"] = conversation_id
        span = self._tracer.start_span(" ".join(filter(None, ("invoke_agent", name))), attributes=attributes)
        return RunSpan(self, span)

    @contextmanager
    def trace_tool(self, call: ToolCall, tool: Tool) -> Iterator[Callable[[ToolExecutionResult], None]]:
        """Open the span of *call*. Pass the result to the function that the block yields."""
        from opentelemetry.trace import Status, StatusCode

        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool.name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": clean_message(call.id, 200),
            "gen_ai.tool.description": tool.description,
        }
        with self._tracer.start_as_current_span(
            f"execute_tool {tool.name}", attributes=attributes, record_exception=False
        ) as span:

            def set_result(result: ToolExecutionResult) -> None:
                span.set_attribute("crosswalk.outcome", result.outcome.value)
                if result.error is not None:
                    error_type = (
                        result.outcome.value if result.exception is None else type(result.exception).__name__
                    )
                    span.set_attribute("error.type", error_type)
                    span.set_status(Status(StatusCode.ERROR))

            yield set_result


class RunSpan:
    """The span of a run."""

    def __init__(self, telemetry: AgentTelemetry, span: Span) -> None:
        self.trace_tool = telemetry.trace_tool
        self._span = span

    def current(self) -> AbstractContextManager[object]:
        """Return a block in which this is the current span."""
        from opentelemetry.trace import use_span

        return use_span(self._span, record_exception=False, set_status_on_exception=False)

    def end(self, turns: list[AgentTurn], error: BaseException | None) -> None:
        """End the span of a run that made *turns*, or raised *error*."""
        from opentelemetry.trace import Status, StatusCode

        usage = sum((turn.response.usage for turn in turns), UsageInfo.EMPTY)
        outcome = (turns[-1].outcome if turns else None) or AgentOutcome.CANCELLED
        attributes: dict[str, str | int] = {"crosswalk.turns": len(turns), "crosswalk.outcome": outcome.value}
        if usage.total_tokens:
            attributes["gen_ai.usage.input_tokens"] = usage.prompt_tokens
            attributes["gen_ai.usage.output_tokens"] = usage.completion_tokens
        if error is not None:
            attributes["error.type"] = type(error).__name__
        elif outcome is AgentOutcome.ERROR:
            info = turns[-1].response.error_info
            attributes["error.type"] = "_OTHER" if info is None else info.kind.value
        self._span.set_attributes(attributes)
        if "error.type" in attributes:
            self._span.set_status(Status(StatusCode.ERROR))
        self._span.end()
