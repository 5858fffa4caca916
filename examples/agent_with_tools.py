"""Run an agent with two tools, step by step: the model's calls, the results of the tools, and the answer.

python examples/agent_with_tools.py                                        (recorded answers, no model needed)
python examples/agent_with_tools.py vllm http://localhost:8000 my-model    (your own server)
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Literal

from crosswalk import StreamEvent
from crosswalk.agent import Agent, AgentTurn, tool
from crosswalk.service import Endpoint, LLMService
from crosswalk.testing import load_capture
from crosswalk.testing.replay import ReplayServer

RECORDED = Path(__file__).parent.parent / "tests/captures/vllm"


@tool
def get_weather(city: str, unit: Literal["celsius", "fahrenheit"] = "celsius") -> dict[str, str | int]:
    """Look up the weather of today.

    Args:
        city: the name of the city, in English.
        unit: of the temperature.
    """
    return {"city": city, "temperature": 18 if unit == "celsius" else 64, "sky": "light rain"}


@tool(timeout=5)
async def get_time(zone: str) -> str:
    """Tell the time.

    Args:
        zone: a name of the IANA time zone database, such as Europe/Paris.
    """
    await asyncio.sleep(0)  # a real tool would ask a server
    return f"12:00 in {zone}"


async def ask(endpoint: Endpoint, question: str) -> int:
    """Ask *question* and show every step."""
    async with LLMService(endpoint) as service:
        agent = Agent(service, [get_weather, get_time], max_turns=5)
        async for step in agent.stream(question):
            match step:
                case StreamEvent(delta=delta) if delta is not None and delta.content_delta:
                    print(harmless(delta.content_delta), end="", flush=True)
                case AgentTurn(tool_results=results, outcome=outcome, response=response):
                    for result in results:
                        print(harmless(f"-> {result.call.name}({result.call.arguments})"))
                        print(harmless(f"   {result.error or result.output}"))
                    if outcome is not None:
                        print(f"\n[{outcome}] {response.usage}")
                        return 0 if step.final_output is not None else 1
    raise AssertionError("the last turn has an outcome")


def harmless(text: str) -> str:
    """Return *text* without control characters: model output must not control the terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


def recorded() -> ReplayServer:
    """Return a server that answers as vLLM did: first with calls of both tools, then with text."""
    server = ReplayServer()
    for case in ("reasoning_tool_auto_parallel_seed4_stream", "reasoning_chat_think_stream"):
        server.add(load_capture(RECORDED / f"{case}.response.sse"))
    return server


def main(arguments: list[str]) -> int:
    """Run from the command line."""
    if len(arguments) not in (0, 3):
        print(__doc__, file=sys.stderr)
        return 2
    with nullcontext() if arguments else recorded() as server:
        provider, url, model = arguments if server is None else ("vllm", server.url, "recorded")
        endpoint = Endpoint(provider, base_url=url, model=model)
        return asyncio.run(ask(endpoint, "What are the weather and the time in Paris?"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
