"""A chat with tools: Ctrl-C stops an answer, a killed program resumes, one provider takes over from another.

python examples/chat_app.py chats.db ann                                        (recorded answers, no model needed)
python examples/chat_app.py chats.db ann ollama http://localhost:11434 llama3.2 vllm http://localhost:8000 qwen
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from crosswalk import CrosswalkError, StreamEvent
from crosswalk.agent import (
    AgentTurn,
    ChatSession,
    SQLiteStore,
    SyncAgent,
    SyncAgentRun,
    ToolExecutionResult,
    ToolExecutionStart,
    UsageLimits,
    keep_turns,
    tool,
)
from crosswalk.service import Endpoint, SyncLLMService
from crosswalk.testing import load_capture
from crosswalk.testing.replay import ReplayServer

RECORDED = Path(__file__).parent.parent / "tests/captures/vllm"


@tool
def get_time(zone: str) -> str:
    """Tell the time in a time zone."""
    return f"{datetime.now(UTC):%H:%M} UTC, asked for {zone}"


@tool(timeout=30)
def get_weather(city: str, unit: str = "celsius") -> dict[str, object]:
    """Look up the weather of today."""
    return {"city": city, "degrees": 18, "unit": unit}


class Chat:
    """One user's conversation, stored at every step."""

    def __init__(self, service: SyncLLMService, store: SQLiteStore, user: str, notes: Path) -> None:
        self.store = store
        self.session: ChatSession = store.load(user)

        @tool(needs_approval=True)
        def note(text: str) -> str:
            """Write a line into the user's notes."""
            with notes.open("a", encoding="utf-8") as file:
                file.write(f"{text}\n")
            return "written"

        self.agent = SyncAgent(
            service,
            [get_time, get_weather, note],
            instructions=f"Be brief. You talk to {user}.",
            limits=UsageLimits(tool_calls=20),
            approve=lambda call: (
                ask(f"run {call.name} {call.arguments}? [y/n] ") == "y" or "the user said no"
            ),
            trim=keep_turns(10),
        )

    def say(self, text: str | None) -> None:
        """Send *text*, or continue with the unanswered message, and show everything that happens."""
        run = self.agent.stream(text, session=self.session, save=self.store.save)
        with run:
            try:
                show(run)
            except KeyboardInterrupt:
                print("\n[stopped; what was said and done is kept]")
            except CrosswalkError as error:
                print(f"\n[{error}]")

    @property
    def is_unanswered(self) -> bool:
        """Whether the program ended before the model had answered."""
        last = self.session.messages[-1:]
        return bool(last) and (last[0].role != "assistant" or bool(self.session.open_calls))


def show(run: SyncAgentRun[object]) -> None:
    """Print the events of a run as they happen."""
    for step in run:
        if isinstance(step, StreamEvent) and step.event_type == "response.retried":
            print("\n[again]")
        elif isinstance(step, StreamEvent) and step.delta is not None:
            print(printable(step.delta.content_delta or ""), end="", flush=True)
        elif isinstance(step, ToolExecutionStart):
            print(f"[{step.call.name} …]")
        elif isinstance(step, ToolExecutionResult):
            print(printable(f"[{step.call.name}: {step.outcome}]"))
        elif isinstance(step, AgentTurn) and step.outcome is not None:
            info = step.response.error_info
            why = f": {info.message}" if info is not None else ""
            print(printable(f"\n[{step.outcome}, {step.response.metadata.provider_id}{why}]"))


def printable(text: str) -> str:
    """Return *text* without control sequences for the terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


def ask(prompt: str) -> str:
    """Return the user's input, or an empty text at the end of the input."""
    print(prompt, end="", flush=True)
    return sys.stdin.readline().strip()


def main(arguments: list[str]) -> int:
    """Run from the command line."""
    if len(arguments) < 2 or (len(arguments) - 2) % 3:
        print(__doc__, file=sys.stderr)
        return 2
    file, user, *servers = arguments
    with ExitStack() as stack:
        if not servers:
            recorded = stack.enter_context(ReplayServer())
            recorded.add(load_capture(RECORDED / "reasoning_tool_auto_parallel_seed4_stream.response.sse"))
            recorded.add(load_capture(RECORDED / "reasoning_chat_think_stream.response.sse"), times=None)
            servers = ["vllm", recorded.url, "recorded"]
        endpoints = [
            Endpoint(servers[n], base_url=servers[n + 1], model=servers[n + 2])
            for n in range(0, len(servers), 3)
        ]
        chat = Chat(
            stack.enter_context(SyncLLMService(*endpoints)),
            SQLiteStore(file),
            user,
            Path(file).with_suffix(".txt"),
        )
        if chat.is_unanswered:
            print("[going on]")
            chat.say(None)
        while text := ask("> "):
            chat.say(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
