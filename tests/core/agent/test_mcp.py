"""Tools of MCP servers: a real one, started by the test, and further messages of such a server."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from crosswalk import AudioPart, CrosswalkError, FilePart, ImagePart, TextPart, ToolCall
from crosswalk.agent import (
    Agent,
    SyncAgent,
    ToolError,
    ToolExecutionResult,
    ToolOutcome,
    ToolRunner,
    mcp_tools,
)
from crosswalk.service import Endpoint, LLMService, SyncLLMService
from crosswalk.testing.replay import Answer, ReplayServer

Run = Callable[..., Any]
Said = Callable[..., Answer]
SERVER = Path(__file__).with_name("mcp_server.py")


def test_an_agent_uses_a_real_server(server: ReplayServer, run: Run, said: Said) -> None:
    mcp = pytest.importorskip("mcp", reason="the package mcp is not installed")
    calls = [
        ("1", "x_add", '{"a": 1, "b": 2}'),
        ("2", "x_draw_everything", "{}"),
        ("3", "x_add", '{"a": "x"}'),
    ]
    server.add(said(None, *calls)).add(said("Done."))

    async def use(_: LLMService) -> tuple[ToolExecutionResult, ...]:
        takes_files = Endpoint("openai", model="m", base_url=server.url, api_key="k")
        started = mcp.StdioServerParameters(command=sys.executable, args=[str(SERVER)])
        async with LLMService(takes_files) as service, mcp_tools(started, prefix="x.", timeout=60) as tools:
            response = await Agent(service, tools).answer("?")
        return response.turns[0].tool_results

    added, drawn, wrong = run(use)
    assert (added.output, added.outcome) == ("3", ToolOutcome.OK)
    assert drawn.parts == (
        TextPart("Here it is:"),
        ImagePart(data="iVBORw0KGgo=", media_type="image/png"),
        AudioPart(data="UklGRg==", media_type="audio/wav"),
        TextPart("inside"),
        FilePart(data="aGk=", media_type="application/pdf", name="file:///a.pdf"),
        TextPart('{"name":"a","uri":"https://x/a","type":"resource_link"}'),
    )
    assert wrong.outcome is ToolOutcome.FAILED
    assert "valid integer" in (wrong.error or "")
    first, *_ = (one["function"] for one in server.requests[0].json()["tools"])
    assert (first["name"], first["description"]) == ("x_add", "Add two numbers.")
    assert first["parameters"]["required"] == ["a", "b"]


class Client:
    """The package's own client as it looks from here, over two pages of tools."""

    def __init__(self, server: Any) -> None:
        self.results = server

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def list_tools(self, *, cursor: str | None) -> Any:
        names = list(self.results)
        page = names[:2] if cursor is None else names[2:]
        tools = [
            SimpleNamespace(name=name, description=None, title="T", input_schema={"type": "object"})
            for name in page
        ]
        return SimpleNamespace(tools=tools, next_cursor="2" if cursor is None else None)

    async def call_tool(self, name: str, arguments: Any) -> Any:
        return self.results[name]


def text(said: str) -> Any:
    return SimpleNamespace(type="text", text=said)


def given(*content: Any, is_error: bool = False, structured: Any = None) -> Any:
    return SimpleNamespace(content=list(content), is_error=is_error, structured_content=structured)


def test_what_a_server_may_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("mcp")
    module.Client = Client  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mcp", module)
    answers = {
        "texts": given(text("a"), text("b")),
        "structured": given(structured={"a": 1}),
        "both": given(text("a"), structured={"a": 1}),
        "nothing": given(),
        "failed": given(text("no"), is_error=True),
        "silent": given(is_error=True),
    }

    async def main() -> Any:
        async with mcp_tools(answers, needs_approval=True) as tools:
            assert [one.needs_approval for one in tools] == [True] * 6
            assert tools[0].description == "T"
            assert tools[0].parameters == {"type": "object"}
            calls = [ToolCall(name, name) for name in answers]
            return await ToolRunner(tools).run(calls, approve=lambda call: True)

    results = asyncio.run(main())
    assert [result.error or result.output for result in results] == [
        *("a\nb", '{"a":1}', "a", "", "no", "the tool failed")
    ]


def test_a_tool_fails_at_once_in_another_event_loop(
    server: ReplayServer, endpoint: Endpoint, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("mcp")
    module.Client = Client  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mcp", module)
    server.add(said(None, ("1", "look", "{}"))).add(said("Done."))

    async def main() -> ToolExecutionResult:
        async with mcp_tools({"look": given(text("seen"))}) as tools:
            with SyncLLMService(endpoint) as service:
                response = SyncAgent(service, tools).answer("?")
        return response.turns[0].tool_results[0]

    result = asyncio.run(main())
    assert result.outcome is ToolOutcome.FAILED
    assert isinstance(result.exception, CrosswalkError)
    assert "belongs to another event loop" in str(result.exception)


@pytest.mark.parametrize("raised", [KeyError("mine"), ExceptionGroup("two", [KeyError("a"), OSError("b")])])
def test_what_the_block_raises_comes_out_as_it_is(monkeypatch: pytest.MonkeyPatch, raised: Exception) -> None:
    class Grouping(Client):
        async def __aexit__(self, *raised: Any) -> None:
            if (error := raised[1]) is not None:  # two task groups, as in the package
                raise ExceptionGroup("outer", [ExceptionGroup("inner", [error])])

    monkeypatch.setitem(sys.modules, "mcp", ModuleType("mcp"))
    monkeypatch.setattr(sys.modules["mcp"], "Client", Grouping, raising=False)

    async def main() -> None:
        async with mcp_tools({}):
            raise raised

    with pytest.raises(type(raised)) as caught:
        asyncio.run(main())
    assert caught.value is raised


def test_a_server_that_is_killed_is_started_anew() -> None:
    mcp = pytest.importorskip("mcp", reason="the package mcp is not installed")
    add = ToolCall("1", "add", '{"a": 1, "b": 2}')

    async def main() -> list[ToolExecutionResult]:
        started = mcp.StdioServerParameters(command=sys.executable, args=[str(SERVER)])
        async with mcp_tools(started) as tools:
            runner = ToolRunner(tools, timeout=None)
            killing, _ = await runner.run([ToolCall("0", "kill", "{}"), ToolCall("2", "kill", "{}")])
            return [killing, *await runner.run([add, add]), *await runner.run([add])]

    killed, *others = asyncio.run(main())
    assert killed.outcome is ToolOutcome.FAILED
    assert isinstance(killed.exception, ToolError)
    assert "may have taken effect" in (killed.error or "")
    assert [result.output for result in others] == ["3", "3", "3"]


def test_a_connection_that_ends_is_not_the_end_of_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """As over HTTP: the client cancels the task that opened it, a server that restarted has forgotten the session."""

    class Ending(Client):
        async def __aenter__(self) -> Client:
            self.task = asyncio.current_task()
            return self

        async def __aexit__(self, *_: object) -> None:
            raise ExceptionGroup("two", [KeyError("a"), OSError("b")])

        async def call_tool(self, name: str, arguments: Any) -> Any:
            if name == "forgotten":
                error: Any = RuntimeError("session terminated")
                error.code = -32600
                raise error
            if name == "cancelled" and self.task is not None:
                self.task.cancel()
                await asyncio.Event().wait()
            return self.results[name]

    monkeypatch.setitem(sys.modules, "mcp", ModuleType("mcp"))
    monkeypatch.setattr(sys.modules["mcp"], "Client", Ending, raising=False)
    names = ["fine", "forgotten", "fine", "cancelled", "fine"]

    async def main() -> list[ToolExecutionResult]:
        async with mcp_tools({name: given(text(name)) for name in dict.fromkeys(names)}) as tools:
            runner = ToolRunner(tools)
            return [(await runner.run([ToolCall(name, name)]))[0] for name in names]

    results = asyncio.run(main())
    assert [result.output or type(result.exception) for result in results] == [
        *("fine", ToolError, "fine", ToolError, "fine")
    ]


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)

    async def main() -> None:
        async with mcp_tools("http://127.0.0.1:9"):
            pass

    with pytest.raises(CrosswalkError, match=r"crosswalk-llm\[mcp\]"):
        asyncio.run(main())


def test_a_block_that_is_left_before_the_server_answers_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    entered = asyncio.Event()

    class Silent(Client):
        async def __aenter__(self) -> Client:
            entered.set()
            await asyncio.Event().wait()
            return self

    monkeypatch.setitem(sys.modules, "mcp", ModuleType("mcp"))
    monkeypatch.setattr(sys.modules["mcp"], "Client", Silent, raising=False)

    async def main() -> None:
        entering = asyncio.ensure_future(mcp_tools({}).__aenter__())
        await entered.wait()
        entering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await entering

    asyncio.run(main())


def test_a_tool_does_not_connect_again_after_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", ModuleType("mcp"))
    monkeypatch.setattr(sys.modules["mcp"], "Client", Client, raising=False)

    async def main() -> ToolExecutionResult:
        async with mcp_tools({"late": given(text("fine"))}) as tools:
            pass
        return (await ToolRunner(tools).run([ToolCall("1", "late")]))[0]

    assert "use its tools inside the block" in (asyncio.run(main()).error or "")


@pytest.mark.parametrize(
    ("server", "why"),
    [
        (["/nonexistent"], "FileNotFoundError"),
        ([sys.executable, "-S", "-c", "pass"], "Connection closed"),
        (None, "TypeError"),
    ],
    ids=["no command", "ends at once", "no server"],
)
def test_a_server_that_cannot_be_reached(server: list[str] | None, why: str) -> None:
    """One error, and no group of groups."""
    mcp = pytest.importorskip("mcp", reason="the package mcp is not installed")

    async def main() -> None:
        given = 7 if server is None else mcp.StdioServerParameters(command=server[0], args=server[1:])
        async with mcp_tools(given):
            pass

    with pytest.raises(CrosswalkError, match=f"^no connection to the MCP server: .*{why}") as raised:
        asyncio.run(main())
    assert raised.value.__cause__ is not None
