"""Many sessions at once, with faults in a quarter of the answers: none is mixed up, lost or done twice."""

from __future__ import annotations

import asyncio
import zlib
from collections import Counter
from typing import Any

import httpx2
import orjson
import pytest

from crosswalk.agent import Agent, AgentOutcome, AgentResponse, ChatSession
from crosswalk.config import Settings
from crosswalk.service import Endpoint, LLMService, RetryPolicy
from wires import body, chunk

QUESTIONS = 2
OPTIONS: dict[str, Any] = {
    "settings": Settings(),
    "retry": RetryPolicy(attempts=4, initial_seconds=0, cool_down_seconds=0),
}


class Broken(httpx2.AsyncByteStream):
    """A body with a connection that breaks after *data*."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def __aiter__(self) -> Any:
        yield self._data
        raise httpx2.ReadError("reset")


class Server:
    """Answers each question with a call of a tool, then with the question. Its input must make sense.

    Attributes:
        asked: how often it was asked.
        faults: how often each fault happened.
        wrong: requests that no server would take, or that two sessions had a part in.
    """

    def __init__(self) -> None:
        self.asked = 0
        self.faults: Counter[str] = Counter()
        self.wrong: list[Any] = []

    async def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.asked += 1
        said = orjson.loads(request.content)
        messages = said["messages"]
        self._check(messages)
        asked = next(one["content"] for one in reversed(messages) if one["role"] == "user")
        is_last = messages[-1]["role"] == "tool"
        message: dict[str, Any] = {"content": f"Answer to {asked}"}
        if not is_last:
            call = {"name": "note", "arguments": orjson.dumps({"text": asked}).decode()}
            message = {
                "content": None,
                "tool_calls": [{"id": "call_0", "type": "function", "function": call}],
            }
        await asyncio.sleep(0)
        fault = zlib.crc32(b"%s %d" % (asked.encode(), self.asked)) % 16
        finish = "stop" if is_last else "tool_calls"
        if not said.get("stream"):
            answer, kind = orjson.dumps(body(message, finish)), "application/json"
        else:
            if "tool_calls" in message:
                message["tool_calls"][0]["index"] = 0
                pieces = [message]
            else:
                pieces = [{"content": text} for text in ("Answer", f" to {asked}")]
            events = [*map(chunk, pieces), chunk({}, finish)]
            lines = [b"data: %s\n\n" % orjson.dumps(event) for event in events]
            answer, kind = b"".join([*lines, b"data: [DONE]\n\n"]), "text/event-stream"
        headers = {"content-type": kind}
        if fault == 0:
            self.faults["busy"] += 1
            return httpx2.Response(503, json={"error": {"message": "busy"}})
        if fault == 1:
            self.faults["lost"] += 1
            raise httpx2.ReadError("reset")
        if fault == 2:
            self.faults["broken"] += 1
            return httpx2.Response(200, headers=headers, stream=Broken(answer[: len(answer) // 2]))
        if fault == 3:
            self.faults["cut"] += 1
            answer = answer[: len(answer) // 2]
        return httpx2.Response(200, headers=headers, content=answer)

    def _check(self, messages: list[dict[str, Any]]) -> None:
        spoken = {one["content"].split()[0] for one in messages if one["role"] == "user"}
        open_calls: list[str] = []
        for one in messages:
            if one["role"] == "tool":
                if one["tool_call_id"] not in open_calls:
                    self.wrong.append(messages)
                    return
                open_calls.remove(one["tool_call_id"])
            elif open_calls:
                self.wrong.append(messages)
                return
            open_calls += [call["id"] for call in one.get("tool_calls") or ()]
        if open_calls or len(spoken) != 1:
            self.wrong.append(messages)


@pytest.mark.untraced
@pytest.mark.parametrize("count", [60, pytest.param(1000, marks=pytest.mark.sweep)])
def test_many_sessions_at_once(count: int) -> None:
    server = Server()
    notes: Counter[str] = Counter()

    def note(text: str) -> str:
        """Write something down."""
        notes[text] += 1
        return f"noted: {text}"

    async def talk(agent: Agent, number: int) -> ChatSession:
        """Each question until it is answered, with a session that is stored in between, as after a restart."""
        session = ChatSession(id=str(number))
        for question in range(QUESTIONS):
            asked: str | None = f"s{number} q{question}"
            for _ in range(10):
                run = (
                    agent.stream(asked, session=session) if number % 2 else agent.run(asked, session=session)
                )
                response: AgentResponse = await run.finish()
                session, asked = ChatSession.from_json(session.to_json()), None
                if response.outcome is AgentOutcome.ANSWERED:
                    break
        return session

    async def main() -> list[ChatSession]:
        client = httpx2.AsyncClient(transport=httpx2.MockTransport(server))
        endpoints = [Endpoint(name, base_url="http://x", model="m") for name in ("vllm", "llamacpp")]
        async with client, LLMService(*endpoints, client=client, **OPTIONS) as service:
            agent = Agent(service, [note])
            return await asyncio.gather(*(talk(agent, number) for number in range(count)))

    sessions = asyncio.run(main())
    assert server.wrong == []
    assert set(server.faults) == {"busy", "lost", "broken", "cut"}
    assert 0.1 < server.faults.total() / server.asked < 0.4
    assert set(notes.values()) == {1}
    assert len(notes) == count * QUESTIONS
    for number, session in enumerate(sessions):
        questions = [f"s{number} q{question}" for question in range(QUESTIONS)]
        said = [(message.role.value, message.text) for message in session.messages]
        assert [text for role, text in said if role == "user"] == questions
        assert [text for role, text in said if role == "tool"] == [f"noted: {text}" for text in questions]
        last = [text for role, text in said if role == "assistant" and text]
        assert [text for text in last if text in {f"Answer to {one}" for one in questions}] == [
            f"Answer to {one}" for one in questions
        ]
