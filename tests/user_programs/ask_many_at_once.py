"""Ask one server many questions at once."""

from __future__ import annotations

import asyncio

from crosswalk import ChatResponse, CrosswalkError
from crosswalk.service import Endpoint, LLMService


async def answers(questions: list[str]) -> dict[str, str]:
    async with LLMService(Endpoint("ollama", model="llama3.2"), max_concurrency=8) as service:
        calls = [service.complete(question) for question in questions]
        done = await asyncio.gather(*calls, return_exceptions=True)
        found: dict[str, str] = {}
        for question, one in zip(questions, done, strict=True):
            match one:
                case ChatResponse():
                    found[question] = one.text
                case CrosswalkError():
                    found[question] = str(one)
                case BaseException():
                    raise one
        async with service.stream("And now?") as events:
            async for event in events:
                if event.delta is not None:
                    print(event.delta.content_delta or "", end="")
        return found


print(asyncio.run(answers(["Why?", "How?"])))
