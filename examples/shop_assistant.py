"""An assistant with two tools: an order waits for your approval, also while the program is not running.

python examples/shop_assistant.py SESSION.json "Order two teas"         (asks, and stops where an approval is needed)
python examples/shop_assistant.py SESSION.json --approve                 (goes on: the order is placed)
python examples/shop_assistant.py SESSION.json --refuse "too expensive"

It asks CROSSWALK_DEFAULT_PROVIDER, such as ollama:llama3.2, or the servers that you name:
python examples/shop_assistant.py SESSION.json "Order two teas" ollama:llama3.2 vllm:qwen
"""

from __future__ import annotations

import sys
from pathlib import Path

from crosswalk import StreamEvent
from crosswalk.agent import AgentTurn, ChatSession, SyncAgent, ToolExecutionResult, UsageLimits, tool
from crosswalk.service import SyncLLMService


@tool
def price(item: str) -> str:
    """Look up what an item costs."""
    return f"{item}: 3 euros"


@tool(needs_approval=True)
def order(item: str, count: int) -> str:
    """Order an item."""
    return f"ordered {count} of {item}"


def main() -> int:
    if len(sys.argv) < (4 if "--refuse" in sys.argv else 3):
        sys.exit(__doc__)
    file, said, *rest = sys.argv[1:]
    session = ChatSession.load(file) if Path(file).exists() else ChatSession()
    decision: bool | str | None = True if said == "--approve" else None
    if said == "--refuse":
        decision = rest.pop(0)
    approved = {call.id: decision for call in session.open_calls} if decision is not None else {}
    if decision is not None and not approved:
        sys.exit("Nothing waits for your approval.")
    with SyncLLMService(*rest, retry=1, timeout=120) as service:  # if a server fails, the next one is asked
        agent = SyncAgent(
            service, [price, order], approve=lambda call: None, limits=UsageLimits(total_tokens=20_000)
        )
        question = None if decision is not None else said
        with agent.stream(
            question, session=session, save=lambda changed: changed.save(file), approved=approved
        ) as run:
            for step in run:
                show(step)
    for call in run.response.waiting:
        print(f"May I? {call.name}({call.arguments})  (--approve, or --refuse REASON)")
    if run.response.outcome == "error":
        print(run.response.turns[-1].error)
    print(f"[{run.response.outcome}] {run.response.usage.total_tokens} tokens")
    return 0 if run.response.outcome in ("answered", "waiting") else 1


def show(step: object) -> None:
    match step:
        case StreamEvent(delta=delta) if delta is not None and delta.content_delta:
            print(delta.content_delta, end="", flush=True)
        case ToolExecutionResult(outcome=outcome) if outcome != "waiting":
            print(f"-> {step.call.name}: {step.output or step.error}")
        case AgentTurn(response=response, error=error):
            failed = sum(attempt.outcome != "success" for attempt in response.attempts)
            print(f"  ({failed} failed attempts)" if failed else "")
            if error is not None:
                print(f"-> {error}")


if __name__ == "__main__":
    sys.exit(main())
