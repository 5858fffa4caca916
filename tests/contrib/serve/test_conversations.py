"""Answers that can be continued, in memory and in Redis."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest
from fakeredis import FakeAsyncRedis, FakeServer

from contrib_serve import asking, config_of
from crosswalk import normalize
from crosswalk.testing.replay import ReplayServer
from crosswalk.types import ChatMessage, ChatResponse
from crosswalk_serve import create_app
from crosswalk_serve.config import Store
from crosswalk_serve.gateway import (
    Conversations,
    Documents,
    KeptState,
    MemoryDocuments,
    RedisDocuments,
    StoredConversation,
    StoreError,
)
from crosswalk_serve.routing import connect

BODY = b"""{"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [
  {"type": "thinking", "thinking": "Hm.", "signature": "EqQB"}, {"type": "text", "text": "Hello"}],
  "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 2}}"""
HI = ChatMessage.user("Hi")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def answer() -> ChatResponse:
    return normalize(BODY, "anthropic")


@pytest.mark.parametrize("kind", ["memory", "redis"])
def test_a_conversation_is_kept_as_it_was_for_its_owner(kind: str) -> None:
    async def main() -> None:
        documents: Documents = MemoryDocuments(Store())
        client: Any = FakeAsyncRedis(server=FakeServer())
        if kind == "redis":
            documents = RedisDocuments(client, "p", Store())
        kept = Conversations(documents)
        await kept.keep("alice", "r1", StoredConversation((HI, answer()), b"{}"), None)
        found = await kept.find("alice", "r1")
        assert found is not None
        assert (found.turns[0], found.body) == (HI, b"{}")
        last = found.turns[1]
        assert isinstance(last, ChatResponse)
        assert last.same_content(answer())
        assert last.segments[0].metadata["signature"] == "EqQB"
        for owner, id in [("bob", "r1"), (None, "r1"), ("alice", "r2"), ("ali", "ce:r1"), ("", "5:alice:r1")]:
            assert await kept.find(owner, id) is None
        assert await kept.forget("bob", "r1") is False
        assert await kept.forget("alice", "r1") is True
        assert await kept.find("alice", "r1") is None
        await client.aclose()

    asyncio.run(main())


def test_a_conversation_keeps_the_digits_of_its_integers() -> None:
    body = BODY.replace(b'"EqQB"}', b'"EqQB", "new": 18446744073709551617}')

    async def main() -> None:
        kept = Conversations(MemoryDocuments(Store()))
        turn = normalize(body, "anthropic")
        await kept.keep(None, "r1", StoredConversation((turn,), b"{}"), None)
        found = await kept.find(None, "r1")
        assert found is not None
        assert found.turns[0].metadata == turn.metadata  # type: ignore[union-attr]
        assert "18446744073709551617" in str(turn.metadata)

    asyncio.run(main())


def test_an_item_in_the_same_store_is_no_conversation() -> None:
    async def main() -> None:
        documents = MemoryDocuments(Store())
        item = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
        await KeptState(documents, documents).keep_items("alice", "resp_1", {"output": [item]}, ())
        assert await Conversations(documents).find("alice", "item:msg_1") is None

    asyncio.run(main())


def test_memory_has_bounds() -> None:
    async def main() -> None:
        clock = Clock()
        documents = MemoryDocuments(Store(entries=2, bytes=10, seconds=5), clock)
        for name in "abc":
            await documents.put(name, b"123")
        assert [await documents.get(name) for name in "abc"] == [None, b"123", b"123"]
        await documents.put("c", b"12345678")  # anew, and too much beside b
        assert [await documents.get(name) for name in "bc"] == [None, b"12345678"]
        await documents.put("d", b"x" * 11)
        assert await documents.get("d") is None
        clock.now = 5
        assert await documents.get("c") is None
        assert documents._size == 0
        none = MemoryDocuments(Store(entries=0))
        await none.put("a", b"1")
        assert await none.get("a") is None

    asyncio.run(main())


def test_memory_counts_answers() -> None:
    """All that belongs to one goes with it."""

    async def main() -> None:
        documents = MemoryDocuments(Store(entries=2, bytes=10))
        for answer in "xyz":
            for name in "abc":
                assert await documents.put(answer + name, b"1", answer)
        assert [await documents.get(answer + "b") for answer in "xyz"] == [None, b"1", b"1"]
        await documents.put("yb", b"1", "z")  # of the latest that has it
        assert await documents.remove("za")
        await documents.put("a", b"1")
        assert [await documents.get(name) for name in ("ya", "yb", "zb", "a")] == [None, b"1", b"1", b"1"]
        assert not await documents.put("large", b"1234567890", "a")  # too much with the rest of its answer
        assert await documents.get("a") is None

    asyncio.run(main())


def test_redis_forgets_and_may_be_away() -> None:
    async def main() -> None:
        client: Any = FakeAsyncRedis(server=FakeServer())
        documents = RedisDocuments(client, "p", Store(seconds=60))
        await documents.put("a", b"1")
        assert 59_000 < await client.pttl("p:response:a") <= 60_000
        await RedisDocuments(client, "q", Store(entries=0)).put("a", b"1")
        assert await client.get("q:response:a") is None
        await client.aclose()
        async with connect("redis://127.0.0.1:1/0", seconds=5) as away:
            with pytest.raises(StoreError, match="Redis: ConnectionError"):
                await RedisDocuments(away, "p", Store()).get("a")

    asyncio.run(main())


def test_bytes_are_read_back() -> None:
    whole = StoredConversation((HI, answer()), b"\xff")
    assert StoredConversation.of_bytes(whole.to_bytes()).body == b"\xff"


OLD_DOCUMENTS = {
    "another form": b'{"answer": "resp_1", "item": []}',
    "no object": b'["resp_1"]',
    "no JSON": b"\x80\x04",
    "turns of another version": b'{"turns": [{"message": {"crosswalk": 99}}], "body": "", "items": "[]"}',
    "items without ids": b'{"turns": [], "body": "", "items": "[{}]"}',
    "no items": b'{"turns": [], "body": ""}',
}


@pytest.mark.parametrize("form", OLD_DOCUMENTS)
def test_what_another_version_has_stored_is_not_found(upstream: ReplayServer, form: str) -> None:
    """Clients are told so in the API's words: then they send the whole conversation."""

    class OldDocuments(MemoryDocuments):
        async def get(self, name: str) -> bytes | None:
            return OLD_DOCUMENTS[form]

    app = create_app(config_of(upstream))
    gateway = app.state.gateway
    documents = OldDocuments(Store())
    gateway.conversations, gateway.kept_state = Conversations(documents), KeptState(documents, documents)
    hi = {"role": "user", "content": "Hi"}
    reference = {"type": "item_reference", "id": "msg_1"}

    async def main() -> list[httpx2.Response]:
        async with app.router.lifespan_context(app), asking(app) as client:
            return [
                await client.get("/v1/responses/resp_1"),
                await client.delete("/v1/responses/resp_1"),
                await client.get("/v1/responses/resp_1/input_items"),
                await client.post(
                    "/v1/responses", json={"model": "tiny", "input": "Hi", "previous_response_id": "resp_1"}
                ),
                await client.post("/v1/responses", json={"model": "tiny", "input": [hi, reference]}),
            ]

    *pages, continued, referring = asyncio.run(main())
    assert {page.status_code for page in pages} == {404}
    assert (continued.status_code, continued.json()["error"]["code"]) == (400, "previous_response_not_found")
    assert referring.status_code == 404
    assert "Item with id 'msg_1' not found" in referring.json()["error"]["message"]
