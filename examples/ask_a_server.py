"""Ask a server, whole and streamed, and see its failures. Runs without a model: recordings answer.

python examples/ask_a_server.py                                   # a server in this process replays recordings
python examples/ask_a_server.py ollama llama3.2 "Why is the sky blue?"   # or ask a real one
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from crosswalk import ChatResponse, ProviderError
from crosswalk.service import ChatRequest, Endpoint, LLMService, RetryPolicy
from crosswalk.testing import load_capture
from crosswalk.testing.replay import Answer, ReplayServer

CAPTURES = Path(__file__).parents[1] / "tests" / "captures" / "vllm"


async def ask(service: LLMService, question: str) -> ChatResponse:
    """Print the answer while it arrives."""
    async with service.stream(ChatRequest(question)) as events:
        async for event in events:
            if event.delta is not None and event.delta.content_delta:
                print(event.delta.content_delta, end="", flush=True)
    print()
    return events.response


def report(response: ChatResponse) -> None:
    """Print the attempts, the finish reason and the number of tokens."""
    for attempt in response.attempts:
        print(f"  {attempt.provider_name}/{attempt.model}: {attempt.outcome} {attempt.error or ''}".rstrip())
    print(f"  {response.finish_reason}, {response.usage.total_tokens} tokens")


async def replayed() -> None:
    """Ask a server that fails at first twice, and one that always fails."""
    with ReplayServer() as server:
        recording = load_capture(CAPTURES / "chat_think_stream.response.sse")
        server.add(Answer.failure(503)).add(recording, times=2)
        endpoint = Endpoint("vllm", model="tiny", base_url=server.url)
        async with LLMService(endpoint, retry=RetryPolicy(attempts=2, initial_seconds=0.01)) as service:
            report(await ask(service, "Please answer. mode:think."))
            report(await ask(service, "Please answer. mode:think."))
            server.add(Answer.failure(429, message="too many requests"), times=None)
            try:
                await service.complete(ChatRequest("Once more?"))
            except ProviderError as error:
                print(f"{type(error).__name__} after {len(error.response.attempts)} attempts")


async def real(provider: str, model: str, question: str) -> None:
    """Ask the server at the address in the environment, or at the provider's default one."""
    async with LLMService(Endpoint(provider, model=model)) as service:
        report(await ask(service, question))


if __name__ == "__main__":
    arguments = sys.argv[1:]
    asyncio.run(real(*arguments) if len(arguments) == 3 else replayed())
