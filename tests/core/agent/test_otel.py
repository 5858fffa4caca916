"""Spans of agents and tools in OpenTelemetry's words."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode, get_current_span

from crosswalk import CrosswalkError
from crosswalk.agent import Agent, AgentTelemetry, ChatConfig, ChatSession
from crosswalk.service import Endpoint, LLMService, OpenTelemetry, RetryPolicy
from crosswalk.testing.replay import Answer, ReplayServer

Run = Callable[..., Any]
Said = Callable[..., Answer]


@pytest.fixture
def spans() -> tuple[TracerProvider, InMemorySpanExporter]:
    exporter, tracers = InMemorySpanExporter(), TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    return tracers, exporter


def secret(word: str) -> str:
    """Tell a secret."""
    if word == "no":
        raise KeyError(word)
    return get_current_span().name  # type: ignore[attr-defined, no-any-return]


CALLS = [("1", "secret", '{"word": "content"}'), ("2", "secret", '{"word": "no"}'), ("3", "secret", "{}")]


@pytest.mark.parametrize("method", ["run", "stream"])
def test_a_run_its_answers_and_its_tools(
    server: ReplayServer, endpoint: Endpoint, said: Said, spans: Any, method: str
) -> None:
    tracers, exporter = spans
    server.add(said(None, *CALLS)).add(said("content"))
    session = ChatSession(id="s1")

    async def main() -> Any:
        options: Any = {"retry": RetryPolicy(attempts=1), "client_options": {"verify": False}}
        async with LLMService(endpoint, observers=[OpenTelemetry(tracers)], **options) as service:
            agent = Agent(service, [secret], name="spy", telemetry=AgentTelemetry(tracers))
            return await getattr(agent, method)("content", session=session).finish()

    response = asyncio.run(main())
    assert response.turns[0].tool_results[0].output == "execute_tool secret"
    by_name: dict[str, list[Any]] = {}
    for span in exporter.get_finished_spans():
        by_name.setdefault(span.name, []).append(span)
    assert {name: len(found) for name, found in by_name.items()} == {
        "invoke_agent spy": 1,
        "chat m": 2,
        "execute_tool secret": 2,  # the third was never begun: its arguments were wrong
    }
    (run,) = by_name["invoke_agent spy"]
    assert dict(run.attributes) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "spy",
        "gen_ai.conversation.id": "s1",
        "gen_ai.usage.input_tokens": 20,
        "gen_ai.usage.output_tokens": 10,
        "crosswalk.turns": 2,
        "crosswalk.outcome": "answered",
    }
    others = [*by_name["chat m"], *by_name["execute_tool secret"]]
    assert {span.parent.span_id for span in others} == {run.context.span_id}
    good, bad = sorted(
        by_name["execute_tool secret"], key=lambda span: span.attributes["gen_ai.tool.call.id"]
    )
    assert dict(good.attributes) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "secret",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "1",
        "gen_ai.tool.description": "Tell a secret.",
        "crosswalk.outcome": "ok",
    }
    assert (bad.attributes["error.type"], bad.status.status_code) == ("KeyError", StatusCode.ERROR)
    assert "content" not in str([(span.attributes, span.events, span.status.description) for span in others])


@pytest.mark.parametrize(
    ("answer", "said_of_it"),
    [
        (Answer.failure(500), {"crosswalk.outcome": "error", "error.type": "server", "crosswalk.turns": 1}),
        (
            None,
            {"crosswalk.outcome": "cancelled", "error.type": "UnsupportedRequestError", "crosswalk.turns": 0},
        ),
    ],
)
def test_a_run_that_fails(
    server: ReplayServer, run: Run, spans: Any, answer: Answer | None, said_of_it: dict[str, Any]
) -> None:
    tracers, exporter = spans
    if answer is not None:
        server.add(answer)

    async def use(service: LLMService) -> None:
        config = ChatConfig(provider_options={} if answer else {"nobody": {"a": 1}})
        with nullcontext() if answer else pytest.raises(CrosswalkError):
            await Agent(service, config=config, telemetry=AgentTelemetry(tracers)).answer("?")

    run(use)
    (span,) = exporter.get_finished_spans()
    assert (span.name, span.status.status_code) == ("invoke_agent", StatusCode.ERROR)
    assert dict(span.attributes) == {"gen_ai.operation.name": "invoke_agent", **said_of_it}


def test_without_opentelemetry_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(CrosswalkError, match=r"crosswalk-llm\[otel\]"):
        AgentTelemetry()
