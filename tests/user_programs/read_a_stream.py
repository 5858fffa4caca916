"""Read a stream as it comes, from chunks of bytes and from another program."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable

from crosswalk import ChatResponse, DeltaAccumulator, ResponseDelta, anormalize_stream, normalize_stream


def shown(chunks: Iterable[bytes]) -> ChatResponse:
    stream = normalize_stream(chunks, "vllm")
    for delta in stream:
        print(delta.content_delta or "", end="")
        if (call := delta.tool_call_delta) is not None:
            print(call.index, call.id, call.name, call.arguments_delta)
    return stream.response


async def read(chunks: AsyncIterator[bytes]) -> str:
    async with anormalize_stream(chunks, "ollama") as stream:
        deltas: list[ResponseDelta] = [delta async for delta in stream]
        whole = await stream.response()
    again = DeltaAccumulator()
    for delta in deltas:
        again.append(delta)
    return whole.text


async def hello() -> AsyncIterator[bytes]:
    yield b'{"model": "m", "message": {"content": "Hi!"}, "done": true, "done_reason": "stop"}\n'


print(shown([b"data: [DONE]\n\n"]).usage, asyncio.run(read(hello())))
